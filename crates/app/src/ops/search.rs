//! Searches notes by words, and by meaning if there is an embedding model, for a model.

use anamnesis_recall::{
    branch::branch_remark,
    correction::remarks_on,
    search::{Hit, MAX_HITS, POOL, search_with_meaning},
};
use anamnesis_store::index::{Filter, Index};
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    list::NoteFilter,
    note::{self, Note},
};
use crate::{Error, context::Context, project_history};

const DEFAULT_K: usize = 8;

/// How many characters of a note's text a hit shows.
const MAX_BODY_LENGTH: usize = 1_200;

/// How many characters of text all hits show together. Clients cut longer answers.
const MAX_ALL_BODIES: usize = 30_000;

/// What each hit contains
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Detail {
    #[default]
    Full,
    Index,
}

/// The words to search for, and in which notes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SearchNotes {
    query: String,
    #[serde(flatten)]
    filter: NoteFilter,
    /// Maximum number of hits, up to 200
    #[serde(default = "super::default_of::<DEFAULT_K>")]
    k: usize,
    /// full: the start of each text; index: one line per hit
    #[serde(default)]
    detail: Detail,
}

/// What a search found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SearchHits {
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
    Full(Box<FullHit>),
    Line(HitLine),
}

#[derive(Debug, Serialize, JsonSchema)]
struct FullHit {
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
struct HitLine {
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

/// Searches notes, and the commits of the project.
pub fn search(context: &Context, request: SearchNotes) -> Result<SearchHits, Error> {
    let (query, k) = (&request.query, request.k.min(MAX_HITS));
    let project = request.filter.project.clone();
    let filter = request.filter.of_index(context)?;
    let index = context.index_to_read()?;
    let vector = context.vector(&index, query);
    let mut hits = search_with_meaning(&index, query, vector.as_deref(), &filter, k.max(POOL))?;
    let left = hits.len().saturating_sub(k);
    hits.truncate(k);
    let now = context.environment.now;
    let short = |id| index.short_id(id).unwrap_or_else(|_| id.to_string());
    let remarks = hits
        .iter()
        .map(|hit| remarks_on(&index, hit.entry.id(), now, short));
    let remarks = remarks.collect::<Result<Vec<_>, _>>()?;
    let hits: Vec<(Hit, Vec<String>)> = hits.into_iter().zip(remarks).collect();
    let result = match request.detail {
        Detail::Index => hits
            .into_iter()
            .map(|(hit, later)| line(&hit, later, now))
            .collect(),
        Detail::Full => full(hits, context, &index)?,
    };
    Ok(SearchHits {
        result,
        left,
        commits: commits(context, project.as_deref(), &filter, query),
    })
}

/// Searches the commits of a project, if the filter takes notes of any kind. Without a project, notes of
/// all are searched, but commits of the caller's own.
pub fn commits(
    context: &Context,
    project: Option<&str>,
    filter: &Filter,
    query: &str,
) -> Vec<String> {
    let project = match project {
        Some(key) if key != "." => Some(context.project(Some(key))),
        _ => context.own_project().ok(),
    };
    let is_any = filter.note_type.is_none() && filter.kind.is_none();
    let project = project.filter(|_| is_any);
    let search = |project| project_history::for_search(context, &project, query);
    project.map(search).unwrap_or_default()
}

fn line(hit: &Hit, later: Vec<String>, now: DateTime<Utc>) -> SearchHit {
    let entry = &hit.entry;
    SearchHit::Line(HitLine {
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
        Ok(SearchHit::Full(Box::new(FullHit {
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
