//! Everything Anamnesis keeps on disk: the markdown trees, the derived index, this machine's records.
//!
//! Notes are the only truth. The index can be deleted at any time; the records cannot be rebuilt,
//! so nothing that repairs the index ever touches them. The environment is read by the binary and
//! handed in as values.

pub mod citation;
pub mod claude_memory;
pub mod fs;
pub mod index;
pub mod journal;
pub mod notes;
pub mod project;
pub mod purge;
pub mod session_note;
pub mod settings;
pub mod spool;
pub mod usage_log;
pub mod writing;

mod sqlite;
