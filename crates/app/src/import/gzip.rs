//! Unpacks gzip files (RFC 1952).

use std::path::Path;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::json;
use crate::Error;

/// The longest content of a file, in bytes.
const MAX_LENGTH: usize = 64 * 1024 * 1024;

/// Returns the content of a gzip file.
pub(super) fn unpacked(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = json::bytes(path)?;
    let body = gzip_body(&bytes).ok_or_else(|| json::unreadable(path, &"no gzip file"))?;
    decompress_to_vec_with_limit(body, MAX_LENGTH)
        .map_err(|error| json::unreadable(path, &format!("damaged, or over 64 MiB: {error}")))
}

/// Returns what follows the header of a gzip file (RFC 1952).
fn gzip_body(bytes: &[u8]) -> Option<&[u8]> {
    const EXTRA: u8 = 4;
    const NAME: u8 = 8;
    const COMMENT: u8 = 16;
    const CHECKSUM: u8 = 2;
    let (head, mut rest) = bytes.split_at_checked(10)?;
    if !head.starts_with(&[0x1f, 0x8b, 8]) {
        return None;
    }
    let flags = head[3];
    if flags & EXTRA != 0 {
        let length = usize::from(u16::from_le_bytes([*rest.first()?, *rest.get(1)?]));
        rest = rest.get(2 + length..)?;
    }
    for flag in [NAME, COMMENT] {
        if flags & flag != 0 {
            let end = rest.iter().position(|byte| *byte == 0)?;
            rest = rest.get(end + 1..)?;
        }
    }
    let length = if flags & CHECKSUM == 0 { 0 } else { 2 };
    rest.get(length..)
}
