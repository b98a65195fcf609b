//! Exports notes: as JSON, which `import --from anamnesis` reads back byte for byte, or as files.

use std::{
    fs,
    io::{self, Write},
    path::{Path, PathBuf},
};

use anamnesis_note::note::{Note, State};
use anamnesis_store::notes::NotePath;
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use crate::{Error, context::Context};

/// The form of an export.
#[derive(Debug, Clone)]
pub enum ExportForm {
    /// One JSON document.
    Json,
    /// One JSON object per line.
    Jsonl,
    /// One file per note in this folder, which is empty or missing.
    Markdown(PathBuf),
}

/// The result of an export.
#[derive(Debug, Default)]
pub struct ExportReport {
    /// How many notes were exported.
    pub exported: usize,
    /// The files that are no readable notes, with the reason.
    pub unreadable: Vec<String>,
}

/// The longest name that is made of a title, in characters.
const MAX_NAME: usize = 60;

/// Hands over every note of a project, or all, with its path and bytes. Tombstones are left out.
pub fn each_note(
    context: &Context,
    project: Option<&str>,
    mut take: impl FnMut(NotePath, &Note, &[u8]) -> io::Result<()>,
) -> Result<ExportReport, Error> {
    context.check_person("export notes")?;
    let keys = project.map(|key| context.project(Some(key)).all_keys());
    let mut report = ExportReport::default();
    for (path, _) in context.notes.list().notes {
        let note = match context.notes.read(path) {
            Ok(stored) => stored.note(),
            Err(error) => {
                report.unreadable.push(one_line(&error.to_string()));
                continue;
            }
        };
        let is_wanted = keys
            .as_ref()
            .is_none_or(|keys| keys.contains(&note.project));
        if !is_wanted || note.state == State::Forgotten {
            continue;
        }
        take(path, &note, &context.notes.bytes(path)?).map_err(not_written)?;
        report.exported += 1;
    }
    Ok(report)
}

/// The failure to write an export.
pub fn not_written(error: io::Error) -> Error {
    Error::failed(format!("cannot write the export: {error}")).because(error)
}

/// Exports the notes of a project, or all, to `out` or to a folder. Tombstones are left out.
pub fn export(
    context: &Context,
    project: Option<&str>,
    form: &ExportForm,
    out: &mut impl Write,
) -> Result<ExportReport, Error> {
    if let ExportForm::Markdown(folder) = form {
        prepare(folder)?;
    }
    let mut separator = "{\"version\": 1, \"notes\": [\n";
    let report = each_note(context, project, |path, note, bytes| match form {
        ExportForm::Json => {
            let start = std::mem::replace(&mut separator, ",\n");
            write!(out, "{start}{}", as_json(path, note, bytes))
        }
        ExportForm::Jsonl => writeln!(out, "{}", as_json(path, note, bytes)),
        ExportForm::Markdown(folder) => {
            let file = folder.join(name(&note.project)).join(file_name(note));
            file.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::write(&file, bytes)
        }
    })?;
    if matches!(form, ExportForm::Json) {
        let start = if report.exported == 0 {
            separator
        } else {
            "\n"
        };
        writeln!(out, "{start}]}}").map_err(not_written)?;
    }
    Ok(report)
}

/// Makes the folder of an export. One with files is refused, so that nothing is overwritten.
fn prepare(folder: &Path) -> Result<(), Error> {
    let shown = one_line(&folder.to_string_lossy());
    let failed = |error: std::io::Error| {
        Error::failed(format!("cannot write to {shown}: {error}")).because(error)
    };
    fs::create_dir_all(folder).map_err(failed)?;
    if fs::read_dir(folder).map_err(failed)?.next().is_some() {
        return Err(Error::failed(format!("{shown} is not empty")).hint("name a new folder"));
    }
    Ok(())
}

fn as_json(path: NotePath, note: &Note, bytes: &[u8]) -> Value {
    json!({
        "path": path.to_string(), "kind": note.kind().shown(), "project": note.project,
        "title": note.title, "created_at": note.created_at, "updated_at": note.updated_at,
        "tags": note.kind().other_tags(&note.tags), "text": note.body, "file": String::from_utf8_lossy(bytes),
    })
}

/// Returns a file name for a note: what it says, and the end of its id.
fn file_name(note: &Note) -> PathBuf {
    let title = name(&note.title);
    let kind = note.kind().shown();
    PathBuf::from(kind).join(format!("{title}-{}.md", note.id.short()))
}

/// Returns a text as a name of a file or folder that every system accepts.
fn name(text: &str) -> String {
    let letters = text.chars().map(|letter| {
        if letter.is_alphanumeric() {
            letter
        } else {
            '-'
        }
    });
    let letters: String = letters.take(MAX_NAME).collect();
    let words: Vec<&str> = letters.split('-').filter(|word| !word.is_empty()).collect();
    match words.join("-") {
        name if name.is_empty() => "note".to_owned(),
        name => name.to_lowercase(),
    }
}
