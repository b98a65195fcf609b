//! Reads the commits and branches of a project's repository.

use std::{cell::LazyCell, path::Path, time::Instant};

use anamnesis_note::note::parse_timestamp;
use git2::{BranchType, Oid, Repository, Sort};

use super::{ProjectCommit, message};
use crate::{
    index::{BranchState, NotesBranch},
    project::{DEFAULT_BRANCHES, repository_around},
};

/// The maximum number of commits of a project, the newest.
const MAX_COMMITS: usize = 20_000;

/// How many commits before a revert are looked through for the one that it quotes.
const MAX_DISTANCE: usize = 2_000;

/// A commit of more files says little about each of them.
const MAX_FILES: usize = 20;

/// A project's repository, of which only objects and references are read.
pub struct ProjectRepository(Repository);

impl ProjectRepository {
    /// Opens the repository around a folder; `None` if there is none that libgit2 can open.
    pub fn around(folder: &Path) -> Option<Self> {
        let root = repository_around(folder)?;
        Repository::open(root).ok().map(Self)
    }

    /// Returns the commits from which the history is read: what is checked out, and the default branch.
    pub fn tips(&self) -> Vec<String> {
        let head = self.0.head().ok().and_then(|head| head.target());
        let tips = head.into_iter().chain(self.default_tips());
        let mut tips: Vec<String> = tips.map(|id| id.to_string()).collect();
        tips.sort();
        tips.dedup();
        tips
    }

    /// Returns the newest commits that lead to these tips, newest first.
    pub fn commits(&self, tips: &[String]) -> Result<Vec<String>, git2::Error> {
        let mut walk = self.0.revwalk()?;
        walk.set_sorting(Sort::TIME)?;
        for tip in tips {
            walk.push(Oid::from_str(tip)?)?;
        }
        walk.take(MAX_COMMITS)
            .map(|id| id.map(|id| id.to_string()))
            .collect()
    }

    /// Reads commits until a time. A commit that cannot be read, or that says nothing about the project,
    /// has no subject and no time.
    pub fn read(&self, ids: &[String], until: Instant) -> Vec<ProjectCommit> {
        let ids = ids.iter().take_while(|_| Instant::now() < until);
        ids.map(|id| {
            let read = self.read_one(id).unwrap_or_default();
            ProjectCommit {
                id: id.clone(),
                ..read
            }
        })
        .collect()
    }

    fn read_one(&self, id: &str) -> Option<ProjectCommit> {
        let commit = self.0.find_commit(Oid::from_str(id).ok()?).ok()?;
        let author = commit.author();
        let author = String::from_utf8_lossy(author.name_bytes());
        let text = String::from_utf8_lossy(commit.message_bytes());
        let message = message::parse(&text, &author, commit.parent_count() > 1)?;
        let reverts = message.reverts;
        Some(ProjectCommit {
            reverts: reverts.or_else(|| self.reverted_by_subject(&commit, &text)),
            id: String::new(),
            at: commit.time().seconds(),
            subject: message.subject,
            body: message.body,
            files: self.files(&commit).unwrap_or_default(),
        })
    }

    /// Returns the id of the newest earlier commit whose subject a revert quotes, for a revert that names
    /// no id.
    fn reverted_by_subject(&self, commit: &git2::Commit<'_>, message: &str) -> Option<String> {
        let quoted = message.lines().next()?.strip_prefix("Revert \"")?;
        let (quoted, _) = quoted.rsplit_once('"')?;
        let mut walk = self.0.revwalk().ok()?;
        walk.set_sorting(Sort::TIME).ok()?;
        walk.push(commit.parent_id(0).ok()?).ok()?;
        let is_quoted = |id: &Oid| {
            let earlier = self.0.find_commit(*id);
            earlier.is_ok_and(|it| matches!(it.summary(), Ok(Some(summary)) if summary == quoted))
        };
        let found = walk.take(MAX_DISTANCE).flatten().find(is_quoted)?;
        Some(found.to_string())
    }

    /// Returns the files that a commit changed; none of the first commit, of a merge and of one that
    /// changed many.
    fn files(&self, commit: &git2::Commit<'_>) -> Option<Vec<String>> {
        if commit.parent_count() != 1 {
            return None;
        }
        let before = commit.parent(0).ok()?.tree().ok()?;
        let after = commit.tree().ok()?;
        let diff = self.0.diff_tree_to_tree(Some(&before), Some(&after), None);
        let diff = diff.ok()?;
        let files = diff.deltas().take(MAX_FILES + 1).filter_map(|delta| {
            let path = delta.new_file().path()?;
            Some(path.to_string_lossy().replace('\\', "/"))
        });
        let files: Vec<String> = files.collect();
        (files.len() <= MAX_FILES).then_some(files)
    }

    /// Returns the tips of the default branch, here and at the remote `origin`. Without `origin/HEAD` each
    /// branch with a usual name counts, and without one the only branch.
    fn default_tips(&self) -> Vec<Oid> {
        let of_origin = self.0.find_reference("refs/remotes/origin/HEAD").ok();
        let named = of_origin.and_then(|head| {
            let target = head.symbolic_target().ok().flatten()?;
            Some(target.strip_prefix("refs/remotes/origin/")?.to_owned())
        });
        let tips = |name: &str| -> Vec<Oid> {
            let places = ["refs/heads", "refs/remotes/origin"].into_iter();
            let ids = places.map(|place| self.0.refname_to_id(&format!("{place}/{name}")));
            ids.flatten().collect()
        };
        let named: Vec<Oid> = named.iter().flat_map(|name| tips(name)).collect();
        if !named.is_empty() {
            return named;
        }
        let usual: Vec<Oid> = DEFAULT_BRANCHES.into_iter().flat_map(tips).collect();
        if !usual.is_empty() {
            return usual;
        }
        self.only_branch()
            .iter()
            .flat_map(|name| tips(name))
            .collect()
    }

    /// Returns the name of the only local branch.
    fn only_branch(&self) -> Option<String> {
        let mut branches = self.0.branches(Some(BranchType::Local)).ok()?;
        let (branch, _) = branches.next()?.ok()?;
        let name = branch.name().ok().flatten()?.to_owned();
        branches.next().is_none().then_some(name)
    }

    /// Finds out what became of branches.
    pub fn states_of(&self, branches: &[NotesBranch]) -> Vec<NotesBranch> {
        let defaults = self.default_tips();
        let only = self.only_branch();
        // Few branches need the walk.
        let merges = LazyCell::new(|| self.merges(&defaults));
        let states = branches.iter();
        states
            .map(|branch| self.state_of(branch, only.as_deref(), &defaults, || merges.as_slice()))
            .collect()
    }

    fn state_of<'a>(
        &self,
        branch: &NotesBranch,
        only: Option<&str>,
        defaults: &[Oid],
        merges: impl Fn() -> &'a [(String, Oid)],
    ) -> NotesBranch {
        let name = &branch.name;
        let known = Oid::from_str(&branch.tip).ok();
        let has = |tip: Oid, old: Oid| {
            tip == old || self.0.graph_descendant_of(tip, old).unwrap_or(false)
        };
        let is_merged = |tip: Oid| defaults.iter().any(|default| has(*default, tip));
        // A branch without a commit of its own has the default's, and so has one that was made again.
        let is_own = |tip: Oid| {
            let is_new = match known {
                Some(known) if branch.state != BranchState::Unknown || !is_merged(known) => {
                    has(tip, known)
                }
                _ => {
                    let made = self.0.find_commit(tip).map(|it| it.time().seconds()).ok();
                    made >= parse_timestamp(&branch.begun).map(|begun| begun.timestamp())
                }
            };
            is_new || merges().iter().any(|(_, merged)| *merged == tip)
        };
        let is_contained = |tip: Oid| {
            let mut defaults = defaults.iter();
            defaults.any(|default| self.has_files_of(*default, tip).unwrap_or(false))
        };
        let names_merge = || {
            let marks = [format!("'{name}'"), format!("/{name}")];
            let subjects = merges().iter().map(|(subject, _)| subject);
            let mut words = subjects.flat_map(|subject| subject.split_whitespace());
            words.any(|word| marks.iter().any(|mark| word.ends_with(mark)))
        };
        let (tip, state) = match (self.tip_of(name), known) {
            // The default branch may change these files later.
            (now, Some(tip))
                if branch.state == BranchState::Merged && now.is_none_or(|now| now == tip) =>
            {
                (Some(tip), BranchState::Merged)
            }
            _ if defaults.is_empty() => (None, BranchState::Unknown),
            (Some(tip), _) if only == Some(name.as_str()) => (Some(tip), BranchState::Merged),
            (Some(tip), _) | (None, Some(tip)) if is_merged(tip) && is_own(tip) => {
                (Some(tip), BranchState::Merged)
            }
            (Some(tip), known) if is_merged(tip) => (known.or(Some(tip)), BranchState::Unknown),
            (Some(tip), _) | (None, Some(tip)) if is_contained(tip) => {
                (Some(tip), BranchState::Merged)
            }
            (Some(tip), _) => (Some(tip), BranchState::Unmerged),
            (None, Some(tip)) => (Some(tip), BranchState::Gone),
            // Another index may have known that it was merged.
            (None, None) if branch.state == BranchState::Gone => (None, BranchState::Gone),
            (None, None) if names_merge() => (None, BranchState::Merged),
            (None, None) if branch.is_of_machine => (None, BranchState::Gone),
            // It may be on the machine of its session only.
            (None, None) => (None, BranchState::Unknown),
        };
        NotesBranch {
            tip: tip.map_or_else(String::new, |tip| tip.to_string()),
            state,
            ..branch.clone()
        }
    }

    /// Returns whether the default branch has all files that a branch changed as the branch left them, as
    /// after a squash or a rebase.
    fn has_files_of(&self, default: Oid, tip: Oid) -> Option<bool> {
        let tree = |id: Oid| self.0.find_commit(id).ok()?.tree().ok();
        let base = self.0.merge_base(default, tip).ok()?;
        let (default, before, after) = (tree(default)?, tree(base)?, tree(tip)?);
        let diff = self.0.diff_tree_to_tree(Some(&before), Some(&after), None);
        let diff = diff.ok()?;
        let mut changed = diff.deltas().filter_map(|delta| delta.new_file().path());
        let blob = |tree: &git2::Tree<'_>, path: &Path| Some(tree.get_path(path).ok()?.id());
        let has = |path: &Path| blob(&default, path) == blob(&after, path);
        Some(diff.deltas().len() > 0 && changed.all(has))
    }

    fn tip_of(&self, name: &str) -> Option<Oid> {
        let found = self.0.find_branch(name, BranchType::Local);
        let origin = format!("origin/{name}");
        let found = found.or_else(|_| self.0.find_branch(&origin, BranchType::Remote));
        found.ok()?.get().target()
    }

    /// Returns the newest merges into the default branch: the subject, and the tip that was merged.
    fn merges(&self, defaults: &[Oid]) -> Vec<(String, Oid)> {
        let merge = |id: Oid| {
            let commit = self.0.find_commit(id).ok()?;
            let subject = commit.summary().ok()??.to_owned();
            Some((subject, commit.parent_id(1).ok()?))
        };
        let Ok(mut walk) = self.0.revwalk() else {
            return Vec::new();
        };
        if defaults.iter().any(|tip| walk.push(*tip).is_err()) {
            return Vec::new();
        }
        walk.take(MAX_COMMITS).flatten().filter_map(merge).collect()
    }
}
