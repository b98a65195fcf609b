//! Whatever a file holds, reading it ends; what is read can be written back and reads equal.
#![no_main]

use anamnesis_note::{id::NoteId, note::NoteFile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let id: NoteId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().expect("a valid id");
    // Half of the inputs get a frame that makes them notes, or the fuzzer would search for it for long.
    let framed = [
        b"---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\n".as_slice(),
        bytes,
        b"\n---\nbody\n",
    ]
    .concat();
    for text in [bytes, &framed] {
        let Ok(file) = NoteFile::parse(text, id) else { continue };
        let rendered = file.note().render();
        let again = NoteFile::parse(rendered.as_bytes(), id).expect("what we write can be read");
        assert_eq!(again.note(), file.note());
        if let Ok(same) = file.rewrite(file.note()) {
            assert_eq!(same.as_bytes(), text);
        }
        let mut changed = file.note().clone();
        changed.title.push('x');
        changed.pinned = !changed.pinned;
        if let Ok(rewritten) = file.rewrite(&changed) {
            let read = NoteFile::parse(rewritten.as_bytes(), id).expect("what we rewrite can be read");
            assert_eq!(read.note(), &changed);
        }
    }
});
