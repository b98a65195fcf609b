//! Values of sensitive names: `password = x` in every syntax.
//!
//! An anchor inside a name leads to the full name, and the text after the name tells the syntax of
//! its value. [`super::names`] classifies names, [`super::values`] judges values.

use super::names::{self, NameClass, is_one_of};
use super::reading::{
    NAME, Quote, Terminator, bare_end, bare_value, broken, is_last_on_line, typed, wrapped,
};
use super::scan::{Scan, byte, starts};
use super::sentences::{
    AFTER_FLAG, FOREIGN_SECRETS, LAST_WORDS, after_copula, after_purpose, particle,
};
use super::surroundings::{self, NamePosition};
use super::tokens::{Alphabet, BLANK};
use super::transports::is_user_and_password;
use super::values::{self, JUDGED, ValueSyntax};
use crate::word_list::is_in;

const WHITE: Alphabet = BLANK.with(b"\r\n");

/// Masks the value of the name around an anchor.
pub(super) fn assignment(scan: &mut Scan, at: usize) {
    if at < scan.named {
        return;
    }
    let text = scan.text;
    let start = NAME.run_back(text, at, names::LONGEST).max(scan.done);
    let end = NAME.run_within(text, at, names::LONGEST);
    scan.named = end;
    if end - start >= names::LONGEST {
        return;
    }
    let edge = Alphabet::new(b"-.");
    let start = edge.run(text, start).min(at);
    let end = edge.run_back(text, end, end - at);
    let name = scan.slice(start, end);
    let class = if name.eq_ignore_ascii_case(b"key") && byte(text, start.wrapping_sub(1)) == b' ' {
        let word = Alphabet::WORD.run_back(text, start - 1, 16);
        names::key_class(scan.slice(word, start - 1))
    } else {
        names::classify(name)
    };
    if let Some(class) = class {
        assigned_value(scan, start, end, class);
    }
}

/// Masks the signature in a query.
pub(super) fn signature(scan: &mut Scan, at: usize) {
    if matches!(byte(scan.text, at.wrapping_sub(1)), b'?' | b'&' | b';') {
        assigned_value(scan, at, at + "sig".len(), NameClass::Secret);
    }
}

/// Masks the literal after `IDENTIFIED BY` of SQL.
pub(super) fn sql_password(scan: &mut Scan, at: usize) {
    let value = BLANK.run(scan.text, at + "identified by".len());
    // In lower case and in other quotation marks, it may be a sentence.
    let class = match Quote::at(scan.text, value).map(|quote| quote.mark) {
        Some(b'\'') if byte(scan.text, at) == b'I' => NameClass::Password,
        _ => NameClass::Likely,
    };
    literal(scan, value, class, ValueSyntax::Quoted);
}

/// Masks the value of a name in another language.
pub(super) fn foreign(scan: &mut Scan, at: usize) {
    let is_secret = is_in(FOREIGN_SECRETS, scan.mark);
    let class = if is_secret {
        NameClass::Secret
    } else {
        NameClass::Password
    };
    let is_letter = |at: usize| byte(scan.text, at).is_ascii_alphabetic();
    let end = at + scan.mark.len();
    // Chinese, Japanese and Korean have no blank after an abbreviation: `API密钥`.
    let is_east_asian = byte(scan.text, at) >= 0xE3;
    if (is_east_asian || !is_letter(at.wrapping_sub(1))) && !is_letter(end) {
        assigned_value(scan, at, end, class);
    }
}

/// Masks the value assigned to the name in a range, if it is a secret.
fn assigned_value(scan: &mut Scan, start: usize, end: usize, class: NameClass) {
    let text = scan.text;
    value_before(scan, start, class);
    let before = byte(text, start.wrapping_sub(1));
    let quote = Quote::at(text, end);
    // Distinguish a name with its own quotation marks from one at the end of a literal.
    let quoted = quote.is_some() && matches!(before, b'"' | b'\'' | b'`' | b':');
    let at = after_index(text, end + quote.map_or(0, Quote::length));
    let blank = BLANK.run(text, at);
    let tight = blank == end;
    let next = blank + 1;
    match text.get(blank..).unwrap_or_default() {
        [b'=', b'~', ..] | [b':', b':', ..] => {}
        [b'=' | b'!', b'=', ..] => {
            let at = Alphabet::new(b"!= \t").run(text, blank);
            literal(scan, at, class, ValueSyntax::Loose);
        }
        [b'=', b'>', ..] | [b'|', b'|', ..] => {
            let at = Alphabet::new(b"|=> \t").run(text, blank);
            literal(scan, at, class, ValueSyntax::Quoted);
        }
        [b'=', ..] => value(scan, start, next, class, tight, b'='),
        [b':', b'=', ..] => value(scan, start, next + 1, class, tight, b'='),
        [b':', b'-', ..] if tight => value(scan, start, next + 1, class, true, b'='),
        [b'?', b'=', ..] => value(scan, start, next + 1, class, false, b'='),
        [b'?', b':', ..] => value(scan, start, next + 1, class, false, b':'),
        // `arn:aws:secretsmanager:…:secret:name`
        [b':', ..] if before == b':' && is_arn(text, start) => {}
        [b':', ..] => value(scan, start, next, class, false, b':'),
        [b'|', ..] if blank > at => {
            // A cell of a table.
            let at = Alphabet::new(b" \t`").run(text, next);
            bare(scan, at, class, ValueSyntax::Loose, Terminator::Blank);
        }
        [b',', ..] if quoted && is_set_by_call(text, start) => {
            let at = WHITE.run_within(text, next, 80);
            literal(scan, at, class, ValueSyntax::Quoted);
        }
        [b',', ..] if quoted => paired(scan, blank, class),
        [b',', ..] if before == b'-' => next_argument(scan, start, next, class),
        [b'\n' | b'\r', ..] if before == b'-' => next_item(scan, start, blank, class),
        // A property list of Apple: `<key>password</key>`.
        [b'<', b'/', b'k', b'e', b'y', b'>', ..] => {
            let value = WHITE.run_within(text, blank + 6, 80);
            if starts(text, value, b"<string>") {
                element(scan, value + 8, class, ValueSyntax::Config);
            }
        }
        [b'(', ..] if tight && class == NameClass::Encoded => {
            let called = scan.slice(start, end);
            let mut names = ["basicauth", "basic_auth"].into_iter();
            let (class, syntax) = if names.any(|name| names::ends_with(called, name)) {
                (NameClass::Password, ValueSyntax::Quoted)
            } else {
                (NameClass::Secret, ValueSyntax::Loose)
            };
            second(scan, next, class, syntax);
        }
        [b'(', ..] if tight && is_setter(scan.slice(start, end)) => {
            literal(scan, BLANK.run(text, next), class, ValueSyntax::Quoted);
        }
        [b'(', ..] if tight => arguments(scan, next, class),
        [b'>', ..] if matches!(before, b'<' | b':') => {
            // `<secret>` marks a text as often as it names a value.
            let is_mark = scan.slice(start, end) == b"secret";
            element(scan, next, class, ValueSyntax::Config.or_loose(is_mark));
        }
        [b'\n' | b'\\' | b'\r', ..] => paired(scan, blank, class),
        rest if particle(rest) > 0 => {
            let at = BLANK.with(b":").run(text, blank + particle(rest));
            any(scan, at, class, ValueSyntax::Loose, Terminator::Script);
        }
        _ if blank > at => after_blank(scan, start, end, blank, class),
        _ => {}
    }
}

/// Masks the text of an XML element.
fn element(scan: &mut Scan, at: usize, class: NameClass, syntax: ValueSyntax) {
    let end = Alphabet::new(b"<\n").until(scan.text, at, JUDGED);
    if byte(scan.text, end) == b'<' && values::is_secret(scan.slice(at, end), class, syntax) {
        scan.found(at, end);
    }
}

/// Masks the literal after a flag in a list of arguments: `["--password", "x"]`.
fn next_argument(scan: &mut Scan, start: usize, at: usize, class: NameClass) {
    let text = scan.text;
    let flag = Alphabet::new(b"-").run_back(text, start, 2);
    let open = Alphabet::new(b"\\\"'`").run_back(text, flag, 8);
    let before = WHITE.run_back(text, open, 80).wrapping_sub(1);
    let value = WHITE.run_within(text, at, 80);
    let Some(quote) = Quote::at(text, value) else {
        return;
    };
    let first = value + quote.length();
    // The next literal may be another flag, or the next key of an object.
    let closed = quote.close(text, first).map(|(_, after)| after);
    let is_key = closed.is_some_and(|after| byte(text, BLANK.run(text, after)) == b':');
    if open < flag
        && matches!(byte(text, before), b'[' | b',' | b':')
        && byte(text, first) != b'-'
        && !is_key
    {
        literal(scan, value, class, ValueSyntax::Quoted);
    }
}

/// Masks the item after a flag in a YAML list of arguments.
fn next_item(scan: &mut Scan, start: usize, at: usize, class: NameClass) {
    let text = scan.text;
    let flag = Alphabet::new(b"-").run_back(text, start, 2);
    let is_item = text.get(flag.saturating_sub(2)..flag) == Some(b"- ");
    if let Some(next) = broken(text, at).filter(|next| is_item && starts(text, *next, b"- ")) {
        let value = BLANK.run(text, next + 2);
        if byte(text, value) != b'-' && is_last_on_line(text, value) {
            any(scan, value, class, ValueSyntax::Line, Terminator::Blank);
        }
    }
}

/// Masks the value of a `value` key that is before the key with the name: `value: x, name: TOKEN`.
fn value_before(scan: &mut Scan, start: usize, class: NameClass) {
    let text = scan.text;
    let marks = Alphabet::new(b" \t\\\"'");
    let separator = marks.run_back(text, start, 16).wrapping_sub(1);
    if !matches!(byte(text, separator), b':' | b'=') {
        return;
    }
    let end = marks.run_back(text, separator, 8);
    let key = Alphabet::WORD.run_back(text, end, 5);
    if !is_one_of(scan.slice(key, end), &["name", "key"]) {
        return;
    }
    let from = scan.done.max(key.saturating_sub(JUDGED));
    let before = scan.slice(from, key);
    let Some(found) = before.windows(5).rposition(|word| word == b"value") else {
        return;
    };
    let at = marks.run(text, from + found + 5);
    if !matches!(byte(text, at), b':' | b'=') {
        return;
    }
    let at = BLANK.run(text, at + 1);
    let (value, value_end, syntax) = match Quote::at(text, at) {
        Some(quote) => match quote.close(text, at + quote.length()) {
            Some((end, _)) => (at + quote.length(), end, ValueSyntax::Quoted),
            None => return,
        },
        None => (at, bare_end(text, at, Terminator::Blank), ValueSyntax::Line),
    };
    let is_next = WHITE.with(b",\\\"'").run(text, value_end) == key;
    if is_next && values::is_secret(scan.slice(value, value_end), class, syntax) {
        scan.found(value, value_end);
    }
}

/// Returns the position after the brackets that may follow a name: `names[]`, `keys[0]`.
fn after_index(text: &[u8], at: usize) -> usize {
    let at = Alphabet::new(b"]*").run(text, at);
    let close = Alphabet::DIGIT.run(text, at + 1);
    let is_index = byte(text, at) == b'[' && byte(text, close) == b']';
    if is_index { close + 1 } else { at }
}

/// Returns whether a position is in the resource name of a cloud.
fn is_arn(text: &[u8], at: usize) -> bool {
    let start = NAME.with(b":/").run_back(text, at, names::LONGEST);
    starts(text, start, b"arn:")
}

/// Masks a value after a name and a blank: of a flag, a SQL literal, prose, netrc.
fn after_blank(scan: &mut Scan, start: usize, end: usize, at: usize, class: NameClass) {
    let text = scan.text;
    let name = scan.slice(start, end);
    let word_end = Alphabet::WORD.run(text, at);
    let word = scan.slice(at, word_end.min(at + 16));
    let quote = Quote::at(text, at).map(|quote| quote.mark);
    if byte(text, start.wrapping_sub(1)) == b'-' {
        // In the help of a command, a column of descriptions follows the flags.
        let is_help = quote.is_none() && (at > end + 1 || is_one_of(word, AFTER_FLAG));
        let syntax = ValueSyntax::Config.or_loose(is_help);
        if byte(text, at) != b'-' {
            any(scan, at, class, syntax, Terminator::Blank);
        }
        return;
    }
    if is_set_by_command(text, start) && is_last_on_line(text, at) {
        return bare(scan, at, class, ValueSyntax::Config, Terminator::Blank);
    }
    let next = BLANK.run(text, word_end);
    if name == b"wpa_passphrase" {
        // A command: the name of the network comes first.
        let quote = Quote::at(text, at);
        let network = quote.and_then(|quote| quote.close(text, at + quote.length()));
        let value = BLANK.run(text, network.map_or(word_end, |(_, after)| after));
        return any(scan, value, class, ValueSyntax::Loose, Terminator::Blank);
    }
    let spaced = next > word_end;
    let is_set = spaced && word == b"as" && Quote::at(text, next).is_some();
    let said = after_copula(text, at).or(is_set.then_some(next));
    if word == b"value" {
        paired(scan, at, class);
    } else if let Some(mark) = quote {
        let is_sql = mark == b'\'' && name == b"PASSWORD";
        literal(scan, at, class, ValueSyntax::Quoted.or_loose(!is_sql));
    } else if let Some(value) = said
        .or_else(|| {
            (word == b"for")
                .then(|| after_purpose(text, next))
                .flatten()
        })
        .filter(|_| !name.eq_ignore_ascii_case(b"pass"))
    {
        any(scan, value, class, ValueSyntax::Loose, Terminator::Blank);
    } else if spaced && byte(text, next) == b'=' && byte(text, next + 1) != b'=' {
        // `var password string = "x"`
        literal(scan, BLANK.run(text, next + 1), class, ValueSyntax::Quoted);
    } else if name.eq_ignore_ascii_case(b"password") && follows_login(text, start) {
        bare(scan, at, class, ValueSyntax::Config, Terminator::Blank);
    } else if class != NameClass::Encoded {
        // There is no separator, so the value itself must be distinctive: `use token 3f9a…`.
        let value = bare_value(text, at);
        let plain = value.iter().all(|byte| Alphabet::WORD.has(*byte));
        let last = BLANK.run(text, at + value.len());
        let is_said = LAST_WORDS
            .iter()
            .any(|word| starts(text, last, word.as_bytes()));
        if is_said || value.len() >= 12 && plain && values::is_random(value) {
            bare(scan, at, class, ValueSyntax::Loose, Terminator::Blank);
        }
    }
}

/// Returns whether the word before a name sets a variable to the next word: Docker's `ENV NAME
/// value`, `setx`, `setenv`, fish's `set -gx`.
fn is_set_by_command(text: &[u8], start: usize) -> bool {
    let mut words = text
        .get(start.saturating_sub(24)..start)
        .unwrap_or_default()
        .rsplit(u8::is_ascii_whitespace);
    if words.next() != Some(b"") {
        return false;
    }
    match words.next() {
        Some([b'-', flags @ ..]) if flags.contains(&b'x') => words.next() == Some(b"set"),
        Some(word) => is_one_of(word, &["env", "setx", "setenv"]),
        None => false,
    }
}

/// Returns whether a dotted name ends with that of a setter: `builder.setPassword`.
fn is_setter(name: &[u8]) -> bool {
    let method = name.rsplit(|byte| *byte == b'.').next().unwrap_or_default();
    names::words(method).next() == Some(b"set")
}

/// Functions whose arguments are a name and its value.
#[rustfmt::skip]
const SETTERS: &[&str] = &[
    "define", "putenv", "setenv", "set_var", "set", "put", "setProperty", "set_property",
    "setdefault", "env", "store", "insert",
];

/// Returns whether a quoted name is the first argument of a call that sets it: `define('NAME', …)`.
fn is_set_by_call(text: &[u8], start: usize) -> bool {
    let open = BLANK.run_back(text, start.saturating_sub(1), 8);
    let is_call = byte(text, open.wrapping_sub(1)) == b'(';
    let name = open
        .checked_sub(1)
        .and_then(|open| text.get(Alphabet::WORD.run_back(text, open, 16)..open));
    is_call && name.is_some_and(|name| is_one_of(name, SETTERS))
}

/// Returns whether `login NAME` or `machine NAME` is before a position, as in a netrc file.
fn follows_login(text: &[u8], at: usize) -> bool {
    let before = text.get(at.saturating_sub(128)..at).unwrap_or_default();
    let mut words = before
        .rsplit(u8::is_ascii_whitespace)
        .filter(|word| !word.is_empty());
    let word = words.nth(1).unwrap_or_default();
    [&b"login"[..], b"machine", b"account", b"nlogin"].contains(&word)
}

/// Masks the value of the `value` key or attribute that belongs to the name.
fn paired(scan: &mut Scan, at: usize, class: NameClass) {
    let text = scan.text;
    let near = text.get(..at + 80).unwrap_or(text);
    let fill = WHITE.with(b",\\\"'+>|-");
    let mut word = fill.run(near, at);
    // Another field may be between: `"name": "TOKEN", "slotSetting": false, "value": "x"`.
    let key = NAME.run(near, word);
    let field = BLANK.with(b"\\\"':").run(near, key);
    let field_end = NAME.run(near, field);
    if field > key && byte(near, field_end) == b',' && !starts(near, word, b"value") {
        word = fill.run(near, field_end);
    }
    let named = text.get(word..word + 5);
    let separator = BLANK.with(b"\\\"'").run(near, word + 5);
    if named.is_some_and(|named| named.eq_ignore_ascii_case(b"value"))
        && matches!(byte(text, separator), b':' | b'=')
    {
        let value = BLANK.run(text, separator + 1);
        let is_last = is_last_on_line(text, value);
        let syntax = if is_last {
            ValueSyntax::Line
        } else {
            ValueSyntax::Bare
        };
        any(scan, value, class, syntax, Terminator::Blank);
    } else if byte(text, at) == b',' {
        literal(scan, BLANK.run(text, at + 1), class, ValueSyntax::Loose);
    }
}

/// Masks the first argument of a call or, if that is a user name, the second.
fn arguments(scan: &mut Scan, at: usize, class: NameClass) {
    let text = scan.text;
    let first = BLANK.run(text, at);
    let done = scan.done;
    literal(scan, first, class, ValueSyntax::Loose);
    if scan.done == done && Quote::at(text, first).is_some() {
        second(scan, first, class, ValueSyntax::Loose);
    }
}

/// Masks the second argument of a call, where the first one is a user: `HTTPBasicAuth("me", "x")`.
fn second(scan: &mut Scan, at: usize, class: NameClass, syntax: ValueSyntax) {
    let text = scan.text;
    let first = BLANK.run(text, at);
    let after = match Quote::at(text, first) {
        Some(quote) => quote
            .close(text, first + quote.length())
            .map(|(_, after)| after),
        None => Some(NAME.run(text, first)),
    };
    if let Some(after) = after.filter(|after| byte(text, *after) == b',') {
        let value = wrapped(text, BLANK.run(text, after + 1));
        literal(scan, value, class, syntax);
    }
}

/// Masks the value after a separator that ends at a position.
fn value(
    scan: &mut Scan,
    start: usize,
    separated: usize,
    class: NameClass,
    tight: bool,
    separator: u8,
) {
    let text = scan.text;
    let at = Alphabet::new(b" \t*").run(text, separated);
    if separator == b':'
        && let Some(assigned) = typed(text, at)
    {
        return literal(scan, assigned, class, ValueSyntax::Quoted);
    }
    let at = if separator == b':' {
        after_yaml_tag(text, at)
    } else {
        at
    };
    if let Some(next) = broken(text, at) {
        return next_line(scan, next, class, separator);
    }
    if matches!(byte(text, at), b'|' | b'>')
        && separator == b':'
        && let Some(next) = broken(text, Alphabet::new(b"|>+-123456789 \t").run(text, at))
    {
        return block_scalar(scan, next, class);
    }
    let at = wrapped(text, at);
    if byte(text, at) == b'(' {
        if let Some(next) = broken(text, BLANK.run(text, at + 1)) {
            return literal(scan, next, class, ValueSyntax::Quoted);
        }
        if class == NameClass::Encoded {
            return arguments(scan, at + 1, NameClass::Secret);
        }
    }
    if Quote::at(text, at).is_some() {
        return literal(scan, at, class, ValueSyntax::Quoted);
    }
    let tight = tight && at == separated;
    let (syntax, terminator) = bare_syntax(text, start, separated, at, tight, separator);
    bare(scan, at, class, syntax, terminator);
}

/// Skips a standard tag or an anchor of YAML before a value: `!!str x`, `&name x`. Other tags, such as
/// `!Ref`, mark references.
fn after_yaml_tag(text: &[u8], at: usize) -> usize {
    let mark = if starts(text, at, b"!!") { 2 } else { 1 };
    let end = NAME.run_within(text, at + mark, 64);
    let value = BLANK.run(text, end);
    let word = text.get(at + mark..end).unwrap_or_default();
    let is_tag = mark == 2 || byte(text, at) == b'&' && !is_one_of(word, &["mut", "dyn", "const"]);
    let is_value = Quote::at(text, value).is_some() || is_last_on_line(text, value);
    if is_tag && !word.is_empty() && value > end && is_value {
        value
    } else {
        at
    }
}

/// Returns the syntax of the bare value at a position and what ends it, given the start of its name
/// and the separator between them.
fn bare_syntax(
    text: &[u8],
    start: usize,
    separated: usize,
    at: usize,
    tight: bool,
    separator: u8,
) -> (ValueSyntax, Terminator) {
    use NamePosition::{Field, Flag, Line, Query, Quoted};
    let name = text.get(start..separated - 1).unwrap_or_default();
    let shouted = !name.iter().any(u8::is_ascii_lowercase);
    let value = bare_value(text, at);
    let word = byte(text, start.wrapping_sub(1)).is_ascii_whitespace()
        && matches!(byte(text, at + value.len()), b' ' | b'\r' | b'\n' | 0);
    let is_data = || {
        // `NAME := value` or `NAME ?= value` of a makefile.
        let is_make = shouted && matches!(byte(text, separated.wrapping_sub(2)), b':' | b'?');
        // `count-1` may be a difference; three parts without blanks are not.
        let mut parts = value.split(|byte| *byte == b'-');
        is_make
            || surroundings::is_settings(text, start)
            || parts.clone().count() >= 3
                && value.iter().any(u8::is_ascii_digit)
                && parts.all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_alphanumeric))
    };
    let last = || is_last_on_line(text, at);
    let is_code = || surroundings::is_code(text, start);
    match (separator, NamePosition::find(text, start)) {
        (b'=', Query) => (ValueSyntax::Config, Terminator::Query),
        (b'=', Quoted(mark)) if tight => (ValueSyntax::Config, Terminator::Quote(mark)),
        // A header: `-H "X-Api-Key: value"`.
        (b':', Quoted(mark)) if name.contains(&b'-') && !name.contains(&mark) && at > separated => {
            (ValueSyntax::Config, Terminator::Quote(mark))
        }
        (b'=', Line) if tight && (shouted || !is_code()) => (ValueSyntax::Config, Terminator::Line),
        (b'=', Field | Flag) if tight => (ValueSyntax::Config, Terminator::Blank),
        (b'=', _) if tight && (shouted || word) => (ValueSyntax::Config, Terminator::Blank),
        (b'=', Line) if last() && is_data() => (ValueSyntax::Line, Terminator::Line),
        (b':', Line) if last() && !is_code() => (ValueSyntax::Line, Terminator::Blank),
        _ => (ValueSyntax::Bare, Terminator::Blank),
    }
}

/// Masks a value on the line after its name.
fn next_line(scan: &mut Scan, at: usize, class: NameClass, separator: u8) {
    let text = scan.text;
    let at = wrapped(text, at);
    // Python's `-> Token:`, then a description.
    if separator == b':' && starts(text, at, b"\"\"\"") {
        return;
    }
    let value = bare_value(text, at);
    let name = Alphabet::WORD.run(value, 0);
    let is_name = value.ends_with(b":")
        || name > 0 && byte(value, name) == b'=' && byte(value, name + 1) != b'='
        || matches!(byte(text, BLANK.run(text, at + value.len())), b'=' | b':');
    if Quote::at(text, at).is_some() {
        literal(scan, at, class, ValueSyntax::Quoted);
    } else if is_last_on_line(text, at) && !is_name {
        bare(scan, at, class, ValueSyntax::Loose, Terminator::Blank);
    }
}

/// Masks the lines of a YAML block scalar.
fn block_scalar(scan: &mut Scan, first: usize, class: NameClass) {
    let text = scan.text;
    let mut line = Some(first);
    while let Some(at) = line {
        let end = bare_end(text, at, Terminator::Blank);
        let value = scan.slice(at, end);
        let continues =
            at > first && value.len() >= 16 && value.iter().all(|byte| Alphabet::BASE64.has(*byte));
        if !is_last_on_line(text, at)
            || !(continues || values::is_secret(value, class, ValueSyntax::Line))
        {
            return;
        }
        scan.found(at, end);
        line = broken(text, BLANK.run(text, end));
    }
}

/// Masks a value that may be in quotation marks.
fn any(scan: &mut Scan, at: usize, class: NameClass, syntax: ValueSyntax, ends: Terminator) {
    if Quote::at(scan.text, at).is_some() {
        let is_loose = syntax == ValueSyntax::Loose;
        literal(scan, at, class, ValueSyntax::Quoted.or_loose(is_loose));
    } else {
        bare(scan, at, class, syntax, ends);
    }
}

/// Masks the literal at a position and the literals concatenated to it.
fn literal(scan: &mut Scan, at: usize, class: NameClass, syntax: ValueSyntax) {
    let text = scan.text;
    let Some(quote) = Quote::at(text, at) else {
        return;
    };
    let mut start = at + quote.length();
    // The language of a fenced block is no value.
    let language = Alphabet::WORD.with(b"+#.-").run(text, start + 2);
    if starts(text, at, b"```") && byte(text, language) != b'`' && is_last_on_line(text, start + 2)
    {
        return;
    }
    if starts(text, start, &[quote.mark; 2]) {
        // A triple quotation mark: the literal may begin on the next line.
        start = Alphabet::new(b"\r\n").run(text, start + 2);
    }
    let Some((end, mut after)) = quote.close(text, start) else {
        let syntax = ValueSyntax::Config.or_loose(syntax == ValueSyntax::Loose);
        return bare(scan, start, class, syntax, Terminator::Blank);
    };
    let content = scan.slice(start, end);
    if class == NameClass::Encoded {
        if syntax == ValueSyntax::Quoted && is_user_and_password(content) {
            scan.found(start, end);
        }
        return;
    }
    // `**password**: `token``: a backtick counts as a quotation mark. `"token": "csrf-token"`: the
    // name of a header or field.
    let named = (quote.mark == b'`' || names::words(content).count() == 2)
        && syntax == ValueSyntax::Quoted
        && names::classify(content).is_some()
        && !values::is_random(content)
        && !content.iter().any(u8::is_ascii_digit);
    if named || !values::is_secret(content, class, syntax) {
        return;
    }
    scan.found(start, end);
    // Concatenated literals: joined by an operator, or adjacent in parentheses.
    let enclosed = byte(text, WHITE.run_back(text, at, 64).wrapping_sub(1)) == b'(';
    for _ in 0..64 {
        let gap = WHITE.with(b"+.&").run(text, after);
        let joined = gap > after && (enclosed || WHITE.run(text, after) < gap);
        let start = gap + quote.length();
        let is_next = joined && Quote::at(text, gap) == Some(quote);
        let closed = is_next.then(|| quote.close(text, start));
        let Some((end, close)) = closed.flatten() else {
            return;
        };
        let part = scan.slice(start, end);
        if part.iter().any(u8::is_ascii_whitespace) || values::is_reference(part) {
            return;
        }
        scan.found(start, end);
        after = close;
    }
}

/// Masks a bare value, if it is a secret.
fn bare(scan: &mut Scan, start: usize, class: NameClass, syntax: ValueSyntax, ends: Terminator) {
    let text = scan.text;
    // The first bytes decide; only a masked value is read to its end.
    let near = text.get(..start + JUDGED).unwrap_or(text);
    let end = bare_end(near, start, ends);
    let is_code = syntax == ValueSyntax::Bare;
    let trailing = Alphabet::new(if is_code { b",;.:)|" } else { b",;.:))" });
    let mut end = trailing.run_back(text, end, end - start);
    let value = scan.slice(start, end);
    if class == NameClass::Encoded {
        if matches!(syntax, ValueSyntax::Config | ValueSyntax::Line) && is_user_and_password(value)
        {
            scan.found(start, end);
        }
        return;
    }
    // A call, an index or a generic type: `tokens[0]`, `get("x")`.
    let opens = matches!(byte(text, end), b'[' | b'(')
        || byte(text, end) == b'<' && end > start && syntax != ValueSyntax::Config;
    if opens || !values::is_secret(value, class, syntax) {
        return;
    }
    if end == near.len() {
        end = bare_end(text, start, ends);
    }
    scan.found(start, end);
}
