//! The notes as MCP tools, over stdin and stdout.
//!
//! The server sends only answers, opens no port and starts no process. A client starts it, sends
//! requests and closes stdin; then it exits. The caller passes in the store, the project and the
//! clock.
//!
//! Invariants:
//! - Only protocol messages are written to stdout.
//! - Names, parameters and descriptions of tools are the same in every store, so that no note can
//!   speak through them.
//! - Note texts are returned as fields of an answer, without secrets, private regions and invisible
//!   characters.
//! - What a tool writes is an agent's. A tool never changes, hides or approves what belongs to a
//!   person.

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
