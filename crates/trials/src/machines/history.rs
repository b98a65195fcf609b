//! A random history of machines: changes of notes by people, hooks and editors, and events of the
//! machines.
//!
//! Every step is drawn from the seed and the files, and so is the system call before which a sync
//! is killed. Ids and texts are numbered. So a seed always plays the same history, except for two
//! syncs that run at the same time.

use std::{collections::BTreeMap, fs, time::Duration};

use anamnesis_lab::random::Random;
use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Scope, Source, State, timestamp},
};
use anamnesis_store::notes::{self, NotePath, Notes, Stored};
use chrono::TimeDelta;

use super::{
    accounts::Accounts,
    fleet::{Fleet, Machine, NAMES, synced},
    step::{NoteEdit, PROJECTS, Step, TAGS, draw},
    trace::{Ended, Reach, Traced},
};
use crate::{Result, at};

/// The maximum number of notes in removal, below the number for which a sync asks a person.
const MAX_REMOVED: usize = 5;

/// Half of all edits change one of this many youngest notes, so that machines conflict.
const HOT: usize = 10;

/// Number of steps for which a machine is offline.
const OFFLINE_STEPS: usize = 40;

/// A removed note that other machines may still have.
#[derive(Debug)]
struct Removed {
    by: usize,
    is_sent: bool,
    has_arrived: [bool; NAMES.len()],
}

/// A history in progress.
pub(super) struct History {
    pub(super) fleet: Fleet,
    pub(super) accounts: Accounts,
    pub(super) faults: Vec<String>,
    /// The steps so far, one line each.
    pub(super) told: Vec<String>,
    random: Random,
    seed: u64,
    serial: usize,
    /// All ids in the order of their creation.
    born: Vec<NoteId>,
    removed: Vec<Removed>,
    /// The step until which each machine is offline.
    offline_until: [usize; NAMES.len()],
    done: BTreeMap<&'static str, usize>,
}

impl History {
    pub(super) fn new(fleet: Fleet, seed: u64) -> Self {
        Self {
            fleet,
            accounts: Accounts::default(),
            faults: Vec::new(),
            told: Vec::new(),
            random: Random::new(seed),
            seed,
            serial: 0,
            born: Vec::new(),
            removed: Vec::new(),
            offline_until: [0; NAMES.len()],
            done: BTreeMap::new(),
        }
    }

    /// Plays some steps. Stops at the first step that finds a fault.
    pub(super) fn play(&mut self, steps: usize) -> Result {
        for number in 1..=steps {
            self.serial = number;
            self.fleet.pass_time();
            for index in 0..NAMES.len() {
                if self.machine(index).is_offline && self.offline_until[index] <= number {
                    self.fleet.machines[index].set_offline(false)?;
                }
            }
            let step = Step::draw(&mut self.random);
            let index = self.random.index(NAMES.len());
            self.told
                .push(format!("{number} {} {step:?}", NAMES[index]));
            self.step(index, step)
                .map_err(|error| format!("step {number}, {} {step:?}: {error}", NAMES[index]))?;
            if !self.faults.is_empty() {
                break;
            }
        }
        Ok(())
    }

    /// Connects all machines, corrects their clocks, and syncs each twice.
    pub(super) fn settle(&mut self) -> Result {
        for machine in &mut self.fleet.machines {
            machine.set_offline(false)?;
            machine.clock_is_off = TimeDelta::zero();
        }
        for _ in 0..2 {
            for index in 0..NAMES.len() {
                self.fleet.pass_time();
                self.sync(index)?;
            }
        }
        Ok(())
    }

    /// Returns the number of played steps.
    pub(super) fn steps(&self) -> usize {
        self.serial
    }

    /// Returns how often a kind of step was played.
    pub(super) fn count(&self, what: &str) -> usize {
        self.done.get(what).copied().unwrap_or(0)
    }

    fn machine(&self, index: usize) -> &Machine {
        &self.fleet.machines[index]
    }

    fn did(&mut self, what: &'static str) {
        *self.done.entry(what).or_default() += 1;
    }

    fn step(&mut self, index: usize, step: Step) -> Result {
        match step {
            Step::Write => self.write(index),
            Step::Capture => self.capture(index),
            Step::Edit(change) => self.edit(index, change),
            Step::EditByHand => self.edit_by_hand(index),
            Step::Forget => self.forget(index),
            Step::Restore => self.restore(index),
            Step::Remove => self.remove(index),
            Step::Move => self.change_scope(index),
            Step::Sync => self.sync(index),
            Step::Kill(reach, at) => self.kill(index, reach, at),
            Step::Meddle(at, change) => self.meddle(index, at, change),
            Step::Together => self.sync_together(index),
            Step::Replace => self.replace(index),
            Step::Unplug => {
                self.offline_until[index] = self.serial + OFFLINE_STEPS;
                self.fleet.machines[index].set_offline(true)
            }
            Step::Clock => {
                let days = [TimeDelta::days(-1), TimeDelta::zero(), TimeDelta::days(1)];
                self.fleet.machines[index].clock_is_off = draw(&mut self.random, &days);
                Ok(())
            }
        }
    }

    /// Returns a text that occurs nowhere else in this history.
    fn mark(&self, index: usize) -> String {
        format!("Step {} on {}.", self.serial, NAMES[index])
    }

    fn new_id(&mut self) -> NoteId {
        let id = NoteId::of_session(&format!("{} {}", self.seed, self.serial));
        self.born.push(id);
        id
    }

    fn write(&mut self, index: usize) -> Result {
        let id = self.new_id();
        let machine = self.machine(index);
        let mark = self.mark(index);
        let note = Note {
            title: format!("Title of {mark}"),
            body: format!(
                "First paragraph. {mark}\n\n- one\n- two\n- three\n\nLast paragraph. {mark}"
            ),
            project: PROJECTS[self.serial % PROJECTS.len()].to_owned(),
            machine_id: machine.name.to_owned(),
            tags: vec![TAGS[self.serial % TAGS.len()].to_owned()],
            ..Note::new(id, NoteType::ALL[self.serial % 2], machine.now)
        };
        let lock = machine.notes.lock()?;
        let stored = machine.notes.create(&lock, &note)?;
        drop(lock);
        self.committed(index, "write", &stored)
    }

    fn capture(&mut self, index: usize) -> Result {
        let id = self.new_id();
        let machine = self.machine(index);
        let mark = self.mark(index);
        let note = Note {
            title: format!("Session of {mark}"),
            body: format!("**Asked:** {mark}\n\n**Outcome:** paragraph of a session."),
            project: PROJECTS[1].to_owned(),
            machine_id: machine.name.to_owned(),
            source: Source::SessionEnd,
            session: Some(format!("session-{}", self.serial)),
            tags: vec!["session".to_owned(), "session-end".to_owned()],
            ..Note::new(id, NoteType::Episodic, machine.now)
        };
        let lock = machine.notes.lock()?;
        let stored = machine.notes.create(&lock, &note)?;
        drop(lock);
        self.did("capture");
        self.accounts
            .written(index, id, stored.file.into_note().body);
        Ok(())
    }

    /// Commits a command's change and tracks the text.
    fn committed(&mut self, index: usize, verb: &'static str, stored: &Stored) -> Result {
        let done = self.machine(index).commit(verb, stored.path.id);
        self.did(verb);
        self.told.push(format!("  {verb} {}", stored.path));
        let id = stored.path.id;
        let body = stored.file.note().body.clone();
        match done {
            _ if stored.path.scope == Scope::MachineLocal => self.accounts.overwritten(index, id),
            Ok(()) => self.accounts.committed(index, id, body),
            // A git process that was killed with the machine left the branch locked. The command
            // still succeeds, and the next sync commits.
            Err(error) if error.to_string().contains(".lock'") => {
                self.accounts.written(index, id, body);
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Draws an active note of a machine.
    fn draw_note(
        &mut self,
        index: usize,
        fits: impl Fn(NotePath, &Note) -> bool,
    ) -> Option<NotePath> {
        let notes = self.machine(index).notes.clone();
        let listing = notes.list().notes;
        for _ in 0..12 {
            let path = if self.random.below(2) == 0 && !self.born.is_empty() {
                let youngest = self.born.len().min(HOT);
                let id = self.born[self.born.len() - 1 - self.random.index(youngest)];
                notes.find(id)
            } else if listing.is_empty() {
                None
            } else {
                Some(listing[self.random.index(listing.len())].0)
            };
            let Some(path) = path else { continue };
            let fits = notes
                .read(path)
                .is_ok_and(|stored| fits(path, stored.file.note()));
            if fits {
                return Some(path);
            }
        }
        None
    }

    fn edit(&mut self, index: usize, change: NoteEdit) -> Result {
        let active = |_: NotePath, note: &Note| note.state == State::Active;
        let Some(path) = self.draw_note(index, active) else {
            return self.write(index);
        };
        let notes = self.machine(index).notes.clone();
        self.edit_note(index, &notes, path, change)?;
        Ok(())
    }

    /// Changes a note as a command does. Returns whether that was possible.
    fn edit_note(
        &mut self,
        index: usize,
        notes: &Notes,
        path: NotePath,
        change: NoteEdit,
    ) -> Result<bool> {
        let lock = match notes.lock() {
            Err(notes::Error::Locked) => return Ok(false),
            lock => lock?,
        };
        let mark = self.mark(index);
        let other = draw(&mut self.random, &self.born);
        let place = self.random.index(60);
        let now = timestamp(self.machine(index).now);
        let changed = notes.update(&lock, path, |note| {
            change.apply(note, &mark, other, place);
            note.updated_at = now;
        });
        let stored = match changed {
            // A killed sync left the note in two folders, and the change is to its type. That is
            // impossible until the next sync has finished the killed one's work.
            Err(notes::Error::Exists(_)) => return Ok(false),
            changed => changed?,
        };
        drop(lock);
        self.committed(index, "edit", &stored)?;
        Ok(true)
    }

    fn edit_by_hand(&mut self, index: usize) -> Result {
        let portable = |path: NotePath, note: &Note| {
            path.scope == Scope::Portable && note.state == State::Active
        };
        let Some(path) = self.draw_note(index, portable) else {
            return self.write(index);
        };
        let machine = self.machine(index);
        let text = String::from_utf8(machine.notes.bytes(path)?)?;
        let mark = self.mark(index);
        let text = match self.serial % 3 {
            // A key that no version knows.
            0 => text.replacen(
                "\ntitle:",
                &format!("\nstep_{}: {mark:?}\ntitle:", self.serial),
                1,
            ),
            // An editor on Windows.
            1 if !text.contains('\r') => text.replace('\n', "\r\n"),
            _ => format!("{}\n\nBy hand. {mark}\n", text.trim_end()),
        };
        let file = path.absolute(&machine.home);
        fs::write(&file, text).map_err(at(&file))?;
        let body = machine.body(path)?;
        self.told.push(format!("  by hand {path}"));
        self.did("edit by hand");
        self.accounts.written(index, path.id, body);
        Ok(())
    }

    /// Returns whether one more note may be removed.
    fn may_remove(&self) -> bool {
        self.removed.len() < MAX_REMOVED
    }

    fn was_removed(&mut self, by: usize) {
        self.removed.push(Removed {
            by,
            is_sent: false,
            has_arrived: [false; NAMES.len()],
        });
    }

    fn forget(&mut self, index: usize) -> Result {
        let portable = |path: NotePath, note: &Note| {
            path.scope == Scope::Portable && note.state == State::Active
        };
        let drawn = self.draw_note(index, portable);
        let Some(path) = drawn.filter(|_| self.may_remove()) else {
            return self.write(index);
        };
        let machine = self.machine(index);
        let lock = machine.notes.lock()?;
        let stored = machine.notes.forget(&lock, path, machine.now)?;
        drop(lock);
        self.was_removed(index);
        self.committed(index, "forget", &stored)
    }

    fn restore(&mut self, index: usize) -> Result {
        let notes = self.machine(index).notes.clone();
        let forgotten = |path: NotePath, note: &Note| {
            note.state == State::Forgotten && notes.trashed(path.id).is_some()
        };
        let Some(path) = self.draw_note(index, forgotten) else {
            return self.write(index);
        };
        let lock = notes.lock()?;
        let stored = notes.restore(&lock, path)?;
        drop(lock);
        self.committed(index, "restore", &stored)
    }

    fn remove(&mut self, index: usize) -> Result {
        let portable = |path: NotePath, _: &Note| path.scope == Scope::Portable;
        let drawn = self.draw_note(index, portable);
        let Some(path) = drawn.filter(|_| self.may_remove()) else {
            return self.write(index);
        };
        let file = path.absolute(&self.machine(index).home);
        fs::remove_file(&file).map_err(at(&file))?;
        self.was_removed(index);
        self.did("remove");
        self.accounts.overwritten(index, path.id);
        Ok(())
    }

    fn change_scope(&mut self, index: usize) -> Result {
        let active = |_: NotePath, note: &Note| note.state == State::Active;
        let Some(path) = self.draw_note(index, active) else {
            return self.write(index);
        };
        let scope = match path.scope {
            Scope::Portable if !self.may_remove() => return self.write(index),
            Scope::Portable => Scope::MachineLocal,
            Scope::MachineLocal => Scope::Portable,
        };
        let machine = self.machine(index);
        let lock = machine.notes.lock()?;
        let stored = match machine.notes.set_scope(&lock, path, scope) {
            // The note came back from another machine, where it was changed meanwhile.
            Err(notes::Error::Exists(_)) => return Ok(()),
            moved => moved?,
        };
        drop(lock);
        if scope == Scope::MachineLocal {
            self.was_removed(index);
        }
        self.committed(index, "move", &stored)
    }

    fn sync(&mut self, index: usize) -> Result {
        let output = self.machine(index).sync().output()?;
        self.check_sync(index, self.accounts.count(), &output.into());
        Ok(())
    }

    /// Checks that a sync that was not killed succeeded, unless the remote was offline.
    fn check_sync(&mut self, index: usize, begun_at: usize, ended: &Ended) {
        let mut says = synced(ended);
        if says.is_err() && ended.stdout.contains("\"held\": \"") {
            // All notes of a small project were removed, which the person meant.
            let mut accept = self.machine(index).command(&["sync", "--accept", "--json"]);
            says = accept
                .output()
                .map_err(Into::into)
                .and_then(|output| synced(&output.into()));
        }
        if self.machine(index).is_offline {
            self.did("sync without a remote");
            if ended.code != Some(1) {
                self.fault(index, &format!("a sync without a remote: {ended:?}"));
            }
            return;
        }
        match says {
            Err(error) => self.fault(index, &format!("a sync: {error}")),
            Ok(says) => {
                self.did("sync");
                if says["conflicts"]
                    .as_u64()
                    .is_some_and(|conflicts| conflicts > 0)
                {
                    self.did("clash");
                }
                self.accounts.synced(index, begun_at);
                for removed in &mut self.removed {
                    removed.is_sent |= removed.by == index;
                    removed.has_arrived[index] |= removed.is_sent;
                }
                self.removed
                    .retain(|removed| removed.has_arrived.contains(&false));
            }
        }
    }

    fn kill(&mut self, index: usize, reach: Reach, step: usize) -> Result {
        let mut traced = Traced::start(&self.machine(index).sync(), reach)?;
        if traced.run_to(step)? {
            self.did(match reach {
                Reach::Program => "kill",
                Reach::Machine => "power cut",
            });
            return traced.kill();
        }
        self.check_sync(index, self.accounts.count(), &traced.finish()?);
        Ok(())
    }

    fn meddle(&mut self, index: usize, step: usize, change: NoteEdit) -> Result {
        let active = |_: NotePath, note: &Note| note.state == State::Active;
        let Some(path) = self.draw_note(index, active) else {
            return self.write(index);
        };
        let begun_at = self.accounts.count();
        let mut traced = Traced::start(&self.machine(index).sync(), Reach::Program)?;
        if traced.run_to(step)? {
            // A sync that waits longer would wait forever.
            let notes = Notes::new(self.machine(index).home.clone(), Duration::ZERO);
            if notes.stamp(path).is_some() && self.edit_note(index, &notes, path, change)? {
                self.did("edit during a sync");
            }
        }
        let ended = traced.finish()?;
        self.check_sync(index, begun_at, &ended);
        Ok(())
    }

    fn sync_together(&mut self, index: usize) -> Result {
        let other = (index + 1) % NAMES.len();
        let one = self.machine(index).sync().spawn()?;
        let two = self.machine(other).sync().output()?;
        let one = one.wait_with_output()?;
        let begun_at = self.accounts.count();
        self.check_sync(index, begun_at, &one.into());
        self.check_sync(other, begun_at, &two.into());
        Ok(())
    }

    fn replace(&mut self, index: usize) -> Result {
        self.did("new machine");
        self.accounts.lost(index);
        self.removed
            .retain(|removed| removed.is_sent || removed.by != index);
        self.fleet.machines[index].replace()?;
        self.sync(index)
    }

    fn fault(&mut self, index: usize, what: &str) {
        self.faults
            .push(format!("step {}, {}: {what}", self.serial, NAMES[index]));
    }
}
