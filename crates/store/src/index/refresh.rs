//! Updates the index from the files.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    sync::mpsc,
    thread,
    time::SystemTime,
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, REFLECTED_TAG, Rating, Severity, State, parse_timestamp, timestamp},
};
use anamnesis_text::{clean::clean, privacy, redact::redact};
use chrono::NaiveDate;
use rusqlite::{Connection, params};

use super::{
    Error, Index, cited, corrections, counts,
    entry::{path_of, stamp_of},
    links,
    look::{self, FOLDER_TIMES},
    postings::{Changes, NoteTerms},
    schema::PARTS,
    supersession, triggers,
};
use crate::{
    fs::file::Stamp,
    notes::{self, Listing, NotePath, Notes, Problem, Stored},
    sqlite::{Compressed, Json, Queries},
};

/// The maximum number of rounds of a refresh while other processes write notes.
const MAX_ROUNDS: usize = 8;

/// The number of outdated notes from which on a rebuild is worthwhile.
pub(super) const MANY_OUTDATED: usize = 200;

/// The number of unread files from which on a thread reads them.
const MANY_UNREAD: usize = 100;

/// How many notes that thread reads ahead. Each has at most 1 MiB.
const READ_AHEAD: usize = 16;

/// The stamp of a problem that is checked again each time, because it involves several files.
const NO_STAMP: Stamp = Stamp {
    size: 0,
    modified: 0,
    inode: 0,
};

/// The reason of a file that is not indexed because another one has its id.
const SAME_ID: &str = "the same id as ";

/// The result of a refresh.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Refreshed {
    /// The number of notes in the index.
    pub total: usize,
    /// The number of new and changed files.
    pub read: usize,
    /// The number of notes removed because their file is gone.
    pub removed: usize,
}

impl Index {
    /// Updates the index from all files. It reads only files whose stamp changed. On an error, the
    /// index is unchanged.
    pub fn refresh(&mut self, notes: &Notes) -> Result<Refreshed, Error> {
        let done = self.refresh_rounds(notes, usize::MAX, &|_, _| false)?;
        Ok(done.unwrap_or_default())
    }

    /// Updates the index from the files. A store with more notes than `always` is checked only if a
    /// folder changed, and once a day. Returns `None` if more than half of the indexed notes, and at
    /// least [`MANY_OUTDATED`], are outdated.
    pub(super) fn refresh_if_near(
        &mut self,
        notes: &Notes,
        always: usize,
    ) -> Result<Option<Refreshed>, Error> {
        let is_far =
            |outdated: usize, known: usize| outdated >= MANY_OUTDATED && 2 * outdated > known;
        self.refresh_rounds(notes, always, &is_far)
    }

    /// Refreshes until no folder changes meanwhile. `gives_up` gets the number of outdated and of
    /// known notes.
    fn refresh_rounds(
        &mut self,
        notes: &Notes,
        mut always: usize,
        gives_up: &dyn Fn(usize, usize) -> bool,
    ) -> Result<Option<Refreshed>, Error> {
        let mut sum = Refreshed::default();
        for _ in 0..MAX_ROUNDS {
            let times = notes.folder_times();
            let Some(round) = self.refresh_once(notes, times, always, gives_up)? else {
                return Ok(None);
            };
            sum = Refreshed {
                total: round.total,
                read: sum.read + round.read,
                removed: sum.removed + round.removed,
            };
            if notes.folder_times() == times {
                break;
            }
            always = 0;
        }
        Ok(Some(sum))
    }

    fn refresh_once(
        &mut self,
        notes: &Notes,
        times: [i64; 6],
        always: usize,
        gives_up: &dyn Fn(usize, usize) -> bool,
    ) -> Result<Option<Refreshed>, Error> {
        let now = SystemTime::now();
        let transaction = self.connection.unchecked_transaction()?;
        let known_count: usize = transaction.value(counts::TOTAL, [])?;
        let (is_always, times_text) = (known_count <= always, folder_times_text(times));
        if !is_always && look::is_recent(&transaction, &times_text, now)? {
            return Ok(Some(Refreshed {
                total: known_count,
                ..Refreshed::default()
            }));
        }
        let listing = notes.list();
        let known_problems = known_problems(&transaction)?;
        let known = known_files(&transaction)?;
        let Difference {
            unread,
            outdated,
            mut problems,
        } = difference(&listing, known, &known_problems);
        if gives_up(outdated.len(), known_count) {
            return Ok(None);
        }
        let mut changes = Changes::default();
        let removed = remove_outdated(&transaction, &outdated, &unread, &mut changes)?;
        problems.extend(insert_unread(&transaction, notes, &unread, &mut changes)?);
        problems.extend(listing.problems.iter().map(|p| (p.clone(), NO_STAMP)));
        write_problems(&transaction, problems, known_problems)?;
        if !unread.is_empty() || !outdated.is_empty() {
            settle(&transaction, changes)?;
        }
        if transaction.meta(FOLDER_TIMES)?.as_ref() != Some(&times_text) {
            transaction.set_meta(FOLDER_TIMES, &times_text)?;
        }
        look::record_check(&transaction, times, is_always, now)?;
        let total = transaction.value(counts::TOTAL, [])?;
        transaction.commit()?;
        Ok(Some(Refreshed {
            total,
            read: unread.len(),
            removed,
        }))
    }

    /// Updates one note that was just written. If this fails, the next refresh does it.
    ///
    /// # Errors
    pub fn record(&mut self, stored: &Stored) -> Result<(), Error> {
        let transaction = self.connection.unchecked_transaction()?;
        let mut changes = Changes::default();
        remove_id(&transaction, stored.path.id, &mut changes)?;
        insert(&transaction, &stored.into(), &mut changes)?;
        settle(&transaction, changes)?;
        Ok(transaction.commit()?)
    }

    /// Updates these notes without walking the folders: notes whose file is gone are removed.
    ///
    /// `before` has the folder times before the files were written. If the index was up to date then,
    /// it is marked as up to date now, so the caller holds the notes lock since then.
    pub fn record_all(
        &mut self,
        notes: &Notes,
        ids: &BTreeSet<NoteId>,
        before: [i64; 6],
    ) -> Result<(), Error> {
        let after = notes.folder_times();
        let transaction = self.connection.unchecked_transaction()?;
        if record_ids(&transaction, notes, ids)? {
            replace_folder_times(&transaction, before, after)?;
        }
        Ok(transaction.commit()?)
    }

    /// Returns whether a folder changed since the last refresh.
    pub fn is_behind(&self, notes: &Notes) -> bool {
        let recorded = self.meta(FOLDER_TIMES);
        let current = folder_times_text(notes.folder_times());
        recorded.ok().flatten() != Some(current)
    }
}

/// Marks an index that was up to date at one time as up to date at a later time.
fn replace_folder_times(
    connection: &Connection,
    before: [i64; 6],
    after: [i64; 6],
) -> Result<(), Error> {
    connection.run(
        "UPDATE meta SET value = ? WHERE key = 'folder_times' AND value = ?",
        [folder_times_text(after), folder_times_text(before)],
    )?;
    Ok(())
}

/// Updates these notes. If a file cannot be read, the folder times are forgotten, and `false` is
/// returned: the next refresh lists such files as problems.
fn record_ids(
    connection: &Connection,
    notes: &Notes,
    ids: &BTreeSet<NoteId>,
) -> Result<bool, Error> {
    let mut changes = Changes::default();
    for id in ids {
        remove_id(connection, *id, &mut changes)?;
    }
    let mut is_complete = true;
    for id in ids {
        if let Some(path) = notes.find(*id) {
            match notes.read(path) {
                Ok(stored) => insert(connection, &(&stored).into(), &mut changes)?,
                Err(_) => is_complete = false,
            }
        }
    }
    settle(connection, changes)?;
    if !is_complete {
        connection.run("UPDATE meta SET value = '' WHERE key = 'folder_times'", [])?;
    }
    Ok(is_complete)
}

/// The differences between a listing of the files and the index.
struct Difference {
    /// Files that are new or changed.
    unread: Vec<NotePath>,
    /// Rows of `note` whose file changed or is gone: number and path, in the order of the numbers.
    outdated: Vec<(i64, NotePath)>,
    /// Files that are not indexed: duplicate ids, and files that could not be read before and did not
    /// change since.
    problems: Vec<(Problem, Stamp)>,
}

/// Compares a listing of the files with what the index has.
fn difference(
    listing: &Listing,
    mut known: HashMap<NotePath, (i64, Stamp)>,
    known_problems: &KnownProblems,
) -> Difference {
    let mut unread = Vec::new();
    let mut problems = Vec::new();
    let mut winners: HashMap<NoteId, NotePath> = HashMap::with_capacity(listing.notes.len());
    for (path, stamp) in &listing.notes {
        let problem = |reason: String| Problem {
            path: path.to_string(),
            reason,
        };
        // Of several files with the same id, the first in the listing is indexed.
        if let Some(first) = winners.get(&path.id) {
            problems.push((problem(format!("{SAME_ID}{first}")), NO_STAMP));
        } else if known.get(path).is_some_and(|(_, old)| old == stamp) {
            known.remove(path);
            winners.insert(path.id, *path);
        } else if let Some((reason, old)) = known_problems.get(&path.to_string())
            && old == stamp
        {
            problems.push((problem(reason.clone()), *stamp));
        } else {
            winners.insert(path.id, *path);
            unread.push(*path);
        }
    }
    let mut outdated: Vec<(i64, NotePath)> = known
        .into_iter()
        .map(|(path, (number, _))| (number, path))
        .collect();
    // In the order of the table.
    outdated.sort_unstable();
    Difference {
        unread,
        outdated,
        problems,
    }
}

/// Removes outdated rows; returns how many of them no file replaces.
fn remove_outdated(
    connection: &Connection,
    outdated: &[(i64, NotePath)],
    unread: &[NotePath],
    changes: &mut Changes,
) -> Result<usize, Error> {
    let rewritten: HashSet<&NotePath> = unread.iter().collect();
    for (number, _) in outdated {
        remove(connection, *number, changes)?;
    }
    Ok(outdated
        .iter()
        .filter(|(_, path)| !rewritten.contains(path))
        .count())
}

/// Reads and inserts new and changed files; returns those that cannot be read.
fn insert_unread(
    connection: &Connection,
    notes: &Notes,
    unread: &[NotePath],
    changes: &mut Changes,
) -> Result<Vec<(Problem, Stamp)>, Error> {
    let mut problems = Vec::new();
    let read = |path| {
        (
            path,
            notes.read(path).map(|stored| CleanNote::from(&stored)),
        )
    };
    let mut take = |(path, read): (NotePath, Result<CleanNote, notes::Error>)| {
        match read {
            Ok(note) => insert(connection, &note, changes)?,
            // The file was removed after the listing; the next round sees that.
            Err(_) if notes.stamp(path).is_none() => {}
            Err(error) => {
                let reason = match error {
                    notes::Error::Unreadable { source, .. } => source.to_string(),
                    other => other.to_string(),
                };
                let stamp = notes.stamp(path).unwrap_or(NO_STAMP);
                let path = path.to_string();
                problems.push((Problem { path, reason }, stamp));
            }
        }
        Ok::<_, Error>(())
    };
    if unread.len() < MANY_UNREAD {
        unread.iter().try_for_each(|path| take(read(*path)))?;
    } else {
        // Reading, cleaning and tokenizing take about as long as writing.
        thread::scope(|scope| {
            let (sender, receiver) = mpsc::sync_channel(READ_AHEAD);
            thread::Builder::new().spawn_scoped(scope, move || {
                // Sending fails if writing failed.
                unread.iter().all(|path| sender.send(read(*path)).is_ok())
            })?;
            receiver.into_iter().try_for_each(&mut take)
        })?;
    }
    Ok(problems)
}

/// Brings the table `problem` up to date.
fn write_problems(
    connection: &Connection,
    problems: Vec<(Problem, Stamp)>,
    mut known: KnownProblems,
) -> Result<(), Error> {
    for (problem, stamp) in problems {
        let same = known
            .remove(&problem.path)
            .is_some_and(|(reason, old)| reason == problem.reason && old == stamp);
        if !same {
            connection.run(
                "INSERT OR REPLACE INTO problem VALUES (?, ?, ?, ?, ?)",
                params![
                    problem.path,
                    problem.reason,
                    stamp.size,
                    stamp.modified,
                    stamp.inode
                ],
            )?;
        }
    }
    for path in known.keys() {
        connection.run("DELETE FROM problem WHERE path = ?", [path])?;
    }
    Ok(())
}

fn folder_times_text(times: [i64; 6]) -> String {
    serde_json::json!(times).to_string()
}

/// Returns the indexed files.
fn known_files(connection: &Connection) -> rusqlite::Result<HashMap<NotePath, (i64, Stamp)>> {
    let sql = "SELECT number, id, folder, size, modified, inode FROM note";
    connection.rows(sql, [], |row| {
        Ok((path_of(row, 1)?, (row.get(0)?, stamp_of(row, 3)?)))
    })
}

/// The known problems by path: the reason, and the stamp of the file.
type KnownProblems = BTreeMap<String, (String, Stamp)>;

fn known_problems(connection: &Connection) -> rusqlite::Result<KnownProblems> {
    let sql = "SELECT path, reason, size, modified, inode FROM problem";
    connection.rows(sql, [], |row| {
        Ok((row.get(0)?, (row.get(1)?, stamp_of(row, 2)?)))
    })
}

/// Removes the note with an id.
fn remove_id(connection: &Connection, id: NoteId, changes: &mut Changes) -> Result<(), Error> {
    let numbers: Vec<i64> =
        connection.column("SELECT number FROM note WHERE id = ?", [id.to_string()])?;
    for number in numbers {
        remove(connection, number, changes)?;
    }
    Ok(())
}

fn remove(connection: &Connection, number: i64, changes: &mut Changes) -> Result<(), Error> {
    changes.remove(connection, number)?;
    links::remove_title(connection, number)?;
    let of_note = [
        "DELETE FROM note WHERE number = ?",
        "DELETE FROM note_text WHERE number = ?",
    ];
    for sql in PARTS.iter().flat_map(|part| part.remove).chain(&of_note) {
        connection.run(sql, [number])?;
    }
    Ok(())
}

/// Returns the text without invisible characters, private parts and credentials. Whoever may search could
/// spell out what is indexed.
pub(super) fn inert(text: &str) -> String {
    redact(&privacy::strip(&clean(text)).text).text.into_owned()
}

/// A note as it is indexed.
pub(super) struct CleanNote {
    path: NotePath,
    stamp: Stamp,
    note: Note,
    terms: NoteTerms,
    /// The paths that it cites.
    cited: Vec<String>,
    /// Its review date.
    review_after: Option<NaiveDate>,
}

impl From<&Stored> for CleanNote {
    fn from(stored: &Stored) -> Self {
        let mut note = stored.note();
        // A file from sync or a person may have text that we would not write.
        note.title = inert(&note.title);
        note.body = inert(&note.body);
        Self {
            path: stored.path,
            stamp: stored.stamp,
            terms: NoteTerms::from(&note),
            cited: cited::paths(&note),
            review_after: stored
                .file
                .text_of("review_after")
                .and_then(|day| day.trim().parse().ok()),
            note,
        }
    }
}

pub(super) fn insert(
    connection: &Connection,
    CleanNote {
        path,
        stamp,
        note,
        terms,
        cited,
        review_after,
    }: &CleanNote,
    changes: &mut Changes,
) -> Result<(), Error> {
    let updated_at = parse_timestamp(&note.updated_at)
        .map(timestamp)
        .unwrap_or_default();
    let verified = note.verified.as_deref().and_then(parse_timestamp);
    let length = note.title.chars().count() + note.body.chars().count();
    connection.run("INSERT INTO note (number, id, folder, size, modified, inode, scope, type, kind, state, title, project,
               machine_id, user_id, workspace_id, source, by_agent, confidence, session, created_at, updated_at,
               tags, reflected, pinned, severity, length, rating, verified, review_after)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", params![
            changes.free_number(note.id),
            note.id.to_string(),
            i64::try_from(path.folder_place()).unwrap_or_default(),
            stamp.size,
            stamp.modified,
            stamp.inode,
            note.scope.as_str(),
            note.note_type.as_str(),
            note.kind().as_str(),
            note.state.as_str(),
            note.title,
            note.project,
            note.machine_id,
            note.user_id.as_deref().unwrap_or("self"),
            note.workspace_id.as_deref().unwrap_or("personal"),
            note.source.as_str(),
            note.is_by_agent(),
            note.confidence,
            note.session.as_deref().filter(|session| !session.is_empty()),
            note.created_at,
            updated_at,
            Json(&note.tags),
            note.has_tag(REFLECTED_TAG),
            note.pinned,
            note.severity.map(Severity::as_str),
            i64::try_from(length).unwrap_or(i64::MAX),
            note.rating.map(Rating::as_str),
            verified.map(timestamp),
            review_after.map(|day| day.to_string()),
        ])?;
    let number = connection.last_insert_rowid();
    changes.insert(connection, number, note, terms)?;
    cited::insert(connection, number, &note.project, cited)?;
    for part in PARTS {
        (part.insert)(connection, number, note)?;
    }
    if note.state != State::Forgotten {
        connection.run(
            "INSERT INTO note_text VALUES (?, ?, ?)",
            params![
                number,
                note.asked.join("\n"),
                Compressed(note.body.as_str())
            ],
        )?;
    }
    Ok(())
}

/// Finishes a transaction that added and removed notes: marks superseded notes, writes the collected
/// changes and finds corrections.
pub(super) fn settle(connection: &Connection, mut changes: Changes) -> Result<(), Error> {
    for (number, is_superseded) in supersession::mark(connection)? {
        changes.supersede(number, is_superseded)?;
    }
    changes.write(connection)?;
    corrections::relate(connection, &changes.added)?;
    Ok(triggers::mark(connection)?)
}
