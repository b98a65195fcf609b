//! Finds statements that a later text replaces: "we use port 8080", later "port 9090 now".
//!
//! A text is read as [`Rulings`], one for each sentence. A ruling has content words, numbers, and
//! spans that a cue marks: what is adopted ("use X") and what is given up ("instead of X", "from X
//! to Y", "X no longer"). Cues are phrases of eight languages. A later ruling amends an earlier one
//! only if both are about the same subject: it gives up what the earlier one adopts, or it has
//! another value in the same frame of words.
//!
//! This is a heuristic. In doubt nothing is amended: the earlier text is then shown as it is.

use std::{
    collections::{BTreeSet, HashMap, HashSet},
    ops::Range,
    sync::LazyLock,
};

use self::contradiction::{Sentence, number_at, split};
use crate::{
    sanitize,
    terms::{Role, words},
};

pub mod contradiction;
mod cues;
mod subject;

pub(crate) use self::cues::LIGHT;
pub use self::subject::{Focus, LaterSentence};

/// Limits on the read part of a text.
const MAX_LENGTH: usize = 8 * 1024;
const MAX_RULINGS: usize = 40;

/// The place of a title, which is not in the body.
const TITLE: usize = usize::MAX;

/// The maximum number of tokens of a ruling that are read.
const MAX_TOKENS: usize = 60;

/// The maximum number of words of a span.
const MAX_SPAN: usize = 4;

/// How far the second word of "from … to" may be from the first, in tokens.
const MAX_REACH: usize = 8;

/// The number of digits of a number that tells by itself what it is about, such as a port.
const DISTINCTIVE: usize = 4;

/// Joins the parts of a path or a dotted name in a term.
const JOINT: char = '_';

/// Sections of session notes that quote what holds.
const RULED_SECTIONS: [&str; 2] = ["Said", "Decided"];

/// Sections of session notes that state nothing that holds.
const SKIPPED_SECTIONS: [&str; 6] = [
    "Files",
    "Branch",
    "Next steps",
    "Still failing",
    "Failed and fixed",
    "Fixed",
];

/// What is between a token and the one before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gap {
    Blank,
    /// A mark inside a word: `a.b`, `a-b`.
    Joined,
    /// A comma, a bracket, a dash.
    Clause,
    Arrow,
}

#[derive(Debug, Clone)]
struct WordToken {
    folded: String,
    /// The term, or `#` and the number.
    term: String,
    at: Range<usize>,
    gap: Gap,
    is_number: bool,
    /// Whether it can be looked up: code, a name, a number.
    is_specific: bool,
    /// Whether it says nothing about the subject.
    is_light: bool,
}

/// How a span is given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Cause {
    /// By a phrase that names it: "instead of X".
    Named,
    /// By a negation: "not X".
    Negated,
    /// By its clause: "X is no longer used".
    Ceased,
}

#[derive(Debug, Clone)]
struct Span {
    terms: BTreeSet<String>,
    cause: Cause,
}

/// One sentence of a text.
#[derive(Debug, Clone)]
struct Ruling {
    /// Where the sentence is in the body; [`TITLE`] for the title.
    at: usize,
    text: String,
    tokens: Vec<WordToken>,
    content: BTreeSet<String>,
    numbers: BTreeSet<String>,
    specific: BTreeSet<String>,
    adopted: Vec<BTreeSet<String>>,
    /// What it may set: names, numbers, what it adopts, and what follows "is" at its end.
    values: BTreeSet<String>,
    given_up: Vec<Span>,
    /// Whether a phrase says that something changes.
    is_change: bool,
    /// Whether it is in a text without sections, or in one that quotes what holds.
    is_ruled: bool,
    sentence: Sentence,
}

/// A text as a list of rulings.
#[derive(Debug, Clone, Default)]
pub struct Rulings {
    rulings: Vec<Ruling>,
    /// All content words: a ruling may leave out what its text is about.
    context: BTreeSet<String>,
}

/// A statement that a later text replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Amendment {
    /// What it said, in its own words.
    pub was: String,
    /// Where the earlier and the later sentence are in their texts.
    pub earlier_at: usize,
    /// See `earlier_at`.
    pub later_at: usize,
}

impl Rulings {
    /// Reads a text. Sections of a session note that only list files or steps are left out.
    pub fn parse(title: &str, body: &str) -> Self {
        let body = sanitize::head(body, MAX_LENGTH);
        let mut rulings = Self::default();
        let mut is_skipped = false;
        let mut is_ruled = true;
        let mut has_sections = false;
        let start = body.as_ptr().addr();
        for sentence in sentences(body) {
            let (label, said) = without_label(sentence);
            if let Some(label) = label {
                is_skipped = SKIPPED_SECTIONS.contains(&label);
                is_ruled = RULED_SECTIONS.contains(&label);
                has_sections = true;
            }
            if !is_skipped && rulings.rulings.len() < MAX_RULINGS {
                rulings.add(said, said.as_ptr().addr() - start, is_ruled);
            }
        }
        // The title of many notes is their first sentence.
        if !body.contains(title) {
            rulings.add(title, TITLE, !has_sections);
        }
        rulings
    }

    fn add(&mut self, sentence: &str, at: usize, is_ruled: bool) {
        // A question rules nothing: "why do the tests hang without the stub?" changes no note.
        if sentence.trim_end().ends_with(['?', '？']) {
            return;
        }
        let mut ruling = Ruling::parse(sentence, at);
        ruling.is_ruled = is_ruled;
        self.context.extend(ruling.content.iter().cloned());
        if !ruling.content.is_empty() || !ruling.numbers.is_empty() {
            self.rulings.push(ruling);
        }
    }

    /// Returns how many sentences state something that can be replaced.
    pub fn statements(&self) -> usize {
        let rulings = self.rulings.iter();
        rulings.filter(|ruling| ruling.is_statement()).count()
    }

    /// Returns the statements of this text that a later text replaces, each once.
    pub fn amended_by(&self, later: &Self) -> Vec<Amendment> {
        let statements = self.rulings.iter().filter(|ruling| ruling.is_statement());
        let amended = statements.filter_map(|earlier| {
            // A text that still says the same amends nothing.
            if later.rulings.iter().any(|ruling| ruling.repeats(earlier)) {
                return None;
            }
            later.rulings.iter().find_map(|ruling| {
                Some(Amendment {
                    was: earlier.amended_by(ruling, self, later)?,
                    earlier_at: earlier.at,
                    later_at: ruling.at,
                })
            })
        });
        amended.collect()
    }
}

/// Splits a text into sentences. Parts before a semicolon are not sentences of their own.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let mut parts = split(text);
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at;
        loop {
            let part = parts.next();
            at += part.map_or(0, str::len);
            if part.is_none_or(|part| !part.ends_with(';')) {
                break;
            }
        }
        text.get(start..at).filter(|sentence| !sentence.is_empty())
    })
}

/// Returns the terms under which a text with this term is indexed.
fn indexed(term: &str) -> impl Iterator<Item = &str> {
    let is_number = term.starts_with('#');
    let digits = term.trim_start_matches('#');
    let end = digits.find(|c: char| !c.is_ascii_digit());
    let term = if is_number {
        &digits[..end.unwrap_or(digits.len())]
    } else {
        term
    };
    term.split(JOINT)
        .filter(move |part| !is_number || part.len() >= DISTINCTIVE)
}

/// Separates the label of a section and the marker of a list from a sentence.
fn without_label(sentence: &str) -> (Option<&str>, &str) {
    let said = sentence.trim_start().trim_start_matches("- ");
    if let Some(rest) = said.strip_prefix("**")
        && let Some((label, rest)) = rest.split_once(":**")
    {
        return (Some(label), rest.trim());
    }
    (None, said.trim())
}

impl Ruling {
    fn parse(text: &str, at: usize) -> Self {
        let tokens = tokens(text);
        let set = |is: &dyn Fn(&&WordToken) -> bool| {
            let tokens = tokens.iter().filter(|token| !token.is_light);
            tokens.filter(is).map(|token| token.term.clone()).collect()
        };
        let mut ruling = Self {
            at,
            text: text.to_owned(),
            content: set(&|token| !token.is_number),
            numbers: set(&|token| token.is_number),
            specific: set(&|token| token.is_specific),
            adopted: Vec::new(),
            values: BTreeSet::new(),
            given_up: Vec::new(),
            is_change: false,
            is_ruled: true,
            sentence: Sentence::parse(text),
            tokens,
        };
        cues::mark(&mut ruling);
        ruling.values = ruling.specific.clone();
        ruling
            .values
            .extend(ruling.adopted.iter().flatten().cloned());
        ruling.values.extend(cues::complement(&ruling.tokens));
        if ruling.sentence.is_definition() {
            let mut nouns = ruling.tokens.iter().filter(|token| !token.is_light);
            ruling
                .values
                .extend(nouns.next().map(|token| token.term.clone()));
        }
        ruling
    }

    /// Returns whether it states something that can be replaced: a value or a choice.
    fn is_statement(&self) -> bool {
        !self.adopted.is_empty()
            || !self.numbers.is_empty()
            || !self.specific.is_empty()
            || self.sentence.is_negated()
            || self.content.len() >= 2
    }

    /// Returns whether it says all that the other one does.
    fn repeats(&self, other: &Self) -> bool {
        self.given_up.is_empty()
            && other.given_up.is_empty()
            && other.content.is_subset(&self.content)
            && other.numbers.is_subset(&self.numbers)
            && self.sentence.is_negated() == other.sentence.is_negated()
    }

    fn has(&self, term: &str) -> bool {
        self.content.contains(term) || self.numbers.contains(term)
    }

    /// Returns its content words and numbers.
    fn terms(&self) -> impl Iterator<Item = &String> {
        self.content.iter().chain(&self.numbers)
    }

    fn shared(&self, other: &Self) -> BTreeSet<String> {
        let shared = self.terms().filter(|term| other.has(term));
        shared.cloned().collect()
    }

    /// Returns whether a phrase says that something changes.
    fn is_change(&self) -> bool {
        self.is_change || !self.given_up.is_empty()
    }

    /// Returns whether it adopts all of these terms.
    fn adopts_all(&self, terms: &BTreeSet<String>) -> bool {
        let adopted: BTreeSet<&String> = self.adopted.iter().flatten().collect();
        !adopted.is_empty() && terms.iter().all(|term| adopted.contains(term))
    }

    /// Returns whether its first content word is one of these terms.
    fn begins_with(&self, terms: &BTreeSet<String>) -> bool {
        let first = self.tokens.iter().find(|token| !token.is_light);
        first.is_some_and(|first| terms.contains(&first.term))
    }

    fn gives_up(&self, terms: &BTreeSet<String>) -> bool {
        let mut spans = self.given_up.iter();
        spans.any(|span| !span.terms.is_disjoint(terms))
    }

    /// Returns what this ruling said if a later one replaces it.
    fn amended_by(&self, later: &Self, text: &Rulings, later_text: &Rulings) -> Option<String> {
        let spans = later.given_up.iter();
        let mut spans = spans.filter_map(|span| self.lost(later, span));
        if let Some(lost) = spans.next() {
            return Some(self.written(&lost));
        }
        let subject = SharedSubject::new(self, later, text, later_text);
        self.other_number(later, &subject)
            .or_else(|| self.other_choice(later, &subject))
            .or_else(|| {
                let is_opposed = self.sentence.contradicts(&later.sentence);
                (is_opposed && subject.is_same).then(|| BTreeSet::from([String::new()]))
            })
            .map(|lost| self.written(&lost))
    }

    /// Returns what a later ruling gives up of this one.
    fn lost(&self, later: &Self, span: &Span) -> Option<BTreeSet<String>> {
        let terms = span.terms.iter().filter(|term| self.has(term));
        let lost: BTreeSet<String> = terms.cloned().collect();
        if lost.is_empty() || self.gives_up(&lost) {
            return None;
        }
        let is_adopted = self.adopted.iter().any(|span| !span.is_disjoint(&lost));
        let is_named = lost
            .iter()
            .any(|term| self.specific.contains(term) && !term.starts_with('#'));
        let has_number = lost.iter().any(|term| term.starts_with('#'));
        let is_distinctive = || {
            lost.iter()
                .all(|term| term.starts_with('#') && indexed(term).next().is_some())
        };
        let shared = self.content.intersection(&later.content);
        let shared = shared.filter(|term| !lost.contains(*term)).count();
        let covers = 2 * lost.len() >= self.content.len() + self.numbers.len();
        let is_main = 2 * lost.len() >= span.terms.len();
        let replaces = match span.cause {
            Cause::Named => {
                is_main
                    && (is_adopted
                        || is_named
                        || is_distinctive()
                        || (covers && !has_number)
                        || shared >= 1 && (has_number || lost.len() >= 2)
                        || shared >= 2)
            }
            Cause::Negated => {
                is_main && (is_adopted || (is_named || has_number || covers) && shared >= 1)
            }
            Cause::Ceased => {
                let known = lost.len() >= 2 || shared >= 1 || covers;
                // "Storybook is gone" ends what was said of Storybook.
                let is_subject = lost == span.terms && self.begins_with(&lost);
                is_main && (is_adopted || is_distinctive() || is_subject)
                    || known
                        && (is_adopted
                            || is_named
                            || has_number
                            || lost.len() >= 3
                            || covers && lost.len() >= 2)
            }
        };
        replaces.then_some(lost)
    }

    /// Returns a number that the later ruling replaces by another one of the same attribute.
    fn other_number(&self, later: &Self, subject: &SharedSubject) -> Option<BTreeSet<String>> {
        if !subject.is_same || subject.shared == 0 {
            return None;
        }
        let own = self.numbers.difference(&later.numbers);
        let mut own = own.filter(|number| {
            later.numbers.difference(&self.numbers).any(|other| {
                dimension(number) == dimension(other)
                    && (!dimension(number).is_empty()
                        || self.attributes(number).any(|attribute| {
                            later.attributes(other).any(|other| attribute == other)
                        }))
            })
        });
        own.next().map(|number| BTreeSet::from([number.clone()]))
    }

    /// Returns the content words next to a number.
    fn attributes<'a>(&'a self, number: &'a str) -> impl Iterator<Item = &'a str> {
        let places = self.tokens.iter().enumerate();
        let places = places.filter(move |(_, token)| token.term == number);
        places.flat_map(|(place, _)| {
            let before = self.tokens.iter().take(place).rev();
            let after = self.tokens.iter().skip(place + 1).take(1);
            let is_noun = |token: &&WordToken| !token.is_light && !token.is_number;
            let before = before.filter(is_noun).take(1);
            before
                .chain(after.filter(is_noun))
                .map(|token| token.term.as_str())
        })
    }

    /// Returns a choice that the later ruling replaces by another one for the same purpose.
    fn other_choice(&self, later: &Self, subject: &SharedSubject) -> Option<BTreeSet<String>> {
        if !subject.is_same || subject.shared == 0 {
            return None;
        }
        let mut own = self
            .adopted
            .iter()
            .filter(|own| own.iter().all(|term| !later.has(term)) && !self.gives_up(own));
        let is_other = later
            .adopted
            .iter()
            .any(|other| other.iter().all(|term| !self.has(term)) && !later.gives_up(other));
        own.next().filter(|_| is_other).cloned()
    }

    /// Returns the words of these terms as written, or the sentence.
    fn written(&self, terms: &BTreeSet<String>) -> String {
        const LONGEST: usize = 60;
        // The shortest part with all of the words.
        let places = self.tokens.iter().enumerate();
        let places: Vec<usize> = places
            .filter(|(_, token)| terms.contains(&token.term))
            .map(|(place, _)| place)
            .collect();
        let part = |from: usize| {
            let mut missing: BTreeSet<&str> = terms.iter().map(String::as_str).collect();
            let mut tokens = self.tokens.iter().skip(from);
            let end = tokens.find_map(|token| {
                missing.remove(token.term.as_str());
                missing.is_empty().then_some(token.at.end)
            })?;
            Some(self.tokens.get(from)?.at.start..end)
        };
        let parts = places.iter().filter_map(|place| part(*place));
        let part = parts.min_by_key(Range::len);
        let whole = self.text.trim().trim_end_matches(['.', '。', '!']);
        let near = part.and_then(|part| self.text.get(part));
        let near = near.filter(|near| near.len() <= 40);
        crate::truncate::line(near.unwrap_or(whole), LONGEST)
    }
}

/// Returns what a number's term measures; empty if it has no unit.
fn dimension(number: &str) -> &str {
    let unit = number.trim_start_matches(|c: char| !c.is_alphabetic() && c != '%');
    match unit {
        "ms" | "s" | "min" | "h" | "d" | "week" | "month" | "year" => "time",
        "b" | "k" | "kb" | "kib" | "m" | "mb" | "mib" | "gb" | "gib" | "tb" => "size",
        unit => unit,
    }
}

/// Whether two rulings are about the same subject.
struct SharedSubject {
    is_same: bool,
    /// How many words of the frame they share.
    shared: usize,
}

impl SharedSubject {
    /// Compares the words of two rulings beside their values. Words that only one ruling has are
    /// its subject, unless the other's text names them elsewhere.
    fn new(earlier: &Ruling, later: &Ruling, text: &Rulings, later_text: &Rulings) -> Self {
        let frame = |ruling: &Ruling| -> BTreeSet<String> {
            let content = ruling.content.iter();
            let is_value = |term: &&String| ruling.adopted.iter().any(|span| span.contains(*term));
            content.filter(|term| !is_value(term)).cloned().collect()
        };
        let (own, others) = (frame(earlier), frame(later));
        let shared = own.intersection(&others).count();
        let only =
            |one: &BTreeSet<String>, other: &BTreeSet<String>, context: &BTreeSet<String>| {
                let alone: Vec<bool> = one
                    .difference(other)
                    .map(|term| context.contains(term))
                    .collect();
                (
                    alone.len(),
                    alone.iter().filter(|is_known| !**is_known).count(),
                )
            };
        let (own_alone, own_unknown) = only(&own, &others, &later_text.context);
        let (others_alone, others_unknown) = only(&others, &own, &text.context);
        let is_marked = later.is_change;
        let is_same = match (own_alone, others_alone) {
            (0, 0) => true,
            // The later ruling leaves out the subject: its text has to name it.
            (_, 0) => own_unknown < own_alone || (shared >= 2 && is_marked),
            // The later ruling is about something narrower.
            (0, _) => others_unknown == 0 || (is_marked && shared >= 1 && others_unknown <= 1),
            _ => {
                (own_unknown == 0 || others_unknown == 0) && shared >= 2 || is_marked && shared >= 3
            }
        };
        Self { is_same, shared }
    }
}

fn tokens(text: &str) -> Vec<WordToken> {
    let mut tokens: Vec<WordToken> = Vec::new();
    let start = text.as_ptr().addr();
    // Most Latin words among those of another script are names.
    let is_other_script = text.chars().any(|c| c >= '\u{400}' && c.is_alphabetic());
    let mut end = 0;
    // The end of the last number, which may have several words.
    let mut number_end = 0;
    words(text, |word| {
        let first = word.written.as_ptr().addr() - start;
        if first < number_end
            || matches!(word.role, Role::Part | Role::LongForm)
            || tokens.len() >= MAX_TOKENS
        {
            return;
        }
        let between = text.get(end..first).unwrap_or_default();
        let gap = match end {
            0 => Gap::Blank,
            _ => gap(between),
        };
        let is_in_path = |end: usize| {
            text.get(end..)
                .is_some_and(|rest| rest.starts_with(['/', '_']))
        };
        let number = number_at(text.get(first..).unwrap_or_default())
            .filter(|(_, length)| !is_in_path(first + length))
            .filter(|_| gap != Gap::Joined || between == "-" || between == ":");
        let is_first = end == 0 || gap == Gap::Clause && between.contains([':', '"']);
        let last = number
            .as_ref()
            .map_or(word.written.len(), |(_, length)| *length);
        end = first + last;
        if number.is_some() {
            number_end = end;
        }
        let is_ticked = text[..first].matches('`').count() % 2 == 1;
        let starts = |c: fn(char) -> bool| word.written.starts_with(c);
        let is_code = between.ends_with(['/', '.', '_', '@']) && gap == Gap::Joined
            || text[end..].starts_with(['/', '_'])
            || text[end..].starts_with('.') && text[end + 1..].starts_with(char::is_alphanumeric);
        let is_number = number.is_some();
        // The parts of a path or a dotted name are one token.
        let is_part = !between.is_empty() && between.chars().all(|c| "/._@".contains(c));
        if let Some(before) = tokens.last_mut()
            && is_part
            && !is_number
            && !before.is_number
        {
            before.term = format!("{}{JOINT}{}", before.term, word.term);
            before.at.end = end;
            before.is_specific = true;
            before.is_light = false;
            return;
        }
        tokens.push(WordToken {
            term: number.map_or_else(|| word.term.to_owned(), |(number, _)| format!("#{number}")),
            is_light: !is_number
                && !is_ticked
                && (word.is_stop_word() || LIGHT.contains(word.folded)),
            folded: word.folded.to_owned(),
            at: first..end,
            gap,
            is_number,
            is_specific: is_number
                || is_ticked
                || is_code
                || word.is_identifier()
                || is_other_script && starts(|c| c.is_ascii_alphabetic())
                || starts(char::is_uppercase) && !is_first
                || word.written.len() > 1 && word.written.chars().all(char::is_uppercase),
        });
    });
    tokens
}

fn gap(between: &str) -> Gap {
    if ["→", "->", "=>", "➜"]
        .iter()
        .any(|arrow| between.contains(arrow))
    {
        Gap::Arrow
    } else if between.is_empty()
        || !between.contains(char::is_whitespace) && between.chars().all(|c| "-._/@:'’".contains(c))
    {
        Gap::Joined
    } else if between.contains([
        ',', ';', ':', '(', ')', '—', '–', '，', '、', '：', '（', '）', '"',
    ]) || between.contains(" - ")
    {
        Gap::Clause
    } else {
        Gap::Blank
    }
}

#[cfg(test)]
mod tests;
