//! Cuts text for a model to a size: the beginning and the end stay, the middle is dropped.
//!
//! The text has to be sanitised first: a cut inside a secret would hide it from redaction.

use std::borrow::Cow;

use anamnesis_text::truncate::{first_characters, last_characters};

/// The number of characters per token.
const CHARACTERS: usize = 4;

/// The line that replaces the middle.
const MARKER: &str = "\n\n...[transcript truncated for length]...\n\n";

/// Returns the approximate number of tokens of a text.
pub fn tokens(text: &str) -> usize {
    text.chars().count().div_ceil(CHARACTERS)
}

/// Cuts a text to at most this many tokens: the first 60 %, a marker line, and the end.
pub fn window(text: &str, tokens: usize) -> Cow<'_, str> {
    let limit = tokens.saturating_mul(CHARACTERS);
    if text.chars().count() <= limit {
        return Cow::Borrowed(text);
    }
    let first = limit / 10 * 6 + limit % 10 * 6 / 10;
    let head = first_characters(text, first);
    let tail = last_characters(text, limit - first);
    Cow::Owned(format!("{head}{MARKER}{tail}"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_middle_is_dropped() {
        let text: String = ('a'..='z').collect();
        assert_eq!(window(&text, 7), text);
        // 24 characters: 14 from the beginning, 10 from the end.
        assert_eq!(
            window(&text, 6),
            format!("abcdefghijklmn{MARKER}qrstuvwxyz")
        );
        assert_eq!(window(&text, 0), MARKER);
        assert_eq!(tokens("abcde"), 2);
        assert_eq!(tokens(""), 0);
    }

    proptest! {
        #[test]
        fn a_window_fits_its_size_and_is_part_of_the_text(text in "\\PC{0,200}", tokens in 0_usize..60) {
            let seen = window(&text, tokens);
            let limit = tokens * CHARACTERS;
            if let Some((head, tail)) = seen.split_once(MARKER).filter(|_| seen != text) {
                prop_assert!(text.starts_with(head) && text.ends_with(tail));
                prop_assert_eq!(head.chars().count() + tail.chars().count(), limit);
                prop_assert_eq!(head.chars().count(), limit * 6 / 10);
            } else {
                prop_assert_eq!(&seen, &text);
                prop_assert!(text.chars().count() <= limit);
            }
        }
    }
}
