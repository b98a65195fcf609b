//! A conversation of claude.ai or ChatGPT as a session note.

use std::collections::HashSet;

use anamnesis_note::note::Kind;
use serde_json::Value;

use super::record::{SourceRecord, id_of, text, time};

/// How much of each message is kept, in characters.
const MAX_MESSAGE: usize = 2_000;

/// Returns the session note of a conversation: what was said, without tools and attachments.
pub(super) fn conversation(value: &Value) -> SourceRecord {
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
    let record = SourceRecord::new(
        format!("conversations/{id}"),
        Kind::Experience,
        title.to_owned(),
        body,
    );
    SourceRecord {
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
