//! Masks what the person's own patterns match: ids, customers, host names.
//!
//! `*` in a pattern is any number of characters of a word, `?` is one. Case does not matter. A pattern with
//! a blank is a phrase, without wildcards.

use std::sync::RwLock;

use super::scan::Finding;
use crate::glob;

/// The fewest letters and digits of a pattern. A shorter one would mask half of every text.
const MIN_LETTERS: usize = 3;

static PATTERNS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Sets the patterns of this process. Patterns with fewer than three letters and digits are ignored.
pub fn set_patterns(patterns: &[String]) {
    let letters = |pattern: &String| pattern.chars().filter(|it| it.is_alphanumeric()).count();
    let usable = patterns.iter().filter(|it| letters(it) >= MIN_LETTERS);
    let usable = usable
        .map(|pattern| pattern.trim().to_ascii_lowercase())
        .collect();
    if let Ok(mut own) = PATTERNS.write() {
        *own = usable;
    }
}

/// Finds what the patterns match.
pub(super) fn findings(text: &str) -> Vec<Finding> {
    PATTERNS
        .read()
        .map_or_else(|_| Vec::new(), |own| find(text, &own))
}

fn find(text: &str, patterns: &[String]) -> Vec<Finding> {
    if patterns.is_empty() {
        return Vec::new();
    }
    // Keeps the length of every character.
    let text = text.to_ascii_lowercase();
    let (phrases, words): (Vec<&String>, Vec<&String>) =
        patterns.iter().partition(|pattern| pattern.contains(' '));
    let mut found = Vec::new();
    let mut add = |start: usize, end: usize| {
        found.push(Finding {
            rule: "own",
            start,
            end,
        });
    };
    let is_part = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
    for part in text.split(|letter| !is_part(letter)) {
        let word = part.trim_matches('.');
        // The mark of an earlier pass.
        if word != "redacted" && words.iter().any(|pattern| glob::matches(pattern, word)) {
            let start = word.as_ptr().addr() - text.as_ptr().addr();
            add(start, start + word.len());
        }
    }
    for phrase in phrases {
        for (start, phrase) in text.match_indices(phrase.as_str()) {
            let end = start + phrase.len();
            let is_inside = text[..start].ends_with(char::is_alphanumeric)
                || text[end..].starts_with(char::is_alphanumeric);
            if !is_inside {
                add(start, end);
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_patterns_match_words_and_phrases() {
        let patterns = ["cust-????", "*.corp.example", "müller gmbh", "falcon"].map(str::to_owned);
        let masked = |text: &str| {
            super::super::mask(text, &find(text, &patterns))
                .text
                .into_owned()
        };
        for (text, expected) in [
            ("See CUST-0042.", "See [REDACTED]."),
            ("cust-00421 and xcust-0042", "cust-00421 and xcust-0042"),
            (
                "https://db1.corp.example:5432/x",
                "https://[REDACTED]:5432/x",
            ),
            (
                "for Müller GmbH, not müller gmbhs",
                "for [REDACTED], not müller gmbhs",
            ),
            ("Falcon=on; falcons", "[REDACTED]=on; falcons"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }
}
