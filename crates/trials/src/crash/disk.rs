//! Tests a full and a read-only disk, on a small tmpfs.
//!
//! The disk is filled up to a number of free blocks, from zero upwards, until nothing fails. So
//! each write of each command fails once. Without permission to mount, the test is skipped and says
//! so.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
    thread,
    time::Duration,
};

use anamnesis_note::{id::NoteId, note::NoteFile};
use anamnesis_store::notes::NotePath;

use super::{
    Checks, report,
    sandbox::{Sandbox, describe_run},
};
use crate::{Result, at};

/// The block size of a tmpfs.
const BLOCK: u64 = 4096;

/// With this many free blocks nothing fails.
const ENOUGH: u64 = 96;

/// A command with its input, and whether it is a hook.
struct Call {
    arguments: Vec<String>,
    input: Vec<u8>,
    is_hook: bool,
}

/// Runs the scenario.
pub(super) fn run(root: &Path, binary: &Path, checks: &mut Checks) -> Result {
    let point = root.join("disk");
    fs::create_dir(&point).map_err(at(&point))?;
    let Some(disk) = Disk::mount(&point) else {
        report("skipped: mounting is not permitted here");
        return Ok(());
    };
    let store = disk.point.join("store");
    let sandbox = Sandbox::with_store(root, binary, &store)?;
    on_no_store(&sandbox, &disk, checks)?;
    remove(&store)?;
    full(&sandbox, &disk, checks)?;
    read_only(&sandbox, &disk, checks)
}

/// Runs the first hooks of a machine on a full disk.
fn on_no_store(sandbox: &Sandbox, disk: &Disk, checks: &mut Checks) -> Result {
    sandbox.transcript("first", 10)?;
    for free in 0..ENOUGH {
        remove(&disk.point.join("store"))?;
        let ballast = disk.fill(free)?;
        for event in ["SessionStart", "PreCompact", "SessionEnd"] {
            let payload = sandbox.payload(event, "first");
            let output = sandbox.run(&["hook"], &payload)?;
            look(&["hook"], &output, true, checks);
        }
        drop(ballast);
        let payload = sandbox.payload("SessionEnd", "first");
        sandbox.succeeds(&["hook"], &payload, checks)?;
        let notes = sandbox.notes().list().notes;
        checks.that(notes.len() == 1, || {
            format!(
                "{} notes once there was space again, after {free} blocks",
                notes.len()
            )
        });
    }
    sandbox.heals(checks)
}

/// Makes every write of every command fail once.
fn full(sandbox: &Sandbox, disk: &Disk, checks: &mut Checks) -> Result {
    sandbox.plant(50)?;
    sandbox.succeeds(&["reindex"], b"", checks)?;
    let mut failures = BTreeMap::new();
    for (round, free) in (0..ENOUGH).enumerate() {
        for call in calls(sandbox, round)? {
            let arguments: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
            let before = contents(sandbox)?;
            let ballast = disk.fill(free)?;
            let output = sandbox.run(&arguments, &call.input)?;
            drop(ballast);
            look(&arguments, &output, call.is_hook, checks);
            if !output.status.success() {
                *failures.entry(call.arguments[0].clone()).or_insert(0) += 1;
            }
            for (path, bytes) in contents(sandbox)? {
                let is_whole = NoteFile::parse(&bytes, path.id).is_ok();
                checks.that(is_whole, || format!("{path} is incomplete"));
            }
            let after = contents(sandbox)?;
            let is_lost = before.keys().any(|path| !after.contains_key(path));
            checks.that(!is_lost, || describe_run(&arguments, &output));
        }
        if free % 16 == 0 {
            sandbox.heals(checks)?;
        }
    }
    let told: Vec<String> = failures
        .iter()
        .map(|(name, count)| format!("{name} {count}"))
        .collect();
    report(&format!(
        "full disk: {ENOUGH} sizes of what is free; failed and said so: {}",
        told.join(", ")
    ));
    sandbox.heals(checks)
}

/// On a read-only disk, hooks print nothing, commands report the reason, and nothing changes.
fn read_only(sandbox: &Sandbox, disk: &Disk, checks: &mut Checks) -> Result {
    let calls = calls(sandbox, usize::MAX)?;
    let before = contents(sandbox)?;
    report("read-only disk: hooks answer, commands report the reason");
    disk.remount("ro")?;
    for call in calls {
        let arguments: Vec<&str> = call.arguments.iter().map(String::as_str).collect();
        let output = sandbox.run(&arguments, &call.input)?;
        look(&arguments, &output, call.is_hook, checks);
        checks.that(call.is_hook || !output.status.success(), || {
            describe_run(&arguments, &output)
        });
    }
    let output = sandbox.run(&["hook"], &sandbox.payload("SessionStart", "reader"))?;
    look(&["hook"], &output, true, checks);
    let is_given = String::from_utf8_lossy(&output.stdout).contains("<anamnesis-context>");
    checks.that(is_given, || {
        format!(
            "a read-only store gives nothing: {}",
            describe_run(&["hook"], &output)
        )
    });
    disk.remount("rw")?;
    let after = contents(sandbox)?;
    checks.that(before == after, || "a read-only store changed".to_owned());
    sandbox.heals(checks)
}

/// Removes a store. The previous round's deferred process may still be writing.
fn remove(store: &Path) -> Result {
    let mut result = Ok(());
    for _ in 0..100 {
        result = match fs::remove_dir_all(store) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            result => result,
        };
        thread::sleep(Duration::from_millis(10));
    }
    result.map_err(at(store))
}

/// Returns one command of every kind that writes.
fn calls(sandbox: &Sandbox, round: usize) -> Result<Vec<Call>> {
    let session = format!("full-{round}");
    sandbox.transcript(&session, 10)?;
    let other = sandbox.transcript(&format!("other-{round}"), 10)?;
    let other = other.to_string_lossy();
    let planted = NoteId::of_session("planted 7").to_string();
    let title = format!("Changed in round {round}");
    let text = "The disk is full of logs.\n".repeat(400);
    let hook = |event: &str| Call {
        arguments: vec!["hook".to_owned()],
        input: sandbox.payload(event, &session),
        is_hook: true,
    };
    let command = |arguments: &[&str], input: &str| Call {
        arguments: arguments.iter().map(|word| (*word).to_owned()).collect(),
        input: input.as_bytes().to_vec(),
        is_hook: false,
    };
    Ok(vec![
        hook("SessionStart"),
        hook("PreCompact"),
        hook("SessionEnd"),
        command(&["capture", "--transcript", &other], ""),
        command(&["write", "--stdin", "--title", &title], &text),
        command(&["edit", &planted, "--title", &title], ""),
    ])
}

/// Checks a run's output: hooks exit 0 and print nothing, commands report the reason.
fn look(arguments: &[&str], output: &Output, is_hook: bool, checks: &mut Checks) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_as_it_should = if is_hook {
        output.status.success() && stderr.is_empty()
    } else {
        match output.status.code() {
            Some(0) => true,
            Some(1) => stderr.starts_with("anamnesis: "),
            _ => false,
        }
    };
    checks.that(is_as_it_should, || describe_run(arguments, output));
}

fn contents(sandbox: &Sandbox) -> Result<BTreeMap<NotePath, Vec<u8>>> {
    let notes = sandbox.notes();
    let listing = notes.list();
    let mut contents = BTreeMap::new();
    for (path, _) in listing.notes {
        contents.insert(path, notes.bytes(path)?);
    }
    Ok(contents)
}

/// A file system of a few megabytes, unmounted on drop.
struct Disk {
    point: PathBuf,
}

impl Disk {
    /// Mounts the disk. Returns `None` if that is not permitted.
    fn mount(point: &Path) -> Option<Self> {
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=16m,mode=0700", "tmpfs"]);
        let status = mount.arg(point).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success()).then(|| Self {
            point: point.to_path_buf(),
        })
    }

    fn remount(&self, mode: &str) -> Result {
        let mut mount = Command::new("mount");
        crate::run(
            mount
                .args(["-o", &format!("remount,{mode}")])
                .arg(&self.point),
        )
    }

    /// Fills the disk up to `free` blocks. Dropping the ballast frees the space.
    fn fill(&self, free: u64) -> Result<Ballast> {
        let ballast = Ballast {
            path: self.point.join("ballast"),
        };
        let mut file = File::create(&ballast.path).map_err(at(&ballast.path))?;
        let block = vec![1; usize::try_from(BLOCK)?];
        let mut length = 0;
        loop {
            match file.write_all(&block) {
                Ok(()) => length += BLOCK,
                Err(error) if error.kind() == io::ErrorKind::StorageFull => break,
                Err(error) => return Err(error.into()),
            }
        }
        file.set_len(length.saturating_sub(free * BLOCK))?;
        Ok(ballast)
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazy, because a deferred process may still use the folder.
        let _ = Command::new("umount").arg("-l").arg(&self.point).status();
    }
}

/// A file that occupies space.
struct Ballast {
    path: PathBuf,
}

impl Drop for Ballast {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
