//! Searches everything that this program writes for notes or a text.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anamnesis_note::{note::Scope, purge_pattern::PurgePattern};
use anamnesis_store::{
    fs::{
        file,
        home::{Home, is_real_folder},
    },
    journal::{Journal, Mentions},
    notes::Notes,
    purge::{self as files, Places},
};
use anamnesis_sync::{Repository, purge::Purge, purge_search::Occurrences};

use super::{TIMEOUT, masked_files, refused};
use crate::{Error, backup, context::Context, format::count, project_history};

/// The most commits that are named.
const MAX_COMMITS: usize = 5;

/// The size limit for a file that is searched, in bytes.
const MAX_LENGTH: usize = 256 * 1024 * 1024;

/// The places of notes or of a text.
#[derive(Debug, Default)]
pub struct FoundText {
    /// The files of the store.
    pub files: Places,
    /// The rows of the journal.
    pub records: Mentions,
    /// The database files, whose free pages may have the text.
    pub databases: BTreeSet<String>,
    /// The git repository.
    pub history: Occurrences,
    /// The indexed commits of projects, by id.
    pub commits: Vec<String>,
    /// The stores that a restore kept aside.
    pub former: Vec<PathBuf>,
}

impl FoundText {
    /// Returns which indexed commits have it, if any do.
    pub(super) fn commits_text(&self) -> Option<String> {
        let number = count(self.commits.len(), "indexed commit");
        let named = self.commits.chunks(MAX_COMMITS).next()?;
        let named: Vec<&str> = named.iter().filter_map(|id| id.get(..7)).collect();
        let more = if self.commits.len() > MAX_COMMITS {
            ", …"
        } else {
            ""
        };
        Some(format!("{number} of a project: {}{more}", named.join(", ")))
    }

    fn is_empty(&self) -> bool {
        let Places { notes, files, left } = &self.files;
        notes.is_empty()
            && files.is_empty()
            && left.is_empty()
            && self.databases.is_empty()
            && self.commits.is_empty()
            && self.history.is_empty()
    }
}

/// Searches the store, its databases and repository, and the stores that a restore kept aside.
pub(super) fn search(
    context: &Context,
    journal: Option<&Journal>,
    purge: &Purge,
) -> Result<FoundText, Error> {
    let mut found = search_store(context, purge)?;
    if let (Some(journal), Some(needle)) = (journal, &purge.needle) {
        found.records = journal.mentions(needle)?;
    }
    for former in former_stores(context) {
        let has_note = purge.ids.iter().any(|id| {
            let path = former.notes.find(*id);
            former.notes.trashed(*id).is_some()
                || path.is_some_and(|path| !former.notes.is_forgotten(path))
        });
        // What cannot be searched may have it.
        let has_text = search_store(&former, purge).is_ok_and(|found| found.is_empty());
        if has_note || !has_text {
            found.former.push(former.home.root().to_owned());
        }
    }
    Ok(found)
}

fn search_store(context: &Context, purge: &Purge) -> Result<FoundText, Error> {
    let failed = |error: anamnesis_sync::Error| Error::caused_by(error).hint("anamnesis doctor");
    let machine = context.machine_id();
    let repository = Repository::open(&context.home, &machine, context.environment.now);
    let history = match repository.map_err(failed)? {
        Some(repository) => repository.occurrences(purge).map_err(failed)?,
        None => Occurrences::default(),
    };
    let Some(needle) = &purge.needle else {
        return Ok(FoundText {
            history,
            ..FoundText::default()
        });
    };
    let mut files = files::find(&context.home, needle, masked_files(purge)).map_err(refused)?;
    for tree in linked_work_trees(&context.home) {
        // What cannot be read is named with the tree.
        let (_, paths) = file::below(&tree).unwrap_or_default();
        let paths = paths.iter().filter(|path| has_text(path, needle));
        files.left.extend(paths.map(|path| context.shown(path)));
    }
    Ok(FoundText {
        files,
        databases: databases_with(&context.home, needle),
        commits: project_history::commits_with(context, needle),
        history,
        ..FoundText::default()
    })
}

/// The work trees that `git worktree add` linked to the repository of the notes.
pub(super) fn linked_work_trees(home: &Home) -> Vec<PathBuf> {
    let folders = file::entries(&home.tree(Scope::Portable).join(".git/worktrees"));
    let tree_of = |folder: PathBuf| {
        let named = fs::read_to_string(folder.join("gitdir")).ok()?;
        let link = PathBuf::from(named.trim_end());
        // Any other folder may be named there. That of a work tree names the repository in turn.
        let back = fs::read_to_string(&link).ok()?;
        let back = back.strip_prefix("gitdir: ")?.trim_end();
        let is_linked = dunce::canonicalize(back).ok()? == dunce::canonicalize(folder).ok()?;
        link.parent().filter(|_| is_linked).map(Path::to_owned)
    };
    folders.filter_map(|entry| tree_of(entry.path())).collect()
}

/// The stores that a restore kept aside, or left incomplete.
pub(super) fn former_stores(context: &Context) -> Vec<Context> {
    let root = context.home.root();
    let folder = root.parent().and_then(|parent| fs::read_dir(parent).ok());
    let is_former = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        is_real_folder(path) && backup::is_beside(root, &name)
    };
    let paths = folder.into_iter().flatten().flatten().map(|it| it.path());
    let mut paths: Vec<PathBuf> = paths.filter(is_former).collect();
    paths.sort();
    let contexts = paths.into_iter().map(|path| {
        let home = Home::new(path);
        Context {
            notes: Notes::new(home.clone(), TIMEOUT),
            home,
            ..context.clone()
        }
    });
    contexts.collect()
}

/// The databases whose files contain the text, also in free pages.
fn databases_with(home: &Home, needle: &PurgePattern) -> BTreeSet<String> {
    let files = [home.journal(), home.index()]
        .into_iter()
        .flat_map(|path| ["", "-wal"].map(|suffix| file::with_suffix(&path, suffix)));
    files
        .filter(|path| has_text(path, needle))
        .map(|path| home.relative(&path))
        .collect()
}

/// Returns whether a file contains a text.
pub(super) fn has_text(path: &Path, needle: &PurgePattern) -> bool {
    file::read_head(path, MAX_LENGTH).is_ok_and(|(bytes, ..)| needle.is_in(&bytes))
}
