//! Mem0: its history, of which the last event of a memory has its text; and OpenMemory's database.

use std::collections::{BTreeMap, HashMap};

use anamnesis_note::note::Kind;
use serde_json::Value;

use super::{
    Input, Memory, SourceRecord,
    record::{id_of, text, time},
};
use crate::Error;

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let rows = input.table("mem0", "history")?.rows(
        "SELECT history.*, first FROM history JOIN (SELECT max(rowid) AS last, \
         min(created_at) AS first FROM history GROUP BY memory_id) \
         ON history.rowid = last ORDER BY last",
    )?;
    Ok(SourceRecord::from_rows(rows, |row| {
        let is_deleted = row.get("is_deleted").and_then(Value::as_i64) == Some(1);
        if is_deleted || text(row, "event") == Some("DELETE") {
            return SourceRecord::skipped("deleted there");
        }
        let body = text(row, "new_memory").unwrap_or_default().to_owned();
        let record = SourceRecord::new(id_of(row, "memory_id"), Kind::Fact, String::new(), body);
        SourceRecord {
            is_versioned: true,
            ..record.at(time(row, "first"), time(row, "updated_at"))
        }
    })
    .into())
}

pub(super) fn read_openmemory(input: &Input) -> Result<Memory, Error> {
    let database = input.table("openmemory", "memories")?;
    let mut categories: HashMap<String, Vec<String>> = HashMap::new();
    if !database.columns("memory_categories")?.is_empty() {
        let rows = database.rows(
            "SELECT memory_id, name FROM memory_categories \
             JOIN categories ON categories.id = category_id ORDER BY name",
        )?;
        for row in rows.iter().flatten() {
            let of_memory = categories.entry(id_of(row, "memory_id")).or_default();
            of_memory.push(id_of(row, "name"));
        }
    }
    let apps = database.rows_of("apps", "")?;
    let apps: BTreeMap<String, String> = apps
        .iter()
        .flatten()
        .map(|row| (id_of(row, "id"), id_of(row, "name")))
        .collect();
    let rows = database.rows_of("memories", "ORDER BY created_at, id")?;
    Ok(SourceRecord::from_rows(rows, |row| {
        let id = id_of(row, "id");
        let tags = categories.remove(&id).unwrap_or_default();
        let app = apps.get(&id_of(row, "app_id")).cloned();
        memory(row, id, tags, app)
    })
    .into())
}

fn memory(row: &Value, id: String, mut tags: Vec<String>, app: Option<String>) -> SourceRecord {
    match text(row, "state") {
        Some("deleted") => return SourceRecord::skipped("deleted there"),
        Some("archived" | "paused") => return SourceRecord::skipped("archived or paused there"),
        _ => {}
    }
    let kind = if tags.iter().any(|tag| tag.starts_with("preference")) {
        Kind::Preference
    } else {
        Kind::Fact
    };
    tags.extend(app);
    let metadata: Value = text(row, "metadata")
        .and_then(|json| serde_json::from_str(json).ok())
        .unwrap_or_default();
    let body = text(row, "content").unwrap_or_default().to_owned();
    let record = SourceRecord::new(id, kind, String::new(), body);
    SourceRecord {
        project: text(&metadata, "repo")
            .or(text(&metadata, "project"))
            .map(str::to_owned),
        tags,
        is_versioned: true,
        ..record.at(time(row, "created_at"), time(row, "updated_at"))
    }
}
