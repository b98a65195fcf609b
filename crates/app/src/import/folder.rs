//! Finds the files of a source in a folder. Links are not followed, and no file outside is read.

use std::{
    fs,
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use anamnesis_note::{
    front_matter::{self, Shape, Value},
    note::Kind,
};
use anamnesis_store::fs::file;
use chrono::{DateTime, Utc};

use super::{SourceRecord, json};
use crate::Error;

/// How deep folders are searched.
const MAX_DEPTH: usize = 16;

/// The longest file that is read, in bytes.
const MAX_FILE: u64 = 256 * 1024;

/// Returns the files below a folder that have one of these endings, sorted by path; of a file, itself.
/// Hidden folders and folders of dependencies are left out.
pub(super) fn files(path: &Path, endings: &[&str]) -> Result<Vec<PathBuf>, Error> {
    let metadata = fs::symlink_metadata(path).map_err(|error| json::unreadable(path, &error))?;
    if !metadata.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    walk(path, endings, MAX_DEPTH, &mut found)?;
    Ok(found)
}

fn walk(
    folder: &Path,
    endings: &[&str],
    depth: usize,
    found: &mut Vec<PathBuf>,
) -> Result<(), Error> {
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
    let mut entries = entries.map_err(|error| json::unreadable(folder, &error))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && depth > 0 && !name.starts_with('.') && name != "node_modules" {
            walk(&entry.path(), endings, depth - 1, found)?;
        } else if !is_folder && endings.iter().any(|ending| name.ends_with(ending)) {
            found.push(entry.path());
        }
    }
    Ok(())
}

/// A markdown file: its front matter, its text and its time.
pub(super) struct Document {
    front: String,
    /// The text below the front matter.
    pub(super) body: String,
    /// When the file last changed.
    pub(super) modified: Option<DateTime<Utc>>,
}

impl Document {
    /// Reads a file.
    ///
    /// # Errors
    /// Why the file is skipped.
    pub(super) fn read(path: &Path) -> Result<Self, &'static str> {
        let (open, metadata) =
            file::open_single(path).map_err(|_| "a link, a hard link, or unreadable")?;
        if metadata.len() > MAX_FILE {
            return Err("over 256 KiB");
        }
        let text = io::read_to_string(open.take(MAX_FILE));
        let text = text.map_err(|_| "unreadable, or not UTF-8")?;
        let text = text.trim_start_matches('\u{feff}').replace("\r\n", "\n");
        let (front, body) = split(&text).unwrap_or(("", &text));
        Ok(Self {
            front: front.to_owned(),
            body: body.trim().to_owned(),
            modified: metadata.modified().ok().map(DateTime::from),
        })
    }

    /// Returns the texts of a key of the front matter; a text with commas counts as several.
    pub(super) fn list(&self, key: &str) -> Vec<String> {
        match self.value(key) {
            Some(Value::List(items)) => items,
            Some(Value::Text(text)) => {
                let items = text.split(',').map(|item| item.trim().to_owned());
                items.filter(|item| !item.is_empty()).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Returns the text of a key of the front matter.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        match self.value(key)? {
            Value::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
            Value::List(_) | Value::Null => None,
        }
    }

    /// Reads the lines of one key, so that no other key can make it unreadable.
    fn value(&self, key: &str) -> Option<Value> {
        let entries = front_matter::entries(&self.front);
        let entry = entries.into_iter().find(|entry| entry.key == key)?;
        let lines = self.front.get(entry.range)?;
        for shape in [|_: &str| Shape::Text, |_: &str| Shape::List] {
            if let Ok(mut values) = front_matter::read_mapping(lines, shape) {
                return values.remove(key);
            }
        }
        // `globs: **/*.rs` is no valid YAML, and what Cursor writes.
        let (_, value) = lines.split_once(':')?;
        Some(Value::Text(
            value.trim().trim_matches(['"', '\'']).to_owned(),
        ))
    }

    /// Returns a record of the text.
    pub(super) fn record(&self, id: &str, kind: Kind, title: String) -> SourceRecord {
        let record = SourceRecord::new(id.to_owned(), kind, title, self.body.clone());
        record.at(self.modified, self.modified)
    }

    /// Returns the first heading, if the text begins with it.
    pub(super) fn heading(&self) -> Option<String> {
        let text = self.body.strip_prefix('#')?.lines().next()?;
        let text = text.trim_start_matches('#');
        text.starts_with(' ').then(|| text.trim().to_owned())
    }
}

fn split(text: &str) -> Option<(&str, &str)> {
    let rest = text.strip_prefix("---\n")?;
    let empty = rest.strip_prefix("---\n").map(|body| ("", body));
    empty.or_else(|| rest.split_once("\n---\n"))
}

/// Returns the path of a file below a folder, as its id.
pub(super) fn id_below(folder: &Path, path: &Path) -> String {
    let below = path.strip_prefix(folder).ok();
    let below = below.filter(|below| below.file_name().is_some());
    let below = below.or_else(|| path.file_name().map(Path::new));
    let below = below.unwrap_or(path);
    below.to_string_lossy().replace('\\', "/")
}
