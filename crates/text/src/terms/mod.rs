//! Tokenizes text into the terms of the index and of queries.
//!
//! - A word is a run of letters and digits. Its term is folded (see `fold`) and stemmed, or is the
//!   base of an irregular form. An abbreviation also yields the term of its long form.
//! - An identifier of several parts (`load_user_profile`, `loadUserProfile`, `oauth2`) yields one
//!   term for the whole, the same in all spellings, and one for each part.
//! - Chinese, Japanese and Korean yield character bigrams; a single character is a term by itself.
//! - Each emoji of a sequence is a term, and so is a flag.
//!
//! Terms depend on the text alone. Tokenizing takes linear time.

mod fold;
mod forms;
mod inflection;
mod porter;
mod stop_words;

pub use self::stop_words::is_small_talk;
use self::{forms::WordForm, inflection::stem};
use crate::joiner::{is_emoji, is_flag_letter};

/// Characters below are signs such as `©` and `™`, not emoji that people search for.
const FIRST_EMOJI: char = '\u{2190}';

/// Longer terms are truncated, in bytes. Only encoded data is longer, and it is not worth the
/// space.
const MAX_TERM_LENGTH: usize = 64;

/// The role of a word in its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A simple word.
    Plain,
    /// An identifier of several parts, as a whole.
    Whole,
    /// A part of the preceding identifier.
    Part,
    /// The long form of the preceding abbreviation.
    LongForm,
}

/// A word of a text and its term.
#[derive(Debug, Clone, Copy)]
pub struct Word<'text, 'term> {
    /// As written.
    pub written: &'text str,
    /// In lower case without accents.
    pub folded: &'term str,
    /// The term: folded and stemmed.
    pub term: &'term str,
    /// Its role in the text.
    pub role: Role,
}

impl Word<'_, '_> {
    /// Returns whether it is a function word, which says nothing about a text's topic.
    pub fn is_stop_word(&self) -> bool {
        stop_words::is_stop_word(self.folded)
    }

    /// Returns whether it is an emoji.
    pub fn is_emoji(&self) -> bool {
        let first = self.written.chars().next();
        first.is_some_and(|c| is_emoji(c) || is_flag_letter(c))
    }

    /// Returns whether it looks like a program identifier: several parts, or letters with digits.
    pub fn is_identifier(&self) -> bool {
        let has = |kind: fn(&char) -> bool| self.written.chars().any(|c| kind(&c));
        self.role == Role::Whole || has(char::is_ascii_alphabetic) && has(char::is_ascii_digit)
    }
}

/// Calls `emit` for each word of a text in order. The parts of an identifier follow the whole.
pub fn words<'text>(text: &'text str, emit: impl FnMut(Word<'text, '_>)) {
    let mut tokenizer = Tokenizer {
        emit,
        folded: String::new(),
        term: String::new(),
        parts: Vec::new(),
    };
    let mut start = None;
    let mut flag = None;
    for (place, character) in text.char_indices() {
        let is_inside = match character {
            '_' => start.is_some(),
            _ if character.is_ascii() => character.is_ascii_alphanumeric(),
            _ if fold::is_mark(character) => start.is_some(),
            _ => character.is_alphanumeric(),
        };
        match start {
            None if is_inside => start = Some(place),
            Some(first) if !is_inside => {
                tokenizer.run(text.get(first..place).unwrap_or_default());
                start = None;
            }
            _ => {}
        }
        if is_inside || character < FIRST_EMOJI {
            flag = None;
            continue;
        }
        let first = match flag.take() {
            _ if is_emoji(character) => Some(place),
            None if is_flag_letter(character) => {
                flag = Some(place);
                None
            }
            first => first.filter(|_| is_flag_letter(character)),
        };
        if let Some(first) = first {
            let end = place + character.len_utf8();
            tokenizer.word(text.get(first..end).unwrap_or_default(), Role::Plain);
        }
    }
    if let Some(first) = start {
        tokenizer.run(text.get(first..).unwrap_or_default());
    }
}

/// Returns the terms of a text in order, with repetitions.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    words(text, |word| terms.push(word.term.to_owned()));
    terms
}

struct Tokenizer<'text, Emit> {
    emit: Emit,
    folded: String,
    term: String,
    parts: Vec<&'text str>,
}

impl<'text, Emit: FnMut(Word<'text, '_>)> Tokenizer<'text, Emit> {
    /// Reads a run of letters, digits, combining marks and underscores.
    fn run(&mut self, mut run: &'text str) {
        if run.is_ascii() {
            self.identifier(run);
            return;
        }
        while let Some(first) = run.chars().next() {
            let is_cjk = is_cjk(first);
            let end = run.find(|c| is_cjk != is_cjk_or_mark(c, is_cjk));
            let (piece, rest) = run.split_at(end.unwrap_or(run.len()));
            if is_cjk {
                self.bigrams(piece);
            } else {
                self.identifier(piece);
            }
            run = rest;
        }
    }

    fn identifier(&mut self, run: &'text str) {
        let run = run.trim_matches('_');
        if run.is_empty() {
            return;
        }
        if run.bytes().all(|byte| byte.is_ascii_lowercase()) {
            self.word(run, Role::Plain);
            return;
        }
        let mut parts = std::mem::take(&mut self.parts);
        parts.clear();
        for piece in run.split('_').filter(|piece| !piece.is_empty()) {
            split_at_case(piece, &mut parts);
        }
        if let [only] = parts[..] {
            self.word(only, Role::Plain);
        } else {
            self.word(run, Role::Whole);
            for part in &parts {
                self.word(part, Role::Part);
            }
        }
        self.parts = parts;
    }

    /// Reads a CJK run as bigrams.
    fn bigrams(&mut self, run: &'text str) {
        let mut places = run
            .char_indices()
            .map(|(place, _)| place)
            .chain([run.len()]);
        let (Some(mut first), Some(mut second)) = (places.next(), places.next()) else {
            return;
        };
        let mut is_alone = true;
        for third in places {
            self.word(run.get(first..third).unwrap_or_default(), Role::Plain);
            (first, second) = (second, third);
            is_alone = false;
        }
        if is_alone {
            self.word(run.get(first..second).unwrap_or_default(), Role::Plain);
        }
    }

    fn word(&mut self, written: &'text str, role: Role) {
        self.folded.clear();
        if written.len() < MAX_TERM_LENGTH && written.is_ascii() {
            self.folded.push_str(written);
            self.folded.make_ascii_lowercase();
            if role == Role::Whole {
                self.folded.retain(|character| character != '_');
            }
        } else {
            for character in written.chars() {
                if character != '_' && !fold::is_mark(character) {
                    fold::fold(character, &mut self.folded);
                }
                if self.folded.len() >= MAX_TERM_LENGTH {
                    break;
                }
            }
        }
        if self.folded.is_empty() {
            return;
        }
        let form = forms::form(&self.folded);
        let word = match form {
            Some(WordForm::IrregularOf(word)) => word,
            _ => &self.folded,
        };
        stem(word, &mut self.term);
        (self.emit)(Word {
            written,
            folded: &self.folded,
            term: &self.term,
            role,
        });
        if let Some(WordForm::AbbreviationOf(long)) = form {
            stem(long, &mut self.term);
            (self.emit)(Word {
                written,
                folded: long,
                term: &self.term,
                role: Role::LongForm,
            });
        }
    }
}

/// Splits `loadUserProfile` before a capital that follows a small letter or digit, `HTTPServer`
/// before the last capital of a run that a small letter follows, and `sha256` before its digits. The
/// digits of `s3` and `v2` belong to their letter.
fn split_at_case<'text>(piece: &'text str, parts: &mut Vec<&'text str>) {
    let mut start = 0;
    let mut before = None::<char>;
    let mut characters = piece.char_indices().peekable();
    while let Some((place, character)) = characters.next() {
        let is_boundary = character.is_uppercase()
            && before.is_some_and(|before| {
                before.is_lowercase()
                    || before.is_ascii_digit()
                    || before.is_uppercase()
                        && characters
                            .peek()
                            .is_some_and(|(_, next)| next.is_lowercase())
            })
            || character.is_ascii_digit()
                && before.is_some_and(char::is_alphabetic)
                && piece
                    .get(start..place)
                    .is_some_and(|part| part.chars().nth(1).is_some());
        if is_boundary {
            parts.extend(piece.get(start..place));
            start = place;
        }
        before = Some(character);
    }
    parts.extend(piece.get(start..));
}

/// Returns whether a character is indexed as bigrams: scripts written without spaces, and Korean,
/// whose endings the stemmer does not know.
fn is_cjk(character: char) -> bool {
    matches!(character,
        '\u{3005}'..='\u{3007}'      // iteration marks, the Han zero
        | '\u{3040}'..='\u{30ff}'    // kana
        | '\u{3130}'..='\u{318f}'    // Hangul letters
        | '\u{31f0}'..='\u{31ff}'    // kana
        | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}'    // Han
        | '\u{ac00}'..='\u{d7af}'    // Hangul syllables
        | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9d}'    // half-width kana
        | '\u{20000}'..='\u{3ffff}')
}

/// Returns whether a character continues a CJK run; a combining mark continues either kind of run.
fn is_cjk_or_mark(character: char, before: bool) -> bool {
    if fold::is_mark(character) {
        before
    } else {
        is_cjk(character)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(terms(text).join(" "), expected, "{text}");
    }

    #[test]
    fn words_are_folded_and_stemmed() {
        check("The tests RUN, running tests!", "the test run run test");
        check("Größe cafe\u{301}s naïve", "gross cafe naiv");
        check(
            "v1.2.3 C++ .env x86_64",
            "v1 2 3 c env environ x8664 x86 64",
        );
        check("don't re-run", "don t re run");
        check("ran rebuilt broken", "run rebuild break");
        check("cfgDir", "cfgdir cfg configur dir directori");
        check("*:-()^\"'\0 _ __", "");
        check("", "");
    }

    #[test]
    fn identifiers_are_found_whole_and_by_their_parts() {
        check("load_user_profile", "loaduserprofil load user profil");
        check("loadUserProfile()", "loaduserprofil load user profil");
        check("LOAD_USER_PROFILE", "loaduserprofil load user profil");
        check(
            "HTTPServer parseURL",
            "httpserver http server parseurl pars url",
        );
        check("__init__ _private", "init initi privat");
        check(
            "src/auth/tokenStore.rs",
            "src sourc auth authent tokenstor token store rs",
        );
        check("utf8Decode Sha256", "utf8decod utf 8 decod sha256 sha 256");
        check(
            "Überschrift übersetzeText",
            "uberschrift ubersetzetext ubersetz text",
        );
    }

    #[test]
    fn cjk_text_is_indexed_as_bigrams() {
        check("数据库", "数据 据库");
        check("数", "数");
        check("用redis数据库v2", "用 redi 数据 据库 v2");
        check("データベース", "デー ータ タベ ベー ース");
        check("데이터를 저장", "데이 이터 터를 저장");
        check("数_据", "数 据");
    }

    #[test]
    fn emoji_are_terms_and_joiners_are_ignored() {
        check(
            "❤\u{fe0f} 👩\u{200d}💻 ship🚀it 🇩🇪🇫🇷 👍🏽 ✓ ™",
            "❤ 👩 💻 ship 🚀 it 🇩🇪 🇫🇷 👍",
        );
        assert_eq!(terms("می\u{200c}خواهم"), terms("میخواهم"));
    }

    #[test]
    fn words_have_a_role() {
        let mut seen = Vec::new();
        words("Run loadUserProfile, é2e", |word| {
            seen.push((
                word.written,
                word.role,
                word.is_stop_word(),
                word.is_identifier(),
            ));
        });
        assert_eq!(
            seen,
            [
                ("Run", Role::Plain, false, false),
                ("loadUserProfile", Role::Whole, false, true),
                ("load", Role::Part, false, false),
                ("User", Role::Part, false, false),
                ("Profile", Role::Part, false, false),
                ("é2e", Role::Plain, false, true),
            ]
        );
        words("They THIS", |word| assert!(word.is_stop_word()));
        words("for if not", |word| assert!(!word.is_stop_word()));
    }

    #[test]
    fn terms_are_truncated() {
        let encoded = "QUJD".repeat(300_000);
        words(&encoded, |word| {
            assert!(word.term.len() < MAX_TERM_LENGTH + 4)
        });
    }

    proptest! {
        #[test]
        fn any_text_has_terms_of_letters_and_digits(text in any::<String>()) {
            words(&text, |word| {
                assert!(!word.term.is_empty());
                assert!(text.contains(word.written));
            });
        }

        #[test]
        fn camel_case_and_snake_case_are_equal(parts in proptest::collection::vec("[a-z]{2,8}", 2..5)) {
            let capital = |part: &String| part[..1].to_uppercase() + &part[1..];
            let camel: String = parts.iter().map(capital).collect();
            prop_assert_eq!(terms(&parts.join("_")), terms(&camel));
        }
    }
}
