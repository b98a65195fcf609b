//! Recognizes private text that occurs again without its `<private>` mark.
//!
//! Tokens of private regions that are unlikely to occur by chance are stored as keyed hashes. Where
//! a later text has a token with one of these hashes, [`MASK`] replaces it.
//!
//! A token is a run of characters without white space, or one of its parts between quotation marks,
//! brackets and other separators, with and without punctuation at its ends. So the password in
//! `pw=…` is recognized in quotation marks, in a URL and at the end of a sentence. In a script
//! without blanks between words, a part ends where Latin letters meet letters of that script. It is
//! not recognized in another spelling or encoding, or when it contains white space.
//!
//! Invariants: masking is idempotent (a mask that exposes another token is followed by another
//! pass, up to `MAX_PASSES`), and takes linear time.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Replaces a private token.
pub const MASK: &str = "[private]";

/// No token contains this, so that a mask is never masked again.
const MASK_START: &str = "[private";

/// The most hashes that are computed from private texts at once.
pub const MAX_HASHES: usize = 1_000;

/// The shortest token, in characters.
const MIN_LENGTH: usize = 8;

/// The shortest token of letters only, in characters.
const MIN_WORD_LENGTH: usize = 16;

/// The longest token, in bytes. A longer one is not a password that somebody types again.
const MAX_LENGTH: usize = 1024;

/// A mask splits the run it is in, which may expose another token. Bounds the passes over a text.
const MAX_PASSES: usize = 8;

/// The per-session key of the token hashes; hashes of different sessions cannot be compared.
///
/// `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key([u8; 16]);

impl Key {
    /// Makes a key of random bytes.
    pub const fn new(random: [u8; 16]) -> Self {
        Key(random)
    }

    /// Returns the bytes to store.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    fn hash(self, token: &str) -> Option<Hash> {
        let length = u16::try_from(token.len()).ok()?;
        // The key has a fixed length and the digest is truncated, so no length extension is
        // possible.
        let digest = Sha256::new()
            .chain_update(self.0)
            .chain_update(token)
            .finalize();
        let hash = *digest.first_chunk()?;
        Some(Hash { length, hash })
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Key")
    }
}

/// The keyed hash of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Hash {
    /// The length of the token, in bytes.
    length: u16,
    hash: [u8; 8],
}

impl Hash {
    /// Returns the stored form of the hash.
    pub fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        let (length, hash) = bytes.split_at_mut(2);
        length.copy_from_slice(&self.length.to_be_bytes());
        hash.copy_from_slice(&self.hash);
        bytes
    }

    /// Parses the stored form; `None` if it has the wrong length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, hash) = bytes.split_first_chunk()?;
        Some(Hash {
            length: u16::from_be_bytes(*length),
            hash: hash.try_into().ok()?,
        })
    }
}

/// Returns the hashes of the tokens in private texts without duplicates, at most [`MAX_HASHES`].
pub fn hashes(key: &Key, private_texts: &[String]) -> Vec<Hash> {
    let mut hashes = Vec::new();
    let runs = private_texts
        .iter()
        .flat_map(|text| text.split_whitespace());
    for run in runs {
        for candidate in candidates(run) {
            if candidate.is_distinctive()
                && let Some(hash) = key.hash(candidate.text)
                && !hashes.contains(&hash)
            {
                hashes.push(hash);
                if hashes.len() == MAX_HASHES {
                    return hashes;
                }
            }
        }
    }
    hashes
}

/// Returns the hashes of a text that a person named: of its distinctive tokens and, if it is a
/// single token, of the whole text, however short or common.
pub fn hashes_of(key: &Key, text: &str) -> Vec<Hash> {
    let mut hashes = hashes(key, &[text.to_owned()]);
    let is_token = !text.contains(char::is_whitespace) && text.len() <= MAX_LENGTH;
    if is_token
        && !text.contains(MASK_START)
        && let Some(hash) = key.hash(text)
        && !hashes.contains(&hash)
    {
        hashes.push(hash);
    }
    hashes
}

/// The known private tokens, as hashes with their keys.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrivateTokens {
    /// Sorted per key.
    hashes: Vec<(Key, Vec<Hash>)>,
    /// Whether there is a token of each length, indexed by the length in bytes.
    lengths: Vec<bool>,
}

impl PrivateTokens {
    /// Returns whether there are no known tokens.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Replaces each known token of a text by [`MASK`].
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.mask_counted(text).0
    }

    /// Does the same as [`PrivateTokens::mask`] and counts the replaced tokens.
    pub(crate) fn mask_counted<'a>(&self, text: &'a str) -> (Cow<'a, str>, usize) {
        let mut text = Cow::Borrowed(text);
        let mut total = 0;
        for _ in 0..MAX_PASSES {
            let Some((masked, count)) = self.mask_once(&text) else {
                break;
            };
            text = Cow::Owned(masked);
            total += count;
        }
        (text, total)
    }

    /// Replaces the known tokens of a text in one pass; `None` if there are none.
    fn mask_once(&self, text: &str) -> Option<(String, usize)> {
        let shortest = self.lengths.iter().position(|known| *known)?;
        let mut masked = String::new();
        let mut count = 0;
        let mut kept = 0;
        for run in text.split_whitespace() {
            if run.len() < shortest {
                continue;
            }
            let base = offset(text, run);
            let mut end = 0;
            // Wider candidates come first, so a candidate inside a masked one is skipped.
            let mut found: Vec<TokenCandidate> = candidates(run)
                .filter(|candidate| self.knows(candidate.text))
                .collect();
            found.sort_by_key(|candidate| (candidate.start, usize::MAX - candidate.text.len()));
            for candidate in found {
                if candidate.start >= end {
                    end = candidate.start + candidate.text.len();
                    masked.push_str(&text[kept..base + candidate.start]);
                    masked.push_str(MASK);
                    kept = base + end;
                    count += 1;
                }
            }
        }
        if count == 0 {
            return None;
        }
        masked.push_str(&text[kept..]);
        Some((masked, count))
    }

    fn knows(&self, token: &str) -> bool {
        self.lengths.get(token.len()).is_some_and(|known| *known)
            && !token.contains(MASK_START)
            && self.hashes.iter().any(|(key, hashes)| {
                key.hash(token)
                    .is_some_and(|hash| hashes.binary_search(&hash).is_ok())
            })
    }
}

impl Extend<(Key, Hash)> for PrivateTokens {
    fn extend<T: IntoIterator<Item = (Key, Hash)>>(&mut self, hashes: T) {
        for (key, hash) in hashes {
            let length = usize::from(hash.length);
            if self.lengths.len() <= length {
                self.lengths.resize(length + 1, false);
            }
            if let Some(known) = self.lengths.get_mut(length) {
                *known = true;
            }
            match self.hashes.iter_mut().find(|(known, _)| *known == key) {
                Some((_, hashes)) => hashes.push(hash),
                None => self.hashes.push((key, vec![hash])),
            }
        }
        for (_, hashes) in &mut self.hashes {
            hashes.sort_unstable();
        }
    }
}

impl FromIterator<(Key, Hash)> for PrivateTokens {
    fn from_iter<T: IntoIterator<Item = (Key, Hash)>>(hashes: T) -> Self {
        let mut known_tokens = PrivateTokens::default();
        known_tokens.extend(hashes);
        known_tokens
    }
}

/// A part of a run that may be a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TokenCandidate<'a> {
    text: &'a str,
    /// Its start in the run.
    start: usize,
    kind: CandidateKind,
}

/// Where a candidate was separated from its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CandidateKind {
    /// At separators, or between two scripts.
    Part,
    /// At separators that are frequent in URLs and paths.
    UrlPiece,
    /// At the signs within names: `T7blue99.txt`.
    NamePiece,
}

impl TokenCandidate<'_> {
    /// Returns whether it is unlikely to occur by chance.
    ///
    /// A piece of a URL or path needs a digit: a host name is not secret because a private URL has
    /// it. A piece of a name also needs a letter: it may be a date.
    fn is_distinctive(&self) -> bool {
        let characters = self.text.chars().take(MIN_WORD_LENGTH).count();
        let has_digit = self.text.contains(|c: char| c.is_numeric());
        let inner = self.text.trim_matches(is_punctuation);
        let has_sign = inner.contains(|c: char| !c.is_alphanumeric());
        (characters >= MIN_WORD_LENGTH || (characters >= MIN_LENGTH && (has_digit || has_sign)))
            && match self.kind {
                CandidateKind::Part => true,
                CandidateKind::UrlPiece => has_digit,
                CandidateKind::NamePiece => {
                    has_digit && self.text.contains(|c: char| c.is_ascii_alphabetic())
                }
            }
            && self.text.len() <= MAX_LENGTH
            && !self.text.contains(MASK_START)
    }
}

/// Returns the candidates in a run: the whole, its parts, and the pieces of URLs, paths and names.
fn candidates(run: &str) -> impl Iterator<Item = TokenCandidate<'_>> {
    use CandidateKind::{NamePiece, Part, UrlPiece};
    let whole = std::iter::once((run, Part));
    let parts = run.split(is_separator).map(|part| (part, Part));
    let is_url_sign = |c| is_separator(c) || is_url_separator(c);
    let url_pieces = run.split(is_url_sign).map(|part| (part, UrlPiece));
    let foreign = Some(run).filter(|run| !run.is_ascii());
    let scripts = foreign.into_iter().flat_map(script_pieces);
    let named = Some(run).filter(|run| run.contains(is_name_separator));
    let stems = named.into_iter().flat_map(move |run| {
        let at_dots = run.split(move |c| c == '.' || is_url_sign(c));
        at_dots.chain(run.split(move |c| is_name_separator(c) || is_url_sign(c)))
    });
    whole
        .chain(parts)
        .chain(url_pieces)
        .chain(scripts.map(|part| (part, Part)))
        .chain(stems.map(|part| (part, NamePiece)))
        .flat_map(move |(part, kind)| {
            let bare = part.trim_matches(is_separator);
            // After a backslash comes the letter of an escape: `\nT7-blue-99`.
            let is_escape = run[..offset(run, bare)].ends_with('\\');
            let unescaped = match bare.strip_prefix(['n', 'r', 't']) {
                Some(unescaped) if is_escape => unescaped,
                _ => bare,
            };
            let plain = bare.trim_matches(is_punctuation);
            let inner = bare.trim_matches(|c| is_punctuation(c) || is_sign(c));
            [bare, plain, inner, unescaped].map(|text| TokenCandidate {
                text,
                start: offset(run, text),
                kind,
            })
        })
}

/// Splits a run at separators, at all other signs outside ASCII, and where the script changes.
fn script_pieces(run: &str) -> impl Iterator<Item = &str> {
    let is_sign = |c: char| is_separator(c) || !c.is_ascii() && !c.is_alphanumeric();
    run.split(is_sign).flat_map(|mut rest| {
        std::iter::from_fn(move || {
            let is_first_latin = is_latin(rest.chars().next()?);
            let end = rest.find(|c| is_latin(c) != is_first_latin);
            let (piece, after) = rest.split_at(end.unwrap_or(rest.len()));
            rest = after;
            Some(piece)
        })
    })
}

/// Returns whether a character is ASCII or a Latin letter.
fn is_latin(character: char) -> bool {
    character < '\u{250}' || matches!(character, '\u{1e00}'..='\u{1eff}')
}

/// Returns the start of a part in its text.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

#[rustfmt::skip]
fn is_separator(character: char) -> bool {
    matches!(
        character,
        '"' | '\'' | '`' | '(' | ')' | '[' | ']' | '{' | '}' | '<' | '>' | ',' | ';' | ':' | '=' | '|' | '\\'
            | '“' | '”' | '‘' | '’' | '„' | '«' | '»' | '→' | '…' | '、' | '。' | '「' | '」'
    )
}

fn is_url_separator(character: char) -> bool {
    matches!(character, '/' | '@' | '&' | '?' | '#' | '%' | '+' | '~')
}

/// Returns whether a character joins the words of a name.
fn is_name_separator(character: char) -> bool {
    matches!(character, '.' | '-' | '_')
}

/// Returns whether a character may be a prompt, a reference or another sign beside a word.
fn is_sign(character: char) -> bool {
    matches!(character, '$' | '&' | '^' | '%' | '@' | '#')
}

/// Returns whether a character may end a sentence or surround a word as markup.
fn is_punctuation(character: char) -> bool {
    is_separator(character)
        || matches!(
            character,
            '.' | '!' | '?' | '-' | '*' | '_' | '~' | '/' | '+'
        )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use anamnesis_testkit::assert_linear;

    const KEY: Key = Key([7; 16]);

    fn known_tokens(private: &[&str]) -> PrivateTokens {
        let private: Vec<String> = private.iter().map(ToString::to_string).collect();
        let hashes = hashes(&KEY, &private).into_iter();
        hashes.map(|hash| (KEY, hash)).collect()
    }

    fn check(private: &str, text: &str, expected: &str) {
        assert_eq!(
            known_tokens(&[private]).mask(text),
            expected,
            "{private:?} {text:?}"
        );
    }

    #[test]
    fn a_token_is_recognized_in_any_context() {
        for private in [
            "T7-blue-99",
            "pw=T7-blue-99",
            "the password is \"T7-blue-99\".",
            "ana:T7-blue-99@host",
        ] {
            for (text, expected) in [
                ("T7-blue-99", "[private]"),
                ("use T7-blue-99, please", "use [private], please"),
                ("T7-blue-99.\nT7-blue-99!", "[private].\n[private]!"),
                (
                    "{\"pw\":\"T7-blue-99\",\"a\":1}",
                    "{\"pw\":\"[private]\",\"a\":1}",
                ),
                (r"a\nT7-blue-99\n", r"a\n[private]\n"),
                (
                    "https://ana:T7-blue-99@host/x",
                    "https://ana:[private]@host/x",
                ),
                ("?key=T7-blue-99&x=1", "?key=[private]&x=1"),
                ("**T7-blue-99**", "**[private]**"),
                ("„T7-blue-99“", "„[private]“"),
                ("xT7-blue-99", "xT7-blue-99"),
                ("T7-blue-98", "T7-blue-98"),
                ("t7-blue-99", "t7-blue-99"),
            ] {
                check(private, text, expected);
            }
        }
        check("pw=T7-blue-99", "echo pw=T7-blue-99", "echo [private]");
        check("p@ss123!", "is p@ss123!, yes", "is [private], yes");
    }

    /// Scripts without blanks between words do not separate a password by them.
    #[test]
    fn a_token_is_recognized_beside_another_script() {
        let words = [
            "密码是walrus9heronquill",
            "密码：walrus9heronquill。",
            "パスワードはwalrus9heronquillです",
            "비밀번호walrus9heronquill입니다",
            "пароль–walrus9heronquill",
            "pw–walrus9heronquill",
            "•walrus9heronquill",
            "$walrus9heronquill",
            "pw\u{200b}walrus9heronquill",
            "walrus9heronquill.txt",
            "a.walrus9heronquill",
            "x_walrus9heronquill",
            "walrus9heronquill",
        ];
        for private in words {
            let known_tokens = known_tokens(&[private]);
            for text in words {
                let masked = known_tokens.mask(text);
                assert!(!masked.contains("walrus"), "{private:?} {text:?}: {masked}");
            }
        }
        check(
            "登录 walrus9heronquill",
            "用walrus9heronquill登录",
            "用[private]登录",
        );
        check("größe-8é", "mit größe-8é", "mit [private]");
        // A word that a private name contains, or a date in it, is not secret by itself.
        check(
            "walrus-heron-20261112",
            "heron 20261112 walrus",
            "heron 20261112 walrus",
        );
        check("这个密码是很好的", "这个密码是", "这个密码是");
    }

    /// Only tokens that are unlikely to occur by chance are hashed.
    #[test]
    fn only_distinctive_tokens_are_hashed() {
        for (private, kept) in [
            ("hunter22", true),
            ("hunter2", false),
            ("password", false),
            ("password.", false),
            ("pass-word", true),
            ("(passwords)", false),
            ("correcthorsebattery", true),
            ("correcthorsebat", false),
            ("größe-8é", true),
            ("a b c d e f g h i 1", false),
            ("[private]", false),
        ] {
            assert_eq!(!known_tokens(&[private]).is_empty(), kept, "{private:?}");
        }
        // Of a URL, only the whole and the parts with a digit are hashed.
        check(
            "see https://github.com/ana/shop-v2-x",
            "github.com/ana/shop-v2-x github.com shop-v2-x",
            "[private] github.com [private]",
        );
        let many: Vec<String> = (0..5_000).map(|n| format!("token-{n}")).collect();
        assert_eq!(hashes(&KEY, &many).len(), MAX_HASHES);
        assert!(hashes(&KEY, &["x1".repeat(MAX_LENGTH)]).is_empty());
    }

    #[test]
    fn hashes_are_bound_to_their_key() {
        let other = Key::new([8; 16]);
        let hashes: Vec<Hash> = hashes(&KEY, &["T7-blue-99".to_owned()]);
        let wrong: PrivateTokens = hashes.iter().map(|hash| (other, *hash)).collect();
        assert_eq!(wrong.mask("T7-blue-99"), "T7-blue-99");
        let both: PrivateTokens = hashes
            .iter()
            .flat_map(|hash| [(other, *hash), (KEY, *hash)])
            .collect();
        assert_eq!(both.mask("T7-blue-99"), "[private]");
        assert_eq!(format!("{KEY:?}"), "Key");
        assert_eq!(Key::new(KEY.to_bytes()), KEY);
        for hash in hashes {
            assert_eq!(Hash::from_bytes(&hash.to_bytes()), Some(hash));
            assert_eq!(Hash::from_bytes(&hash.to_bytes()[1..]), None);
        }
    }

    #[test]
    fn text_without_known_tokens_is_borrowed() {
        assert!(PrivateTokens::default().is_empty());
        assert!(matches!(
            PrivateTokens::default().mask("T7-blue-99"),
            Cow::Borrowed(_)
        ));
        assert!(matches!(
            known_tokens(&["T7-blue-99"]).mask("T7-blue-9"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn the_work_is_linear() {
        let known_tokens = known_tokens(&["T7-blue-99 12345678 k-1-2-3-4-5"]);
        for unit in [
            "T7-blue-99 ",
            "T7-blue-99",
            "T7-blue-99,",
            "1/",
            ",,,,",
            "12345678 ",
            "码T7",
            "x-1_",
        ] {
            let small = unit.repeat((1 << 12) / unit.len());
            let large = small.repeat(16);
            assert_linear(
                unit,
                || known_tokens.mask(&small).len(),
                || known_tokens.mask(&large).len(),
            );
        }
    }

    /// Text made of a private token, separators and masks.
    fn token_fragments() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec![
            "T7-blue-99",
            "pw=",
            "[private]",
            "[private",
            "\"",
            ",",
            " ",
            "/",
            "@",
            "-",
            "é",
            "码",
            "。",
            ".",
            "$",
            "x1",
            "\\n",
        ]);
        prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn masking_is_idempotent(private in token_fragments(), text in token_fragments()) {
            let known_tokens = known_tokens(&[&private, "T7-blue-99"]);
            let once = known_tokens.mask(&text).into_owned();
            prop_assert_eq!(known_tokens.mask(&once), once.as_str());
        }

        #[test]
        fn a_token_between_separators_is_masked(before in "[a-z \",=:]{0,9}", after in "[ \",;)]{1}[a-z]{0,9}") {
            let text = format!("{before}\"T7-blue-99{after}");
            let known_tokens = known_tokens(&["x T7-blue-99 y"]);
            prop_assert!(!known_tokens.mask(&text).contains("T7-blue-99"));
        }
    }
}
