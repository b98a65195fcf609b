//! Makes questions about notes with a model.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    path::Path,
};

use anamnesis_distill::{
    model::Model,
    prompts::{self, Prompt},
    reflection, reply,
};
use anamnesis_note::{
    draft::{safe, safe_line},
    note::{Kind, Note, NoteType, Scope, State},
};
use anamnesis_store::{
    index::{Entry, Filter},
    journal::Journal,
};
use anamnesis_text::clean::one_line;
use serde::Serialize;

use crate::{
    Error,
    context::{Context, TIMEOUT},
    evaluation_set::{Case, Set},
};

/// The questions that were added to a set.
#[derive(Serialize)]
pub struct AddedQuestions<'a> {
    /// The number of questions.
    pub added: usize,
    /// How many of them nobody has approved.
    pub unreviewed: usize,
    /// The file of the set.
    pub eval_set: &'a Path,
}

/// Which questions to make.
pub struct Selection<'a> {
    /// The projects of the notes; all if empty.
    pub projects: &'a [String],
    /// The types of the notes.
    pub types: &'a [NoteType],
    /// The maximum number of questions.
    pub most: usize,
}

/// Returns the notes that may be sent and have no question by a model in the set yet, a share from
/// each project.
///
/// # Errors
/// Returns an error if the set, the journal or the notes cannot be read: private sessions could not be
/// recognised.
pub fn notes_to_ask_about(
    context: &Context,
    set: &Path,
    selection: &Selection<'_>,
) -> Result<Vec<Note>, Error> {
    let known: BTreeSet<String> = Set::read(set)?
        .iter()
        .flat_map(|set| &set.cases)
        .filter(|(_, case)| case.is_by_model())
        .flat_map(|(_, case)| case.relevant_ids.clone())
        .collect();
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let filter = Filter {
        projects: selection.projects.to_vec(),
        state: Some(State::Active),
        ..Filter::default()
    };
    let mut entries = context.index()?.list(&filter, usize::MAX)?;
    entries.sort_by_key(Entry::id);
    let mut pending: BTreeMap<String, VecDeque<Note>> = BTreeMap::new();
    for entry in entries {
        let Ok(stored) = context.notes.read(entry.path) else {
            continue;
        };
        let note = stored.note();
        let is_private = reflection::has_private_part(&journal, &note)?;
        if selection.types.contains(&note.note_type)
            // A task answers nothing.
            && note.kind() != Kind::Task
            && !note.body.trim().is_empty()
            && note.scope == Scope::Portable
            && !is_private
            && !known.contains(&note.id.to_string())
        {
            pending
                .entry(note.project.clone())
                .or_default()
                .push_back(note);
        }
    }
    let mut taken = Vec::new();
    while !pending.is_empty() && taken.len() < selection.most {
        pending.retain(|_, notes| {
            if taken.len() < selection.most {
                taken.extend(notes.pop_front());
            }
            !notes.is_empty()
        });
    }
    Ok(taken)
}

/// Returns what is sent about a note.
pub fn prompt(note: &Note) -> Prompt {
    prompts::query(&format!(
        "# {}\n{}",
        safe_line(&note.title),
        safe(&note.body)
    ))
}

/// Asks for the question about a note.
///
/// # Errors
/// Returns an error if the model does not answer or the answer is invalid.
pub fn ask(model: &Model, note: &Note, prompt: &Prompt) -> Result<Case, Error> {
    let failed = |reason: String| {
        let reason = one_line(&reason);
        Error::failed(format!("nothing was added: note {}: {reason}", note.id))
            .hint("anamnesis config test")
    };
    let answer = model
        .ask(prompt.system, &prompt.user)
        .map_err(|error| failed(error.to_string()))?;
    let query = reply::query(&answer).map_err(|violation| failed(violation.to_string()))?;
    Ok(Case::by_model(&query, note, &one_line(&model.label())))
}
