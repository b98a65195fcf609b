//! Finds statements that a later text gives up in so many words: "no longer 8080", "we moved from X
//! to Y", "X is gone", "instead of X we use Y now".
//!
//! The later text has to name the earlier [value](crate::values), and both sentences need the same
//! subject: if each has a content word that the other lacks, they are not related. In doubt nothing
//! is corrected, because a wrong correction is worse than none.

mod phrases;

use std::{cell::OnceCell, collections::BTreeSet};

pub(crate) use self::phrases::LIGHT;
use self::phrases::{
    AFTER, AROUND, ASSERTIONS, AUXILIARIES, BEFORE, CHANGES, CLASSES, DECLARED, DENIALS, ENDED,
    FAILURES, FROM_TO, PREPOSITIONS, REASONS, TRIGGERS, VERBS,
};
use crate::{
    sanitize, statement,
    terms::words,
    truncate,
    values::{Token, TokenKind, tokens},
    word_list::is_in,
};

/// Limits on the read part of a text.
const MAX_LENGTH: usize = 16 * 1024;
const MAX_SENTENCES: usize = 120;

/// The maximum length of a quoted sentence, in characters.
const MAX_QUOTE: usize = 200;

/// How many words may stand between a phrase and the value after it, and before it.
const MAX_AFTER: usize = 3;
const MAX_BEFORE: usize = 1;

/// The part of a session's note that quotes the person, and those that state nothing.
const SAID: &str = "Said";
const SKIPPED: &str = "Ask|Files|Branch|Committed|Next steps|Still failing|Failed and fixed|Fixed";

/// Returns whether a sentence gives a value up.
pub fn gives_value_up(sentence: &str) -> bool {
    if !may_give_up(&sentence.to_lowercase()) {
        return false;
    }
    let sentence = Sentence::parse(sentence, true);
    let mut given_up = sentence.given_up().iter();
    given_up.any(|(place, _)| sentence.tokens()[*place].is_value())
}

/// Returns whether a sentence gives up something that is a word of a name.
pub fn gives_up(sentence: &str, name: &str) -> bool {
    let name = Sentence::parse(name, true);
    let sentence = Sentence::parse(sentence, true);
    sentence.given_up().iter().any(|&(place, _)| {
        // "The error of X is gone" gives up the error.
        let is_part = place > 1
            && sentence.is(place - 1, "of|in|on|with")
            && !sentence.is(place - 2, "instead|place|rid");
        let key = sentence.tokens()[place].key.as_str();
        !is_part && name.content().any(|word| word == key)
    })
}

/// Returns whether a text in lower case has a word without which nothing is given up.
fn may_give_up(lower: &str) -> bool {
    TRIGGERS.split('|').any(|word| lower.contains(word))
}

/// The kind of note that is read for statements that give something up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteText {
    /// A note that a person or an agent wrote.
    Written,
    /// A session's note. Only what the person said in it gives something up, and its title is about
    /// the session.
    Session,
}

/// A sentence. Most are never split into tokens, because nothing in them gives a value up.
#[derive(Debug, Default)]
struct Sentence<'a> {
    text: &'a str,
    is_said: bool,
    tokens: OnceCell<Vec<Token<'a>>>,
    clauses: OnceCell<Vec<usize>>,
    light: OnceCell<Vec<bool>>,
    given_up: OnceCell<Vec<(usize, Option<usize>)>>,
}

/// A text as sentences that state something.
#[derive(Debug)]
pub struct Statements<'a> {
    kind: NoteText,
    /// The sentences, the title last.
    sentences: Vec<Sentence<'a>>,
    /// How many of them state something.
    stated: usize,
    /// The subject that the title names.
    title: OnceCell<BTreeSet<String>>,
    /// The words that a sentence may leave out, because the text has them.
    context: OnceCell<BTreeSet<String>>,
}

/// A value that a sentence gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    sentence: usize,
    token: usize,
    now: Option<usize>,
    /// The sentence says "correction:" and only names the new value, at `token`.
    is_declared: bool,
    /// A term by which texts that have the value can be found.
    pub term: String,
}

/// A correction of an earlier text by a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The given up value, as the earlier text writes it.
    pub was: String,
    /// The key of the given up value, and that of the value instead of it.
    pub old: String,
    /// See `old`.
    pub new: Option<String>,
    /// The later sentence.
    pub says: String,
}

/// The content words of a sentence beside its values.
#[derive(Debug, Default)]
struct Frame<'a> {
    words: BTreeSet<&'a str>,
    /// Those before the verb.
    head: BTreeSet<&'a str>,
    /// Neighbouring words.
    compounds: Vec<(&'a str, &'a str)>,
}

impl<'a> Statements<'a> {
    /// Reads a text.
    pub fn parse(title: &'a str, body: &'a str, kind: NoteText) -> Self {
        let mut sentences = Vec::new();
        let (mut label, mut is_code) = ("", false);
        for line in statement::sentences(sanitize::head(body, MAX_LENGTH)) {
            let mut text = line.trim().trim_start_matches(['-', '*', '#', '>', ' ']);
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                continue;
            }
            let item = line.trim_start().trim_start_matches("- ");
            let bold = item.strip_prefix("**");
            if let Some((found, rest)) = bold.and_then(|bold| bold.split_once(":**")) {
                (label, text) = (found, rest.trim());
            }
            let is_skipped = is_code || is_in(SKIPPED, label) || is_trailer(text);
            if text.is_empty() || is_skipped || text.ends_with(['?', '？']) {
                continue;
            }
            sentences.push(Sentence::parse(text, label == SAID));
            if sentences.len() == MAX_SENTENCES {
                break;
            }
        }
        // The title of a session's note is about the session.
        let is_stated = kind == NoteText::Written && !body.contains(title);
        let stated = sentences.len() + usize::from(is_stated);
        sentences.push(Sentence::parse(title, false));
        Self {
            kind,
            sentences,
            stated,
            title: OnceCell::new(),
            context: OnceCell::new(),
        }
    }

    fn stated(&self) -> &[Sentence<'a>] {
        self.sentences.get(..self.stated).unwrap_or_default()
    }

    fn title(&self) -> &BTreeSet<String> {
        self.title.get_or_init(|| {
            let heading = self.sentences.last();
            // A title that gives something up is a statement, not a subject.
            let heading = heading.filter(|heading| {
                self.kind == NoteText::Written
                    && heading.given_up().is_empty()
                    && !heading.is_declared()
            });
            let words = heading.map(|heading| heading.frame(None).head);
            words.into_iter().flatten().map(str::to_owned).collect()
        })
    }

    fn context(&self) -> &BTreeSet<String> {
        self.context.get_or_init(|| {
            let sentences = self.sentences.iter();
            let written = sentences.filter(|_| self.kind == NoteText::Written);
            written
                .flat_map(Sentence::content)
                .map(str::to_owned)
                .collect()
        })
    }

    /// Returns the values that the text gives up and does not state elsewhere.
    pub fn given_up(&self) -> Vec<GivenUp> {
        let mut given_up = Vec::new();
        for (place, sentence) in self.stated().iter().enumerate() {
            // "Just run `make`, not `tox`" is about the step at hand.
            let is_order = || sentence.is(0, "just");
            if self.kind == NoteText::Session && (!sentence.is_said || is_order()) {
                continue;
            }
            let mut add = |token, now, is_declared, term| {
                given_up.push(GivenUp {
                    sentence: place,
                    token,
                    now,
                    is_declared,
                    term,
                });
            };
            for (token, now) in sentence.given_up().iter().copied() {
                let Some(value) = sentence.tokens().get(token) else {
                    continue;
                };
                if self.stated().iter().any(|other| other.states(&value.key)) {
                    continue;
                }
                let term = search_term(value.key.trim_start_matches('#').split('_'));
                add(token, now, false, term);
            }
            if let Some(token) = sentence.declared() {
                let term = search_term(sentence.frame(Some((token, None))).words.into_iter());
                add(token, Some(token), true, term);
            }
        }
        given_up
    }

    /// Returns what a later text corrects in this one.
    pub fn corrected_by(&self, later: &Statements<'_>, given_up: &GivenUp) -> Option<Correction> {
        let by = later.sentences.get(given_up.sentence)?;
        let old = by.tokens().get(given_up.token)?;
        let new = given_up.now.and_then(|now| by.tokens().get(now));
        let frame = OnceCell::new();
        let frame = || frame.get_or_init(|| by.frame(Some((given_up.token, given_up.now))));
        let is_new_name = new.is_some_and(|new| new.kind == TokenKind::Name);
        self.stated().iter().find_map(|sentence| {
            let place = if given_up.is_declared {
                sentence.replaced_by(old, frame())?
            } else {
                sentence.place_of(&old.key)?
            };
            let value = sentence.tokens().get(place)?;
            let is_current = sentence.given_up().iter().all(|(gone, _)| *gone != place);
            let is_value = value.is_value()
                || old.is_value()
                || is_new_name && old.kind == TokenKind::Capitalised;
            let is_same = is_current
                && is_value
                && self.is_same_subject(
                    &sentence.frame(Some((place, None))),
                    later,
                    frame(),
                    old.is_number(),
                );
            is_same.then(|| Correction {
                was: value.written.to_owned(),
                old: value.key.clone(),
                new: new.map(|new| new.key.clone()),
                says: truncate::line(by.text, MAX_QUOTE),
            })
        })
    }

    /// Returns whether a later sentence is about the subject of one of this text.
    fn is_same_subject(
        &self,
        own: &Frame<'_>,
        later: &Statements<'_>,
        by: &Frame<'_>,
        is_number: bool,
    ) -> bool {
        let is_known = |word: &str, frame: &Frame<'_>, text: &Statements<'_>| {
            frame.words.contains(word) || text.context().contains(word)
        };
        let lacks = |words: &BTreeSet<&str>, frame: &Frame<'_>, text: &Statements<'_>| {
            let mut words = words.iter().filter(|word| !is_in(CLASSES, word));
            words.any(|word| !is_known(word, frame, text))
        };
        let titles: [BTreeSet<&str>; 2] =
            [self.title(), later.title()].map(|text| text.iter().map(String::as_str).collect());
        // A sentence without a subject is about that of its title.
        let subject = if by.words.is_empty() {
            &titles[1]
        } else {
            &by.words
        };
        if lacks(&own.words, by, later) && lacks(subject, own, self)
            || lacks(&titles[0], by, later) && lacks(&titles[1], own, self)
        {
            return false;
        }
        // "the staging database" is not "the database".
        let is_narrower = |one: &Frame<'_>, other: &Frame<'_>, text: &Statements<'_>| {
            one.compounds.iter().any(|(first, second)| {
                other.words.contains(second) && !is_known(first, other, text)
            })
        };
        if is_narrower(own, by, later) || is_narrower(by, own, self) {
            return false;
        }
        if is_number {
            // A number identifies nothing by itself.
            let is_shared = subject.iter().any(|word| own.words.contains(word));
            is_shared && own.head.iter().all(|word| is_known(word, by, later))
        } else {
            // What is given up for one thing may hold for others.
            !own.words.is_empty() || !lacks(&by.head, own, self)
        }
    }
}

impl<'a> Sentence<'a> {
    fn parse(text: &'a str, is_said: bool) -> Self {
        Self {
            text,
            is_said,
            ..Self::default()
        }
    }

    fn tokens(&self) -> &[Token<'a>] {
        self.tokens.get_or_init(|| tokens(self.text))
    }

    /// Returns whether the token at a place says nothing about the subject.
    fn is_light(&self, place: usize) -> bool {
        let light = || self.tokens().iter().map(is_light).collect();
        self.light.get_or_init(light).get(place) == Some(&true)
    }

    /// Returns the clause of each token. A reason is a clause of its own.
    fn clauses(&self) -> &[usize] {
        self.clauses.get_or_init(|| {
            let (mut clause, mut end) = (0, 0);
            let clauses = self.tokens().iter().enumerate().map(|(place, token)| {
                let gap = self.text.get(end..token.at.start).unwrap_or_default();
                end = token.at.end;
                let is_mark = |c: char| ",;:()—–，；：（）、。".contains(c);
                let is_border = gap.contains(is_mark) || gap.contains(" - ");
                let is_reason = token.is(REASONS);
                clause += usize::from(place > 0 && (is_border || is_reason));
                clause
            });
            clauses.collect()
        })
    }

    /// Returns whether it is announced as a correction: "Correction: …".
    fn is_declared(&self) -> bool {
        let lower = self.text.to_lowercase();
        DECLARED.split('|').any(|word| lower.contains(word))
            && self.clauses().get(1) == Some(&1)
            && self.is(0, DECLARED)
    }

    /// Returns the place of the only value of the clause after "Correction:".
    fn declared(&self) -> Option<usize> {
        if !self.is_declared() {
            return None;
        }
        let in_clause = |place: &usize| self.clauses().get(*place) == Some(&1);
        let is_value = |place: &usize| self.tokens()[*place].is_value();
        let mut values = (0..self.tokens().len()).filter(in_clause).filter(is_value);
        let value = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// Returns the place of the only value that another one of the same sort can stand for, if
    /// the words around both are the same.
    fn replaced_by(&self, new: &Token<'_>, by: &Frame<'_>) -> Option<usize> {
        let unit = |token: &Token<'_>| {
            token
                .key
                .trim_start_matches(['#', '.'])
                .replace(|c: char| c.is_ascii_digit(), "")
        };
        let is_sort = |place: &usize| {
            let token = &self.tokens()[*place];
            token.is_value()
                && token.kind == new.kind
                && (!token.is_number() || unit(token) == unit(new))
        };
        let mut places = (0..self.tokens().len()).filter(is_sort);
        let place = places.next().filter(|_| places.next().is_none())?;
        let own = self.frame(Some((place, None)));
        let is_other = self.tokens()[place].key != new.key;
        (is_other && own.words.len() > 1 && own.words == by.words).then_some(place)
    }

    /// Returns whether the token at a place is one of the words of a list.
    fn is(&self, place: usize, list: &str) -> bool {
        self.tokens().get(place).is_some_and(|token| token.is(list))
    }

    fn place_of(&self, key: &str) -> Option<usize> {
        self.tokens().iter().position(|token| token.key == key)
    }

    /// Returns the content words.
    fn content(&self) -> impl Iterator<Item = &str> {
        let tokens = self.tokens().iter().enumerate();
        let content = tokens.filter(|(place, _)| !self.is_light(*place));
        content.map(|(_, token)| token.key.as_str())
    }

    /// Returns whether it says that a value holds.
    fn states(&self, key: &str) -> bool {
        const PAST: &str = "was|were|had|before|previously|formerly|until|war|waren|bisher|old";
        let Some(place) = self.place_of(key) else {
            return false;
        };
        !self.tokens().iter().any(|token| token.is(PAST))
            && self.given_up().iter().all(|(gone, _)| *gone != place)
    }

    /// Returns the places of the values that it gives up, each with that of the value instead.
    fn given_up(&self) -> &[(usize, Option<usize>)] {
        self.given_up.get_or_init(|| self.find_given_up())
    }

    fn find_given_up(&self) -> Vec<(usize, Option<usize>)> {
        let lower = self.text.to_lowercase();
        if lower.len() != self.text.len() || !may_give_up(&lower) {
            return Vec::new();
        }
        let mut found: Vec<usize> = Vec::new();
        for before in BEFORE.split('|') {
            let places = cues(&lower, before);
            found.extend(places.filter_map(|at| self.value_before(at)));
        }
        if ENDED.split('|').any(|word| lower.contains(word)) {
            found.extend(self.ended());
        }
        for after in AFTER.split('|') {
            let places = cues(&lower, after);
            found.extend(places.filter_map(|at| self.value_after(at + after.len(), lower.len())));
        }
        for (first, second) in AROUND {
            found.extend(self.between(&lower, first, second));
        }
        let moved = FROM_TO.iter();
        let moved = moved.filter_map(|(first, second)| self.between(&lower, first, second));
        found.extend(moved.filter(|_| self.tokens().iter().any(|token| token.is(CHANGES))));
        found.extend(self.contrasted(&lower));
        let end = lower.trim_end_matches(|c: char| !c.is_alphanumeric());
        if ASSERTIONS.split('|').any(|word| end.ends_with(word)) {
            found.extend(self.contrasted_subject());
        }
        found.sort_unstable();
        found.dedup();
        let is_gone = |place: &usize| found.contains(place);
        let other = |old: usize| {
            let is_number = self.tokens().get(old)?.is_number();
            let is_new = |place: &usize| {
                let token = self.tokens().get(*place).filter(|_| !is_gone(place));
                token.is_some_and(|it| it.is_value() && it.is_number() == is_number)
            };
            let after = (old + 1..self.tokens().len()).find(is_new);
            after.or_else(|| (0..old).rev().find(is_new))
        };
        found.iter().map(|old| (*old, other(*old))).collect()
    }

    /// Returns the value after a phrase, before `limit`.
    fn value_after(&self, start: usize, limit: usize) -> Option<usize> {
        let mut tokens = (0..self.tokens().len()).filter(|place| {
            let at = &self.tokens()[*place].at;
            at.start >= start && at.end <= limit
        });
        let first = tokens.next()?;
        if self.is(first, FAILURES) {
            return None;
        }
        let clause = self.clauses()[first];
        let near = std::iter::once(first).chain(tokens);
        let mut passed = 0;
        let mut word = None;
        for place in near.take_while(|place| self.clauses()[*place] == clause) {
            let token = &self.tokens()[place];
            if token.is("for|fur|para|pour") || passed > MAX_AFTER {
                break;
            }
            if token.is_value() {
                return Some(place);
            }
            if !self.is_light(place) {
                passed += 1;
                word.get_or_insert(place);
            }
        }
        word
    }

    /// Returns the value before a phrase.
    fn value_before(&self, end: usize) -> Option<usize> {
        let last = self
            .tokens()
            .iter()
            .rposition(|token| token.at.end <= end)?;
        let clause = self.clauses()[last];
        let mut passed = 0;
        let near = (0..=last)
            .rev()
            .take_while(|place| self.clauses()[*place] == clause);
        let mut word = None;
        for place in near {
            let token = &self.tokens()[place];
            if token.is_value() {
                return Some(place);
            }
            if passed > MAX_BEFORE || token.is(PREPOSITIONS) {
                break;
            }
            if !self.is_light(place) {
                passed += 1;
                word.get_or_insert(place);
            }
        }
        word
    }

    /// Returns the values that ended: "X is gone", "X was replaced by Y".
    fn ended(&self) -> Vec<usize> {
        let ends = (1..self.tokens().len())
            .filter(|place| self.is(*place, ENDED) && self.is(place - 1, AUXILIARIES));
        ends.filter_map(|place| {
            let has_been = place > 1 && self.is(place - 2, "has|have|had");
            let verb = place - 1 - usize::from(has_been);
            self.value_before(self.tokens().get(verb)?.at.start)
        })
        .collect()
    }

    /// Returns the value between two phrases of one clause.
    fn between(&self, lower: &str, first: &str, second: &str) -> Option<usize> {
        first.split('|').find_map(|first| {
            cues(lower, first).find_map(|at| {
                let start = at + first.len();
                let ends = second
                    .split('|')
                    .flat_map(|second| cues(lower.get(start..).unwrap_or_default(), second));
                let end = start + ends.min()?;
                let place = self.value_after(start, end)?;
                let next = self.tokens().iter().position(|token| token.at.start >= end);
                let clause = next.map_or(self.clauses()[place], |next| self.clauses()[next]);
                (clause <= self.clauses()[place] + 1).then_some(place)
            })
        })
    }

    /// Returns the value of "Y, not X".
    fn contrasted(&self, lower: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for phrase in [", not ", ", nicht ", ", no ", ", pas "] {
            for (at, _) in lower.match_indices(phrase) {
                let Some(old) = self.value_after(at + phrase.len(), lower.len()) else {
                    continue;
                };
                let is_number = self.tokens()[old].is_number();
                let is_new = |token: &Token<'_>| {
                    token.at.end <= at && token.is_value() && token.is_number() == is_number
                };
                let next = self
                    .tokens()
                    .iter()
                    .position(|token| token.at.start > at + 1);
                // Only the value follows "not".
                let is_next = next.is_some_and(|next| next + 2 >= old);
                if is_next && self.tokens().iter().any(is_new) {
                    found.push(old);
                }
            }
        }
        found
    }

    /// Returns the subject of "X does not …, Y does".
    fn contrasted_subject(&self) -> Option<usize> {
        let last = self.tokens().len().checked_sub(1)?;
        let new = last.checked_sub(1).filter(|_| self.is(last, ASSERTIONS))?;
        let is_own_clause = self.clauses()[new] > self.clauses()[new.checked_sub(1)?];
        let old = (0..new).find(|place| {
            self.is(place + 1, DENIALS)
                || self.is(place + 1, ASSERTIONS) && self.is(place + 2, "not|no")
        })?;
        let is_name = self.tokens()[new].is_value() && is_own_clause;
        is_name.then_some(old)
    }

    /// Returns the content words, without the old and the new value, up to the clause of the old one.
    fn frame(&self, values: Option<(usize, Option<usize>)>) -> Frame<'_> {
        let old = values.map(|(old, _)| old);
        let new = values.and_then(|(_, new)| new);
        let last = old.map_or(usize::MAX, |old| self.clauses()[old]);
        let mut frame = Frame::default();
        let mut is_head = true;
        // "It's ruff, flake8 was removed": what "it" is, is no subject.
        let says_it = |clause: usize| {
            let in_clause = |place: &usize| self.clauses()[*place] == clause;
            let words: Vec<usize> = (0..self.tokens().len()).filter(in_clause).collect();
            words.iter().any(|place| self.is(*place, "it"))
                && words.iter().filter(|place| !self.is_light(**place)).count() == 1
        };
        let mut before: Option<(usize, &str)> = None;
        for (place, token) in self.tokens().iter().enumerate() {
            let is_verb = || token.is(VERBS) || token.is("no|not|nicht|instead|from|von");
            let is_value = Some(place) == old || Some(place) == new;
            is_head = is_head && !is_value && !is_verb();
            let clause = self.clauses()[place];
            let is_other = clause > last || clause < last && old.is_some() && says_it(clause);
            if is_value || is_other || token.is_number() || self.is_light(place) {
                continue;
            }
            let key = token.key.as_str();
            frame.words.insert(key);
            if is_head {
                frame.head.insert(key);
            }
            if let Some((neighbour, word)) = before
                && neighbour + 1 == place
                && self.clauses()[neighbour] == self.clauses()[place]
            {
                frame.compounds.push((word, key));
            }
            before = Some((place, key));
        }
        frame
    }
}

/// Returns the word by which texts that have a value can be found: the longest one that is indexed.
fn search_term<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let is_indexed = |part: &&str| {
        let mut is_indexed = false;
        words(part, |word| is_indexed |= !word.is_stop_word());
        is_indexed
    };
    let term = parts.filter(is_indexed).max_by_key(|part| part.len());
    let term = term.unwrap_or_default();
    let digits = term.starts_with(|c: char| c.is_ascii_digit());
    let end = term.find(|c: char| digits && !c.is_ascii_digit());
    term[..end.unwrap_or(term.len())].to_owned()
}

/// Returns whether a token says nothing about the subject.
fn is_light(token: &Token<'_>) -> bool {
    if token.is_value() {
        return false;
    }
    let mut is_stop_word = false;
    words(token.written, |word| is_stop_word |= word.is_stop_word());
    let is_listed = || token.is(LIGHT) || token.is(VERBS) || token.is(PREPOSITIONS);
    is_stop_word || token.written.len() < 2 || is_listed()
}

/// Returns whether a line is a trailer of a commit.
fn is_trailer(line: &str) -> bool {
    const TRAILERS: &str =
        "Fixes|Closes|Refs|Resolves|Co-authored-by:|Signed-off-by:|Co-Authored-By:";
    TRAILERS.split('|').any(|trailer| line.starts_with(trailer))
}

/// Returns the positions of a phrase in a text in lower case, as whole words.
fn cues<'a>(lower: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |c: char| c.is_alphanumeric() && c < '\u{2e80}';
    lower.match_indices(phrase).filter_map(move |(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + phrase.len()..].chars().next();
        let begins = !phrase.starts_with(is_word) || !before.is_some_and(is_word);
        let is_contraction = phrase == "n't" || phrase == "n'";
        let ends = !phrase.ends_with(is_word) || !after.is_some_and(is_word);
        ((begins || is_contraction) && ends).then_some(at)
    })
}

#[cfg(test)]
mod tests;
