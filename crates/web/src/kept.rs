//! What takes long to find: the changes of the newest notes, which hold while the index does not
//! change and are found beside the pages, and the rows of History, which never change.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex},
    thread,
};

use anamnesis_app::{
    Error,
    context::Context,
    history::{self, Past},
};
use anamnesis_recall::stale::{self, ChangedNote};
use anamnesis_store::index::Index;
use anamnesis_sync::history::Event;
use hyper::body::Bytes;

use crate::{guard::lock, streams::Streams};

/// The event that tells pages that the changes were found.
const FOUND: &str = "event: review\ndata: changed\n\n";

/// How many rows of History are kept, about half a kilobyte each.
const MAX_ROWS: usize = 500;

/// A commit as History lists it.
#[derive(Clone)]
pub(crate) struct HistoryRow {
    /// The commit, without its notes: there may be a hundred thousand.
    pub(crate) event: Event,
    /// How many notes it changed.
    pub(crate) counts: String,
    /// The title of its first note.
    pub(crate) title: String,
}

/// What is kept while the viewer runs.
#[derive(Default)]
pub(crate) struct Kept {
    /// Which of the newest notes are changed by later ones.
    pub(crate) changes: Arc<KeptChanges>,
    /// Commits by their id; `None` for those that changed no note.
    rows: Mutex<HashMap<String, Option<HistoryRow>>>,
}

impl Kept {
    /// Returns the rows of these commits. Folders are read for those that are not known.
    pub(crate) fn rows(&self, past: &Past<'_>, ids: &[String]) -> Result<Vec<HistoryRow>, Error> {
        let unknown: Vec<String> = {
            let mut rows = lock(&self.rows);
            if past.context.environment.is_agent {
                // The title of a note that was forgotten since is withheld from an agent.
                rows.clear();
            }
            let unknown = ids.iter().filter(|id| !rows.contains_key(*id));
            unknown.cloned().collect()
        };
        let described = past.repository.events_of(&unknown)?;
        let mut rows = lock(&self.rows);
        if rows.len() + unknown.len() > MAX_ROWS {
            rows.retain(|id, _| ids.contains(id));
        }
        rows.extend(unknown.into_iter().map(|id| (id, None)));
        for mut event in described {
            let row = HistoryRow {
                counts: history::counts(&event),
                title: past.title(&event),
                event: {
                    event.notes.clear();
                    event
                },
            };
            rows.insert(row.event.commit.clone(), Some(row));
        }
        Ok(ids.iter().filter_map(|id| rows.get(id)?.clone()).collect())
    }
}

/// Which of the newest notes are changed by later ones.
#[derive(Default)]
pub(crate) struct KeptChanges {
    /// The last that were found, with the generation of their index.
    found: Mutex<Option<(String, Arc<Vec<ChangedNote>>)>>,
    /// The generation for which a thread is looking.
    sought: Mutex<Option<String>>,
}

impl KeptChanges {
    /// Returns the changes of an index, if they are known.
    pub(crate) fn known(&self, index: &Index) -> Result<Option<Arc<Vec<ChangedNote>>>, Error> {
        let generation = index.generation()?;
        let found = lock(&self.found);
        let found = found.as_ref().filter(|(known, _)| *known == generation);
        Ok(found.map(|(_, changes)| Arc::clone(changes)))
    }

    /// Returns the changes of an index.
    pub(crate) fn find(&self, index: &Index) -> Result<Arc<Vec<ChangedNote>>, Error> {
        if let Some(known) = self.known(index)? {
            return Ok(known);
        }
        let changes = Arc::new(stale::changes(index, &[])?);
        *lock(&self.found) = Some((index.generation()?, Arc::clone(&changes)));
        Ok(changes)
    }

    /// Looks for the changes of an index in a thread, unless one does.
    pub(crate) fn seek(
        self: &Arc<Self>,
        context: &Context,
        streams: &Arc<Streams>,
        index: &Index,
    ) -> Result<(), Error> {
        let generation = index.generation()?;
        if lock(&self.sought).replace(generation.clone()) == Some(generation.clone()) {
            return Ok(());
        }
        let (kept, streams, home) = (Arc::clone(self), Arc::clone(streams), context.home.clone());
        let look = move || -> Result<(), Error> {
            kept.find(&Index::open(&home)?)?;
            streams.send(&Bytes::from_static(FOUND.as_bytes()));
            Ok(())
        };
        // Without it the page still asks, and the next request tries again.
        let kept = Arc::clone(self);
        let started = thread::Builder::new().spawn(move || {
            if look().is_err() {
                *lock(&kept.sought) = None;
            }
        });
        if started.is_err() {
            *lock(&self.sought) = None;
        }
        Ok(())
    }
}
