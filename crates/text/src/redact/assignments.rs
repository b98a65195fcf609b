//! Values of sensitive names: `password = x` in every syntax.
//!
//! An anchor inside a name leads to the full name, and the text after the name tells the syntax of
//! its value. [`super::names`] classifies names, [`super::values`] judges values.

use super::names::{self, NameClass, is_one_of};
use super::reading::{
    Quote, Terminator, bare_end, broken, continued, is_last_on_line, typed, wrapped,
};
use super::scan::{Scan, byte, starts};
use super::surroundings::{self, NamePosition};
use super::tokens::Alphabet;
use super::transports::is_user_and_password;
use super::values::{self, JUDGED, ValueSyntax};

const BLANK: Alphabet = Alphabet::new(b" \t");
const NAME: Alphabet = Alphabet::WORD.with(b"-.");

/// Masks the value of the name around an anchor.
pub(super) fn assignment(scan: &mut Scan, at: usize) {
    if at < scan.named {
        return;
    }
    let text = scan.text;
    if text
        .get(at..)
        .unwrap_or_default()
        .get(..13)
        .is_some_and(|here| here.eq_ignore_ascii_case(b"identified by"))
    {
        let value = BLANK.run(text, at + 13);
        // In lower case and in other quotation marks, it may be a sentence.
        let class = match Quote::at(text, value).map(|quote| quote.mark) {
            Some(b'\'') if byte(text, at) == b'I' => NameClass::Password,
            _ => NameClass::Likely,
        };
        literal(scan, value, class, ValueSyntax::Quoted);
        return;
    }
    let Some((start, end)) = name_around(scan, at) else {
        return;
    };
    scan.named = end;
    let name = scan.slice(start, end);
    let class = if name == b"sig"
        && matches!(byte(text, start.wrapping_sub(1)), b'?' | b'&' | b';' | b'6')
    {
        Some(NameClass::Secret)
    } else if name.eq_ignore_ascii_case(b"key") && byte(text, start.wrapping_sub(1)) == b' ' {
        let word = Alphabet::WORD.run_back(text, start - 1, 16);
        names::key_class(scan.slice(word, start - 1))
    } else {
        names::classify(name)
    };
    if let Some(class) = class {
        assigned_value(scan, start, end, class);
    }
}

/// Names of a password in other languages: German, Spanish, French, Portuguese, Italian, Dutch, Polish,
/// Turkish, Swedish, Russian, Ukrainian, Arabic, Hindi, Bengali, Chinese, Japanese, Korean.
pub(super) const FOREIGN: &str = "kennwort|contraseña|contrasena|clave de acceso|mot de passe|mot_de_passe|\
     motdepasse|senha|palavra-passe|parola d'ordine|wachtwoord|hasło|şifre|parola|lösenord|пароль|Пароль|\
     كلمة المرور|كلمة السر|पासवर्ड|পাসওয়ার্ড|密码|密碼|口令|パスワード|비밀번호|암호";

/// Masks the value of a password's name in another language.
pub(super) fn foreign_password(scan: &mut Scan, at: usize) {
    let text = scan.text;
    let is_name = |name: &&str| {
        let there = text.get(at..at + name.len());
        there.is_some_and(|there| there.eq_ignore_ascii_case(name.as_bytes()))
    };
    let Some(name) = FOREIGN.split('|').find(is_name) else {
        return;
    };
    let end = at + name.len();
    if byte(text, at.wrapping_sub(1)).is_ascii_alphabetic() || byte(text, end).is_ascii_alphabetic()
    {
        return;
    }
    let blank = BLANK.run(text, end);
    if starts(text, blank, "：".as_bytes()) {
        value(
            scan,
            at,
            blank + "：".len(),
            NameClass::Password,
            false,
            b':',
        );
    } else {
        assigned_value(scan, at, end, NameClass::Password);
    }
}

/// Returns the name around a position, without the letter of an escape before it.
fn name_around(scan: &mut Scan, at: usize) -> Option<(usize, usize)> {
    let text = scan.text;
    let mut start = NAME.run_back(text, at, names::LONGEST).max(scan.done);
    let limit = text.len().min(at + names::LONGEST);
    let mut end = NAME.run(text.get(..limit)?, at);
    if end - start >= names::LONGEST {
        scan.named = end;
        return None;
    }
    if start > 0 && byte(text, start - 1) == b'\\' {
        let escape = if byte(text, start) == b'u' { 5 } else { 1 };
        if matches!(byte(text, start), b'n' | b'r' | b't' | b'u') && start + escape <= at {
            start += escape;
        }
    }
    while start < at && matches!(byte(text, start), b'-' | b'.') {
        start += 1;
    }
    while end > at && matches!(byte(text, end - 1), b'-' | b'.') {
        end -= 1;
    }
    (start <= at && at < end).then_some((start, end))
}

/// Masks the value assigned to the name in a range, if it is a secret.
fn assigned_value(scan: &mut Scan, start: usize, end: usize, class: NameClass) {
    let text = scan.text;
    let quote = Quote::at(text, end);
    // Distinguish a name with its own quotation marks from one at the end of a literal.
    let quoted = quote.is_some()
        && matches!(
            byte(text, start.wrapping_sub(1)),
            b'"' | b'\'' | b'`' | b'2' | b'7' | b';' | b':'
        );
    let at = after_index(text, end + quote.map_or(0, |quote| quote.length));
    let blank = BLANK.run(text, at);
    let tight = blank == end;
    let next = byte(text, blank + 1);
    match byte(text, blank) {
        b'=' if next == b'=' => loose_literal(scan, Alphabet::new(b"=").run(text, blank), class),
        b'!' if next == b'=' => {
            loose_literal(scan, Alphabet::new(b"=").run(text, blank + 1), class)
        }
        b'=' if next == b'>' => {
            literal(scan, BLANK.run(text, blank + 2), class, ValueSyntax::Quoted)
        }
        b'=' if next == b'~' => {}
        b'=' => value(scan, start, blank + 1, class, tight, b'='),
        b':' if next == b':' => {}
        b':' if next == b'=' || (next == b'-' && tight) => {
            value(scan, start, blank + 2, class, tight, b'=');
        }
        // `arn:aws:secretsmanager:…:secret:name`
        b':' if byte(text, start.wrapping_sub(1)) == b':' && is_arn(text, start) => {}
        b':' => value(scan, start, blank + 1, class, false, b':'),
        b'?' if next == b'=' => value(scan, start, blank + 2, class, false, b'='),
        b'?' if next == b':' => value(scan, start, blank + 2, class, false, b':'),
        b'|' if byte(text, blank + 1) == b'|' => literal(
            scan,
            Alphabet::new(b"|= ").run(text, blank),
            class,
            ValueSyntax::Quoted,
        ),
        b'|' if blank > at => table(scan, BLANK.run(text, blank + 1), class),
        b',' if quoted && is_set_by_call(text, start) => literal(
            scan,
            Alphabet::new(b" \t\r\n").run_within(text, blank + 1, 80),
            class,
            ValueSyntax::Quoted,
        ),
        b',' if quoted => paired(scan, blank, class),
        b'(' if blank == end && is_setter(scan.slice(start, end)) => {
            literal(scan, BLANK.run(text, blank + 1), class, ValueSyntax::Quoted);
        }
        b'(' if blank == end => arguments(scan, blank + 1, class),
        b'>' if matches!(byte(text, start.wrapping_sub(1)), b'<' | b':') => {
            // `<secret>` marks a text as often as it names a value.
            let is_mark = text.get(start..end) == Some(b"secret");
            let syntax = if is_mark {
                ValueSyntax::Loose
            } else {
                ValueSyntax::Config
            };
            element(scan, blank + 1, class, syntax);
        }
        b'\\' if starts(text, blank, b"\\u003d") => {
            value(scan, start, blank + 6, class, true, b'=');
        }
        b'\\' if starts(text, blank, b"\\u003e") => {
            element(scan, blank + 6, class, ValueSyntax::Config)
        }
        b'%' if starts(text, blank, b"%3D") => {
            value(scan, start, blank + 3, class, true, b'=');
        }
        b'%' if starts(text, blank, b"%3A") => {
            value(scan, start, blank + 3, class, true, b':');
        }
        b'\n' | b'\\' | b'\r' => paired(scan, blank, class),
        _ if blank > at => after_blank(scan, start, end, blank, class),
        _ => {}
    }
}

/// Returns the position after the brackets that may follow a name: `names[]`, `keys[0]`.
fn after_index(text: &[u8], at: usize) -> usize {
    let at = Alphabet::new(b"]*").run(text, at);
    let close = Alphabet::DIGIT.run(text, at + 1);
    if byte(text, at) == b'[' && byte(text, close) == b']' {
        close + 1
    } else {
        at
    }
}

/// Returns whether a position is in the resource name of a cloud.
fn is_arn(text: &[u8], at: usize) -> bool {
    let start = NAME.with(b":/").run_back(text, at, names::LONGEST);
    starts(text, start, b"arn:")
}

/// Masks a value after a name and a blank: of a flag, a SQL literal, prose, netrc.
fn after_blank(scan: &mut Scan, start: usize, end: usize, at: usize, class: NameClass) {
    let text = scan.text;
    if byte(text, start.wrapping_sub(1)) == b'-' {
        let at = if byte(text, at) == b'\\' {
            continued(text, at)
        } else {
            at
        };
        let word = scan.slice(at, Alphabet::WORD.run_within(text, at, 16));
        // In the help of a command, a column of descriptions follows the flags.
        let syntax = if at > end + 1 || is_one_of(word, AFTER_FLAG) {
            ValueSyntax::Loose
        } else {
            ValueSyntax::Config
        };
        if Quote::at(text, at).is_some() {
            literal(scan, at, class, ValueSyntax::Quoted);
        } else if byte(text, at) != b'-' {
            bare(scan, at, class, syntax, Terminator::Blank);
        }
        return;
    }
    if is_set_by_command(text, start) && is_last_on_line(text, at) {
        return bare(scan, at, class, ValueSyntax::Config, Terminator::Blank);
    }
    let word_end = Alphabet::WORD.run(text, at);
    let word = scan.slice(at, word_end.min(at + 16));
    let next = BLANK.run(text, word_end);
    let spaced = next > word_end;
    if word == b"value" {
        paired(scan, at, class);
    } else if let Some(quote) = Quote::at(text, at) {
        let is_sql = quote.mark == b'\'' && scan.slice(start, end) == b"PASSWORD";
        let syntax = if is_sql {
            ValueSyntax::Quoted
        } else {
            ValueSyntax::Loose
        };
        literal(scan, at, class, syntax);
    } else if spaced
        && (is_one_of(word, &["is", "was", "to"])
            || word == b"as" && Quote::at(text, next).is_some())
        && !scan.slice(start, end).eq_ignore_ascii_case(b"pass")
    {
        if Quote::at(text, next).is_some() {
            literal(scan, next, class, ValueSyntax::Loose);
        } else {
            bare(scan, next, class, ValueSyntax::Loose, Terminator::Blank);
        }
    } else if spaced && byte(text, next) == b'=' && byte(text, next + 1) != b'=' {
        // `var password string = "x"`
        literal(scan, BLANK.run(text, next + 1), class, ValueSyntax::Quoted);
    } else if scan.slice(start, end).eq_ignore_ascii_case(b"password") && follows_login(text, start)
    {
        bare(scan, at, class, ValueSyntax::Config, Terminator::Blank);
    } else if class != NameClass::Encoded {
        // There is no separator, so the value itself must be distinctive: `use token 3f9a…`.
        let near = text.get(..at + 64).unwrap_or(text);
        let end = bare_end(near, at, Terminator::Blank);
        let value = scan.slice(at, end);
        let plain = value.iter().all(|byte| Alphabet::WORD.has(*byte));
        if value.len() >= 12 && plain && values::is_random(value) {
            bare(scan, at, class, ValueSyntax::Loose, Terminator::Blank);
        }
    }
}

/// Words after the name of a flag in a sentence.
#[rustfmt::skip]
const AFTER_FLAG: &[&str] = &[
    "flag", "flags", "option", "options", "argument", "arguments", "parameter", "switch", "was",
    "to", "if", "in", "when", "instead", "as", "via", "it", "you", "can", "will", "should", "must",
    "may", "your", "that", "which", "without", "at", "by", "of", "only", "also", "does", "has",
    "here", "requires", "needs", "given", "provided", "specified", "both", "then", "but", "before", "after", "would",
];

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
        .rsplit(|byte| byte.is_ascii_whitespace() || *byte == b'\\')
        .filter(|word| !word.is_empty());
    words.next();
    words
        .next()
        .is_some_and(|word| [&b"login"[..], b"machine", b"account", b"nlogin"].contains(&word))
}

/// Masks the value of the `value` key or attribute that belongs to the name.
fn paired(scan: &mut Scan, at: usize, class: NameClass) {
    let text = scan.text;
    let fill = Alphabet::new(b" \t\r\n,\\\"'+>|-");
    let near = text.get(..at + 80).unwrap_or(text);
    let mut word = fill.run(near, at);
    // Skip the letter of an escaped line break.
    if byte(text, word) == b'n' && byte(text, word.wrapping_sub(1)) == b'\\' {
        word = fill.run(near, word + 1);
    }
    let named = text
        .get(word..word + 5)
        .is_some_and(|there| there.eq_ignore_ascii_case(b"value"));
    let separator = Alphabet::new(b"\\\"' \t").run(near, word + 5);
    if named && matches!(byte(text, separator), b':' | b'=') {
        let value = BLANK.run(text, separator + 1);
        if Quote::at(text, value).is_some() {
            literal(scan, value, class, ValueSyntax::Quoted);
        } else {
            let syntax = if is_last_on_line(text, value) {
                ValueSyntax::Line
            } else {
                ValueSyntax::Bare
            };
            bare(scan, value, class, syntax, Terminator::Blank);
        }
    } else if byte(text, at) == b',' {
        loose_literal(scan, BLANK.run(text, at + 1), class);
    }
}

/// Masks the content of an XML element.
fn element(scan: &mut Scan, at: usize, class: NameClass, syntax: ValueSyntax) {
    let text = scan.text;
    let end = Alphabet::new(b"<\n\\").until(text, at, JUDGED);
    let closed = byte(text, end) == b'<' || starts(text, end, b"\\u003c");
    if closed && values::is_secret(scan.slice(at, end), class, syntax) {
        scan.found(at, end);
    }
}

/// Masks a table cell.
fn table(scan: &mut Scan, at: usize, class: NameClass) {
    let at = Alphabet::new(b"`").run(scan.text, at);
    bare(scan, at, class, ValueSyntax::Loose, Terminator::Blank);
}

/// Masks a literal that does not directly follow its name, if it looks like a secret by itself.
fn loose_literal(scan: &mut Scan, at: usize, class: NameClass) {
    let at = BLANK.run(scan.text, at);
    if Quote::at(scan.text, at).is_some() {
        literal(scan, at, class, ValueSyntax::Loose);
    }
}

/// Masks the first argument of a call or, if that is a user name, the second.
fn arguments(scan: &mut Scan, at: usize, class: NameClass) {
    let text = scan.text;
    let first = BLANK.run(text, at);
    let done = scan.done;
    loose_literal(scan, first, class);
    if scan.done > done {
        return;
    }
    if let Some((_, after)) = Quote::at(text, first).and_then(|quote| quote.close(text, first))
        && byte(text, after) == b','
    {
        loose_literal(scan, after + 1, class);
    }
}

/// Masks the value after a separator.
fn value(
    scan: &mut Scan,
    start: usize,
    separator_end: usize,
    class: NameClass,
    tight: bool,
    separator: u8,
) {
    let text = scan.text;
    let mut at = Alphabet::new(b" \t*").run(text, separator_end);
    let tight = tight && at == separator_end;
    if byte(text, at) == b'\\' && matches!(byte(text, at + 1), b'\n' | b'\r') {
        at = continued(text, at);
    }
    if separator == b':'
        && let Some(assigned) = typed(text, at)
    {
        return literal(scan, assigned, class, ValueSyntax::Quoted);
    }
    if let Some(next) = broken(text, at) {
        return next_line(scan, next, class, separator);
    }
    if matches!(byte(text, at), b'|' | b'>') && separator == b':' {
        let indicator = Alphabet::new(b"|>+-123456789 \t").run(text, at);
        if let Some(next) = broken(text, indicator) {
            return block_scalar(scan, next, class);
        }
    }
    let at = wrapped(text, at);
    if Quote::at(text, at).is_some() {
        return literal(scan, at, class, ValueSyntax::Quoted);
    }
    if byte(text, at) == b'('
        && let Some(next) = broken(text, BLANK.run(text, at + 1))
    {
        return literal(scan, next, class, ValueSyntax::Quoted);
    }
    if class == NameClass::Encoded && byte(text, at) == b'(' {
        return arguments(scan, at + 1, NameClass::Secret);
    }
    let (syntax, terminator) = bare_syntax(text, start, separator_end, at, tight, separator);
    bare(scan, at, class, syntax, terminator);
}

/// Returns the syntax of the bare value at a position and what ends it, given the start of its name
/// and the separator between them.
fn bare_syntax(
    text: &[u8],
    start: usize,
    separator_end: usize,
    at: usize,
    tight: bool,
    separator: u8,
) -> (ValueSyntax, Terminator) {
    let name = text.get(start..separator_end - 1).unwrap_or_default();
    let shouted = !name.iter().any(u8::is_ascii_lowercase);
    // `NAME := value` or `NAME ?= value` of a makefile.
    let is_make = shouted && matches!(byte(text, separator_end.wrapping_sub(2)), b':' | b'?');
    let last = || is_last_on_line(text, at);
    let end = || {
        bare_end(
            text.get(..at + JUDGED).unwrap_or(text),
            at,
            Terminator::Blank,
        )
    };
    let word = byte(text, start.wrapping_sub(1)).is_ascii_whitespace()
        && matches!(byte(text, end()), b' ' | b'\r' | b'\n' | 0);
    // `count-1` may be a difference; three parts without blanks are not.
    let hyphenated = || {
        let value = text.get(at..end()).unwrap_or_default();
        value.split(|byte| *byte == b'-').count() >= 3
            && value.iter().any(u8::is_ascii_digit)
            && (value.split(|byte| *byte == b'-'))
                .all(|part| !part.is_empty() && part.iter().all(u8::is_ascii_alphanumeric))
    };
    match (separator, NamePosition::find(text, start)) {
        (b'=', NamePosition::Query) => (ValueSyntax::Config, Terminator::Query),
        (b'=', NamePosition::Quoted(mark)) if tight => {
            (ValueSyntax::Config, Terminator::Quote(mark))
        }
        // A header: `-H "X-Api-Key: value"`.
        (b':', NamePosition::Quoted(mark))
            if name.contains(&b'-') && !name.contains(&mark) && at > separator_end =>
        {
            (ValueSyntax::Config, Terminator::Quote(mark))
        }
        (b'=', NamePosition::Line) if tight && (shouted || !surroundings::is_code(text, start)) => {
            (ValueSyntax::Config, Terminator::Line)
        }
        (b'=', NamePosition::Field | NamePosition::Flag) if tight => {
            (ValueSyntax::Config, Terminator::Blank)
        }
        (b'=', _) if tight && (shouted || word) => (ValueSyntax::Config, Terminator::Blank),
        (b'=', NamePosition::Line)
            if last() && (is_make || surroundings::is_settings(text, start) || hyphenated()) =>
        {
            (ValueSyntax::Line, Terminator::Line)
        }
        (b':', NamePosition::Line) if last() && !surroundings::is_code(text, start) => {
            (ValueSyntax::Line, Terminator::Blank)
        }
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
    if Quote::at(text, at).is_some() {
        return literal(scan, at, class, ValueSyntax::Quoted);
    }
    if separator == b'=' || is_last_on_line(text, at) {
        let end = bare_end(text, at, Terminator::Blank);
        let another_name = has_name(scan.slice(at, end))
            || matches!(byte(text, BLANK.run(text, end)), b'=' | b':');
        if is_last_on_line(text, at) && !another_name {
            bare(scan, at, class, ValueSyntax::Loose, Terminator::Blank);
        }
    }
}

/// Returns whether a text begins with `NAME=` or ends with a colon.
fn has_name(text: &[u8]) -> bool {
    let name = Alphabet::WORD.run(text, 0);
    text.ends_with(b":")
        || (name > 0
            && byte(text, name) == b'='
            && byte(text, name + 1) != b'='
            && name + 1 < text.len())
        || (name > 0 && name + 1 == text.len() && byte(text, name) == b'=')
}

/// Masks the lines of a YAML block scalar.
fn block_scalar(scan: &mut Scan, first: usize, class: NameClass) {
    let text = scan.text;
    let mut at = first;
    let mut masked = false;
    loop {
        let end = bare_end(text, at, Terminator::Blank);
        let value = scan.slice(at, end);
        let more =
            masked && value.len() >= 16 && value.iter().all(|byte| Alphabet::BASE64.has(*byte));
        if end == at
            || !is_last_on_line(text, at)
            || !(more || values::is_secret(value, class, ValueSyntax::Line))
        {
            return;
        }
        scan.found(at, end);
        masked = true;
        let Some(next) = broken(text, BLANK.run(text, end)) else {
            return;
        };
        at = next;
    }
}

/// Masks the literal at a position and the literals concatenated to it.
fn literal(scan: &mut Scan, at: usize, class: NameClass, syntax: ValueSyntax) {
    let text = scan.text;
    let Some(quote) = Quote::at(text, at) else {
        return;
    };
    let mut open = at;
    let mut start = at + quote.length;
    // The language of a fenced block is no value.
    let language = Alphabet::WORD.with(b"+#.-").run(text, start + 2);
    if starts(text, at, b"```") && byte(text, language) != b'`' && is_last_on_line(text, start + 2)
    {
        return;
    }
    let closed = if starts(text, start, &[quote.mark, quote.mark]) {
        // A triple quotation mark: the literal may begin on the next line.
        start = Alphabet::new(b"\r\n").run(text, start + 2);
        open = start - 1;
        quote.close(text, open)
    } else {
        quote.close(text, open)
    };
    let Some((end, mut after)) = closed else {
        let syntax = if syntax == ValueSyntax::Quoted {
            ValueSyntax::Config
        } else {
            syntax
        };
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
    let before = Alphabet::new(b" \t\r\n").run_back(text, at, 64);
    let enclosed = byte(text, before.wrapping_sub(1)) == b'(';
    for _ in 0..64 {
        let gap = Alphabet::new(b" \t\r\n+\\.&").run(text, after);
        let joined = (enclosed && gap > after)
            || scan
                .slice(after, gap)
                .iter()
                .any(|byte| matches!(byte, b'+' | b'\\' | b'.' | b'&'));
        let Some(next) = Quote::at(text, gap)
            .filter(|next| joined && next.mark == quote.mark && next.slashes == quote.slashes)
        else {
            return;
        };
        let Some((end, close)) = next.close(text, gap) else {
            return;
        };
        let part = scan.slice(gap + next.length, end);
        if part.iter().any(u8::is_ascii_whitespace) || values::is_reference(part) {
            return;
        }
        scan.found(gap + next.length, end);
        open = close;
        after = open;
    }
}

/// Masks a bare value, if it is a secret.
fn bare(scan: &mut Scan, start: usize, class: NameClass, syntax: ValueSyntax, ends: Terminator) {
    let text = scan.text;
    // The first bytes decide; only a masked value is read to its end.
    let near = text.get(..start + JUDGED).unwrap_or(text);
    let mut end = bare_end(near, start, ends);
    while end > start
        && (matches!(byte(text, end - 1), b',' | b';' | b'.' | b':' | b')')
            || byte(text, end - 1) == b'|' && syntax == ValueSyntax::Bare)
    {
        end -= 1;
    }
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
        || (byte(text, end) == b'<' && end > start && syntax != ValueSyntax::Config);
    if opens || !values::is_secret(value, class, syntax) {
        return;
    }
    if end == near.len() {
        end = bare_end(text, start, ends);
    }
    scan.found(start, end);
}
