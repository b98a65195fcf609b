//! Sums a session up in named fields, by rule and without a model.
//!
//! The summary stands in the journal from the first answer on and is made anew after each, so that
//! a session that is killed has one. It is not the text of the note ([`crate::session_note`]) and it
//! learns nothing: what a session has taught is for a model or a person to say.
//!
//! Invariants: the same account gives the same summary, every text is one line, and all of it
//! together stays under 32,000 characters.

mod next_steps;

use serde::{Deserialize, Serialize};

pub use self::next_steps::next_steps;

use crate::session_note::Account;
use anamnesis_text::truncate::line;

/// How many characters a line has.
const MAX_LINE: usize = 200;

/// How many files, searches or commands a list names one by one.
const MAX_NAMED: usize = 10;

/// How many files are listed as read, and how many as edited.
const MAX_FILES: usize = 40;

/// A session, summed up.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// What was asked first; empty where nothing was.
    pub request: String,
    /// What was read and looked up.
    pub investigated: Vec<String>,
    /// What the session taught; rules leave it empty.
    pub learned: Vec<String>,
    /// What was edited, what passed, and how the last answer begins.
    pub completed: Vec<String>,
    /// What the last answer says is still to do.
    pub next_steps: Vec<String>,
    /// The latest files that were read.
    pub files_read: Vec<String>,
    /// The latest files that were edited.
    pub files_edited: Vec<String>,
}

/// Sums a session up.
pub fn summarize(account: &Account) -> Summary {
    let mut investigated = named("Read", &account.files_read, "files");
    investigated.extend(named("Looked up", &account.searches, "searches"));
    let mut completed = named("Edited", &account.files, "files");
    completed.extend(named("Passed:", &account.commands_passed, "commands"));
    completed.extend(account.outcome.as_deref().and_then(first_sentence));
    let steps = account.next_steps.iter().take(next_steps::MAX_STEPS);
    Summary {
        request: first_line(account.ask.as_deref().unwrap_or_default()),
        investigated,
        learned: Vec::new(),
        completed,
        next_steps: steps.map(|step| line(step, MAX_LINE)).collect(),
        files_read: latest(&account.files_read, MAX_FILES),
        files_edited: latest(&account.files, MAX_FILES),
    }
}

/// Says what was done to the latest things, a line each, and how many more there are.
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

/// Returns the first sentence of a text, without the marks of a heading.
fn first_sentence(text: &str) -> Option<String> {
    let text = first_line(text);
    let text = text.trim_start_matches('#').trim().replace("**", "");
    let end = text.find(". ").map_or(text.len(), |stop| stop + 1);
    text.get(..end)
        .filter(|sentence| !sentence.is_empty())
        .map(str::to_owned)
}

#[cfg(test)]
mod tests;
