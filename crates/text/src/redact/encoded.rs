//! Credentials in base64.

use super::scan::{self, Finding, Index};
use super::tokens::Alphabet;

/// The shortest base64 that is decoded, in bytes.
const SHORTEST: usize = 24;

/// The longest base64 that is decoded, in bytes. Longer ones are files.
const LONGEST: usize = 4096;

/// Returns the spans of base64 that decodes to text with a credential.
pub(super) fn findings(text: &str, index: &Index) -> Vec<Finding> {
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
