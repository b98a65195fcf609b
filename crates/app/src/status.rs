//! What the memory contains for a folder, and whether it is healthy.

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use anamnesis_recall::{
    render::{self, Block},
    session_start::{self, DEFAULT_K, Request},
};
use anamnesis_store::{
    index::{EmbeddingCounts, Index, NoteTotals},
    journal::Journal,
    project::Project,
};

use crate::{
    Error, claude_memory,
    context::Context,
    doctor::{self, HealthSummary},
    embedding::InstalledModel,
    pause::{self, Off},
    purge::{LeftPlace, left},
    reflect,
    sync::{self, SyncStatus},
};

/// The state of the memory in one folder.
pub struct Overview {
    /// The folder.
    pub folder: PathBuf,
    /// Its project.
    pub project: Project,
    /// The number of the project's notes by kind.
    pub by_kind: BTreeMap<&'static str, usize>,
    /// How many notes a session starts with.
    pub injected: usize,
    /// About how many tokens these take.
    pub tokens: usize,
    /// The numbers of all notes.
    pub counts: NoteTotals,
    /// The number of conflicting texts to decide about.
    pub conflicts: usize,
    /// The numbers of sessions and bytes in the journal, if it can be read.
    pub kept: Option<(usize, u64)>,
    /// What switches recording and recall off here.
    pub off: Option<Off>,
    /// When and with what the notes were synced.
    pub sync: SyncStatus,
    /// How many notes have a vector, if there is an embedding model.
    pub vectors: Option<EmbeddingCounts>,
    /// Whether all is well.
    pub verdict: HealthSummary,
    /// How many sessions can be distilled, if there are many.
    pub undistilled: Option<usize>,
    /// The places that earlier purges could not reach.
    pub purge_left: Vec<LeftPlace>,
    /// Notes that are not committed because of what is in them, in sentences.
    pub withheld: Vec<String>,
    /// The journal, if it can be opened.
    pub journal: Option<Journal>,
}

impl Overview {
    /// Collects the state for the session's or the current folder.
    pub fn load(context: &Context) -> Result<Self, Error> {
        Self::of_project(context, None)
    }

    /// Collects the state, with a named project in place of that of this folder.
    pub fn of_project(context: &Context, named: Option<&str>) -> Result<Self, Error> {
        let index = context.index_as_listed()?;
        let folder = folder(context);
        let project = match named {
            Some(key) => context.project(Some(key)),
            None => context.project_of(&folder),
        };
        let journal = context.journal();
        let of_folder = named.is_none().then_some(folder.as_path());
        let (injected, block) = at_start(context, &index, journal.as_ref(), &project, of_folder)?;
        let kept = journal.as_ref();
        let kept = kept.and_then(|it| Some((it.count_kept().ok()?, it.used_bytes().ok()?)));
        Ok(Self {
            by_kind: index.count_kinds(&project.all_keys())?,
            injected,
            tokens: block.tokens(),
            counts: index.counts()?,
            conflicts: index.count_conflicts()?,
            kept,
            off: pause::here(context),
            sync: SyncStatus::load(context, journal.as_ref()),
            vectors: InstalledModel::find(&context.home)
                .map(|_| index.count_embeddings())
                .transpose()?,
            verdict: doctor::verdict(context, &index),
            undistilled: journal
                .as_ref()
                .and_then(|journal| reflect::undistilled(&index, journal, &project.own_keys())),
            withheld: journal
                .as_ref()
                .map(|journal| sync::withheld(context, journal))
                .unwrap_or_default(),
            purge_left: journal
                .as_ref()
                .map(|journal| left::load(journal, context.environment.now))
                .unwrap_or_default(),
            journal,
            folder,
            project,
        })
    }

    /// The number of the project's notes.
    pub fn here(&self) -> usize {
        self.by_kind.values().sum()
    }
}

/// Returns the session's or the current folder.
pub fn folder(context: &Context) -> PathBuf {
    let folder = context.environment.project_folder.clone();
    folder.or_else(Context::current_folder).unwrap_or_default()
}

/// Returns how many notes a session starts with, and the block that it is given.
pub fn at_start(
    context: &Context,
    index: &Index,
    journal: Option<&Journal>,
    project: &Project,
    folder: Option<&Path>,
) -> Result<(usize, Block), Error> {
    let now = context.environment.now;
    let request = Request {
        project: &project.key,
        also: &project.also,
        k: DEFAULT_K,
        session: None,
        resumed: None,
        folder,
        now,
        had: &claude_memory::copies(journal, &project.key),
        journal,
    };
    let set = session_start::working_set(index, &context.notes, &request)?;
    let injected = set.with_texts().count();
    let block = render::start_block(&set.chosen, &set.said, &set.failing, now, |id| {
        Context::short(index, id)
    });
    Ok((injected, block))
}
