//! The git repository of the notes that travel, and the user's own remote.
//!
//! Everything local (commits, merges, history) is done in memory with libgit2, which runs no hook, no
//! filter and no program. Only fetch and push are the user's own `git`, so that ssh, proxies and
//! credential helpers work as they do in the user's shell. Notes are merged field by field; no text of
//! git's ever gets into a file, and no conflict stops anything.

mod apply;
mod backend;
mod commit;
mod damage;
mod error;
mod folder;
pub mod git;
mod git_backend;
mod git_folder;
mod git_index;
pub mod history;
mod join;
mod layout;
mod loose;
pub mod purge;
pub mod remote;
mod repository;
mod stage;
mod sync_run;
mod tree;

pub use self::{
    backend::{Answer, Held, Reached, Settings, State, SyncBackend, Synced},
    commit::{Act, Committed, name_in_commits},
    damage::{SetAside, set_aside_repositories},
    error::Error,
    git_backend::{GitBackend, RecordPurge},
    repository::Repository,
};
