//! Any bytes are a transcript: it is read without an error, and what comes out is inert.

#![no_main]

use anamnesis_session::session_note::{NoteText, SessionDigest, note_text};
use anamnesis_session::transcript::read;
use anamnesis_text::clean::clean;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (transcript, error) = read(bytes);
    assert!(error.is_none());
    assert!(transcript.skipped_lines <= transcript.lines);
    let turns = transcript.turns.iter();
    let turns = turns.flat_map(|turn| [&turn.prompt, &turn.answer]);
    let texts = turns.chain([&transcript.outcome, &transcript.git_branch]);
    for text in texts.flatten().chain(&transcript.files) {
        assert_eq!(clean(text), text.as_str());
    }
    if let Some(NoteText { title, body }) = note_text(&SessionDigest::from(&transcript)) {
        assert!(title.chars().count() <= 80 && !title.contains('\n'));
        assert_eq!(clean(&body), body);
    }
});
