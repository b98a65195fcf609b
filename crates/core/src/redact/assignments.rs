//! Values given to sensitive names: `password = x` in every dress it comes in.
//!
//! An anchor inside a name leads to the whole name; what stands behind the name says how its value
//! is given; the value is read and judged. Names are read by [`super::names`], values judged by
//! [`super::values`].

use super::names::{self, Class, is_one_of};
use super::scan::{Scan, byte};
use super::tokens::Alphabet;
use super::transports::is_user_and_password;
use super::values::{self, Form, JUDGED};

const BLANK: Alphabet = Alphabet::of(b" \t");
const NAME: Alphabet = Alphabet::WORD.and(Alphabet::of(b"-."));

/// Masks the value of the name in which an anchor stands.
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
        if Quote::at(text, value).is_some_and(|quote| quote.mark != b'`') {
            literal(scan, value, Class::Password, Form::Quoted);
        }
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
        Some(Class::Secret)
    } else {
        names::classify(name)
    };
    if let Some(class) = class {
        given(scan, start, end, class);
    }
}

/// Returns the name around a position, without what an escape before it left behind.
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

/// A quotation mark, however often it is escaped.
#[derive(Debug, Clone, Copy)]
struct Quote {
    /// The mark: `"`, `'` or a backtick.
    mark: u8,
    /// How many backslashes stand before it.
    slashes: usize,
    /// How many bytes it takes; more than `slashes + 1` for a coded mark (`\u0022`, `&quot;`).
    length: usize,
}

/// Quotation marks in code.
const CODED: &[(&str, u8)] = &[
    ("u0022", b'"'),
    ("u0027", b'\''),
    ("&quot;", b'"'),
    ("&#34;", b'"'),
    ("&#39;", b'\''),
    ("&apos;", b'\''),
    ("x22", b'"'),
    ("x27", b'\''),
    ("%22", b'"'),
];

impl Quote {
    /// Reads a quotation mark at a position.
    fn at(text: &[u8], at: usize) -> Option<Self> {
        let slashes = Alphabet::of(b"\\").run(text.get(..text.len().min(at + 16))?, at) - at;
        let mark = byte(text, at + slashes);
        if matches!(mark, b'"' | b'\'' | b'`') {
            return Some(Self {
                mark,
                slashes,
                length: slashes + 1,
            });
        }
        let rest = text.get(at + slashes..)?;
        let (code, mark) = CODED.iter().find(|(code, _)| {
            let escape = matches!(byte(code.as_bytes(), 0), b'u' | b'x');
            rest.starts_with(code.as_bytes()) && escape == (slashes > 0)
        })?;
        Some(Self {
            mark: *mark,
            slashes,
            length: slashes + code.len(),
        })
    }

    /// Returns where the literal that this mark opens at a position ends, and where its closing
    /// mark does; none if it does not end on its line.
    fn close(self, text: &[u8], open: usize) -> Option<(usize, usize)> {
        let start = open + self.length;
        if self.length > self.slashes + 1 {
            let code = text.get(open..start)?;
            let limit = text.len().min(start + 4096);
            let found = text
                .get(start..limit)?
                .windows(code.len())
                .position(|part| part == code)?;
            return Some((start + found, start + found + code.len()));
        }
        let mut slashes = 0;
        for (at, byte) in text.iter().enumerate().skip(start) {
            match *byte {
                b'\\' => slashes += 1,
                b'\n' => return None,
                byte if byte == self.mark => {
                    // Fewer slashes: the literal around this one ended. As many: this one did.
                    // More: a mark inside it.
                    let level = 2 * (self.slashes + 1);
                    if slashes < self.slashes || slashes % level == self.slashes {
                        return Some((at - slashes.min(self.slashes), at + 1));
                    }
                    slashes = 0;
                }
                _ => slashes = 0,
            }
        }
        None
    }
}

/// Masks the value that is given to the name in a range, if it is a secret.
fn given(scan: &mut Scan, start: usize, end: usize, class: Class) {
    let text = scan.text;
    let quote = Quote::at(text, end);
    // A name in quotation marks of its own, or one that only stands at the end of a literal?
    let quoted = quote.is_some()
        && matches!(
            byte(text, start.wrapping_sub(1)),
            b'"' | b'\'' | b'`' | b'2' | b'7' | b';' | b':'
        );
    let mut at = end + quote.map_or(0, |quote| quote.length);
    at = Alphabet::of(b"]*").run(text, at);
    if byte(text, at) == b'[' {
        let close = Alphabet::DIGIT.run(text, at + 1);
        if byte(text, close) == b']' {
            at = close + 1;
        }
    }
    let blank = BLANK.run(text, at);
    let tight = blank == end;
    let next = byte(text, blank + 1);
    match byte(text, blank) {
        b'=' if next == b'=' => loose_literal(scan, Alphabet::of(b"=").run(text, blank), class),
        b'!' if next == b'=' => loose_literal(scan, Alphabet::of(b"=").run(text, blank + 1), class),
        b'=' if next == b'>' => literal(scan, BLANK.run(text, blank + 2), class, Form::Quoted),
        b'=' if next == b'~' => {}
        b'=' => value(scan, start, blank + 1, class, tight, b'='),
        b':' if next == b':' => {}
        b':' if next == b'=' || (next == b'-' && tight) => {
            value(scan, start, blank + 2, class, tight, b'=')
        }
        b':' => value(scan, start, blank + 1, class, false, b':'),
        b'?' if next == b'=' => value(scan, start, blank + 2, class, false, b'='),
        b'?' if next == b':' => value(scan, start, blank + 2, class, false, b':'),
        b'|' if byte(text, blank + 1) == b'|' => literal(
            scan,
            Alphabet::of(b"|= ").run(text, blank),
            class,
            Form::Quoted,
        ),
        b'|' if blank > at => table(scan, BLANK.run(text, blank + 1), class),
        b',' if quoted => paired(scan, blank, class),
        b'(' if blank == end => loose_literal(scan, blank + 1, class),
        b'>' if matches!(byte(text, start.wrapping_sub(1)), b'<' | b':') => {
            element(scan, blank + 1, class)
        }
        b'\\' if text.get(blank..blank + 6) == Some(b"\\u003d") => {
            value(scan, start, blank + 6, class, true, b'=')
        }
        b'\\' if text.get(blank..blank + 6) == Some(b"\\u003e") => element(scan, blank + 6, class),
        b'%' if text.get(blank..blank + 3) == Some(b"%3D") => {
            value(scan, start, blank + 3, class, true, b'=')
        }
        b'%' if text.get(blank..blank + 3) == Some(b"%3A") => {
            value(scan, start, blank + 3, class, true, b':')
        }
        b'\n' | b'\\' | b'\r' => paired(scan, blank, class),
        _ if blank > at => after_blank(scan, start, end, blank, class),
        _ => {}
    }
}

/// Masks what follows a name and a blank: the value of a flag, a SQL literal, prose, netrc.
fn after_blank(scan: &mut Scan, start: usize, end: usize, at: usize, class: Class) {
    let text = scan.text;
    if byte(text, start.wrapping_sub(1)) == b'-' {
        let at = if byte(text, at) == b'\\' {
            continued(text, at)
        } else {
            at
        };
        if Quote::at(text, at).is_some() {
            literal(scan, at, class, Form::Quoted);
        } else {
            bare(scan, at, class, Form::Loose, Ends::Blank);
        }
        return;
    }
    let word_end = Alphabet::WORD.run(text, at);
    let word = scan.slice(at, word_end.min(at + 16));
    let next = BLANK.run(text, word_end);
    let spaced = next > word_end;
    if word == b"value" {
        paired(scan, at, class);
    } else if Quote::at(text, at).is_some() {
        literal(scan, at, class, Form::Loose);
    } else if spaced
        && is_one_of(word, &["is", "was", "to", "as"])
        && !scan.slice(start, end).eq_ignore_ascii_case(b"pass")
    {
        if Quote::at(text, next).is_some() {
            literal(scan, next, class, Form::Loose);
        } else {
            bare(scan, next, class, Form::Loose, Ends::Blank);
        }
    } else if spaced && byte(text, next) == b'=' && byte(text, next + 1) != b'=' {
        // `var password string = "x"`
        literal(scan, BLANK.run(text, next + 1), class, Form::Quoted);
    } else if scan.slice(start, end).eq_ignore_ascii_case(b"password") && follows_login(text, start)
    {
        bare(scan, at, class, Form::Config, Ends::Blank);
    }
}

/// Returns whether `login NAME` or `machine NAME` stands before a position, as in a netrc file.
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

/// Masks the value behind a `value` key or attribute that belongs to the name.
fn paired(scan: &mut Scan, at: usize, class: Class) {
    let text = scan.text;
    let fill = Alphabet::of(b" \t\r\n,\\\"'+>|-");
    let limit = text.len().min(at + 80);
    let near = text.get(..limit).unwrap_or(text);
    let mut word = fill.run(near, at);
    // An escaped line break leaves its letter behind.
    if byte(text, word) == b'n' && byte(text, word.wrapping_sub(1)) == b'\\' {
        word = fill.run(near, word + 1);
    }
    let named = text
        .get(word..word + 5)
        .is_some_and(|there| there.eq_ignore_ascii_case(b"value"));
    let separator = Alphabet::of(b"\\\"' \t").run(near, word + 5);
    if named && matches!(byte(text, separator), b':' | b'=') {
        let value = BLANK.run(text, separator + 1);
        if Quote::at(text, value).is_some() {
            literal(scan, value, class, Form::Quoted);
        } else {
            bare(scan, value, class, Form::Line, Ends::Blank);
        }
    } else if byte(text, at) == b',' {
        loose_literal(scan, BLANK.run(text, at + 1), class);
    }
}

/// Masks the content of an XML element.
fn element(scan: &mut Scan, at: usize, class: Class) {
    let text = scan.text;
    let content = text.get(at..).unwrap_or_default();
    let end = at
        + content
            .iter()
            .take(JUDGED)
            .take_while(|byte| !matches!(byte, b'<' | b'\n' | b'\\'))
            .count();
    let closed = byte(text, end) == b'<' || text.get(end..end + 6) == Some(b"\\u003c");
    if closed && values::is_secret(scan.slice(at, end), class, Form::Config) {
        scan.found(at, end);
    }
}

/// Masks a cell of a table.
fn table(scan: &mut Scan, at: usize, class: Class) {
    let at = Alphabet::of(b"`").run(scan.text, at);
    bare(scan, at, class, Form::Loose, Ends::Blank);
}

/// Masks a literal far from its name, if it looks like a secret by itself.
fn loose_literal(scan: &mut Scan, at: usize, class: Class) {
    let at = BLANK.run(scan.text, at);
    if Quote::at(scan.text, at).is_some() {
        literal(scan, at, class, Form::Loose);
    }
}

/// Masks the value behind a separator.
fn value(
    scan: &mut Scan,
    start: usize,
    separator_end: usize,
    class: Class,
    tight: bool,
    separator: u8,
) {
    let text = scan.text;
    let mut at = Alphabet::of(b" \t*").run(text, separator_end);
    let tight = tight && at == separator_end;
    if byte(text, at) == b'\\' && matches!(byte(text, at + 1), b'\n' | b'\r') {
        at = continued(text, at);
    }
    if separator == b':'
        && let Some(assigned) = typed(text, at)
    {
        return literal(scan, assigned, class, Form::Quoted);
    }
    if let Some(next) = broken(text, at) {
        return next_line(scan, next, class, separator);
    }
    if matches!(byte(text, at), b'|' | b'>') && separator == b':' {
        let indicator = Alphabet::of(b"|>+-123456789 \t").run(text, at);
        if let Some(next) = broken(text, indicator) {
            return block_scalar(scan, next, class);
        }
    }
    let at = wrapped(text, at);
    if Quote::at(text, at).is_some() {
        return literal(scan, at, class, Form::Quoted);
    }
    let place = Place::of(text, start);
    let shouted = !scan
        .slice(start, separator_end - 1)
        .iter()
        .any(u8::is_ascii_lowercase);
    match (separator, place) {
        (b'=', Place::Query) => bare(scan, at, class, Form::Config, Ends::Query),
        (b'=', Place::Quoted(mark)) if tight => {
            bare(scan, at, class, Form::Config, Ends::Quote(mark))
        }
        (b'=', Place::Line) if tight => bare(scan, at, class, Form::Config, Ends::Line),
        (b'=', Place::Field | Place::Flag) if tight => {
            bare(scan, at, class, Form::Config, Ends::Blank)
        }
        (b'=', _) if tight && shouted => bare(scan, at, class, Form::Config, Ends::Blank),
        (b':', Place::Line) if is_last_on_line(text, at) => {
            bare(scan, at, class, Form::Line, Ends::Blank)
        }
        _ => bare(scan, at, class, Form::Bare, Ends::Blank),
    }
}

/// Where a name stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// First on its line, perhaps behind `export` and the like.
    Line,
    /// In the query of a URL or a form.
    Query,
    /// In a list of fields, as of a connection string.
    Field,
    /// Behind hyphens.
    Flag,
    /// First in a literal with this mark.
    Quoted(u8),
    /// Anywhere else.
    Text,
}

impl Place {
    fn of(text: &[u8], start: usize) -> Self {
        match byte(text, start.wrapping_sub(1)) {
            b'?' | b'&' => return Self::Query,
            b'6' if text.get(start.wrapping_sub(6)..start) == Some(b"\\u0026") => {
                return Self::Query;
            }
            b';' => {
                return if text.get(start.wrapping_sub(5)..start) == Some(b"&amp;") {
                    Self::Query
                } else {
                    Self::Field
                };
            }
            b'-' => return Self::Flag,
            mark @ (b'"' | b'\'' | b'`') => return Self::Quoted(mark),
            b'{' => return Self::Text,
            _ => {}
        }
        let before = text
            .get(start.saturating_sub(48)..start)
            .unwrap_or_default();
        let line = before
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map(|at| at + 1)
            .or_else(|| {
                before
                    .windows(2)
                    .rposition(|pair| pair == b"\\n")
                    .map(|at| at + 2)
            });
        let line = match line {
            Some(line) => before.get(line..).unwrap_or_default(),
            None if before.len() == start => before,
            None => return Self::Text,
        };
        let line = line.strip_prefix(&b"//"[..]).unwrap_or(line);
        let leads = |word: &[u8]| {
            word.iter()
                .all(|byte| !byte.is_ascii_alphanumeric() && *byte != b'(' && *byte != b'=')
                || word.iter().all(u8::is_ascii_digit)
                || word.starts_with(b"$env:")
                || word
                    .get(..word.len().saturating_sub(3))
                    .is_some_and(|number| {
                        word.ends_with("→".as_bytes()) && number.iter().all(u8::is_ascii_digit)
                    })
                || is_one_of(
                    word,
                    &[
                        "export", "set", "setx", "declare", "-x", "ENV", "ARG", "-e", "--env",
                        "env", "local", "readonly", "sudo",
                    ],
                )
        };
        if line
            .split(|byte| BLANK.has(*byte))
            .filter(|word| !word.is_empty())
            .all(leads)
        {
            Self::Line
        } else {
            Self::Text
        }
    }
}

/// Returns where the line after a backslash at its end begins, past the indentation.
fn continued(text: &[u8], at: usize) -> usize {
    Alphabet::of(b" \t\r\n+").run(text, at + 1)
}

/// Returns where the literal behind a type annotation begins: `: &'static str = "x"`.
fn typed(text: &[u8], at: usize) -> Option<usize> {
    let rest = text.get(at..)?;
    let kind = Alphabet::WORD.and(Alphabet::of(b" &'<>[]?|.,:"));
    let end = at
        + rest
            .iter()
            .take(64)
            .take_while(|byte| kind.has(**byte))
            .count();
    let assigned = byte(text, end) == b'='
        && byte(text, end + 1) != b'='
        && byte(text, end.wrapping_sub(1)) == b' ';
    let value = wrapped(text, BLANK.run(text, end + 1));
    (assigned && end > at && Quote::at(text, value).is_some()).then_some(value)
}

/// Returns where the value on the next line begins, if the line ends at a position.
fn broken(text: &[u8], at: usize) -> Option<usize> {
    let at = Alphabet::of(b"\r").run(text, at);
    let slashes = Alphabet::of(b"\\").run(text, at);
    let next = if byte(text, at) == b'\n' {
        at + 1
    } else if slashes > at && byte(text, slashes) == b'n' {
        slashes + 1
    } else {
        return None;
    };
    Some(line_start(text, next))
}

/// Skips indentation and the marks of diffs, quotations and numbered lines.
fn line_start(text: &[u8], line: usize) -> usize {
    let fill = Alphabet::of(b" \t+>|");
    let at = fill.run(text, line);
    let digits = Alphabet::DIGIT.run(text, at);
    if digits > at && text.get(digits..digits + 3) == Some("→".as_bytes()) {
        return fill.run(text, digits + 3);
    }
    at
}

/// Masks a value that stands on the line after its name.
fn next_line(scan: &mut Scan, at: usize, class: Class, separator: u8) {
    let text = scan.text;
    let at = wrapped(text, at);
    if Quote::at(text, at).is_some() {
        return literal(scan, at, class, Form::Quoted);
    }
    if separator == b'=' || is_last_on_line(text, at) {
        let end = bare_end(text, at, Ends::Blank);
        let another_name = has_name(scan.slice(at, end))
            || matches!(byte(text, BLANK.run(text, end)), b'=' | b':');
        if is_last_on_line(text, at) && !another_name {
            bare(scan, at, class, Form::Loose, Ends::Blank);
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
fn block_scalar(scan: &mut Scan, first: usize, class: Class) {
    let text = scan.text;
    let mut at = first;
    let mut masked = false;
    loop {
        let end = bare_end(text, at, Ends::Blank);
        let value = scan.slice(at, end);
        let more =
            masked && value.len() >= 16 && value.iter().all(|byte| Alphabet::BASE64.has(*byte));
        if end == at
            || !is_last_on_line(text, at)
            || !(more || values::is_secret(value, class, Form::Line))
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

/// Skips what may stand before a literal: its prefix, or a call that only wraps it.
fn wrapped(text: &[u8], at: usize) -> usize {
    let end = Alphabet::WORD
        .and(Alphabet::of(b":.@$#"))
        .run(text.get(..text.len().min(at + 48)).unwrap_or(text), at);
    let word = text.get(at..end).unwrap_or_default();
    let short = word.len() <= 3
        && is_one_of(
            word,
            &[
                "b", "r", "f", "u", "l", "rb", "br", "u8", "@", "$", "r#", "@$", "$@",
            ],
        );
    if short && Quote::at(text, end).is_some() {
        return end;
    }
    if byte(text, end) == b'(' {
        let last = word
            .rsplit(|byte| matches!(byte, b':' | b'.'))
            .next()
            .unwrap_or_default();
        let wraps = [
            "Some",
            "from",
            "new",
            "SecretStr",
            "SecretString",
            "Secret",
            "String",
            "str",
            "secret",
            "Just",
            "Ok",
            "of",
            "bytes",
            "quote",
        ];
        if is_one_of(last, &wraps) && Quote::at(text, end + 1).is_some() {
            return end + 1;
        }
    }
    let wraps_in_new = text.get(at..at + 4) == Some(b"new ");
    if wraps_in_new {
        wrapped(text, at + 4)
    } else {
        at
    }
}

/// Masks the literal at a position and those that continue it.
fn literal(scan: &mut Scan, at: usize, class: Class, form: Form) {
    let text = scan.text;
    let Some(quote) = Quote::at(text, at) else {
        return;
    };
    let mut open = at;
    let mut start = at + quote.length;
    let closed = if text.get(start..start + 2) == Some(&[quote.mark, quote.mark]) {
        // Three marks: the literal may begin on the next line.
        start = Alphabet::of(b"\r\n").run(text, start + 2);
        open = start - 1;
        quote.close(text, open)
    } else {
        quote.close(text, open)
    };
    let Some((end, mut after)) = closed else {
        let form = if form == Form::Quoted {
            Form::Config
        } else {
            form
        };
        return bare(scan, start, class, form, Ends::Blank);
    };
    let content = scan.slice(start, end);
    if class == Class::Encoded {
        if form == Form::Quoted && is_user_and_password(content) {
            scan.found(start, end);
        }
        return;
    }
    // `**password**: `x``: a backtick is as good as a quotation mark.
    if !values::is_secret(content, class, form)
        || (form == Form::Quoted
            && names::classify(content).is_some()
            && !values::is_random(content)
            && !content.iter().any(u8::is_ascii_digit))
    {
        return;
    }
    scan.found(start, end);
    // Literals that are joined to it, by an operator or by standing next to it on another line.
    for _ in 0..64 {
        let gap = Alphabet::of(b" \t\r\n+\\.&").run(text, after);
        let joined = scan
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

/// What ends a bare value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// A blank, or what separates values in code and text.
    Blank,
    /// Only a blank: a line of an environment file.
    Line,
    /// What separates parameters of a query.
    Query,
    /// The mark that closes the literal around it.
    Quote(u8),
}

/// Returns where the bare value at a position ends.
fn bare_end(text: &[u8], start: usize, ends: Ends) -> usize {
    let stops = match ends {
        Ends::Blank => Alphabet::of(b"\"'`<>,;)}]"),
        Ends::Line => Alphabet::of(b"\""),
        Ends::Query => Alphabet::of(b"\"'`<>&#;,)}]"),
        Ends::Quote(_) => Alphabet::of(b"\n"),
    };
    let mut at = start;
    loop {
        let here = byte(text, at);
        let over = at >= text.len()
            || here.is_ascii_whitespace()
            || stops.has(here)
            || ends == Ends::Quote(here)
            || (matches!(here, b'&' | b';' | b',') && begins_field(text, at));
        if over {
            return at;
        }
        if here == b'\\' {
            let slashes = Alphabet::of(b"\\").run(text, at);
            match byte(text, slashes) {
                b'n' | b'r' | b't' | b'"' | b'\'' | b'u' | 0 => return at,
                // A line that goes on below.
                b'\n' if Alphabet::ALNUM.has(byte(text, slashes + 1)) => {
                    at = slashes + 1;
                    continue;
                }
                b'\n' | b' ' => return at,
                _ => at = slashes,
            }
        }
        at += 1;
    }
}

/// Returns whether the sign at a position separates a value from the next field or command.
fn begins_field(text: &[u8], at: usize) -> bool {
    let near = text.get(..text.len().min(at + 64)).unwrap_or(text);
    let spaced = NAME.and(BLANK);
    let name = if byte(text, at) == b';' { spaced } else { NAME }.run(near, at + 1);
    byte(text, at + 1) == byte(text, at)
        || (name > at + 1 && byte(text, name) == b'=')
        // `&amp;`, `&#x3C;` and the like.
        || (byte(text, at) == b'&' && (byte(text, at + 1) == b'#' || (name > at + 1 && byte(text, name) == b';')))
}

/// Returns whether nothing but the bare value at a position is left on its line.
fn is_last_on_line(text: &[u8], at: usize) -> bool {
    let end = bare_end(
        text.get(..text.len().min(at + JUDGED)).unwrap_or(text),
        at,
        Ends::Blank,
    );
    let rest = Alphabet::of(b" \t\r").run(text, end);
    let comment = byte(text, rest) == b'#' && rest > end;
    end > at
        && (rest >= text.len()
            || comment
            || byte(text, rest) == b'\n'
            || matches!(
                text.get(rest..rest + 2),
                Some(b"\\n" | b"\\r" | b"\\\"" | b"\\\\")
            )
            || matches!(byte(text, rest), b'"' | b'\''))
}

/// Masks a bare value, if it is a secret.
fn bare(scan: &mut Scan, start: usize, class: Class, form: Form, ends: Ends) {
    let text = scan.text;
    // The first bytes decide; only what is masked is read to its end.
    let near = text.get(..text.len().min(start + JUDGED)).unwrap_or(text);
    let mut end = bare_end(near, start, ends);
    while end > start && matches!(byte(text, end - 1), b',' | b';' | b'.' | b':' | b')') {
        end -= 1;
    }
    let value = scan.slice(start, end);
    if class == Class::Encoded {
        if matches!(form, Form::Config | Form::Line) && is_user_and_password(value) {
            scan.found(start, end);
        }
        return;
    }
    // A call or an index: `tokens[0]`, `get("x")`.
    let opens = matches!(byte(text, end), b'[' | b'(')
        || (byte(text, end) == b'<' && end > start && form != Form::Config);
    if opens || !values::is_secret(value, class, form) {
        return;
    }
    if end == near.len() {
        end = bare_end(text, start, ends);
    }
    scan.found(start, end);
}
