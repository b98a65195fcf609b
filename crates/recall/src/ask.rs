//! Answers an explicit question: the `recall` command and the MCP tools.
//!
//! The caller wants an answer, so the threshold is low, weak matches are counted and shown on
//! request, and linked notes are added. The answer ignores what the context has seen, and records
//! nothing. Superseded, forgotten and proposed notes are never shown.

use crate::render::{Budget, Level, Recalled, fitted};
use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation},
    note::{Kind, Note, Visibility},
};
use anamnesis_store::{
    index::{Entry, Error, Filter, Index},
    journal::Evidence,
    notes::Notes,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};
use serde::{Serialize, Serializer};
use serde_json::json;

use crate::{
    graph::Activated,
    knowledge::StoreKnowledge,
    note_set::{Admitted, CANDIDATES, linked, replace_superseded, sort_admitted},
    rank::{Candidate, Mask},
    reason::InjectionReason,
    search::ranked,
    similar::is_duplicate,
};

/// The default number of notes in an answer.
pub const DEFAULT_K: usize = 8;

/// The maximum number of notes in an answer.
pub const MAX_K: usize = 50;

/// The default size of an answer, in tokens.
pub const DEFAULT_BUDGET: usize = 2_000;

/// The maximum number of links to follow.
pub const MAX_DEPTH: usize = 2;

/// The minimum share of the question's words, weighted by rarity, that a note has to contain.
const FLOOR: f32 = 0.3;

/// The maximum number of linked notes.
const MAX_LINKED_NOTES: usize = 5;

/// The maximum number of warnings.
const MAX_WARNINGS: usize = 3;

/// A question to memory.
#[derive(Clone, Copy)]
pub struct Question<'a> {
    /// The words, with phrases and prefixes as for a search.
    pub text: &'a str,
    /// The keys of the asking project. Its notes come before others that match equally well.
    pub own: &'a [String],
    /// Whether to search notes of other projects.
    pub everywhere: bool,
    /// Only notes of this kind.
    pub kind: Option<Kind>,
    /// The maximum number of notes.
    pub k: usize,
    /// How many links to follow.
    pub depth: usize,
    /// Whether weak matches fill the remaining places.
    pub with_weak: bool,
    /// The maximum size of the answer.
    pub budget: Budget,
    /// Usage history and staleness of notes.
    pub knowledge: &'a StoreKnowledge<'a>,
    /// The current time.
    pub now: DateTime<Utc>,
}

/// A note in the answer.
#[derive(Debug, Clone)]
pub struct AnswerNote {
    /// The note's current content and remarks about it.
    pub recalled: Recalled,
    /// How much of it is shown.
    pub level: Level,
    /// The shown part of its body, indented by two spaces, safe for terminals and models.
    pub text: String,
    /// Why it is in the answer.
    pub reason: InjectionReason,
    /// The evidence that it matches.
    pub evidence: Evidence,
    /// Whether it is a weak match.
    pub is_weak: bool,
}

impl AnswerNote {
    /// Returns the note's id.
    pub fn id(&self) -> NoteId {
        self.recalled.note.id
    }
}

impl Serialize for AnswerNote {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let note = &self.recalled.note;
        let lines = self.text.lines();
        let lines = lines.map(|line| line.strip_prefix("  ").unwrap_or(line));
        let fields = json!({
            "id": note.id,
            "kind": note.kind(),
            "title": one_line(&note.title),
            "project": note.project,
            "level": self.level.as_str(),
            "text": lines.collect::<Vec<_>>().join("\n"),
            "weak": self.is_weak,
            "reason": self.reason.as_str(),
            "evidence": self.evidence,
            "remarks": self.recalled.remarks,
        });
        fields.serialize(serializer)
    }
}

/// The answer to a question.
#[derive(Debug, Clone, Default, Serialize)]
pub struct MemoryAnswer {
    /// Matching notes, best first, then linked notes, then weak matches.
    pub notes: Vec<AnswerNote>,
    /// Warnings that match or that are about these notes.
    pub warnings: Vec<AnswerNote>,
    /// The links between these notes, sorted.
    pub links: Vec<Edge>,
    /// How many weak matches are not in the answer.
    pub below_floor: usize,
    /// How many notes were searched.
    pub searched: usize,
    /// The maximum size of the answer, in tokens.
    pub budget: usize,
    /// The answer's approximate size for a model, in tokens.
    #[serde(rename = "budget_used")]
    pub tokens: usize,
    /// Whether more notes were asked for than an answer may have.
    #[serde(rename = "capped")]
    pub is_capped: bool,
}

/// Answers a question.
pub fn ask(index: &Index, notes: &Notes, question: &Question<'_>) -> Result<MemoryAnswer, Error> {
    let mask = Mask {
        own: question.own.to_vec(),
        with_global: true,
        with_others: question.everywhere,
        only_surfacing: false,
        filter: Filter {
            kind: question.kind,
            // A superseded note that matches is replaced by its successor.
            with_superseded: true,
            ..Filter::default()
        },
    };
    let ranked = ranked(index, question.text, &mask, CANDIDATES)?;
    let best = ranked.candidates.first().map_or(0.0, |found| found.score);
    let (strong, weak): (Vec<&Candidate>, Vec<&Candidate>) = ranked
        .candidates
        .iter()
        .partition(|found| found.is_named || found.coverage >= FLOOR);
    let in_order = |found: &[&Candidate]| {
        let mut admitted = replace_superseded(index, found, best)?;
        let ids: Vec<NoteId> = admitted.iter().map(|note| note.id).collect();
        let standings = question.knowledge.standings(&ids);
        sort_admitted(&mut admitted, question.knowledge, &standings)?;
        Admitted::corrected(index, question.now, admitted)
    };
    let strong = in_order(&strong)?;
    let mut chosen = AnswerBuilder {
        index,
        notes,
        question,
        mask: &mask,
        answer: MemoryAnswer::default(),
    };
    let k = question.k.min(MAX_K);
    let found = chosen.take(&strong, k, false)?;
    let hops = question.depth.min(MAX_DEPTH);
    // Only notes in the answer may add linked notes.
    let shown = chosen.ids();
    let seeds: Vec<&Admitted> = strong
        .iter()
        .filter(|note| shown.contains(&note.id))
        .collect();
    let admits = Activated::is_admitted;
    let candidates = &ranked.candidates;
    let mut linked = linked(&seeds, candidates, question.knowledge, hops, admits)?;
    chosen.drop_hidden_paths(&mut linked)?;
    let linked = Admitted::corrected(index, question.now, linked)?;
    chosen.take(&linked, MAX_LINKED_NOTES, false)?;
    chosen.take(&chosen.linked_warnings()?, 0, false)?;
    let room = if question.with_weak { k - found } else { 0 };
    let guessed = chosen.take(&in_order(&weak)?, room, true)?;
    Ok(MemoryAnswer {
        below_floor: weak.len().saturating_sub(guessed),
        searched: ranked.searched,
        budget: question.budget.0,
        is_capped: question.k > MAX_K,
        ..chosen.fitted()?
    })
}

/// An answer under construction.
struct AnswerBuilder<'a> {
    index: &'a Index,
    notes: &'a Notes,
    question: &'a Question<'a>,
    mask: &'a Mask,
    answer: MemoryAnswer,
}

impl AnswerBuilder<'_> {
    /// Adds up to `most` notes in order, and warnings up to their own limit. Returns the number of
    /// notes added.
    fn take(
        &mut self,
        candidates: &[Admitted],
        most: usize,
        is_weak: bool,
    ) -> Result<usize, Error> {
        let before = self.answer.notes.len();
        for candidate in candidates {
            let Some(note) = self.read_note(candidate.id)? else {
                continue;
            };
            let is_warning = self.question.kind.is_none() && note.kind() == Kind::Antipattern;
            let (list, room) = if is_warning {
                (&mut self.answer.warnings, MAX_WARNINGS)
            } else {
                (&mut self.answer.notes, before + most)
            };
            if list.len() < room && !has_duplicate(self.index, list, &note)? {
                list.push(AnswerNote {
                    recalled: candidate.recalled(self.index, note)?,
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

    /// Reads the current file of a note. Returns `None` if it is gone, may not be shown, or is in
    /// the answer already.
    fn read_note(&self, id: NoteId) -> Result<Option<Note>, Error> {
        if self.ids().contains(&id) {
            return Ok(None);
        }
        let Some(entry) = self.shown_entry(id)? else {
            return Ok(None);
        };
        let Ok(stored) = self.notes.read(entry.path) else {
            return Ok(None);
        };
        let note = stored.note();
        let is_wanted = Visibility::from_note(&note).may_answer()
            && self.mask.origin(&note.project).is_some()
            && self.question.kind.is_none_or(|kind| kind == note.kind());
        Ok(Some(note).filter(|_| is_wanted))
    }

    /// Returns the index entry of a note that may be shown.
    fn shown_entry(&self, id: NoteId) -> Result<Option<Entry>, Error> {
        Ok(self.index.get(id)?.filter(|entry| {
            entry.visibility().may_answer() && self.mask.origin(&entry.project).is_some()
        }))
    }

    /// Drops linked notes that are reachable only through a note that may not be shown.
    fn drop_hidden_paths(&self, linked: &mut Vec<Admitted>) -> Result<(), Error> {
        let mut known = Vec::with_capacity(linked.len());
        for note in linked.drain(..) {
            let via = note.evidence.via.as_ref();
            let via = via.and_then(|(_, via)| via.parse::<NoteId>().ok());
            if let Some(via) = via
                && self.shown_entry(via)?.is_some()
            {
                known.push(note);
            }
        }
        *linked = known;
        Ok(())
    }

    fn ids(&self) -> Vec<NoteId> {
        let all = self.answer.notes.iter().chain(&self.answer.warnings);
        all.map(AnswerNote::id).collect()
    }

    /// Returns the warnings that are linked to a note of the answer by `warns-against`.
    fn linked_warnings(&self) -> Result<Vec<Admitted>, Error> {
        let ids = self.ids();
        let links = self.index.links_of(&ids)?.into_iter();
        Ok(links
            .filter(|edge| edge.relation == Relation::WarnsAgainst && ids.contains(&edge.to))
            .map(|edge| Admitted::by_link(&edge, edge.to, 0.0, None))
            .collect())
    }

    /// Adds the links and fits the notes into the budget, warnings first.
    fn fitted(self) -> Result<MemoryAnswer, Error> {
        let ids = self.ids();
        let mut answer = self.answer;
        let short = |id: NoteId| self.index.short_id(id).unwrap_or_else(|_| id.to_string());
        let mut links = self.index.links_of(&ids)?;
        links.extend(self.question.knowledge.links(&ids));
        links.retain(|edge| ids.contains(&edge.from) && ids.contains(&edge.to));
        links.sort_by_key(|edge| (edge.from, edge.to, edge.relation));
        links.dedup_by_key(|edge| (edge.from, edge.to, edge.relation));
        answer.links = links;
        let all: Vec<Recalled> = (answer.warnings.iter().chain(&answer.notes))
            .map(|found| found.recalled.clone())
            .collect();
        let (texts, tokens) = fitted(&all, self.question.budget, self.question.now, short);
        let all = answer.warnings.iter_mut().chain(&mut answer.notes);
        for (found, (level, text)) in all.zip(texts) {
            found.level = level;
            found.text = text;
        }
        answer.tokens = tokens;
        Ok(answer)
    }
}

/// Returns whether the list already has a note that says the same.
fn has_duplicate(index: &Index, list: &[AnswerNote], note: &Note) -> Result<bool, Error> {
    for other in list {
        if is_duplicate(index, &other.recalled.note, note)? {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        graph::{Graph as _, Links, MAX_LINKS, neighbours},
        pathway::{MIN_STRENGTH, around},
        session_start::tests::{Fixture, now},
    };

    fn question<'a>(
        text: &'a str,
        own: &'a [String],
        knowledge: &'a StoreKnowledge<'a>,
    ) -> Question<'a> {
        Question {
            text,
            own,
            everywhere: true,
            kind: None,
            k: DEFAULT_K,
            depth: MAX_DEPTH,
            with_weak: true,
            budget: Budget(DEFAULT_BUDGET),
            knowledge,
            now: now(),
        }
    }

    #[test]
    fn a_hub_adds_few_notes_and_is_not_added() {
        let fixture = Fixture::new();
        let hub = fixture
            .add("everything hangs on the schema", |_| {})
            .path
            .id;
        // A hub's activation is divided by the number of its links, so almost nothing is left.
        let relations = ["caused-by", "elaborates", "part-of", "related-to", "about"];
        for number in 0..220 {
            fixture.add(&format!("migration {number}"), |note| {
                note.links = relations.map(|relation| format!("{relation} {hub}")).into();
            });
        }
        let index = fixture.refreshed();
        let own = ["p".to_owned()];
        let knowledge = StoreKnowledge {
            index: &index,
            journal: None,
            now: now(),
        };
        let asked = |text| {
            let question = question(text, &own, &knowledge);
            ask(&index, &fixture.notes, &question).unwrap()
        };
        let answer = asked("schema");
        assert_eq!(answer.notes.first().map(AnswerNote::id), Some(hub));
        assert!(
            answer.notes.len() <= 1 + MAX_LINKED_NOTES,
            "{}",
            answer.notes.len()
        );
        // The hub is not in the answer to a question about one of its neighbours.
        let answer = asked("migration 7");
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
