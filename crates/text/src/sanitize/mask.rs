//! Masks private tokens and credentials in texts and JSON.

use std::borrow::Cow;
use std::mem;
use std::ops::Range;

use serde_json::Value;

use super::gap::{GAP, GUARD, SplitText, with_gap};
use super::{change_keys, change_strings, head, tail};
use crate::privacy::UniqueKeys;
use crate::private_tokens::PrivateTokens;
use crate::redact::{self, Finding, redact};

/// The most of a string that is redacted again together with its name, in bytes.
const MAX_NAMED: usize = 4 * 1024;

/// Masks private tokens and credentials.
pub(super) struct Masker<'e> {
    private_tokens: &'e PrivateTokens,
    pub(super) masked: usize,
}

impl<'e> Masker<'e> {
    pub(super) fn new(private_tokens: &'e PrivateTokens) -> Self {
        let masked = 0;
        Masker {
            private_tokens,
            masked,
        }
    }

    /// Masks a text. If it has a gap, drops the guards beside it.
    pub(super) fn mask<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let parts = SplitText::new(text);
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
        let (text, masked) = self.private_tokens.mask_counted(text);
        self.masked += masked;
        let redacted = redact(&text);
        self.masked += redacted.findings.len();
        match redacted.text {
            Cow::Owned(masked) => Cow::Owned(masked),
            Cow::Borrowed(_) => text,
        }
    }

    /// Masks strings and keys, first by themselves, then together with their names.
    pub(super) fn mask_json(&mut self, value: &mut Value) {
        change_strings(value, &mut |text| {
            if let Cow::Owned(masked) = self.mask(text) {
                *text = masked;
            }
        });
        change_keys(value, &mut |key| match self.mask(key) {
            Cow::Owned(masked) => Some(masked),
            Cow::Borrowed(_) => None,
        });
        let mut written = RedactableJson::default();
        written.write(value);
        let findings = redact(&written.text).findings;
        if !findings.is_empty() {
            self.masked += findings.len();
            let slots = written.slots.iter();
            let text = &written.text;
            let findings = &findings;
            MaskWriter {
                text,
                slots,
                findings,
            }
            .read(value);
        }
    }
}

/// JSON written for redaction: each entry and item on its own line, so that names are next to their
/// values and arrays of lines read as lines.
#[derive(Default)]
struct RedactableJson {
    text: String,
    /// The ranges of keys, strings and numbers, in document order. Of a string, the range inside
    /// the quotation marks; of a long one, only the beginning is written.
    slots: Vec<Range<usize>>,
}

impl RedactableJson {
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

/// Returns the part of a string that is redacted together with its name.
fn written_part(text: &str) -> &str {
    let before_gap = text.find(GAP).unwrap_or(text.len());
    head(text, MAX_NAMED.min(before_gap))
}

/// Applies findings in [`RedactableJson`] to the values.
struct MaskWriter<'w> {
    text: &'w str,
    slots: std::slice::Iter<'w, Range<usize>>,
    /// The findings that do not end before the next slot.
    findings: &'w [Finding],
}

impl MaskWriter<'_> {
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
                let mut keys = UniqueKeys::default();
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
            // A mask that splits an escape makes the string invalid; mask all of it.
            *text = match serde_json::from_str::<String>(&format!("\"{masked}\"")) {
                Ok(masked) => masked + rest,
                Err(_) => redact::MASK.to_owned(),
            };
        }
    }

    /// Returns the masked text of the next slot and whether a mask extends to its end; `None` if
    /// the slot has no finding.
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
