//! Decides whether a new text is already in the store.
//!
//! A text is compared with its nearest notes by idf-weighted coverage in both directions. A text
//! that differs only in a number, a name or a negation (see [`Statement`]) is never "known". A text that mostly repeats what its session was shown is an echo: storing echoes
//! would crowd out the original notes.
//!
//! This module only classifies. The caller decides who may write anyway.

use std::collections::{BTreeSet, HashMap};

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note},
};
use anamnesis_store::index::{Error, Filter, Index};
use anamnesis_text::{
    similarity::weighted_jaccard,
    statement::{Sentence, Statement},
};

use crate::rank::{self, Mask, Query, rank};

/// How many of the nearest notes a text is compared with.
const NEAREST: usize = 10;

/// The minimum coverage of a text by a note for it to count as known. A lower value finds more
/// paraphrases, but a text wrongly taken for known is lost.
pub const KNOWN: f64 = 0.85;

/// The minimum coverage of a note by a text for the text to extend it.
pub const EXTENDS: f64 = 0.85;

/// The minimum similarity of two texts about the same topic.
pub const ALIKE: f64 = 0.5;

/// The minimum coverage of a text by what its session was shown for it to be an echo.
pub const ECHO: f64 = 0.6;

/// How many consecutive sentences of a note may together cover one sentence of a text.
const WINDOW: usize = 3;

/// Added to the number of notes for idf: in a small store every word would be either rare or
/// common.
const PRIOR_NOTES: usize = 300;

/// How a text relates to the notes in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// No note says it.
    Novel,
    /// This note already says it.
    Known(NoteId),
    /// It says what this note says, and more or another value.
    Extends(NoteId),
    /// It repeats notes that its session was shown, this one most of all.
    Echo(NoteId),
}

impl Novelty {
    /// Returns the machine-readable name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Novel => "novel",
            Self::Known(_) => "known",
            Self::Extends(_) => "extends",
            Self::Echo(_) => "echo",
        }
    }

    /// Returns the note concerned.
    pub fn note(self) -> Option<NoteId> {
        match self {
            Self::Novel => None,
            Self::Known(id) | Self::Extends(id) | Self::Echo(id) => Some(id),
        }
    }
}

/// A note's text, prepared for comparison.
#[derive(Debug, Clone)]
pub struct ComparedText {
    kind: Kind,
    plain: String,
    statement: Statement,
}

impl ComparedText {
    /// Prepares a note's title and body.
    pub fn new(note: &Note) -> Self {
        // Most titles are the first line of the body.
        let body = note.body.trim_start();
        let text = if body.starts_with(note.title.as_str()) {
            body.to_owned()
        } else {
            format!("{}\n{body}", note.title)
        };
        Self {
            kind: note.kind(),
            plain: text
                .split_whitespace()
                .map(str::to_lowercase)
                .collect::<Vec<_>>()
                .join(" "),
            statement: Statement::parse(&text),
        }
    }

    /// Returns the words of the text.
    pub fn terms(&self) -> impl Iterator<Item = &String> {
        let sentences = self.statement.sentences().iter();
        sentences.flat_map(Sentence::terms)
    }

    /// Returns whether this text has a number, name or negation that the other one lacks.
    pub fn differs(&self, other: &Self) -> bool {
        self.statement.differs(&other.statement)
    }

    /// Returns whether texts of these kinds can say the same. A task is not a fact, and a warning
    /// does more than a fact of the same words.
    fn is_comparable(&self, other: &Self) -> bool {
        let group = |kind| match kind {
            Kind::Task | Kind::Antipattern | Kind::Experience => Some(kind),
            Kind::Fact | Kind::Preference | Kind::Insight | Kind::Skill => None,
        };
        group(self.kind) == group(other.kind)
    }
}

/// Classifies a text by its nearest notes.
///
/// `given` are the notes that its session was shown, empty if a person wrote the text. `idf`
/// weights a word.
pub fn classify(
    said: &ComparedText,
    nearest: &[(NoteId, ComparedText)],
    given: &BTreeSet<NoteId>,
    mut idf: impl FnMut(&str) -> f64,
) -> Novelty {
    let mut idfs = HashMap::new();
    let texts = nearest.iter().map(|(_, said)| said).chain([said]);
    for term in texts.flat_map(ComparedText::terms) {
        if !idfs.contains_key(term.as_str()) {
            idfs.insert(term.as_str(), idf(term));
        }
    }
    let weigh = |term: &str| idfs.get(term).copied().unwrap_or_default();
    let mut best: Option<((u8, f64), Novelty)> = None;
    let mut repeated: Vec<(NoteId, Vec<f64>)> = Vec::new();
    let mut differs = false;
    for (id, note) in nearest {
        if note.plain == said.plain && note.is_comparable(said) {
            return Novelty::Known(*id);
        }
        let shares = said.statement.sentences().iter();
        let shares: Vec<f64> = shares
            .map(|sentence| coverage(sentence.terms(), &note.statement, weigh))
            .collect();
        let said_by = mean(&said.statement, &shares, weigh);
        // A short sentence that the note does not cover hardly lowers the mean of a long text.
        let is_said = said_by >= KNOWN && shares.iter().all(|share| *share >= ALIKE);
        let is_other = said.differs(note);
        if given.contains(id) {
            differs |= is_other;
            repeated.push((*id, shares));
        }
        if !note.is_comparable(said) {
            continue;
        }
        let backwards = note.statement.sentences().iter();
        let backwards: Vec<f64> = backwards
            .map(|sentence| coverage(sentence.terms(), &said.statement, weigh))
            .collect();
        let says = mean(&note.statement, &backwards, weigh);
        let in_common = similarity(said, note, weigh);
        let judged = if is_said && !is_other {
            (2, Novelty::Known(*id))
        } else if said_by >= KNOWN || says >= EXTENDS {
            (1, Novelty::Extends(*id))
        } else {
            continue;
        };
        let order = (judged.0, in_common);
        if best.is_none_or(|(best, _)| order > best) {
            best = Some((order, judged.1));
        }
    }
    let judged = best.map_or(Novelty::Novel, |(_, judged)| judged);
    if matches!(judged, Novelty::Known(_)) || differs {
        return judged;
    }
    echo(said, &repeated, weigh).unwrap_or(judged)
}

/// Returns an echo of the note that covers most of the text, if the notes of the session together
/// cover enough of it.
fn echo(
    said: &ComparedText,
    given: &[(NoteId, Vec<f64>)],
    weigh: impl Fn(&str) -> f64 + Copy,
) -> Option<Novelty> {
    let together: Vec<f64> = (0..said.statement.sentences().len())
        .map(|place| {
            let shares = given.iter().filter_map(|(_, shares)| shares.get(place));
            shares.copied().fold(0.0, f64::max)
        })
        .collect();
    if mean(&said.statement, &together, weigh) < ECHO {
        return None;
    }
    let of_one = |shares: &Vec<f64>| mean(&said.statement, shares, weigh);
    given
        .iter()
        .max_by(|(_, one), (_, other)| of_one(one).total_cmp(&of_one(other)))
        .map(|(id, _)| Novelty::Echo(*id))
}

/// Returns the best coverage of a sentence by a window of a text, from 0 to 1.
///
/// The whole text does not count as a window: a long text contains every word somewhere.
fn coverage(terms: &BTreeSet<String>, text: &Statement, weigh: impl Fn(&str) -> f64 + Copy) -> f64 {
    let all = total_weight(terms.iter(), weigh);
    // A sentence without words is a number or a negation, which `difference` compares.
    if all <= 0.0 {
        return 1.0;
    }
    let sentences = text.sentences();
    let windows = sentences.windows(WINDOW.min(sentences.len()).max(1));
    let shares = windows.map(|window| {
        let said = terms
            .iter()
            .filter(|term| window.iter().any(|near| near.terms().contains(*term)));
        total_weight(said, weigh) / all
    });
    shares.fold(0.0, f64::max)
}

/// Returns the mean coverage of the sentences, weighted by the weight of their words.
fn mean(text: &Statement, shares: &[f64], weigh: impl Fn(&str) -> f64 + Copy) -> f64 {
    let mut sum = 0.0;
    let mut all = 0.0;
    for (sentence, share) in text.sentences().iter().zip(shares) {
        let total_weight = total_weight(sentence.terms().iter(), weigh);
        sum += total_weight * share;
        all += total_weight;
    }
    if all > 0.0 { sum / all } else { 0.0 }
}

/// Returns the weighted Jaccard similarity of two texts' words.
fn similarity(one: &ComparedText, other: &ComparedText, weigh: impl Fn(&str) -> f64) -> f64 {
    let [one, other] = [one, other].map(|said| said.terms().collect::<BTreeSet<_>>());
    weighted_jaccard(&one, &other, |term| weigh(term))
}

fn total_weight<'a>(terms: impl Iterator<Item = &'a String>, weigh: impl Fn(&str) -> f64) -> f64 {
    terms.map(|term| weigh(term)).sum()
}

/// The notes with which a new note is compared.
#[derive(Debug, Clone, Default)]
pub struct NoveltyScope<'a> {
    /// The keys of its project. Notes for all projects are compared, too.
    pub projects: &'a [String],
    /// The notes it replaces, which it may repeat.
    pub replaced: &'a [NoteId],
    /// The notes that its session was shown; empty if a person writes it.
    pub given: BTreeSet<NoteId>,
}

/// Classifies a new note by the notes of a store.
///
/// Superseded notes and the note itself are skipped. `read` returns a note of the store.
pub fn novelty(
    index: &Index,
    note: &Note,
    among: &NoveltyScope<'_>,
    read: impl Fn(NoteId) -> Option<Note>,
) -> Result<Novelty, Error> {
    let said = ComparedText::new(note);
    let mask = Mask {
        own: among.projects.to_vec(),
        with_global: true,
        ..Mask::default()
    };
    let query = Query::parse(&format!("{}\n{}", note.title, note.body));
    let found = rank(index, &query, &mask, NEAREST)?.candidates;
    let found = found.into_iter().map(|candidate| candidate.id);
    let mut nearest: Vec<(NoteId, ComparedText)> = Vec::new();
    let all: BTreeSet<NoteId> = found.chain(among.given.iter().copied()).collect();
    for id in all {
        if id == note.id || among.replaced.contains(&id) {
            continue;
        }
        let is_in_use = index.get(id)?.is_some_and(|entry| !entry.superseded);
        if let Some(note) = is_in_use.then(|| read(id)).flatten() {
            nearest.push((id, ComparedText::new(&note)));
        }
    }
    let count = index.count(&Filter::default())?;
    let mut failed = None;
    let judged = classify(&said, &nearest, &among.given, |term| {
        let doc_freq = index.frequency(term).unwrap_or_else(|error| {
            failed.get_or_insert(error);
            0
        });
        smoothed_idf(count, doc_freq)
    });
    failed.map_or(Ok(judged), Err)
}

/// Returns the idf of a word that is in `doc_freq` of `doc_count` notes, smoothed for small stores.
pub fn smoothed_idf(doc_count: usize, doc_freq: u32) -> f64 {
    rank::idf(doc_count + PRIOR_NOTES, doc_freq.saturating_add(1)).into()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anamnesis_note::note::NoteType;
    use anamnesis_store::notes::Notes;

    use super::*;
    use crate::session_start::tests::{Fixture, now};

    const PAIRS: &str = include_str!("novelty/pairs.txt");

    fn note(text: &str) -> Note {
        let mut note = Note::new(NoteId::generate(now()), NoteType::Semantic, now());
        note.title = text.to_owned();
        note.body = text.to_owned();
        note.project = "p".to_owned();
        note
    }

    fn judged(index: &Index, notes: &Notes, note: &Note, among: &NoveltyScope<'_>) -> Novelty {
        let read = |id| Some(notes.read(notes.find(id)?).ok()?.note());
        novelty(index, note, among, read).unwrap()
    }

    fn check(index: &Index, notes: &Notes, text: &str) -> Novelty {
        let projects = ["p".to_owned()];
        let among = NoveltyScope {
            projects: &projects,
            ..NoveltyScope::default()
        };
        judged(index, notes, &note(text), &among)
    }

    #[test]
    fn two_hundred_pairs_are_classified() {
        let pairs: Vec<[&str; 3]> = PAIRS
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| {
                let parts: Vec<&str> = line.split(" | ").collect();
                parts.try_into().unwrap()
            })
            .collect();
        assert_eq!(pairs.len(), 200);
        let fixture = Fixture::new();
        let known: BTreeSet<&str> = pairs.iter().map(|[_, known, _]| *known).collect();
        for known in known {
            fixture.add(known, |note| note.body = known.to_owned());
        }
        let index = fixture.refreshed();
        let (mut said, mut right) = (0, 0);
        let mut table: BTreeMap<&str, [BTreeMap<&str, usize>; 2]> = BTreeMap::new();
        for (number, [what, _, text]) in pairs.iter().enumerate() {
            // Which of two equally similar notes it names depends on their ids.
            let decision = check(&index, &fixture.notes, text).as_str();
            let is_known = decision == "known";
            said += usize::from(is_known);
            right += usize::from(is_known && *what == "same");
            let halves = table.entry(what).or_default();
            *halves[number % 2].entry(decision).or_default() += 1;
        }
        let expected = [
            (
                "another",
                "{\"extends\": 26, \"novel\": 9}",
                "{\"extends\": 27, \"novel\": 8}",
            ),
            ("more", "{\"extends\": 15}", "{\"extends\": 15}"),
            ("other", "{\"novel\": 20}", "{\"novel\": 20}"),
            (
                "same",
                "{\"extends\": 4, \"known\": 25, \"novel\": 1}",
                "{\"extends\": 3, \"known\": 23, \"novel\": 4}",
            ),
        ];
        let found: Vec<_> = table
            .iter()
            .map(|(what, [first, second])| (*what, format!("{first:?}"), format!("{second:?}")))
            .collect();
        let found: Vec<_> = found
            .iter()
            .map(|(what, first, second)| (*what, first.as_str(), second.as_str()))
            .collect();
        assert_eq!(found, expected);
        assert!(100 * right >= 95 * said, "precision {right} of {said}");
    }

    #[test]
    fn the_same_text_is_known_whatever_its_spacing() {
        let fixture = Fixture::new();
        let id = fixture.add("Use pnpm", |_| {}).path.id;
        let index = fixture.refreshed();
        for text in ["Use pnpm", " use  PNPM\n"] {
            assert_eq!(
                check(&index, &fixture.notes, text),
                Novelty::Known(id),
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_compared() {
        let fixture = Fixture::new();
        let text = "Photos are cut to squares before they are uploaded";
        let task = fixture.add(text, |note| note.kind = Some(Kind::Task));
        let other = fixture.add(text, |note| note.project = "other".to_owned());
        let old = fixture.add(text, |_| {});
        fixture.add("newer", |note| {
            note.supersedes = vec![old.path.id.to_string()];
        });
        let index = fixture.refreshed();
        assert_eq!(check(&index, &fixture.notes, text), Novelty::Novel);
        let judged =
            |note: &Note, among: &NoveltyScope<'_>| judged(&index, &fixture.notes, note, among);
        let projects = ["other".to_owned()];
        let mut among = NoveltyScope {
            projects: &projects,
            ..NoveltyScope::default()
        };
        assert_eq!(judged(&note(text), &among), Novelty::Known(other.path.id));
        let replaced = [other.path.id];
        among.replaced = &replaced;
        assert_eq!(judged(&note(text), &among), Novelty::Novel);
        let mut again = note(text);
        again.kind = Some(Kind::Task);
        let projects = ["p".to_owned()];
        among.projects = &projects;
        assert_eq!(judged(&again, &among), Novelty::Known(task.path.id));
    }

    #[test]
    fn scattered_words_of_a_long_note_cover_nothing() {
        let fixture = Fixture::new();
        let words = "photos squares uploaded cut banners widths margin";
        let long: String = words
            .split(' ')
            .map(|word| {
                format!(
                    "Something else that has the word {word} in it.\nA pause.\nAnother pause.\n"
                )
            })
            .collect();
        fixture.add("Long", |note| note.body = long);
        let index = fixture.refreshed();
        let text = "Photos are cut to squares when uploaded, banners keep their widths and margin";
        assert_eq!(check(&index, &fixture.notes, text), Novelty::Novel);
    }

    #[test]
    fn repeating_shown_notes_is_an_echo() {
        let fixture = Fixture::new();
        let given = fixture
            .add("Deploys go through GitLab pipelines of platform", |_| {})
            .path
            .id;
        let also = fixture
            .add("Staging uses the replica in Frankfurt", |_| {})
            .path
            .id;
        let index = fixture.refreshed();
        let projects = ["p".to_owned()];
        let among = NoveltyScope {
            projects: &projects,
            given: BTreeSet::from([given, also]),
            ..NoveltyScope::default()
        };
        let judged = |text| judged(&index, &fixture.notes, &note(text), &among);
        // Of two notes together.
        assert_eq!(
            judged(
                "Deploys go through GitLab pipelines of platform. Staging uses the replica in Frankfurt. Looks fine."
            ),
            Novelty::Echo(given)
        );
        // Neither a correction nor a new text is an echo.
        assert_eq!(
            judged("Deploys do not go through GitLab pipelines of platform"),
            Novelty::Extends(given)
        );
        assert_eq!(judged("Fonts are subset to Latin"), Novelty::Novel);
        // A person may repeat anything; the result still names the note.
        let text = "Staging uses the replica in Frankfurt";
        assert_eq!(check(&index, &fixture.notes, text), Novelty::Known(also));
    }

    #[test]
    fn idf_is_nearly_flat_in_a_small_store() {
        assert!(smoothed_idf(1, 0) < 1.25 * smoothed_idf(1, 1));
        assert!(smoothed_idf(10_000, 1) > 4.0 * smoothed_idf(10_000, 3_000));
    }
}
