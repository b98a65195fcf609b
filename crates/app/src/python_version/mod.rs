//! Finds the Python version's hooks and server in Claude Code's files, removes them, and restores
//! the exact bytes.
//!
//! Nothing is ever added. A file that cannot be parsed is not changed.

mod removal;

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use anamnesis_store::{
    fs::{file, home::Home},
    journal::{self, Journal},
};
use anamnesis_text::{clean::one_line, shell};
use serde_json::Value;

use self::removal::{Hook, Removal, Server};
use crate::{Error, environment::Environment, format};

/// The default name of the Python version's MCP server.
pub const SERVER_NAME: &str = "anamnesis";

/// The largest of Claude Code's files that is read, in bytes.
const MAX_LENGTH: usize = 64 * 1024 * 1024;

/// The suffix of a backup file.
const BACKUP: &str = ".anamnesis-backup";

/// The entries of the Python version that were found.
#[derive(Debug)]
pub struct PythonEntries {
    hooks: Option<FileWithEntries<Hook>>,
    servers: Option<FileWithEntries<Server>>,
}

/// A file of Claude Code with entries to remove.
#[derive(Debug)]
struct FileWithEntries<T> {
    path: PathBuf,
    before: String,
    removal: Removal<T>,
}

/// Looks for entries of the Python version.
///
/// # Errors
/// A file exists but is not a JSON object, so it is unknown whether it has entries.
pub fn find(environment: &Environment, server: &str) -> Result<PythonEntries, Error> {
    let look = |path: Option<PathBuf>| -> Result<Option<(PathBuf, String)>, Error> {
        let Some(path) = path else { return Ok(None) };
        match read(&path) {
            Ok(text) => Ok(Some((path, text))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(unusable(environment, &path, &error.to_string())),
        }
    };
    let hooks = match look(settings_of(environment))? {
        Some((path, before)) => {
            let removal = removal::of_hooks(&before, is_ours)
                .map_err(|error| unusable(environment, &path, &error.to_string()))?;
            FileWithEntries::new(path, before, removal)
        }
        None => None,
    };
    let servers = match look(environment.claude_state.clone())? {
        Some((path, before)) => {
            let removal =
                removal::of_servers(&before, |name, value| is_server(name, value, server))
                    .map_err(|error| unusable(environment, &path, &error.to_string()))?;
            FileWithEntries::new(path, before, removal)
        }
        None => None,
    };
    Ok(PythonEntries { hooks, servers })
}

/// The journal key that tells whether the Python version recorded sessions as well, as of the last
/// check.
const NOTED_TWICE: &str = "noted_twice";

/// Checks whether the Python version's hooks are active. Stores the result for the hook at session
/// start, which has no time to check.
pub fn note_hooks(environment: &Environment, journal: &Journal) -> Result<(), journal::Error> {
    let text = settings_of(environment).and_then(|path| read(&path).ok());
    let removal = text.and_then(|text| removal::of_hooks(&text, is_ours).ok());
    let mark = match removal {
        Some(removal) if !removal.removed.is_empty() => "yes",
        _ => "",
    };
    if journal.meta(NOTED_TWICE)?.unwrap_or_default() == mark {
        return Ok(());
    }
    journal.set_meta(NOTED_TWICE, mark)
}

/// Returns whether the Python version was recording sessions as well at the last check.
pub fn is_noting(journal: &Journal) -> bool {
    let mark = journal.meta(NOTED_TWICE).ok().flatten();
    mark.is_some_and(|mark| !mark.is_empty())
}

/// The path of the user's settings of Claude Code.
fn settings_of(environment: &Environment) -> Option<PathBuf> {
    let folder = environment.claude_folder.as_ref()?;
    Some(folder.join("settings.json"))
}

fn unusable(environment: &Environment, path: &Path, why: &str) -> Error {
    let path = format::home_path(path, environment.user_home.as_deref());
    Error::failed(format!(
        "{path} cannot be understood:\n  {why}\n\
         Nothing was changed, there or here, and your notes are safe"
    ))
    .hint(format!("mend {path}, then run it again"))
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
fn is_server(name: &str, server: &Value, own_name: &str) -> bool {
    let is_named = name == "anamnesis" || name == own_name;
    let arguments = server.get("args").and_then(Value::as_array);
    let last = match arguments.and_then(|arguments| arguments.last()) {
        Some(last) => last.as_str(),
        None => server.get("command").and_then(Value::as_str),
    };
    is_named && last.is_some_and(|last| last.split_whitespace().last() == Some("serve"))
}

impl<T> FileWithEntries<T> {
    /// Creates a change, if there is anything to remove.
    fn new(path: PathBuf, before: String, removal: Removal<T>) -> Option<Self> {
        (!removal.removed.is_empty()).then_some(Self {
            path,
            before,
            removal,
        })
    }

    /// Writes the file without the entries and keeps a backup next to it.
    fn make(&self) -> io::Result<()> {
        // Users may keep the file elsewhere, for example with their dotfiles, and link to it.
        let path = dunce::canonicalize(&self.path)?;
        if read(&path)? != self.before {
            return Err(io::Error::other("it has just been changed"));
        }
        replace(&backup_of(&self.path), self.before.as_bytes(), &path)?;
        replace(&path, self.removal.text.as_bytes(), &path)
    }
}

impl PythonEntries {
    /// Whether anything was found.
    pub fn is_some(&self) -> bool {
        self.hooks.is_some() || self.servers.is_some()
    }

    /// Whether the Python version records sessions as well.
    pub fn has_hooks(&self) -> bool {
        self.hooks.is_some()
    }

    /// A short summary, one line per file.
    pub fn summary(&self, user_home: Option<&Path>) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(change) = &self.hooks {
            let count = format::count(change.removal.removed.len(), "hook");
            lines.push(format!(
                "{count} in {}",
                format::home_path(&change.path, user_home)
            ));
        }
        if let Some(change) = &self.servers {
            let count = format::count(change.removal.removed.len(), "server");
            lines.push(format!(
                "{count} in {}",
                format::home_path(&change.path, user_home)
            ));
        }
        lines
    }

    /// The first existing store that the entries name and that is not at `root`. Removing them
    /// would remove the only record of its path.
    pub fn other_store(&self, root: &Path, user_home: Option<&Path>) -> Option<PathBuf> {
        let hooks = self.hooks.iter().flat_map(|change| &change.removal.removed);
        let hooks = hooks.filter_map(|hook| shell::assigned(&hook.command, "ANAMNESIS_HOME"));
        let servers = self.servers.iter();
        let servers = servers.flat_map(|change| &change.removal.removed);
        let mut stores = hooks
            .chain(servers.filter_map(|server| server.store.clone()))
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
        let hooks = self.hooks.iter().flat_map(|change| &change.removal.removed);
        let servers = self
            .servers
            .iter()
            .flat_map(|change| &change.removal.removed);
        let hooks = hooks.map(|hook| {
            let command = one_line(&hook.command);
            // Commands begin with variables; only their ends differ.
            let skipped = command.chars().count().saturating_sub(COMMAND_LENGTH);
            let end: String = command.chars().skip(skipped).collect();
            let cut = if skipped > 0 { "…" } else { "" };
            format!("{}: {cut}{end}", one_line(&hook.event))
        });
        hooks
            .chain(servers.map(|server| format!("server {}", one_line(&server.name))))
            .collect()
    }

    /// Removes all entries and returns the paths of the backups.
    ///
    /// # Errors
    /// A file cannot be written or has changed since it was read. That file is left as it is.
    pub fn remove(&self, user_home: Option<&Path>) -> Result<Vec<PathBuf>, Error> {
        let mut backups = Vec::new();
        let failed = |path: &Path, error: &io::Error| {
            let path = format::home_path(path, user_home);
            Error::failed(format!(
                "{path} is left as it is: {error}\nYour notes are safe"
            ))
            .hint("anamnesis init")
        };
        if let Some(change) = &self.hooks {
            change
                .make()
                .map_err(|error| failed(&change.path, &error))?;
            backups.push(backup_of(&change.path));
        }
        if let Some(change) = &self.servers {
            change
                .make()
                .map_err(|error| failed(&change.path, &error))?;
            backups.push(backup_of(&change.path));
        }
        Ok(backups)
    }
}

/// Makes the store of the Python version the default one, by a link. Fails if the default store
/// exists and is not empty.
pub fn take_over(store: &Path, default: &Path) -> io::Result<()> {
    match fs::remove_dir(default) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    link(store, default)
}

#[cfg(unix)]
fn link(store: &Path, default: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(store, default)
}

#[cfg(not(unix))]
fn link(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// How many characters of a command are shown.
const COMMAND_LENGTH: usize = 55;

/// The result of restoring a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Restored {
    /// The file has its original bytes again.
    Done(PathBuf),
    /// The file has changed since, so the entries must be restored by hand.
    Changed {
        /// The file.
        path: PathBuf,
        /// The backup with the original bytes.
        backup: PathBuf,
    },
}

/// Restores the removed entries in files that have not changed since.
pub fn restore(environment: &Environment, server: &str) -> io::Result<Vec<Restored>> {
    let mut restored = Vec::new();
    if let Some(path) = settings_of(environment) {
        let left = |text: &str| Some(removal::of_hooks(text, is_ours).ok()?.text);
        restored.extend(put_back(&path, left)?);
    }
    if let Some(path) = &environment.claude_state {
        let goes = |name: &str, value: &Value| is_server(name, value, server);
        let left = |text: &str| Some(removal::of_servers(text, goes).ok()?.text);
        restored.extend(put_back(path, left)?);
    }
    Ok(restored)
}

/// Restores a file from its backup, if it still equals what `left` computes from the backup.
fn put_back(path: &Path, left: impl Fn(&str) -> Option<String>) -> io::Result<Option<Restored>> {
    let backup = backup_of(path);
    let before = match read(&backup) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let real = dunce::canonicalize(path)?;
    let path = path.to_owned();
    if left(&before) != Some(read(&real)?) {
        return Ok(Some(Restored::Changed { path, backup }));
    }
    replace(&real, before.as_bytes(), &real)?;
    fs::remove_file(backup)?;
    Ok(Some(Restored::Done(path)))
}

/// The path of a file's backup.
fn backup_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(BACKUP);
    name.into()
}

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
    use proptest::prelude::*;
    use serde_json::json;

    use super::{removal::tests::text, *};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_taken_out_is_put_back_byte_for_byte(before in text()) {
            // HOOK-07
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("settings.json");
            fs::write(&path, &before).unwrap();
            let goes = |command: &str| command.starts_with("ours");
            let left = |text: &str| Some(removal::of_hooks(text, goes).ok()?.text);
            let removal = removal::of_hooks(&before, goes).unwrap();
            let change = FileWithEntries::new(path.clone(), before.clone(), removal);
            let Some(change) = change else { return Ok(()) };
            change.make().unwrap();
            prop_assert_eq!(Some(read(&path).unwrap()), left(&before));
            prop_assert_eq!(put_back(&path, left).unwrap(), Some(Restored::Done(path.clone())));
            prop_assert_eq!(read(&path).unwrap(), before);
            prop_assert_eq!(put_back(&path, left).unwrap(), None);
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
                "notes",
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
            assert_eq!(is_server(name, &server, "notes"), ours, "{name} {server}");
        }
    }
}
