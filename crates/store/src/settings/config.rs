//! This machine's settings in `config.json`, written by commands and by hand.
//!
//! Unknown keys are kept. An invalid setting is reported and ignored. A setting that restricts
//! recording fails closed: while it is invalid, nothing is recorded.

use std::{collections::BTreeMap, fmt, io, path::PathBuf, time::Duration};

use anamnesis_note::agent_policy::Review;
use anamnesis_text::glob;
use serde_json::{Map, Value, value::RawValue};

use crate::{
    fs::{
        file,
        home::{self, Home},
        lock::{self, Subject},
    },
    settings::exclude,
};

/// The maximum size of the file, in bytes.
const MAX_LENGTH: usize = 1024 * 1024;

/// How long a change waits for another one. A change writes one small file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tools that tell nothing about the work, or whose work other events show.
const SKIPPED_TOOLS: [&str; 6] = [
    "AskUserQuestion",
    "ListMcpResourcesTool",
    "Skill",
    "SlashCommand",
    "TodoWrite",
    "ToolSearch",
];

/// When the person sees a line at the start of a session.
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

/// Where nothing is recorded or injected until a person resumes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paused {
    /// Whether everything is paused.
    pub everywhere: bool,
    /// The keys of paused projects, as written.
    pub projects: Vec<String>,
}

impl Paused {
    /// Tells whether a project is paused by its key, ignoring case.
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

/// How long records are kept on this machine. 0 keeps them for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Tool events and turn ends, in days.
    pub events_days: u32,
    /// Prompts, in days.
    pub prompts_days: u32,
    /// Finished jobs, in days.
    pub jobs_done_days: u32,
    /// Failed jobs, in days.
    pub jobs_failed_days: u32,
    /// The trash, in days.
    pub trash_days: u32,
    /// Unreadable spool files, in days.
    pub spool_days: u32,
    /// The maximum size of the journal, in MiB.
    pub ceiling_mib: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self {
            events_days: 30,
            prompts_days: 30,
            jobs_done_days: 7,
            jobs_failed_days: 30,
            trash_days: 30,
            spool_days: 30,
            ceiling_mib: 200,
        }
    }
}

/// Settings of sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sync {
    /// Whether the deferred process syncs.
    pub auto: bool,
    /// Whether a remote may be reached over unencrypted HTTP.
    pub allow_http: bool,
}

impl Default for Sync {
    fn default() -> Self {
        Self {
            auto: true,
            allow_http: false,
        }
    }
}

/// Settings of learning from use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learn {
    /// Whether machines share their usage logs.
    pub sync: bool,
    /// Whether notes that are used together are recalled together.
    pub links: bool,
}

impl Default for Learn {
    fn default() -> Self {
        Self {
            sync: true,
            links: true,
        }
    }
}

/// Settings of automatic injection, besides the working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Recall {
    /// Whether notes are injected with a prompt.
    pub prompt: bool,
    /// Whether notes are injected with the task of a subagent.
    pub agent: bool,
    /// Whether warnings are injected before a tool call.
    pub tool: bool,
    /// Whether earlier fixes are injected when a tool call fails.
    pub failure: bool,
    /// Whether weaker matches are injected too.
    pub wide: bool,
    /// The maximum number of notes per prompt, not counting linked notes.
    pub notes: u32,
    /// The maximum number of their tokens.
    pub tokens: u32,
    /// Whether a line tells the person what was injected with a prompt.
    pub prompt_line: bool,
}

impl Default for Recall {
    fn default() -> Self {
        Self {
            prompt: true,
            agent: true,
            tool: true,
            failure: true,
            wide: false,
            notes: 3,
            tokens: 600,
            prompt_line: false,
        }
    }
}

/// A string that is never shown in full.
#[derive(Clone, PartialEq, Eq)]
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

/// The model providers. `heuristic` uses no model.
pub const PROVIDERS: &[&str] = &["heuristic", "openai", "deepseek", "local", "claude"];

/// The model for summaries and reflections, with its limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reflection {
    /// The provider, one of [`PROVIDERS`].
    pub provider: &'static str,
    /// The model's name.
    pub model: Option<String>,
    /// The URL.
    pub base_url: Option<String>,
    /// The API key.
    pub api_key: Option<Secret>,
    /// The timeout of a request, in seconds.
    pub timeout: u32,
    /// The maximum size of a request, in tokens.
    pub max_tokens: u32,
    /// The maximum number of background requests per day.
    pub calls_per_day: u32,
    /// The maximum number of background tokens per day, requests and answers.
    pub tokens_per_day: u32,
    /// Whether projects are reflected on in the background.
    pub auto: bool,
}

impl Default for Reflection {
    fn default() -> Self {
        Self {
            provider: PROVIDERS[0],
            model: None,
            base_url: None,
            api_key: None,
            timeout: 30,
            max_tokens: 120_000,
            calls_per_day: 40,
            tokens_per_day: 400_000,
            auto: false,
        }
    }
}

/// The settings in `config.json`.
#[derive(Debug, Clone)]
pub struct Config {
    /// The name of this machine, if set.
    pub machine_id: Option<String>,
    /// The URL of the remote, if set. It may contain a password and is never shown.
    pub remote: Option<String>,
    /// Settings of sync.
    pub sync: Sync,
    /// Settings of learning from use.
    pub learn: Learn,
    /// Settings of automatic injection.
    pub recall: Recall,
    /// The model for summaries.
    pub reflection: Reflection,
    /// Whether notes by agents and models need approval.
    pub review: Review,
    /// When the session line is shown.
    pub session_line: SessionLine,
    /// Where recording is paused.
    pub paused: Paused,
    /// Patterns of folders in which nothing is recorded or injected, for [`exclude::Exclusions`].
    pub exclude: Vec<String>,
    /// Environment variables that are trusted in processes started by Claude Code although they name
    /// a store, a remote, a model, a URL or a key. Read from the default store only.
    pub trusted_variables: Vec<String>,
    /// Whether `paused` or `exclude` is invalid. Then nothing is recorded or injected anywhere.
    pub is_unclear: bool,
    /// Names and patterns of tools that are not recorded; see [`Config::skips`].
    pub skip_tools: Vec<String>,
    /// How long records are kept.
    pub retention: Retention,
    /// Whether Claude Code's own memory is imported.
    pub import_native: bool,
    /// Why the file or a part of it is invalid.
    pub problem: Option<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            machine_id: None,
            remote: None,
            sync: Sync::default(),
            learn: Learn::default(),
            recall: Recall::default(),
            reflection: Reflection::default(),
            review: Review::default(),
            session_line: SessionLine::default(),
            paused: Paused::default(),
            exclude: Vec::new(),
            trusted_variables: Vec::new(),
            is_unclear: false,
            skip_tools: SKIPPED_TOOLS.map(str::to_owned).to_vec(),
            retention: Retention::default(),
            import_native: true,
            problem: None,
        }
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
            Ok((keys, _)) => Self::of(&keys),
            Err(unread) => Self {
                is_unclear: unread.may_hide_settings,
                problem: Some(unread.problem),
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
        let _lock = lock::acquire(home, Subject::Config, PATIENCE)
            .map_err(failed)?
            .ok_or(Error::Locked)?;
        let (before, bytes) = read(home).map_err(|unread| Error::Broken(unread.problem))?;
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
            found = Self::of(keys);
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

    /// Tells whether a tool is not recorded. `Agent` and `Task` are the same tool.
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
        match read(home) {
            Ok((keys, _)) => Ok(keys),
            Err(unread) => Err(Error::Broken(unread.problem)),
        }
    }

    /// Interprets the keys of the file.
    pub fn of(keys: &Map<String, Value>) -> Self {
        let mut config = Self::default();
        let mut problems = Vec::new();
        config.machine_id = text(keys, "machine_id", &mut problems);
        config.remote = text(keys, "remote", &mut problems);
        if let Some(members) = object(keys, "sync", &mut problems) {
            sync(members, &mut config.sync, &mut problems);
        }
        if let Some(members) = object(keys, "learn", &mut problems) {
            learn(members, &mut config.learn, &mut problems);
        }
        if let Some(members) = object(keys, "recall", &mut problems) {
            recall(members, &mut config.recall, &mut problems);
        }
        if let Some(members) = object(keys, "reflection", &mut problems) {
            reflection(members, &mut config.reflection, &mut problems);
        }
        review(keys, &mut config.review, &mut problems);
        session_line(keys, &mut config.session_line, &mut problems);
        let is_paused_clear = paused(keys, &mut config.paused, &mut problems);
        let is_exclude_clear = excluded(keys, &mut config.exclude, &mut problems);
        config.is_unclear = !(is_paused_clear && is_exclude_clear);
        texts(keys, "skip_tools", &mut config.skip_tools, &mut problems);
        let trusted = &mut config.trusted_variables;
        texts(keys, "trusted_variables", trusted, &mut problems);
        if let Some(terms) = object(keys, "retention", &mut problems) {
            retention(terms, &mut config.retention, &mut problems);
        }
        import_native(keys, &mut config.import_native, &mut problems);
        report_misspelled(keys, &mut problems);
        config.problem =
            (!problems.is_empty()).then(|| format!("config.json: {}", problems.join("; ")));
        config
    }
}

/// Returns the trimmed string of a key; an empty one counts as none.
///
/// An invalid value is not quoted, because it may contain the password of a remote.
fn text(members: &Map<String, Value>, name: &str, problems: &mut Vec<String>) -> Option<String> {
    let key = name.rsplit('.').next().unwrap_or(name);
    match members.get(key) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Null) | None => None,
        Some(_) => {
            problems.push(format!("invalid value for {name}: expected a string"));
            None
        }
    }
}

/// Returns the members of an object.
fn object<'a>(
    keys: &'a Map<String, Value>,
    key: &str,
    problems: &mut Vec<String>,
) -> Option<&'a Map<String, Value>> {
    match keys.get(key)? {
        Value::Object(members) => Some(members),
        Value::Null => None,
        other => {
            problems.push(format!(
                "invalid value {other} for {key}: expected an object"
            ));
            None
        }
    }
}

/// Reads a boolean member. `name` has the object's name before a dot.
fn switch(members: &Map<String, Value>, name: &str, on: &mut bool, problems: &mut Vec<String>) {
    let key = name.rsplit('.').next().unwrap_or(name);
    match members.get(key) {
        Some(Value::Bool(value)) => *on = *value,
        Some(Value::String(word)) if word == "on" => *on = true,
        Some(Value::String(word)) if word == "off" => *on = false,
        Some(Value::Null) | None => {}
        Some(other) => problems.push(format!(
            "invalid value {other} for {name}: expected on or off"
        )),
    }
}

/// Reads an integer member. `name` has the object's name before a dot.
fn number(members: &Map<String, Value>, name: &str, taken: &mut u32, problems: &mut Vec<String>) {
    let key = name.rsplit('.').next().unwrap_or(name);
    match members
        .get(key)
        .map(|value| (value, value.as_u64().map(u32::try_from)))
    {
        None => {}
        Some((_, Some(Ok(number)))) => *taken = number,
        Some((value, _)) => {
            problems.push(format!(
                "invalid value {value} for {name}: expected a non-negative integer"
            ));
        }
    }
}

/// Returns the items of a list. Any other value counts as a list with one item.
fn items(value: Option<&Value>) -> &[Value] {
    match value {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items,
        Some(item) => std::slice::from_ref(item),
    }
}

/// Reads a list of strings. A list without any string counts as not set.
fn texts(
    keys: &Map<String, Value>,
    key: &str,
    taken: &mut Vec<String>,
    problems: &mut Vec<String>,
) {
    let Some(value) = keys.get(key).filter(|value| !value.is_null()) else {
        return;
    };
    let (texts, others): (Vec<_>, Vec<_>) =
        items(Some(value)).iter().partition(|item| item.is_string());
    if others.is_empty() || !texts.is_empty() {
        let texts = texts.into_iter().filter_map(Value::as_str);
        *taken = texts.map(str::to_owned).collect();
    }
    for other in others {
        problems.push(format!("invalid value {other} in {key}: expected a string"));
    }
}

fn sync(members: &Map<String, Value>, sync: &mut Sync, problems: &mut Vec<String>) {
    switch(members, "sync.auto", &mut sync.auto, problems);
    switch(members, "sync.allow_http", &mut sync.allow_http, problems);
}

fn learn(members: &Map<String, Value>, learn: &mut Learn, problems: &mut Vec<String>) {
    switch(members, "learn.sync", &mut learn.sync, problems);
    switch(members, "learn.links", &mut learn.links, problems);
}

/// Reads `review`. An invalid value counts as `proposals`, because the person wants some review.
fn review(keys: &Map<String, Value>, review: &mut Review, problems: &mut Vec<String>) {
    match keys.get("review").map(|value| (value, value.as_str())) {
        None | Some((_, Some("off"))) => {}
        Some((_, Some("proposals"))) => *review = Review::Proposals,
        Some((other, _)) => {
            *review = Review::Proposals;
            problems.push(format!(
                "invalid value {other} for review: expected off or proposals"
            ));
        }
    }
}

fn session_line(keys: &Map<String, Value>, line: &mut SessionLine, problems: &mut Vec<String>) {
    match keys
        .get("session_line")
        .map(|value| (value, value.as_str()))
    {
        None | Some((_, Some("on"))) => {}
        Some((_, Some("problems"))) => *line = SessionLine::Problems,
        Some((_, Some("off"))) => *line = SessionLine::Off,
        Some((other, _)) => {
            problems.push(format!(
                "invalid value {other} for session_line: expected on, problems or off"
            ));
        }
    }
}

/// Reads `paused`. Returns whether every item is valid.
fn paused(keys: &Map<String, Value>, paused: &mut Paused, problems: &mut Vec<String>) -> bool {
    let mut is_clear = true;
    for item in items(keys.get("paused")) {
        match item {
            Value::Bool(is_paused) => paused.everywhere |= is_paused,
            Value::String(project) => paused.projects.push(project.clone()),
            other => {
                is_clear = false;
                problems.push(format!(
                    "invalid value {other} in paused: expected true or a project key"
                ));
            }
        }
    }
    is_clear
}

/// Reads `exclude`. Returns whether every item is valid.
fn excluded(
    keys: &Map<String, Value>,
    patterns: &mut Vec<String>,
    problems: &mut Vec<String>,
) -> bool {
    let mut is_clear = true;
    for item in items(keys.get("exclude")) {
        match item {
            Value::String(pattern) if pattern.trim().is_empty() => {}
            Value::String(pattern) if !exclude::names_nothing(pattern) => {
                patterns.push(pattern.clone());
            }
            Value::String(pattern) => {
                is_clear = false;
                problems.push(format!(
                    "invalid value {pattern:?} in exclude: it names no folder"
                ));
            }
            other => {
                is_clear = false;
                problems.push(format!(
                    "invalid value {other} in exclude: expected a string"
                ));
            }
        }
    }
    is_clear
}

fn import_native(keys: &Map<String, Value>, on: &mut bool, problems: &mut Vec<String>) {
    match keys
        .get("import_native")
        .map(|value| (value, value.as_str()))
    {
        None | Some((Value::Null | Value::Bool(true), _) | (_, Some("on"))) => {}
        Some((Value::Bool(false), _) | (_, Some("off"))) => *on = false,
        Some((other, _)) => problems.push(format!(
            "invalid value {other} for import_native: expected true, false, on or off"
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

fn recall(members: &Map<String, Value>, recall: &mut Recall, problems: &mut Vec<String>) {
    for (name, on) in [
        ("recall.prompt", &mut recall.prompt),
        ("recall.agent", &mut recall.agent),
        ("recall.tool", &mut recall.tool),
        ("recall.failure", &mut recall.failure),
        ("recall.wide", &mut recall.wide),
        ("recall.prompt_line", &mut recall.prompt_line),
    ] {
        switch(members, name, on, problems);
    }
    number(members, "recall.notes", &mut recall.notes, problems);
    number(members, "recall.tokens", &mut recall.tokens, problems);
}

fn reflection(
    members: &Map<String, Value>,
    reflection: &mut Reflection,
    problems: &mut Vec<String>,
) {
    let mut word = |name: &str| text(members, name, problems);
    let (provider, base_url, api_key) = (
        word("reflection.provider"),
        word("reflection.base_url"),
        word("reflection.api_key"),
    );
    reflection.model = word("reflection.model");
    reflection.api_key = api_key.as_deref().and_then(Secret::new);
    if let Some(word) = provider {
        match PROVIDERS
            .iter()
            .find(|known| word.eq_ignore_ascii_case(known))
        {
            Some(known) => reflection.provider = known,
            None => problems.push(format!(
                "invalid value {word:?} for reflection.provider: expected one of {}",
                PROVIDERS.join(", ")
            )),
        }
    }
    match base_url {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            problems.push(
                "invalid value for reflection.base_url: expected a URL that begins with http:// or https://"
                    .to_owned(),
            );
        }
        url => reflection.base_url = url,
    }
    for (name, term) in [
        ("reflection.timeout", &mut reflection.timeout),
        ("reflection.max_tokens", &mut reflection.max_tokens),
        ("reflection.calls_per_day", &mut reflection.calls_per_day),
        ("reflection.tokens_per_day", &mut reflection.tokens_per_day),
    ] {
        number(members, name, term, problems);
    }
    switch(members, "reflection.auto", &mut reflection.auto, problems);
}

fn retention(terms: &Map<String, Value>, retention: &mut Retention, problems: &mut Vec<String>) {
    for (name, term) in [
        ("retention.events_days", &mut retention.events_days),
        ("retention.prompts_days", &mut retention.prompts_days),
        ("retention.jobs_done_days", &mut retention.jobs_done_days),
        (
            "retention.jobs_failed_days",
            &mut retention.jobs_failed_days,
        ),
        ("retention.trash_days", &mut retention.trash_days),
        ("retention.spool_days", &mut retention.spool_days),
        ("retention.ceiling_mib", &mut retention.ceiling_mib),
    ] {
        number(terms, name, term, problems);
    }
}

/// The file cannot be read.
struct Unread {
    problem: String,
    /// Whether the file may contain settings that restrict recording.
    may_hide_settings: bool,
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
fn read(home: &Home) -> Result<(Map<String, Value>, Vec<u8>), Unread> {
    let hidden = |problem: String| Unread {
        problem: format!("config.json: {problem}"),
        may_hide_settings: true,
    };
    let (bytes, _, is_whole) = match file::read_head(&home.config(), MAX_LENGTH) {
        Ok(read) => read,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Ok((Map::new(), b"{}".to_vec()));
        }
        Err(error) => return Err(hidden(error.to_string())),
    };
    if !is_whole {
        return Err(hidden(format!("over {MAX_LENGTH} bytes")));
    }
    match serde_json::from_slice(&bytes) {
        Ok(keys) => Ok((keys, bytes)),
        Err(error) => {
            let text = String::from_utf8_lossy(&bytes);
            Err(Unread {
                problem: format!("config.json is not a JSON object: {error}"),
                may_hide_settings: ["paused", "exclude"].iter().any(|key| text.contains(key)),
            })
        }
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
                "skip_tools": ["mcp__*"], "retention": {"events_days": 7, "trash_days": 0},
                "remote": " git@git.home:me/memory.git\n", "learn": {"sync": "off", "links": false},
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
        assert!(!config.learn.sync && !config.learn.links);
        assert_eq!(config.session_line, SessionLine::Problems);
        assert_eq!(config.exclude, ["~/secret", "/srv/*/keys"]);
        assert_eq!(config.skip_tools, ["mcp__*"]);
        let expected = Retention {
            events_days: 7,
            trash_days: 0,
            ..Retention::default()
        };
        assert_eq!(config.retention, expected);
    }

    #[test]
    fn a_model_is_named_whole_and_its_key_shown_in_part() {
        let config = load(
            r#"{"reflection": {"provider": "OpenAI", "model": " m ", "base_url": "https://h/v1",
                "api_key": "abcdefghijkl", "timeout": 60, "calls_per_day": 0}}"#,
        );
        assert_eq!(config.problem, None);
        let expected = Reflection {
            provider: "openai",
            model: Some("m".to_owned()),
            base_url: Some("https://h/v1".to_owned()),
            api_key: Secret::new("abcdefghijkl"),
            timeout: 60,
            calls_per_day: 0,
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
                "invalid value \"gemini\" for reflection.provider: expected one of heuristic, openai"
            ),
            "{problem}"
        );
        assert!(
            problem.contains("invalid value for reflection.base_url: expected a URL"),
            "{problem}"
        );
        assert!(
            problem.contains("invalid value for reflection.api_key: expected a string"),
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
                "invalid value for machine_id: expected a string",
            ),
            (
                r#"{"remote": ["https://me:hunter2@h/x"], "sync": {"auto": 1}, "learn": 2}"#,
                "config.json: invalid value for remote: expected a string; \
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
                r#"{"retention": {"events_days": -1, "spool_days": "x"}}"#,
                "invalid value -1 for retention.events_days: expected a non-negative integer; \
                 invalid value \"x\" for retention.spool_days: expected a non-negative integer",
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
            assert!(!config.is_unclear, "{text}");
            let found = config.problem.unwrap_or_default();
            assert!(found.contains(problem), "{text}: {found}");
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
            ("TodoWrite", true, false),
            ("AskUserQuestion", true, false),
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
        let (keys, _) = read(&home).map_err(|unread| unread.problem).unwrap();
        assert_eq!(keys.len(), 8);
    }
}
