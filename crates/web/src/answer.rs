//! Answers and their headers.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context as TaskContext, Poll},
};

use http_body_util::{Either, Full};
use hyper::{
    Response, StatusCode,
    body::{Body, Bytes, Frame},
    header::{
        ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, LOCATION,
        REFERRER_POLICY, RETRY_AFTER, SET_COOKIE, X_CONTENT_TYPE_OPTIONS,
    },
};
use maud::Markup;
use tokio::sync::mpsc;

use crate::guard::{self, AccessError};

/// The content security policy: a page may load only its own style, script and requests. `form-action`
/// and `base-uri` do not follow `default-src`.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
                      connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// The response of a page's function.
pub(crate) enum PageResponse {
    /// A page.
    Page(StatusCode, Markup),
    /// The browser goes to another page, after a write.
    See(String),
}

/// The body of an answer: a text, or events until the browser closes the page.
pub(crate) type Content = Either<Full<Bytes>, EventStream>;

/// The messages of an event stream.
pub(crate) struct EventStream(mpsc::Receiver<Bytes>);

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let message = self.0.poll_recv(task);
        message.map(|message| message.map(|message| Ok(Frame::data(message))))
    }
}

impl PageResponse {
    /// Returns the response with the headers that every answer has, and its addresses below `base`, the
    /// folder of all addresses.
    pub(crate) fn into_response(self, base: &str) -> Response<Content> {
        match self {
            Self::Page(status, page) => headed(status, HTML, text(below(page, base))),
            Self::See(path) => {
                let mut response = headed(StatusCode::SEE_OTHER, PLAIN, text(""));
                if let Ok(path) = HeaderValue::from_str(&format!("{base}{path}")) {
                    response.headers_mut().insert(LOCATION, path);
                }
                response
            }
        }
    }
}

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

fn text(text: impl Into<Bytes>) -> Content {
    Either::Left(Full::new(text.into()))
}

fn headed(status: StatusCode, kind: &'static str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in [
        (CONTENT_TYPE, kind),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        // `no-referrer` would make browsers send `Origin: null` with our own forms.
        (REFERRER_POLICY, "same-origin"),
        (CACHE_CONTROL, "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    for (name, value) in [
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

/// Puts the addresses of a page below the folder of all addresses.
fn below(page: Markup, base: &str) -> String {
    let mut text = page.into_string();
    // In a text, a quotation mark is an entity.
    for before in ["href=\"", "src=\"", "action=\"", "preview=\"", "\"0;url="] {
        text = text.replace(&format!("{before}/"), &format!("{before}{base}/"));
    }
    text
}

/// Returns the answer with an embedded file of this type.
pub(crate) fn asset(kind: &'static str, asset: &'static str) -> Response<Content> {
    headed(StatusCode::OK, kind, text(asset))
}

/// Returns the answer with an event stream.
pub(crate) fn events(events: mpsc::Receiver<Bytes>) -> Response<Content> {
    let events = Either::Right(EventStream(events));
    headed(StatusCode::OK, "text/event-stream", events)
}

/// Returns the answer to a request with a method that its address does not have.
pub(crate) fn wrong_method(allowed: &'static str) -> Response<Content> {
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let mut response = plain(status, "this address has another method\n");
    let allowed = HeaderValue::from_static(allowed);
    response.headers_mut().insert(ALLOW, allowed);
    response
}

/// Returns the answer to a refused request. It tells nothing about the server.
pub(crate) fn refused(error: AccessError) -> Response<Content> {
    let mut response = Response::new(text(""));
    match error {
        AccessError::Foreign => *response.status_mut() = StatusCode::FORBIDDEN,
        AccessError::TooMany => {
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            let seconds = HeaderValue::from(guard::RETRY_AFTER.as_secs());
            response.headers_mut().insert(RETRY_AFTER, seconds);
        }
    }
    response
}

/// Returns the answer with a status and a line of text.
pub(crate) fn plain(status: StatusCode, line: &'static str) -> Response<Content> {
    headed(status, PLAIN, text(line))
}

/// Returns the page that sets the cookie and goes on. A redirect would not do: after a click on
/// another site's page, browsers send no strict cookie along a redirect.
pub(crate) fn entered(path: &str, cookie: &str, base: &str) -> Response<Content> {
    let page = maud::html! {
        (maud::DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="refresh" content={ "0;url=" (path) };
                title { "Anamnesis" }
            }
            body { a href=(path) { "Open the memory" } }
        }
    };
    let mut response = headed(StatusCode::OK, HTML, text(below(page, base)));
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
