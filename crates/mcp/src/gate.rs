//! What happens before a client has said who it is.
//!
//! A client opens with `initialize`, or with requests that each say who asks, mostly after a
//! `server/discover`. Any other request before that is answered with "method not found", and the
//! server stays up: a client that tries something newer first gets its answer and tries the older way.
//! The protocol's library would end the server at some of these messages.

use rmcp::{
    ErrorData, RoleServer,
    model::{ClientRequest, ErrorCode, GetMeta as _, JsonRpcMessage, ProtocolVersion},
    service::{RxJsonRpcMessage, TxJsonRpcMessage},
    transport::Transport,
};
use tokio::sync::oneshot::{self, Receiver, Sender};

/// A pipe that lets nothing through before an opening, and tells when it has closed.
pub(crate) struct Gate<T> {
    pipe: T,
    is_open: bool,
    closed: Option<Sender<()>>,
}

impl<T> Gate<T> {
    /// The receiver is told when nothing comes any more, or nobody listens.
    pub(crate) fn new(pipe: T) -> (Self, Receiver<()>) {
        let (closed, is_closed) = oneshot::channel();
        let gate = Self {
            pipe,
            is_open: false,
            closed: Some(closed),
        };
        (gate, is_closed)
    }
}

/// What a request before an opening is.
enum Knock {
    /// It opens.
    Opening,
    /// It may be answered, and opens nothing.
    Question,
    /// It is too early.
    Early,
}

impl Knock {
    fn of(request: &ClientRequest) -> Self {
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

impl<T: Transport<RoleServer>> Transport<RoleServer> for Gate<T> {
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
            // What is no request wants no answer.
            let JsonRpcMessage::Request(asked) = &message else {
                continue;
            };
            match Knock::of(&asked.request) {
                Knock::Opening => {
                    self.is_open = true;
                    return Some(message);
                }
                Knock::Question => return Some(message),
                Knock::Early => {
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
