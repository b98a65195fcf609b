//! From what happened to what is known: many notes become few, by a model or by rule.
//!
//! Everything here proposes; whoever calls writes, commits, and can take it back. Nothing of a note is
//! made up where an answer is not what was asked for: it is thrown away as a whole.

pub mod model;

pub mod prompts;

pub mod window;

pub mod reply;

pub mod reflection;

pub mod merge;

pub mod upkeep;
