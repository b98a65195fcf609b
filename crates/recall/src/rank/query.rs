//! Parses a query into segments and their terms.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ops::Range,
};

use anamnesis_session::directive::asks_about_the_past;
use anamnesis_text::{
    sanitize::head,
    terms::{Role, Word, is_small_talk, terms, words},
    word_list::WordTable,
};

/// The maximum number of segments in a query.
pub const MAX_SEGMENTS: usize = 8;

/// How many bytes of a segment are read.
const MAX_TEXT: usize = 16 * 1024;

/// The maximum number of distinct terms of a segment that are looked up.
const MAX_LOOKED_UP: usize = 256;

/// Words of quantity and time. Texts about programs have few of them and talk has many, so their rarity
/// says nothing of a topic.
const QUANTITY: &str = "\
    one two three four five six seven eight nine ten twelve fifteen twenty thirty forty fifty sixty ninety hundred \
    once twice second seconds minute minutes hour hours day days week weeks month months year years ago today \
    tomorrow yesterday tonight morning evening zwei drei vier fünf sechs sieben acht neun zehn zwanzig einmal \
    zweimal sekunde sekunden minuten stunde stunden tag tage tagen woche wochen monat monate jahr jahre heute morgen \
    gestern deux trois quatre cinq sept huit neuf dix vingt trente heure heures jour jours semaine semaines mois \
    demain hier dos tres cuatro cinco seis siete ocho nueve diez minuto minutos hora horas día días semana semanas \
    mes meses año años hoy mañana ayer";

/// Words of a person's routine: a prompt has them whatever it is about, so they tell nothing of what it
/// is about. They are the words, function words apart, that the prompts of at least a third of fifteen
/// real projects have, and at least one of forty prompts; `branch`, `check` and `since` go with them.
/// Their terms are listed, because a hook has no time to make them.
static ROUTINE: WordTable<(), 57, 128> = WordTable::EMPTY.with(
    "actual add all ani as branch chang check code come commit continu error file fix for handl if implement \
     into issu just like list main make need new next no not now on onli pleas project push remov review run \
     see should sinc sure take task test them then think try updat us want when with work",
    b' ',
    (),
);

/// Function words that are terms, because programs have them as keywords. The others are no terms.
const FUNCTION_WORDS: [&str; 15] = [
    "after", "before", "can", "in", "instead", "might", "off", "out", "over", "until", "up",
    "while", "will", "with", "without",
];

/// Chinese characters of function words: a bigram with one of them tells nothing.
const CHINESE_FUNCTION: &str =
    "的了是在我你他她它们这那些个吗呢吧啊就也都和与或可帮给把被让想还很再又但因如不么什怎哪";

/// The minimum length of a word that can name a note, in characters.
pub(super) const MIN_NAME_LENGTH: usize = 5;

/// A parsed query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub(super) segments: Vec<Segment>,
}

#[derive(Debug, Clone, Default)]
pub(super) struct Segment {
    pub(super) text: String,
    /// All words, folded, each surrounded by single spaces.
    spoken: String,
    pub(super) asked: Vec<QueryTerm>,
    /// The words in order: index of the term, and spelling.
    pub(super) sequence: Vec<(usize, String)>,
}

/// A term of a segment.
#[derive(Debug, Clone)]
pub(super) struct QueryTerm {
    pub(super) term: String,
    pub(super) written: String,
    /// Whether coverage counts it. The whole of a compound identifier and the long form of an
    /// abbreviation do not count.
    pub(super) is_word: bool,
    /// For a long form, the index of the abbreviation.
    pub(super) stands_for: Option<usize>,
    pub(super) is_identifier: bool,
    /// Whether it is a word of small talk, of quantity, or an emoji: notes contain them, but nobody searches
    /// for them.
    pub(super) is_small_talk: bool,
    /// Whether it tells little about what a prompt is about: a word of routine, or of the project's name.
    pub(super) is_routine: bool,
    /// Whether it says nothing of a topic: a function word, or a folder or an extension in paths only.
    pub(super) is_general: bool,
}

impl QueryTerm {
    /// Returns whether it is a word of routine or a general one.
    pub(super) fn tells_little(&self) -> bool {
        self.is_routine || self.is_general
    }
}

impl Query {
    /// Parses a text as one segment. If it has only stop words, they become the terms.
    pub fn parse(text: &str) -> Self {
        let mut segment = Segment::parse(text, false);
        if segment.asked.is_empty() {
            segment = Segment::parse(text, true);
        }
        Self {
            segments: vec![segment],
        }
    }

    /// Parses several segments, up to [`MAX_SEGMENTS`]. A note needs to match only one.
    pub fn from_segments(segments: &[String]) -> Self {
        let segments = segments.iter().take(MAX_SEGMENTS);
        Self {
            segments: segments.map(|text| Segment::parse(text, false)).collect(),
        }
    }

    /// Returns the query as a prompt in a project with these keys, where words of routine and of the keys
    /// tell little. In a search, a person or a model chose each word.
    pub(crate) fn in_project<'a>(&self, keys: impl Iterator<Item = &'a str>) -> Self {
        let names: BTreeSet<String> = keys.flat_map(terms).collect();
        let mut query = self.clone();
        for asked in query
            .segments
            .iter_mut()
            .flat_map(|segment| &mut segment.asked)
        {
            asked.is_routine = ROUTINE.get(&asked.term).is_some() || names.contains(&asked.term);
        }
        query
    }

    /// Returns the number of segments.
    pub(crate) fn len(&self) -> usize {
        self.segments.len()
    }

    /// Joins all segments to one.
    pub(crate) fn joined(&self) -> Self {
        let mut joined = Segment::default();
        for segment in &self.segments {
            joined.append(segment);
        }
        Self {
            segments: vec![joined],
        }
    }

    /// Returns the query of one segment.
    pub(crate) fn only(&self, segment: usize) -> Option<Self> {
        let segment = self.segments.get(segment)?.clone();
        Some(Self {
            segments: vec![segment],
        })
    }

    /// Returns the text of all segments, in order.
    pub fn text(&self) -> String {
        let texts: Vec<&str> = self
            .segments
            .iter()
            .map(|segment| segment.text.as_str())
            .collect();
        texts.join(" ")
    }

    /// Returns the number of distinct meaningful words, without stop words and small talk (`ok`,
    /// `continue`).
    pub fn term_count(&self) -> usize {
        self.telling().len()
    }

    /// Returns whether nothing is asked: there is no meaningful word, or only one of less than
    /// three letters (`go on`).
    pub fn is_small_talk(&self) -> bool {
        let telling = self.telling();
        let is_hardly_one = |term: &&str| term.is_ascii() && term.len() < 3;
        telling.len() < 2 && telling.keys().all(is_hardly_one)
    }

    /// Returns the terms of the meaningful words, without words of routine and of the project's name, each
    /// with its spelling.
    pub(crate) fn telling_terms(&self) -> BTreeMap<&str, &str> {
        let asked = self.segments.iter().flat_map(|segment| &segment.asked);
        let mut terms = self.telling();
        for routine in asked.filter(|asked| asked.is_routine) {
            terms.remove(routine.term.as_str());
        }
        terms
    }

    /// Returns the sentences that ask why, when or who.
    #[must_use]
    pub fn about_the_past(&self) -> Self {
        let asking = self.segments.iter();
        let asking = asking.filter(|segment| asks_about_the_past(&segment.text));
        Self {
            segments: asking.cloned().collect(),
        }
    }

    fn telling(&self) -> BTreeMap<&str, &str> {
        let asked = self.segments.iter().flat_map(|segment| &segment.asked);
        asked
            .filter(|asked| asked.is_word && !asked.is_small_talk)
            .map(|asked| (asked.term.as_str(), asked.written.as_str()))
            .collect()
    }
}

impl Segment {
    /// Returns whether it has small talk and words of routine only, as an order for the step at hand has.
    pub(super) fn is_order(&self) -> bool {
        let mut words = self.asked.iter().filter(|asked| asked.is_word);
        words.all(|asked| asked.is_small_talk || asked.tells_little())
    }

    fn parse(text: &str, with_stop_words: bool) -> Self {
        let text = head(text, MAX_TEXT);
        let mut spoken = String::from(" ");
        let mut places: HashMap<String, usize> = HashMap::new();
        let mut asked: Vec<QueryTerm> = Vec::new();
        let mut sequence = Vec::new();
        let mut before = None;
        paths(text, |word, is_beside_name| {
            push_word(&word, &mut spoken);
            if asked.len() >= MAX_LOOKED_UP || (!with_stop_words && word.is_stop_word()) {
                return;
            }
            let is_word = is_word(word.role) && !is_small_number(word.folded);
            let is_general = is_beside_name
                || FUNCTION_WORDS.contains(&word.folded)
                || is_function_bigram(word.term);
            let place = *places.entry(word.term.to_owned()).or_insert_with(|| {
                asked.push(QueryTerm {
                    term: word.term.to_owned(),
                    written: word.written.to_owned(),
                    is_word,
                    stands_for: before.filter(|_| word.role == Role::LongForm),
                    is_identifier: word.is_identifier()
                        && word.written.chars().count() >= MIN_NAME_LENGTH,
                    is_small_talk: word.is_emoji()
                        || is_small_talk(word.folded)
                        || QUANTITY
                            .split_ascii_whitespace()
                            .any(|other| other == word.folded),
                    is_routine: false,
                    is_general,
                });
                asked.len() - 1
            });
            if let Some(asked) = asked.get_mut(place) {
                asked.is_general &= is_general;
            }
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

    /// Adds the words of another segment.
    fn append(&mut self, other: &Self) {
        if self.text.is_empty() {
            self.clone_from(other);
            return;
        }
        self.text.push('\n');
        self.text.push_str(&other.text);
        self.spoken.push_str(other.spoken.trim_start_matches(' '));
        let mut places: HashMap<String, usize> = HashMap::new();
        for (place, known) in self.asked.iter().enumerate() {
            places.insert(known.term.clone(), place);
        }
        // The place of each term of `other`; none for those over the limit.
        let mut moved: Vec<Option<usize>> = Vec::with_capacity(other.asked.len());
        for term in &other.asked {
            let known = places.get(&term.term).copied();
            let place = known.or_else(|| {
                (self.asked.len() < MAX_LOOKED_UP).then(|| {
                    let stands_for = term.stands_for.and_then(|place| *moved.get(place)?);
                    self.asked.push(QueryTerm {
                        stands_for,
                        ..term.clone()
                    });
                    self.asked.len() - 1
                })
            });
            if let Some(asked) = known.and_then(|place| self.asked.get_mut(place)) {
                asked.is_word |= term.is_word;
            }
            moved.push(place);
        }
        let sequence = other.sequence.iter().filter_map(|(place, spelling)| {
            let place = (*moved.get(*place)?)?;
            Some((place, spelling.clone()))
        });
        self.sequence.extend(sequence);
    }

    /// Returns whether the segment contains a title's words in order and adjacent. A title of one
    /// word is no name.
    pub(super) fn names_title(&self, title: &str) -> bool {
        let mut spoken = String::from(" ");
        let mut count = 0;
        words(title, |word| {
            push_word(&word, &mut spoken);
            count += usize::from(is_word(word.role));
        });
        count > 1 && self.spoken.contains(&spoken)
    }
}

/// Calls `emit` for each word of a text in order, and says of each whether it is a folder or the extension
/// in a path: many paths have the same ones.
fn paths<'a>(text: &'a str, mut emit: impl FnMut(Word<'a, '_>, bool)) {
    let mut end = 0;
    let mut name = 0..0;
    words(text, |word| {
        let start = word.written.as_ptr().addr() - text.as_ptr().addr();
        if start >= end {
            (name, end) = file_name(text, start);
        }
        emit(word, !name.contains(&start));
    });
}

/// Returns where the name of a file is in the run of characters at a position, without its extension, and
/// where that run ends. A run that is no path is a name.
fn file_name(text: &str, at: usize) -> (Range<usize>, usize) {
    let (before, after) = text.split_at(at);
    let start = before.rfind(char::is_whitespace).map_or(0, |blank| {
        blank + before[blank..].chars().next().map_or(0, char::len_utf8)
    });
    let end = after
        .find(char::is_whitespace)
        .map_or(text.len(), |blank| at + blank);
    let path = text[start..end].trim_end_matches(|c: char| !c.is_alphanumeric());
    let name = path.rfind('/').map_or(0, |slash| slash + 1);
    let dot = path[name..].rfind('.').filter(|dot| *dot > 0);
    (start + name..dot.map_or(end, |dot| start + name + dot), end)
}

/// Returns whether a bigram is a part of Chinese or Japanese function words.
fn is_function_bigram(term: &str) -> bool {
    let is_hiragana = |c: char| ('\u{3041}'..='\u{309f}').contains(&c);
    !term.is_ascii()
        && (term.contains(|c| CHINESE_FUNCTION.contains(c)) || term.chars().all(is_hiragana))
}

/// Returns whether a word is a number of one or two digits, which tells nothing.
fn is_small_number(word: &str) -> bool {
    word.len() <= 2 && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn push_word(word: &Word<'_, '_>, spoken: &mut String) {
    if is_word(word.role) {
        spoken.push_str(word.folded);
        spoken.push(' ');
    }
}

/// Returns whether coverage counts a word of this role: not a whole compound identifier and not a
/// long form.
pub(super) fn is_word(role: Role) -> bool {
    matches!(role, Role::Plain | Role::Part)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_terms_of_routine_are_those_of_its_words() {
        const WORDS: &str = "\
            actually add all any as branch branches change changed changes changing check checked checks code \
            coding comes commit commits continue error errors file files fix fixed fixes fixing for handle if \
            implement implementing into issue issues just like list main make making need needs new next no not \
            now on only please project projects push remove removed removing review run running see should since \
            sure take task tasks test testing tests them then think try update updated updates updating use uses \
            using want wanted wants when with work working works";
        let made: BTreeSet<String> = terms(WORDS).into_iter().collect();
        assert!(made.iter().all(|term| ROUTINE.get(term).is_some()));
        assert_eq!(made.len(), 57);
        assert!(ROUTINE.get("parser").is_none());
    }

    proptest! {
        #[test]
        fn joined_segments_are_the_query_of_the_whole_text(segments in prop::collection::vec(
            prop::collection::vec(
                prop::sample::select(vec![
                    "load_user_profile", "loadUserProfile", "db", "database", "the", "ok", "std::fs::read",
                    "v1.2.3", "数据库连接池", "tests", "test-runner", "it's", "7Q4KZ9", "(hang?)", "-x",
                ]),
                1..12,
            ).prop_map(|words| words.join(" ")),
            1..MAX_SEGMENTS,
        )) {
            let whole = Query { segments: vec![Segment::parse(&segments.join("\n"), false)] };
            let joined = Query::from_segments(&segments).joined();
            prop_assert_eq!(format!("{joined:?}"), format!("{whole:?}"));
        }
    }
}
