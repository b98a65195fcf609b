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

use super::{Format, Input, NO_HINTS, Record, Take, json, record::text};
use crate::Error;

pub(super) const FORMAT: Format = Format {
    name: "anamnesis",
    places: &[],
    is_in: |_| false,
    hints: NO_HINTS,
    read,
};

/// The latest version of the format that is known.
const MAX_VERSION: u64 = 1;

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let path = &input.path;
    if path.extension().is_some_and(|ending| ending == "jsonl") {
        return json::each_line(path, json::open(path)?, &mut |number, line| {
            take(match line {
                Some(line) => record(&line),
                None => Record::skipped(format!("line {number}"), "no valid JSON"),
            })
        });
    }
    json::each_element(path, json::open(path)?, &mut |key, value| match key {
        "version" if value.as_u64().is_some_and(|version| version > MAX_VERSION) => Err(
            json::unreadable(path, &format!("version {value}, expected {MAX_VERSION}"))
                .hint("update anamnesis"),
        ),
        "notes" => take(record(&value)),
        _ => Ok(()),
    })
}

fn record(value: &Value) -> Record {
    let path = text(value, "path").unwrap_or_default();
    let skipped = |reason| Record::skipped(path.to_owned(), reason);
    let Ok(path) = path.parse::<NotePath>() else {
        return skipped("without the path of a note");
    };
    let file = value
        .get("file")
        .and_then(Value::as_str)
        .unwrap_or_default();
    let Ok(parsed) = NoteFile::parse(file.as_bytes(), path.id) else {
        return skipped("no valid note");
    };
    let note = Note {
        scope: path.scope,
        ..parsed.into_note()
    };
    if note.note_type != path.folder {
        return skipped("of another type than its path");
    }
    let is_safe = safe(&note.body) == note.body.trim() && safe_line(&note.title) == note.title;
    let texts = note.tags.iter().chain(&note.instead).chain(&note.when);
    if !is_safe || texts.into_iter().any(|text| safe(text) != text.trim()) {
        return skipped("with a credential, private or invisible text");
    }
    Record {
        exact: Some(Box::new((note, file.to_owned()))),
        ..Record::new(
            path.id.to_string(),
            anamnesis_note::note::Kind::Fact,
            String::new(),
            String::new(),
        )
    }
}
