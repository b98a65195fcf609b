//! A session as JSON: all rows that the journal has. The format is documented for scripts.

use anamnesis_note::id::NoteId;
use anamnesis_session::event::{Agent, Privacy};
use anamnesis_store::{
    index::Index,
    journal::{Contents, Journal, LOST, Session, StoredEvent},
};
use anamnesis_text::{private_tokens, redact};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{Error, context::Context, format::iso, ops::note::Note};

/// The version of the export format; see docs/reference/sessions.md.
const VERSION: u32 = 1;

/// Exports sessions as one object, in parts. Sessions are read one at a time, because all of them
/// may be large.
pub fn write(
    context: &Context,
    journal: &Journal,
    index: &Index,
    ids: &[String],
    mut write: impl FnMut(&str) -> Result<(), Error>,
) -> Result<(), Error> {
    let program = concat!("anamnesis ", env!("CARGO_PKG_VERSION"));
    let at = iso(context.environment.now.timestamp_millis());
    write(&format!(
        "{{\n\"version\": {VERSION},\n\"program\": \"{program}\",\n\"exported_at\": \"{at}\",\n\"sessions\": ["
    ))?;
    let mut separator = "\n";
    for id in ids {
        // The session may have been forgotten in the meantime.
        let Some(contents) = journal.contents(id)? else {
            continue;
        };
        let session = session_json(context, index, contents)?;
        write(separator)?;
        write(&format!("{session:#}"))?;
        separator = ",\n";
    }
    write("\n]\n}\n")
}

/// Sessions, as `sessions` lists them.
#[derive(Serialize)]
pub struct SessionList {
    /// The newest sessions.
    pub sessions: Vec<Value>,
    /// How many there are.
    pub total: usize,
    /// Notes of sessions that have no records here, because a backfill wrote them.
    pub backfilled: Vec<Note>,
}

/// The JSON keys that a list and a full session share.
pub fn head_json(session: &Session, index: &Index) -> Result<Value, Error> {
    let note = index.get(NoteId::of_session(&session.id))?;
    let note =
        note.map(|entry| json!({ "id": entry.id().to_string(), "state": entry.state.as_str() }));
    let state = match session.end_reason.as_deref() {
        _ if !session.is_completed() => "open",
        Some(LOST) => "lost",
        _ => "ended",
    };
    Ok(json!({
        "id": session.id,
        "project": session.project,
        "folder": session.folder,
        "state": state,
        "end_reason": session.end_reason,
        "started_at": iso(session.started_at),
        "seen_at": iso(session.seen_at),
        "ended_at": session.ended_at.map(iso),
        "note": note,
    }))
}

/// All rows of a session, as JSON.
pub fn session_json(context: &Context, index: &Index, contents: Contents) -> Result<Value, Error> {
    let mut json = head_json(&contents.session, index)?;
    json["transcript"] = json!(contents.session.transcript);
    json["source"] = json!(contents.source);
    json["model"] = json!(contents.model);
    json["branch"] = json!(contents.branch);
    json["removed"] = json!(RemovedCounts::new(&contents));
    json["prompts"] = rows(contents.prompts, |prompt| {
        json!({
            "number": prompt.number,
            "kind": prompt.kind.as_str(),
            "privacy": prompt.privacy.as_str(),
            "text": prompt.text,
            "events_not_kept": prompt.suppressed,
            "many_tags": prompt.many_tags,
            "at": iso(prompt.at),
        })
    });
    json["tool_events"] = rows(contents.events, event_json);
    json["turn_ends"] = rows(contents.turn_ends, |end| {
        json!({
            "prompt": end.prompt,
            "after_tool_event": end.after_event,
            "speaker": end.speaker.as_str(),
            "agent": end.agent.as_ref().map(agent_json),
            "text": end.text,
            "at": iso(end.at),
        })
    });
    json["subagent_tasks"] = rows(
        contents.delegations,
        |task| json!({ "id": task.id, "agent_type": task.kind, "task": task.prompt, "at": iso(task.at) }),
    );
    json["observations"] = json!(contents.observations);
    json["summaries"] = rows(contents.summaries, |stored| {
        let mut summary = json!(stored.summary);
        summary["maker"] = stored.maker.into();
        summary["up_to_prompt"] = stored.up_to.into();
        summary
    });
    json["jobs"] = rows(contents.jobs, |job| {
        json!({ "kind": job.kind, "state": job.state, "tries": job.tries, "error": job.error,
                "at": iso(job.at) })
    });
    json["given"] = rows(contents.shown, |shown| {
        json!({ "note": shown.note, "at": iso(shown.at), "occasion": shown.lane,
                "level": shown.level, "reason": shown.reason })
    });
    Ok(inert(context, json))
}

fn rows<T>(rows: Vec<T>, json: impl FnMut(T) -> Value) -> Value {
    rows.into_iter().map(json).collect()
}

fn event_json(stored: StoredEvent) -> Value {
    let event = stored.event;
    json!({
        "number": stored.number,
        "prompt": stored.prompt,
        "id": event.id,
        "tool": event.tool,
        "outcome": event.outcome.as_str(),
        "error": event.error,
        "duration_ms": event.duration_ms,
        "files": event.files,
        "agent": event.agent.as_ref().map(agent_json),
        "from_batch": event.is_from_batch,
        "many_tags": event.many_tags,
        "at": iso(stored.at),
        "input": event.input,
        "response": event.response,
    })
}

fn agent_json(agent: &Agent) -> Value {
    json!({ "id": agent.id, "type": agent.kind })
}

/// Removes terminal sequences from all texts of a value.
pub fn inert(context: &Context, value: Value) -> Value {
    match value {
        Value::String(text) => context.printable(&text).into(),
        Value::Array(values) => values
            .into_iter()
            .map(|value| inert(context, value))
            .collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, value)| (context.printable(&name), inert(context, value)))
            .collect(),
        other => other,
    }
}

/// Counts of what is no longer stored of a session.
#[derive(Debug, Default, Serialize)]
pub struct RemovedCounts {
    /// Prompts that were entirely private, or forgotten.
    pub private_prompts: usize,
    /// Events of these prompts.
    pub events_under_them: i64,
    /// Masked credentials.
    pub secrets: usize,
    /// Masked repetitions of private words.
    pub private_words: usize,
    /// Tool events removed by retention.
    pub tool_events_by_age: i64,
}

impl RemovedCounts {
    /// Counts what is missing.
    pub fn new(contents: &Contents) -> Self {
        let mut removed = Self {
            tool_events_by_age: contents.session.tool_events
                - i64::try_from(contents.events.len()).unwrap_or(i64::MAX),
            ..Self::default()
        };
        removed.tool_events_by_age = removed.tool_events_by_age.max(0);
        for prompt in &contents.prompts {
            removed.private_prompts += usize::from(prompt.privacy == Privacy::Full);
            removed.events_under_them += prompt.suppressed;
            removed.look_at(prompt.text.as_deref());
        }
        for stored in &contents.events {
            let event = &stored.event;
            removed.look_at(Some(&json!(event.input).to_string()));
            removed.look_at(Some(&json!(event.response).to_string()));
            removed.look_at(event.error.as_deref());
        }
        for end in &contents.turn_ends {
            removed.look_at(end.text.as_deref());
        }
        for task in &contents.delegations {
            removed.look_at(Some(&task.prompt));
        }
        removed
    }

    fn look_at(&mut self, text: Option<&str>) {
        let text = text.unwrap_or_default();
        self.secrets += text.matches(redact::MASK).count();
        self.private_words += text.matches(private_tokens::MASK).count();
    }
}
