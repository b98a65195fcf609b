//! Removes a note from a rendered block, for the records of what was injected.
//!
//! Each part of a block names the notes that it holds by their short ids: a heading with the lines below
//! it, or a line with the indented lines below it.

use anamnesis_note::id::NoteId;

/// The placeholder for a removed part.
const FORGOTTEN: &str = "[forgotten]\n";

/// Returns a block without the parts that hold or name a note; none if no part does.
pub fn without(block: &str, note: NoteId) -> Option<String> {
    let id = note.short();
    if !block.contains(&id) {
        return None;
    }
    let mut left = String::with_capacity(block.len());
    for part in parts(block) {
        left.push_str(if part.contains(&id) { FORGOTTEN } else { part });
    }
    Some(left)
}

/// Returns what a block shows of a note below a heading: its title and its text.
pub fn shown_of(block: &str, note: NoteId) -> Option<String> {
    let id = format!("#{}", note.short());
    let part = parts(block).into_iter().find(|part| {
        let facts = part.lines().nth(1).unwrap_or_default();
        part.starts_with("## ") && facts.split(" · ").any(|fact| fact == id)
    })?;
    let mut lines = part.lines();
    let title = lines.next()?.split_once("] ")?.1;
    Some(format!(
        "{title}\n{}",
        lines.skip(1).collect::<Vec<_>>().join("\n")
    ))
}

/// Splits a block into its parts.
fn parts(block: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let (mut start, mut end) = (0, 0);
    let mut is_below_heading = false;
    for line in block.split_inclusive('\n') {
        if !is_below_heading && !line.starts_with("  ") && end > start {
            parts.push(&block[start..end]);
            start = end;
        }
        is_below_heading = line.starts_with("## ");
        end += line.len();
    }
    parts.push(&block[start..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: &str = "<anamnesis-context>\nNotes.\n\nYou said:\n- tabs (#9G5FAV)\n\n\
        ## [fact] The port is 9090\nby you · today · #QRSTVW · corrects #9G5FAV\n  since May\n\n\
        ## [fact] pnpm\nby you · today · #ABCDEF\n  not npm\n  nor yarn\n</anamnesis-context>";

    #[test]
    fn each_part_that_names_a_note_is_removed() {
        let id = |tail: &str| format!("01ARZ3NDEKTSV4RRFFQ6{tail}").parse().unwrap();
        let left = without(BLOCK, id("9G5FAV")).unwrap();
        assert_eq!(
            left,
            "<anamnesis-context>\nNotes.\n\nYou said:\n[forgotten]\n\n[forgotten]\n\n\
             ## [fact] pnpm\nby you · today · #ABCDEF\n  not npm\n  nor yarn\n</anamnesis-context>"
        );
        let left = without(&left, id("ABCDEF")).unwrap();
        assert!(!left.contains("yarn") && left.ends_with("[forgotten]\n</anamnesis-context>"));
        assert_eq!(without(&left, id("ABCDEF")), None);
        assert_eq!(parts(BLOCK).concat(), BLOCK);
        let shown = shown_of(BLOCK, id("ABCDEF"));
        assert_eq!(shown.as_deref(), Some("pnpm\n  not npm\n  nor yarn"));
        assert_eq!(shown_of(BLOCK, id("9G5FAV")), None);
    }
}
