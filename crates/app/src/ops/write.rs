//! Writes a new note.

use anamnesis_note::{
    draft::{Draft, safe_line},
    link::{Link, declarable},
    note::{Enforce, Kind, NoteType, Scope, Severity},
    trigger::Trigger,
};
use anamnesis_store::index::{Entry, Index};
use schemars::JsonSchema;
use serde::Deserialize;

use super::written::{self, WrittenNote};
use crate::{Error, context::Context};

/// A new note.
#[derive(Debug, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct WriteNote {
    /// A few sentences; `<private>` text and secrets are removed
    #[arg(skip)]
    pub body: String,
    /// A one-line summary. Default: the first line of the text
    #[arg(long)]
    pub title: Option<String>,
    /// The kind: fact, preference, insight, how-to, warning or task. Default: by the type, else fact
    #[arg(long, value_parser = Kind::from_word)]
    #[schemars(description = "Default: by `type`, else fact")]
    kind: Option<Kind>,
    /// The type: procedural, semantic or episodic. Default: by the kind
    #[arg(long, value_name = "TYPE", value_parser = str::parse::<NoteType>)]
    #[schemars(description = "")]
    r#type: Option<NoteType>,
    /// Project key; "." = yours, "global" = all projects. Default: yours
    #[arg(long, value_name = "KEY")]
    pub project: Option<String>,
    /// A tag; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    #[serde(default)]
    #[schemars(description = "")]
    tags: Vec<String>,
    /// A word or short question that the note may be asked for with; repeatable
    #[arg(long, value_name = "TEXT")]
    #[serde(default)]
    #[schemars(
        description = "5 to 10 search terms or short questions in other words than the note's"
    )]
    asked: Vec<String>,
    /// `machine-local` keeps the note on this machine
    #[arg(long, value_parser = str::parse::<Scope>)]
    scope: Option<Scope>,
    #[arg(skip)]
    user_id: Option<String>,
    #[arg(skip)]
    workspace_id: Option<String>,
    /// The severity of a warning: low, medium, high or critical
    #[arg(long, value_parser = str::parse::<Severity>)]
    #[schemars(description = "")]
    severity: Option<Severity>,
    /// For a warning: what to do instead
    #[arg(long, value_name = "TEXT")]
    instead: Option<String>,
    /// For a warning, when it is shown: "cmd: git push --force", "path: *.sql", "tool: Write", "text: words"
    #[arg(long, value_name = "TRIGGER", value_parser = str::parse::<Trigger>)]
    #[serde(default)]
    when: Vec<Trigger>,
    /// A link, "RELATION ID"; repeatable
    #[arg(long = "link", value_name = "RELATION ID")]
    #[serde(default)]
    #[schemars(description = "Each \"RELATION ID\"")]
    links: Vec<String>,
    /// The id of a note that it replaces; repeatable
    #[arg(long, value_name = "ID")]
    #[serde(default)]
    #[schemars(description = "Ids of the notes that it replaces")]
    supersedes: Vec<String>,
    /// Write it even if a note says the same
    #[arg(long)]
    #[serde(default)]
    force: bool,
    /// `once`: block a call that --when names, once per session; the warning must be high or
    /// critical
    #[arg(long, value_parser = str::parse::<Enforce>, requires = "when")]
    #[serde(skip)]
    enforce: Option<Enforce>,
    /// Pin the note
    #[arg(long)]
    #[serde(skip)]
    pin: bool,
}

/// Writes a new note.
pub fn write(context: &Context, request: WriteNote) -> Result<WrittenNote, Error> {
    let index = context.index()?;
    let replaced = request.supersedes.iter();
    let replaced = replaced.map(|typed| Context::present(&index, typed));
    let replaced: Vec<Entry> = replaced.collect::<Result<_, _>>()?;
    let links = request.links.iter().map(|line| link(&index, line));
    let draft = Draft {
        note_type: request.r#type,
        kind: request.kind,
        title: request.title,
        scope: request.scope.unwrap_or(Scope::Portable),
        user_id: request.user_id,
        workspace_id: request.workspace_id,
        tags: request.tags,
        asked: request.asked,
        when: request.when,
        instead: request.instead,
        severity: request.severity,
        enforce: request.enforce.unwrap_or(Enforce::Never),
        pinned: request.pin,
        links: links.collect::<Result<_, _>>()?,
        supersedes: replaced.iter().map(Entry::id).collect(),
        ..Draft::new(
            request.body,
            context.key_to_write(request.project.as_deref())?,
        )
    };
    written::write(context, index, draft, "write", &replaced, request.force)
}

/// Parses a link from the new note to an existing one.
fn link(index: &Index, line: &str) -> Result<Link, Error> {
    let bad = |message: String| Error::usage(message).hint("expected \"RELATION ID\"");
    let [relation, id] = line.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(bad(format!("invalid link \"{}\"", safe_line(line))));
    };
    Ok(Link {
        relation: declarable(relation).map_err(|error| bad(error.to_string()))?,
        target: Context::present(index, id)?.id(),
        weight: None,
    })
}
