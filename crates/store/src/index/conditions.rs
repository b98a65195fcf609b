//! Conditions on the words of a note: phrases and prefixes.
//!
//! The dictionary finds the candidates. A phrase is then checked in their texts, because postings
//! have no positions. Callers check the best candidates first, and only as many as they need.

use std::collections::BTreeSet;

use anamnesis_text::terms::{Role, words};

use super::{Error, Index};

/// The maximum number of terms of a phrase that select its candidates.
const MAX_SELECTING_TERMS: usize = 16;

/// The length of the shortest term that a longer prefix is found by, in bytes, and by how many
/// characters it may be longer.
const MIN_STEM: usize = 3;
const MAX_ENDING: usize = 7;

/// How many notes are read to find a prefix that is longer than its term.
const MAX_READ: usize = 200;

/// A condition on the words of a note. Words are compared as terms, see [`anamnesis_text::terms`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WordCondition {
    /// These words are adjacent and in this order in one text of the note, such as its title or its body.
    Phrase(Phrase),
    /// A word begins like this.
    Prefix(Prefix),
}

impl WordCondition {
    /// Returns the condition of a phrase; `None` if it has no words.
    pub fn phrase(text: &str) -> Option<Self> {
        let phrase = Phrase {
            wholes: terms_without(Role::Part, text),
            parts: terms_without(Role::Whole, text),
        };
        (!phrase.parts.is_empty()).then_some(Self::Phrase(phrase))
    }

    /// Returns the condition of the beginning of a word; `None` if it has no letter or digit.
    pub fn prefix(text: &str) -> Option<Self> {
        let mut prefix = None;
        words(text, |word| {
            prefix.get_or_insert_with(|| Prefix {
                folded: word.folded.to_owned(),
                term: word.term.to_owned(),
            });
        });
        prefix.map(Self::Prefix)
    }
}

/// The terms of a phrase. An identifier (`loadUserProfile`) can be written as one word or as its
/// parts, so a phrase and a text are compared both ways.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Phrase {
    /// With identifiers as one term each.
    wholes: Vec<String>,
    /// With identifiers split into their parts.
    parts: Vec<String>,
}

/// The beginning of a word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prefix {
    /// The beginning of the terms that match.
    folded: String,
    /// The term of the prefix as a word. Stemming may change the last letters: `library*` matches
    /// the term `librari`.
    term: String,
}

impl Phrase {
    /// Returns whether a text has the phrase.
    fn is_in(&self, text: &str) -> bool {
        let mut wholes = PhraseMatcher::new(&self.wholes);
        let mut parts = PhraseMatcher::new(&self.parts);
        words(text, |word| match word.role {
            Role::Plain => {
                wholes.take(word.term);
                parts.take(word.term);
            }
            Role::Whole => wholes.take(word.term),
            Role::Part => parts.take(word.term),
            Role::LongForm => {}
        });
        wholes.is_found || parts.is_found
    }
}

/// Looks for a phrase in a sequence of terms.
struct PhraseMatcher<'a> {
    phrase: &'a [String],
    /// For each partial match that the last term extended, its length.
    partial: Vec<usize>,
    is_found: bool,
}

impl<'a> PhraseMatcher<'a> {
    fn new(phrase: &'a [String]) -> Self {
        Self {
            phrase,
            partial: Vec::new(),
            is_found: false,
        }
    }

    fn take(&mut self, term: &str) {
        self.partial.push(0);
        self.partial.retain_mut(|length| {
            let matches = self.phrase.get(*length).is_some_and(|next| next == term);
            *length += 1;
            self.is_found |= matches && *length == self.phrase.len();
            matches
        });
    }
}

/// Returns the terms of a text in order, without long forms and words of one role.
fn terms_without(role: Role, text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    words(text, |word| {
        if word.role != role && word.role != Role::LongForm {
            terms.push(word.term.to_owned());
        }
    });
    terms
}

impl Index {
    /// Returns the numbers of the notes that have all words of the conditions. For phrases,
    /// [`Index::has_phrases`] has to be asked as well.
    pub fn candidates(&self, conditions: &[WordCondition]) -> Result<BTreeSet<u32>, Error> {
        let mut numbers: Option<BTreeSet<u32>> = None;
        for condition in conditions {
            let candidates = match condition {
                WordCondition::Prefix(prefix) => self.numbers_with_prefix(prefix)?,
                WordCondition::Phrase(phrase) => {
                    let mut candidates = self.numbers_with_all(&phrase.parts)?;
                    if phrase.wholes != phrase.parts {
                        candidates.append(&mut self.numbers_with_all(&phrase.wholes)?);
                    }
                    candidates
                }
            };
            numbers = Some(match numbers {
                Some(numbers) => &numbers & &candidates,
                None => candidates,
            });
        }
        Ok(numbers.unwrap_or_default())
    }

    /// Returns whether a candidate has the phrases among the conditions.
    pub fn has_phrases(&self, number: u32, conditions: &[WordCondition]) -> Result<bool, Error> {
        // The dictionary is enough for a phrase of one word.
        let mut phrases = conditions.iter().filter_map(|condition| match condition {
            WordCondition::Phrase(phrase) if phrase.parts.len() > 1 => Some(phrase),
            _ => None,
        });
        let Some(first) = phrases.next() else {
            return Ok(true);
        };
        let texts = self.text(number)?.unwrap_or_default();
        let has = |phrase: &Phrase| texts.each().iter().any(|text| phrase.is_in(text));
        Ok(has(first) && phrases.all(has))
    }

    /// Returns the numbers of the notes with all of these terms.
    fn numbers_with_all(&self, terms: &[String]) -> Result<BTreeSet<u32>, Error> {
        let terms: BTreeSet<&String> = terms.iter().take(MAX_SELECTING_TERMS).collect();
        let mut numbers: Option<BTreeSet<u32>> = None;
        for term in terms {
            let having = self.postings(term)?.numbers()?;
            let both = match numbers {
                Some(numbers) => &numbers & &having,
                None => having,
            };
            if both.is_empty() {
                return Ok(both);
            }
            numbers = Some(both);
        }
        Ok(numbers.unwrap_or_default())
    }

    fn numbers_with_prefix(&self, prefix: &Prefix) -> Result<BTreeSet<u32>, Error> {
        let mut numbers = self.postings_from(&prefix.folded)?.numbers()?;
        numbers.append(&mut self.postings(&prefix.term)?.numbers()?);
        if numbers.is_empty() {
            numbers = self.numbers_with_longer_prefix(prefix)?;
        }
        Ok(numbers)
    }

    /// Finds a prefix that is longer than the term of its words: `deployi*`, where the dictionary has
    /// `deploi`, the stem of `deploy`. The texts of the newest notes with a shorter term are read.
    fn numbers_with_longer_prefix(&self, prefix: &Prefix) -> Result<BTreeSet<u32>, Error> {
        let folded = &prefix.folded;
        let ends = folded.char_indices().map(|(end, _)| end).rev();
        for end in ends.take(MAX_ENDING).take_while(|end| *end >= MIN_STEM) {
            let mut having = BTreeSet::new();
            for term in terms_without(Role::Whole, &folded[..end]) {
                having.append(&mut self.postings(&term)?.numbers()?);
            }
            let mut numbers = BTreeSet::new();
            for number in having.into_iter().rev().take(MAX_READ) {
                let texts = self.text(number)?.unwrap_or_default();
                let mut has = false;
                for text in texts.each() {
                    words(text, |word| has |= word.folded.starts_with(folded));
                }
                if has {
                    numbers.insert(number);
                }
            }
            if !numbers.is_empty() {
                return Ok(numbers);
            }
        }
        Ok(BTreeSet::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::tests::Fixture;

    fn titles(index: &Index, conditions: impl IntoIterator<Item = WordCondition>) -> Vec<String> {
        let conditions: Vec<WordCondition> = conditions.into_iter().collect();
        let mut numbers = index.candidates(&conditions).unwrap();
        numbers.retain(|number| index.has_phrases(*number, &conditions).unwrap());
        let titles = numbers.into_iter().map(|number| index.heading(number));
        let mut titles: Vec<String> = titles.map(|found| found.unwrap().unwrap().1).collect();
        titles.sort();
        titles
    }

    #[test]
    fn words_of_a_phrase_are_adjacent_and_in_order() {
        let fixture = Fixture::new();
        for text in [
            "The RATE limits",
            "limit the rate",
            "rate of the limit",
            "load_user_profile",
            "loadUserProfile",
            "user; profile",
            "Café: naïve plans",
            "a rate rate limit",
        ] {
            fixture.add(text, |_| {});
        }
        fixture.add("rate", |note| {
            note.body = "limit".to_owned();
            note.tags = vec!["user".to_owned(), "guide".to_owned()];
        });
        fixture.add("env", |note| note.body = "the rate\nlimit".to_owned());
        let index = fixture.refreshed();
        for (phrase, expected) in [
            (
                "rate limit",
                &["The RATE limits", "a rate rate limit", "env"][..],
            ),
            ("the rate", &["The RATE limits", "env", "limit the rate"]),
            (
                "user profile",
                &["loadUserProfile", "load_user_profile", "user; profile"],
            ),
            ("LoadUserProfile", &["loadUserProfile", "load_user_profile"]),
            ("loaduserprofile", &["loadUserProfile", "load_user_profile"]),
            ("load profile", &[]),
            ("cafe naive plan", &["Café: naïve plans"]),
            // Tags count as one text, title and body do not.
            ("user guide", &["rate"]),
            ("guide user", &[]),
            (
                "limit",
                &[
                    "The RATE limits",
                    "a rate rate limit",
                    "env",
                    "limit the rate",
                    "rate",
                    "rate of the limit",
                ],
            ),
            ("unknown", &[]),
        ] {
            assert_eq!(
                titles(&index, WordCondition::phrase(phrase)),
                expected,
                "{phrase}"
            );
        }
        assert_eq!(WordCondition::phrase(" -*\"_"), None);
    }

    #[test]
    fn a_prefix_matches_words_that_begin_with_it() {
        let fixture = Fixture::new();
        for text in [
            "migrations",
            "emigrate",
            "two libraries",
            "RandomNumber",
            "ran",
            "élan",
            "deploying",
            "deploys",
        ] {
            fixture.add(text, |_| {});
        }
        let index = fixture.refreshed();
        for (prefix, expected) in [
            ("deployi", &["deploying"][..]),
            ("deploym", &[]),
            ("migr", &["migrations"][..]),
            ("migrations", &["migrations"]),
            ("Library", &["two libraries"]),
            ("librar", &["two libraries"]),
            // Longer than the stem `migrat`, and no ending of another word.
            ("migratio", &["migrations"]),
            ("emigrat", &["emigrate"]),
            ("migratory", &[]),
            ("rando", &["RandomNumber"]),
            ("randy", &[]),
            ("ran", &["RandomNumber", "ran"]),
            ("numb", &["RandomNumber"]),
            ("randomNum", &["RandomNumber"]),
            ("ela", &["élan"]),
            ("zebra", &[]),
            ("%", &[]),
        ] {
            assert_eq!(
                titles(&index, WordCondition::prefix(prefix)),
                expected,
                "{prefix}"
            );
        }
        let both = |prefix, phrase| {
            let prefix = WordCondition::prefix(prefix).into_iter();
            titles(&index, prefix.chain(WordCondition::phrase(phrase)))
        };
        assert_eq!(both("lib", "two libraries"), ["two libraries"]);
        assert_eq!(both("lib", "libraries two"), [""; 0]);
        assert_eq!(both("ran", "two"), [""; 0]);
        assert_eq!(titles(&index, None), [""; 0]);
    }

    #[test]
    fn a_tombstone_meets_no_condition() {
        let fixture = Fixture::new();
        let stored = fixture.add("rate limit", |_| {});
        let mut index = fixture.refreshed();
        assert_eq!(titles(&index, WordCondition::phrase("rate limit")).len(), 1);
        let lock = fixture.notes.lock().unwrap();
        let tombstone = (fixture.notes)
            .forget(&lock, stored.path, crate::index::tests::now())
            .unwrap();
        index.record(&tombstone).unwrap();
        assert_eq!(titles(&index, WordCondition::phrase("rate limit")), [""; 0]);
        assert_eq!(titles(&index, WordCondition::prefix("rat")), [""; 0]);
    }
}
