//! Finds phrases in a sentence, word by word, in several languages.

/// A sentence prepared for lookups: lower case, without punctuation, words separated by one space.
pub(crate) struct Words(String);

impl Words {
    pub(crate) fn new(sentence: &str) -> Self {
        let mut words = String::with_capacity(sentence.len() + 2);
        words.push(' ');
        for c in sentence.chars().flat_map(char::to_lowercase) {
            match c {
                '’' | '‘' | '\'' => words.push('\''),
                c if c.is_alphanumeric() || c == '→' => words.push(c),
                _ if words.ends_with(' ') => {}
                _ => words.push(' '),
            }
        }
        if !words.ends_with(' ') {
            words.push(' ');
        }
        Self(words)
    }

    /// Returns whether the sentence contains one of these phrases, separated by `|`, as whole words.
    pub(crate) fn contain(&self, phrases: &str) -> bool {
        phrases.split('|').any(|phrase| self.find(phrase).is_some())
    }

    /// Returns whether the sentence begins with one of these phrases.
    pub(crate) fn begin(&self, phrases: &str) -> bool {
        phrases
            .split('|')
            .any(|phrase| self.find(phrase) == Some(1))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.split_ascii_whitespace()
    }

    fn find(&self, phrase: &str) -> Option<usize> {
        let is_whole = |at: usize| {
            let after = self.0.get(at + phrase.len()..).unwrap_or_default();
            let before = self.0.get(..at).unwrap_or_default();
            is_dense(phrase) || (before.ends_with(' ') && after.starts_with(' '))
        };
        let mut found = self.0.match_indices(phrase).map(|(at, _)| at);
        found.find(|at| is_whole(*at))
    }
}

/// Adds up the weights of the marks that hold.
pub(crate) fn sum_of_marks(marks: &[(bool, f32)]) -> f32 {
    let holding = marks.iter().filter(|(holds, _)| *holds);
    holding.map(|(_, weight)| weight).sum()
}

/// Returns the length of a text in characters, for weights.
pub(crate) fn length(text: &str) -> f32 {
    f32::from(u16::try_from(text.chars().count()).unwrap_or(u16::MAX))
}

/// Returns whether a text is written without spaces between words: Chinese, Japanese.
pub(crate) fn is_dense(text: &str) -> bool {
    text.chars().any(|c| matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ff00}'..='\u{ff9f}'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_whole_words() {
        let words = Words::new("No, don’t use `npm` — use pnpm!");
        assert!(words.contain("don't"));
        assert!(words.contain("use pnpm"));
        assert!(!words.contain("pm|us"));
        assert!(words.begin("no"));
        assert!(!words.begin("use"));
        assert!(Words::new("請不要這樣").contain("不要"));
        assert!(!Words::new("").contain("a"));
    }
}
