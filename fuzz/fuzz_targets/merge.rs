//! Any two versions of a note are merged: the order of the sides does not matter, and of two notes
//! comes a note.
#![no_main]

use anamnesis_note::{id::NoteId, merge::{has_conflict_markers, merge}, note::NoteFile};
use libfuzzer_sys::fuzz_target;

/// Returns a note with these bytes in its front matter and its body.
fn framed(bytes: &[u8]) -> Vec<u8> {
    let (front, body) = bytes.split_at(bytes.len() / 3);
    [
        b"---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\n".as_slice(),
        front,
        b"\n---\n",
        body,
        b"\n",
    ]
    .concat()
}

fuzz_target!(|versions: (&[u8], &[u8], &[u8], bool, bool)| {
    let id: NoteId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().expect("a valid id");
    let (base, a, b, has_base, is_framed) = versions;
    // Half of the inputs get a frame that makes them notes, or the fuzzer would search for it for long.
    let [base, a, b] = [base, a, b].map(|it| if is_framed { framed(it) } else { it.to_vec() });
    let base = has_base.then_some(base.as_slice());
    let merged = merge(id, base, &a, &b);
    assert_eq!(merged, merge(id, base, &b, &a), "the order of the sides matters");
    let is_note = |bytes: &[u8]| NoteFile::parse(bytes, id).is_ok();
    if is_note(&a) && is_note(&b) {
        assert!(is_note(&merged.bytes), "a merge of two notes is none");
        let is_marked = has_conflict_markers(&a) || has_conflict_markers(&b);
        assert!(is_marked || !has_conflict_markers(&merged.bytes));
    }
    for sibling in [&merged.conflict, &merged.proposal].into_iter().flatten() {
        assert!(NoteFile::parse(&sibling.bytes, sibling.id).is_ok());
    }
    // Whoever has merged and merges again with a side that it had changes nothing.
    if base == Some(a.as_slice()) {
        assert_eq!(merged.bytes, b);
    }
});
