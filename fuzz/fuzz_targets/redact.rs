//! Feeds the redactor any text. Run with `cargo fuzz run redact`, on a stable compiler with
//! `RUSTC_BOOTSTRAP=1` and `--sanitizer none`.

#![no_main]

use anamnesis_text::redact::{MASK, redact};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let redacted = redact(text);
    let mut kept = 0;
    let mut expected = String::new();
    for finding in &redacted.findings {
        assert!(kept <= finding.start && finding.start < finding.end);
        expected.push_str(&text[kept..finding.start]);
        expected.push_str(MASK);
        kept = finding.end;
    }
    expected.push_str(&text[kept..]);
    assert_eq!(redacted.text, expected);
    assert!(redact(&redacted.text).findings.is_empty(), "not idempotent");
});
