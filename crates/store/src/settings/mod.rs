//! The settings: what each one accepts, and how a value is read and written.
//!
//! `declaration` declares them. Variables are named there for help texts; the binary reads the
//! environment.

pub mod config;
mod declaration;
pub mod exclude;

use std::slice;

use anamnesis_text::redact::check_pattern;
use serde_json::{Map, Value};
use strsim::levenshtein;

pub use self::declaration::SETTINGS;
use self::{config::Config, exclude::names_nothing};

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// The key in `config.json`; a dot separates an object and its member.
    pub name: &'static str,
    /// The kind of its values.
    pub kind: Kind,
    /// The environment variable that overrides the file.
    pub variable: Option<&'static str>,
    /// The description, one sentence.
    pub meaning: &'static str,
    value: fn(&Config) -> Value,
    set: fn(&mut Config, Value),
}

/// The kind of a setting's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A machine name; see [`is_machine_name`]. One in the file may be any string.
    MachineName,
    /// The address of a git repository.
    Address,
    /// The address of a server.
    Server,
    /// A string.
    Text,
    /// A string that is never shown in full.
    Secret,
    /// A boolean.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A non-negative integer up to this one.
    Number(u32),
    /// A list of strings.
    Texts,
    /// A list of patterns of folders.
    Folders,
    /// A list of patterns of what is masked.
    Patterns,
    /// Changed only by `pause` and `resume`, which have side effects.
    Paused,
}

/// The setting that is always read from the default store, because it decides which store is used.
pub const TRUSTED_VARIABLES: &str = "trusted_variables";

/// Returns the setting of that name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Returns the setting with the most similar name, if there is one.
pub fn nearest(name: &str) -> Option<&'static Setting> {
    let name = name.to_lowercase().replace('-', "_");
    let distance = |setting: &Setting| {
        // A person may remember only the part after the dot.
        let (_, last) = setting.name.rsplit_once('.').unwrap_or(("", setting.name));
        levenshtein(&name, setting.name).min(levenshtein(&name, last))
    };
    SETTINGS
        .iter()
        .map(|setting| (distance(setting), setting))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= name.chars().count().div_ceil(3))
        .map(|(_, setting)| setting)
}

/// Returns whether a text is a valid machine name: 1 to 64 ASCII letters, digits, `.`, `_` and `-`,
/// not beginning with a dash. It is used in notes, file names and commits.
pub fn is_machine_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        // `.` and `..` would be folders.
        && !text.bytes().all(|byte| byte == b'.')
}

impl Kind {
    /// Describes the accepted values.
    pub fn expected(self) -> String {
        match self {
            Self::MachineName => "1 to 64 letters, digits, `.`, `_` or `-`".to_owned(),
            Self::Address => "the address of a git repository".to_owned(),
            Self::Server => "an address that begins with http:// or https://".to_owned(),
            Self::Text => "a string".to_owned(),
            Self::Secret => "a key".to_owned(),
            Self::Switch => "on or off".to_owned(),
            Self::Choice([first @ .., last]) => format!("{} or {last}", first.join(", ")),
            Self::Choice([]) => String::new(),
            Self::Number(u32::MAX) => "a non-negative integer".to_owned(),
            Self::Number(max) => format!("an integer from 0 to {max}"),
            Self::Texts | Self::Folders | Self::Patterns => "a list of strings".to_owned(),
            Self::Paused => "the value that `off` and `on` write".to_owned(),
        }
    }

    /// Returns whether its values are lists of strings.
    pub fn is_list(self) -> bool {
        matches!(self, Self::Texts | Self::Folders | Self::Patterns)
    }

    /// Returns whether it keeps something out of the records. While such a setting is invalid, nothing
    /// is recorded.
    fn restricts_recording(self) -> bool {
        // The choice is that of `recording.headless`.
        matches!(
            self,
            Self::Folders | Self::Paused | Self::Patterns | Self::Choice(["on", "summary", "off"])
        )
    }

    /// Returns whether a value may contain a password or a key.
    fn may_hold_secret(self) -> bool {
        matches!(self, Self::Address | Self::Server | Self::Secret)
    }

    /// Reads one value. A blank string counts as not set, which is null.
    fn read(self, value: &Value) -> Option<Value> {
        match self {
            Self::Switch => match value.as_str() {
                Some("on") => return Some(true.into()),
                Some("off") => return Some(false.into()),
                _ => return value.as_bool().map(Value::Bool),
            },
            Self::Number(max) => {
                let number = whole_number(&value.as_number()?.to_string());
                return number.filter(|number| *number <= max).map(Value::from);
            }
            _ => {}
        }
        let text = value.as_str()?.trim();
        match self {
            _ if text.is_empty() => Some(Value::Null),
            Self::Choice(words) => {
                let word = words.iter().find(|word| text.eq_ignore_ascii_case(word))?;
                Some((*word).into())
            }
            Self::Server if !text.starts_with("http://") && !text.starts_with("https://") => None,
            _ => Some(text.into()),
        }
    }

    /// Checks an item of a list.
    fn check_item(self, item: &Value) -> Result<(), &'static str> {
        match (self, item) {
            (Self::Paused, Value::Bool(_) | Value::String(_)) => Ok(()),
            (Self::Paused, _) => Err("expected true or a project key"),
            (Self::Folders, Value::String(pattern)) if names_nothing(pattern) => {
                Err("it names no folder")
            }
            (Self::Patterns, Value::String(pattern)) => check_pattern(pattern),
            (_, Value::String(_)) => Ok(()),
            _ => Err("expected a string"),
        }
    }
}

/// A value that a setting does not accept; says what it expects.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct InvalidSetting(String);

/// Parses a whole number. Python's JSON writes one of type float as `12.0`.
fn whole_number(text: &str) -> Option<u32> {
    text.strip_suffix(".0").unwrap_or(text).parse().ok()
}

impl Setting {
    /// Returns the value in these settings.
    pub fn value(&self, config: &Config) -> Value {
        (self.value)(config)
    }

    /// Sets the value in these settings to one that [`Setting::parse`] returned.
    pub fn set(&self, config: &mut Config, value: Value) {
        (self.set)(config, value);
    }

    /// Parses typed words.
    pub fn parse(&self, words: &[String]) -> Result<Value, InvalidSetting> {
        let typed = match (self.kind, words) {
            (kind, words) if kind.is_list() => Value::from(words),
            (Kind::Switch, [word]) => match word.trim() {
                "true" | "yes" | "1" => true.into(),
                "false" | "no" | "0" => false.into(),
                word => word.into(),
            },
            (Kind::Number(_), [word]) => {
                let number = whole_number(word.trim());
                number.map_or_else(|| word.as_str().into(), Value::from)
            }
            (Kind::MachineName, [word]) if !is_machine_name(word.trim()) => {
                return Err(InvalidSetting(self.invalid(&word.as_str().into())));
            }
            (Kind::Paused, _) | (_, [] | [_, _, ..]) => {
                return Err(InvalidSetting(self.invalid(&words.join(" ").into())));
            }
            (_, [word]) => word.as_str().into(),
        };
        let mut problems = Vec::new();
        let read = self.read(&typed, &mut problems);
        match read.filter(|value| !value.is_null()) {
            Some(value) if problems.is_empty() => Ok(value),
            None if problems.is_empty() => Err(InvalidSetting(self.invalid(&typed))),
            _ => Err(InvalidSetting(problems.join("; "))),
        }
    }

    /// Reads a value of the file. What is invalid in it is reported and left out; none if nothing is
    /// left.
    fn read(&self, value: &Value, problems: &mut Vec<String>) -> Option<Value> {
        if !self.kind.is_list() && self.kind != Kind::Paused {
            let read = self.kind.read(value);
            if read.is_none() {
                problems.push(self.invalid(value));
            }
            return read;
        }
        // Any other value counts as a list with one item.
        let items = value
            .as_array()
            .map_or(slice::from_ref(value), Vec::as_slice);
        let mut valid = Vec::new();
        for item in items {
            let is_blank = item.as_str().is_some_and(|text| text.trim().is_empty());
            if is_blank && self.kind == Kind::Folders {
                continue;
            }
            match self.kind.check_item(item) {
                Ok(()) => valid.push(item.clone()),
                Err(why) => problems.push(format!("invalid value {item} in {}: {why}", self.name)),
            }
        }
        (items.is_empty() || !valid.is_empty()).then_some(valid.into())
    }

    /// Says that a value is invalid, without one that may contain a password.
    fn invalid(&self, value: &Value) -> String {
        let value = if self.kind.may_hold_secret() {
            String::new()
        } else {
            format!(" {value}")
        };
        let expected = self.kind.expected();
        format!(
            "invalid value{value} for {}: expected {expected}",
            self.name
        )
    }

    /// Returns its value in the keys of a file; null counts as not set.
    pub fn written<'a>(&self, keys: &'a Map<String, Value>) -> Option<&'a Value> {
        let value = match self.name.split_once('.') {
            Some((object, key)) => keys.get(object)?.get(key),
            None => keys.get(self.name),
        };
        value.filter(|value| !value.is_null())
    }

    /// Sets or removes its value in the keys of a file.
    pub fn put(
        &self,
        keys: &mut Map<String, Value>,
        value: Option<Value>,
    ) -> Result<(), InvalidSetting> {
        let Some((name, key)) = self.name.split_once('.') else {
            match value {
                Some(value) => drop(keys.insert(self.name.to_owned(), value)),
                // `swap_remove` would move the last key here.
                None => drop(keys.shift_remove(self.name)),
            }
            return Ok(());
        };
        if value.is_none() && !keys.contains_key(name) {
            return Ok(());
        }
        let object = keys.entry(name).or_insert_with(|| Map::new().into());
        let Value::Object(members) = object else {
            return Err(InvalidSetting(format!(
                "{name} in config.json is {object}, not an object"
            )));
        };
        match value {
            Some(value) => drop(members.insert(key.to_owned(), value)),
            None => drop(members.shift_remove(key)),
        }
        if members.is_empty() {
            keys.shift_remove(name);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().map(|&word| word.to_owned()).collect()
    }

    fn parsed(name: &str, typed: &[&str]) -> Result<Value, String> {
        let value = find(name).unwrap().parse(&words(typed));
        value.map_err(|error| error.to_string())
    }

    #[test]
    fn names_are_there_once() {
        let mut names: Vec<&str> = SETTINGS.iter().map(|setting| setting.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    #[test]
    fn what_is_put_is_what_holds() {
        // Each setting accepts a value other than its default and returns it.
        for setting in SETTINGS {
            let default = setting.value(&Config::default());
            let typed: &[&[&str]] = match setting.kind {
                Kind::MachineName => &[&["desk-2"]],
                Kind::Address => &[&["git@git.home:me/memory.git"]],
                Kind::Server => &[&["https://model.home/v1"]],
                Kind::Text => &[&["a-model"]],
                Kind::Secret => &[&["a-key-of-nobody"]],
                Kind::Switch if default == json!(true) => &[&["off"]],
                Kind::Switch => &[&["on"]],
                Kind::Choice(words) => &words.chunks(1).collect::<Vec<_>>(),
                Kind::Number(_) => &[&["17"]],
                Kind::Texts | Kind::Folders | Kind::Patterns => &[&["/srv/a", "/srv/b c"]],
                Kind::Paused => continue,
            };
            for typed in typed {
                let value = setting.parse(&words(typed)).unwrap();
                let mut keys = Map::new();
                setting.put(&mut keys, Some(value.clone())).unwrap();
                let config = Config::from_keys(&keys);
                assert_eq!(config.problem, None, "{}", setting.name);
                assert_eq!(setting.value(&config), value, "{}", setting.name);
                let mut set = Config::default();
                setting.set(&mut set, value.clone());
                assert_eq!(setting.value(&set), value, "{}", setting.name);
                if !matches!(setting.kind, Kind::Choice(_)) {
                    assert_ne!(value, default, "{}", setting.name);
                }
                assert_eq!(setting.written(&keys), Some(&value), "{}", setting.name);
                setting.put(&mut keys, None).unwrap();
                assert_eq!(keys, Map::new(), "{}", setting.name);
            }
        }
    }

    #[test]
    fn null_and_a_blank_string_count_as_not_set() {
        for setting in SETTINGS {
            let mut values = vec![Value::Null];
            if matches!(setting.kind, Kind::Text | Kind::Address | Kind::Choice(_)) {
                values.push(json!("  "));
            }
            for value in values {
                let mut keys = Map::new();
                setting.put(&mut keys, Some(value)).unwrap();
                let config = Config::from_keys(&keys);
                assert_eq!(config.problem, None, "{}", setting.name);
                let default = setting.value(&Config::default());
                assert_eq!(setting.value(&config), default, "{}", setting.name);
            }
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (name, typed, problem) in [
            (
                "sync.auto",
                &["maybe"][..],
                "invalid value \"maybe\" for sync.auto: expected on or off",
            ),
            (
                "sync.auto",
                &[],
                "invalid value \"\" for sync.auto: expected on or off",
            ),
            (
                "sync.auto",
                &["on", "off"],
                "invalid value \"on off\" for sync.auto: expected on or off",
            ),
            (
                "session_line",
                &["loud"],
                "invalid value \"loud\" for session_line: expected on, problems or off",
            ),
            (
                "remote",
                &["https://me:hunter2@h/x", "y"],
                "invalid value for remote: expected the address of a git repository",
            ),
            (
                "redact.patterns",
                &["cust-*", "*@a?"],
                "invalid value \"*@a?\" in redact.patterns: expected three or more letters or digits",
            ),
            (
                "redact.patterns",
                &["Müller *"],
                "invalid value \"Müller *\" in redact.patterns: expected no `*` or `?` in a pattern with a blank",
            ),
            (
                "retention.trash_days",
                &["-1"],
                "invalid value \"-1\" for retention.trash_days: expected a non-negative integer",
            ),
            (
                "paused",
                &["true"],
                "invalid value \"true\" for paused: expected the value that `off` and `on` write",
            ),
            (
                "exclude",
                &["."],
                "invalid value \".\" in exclude: it names no folder",
            ),
        ] {
            assert_eq!(parsed(name, typed).unwrap_err(), problem);
        }
        assert_eq!(parsed("skip_tools", &[]), Ok(json!([])));
    }

    #[test]
    fn the_name_of_a_machine_is_one_plain_word() {
        // GIT-18
        let longest = "a".repeat(64);
        for good in ["laptop", "Desk-2.local", "_", "a.b", "7", &longest] {
            assert!(is_machine_name(good), "{good}");
        }
        let too_long = "a".repeat(65);
        for bad in [
            "",
            " ",
            "a b",
            "a/b",
            "a\\b",
            "..",
            ".",
            "-x",
            "a\nb",
            "ä",
            "a:b",
            "a\u{202e}",
            "$(x)",
            &too_long,
        ] {
            assert!(!is_machine_name(bad), "{bad:?}");
            assert!(parsed("machine_id", &[bad]).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn the_nearest_name() {
        for (typed, nearest_name) in [
            ("machine-id", Some("machine_id")),
            ("Remote", Some("remote")),
            ("remot", Some("remote")),
            ("records_days", Some("retention.records_days")),
            ("sync.alow_http", Some("sync.allow_http")),
            ("auto", Some("sync.auto")),
            ("excludes", Some("exclude")),
            ("pause", Some("paused")),
            ("", None),
            ("colour", None),
            ("retention", None),
        ] {
            assert_eq!(
                nearest(typed).map(|setting| setting.name),
                nearest_name,
                "{typed}"
            );
        }
    }

    #[test]
    fn other_keys_stay_in_their_order() {
        let mut keys: Map<String, Value> =
            serde_json::from_str(r#"{"z": 1, "sync": {"theirs": 2, "auto": false}, "a": 3}"#)
                .unwrap();
        let setting = find("sync.auto").unwrap();
        setting.put(&mut keys, None).unwrap();
        assert_eq!(
            Value::from(keys.clone()).to_string(),
            r#"{"z":1,"sync":{"theirs":2},"a":3}"#
        );
        setting.put(&mut keys, Some(json!(true))).unwrap();
        assert_eq!(
            Value::from(keys.clone()).to_string(),
            r#"{"z":1,"sync":{"theirs":2,"auto":true},"a":3}"#
        );
        keys.insert("sync".to_owned(), json!(5));
        assert_eq!(
            setting.put(&mut keys, None).unwrap_err().to_string(),
            "sync in config.json is 5, not an object"
        );
    }
}
