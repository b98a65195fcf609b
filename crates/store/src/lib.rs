//! All files of Anamnesis: the markdown trees, the derived index, this machine's journal.
//!
//! Notes are the source of truth. The index can be deleted at any time. The journal cannot be
//! rebuilt, so no repair of the index touches it. The binary reads the environment and passes values
//! in.

pub mod citation;
pub mod claude_memory;
pub mod foreign_database;
pub mod former_usage;
pub mod fs;
pub mod index;
pub mod journal;
pub mod notes;
pub mod project;
pub mod project_history;
pub mod purge;
pub mod session_note;
pub mod settings;
pub mod spool;
pub mod synced_lines;

mod sqlite;
