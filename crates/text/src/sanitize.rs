//! Makes session text safe to store. The order of the steps matters:
//!
//! 1. Remove private and injected regions ([`crate::privacy`]) from the full text.
//! 2. Replace file contents by their length, line count and hash.
//! 3. Remove control and invisible characters ([`crate::clean`]). If there were any, repeat step 1,
//!    because they may have split a tag.
//! 4. Drop the middle of very long texts.
//! 5. Mask known private tokens ([`crate::private_tokens`]), then credentials ([`crate::redact`]).
//! 6. Truncate to the limit.
//!
//! Step 4 exists because masking 50 MiB takes longer than a hook may run. A guard of 8 KiB on each
//! side of the gap is masked with the kept text and then dropped, so that no credential is cut in
//! two. Only PEM keys are longer than the guard. If the guard before the tail is all base64, the
//! tail is dropped.
//!
//! Invariants: a result of [`json()`] is within its limit, parses, and has no control characters
//! except tabs and line feeds.

mod gap;
mod mask;
mod size_limit;

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::clean::clean;
use crate::privacy::{PrivateTexts, RemovedRegions, UniqueKeys, strip, strip_json};
use crate::private_tokens::PrivateTokens;
use gap::{GAP, GUARD, SplitText, omission_mark, without_middle, without_start};
use mask::Masker;
use size_limit::{MIN_VALUE, SizeLimiter, fill_gaps};

/// The most that is kept of a successful tool response, in bytes.
pub const TAIL: usize = 1024;

/// The most that is kept of an edit's patch, in bytes of JSON.
const MAX_PATCH: usize = 4 * 1024;

/// The longest key that is kept, in characters.
const MAX_KEY: usize = 128;

/// The longest key that is read, in bytes; a longer one is replaced by a mark.
const MAX_KEY_READ: usize = 4 * 1024;

/// Tools whose arguments and responses contain file contents.
const FILE_TOOLS: [&str; 8] = [
    "Read",
    "Write",
    "Edit",
    "MultiEdit",
    "NotebookRead",
    "NotebookEdit",
    "Update",
    "str_replace_based_edit_tool",
];

/// Keys under which those tools have file contents or parts of them.
const BODIES: [&str; 17] = [
    "content",
    "originalFile",
    "originalFileContents",
    "original_file",
    "updated_file",
    "file_text",
    "old_string",
    "new_string",
    "oldString",
    "newString",
    "old_str",
    "new_str",
    "old_source",
    "new_source",
    "insert_text",
    "base64",
    "cells",
];

/// A sanitized text or value, and what was removed from it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sanitized<T> {
    /// The sanitized text or value.
    pub value: T,
    /// Whether a person marked any part as private.
    pub private: bool,
    /// Whether there were over a hundred regions.
    pub many_tags: bool,
    /// The number of removed regions.
    pub regions: usize,
    /// The contents of private regions, for [`crate::private_tokens::hashes`]. Must never be
    /// stored.
    pub private_texts: PrivateTexts,
    /// The number of masked credentials and private tokens in the kept part.
    pub masked: usize,
}

impl<T> Sanitized<T> {
    /// Combines a value with what was removed from it.
    pub fn new(value: T, removed: RemovedRegions, masked: usize) -> Self {
        Sanitized {
            value,
            private: removed.private,
            many_tags: removed.is_suspicious(),
            regions: removed.regions,
            private_texts: removed.private_texts,
            masked,
        }
    }
}

/// Sanitizes a text and truncates it to `limit` characters.
///
/// A longer text keeps the first three quarters of the limit and the last quarter. A mark between
/// them, which does not count, says how many characters are left out.
pub fn text(raw: &str, private_tokens: &PrivateTokens, limit: usize) -> Sanitized<String> {
    let (text, removed) = uncut(raw);
    let (ends, masked) = Ends::masked(&text, private_tokens, limit);
    Sanitized::new(ends.with_mark().0, removed, masked)
}

/// A masked text, of which the middle may be left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ends {
    head: String,
    /// How many characters are left out.
    left_out: usize,
    tail: String,
}

impl Ends {
    /// Masks a text that went through [`uncut()`] and cuts it like [`text()`]. Also returns the
    /// number of masks.
    pub fn masked(text: &str, private_tokens: &PrivateTokens, limit: usize) -> (Self, usize) {
        let last = limit / 4;
        let first = limit - last;
        let mut masker = Masker::new(private_tokens);
        let text = without_middle(text, 4 * first, 4 * last);
        let text = masker.mask(&text);
        let parts = SplitText::new(&text);
        let count = parts.characters();
        let ends = if parts.left_out == 0 && count <= limit {
            Self {
                head: text.into_owned(),
                left_out: 0,
                tail: String::new(),
            }
        } else {
            let head = first_characters(parts.head, first);
            let tail = last_characters(parts.tail, last);
            let kept = head.chars().count() + tail.chars().count();
            Self {
                head: head.to_owned(),
                left_out: parts.left_out + count - kept,
                tail: tail.to_owned(),
            }
        };
        (ends, masker.masked)
    }

    /// Returns the text with a mark in place of what is left out, and the range of the mark.
    pub fn with_mark(self) -> (String, Range<usize>) {
        let mut text = self.head;
        let start = text.len();
        if self.left_out > 0 {
            text += &format!("\n{}\n", omission_mark(self.left_out, "characters"));
        }
        let mark = start..text.len();
        (text + &self.tail, mark)
    }
}

/// Removes private regions and invisible characters; neither masks nor truncates.
///
/// For texts of which a part is kept. The caller masks that part.
pub fn uncut(raw: &str) -> (Cow<'_, str>, RemovedRegions) {
    let stripped = strip(raw);
    let mut removed = RemovedRegions {
        regions: stripped.regions,
        private: stripped.private,
        private_texts: stripped.private_texts,
    };
    let Cow::Owned(cleaned) = clean(&stripped.text) else {
        return (stripped.text, removed);
    };
    // Invisible characters may have split a tag.
    let again = strip(&cleaned);
    removed.add(&RemovedRegions {
        regions: again.regions,
        private: again.private,
        private_texts: again.private_texts,
    });
    (Cow::Owned(again.text.into_owned()), removed)
}

/// Sanitizes JSON and cuts it to `limit` bytes of compact JSON.
///
/// The longest strings are cut first, each to its first two thirds and last third; then items and
/// entries are left out. Marks say how much. JSON that does not fit a limit under 64 becomes
/// `null`.
pub fn json(raw: Value, private_tokens: &PrivateTokens, limit: usize) -> Sanitized<Value> {
    fitted(raw, None, private_tokens, limit)
}

/// Does the same as [`json()`] for the arguments or the response of a tool.
///
/// File contents are replaced by their length in bytes, line count and a SHA-256 prefix. A patch is
/// cut to 4 KiB.
pub fn tool_json(
    tool: &str,
    raw: Value,
    private_tokens: &PrivateTokens,
    limit: usize,
) -> Sanitized<Value> {
    fitted(raw, Some(tool), private_tokens, limit)
}

/// Returns the summary kept of a successful response: `{"bytes": 5, "tail": "done\n"}`.
///
/// `bytes` is the length of all strings without private regions and file contents. `tail` is the
/// end of the strings joined by line feeds, at most [`TAIL`] bytes.
pub fn tool_tail(tool: &str, mut raw: Value, private_tokens: &PrivateTokens) -> Sanitized<Value> {
    let removed = prepare(&mut raw, Some(tool));
    let bytes = text_length(&raw);
    // Twice the size, because every value takes some room.
    keep_last(&mut raw, &mut (2 * TAIL + GUARD));
    let mut masker = Masker::new(private_tokens);
    masker.mask_json(&mut raw);
    let mut lines = String::new();
    join_strings(&raw, &mut lines);
    let end = tail(&lines, TAIL);
    Sanitized::new(json!({"bytes": bytes, "tail": end}), removed, masker.masked)
}

fn fitted(
    mut value: Value,
    tool: Option<&str>,
    private_tokens: &PrivateTokens,
    limit: usize,
) -> Sanitized<Value> {
    let removed = prepare(&mut value, tool);
    SizeLimiter::BeforeMasking.fit(&mut value, limit.max(MIN_VALUE));
    let mut masker = Masker::new(private_tokens);
    masker.mask_json(&mut value);
    change_keys(&mut value, &mut |key| {
        let kept = first_characters(key, MAX_KEY);
        (kept.len() < key.len()).then(|| format!("{kept}…"))
    });
    if tool.is_some_and(has_bodies) {
        fit_patches(&mut value);
    }
    if limit >= MIN_VALUE {
        SizeLimiter::AfterMasking.fit(&mut value, limit);
    } else if SizeLimiter::AfterMasking.size(&value, limit) > limit {
        value = Value::Null;
    }
    fill_gaps(&mut value);
    Sanitized::new(value, removed, masker.masked)
}

/// Removes private regions, file contents and invisible characters.
fn prepare(value: &mut Value, tool: Option<&str>) -> RemovedRegions {
    let mut removed = strip_json(value);
    if let Some(tool) = tool.filter(|tool| has_bodies(tool)) {
        replace_bodies(value, tool);
    }
    let mut changed = false;
    change_strings(value, &mut |text| {
        if let Cow::Owned(cleaned) = clean(text) {
            *text = cleaned;
            changed = true;
        }
    });
    change_keys(value, &mut |key| {
        let cleaned = match clean(key) {
            _ if key.len() > MAX_KEY_READ => omission_mark(key.chars().count(), "characters"),
            Cow::Owned(cleaned) => cleaned,
            Cow::Borrowed(_) => return None,
        };
        changed = true;
        Some(cleaned)
    });
    if changed {
        removed.add(&strip_json(value));
    }
    removed
}

/// Changes each string value.
fn change_strings(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => {
            for item in items {
                change_strings(item, change);
            }
        }
        Value::Object(object) => {
            for value in object.values_mut() {
                change_strings(value, change);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces each key for which `change` returns another one.
fn change_keys(value: &mut Value, change: &mut impl FnMut(&str) -> Option<String>) {
    match value {
        Value::Array(items) => {
            for item in items {
                change_keys(item, change);
            }
        }
        Value::Object(object) => {
            for value in object.values_mut() {
                change_keys(value, change);
            }
            let changed: Vec<_> = object.keys().map(|key| change(key)).collect();
            if changed.iter().all(Option::is_none) {
                return;
            }
            let mut keys = UniqueKeys::default();
            for ((key, value), changed) in mem::take(object).into_iter().zip(changed) {
                keys.insert(object, changed.unwrap_or(key), value);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn has_bodies(tool: &str) -> bool {
    FILE_TOOLS.contains(&tool)
}

/// Replaces file contents by length, line count and hash.
fn replace_bodies(value: &mut Value, tool: &str) {
    match value {
        // In a batch the response is the text that the model reads; for a tool that reads, the
        // file.
        Value::String(text) if tool.ends_with("Read") && !text.starts_with("<tool_use_error>") => {
            *value = body(text);
        }
        _ => replace_named_bodies(value),
    }
}

fn replace_named_bodies(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(replace_named_bodies),
        Value::Object(object) => {
            for (key, value) in object {
                match value {
                    Value::String(text) if BODIES.contains(&key.as_str()) => *value = body(text),
                    Value::Array(_) | Value::Object(_) if BODIES.contains(&key.as_str()) => {
                        *value = body(&value.to_string());
                    }
                    _ => replace_named_bodies(value),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the replacement for file contents.
fn body(text: &str) -> Value {
    let digest = Sha256::digest(text);
    let digest: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    json!({"bytes": text.len(), "lines": text.lines().count(), "sha256": digest})
}

/// Cuts the patches of edits.
fn fit_patches(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(fit_patches),
        Value::Object(object) => {
            for (key, value) in object {
                if key == "structuredPatch" {
                    SizeLimiter::AfterMasking.fit(value, MAX_PATCH);
                } else {
                    fit_patches(value);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Returns the length of all strings, in bytes.
fn text_length(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(text_length).sum(),
        Value::Object(object) => object.values().map(text_length).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    }
}

/// Drops all but the last values that fit into the room.
fn keep_last(value: &mut Value, room: &mut usize) {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => *room = room.saturating_sub(1),
        Value::String(text) => {
            if text.len() > *room {
                *text = without_start(text, *room);
            }
            *room = room.saturating_sub(text.len() + 1);
        }
        Value::Array(items) => {
            let mut first = items.len();
            while let Some(item) = first.checked_sub(1).and_then(|last| items.get_mut(last))
                && *room > 0
            {
                keep_last(item, room);
                first -= 1;
            }
            items.drain(..first);
        }
        Value::Object(object) => {
            let mut first = object.len();
            for value in object.values_mut().rev() {
                if *room == 0 {
                    break;
                }
                keep_last(value, room);
                first -= 1;
            }
            if first > 0 {
                *object = mem::take(object).into_iter().skip(first).collect();
            }
        }
    }
}

/// Joins strings by line feeds.
fn join_strings(value: &Value, lines: &mut String) {
    match value {
        Value::String(text) => {
            let SplitText { head, tail, .. } = SplitText::new(text);
            let text = if text.contains(GAP) { tail } else { head };
            if !lines.is_empty() && !lines.ends_with('\n') && !text.is_empty() {
                lines.push('\n');
            }
            lines.push_str(text);
        }
        Value::Array(items) => items.iter().for_each(|item| join_strings(item, lines)),
        Value::Object(object) => object.values().for_each(|value| join_strings(value, lines)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the longest start of a text with at most `bytes` bytes.
pub fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the longest end of a text with at most `bytes` bytes.
pub fn tail(text: &str, bytes: usize) -> &str {
    let mut start = text.len().saturating_sub(bytes);
    while !text.is_char_boundary(start) {
        start += 1;
    }
    &text[start..]
}

fn first_characters(text: &str, count: usize) -> &str {
    let end = text
        .char_indices()
        .nth(count)
        .map_or(text.len(), |(at, _)| at);
    &text[..end]
}

fn last_characters(text: &str, count: usize) -> &str {
    let Some(last) = count.checked_sub(1) else {
        return "";
    };
    let start = text.char_indices().rev().nth(last).map_or(0, |(at, _)| at);
    &text[start..]
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::gap::is_base64;
    use super::*;
    use anamnesis_testkit::assert_linear;

    use crate::privacy::tests::tagged_json;
    use crate::private_tokens::{Key, hashes};
    use crate::redact;

    fn private_tokens(private: &[String]) -> PrivateTokens {
        let key = Key::new([7; 16]);
        let hashes = hashes(&key, private).into_iter();
        hashes.map(|hash| (key, hash)).collect()
    }

    /// A credential that is recognized anywhere, built from parts so that no repository scanner
    /// reports it.
    fn token() -> String {
        format!("gh{}_{}", 'p', "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cF3iL6")
    }

    /// A private key with the given number of lines.
    fn private_key(lines: usize) -> String {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cK\n";
        let (begin, end) = ("-----BEGIN", "-----END");
        format!(
            "{begin} PRIVATE KEY-----\n{}{end} PRIVATE KEY-----\n",
            line.repeat(lines)
        )
    }

    #[test]
    fn a_text_goes_through_every_step() {
        let private_tokens = private_tokens(&["T7-blue-99".to_owned()]);
        let raw = format!(
            " use <private>K9-secret</private> \u{1b}[1mT7-blue-99\u{1b}[0m and {} <pri\u{200b}vate>x",
            token()
        );
        let sanitized = text(&raw, &private_tokens, 100);
        assert_eq!(sanitized.value, "use  [private] and [REDACTED]");
        assert_eq!((sanitized.regions, sanitized.masked), (2, 2));
        assert!(sanitized.private && !sanitized.many_tags);
        assert_eq!(*sanitized.private_texts, ["K9-secret", "x"]);
        let many = "<private/>".repeat(101);
        assert!(text(&many, &private_tokens, 100).many_tags);
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let words: Vec<String> = (0..1_000).map(|n| format!("é{n:03}")).collect();
        let raw = words.concat();
        let kept = text(&raw, &PrivateTokens::default(), 16).value;
        assert_eq!(kept, "é000é001é002\n[… 3,984 characters left out …]\né999");
        // Also if the middle is dropped before masking.
        let raw = raw.repeat(50);
        let kept = text(&raw, &PrivateTokens::default(), 16).value;
        assert_eq!(
            kept,
            "é000é001é002\n[… 199,984 characters left out …]\né999"
        );
        assert_eq!(text("éa", &PrivateTokens::default(), 2).value, "éa");
        assert_eq!(
            text("éa", &PrivateTokens::default(), 0).value,
            "\n[… 2 characters left out …]\n"
        );
    }

    /// A secret at a cut, or next to a dropped part, is not kept in half.
    #[test]
    fn a_cut_never_leaves_half_a_secret() {
        let filler = "some words of a log\n".repeat(1_000);
        for secret in [
            token(),
            format!("password=\"{}\"", "x9!y".repeat(20)),
            private_key(30),
            private_key(150),
        ] {
            let inside = secret
                .lines()
                .nth(1)
                .unwrap_or(&secret[secret.len() - 30..]);
            let inside = &inside[..20.min(inside.len())];
            for shift in (0..secret.len() + 60).step_by(29) {
                let before = format!(
                    "{}{secret}{filler}{filler}",
                    &filler[..600_usize.saturating_sub(shift) / 20 * 20]
                );
                let behind = format!("{filler}{filler}{secret}{}", &filler[..shift / 20 * 20]);
                for raw in [before, behind] {
                    let kept = text(&raw, &PrivateTokens::default(), 800).value;
                    assert!(!kept.contains(inside), "{shift}: {kept}");
                    let value = json!({"stdout": raw});
                    let kept = json(value.clone(), &PrivateTokens::default(), 800)
                        .value
                        .to_string();
                    assert!(!kept.contains(inside), "{shift}: {kept}");
                    let kept = tool_tail("Bash", value, &PrivateTokens::default())
                        .value
                        .to_string();
                    assert!(!kept.contains(inside), "{shift}: {kept}");
                }
            }
        }
    }

    #[test]
    fn the_inside_of_a_very_long_key_is_dropped() {
        let raw = format!("{}{}", "word ".repeat(20_000), private_key(3_000));
        for raw in [raw.as_str(), raw.trim_end().trim_end_matches('-')] {
            let kept = text(raw, &PrivateTokens::default(), 800).value;
            assert!(
                kept.starts_with("word ") && !kept.contains("kqhkiG9w0"),
                "{kept}"
            );
        }
        assert!(!is_base64(
            &"some words of a log 12:34:56 INFO\n".repeat(300)
        ));
        assert!(!is_base64(&"x".repeat(8_000)));
        assert!(!is_base64(&"日本語".repeat(3_000)));
        assert!(!is_base64(""));
    }

    fn check_json(value: Value, expected: &Value) {
        let sanitized = json(value, &PrivateTokens::default(), 10_000);
        assert_eq!(&sanitized.value, expected);
        assert!(sanitized.masked > 0);
    }

    #[test]
    fn secrets_in_json_are_recognized_by_their_names() {
        let mask = redact::MASK;
        let value = format!("hunter2{}", "zz9");
        let api = format!("abcd1234{}", "efgh5678");
        check_json(
            json!({"password": value, "user": "ana", "n": 1}),
            &json!({"password": mask, "user": "ana", "n": 1}),
        );
        check_json(
            json!({"env": {"API_TOKEN": api, "HOME": "/home/ana"}}),
            &json!({"env": {"API_TOKEN": mask, "HOME": "/home/ana"}}),
        );
        check_json(
            json!([{"name": "DB_PASSWORD", "value": value}, "x"]),
            &json!([{"name": "DB_PASSWORD", "value": mask}, "x"]),
        );
        check_json(
            json!({"password": format!("{value}\"q\\n\u{e9}"), "b": "\"quoted\"\n"}),
            &json!({"password": mask, "b": "\"quoted\"\n"}),
        );
        check_json(
            json!({"stdout": format!("{{\"password\":\"{value}\"}}\nPASSWORD={value}\nok")}),
            &json!({"stdout": format!("{{\"password\":\"{mask}\"}}\nPASSWORD={mask}\nok")}),
        );
        check_json(json!({token(): 1}), &json!({mask: 1}));
        check_json(
            json!({"password": format!("{}{}", value, "A1b!".repeat(4_000))}),
            &json!({"password": mask}),
        );
        // A key that was read as an array of lines.
        let lines: Vec<String> = private_key(20).lines().map(str::to_owned).collect();
        let kept = json(
            json!({"lines": lines, "after": "x"}),
            &PrivateTokens::default(),
            10_000,
        )
        .value;
        assert!(!kept.to_string().contains("kqhkiG9w0"), "{kept}");
        assert_eq!(kept["after"], "x");
    }

    #[test]
    fn private_tokens_are_masked_in_values_and_keys() {
        let private_tokens = private_tokens(&["pw=T7-blue-99".to_owned()]);
        let value = json!({"a": ["echo T7-blue-99", {"T7-blue-99": 1}]});
        let sanitized = json(value, &private_tokens, 1_000);
        assert_eq!(
            sanitized.value,
            json!({"a": ["echo [private]", {"[private]": 1}]})
        );
        assert_eq!(sanitized.masked, 2);
    }

    #[test]
    fn the_longest_strings_are_cut_first() {
        let value = json!({
            "command": "cargo test",
            "stdout": "line of output\n".repeat(1_000),
            "list": ["x".repeat(2_000), "short", 1, null],
        });
        let kept = json(value, &PrivateTokens::default(), 1_000).value;
        assert_eq!(kept["command"], "cargo test");
        assert_eq!(kept["list"][1], "short");
        let stdout = kept["stdout"].as_str().unwrap();
        assert!(
            stdout.starts_with("line of output\nline") && stdout.ends_with("of output\n"),
            "{stdout}"
        );
        assert!(stdout.contains(" characters left out …]"));
        let (head, tail) = stdout.split_once("[… ").unwrap();
        let tail = tail.split_once("…]").unwrap().1;
        assert!(
            (tail.len() * 2).abs_diff(head.len()) < 60,
            "{} {}",
            head.len(),
            tail.len()
        );
        assert!(
            (900..=1_000).contains(&kept.to_string().len()),
            "{}",
            kept.to_string().len()
        );
    }

    #[test]
    fn entries_are_left_out_if_not_all_fit() {
        let items: Vec<String> = (0..10_000).map(|n| format!("item {n}")).collect();
        let kept = json(json!(items), &PrivateTokens::default(), 400).value;
        let kept = kept.as_array().unwrap();
        assert_eq!(kept.first().unwrap(), "item 0");
        assert_eq!(kept.last().unwrap(), "item 9999");
        let mark = format!("[… 9,{:03} entries left out …]", 1_000 - (kept.len() - 1));
        assert!(kept.contains(&json!(mark)), "{mark} {kept:?}");
        let object: Value = items.iter().map(|item| (item.clone(), json!(1))).collect();
        let kept = json(object, &PrivateTokens::default(), 400).value;
        let kept = kept.as_object().unwrap();
        assert_eq!(kept.keys().next().unwrap(), "item 0");
        assert!(kept["…"].as_str().unwrap().ends_with("entries left out …]"));
        let key = "k".repeat(300);
        let kept = json(json!({key.clone(): 1}), &PrivateTokens::default(), 1_000).value;
        assert_eq!(kept, json!({format!("{}…", &key[..MAX_KEY]): 1}));
    }

    #[test]
    fn file_contents_are_replaced() {
        let body = json!({"bytes": 6, "lines": 1, "sha256": "5891b5b522d5df08"});
        for (tool, value, expected) in [
            (
                "Write",
                json!({"file_path": "a", "content": "hello\n"}),
                json!({"file_path": "a", "content": body}),
            ),
            (
                "Write",
                json!({"type": "create", "content": "hello\n", "structuredPatch": [], "originalFile": null}),
                json!({"type": "create", "content": body, "structuredPatch": [], "originalFile": null}),
            ),
            (
                "Edit",
                json!({"old_string": "hello\n", "new_string": "hello\n", "structuredPatch": [{"lines": ["-a", "+b"]}]}),
                json!({"old_string": body, "new_string": body, "structuredPatch": [{"lines": ["-a", "+b"]}]}),
            ),
            (
                "MultiEdit",
                json!({"edits": [{"old_string": "hello\n"}]}),
                json!({"edits": [{"old_string": body}]}),
            ),
            (
                "Read",
                json!({"type": "text", "file": {"filePath": "a", "content": "hello\n", "numLines": 1}}),
                json!({"type": "text", "file": {"filePath": "a", "content": body, "numLines": 1}}),
            ),
            ("Read", json!("hello\n"), body.clone()),
            (
                "Read",
                json!("<tool_use_error>no</tool_use_error>"),
                json!("<tool_use_error>no</tool_use_error>"),
            ),
            (
                "Grep",
                json!({"mode": "content", "content": "a:1:x"}),
                json!({"mode": "content", "content": "a:1:x"}),
            ),
            (
                "mcp__x__y",
                json!([{"type": "text", "content": "hello\n"}]),
                json!([{"type": "text", "content": "hello\n"}]),
            ),
            // The hash covers the stripped text.
            (
                "Write",
                json!({"content": "he<private>x</private>llo\n"}),
                json!({"content": body}),
            ),
        ] {
            let kept = tool_json(tool, value, &PrivateTokens::default(), 4_000).value;
            assert_eq!(kept, expected, "{tool}");
        }
        let patch = json!({"structuredPatch": [{"lines": vec!["+a line of text"; 2_000]}], "x": "y".repeat(5_000)});
        let kept = tool_json("Edit", patch, &PrivateTokens::default(), 16_000).value;
        assert!(kept["structuredPatch"].to_string().len() <= MAX_PATCH);
        assert_eq!(kept["x"].as_str().unwrap().len(), 5_000);
    }

    #[test]
    fn a_successful_response_keeps_its_tail() {
        let check = |tool: &str, value: Value, expected: Value| {
            assert_eq!(
                tool_tail(tool, value, &PrivateTokens::default()).value,
                expected
            );
        };
        check(
            "Bash",
            json!({"stdout": "3 passed", "stderr": "warn", "interrupted": false}),
            json!({"bytes": 12, "tail": "3 passed\nwarn"}),
        );
        check(
            "Write",
            json!("done\n"),
            json!({"bytes": 5, "tail": "done\n"}),
        );
        check("Bash", Value::Null, json!({"bytes": 0, "tail": ""}));
        let kept = tool_tail(
            "Bash",
            json!({"stdout": "é line of output\n".repeat(9_000), "stderr": ""}),
            &PrivateTokens::default(),
        );
        let tail = kept.value["tail"].as_str().unwrap();
        assert_eq!(kept.value["bytes"], 162_000);
        assert!(
            tail.ends_with("\né line of output\n") && tail.len() > TAIL - 2 && tail.len() <= TAIL
        );
        let items: Vec<String> = (0..20_000).map(|n| format!("item {n}")).collect();
        let kept = tool_tail(
            "Bash",
            json!({"a": items, "b": {"password": "hunter2zz9"}}),
            &PrivateTokens::default(),
        );
        let tail = kept.value["tail"].as_str().unwrap();
        assert!(
            tail.ends_with("item 19998\nitem 19999\n[REDACTED]"),
            "{tail}"
        );
    }

    #[test]
    fn the_work_is_linear() {
        for unit in [
            "a line of output\n",
            "\u{1b}[1m",
            "<private></private>",
            "QUJD",
            "é",
            "\"\\",
        ] {
            let text_of = |size: usize| unit.repeat(size / unit.len());
            let items_of = |size: usize| Value::from(vec![unit; size / unit.len()]);
            let run = |value: Value| json(value, &PrivateTokens::default(), 4_096);
            let (small, large) = (text_of(1 << 15), text_of(1 << 19));
            assert_linear(unit, || run(json!([small])), || run(json!([large])));
            assert_linear(
                unit,
                || text(&small, &PrivateTokens::default(), 999),
                || text(&large, &PrivateTokens::default(), 999),
            );
            let (small, large) = (items_of(1 << 15), items_of(1 << 19));
            assert_linear(unit, || run(small.clone()), || run(large.clone()));
        }
    }

    /// JSON of any shape, with strings that need escapes.
    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            "[a-c\"\\\\\u{0}-\u{1f}é🚀]{0,60}".prop_map(Value::from),
            "[x ]{0,400}".prop_map(Value::from),
            any::<i16>().prop_map(|number| Value::from(f64::from(number) / 4.0)),
            any::<u64>().prop_map(Value::from),
            Just(Value::Null),
        ];
        leaf.prop_recursive(6, 60, 12, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
                prop::collection::vec(("[a-cé\"]{0,150}", inner), 0..12)
                    .prop_map(|entries| entries.into_iter().collect()),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_is_within_its_limit_and_parses(value in prop_oneof![any_json(), tagged_json()], limit in 4_usize..2_000) {
            let kept = json(value, &PrivateTokens::default(), limit).value;
            let written = kept.to_string();
            prop_assert!(written.len() <= limit, "{} > {limit}: {written}", written.len());
            prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), kept);
            prop_assert!(!written.contains("\\u00"), "{written}");
        }

        #[test]
        fn json_that_fits_is_only_cleaned(value in any_json()) {
            let kept = json(value.clone(), &PrivateTokens::default(), 1 << 20).value;
            let mut cleaned = value;
            prepare(&mut cleaned, None);
            change_keys(&mut cleaned, &mut |key| {
                let head = first_characters(key, MAX_KEY);
                (head.len() < key.len()).then(|| format!("{head}…"))
            });
            prop_assert_eq!(kept, cleaned);
        }

        #[test]
        fn a_private_value_is_always_removed(before in tagged_json(), after in tagged_json(), limit in 64_usize..4_000) {
            let value = json!([before, {"a": "\"'><private>"}, [{"b": ["\"'>MARKER"]}], after]);
            let kept = json(value, &PrivateTokens::default(), limit).value.to_string();
            prop_assert!(!kept.contains("MARKER"), "{kept}");
        }
    }
}
