//! claude-mem: its SQLite database up to schema 52, and its JSON export.
//!
//! Observations become notes by their type, and the summaries of a session become one session note.
//! Prompts and tool calls are raw records of sessions, which `backfill` takes from the transcripts.

use std::collections::HashMap;

use anamnesis_note::note::Kind;
use anamnesis_store::foreign_database::Row;
use serde_json::Value;

use super::{
    Hints, Input, Memory, SourceRecord, json, known_version,
    record::{bullets, id_of, paragraphs, text, texts, time},
};
use crate::Error;

/// The latest schema that is known.
const MAX_SCHEMA: i64 = 52;

/// Projects are named by the base name of their folder. The client's transcripts know the folder,
/// and so does each tool call.
pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let [observations, summaries, client, tools] = tables(input)?;
    let mut hints = Hints::default();
    // The client's sessions by claude-mem's own ids.
    let mut sessions = HashMap::new();
    for row in client.iter().flatten() {
        let session = id_of(row, "content_session_id");
        hints.add_session(&id_of(row, "project"), &session);
        sessions.insert(id_of(row, "memory_session_id"), session);
    }
    let folders = tools.iter().flatten();
    let folders = folders.map(|row| (id_of(row, "project"), id_of(row, "cwd")));
    hints.folders.extend(folders);
    let mut records = SourceRecord::from_rows(observations, |row| observation(row, &sessions));
    let mut places = HashMap::new();
    for row in summaries {
        let session = row.as_ref().map(|row| id_of(row, "memory_session_id"));
        let place = *places.entry(session.ok()).or_insert(records.len());
        let next = row.map_or_else(SourceRecord::skipped, |row| summary(&row, &sessions));
        if let Some(record) = records.get_mut(place).filter(|_| next.skip.is_none()) {
            record.body = format!("{}\n\n{}", record.body, next.body);
            record.updated = next.updated;
            records.push(SourceRecord::skipped(
                "joined with a summary of its session",
            ));
        } else {
            records.push(next);
        }
    }
    Ok(Memory { records, hints })
}

/// Returns the observations, the summaries by session, the client's sessions, and the folders of projects.
fn tables(input: &Input) -> Result<[Vec<Row>; 4], Error> {
    if input.database.is_none() {
        let export = json::document(&input.path)?;
        let rows = |keys: &[&str]| {
            let rows = keys.iter().flat_map(|key| json::items(&export, key));
            rows.cloned().map(Ok).collect::<Vec<Row>>()
        };
        return Ok([
            rows(&["", "items", "observations"]),
            rows(&["summaries", "session_summaries"]),
            rows(&["sessions"]),
            Vec::new(),
        ]);
    }
    let database = input.table("claude-mem", "observations")?;
    let versions = database.rows("SELECT max(version) AS version FROM schema_versions")?;
    let mut versions = versions.iter().flatten();
    let version = versions.find_map(|row| row["version"].as_i64());
    known_version("claude-mem", version.unwrap_or_default(), MAX_SCHEMA)?;
    let folders = "SELECT project, min(cwd) AS cwd FROM tool_uses WHERE cwd <> '' GROUP BY project";
    Ok([
        database.rows("SELECT * FROM observations ORDER BY id")?,
        database.rows_of("session_summaries", "ORDER BY created_at_epoch, id")?,
        database.rows_of("sdk_sessions", "")?,
        // Earlier schemas have no such table.
        database.rows(folders).unwrap_or_default(),
    ])
}

fn observation(row: &Value, sessions: &HashMap<String, String>) -> SourceRecord {
    let concepts = texts(row, "concepts");
    let kind = match text(row, "type") {
        // What else would bring it up is not known, so only a trap becomes a warning.
        Some("bugfix") if concepts.iter().any(|concept| concept == "gotcha") => Kind::Antipattern,
        _ => Kind::Fact,
    };
    let mut tags: Vec<String> = text(row, "type").map(str::to_owned).into_iter().collect();
    tags.extend(concepts);
    let facts = bullets("", &texts(row, "facts"));
    let files = bullets("Files", &texts(row, "files_modified"));
    // The tool's own label of a memory that a person saved.
    let subtitle = text(row, "subtitle").filter(|subtitle| *subtitle != "Manual memory");
    let body = paragraphs([
        subtitle,
        text(row, "narrative").or(text(row, "text")),
        facts.as_deref(),
        files.as_deref(),
    ]);
    let title = text(row, "title").unwrap_or_default().to_owned();
    let id = format!("observations/{}", id_of(row, "id"));
    let record = SourceRecord::new(id, kind, title, body);
    SourceRecord {
        tags,
        ..placed(record, row, sessions)
    }
}

fn summary(row: &Value, sessions: &HashMap<String, String>) -> SourceRecord {
    let part = |heading: &str, key: &str| {
        text(row, key).map(|text| format!("**{heading}** {}", text.trim()))
    };
    let parts = [
        part("Ask", "request"),
        part("Investigated", "investigated"),
        part("Learned", "learned"),
        part("Completed", "completed"),
        part("Next steps", "next_steps"),
        part("Notes", "notes"),
        bullets("Files", &texts(row, "files_edited")),
    ];
    let body = paragraphs(parts.iter().map(Option::as_deref));
    let title = text(row, "request").unwrap_or_default().to_owned();
    let id = format!("session_summaries/{}", id_of(row, "id"));
    let record = SourceRecord::new(id, Kind::Experience, title, body);
    placed(record, row, sessions)
}

/// Sets the project, the session and the times.
fn placed(record: SourceRecord, row: &Value, sessions: &HashMap<String, String>) -> SourceRecord {
    let at = time(row, "created_at_epoch").or_else(|| time(row, "created_at"));
    let project = text(row, "merged_into_project").or(text(row, "project"));
    SourceRecord {
        project: project.map(str::to_owned),
        session: sessions.get(&id_of(row, "memory_session_id")).cloned(),
        ..record.at(at, at)
    }
}
