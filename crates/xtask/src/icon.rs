//! Draws the plugin's icon: a ring with a stem (the letter a) and a dot in it.
//!
//! The picture is computed, so that it can be reviewed like code. A test compares the committed
//! file with it.

use std::fs;
use std::path::Path;

use crate::{Result, at, say};

/// The path of the icon, which `plugin.json` names.
const PATH: &str = ".claude-plugin/icon.png";

/// Width and height in pixels, the smallest size that the plugin directory accepts.
const SIDE: u16 = 512;

/// Samples per side of a pixel. Their mean makes edges smooth.
const SAMPLES: u16 = 4;

/// Red, green, blue and opacity, from 0 to 1.
type Colour = [f32; 4];

const NOTHING: Colour = [0.0, 0.0, 0.0, 0.0];
const NIGHT: Colour = [0.067, 0.106, 0.165, 1.0];
const DUSK: Colour = [0.125, 0.220, 0.310, 1.0];
const PAPER: Colour = [0.949, 0.929, 0.886, 1.0];
const EMBER: Colour = [0.953, 0.627, 0.294, 1.0];

/// Runs `cargo xtask icon`.
pub(crate) fn write(root: &Path) -> Result {
    let path = root.join(PATH);
    fs::write(&path, encode()).map_err(at(&path))?;
    say(&path.display().to_string());
    Ok(())
}

/// Returns the icon as a PNG file.
///
/// An image library would add nine crates for this one file. This writes the parts of PNG (RFC
/// 2083) and DEFLATE (RFC 1951) that the icon needs.
fn encode() -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(u32::from(SIDE).to_be_bytes());
    header.extend(u32::from(SIDE).to_be_bytes());
    // Eight bits per channel, RGBA, default methods.
    header.extend([8, 6, 0, 0, 0]);
    let mut file = b"\x89PNG\r\n\x1a\n".to_vec();
    for (kind, content) in [
        (b"IHDR", header),
        (b"IDAT", compress(&filter(&draw()))),
        (b"IEND", Vec::new()),
    ] {
        let length = u32::try_from(content.len()).expect("an icon is smaller than 4 GiB");
        file.extend(length.to_be_bytes());
        let checked = [kind.as_slice(), &content].concat();
        file.extend(&checked);
        file.extend(crc(&checked).to_be_bytes());
    }
    file
}

/// Applies PNG's filter "up": each row as its difference to the row above.
fn filter(pixels: &[u8]) -> Vec<u8> {
    const UP: u8 = 2;
    let mut above = vec![0; usize::from(SIDE) * 4];
    let mut filtered = Vec::new();
    for row in pixels.chunks_exact(above.len()) {
        filtered.push(UP);
        filtered.extend(
            row.iter()
                .zip(&above)
                .map(|(byte, above)| byte.wrapping_sub(*above)),
        );
        above.copy_from_slice(row);
    }
    filtered
}

/// Compresses to the zlib format: one block with fixed codes, whose only matches repeat the
/// previous pixel.
fn compress(data: &[u8]) -> Vec<u8> {
    const PIXEL: usize = 4;
    const DISTANCE_OF_A_PIXEL: usize = 3;
    const END: usize = 256;
    let mut bits = Bits {
        bytes: vec![0x78, 0x01],
        free: 0,
    };
    bits.push(0b011, 3);
    let mut at = 0;
    while at < data.len() {
        let repeats = |offset: &usize| *offset >= PIXEL && data[*offset] == data[*offset - PIXEL];
        let run = (at..data.len()).take_while(repeats).take(258).count();
        // These lengths need no extra bits.
        let (symbol, length) = match run {
            258 => (285, 258),
            3.. => (254 + run.min(10), run.min(10)),
            _ => (usize::from(data[at]), 1),
        };
        bits.push_symbol(symbol);
        if length > 1 {
            bits.push_code(DISTANCE_OF_A_PIXEL, 5);
        }
        at += length;
    }
    bits.push_symbol(END);
    bits.bytes.extend(adler(data).to_be_bytes());
    bits.bytes
}

/// A buffer that is filled bit by bit, starting with the lowest bit.
struct Bits {
    bytes: Vec<u8>,
    /// Free bits of the last byte.
    free: usize,
}

impl Bits {
    /// Appends the lowest `count` bits of a number, starting with the lowest.
    fn push(&mut self, number: usize, count: usize) {
        for place in 0..count {
            if self.free == 0 {
                self.bytes.push(0);
                self.free = 8;
            }
            if let Some(last) = self.bytes.last_mut() {
                *last |= u8::from(number >> place & 1 == 1) << (8 - self.free);
            }
            self.free -= 1;
        }
    }

    /// Appends a Huffman code, starting with the highest bit.
    fn push_code(&mut self, code: usize, count: usize) {
        for place in (0..count).rev() {
            self.push(code >> place, 1);
        }
    }

    /// Appends a literal, an end marker or a length in the fixed code (RFC 1951, 3.2.6).
    fn push_symbol(&mut self, symbol: usize) {
        match symbol {
            0..=143 => self.push_code(0x30 + symbol, 8),
            144..=255 => self.push_code(0x190 + symbol - 144, 9),
            256..=279 => self.push_code(symbol - 256, 7),
            _ => self.push_code(0xc0 + symbol - 280, 8),
        }
    }
}

/// Returns the CRC of a PNG chunk.
fn crc(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    })
}

/// Returns the Adler-32 checksum of a zlib stream.
fn adler(data: &[u8]) -> u32 {
    const PRIME: u32 = 65_521;
    let (low, high) = data.iter().fold((1, 0), |(low, high), byte| {
        let low = (low + u32::from(*byte)) % PRIME;
        (low, (high + low) % PRIME)
    });
    (high << 16) | low
}

/// Returns the pixels, row by row, four bytes each.
fn draw() -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..SIDE {
        for x in 0..SIDE {
            pixels.extend(pixel(x, y));
        }
    }
    pixels
}

/// Returns one pixel, averaged over its samples.
fn pixel(x: u16, y: u16) -> [u8; 4] {
    let mut sum = NOTHING;
    for sample in 0..SAMPLES * SAMPLES {
        let inside =
            |pixel: u16, part: u16| f32::from(pixel) + (f32::from(part) + 0.5) / f32::from(SAMPLES);
        let colour = colour_at(inside(x, sample % SAMPLES), inside(y, sample / SAMPLES));
        // Colours are weighted by opacity.
        for (part, value) in sum.iter_mut().zip([colour[0], colour[1], colour[2], 1.0]) {
            *part += value * colour[3];
        }
    }
    let [red, green, blue, opaque] = sum;
    if opaque == 0.0 {
        return [0; 4];
    }
    let count = f32::from(SAMPLES * SAMPLES);
    [red / opaque, green / opaque, blue / opaque, opaque / count].map(to_byte)
}

/// Returns the colour of a point; both coordinates run from 0 to `SIDE`, `y` downwards.
fn colour_at(x: f32, y: f32) -> Colour {
    let middle = f32::from(SIDE) / 2.0;
    let (across, down) = (x - middle, y - middle);
    // The background: a square with round corners, lighter at the bottom.
    let corner = 112.0;
    let past = |distance: f32| (distance.abs() - (middle - corner)).max(0.0);
    if past(across).hypot(past(down)) > corner {
        return NOTHING;
    }
    let (ring_x, ring_y) = (across + 8.0, down);
    let from_centre = ring_x.hypot(ring_y);
    let in_ring = (84.0..=124.0).contains(&from_centre);
    // The stem touches the ring from the right, has its height, and has round ends.
    let stem_x = ring_x - 120.0;
    let in_stem = stem_x.hypot((ring_y.abs() - 104.0).max(0.0)) <= 20.0;
    if from_centre <= 30.0 {
        EMBER
    } else if in_ring || in_stem {
        PAPER
    } else {
        mix(NIGHT, DUSK, y / f32::from(SIDE))
    }
}

fn mix(from: Colour, to: Colour, share: f32) -> Colour {
    let mut mixed = from;
    for (part, to) in mixed.iter_mut().zip(to) {
        *part += (to - *part) * share;
    }
    mixed
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "clamped to what a byte holds"
)]
fn to_byte(share: f32) -> u8 {
    (share * 255.0).round().clamp(0.0, 255.0) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_committed_icon_equals_the_drawn_one() {
        let committed = fs::read(crate::root().join(PATH)).unwrap();
        // `assert!`, because `assert_eq!` would print every byte.
        assert!(committed == encode(), "run: cargo xtask icon");
    }

    #[test]
    fn checksums_match_published_values() {
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn repeated_pixels_become_matches() {
        // Four literals, a match of ten, a match of six. zlib decodes it as twenty sevens.
        let expected = [
            0x78, 0x01, 99, 103, 103, 103, 71, 96, 8, 6, 0, 0x05, 0xd2, 0x00, 0x8d,
        ];
        assert_eq!(compress(&[7; 20]), expected);
    }
}
