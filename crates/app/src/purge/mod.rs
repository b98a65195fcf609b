//! Removes notes or a text from the store, the git history and the remote.

pub(crate) mod left;
mod places;
mod search;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
    time::Duration,
};

use anamnesis_note::{id::NoteId, note::NoteFile, purge_pattern::PurgePattern};
use anamnesis_store::{
    fs::{file, home::ensure_folder},
    index::{Entry, Index},
    journal::Journal,
    notes::NotePath,
    purge::{self as files, MaskedFiles},
    session_note,
    synced_lines::{mark_purged, purge_marks},
};
use anamnesis_sync::{
    HeldDecision,
    purge::{Purge, PurgeMarks, Purged},
    purge_search::Written,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use self::search::{former_stores, has_text, search};
pub use self::{left::LeftPlace, places::FoundPlace, search::FoundText};
use crate::{
    Error,
    context::Context,
    deferred, evaluation_set,
    forget::records::{leave_records, leave_records_of_gone, marks_seen},
    project_history, sync,
};

/// Timeout for other processes.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The most old versions of a note whose text is searched.
const MAX_VERSIONS: usize = 200;

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

/// The reach of a purge. Nothing was changed yet.
#[derive(Debug)]
pub struct PurgePlan<'a> {
    context: &'a Context,
    journal: Option<Journal>,
    purge: Purge,
    /// The text: the typed one, or that of the notes.
    text: Option<PurgePattern>,
    /// The notes.
    pub notes: Vec<PlannedNote>,
    /// The places of the notes and the text.
    pub found: FoundText,
    /// The client's transcripts, which are not changed.
    pub transcripts: BTreeSet<PathBuf>,
}

/// The result of a purge, and what the person has to do now.
#[derive(Debug)]
pub struct PurgeOutcome {
    /// The result for the history and the remote.
    pub purged: Purged,
    /// The places of ours that still contain the text.
    pub remaining: BTreeSet<String>,
    /// Other notes with the same text. A purge of notes leaves them.
    pub other_notes: Vec<String>,
    /// The time of the first commit with the text that was pushed to the remote, perhaps later.
    pub pushed_at: Option<DateTime<Utc>>,
    /// The remote, for people.
    pub remote: Option<String>,
    /// The places that were not reached.
    pub left: Vec<LeftPlace>,
}

/// Completes an earlier purge that was killed. Only a person may purge.
pub fn begin(context: &Context) -> Result<(), Error> {
    context.check_person("purge, which cannot be undone")?;
    let unfinished = sync::backend(context, None, None, HeldDecision::None, TIMEOUT).finish_purge();
    unfinished.map_err(Error::prefixed(
        "nothing was purged: an earlier purge is not finished",
    ))
}

/// Finds whole notes by their ids.
pub fn find_notes<'a>(context: &'a Context, ids: &[String]) -> Result<PurgePlan<'a>, Error> {
    let index = context.index()?;
    let mut entries = BTreeMap::new();
    for typed in ids {
        let entry = Context::resolve(&index, typed).map_err(|failure| {
            let text = failure.text();
            let text = text.trim_start_matches("anamnesis: ").trim_end();
            Error::failed(format!("nothing was purged: {text}"))
        })?;
        entries.insert(entry.id(), entry);
    }
    let ids: BTreeSet<NoteId> = entries.keys().copied().collect();
    let patterns = ids.iter().flat_map(|id| texts_of(context, *id));
    let text = PurgePattern::any(patterns);
    let purge = Purge { ids, needle: None };
    let mut plan = PurgePlan::search(context, purge, text)?;
    let notes = entries.iter().map(|(id, entry)| PlannedNote {
        short: Context::short(&index, *id),
        kind: entry.shown_kind(),
        title: one_line(&entry.title),
        written: plan.found.history.notes.get(id).cloned(),
    });
    plan.notes = notes.collect();
    plan.find_transcripts();
    Ok(plan)
}

/// The texts that a note has and had.
fn texts_of(context: &Context, id: NoteId) -> Vec<PurgePattern> {
    let path = context.notes.find(id);
    let current = path.and_then(|path| context.notes.bytes(path).ok());
    let versions = context.repository().ok().flatten();
    let versions = versions.and_then(|it| it.versions(id, MAX_VERSIONS).ok());
    let versions = versions.unwrap_or_default().into_iter();
    let versions = versions.filter_map(|version| Some(version.file?.bytes));
    let all = current.into_iter().chain(context.notes.trashed(id));
    let all: BTreeSet<Vec<u8>> = all.chain(versions).collect();
    let notes = all
        .iter()
        .filter_map(|bytes| NoteFile::parse(bytes, id).ok());
    notes
        .filter_map(|file| PurgePattern::from_note(file.note()))
        .collect()
}

/// Finds a text everywhere.
pub fn find_text<'a>(context: &'a Context, needle: &PurgePattern) -> Result<PurgePlan<'a>, Error> {
    let purge = Purge {
        needle: Some(needle.clone()),
        ..Purge::default()
    };
    let mut plan = PurgePlan::search(context, purge, Some(needle.clone()))?;
    let of_files = plan.found.files.notes.iter().map(|path| path.id);
    let of_history = plan.found.history.notes.keys().copied();
    let ids: BTreeSet<NoteId> = of_files.chain(of_history).collect();
    // Also removes from the index what was deleted by hand.
    let index = context.index()?;
    for id in ids {
        let entry = index.get(id)?;
        plan.notes.push(PlannedNote {
            short: Context::short(&index, id),
            kind: entry.as_ref().map_or("gone", Entry::shown_kind),
            title: entry.map_or_else(String::new, |entry| {
                one_line(&needle.mask_text(&entry.title).unwrap_or(entry.title))
            }),
            written: plan.found.history.notes.get(&id).cloned(),
        });
    }
    plan.find_transcripts();
    Ok(plan)
}

impl<'a> PurgePlan<'a> {
    fn search(
        context: &'a Context,
        purge: Purge,
        text: Option<PurgePattern>,
    ) -> Result<Self, Error> {
        let mut plan = Self {
            context,
            journal: context.journal(),
            purge,
            text,
            notes: Vec::new(),
            found: FoundText::default(),
            transcripts: BTreeSet::new(),
        };
        plan.found = plan.search_again()?;
        // The index is compressed, so no search finds what a purge that was killed left there.
        if marker(context).exists() {
            let index = context.home.relative(&context.home.index());
            plan.found.databases.insert(index);
        }
        Ok(plan)
    }

    fn search_again(&self) -> Result<FoundText, Error> {
        let searched = Purge {
            ids: self.purge.ids.clone(),
            needle: self.text.clone(),
        };
        search(self.context, self.journal.as_ref(), &searched)
    }

    /// The number of places that the purge changes.
    pub fn count(&self) -> usize {
        let FoundText {
            files,
            records,
            history,
            former,
            ..
        } = &self.found;
        let in_history = history.others.len() + history.references.len();
        let files = files.files.len() + self.free_pages().count();
        let messages = usize::from(history.messages > 0);
        self.notes.len()
            + files
            + records.count()
            + in_history
            + messages
            + former.len()
            + self.found.commits.len()
    }

    /// Purges everything that was found. `again` is the command that continues after a failure.
    pub fn purge(&self, again: &str) -> Result<PurgeOutcome, Error> {
        let context = self.context;
        let now = context.environment.now;
        let marker = marker(context);
        ensure_folder(&context.home.derived()).map_err(Error::caused_by)?;
        file::write_atomic(&marker, b"").map_err(Error::caused_by)?;
        self.remove_from(context, self.journal.as_ref())?;
        if let (false, Some(journal)) = (self.found.commits.is_empty(), &self.journal) {
            // Its process might add them again.
            let held = deferred::hold(context, TIMEOUT)?;
            project_history::leave_out(context, journal, &self.found.commits)?;
            drop(held);
        }
        let mut left = Vec::new();
        for former in former_stores(context) {
            if let Err(error) = self.remove_from_former(&former) {
                let root = former.home.root();
                let text = format!(
                    "a store that a restore kept aside may hold it: rm -rf {}   ({})",
                    one_line(&context.shown(root)),
                    one_line(error.message())
                );
                left.push(LeftPlace::new(text, Some(root), now));
            }
        }
        let purged = self.rewrite(again);
        // Derived files are rebuilt even if the history could not be rewritten.
        Index::rebuild(&context.home, &context.notes, TIMEOUT)?;
        let purged = match purged {
            Ok(purged) => purged,
            Err(error) => {
                let text = format!("{}; again: {again}", one_line(error.message()));
                self.keep_left(&[left, vec![LeftPlace::new(text, Some(&marker), now)]].concat())?;
                return Err(error);
            }
        };
        fs::remove_file(&marker).map_err(Error::caused_by)?;
        left.extend(self.left_places(&purged));
        self.keep_left(&left)?;
        let written = self.notes.iter().filter_map(|note| note.written.as_ref());
        let (remaining, other_notes) = self.remaining()?;
        Ok(PurgeOutcome {
            purged,
            remaining,
            other_notes,
            pushed_at: written.filter_map(|written| written.pushed_at).min(),
            remote: sync::remote(context)?.map(|remote| one_line(remote.place())),
            left,
        })
    }

    fn keep_left(&self, left: &[LeftPlace]) -> Result<(), Error> {
        match &self.journal {
            Some(journal) => Ok(left::add(journal, left, self.context.environment.now)?),
            None => Ok(()),
        }
    }

    /// Removes notes and text from the records and files of a store.
    fn remove_from(&self, store: &Context, journal: Option<&Journal>) -> Result<(), Error> {
        let now = store.environment.now;
        let Purge { ids, needle } = &self.purge;
        if let Some(journal) = journal {
            for id in ids {
                if let Some(stored) = store.notes.find(*id)
                    && let Ok(stored) = store.notes.read(stored)
                {
                    journal.forgot(*id, &stored.file.note().body, now)?;
                }
            }
            if let Some(needle) = needle {
                journal.purged(needle)?;
            }
            if let Some(text) = &self.text {
                journal.mask(text)?;
            }
        }
        let own = match (journal, needle) {
            (Some(journal), Some(_)) => own_notes(store, journal, &self.found.files.notes),
            _ => Vec::new(),
        };
        let lock = store.notes.lock()?;
        evaluation_set::forget_notes(&store.home, |id| ids.contains(&id))?;
        files::bury(&store.home, &lock, &store.notes, ids, now).map_err(refused)?;
        if let Some(text) = &self.text {
            let masked = masked_files(&self.purge);
            files::mask(&store.home, &lock, text, masked).map_err(refused)?;
        }
        drop(lock);
        if !ids.is_empty() {
            leave_records(store, journal, ids)?;
        }
        for (session, path) in own {
            if let (Some(journal), Ok(stored)) = (journal, store.notes.read(path)) {
                session_note::keep_own(journal, &session, stored.file.note())?;
            }
        }
        Ok(())
    }

    /// Removes notes and text from a store that a restore kept aside, also from its history.
    fn remove_from_former(&self, former: &Context) -> Result<(), Error> {
        let journal = former.home.journal().exists();
        let journal = journal
            .then(|| Journal::open(&former.home, TIMEOUT))
            .transpose()?;
        self.remove_from(former, journal.as_ref())?;
        let backend = sync::backend(former, None, None, HeldDecision::None, TIMEOUT);
        backend.purge(&self.purge, &mut |_| Ok(()))?;
        // Nobody uses the index of this store, and it can be built again.
        fs::remove_dir_all(former.home.derived()).map_err(Error::caused_by)
    }

    /// Rewrites notes, history and remote, and writes the marks for other machines.
    fn rewrite(&self, again: &str) -> Result<Purged, Error> {
        let context = self.context;
        let journal = self.journal.as_ref();
        let remote = sync::remote(context)?;
        let mut write_record = |what: &PurgeMarks| {
            let (lock, now) = (context.notes.lock()?, context.environment.now);
            let home = &context.home;
            let before = purge_marks(home);
            mark_purged(home, &lock, &what.gone, &what.masked, now)?;
            if let Some(journal) = journal {
                // The records are purged already.
                marks_seen(journal, &(&purge_marks(home) - &before))?;
            }
            Ok(())
        };
        let backend = sync::backend(context, journal, remote, HeldDecision::None, TIMEOUT);
        let purged = backend.purge(&self.purge, &mut write_record);
        leave_records_of_gone(context, journal, backend.changed())?;
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

    /// Finds the places that still contain the text, and other notes that do.
    fn remaining(&self) -> Result<(BTreeSet<String>, Vec<String>), Error> {
        let found = self.search_again()?;
        let index = self.context.index()?;
        let is_of_ids = self.purge.needle.is_none();
        let mut others = BTreeSet::new();
        let mut left = found.files.files;
        left.extend(found.files.left);
        for path in found.files.notes {
            if is_of_ids && !self.purge.ids.contains(&path.id) {
                others.insert(path.id);
            } else {
                left.insert(path.to_string());
            }
        }
        let mut history = found.history;
        if is_of_ids {
            history.notes.retain(|id, _| self.purge.ids.contains(id));
        }
        if found.records.count() > 0 {
            left.insert("journal.db".to_owned());
        }
        // The index has the text of other notes.
        let index_name = self.context.home.relative(&self.context.home.index());
        let databases = found.databases.into_iter();
        left.extend(databases.filter(|name| others.is_empty() || !name.starts_with(&index_name)));
        if !history.is_empty() {
            left.insert("memory/.git".to_owned());
        }
        if !found.commits.is_empty() {
            left.insert(self.context.home.relative(&self.context.home.commits()));
        }
        let former = found.former.iter().map(|path| self.context.shown(path));
        left.extend(former);
        let others = others.iter().map(|id| Context::short(&index, *id));
        Ok((left, others.collect()))
    }

    /// Finds the transcripts that contain the text, among sessions whose records or notes do.
    fn find_transcripts(&mut self) {
        let context = self.context;
        let Some(text) = &self.text else { return };
        let of_history = self.found.history.notes.keys().copied();
        let of_files = self.found.files.notes.iter().map(|path| path.id);
        let ids: BTreeSet<NoteId> = of_history.chain(of_files).collect();
        let of_notes = ids.iter().filter_map(|id| {
            let path = context.notes.find(*id)?;
            context.notes.read(path).ok()?.file.into_note().session
        });
        let of_records = self.found.records.sessions.iter().cloned();
        let sessions: BTreeSet<String> = of_notes.chain(of_records).collect();
        let paths = sessions.iter().filter_map(|session| {
            let session = self.journal.as_ref()?.session(session).ok().flatten()?;
            session.transcript.map(PathBuf::from)
        });
        self.transcripts = paths.filter(|path| has_text(path, text)).collect();
    }
}

/// The session notes whose text capture wrote.
fn own_notes(
    store: &Context,
    journal: &Journal,
    notes: &BTreeSet<NotePath>,
) -> Vec<(String, NotePath)> {
    let own = notes.iter().filter_map(|path| {
        let stored = store.notes.read(*path).ok()?;
        let note = stored.file.note();
        let session = note.session.clone()?;
        session_note::is_own(journal, &session, note).then_some((session, *path))
    });
    own.collect()
}

/// The file that exists while a purge is under way.
fn marker(context: &Context) -> PathBuf {
    context.home.derived().join("purge.unfinished")
}

/// Other notes with the text of a purged note are not those that the person named.
fn masked_files(purge: &Purge) -> MaskedFiles {
    if purge.ids.is_empty() {
        MaskedFiles::All
    } else {
        MaskedFiles::WithoutNotes
    }
}

fn refused(error: files::Error) -> Error {
    let hint = match error {
        files::Error::Structural(_) => "ask for a longer part of the text",
        _ => "anamnesis doctor",
    };
    Error::caused_by(error).hint(hint)
}
