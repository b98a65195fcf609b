//! A unigram tokenizer: splits a text into the pieces with the highest sum of log probabilities.
//!
//! Kudo, "Subword Regularization" (2018), as SentencePiece does it for XLM-R. The file has the
//! pieces with their scores, and a table that replaces characters (compatibility forms, controls).

use std::collections::HashMap;

use crate::{
    Error,
    reader::{Header, Reader},
};

/// The character that replaces a space in pieces.
const SPACE_MARK: char = '\u{2581}';

/// How much worse an unknown character is than the worst piece.
const UNKNOWN_PENALTY: f32 = 10.0;

/// The maximum bytes of a piece.
const MAX_PIECE: usize = 256;

/// The maximum bytes of the table of replacements.
const MAX_REPLACEMENTS: usize = 1 << 24;

#[derive(Debug)]
pub(crate) struct Tokenizer {
    /// The bytes of all pieces, and where each begins; the last entry is the end.
    bytes: Vec<u8>,
    begins: Vec<u32>,
    scores: Vec<f32>,
    longest: usize,
    /// The marks of the beginning, the end, padding and an unknown character.
    special: [u32; 4],
    unknown_score: f32,
    replacements: HashMap<char, Box<[char]>>,
}

/// How many of its first bytes tell whether a piece may occur in a text.
const PREFIX: usize = 6;

/// The beginnings of all parts of a text, by their hash. A piece whose beginning is not among them does
/// not occur in the text.
struct Beginnings(Vec<bool>);

impl Beginnings {
    /// A power of two.
    const SIZE: usize = 1 << 16;

    fn new(text: &[u8]) -> Self {
        let mut occurs = vec![false; Self::SIZE];
        for from in 0..text.len() {
            for length in 1..=PREFIX.min(text.len() - from) {
                occurs[Self::slot(&text[from..from + length])] = true;
            }
        }
        Self(occurs)
    }

    /// FNV-1a of the first bytes.
    fn slot(bytes: &[u8]) -> usize {
        let step = |hash: u32, byte: &u8| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
        let hash = bytes.iter().take(PREFIX).fold(0x811c_9dc5, step);
        (hash ^ (hash >> 16)) as usize % Self::SIZE
    }

    fn may_have(&self, piece: &[u8]) -> bool {
        self.0[Self::slot(piece)]
    }
}

impl Tokenizer {
    /// Reads what follows the header.
    pub(crate) fn read(reader: &mut Reader, header: &Header) -> Result<Self, Error> {
        let count = reader.size("the number of pieces", [4, header.vocabulary])?;
        let mut special = [0; 4];
        for id in &mut special {
            *id = reader.u32()?;
            if *id as usize >= count {
                return Err(Error::invalid(format!("a special token {id} of {count}")));
            }
        }
        let length = reader.long_size()?;
        let begins = reader.u32s(count + 1)?;
        let scores = reader.f32s(count)?;
        let bytes = reader.bytes(length)?;
        let is_within = begins.last().is_some_and(|end| *end as usize <= length);
        let lengths = begins.windows(2).map(|pair| pair[1].checked_sub(pair[0]));
        let longest = lengths
            .map(|length| length.map_or(usize::MAX, |length| length as usize))
            .max();
        let longest = longest.filter(|longest| is_within && *longest <= MAX_PIECE);
        let longest =
            longest.ok_or_else(|| Error::invalid("its pieces overlap or are too long"))?;
        let worst = scores.iter().copied().fold(f32::INFINITY, f32::min);
        let replacements = replacements(reader)?;
        Ok(Self {
            bytes,
            begins,
            scores,
            longest,
            special,
            unknown_score: worst - UNKNOWN_PENALTY,
            replacements,
        })
    }

    /// Returns the pieces that may occur in a text, by their bytes. To fill a table of all pieces takes
    /// as long as to encode a short text.
    fn pieces_for(&self, text: &str) -> HashMap<&[u8], u32> {
        let beginnings = Beginnings::new(text.as_bytes());
        let mut pieces = HashMap::new();
        for (number, pair) in (0..).zip(self.begins.windows(2)) {
            let piece = &self.bytes[pair[0] as usize..pair[1] as usize];
            // A text cannot contain a token that is a mark for the model.
            if beginnings.may_have(piece) && !self.special.contains(&number) {
                pieces.entry(piece).or_insert(number);
            }
        }
        pieces
    }

    /// Returns the tokens of a text between the marks of beginning and end, at most `limit`.
    pub(crate) fn tokens(&self, text: &str, limit: usize) -> Vec<u32> {
        let text = self.normalized(text);
        let [begin, end, ..] = self.special;
        let mut tokens = vec![begin];
        let pieces = self.best_pieces(&text);
        tokens.extend(pieces.into_iter().take(limit.saturating_sub(2)));
        tokens.push(end);
        tokens
    }

    /// Replaces characters, joins spaces and marks them, also one before the text.
    fn normalized(&self, text: &str) -> String {
        let mut normalized = String::with_capacity(text.len() + 16);
        let mut previous = None;
        let mut push = |c: char| {
            if c == ' ' && previous == Some(' ') {
                return;
            }
            if previous.is_none() && c != ' ' {
                normalized.push(SPACE_MARK);
            }
            normalized.push(if c == ' ' { SPACE_MARK } else { c });
            previous = Some(c);
        };
        for c in text.chars() {
            match self.replacements.get(&c) {
                Some(replacement) => replacement.iter().copied().for_each(&mut push),
                None => push(c),
            }
        }
        normalized
    }

    /// Returns the pieces with the highest sum of scores (Viterbi).
    fn best_pieces(&self, text: &str) -> Vec<u32> {
        /// The best way to a position: its score, its last piece and where that begins.
        #[derive(Clone, Copy)]
        struct Step {
            score: f32,
            piece: u32,
            from: usize,
        }
        let [.., unknown] = self.special;
        let pieces_by_bytes = self.pieces_for(text);
        let start = Step {
            score: f32::NEG_INFINITY,
            piece: unknown,
            from: 0,
        };
        let mut best = vec![start; text.len() + 1];
        best[0].score = 0.0;
        let reach = |from: usize, to: usize, piece: u32, score: f32, best: &mut Vec<Step>| {
            let score = best[from].score + score;
            if score > best[to].score {
                best[to] = Step { score, piece, from };
            }
        };
        for (from, first) in text.char_indices() {
            let rest = &text[from..];
            for (at, c) in rest.char_indices() {
                let length = at + c.len_utf8();
                if length > self.longest {
                    break;
                }
                if let Some(piece) = pieces_by_bytes.get(&rest.as_bytes()[..length]) {
                    let score = self.scores[*piece as usize];
                    reach(from, from + length, *piece, score, &mut best);
                }
            }
            let after = from + first.len_utf8();
            reach(from, after, unknown, self.unknown_score, &mut best);
        }
        let mut pieces = Vec::new();
        let mut at = text.len();
        while at > 0 {
            pieces.push(best[at].piece);
            at = best[at].from;
        }
        pieces.reverse();
        pieces
    }
}

/// Reads the table of replacements: a character, a count, and as many characters.
fn replacements(reader: &mut Reader) -> Result<HashMap<char, Box<[char]>>, Error> {
    let broken = || Error::invalid("its table of characters is broken");
    let count = reader.u32()?;
    let length = reader.size("the table of characters", [0, MAX_REPLACEMENTS])?;
    let bytes = reader.bytes(length)?;
    let mut rest = bytes.as_slice();
    let mut next = |count: usize| {
        let (taken, after) = rest.split_at_checked(count)?;
        rest = after;
        Some(taken)
    };
    let number = |bytes: &[u8]| bytes.try_into().ok().map(u32::from_le_bytes);
    let mut table = HashMap::new();
    for _ in 0..count {
        let character = next(4).and_then(number).ok_or_else(broken)?;
        let [replaced_by] = next(1).ok_or_else(broken)? else {
            return Err(broken());
        };
        let by = next(4 * usize::from(*replaced_by)).ok_or_else(broken)?;
        let by: Option<Box<[char]>> = by
            .chunks_exact(4)
            .map(|bytes| number(bytes).and_then(char::from_u32))
            .collect();
        // A surrogate is in no text.
        if let Some(character) = char::from_u32(character) {
            table.insert(character, by.ok_or_else(broken)?);
        }
    }
    Ok(table)
}
