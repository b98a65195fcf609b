//! The note: its file, id, links, triggers, citations and merge.
//!
//! Nothing here touches a disk, a clock, the environment or the network.

pub mod agent_policy;
pub mod citation;
pub mod draft;
pub mod front_matter;
pub mod id;
pub mod link;
pub mod merge;
pub mod note;
pub mod project_key;
pub mod purge_pattern;
pub mod synced_lines;
pub mod trigger;
