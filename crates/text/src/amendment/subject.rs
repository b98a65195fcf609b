//! Finds the sentence of a later text that is about the subject of an earlier one, in whatever words.
//!
//! A sentence that changes another one names its subject or its value. So two sentences are taken to
//! be about the same if they share a telling value, what a question asks for, or much of their
//! words, each weighted by its rarity. This is weak evidence: the caller shows both texts.

use std::collections::BTreeSet;

use super::{Gap, JOINT, Ruling, Rulings, dimension};

/// The least rarity of a word that tells by itself what a text is about.
const TELLING: f64 = 0.6;

/// The same, for a word that a clause begins with.
const TOPIC_TELLING: f64 = 0.75;

/// The rarity of a number of few digits, and the least number of digits of others.
const NUMBER_RARITY: f64 = 0.3;
const MIN_DIGITS: usize = 3;

/// The least share of what a question asks for, of the words of the shorter sentence, and of the
/// later one if both share a single word only.
const ASKED_SHARE: f64 = 0.6;
const MIN_SHARE: f64 = 0.5;
const SINGLE_SHARE: f64 = 0.3;

/// What a named value and other signs add to the share of shared words.
const VALUE: f64 = 1.0;
const SIGN: f64 = 0.4;

/// The sentences of a text that matter.
#[derive(Debug, Clone, Copy)]
pub enum Focus<'a> {
    /// Those with the most of these terms; all if none has one.
    Asked(&'a BTreeSet<String>),
    /// The one that changes another text, at this place: what it adds to that text.
    Change {
        /// Where it is.
        at: usize,
        /// The changed text.
        of: &'a Rulings,
    },
}

/// A sentence of a later text about the subject of an earlier one.
#[derive(Debug, Clone, PartialEq)]
pub struct LaterSentence {
    /// How much speaks for the same subject.
    pub weight: f64,
    /// Where it is in its text.
    pub at: usize,
    /// What the earlier text says.
    pub was: String,
}

/// The shared words of two sentences.
struct SharedWords<'a> {
    earlier: &'a Ruling,
    later: &'a Ruling,
    terms: BTreeSet<String>,
    focus: Focus<'a>,
    rarity: &'a dyn Fn(&str) -> f64,
}

impl Rulings {
    /// Returns the terms of the sentences that matter, to look up texts about the same.
    pub fn anchors(&self, focus: Focus<'_>) -> BTreeSet<&str> {
        let focused = self.focused(focus).into_iter();
        focused
            .flat_map(Ruling::terms)
            .flat_map(|term| looked_up(term))
            .collect()
    }

    /// Returns the sentence of a later text that is most likely about the subject of this one.
    /// `rarity` tells how rare a term is, from 0 to 1.
    pub fn followed_by(
        &self,
        later: &Self,
        focus: Focus<'_>,
        rarity: &dyn Fn(&str) -> f64,
    ) -> Option<LaterSentence> {
        let mut best = None::<LaterSentence>;
        for earlier in self.focused(focus) {
            // A text that still says the same changes nothing.
            let mut rulings = later.rulings.iter();
            if rulings.any(|ruling| ruling.repeats(earlier) && earlier.repeats(ruling)) {
                continue;
            }
            for ruling in &later.rulings {
                let words = SharedWords {
                    earlier,
                    later: ruling,
                    terms: earlier.shared(ruling),
                    focus,
                    rarity,
                };
                let is_new = ruling.terms().any(|term| !earlier.has(term))
                    // `__session` has the words of `session`.
                    || ruling.text.split('`').skip(1).step_by(2).any(|name| !earlier.text.contains(name));
                let weight = words.weight().filter(|_| is_new);
                if let Some(weight) = weight
                    && best.as_ref().is_none_or(|best| weight > best.weight)
                {
                    best = Some(LaterSentence {
                        weight,
                        at: ruling.at,
                        was: earlier.written(&BTreeSet::from([String::new()])),
                    });
                }
            }
        }
        best
    }

    fn has(&self, term: &str) -> bool {
        self.rulings.iter().any(|ruling| ruling.has(term))
    }

    fn focused(&self, focus: Focus<'_>) -> Vec<&Ruling> {
        let ruled = self.rulings.iter().filter(|ruling| ruling.is_ruled);
        let asked = |ruling: &Ruling| match focus {
            Focus::Asked(terms) => ruling.asked(terms).count(),
            Focus::Change { at, .. } => usize::from(ruling.at == at),
        };
        let most = ruled.clone().map(asked).max().unwrap_or_default();
        ruled.filter(|ruling| asked(ruling) == most).collect()
    }
}

impl Ruling {
    /// Returns whether a clause begins with a term, or with a compound that has it: it is what the
    /// clause is about.
    fn is_topic(&self, term: &str) -> bool {
        // Words of the clause so far: none, an article, the compound, others.
        let mut state = 0;
        self.tokens.iter().any(|token| {
            if token.gap == Gap::Clause {
                state = 0;
            }
            state = match (state, token.is_light) {
                (0, true) => 1,
                (0..=2, false) => 2,
                _ => 3,
            };
            state == 2 && token.term == term
        })
    }

    /// Returns the pairs of neighbouring content words.
    fn compounds(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.tokens.windows(2).filter_map(|pair| match pair {
            [one, other] if !one.is_light && !other.is_light && other.gap == Gap::Blank => {
                Some((one.term.as_str(), other.term.as_str()))
            }
            _ => None,
        });
        pairs.filter(|(one, other)| !one.starts_with('#') && !other.starts_with('#'))
    }

    fn asked<'a>(&'a self, asked: &'a BTreeSet<String>) -> impl Iterator<Item = &'a String> {
        self.terms()
            .filter(|term| looked_up(term).any(|part| asked.contains(part)))
    }
}

impl SharedWords<'_> {
    fn rarity_of(&self, term: &str) -> f64 {
        if let Some(number) = term.strip_prefix('#')
            && number.len() < MIN_DIGITS
        {
            return NUMBER_RARITY;
        }
        looked_up(term).map(self.rarity).fold(0.0, f64::max)
    }

    fn sum<'b>(&self, terms: impl Iterator<Item = &'b String>) -> f64 {
        terms.map(|term| self.rarity_of(term)).sum()
    }

    /// Returns how much speaks for the same subject, if enough does.
    fn weight(&self) -> Option<f64> {
        if self.terms.is_empty() {
            return None;
        }
        let shared = self.sum(self.terms.iter());
        let [own, others] = [self.earlier, self.later].map(|ruling| self.sum(ruling.terms()));
        let share = shared / own.min(others).max(f64::MIN_POSITIVE);
        let is_two = self.terms.len() >= 2;
        let names_value = self.names_value();
        let names_asked = self.names_asked(is_two || shared >= SINGLE_SHARE * others);
        let is_similar = share >= MIN_SHARE
            && is_two
            && self.has_asked()
            && self.terms.iter().any(|term| self.is_telling(term))
            && !self.has_other_subject();
        let is_enough = if self.later.is_ruled {
            names_value || names_asked || is_similar
        } else {
            is_similar && (names_value || names_asked)
        };
        let signs = [
            (names_value, VALUE),
            (names_asked, SIGN),
            (self.later.is_change(), SIGN),
            (self.has_other_value(), SIGN),
        ];
        let signs = signs.into_iter().filter(|(is, _)| *is);
        is_enough.then(|| share + signs.map(|(_, weight)| weight).sum::<f64>())
    }

    /// Returns whether the later sentence has anything of what is asked for.
    fn has_asked(&self) -> bool {
        let Focus::Asked(asked) = self.focus else {
            return true;
        };
        let mut asked = self.earlier.asked(asked).peekable();
        asked.peek().is_none() || asked.any(|term| self.later.has(term))
    }

    fn is_telling(&self, term: &str) -> bool {
        self.rarity_of(term) >= TELLING
    }

    /// Returns whether the later sentence has the value of the earlier one, or gives it up.
    fn names_value(&self) -> bool {
        let terms = self.terms.iter();
        let is_value = |term: &&String| match self.focus {
            Focus::Asked(asked) => !looked_up(term).any(|part| asked.contains(part)),
            Focus::Change { of, .. } => !of.has(term),
        };
        let values: BTreeSet<String> = terms.filter(is_value).cloned().collect();
        // The first word of "Terraform provisions the accounts" is the value if no other word is.
        let is_first = !self.earlier.values.iter().any(|term| is_value(&term))
            || matches!(self.focus, Focus::Change { .. });
        let is_named = values.iter().any(|term| {
            let least = if self.earlier.values.contains(term) {
                TELLING
            } else if self.later.is_topic(term) || is_first && self.earlier.is_topic(term) {
                TOPIC_TELLING
            } else {
                1.0
            };
            self.rarity_of(term) >= least
        });
        (is_named || self.later.gives_up(&values)) && !self.later.adopts_all(&self.terms)
    }

    /// Returns whether the later sentence has another word instead of what is asked for: "the search
    /// service" instead of "the billing service".
    fn has_other_subject(&self) -> bool {
        let Focus::Asked(asked) = self.focus else {
            return false;
        };
        let mut compounds = self.earlier.compounds();
        let others: Vec<_> = self.later.compounds().collect();
        let is_new = |term: &str| !self.earlier.has(term);
        compounds.any(|(first, second)| {
            asked.contains(first)
                && !self.later.has(first)
                && others
                    .iter()
                    .any(|(one, other)| *other == second && is_new(one))
        })
    }

    /// Returns whether the later sentence is about what is asked for: it has most of it, or the topic
    /// of the earlier one.
    fn names_asked(&self, is_close: bool) -> bool {
        let Focus::Asked(asked) = self.focus else {
            return false;
        };
        let asked: Vec<&String> = self.earlier.asked(asked).collect();
        let both = || asked.iter().copied().filter(|term| self.later.has(term));
        if !both().any(|term| self.is_telling(term)) || self.has_other_subject() {
            return false;
        }
        let is_most = self.sum(both()) >= ASKED_SHARE * self.sum(asked.iter().copied());
        is_most && (is_close || self.later.is_change()) || self.has_topic(&asked)
    }

    /// Returns whether the earlier sentence begins with a telling word of what is asked for, and the
    /// later one begins with it, too, or has it and another value. Both words of a compound count.
    fn has_topic(&self, asked: &[&String]) -> bool {
        let topic = asked.iter().filter(|term| self.earlier.is_topic(term));
        let shared: Vec<_> = topic.clone().filter(|term| self.later.has(term)).collect();
        shared.len() >= topic.count().min(2)
            && shared.iter().any(|term| {
                self.is_telling(term) && (self.later.is_topic(term) || self.has_other_value())
            })
    }

    /// Returns whether each sentence has a value of the same sort that the other lacks: a number of
    /// the same dimension, or a name.
    fn has_other_value(&self) -> bool {
        let [own, others] = [(self.earlier, self.later), (self.later, self.earlier)]
            .map(|(one, other)| one.specific.iter().filter(|term| !other.has(term)));
        let sort = |term: &String| {
            term.strip_prefix('#')
                .map(|number| dimension(number).to_owned())
        };
        let others: Vec<_> = others.map(sort).collect();
        own.map(sort).any(|sort| others.contains(&sort))
    }
}

/// Returns the words under which a term can be looked up: all parts, and a number without its unit.
fn looked_up(term: &str) -> impl Iterator<Item = &str> {
    let number = term.strip_prefix('#');
    let digits = number.map(|number| {
        let end = number.find(|c: char| !c.is_ascii_digit());
        &number[..end.unwrap_or(number.len())]
    });
    digits.unwrap_or(term).split(JOINT)
}
