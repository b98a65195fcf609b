//! Recognizes what a person marked as private when it comes back unmarked.
//!
//! From private regions the tokens are taken that look as if nobody would write them by chance, and
//! kept as keyed hashes. Where a later text has a token with one of these hashes, a mark takes its
//! place.
//!
//! A token is a run of characters without white space, and each of its parts between quotation
//! marks, brackets and other separators, with and without the signs at its ends: a password given
//! as `pw=…` is recognized in quotation marks, in an address and at the end of a sentence. It is
//! not recognized in another spelling or encoding, and not when white space stands inside.
//!
//! Invariants: masking twice is masking once (where a mark lays bare another token, that one is
//! masked too, up to `MAX_PASSES` deep), and the work is linear in the length of the text.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// What stands in place of a token that was private.
pub const MASK: &str = "[private]";

/// What no token may hold: masking must not take its own marks for private.
const MASK_START: &str = "[private";

/// The most hashes that are taken from private texts at once.
pub const MAX_HASHES: usize = 1_000;

/// The shortest token, in characters.
const SHORTEST: usize = 8;

/// The shortest token of letters only, in characters.
const SHORTEST_WORD: usize = 16;

/// The longest token, in bytes. What is longer is no password, and nobody repeats it by hand.
const LONGEST: usize = 1024;

/// A mark ends the run that it stands in, and what stood beside it may be a token now. More often
/// than this a text is not gone through.
const MAX_PASSES: usize = 8;

/// The secret that makes hashes of one session meaningless in another.
///
/// `Debug` does not show it.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key([u8; 16]);

impl Key {
    /// Makes a key of random bytes.
    pub fn new(random: [u8; 16]) -> Self {
        Key(random)
    }

    /// Returns the bytes, for keeping.
    pub fn to_bytes(self) -> [u8; 16] {
        self.0
    }

    fn hash(self, token: &str) -> Option<Hash> {
        let length = u16::try_from(token.len()).ok()?;
        // The key has a fixed length and most of the digest is thrown away, so nothing can be
        // appended to what was hashed.
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
    /// How long the token is, in bytes.
    length: u16,
    hash: [u8; 8],
}

impl Hash {
    /// Returns the hash as it is stored.
    pub fn to_bytes(self) -> [u8; 10] {
        let mut bytes = [0; 10];
        let (length, hash) = bytes.split_at_mut(2);
        length.copy_from_slice(&self.length.to_be_bytes());
        hash.copy_from_slice(&self.hash);
        bytes
    }

    /// Reads what [`Hash::to_bytes`] returned; none if it has another length.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (length, hash) = bytes.split_first_chunk()?;
        Some(Hash {
            length: u16::from_be_bytes(*length),
            hash: hash.try_into().ok()?,
        })
    }
}

/// Returns the hashes of the tokens in private texts, each once, at most [`MAX_HASHES`].
pub fn hashes(key: &Key, private_texts: &[String]) -> Vec<Hash> {
    let mut hashes = Vec::new();
    let runs = private_texts
        .iter()
        .flat_map(|text| text.split_whitespace());
    for run in runs {
        for form in forms(run) {
            if form.is_telling()
                && let Some(hash) = key.hash(form.text)
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

/// Returns the hashes of a text that a person named: as a whole if it is one token, however short or
/// common, and of its tokens that nobody would write by chance.
pub fn hashes_of(key: &Key, text: &str) -> Vec<Hash> {
    let mut hashes = hashes(key, &[text.to_owned()]);
    let is_token = !text.contains(char::is_whitespace) && text.len() <= LONGEST;
    if is_token
        && !text.contains(MASK_START)
        && let Some(hash) = key.hash(text)
        && !hashes.contains(&hash)
    {
        hashes.push(hash);
    }
    hashes
}

/// What is recognized: hashes, each with the key that it was made with. None by default.
#[derive(Debug, Clone, Default)]
pub struct Echoes {
    /// Sorted.
    hashes: Vec<(Key, Vec<Hash>)>,
    /// For each length in bytes, whether there is a token of that length.
    lengths: Vec<bool>,
    /// The least of these lengths.
    shortest: usize,
}

impl Echoes {
    /// Returns whether there is nothing to recognize.
    pub fn is_empty(&self) -> bool {
        self.hashes.is_empty()
    }

    /// Replaces each token of a text that is known by [`MASK`].
    pub fn mask<'a>(&self, text: &'a str) -> Cow<'a, str> {
        self.mask_counted(text).0
    }

    /// Does what [`Echoes::mask`] does, and tells how many tokens were replaced.
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

    /// Replaces the tokens that a text shows as it stands; none where there is none.
    fn mask_once(&self, text: &str) -> Option<(String, usize)> {
        if self.is_empty() {
            return None;
        }
        let mut masked = String::new();
        let mut count = 0;
        let mut kept = 0;
        for run in text.split_whitespace() {
            if run.len() < self.shortest {
                continue;
            }
            let base = offset(text, run);
            let mut end = 0;
            // Wider forms come first, so what is found inside a found one is skipped.
            let mut found: Vec<Form> = forms(run).filter(|form| self.knows(form.text)).collect();
            found.sort_by_key(|form| (form.start, usize::MAX - form.text.len()));
            for form in found {
                if form.start >= end {
                    end = form.start + form.text.len();
                    masked.push_str(&text[kept..base + form.start]);
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

impl Extend<(Key, Hash)> for Echoes {
    fn extend<T: IntoIterator<Item = (Key, Hash)>>(&mut self, hashes: T) {
        for (key, hash) in hashes {
            let length = usize::from(hash.length);
            if self.is_empty() || length < self.shortest {
                self.shortest = length;
            }
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

impl FromIterator<(Key, Hash)> for Echoes {
    fn from_iter<T: IntoIterator<Item = (Key, Hash)>>(hashes: T) -> Self {
        let mut echoes = Echoes::default();
        echoes.extend(hashes);
        echoes
    }
}

/// What a token may be given as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Form<'a> {
    text: &'a str,
    /// Where it begins in its run.
    start: usize,
    /// Whether it was cut out at signs that addresses and paths are full of.
    is_fine: bool,
}

impl Form<'_> {
    /// Tells whether a token is unlikely to be written by chance.
    ///
    /// Of the pieces of addresses and paths only those with a digit are: a host's name is no
    /// secret because it stood in a private address.
    fn is_telling(&self) -> bool {
        let characters = self.text.chars().take(SHORTEST_WORD).count();
        let has_digit = self.text.contains(|c: char| c.is_numeric());
        let inner = self.text.trim_matches(is_punctuation);
        let has_sign = inner.contains(|c: char| !c.is_alphanumeric());
        (characters >= SHORTEST_WORD || (characters >= SHORTEST && (has_digit || has_sign)))
            && (has_digit || !self.is_fine)
            && self.text.len() <= LONGEST
            && !self.text.contains(MASK_START)
    }
}

/// Returns the forms of a run of characters without white space: whole, in parts, in fine parts.
fn forms(run: &str) -> impl Iterator<Item = Form<'_>> {
    let whole = std::iter::once((run, false));
    let parts = run.split(is_separator).map(|part| (part, false));
    let fine = run
        .split(|c| is_separator(c) || is_fine_separator(c))
        .map(|part| (part, true));
    whole
        .chain(parts)
        .chain(fine)
        .flat_map(move |(part, is_fine)| {
            let bare = part.trim_matches(is_separator);
            // Behind a backslash stands the letter of an escape: `\nT7-blue-99`.
            let is_escape = run[..offset(run, bare)].ends_with('\\');
            let unescaped = match bare.strip_prefix(['n', 'r', 't']) {
                Some(unescaped) if is_escape => unescaped,
                _ => bare,
            };
            [bare, bare.trim_matches(is_punctuation), unescaped].map(|text| Form {
                text,
                start: offset(run, text),
                is_fine,
            })
        })
}

/// Returns where a part of a text begins.
fn offset(text: &str, part: &str) -> usize {
    part.as_ptr().addr() - text.as_ptr().addr()
}

fn is_separator(character: char) -> bool {
    matches!(
        character,
        '"' | '\''
            | '`'
            | '('
            | ')'
            | '['
            | ']'
            | '{'
            | '}'
            | '<'
            | '>'
            | ','
            | ';'
            | ':'
            | '='
            | '|'
            | '\\'
            | '“'
            | '”'
            | '‘'
            | '’'
            | '„'
            | '«'
            | '»'
            | '→'
            | '…'
            | '、'
            | '。'
            | '「'
            | '」'
    )
}

fn is_fine_separator(character: char) -> bool {
    matches!(character, '/' | '@' | '&' | '?' | '#' | '%' | '+' | '~')
}

/// Tells what may stand at the end of a sentence or in markup around a word.
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

    fn echoes(private: &[&str]) -> Echoes {
        let private: Vec<String> = private.iter().map(ToString::to_string).collect();
        let hashes = hashes(&KEY, &private).into_iter();
        hashes.map(|hash| (KEY, hash)).collect()
    }

    fn check(private: &str, text: &str, expected: &str) {
        assert_eq!(
            echoes(&[private]).mask(text),
            expected,
            "{private:?} {text:?}"
        );
    }

    #[test]
    fn a_token_is_recognized_in_any_surroundings() {
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

    /// PR-9.
    #[test]
    fn only_telling_tokens_are_kept() {
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
            assert_eq!(!echoes(&[private]).is_empty(), kept, "{private:?}");
        }
        // Of an address only the whole and what has a digit.
        check(
            "see https://github.com/ana/shop-v2-x",
            "github.com/ana/shop-v2-x github.com shop-v2-x",
            "[private] github.com [private]",
        );
        let many: Vec<String> = (0..5_000).map(|n| format!("token-{n}")).collect();
        assert_eq!(hashes(&KEY, &many).len(), MAX_HASHES);
        assert!(hashes(&KEY, &["x1".repeat(LONGEST)]).is_empty());
    }

    #[test]
    fn keys_do_not_mix_and_do_not_show() {
        let other = Key::new([8; 16]);
        let hashes: Vec<Hash> = hashes(&KEY, &["T7-blue-99".to_owned()]);
        let wrong: Echoes = hashes.iter().map(|hash| (other, *hash)).collect();
        assert_eq!(wrong.mask("T7-blue-99"), "T7-blue-99");
        let both: Echoes = hashes
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
    fn nothing_known_costs_nothing() {
        assert!(Echoes::default().is_empty());
        assert!(matches!(
            Echoes::default().mask("T7-blue-99"),
            Cow::Borrowed(_)
        ));
        assert!(matches!(
            echoes(&["T7-blue-99"]).mask("T7-blue-9"),
            Cow::Borrowed(_)
        ));
    }

    #[test]
    fn the_work_is_linear() {
        let echoes = echoes(&["T7-blue-99 12345678 k-1-2-3-4-5"]);
        for unit in [
            "T7-blue-99 ",
            "T7-blue-99",
            "T7-blue-99,",
            "1/",
            ",,,,",
            "12345678 ",
        ] {
            let small = unit.repeat((1 << 12) / unit.len());
            let large = small.repeat(16);
            assert_linear(
                unit,
                || echoes.mask(&small).len(),
                || echoes.mask(&large).len(),
            );
        }
    }

    /// Text made of a private token, what it may stand in, and masks.
    fn echoing() -> impl Strategy<Value = String> {
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
            "x1",
            "\\n",
        ]);
        prop::collection::vec(parts, 0..12).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn masking_twice_is_masking_once(private in echoing(), text in echoing()) {
            let echoes = echoes(&[&private, "T7-blue-99"]);
            let once = echoes.mask(&text).into_owned();
            prop_assert_eq!(echoes.mask(&once), once.as_str());
        }

        #[test]
        fn a_token_between_separators_never_stays(before in "[a-z \",=:]{0,9}", after in "[ \",;)]{1}[a-z]{0,9}") {
            let text = format!("{before}\"T7-blue-99{after}");
            let echoes = echoes(&["x T7-blue-99 y"]);
            prop_assert!(!echoes.mask(&text).contains("T7-blue-99"));
        }
    }
}
