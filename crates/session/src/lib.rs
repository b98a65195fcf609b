//! The session: hook payloads, transcripts, and what becomes of them.
//!
//! A payload becomes an [`event`] that is safe to store; the events of a session become
//! observations, a summary and the text of its note. Nothing here touches a disk, a clock, the
//! environment or the network.

pub mod claude_memory;
pub mod event;
pub mod hook;
pub mod intake;
pub mod observe;
pub mod session_note;
pub mod summary;
pub mod transcript;
