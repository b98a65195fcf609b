//! Growth of work, measured in processor time: other programs do not change it.

use std::{hint::black_box, time::Duration};

/// Checks that work on sixteen times the input takes about sixteen times as long.
///
/// A quadratic algorithm takes 256 times as long. The bound lies between the two and allows for work
/// that is next to none.
///
/// # Panics
/// When the larger work takes more than 64 times as long.
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

/// The processor time that this thread has used.
#[cfg(unix)]
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Nothing grows where processor time cannot be read.
#[cfg(not(unix))]
fn processor_time() -> Duration {
    Duration::ZERO
}
