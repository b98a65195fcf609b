//! Masks what the person's own patterns match: ids, customers, host names.
//!
//! `*` in a pattern is any number of characters of a word, `?` is one. A word consists of letters, digits,
//! `-`, `_`, `.` and the other characters of the pattern, so `*@corp.example` matches an address. Case
//! does not matter. A pattern with a blank is a phrase, without wildcards.

use std::sync::RwLock;

use super::scan::Finding;
use crate::glob;

/// The fewest letters and digits of a pattern. A shorter one would mask half of every text.
const MIN_LETTERS: usize = 3;

static PATTERNS: RwLock<Vec<String>> = RwLock::new(Vec::new());

/// Sets the patterns of this process. Those that [`check_pattern`] refuses are ignored.
pub fn set_patterns(patterns: &[String]) {
    let usable = patterns.iter().map(|pattern| pattern.trim());
    let usable = usable.filter(|pattern| check_pattern(pattern).is_ok());
    let usable = usable
        .map(|pattern| pattern.chars().map(fold).collect())
        .collect();
    if let Ok(mut own) = PATTERNS.write() {
        *own = usable;
    }
}

/// Returns why a pattern cannot be used.
pub fn check_pattern(pattern: &str) -> Result<(), &'static str> {
    let letters = pattern.chars().filter(|it| it.is_alphanumeric()).count();
    if letters < MIN_LETTERS {
        return Err("expected three or more letters or digits");
    }
    if is_phrase(pattern.trim()) && pattern.contains(['*', '?']) {
        return Err("expected no `*` or `?` in a pattern with a blank");
    }
    Ok(())
}

/// Finds what the patterns match.
pub(super) fn findings(text: &str) -> Vec<Finding> {
    PATTERNS
        .read()
        .map_or_else(|_| Vec::new(), |own| find(text, &own))
}

fn is_phrase(pattern: &str) -> bool {
    pattern.contains(char::is_whitespace)
}

/// Removes the case of a letter.
fn fold(letter: char) -> char {
    match letter {
        'ς' => 'σ',
        _ => letter.to_lowercase().next().unwrap_or(letter),
    }
}

fn find(text: &str, patterns: &[String]) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |part: &str| {
        let start = part.as_ptr().addr() - text.as_ptr().addr();
        found.push(Finding {
            rule: "own",
            start,
            end: start + part.len(),
        });
    };
    for pattern in patterns {
        if is_phrase(pattern) {
            phrases(text, pattern).for_each(&mut add);
        } else {
            // The other word is the mark of an earlier pass.
            words(text, pattern)
                .filter(|word| !word.eq_ignore_ascii_case("redacted"))
                .filter(|word| glob::matches_folded(pattern, word, fold))
                .for_each(&mut add);
        }
    }
    found
}

/// Returns the words of a text, as a pattern divides it. Marks around a word belong to the sentence.
fn words<'t>(text: &'t str, pattern: &str) -> impl Iterator<Item = &'t str> {
    let is_own = |letter: char| !matches!(letter, '*' | '?') && pattern.contains(fold(letter));
    let is_part = move |letter: char| {
        letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.') || is_own(letter)
    };
    text.split(move |letter| !is_part(letter)).map(|part| {
        let is_mark = |letter: char| !letter.is_alphanumeric();
        let part = part.trim_start_matches(|it| is_mark(it) && !pattern.starts_with(it));
        part.trim_end_matches(|it| is_mark(it) && !pattern.ends_with(it))
    })
}

/// Returns where a folded phrase is in a text, unless it is a part of longer words.
fn phrases<'t>(text: &'t str, phrase: &str) -> impl Iterator<Item = &'t str> {
    let mut before = ' ';
    text.char_indices().filter_map(move |(start, letter)| {
        let is_inside = std::mem::replace(&mut before, letter).is_alphanumeric();
        let mut letters = text[start..].char_indices();
        let is_there = !is_inside
            && phrase
                .chars()
                .all(|wanted| letters.next().is_some_and(|(_, it)| fold(it) == wanted));
        let end = start + letters.offset();
        let is_whole = is_there && !text[end..].starts_with(char::is_alphanumeric);
        is_whole.then(|| &text[start..end])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_patterns_match_words_and_phrases() {
        let patterns = [
            "cust-????",
            "*.corp.example",
            "müller gmbh",
            "falcon",
            "*@acme.example",
            "acme#*",
            "żaba_*",
            "οδυσσευσ",
            "net:?",
            "@acme/*",
        ]
        .map(str::to_owned);
        let masked = |text: &str| {
            let found = super::super::join(find(text, &patterns));
            super::super::mask(text, &found).text.into_owned()
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
            ("for MÜLLER GmbH.", "for [REDACTED]."),
            ("Falcon=on; falcons", "[REDACTED]=on; falcons"),
            (
                "-falcon\n+_falcon_ **FALCON**",
                "-[REDACTED]\n+_[REDACTED]_ **[REDACTED]**",
            ),
            (
                "<Jane.Doe@acme.example>, @acme.example",
                "<[REDACTED]>, @acme.example",
            ),
            ("see ACME#12, acme 12", "see [REDACTED], acme 12"),
            (
                "ŻABA_7 Οδυσσεύς ΟΔΥΣΣΕΥΣ Οδυσσευς",
                "[REDACTED] Οδυσσεύς [REDACTED] [REDACTED]",
            ),
            ("NET:4: up", "[REDACTED]: up"),
            ("from '@acme/ui';", "from '[REDACTED]';"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(masked(text), expected);
        }
    }

    #[test]
    fn a_pattern_that_can_match_nothing_or_everything_is_refused() {
        for pattern in ["*.a?", "##", "Müller *", "a b"] {
            assert!(check_pattern(pattern).is_err(), "{pattern}");
        }
        for pattern in ["cust-*", "Müller GmbH", "*@acme.example", "日本語"] {
            assert_eq!(check_pattern(pattern), Ok(()));
        }
    }
}
