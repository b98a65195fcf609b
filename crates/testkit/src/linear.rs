//! Checks how work grows with its input, in processor time, which other programs do not change.

use std::{hint::black_box, time::Duration};

/// Checks that work on 16 times the input takes about 16 times as long.
///
/// A quadratic algorithm takes 256 times as long. The limit is between the two and leaves room
/// for very short work.
///
/// # Panics
/// Panics if the larger work takes more than 64 times as long.
pub fn assert_linear<T>(what: &str, small: impl Fn() -> T, large: impl Fn() -> T) {
    fn time<T>(work: &impl Fn() -> T) -> Duration {
        let start = processor_time();
        black_box(work());
        processor_time().saturating_sub(start)
    }
    let shortest = (0..5).map(|_| time(&small)).min().unwrap_or_default();
    let bound = shortest * 64 + Duration::from_millis(50);
    let mut measured = Vec::new();
    let is_linear = (0..5).any(|_| {
        let larger = time(&large);
        measured.push(larger);
        larger < bound
    });
    assert!(is_linear, "{what:?}: {shortest:?}, then {measured:?}");
}

/// Returns the processor time of this thread.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns zero where processor time cannot be read, so that the check passes.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    Duration::ZERO
}
