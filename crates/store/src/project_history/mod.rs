//! Reads a project's git repository: indexes its commits for search and tracks its branches.
//!
//! Only the deferred process reads a repository, with libgit2, which runs no hook, filter or program.

mod commits;
mod message;
mod repository;

pub use self::{
    commits::{Commits, Error, IndexedCommit, Posting, ProjectCommit},
    repository::ProjectRepository,
};
