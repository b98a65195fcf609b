//! basic-memory: its markdown files. Its database is a cache and is not read.
//!
//! A file becomes a note with its observations and relations as they stand: `[[Target]]` links notes
//! by title here, too.

use std::path::{Path, PathBuf};

use anamnesis_note::note::Kind;

use super::{
    Input, Memory, SourceRecord,
    folder::{Document, files, id_below},
    json,
};
use crate::Error;

pub(super) fn read(input: &Input) -> Result<Memory, Error> {
    let mut records = Vec::new();
    for (project, folder) in folders(input)? {
        for path in files(&folder, &[".md"])? {
            records.push(match Document::read(&path) {
                Ok(document) => SourceRecord {
                    project: project.clone(),
                    ..record(&document, &path, id_below(&folder, &path))
                },
                Err(reason) => SourceRecord::skipped(reason),
            });
        }
    }
    Ok(records.into())
}

fn record(document: &Document, path: &Path, file: String) -> SourceRecord {
    let id = document.text("permalink").unwrap_or(file);
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let title = document.text("title").or_else(|| document.heading());
    let title = title.unwrap_or_else(|| stem.into_owned());
    let kind = match document.text("type").as_deref() {
        Some("preference") => Kind::Preference,
        Some("guide" | "how-to" | "howto") => Kind::Skill,
        _ => Kind::Fact,
    };
    SourceRecord {
        tags: document.list("tags"),
        is_versioned: true,
        ..document.record(&id, kind, title)
    }
}

/// Returns the folders of the projects, with their names. `main` is basic-memory's own word for the
/// project of everything.
fn folders(input: &Input) -> Result<Vec<(Option<String>, PathBuf)>, Error> {
    if input
        .path
        .file_name()
        .is_none_or(|name| name != "config.json")
    {
        return Ok(vec![(None, input.path.clone())]);
    }
    let config = json::document(&input.path)?;
    let projects = config.get("projects").and_then(|it| it.as_object());
    let folders = projects
        .into_iter()
        .flatten()
        .filter_map(|(name, project)| {
            let path = project.as_str().or_else(|| project.get("path")?.as_str())?;
            let path =
                Some(PathBuf::from(path)).filter(|path| path.is_absolute() && path.is_dir())?;
            Some((Some(name.clone()).filter(|name| name != "main"), path))
        });
    Ok(folders.collect())
}
