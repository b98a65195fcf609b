//! The notes of a project by their words: which later or earlier ones share words with a text, and
//! how rare a word is among them. The caller compares the texts.

use std::{
    cell::{Cell, RefCell},
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

/// How many BLOBs of postings are read, which takes some 30 milliseconds. Only stores of over
/// 100,000 notes reach it. Then the words that are rarest in the newest blocks are read, and
/// for the others a count is estimated from these.
const MAX_BLOBS: usize = 4_096;
const SAMPLED_BLOCKS: usize = 4;

/// How many words of a text are read then.
const READ_PER_TEXT: usize = 2;

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
    /// How many blocks the index has.
    blocks: usize,
    /// The first of the newest blocks, from which frequencies are estimated.
    first_sampled: u32,
    blobs_left: Cell<usize>,
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
        let first_sampled = documents.blocks.len().saturating_sub(SAMPLED_BLOCKS);
        let first_sampled = documents.blocks.get(first_sampled);
        Self {
            index,
            updated,
            members,
            blocks: documents.blocks.len(),
            first_sampled: first_sampled.map_or(0, |(block, _)| *block),
            blobs_left: Cell::new(MAX_BLOBS),
            numbers: RefCell::default(),
        }
    }

    /// Returns how rare a term is among the notes: 1 if none has it, 0 if all do.
    #[expect(clippy::cast_precision_loss, reason = "a count of notes")]
    pub fn rarity(&self, term: &str) -> Result<f64, Error> {
        let having = match self.having(term)? {
            Some(numbers) => numbers.len(),
            None => self.estimate(term)?,
        } as f64;
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
        for word in self.readable(words.collect())? {
            let numbers = self.having(word)?.unwrap_or_default();
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

    /// Returns the words whose postings can be read: all, or the rarest of a text in a large store.
    fn readable<'b>(&self, mut words: Vec<&'b str>) -> Result<Vec<&'b str>, Error> {
        let known = self.numbers.borrow();
        let unread = words.iter().filter(|word| !known.contains_key(**word));
        if unread.count() * self.blocks > self.blobs_left.get() {
            let mut rarest = Vec::with_capacity(words.len());
            for word in words {
                rarest.push((self.sampled(word)?, word));
            }
            rarest.sort_unstable();
            words = rarest.into_iter().map(|(_, word)| word).collect();
            words.truncate(READ_PER_TEXT);
        }
        Ok(words)
    }

    /// Returns how many notes of the newest blocks have a term.
    fn sampled(&self, term: &str) -> Result<usize, Error> {
        self.index.frequency_since(term, self.first_sampled)
    }

    /// Estimates how many notes of the project have a term.
    fn estimate(&self, term: &str) -> Result<usize, Error> {
        let count = self.sampled(term)?;
        let notes = SAMPLED_BLOCKS.min(self.blocks) * BLOCK_LENGTH;
        Ok(count * self.updated.len() / notes.max(1))
    }

    /// Returns the numbers of the notes that have a term; none if too much was read already.
    fn having(&self, term: &str) -> Result<Option<Rc<[u32]>>, Error> {
        if let Some(known) = self.numbers.borrow().get(term) {
            return Ok(Some(Rc::clone(known)));
        }
        let Some(left) = self.blobs_left.get().checked_sub(self.blocks) else {
            return Ok(None);
        };
        self.blobs_left.set(left);
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
        Ok(Some(own))
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

#[cfg(test)]
mod tests {
    use anamnesis_text::terms::words;

    use super::*;
    use crate::index::tests::Fixture;

    #[test]
    fn beyond_the_limit_of_reading_only_the_rarest_words_find_notes() {
        let fixture = Fixture::new();
        for title in ["lantern", "harbour", "meadow"] {
            fixture.add(title, |note| {
                note.project = "p".to_owned();
                note.body = format!("the gateway answers about {title}s");
            });
        }
        let index = fixture.refreshed();
        let documents = index.documents().unwrap();
        let with_limit = |blobs| {
            let notes = ProjectNotes::new(&index, &documents, &["p".to_owned()]);
            notes.blobs_left.set(blobs);
            notes
        };
        let mut terms = Vec::new();
        words("gateway answers lantern", |word| {
            terms.push(word.term.to_owned())
        });
        let found = |notes: &ProjectNotes<'_>| {
            let found = notes
                .related(terms.iter().map(String::as_str), Period::Later, 0)
                .unwrap();
            let titles = found.into_iter().map(|note| note.title);
            titles.collect::<Vec<_>>()
        };
        assert_eq!(found(&with_limit(3)).len(), 3);
        // Two words are read, and the rarest is one of them.
        let limited = with_limit(2);
        assert_eq!(found(&limited)[0], "lantern");
        assert_eq!(limited.blobs_left.get(), 0);
        let exhausted = with_limit(0);
        assert!(found(&exhausted).is_empty());
        assert_eq!(
            exhausted.rarity("unknown").unwrap().to_bits(),
            1.0_f64.to_bits()
        );
    }
}
