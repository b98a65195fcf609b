//! The handshake: the protocol before a client has introduced itself.
//!
//! A client opens with `initialize`, or with self-describing requests, usually after
//! `server/discover`. Any other earlier request gets "method not found" and the server keeps
//! running, so that a client can try a newer protocol first and fall back. The protocol library
//! would stop the server at some of these messages.

use rmcp::{
    ErrorData, RoleServer,
    model::{ClientRequest, ErrorCode, GetMeta as _, JsonRpcMessage, ProtocolVersion},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::oneshot::{self, Receiver, Sender};

/// A transport that passes on nothing before an opening request, and signals when it has closed.
pub(crate) struct Handshake<T> {
    pipe: T,
    is_open: bool,
    closed: Option<Sender<()>>,
}

impl<T> Handshake<T> {
    /// The receiver completes when the transport has closed or is dropped.
    pub(crate) fn new(pipe: T) -> (Self, Receiver<()>) {
        let (closed, is_closed) = oneshot::channel();
        let handshake = Self {
            pipe,
            is_open: false,
            closed: Some(closed),
        };
        (handshake, is_closed)
    }
}

/// The kind of a request before the opening.
enum FirstRequest {
    /// It opens the connection.
    Opening,
    /// It may be answered but does not open the connection.
    Question,
    /// It is too early.
    Early,
}

impl FirstRequest {
    fn classify(request: &ClientRequest) -> Self {
        match request {
            ClientRequest::InitializeRequest(_) => Self::Opening,
            ClientRequest::DiscoverRequest(_) | ClientRequest::PingRequest(_) => Self::Question,
            request => {
                let says = request.get_meta();
                let is_complete = says
                    .missing_required_keys(&ProtocolVersion::V_2026_07_28)
                    .is_empty();
                let is_known = says
                    .protocol_version()
                    .is_some_and(|version| ProtocolVersion::KNOWN_VERSIONS.contains(&version));
                if is_complete && is_known {
                    Self::Opening
                } else {
                    Self::Early
                }
            }
        }
    }
}

impl<T: Transport<RoleServer>> Transport<RoleServer> for Handshake<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        self.pipe.send(item)
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            let Some(message) = self.pipe.receive().await else {
                self.closed = None;
                return None;
            };
            if self.is_open {
                return Some(message);
            }
            // Only requests get an answer.
            let JsonRpcMessage::Request(asked) = &message else {
                continue;
            };
            match FirstRequest::classify(&asked.request) {
                FirstRequest::Opening => {
                    self.is_open = true;
                    return Some(message);
                }
                FirstRequest::Question => return Some(message),
                FirstRequest::Early => {
                    let method = asked.request.method().to_owned();
                    let error = ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None);
                    let answer =
                        TxJsonRpcMessage::<RoleServer>::error(error, Some(asked.id.clone()));
                    self.pipe.send(answer).await.ok()?;
                }
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.pipe.close().await
    }
}
