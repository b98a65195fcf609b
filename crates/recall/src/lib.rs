//! Retrieval: which notes are injected, found or suggested, and why.
//!
//! Pure functions of the index, the notes, the project and the time. Hooks, commands and evaluation
//! call the same functions; the caller records what it shows.

pub mod admission;
pub mod ask;
pub mod branch;
pub mod correction;
pub mod evaluation;
pub mod freshness;
pub mod graph;
pub mod knowledge;
mod last_sessions;
mod meaning;
pub mod note_set;
pub mod novelty;
pub mod pathway;
pub mod project_history;
pub mod prompt;
pub mod rank;
pub mod reason;
pub mod render;
pub mod review;
pub mod search;
pub mod session_start;
pub mod similar;
pub mod stale;
pub mod standing;
pub mod threshold;
pub mod usage_detection;
pub mod usefulness;
pub mod warning;
