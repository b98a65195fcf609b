//! Lists of words in one text, which is shorter to read than an array of them.

/// Returns whether the list, separated by `|`, has a word.
pub(crate) fn is_in(list: &str, word: &str) -> bool {
    let mut words = list.as_bytes().split(|byte| *byte == b'|');
    words.any(|known| known == word.as_bytes())
}
