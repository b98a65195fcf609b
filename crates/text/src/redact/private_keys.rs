//! Private keys: armored blocks, `PuTTY` files, JSON web keys.
//!
//! Blocks are recognized as transcripts show them: after diff or quotation marks, with line numbers, as
//! concatenated string literals, truncated at either end.

use super::scan::{Scan, byte, find, starts};
use super::tokens::Alphabet;

/// The longest block that is masked as a whole, in bytes.
const LONGEST_BLOCK: usize = 64 * 1024;

/// The longest label of a block (`RSA PRIVATE KEY`).
const LONGEST_LABEL: usize = 64;

const BASE64: Alphabet = Alphabet::BASE64;

/// The bytes that may follow the key material of a line.
const END: Alphabet = Alphabet::new(b" \t\"'`,;+.)\r\\");

/// Masks a private key block that begins or ends at a position, or the lines of a `PuTTY` file.
pub(super) fn block(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let here = text.get(at..).unwrap_or_default();
    if starts(text, at, b"Private-Lines:") {
        putty(scan, at);
    } else if let Some(label) = here.strip_prefix(b"-----END") {
        if is_private(label) {
            headless(scan, at);
        }
    } else if let Some(label) = here
        .strip_prefix(b"-----BEGIN")
        .or(here.strip_prefix(b"---- BEGIN"))
        && is_private(label)
    {
        let body = at + LONGEST_LABEL.min(here.len());
        let body = find(scan.slice(0, body), at + 10, b"----")
            .map_or(body, |dashes| Alphabet::new(b"-").run(text, dashes));
        begun(scan, at, body);
    }
}

/// Returns whether a label after `BEGIN` or `END` names a private key.
fn is_private(label: &[u8]) -> bool {
    let label = label
        .get(..LONGEST_LABEL.min(label.len()))
        .unwrap_or_default();
    let label = label.to_ascii_uppercase();
    let end = find(&label, 0, b"----").unwrap_or(0);
    let label = label.get(..end).unwrap_or_default();
    find(label, 0, b"PRIVATE KEY").is_some() || find(label, 0, b"STATIC KEY").is_some()
}

/// Masks a block from its BEGIN line to its END line or, without one, to its last base64 line.
fn begun(scan: &mut Scan, at: usize, body: usize) {
    let text = scan.text;
    let limit = text.len().min(body + LONGEST_BLOCK);
    let within = scan.slice(0, limit);
    // The next dashes belong to the END line or to another block, which has its own anchor. So no
    // stretch is searched twice.
    if let Some(dashes) = find(within, body, b"----") {
        let dashes_end = Alphabet::new(b"-").run(text, dashes);
        let after = text.get(dashes_end..).unwrap_or_default();
        let after = after.strip_prefix(b" ").unwrap_or(after);
        let content = scan.slice(body, dashes);
        if after.starts_with(b"END")
            && is_private(after)
            && (byte(content, Alphabet::new(b" \t\r\\").run(content, 0)) == b'\n'
                || holds_key(content))
        {
            let label_end = find(text, dashes_end, b"----").unwrap_or(dashes_end);
            scan.found(at, Alphabet::new(b"-").run(text, label_end));
            return;
        }
    }
    let mut end = None;
    let mut line = next_line(text, body);
    while let Some(start) = line {
        let (content, line_end) = material(text, start);
        match content {
            Material::Key => end = Some(line_end),
            Material::Header => {}
            Material::Other => break,
        }
        line = next_line(text, line_end);
    }
    if let Some(end) = end {
        scan.found(at, end);
    }
}

/// Returns whether a text has a base64 run that is too long for a word.
fn holds_key(content: &[u8]) -> bool {
    content
        .split(|byte| !BASE64.has(*byte))
        .any(|run| run.len() >= 40)
}

/// Masks the base64 lines before an END line whose BEGIN line is missing.
fn headless(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let mut start = None;
    let mut line = at;
    let oldest = scan.done.max(at.saturating_sub(LONGEST_BLOCK));
    while let Some(previous) = previous_line(text, line, oldest) {
        if !matches!(material(text, previous), (Material::Key, _)) {
            break;
        }
        start = Some(previous);
        line = previous;
    }
    if let Some(start) = start {
        let label = find(text, at + 8, b"----").unwrap_or(at);
        scan.found(start, Alphabet::new(b"-").run(text, label));
    }
}

/// Masks the private lines of a `PuTTY` key file.
fn putty(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let mut end = None;
    let mut line = next_line(text, Alphabet::new(b" 0123456789").run(text, at + 14));
    while let Some(start) = line {
        let (content, line_end) = material(text, start);
        let mac = starts(text, start, b"Private-MAC:");
        if matches!(content, Material::Key) || mac {
            end = Some(line_end);
        } else {
            break;
        }
        line = next_line(text, line_end);
    }
    if let Some(end) = end {
        scan.found(at, end);
    }
}

/// The content of a line in a key block.
enum Material {
    /// Base64.
    Key,
    /// A header (`Proc-Type: 4,ENCRYPTED`) or an empty line.
    Header,
    Other,
}

/// Returns the kind of the line at a position and where its content ends.
fn material(text: &[u8], start: usize) -> (Material, usize) {
    // Skip quotation marks, diff and comment signs, blanks and line numbers. A number is a line
    // number only if an arrow, bar, colon or tab follows.
    let decoration = Alphabet::new(b" \t>+-|\"'`#*/\\");
    let mut at = decoration.run(text, start);
    let digits = Alphabet::DIGIT.run(text, at);
    if digits > at && matches!(byte(text, digits), b'|' | b':' | b'\t') {
        at = decoration.run(text, digits + 1);
    }
    let end = BASE64.run(text, at);
    let rest = END.run(text, end);
    // A closed literal may be followed by anything.
    let closed = matches!(byte(text, end), b'"' | b'\'' | b'`' | b'\\');
    let over = closed || byte(text, rest) == b'\n' || rest == text.len();
    if over {
        let content = end - at;
        // A short line is key material only if it has a digit or sign; otherwise it may be a word.
        let last = text.get(at..end).unwrap_or_default();
        let random = content >= 40
            || last
                .iter()
                .any(|byte| matches!(byte, b'0'..=b'9' | b'=' | b'+' | b'/'));
        return match content {
            0 => (Material::Header, rest),
            _ if random => (Material::Key, end),
            _ => (Material::Other, end),
        };
    }
    let header = Alphabet::URL64.run(text, at);
    if header > at && starts(text, header, b": ") {
        let line_end = Alphabet::new(b"\n\"'`\\").until(text, header + 2, 200);
        return (Material::Header, line_end);
    }
    (Material::Other, at)
}

/// Returns the start of the next line, if only quotation marks and blanks are left on this one.
fn next_line(text: &[u8], at: usize) -> Option<usize> {
    let end = END.run(text, at);
    (byte(text, end) == b'\n').then_some(end + 1)
}

/// Returns the start of the line before the one at a position, not before `oldest`.
fn previous_line(text: &[u8], line: usize, oldest: usize) -> Option<usize> {
    let is_break = |byte: &u8| *byte == b'\n';
    let near = text.get(oldest.max(line.saturating_sub(64))..line)?;
    let end = line - near.len() + near.iter().rposition(is_break)?;
    let content = text.get(oldest.max(end.saturating_sub(512))..end)?;
    let length = content
        .iter()
        .rev()
        .take_while(|byte| !is_break(byte))
        .count();
    (length > 0).then_some(end - length)
}

/// How far from `kty` the members of a JSON web key are searched, in bytes.
const WEB_KEY: usize = 4096;

/// Masks the private members of the JSON web key whose `kty` is at a position.
pub(super) fn json_web_key(scan: &mut Scan, at: usize) {
    let text = scan.text;
    if !is_quoted(text, at, at + 3) || at < scan.keyed {
        return;
    }
    let first = scan.done.max(scan.keyed).max(at.saturating_sub(WEB_KEY));
    let start = (first..at)
        .rev()
        .find(|at| matches!(byte(text, *at), b'{' | b'}'))
        .unwrap_or(first);
    let last = text.len().min(at + WEB_KEY);
    let end = (at..last)
        .find(|at| matches!(byte(text, *at), b'{' | b'}'))
        .unwrap_or(last);
    scan.keyed = end;
    let mut position = start;
    while position < end {
        let name = Alphabet::LOWER.run(text, position);
        let member = text.get(position..name).unwrap_or_default();
        if !member.is_empty()
            && matches!(member, b"d" | b"p" | b"q" | b"dp" | b"dq" | b"qi" | b"k")
            && is_quoted(text, position, name)
        {
            let value = Alphabet::new(b"\\\": \t\r\n").run(text, name);
            let value_end = Alphabet::URL64.run(text, value);
            if value_end >= value + 16 && byte(text, value - 1) == b'"' {
                scan.found(value, value_end);
                position = value_end;
                continue;
            }
        }
        position = name.max(position + 1);
    }
}

/// Returns whether a range is enclosed in quotation marks.
fn is_quoted(text: &[u8], start: usize, end: usize) -> bool {
    start > 0 && byte(text, start - 1) == b'"' && matches!(byte(text, end), b'"' | b'\\')
}
