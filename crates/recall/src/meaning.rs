//! Notes whose vector is similar to that of a query, for paraphrases and other languages.
//!
//! A cosine alone says little: with this model, even unrelated texts have 0.8. It counts by how many
//! standard deviations it exceeds the mean over the searched notes.

use anamnesis_embedding::cosine;
use anamnesis_note::id::NoteId;
use anamnesis_store::index::{Error, Index};

use crate::rank::{Mask, selected};

/// The mean cosine of a query and a note, and its standard deviation, measured on the realistic set.
/// They stand for [`PRIOR_NOTES`] notes, because a small store has no distribution of its own.
const PRIOR_MEAN: f32 = 0.79;
const PRIOR_DEVIATION: f32 = 0.019;
const PRIOR_NOTES: f32 = 20.0;

/// A note that is similar to a query.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SimilarNote {
    pub(crate) id: NoteId,
    /// The cosine of both vectors.
    pub(crate) similarity: f32,
    /// By how many standard deviations the cosine exceeds the mean.
    pub(crate) deviation: f32,
}

/// Returns the `limit` most similar notes of a mask, best first.
pub(crate) fn most_similar(
    index: &Index,
    vector: &[f32],
    mask: &Mask,
    limit: usize,
) -> Result<Vec<SimilarNote>, Error> {
    let selected = selected(index, mask)?;
    let mut found: Vec<(u32, f32)> = Vec::new();
    index.each_embedding(|number, other| {
        if selected.contains(&number) {
            found.push((number, cosine(vector, other)));
        }
    })?;
    let (mean, deviation) = distribution(&found);
    found
        .sort_unstable_by(|(number, one), (other, two)| two.total_cmp(one).then(number.cmp(other)));
    found.truncate(limit);
    let mut similar = Vec::with_capacity(found.len());
    for (number, similarity) in found {
        if let Some((id, _)) = index.heading(number)? {
            similar.push(SimilarNote {
                id,
                similarity,
                deviation: (similarity - mean) / deviation,
            });
        }
    }
    Ok(similar)
}

/// Returns mean and standard deviation of the cosines, those of the prior included.
fn distribution(found: &[(u32, f32)]) -> (f32, f32) {
    let cosines = || found.iter().map(|(_, cosine)| *cosine);
    #[expect(clippy::cast_precision_loss, reason = "a number of notes")]
    let count = found.len() as f32 + PRIOR_NOTES;
    let mean = (cosines().sum::<f32>() + PRIOR_NOTES * PRIOR_MEAN) / count;
    let squares = cosines().map(|cosine| (cosine - mean) * (cosine - mean));
    let prior = PRIOR_NOTES * PRIOR_DEVIATION * PRIOR_DEVIATION;
    (mean, ((squares.sum::<f32>() + prior) / count).sqrt())
}
