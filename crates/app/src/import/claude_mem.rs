//! claude-mem: its SQLite database up to schema 52, and its JSON export.
//!
//! Observations become notes by their type, and the summaries of a session become one session note.
//! Prompts and tool calls are raw records of sessions, which `backfill` takes from the transcripts.

use std::collections::HashMap;

use anamnesis_note::note::Kind;
use serde_json::Value;

use super::{
    Format, Hints, Input, Record, Take, TakeRow, json,
    record::{bullets, id_of, paragraphs, text, texts, time},
    row_value, sqlite_of,
};
use crate::Error;

pub(super) const FORMAT: Format = Format {
    name: "claude-mem",
    places: &[".claude-mem/claude-mem.db"],
    is_in: |_| false,
    hints,
    read,
};

/// The latest schema that is known.
const MAX_SCHEMA: i64 = 52;

/// The client's session by claude-mem's own id of it.
type Sessions = HashMap<String, String>;

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let sessions = sessions(input)?;
    // The summaries of a session so far.
    let mut open: Option<(String, Record)> = None;
    each(input, &mut |table, row| {
        let record = match (table, row) {
            (_, Err(reason)) => Record::skipped(String::new(), reason),
            ("session_summaries", Ok(row)) => {
                let own = id_of(&row, "memory_session_id");
                let next = summary(&row, &sessions);
                match &mut open {
                    Some((session, record)) if *session == own => {
                        record.body = format!("{}\n\n{}", record.body, next.body);
                        record.updated = next.updated;
                        return take(Record::skipped(
                            String::new(),
                            "joined with a summary of its session",
                        ));
                    }
                    _ => match open.replace((own, next)) {
                        Some((_, finished)) => finished,
                        None => return Ok(()),
                    },
                }
            }
            (_, Ok(row)) => observation(&row, &sessions),
        };
        take(record)
    })?;
    match open {
        Some((_, record)) => take(record),
        None => Ok(()),
    }
}

/// Calls `take` with each row that may become a note, and its table.
fn each(input: &Input, take: &mut TakeRow<'_>) -> Result<(), Error> {
    if input.database.is_none() {
        let file = json::open(&input.path)?;
        return json::each_element(&input.path, file, &mut |key, value| match key {
            "" | "items" | "observations" => take("observations", Ok(value)),
            "summaries" | "session_summaries" => take("session_summaries", Ok(value)),
            _ => Ok(()),
        });
    }
    let database = sqlite_of(input, FORMAT.name, "observations")?;
    database.each(
        "SELECT max(version) AS version FROM schema_versions",
        |row| match row.get("version").and_then(Value::as_i64) {
            Some(version) if version > MAX_SCHEMA => Err(Error::failed(format!(
                "the database has schema {version} of claude-mem, but only schemas up to \
                 {MAX_SCHEMA} are known; nothing was imported"
            ))
            .hint("update anamnesis, or import claude-mem's JSON export")),
            _ => Ok::<(), Error>(()),
        },
    )?;
    let tables = [
        ("observations", "id"),
        (
            "session_summaries",
            "memory_session_id, created_at_epoch, id",
        ),
    ];
    for (table, order) in tables {
        if database.columns(table)?.is_empty() {
            continue;
        }
        database.each(&format!("SELECT * FROM {table} ORDER BY {order}"), |row| {
            take(table, row_value(row))
        })?;
    }
    Ok(())
}

fn observation(row: &Value, sessions: &Sessions) -> Record {
    let concepts = texts(row, "concepts");
    let kind = match text(row, "type") {
        // What else would bring it up is not known, so only a trap becomes a warning.
        Some("bugfix") if concepts.iter().any(|concept| concept == "gotcha") => Kind::Antipattern,
        _ => Kind::Fact,
    };
    let mut tags: Vec<String> = text(row, "type").map(str::to_owned).into_iter().collect();
    tags.extend(concepts);
    let facts = texts(row, "facts");
    let facts = bullets("", &facts);
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
    let record = Record::new(
        format!("observations/{}", id_of(row, "id")),
        kind,
        title,
        body,
    );
    Record {
        tags,
        ..placed(record, row, sessions)
    }
}

fn summary(row: &Value, sessions: &Sessions) -> Record {
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
    placed(
        Record::new(id, Kind::Experience, title, body),
        row,
        sessions,
    )
}

/// Sets the project, the session and the times.
fn placed(record: Record, row: &Value, sessions: &Sessions) -> Record {
    let at = time(row, "created_at_epoch").or_else(|| time(row, "created_at"));
    let project = text(row, "merged_into_project").or(text(row, "project"));
    Record {
        project: project.map(str::to_owned),
        session: sessions.get(&id_of(row, "memory_session_id")).cloned(),
        ..record.at(at, at)
    }
}

fn sessions(input: &Input) -> Result<Sessions, Error> {
    let mut sessions = Sessions::new();
    each_session(input, &mut |row| {
        sessions.insert(
            id_of(row, "memory_session_id"),
            id_of(row, "content_session_id"),
        );
    })?;
    Ok(sessions)
}

fn each_session(input: &Input, take: &mut dyn FnMut(&Value)) -> Result<(), Error> {
    let Some(database) = &input.database else {
        let file = json::open(&input.path)?;
        return json::each_element(&input.path, file, &mut |key, value| {
            if key == "sessions" {
                take(&value);
            }
            Ok(())
        });
    };
    if database.columns("sdk_sessions")?.is_empty() {
        return Ok(());
    }
    database.each("SELECT * FROM sdk_sessions", |row| {
        take(&Value::Object(row));
        Ok(())
    })
}

/// Projects are named by the base name of their folder. The client's transcripts know the folder,
/// and so does each tool call.
fn hints(input: &Input) -> Result<Hints, Error> {
    let mut hints = Hints::default();
    each_session(input, &mut |row| {
        hints.add_session(&id_of(row, "project"), &id_of(row, "content_session_id"));
    })?;
    if let Some(database) = &input.database
        && database
            .columns("tool_uses")?
            .iter()
            .any(|column| column == "cwd")
    {
        let sql = "SELECT project, min(cwd) AS cwd FROM tool_uses WHERE cwd <> '' GROUP BY project";
        database.each(sql, |row| {
            let row = Value::Object(row);
            hints
                .folders
                .insert(id_of(&row, "project"), id_of(&row, "cwd"));
            Ok::<(), Error>(())
        })?;
    }
    Ok(hints)
}
