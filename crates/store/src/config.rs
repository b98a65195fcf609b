//! The settings of this machine: `config.json`, written by `config` commands and by hand.
//!
//! Unknown keys are somebody else's and are kept; a broken file counts as an empty one and is
//! reported, since no setting is worth a session.

use std::fmt::Write as _;

use serde_json::{Map, Value};

use crate::{file, home::Home};

/// The largest settings file that is read, in bytes.
const MAX_LENGTH: usize = 1024 * 1024;

/// When the one line at the start of a session is shown to the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SessionLine {
    /// Whenever there is something to say.
    #[default]
    On,
    /// For problems only.
    Problems,
    /// Never.
    Off,
}

/// What `config.json` says.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The name of this machine in notes, if one is set.
    pub machine_id: Option<String>,
    /// When the one line is shown.
    pub session_line: SessionLine,
    /// Why the file, or a part of it, was not taken.
    pub problem: Option<String>,
}

impl Config {
    /// Reads the settings of a store.
    pub fn load(home: &Home) -> Self {
        let path = home.config();
        let (bytes, _, _) = match file::read_head(&path, MAX_LENGTH) {
            Ok(read) => read,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Self::default(),
            Err(error) => {
                return Self {
                    problem: Some(format!("config.json: {error}")),
                    ..Self::default()
                };
            }
        };
        match serde_json::from_slice::<Map<String, Value>>(&bytes) {
            Ok(keys) => Self::of(&keys),
            Err(error) => Self {
                problem: Some(format!("config.json is no JSON object: {error}")),
                ..Self::default()
            },
        }
    }

    fn of(keys: &Map<String, Value>) -> Self {
        let mut config = Self::default();
        let mut problem = String::new();
        match keys.get("machine_id") {
            Some(Value::String(name)) if !name.trim().is_empty() => {
                config.machine_id = Some(name.trim().to_owned())
            }
            Some(Value::String(_) | Value::Null) | None => {}
            Some(other) => drop(write!(
                problem,
                "config.json: machine_id is {other}, not a text"
            )),
        }
        match keys
            .get("session_line")
            .map(|value| (value, value.as_str()))
        {
            None | Some((_, Some("on"))) => {}
            Some((_, Some("problems"))) => config.session_line = SessionLine::Problems,
            Some((_, Some("off"))) => config.session_line = SessionLine::Off,
            Some((other, _)) => {
                let _ = write!(
                    problem,
                    "config.json: session_line is {other}, not on, problems or off"
                );
            }
        }
        config.problem = (!problem.is_empty()).then_some(problem);
        config
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Config {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::fs::write(home.config(), text).unwrap();
        Config::load(&home)
    }

    #[test]
    fn settings_are_read() {
        let config = load(
            r#"{"machine_id": " laptop ", "session_line": "problems", "reflection": {"model": "m"}}"#,
        );
        assert_eq!(config.machine_id.as_deref(), Some("laptop"));
        assert_eq!(config.session_line, SessionLine::Problems);
        assert_eq!(config.problem, None);
    }

    #[test]
    fn a_broken_file_counts_as_empty_and_is_reported() {
        for (text, problem) in [
            ("{", "config.json is no JSON object"),
            ("[]", "config.json is no JSON object"),
            (r#"{"machine_id": 3}"#, "machine_id is 3, not a text"),
            (r#"{"session_line": "loud"}"#, "session_line is \"loud\""),
        ] {
            let config = load(text);
            assert_eq!(
                (config.machine_id, config.session_line),
                (None, SessionLine::On)
            );
            assert!(
                config.problem.is_some_and(|found| found.contains(problem)),
                "{text}"
            );
        }
    }

    #[test]
    fn no_file_is_no_problem() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(Config::load(&Home::new(folder.path())).problem, None);
    }
}
