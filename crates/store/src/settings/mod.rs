//! Every setting, declared once: its name in `config.json`, what it takes, the variable over it, and
//! what it does.
//!
//! What a value means is decided in [`Config`] alone: a default is what an empty file gives, and a
//! value is good when the file that holds it gives no complaint. Variables are named here for people;
//! whoever reads the environment is elsewhere.

pub mod config;
pub mod exclude;

use serde_json::{Map, Value};

use crate::settings::config::{Config, PROVIDERS, Secret, SessionLine};

/// A setting.
#[derive(Debug)]
pub struct Setting {
    /// The key in `config.json`; a dot leads into an object.
    pub name: &'static str,
    /// What it takes.
    pub kind: Kind,
    /// The variable of the environment that goes over the file.
    pub variable: Option<&'static str>,
    /// What it does, one sentence.
    pub meaning: &'static str,
    value: fn(&Config) -> Value,
}

/// What a setting takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// The name of a machine; see [`is_machine_name`].
    MachineName,
    /// The address of a git repository.
    Address,
    /// The address of a server.
    Server,
    /// One text.
    Text,
    /// One text that is never shown as a whole.
    Secret,
    /// Yes or no.
    Switch,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number from 0 on.
    Number,
    /// Any number of texts.
    Texts,
    /// What `pause` and `resume` change, and nobody else: they know what else has to be kept in mind.
    Paused,
}

/// The setting that is always in the default store: it decides which store is used.
pub const TRUSTED_VARIABLES: &str = "trusted_variables";

/// Every setting, in the order in which they are shown.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "machine_id",
        kind: Kind::MachineName,
        variable: Some("ANAMNESIS_MACHINE_ID"),
        meaning: "The name of this machine in notes; the host name without it.",
        value: |config| config.machine_id.clone().into(),
    },
    Setting {
        name: "remote",
        kind: Kind::Address,
        variable: Some("ANAMNESIS_GIT_REMOTE"),
        meaning: "The git repository of yours that joins your machines.",
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
        meaning: "Whether a remote may be reached unencrypted; on this machine itself it may be.",
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
        meaning: "Whether your machines tell each other which notes helped: ids and counts, no text.",
        value: |config| config.learn.sync.into(),
    },
    Setting {
        name: "learn.links",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether notes that are used together bring each other up.",
        value: |config| config.learn.links.into(),
    },
    Setting {
        name: "recall.prompt",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether notes that fit come with your prompts.",
        value: |config| config.recall.prompt.into(),
    },
    Setting {
        name: "recall.agent",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether notes that fit come with the task of a subagent.",
        value: |config| config.recall.agent.into(),
    },
    Setting {
        name: "recall.tool",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether warnings come when a tool is about to run.",
        value: |config| config.recall.tool.into(),
    },
    Setting {
        name: "recall.failure",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether what mended a failure before comes when a tool fails.",
        value: |config| config.recall.failure.into(),
    },
    Setting {
        name: "recall.wide",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether notes that fit less well come, too; more of them will be beside the point.",
        value: |config| config.recall.wide.into(),
    },
    Setting {
        name: "recall.notes",
        kind: Kind::Number,
        variable: None,
        meaning: "How many notes come with a prompt at most, besides one that a link brings.",
        value: |config| config.recall.notes.into(),
    },
    Setting {
        name: "recall.tokens",
        kind: Kind::Number,
        variable: None,
        meaning: "How many tokens the notes of a prompt may cost.",
        value: |config| config.recall.tokens.into(),
    },
    Setting {
        name: "recall.prompt_line",
        kind: Kind::Switch,
        variable: None,
        meaning: "Whether a line on your screen says what came with a prompt.",
        value: |config| config.recall.prompt_line.into(),
    },
    Setting {
        name: "reflection.provider",
        kind: Kind::Choice(PROVIDERS),
        variable: Some("ANAMNESIS_REFLECTION_PROVIDER"),
        meaning: "Whose model sums things up; `heuristic` asks none, `claude` runs Claude Code.",
        value: |config| config.reflection.provider.into(),
    },
    Setting {
        name: "reflection.model",
        kind: Kind::Text,
        variable: Some("ANAMNESIS_REFLECTION_MODEL"),
        meaning: "The model's name. Provider, model and base URL together switch it on.",
        value: |config| config.reflection.model.clone().into(),
    },
    Setting {
        name: "reflection.base_url",
        kind: Kind::Server,
        variable: Some("ANAMNESIS_REFLECTION_BASE_URL"),
        meaning: "Where the model is, such as `https://api.openai.com/v1`; `claude` needs none.",
        value: |config| config.reflection.base_url.clone().into(),
    },
    Setting {
        name: "reflection.api_key",
        kind: Kind::Secret,
        variable: Some("ANAMNESIS_REFLECTION_API_KEY"),
        meaning: "The key that pays; only its first three and last two characters are shown.",
        value: |config| {
            let key = config.reflection.api_key.as_ref();
            key.map(Secret::reveal).into()
        },
    },
    Setting {
        name: "reflection.timeout",
        kind: Kind::Number,
        variable: Some("ANAMNESIS_REFLECTION_TIMEOUT"),
        meaning: "Seconds that an answer may take.",
        value: |config| config.reflection.timeout.into(),
    },
    Setting {
        name: "reflection.max_tokens",
        kind: Kind::Number,
        variable: Some("ANAMNESIS_REFLECTION_MAX_TOKENS"),
        meaning: "Tokens that are sent at once; of a longer text the middle is left out.",
        value: |config| config.reflection.max_tokens.into(),
    },
    Setting {
        name: "reflection.calls_per_day",
        kind: Kind::Number,
        variable: None,
        meaning: "How often the model may be asked in the background, each day.",
        value: |config| config.reflection.calls_per_day.into(),
    },
    Setting {
        name: "reflection.tokens_per_day",
        kind: Kind::Number,
        variable: None,
        meaning: "How many tokens that may cost, each day.",
        value: |config| config.reflection.tokens_per_day.into(),
    },
    Setting {
        name: "reflection.auto",
        kind: Kind::Switch,
        variable: Some("ANAMNESIS_REFLECT_AUTO"),
        meaning: "Whether a project is reflected on by itself, once a day, when enough sessions wait.",
        value: |config| config.reflection.auto.into(),
    },
    Setting {
        name: "review",
        kind: Kind::Choice(&["off", "proposals"]),
        variable: None,
        meaning: "Whether what Claude or a model writes is used at once, or waits for your approval.",
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
        meaning: "Where nothing is recorded and nothing given; `pause` and `resume` change it.",
        value: |config| config.paused.to_value().into(),
    },
    Setting {
        name: "exclude",
        kind: Kind::Texts,
        variable: None,
        meaning: "Folders in which nothing is recorded and nothing given.",
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
        meaning: "Variables that name a store, a remote, a model, an address or a key, and count in sessions, too; always in `~/.anamnesis/config.json`.",
        value: |config| config.trusted_variables.clone().into(),
    },
    Setting {
        name: "retention.events_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which tool events and ends of turns are kept; 0 is for ever.",
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
        meaning: "Days for which background jobs that are done are kept.",
        value: |config| config.retention.jobs_done_days.into(),
    },
    Setting {
        name: "retention.jobs_failed_days",
        kind: Kind::Number,
        variable: None,
        meaning: "Days for which background jobs that failed are kept.",
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
        meaning: "Days for which records that could not be read, and a damaged journal.db, are kept.",
        value: |config| config.retention.spool_days.into(),
    },
    Setting {
        name: "retention.ceiling_mib",
        kind: Kind::Number,
        variable: None,
        meaning: "What the records of this machine may take, in MiB; 0 is no limit.",
        value: |config| config.retention.ceiling_mib.into(),
    },
];

/// Returns the setting of that name.
pub fn find(name: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.name == name)
}

/// Returns the setting whose name is most like this one, if one is like it at all.
pub fn nearest(name: &str) -> Option<&'static Setting> {
    let name = name.to_lowercase().replace('-', "_");
    let distance = |setting: &Setting| {
        // The part after the dot may be all that somebody remembers.
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

/// How many letters have to be put in, taken out or replaced to make one word the other.
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

/// Tells whether a text can be the name of a machine: 1 to 64 letters, digits, `.`, `_` and `-` of
/// ASCII, not beginning with a dash. It stands in notes, in the names of files and in commits.
pub fn is_machine_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && !text.starts_with('-')
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
        // `.` and `..` are folders.
        && !text.bytes().all(|byte| byte == b'.')
}

impl Kind {
    /// What is taken, for people.
    pub fn expected(self) -> String {
        match self {
            Self::MachineName => "1 to 64 letters, digits, `.`, `_` or `-`".to_owned(),
            Self::Address => "the address of a git repository".to_owned(),
            Self::Server => "an address that begins with http:// or https://".to_owned(),
            Self::Text => "a text".to_owned(),
            Self::Secret => "a key".to_owned(),
            Self::Switch => "on or off".to_owned(),
            Self::Choice(words) => words.join(", "),
            Self::Number => "a whole number from 0 on".to_owned(),
            Self::Texts => "any number of texts".to_owned(),
            Self::Paused => "what `pause` and `resume` make of it".to_owned(),
        }
    }
}

impl Setting {
    /// Returns what holds where the settings are these.
    pub fn value(&self, config: &Config) -> Value {
        (self.value)(config)
    }

    /// Makes the value that was typed as these words.
    ///
    /// # Errors
    /// When the setting takes something else; the text says what.
    pub fn parse(&self, words: &[String]) -> Result<Value, String> {
        let wrong = || {
            let taken = format!("{} takes {}", self.name, self.kind.expected());
            Err(match self.kind {
                // What was typed may hold a password.
                Kind::Address | Kind::Server | Kind::Secret => taken,
                _ => format!("{taken}, not \"{}\"", words.join(" ")),
            })
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

    /// Returns what the keys of a file say of it.
    pub fn written<'a>(&self, keys: &'a Map<String, Value>) -> Option<&'a Value> {
        match self.name.split_once('.') {
            Some((object, key)) => keys.get(object)?.get(key),
            None => keys.get(self.name),
        }
    }

    /// Puts a value into the keys of a file, or takes what is there out.
    ///
    /// # Errors
    /// When what should be an object is something else.
    pub fn put(&self, keys: &mut Map<String, Value>, value: Option<Value>) -> Result<(), String> {
        let Some((name, key)) = self.name.split_once('.') else {
            match value {
                Some(value) => drop(keys.insert(self.name.to_owned(), value)),
                // The other removal moves the last key to the place of this one.
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
        // Each setting takes another value than its default, and gives that one back.
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
                "sync.auto takes on or off, not \"maybe\"",
            ),
            ("sync.auto", &[], "sync.auto takes on or off, not \"\""),
            (
                "sync.auto",
                &["on", "off"],
                "sync.auto takes on or off, not \"on off\"",
            ),
            (
                "session_line",
                &["loud"],
                "session_line takes on, problems, off, not \"loud\"",
            ),
            (
                "remote",
                &["https://me:hunter2@h/x", "y"],
                "remote takes the address of a git repository",
            ),
            (
                "retention.trash_days",
                &["-1"],
                "retention.trash_days takes a whole number from 0 on, not \"-1\"",
            ),
            (
                "paused",
                &["true"],
                "paused takes what `pause` and `resume` make of it, not \"true\"",
            ),
            ("exclude", &["."], "exclude holds \".\", which is no folder"),
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
