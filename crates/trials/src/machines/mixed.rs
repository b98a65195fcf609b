//! Syncs three machines, one of which has the Python version. Each side reads the other's notes,
//! and keys that the Python version drops are restored.
//!
//! The Python version stops at the first conflict, so only one note is changed on both sides at
//! once.

use std::{fs, path::Path};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile, NoteType},
};
use anamnesis_store::notes::NotePath;

use super::{
    fleet::{Fleet, Machine, NAMES, git, succeeded, synced},
    kills::{change, write},
    look::{differences, repositories},
    report,
};
use crate::{Result, at, python_version};

/// A key that neither version knows.
const UNKNOWN_KEY: &str = "reviewed_by: a person\n";

/// Runs the scenario. Returns the faults.
pub(super) fn run(root: &Path, program: &Path, python: &Path) -> Result<Vec<String>> {
    let mut fleet = Fleet::new(root, program, &NAMES)?;
    if let Some(old) = fleet.machines.last_mut() {
        python.clone_into(&mut old.program);
    }
    let [laptop, desktop, old] = fleet.machines.as_slice() else {
        return Err("expected three machines".into());
    };
    let mut faults = Vec::new();

    // A history of our two machines with a merge commit.
    let session = leave_with_extensions(laptop)?;
    sync(laptop)?;
    write(desktop, "by desktop")?;
    write(laptop, "by laptop")?;
    sync(desktop)?;
    sync(laptop)?;
    let merges = git(
        &fleet.remote(),
        &["rev-list", "--merges", "--count", "main"],
    )?;
    expect(
        merges.trim() != "0",
        "our machines joined without a merge",
        &mut faults,
    );
    sync_old(old)?;
    faults.extend(differences(laptop, &laptop.tree(), old));
    let indexed = succeeded(&mut old.command(&["reindex"]))?;
    let notes = laptop.notes.list().notes.len();
    let all = format!("indexed {notes} note(s)");
    expect(
        indexed.contains(&all),
        &format!("not {all}: {indexed}"),
        &mut faults,
    );

    // Notes that the Python version writes on top of ours.
    let captured = capture(old)?;
    write(laptop, "meanwhile")?;
    sync(laptop)?;
    write(desktop, "meanwhile too")?;
    sync(desktop)?;
    sync_old(old)?;
    sync(laptop)?;
    let found = laptop.notes.find(captured);
    expect(
        found.is_some(),
        "what it captured has not arrived",
        &mut faults,
    );

    // The Python version rewrites a note and drops unknown keys; the same note is edited here.
    succeeded(&mut old.command(&["backfill-provenance", "--apply"]))?;
    let dropped = !fs::read_to_string(session.absolute(&old.home))?.contains("pinned");
    expect(
        dropped,
        "it keeps our keys now: look whether they still have to be put back",
        &mut faults,
    );
    change(laptop, session, |note| {
        note.body.push_str("\n\nEdited meanwhile.")
    })?;
    sync(laptop)?;
    for _ in 0..2 {
        sync(desktop)?;
        sync_old(old)?;
        sync(laptop)?;
    }
    let text = fs::read_to_string(session.absolute(&laptop.home))?;
    let note = NoteFile::parse(text.as_bytes(), session.id)?.into_note();
    let kept = note.pinned
        && note.when == ["cmd: git push --force"]
        && note.links.len() == 1
        && text.contains(UNKNOWN_KEY);
    expect(kept, &format!("keys were lost: {text}"), &mut faults);
    // Provenance is never merged; the Python version adds the user.
    let joined = note.user_id.is_some() && note.body.ends_with("Edited meanwhile.");
    expect(
        joined,
        &format!("the two changes were not joined: {text}"),
        &mut faults,
    );

    for machine in [desktop, old] {
        faults.extend(differences(laptop, &laptop.tree(), machine));
    }
    for repository in repositories(&fleet) {
        git(&repository, &["fsck", "--strict", "--no-progress"])?;
    }
    report(&format!(
        "beside the Python version: {notes} notes read by it, {} faults",
        faults.len()
    ));
    Ok(faults)
}

fn expect(holds: bool, what: &str, faults: &mut Vec<String>) {
    if !holds {
        faults.push(what.to_owned());
    }
}

fn sync(machine: &Machine) -> Result {
    synced(&machine.sync().output()?.into()).map(drop)
}

/// Runs a sync of the Python version, which cannot recover from a conflict.
fn sync_old(machine: &Machine) -> Result {
    let said = succeeded(&mut machine.command(&["sync"]))?;
    if said.contains("conflicted=False") && said.contains("(synced)") {
        Ok(())
    } else {
        Err(format!("the Python version: {said}").into())
    }
}

/// Writes a note with every kind of key that the Python version does not know.
/// `backfill-provenance` considers its source wrong.
fn leave_with_extensions(machine: &Machine) -> Result<NotePath> {
    let note = Note {
        title: "Do not push by force".to_owned(),
        body: "The others lose their commits.".to_owned(),
        machine_id: machine.name.to_owned(),
        tags: vec!["session".to_owned()],
        when: vec!["cmd: git push --force".to_owned()],
        links: vec![format!("related-to {}", NoteId::of_session("by laptop"))],
        pinned: true,
        ..Note::new(
            NoteId::of_session("extensions"),
            NoteType::Procedural,
            machine.now,
        )
    };
    let text = note
        .render()
        .replacen("tags:", &format!("{UNKNOWN_KEY}tags:"), 1);
    let path = NotePath::from_note(&note);
    let lock = machine.notes.lock()?;
    machine.notes.place(&lock, path, text.as_bytes())?;
    drop(lock);
    machine.commit("write", path.id)?;
    Ok(path)
}

/// Lets the Python version write a session's note, and returns its id.
fn capture(machine: &Machine) -> Result<NoteId> {
    let path = machine.home.root().with_file_name("transcript.jsonl");
    fs::write(&path, python_version::transcript()).map_err(at(&path))?;
    let path = path.to_string_lossy();
    let arguments = [
        "capture",
        "--no-sync",
        "--project",
        "global",
        "--transcript",
        &path,
    ];
    let said = succeeded(&mut machine.command(&arguments))?;
    let id = said.split_whitespace().find_map(|word| word.parse().ok());
    id.ok_or_else(|| format!("the Python version captured nothing: {said}").into())
}
