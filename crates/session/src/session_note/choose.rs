//! Chooses the most telling lines under a budget of characters.

use std::collections::{HashMap, HashSet};

use anamnesis_text::values::has_other_values;

use crate::{phrases::Words, prose::shorten};

/// A line that may be chosen.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    /// How much it tells; 0 or less is never chosen.
    pub(super) weight: f32,
    /// The turn it belongs to.
    pub(super) turn: usize,
    /// Its position in the turn.
    pub(super) position: usize,
    pub(super) text: String,
}

/// The limits of a list.
#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    /// The characters of all lines.
    pub(super) characters: usize,
    /// The characters of one line.
    pub(super) line: usize,
    pub(super) lines: usize,
    pub(super) lines_per_turn: usize,
}

/// Chooses lines by weight, of equal weight the newest, and returns them with their turns, in the order
/// of the session.
/// A line that mostly repeats a chosen one is left out.
pub(super) fn choose(mut candidates: Vec<Candidate>, limits: Limits) -> Vec<(usize, String)> {
    candidates.retain(|candidate| candidate.weight > 0.0);
    candidates.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then((b.turn, a.position).cmp(&(a.turn, b.position)))
    });
    let mut chosen: Vec<(usize, usize, String)> = Vec::new();
    let mut known: Vec<LineWords> = Vec::new();
    let mut per_turn: HashMap<usize, usize> = HashMap::new();
    let mut used = 0;
    for candidate in candidates {
        if chosen.len() == limits.lines {
            break;
        }
        let text = shorten(&candidate.text, limits.line);
        let length = text.chars().count();
        let words = word_set(&text);
        let count = per_turn.entry(candidate.turn).or_default();
        if *count < limits.lines_per_turn
            && used + length <= limits.characters
            && !known.iter().any(|other| repeats(&words, other))
        {
            *count += 1;
            used += length;
            known.push(words);
            chosen.push((candidate.turn, candidate.position, text));
        }
    }
    chosen.sort();
    chosen
        .into_iter()
        .map(|(turn, _, text)| (turn, text))
        .collect()
}

/// A line and its words.
#[derive(Debug, Clone)]
pub(super) struct LineWords {
    text: String,
    words: HashSet<String>,
}

impl PartialEq for LineWords {
    fn eq(&self, other: &Self) -> bool {
        self.words == other.words
    }
}

pub(super) fn word_set(text: &str) -> LineWords {
    LineWords {
        text: text.to_owned(),
        words: Words::new(text).iter().map(str::to_owned).collect(),
    }
}

/// Texts that are not to be repeated.
pub(super) struct Known(Vec<LineWords>);

impl Known {
    pub(super) fn new(texts: &[String]) -> Self {
        Self(texts.iter().map(|text| word_set(text)).collect())
    }

    /// Returns whether a text repeats one of them.
    pub(super) fn has(&self, text: &str) -> bool {
        let words = word_set(text);
        self.0.iter().any(|known| repeats(&words, known))
    }
}

/// Returns whether a text is a part of a known one, or most words of the shorter are in the other and
/// neither has a value that the other lacks: "The api listens on 8080" does not repeat "The admin listens
/// on 8081".
pub(super) fn repeats(text: &LineWords, known: &LineWords) -> bool {
    let shorter = text.words.len().min(known.words.len()).max(1);
    known.text.contains(&text.text)
        || text.words.intersection(&known.words).count() * 10 >= shorter * 6
            && !has_other_values(&text.text, &known.text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn candidate(weight: f32, turn: usize, text: &str) -> Candidate {
        Candidate {
            weight,
            turn,
            position: 0,
            text: text.to_owned(),
        }
    }

    fn texts(lines: &[Candidate]) -> Vec<String> {
        let chosen = choose(lines.to_vec(), LIMITS);
        chosen.into_iter().map(|(_, text)| text).collect()
    }

    const LIMITS: Limits = Limits {
        characters: 40,
        line: 20,
        lines: 3,
        lines_per_turn: 1,
    };

    #[test]
    fn a_line_with_another_value_is_no_repetition() {
        for (one, other, is_repeated) in [
            (
                "The api listens on port 8080.",
                "The admin listens on port 8081.",
                false,
            ),
            (
                "The api listens on port 8080.",
                "The api always listens on port 8080",
                true,
            ),
            (
                "Run `make lint` before a push",
                "Run `make test` before a push",
                false,
            ),
        ] {
            let [one, other] = [one, other].map(word_set);
            assert_eq!(repeats(&one, &other), is_repeated, "{one:?} {other:?}");
        }
    }

    #[test]
    fn the_heaviest_lines_come_in_the_order_of_the_session() {
        let lines = [
            candidate(1.0, 2, "third"),
            candidate(3.0, 0, "first"),
            candidate(0.0, 3, "nothing"),
            candidate(2.0, 1, "second"),
            candidate(2.5, 0, "same turn"),
            candidate(0.5, 4, "one too many"),
        ];
        assert_eq!(texts(&lines), ["first", "second", "third"]);
    }

    #[test]
    fn repetitions_and_lines_over_the_budget_are_left_out() {
        let lines = [
            candidate(3.0, 0, "use pnpm for builds"),
            candidate(2.0, 1, "use pnpm for builds please"),
            candidate(1.5, 2, "wordy but still quite short"),
            candidate(1.0, 3, "a long line that does not fit"),
        ];
        assert_eq!(texts(&lines), ["use pnpm for builds", "wordy but still …"]);
    }
}
