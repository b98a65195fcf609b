//! What memory says to a question that somebody puts to it: the command `recall`, and tools.
//!
//! Who asks wants an answer, so the floor is low, what lies below it is counted and shown when it is
//! wanted, and what links bring comes besides. Nothing is told of what a context has seen, and nothing
//! is recorded. What was replaced, forgotten or waits for approval is not shown in any way.

use crate::render::{Budget, Level, Recalled, fitted};
use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation},
    note::{Kind, Note, State},
};
use anamnesis_store::{
    index::{Entry, Error, Filter, Index},
    journal::Evidence,
    notes::Notes,
};
use chrono::{DateTime, Utc};

use crate::{
    note_set::{
        Admitted, CANDIDATES, Knowledge, SAME, in_their_place, likeness, linked, order, recalled,
    },
    rank::{Candidate, Mask},
    search::ranked,
};

/// How many notes an answer has, unless somebody asks for another number.
pub const DEFAULT_K: usize = 8;

/// The most notes an answer has.
pub const MAX_K: usize = 50;

/// How many tokens an answer may cost, unless somebody asks for another number.
pub const DEFAULT_BUDGET: usize = 2_000;

/// How far links are followed at most.
pub const MAX_DEPTH: usize = 2;

/// The share of the question, each word as much as it is rare, that a note has to have.
const FLOOR: f32 = 0.25;

/// How many notes links bring.
const MAX_LINKED: usize = 5;

/// How many warnings an answer has.
const MAX_WARNINGS: usize = 3;

/// What is asked.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The words; a phrase in quotes and the beginning of a word (`migr*`) are conditions.
    pub text: &'a str,
    /// The keys of the project that asks: its notes come before others that fit as well.
    pub own: &'a [String],
    /// Whether notes of other projects are looked at.
    pub everywhere: bool,
    /// Only notes of this kind.
    pub kind: Option<Kind>,
    /// How many notes at most.
    pub k: usize,
    /// How many links far what they bring may be.
    pub depth: usize,
    /// Whether notes that fit too little fill the places that are left.
    pub with_weak: bool,
    /// How much the answer may cost.
    pub budget: Budget,
    /// What is known of notes beside what they say.
    pub knowledge: &'a dyn Knowledge,
    /// The time.
    pub now: DateTime<Utc>,
}

/// A note of the answer.
#[derive(Debug, Clone)]
pub struct Found {
    /// What it says now, and what else is to be said of it.
    pub recalled: Recalled,
    /// How much of it there is room for.
    pub level: Level,
    /// What there is room for of its body, each line behind two blanks; fit for a terminal and a model.
    pub text: String,
    /// Why it is here, in a few words.
    pub reason: &'static str,
    /// What spoke for it.
    pub evidence: Evidence,
    /// Whether it fits too little to be more than a guess.
    pub is_weak: bool,
}

impl Found {
    /// The note's id.
    pub fn id(&self) -> NoteId {
        self.recalled.note.id
    }
}

/// What memory says.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// The notes that fit, the best first; behind them those that links bring, and the weak ones.
    pub notes: Vec<Found>,
    /// Warnings that fit, or that are about these notes.
    pub warnings: Vec<Found>,
    /// The links between these notes, sorted.
    pub links: Vec<Edge>,
    /// How many more notes were found that fit too little.
    pub below_floor: usize,
    /// How many notes were searched.
    pub searched: usize,
    /// What it costs a model, in tokens, roughly.
    pub tokens: usize,
}

/// Answers a question.
///
/// # Errors
/// When the index cannot be read.
pub fn ask(index: &Index, notes: &Notes, question: &Question<'_>) -> Result<Answer, Error> {
    let mask = Mask {
        own: question.own.to_vec(),
        with_global: true,
        with_others: question.everywhere,
        only_unasked: false,
        filter: Filter {
            kind: question.kind,
            // They hand their places over to the notes that replace them.
            with_superseded: true,
            ..Filter::default()
        },
    };
    let ranked = ranked(index, question.text, &mask, CANDIDATES)?;
    let best = ranked.candidates.first().map_or(0.0, |found| found.score);
    let (strong, weak): (Vec<&Candidate>, Vec<&Candidate>) = ranked
        .candidates
        .iter()
        .partition(|found| found.exact.is_some() || found.coverage >= FLOOR);
    let in_order = |found: &[&Candidate]| {
        let mut admitted = in_their_place(index, found, best)?;
        let ids: Vec<NoteId> = admitted.iter().map(|note| note.id).collect();
        let standings = question.knowledge.standings(&ids);
        order(index, &mut admitted, question.knowledge, &standings)?;
        Ok::<_, Error>(admitted)
    };
    let strong = in_order(&strong)?;
    let mut chosen = Chosen {
        index,
        notes,
        question,
        mask: &mask,
        answer: Answer::default(),
    };
    let k = question.k.min(MAX_K);
    let found = chosen.take(&strong, k, false)?;
    let hops = question.depth.min(MAX_DEPTH);
    // What is not told brings nothing along.
    let told = chosen.ids();
    let seeds: Vec<&Admitted> = strong
        .iter()
        .filter(|note| told.contains(&note.id))
        .collect();
    let mut linked = linked(index, &seeds, &ranked.candidates, question.knowledge, hops)?;
    chosen.keep_known_ways(&mut linked)?;
    chosen.take(&linked, MAX_LINKED, false)?;
    chosen.take(&chosen.warning_of_these()?, 0, false)?;
    let room = if question.with_weak { k - found } else { 0 };
    let guessed = chosen.take(&in_order(&weak)?, room, true)?;
    Ok(Answer {
        below_floor: weak.len().saturating_sub(guessed),
        searched: ranked.searched,
        ..chosen.fitted()?
    })
}

/// An answer as it is put together.
struct Chosen<'a> {
    index: &'a Index,
    notes: &'a Notes,
    question: &'a Question<'a>,
    mask: &'a Mask,
    answer: Answer,
}

impl Chosen<'_> {
    /// Takes up to `most` notes in their order, and warnings as long as there are few. Returns how many
    /// notes it took.
    fn take(
        &mut self,
        candidates: &[Admitted],
        most: usize,
        is_weak: bool,
    ) -> Result<usize, Error> {
        let before = self.answer.notes.len();
        for candidate in candidates {
            let Some(note) = self.look_at(candidate.id)? else {
                continue;
            };
            let is_warning = self.question.kind.is_none() && note.kind() == Kind::Antipattern;
            let (list, room) = if is_warning {
                (&mut self.answer.warnings, MAX_WARNINGS)
            } else {
                (&mut self.answer.notes, before + most)
            };
            if list.len() < room && !is_like_another(self.index, list, &note)? {
                list.push(Found {
                    recalled: recalled(self.index, note, candidate)?,
                    level: Level::Name,
                    text: String::new(),
                    reason: candidate.reason,
                    evidence: candidate.evidence.clone(),
                    is_weak,
                });
            }
        }
        Ok(self.answer.notes.len() - before)
    }

    /// Reads a note as it is now; none where it is gone, not to be shown, or in the answer already.
    fn look_at(&self, id: NoteId) -> Result<Option<Note>, Error> {
        if self.ids().contains(&id) {
            return Ok(None);
        }
        let Some(entry) = self.in_use(id)? else {
            return Ok(None);
        };
        let Ok(stored) = self.notes.read(entry.path) else {
            return Ok(None);
        };
        let note = stored.note();
        let is_wanted = may_be_told(note.state)
            && self.mask.origin(&note.project).is_some()
            && self.question.kind.is_none_or(|kind| kind == note.kind());
        Ok(Some(note).filter(|_| is_wanted))
    }

    /// A note that may be told of, as the index knows it.
    fn in_use(&self, id: NoteId) -> Result<Option<Entry>, Error> {
        Ok(self.index.get(id)?.filter(|entry| {
            !entry.superseded
                && may_be_told(entry.state)
                && self.mask.origin(&entry.project).is_some()
        }))
    }

    /// Drops what only a note leads to that may not be told of.
    fn keep_known_ways(&self, linked: &mut Vec<Admitted>) -> Result<(), Error> {
        let mut known = Vec::with_capacity(linked.len());
        for note in linked.drain(..) {
            let via = note.evidence.via.as_ref();
            let via = via.and_then(|(_, via)| via.parse::<NoteId>().ok());
            if let Some(via) = via
                && self.in_use(via)?.is_some()
            {
                known.push(note);
            }
        }
        *linked = known;
        Ok(())
    }

    fn ids(&self) -> Vec<NoteId> {
        let all = self.answer.notes.iter().chain(&self.answer.warnings);
        all.map(Found::id).collect()
    }

    /// The warnings that say that they are about a note of the answer.
    fn warning_of_these(&self) -> Result<Vec<Admitted>, Error> {
        let ids = self.ids();
        let links = self.index.links_of(&ids)?.into_iter();
        Ok(links
            .filter(|edge| edge.relation == Relation::WarnsAgainst && ids.contains(&edge.to))
            .map(|edge| Admitted::by_link(&edge, edge.to, 0.0, None))
            .collect())
    }

    /// The answer with its links, and as much of each note as there is room for, warnings first.
    fn fitted(self) -> Result<Answer, Error> {
        let ids = self.ids();
        let mut answer = self.answer;
        let mut links = self.index.links_of(&ids)?;
        links.extend(self.question.knowledge.links(&ids));
        links.retain(|edge| ids.contains(&edge.from) && ids.contains(&edge.to));
        links.sort_by_key(|edge| (edge.from, edge.to, edge.relation));
        links.dedup_by_key(|edge| (edge.from, edge.to, edge.relation));
        answer.links = links;
        let all: Vec<Recalled> = (answer.warnings.iter().chain(&answer.notes))
            .map(|found| found.recalled.clone())
            .collect();
        let short = |id: NoteId| self.index.short_id(id).unwrap_or_else(|_| id.to_string());
        let (texts, tokens) = fitted(&all, self.question.budget, self.question.now, short);
        let all = answer.warnings.iter_mut().chain(&mut answer.notes);
        for (found, text) in all.zip(texts) {
            found.level = text.level;
            found.text = text.text;
        }
        answer.tokens = tokens;
        Ok(answer)
    }
}

/// Tells whether a note in this state is told of to somebody who asks: what waits for approval is not.
fn may_be_told(state: State) -> bool {
    matches!(state, State::Active | State::Muted)
}

/// Tells whether a note says what another one of the list says.
fn is_like_another(index: &Index, list: &[Found], note: &Note) -> Result<bool, Error> {
    for other in list {
        if likeness(index, &other.recalled.note, note)? >= SAME {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::{
        graph::{Graph as _, Links, MAX_LINKS, neighbours},
        note_set::Standing,
        pathway::{MIN_STRENGTH, around},
        session_start::tests::{Fixture, now},
    };

    /// Nothing is known but what notes say.
    struct Nothing;

    impl Knowledge for Nothing {
        fn standings(&self, _: &[NoteId]) -> HashMap<NoteId, Standing> {
            HashMap::new()
        }

        fn stale(&self, _: &[NoteId]) -> HashMap<NoteId, String> {
            HashMap::new()
        }

        fn links(&self, _: &[NoteId]) -> Vec<Edge> {
            Vec::new()
        }
    }

    fn question<'a>(text: &'a str, own: &'a [String]) -> Question<'a> {
        Question {
            text,
            own,
            everywhere: true,
            kind: None,
            k: DEFAULT_K,
            depth: MAX_DEPTH,
            with_weak: true,
            budget: Budget(DEFAULT_BUDGET),
            knowledge: &Nothing,
            now: now(),
        }
    }

    #[test]
    fn a_note_that_everything_is_linked_with_brings_few_and_comes_with_nothing() {
        let fixture = Fixture::new();
        let hub = fixture
            .add("everything hangs on the schema", |_| {})
            .path
            .id;
        // As many links as are counted: of what reaches it, next to nothing is left.
        let relations = ["caused-by", "elaborates", "part-of", "related-to", "about"];
        for number in 0..220 {
            fixture.add(&format!("migration {number}"), |note| {
                note.links = relations.map(|relation| format!("{relation} {hub}")).into();
            });
        }
        let index = fixture.refreshed();
        let own = ["p".to_owned()];
        let answer = ask(&index, &fixture.notes, &question("schema", &own)).unwrap();
        assert_eq!(answer.notes.first().map(Found::id), Some(hub));
        assert!(
            answer.notes.len() <= 1 + MAX_LINKED,
            "{}",
            answer.notes.len()
        );
        // Who asks for one that is linked with it is not given it for that.
        let answer = ask(&index, &fixture.notes, &question("migration 7", &own)).unwrap();
        assert!(answer.notes.iter().all(|found| found.id() != hub));
        let links = Links {
            index: &index,
            derived: &|_| Vec::new(),
        };
        let edges = links.edges(&[hub]).unwrap();
        assert_eq!(neighbours(hub, &edges).len(), MAX_LINKS);
        let around = around(&links, hub, 2, MIN_STRENGTH).unwrap();
        assert!(around.paths.len() <= 50);
    }
}
