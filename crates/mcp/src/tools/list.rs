//! `memory_list`: lists notes, newest first.

use anamnesis_app::{Error, context::Context, ops::note::Note};
use anamnesis_note::note::{Kind, NoteType, Scope};
use anamnesis_recall::search::MAX_HITS;
use anamnesis_store::index::Filter;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::Tool;

pub(super) fn tool() -> Tool {
    Tool::reading(
        "memory_list",
        "List notes",
        "List notes without their text, newest first, including superseded ones.",
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    /// Project key; "." = this session's, "global" = notes for all projects. Default: every project
    project: Option<String>,
    r#type: Option<NoteType>,
    kind: Option<Kind>,
    scope: Option<Scope>,
    user_id: Option<String>,
    workspace_id: Option<String>,
    /// Maximum number of notes, up to 200
    #[serde(default = "default_k")]
    k: usize,
}

fn default_k() -> usize {
    MAX_HITS
}

#[derive(Debug, Serialize, JsonSchema)]
struct Listed {
    result: Vec<Note>,
    /// Number of notes not returned
    left: usize,
}

fn run(context: &Context, asked: Parameters) -> Result<Listed, Error> {
    let filter = Filter {
        projects: context.keys(asked.project.as_deref())?,
        note_type: asked.r#type,
        kind: asked.kind,
        scope: asked.scope,
        user_id: asked.user_id,
        workspace_id: asked.workspace_id,
        with_superseded: true,
        ..Filter::default()
    };
    let k = asked.k.min(MAX_HITS);
    let index = context.index_to_read()?;
    let entries = index.list(&filter, k)?;
    let left = index.count(&filter)?.saturating_sub(entries.len());
    Ok(Listed {
        result: entries
            .into_iter()
            .map(|entry| Note::new(context, entry))
            .collect(),
        left,
    })
}
