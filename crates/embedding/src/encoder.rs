//! The BERT encoder: word and position embeddings, layers of attention and of two dense steps, the
//! mean over the tokens.
//!
//! Devlin et al., "BERT: Pre-training of Deep Bidirectional Transformers" (2019).

use crate::{
    Error,
    quantized::{Activations, Matrix},
    reader::{Header, Reader, RowsOnDisk, Tensors},
};

/// A matrix with its bias.
#[derive(Debug)]
struct Dense {
    weights: Matrix,
    bias: Vec<f32>,
}

impl Dense {
    fn read(
        tensors: &mut Tensors,
        name: &str,
        outputs: usize,
        inputs: usize,
    ) -> Result<Self, Error> {
        Ok(Self {
            weights: tensors.matrix(&format!("{name}.w"), outputs, inputs)?,
            bias: tensors.numbers(&format!("{name}.b"), outputs)?,
        })
    }

    fn apply(&self, input: &Activations) -> Vec<f32> {
        self.weights.product(input, &self.bias)
    }
}

/// Layer normalisation (Ba et al., 2016).
#[derive(Debug)]
struct Norm {
    weight: Vec<f32>,
    bias: Vec<f32>,
    epsilon: f32,
}

impl Norm {
    fn read(tensors: &mut Tensors, name: &str, header: &Header) -> Result<Self, Error> {
        Ok(Self {
            weight: tensors.numbers(&format!("{name}.w"), header.hidden)?,
            bias: tensors.numbers(&format!("{name}.b"), header.hidden)?,
            epsilon: header.epsilon,
        })
    }

    /// Normalises each token.
    fn apply(&self, values: &mut [f32]) {
        let count = self.weight.len() as f32;
        for token in values.chunks_exact_mut(self.weight.len()) {
            let mean = token.iter().sum::<f32>() / count;
            let squares = token.iter().map(|value| (value - mean) * (value - mean));
            let factor = 1.0 / (squares.sum::<f32>() / count + self.epsilon).sqrt();
            let parameters = self.weight.iter().zip(&self.bias);
            for (value, (weight, bias)) in token.iter_mut().zip(parameters) {
                *value = (*value - mean) * factor * weight + bias;
            }
        }
    }
}

#[derive(Debug)]
struct Layer {
    query: Dense,
    key: Dense,
    value: Dense,
    attention: Dense,
    attention_norm: Norm,
    inner: Dense,
    outer: Dense,
    outer_norm: Norm,
}

#[derive(Debug)]
pub(crate) struct Encoder {
    header: Header,
    words: RowsOnDisk,
    /// The embeddings of positions; that of the token's type, always the first, is added.
    positions: Vec<f32>,
    norm: Norm,
    layers: Vec<Layer>,
}

impl Encoder {
    /// Reads the tensors.
    pub(crate) fn read(reader: Reader, header: &Header) -> Result<Self, Error> {
        let (hidden, inner) = (header.hidden, header.inner);
        let mut tensors = Tensors::read(reader)?;
        let mut positions = tensors.numbers("emb.pos", header.positions * hidden)?;
        let token_type = tensors.numbers("emb.type", hidden)?;
        for position in positions.chunks_exact_mut(hidden) {
            add(position, &token_type);
        }
        let norm = Norm::read(&mut tensors, "emb.ln", header)?;
        let mut layers = Vec::with_capacity(header.layers);
        for number in 0..header.layers {
            let name = |part: &str| format!("l{number}.{part}");
            let mut dense = |part: &str, outputs, inputs| {
                Dense::read(&mut tensors, &name(part), outputs, inputs)
            };
            let [query, key, value, attention] = [
                dense("q", hidden, hidden)?,
                dense("k", hidden, hidden)?,
                dense("v", hidden, hidden)?,
                dense("ao", hidden, hidden)?,
            ];
            let (inner, outer) = (dense("fi", inner, hidden)?, dense("fo", hidden, inner)?);
            layers.push(Layer {
                query,
                key,
                value,
                attention,
                attention_norm: Norm::read(&mut tensors, &name("aln"), header)?,
                inner,
                outer,
                outer_norm: Norm::read(&mut tensors, &name("oln"), header)?,
            });
        }
        Ok(Self {
            header: *header,
            words: tensors.rows_on_disk("emb.word", header.vocabulary, hidden)?,
            positions,
            norm,
            layers,
        })
    }

    pub(crate) fn dimension(&self) -> usize {
        self.header.hidden
    }

    pub(crate) fn max_tokens(&self) -> usize {
        self.header.positions
    }

    /// Returns the mean of the tokens' last states.
    pub(crate) fn mean_of_tokens(&mut self, tokens: &[u32]) -> Result<Vec<f32>, Error> {
        let (hidden, inner) = (self.header.hidden, self.header.inner);
        let mut states = Vec::with_capacity(tokens.len() * hidden);
        for (token, position) in tokens.iter().zip(self.positions.chunks_exact(hidden)) {
            let mut state = self.words.row(*token)?;
            add(&mut state, position);
            states.append(&mut state);
        }
        self.norm.apply(&mut states);
        for layer in &self.layers {
            let input = Activations::new(&states, hidden);
            let attended = self.attention(
                &layer.query.apply(&input),
                &layer.key.apply(&input),
                &layer.value.apply(&input),
            );
            add(
                &mut states,
                &layer.attention.apply(&Activations::new(&attended, hidden)),
            );
            layer.attention_norm.apply(&mut states);
            let mut activated = layer.inner.apply(&Activations::new(&states, hidden));
            for value in &mut activated {
                *value = gelu(*value);
            }
            add(
                &mut states,
                &layer.outer.apply(&Activations::new(&activated, inner)),
            );
            layer.outer_norm.apply(&mut states);
        }
        let mut mean = vec![0.0; hidden];
        for state in states.chunks_exact(hidden) {
            add(&mut mean, state);
        }
        for value in &mut mean {
            *value /= tokens.len() as f32;
        }
        Ok(mean)
    }

    /// Scaled dot-product attention of each token to all, per head.
    fn attention(&self, queries: &[f32], keys: &[f32], values: &[f32]) -> Vec<f32> {
        let hidden = self.header.hidden;
        let width = hidden / self.header.heads;
        let scale = 1.0 / (width as f32).sqrt();
        let mut attended = vec![0.0; queries.len()];
        let tokens = queries
            .chunks_exact(hidden)
            .zip(attended.chunks_exact_mut(hidden));
        for (query, attended) in tokens {
            let heads = query
                .chunks_exact(width)
                .zip(attended.chunks_exact_mut(width));
            for (head, (query, attended)) in heads.enumerate() {
                let of_head = head * width..(head + 1) * width;
                let mut weights: Vec<f32> = keys
                    .chunks_exact(hidden)
                    .map(|key| scale * dot(query, &key[of_head.clone()]))
                    .collect();
                softmax(&mut weights);
                for (weight, value) in weights.iter().zip(values.chunks_exact(hidden)) {
                    for (sum, value) in attended.iter_mut().zip(&value[of_head.clone()]) {
                        *sum += weight * value;
                    }
                }
            }
        }
        attended
    }
}

fn add(sum: &mut [f32], other: &[f32]) {
    for (sum, other) in sum.iter_mut().zip(other) {
        *sum += other;
    }
}

/// A dot product with eight partial sums, which the compiler keeps in vector registers.
fn dot(one: &[f32], two: &[f32]) -> f32 {
    let mut sums = [0.0; 8];
    let (ones, one) = one.as_chunks::<8>();
    let (twos, two) = two.as_chunks::<8>();
    for (one, two) in ones.iter().zip(twos) {
        for (sum, (one, two)) in sums.iter_mut().zip(one.iter().zip(two)) {
            *sum += one * two;
        }
    }
    let rest: f32 = one.iter().zip(two).map(|(one, two)| one * two).sum();
    sums.iter().sum::<f32>() + rest
}

fn softmax(values: &mut [f32]) {
    let largest = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut sum = 0.0;
    for value in values.iter_mut() {
        *value = (*value - largest).exp();
        sum += *value;
    }
    for value in values {
        *value /= sum;
    }
}

/// The Gaussian error linear unit (Hendrycks and Gimpel, 2016).
fn gelu(x: f32) -> f32 {
    0.5 * x * (1.0 + erf(x * std::f32::consts::FRAC_1_SQRT_2))
}

/// The error function, to 1.5e-7: Abramowitz and Stegun, "Handbook of Mathematical Functions",
/// 7.1.26.
fn erf(x: f32) -> f32 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let coefficients = [
        1.061_405_4,
        -1.453_152,
        1.421_413_7,
        -0.284_496_74,
        0.254_829_6,
    ];
    let polynomial = coefficients
        .iter()
        .fold(0.0, |sum, coefficient| (sum + coefficient) * t);
    (1.0 - polynomial * (-x * x).exp()).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_has_its_known_values() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.5, 0.520_499_9),
            (1.0, 0.842_700_8),
            (-2.0, -0.995_322_3),
        ] {
            assert!((erf(x) - expected).abs() < 1e-6, "{x}: {}", erf(x));
        }
    }
}
