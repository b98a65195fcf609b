//! Finds phrases in a sentence, word by word, in several languages.

use anamnesis_text::{terms, word_list::each};

pub(crate) use anamnesis_text::word_list::is_in;

/// Returns what follows the first of these beginnings that a sentence has, in capitals or not.
pub(crate) fn rest_after<'a>(sentence: &'a str, beginnings: &[&str]) -> Option<&'a str> {
    beginnings.iter().find_map(|beginning| {
        let (head, rest) = sentence.split_at_checked(beginning.len())?;
        head.eq_ignore_ascii_case(beginning).then_some(rest)
    })
}

/// A sentence prepared for lookups: lower case, without punctuation, words separated by one space.
pub(crate) struct Words {
    text: String,
    /// The offsets of the words.
    starts: Vec<usize>,
}

impl Words {
    pub(crate) fn new(sentence: &str) -> Self {
        let mut text = String::with_capacity(sentence.len() + 2);
        let mut starts = Vec::new();
        text.push(' ');
        for c in sentence.chars().flat_map(char::to_lowercase) {
            let c = match c {
                '’' | '‘' => '\'',
                c if c.is_alphanumeric() || matches!(c, '→' | '\'') => c,
                _ => ' ',
            };
            match (text.ends_with(' '), c) {
                (true, ' ') => continue,
                (true, _) => starts.push(text.len()),
                _ => {}
            }
            text.push(c);
        }
        if !text.ends_with(' ') {
            text.push(' ');
        }
        Self { text, starts }
    }

    /// Returns whether the sentence contains one of these phrases, separated by `|`, as whole words.
    pub(crate) fn contain(&self, phrases: &str) -> bool {
        each(phrases).any(|phrase| {
            self.starts.iter().any(|at| self.has_at(*at, phrase))
                || !phrase.is_ascii() && is_prefix(phrase) && self.text.contains(phrase)
        })
    }

    /// Returns whether the sentence begins with one of these phrases.
    pub(crate) fn begin(&self, phrases: &str) -> bool {
        self.end_of_first(1, phrases).is_some()
    }

    /// Removes these phrases from the beginning, as often as they are there.
    pub(crate) fn after(&self, phrases: &str) -> Self {
        let mut at = 1;
        while let Some(end) = self.end_of_first(at, phrases) {
            at = end;
        }
        Self::new(self.text.get(at..).unwrap_or_default())
    }

    /// Removes these phrases everywhere.
    pub(crate) fn without(&self, phrases: &str) -> Self {
        let mut text = self.text.clone();
        for phrase in phrases.split('|') {
            if is_prefix(phrase) {
                text = text.replace(phrase, " ");
            } else {
                text = text.replace(&format!(" {phrase} "), "  ");
            }
        }
        Self::new(&text)
    }

    /// Returns the words, separated by one space.
    pub(crate) fn as_str(&self) -> &str {
        self.text.trim()
    }

    /// Returns where the phrase that is at an offset ends, with the space behind it.
    fn end_of_first(&self, at: usize, phrases: &str) -> Option<usize> {
        let phrase = each(phrases).find(|phrase| self.has_at(at, phrase))?;
        let end = at + phrase.len();
        Some(end + usize::from(self.text[end..].starts_with(' ')))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        self.text.split_ascii_whitespace()
    }

    /// Returns whether a phrase is at an offset and ends with a word.
    fn has_at(&self, at: usize, phrase: &str) -> bool {
        // Most words differ from a phrase in their first byte.
        self.text.as_bytes().get(at) == phrase.as_bytes().first()
            && self.text[at..]
                .strip_prefix(phrase)
                .is_some_and(|after| after.starts_with(' ') || is_prefix(phrase))
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

/// Returns whether a phrase may be followed by the rest of a word: in a dense script and in Korean,
/// which appends endings.
fn is_prefix(phrase: &str) -> bool {
    is_dense(phrase) || phrase.contains(|c| matches!(c, '\u{ac00}'..='\u{d7af}'))
}

/// Words that say nothing beside words of small talk: function words, greetings, orders to continue.
const IDLE: &str = "\
    a|all|alright|and|are|bye|can|carry|commit|cool|correct|do|done|everything|exactly|exit|\
    for|going|hello|help|hey|hi|how|i|is|it|its|it's|k|keep|lets|let's|lgtm|make|me|more|much|\
    nice|now|on|perfect|pr|prompt|push|resume|retry|right|run|see|so|test|tests|thank|that|the|\
    them|then|there|this|to|wait|works|yep|you|continúa|gracias|hola|merci|bonjour|danke|hallo|\
    weiter|ja|oui|sí|hm";

/// Texts in dense scripts that say nothing by themselves.
const DENSE_SMALL_TALK: &str = "\
    继续|你好|谢谢|好的|可以|続けて|ありがとう|こんにちは|はい|好";

/// Returns whether a text only tells the model to continue, thanks it or greets it.
pub(crate) fn is_small_talk(text: &str) -> bool {
    const MAX_WORDS: usize = 8;
    if is_dense(text) {
        let said = text.trim_matches(|c: char| !c.is_alphanumeric());
        return is_in(DENSE_SMALL_TALK, said);
    }
    let words = Words::new(text);
    let mut words = words.iter();
    words
        .by_ref()
        .take(MAX_WORDS)
        .all(|word| terms::is_small_talk(word) || is_in(IDLE, word))
        && words.next().is_none()
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
