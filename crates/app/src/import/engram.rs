//! engram: its SQLite database, the JSON of `engram export`, and the chunks in `.engram/`.
//!
//! Observations with a topic key are versions of one note: the latest replaces the others.

use std::{
    collections::HashSet,
    fs,
    path::{Path, PathBuf},
};

use anamnesis_note::note::Kind;
use anamnesis_store::foreign_database::Row;
use serde_json::Value;

use super::{
    Input, Memory, SourceRecord,
    gzip::unpacked,
    json,
    record::{id_of, text, time},
};
use crate::Error;

pub(super) fn detect(folder: &Path) -> bool {
    fs::symlink_metadata(folder.join(".engram/manifest.json")).is_ok()
}

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let (observations, sessions) = tables(input)?;
    let mut memory = Memory::from(SourceRecord::from_rows(observations, observation));
    // Its sessions have the folder of their project.
    for session in sessions.iter().flatten() {
        if let Some(folder) = text(session, "directory") {
            let project = id_of(session, "project");
            memory.hints.folders.insert(project, folder.to_owned());
        }
    }
    Ok(memory)
}

/// Returns the observations and the sessions.
fn tables(input: &Input) -> Result<(Vec<Row>, Vec<Row>), Error> {
    if input.database.is_some() {
        let database = input.table("engram", "observations")?;
        return Ok((
            database.rows_of("observations", "ORDER BY updated_at, id")?,
            database.rows_of("sessions", "")?,
        ));
    }
    let documents = if input.path.is_dir() {
        let chunks = chunks(&input.path)?.into_iter();
        chunks
            .map(|path| json::parse(&path, &unpacked(&path)?))
            .collect::<Result<_, Error>>()?
    } else {
        vec![json::document(&input.path)?]
    };
    let rows = |key: &str| {
        let rows = documents.iter().flat_map(|it| json::items(it, key));
        rows.cloned().map(Ok).collect()
    };
    Ok((rows("observations"), rows("sessions")))
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
    let manifest = json::document(&folder.join("manifest.json"))?;
    let named = json::items(&manifest, "chunks").iter();
    let mut named: Vec<_> = named
        .map(|chunk| (time(chunk, "created_at"), id_of(chunk, "id")))
        .collect();
    named.sort();
    let mut seen = HashSet::new();
    named.retain(|(_, id)| seen.insert(id.clone()));
    let is_name =
        |id: &String| !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let chunks = named.into_iter().map(|(_, id)| id).filter(is_name);
    Ok(chunks
        .map(|id| folder.join("chunks").join(format!("{id}.jsonl.gz")))
        .collect())
}

fn observation(row: &Value) -> SourceRecord {
    let topic = text(row, "topic_key");
    let project = text(row, "project").map(str::to_owned);
    // A topic has one id in every export; a row has not.
    let id = match topic {
        Some(topic) => format!("{}/{topic}", project.as_deref().unwrap_or_default()),
        None => format!("observations/{}", id_of(row, "id")),
    };
    if row.get("deleted_at").is_some_and(|at| !at.is_null()) {
        return SourceRecord::skipped("deleted there");
    }
    let kind = match text(row, "type") {
        Some("preference") => Kind::Preference,
        Some("pattern" | "learning") => Kind::Insight,
        Some("session_summary") => Kind::Experience,
        _ => Kind::Fact,
    };
    let title = text(row, "title").unwrap_or_default().to_owned();
    let body = text(row, "content").unwrap_or_default().to_owned();
    let record = SourceRecord::new(id, kind, title, body);
    let tags = [text(row, "type"), topic];
    SourceRecord {
        project,
        session: text(row, "session_id").map(str::to_owned),
        tags: tags.into_iter().flatten().map(str::to_owned).collect(),
        is_versioned: topic.is_some(),
        ..record.at(time(row, "created_at"), time(row, "updated_at"))
    }
}
