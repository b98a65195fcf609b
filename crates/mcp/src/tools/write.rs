//! `memory_write`: creates a note.

use anamnesis_note::{
    draft::{Draft, safe_line},
    link::{Link, declarable},
    note::{GLOBAL, Kind, NoteType, Scope, Severity},
};
use anamnesis_store::index::{Entry, Index};
use rmcp::schemars::JsonSchema;
use serde::Deserialize;

use crate::{
    memory::{Memory, ToolError},
    tool::{Effect, Line, Tool, Word},
    write::{Writing, Written, present},
};

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_write",
        "Write a note",
        "Save one fact, decision, lesson or preference for later sessions: self-contained, with the reason. \
         Known content is refused. A note for all projects needs the person's approval. At most 10 per \
         session.",
        Effect::Adds,
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// A few sentences; `<private>` text and secrets are removed
    body: String,
    /// One-line summary. Default: the first line of `body`
    title: Option<String>,
    /// Default: by `type`, else fact
    kind: Option<Word<Kind>>,
    r#type: Option<Word<NoteType>>,
    /// Project key; "." = this session's, "global" = all projects. Default: this session's, else "global"
    project: Option<String>,
    #[serde(default)]
    tags: Vec<String>,
    /// 5 to 10 search terms or short questions in other words than the note's
    #[serde(default)]
    asked: Vec<String>,
    /// machine-local: never synced
    scope: Option<Word<Scope>>,
    user_id: Option<String>,
    workspace_id: Option<String>,
    severity: Option<Word<Severity>>,
    /// For a warning: what to do instead
    instead: Option<String>,
    /// For a warning, when it is shown: "cmd: git push --force", "path: *.sql", "tool: Write", "text: words"
    #[serde(default)]
    when: Vec<Line>,
    /// Each "RELATION ID"
    #[serde(default)]
    links: Vec<String>,
    /// Ids of the notes that it replaces
    #[serde(default)]
    supersedes: Vec<String>,
    /// Write it even if a note says the same
    #[serde(default)]
    force: bool,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Written, ToolError> {
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let replaced = asked.supersedes.iter().map(|id| present(&index, id));
    let replaced: Vec<_> = replaced.collect::<Result<_, _>>()?;
    let links = asked.links.iter().map(|line| link(&index, line));
    let draft = Draft {
        note_type: asked.r#type.map(|Word(word)| word),
        kind: asked.kind.map(|Word(word)| word),
        title: asked.title,
        scope: asked.scope.map_or(Scope::Portable, |Word(word)| word),
        user_id: asked.user_id,
        workspace_id: asked.workspace_id,
        tags: asked.tags,
        asked: asked.asked,
        when: asked
            .when
            .into_iter()
            .map(|Line(trigger)| trigger)
            .collect(),
        instead: asked.instead,
        severity: asked.severity.map(|Word(word)| word),
        links: links.collect::<Result<_, _>>()?,
        supersedes: replaced.iter().map(Entry::id).collect(),
        ..Draft::new(asked.body, project(memory, asked.project.as_deref())?)
    };
    writing.add(index, draft, &replaced, asked.force)
}

/// Returns the project key for a new note.
pub(super) fn project(memory: &Memory, named: Option<&str>) -> Result<String, ToolError> {
    match named {
        Some(".") => memory.own_project().map(|project| project.key.clone()),
        Some(key) => Ok(safe_line(key)),
        None => Ok((memory.project.as_ref())
            .map_or(GLOBAL, |own| &own.key)
            .to_owned()),
    }
}

/// Parses a link from the new note to an existing one.
fn link(index: &Index, line: &str) -> Result<Link, ToolError> {
    let bad = |message: String| ToolError::new("bad_argument", message, "expected \"RELATION ID\"");
    let [relation, id] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(bad(format!("invalid link \"{}\"", safe_line(line))));
    };
    Ok(Link {
        relation: declarable(relation).map_err(|error| bad(error.to_string()))?,
        target: present(index, id)?.id(),
        weight: None,
    })
}
