//! Answers one request.

use std::{
    io,
    sync::{Arc, Mutex},
    time::Instant,
};

use anamnesis_app::{
    context::{Context, TIMEOUT},
    embedding::QueryEncoder,
};
use http_body_util::{BodyExt as _, Limited};
use hyper::{
    Method, Request, Response, StatusCode,
    body::{Body, Bytes},
    header::CONTENT_TYPE,
    http::request::Parts,
};

use crate::{
    answer::{self, Content},
    guard::{Entry, Guard, TOKEN, lock},
    kept::Kept,
    layout,
    routes::{self, Act},
    server::Options,
    streams::Streams,
    visit::{Answered, Params, Visit},
};

/// The largest form, in bytes. A note has at most 1 MiB of text, and encoding can triple it.
const MAX_FORM: usize = 4 * 1024 * 1024;

/// The longest address, in bytes.
const MAX_ADDRESS: usize = 8 * 1024;

/// The state that all requests share.
pub(crate) struct Site {
    /// The store.
    pub(crate) context: Context,
    /// Whether every write is refused.
    pub(crate) is_read_only: bool,
    /// The pages that are open.
    pub(crate) streams: Arc<Streams>,
    /// The rows that take long to find.
    kept: Arc<Kept>,
    encoder: Arc<QueryEncoder>,
    guard: Guard,
    /// When a page was last known to be open.
    alive_at: Mutex<Instant>,
}

impl Site {
    pub(crate) fn new(context: Context, port: u16, is_read_only: bool) -> io::Result<Self> {
        Ok(Self {
            // An agent reads like a person, but a page must not give it a person's rights.
            is_read_only: is_read_only || context.environment.is_agent,
            context,
            streams: Arc::default(),
            kept: Arc::default(),
            encoder: Arc::default(),
            guard: Guard::new(port).map_err(io::Error::other)?,
            alive_at: Mutex::new(Instant::now()),
        })
    }

    /// Returns a page's address with the token.
    pub(crate) fn address(&self, path: &str) -> String {
        self.guard.address(path)
    }

    /// Records that a page is open.
    pub(crate) fn is_alive(&self) {
        *lock(&self.alive_at) = Instant::now();
    }

    /// Returns whether the last page was closed for long enough.
    pub(crate) fn has_ended(&self, options: &Options) -> bool {
        let limit = if self.streams.had_any() {
            options.grace
        } else {
            options.idle
        };
        !self.streams.any() && lock(&self.alive_at).elapsed() >= limit
    }

    /// Answers a request. Every address is below a folder that nobody can guess.
    pub(crate) async fn answer<B>(self: Arc<Self>, request: Request<B>) -> Response<Content>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (head, body) = request.into_parts();
        if head.uri.to_string().len() > MAX_ADDRESS {
            return answer::plain(StatusCode::URI_TOO_LONG, "the address is too long\n");
        }
        let query = Params::parse(head.uri.query().unwrap_or_default().as_bytes());
        let token = query.get(TOKEN);
        let entry = (self.guard).check(&head.method, &head.uri, &head.headers, token);
        match entry {
            Err(refusal) => return answer::refused(refusal),
            Ok(Entry::ByToken) => {
                self.is_alive();
                let path = self.guard.below(head.uri.path());
                let path = path.filter(|path| routes::find(path).is_some());
                let path = path.unwrap_or("/");
                let guard = &self.guard;
                return answer::entered(path, &guard.set_cookie(), &guard.base);
            }
            Ok(Entry::ByCookie) => self.is_alive(),
        }
        let path = self.guard.below(head.uri.path()).unwrap_or_default();
        let Some((route, id)) = routes::find(path) else {
            return answer::plain(StatusCode::NOT_FOUND, "there is no such page\n");
        };
        let is_form = matches!(route.act, Act::Write(_) | Act::Ask(_));
        if is_form != (head.method == Method::POST)
            || ![Method::GET, Method::HEAD, Method::POST].contains(&head.method)
        {
            let allowed = if is_form { "POST" } else { "GET, HEAD" };
            return answer::wrong_method(allowed);
        }
        let show = match route.act {
            Act::Asset(kind, asset) => return answer::asset(kind, asset),
            Act::Events => return self.events(),
            Act::Write(_) if self.is_read_only => {
                return answer::plain(StatusCode::FORBIDDEN, "this viewer cannot change notes\n");
            }
            Act::Page(show) | Act::Ask(show) | Act::Write(show) => show,
        };
        let mut form = Params::default();
        if is_form {
            form = match read_form(&head, body).await {
                Ok(form) => form,
                Err(refused) => return refused,
            };
        }
        let (path, id) = (path.to_owned(), id.to_owned());
        let site = Arc::clone(&self);
        let done = tokio::task::spawn_blocking(move || site.run(show, path, id, query, form));
        done.await.unwrap_or_else(|_| {
            answer::plain(StatusCode::INTERNAL_SERVER_ERROR, "the page failed\n")
        })
    }

    /// Opens an event stream.
    fn events(&self) -> Response<Content> {
        match self.streams.add() {
            Some(events) => answer::events(events),
            None => answer::plain(StatusCode::SERVICE_UNAVAILABLE, "too many pages are open\n"),
        }
    }

    /// Runs a page's function, which reads the disk.
    fn run(
        &self,
        show: fn(&Visit) -> Answered,
        path: String,
        id: String,
        query: Params,
        form: Params,
    ) -> Response<Content> {
        // The settings and the time may have changed since the last page.
        let context = Context::new(self.context.environment.at_present(), TIMEOUT);
        let visit = match context {
            Ok(context) => Visit {
                navigation: routes::navigation().collect(),
                is_known: |path| routes::find(path).is_some(),
                context,
                is_read_only: self.is_read_only,
                kept: Arc::clone(&self.kept),
                encoder: Arc::clone(&self.encoder),
                path,
                id,
                query,
                form,
            },
            Err(_) => {
                return answer::plain(
                    StatusCode::INTERNAL_SERVER_ERROR,
                    "the store cannot be opened: run `anamnesis doctor`\n",
                );
            }
        };
        show(&visit)
            .unwrap_or_else(|error| layout::failed(&visit, &error))
            .into_response(&self.guard.base)
    }
}

/// Reads a form, within its limit.
async fn read_form<B>(head: &Parts, body: B) -> Result<Params, Response<Content>>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let kind = head.headers.get(CONTENT_TYPE);
    if kind.is_none_or(|kind| kind != "application/x-www-form-urlencoded") {
        let status = StatusCode::UNSUPPORTED_MEDIA_TYPE;
        return Err(answer::plain(status, "a write is a form\n"));
    }
    let bytes = Limited::new(body, MAX_FORM).collect().await;
    bytes
        .map(|bytes| Params::parse(&bytes.to_bytes()))
        .map_err(|_| {
            let status = StatusCode::PAYLOAD_TOO_LARGE;
            answer::plain(status, "the form is too large or broke off\n")
        })
}
