//! `memory_search`: searches notes by words, and by meaning if there is an embedding model.

use anamnesis_app::{
    Error,
    context::Context,
    ops::note::{self, Note},
    project_history,
};
use anamnesis_note::note::{Kind, NoteType, Scope};
use anamnesis_recall::{
    branch::branch_remark,
    correction::remarks_on,
    search::{Hit, MAX_HITS, POOL, search_with_meaning},
};
use anamnesis_store::index::{Filter, Index};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::Tool;

const DEFAULT_K: usize = 8;

/// How many characters of a note's text a hit shows.
const MAX_BODY_LENGTH: usize = 1_200;

/// How many characters of text all hits show together. Clients cut longer answers.
const MAX_ALL_BODIES: usize = 30_000;

pub(super) fn tool() -> Tool {
    Tool::reading(
        "memory_search",
        "Search notes",
        "Search notes by keywords, best match first. One matching word is enough; +\"a phrase\" and \
         +prefix* are required. Superseded and forgotten notes are excluded.",
        run,
    )
}

/// What each hit contains
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Detail {
    #[default]
    Full,
    Index,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Parameters {
    query: String,
    /// Project key; "." = this session's, "global" = notes for all projects. Default: every project
    project: Option<String>,
    r#type: Option<NoteType>,
    kind: Option<Kind>,
    scope: Option<Scope>,
    user_id: Option<String>,
    workspace_id: Option<String>,
    /// Maximum number of hits, up to 200
    #[serde(default = "default_k")]
    k: usize,
    /// full: the start of each text; index: one line per hit
    #[serde(default)]
    detail: Detail,
}

fn default_k() -> usize {
    DEFAULT_K
}

#[derive(Debug, Serialize, JsonSchema)]
struct SearchOutput {
    result: Vec<SearchHit>,
    /// Number of hits not returned
    left: usize,
    /// Commits of the project: id, day, subject
    #[serde(skip_serializing_if = "Vec::is_empty")]
    commits: Vec<String>,
}

/// As `detail` says
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
enum SearchHit {
    Full(Box<Full>),
    Line(Line),
}

#[derive(Debug, Serialize, JsonSchema)]
struct Full {
    #[serde(flatten)]
    note: Note,
    body: String,
    /// The text continues; memory_get returns it
    cut: bool,
    score: f64,
    why: String,
    /// Corrections by later notes
    #[serde(skip_serializing_if = "Vec::is_empty")]
    later: Vec<String>,
    /// The branch of its session, until that is merged
    #[serde(skip_serializing_if = "Option::is_none")]
    branch: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    id: String,
    kind: &'static str,
    title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    age_days: Option<i64>,
    /// Approximate size of the full text
    tokens: i64,
    why: String,
    /// Corrections by later notes
    #[serde(skip_serializing_if = "Vec::is_empty")]
    later: Vec<String>,
}

fn run(context: &Context, asked: Parameters) -> Result<SearchOutput, Error> {
    let filter = Filter {
        projects: context.keys(asked.project.as_deref())?,
        note_type: asked.r#type,
        kind: asked.kind,
        scope: asked.scope,
        user_id: asked.user_id,
        workspace_id: asked.workspace_id,
        ..Filter::default()
    };
    let k = asked.k.min(MAX_HITS);
    let index = context.index_to_read()?;
    let vector = context.vector(&index, &asked.query);
    let vector = vector.as_deref();
    let mut hits = search_with_meaning(&index, &asked.query, vector, &filter, k.max(POOL))?;
    let left = hits.len().saturating_sub(k);
    hits.truncate(k);
    let now = context.environment.now;
    let short = |id| index.short_id(id).unwrap_or_else(|_| id.to_string());
    let remarks = hits
        .iter()
        .map(|hit| remarks_on(&index, hit.entry.id(), now, short));
    let remarks = remarks.collect::<Result<Vec<_>, _>>()?;
    let hits: Vec<(Hit, Vec<String>)> = hits.into_iter().zip(remarks).collect();
    let result = match asked.detail {
        Detail::Index => hits
            .into_iter()
            .map(|(hit, later)| line(&hit, later, now))
            .collect(),
        Detail::Full => full(hits, context, &index)?,
    };
    // Without a project, notes of all are searched, but commits of the session's own.
    let project = match asked.project.as_deref() {
        Some(key) if key != "." => Some(context.project(Some(key))),
        _ => context.own_project().ok(),
    };
    let is_any = filter.note_type.is_none() && filter.kind.is_none();
    let commits = project.filter(|_| is_any);
    let commits =
        commits.map(|project| project_history::for_search(context, &project, &asked.query));
    Ok(SearchOutput {
        result,
        left,
        commits: commits.unwrap_or_default(),
    })
}

fn line(hit: &Hit, later: Vec<String>, now: DateTime<Utc>) -> SearchHit {
    let entry = &hit.entry;
    SearchHit::Line(Line {
        id: entry.id().to_string(),
        kind: entry.shown_kind(),
        title: note::title(&entry.title),
        age_days: note::age(entry, now),
        tokens: entry.length.saturating_add(3) / 4,
        why: why(hit),
        later,
    })
}

/// Returns the hits with their texts, shortened from the end of the list to the total limit.
fn full(
    hits: Vec<(Hit, Vec<String>)>,
    context: &Context,
    index: &Index,
) -> Result<Vec<SearchHit>, Error> {
    let mut room = MAX_ALL_BODIES;
    let shown = hits.into_iter().map(|(hit, later)| {
        let stored = context.notes.read(hit.entry.path).ok();
        let whole = stored.as_ref().map(note::inert_body).unwrap_or_default();
        let branch = stored.map(|stored| branch_remark(index, &stored.note()));
        let body = note::cut(&whole, MAX_BODY_LENGTH.min(room));
        room = room.saturating_sub(body.chars().count());
        Ok(SearchHit::Full(Box::new(Full {
            cut: body.len() < whole.len(),
            body,
            score: hit.score,
            why: why(&hit),
            note: Note::new(context, hit.entry),
            later,
            branch: branch.transpose()?.flatten(),
        })))
    });
    shown.collect()
}

fn why(hit: &Hit) -> String {
    let words = (!hit.matched.is_empty()).then(|| format!("has {}", hit.matched.join(", ")));
    let meaning = hit
        .similarity
        .map(|cosine| format!("similar meaning ({cosine:.2})"));
    match words.into_iter().chain(meaning).collect::<Vec<_>>() {
        none if none.is_empty() => "same session as a match".to_owned(),
        signals => signals.join("; "),
    }
}
