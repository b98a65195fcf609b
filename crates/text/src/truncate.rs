//! Truncates texts to a number of characters.
//!
//! Callers sanitize a text before they truncate it: a cut could split a private tag or a
//! credential, which [`crate::privacy`] and [`crate::redact`] would then miss.

use std::borrow::Cow;

use crate::clean::one_line;

/// Returns the first `count` characters of a text.
pub fn first_characters(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Returns the last `count` characters of a text.
pub fn last_characters(text: &str, count: usize) -> &str {
    let Some(last) = count.checked_sub(1) else {
        return "";
    };
    let start = text.char_indices().rev().nth(last);
    &text[start.map_or(0, |(start, _)| start)..]
}

/// Returns at most `count` characters of a text; `…` marks a cut.
pub fn cut(text: &str, count: usize) -> Cow<'_, str> {
    let head = first_characters(text, count);
    if head.len() == text.len() {
        return Cow::Borrowed(text);
    }
    let head = first_characters(head, count.saturating_sub(1));
    Cow::Owned(format!("{}…", head.trim_end()))
}

/// Returns the text as one line of at most `count` characters; `…` marks a cut.
pub fn line(text: &str, count: usize) -> String {
    cut(&one_line(text), count).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_truncated() {
        for (text, count, expected) in [
            ("", 4, ""),
            ("four", 4, "four"),
            ("a\nb\tc", 5, "a b c"),
            ("éééééé", 4, "ééé…"),
            ("ab cdef", 4, "ab…"),
            ("ab", 1, "…"),
        ] {
            assert_eq!(line(text, count), expected, "{text:?}");
        }
    }
}
