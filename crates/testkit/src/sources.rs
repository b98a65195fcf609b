//! The source files of a checkout, for tests that check them.

use std::{fs, io, path::Path};

/// Returns every Rust file of the workspace's crates, with its path from the root and its text.
///
/// # Errors
/// A folder or a file cannot be read, or a file is not UTF-8.
pub fn rust_files(root: &Path) -> io::Result<Vec<(String, String)>> {
    let mut pending = vec![root.join("crates")];
    let mut files = Vec::new();
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let name = path.strip_prefix(root).unwrap_or(&path);
                let name = name.to_string_lossy().replace('\\', "/");
                files.push((name, fs::read_to_string(&path)?));
            }
        }
    }
    Ok(files)
}
