//! All settings: name in `config.json`, type, environment variable and description.
//!
//! Only [`Config`] interprets values: a default is what an empty file gives, and a value is valid if
//! [`Config`] reports no problem with it. Variables are named here for help texts; the binary reads
//! the environment.

pub mod config;
pub mod exclude;

use serde_json::{Map, Value};

use crate::settings::config::{Config, PROVIDERS, Secret, SessionLine};

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// The key in `config.json`; a dot separates an object and its member.
    pub name: &'static str,
    /// Its type.
    pub kind: Kind,
    /// The environment variable that overrides the file.
    pub variable: Option<&'static str>,
    /// The description, one sentence.
    pub meaning: &'static str,
    value: fn(&Config) -> Value,
}

/// The type of a setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A machine name; see [`is_machine_name`].
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
    /// A non-negative integer.
    Number,
    /// A list of strings.
    Texts,
    /// Changed only by `pause` and `resume`, which have side effects.
    Paused,
}

/// The setting that is always read from the default store, because it decides which store is used.
pub const TRUSTED_VARIABLES: &str = "trusted_variables";

/// All settings, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "machine_id",
        kind: Kind::MachineName,
        variable: Some("ANAMNESIS_MACHINE_ID"),
        meaning: "The name of this machine in notes; by default the host name.",
        value: |config| config.machine_id.clone().into(),
    },
    Setting {
        name: "remote",
        kind: Kind::Address,
        variable: Some("ANAMNESIS_GIT_REMOTE"),
        meaning: "The git repository that your machines sync with.",
        value: |config| config.remote.clone().into(),
    },
    Setting {
        name: "sync.auto",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether notes are synced in the background, when sessions start and end.",
        value: |config| config.sync.auto.into(),
    },
    Setting {
        name: "sync.allow_http",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether a remote may be reached over unencrypted HTTP; localhost always may.",
        value: |config| config.sync.allow_http.into(),
    },
    Setting {
        name: "import_native",
        kind: Kind::Switch,
        variable: Some("ANAMNESIS_IMPORT_NATIVE"),
        meaning: "Whether Claude Code's own memory is copied into notes.",
        value: |config| config.import_native.into(),
    },
    Setting {
        name: "learn.sync",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether your machines share which notes helped: ids and counts, no text.",
        value: |config| config.learn.sync.into(),
    },
    Setting {
        name: "learn.links",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether notes that are used together are recalled together.",
        value: |config| config.learn.links.into(),
    },
    Setting {
        name: "recall.prompt",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether matching notes are injected with your prompts.",
        value: |config| config.recall.prompt.into(),
    },
    Setting {
        name: "recall.agent",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether matching notes are injected with the task of a subagent.",
        value: |config| config.recall.agent.into(),
    },
    Setting {
        name: "recall.tool",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether warnings are injected before a tool call.",
        value: |config| config.recall.tool.into(),
    },
    Setting {
        name: "recall.failure",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether an earlier fix is injected when a tool fails.",
        value: |config| config.recall.failure.into(),
    },
    Setting {
        name: "recall.wide",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether weaker matches are injected too; more of them will be irrelevant.",
        value: |config| config.recall.wide.into(),
    },
    Setting {
        name: "recall.notes",
        kind: Kind::Number,
        variable: None,
        meaning: "The maximum number of notes per prompt, besides one linked note.",
        value: |config| config.recall.notes.into(),
    },
    Setting {
        name: "recall.tokens",
        kind: Kind::Number,
        variable: None,
        meaning: "The maximum number of tokens of the notes per prompt.",
        value: |config| config.recall.tokens.into(),
    },
    Setting {
        name: "recall.prompt_line",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether a line on your screen says what was injected with a prompt.",
        value: |config| config.recall.prompt_line.into(),
    },
    Setting {
        name: "reflection.provider",
        kind: Kind::Choice(PROVIDERS),
        variable: Some("ANAMNESIS_REFLECTION_PROVIDER"),
        meaning: "The provider of the model for summaries; `heuristic` uses none, `claude` runs Claude Code.",
        value: |config| config.reflection.provider.into(),
    },
    Setting {
        name: "reflection.model",
        kind: Kind::Text,
        variable: Some("ANAMNESIS_REFLECTION_MODEL"),
        meaning: "The model's name. Provider, model and base URL together enable it.",
        value: |config| config.reflection.model.clone().into(),
    },
    Setting {
        name: "reflection.base_url",
        kind: Kind::Server,
        variable: Some("ANAMNESIS_REFLECTION_BASE_URL"),
        meaning: "The URL of the model's API, such as `https://api.openai.com/v1`; `claude` needs none.",
        value: |config| config.reflection.base_url.clone().into(),
    },
    Setting {
        name: "reflection.api_key",
        kind: Kind::Secret,
        variable: Some("ANAMNESIS_REFLECTION_API_KEY"),
        meaning: "The API key; only its first three and last two characters are shown.",
        value: |config| {
            let key = config.reflection.api_key.as_ref();
            key.map(Secret::reveal).into()
        },
    },
    Setting {
        name: "reflection.timeout",
        kind: Kind::Number,
        variable: Some("ANAMNESIS_REFLECTION_TIMEOUT"),
        meaning: "The timeout of a request, in seconds.",
        value: |config| config.reflection.timeout.into(),
    },
    Setting {
        name: "reflection.max_tokens",
        kind: Kind::Number,
        variable: Some("ANAMNESIS_REFLECTION_MAX_TOKENS"),
        meaning: "The maximum number of tokens per request; the middle of a longer text is left out.",
        value: |config| config.reflection.max_tokens.into(),
    },
    Setting {
        name: "reflection.calls_per_day",
        kind: Kind::Number,
        variable: None,
        meaning: "The maximum number of background requests per day.",
        value: |config| config.reflection.calls_per_day.into(),
    },
    Setting {
        name: "reflection.tokens_per_day",
        kind: Kind::Number,
        variable: None,
        meaning: "The maximum number of background tokens per day.",
        value: |config| config.reflection.tokens_per_day.into(),
    },
    Setting {
        name: "reflection.auto",
        kind: Kind::Switch,
        variable: Some("ANAMNESIS_REFLECT_AUTO"),
        meaning: "Whether a project with enough pending sessions is reflected on automatically, once a day.",
        value: |config| config.reflection.auto.into(),
    },
    Setting {
        name: "review",
        kind: Kind::Choice(&["off", "proposals"]),
        variable: None,
        meaning: "Whether notes by Claude or a model are used at once (off) or need your approval (proposals).",
        value: |config| config.review.as_str().into(),
    },
    Setting {
        name: "session_line",
        kind: Kind::Choice(&["on", "problems", "off"]),
        variable: None,
        meaning: "When a session starts with one line on your screen.",
        value: |config| {
            Value::from(match config.session_line {
                SessionLine::On => "on",
                SessionLine::Problems => "problems",
                SessionLine::Off => "off",
            })
        },
    },
    Setting {
        name: "paused",
        kind: Kind::Paused,
        variable: None,
        meaning: "Where nothing is recorded or injected; `pause` and `resume` change it.",
        value: |config| config.paused.to_value().into(),
    },
    Setting {
        name: "exclude",
        kind: Kind::Texts,
        variable: None,
        meaning: "Folders in which nothing is recorded or injected.",
        value: |config| config.exclude.clone().into(),
    },
    Setting {
        name: "skip_tools",
        kind: Kind::Texts,
        variable: None,
        meaning: "Tools whose use is not recorded.",
        value: |config| config.skip_tools.clone().into(),
    },
    Setting {
        name: TRUSTED_VARIABLES,
        kind: Kind::Texts,
        variable: None,
        meaning: "Environment variables that sessions ignore unless they are listed here; always read from `~/.anamnesis/config.json`.",
        value: |config| config.trusted_variables.clone().into(),
    },
    Setting {
        name: "retention.events_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which tool events and turn ends are kept; 0 is for ever.",
        value: |config| config.retention.events_days.into(),
    },
    Setting {
        name: "retention.prompts_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which prompts are kept.",
        value: |config| config.retention.prompts_days.into(),
    },
    Setting {
        name: "retention.jobs_done_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which finished background jobs are kept.",
        value: |config| config.retention.jobs_done_days.into(),
    },
    Setting {
        name: "retention.jobs_failed_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which failed background jobs are kept.",
        value: |config| config.retention.jobs_failed_days.into(),
    },
    Setting {
        name: "retention.trash_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which texts of forgotten notes are kept.",
        value: |config| config.retention.trash_days.into(),
    },
    Setting {
        name: "retention.spool_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which unreadable records and a damaged journal.db are kept.",
        value: |config| config.retention.spool_days.into(),
    },
    Setting {
        name: "retention.ceiling_mib",
        kind: Kind::Number,
        variable: None,
        meaning: "The maximum size of this machine's records, in MiB; 0 is no limit.",
        value: |config| config.retention.ceiling_mib.into(),
    },
];

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
        distance(&name, setting.name).min(distance(&name, last))
    };
    SETTINGS
        .iter()
        .map(|setting| (distance(setting), setting))
        .min_by_key(|(distance, _)| *distance)
        .filter(|(distance, _)| *distance <= name.chars().count().div_ceil(3))
        .map(|(_, setting)| setting)
}

/// Returns the Levenshtein distance of two words.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.chars().count()).collect();
    for (number, left) in one.chars().enumerate() {
        let mut above_left = number;
        let mut left_of = number + 1;
        for (cell, right) in row.iter_mut().skip(1).zip(other.chars()) {
            let replaced = above_left + usize::from(left != right);
            above_left = *cell;
            *cell = replaced.min(above_left + 1).min(left_of + 1);
            left_of = *cell;
        }
        if let Some(first) = row.first_mut() {
            *first = number + 1;
        }
    }
    row.last().copied().unwrap_or(0)
}

/// Tells whether a text is a valid machine name: 1 to 64 ASCII letters, digits, `.`, `_` and `-`, not
/// beginning with a dash. It is used in notes, file names and commits.
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
            Self::Choice(words) => words.join(", "),
            Self::Number => "a non-negative integer".to_owned(),
            Self::Texts => "a list of strings".to_owned(),
            Self::Paused => "the value that `pause` and `resume` write".to_owned(),
        }
    }
}

impl Setting {
    /// Returns the value in these settings.
    pub fn value(&self, config: &Config) -> Value {
        (self.value)(config)
    }

    /// Parses typed words.
    ///
    /// # Errors
    /// A message that says what the setting accepts.
    pub fn parse(&self, words: &[String]) -> Result<Value, String> {
        let wrong = || {
            let value = match self.kind {
                // The typed text may contain a password.
                Kind::Address | Kind::Server | Kind::Secret => String::new(),
                _ => format!(" \"{}\"", words.join(" ")),
            };
            Err(format!(
                "invalid value{value} for {}: expected {}",
                self.name,
                self.kind.expected()
            ))
        };
        let one = match words {
            [word] => Some(word.trim()).filter(|word| !word.is_empty()),
            _ => None,
        };
        let value = match (self.kind, one) {
            (Kind::Texts, _) => Value::from(words),
            (Kind::MachineName, Some(word)) if is_machine_name(word) => Value::from(word),
            (Kind::Address | Kind::Server | Kind::Text | Kind::Secret, Some(word)) => {
                Value::from(word)
            }
            (Kind::Switch, Some("on" | "true" | "yes" | "1")) => Value::Bool(true),
            (Kind::Switch, Some("off" | "false" | "no" | "0")) => Value::Bool(false),
            (Kind::Choice(known), Some(word)) => {
                match known.iter().find(|known| word.eq_ignore_ascii_case(known)) {
                    Some(known) => Value::from(*known),
                    None => return wrong(),
                }
            }
            (Kind::Number, Some(word)) => match word.parse::<u32>() {
                Ok(number) => Value::from(number),
                Err(_) => return wrong(),
            },
            _ => return wrong(),
        };
        let mut keys = Map::new();
        self.put(&mut keys, Some(value.clone()))?;
        match Config::of(&keys).problem {
            Some(problem) => Err(problem.trim_start_matches("config.json: ").to_owned()),
            None => Ok(value),
        }
    }

    /// Returns its value in the keys of a file.
    pub fn written<'a>(&self, keys: &'a Map<String, Value>) -> Option<&'a Value> {
        match self.name.split_once('.') {
            Some((object, key)) => keys.get(object)?.get(key),
            None => keys.get(self.name),
        }
    }

    /// Sets or removes its value in the keys of a file.
    pub fn put(&self, keys: &mut Map<String, Value>, value: Option<Value>) -> Result<(), String> {
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
            return Err(format!("{name} in config.json is {object}, not an object"));
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
        find(name).unwrap().parse(&words(typed))
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
            let typed: &[&str] = match setting.kind {
                Kind::MachineName => &["desk-2"],
                Kind::Address => &["git@git.home:me/memory.git"],
                Kind::Server => &["https://model.home/v1"],
                Kind::Text => &["a-model"],
                Kind::Secret => &["a-key-of-nobody"],
                Kind::Switch if setting.value(&Config::default()) == json!(true) => &["off"],
                Kind::Switch => &["on"],
                Kind::Choice(words) => &words[1..2],
                Kind::Number => &["7"],
                Kind::Texts => &["/srv/a", "/srv/b c"],
                Kind::Paused => continue,
            };
            let value = setting.parse(&words(typed)).unwrap();
            let mut keys = Map::new();
            setting.put(&mut keys, Some(value.clone())).unwrap();
            let config = Config::of(&keys);
            assert_eq!(config.problem, None, "{}", setting.name);
            assert_eq!(setting.value(&config), value, "{}", setting.name);
            let default = setting.value(&Config::default());
            if setting.kind != Kind::Number || default != json!(7) {
                assert_ne!(value, default, "{}", setting.name);
            }
            assert_eq!(setting.written(&keys), Some(&value), "{}", setting.name);
            setting.put(&mut keys, None).unwrap();
            assert_eq!(keys, Map::new(), "{}", setting.name);
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
                "invalid value \"loud\" for session_line: expected on, problems, off",
            ),
            (
                "remote",
                &["https://me:hunter2@h/x", "y"],
                "invalid value for remote: expected the address of a git repository",
            ),
            (
                "retention.trash_days",
                &["-1"],
                "invalid value \"-1\" for retention.trash_days: expected a non-negative integer",
            ),
            (
                "paused",
                &["true"],
                "invalid value \"true\" for paused: expected the value that `pause` and `resume` write",
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
            ("events_days", Some("retention.events_days")),
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
    fn letters_between_two_words() {
        for (one, other, letters) in [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("kitten", "sitting", 3),
            ("flaw", "lawn", 2),
            ("same", "same", 0),
        ] {
            assert_eq!(distance(one, other), letters, "{one} {other}");
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
            setting.put(&mut keys, None).unwrap_err(),
            "sync in config.json is 5, not an object"
        );
    }
}
