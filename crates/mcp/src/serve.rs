//! The life of a server: one thread, one pipe, gone when it closes.

use std::io::Cursor;

use rmcp::{
    ServiceExt as _,
    service::{QuitReason, ServerInitializeError},
    transport::async_rw::AsyncRwTransport,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use crate::{gate::Gate, memory::Memory, server::Server};

/// The longest message that is read, in bytes: more than the largest note takes. What is longer is
/// skipped, up to its line end.
const MAX_MESSAGE_LENGTH: usize = 4 * 1024 * 1024;

/// The server could not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refused what a server needs to wait for messages.
    #[error("cannot wait for messages: {0}")]
    Runtime(#[source] std::io::Error),
    /// The client cannot be talked to.
    #[error("the client and the server do not understand each other: {0}")]
    Protocol(#[source] Box<ServerInitializeError>),
    /// The server broke off.
    #[error("the server broke off: {0}")]
    Broken(#[source] tokio::task::JoinError),
}

/// Serves over stdin and stdout until stdin closes. `read_before` is what was read of stdin already.
///
/// # Errors
/// When the system or the client makes it impossible.
pub fn serve(memory: Memory, read_before: Vec<u8>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::Runtime)?;
    let input = Cursor::new(read_before).chain(tokio::io::stdin());
    let served = runtime.block_on(serve_over(memory, input, tokio::io::stdout()));
    // A thread may still wait for stdin; nobody waits for it.
    runtime.shutdown_background();
    served
}

/// Serves over a pair of streams until the first one ends.
///
/// # Errors
/// When the client makes it impossible.
pub async fn serve_over<R, W>(memory: Memory, input: R, output: W) -> Result<(), Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let pipe = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE_LENGTH);
    let running = match Server::new(memory).serve(Gate::new(pipe)).await {
        Ok(running) => running,
        // The client left before it said who it is.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(Error::Protocol(Box::new(error))),
    };
    match running.waiting().await {
        Ok(QuitReason::JoinError(error)) | Err(error) => Err(Error::Broken(error)),
        Ok(_) => Ok(()),
    }
}
