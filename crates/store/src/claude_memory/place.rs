//! Finds the folder of a project by the client's name for it.
//!
//! The name has dashes in place of all characters but letters and digits, so it is ambiguous. A
//! transcript has the folder.

use std::path::Path;

use super::files::entries;
use crate::fs::file;

/// The maximum number of transcripts, and of bytes at the beginning of each.
const MAX_TRANSCRIPTS: usize = 20;
const TRANSCRIPT_HEAD: usize = 64 * 1024;

/// Returns the folder in which the first session with a known folder began.
pub(super) fn began_in(folder: &Path) -> Option<String> {
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

#[cfg(all(test, unix))]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_folder_is_that_of_the_first_transcript_that_names_one() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path();
        assert_eq!(began_in(own), None);
        let write = |name: &str, text: &str| fs::write(own.join(name), text).unwrap();
        let record = |cwd: &str| format!("{{\"type\":\"user\",\"cwd\":{cwd:?}}}\n");
        write("agent-1.jsonl", &record("/subagent"));
        write("b.jsonl", "no json\n{}\n{\"cwd\":1}\n");
        assert_eq!(began_in(own), None);
        write("c.jsonl", &(record("/srv/first") + &record("/srv/second")));
        write("d.jsonl", &record("/srv/third"));
        write("a.jsonl", &record("relative"));
        assert_eq!(began_in(own).as_deref(), Some("/srv/first"));
    }
}
