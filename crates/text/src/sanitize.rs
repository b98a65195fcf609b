//! Makes what a session says fit to be stored, in the one order that is safe.
//!
//! 1. Private and injected regions are removed ([`crate::privacy`]), from the whole of it.
//! 2. File bodies give way to their length, line count and hash.
//! 3. Control and invisible characters are removed ([`crate::clean`]); where there were any, the
//!    first step is repeated, since they may have parted a tag.
//! 4. Of what is much too long, the middle is dropped.
//! 5. What is known to be private is masked ([`crate::private_tokens`]), then credentials
//!    ([`crate::redact`]).
//! 6. It is cut to size.
//!
//! The fourth step exists because masking 50 MiB would take longer than a hook may: what is kept
//! in the end is masked together with 8 KiB on the side of each drop, and these are
//! dropped, too. No credential is that long but a key that fills the lines around it with
//! base64, and where nothing but base64 stands before the end that would be kept, no end is kept.
//!
//! Invariants: a result of [`json()`] is never longer than its limit, parses, and has no control
//! characters but tabs and line feeds.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::clean::clean;
use crate::privacy::{Keys, PrivateTexts, Removed, strip, strip_json};
use crate::private_tokens::Echoes;
use crate::redact::{self, Finding, redact};

/// How many bytes beside a drop are masked with what is kept, and then dropped.
const GUARD: usize = 8 * 1024;

/// How much is kept of the response of a tool that succeeded, in bytes.
pub const TAIL: usize = 1024;

/// How much is kept of an edit's patch, in bytes of JSON.
const PATCH: usize = 4 * 1024;

/// The longest key, in characters.
const LONGEST_KEY: usize = 128;

/// The longest key that is looked at, in bytes; of a longer one nothing is kept.
const LONGEST_KEY_READ: usize = 4 * 1024;

/// The least that a value is cut to, in bytes of JSON. Where there is no room for that many bytes
/// of each, some are left out.
const LEAST: usize = 64;

/// The most that the mark of left-out entries takes, in bytes of JSON with its key.
const MARK: usize = 60;

/// Stands where something was dropped, before and behind the number of characters. No clean text
/// has it.
const GAP: char = '\0';

/// Stands before the number of entries that were left out. No clean text has it.
const ENTRIES: char = '\u{1}';

/// How much of a string is read again with its name, in bytes.
const NAMED: usize = 4 * 1024;

/// The tools whose arguments and responses hold bodies of files.
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

/// The names under which those tools give bodies of files, or stretches of one.
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

/// A text or value that may be stored, and what was done to it.
#[derive(Debug, Clone, PartialEq)]
pub struct Sanitized<T> {
    /// What may be stored.
    pub value: T,
    /// Whether a person marked any part as private.
    pub private: bool,
    /// Whether there were over a hundred regions.
    pub many_tags: bool,
    /// How many regions were removed.
    pub regions: usize,
    /// What stood in private regions: for [`crate::private_tokens::hashes`], never to be stored.
    pub private_texts: PrivateTexts,
    /// How many credentials and private tokens were masked in what is kept.
    pub masked: usize,
}

impl<T> Sanitized<T> {
    fn new(value: T, removed: Removed, masked: usize) -> Self {
        Sanitized {
            value,
            private: removed.private,
            many_tags: removed.is_many(),
            regions: removed.regions,
            private_texts: removed.private_texts,
            masked,
        }
    }
}

/// Makes a text fit to be stored, and cuts it to a number of characters.
///
/// Of a longer one the first three quarters of the limit and the last quarter stay, with a mark
/// between them that says how many characters are left out; the mark does not count.
pub fn text(raw: &str, echoes: &Echoes, limit: usize) -> Sanitized<String> {
    cut(raw, echoes, limit, |left_out| {
        format!("\n{}\n", mark_of(left_out, "characters"))
    })
}

/// Does what [`text()`] does, with a line break in place of the mark: for what is read by a program.
pub fn ends(raw: &str, echoes: &Echoes, limit: usize) -> Sanitized<String> {
    cut(raw, echoes, limit, |_| "\n".to_owned())
}

fn cut(
    raw: &str,
    echoes: &Echoes,
    limit: usize,
    between: impl FnOnce(usize) -> String,
) -> Sanitized<String> {
    let (text, removed) = uncut(raw);
    let last = limit / 4;
    let first = limit - last;
    let mut masker = Masker::new(echoes);
    let text = without_middle(&text, 4 * first, 4 * last);
    let text = masker.mask(&text);
    let parts = Parts::of(&text);
    let count = parts.characters();
    let value = if parts.left_out == 0 && count <= limit {
        text.into_owned()
    } else {
        let head = first_characters(parts.head, first);
        let tail = last_characters(parts.tail, last);
        let kept = head.chars().count() + tail.chars().count();
        let between = between(parts.left_out + count - kept);
        format!("{head}{between}{tail}")
    };
    Sanitized::new(value, removed, masker.masked)
}

/// Removes what is private and what cannot be seen from a text; masks and cuts nothing.
///
/// For a text of which only a part is kept; whoever keeps it has it masked.
pub fn uncut(raw: &str) -> (Cow<'_, str>, Removed) {
    let stripped = strip(raw);
    let mut removed = Removed {
        regions: stripped.regions,
        private: stripped.private,
        private_texts: stripped.private_texts,
    };
    let Cow::Owned(cleaned) = clean(&stripped.text) else {
        return (stripped.text, removed);
    };
    // Invisible characters may have parted a tag.
    let again = strip(&cleaned);
    removed.add(&Removed {
        regions: again.regions,
        private: again.private,
        private_texts: again.private_texts,
    });
    (Cow::Owned(again.text.into_owned()), removed)
}

/// Makes JSON fit to be stored, and cuts it to a length in bytes as it is written without blanks.
///
/// The longest strings are cut first, each to its first two thirds and its last third, then items
/// and keys are left out; marks say how much. A limit under 64 that is too small gives `null`.
pub fn json(raw: Value, echoes: &Echoes, limit: usize) -> Sanitized<Value> {
    fitted(raw, None, echoes, limit)
}

/// Does what [`json()`] does for the arguments or the response of a tool.
///
/// Of the bodies of files that a tool reads or writes, only the length in bytes, the number of
/// lines and the beginning of the SHA-256 stay; of an edit's patch, 4 KiB.
pub fn tool_json(tool: &str, raw: Value, echoes: &Echoes, limit: usize) -> Sanitized<Value> {
    fitted(raw, Some(tool), echoes, limit)
}

/// Makes of a tool's response what is kept when the tool succeeded: `{"bytes": 5, "tail": "done\n"}`.
///
/// `bytes` is the length of all strings in it, without private regions and bodies of files; `tail`
/// the last of them, one below the other, at most [`TAIL`] bytes.
pub fn tool_tail(tool: &str, mut raw: Value, echoes: &Echoes) -> Sanitized<Value> {
    let removed = prepare(&mut raw, Some(tool));
    let bytes = text_length(&raw);
    // Twice as much, since every value takes some room.
    keep_last(&mut raw, &mut (2 * TAIL + GUARD));
    let mut masker = Masker::new(echoes);
    masker.mask_json(&mut raw);
    let mut lines = String::new();
    join_strings(&raw, &mut lines);
    let end = tail(&lines, TAIL);
    Sanitized::new(json!({"bytes": bytes, "tail": end}), removed, masker.masked)
}

fn fitted(mut value: Value, tool: Option<&str>, echoes: &Echoes, limit: usize) -> Sanitized<Value> {
    let removed = prepare(&mut value, tool);
    Fit::BeforeMasking.fit(&mut value, limit.max(LEAST));
    let mut masker = Masker::new(echoes);
    masker.mask_json(&mut value);
    change_keys(&mut value, &mut |key| {
        let kept = first_characters(key, LONGEST_KEY);
        (kept.len() < key.len()).then(|| format!("{kept}…"))
    });
    if tool.is_some_and(has_bodies) {
        fit_patches(&mut value);
    }
    if limit >= LEAST {
        Fit::AfterMasking.fit(&mut value, limit);
    } else if Fit::AfterMasking.size(&value, limit) > limit {
        value = Value::Null;
    }
    fill_gaps(&mut value);
    Sanitized::new(value, removed, masker.masked)
}

/// Takes out what is not to be read at all: private regions, bodies, invisible characters.
fn prepare(value: &mut Value, tool: Option<&str>) -> Removed {
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
            _ if key.len() > LONGEST_KEY_READ => mark_of(key.chars().count(), "characters"),
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

/// Changes each string that is a value.
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

/// Replaces each key for which there is another one.
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
            let mut keys = Keys::default();
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

/// Puts length, line count and hash in place of the bodies of files.
fn replace_bodies(value: &mut Value, tool: &str) {
    match value {
        // In a batch a response is what the model reads: of a tool that reads, the file itself.
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

/// Returns what stays of a file's body.
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
                    Fit::AfterMasking.fit(value, PATCH);
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

/// Drops all but the last values, as far as there is room for them.
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

/// Puts strings one below the other.
fn join_strings(value: &Value, lines: &mut String) {
    match value {
        Value::String(text) => {
            let Parts { head, tail, .. } = Parts::of(text);
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

/// A text and what was dropped from its middle.
#[derive(Debug, Clone, Copy)]
struct Parts<'a> {
    /// What comes before the gap; all of it where there is none.
    head: &'a str,
    /// How many characters the gap stands for.
    left_out: usize,
    /// What comes behind the gap; all of it where there is none.
    tail: &'a str,
    is_whole: bool,
}

impl<'a> Parts<'a> {
    fn of(text: &'a str) -> Self {
        let gap = text
            .split_once(GAP)
            .and_then(|(head, rest)| Some((head, rest.split_once(GAP)?)));
        match gap {
            Some((head, (count, tail))) => Parts {
                head,
                left_out: count.parse().unwrap_or(0),
                tail,
                is_whole: false,
            },
            None => Parts {
                head: text,
                left_out: 0,
                tail: text,
                is_whole: true,
            },
        }
    }

    /// Returns how many characters are left.
    fn characters(&self) -> usize {
        let tail = if self.is_whole { "" } else { self.tail };
        self.head.chars().count() + tail.chars().count()
    }
}

fn with_gap(head: &str, left_out: usize, tail: &str) -> String {
    format!("{head}{GAP}{left_out}{GAP}{tail}")
}

/// Drops the middle of a text that is much longer than what will be kept at both ends, in bytes.
fn without_middle(text: &str, first: usize, last: usize) -> Cow<'_, str> {
    if text.len() <= first + last + 2 * GUARD {
        return Cow::Borrowed(text);
    }
    let head = head(text, first + GUARD);
    let rest = &text[head.len()..];
    let tail = checked_tail(rest, last);
    let left_out = rest[..rest.len() - tail.len()].chars().count();
    Cow::Owned(with_gap(head, left_out, tail))
}

/// Drops the start of a text of which only the end will be kept.
fn without_start(text: &str, last: usize) -> String {
    let tail = checked_tail(text, last.saturating_sub(GUARD));
    let left_out = text[..text.len() - tail.len()].chars().count();
    with_gap("", left_out, tail)
}

/// Returns the end of a text with its guard, or nothing where that may begin inside a key.
fn checked_tail(text: &str, last: usize) -> &str {
    let tail = tail(text, last + GUARD);
    if is_base64(head(tail, GUARD)) {
        ""
    } else {
        tail
    }
}

/// Tells whether a text consists of long runs of base64, as the inside of a key does.
fn is_base64(text: &str) -> bool {
    let is_inside = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=');
    let bytes = text.as_bytes();
    let inside = bytes.iter().filter(|byte| is_inside(byte)).count();
    let runs = bytes.chunk_by(|a, b| is_inside(a) == is_inside(b)).count() / 2 + 1;
    let has = |is: fn(&u8) -> bool| bytes.iter().any(is);
    inside * 4 > bytes.len() * 3
        && inside / runs >= 24
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_uppercase)
        && has(u8::is_ascii_lowercase)
}

/// Masks what is private and what is a credential.
struct Masker<'e> {
    echoes: &'e Echoes,
    masked: usize,
}

impl<'e> Masker<'e> {
    fn new(echoes: &'e Echoes) -> Self {
        let masked = 0;
        Masker { echoes, masked }
    }

    /// Masks a text, and drops the guards of what was dropped from it.
    fn mask<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let parts = Parts::of(text);
        if parts.is_whole {
            return self.mask_whole(text);
        }
        let masked_head = self.mask_whole(parts.head);
        let masked_tail = self.mask_whole(parts.tail);
        let kept_head = head(&masked_head, masked_head.len().saturating_sub(GUARD));
        let kept_tail = tail(&masked_tail, masked_tail.len().saturating_sub(GUARD));
        let guards = [
            &masked_head[kept_head.len()..],
            &masked_tail[..masked_tail.len() - kept_tail.len()],
        ];
        let guards: usize = guards.iter().map(|guard| guard.chars().count()).sum();
        Cow::Owned(with_gap(kept_head, parts.left_out + guards, kept_tail))
    }

    fn mask_whole<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let (text, echoes) = self.echoes.mask_counted(text);
        self.masked += echoes;
        let redacted = redact(&text);
        self.masked += redacted.findings.len();
        match redacted.text {
            Cow::Owned(masked) => Cow::Owned(masked),
            Cow::Borrowed(_) => text,
        }
    }

    /// Masks strings and keys, each as a text, then again together with their names.
    fn mask_json(&mut self, value: &mut Value) {
        change_strings(value, &mut |text| {
            if let Cow::Owned(masked) = self.mask(text) {
                *text = masked;
            }
        });
        change_keys(value, &mut |key| match self.mask(key) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        });
        let mut written = Written::default();
        written.write(value);
        let findings = redact(&written.text).findings;
        if !findings.is_empty() {
            self.masked += findings.len();
            let slots = written.slots.iter();
            let text = &written.text;
            let findings = &findings;
            Unwritten {
                text,
                slots,
                findings,
            }
            .read(value);
        }
    }
}

/// JSON as it is redacted: each entry and item on a line of its own, so that a name is seen with
/// its value, and lines in an array as lines.
#[derive(Default)]
struct Written {
    text: String,
    /// Where keys, strings and numbers stand, in the order in which they are written; of strings
    /// the inside, and of long ones the beginning.
    slots: Vec<Range<usize>>,
}

impl Written {
    fn write(&mut self, value: &Value) {
        match value {
            Value::Null | Value::Bool(_) => self.text.push_str(&value.to_string()),
            Value::Number(number) => {
                let start = self.text.len();
                self.text.push_str(&number.to_string());
                self.slots.push(start..self.text.len());
            }
            Value::String(text) => self.write_string(text),
            Value::Array(items) => {
                self.text.push_str("[\n");
                for item in items {
                    self.write(item);
                    self.text.push_str(",\n");
                }
                self.text.push(']');
            }
            Value::Object(object) => {
                self.text.push_str("{\n");
                for (key, value) in object {
                    self.write_string(key);
                    self.text.push_str(": ");
                    self.write(value);
                    self.text.push_str(",\n");
                }
                self.text.push('}');
            }
        }
    }

    fn write_string(&mut self, text: &str) {
        let quoted = Value::from(written_part(text)).to_string();
        let start = self.text.len() + 1;
        self.text.push_str(&quoted);
        self.slots.push(start..self.text.len() - 1);
    }
}

/// Returns what of a string is read with its name.
fn written_part(text: &str) -> &str {
    let before_gap = text.find(GAP).unwrap_or(text.len());
    head(text, NAMED.min(before_gap))
}

/// Puts what was found in [`Written`] JSON back into the values.
struct Unwritten<'w> {
    text: &'w str,
    slots: std::slice::Iter<'w, Range<usize>>,
    /// The findings that are not before the next slot.
    findings: &'w [Finding],
}

impl Unwritten<'_> {
    fn read(&mut self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) => {}
            Value::Number(_) => {
                if self.next().is_some() {
                    *value = Value::from(redact::MASK);
                }
            }
            Value::String(text) => self.read_string(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.read(item)),
            Value::Object(object) => {
                let mut keys = Keys::default();
                for (mut key, mut value) in mem::take(object) {
                    self.read_string(&mut key);
                    self.read(&mut value);
                    keys.insert(object, key, value);
                }
            }
        }
    }

    fn read_string(&mut self, text: &mut String) {
        if let Some((masked, reaches_end)) = self.next() {
            let rest = if reaches_end {
                ""
            } else {
                &text[written_part(text).len()..]
            };
            // A mask that begins or ends within an escape leaves no string.
            *text = match serde_json::from_str::<String>(&format!("\"{masked}\"")) {
                Ok(masked) => masked + rest,
                Err(_) => redact::MASK.to_owned(),
            };
        }
    }

    /// Returns the text of the next slot, masked, and whether a mask reaches its end; none if
    /// nothing was found there.
    fn next(&mut self) -> Option<(String, bool)> {
        let slot = self.slots.next()?;
        let before = self
            .findings
            .iter()
            .take_while(|finding| finding.end <= slot.start);
        self.findings = self.findings.get(before.count()..)?;
        let inside = self
            .findings
            .iter()
            .take_while(|finding| finding.start < slot.end);
        let mut masked = String::new();
        let mut kept = slot.start;
        for finding in inside {
            masked.push_str(self.text.get(kept..finding.start).unwrap_or_default());
            masked.push_str(redact::MASK);
            kept = finding.end;
        }
        if kept == slot.start {
            return None;
        }
        masked.push_str(self.text.get(kept..slot.end).unwrap_or_default());
        Some((masked, kept >= slot.end))
    }
}

/// Cuts JSON to size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fit {
    /// Lengths are near enough, and strings keep their guards.
    BeforeMasking,
    /// Lengths are those of what is written in the end.
    AfterMasking,
}

impl Fit {
    /// Cuts a value to a number of bytes, at least [`LEAST`].
    fn fit(self, value: &mut Value, limit: usize) {
        if self.size(value, limit) <= limit {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => *text = self.shorten(text, limit),
            Value::Array(items) => self.fit_items(items, limit),
            Value::Object(object) => self.fit_entries(object, limit),
        }
    }

    fn fit_items(self, items: &mut Vec<Value>, limit: usize) {
        // Two brackets, and a comma with each item.
        let room = limit - 2;
        let smallest = |item: &Value| 1 + self.size(item, LEAST).min(LEAST);
        if count_within(items.iter().map(smallest), room) < items.len() {
            let room = room - MARK;
            let last = count_within(items.iter().rev().map(smallest), room / 3);
            let first = count_within(items.iter().map(smallest), room - room / 3);
            let dropped = first..items.len() - last;
            let left_out = items.get(dropped.clone()).unwrap_or_default();
            let mark = entries_gap(left_out.iter());
            items.splice(dropped, [mark]);
        }
        let sizes: Vec<usize> = items.iter().map(|item| self.size(item, limit)).collect();
        let share = equal_share(&sizes, room - items.len());
        for (item, size) in items.iter_mut().zip(sizes) {
            if size > share {
                self.fit(item, share);
            }
        }
    }

    fn fit_entries(self, object: &mut Map<String, Value>, limit: usize) {
        // Two braces, and a colon and a comma with each entry.
        let room = limit - 2;
        let with_key = |(key, value): (&String, &Value)| {
            self.length(key) + 2 + self.size(value, LEAST).min(LEAST)
        };
        if count_within(object.iter().map(with_key), room) < object.len() {
            let first = count_within(object.iter().map(with_key), room - MARK);
            let mark = entries_gap(object.values().skip(first));
            *object = mem::take(object).into_iter().take(first).collect();
            Keys::default().insert(object, String::from("…"), mark);
        }
        let keys: usize = object.keys().map(|key| self.length(key) + 2).sum();
        let sizes: Vec<usize> = object.values().map(|item| self.size(item, limit)).collect();
        let share = equal_share(&sizes, room - keys);
        for (value, size) in object.values_mut().zip(sizes) {
            if size > share {
                self.fit(value, share);
            }
        }
    }

    /// Returns the length of JSON in bytes, or some number over the limit if it is longer.
    fn size(self, value: &Value, limit: usize) -> usize {
        match value {
            Value::Null => 4,
            Value::Bool(value) => 5 - usize::from(*value),
            Value::Number(number) => number.to_string().len(),
            Value::String(text) => self.length(text),
            Value::Array(items) => {
                let mut size = 2 + items.len().saturating_sub(1);
                for item in items {
                    if size > limit {
                        break;
                    }
                    size += self.size(item, limit - size);
                }
                size
            }
            Value::Object(object) => {
                let mut size = 2 + object.len().saturating_sub(1);
                for (key, value) in object {
                    size += self.length(key) + 1;
                    if size > limit {
                        break;
                    }
                    size += self.size(value, limit - size);
                }
                size
            }
        }
    }

    /// Returns the length of a string in bytes of JSON.
    fn length(self, text: &str) -> usize {
        if self == Fit::BeforeMasking {
            return text.len() + 2;
        }
        if let Some(mark) = entries_mark(text) {
            return mark.len() + 2;
        }
        let parts = Parts::of(text);
        if parts.is_whole {
            return escaped_length(text) + 2;
        }
        let mark = mark_of(parts.left_out, "characters");
        escaped_length(parts.head) + mark.len() + escaped_length(parts.tail) + 2
    }

    fn shorten(self, text: &str, limit: usize) -> String {
        if self == Fit::BeforeMasking {
            return without_middle(text, limit, limit).into_owned();
        }
        let parts = Parts::of(text);
        let count = parts.characters();
        let mark = mark_of(parts.left_out + count, "characters");
        let room = limit.saturating_sub(mark.len() + 2);
        let head = escaped_head(parts.head, room - room / 3);
        let tail = escaped_tail(parts.tail, room / 3);
        let kept = head.chars().count() + tail.chars().count();
        with_gap(head, parts.left_out + count.saturating_sub(kept), tail)
    }
}

/// Returns how many lengths have room, from the first one on.
fn count_within(lengths: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut total = 0;
    lengths
        .take_while(|length| {
            total += length;
            total <= room
        })
        .count()
}

/// Returns the largest number that can be given to each where those who need less leave the rest.
fn equal_share(sizes: &[usize], mut room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut count = sizes.len();
    for size in sizes {
        let share = room / count;
        if size > share {
            return share;
        }
        room -= size;
        count -= 1;
    }
    usize::MAX
}

/// Returns what stands for entries that are left out, until [`fill_gaps`].
fn entries_gap<'v>(entries: impl Iterator<Item = &'v Value>) -> Value {
    let count: usize = entries
        .map(|entry| entry.as_str().and_then(entries_of).unwrap_or(1))
        .sum();
    Value::from(format!("{ENTRIES}{count}"))
}

fn entries_of(text: &str) -> Option<usize> {
    text.strip_prefix(ENTRIES)?.parse().ok()
}

fn entries_mark(text: &str) -> Option<String> {
    entries_of(text).map(|count| mark_of(count, "entries"))
}

/// Puts marks that people read in place of the gaps.
fn fill_gaps(value: &mut Value) {
    change_strings(value, &mut |text| {
        if let Some(mark) = entries_mark(text) {
            *text = mark;
            return;
        }
        let parts = Parts::of(text);
        if !parts.is_whole {
            let mark = mark_of(parts.left_out, "characters");
            *text = format!("{}{mark}{}", parts.head, parts.tail);
        }
    });
}

/// Returns the mark that says how many of what is left out.
fn mark_of(count: usize, what: &str) -> String {
    let digits = count.to_string();
    let mut number = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            number.push(',');
        }
        number.push(digit);
    }
    format!("[… {number} {what} left out …]")
}

/// Returns how long a text is in a JSON string.
fn escaped_length(text: &str) -> usize {
    text.bytes().map(escaped_byte_length).sum()
}

fn escaped_byte_length(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | 8..=10 | 12 | 13 => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// Returns the longest beginning of a text that takes at most so many bytes in a JSON string.
fn escaped_head(text: &str, room: usize) -> &str {
    let bytes = text.bytes().map(escaped_byte_length);
    head(text, count_within(bytes, room))
}

/// Returns the longest end of a text that takes at most so many bytes in a JSON string.
fn escaped_tail(text: &str, room: usize) -> &str {
    let bytes = text.bytes().rev().map(escaped_byte_length);
    tail(text, count_within(bytes, room))
}

/// Returns the longest beginning of a text with at most so many bytes.
pub fn head(text: &str, bytes: usize) -> &str {
    let mut end = bytes.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// Returns the longest end of a text with at most so many bytes.
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

    use super::*;
    use anamnesis_testkit::assert_linear;

    use crate::privacy::tests::tagged_json;
    use crate::private_tokens::{Key, hashes};

    fn echoes(private: &[String]) -> Echoes {
        let key = Key::new([7; 16]);
        let hashes = hashes(&key, private).into_iter();
        hashes.map(|hash| (key, hash)).collect()
    }

    /// A credential that is one in any surroundings, put together so that no scanner takes it for
    /// a live one.
    fn token() -> String {
        format!("gh{}_{}", 'p', "aB3dE6gH9jK2mN5pQ8sT1vW4xY7zA0cF3iL6")
    }

    /// A private key of so many lines.
    fn private_key(lines: usize) -> String {
        let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7VJTUt9Us8cK\n";
        let (begin, end) = ("-----BEGIN", "-----END");
        format!(
            "{begin} PRIVATE KEY-----\n{}{end} PRIVATE KEY-----\n",
            line.repeat(lines)
        )
    }

    #[test]
    fn a_text_passes_every_step() {
        let echoes = echoes(&["T7-blue-99".to_owned()]);
        let raw = format!(
            " use <private>K9-secret</private> \u{1b}[1mT7-blue-99\u{1b}[0m and {} <pri\u{200b}vate>x",
            token()
        );
        let sanitized = text(&raw, &echoes, 100);
        assert_eq!(sanitized.value, "use  [private] and [REDACTED]");
        assert_eq!((sanitized.regions, sanitized.masked), (2, 2));
        assert!(sanitized.private && !sanitized.many_tags);
        assert_eq!(*sanitized.private_texts, ["K9-secret", "x"]);
        let many = "<private/>".repeat(101);
        assert!(text(&many, &echoes, 100).many_tags);
    }

    #[test]
    fn a_long_text_keeps_its_ends() {
        let words: Vec<String> = (0..1_000).map(|n| format!("é{n:03}")).collect();
        let raw = words.concat();
        let kept = text(&raw, &Echoes::default(), 16).value;
        assert_eq!(kept, "é000é001é002\n[… 3,984 characters left out …]\né999");
        // However long it is, and whatever of it was never looked at.
        let raw = raw.repeat(50);
        let kept = text(&raw, &Echoes::default(), 16).value;
        assert_eq!(
            kept,
            "é000é001é002\n[… 199,984 characters left out …]\né999"
        );
        assert_eq!(text("éa", &Echoes::default(), 2).value, "éa");
        assert_eq!(
            text("éa", &Echoes::default(), 0).value,
            "\n[… 2 characters left out …]\n"
        );
    }

    /// PR-8: a secret at a cut, or beside what is not masked at all, is no secret half kept.
    #[test]
    fn no_cut_goes_through_a_secret() {
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
                    let kept = text(&raw, &Echoes::default(), 800).value;
                    assert!(!kept.contains(inside), "{shift}: {kept}");
                    let value = json!({"stdout": raw});
                    let kept = json(value.clone(), &Echoes::default(), 800)
                        .value
                        .to_string();
                    assert!(!kept.contains(inside), "{shift}: {kept}");
                    let kept = tool_tail("Bash", value, &Echoes::default())
                        .value
                        .to_string();
                    assert!(!kept.contains(inside), "{shift}: {kept}");
                }
            }
        }
    }

    #[test]
    fn the_inside_of_an_endless_key_is_not_kept() {
        let raw = format!("{}{}", "word ".repeat(20_000), private_key(3_000));
        for raw in [raw.as_str(), raw.trim_end().trim_end_matches('-')] {
            let kept = text(raw, &Echoes::default(), 800).value;
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
        let sanitized = json(value, &Echoes::default(), 10_000);
        assert_eq!(&sanitized.value, expected);
        assert!(sanitized.masked > 0);
    }

    #[test]
    fn secrets_in_json_are_seen_with_their_names() {
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
        // A key that was read as lines.
        let lines: Vec<String> = private_key(20).lines().map(str::to_owned).collect();
        let kept = json(
            json!({"lines": lines, "after": "x"}),
            &Echoes::default(),
            10_000,
        )
        .value;
        assert!(!kept.to_string().contains("kqhkiG9w0"), "{kept}");
        assert_eq!(kept["after"], "x");
    }

    #[test]
    fn what_is_private_is_recognized_in_values_and_keys() {
        let echoes = echoes(&["pw=T7-blue-99".to_owned()]);
        let value = json!({"a": ["echo T7-blue-99", {"T7-blue-99": 1}]});
        let sanitized = json(value, &echoes, 1_000);
        assert_eq!(
            sanitized.value,
            json!({"a": ["echo [private]", {"[private]": 1}]})
        );
        assert_eq!(sanitized.masked, 2);
    }

    /// LIM-1.
    #[test]
    fn the_longest_strings_are_cut_first() {
        let value = json!({
            "command": "cargo test",
            "stdout": "line of output\n".repeat(1_000),
            "list": ["x".repeat(2_000), "short", 1, null],
        });
        let kept = json(value, &Echoes::default(), 1_000).value;
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
    fn entries_are_left_out_where_there_is_no_room_for_a_part_of_each() {
        let items: Vec<String> = (0..10_000).map(|n| format!("item {n}")).collect();
        let kept = json(json!(items), &Echoes::default(), 400).value;
        let kept = kept.as_array().unwrap();
        assert_eq!(kept.first().unwrap(), "item 0");
        assert_eq!(kept.last().unwrap(), "item 9999");
        let mark = format!("[… 9,{:03} entries left out …]", 1_000 - (kept.len() - 1));
        assert!(kept.contains(&json!(mark)), "{mark} {kept:?}");
        let object: Value = items.iter().map(|item| (item.clone(), json!(1))).collect();
        let kept = json(object, &Echoes::default(), 400).value;
        let kept = kept.as_object().unwrap();
        assert_eq!(kept.keys().next().unwrap(), "item 0");
        assert!(kept["…"].as_str().unwrap().ends_with("entries left out …]"));
        let key = "k".repeat(300);
        let kept = json(json!({key.clone(): 1}), &Echoes::default(), 1_000).value;
        assert_eq!(kept, json!({format!("{}…", &key[..LONGEST_KEY]): 1}));
    }

    #[test]
    fn bodies_of_files_are_not_kept() {
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
            // The hash is of what is left.
            (
                "Write",
                json!({"content": "he<private>x</private>llo\n"}),
                json!({"content": body}),
            ),
        ] {
            let kept = tool_json(tool, value, &Echoes::default(), 4_000).value;
            assert_eq!(kept, expected, "{tool}");
        }
        let patch = json!({"structuredPatch": [{"lines": vec!["+a line of text"; 2_000]}], "x": "y".repeat(5_000)});
        let kept = tool_json("Edit", patch, &Echoes::default(), 16_000).value;
        assert!(kept["structuredPatch"].to_string().len() <= PATCH);
        assert_eq!(kept["x"].as_str().unwrap().len(), 5_000);
    }

    #[test]
    fn of_a_success_the_end_is_kept() {
        let check = |tool: &str, value: Value, expected: Value| {
            assert_eq!(tool_tail(tool, value, &Echoes::default()).value, expected);
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
            &Echoes::default(),
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
            &Echoes::default(),
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
            let run = |value: Value| json(value, &Echoes::default(), 4_096);
            let (small, large) = (text_of(1 << 15), text_of(1 << 19));
            assert_linear(unit, || run(json!([small])), || run(json!([large])));
            assert_linear(
                unit,
                || text(&small, &Echoes::default(), 999),
                || text(&large, &Echoes::default(), 999),
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
            let kept = json(value, &Echoes::default(), limit).value;
            let written = kept.to_string();
            prop_assert!(written.len() <= limit, "{} > {limit}: {written}", written.len());
            prop_assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), kept);
            prop_assert!(!written.contains("\\u00"), "{written}");
        }

        #[test]
        fn json_that_fits_is_only_cleaned(value in any_json()) {
            let kept = json(value.clone(), &Echoes::default(), 1 << 20).value;
            let mut cleaned = value;
            prepare(&mut cleaned, None);
            change_keys(&mut cleaned, &mut |key| {
                let head = first_characters(key, LONGEST_KEY);
                (head.len() < key.len()).then(|| format!("{head}…"))
            });
            prop_assert_eq!(kept, cleaned);
        }

        #[test]
        fn a_marked_value_never_comes_out(before in tagged_json(), after in tagged_json(), limit in 64_usize..4_000) {
            let value = json!([before, {"a": "\"'><private>"}, [{"b": ["\"'>MARKER"]}], after]);
            let kept = json(value, &Echoes::default(), limit).value.to_string();
            prop_assert!(!kept.contains("MARKER"), "{kept}");
        }
    }
}
