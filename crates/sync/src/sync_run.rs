//! One run of a sync: commit, join, write files, rewrite history for a purge.

use std::time::Duration;

use anamnesis_note::note::Scope;
use anamnesis_store::{
    fs::file,
    index::Index,
    notes::Problem,
    purge::{self, MaskedFiles},
};
use git2::{Commit, Oid};

use crate::{
    apply::Applied,
    backend::{Held, HeldDecision, Synced},
    commit::Act,
    error::Error,
    git::{Git, INCOMING, Pushed},
    git_backend::GitBackend,
    join::{self, Joined, Side},
    layout,
    outgoing::Outgoing,
    purge::{PURGED, Purge, PurgeMarks, Purged, Rewriting},
    repository::{JOINED, Repository, SyncLock},
    stage::WITHHELD,
    tree::{Changes, LAYOUT},
};

/// How long to wait for the index. A refresh adds what is missing.
const INDEX_TIMEOUT: Duration = Duration::from_secs(2);

/// One run of a sync.
pub(crate) struct Run<'a> {
    pub(crate) backend: &'a GitBackend<'a>,
    pub(crate) repository: Repository,
    pub(crate) committed: usize,
    /// What has been done so far.
    pub(crate) synced: Synced,
}

impl<'a> Run<'a> {
    pub(crate) fn new(backend: &'a GitBackend<'a>, repository: Repository) -> Self {
        Self {
            backend,
            repository,
            committed: 0,
            synced: Synced::default(),
        }
    }

    fn add_problems(&mut self, problems: Vec<Problem>) {
        for problem in problems {
            if !self.synced.problems.contains(&problem) {
                self.synced.problems.push(problem);
            }
        }
    }

    /// Commits the changes in the folder.
    pub(crate) fn commit_folder(&mut self, held: &SyncLock) -> Result<(), Error> {
        let may_delete = self.backend.settings.answer == HeldDecision::Accept;
        let gathered = self
            .repository
            .commit_all(held, self.backend.notes, may_delete)?;
        self.committed += gathered.commits;
        self.add_problems(gathered.problems);
        if let Some((gone, of)) = gathered.held_back {
            self.synced.held = Some(Held::LocalMassDeletion { gone, of });
        }
        Ok(())
    }

    /// Joins the fetched branch; `false` if it is held back.
    pub(crate) fn join_incoming(&mut self) -> Result<bool, Error> {
        loop {
            let Some(target) = self.join()? else {
                return Ok(self.synced.held.is_none() || self.is_local_hold());
            };
            let lock = self.backend.notes.lock()?;
            // A command may have committed during the join.
            if self.repository.head()?.map(|head| head.id()) != target.head {
                continue;
            }
            for (id, bytes) in &target.joined.unreadable {
                self.repository.quarantine(*id, bytes)?;
            }
            for proposal in &target.joined.proposals {
                Repository::propose(&lock, self.backend.notes, proposal)?;
                self.backend.changed.borrow_mut().insert(proposal.id);
            }
            if let Some(record) = &target.purged {
                self.repository.begin_pruning()?;
                let home = self.backend.home;
                purge::drop_copies(home, &lock, self.backend.notes, &record.gone)?;
            }
            let applied = self
                .repository
                .apply_commit(&lock, self.backend.notes, target.commit)?;
            self.synced.conflicts += applied.proposals;
            self.repository.set_joined(&lock, target.incoming)?;
            let is_purged = target.purged.is_some();
            self.record_in_index(applied);
            drop(lock);
            if is_purged && self.backend.home.index().exists() {
                self.rebuild_index();
            }
            let head = target.head;
            let returned = self
                .repository
                .returned(target.incoming, head, &self.backend.purged)?;
            self.synced.returned.extend(returned);
            self.synced.pulled += target.pulled;
            self.synced.conflicts += target.joined.siblings + target.joined.proposals.len();
            self.add_problems(target.joined.problems);
            return Ok(true);
        }
    }

    /// Returns whether only a local mass deletion is held back. The rest is still joined and
    /// pushed.
    fn is_local_hold(&self) -> bool {
        matches!(self.synced.held, Some(Held::LocalMassDeletion { .. }))
    }

    /// Computes the commit that contains both sides.
    ///
    /// Returns `None` if there is nothing to join or the join is held back.
    fn join(&mut self) -> Result<Option<Target>, Error> {
        let repository = &self.repository;
        let answer = self.backend.settings.answer;
        let Some(incoming) = repository.tip(INCOMING)? else {
            return Ok(None);
        };
        let head = repository.head()?;
        let head_id = head.as_ref().map(Commit::id);
        if repository.is_in_history(incoming.id(), head_id)? {
            return Ok(None);
        }
        let Some(start) = repository.join_start(head.as_ref(), &incoming, answer)? else {
            self.synced.held = Some(Held::Rewritten);
            return Ok(None);
        };
        let their_tree = incoming.tree()?;
        let base_tree = start.base.as_ref().map(Commit::tree).transpose()?;
        let theirs = Changes::between(&repository.git, base_tree.as_ref(), Some(&their_tree))?;
        let gone = join::deletions(repository, &theirs.notes)?;
        let mass = match answer {
            HeldDecision::Accept => None,
            _ => join::mass_deletion(repository, base_tree.as_ref(), &gone, theirs.came())?,
        };
        if let (HeldDecision::None, Some((gone, of))) = (answer, mass) {
            self.synced.held = Some(Held::MassDeletion { gone, of });
            return Ok(None);
        }
        let since = start.base.as_ref().map(Commit::id);
        let side = |commit| Side {
            base: base_tree.as_ref(),
            since,
            commit,
        };
        // Only what was held back is restored.
        let keeps = match mass {
            _ if start.is_undone || answer == HeldDecision::KeepAll => {
                Some(gone.into_keys().collect())
            }
            Some(_) => {
                let (came, side) = (theirs.came(), side(Some(&incoming)));
                Some(join::without_single_ones(repository, gone, came, side)?)
            }
            None => None,
        };
        let (tree, joined) = repository.join(
            side(head.as_ref()),
            side(Some(&incoming)),
            keeps.as_ref(),
            start.purged.as_ref(),
        )?;
        let is_ahead = match &head {
            Some(head) if start.keeps_history => {
                !repository.is_in_history(head.id(), Some(incoming.id()))?
            }
            _ => false,
        };
        let target = if !is_ahead && tree == their_tree.id() {
            incoming.id()
        } else {
            let ours = head.as_ref().filter(|_| is_ahead);
            let parents: Vec<&Commit<'_>> = ours.into_iter().chain([&incoming]).collect();
            let act = Act {
                verb: "sync",
                actor: "machine",
            };
            repository.write_commit(tree, &parents, act, None)?
        };
        Ok(Some(Target {
            head: head_id,
            commit: target,
            incoming: incoming.id(),
            pulled: repository.count_since(incoming.id(), head_id)?,
            joined,
            purged: start.purged,
        }))
    }

    /// Adds the marker to a repository before its first push.
    pub(crate) fn mark(&mut self, place: &SyncLock) -> Result<(), Error> {
        let head = self.repository.head()?;
        let tree = head.as_ref().map(Commit::tree).transpose()?;
        if tree.is_none_or(|tree| tree.get_name(LAYOUT).is_some()) {
            return Ok(());
        }
        drop(head);
        let path = self.backend.home.tree(Scope::Portable).join(LAYOUT);
        file::write_atomic(&path, layout::text().as_bytes()).map_err(Error::io(&path))?;
        self.commit_folder(place)
    }

    /// Returns what to push of the branch's tip. Notes that stay here are problems of the run.
    pub(crate) fn outgoing(&mut self, tip: Oid) -> Result<Outgoing, Error> {
        let outgoing = self.repository.outgoing(tip)?;
        let problems = outgoing.withheld.iter().map(|name| Problem {
            path: format!("memory/{name}"),
            reason: WITHHELD.to_owned(),
        });
        self.add_problems(problems.collect());
        Ok(outgoing)
    }

    /// Returns whether a commit is the remote's tip.
    pub(crate) fn is_pushed(&self, head: Oid) -> Result<bool, Error> {
        let there = self.repository.tip(INCOMING)?;
        Ok(there.is_some_and(|tip| tip.id() == head))
    }

    /// Records the commit that was pushed. The branch may have moved since.
    pub(crate) fn pushed(&mut self, head: Oid) -> Result<(), Error> {
        let known = self.repository.tip(JOINED)?.map(|tip| tip.id());
        if known != Some(head) {
            let lock = self.backend.notes.lock()?;
            self.repository.set_joined(&lock, head)?;
        }
        self.synced.pushed = true;
        Ok(())
    }

    /// Removes purged notes and text from the files.
    pub(crate) fn clean(&mut self, what: &Purge) -> Result<(), Error> {
        let (home, notes) = (self.backend.home, self.backend.notes);
        let lock = notes.lock()?;
        let mut applied = Applied::new(notes);
        purge::bury(home, &lock, notes, &what.ids, self.backend.settings.now)?;
        applied.notes.extend(&what.ids);
        if let Some(needle) = &what.needle {
            let places = purge::mask(home, &lock, needle, MaskedFiles::All)?;
            let masked = places.notes.iter().map(|path| path.id);
            applied.notes.extend(masked);
        }
        self.record_in_index(applied);
        drop(lock);
        Ok(())
    }

    /// Rewrites the history of a commit and adds the tombstones of purged notes. No reference names
    /// the result yet.
    pub(crate) fn rewrite(
        &self,
        what: &Purge,
        head: Oid,
        purged: &mut Purged,
    ) -> Result<Oid, Error> {
        let repository = &self.repository;
        let mut rewriting = Rewriting::new(repository, what);
        let tip = rewriting.rewrite(head)?;
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

    /// Replaces the branch with the rewritten history, in the remote first.
    pub(crate) fn replace(&mut self, git: &Git, head: Oid, new: Oid) -> Result<Pushed, Error> {
        let notes = self.backend.notes;
        let remote = self.backend.settings.remote.as_ref();
        let there = self.repository.tip(INCOMING)?.map(|tip| tip.id());
        if let (Some(remote), Some(there)) = (remote, there) {
            let lock = notes.lock()?;
            // The joined tip may be recorded only in the tracking branch, which the push moves.
            self.repository.set_joined(&lock, there)?;
            self.repository.point(&lock, PURGED, new)?;
            drop(lock);
            let pushed = git.push_from(PURGED, remote, Some(there))?;
            if pushed != Pushed::Done {
                return Ok(pushed);
            }
        }
        let lock = notes.lock()?;
        self.repository.begin_pruning()?;
        if there.is_some() {
            self.repository.point(&lock, INCOMING, new)?;
        }
        // A command may have committed during the push.
        if self.repository.head()?.map(|tip| tip.id()) != Some(head) {
            drop(lock);
            if there.is_none() {
                return Ok(Pushed::Rejected {
                    reason: "notes were written meanwhile".to_owned(),
                });
            }
            // The remote is rewritten already, so this machine joins it like any other.
            self.join_incoming()?;
            return Ok(Pushed::Done);
        }
        let applied = self.repository.apply_commit(&lock, notes, new)?;
        if there.is_some() {
            self.repository.set_joined(&lock, new)?;
        }
        self.record_in_index(applied);
        drop(lock);
        if let (Some(remote), None) = (remote, there) {
            let pushed = git.push(remote, None)?;
            if pushed != Pushed::Done {
                return Ok(pushed);
            }
        }
        if remote.is_some() {
            self.pushed(new)?;
        }
        Ok(Pushed::Done)
    }

    /// Removes the objects of the old history, here and in a remote that is a folder, and the other
    /// branches and tags of the remote that name it.
    pub(crate) fn finish_purge(&mut self, git: &Git, purged: &mut Purged) -> Result<(), Error> {
        let remote = self.backend.settings.remote.as_ref();
        let mut left = Vec::new();
        // This needs the old commits.
        if let Some(remote) = remote {
            match self.repository.drop_remote_references(git, remote) {
                Ok((dropped, unknown)) => {
                    purged.dropped = dropped;
                    left = unknown;
                }
                Err(error) => left.push(error.to_string()),
            }
        }
        let lock = self.backend.notes.lock()?;
        purged.dropped.extend(self.repository.prune(git)?);
        drop(lock);
        let Some(remote) = remote else {
            return Ok(());
        };
        match remote.folder() {
            Some(folder) => left.extend(git.prune_remote(folder).err().map(|e| e.to_string())),
            None => left.push("its host keeps replaced objects until it runs gc".to_owned()),
        }
        purged.remote_left = (!left.is_empty()).then(|| left.join("; "));
        Ok(())
    }

    /// Rebuilds the index after a purge: free pages of the old file contain the text.
    fn rebuild_index(&mut self) {
        if let Err(error) = Index::rebuild(self.backend.home, self.backend.notes, INDEX_TIMEOUT) {
            self.synced.problems.push(Problem {
                path: self.backend.home.relative(&self.backend.home.index()),
                reason: format!("it may still contain purged text: {error}"),
            });
        }
    }

    /// Removes the objects of a purged history. If this fails, the next run does it.
    pub(crate) fn prune(&mut self, git: &Git) {
        if !self.repository.is_pruning() {
            return;
        }
        let lock = self.backend.notes.lock().map_err(Error::from);
        let pruned = lock.and_then(|_lock| self.repository.prune(git));
        let reason = match pruned {
            Ok(dropped) if dropped.is_empty() => return,
            Ok(dropped) => format!(
                "deleted {}: another machine purged notes that they contained",
                dropped.join(", ")
            ),
            Err(error) => format!("it still contains purged objects: {error}"),
        };
        self.synced.problems.push(Problem {
            path: "memory/.git".to_owned(),
            reason,
        });
    }

    /// Updates the changed notes in the index. The caller holds the notes lock: the index takes the
    /// folder times for those of these notes.
    pub(crate) fn record_in_index(&mut self, applied: Applied) {
        if applied.notes.is_empty() {
            return;
        }
        if let Ok(mut index) = Index::open_if_usable(self.backend.home, INDEX_TIMEOUT) {
            // On an error the next refresh adds them: the files exist.
            let _ = index.record_all(self.backend.notes, &applied.notes, applied.before);
        }
        self.backend.changed.borrow_mut().extend(applied.notes);
    }

    pub(crate) fn synced(mut self, detail: &str) -> Result<Synced, Error> {
        if let Some(aside) = self.backend.set_aside() {
            let home = self.backend.home;
            self.synced.problems.push(Problem {
                path: "memory/.git".to_owned(),
                reason: aside.text(&home.relative(&aside.folder)),
            });
        }
        let changed = self.backend.changed.borrow();
        let changed = changed.iter().filter_map(|id| self.backend.notes.find(*id));
        self.synced.changed = changed.collect();
        self.synced.head = self.repository.short_head()?;
        self.synced.detail = match (&self.synced.held, self.synced.conflicts) {
            (Some(_), _) => "held back until you decide; see status".to_owned(),
            (None, 0) => detail.to_owned(),
            (None, 1) => format!("{detail}; 1 conflict kept as a note of its own"),
            (None, many) => format!("{detail}; {many} conflicts kept as notes of their own"),
        };
        Ok(self.synced)
    }
}

/// The result of a join, before it is applied.
struct Target {
    /// The branch's commit at the start of the join.
    head: Option<Oid>,
    /// The joined commit.
    commit: Oid,
    incoming: Oid,
    pulled: usize,
    joined: Joined,
    /// The purge marks of the remote's rewritten history.
    purged: Option<PurgeMarks>,
}

/// The starting point of a join.
pub(crate) struct JoinStart<'r> {
    /// The merge base, or the commit that replaces it.
    pub(crate) base: Option<Commit<'r>>,
    /// Whether the joined commit keeps our commits as ancestors.
    keeps_history: bool,
    /// Whether the person wants back what a rewritten history lacks.
    is_undone: bool,
    /// The purge marks of the remote's rewritten history.
    purged: Option<PurgeMarks>,
}

impl Repository {
    /// Determines the start of a join; `None` if a rewritten history has to be accepted first.
    pub(crate) fn join_start(
        &self,
        head: Option<&Commit<'_>>,
        incoming: &Commit<'_>,
        answer: HeldDecision,
    ) -> Result<Option<JoinStart<'_>>, Error> {
        let their_tree = incoming.tree()?;
        let common = match head {
            Some(head) => self.merge_base(head.id(), incoming.id())?,
            None => None,
        };
        if common.is_none() {
            layout::check_remote(&self.git, &their_tree)?;
        } else {
            layout::check_own(&self.git, Some(&their_tree))?;
        }
        let joined = self.joined()?;
        let is_known = joined.is_some();
        let mut start = JoinStart {
            base: common.map(|oid| self.git.find_commit(oid)).transpose()?,
            keeps_history: true,
            is_undone: false,
            purged: None,
        };
        let is_rewritten = match &joined {
            Some(joined) => !self.is_in_history(joined.id(), Some(incoming.id()))?,
            None => false,
        };
        if answer.restores() {
            start.is_undone = is_rewritten;
        } else if let Some(joined) = joined.filter(|_| is_rewritten) {
            start.purged = self.purged_between(&joined, incoming)?;
            if start.purged.is_none() && answer == HeldDecision::None {
                return Ok(None);
            }
            start.base = Some(joined);
            start.keeps_history = false;
        }
        // The tip that was joined last is lost, so a purge looks like any other change. The purged text
        // must not be pushed again.
        if !is_known && head.is_some() && self.has_lost_joined() && !answer.restores() {
            let base = start.base.as_ref().map(Commit::tree).transpose()?;
            start.purged = self.purged_since(base.as_ref(), &their_tree)?;
            start.keeps_history = start.purged.is_none();
        }
        Ok(Some(start))
    }
}
