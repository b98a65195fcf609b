//! What takes long to find and holds while the index does not change. It is found beside the pages,
//! which are then told by an event.

use std::{
    sync::{Arc, Mutex},
    thread,
};

use anamnesis_app::{Error, context::Context};
use anamnesis_recall::stale::{self, ChangedNote};
use anamnesis_store::index::Index;
use hyper::body::Bytes;

use crate::{guard::lock, streams::Streams};

/// The event that tells pages that the changes were found.
const FOUND: &str = "event: review\ndata: changed\n\n";

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
