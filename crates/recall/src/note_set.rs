//! Which notes come unasked: those that fit well enough, the notes their links bring, in which order,
//! and why the others stay back.
//!
//! A function of the question, the index, the notes and what the context has seen. Whoever shows the
//! result records it; evaluation and `recall` call it and record nothing.
//!
//! Relevance admits, all else only reorders: how often a note was used, how fresh it is and how sure
//! it is settle what relevance leaves nearly equal.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::render::Recalled;
use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation},
    note::{Kind, Note, NoteType, State, parse_timestamp},
    usage_log::NoteCounts,
};
use anamnesis_store::{
    index::{ByMonth, Entry, Error, Filter, Index},
    journal::{Evidence, Held, Ledger},
    notes::Notes,
};
use anamnesis_text::{hash::text_hash, terms::words};
use chrono::{DateTime, Utc};

use crate::{
    freshness::freshness,
    graph::{Links, spread},
    rank::{Candidate, Mask, Origin, Query, Ranked, rank},
    threshold::{Floor, refusal},
    usefulness::{Faded, is_benched, is_exempt, usefulness},
};

/// How many notes are looked at.
pub(crate) const CANDIDATES: usize = 50;

/// Notes with less than this part of the best one's score do not come with it.
const TAIL: f64 = 0.7;

/// A note of which only the title was shown comes again with its text when it fits so much better.
const LIFT: f64 = 1.3;

/// Two notes that have so much in common say the same.
pub(crate) const SAME: f64 = 0.6;

/// How many notes of one session, and how many session notes, come at once.
const OF_ONE_SESSION: usize = 2;
const OF_SESSIONS: usize = 2;

/// Why a note is held back that this context was given before.
pub const GIVEN_BEFORE: &str = "given before";

/// How much usefulness, freshness and confidence may move a note, of a score from 0 to 1.
const BY_USE: f64 = 0.12;
const BY_FRESHNESS: f64 = 0.04;
const BY_CONFIDENCE: f64 = 0.03;

/// How much less a note for all projects counts than one of the project, one of another project, and
/// a stale one than a fresh one.
const GLOBAL_SHARE: f64 = 0.9;
const OTHER_SHARE: f64 = 0.67;
const STALE_SHARE: f64 = 0.8;

/// What else speaks for a note, beside its words.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Standing {
    /// How often it helped when it was given, from 0 to 1; ½ where nothing is known.
    pub usefulness: f64,
    /// How lately it was used, confirmed or written, from 0 to 1.
    pub freshness: f64,
    /// Whether it was given often and never used: it has to fit better then.
    pub is_benched: bool,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            usefulness: 0.5,
            freshness: 1.0,
            is_benched: false,
        }
    }
}

impl Standing {
    /// How a note stands by what became of it, month by month.
    pub fn of(entry: &Entry, months: &ByMonth<NoteCounts>, now: DateTime<Utc>) -> Self {
        let faded = Faded::of(months, now);
        let last = months
            .iter()
            .filter_map(|(_, counts)| counts.last.max(counts.verified))
            .max();
        let changed = parse_timestamp(&entry.updated_at);
        let since = last.max(changed).unwrap_or(DateTime::UNIX_EPOCH);
        Self {
            usefulness: usefulness(&faded),
            freshness: freshness(entry.kind, entry.pinned, since, faded.sessions, now),
            is_benched: is_benched(months, is_exempt(entry)),
        }
    }
}

/// What is known of notes beside what they say.
pub trait Knowledge {
    /// How each of these notes stands; one that is not told of has no history.
    fn standings(&self, ids: &[NoteId]) -> HashMap<NoteId, Standing>;

    /// Of these notes those whose references are gone, with what is gone.
    fn stale(&self, ids: &[NoteId]) -> HashMap<NoteId, String>;

    /// Links of these notes that nobody wrote down: to notes they were used with, to notes that name
    /// the same file.
    fn links(&self, ids: &[NoteId]) -> Vec<Edge>;
}

/// How much may come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// What a note has to reach.
    pub floor: Floor,
    /// How many notes at most.
    pub notes: usize,
    /// How many that links bring, besides.
    pub linked: usize,
}

/// What is asked, by whom.
#[derive(Clone, Copy)]
pub struct Request<'a> {
    /// The sentences that are searched for.
    pub sentences: &'a [String],
    /// The project's key.
    pub project: &'a str,
    /// The other keys that it has or had.
    pub also: &'a [String],
    /// How much may come.
    pub limits: Limits,
    /// What the context has seen.
    pub ledger: &'a Ledger,
    /// What is known of notes beside what they say.
    pub knowledge: &'a dyn Knowledge,
}

/// Why nothing came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silence {
    /// Too few words say anything.
    TooFewWords,
    /// No note has the words.
    NothingFound,
    /// No note fits well enough.
    NothingFits,
    /// The context has seen what fits.
    AlreadySeen,
}

impl Silence {
    /// The words that explain it to a person.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::TooFewWords => "too few words say anything",
            Self::NothingFound => "no note has these words",
            Self::NothingFits => "nothing fits well enough",
            Self::AlreadySeen => "what fits was given before",
        }
    }
}

/// A note that comes.
#[derive(Debug, Clone)]
pub struct Given {
    /// The note, and what is said of it.
    pub recalled: Recalled,
    /// Why, in a few words.
    pub reason: &'static str,
    /// What spoke for it.
    pub evidence: Evidence,
}

/// What recall came to.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// The notes that come, the best first.
    pub given: Vec<Given>,
    /// Those that stay back, the best first of each step.
    pub held: Vec<Held>,
    /// Why nothing comes; none where something does.
    pub silence: Option<Silence>,
    /// How many words of the question count.
    pub terms: usize,
    /// How many notes were searched.
    pub searched: usize,
    /// What a note had to reach.
    pub floor: f64,
}

/// A note that fits well enough.
pub(crate) struct Admitted {
    pub(crate) id: NoteId,
    origin: Origin,
    pub(crate) evidence: Evidence,
    /// How well it does beside the others: 1 for the best, before what is known of it moves it.
    score: f64,
    pub(crate) reason: &'static str,
    pub(crate) remarks: Vec<String>,
}

impl Admitted {
    /// The note that a link leads to from `via`, and what it has of the question by itself.
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
            },
            score,
            reason: "linked with a note that fits",
            remarks: vec![format!("{relation} #{}", via.short())],
        }
    }
}

/// What comes of a prompt that says nothing, such as `ok, go on`: it needs no look into the index. None
/// for any other.
pub fn small_talk(sentences: &[String]) -> Option<Outcome> {
    nothing_asked(&Query::from_segments(sentences))
}

fn nothing_asked(query: &Query) -> Option<Outcome> {
    query.is_small_talk().then(|| Outcome {
        terms: query.term_count(),
        silence: Some(Silence::TooFewWords),
        ..Outcome::default()
    })
}

/// Chooses the notes that come with a question.
///
/// # Errors
/// When the index cannot be read.
pub fn recall(index: &Index, notes: &Notes, request: &Request<'_>) -> Result<Outcome, Error> {
    let query = Query::from_segments(request.sentences);
    if let Some(outcome) = nothing_asked(&query) {
        return Ok(outcome);
    }
    let mut outcome = Outcome {
        terms: query.term_count(),
        ..Outcome::default()
    };
    let mask = Mask {
        own: std::iter::once(request.project.to_owned())
            .chain(request.also.iter().cloned())
            .collect(),
        with_global: true,
        with_others: false,
        only_unasked: true,
        filter: Filter {
            with_superseded: true,
            ..Filter::default()
        },
    };
    let (ranked, floor) = answer(index, request, &mask)?;
    outcome.searched = ranked.searched;
    outcome.floor = rounded(f64::from(floor));
    if ranked.candidates.is_empty() {
        outcome.silence = Some(Silence::NothingFound);
        return Ok(outcome);
    }
    let fitting = ranked.candidates.iter().filter(|found| found.passes(floor));
    let ids: Vec<NoteId> = fitting.map(|found| found.id).collect();
    let standings = request.knowledge.standings(&ids);
    let mut admitted = admit(index, &ranked, floor, &standings, &mut outcome)?;
    if admitted.is_empty() {
        outcome.silence = Some(if outcome.terms < 2 {
            Silence::TooFewWords
        } else {
            Silence::NothingFits
        });
        return Ok(outcome);
    }
    order(index, &mut admitted, request.knowledge, &standings)?;
    let mut chosen = Chosen {
        notes,
        request,
        outcome,
        keys: mask.own,
        had_any: false,
    };
    chosen.take(index, &admitted, request.limits.notes)?;
    let seeds: Vec<&Admitted> = admitted.iter().collect();
    let linked = linked(index, &seeds, &ranked.candidates, request.knowledge, 1)?;
    let most = chosen.outcome.given.len() + request.limits.linked;
    if !chosen.outcome.given.is_empty() {
        chosen.take(index, &linked, most)?;
    }
    let mut outcome = chosen.outcome;
    if outcome.given.is_empty() {
        outcome.silence = Some(if chosen.had_any {
            Silence::AlreadySeen
        } else {
            Silence::NothingFits
        });
    }
    Ok(outcome)
}

/// What is searched for finds: the prompt as a whole, or, where nothing fits that well enough, the
/// sentence that something fits best. Tells what a note has to reach, too.
fn answer(index: &Index, request: &Request<'_>, mask: &Mask) -> Result<(Ranked, f32), Error> {
    let whole = [request.sentences.join("\n")];
    let floor = request.limits.floor.of(1);
    let ranked = rank(index, &Query::from_segments(&whole), mask, CANDIDATES)?;
    let fits = |ranked: &Ranked, floor| ranked.candidates.iter().any(|found| found.passes(floor));
    if request.sentences.len() < 2 || fits(&ranked, floor) {
        return Ok((ranked, floor));
    }
    let apart = rank(
        index,
        &Query::from_segments(request.sentences),
        mask,
        CANDIDATES,
    )?;
    let best = apart
        .candidates
        .iter()
        .max_by(|a, b| a.fit.total_cmp(&b.fit).then(b.id.cmp(&a.id)));
    let floor = request.limits.floor.of(request.sentences.len());
    match best.and_then(|best| request.sentences.get(best.segment)) {
        Some(sentence) => {
            let query = Query::from_segments(std::slice::from_ref(sentence));
            Ok((rank(index, &query, mask, CANDIDATES)?, floor))
        }
        None => Ok((ranked, floor)),
    }
}

fn held(id: NoteId, reason: &str, evidence: Evidence) -> Held {
    Held {
        note: id.to_string(),
        reason: reason.to_owned(),
        evidence,
    }
}

fn evidence(found: &Candidate) -> Evidence {
    Evidence {
        matched: found.matched.clone(),
        score: rounded(f64::from(found.fit)),
        coverage: rounded(f64::from(found.coverage)),
        via: None,
    }
}

/// A number as it is told and kept.
fn rounded(number: f64) -> f64 {
    (number * 1000.0).round() / 1000.0
}

/// The candidates that fit well enough; a note that was replaced hands its place to the one that
/// replaces it.
fn admit(
    index: &Index,
    ranked: &Ranked,
    floor: f32,
    standings: &HashMap<NoteId, Standing>,
    outcome: &mut Outcome,
) -> Result<Vec<Admitted>, Error> {
    let best = ranked.candidates.first().map_or(0.0, |found| found.score);
    let mut fitting = Vec::new();
    for found in &ranked.candidates {
        let is_benched = standings
            .get(&found.id)
            .is_some_and(|standing| standing.is_benched);
        let refusal = refusal(found, floor, is_benched).or_else(|| {
            (relative(found, best) < TAIL && found.exact.is_none())
                .then_some("others fit much better")
        });
        if let Some(reason) = refusal {
            outcome.held.push(held(found.id, reason, evidence(found)));
            continue;
        }
        if found.is_superseded {
            outcome
                .held
                .push(held(found.id, "replaced", evidence(found)));
        }
        fitting.push(found);
    }
    in_their_place(index, &fitting, best)
}

/// How well a candidate does beside the best one, whose score is given.
fn relative(found: &Candidate, best: f32) -> f64 {
    f64::from(found.score) / f64::from(best).max(f64::MIN_POSITIVE)
}

/// The notes that come for these candidates: a note that was replaced hands its place to those that
/// replace it. By id.
pub(crate) fn in_their_place(
    index: &Index,
    fitting: &[&Candidate],
    best: f32,
) -> Result<Vec<Admitted>, Error> {
    let mut admitted: BTreeMap<NoteId, Admitted> = BTreeMap::new();
    for found in fitting {
        let (ids, reason) = if found.is_superseded {
            (index.successors(found.id)?, "replaces a note that fits")
        } else {
            (vec![found.id], "fits what was asked")
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
            });
            known.score = known.score.max(score);
        }
    }
    Ok(admitted.into_values().collect())
}

/// Puts the best first. What is known of notes may move them by little.
pub(crate) fn order(
    index: &Index,
    admitted: &mut [Admitted],
    knowledge: &dyn Knowledge,
    standings: &HashMap<NoteId, Standing>,
) -> Result<(), Error> {
    let ids: Vec<NoteId> = admitted.iter().map(|note| note.id).collect();
    let mut stale = knowledge.stale(&ids);
    for note in admitted.iter_mut() {
        let standing = standings.get(&note.id).copied().unwrap_or_default();
        let confidence = index.get(note.id)?.map_or(1.0, |entry| entry.confidence);
        let mut share = match note.origin {
            Origin::Own => 1.0,
            Origin::Global => GLOBAL_SHARE,
            Origin::Other => OTHER_SHARE,
        };
        if let Some(reason) = stale.remove(&note.id) {
            share *= STALE_SHARE;
            note.remarks.push(format!("stale: {reason}"));
        }
        note.score = note.score * share
            + BY_USE * (standing.usefulness - 0.5)
            + BY_FRESHNESS * standing.freshness
            + BY_CONFIDENCE * (confidence - 0.5);
    }
    admitted.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.id.cmp(&b.id)));
    Ok(())
}

/// The notes that links of the admitted ones lead to, so many steps far.
pub(crate) fn linked(
    index: &Index,
    admitted: &[&Admitted],
    candidates: &[Candidate],
    knowledge: &dyn Knowledge,
    hops: usize,
) -> Result<Vec<Admitted>, Error> {
    let seeds: Vec<(NoteId, f64)> = admitted
        .iter()
        .map(|note| (note.id, note.evidence.coverage))
        .collect();
    let links = Links {
        index,
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
            note.is_admitted(terms, coverage)
                .then(|| Admitted::by_link(&note.edge, note.via, note.activation, own))
        })
        .collect())
}

/// The notes that come, as they are chosen.
struct Chosen<'a> {
    notes: &'a Notes,
    request: &'a Request<'a>,
    outcome: Outcome,
    /// The project's keys.
    keys: Vec<String>,
    /// Whether a note that fits was not given because the context has it.
    had_any: bool,
}

impl Chosen<'_> {
    /// Takes notes in their order until there are `most`.
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
            let refusal = if self.outcome.given.len() >= most {
                Err("there is no room for more")
            } else {
                self.look_at(index, candidate)?
            };
            match refusal {
                Ok(given) => self.outcome.given.push(given),
                Err(reason) => {
                    self.outcome
                        .held
                        .push(held(candidate.id, reason, candidate.evidence.clone()))
                }
            }
        }
        Ok(())
    }

    /// Reads a note as it is now; says why it stays back if it does.
    fn look_at(
        &mut self,
        index: &Index,
        candidate: &Admitted,
    ) -> Result<Result<Given, &'static str>, Error> {
        let Some(entry) = index.get(candidate.id)? else {
            return Ok(Err("it is gone"));
        };
        let Ok(stored) = self.notes.read(entry.path) else {
            return Ok(Err("it is gone"));
        };
        let note = stored.note();
        if !self.may_come(&note, &entry) {
            return Ok(Err("it is not in use here"));
        }
        if let Some(seen) = self.request.ledger.get(&note.id)
            && seen.hash == text_hash(&note.body)
            && (seen.with_text || candidate.evidence.score < LIFT * self.outcome.floor)
        {
            self.had_any = true;
            return Ok(Err(GIVEN_BEFORE));
        }
        let given = || self.outcome.given.iter().map(|given| &given.recalled.note);
        if note.note_type == NoteType::Episodic
            && given()
                .filter(|other| other.note_type == NoteType::Episodic)
                .count()
                >= OF_SESSIONS
        {
            return Ok(Err("enough session notes come"));
        }
        if note.session.is_some()
            && given()
                .filter(|other| other.session == note.session)
                .count()
                >= OF_ONE_SESSION
        {
            return Ok(Err("enough notes of its session come"));
        }
        for other in given() {
            if likeness(index, other, &note)? >= SAME {
                return Ok(Err("another note says the same"));
            }
        }
        Ok(Ok(Given {
            recalled: recalled(index, note, candidate)?,
            reason: candidate.reason,
            evidence: candidate.evidence.clone(),
        }))
    }

    fn may_come(&self, note: &Note, entry: &Entry) -> bool {
        note.state == State::Active
            && !entry.superseded
            && note.kind() != Kind::Task
            && (note.is_global() || self.keys.contains(&note.project))
            && !(note.note_type == NoteType::Episodic && note.has_tag("reflected"))
    }
}

/// A note as it is shown for what spoke for it, and who contradicts it.
pub(crate) fn recalled(index: &Index, note: Note, why: &Admitted) -> Result<Recalled, Error> {
    let links = index.links_of(&[note.id])?;
    let disputes = links
        .iter()
        .filter(|edge| edge.relation == Relation::Contradicts)
        .map(|edge| format!("disputed by #{}", edge.other(note.id).short()));
    Ok(Recalled {
        at: best_place(&note.body, &why.evidence.matched),
        remarks: why.remarks.iter().cloned().chain(disputes).collect(),
        note,
    })
}

/// How much two notes have in common, from 0 to 1: Jaccard's index of their terms, each as much as it
/// is rare in the store.
pub(crate) fn likeness(index: &Index, one: &Note, other: &Note) -> Result<f64, Error> {
    let [one, other] = [one, other].map(|note| {
        let mut terms = BTreeSet::new();
        for text in [&note.title, &note.body] {
            words(text, |word| {
                if !word.is_stop_word() {
                    terms.insert(word.term.to_owned());
                }
            });
        }
        terms
    });
    let plain = share(one.intersection(&other).count(), one.union(&other).count());
    // Rarity moves it by so little that most pairs need not be looked up.
    if plain < SAME / 2.0 {
        return Ok(plain);
    }
    let mut common = 0.0;
    let mut all = 0.0;
    for term in one.union(&other) {
        let weight = 1.0 / f64::from(index.frequency(term)?.max(1)).sqrt();
        all += weight;
        if one.contains(term) && other.contains(term) {
            common += weight;
        }
    }
    Ok(if all > 0.0 { common / all } else { 1.0 })
}

#[expect(clippy::cast_precision_loss, reason = "words of a note")]
fn share(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        1.0
    } else {
        part as f64 / whole as f64
    }
}

/// Where in a body most of the words stand together, in bytes.
fn best_place(body: &str, matched: &[String]) -> usize {
    /// About what a passage shows.
    const WINDOW: usize = 300;
    /// Each is compared with all others.
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
    // The first of the best: `max_by_key` would give the last.
    let best = places
        .iter()
        .map(|(at, _)| *at)
        .rev()
        .max_by_key(|at| different(*at));
    best.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_talk_is_known_before_the_index_is_opened() {
        for (prompt, says_nothing) in [
            ("ok, go on", true),
            ("yes please", true),
            ("jwt?", false),
            ("部署", false),
            ("", true),
            ("why do the migrations hang", false),
            ("ok, run the migrations", false),
        ] {
            let outcome = small_talk(&[prompt.to_owned()]);
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
