//! Compares what two similar texts state.
//!
//! Sentences of nearly the same words differ in meaning if only one of them says `not`, or if their
//! numbers differ. So a text is split into sentences, and each sentence into its terms,
//! negations, numbers with units, names (identifiers and text in backticks) and order words.
//! [`Statement::differs`] compares each sentence with the most similar sentence of the other text.
//!
//! This is a heuristic. `A calls B` and `B calls A` have the same words and count as equal. In
//! doubt texts differ, because a false difference costs a question and a missed one costs a note.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

use crate::{
    sanitize,
    terms::{Role, terms, words},
};

/// Limits on the compared part of a text, in bytes and sentences. Comparing is quadratic in
/// sentences.
const MAX_LENGTH: usize = 16 * 1024;
const MAX_SENTENCES: usize = 80;

/// The least term overlap of two sentences about the same topic.
const MIN_OVERLAP: f64 = 0.5;

/// Words that negate the next word.
const NEGATIONS: [&str; 14] = [
    "avoid", "cannot", "dont", "instead", "neither", "never", "no", "nobody", "none", "nor", "not",
    "nothing", "rather", "without",
];

/// The part of `don't` and similar contractions before the `t`.
const CONTRACTIONS: [&str; 20] = [
    "ain", "aren", "can", "couldn", "didn", "doesn", "don", "hadn", "hasn", "haven", "isn",
    "mustn", "needn", "shan", "shouldn", "wasn", "weren", "won", "wouldn", "mightn",
];

/// Words that may be between a negation and the negated word.
const FILLERS: [&str; 7] = ["any", "anymore", "ever", "longer", "of", "only", "use"];

/// Words whose next word tells the order or direction.
const ORDER: [&str; 4] = ["after", "before", "from", "than"];

/// Pairs of opposites: a sentence with one of them contradicts the same sentence with the other.
const OPPOSITES: &str = "\
    add remove|allow deny|allow forbid|always never|ascending descending|before after|\
    allowed forbidden|enable disable|fail pass|fail succeed|fast slow|first last|higher lower|\
    include exclude|increase decrease|keep remove|input output|left right|local remote|\
    lock unlock|maximum minimum|more less|newest oldest|on off|open closed|public private|\
    read write|required optional|safe unsafe|signed unsigned|start stop|sync async|true false|\
    up down|upper lower";

static OPPOSITE_TERMS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let term = |word: &str| terms(word).pop().unwrap_or_default();
    let pairs = OPPOSITES.split('|').filter_map(|pair| pair.split_once(' '));
    pairs.map(|(one, other)| (term(one), term(other))).collect()
});

/// Number words. `one` is left out, because it is rarely a number.
#[rustfmt::skip]
const NUMBERS: [(&str, &str); 12] = [
    ("eight", "8"), ("eleven", "11"), ("five", "5"), ("four", "4"), ("nine", "9"), ("seven", "7"),
    ("six", "6"), ("ten", "10"), ("three", "3"), ("twelve", "12"), ("twice", "2"), ("two", "2"),
];

/// Spellings of units and their canonical form.
#[rustfmt::skip]
const UNITS: [(&str, &str); 45] = [
    ("b", "b"), ("byte", "b"), ("bytes", "b"), ("d", "d"), ("day", "d"), ("days", "d"),
    ("gb", "gb"), ("gib", "gib"), ("h", "h"), ("hour", "h"), ("hours", "h"), ("k", "k"),
    ("kb", "kb"), ("kib", "kib"), ("m", "m"), ("mb", "mb"), ("mib", "mib"), ("millisecond", "ms"),
    ("milliseconds", "ms"), ("min", "min"), ("mins", "min"), ("minute", "min"), ("minutes", "min"),
    ("month", "month"), ("months", "month"), ("ms", "ms"), ("nd", ""), ("percent", "%"),
    ("px", "px"), ("rd", ""), ("s", "s"), ("sec", "s"), ("second", "s"), ("seconds", "s"),
    ("secs", "s"), ("st", ""), ("tb", "tb"), ("th", ""), ("time", ""), ("times", ""),
    ("week", "week"), ("weeks", "week"), ("x", ""), ("year", "year"), ("years", "year"),
];

/// A text parsed for comparison.
#[derive(Debug, Clone, Default)]
pub struct Statement {
    sentences: Vec<Sentence>,
    is_complete: bool,
}

/// A sentence of a [`Statement`].
#[derive(Debug, Clone, Default)]
pub struct Sentence {
    terms: BTreeSet<String>,
    negations: usize,
    /// The first word after each negation.
    negated: BTreeSet<String>,
    numbers: Vec<String>,
    /// The terms of each name.
    names: BTreeSet<Vec<String>>,
    /// The words that follow each order word.
    order: BTreeMap<&'static str, BTreeSet<String>>,
}

impl Statement {
    /// Parses a text. Only its first 16 KiB and its first 80 sentences are read.
    pub fn parse(text: &str) -> Self {
        let head = sanitize::head(text, MAX_LENGTH);
        let mut sentences: Vec<Sentence> = sentences(head)
            .map(Sentence::parse)
            .filter(|sentence| !sentence.is_empty())
            .take(MAX_SENTENCES + 1)
            .collect();
        let is_complete = head.len() == text.len() && sentences.len() <= MAX_SENTENCES;
        sentences.truncate(MAX_SENTENCES);
        Self {
            sentences,
            is_complete,
        }
    }

    /// Returns its sentences in order.
    pub fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// Returns whether this text has a number, name, negation or order that the other one lacks.
    /// Sentences without a counterpart do not count.
    pub fn differs(&self, other: &Self) -> bool {
        // Sentence by sentence, a number or negation may match a different sentence of the same
        // words, as in lines of code. Counting them over the whole text finds that.
        if !self.is_complete || self.has_more_than(other) {
            return true;
        }
        if !self
            .sentences
            .iter()
            .any(|it| it.differs_from(&other.sentences))
        {
            return false;
        }
        // One text may say in one sentence what the other says in two.
        let [one, both] = [self, other].map(|text| Sentence::joined(&text.sentences));
        self.sentences.len() == other.sentences.len() || one.differs(&both)
    }

    /// Returns whether a number, or the negations, occur more often in this text than in the other.
    /// It does not depend on how the other is split into sentences; sentences without a counterpart
    /// are ignored.
    fn has_more_than(&self, other: &Self) -> bool {
        let all = Sentence::joined(&other.sentences);
        let shared = self.sentences.iter();
        let shared = shared.filter(|sentence| sentence.overlap(&all) >= MIN_OVERLAP);
        let others = counts(other.sentences.iter());
        counts(shared)
            .iter()
            .any(|(what, count)| *count > others.get(what).copied().unwrap_or_default())
    }
}

/// Counts each number in the sentences, and under `None` the negations.
fn counts<'a>(sentences: impl Iterator<Item = &'a Sentence>) -> BTreeMap<Option<&'a str>, usize> {
    let mut counts = BTreeMap::new();
    for sentence in sentences {
        *counts.entry(None).or_default() += sentence.negations;
        for number in &sentence.numbers {
            *counts.entry(Some(number.as_str())).or_default() += 1;
        }
    }
    counts
}

impl Sentence {
    fn parse(text: &str) -> Self {
        let mut sentence = Self::default();
        for ticked in text.split('`').skip(1).step_by(2) {
            let name: Vec<String> = terms(ticked);
            if name.is_empty() {
                continue;
            }
            // A number in backticks is a number, not a name.
            if name
                .iter()
                .any(|term| term.contains(char::is_alphabetic) && number_at(term).is_none())
            {
                sentence.names.insert(name);
            }
        }
        let rest = sentence.take_numbers(text);
        sentence.take_words(&rest);
        sentence
    }

    /// Collects the numbers of a text and returns the text without them.
    fn take_numbers(&mut self, text: &str) -> String {
        let mut rest = String::with_capacity(text.len());
        let mut at = 0;
        while let Some(tail) = text.get(at..).filter(|tail| !tail.is_empty()) {
            if let Some((number, length)) = number_at(tail) {
                self.numbers.push(number);
                rest.push(' ');
                at += length;
                continue;
            }
            // Skip to the start of the next word.
            let word = tail.find(|c| !is_inside(c)).unwrap_or(tail.len());
            let gap = tail[word..].find(is_inside).unwrap_or(tail.len() - word);
            rest.push_str(&tail[..word + gap]);
            at += word + gap;
        }
        rest
    }

    fn take_words(&mut self, text: &str) {
        let mut negating = false;
        let mut ordering = None;
        let mut before = String::new();
        let mut last = None::<String>;
        words(text, |word| {
            let is_contracted = word.folded == "t" && CONTRACTIONS.contains(&before.as_str());
            before.clear();
            before.push_str(word.folded);
            if is_contracted {
                // `don` was added as a term; remove it.
                if let Some(last) = last.take().filter(|last| last != "can") {
                    self.terms.remove(&last);
                }
            }
            if is_contracted || NEGATIONS.contains(&word.folded) {
                negating = true;
                self.negations += 1;
                return;
            }
            if let Some(word) = ORDER.iter().find(|order| **order == word.folded) {
                // "before a branch is cut" and "before cutting a branch" are equal.
                ordering = Some((*word, if *word == "from" { 1 } else { 2 }));
            }
            if word.is_stop_word() {
                return;
            }
            if word.role == Role::LongForm {
                // Keep the long form of an abbreviation in place of the abbreviation.
                if let Some(short) = last.take() {
                    self.terms.remove(&short);
                }
            }
            if word.role == Role::Whole || word.is_identifier() {
                self.names.insert(vec![word.term.to_owned()]);
            }
            let is_digits = || word.folded.bytes().all(|byte| byte.is_ascii_digit());
            if word.role == Role::Whole || word.role == Role::Part && is_digits() {
                return;
            }
            let is_order = ORDER.contains(&word.folded);
            if negating && !FILLERS.contains(&word.folded) {
                self.negated.insert(word.term.to_owned());
                negating = false;
            }
            if let Some((order, left)) = ordering.filter(|_| !is_order) {
                let after = self.order.entry(order).or_default();
                after.insert(word.term.to_owned());
                ordering = Some((order, left - 1)).filter(|(_, left)| *left > 0);
            }
            self.terms.insert(word.term.to_owned());
            last = Some(word.term.to_owned());
        });
        if negating {
            self.negated.insert(String::new());
        }
    }

    /// Returns its terms as they are indexed, without numbers and negations.
    pub fn terms(&self) -> &BTreeSet<String> {
        &self.terms
    }

    fn is_empty(&self) -> bool {
        self.terms.is_empty() && self.numbers.is_empty() && self.negated.is_empty()
    }

    fn joined(sentences: &[Self]) -> Self {
        let mut all = Self::default();
        for sentence in sentences {
            all.terms.extend(sentence.terms.iter().cloned());
            all.negations += sentence.negations;
            all.negated.extend(sentence.negated.iter().cloned());
            all.numbers.extend(sentence.numbers.iter().cloned());
            all.names.extend(sentence.names.iter().cloned());
            for (word, after) in &sentence.order {
                let all = all.order.entry(word).or_default();
                all.extend(after.iter().cloned());
            }
        }
        all
    }

    /// Returns the share of its terms that another sentence has.
    fn overlap(&self, other: &Self) -> f64 {
        let common = self.terms.intersection(&other.terms).count();
        common as f64 / self.terms.len().max(1) as f64
    }

    /// Returns whether it differs from the most similar sentence; on a tie, from all of these.
    fn differs_from(&self, others: &[Self]) -> bool {
        if self.terms.is_empty() {
            // A sentence of only numbers or negations: look for an equal one.
            return !others
                .iter()
                .any(|other| (&other.numbers, other.negations) == (&self.numbers, self.negations));
        }
        let mut closest = (0.0, false);
        for other in others.iter().filter(|it| self.overlap(it) >= MIN_OVERLAP) {
            let likeness = self.likeness(other);
            if likeness < closest.0 {
                continue;
            }
            let differs = self.differs(other);
            if likeness > closest.0 || !differs {
                closest = (likeness, differs);
            }
        }
        closest.1
    }

    /// Returns the Jaccard similarity of the terms; 0 for two without terms.
    fn likeness(&self, other: &Self) -> f64 {
        let common = self.terms.intersection(&other.terms).count();
        common as f64 / self.terms.union(&other.terms).count().max(1) as f64
    }

    fn differs(&self, other: &Self) -> bool {
        // Which number belongs to what is unknown unless both have the same in the same order.
        let other_numbers = !self.numbers.is_empty() && self.numbers != other.numbers;
        let lacks = |name: &Vec<String>| {
            !other.names.contains(name) && !name.iter().all(|term| other.has_word(term))
        };
        other_numbers
            || self.names.iter().any(lacks)
            || self.has_other_negation(other)
            || self.has_other_order(other)
    }

    fn has_other_negation(&self, other: &Self) -> bool {
        let is_similar = self.likeness(other) >= MIN_OVERLAP;
        let clashes =
            |negated: &String| is_similar || negated.is_empty() || self.terms.contains(negated);
        // Two negations cancel out, so the counts are compared.
        is_similar && self.negations != other.negations
            || !self.negated.is_subset(&other.negated)
            || other.negated.difference(&self.negated).any(clashes)
    }

    fn has_word(&self, term: &str) -> bool {
        self.terms.contains(term)
            || self.numbers.iter().any(|number| number == term)
            || self
                .names
                .iter()
                .any(|name| name.iter().any(|own| own == term))
    }

    fn has_other_order(&self, other: &Self) -> bool {
        let opposed = |one: &Self, other: &Self, a: &String, b: &String| {
            let has = |sentence: &Self, term: &String| sentence.terms.contains(term);
            has(one, a) && !has(one, b) && has(other, b) && !has(other, a)
        };
        let is_opposed = OPPOSITE_TERMS
            .iter()
            .any(|(a, b)| opposed(self, other, a, b) || opposed(self, other, b, a));
        let is_reordered = self.order.iter().any(|(word, after)| {
            let others = other.order.get(word);
            others.is_some_and(|others| after.is_disjoint(others))
        });
        is_opposed || is_reordered
    }
}

/// Splits a text into sentences. They end at line ends, semicolons, and `.`, `!` or `?` before a
/// blank.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let mut characters = rest.char_indices().peekable();
        while let Some((place, character)) = characters.next() {
            let is_end = match character {
                // A next line that starts in lower case continues a wrapped line.
                '\n' => characters.peek().is_none_or(|(_, c)| !c.is_lowercase()),
                ';' | '。' | '！' | '？' => true,
                '.' | '!' | '?' => characters.peek().is_none_or(|(_, c)| c.is_whitespace()),
                _ => false,
            };
            if is_end {
                let (sentence, tail) = rest.split_at(place + character.len_utf8());
                rest = tail;
                return Some(sentence);
            }
        }
        Some(std::mem::take(&mut rest))
    })
}

fn is_inside(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns the number with its unit that a text begins with, and its length in bytes.
pub(crate) fn number_at(text: &str) -> Option<(String, usize)> {
    let word = text.find(|c| !is_inside(c)).unwrap_or(text.len());
    let (mut number, mut length) = match canonical(&NUMBERS, &text[..word]) {
        Some(digits) => (digits.to_owned(), word),
        None => digits_at(text)?,
    };
    let tail = &text[length..];
    if tail.starts_with('%') {
        number.push('%');
        return Some((number, length + 1));
    }
    // `30s`, `30 s` and `30-second` are equal.
    let gap = usize::from(tail.starts_with([' ', '-']));
    let unit = tail.get(gap..).unwrap_or_default();
    let end = unit.find(|c| !is_inside(c)).unwrap_or(unit.len());
    if let Some(short) = canonical(&UNITS, &unit[..end]) {
        number.push_str(short);
        length += gap + end;
    } else if gap == 0 && end > 0 {
        // `3f2c` and `2fa` are names, not numbers.
        return None;
    }
    Some((number, length))
}

/// Returns the canonical form of a word.
fn canonical(known: &[(&str, &'static str)], word: &str) -> Option<&'static str> {
    let found = known
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word));
    found.map(|(_, canonical)| *canonical)
}

/// Returns the digits that a text begins with: an integer, decimal, version or time.
fn digits_at(text: &str) -> Option<(String, usize)> {
    let mark = usize::from(
        text.starts_with(['v', 'V']) && text[1..].starts_with(|c: char| c.is_ascii_digit()),
    );
    let bytes = text.as_bytes();
    let is_digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    if !is_digit(mark) {
        return None;
    }
    let mut number = String::new();
    let mut at = mark;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'0'..=b'9' => number.push(char::from(*byte)),
            b'.' | b':' if is_digit(at + 1) => number.push(char::from(*byte)),
            b',' if (1..4).all(|next| is_digit(at + next)) && !is_digit(at + 4) => {}
            _ => break,
        }
        at += 1;
    }
    let digits = number.trim_start_matches('0');
    let is_plain = digits.starts_with(|c: char| c.is_ascii_digit());
    Some((if is_plain { digits.to_owned() } else { number }, at))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_differ_by_negations_numbers_and_names() {
        for (text, other, differs) in [
            // Negations.
            ("Use pnpm", "Do not use pnpm", true),
            ("Use pnpm, not npm", "Use npm, not pnpm", true),
            ("Use pnpm, not npm", "Use pnpm instead of npm", false),
            ("Never push to main", "Don't push to main", false),
            ("The cache isn't shared", "The cache is shared", true),
            ("Deploy. Never on Friday", "Deploy", false),
            (
                "Workers share the cache",
                "The cache is not shared between workers",
                true,
            ),
            ("It is no longer used", "It is not no longer used", true),
            // Numbers.
            ("Retry 3 times", "Retry three times", false),
            ("Wait 30 s", "Wait 30 seconds", false),
            ("Wait 30 s", "Wait 30 ms", true),
            ("Port 8080", "Port 9090", true),
            ("Port 8080 of the proxy", "The proxy's port", true),
            ("The proxy's port", "Port 8080 of the proxy", false),
            ("Limit is 1,000 rows", "Limit is 1000 rows", false),
            ("Needs SQLite v3.45.1", "Needs SQLite 3.45.1", false),
            ("Needs SQLite 3.45", "Needs SQLite 3.46", true),
            ("web 8080, admin 9090", "web 9090, admin 8080", true),
            (
                "The web port is 8080. The admin port is 9090.",
                "The web port is 8080 and the admin port is 9090.",
                false,
            ),
            ("Ports: 8080.\n9090", "Ports: 8080.\n9091", true),
            // Repeated sentences.
            (
                "The gate takes port 81.\nThe gate takes port 81.",
                "The gate takes port 80.\nThe gate takes port 81.",
                true,
            ),
            (
                "If the key is not set, stop.\nIf the key is not set, stop.",
                "If the key is set, stop.\nIf the key is not set, stop.",
                true,
            ),
            // Names.
            ("Run `cargo nextest`", "Run cargo nextest", false),
            ("Run `make lint`", "Run `make test`", true),
            ("Hash with sha256", "Hash with sha512", true),
            ("Call loadUser first", "Call load_user first", false),
            ("Call `loadUser` first", "Call it first", true),
            // Order and opposites.
            (
                "Restart the worker before the migration",
                "Restart the worker after the migration",
                true,
            ),
            ("Run lint before tests", "Run tests before lint", true),
            ("Caching is enabled", "Caching is disabled", true),
            // Nothing in common.
            ("Wait 30 s", "Photos are 40 px wide", false),
            ("", "Wait 30 s", false),
        ] {
            let [one, two] = [text, other].map(Statement::parse);
            assert_eq!(one.differs(&two), differs, "{text} / {other}");
        }
    }

    #[test]
    fn line_breaks_do_not_hide_changes() {
        let code = "fn start(query):\n  \"Starts a new task and waits for it (see [1]).\"\n  \
            Task(query, args[2]).start()";
        for (from, to) in [("[1]", "[2]"), ("and waits", "and never waits")] {
            let line = code.replace(from, to).replace('\n', " ");
            let [changed, code] = [&*line, code].map(Statement::parse);
            assert!(changed.differs(&code), "{line}");
        }
        let [line, code] = [&*code.replace('\n', " "), code].map(Statement::parse);
        assert!(!line.differs(&code));
    }

    #[test]
    fn numbers_are_read_in_every_spelling() {
        for (text, number, length) in [
            ("30", "30", 2),
            ("30s.", "30s", 3),
            ("30-second limit", "30s", 9),
            ("1,000,000 rows", "1000000", 9),
            ("1,23", "1", 1),
            ("v2", "2", 2),
            ("10:30", "10:30", 5),
            ("99.9%", "99.9%", 5),
            ("0600", "600", 4),
            ("0", "0", 1),
            ("0.5", "0.5", 3),
            ("Two days", "2d", 8),
            ("3rd", "3", 3),
        ] {
            assert_eq!(number_at(text), Some((number.to_owned(), length)), "{text}");
        }
        for text in ["3f2c", "2fa", "v", "x2", "", "twofold", "−1"] {
            assert_eq!(number_at(text), None, "{text}");
        }
    }

    #[test]
    fn a_truncated_text_never_agrees() {
        let long = "The limit is the same everywhere.\n".repeat(1_000);
        let statement = Statement::parse(&long);
        assert_eq!(statement.sentences().len(), MAX_SENTENCES);
        assert!(statement.differs(&statement.clone()));
        let long = "x ".repeat(MAX_LENGTH);
        assert!(!Statement::parse(&long).is_complete);
    }

    proptest! {
        #[test]
        fn every_text_agrees_with_itself(text in any::<String>()) {
            let statement = Statement::parse(&text);
            prop_assert!(!statement.differs(&statement.clone()));
        }

        #[test]
        fn a_negation_is_always_found(words in proptest::collection::vec("[b-y]{4,8}", 3..9)) {
            let text = words.join(" ");
            let negated = format!("never {text}");
            let [one, other] = [text.as_str(), negated.as_str()].map(Statement::parse);
            if one.sentences().iter().any(|sentence| !sentence.terms().is_empty())
                && one.sentences().iter().all(|sentence| sentence.negated.is_empty())
            {
                prop_assert!(one.differs(&other));
                prop_assert!(other.differs(&one));
            }
        }
    }
}
