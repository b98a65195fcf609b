//! The inverted index: which notes have a term, and how often. Recall ranks with it.
//!
//! A term has one BLOB per block of 4,096 note numbers, and each block has one BLOB with the
//! properties that ranking needs. A query of ten words reads some dozen rows, and a new note rewrites
//! a few KiB per term instead of the whole list.
//!
//! - Terms and BLOBs have separate tables, because a lookup in a table without rowids compares whole
//!   rows and would read every BLOB on the way.
//! - [`Changes`] collects the changes of many notes and writes each term and block once.
//! - The words of a removed note are taken from its stored text.
//! - An invalid BLOB is reported as damage. It causes no panic and no allocation larger than the
//!   file.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    note::{Note, State},
};
use anamnesis_text::terms::words;
use rusqlite::{Connection, ToSql, params, types::FromSqlError};

use super::{
    Error, Index, Tables, Texts,
    document::{Block, DOCUMENT_LENGTH, Document, decode_block},
    entry::Parsed,
    query::{BY_REFERENCE, reference_values},
};
use crate::sqlite::{Compressed, Json, Queries, read_row};

const SCHEMA: &str = "
CREATE TABLE dictionary (
  term TEXT NOT NULL, block INTEGER NOT NULL, df INTEGER NOT NULL, posting INTEGER NOT NULL,
  PRIMARY KEY (term, block)
) STRICT, WITHOUT ROWID;
CREATE TABLE posting (number INTEGER PRIMARY KEY, notes BLOB NOT NULL) STRICT;
CREATE TABLE document (block INTEGER PRIMARY KEY, notes BLOB NOT NULL) STRICT;
CREATE TABLE project (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE) STRICT;
";

/// The tables, which [`Changes`] updates for many notes at a time.
pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert: |_, _, _| Ok(()),
    remove: &[],
};

/// The low bits of a note's number are its position in the block; the others are the block.
const BLOCK_BITS: u32 = 12;
const PLACES: u32 = (1 << BLOCK_BITS) - 1;

/// The number of note numbers per block.
pub const BLOCK_LENGTH: usize = 1 << BLOCK_BITS;

/// The weight of a word in the title: the best value from 1 to 5 on four collections.
const TITLE_WEIGHT: u32 = 4;
/// The weight of a word that a note may be asked for with.
const ASKED_WEIGHT: u32 = 2;

/// The maximum term frequency that is stored.
const MAX_FREQUENCY: u32 = 0x7f;

/// The maximum number of a project.
const MAX_PROJECTS: u32 = 1 << 20;

/// The maximum number of posting changes that are collected before they are written.
const MAX_GATHERED: usize = 400_000;

/// All notes, by block.
#[derive(Debug, Default)]
pub struct Documents {
    /// The blocks with a note, by number, ascending; each has at most [`BLOCK_LENGTH`] positions.
    pub blocks: Vec<(u32, Block)>,
    projects: BTreeMap<u32, String>,
}

impl Documents {
    /// Returns the keys of all projects with their numbers.
    pub fn projects(&self) -> impl Iterator<Item = (u32, &str)> {
        self.projects
            .iter()
            .map(|(number, key)| (*number, key.as_str()))
    }
}

/// The postings of a term, encoded.
#[derive(Debug, Default)]
pub struct Postings {
    blocks: Vec<(u32, u32, Vec<u8>)>,
}

impl Postings {
    /// Reads the postings of a term.
    pub(super) fn of_term(connection: &Connection, term: &str) -> Result<Self, Error> {
        Self::read(
            connection,
            "SELECT block, df, notes FROM dictionary LEFT JOIN posting ON number = posting \
             WHERE term = ? ORDER BY block",
            term,
        )
    }

    fn read(connection: &Connection, sql: &str, text: &str) -> Result<Self, Error> {
        let blocks = connection.tuples(sql, [text])?;
        Ok(Self { blocks })
    }

    /// Iterates over the positions in a block whose notes have the term, ascending, with the
    /// frequency from 1 to 127. A word of the title counts four times.
    pub fn each_in(&self, block: u32, take: impl FnMut(usize, u8)) -> Result<(), Error> {
        let found = self
            .blocks
            .binary_search_by_key(&block, |(number, ..)| *number);
        match found.ok().and_then(|place| self.blocks.get(place)) {
            Some((_, count, bytes)) => Ok(decode(bytes, *count, take).ok_or_else(damaged)?),
            None => Ok(()),
        }
    }

    /// Returns the numbers of all notes that have the term.
    pub(super) fn numbers(&self) -> Result<BTreeSet<u32>, Error> {
        let mut numbers = Vec::new();
        self.each(|number| numbers.push(number))?;
        Ok(numbers.into_iter().collect())
    }

    /// Iterates over the numbers of all notes that have the term, ascending.
    pub(super) fn each(&self, mut take: impl FnMut(u32)) -> Result<(), Error> {
        for (block, count, bytes) in &self.blocks {
            let first = block << BLOCK_BITS;
            let take = |place, _| {
                if let Ok(place) = u32::try_from(place) {
                    take(first | place);
                }
            };
            decode(bytes, *count, take).ok_or_else(damaged)?;
        }
        Ok(())
    }
}

/// The postings of the terms that begin with a text. No character sorts after U+10FFFF.
pub(super) const PREFIXED: &str = "SELECT block, df, notes
  FROM dictionary LEFT JOIN posting ON number = posting
  WHERE term BETWEEN ?1 AND ?1 || char(1114111)";

impl Index {
    /// Returns the properties of all notes for ranking.
    pub fn documents(&self) -> Result<Documents, Error> {
        let mut blocks = Vec::new();
        let sql = "SELECT block, notes FROM document ORDER BY block";
        self.each(sql, [], |row| {
            let block = decode_block(row.get_ref("notes")?.as_blob()?).ok_or_else(damaged)?;
            blocks.push((row.get("block")?, block));
            Ok(())
        })?;
        let sql = "SELECT number, key FROM project";
        let projects: BTreeMap<u32, String> = self.tuples(sql, [])?;
        // Numbers are assigned in sequence, so a caller may allocate by the highest one.
        if projects.keys().any(|number| *number > MAX_PROJECTS) {
            return Err(damaged().into());
        }
        Ok(Documents { blocks, projects })
    }

    /// Returns the document frequency of a term, over all notes.
    pub fn frequency(&self, term: &str) -> Result<u32, Error> {
        let sum: i64 = self.value(
            "SELECT coalesce(sum(df), 0) FROM dictionary WHERE term = ?",
            [term],
        )?;
        Ok(u32::try_from(sum).unwrap_or(u32::MAX))
    }

    /// Returns the postings of a term.
    pub fn postings(&self, term: &str) -> Result<Postings, Error> {
        Postings::of_term(&self.connection, term)
    }

    /// Returns the postings of all terms that begin with a text; those of a block are not merged.
    pub(super) fn postings_from(&self, prefix: &str) -> Result<Postings, Error> {
        Postings::read(&self.connection, PREFIXED, prefix)
    }

    /// Reads every BLOB and reports an invalid one.
    pub(super) fn read_postings(&self) -> Result<(), Error> {
        self.documents()?;
        let sql = "SELECT df, notes FROM dictionary LEFT JOIN posting ON number = posting";
        self.each(sql, [], |row| {
            let bytes = row.get_ref("notes")?.as_blob()?;
            decode(bytes, row.get("df")?, |_, _| {}).ok_or_else(damaged)
        })
    }

    /// Returns the id and the title of a note's number.
    pub fn heading(&self, number: u32) -> Result<Option<(NoteId, String)>, Error> {
        let found = self.first_tuple("SELECT id, title FROM note WHERE number = ?", [number])?;
        Ok(found.map(|(Parsed(id), title)| (id, title)))
    }

    /// Returns the texts of a note's number. A tombstone has none.
    pub fn text(&self, number: u32) -> Result<Option<Texts>, Error> {
        Ok(text_of(&self.connection, number.into())?)
    }

    /// Returns the numbers of the notes whose id begins or ends with the reference.
    pub fn numbers_matching(&self, reference: &IdPrefix) -> Result<Vec<u32>, Error> {
        // The number is the first column.
        self.column(BY_REFERENCE, reference_values(reference))
    }
}

/// The collected changes of added and removed notes.
#[derive(Debug, Default)]
pub(super) struct Changes {
    /// The changes by term, in the order of the notes.
    postings: HashMap<Box<str>, Vec<FrequencyChange>>,
    gathered: usize,
    documents: BTreeMap<u32, Option<Document>>,
    superseded: BTreeMap<u32, bool>,
    projects: HashMap<String, u32>,
    /// The numbers of removed notes, by id. They are assigned again, so that blocks stay full. A
    /// changed note gets its own number, so that only changed words are written.
    free: BTreeMap<String, i64>,
    /// The numbers of added notes.
    pub(super) added: Vec<i64>,
}

/// The old and the new frequency of a term in a note.
#[derive(Debug, Clone, Copy)]
struct FrequencyChange {
    number: u32,
    before: u32,
    now: u32,
}

impl Changes {
    /// Takes a free number for a note, if there is one.
    pub(super) fn free_number(&mut self, id: NoteId) -> Option<i64> {
        let own = self.free.remove(&id.to_string());
        own.or_else(|| self.free.pop_first().map(|(_, number)| number))
    }

    /// Adds a note with these terms.
    pub(super) fn insert(
        &mut self,
        connection: &Connection,
        number: i64,
        note: &Note,
        terms: &NoteTerms,
    ) -> Result<(), Error> {
        self.added.push(number);
        let number = small(number)?;
        let mut length = 0;
        for (term, weight) in terms.weighted() {
            length += weight;
            let change = FrequencyChange {
                number,
                before: 0,
                now: weight,
            };
            self.count(term, change);
        }
        let project = self.project(connection, &note.project)?;
        let document = Document::from_note(note, project, length);
        self.documents.insert(number, Some(document));
        if self.gathered > MAX_GATHERED {
            self.write(connection)?;
        }
        Ok(())
    }

    /// Removes a note whose row and text are still stored.
    pub(super) fn remove(&mut self, connection: &Connection, number: i64) -> Result<(), Error> {
        let note = small(number)?;
        if let Some(text) = text_of(connection, number)? {
            for (term, weight) in NoteTerms::from(&text).weighted() {
                let change = FrequencyChange {
                    number: note,
                    before: weight,
                    now: 0,
                };
                self.count(term, change);
            }
        }
        self.documents.insert(note, None);
        let id = connection.value("SELECT id FROM note WHERE number = ?", [number])?;
        self.free.insert(id, number);
        Ok(())
    }

    /// Records whether a note is superseded.
    pub(super) fn supersede(&mut self, number: i64, is_superseded: bool) -> Result<(), Error> {
        self.superseded.insert(small(number)?, is_superseded);
        Ok(())
    }

    /// Records a change of a term's frequency in a note.
    fn count(&mut self, term: &str, change: FrequencyChange) {
        let Some(list) = self.postings.get_mut(term) else {
            self.postings.insert(term.into(), vec![change]);
            self.gathered += 1;
            return;
        };
        match list.last_mut() {
            Some(same) if same.number == change.number && (same.now > 0) == (change.now > 0) => {
                same.before += change.before;
                same.now += change.now;
            }
            _ => {
                list.push(change);
                self.gathered += 1;
            }
        }
    }

    fn project(&mut self, connection: &Connection, key: &str) -> Result<u32, Error> {
        if let Some(number) = self.projects.get(key) {
            return Ok(*number);
        }
        connection.run("INSERT OR IGNORE INTO project (key) VALUES (?)", [key])?;
        let number = connection.value("SELECT number FROM project WHERE key = ?", [key])?;
        self.projects.insert(key.to_owned(), number);
        Ok(number)
    }

    /// Writes the collected changes, each BLOB once.
    pub(super) fn write(&mut self, connection: &Connection) -> Result<(), Error> {
        self.write_postings(connection)?;
        self.write_documents(connection)?;
        // Removes projects without notes.
        connection.run("DELETE FROM project WHERE NOT EXISTS (SELECT 1 FROM note WHERE note.project = project.key)",
            [],
        )?;
        self.projects.clear();
        Ok(())
    }

    fn write_postings(&mut self, connection: &Connection) -> Result<(), Error> {
        let sql = "SELECT df, number, notes FROM dictionary LEFT JOIN posting ON number = posting
             WHERE term = ? AND block = ?";
        self.gathered = 0;
        // Sorted like the table.
        let mut terms: Vec<_> = self.postings.drain().collect();
        terms.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        for (term, mut changed) in terms {
            changed.sort_by_key(|change| change.number);
            let changed: Vec<(u32, u32)> = changed
                .chunk_by(|a, b| a.number == b.number)
                .filter_map(of_one_note)
                .collect();
            for changed in changed.chunk_by(|(a, _), (b, _)| block_of(*a) == block_of(*b)) {
                let Some(block) = changed.first().map(|(number, _)| block_of(*number)) else {
                    continue;
                };
                let old: Option<(u32, i64, Vec<u8>)> =
                    connection.first_tuple(sql, params![term, block])?;
                let mut notes = Encoder::default();
                let changed = changed.iter();
                let mut changed = changed
                    .map(|(number, now)| (place_of(*number), *now))
                    .peekable();
                let number = match old {
                    None => None,
                    Some((count, number, bytes)) => {
                        let take = |place, frequency: u8| {
                            while let Some((at, now)) = changed.next_if(|(at, _)| *at < place) {
                                notes.add(at, now);
                            }
                            let now = changed.next_if(|(at, _)| *at == place);
                            notes.add(place, now.map_or(frequency.into(), |(_, now)| now));
                        };
                        decode(&bytes, count, take).ok_or_else(damaged)?;
                        Some(number)
                    }
                };
                changed.for_each(|(at, now)| notes.add(at, now));
                store_list(connection, &term, block, number, &notes)?;
            }
        }
        Ok(())
    }

    fn write_documents(&mut self, connection: &Connection) -> Result<(), Error> {
        let changed = std::mem::take(&mut self.documents);
        let superseded = std::mem::take(&mut self.superseded);
        let blocks: BTreeSet<u32> = changed
            .keys()
            .chain(superseded.keys())
            .map(|number| block_of(*number))
            .collect();
        for block in blocks {
            let old: Option<Vec<u8>> =
                connection.first("SELECT notes FROM document WHERE block = ?", [block])?;
            let mut notes = match old {
                Some(bytes) => decode_block(&bytes).ok_or_else(damaged)?,
                None => Block::new(),
            };
            let first = block << BLOCK_BITS;
            let last = first | PLACES;
            for (number, document) in changed.range(first..=last) {
                let place = place_of(*number);
                if notes.len() <= place {
                    notes.resize(place + 1, None);
                }
                notes[place] = *document;
            }
            for (number, is_superseded) in superseded.range(first..=last) {
                if let Some(Some(document)) = notes.get_mut(place_of(*number)) {
                    document.supersede(*is_superseded);
                }
            }
            while notes.last().is_some_and(Option::is_none) {
                notes.pop();
            }
            if notes.is_empty() {
                connection.run("DELETE FROM document WHERE block = ?", [block])?;
            } else {
                let bytes: Vec<u8> = notes
                    .iter()
                    .flat_map(|note| note.map_or([0; DOCUMENT_LENGTH], |note| note.encode()))
                    .collect();
                connection.run(
                    "INSERT OR REPLACE INTO document VALUES (?, ?)",
                    params![block, bytes],
                )?;
            }
        }
        Ok(())
    }
}

/// Replaces, inserts or deletes the BLOB with this number.
fn store_list(
    connection: &Connection,
    term: &str,
    block: u32,
    number: Option<i64>,
    notes: &Encoder,
) -> rusqlite::Result<()> {
    let run = |sql: &str, values: &[&dyn ToSql]| connection.run(sql, values);
    match number {
        Some(number) if notes.count > 0 => {
            run(
                "UPDATE posting SET notes = ? WHERE number = ?",
                &[&notes.bytes, &number],
            )?;
            run(
                "UPDATE dictionary SET df = ? WHERE term = ? AND block = ?",
                &[&notes.count, &term, &block],
            )?;
        }
        Some(number) => {
            run("DELETE FROM posting WHERE number = ?", &[&number])?;
            run(
                "DELETE FROM dictionary WHERE term = ? AND block = ?",
                &[&term, &block],
            )?;
        }
        None if notes.count > 0 => {
            run("INSERT INTO posting (notes) VALUES (?)", &[&notes.bytes])?;
            let number = connection.last_insert_rowid();
            run(
                "INSERT INTO dictionary VALUES (?, ?, ?, ?)",
                &[&term, &block, &notes.count, &number],
            )?;
        }
        None => {}
    }
    Ok(())
}

pub(super) fn text_of(connection: &Connection, number: i64) -> rusqlite::Result<Option<Texts>> {
    connection.one(
        "SELECT title, tags, asked, body FROM note_text JOIN note USING (number) WHERE number = ?",
        [number],
        |row| {
            let Json::<Vec<String>>(tags) = row.get("tags")?;
            let Compressed(body) = row.get("body")?;
            read_row!(row, Texts: title, asked; tags = tags.join(" "), body = body)
        },
    )
}

/// The terms of a note in order, with repetitions. Many notes are indexed in a row, so the terms
/// share one allocation.
#[derive(Default)]
pub(super) struct NoteTerms {
    text: String,
    /// For each term, its end in `text` and its weight.
    ends: Vec<(usize, u32)>,
}

impl From<&Texts> for NoteTerms {
    fn from(texts: &Texts) -> Self {
        let mut terms = Self::default();
        for (text, weight) in [
            (&texts.title, TITLE_WEIGHT),
            (&texts.tags, 1),
            (&texts.asked, ASKED_WEIGHT),
            (&texts.body, 1),
        ] {
            words(text, |word| {
                terms.text.push_str(word.term);
                terms.ends.push((terms.text.len(), weight));
            });
        }
        terms
    }
}

impl From<&Note> for NoteTerms {
    /// A tombstone has no terms.
    fn from(note: &Note) -> Self {
        if note.state == State::Forgotten {
            return Self::default();
        }
        Self::from(&Texts {
            title: note.title.clone(),
            tags: note.tags.join(" "),
            asked: note.asked.join("\n"),
            body: note.body.clone(),
        })
    }
}

impl NoteTerms {
    fn weighted(&self) -> impl Iterator<Item = (&str, u32)> {
        let starts = std::iter::once(0).chain(self.ends.iter().map(|(end, _)| *end));
        starts
            .zip(&self.ends)
            .filter_map(|(start, (end, weight))| Some((self.text.get(start..*end)?, *weight)))
    }
}

/// Returns the frequency after several changes; none if it did not change.
fn of_one_note(changes: &[FrequencyChange]) -> Option<(u32, u32)> {
    let (first, last) = (changes.first()?, changes.last()?);
    let now = last.now.min(MAX_FREQUENCY);
    (first.before.min(MAX_FREQUENCY) != now).then_some((last.number, now))
}

/// Encodes the BLOB of a term and a block: for each note the distance from the previous position in
/// one or two bytes, then the frequency in one byte.
#[derive(Default)]
struct Encoder {
    bytes: Vec<u8>,
    count: u32,
    next: usize,
}

impl Encoder {
    /// Adds a note, in ascending order; notes without the term are left out.
    fn add(&mut self, place: usize, frequency: u32) {
        if frequency == 0 {
            return;
        }
        // At most two bytes, because a block has 4,096 positions.
        let [low, high, ..] = (place.saturating_sub(self.next) << 1).to_le_bytes();
        if high == 0 {
            self.bytes.push(low >> 1);
        } else {
            self.bytes.extend([low >> 1 | 0x80, high]);
        }
        let frequency = frequency.min(MAX_FREQUENCY);
        self.bytes.push(u8::try_from(frequency).unwrap_or(u8::MAX));
        self.next = place + 1;
        self.count += 1;
    }
}

/// Decodes what [`Encoder`] writes; `None` for anything else.
fn decode(bytes: &[u8], count: u32, mut take: impl FnMut(usize, u8)) -> Option<()> {
    let mut bytes = bytes.iter().copied();
    let mut next = 0;
    let mut seen = 0;
    while let Some(first) = bytes.next() {
        let mut skipped = usize::from(first & 0x7f);
        if first & 0x80 != 0 {
            skipped |= usize::from(bytes.next()?) << 7;
        }
        let place = next + skipped;
        let frequency = bytes.next()?;
        if place >= BLOCK_LENGTH || frequency == 0 {
            return None;
        }
        take(place, frequency);
        next = place + 1;
        seen += 1;
    }
    (seen == count).then_some(())
}

fn block_of(number: u32) -> u32 {
    number >> BLOCK_BITS
}

fn place_of(number: u32) -> usize {
    (number & PLACES) as usize
}

/// Converts a note's number; 32 bits are enough for four thousand million notes.
fn small(number: i64) -> rusqlite::Result<u32> {
    u32::try_from(number).map_err(|_| damaged())
}

fn damaged() -> rusqlite::Error {
    FromSqlError::Other("a list of notes that this program did not write".into()).into()
}

#[cfg(test)]
mod tests {
    use anamnesis_note::{id::NoteId, note::NoteType};
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::{super::create, *};

    fn connection() -> Connection {
        let connection = crate::sqlite::open_in_memory().unwrap();
        create(&connection).unwrap();
        connection
    }

    fn note(number: i64, body: &str) -> Note {
        let mut note = Note::new(
            NoteId::made_of(&number.to_string()),
            NoteType::Semantic,
            DateTime::UNIX_EPOCH,
        );
        note.title = format!("title {body}");
        note.body = body.to_owned();
        note.project = format!("p{}", number % 3);
        note
    }

    /// Adds a note as the index does.
    fn insert(connection: &Connection, changes: &mut Changes, number: i64, body: &str) {
        let note = note(number, body);
        connection
            .execute(
                "INSERT INTO note_text VALUES (?, '', ?)",
                params![number, Compressed(note.body.as_str())],
            )
            .unwrap();
        connection
            .execute(
                "INSERT INTO note (number, id, folder, size, modified, inode, scope, type, kind, state, title,
                   project, machine_id, user_id, workspace_id, source, by_agent, confidence, created_at,
                   updated_at, tags, reflected, pinned, length)
                 VALUES (?1, ?2, 0, 0, 0, 0, '', '', '', '', ?3, ?4, '', '', '', '', 0, 1.0, '', '', '[]', 0, 0, 0)",
                params![number, note.id.to_string(), note.title, note.project],
            )
            .unwrap();
        changes
            .insert(connection, number, &note, &NoteTerms::from(&note))
            .unwrap();
    }

    fn remove(connection: &Connection, changes: &mut Changes, number: i64) {
        changes.remove(connection, number).unwrap();
        for sql in [
            "DELETE FROM note_text WHERE number = ?",
            "DELETE FROM note WHERE number = ?",
        ] {
            connection.execute(sql, [number]).unwrap();
        }
    }

    /// Returns the contents of the tables, with project keys instead of numbers.
    fn dump(connection: Connection) -> String {
        let terms: Vec<String> = connection
            .prepare("SELECT DISTINCT term FROM dictionary ORDER BY term")
            .unwrap()
            .query_map([], |row| row.get(0))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        let index = Index {
            connection,
            lock: None,
        };
        let documents = index.documents().unwrap();
        let mut told = String::new();
        for (block, notes) in &documents.blocks {
            for (place, document) in notes.iter().enumerate() {
                let Some(mut document) = *document else {
                    continue;
                };
                let project = documents.projects[&document.project].clone();
                document.project = 0;
                told.push_str(&format!("{block}/{place} {project} {document:?}\n"));
            }
        }
        let mut projects: Vec<&str> = documents.projects().map(|(_, key)| key).collect();
        projects.sort_unstable();
        told.push_str(&format!("{projects:?}\n"));
        for term in terms {
            let postings = index.postings(&term).unwrap();
            let mut count = 0;
            for block in 0..4 {
                let take = |place, frequency| {
                    count += 1;
                    told.push_str(&format!("{term} {block}/{place} {frequency}\n"));
                };
                postings.each_in(block, take).unwrap();
            }
            assert_eq!(index.frequency(&term).unwrap(), count);
        }
        told
    }

    const BODIES: [&str; 4] = ["alpha beta", "beta gamma beta", "gamma", "alphaBeta delta"];

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// After any sequence of changes, the tables match the remaining notes.
        #[test]
        fn kept_in_step_and_built_anew_are_the_same(
            steps in proptest::collection::vec(
                (prop::sample::select(vec![1_i64, 2, 4095, 4096, 4097, 8191, 8192, 9000]), 0..5_usize, any::<bool>()),
                0..40,
            )
        ) {
            let kept = connection();
            let mut changes = Changes::default();
            let mut there = BTreeMap::new();
            for (number, body, write) in steps {
                if there.remove(&number).is_some() {
                    remove(&kept, &mut changes, number);
                }
                if let Some(body) = BODIES.get(body) {
                    insert(&kept, &mut changes, number, body);
                    there.insert(number, body);
                }
                if write {
                    changes.write(&kept).unwrap();
                }
            }
            changes.write(&kept).unwrap();
            let anew = connection();
            let mut changes = Changes::default();
            for (number, body) in there {
                insert(&anew, &mut changes, number, body);
            }
            changes.write(&anew).unwrap();
            prop_assert_eq!(dump(kept), dump(anew));
        }

        #[test]
        fn any_list_of_notes_is_read_as_it_was_written(
            notes in proptest::collection::btree_map(0..BLOCK_LENGTH, 1..300_u32, 0..200)
        ) {
            let mut encoder = Encoder::default();
            for (place, frequency) in &notes {
                encoder.add(*place, *frequency);
            }
            let mut read = Vec::new();
            decode(&encoder.bytes, encoder.count, |place, frequency| read.push((place, u32::from(frequency)))).unwrap();
            let expected: Vec<(usize, u32)> = notes
                .into_iter()
                .map(|(place, frequency)| (place, frequency.min(MAX_FREQUENCY)))
                .collect();
            prop_assert_eq!(read, expected);
        }

        /// SQL-05
        #[test]
        fn foreign_bytes_are_damage_or_a_list(bytes in any::<Vec<u8>>(), count in 0..40_u32) {
            let mut last = None;
            let read = decode(&bytes, count, |place, frequency| {
                assert!(place < BLOCK_LENGTH && frequency > 0 && last < Some(place));
                last = Some(place);
            });
            prop_assert!(read.is_none() || bytes.len() >= 2 * count as usize);
            if let Some(block) = decode_block(&bytes) {
                let written: Vec<u8> = block
                    .iter()
                    .flat_map(|note| note.map_or([0; DOCUMENT_LENGTH], |note| note.encode()))
                    .collect();
                prop_assert!(written == bytes || block.iter().any(Option::is_none));
            }
        }
    }

    #[test]
    fn a_list_that_is_none_of_ours_is_damage() {
        // SQL-05
        for sql in [
            "UPDATE posting SET notes = x'ff'",
            "UPDATE posting SET notes = zeroblob(1000000)",
            "DELETE FROM posting",
            "UPDATE dictionary SET df = 40",
            "UPDATE document SET notes = x'010203'",
            "UPDATE document SET notes = zeroblob(60000000)",
            "UPDATE document SET block = 1099511627776",
            "UPDATE project SET number = 4294967295",
        ] {
            let connection = connection();
            let mut changes = Changes::default();
            insert(&connection, &mut changes, 1, "alpha");
            changes.write(&connection).unwrap();
            connection.execute_batch(sql).unwrap();
            let index = Index {
                connection,
                lock: None,
            };
            let error = index.integrity().unwrap_err();
            assert!(error.is_damage(), "{sql}: {error}");
        }
    }

    #[test]
    fn numbers_of_notes_that_went_are_given_again() {
        let connection = connection();
        let mut changes = Changes::default();
        for number in [3, 1, 2] {
            insert(&connection, &mut changes, number, "alpha");
        }
        for number in [3, 2] {
            remove(&connection, &mut changes, number);
        }
        let id = |number| note(number, "").id;
        assert_eq!(changes.free_number(id(3)), Some(3));
        assert_eq!(changes.free_number(id(9)), Some(2));
        assert_eq!(changes.free_number(id(2)), None);
    }
}
