//! The git repository of the notes, for commands, the deferred process and `status`.
//!
//! A command commits its changes before it ends. The deferred process commits what hooks wrote, and
//! syncs. The journal stores how the last sync went.

use std::{collections::BTreeSet, fs, time::Duration};

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    journal::{self, Journal},
    project::Identities,
};
pub use anamnesis_sync::HeldDecision;
use anamnesis_sync::{
    Act, GitBackend, Held, Reached, Repository, Settings, State, Synced, WITHHELD, is_withheld,
    remote::Remote,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ulid::Ulid;

use crate::{
    Error, claude_memory,
    context::{self, Context},
    error::TRY_AGAIN,
    forget::records::leave_records_of_gone,
    format,
    purge::{LeftPlace, left},
    remote, spawn,
};

/// The timeout for one call of git.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The journal key for the sync history.
const HISTORY: &str = "sync";

/// The journal key with which hooks request a sync at a session's start or end: the time in
/// milliseconds.
pub const WANTED: &str = "sync_wanted";

/// The journal key for when the step of a running sync began, in milliseconds, and that step in words.
const STEP: &str = "sync_step";

/// A step that began earlier than this was of a process that did not end by itself.
const LONGEST_STEP: TimeDelta = TimeDelta::minutes(5);

/// The journal key for when a sync last brought notes, in milliseconds.
pub const ARRIVED: &str = "sync_arrived";

/// The journal key of the notes that are not pushed because of what is in them.
const WITHHELD_NOTES: &str = "withheld";

/// The back-off after one, two, three and more failures in a row.
const BACK_OFF_MINUTES: [i64; 5] = [1, 5, 15, 60, 240];

/// How many characters of a change's id people see. The id is random, so few are enough.
const SHORT_BATCH: usize = 6;

/// The sync history of this machine.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct History {
    /// When the remote last had everything, in milliseconds since 1970.
    pub in_step_at: Option<i64>,
    /// When the last sync started.
    pub tried_at: Option<i64>,
    /// Since when every sync has failed.
    pub failing_since: Option<i64>,
    /// How many syncs have failed in a row.
    pub failures: usize,
    /// Why the last sync failed.
    pub error: Option<String>,
    /// Whether it failed because the remote could not be reached.
    pub is_offline: bool,
    /// The advice for the person.
    pub advice: Option<String>,
    /// The change that is held back until the person decides.
    pub held: Option<String>,
}

impl History {
    /// Loads the history from the journal.
    pub fn load(journal: &Journal) -> Self {
        journal.json(HISTORY).ok().flatten().unwrap_or_default()
    }

    fn save(&self, journal: &Journal) -> Result<(), journal::Error> {
        journal.set_json(HISTORY, self)
    }

    /// Adds the result of a sync.
    fn add(&mut self, result: &Result<Synced, anamnesis_sync::Error>, now: i64) {
        self.tried_at = Some(now);
        match result {
            Ok(synced) => {
                self.failing_since = None;
                self.failures = 0;
                self.error = None;
                self.advice = None;
                self.is_offline = false;
                self.held = synced.held.as_ref().map(held_text);
                if synced.pushed {
                    self.in_step_at = Some(now);
                }
            }
            // Another process is syncing and records its own result.
            Err(anamnesis_sync::Error::Busy) => {}
            Err(error) => {
                self.failing_since.get_or_insert(now);
                self.failures += 1;
                self.error = Some(one_line(&error.to_string()));
                self.advice = advice(error);
                self.is_offline =
                    matches!(error, anamnesis_sync::Error::Network(error) if error.is_offline());
            }
        }
    }

    /// Returns whether the deferred process has to sync: a sync was requested since the last one,
    /// and the back-off has passed.
    pub fn is_due(&self, wanted: Option<i64>, now: i64) -> bool {
        let Some(tried) = self.tried_at else {
            return true;
        };
        if self.failures == 0 {
            // A time ahead of now was stored by a clock that was wrong.
            return tried > now || wanted.is_some_and(|wanted| wanted >= tried);
        }
        let step = (self.failures - 1).min(BACK_OFF_MINUTES.len() - 1);
        journal::is_over(tried, BACK_OFF_MINUTES[step] * 60_000, now)
    }
}

/// The state of sync, for `status` and `doctor`.
pub struct SyncStatus {
    /// The state of the local repository.
    pub state: State,
    /// The results of the last syncs.
    history: History,
    /// The remote, without credentials.
    pub remote: Option<String>,
    /// Why syncing is impossible, if it is.
    problem: Option<String>,
    /// The step of a sync that is running in any process, in words.
    pub step: Option<String>,
}

impl SyncStatus {
    /// Loads the state from the repository and the journal.
    pub fn load(context: &Context, journal: Option<&Journal>) -> Self {
        let (remote, mut problem) = match remote(context) {
            Ok(remote) => (remote, None),
            Err(_) => (None, remote::problem(context)),
        };
        let state = backend(context, None, remote, HeldDecision::None, Duration::ZERO).state();
        let state = state.unwrap_or_else(|error| {
            problem = Some(one_line(&error.to_string()));
            State::default()
        });
        Self {
            state,
            history: journal.map(History::load).unwrap_or_default(),
            remote: remote::address(context).map(remote::shown),
            problem,
            step: journal.and_then(|journal| running_step(context, journal)),
        }
    }

    /// The state in a few words.
    pub fn text(&self, now: DateTime<Utc>) -> String {
        if let Some(problem) = &self.problem {
            return format!("cannot be done: {problem}");
        }
        if self.remote.is_none() {
            return "none; notes stay on this machine".to_owned();
        }
        let waiting = match self.state.waiting {
            0 => String::new(),
            1 => "; 1 note is not synced yet".to_owned(),
            many => format!("; {} notes are not synced yet", format::number(many)),
        };
        if let Some(held) = &self.history.held {
            return format!("needs your decision: {held}");
        }
        if let Some(since) = self.history.failing_since.map(format::time) {
            let for_long = match format::age(since, now).as_str() {
                "now" => "less than a minute".to_owned(),
                age => age.to_owned(),
            };
            let error = self.history.error.as_deref().unwrap_or_default();
            return if self.history.is_offline {
                format!("offline for {for_long}{waiting}")
            } else {
                format!("failing for {for_long}{waiting}: {error}")
            };
        }
        match self.history.in_step_at.map(format::time) {
            Some(at) => format!("synced {}{waiting}", format::ago(at, now)),
            None => format!("not synced yet{waiting}"),
        }
    }

    /// The line for `status`.
    pub fn line(&self, now: DateTime<Utc>) -> String {
        let text = self.text(now);
        let mut hint = match (&self.problem, &self.remote) {
            (Some(_), _) => " · anamnesis doctor",
            (None, None) => " · anamnesis init --remote URL",
            (None, Some(_)) if self.history.held.is_some() => " · anamnesis sync",
            _ => "",
        }
        .to_owned();
        let width = format::width().saturating_sub("sync:  ".len());
        let mut room = width.saturating_sub(hint.chars().count());
        if room < format::MIN_ROOM && text.chars().count() > room {
            hint = hint.replace(" · ", "\n       → ");
            room = width;
        }
        let text = match &self.remote {
            Some(remote) if self.problem.is_none() => {
                let both = format!("{remote} · {text}");
                // If both do not fit, the state matters more than the address.
                if both.chars().count() <= room {
                    both
                } else {
                    text
                }
            }
            _ => text,
        };
        format!("sync:  {}{hint}\n", format::shorten(&text, room))
    }

    /// The full state as JSON.
    pub fn json(&self) -> Value {
        let at = |milliseconds: Option<i64>| milliseconds.map(format::iso);
        json!({
            "initialized": self.state.initialized,
            "remote": self.remote,
            "head": self.state.head,
            "dirty": self.state.dirty,
            "ahead": self.state.ahead,
            "waiting": self.state.waiting,
            "synced_at": at(self.history.in_step_at),
            "failing_since": at(self.history.failing_since),
            "offline": self.history.is_offline,
            "error": self.history.error,
            "held": self.history.held,
            "problem": self.problem,
        })
    }

    /// Returns whether the person may have to do something.
    pub fn needs_attention(&self) -> bool {
        self.problem.is_some()
            || self.history.held.is_some()
            || self.history.failing_since.is_some()
    }

    /// Returns whether a change of the remote is held back until the person decides.
    pub fn is_held(&self) -> bool {
        self.history.held.is_some()
    }

    /// Returns the advice for the person.
    pub fn advice(&self) -> String {
        if self.history.held.is_some() {
            "that is meant: anamnesis sync --accept; it is not: anamnesis sync --restore".to_owned()
        } else if let Some(advice) = &self.history.advice {
            advice.clone()
        } else if self.history.is_offline {
            "check the network, then: anamnesis sync".to_owned()
        } else {
            "anamnesis sync   (says what is wrong)".to_owned()
        }
    }
}

/// Describes what was held back, in one sentence.
pub fn held_text(held: &Held) -> String {
    match held {
        Held::MassDeletion { gone, of } => format!("the remote dropped {gone} of {of} notes"),
        Held::LocalMassDeletion { gone, of } => {
            format!("{gone} of {of} notes are gone from memory/")
        }
        Held::Rewritten => "the remote's history was rewritten".to_owned(),
    }
}

/// Says that another machine brought back what was purged.
pub fn returned_text(note: NoteId) -> String {
    let short = note.short();
    format!(
        "another machine brought purged text back with #{short}: anamnesis purge {short}, or: anamnesis purge --find"
    )
}

/// Remembers which notes are not pushed because of what is in them.
fn keep_withheld(
    context: &Context,
    journal: &Journal,
    synced: &Synced,
) -> Result<(), journal::Error> {
    let problems = synced.problems.iter();
    let withheld = problems.filter(|problem| problem.reason == WITHHELD);
    let mut paths = withheld_paths(context, journal)?;
    paths.extend(withheld.map(|problem| problem.path.clone()));
    journal.set_json(WITHHELD_NOTES, &paths)
}

/// Returns the paths of these notes, without those that were changed since.
fn withheld_paths(
    context: &Context,
    journal: &Journal,
) -> Result<BTreeSet<String>, journal::Error> {
    let mut paths: BTreeSet<String> = journal.json(WITHHELD_NOTES)?.unwrap_or_default();
    paths.retain(|path| {
        let bytes = fs::read(context.home.root().join(path));
        let name = path.trim_start_matches("memory/");
        bytes.is_ok_and(|bytes| is_withheld(name, &bytes))
    });
    Ok(paths)
}

/// Says which notes are not pushed because of what is in them.
pub fn withheld(context: &Context, journal: &Journal) -> Vec<String> {
    let paths = withheld_paths(context, journal).unwrap_or_default();
    let lines = paths
        .iter()
        .map(|path| format!("{} {WITHHELD}", one_line(path)));
    lines.collect()
}

/// Returns what to do about an error, if known.
fn advice(error: &anamnesis_sync::Error) -> Option<String> {
    match error {
        anamnesis_sync::Error::Network(error) => error.advice(),
        _ => None,
    }
}

/// Returns the configured remote, if any.
pub fn remote(context: &Context) -> Result<Option<Remote>, Error> {
    let Some(address) = remote::address(context) else {
        return Ok(None);
    };
    remote::parse(address, &context.home, &context.config)
        .map(Some)
        .map_err(|error| {
            Error::usage(format!("the remote cannot be used: {error}"))
                .because(error)
                .hint("anamnesis init --remote URL")
        })
}

/// Returns the step of a running sync, in words.
fn running_step(context: &Context, journal: &Journal) -> Option<String> {
    let value = journal.meta(STEP).ok()??;
    let (at, step) = value.split_once(' ')?;
    let at = format::time(at.parse().ok()?);
    let is_running = context.environment.current_time() - at <= LONGEST_STEP;
    is_running.then(|| step.to_owned())
}

/// A sync backend that records its results in the journal.
pub struct Carrier<'a> {
    context: &'a Context,
    journal: Option<&'a Journal>,
    has_remote: bool,
    begun: DateTime<Utc>,
    backend: GitBackend<'a>,
}

impl<'a> Carrier<'a> {
    /// Creates a backend for a remote, or for local commits only if there is none.
    pub fn new(
        context: &'a Context,
        journal: Option<&'a Journal>,
        remote: Option<Remote>,
        answer: HeldDecision,
        timeout: Duration,
    ) -> Self {
        let has_remote = remote.is_some();
        let backend = backend(context, journal, remote, answer, timeout).on_step(move |step| {
            let at = context.environment.current_time().timestamp_millis();
            let value = format!("{at} {step}");
            if let Some(journal) = journal {
                context.log_error("sync", journal.set_meta(STEP, &value));
            }
        });
        Self {
            context,
            journal,
            has_remote,
            begun: context.environment.current_time(),
            backend,
        }
    }

    fn keep(&self, result: &Result<Synced, anamnesis_sync::Error>) -> Result<(), journal::Error> {
        let Some(journal) = self.journal else {
            return Ok(());
        };
        let environment = &self.context.environment;
        journal.remove_meta(STEP)?;
        if self.has_remote {
            let mut history = History::load(journal);
            history.add(result, self.begun.timestamp_millis());
            history.save(journal)?;
        }
        let Ok(synced) = result else {
            return Ok(());
        };
        let returned = synced.returned.iter().map(|id| {
            let text = returned_text(*id);
            LeftPlace::new(text, None, environment.now)
        });
        let returned: Vec<LeftPlace> = returned.collect();
        if !returned.is_empty() {
            left::add(journal, &returned, environment.now)?;
        }
        if synced.pulled > 0 {
            // Other machines may have found aliases.
            let home = &self.context.home;
            Identities::new(journal, home, environment.now, Duration::ZERO).refresh()?;
        }
        keep_withheld(self.context, journal, synced)?;
        journal.know(synced.changed.iter().map(|path| path.id))?;
        if synced.changed.is_empty() {
            return Ok(());
        }
        // The current time, not the start of the sync: prompts in between did not have these notes
        // yet.
        let arrived = environment.current_time().timestamp_millis();
        journal.set_meta(ARRIVED, &arrived.to_string())
    }

    /// Inspects the remote. Joins nothing and changes no note.
    pub fn init(&self) -> Result<Reached, anamnesis_sync::Error> {
        self.backend.init()
    }

    /// Syncs, and records the result.
    pub fn sync(&self) -> Result<Synced, anamnesis_sync::Error> {
        let result = self.backend.sync();
        self.context.log_error("sync", self.keep(&result));
        let changed = self.backend.changed();
        let left = leave_records_of_gone(self.context, self.journal, changed);
        self.context.log_error("sync", left);
        for problem in result.iter().flat_map(|synced| &synced.problems) {
            let reason = one_line(&problem.reason);
            self.context
                .log(&format!("sync: {}: {reason}", problem.path));
        }
        if result.is_err() {
            log_set_aside(self.context, &self.backend);
        }
        result
    }
}

impl From<anamnesis_sync::Error> for Error {
    fn from(error: anamnesis_sync::Error) -> Self {
        let hint = advice(&error).unwrap_or_else(|| {
            let text = if matches!(error, anamnesis_sync::Error::Damaged { .. }) {
                "anamnesis doctor --fix   (replaces the damaged repository; no note is lost)"
            } else if error.may_be_damage() {
                "anamnesis doctor --fix   (checks the repository)"
            } else if matches!(error, anamnesis_sync::Error::Busy) {
                TRY_AGAIN
            } else {
                "no note is lost; once it is fixed: anamnesis sync"
            };
            text.to_owned()
        });
        Self::failed(format!("sync: {error}"))
            .because(error)
            .hint(hint)
    }
}

/// How long a sync waits for another one.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// Syncs with the configured remote.
pub fn run(
    context: &Context,
    journal: Option<&Journal>,
    answer: HeldDecision,
    timeout: Duration,
) -> Result<Synced, Error> {
    let carrier = Carrier::new(context, journal, remote(context)?, answer, timeout);
    Ok(carrier.sync()?)
}

/// Syncs now, with a person's decision about what was held back.
pub fn run_now(context: &Context, answer: HeldDecision) -> Result<Synced, Error> {
    if answer != HeldDecision::None {
        context.check_person("decide on changes that sync held back")?;
    }
    let journal = context.journal();
    if let Some(journal) = &journal {
        claude_memory::follow(context, journal);
    }
    run(context, journal.as_ref(), answer, TIMEOUT)
}

/// Creates a backend that does not record its results.
pub fn backend<'a>(
    context: &'a Context,
    journal: Option<&Journal>,
    remote: Option<Remote>,
    answer: HeldDecision,
    timeout: Duration,
) -> GitBackend<'a> {
    let settings = Settings {
        machine_id: context.machine_id(),
        remote,
        environment: context.environment.for_git(),
        now: context.environment.now,
        timeout,
        time_limit: TIME_LIMIT,
        answer,
    };
    // The purged texts are recognised in every session.
    let purged = journal.and_then(|journal| journal.echoes("").ok());
    GitBackend::new(&context.home, &context.notes, settings).recognising(purged.unwrap_or_default())
}

/// Returns the other machines in the git history of the notes.
pub fn other_machines(context: &Context) -> Vec<String> {
    let own = context.machine_id();
    let repository = context.repository().ok().flatten();
    let machines = repository.and_then(|repository| repository.machines_in_history().ok());
    let mut machines = machines.unwrap_or_default();
    machines.retain(|machine| *machine != own);
    machines
}

/// The verb of the commits that forget a session. They are not undone.
pub(crate) const FORGET_SESSION: &str = "forget-session";

/// Commits a command's changes to notes. Returns the change that `undo` reverts.
///
/// If the commit fails, the change cannot be undone. The notes are on disk, and the deferred
/// process commits them later.
pub fn commit(
    context: &Context,
    verb: &str,
    notes: impl IntoIterator<Item = NoteId>,
) -> Option<Ulid> {
    if context.tool.is_some() {
        spawn::work_soon(context);
        return None;
    }
    commit_by(context, context.actor(), verb, notes)
}

/// Like [`commit`], with a given actor.
pub fn commit_by(
    context: &Context,
    actor: &str,
    verb: &str,
    notes: impl IntoIterator<Item = NoteId>,
) -> Option<Ulid> {
    let ids: BTreeSet<NoteId> = notes.into_iter().collect();
    let act = Act { verb, actor };
    let machine = context.machine_id();
    let commit = || -> Result<Option<Ulid>, anamnesis_sync::Error> {
        let now = context.environment.now;
        let repository = Repository::open(&context.home, &machine, now)?.map_or_else(
            || {
                let lock = context.notes.lock()?;
                Repository::open_or_create(&context.home, &lock, &machine, now)
            },
            Ok,
        )?;
        let committed = repository.commit_notes_beside(&context.notes, &ids, act)?;
        Ok(committed.map(|committed| committed.batch))
    };
    commit().unwrap_or_else(|error| {
        context.log(&format!("{verb}: not committed yet: {error}"));
        None
    })
}

/// Commits what notes are before a command changes them. Otherwise the undo of the change would also
/// undo an earlier edit, or remove a note that was never committed.
pub fn commit_earlier(context: &Context, notes: impl IntoIterator<Item = NoteId>) {
    if context.tool.is_none() {
        commit_by(context, "machine", "sync", notes);
    }
}

/// Commits all changes in `memory/`, whether hooks wrote them or somebody edited files. Waits for a sync
/// that runs, such as that of the background process.
pub fn commit_all(context: &Context) -> Result<(), Error> {
    commit_folder(context, context::TIMEOUT).map_err(not_committed)
}

fn commit_folder(context: &Context, timeout: Duration) -> Result<(), anamnesis_sync::Error> {
    let backend = backend(context, None, None, HeldDecision::None, timeout);
    let committed = backend.commit();
    log_set_aside(context, &backend);
    if let Ok(committed) = &committed
        && committed.problems.iter().any(|it| it.reason == WITHHELD)
        && let Some(journal) = context.journal()
    {
        context.log_error("commit", keep_withheld(context, &journal, committed));
    }
    committed.map(drop)
}

/// Logs that a damaged repository was set aside, if it was.
fn log_set_aside(context: &Context, backend: &GitBackend<'_>) {
    if let Some(line) = set_aside_line(context, backend) {
        context.log(&format!("sync: {line}"));
    }
}

/// Returns a line that says that a damaged repository was set aside, if it was.
fn set_aside_line(context: &Context, backend: &GitBackend<'_>) -> Option<String> {
    let aside = backend.set_aside()?;
    let folder = context.home.relative(&aside.folder);
    Some(one_line(&format!("memory/.git {}", aside.text(&folder))))
}

/// Checks the repository of the notes and replaces a damaged one. Returns what was done, if
/// anything.
pub fn repair(
    context: &Context,
    timeout: Duration,
) -> Result<Option<String>, anamnesis_sync::Error> {
    let backend = backend(context, None, None, HeldDecision::None, timeout);
    backend.repair()?;
    Ok(set_aside_line(context, &backend))
}

/// Like [`commit_all`], but does nothing while another process syncs, which commits everything
/// first.
pub fn commit_what_is_left(context: &Context) -> Result<(), Error> {
    match commit_folder(context, Duration::ZERO) {
        Ok(()) | Err(anamnesis_sync::Error::Busy) => Ok(()),
        Err(error) => Err(not_committed(error)),
    }
}

/// Commits what hooks and editors changed before the history is shown. Errors are only logged: the history
/// is shown without it.
pub fn commit_pending(context: &Context) {
    let is_new = matches!(context.repository(), Ok(None));
    if is_new && context.notes.list().notes.is_empty() {
        return;
    }
    if let Err(failure) = commit_what_is_left(context) {
        context.log(failure.text().trim_end());
    }
}

fn not_committed(error: anamnesis_sync::Error) -> Error {
    Error::failed(format!("commit: {error}")).because(error)
}

/// Formats a change's id for people.
pub fn short_change(batch: Ulid) -> String {
    let name = batch.to_string();
    name[name.len() - SHORT_BATCH..].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_repository_is_promised_only_where_this_one_is_damaged() {
        let hint = |error| {
            let error = Error::from(error);
            error.next_step().unwrap_or_default().to_owned()
        };
        let damaged = anamnesis_sync::Error::Damaged {
            path: "memory".into(),
            reason: "no HEAD".to_owned(),
        };
        assert!(hint(damaged).contains("replaces the damaged repository"));
        let failed = anamnesis_sync::Error::Network(anamnesis_sync::git::Error::Failed {
            task: anamnesis_sync::git::Task::Configuration,
            words: "bad object HEAD".to_owned(),
        });
        assert!(failed.may_be_damage());
        assert_eq!(
            hint(failed),
            "anamnesis doctor --fix   (checks the repository)"
        );
    }

    #[test]
    fn a_sync_is_due_when_asked_for_and_not_too_soon_after_failures() {
        let minute = 60_000;
        let fresh = History::default();
        assert!(fresh.is_due(None, 0));
        let well = History {
            tried_at: Some(10 * minute),
            ..History::default()
        };
        assert!(!well.is_due(Some(9 * minute), 20 * minute));
        assert!(well.is_due(Some(11 * minute), 20 * minute));
        assert!(
            well.is_due(Some(5 * minute), 9 * minute),
            "a clock that was ahead"
        );
        for (failures, wait) in [(1, 1), (2, 5), (3, 15), (4, 60), (5, 240), (50, 240)] {
            let failing = History {
                failures,
                ..well.clone()
            };
            let at = |minutes: i64| (10 + minutes) * minute;
            assert!(
                !failing.is_due(Some(at(wait - 1)), at(wait) - 1),
                "{failures}"
            );
            assert!(failing.is_due(None, at(wait)), "{failures}");
            assert!(failing.is_due(None, at(-wait)), "a clock that was set back");
        }
    }

    #[test]
    fn failures_are_counted_until_one_goes_well() {
        let mut history = History::default();
        history.add(&Err(anamnesis_sync::Error::NotOurs(String::new())), 5);
        history.add(&Err(anamnesis_sync::Error::NotOurs(String::new())), 9);
        assert_eq!((history.failing_since, history.failures), (Some(5), 2));
        history.add(&Err(anamnesis_sync::Error::Busy), 10);
        assert_eq!(history.failures, 2);
        let synced = Synced {
            pushed: true,
            sent: true,
            ..Synced::default()
        };
        history.add(&Ok(synced), 12);
        assert_eq!((history.failing_since, history.failures), (None, 0));
        assert_eq!(history.in_step_at, Some(12));
    }
}
