//! What must not be lost: every text that a command which exited with 0 wrote to `memory/`.
//!
//! A text that a hook or an editor left is one from the next commit on, unless the same machine wrote
//! over it before. What stood on a machine that was thrown away, and nowhere else, is gone with it.

use std::collections::{BTreeMap, HashSet};

use anamnesis_note::id::NoteId;

use super::fleet::NAMES;

/// A text that was committed.
#[derive(Debug)]
struct Kept {
    machine: usize,
    id: NoteId,
    body: String,
    /// Whether a sync that ended well has carried it to the remote.
    is_sent: bool,
}

/// The texts.
#[derive(Debug, Default)]
pub(super) struct Accounts {
    committed: Vec<Kept>,
    /// Written and not committed, by machine and note.
    loose: BTreeMap<(usize, NoteId), String>,
}

impl Accounts {
    /// A command wrote this text and committed it.
    pub(super) fn committed(&mut self, machine: usize, id: NoteId, body: String) {
        self.overwritten(machine, id);
        self.committed.push(Kept {
            machine,
            id,
            body,
            is_sent: false,
        });
    }

    /// A hook or an editor wrote this text.
    pub(super) fn written(&mut self, machine: usize, id: NoteId, body: String) {
        self.loose.insert((machine, id), body);
    }

    /// What lay there uncommitted was taken away by the same machine.
    pub(super) fn overwritten(&mut self, machine: usize, id: NoteId) {
        self.loose.remove(&(machine, id));
    }

    /// A sync of a machine ended well that had begun when so many texts were committed. One that came
    /// meanwhile is for the next.
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

    /// A machine was thrown away.
    pub(super) fn lost(&mut self, machine: usize) {
        self.loose.retain(|(owner, _), _| *owner != machine);
        self.committed
            .retain(|kept| kept.is_sent || kept.machine != machine);
    }

    /// How many texts are kept account of.
    pub(super) fn count(&self) -> usize {
        self.committed.len()
    }

    /// The texts that are not among those that were found.
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
