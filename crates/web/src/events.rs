//! Tells open pages that the journal or the notes changed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use anamnesis_app::context::Context;
use anamnesis_store::{fs::file::Stamp, journal::Journal};
use hyper::body::Bytes;

use crate::{server::TICK, site::Site};

/// How often an idle stream says something, which shows a connection that is gone.
const PING: Duration = Duration::from_secs(5);

/// Looks at the store while a page is open, and tells the pages what changed.
pub(crate) async fn watch(site: Arc<Site>) {
    let mut look = Look::default();
    let mut said_at = Instant::now();
    loop {
        tokio::time::sleep(TICK).await;
        if !site.streams.any() {
            // An open journal would keep a repair or an uninstallation from removing its files.
            look = Look::default();
            continue;
        }
        site.is_alive();
        let mut messages = look.changes(&site.context);
        if messages.is_empty() && said_at.elapsed() >= PING {
            messages.push(": open\n\n");
        }
        for message in messages {
            site.streams.send(&Bytes::from_static(message.as_bytes()));
            said_at = Instant::now();
        }
    }
}

/// The state of the store at the last look.
#[derive(Default)]
struct Look {
    journal: Option<(Journal, Stamp)>,
    version: Option<i64>,
    folders: Option<[i64; 6]>,
}

impl Look {
    /// Returns the events since the last look.
    fn changes(&mut self, context: &Context) -> Vec<&'static str> {
        let mut messages = Vec::new();
        let version = self.version(context);
        if self.version.is_some() && version != self.version {
            messages.push("event: journal\ndata: changed\n\n");
        }
        self.version = version.or(self.version);
        let folders = context.notes.folder_times();
        if self.folders.is_some_and(|before| before != folders) {
            messages.push("event: notes\ndata: changed\n\n");
        }
        self.folders = Some(folders);
        messages
    }

    /// Returns the journal's version. A repair replaces the file, which is opened again then.
    fn version(&mut self, context: &Context) -> Option<i64> {
        let file = std::fs::symlink_metadata(context.home.journal()).ok()?;
        let stamp = Stamp::from_metadata(&file);
        let is_same = |(_, open): &(Journal, Stamp)| open.inode == stamp.inode;
        if !self.journal.as_ref().is_some_and(is_same) {
            let journal = Journal::open_to_read(&context.home, Duration::ZERO).ok()??;
            self.journal = Some((journal, stamp));
        }
        let (journal, _) = self.journal.as_ref()?;
        journal.data_version().ok()
    }
}
