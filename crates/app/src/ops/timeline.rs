//! Returns what happened before and after a note or a time.

use anamnesis_note::note::parse_timestamp;
use anamnesis_recall::search::MAX_HITS;
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::{Moment, MomentKind},
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::note;
use crate::{Error, context::Context, history::iso};

const DEFAULT_EACH: usize = 5;

/// How many characters of a prompt or an observation are shown.
const MAX_TEXT_LENGTH: usize = 300;

/// A note or a time, and how much around it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TimelineRequest {
    /// Note id or ISO 8601 time
    around: String,
    /// Maximum number of entries before it, up to 200
    #[serde(default = "super::default_of::<DEFAULT_EACH>")]
    before: usize,
    /// Maximum number of entries after it, up to 200
    #[serde(default = "super::default_of::<DEFAULT_EACH>")]
    after: usize,
    /// Project key; "." = this session's. Default: the note's project, or every project
    project: Option<String>,
}

/// What happened around a time.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Timeline {
    /// In chronological order
    result: Vec<TimelineEntry>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct TimelineEntry {
    at: String,
    /// session (start), prompt, observation or note
    what: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<String>,
    /// Note id
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    project: String,
    text: String,
}

/// Returns what happened around a note or a time.
pub fn timeline(context: &Context, request: TimelineRequest) -> Result<Timeline, Error> {
    let index = context.index_to_read()?;
    let (at, own) = moment_of(&index, &request.around)?;
    let keys = context.keys(request.project.or(own).as_deref())?;
    let (before, after) = (request.before.min(MAX_HITS), request.after.min(MAX_HITS));
    let mut items: Vec<(DateTime<Utc>, TimelineEntry)> = Vec::new();
    if let Some(records) = context.records()? {
        let moments = records.around(&keys, at.timestamp_millis(), before, after)?;
        items.extend(moments.iter().map(of_moment));
    }
    let filter = Filter {
        projects: keys,
        with_superseded: true,
        ..Filter::default()
    };
    items.extend(index.list(&filter, usize::MAX)?.iter().filter_map(of_note));
    // The sort is stable: at the same time, sessions come before prompts and notes.
    items.sort_by_key(|(time, _)| *time);
    let middle = items.partition_point(|(time, _)| *time <= at);
    let last = items.len().min(middle.saturating_add(after));
    let result = items.drain(middle.saturating_sub(before)..last);
    Ok(Timeline {
        result: result.map(|(_, item)| item).collect(),
    })
}

/// Returns the requested time and, for a note, its project.
fn moment_of(index: &Index, typed: &str) -> Result<(DateTime<Utc>, Option<String>), Error> {
    if let Some(time) = parse_timestamp(typed) {
        return Ok((time, None));
    }
    let entry = Context::resolve(index, typed)?;
    let made = parse_timestamp(&entry.created_at).ok_or_else(|| {
        let error = Error::failed(format!("note {} has no creation time", entry.id()));
        error.code("no_time").hint("pass a time instead")
    })?;
    Ok((made, Some(entry.project)))
}

fn of_moment(moment: &Moment) -> (DateTime<Utc>, TimelineEntry) {
    let at = DateTime::from_timestamp_millis(moment.at).unwrap_or_default();
    let (what, text) = match &moment.event {
        MomentKind::Session => ("session", String::new()),
        MomentKind::Prompt(text) => ("prompt", one_line(text)),
        MomentKind::Observation(observation) => {
            let text = format!("{} {}", observation.title, observation.narrative);
            ("observation", one_line(&text))
        }
    };
    let entry = TimelineEntry {
        at: iso(at),
        what,
        session: Some(moment.session.clone()),
        id: None,
        project: moment.project.clone(),
        text: note::cut(&text, MAX_TEXT_LENGTH),
    };
    (at, entry)
}

/// Places a note at its creation time; `None` if it has none.
fn of_note(entry: &Entry) -> Option<(DateTime<Utc>, TimelineEntry)> {
    let at = parse_timestamp(&entry.created_at)?;
    let entry = TimelineEntry {
        at: iso(at),
        what: "note",
        session: entry.session.clone(),
        id: Some(entry.id().to_string()),
        project: entry.project.clone(),
        text: format!("{}: {}", entry.shown_kind(), note::title(&entry.title)),
    };
    Some((at, entry))
}
