//! Exports of claude.ai and ChatGPT: memories, the instructions and documents of projects, and, if
//! asked for, conversations.

use std::{collections::HashSet, path::Path};

use anamnesis_note::note::Kind;
use serde_json::Value;

use super::{
    Format, Input, NO_HINTS, Record, Take,
    folder::{each_file, id_below},
    json,
    record::{id_of, text, time},
};
use crate::Error;

pub(super) const CLAUDE_AI: Format = Format {
    name: "claude-ai",
    places: &[],
    is_in: |_| false,
    hints: NO_HINTS,
    read,
};

pub(super) const CHATGPT: Format = Format {
    name: "chatgpt",
    places: &[],
    is_in: |_| false,
    hints: NO_HINTS,
    read,
};

/// How much of each message is kept, in characters.
const MAX_MESSAGE: usize = 2_000;

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let folder = input.path.as_path();
    // The names of projects are in a file of their own.
    let mut projects = Vec::new();
    each_file(folder, &["projects.json"], &mut |path| {
        json::each_element(path, json::open(path)?, &mut |_, project| {
            let name = text(&project, "name").unwrap_or_default().to_owned();
            projects.push((id_of(&project, "uuid"), name));
            Ok(())
        })
    })?;
    each_file(folder, &[".json"], &mut |path| {
        let file = id_below(folder, path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_memory = name == "memories.json" || file.contains("memories/");
        match &*name {
            "conversations.json" => json::each_element(path, json::open(path)?, &mut |_, value| {
                take(if input.with_conversations {
                    conversation(&value)
                } else {
                    let id = id_of(&value, "uuid");
                    Record::skipped(id, "a conversation (--conversations)")
                })
            }),
            "projects.json" => json::each_element(path, json::open(path)?, &mut |_, value| {
                project(&value, take)
            }),
            _ if is_memory => memories(path, &file, &projects, take),
            _ => Ok(()),
        }
    })
}

/// Reads a file of memories: a list of accounts, or one account.
fn memories(
    path: &Path,
    file: &str,
    projects: &[(String, String)],
    take: &mut Take<'_>,
) -> Result<(), Error> {
    let mut account = serde_json::Map::new();
    json::each_element(path, json::open(path)?, &mut |key, value| match key {
        "" => memory_of(&value, file, projects, take),
        "memory_files" => {
            let name = text(&value, "path")
                .or(text(&value, "name"))
                .unwrap_or("memory");
            let body = text(&value, "content")
                .or(value.as_str())
                .unwrap_or_default();
            let id = format!("{file}/{name}");
            take(Record::new(id, Kind::Fact, String::new(), body.to_owned()))
        }
        key => {
            account.insert(key.to_owned(), value);
            Ok(())
        }
    })?;
    if account.is_empty() {
        return Ok(());
    }
    memory_of(&Value::Object(account), file, projects, take)
}

/// Hands over what an account's memory says: of everything, and of each project.
fn memory_of(
    account: &Value,
    file: &str,
    projects: &[(String, String)],
    take: &mut Take<'_>,
) -> Result<(), Error> {
    let title = |of: &str| format!("Memory of {of}");
    if let Some(body) = text(account, "conversations_memory") {
        let id = format!("{file}/conversations");
        let record = Record::new(id, Kind::Fact, title("conversations"), body.to_owned());
        take(Record {
            is_versioned: true,
            ..record
        })?;
    }
    let of_projects = account.get("project_memories").and_then(Value::as_object);
    for (uuid, body) in of_projects.into_iter().flatten() {
        let name = projects
            .iter()
            .find(|(id, _)| id == uuid)
            .map(|(_, name)| name.clone());
        let shown = name.as_deref().unwrap_or("a project");
        let body = body.as_str().unwrap_or_default().to_owned();
        let id = format!("{file}/projects/{uuid}");
        take(Record {
            project: name.clone().or_else(|| Some(uuid.clone())),
            is_versioned: true,
            ..Record::new(id, Kind::Fact, title(shown), body)
        })?;
    }
    Ok(())
}

/// Hands over the instructions and documents of a project.
fn project(project: &Value, take: &mut Take<'_>) -> Result<(), Error> {
    let name = text(project, "name").map(str::to_owned);
    let uuid = id_of(project, "uuid");
    let at = |record: Record, value: &Value| Record {
        project: name.clone(),
        is_versioned: true,
        ..record.at(time(value, "created_at"), time(value, "updated_at"))
    };
    if let Some(body) = text(project, "prompt_template") {
        let id = format!("projects/{uuid}/prompt_template");
        let record = Record::new(id, Kind::Preference, String::new(), body.to_owned());
        take(at(record, project))?;
    }
    let documents = project.get("docs").and_then(Value::as_array);
    for document in documents.into_iter().flatten() {
        let title = text(document, "filename").unwrap_or_default().to_owned();
        let body = text(document, "content").unwrap_or_default().to_owned();
        let id = format!("docs/{}", id_of(document, "uuid"));
        take(at(Record::new(id, Kind::Fact, title, body), document))?;
    }
    Ok(())
}

/// Returns the session note of a conversation: what was said, without tools and attachments.
fn conversation(value: &Value) -> Record {
    let messages = match value.get("chat_messages").and_then(Value::as_array) {
        Some(messages) => messages.iter().filter_map(claude_message).collect(),
        None => chatgpt_messages(value),
    };
    let id = match id_of(value, "uuid") {
        id if id.is_empty() => id_of(value, "conversation_id"),
        id => id,
    };
    let lines = messages.iter().map(|(is_person, text)| {
        let who = if *is_person { "Ask" } else { "Answer" };
        let text: String = text.trim().chars().take(MAX_MESSAGE).collect();
        format!("**{who}** {text}")
    });
    let body = lines.collect::<Vec<_>>().join("\n\n");
    let title = text(value, "name")
        .or(text(value, "title"))
        .unwrap_or_default();
    let created = time(value, "created_at").or_else(|| time(value, "create_time"));
    let updated = time(value, "updated_at").or_else(|| time(value, "update_time"));
    let record = Record::new(
        format!("conversations/{id}"),
        Kind::Experience,
        title.to_owned(),
        body,
    );
    Record {
        is_archived: true,
        is_versioned: true,
        ..record.at(created, updated)
    }
}

/// Returns whether a person sent a message of claude.ai, and its text.
fn claude_message(message: &Value) -> Option<(bool, String)> {
    let parts = message.get("content").and_then(Value::as_array);
    let parts = parts
        .into_iter()
        .flatten()
        .filter_map(|part| text(part, "text"));
    let parts = parts.collect::<Vec<_>>().join("\n");
    let said = if parts.is_empty() {
        text(message, "text")?.to_owned()
    } else {
        parts
    };
    Some((text(message, "sender") == Some("human"), said))
}

/// Returns the messages of the branch that ChatGPT shows: from the last message up to the root.
fn chatgpt_messages(value: &Value) -> Vec<(bool, String)> {
    let Some(nodes) = value.get("mapping").and_then(Value::as_object) else {
        return Vec::new();
    };
    let shown = |node: &Value| {
        let message = node.get("message")?;
        let is_hidden = message.pointer("/metadata/is_visually_hidden_from_conversation");
        let role = message.pointer("/author/role")?.as_str()?;
        if is_hidden == Some(&Value::Bool(true)) || !["user", "assistant"].contains(&role) {
            return None;
        }
        let parts = message.pointer("/content/parts")?.as_array()?;
        let parts: Vec<&str> = parts.iter().filter_map(Value::as_str).collect();
        let said = parts.join("\n");
        (!said.trim().is_empty()).then_some((role == "user", said))
    };
    let latest = || {
        let times = nodes.iter().filter(|(_, node)| shown(node).is_some());
        let at = |node: &Value| node.pointer("/message/create_time").and_then(Value::as_f64);
        times.max_by(|(_, a), (_, b)| {
            at(a)
                .partial_cmp(&at(b))
                .unwrap_or(std::cmp::Ordering::Equal)
        })
    };
    let mut id = text(value, "current_node")
        .filter(|id| nodes.contains_key(*id))
        .map(str::to_owned)
        .or_else(|| latest().map(|(id, _)| id.clone()));
    let mut messages = Vec::new();
    // A damaged file may name a node as its own ancestor.
    let mut visited = HashSet::new();
    while let Some(own) = id.take().filter(|id| visited.insert(id.clone()))
        && let Some(node) = nodes.get(&own)
    {
        messages.extend(shown(node));
        id = text(node, "parent").map(str::to_owned);
    }
    messages.reverse();
    messages
}
