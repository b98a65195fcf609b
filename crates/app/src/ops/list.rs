//! Lists notes, newest first, and chooses the notes of a list or a search.

use anamnesis_note::note::{Kind, NoteType, Scope};
use anamnesis_recall::search::MAX_HITS;
use anamnesis_store::index::Filter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::note::Note;
use crate::{Error, context::Context};

/// Which notes a list or a search takes.
#[derive(Debug, Deserialize, JsonSchema, clap::Args)]
pub struct NoteFilter {
    /// Project key; "." = this session's, "global" = notes for all projects. Default: every project
    #[arg(skip)]
    pub project: Option<String>,
    /// Only notes of this type
    #[arg(long, value_name = "TYPE", value_parser = str::parse::<NoteType>)]
    #[schemars(description = "")]
    r#type: Option<NoteType>,
    /// Only notes of this kind
    #[arg(long, value_parser = Kind::from_word)]
    #[schemars(description = "")]
    kind: Option<Kind>,
    /// Only notes that sync (`portable`) or do not (`machine-local`)
    #[arg(long, value_parser = str::parse::<Scope>)]
    #[schemars(description = "")]
    scope: Option<Scope>,
    #[arg(skip)]
    user_id: Option<String>,
    #[arg(skip)]
    workspace_id: Option<String>,
}

impl NoteFilter {
    /// Returns the filter of the index.
    pub fn of_index(self, context: &Context) -> Result<Filter, Error> {
        Ok(Filter {
            projects: context.keys(self.project.as_deref())?,
            note_type: self.r#type,
            kind: self.kind,
            scope: self.scope,
            user_id: self.user_id,
            workspace_id: self.workspace_id,
            ..Filter::default()
        })
    }
}

/// A list of notes, for a model.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListNotes {
    #[serde(flatten)]
    filter: NoteFilter,
    /// Maximum number of notes, up to 200
    #[serde(default = "super::default_of::<MAX_HITS>")]
    k: usize,
}

/// The newest of the notes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct NewestNotes {
    result: Vec<Note>,
    /// Number of notes not returned
    left: usize,
}

/// Lists notes, with superseded ones.
pub fn list(context: &Context, request: ListNotes) -> Result<NewestNotes, Error> {
    let filter = Filter {
        with_superseded: true,
        ..request.filter.of_index(context)?
    };
    let index = context.index_to_read()?;
    let entries = index.list(&filter, request.k.min(MAX_HITS))?;
    let left = index.count(&filter)?.saturating_sub(entries.len());
    let result = entries.into_iter().map(|entry| Note::new(context, entry));
    Ok(NewestNotes {
        result: result.collect(),
        left,
    })
}
