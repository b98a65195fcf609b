//! Finds the folder of a project by the client's name for it.
//!
//! The name has dashes in place of all characters but letters and digits, so it is ambiguous. A
//! transcript has the folder. Without one, existing folders are searched for a matching name.

use std::path::{Path, PathBuf};

use super::files::entries;
use crate::fs::file;

/// The maximum number of transcripts, and of bytes at the beginning of each.
const MAX_TRANSCRIPTS: usize = 20;
const TRANSCRIPT_HEAD: usize = 64 * 1024;

/// The maximum number of directory entries in a search.
const MAX_LOOKS: usize = 20_000;

/// Returns the folder of `slug`, and whether it is certain; `own` is the client's folder of that
/// name.
pub(super) fn find(slug: &str, own: &Path) -> (String, bool) {
    if let Some(folder) = began_in(own) {
        return (folder, true);
    }
    let found = named(slug);
    match &found[..] {
        [folder] => (folder.to_string_lossy().into_owned(), true),
        [first, ..] => (first.to_string_lossy().into_owned(), false),
        [] => (slug.replace('-', "/"), false),
    }
}

/// Returns the folder in which the first session with a known folder began.
fn began_in(folder: &Path) -> Option<String> {
    let entries = entries(folder).ok()??;
    let transcripts = entries.iter().filter(|entry| {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        // Earlier clients stored subagents' transcripts here, which may begin in a worktree.
        name.ends_with(".jsonl") && !name.starts_with("agent-")
    });
    transcripts.take(MAX_TRANSCRIPTS).find_map(|entry| {
        let (bytes, ..) = file::read_head(&entry.path(), TRANSCRIPT_HEAD).ok()?;
        bytes
            .split(|byte| *byte == b'\n')
            .filter_map(|line| serde_json::from_slice::<serde_json::Value>(line).ok())
            .filter_map(|record| Some(record.get("cwd")?.as_str()?.to_owned()))
            .find(|folder| Path::new(folder).is_absolute())
    })
}

/// Returns existing folders with this client name, in which all characters but letters and digits are
/// dashes. Two are enough to know that it is ambiguous.
fn named(slug: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    if let Some(rest) = slug.strip_prefix('-').filter(|rest| !rest.is_empty()) {
        find_named(Path::new("/"), rest, &mut found, &mut { MAX_LOOKS });
    }
    found
}

fn find_named(folder: &Path, rest: &str, found: &mut Vec<PathBuf>, looks: &mut usize) {
    for entry in file::entries(folder) {
        if *looks == 0 || found.len() > 1 {
            return;
        }
        *looks -= 1;
        let name = slug_of(&entry.file_name().to_string_lossy());
        let Some(rest) = rest.strip_prefix(&name) else {
            continue;
        };
        let path = entry.path();
        if rest.is_empty() && path.is_dir() {
            found.push(path);
        } else if let Some(below) = rest.strip_prefix('-')
            && path.is_dir()
        {
            find_named(&path, below, found, looks);
        }
    }
}

/// Returns a name as the client writes it.
fn slug_of(name: &str) -> String {
    let letter = |letter: char| match letter {
        letter if letter.is_ascii_alphanumeric() => letter,
        _ => '-',
    };
    name.chars().map(letter).collect()
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    /// Returns the client's name for a folder.
    fn slug(folder: &Path) -> String {
        slug_of(&folder.to_string_lossy())
    }

    #[test]
    fn a_folder_is_found_by_its_name() {
        let root = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(root.path()).unwrap();
        let own = root.join("own");
        for folder in ["own", "my.shop/api_v2", "cart", "a-b", "a/b", "a/c"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("file"), "").unwrap();
        for folder in ["my.shop", "my.shop/api_v2", "cart", "a/c"] {
            let folder = root.join(folder);
            let expected = folder.to_string_lossy().into_owned();
            assert_eq!(find(&slug(&folder), &own), (expected, true));
        }
        for (folder, is_certain) in [("a/b", false), ("gone", false), ("file", false)] {
            assert_eq!(
                find(&slug(&root.join(folder)), &own).1,
                is_certain,
                "{folder}"
            );
        }
        assert!(!find("-none/of-this", &own).1);
        assert_eq!(find("", &own), (String::new(), false));
        // The folder in a transcript takes precedence over a guess.
        let record = |cwd: &str| format!("{{\"type\":\"user\",\"cwd\":{cwd:?}}}\n");
        fs::write(own.join("agent-1.jsonl"), record("/subagent")).unwrap();
        fs::write(own.join("b.jsonl"), "no json\n{}\n{\"cwd\":1}\n").unwrap();
        fs::write(
            own.join("c.jsonl"),
            record("/srv/first") + &record("/srv/second"),
        )
        .unwrap();
        fs::write(own.join("d.jsonl"), record("/srv/third")).unwrap();
        let found = find(&slug(&root.join("cart")), &own);
        assert_eq!(found, ("/srv/first".to_owned(), true));
        fs::write(own.join("a.jsonl"), record("relative")).unwrap();
        assert_eq!(find("-x", &own).0, "/srv/first");
    }
}
