//! Rules and memory banks of a project, and Codex's memories: an archive that search finds. It is not
//! injected, because the host reads it already.

use std::path::Path;

use anamnesis_note::note::Kind;

use super::{
    Input, Memory, SourceRecord,
    folder::{Document, files},
    record::{id_of, paragraphs, text, time},
};
use crate::Error;

/// The places of hosts' rules in a project's folder, and the ending of files in a folder.
const PLACES: [(&str, &str); 12] = [
    (".cursor/rules", ".mdc"),
    (".cursorrules", ""),
    (".clinerules", ".md"),
    (".windsurf/rules", ".md"),
    (".windsurfrules", ""),
    (".github/copilot-instructions.md", ""),
    (".github/instructions", ".instructions.md"),
    ("AGENTS.md", ""),
    ("CLAUDE.md", ""),
    ("GEMINI.md", ""),
    ("CONVENTIONS.md", ""),
    ("memory-bank", ".md"),
];

fn name_of(folder: &Path) -> String {
    let name = folder.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

pub(super) fn detect(folder: &Path) -> bool {
    PLACES.iter().any(|(place, _)| folder.join(place).exists())
}

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let root = &input.path;
    let mut memory = Memory::default();
    let folder = root.to_string_lossy().into_owned();
    memory.hints.folders.insert(name_of(root), folder);
    for (place, ending) in PLACES {
        let path = root.join(place);
        // A link, dangling or not, is listed and skipped with its reason.
        if path.symlink_metadata().is_err() {
            continue;
        }
        for file in files(&path, &[ending])? {
            let id = file.strip_prefix(root).unwrap_or(&file).to_string_lossy();
            memory.records.push(match Document::read(&file) {
                Ok(document) => rule(&document, &id.replace('\\', "/"), root),
                Err(reason) => SourceRecord::skipped(reason),
            });
        }
    }
    Ok(memory)
}

fn rule(document: &Document, id: &str, root: &Path) -> SourceRecord {
    let kind = if id.starts_with("memory-bank/") {
        Kind::Fact
    } else {
        Kind::Skill
    };
    let title = document.text("description").or_else(|| document.heading());
    let mut paths = document.list("globs");
    paths.extend(document.list("applyTo"));
    paths.extend(document.list("paths"));
    SourceRecord {
        project: Some(name_of(root)),
        paths,
        is_archived: true,
        is_versioned: true,
        ..document.record(id, kind, title.unwrap_or_else(|| id.to_owned()))
    }
}

pub(super) fn read_codex(input: &Input) -> Result<Memory, Error> {
    let database = input.table("codex", "stage1_outputs")?;
    let rows = database.rows_of("stage1_outputs", "ORDER BY source_updated_at")?;
    Ok(SourceRecord::from_rows(rows, |row| {
        let id = id_of(row, "thread_id");
        let summary = text(row, "rollout_summary").unwrap_or_default().to_owned();
        let body = paragraphs([text(row, "rollout_summary"), text(row, "raw_memory")]);
        let at = time(row, "source_updated_at");
        SourceRecord {
            session: Some(id.clone()),
            is_archived: true,
            is_versioned: true,
            ..SourceRecord::new(id, Kind::Fact, summary, body).at(at, at)
        }
    })
    .into())
}
