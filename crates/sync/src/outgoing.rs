//! Decides which commit is pushed: none with a note that must not leave this machine.
//!
//! Commits of ours have no such note, see [`crate::stage`]. A commit that a person made with git may. The
//! remote then gets the other notes in a commit of ours instead.

use std::collections::BTreeMap;

use git2::{Commit, Oid, Sort};

use crate::{
    commit::{Act, FileChanges},
    error::Error,
    folder::{Folders, NoteBlob},
    git::INCOMING,
    history::own_changes,
    repository::Repository,
    stage::is_withheld,
    sync_run::Run,
    tree::{Changes, FILE, note_path},
};

/// The commit of our own merges and replacements.
const BY_MACHINE: Act<'_> = Act {
    verb: "sync",
    actor: "machine",
};

/// What is pushed.
pub(crate) struct Outgoing {
    /// The branch's tip, or the commit in place of it.
    pub(crate) commit: Oid,
    /// The paths of the notes that it leaves out.
    pub(crate) withheld: Vec<String>,
}

impl Repository {
    /// Returns what to push of the branch's tip, which contains the fetched commit.
    pub(crate) fn outgoing(&self, tip: Oid) -> Result<Outgoing, Error> {
        let tip = self.git.find_commit(tip)?;
        let there = self.tip(INCOMING)?;
        let (tree, base) = (tip.tree()?, there.as_ref().map(Commit::tree).transpose()?);
        let changes = Changes::between(&self.git, base.as_ref(), Some(&tree))?;
        let (mut updates, mut withheld) = (BTreeMap::new(), Vec::new());
        for (id, change) in changes.notes {
            let Some(new) = change.new else { continue };
            let name = note_path(new.0, id);
            if self.is_blob_withheld(&name, new)? {
                updates.insert(name.clone(), None);
                let old = change.old;
                updates.extend(old.map(|(folder, oid)| (note_path(folder, id), Some((oid, FILE)))));
                withheld.push(name);
            }
        }
        let first = self.first_withheld(&tip, there.as_ref())?;
        if withheld.is_empty() && first.is_none() {
            let commit = tip.id();
            return Ok(Outgoing { commit, withheld });
        }
        let tree = self.tree_with(Some(&tree), &updates)?;
        // The history before the first such note stays.
        let kept = first.and_then(|commit| commit.parent(0).ok());
        let parents = match (&kept, &there) {
            (Some(kept), Some(there)) if self.is_in_history(kept.id(), Some(there.id()))? => {
                vec![there]
            }
            (Some(kept), Some(there)) if self.is_in_history(there.id(), Some(kept.id()))? => {
                vec![kept]
            }
            _ => kept.iter().chain(&there).collect(),
        };
        let commit = match (&parents[..], &there) {
            ([parent], Some(there)) if parent.id() == there.id() && there.tree_id() == tree => {
                there.id()
            }
            _ => self.write_commit(tree, &parents, BY_MACHINE, None)?,
        };
        Ok(Outgoing { commit, withheld })
    }

    /// Returns the first commit since `there` with which a person committed a withheld note.
    fn first_withheld(
        &self,
        tip: &Commit<'_>,
        there: Option<&Commit<'_>>,
    ) -> Result<Option<Commit<'_>>, Error> {
        let order = Sort::TOPOLOGICAL | Sort::REVERSE;
        let mut folders = Folders::new(&self.git)?;
        for oid in self.revwalk(order, Some(tip.id()), there.map(Commit::id))? {
            let commit = self.git.find_commit(oid?)?;
            let is_ours = commit
                .committer()
                .email()
                .is_ok_and(|email| email.starts_with("anamnesis@"));
            if is_ours {
                continue;
            }
            for (id, change) in own_changes(&mut folders, &commit)? {
                if let Some(new) = change.new
                    && self.is_blob_withheld(&note_path(new.0, id), new)?
                {
                    return Ok(Some(commit));
                }
            }
        }
        Ok(None)
    }

    fn is_blob_withheld(&self, name: &str, (_, oid): NoteBlob) -> Result<bool, Error> {
        Ok(is_withheld(name, &self.read(oid)?))
    }
}

impl Run<'_> {
    /// Drops commits with withheld notes from the branch before it is pushed by a purge. Returns its tip.
    pub(crate) fn without_withheld(&mut self, tip: Oid) -> Result<Oid, Error> {
        let outgoing = self.outgoing(tip)?;
        if !outgoing.withheld.is_empty() {
            return Err(Error::Withheld(outgoing.withheld.join(", ")));
        }
        if outgoing.commit != tip {
            self.settle(tip, &outgoing)?;
        }
        Ok(outgoing.commit)
    }

    /// Brings the branch together with what was pushed in place of its tip. Without a withheld note the
    /// branch moves there; the replaced commits are dropped.
    pub(crate) fn settle(&self, tip: Oid, outgoing: &Outgoing) -> Result<(), Error> {
        let repository = &self.repository;
        let lock = self.backend.notes.lock()?;
        let head = repository.head()?.filter(|head| head.id() == tip);
        // If a command has committed meanwhile, the next sync does this.
        let Some(head) = head else { return Ok(()) };
        let sent = repository.git.find_commit(outgoing.commit)?;
        let commit = if outgoing.withheld.is_empty() {
            sent.id()
        } else if repository.is_in_history(sent.id(), Some(head.id()))? {
            return Ok(());
        } else {
            repository.write_commit(head.tree_id(), &[&head, &sent], BY_MACHINE, None)?
        };
        repository.move_branch(&lock, commit, &FileChanges::new())
    }
}
