//! Notes as resources, for a person who mentions one in a prompt: `memory://ID`.
//!
//! Clients fetch the list at every start and show it while somebody types. So the list is short,
//! descriptions contain the words that identify a note, and completion finds the others. Any note
//! can be read, listed or not; the contents are those of `memory_get`.

use anamnesis_app::{
    Error,
    context::Context,
    ops::{get, note},
};
use anamnesis_note::{
    id::{IdPrefix, NoteId},
    note::{GLOBAL, NoteType, State, parse_timestamp},
};
use anamnesis_recall::{render::inert_value, search::search};
use anamnesis_store::index::{Entry, Filter, Index};
use rmcp::{
    ErrorData,
    model::{
        Annotations, CompleteRequestParams, CompleteResult, CompletionInfo, ReadResourceResult,
        Reference, Resource, ResourceContents, ResourceTemplate,
    },
};

use crate::error::ToolError;

const SCHEME: &str = "memory://";

/// The only URI template and the name of its variable.
const TEMPLATE: &str = "memory://{id}";
const ARGUMENT: &str = "id";

const MIME_TYPE: &str = "application/json";

/// How many notes of each type are listed, newest first. Lasting notes are mentioned more often
/// than session notes.
const LISTED: [(NoteType, usize); 3] = [
    (NoteType::Procedural, 20),
    (NoteType::Semantic, 20),
    (NoteType::Episodic, 10),
];

/// How many notes a completion returns.
const MAX_COMPLETED: usize = 20;

/// Lists the notes that a person is most likely to mention.
pub(crate) fn list(context: &Context) -> Result<Vec<Resource>, ErrorData> {
    let entries = listed(context).map_err(broken)?;
    Ok(entries.iter().map(described).collect())
}

/// Returns the URI template for all notes.
pub(crate) fn templates() -> Vec<ResourceTemplate> {
    let template = ResourceTemplate::new(TEMPLATE, "note")
        .with_title("Note")
        .with_description(
            "A note, by its id or by 6 or more characters of the id's beginning or end",
        )
        .with_mime_type(MIME_TYPE);
    vec![template]
}

/// Reads a note, with the contents of `memory_get`.
pub(crate) fn read(context: &Context, uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let not_found = |error: Error| {
        let error = ToolError::from(error);
        let message = error.message().to_owned();
        ErrorData::resource_not_found(message, Some(error.value()))
    };
    let typed = uri.strip_prefix(SCHEME).unwrap_or_default();
    let index = context.index_to_read().map_err(broken)?;
    let entry = Context::present(&index, typed).map_err(not_found)?;
    let note = get::full(context, &index, &entry).map_err(not_found)?;
    let note = serde_json::to_value(&note).map_err(|error| broken(Error::caused_by(error)))?;
    let text = inert_value(note).to_string();
    let contents = ResourceContents::text(text, uri_of(entry.id())).with_mime_type(MIME_TYPE);
    Ok(ReadResourceResult::new(vec![contents]))
}

/// Completes an id from a part of it or from words of the note.
pub(crate) fn complete(
    context: &Context,
    asked: &CompleteRequestParams,
) -> Result<CompleteResult, ErrorData> {
    let is_ours = matches!(&asked.r#ref, Reference::Resource(of) if of.uri == TEMPLATE)
        && asked.argument.name == ARGUMENT;
    if !is_ours {
        return Err(ErrorData::invalid_params(
            format!("only \"{ARGUMENT}\" of {TEMPLATE} can be completed"),
            None,
        ));
    }
    let mut entries = meant(context, &asked.argument.value).map_err(broken)?;
    let has_more = entries.len() > MAX_COMPLETED;
    entries.truncate(MAX_COMPLETED);
    let ids = entries.iter().map(|entry| entry.id().to_string()).collect();
    let completion = CompletionInfo::with_pagination(ids, None, has_more)
        .map_err(|error| ErrorData::internal_error(error, None))?;
    Ok(CompleteResult::new(completion))
}

/// Selects notes of the session's project and for all projects, or all notes if the client names no
/// project.
fn here(context: &Context) -> Filter {
    let projects = context.own_project().map_or_else(
        |_| Vec::new(),
        |project| {
            let mut keys = project.all_keys();
            keys.push(GLOBAL.to_owned());
            keys
        },
    );
    Filter {
        projects,
        ..Filter::default()
    }
}

fn listed(context: &Context) -> Result<Vec<Entry>, Error> {
    let index = context.index_to_read()?;
    let mut entries = Vec::new();
    for (note_type, most) in LISTED {
        let filter = Filter {
            note_type: Some(note_type),
            ..here(context)
        };
        entries.extend(index.list(&filter, most)?);
    }
    entries.retain(|entry| entry.state == State::Active);
    Ok(entries)
}

fn meant(context: &Context, typed: &str) -> Result<Vec<Entry>, Error> {
    let words = beginning_of(typed);
    if words.is_empty() {
        return listed(context);
    }
    let index = context.index_to_read()?;
    let by_id = by_id(&index, typed)?;
    if !by_id.is_empty() {
        return Ok(by_id);
    }
    // One extra hit shows whether there are more.
    let hits = search(&index, &words, &here(context), MAX_COMPLETED + 1)?;
    Ok(hits.into_iter().map(|hit| hit.entry).collect())
}

/// Returns the notes of any project whose id begins or ends with this text; empty if it is not part
/// of an id.
fn by_id(index: &Index, typed: &str) -> Result<Vec<Entry>, Error> {
    let Ok(part) = IdPrefix::parse(typed) else {
        return Ok(Vec::new());
    };
    let mut entries = index.matching(&part)?;
    entries.retain(|entry| entry.state != State::Forgotten);
    Ok(entries)
}

/// Builds a prefix query from an unfinished input.
fn beginning_of(typed: &str) -> String {
    let words = typed.split(|character: char| !character.is_alphanumeric());
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        String::new()
    } else {
        format!("{}*", words.join(" "))
    }
}

fn described(entry: &Entry) -> Resource {
    let title = note::title(&entry.title);
    let resource = Resource::new(uri_of(entry.id()), entry.id().short())
        .with_description(format!("[{}] {title}", entry.shown_kind()))
        .with_title(title)
        .with_mime_type(MIME_TYPE);
    match parse_timestamp(&entry.updated_at) {
        Some(changed) => resource.with_annotations(Annotations::default().with_timestamp(changed)),
        None => resource,
    }
}

fn uri_of(id: NoteId) -> String {
    format!("{SCHEME}{id}")
}

/// Maps an error of the store, as opposed to one of the request.
fn broken(error: Error) -> ErrorData {
    let error = ToolError::from(error);
    ErrorData::internal_error(error.message().to_owned(), Some(error.value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_becomes_a_query() {
        for (typed, query) in [
            ("", ""),
            (" .. \u{0} ", ""),
            ("stu", "stu*"),
            ("stub ser", "stub ser*"),
            // Query operators are removed.
            ("\"stub* OR ser", "stub OR ser*"),
        ] {
            assert_eq!(beginning_of(typed), query, "{typed:?}");
        }
    }

    #[test]
    fn the_template_makes_the_names_of_notes() {
        let id = NoteId::generate(chrono::DateTime::UNIX_EPOCH);
        let made = TEMPLATE.replace(&format!("{{{ARGUMENT}}}"), &id.to_string());
        assert_eq!(made, uri_of(id));
    }
}
