//! Exports of claude.ai and ChatGPT: memories, the instructions and documents of projects, and, if
//! asked for, conversations.

use anamnesis_note::note::Kind;
use serde_json::Value;

use super::{
    Input, Memory, SourceRecord,
    conversation::conversation,
    folder::{files, id_below},
    json,
    record::{id_of, text, time},
};
use crate::Error;

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let folder = input.path.as_path();
    // The names of projects are in a file of their own.
    let mut projects = Vec::new();
    for path in files(folder, &["projects.json"])? {
        let document = json::document(&path)?;
        let named = json::items(&document, "").iter().map(|project| {
            let name = text(project, "name").unwrap_or_default().to_owned();
            (id_of(project, "uuid"), name)
        });
        projects.extend(named);
    }
    let mut records = Vec::new();
    for path in files(folder, &[".json"])? {
        let file = id_below(folder, &path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_memory = name == "memories.json" || file.contains("memories/");
        let is_known = is_memory || name == "conversations.json" || name == "projects.json";
        if !is_known {
            continue;
        }
        let document = json::document(&path)?;
        let items = json::items(&document, "").iter();
        match &*name {
            "conversations.json" if input.with_conversations => {
                records.extend(items.map(conversation));
            }
            "conversations.json" => records
                .extend(items.map(|_| SourceRecord::skipped("a conversation (--conversations)"))),
            "projects.json" => items.for_each(|it| project(it, &mut records)),
            _ => match &document {
                Value::Array(accounts) => (accounts.iter())
                    .for_each(|account| memory_of(account, &file, &projects, &mut records)),
                account => memory_of(account, &file, &projects, &mut records),
            },
        }
    }
    Ok(records.into())
}

/// Adds what an account's memory says: of everything, of each project, and its files.
fn memory_of(
    account: &Value,
    file: &str,
    projects: &[(String, String)],
    records: &mut Vec<SourceRecord>,
) {
    let record = |id: &str, title: String, body: &str| {
        let id = format!("{file}/{id}");
        SourceRecord::new(id, Kind::Fact, title, body.to_owned())
    };
    for value in json::items(account, "memory_files") {
        let name = text(value, "path").or(text(value, "name"));
        let body = text(value, "content").or(value.as_str());
        let name = name.unwrap_or("memory");
        records.push(record(name, String::new(), body.unwrap_or_default()));
    }
    if let Some(body) = text(account, "conversations_memory") {
        records.push(SourceRecord {
            is_versioned: true,
            ..record("conversations", "Memory of conversations".to_owned(), body)
        });
    }
    let of_projects = account.get("project_memories").and_then(Value::as_object);
    for (uuid, body) in of_projects.into_iter().flatten() {
        let name = projects.iter().find(|(id, _)| id == uuid);
        let name = name.map(|(_, name)| name.as_str());
        let title = format!("Memory of {}", name.unwrap_or("a project"));
        let body = body.as_str().unwrap_or_default();
        records.push(SourceRecord {
            project: Some(name.unwrap_or(uuid).to_owned()),
            is_versioned: true,
            ..record(&format!("projects/{uuid}"), title, body)
        });
    }
}

/// Adds the instructions and documents of a project.
fn project(project: &Value, records: &mut Vec<SourceRecord>) {
    let name = text(project, "name").map(str::to_owned);
    let uuid = id_of(project, "uuid");
    let at = |record: SourceRecord, value: &Value| SourceRecord {
        project: name.clone(),
        is_versioned: true,
        ..record.at(time(value, "created_at"), time(value, "updated_at"))
    };
    if let Some(body) = text(project, "prompt_template") {
        let id = format!("projects/{uuid}/prompt_template");
        let record = SourceRecord::new(id, Kind::Preference, String::new(), body.to_owned());
        records.push(at(record, project));
    }
    records.extend(json::items(project, "docs").iter().map(|document| {
        let title = text(document, "filename").unwrap_or_default().to_owned();
        let body = text(document, "content").unwrap_or_default().to_owned();
        let id = format!("docs/{}", id_of(document, "uuid"));
        at(SourceRecord::new(id, Kind::Fact, title, body), document)
    }));
}
