//! `sessions show`: prints the stored rows of a session, and counts what is missing.

use std::process::ExitCode;

use anamnesis_app::{
    Error,
    context::Context,
    session::{self, export, short},
};
use serde_json::Value;

use super::{Outcome, open};
use crate::ui::{self, Ui};

/// Show what is recorded of a session, row by row
///
/// Private and deleted parts are counted, never shown.
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The session's id: six or more characters of its start
    id: String,
    /// Also print the input and output of tools
    #[arg(long, conflicts_with = "json")]
    full: bool,
    /// Print JSON, with all details
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let journal = open(context)?;
    let session = session::find(&journal, &args.id)?;
    let Some(contents) = journal.contents(&session.id)? else {
        return Err(Error::failed("the session was forgotten meanwhile"));
    };
    let json = export::session_json(context, &context.index()?, contents)?;
    if args.json {
        return ui.json(&json);
    }
    let mut text = String::new();
    add(&json, args.full, 0, &mut text);
    let short = short(&journal, &session)?;
    text.push_str(&format!(
        "\n→ anamnesis sessions export {short}   |   anamnesis forget --session {short}\n"
    ));
    ui.page(&text, "");
    Ok(ExitCode::SUCCESS)
}

/// Adds the keys of an object that have a value, one per line, and rows with a bullet each.
fn add(value: &Value, is_full: bool, indent: usize, text: &mut String) {
    for (key, value) in value.as_object().into_iter().flatten() {
        let is_left_out = !is_full && matches!(key.as_str(), "input" | "response");
        if is_left_out || is_empty(value) {
            continue;
        }
        match value {
            Value::Object(_) => {
                text.push_str(&ui::wrapped(&format!("{key}:"), indent));
                add(value, is_full, indent + 2, text);
            }
            Value::Array(rows) => {
                text.push_str(&ui::wrapped(&format!("{key}:"), indent));
                for row in rows {
                    let mut lines = String::new();
                    add_row(row, is_full, indent + 4, &mut lines);
                    // The bullet is before the first line.
                    let first = lines.trim_start();
                    text.push_str(&format!("{}- {first}", " ".repeat(indent + 2)));
                }
            }
            Value::String(words) => text.push_str(&ui::wrapped(&format!("{key}: {words}"), indent)),
            other => text.push_str(&ui::wrapped(&format!("{key}: {other}"), indent)),
        }
    }
}

fn add_row(row: &Value, is_full: bool, indent: usize, text: &mut String) {
    match row {
        Value::Object(_) => add(row, is_full, indent, text),
        Value::String(words) => text.push_str(&ui::wrapped(words, indent)),
        other => text.push_str(&ui::wrapped(&other.to_string(), indent)),
    }
}

/// Returns whether a value says nothing.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(rows) => rows.is_empty(),
        Value::Object(keys) => keys.values().all(is_empty),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(true) => false,
    }
}
