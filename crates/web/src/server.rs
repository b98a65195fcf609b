//! Listens on 127.0.0.1 until the last page is closed.

use std::{
    collections::VecDeque,
    convert::Infallible,
    io,
    net::{Ipv4Addr, TcpListener},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use anamnesis_app::context::Context;
use hyper::{StatusCode, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{runtime, task::AbortHandle, time::timeout};

use crate::{events, routes, site::Site};

/// How often the server looks at the store while a page is open, and whether it should end.
pub(crate) const TICK: Duration = Duration::from_millis(500);

/// How many connections are served at once. A browser opens six. A new one replaces the oldest of a
/// stranger.
const MAX_CONNECTIONS: usize = 64;

/// How long a client may take to send the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);

/// The largest head of a request, in bytes.
const MAX_HEAD: usize = 32 * 1024;

/// How long a write may still run after the server has ended.
const LAST_WRITE: Duration = Duration::from_secs(10);

/// How the server runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// The port; 0 for any.
    pub port: u16,
    /// Whether every write is refused.
    pub is_read_only: bool,
    /// When it ends in any case.
    pub keep_for: Option<Duration>,
    /// How long it waits after the last page was closed.
    pub grace: Duration,
    /// How long it waits for the first page, and between pages in a browser without JavaScript.
    pub idle: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            port: 0,
            is_read_only: false,
            keep_for: None,
            grace: Duration::from_secs(20),
            idle: Duration::from_secs(10 * 60),
        }
    }
}

/// A server that listens but does not answer yet.
pub struct Server {
    listener: TcpListener,
    site: Arc<Site>,
    options: Options,
}

impl Server {
    /// Starts to listen.
    ///
    /// # Errors
    /// The port is in use, or the system provides no random numbers.
    pub fn bind(context: Context, options: Options) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port))?;
        listener.set_nonblocking(true)?;
        let port = listener.local_addr()?.port();
        let site = Site::new(context, port, options.is_read_only)?;
        Ok(Self {
            listener,
            site: Arc::new(site),
            options,
        })
    }

    /// Returns the address of a page, with the token that opens it once. `page` is the name of a
    /// page or the full id of a note; `None` if there is no such page.
    pub fn address(&self, page: &str) -> Option<String> {
        let path = routes::path_of(page)?;
        Some(self.site.address(&path))
    }

    /// Answers requests until the last page is closed or the time is over.
    ///
    /// # Errors
    /// The system cannot provide an async runtime.
    pub fn run(self) -> io::Result<()> {
        let runtime = runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(4)
            .build()?;
        let result = runtime.block_on(self.serve());
        runtime.shutdown_timeout(LAST_WRITE);
        result
    }

    async fn serve(self) -> io::Result<()> {
        let Self {
            listener,
            site,
            options,
        } = self;
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut open: VecDeque<(AbortHandle, Arc<AtomicBool>)> = VecDeque::new();
        let started = Instant::now();
        tokio::spawn(events::watch(Arc::clone(&site)));
        loop {
            let is_over = options
                .keep_for
                .is_some_and(|time| started.elapsed() >= time);
            if is_over || site.has_ended(&options) {
                return Ok(());
            }
            let tick = TICK.min(options.grace);
            let stream = match timeout(tick, listener.accept()).await {
                Ok(Ok((stream, _))) => stream,
                // Out of file descriptors: the next connection may succeed.
                Ok(Err(_)) => {
                    tokio::time::sleep(tick).await;
                    continue;
                }
                Err(_) => continue,
            };
            open.retain(|(connection, _)| !connection.is_finished());
            if open.len() >= MAX_CONNECTIONS {
                // A connection that was never answered may be half open for ever.
                let stranger = open
                    .iter()
                    .position(|(_, known)| !known.load(Ordering::Relaxed));
                let Some((stranger, _)) = stranger.and_then(|at| open.remove(at)) else {
                    continue;
                };
                stranger.abort();
            }
            let site = Arc::clone(&site);
            let is_known = Arc::new(AtomicBool::new(false));
            let known = Arc::clone(&is_known);
            let connection = tokio::spawn(async move {
                let answer = service_fn(|request| {
                    let (site, known) = (Arc::clone(&site), Arc::clone(&known));
                    async move {
                        let response = site.answer(request).await;
                        if response.status() != StatusCode::FORBIDDEN {
                            known.store(true, Ordering::Relaxed);
                        }
                        Ok::<_, Infallible>(response)
                    }
                });
                // A connection that breaks off is the client's matter.
                let _ = http1::Builder::new()
                    .timer(TokioTimer::new())
                    .header_read_timeout(HEAD_TIMEOUT)
                    .max_buf_size(MAX_HEAD)
                    .serve_connection(TokioIo::new(stream), answer)
                    .await;
            });
            open.push_back((connection.abort_handle(), is_known));
        }
    }
}
