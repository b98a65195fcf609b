//! Runs the server: one thread and one connection, until stdin closes.

use std::{io::Cursor, time::Duration};

use rmcp::{
    ServiceExt as _,
    service::{QuitReason, ServerInitializeError},
    transport::async_rw::AsyncRwTransport,
};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};

use anamnesis_app::{Error, context::Context};

use crate::{handshake::Handshake, server::Server};

/// The longest message that is read, in bytes; more than the largest note needs. Longer messages
/// are skipped up to their line end.
const MAX_MESSAGE_LENGTH: usize = 4 * 1024 * 1024;

/// How long tools may run after the client has left. The last request still gets its answer, but a
/// sync that waits for the network does not keep the process alive.
const GRACE: Duration = Duration::from_millis(500);

/// Serves over stdin and stdout until stdin closes. `read_before` are the bytes that were already
/// read from stdin.
///
/// # Errors
/// The runtime cannot start, the handshake fails, or the server's task panics.
pub fn serve(context: Context, read_before: Vec<u8>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(Error::prefixed("cannot start the async runtime"))?;
    let input = Cursor::new(read_before).chain(tokio::io::stdin());
    let served = runtime.block_on(serve_over(context, input, tokio::io::stdout()));
    // A thread may still block on stdin, so the shutdown does not wait for it.
    runtime.shutdown_background();
    served
}

/// Serves over a pair of streams until the input ends.
async fn serve_over<R, W>(context: Context, input: R, output: W) -> Result<(), Error>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let pipe = AsyncRwTransport::new_server(input, output).with_max_line_length(MAX_MESSAGE_LENGTH);
    let (handshake, closed) = Handshake::new(pipe);
    let running = match Server::new(context).serve(handshake).await {
        Ok(running) => running,
        // The client closed the connection before the handshake.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => {
            let failed = Error::prefixed("the handshake with the client failed");
            return Err(failed(error));
        }
    };
    let ending = tokio::spawn(running.waiting());
    // `Handshake` drops the sender when the transport closes; nothing is ever sent.
    let _ = closed.await;
    match tokio::time::timeout(GRACE, ending).await {
        Ok(Ok(Ok(QuitReason::JoinError(error)) | Err(error)) | Err(error)) => {
            Err(Error::prefixed("the server stopped")(error))
        }
        Ok(Ok(Ok(_))) | Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::tests::caller;

    /// Sends messages, closes the stream and returns the server's answers.
    fn said(messages: &[Value]) -> Vec<Value> {
        let folder = tempfile::tempdir().unwrap();
        let context = caller(folder.path());
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let (mut client, input) = tokio::io::duplex(1 << 20);
            let (output, mut answers) = tokio::io::duplex(1 << 20);
            for message in messages {
                let line = format!("{message}\n");
                client.write_all(line.as_bytes()).await.unwrap();
            }
            drop(client);
            serve_over(context, input, output).await.unwrap();
            let mut text = String::new();
            answers.read_to_string(&mut text).await.unwrap();
            let lines = text.lines().map(serde_json::from_str);
            lines.collect::<Result<_, _>>().unwrap()
        })
    }

    #[test]
    fn nothing_is_passed_on_before_an_opening() {
        let ask = |id: u64, method: &str, meta: &Value| json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": { "_meta": meta } });
        let meta = |version: &str| {
            json!({ "io.modelcontextprotocol/protocolVersion": version,
                    "io.modelcontextprotocol/clientCapabilities": {} })
        };
        let cancelled =
            json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {} });
        let (known, unknown) = (meta("2026-07-28"), meta("1999-01-01"));
        let answers = said(&[
            cancelled.clone(),
            ask(1, "tools/list", &json!({})),
            ask(2, "tools/list", &unknown),
            ask(3, "server/discover", &known),
            cancelled,
            ask(4, "tools/list", &json!({})),
            ask(5, "tools/list", &known),
            ask(6, "no/such/method", &known),
        ]);
        let codes: Vec<Option<i64>> = answers
            .iter()
            .map(|answer| answer["error"]["code"].as_i64())
            .collect();
        let refused = Some(-32_601);
        assert_eq!(codes, [refused, refused, None, refused, None, refused]);
        let ids: Vec<u64> = answers
            .iter()
            .filter_map(|answer| answer["id"].as_u64())
            .collect();
        assert_eq!(ids, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn a_client_that_says_nothing_is_no_fault() {
        assert_eq!(said(&[]), [Value::Null; 0]);
    }
}
