//! Any bytes are a transcript: it is read without an error, and what comes out is inert.

#![no_main]

use anamnesis_session::session_note::{Account, NoteText, note_text};
use anamnesis_text::clean::clean;
use anamnesis_session::transcript::read;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let (transcript, error) = read(bytes);
    assert!(error.is_none());
    assert!(transcript.skipped_lines <= transcript.lines);
    let texts = [
        &transcript.ask,
        &transcript.title_ask,
        &transcript.outcome,
        &transcript.git_branch,
    ];
    for text in texts.into_iter().flatten().chain(&transcript.files) {
        assert_eq!(clean(text), text.as_str());
    }
    if let NoteText::Note { title, body } = note_text(&Account::from(&transcript)) {
        assert!(title.chars().count() <= 80 && !title.contains('\n'));
        assert_eq!(clean(&body), body);
    }
});
