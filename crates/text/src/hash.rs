//! SHA-256 hashes as hexadecimal text.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a text in lower-case hexadecimal.
pub fn text_hash(text: &str) -> String {
    bytes_hash(text.as_bytes())
}

/// Returns the SHA-256 of bytes in lower-case hexadecimal.
pub fn bytes_hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest
        .iter()
        .fold(String::with_capacity(64), |mut out, byte| {
            let _ = write!(out, "{byte:02x}");
            out
        })
}
