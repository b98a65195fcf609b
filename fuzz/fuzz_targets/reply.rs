//! Whatever a model answers is taken whole or not at all, and what is taken is fit to be kept.
#![no_main]

use anamnesis_distill::reply;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let text = String::from_utf8_lossy(bytes);
    // Half of the inputs get a frame that makes them answers, or the fuzzer would search for it for long.
    let quoted = serde_json::Value::from(text.as_ref());
    let framed = format!(r#"[{{"type": "semantic", "title": {quoted}, "body": {quoted}}}]"#);
    for answer in [text.as_ref(), &framed, &format!("```json\n{framed}\n```")] {
        for note in reply::notes(answer).unwrap_or_default() {
            assert!(!note.title.trim().is_empty() && !note.title.contains('\n'));
            assert!(!note.body.trim().is_empty());
            assert!(!format!("{}{}", note.title, note.body).contains('\u{1b}'));
        }
        let _ = reply::summary(answer);
    }
});
