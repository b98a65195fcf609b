//! Summarises a session in named fields, by rule, without a model.
//!
//! The journal stores a summary from the first answer on and replaces it after each, so a killed
//! session has one, too. It is not the text of the note ([`crate::session_note`]), and it leaves
//! `learned` to a model or a person.
//!
//! Invariants: equal digests give equal summaries, every text is one line, and the total is under
//! 32,000 characters.

mod next_steps;

use serde::{Deserialize, Serialize};

pub use self::next_steps::next_steps;

use crate::session_note::SessionDigest;
use anamnesis_text::truncate::line;

/// The maximum length of a line, in characters.
const MAX_LINE: usize = 200;

/// How many files, searches or commands a list names individually.
const MAX_NAMED: usize = 10;

/// The maximum number of files listed as read, and as edited.
const MAX_FILES: usize = 40;

/// A session summary.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// The first prompt, or empty.
    pub request: String,
    /// The reads and searches.
    pub investigated: Vec<String>,
    /// The lessons of the session. The rules leave it empty.
    pub learned: Vec<String>,
    /// The edits, the passed commands, and the beginning of the last answer.
    pub completed: Vec<String>,
    /// Next steps named in the last answer.
    pub next_steps: Vec<String>,
    /// The latest files read.
    pub files_read: Vec<String>,
    /// The latest files edited.
    pub files_edited: Vec<String>,
}

/// Summarises a session.
pub fn summarize(digest: &SessionDigest) -> Summary {
    let mut investigated = named("Read", &digest.files_read, "files");
    investigated.extend(named("Looked up", &digest.searches, "searches"));
    let mut completed = named("Edited", &digest.files, "files");
    completed.extend(named("Passed:", &digest.commands_passed, "commands"));
    completed.extend(digest.outcome().and_then(first_sentence));
    let steps = digest.next_steps.iter().take(next_steps::MAX_STEPS);
    Summary {
        request: first_line(digest.ask().unwrap_or_default()),
        investigated,
        learned: Vec::new(),
        completed,
        next_steps: steps.map(|step| line(step, MAX_LINE)).collect(),
        files_read: latest(&digest.files_read, MAX_FILES),
        files_edited: latest(&digest.files, MAX_FILES),
    }
}

/// Returns a line for each of the latest items, and one with the number of others.
fn named(verb: &str, things: &[String], plural: &str) -> Vec<String> {
    let mut lines: Vec<String> = latest(things, MAX_NAMED)
        .iter()
        .map(|thing| line(&format!("{verb} `{thing}`"), MAX_LINE))
        .collect();
    let more = things.len().saturating_sub(MAX_NAMED);
    if more > 0 {
        lines.push(format!("{verb} {more} other {plural}"));
    }
    lines
}

fn latest(things: &[String], count: usize) -> Vec<String> {
    let first = things.len().saturating_sub(count);
    let things = things.iter().skip(first);
    things.map(|thing| line(thing, MAX_LINE)).collect()
}

fn first_line(text: &str) -> String {
    line(text.trim().lines().next().unwrap_or_default(), MAX_LINE)
}

/// Returns the first sentence of a text, without heading markers.
fn first_sentence(text: &str) -> Option<String> {
    let text = first_line(text);
    let text = crate::prose::without_bold(text.trim_start_matches('#').trim());
    let end = text.find(". ").map_or(text.len(), |stop| stop + 1);
    text.get(..end)
        .filter(|sentence| !sentence.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
