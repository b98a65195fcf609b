//! `memory_list`: lists notes, newest first.

use anamnesis_note::note::{Kind, NoteType, Scope};
use anamnesis_recall::search::MAX_HITS;
use anamnesis_store::index::Filter;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, ToolError},
    note::Note,
    tool::{Tool, Word},
};

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
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// Project key; "." = this session's, "global" = notes for all projects. Default: every project
    project: Option<String>,
    r#type: Option<Word<NoteType>>,
    kind: Option<Word<Kind>>,
    scope: Option<Word<Scope>>,
    user_id: Option<String>,
    workspace_id: Option<String>,
    /// Maximum number of notes, up to 200
    #[serde(default = "default_k")]
    k: u64,
}

fn default_k() -> u64 {
    MAX_HITS as u64
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Listed {
    result: Vec<Note>,
    /// Number of notes not returned
    left: usize,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Listed, ToolError> {
    let filter = Filter {
        projects: memory.keys(asked.project.as_deref())?,
        note_type: asked.r#type.map(|Word(word)| word),
        kind: asked.kind.map(|Word(word)| word),
        scope: asked.scope.map(|Word(word)| word),
        user_id: asked.user_id,
        workspace_id: asked.workspace_id,
        with_superseded: true,
        with_forgotten: false,
        ..Filter::default()
    };
    let k = usize::try_from(asked.k).unwrap_or(MAX_HITS).min(MAX_HITS);
    let index = memory.index()?;
    let entries = index.list(&filter, k)?;
    let left = index.count(&filter)?.saturating_sub(entries.len());
    let now = memory.now();
    Ok(Listed {
        result: entries
            .iter()
            .map(|entry| Note::from_entry(entry, now))
            .collect(),
        left,
    })
}
