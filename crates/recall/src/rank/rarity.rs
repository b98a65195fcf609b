//! How much a word tells, also in a store of few notes.
//!
//! The idf of a word among five notes says little: each word that a note has looks common, each that
//! none has looks rare, and an everyday verb looks as rare as a product's name. So the frequencies
//! of words in texts about programs stand in for the notes that a small store does not have.
//! `cargo xtask frequencies` writes their table.

use super::expected_idf;

/// For how many notes the background frequencies stand.
const BACKGROUND_NOTES: f32 = 300.0;

/// A store of so many notes is half small.
pub(super) const SMALL_STORE: f32 = 30.0;

/// Lines of a word's term and the share of passages that have it, in ten-thousandths; sorted.
const FREQUENCIES: &str = include_str!("frequencies.txt");

/// The share of passages with a word that is not listed.
const UNLISTED: f32 = 0.0004;

/// Returns the share of texts about programs that have a term.
pub(super) fn background(term: &str) -> f32 {
    listed(term).unwrap_or(UNLISTED)
}

/// Finds a term by bisection of the table's bytes, because a process looks up few.
fn listed(term: &str) -> Option<f32> {
    let mut rest = FREQUENCIES;
    while !rest.is_empty() {
        let middle = rest.len() / 2;
        let start = rest.get(..middle)?.rfind('\n').map_or(0, |at| at + 1);
        let end = start + rest.get(start..)?.find('\n')? + 1;
        let (word, share) = rest.get(start..end - 1)?.split_once(' ')?;
        match term.cmp(word) {
            std::cmp::Ordering::Equal => return Some(share.parse::<f32>().ok()? / 10_000.0),
            std::cmp::Ordering::Less => rest = rest.get(..start)?,
            std::cmp::Ordering::Greater => rest = rest.get(end..)?,
        }
    }
    None
}

/// Returns the idf of a term in `doc_freq` of so many notes and in `background` of the passages.
pub(super) fn rarity(notes: usize, doc_freq: u32, background: f32) -> f32 {
    expected_idf(
        notes as f32 + BACKGROUND_NOTES,
        doc_freq as f32 + BACKGROUND_NOTES * background,
    )
}

/// Returns how small a store is, from 1 (no notes) to 0.
pub(super) fn smallness(notes: usize) -> f32 {
    SMALL_STORE / (notes as f32 + SMALL_STORE)
}

/// Returns whether a store is more than half small.
pub(super) fn is_small_store(notes: usize) -> bool {
    (notes as f32) < SMALL_STORE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_listed_word_is_found() {
        for line in FREQUENCIES.lines() {
            let (word, share) = line.split_once(' ').unwrap();
            let share: f32 = share.parse().unwrap();
            assert_eq!(listed(word), Some(share / 10_000.0), "{word}");
        }
        for word in ["", "a0", "vercel", "zzzz"] {
            assert_eq!(listed(word), None, "{word}");
        }
    }

    #[test]
    fn an_everyday_verb_tells_less_than_a_name_in_a_small_store() {
        let verb = rarity(5, 1, background("make"));
        let name = rarity(5, 1, background("vercel"));
        assert!(verb < 0.7 * name, "{verb} {name}");
        let name_of_one_note = name / rarity(5, 0, background("vercel"));
        assert!(name_of_one_note > 0.7, "{name_of_one_note}");
    }

    #[test]
    fn in_a_large_store_its_own_frequencies_count() {
        let common_here = rarity(30_000, 10_000, background("vercel"));
        let rare_here = rarity(30_000, 1, background("make"));
        assert!(common_here < 0.3 * rare_here);
    }
}
