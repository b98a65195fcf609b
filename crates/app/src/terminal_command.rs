//! The command for a terminal: a copy of the program in the store, and a link to it on PATH.
//!
//! The plugin's own folder is not on PATH, and updates of the plugin replace it. So the store's
//! `bin/` has a copy, which the deferred process keeps up to date. Copy and link are created only
//! on request.

use std::{
    env,
    fs::{self, File},
    io::{self, Read},
    path::{Path, PathBuf},
};

use anamnesis_store::{
    fs::{
        file::{self, Stamp},
        home,
    },
    journal::Journal,
};
use serde_json::Value;

use crate::{context::Context, environment::Environment, format, format::quoted};

/// The journal key for the version and the file stamp of the last copied program.
const COPIED: &str = "terminal_command";

/// The state of the link's path.
#[derive(Debug, PartialEq, Eq)]
pub enum LinkTarget {
    /// Nothing.
    Free,
    /// A link to our copy.
    Ours,
    /// Something else, which is left alone.
    Taken,
}

/// Another `anamnesis` that comes first on PATH.
#[derive(Debug)]
pub struct Other {
    path: PathBuf,
    /// A description of its origin, as far as it can be detected.
    whose: &'static str,
}

impl Other {
    /// Returns a line that names it.
    pub fn first_on_path(&self, context: &Context) -> String {
        let path = format::home_path(&self.path, context.environment.user_home.as_deref());
        format!("{} comes first on PATH: {path}", self.whose)
    }
}

/// The path of the copy in the store.
fn copy_of(context: &Context) -> PathBuf {
    context.home.bin().join(program())
}

/// The program's file name.
pub(crate) fn program() -> String {
    format!("anamnesis{}", env::consts::EXE_SUFFIX)
}

/// The path of the link, below the user's home.
pub fn link(environment: &Environment) -> Option<PathBuf> {
    let user_home = environment.user_home.as_ref()?;
    Some(user_home.join(".local/bin").join(program()))
}

/// Checks what exists at the link's path.
pub fn place(context: &Context) -> LinkTarget {
    let Some(link) = link(&context.environment) else {
        return LinkTarget::Taken;
    };
    match fs::read_link(&link) {
        Ok(target) if target == context.home.as_named(&copy_of(context)) => LinkTarget::Ours,
        Err(error) if error.kind() == io::ErrorKind::NotFound => LinkTarget::Free,
        _ => LinkTarget::Taken,
    }
}

/// Creates the copy, or updates it.
pub fn install_copy(context: &Context, journal: Option<&Journal>) -> io::Result<()> {
    home::ensure_folder(&context.home.bin()).map_err(io::Error::other)?;
    if let Some(journal) = journal {
        keep(context, journal)?;
    } else if let Some(own) = other_than(&copy_of(context))? {
        copy(&own, &copy_of(context))?;
    }
    Ok(())
}

/// Creates the copy, and the link if its path is free. Other files at that path are never replaced.
pub fn install(context: &Context, journal: Option<&Journal>) -> io::Result<()> {
    install_copy(context, journal)?;
    #[cfg(unix)]
    if let (LinkTarget::Free, Some(link)) = (place(context), link(&context.environment)) {
        if let Some(folder) = link.parent() {
            fs::create_dir_all(folder)?;
        }
        // Not the resolved path, which breaks if the store is moved and replaced by a link.
        let target = context.home.as_named(&copy_of(context));
        std::os::unix::fs::symlink(target, link)?;
    }
    Ok(())
}

/// Updates the copy to this program's version, if there is a copy or a link to it. A newer copy
/// stays.
///
/// # Errors
/// The file system or the journal fails. The old copy is still in place.
pub fn keep(context: &Context, journal: &Journal) -> io::Result<()> {
    if !home::is_real_folder(&context.home.bin()) && place(context) != LinkTarget::Ours {
        return Ok(());
    }
    let copied = copy_of(context);
    let Some(own) = other_than(&copied)? else {
        return Ok(());
    };
    let stamp = Stamp::from_metadata(&fs::metadata(&own)?);
    let version = env!("CARGO_PKG_VERSION");
    let mark = format!("{version} {} {}", stamp.size, stamp.modified);
    let last = journal.meta(COPIED).map_err(io::Error::other)?;
    if copied.is_file()
        && let Some(last) = &last
        && (*last == mark || numbers(last) > numbers(version))
    {
        return Ok(());
    }
    home::ensure_folder(&context.home.bin()).map_err(io::Error::other)?;
    copy(&own, &copied)?;
    journal.set_meta(COPIED, &mark).map_err(io::Error::other)
}

/// Returns the path of this program, unless it is `file`.
fn other_than(file: &Path) -> io::Result<Option<PathBuf>> {
    let own = dunce::canonicalize(env::current_exe()?)?;
    Ok((dunce::canonicalize(file).ok().as_ref() != Some(&own)).then_some(own))
}

/// Parses the version number at the start of a text.
fn numbers(text: &str) -> Vec<u64> {
    let version = text.split([' ', '-', '+']).next().unwrap_or_default();
    version
        .split('.')
        .filter_map(|part| part.parse().ok())
        .collect()
}

/// Copies a program atomically.
#[expect(
    clippy::disallowed_methods,
    reason = "this opened the file for writing"
)]
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    // A leftover temporary file belongs to a killed process: the deferred process holds its lock
    // here, and otherwise a person runs this in a terminal.
    let temporary = to.with_extension("new");
    file::remove(&temporary)?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o700);
    let mut file = options.open(&temporary)?;
    io::copy(&mut File::open(from)?, &mut file)?;
    file.sync_all()?;
    fs::rename(&temporary, to)
}

/// Returns whether a shell finds this program by its name.
pub fn is_found(context: &Context) -> bool {
    first_on_path(context).is_some() && other(context).is_none()
}

/// Returns a line that says why a shell does not find this program by its name, with what helps; `None`
/// if it does.
pub fn not_found(context: &Context) -> Option<String> {
    if let Some(other) = other(context) {
        return Some(other.first_on_path(context));
    }
    if first_on_path(context).is_some() {
        return None;
    }
    let link = link(&context.environment).filter(|_| place(context) == LinkTarget::Ours);
    let folder = link.as_deref().and_then(Path::parent);
    Some(
        match folder.filter(|folder| !is_on_path(&context.environment, folder)) {
            Some(folder) => {
                let folder = context.shown(folder);
                format!("The command `anamnesis` is in {folder}: add that to your PATH")
            }
            None => "The command `anamnesis` is not on your PATH: /memory-setup link".to_owned(),
        },
    )
}

/// Returns what a person types to run this program.
pub fn typed(context: &Context) -> String {
    if is_found(context) {
        return "anamnesis".to_owned();
    }
    let copy = copy_of(context);
    let path = if copy.is_file() {
        context.home.as_named(&copy)
    } else {
        env::current_exe().unwrap_or_default()
    };
    quoted(&path.display().to_string())
}

/// Returns the first `anamnesis` on PATH, if it is neither this program nor its copy.
pub fn other(context: &Context) -> Option<Other> {
    let path = first_on_path(context)?;
    let real = dunce::canonicalize(&path).ok()?;
    let is_ours = |own: io::Result<PathBuf>| {
        own.and_then(dunce::canonicalize)
            .is_ok_and(|own| own == real)
    };
    if is_ours(env::current_exe()) || is_ours(Ok(copy_of(context))) {
        return None;
    }
    let whose = if starts_python(&real) {
        "the Python release's anamnesis"
    } else if real.components().any(|part| part.as_os_str() == ".cargo") {
        "an anamnesis installed with cargo"
    } else {
        "another anamnesis"
    };
    Some(Other { path, whose })
}

/// Returns the first `anamnesis` on PATH.
fn first_on_path(context: &Context) -> Option<PathBuf> {
    let folders = context.environment.path.iter().flat_map(env::split_paths);
    let mut paths = folders.map(|folder| folder.join(program()));
    paths.find(|path| path.is_file() && !is_launcher(path))
}

/// Returns whether a program is the launcher of our plugin. Claude Code adds the plugin's `bin/` to
/// PATH in sessions; a terminal does not have it.
fn is_launcher(path: &Path) -> bool {
    let root = path.parent().and_then(Path::parent);
    let manifest = root.map(|root| root.join(".claude-plugin/plugin.json"));
    let manifest = manifest.and_then(|path| fs::read(path).ok());
    let manifest: Option<Value> = manifest.and_then(|bytes| serde_json::from_slice(&bytes).ok());
    manifest.is_some_and(|manifest| manifest["name"] == "anamnesis")
}

/// Returns whether a file is a Python script as package managers generate them.
fn starts_python(path: &Path) -> bool {
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    // If the interpreter's path is too long for the shebang, it is in the second line.
    read.is_ok()
        && text.starts_with("#!")
        && text.lines().take(3).any(|line| line.contains("python"))
}

/// Returns whether a folder is on PATH.
pub fn is_on_path(environment: &Environment, folder: &Path) -> bool {
    let mut folders = environment.path.iter().flat_map(env::split_paths);
    folders.any(|on_path| on_path == folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert!(numbers("0.10.0 5 7") > numbers("0.9.1"));
        assert!(numbers("0.1.0") == numbers("0.1.0-rc.1 5 7"));
        assert!(numbers("1.0.0") > numbers("0.99.99"));
    }
    /// A context whose store and home are in this folder.
    fn context(folder: &Path) -> Context {
        let mut environment = Environment::read(crate::environment::Caller::Person);
        environment.store = Some(folder.join("store"));
        environment.user_home = Some(folder.to_owned());
        Context::open(environment).unwrap()
    }

    #[test]
    fn the_copy_is_kept_at_the_newest_version() {
        let folder = tempfile::tempdir().unwrap();
        let context = context(folder.path());
        let journal = context.journal().unwrap();
        let copied = copy_of(&context);
        // The copy was not requested.
        keep(&context, &journal).unwrap();
        assert!(!context.home.bin().exists());
        home::ensure_folder(&context.home.bin()).unwrap();
        keep(&context, &journal).unwrap();
        let own = fs::read(env::current_exe().unwrap()).unwrap();
        assert!(fs::read(&copied).unwrap() == own);
        assert_eq!(fs::read_dir(context.home.bin()).unwrap().count(), 1);
        // If version and stamp are unchanged, the contents are not compared.
        fs::write(&copied, "same").unwrap();
        keep(&context, &journal).unwrap();
        assert!(fs::read(&copied).unwrap() == b"same");
        let this = format!("{} 1 1", env!("CARGO_PKG_VERSION"));
        for last in ["0.0.9 1 1", &this, ""] {
            journal.set_meta(COPIED, last).unwrap();
            fs::write(&copied, "another").unwrap();
            keep(&context, &journal).unwrap();
            assert!(fs::read(&copied).unwrap() == own, "{last}");
        }
        // A newer version's copy is not downgraded, but a missing one is replaced.
        journal.set_meta(COPIED, "99.0.0 1 1").unwrap();
        fs::write(&copied, "newer").unwrap();
        keep(&context, &journal).unwrap();
        assert!(fs::read(&copied).unwrap() == b"newer");
        fs::remove_file(&copied).unwrap();
        keep(&context, &journal).unwrap();
        assert!(fs::read(&copied).unwrap() == own);
    }
}
