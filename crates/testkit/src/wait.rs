//! The one place where tests wait for something that cannot wake them.

use std::{
    thread,
    time::{Duration, Instant},
};

/// After this time a test fails. The condition holds long before, also on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

/// The interval between two checks of [`wait_for`].
const INTERVAL: Duration = Duration::from_millis(2);

/// Waits until a condition holds.
///
/// # Panics
/// Panics if it does not hold within a minute.
pub fn wait_for(what: &str, mut holds: impl FnMut() -> bool) {
    let held = poll(LIMIT, INTERVAL, || holds().then_some(()));
    assert!(held.is_some(), "{what} did not come in {LIMIT:?}");
}

/// Calls `look` until it returns a value or the time limit is exceeded.
pub fn poll<T>(
    limit: Duration,
    interval: Duration,
    mut look: impl FnMut() -> Option<T>,
) -> Option<T> {
    let begun = Instant::now();
    loop {
        let found = look();
        if found.is_some() || begun.elapsed() > limit {
            return found;
        }
        thread::sleep(interval);
    }
}
