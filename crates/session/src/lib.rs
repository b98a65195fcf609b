//! Sessions: hook payloads, transcripts, and what is derived from them.
//!
//! A payload becomes a sanitised [`event`]. The events of a session become observations, a summary
//! and the text of its note. Nothing here uses the disk, the clock, the environment or the network.

pub mod claude_memory;
pub mod declared;
pub mod directive;
pub mod event;
pub mod hook;
pub mod intake;
mod note_parts;
pub mod observe;
mod phrases;
pub mod prompt;
pub mod prose;
pub mod session_note;
pub mod standing;
pub mod summary;
pub mod transcript;
pub mod turn;
