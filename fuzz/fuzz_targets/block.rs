//! Whatever titles and bodies hold, the block is one block, within the cap, with one heading a note.
#![no_main]

use anamnesis_session::hook::MAX_CONTEXT_LENGTH;
use anamnesis_note::{id::NoteId, note::{GLOBAL, Note, NoteType}};
use anamnesis_recall::render::{Chosen, Level, Reason, start_block};
use chrono::DateTime;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|texts: Vec<(String, String, bool)>| {
    let chosen: Vec<Chosen> = texts
        .into_iter()
        .take(60)
        .enumerate()
        .map(|(number, (title, body, is_global))| {
            let id = format!("01ARZ3NDEKTSV4RRFFQ69G{number:04}").parse().expect("a valid id");
            let mut note = Note::new(id, NoteType::Semantic, DateTime::UNIX_EPOCH);
            note.title = title;
            note.body = body;
            let reason = if is_global { Reason::AllProjects } else { Reason::Project };
            note.project = if is_global { GLOBAL } else { "p" }.to_owned();
            let remarks = if is_global { vec!["stale: `src/gone.rs` is gone".to_owned()] } else { Vec::new() };
            Chosen { note, reason, remarks }
        })
        .collect();
    let block = start_block(&chosen, &[], &[], DateTime::UNIX_EPOCH, NoteId::short);
    assert!(block.text.encode_utf16().count() <= MAX_CONTEXT_LENGTH);
    let shown = block.levels.iter().filter(|(_, level)| *level != Level::Name).count();
    assert_eq!(block.text.lines().filter(|line| line.starts_with('#')).count(), shown);
    assert_eq!(block.text.matches("</anamnesis-context").count(), usize::from(!chosen.is_empty()));
});
