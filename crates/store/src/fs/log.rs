//! The log, one line per event.

use std::{fs, io::Write as _};

use anamnesis_text::{clean, redact};
use chrono::{DateTime, SecondsFormat, Utc};

use crate::fs::{file::private_options, home::Home};

/// The size at which the log is rotated, in bytes. Two old logs are kept.
const MAX_LENGTH: u64 = 5 * 1024 * 1024;

/// The maximum length of a line, in characters.
const MAX_LINE_LENGTH: usize = 500;

/// Appends a line. Errors are ignored.
///
/// The text is made one line and redacted, because a reason may quote foreign text.
pub fn append(home: &Home, now: DateTime<Utc>, text: &str) {
    let path = home.log();
    // A link instead of the folder could lead out of the store.
    let folder = path.parent().map(fs::symlink_metadata);
    if !folder.is_some_and(|folder| folder.is_ok_and(|metadata| metadata.is_dir())) {
        return;
    }
    if fs::metadata(&path).is_ok_and(|metadata| metadata.len() > MAX_LENGTH) {
        let old = path.with_extension("log.1");
        let _ = fs::rename(&old, path.with_extension("log.2"));
        let _ = fs::rename(&path, old);
    }
    let line = clean::one_line(text);
    let redacted = redact::redact(&line);
    let text: String = redacted.text.chars().take(MAX_LINE_LENGTH).collect();
    let time = now.to_rfc3339_opts(SecondsFormat::Secs, true);
    if let Ok(mut file) = private_options().append(true).create(true).open(&path) {
        // A single write, so that lines of concurrent processes do not mix.
        let _ = file.write_all(format!("{time} {text}\n").as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_appended_and_the_log_is_set_aside() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        home.create().unwrap();
        let now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
        append(&home, now, "first\nstill first\u{1b}[31m");
        append(&home, now, &"x".repeat(10_000));
        let text = fs::read_to_string(home.log()).unwrap();
        assert!(
            text.starts_with("2026-01-02T03:04:05Z first still first\n2026-01-02T03:04:05Z xxx")
        );
        assert_eq!(text.lines().count(), 2);
        fs::write(home.log(), "x".repeat(6_000_000)).unwrap();
        append(&home, now, "between");
        fs::write(home.log(), "y".repeat(6_000_000)).unwrap();
        append(&home, now, "after");
        assert_eq!(
            fs::read_to_string(home.log()).unwrap(),
            "2026-01-02T03:04:05Z after\n"
        );
        for (ending, byte) in [("log.1", b'y'), ("log.2", b'x')] {
            let old = fs::read(home.log().with_extension(ending)).unwrap();
            assert_eq!(old[0], byte, "{ending}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_log_folder_that_is_a_link_is_not_followed() {
        // PATH-03
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::os::unix::fs::symlink(outside.path(), folder.path().join("log")).unwrap();
        append(
            &home,
            DateTime::from_timestamp(1_767_323_045, 0).unwrap(),
            "x",
        );
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }
}
