//! Checks whether the things that notes cite in their project still exist, so that outdated notes are
//! marked.
//!
//! The deferred process checks the project of the session that started it from time to time. A hook
//! only reads the result ([`Journal::stale`]). Session notes are not checked, because they describe
//! the past.
//!
//! A missing thing says little, because a note may mean another place. It is *gone* only if an earlier
//! check saw it, and the note has not changed since. Paths are looked up by `stat`, targets in the
//! files that define them, symbols by one search of the tracked files. The repository is untrusted:
//! nothing of it runs, links and submodules are skipped, files, bytes and time are limited.

use std::{
    collections::{BTreeSet, HashSet},
    fs, io,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anamnesis_note::{
    citation::{Citation, CitationKind, citations},
    id::NoteId,
    note::{Kind as NoteKind, parse_timestamp},
    project_key::is_shared,
};
use anamnesis_text::{hash::text_hash, redact::redact};
use chrono::{DateTime, Utc};
use git2::{FileMode, Repository, RepositoryState};

use crate::{
    fs::file,
    index::{self, Entry, Filter, Index},
    journal::{self, Journal, SeenCitation},
    notes::Notes,
    project,
};

/// The maximum number of notes per project that are checked, the latest first.
const MAX_NOTES: usize = 10_000;

/// The maximum size of a searched file, in bytes.
const MAX_FILE: usize = 1024 * 1024;

/// Extensions of documents, which are not code.
const PAGES: [&str; 10] = [
    "adoc", "csv", "html", "jsonl", "lock", "md", "rst", "snap", "svg", "txt",
];

/// The limits of one run.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// The maximum number of notes, those with the oldest check first.
    pub notes: usize,
    /// The maximum number of bytes read from the folder.
    pub bytes: usize,
    /// The time limit.
    pub time: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            notes: 200,
            bytes: 64 * 1024 * 1024,
            time: Duration::from_secs(2),
        }
    }
}

/// The project to check.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The keys of the project.
    pub projects: &'a [String],
    /// The project's folder, which is absolute.
    pub folder: &'a Path,
    /// The current time.
    pub now: DateTime<Utc>,
    /// The limits.
    pub limits: Limits,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Looked {
    /// The number of checked notes.
    pub notes: usize,
    /// The number of them that cite something that is gone.
    pub stale: usize,
}

/// The check failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] index::Error),
    /// The journal cannot be used.
    #[error(transparent)]
    Journal(#[from] journal::Error),
}

/// Checks the citations of a project's notes and stores the result.
///
/// # Errors
/// The previous results stay.
pub fn look(
    journal: &Journal,
    index: &Index,
    notes: &Notes,
    request: &Request<'_>,
) -> Result<Looked, Error> {
    let filter = Filter {
        projects: request.projects.to_vec(),
        ..Filter::default()
    };
    let mut entries = index.list(&filter, MAX_NOTES)?;
    entries.retain(is_looked_at);
    let looks = journal.reference_looks(request.projects)?;
    let ids: BTreeSet<NoteId> = entries.iter().map(Entry::id).collect();
    let dropped = looks.keys().copied().filter(|id| !ids.contains(id));
    let dropped: BTreeSet<NoteId> = dropped.collect();
    entries.sort_by_key(|entry| (looks.get(&entry.id()).copied(), entry.id()));
    entries.truncate(request.limits.notes);
    let mut citing = Vec::new();
    for entry in &entries {
        if let Ok(stored) = notes.read(entry.path) {
            let note = stored.note();
            // Redacted like the texts of the index.
            let text = redact(&format!("{}\n\n{}", note.title, note.body))
                .text
                .into_owned();
            citing.push((entry, citations(&text, request.folder.to_str())));
        }
    }
    let Some(project) = ProjectFiles::open(request, citing.iter().flat_map(|(_, all)| all)) else {
        return Ok(Looked::default());
    };
    let now = request.now.timestamp_millis();
    let mut looked = Looked::default();
    journal.in_transaction(|journal| {
        journal.drop_references(&dropped)?;
        for (entry, references) in &citing {
            let mut known = journal.references_of(entry.id())?;
            known.retain(|known| known.place == project.place);
            let written = parse_timestamp(&entry.updated_at);
            let written = written.filter(|at| !journal::is_ahead(*at, request.now));
            let written = written.map_or(0, |at| at.timestamp_millis());
            let kept = references.iter().filter_map(|reference| {
                let before = known
                    .iter()
                    .find(|known| known.kind == reference.kind && known.text == reference.text);
                let mut seen = SeenCitation {
                    kind: reference.kind,
                    text: reference.text.clone(),
                    seen_at: now,
                    gone_at: None,
                    place: project.place.clone(),
                };
                match project.has(reference) {
                    Some(true) => return Some(seen),
                    None => return before.cloned(),
                    Some(false) => {}
                }
                // Whoever wrote the note later, or says that it was removed, knows.
                let before = before.filter(|it| it.seen_at >= written && !reference.is_past)?;
                seen.seen_at = before.seen_at;
                seen.gone_at = before.gone_at.or(Some(now));
                Some(seen)
            });
            let kept: Vec<SeenCitation> = kept.collect();
            looked.notes += 1;
            looked.stale += usize::from(kept.iter().any(|known| known.gone_at.is_some()));
            journal.keep_references(entry.id(), &entry.project, &kept, now)?;
        }
        Ok(())
    })?;
    Ok(looked)
}

/// Returns whether changes of the project can make a note false.
fn is_looked_at(entry: &Entry) -> bool {
    entry.kind != NoteKind::Experience && entry.state.is_in_use() && !is_shared(&entry.project)
}

/// The folder of a project, with what was found in its files.
struct ProjectFiles {
    /// The project's folder, and the root of its repository.
    folders: Vec<PathBuf>,
    /// The hash of a folder outside of git, because folders of one name share a project.
    place: String,
    /// The names of cited symbols that the tracked files have; none if not all were read.
    names: Option<HashSet<String>>,
    /// The cited file names without a folder that tracked files have.
    files: HashSet<String>,
    /// The files that define targets: names and texts.
    targets: Vec<(&'static str, String)>,
}

impl ProjectFiles {
    /// Reads what the citations need; none if the repository cannot be used, or a merge or similar is
    /// in progress.
    fn open<'a>(
        request: &Request<'_>,
        citations: impl Iterator<Item = &'a Citation> + Clone,
    ) -> Option<Self> {
        let mut folders = vec![request.folder.to_owned()];
        let mut place = text_hash(&request.folder.to_string_lossy());
        let (mut names, mut files) = (None, HashSet::new());
        if let Some(root) = project::repository_around(request.folder) {
            let git = Repository::open(&root).ok()?;
            if git.is_bare() || git.state() != RepositoryState::Clean {
                return None;
            }
            let paths = citations.clone().filter(|it| it.kind == CitationKind::Path);
            let bare = paths
                .map(|it| it.text.as_str())
                .filter(|it| !it.contains('/'));
            files = tracked(&git, &root, &bare.collect());
            let symbols = citations.filter(|citation| citation.kind == CitationKind::Symbol);
            let wanted: HashSet<&str> = symbols.flat_map(Citation::names).collect();
            names = search(&git, &root, &wanted, &request.limits);
            folders.push(root);
            place = String::new();
        }
        folders.dedup();
        let mut targets = Vec::new();
        for name in [
            "Makefile",
            "makefile",
            "GNUmakefile",
            "justfile",
            "Justfile",
            "package.json",
        ] {
            for folder in &folders {
                if let Ok((text, _, true)) = file::read_head(&folder.join(name), MAX_FILE) {
                    targets.push((name, String::from_utf8_lossy(&text).into_owned()));
                }
            }
        }
        Some(Self {
            folders,
            place,
            names,
            files,
            targets,
        })
    }

    /// Returns whether the project has the cited thing; none if that is not known.
    fn has(&self, citation: &Citation) -> Option<bool> {
        match citation.kind {
            CitationKind::Path => {
                let folders = self.folders.iter();
                let found: Vec<Option<bool>> = folders
                    .map(|folder| exists(folder, &citation.text))
                    .collect();
                if found.contains(&Some(true)) || self.files.contains(&citation.text) {
                    return Some(true);
                }
                (!found.contains(&None)).then_some(false)
            }
            CitationKind::Symbol => {
                let names = self.names.as_ref()?;
                Some(citation.names().all(|name| names.contains(name)))
            }
            CitationKind::Command => Some(self.defines(&citation.text)),
        }
    }

    fn defines(&self, command: &str) -> bool {
        let (program, target) = (command.split(' ').next(), command.rsplit(' ').next());
        let target = target.unwrap_or_default();
        self.targets.iter().any(|(name, text)| match program {
            Some("make" | "gmake") if name.to_ascii_lowercase().ends_with("makefile") => {
                rules(text).any(|(targets, rest)| {
                    !rest.starts_with('=') && targets.split_whitespace().any(|own| own == target)
                })
            }
            Some("just") if name.eq_ignore_ascii_case("justfile") => {
                rules(text).any(|(rule, _)| {
                    let rule = rule.strip_prefix("alias ").unwrap_or(rule);
                    let own = rule.split(' ').next().unwrap_or_default();
                    own.trim_start_matches('@') == target
                })
            }
            Some("npm" | "pnpm" | "yarn" | "bun") if *name == "package.json" => {
                let package: Option<serde_json::Value> = serde_json::from_str(text).ok();
                package.is_some_and(|package| !package["scripts"][target].is_null())
            }
            _ => false,
        })
    }
}

/// Returns the heads of rules, each with what follows the colon.
fn rules(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines()
        .filter(|line| !line.starts_with([' ', '\t', '#']))
        .filter_map(|line| line.split_once(':'))
}

/// Returns whether a path below a folder exists; none behind a link or in an unreadable folder.
fn exists(folder: &Path, relative: &str) -> Option<bool> {
    let mut path = folder.to_owned();
    let mut names = relative.split('/').peekable();
    while let Some(name) = names.next() {
        path.push(name);
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() && names.peek().is_some() => return None,
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => return None,
            Err(_) => return Some(false),
        }
    }
    Some(true)
}

/// Returns which of these file names tracked files have, in whatever folder.
fn tracked(git: &Repository, root: &Path, names: &HashSet<&str>) -> HashSet<String> {
    let Some(index) = git.index().ok().filter(|_| !names.is_empty()) else {
        return HashSet::new();
    };
    let paths = index
        .iter()
        .filter_map(|entry| String::from_utf8(entry.path).ok());
    let found = paths.filter_map(|path| {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        (names.contains(name.as_str()) && exists(root, &path) == Some(true)).then_some(name)
    });
    found.collect()
}

/// Searches the tracked code for names as whole words, and in paths, because a module has the name of
/// its file. Returns none if a limit was reached first.
fn search(
    git: &Repository,
    root: &Path,
    wanted: &HashSet<&str>,
    limits: &Limits,
) -> Option<HashSet<String>> {
    let mut found = HashSet::new();
    let (mut bytes, until) = (0, Instant::now() + limits.time);
    for entry in git.index().ok()?.iter() {
        if found.len() == wanted.len() {
            break;
        }
        let is_file = [FileMode::Blob, FileMode::BlobExecutable]
            .iter()
            .any(|mode| entry.mode == u32::from(*mode));
        let Ok(path) = String::from_utf8(entry.path) else {
            continue;
        };
        let ending = Path::new(&path)
            .extension()
            .and_then(|ending| ending.to_str());
        if !is_file || ending.is_some_and(|ending| PAGES.contains(&ending)) {
            continue;
        }
        let mut add = |text: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
            found.extend(
                words
                    .filter(|word| wanted.contains(word))
                    .map(str::to_owned),
            );
        };
        // A link on the way leads elsewhere.
        if exists(root, &path) != Some(true) {
            continue;
        }
        let Ok((text, _, true)) = file::read_head(&root.join(&path), MAX_FILE) else {
            continue;
        };
        bytes += text.len();
        if bytes > limits.bytes || Instant::now() > until {
            return None;
        }
        add(&path);
        add(&String::from_utf8_lossy(&text));
    }
    Some(found)
}

#[cfg(test)]
mod tests;
