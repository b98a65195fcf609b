//! Distillation: turns many notes into few, by a model or by rule.
//!
//! This crate only proposes; the caller writes, commits and can undo. A model's answer that is not
//! in the requested form is discarded as a whole, and nothing is guessed.

pub mod model;

pub mod prompts;

pub mod window;

pub mod reply;

pub mod reflection;

pub mod merge;

pub mod upkeep;
