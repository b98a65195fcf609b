//! Everything Anamnesis keeps on disk: the markdown trees, the derived index, this machine's records.
//!
//! Notes are the only truth. The index can be deleted at any time; the records cannot be rebuilt,
//! so nothing that repairs the index ever touches them. The environment is read by the binary and
//! handed in as values.

pub mod home;

pub mod file;

pub mod lock;

pub mod notes;

pub mod index;

pub mod writing;

pub mod cited;

pub mod journal;

pub mod spool;

pub mod log;

pub mod session_note;

pub mod native;

pub mod receipts;

pub mod purge;

pub mod config;

pub mod settings;

pub mod exclude;

pub mod project;

mod sqlite;
