//! Tokens with a distinctive prefix: a literal, then runs of an alphabet.

use super::scan::{Scan, byte};

/// A set of ASCII bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Alphabet(u128);

impl Alphabet {
    pub(super) const DIGIT: Self = Self::new(b"0123456789");
    pub(super) const UPPER: Self = Self::new(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ");
    pub(super) const LOWER: Self = Self::new(b"abcdefghijklmnopqrstuvwxyz");
    pub(super) const HEX: Self = Self::new(b"0123456789abcdefABCDEF");
    pub(super) const ALNUM: Self = Self::DIGIT.union(Self::UPPER).union(Self::LOWER);
    pub(super) const WORD: Self = Self::ALNUM.union(Self::new(b"_"));
    pub(super) const URL64: Self = Self::ALNUM.union(Self::new(b"_-"));
    pub(super) const DOTTED: Self = Self::URL64.union(Self::new(b"."));
    pub(super) const BASE64: Self = Self::ALNUM.union(Self::new(b"+/="));

    pub(super) const fn new(bytes: &[u8]) -> Self {
        let mut set = 0;
        let mut at = 0;
        while at < bytes.len() {
            set |= 1 << bytes[at];
            at += 1;
        }
        Self(set)
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn has(self, byte: u8) -> bool {
        byte < 128 && self.0 >> byte & 1 == 1
    }

    /// Returns the end of the run of this alphabet that begins at a position.
    pub(super) fn run(self, text: &[u8], at: usize) -> usize {
        let rest = text.get(at..).unwrap_or_default();
        at + rest.iter().take_while(|byte| self.has(**byte)).count()
    }

    /// Returns the start of the run of this alphabet that ends at a position, at most `most` bytes
    /// back.
    pub(super) fn run_back(self, text: &[u8], at: usize, most: usize) -> usize {
        let before = text.get(at.saturating_sub(most)..at).unwrap_or_default();
        at - before
            .iter()
            .rev()
            .take_while(|byte| self.has(**byte))
            .count()
    }
}

/// What distinguishes a token from a word, beside its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Demand {
    Nothing,
    /// At least one digit.
    Digit,
    /// A digit, a lower-case and an upper-case letter.
    Mixed,
}

/// A part of a token.
#[derive(Debug, Clone, Copy)]
pub(super) enum Part {
    /// At least `.1` bytes of an alphabet.
    Run(Alphabet, usize),
    /// Exactly `.1` bytes of an alphabet, whatever follows.
    Take(Alphabet, usize),
    /// A literal.
    Text(&'static str),
}

/// A published token format.
#[derive(Debug, Clone, Copy)]
pub(super) struct Token {
    /// The literal that identifies it.
    pub(super) mark: &'static str,
    /// An alphabet before the mark, with the least and the largest number of its bytes.
    pub(super) before: Option<(Alphabet, usize, usize)>,
    pub(super) parts: &'static [Part],
    pub(super) demand: Demand,
    /// The alphabet that may not follow the token.
    pub(super) ends: Alphabet,
}

impl Token {
    pub(super) const fn new(mark: &'static str, parts: &'static [Part]) -> Self {
        Self {
            mark,
            before: None,
            parts,
            demand: Demand::Nothing,
            ends: Alphabet(0),
        }
    }

    pub(super) const fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    pub(super) const fn after(mut self, alphabet: Alphabet, least: usize, most: usize) -> Self {
        self.before = Some((alphabet, least, most));
        self
    }

    /// Requires a word boundary at the end of the token.
    pub(super) const fn whole(mut self) -> Self {
        self.ends = Alphabet::WORD;
        self
    }
}

/// The most bytes of a run that are checked; the masked part may be longer.
const JUDGED: usize = 256;

/// Masks the token whose mark is at a position.
pub(super) fn find(scan: &mut Scan, at: usize, token: &Token) {
    let text = scan.text;
    let start = match token.before {
        None => at,
        Some((alphabet, least, most)) => {
            let mut start = alphabet.run_back(text, at, most);
            // Exclude the digits of `\u0022`.
            if start >= 2 && text.get(start - 2..start) == Some(b"\\u") {
                start += 4;
            }
            if start + least > at {
                return;
            }
            start
        }
    };
    // Any short mark may occur inside base64, so a token there must be distinctive by itself.
    let blob = token.demand == Demand::Mixed && Alphabet::new(b"+/-_").has(preceding(text, start));
    if blob || !begins_word(text, start) {
        return;
    }
    let body = at + token.mark.len();
    let mut end = body;
    for part in token.parts {
        end = match part {
            Part::Run(alphabet, least) => {
                let limit = text.len().min(end + JUDGED);
                let next = alphabet.run(text.get(..limit).unwrap_or(text), end);
                if next < end + least {
                    return;
                }
                next
            }
            Part::Take(alphabet, count) => {
                let stretch = text.get(end..end + count).unwrap_or_default();
                if stretch.len() < *count || !stretch.iter().all(|byte| alphabet.has(*byte)) {
                    return;
                }
                end + count
            }
            Part::Text(literal) => {
                if !text
                    .get(end..)
                    .unwrap_or_default()
                    .starts_with(literal.as_bytes())
                {
                    return;
                }
                end + literal.len()
            }
        };
    }
    let judged = scan.slice(start, end);
    // A repeated character such as `ghp_xxxxxxxxxxxxxxxxxxxx` is a placeholder.
    let filler = scan
        .slice(body, end)
        .windows(2)
        .all(|pair| pair.first() == pair.get(1));
    if filler || !meets(token.demand, judged, token.mark) {
        return;
    }
    if let Some(Part::Run(alphabet, _)) = token.parts.last() {
        end = alphabet.run(text, end);
    }
    // A trailing dot or hyphen belongs to the sentence.
    while end > body && matches!(byte(text, end - 1), b'.' | b'-') {
        end -= 1;
    }
    if !token.ends.has(byte(text, end)) {
        scan.found(start, end);
    }
}

/// Returns the byte before a position, or 0 at the start.
fn preceding(text: &[u8], at: usize) -> u8 {
    at.checked_sub(1).map_or(0, |at| byte(text, at))
}

/// Returns whether a token, without its mark, meets its demand.
fn meets(demand: Demand, token: &[u8], mark: &str) -> bool {
    let body = token.strip_prefix(mark.as_bytes()).unwrap_or(token);
    let digit = body.iter().any(u8::is_ascii_digit);
    match demand {
        Demand::Nothing => true,
        Demand::Digit => digit,
        Demand::Mixed => {
            digit
                && body.iter().any(u8::is_ascii_lowercase)
                && body.iter().any(u8::is_ascii_uppercase)
        }
    }
}

/// Returns whether a word can begin at a position: after anything but a letter or digit, after an
/// escape (`\n`, `\u0022`, `%3D`), or after a terminal color.
pub(super) fn begins_word(text: &[u8], at: usize) -> bool {
    let before = |count: usize| at.checked_sub(count).map_or(0, |at| byte(text, at));
    if !before(1).is_ascii_alphanumeric() {
        return true;
    }
    let hex = |count| (1..=count).all(|back| before(back).is_ascii_hexdigit());
    (before(2) == b'\\' && matches!(before(1), b'n' | b'r' | b't' | b'b' | b'f'))
        || (before(3) == b'%' && hex(2))
        || (before(5) == b'u' && before(6) == b'\\' && hex(4))
        || (before(1) == b'm' && (before(2).is_ascii_digit() || before(2) == b'[') && {
            let color = Alphabet::new(b"0123456789;").run_back(text, at - 1, 12);
            color
                .checked_sub(1)
                .is_some_and(|at| byte(text, at) == b'[')
        })
}
