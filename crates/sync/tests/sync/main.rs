//! Machines of one person, joined through a bare repository, by the user's own git; and what they
//! refuse of a remote that means harm.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod after_push;
mod fleet;

mod cycle;
mod damage;
mod folder;
mod held;
mod remotes;
mod texts;
mod trees;
