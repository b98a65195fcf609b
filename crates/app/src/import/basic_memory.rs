//! basic-memory: its markdown files. Its database is a cache and is not read.
//!
//! A file becomes a note with its observations and relations as they stand: `[[Target]]` links notes
//! by title here, too.

use std::path::PathBuf;

use anamnesis_note::note::Kind;

use super::{
    Format, Input, NO_HINTS, Record, Take,
    folder::{Document, each_file, id_below},
    json,
};
use crate::Error;

pub(super) const FORMAT: Format = Format {
    name: "basic-memory",
    places: &[".basic-memory/config.json"],
    is_in: |_| false,
    hints: NO_HINTS,
    read,
};

fn read(input: &Input, take: &mut Take<'_>) -> Result<(), Error> {
    for (project, folder) in folders(input)? {
        each_file(&folder, &[".md"], &mut |path| {
            let file = id_below(&folder, path);
            let document = match Document::read(path) {
                Ok(document) => document,
                Err(reason) => return take(Record::skipped(file, reason)),
            };
            let id = document.text("permalink").unwrap_or(file);
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            let title = document.text("title").or_else(|| document.heading());
            let title = title.unwrap_or_else(|| stem.into_owned());
            let kind = match document.text("type").as_deref() {
                Some("preference") => Kind::Preference,
                Some("guide" | "how-to" | "howto") => Kind::Skill,
                _ => Kind::Fact,
            };
            take(Record {
                project: project.clone(),
                tags: document.list("tags"),
                is_versioned: true,
                ..document.record(&id, kind, title)
            })
        })?;
    }
    Ok(())
}

/// Returns the folders of the projects, with their names. `main` is basic-memory's own word for the
/// project of everything.
fn folders(input: &Input) -> Result<Vec<(Option<String>, PathBuf)>, Error> {
    let config = match input.path.file_name() {
        Some(name) if name == "config.json" => input.path.clone(),
        _ => return Ok(vec![(None, input.path.clone())]),
    };
    let mut folders = Vec::new();
    json::each_element(&config, json::open(&config)?, &mut |key, value| {
        let projects = value.as_object().filter(|_| key == "projects");
        for (name, project) in projects.into_iter().flatten() {
            let path = project.as_str().or_else(|| project.get("path")?.as_str());
            let path = path.map(PathBuf::from).filter(|path| path.is_absolute());
            let name = Some(name.clone()).filter(|name| name != "main");
            folders.extend(path.filter(|path| path.is_dir()).map(|path| (name, path)));
        }
        Ok(())
    })?;
    Ok(folders)
}
