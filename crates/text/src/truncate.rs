//! Shortens texts for places that have room for a line or a few.
//!
//! Lengths are characters. What may be stored at all is decided before: a cut must never part what
//! [`crate::privacy`] or [`crate::redact`] would have taken out.

use crate::clean::one_line;

/// Returns the first characters of a text.
pub fn first_characters(text: &str, count: usize) -> &str {
    match text.char_indices().nth(count) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Returns the text as one line of at most so many characters; a cut is marked with `…`.
pub fn line(text: &str, count: usize) -> String {
    let line = one_line(text);
    let head = first_characters(&line, count);
    if head.len() == line.len() {
        return line;
    }
    let head = first_characters(head, count.saturating_sub(1));
    format!("{}…", head.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_where_it_must_be() {
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
