//! The words of a query in a text: their places, and the line that has most of them.

use std::{collections::HashSet, hash::BuildHasher};

use anamnesis_text::{clean::one_line, terms};

/// Returns where the words of a text are that have one of these terms, in order.
pub fn places<S: BuildHasher>(text: &str, found: &HashSet<String, S>) -> Vec<(usize, usize)> {
    let mut places = Vec::new();
    terms::words(text, |word| {
        // A long form is written nowhere in the text.
        let start = word
            .written
            .as_ptr()
            .addr()
            .wrapping_sub(text.as_ptr().addr());
        let end = start.wrapping_add(word.written.len());
        if found.contains(word.term) && text.get(start..end) == Some(word.written) {
            places.push((start, end));
        }
    });
    places.sort_unstable();
    places
}

/// Returns the line of a text that has most of the query's words, cut to `room` characters around
/// the first of them; `None` if no line has one.
pub fn snippet(text: &str, query: &str, room: usize) -> Option<String> {
    let wanted: HashSet<String> = terms::terms(query).into_iter().collect();
    let mut best: Option<(usize, String, usize)> = None;
    for line in text.lines().map(one_line) {
        let places = places(&line, &wanted);
        let Some((first, _)) = places.first().copied() else {
            continue;
        };
        let words: HashSet<String> = places
            .iter()
            .flat_map(|(start, end)| terms::terms(&line[*start..*end]))
            .collect();
        if best.as_ref().is_none_or(|(most, ..)| words.len() > *most) {
            best = Some((words.len(), line, first));
        }
    }
    let (_, line, first) = best?;
    let length = line.chars().count();
    if length <= room {
        return Some(line);
    }
    // A quarter of the room before the first word, and no empty room at the end.
    let before = line[..first].chars().count();
    let start = before.saturating_sub(room / 4).min(length - room);
    let cut: String = line.chars().skip(start).take(room).collect();
    let head = if start > 0 { "…" } else { "" };
    let tail = if start + room < length { "…" } else { "" };
    // It begins with a whole word, which is before the first match.
    let cut = match cut.split_once(' ') {
        Some((_, rest)) if start > 0 => rest,
        _ => &cut,
    };
    let marks = head.chars().count() + tail.chars().count();
    let inner: String = cut.chars().take(room - marks).collect();
    Some(format!("{head}{inner}{tail}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_snippet_is_the_line_with_most_words_around_the_first() {
        let text = "The stub starts.\nNo line.\nStart the stub servers on port 9090.\n";
        assert_eq!(
            snippet(text, "stub server", 60).as_deref(),
            Some("Start the stub servers on port 9090.")
        );
        assert_eq!(snippet(text, "broker", 60), None);
        let long = format!("{} stub {}", "a ".repeat(80).trim_end(), "é ".repeat(80));
        let cut = snippet(&long, "stub", 40).unwrap();
        assert!((35..=40).contains(&cut.chars().count()), "{cut}");
        assert!(
            cut.starts_with("…a ") && cut.ends_with('…') && cut.contains(" stub "),
            "{cut}"
        );
    }
}
