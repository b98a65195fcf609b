//! What comes back from the store, and why.
//!
//! Pure functions of what the index and the notes say, the project and the time: hooks, commands
//! and evaluation call the same ones, and whoever shows something records it.

pub mod prompt;

pub mod rank;

pub mod search;

pub mod gate;

pub mod graph;

pub mod selection;

pub mod ask;

pub mod pathway;

pub mod similar;

pub mod novelty;

pub mod admission;

pub mod review;

pub mod working_set;

pub mod warning;

pub mod uses;

pub mod usefulness;

pub mod learned;

pub mod freshness;

pub mod stale;

pub mod knowledge;

pub mod mining;

pub mod evaluation;
