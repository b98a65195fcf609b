//! `log --diff`: shows what a change did, note by note.

use anamnesis_app::{
    context::Context,
    diff::{did, lines, text_of},
    format::{ago, shorten},
    history::{self, Past},
    sync::short_change,
};
use anamnesis_note::{draft::safe_line, note::NoteFile};
use anamnesis_sync::history::Difference;
use anamnesis_text::clean::one_line;
use serde_json::Value;

use super::log::Args;
use crate::ui::{self, Outcome, Ui};

/// Prints what a change did: added and removed lines, front matter first. Secrets are masked.
pub(super) fn show(what: &str, args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let past = Past::open(context)?;
    let (event, note) = past.find(what)?;
    let mut differences = past.repository.differences(&event.commit)?;
    if let Some(note) = note {
        differences.retain(|difference| difference.id == note);
    }
    if args.json {
        let mut json = past.json(&event);
        let notes = differences.iter().map(|one| note_json(&past, one));
        json["notes"] = notes.collect();
        return ui.json(&json);
    }
    let machine = event.machine.as_deref().unwrap_or("an unknown machine");
    let batch = event.batch.map_or_else(String::new, |batch| {
        format!(" · change {}", short_change(batch))
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
    differences.truncate(args.length.limit());
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
        text.push_str(&format!("\n→ anamnesis undo {}\n", short_change(batch)));
    }
    ui.page(&text, "")
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
    let room = ui::width().saturating_sub(head.chars().count());
    format!("{head}{}\n{}", shorten(&title, room), lines(difference))
}

fn note_json(past: &Past<'_>, difference: &Difference) -> Value {
    let id = difference.id.to_string();
    let mut json = Value::from_iter([("id", id.as_str()), ("did", did(difference))]);
    if !past.is_withheld(difference.id) {
        json["before"] = difference.before.as_ref().map(text_of).into();
        json["after"] = difference.after.as_ref().map(text_of).into();
        json["diff"] = lines(difference).into();
    }
    json
}
