//! What the text of a note tells beyond how often it has the terms: whether words stand together, how
//! much of the title is asked for, whether it says so at once, and whether it has a word that only
//! looks like one that is asked for.
//!
//! Each weight was chosen on three of four collections and held on the fourth. Together they are worth
//! 1.5 points of nDCG@10; a table of word vectors on top of them is worth less than one.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_store::index::Error;
use anamnesis_text::{
    sanitize::head,
    terms::{Word, words},
};

use super::{LANGUAGES, MAX_TERMS, Scorer, has, is_word};

/// Words of the question that follow each other in the note, too.
const ADJACENT: f32 = 0.6;
/// Words of the question that are near each other in the note.
const NEAR: f32 = 0.2;
/// Words that only look like one that is asked for.
const ALIKE: f32 = 0.4;
/// Words among the first of the body.
const EARLY: f32 = 0.1;
/// Words that are spelled as in the question.
const SPELLED: f32 = 0.1;
/// Words in the title.
const IN_TITLE: f32 = 0.1;
/// How much of the title is asked for, as a share of the best score.
const OF_TITLE: f32 = 0.2;

/// How many of the first words of a body are early ones.
const EARLY_WORDS: u16 = 20;

/// Words that are further from each other are not near.
const MAX_DISTANCE: u16 = 8;

/// Of how many places of a word nearness is looked for.
const MAX_PLACES: usize = 20;

/// The place of the first word of the body: so far from the title that no words of theirs are near.
const BODY: u16 = 1000;

/// How much of a body is read, in bytes.
const MAX_BODY: usize = 8 * 1024;

/// How much two words have to look alike.
const LEAST_LIKENESS: f32 = 0.5;

/// Of how many terms that a note does not have others are looked for.
const MAX_COMPARED: usize = 16;

/// Shorter words look like too many others.
const SHORTEST_ASKED: usize = 4;
const SHORTEST_ALIKE: usize = 3;

/// A segment, ready to be looked for in notes.
pub(super) struct Reader<'a> {
    scorer: &'a Scorer<'a>,
    /// The places of the terms. So few are found sooner by looking at each than by a hash.
    known: Vec<(&'a str, usize)>,
    /// Spellings of each term in the segment.
    spellings: Vec<Vec<&'a str>>,
    /// Words that follow each other, with 1, or with one between them, with a half.
    pairs: Vec<(usize, usize, f32)>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(scorer: &'a Scorer<'a>) -> Self {
        let terms = scorer.terms.iter().enumerate().take(MAX_TERMS);
        let known = terms.map(|(place, term)| (term.asked.term.as_str(), place));
        let known: Vec<(&str, usize)> = known.collect();
        let mut spellings = vec![Vec::new(); scorer.terms.len()];
        let mut sequence = Vec::new();
        for (place, spelling) in &scorer.segment.sequence {
            let asked = scorer.segment.asked.get(*place);
            if let Some(term) = asked.and_then(|asked| place_of(&known, &asked.term)) {
                sequence.push(term);
                if let Some(spellings) = spellings.get_mut(term) {
                    spellings.push(spelling.as_str());
                }
            }
        }
        let mut pairs = Vec::new();
        for (step, share) in [(1, 1.0), (2, 0.5)] {
            let following = sequence.iter().zip(sequence.iter().skip(step));
            let distinct: BTreeSet<_> = following.filter(|(a, b)| a != b).collect();
            pairs.extend(distinct.into_iter().map(|(a, b)| (*a, *b, share)));
        }
        Self {
            scorer,
            known,
            spellings,
            pairs,
        }
    }

    /// Returns what is added to the score of a note that has these terms.
    ///
    /// `highest` is the best score without this, `idf` how rare any term is.
    pub(super) fn score(
        &self,
        terms: u32,
        [title, tags, body]: &[String; 3],
        highest: f32,
        mut idf: impl FnMut(&str) -> Result<f32, Error>,
    ) -> Result<f32, Error> {
        let mut note = Note::new(self, terms);
        let mut title_terms = BTreeMap::new();
        words(title, |word| {
            note.take(&word);
            if !word.is_stop_word() && !title_terms.contains_key(word.term) {
                let known = place_of(&self.known, word.term);
                title_terms.insert(word.term.to_owned(), known);
            }
        });
        let in_title = note.has;
        note.place = BODY;
        words(head(body, MAX_BODY), |word| note.take(&word));
        note.place = note.place.saturating_add(BODY);
        words(tags, |word| note.take(&word));

        let mut of_title = 0.0;
        let mut whole_title = 0.0;
        for (term, known) in &title_terms {
            match known.and_then(|term| self.scorer.terms.get(term)) {
                Some(asked) => {
                    whole_title += asked.rarity;
                    of_title += asked.weight;
                }
                None => whole_title += idf(term)?,
            }
        }
        let mut score = IN_TITLE * self.sum(in_title)
            + EARLY * self.sum(note.early)
            + SPELLED * self.sum(note.spelled);
        if whole_title > 0.0 {
            score += OF_TITLE * highest * f32::min(1.0, of_title / whole_title);
        }
        for asked in &note.missing {
            score += ALIKE * self.weight(asked.place) * asked.likeness;
        }
        for (a, b, share) in &self.pairs {
            let least = self.weight(*a).min(self.weight(*b));
            let (Some(first), Some(second)) = (note.places.get(*a), note.places.get(*b)) else {
                continue;
            };
            let both = || {
                first
                    .iter()
                    .flat_map(|a| second.iter().map(move |b| (*a, *b)))
            };
            if *share >= 1.0 && both().any(|(a, b)| b == a + 1) {
                score += ADJACENT * least;
            }
            let distance = both().map(|(a, b)| a.abs_diff(b)).min();
            if let Some(distance) = distance.filter(|distance| *distance <= MAX_DISTANCE) {
                score += NEAR * share * least / f32::from(distance.max(1));
            }
        }
        Ok(score)
    }

    fn weight(&self, term: usize) -> f32 {
        self.scorer.terms.get(term).map_or(0.0, |term| term.weight)
    }

    fn sum(&self, terms: u32) -> f32 {
        let places = (0..self.scorer.terms.len()).filter(|place| has(terms, *place));
        places.map(|place| self.weight(place)).sum()
    }
}

fn place_of(known: &[(&str, usize)], term: &str) -> Option<usize> {
    let found = known.iter().find(|(known, _)| *known == term);
    found.map(|(_, place)| *place)
}

/// What has been read of a note.
struct Note<'a> {
    reader: &'a Reader<'a>,
    /// The place of the next word.
    place: u16,
    /// Bits of terms: those it has, those early in its body, those spelled as in the question.
    has: u32,
    early: u32,
    spelled: u32,
    /// Where each term stands.
    places: Vec<Vec<u16>>,
    missing: Vec<Missing<'a>>,
}

impl<'a> Note<'a> {
    fn new(reader: &'a Reader<'a>, terms: u32) -> Self {
        let all = reader.scorer.terms.iter().enumerate();
        let missing = all.filter_map(|(place, term)| {
            let word = term.asked.term.as_str();
            let is_missing = !has(terms, place);
            (is_missing && word.len() >= SHORTEST_ASKED && LANGUAGES.binary_search(&word).is_err())
                .then(|| Missing {
                    place,
                    word,
                    letters: letters(word),
                    likeness: 0.0,
                })
        });
        Self {
            reader,
            place: 0,
            has: 0,
            early: 0,
            spelled: 0,
            places: vec![Vec::new(); reader.scorer.terms.len()],
            missing: missing.take(MAX_COMPARED).collect(),
        }
    }

    fn take(&mut self, word: &Word<'_, '_>) {
        let place = self.place;
        let has_place = is_word(word.role);
        if has_place {
            self.place = self.place.saturating_add(1);
        }
        let Some(term) = place_of(&self.reader.known, word.term) else {
            self.compare(word);
            return;
        };
        self.has |= 1 << term;
        if has_place && (BODY..BODY + EARLY_WORDS).contains(&place) {
            self.early |= 1 << term;
        }
        if let Some(places) = self.places.get_mut(term)
            && has_place
            && places.len() < MAX_PLACES
        {
            places.push(place);
        }
        let spellings = self.reader.spellings.get(term);
        if spellings.is_some_and(|spellings| spellings.contains(&word.folded)) {
            self.spelled |= 1 << term;
        }
    }

    /// Compares a word with the terms that the note does not have.
    fn compare(&mut self, word: &Word<'_, '_>) {
        let term = word.term;
        if term.len() < SHORTEST_ALIKE {
            return;
        }
        let own = letters(term);
        let begins = term.as_bytes().get(..2);
        let mut is_stop_word = None;
        for asked in &mut self.missing {
            let may_contain = own & !asked.letters == 0 || asked.letters & !own == 0;
            let is_worth_it = may_contain || asked.word.as_bytes().get(..2) == begins;
            // Asked last, since few words get this far.
            if is_worth_it && !*is_stop_word.get_or_insert_with(|| word.is_stop_word()) {
                asked.likeness = asked.likeness.max(likeness(asked.word, term));
            }
        }
    }
}

/// A term that a note does not have.
struct Missing<'a> {
    place: usize,
    word: &'a str,
    letters: u32,
    /// How much the word of the note that looks most like it does.
    likeness: f32,
}

/// The letters that a word has, a bit for each: a word that has others stands in no other word.
fn letters(word: &str) -> u32 {
    word.bytes().fold(0, |bits, byte| bits | 1 << (byte & 31))
}

/// Tells how much two words look alike: as one stands in the other, else, where they begin alike, as they
/// share groups of three letters. From 0 to 1, and nothing below a half.
fn likeness(a: &str, b: &str) -> f32 {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    if long.contains(short) {
        return (length(short) / length(long)).max(LEAST_LIKENESS);
    }
    if a.as_bytes().get(..2) != b.as_bytes().get(..2) {
        return 0.0;
    }
    let (a, b) = (groups(a), groups(b));
    let both = a.iter().filter(|group| b.contains(group)).count();
    #[expect(clippy::cast_precision_loss, reason = "words are short")]
    let shared = 2.0 * both as f32 / (a.len() + b.len()) as f32;
    if shared < LEAST_LIKENESS { 0.0 } else { shared }
}

#[expect(clippy::cast_precision_loss, reason = "words are short")]
fn length(word: &str) -> f32 {
    word.len() as f32
}

/// The groups of three bytes of a word between two marks, each once.
fn groups(word: &str) -> Vec<[u8; 3]> {
    let marked = [b"^", word.as_bytes(), b"$"].concat();
    let groups = marked.windows(3).filter_map(|group| group.try_into().ok());
    let mut groups: Vec<[u8; 3]> = groups.collect();
    groups.sort_unstable();
    groups.dedup();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_alike() {
        for (a, b, expected) in [
            ("profil", "userprofil", 0.6),
            ("log", "catalogu", 0.5),
            ("serializ", "serial", 0.75),
            ("configur", "confluenc", 0.0),
            ("migrat", "migrant", 0.615),
            ("cache", "batch", 0.0),
        ] {
            assert!(
                (likeness(a, b) - expected).abs() < 0.01,
                "{a} {b} {}",
                likeness(a, b)
            );
            assert!((likeness(b, a) - expected).abs() < 0.01, "{b} {a}");
        }
    }
}
