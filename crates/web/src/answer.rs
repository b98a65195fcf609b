//! Answers and their headers.

use std::{
    pin::Pin,
    task::{Context as TaskContext, Poll},
};

use hyper::{
    Response, StatusCode,
    body::{Body, Bytes, Frame, SizeHint},
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

/// The response of a handler.
pub(crate) enum PageResponse {
    /// A page.
    Page(StatusCode, Markup),
    /// The browser goes to another page, after a write.
    See(String),
    /// An embedded file and its type.
    Asset(&'static str, &'static str),
    /// The event stream.
    Events(mpsc::Receiver<Bytes>),
    /// The address has no such method.
    WrongMethod(&'static str),
}

/// The body of an answer: a text, or events until the browser closes the page.
pub(crate) enum Content {
    /// A text, sent once.
    Text(Option<Bytes>),
    /// Events.
    Events(mpsc::Receiver<Bytes>),
}

impl Body for Content {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut TaskContext<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let data = match &mut *self {
            Self::Text(text) => Poll::Ready(text.take()),
            Self::Events(events) => events.poll_recv(task),
        };
        data.map(|data| data.map(|data| Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Text(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Text(text) => {
                let length = text.as_ref().map_or(0, Bytes::len);
                SizeHint::with_exact(u64::try_from(length).unwrap_or(u64::MAX))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}

impl PageResponse {
    /// Returns the response with the headers that every answer has.
    pub(crate) fn into_response(self) -> Response<Content> {
        let (status, kind, content) = match self {
            Self::Page(status, page) => (status, HTML, text(page.into_string())),
            Self::Asset(kind, asset) => (StatusCode::OK, kind, text(asset)),
            Self::Events(events) => (StatusCode::OK, "text/event-stream", Content::Events(events)),
            Self::See(path) => {
                let mut response = headed(StatusCode::SEE_OTHER, PLAIN, text(""));
                if let Ok(path) = HeaderValue::from_str(&path) {
                    response.headers_mut().insert(LOCATION, path);
                }
                return response;
            }
            Self::WrongMethod(allowed) => {
                let status = StatusCode::METHOD_NOT_ALLOWED;
                let mut response = headed(status, PLAIN, text("this address has another method\n"));
                let allowed = HeaderValue::from_static(allowed);
                response.headers_mut().insert(ALLOW, allowed);
                return response;
            }
        };
        headed(status, kind, content)
    }
}

const HTML: &str = "text/html; charset=utf-8";
const PLAIN: &str = "text/plain; charset=utf-8";

fn text(text: impl Into<Bytes>) -> Content {
    Content::Text(Some(text.into()).filter(|text| !text.is_empty()))
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

/// Puts the addresses of an answer below the folder of all addresses.
pub(crate) fn below(mut response: Response<Content>, base: &str) -> Response<Content> {
    let headers = response.headers_mut();
    if let Some(path) = headers.get(LOCATION).and_then(|path| path.to_str().ok())
        && let Ok(path) = HeaderValue::from_str(&format!("{base}{path}"))
    {
        headers.insert(LOCATION, path);
    }
    let is_page = headers.get(CONTENT_TYPE).is_some_and(|kind| kind == HTML);
    if let Content::Text(Some(page)) = response.body_mut()
        && is_page
    {
        let mut text = String::from_utf8_lossy(page).into_owned();
        // In a text, a quotation mark is an entity.
        for before in ["href=\"", "src=\"", "action=\"", "preview=\"", "\"0;url="] {
            text = text.replace(&format!("{before}/"), &format!("{before}{base}/"));
        }
        *page = text.into();
    }
    response
}

/// Returns the answer to a refused request. It tells nothing about the server.
pub(crate) fn refused(error: AccessError) -> Response<Content> {
    let mut response = Response::new(Content::Text(None));
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
pub(crate) fn entered(path: &str, cookie: &str) -> Response<Content> {
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
    let mut response = headed(StatusCode::OK, HTML, text(page.into_string()));
    if let Ok(cookie) = HeaderValue::from_str(cookie) {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}
