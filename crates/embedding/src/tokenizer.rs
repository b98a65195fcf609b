//! A unigram tokenizer: splits a text into the pieces with the highest sum of log probabilities.
//!
//! Kudo, "Subword Regularization" (2018), as SentencePiece does it for XLM-R. The file has the
//! pieces with their scores, and a table that replaces characters (compatibility forms, controls).

use std::collections::HashMap;

use crate::{
    Error,
    reader::{Header, Reader},
};

/// What stands for a space in pieces.
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
    lookup: PieceTable,
    longest: usize,
    begin: u32,
    end: u32,
    unknown: u32,
    unknown_score: f32,
    replacements: HashMap<char, Box<[char]>>,
}

/// A hash table from the bytes of pieces to their numbers, with linear probing. It is filled at each
/// start, so it holds numbers only.
#[derive(Debug)]
struct PieceTable {
    /// The number of a piece plus one; 0 is free.
    slots: Vec<u32>,
}

/// FNV-1a, which can be continued byte by byte.
#[derive(Debug, Clone, Copy)]
struct PieceHash(u64);

impl PieceHash {
    const EMPTY: Self = Self(0xcbf2_9ce4_8422_2325);

    fn with(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }
}

impl PieceTable {
    fn with_capacity(pieces: usize) -> Self {
        Self {
            slots: vec![0; (2 * pieces).next_power_of_two()],
        }
    }

    fn slots_from(&self, hash: PieceHash) -> impl Iterator<Item = usize> {
        let mask = self.slots.len() - 1;
        #[expect(
            clippy::cast_possible_truncation,
            reason = "the low bits select the slot"
        )]
        let first = (hash.0 ^ (hash.0 >> 32)) as usize;
        // Half of the slots are free, so this ends.
        (0..).map(move |step| first.wrapping_add(step) & mask)
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
        let [begin, end, _padding, unknown] = special;
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
        let mut tokenizer = Self {
            bytes,
            begins,
            scores,
            lookup: PieceTable::with_capacity(count),
            longest,
            begin,
            end,
            unknown,
            unknown_score: worst - UNKNOWN_PENALTY,
            replacements,
        };
        for number in 0..u32::try_from(count).unwrap_or(0) {
            // A text cannot contain a token that is a mark for the model.
            if !special.contains(&number) {
                tokenizer.add_to_lookup(number);
            }
        }
        Ok(tokenizer)
    }

    fn piece(&self, number: u32) -> &[u8] {
        let number = number as usize;
        &self.bytes[self.begins[number] as usize..self.begins[number + 1] as usize]
    }

    fn add_to_lookup(&mut self, number: u32) {
        let hash = PieceHash::EMPTY.with(self.piece(number));
        let mut slots = self.lookup.slots_from(hash);
        let free = slots.find(|slot| self.lookup.slots[*slot] == 0);
        drop(slots);
        if let Some(slot) = free {
            self.lookup.slots[slot] = number + 1;
        }
    }

    fn find(&self, hash: PieceHash, bytes: &[u8]) -> Option<u32> {
        let numbers = self
            .lookup
            .slots_from(hash)
            .map(|slot| self.lookup.slots[slot]);
        let mut numbers = numbers.map_while(|number| number.checked_sub(1));
        numbers.find(|number| self.piece(*number) == bytes)
    }

    /// Returns the tokens of a text between the marks of beginning and end, at most `limit`.
    pub(crate) fn tokens(&self, text: &str, limit: usize) -> Vec<u32> {
        let text = self.normalized(text);
        let mut tokens = vec![self.begin];
        let pieces = self.best_pieces(&text);
        tokens.extend(pieces.into_iter().take(limit.saturating_sub(2)));
        tokens.push(self.end);
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
        let start = Step {
            score: f32::NEG_INFINITY,
            piece: self.unknown,
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
            let mut hash = PieceHash::EMPTY;
            for (at, c) in rest.char_indices() {
                let length = at + c.len_utf8();
                if length > self.longest {
                    break;
                }
                hash = hash.with(&rest.as_bytes()[at..length]);
                if let Some(piece) = self.find(hash, &rest.as_bytes()[..length]) {
                    let score = self.scores[piece as usize];
                    reach(from, from + length, piece, score, &mut best);
                }
            }
            let after = from + first.len_utf8();
            reach(from, after, self.unknown, self.unknown_score, &mut best);
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
