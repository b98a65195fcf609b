//! Values in a sentence: numbers with units, code and quoted terms, paths, proper names.
//!
//! Issue and pull-request numbers, dates, hashes and names of tests are no values. A capital letter
//! makes a name only inside a sentence, and only if the language does not write nouns with one.

use std::collections::BTreeSet;

use crate::{
    statement::number_at,
    terms::{terms, words},
    word_list::is_in,
};

/// The maximum number of tokens of a sentence that are read.
const MAX_TOKENS: usize = 80;

/// The maximum length of a quoted value in bytes. A longer quotation is a statement.
const MAX_QUOTED: usize = 40;

/// Words before a number that only refers to something.
const REFERENCES: &str = "pr|mr|issue|issues|pull|request|ticket|commit|step|phase|section|line|\
                          lines|option|item|point|chapter|page|figure|table|round|day|number|no";

/// Acronyms that are common nouns.
const COMMON: &str = "api|ui|ux|ci|cd|pr|mr|db|id|ids|url|urls|cli|os|ok|todo|eof|ide|sdk|llm|ai|\
                      readme|faq|it|we|not|no|and|or|now|use|must|never|always|all|only";

/// Names of months that are written beside a day.
const MONTHS: &str = "january|february|march|april|may|june|july|august|september|october|november|\
    december|jan|feb|mar|apr|jun|jul|aug|sep|sept|oct|nov|dec|januar|februar|märz|mai|juni|juli|\
    oktober|dezember|janvier|février|mars|avril|juin|juillet|août|septembre|octobre|novembre|décembre|\
    enero|febrero|marzo|abril|mayo|junio|julio|agosto|septiembre|octubre|noviembre|diciembre";

/// Words of languages that write nouns with a capital letter.
const CAPITALISING: &str = "der|die|das|und|nicht|ein|eine|wir|ist|mit|auf|fur|den|dem|kein|statt";

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// A word without a sign of being a name.
    Word,
    /// A word with a capital letter that proves nothing, as at the start of a sentence.
    Capitalised,
    /// A number with its unit.
    Number,
    /// A proper name.
    Name,
    /// A code term, a path, or a quoted term.
    Code,
    /// A number or name that is no value: of an issue, a date, a hash, a test.
    Reference,
}

/// A token of a sentence.
#[derive(Debug, Clone)]
pub struct Token<'a> {
    /// As written, without quotation marks.
    pub written: &'a str,
    /// Its range in the sentence, with quotation marks.
    pub at: std::ops::Range<usize>,
    /// The same for all spellings: terms, or the number with its canonical unit.
    pub key: String,
    /// Its kind.
    pub kind: TokenKind,
}

impl Token<'_> {
    /// Returns whether it is one of the words of a list, separated by `|`.
    pub(crate) fn is(&self, list: &str) -> bool {
        is_in(list, &self.written.to_lowercase())
    }

    pub(crate) fn is_number(&self) -> bool {
        self.kind == TokenKind::Number
    }

    /// Returns whether it is a value.
    pub fn is_value(&self) -> bool {
        matches!(
            self.kind,
            TokenKind::Number | TokenKind::Name | TokenKind::Code
        )
    }
}

/// Returns whether one sentence has a value that the other lacks.
pub fn has_other_values(one: &str, other: &str) -> bool {
    let lacks = |one: &str, other: &str| {
        let known = tokens(other);
        let known: BTreeSet<&str> = known.iter().map(|token| token.key.as_str()).collect();
        let said: BTreeSet<String> = terms(other).into_iter().collect();
        tokens(one).iter().filter(|it| it.is_value()).any(|value| {
            !known.contains(value.key.as_str())
                && (value.is_number() || !value.key.split('_').all(|part| said.contains(part)))
        })
    };
    lacks(one, other) || lacks(other, one)
}

/// Splits a sentence into tokens.
pub fn tokens(sentence: &str) -> Vec<Token<'_>> {
    let mut tokens: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some(character) = sentence.get(at..).and_then(|rest| rest.chars().next())
        && tokens.len() < MAX_TOKENS
    {
        let end = quoted(sentence, at)
            .or_else(|| number(sentence, at))
            .or_else(|| chunk(sentence, at));
        let Some(token) = end else {
            at += character.len_utf8();
            continue;
        };
        at = token.at.end;
        tokens.push(token);
    }
    classify(sentence, &mut tokens);
    tokens
}

/// Reads a term in backticks or quotation marks.
fn quoted(sentence: &str, at: usize) -> Option<Token<'_>> {
    let mark = sentence.get(at..)?.chars().next()?;
    let end = match mark {
        '`' | '"' => mark,
        '“' => '”',
        '«' => '»',
        '「' => '」',
        _ => return None,
    };
    let start = at + mark.len_utf8();
    let inside = sentence.get(start..)?.split_once(end)?.0;
    let is_short = mark == '`' || inside.len() <= MAX_QUOTED;
    let is_number = number_at(inside).filter(|(_, length)| *length == inside.len());
    let key = is_number.map_or_else(|| joined(inside), |(number, _)| format!("#{number}"));
    (is_short && !key.is_empty()).then(|| Token {
        written: inside,
        at: at..start + inside.len() + end.len_utf8(),
        kind: if key.starts_with('#') {
            TokenKind::Number
        } else {
            TokenKind::Code
        },
        key,
    })
}

fn number(sentence: &str, at: usize) -> Option<Token<'_>> {
    let before = sentence.get(..at)?.chars().next_back();
    if before.is_some_and(|c| c.is_ascii_alphanumeric() || "/_.".contains(c)) {
        return None;
    }
    let (number, length) = number_at(sentence.get(at..)?)?;
    let after = sentence.get(at + length..)?.chars().next();
    let is_date = after == Some('-')
        && sentence
            .get(at + length + 1..)?
            .starts_with(|c: char| c.is_ascii_digit());
    if is_date || after.is_some_and(|c| c.is_ascii_alphanumeric() || "/_".contains(c)) {
        return None;
    }
    Some(Token {
        written: sentence.get(at..at + length)?,
        at: at..at + length,
        key: format!("#{number}"),
        kind: TokenKind::Number,
    })
}

/// Reads a word, a path or an identifier. A character of a script without spaces is a token.
fn chunk(sentence: &str, at: usize) -> Option<Token<'_>> {
    let rest = sentence.get(at..)?;
    let first = rest.chars().next()?;
    if first >= '\u{2e80}' && first.is_alphanumeric() {
        return Some(Token {
            written: rest.get(..first.len_utf8())?,
            at: at..at + first.len_utf8(),
            key: first.to_string(),
            kind: TokenKind::Word,
        });
    }
    let is_inside = |c: char| c.is_alphanumeric() && c < '\u{2e80}' || "/._-@:~+=$\\'’".contains(c);
    let end = rest.find(|c| !is_inside(c)).unwrap_or(rest.len());
    let written = rest
        .get(..end)?
        .trim_end_matches(['.', ':', '-', '\'', '’', '=', '~']);
    let has_letter = written.contains(char::is_alphanumeric);
    let is_start = first.is_alphanumeric() || "/.~-@$\\".contains(first);
    let before = sentence.get(..at)?.chars().next_back();
    let is_inside = before.is_some_and(char::is_alphanumeric) && !first.is_alphanumeric();
    if !has_letter || !is_start || is_inside {
        return None;
    }
    let is_code = is_code(written);
    // "either/or" is two words, "api:8080" is a word and a number.
    let written = match written.find(['/', ':', '=', '+', '\\']) {
        Some(end) if !is_code && end > 0 => written.get(..end)?,
        _ => written,
    };
    let word = match written.split_once(['\'', '’']) {
        Some((word, "s")) => word,
        _ => written,
    };
    let key = joined(word);
    (!key.is_empty()).then(|| Token {
        written: word,
        at: at..at + written.len(),
        key,
        kind: if is_code {
            TokenKind::Code
        } else {
            TokenKind::Word
        },
    })
}

/// Returns whether a run of characters is a path, an address, an option or an identifier.
fn is_code(run: &str) -> bool {
    let has = |is: fn(char) -> bool| run.contains(is);
    let inside = run.trim_matches(['.', '-', ':']);
    let slashes = run.matches('/').count();
    let is_path = slashes > 1
        || slashes == 1
            && (run.starts_with(['/', '.', '~']) || run.ends_with('/') || run.contains(['.', '_']));
    let mut parts = inside.split('.');
    let is_dotted = inside.contains('.') && parts.all(|part| part.len() > 1 || part.is_empty());
    let is_zone = inside.contains('-') && has(|c| c.is_ascii_digit()) && has(char::is_alphabetic);
    let is_option = run.starts_with("--") && run.len() > 3;
    is_path
        || is_option
        || is_zone
        || is_dotted && !inside.contains(['\'', '’'])
        || inside.contains('_')
        || inside.contains("::")
        || inside.contains("://")
        || run.starts_with('@') && run.len() > 2
}

/// Returns the terms of a text, joined. Identifiers count as their parts.
fn joined(text: &str) -> String {
    let mut key = String::new();
    words(text, |word| {
        use crate::terms::Role;
        if !matches!(word.role, Role::Whole | Role::LongForm) {
            if !key.is_empty() {
                key.push('_');
            }
            key.push_str(word.term);
        }
    });
    key
}

/// Tells names from words, and values from references, by their neighbours.
fn classify<'a>(sentence: &'a str, tokens: &mut Vec<Token<'a>>) {
    let is_capital = |token: &Token<'_>| token.written.starts_with(char::is_uppercase);
    let plain = |token: &&Token<'_>| token.kind == TokenKind::Word && token.written.len() > 3;
    let capitals = tokens
        .iter()
        .filter(plain)
        .filter(|it| is_capital(it))
        .count();
    let all = tokens.iter().filter(plain).count();
    let is_title_case = all > 3 && 3 * capitals >= 2 * all;
    let is_capitalising = tokens.iter().any(|token| token.is(CAPITALISING));
    let proves_nothing = is_title_case || is_capitalising;
    for place in 0..tokens.len() {
        let before = place.checked_sub(1).and_then(|before| tokens.get(before));
        let start = before.map_or(0, |before| before.at.end);
        let Some(token) = tokens.get(place) else {
            return;
        };
        let gap = sentence.get(start..token.at.start).unwrap_or_default();
        let follows_reference = before.is_some_and(|before| before.is(REFERENCES));
        let is_first = before.is_none() || gap.contains([':', '.', '?', '!', '*', '\n', '"']);
        let kind = match token.kind {
            TokenKind::Number if follows_reference || gap.ends_with('#') => TokenKind::Reference,
            TokenKind::Number | TokenKind::Code if is_reference(token.written) => {
                TokenKind::Reference
            }
            TokenKind::Word => word_kind(token.written, is_first, proves_nothing),
            kind => kind,
        };
        if let Some(token) = tokens.get_mut(place) {
            token.kind = kind;
        }
    }
    join(sentence, tokens, TokenKind::Number, date_key);
    join(sentence, tokens, TokenKind::Name, name_key);
}

/// Joins neighbouring tokens for which `key_of` returns the key of both together.
fn join<'a>(
    sentence: &'a str,
    tokens: &mut Vec<Token<'a>>,
    kind: TokenKind,
    key_of: fn(&Token<'_>, &Token<'_>, &str) -> Option<String>,
) {
    let mut place = 1;
    while place < tokens.len() {
        let [one, other] = [&tokens[place - 1], &tokens[place]];
        let gap = sentence.get(one.at.end..other.at.start);
        let Some(key) = key_of(one, other, gap.unwrap_or_default()) else {
            place += 1;
            continue;
        };
        let at = one.at.start..other.at.end;
        let joined = Token {
            written: sentence.get(at.clone()).unwrap_or_default(),
            key,
            kind,
            at,
        };
        tokens.splice(place - 1..=place, [joined]);
    }
}

/// Returns the key of a day and its month: "May 29", "29. Mai".
fn date_key(one: &Token<'_>, other: &Token<'_>, gap: &str) -> Option<String> {
    let is_month = |token: &Token<'_>| token.is(MONTHS);
    let is_day = |token: &Token<'_>| matches!(token.written.parse(), Ok(1..=31));
    let (day, month) = if is_day(other) && gap == " " && is_month(one) {
        (other, one)
    } else if is_day(one) && [" ", ". "].contains(&gap) && is_month(other) {
        (one, other)
    } else {
        return None;
    };
    Some(format!("#{}_{}", day.written, month.key))
}

/// Returns the key of two words of a name: "Google Cloud".
fn name_key(one: &Token<'_>, other: &Token<'_>, gap: &str) -> Option<String> {
    let is_part = |token: &Token<'_>| {
        matches!(token.kind, TokenKind::Name | TokenKind::Capitalised)
            && token.written.starts_with(char::is_uppercase)
    };
    let is_name = gap == " "
        && other.kind == TokenKind::Name
        && is_part(one)
        && is_part(other)
        && !is_in(super::correction::LIGHT, &one.key);
    is_name.then(|| format!("{}_{}", one.key, other.key))
}

fn word_kind(written: &str, is_first: bool, proves_nothing: bool) -> TokenKind {
    let mut characters = written.chars();
    let first = characters.next().unwrap_or_default();
    let has = |is: fn(char) -> bool| written.contains(is);
    let has_capital_inside = characters.any(char::is_uppercase);
    let has_vowel = written.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let is_ascii_word = written.bytes().all(|byte| byte.is_ascii_lowercase());
    if is_in(COMMON, &written.to_lowercase()) || written.len() < 2 {
        TokenKind::Word
    } else if is_reference(written) {
        TokenKind::Reference
    } else if has_capital_inside
        || has(|c| c.is_ascii_digit()) && has(char::is_alphabetic)
        || is_ascii_word && !has_vowel && written.len() > 2
    {
        TokenKind::Name
    } else if first.is_uppercase() {
        if is_first || proves_nothing {
            TokenKind::Capitalised
        } else {
            TokenKind::Name
        }
    } else {
        TokenKind::Word
    }
}

/// Returns whether it is a date, a hash or the name of a test.
fn is_reference(written: &str) -> bool {
    let has_digit = written.contains(|c: char| c.is_ascii_digit());
    let is_hash = written.len() >= 7
        && has_digit
        && written.contains(|c: char| c.is_ascii_lowercase())
        && written.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_date = written.len() == 10
        && written
            .bytes()
            .enumerate()
            .all(|(place, byte)| match place {
                4 | 7 => byte == b'-',
                _ => byte.is_ascii_digit(),
            });
    let lower = written.to_lowercase();
    let is_test = lower.starts_with("test_")
        || lower.contains("::tests")
        || written.starts_with("Test") && written.len() > 6
        || ["_test", "_tests", ".spec", ".test", "_spec"]
            .iter()
            .any(|mark| lower.contains(mark));
    is_hash || is_date || is_test
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_numbers_code_paths_and_names() {
        for (sentence, values) in [
            ("The api listens on port 8080.", &["8080"][..]),
            ("Wait 30 s, not 5-second pauses", &["30 s", "5-second"]),
            (
                "Run `make lint` in src/app.rs",
                &["make lint", "src/app.rs"],
            ),
            ("We keep the state in Redux", &["Redux"]),
            ("Deploys run on Google Cloud", &["Google Cloud"]),
            ("Redux keeps the state", &[]),
            ("Use npm and the API", &["npm"]),
            ("Pass --fast to loadUser", &["--fast", "loadUser"]),
            ("See #12, issue 14 and PR 3 of 2026-01-02", &[]),
            ("The commit 1a2b3c4 broke test_login", &[]),
            ("Der Dienst nutzt den Port 8080", &["8080"]),
            ("Either/or, e.g. this", &[]),
            ("网关监听 8080 端口", &["8080"]),
            ("It is called \"inbox\" now", &["inbox"]),
        ] {
            let tokens = tokens(sentence);
            let found = tokens.iter().filter(|token| token.is_value());
            let found: Vec<&str> = found.map(|token| token.written).collect();
            assert_eq!(found, values, "{sentence}");
        }
    }

    #[test]
    fn sentences_with_other_values_differ() {
        for (one, other, differs) in [
            ("The api listens on 8080", "The api listens on 8081", true),
            ("Wait 30 s", "Wait 30 seconds", false),
            ("Deploy to Frankfurt", "Always deploy to Dublin", true),
            ("Run `make lint` first", "First run make lint", false),
            ("Use pnpm", "Use pnpm on port 8080", true),
        ] {
            assert_eq!(has_other_values(one, other), differs, "{one} / {other}");
        }
    }
}
