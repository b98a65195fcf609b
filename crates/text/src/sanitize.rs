//! Makes session text safe to store. The order of the steps matters:
//!
//! 1. Remove private and injected regions ([`crate::privacy`]) from the full text.
//! 2. Drop file contents.
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
//! Of the JSON of a tool call, every name, string and number goes through these steps, in document
//! order. A value is also masked together with the name before it, such as `password`.

mod gap;
mod leaf;
mod mask;

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

use crate::clean::clean;
use crate::privacy::{PrivateTexts, RemovedRegions, Stripped, strip, strip_all};
use crate::private_tokens::PrivateTokens;
use crate::redact::redact;
use crate::truncate::{self, first_characters, last_characters};
use gap::{GUARD, SplitText, omission_mark, without_middle, without_start};
use leaf::{Leaf, Role};
use mask::Masker;

pub use leaf::entries;

/// The most that is kept of a successful tool response, in bytes.
pub const TAIL: usize = 1024;

/// The longest name of a tool's argument that is kept, in characters.
const MAX_NAME: usize = 128;

/// The longest name that is read, in bytes; a longer one is dropped.
const MAX_NAME_READ: usize = 4 * 1024;

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
        let mut masker = Masker::new(private_tokens);
        let text = without_middle(text, 4 * (limit - limit / 4), 4 * (limit / 4));
        let ends = Self::cut(&masker.mask(&text), limit);
        (ends, masker.masked)
    }

    /// Cuts a masked text.
    fn cut(masked: &str, limit: usize) -> Self {
        let parts = SplitText::new(masked);
        let count = parts.characters();
        if parts.left_out == 0 && count <= limit {
            return Self {
                head: masked.to_owned(),
                left_out: 0,
                tail: String::new(),
            };
        }
        let head = first_characters(parts.head, limit - limit / 4);
        let tail = last_characters(parts.tail, limit / 4);
        let kept = head.chars().count() + tail.chars().count();
        Self {
            head: head.to_owned(),
            left_out: parts.left_out + count - kept,
            tail: tail.to_owned(),
        }
    }

    /// Returns the text with a mark in place of what is left out, and the range of the mark.
    pub fn with_mark(self) -> (String, Range<usize>) {
        let mut text = self.head;
        let start = text.len();
        if self.left_out > 0 {
            text += &format!("\n{}\n", omission_mark(self.left_out));
        }
        let mark = start..text.len();
        (text + &self.tail, mark)
    }
}

/// Removes private regions and invisible characters; neither masks nor truncates.
///
/// For texts of which a part is kept. The caller masks that part.
pub fn uncut(raw: &str) -> (Cow<'_, str>, RemovedRegions) {
    let Stripped { text, mut removed } = strip(raw);
    let Cow::Owned(cleaned) = clean(&text) else {
        return (text, removed);
    };
    // Invisible characters may have split a tag.
    let again = strip(&cleaned);
    removed.add(&again.removed);
    (Cow::Owned(again.text.into_owned()), removed)
}

/// Returns whether a text has a credential or a private region.
pub fn is_sensitive(text: &str) -> bool {
    let (plain, removed) = uncut(text);
    removed.private || !redact(&plain).findings.is_empty()
}

/// Sanitizes the arguments of a tool: for each entry its name, and its texts joined by line feeds.
///
/// Names and texts together have at most `limit` characters, without the marks for what is left
/// out. File contents are left out. A value that is no object is one entry without a name.
pub fn tool_input(
    tool: &str,
    raw: Value,
    private_tokens: &PrivateTokens,
    limit: usize,
) -> Sanitized<Vec<(String, String)>> {
    let (mut leaves, removed) = prepare(raw, tool);
    keep_first(&mut leaves, limit);
    let mut masker = Masker::new(private_tokens);
    masker.mask_leaves(&mut leaves);
    for leaf in &mut leaves {
        leaf.text = Ends::cut(&leaf.text, limit).with_mark().0;
    }
    let mut room = limit;
    let mut kept = Vec::new();
    for (name, text) in leaf::joined(leaves) {
        if room == 0 {
            break;
        }
        let name = truncate::line(&name, MAX_NAME);
        let text = Ends::cut(&text, room).with_mark().0;
        room = room.saturating_sub(name.chars().count() + text.chars().count() + 1);
        kept.push((name, text));
    }
    Sanitized::new(kept, removed, masker.masked)
}

/// Sanitizes the response of a tool: the length of all its texts in bytes, and the end of the
/// texts joined by line feeds, at most [`TAIL`] bytes. File contents are left out and not counted.
pub fn tool_output(
    tool: &str,
    raw: Value,
    private_tokens: &PrivateTokens,
) -> Sanitized<(usize, String)> {
    let (mut leaves, removed) = prepare(raw, tool);
    let texts = leaves.iter().filter(|leaf| leaf.role == Role::Text);
    let bytes = texts.map(|leaf| leaf.text.len()).sum();
    // Twice the size, because every text takes some room.
    keep_last(&mut leaves, 2 * TAIL + GUARD);
    let mut masker = Masker::new(private_tokens);
    masker.mask_leaves(&mut leaves);
    let mut lines = String::new();
    for leaf in leaves.iter().filter(|leaf| leaf.role == Role::Text) {
        let text = SplitText::new(&leaf.text).tail;
        if !lines.is_empty() && !lines.ends_with('\n') && !text.is_empty() {
            lines.push('\n');
        }
        lines.push_str(text);
    }
    Sanitized::new(
        (bytes, tail(&lines, TAIL).to_owned()),
        removed,
        masker.masked,
    )
}

/// Removes private regions, file contents and invisible characters.
fn prepare(raw: Value, tool: &str) -> (Vec<Leaf>, RemovedRegions) {
    let mut leaves = leaf::read(raw, tool);
    let mut removed = strip_leaves(&mut leaves);
    leaves.retain(|leaf| !leaf.is_file_content);
    let mut changed = false;
    for leaf in &mut leaves {
        if leaf.is_name() && leaf.text.len() > MAX_NAME_READ {
            leaf.text.clear();
        } else if let Cow::Owned(cleaned) = clean(&leaf.text) {
            leaf.text = cleaned;
            changed = true;
        }
    }
    if changed {
        removed.add(&strip_leaves(&mut leaves));
    }
    (leaves, removed)
}

fn strip_leaves(leaves: &mut [Leaf]) -> RemovedRegions {
    let mut texts: Vec<&mut String> = leaves.iter_mut().map(|leaf| &mut leaf.text).collect();
    strip_all(&mut texts)
}

/// Drops the middle of long texts, and all but the first leaves.
fn keep_first(leaves: &mut Vec<Leaf>, limit: usize) {
    let mut room = 4 * limit + 2 * GUARD;
    let mut count = 0;
    for leaf in leaves.iter_mut() {
        if room == 0 {
            break;
        }
        if let Cow::Owned(text) = without_middle(&leaf.text, 3 * limit, limit) {
            leaf.text = text;
        }
        room = room.saturating_sub(leaf.text.len() + 1);
        count += 1;
    }
    leaves.truncate(count);
}

/// Drops all but the last leaves that fit into the room, with the names before them.
fn keep_last(leaves: &mut Vec<Leaf>, mut room: usize) {
    let mut dropped = leaves.len();
    for leaf in leaves.iter_mut().rev() {
        if room == 0 && !leaf.is_name() {
            break;
        }
        if leaf.text.len() > room && !leaf.is_name() {
            leaf.text = without_start(&leaf.text, room);
        }
        room = room.saturating_sub(leaf.text.len() + 1);
        dropped -= 1;
    }
    leaves.drain(..dropped);
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use anamnesis_testkit::assert_linear;
    use proptest::prelude::*;
    use serde_json::json;

    use super::gap::is_base64;
    use super::*;

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
                    let kept = input(value.clone(), 800);
                    assert!(!kept["stdout"].contains(inside), "{shift}: {kept:?}");
                    let (_, kept) = tool_output("Bash", value, &PrivateTokens::default()).value;
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

    type Entries = BTreeMap<String, String>;

    /// What is kept of the arguments of a tool that is not for files.
    fn input(value: Value, limit: usize) -> Entries {
        let kept = tool_input("Bash", value, &PrivateTokens::default(), limit);
        kept.value.into_iter().collect()
    }

    fn check_input(value: Value, expected: &[(&str, &str)]) {
        let sanitized = tool_input("Bash", value, &PrivateTokens::default(), 10_000);
        let kept: Vec<(&str, &str)> = sanitized
            .value
            .iter()
            .map(|(name, text)| (name.as_str(), text.as_str()))
            .collect();
        assert_eq!(kept, expected);
        assert!(sanitized.masked > 0);
    }

    #[test]
    fn secrets_in_json_are_recognized_by_their_names() {
        let mask = redact::MASK;
        let value = format!("hunter2{}", "zz9");
        let api = format!("abcd1234{}", "efgh5678");
        check_input(
            json!({"password": value, "user": "ana", "n": 1}),
            &[("password", mask), ("user", "ana"), ("n", "1")],
        );
        check_input(
            json!({"env": {"API_TOKEN": api, "HOME": "/home/ana"}}),
            &[("env", &format!("{mask}\n/home/ana"))],
        );
        check_input(
            json!([{"name": "DB_PASSWORD", "value": value}, "x"]),
            &[("", &format!("DB_PASSWORD\n{mask}\nx"))],
        );
        check_input(
            json!({"password": format!("{value}\"q\\n\u{e9}"), "b": "\"quoted\"\n"}),
            &[("password", mask), ("b", "\"quoted\"\n")],
        );
        check_input(
            json!({"stdout": format!("{{\"password\":\"{value}\"}}\nPASSWORD={value}\nok")}),
            &[(
                "stdout",
                &format!("{{\"password\":\"{mask}\"}}\nPASSWORD={mask}\nok"),
            )],
        );
        check_input(json!({token(): 1}), &[(mask, "1")]);
        check_input(
            json!({"password": format!("{}{}", value, "A1b!".repeat(4_000))}),
            &[("password", mask)],
        );
        // A key that was read as an array of lines, also if its end is left out.
        for lines in [20, 2_000] {
            let key: Vec<String> = private_key(lines).lines().map(str::to_owned).collect();
            let kept = input(json!({"before": "x", "lines": key, "after": "y"}), 10_000);
            assert!(!format!("{kept:?}").contains("kqhkiG9w0"), "{kept:?}");
            assert_eq!(
                (kept["before"].as_str(), kept.contains_key("after")),
                ("x", lines == 20)
            );
        }
    }

    #[test]
    fn private_tokens_are_masked_in_values_and_names() {
        let private_tokens = private_tokens(&["pw=T7-blue-99".to_owned()]);
        let value = json!({"a": ["echo T7-blue-99", {"T7-blue-99": 1}], "T7-blue-99": "x"});
        let sanitized = tool_input("Bash", value, &private_tokens, 1_000);
        let expected = [("a", "echo [private]\n1"), ("[private]", "x")]
            .map(|(name, text)| (name.to_owned(), text.to_owned()));
        assert_eq!(sanitized.value, expected);
        assert_eq!(sanitized.masked, 3);
    }

    #[test]
    fn arguments_are_cut_in_their_order() {
        let value = json!({
            "command": "cargo test",
            "stdout": "line of output\n".repeat(1_000),
            "late": "x",
        });
        let kept = input(value, 1_000);
        assert_eq!(kept["command"], "cargo test");
        assert!(
            kept["stdout"].starts_with("line of output\nline")
                && kept["stdout"].ends_with("of output\n")
                && kept["stdout"].contains(" characters left out …]"),
            "{kept:?}"
        );
        assert!((900..=1_050).contains(&kept["stdout"].len()), "{kept:?}");
        assert!(!kept.contains_key("late"), "{kept:?}");
        let name = "k".repeat(300);
        let kept = input(json!({name: 1}), 1_000);
        assert_eq!(kept[&format!("{}…", "k".repeat(MAX_NAME - 1))], "1");
    }

    #[test]
    fn file_contents_are_left_out() {
        for (tool, value, expected) in [
            (
                "Write",
                json!({"file_path": "a", "content": "hello\n"}),
                &[("file_path", "a")][..],
            ),
            (
                "Write",
                json!({"type": "create", "content": "hello\n", "structuredPatch": [], "originalFile": null}),
                &[("type", "create")],
            ),
            (
                "Edit",
                json!({"old_string": "hello\n", "new_string": "hello\n", "structuredPatch": [{"lines": ["-a", "+b"]}]}),
                &[("structuredPatch", "-a\n+b")],
            ),
            (
                "MultiEdit",
                json!({"edits": [{"old_string": "hello\n"}]}),
                &[],
            ),
            (
                "NotebookEdit",
                json!({"cells": [{"source": "hello\n"}], "cell_id": "c"}),
                &[("cell_id", "c")],
            ),
            (
                "Read",
                json!({"type": "text", "file": {"filePath": "a", "content": "hello\n", "numLines": 1}}),
                &[("type", "text"), ("file", "a\n1")],
            ),
            ("Read", json!("hello\n"), &[]),
            (
                "Read",
                json!("<tool_use_error>no</tool_use_error>"),
                &[("", "<tool_use_error>no</tool_use_error>")],
            ),
            (
                "Grep",
                json!({"mode": "content", "content": "a:1:x"}),
                &[("mode", "content"), ("content", "a:1:x")],
            ),
            (
                "mcp__x__y",
                json!([{"type": "text", "content": "hello\n"}]),
                &[("", "text\nhello\n")],
            ),
        ] {
            let kept = tool_input(tool, value, &PrivateTokens::default(), 4_000).value;
            let expected: Vec<(String, String)> = expected
                .iter()
                .map(|&(name, text)| (name.to_owned(), text.to_owned()))
                .collect();
            assert_eq!(kept, expected, "{tool}");
        }
        // What a person marked in a file counts all the same.
        let value = json!({"content": "a<private>K9-secret</private>", "file_path": "x"});
        let kept = tool_input("Write", value, &PrivateTokens::default(), 4_000);
        assert_eq!(*kept.private_texts, ["K9-secret"]);
    }

    #[test]
    fn a_response_keeps_its_end() {
        let check = |tool: &str, value: Value, bytes: usize, end: &str| {
            let kept = tool_output(tool, value, &PrivateTokens::default()).value;
            assert_eq!(kept, (bytes, end.to_owned()));
        };
        check(
            "Bash",
            json!({"stdout": "3 passed", "stderr": "warn", "interrupted": false, "code": 0}),
            12,
            "3 passed\nwarn",
        );
        check("Write", json!("done\n"), 5, "done\n");
        check("Bash", Value::Null, 0, "");
        let output = |value: Value| tool_output("Bash", value, &PrivateTokens::default()).value;
        let (bytes, end) =
            output(json!({"stdout": "é line of output\n".repeat(9_000), "stderr": ""}));
        assert_eq!(bytes, 162_000);
        assert!(end.ends_with("\né line of output\n") && end.len() > TAIL - 2 && end.len() <= TAIL);
        let items: Vec<String> = (0..20_000).map(|n| format!("item {n}")).collect();
        let (_, end) = output(json!({"a": items, "b": {"password": "hunter2zz9"}}));
        assert!(end.ends_with("item 19998\nitem 19999\n[REDACTED]"), "{end}");
        let long = format!("hunter2{}", "A1b!".repeat(2_400));
        let (_, end) = output(json!({"a": "x".repeat(9_000), "password": long}));
        assert_eq!(end, "[REDACTED]");
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
            let run = |value: Value| {
                let output = tool_output("Bash", value.clone(), &PrivateTokens::default());
                (input(value, 4_096), output)
            };
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
        fn arguments_are_within_their_limit(
            value in prop_oneof![any_json(), tagged_json()], limit in 4_usize..2_000
        ) {
            let kept = tool_input("Bash", value, &PrivateTokens::default(), limit).value;
            let written: String = kept.iter().flat_map(|(name, text)| [name.as_str(), text]).collect();
            let marks = 40 * written.matches("left out").count() + MAX_NAME;
            prop_assert!(written.chars().count() <= limit + marks, "{limit}: {written}");
            let is_control = |c: char| c.is_control() && c != '\n' && c != '\t';
            prop_assert!(!written.contains(is_control), "{written:?}");
        }

        #[test]
        fn a_private_value_is_always_removed(
            before in tagged_json(), after in tagged_json(), limit in 64_usize..4_000
        ) {
            let value = json!([before, {"a": "\"'><private>"}, [{"b": ["\"'>MARKER"]}], after]);
            let kept = tool_input("Bash", value.clone(), &PrivateTokens::default(), limit).value;
            prop_assert!(!format!("{kept:?}").contains("MARKER"), "{kept:?}");
            let (_, kept) = tool_output("Bash", value, &PrivateTokens::default()).value;
            prop_assert!(!kept.contains("MARKER"), "{kept}");
        }
    }
}
