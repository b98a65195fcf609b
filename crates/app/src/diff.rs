//! Formats the difference of two versions of a note as lines.

use std::time::Duration;

use anamnesis_note::{
    draft::{safe, safe_line},
    note::{Note, NoteFile, State},
};
use anamnesis_sync::history::{Difference, File};
use similar::{Algorithm, ChangeTag, TextDiff};

/// Time limit for improving the alignment of two texts.
const TIMEOUT: Duration = Duration::from_millis(500);

/// Context lines around a difference.
const CONTEXT: usize = 2;

/// Returns what a commit did to a note, in one word.
pub fn did(difference: &Difference) -> &'static str {
    let is_forgotten = |file: &Option<File>| {
        let file = file
            .as_ref()
            .and_then(|file| NoteFile::parse(&file.bytes, difference.id).ok());
        file.is_some_and(|file| file.note().state == State::Forgotten)
    };
    match (&difference.before, &difference.after) {
        (None, _) => "new",
        (_, None) => "gone",
        (before, after) if !is_forgotten(before) && is_forgotten(after) => "forgotten",
        _ => "changed",
    }
}

/// Decodes and masks a file for display.
pub fn text_of(file: &File) -> String {
    safe(&String::from_utf8_lossy(&file.bytes))
}

/// Diffs the texts of two notes.
pub fn between(before: &Note, after: &Note) -> String {
    let mut out = String::new();
    if before.title != after.title {
        let title = |note: &Note| safe_line(&note.title);
        out.push_str(&format!("-{}\n+{}\n", title(before), title(after)));
    }
    let (old, new) = (safe(&before.body), safe(&after.body));
    out.push_str(&body_lines(&old, &new));
    out
}

fn body_lines(old: &str, new: &str) -> String {
    let body = diff(old, new);
    let mut unified = body.unified_diff();
    unified
        .context_radius(CONTEXT)
        .missing_newline_hint(false)
        .to_string()
}

/// Formats the added and removed lines.
pub fn lines(difference: &Difference) -> String {
    let text = |file: &Option<File>| file.as_ref().map(text_of).unwrap_or_default();
    let (before, after) = (text(&difference.before), text(&difference.after));
    let ((old_fields, old_body), (new_fields, new_body)) = (split(&before), split(&after));
    let mut out = String::new();
    for change in diff(old_fields, new_fields).iter_all_changes() {
        // Every change updates this timestamp, so it is noise.
        if change.value().starts_with("updated_at:") {
            continue;
        }
        let sign = match change.tag() {
            ChangeTag::Delete => '-',
            ChangeTag::Insert => '+',
            ChangeTag::Equal => continue,
        };
        // A note that was added or removed is described by its title and text.
        if difference.before.is_none() || difference.after.is_none() {
            let is_title = change.value().starts_with("title:");
            if !is_title {
                continue;
            }
        }
        out.push_str(&format!("{sign}{}\n", change.value().trim_end()));
    }
    out.push_str(&body_lines(old_body, new_body));
    out
}

fn diff<'a>(old: &'a str, new: &'a str) -> TextDiff<'a, 'a, 'a, str> {
    TextDiff::configure()
        .algorithm(Algorithm::Patience)
        .timeout(TIMEOUT)
        .diff_lines(old, new)
}

/// Splits a file into front matter and text.
fn split(text: &str) -> (&str, &str) {
    let fields = text.strip_prefix("---\n").and_then(|rest| {
        // The final newline stays, so that the last line equals the same line elsewhere.
        let (fields, body) = rest.split_at_checked(rest.find("\n---")? + 1)?;
        Some((fields, body.trim_start_matches('-')))
    });
    match fields {
        Some((fields, body)) => (fields, body.trim_start_matches(['\r', '\n'])),
        None => ("", text),
    }
}
