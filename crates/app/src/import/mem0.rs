//! Mem0: its history, which is replayed; and OpenMemory's database.

use std::collections::{BTreeMap, HashMap};

use anamnesis_note::note::Kind;
use serde_json::Value;

use super::{
    Format, Input, NO_HINTS, Record, Take,
    record::{id_of, text, time},
    row_value, sqlite_of,
};
use crate::Error;

pub(super) const MEM0: Format = Format {
    name: "mem0",
    places: &[".mem0/history.db"],
    is_in: |_| false,
    hints: NO_HINTS,
    read: read_history,
};

pub(super) const OPENMEMORY: Format = Format {
    name: "openmemory",
    places: &[],
    is_in: |_| false,
    hints: NO_HINTS,
    read: read_openmemory,
};

/// Replays the history: the last event of a memory has its text.
fn read_history(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let database = sqlite_of(input, MEM0.name, "history")?;
    let sql = "SELECT history.*, first FROM history JOIN (SELECT max(rowid) AS last, \
               min(created_at) AS first FROM history GROUP BY memory_id) \
               ON history.rowid = last ORDER BY last";
    database.each(sql, |row| {
        let id = row
            .get("memory_id")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let id = id.to_owned();
        let row = match row_value(row) {
            Ok(row) => row,
            Err(reason) => return take(Record::skipped(id, reason)),
        };
        let is_deleted = row.get("is_deleted").and_then(Value::as_i64) == Some(1);
        if is_deleted || text(&row, "event") == Some("DELETE") {
            return take(Record::skipped(id, "deleted there"));
        }
        let body = text(&row, "new_memory").unwrap_or_default().to_owned();
        let record = Record::new(id, Kind::Fact, String::new(), body);
        take(Record {
            is_versioned: true,
            ..record.at(time(&row, "first"), time(&row, "updated_at"))
        })
    })
}

fn read_openmemory(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let database = sqlite_of(input, OPENMEMORY.name, "memories")?;
    let mut categories: HashMap<String, Vec<String>> = HashMap::new();
    let sql = "SELECT memory_id, name FROM memory_categories \
               JOIN categories ON categories.id = category_id ORDER BY name";
    if !database.columns("memory_categories")?.is_empty() {
        database.each(sql, |row| {
            let row = Value::Object(row);
            let of_memory = categories.entry(id_of(&row, "memory_id")).or_default();
            of_memory.push(id_of(&row, "name"));
            Ok::<(), Error>(())
        })?;
    }
    let mut apps = BTreeMap::new();
    if !database.columns("apps")?.is_empty() {
        database.each("SELECT id, name FROM apps", |row| {
            let row = Value::Object(row);
            apps.insert(id_of(&row, "id"), id_of(&row, "name"));
            Ok::<(), Error>(())
        })?;
    }
    database.each("SELECT * FROM memories ORDER BY created_at, id", |row| {
        let id = row.get("id").and_then(Value::as_str).unwrap_or_default();
        let id = id.to_owned();
        let row = match row_value(row) {
            Ok(row) => row,
            Err(reason) => return take(Record::skipped(id, reason)),
        };
        match text(&row, "state") {
            Some("deleted") => return take(Record::skipped(id, "deleted there")),
            Some("archived" | "paused") => {
                return take(Record::skipped(id, "archived or paused there"));
            }
            _ => {}
        }
        let mut tags = categories.remove(&id).unwrap_or_default();
        let kind = if tags.iter().any(|tag| tag.starts_with("preference")) {
            Kind::Preference
        } else {
            Kind::Fact
        };
        tags.extend(apps.get(&id_of(&row, "app_id")).cloned());
        let metadata: Value = text(&row, "metadata")
            .and_then(|json| serde_json::from_str(json).ok())
            .unwrap_or_default();
        let body = text(&row, "content").unwrap_or_default().to_owned();
        let record = Record::new(id, kind, String::new(), body);
        take(Record {
            project: text(&metadata, "repo")
                .or(text(&metadata, "project"))
                .map(str::to_owned),
            tags,
            is_versioned: true,
            ..record.at(time(&row, "created_at"), time(&row, "updated_at"))
        })
    })
}
