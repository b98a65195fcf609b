//! The terms of a text: what notes are indexed under and what a query looks for.
//!
//! A word is a run of letters and digits, folded to lower case without accents, with its English
//! endings taken off, or the word that it is an irregular form of; an abbreviation is a term beside
//! what it stands for. An identifier of several parts (`load_user_profile`, `loadUserProfile`) is one
//! term whole, the same in both spellings, and one for each part. Chinese, Japanese and Korean,
//! which are written without spaces or with endings that no list holds, are pairs of adjacent
//! characters; a single one stands for itself. Everything depends on the text alone, and takes time in
//! proportion to it.

mod fold;
mod forms;
mod porter;

use self::forms::Form;

/// Where a longer term is cut, in bytes: encoded data is no word, and none is worth more space.
const MAX_TERM_LENGTH: usize = 64;

/// English function words. Those that are code words, too (`if`, `for`, `not`, `all`, `after`, …),
/// are left out: in notes about programs they say something.
const STOP_WORDS: [&str; 95] = [
    "a",
    "about",
    "again",
    "against",
    "am",
    "an",
    "and",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "being",
    "between",
    "both",
    "but",
    "by",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "during",
    "few",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "let",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "nor",
    "of",
    "or",
    "our",
    "ours",
    "ourselves",
    "s",
    "she",
    "should",
    "so",
    "some",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "whom",
    "why",
    "will",
    "would",
    "you",
];

const LONGEST_STOP_WORD: usize = 10;

/// What a word is in the text it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// A word of its own.
    Plain,
    /// An identifier of several parts, as a whole.
    Whole,
    /// A part of the identifier before it.
    Part,
    /// What the abbreviation before it stands for.
    LongForm,
}

/// A word of a text, and the term it is found under.
#[derive(Debug, Clone, Copy)]
pub struct Word<'text, 'term> {
    /// As it is written.
    pub written: &'text str,
    /// In lower case without accents.
    pub folded: &'term str,
    /// The term: folded, without its ending.
    pub term: &'term str,
    /// What it is.
    pub role: Role,
}

impl Word<'_, '_> {
    /// Tells whether it says nothing about what a text is about.
    pub fn is_stop_word(&self) -> bool {
        self.folded.len() <= LONGEST_STOP_WORD && STOP_WORDS.binary_search(&self.folded).is_ok()
    }

    /// Tells whether only programs have such words: of several parts, or letters with digits.
    pub fn is_identifier(&self) -> bool {
        let has = |kind: fn(&char) -> bool| self.written.chars().any(|c| kind(&c));
        self.role == Role::Whole || has(char::is_ascii_alphabetic) && has(char::is_ascii_digit)
    }
}

/// Gives the words of a text one after the other; the parts of an identifier follow the whole.
pub fn words<'text>(text: &'text str, take: impl FnMut(Word<'text, '_>)) {
    let mut reader = Reader {
        take,
        folded: String::new(),
        term: String::new(),
        parts: Vec::new(),
    };
    let mut start = None;
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
                reader.run(text.get(first..place).unwrap_or_default());
                start = None;
            }
            _ => {}
        }
    }
    if let Some(first) = start {
        reader.run(text.get(first..).unwrap_or_default());
    }
}

/// Returns the terms of a text in its order, each as often as it occurs.
pub fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    words(text, |word| terms.push(word.term.to_owned()));
    terms
}

struct Reader<'text, Take> {
    take: Take,
    folded: String,
    term: String,
    parts: Vec<&'text str>,
}

impl<'text, Take: FnMut(Word<'text, '_>)> Reader<'text, Take> {
    /// Reads a run of letters, digits, marks and underscores.
    fn run(&mut self, mut run: &'text str) {
        if run.is_ascii() {
            self.identifier(run);
            return;
        }
        while let Some(first) = run.chars().next() {
            let is_dense = is_dense(first);
            let end = run.find(|c| is_dense != is_dense_or_mark(c, is_dense));
            let (piece, rest) = run.split_at(end.unwrap_or(run.len()));
            if is_dense {
                self.pairs(piece);
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
        if run
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        {
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

    /// Reads a run of characters that are written without spaces.
    fn pairs(&mut self, run: &'text str) {
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
            Some(Form::Of(word)) => word,
            _ => &self.folded,
        };
        stem(word, &mut self.term);
        (self.take)(Word {
            written,
            folded: &self.folded,
            term: &self.term,
            role,
        });
        if let Some(Form::ShortFor(long)) = form {
            stem(long, &mut self.term);
            (self.take)(Word {
                written,
                folded: long,
                term: &self.term,
                role: Role::LongForm,
            });
        }
    }
}

fn stem(word: &str, into: &mut String) {
    into.clear();
    into.push_str(word);
    porter::stem(into);
}

/// Splits `loadUserProfile` before each capital after a small letter or digit, and `HTTPServer` before
/// the last capital of several that a small letter follows.
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
            });
        if is_boundary {
            parts.extend(piece.get(start..place));
            start = place;
        }
        before = Some(character);
    }
    parts.extend(piece.get(start..));
}

/// Tells whether a character belongs to a script that is written without spaces, or, as Korean is,
/// with endings that nobody lists.
fn is_dense(character: char) -> bool {
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

/// A mark goes with what is before it.
fn is_dense_or_mark(character: char, before: bool) -> bool {
    if fold::is_mark(character) {
        before
    } else {
        is_dense(character)
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
        check("Größe cafe\u{301}s naïve", "große cafe naiv");
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
        check("utf8Decode Sha256", "utf8decod utf8 decod sha256");
        check(
            "Überschrift übersetzeText",
            "uberschrift ubersetzetext ubersetz text",
        );
    }

    #[test]
    fn scripts_without_spaces_are_pairs() {
        check("数据库", "数据 据库");
        check("数", "数");
        check("用redis数据库v2", "用 redi 数据 据库 v2");
        check("データベース", "デー ータ タベ ベー ース");
        check("데이터를 저장", "데이 이터 터를 저장");
        check("数_据", "数 据");
    }

    #[test]
    fn a_word_says_how_it_is_written() {
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
    fn the_stop_list_is_sorted() {
        assert!(STOP_WORDS.is_sorted());
        let lengths = STOP_WORDS.iter().map(|word| word.len());
        assert_eq!(lengths.max(), Some(LONGEST_STOP_WORD));
    }

    #[test]
    fn no_term_is_long() {
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
        fn spelling_does_not_matter(parts in proptest::collection::vec("[a-z]{2,8}", 2..5)) {
            let capital = |part: &String| part[..1].to_uppercase() + &part[1..];
            let camel: String = parts.iter().map(capital).collect();
            prop_assert_eq!(terms(&parts.join("_")), terms(&camel));
        }
    }
}
