//! The ranking engine: which notes fit a question, how well, and by which of its words.
//!
//! In two steps: BM25 over the postings of the index finds the best twenty notes; these are read, and
//! what postings cannot tell decides among them (see `again`). A question is one segment or several
//! (the sentences of a prompt); each is scored by itself, and of a note the best one counts.
//!
//! How rare a term is for the order, all notes of the store say, since those of one project are too few
//! to know: measured to be worth half a point. How much of a question a note covers, the notes that are
//! searched say, since what others hold is no reason to bring it up. Nothing is shown or kept back here:
//! every candidate says what a gate has to know of it.

mod again;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    note::{GLOBAL, State},
};
use anamnesis_store::index::{
    BLOCK_LENGTH, Document, Documents, Entry, Error, Filter, Index, Postings,
};
use anamnesis_text::{
    sanitize::head,
    terms::{Role, Word, words},
};

/// The most segments of a query.
pub const MAX_SEGMENTS: usize = 8;

/// How much of a segment is read, in bytes.
const MAX_TEXT: usize = 16 * 1024;

/// The most terms of a segment that count, the rarest ones: quality is flat from sixteen on.
const MAX_TERMS: usize = 32;

/// How many different terms of a segment are looked up at most.
const MAX_LOOKED_UP: usize = 256;

/// How many ids that a question may name are looked up at most.
const MAX_IDS: usize = 8;

/// How soon more of the same term says no more.
const SATURATION: f32 = 1.2;

/// How much of a note's length counts against it.
const LENGTH_SHARE: f32 = 0.6;

/// How many of the best notes are read and ranked again; 20 to 100 are equally good.
const READ_AGAIN: usize = 20;

/// Names of languages count a fifth: in a store of programs they say which shelf, not which book.
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
const LANGUAGE_SHARE: f32 = 0.2;

/// Words that answer, thank or tell to go on. They stand in notes, too, but ask for none.
const SMALL_TALK: [&str; 21] = [
    "again", "continue", "fine", "go", "good", "great", "look", "looks", "next", "no", "ok",
    "okay", "please", "proceed", "same", "step", "sure", "thanks", "try", "yeah", "yes",
];

/// An identifier that so many notes have at most names them.
const FEW_NOTES: u32 = 2;

/// A shorter word is nobody's name.
const SHORTEST_NAME: usize = 5;

/// A word that weighs this much of what the rarest does may be asked for alone.
const RARE: f32 = 0.7;

/// What is asked.
#[derive(Debug, Clone, Default)]
pub struct Query {
    segments: Vec<Segment>,
}

#[derive(Debug, Clone, Default)]
struct Segment {
    text: String,
    /// All its words, folded, a space before and after each.
    spoken: String,
    asked: Vec<Asked>,
    /// The words in their order: the place of the term, and how it is spelled.
    sequence: Vec<(usize, String)>,
}

/// A term of a segment.
#[derive(Debug, Clone)]
struct Asked {
    term: String,
    written: String,
    /// Whether it is a word of its own, so that a note has to have it: no whole of which the parts are
    /// words, no long form of an abbreviation.
    is_word: bool,
    /// Of a long form, the place of the abbreviation.
    stands_for: Option<usize>,
    is_identifier: bool,
    is_small_talk: bool,
}

impl Query {
    /// A text as one question. Where all its words say nothing, they are what is asked for.
    pub fn of(text: &str) -> Self {
        let mut segment = Segment::of(text, false);
        if segment.asked.is_empty() {
            segment = Segment::of(text, true);
        }
        Self {
            segments: vec![segment],
        }
    }

    /// Several questions of which a note answers one; the first [`MAX_SEGMENTS`] count.
    pub fn from_segments(segments: &[String]) -> Self {
        let segments = segments.iter().take(MAX_SEGMENTS);
        Self {
            segments: segments.map(|text| Segment::of(text, false)).collect(),
        }
    }

    /// How many different words say something, over all segments; small talk (`ok`, `continue`) does not.
    pub fn term_count(&self) -> usize {
        self.telling().len()
    }

    /// Tells whether nothing is asked: no word says anything, or one that is hardly a word (`go on`).
    pub fn is_small_talk(&self) -> bool {
        let telling = self.telling();
        let is_hardly_one = |term: &&str| term.is_ascii() && term.len() < 3;
        telling.len() < 2 && telling.iter().all(is_hardly_one)
    }

    fn telling(&self) -> BTreeSet<&str> {
        let asked = self.segments.iter().flat_map(|segment| &segment.asked);
        asked
            .filter(|asked| asked.is_word && !asked.is_small_talk)
            .map(|asked| asked.term.as_str())
            .collect()
    }
}

impl Segment {
    fn of(text: &str, with_stop_words: bool) -> Self {
        let text = head(text, MAX_TEXT);
        let mut spoken = String::from(" ");
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut asked: Vec<Asked> = Vec::new();
        let mut sequence = Vec::new();
        let mut before = None;
        words(text, |word| {
            speak(&word, &mut spoken);
            if asked.len() >= MAX_LOOKED_UP || (!with_stop_words && word.is_stop_word()) {
                return;
            }
            let is_word = is_word(word.role);
            let place = *places.entry(word.term.to_owned()).or_insert_with(|| {
                asked.push(Asked {
                    term: word.term.to_owned(),
                    written: word.written.to_owned(),
                    is_word,
                    stands_for: before.filter(|_| word.role == Role::LongForm),
                    is_identifier: word.is_identifier()
                        && word.written.chars().count() >= SHORTEST_NAME,
                    is_small_talk: SMALL_TALK.binary_search(&word.folded).is_ok(),
                });
                asked.len() - 1
            });
            if is_word {
                sequence.push((place, word.folded.to_owned()));
                if let Some(asked) = asked.get_mut(place) {
                    asked.is_word = true;
                }
            }
            before = Some(place);
        });
        Self {
            text: text.to_owned(),
            spoken,
            asked,
            sequence,
        }
    }
}

/// Whose note it is, seen from the project that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Origin {
    /// Of the project itself.
    Own,
    /// For all projects.
    Global,
    /// Of another project.
    Other,
}

/// Which notes are searched. Tombstones have no words, so they never are.
#[derive(Debug, Clone, Default)]
pub struct Mask {
    /// The keys of the project that asks.
    pub own: Vec<String>,
    /// Notes for all projects, too.
    pub with_global: bool,
    /// Notes of other projects, too.
    pub with_others: bool,
    /// Only notes that may be given unasked.
    pub only_unasked: bool,
    /// Only notes that fit; its projects, where it names some, hold beside the ones above.
    pub filter: Filter,
}

impl Mask {
    /// The notes that somebody asks for by a filter.
    pub fn of_filter(filter: &Filter) -> Self {
        let all = filter.projects.is_empty();
        Self {
            own: filter.projects.clone(),
            with_global: all,
            with_others: all,
            only_unasked: false,
            filter: Filter {
                projects: Vec::new(),
                ..filter.clone()
            },
        }
    }

    /// Whose a note of this project is; none where it is not searched.
    pub(crate) fn origin(&self, key: &str) -> Option<Origin> {
        let (origin, is_in) = if self.own.iter().any(|own| own == key) {
            (Origin::Own, true)
        } else if key == GLOBAL {
            (Origin::Global, self.with_global)
        } else {
            (Origin::Other, self.with_others)
        };
        let filtered = &self.filter.projects;
        (is_in && (filtered.is_empty() || filtered.iter().any(|named| named == key)))
            .then_some(origin)
    }

    /// Tells whether a note is searched, as the index knows it.
    pub(crate) fn takes(&self, entry: &Entry) -> bool {
        let filter = &self.filter;
        self.origin(&entry.project).is_some()
            && entry.state != State::Forgotten
            && (filter.with_superseded || !entry.superseded)
            && filter.note_type.is_none_or(|t| t == entry.note_type)
            && filter.kind.is_none_or(|kind| kind == entry.kind)
            && filter.scope.is_none_or(|scope| scope == entry.path.scope)
            // Ranking does not know these two: hardly a store has more than one of each.
            && filter.user_id.as_ref().is_none_or(|id| *id == entry.user_id)
            && (filter.workspace_id.as_ref()).is_none_or(|id| *id == entry.workspace_id)
    }

    fn admits(&self, document: &Document) -> bool {
        let filter = &self.filter;
        document.state() != State::Forgotten
            && (filter.with_superseded || !document.is_superseded())
            && (!self.only_unasked || document.may_come_up())
            && filter.note_type.is_none_or(|t| t == document.note_type())
            && filter.kind.is_none_or(|kind| kind == document.kind())
            && filter.scope.is_none_or(|scope| scope == document.scope())
    }
}

/// What a question names outright.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exact {
    /// The note's id, or its end or beginning.
    Id,
    /// Its whole title.
    Title,
    /// An identifier that hardly another note has.
    Identifier,
}

/// A note that has a word of the question, or is named by it.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The note.
    pub id: NoteId,
    /// Its title.
    pub title: String,
    /// When its content last changed, seconds since 1970.
    pub updated: u32,
    /// Whose it is.
    pub origin: Origin,
    /// How well its words fit; higher is better, comparable within one question only.
    pub score: f32,
    /// How much of what the segment asks for it has, from 0 to 1: each word as much as it is rare, one
    /// that no note has the most.
    pub coverage: f32,
    /// How sure it is that the note has to do with the segment at all, comparable between questions and
    /// stores of any size.
    pub fit: f32,
    /// The words it has, as the question writes them, in its order.
    pub matched: Vec<String>,
    /// Whether these are enough to judge by: two that are no small talk, or a rare one that is all or
    /// half of the question.
    pub is_telling: bool,
    /// How the question names it, if it does.
    pub exact: Option<Exact>,
    /// The segment that fits it best.
    pub segment: usize,
    /// Whether a note in use replaces it.
    pub is_superseded: bool,
}

impl Candidate {
    /// Tells whether the note is worth bringing up: it fits by more than a word, or is named.
    pub fn passes(&self, threshold: f32) -> bool {
        self.exact.is_some() || self.is_telling && self.fit >= threshold
    }
}

/// The answer.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Ranked {
    /// The best notes, best first; of equal ones the newer, then the one with the higher id.
    pub candidates: Vec<Candidate>,
    /// How many notes were searched.
    pub searched: usize,
}

/// Ranks the notes of the mask and returns the `limit` best.
///
/// # Errors
/// When the index cannot be read.
pub fn rank(index: &Index, query: &Query, mask: &Mask, limit: usize) -> Result<Ranked, Error> {
    rank_among(index, query, mask, None, limit)
}

/// The same, of the notes with these numbers only: all of them, those without a word of the question
/// last.
pub(crate) fn rank_among(
    index: &Index,
    query: &Query,
    mask: &Mask,
    among: Option<&BTreeSet<u32>>,
    limit: usize,
) -> Result<Ranked, Error> {
    let documents = index.documents()?;
    let searched = Searched::of(&documents, mask);
    if searched.count == 0 || limit == 0 {
        return Ok(Ranked::default());
    }
    let mut lists = Lists::default();
    let segments: Vec<Vec<&Asked>> = query
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
    let named = match among {
        Some(_) => BTreeMap::new(),
        None => named(index, query, &searched)?,
    };
    let most = limit.max(READ_AGAIN);
    let mut hits = Vec::new();
    for part in &searched.parts {
        score_part(part, &mut scorers, &mut hits)?;
        match among {
            Some(among) => hits.retain(|hit| among.contains(&hit.number)),
            None => keep_best(&mut hits, most, &named),
        }
    }
    for scorer in &mut scorers {
        scorer.weigh(searched.count);
    }
    let among = among.into_iter().flatten().map(|number| (*number, 0));
    let named_at = named.iter().map(|(number, segment)| (*number, *segment));
    add(&mut hits, among.chain(named_at), &searched);
    keep_best(&mut hits, most, &named);
    let mut ranked = Vec::with_capacity(hits.len());
    for hit in hits {
        if let Some((id, title)) = index.heading(hit.number)? {
            ranked.push((hit, id, title));
        }
    }
    let order = |(a, a_id, _): &(Hit, NoteId, String), (b, b_id, _): &(Hit, NoteId, String)| {
        let is_named = |hit: &Hit| named.contains_key(&hit.number);
        is_named(b)
            .cmp(&is_named(a))
            .then(b.score.total_cmp(&a.score))
            .then(b.updated.cmp(&a.updated))
            .then(b_id.cmp(a_id))
    };
    ranked.sort_by(order);
    let highest = ranked.iter().map(|(hit, ..)| hit.score).fold(0.0, f32::max);
    let readers: Vec<again::Reader<'_>> = scorers.iter().map(again::Reader::new).collect();
    let mut weights: HashMap<String, f32> = HashMap::new();
    for (hit, _, _) in ranked.iter_mut().take(READ_AGAIN) {
        if let (Some(reader), Some(text)) = (readers.get(hit.segment), index.text(hit.number)?) {
            let idf = |term: &str| {
                if let Some(known) = weights.get(term) {
                    return Ok(*known);
                }
                let found = weight(searched.in_store, index.frequency(term)?);
                weights.insert(term.to_owned(), found);
                Ok(found)
            };
            hit.score += reader.score(hit.terms, &text, highest, idf)?;
        }
    }
    ranked.sort_by(order);
    ranked.truncate(limit);
    let candidates = ranked.into_iter().filter_map(|(hit, id, title)| {
        let scorer = scorers.get(hit.segment)?;
        let document = searched.document(hit.number)?;
        let coverage = scorer.coverage(hit.terms);
        let exact = if named.contains_key(&hit.number) {
            Some(Exact::Id)
        } else if names_title(scorer.segment, &title) {
            Some(Exact::Title)
        } else {
            scorer.identifier(hit.terms)
        };
        Some(Candidate {
            id,
            title,
            updated: hit.updated,
            origin: searched.origin(document)?,
            score: hit.score,
            coverage,
            fit: coverage.powf(1.5) * hit.score / searched.highest / searched.damping(),
            matched: scorer.matched(hit.terms),
            is_telling: scorer.is_telling(hit.terms, &searched),
            exact,
            segment: hit.segment,
            is_superseded: document.is_superseded(),
        })
    });
    Ok(Ranked {
        candidates: candidates.collect(),
        searched: searched.count,
    })
}

/// Adds notes that have no word of the question.
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

/// The notes of the mask.
struct Searched<'a> {
    parts: Vec<Part<'a>>,
    /// By the number of the project.
    origins: Vec<Option<Origin>>,
    count: usize,
    /// How many notes the store has, whatever is searched.
    in_store: usize,
    /// What a term weighs that no note has.
    highest: f32,
}

/// The notes of a block.
struct Part<'a> {
    block: u32,
    notes: &'a [Option<Document>],
    /// By place: how often a note of its length has to have a term for half of what a term can say; 0
    /// where no note is searched.
    dampers: Vec<f32>,
}

impl<'a> Searched<'a> {
    fn of(documents: &'a Documents, mask: &Mask) -> Self {
        let mut origins = Vec::new();
        for (number, key) in documents.projects() {
            let place = number as usize;
            if origins.len() <= place {
                origins.resize(place + 1, None);
            }
            origins[place] = mask.origin(key);
        }
        let mut in_store = 0;
        let mut count = 0_usize;
        let mut length = 0.0_f64;
        let parts = documents.blocks.iter().map(|(block, notes)| {
            let dampers = notes.iter().map(|note| {
                let Some(document) = note else {
                    return 0.0;
                };
                in_store += usize::from(document.state() != State::Forgotten);
                let origin = origins.get(document.project as usize).copied().flatten();
                if origin.is_none() || !mask.admits(document) {
                    return 0.0;
                }
                count += 1;
                length += f64::from(document.length);
                // The length for now; what it means follows when all are known.
                f32::from(document.length.max(1))
            });
            Part {
                block: *block,
                dampers: dampers.collect(),
                notes,
            }
        });
        let mut parts: Vec<Part<'_>> = parts.collect();
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            reason = "a mean of whole numbers"
        )]
        let mean = (length / count.max(1) as f64).max(1.0) as f32;
        for damper in parts.iter_mut().flat_map(|part| &mut part.dampers) {
            if *damper > 0.0 {
                *damper = SATURATION * (1.0 - LENGTH_SHARE + LENGTH_SHARE * *damper / mean);
            }
        }
        Self {
            parts,
            origins,
            count,
            in_store,
            highest: weight(count, 0),
        }
    }

    /// The note of a number, if it is searched.
    fn document(&self, number: u32) -> Option<&'a Document> {
        let (block, place) = (number / LENGTH, (number % LENGTH) as usize);
        let at = self
            .parts
            .binary_search_by_key(&block, |part| part.block)
            .ok()?;
        let part = self.parts.get(at)?;
        let is_searched = part.dampers.get(place).is_some_and(|damper| *damper > 0.0);
        part.notes.get(place)?.as_ref().filter(|_| is_searched)
    }

    fn origin(&self, document: &Document) -> Option<Origin> {
        *self.origins.get(document.project as usize)?
    }

    /// What a fit is divided by, since the best of many notes fits better by chance.
    #[expect(clippy::cast_precision_loss, reason = "a logarithm of it is taken")]
    fn damping(&self) -> f32 {
        (1.0 + self.count as f32).ln().sqrt()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "4,096")]
const LENGTH: u32 = BLOCK_LENGTH as u32;

/// How much a term weighs, by how many of all notes have it.
///
/// # Errors
/// When the index cannot be read.
pub fn rarity(index: &Index, count: usize, term: &str) -> Result<f64, Error> {
    Ok(weight(count, index.frequency(term)?).into())
}

/// How much a term weighs that `having` of `count` notes have.
#[expect(clippy::cast_precision_loss, reason = "a logarithm of it is taken")]
pub(crate) fn weight(count: usize, having: u32) -> f32 {
    let (count, having) = (count as f32, having as f32);
    (1.0 + ((count - having).max(0.0) + 0.5) / (having + 0.5)).ln()
}

/// What the index says of the terms that are asked for.
#[derive(Default)]
struct Lists<'a> {
    /// How many notes of the store have a term.
    frequencies: HashMap<&'a str, u32>,
    postings: HashMap<&'a str, Postings>,
}

impl<'a> Lists<'a> {
    /// Returns the rarest terms that notes have, in the order of the question, and after them those that
    /// none has: they are not looked for, but count among what is asked.
    fn rarest(&mut self, index: &Index, asked: &'a [Asked]) -> Result<Vec<&'a Asked>, Error> {
        let mut known: Vec<(u32, usize, &Asked)> = Vec::new();
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

    fn load(&mut self, index: &Index, segments: &[Vec<&'a Asked>]) -> Result<(), Error> {
        for asked in segments.iter().flatten() {
            let term = asked.term.as_str();
            if !self.postings.contains_key(term) && self.frequencies.get(term) != Some(&0) {
                self.postings.insert(term, index.postings(term)?);
            }
        }
        Ok(())
    }
}

/// Tells whether the term at a place is among those of the bits.
fn has(terms: u32, place: usize) -> bool {
    u32::try_from(place).is_ok_and(|place| terms.checked_shr(place).unwrap_or(0) & 1 == 1)
}

/// A segment, ready to be scored.
struct Scorer<'a> {
    segment: &'a Segment,
    /// The terms, those first that notes have: at most [`MAX_TERMS`].
    terms: Vec<Term<'a>>,
}

struct Term<'a> {
    asked: &'a Asked,
    postings: Option<&'a Postings>,
    /// How many of the notes that are searched have it, and how much it weighs among them.
    having: u32,
    share: f32,
    /// How rare it is in the store, and how much it weighs in the order.
    rarity: f32,
    weight: f32,
    /// The term beside it that stands for it: of an abbreviation the long form.
    instead: Option<usize>,
}

impl<'a> Scorer<'a> {
    fn new(
        segment: &'a Segment,
        asked: &[&'a Asked],
        lists: &'a Lists<'a>,
        notes_in_store: usize,
    ) -> Self {
        let long_form = |short: &Asked| {
            asked.iter().position(|long| {
                let stands_for = long.stands_for.and_then(|place| segment.asked.get(place));
                stands_for.is_some_and(|word| word.term == short.term)
            })
        };
        let terms = asked.iter().map(|asked| {
            let term = asked.term.as_str();
            let in_store = lists.frequencies.get(term).copied().unwrap_or(0);
            let rarity = weight(notes_in_store, in_store);
            let is_language = LANGUAGES.binary_search(&term).is_ok();
            Term {
                asked,
                postings: lists.postings.get(term),
                having: 0,
                share: 0.0,
                rarity,
                weight: rarity * if is_language { LANGUAGE_SHARE } else { 1.0 },
                instead: long_form(asked),
            }
        });
        Self {
            segment,
            terms: terms.collect(),
        }
    }

    /// Weighs the terms by how many of the notes that were searched have them.
    fn weigh(&mut self, searched: usize) {
        for term in &mut self.terms {
            term.share = weight(searched, term.having);
        }
    }

    /// The words that a note has, itself or by what they stand for.
    fn having(&self, terms: u32) -> impl Iterator<Item = &Term<'a>> {
        let has = move |place: usize| has(terms, place);
        let terms = self.terms.iter().enumerate();
        terms
            .filter(move |(place, term)| {
                term.asked.is_word && (has(*place) || term.instead.is_some_and(has))
            })
            .map(|(_, term)| term)
    }

    fn coverage(&self, terms: u32) -> f32 {
        let words = self.terms.iter().filter(|term| term.asked.is_word);
        let all: f32 = words.map(|term| term.share).sum();
        let having: f32 = self.having(terms).map(|term| term.share).sum();
        having / all.max(f32::MIN_POSITIVE)
    }

    fn matched(&self, terms: u32) -> Vec<String> {
        self.having(terms)
            .map(|term| term.asked.written.clone())
            .collect()
    }

    fn is_telling(&self, terms: u32, searched: &Searched<'_>) -> bool {
        let mut telling = self.having(terms).filter(|term| !term.asked.is_small_talk);
        let Some(first) = telling.next() else {
            return false;
        };
        let words = self.terms.iter().filter(|term| term.asked.is_word).count();
        telling.next().is_some()
            || words <= 2
                && first.asked.written.chars().count() >= SHORTEST_NAME
                && first.having <= FEW_NOTES
                && first.share > RARE * searched.highest
    }

    fn identifier(&self, terms: u32) -> Option<Exact> {
        let terms = self
            .terms
            .iter()
            .enumerate()
            .filter(|(place, _)| has(terms, *place));
        let mut terms = terms.map(|(_, term)| term);
        terms
            .any(|term| term.asked.is_identifier && term.having <= FEW_NOTES)
            .then_some(Exact::Identifier)
    }
}

/// What a note has of the segment that fits it best.
#[derive(Debug, Clone, Copy, Default)]
struct Hit {
    number: u32,
    updated: u32,
    score: f32,
    /// A bit for each term of the segment.
    terms: u32,
    segment: usize,
}

/// Scores the notes of a block that have a term, and counts them by term.
fn score_part(
    part: &Part<'_>,
    scorers: &mut [Scorer<'_>],
    found: &mut Vec<Hit>,
) -> Result<(), Error> {
    let mut best = vec![(0.0, 0, 0); part.dampers.len()];
    let mut reached = vec![(0.0, 0); part.dampers.len()];
    for (segment, scorer) in scorers.iter_mut().enumerate() {
        reached.fill((0.0, 0));
        for (bit, term) in scorer.terms.iter_mut().take(MAX_TERMS).enumerate() {
            let Some(postings) = term.postings else {
                continue;
            };
            let most = term.weight * (SATURATION + 1.0);
            postings.each_in(part.block, |place, frequency| {
                if let (Some(damper), Some((score, terms))) =
                    (part.dampers.get(place), reached.get_mut(place))
                    && *damper > 0.0
                {
                    let frequency = f32::from(frequency);
                    *score += most * frequency / (frequency + damper);
                    *terms |= 1 << bit;
                    term.having += 1;
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
                number: part.block * LENGTH + u32::try_from(place).unwrap_or(0),
                updated: note.map_or(0, |note| note.updated),
                score,
                terms,
                segment,
            });
        }
    }
    Ok(())
}

/// Keeps the best ones, all that are as good and as new as the last one, and those that are named.
fn keep_best(found: &mut Vec<Hit>, limit: usize, named: &BTreeMap<u32, usize>) {
    if found.len() <= limit {
        return;
    }
    let better = |a: &Hit, b: &Hit| b.score.total_cmp(&a.score).then(b.updated.cmp(&a.updated));
    let (_, last, _) = found.select_nth_unstable_by(limit - 1, better);
    let last = *last;
    found.retain(|hit| better(hit, &last).is_le() || named.contains_key(&hit.number));
}

/// The notes that a question names by id, and the segment that does.
fn named(
    index: &Index,
    query: &Query,
    searched: &Searched<'_>,
) -> Result<BTreeMap<u32, usize>, Error> {
    let mut named = BTreeMap::new();
    let mut left = MAX_IDS;
    for (segment, asked) in query.segments.iter().enumerate() {
        for word in asked.text.split(|c: char| !c.is_ascii_alphanumeric()) {
            // Short ids are shown in capitals, and one without a digit is rare.
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

/// Tells whether a segment has all words of a title one after the other; a title of one word is no name.
fn names_title(segment: &Segment, title: &str) -> bool {
    let mut spoken = String::from(" ");
    let mut count = 0;
    words(title, |word| {
        speak(&word, &mut spoken);
        count += usize::from(is_word(word.role));
    });
    count > 1 && segment.spoken.contains(&spoken)
}

fn speak(word: &Word<'_, '_>, spoken: &mut String) {
    if is_word(word.role) {
        spoken.push_str(word.folded);
        spoken.push(' ');
    }
}

/// Tells whether it is a word of its own: no whole whose parts are words, no long form of an abbreviation.
fn is_word(role: Role) -> bool {
    matches!(role, Role::Plain | Role::Part)
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{Kind, NoteType, State};

    use super::*;
    use crate::session_start::tests::Fixture;

    fn own() -> Mask {
        Mask {
            own: vec!["p".to_owned()],
            ..Mask::default()
        }
    }

    fn of(index: &Index, text: &str, mask: &Mask) -> Vec<Candidate> {
        rank(index, &Query::of(text), mask, 10).unwrap().candidates
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
        let found = of(
            &index,
            "When do Migrations run before deploys?",
            &Mask::of_filter(&Filter::default()),
        );
        assert_eq!(
            titles(&found),
            ["migrations run before the deploy", "the deploy is blue"]
        );
        assert_eq!(found[0].matched, ["Migrations", "run", "before", "deploys"]);
        assert!((found[0].coverage - 1.0).abs() < 1e-6);
        assert_eq!(found[1].matched, ["deploys"]);
        assert!(found[1].coverage < 0.3);
        assert!(found[0].is_telling && !found[1].is_telling);
        assert!(found[0].fit > found[1].fit);
        // What nobody has heard of counts against all.
        let less = of(
            &index,
            "migrations run before deploys on frobnicated quuxes",
            &Mask::of_filter(&Filter::default()),
        );
        assert!(less[0].coverage < 0.7 && less[0].fit < found[0].fit);
    }

    #[test]
    fn what_is_searched_is_what_the_mask_says() {
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
            let found = of(&index, "needle", mask);
            let mut titles: Vec<String> =
                found.into_iter().map(|c| c.title[7..].to_owned()).collect();
            titles.sort();
            titles.join(" ")
        };
        assert_eq!(sorted(&own()), "muted own session task");
        let unasked = Mask {
            only_unasked: true,
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
        let origins: BTreeSet<Origin> = of(
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
        let before = of(&fixture.refreshed(), "needle words", &own());
        for number in 0..30 {
            fixture.add(&format!("needle {number}"), |note| {
                note.project = "q".to_owned()
            });
        }
        let after = of(&fixture.refreshed(), "needle words", &own());
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
        for (query, title, exact) in [
            (
                "load_user_profile",
                "loadUserProfile caches",
                Some(Exact::Identifier),
            ),
            (
                "why does loadUserProfile fail",
                "loadUserProfile caches",
                Some(Exact::Identifier),
            ),
            ("user profile", "loadUserProfile caches", None),
            ("数据库", "数据库迁移要先备份", None),
            ("怎么备份", "数据库迁移要先备份", None),
        ] {
            let found = of(&index, query, &own());
            assert_eq!(
                found.first().map(|c| (c.title.as_str(), c.exact)),
                Some((title, exact)),
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
            // An id's end without a digit is not taken for one.
            if !id.short().bytes().any(|byte| byte.is_ascii_digit())
                && !query.contains(&id.to_string())
            {
                continue;
            }
            let found = of(&index, &query, &own());
            assert_eq!(
                titles(&found),
                ["something else", "rate limits of the login"],
                "{query}"
            );
            assert_eq!(found[0].exact, Some(Exact::Id));
            assert!(found[0].passes(9.0));
            assert_eq!(found[1].exact, Some(Exact::Title));
        }
        let found = of(&index, "limits of the login", &own());
        assert_eq!(found[0].exact, None);
    }

    #[test]
    fn of_several_segments_the_best_one_counts() {
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
        let whole = of(&index, &segments.join(" "), &mask);
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
        let found = rank(&index, &Query::of("needle"), &own(), 40).unwrap();
        let expected: Vec<NoteId> = ids.iter().map(|(_, id)| *id).take(40).collect();
        let found: Vec<NoteId> = found.candidates.iter().map(|c| c.id).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn small_talk_tells_nothing() {
        let fixture = Fixture::new();
        fixture.add("continue with the next step", |_| {});
        fixture.add("kubernetes", |_| {});
        for number in 0..40 {
            fixture.add(&format!("filler {number}"), |_| {});
        }
        let index = fixture.refreshed();
        assert_eq!(Query::of("ok, please continue").term_count(), 0);
        let found = of(&index, "ok continue, next step please", &own());
        assert!(found.iter().all(|c| !c.passes(0.0)));
        // One rare word may be all that is asked.
        assert!(of(&index, "kubernetes?", &own())[0].is_telling);
        assert!(!of(&index, "do kubernetes zebras eat purple grass", &own())[0].is_telling);
    }

    #[test]
    fn words_that_say_nothing_are_searched_for_when_there_are_no_others() {
        let fixture = Fixture::new();
        fixture.add("what it is", |_| {});
        let index = fixture.refreshed();
        assert_eq!(of(&index, "what is it", &own()).len(), 1);
        assert!(of(&index, "", &own()).is_empty());
        assert!(of(&index, "*:()", &own()).is_empty());
        assert_eq!(
            Query::from_segments(&["what is it".to_owned()]).term_count(),
            0
        );
    }

    #[test]
    fn any_paste_is_answered() {
        let fixture = Fixture::new();
        fixture.add("needle", |_| {});
        let index = fixture.refreshed();
        let paste: String = (0..100_000)
            .map(|number| format!("word{number} "))
            .collect();
        assert_eq!(of(&index, &format!("needle {paste}"), &own()).len(), 1);
        assert_eq!(
            of(&index, &"needle\0\u{301}".repeat(50_000), &own()).len(),
            1
        );
    }
}
