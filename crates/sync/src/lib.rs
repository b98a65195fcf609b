//! Syncs the portable notes through a git repository and the user's own remote.
//!
//! Commits, merges and history are done in memory with libgit2, which runs no hook, filter or
//! program. Only fetch and push use the user's own `git`, so that ssh, proxies and credential
//! helpers work as in the user's shell. Notes are merged field by field: git's conflict markers
//! never get into a file, and no conflict stops a sync.

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
mod outgoing;
pub mod purge;
pub mod purge_search;
pub mod remote;
mod repository;
mod stage;
mod sync_run;
mod tree;

pub use self::{
    backend::{Held, HeldDecision, Reached, Settings, State, Synced},
    commit::{Act, Committed, name_in_commits},
    damage::{SetAside, set_aside_repositories},
    error::Error,
    git_backend::{GitBackend, RecordPurge},
    repository::Repository,
    stage::{WITHHELD, is_withheld},
};
