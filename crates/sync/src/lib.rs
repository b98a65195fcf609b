//! The git repository of the notes that travel, and the user's own remote.
//!
//! Everything local (commits, merges, history) is done in memory with libgit2, which runs no hook, no
//! filter and no program. Only fetch and push are the user's own `git`, so that ssh, proxies and
//! credential helpers work as they do in the user's shell. Notes are merged field by field; no text of
//! git's ever gets into a file, and no conflict stops anything.

mod backend;
mod damage;
mod error;
mod git_backend;

pub mod remote;

pub mod git;

mod repository;
mod tree;

mod folder;

mod join;
mod layout;
mod loose;
pub mod purge;

pub mod history;

pub use self::{
    backend::{Held, Reached, State, SyncBackend, Synced},
    damage::{SetAside, set_aside_repositories},
    error::Error,
    git_backend::{Answer, GitBackend, RecordPurge, Settings},
    repository::{Act, Committed, Repository, name_in_commits},
};
