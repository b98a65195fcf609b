//! Stripping any text twice is stripping it once, and a marked word never comes out.

#![no_main]

use anamnesis_text::privacy::strip;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let once = strip(text);
    assert_eq!(once.text, once.text.trim());
    assert!(once.regions > 0 || once.text == text.trim());
    let twice = strip(&once.text);
    assert_eq!(once.text, twice.text);
    assert_eq!((twice.regions, twice.private), (0, false));

    // The signs in front end any tag that the text leaves unfinished.
    let marked_text = format!("{text}\"'><private>MARKER-OF-THE-FUZZER");
    let marked = strip(&marked_text);
    assert!(!marked.text.contains("MARKER-OF-THE-FUZZER"));
});
