//! Unpacks gzip files (RFC 1952).

use std::path::Path;

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use super::json;
use crate::Error;

/// The longest content of a file, in bytes.
const MAX_LENGTH: usize = 64 * 1024 * 1024;

/// Returns the content of a gzip file without optional fields in its header, as engram writes it.
pub(super) fn unpacked(path: &Path) -> Result<Vec<u8>, Error> {
    const HEADER: [u8; 4] = [0x1f, 0x8b, 8, 0];
    let bytes = json::bytes(path)?;
    let body = bytes.get(10..).filter(|_| bytes.starts_with(&HEADER));
    let body = body.ok_or_else(|| json::unreadable(path, &"no gzip file"))?;
    decompress_to_vec_with_limit(body, MAX_LENGTH)
        .map_err(|error| json::unreadable(path, &format!("damaged, or over 64 MiB: {error}")))
}
