//! Reads JSON documents and JSON lines.

use std::{io::Read as _, path::Path};

use anamnesis_store::fs::file;
use anamnesis_text::clean::one_line;
use serde_json::Value;

use crate::Error;

/// The longest file that is read, in bytes.
const MAX_FILE: u64 = 1024 * 1024 * 1024;

/// Reads a file that a person named, or that was found in a folder.
pub(super) fn bytes(path: &Path) -> Result<Vec<u8>, Error> {
    let (file, metadata) = file::open_single(path).map_err(|error| unreadable(path, &error))?;
    if metadata.len() > MAX_FILE {
        return Err(unreadable(path, &"it is over 1 GiB"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE)
        .read_to_end(&mut bytes)
        .map_err(|error| unreadable(path, &error))?;
    Ok(bytes)
}

/// The error for a file that cannot be read.
pub(super) fn unreadable(path: &Path, error: &dyn std::fmt::Display) -> Error {
    let path = one_line(&path.to_string_lossy());
    Error::failed(format!("cannot read {path}: {error}"))
}

/// Reads a JSON document.
pub(super) fn document(path: &Path) -> Result<Value, Error> {
    parse(path, &bytes(path)?)
}

/// Parses the JSON document of a file.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<Value, Error> {
    serde_json::from_slice(bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes))
        .map_err(|error| unreadable(path, &format!("no valid JSON: {error}")))
}

/// Reads JSON lines; `None` for a line that is no JSON.
pub(super) fn lines(path: &Path) -> Result<Vec<Option<Value>>, Error> {
    let bytes = bytes(path)?;
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| {
        line.strip_prefix(b"\xef\xbb\xbf")
            .unwrap_or(line)
            .trim_ascii()
    });
    let lines = lines.filter(|line| !line.is_empty());
    Ok(lines
        .map(|line| serde_json::from_slice(line).ok())
        .collect())
}

/// Returns the items of a list of an object; with an empty key, of a list itself.
pub(super) fn items<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    let list = if key.is_empty() {
        Some(value)
    } else {
        value.get(key)
    };
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
