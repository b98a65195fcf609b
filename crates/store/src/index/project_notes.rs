//! The notes of a project by their words: which later or earlier ones share words with a text, and
//! how rare a word is among them. The caller compares the texts.

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use anamnesis_note::{id::NoteId, note::GLOBAL};
use rusqlite::{OptionalExtension as _, Row};

use super::{
    BLOCK_LENGTH, Documents, Error, Index,
    entry::{Compressed, Parsed},
};

/// The highest share of a project's notes with a word that is looked up, in percent, and the lowest
/// number of notes for which that holds: a common word says nothing.
const MAX_SHARE: usize = 20;
const MIN_COMMON: usize = 12;

/// How many of the rarest words are looked up, and how many notes are returned.
const MAX_WORDS: usize = 16;
const MAX_RETURNED: usize = 12;

/// For how many notes a small project counts: among few notes no word is rare.
const PRIOR_NOTES: f64 = 30.0;

macro_rules! related {
    () => {
        "SELECT id, project, title, body, updated_at FROM note JOIN note_text USING (number) WHERE "
    };
}

/// When a note was changed, relative to another note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Period {
    /// Changed later.
    Later,
    /// Changed earlier.
    Earlier,
}

/// A note to compare with another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelatedText {
    /// The note.
    pub id: NoteId,
    /// Its project's key.
    pub project: String,
    /// Its title.
    pub title: String,
    /// Its body, without credentials.
    pub body: String,
    /// When its content last changed, as in [`Entry`](super::Entry).
    pub updated_at: String,
}

/// The notes of a project, and those for all projects, that may be injected.
pub struct ProjectNotes<'a> {
    index: &'a Index,
    /// When each note was changed, by number, in seconds since 1970.
    updated: HashMap<u32, u32>,
    /// A bit for the number of each. Long lists are compared with it.
    members: Vec<u64>,
    /// The notes of the project that have a term.
    numbers: RefCell<HashMap<String, Rc<[u32]>>>,
}

impl<'a> ProjectNotes<'a> {
    /// Selects the notes of the projects with these keys from those of the index.
    pub fn new(index: &'a Index, documents: &Documents, keys: &[String]) -> Self {
        let of_project: Vec<u32> = documents
            .projects()
            .filter(|(_, key)| *key == GLOBAL || keys.iter().any(|own| own == key))
            .map(|(number, _)| number)
            .collect();
        let mut updated = HashMap::new();
        let mut members = Vec::new();
        for (block, notes) in &documents.blocks {
            for (place, note) in notes.iter().enumerate() {
                if let Some(note) = note
                    && of_project.contains(&note.project)
                    && note.visibility().may_surface()
                    && let Ok(place) = u32::try_from(*block as usize * BLOCK_LENGTH + place)
                {
                    updated.insert(place, note.updated);
                    let word = place as usize / 64;
                    if members.len() <= word {
                        members.resize(word + 1, 0);
                    }
                    members[word] |= 1 << (place % 64);
                }
            }
        }
        Self {
            index,
            updated,
            members,
            numbers: RefCell::default(),
        }
    }

    /// Returns how rare a term is among the notes: 1 if none has it, 0 if all do.
    #[expect(clippy::cast_precision_loss, reason = "a count of notes")]
    pub fn rarity(&self, term: &str) -> Result<f64, Error> {
        let having = self.having(term)?.len() as f64;
        let all = self.updated.len() as f64 + PRIOR_NOTES;
        Ok(1.0 - having.max(1.0).ln() / all.ln())
    }

    /// Returns the notes that were changed later or earlier than a time, in seconds since 1970, and
    /// share words with a text: those with the most and rarest words first.
    pub fn related<'b>(
        &self,
        words: impl Iterator<Item = &'b str>,
        period: Period,
        time: i64,
    ) -> Result<Vec<RelatedText>, Error> {
        let common = MIN_COMMON.max(self.updated.len() * MAX_SHARE / 100);
        let mut rarest = Vec::new();
        for word in words {
            let numbers = self.having(word)?;
            if (1..=common).contains(&numbers.len()) {
                rarest.push((numbers.len(), word, numbers));
            }
        }
        rarest.sort_unstable();
        let mut shared: BTreeMap<u32, f64> = BTreeMap::new();
        for (_, word, numbers) in rarest.iter().take(MAX_WORDS) {
            let rarity = self.rarity(word)?;
            for number in numbers.iter() {
                let updated = self.updated.get(number).copied().unwrap_or_default();
                let is_meant = match period {
                    Period::Later => i64::from(updated) > time,
                    Period::Earlier => i64::from(updated) < time,
                };
                if is_meant {
                    *shared.entry(*number).or_default() += rarity;
                }
            }
        }
        let mut shared: Vec<(u32, f64)> = shared.into_iter().collect();
        shared.sort_by(|(one, a), (other, b)| b.total_cmp(a).then(other.cmp(one)));
        let related = shared.into_iter().take(MAX_RETURNED);
        let related = related.filter_map(|(number, _)| self.text(number).transpose());
        related.collect()
    }

    /// Returns the numbers of the notes that have a term.
    fn having(&self, term: &str) -> Result<Rc<[u32]>, Error> {
        if let Some(known) = self.numbers.borrow().get(term) {
            return Ok(Rc::clone(known));
        }
        let mut own = Vec::new();
        self.index.postings(term)?.each(|number| {
            let word = self.members.get(number as usize / 64);
            if word.is_some_and(|word| word >> (number % 64) & 1 == 1) {
                own.push(number);
            }
        })?;
        let own: Rc<[u32]> = own.into();
        let mut numbers = self.numbers.borrow_mut();
        numbers.insert(term.to_owned(), Rc::clone(&own));
        Ok(own)
    }

    fn text(&self, number: u32) -> Result<Option<RelatedText>, Error> {
        let sql = concat!(related!(), "number = ?");
        let mut statement = self.index.connection.prepare_cached(sql)?;
        Ok(statement.query_row([number], related).optional()?)
    }
}

impl Index {
    /// Returns the text of a note.
    pub fn related_text(&self, id: NoteId) -> Result<Option<RelatedText>, Error> {
        let sql = concat!(related!(), "id = ?");
        let mut statement = self.connection.prepare_cached(sql)?;
        Ok(statement.query_row([id.to_string()], related).optional()?)
    }
}

fn related(row: &Row<'_>) -> rusqlite::Result<RelatedText> {
    let Parsed(id) = row.get("id")?;
    Ok(RelatedText {
        id,
        project: row.get("project")?,
        title: row.get("title")?,
        body: row.get::<_, Compressed<_>>("body")?.0,
        updated_at: row.get("updated_at")?,
    })
}
