//! Lists of words in one text, which is shorter to read than an array of them.

/// Returns each word or phrase of a list that is separated by `|`.
pub fn each(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(list);
    std::iter::from_fn(move || {
        let word;
        (word, rest) = split_first(rest?, b'|');
        Some(word)
    })
}

/// Returns whether the list, separated by `|`, has a word or phrase.
pub fn is_in(list: &str, word: &str) -> bool {
    each(list).any(|known| known == word)
}

/// Splits a list at its first separator. Returns the text before it, and the text after it if there is one.
#[must_use]
pub const fn split_first(list: &str, separator: u8) -> (&str, Option<&str>) {
    let bytes = list.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at] == separator {
            let (first, rest) = list.split_at(at);
            return (first, Some(rest.split_at(1).1));
        }
        at += 1;
    }
    (list, None)
}

/// A hash table of at most `WORDS` words with values, with linear probing. It is made when the program is
/// built: each hook is a process of its own, and would make it again.
///
/// `SLOTS` is a power of two and greater than `WORDS`.
#[derive(Debug, Clone, Copy)]
pub struct WordTable<V: 'static, const WORDS: usize, const SLOTS: usize> {
    pub(crate) entries: [Option<(&'static str, V)>; WORDS],
    count: u16,
    /// The number of the entry with this hash, counted from one; 0 in a free slot.
    slots: [u16; SLOTS],
}

impl<V: Copy, const WORDS: usize, const SLOTS: usize> WordTable<V, WORDS, SLOTS> {
    /// A table without words.
    pub const EMPTY: Self = Self {
        entries: [None; WORDS],
        count: 0,
        slots: [0; SLOTS],
    };

    /// Adds each word of a list, with the same value. Empty words are left out.
    #[must_use]
    pub const fn with(mut self, words: &'static str, separator: u8, value: V) -> Self {
        let mut rest = Some(words);
        while let Some(words) = rest {
            let word;
            (word, rest) = split_first(words, separator);
            if !word.is_empty() {
                let mut slot = hash(word) & (SLOTS - 1);
                while self.slots[slot] > 0 {
                    slot = (slot + 1) & (SLOTS - 1);
                }
                self.entries[self.count as usize] = Some((word, value));
                self.count += 1;
                self.slots[slot] = self.count;
            }
        }
        self
    }

    /// Returns the value with which a word was added first.
    pub fn get(&self, word: &str) -> Option<V> {
        let slots = (hash(word)..).map(|slot| self.slots[slot & (SLOTS - 1)]);
        let numbers = slots.take_while(|number| *number > 0);
        let mut entries = numbers.filter_map(|number| self.entries[usize::from(number) - 1]);
        entries.find(|(known, _)| *known == word).map(|it| it.1)
    }
}

/// FNV-1a: <http://www.isthe.com/chongo/tech/comp/fnv/>. Its weakness to chosen keys does not matter for a
/// fixed table.
const fn hash(word: &str) -> usize {
    let (bytes, mut hash, mut at) = (word.as_bytes(), 0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    static TABLE: WordTable<u8, 6, 8> =
        WordTable::EMPTY
            .with("one|two||three", b'|', 1)
            .with("four two fünf", b' ', 2);

    #[test]
    fn a_table_has_its_words_with_the_first_value() {
        for (word, value) in [
            ("one", 1),
            ("two", 1),
            ("three", 1),
            ("four", 2),
            ("fünf", 2),
        ] {
            assert_eq!(TABLE.get(word), Some(value), "{word}");
        }
        for word in ["", "on", "ones", "six", "one|two"] {
            assert_eq!(TABLE.get(word), None, "{word}");
        }
        assert_eq!(TABLE.entries.iter().flatten().count(), 6);
    }

    #[test]
    fn a_list_is_split_at_its_first_separator() {
        assert_eq!(split_first("a: b: c", b':'), ("a", Some(" b: c")));
        assert_eq!(split_first("a", b':'), ("a", None));
        assert_eq!(split_first("", b':'), ("", None));
    }
}
