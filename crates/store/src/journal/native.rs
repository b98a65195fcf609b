//! The import state of the files of Claude Code's own memory: one value of `meta` per folder of the
//! client. An unchanged file costs one `stat` call.
//!
//! File and folder names can contain private text, so they are stored as hashes.

use std::collections::BTreeMap;

use anamnesis_note::id::NoteId;
use serde::{Deserialize, Serialize};

use super::{Error, Journal};
use crate::fs::file::Stamp;

/// The key prefix in `meta` of the state of a folder with memory.
const NATIVE: &str = "native ";

/// The import state of a memory file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CopyState {
    /// The note is a copy and is updated with the file.
    Copied,
    /// No note follows the file: it has no text, a person edited or forgot the note, or the note is
    /// another machine's.
    Uncopied,
    /// The file was removed; the note stays and is marked.
    Orphaned,
}

/// A memory file as of the last import.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Source {
    /// The id of its note on every machine; identifies the file.
    pub(crate) id: NoteId,
    /// The hash of its project folder's name.
    pub(crate) slug: String,
    /// Its stamp, which shows whether it changed.
    pub(crate) stamp: Stamp,
    /// Its import state.
    pub(crate) state: CopyState,
    /// The note with its text; its own id if there is none.
    pub(crate) note: NoteId,
    /// The hash of that note's text at the time; empty if there is no note.
    pub(crate) hash: String,
    /// That note's project.
    pub(crate) project: String,
    /// The stamp of the note's file, which shows whether it changed.
    pub(crate) note_stamp: Stamp,
}

/// The state of a folder with memory at the last import.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct NativeMemory {
    /// The files, by the id of their note.
    pub(crate) sources: BTreeMap<NoteId, Source>,
    /// The folders of the client's project names, by the hash of the name.
    pub(crate) places: BTreeMap<String, String>,
}

impl Journal {
    /// Returns the state of a folder with memory. After an invalid one, all is imported again.
    pub(crate) fn native_memory(&self, folder: &str) -> Result<NativeMemory, Error> {
        let memory = self.json(&format!("{NATIVE}{folder}"))?;
        Ok(memory.unwrap_or_default())
    }

    /// Stores the state of a folder with memory.
    pub(crate) fn keep_native_memory(
        &self,
        folder: &str,
        memory: &NativeMemory,
    ) -> Result<(), Error> {
        self.set_json(&format!("{NATIVE}{folder}"), memory)
    }

    /// Returns the files of which notes are copies.
    fn copied_sources(&self) -> Result<impl Iterator<Item = Source> + use<>, Error> {
        let folders = self.metas_under(NATIVE)?.into_values();
        let folders = folders.filter_map(|text| serde_json::from_str(&text).ok());
        let sources = folders.flat_map(|folder: NativeMemory| folder.sources.into_values());
        Ok(sources.filter(|source| source.state == CopyState::Copied))
    }

    /// Returns the notes of a project that are copies of Claude Code's memory on this machine, each
    /// with its file's stamp. The stamp shows whether the note changed.
    pub fn native_copies(&self, project: &str) -> Result<Vec<(NoteId, Stamp)>, Error> {
        let sources = self.copied_sources()?;
        let sources = sources.filter(|source| source.project == project);
        Ok(sources
            .map(|source| (source.note, source.note_stamp))
            .collect())
    }

    /// Returns the note that is the copy of a memory file.
    pub fn native_copy(&self, file: &Stamp) -> Result<Option<NoteId>, Error> {
        let mut sources = self.copied_sources()?;
        Ok(sources
            .find(|source| source.stamp == *file)
            .map(|source| source.note))
    }
}
