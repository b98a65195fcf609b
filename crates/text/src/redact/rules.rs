//! The table of rules. The sources of the formats are in `docs/reference/redaction.md`.

/// A mark followed by at least `$least` bytes of an alphabet.
macro_rules! run {
    ($mark:expr, $alphabet:expr, $least:expr) => {
        Token::new($mark, &[Part::Run($alphabet, $least)])
    };
}

/// The same, where the rest must have a digit, a lower-case and an upper-case letter.
macro_rules! mixed {
    ($mark:expr, $alphabet:expr, $least:expr) => {
        run!($mark, $alphabet, $least).demand(Demand::Mixed)
    };
}

/// The same, where the rest must have a digit.
macro_rules! digit {
    ($mark:expr, $alphabet:expr, $least:expr) => {
        run!($mark, $alphabet, $least).demand(Demand::Digit)
    };
}

mod cloud;
mod context;
mod keys;
mod services;
mod source_hosting;

use super::rule::Rule;
use super::tokens::{Alphabet, Part};

/// The rules by family. Within a slot of the index, rules are tried in this order.
static FAMILIES: [&[Rule]; 5] = [
    keys::RULES,
    cloud::RULES,
    source_hosting::RULES,
    services::RULES,
    context::RULES,
];

/// Returns all rules, in the order in which they are tried.
pub(super) fn rules() -> impl Iterator<Item = &'static Rule> {
    FAMILIES.into_iter().flatten()
}

const ALNUM: Alphabet = Alphabet::ALNUM;
const WORD: Alphabet = Alphabet::WORD;
const URL64: Alphabet = Alphabet::URL64;
const DOTTED: Alphabet = Alphabet::DOTTED;
const BASE64: Alphabet = Alphabet::BASE64;
const HEX: Alphabet = Alphabet::HEX;
const UPPER_DIGIT: Alphabet = Alphabet::UPPER.union(Alphabet::DIGIT);
const LOWER_DIGIT: Alphabet = Alphabet::LOWER.union(Alphabet::DIGIT);
/// Standard and URL-safe base64, which some providers mix.
const ANY64: Alphabet = Alphabet::BASE64.union(Alphabet::URL64);

/// The parts of a UUID.
const UUID: &[Part] = &[
    Part::Take(HEX, 8),
    Part::Text("-"),
    Part::Take(HEX, 4),
    Part::Text("-"),
    Part::Take(HEX, 4),
    Part::Text("-"),
    Part::Take(HEX, 4),
    Part::Text("-"),
    Part::Take(HEX, 12),
];

/// The parts of a Discord bot token after its first bytes, which encode a decimal number.
const DISCORD: &[Part] = &[
    Part::Run(ALNUM, 20),
    Part::Text("."),
    Part::Take(URL64, 6),
    Part::Text("."),
    Part::Run(URL64, 27),
];
