//! Tokens with a distinctive prefix: a literal, then runs of an alphabet.

use super::scan::{Scan, byte, starts};
use super::values;

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

    /// Adds bytes.
    pub(super) const fn with(self, bytes: &[u8]) -> Self {
        self.union(Self::new(bytes))
    }

    /// Returns the end of the run of this alphabet that begins at a position.
    pub(super) fn run(self, text: &[u8], at: usize) -> usize {
        self.run_within(text, at, usize::MAX)
    }

    /// Returns the end of the run of this alphabet that begins at a position, after at most `most`
    /// bytes.
    pub(super) fn run_within(self, text: &[u8], at: usize, most: usize) -> usize {
        let rest = text.get(at..).unwrap_or_default().iter().take(most);
        at + rest.take_while(|byte| self.has(**byte)).count()
    }

    /// Returns the end of the stretch without any of these bytes that begins at a position, after at
    /// most `most` bytes.
    pub(super) fn until(self, text: &[u8], at: usize, most: usize) -> usize {
        let rest = text.get(at..).unwrap_or_default().iter().take(most);
        at + rest.take_while(|byte| !self.has(**byte)).count()
    }

    /// Returns the start of the run of this alphabet that ends at a position, at most `most` bytes
    /// back.
    pub(super) fn run_back(self, text: &[u8], at: usize, most: usize) -> usize {
        let before = text.get(at.saturating_sub(most)..at).unwrap_or_default();
        let run = before.iter().rev().take_while(|byte| self.has(**byte));
        at - run.count()
    }
}

pub(super) const BLANK: Alphabet = Alphabet::new(b" \t");

/// A row of the table of rules.
pub(super) struct Rule {
    /// Its name in findings and in the documentation. Several rows may have the same.
    pub(super) name: &'static str,
    /// The literals without which it cannot match, separated by `|`: at least two ASCII bytes each.
    pub(super) marks: &'static str,
    pub(super) finder: Finder,
    /// An alphabet before the mark of a token, with the least and the largest number of its bytes.
    before: Option<(Alphabet, usize, usize)>,
    demand: Demand,
    /// Whether a word must end with the token.
    is_whole: bool,
}

/// How a rule finds its credentials.
pub(super) enum Finder {
    /// A published token format: the parts after the mark, and the last one.
    Token(&'static [Part], Part),
    /// A function that is called at each mark.
    Scanner(Scanner),
    /// The same, for marks in upper and lower case.
    AnyCase(Scanner),
}

pub(super) type Scanner = fn(&mut Scan<'_>, usize);

/// The characters that distinguish a token from a word of its length.
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

type Str = &'static str;

/// A mark and at least `least` bytes of an alphabet.
pub(super) const fn run(name: Str, marks: Str, alphabet: Alphabet, least: usize) -> Rule {
    parts(name, marks, &[], Part::Run(alphabet, least))
}

/// The same, with at least one digit.
pub(super) const fn digit(name: Str, marks: Str, alphabet: Alphabet, least: usize) -> Rule {
    run(name, marks, alphabet, least).demand(Demand::Digit)
}

/// The same, with a digit, a lower-case and an upper-case letter.
pub(super) const fn mixed(name: Str, marks: Str, alphabet: Alphabet, least: usize) -> Rule {
    run(name, marks, alphabet, least).demand(Demand::Mixed)
}

/// A mark and several parts.
pub(super) const fn parts(name: Str, marks: Str, parts: &'static [Part], last: Part) -> Rule {
    rule(name, marks, Finder::Token(parts, last))
}

/// A format that a function recognizes.
pub(super) const fn scanner(name: Str, marks: Str, find: Scanner) -> Rule {
    rule(name, marks, Finder::Scanner(find))
}

/// The same, for marks in upper and lower case.
pub(super) const fn scanner_any_case(name: Str, marks: Str, find: Scanner) -> Rule {
    rule(name, marks, Finder::AnyCase(find))
}

const fn rule(name: Str, marks: Str, finder: Finder) -> Rule {
    Rule {
        name,
        marks,
        finder,
        before: None,
        demand: Demand::Nothing,
        is_whole: false,
    }
}

impl Rule {
    pub(super) const fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    /// Requires bytes of an alphabet before the mark.
    pub(super) const fn after(mut self, alphabet: Alphabet, least: usize, most: usize) -> Self {
        self.before = Some((alphabet, least, most));
        self
    }

    /// Requires a word boundary at the end of the token.
    pub(super) const fn whole(mut self) -> Self {
        self.is_whole = true;
        self
    }
}

/// The most bytes of a run that are checked; the masked part may be longer.
const JUDGED: usize = 256;

/// Masks the token whose mark is at a position.
pub(super) fn find(scan: &mut Scan, at: usize, rule: &Rule, parts: &[Part], tail: Part) {
    let text = scan.text;
    let (alphabet, least, most) = rule.before.unwrap_or((Alphabet(0), 0, 0));
    let start = alphabet.run_back(text, at, most);
    if start + least > at {
        return;
    }
    // Any short mark may occur inside base64, so a token there must be distinctive by itself. The first
    // sign of a line is that of a diff.
    let [line, before] = [2, 1].map(|back| byte(text, start.wrapping_sub(back)));
    let blob = rule.demand == Demand::Mixed
        && Alphabet::new(b"+/-_").has(before)
        && !matches!(line, 0 | b'\n');
    if blob || !begins_word(text, start) {
        return;
    }
    let body = at + scan.mark.len();
    let mut end = body;
    for part in parts.iter().chain([&tail]) {
        let (next, is_there) = match part {
            Part::Run(alphabet, least) => {
                let next = alphabet.run_within(text, end, JUDGED);
                (next, next >= end + least)
            }
            Part::Take(alphabet, count) => {
                let next = alphabet.run_within(text, end, *count);
                (next, next == end + count)
            }
            Part::Text(literal) => (end + literal.len(), starts(text, end, literal.as_bytes())),
        };
        if !is_there {
            return;
        }
        end = next;
    }
    // Without bytes before the mark, the mark itself does not count.
    let judged = scan.slice(if start == at { body } else { start }, end);
    // A repeated character such as `ghp_xxxxxxxxxxxxxxxxxxxx` is a placeholder.
    let filler = judged.len() > 1 && judged.iter().all(|byte| judged.first() == Some(byte));
    // A short mark may be a word of code, such as `s.`.
    if filler || !meets(rule.demand, judged, scan.mark.len() > 3) {
        return;
    }
    if let Part::Run(alphabet, _) = tail {
        end = alphabet.run(text, end);
    }
    // A trailing dot or hyphen belongs to the sentence.
    end = Alphabet::new(b".-").run_back(text, end, end - body);
    if !(rule.is_whole && Alphabet::WORD.has(byte(text, end))) {
        scan.found(start, end);
    }
}

/// Returns whether the bytes of a token meet its demand, given whether its mark is distinctive.
fn meets(demand: Demand, token: &[u8], is_marked: bool) -> bool {
    let has = |test: fn(&u8) -> bool| token.iter().any(test);
    let cased = has(u8::is_ascii_lowercase) && has(u8::is_ascii_uppercase);
    // A short token may have no digit by chance.
    let random = || has(u8::is_ascii_digit) || is_marked && values::is_gibberish(token);
    match demand {
        Demand::Nothing => true,
        Demand::Digit => random(),
        Demand::Mixed => cased && random(),
    }
}

/// Returns whether a word can begin at a position: after anything but a letter or digit, or after an
/// escape of a URL.
pub(super) fn begins_word(text: &[u8], at: usize) -> bool {
    let before = |count: usize| at.checked_sub(count).map_or(0, |at| byte(text, at));
    !before(1).is_ascii_alphanumeric()
        || before(3) == b'%' && (1..=2).all(|back| before(back).is_ascii_hexdigit())
}
