//! Whether a text that is to be remembered is new.
//!
//! It is compared with the notes that its words find first: how much of it they say, how much of them it
//! says, each word as much as it is rare in the store. What says the same but for a number, a name or a
//! denial (see [`guard`]) is never known; it may contradict. A text that mostly repeats what its
//! session was given is an echo: kept again and again, it would drown what was learned once.
//!
//! This only judges. Who may write in spite of it is the caller's.
//!
//! [`guard`]: anamnesis_text::contradiction

use std::collections::{BTreeSet, HashMap};

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note},
};
use anamnesis_store::index::{Error, Filter, Index};
use anamnesis_text::contradiction::{Difference, Statement};

use crate::rank::{self, Mask, Query, rank};

/// How many of the nearest notes a text is compared with.
const NEAREST: usize = 10;

/// A text of which a note says this much is known. A lower one finds more of what is said in other
/// words, but a text that is taken for known by mistake is lost.
pub const KNOWN: f64 = 0.85;

/// A text that says this much of a note extends it.
pub const EXTENDS: f64 = 0.85;

/// Texts that have this much in common are about the same.
pub const ALIKE: f64 = 0.5;

/// A text of which this much was given to its session is an echo.
pub const ECHO: f64 = 0.6;

/// How many sentences of a note in a row may say what one sentence of a text says.
const WINDOW: usize = 3;

/// A store counts as if it had so many notes more: in a small one every word would be rare or common.
const BACKGROUND: usize = 300;

/// What a text is to the notes that there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Novelty {
    /// No note says it.
    Novel,
    /// This note says it.
    Known(NoteId),
    /// It says what this note says, and more.
    Extends(NoteId),
    /// It says of the same something else than this note.
    MayContradict(NoteId),
    /// It repeats what its session was given, this note before others.
    Echo(NoteId),
}

impl Novelty {
    /// The word for it, for scripts and models.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Novel => "novel",
            Self::Known(_) => "known",
            Self::Extends(_) => "extends",
            Self::MayContradict(_) => "may_contradict",
            Self::Echo(_) => "echo",
        }
    }

    /// The note that it is about.
    pub fn note(self) -> Option<NoteId> {
        match self {
            Self::Novel => None,
            Self::Known(id) | Self::Extends(id) | Self::MayContradict(id) | Self::Echo(id) => {
                Some(id)
            }
        }
    }
}

/// A text, ready to be compared.
#[derive(Debug, Clone)]
pub struct Said {
    kind: Kind,
    plain: String,
    statement: Statement,
}

impl Said {
    /// What a note says.
    pub fn of(note: &Note) -> Self {
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

    /// The words of the text.
    pub fn terms(&self) -> impl Iterator<Item = &String> {
        let sentences = self.statement.sentences().iter();
        sentences.flat_map(anamnesis_text::contradiction::Sentence::terms)
    }

    /// In what this text differs from another one, in numbers, names and denials.
    pub fn difference(&self, other: &Self) -> Difference {
        self.statement.difference(&other.statement)
    }

    /// Tells whether a text of one kind can say what one of the other says: a task is no fact, and what
    /// a warning does beside its words a fact does not.
    fn is_comparable(&self, other: &Self) -> bool {
        let group = |kind| match kind {
            Kind::Task | Kind::Antipattern | Kind::Experience => Some(kind),
            Kind::Fact | Kind::Preference | Kind::Insight | Kind::Skill => None,
        };
        group(self.kind) == group(other.kind)
    }
}

/// Judges a text by the notes it is most like; `given` are those that its session was given, none where
/// a person wrote it. `rarity` weighs a word.
pub fn judge(
    said: &Said,
    nearest: &[(NoteId, Said)],
    given: &BTreeSet<NoteId>,
    mut rarity: impl FnMut(&str) -> f64,
) -> Novelty {
    let mut rarities = HashMap::new();
    let texts = nearest.iter().map(|(_, said)| said).chain([said]);
    for term in texts.flat_map(Said::terms) {
        if !rarities.contains_key(term.as_str()) {
            rarities.insert(term.as_str(), rarity(term));
        }
    }
    let weigh = |term: &str| rarities.get(term).copied().unwrap_or_default();
    let mut best: Option<((u8, f64), Novelty)> = None;
    let mut repeated: Vec<(NoteId, Vec<f64>)> = Vec::new();
    let mut differs = false;
    for (id, note) in nearest {
        if note.plain == said.plain && note.is_comparable(said) {
            return Novelty::Known(*id);
        }
        let shares = said.statement.sentences().iter();
        let shares: Vec<f64> = shares
            .map(|sentence| covered(sentence.terms(), &note.statement, weigh))
            .collect();
        let said_by = mean(&said.statement, &shares, weigh);
        // A short sentence that nobody said hardly moves the mean of a long text.
        let is_said = said_by >= KNOWN && shares.iter().all(|share| *share >= ALIKE);
        let difference = said.difference(note);
        if given.contains(id) {
            differs |= difference != Difference::None;
            repeated.push((*id, shares));
        }
        if !note.is_comparable(said) {
            continue;
        }
        let backwards = note.statement.sentences().iter();
        let backwards: Vec<f64> = backwards
            .map(|sentence| covered(sentence.terms(), &said.statement, weigh))
            .collect();
        let says = mean(&note.statement, &backwards, weigh);
        let in_common = likeness(said, note, weigh);
        let is_alike = in_common >= ALIKE || said_by >= KNOWN || says >= EXTENDS;
        let judged = match difference {
            Difference::Contradicts if is_alike => (2, Novelty::MayContradict(*id)),
            Difference::None if is_said => (3, Novelty::Known(*id)),
            Difference::None | Difference::Adds if said_by >= KNOWN => (1, Novelty::Extends(*id)),
            _ if says >= EXTENDS => (1, Novelty::Extends(*id)),
            _ => continue,
        };
        let order = (judged.0, in_common);
        if best.is_none_or(|(best, _)| order > best) {
            best = Some((order, judged.1));
        }
    }
    let judged = best.map_or(Novelty::Novel, |(_, judged)| judged);
    if matches!(judged, Novelty::Known(_) | Novelty::MayContradict(_)) || differs {
        return judged;
    }
    echo(said, &repeated, weigh).unwrap_or(judged)
}

/// Tells whether the notes of a session say most of a text together; the one that says the most stands
/// for them.
fn echo(
    said: &Said,
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

/// How much of a sentence's words stand close together somewhere in a text, from 0 to 1. A long text has
/// every word somewhere; that says nothing.
fn covered(terms: &BTreeSet<String>, text: &Statement, weigh: impl Fn(&str) -> f64 + Copy) -> f64 {
    let all = mass(terms.iter(), weigh);
    // A sentence without words is a number or a denial, which is for the guards.
    if all <= 0.0 {
        return 1.0;
    }
    let sentences = text.sentences();
    let windows = sentences.windows(WINDOW.min(sentences.len()).max(1));
    let shares = windows.map(|window| {
        let said = terms
            .iter()
            .filter(|term| window.iter().any(|near| near.terms().contains(*term)));
        mass(said, weigh) / all
    });
    shares.fold(0.0, f64::max)
}

/// The mean of what is covered of each sentence, long ones counting more.
fn mean(text: &Statement, shares: &[f64], weigh: impl Fn(&str) -> f64 + Copy) -> f64 {
    let mut sum = 0.0;
    let mut all = 0.0;
    for (sentence, share) in text.sentences().iter().zip(shares) {
        let mass = mass(sentence.terms().iter(), weigh);
        sum += mass * share;
        all += mass;
    }
    if all > 0.0 { sum / all } else { 0.0 }
}

/// What two texts have in common of all their words.
fn likeness(one: &Said, other: &Said, weigh: impl Fn(&str) -> f64 + Copy) -> f64 {
    let [one, other] = [one, other].map(|said| said.terms().collect::<BTreeSet<_>>());
    let all = mass(one.union(&other).copied(), weigh);
    if all > 0.0 {
        mass(one.intersection(&other).copied(), weigh) / all
    } else {
        0.0
    }
}

fn mass<'a>(terms: impl Iterator<Item = &'a String>, weigh: impl Fn(&str) -> f64) -> f64 {
    terms.map(|term| weigh(term)).sum()
}

/// What a note that is to be written is compared with.
#[derive(Debug, Clone, Default)]
pub struct Among<'a> {
    /// The keys of its project; notes for all projects count, too.
    pub projects: &'a [String],
    /// Notes that it replaces: those it may be as like as it wants.
    pub replaced: &'a [NoteId],
    /// Notes that its session was given; none where a person wrote it.
    pub given: BTreeSet<NoteId>,
}

/// Judges a note that is to be written by the notes of a store. Those that others replace are left out,
/// and so is the note itself. `read` gives a note of the store.
///
/// # Errors
/// When the index cannot be read.
pub fn novelty(
    index: &Index,
    note: &Note,
    among: &Among<'_>,
    read: impl Fn(NoteId) -> Option<Note>,
) -> Result<Novelty, Error> {
    let said = Said::of(note);
    let mask = Mask {
        own: among.projects.to_vec(),
        with_global: true,
        ..Mask::default()
    };
    let query = Query::of(&format!("{}\n{}", note.title, note.body));
    let found = rank(index, &query, &mask, NEAREST)?.candidates;
    let found = found.into_iter().map(|candidate| candidate.id);
    let mut nearest: Vec<(NoteId, Said)> = Vec::new();
    let all: BTreeSet<NoteId> = found.chain(among.given.iter().copied()).collect();
    for id in all {
        if id == note.id || among.replaced.contains(&id) {
            continue;
        }
        let is_in_use = index.get(id)?.is_some_and(|entry| !entry.superseded);
        if let Some(note) = is_in_use.then(|| read(id)).flatten() {
            nearest.push((id, Said::of(&note)));
        }
    }
    let count = index.count(&Filter::default())?;
    let mut failed = None;
    let judged = judge(&said, &nearest, &among.given, |term| {
        let having = index.frequency(term).unwrap_or_else(|error| {
            failed.get_or_insert(error);
            0
        });
        weight(count, having)
    });
    failed.map_or(Ok(judged), Err)
}

/// What a word weighs that `having` of `notes` notes have.
pub fn weight(notes: usize, having: u32) -> f64 {
    rank::weight(notes + BACKGROUND, having.saturating_add(1)).into()
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

    fn judged(index: &Index, notes: &Notes, note: &Note, among: &Among<'_>) -> Novelty {
        let read = |id| Some(notes.read(notes.find(id)?).ok()?.note());
        novelty(index, note, among, read).unwrap()
    }

    fn check(index: &Index, notes: &Notes, text: &str) -> Novelty {
        let projects = ["p".to_owned()];
        let among = Among {
            projects: &projects,
            ..Among::default()
        };
        judged(index, notes, &note(text), &among)
    }

    #[test]
    fn two_hundred_pairs() {
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
        let mut ids: BTreeMap<&str, NoteId> = BTreeMap::new();
        for [_, known, _] in &pairs {
            ids.entry(known).or_insert_with(|| {
                fixture
                    .add(known, |note| note.body = (*known).to_owned())
                    .path
                    .id
            });
        }
        let index = fixture.refreshed();
        let mut table: BTreeMap<&str, [BTreeMap<&str, usize>; 2]> = BTreeMap::new();
        for (number, [what, known, text]) in pairs.iter().enumerate() {
            let found = check(&index, &fixture.notes, text);
            let is_other = found.note().is_some_and(|id| id != ids[known]);
            let decision = if is_other {
                "another note"
            } else {
                found.as_str()
            };
            let halves = table.entry(what).or_default();
            *halves[number % 2].entry(decision).or_default() += 1;
        }
        let expected = [
            (
                "another",
                "{\"may_contradict\": 34, \"novel\": 1}",
                "{\"may_contradict\": 34, \"novel\": 1}",
            ),
            (
                "more",
                "{\"extends\": 14, \"may_contradict\": 1}",
                "{\"extends\": 14, \"may_contradict\": 1}",
            ),
            ("other", "{\"novel\": 20}", "{\"novel\": 20}"),
            (
                "same",
                "{\"extends\": 4, \"known\": 25, \"novel\": 1}",
                "{\"another note\": 1, \"extends\": 1, \"known\": 22, \"may_contradict\": 3, \"novel\": 3}",
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
        let judged = |note: &Note, among: &Among<'_>| judged(&index, &fixture.notes, note, among);
        let projects = ["other".to_owned()];
        let mut among = Among {
            projects: &projects,
            ..Among::default()
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
    fn a_long_note_that_has_every_word_says_nothing() {
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
    fn what_a_session_was_given_is_an_echo() {
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
        let among = Among {
            projects: &projects,
            given: BTreeSet::from([given, also]),
            ..Among::default()
        };
        let judged = |text| judged(&index, &fixture.notes, &note(text), &among);
        // Of two notes together.
        assert_eq!(
            judged(
                "Deploys go through GitLab pipelines of platform. Staging uses the replica in Frankfurt. Looks fine."
            ),
            Novelty::Echo(given)
        );
        // A correction is none, nor is what is new.
        assert_eq!(
            judged("Deploys do not go through GitLab pipelines of platform"),
            Novelty::MayContradict(given)
        );
        assert_eq!(judged("Fonts are subset to Latin"), Novelty::Novel);
        // A person may repeat what they like; that a note says it is told all the same.
        let text = "Staging uses the replica in Frankfurt";
        assert_eq!(check(&index, &fixture.notes, text), Novelty::Known(also));
    }

    #[test]
    fn in_a_small_store_words_weigh_about_the_same() {
        assert!(weight(1, 0) < 1.25 * weight(1, 1));
        assert!(weight(10_000, 1) > 4.0 * weight(10_000, 3_000));
    }
}
