//! Whether a turn came to say or do by itself what a note says.
//!
//! Single words prove nothing: a long answer has most words of any note. So one sentence of the turn has
//! to have most telling words of one line of the note, or two of its names (paths, identifiers, numbers),
//! and nothing in the session had them before. What a session was asked and which files it had is not
//! what it found out.

use std::collections::HashSet;

use anamnesis_text::terms::{Role, words};

/// The parts of a session's note that tell no result.
const NO_RESULTS: [&str; 4] = ["**Ask:**", "**Asked:**", "**Branch:**", "**Files:**"];

/// The minimum number of shared words, and of shared names.
const MIN_WORDS: usize = 3;
const MIN_NAMES: usize = 2;

/// The shortest word that tells something, in bytes.
const MIN_LENGTH: usize = 4;

/// The words of a text that tell something; which of them are names.
#[derive(Debug, Default)]
pub(super) struct Terms {
    all: HashSet<String>,
    names: HashSet<String>,
}

impl Terms {
    /// Adds the words of a text.
    pub(super) fn add(&mut self, text: &str) {
        words(text, |word| {
            let has_sign = |text: &str| text.contains(|c: char| !c.is_alphabetic());
            let is_name = word.role == Role::Whole || (word.term.len() > 1 && has_sign(word.term));
            if word.role == Role::Part || word.is_stop_word() {
                return;
            }
            if is_name {
                self.names.insert(word.term.to_owned());
            }
            if is_name || word.term.len() >= MIN_LENGTH {
                self.all.insert(word.term.to_owned());
            }
        });
    }

    /// How many of these words it has.
    pub(super) fn count(&self, words: &[String]) -> usize {
        words.iter().filter(|word| self.all.contains(*word)).count()
    }

    fn of(text: &str) -> Self {
        let mut terms = Self::default();
        terms.add(text);
        terms
    }
}

/// Returns the words of the line of a note that a sentence of the turn has, the most of all lines; empty
/// if none has enough. `before` is what the session had.
pub(super) fn found_again(note: &str, before: &Terms, said: &[&str]) -> Vec<String> {
    let spoken: Vec<Terms> = said
        .iter()
        .flat_map(|text| sentences(text))
        .map(Terms::of)
        .collect();
    let mut best = Vec::new();
    for line in results(note).flat_map(sentences) {
        let mut line = Terms::of(line);
        line.all.retain(|word| !before.all.contains(word));
        for sentence in &spoken {
            let shared: Vec<&String> = line.all.intersection(&sentence.all).collect();
            let names = shared
                .iter()
                .filter(|word| line.names.contains(**word))
                .count();
            let is_most = 2 * shared.len() >= line.all.len();
            let is_enough = names >= MIN_NAMES || shared.len() >= MIN_WORDS;
            if is_most && is_enough && shared.len() > best.len() {
                best = shared.into_iter().cloned().collect();
            }
        }
    }
    best.sort_unstable();
    best
}

/// The lines of a note that tell a result, without its title.
fn results(note: &str) -> impl Iterator<Item = &str> {
    let mut is_result = true;
    note.lines().skip(1).filter(move |line| {
        let line = line.trim_start();
        if line.starts_with("**") {
            is_result = !NO_RESULTS.iter().any(|label| line.starts_with(label));
        }
        is_result
    })
}

fn sentences(text: &str) -> impl Iterator<Item = &str> {
    text.lines().flat_map(|line| line.split(". "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOTE: &str = "Nightly export\n  **Asked:** why the export of the ledger stops\n  **Outcome:** \
        The export reads from the replica `ledger-ro`, which cancels statements after 30 seconds.\n  \
        **Files:** ops/export.env, ops/nightly.yaml";

    #[test]
    fn a_sentence_with_most_of_a_line_is_found_again() {
        let again = |before: &str, said: &[&str]| {
            let before = Terms::of(before);
            found_again(NOTE, &before, said)
        };
        let said =
            ["Done.\nThe replica `ledger-ro` cancels a statement after 30 seconds. I raised it."];
        let words = again("why does the export stop", &said);
        assert!(words.iter().any(|word| word == "replica"), "{words:?}");
        // What the session had said before was not found again.
        assert_eq!(again(said[0], &said), [""; 0]);
        // Scattered words, prompts and files are no result.
        let scattered = ["The replica is new.\nIt cancels jobs.\nSeconds later it stops."];
        assert_eq!(again("", &scattered), [""; 0]);
        assert_eq!(again("", &["why the export of the ledger stops"]), [""; 0]);
        assert_eq!(
            again("", &["edit ops/export.env and ops/nightly.yaml"]),
            [""; 0]
        );
    }
}
