//! `diff`: shows what a change did, note by note.

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{
    context::Context,
    format::{ago, shorten},
    history::{self, Past},
    sync::short_batch,
};
use anamnesis_note::{
    draft::{safe, safe_line},
    note::{Note, NoteFile, State},
};
use anamnesis_sync::history::{Difference, File};
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};
use similar::{Algorithm, ChangeTag, TextDiff};

use crate::ui::{self, LIST_LENGTH, Outcome, Ui};

/// Time limit for improving the alignment of two texts.
const PATIENCE: Duration = Duration::from_millis(500);

/// Context lines around a difference.
const CONTEXT: usize = 2;

/// Show what a change did, note by note
///
/// Prints added and removed lines, front matter first. For a note id, the latest change of that
/// note is shown. Secrets are masked.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A change or a commit as `log` shows it, or a note's id
    what: String,
    /// Show all notes, not only the first twenty
    #[arg(long)]
    all: bool,
    /// Print JSON, with the texts before and after
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let past = Past::open(context)?;
    let (event, note) = past.find(&args.what)?;
    let mut differences = past.repository.differences(&event.commit)?;
    if let Some(note) = note {
        differences.retain(|difference| difference.id == note);
    }
    if args.json {
        let mut json = past.json(&event);
        let notes = differences.iter().map(|one| note_json(&past, one));
        json["notes"] = notes.collect();
        ui.json(&json);
        return Ok(ExitCode::SUCCESS);
    }
    let machine = event.machine.as_deref().unwrap_or("an unknown machine");
    let batch = event.batch.map_or_else(String::new, |batch| {
        format!(" · batch {}", short_batch(batch))
    });
    let mut text = format!(
        "{} by {} on {}, {}{batch} · commit {}\n",
        shorten(&history::shown_verb(&event), 20),
        history::shown_actor(&event),
        shorten(&one_line(machine), 16),
        ago(event.at, context.environment.now),
        event.commit.get(..7).unwrap_or_default(),
    );
    let total = differences.len();
    if !args.all {
        differences.truncate(LIST_LENGTH);
    }
    for difference in &differences {
        text.push_str(&note_text(&past, difference));
    }
    if differences.len() < total {
        text.push_str(&format!(
            "\n{} of {} notes shown · --all\n",
            differences.len(),
            ui::number(total)
        ));
    }
    if let Some(batch) = event.batch {
        text.push_str(&format!("\n→ anamnesis undo {}\n", short_batch(batch)));
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

fn note_text(past: &Past<'_>, difference: &Difference) -> String {
    let id = difference.id;
    let did = did(difference);
    let title = [&difference.after, &difference.before]
        .into_iter()
        .flatten()
        .filter_map(|file| NoteFile::parse(&file.bytes, id).ok())
        .map(|file| safe_line(&file.note().title))
        .find(|title| !title.is_empty())
        .unwrap_or_default();
    let short = past.short(id);
    if past.is_withheld(id) {
        return format!("\n#{short} {did}\n  forgotten or gone; a person can look at it\n");
    }
    let head = format!("\n#{short} {did}  ");
    let room = ui::WIDTH.saturating_sub(head.chars().count());
    format!("{head}{}\n{}", shorten(&title, room), lines(difference))
}

fn note_json(past: &Past<'_>, difference: &Difference) -> Value {
    let mut json = json!({ "id": difference.id.to_string(), "did": did(difference) });
    if !past.is_withheld(difference.id) {
        json["before"] = difference.before.as_ref().map(text_of).into();
        json["after"] = difference.after.as_ref().map(text_of).into();
        json["diff"] = lines(difference).into();
    }
    json
}

fn did(difference: &Difference) -> &'static str {
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
fn text_of(file: &File) -> String {
    safe(&String::from_utf8_lossy(&file.bytes))
}

/// Diffs the texts of two notes.
pub(super) fn between(before: &Note, after: &Note) -> String {
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
fn lines(difference: &Difference) -> String {
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
        .timeout(PATIENCE)
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
