//! Adds our hooks to another host's configuration, and removes them again.
//!
//! A host reads hooks from a file of its own folder. We write either a file of our own there or, where
//! the host has one file for all hooks, our entries into it. The bytes of a changed file are kept beside
//! it, so an undo restores them exactly.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anamnesis_session::event::Host;
use anamnesis_store::fs::file;
use serde_json::{Map, Value};

use crate::{Error, context::Context, terminal_command};

/// How our hooks name the program; a host's shell or our shim expands it.
const PROGRAM: &str = ".anamnesis/bin/anamnesis";

/// The ending of the copy of a changed file.
const BACKUP: &str = ".before-anamnesis";

/// A file that a host reads. The text is ours; in a shared file, its `hooks` are added.
struct HostFile {
    host: Host,
    /// The path below the user's home.
    path: &'static str,
    text: &'static str,
    is_shared: bool,
}

const FILES: [HostFile; 3] = [
    HostFile {
        host: Host::Codex,
        path: ".codex/hooks.json",
        text: include_str!("../../../hosts/codex/hooks.json"),
        is_shared: true,
    },
    HostFile {
        host: Host::Gemini,
        path: ".gemini/extensions/anamnesis/gemini-extension.json",
        text: include_str!("../../../hosts/gemini/gemini-extension.json"),
        is_shared: false,
    },
    HostFile {
        host: Host::Gemini,
        path: ".gemini/extensions/anamnesis/hooks/hooks.json",
        text: include_str!("../../../hosts/gemini/hooks/hooks.json"),
        is_shared: false,
    },
];

/// The hosts that can be set up.
pub const HOSTS: [&str; 2] = ["codex", "gemini"];

/// A planned change of one file.
#[derive(Debug, PartialEq, Eq)]
pub struct FileChange {
    /// The file.
    pub path: PathBuf,
    /// Its bytes now; none if it does not exist.
    before: Option<Vec<u8>>,
    /// Its bytes afterwards; none if it is deleted.
    after: Option<Vec<u8>>,
    /// Whether a copy of the bytes before is written or, by an undo, deleted.
    has_backup: bool,
    is_undo: bool,
}

impl FileChange {
    /// Says what would be done with the file.
    pub fn action(&self) -> &'static str {
        match (&self.before, &self.after) {
            (None, _) => "create",
            (_, None) => "delete",
            (Some(_), Some(_)) if self.is_undo => "restore",
            (Some(_), Some(_)) => "change",
        }
    }

    /// Returns the lines that are added and removed, as in a diff without context.
    pub fn lines(&self) -> Vec<String> {
        let text = |bytes: &Option<Vec<u8>>| {
            let bytes = bytes.as_deref().unwrap_or_default();
            String::from_utf8_lossy(bytes).into_owned()
        };
        let (before, after) = (text(&self.before), text(&self.after));
        let added = missing_in(&after, &before).map(|line| format!("+ {line}"));
        missing_in(&before, &after)
            .map(|line| format!("- {line}"))
            .chain(added)
            .collect()
    }
}

/// Returns the lines of a text that another does not have.
fn missing_in<'a>(text: &'a str, other: &str) -> impl Iterator<Item = &'a str> {
    let other: Vec<String> = other.lines().map(str::to_owned).collect();
    text.lines()
        .filter(move |line| !other.iter().any(|known| known == line))
}

/// Plans to add our hooks to a host, or to remove them. Files that are as wanted are left out.
pub fn plan(context: &Context, host: &str, is_undo: bool) -> Result<Vec<FileChange>, Error> {
    let home = context.environment.user_home.as_deref();
    let home = home.ok_or_else(|| Error::failed("no home folder is known: HOME is not set"))?;
    let files = FILES.iter().filter(|file| file.host.as_str() == host);
    let mut changes = Vec::new();
    for wanted in files {
        let path = home.join(wanted.path);
        let before = read(&path)?;
        let after = match (is_undo, wanted.is_shared) {
            (false, false) => Some(wanted.text.as_bytes().to_vec()),
            (false, true) => Some(with_hooks(&path, before.as_deref(), wanted.text)?),
            (true, false) => before.clone().filter(|text| text != wanted.text.as_bytes()),
            (true, true) => without_hooks(&path, before.as_deref(), wanted.text)?,
        };
        if before == after {
            continue;
        }
        changes.push(FileChange {
            has_backup: if is_undo {
                backup(&path).exists()
            } else {
                before.is_some()
            },
            path,
            before,
            after,
            is_undo,
        });
    }
    Ok(changes)
}

/// Carries out a plan, and installs the program that the hooks start.
pub fn apply(context: &Context, changes: &[FileChange]) -> Result<(), Error> {
    if changes.iter().any(|change| !change.is_undo) {
        terminal_command::install_copy(context, context.journal().as_ref())
            .map_err(|error| failed(&context.home.bin(), error))?;
        let home = context.environment.user_home.as_deref();
        let program = Path::new(PROGRAM).with_file_name(terminal_command::program());
        if !home.is_some_and(|home| home.join(program).is_file()) {
            return Err(Error::failed(
                "cannot add hooks: they start ~/.anamnesis/bin/anamnesis, and the store is elsewhere",
            )
            .hint("make ~/.anamnesis a link to the store"));
        }
    }
    for change in changes {
        write(change).map_err(|error| failed(&change.path, error))?;
    }
    Ok(())
}

fn write(change: &FileChange) -> io::Result<()> {
    let backup = backup(&change.path);
    // Another program may have written meanwhile, and the backup must be of what is replaced.
    if fs::read(&change.path).ok() != change.before {
        return Err(io::Error::other(
            "it was changed meanwhile; run the command again",
        ));
    }
    if let Some(folder) = change.path.parent() {
        fs::create_dir_all(folder)?;
    }
    if let (false, Some(before)) = (change.is_undo || backup.exists(), &change.before) {
        file::write_atomic(&backup, before)?;
    }
    if let Some(after) = &change.after {
        file::write_atomic(&change.path, after)?;
    } else {
        fs::remove_file(&change.path)?;
        // The folders of an extension are ours, too; one that is not empty stays.
        let is_ours = |folder: &&Path| folder.iter().any(|part| part == "anamnesis");
        let folders = change.path.ancestors().skip(1).take_while(is_ours);
        folders.for_each(|folder| drop(fs::remove_dir(folder)));
    }
    if change.is_undo && change.has_backup {
        fs::remove_file(backup)?;
    }
    Ok(())
}

fn backup(path: &Path) -> PathBuf {
    file::with_suffix(path, BACKUP)
}

/// Reads a file; `None` if there is none. Refuses links, which would be replaced by a file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    match file::read_head(path, usize::MAX) {
        Ok((bytes, ..)) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, error: io::Error) -> Error {
    Error::failed(format!("cannot change {}: {error}", path.display())).because(error)
}

fn parse(path: &Path, bytes: &[u8]) -> Result<Map<String, Value>, Error> {
    serde_json::from_slice(bytes).map_err(|error| {
        Error::failed(format!(
            "{}: expected a JSON object: {error}",
            path.display()
        ))
        .hint("correct the file, or move it away, and run the command again")
    })
}

fn shown(settings: Map<String, Value>) -> Vec<u8> {
    format!("{:#}\n", Value::Object(settings)).into_bytes()
}

/// Returns the hooks that we add, with the path of the program in the user's home.
fn own_hooks(text: &str) -> Map<String, Value> {
    let text = text.replace(
        "${CLAUDE_PLUGIN_ROOT}/bin/anamnesis",
        "$HOME/.anamnesis/bin/anamnesis",
    );
    serde_json::from_str(&text).unwrap_or_default()
}

fn is_ours(entry: &Value) -> bool {
    entry.to_string().contains(PROGRAM)
}

/// Adds our entries to a file of hooks. Entries of others, and other keys, are kept.
fn with_hooks(path: &Path, before: Option<&[u8]>, text: &str) -> Result<Vec<u8>, Error> {
    let own = own_hooks(text);
    let Some(before) = before else {
        return Ok(shown(own));
    };
    let mut settings = parse(path, before)?;
    let mut result = settings.clone();
    for (key, value) in &own {
        result.entry(key.clone()).or_insert_with(|| value.clone());
    }
    let own = own
        .get("hooks")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let hooks = settings.entry("hooks").or_insert_with(|| Map::new().into());
    for (event, entries) in own {
        let all = hooks.as_object_mut().map(|hooks| {
            hooks
                .entry(event)
                .or_insert_with(|| Value::Array(Vec::new()))
        });
        let Some(Value::Array(all)) = all else {
            return Err(Error::failed(format!(
                "{}: expected lists of hooks by event in the key \"hooks\"",
                path.display()
            )));
        };
        if !all.iter().any(is_ours) {
            all.extend(entries.as_array().cloned().unwrap_or_default());
        }
    }
    result.insert("hooks".to_owned(), hooks.clone());
    Ok(if result == parse(path, before)? {
        before.to_vec()
    } else {
        shown(result)
    })
}

/// Returns a file without our entries: the bytes from before them if nothing else changed since.
fn without_hooks(path: &Path, before: Option<&[u8]>, text: &str) -> Result<Option<Vec<u8>>, Error> {
    let Some(now) = before else {
        return Ok(None);
    };
    let kept = read(&backup(path))?;
    if with_hooks(path, kept.as_deref(), text)? == now {
        return Ok(kept);
    }
    let mut settings = parse(path, now)?;
    let was = settings.clone();
    if let Some(Value::Object(hooks)) = settings.get_mut("hooks") {
        for entries in hooks.values_mut().filter_map(Value::as_array_mut) {
            entries.retain(|entry| !is_ours(entry));
        }
        hooks.retain(|_, entries| entries.as_array().is_none_or(|entries| !entries.is_empty()));
    }
    Ok(Some(if settings == was {
        now.to_vec()
    } else {
        shown(settings)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_of_others_and_other_keys_are_kept() {
        let path = Path::new("hooks.json");
        let before = br#"{"version": 1, "hooks": {"SessionStart": [{"command": "mine"}]}, "x": 2}"#;
        let text = FILES[0].text;
        let after = with_hooks(path, Some(before), text).unwrap();
        let settings: Value = serde_json::from_slice(&after).unwrap();
        assert_eq!(settings["x"], 2);
        let start = settings["hooks"]["SessionStart"].as_array().unwrap();
        assert_eq!(
            (start.len(), &start[0]["command"]),
            (2, &Value::from("mine"))
        );
        // A second run changes nothing.
        assert_eq!(with_hooks(path, Some(&after), text).unwrap(), after);
    }

    #[test]
    fn every_host_has_a_file_that_starts_the_program() {
        for host in HOSTS {
            let texts: Vec<&str> = FILES
                .iter()
                .filter(|file| file.host.as_str() == host)
                .map(|file| file.text)
                .collect();
            assert!(!texts.is_empty(), "{host}");
            assert!(
                texts.iter().all(|text| text.contains("anamnesis")),
                "{host}"
            );
        }
        assert!(
            own_hooks(FILES[0].text)["hooks"]
                .to_string()
                .contains(PROGRAM)
        );
    }
}
