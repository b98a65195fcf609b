//! Tracks the texts that must not be lost: those that a successful command wrote to `memory/`.
//!
//! A text that a hook or an editor left counts from the next commit on, unless the same machine
//! overwrote it before. Texts that only a discarded machine had are lost with it.

use std::collections::{BTreeMap, HashSet};

use anamnesis_note::id::NoteId;

use super::fleet::NAMES;

/// A committed text.
#[derive(Debug)]
struct Kept {
    machine: usize,
    id: NoteId,
    body: String,
    /// Whether a successful sync has sent it to the remote.
    is_sent: bool,
}

/// The texts.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    committed: Vec<Kept>,
    /// Uncommitted texts, by machine and note.
    loose: BTreeMap<(usize, NoteId), String>,
}

impl Accounts {
    /// Records a text that a command wrote and committed.
    pub(super) fn committed(&mut self, machine: usize, id: NoteId, body: String) {
        self.overwritten(machine, id);
        self.committed.push(Kept {
            machine,
            id,
            body,
            is_sent: false,
        });
    }

    /// Records a text that a hook or an editor wrote.
    pub(super) fn written(&mut self, machine: usize, id: NoteId, body: String) {
        self.loose.insert((machine, id), body);
    }

    /// Forgets an uncommitted text that the same machine removed.
    pub(super) fn overwritten(&mut self, machine: usize, id: NoteId) {
        self.loose.remove(&(machine, id));
    }

    /// Records a successful sync that began when `begun_at` texts were committed. Later texts
    /// belong to the next sync.
    pub(super) fn synced(&mut self, machine: usize, begun_at: usize) {
        for kept in self.committed.iter_mut().take(begun_at) {
            kept.is_sent |= kept.machine == machine;
        }
        for ((owner, id), body) in std::mem::take(&mut self.loose) {
            if owner == machine {
                self.committed(owner, id, body);
            } else {
                self.written(owner, id, body);
            }
        }
    }

    /// Records that a machine was discarded.
    pub(super) fn lost(&mut self, machine: usize) {
        self.loose.retain(|(owner, _), _| *owner != machine);
        self.committed
            .retain(|kept| kept.is_sent || kept.machine != machine);
    }

    /// Returns the number of tracked texts.
    pub(super) fn count(&self) -> usize {
        self.committed.len()
    }

    /// Returns the texts that are not in `found`.
    pub(super) fn missing(&self, found: &HashSet<String>) -> Vec<String> {
        self.committed
            .iter()
            .filter(|kept| !found.contains(&kept.body))
            .map(|kept| {
                let machine = NAMES[kept.machine];
                format!(
                    "a text of {} by {machine} is lost: {:?}",
                    kept.id, kept.body
                )
            })
            .collect()
    }
}
