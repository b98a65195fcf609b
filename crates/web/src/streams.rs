//! The event streams of open pages.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, Ordering},
};

use hyper::body::Bytes;
use tokio::sync::mpsc;

use crate::guard::lock;

/// How many streams are served at once.
const MAX_STREAMS: usize = 16;

/// The open event streams.
#[derive(Default)]
pub(crate) struct Streams {
    open: Mutex<Vec<mpsc::Sender<Bytes>>>,
    /// Whether a page with JavaScript was ever open.
    had_any: AtomicBool,
}

impl Streams {
    /// Adds a stream; `None` if there are too many.
    pub(crate) fn add(&self) -> Option<mpsc::Receiver<Bytes>> {
        let mut open = lock(&self.open);
        open.retain(|stream| !stream.is_closed());
        if open.len() >= MAX_STREAMS {
            return None;
        }
        let (sender, receiver) = mpsc::channel(8);
        // The browser then knows that the stream is open.
        let _ = sender.try_send(Bytes::from_static(b"retry: 1000\n\n"));
        open.push(sender);
        self.had_any.store(true, Ordering::Relaxed);
        Some(receiver)
    }

    /// Returns whether a page with JavaScript was ever open.
    pub(crate) fn had_any(&self) -> bool {
        self.had_any.load(Ordering::Relaxed)
    }

    /// Returns whether any page is open.
    pub(crate) fn any(&self) -> bool {
        let mut open = lock(&self.open);
        open.retain(|stream| !stream.is_closed());
        !open.is_empty()
    }

    /// Sends to all. A page that does not read gets the next one, which asks for the same.
    pub(crate) fn send(&self, message: &Bytes) {
        for stream in lock(&self.open).iter() {
            let _ = stream.try_send(message.clone());
        }
    }
}
