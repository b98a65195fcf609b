//! The notes as tools of a model: an MCP server over a pipe.
//!
//! It says nothing of its own accord, opens no port and starts no process. A client starts it, asks,
//! and closes the pipe; then it ends. Whoever calls the library hands it the store, the project and
//! the clock.
//!
//! Invariants: nothing but answers of the protocol is written; what a tool is called, what it takes
//! and what it is for is the same in every store, so that no note can speak through it; what notes say
//! goes out as fields of an answer, without secrets, private regions and signs that cannot be seen; what
//! a tool writes is an agent's, and changes, hides or approves nothing that is a person's.

mod serve;

mod gate;

mod server;

mod tool;

mod tools;

mod resources;

mod note;

mod memory;

mod write;

mod host;

#[cfg(test)]
mod tests;

pub use self::{
    host::{Host, Standing, Synced, Unable},
    memory::{LastLook, Memory},
    serve::{Error, serve, serve_over},
};
