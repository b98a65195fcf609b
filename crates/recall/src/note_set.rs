//! Chooses the notes to inject for a prompt: matching notes, the notes they are linked to, their
//! order, and why the others are withheld.
//!
//! A function of the prompt, the index, the notes and what the context has seen. The caller records
//! the result; evaluation and `recall` record nothing.
//!
//! Only relevance admits a note. Usage, freshness and confidence reorder notes of nearly equal
//! relevance.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::render::Recalled;
use anamnesis_note::{
    id::NoteId,
    link::Edge,
    note::{Note, NoteType, Visibility},
};
use anamnesis_store::{
    index::{Error, Filter, Index},
    journal::{Evidence, Held, Ledger, Seen},
    notes::Notes,
};
use anamnesis_text::{hash::text_hash, terms::words};
use chrono::{DateTime, Utc};

use crate::{
    branch::branch_remark,
    correction::{Shown, with_corrections},
    graph::{Activated, Links, spread},
    knowledge::{NoteStanding, StoreKnowledge},
    meaning::add_meaning,
    rank::{Candidate, Mask, Origin, Query, Ranked, rank},
    reason::{InjectionReason, Silence, WithholdingReason},
    similar::is_duplicate,
    threshold::{Floor, Gate, Tier},
};

/// How many candidates are ranked.
pub(crate) const CANDIDATES: usize = 50;

/// The minimum score relative to the best candidate.
const MIN_RELATIVE_SCORE: f64 = 0.7;

/// The share of the best candidate's coverage from which a later note is not held back by it.
const UPDATING_SHARE: f32 = 0.9;

/// A note whose title was shown is shown again with its text if it matches this much better.
const REPEAT_FACTOR: f64 = 1.3;

/// The maximum number of notes of one session, and of session notes, per injection.
const MAX_PER_SESSION: usize = 2;
const MAX_SESSION_NOTES: usize = 2;

/// How much usefulness, freshness and confidence may change a score, which is between 0 and 1.
const USEFULNESS_WEIGHT: f64 = 0.12;
const FRESHNESS_WEIGHT: f64 = 0.04;
const CONFIDENCE_WEIGHT: f64 = 0.03;

/// Score factors of notes for all projects, notes of other projects, and stale notes.
const GLOBAL_FACTOR: f64 = 0.9;
const OTHER_PROJECT_FACTOR: f64 = 0.67;
const STALE_FACTOR: f64 = 0.8;

/// Limits of an injection.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// The match threshold.
    pub floor: Floor,
    /// The maximum number of matching notes.
    pub notes: usize,
    /// The maximum number of linked notes, in addition.
    pub linked: usize,
    /// The maximum number of pointers if no note is injected; 0 switches them off.
    pub pointers: usize,
}

/// A recall request.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The query; its segments are the sentences of the prompt.
    pub query: &'a Query,
    /// The project's key.
    pub project: &'a str,
    /// The project's other current or former keys.
    pub also: &'a [String],
    /// The limits of the injection.
    pub limits: Limits,
    /// The notes that the context has seen.
    pub ledger: &'a Ledger,
    /// The note of the session that asks. The context has what it tells.
    pub own: Option<NoteId>,
    /// The current time.
    pub now: DateTime<Utc>,
    /// Usage, staleness and derived links of notes.
    pub knowledge: &'a StoreKnowledge<'a>,
    /// Returns the prompt's vector, to compare meanings. Called once the words were compared, and not
    /// for small talk.
    pub vector: &'a dyn Fn() -> Option<Vec<f32>>,
}

/// A note to inject.
#[derive(Debug, Clone)]
pub struct InjectedNote {
    /// The note's content and remarks about it.
    pub recalled: Recalled,
    /// Why.
    pub reason: InjectionReason,
    /// The evidence that it matches.
    pub evidence: Evidence,
}

/// The result of recall.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The notes to inject, best first.
    pub given: Vec<InjectedNote>,
    /// The notes that may match, best first: a line of each is injected.
    pub pointers: Vec<InjectedNote>,
    /// The withheld notes, best first within each step.
    pub held: Vec<Held>,
    /// Why nothing is injected, if nothing is.
    pub silence: Option<Silence>,
    /// How many meaningful words the prompt has.
    pub terms: usize,
    /// How many notes were searched.
    pub searched: usize,
    /// The threshold that notes had to reach.
    pub floor: f64,
}

/// A note that passed the threshold.
pub(crate) struct Admitted {
    pub(crate) id: NoteId,
    origin: Origin,
    pub(crate) evidence: Evidence,
    /// Its score relative to the best note's; `sort_admitted` adjusts it.
    score: f64,
    pub(crate) reason: InjectionReason,
    pub(crate) remarks: Vec<String>,
    /// Whether it comes because it corrects another note; the limits do not hold it back.
    is_correction: bool,
}

impl Shown for Admitted {
    fn id(&self) -> NoteId {
        self.id
    }

    fn remarks(&mut self) -> &mut Vec<String> {
        &mut self.remarks
    }
}

impl Admitted {
    /// Makes a note that corrects an admitted one.
    fn by_correction(id: NoteId, corrected: &Self) -> Self {
        Self {
            id,
            origin: corrected.origin,
            evidence: Evidence {
                via: Some(("changes".to_owned(), corrected.id.to_string())),
                ..corrected.evidence.clone()
            },
            score: corrected.score,
            reason: InjectionReason::ChangesMatch,
            remarks: Vec::new(),
            is_correction: true,
        }
    }

    /// Prepares the note for display.
    pub(crate) fn recalled(&self, index: &Index, note: Note) -> Result<Recalled, Error> {
        let matched = self.evidence.matched.clone();
        recalled(index, note, matched, self.remarks.clone())
    }

    /// Puts the later notes before the notes that they correct.
    pub(crate) fn corrected(
        index: &Index,
        now: DateTime<Utc>,
        admitted: Vec<Self>,
    ) -> Result<Vec<Self>, Error> {
        with_corrections(index, now, admitted, |correction, corrected| {
            Ok(Some(Self::by_correction(correction.later, corrected)))
        })
    }

    /// Makes a note that `edge` leads to from `via`; `own` is its own match, if it has one.
    pub(crate) fn by_link(edge: &Edge, via: NoteId, score: f64, own: Option<&Candidate>) -> Self {
        let relation = edge.relation.as_str();
        Self {
            id: edge.other(via),
            origin: Origin::Own,
            evidence: Evidence {
                matched: own.map(|found| found.matched.clone()).unwrap_or_default(),
                score: rounded(score),
                coverage: own.map_or(0.0, |found| rounded(f64::from(found.coverage))),
                via: Some((relation.to_owned(), via.to_string())),
                similarity: None,
            },
            score,
            reason: InjectionReason::LinkedToMatch,
            remarks: vec![format!("{relation} #{}", via.short())],
            is_correction: false,
        }
    }
}

/// Returns the outcome for a prompt of small talk such as `ok, go on`, without reading the index.
/// Returns `None` for any other prompt.
pub fn small_talk(query: &Query) -> Option<Outcome> {
    query.is_small_talk().then(|| Outcome {
        terms: query.term_count(),
        silence: Some(Silence::TooFewWords),
        ..Outcome::default()
    })
}

/// Chooses the notes to inject for a prompt, and the notes to point to if none is injected.
pub fn recall(index: &Index, notes: &Notes, request: &Request<'_>) -> Result<Outcome, Error> {
    if let Some(outcome) = small_talk(request.query) {
        return Ok(outcome);
    }
    let terms = request.query.term_count();
    let keys = std::iter::once(request.project).chain(request.also.iter().map(String::as_str));
    let query = &request.query.in_project(keys.clone());
    let request = &Request { query, ..*request };
    let mask = Mask {
        own: keys.map(str::to_owned).collect(),
        with_global: true,
        with_others: false,
        only_surfacing: true,
        filter: Filter {
            with_superseded: true,
            ..Filter::default()
        },
    };
    let (mut ranked, floor) = best_ranking(index, request, &mask)?;
    if let Some(vector) = (request.vector)() {
        add_meaning(index, &mut ranked, &vector, &mask)?;
    }
    let mut chosen = Selection {
        notes,
        request,
        outcome: Outcome {
            terms,
            searched: ranked.searched,
            floor: rounded(f64::from(floor)),
            ..Outcome::default()
        },
        mask: &mask,
        has_match: false,
        has_seen_match: false,
    };
    let gate = Gate {
        floor,
        words: query.telling_terms().len(),
    };
    let moderate = chosen.take_matches(index, &ranked, gate)?;
    chosen.take_pointers(index, moderate)?;
    Ok(chosen.finished(ranked.candidates.is_empty()))
}

/// Ranks the whole prompt or, if nothing matches that well enough, its best matching sentence.
/// Returns the threshold, too.
fn best_ranking(index: &Index, request: &Request<'_>, mask: &Mask) -> Result<(Ranked, f32), Error> {
    let query = request.query;
    let floor = request.limits.floor.threshold(1);
    let ranked = rank(index, &query.joined(), mask, CANDIDATES)?;
    let fits = |ranked: &Ranked, floor| ranked.candidates.iter().any(|found| found.passes(floor));
    if query.len() < 2 || fits(&ranked, floor) {
        return Ok((ranked, floor));
    }
    let apart = rank(index, query, mask, CANDIDATES)?;
    let best = apart
        .candidates
        .iter()
        .max_by(|a, b| a.fit.total_cmp(&b.fit).then(b.id.cmp(&a.id)));
    let floor = request.limits.floor.threshold(query.len());
    match best.and_then(|best| query.only(best.segment)) {
        Some(sentence) => Ok((rank(index, &sentence, mask, CANDIDATES)?, floor)),
        None => Ok((ranked, floor)),
    }
}

impl Outcome {
    /// Sets why a note that is held back is.
    fn hold(&mut self, id: NoteId, reason: WithholdingReason) {
        let id = id.to_string();
        for held in self.held.iter_mut().filter(|held| held.note == id) {
            reason.as_str().clone_into(&mut held.reason);
        }
    }
}

fn held(id: NoteId, reason: WithholdingReason, evidence: Evidence) -> Held {
    Held {
        note: id.to_string(),
        reason: reason.as_str().to_owned(),
        evidence,
    }
}

fn evidence(found: &Candidate) -> Evidence {
    Evidence {
        matched: found.matched.clone(),
        score: rounded(f64::from(found.evidence())),
        coverage: rounded(f64::from(found.coverage)),
        via: None,
        similarity: (found.meaning).map(|meaning| rounded(f64::from(meaning.similarity))),
    }
}

/// Rounds to three decimals, for records and output.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// Returns the candidates of the tiers [`Tier::Full`] and [`Tier::Pointer`], and records all but the first
/// as withheld.
fn admit(
    index: &Index,
    ranked: &Ranked,
    gate: Gate,
    standings: &HashMap<NoteId, NoteStanding>,
    outcome: &mut Outcome,
) -> Result<[Vec<Admitted>; 2], Error> {
    let first = ranked.candidates.first();
    let best = first.map_or(0.0, |found| found.score);
    // A later note with nearly all words of the best one may say what changed.
    let may_update = |found: &Candidate| {
        first.is_some_and(|first| {
            found.updated > first.updated && found.coverage >= UPDATING_SHARE * first.coverage
        })
    };
    let (mut fitting, mut moderate) = (Vec::new(), Vec::new());
    for found in &ranked.candidates {
        let is_benched = standings
            .get(&found.id)
            .is_some_and(|standing| standing.is_benched);
        let reason = match gate.tier(found, is_benched) {
            Ok(Tier::Full)
                if relative(found, best) < MIN_RELATIVE_SCORE
                    && !found.is_named
                    && !may_update(found) =>
            {
                Some(WithholdingReason::OthersMatchBetter)
            }
            Ok(Tier::Full) => {
                fitting.push(found);
                (found.is_superseded).then_some(WithholdingReason::Replaced)
            }
            Ok(Tier::Pointer) => {
                moderate.push(found);
                Some(WithholdingReason::WeakMatch)
            }
            Err(reason) => Some(reason),
        };
        if let Some(reason) = reason {
            outcome.held.push(held(found.id, reason, evidence(found)));
        }
    }
    let fitting = replace_superseded(index, &fitting, best)?;
    let mut moderate = replace_superseded(index, &moderate, best)?;
    moderate.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    Ok([fitting, moderate])
}

/// Returns a candidate's score relative to the best one's.
fn relative(found: &Candidate, best: f32) -> f64 {
    f64::from(found.score) / f64::from(best).max(f64::MIN_POSITIVE)
}

/// Returns the notes to admit, sorted by id. A superseded note is replaced by its successors.
pub(crate) fn replace_superseded(
    index: &Index,
    fitting: &[&Candidate],
    best: f32,
) -> Result<Vec<Admitted>, Error> {
    let mut admitted: BTreeMap<NoteId, Admitted> = BTreeMap::new();
    for found in fitting {
        let (ids, reason) = if found.is_superseded {
            (index.successors(found.id)?, InjectionReason::ReplacesMatch)
        } else {
            (vec![found.id], InjectionReason::MatchesQuestion)
        };
        let score = relative(found, best);
        for id in ids {
            let known = admitted.entry(id).or_insert_with(|| Admitted {
                id,
                origin: found.origin,
                evidence: evidence(found),
                score,
                reason,
                remarks: Vec::new(),
                is_correction: false,
            });
            known.score = known.score.max(score);
        }
    }
    Ok(admitted.into_values().collect())
}

/// Sorts best first, after adjusting scores by project, staleness, usage, freshness and confidence.
pub(crate) fn sort_admitted(
    admitted: &mut [Admitted],
    knowledge: &StoreKnowledge<'_>,
    standings: &HashMap<NoteId, NoteStanding>,
) -> Result<(), Error> {
    let ids: Vec<NoteId> = admitted.iter().map(|note| note.id).collect();
    let mut stale = knowledge.stale(&ids);
    for note in admitted.iter_mut() {
        let standing = standings.get(&note.id).copied().unwrap_or_default();
        let entry = knowledge.index.get(note.id)?;
        let confidence = entry.map_or(1.0, |entry| entry.confidence);
        let mut share = match note.origin {
            Origin::Own => 1.0,
            Origin::Global => GLOBAL_FACTOR,
            Origin::Other => OTHER_PROJECT_FACTOR,
        };
        if let Some(remark) = stale.remove(&note.id) {
            share *= STALE_FACTOR;
            note.remarks.push(remark);
        }
        note.score = note.score * share
            + USEFULNESS_WEIGHT * (standing.usefulness - 0.5)
            + FRESHNESS_WEIGHT * standing.freshness
            + CONFIDENCE_WEIGHT * (confidence - 0.5);
    }
    admitted.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    Ok(())
}

/// Returns the notes that links of the admitted notes lead to, up to `hops` links away, if `admits`
/// accepts the number of their own words of the question and its coverage.
pub(crate) fn linked(
    admitted: &[&Admitted],
    candidates: &[Candidate],
    knowledge: &StoreKnowledge<'_>,
    hops: usize,
    admits: impl Fn(&Activated, usize, f64) -> bool,
) -> Result<Vec<Admitted>, Error> {
    let seeds: Vec<(NoteId, f64)> = admitted
        .iter()
        .map(|note| (note.id, note.evidence.coverage))
        .collect();
    let links = Links {
        index: knowledge.index,
        derived: &|ids| knowledge.links(ids),
    };
    let activated = spread(&seeds, hops, &links)?;
    let found: HashMap<NoteId, &Candidate> =
        candidates.iter().map(|found| (found.id, found)).collect();
    Ok(activated
        .into_iter()
        .filter_map(|note| {
            let own = found.get(&note.id).copied();
            let terms = own.map_or(0, |found| found.matched.len());
            let coverage = own.map_or(0.0, |found| f64::from(found.coverage));
            admits(&note, terms, coverage)
                .then(|| Admitted::by_link(&note.edge, note.via, note.activation, own))
        })
        .collect())
}

/// A selection under construction.
struct Selection<'a> {
    notes: &'a Notes,
    request: &'a Request<'a>,
    outcome: Outcome,
    mask: &'a Mask,
    /// Whether a note passed the threshold.
    has_match: bool,
    /// Whether a matching note was withheld because the context has seen it.
    has_seen_match: bool,
}

/// The outcome for a candidate whose file was read.
enum ReadNote {
    Injected(Box<InjectedNote>),
    Withheld(WithholdingReason),
}

impl Selection<'_> {
    /// Adds the notes that match, and one that a link leads to. Returns those that may match.
    fn take_matches(
        &mut self,
        index: &Index,
        ranked: &Ranked,
        gate: Gate,
    ) -> Result<Vec<Admitted>, Error> {
        let (limits, knowledge) = (self.request.limits, self.request.knowledge);
        let fitting = ranked.candidates.iter();
        let fitting = fitting.filter(|found| gate.tier(found, false).is_ok());
        let ids: Vec<NoteId> = fitting.map(|found| found.id).collect();
        let standings = knowledge.standings(&ids);
        let [mut admitted, moderate] = admit(index, ranked, gate, &standings, &mut self.outcome)?;
        if admitted.is_empty() {
            return Ok(moderate);
        }
        self.has_match = true;
        sort_admitted(&mut admitted, knowledge, &standings)?;
        let admitted = Admitted::corrected(index, self.request.now, admitted)?;
        self.take(index, &admitted, limits.notes)?;
        if !self.outcome.given.is_empty() {
            let seeds: Vec<&Admitted> = admitted.iter().collect();
            let admits = Activated::is_admitted_to_prompt;
            let linked = linked(&seeds, &ranked.candidates, knowledge, 1, admits)?;
            let linked = Admitted::corrected(index, self.request.now, linked)?;
            let most = self.counted().count() + limits.linked;
            self.take(index, &linked, most)?;
        }
        Ok(moderate)
    }

    /// Points to notes that may match, unless a note answers in full or has answered before. A note that
    /// the context has seen needs no pointer.
    fn take_pointers(&mut self, index: &Index, moderate: Vec<Admitted>) -> Result<(), Error> {
        if self.has_match {
            return Ok(());
        }
        // Words alone are worth one.
        let has_meaning = |note: &Admitted| note.evidence.similarity.is_some();
        let most = if moderate.iter().any(has_meaning) {
            self.request.limits.pointers
        } else {
            self.request.limits.pointers.min(1)
        };
        let mut rest: BTreeSet<NoteId> = moderate.iter().map(|it| it.id).collect();
        for mut candidate in moderate {
            if self.outcome.pointers.len() >= most {
                break;
            }
            if self.seen(candidate.id).is_some() {
                self.has_seen_match = true;
                self.outcome
                    .hold(candidate.id, WithholdingReason::GivenBefore);
                rest.remove(&candidate.id);
                continue;
            }
            let remarks = self.request.knowledge.remarks(candidate.id)?;
            candidate.remarks.extend(remarks);
            if let ReadNote::Injected(mut pointer) = self.read_note(index, &candidate)? {
                pointer.reason = InjectionReason::MayMatch;
                self.outcome.pointers.push(*pointer);
            }
        }
        if !self.outcome.pointers.is_empty() {
            for id in rest {
                self.outcome.hold(id, WithholdingReason::OtherPointer);
            }
        }
        Ok(())
    }

    /// Returns the outcome with the reason of a silence, if it is one.
    fn finished(self, found_nothing: bool) -> Outcome {
        let mut outcome = self.outcome;
        let given = outcome.given.iter().chain(&outcome.pointers);
        let given: BTreeSet<String> = given.map(|it| it.recalled.note.id.to_string()).collect();
        outcome.held.retain(|held| !given.contains(&held.note));
        outcome.silence = given.is_empty().then_some(if found_nothing {
            Silence::NothingFound
        } else if self.has_seen_match {
            Silence::AlreadySeen
        } else if !self.has_match && outcome.terms < 2 {
            Silence::TooFewWords
        } else {
            Silence::NothingFits
        });
        outcome
    }

    /// Adds notes in order until there are `most`.
    fn take(&mut self, index: &Index, admitted: &[Admitted], most: usize) -> Result<(), Error> {
        for candidate in admitted {
            if self
                .outcome
                .given
                .iter()
                .any(|given| given.recalled.note.id == candidate.id)
            {
                continue;
            }
            let read = if self.counted().count() >= most {
                ReadNote::Withheld(WithholdingReason::NoRoom)
            } else {
                self.read_note(index, candidate)?
            };
            match read {
                ReadNote::Injected(given) => self.outcome.given.push(*given),
                ReadNote::Withheld(reason) => {
                    let evidence = candidate.evidence.clone();
                    self.outcome.held.push(held(candidate.id, reason, evidence));
                }
            }
        }
        Ok(())
    }

    /// Returns how the context has seen a note, apart from a few lines at its start.
    fn seen(&self, note: NoteId) -> Option<&Seen> {
        let seen = self.request.ledger.get(&note);
        seen.filter(|seen| !seen.is_excerpt_of_start)
    }

    /// Returns the notes that count for the limits: not those that come with a note they correct.
    fn counted(&self) -> impl Iterator<Item = &InjectedNote> {
        let given = self.outcome.given.iter();
        given.filter(|given| given.reason != InjectionReason::ChangesMatch)
    }

    /// Reads the current file of a note.
    fn read_note(&mut self, index: &Index, candidate: &Admitted) -> Result<ReadNote, Error> {
        let Some(entry) = index.get(candidate.id)? else {
            return Ok(ReadNote::Withheld(WithholdingReason::Gone));
        };
        let Ok(stored) = self.notes.read(entry.path) else {
            return Ok(ReadNote::Withheld(WithholdingReason::Gone));
        };
        let note = stored.note();
        let visibility = Visibility {
            is_superseded: entry.superseded,
            ..Visibility::from_note(&note)
        };
        if !visibility.may_surface() || self.mask.origin(&note.project).is_none() {
            return Ok(ReadNote::Withheld(WithholdingReason::NotInUseHere));
        }
        let is_own = self.request.own == Some(note.id);
        let is_seen = self.seen(note.id).is_some_and(|seen| {
            seen.hash == text_hash(&note.body)
                && (seen.with_text || candidate.evidence.score < REPEAT_FACTOR * self.outcome.floor)
        });
        if is_own || is_seen {
            self.has_seen_match = true;
            return Ok(ReadNote::Withheld(WithholdingReason::GivenBefore));
        }
        let given = || self.counted().map(|given| &given.recalled.note);
        let is_correction = candidate.is_correction;
        if !is_correction
            && note.note_type == NoteType::Episodic
            && given()
                .filter(|other| other.note_type == NoteType::Episodic)
                .count()
                >= MAX_SESSION_NOTES
        {
            return Ok(ReadNote::Withheld(WithholdingReason::EnoughSessionNotes));
        }
        if !is_correction
            && note.session.is_some()
            && given()
                .filter(|other| other.session == note.session)
                .count()
                >= MAX_PER_SESSION
        {
            return Ok(ReadNote::Withheld(WithholdingReason::EnoughOfItsSession));
        }
        for other in given().filter(|_| !is_correction) {
            if is_duplicate(index, other, &note)? {
                return Ok(ReadNote::Withheld(WithholdingReason::Duplicate));
            }
        }
        Ok(ReadNote::Injected(Box::new(InjectedNote {
            recalled: candidate.recalled(index, note)?,
            reason: candidate.reason,
            evidence: candidate.evidence.clone(),
        })))
    }
}

/// Prepares a note for display: where its body matches, which notes contradict it, and its branch.
pub fn recalled(
    index: &Index,
    note: Note,
    matched: Vec<String>,
    mut remarks: Vec<String>,
) -> Result<Recalled, Error> {
    let disputes = index.disputes_of(note.id)?;
    let disputes = disputes
        .iter()
        .map(|other| format!("disputed by #{}", other.short()));
    remarks.extend(disputes.chain(branch_remark(index, &note)?));
    Ok(Recalled {
        at: best_offset(&note.body, &matched),
        matched,
        remarks,
        closed: index.closed_failures(&note)?,
        note,
    })
}

/// Returns the byte offset in a body where most of the matched words are close together.
fn best_offset(body: &str, matched: &[String]) -> usize {
    /// About the length of a shown passage, in bytes.
    const WINDOW: usize = 300;
    /// Bounds the quadratic comparison.
    const MAX_PLACES: usize = 200;
    let wanted: BTreeSet<String> = matched
        .iter()
        .flat_map(|word| anamnesis_text::terms::terms(word))
        .collect();
    let mut places: Vec<(usize, String)> = Vec::new();
    let start = body.as_ptr().addr();
    words(body, |word| {
        if wanted.contains(word.term) && places.len() < MAX_PLACES {
            places.push((word.written.as_ptr().addr() - start, word.term.to_owned()));
        }
    });
    let different = |from: usize| {
        let near = places
            .iter()
            .filter(|(at, _)| (from..from + WINDOW).contains(at));
        near.map(|(_, term)| term).collect::<BTreeSet<_>>().len()
    };
    // `rev`, because `max_by_key` returns the last maximum and the first is wanted.
    let best = places
        .iter()
        .map(|(at, _)| *at)
        .rev()
        .max_by_key(|at| different(*at));
    best.unwrap_or(0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::session_start::tests::{Fixture, now};

    /// No linked notes.
    pub(crate) const LIMITS: Limits = Limits {
        floor: Floor::Usual,
        notes: 3,
        linked: 0,
        pointers: 2,
    };

    /// Returns what a prompt gets in the project `p`, and by meaning, too, if its vector is given.
    pub(crate) fn prompted(
        fixture: &Fixture,
        prompt: &str,
        limits: Limits,
        vector: Option<&[f32]>,
    ) -> Outcome {
        let index = fixture.refreshed();
        let request = Request {
            query: &Query::from_segments(&[prompt.to_owned()]),
            project: "p",
            also: &[],
            limits,
            ledger: &Ledger::new(),
            own: None,
            now: now(),
            knowledge: &StoreKnowledge {
                index: &index,
                journal: None,
                now: now(),
            },
            vector: &|| vector.map(<[f32]>::to_vec),
        };
        recall(&index, &fixture.notes, &request).unwrap()
    }

    pub(crate) fn injected(outcome: &Outcome) -> Vec<NoteId> {
        let given = outcome.given.iter();
        given.map(|given| given.recalled.note.id).collect()
    }

    #[test]
    fn a_linked_note_comes_with_a_prompt_if_the_match_names_it_or_it_matches_itself() {
        let fixture = Fixture::new();
        let add = |title: &str, body: String, links: Vec<String>| {
            let note = fixture.add(title, |note| {
                note.body = body;
                note.links = links;
            });
            note.path.id
        };
        let keys = add("Keyring", "In the vault.".to_owned(), Vec::new());
        let named = format!("4000 is declined, see [[{keys}]].");
        let cards = add("Test cards", named, Vec::new());
        let refund = add("Undo payments by hand", "A refund.".to_owned(), Vec::new());
        let named = "Trying a refund in the sandbox needs a card, see [[Test cards]].";
        // Named, and linked more strongly.
        let elaborates = vec![format!("elaborates {cards}")];
        let first = add(
            "Trying a refund in the sandbox",
            named.to_owned(),
            elaborates,
        );
        let other = "Trying a chargeback in the playground takes two days.";
        let links = [keys, refund].map(|id| format!("related-to {id}"));
        let second = add("Trying a chargeback", other.to_owned(), links.into());
        let limits = Limits {
            notes: 1,
            linked: 3,
            ..LIMITS
        };
        let injected = |prompt: &str| injected(&prompted(&fixture, prompt, limits, None));
        // The second note has no word of the prompt, but the first names it.
        assert_eq!(injected("try the refund in the sandbox"), [first, cards]);
        // A note that names the match does not come with it.
        assert_eq!(injected("the keyring is in the vault"), [keys]);
        // A declared link is not enough without an own match.
        assert_eq!(injected("try the chargeback in the playground"), [second]);
        assert_eq!(
            injected("try the chargeback in the playground with payments"),
            [second, refund]
        );
    }

    #[test]
    fn a_later_note_with_the_same_words_is_not_held_back_by_a_better_match() {
        let fixture = Fixture::new();
        let add = |title: &str, body: &str, day: u32| {
            let note = fixture.add(title, |note| {
                body.clone_into(&mut note.body);
                note.updated_at = format!("2026-05-{day:02}T09:00:00Z").parse().unwrap();
            });
            note.path.id
        };
        for number in 0..10 {
            add(&format!("Other {number}"), "", 1);
        }
        let first = add(
            "Where are nightly backups written?",
            "To the dumps bucket.",
            10,
        );
        let body = "You got it wrong, the nightly backups go to the vault bucket. And much else.";
        let later = add("Page four of the handbook", body, 11);
        let earlier = add("Page three of the handbook", body, 9);
        let prompt = "in which bucket do I find the nightly backups?";
        let outcome = prompted(&fixture, prompt, LIMITS, None);
        assert!(
            injected(&outcome).starts_with(&[first, later]),
            "{outcome:?}"
        );
        assert!(!injected(&outcome).contains(&earlier));
    }

    #[test]
    fn a_fact_that_was_restated_comes_once() {
        let fixture = Fixture::new();
        for said in ["Remember", "Again", "As I said", "Please"] {
            fixture.add(
                &format!("{said}: prices are integer cents, never floats"),
                |note| {
                    "In prices, integer cents and never floats.".clone_into(&mut note.body);
                },
            );
        }
        for number in 0..10 {
            fixture.add(&format!("Other {number}"), |_| {});
        }
        let outcome = prompted(
            &fixture,
            "are prices floats or integer cents?",
            LIMITS,
            None,
        );
        assert_eq!(injected(&outcome).len(), 1, "{outcome:?}");
    }

    #[test]
    fn a_note_that_another_one_keeps_from_a_pointer_says_so() {
        let fixture = Fixture::new();
        for title in ["Totals are rounded up", "Totals are rounded down"] {
            fixture.add(title, |note| "By the cart.".clone_into(&mut note.body));
        }
        for number in 0..10 {
            fixture.add(&format!("Other {number}"), |_| {});
        }
        let prompt = "how is the rounded total of a refund printed on invoices for customers";
        let outcome = prompted(&fixture, prompt, LIMITS, None);
        let held: Vec<&str> = outcome.held.iter().map(|held| &*held.reason).collect();
        assert_eq!((outcome.given.len(), outcome.pointers.len()), (0, 1));
        assert_eq!(held, [WithholdingReason::OtherPointer.as_str()]);
    }

    #[test]
    fn small_talk_needs_no_index() {
        for (prompt, says_nothing) in [
            ("ok, go on", true),
            ("go ahead", true),
            ("yes please", true),
            ("jwt?", false),
            ("部署", false),
            ("", true),
            ("why do the migrations hang", false),
            ("ok, run the migrations", false),
        ] {
            let outcome = small_talk(&Query::from_segments(&[prompt.to_owned()]));
            assert_eq!(outcome.is_some(), says_nothing, "{prompt}");
            let silence = outcome.and_then(|outcome| outcome.silence);
            assert_eq!(
                silence == Some(Silence::TooFewWords),
                says_nothing,
                "{prompt}"
            );
        }
    }
}
