//! Synchronizes through a git remote: commit, fetch, join, write files, push.
//!
//! The network is used under the sync lock only. Files and references are written under the notes
//! lock. The next run finishes a killed one: uncommitted changes are still in the folder, unpushed
//! commits are in the branch.

use std::{cell::RefCell, collections::BTreeSet, fs, thread, time::Duration};

use anamnesis_note::{id::NoteId, note::Scope};
use anamnesis_store::{
    fs::{home::Home, lock::Lock},
    notes::Notes,
};
use anamnesis_text::private_tokens::PrivateTokens;
use git2::{Commit, Tree};
use ulid::Ulid;

use crate::{
    backend::{HeldDecision, Reached, Settings, State, Synced},
    damage::{self, SetAside},
    error::Error,
    git::{Fetched, Git, INCOMING, Pushed},
    git_folder::LOOSE_OBJECTS,
    layout,
    purge::{Purge, PurgeMarks, Purged, Rewriting},
    remote::Remote,
    repository::{Repository, SyncLock},
    sync_run::Run,
    tree::{Changes, is_tombstone},
};

/// How often a push is tried if other machines push first.
const MAX_TRIES: usize = 6;

/// The longest wait per previous try, in milliseconds.
const WAIT_STEP_MS: u64 = 150;

/// Writes the marks of a purge.
pub type RecordPurge<'a> =
    dyn FnMut(&PurgeMarks) -> Result<(), Box<dyn std::error::Error + Send + Sync>> + 'a;

/// Synchronizes the notes of a store through git.
pub struct GitBackend<'a> {
    pub(crate) home: &'a Home,
    pub(crate) notes: &'a Notes,
    pub(crate) settings: Settings,
    set_aside: RefCell<Option<SetAside>>,
    pub(crate) changed: RefCell<BTreeSet<NoteId>>,
    pub(crate) purged: PrivateTokens,
    on_step: Box<dyn Fn(&'static str) + 'a>,
}

impl<'a> GitBackend<'a> {
    /// Creates a backend for the notes of a store.
    pub fn new(home: &'a Home, notes: &'a Notes, settings: Settings) -> Self {
        Self {
            home,
            notes,
            settings,
            set_aside: RefCell::default(),
            changed: RefCell::default(),
            purged: PrivateTokens::default(),
            on_step: Box::new(|_| ()),
        }
    }

    /// Recognises texts that were purged here, if another machine brings them back.
    #[must_use]
    pub fn recognising(self, purged: PrivateTokens) -> Self {
        Self { purged, ..self }
    }

    /// Calls a function with each step of a sync, in words, when it begins. A push that loses a race
    /// begins again with the fetch.
    #[must_use]
    pub fn on_step(self, on_step: impl Fn(&'static str) + 'a) -> Self {
        Self {
            on_step: Box::new(on_step),
            ..self
        }
    }

    /// Returns the damaged repository that this backend has set aside, if any.
    pub fn set_aside(&self) -> Option<SetAside> {
        self.set_aside.borrow().clone()
    }

    /// Returns the notes whose files this backend has written or removed, also before an error.
    pub fn changed(&self) -> BTreeSet<NoteId> {
        self.changed.borrow().clone()
    }

    /// Commits the changes in the folder, without the network.
    pub fn commit(&self) -> Result<Synced, Error> {
        let held = self.hold()?;
        self.retry_after_damage(&held, || self.commit_held(&held))
    }

    /// Checks the whole repository and returns whether it was damaged. A damaged one is set aside,
    /// and the notes are committed to a new one.
    pub fn repair(&self) -> Result<bool, Error> {
        let held = self.hold()?;
        let is_damaged = self.set_damaged_aside(&held)?;
        if is_damaged {
            self.commit_held(&held)?;
        }
        Ok(is_damaged)
    }

    /// Runs a step. If the repository is damaged, sets it aside and runs the step again.
    fn retry_after_damage<T>(
        &self,
        held: &SyncLock,
        mut step: impl FnMut() -> Result<T, Error>,
    ) -> Result<T, Error> {
        match step() {
            Err(error) if error.may_be_damage() => {
                if self.set_damaged_aside(held)? {
                    step()
                } else {
                    Err(error)
                }
            }
            result => result,
        }
    }

    /// Sets the repository aside if it is damaged; returns whether it was.
    fn set_damaged_aside(&self, _held: &SyncLock) -> Result<bool, Error> {
        let now = self.settings.now;
        let Some(reason) = damage::find(self.home, &self.settings.machine_id, now)? else {
            return Ok(false);
        };
        let aside = damage::set_aside(self.home, self.notes, now, reason)?;
        self.set_aside.replace(Some(aside));
        Ok(true)
    }

    fn commit_held(&self, held: &SyncLock) -> Result<Synced, Error> {
        let lock = self.notes.lock()?;
        let repository = self.open(&lock)?;
        repository.recover(&lock, self.notes)?;
        drop(lock);
        let mut run = Run::new(self, repository);
        run.commit_folder(held)?;
        self.tidy(&run.repository, held);
        run.synced("committed locally")
    }

    /// Removes notes, or a text, from the files and from history, here and in the remote.
    ///
    /// Files are changed first, then the remote, then the local history. `write_record` has to
    /// write the marks of its argument; it is called again if more is found.
    ///
    /// # Errors
    /// Files may already be changed. Remote and local history are unchanged, or the next sync
    /// finishes the purge. [`Error::Held`] if the person has to decide about a sync first.
    pub fn purge(
        &self,
        purge: &Purge,
        write_record: &mut RecordPurge<'_>,
    ) -> Result<Purged, Error> {
        let place = self.hold()?;
        self.retry_after_damage(&place, || self.purge_held(&place, purge, write_record))
    }

    fn purge_held(
        &self,
        place: &SyncLock,
        purge: &Purge,
        write_record: &mut RecordPurge<'_>,
    ) -> Result<Purged, Error> {
        let mut run = self.begin()?;
        let git = self.git(&run.repository, place)?;
        let mut purged = Purged::default();
        let mut last = String::new();
        for round in 1..=MAX_TRIES {
            run.commit_folder(place)?;
            if let Some(remote) = &self.settings.remote {
                fetch(&git, remote, &run.repository)?;
                run.join_incoming()?;
            }
            if run.synced.held.is_some() {
                return Err(Error::Held);
            }
            run.clean(purge)?;
            run.commit_folder(place)?;
            let Some(tip) = run.repository.head()?.map(|commit| commit.id()) else {
                // The branch has no commit.
                purged.what.gone.clone_from(&purge.ids);
                return Ok(purged);
            };
            let tip = match &self.settings.remote {
                Some(_) => run.without_withheld(tip)?,
                None => tip,
            };
            let mut rewriting = Rewriting::new(&run.repository, purge);
            rewriting.rewrite(tip)?;
            let found = std::mem::take(&mut rewriting.found).into_iter();
            drop(rewriting);
            let (gone, masked): (BTreeSet<NoteId>, BTreeSet<NoteId>) =
                found.partition(|id| purge.ids.contains(id));
            let gone = gone.union(&purge.ids).copied().collect();
            let what = PurgeMarks { gone, masked };
            if what != purged.what {
                write_record(&what).map_err(Error::NoRecord)?;
                purged.what = what;
                run.commit_folder(place)?;
            }
            let Some(tip) = run.repository.head()?.map(|commit| commit.id()) else {
                continue;
            };
            let new = run.rewrite(purge, tip, &mut purged)?;
            match run.replace(&git, tip, new)? {
                Pushed::Done => {
                    purged.pushed = self.settings.remote.is_some();
                    run.finish_purge(&git, &mut purged)?;
                    return Ok(purged);
                }
                Pushed::Rejected { reason } => last = reason,
            }
            wait_random(round);
        }
        Err(Error::TooBusy {
            tries: MAX_TRIES,
            reason: last,
        })
    }

    /// Removes old objects that a killed purge left on the disk.
    pub fn finish_purge(&self) -> Result<(), Error> {
        let place = self.hold()?;
        self.retry_after_damage(&place, || self.finish_held(&place))
    }

    fn finish_held(&self, place: &SyncLock) -> Result<(), Error> {
        let lock = self.notes.lock()?;
        match self.existing()?.filter(Repository::is_pruning) {
            Some(mut repository) => {
                repository.recover(&lock, self.notes)?;
                repository.prune(&self.git(&repository, place)?).map(drop)
            }
            None => Ok(()),
        }
    }

    fn open(&self, lock: &Lock) -> Result<Repository, Error> {
        let settings = &self.settings;
        Repository::open_or_create(self.home, lock, &settings.machine_id, settings.now)
    }

    fn existing(&self) -> Result<Option<Repository>, Error> {
        Repository::open(self.home, &self.settings.machine_id, self.settings.now)
    }

    /// Opens the repository, completes what a killed process began, and sets the remote.
    fn begin(&self) -> Result<Run<'_>, Error> {
        let lock = self.notes.lock()?;
        let mut run = Run::new(self, self.open(&lock)?);
        let recovered = run.repository.recover(&lock, self.notes)?;
        run.record_in_index(recovered);
        if self.settings.answer.restores() {
            let restored = run.repository.restore_missing(&lock, self.notes)?;
            run.record_in_index(restored);
        }
        if let Some(remote) = &self.settings.remote {
            run.repository.set_remote(&lock, remote.as_str())?;
        }
        Ok(run)
    }

    /// Takes the sync lock.
    fn hold(&self) -> Result<SyncLock, Error> {
        SyncLock::acquire(self.home, self.settings.timeout)
    }

    /// Lets git pack the repository if it has many loose objects. Without git they stay.
    fn tidy(&self, repository: &Repository, held: &SyncLock) {
        // git's own estimate: object names are spread evenly over 256 folders.
        let folder = repository.git_folder().join("objects").join("17");
        let some = fs::read_dir(folder).into_iter().flatten().count();
        if some * 256 > LOOSE_OBJECTS
            && let Ok(git) = self.git(repository, held)
        {
            let _ = repository.pack(&git, held);
        }
    }

    /// Returns the user's git for this repository. It holds the sync lock while it runs.
    fn git(&self, repository: &Repository, held: &SyncLock) -> Result<Git, Error> {
        let handle = held.0.handle().map_err(Error::io(&self.home.derived()))?;
        let environment = self.settings.environment.clone();
        let limit = self.settings.time_limit;
        let git = Git::new(environment, repository.git_folder(), limit)?;
        Ok(git.hold(handle))
    }
}

impl GitBackend<'_> {
    /// Creates the repository of the notes if there is none, and inspects the remote if one is set.
    /// Joins nothing and changes no note.
    ///
    /// # Errors
    /// If the remote cannot be reached, does not hold notes, or has a newer format.
    pub fn init(&self) -> Result<Reached, Error> {
        let held = self.hold()?;
        self.retry_after_damage(&held, || self.init_held(&held))
    }

    /// Commits local changes, joins remote changes, and pushes the result.
    ///
    /// # Errors
    /// If a step fails. No note is lost; the next run continues.
    pub fn sync(&self) -> Result<Synced, Error> {
        let held = self.hold()?;
        self.retry_after_damage(&held, || self.sync_held(&held))
    }

    /// Returns the state of the synchronization, without the network.
    ///
    /// # Errors
    /// If the repository cannot be read.
    pub fn state(&self) -> Result<State, Error> {
        let mut state = State {
            remote: self.settings.remote.as_ref().map(ToString::to_string),
            ..State::default()
        };
        let Some(repository) = self.existing()? else {
            return Ok(state);
        };
        state.initialized = true;
        state.head = repository.short_head()?;
        state.dirty = repository.is_dirty(self.notes)?;
        if let (Some(head), Some(_)) = (repository.head()?, &self.settings.remote) {
            let joined = repository.joined()?;
            state.ahead = repository.count_since(head.id(), joined.as_ref().map(Commit::id))?;
            let there = joined.as_ref().map(Commit::tree).transpose()?;
            let here = head.tree()?;
            let waiting = Changes::between(&repository.git, there.as_ref(), Some(&here))?;
            state.waiting = waiting.notes.len();
        }
        Ok(state)
    }

    fn init_held(&self, held: &SyncLock) -> Result<Reached, Error> {
        let repository = self.begin()?.repository;
        let here = self.notes.list_scope(Scope::Portable).notes.into_iter();
        let here: BTreeSet<NoteId> = here
            .filter(|(path, _)| !self.notes.is_forgotten(*path))
            .map(|(path, _)| path.id)
            .collect();
        let mut reached = Reached {
            has_remote: self.settings.remote.is_some(),
            notes_here: here.len(),
            together: here.len(),
            ..Reached::default()
        };
        let Some(remote) = &self.settings.remote else {
            return Ok(reached);
        };
        let git = self.git(&repository, held)?;
        if !fetch(&git, remote, &repository)? {
            return Ok(reached);
        }
        let Some(tip) = repository.tip(INCOMING)? else {
            return Ok(reached);
        };
        let tree = tip.tree()?;
        layout::check_remote(&repository.git, &tree)?;
        let there = live_notes(&repository, &tree)?;
        reached.notes_there = there.len();
        reached.together = there.union(&here).count();
        reached.deleted_there = deleted_there(&repository, &tip, &here, &there)?;
        reached.machines = repository.machines(Some(tip.id()))?;
        reached
            .machines
            .retain(|machine| *machine != self.settings.machine_id);
        Ok(reached)
    }

    fn sync_held(&self, held: &SyncLock) -> Result<Synced, Error> {
        (self.on_step)("committing the changes of this machine");
        let mut run = self.begin()?;
        run.commit_folder(held)?;
        self.tidy(&run.repository, held);
        let Some(remote) = &self.settings.remote else {
            let detail = match (run.committed, run.repository.head()?.is_some()) {
                (0, false) => "nothing to commit yet",
                (0, true) => "nothing to commit; no remote configured",
                _ => "committed locally; no remote configured",
            };
            return run.synced(detail);
        };
        let git = self.git(&run.repository, held)?;
        let mut last = String::new();
        for round in 1..=MAX_TRIES {
            (self.on_step)("fetching from the remote");
            if fetch(&git, remote, &run.repository)? {
                (self.on_step)("joining with the changes of other machines");
                if !run.join_incoming()? {
                    return run.synced("held back; see status");
                }
            }
            run.mark(held)?;
            let Some(tip) = run.repository.head()?.map(|commit| commit.id()) else {
                return run.synced("nothing to commit yet");
            };
            let outgoing = run.outgoing(tip)?;
            if !run.is_pushed(outgoing.commit)? {
                (self.on_step)("pushing to the remote");
                // By its id: what a command commits meanwhile is not checked yet.
                let commit = outgoing.commit.to_string();
                if let Pushed::Rejected { reason } = git.push_from(&commit, remote, None)? {
                    last = reason;
                    wait_random(round);
                    continue;
                }
                run.synced.sent = true;
            }
            run.pushed(outgoing.commit)?;
            if outgoing.commit != tip {
                run.settle(tip, &outgoing)?;
            }
            run.prune(&git);
            return run.synced("synced");
        }
        Err(Error::TooBusy {
            tries: MAX_TRIES,
            reason: last,
        })
    }
}

/// Waits for a random time, so that machines do not collide again.
fn wait_random(round: usize) {
    let random = Ulid::generate().random();
    let most = WAIT_STEP_MS * u64::try_from(round).unwrap_or(1);
    let wait = u64::try_from(random % u128::from(most)).unwrap_or(0);
    thread::sleep(Duration::from_millis(wait));
}

/// Fetches; returns whether the remote has a branch of notes.
fn fetch(git: &Git, remote: &Remote, repository: &Repository) -> Result<bool, Error> {
    match git.fetch(remote)? {
        Fetched::Main => Ok(true),
        Fetched::Empty => {
            // The fetched branch of another remote is not this remote's.
            if let Ok(mut old) = repository.git.find_reference(INCOMING) {
                old.delete()?;
            }
            Ok(false)
        }
        Fetched::NoMain { branches } => Err(Error::NotOurs(format!(
            "no branch \"main\" but {}",
            branches.join(", ")
        ))),
    }
}

/// Returns how many notes of this machine a fetched commit deleted or forgot since the last join.
fn deleted_there(
    repository: &Repository,
    incoming: &Commit<'_>,
    here: &BTreeSet<NoteId>,
    there: &BTreeSet<NoteId>,
) -> Result<usize, Error> {
    let head = repository.head()?;
    let Some(start) = repository.join_start(head.as_ref(), incoming, HeldDecision::None)? else {
        // A rewritten history is held back, so it deletes nothing.
        return Ok(0);
    };
    let base = start.base.as_ref().map(Commit::tree).transpose()?;
    let changes = Changes::between(&repository.git, base.as_ref(), Some(&incoming.tree()?))?;
    let is_deleted = |id: &&NoteId| changes.notes.contains_key(id) && !there.contains(id);
    Ok(here.iter().filter(is_deleted).count())
}

/// Returns the notes of a tree without tombstones.
fn live_notes(repository: &Repository, tree: &Tree<'_>) -> Result<BTreeSet<NoteId>, Error> {
    let contents = Changes::between(&repository.git, None, Some(tree))?;
    let mut living = BTreeSet::new();
    for (id, change) in contents.notes {
        let Some((_, oid)) = change.new else { continue };
        if !is_tombstone(&repository.read(oid)?, id) {
            living.insert(id);
        }
    }
    Ok(living)
}
