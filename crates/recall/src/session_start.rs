//! Chooses the working set, the notes that are injected at the start of a session.
//!
//! These are the newest notes for all projects, then `k` notes of the project: pinned notes, then the
//! newest durable ones, with up to two places reserved for those of the last sessions that are worth
//! most now; then open tasks. Superseded notes, notes not in use, and session notes that a reflection
//! has merged are excluded. After a compaction this session's own note is added.

use std::{
    cmp::Ordering,
    path::{Component, Path},
};

use crate::{
    branch::branch_remark,
    correction::{Shown, with_corrections},
    knowledge::StoreKnowledge,
    last_sessions::{Situation, by_worth},
    render::{Chosen, MAX_GLOBAL, Reason},
    standing::{Instruction, instructions},
};
use anamnesis_note::{
    id::NoteId,
    merge::CONFLICT_TAG,
    note::{GLOBAL, Kind, Note, NoteType, Visibility},
};
use anamnesis_session::session_note::{FAILING, REPEATED, part_of, says_the_same};
use anamnesis_store::{
    fs::file::Stamp,
    index::{Entry, Error, Index, OpenFailure, Recent},
    journal::Journal,
    notes::Notes,
    project::branch_of,
    session_note,
};
use anamnesis_text::hash::text_hash;
use chrono::{DateTime, Utc};

/// The default number of the project's notes.
pub const DEFAULT_K: usize = 8;

/// The maximum number of open tasks.
const MAX_TASKS: usize = 3;

/// The maximum number of checks that still fail.
const MAX_FAILURES: usize = 4;

/// How many of the `k` notes are session notes at least, and at most where places are free.
const RESERVED_SESSIONS: usize = 2;
const MAX_SESSIONS: usize = 6;

/// How many of the latest session notes are searched for standing instructions.
const MAX_LATEST_SESSIONS: usize = 20;

/// A working set request.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The project's key.
    pub project: &'a str,
    /// The project's other current or former keys.
    pub also: &'a [String],
    /// The maximum number of the project's notes.
    pub k: usize,
    /// The session that continues after a compaction.
    pub session: Option<&'a str>,
    /// The session that goes on with its history. Its own note is left out.
    pub resumed: Option<&'a str>,
    /// The folder in which the session starts. Its branch and its files tell which session notes
    /// matter.
    pub folder: Option<&'a Path>,
    /// The current time.
    pub now: DateTime<Utc>,
    /// Notes that the session has from elsewhere, with the file stamp for which that holds. They
    /// are not repeated.
    pub had: &'a [(NoteId, Stamp)],
    /// The journal, which knows the session notes that this machine wrote. Without it there are no
    /// standing instructions.
    pub journal: Option<&'a Journal>,
}

impl Request<'_> {
    /// Returns whether an entry is the note of the session that is resumed.
    fn is_own(&self, entry: &Entry) -> bool {
        self.resumed.map(NoteId::of_session) == Some(entry.id())
    }
}

/// The content that a session starts with.
#[derive(Debug, Default)]
pub struct WorkingSet {
    /// The notes, open tasks last.
    pub chosen: Vec<Chosen>,
    /// The standing instructions: see [`crate::standing`].
    pub said: Vec<Instruction>,
    /// The checks of the project that still fail.
    pub failing: Vec<OpenFailure>,
}

impl WorkingSet {
    /// Returns the notes that are injected with their texts: all but the open tasks.
    pub fn with_texts(&self) -> impl Iterator<Item = &Chosen> {
        let chosen = self.chosen.iter();
        chosen.filter(|chosen| chosen.reason != Reason::OpenTask)
    }
}

/// Chooses the working set and reads its notes, with what corrects them and what they cite that is gone.
///
/// Only chosen files are read: a file that changed since it was indexed is used as it is now, and one
/// that is gone or no longer qualifies is dropped.
pub fn working_set(
    index: &Index,
    notes: &Notes,
    request: &Request<'_>,
) -> Result<WorkingSet, Error> {
    let set = selected(index, notes, request)?;
    let mut chosen = corrected(index, notes, request, set.chosen)?;
    let knowledge = StoreKnowledge {
        index,
        journal: request.journal,
        now: request.now,
    };
    mark_stale(&mut chosen, &knowledge);
    Ok(WorkingSet { chosen, ..set })
}

fn selected(index: &Index, notes: &Notes, request: &Request<'_>) -> Result<WorkingSet, Error> {
    let tasks = open_tasks(index, notes, request)?;
    let entries = latest_sessions(index, request)?;
    let mut sessions = indexed_texts(index, &entries)?;
    let entry_of = |note: NoteId| entries.iter().find(|entry| entry.id() == note);
    // What a reflection has used still quotes the person.
    let read_for =
        |note, reason| entry_of(note).and_then(|entry| current(notes, entry, request, reason));
    let mut said = instructions(&sessions, |session| {
        let is_captured = |note: &Note| {
            text_hash(&note.body) == text_hash(&session.body)
                && request
                    .journal
                    .is_some_and(|journal| session_note::quotes_person(journal, note))
        };
        read_for(session.id, Reason::ThisSession)
            .as_ref()
            .is_some_and(is_captured)
    });
    sessions.retain(|note| entry_of(note.id).is_some_and(|entry| !entry.reflected));
    let read = |note| read_for(note, Reason::LastSession);
    let failing = open_failures(index, notes, request)?;
    let with_tasks = tasks.iter().filter_map(|task| task.note.session.as_deref());
    let situation = Situation {
        now: request.now,
        branch: request.folder.and_then(branch_of),
        with_failures: failing.iter().map(|failure| failure.note).collect(),
        with_tasks: with_tasks.map(NoteId::of_session).collect(),
        changed_at: &|file| changed_at(request.folder?, file),
    };
    let mut chosen: Vec<Chosen> = Vec::new();
    let mut add = |note: Note, reason| {
        if chosen.iter().all(|earlier| earlier.note.id != note.id) {
            chosen.push(Chosen::new(note, reason));
        }
    };
    let (kept, places) = candidates(index, request, sessions.len())?;
    for (entry, reason) in kept {
        if let Some(note) = current(notes, &entry, request, reason) {
            add(note, reason);
        }
    }
    // The last session is told in full, whatever others left open. A scheduled run is not it.
    let is_run = |note: &Note| part_of(&note.body, REPEATED).next().is_some();
    let last = sessions.iter().position(|note| !is_run(note));
    let last = last.map(|last| sessions.remove(last));
    let sorted = last.into_iter().chain(by_worth(sessions, &situation));
    for note in sorted.filter_map(|note| read(note.id)).take(places) {
        add(note, Reason::LastSession);
    }
    said.retain(|said| !chosen.iter().any(|chosen| tells(&chosen.note, &said.text)));
    chosen.extend(tasks);
    Ok(WorkingSet {
        chosen,
        said,
        failing,
    })
}

/// Returns whether a durable note tells an instruction, with its title or a line.
fn tells(note: &Note, instruction: &str) -> bool {
    let mut lines = std::iter::once(note.title.as_str()).chain(note.body.lines());
    note.note_type != NoteType::Episodic && lines.any(|line| says_the_same(line, instruction))
}

/// Returns the checks that still fail and that the files of their notes still name.
fn open_failures(
    index: &Index,
    notes: &Notes,
    request: &Request<'_>,
) -> Result<Vec<OpenFailure>, Error> {
    if request.project == GLOBAL {
        return Ok(Vec::new());
    }
    let projects: Vec<&str> = keys(request).collect();
    let mut open = Vec::new();
    for failure in index.open_failures(&projects, request.now)? {
        let entry = index.get(failure.note)?;
        let entry = entry.filter(|entry| !request.is_own(entry) && !is_conflicting(&entry.tags));
        let note = entry.and_then(|entry| notes.read(entry.path).ok());
        let names = |line: &str| line == failure.line;
        if note.is_some_and(|note| part_of(&note.note().body, FAILING).any(names))
            && open.len() < MAX_FAILURES
        {
            open.push(failure);
        }
    }
    Ok(open)
}

/// Returns when a file below a folder was last changed.
fn changed_at(folder: &Path, file: &str) -> Option<DateTime<Utc>> {
    let is_inside = |part| matches!(part, Component::Normal(_));
    let file = Path::new(file);
    let metadata = file
        .components()
        .all(is_inside)
        .then(|| folder.join(file).metadata());
    Some(metadata?.ok()?.modified().ok()?.into())
}

/// Adds to each note what it cites and is gone, as it is injected with a prompt.
fn mark_stale(chosen: &mut [Chosen], knowledge: &StoreKnowledge<'_>) {
    let ids: Vec<NoteId> = chosen.iter().map(|chosen| chosen.note.id).collect();
    let mut stale = knowledge.stale(&ids);
    for chosen in chosen {
        let remark = stale.remove(&chosen.note.id);
        chosen.remarks.splice(0..0, remark);
    }
}

impl Shown for Chosen {
    fn id(&self) -> NoteId {
        self.note.id
    }

    fn remarks(&mut self) -> &mut Vec<String> {
        &mut self.remarks
    }
}

/// Puts the later notes directly before the notes that they correct, and says so. Adds the branch of each
/// session's note that is not merged.
fn corrected(
    index: &Index,
    notes: &Notes,
    request: &Request<'_>,
    chosen: Vec<Chosen>,
) -> Result<Vec<Chosen>, Error> {
    let mut chosen = with_corrections(index, request.now, chosen, |correction, corrected| {
        let entry = index.get(correction.later)?;
        let entry = entry.filter(|entry| !request.is_own(entry));
        let reason = corrected.reason;
        let note = entry.and_then(|entry| current(notes, &entry, request, reason));
        Ok(note.map(|note| Chosen::new(note, reason)))
    })?;
    for chosen in &mut chosen {
        chosen.remarks.extend(branch_remark(index, &chosen.note)?);
    }
    Ok(chosen)
}

/// Returns the notes of the project's latest sessions, newest first.
fn latest_sessions(index: &Index, request: &Request<'_>) -> Result<Vec<Entry>, Error> {
    if request.project == GLOBAL {
        return Ok(Vec::new());
    }
    let limit = MAX_LATEST_SESSIONS;
    let mut entries = recent(index, request, NoteType::Episodic, false, limit)?;
    entries.retain(|entry| !request.is_own(entry) && !is_conflicting(&entry.tags));
    Ok(entries)
}

/// Returns notes with the texts and dates that they had when they were indexed.
fn indexed_texts(index: &Index, entries: &[Entry]) -> Result<Vec<Note>, Error> {
    let note = |entry: &Entry| {
        let body = index.body(entry.id())?.unwrap_or_default();
        Ok(Note {
            updated_at: entry.updated_at.clone(),
            body,
            ..Note::new(entry.id(), entry.note_type, DateTime::UNIX_EPOCH)
        })
    };
    entries.iter().map(note).collect()
}

/// Returns the newest notes of a type under all keys of the project.
fn recent(
    index: &Index,
    request: &Request<'_>,
    note_type: NoteType,
    only_pinned: bool,
    limit: usize,
) -> Result<Vec<Entry>, Error> {
    let mut entries = Vec::new();
    for project in keys(request) {
        entries.extend(index.recent(Recent {
            project,
            note_type,
            now: request.now,
            only_pinned,
            with_reflected: note_type == NoteType::Episodic,
            limit,
        })?);
    }
    entries.sort_by(|a, b| newest_first(a, b).then(b.id().cmp(&a.id())));
    entries.truncate(limit);
    Ok(entries)
}

/// Returns the project's open tasks to name beside the working set: tasks in progress first, then
/// the newest. Each is read from its file.
fn open_tasks(index: &Index, notes: &Notes, request: &Request<'_>) -> Result<Vec<Chosen>, Error> {
    let projects: Vec<&str> = keys(request).collect();
    let tasks = index.open_tasks(&projects, MAX_TASKS)?;
    let tasks = tasks.into_iter().filter_map(|entry| {
        let note = notes.read(entry.path).ok()?.note();
        let fits = Visibility::from_note(&note).is_in_force()
            && note.kind() == Kind::Task
            && note.status().is_open()
            && projects.contains(&note.project.as_str());
        fits.then(|| Chosen::new(note, Reason::OpenTask))
    });
    Ok(tasks.collect())
}

/// Returns the notes to read besides session notes, and how many session notes come after them.
fn candidates(
    index: &Index,
    request: &Request<'_>,
    sessions: usize,
) -> Result<(Vec<(Entry, Reason)>, usize), Error> {
    let for_all = |note_type| {
        index.recent(Recent {
            project: GLOBAL,
            note_type,
            now: request.now,
            only_pinned: false,
            with_reflected: false,
            limit: MAX_GLOBAL,
        })
    };
    let mut globals = for_all(NoteType::Procedural)?;
    globals.extend(for_all(NoteType::Semantic)?);
    // Session notes without a project are shown only to sessions without a project.
    if request.project == GLOBAL {
        globals.extend(for_all(NoteType::Episodic)?);
    }
    globals.sort_by(|a, b| (&b.updated_at, b.id()).cmp(&(&a.updated_at, a.id())));
    globals.truncate(MAX_GLOBAL);
    let mut selection: Vec<(Entry, Reason)> = globals
        .into_iter()
        .map(|entry| (entry, Reason::AllProjects))
        .collect();
    if let Some(session) = request.session {
        let own = NoteId::of_session(session);
        selection.extend(index.get(own)?.map(|entry| (entry, Reason::ThisSession)));
    }
    if request.project == GLOBAL {
        return Ok((selection, 0));
    }
    let reserved = sessions.min(request.k).min(RESERVED_SESSIONS);
    let mut kept = durable(index, request, true)?;
    let newest = durable(index, request, false)?.into_iter();
    kept.extend(newest.filter(|entry| !entry.pinned));
    kept.retain(|entry| !request.had.contains(&(entry.id(), entry.stamp)));
    kept.truncate(request.k - reserved);
    let places = (request.k - kept.len()).min(MAX_SESSIONS);
    selection.extend(kept.into_iter().map(|entry| (entry, Reason::Project)));
    Ok((selection, places))
}

/// Returns all keys of the project.
fn keys<'a>(request: &Request<'a>) -> impl Iterator<Item = &'a str> {
    std::iter::once(request.project).chain(request.also.iter().map(String::as_str))
}

fn newest_first(a: &Entry, b: &Entry) -> Ordering {
    (&b.updated_at, b.confidence)
        .partial_cmp(&(&a.updated_at, a.confidence))
        .unwrap_or(Ordering::Equal)
}

/// Returns the project's durable notes, all or the pinned ones, newest first: enough that `k` are left
/// without those that the session has.
fn durable(index: &Index, request: &Request<'_>, only_pinned: bool) -> Result<Vec<Entry>, Error> {
    let limit = request.k.saturating_add(request.had.len());
    let of_type = |note_type| recent(index, request, note_type, only_pinned, limit);
    let mut durable = of_type(NoteType::Procedural)?;
    durable.extend(of_type(NoteType::Semantic)?);
    // The sort is stable: for equal notes, procedural ones stay first.
    durable.sort_by(newest_first);
    Ok(durable)
}

/// Reads a note's file. Returns `None` if it is gone or no longer qualifies. This session's own note
/// qualifies even if a reflection has used it.
fn current(notes: &Notes, entry: &Entry, request: &Request<'_>, reason: Reason) -> Option<Note> {
    let note = notes.read(entry.path).ok()?.note();
    let mut visibility = Visibility::from_note(&note);
    visibility.is_reflected &= reason != Reason::ThisSession;
    let is_here = keys(request).any(|key| note.project == key) || note.is_global();
    (visibility.may_surface() && is_here && !is_conflicting(&note.tags)).then_some(note)
}

/// Returns whether a note is one of two with conflicting texts. Only a person can tell which is right.
fn is_conflicting(tags: &[String]) -> bool {
    tags.iter().any(|tag| tag == CONFLICT_TAG)
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use anamnesis_note::{
        id::NoteId,
        note::{Source, State, timestamp},
    };
    use anamnesis_store::{fs::home::Home, notes::Stored};

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(500);

    /// A store in a temporary folder.
    pub(crate) struct Fixture {
        _folder: tempfile::TempDir,
        pub(crate) home: Home,
        pub(crate) notes: Notes,
    }

    impl Fixture {
        pub(crate) fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let home = Home::new(folder.path().join("store"));
            home.create().unwrap();
            let notes = Notes::new(home.clone(), TIMEOUT);
            Self {
                _folder: folder,
                home,
                notes,
            }
        }

        pub(crate) fn add(&self, title: &str, change: impl FnOnce(&mut Note)) -> Stored {
            let mut note = Note::new(NoteId::generate(now()), NoteType::Semantic, now());
            note.title = title.to_owned();
            note.project = "p".to_owned();
            change(&mut note);
            self.notes
                .create(&self.notes.lock().unwrap(), &note)
                .unwrap()
        }

        pub(crate) fn refreshed(&self) -> Index {
            let mut index = Index::open_to_write(&self.home, &self.notes, TIMEOUT).unwrap();
            index.refresh(&self.notes).unwrap();
            index
        }

        fn selected(&self, k: usize) -> Vec<String> {
            let request = Request { k, ..request() };
            let chosen = selection(&self.refreshed(), &self.notes, &request);
            chosen.into_iter().map(|chosen| chosen.note.title).collect()
        }
    }

    pub(crate) fn request() -> Request<'static> {
        Request {
            project: "p",
            also: &[],
            k: 8,
            session: None,
            resumed: None,
            folder: None,
            now: now(),
            had: &[],
            journal: None,
        }
    }

    fn selection(index: &Index, notes: &Notes, request: &Request<'_>) -> Vec<Chosen> {
        let set = working_set(index, notes, request).unwrap();
        set.with_texts().cloned().collect()
    }

    pub(crate) fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn days_ago(days: i64) -> String {
        timestamp(now() - chrono::TimeDelta::days(days))
    }

    fn session(title: &str, days: i64) -> impl FnOnce(&mut Note) {
        let title = title.to_owned();
        move |note| {
            note.title = title;
            note.note_type = NoteType::Episodic;
            note.updated_at = days_ago(days);
        }
    }

    #[test]
    fn places_are_reserved_for_the_last_sessions() {
        let fixture = Fixture::new();
        for number in 1..=10 {
            fixture.add(&format!("fact {number}"), |note| {
                note.updated_at = days_ago(number)
            });
        }
        for number in 1..=3 {
            fixture.add("", session(&format!("session {number}"), 20 + number));
        }
        assert_eq!(
            fixture.selected(8),
            [
                "fact 1",
                "fact 2",
                "fact 3",
                "fact 4",
                "fact 5",
                "fact 6",
                "session 1",
                "session 2"
            ]
        );
        assert_eq!(fixture.selected(1), ["session 1"]);
        assert!(fixture.selected(0).is_empty());
    }

    #[test]
    fn notes_that_the_session_has_take_no_place() {
        let fixture = Fixture::new();
        let mut had = Vec::new();
        for number in 1..=5 {
            let stored = fixture.add(&format!("had {number}"), |note| {
                note.pinned = number == 5;
            });
            had.push((stored.path.id, stored.stamp));
        }
        for number in 1..=3 {
            fixture.add(&format!("fact {number}"), |note| {
                note.updated_at = days_ago(number);
            });
        }
        // A note that changed since then counts as new.
        had[0].1.modified += 1;
        let request = Request {
            k: 3,
            had: &had,
            ..request()
        };
        let chosen = selection(&fixture.refreshed(), &fixture.notes, &request);
        let titles: Vec<&str> = chosen.iter().map(|chosen| &*chosen.note.title).collect();
        assert_eq!(titles, ["had 1", "fact 1", "fact 2"]);
    }

    #[test]
    fn a_resumed_session_does_not_get_its_own_note_and_no_conflicting_text_is_given() {
        let fixture = Fixture::new();
        let journal = Journal::open(&fixture.home, TIMEOUT).unwrap();
        let own = fixture.add("", |note| {
            note.id = NoteId::of_session("s");
            session("own", 1)(note);
            note.source = Source::SessionEnd;
            note.session = Some("s".to_owned());
            note.body = "**Rules:**\n- never touch the login".to_owned();
        });
        session_note::keep_own(&journal, "s", &own.note()).unwrap();
        fixture.add("", session("other", 2));
        fixture.add("second text", |note| {
            note.tags.push(CONFLICT_TAG.to_owned());
        });
        let index = fixture.refreshed();
        let mut request = request();
        let titles = |request: &Request<'_>| -> Vec<String> {
            let chosen = selection(&index, &fixture.notes, request);
            chosen.into_iter().map(|chosen| chosen.note.title).collect()
        };
        assert_eq!(titles(&request), ["own", "other"]);
        // Without the journal nobody can tell who wrote the note.
        let said =
            |request: &Request<'_>| working_set(&index, &fixture.notes, request).unwrap().said;
        assert!(said(&request).is_empty());
        request.journal = Some(&journal);
        assert_eq!(said(&request)[0].text, "never touch the login");
        request.resumed = Some("s");
        assert_eq!(titles(&request), ["other"]);
        assert!(said(&request).is_empty());
    }

    #[test]
    fn after_the_last_session_one_that_left_something_failing_comes_first() {
        let fixture = Fixture::new();
        for number in 1..=3 {
            fixture.add("", session(&format!("session {number}"), number));
        }
        fixture.add("", |note| {
            session("the cart fails", 4)(note);
            note.body = "**Still failing:**\n- `make test`: total is 0".to_owned();
        });
        for number in 1..=8 {
            fixture.add(&format!("fact {number}"), |_| {});
        }
        let selected = fixture.selected(8);
        assert_eq!(selected[6..], ["session 1", "the cart fails"]);
        // A scheduled run is not the last session.
        fixture.add("", |note| {
            session("heartbeat", 0)(note);
            note.body = "**Repeated:** × 60, last 28 Nov 2025".to_owned();
        });
        assert_eq!(fixture.selected(8)[6], "session 1");
    }

    #[test]
    fn a_failure_is_told_until_a_later_session_passes() {
        let fixture = Fixture::new();
        let add = |title: &str, days: i64, body: &str| {
            fixture.add("", |note| {
                session(title, days)(note);
                note.source = anamnesis_note::note::Source::SessionEnd;
                note.body = body.to_owned();
            })
        };
        add("fails", 4, "**Still failing:**\n- `make test`: total is 0");
        let failing_lines = || {
            let index = fixture.refreshed();
            let set = working_set(&index, &fixture.notes, &request()).unwrap();
            let block =
                crate::render::start_block(&set.chosen, &[], &set.failing, now(), NoteId::short);
            block.text.matches("total is 0").count()
        };
        assert_eq!(failing_lines(), 1);
        add("another check passes", 3, "**Passed:** `make lint`");
        assert_eq!(failing_lines(), 1);
        add("passes", 2, "**Passed:** `make lint`, `make test`");
        assert_eq!(failing_lines(), 0);
    }

    #[test]
    fn pinned_notes_come_before_newer_ones() {
        let fixture = Fixture::new();
        for number in 1..=10 {
            fixture.add(&format!("fact {number}"), |note| {
                note.updated_at = days_ago(number);
                note.pinned = number >= 9;
            });
        }
        assert_eq!(fixture.selected(3), ["fact 9", "fact 10", "fact 1"]);
    }

    #[test]
    fn open_tasks_are_read_as_they_are_now() {
        let fixture = Fixture::new();
        let task = |title: &str, status: &str| {
            let status = status.to_owned();
            fixture.add(title, |note| {
                note.kind = Some(Kind::Task);
                note.status = Some(status);
            })
        };
        let finished = task("finished since", "pending");
        task("done", "done");
        task("begun", "active");
        task("pending", "pending");
        fixture.add("elsewhere", |note| {
            note.kind = Some(Kind::Task);
            note.project = "q".to_owned();
        });
        let index = fixture.refreshed();
        let lock = fixture.notes.lock().unwrap();
        fixture
            .notes
            .update(&lock, finished.path, |note| {
                note.status = Some("done".to_owned());
            })
            .unwrap();
        let request = request();
        let tasks = open_tasks(&index, &fixture.notes, &request).unwrap();
        let titles: Vec<&str> = tasks.iter().map(|task| &*task.note.title).collect();
        assert_eq!(titles, ["begun", "pending"]);
    }

    #[test]
    fn globals_come_first_and_cost_no_place() {
        let fixture = Fixture::new();
        fixture.add("mine", |_| {});
        fixture.add("older global", |note| {
            note.project = GLOBAL.to_owned();
            note.updated_at = days_ago(3);
        });
        fixture.add("global", |note| {
            note.project = GLOBAL.to_owned();
            note.note_type = NoteType::Procedural;
        });
        fixture.add("other project", |note| note.project = "q".to_owned());
        assert_eq!(fixture.selected(1), ["global", "older global", "mine"]);
    }

    #[test]
    fn what_is_not_in_use_is_left_out() {
        // INJ-02, INJ-16
        let fixture = Fixture::new();
        let old = fixture.add("superseded", |_| {});
        fixture.add("newer", |note| {
            note.supersedes = vec![old.path.id.to_string()]
        });
        for state in [State::Proposed, State::Muted, State::Forgotten] {
            fixture.add(state.as_str(), |note| note.state = state);
        }
        fixture.add("task", |note| note.kind = Some(Kind::Task));
        fixture.add("reflected", |note| {
            note.note_type = NoteType::Episodic;
            note.tags = vec!["reflected".to_owned()];
        });
        assert_eq!(fixture.selected(8), ["newer"]);
    }

    #[test]
    fn equal_times_are_ordered_by_confidence_then_type() {
        let fixture = Fixture::new();
        fixture.add("semantic", |_| {});
        fixture.add("procedural", |note| note.note_type = NoteType::Procedural);
        fixture.add("unsure", |note| {
            note.note_type = NoteType::Procedural;
            note.confidence = 0.5;
        });
        assert_eq!(fixture.selected(8), ["procedural", "semantic", "unsure"]);
    }

    #[test]
    fn session_notes_without_a_project_are_shown_only_without_a_project() {
        let fixture = Fixture::new();
        fixture.add("", |note| {
            session("of no project", 1)(note);
            note.project = GLOBAL.to_owned();
        });
        fixture.add("mine", |_| {});
        assert_eq!(fixture.selected(8), ["mine"]);
        let request = Request {
            project: GLOBAL,
            ..request()
        };
        let chosen = selection(&fixture.refreshed(), &fixture.notes, &request);
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].note.title, "of no project");
    }

    #[test]
    fn a_session_start_reads_the_newest_notes_for_all_projects_and_no_others() {
        let fixture = Fixture::new();
        let mut older = Vec::new();
        for number in 0..MAX_GLOBAL + 20 {
            let stored = fixture.add(&format!("global {number}"), |note| {
                note.project = GLOBAL.to_owned();
                note.note_type = [NoteType::Semantic, NoteType::Procedural][number % 2];
                note.updated_at = days_ago(i64::try_from(number).unwrap());
            });
            if number >= MAX_GLOBAL {
                older.push(stored.path);
            }
        }
        fixture.add("mine", |_| {});
        let index = fixture.refreshed();
        let (candidates, _) = candidates(&index, &request(), 0).unwrap();
        assert_eq!(candidates.len(), MAX_GLOBAL + 1);
        let is_older = |(entry, _): &(Entry, Reason)| older.contains(&entry.path);
        assert!(!candidates.iter().any(is_older));
        let chosen = selection(&index, &fixture.notes, &request());
        assert_eq!(
            chosen[MAX_GLOBAL - 1].note.title,
            format!("global {}", MAX_GLOBAL - 1)
        );
        assert_eq!(chosen[MAX_GLOBAL].note.title, "mine");
        let block = crate::render::start_block(&chosen, &[], &[], now(), NoteId::short);
        assert!(block.text.contains(", and at least "), "{}", block.text);
    }

    #[test]
    fn files_are_read_when_selected() {
        let fixture = Fixture::new();
        let changed = fixture.add("before", |_| {});
        let gone = fixture.add("gone", |_| {});
        let forgotten = fixture.add("forgotten", |_| {});
        let index = fixture.refreshed();
        let lock = fixture.notes.lock().unwrap();
        fixture
            .notes
            .update(&lock, changed.path, |note| note.title = "after".to_owned())
            .unwrap();
        fixture.notes.forget(&lock, forgotten.path, now()).unwrap();
        std::fs::remove_file(gone.path.absolute(&fixture.home)).unwrap();
        let request = request();
        let chosen = selection(&index, &fixture.notes, &request);
        let titles: Vec<&str> = chosen
            .iter()
            .map(|chosen| chosen.note.title.as_str())
            .collect();
        assert_eq!(titles, ["after"]);
    }

    #[test]
    fn after_a_compaction_the_session_itself_comes_back() {
        let fixture = Fixture::new();
        for number in 1..=3 {
            fixture.add("", session(&format!("session {number}"), number));
        }
        fixture.add("", |note| {
            session("this one", 9)(note);
            note.id = NoteId::of_session("s");
            note.tags = vec!["reflected".to_owned()];
        });
        let request = Request {
            session: Some("s"),
            ..request()
        };
        let chosen = selection(&fixture.refreshed(), &fixture.notes, &request);
        assert_eq!(chosen[0].note.title, "this one");
        assert_eq!(chosen[0].reason, Reason::ThisSession);
        assert_eq!(chosen.len(), 4);
        // INJ-16: a forgotten note does not come back.
        let path = fixture.notes.find(NoteId::of_session("s")).unwrap();
        let lock = fixture.notes.lock().unwrap();
        fixture.notes.forget(&lock, path, now()).unwrap();
        let chosen = selection(&fixture.refreshed(), &fixture.notes, &request);
        assert_eq!(chosen.len(), 3);
    }
}
