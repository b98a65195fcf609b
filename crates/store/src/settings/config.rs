//! This machine's settings in `config.json`, written by commands and by hand.
//!
//! Unknown keys are kept. An invalid setting is reported and ignored. A setting that restricts
//! recording fails closed: while it is invalid, nothing is recorded.

use std::{collections::BTreeMap, fmt, io, path::PathBuf, time::Duration};

use anamnesis_note::agent_policy::Review;
use anamnesis_text::glob;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};

use crate::fs::{
    file,
    home::{self, Home},
    lock::{self, Subject},
};

pub use super::declaration::{Config, Learn, Recall, Reflection, Retention, Sync};
use super::{SETTINGS, Setting};

/// The maximum size of the file, in bytes.
const MAX_LENGTH: usize = 1024 * 1024;

/// How long a change waits for another one. A change writes one small file.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Tools that tell nothing about the work, or whose work other events show.
pub(super) const SKIPPED_TOOLS: [&str; 4] = [
    "ListMcpResourcesTool",
    "Skill",
    "SlashCommand",
    "ToolSearch",
];

/// When the person sees a line at the start of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionLine {
    /// Whenever there is something to say.
    #[default]
    On,
    /// For problems only.
    Problems,
    /// Never.
    Off,
}

/// The extent of recording in sessions without a person at the terminal, such as scheduled ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Headless {
    /// The same as of any session.
    #[default]
    On,
    /// The prompts and answers only.
    Summary,
    /// Nothing; nothing is injected, either.
    Off,
}

/// The searches that compare meanings, if there is an embedding model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Semantic {
    /// Nowhere.
    Off,
    /// In searches of people and tools.
    #[default]
    Search,
    /// In searches, and with each prompt.
    Prompt,
}

/// The projects for which nothing is recorded or injected until a person resumes them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(from = "Vec<Value>", into = "Option<Value>")]
pub struct Paused {
    /// Whether everything is paused.
    pub everywhere: bool,
    /// The keys of paused projects, as written.
    pub projects: Vec<String>,
}

impl From<Vec<Value>> for Paused {
    /// Reads the items of the list; what is neither a boolean nor a string is left out.
    fn from(items: Vec<Value>) -> Self {
        let mut paused = Self::default();
        for item in items {
            match item {
                Value::Bool(is_paused) => paused.everywhere |= is_paused,
                Value::String(project) => paused.projects.push(project),
                _ => {}
            }
        }
        paused
    }
}

impl From<Paused> for Option<Value> {
    fn from(paused: Paused) -> Self {
        paused.to_value()
    }
}

impl Paused {
    /// Returns whether a project is paused by its key, ignoring case.
    pub fn names(&self, project: &str) -> bool {
        let project = project.to_lowercase();
        self.projects
            .iter()
            .any(|paused| paused.to_lowercase() == project)
    }

    /// Removes a project, ignoring case.
    pub fn forget(&mut self, project: &str) {
        let project = project.to_lowercase();
        self.projects
            .retain(|paused| paused.to_lowercase() != project);
    }

    /// Returns the value for `paused`; none if nothing is paused.
    pub fn to_value(&self) -> Option<Value> {
        let projects = self.projects.iter().cloned().map(Value::String);
        match (self.everywhere, self.projects.is_empty()) {
            (false, true) => None,
            (true, true) => Some(Value::Bool(true)),
            (everywhere, false) => {
                let everywhere = everywhere.then_some(Value::Bool(true));
                Some(everywhere.into_iter().chain(projects).collect())
            }
        }
    }
}

/// A string that is never shown in full. `config.json` has the full text.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Trims a text; none if nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// Returns the full text, for requests.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Returns a form for display: of a long text the first three and last two characters.
    pub fn shown(&self) -> String {
        let characters: Vec<char> = self.0.chars().collect();
        match (characters.first_chunk::<3>(), characters.last_chunk::<2>()) {
            (Some(first), Some(last)) if characters.len() >= 5 + MIN_HIDDEN => {
                let text = |part: &[char]| part.iter().collect::<String>();
                format!("{}…{}", text(first), text(last))
            }
            _ => "…".to_owned(),
        }
    }
}

/// The minimum number of hidden characters.
const MIN_HIDDEN: usize = 7;

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// The settings cannot be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is invalid and is not overwritten.
    #[error("{0}; fix the file first")]
    Broken(String),
    /// Another process holds the lock.
    #[error("config.json is being changed by another process")]
    Locked,
    /// The store's folder cannot be used.
    #[error(transparent)]
    Home(#[from] home::Error),
    /// The file system refused.
    #[error("cannot use {path}: {source}")]
    Io {
        /// The path.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
}

impl Config {
    /// Reads the settings of a store.
    pub fn load(home: &Home) -> Self {
        match read(home) {
            Ok((keys, _)) => Self::from_keys(&keys),
            Err(problem) => Self {
                is_unclear: true,
                problem: Some(problem),
                ..Self::default()
            },
        }
    }

    /// Changes the settings under a lock.
    ///
    /// `change` gets all keys of the file in order; remove one with `shift_remove` to keep the order.
    /// Unchanged values keep their exact text. If nothing changes, nothing is written. The file's
    /// mode is 0600.
    ///
    /// # Errors
    /// The old file is kept if it is not a JSON object or a regular file, if another process holds
    /// the lock, or if the write fails.
    pub fn update(home: &Home, change: impl FnOnce(&mut Map<String, Value>)) -> Result<(), Error> {
        let path = home.config();
        let failed = |source| Error::Io {
            path: path.clone(),
            source,
        };
        home.create()?;
        let _lock = lock::acquire(home, Subject::Config, TIMEOUT)
            .map_err(failed)?
            .ok_or(Error::Locked)?;
        let (before, bytes) = read(home).map_err(Error::Broken)?;
        let mut keys = before.clone();
        change(&mut keys);
        if keys != before {
            let text = rewritten(&keys, &before, &bytes).map_err(|error| failed(error.into()))?;
            file::write_atomic(&path, text.as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// Changes `paused` as [`Config::update`] does. Returns the previous value.
    ///
    /// # Errors
    /// As [`Config::update`], and [`Error::Broken`] if the current value is invalid.
    pub fn change_paused(home: &Home, change: impl FnOnce(&mut Paused)) -> Result<Paused, Error> {
        let mut found = Self::default();
        Self::update(home, |keys| {
            found = Self::from_keys(keys);
            if found.is_unclear {
                return;
            }
            let mut paused = found.paused.clone();
            change(&mut paused);
            if paused == found.paused {
                return;
            }
            match paused.to_value() {
                Some(value) => keys.insert("paused".to_owned(), value),
                // The other removal moves the last key to the place of this one.
                None => keys.shift_remove("paused"),
            };
        })?;
        match found.problem {
            Some(problem) if found.is_unclear => Err(Error::Broken(problem)),
            _ => Ok(found.paused),
        }
    }

    /// Returns whether a tool is not recorded. `Agent` and `Task` are the same tool.
    pub fn skips(&self, tool: &str) -> bool {
        let names: &[&str] = match tool {
            "Agent" | "Task" => &["Agent", "Task"],
            _ => &[tool],
        };
        self.skip_tools
            .iter()
            .any(|pattern| names.iter().any(|name| glob::matches(pattern, name)))
    }

    /// Returns the keys of the file as written.
    pub fn keys(home: &Home) -> Result<Map<String, Value>, Error> {
        let (keys, _) = read(home).map_err(Error::Broken)?;
        Ok(keys)
    }

    /// Interprets the keys of the file.
    pub fn from_keys(keys: &Map<String, Value>) -> Self {
        let mut config = Self::default();
        let mut problems = Vec::new();
        for setting in SETTINGS {
            if let Some(problem) = not_an_object(setting, keys) {
                config.is_unclear |= setting.kind.restricts_recording();
                if !problems.contains(&problem) {
                    problems.push(problem);
                }
                continue;
            }
            let Some(value) = setting.written(keys) else {
                continue;
            };
            let valid_so_far = problems.len();
            if let Some(value) = setting.read(value, &mut problems) {
                setting.set(&mut config, value);
            }
            if problems.len() > valid_so_far {
                config.is_unclear |= setting.kind.restricts_recording();
                // The person wants some review.
                if setting.name == "review" {
                    config.review = Review::Proposals;
                }
            }
        }
        report_misspelled(keys, &mut problems);
        config.problem =
            (!problems.is_empty()).then(|| format!("config.json: {}", problems.join("; ")));
        config
    }
}

/// Returns the problem if the object of a setting is something else.
fn not_an_object(setting: &Setting, keys: &Map<String, Value>) -> Option<String> {
    let (group, _) = setting.name.split_once('.')?;
    match keys.get(group)? {
        Value::Object(_) | Value::Null => None,
        other => Some(format!(
            "invalid value {other} for {group}: expected an object"
        )),
    }
}

/// Reports keys that look like a misspelled `exclude` or `paused`: a folder that a person believes to
/// be excluded must not be recorded silently.
fn report_misspelled(keys: &Map<String, Value>, problems: &mut Vec<String>) {
    for key in keys.keys() {
        let lower = key.to_lowercase();
        for known in ["exclude", "paused"] {
            if key != known && lower.starts_with(&known[..5]) {
                problems.push(format!("unknown setting {key:?}: did you mean {known:?}?"));
            }
        }
    }
}

/// Returns the file's new text. Unchanged values keep their exact text.
fn rewritten(
    keys: &Map<String, Value>,
    before: &Map<String, Value>,
    bytes: &[u8],
) -> serde_json::Result<String> {
    let written: BTreeMap<String, &RawValue> = serde_json::from_slice(bytes)?;
    let mut members = Vec::new();
    for (key, value) in keys {
        let text = match written.get(key) {
            Some(written) if before.get(key) == Some(value) => written.get().to_owned(),
            _ => serde_json::to_string_pretty(value)?.replace('\n', "\n  "),
        };
        members.push(format!("  {}: {text}", Value::from(key.as_str())));
    }
    Ok(match members.join(",\n") {
        members if members.is_empty() => "{}\n".to_owned(),
        members => format!("{{\n{members}\n}}\n"),
    })
}

/// Reads the file: its keys and its bytes. A missing file has no keys.
///
/// Any other file that is not a JSON object is an error: what is left of a damaged file does not show
/// which settings are lost.
fn read(home: &Home) -> Result<(Map<String, Value>, Vec<u8>), String> {
    let (mut bytes, _, is_whole) = match file::read_head(&home.config(), MAX_LENGTH) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Map::new(), b"{}".to_vec()));
        }
        Err(error) => return Err(format!("config.json: {error}")),
    };
    if !is_whole {
        return Err(format!("config.json: over {MAX_LENGTH} bytes"));
    }
    // Editors on Windows write a byte order mark.
    if bytes.starts_with(b"\xef\xbb\xbf") {
        bytes.drain(..3);
    }
    match serde_json::from_slice(&bytes) {
        Ok(keys) => Ok((keys, bytes)),
        Err(error) => Err(format!("config.json is not a JSON object: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Makes a store with this `config.json`.
    fn store(text: &str) -> (tempfile::TempDir, Home) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::fs::write(home.config(), text).unwrap();
        (folder, home)
    }

    fn load(text: &str) -> Config {
        Config::load(&store(text).1)
    }

    fn texts(list: &[&str]) -> Vec<String> {
        list.iter().map(|&text| text.to_owned()).collect()
    }

    #[test]
    fn settings_are_read() {
        let config = load(
            r#"{"machine_id": " laptop ", "session_line": "problems", "reflection": {"model": "m"},
                "paused": ["github.com/acme/shop"], "exclude": ["~/secret", "", "/srv/*/keys"],
                "skip_tools": ["mcp__*"], "retention": {"records_days": 7, "trash_days": 0},
                "remote": " git@git.home:me/memory.git\n", "learn": {"suggest": "off"},
                "sync": {"auto": false, "allow_http": "on"}}"#,
        );
        assert_eq!(config.problem, None);
        assert!(!config.is_unclear);
        assert_eq!(config.machine_id.as_deref(), Some("laptop"));
        assert_eq!(config.remote.as_deref(), Some("git@git.home:me/memory.git"));
        let expected = Sync {
            auto: false,
            allow_http: true,
        };
        assert_eq!(config.sync, expected);
        assert!(!config.learn.suggest);
        assert_eq!(config.session_line, SessionLine::Problems);
        assert_eq!(config.exclude, ["~/secret", "/srv/*/keys"]);
        assert_eq!(config.skip_tools, ["mcp__*"]);
        let expected = Retention {
            records_days: 7,
            trash_days: 0,
            ..Retention::default()
        };
        assert_eq!(config.retention, expected);
    }

    #[test]
    fn a_model_is_named_whole_and_its_key_shown_in_part() {
        let config = load(
            r#"{"reflection": {"provider": "OpenAI", "model": " m ", "base_url": "https://h/v1",
                "api_key": "abcdefghijkl", "timeout": 60, "tokens_per_day": 0}}"#,
        );
        assert_eq!(config.problem, None);
        let expected = Reflection {
            provider: "openai".to_owned(),
            model: Some("m".to_owned()),
            base_url: Some("https://h/v1".to_owned()),
            api_key: Secret::new("abcdefghijkl"),
            timeout: 60,
            tokens_per_day: 0,
            ..Reflection::default()
        };
        assert_eq!(config.reflection, expected);
        assert!(!format!("{config:?}").contains("defghij"));
        for (text, shown) in [("abcdefghijkl", "abc…kl"), ("abcdefghijk", "…"), ("a", "…")] {
            assert_eq!(Secret::new(text).unwrap().shown(), shown);
        }
        assert_eq!(Secret::new(" "), None);
        let config = load(
            r#"{"reflection": {"provider": "gemini", "base_url": "api.h/v1", "api_key": ["k-e-y"]}}"#,
        );
        let problem = config.problem.unwrap_or_default();
        assert!(
            problem.contains(
                "invalid value \"gemini\" for reflection.provider: expected heuristic, openai, deepseek, local or claude"
            ),
            "{problem}"
        );
        assert!(
            problem.contains(
                "invalid value for reflection.base_url: expected an address that begins with"
            ),
            "{problem}"
        );
        assert!(
            problem.contains("invalid value for reflection.api_key: expected a key"),
            "{problem}"
        );
        assert!(!problem.contains("k-e-y"), "{problem}");
        assert_eq!(config.reflection, Reflection::default());
    }

    #[test]
    fn a_broken_file_counts_as_empty_and_is_reported() {
        for (text, problem) in [
            ("{", "config.json is not a JSON object"),
            ("[]", "config.json is not a JSON object"),
            (
                r#"{"machine_id": 3}"#,
                "invalid value 3 for machine_id: expected 1 to 64 letters",
            ),
            (
                r#"{"remote": ["https://me:hunter2@h/x"], "sync": {"auto": 1}, "learn": 2}"#,
                "config.json: invalid value for remote: expected the address of a git repository; \
                 invalid value 1 for sync.auto: expected on or off; \
                 invalid value 2 for learn: expected an object",
            ),
            (
                r#"{"session_line": "loud"}"#,
                "invalid value \"loud\" for session_line",
            ),
            (r#"{"review": "some"}"#, "invalid value \"some\" for review"),
            (
                r#"{"reflection": {"auto": "yes"}}"#,
                "invalid value \"yes\" for reflection.auto",
            ),
            (
                r#"{"retention": 30}"#,
                "config.json: invalid value 30 for retention: expected an object",
            ),
            (
                r#"{"retention": {"records_days": -1, "trash_days": "x"}}"#,
                "invalid value -1 for retention.records_days: expected a non-negative integer; \
                 invalid value \"x\" for retention.trash_days: expected a non-negative integer",
            ),
            (
                r#"{"skip_tools": [3]}"#,
                "config.json: invalid value 3 in skip_tools: expected a string",
            ),
            (
                r#"{"Excludes": ["/a"]}"#,
                "unknown setting \"Excludes\": did you mean \"exclude\"?",
            ),
        ] {
            let config = load(text);
            assert_eq!(
                (config.machine_id, config.session_line, config.retention),
                (None, SessionLine::On, Retention::default())
            );
            let found = config.problem.unwrap_or_default();
            assert!(found.contains(problem), "{text}: {found}");
            assert_eq!(config.is_unclear, found.contains("not a JSON object"));
        }
    }

    #[test]
    fn no_file_is_no_problem() {
        let folder = tempfile::tempdir().unwrap();
        let config = Config::load(&Home::new(folder.path()));
        assert_eq!((config.problem, config.is_unclear), (None, false));
    }

    #[test]
    fn what_is_paused() {
        for (value, everywhere, projects) in [
            ("true", true, &[][..]),
            ("false", false, &[]),
            ("null", false, &[]),
            ("[]", false, &[]),
            ("[true]", true, &[]),
            (r#""a/b""#, false, &["a/b"]),
            (r#"["a/b", "c"]"#, false, &["a/b", "c"]),
            (r#"[true, "a/b"]"#, true, &["a/b"]),
        ] {
            let config = load(&format!(r#"{{"paused": {value}}}"#));
            assert_eq!(
                (config.problem, config.is_unclear),
                (None, false),
                "{value}"
            );
            let paused = Paused {
                everywhere,
                projects: texts(projects),
            };
            assert_eq!(config.paused, paused, "{value}");
            // The written value reads the same.
            let written = json!({ "paused": paused.to_value() }).to_string();
            assert_eq!(load(&written).paused, paused, "{value}: {written}");
        }
        let paused = load(r#"{"paused": "Acme/Shop"}"#).paused;
        assert!(paused.names("acme/shop") && !paused.names("acme/shop2"));
    }

    #[test]
    fn a_setting_that_keeps_things_from_being_recorded_fails_closed() {
        // CAP-14
        for (text, problem) in [
            (
                r#"{"paused": 1}"#,
                "invalid value 1 in paused: expected true or a project key",
            ),
            (r#"{"paused": ["a", {}]}"#, "invalid value {} in paused"),
            (
                r#"{"exclude": {"a": 1}}"#,
                "invalid value {\"a\":1} in exclude: expected a string",
            ),
            (
                r#"{"exclude": ["/a", 3]}"#,
                "invalid value 3 in exclude: expected a string",
            ),
            (
                r#"{"exclude": ["."]}"#,
                "invalid value \".\" in exclude: it names no folder",
            ),
            (
                r#"{"exclude": ["~/secret",]}"#,
                "config.json is not a JSON object",
            ),
            (r#"{"paused": tru"#, "config.json is not a JSON object"),
        ] {
            let config = load(text);
            assert!(config.is_unclear, "{text}");
            let found = config.problem.unwrap_or_default();
            assert!(found.contains(problem), "{text}: {found}");
        }
        for setting in [
            r#""exclude": ["~/clients"]"#,
            r#""paused": true"#,
            r#""recording": {"only": ["~/work"], "headless": "off"}"#,
            r#""redact": {"patterns": ["CUST-????"]}"#,
        ] {
            let whole = format!("{{{setting}}}");
            assert!(!load(&whole).is_unclear, "{setting}");
            let marked = load(&format!("\u{feff}{whole}"));
            assert_eq!((marked.problem, marked.is_unclear), (None, false));
            let (head, tail) = whole.split_at(whole.len() / 2);
            for damaged in [
                head.to_owned(),
                format!("{head}{}", "\0".repeat(tail.len())),
                "\0".repeat(whole.len()),
                format!("{{{setting},}}"),
                format!("// mine\n{whole}"),
                format!("[{whole}]"),
            ] {
                assert!(load(&damaged).is_unclear, "{damaged}");
            }
        }
        for text in [
            "",
            "  \n",
            "null",
            "[]",
            "true",
            r#"{"recording": "off"}"#,
            r#"{"redact": {"patterns": 3}}"#,
        ] {
            assert!(load(text).is_unclear, "{text:?}");
        }
        // A string is a list with one item.
        let config = load(r#"{"exclude": "~/secret"}"#);
        assert_eq!((config.problem, config.is_unclear), (None, false));
        assert_eq!(config.exclude, ["~/secret"]);
        // A file that cannot be read in full fails closed.
        let (_folder, home) = store("{}");
        std::fs::remove_file(home.config()).unwrap();
        std::fs::create_dir(home.config()).unwrap();
        assert!(Config::load(&home).is_unclear);
        let long = format!("{{\"a\": \"{}\"}}", "x".repeat(MAX_LENGTH));
        assert!(load(&long).is_unclear);
    }

    #[test]
    fn tools_that_are_skipped() {
        let default = Config::default();
        let own = load(r#"{"skip_tools": ["mcp__*", "Task", "Read?"]}"#);
        let none = load(r#"{"skip_tools": []}"#);
        let unusable = load(r#"{"skip_tools": [3]}"#);
        for (tool, by_default, by_own) in [
            ("ListMcpResourcesTool", true, false),
            ("SlashCommand", true, false),
            ("Skill", true, false),
            ("TodoWrite", false, false),
            ("AskUserQuestion", false, false),
            ("ToolSearch", true, false),
            ("toolsearch", false, false),
            ("Bash", false, false),
            ("mcp__github__list", false, true),
            ("Agent", false, true),
            ("Task", false, true),
            ("TaskList", false, false),
            ("Read", false, false),
            ("Reads", false, true),
            ("", false, false),
        ] {
            assert_eq!(default.skips(tool), by_default, "{tool}");
            assert_eq!(own.skips(tool), by_own, "{tool}");
            assert!(!none.skips(tool), "{tool}");
            assert_eq!(unusable.skips(tool), by_default, "{tool}");
        }
    }

    #[test]
    fn a_change_keeps_what_is_not_its_own() {
        let (_folder, home) = store(
            r#"{"b": {"y": 1e2,   "x":[2]}, "paused": true, "a" : "\u00e9\/", "c": 1234567890123456789012}"#,
        );
        let read = || std::fs::read_to_string(home.config()).unwrap();
        Config::update(&home, |keys| {
            keys.insert("paused".to_owned(), json!(["shop", "cart"]));
        })
        .unwrap();
        assert_eq!(
            read(),
            r#"{
  "b": {"y": 1e2,   "x":[2]},
  "paused": [
    "shop",
    "cart"
  ],
  "a": "\u00e9\/",
  "c": 1234567890123456789012
}
"#
        );
        let before = Config::change_paused(&home, |paused| paused.projects.clear()).unwrap();
        assert_eq!(before.projects, ["shop", "cart"]);
        assert_eq!(
            read(),
            r#"{
  "b": {"y": 1e2,   "x":[2]},
  "a": "\u00e9\/",
  "c": 1234567890123456789012
}
"#
        );
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;

            let mode = std::fs::metadata(home.config())
                .unwrap()
                .permissions()
                .mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        // Without a change nothing is written.
        std::fs::write(home.config(), "{ }").unwrap();
        Config::update(&home, |_| {}).unwrap();
        assert_eq!(std::fs::read_to_string(home.config()).unwrap(), "{ }");
    }

    #[test]
    fn a_broken_file_is_not_written_over() {
        let (_folder, home) = store("{\"exclude\": [\"/a\",]}");
        let error = Config::update(&home, Map::clear).unwrap_err().to_string();
        assert!(
            error.starts_with("config.json is not a JSON object"),
            "{error}"
        );
        assert!(error.ends_with("; fix the file first"), "{error}");
        assert!(
            std::fs::read_to_string(home.config())
                .unwrap()
                .contains("/a")
        );
        // An invalid `paused` is not overwritten either.
        let text = r#"{"paused": {"shop": true}}"#;
        let (_folder, home) = store(text);
        let error = Config::change_paused(&home, |paused| paused.everywhere = true);
        let error = error.unwrap_err().to_string();
        assert!(
            error.contains("invalid value {\"shop\":true} in paused"),
            "{error}"
        );
        assert_eq!(std::fs::read_to_string(home.config()).unwrap(), text);
    }

    #[test]
    fn changes_at_once_are_all_made() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path());
        std::thread::scope(|scope| {
            for number in 0..8 {
                let home = &home;
                scope.spawn(move || {
                    Config::update(home, |keys| {
                        keys.insert(format!("key{number}"), json!(number));
                    })
                    .unwrap();
                });
            }
        });
        let (keys, _) = read(&home).unwrap();
        assert_eq!(keys.len(), 8);
    }
}
