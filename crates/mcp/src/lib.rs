//! The MCP server: tools and resources for notes, over stdin and stdout.
//!
//! The server sends only answers and opens no port. Git and other slow work run in other processes
//! of the program. A client starts it, sends requests and closes stdin; then it exits. Tools call
//! the operations of `app` with the context that the caller passes in.
//!
//! Invariants:
//! - Only protocol messages are written to stdout.
//! - Names, parameters and descriptions of tools are the same in every store, so that no note can
//!   speak through them.
//! - Note texts are returned as fields of an answer, without secrets, private regions and invisible
//!   characters.
//! - A note that a tool writes is by an agent. A tool never changes, hides or approves a note by a
//!   person.

mod serve;

mod handshake;

mod server;

mod tool;

mod tools;

mod resources;

mod error;

#[cfg(test)]
mod tests;

pub use self::serve::serve;
