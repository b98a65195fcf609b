//! Looks up citations in a folder and its git repository.
//!
//! The repository is untrusted: nothing of it runs, its settings and attributes are ignored, links
//! and submodules are skipped. Files, bytes and time are limited. A citation that was not checked
//! because of a limit is reported as such, never as missing.
//!
//! A missing thing says little, because a note may mean another place. It is *gone* only if the
//! history of the checked-out commit had it when the note was last known to be right.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
    fs, io,
    path::{Path, PathBuf},
    time::Instant,
};

use anamnesis_note::citation::{Citation, CitationKind};
use git2::{Delta, DiffFindOptions, ErrorCode, FileMode, Oid, Repository, RepositoryState, Tree};

use super::{
    Limits,
    scan::{Hit, Scan},
};
use crate::{fs::file, project};

/// The maximum size of a searched file, in bytes.
const MAX_FILE: usize = 1024 * 1024;

/// The maximum number of commits.
const MAX_COMMITS: usize = 10_000;

/// The maximum number of files per symbol that are searched for the commit that removed it.
const MAX_PLACES: usize = 8;

/// The maximum number of changed files in a commit that is searched for renames.
const MAX_CHANGES: usize = 400;

/// The number of digits of a shown commit id.
const SHORT_LENGTH: usize = 7;

/// The flag of a git index entry whose file need not be in the folder.
const SKIP_WORKTREE: u16 = 1 << 14;

/// A citation, and the time from which its absence counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// What is cited.
    pub(crate) reference: &'a Citation,
    /// When it was last seen, or else when the note was last written; seconds since 1970.
    pub(crate) since: i64,
    /// Whether the history is searched.
    pub(crate) is_asked: bool,
}

/// The result for a citation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It exists.
    Present,
    /// It existed, and a commit removed it.
    Gone(Gone),
    /// It exists but is not tracked, like build output.
    Untracked,
    /// Git's index has the file, but the folder does not.
    Uncommitted,
    /// It is missing, and there is no evidence that it existed.
    Absent,
    /// A limit was reached first.
    NotLookedAt,
}

/// How something was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Gone {
    /// The commit that removed it, abbreviated.
    pub(crate) since: String,
    /// The time of that commit, seconds since 1970.
    pub(crate) at: i64,
    /// The new path of the file or folder, if known.
    pub(crate) now: Option<String>,
}

/// Looks up these citations.
pub(crate) fn look(claims: &[Claim<'_>], folder: &Path, limits: &Limits) -> Vec<Verdict> {
    match project::repository_around(folder) {
        None => claims
            .iter()
            .map(|claim| outside_git(claim, folder))
            .collect(),
        Some(root) => {
            let looked = Checkout::open(root, folder, limits).map(|checkout| checkout.look(claims));
            looked.unwrap_or_else(|| vec![Verdict::NotLookedAt; claims.len()])
        }
    }
}

/// Without git, only the folder can be searched.
fn outside_git(claim: &Claim<'_>, folder: &Path) -> Verdict {
    if claim.reference.kind != CitationKind::Path {
        return Verdict::NotLookedAt;
    }
    match lies_at(folder, &claim.reference.text) {
        Lies::Here => Verdict::Present,
        Lies::Nowhere => Verdict::Absent,
        Lies::BehindALink => Verdict::NotLookedAt,
    }
}

/// Whether a path exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lies {
    Here,
    Nowhere,
    BehindALink,
}

/// Checks whether a path below a folder exists. No link is followed.
fn lies_at(folder: &Path, relative: &str) -> Lies {
    let mut path = folder.to_owned();
    let mut names = relative.split('/').peekable();
    while let Some(name) = names.next() {
        path.push(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() && names.peek().is_some() => return Lies::BehindALink,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Lies::BehindALink;
            }
            Err(_) => return Lies::Nowhere,
        }
    }
    Lies::Here
}

/// A reached limit is final: nothing more is read.
struct Budget {
    bytes: usize,
    until: Instant,
}

impl Budget {
    fn take(&mut self, bytes: usize) -> bool {
        let has_enough = bytes <= self.bytes && Instant::now() < self.until;
        self.bytes = if has_enough { self.bytes - bytes } else { 0 };
        has_enough
    }
}

/// A repository and a folder with a checkout of it.
struct Checkout {
    root: PathBuf,
    /// The project's folder below the root.
    folder: PathBuf,
    git: Repository,
    budget: Budget,
    /// The first-parent history of the checked-out commit, newest first, with times.
    commits: Vec<(Oid, i64)>,
    /// The findings in searched blobs, by path.
    found: HashMap<(Oid, String), Vec<Hit>>,
    /// The renames of commits, by position in `commits`: from, to.
    renames: HashMap<usize, Vec<(String, String)>>,
}

/// A citation that is searched in the history.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// The number of the claim.
    number: usize,
    kind: CitationKind,
    /// Whether the name is still used. Then only the removal of a definition counts.
    is_mentioned: bool,
}

impl Asked {
    fn is_among(self, hits: &[Hit]) -> bool {
        let is_it =
            |hit: &&Hit| hit.number == self.number && (hit.is_defined || !self.is_mentioned);
        hits.iter().any(|hit| is_it(&hit))
    }
}

impl Checkout {
    /// Opens a repository; none if it cannot be used or a merge or similar is in progress.
    fn open(root: PathBuf, folder: &Path, limits: &Limits) -> Option<Self> {
        let git = Repository::open(&root).ok()?;
        if git.is_bare() || git.state() != RepositoryState::Clean {
            return None;
        }
        let folder = dunce::canonicalize(folder).ok()?;
        Some(Self {
            root,
            folder,
            git,
            budget: Budget {
                bytes: limits.bytes,
                until: Instant::now() + limits.time,
            },
            commits: Vec::new(),
            found: HashMap::new(),
            renames: HashMap::new(),
        })
    }

    fn look(mut self, claims: &[Claim<'_>]) -> Vec<Verdict> {
        let mut verdicts = vec![Verdict::Absent; claims.len()];
        let Some(tracked) = self.tracked() else {
            return vec![Verdict::NotLookedAt; claims.len()];
        };
        self.look_for_paths(claims, &tracked, &mut verdicts);
        self.look_for_commits(claims, &mut verdicts);
        let scan = Scan::new(still(claims, &verdicts));
        let (mentioned, is_complete) = self.look_into_files(&scan, &tracked, &mut verdicts);
        let mut asked = Vec::new();
        for (number, (claim, verdict)) in claims.iter().zip(&mut verdicts).enumerate() {
            let kind = claim.reference.kind;
            let is_text = matches!(kind, CitationKind::Symbol | CitationKind::Command);
            let is_mentioned = mentioned.contains(&number);
            if *verdict != Verdict::Absent {
                continue;
            }
            if is_text && !is_complete {
                *verdict = Verdict::NotLookedAt;
            } else if claim.is_asked {
                asked.push((
                    claim.since,
                    Asked {
                        number,
                        kind,
                        is_mentioned,
                    },
                ));
            }
            if is_mentioned {
                *verdict = Verdict::Present;
            }
        }
        self.look_back(claims, &asked, &mut verdicts);
        verdicts
    }

    /// Returns the files in git's index, including links, and whether each must be in the folder.
    fn tracked(&self) -> Option<Vec<(String, bool)>> {
        let index = self.git.index().ok()?;
        let entries = index
            .iter()
            .filter(|entry| entry.mode != u32::from(FileMode::Commit));
        let paths = entries.filter_map(|entry| {
            let is_needed = entry.flags_extended & SKIP_WORKTREE == 0;
            Some((String::from_utf8(entry.path).ok()?, is_needed))
        });
        Some(paths.collect())
    }

    fn look_for_paths(
        &self,
        claims: &[Claim<'_>],
        tracked: &[(String, bool)],
        verdicts: &mut [Verdict],
    ) {
        let paths =
            still(claims, verdicts).filter(|(_, reference)| reference.kind == CitationKind::Path);
        let wanted = self.wanted_paths(paths);
        for (path, is_needed) in tracked {
            let mut is_here = None;
            for number in parts(path)
                .filter_map(|(_, part)| wanted.get(part))
                .flatten()
            {
                let Some(verdict) = verdicts.get_mut(*number) else {
                    continue;
                };
                if *verdict == Verdict::Present {
                    continue;
                }
                let is_here = *is_here.get_or_insert_with(|| {
                    !is_needed || lies_at(&self.root, path) != Lies::Nowhere
                });
                *verdict = if is_here {
                    Verdict::Present
                } else {
                    Verdict::Uncommitted
                };
            }
        }
        for (claim, verdict) in claims.iter().zip(verdicts) {
            let text = &claim.reference.text;
            if claim.reference.kind == CitationKind::Path
                && *verdict == Verdict::Absent
                && [&self.root, &self.folder]
                    .iter()
                    .any(|folder| lies_at(folder, text) != Lies::Nowhere)
            {
                *verdict = Verdict::Untracked;
            }
        }
    }

    /// Looks up paths of tracked files.
    fn wanted_paths<'a>(
        &self,
        paths: impl Iterator<Item = (usize, &'a Citation)>,
    ) -> HashMap<&'a str, Vec<usize>> {
        let mut wanted: HashMap<&str, Vec<usize>> = HashMap::new();
        let own_name = self.root.file_name().and_then(|name| name.to_str());
        for (number, path) in paths {
            wanted.entry(&path.text).or_default().push(number);
            // `shop/src/a.rs` in the repository `shop`.
            let below = own_name.and_then(|name| path.text.strip_prefix(name)?.strip_prefix('/'));
            if let Some(below) = below {
                wanted.entry(below).or_default().push(number);
            }
        }
        wanted
    }

    fn look_for_commits(&self, claims: &[Claim<'_>], verdicts: &mut [Verdict]) {
        for (claim, verdict) in claims.iter().zip(verdicts) {
            if claim.reference.kind == CitationKind::Commit {
                *verdict = match self.git.find_commit_by_prefix(&claim.reference.text) {
                    Err(error) if error.code() == ErrorCode::NotFound => Verdict::Absent,
                    Err(error) if error.code() != ErrorCode::Ambiguous => Verdict::NotLookedAt,
                    _ => Verdict::Present,
                };
            }
        }
    }

    /// Searches the tracked files of the folder for definitions. Returns what else is mentioned, and
    /// whether all files were searched.
    fn look_into_files(
        &mut self,
        scan: &Scan<'_>,
        tracked: &[(String, bool)],
        verdicts: &mut [Verdict],
    ) -> (BTreeSet<usize>, bool) {
        let mut mentioned = BTreeSet::new();
        let mut folders = PlainFolders::new(&self.root);
        for (path, _) in tracked.iter().filter(|(path, _)| scan.looks_into(path)) {
            if !folders.lead_to(path) {
                continue;
            }
            let Ok((text, _, true)) = file::read_head(&self.root.join(path), MAX_FILE) else {
                continue;
            };
            if !self.budget.take(text.len()) {
                return (mentioned, false);
            }
            for hit in scan.found(path, &text) {
                match verdicts.get_mut(hit.number) {
                    Some(verdict) if hit.is_defined => *verdict = Verdict::Present,
                    _ => drop(mentioned.insert(hit.number)),
                }
            }
        }
        (mentioned, true)
    }

    /// Searches the history for missing things.
    fn look_back(
        &mut self,
        claims: &[Claim<'_>],
        asked: &[(i64, Asked)],
        verdicts: &mut [Verdict],
    ) {
        let Some(oldest) = asked.iter().map(|(since, _)| *since).min() else {
            return;
        };
        // Without a commit there is no history.
        self.commits = commits_of(&self.git, oldest).unwrap_or_default();
        let numbers = asked.iter().map(|(_, asked)| asked.number);
        let scan =
            Scan::new(numbers.filter_map(|number| Some((number, claims.get(number)?.reference))));
        // Grouped by the commit from which absence counts. The newest are first and quick to compare.
        let mut by_base: BTreeMap<usize, Vec<Asked>> = BTreeMap::new();
        for (since, asked) in asked {
            for base in self.bases(*since) {
                by_base.entry(base).or_default().push(*asked);
            }
        }
        for (base, asked) in by_base {
            let places = self.places(claims, &scan, base, &asked);
            for asked in asked {
                let Some(verdict) = verdicts.get_mut(asked.number) else {
                    continue;
                };
                if matches!(verdict, Verdict::Gone(_)) {
                    continue;
                }
                let gone = match &places {
                    None => None,
                    Some(places) => match places.get(&asked.number) {
                        None => continue,
                        Some(places) => self.gone(asked, &scan, places, base),
                    },
                };
                *verdict = match gone {
                    Some(gone) => Verdict::Gone(gone),
                    None if asked.is_mentioned => Verdict::Present,
                    None => Verdict::NotLookedAt,
                };
            }
        }
    }

    /// Returns the last commit before a time and the first one after it, because a note is written
    /// before or after the commit of its subject.
    fn bases(&self, since: i64) -> impl Iterator<Item = usize> + use<> {
        let before = self.commits.iter().position(|(_, at)| *at <= since);
        let before = before.unwrap_or(self.commits.len().saturating_sub(1));
        // The checked-out commit lacks everything that is missing.
        [before, before.saturating_sub(1)]
            .into_iter()
            .filter(|base| *base > 0)
    }

    /// Returns the files or folders with the citations in a commit that have changed since. None if a
    /// limit was reached.
    fn places(
        &mut self,
        claims: &[Claim<'_>],
        scan: &Scan<'_>,
        base: usize,
        asked: &[Asked],
    ) -> Option<BTreeMap<usize, Vec<String>>> {
        if !self.budget.take(0) {
            return None;
        }
        let paths = asked
            .iter()
            .filter(|asked| asked.kind == CitationKind::Path);
        let paths =
            paths.filter_map(|asked| Some((asked.number, claims.get(asked.number)?.reference)));
        let wanted = self.wanted_paths(paths);
        let reads = asked.iter().any(|asked| asked.kind != CitationKind::Path);
        let mut changed: Vec<(String, Oid, bool)> = Vec::new();
        {
            let (old, new) = (self.tree(base)?, self.tree(0)?);
            let diff = self
                .git
                .diff_tree_to_tree(Some(&old), Some(&new), None)
                .ok()?;
            for delta in diff.deltas() {
                let file = delta.old_file();
                let is_blob = matches!(
                    file.mode(),
                    FileMode::Blob | FileMode::BlobExecutable | FileMode::Link
                );
                let path = file.path().and_then(Path::to_str);
                if let Some(path) = path.filter(|_| is_blob && file.exists()) {
                    changed.push((path.to_owned(), file.id(), delta.status() == Delta::Deleted));
                }
            }
        }
        let mut places: BTreeMap<usize, Vec<String>> = BTreeMap::new();
        let mut add = |number: usize, path: &str| {
            let places = places.entry(number).or_default();
            if places.len() < MAX_PLACES && !places.iter().any(|place| place == path) {
                places.push(path.to_owned());
            }
        };
        for (path, blob, is_deleted) in changed {
            if is_deleted {
                for (whole, part) in parts(&path) {
                    for number in wanted.get(part).into_iter().flatten() {
                        add(*number, whole);
                    }
                }
            }
            if reads && scan.looks_into(&path) {
                let hits = self.found_in(scan, &path, blob)?;
                for asked in asked.iter().filter(|asked| asked.is_among(&hits)) {
                    add(asked.number, &path);
                }
            }
        }
        Some(places)
    }

    /// Searches a file in the history; none if a limit was reached.
    fn found_in(&mut self, scan: &Scan<'_>, path: &str, blob: Oid) -> Option<Vec<Hit>> {
        let key = (blob, path.to_owned());
        if let Some(found) = self.found.get(&key) {
            return Some(found.clone());
        }
        // A file that was not fetched, or a link, has no content.
        let length = self
            .git
            .odb()
            .ok()?
            .read_header(blob)
            .map_or(0, |(length, _)| length);
        let found = if length == 0 || length > MAX_FILE {
            Vec::new()
        } else if self.budget.take(length) {
            let blob = self.git.find_blob(blob).ok();
            blob.map(|blob| scan.found(path, blob.content()))
                .unwrap_or_default()
        } else {
            return None;
        };
        self.found.insert(key, found.clone());
        Some(found)
    }

    /// Finds the commit that removed a citation from these places in a commit.
    ///
    /// A binary search that assumes one removal. If it was removed twice, either one is found.
    fn gone(
        &mut self,
        asked: Asked,
        scan: &Scan<'_>,
        places: &[String],
        base: usize,
    ) -> Option<Gone> {
        let (mut there, mut gone) = (base, 0);
        while there - gone > 1 {
            let middle = gone + (there - gone) / 2;
            let mut is_there = false;
            for place in places {
                is_there = is_there || self.stands_in(asked, scan, place, middle)?;
            }
            *(if is_there { &mut there } else { &mut gone }) = middle;
        }
        let (commit, at) = *self.commits.get(gone)?;
        let mut since = commit.to_string();
        since.truncate(SHORT_LENGTH);
        let now = match (asked.kind, places.first()) {
            (CitationKind::Path, Some(place)) => self.renamed(place, there, gone),
            _ => None,
        };
        Some(Gone { since, at, now })
    }

    /// Returns whether a place had a citation in a commit; none if a limit was reached.
    fn stands_in(
        &mut self,
        asked: Asked,
        scan: &Scan<'_>,
        place: &str,
        commit: usize,
    ) -> Option<bool> {
        if !self.budget.take(0) {
            return None;
        }
        let blob = {
            let tree = self.tree(commit)?;
            match tree.get_path(Path::new(place)) {
                Ok(entry) => entry.id(),
                Err(_) => return Some(false),
            }
        };
        match asked.kind {
            CitationKind::Path => Some(true),
            _ => Some(asked.is_among(&self.found_in(scan, place, blob)?)),
        }
    }

    /// Returns the new name of a file or folder, if the commit that removed it was a rename.
    fn renamed(&mut self, place: &str, before: usize, after: usize) -> Option<String> {
        if !self.renames.contains_key(&after) {
            let renames = self.renames_of(before, after).unwrap_or_default();
            self.renames.insert(after, renames);
        }
        self.renames.get(&after)?.iter().find_map(|(from, to)| {
            // For a folder, the file's path within it must be the same.
            to.strip_suffix(from.strip_prefix(place)?)
                .map(str::to_owned)
        })
    }

    /// Returns the renames between two commits; none if too many files changed.
    fn renames_of(&mut self, before: usize, after: usize) -> Option<Vec<(String, String)>> {
        if !self.budget.take(0) {
            return None;
        }
        let (old, new) = (self.tree(before)?, self.tree(after)?);
        let mut diff = self
            .git
            .diff_tree_to_tree(Some(&old), Some(&new), None)
            .ok()?;
        let odb = self.git.odb().ok()?;
        let is_small = |id: Oid| {
            id.is_zero()
                || odb
                    .read_header(id)
                    .is_ok_and(|(length, _)| length <= MAX_FILE)
        };
        if diff.deltas().len() > MAX_CHANGES
            || !diff
                .deltas()
                .all(|delta| is_small(delta.old_file().id()) && is_small(delta.new_file().id()))
        {
            return None;
        }
        let mut options = DiffFindOptions::new();
        options.renames(true).rename_limit(MAX_CHANGES);
        diff.find_similar(Some(&mut options)).ok()?;
        let renames = diff
            .deltas()
            .filter(|delta| delta.status() == Delta::Renamed)
            .filter_map(|delta| {
                let path = |file: git2::DiffFile<'_>| Some(file.path()?.to_str()?.to_owned());
                Some((path(delta.old_file())?, path(delta.new_file())?))
            });
        Some(renames.collect())
    }

    fn tree(&self, commit: usize) -> Option<Tree<'_>> {
        let (id, _) = self.commits.get(commit)?;
        self.git.find_commit(*id).ok()?.tree().ok()
    }
}

/// Returns the first-parent history of the checked-out commit, back to the first commit that is not
/// younger than a time.
fn commits_of(git: &Repository, oldest: i64) -> Result<Vec<(Oid, i64)>, git2::Error> {
    let mut commits = Vec::new();
    let mut next = git.head()?.peel_to_commit().ok();
    while let Some(commit) = next
        && commits.len() < MAX_COMMITS
    {
        let at = commit.time().seconds();
        commits.push((commit.id(), at));
        // The history of a shallow clone ends early.
        next = commit.parent(0).ok().filter(|_| at > oldest);
    }
    Ok(commits)
}

/// Returns the citations without a result.
fn still<'a>(
    claims: &[Claim<'a>],
    verdicts: &[Verdict],
) -> impl Iterator<Item = (usize, &'a Citation)> {
    let unknown = claims.iter().zip(verdicts).enumerate();
    unknown
        .filter(|(_, (_, verdict))| **verdict == Verdict::Absent)
        .map(|(number, (claim, _))| (number, claim.reference))
}

/// Returns a file and each of its parent folders, with every path suffix that a note may use for it.
fn parts(path: &str) -> impl Iterator<Item = (&str, &str)> {
    let ends = path
        .match_indices('/')
        .map(|(at, _)| at)
        .chain([path.len()]);
    ends.flat_map(move |end| {
        let whole = &path[..end];
        let starts = whole.match_indices('/').map(|(at, _)| at + 1);
        [0].into_iter()
            .chain(starts)
            .map(move |start| (whole, &whole[start..]))
    })
}

/// A cache of parent folders. A link counts as missing.
struct PlainFolders<'a> {
    root: &'a Path,
    plain: HashSet<String>,
}

impl<'a> PlainFolders<'a> {
    fn new(root: &'a Path) -> Self {
        Self {
            root,
            plain: HashSet::new(),
        }
    }

    fn lead_to(&mut self, path: &str) -> bool {
        let Some((folder, _)) = path.rsplit_once('/') else {
            return true;
        };
        if self.plain.contains(folder) {
            return true;
        }
        let found = fs::symlink_metadata(self.root.join(folder));
        let is_plain = found.is_ok_and(|found| found.is_dir()) && self.lead_to(folder);
        if is_plain {
            self.plain.insert(folder.to_owned());
        }
        is_plain
    }
}
