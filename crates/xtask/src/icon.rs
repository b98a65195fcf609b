//! Draws the plugin's icon: a ring with a stem, the letter a, and in it the one thing remembered.
//!
//! The picture is a formula, so that it can be changed and reviewed like code; a test compares the
//! committed file with what is drawn here.

use std::fs;
use std::path::Path;

use crate::{Result, at, say};

/// Where the icon stands, named by `plugin.json`.
const PATH: &str = ".claude-plugin/icon.png";

/// The side of the square, in pixels: the smallest that the plugin directory takes.
const SIDE: u16 = 512;

/// Each pixel is the mean of this many samples a side, which makes the edges smooth.
const SAMPLES: u16 = 4;

/// Red, green, blue and opacity, each from 0 to 1.
type Colour = [f32; 4];

const NOTHING: Colour = [0.0, 0.0, 0.0, 0.0];
const NIGHT: Colour = [0.067, 0.106, 0.165, 1.0];
const DUSK: Colour = [0.125, 0.220, 0.310, 1.0];
const PAPER: Colour = [0.949, 0.929, 0.886, 1.0];
const EMBER: Colour = [0.953, 0.627, 0.294, 1.0];

/// The task: `cargo xtask icon`.
pub(crate) fn write(root: &Path) -> Result {
    let path = root.join(PATH);
    fs::write(&path, encode()).map_err(at(&path))?;
    say(&path.display().to_string());
    Ok(())
}

/// Returns the icon as a PNG file.
///
/// Written out here, since a picture library would bring nine crates for this one file: the parts
/// of PNG (RFC 2083) and DEFLATE (RFC 1951) that one kind of picture needs.
fn encode() -> Vec<u8> {
    let mut header = Vec::new();
    header.extend(u32::from(SIDE).to_be_bytes());
    header.extend(u32::from(SIDE).to_be_bytes());
    // Eight bits a channel, red green blue opacity, and the only methods there are.
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

/// Writes each row as its difference to the row above, which leaves next to nothing of a flat one.
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

/// Compresses to the zlib format: one block with the fixed codes, and repeats of the pixel before
/// as the only matches.
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

/// Bytes that are filled bit by bit, from the lowest up.
struct Bits {
    bytes: Vec<u8>,
    /// How many bits of the last byte are still free.
    free: usize,
}

impl Bits {
    /// Appends the lowest `count` bits of a number, the lowest first.
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

    /// Appends a Huffman code, which goes the other way round: the highest bit first.
    fn push_code(&mut self, code: usize, count: usize) {
        for place in (0..count).rev() {
            self.push(code >> place, 1);
        }
    }

    /// Appends a literal, an end or a length in the fixed code (RFC 1951, 3.2.6).
    fn push_symbol(&mut self, symbol: usize) {
        match symbol {
            0..=143 => self.push_code(0x30 + symbol, 8),
            144..=255 => self.push_code(0x190 + symbol - 144, 9),
            256..=279 => self.push_code(symbol - 256, 7),
            _ => self.push_code(0xc0 + symbol - 280, 8),
        }
    }
}

/// The checksum of a part of a PNG file.
fn crc(data: &[u8]) -> u32 {
    !data.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    })
}

/// The checksum of a zlib stream.
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
        // A sample of no opacity has no say in the colour either.
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
    // The plate: a square with round corners, lighter towards its foot.
    let corner = 112.0;
    let past = |distance: f32| (distance.abs() - (middle - corner)).max(0.0);
    if past(across).hypot(past(down)) > corner {
        return NOTHING;
    }
    let (ring_x, ring_y) = (across + 8.0, down);
    let from_centre = ring_x.hypot(ring_y);
    let in_ring = (84.0..=124.0).contains(&from_centre);
    // The stem touches the ring from the right, is as high, and ends round at both ends.
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
    fn the_committed_icon_is_the_one_drawn_here() {
        let committed = fs::read(crate::root().join(PATH)).unwrap();
        // `assert!`, since a difference would print every byte.
        assert!(committed == encode(), "run: cargo xtask icon");
    }

    #[test]
    fn checksums_are_the_published_ones() {
        assert_eq!(crc(b"123456789"), 0xcbf4_3926);
        assert_eq!(adler(b"Wikipedia"), 0x11e6_0398);
    }

    #[test]
    fn a_repeat_is_a_match_of_the_pixel_before() {
        // Four bytes as they are, a match of ten, one of six. zlib reads it back as twenty sevens.
        let expected = [
            0x78, 0x01, 99, 103, 103, 103, 71, 96, 8, 6, 0, 0x05, 0xd2, 0x00, 0x8d,
        ];
        assert_eq!(compress(&[7; 20]), expected);
    }
}
