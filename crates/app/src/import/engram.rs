//! engram: its SQLite database, the JSON of `engram export`, and the chunks in `.engram/`.
//!
//! Observations with a topic key are versions of one note: the latest replaces the others.

use std::{
    fs,
    io::Read as _,
    path::{Path, PathBuf},
};

use anamnesis_note::note::Kind;
use miniz_oxide::inflate::decompress_to_vec_with_limit;
use serde_json::Value;

use super::{
    Format, Hints, Input, Record, Take, TakeRow, json,
    record::{id_of, text, time},
    row_value, sqlite_of,
};
use crate::Error;

pub(super) const FORMAT: Format = Format {
    name: "engram",
    places: &[".engram/engram.db"],
    is_in: has_chunks,
    hints,
    read,
};

/// The largest chunk, packed and unpacked, in bytes.
const MAX_CHUNK: usize = 64 * 1024 * 1024;

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    each(input, "observations", &mut |_, row| match row {
        Ok(row) => take(observation(&row)),
        Err(reason) => take(Record::skipped(String::new(), reason)),
    })
}

/// Calls `take` with each row of a table.
fn each(input: &Input, table: &str, take: &mut TakeRow<'_>) -> Result<(), Error> {
    if input.database.is_some() {
        let database = sqlite_of(input, FORMAT.name, "observations")?;
        let order = if table == "observations" {
            "ORDER BY updated_at, id"
        } else {
            ""
        };
        return database.each(&format!("SELECT * FROM {table} {order}"), |row| {
            take(table, row_value(row))
        });
    }
    let mut visit = |key: &str, value: Value| {
        if key == table {
            take(table, Ok(value))
        } else {
            Ok(())
        }
    };
    if !input.path.is_dir() {
        return json::each_element(&input.path, json::open(&input.path)?, &mut visit);
    }
    for chunk in chunks(&input.path)? {
        let bytes = unpacked(&chunk)?;
        json::each_element(&chunk, bytes.as_slice(), &mut visit)?;
    }
    Ok(())
}

/// Returns the chunks of a project, `.engram/` or the folder of its chunks, in the order of the
/// manifest.
fn chunks(path: &Path) -> Result<Vec<PathBuf>, Error> {
    let folders = [path.join(".engram"), path.to_owned()];
    let folder = folders
        .iter()
        .find(|folder| folder.join("manifest.json").is_file());
    let Some(folder) = folder else {
        return Err(json::unreadable(path, &"no .engram/manifest.json in it")
            .hint("anamnesis import --from engram PROJECT/.engram"));
    };
    let manifest = folder.join("manifest.json");
    let mut named = Vec::new();
    json::each_element(&manifest, json::open(&manifest)?, &mut |key, value| {
        if key == "chunks" {
            named.push((time(&value, "created_at"), id_of(&value, "id")));
        }
        Ok(())
    })?;
    named.sort();
    let is_name =
        |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let chunks = named.into_iter().map(|(_, id)| id).filter(is_name);
    Ok(chunks
        .map(|id| folder.join("chunks").join(format!("{id}.jsonl.gz")))
        .collect())
}

/// Unpacks a chunk: a gzip file with one JSON object.
fn unpacked(path: &Path) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    let limit = u64::try_from(MAX_CHUNK).unwrap_or(u64::MAX);
    let read = json::open(path)?.take(limit).read_to_end(&mut bytes);
    read.map_err(|error| json::unreadable(path, &error))?;
    let body = gzip_body(&bytes).ok_or_else(|| json::unreadable(path, &"no gzip file"))?;
    decompress_to_vec_with_limit(body, MAX_CHUNK)
        .map_err(|error| json::unreadable(path, &format!("damaged, or over 64 MiB: {error}")))
}

/// Returns what follows the header of a gzip file (RFC 1952).
fn gzip_body(bytes: &[u8]) -> Option<&[u8]> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let (head, mut rest) = bytes.split_at_checked(10)?;
    if !head.starts_with(&[0x1f, 0x8b, 8]) {
        return None;
    }
    let flags = head[3];
    if flags & EXTRA != 0 {
        let length = usize::from(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]));
        rest = rest.get(2 + length..)?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    let length = if flags & CHECKSUM == 0 { 0 } else { 2 };
    rest.get(length..)
}

fn observation(row: &Value) -> Record {
    let topic = text(row, "topic_key");
    let project = text(row, "project").map(str::to_owned);
    // A topic has one id in every export; a row has not.
    let id = match topic {
        Some(topic) => format!("{}/{topic}", project.as_deref().unwrap_or_default()),
        None => format!("observations/{}", id_of(row, "id")),
    };
    if row.get("deleted_at").is_some_and(|at| !at.is_null()) {
        return Record::skipped(id, "deleted there");
    }
    let kind = match text(row, "type") {
        Some("preference") => Kind::Preference,
        Some("pattern" | "learning") => Kind::Insight,
        Some("session_summary") => Kind::Experience,
        _ => Kind::Fact,
    };
    let title = text(row, "title").unwrap_or_default().to_owned();
    let body = text(row, "content").unwrap_or_default().to_owned();
    let record = Record::new(id, kind, title, body);
    let tags = [text(row, "type"), topic];
    Record {
        project,
        session: text(row, "session_id").map(str::to_owned),
        tags: tags.into_iter().flatten().map(str::to_owned).collect(),
        is_versioned: topic.is_some(),
        ..record.at(time(row, "created_at"), time(row, "updated_at"))
    }
}

/// Its sessions have the folder of their project.
fn hints(input: &Input) -> Result<Hints, Error> {
    let mut hints = Hints::default();
    each(input, "sessions", &mut |_, row| {
        if let Ok(row) = row
            && let Some(folder) = text(&row, "directory")
        {
            hints
                .folders
                .insert(id_of(&row, "project"), folder.to_owned());
        }
        Ok(())
    })?;
    Ok(hints)
}

/// Returns whether a project's folder has chunks.
fn has_chunks(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".engram/manifest.json")).is_ok()
}
