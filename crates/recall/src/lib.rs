//! What comes back from the store, and why.
//!
//! Pure functions of what the index and the notes say, the project and the time: hooks, commands
//! and evaluation call the same ones, and whoever shows something records it.

pub mod prompt;

pub mod search;

pub mod working_set;

pub mod warning;
