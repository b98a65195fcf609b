//! Credentials that are split or encoded: text without what splits them, and decoded base64.

use super::scan::{self, Finding, Index, byte};
use super::tokens::Alphabet;

/// Invisible characters that can split a word.
const INVISIBLE: &[&str] = &[
    "\u{200b}", "\u{200c}", "\u{200d}", "\u{200e}", "\u{200f}", "\u{2060}", "\u{feff}", "\u{ad}",
];

/// The same as escapes, and the continued line of a shell.
const ESCAPES: &[&str] = &[
    "\\\n", "\\\r\n", "\\\\\\n", "\\u200b", "\\u200c", "\\u200d", "\\u2060", "\\ufeff", "\\u00ad",
];

/// Returns the findings in what a text splits or encodes, as spans of the text.
pub(super) fn findings(text: &str, index: &Index) -> Vec<Finding> {
    let mut findings = joined(text, index);
    findings.extend(encoded(text, index));
    findings
}

/// The bytes before and after a split that are read without it.
const REACH: usize = 512;

/// Returns the findings that appear when what splits words is left out, as spans of the text.
fn joined(text: &str, index: &Index) -> Vec<Finding> {
    let splits = splits(text);
    let mut findings = Vec::new();
    let mut splits = splits.as_slice();
    while let Some((first, _)) = splits.first() {
        // The splits that are near to each other are left out together.
        let near = |pair: &&[(usize, usize)]| matches!(pair, [(_, before), (after, _)] if after - before < 2 * REACH);
        let count = 1 + splits.windows(2).take_while(near).count();
        let (group, rest) = splits.split_at(count);
        splits = rest;
        let end = group.last().map_or(*first, |(_, end)| *end);
        let bytes = text.as_bytes();
        let blank = Alphabet::new(b" \t\r\n");
        let mut from = first.saturating_sub(REACH);
        while from > 0 && from < *first && !blank.has(byte(bytes, from - 1)) {
            from += 1;
        }
        let mut to = blank.until(bytes, end + REACH.min(bytes.len() - end), REACH);
        while !text.is_char_boundary(to) {
            to += 1;
        }
        findings.extend(without(text, from, group, to, index));
    }
    findings
}

/// Returns where a text splits words, in order.
fn splits(text: &str) -> Vec<(usize, usize)> {
    let has = |part: &str| text.contains(part);
    let invisible = !text.is_ascii() && INVISIBLE.iter().any(|split| has(split));
    if !invisible && !["\\\n", "\\\r", "\\\\\\n", "\\u"].into_iter().any(has) {
        return Vec::new();
    }
    let mut splits = Vec::new();
    let mut at = 0;
    while let Some(byte) = text.as_bytes().get(at) {
        let known = match byte {
            b'\\' => ESCAPES,
            0xE2 | 0xEF | 0xC2 if invisible => INVISIBLE,
            _ => &[],
        };
        let rest = text.as_bytes().get(at..).unwrap_or_default();
        let found = known
            .iter()
            .find(|split| rest.starts_with(split.as_bytes()));
        let length = found.map_or(0, |split| split.len());
        if length > 0 {
            splits.push((at, at + length));
        }
        at += length.max(1);
    }
    splits
}

/// Returns the findings in a stretch of a text without some parts of it, as spans of the text.
fn without(
    text: &str,
    from: usize,
    parts: &[(usize, usize)],
    to: usize,
    index: &Index,
) -> Vec<Finding> {
    let mut view = String::new();
    // The position in the view from which text was copied, and its position in the text.
    let mut copied = Vec::with_capacity(parts.len() + 1);
    let mut start = from;
    for (end, next) in parts.iter().copied().chain([(to, to)]) {
        copied.push((view.len(), start));
        view.push_str(text.get(start..end).unwrap_or_default());
        start = next;
    }
    let position = |at: usize| {
        let part = copied.partition_point(|(view, _)| *view <= at);
        let part = part.checked_sub(1).and_then(|part| copied.get(part));
        part.map_or(at, |(view, text)| text + (at - view))
    };
    let mut findings = scan::scan(&view, index);
    for finding in &mut findings {
        finding.start = position(finding.start);
        finding.end = position(finding.end.saturating_sub(1)) + 1;
    }
    findings
}

/// The shortest base64 that is decoded, in bytes.
const SHORTEST: usize = 24;

/// The longest base64 that is decoded, in bytes. Longer ones are files.
const LONGEST: usize = 4096;

/// Returns the spans of base64 that decodes to text with a credential.
fn encoded(text: &str, index: &Index) -> Vec<Finding> {
    let bytes = text.as_bytes();
    let mut findings = Vec::new();
    let mut at = 0;
    // A run of `SHORTEST` bytes has a byte at each multiple of it.
    while let Some(byte) = bytes.get(at + SHORTEST - 1) {
        if !Alphabet::BASE64.has(*byte) {
            at += SHORTEST;
            continue;
        }
        let start = Alphabet::BASE64.run_back(bytes, at + SHORTEST - 1, SHORTEST - 1);
        if start > at {
            at = start;
            continue;
        }
        let end = Alphabet::BASE64.run(bytes, at);
        let start = after_name(bytes, at, end);
        if end - start <= LONGEST
            && let Some(plain) = bytes.get(start..end).and_then(decode)
            && let Some(finding) = scan::scan(&plain, index).first()
        {
            findings.push(Finding {
                rule: finding.rule,
                start,
                end,
            });
        }
        at = end + 1;
    }
    findings
}

/// Returns where base64 begins in a run of its alphabet: after a `=` that is no padding, as in
/// `key=cGFz…`.
fn after_name(text: &[u8], start: usize, end: usize) -> usize {
    let run = text.get(start..end).unwrap_or_default();
    let padding = run.iter().rev().take_while(|byte| **byte == b'=').count();
    let body = run.get(..run.len() - padding).unwrap_or_default();
    let separator = body.iter().rposition(|byte| *byte == b'=');
    separator.map_or(start, |at| start + at + 1)
}

/// Returns the text that base64 encodes; `None` if it is not text.
pub(super) fn decode(encoded: &[u8]) -> Option<String> {
    let encoded = encoded.strip_suffix(b"=").unwrap_or(encoded);
    let encoded = encoded.strip_suffix(b"=").unwrap_or(encoded);
    let mut plain = Vec::new();
    let mut bits = 0_u32;
    let mut held = 0;
    for byte in encoded {
        let six = match byte {
            b'A'..=b'Z' => byte - b'A',
            b'a'..=b'z' => byte - b'a' + 26,
            b'0'..=b'9' => byte - b'0' + 52,
            b'+' | b'-' => 62,
            b'/' | b'_' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            let decoded = (bits >> held).to_le_bytes()[0];
            if decoded < 0x20 && !decoded.is_ascii_whitespace() || decoded == 0x7F {
                return None;
            }
            plain.push(decoded);
        }
        bits &= 0xFFFF;
    }
    String::from_utf8(plain).ok()
}
