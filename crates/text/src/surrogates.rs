//! Repairs JSON texts of JavaScript programs, whose strings may hold half of a surrogate pair.

/// Replaces lone surrogate escapes in a JSON text by U+FFFD. Returns `None` if there are none.
///
/// JavaScript may cut a text inside a surrogate pair, and no Rust string can hold half of one.
pub fn repair(line: &str) -> Option<String> {
    let mut bytes = line.as_bytes().to_vec();
    let mut position = 0;
    let mut changed = false;
    while let Some(offset) = bytes
        .get(position..)?
        .iter()
        .position(|&byte| byte == b'\\')
    {
        position += offset;
        match (
            escaped_unit(&bytes, position),
            escaped_unit(&bytes, position + 6),
        ) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => position += 12,
            (Some(0xd800..=0xdfff), _) => {
                bytes
                    .get_mut(position + 2..position + 6)?
                    .copy_from_slice(b"fffd");
                changed = true;
                position += 6;
            }
            // The escaped character may be a backslash.
            _ => position += 2,
        }
    }
    changed.then(|| String::from_utf8(bytes).ok()).flatten()
}

/// Parses the `\uXXXX` escape at a position.
fn escaped_unit(bytes: &[u8], position: usize) -> Option<u16> {
    let digits = bytes.get(position..position + 6)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lone_surrogates_are_replaced() {
        for (line, expected) in [
            (r#"{"a":"\ud83d"}"#, Some(r#"{"a":"\ufffd"}"#)),
            (r#"{"a":"\uDE00x"}"#, Some(r#"{"a":"\ufffdx"}"#)),
            (
                r#"{"a":"\ud83d\ud83d\ude00"}"#,
                Some(r#"{"a":"\ufffd\ud83d\ude00"}"#),
            ),
            (r#"{"a":"\ud83d\n"}"#, Some(r#"{"a":"\ufffd\n"}"#)),
            (r#"{"a":"\\\ud83d"}"#, Some(r#"{"a":"\\\ufffd"}"#)),
            (r#"{"a":"\\ud83d"}"#, None),
            (r#"{"a":"\ud83d\ude00"}"#, None),
            (r#"{"a":"\u00e9 \ud8"}"#, None),
            (r#"{"a":"\"#, None),
        ] {
            assert_eq!(repair(line).as_deref(), expected, "{line}");
        }
    }
}
