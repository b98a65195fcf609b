//! Identifies Claude Code's process by its id and start time, because ids are reused.

use anamnesis_session::event::ClientProcess;

/// Returns the client's process, from the process id that the client passes to hooks.
pub fn process(number: Option<&str>) -> Option<ClientProcess> {
    let id = number?.trim().parse().ok()?;
    Some(ClientProcess {
        id,
        started: started(id),
    })
}

/// Returns whether a process is still running; `None` if that cannot be determined.
pub fn is_running(process: ClientProcess) -> Option<bool> {
    let expected = process.started?;
    match started(process.id) {
        Some(started) => Some(started == expected),
        // If even our own process is not found, `/proc` is not available.
        None => started(i64::from(std::process::id())).map(|_| false),
    }
}

/// Returns when a process started, in clock ticks since boot; `None` if it is gone.
///
/// Fields of `/proc/PID/stat`: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>.
#[cfg(target_os = "linux")]
fn started(id: i64) -> Option<i64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may contain any character.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    // The start time is field 22. A zombie has ended, so it does not count as running.
    fields.nth(18)?.parse().ok().filter(|_| state != "Z")
}

/// Other systems need native code for this. There, a session counts as lost after a time
/// without events.
#[cfg(not(target_os = "linux"))]
fn started(_id: i64) -> Option<i64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

    use anamnesis_testkit::wait_for;

    use super::*;

    #[test]
    fn a_process_is_told_from_a_later_one() {
        let own = process(Some(&std::process::id().to_string())).unwrap();
        assert!(own.started.is_some());
        assert_eq!(is_running(own), Some(true));
        let later = ClientProcess {
            started: own.started.map(|started| started + 1),
            ..own
        };
        assert_eq!(is_running(later), Some(false));
        let unknown = ClientProcess {
            started: None,
            ..own
        };
        assert_eq!(is_running(unknown), None);
    }

    #[test]
    fn a_process_that_has_ended_is_gone() {
        let mut child = Command::new("sleep")
            .arg("60")
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let running = process(Some(&child.id().to_string())).unwrap();
        assert_eq!(is_running(running), Some(true));
        child.kill().unwrap();
        // The killed child is a zombie until it is waited for.
        wait_for("the zombie", || is_running(running) != Some(true));
        assert_eq!(is_running(running), Some(false));
        child.wait().unwrap();
        assert_eq!(is_running(running), Some(false));
    }

    #[test]
    fn what_is_no_number_is_no_process() {
        for text in [None, Some(""), Some("x"), Some("1.5")] {
            assert_eq!(process(text), None);
        }
    }
}
