//! Kills a sync before each of its steps, in every situation.
//!
//! A situation is prepared once. Each kill runs on a copy of it in the same folder.

use std::{fs, path::Path, process::Command};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Source, timestamp},
};
use anamnesis_store::notes::NotePath;

use super::{
    accounts::Accounts,
    fleet::{Fleet, Machine, succeeded, synced},
    flushes,
    look::look,
    report,
    trace::{Reach, Traced},
};
use crate::{Result, at};

/// The machine whose sync is killed, and one that is left alone.
const NAMES: [&str; 2] = ["laptop", "desktop"];

/// A situation of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Situation {
    /// Local notes and an empty remote.
    First,
    /// No local notes, and notes in the remote.
    NewMachine,
    /// Local and remote notes without a common history.
    Strangers,
    /// No local changes, and changes in the remote.
    Take,
    /// Changes on both sides, some of which conflict.
    Join,
}

const SITUATIONS: [Situation; 5] = [
    Situation::First,
    Situation::NewMachine,
    Situation::Strangers,
    Situation::Take,
    Situation::Join,
];

/// Kills before every `stride`th step. Returns the number of faults.
pub(super) fn run(root: &Path, program: &Path, stride: usize) -> Result<usize> {
    let mut failed = 0;
    for situation in SITUATIONS {
        failed += unflushed(root, program, situation)?;
        for reach in [Reach::Program, Reach::Machine] {
            failed += kill_each(root, program, situation, reach, stride)?;
        }
    }
    Ok(failed)
}

/// Checks that a sync in one situation flushes what it writes. Returns the number of faults.
fn unflushed(root: &Path, program: &Path, situation: Situation) -> Result<usize> {
    let fleet = prepared(&root.join("flushed"), program, situation)?;
    let laptop = &fleet.machines[0];
    let git = laptop.home.root().join("memory/.git");
    let faults = flushes::missing(&laptop.sync(), &git)?;
    for fault in &faults {
        report(&format!("FAILED: {situation:?}: {fault}"));
    }
    Ok(faults.len())
}

/// Kills a sync in one situation before each of its steps.
fn kill_each(
    root: &Path,
    program: &Path,
    situation: Situation,
    reach: Reach,
    stride: usize,
) -> Result<usize> {
    let (place, kept) = (root.join("fleet"), root.join("kept"));
    clear(&kept)?;
    let mut fleet = prepared(&place, program, situation)?;
    let accounts = texts(&fleet)?;
    fs::rename(&place, &kept).map_err(at(&place))?;
    let (mut kills, mut failed) = (0, 0);
    for step in (1..).step_by(stride) {
        clear(&place)?;
        // Keeps modification times, by which the program detects changes.
        succeeded(Command::new("cp").arg("-a").arg(&kept).arg(&place))?;
        let mut traced = Traced::start(&fleet.machines[0].sync(), reach)?;
        if !traced.run_to(step)? {
            traced.finish()?;
            break;
        }
        traced.kill()?;
        kills += 1;
        for fault in heals(&mut fleet, &accounts)? {
            failed += 1;
            report(&format!(
                "FAILED: {situation:?}, killed {reach:?} before step {step}: {fault}"
            ));
        }
    }
    report(&format!(
        "{situation:?}: killed {reach:?} before {kills} steps, {failed} faults"
    ));
    Ok(failed)
}

/// Syncs both machines after the kill. Returns the faults.
fn heals(fleet: &mut Fleet, accounts: &Accounts) -> Result<Vec<String>> {
    for index in [0, 1, 0] {
        fleet.pass_time();
        let machine = &fleet.machines[index];
        if let Err(error) = synced(&machine.sync().output()?.into()) {
            return Ok(vec![format!("the next sync of {}: {error}", machine.name)]);
        }
    }
    look(fleet, accounts)
}

/// Returns every text on a machine.
fn texts(fleet: &Fleet) -> Result<Accounts> {
    let mut accounts = Accounts::default();
    for (index, machine) in fleet.machines.iter().enumerate() {
        for (path, _) in machine.notes.list().notes {
            accounts.committed(index, path.id, machine.body(path)?);
        }
    }
    Ok(accounts)
}

/// Removes a folder, if there is one.
fn clear(folder: &Path) -> Result {
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(at(folder))?;
    }
    Ok(())
}

/// Returns machines in a situation, in an empty folder.
fn prepared(place: &Path, program: &Path, situation: Situation) -> Result<Fleet> {
    clear(place)?;
    fs::create_dir(place).map_err(at(place))?;
    let mut fleet = Fleet::new(place, program, &NAMES)?;
    prepare(&mut fleet, situation)?;
    Ok(fleet)
}

fn prepare(fleet: &mut Fleet, situation: Situation) -> Result {
    let [laptop, desktop] = fleet.machines.as_slice() else {
        return Err("expected two machines".into());
    };
    let sync = |machine: &Machine| synced(&machine.sync().output()?.into()).map(drop);
    match situation {
        Situation::First => {
            write(laptop, "first")?;
            leave(laptop, "session")?;
        }
        Situation::NewMachine => {
            write(desktop, "first")?;
            write(desktop, "second")?;
            sync(desktop)?;
        }
        Situation::Strangers => {
            write(desktop, "first")?;
            sync(desktop)?;
            write(laptop, "second")?;
            leave(laptop, "session")?;
        }
        Situation::Take | Situation::Join => {
            let notes = ["clash", "deleted", "moved", "edited"];
            let [clash, deleted, moved, edited] = notes.map(|title| write(laptop, title));
            let (clash, deleted, moved, edited) = (clash?, deleted?, moved?, edited?);
            for machine in [laptop, desktop, laptop] {
                sync(machine)?;
            }
            change(desktop, clash, |note| note.body.insert_str(0, "Desktop: "))?;
            remove(desktop, deleted)?;
            change(desktop, moved, |note| note.note_type = NoteType::Procedural)?;
            change(desktop, edited, |note| {
                note.body.push_str("\n\nAt the end.")
            })?;
            write(desktop, "new there")?;
            sync(desktop)?;
            if situation == Situation::Join {
                change(laptop, clash, |note| note.body.insert_str(0, "Laptop: "))?;
                change(laptop, deleted, |note| note.body.push_str("\n\nAfter all."))?;
                change(laptop, edited, |note| {
                    note.body.insert_str(0, "At the beginning.\n\n")
                })?;
                write(laptop, "new here")?;
                leave(laptop, "session")?;
            }
        }
    }
    Ok(())
}

/// Writes a note as a command does. The title determines its id.
pub(super) fn write(machine: &Machine, title: &str) -> Result<NotePath> {
    let note = Note {
        title: title.to_owned(),
        body: format!("About {title}.\n\nBy {}.", machine.name),
        machine_id: machine.name.to_owned(),
        ..Note::new(NoteId::of_session(title), NoteType::Semantic, machine.now)
    };
    let path = place(machine, &note)?;
    machine.commit("write", path.id)?;
    Ok(path)
}

/// Leaves a session note as a hook does.
fn leave(machine: &Machine, session: &str) -> Result {
    let note = Note {
        title: format!("Session {session}"),
        body: format!("**Asked:** about {session}"),
        source: Source::SessionEnd,
        session: Some(session.to_owned()),
        ..Note::new(NoteId::of_session(session), NoteType::Episodic, machine.now)
    };
    place(machine, &note).map(drop)
}

fn place(machine: &Machine, note: &Note) -> Result<NotePath> {
    let lock = machine.notes.lock()?;
    Ok(machine.notes.create(&lock, note)?.path)
}

/// Changes a note as a command does.
pub(super) fn change(machine: &Machine, path: NotePath, change: impl FnOnce(&mut Note)) -> Result {
    let lock = machine.notes.lock()?;
    let now = timestamp(machine.now);
    machine.notes.update(&lock, path, |note| {
        change(note);
        note.updated_at = now;
    })?;
    drop(lock);
    machine.commit("edit", path.id)
}

fn remove(machine: &Machine, path: NotePath) -> Result {
    let lock = machine.notes.lock()?;
    machine.notes.remove(&lock, path)?;
    drop(lock);
    machine.commit("remove", path.id)
}
