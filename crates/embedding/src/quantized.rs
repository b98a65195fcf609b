//! Matrices of 4-bit weights (Q4_0), and their products with activations of 8 bits (Q8_0).
//!
//! A block is 32 weights: a scale as a half-precision float, then 16 bytes. The low half of byte `i`
//! is weight `i`, the high half weight `i + 16`; 8 stands for zero. Activations get a scale per block,
//! too, so that a block's product is one integer.
//!
//! The vectors of integers are explicit: the release is optimised for size as a whole, and the compiler
//! then makes none of loops.

use wide::{f32x4, i16x8, i32x4};

/// The number of weights of a block.
pub(crate) const BLOCK: usize = 32;

/// The bytes of a block.
pub(crate) const BLOCK_BYTES: usize = 2 + BLOCK / 2;

/// 1.5 · 2^23: a small number has no place for a fraction beside it, so that adding it rounds, ties to
/// even.
const ROUNDING: f32 = 12_582_912.0;

/// A matrix of 4-bit weights, one row per output.
#[derive(Debug)]
pub(crate) struct Matrix {
    bytes: Vec<u8>,
    columns: usize,
}

/// A block of weights or activations. 16 bits each, because processors multiply and add pairs of these
/// in one instruction. The order is that of the nibbles of eight numbers of 16 bits, see [`PLACES`].
type Block = [i16x8; BLOCK / LANES];

/// The numbers of a vector.
const LANES: usize = 8;

/// The positions in a row where a block's vectors begin. Each vector takes every second number.
const PLACES: [usize; BLOCK / LANES] = [0, BLOCK / 2, 1, BLOCK / 2 + 1];

/// A row of weights or activations in blocks.
#[derive(Debug, Clone)]
struct Row {
    blocks: Vec<Block>,
    scales: Vec<f32>,
}

/// Activations of several tokens, in blocks.
#[derive(Debug)]
pub(crate) struct Activations(Vec<Row>);

impl Matrix {
    pub(crate) fn new(bytes: Vec<u8>, columns: usize) -> Self {
        Self { bytes, columns }
    }

    fn blocks_of_row(&self, number: usize) -> &[[u8; BLOCK_BYTES]] {
        let count = self.columns / BLOCK;
        &self.bytes.as_chunks::<BLOCK_BYTES>().0[number * count..(number + 1) * count]
    }

    fn rows(&self) -> usize {
        self.bytes.len() / BLOCK_BYTES * BLOCK / self.columns
    }

    /// Returns a row as numbers.
    pub(crate) fn row(&self, number: usize) -> Vec<f32> {
        let mut row = Row::zero(self.columns);
        row.unpack(self.blocks_of_row(number));
        let mut values = vec![0.0; self.columns];
        let blocks = row.blocks.iter().zip(&row.scales);
        for (values, (block, scale)) in values.chunks_exact_mut(BLOCK).zip(blocks) {
            for (place, weights) in PLACES.into_iter().zip(block) {
                let places = values.iter_mut().skip(place).step_by(2);
                for (value, weight) in places.zip(weights.to_array()) {
                    *value = f32::from(weight) * scale;
                }
            }
        }
        values
    }

    /// Returns the product with the activations of each token, plus a bias.
    pub(crate) fn product(&self, activations: &Activations, bias: &[f32]) -> Vec<f32> {
        let rows = self.rows();
        let mut product = vec![0.0; activations.0.len() * rows];
        let mut weights = Row::zero(self.columns);
        for (number, bias) in bias.iter().enumerate() {
            weights.unpack(self.blocks_of_row(number));
            for (token, activation) in activations.0.iter().enumerate() {
                product[token * rows + number] = bias + weights.dot(activation);
            }
        }
        product
    }
}

impl Row {
    fn zero(columns: usize) -> Self {
        Self {
            blocks: vec![Block::default(); columns / BLOCK],
            scales: vec![0.0; columns / BLOCK],
        }
    }

    fn unpack(&mut self, blocks: &[[u8; BLOCK_BYTES]]) {
        let (mask, zero) = (i16x8::splat(0x0f), i16x8::splat(8));
        for ((bytes, block), scale) in blocks.iter().zip(&mut self.blocks).zip(&mut self.scales) {
            let [low, high, weights @ ..] = bytes;
            *scale = half_to_single(u16::from_le_bytes([*low, *high]));
            let pairs = weights.as_chunks::<2>().0;
            let packed = i16x8::new(std::array::from_fn(|at| i16::from_le_bytes(pairs[at])));
            // The mask drops the copies of the sign.
            *block = [packed, packed >> 4, packed >> 8, packed >> 12]
                .map(|weights| (weights & mask) - zero);
        }
    }

    fn dot(&self, other: &Self) -> f32 {
        let blocks = self.blocks.iter().zip(&other.blocks);
        let scales = self.scales.iter().zip(&other.scales);
        // Four partial sums for the whole row: a sum across a vector costs more than a block's product.
        let mut sums = f32x4::ZERO;
        for ((one, two), (scale, other)) in blocks.zip(scales) {
            let mut product = i32x4::ZERO;
            for (one, two) in one.iter().zip(two) {
                product += one.dot(*two);
            }
            // At most 32 · 8 · 127, which a float holds exactly.
            sums += f32x4::from_i32x4(product) * f32x4::splat(scale * other);
        }
        sums.reduce_add()
    }
}

impl Activations {
    /// Rounds the activations of tokens, `columns` numbers each.
    pub(crate) fn new(values: &[f32], columns: usize) -> Self {
        let rows = values.chunks_exact(columns).map(|values| {
            let mut row = Row::zero(columns);
            let blocks = values.as_chunks::<BLOCK>().0.iter();
            for ((values, block), scale) in blocks.zip(&mut row.blocks).zip(&mut row.scales) {
                let largest = values
                    .iter()
                    .fold(0.0_f32, |max, value| max.max(value.abs()));
                *scale = largest / 127.0;
                let factor = if *scale > 0.0 { 1.0 / *scale } else { 0.0 };
                let round = |value: f32| {
                    // A call for each number costs more than the rest of this loop.
                    #[expect(clippy::cast_possible_truncation, reason = "from -127 to 127")]
                    let integer = (value * factor + ROUNDING - ROUNDING) as i16;
                    integer
                };
                *block = PLACES.map(|place| {
                    i16x8::new(std::array::from_fn(|at| round(values[place + 2 * at])))
                });
            }
            row
        });
        Self(rows.collect())
    }
}

/// Converts a half-precision float (IEEE 754 binary16). Infinity and NaN become 0, so that a damaged
/// file cannot spread them.
fn half_to_single(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let fraction = u32::from(half & 0x03ff);
    match u32::from(half >> 10) & 0x1f {
        0 => f32::from_bits(sign | 0x3380_0000) * f32::from(half & 0x03ff),
        0x1f => 0.0,
        exponent => f32::from_bits(sign | (exponent + 112) << 23 | fraction << 13),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_precision_floats_are_converted() {
        for (half, single) in [
            (0x0000, 0.0),
            (0x3c00, 1.0),
            (0xc000, -2.0),
            (0x3555, 0.333_251_95),
            (0x7bff, 65504.0),
            (0x0001, 5.960_464_5e-8),
            (0x7c00, 0.0),
            (0xfe00, 0.0),
        ] {
            let converted = half_to_single(half);
            assert!(
                (converted - single).abs() <= single.abs() * 1e-6,
                "{half:x}: {converted}"
            );
        }
    }

    #[test]
    fn a_product_is_that_of_the_unpacked_numbers() {
        // Two rows of 64 weights with scales 1 and 0.5.
        let mut bytes = Vec::new();
        for (number, scale) in [0x3c00_u16, 0x3c00, 0x3800, 0x3800].iter().enumerate() {
            bytes.extend(scale.to_le_bytes());
            bytes.extend((0..16_u8).map(|at| {
                at.wrapping_mul(37)
                    .wrapping_add(u8::try_from(number).unwrap())
            }));
        }
        let matrix = Matrix::new(bytes, 64);
        let values: Vec<f32> = (0_u8..128).map(|at| (f32::from(at) * 0.7).sin()).collect();
        let product = matrix.product(&Activations::new(&values, 64), &[0.25, -0.25]);
        for token in 0..2 {
            for (row, bias) in [0.25, -0.25].iter().enumerate() {
                let weights = matrix.row(row);
                let exact: f32 = weights
                    .iter()
                    .zip(&values[token * 64..])
                    .map(|(w, v)| w * v)
                    .sum();
                let found = product[token * 2 + row] - bias;
                assert!((found - exact).abs() < 0.2, "{found} {exact}");
            }
        }
        assert!((matrix.row(0)[0] + 8.0).abs() < 1e-6);
        assert!((matrix.row(1)[16] + 4.0).abs() < 1e-6);
    }
}
