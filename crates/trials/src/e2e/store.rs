//! Reads the store from outside, as files under `~/.anamnesis`.
//!
//! It does not use the product's crates: code that wrote a note could also read a format that
//! nothing else can read.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anamnesis_testkit::process::{Result, TestFailure, wait_until};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};

/// How long a note may take after the client's end. An asynchronous hook writes it.
const NOTE_LIMIT: Duration = Duration::from_secs(20);

/// A note's file.
#[derive(Debug)]
pub(super) struct Note {
    id: String,
    front_matter: String,
    pub(super) body: String,
}

impl Note {
    fn read(path: &Path) -> Option<Self> {
        let text = fs::read_to_string(path).ok()?;
        let (front_matter, body) = text.strip_prefix("---\n")?.split_once("\n---\n")?;
        Some(Self {
            id: path.file_stem()?.to_str()?.to_owned(),
            front_matter: front_matter.to_owned(),
            body: body.to_owned(),
        })
    }

    /// Returns the full id.
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// Returns the short id: the last six characters.
    pub(super) fn short_id(&self) -> &str {
        self.id
            .get(self.id.len().saturating_sub(6)..)
            .unwrap_or(&self.id)
    }

    /// Returns the value of a one-line key, without quotes.
    pub(super) fn value(&self, key: &str) -> Option<&str> {
        let value = self
            .front_matter
            .lines()
            .find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))?;
        Some(value.trim_matches(['\'', '"']))
    }

    /// Returns the title, or an empty text.
    pub(super) fn title(&self) -> &str {
        self.value("title").unwrap_or_default()
    }

    /// Returns whether the note has a tag.
    pub(super) fn has_tag(&self, tag: &str) -> bool {
        let mut lines = self
            .front_matter
            .lines()
            .skip_while(|line| !line.starts_with("tags:"));
        lines.any(|line| line.strip_prefix("- ") == Some(tag))
    }

    /// Returns the lines that do not depend on the session, its times or how it ended.
    pub(super) fn lasting(&self) -> String {
        let passing = ["id:", "prov_session:", "created_at:", "updated_at:"];
        let lines = self.front_matter.lines().filter(|line| {
            !passing.iter().any(|key| line.starts_with(key))
                && !matches!(*line, "- session-end" | "- lost")
        });
        let front: Vec<&str> = lines.collect();
        format!("{}\n---\n{}", front.join("\n"), self.body)
    }

    /// Fails unless a key has this value.
    pub(super) fn expect(&self, key: &str, wanted: Option<&str>) -> Result<()> {
        let found = self.value(key);
        if found == wanted {
            Ok(())
        } else {
            Err(TestFailure::new(format!(
                "{key} is {found:?}, not {wanted:?}, in\n{}",
                self.front_matter
            )))
        }
    }
}

/// The store in a home folder.
#[derive(Debug)]
pub(super) struct Store {
    root: PathBuf,
}

impl Store {
    pub(super) fn new(home: &Path) -> Self {
        Self {
            root: home.join(".anamnesis"),
        }
    }

    /// Returns every note in `memory/`, including damaged files and tombstones that have front
    /// matter.
    pub(super) fn notes(&self) -> Vec<Note> {
        self.notes_in("memory")
    }

    /// Returns every note in `local/`, which holds the model's pending proposals.
    pub(super) fn notes_of_this_machine(&self) -> Vec<Note> {
        self.notes_in("local")
    }

    fn notes_in(&self, tree: &str) -> Vec<Note> {
        let files = files_below(&self.root.join(tree));
        let notes = files
            .keys()
            .filter(|path| path.extension().is_some_and(|extension| extension == "md"));
        notes.filter_map(|path| Note::read(path)).collect()
    }

    /// Waits for a note for which `holds` returns true.
    pub(super) fn wait_for(
        &self,
        what: &str,
        mut holds: impl FnMut(&Note) -> bool,
    ) -> Result<Note> {
        let found = wait_until(NOTE_LIMIT, what, || {
            self.notes().into_iter().find(&mut holds)
        });
        found.map_err(|failure| {
            let notes: Vec<String> = self
                .notes()
                .into_iter()
                .map(|note| note.front_matter)
                .collect();
            TestFailure::new(format!(
                "{failure}; the notes are\n{}",
                notes.join("\n---\n")
            ))
        })
    }

    /// Waits until the session's end has finished its note.
    pub(super) fn wait_for_session(&self, session: &str) -> Result<Note> {
        self.wait_for("the session's note", |note| {
            note.value("prov_session") == Some(session) && note.has_tag("session-end")
        })
    }

    /// Returns the rows of a query on the journal, with `|` between columns.
    pub(super) fn rows(&self, query: &str) -> Result<Vec<String>> {
        self.query(query)
            .map_err(|error| TestFailure::new(format!("journal.db: {error}: {query}")))
    }

    fn query(&self, query: &str) -> rusqlite::Result<Vec<String>> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let connection = Connection::open_with_flags(self.root.join("journal.db"), flags)?;
        connection.busy_timeout(NOTE_LIMIT)?;
        let mut statement = connection.prepare(query)?;
        let columns = statement.column_count();
        let rows = statement.query_map([], |row| {
            let cells = (0..columns).map(|column| {
                Ok(match row.get_ref(column)? {
                    ValueRef::Null => "-".to_owned(),
                    ValueRef::Integer(number) => number.to_string(),
                    ValueRef::Real(number) => number.to_string(),
                    ValueRef::Text(bytes) | ValueRef::Blob(bytes) => {
                        String::from_utf8_lossy(bytes).into_owned()
                    }
                })
            });
            Ok(cells.collect::<rusqlite::Result<Vec<String>>>()?.join("|"))
        })?;
        rows.collect()
    }

    /// Fails unless a query on the journal returns exactly these rows.
    pub(super) fn expect_rows<T: AsRef<str>>(&self, query: &str, wanted: &[T]) -> Result<()> {
        let found = self.rows(query)?;
        if found
            .iter()
            .map(String::as_str)
            .eq(wanted.iter().map(T::as_ref))
        {
            Ok(())
        } else {
            Err(TestFailure::new(format!("{query} gives {found:#?}")))
        }
    }

    /// Returns the exact bytes of all notes.
    pub(super) fn note_files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut files = files_below(&self.root.join("memory"));
        files.retain(|path, _| path.extension().is_some_and(|extension| extension == "md"));
        files
    }

    /// Fails if any file of the store contains `secret`.
    pub(super) fn expect_free_of(&self, secret: &str) -> Result<()> {
        let files = files_below(&self.root);
        if files.is_empty() {
            return Err(TestFailure::new(format!(
                "{}: nothing to look through",
                self.root.display()
            )));
        }
        for (path, bytes) in files {
            if bytes
                .windows(secret.len())
                .any(|window| window == secret.as_bytes())
            {
                return Err(TestFailure::new(format!(
                    "{} holds a secret in clear",
                    path.display()
                )));
            }
        }
        Ok(())
    }
}

/// Reads every regular file below a folder. Skips files that are removed meanwhile.
fn files_below(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_path_buf()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let Ok(kind) = entry.file_type() else {
                continue;
            };
            if kind.is_dir() {
                folders.push(path);
            } else if kind.is_file()
                && let Ok(bytes) = fs::read(&path)
            {
                files.insert(path, bytes);
            }
        }
    }
    files
}

/// Returns the injected blocks in a text that the model received.
pub(super) fn context_blocks(sent: &str) -> Vec<&str> {
    sent.split("<anamnesis-context>")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("</anamnesis-context>")?.0))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SESSION_NOTE: &str = "---\n\
        id: 01K3ZV7M0N9QWERTYASDFGHJKM\n\
        type: episodic\n\
        title: 'Split: net and tax'\n\
        project: github.com/acme/shop\n\
        created_at: '2026-08-01T10:00:00+00:00'\n\
        tags:\n\
        - session\n\
        - session-end\n\
        ---\n\
        **Ask:** Split: net and tax\n";

    #[test]
    fn notes_are_read_from_the_store() {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(".anamnesis/memory/episodic");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("01K3ZV7M0N9QWERTYASDFGHJKM.md"), SESSION_NOTE).unwrap();
        fs::write(folder.join("broken.md"), "no front matter").unwrap();
        let store = Store::new(home.path());
        let notes = store.notes();
        let [note] = notes.as_slice() else {
            panic!("{notes:?}");
        };
        assert_eq!(note.short_id(), "FGHJKM");
        assert_eq!(note.value("title"), Some("Split: net and tax"));
        assert_eq!(note.value("prov_actor"), None);
        assert!(note.has_tag("session-end"));
        assert!(!note.has_tag("precompact"));
        assert_eq!(note.body, "**Ask:** Split: net and tax\n");
        note.expect("project", Some("github.com/acme/shop"))
            .unwrap();
        note.expect("project", None).unwrap_err();
        assert_eq!(store.note_files().len(), 2);
    }

    #[test]
    fn secrets_are_found_in_any_file() {
        let home = tempfile::tempdir().unwrap();
        let store = Store::new(home.path());
        store.expect_free_of("hunter2").unwrap_err();
        let folder = home.path().join(".anamnesis/log");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("hooks"), b"\xff\0password").unwrap();
        store.expect_free_of("hunter2").unwrap();
        fs::write(folder.join("hooks"), b"\xff\0hunter2\0").unwrap();
        let failure = store.expect_free_of("hunter2").unwrap_err().to_string();
        assert!(
            failure.ends_with("log/hooks holds a secret in clear"),
            "{failure}"
        );
    }

    #[test]
    fn context_blocks_are_parsed() {
        for (sent, blocks) in [
            ("nothing", vec![]),
            (
                "<anamnesis-context>\na\n</anamnesis-context> b",
                vec!["\na\n"],
            ),
            (
                "<anamnesis-context>a</anamnesis-context><anamnesis-context>b</anamnesis-context>",
                vec!["a", "b"],
            ),
            ("<anamnesis-context>never closed", vec![]),
        ] {
            assert_eq!(context_blocks(sent), blocks, "{sent}");
        }
    }
}
