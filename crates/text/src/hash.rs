//! SHA-256 hashes as hexadecimal text.

use std::fmt::Write;

use sha2::{Digest, Sha256};

/// Returns the SHA-256 of a text in lower-case hexadecimal.
pub fn text_hash(text: &str) -> String {
    bytes_hash(text.as_bytes())
}

/// Returns the SHA-256 of bytes in lower-case hexadecimal.
pub fn bytes_hash(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Returns the first 64 bits of a text's SHA-256 as a number, for a key that is compared only.
pub fn number_hash(text: &str) -> i64 {
    let hash = Sha256::digest(text.as_bytes());
    hash.iter()
        .take(8)
        .fold(0, |number, byte| number << 8 | i64::from(*byte))
}

/// Combines bytes with a stream of numbers that only the key gives. Twice gives the same bytes again.
pub fn seal(bytes: &mut [u8], key: &[u8]) {
    for (number, block) in (0_u64..).zip(bytes.chunks_mut(32)) {
        let stream = Sha256::new()
            .chain_update(key)
            .chain_update(number.to_le_bytes())
            .finalize();
        block
            .iter_mut()
            .zip(stream)
            .for_each(|(byte, with)| *byte ^= with);
    }
}

/// Returns bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}
