//! The settings of this machine: `config.json`, written by commands and by hand.
//!
//! Unknown keys are somebody else's and are kept. A setting that makes no sense is reported and
//! counts as not set, since no setting is worth a session; but one that keeps things from being
//! recorded fails closed: as long as it cannot be understood, nothing is recorded at all.

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

/// The largest settings file that is read, in bytes.
const MAX_LENGTH: usize = 1024 * 1024;

/// How long a change waits for another one, which takes as long as writing one small file.
const PATIENCE: Duration = Duration::from_secs(1);

/// Tools that say nothing about the work, or whose work other events show.
const SKIPPED_TOOLS: [&str; 6] = [
    "AskUserQuestion",
    "ListMcpResourcesTool",
    "Skill",
    "SlashCommand",
    "TodoWrite",
    "ToolSearch",
];

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

/// Where nothing is recorded and nothing given until somebody resumes it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paused {
    /// Whether that is so everywhere.
    pub everywhere: bool,
    /// The keys of projects for which it is so, as they were written.
    pub projects: Vec<String>,
}

impl Paused {
    /// Tells whether a project is paused by its key, whatever its letter case.
    pub fn names(&self, project: &str) -> bool {
        let project = project.to_lowercase();
        self.projects
            .iter()
            .any(|paused| paused.to_lowercase() == project)
    }

    /// Takes a project out, whatever its letter case.
    pub fn forget(&mut self, project: &str) {
        let project = project.to_lowercase();
        self.projects
            .retain(|paused| paused.to_lowercase() != project);
    }

    /// Returns the value of `paused` that says this; none when nothing is paused.
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

/// How long things are kept on this machine. 0 keeps them for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Tool events and ends of turns, in days.
    pub events_days: u32,
    /// Prompts, in days.
    pub prompts_days: u32,
    /// Jobs that are done, in days.
    pub jobs_done_days: u32,
    /// Jobs that failed, in days.
    pub jobs_failed_days: u32,
    /// Texts of forgotten notes, in days.
    pub trash_days: u32,
    /// Spool files that were moved aside, in days.
    pub spool_days: u32,
    /// What all of this machine's records may take, in MiB.
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

/// How notes travel.
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

/// What is made of which notes helped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Learn {
    /// Whether the machines tell each other.
    pub sync: bool,
    /// Whether notes that are used together bring each other up.
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

/// What is given unasked, beside what a session starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub struct Recall {
    /// Whether notes come with a prompt.
    pub prompt: bool,
    /// Whether notes come with the task of a subagent.
    pub agent: bool,
    /// Whether warnings come when a tool is about to run.
    pub tool: bool,
    /// Whether what helped before comes when a tool has failed.
    pub failure: bool,
    /// Whether notes come that fit less well, too.
    pub wide: bool,
    /// How many notes come with a prompt at most, those that links bring not counted.
    pub notes: u32,
    /// How many tokens they may cost.
    pub tokens: u32,
    /// Whether the person is told in a line what came with a prompt.
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

/// A text that is shown nowhere as a whole.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a text, without blanks around it; none where nothing is left.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.to_owned()))
    }

    /// The text itself, for whoever has to send it.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Enough of it to know it again: its first three and last two characters, of a long one.
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

/// How many characters of a secret stay hidden at least.
const MIN_HIDDEN: usize = 7;

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Secret(…)")
    }
}

/// Who may be asked to sum things up; the first asks nobody.
pub const PROVIDERS: &[&str] = &["heuristic", "openai", "deepseek", "local", "claude"];

/// Which model sums things up, and what it may cost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reflection {
    /// Whose it is, one of [`PROVIDERS`].
    pub provider: &'static str,
    /// Its name.
    pub model: Option<String>,
    /// Where it is.
    pub base_url: Option<String>,
    /// Who pays.
    pub api_key: Option<Secret>,
    /// How long an answer may take, in seconds.
    pub timeout: u32,
    /// How much it is sent at once, in tokens.
    pub max_tokens: u32,
    /// How often it may be asked in the background, each day.
    pub calls_per_day: u32,
    /// How much it may be sent and say in the background, each day, in tokens.
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

/// What `config.json` says.
#[derive(Debug, Clone)]
pub struct Config {
    /// The name of this machine in notes, if one is set.
    pub machine_id: Option<String>,
    /// The address of the remote, if one is set. It may hold a password, and is shown nowhere.
    pub remote: Option<String>,
    /// How notes travel.
    pub sync: Sync,
    /// What is made of which notes helped.
    pub learn: Learn,
    /// What is given unasked.
    pub recall: Recall,
    /// Which model sums things up.
    pub reflection: Reflection,
    /// What becomes of what agents and models write.
    pub review: Review,
    /// When the one line is shown.
    pub session_line: SessionLine,
    /// Where recording is paused.
    pub paused: Paused,
    /// Patterns of folders in which nothing is recorded and nothing given, for
    /// [`exclude::Exclusions`].
    pub exclude: Vec<String>,
    /// The variables of the environment that count in a process that Claude Code starts although
    /// they name a store, a remote, a model, an address or a key. Read from the default store only.
    pub trusted_variables: Vec<String>,
    /// Whether `paused` or `exclude` may say something that cannot be understood. Then nothing is
    /// recorded and nothing given anywhere.
    pub is_unclear: bool,
    /// Names and patterns of tools whose use is not recorded; see [`Config::skips`].
    pub skip_tools: Vec<String>,
    /// How long things are kept.
    pub retention: Retention,
    /// Whether Claude Code's own memory is imported.
    pub import_native: bool,
    /// Why the file, or a part of it, was not taken.
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

/// The settings could not be changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// What is there makes no sense, so nothing is written over it.
    #[error("{0}; mend the file first")]
    Broken(String),
    /// Another process is changing them.
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

    /// Reads the settings, changes them and writes them back, all under a lock.
    ///
    /// `change` sees every key of the file, in its order; to take one out, `shift_remove` keeps it.
    /// Values that it leaves alone stay as they are, letter for letter. When it changes nothing,
    /// nothing is written. The file's mode is 0600.
    ///
    /// # Errors
    /// When the file is no JSON object or no regular file, when another process keeps the lock, and
    /// when writing fails. What was there is then still there.
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

    /// Changes what is paused, as [`Config::update`] does, and returns what was before.
    ///
    /// # Errors
    /// As [`Config::update`], and when it cannot be understood what is paused now.
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

    /// Tells whether the use of a tool is not to be recorded. `Agent` and `Task` are one tool.
    pub fn skips(&self, tool: &str) -> bool {
        let names: &[&str] = match tool {
            "Agent" | "Task" => &["Agent", "Task"],
            _ => &[tool],
        };
        self.skip_tools
            .iter()
            .any(|pattern| names.iter().any(|name| glob::matches(pattern, name)))
    }

    /// Reads the keys of the file as they stand there.
    ///
    /// # Errors
    /// When there is something that is no JSON object.
    pub fn keys(home: &Home) -> Result<Map<String, Value>, Error> {
        match read(home) {
            Ok((keys, _)) => Ok(keys),
            Err(unread) => Err(Error::Broken(unread.problem)),
        }
    }

    /// Returns what a file with these keys says.
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

/// The text that a key holds, without blanks around it; an empty one counts as none.
///
/// What stands there instead is not repeated: it may be the address of a remote, with a password.
fn text(keys: &Map<String, Value>, key: &str, problems: &mut Vec<String>) -> Option<String> {
    match keys.get(key) {
        Some(Value::String(text)) => Some(text.trim().to_owned()).filter(|text| !text.is_empty()),
        Some(Value::Null) | None => None,
        Some(_) => {
            problems.push(format!("{key} is not a text"));
            None
        }
    }
}

/// The members of an object of settings.
fn object<'a>(
    keys: &'a Map<String, Value>,
    key: &str,
    problems: &mut Vec<String>,
) -> Option<&'a Map<String, Value>> {
    match keys.get(key)? {
        Value::Object(members) => Some(members),
        Value::Null => None,
        other => {
            problems.push(format!("{key} is {other}, not an object"));
            None
        }
    }
}

/// Takes a switch of an object, named with it.
fn switch(members: &Map<String, Value>, name: &str, on: &mut bool, problems: &mut Vec<String>) {
    let key = name.rsplit('.').next().unwrap_or(name);
    match members.get(key) {
        Some(Value::Bool(value)) => *on = *value,
        Some(Value::String(word)) if word == "on" => *on = true,
        Some(Value::String(word)) if word == "off" => *on = false,
        Some(Value::Null) | None => {}
        Some(other) => problems.push(format!("{name} is {other}, neither on nor off")),
    }
}

/// Takes a number of an object, named with it.
fn number(members: &Map<String, Value>, name: &str, taken: &mut u32, problems: &mut Vec<String>) {
    let key = name.rsplit('.').next().unwrap_or(name);
    match members
        .get(key)
        .map(|value| (value, value.as_u64().map(u32::try_from)))
    {
        None => {}
        Some((_, Some(Ok(number)))) => *taken = number,
        Some((value, _)) => {
            problems.push(format!("{name} is {value}, not a whole number from 0 on"))
        }
    }
}

/// What a setting lists: the items of a list; anything else is taken as the one item of a list.
fn items(value: Option<&Value>) -> &[Value] {
    match value {
        None | Some(Value::Null) => &[],
        Some(Value::Array(items)) => items,
        Some(item) => std::slice::from_ref(item),
    }
}

/// Reads a list of texts. One that holds nothing but other values counts as not set.
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
        problems.push(format!("{key} holds {other}, not a text"));
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

/// Reads `review`. An invalid value counts as `proposals`, since whoever set it wants to be asked.
fn review(keys: &Map<String, Value>, review: &mut Review, problems: &mut Vec<String>) {
    match keys.get("review").map(|value| (value, value.as_str())) {
        None | Some((_, Some("off"))) => {}
        Some((_, Some("proposals"))) => *review = Review::Proposals,
        Some((other, _)) => {
            *review = Review::Proposals;
            problems.push(format!("review is {other}, not off or proposals"));
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
            problems.push(format!("session_line is {other}, not on, problems or off"));
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
                problems.push(format!("paused holds {other}, neither true nor a project"));
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
                problems.push(format!("exclude holds {pattern:?}, which is no folder"));
            }
            other => {
                is_clear = false;
                problems.push(format!("exclude holds {other}, not a text"));
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
            "import_native is {other}, not true, false, on or off"
        )),
    }
}

/// Reports keys that look like a misspelled `exclude` or `paused`: what a person believes to be
/// excluded must not be recorded silently.
fn report_misspelled(keys: &Map<String, Value>, problems: &mut Vec<String>) {
    for key in keys.keys() {
        let lower = key.to_lowercase();
        for known in ["exclude", "paused"] {
            if key != known && lower.starts_with(&known[..5]) {
                problems.push(format!("{key:?} is no setting, {known:?} is"));
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
    let mut said = Vec::new();
    let mut word = |key: &str| text(members, key, &mut said);
    let (provider, base_url, api_key) = (word("provider"), word("base_url"), word("api_key"));
    reflection.model = word("model");
    reflection.api_key = api_key.as_deref().and_then(Secret::new);
    if let Some(word) = provider {
        match PROVIDERS
            .iter()
            .find(|known| word.eq_ignore_ascii_case(known))
        {
            Some(known) => reflection.provider = known,
            None => said.push(format!(
                "provider is {word:?}, not {}",
                PROVIDERS.join(", ")
            )),
        }
    }
    match base_url {
        Some(url) if !url.starts_with("http://") && !url.starts_with("https://") => {
            said.push("base_url does not begin with http:// or https://".to_owned());
        }
        url => reflection.base_url = url,
    }
    problems.extend(said.into_iter().map(|said| format!("reflection.{said}")));
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

/// Why the file was not taken.
struct Unread {
    problem: String,
    /// Whether settings that keep things from being recorded may stand in it.
    may_hide_settings: bool,
}

/// The text of a file with these keys. What is as it was before stays as it is written there.
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

/// Reads the file, its keys and its bytes; without one there are no keys.
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
                problem: format!("config.json is no JSON object: {error}"),
                may_hide_settings: ["paused", "exclude"].iter().any(|key| text.contains(key)),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A store whose settings are this text.
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
            problem.contains("reflection.provider is \"gemini\", not heuristic, openai"),
            "{problem}"
        );
        assert!(
            problem.contains("reflection.base_url does not begin with http"),
            "{problem}"
        );
        assert!(
            problem.contains("reflection.api_key is not a text"),
            "{problem}"
        );
        assert!(!problem.contains("k-e-y"), "{problem}");
        assert_eq!(config.reflection, Reflection::default());
    }

    #[test]
    fn a_broken_file_counts_as_empty_and_is_reported() {
        for (text, problem) in [
            ("{", "config.json is no JSON object"),
            ("[]", "config.json is no JSON object"),
            (r#"{"machine_id": 3}"#, "machine_id is not a text"),
            (
                r#"{"remote": ["https://me:hunter2@h/x"], "sync": {"auto": 1}, "learn": 2}"#,
                "config.json: remote is not a text; sync.auto is 1, neither on nor off; \
                 learn is 2, not an object",
            ),
            (r#"{"session_line": "loud"}"#, "session_line is \"loud\""),
            (r#"{"review": "some"}"#, "review is \"some\""),
            (
                r#"{"reflection": {"auto": "yes"}}"#,
                "reflection.auto is \"yes\"",
            ),
            (
                r#"{"retention": 30}"#,
                "config.json: retention is 30, not an object",
            ),
            (
                r#"{"retention": {"events_days": -1, "spool_days": "x"}}"#,
                "retention.events_days is -1, not a whole number from 0 on; \
                 retention.spool_days is \"x\", not a whole number from 0 on",
            ),
            (
                r#"{"skip_tools": [3]}"#,
                "config.json: skip_tools holds 3, not a text",
            ),
            (
                r#"{"Excludes": ["/a"]}"#,
                "\"Excludes\" is no setting, \"exclude\" is",
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
            // What is written says the same.
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
                "paused holds 1, neither true nor a project",
            ),
            (r#"{"paused": ["a", {}]}"#, "paused holds {}"),
            (
                r#"{"exclude": {"a": 1}}"#,
                "exclude holds {\"a\":1}, not a text",
            ),
            (r#"{"exclude": ["/a", 3]}"#, "exclude holds 3, not a text"),
            (
                r#"{"exclude": ["."]}"#,
                "exclude holds \".\", which is no folder",
            ),
            (
                r#"{"exclude": ["~/secret",]}"#,
                "config.json is no JSON object",
            ),
            (r#"{"paused": tru"#, "config.json is no JSON object"),
        ] {
            let config = load(text);
            assert!(config.is_unclear, "{text}");
            let found = config.problem.unwrap_or_default();
            assert!(found.contains(problem), "{text}: {found}");
        }
        // One text is a list of one.
        let config = load(r#"{"exclude": "~/secret"}"#);
        assert_eq!((config.problem, config.is_unclear), (None, false));
        assert_eq!(config.exclude, ["~/secret"]);
        // Nobody knows what a file says that cannot be read, or not to its end.
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
        // Nothing to change, nothing written.
        std::fs::write(home.config(), "{ }").unwrap();
        Config::update(&home, |_| {}).unwrap();
        assert_eq!(std::fs::read_to_string(home.config()).unwrap(), "{ }");
    }

    #[test]
    fn a_broken_file_is_not_written_over() {
        let (_folder, home) = store("{\"exclude\": [\"/a\",]}");
        let error = Config::update(&home, Map::clear).unwrap_err().to_string();
        assert!(
            error.starts_with("config.json is no JSON object"),
            "{error}"
        );
        assert!(error.ends_with("; mend the file first"), "{error}");
        assert!(
            std::fs::read_to_string(home.config())
                .unwrap()
                .contains("/a")
        );
        // Nor is a part of it by which somebody meant something.
        let text = r#"{"paused": {"shop": true}}"#;
        let (_folder, home) = store(text);
        let error = Config::change_paused(&home, |paused| paused.everywhere = true);
        let error = error.unwrap_err().to_string();
        assert!(error.contains("paused holds {\"shop\":true}"), "{error}");
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
