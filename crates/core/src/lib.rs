//! The vocabulary of Anamnesis: text in, text out.
//!
//! Nothing here touches a disk, a clock, the environment or the network. Modules stand in the
//! order in which a session passes through them: its transcript is read and made safe to keep, its
//! summary becomes a note, the note a file, and chosen notes the text that a session starts with.

pub mod hook;

pub mod intake;

pub mod record;

pub mod transcript;

pub mod clean;

pub mod privacy;

pub mod echo;

pub mod redact;

pub mod needle;

mod clip;
pub mod sanitize;

pub mod observe;

pub mod glob;

pub mod trigger;

pub mod capture;

pub mod summary;

pub mod project;

pub mod id;

pub mod note;

pub mod link;
pub mod terms;

pub mod draft;

pub mod guard;

pub mod agent;

pub mod merge;

pub mod receipt;

pub mod render;

pub mod yaml;

pub mod native;

pub mod reference;
