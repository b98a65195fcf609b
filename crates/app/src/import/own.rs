//! The JSON of `anamnesis export`: notes come back byte for byte.
//!
//! A text that would not be written today, because it has a private region or a credential, is
//! skipped. Everything else of a note is its owner's and stays.

use anamnesis_note::{
    draft::{safe, safe_line},
    note::{Note, NoteFile},
};
use anamnesis_store::notes::NotePath;
use serde_json::Value;

use super::{Input, Memory, SourceRecord, json, record::text};
use crate::Error;

/// The latest version of the format that is known.
const MAX_VERSION: u64 = 1;

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let path = &input.path;
    if path.extension().is_some_and(|ending| ending == "jsonl") {
        let lines = json::lines(path)?.into_iter();
        let read = |line: Option<Value>| match line {
            Some(line) => record(&line),
            None => SourceRecord::skipped("no valid JSON"),
        };
        return Ok(lines.map(read).collect::<Vec<_>>().into());
    }
    let document = json::document(path)?;
    let version = document.get("version").and_then(Value::as_u64);
    if let Some(version) = version.filter(|version| *version > MAX_VERSION) {
        let reason = format!("version {version}, expected {MAX_VERSION}");
        return Err(json::unreadable(path, &reason).hint("update anamnesis"));
    }
    let notes = json::items(&document, "notes");
    Ok(notes.iter().map(record).collect::<Vec<_>>().into())
}

fn record(value: &Value) -> SourceRecord {
    let path = text(value, "path").unwrap_or_default();
    let Ok(path) = path.parse::<NotePath>() else {
        return SourceRecord::skipped("without the path of a note");
    };
    let file = value.get("file").and_then(Value::as_str);
    let file = file.unwrap_or_default();
    let Ok(parsed) = NoteFile::parse(file.as_bytes(), path.id) else {
        return SourceRecord::skipped("no valid note");
    };
    let note = Note {
        scope: path.scope,
        ..parsed.into_note()
    };
    if note.note_type != path.folder {
        return SourceRecord::skipped("of another type than its path");
    }
    let is_safe = safe(&note.body) == note.body.trim() && safe_line(&note.title) == note.title;
    let texts = note.tags.iter().chain(&note.instead).chain(&note.when);
    if !is_safe || texts.into_iter().any(|text| safe(text) != text.trim()) {
        return SourceRecord::skipped("with a credential, private or invisible text");
    }
    SourceRecord {
        id: path.id.to_string(),
        exact: Some(Box::new((note, file.to_owned()))),
        ..SourceRecord::default()
    }
}
