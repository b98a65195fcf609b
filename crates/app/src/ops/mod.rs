//! Operations as types: one file each, with the request, the outcome and the function between them.
//!
//! The command line and its help, `--json`, and the tool with its schemas are derived from these
//! types. [`Context`](crate::context::Context) is who asks: it decides whether a change is written or
//! proposed, who signs it, and when it is committed.

pub mod amend;
pub mod connect;
pub mod get;
pub mod list;
pub mod note;
pub mod pathway;
pub mod reflect;
pub mod review;
pub mod search;
pub mod stats;
pub mod status;
pub mod sync;
pub mod task;
pub mod timeline;
pub mod write;
pub mod written;

/// The default of a parameter, as `serde` takes it.
const fn default_of<const VALUE: usize>() -> usize {
    VALUE
}
