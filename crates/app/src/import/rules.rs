//! Rules and memory banks of a project, and Codex's memories: an archive that search finds. It is not
//! injected, because the host reads it already.

use std::path::Path;

use anamnesis_note::note::Kind;
use serde_json::Value;

use super::{
    Format, Hints, Input, NO_HINTS, Record, Take,
    folder::{Document, each_file},
    record::{id_of, paragraphs, text, time},
    row_value, sqlite_of,
};
use crate::Error;

pub(super) const RULES: Format = Format {
    name: "rules",
    places: &[],
    is_in: has_rules,
    hints: |input| {
        let folder = input.path.to_string_lossy().into_owned();
        Ok(Hints {
            folders: [(name_of(&input.path), folder)].into(),
            ..Hints::default()
        })
    },
    read: read_rules,
};

pub(super) const CODEX: Format = Format {
    name: "codex",
    places: &[".codex/memories_1.sqlite"],
    is_in: |_| false,
    hints: NO_HINTS,
    read: read_codex,
};

/// Where the hosts look for rules in a project's folder, and the ending of files in a folder.
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

fn read_rules(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let root = &input.path;
    for (place, ending) in PLACES {
        let path = root.join(place);
        // A link, dangling or not, is handed over and skipped with its reason.
        if path.symlink_metadata().is_err() {
            continue;
        }
        each_file(&path, &[ending], &mut |file| {
            let below = file.strip_prefix(root).unwrap_or(file);
            let id = below.to_string_lossy().replace('\\', "/");
            take(match Document::read(file) {
                Ok(document) => rule(&document, &id, root),
                Err(reason) => Record::skipped(id, reason),
            })
        })?;
    }
    Ok(())
}

fn rule(document: &Document, id: &str, root: &Path) -> Record {
    let kind = if id.starts_with("memory-bank/") {
        Kind::Fact
    } else {
        Kind::Skill
    };
    let title = document.text("description").or_else(|| document.heading());
    let mut paths = document.list("globs");
    paths.extend(document.list("applyTo"));
    paths.extend(document.list("paths"));
    Record {
        project: Some(name_of(root)),
        paths,
        is_archived: true,
        is_versioned: true,
        ..document.record(id, kind, title.unwrap_or_else(|| id.to_owned()))
    }
}

fn read_codex(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    let database = sqlite_of(input, CODEX.name, "stage1_outputs")?;
    database.each(
        "SELECT * FROM stage1_outputs ORDER BY source_updated_at",
        |row| {
            let id = row
                .get("thread_id")
                .and_then(Value::as_str)
                .unwrap_or_default();
            let id = id.to_owned();
            let row = match row_value(row) {
                Ok(row) => row,
                Err(reason) => return take(Record::skipped(id, reason)),
            };
            let summary = text(&row, "rollout_summary").unwrap_or_default().to_owned();
            let body = paragraphs([text(&row, "rollout_summary"), text(&row, "raw_memory")]);
            let at = time(&row, "source_updated_at");
            take(Record {
                session: Some(id_of(&row, "thread_id")),
                is_archived: true,
                is_versioned: true,
                ..Record::new(id, Kind::Fact, summary, body).at(at, at)
            })
        },
    )
}

/// Returns whether a project's folder has rules.
fn has_rules(folder: &Path) -> bool {
    PLACES.iter().any(|(place, _)| folder.join(place).exists())
}
