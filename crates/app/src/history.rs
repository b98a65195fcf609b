//! Opens the history of the notes for commands, resolves ids and dates, and formats commits.
//!
//! Old commits were never redacted again, so all their texts are masked and escaped for the
//! terminal here. An agent sees nothing of a note that is forgotten or deleted.

use std::{cell::LazyCell, collections::BTreeSet};

use anamnesis_note::{
    draft::safe_line,
    id::{IdPrefix, NoteId},
    note::{Note, NoteFile, Scope, State, parse_timestamp},
};
use anamnesis_store::{
    fs::file::Stamp,
    index::{Entry, Filter, Index},
    notes::{NotePath, Stored},
};
use anamnesis_sync::{
    Repository,
    history::{self, File, Moment, NoteCommit, Touched, Version},
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, NaiveDate, SecondsFormat, TimeDelta, Utc};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    Error,
    context::{self, Context},
    format::{LIST_LENGTH, MIN_ROOM, ago, number, shorten, width},
    sync::{FORGET_SESSION, short_change},
};

/// The widths of the machine column and the author column.
const NAME_WIDTH: usize = 10;

/// The history, and the current notes.
pub struct Past<'a> {
    /// The store.
    pub context: &'a Context,
    /// The repository of the notes.
    pub repository: Repository,
    /// The index of the current notes.
    pub index: Index,
}

impl<'a> Past<'a> {
    /// Opens the history of a store.
    pub fn open(context: &'a Context) -> Result<Self, Error> {
        Self::open_if_any(context)?.ok_or_else(|| {
            Error::failed("there is no history yet, because nothing has been committed")
                .hint("anamnesis sync   (commits the notes, with a remote or without)")
        })
    }

    /// Opens the history of a store; `None` before the first commit.
    pub fn open_if_any(context: &'a Context) -> Result<Option<Self>, Error> {
        // Refresh the index first, then drop the write lock: reading the history must not block
        // writers.
        drop::<Index>(context.index()?);
        Self::with_index(context, Index::open(&context.home)?)
    }

    /// Like [`Past::open_if_any`], with an index that holds no lock.
    pub fn with_index(context: &'a Context, index: Index) -> Result<Option<Self>, Error> {
        history::read_without_hashing();
        let repository = context.repository()?;
        Ok(repository.map(|repository| Self {
            context,
            repository,
            index,
        }))
    }

    /// The notes that are of a project now, forgotten ones included.
    pub fn notes_of(&self, project: &str) -> Result<BTreeSet<NoteId>, Error> {
        let filter = Filter {
            projects: self.context.project(Some(project)).all_keys(),
            with_superseded: true,
            with_forgotten: true,
            ..Filter::default()
        };
        let entries = self.index.list(&filter, usize::MAX)?;
        Ok(entries.iter().map(Entry::id).collect())
    }

    /// The notes that match a partial id: current ones, else those of any time.
    pub fn candidates(&self, typed: &IdPrefix) -> Result<BTreeSet<NoteId>, Error> {
        let entries = self.index.matching(typed)?;
        if entries.is_empty() {
            return Ok(self.repository.ids_matching(typed)?);
        }
        Ok(entries.iter().map(Entry::id).collect())
    }

    /// Resolves a partial id to one note, current or deleted.
    pub fn resolve(&self, typed: &str) -> Result<NoteId, Error> {
        let reference = reference(typed)?;
        one_of(&reference, &self.candidates(&reference)?)
    }

    /// Finds a commit; also returns the note, if a note was named.
    pub fn find(&self, typed: &str) -> Result<(NoteCommit, Option<NoteId>), Error> {
        let mut events = self.repository.find(typed)?;
        let notes = match IdPrefix::parse(typed) {
            Ok(reference) if events.is_empty() => self.candidates(&reference)?,
            Ok(reference) => {
                let entries = self.index.matching(&reference)?;
                entries.iter().map(Entry::id).collect()
            }
            Err(_) => BTreeSet::new(),
        };
        if events.len() + notes.len() > 1 {
            return Err(self.ambiguous(typed, &events, &notes));
        }
        if let Some(event) = events.pop() {
            return Ok((event, None));
        }
        let note = notes.into_iter().next().ok_or_else(|| unknown(typed))?;
        self.refuse_withheld(note)?;
        let mut events = self.repository.log(Some(note), 1)?;
        match events.pop() {
            Some(event) => Ok((event, Some(note))),
            None => Err(self.without_history(note)),
        }
    }

    /// Finds a change that the caller may undo.
    pub fn find_change(&self, typed: &str) -> Result<NoteCommit, Error> {
        let mut found = self.repository.find(typed)?;
        if found.len() > 1 {
            return Err(self.ambiguous(typed, &found, &BTreeSet::new()));
        }
        let event = found.pop().ok_or_else(|| unknown(typed))?;
        if event.batch.is_none() {
            return Err(Error::failed(
                "this commit cannot be undone: it joins machines, or another program made it",
            )
            .hint("anamnesis undo   (lists what can be undone)"));
        }
        if self.context.environment.is_agent && event.actor.as_deref() != Some("agent") {
            return Err(Error::failed(
                "only a person can undo this change: no agent made it",
            ));
        }
        Ok(event)
    }

    /// The error for an ambiguous id, with the candidates.
    fn ambiguous(&self, typed: &str, events: &[NoteCommit], notes: &BTreeSet<NoteId>) -> Error {
        let amount = events.len() + notes.len();
        let lines = events.iter().map(|event| self.line(event));
        let notes = notes
            .iter()
            .map(|id| format!("{id}  {}", self.title_of(*id)));
        let shown: Vec<String> = lines.chain(notes).take(LIST_LENGTH).collect();
        let typed = one_line(typed);
        Error::usage(format!(
            "\"{}\" matches {amount} changes and notes:\n{}",
            shorten(&typed, 40),
            shown.join("\n")
        ))
        .hint("type more of it")
    }

    /// The error for a note that was never committed.
    pub fn without_history(&self, note: NoteId) -> Error {
        let short = self.short(note);
        Error::failed(format!(
            "#{short} has no history: it is on this machine only, or was not committed yet"
        ))
        .hint(format!("anamnesis show {short}"))
    }

    /// Returns the notes at a point in time.
    pub fn at(self, date: &str) -> Result<PastMoment<'a>, Error> {
        let time = time_of(date, self.context.environment.now)?;
        let moment = self.repository.at(time)?;
        let moment = moment.ok_or_else(|| {
            Error::failed(format!(
                "the history has nothing before {}",
                shown_time(time)
            ))
            .hint("anamnesis log --all   (its last line is the oldest)")
        })?;
        Ok(PastMoment {
            past: self,
            time,
            moment,
        })
    }

    /// Returns whether a note is withheld from the agent that asks: it is forgotten or deleted.
    pub fn is_withheld(&self, id: NoteId) -> bool {
        let is_living = || {
            let entry = self.index.get(id).ok().flatten();
            entry.is_some_and(|entry| entry.state != State::Forgotten)
        };
        self.context.environment.is_agent && !is_living()
    }

    /// Refuses a command about a withheld note.
    pub fn refuse_withheld(&self, id: NoteId) -> Result<(), Error> {
        if self.is_withheld(id) {
            self.context
                .check_person("read a forgotten or removed note")?;
        }
        Ok(())
    }

    /// The title of the first note of a commit; empty if there is none.
    pub fn title(&self, event: &NoteCommit) -> String {
        let is_forgotten = event.verb() == FORGET_SESSION;
        if is_forgotten || event.notes.keys().any(|id| self.is_withheld(*id)) {
            return String::new();
        }
        let title = event.title.as_deref().unwrap_or_default();
        safe_line(title)
    }

    /// The current or last title of a note; empty if unknown.
    pub fn title_of(&self, id: NoteId) -> String {
        let entry = entry(self.context, &self.index, id).ok().flatten();
        entry.map_or_else(String::new, |entry| one_line(&entry.title))
    }

    /// The short id of a note, current or deleted.
    pub fn short(&self, id: NoteId) -> String {
        Context::short(&self.index, id)
    }

    /// Formats a commit as one line, in a narrow terminal as two.
    pub fn line(&self, event: &NoteCommit) -> String {
        let what = format!("{} {}", shown_verb(event), counts(event));
        let title = self.title(event);
        let what = if title.is_empty() {
            what
        } else {
            format!("{what} {title}")
        };
        let (what, beginning) = (what.trim_end(), self.beginning(event));
        let room = width().saturating_sub(beginning.chars().count() + 1);
        if room < MIN_ROOM {
            format!("{beginning}\n  {}", shorten(what, width() - 2))
        } else {
            format!("{beginning} {}", shorten(what, room))
        }
    }

    /// The columns of a commit: time, machine, author and change.
    pub fn beginning(&self, event: &NoteCommit) -> String {
        let machine = event.machine.as_deref().unwrap_or("-");
        let batch = event.batch.map_or_else(|| "-".to_owned(), short_change);
        format!(
            "{:<10} {:<NAME_WIDTH$} {:<NAME_WIDTH$} {batch:<6}",
            ago(event.at, self.context.environment.now),
            shorten(&one_line(machine), NAME_WIDTH),
            shorten(&one_line(shown_actor(event)), NAME_WIDTH),
        )
    }

    /// A commit as JSON.
    pub fn json(&self, event: &NoteCommit) -> Value {
        let title = self.title(event);
        let notes = event
            .notes
            .iter()
            .map(|(id, touched)| json!({ "id": id.to_string(), "did": word(*touched) }));
        json!({
            "commit": event.commit,
            "at": iso(event.at),
            "machine": event.machine.as_deref().map(one_line),
            "actor": event.actor.as_deref().map(one_line),
            "change": event.batch.map(|batch| batch.to_string()),
            "did": shown_verb(event),
            "title": (!title.is_empty()).then_some(title),
            "notes": notes.collect::<Vec<_>>(),
        })
    }
}

/// The notes at a point in time.
pub struct PastMoment<'a> {
    /// The history.
    pub past: Past<'a>,
    /// The time.
    pub time: DateTime<Utc>,
    /// The notes then.
    pub moment: Moment,
}

impl PastMoment<'_> {
    /// Resolves a partial id to one of the notes.
    pub fn resolve(&self, typed: &str) -> Result<NoteId, Error> {
        let reference = reference(typed)?;
        let there = self.moment.ids();
        let there = there.filter(|id| reference.matches(&id.to_string()));
        let there: BTreeSet<NoteId> = there.collect();
        if there.is_empty() {
            let typed = reference.as_str();
            let failure = format!("#{typed} was not there at {}", shown_time(self.time));
            return Err(Error::failed(failure).hint(format!("anamnesis log --note {typed}")));
        }
        one_of(&reference, &there)
    }

    /// Returns a note as if it were on the disk. `None` if it did not exist or is withheld from an
    /// agent.
    pub fn stored(&self, id: NoteId) -> Result<Option<Stored>, Error> {
        if self.past.is_withheld(id) {
            return Ok(None);
        }
        let file = self.past.repository.note_at(&self.moment, id)?;
        file.map(|file| stored(id, &file)).transpose()
    }

    /// Builds an index in memory. Files that were not valid notes then are left out.
    pub fn index(&self) -> Result<Index, Error> {
        let stored = |id| self.stored(id).ok().flatten();
        Ok(Index::in_memory(self.moment.ids().filter_map(stored))?)
    }
}

/// Commits, as `log` lists them.
#[derive(Serialize)]
pub struct CommitList {
    /// The commits, newest first.
    pub commits: Vec<Value>,
    /// Whether there are older ones.
    pub more: bool,
}

/// Adds to tombstones, which have no title, the one in the trash or the last one that the history has. A
/// purged note has none there. Errors are only logged.
pub fn add_titles(context: &Context, entries: &mut [Entry]) {
    if context.environment.is_agent {
        return;
    }
    let repository = LazyCell::new(|| {
        history::read_without_hashing();
        context.repository().unwrap_or_else(|failure| {
            context.log(failure.text().trim_end());
            None
        })
    });
    let is_untitled =
        |entry: &&mut Entry| entry.title.is_empty() && entry.state == State::Forgotten;
    for entry in entries.iter_mut().filter(is_untitled) {
        let id = entry.id();
        let title = |bytes: &[u8]| {
            let file = NoteFile::parse(bytes, id).ok()?;
            Some(safe_line(&file.note().title)).filter(|title| !title.is_empty())
        };
        let trashed = context.notes.trashed(id);
        let title = trashed.and_then(|bytes| title(&bytes)).or_else(|| {
            let versions = repository.as_ref()?.versions(id, MAX_SEARCHED).ok()?;
            let mut files = versions.iter().filter_map(|version| version.file.as_ref());
            files.find_map(|file| title(&file.bytes))
        });
        entry.title = title.unwrap_or_default();
    }
}

/// Returns the index entry of a note; that of a tombstone has the title that the note had.
pub fn entry(context: &Context, index: &Index, id: NoteId) -> Result<Option<Entry>, Error> {
    let mut entry = index.get(id)?;
    add_titles(context, entry.as_mut_slice());
    Ok(entry)
}

/// Leaves one row of each session's note: a session writes its note at every turn's end.
pub fn once_per_session<T>(rows: &mut Vec<T>, event_of: impl Fn(&T) -> &NoteCommit) {
    let mut seen = BTreeSet::new();
    rows.retain(|row| {
        let event = event_of(row);
        event.actor.as_deref() != Some("session")
            || event.verb() != "noted"
            || event.notes.keys().filter(|id| seen.insert(**id)).count() > 0
    });
}

/// Returns the machine whose commit first had this text of a note.
pub fn writer_of(repository: &Repository, id: NoteId, body: &str) -> Option<String> {
    let mut versions = repository.versions(id, MAX_SEARCHED).ok()?;
    versions.retain(|version| {
        let file = version.file.as_ref();
        let file = file.and_then(|file| NoteFile::parse(&file.bytes, id).ok());
        file.is_some_and(|file| file.note().body.trim() == body.trim())
    });
    // The newest is first.
    let machine = versions.pop()?.event.machine?;
    Some(one_line(&machine))
}

/// How many versions of a note are searched for a text.
const MAX_SEARCHED: usize = 200;

/// The error for an unknown change.
fn unknown(typed: &str) -> Error {
    let typed = one_line(typed);
    Error::failed(format!("no change \"{}\"", shorten(&typed, 40)))
        .hint("four or more characters of its end: anamnesis log")
}

fn reference(typed: &str) -> Result<IdPrefix, Error> {
    IdPrefix::parse(typed).map_err(|_| context::not_an_id(typed))
}

fn one_of(reference: &IdPrefix, found: &BTreeSet<NoteId>) -> Result<NoteId, Error> {
    let mut ids = found.iter();
    match (ids.next(), ids.next()) {
        (Some(id), None) => Ok(*id),
        (None, _) => Err(context::no_note(reference)),
        _ => {
            let candidates: Vec<_> = found.iter().map(|id| format!("  {id}")).collect();
            Err(context::several_notes(reference, &candidates))
        }
    }
}

/// Parses a file of the history as if it were on the disk.
fn stored(id: NoteId, file: &File) -> Result<Stored, Error> {
    let path = NotePath {
        scope: Scope::Portable,
        folder: file.folder,
        id,
    };
    let read = NoteFile::parse(&file.bytes, id)
        .map_err(Error::prefixed(format_args!("{path} was no note then")))?;
    Ok(Stored {
        path,
        stamp: Stamp::default(),
        file: read,
        whole: true,
    })
}

/// Returns the point in time that a person typed.
pub fn time_of(date: &str, now: DateTime<Utc>) -> Result<DateTime<Utc>, Error> {
    parse_date(date, now).ok_or_else(|| {
        Error::usage(format!("\"{}\" is not a date", one_line(date)))
            .hint("2026-01-31, 2026-01-31T09:30Z, yesterday, or \"3 d ago\"")
    })
}

/// Parses a point in time: a note's timestamp, a day (meaning its end), or a relative age (`3 d
/// ago`).
fn parse_date(text: &str, now: DateTime<Utc>) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(day) = NaiveDate::parse_from_str(text, "%Y-%m-%d") {
        return Some(day.and_hms_opt(23, 59, 59)?.and_utc());
    }
    if text == "yesterday" {
        return now.checked_sub_signed(TimeDelta::days(1));
    }
    let Some(age) = text.strip_suffix(" ago") else {
        // Seconds are optional.
        return parse_timestamp(text).or_else(|| parse_timestamp(text.strip_suffix('Z')?));
    };
    let (number, unit) = age.trim().split_once(' ')?;
    let number: i64 = number.parse().ok().filter(|number| *number >= 0)?;
    let age = match unit.trim().trim_end_matches('s') {
        "min" | "minute" => TimeDelta::try_minutes(number),
        "h" | "hour" => TimeDelta::try_hours(number),
        "d" | "day" => TimeDelta::try_days(number),
        "week" => TimeDelta::try_weeks(number),
        _ => None,
    };
    now.checked_sub_signed(age?)
}

/// Formats a point in time for people.
pub fn shown_time(time: DateTime<Utc>) -> String {
    time.format("%Y-%m-%d %H:%M:%S UTC").to_string()
}

/// Formats a point in time for scripts.
pub fn iso(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// The author of a commit, for people.
pub fn shown_actor(event: &NoteCommit) -> &str {
    match event.actor.as_deref() {
        Some("person") => "you",
        Some(other) => other,
        None => "-",
    }
}

/// Returns what a commit did, in one line.
pub fn shown_verb(event: &NoteCommit) -> String {
    let is_new = |touched: &Touched| *touched == Touched::Added;
    match event.verb() {
        "edited" if event.notes.values().all(is_new) => "wrote".to_owned(),
        "purge" => "removed".to_owned(),
        FORGET_SESSION => "forget".to_owned(),
        verb => safe_line(verb),
    }
}

/// Returns what a commit did to a note, in one word.
pub fn word(touched: Touched) -> &'static str {
    match touched {
        Touched::Added => "new",
        Touched::Changed => "changed",
        Touched::Removed => "gone",
    }
}

/// Counts the notes that a commit added, changed and removed.
pub fn counts(event: &NoteCommit) -> String {
    let amounts = [
        ('+', Touched::Added),
        ('~', Touched::Changed),
        ('-', Touched::Removed),
    ];
    let amounts = amounts.iter().filter_map(|(sign, touched)| {
        let amount = event
            .notes
            .values()
            .filter(|other| *other == touched)
            .count();
        (amount > 0).then(|| format!("{sign}{}", number(amount)))
    });
    amounts.collect::<Vec<_>>().join(" ")
}

/// Summarises what a version changed.
pub fn changes(id: NoteId, version: &Version, older: Option<&Version>) -> String {
    let note = |version: &Version| -> Option<Note> {
        let file = NoteFile::parse(&version.file.as_ref()?.bytes, id).ok()?;
        Some(file.into_note())
    };
    let Some(file) = &version.file else {
        return "(gone)".to_owned();
    };
    let before = older.and_then(|older| older.file.as_ref());
    let Some(before) = before else {
        return "(new)".to_owned();
    };
    let (Some(new), Some(old)) = (note(version), older.and_then(note)) else {
        return "(cannot be read as a note)".to_owned();
    };
    if new.state == State::Forgotten && old.state != State::Forgotten {
        return "(forgotten)".to_owned();
    }
    let mut parts = Vec::new();
    let changed = [
        (new.title != old.title, "title"),
        (new.body != old.body, "text"),
        (new.tags != old.tags, "tags"),
        (new.asked != old.asked, "asked"),
        (new.project != old.project, "project"),
        (
            new.kind() != old.kind() || file.folder != before.folder,
            "kind",
        ),
        (new.state != old.state, "state"),
        (new.pinned != old.pinned, "pinned"),
    ];
    parts.extend(changed.iter().filter(|(is, _)| *is).map(|(_, word)| *word));
    if parts.is_empty() {
        parts.push("fields");
    }
    let mut text = parts.join(", ");
    if new.title != old.title {
        let title = safe_line(&new.title);
        text.push_str(&format!(": {}", shorten(&title, 60)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_is_read_as_it_is_shown_and_as_notes_have_it() {
        let now = parse_timestamp("2026-01-02T03:04:05Z").unwrap();
        let cases = [
            ("2025-12-31", "2025-12-31T23:59:59Z"),
            ("2025-12-31T10:00:00+02:00", "2025-12-31T08:00:00Z"),
            (" 2025-12-31 10:00 ", "2025-12-31T10:00:00Z"),
            ("2025-12-31T10:00Z", "2025-12-31T10:00:00Z"),
            ("yesterday", "2026-01-01T03:04:05Z"),
            ("3 d ago", "2025-12-30T03:04:05Z"),
            ("1 day ago", "2026-01-01T03:04:05Z"),
            ("2 h ago", "2026-01-02T01:04:05Z"),
            ("90 min ago", "2026-01-02T01:34:05Z"),
            ("2 weeks ago", "2025-12-19T03:04:05Z"),
        ];
        for (text, time) in cases {
            assert_eq!(parse_date(text, now), parse_timestamp(time), "{text}");
        }
        for text in [
            "",
            "ago",
            " ago",
            "-1 d ago",
            "3 ago",
            "9223372036854775807 d ago",
            "2025-13-01",
            "soon",
        ] {
            assert_eq!(parse_date(text, now), None, "{text}");
        }
    }
}
