//! Synchronizing through a git remote: commit, fetch, join, bring the files there, push.
//!
//! The network is used under the sync lock alone; files and references are written under the notes
//! lock, which is held for as long as that takes. A run that is killed at any point is finished by the
//! next one: what was not committed still lies in the folder, what was not pushed is in the branch.

use std::{cell::RefCell, collections::BTreeSet, fs, thread, time::Duration};

use anamnesis_note::{
    id::NoteId,
    note::{NoteFile, Scope, State},
};
use anamnesis_store::{
    fs::{
        file,
        home::Home,
        lock::{self, Lock, Subject},
    },
    index::Index,
    notes::{Notes, Problem},
    purge,
};
use chrono::{DateTime, Utc};
use git2::{Commit, Oid, Tree};
use ulid::Ulid;

use crate::{
    backend::{Held, Reached, State as Standing, SyncBackend, Synced},
    damage::{self, SetAside},
    error::Error,
    git::{Fetched, Git, GitEnvironment, INCOMING, Pushed},
    history::machine_of,
    join::{self, Side},
    layout,
    purge::{PURGED, Purge, Purged, Record, Rewriting},
    remote::Remote,
    repository::{Act, Applied, JOINED, LOOSE_OBJECTS, Repository, SyncLock},
    tree::{self, Changes, LAYOUT},
};

/// How often a push is tried again because somebody else was faster.
const MAX_TRIES: usize = 6;

/// The longest wait before the next try, in milliseconds, for each try before it.
const JITTER: u64 = 150;

/// How long the index is waited for; a refresh takes up what it misses.
const INDEX_PATIENCE: Duration = Duration::from_secs(2);

/// What a person has said about what was held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Answer {
    /// Nothing yet: it stays held back.
    #[default]
    None,
    /// It is meant: take it.
    Accept,
    /// It is not: bring everything back, here and in the remote.
    Restore,
}

/// What a backend works with.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The name of this machine in commits.
    pub machine_id: String,
    /// The remote, if one is set.
    pub remote: Option<Remote>,
    /// What the user's git may see of the environment.
    pub environment: GitEnvironment,
    /// The time that counts as now.
    pub now: DateTime<Utc>,
    /// How long another sync is waited for.
    pub patience: Duration,
    /// How long one call of git may take.
    pub time_limit: Duration,
    /// What the person has said.
    pub answer: Answer,
    /// The id of this installation, whose receipts are sent; without one none are.
    pub installation: Option<String>,
}

/// Writes into the receipts what a purge takes away.
pub type RecordPurge<'a> = dyn FnMut(&Record) -> Result<(), String> + 'a;

/// Synchronizes the notes of a store through git.
#[derive(Debug)]
pub struct GitBackend<'a> {
    home: &'a Home,
    notes: &'a Notes,
    settings: Settings,
    set_aside: RefCell<Option<SetAside>>,
}

impl<'a> GitBackend<'a> {
    /// A backend for the notes of a store.
    pub fn new(home: &'a Home, notes: &'a Notes, settings: Settings) -> Self {
        Self {
            home,
            notes,
            settings,
            set_aside: RefCell::default(),
        }
    }

    /// The damaged repository that this backend has set aside, if any.
    pub fn set_aside(&self) -> Option<SetAside> {
        self.set_aside.borrow().clone()
    }

    /// Commits what lies in the folder, without the network.
    ///
    /// # Errors
    /// When the repository or a file cannot be read or written.
    pub fn commit(&self) -> Result<Synced, Error> {
        let held = self.hold()?;
        self.going_on(&held, || self.commit_held(&held))
    }

    /// Checks everything in the repository. A damaged one is set aside, and the notes are committed to
    /// a new one. Returns whether it was damaged.
    ///
    /// # Errors
    /// When it cannot be read or set aside, or the notes cannot be committed.
    pub fn repair(&self) -> Result<bool, Error> {
        let held = self.hold()?;
        let is_damaged = self.set_damaged_aside(&held)?;
        if is_damaged {
            self.commit_held(&held)?;
        }
        Ok(is_damaged)
    }

    /// Runs a step. If it fails because the repository is damaged, sets that aside and runs it again.
    fn going_on<T>(
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
        let Settings {
            machine_id, now, ..
        } = &self.settings;
        let Some(reason) = damage::find(self.home, machine_id, *now)? else {
            return Ok(false);
        };
        let aside = damage::set_aside(self.home, self.notes, *now, reason)?;
        self.set_aside.replace(Some(aside));
        Ok(true)
    }

    fn commit_held(&self, held: &SyncLock) -> Result<Synced, Error> {
        let repository = {
            let lock = self.notes.lock()?;
            let repository = self.open(&lock)?;
            repository.heal(&lock, self.notes)?;
            repository
        };
        let mut run = Run::new(self, repository);
        run.gather(held)?;
        self.tidy(&run.repository, held);
        run.synced("committed locally")
    }

    /// Takes notes, or a text, out of the files of notes and out of history, here and in the remote.
    ///
    /// The files come first, then the remote, then the repository here. `write_record` has to
    /// write into the receipts what it is told; it is called again when more is found.
    ///
    /// # Errors
    /// When the remote cannot be reached, something waits for the person, or a step fails. Files may
    /// have been changed then; the remote and the history here are as before, or the next sync
    /// finishes what is begun.
    pub fn purge(
        &self,
        purge: &Purge,
        write_record: &mut RecordPurge<'_>,
    ) -> Result<Purged, Error> {
        let place = self.hold()?;
        self.going_on(&place, || self.purge_held(&place, purge, write_record))
    }

    fn purge_held(
        &self,
        place: &SyncLock,
        purge: &Purge,
        write_record: &mut RecordPurge<'_>,
    ) -> Result<Purged, Error> {
        let mut run = {
            let lock = self.notes.lock()?;
            let repository = self.open(&lock)?;
            let mut run = Run::new(self, repository);
            let healed = run.repository.heal(&lock, self.notes)?;
            run.take_up(healed);
            if let Some(remote) = &self.settings.remote {
                run.repository.set_remote(&lock, remote.as_str())?;
            }
            run
        };
        let git = self.git(&run.repository, place)?;
        let mut purged = Purged::default();
        let mut last = String::new();
        for round in 1..=MAX_TRIES {
            run.gather(place)?;
            if let Some(remote) = &self.settings.remote {
                fetch(&git, remote, &run.repository)?;
                run.integrate()?;
            }
            if run.held.is_some() {
                return Err(Error::Held);
            }
            run.clean(purge)?;
            run.gather(place)?;
            let Some(tip) = run.repository.head()?.map(|commit| commit.id()) else {
                // Nothing was ever committed.
                purged.what.gone.clone_from(&purge.ids);
                return Ok(purged);
            };
            let mut rewriting = Rewriting::new(&run.repository, purge);
            rewriting.of(tip)?;
            let found = std::mem::take(&mut rewriting.found).into_iter();
            drop(rewriting);
            let (gone, masked): (BTreeSet<NoteId>, BTreeSet<NoteId>) =
                found.partition(|id| purge.ids.contains(id));
            let gone = gone.union(&purge.ids).copied().collect();
            let what = Record { gone, masked };
            if what != purged.what {
                write_record(&what).map_err(Error::NoRecord)?;
                purged.what = what;
                run.gather(place)?;
            }
            let Some(tip) = run.repository.head()?.map(|commit| commit.id()) else {
                continue;
            };
            let new = run.rewrite(purge, tip, &mut purged)?;
            match run.replace(&git, tip, new)? {
                Ok(()) => {
                    purged.pushed = self.settings.remote.is_some();
                    run.finish_purge(&git, &mut purged)?;
                    return Ok(purged);
                }
                Err(reason) => last = reason,
            }
            pause(round);
        }
        Err(Error::TooBusy {
            tries: MAX_TRIES,
            reason: last,
        })
    }

    /// Drops from the disk what a purge that was killed has left of an old history.
    ///
    /// # Errors
    /// When git fails; something may be left then.
    pub fn finish_purge(&self) -> Result<(), Error> {
        let place = self.hold()?;
        self.going_on(&place, || self.finish_held(&place))
    }

    fn finish_held(&self, place: &SyncLock) -> Result<(), Error> {
        let lock = self.notes.lock()?;
        let Settings {
            machine_id, now, ..
        } = &self.settings;
        let repository = Repository::open(self.home, machine_id, *now)?;
        match repository.filter(Repository::is_pruning) {
            Some(repository) => {
                repository.heal(&lock, self.notes)?;
                repository.prune(&self.git(&repository, place)?)
            }
            None => Ok(()),
        }
    }

    fn open(&self, lock: &Lock) -> Result<Repository, Error> {
        let Settings {
            machine_id, now, ..
        } = &self.settings;
        Repository::open_or_create(self.home, lock, machine_id, *now)
    }

    /// Takes the place of the one sync of this store.
    fn hold(&self) -> Result<SyncLock, Error> {
        self.home.create()?;
        let lock = lock::acquire(self.home, Subject::Sync, self.settings.patience);
        let lock = lock.map_err(Error::io(&self.home.derived()))?;
        lock.map(SyncLock).ok_or(Error::Busy)
    }

    /// Has git pack the repository when small objects pile up. Without git they stay as they are.
    fn tidy(&self, repository: &Repository, held: &SyncLock) {
        // As git estimates it: the names of objects are spread evenly over 256 folders.
        let folder = repository.git_folder().join("objects").join("17");
        let some = fs::read_dir(folder).into_iter().flatten().count();
        if some * 256 > LOOSE_OBJECTS
            && let Ok(git) = self.git(repository, held)
        {
            let _ = repository.pack(&git, held);
        }
    }

    /// The user's git, on this repository. It keeps the sync lock as long as it runs.
    fn git(&self, repository: &Repository, held: &SyncLock) -> Result<Git, Error> {
        let handle = held.0.handle().map_err(Error::io(&self.home.derived()))?;
        let environment = self.settings.environment.clone();
        let limit = self.settings.time_limit;
        let git = Git::new(environment, repository.git_folder(), limit)?;
        Ok(git.hold(handle))
    }
}

impl SyncBackend for GitBackend<'_> {
    type Error = Error;

    fn init(&self) -> Result<Reached, Error> {
        let held = self.hold()?;
        self.going_on(&held, || self.init_held(&held))
    }

    fn sync(&self) -> Result<Synced, Error> {
        let held = self.hold()?;
        self.going_on(&held, || self.sync_held(&held))
    }

    fn state(&self) -> Result<Standing, Error> {
        let Settings {
            machine_id, now, ..
        } = &self.settings;
        let mut standing = Standing {
            remote: self.settings.remote.as_ref().map(ToString::to_string),
            ..Standing::default()
        };
        let Some(repository) = Repository::open(self.home, machine_id, *now)? else {
            return Ok(standing);
        };
        standing.initialized = true;
        standing.head = repository.short_head()?;
        standing.dirty = repository.is_dirty(self.notes, self.settings.installation.as_deref())?;
        if let (Some(head), Some(_)) = (repository.head()?, &self.settings.remote) {
            let joined = repository.joined()?;
            standing.ahead = repository.count_since(head.id(), joined.as_ref().map(Commit::id))?;
            let there = joined.as_ref().map(Commit::tree).transpose()?;
            let here = head.tree()?;
            let waiting = Changes::between(&repository.git, there.as_ref(), Some(&here))?;
            standing.waiting = waiting.notes.len();
        }
        Ok(standing)
    }
}

impl GitBackend<'_> {
    fn init_held(&self, held: &SyncLock) -> Result<Reached, Error> {
        let (repository, here) = {
            let lock = self.notes.lock()?;
            let repository = self.open(&lock)?;
            repository.heal(&lock, self.notes)?;
            if let Some(remote) = &self.settings.remote {
                repository.set_remote(&lock, remote.as_str())?;
            }
            (repository, self.notes.list_scope(Scope::Portable))
        };
        let here: BTreeSet<NoteId> = here
            .notes
            .iter()
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
        let there = living(&repository, &tree)?;
        reached.notes_there = there.len();
        reached.together = there.union(&here).count();
        reached.machines = repository.machines(&tip)?;
        reached
            .machines
            .retain(|machine| *machine != self.settings.machine_id);
        Ok(reached)
    }

    fn sync_held(&self, held: &SyncLock) -> Result<Synced, Error> {
        let mut run = {
            let lock = self.notes.lock()?;
            let repository = self.open(&lock)?;
            let mut run = Run::new(self, repository);
            let healed = run.repository.heal(&lock, self.notes)?;
            run.take_up(healed);
            if self.settings.answer == Answer::Restore {
                let restored = run.repository.restore_missing(&lock, self.notes)?;
                run.take_up(restored);
            }
            if let Some(remote) = &self.settings.remote {
                run.repository.set_remote(&lock, remote.as_str())?;
            }
            run
        };
        run.gather(held)?;
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
            if fetch(&git, remote, &run.repository)? && !run.integrate()? {
                return run.synced("held back; see status");
            }
            run.mark(held)?;
            let Some(tip) = run.repository.head()?.map(|commit| commit.id()) else {
                return run.synced("nothing to commit yet");
            };
            if run.is_pushed(tip)? {
                run.pushed(tip)?;
                run.prune(&git);
                return run.synced("synced");
            }
            match git.push(remote, None)? {
                Pushed::Done => {
                    run.pushed(tip)?;
                    run.prune(&git);
                    return run.synced("synced");
                }
                Pushed::Rejected { reason } => last = reason,
            }
            pause(round);
        }
        Err(Error::TooBusy {
            tries: MAX_TRIES,
            reason: last,
        })
    }
}

/// Waits for a moment that is another one for each machine.
fn pause(round: usize) {
    let random = Ulid::generate().random();
    let most = JITTER * u64::try_from(round).unwrap_or(1);
    let wait = u64::try_from(random % u128::from(most)).unwrap_or(0);
    thread::sleep(Duration::from_millis(wait));
}

/// Fetches; tells whether the remote has a branch of notes.
fn fetch(git: &Git, remote: &Remote, repository: &Repository) -> Result<bool, Error> {
    match git.fetch(remote)? {
        Fetched::Main => Ok(true),
        Fetched::Empty => {
            // What was fetched from another remote is not this one's.
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

/// The notes of a tree, tombstones aside.
fn living(repository: &Repository, tree: &Tree<'_>) -> Result<BTreeSet<NoteId>, Error> {
    let contents = Changes::between(&repository.git, None, Some(tree))?;
    let mut living = BTreeSet::new();
    for (id, change) in contents.notes {
        let Some((_, oid)) = change.new else { continue };
        let file = NoteFile::parse(&repository.read(oid)?, id);
        if !file.is_ok_and(|file| file.note().state == State::Forgotten) {
            living.insert(id);
        }
    }
    Ok(living)
}

/// One run of a sync.
struct Run<'a> {
    backend: &'a GitBackend<'a>,
    repository: Repository,
    committed: usize,
    pulled: usize,
    conflicts: usize,
    is_in_step: bool,
    changed: BTreeSet<NoteId>,
    problems: Vec<Problem>,
    held: Option<Held>,
}

impl<'a> Run<'a> {
    fn new(backend: &'a GitBackend<'a>, repository: Repository) -> Self {
        Self {
            backend,
            repository,
            committed: 0,
            pulled: 0,
            conflicts: 0,
            is_in_step: false,
            changed: BTreeSet::new(),
            problems: Vec::new(),
            held: None,
        }
    }

    /// Commits what lies in the folder.
    fn gather(&mut self, held: &SyncLock) -> Result<(), Error> {
        let may_delete = self.backend.settings.answer == Answer::Accept;
        let installation = self.backend.settings.installation.as_deref();
        let gathered =
            self.repository
                .commit_all(held, self.backend.notes, installation, may_delete)?;
        self.committed += gathered.commits;
        for problem in gathered.problems {
            if !self.problems.contains(&problem) {
                self.problems.push(problem);
            }
        }
        if let Some((gone, of)) = gathered.held_back {
            self.held = Some(Held::LocalMassDeletion { gone, of });
        }
        Ok(())
    }

    /// Joins what was fetched; `false` when it is held back.
    fn integrate(&mut self) -> Result<bool, Error> {
        loop {
            let Some(joined) = self.join()? else {
                return Ok(self.held.is_none() || self.is_local_hold());
            };
            let lock = self.backend.notes.lock()?;
            // A command may have committed while the join was computed.
            if self.repository.head()?.map(|head| head.id()) != joined.head {
                continue;
            }
            for (id, bytes) in &joined.unreadable {
                self.repository.quarantine(*id, bytes)?;
            }
            for proposal in &joined.proposals {
                Repository::propose(&lock, self.backend.notes, Some(proposal))?;
                self.changed.insert(proposal.id);
            }
            if let Some(record) = &joined.purged {
                self.repository.begin_pruning()?;
                let home = self.backend.home;
                purge::drop_copies(home, &lock, self.backend.notes, &record.gone)?;
            }
            let applied = self
                .repository
                .bring_to(&lock, self.backend.notes, joined.commit)?;
            self.repository.set_joined(&lock, joined.incoming)?;
            drop(lock);
            self.take_up(applied);
            self.pulled += joined.pulled;
            self.conflicts += joined.conflicts;
            for problem in joined.problems {
                if !self.problems.contains(&problem) {
                    self.problems.push(problem);
                }
            }
            return Ok(true);
        }
    }

    /// What was held back here does not keep the rest from being joined and pushed.
    fn is_local_hold(&self) -> bool {
        matches!(self.held, Some(Held::LocalMassDeletion { .. }))
    }

    /// Computes the commit that has both sides; `None` when there is nothing to join, or it is held.
    fn join(&mut self) -> Result<Option<Target>, Error> {
        let repository = &self.repository;
        let answer = self.backend.settings.answer;
        let Some(incoming) = repository.tip(INCOMING)? else {
            return Ok(None);
        };
        let head = repository.head()?;
        let joined = repository.joined()?;
        let is_known = joined.is_some();
        if let Some(head) = &head
            && (head.id() == incoming.id()
                || repository
                    .git
                    .graph_descendant_of(head.id(), incoming.id())?)
        {
            return Ok(None);
        }
        let their_tree = incoming.tree()?;
        let common = match &head {
            Some(head) => repository.merge_base(head.id(), incoming.id())?,
            None => None,
        };
        if common.is_none() {
            layout::check_remote(&repository.git, &their_tree)?;
        } else {
            layout::check_own(&repository.git, Some(&their_tree))?;
        }
        let is_rewritten = match &joined {
            Some(joined) if joined.id() != incoming.id() => !repository
                .git
                .graph_descendant_of(incoming.id(), joined.id())?,
            _ => false,
        };
        // What both sides are compared with, and whether our history goes on.
        let mut base = common
            .map(|oid| repository.git.find_commit(oid))
            .transpose()?;
        let mut goes_on = true;
        let mut purged = None;
        if is_rewritten {
            match answer {
                Answer::Restore => {}
                Answer::Accept | Answer::None => {
                    if let Some(joined) = &joined {
                        purged = repository.purged_between(joined, &incoming)?;
                    }
                    if purged.is_none() && answer == Answer::None {
                        self.held = Some(Held::Rewritten);
                        return Ok(None);
                    }
                    base = joined;
                    goes_on = false;
                }
            }
        }
        if let (None, Some(head)) = (&base, &head) {
            base = repository.former(&incoming, &head.tree()?)?;
        }
        let base_tree = base.as_ref().map(Commit::tree).transpose()?;
        // Which tip was joined last is lost, so a purge there looks like any other change. What it took
        // away must not be pushed again.
        if !is_known && head.is_some() && repository.has_former() && answer != Answer::Restore {
            purged = repository.purged_since(base_tree.as_ref(), &their_tree)?;
            goes_on = purged.is_none();
        }
        if answer == Answer::None {
            let theirs = Changes::between(&repository.git, base_tree.as_ref(), Some(&their_tree))?;
            let mass = join::mass_deletion(repository, base_tree.as_ref(), &theirs)?;
            if let Some((gone, of)) = mass {
                self.held = Some(Held::MassDeletion { gone, of });
                return Ok(None);
            }
        }
        let since = base.as_ref().map(Commit::id);
        let side = |commit| Side {
            base: base_tree.as_ref(),
            since,
            commit,
        };
        let result = repository.join(
            side(head.as_ref()),
            side(Some(&incoming)),
            answer == Answer::Restore,
            purged.as_ref(),
        )?;
        let is_ahead = match &head {
            Some(head) if goes_on => !repository
                .git
                .graph_descendant_of(incoming.id(), head.id())?,
            _ => false,
        };
        let target = if !is_ahead && result.tree == their_tree.id() {
            incoming.id()
        } else {
            let ours = head.as_ref().filter(|_| is_ahead);
            let parents: Vec<&Commit<'_>> = ours.into_iter().chain([&incoming]).collect();
            let act = Act {
                verb: "sync",
                actor: "machine",
            };
            repository.write_commit(result.tree, &parents, act, None)?
        };
        Ok(Some(Target {
            head: head.as_ref().map(Commit::id),
            commit: target,
            incoming: incoming.id(),
            pulled: repository.count_since(incoming.id(), head.map(|head| head.id()))?,
            conflicts: result.siblings + result.proposals.len(),
            proposals: result.proposals,
            unreadable: result.unreadable,
            problems: result.problems,
            purged,
        }))
    }

    /// Puts the marker into a repository that goes to a remote without one.
    fn mark(&mut self, place: &SyncLock) -> Result<(), Error> {
        let head = self.repository.head()?;
        let tree = head.as_ref().map(Commit::tree).transpose()?;
        if tree.is_none_or(|tree| tree.get_name(LAYOUT).is_some()) {
            return Ok(());
        }
        drop(head);
        let path = self.backend.home.tree(Scope::Portable).join(LAYOUT);
        file::write_atomic(&path, layout::text().as_bytes()).map_err(Error::io(&path))?;
        self.gather(place)
    }

    /// Tells whether the remote has a commit for its tip.
    fn is_pushed(&self, head: Oid) -> Result<bool, Error> {
        let there = self.repository.tip(INCOMING)?;
        Ok(there.is_some_and(|tip| tip.id() == head))
    }

    /// Remembers what the remote has now: what the branch was at before the push. A command may have
    /// committed since, and the remote may or may not have that.
    fn pushed(&mut self, head: Oid) -> Result<(), Error> {
        let known = self.repository.tip(JOINED)?.map(|tip| tip.id());
        if known != Some(head) {
            let lock = self.backend.notes.lock()?;
            self.repository.set_joined(&lock, head)?;
        }
        self.is_in_step = true;
        Ok(())
    }

    /// Takes what is to be purged out of the files of the store.
    fn clean(&mut self, what: &Purge) -> Result<(), Error> {
        let GitBackend { home, notes, .. } = self.backend;
        let lock = notes.lock()?;
        let before = notes.folder_times();
        purge::bury(home, &lock, notes, &what.ids, self.backend.settings.now)?;
        let mut ids = what.ids.clone();
        if let Some(needle) = &what.needle {
            let places = purge::mask(home, &lock, notes, needle)?;
            ids.extend(places.notes.iter().map(|path| path.id));
        }
        drop(lock);
        self.take_up(Applied { notes: ids, before });
        Ok(())
    }

    /// Writes the history of a commit anew, with the tombstones of what is gone at its end. No branch
    /// names it yet.
    fn rewrite(&self, what: &Purge, head: Oid, purged: &mut Purged) -> Result<Oid, Error> {
        let repository = &self.repository;
        let mut rewriting = Rewriting::new(repository, what);
        let tip = rewriting.of(head)?;
        purged.commits = rewriting.rewritten;
        let tip = repository.git.find_commit(tip)?;
        let old_tree = repository.git.find_commit(head)?.tree()?;
        let tree = repository.with_tombstones(&tip.tree()?, &old_tree, &what.ids)?;
        if tree == tip.tree_id() {
            return Ok(tip.id());
        }
        let act = Act {
            verb: "purge",
            actor: "person",
        };
        repository.write_commit(tree, &[&tip], act, None)
    }

    /// Puts a rewritten history in the place of the branch, in the remote first; git's words when
    /// somebody was faster.
    fn replace(&mut self, git: &Git, head: Oid, new: Oid) -> Result<Result<(), String>, Error> {
        let notes = self.backend.notes;
        let remote = self.backend.settings.remote.as_ref();
        let there = self.repository.tip(INCOMING)?.map(|tip| tip.id());
        if let (Some(remote), Some(there)) = (remote, there) {
            let lock = notes.lock()?;
            // Where only another git has noted so far what was joined: a push moves that note.
            self.repository.set_joined(&lock, there)?;
            self.repository.point(&lock, PURGED, new)?;
            drop(lock);
            if let Pushed::Rejected { reason } = git.push_from(PURGED, remote, Some(there))? {
                return Ok(Err(reason));
            }
        }
        let lock = notes.lock()?;
        self.repository.begin_pruning()?;
        if there.is_some() {
            self.repository.point(&lock, INCOMING, new)?;
        }
        // A command may have committed while the remote was talked to.
        if self.repository.head()?.map(|tip| tip.id()) != Some(head) {
            drop(lock);
            if there.is_none() {
                return Ok(Err("notes were written meanwhile".to_owned()));
            }
            // The remote is rewritten: from here on this machine is one like any other.
            self.integrate()?;
            return Ok(Ok(()));
        }
        let applied = self.repository.bring_to(&lock, notes, new)?;
        if there.is_some() {
            self.repository.set_joined(&lock, new)?;
        }
        drop(lock);
        self.take_up(applied);
        if let (Some(remote), None) = (remote, there)
            && let Pushed::Rejected { reason } = git.push(remote, None)?
        {
            return Ok(Err(reason));
        }
        if remote.is_some() {
            self.pushed(new)?;
        }
        Ok(Ok(()))
    }

    /// Drops what the old history was made of, here and in a remote that is a folder.
    fn finish_purge(&self, git: &Git, purged: &mut Purged) -> Result<(), Error> {
        let lock = self.backend.notes.lock()?;
        purged.dropped = self.repository.drop_references()?;
        self.repository.prune(git)?;
        drop(lock);
        let Some(remote) = &self.backend.settings.remote else {
            return Ok(());
        };
        purged.remote_left = match remote.folder() {
            Some(folder) => git
                .prune_remote(folder)
                .err()
                .map(|error| error.to_string()),
            None => Some("its host keeps what was replaced until it tidies up".to_owned()),
        };
        Ok(())
    }

    /// Drops what a history was made of that a purge has replaced. The next run does it if this one
    /// cannot.
    fn prune(&mut self, git: &Git) {
        if !self.repository.is_pruning() {
            return;
        }
        let lock = self.backend.notes.lock().map_err(Error::from);
        let pruned = lock.and_then(|_lock| self.repository.prune(git));
        if let Err(error) = pruned {
            self.problems.push(Problem {
                path: "memory/.git".to_owned(),
                reason: format!("what was purged is still in it: {error}"),
            });
        }
    }

    /// Takes up in the index what became of files.
    fn take_up(&mut self, applied: Applied) {
        if applied.notes.is_empty() {
            return;
        }
        let Ok(mut index) = Index::open_if_usable(self.backend.home, INDEX_PATIENCE) else {
            self.changed.extend(applied.notes);
            return;
        };
        // What fails here is taken up by the next refresh: the files are there.
        let _ = index.record_all(self.backend.notes, &applied.notes, applied.before);
        self.changed.extend(applied.notes);
    }

    fn synced(mut self, detail: &str) -> Result<Synced, Error> {
        if let Some(aside) = self.backend.set_aside() {
            let home = self.backend.home;
            self.problems.push(Problem {
                path: "memory/.git".to_owned(),
                reason: aside.told(&home.relative(&aside.folder)),
            });
        }
        let changed = self
            .changed
            .iter()
            .filter_map(|id| self.backend.notes.find(*id));
        let detail = match (&self.held, self.conflicts) {
            (Some(_), _) => "something waits for you; see status".to_owned(),
            (None, 0) => detail.to_owned(),
            (None, 1) => format!("{detail}; 1 conflict kept as a note of its own"),
            (None, many) => format!("{detail}; {many} conflicts kept as notes of their own"),
        };
        Ok(Synced {
            pushed: self.is_in_step,
            pulled: self.pulled,
            conflicts: self.conflicts,
            head: self.repository.short_head()?,
            detail,
            changed: changed.collect(),
            problems: self.problems,
            held: self.held,
        })
    }
}

/// What a join is to be brought to.
struct Target {
    /// The branch's commit that was joined.
    head: Option<Oid>,
    /// Where both are joined.
    commit: Oid,
    incoming: Oid,
    pulled: usize,
    conflicts: usize,
    proposals: Vec<anamnesis_note::merge::Sibling>,
    unreadable: Vec<(NoteId, Vec<u8>)>,
    problems: Vec<Problem>,
    /// What the remote's history was rewritten without.
    purged: Option<Record>,
}

impl Repository {
    /// The commit that two have in common; `None` when they have none.
    fn merge_base(&self, one: Oid, two: Oid) -> Result<Option<Oid>, Error> {
        match self.git.merge_base(one, two) {
            Ok(oid) => Ok(Some(oid)),
            Err(error) if error.code() == git2::ErrorCode::NotFound => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// How many commits one has that another has not.
    fn count_since(&self, commit: Oid, since: Option<Oid>) -> Result<usize, Error> {
        let mut walk = self.git.revwalk()?;
        walk.push(commit)?;
        if let Some(since) = since {
            walk.hide(since)?;
        }
        Ok(walk.count())
    }

    /// The machines that made the commits of the branch, by name.
    ///
    /// # Errors
    /// When an object cannot be read.
    pub fn machines_in_history(&self) -> Result<Vec<String>, Error> {
        match self.head()? {
            Some(head) => self.machines(&head),
            None => Ok(Vec::new()),
        }
    }

    /// The machines that made commits, by name.
    fn machines(&self, tip: &Commit<'_>) -> Result<Vec<String>, Error> {
        let mut walk = self.git.revwalk()?;
        walk.push(tip.id())?;
        let mut machines = BTreeSet::new();
        for oid in walk {
            let commit = self.git.find_commit(oid?)?;
            machines.extend(machine_of(&commit).filter(|machine| tree::is_machine(machine)));
        }
        Ok(machines.into_iter().collect())
    }
}
