//! The notes that a query searches, with what BM25 needs of each.

use anamnesis_note::note::State;
use anamnesis_store::index::{BLOCK_LENGTH, Document, Documents};

use super::{
    mask::{Mask, Origin},
    rarity::{SMALL_STORE, rarity, smallness},
};

/// BM25's k1, the saturation of term frequency.
///
/// Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009).
pub(super) const K1: f32 = 1.2;

/// BM25's b, the strength of length normalisation.
const B: f32 = 0.6;

/// The notes selected by the mask.
pub(super) struct Searched<'a> {
    pub(super) parts: Vec<BlockPart<'a>>,
    /// Indexed by project number.
    pub(super) origins: Vec<Option<Origin>>,
    pub(super) count: usize,
    /// The number of notes in the store, searched or not.
    pub(super) in_store: usize,
    /// The highest [`rarity()`]: of a term that neither a searched note nor any other text has.
    pub(super) max_rarity: f32,
}

/// The notes of an index block.
pub(super) struct BlockPart<'a> {
    pub(super) block: u32,
    pub(super) notes: &'a [Option<Document>],
    /// BM25's length normalisation, `k1·(1−b+b·len/avg)`, per note; 0 for notes that are not
    /// searched.
    pub(super) length_norms: Vec<f32>,
}

impl<'a> Searched<'a> {
    pub(super) fn new(documents: &'a Documents, mask: &Mask) -> Self {
        let mut origins = Vec::new();
        for (number, key) in documents.projects() {
            let place = number as usize;
            if origins.len() <= place {
                origins.resize(place + 1, None);
            }
            origins[place] = mask.origin(key);
        }
        let mut in_store = 0;
        let mut count = 0_usize;
        let mut length = 0.0_f64;
        let parts = documents.blocks.iter().map(|(block, notes)| {
            let length_norms = notes.iter().map(|note| {
                let Some(document) = note else {
                    return 0.0;
                };
                in_store += usize::from(document.state() != State::Forgotten);
                let origin = origins.get(document.project as usize).copied().flatten();
                if origin.is_none() || !mask.admits(document) {
                    return 0.0;
                }
                count += 1;
                length += f64::from(document.length);
                // The length for now. It is normalised below, once the average is known.
                f32::from(document.length.max(1))
            });
            BlockPart {
                block: *block,
                length_norms: length_norms.collect(),
                notes,
            }
        });
        let mut parts: Vec<BlockPart<'_>> = parts.collect();
        #[expect(clippy::cast_possible_truncation, reason = "a mean of whole numbers")]
        let mean = (length / count.max(1) as f64).max(1.0) as f32;
        for length_norm in parts.iter_mut().flat_map(|part| &mut part.length_norms) {
            if *length_norm > 0.0 {
                *length_norm = K1 * (1.0 - B + B * *length_norm / mean);
            }
        }
        Self {
            parts,
            origins,
            count,
            in_store,
            max_rarity: rarity(count, 0, 0.0),
        }
    }

    /// Returns the note of a number, if it is searched.
    pub(super) fn document(&self, number: u32) -> Option<&'a Document> {
        let (block, place) = (number / BLOCK_SIZE, (number % BLOCK_SIZE) as usize);
        let at = self
            .parts
            .binary_search_by_key(&block, |part| part.block)
            .ok()?;
        let part = self.parts.get(at)?;
        let is_searched = part
            .length_norms
            .get(place)
            .is_some_and(|length_norm| *length_norm > 0.0);
        part.notes.get(place)?.as_ref().filter(|_| is_searched)
    }

    pub(super) fn origin(&self, document: &Document) -> Option<Origin> {
        *self.origins.get(document.project as usize)?
    }

    /// The divisor of `fit`: among more notes, the best one matches better by chance.
    pub(super) fn fit_divisor(&self) -> f32 {
        let count = self.count as f32;
        (1.0 + count + SMALL_STORE * smallness(self.count))
            .ln()
            .sqrt()
    }
}

#[expect(clippy::cast_possible_truncation, reason = "4,096")]
pub(super) const BLOCK_SIZE: u32 = BLOCK_LENGTH as u32;
