//! Reports what the memory contains for a folder, and whether it is healthy.

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
use serde::Serialize;
use serde_json::Value;

use crate::{
    Error, claude_memory,
    context::Context,
    doctor::{self, HealthSummary},
    embedding::InstalledModel,
    pause::{self, Off},
    purge::{LeftPlace, left},
    reflect,
    sync::{self, SyncStatus},
    upkeep::FindingCounts,
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
    /// The size of the journal, if it can be read.
    pub kept: Option<Kept>,
    /// The reason why recording and recall are off here.
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
    /// The findings of the last check after a sync, if any.
    pub upkeep: Option<FindingCounts>,
    /// The journal, if it can be opened.
    pub journal: Option<Journal>,
}

/// The size of the journal.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Kept {
    /// The number of sessions.
    pub sessions: usize,
    /// The size of their rows.
    pub bytes: u64,
}

/// The state for scripts.
#[derive(Serialize)]
pub struct StatusReport<'a> {
    store: String,
    version: &'static str,
    machine_id: String,
    off: bool,
    off_because: Option<&'static str>,
    project: ProjectStatus<'a>,
    #[serde(flatten)]
    counts: &'a NoteTotals,
    sync: Value,
    kept: Option<Kept>,
    undistilled: Option<usize>,
    upkeep: Option<&'a FindingCounts>,
    withheld: &'a [String],
    purge_left: Vec<&'a str>,
    state: &'a HealthSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    meaning: Option<EmbeddingCounts>,
}

#[derive(Serialize)]
struct ProjectStatus<'a> {
    key: &'a str,
    notes: usize,
    by_kind: &'a BTreeMap<&'static str, usize>,
    injected_at_start: usize,
    tokens_at_start: usize,
}

impl Overview {
    /// Collects the state for the session's or the current folder, or for a named project.
    pub fn of_project(context: &Context, named: Option<&str>) -> Result<Self, Error> {
        let index = context.index_as_listed()?;
        let folder = folder(context);
        let project = match named {
            Some(key) => context.project(Some(key)),
            None => context.project_of(&folder),
        };
        let journal = context.journal();
        let records = journal.as_ref();
        let of_folder = named.is_none().then_some(folder.as_path());
        let (injected, block) = at_start(context, &index, records, &project, of_folder)?;
        let kept = records.and_then(|it| {
            let (sessions, bytes) = (it.count_kept().ok()?, it.used_bytes().ok()?);
            Some(Kept { sessions, bytes })
        });
        let upkeep = records.and_then(FindingCounts::load);
        let own_keys = project.own_keys();
        Ok(Self {
            by_kind: index.count_kinds(&project.all_keys())?,
            injected,
            tokens: block.tokens(),
            counts: index.counts()?,
            conflicts: index.count_conflicts()?,
            kept,
            off: pause::here(context),
            sync: SyncStatus::load(context, records),
            vectors: InstalledModel::find(&context.home)
                .map(|_| index.count_embeddings())
                .transpose()?,
            verdict: doctor::verdict(context, &index),
            undistilled: records.and_then(|it| reflect::undistilled(&index, it, &own_keys)),
            withheld: records.map_or_else(Vec::new, |it| sync::withheld(context, it)),
            purge_left: records.map_or_else(Vec::new, |it| left::load(it, context.environment.now)),
            upkeep: upkeep.filter(|found| found.actions + found.decisions > 0),
            journal,
            folder,
            project,
        })
    }

    /// The state for scripts.
    pub fn report(&self, context: &Context) -> StatusReport<'_> {
        let store = context.home.as_named(context.home.root());
        StatusReport {
            store: store.display().to_string(),
            version: env!("CARGO_PKG_VERSION"),
            machine_id: context.machine_id(),
            off: self.off.is_some(),
            off_because: self.off.map(Off::reason),
            project: ProjectStatus {
                key: &self.project.key,
                notes: self.here(),
                by_kind: &self.by_kind,
                injected_at_start: self.injected,
                tokens_at_start: self.tokens,
            },
            counts: &self.counts,
            sync: self.sync.json(),
            kept: self.kept,
            undistilled: self.undistilled,
            upkeep: self.upkeep.as_ref(),
            withheld: &self.withheld,
            purge_left: self.purge_left.iter().map(|it| it.text.as_str()).collect(),
            state: &self.verdict,
            meaning: self.vectors,
        }
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
