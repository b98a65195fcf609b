//! `internal complete`: values for the completions of a shell: ids of notes, projects, tags.

use std::{collections::BTreeSet, process::ExitCode};

use anamnesis_app::{context::Context, project};
use anamnesis_store::index::{Filter, Index};
use anamnesis_text::clean::one_line;
use clap::Command;

use crate::ui::{self, Outcome, Ui};

/// The maximum number of values.
const MAX_VALUES: usize = 200;

/// Print the values for the end of a command line
///
/// Ids of notes with their titles, projects or tags, one per line. Prints nothing where a word of the
/// command line is expected.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The words after `anamnesis`; the last one is incomplete
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// What is expected at the end of a command line.
#[derive(Debug)]
enum Expected {
    Id,
    Project,
    Tag,
}

/// `all` is the whole command line, whose arguments say what is expected.
pub(crate) fn run(args: &Args, all: &Command, context: &Context, ui: &Ui) -> Outcome {
    let (typed, before) = args
        .words
        .split_last()
        .map_or(("", &[][..]), |(last, rest)| (last.as_str(), rest));
    // The index is used as it is: a person waits for the key.
    let (Some(expected), Ok(index)) = (expected(all, before, typed), Index::open(&context.home))
    else {
        return Ok(ExitCode::SUCCESS);
    };
    let entries = index.list(&Filter::default(), MAX_VALUES)?;
    let values: Vec<(String, String)> = match expected {
        Expected::Id => entries
            .iter()
            .map(|entry| (Context::short(&index, entry.id()), one_line(&entry.title)))
            .collect(),
        Expected::Project => project::keys_with_counts(context, &index)?
            .into_iter()
            .map(|(key, notes)| (one_line(&key), ui::count(notes, "note")))
            .collect(),
        Expected::Tag => {
            let tags: BTreeSet<&String> = entries.iter().flat_map(|entry| &entry.tags).collect();
            tags.into_iter()
                .map(|tag| (one_line(tag), String::new()))
                .collect()
        }
    };
    let starts = typed.to_uppercase();
    let lines = values
        .iter()
        .filter(|(value, _)| value.to_uppercase().starts_with(&starts))
        .map(|(value, about)| format!("{value}\t{about}\n"));
    ui.print(&lines.collect::<String>());
    Ok(ExitCode::SUCCESS)
}

/// Returns what is expected after these words.
fn expected(all: &Command, before: &[String], typed: &str) -> Option<Expected> {
    let mut command = all;
    let mut previous = None;
    for word in before {
        if let Some(found) = command.find_subcommand(word) {
            command = found;
        }
        previous = Some(word);
    }
    let option = previous.and_then(|word| {
        let mut options = command.get_arguments();
        options.find(|arg| arg.get_long() == word.strip_prefix("--") && arg.get_long().is_some())
    });
    let takes_value = option.is_some_and(|option| option.get_action().takes_values());
    let argument = match option.filter(|_| takes_value) {
        Some(option) => option,
        None if typed.starts_with('-') => return None,
        None => command.get_positionals().next()?,
    };
    match argument.get_id().as_str() {
        "id" | "ids" | "from" | "to" | "supersedes" | "replaces" | "note" => Some(Expected::Id),
        "project" | "same_as" => Some(Expected::Project),
        "key" | "keys" | "remove" if before.first().is_some_and(|verb| verb == "project") => {
            Some(Expected::Project)
        }
        "tag" | "tags" => Some(Expected::Tag),
        _ => None,
    }
}
