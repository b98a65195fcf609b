//! The operations of Anamnesis: what a command, hook or tool does, independent of its interface.
//!
//! An operation takes a [`context::Context`] and returns a typed outcome or an [`Error`].
//! It prints nothing. Only [`environment`] reads the process's environment.

pub mod auto_reflect;
pub mod backfill;
pub mod backup;
pub mod batch;
pub mod capture;
pub mod citation_check;
pub mod claude_memory;
pub mod client;
pub mod context;
pub mod deferred;
pub mod diff;
pub mod doctor;
pub mod dry_run;
pub mod edit;
pub mod embedding;
pub mod environment;
pub mod error;
pub mod evaluation;
pub mod evaluation_set;
pub mod event_filter;
pub mod export;
pub mod feedback;
pub mod file_pointer;
pub mod forget;
pub mod format;
pub mod found;
pub mod history;
pub mod host_setup;
pub mod import;
pub mod interrupts;
pub mod journal_repair;
pub mod learn;
pub mod machines;
pub mod model;
pub mod ops;
pub mod pause;
pub mod project;
pub mod prove;
pub mod purge;
pub mod python_version;
pub mod recall;
pub mod reflect;
pub mod remember;
pub mod remote;
pub mod review;
pub mod session;
pub mod settings;
pub mod setup;
pub mod spawn;
pub mod spool;
pub mod status;
pub mod suggestion;
pub mod summary;
pub mod sync;
pub mod terminal_command;
pub mod tool_caller;
pub mod tool_hooks;
pub mod undo;
pub mod upkeep;
pub mod why;
pub mod write;

pub use error::Error;
