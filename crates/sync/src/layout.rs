//! The marker `.layout`: identifies a repository of notes, and its format.

use git2::{Repository, Tree};

use crate::{
    error::Error,
    tree::{Changes, LAYOUT, Named, entry, named},
};

/// The format that this version reads and writes.
const FORMAT: u64 = 1;

/// The longest marker that is read, in bytes.
const MAX_LENGTH: usize = 4_096;

/// Returns the content of the marker.
pub(crate) fn text() -> String {
    format!("{{\"format\": {FORMAT}}}\n")
}

/// Returns the format in a tree's marker; `None` without a valid marker.
fn format(repository: &Repository, tree: &Tree<'_>) -> Result<Option<u64>, Error> {
    let Some(oid) = entry(tree, LAYOUT) else {
        return Ok(None);
    };
    if repository.odb()?.read_header(oid)?.0 > MAX_LENGTH {
        return Ok(None);
    }
    let blob = repository.find_blob(oid)?;
    let says: Option<serde_json::Value> = serde_json::from_slice(blob.content()).ok();
    Ok(says.and_then(|says| says.get("format")?.as_u64()))
}

/// Refuses to write if a newer version has written.
pub(crate) fn check_own(repository: &Repository, tree: Option<&Tree<'_>>) -> Result<(), Error> {
    let Some(tree) = tree else { return Ok(()) };
    match format(repository, tree)? {
        Some(format) if format > FORMAT => Err(Error::NewerFormat(format)),
        _ => Ok(()),
    }
}

/// Refuses a remote with other content or a newer format.
///
/// A remote is accepted if it has the marker or a note, or nothing but the files that hosts add to
/// a new repository.
pub(crate) fn check_remote(repository: &Repository, tree: &Tree<'_>) -> Result<(), Error> {
    check_own(repository, Some(tree))?;
    if entry(tree, LAYOUT).is_some() {
        return Ok(());
    }
    let contents = Changes::between(repository, None, Some(tree))?;
    if contents.notes.values().any(|change| change.new.is_some()) {
        return Ok(());
    }
    let foreign = contents
        .others
        .keys()
        .filter(|path| named(path) == Named::Other && !is_starter(path));
    let mut foreign = foreign.chain(contents.problems.iter().map(|problem| &problem.path));
    match foreign.next() {
        None => Ok(()),
        Some(first) => {
            let more = foreign.count();
            let first = anamnesis_text::clean::one_line(first);
            Err(Error::NotOurs(match more {
                0 => first,
                _ => format!("{first} and {more} more files"),
            }))
        }
    }
}

/// Returns whether hosts add such a file to a new repository.
fn is_starter(path: &str) -> bool {
    let stem = path.split('.').next().unwrap_or_default();
    let stem = stem.to_ascii_uppercase();
    path == ".gitignore"
        || (!path.contains('/') && matches!(stem.as_str(), "README" | "LICENSE" | "LICENCE"))
}
