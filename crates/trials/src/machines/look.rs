//! Checks that must hold when all machines have synced twice.

use std::{
    collections::{BTreeMap, BTreeSet, HashSet},
    fs::{self, File},
    io::Write as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, SystemTime},
};

use anamnesis_note::{id::NoteId, note::NoteFile};

use super::{
    accounts::Accounts,
    fleet::{Fleet, Machine, files_below, git, succeeded},
};
use crate::{Result, at};

/// Runs all checks. Returns one line per fault.
pub(super) fn look(fleet: &Fleet, accounts: &Accounts) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for machine in &fleet.machines {
        check_leftovers(machine, &mut faults)?;
    }
    let [first, others @ ..] = fleet.machines.as_slice() else {
        return Err("there are no machines".into());
    };
    let tree = first.tree();
    for other in others {
        faults.extend(differences(first, &tree, other));
    }
    let mut bodies = HashSet::new();
    for machine in &fleet.machines {
        check_notes(machine, &mut bodies, &mut faults)?;
        check_index(machine, &mut faults)?;
    }
    for repository in repositories(fleet) {
        if let Err(error) = git(&repository, &["fsck", "--strict", "--no-progress"]) {
            faults.push(error.to_string());
        }
    }
    let remote = fleet.remote();
    let locks = files_below(&remote)
        .into_iter()
        .filter(|path| is_lock(path));
    faults.extend(locks.map(|path| format!("{} is left", path.display())));
    bodies_of_history(&remote, &mut bodies)?;
    faults.extend(accounts.missing(&bodies));
    Ok(faults)
}

/// Returns the repositories of all machines and of the remote.
pub(super) fn repositories(fleet: &Fleet) -> Vec<PathBuf> {
    let machines = fleet.machines.iter();
    let folders = machines.map(|machine| machine.home.root().join("memory"));
    folders.chain([fleet.remote()]).collect()
}

/// Returns the differences between the trees of two machines.
pub(super) fn differences(
    one: &Machine,
    tree: &BTreeMap<PathBuf, Vec<u8>>,
    other: &Machine,
) -> Vec<String> {
    let theirs = other.tree();
    let names: BTreeSet<&PathBuf> = tree.keys().chain(theirs.keys()).collect();
    names
        .into_iter()
        .filter(|name| tree.get(*name) != theirs.get(*name))
        .map(|name| {
            let of = |tree: &BTreeMap<PathBuf, Vec<u8>>| {
                let bytes = tree.get(name);
                bytes.map_or_else(
                    || "none".to_owned(),
                    |bytes| String::from_utf8_lossy(bytes).into_owned(),
                )
            };
            let (a, b) = (of(tree), of(&theirs));
            format!(
                "{} differs: {} has {a:?}, {} has {b:?}",
                name.display(),
                one.name,
                other.name
            )
        })
        .collect()
}

/// Checks that every note can be read and contains no conflict marker of git.
fn check_notes(
    machine: &Machine,
    bodies: &mut HashSet<String>,
    faults: &mut Vec<String>,
) -> Result {
    let listing = machine.notes.list();
    faults.extend(
        listing
            .problems
            .iter()
            .map(|problem| format!("{}: {}: {}", machine.name, problem.path, problem.reason)),
    );
    for (path, _) in listing.notes {
        let bytes = machine.notes.bytes(path)?;
        if has_marker(&bytes) {
            faults.push(format!(
                "{}: {path} contains a conflict marker",
                machine.name
            ));
        }
        match NoteFile::parse(&bytes, path.id) {
            Ok(file) => drop(bodies.insert(file.into_note().body)),
            Err(error) => faults.push(format!("{}: {path}: {error}", machine.name)),
        }
    }
    let aside = files_below(&machine.home.quarantine());
    faults.extend(
        aside
            .iter()
            .map(|path| format!("{} is put aside", path.display())),
    );
    Ok(())
}

fn has_marker(bytes: &[u8]) -> bool {
    let mut lines = bytes.split(|byte| *byte == b'\n');
    lines.any(|line| line.starts_with(b"<<<<<<< ") || line.starts_with(b">>>>>>> "))
}

/// Checks that no lock file is left and, after the deferred process, no temporary file.
fn check_leftovers(machine: &Machine, faults: &mut Vec<String>) -> Result {
    let root = machine.home.root();
    let ours = |path: &PathBuf| !path.starts_with(machine.home.derived());
    // Only old files count as abandoned.
    for path in files_below(root)
        .into_iter()
        .filter(|path| is_temporary(path))
    {
        let long_ago = SystemTime::now() - Duration::from_secs(7200);
        let file = File::options().write(true).open(&path).map_err(at(&path))?;
        file.set_modified(long_ago).map_err(at(&path))?;
    }
    succeeded(&mut machine.command(&["work"]))?;
    let left = files_below(root).into_iter().filter(ours);
    let left = left.filter(|path| is_lock(path) || is_temporary(path));
    faults.extend(left.map(|path| format!("{} is left", path.display())));
    Ok(())
}

fn is_lock(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending == "lock")
}

fn is_temporary(path: &Path) -> bool {
    path.iter()
        .any(|part| part.to_string_lossy().ends_with(".tmp"))
}

/// Checks that the index answers like a rebuilt one.
fn check_index(machine: &Machine, faults: &mut Vec<String>) -> Result {
    let kept = machine.answers()?;
    let derived = machine.home.derived();
    fs::remove_dir_all(&derived).map_err(at(&derived))?;
    let fresh = machine.answers()?;
    if kept != fresh {
        let line = kept
            .lines()
            .zip(fresh.lines())
            .find(|(old, new)| old != new);
        faults.push(format!(
            "the index of {} answers otherwise than a new one: {line:?}",
            machine.name
        ));
    }
    Ok(())
}

/// Collects the bodies of all notes in the history of a repository.
pub(super) fn bodies_of_history(repository: &Path, bodies: &mut HashSet<String>) -> Result {
    let objects = git(repository, &["rev-list", "--objects", "--all"])?;
    let notes: Vec<(&str, NoteId)> = objects
        .lines()
        .filter_map(|line| {
            let (object, path) = line.split_once(' ')?;
            let name = path.rsplit('/').next()?.strip_suffix(".md")?;
            Some((object, name.parse().ok()?))
        })
        .collect();
    let mut child = Command::new("git")
        .args(["cat-file", "--batch"])
        .current_dir(repository)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let asked: String = notes
        .iter()
        .map(|(object, _)| format!("{object}\n"))
        .collect();
    let mut stdin = child.stdin.take().ok_or("git cat-file has no stdin")?;
    let writer = std::thread::spawn(move || stdin.write_all(asked.as_bytes()));
    let output = child.wait_with_output()?;
    writer.join().map_err(|_| "a thread panicked")??;
    let mut rest = output.stdout.as_slice();
    for (object, id) in notes {
        // `<object> blob <length>`, the bytes, a line feed.
        let head = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(head);
        let length: usize = line
            .rsplit(' ')
            .next()
            .and_then(|word| word.parse().ok())
            .ok_or_else(|| format!("git cat-file says {line:?} of {object}"))?;
        let begin = head.len() + 1;
        let bytes = rest
            .get(begin..begin + length)
            .ok_or("git cat-file ended early")?;
        if let Ok(file) = NoteFile::parse(bytes, id) {
            bodies.insert(file.into_note().body);
        }
        rest = rest.get(begin + length + 1..).unwrap_or_default();
    }
    Ok(())
}
