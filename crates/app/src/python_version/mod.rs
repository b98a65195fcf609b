//! Finds the Python version's hooks and server in Claude Code's files, and removes them.
//!
//! Nothing is ever added. A file that cannot be parsed is not changed; a changed one has a backup.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anamnesis_store::fs::{
    file::{self, with_suffix},
    home::Home,
};
use anamnesis_text::{clean::one_line, shell, truncate::last_characters};
use serde_json::{Map, Value};

use crate::{Error, environment::Environment, format};

/// The name of the Python version's MCP server.
const SERVER_NAME: &str = "anamnesis";

/// The largest of Claude Code's files that is read, in bytes.
const MAX_LENGTH: usize = 64 * 1024 * 1024;

/// The suffix of a backup file.
const BACKUP: &str = ".anamnesis-backup";

/// The entries of the Python version that were found, by file of Claude Code.
#[derive(Debug)]
pub struct PythonEntries(Vec<FileWithEntries>);

/// A file of Claude Code with entries to remove.
#[derive(Debug)]
struct FileWithEntries {
    path: PathBuf,
    /// The kind of its entries.
    kind: &'static str,
    before: String,
    after: Value,
    removed: Vec<PythonEntry>,
}

#[derive(Debug)]
struct PythonEntry {
    line: String,
    /// The store that its environment names.
    store: Option<String>,
}

const HOOK: &str = "hook";
const SERVER: &str = "server";

/// Looks for entries of the Python version.
///
/// # Errors
/// A file exists but is not a JSON object, so it is unknown whether it has entries.
pub fn find(environment: &Environment) -> Result<PythonEntries, Error> {
    let folder = environment.claude_folder.as_ref();
    let settings = folder.map(|folder| folder.join("settings.json"));
    let hooks = look(environment, settings, HOOK, remove_hooks)?;
    let state = environment.claude_state.clone();
    let servers = look(environment, state, SERVER, remove_servers)?;
    Ok(PythonEntries(hooks.into_iter().chain(servers).collect()))
}

/// Looks for entries in a file; none if it does not exist or has no entry.
fn look(
    environment: &Environment,
    path: Option<PathBuf>,
    kind: &'static str,
    remove: impl FnOnce(&mut Value) -> Vec<PythonEntry>,
) -> Result<Option<FileWithEntries>, Error> {
    let Some(path) = path else { return Ok(None) };
    let unusable = |why: &dyn std::fmt::Display| unusable(environment, &path, &why.to_string());
    let before = match read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unusable(&error)),
    };
    let object: Map<String, Value> =
        serde_json::from_str(&before).map_err(|error| unusable(&error))?;
    let mut after = Value::Object(object);
    let removed = remove(&mut after);
    Ok((!removed.is_empty()).then_some(FileWithEntries {
        path,
        kind,
        before,
        after,
        removed,
    }))
}

/// Removes our hooks, with the groups and events that become empty.
fn remove_hooks(settings: &mut Value) -> Vec<PythonEntry> {
    let mut removed = Vec::new();
    let events = settings.get_mut("hooks").and_then(Value::as_object_mut);
    let Some(events) = events else { return removed };
    events.retain(|event, groups| {
        let Some(groups) = groups.as_array_mut() else {
            return true;
        };
        let before = removed.len();
        groups.retain_mut(|group| {
            let hooks = group.get_mut("hooks").and_then(Value::as_array_mut);
            let Some(hooks) = hooks else { return true };
            let before = removed.len();
            hooks.retain(|hook| match command_of(hook) {
                Some(command) if is_ours(&command) => {
                    removed.push(PythonEntry {
                        line: hook_line(event, &command),
                        store: shell::assigned(&command, "ANAMNESIS_HOME"),
                    });
                    false
                }
                _ => true,
            });
            removed.len() == before || !hooks.is_empty()
        });
        removed.len() == before || !groups.is_empty()
    });
    removed
}

/// Removes our servers.
fn remove_servers(state: &mut Value) -> Vec<PythonEntry> {
    let mut removed = Vec::new();
    if let Some(servers) = state.get_mut("mcpServers").and_then(Value::as_object_mut) {
        servers.retain(|name, server| {
            let is_ours = is_server(name, server);
            if is_ours {
                let store = server.pointer("/env/ANAMNESIS_HOME");
                removed.push(PythonEntry {
                    line: format!("server {}", one_line(name)),
                    store: store.and_then(Value::as_str).map(ToOwned::to_owned),
                });
            }
            !is_ours
        });
    }
    removed
}

/// Returns a hook's command line, including the arguments in `args`.
fn command_of(hook: &Value) -> Option<String> {
    let mut command = hook.get("command")?.as_str()?.to_owned();
    let arguments = hook.get("args").and_then(Value::as_array);
    for argument in arguments.into_iter().flatten().filter_map(Value::as_str) {
        command.push(' ');
        command.push_str(argument);
    }
    Some(command)
}

fn unusable(environment: &Environment, path: &Path, why: &str) -> Error {
    let path = format::home_path(path, environment.user_home.as_deref());
    Error::failed(format!(
        "{path} cannot be understood:\n  {why}\n\
         Nothing was changed, there or here, and your notes are safe"
    ))
    .hint(format!("fix {path}, then run it again"))
}

/// Returns whether the Python version wrote this hook command. Such a command contains one of its
/// three verbs, after its name or its variables.
fn is_ours(command: &str) -> bool {
    const VERBS: [&str; 3] = ["inject", "sync", "capture"];
    let is_named = VERBS
        .iter()
        .any(|verb| command.contains(&format!("anamnesis {verb}")));
    // The program may have any other name, so its variables and a verb are enough.
    let mut words = command.split_whitespace();
    is_named || (command.contains("ANAMNESIS_") && words.any(|word| VERBS.contains(&word)))
}

/// Returns whether a server is the Python version's.
fn is_server(name: &str, server: &Value) -> bool {
    let is_named = name == SERVER_NAME;
    let arguments = server.get("args").and_then(Value::as_array);
    let last = match arguments.and_then(|arguments| arguments.last()) {
        Some(last) => last.as_str(),
        None => server.get("command").and_then(Value::as_str),
    };
    is_named && last.is_some_and(|last| last.split_whitespace().last() == Some("serve"))
}

impl FileWithEntries {
    /// Writes the file without the entries and keeps a backup next to it.
    fn make(&self) -> io::Result<()> {
        // Users may keep the file elsewhere, for example with their dotfiles, and link to it.
        let path = dunce::canonicalize(&self.path)?;
        if read(&path)? != self.before {
            return Err(io::Error::other("it has just been changed"));
        }
        replace(
            &with_suffix(&self.path, BACKUP),
            self.before.as_bytes(),
            &path,
        )?;
        replace(&path, format!("{:#}\n", self.after).as_bytes(), &path)
    }
}

impl PythonEntries {
    /// Whether anything was found.
    pub fn is_some(&self) -> bool {
        !self.0.is_empty()
    }

    /// Whether the Python version records sessions as well.
    pub fn has_hooks(&self) -> bool {
        self.0.iter().any(|file| file.kind == HOOK)
    }

    /// A short summary, one line per file.
    pub fn summary(&self, user_home: Option<&Path>) -> Vec<String> {
        let line = |file: &FileWithEntries| {
            let count = format::count(file.removed.len(), file.kind);
            format!("{count} in {}", format::home_path(&file.path, user_home))
        };
        self.0.iter().map(line).collect()
    }

    /// The first existing store that the entries name and that is not at `root`. Removing them
    /// would remove the only record of its path.
    pub fn other_store(&self, root: &Path, user_home: Option<&Path>) -> Option<PathBuf> {
        let entries = self.0.iter().flat_map(|file| &file.removed);
        let mut stores = entries
            .filter_map(|entry| entry.store.clone())
            .map(|store| match (store.strip_prefix("~/"), user_home) {
                (Some(rest), Some(home)) => home.join(rest),
                _ => PathBuf::from(store),
            })
            .filter(|store| store.is_absolute() && store.is_dir());
        let root = Home::new(root);
        stores.find(|store| Home::new(store).root() != root.root())
    }

    /// One line per entry.
    pub fn entries(&self) -> Vec<String> {
        let entries = self.0.iter().flat_map(|file| &file.removed);
        entries.map(|entry| entry.line.clone()).collect()
    }

    /// Removes all entries and returns the paths of the backups.
    ///
    /// # Errors
    /// A file cannot be written or has changed since it was read. That file is left as it is.
    pub fn remove(&self, user_home: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
        let remove = |file: &FileWithEntries| {
            file.make().map_err(|error| {
                let path = format::home_path(&file.path, user_home);
                Error::failed(format!(
                    "{path} is left as it is: {error}\nYour notes are safe"
                ))
                .hint("anamnesis init")
            })?;
            Ok(with_suffix(&file.path, BACKUP))
        };
        self.0.iter().map(remove).collect()
    }
}

fn hook_line(event: &str, command: &str) -> String {
    let command = one_line(command);
    // Commands begin with variables; only their ends differ.
    let end = last_characters(&command, COMMAND_LENGTH);
    let cut = if end.len() < command.len() { "…" } else { "" };
    format!("{}: {cut}{end}", one_line(event))
}

/// How many characters of a command are shown.
const COMMAND_LENGTH: usize = 55;

/// Reads one of Claude Code's files, following links.
fn read(path: &Path) -> io::Result<String> {
    let path = dunce::canonicalize(path)?;
    let (bytes, _, is_whole) = file::read_head(&path, MAX_LENGTH)?;
    if !is_whole {
        return Err(io::Error::other(format!("it is over {MAX_LENGTH} bytes")));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// Replaces a file atomically, with the mode of another one.
fn replace(path: &Path, bytes: &[u8], like: &Path) -> io::Result<()> {
    let mode = fs::metadata(like)?.permissions();
    file::write_atomic(path, bytes)?;
    fs::set_permissions(path, mode)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_the_entries_go() {
        // HOOK-07
        let ours = json!({ "type": "command", "command": "anamnesis", "args": ["capture"] });
        let other = json!({ "type": "command", "command": "echo" });
        let mut settings = json!({
            "b": 1.5, "hooks": {
                "Stop": [], "SessionEnd": [{ "hooks": [ours] }],
                "SessionStart": [{ "matcher": "x", "hooks": [ours, other] }, { "hooks": [ours] }],
            }, "a": 2,
        });
        assert_eq!(remove_hooks(&mut settings).len(), 3);
        let left = json!({
            "b": 1.5, "hooks": {
                "Stop": [], "SessionStart": [{ "matcher": "x", "hooks": [other] }],
            }, "a": 2,
        });
        assert_eq!(settings.to_string(), left.to_string());
        assert!(remove_hooks(&mut settings).is_empty());
        for odd in [
            json!({}),
            json!({ "hooks": 1 }),
            json!({ "hooks": { "Stop": [1] } }),
        ] {
            assert!(remove_hooks(&mut odd.clone()).is_empty());
        }
    }

    #[test]
    fn the_python_versions_hooks_are_told_from_others() {
        for (command, ours) in [
            (
                "ANAMNESIS_MACHINE_ID=laptop /home/me/.local/bin/anamnesis inject",
                true,
            ),
            (
                "ANAMNESIS_MACHINE_ID='my desk' '/opt/a b/anamnesis' sync",
                true,
            ),
            (
                "ANAMNESIS_HOME=/x ANAMNESIS_MACHINE_ID=a uv run --project /src anamnesis capture --source precompact --no-sync",
                true,
            ),
            ("ANAMNESIS_MACHINE_ID=a my-wrapper capture", true),
            ("anamnesis inject", true),
            ("anamnesis status", false),
            ("ANAMNESIS_OFF=1 claude -p hello", false),
            ("make sync", false),
            ("", false),
        ] {
            assert_eq!(is_ours(command), ours, "{command}");
        }
    }

    #[test]
    fn the_python_versions_server_is_told_from_others() {
        for (name, server, ours) in [
            (
                "anamnesis",
                json!({"command": "/x/anamnesis", "args": ["serve"]}),
                true,
            ),
            (
                "anamnesis",
                json!({"command": "uv", "args": ["run", "anamnesis", "serve"]}),
                true,
            ),
            ("anamnesis", json!({"command": "anamnesis serve"}), true),
            (
                "other",
                json!({"command": "anamnesis", "args": ["serve"]}),
                false,
            ),
            (
                "anamnesis",
                json!({"command": "anamnesis", "args": ["status"]}),
                false,
            ),
            (
                "anamnesis",
                json!({"type": "http", "url": "https://h/serve"}),
                false,
            ),
            ("anamnesis", json!(null), false),
        ] {
            assert_eq!(is_server(name, &server), ours, "{name} {server}");
        }
    }
}
