//! Decides which requests are answered. All others get 403 and nothing else.

use std::{
    sync::Mutex,
    time::{Duration, Instant},
};

use hyper::{
    HeaderMap, Method, Uri,
    header::{COOKIE, HOST, HeaderName, HeaderValue, ORIGIN},
};

/// How many requests are answered at once, and how many more per second.
const BURST: f64 = 200.0;
const PER_SECOND: f64 = 50.0;

/// The query parameter with the token.
pub(crate) const TOKEN: &str = "token";

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AccessError {
    /// It does not come from a page of this server.
    Foreign,
    /// There are too many.
    TooMany,
}

/// A request that is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Entry {
    /// It has the token, which is spent now. The answer sets the cookie.
    ByToken,
    /// It has the cookie.
    ByCookie,
}

/// The secrets of one server.
pub(crate) struct Guard {
    /// `127.0.0.1:PORT`, the only host that is served. Another name may point here after DNS
    /// rebinding.
    pub(crate) host: String,
    /// The folder of all addresses. Other servers on this machine do not see its cookie.
    pub(crate) base: String,
    /// `None` after its use.
    token: Mutex<Option<String>>,
    cookie: String,
    bucket: Mutex<(f64, Instant)>,
}

impl Guard {
    pub(crate) fn new(port: u16) -> Result<Self, getrandom::Error> {
        Ok(Self {
            host: format!("127.0.0.1:{port}"),
            base: format!("/{}", secret::<16>()?),
            token: Mutex::new(Some(secret::<32>()?)),
            // Browsers send a cookie to every port, so the name has the port.
            cookie: format!("anamnesis_{port}={}", secret::<32>()?),
            bucket: Mutex::new((BURST, Instant::now())),
        })
    }

    /// Returns a page's address with the token.
    pub(crate) fn address(&self, path: &str) -> String {
        let token = lock(&self.token).clone().unwrap_or_default();
        format!("http://{}{}{path}?{TOKEN}={token}", self.host, self.base)
    }

    /// Returns the value of `Set-Cookie`.
    pub(crate) fn set_cookie(&self) -> String {
        format!(
            "{}; Path={}/; HttpOnly; SameSite=Strict",
            self.cookie, self.base
        )
    }

    /// Checks a request. `token` is the one in its address.
    pub(crate) fn check(
        &self,
        method: &Method,
        uri: &Uri,
        headers: &HeaderMap,
        token: Option<&str>,
    ) -> Result<Entry, AccessError> {
        let is_for_us = uri.authority().is_none() && only(headers, &HOST) == Some(&self.host);
        let is_below = self.below(uri.path()).is_some();
        if !is_for_us || !is_below || !self.is_own_origin(method, headers) {
            return Err(AccessError::Foreign);
        }
        if let Some(token) = token.filter(|_| *method == Method::GET) {
            let mut unspent = lock(&self.token);
            let is_right = unspent
                .as_deref()
                .is_some_and(|right| is_same(right, token));
            if !is_right {
                return Err(AccessError::Foreign);
            }
            *unspent = None;
            return Ok(Entry::ByToken);
        }
        // Another site's page may show a link, but its requests do not come from the person.
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        let is_own_page = matches!(site, None | Some(b"same-origin" | b"none"));
        if !is_own_page || !self.has_cookie(headers) {
            return Err(AccessError::Foreign);
        }
        if self.is_over_rate() {
            return Err(AccessError::TooMany);
        }
        Ok(Entry::ByCookie)
    }

    /// Returns a path without the folder of all addresses.
    pub(crate) fn below<'a>(&self, path: &'a str) -> Option<&'a str> {
        let (base, _) = path.split_at_checked(self.base.len())?;
        let path = &path[base.len()..];
        (is_same(&self.base, base) && path.starts_with('/')).then_some(path)
    }

    /// Returns whether the origin is this server's. A write has to name it.
    fn is_own_origin(&self, method: &Method, headers: &HeaderMap) -> bool {
        let own = format!("http://{}", self.host);
        match only(headers, &ORIGIN) {
            Some(origin) => origin == own,
            None => *method != Method::POST && !headers.contains_key(ORIGIN),
        }
    }

    fn has_cookie(&self, headers: &HeaderMap) -> bool {
        let lines = headers.get_all(COOKIE).iter();
        lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .any(|cookie| is_same(&self.cookie, cookie.trim()))
    }

    fn is_over_rate(&self) -> bool {
        let mut bucket = lock(&self.bucket);
        let (left, at) = *bucket;
        let left = (left + at.elapsed().as_secs_f64() * PER_SECOND).min(BURST);
        let is_over = left < 1.0;
        *bucket = (if is_over { left } else { left - 1.0 }, Instant::now());
        is_over
    }
}

/// Returns the value of a header that occurs once.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

/// Compares two secrets in a time that does not depend on where they differ.
fn is_same(right: &str, given: &str) -> bool {
    let pairs = right.bytes().zip(given.bytes());
    right.len() == given.len() && pairs.fold(0, |sum, (a, b)| sum | (a ^ b)) == 0
}

/// Returns so many random bytes as text.
pub(crate) fn secret<const LENGTH: usize>() -> Result<String, getrandom::Error> {
    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Locks a value that no panic can leave half changed.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// How long a browser waits after 429.
pub(crate) const RETRY_AFTER: Duration = Duration::from_secs(1);
