//! Removes notes or a text from the store, the git history and the remote.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    note::Scope,
    purge_pattern::PurgePattern,
    usage_log::{PortableId, Receipt},
};
use anamnesis_store::{
    fs::{file, home::ensure_folder},
    index::{Entry, Index},
    journal::{Journal, Mentions},
    notes::NotePath,
    purge::{self as files, Places},
    session_note,
    usage_log::Receipts,
};
use anamnesis_sync::{
    HeldDecision, Repository,
    purge::{Occurrences, Purge, Purged, Record, Written},
    set_aside_repositories,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use crate::{
    Error,
    context::Context,
    evaluation_set,
    format::{ago, count},
    sync,
};

/// Timeout for other processes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The size limit for a file that is searched, in bytes.
const MAX_LENGTH: usize = 256 * 1024 * 1024;

/// A note that a purge removes or changes.
#[derive(Debug)]
pub struct PlannedNote {
    /// The shortest unique id.
    pub short: String,
    /// The kind for people; `gone` if only history has the note.
    pub kind: &'static str,
    /// The title, without the text that is purged.
    pub title: String,
    /// The commits that wrote it.
    pub written: Option<Written>,
}

/// What a purge would reach. Nothing was changed yet.
#[derive(Debug)]
pub struct PurgePlan<'a> {
    context: &'a Context,
    journal: Option<Journal>,
    purge: Purge,
    /// The notes.
    pub notes: Vec<PlannedNote>,
    /// The files of the store.
    pub places: Places,
    /// The databases with the text in free pages only.
    pub databases: Vec<String>,
    /// The git history.
    pub standing: Occurrences,
    /// The rows of the journal.
    pub records: Mentions,
    /// The client's transcripts, which are not changed.
    pub transcripts: BTreeSet<PathBuf>,
}

/// The result of a purge, and what the person has to do now.
#[derive(Debug)]
pub struct PurgeOutcome {
    /// What became of the history and the remote.
    pub purged: Purged,
    /// The places that still contain the text.
    pub remaining: BTreeSet<String>,
    /// When the text was first pushed to the remote.
    pub pushed_at: Option<DateTime<Utc>>,
    /// The remote, for people.
    pub remote: Option<String>,
    /// The machines whose own records may contain the text.
    pub other_machines: Vec<String>,
    /// Damaged repositories that were set aside and may contain the text.
    pub set_aside: Vec<PathBuf>,
}

/// Completes an earlier purge that was killed. Only a person may purge.
pub fn begin(context: &Context) -> Result<(), Error> {
    if context.environment.is_agent {
        return Err(
            Error::failed("0 places: only a person purges, since that cannot be undone")
                .hint("anamnesis forget ID   (one note, which can be brought back)"),
        );
    }
    let unfinished =
        sync::backend(context, None, None, HeldDecision::None, PATIENCE).finish_purge();
    unfinished.map_err(|error| {
        Error::failed(format!(
            "0 places: an earlier purge is not finished: {error}"
        ))
        .because(error)
    })
}

/// Finds whole notes by their ids.
pub fn find_notes<'a>(context: &'a Context, ids: &[String]) -> Result<PurgePlan<'a>, Error> {
    let index = context.index()?;
    let mut entries = BTreeMap::new();
    for typed in ids {
        let entry = Context::resolve(&index, typed).map_err(|failure| {
            let text = failure.text();
            let text = text.trim_start_matches("anamnesis: ").trim_end();
            Error::failed(format!("0 places: {text}"))
        })?;
        entries.insert(entry.id(), entry);
    }
    let purge = Purge {
        ids: entries.keys().copied().collect(),
        needle: None,
    };
    let standing = standing(context, &purge)?;
    let notes = entries.iter().map(|(id, entry)| PlannedNote {
        short: Context::short(&index, *id),
        kind: entry.shown_kind(),
        title: one_line(&entry.title),
        written: standing.notes.get(id).cloned(),
    });
    let notes = notes.collect();
    let places = Places {
        notes: entries.values().map(|entry| entry.path).collect(),
        ..Places::default()
    };
    Ok(PurgePlan {
        context,
        journal: context.journal(),
        purge,
        notes,
        places,
        databases: unfinished(context).into_iter().collect(),
        standing,
        records: Mentions::default(),
        transcripts: BTreeSet::new(),
    })
}

/// Finds a text everywhere.
pub fn find_text<'a>(context: &'a Context, needle: &PurgePattern) -> Result<PurgePlan<'a>, Error> {
    let places = files::find(&context.home, needle).map_err(refused)?;
    let journal = context.journal();
    let records = match &journal {
        Some(journal) => journal.mentions(needle)?,
        None => Mentions::default(),
    };
    let purge = Purge {
        needle: Some(needle.clone()),
        ..Purge::default()
    };
    let mut plan = PurgePlan {
        context,
        notes: Vec::new(),
        databases: unfinished(context).into_iter().collect(),
        standing: standing(context, &purge)?,
        transcripts: BTreeSet::new(),
        journal,
        purge,
        places,
        records,
    };
    let of_files = plan.places.notes.iter().map(|path| path.id);
    let of_history = plan.standing.notes.keys().copied();
    let ids: BTreeSet<NoteId> = of_files.chain(of_history).collect();
    // Also removes from the index what was deleted by hand.
    let index = context.index()?;
    if ids.is_empty() && plan.count() == 0 {
        // An earlier run that was killed may have changed rows but left their bytes in the file.
        plan.databases = databases_with(context, needle).collect();
        if plan.databases.is_empty() {
            return Ok(plan);
        }
    }
    for id in &ids {
        let entry = index.get(*id)?;
        plan.notes.push(PlannedNote {
            short: Context::short(&index, *id),
            kind: entry.as_ref().map_or("gone", Entry::shown_kind),
            title: entry.map_or_else(String::new, |entry| {
                one_line(&needle.mask_text(&entry.title).unwrap_or(entry.title))
            }),
            written: plan.standing.notes.get(id).cloned(),
        });
    }
    plan.transcripts = plan.transcripts_with(&ids, needle);
    Ok(plan)
}

/// A place that a purge changes or names, for people.
#[derive(Debug)]
pub struct FoundPlace {
    /// What it is: `note`, `file`, `history`, `records`, `Claude` or `left`.
    pub what: &'static str,
    /// Which one, in one or two lines.
    pub text: String,
}

impl FoundPlace {
    fn new(what: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { what, text }
    }
}

impl PurgePlan<'_> {
    /// Returns the places that were found, including those that are left alone.
    pub fn listed(&self) -> Vec<FoundPlace> {
        let now = self.context.environment.now;
        let notes = self.notes.iter().map(|note| note_place(note, now));
        let mut listed: Vec<FoundPlace> = notes.collect();
        let files = self.places.files.iter().chain(&self.databases);
        listed.extend(files.map(|name| FoundPlace::new("file", one_line(name))));
        let others = self.standing.others.iter();
        listed.extend(others.map(|name| FoundPlace::new("history", one_line(name))));
        if self.standing.messages > 0 {
            let commits = count(self.standing.messages, "commit");
            let text = format!("what {commits} says of itself");
            listed.push(FoundPlace::new("history", text));
        }
        if self.records.count() > 0 {
            listed.push(FoundPlace::new("records", records_text(&self.records)));
        }
        for path in &self.transcripts {
            let path = one_line(&self.context.shown(path));
            let text = format!("{path}\nits transcript: not ours, left alone");
            listed.push(FoundPlace::new("Claude", text));
        }
        listed.extend(self.left());
        listed
    }

    /// Returns the places that contain the text but do not belong to us.
    pub fn left(&self) -> Vec<FoundPlace> {
        let left = self.places.left.iter().map(|name| {
            let whose = if name == "config.json" {
                "your settings: change them yourself, with anamnesis config"
            } else {
                "not ours, left alone"
            };
            FoundPlace::new("left", format!("{}   {whose}", one_line(name)))
        });
        left.collect()
    }

    /// Returns what the person has to do after the purge.
    pub fn steps(&self, done: &PurgeOutcome) -> Vec<String> {
        let mut steps = Vec::new();
        if self.purge.needle.is_some() {
            steps.push(match (done.pushed_at, &done.remote) {
                (Some(since), Some(place)) => {
                    let lasted = lasted(since, self.context.environment.now);
                    format!("change the secret: it was on {place} for {lasted}")
                }
                _ => "if it is a secret, change it: it was on this disk".to_owned(),
            });
            if !done.other_machines.is_empty() {
                steps.push(format!(
                    "on {} too: anamnesis purge --find   (its records are its own)",
                    one_line(&done.other_machines.join(", "))
                ));
            }
            if !self.transcripts.is_empty() {
                steps.push("remove Claude's transcript, or let it expire".to_owned());
            }
        }
        for folder in &done.set_aside {
            steps.push(format!(
                "a damaged repository that was set aside may hold it: rm -rf {}",
                one_line(&self.context.shown(folder))
            ));
        }
        if let Some(reason) = &done.purged.remote_left {
            steps.push(format!(
                "on {}, drop what is no longer named: git gc --prune=now\n        ({})",
                done.remote.as_deref().unwrap_or_default(),
                one_line(reason)
            ));
        }
        steps
    }

    /// The number of places that the purge changes.
    pub fn count(&self) -> usize {
        let history = self.standing.others.len() + usize::from(self.standing.messages > 0);
        let files = self.places.files.len() + self.databases.len();
        self.notes.len() + files + self.records.count() + history
    }

    /// Purges everything that was found. `again` is the command that continues after a failure.
    pub fn purge(&self, again: &str) -> Result<PurgeOutcome, Error> {
        let context = self.context;
        let marker = marker(context);
        ensure_folder(&context.home.derived()).map_err(Error::caused_by)?;
        file::write_atomic(&marker, b"").map_err(Error::caused_by)?;
        match &self.purge.needle {
            Some(needle) => self.mask(needle)?,
            None => self.bury()?,
        }
        let purged = self.rewrite(again);
        // Derived files are rebuilt even if the history could not be rewritten.
        Index::rebuild(&context.home, &context.notes, PATIENCE)?;
        let purged = purged?;
        fs::remove_file(&marker).map_err(Error::caused_by)?;
        let written = self.notes.iter().filter_map(|note| note.written.as_ref());
        Ok(PurgeOutcome {
            purged,
            remaining: self.remaining()?,
            pushed_at: written.filter_map(|written| written.pushed_at).min(),
            remote: sync::remote(context)?.map(|remote| one_line(remote.place())),
            other_machines: sync::other_machines(context),
            set_aside: set_aside_repositories(&context.home),
        })
    }

    /// Replaces the notes with tombstones.
    fn bury(&self) -> Result<(), Error> {
        let context = self.context;
        let now = context.environment.now;
        if let Some(journal) = &self.journal {
            for id in &self.purge.ids {
                journal.forget_injected(*id)?;
            }
            for path in &self.places.notes {
                if let Ok(stored) = context.notes.read(*path) {
                    journal.forgot(path.id, &stored.file.note().body, now)?;
                }
            }
        }
        let lock = context.notes.lock()?;
        let ids = &self.purge.ids;
        evaluation_set::forget_notes(&context.home, |id| ids.contains(&id))?;
        let buried = files::bury(&context.home, &lock, &context.notes, ids, now);
        buried.map_err(refused)
    }

    /// Masks the text in records and files.
    fn mask(&self, needle: &PurgePattern) -> Result<(), Error> {
        let context = self.context;
        if let Some(journal) = &self.journal {
            journal.purged(needle)?;
            journal.mask(needle)?;
        }
        let own = self.own_notes();
        let lock = context.notes.lock()?;
        let masked = files::mask(&context.home, &lock, &context.notes, needle);
        masked.map_err(refused)?;
        drop(lock);
        let Some(journal) = &self.journal else {
            return Ok(());
        };
        for (session, path) in own {
            if let Ok(stored) = context.notes.read(path) {
                session_note::keep_own(journal, &session, stored.file.note())?;
            }
        }
        Ok(())
    }

    /// The session notes whose text capture wrote.
    fn own_notes(&self) -> Vec<(String, NotePath)> {
        let own = self.places.notes.iter().filter_map(|path| {
            let stored = self.context.notes.read(*path).ok()?;
            let note = stored.file.note();
            let session = note.session.clone()?;
            session_note::is_own(self.journal.as_ref()?, &session, note).then_some((session, *path))
        });
        own.collect()
    }

    /// Rewrites notes, history and remote, and writes the receipt for other machines.
    fn rewrite(&self, again: &str) -> Result<Purged, Error> {
        let context = self.context;
        let remote = sync::remote(context)?;
        let machine = context.machine_id();
        let receipts = Receipts::new(context.home.clone());
        let journal = Journal::open(&context.home, PATIENCE)?;
        // A portable history may contain a note that is machine-local now.
        let portable = |ids: &BTreeSet<NoteId>| {
            let ids = ids.iter();
            ids.filter_map(|id| PortableId::new(*id, Scope::Portable))
                .collect()
        };
        let mut write_record = |what: &Record| {
            let mut receipt = Receipt::new(context.environment.now);
            receipt.gone = portable(&what.gone);
            receipt.masked = portable(&what.masked);
            Ok(receipts.append(&journal, &machine, &receipt, PATIENCE)?)
        };
        let backend = sync::backend(
            context,
            Some(&journal),
            remote,
            HeldDecision::None,
            PATIENCE,
        );
        let purged = backend.purge(&self.purge, &mut write_record);
        purged.map_err(|error| match error {
            anamnesis_sync::Error::Held => Error::caused_by(error).hint(format!(
                "anamnesis sync   (says what needs a decision); then: {again}"
            )),
            anamnesis_sync::Error::Network(ref network) => {
                let hint = match network.advice() {
                    Some(advice) => format!("{advice}\n  then: {again}"),
                    None => format!("once that is fixed: {again}"),
                };
                Error::failed(format!(
                    "files and records here are purged, git history and the remote are as before: {error}"
                ))
                .because(error)
                .hint(hint)
            }
            error => Error::failed(format!("not all is purged: {error}"))
                .because(error)
                .hint(format!("again: {again}")),
        })
    }

    /// Finds the places that still contain the text.
    fn remaining(&self) -> Result<BTreeSet<String>, Error> {
        let context = self.context;
        let Some(needle) = &self.purge.needle else {
            return Ok(BTreeSet::new());
        };
        let places = files::find(&context.home, needle).map_err(refused)?;
        let mut left: BTreeSet<String> = places.notes.iter().map(ToString::to_string).collect();
        left.extend(places.files);
        left.extend(places.left);
        let mentions = self
            .journal
            .as_ref()
            .map(|journal| journal.mentions(needle));
        if matches!(mentions, Some(Ok(found)) if found.count() > 0) {
            left.insert("journal.db".to_owned());
        }
        left.extend(databases_with(context, needle));
        if !standing(context, &self.purge)?.is_empty() {
            left.insert("memory/.git".to_owned());
        }
        Ok(left)
    }

    /// The transcripts that contain the text, among sessions whose records or notes do.
    fn transcripts_with(
        &self,
        notes: &BTreeSet<NoteId>,
        needle: &PurgePattern,
    ) -> BTreeSet<PathBuf> {
        let context = self.context;
        let of_notes = notes.iter().filter_map(|id| {
            let path = context.notes.find(*id)?;
            context.notes.read(path).ok()?.file.into_note().session
        });
        let sessions: BTreeSet<String> = of_notes
            .chain(self.records.sessions.iter().cloned())
            .collect();
        let paths = sessions.iter().filter_map(|session| {
            let session = self.journal.as_ref()?.session(session).ok().flatten()?;
            session.transcript.map(PathBuf::from)
        });
        paths.filter(|path| holds(path, needle)).collect()
    }
}

/// Where the git history has the notes or the text.
fn standing(context: &Context, purge: &Purge) -> Result<Occurrences, Error> {
    let failed = |error: anamnesis_sync::Error| Error::caused_by(error).hint("anamnesis doctor");
    let machine = context.machine_id();
    let repository = Repository::open(&context.home, &machine, context.environment.now);
    match repository.map_err(failed)? {
        Some(repository) => repository.standing(purge).map_err(failed),
        None => Ok(Occurrences::default()),
    }
}

/// The file that exists while a purge is under way. The index and git's objects are compressed, so no
/// search finds what a purge that was killed left there.
fn marker(context: &Context) -> PathBuf {
    context.home.derived().join("purge.unfinished")
}

/// Returns the file in which an unfinished purge may have left its text.
fn unfinished(context: &Context) -> Option<String> {
    let index = || context.home.relative(&context.home.index());
    marker(context).exists().then(index)
}

/// The databases whose files contain the text, also in free pages.
fn databases_with<'a>(
    context: &'a Context,
    needle: &'a PurgePattern,
) -> impl Iterator<Item = String> + 'a {
    let databases = [context.home.journal(), context.home.index()];
    let files = databases.into_iter().flat_map(|path| {
        ["", "-wal"].map(|suffix| PathBuf::from(format!("{}{suffix}", path.display())))
    });
    files
        .filter(|path| holds(path, needle))
        .map(|path| context.home.relative(&path))
}

fn holds(path: &Path, needle: &PurgePattern) -> bool {
    file::read_head(path, MAX_LENGTH).is_ok_and(|(bytes, ..)| needle.is_in(&bytes))
}

fn refused(error: files::Error) -> Error {
    let hint = match error {
        files::Error::Structural(_) => "ask for a longer part of the text",
        _ => "anamnesis doctor",
    };
    Error::caused_by(error).hint(hint)
}

fn note_place(note: &PlannedNote, now: DateTime<Utc>) -> FoundPlace {
    let history = match &note.written {
        None => "in no commit".to_owned(),
        Some(written) => {
            let commits = count(written.commits, "commit");
            match written.pushed_at {
                Some(at) => format!("{commits}, pushed {}", ago(at, now)),
                None => format!("{commits}, not pushed"),
            }
        }
    };
    let title = match note.title.as_str() {
        "" => String::new(),
        title => format!(" \"{title}\""),
    };
    let text = format!("#{} {}{title} · {history}", note.short, note.kind);
    FoundPlace::new("note", text)
}

fn records_text(mentions: &Mentions) -> String {
    let (prompts, events) = (mentions.count_in("prompt"), mentions.count_in("tool_event"));
    let others = mentions.count() - prompts - events;
    let named = [
        (prompts, "prompt"),
        (events, "tool event"),
        (others, "other record"),
    ];
    let named: Vec<String> = named
        .into_iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, thing)| count(amount, thing))
        .collect();
    let sessions = match mentions.sessions.len() {
        0 => String::new(),
        1 => " of one session".to_owned(),
        many => format!(" of {}", count(many, "session")),
    };
    format!("{}{sessions}", named.join(", "))
}

/// Formats how long something has existed.
fn lasted(since: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - since).num_minutes() {
        ..1 => "a moment".to_owned(),
        minutes @ 1..60 => format!("{minutes} min"),
        minutes @ 60..2_880 => format!("{} h", minutes / 60),
        minutes => format!("{} d", minutes / 1_440),
    }
}
