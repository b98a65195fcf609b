//! The ranking engine: finds and scores notes for a query.
//!
//! BM25 over the index's postings finds the best twenty notes; `rerank` reads their text and
//! reorders them. A query has one or more segments, such as the sentences of a prompt. Each segment
//! is scored by itself, and a note keeps its best segment's score.
//!
//! The order uses idf over all notes of the store, because one project has too few notes: this was
//! measured to gain half a point. Coverage uses idf over the searched notes, because other
//! projects' notes are no reason to inject one. Nothing is filtered here: each candidate carries
//! what a threshold needs.

mod evidence;
mod mask;
mod query;
mod rarity;
mod rerank;
mod searched;

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use anamnesis_note::id::{IdPrefix, NoteId};
use anamnesis_store::index::{Error, Index, Postings, WordCondition};

pub use evidence::Meaning;
pub use mask::{Mask, Origin};
pub use query::{MAX_SEGMENTS, Query};
use query::{MIN_NAME_LENGTH, QueryTerm, Segment};
use rarity::{background, is_small_store, rarity, smallness};
use searched::{BLOCK_SIZE, BlockPart, K1, Searched};

/// The maximum number of terms of a segment that are scored, the rarest ones. Quality is flat from
/// sixteen on.
const MAX_TERMS: usize = 32;

/// The maximum number of ids in a query that are looked up.
const MAX_IDS: usize = 8;

/// How many of the best notes are reranked. 20 to 100 are equally good.
const MAX_RERANKED: usize = 20;

/// How much a preferred phrase adds to the score, relative to the rarest word.
const PHRASE: f32 = 0.5;

/// Names of programming languages are weighted by a fifth, because notes on every
/// topic contain them.
const LANGUAGES: [&str; 9] = [
    "golang",
    "java",
    "javascript",
    "perl",
    "php",
    "python",
    "rubi",
    "rust",
    "typescript",
];
const LANGUAGE_FACTOR: f32 = 0.2;

/// How much a word of routine covers of a prompt among few notes, where its own frequency cannot show how
/// common it is. Among many notes such words tell which how-to is meant.
const ROUTINE_FACTOR: f32 = 0.4;

/// An identifier that occurs in at most so many notes counts as naming them.
const MAX_NAMED_NOTES: u32 = 2;

/// The share of a small store's match that counts its best line only, and the share that counts at
/// all: among few notes, one has the words by chance more often.
const LINE_SHARE: f32 = 0.7;
const SMALL_STORE_SHARE: f32 = 0.85;

/// The share of the match of a note that says what it is asked for with: these words are many and
/// general, so a prompt has some of them by chance.
const ASKED_SHARE: f32 = 0.9;

/// The minimum coverage for the text of one of few notes: a long prompt has many words of any note.
const MIN_SMALL_COVERAGE: f32 = 0.3;

/// The minimum coverage for a title or an identifier to name a note.
const MIN_NAMED_COVERAGE: f32 = 0.4;

/// The minimum coverage of the best line for an identifier to name a note of a small store.
const MIN_NAMED_LINE_COVERAGE: f32 = 0.15;

/// How much a word counts that no searched note has: it may be the name of something new.
const UNKNOWN_FACTOR: f32 = 0.6;

/// A single word is enough to match if its rarity is at least this share of the highest.
const MIN_RARITY: f32 = 0.7;

/// Conditions on the words of notes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Conditions {
    /// A note that does not meet one of them is excluded.
    pub(crate) required: Vec<WordCondition>,
    /// A note that meets one of them ranks higher.
    pub(crate) preferred: Vec<WordCondition>,
}

/// A note that matches the query.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The note.
    pub id: NoteId,
    /// Its number in the index.
    pub(crate) number: u32,
    /// Its title.
    pub title: String,
    /// When its content last changed, in seconds since 1970.
    pub updated: u32,
    /// The note's project, relative to the asking project.
    pub origin: Origin,
    /// The relevance score. Higher is better; comparable only within one query.
    pub score: f32,
    /// The share of the segment's words that the note has, weighted by rarity, from 0 to 1. A word
    /// that no note has weighs most.
    pub coverage: f32,
    /// The confidence that the note is relevant at all. Comparable between queries and stores of
    /// any size.
    pub fit: f32,
    /// The matched words as spelled in the query, in its order.
    pub matched: Vec<String>,
    /// Whether the matched words are enough to judge by: two that are not small talk, or a rare one
    /// that is at least half of the query.
    pub is_telling: bool,
    /// Whether any matched word is not small talk.
    pub has_telling_word: bool,
    /// Whether the query names the note: by its id or the beginning or end of its id, by its full title, or
    /// by an identifier that hardly any other note has.
    pub is_named: bool,
    /// The index of the best segment.
    pub segment: usize,
    /// Whether a note in use supersedes it.
    pub is_superseded: bool,
    /// How similar its meaning is to the prompt's, if vectors of both were compared.
    pub meaning: Option<Meaning>,
}

/// The result of ranking.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranked {
    /// The best notes, best first. Ties go to the newer note, then to the higher id.
    pub candidates: Vec<Candidate>,
    /// How many notes were searched.
    pub searched: usize,
}

/// Ranks the notes selected by the mask and returns the best `limit`.
pub fn rank(index: &Index, query: &Query, mask: &Mask, limit: usize) -> Result<Ranked, Error> {
    rank_meeting(index, query, mask, &Conditions::default(), limit)
}

/// Returns the numbers of the notes that a mask selects.
pub(crate) fn selected(index: &Index, mask: &Mask) -> Result<HashSet<u32>, Error> {
    let documents = index.documents()?;
    let searched = Searched::new(&documents, mask);
    let numbers = searched.parts.iter().flat_map(|part| {
        let numbers = (part.block * BLOCK_SIZE..).zip(&part.length_norms);
        numbers.filter(|(_, length_norm)| **length_norm > 0.0)
    });
    Ok(numbers.map(|(number, _)| number).collect())
}

/// Like [`rank`], restricted to the notes that meet all required conditions, if there are any. Notes
/// without a matching word come last. Notes that meet a preferred condition gain its rarity.
pub(crate) fn rank_meeting(
    index: &Index,
    query: &Query,
    mask: &Mask,
    Conditions {
        required,
        preferred,
    }: &Conditions,
    limit: usize,
) -> Result<Ranked, Error> {
    let documents = index.documents()?;
    let searched = Searched::new(&documents, mask);
    if searched.count == 0 || limit == 0 {
        return Ok(Ranked::default());
    }
    let mut lists = Lists::default();
    let segments: Vec<Vec<&QueryTerm>> = query
        .segments
        .iter()
        .map(|segment| lists.rarest(index, &segment.asked))
        .collect::<Result<_, _>>()?;
    lists.load(index, &segments)?;
    let mut scorers: Vec<Scorer<'_>> = query
        .segments
        .iter()
        .zip(&segments)
        .map(|(segment, asked)| Scorer::new(segment, asked, &lists, searched.in_store))
        .collect();
    let limit_before_rerank = limit.max(MAX_RERANKED);
    let (mut hits, named) = if required.is_empty() {
        let named = named_by_id(index, query, &searched)?;
        let mut hits = scored_hits(&searched, &mut scorers, |hits| {
            keep_best(hits, limit_before_rerank, &named);
        })?;
        let named_at = named.iter().map(|(number, segment)| (*number, *segment));
        add(&mut hits, named_at, &searched);
        prefer(index, &mut hits, preferred, &searched)?;
        keep_best(&mut hits, limit_before_rerank, &named);
        (hits, named)
    } else {
        let candidates = index.candidates(required)?;
        let mut hits = scored_hits(&searched, &mut scorers, |hits| {
            hits.retain(|hit| candidates.contains(&hit.number));
        })?;
        add(
            &mut hits,
            candidates.iter().map(|number| (*number, 0)),
            &searched,
        );
        prefer(index, &mut hits, preferred, &searched)?;
        let hits = best_with_phrases(index, hits, required, limit_before_rerank)?;
        (hits, BTreeMap::new())
    };
    prefer_phrases(index, &mut hits, preferred, &searched)?;
    let mut ranked = with_titles(index, hits)?;
    sort(&mut ranked, &named);
    rerank::rerank(index, &scorers, searched.in_store, &mut ranked)?;
    sort(&mut ranked, &named);
    ranked.truncate(limit);
    let candidates = ranked
        .into_iter()
        .filter_map(|note| candidate(note, &scorers, &searched, &named));
    Ok(Ranked {
        candidates: candidates.collect(),
        searched: searched.count,
    })
}

/// Raises the notes with a word that begins with a preferred prefix, by the rarity of such a word.
fn prefer(
    index: &Index,
    hits: &mut Vec<Hit>,
    preferred: &[WordCondition],
    searched: &Searched<'_>,
) -> Result<(), Error> {
    for condition in preferred {
        if let WordCondition::Prefix(_) = condition {
            let having = index.candidates(std::slice::from_ref(condition))?;
            add(hits, having.iter().map(|number| (*number, 0)), searched);
            let rarity = idf(
                searched.in_store,
                u32::try_from(having.len()).unwrap_or(u32::MAX),
            );
            for hit in hits.iter_mut().filter(|hit| having.contains(&hit.number)) {
                hit.score += rarity;
            }
        }
    }
    Ok(())
}

/// Raises the best notes that have a preferred phrase by a share of the rarity of a word in one
/// note.
fn prefer_phrases(
    index: &Index,
    hits: &mut [Hit],
    preferred: &[WordCondition],
    searched: &Searched<'_>,
) -> Result<(), Error> {
    for condition in preferred {
        if !matches!(condition, WordCondition::Phrase(_)) {
            continue;
        }
        let condition = std::slice::from_ref(condition);
        let having = index.candidates(condition)?;
        for hit in hits.iter_mut().filter(|hit| having.contains(&hit.number)) {
            if index.has_phrases(hit.number, condition)? {
                hit.score += PHRASE * searched.max_rarity;
            }
        }
    }
    Ok(())
}

/// Scores the searched notes. `keep` drops hits after each part. Sets the rarity of the scorers' terms.
fn scored_hits(
    searched: &Searched<'_>,
    scorers: &mut [Scorer<'_>],
    keep: impl Fn(&mut Vec<Hit>),
) -> Result<Vec<Hit>, Error> {
    let mut hits = Vec::new();
    for part in &searched.parts {
        score_part(part, scorers, &mut hits)?;
        keep(&mut hits);
    }
    for scorer in scorers {
        scorer.set_rarity(searched.count);
    }
    Ok(hits)
}

/// Returns the best hits that have the phrases of the conditions, ties with the last one included.
fn best_with_phrases(
    index: &Index,
    mut hits: Vec<Hit>,
    conditions: &[WordCondition],
    limit: usize,
) -> Result<Vec<Hit>, Error> {
    hits.sort_unstable_by(best_first);
    let mut best: Vec<Hit> = Vec::new();
    for hit in hits {
        let is_enough = best.len() >= limit;
        if is_enough
            && best
                .last()
                .is_some_and(|last| best_first(last, &hit).is_lt())
        {
            break;
        }
        if index.has_phrases(hit.number, conditions)? {
            best.push(hit);
        }
    }
    Ok(best)
}

/// A hit with its note's id and title.
struct TitledHit {
    hit: Hit,
    id: NoteId,
    title: String,
}

/// Reads the notes' ids and titles. Notes that are gone are dropped.
fn with_titles(index: &Index, hits: Vec<Hit>) -> Result<Vec<TitledHit>, Error> {
    let mut titled = Vec::with_capacity(hits.len());
    for hit in hits {
        if let Some((id, title)) = index.heading(hit.number)? {
            titled.push(TitledHit { hit, id, title });
        }
    }
    Ok(titled)
}

/// Sorts notes named by id first, then by score, time and id.
fn sort(ranked: &mut [TitledHit], named: &BTreeMap<u32, usize>) {
    let is_named = |note: &TitledHit| named.contains_key(&note.hit.number);
    ranked.sort_by(|a, b| {
        is_named(b)
            .cmp(&is_named(a))
            .then(b.hit.score.total_cmp(&a.hit.score))
            .then(b.hit.updated.cmp(&a.hit.updated))
            .then(b.id.cmp(&a.id))
    });
}

/// Adds to a ranked note what a threshold needs.
fn candidate(
    TitledHit { hit, id, title }: TitledHit,
    scorers: &[Scorer<'_>],
    searched: &Searched<'_>,
    named: &BTreeMap<u32, usize>,
) -> Option<Candidate> {
    let scorer = scorers.get(hit.segment)?;
    let document = searched.document(hit.number)?;
    let coverage = scorer.coverage(hit.terms);
    let small_share = smallness(searched.count);
    let is_small = is_small_store(searched.count);
    let has_identifier = || {
        hit.line_coverage >= MIN_NAMED_LINE_COVERAGE * small_share
            && scorer.has_identifier(hit.terms)
    };
    let is_named = named.contains_key(&hit.number)
        || coverage >= MIN_NAMED_COVERAGE
            && (scorer.segment.names_title(&title) || has_identifier());
    Some(Candidate {
        id,
        number: hit.number,
        title,
        updated: hit.updated,
        origin: searched.origin(document)?,
        score: hit.score,
        coverage,
        fit: fit(&hit, scorer, searched),
        matched: scorer.matched(hit.terms),
        is_telling: scorer.is_telling(hit.terms, searched)
            && (!is_small || coverage >= MIN_SMALL_COVERAGE),
        has_telling_word: scorer.telling(hit.terms, searched).next().is_some(),
        is_named,
        segment: hit.segment,
        is_superseded: document.is_superseded(),
        meaning: None,
    })
}

/// Returns the confidence that a note is relevant: see [`Candidate::fit`].
fn fit(hit: &Hit, scorer: &Scorer<'_>, searched: &Searched<'_>) -> f32 {
    let small_share = smallness(searched.count);
    let of_line = LINE_SHARE * small_share;
    let coverage = (1.0 - of_line) * scorer.coverage(hit.terms) + of_line * hit.line_coverage;
    let share = 1.0 - (1.0 - SMALL_STORE_SHARE) * small_share;
    let of_asked = if hit.has_asked { ASKED_SHARE } else { 1.0 };
    coverage * hit.score / searched.max_rarity / searched.fit_divisor() * share * of_asked
}

/// Adds notes that have no matching word.
fn add(hits: &mut Vec<Hit>, notes: impl Iterator<Item = (u32, usize)>, searched: &Searched<'_>) {
    let found: BTreeSet<u32> = hits.iter().map(|hit| hit.number).collect();
    for (number, segment) in notes {
        if let Some(document) = searched.document(number)
            && !found.contains(&number)
        {
            hits.push(Hit {
                number,
                updated: document.updated,
                segment,
                ..Hit::default()
            });
        }
    }
}

/// Returns the idf of a term among `doc_count` notes.
pub fn term_idf(index: &Index, doc_count: usize, term: &str) -> Result<f64, Error> {
    Ok(idf(doc_count, index.frequency(term)?).into())
}

/// BM25's inverse document frequency of a term in `doc_freq` of `doc_count` notes.
pub(crate) fn idf(doc_count: usize, doc_freq: u32) -> f32 {
    expected_idf(doc_count as f32, doc_freq as f32)
}

/// The [`idf`] of expected frequencies, which need not be whole.
fn expected_idf(doc_count: f32, doc_freq: f32) -> f32 {
    (1.0 + ((doc_count - doc_freq).max(0.0) + 0.5) / (doc_freq + 0.5)).ln()
}

/// The index's data about the query's terms.
#[derive(Default)]
struct Lists<'a> {
    /// Each term's document frequency in the store.
    frequencies: HashMap<&'a str, u32>,
    postings: HashMap<&'a str, Postings>,
}

impl<'a> Lists<'a> {
    /// Returns the rarest known terms in the query's order, followed by unknown terms. Unknown
    /// terms have no postings, but count for coverage.
    fn rarest(
        &mut self,
        index: &Index,
        asked: &'a [QueryTerm],
    ) -> Result<Vec<&'a QueryTerm>, Error> {
        let mut known: Vec<(u32, usize, &QueryTerm)> = Vec::new();
        let mut unknown = Vec::new();
        for (place, asked) in asked.iter().enumerate() {
            let term = asked.term.as_str();
            let frequency = match self.frequencies.get(term) {
                Some(frequency) => *frequency,
                None => index.frequency(term)?,
            };
            self.frequencies.insert(term, frequency);
            if frequency == 0 {
                unknown.push(asked);
            } else {
                known.push((frequency, place, asked));
            }
        }
        if known.len() > MAX_TERMS {
            known.sort_by_key(|(frequency, place, _)| (*frequency, *place));
            known.truncate(MAX_TERMS);
            known.sort_by_key(|(_, place, _)| *place);
        }
        let known = known.into_iter().map(|(.., asked)| asked);
        Ok(known.chain(unknown).collect())
    }

    fn load(&mut self, index: &Index, segments: &[Vec<&'a QueryTerm>]) -> Result<(), Error> {
        for asked in segments.iter().flatten() {
            let term = asked.term.as_str();
            if !self.postings.contains_key(term) && self.frequencies.get(term) != Some(&0) {
                self.postings.insert(term, index.postings(term)?);
            }
        }
        Ok(())
    }
}

/// Returns whether a bit set contains the term at an index.
fn has(terms: u32, place: usize) -> bool {
    u32::try_from(place).is_ok_and(|place| terms.checked_shr(place).unwrap_or(0) & 1 == 1)
}

/// Scores notes for a segment.
struct Scorer<'a> {
    segment: &'a Segment,
    /// The terms, known ones first. At most [`MAX_TERMS`] of them are known.
    terms: Vec<Term<'a>>,
}

struct Term<'a> {
    asked: &'a QueryTerm,
    postings: Option<&'a Postings>,
    /// The share of texts about programs that have it.
    background: f32,
    /// The document frequency among the searched notes, and the [`rarity()`] there.
    doc_freq: u32,
    rarity: f32,
    /// The [`rarity()`] in the store, and the weight in the score.
    store_rarity: f32,
    weight: f32,
    /// For an abbreviation, the index of its long form, which matches as well.
    long_form: Option<usize>,
}

impl<'a> Scorer<'a> {
    fn new(
        segment: &'a Segment,
        asked: &[&'a QueryTerm],
        lists: &'a Lists<'a>,
        notes_in_store: usize,
    ) -> Self {
        let long_form_of = |short: &QueryTerm| {
            asked.iter().position(|long| {
                let stands_for = long.stands_for.and_then(|place| segment.asked.get(place));
                stands_for.is_some_and(|word| word.term == short.term)
            })
        };
        let terms = asked.iter().map(|asked| {
            let term = asked.term.as_str();
            let in_store = lists.frequencies.get(term).copied().unwrap_or(0);
            let background = background(term);
            let store_rarity = rarity(notes_in_store, in_store, background);
            let is_language = LANGUAGES.binary_search(&term).is_ok();
            Term {
                asked,
                postings: lists.postings.get(term),
                background,
                doc_freq: 0,
                rarity: 0.0,
                store_rarity,
                weight: store_rarity * if is_language { LANGUAGE_FACTOR } else { 1.0 },
                long_form: long_form_of(asked),
            }
        });
        Self {
            segment,
            terms: terms.collect(),
        }
    }

    /// Sets the rarity of the terms among the searched notes.
    fn set_rarity(&mut self, searched: usize) {
        for term in &mut self.terms {
            term.rarity = rarity(searched, term.doc_freq, term.background);
            if term.doc_freq == 0 {
                term.rarity *= UNKNOWN_FACTOR;
            }
            if term.asked.is_routine && is_small_store(searched) {
                term.rarity *= ROUTINE_FACTOR;
            }
        }
    }

    /// Returns the words that a note has, itself or as a long form.
    fn matched_terms(&self, terms: u32) -> impl Iterator<Item = &Term<'a>> {
        let has = move |place: usize| has(terms, place);
        let terms = self.terms.iter().enumerate();
        terms
            .filter(move |(place, term)| {
                term.asked.is_word && (has(*place) || term.long_form.is_some_and(has))
            })
            .map(|(_, term)| term)
    }

    fn coverage(&self, terms: u32) -> f32 {
        let words = self.terms.iter().filter(|term| term.asked.is_word);
        let all: f32 = words.map(|term| term.rarity).sum();
        let matched: f32 = self.matched_terms(terms).map(|term| term.rarity).sum();
        matched / all.max(f32::MIN_POSITIVE)
    }

    fn matched(&self, terms: u32) -> Vec<String> {
        self.matched_terms(terms)
            .map(|term| term.asked.written.clone())
            .collect()
    }

    /// Returns the matched words that are not small talk. Among few notes nearly every text has the words
    /// of routine and the general ones. A prompt of nothing else is an order for the step at hand.
    fn telling(&self, terms: u32, searched: &Searched<'_>) -> impl Iterator<Item = &Term<'a>> {
        let is_small = self.segment.is_order() || is_small_store(searched.count);
        self.matched_terms(terms).filter(move |term| {
            let asked = term.asked;
            !(asked.is_small_talk || is_small && asked.tells_little())
        })
    }

    fn is_telling(&self, terms: u32, searched: &Searched<'_>) -> bool {
        let mut telling = self.telling(terms, searched);
        let Some(first) = telling.next() else {
            return false;
        };
        let words = self.terms.iter().filter(|term| term.asked.is_word).count();
        telling.next().is_some()
            || words <= 2
                && first.asked.written.chars().count() >= MIN_NAME_LENGTH
                && first.doc_freq <= MAX_NAMED_NOTES
                && first.rarity > MIN_RARITY * searched.max_rarity
    }

    fn has_identifier(&self, terms: u32) -> bool {
        self.terms.iter().enumerate().any(|(place, term)| {
            let names = term.asked.is_identifier && term.doc_freq <= MAX_NAMED_NOTES;
            names && has(terms, place)
        })
    }
}

/// A note's score for its best segment.
#[derive(Debug, Clone, Copy, Default)]
struct Hit {
    number: u32,
    updated: u32,
    score: f32,
    /// A bit set of matched terms.
    terms: u32,
    /// The coverage of the line that covers most; set by reranking.
    line_coverage: f32,
    /// Whether the note says what it is asked for with; set by reranking.
    has_asked: bool,
    segment: usize,
}

/// Adds the hits of a block, and counts document frequencies.
fn score_part(
    part: &BlockPart<'_>,
    scorers: &mut [Scorer<'_>],
    found: &mut Vec<Hit>,
) -> Result<(), Error> {
    let mut best = vec![(0.0, 0, 0); part.length_norms.len()];
    let mut reached = vec![(0.0, 0); part.length_norms.len()];
    for (segment, scorer) in scorers.iter_mut().enumerate() {
        reached.fill((0.0, 0));
        for (bit, term) in scorer.terms.iter_mut().take(MAX_TERMS).enumerate() {
            let Some(postings) = term.postings else {
                continue;
            };
            let most = term.weight * (K1 + 1.0);
            postings.each_in(part.block, |place, frequency| {
                if let (Some(length_norm), Some((score, terms))) =
                    (part.length_norms.get(place), reached.get_mut(place))
                    && *length_norm > 0.0
                {
                    let frequency = f32::from(frequency);
                    *score += most * frequency / (frequency + length_norm);
                    *terms |= 1 << bit;
                    term.doc_freq += 1;
                }
            })?;
        }
        for (best, (score, terms)) in best.iter_mut().zip(&reached) {
            if *score > best.0 {
                *best = (*score, *terms, segment);
            }
        }
    }
    for (place, ((score, terms, segment), note)) in best.into_iter().zip(part.notes).enumerate() {
        if score > 0.0 {
            found.push(Hit {
                number: part.block * BLOCK_SIZE + u32::try_from(place).unwrap_or(0),
                updated: note.map_or(0, |note| note.updated),
                score,
                terms,
                segment,
                ..Hit::default()
            });
        }
    }
    Ok(())
}

/// Keeps the best hits, ties with the last one, and notes named by id.
fn keep_best(found: &mut Vec<Hit>, limit: usize, named: &BTreeMap<u32, usize>) {
    if found.len() <= limit {
        return;
    }
    let (_, last, _) = found.select_nth_unstable_by(limit - 1, best_first);
    let last = *last;
    found.retain(|hit| best_first(hit, &last).is_le() || named.contains_key(&hit.number));
}

/// Orders hits by score, ties by time.
fn best_first(a: &Hit, b: &Hit) -> Ordering {
    let by_score = b.score.total_cmp(&a.score);
    by_score.then(b.updated.cmp(&a.updated))
}

/// Returns the notes that a query names by id, with the segment.
fn named_by_id(
    index: &Index,
    query: &Query,
    searched: &Searched<'_>,
) -> Result<BTreeMap<u32, usize>, Error> {
    let mut named = BTreeMap::new();
    let mut left = MAX_IDS;
    for (segment, asked) in query.segments.iter().enumerate() {
        for word in asked.text.split(|c: char| !c.is_ascii_alphanumeric()) {
            // Ids are shown in capitals, and an id without a digit is rare.
            let is_like_id = word.bytes().any(|b| b.is_ascii_digit())
                && !word.bytes().any(|b| b.is_ascii_lowercase());
            let Some(reference) = IdPrefix::parse(word).ok().filter(|_| is_like_id) else {
                continue;
            };
            if left == 0 {
                return Ok(named);
            }
            left -= 1;
            if let [number] = index.numbers_matching(&reference)?[..]
                && searched.document(number).is_some()
            {
                named.entry(number).or_insert(segment);
            }
        }
    }
    Ok(named)
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{GLOBAL, Kind, NoteType, State};
    use anamnesis_store::index::Filter;

    use super::*;
    use crate::session_start::tests::Fixture;

    fn own() -> Mask {
        Mask {
            own: vec!["p".to_owned()],
            ..Mask::default()
        }
    }

    fn found_by(index: &Index, text: &str, mask: &Mask) -> Vec<Candidate> {
        rank(index, &Query::parse(text), mask, 10)
            .unwrap()
            .candidates
    }

    fn titles(candidates: &[Candidate]) -> Vec<&str> {
        candidates.iter().map(|c| c.title.as_str()).collect()
    }

    #[test]
    fn a_candidate_says_what_it_matched_and_how_much() {
        let fixture = Fixture::new();
        fixture.add("migrations run before the deploy", |_| {});
        fixture.add("the deploy is blue", |_| {});
        fixture.add("unrelated", |_| {});
        let index = fixture.refreshed();
        let found = found_by(
            &index,
            "When do Migrations run before deploys?",
            &Mask::from_filter(&Filter::default()),
        );
        assert_eq!(
            titles(&found),
            ["migrations run before the deploy", "the deploy is blue"]
        );
        assert_eq!(found[0].matched, ["Migrations", "run", "before", "deploys"]);
        assert!((found[0].coverage - 1.0).abs() < 1e-6);
        assert_eq!(found[1].matched, ["deploys"]);
        assert!(found[1].coverage < 0.4);
        assert!(found[0].is_telling && !found[1].is_telling);
        assert!(found[0].fit > found[1].fit);
        // Words that no note has lower the coverage of all.
        let less = found_by(
            &index,
            "migrations run before deploys on frobnicated quuxes",
            &Mask::from_filter(&Filter::default()),
        );
        assert!(less[0].coverage < 0.7 && less[0].fit < found[0].fit);
    }

    #[test]
    fn the_only_note_of_a_project_is_found_by_a_prompt_with_four_of_its_words() {
        let fixture = Fixture::new();
        fixture.add("now I want to implement a search box", |note| {
            note.body = "**Said:**\n- the search box demo has to keep its filter".to_owned();
        });
        let index = fixture.refreshed();
        let fit = |prompt| found_by(&index, prompt, &Mask::from_filter(&Filter::default()))[0].fit;
        let related = fit("the filter in the search box demo resets on every frame");
        let unrelated = fit("add a test for the new parser and implement the search");
        assert!(
            related > 2.0 * 0.55 && unrelated < 0.44,
            "{related} {unrelated}"
        );
    }

    #[test]
    fn the_mask_selects_the_searched_notes() {
        let fixture = Fixture::new();
        let add = |title: &str, project: &str, change: fn(&mut anamnesis_note::note::Note)| {
            fixture.add(title, |note| {
                note.project = project.to_owned();
                change(note);
            })
        };
        let old = add("needle old", "p", |_| {});
        fixture.add("needle own", |note| {
            note.supersedes = vec![old.path.id.to_string()]
        });
        add("needle global", GLOBAL, |_| {});
        add("needle other", "q", |_| {});
        add("needle task", "p", |note| note.kind = Some(Kind::Task));
        add("needle muted", "p", |note| note.state = State::Muted);
        add("needle session", "p", |note| {
            note.note_type = NoteType::Episodic;
            note.tags = vec!["reflected".to_owned()];
        });
        add("needle forgotten", "p", |note| {
            note.state = State::Forgotten
        });
        let index = fixture.refreshed();
        let sorted = |mask: &Mask| {
            let found = found_by(&index, "needle", mask);
            let mut titles: Vec<String> =
                found.into_iter().map(|c| c.title[7..].to_owned()).collect();
            titles.sort();
            titles.join(" ")
        };
        assert_eq!(sorted(&own()), "muted own session task");
        let unasked = Mask {
            only_surfacing: true,
            ..own()
        };
        assert_eq!(sorted(&unasked), "own");
        assert_eq!(
            sorted(&Mask {
                with_global: true,
                ..unasked.clone()
            }),
            "global own"
        );
        assert_eq!(
            sorted(&Mask {
                with_others: true,
                with_global: true,
                ..unasked.clone()
            }),
            "global other own"
        );
        let with_old = Filter {
            with_superseded: true,
            note_type: Some(NoteType::Semantic),
            ..Filter::default()
        };
        assert_eq!(
            sorted(&Mask {
                filter: with_old,
                ..own()
            }),
            "muted old own task"
        );
        let origins: BTreeSet<Origin> = found_by(
            &index,
            "needle",
            &Mask {
                with_others: true,
                with_global: true,
                ..own()
            },
        )
        .iter()
        .map(|candidate| candidate.origin)
        .collect();
        assert_eq!(origins.len(), 3);
        assert_eq!(
            sorted(&Mask {
                own: vec!["nobody's".to_owned()],
                ..Mask::default()
            }),
            ""
        );
    }

    #[test]
    fn other_projects_change_no_coverage() {
        let fixture = Fixture::new();
        fixture.add("needle in the haystack", |_| {});
        fixture.add("plain words", |_| {});
        let before = found_by(&fixture.refreshed(), "needle words", &own());
        for number in 0..30 {
            fixture.add(&format!("needle {number}"), |note| {
                note.project = "q".to_owned()
            });
        }
        let after = found_by(&fixture.refreshed(), "needle words", &own());
        let coverage = |found: &[Candidate]| -> BTreeMap<String, String> {
            found
                .iter()
                .map(|c| {
                    (
                        c.title.clone(),
                        format!("{:?} {}", c.coverage, c.is_telling),
                    )
                })
                .collect()
        };
        assert_eq!(coverage(&before), coverage(&after));
    }

    #[test]
    fn identifiers_and_scripts_without_spaces_are_found() {
        let fixture = Fixture::new();
        fixture.add("loadUserProfile caches", |_| {});
        fixture.add("user settings", |_| {});
        fixture.add("数据库迁移要先备份", |_| {});
        let index = fixture.refreshed();
        for (query, title, is_named) in [
            ("load_user_profile", "loadUserProfile caches", true),
            (
                "why does loadUserProfile fail",
                "loadUserProfile caches",
                true,
            ),
            ("user profile", "loadUserProfile caches", false),
            ("数据库", "数据库迁移要先备份", false),
            ("怎么备份", "数据库迁移要先备份", false),
        ] {
            let found = found_by(&index, query, &own());
            assert_eq!(
                found.first().map(|c| (c.title.as_str(), c.is_named)),
                Some((title, is_named)),
                "{query}"
            );
        }
    }

    #[test]
    fn a_named_note_comes_first() {
        let fixture = Fixture::new();
        fixture.add("rate limits of the login", |_| {});
        let named = fixture.add("something else", |_| {});
        let index = fixture.refreshed();
        let id = named.path.id;
        for query in [
            format!("what did {id} say about rate limits of the login"),
            format!("rate limits of the login, as in #{}", id.short()),
        ] {
            // A short id without a digit is not recognised.
            if !id.short().bytes().any(|byte| byte.is_ascii_digit())
                && !query.contains(&id.to_string())
            {
                continue;
            }
            let found = found_by(&index, &query, &own());
            assert_eq!(
                titles(&found),
                ["something else", "rate limits of the login"],
                "{query}"
            );
            assert!(found[0].is_named);
            assert!(found[0].passes(9.0));
        }
        let found = found_by(&index, "what holds for rate limits of the login?", &own());
        assert!(found[0].is_named);
        // A title among many other words is a coincidence.
        let prompt = "rate limits of the login, quarterly revenue forecast, brand colours, \
                      office plants, travel policy";
        assert!(!found_by(&index, prompt, &own())[0].is_named);
        let found = found_by(&index, "limits of the login", &own());
        assert!(!found[0].is_named);
    }

    #[test]
    fn the_best_segment_counts() {
        let fixture = Fixture::new();
        fixture.add("integration tests need the emulator", |_| {});
        fixture.add("lunch is at noon", |_| {});
        let index = fixture.refreshed();
        let segments = [
            "The weather was splendid yesterday.",
            "Which emulator do integration tests need?",
            "Somebody painted every door purple.",
        ]
        .map(str::to_owned);
        let mask = own();
        let ranked = rank(&index, &Query::from_segments(&segments), &mask, 3).unwrap();
        let best = &ranked.candidates[0];
        assert_eq!((best.segment, best.matched.len()), (1, 4));
        let whole = found_by(&index, &segments.join(" "), &mask);
        assert!(best.coverage > 2.0 * whole[0].coverage);
        assert_eq!(ranked.searched, 2);
    }

    #[test]
    fn equal_notes_come_newest_first_then_by_id() {
        let fixture = Fixture::new();
        let mut ids = Vec::new();
        for number in 0..60 {
            let stored = fixture.add("needle", |note| {
                note.updated_at = format!("2025-01-{:02}T00:00:00+00:00", 1 + number % 2);
            });
            ids.push((number % 2, stored.path.id));
        }
        let index = fixture.refreshed();
        ids.sort();
        ids.reverse();
        let found = rank(&index, &Query::parse("needle"), &own(), 40).unwrap();
        let expected: Vec<NoteId> = ids.iter().map(|(_, id)| *id).take(40).collect();
        let found: Vec<NoteId> = found.candidates.iter().map(|c| c.id).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn small_talk_matches_nothing() {
        let fixture = Fixture::new();
        fixture.add("continue with the next step", |_| {});
        fixture.add("kubernetes", |_| {});
        for number in 0..40 {
            fixture.add(&format!("filler {number}"), |_| {});
        }
        let index = fixture.refreshed();
        assert_eq!(Query::parse("ok, please continue").term_count(), 0);
        let found = found_by(&index, "ok continue, next step please", &own());
        assert!(found.iter().all(|c| !c.passes(0.0)));
        // A single rare word can be the whole question.
        assert!(found_by(&index, "kubernetes?", &own())[0].is_telling);
        assert!(!found_by(&index, "do kubernetes zebras eat purple grass", &own())[0].is_telling);
    }

    #[test]
    fn stop_words_are_searched_if_there_are_no_others() {
        let fixture = Fixture::new();
        fixture.add("what it is", |_| {});
        let index = fixture.refreshed();
        assert_eq!(found_by(&index, "what is it", &own()).len(), 1);
        assert!(found_by(&index, "", &own()).is_empty());
        assert!(found_by(&index, "*:()", &own()).is_empty());
        assert_eq!(
            Query::from_segments(&["what is it".to_owned()]).term_count(),
            0
        );
    }

    #[test]
    fn huge_pastes_are_answered() {
        let fixture = Fixture::new();
        fixture.add("needle", |_| {});
        let index = fixture.refreshed();
        let paste: String = (0..100_000)
            .map(|number| format!("word{number} "))
            .collect();
        assert_eq!(
            found_by(&index, &format!("needle {paste}"), &own()).len(),
            1
        );
        assert_eq!(
            found_by(&index, &"needle\0\u{301}".repeat(50_000), &own()).len(),
            1
        );
    }
}
