//! Similarity of sets and of words, from 0 (nothing in common) to 1 (equal).

use std::collections::BTreeSet;

/// Returns the Jaccard similarity of two sets, |A ∩ B| / |A ∪ B|; 1 for two empty sets.
pub fn jaccard<T: Ord>(one: &BTreeSet<T>, other: &BTreeSet<T>) -> f64 {
    weighted_jaccard(one, other, |_| 1.0)
}

/// Returns the weighted Jaccard similarity of two sets: the weight of A ∩ B over that of A ∪ B; 1 if
/// nothing has a weight.
pub fn weighted_jaccard<T: Ord>(
    one: &BTreeSet<T>,
    other: &BTreeSet<T>,
    weigh: impl Fn(&T) -> f64,
) -> f64 {
    let all: f64 = one.union(other).map(&weigh).sum();
    let common: f64 = one.intersection(other).map(&weigh).sum();
    if all > 0.0 { common / all } else { 1.0 }
}

/// Returns Dice's coefficient of the byte trigrams of two words, 2·|A ∩ B| / (|A| + |B|). `^` and `$`
/// mark the ends of a word.
pub fn trigram_dice(one: &str, other: &str) -> f32 {
    let (one, other) = (trigrams(one), trigrams(other));
    let common = one.iter().filter(|part| other.contains(part)).count();
    2.0 * common as f32 / (one.len() + other.len()) as f32
}

/// Returns the distinct trigrams of a word. A sorted list is faster to make than a set.
fn trigrams(word: &str) -> Vec<[u8; 3]> {
    let marked = [b"^", word.as_bytes(), b"$"].concat();
    let trigrams = marked
        .windows(3)
        .filter_map(|trigram| trigram.try_into().ok());
    let mut trigrams: Vec<[u8; 3]> = trigrams.collect();
    trigrams.sort_unstable();
    trigrams.dedup();
    trigrams
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(words: &str) -> BTreeSet<&str> {
        words.split_whitespace().collect()
    }

    #[test]
    fn sets_are_compared() {
        for (one, other, expected) in [
            ("a b c", "b c d", 0.5),
            ("a", "b", 0.0),
            ("a b", "b a", 1.0),
            ("a", "", 0.0),
            ("", "", 1.0),
        ] {
            assert!((jaccard(&set(one), &set(other)) - expected).abs() < 1e-9);
        }
        let weigh = |word: &&str| if *word == "b" { 3.0 } else { 1.0 };
        let weighted = weighted_jaccard(&set("a b"), &set("b c"), weigh);
        assert!((weighted - 0.6).abs() < 1e-9, "{weighted}");
    }

    #[test]
    fn words_are_compared_by_trigrams() {
        for (one, other, expected) in [
            ("migrat", "migrant", 0.615),
            ("same", "same", 1.0),
            ("ab", "xy", 0.0),
        ] {
            assert!((trigram_dice(one, other) - expected).abs() < 0.01, "{one}");
        }
    }
}
