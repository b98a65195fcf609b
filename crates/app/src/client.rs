//! Claude Code's process: told from a later one of the same number by the time of its start.

use anamnesis_session::event::ClientProcess;

/// The process that a hook runs in, from the number that the client gives.
pub fn process(number: Option<&str>) -> Option<ClientProcess> {
    let id = number?.trim().parse().ok()?;
    Some(ClientProcess {
        id,
        started: started(id),
    })
}

/// Tells whether a process is still there; none where that cannot be known.
pub fn is_running(process: ClientProcess) -> Option<bool> {
    let expected = process.started?;
    match started(process.id) {
        Some(started) => Some(started == expected),
        // Without /proc nothing can be told of anybody.
        None => started(i64::from(std::process::id())).map(|_| false),
    }
}

/// When a process began, in clock ticks since the system's start; none if it is gone.
///
/// The fields of `/proc/PID/stat`: <https://man7.org/linux/man-pages/man5/proc_pid_stat.5.html>.
#[cfg(target_os = "linux")]
fn started(id: i64) -> Option<i64> {
    let text = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The second field, the program's name in brackets, may hold anything.
    let (_, fields) = text.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let state = fields.next()?;
    // The start is the 22nd field. A zombie only waits for its parent to notice.
    fields.nth(18)?.parse().ok().filter(|_| state != "Z")
}

/// Other systems do not tell without code of their own: a session is then given up by its silence.
#[cfg(not(target_os = "linux"))]
fn started(_id: i64) -> Option<i64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::process::{Command, Stdio};

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
        // Killed and not yet waited for: a zombie.
        while is_running(running) == Some(true) {
            std::thread::yield_now();
        }
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
