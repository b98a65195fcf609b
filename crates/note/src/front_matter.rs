//! The YAML front matter of notes: a block mapping of scalars and lists of scalars.
//!
//! We write it ourselves, because a rewrite must keep every unchanged byte, and because scalars must
//! read back equal in YAML 1.1, which the Python version uses, and in 1.2. What we write on one line is
//! also read here; a library parses anything else, behind limits.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    fmt,
    fmt::Write as _,
    ops::Range,
};

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error as _, IgnoredAny, MapAccess, SeqAccess,
    Visitor,
};

/// The largest front matter that is read, in bytes.
///
/// A note's keys take a few hundred bytes; a long list of links takes a few thousand.
pub const MAX_LENGTH: usize = 64 * 1024;

/// The deepest nesting that is read. None of our keys nests.
pub const MAX_DEPTH: usize = 64;

/// Why front matter was rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It is larger than [`MAX_LENGTH`].
    #[error("front matter of {0} bytes, over the limit of {MAX_LENGTH}")]
    TooLong(usize),
    /// It has an anchor, alias or tag. They can expand a small file to a large one, and notes need
    /// none.
    #[error("line {line}: anchors, aliases and tags are not supported")]
    Alias {
        /// The line in the file, counted from 1.
        line: usize,
    },
    /// It is nested deeper than [`MAX_DEPTH`]; the library would take quadratic time to find out.
    #[error("line {line}: nested deeper than {MAX_DEPTH} levels")]
    TooDeep {
        /// The line in the file, counted from 1.
        line: usize,
    },
    /// A key occurs twice.
    #[error("line {line}: duplicate key \"{key}\"")]
    DuplicateKey {
        /// The key.
        key: String,
        /// The line of the second key in the file, counted from 1.
        line: usize,
    },
    /// The library could not parse it.
    #[error("line {line}: {message}")]
    Syntax {
        /// The library's message.
        message: String,
        /// The line in the file, counted from 1.
        line: usize,
    },
}

/// How the value of a key is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A scalar, as its source text, whatever YAML type it has.
    Text,
    /// A list of scalars; a single scalar is a list of one.
    List,
    /// Any value; it is ignored.
    Any,
}

/// The value of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// A scalar as written: `1e3` is the text `1e3`.
    Text(String),
    /// A list of scalars.
    List(Vec<String>),
    /// No value, `null`, or an ignored value.
    Null,
}

/// Parses the lines of a block mapping into values by key.
///
/// `shape` tells how to read each key. Line numbers assume that the block starts on the file's
/// second line, after the opening `---`. Nothing is evaluated: an include is text, a tag is an
/// error.
pub fn read_mapping(
    block: &str,
    shape: fn(&str) -> Shape,
) -> Result<BTreeMap<String, Value>, Error> {
    if block.len() > MAX_LENGTH {
        return Err(Error::TooLong(block.len()));
    }
    match read_plain(block, shape) {
        Some(values) => Ok(values),
        None => read_any(block, shape),
    }
}

/// Reads the lines of a block mapping that need no YAML library, which takes ten times as long: keys
/// of small letters, and one scalar on each line, as the functions below write them. Returns nothing
/// if there is any other line.
fn read_plain(block: &str, shape: fn(&str) -> Shape) -> Option<BTreeMap<String, Value>> {
    let mut values = BTreeMap::new();
    let mut lines = block.lines().peekable();
    while let Some(line) = lines.next() {
        let (key, rest) = line.split_once(':')?;
        if key.is_empty() || !key.bytes().all(|b| b.is_ascii_lowercase() || b == b'_') {
            return None;
        }
        let value = match (shape(key), rest.strip_prefix(' ')) {
            (Shape::Text, Some(text)) => Value::Text(one_line_scalar(text)?),
            (Shape::List, Some("[]")) => Value::List(Vec::new()),
            (Shape::List, None) if rest.is_empty() => {
                let mut items = Vec::new();
                while let Some(line) = lines.next_if(|line| line.starts_with("- ")) {
                    items.push(one_line_scalar(&line[2..])?);
                }
                if items.is_empty() {
                    return None;
                }
                Value::List(items)
            }
            _ => return None,
        };
        if values.insert(key.to_owned(), value).is_some() {
            return None;
        }
    }
    Some(values)
}

/// Reads a scalar on one line, without escapes. Returns nothing if it may be something else or null.
fn one_line_scalar(scalar: &str) -> Option<String> {
    if needs_escapes(scalar) {
        return None;
    }
    let quoted = |quote| scalar.strip_prefix(quote)?.strip_suffix(quote);
    if let Some(text) = quoted('\'') {
        let is_whole = text.split("''").all(|part| !part.contains('\''));
        return is_whole.then(|| text.replace("''", "'"));
    }
    if let Some(text) = quoted('"') {
        return (!text.contains(['"', '\\'])).then(|| text.to_owned());
    }
    let is_null = scalar == "~" || scalar.eq_ignore_ascii_case("null");
    (is_plain_safe(scalar) && !is_null).then(|| scalar.to_owned())
}

/// Reads any block mapping, with the YAML library.
fn read_any(block: &str, shape: fn(&str) -> Shape) -> Result<BTreeMap<String, Value>, Error> {
    let entries = entries(block);
    if let Some((line, rejected)) = find_rejected(block, &entries) {
        return Err(match rejected {
            Rejected::Alias => Error::Alias { line },
            Rejected::Depth => Error::TooDeep { line },
        });
    }
    let mut seen = BTreeSet::new();
    for entry in &entries {
        if !seen.insert(entry.key.as_str()) {
            return Err(Error::DuplicateKey {
                key: entry.key.clone(),
                line: entry.line,
            });
        }
    }
    let deserializer = serde_yaml::Deserializer::from_str(block);
    MappingSeed { shape }
        .deserialize(deserializer)
        .map_err(|error| {
            let text = error.to_string();
            let message = text
                .rfind(" at line ")
                .map_or(text.as_str(), |cut| &text[..cut]);
            let line = error.location().map_or(1, |location| location.line()) + 1;
            Error::Syntax {
                message: message.to_owned(),
                line,
            }
        })
}

struct MappingSeed {
    shape: fn(&str) -> Shape,
}

impl<'de> DeserializeSeed<'de> for MappingSeed {
    type Value = BTreeMap<String, Value>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for MappingSeed {
    type Value = BTreeMap<String, Value>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("keys and values")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut values = BTreeMap::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match (self.shape)(&key) {
                Shape::Text => map
                    .next_value::<Option<String>>()?
                    .map_or(Value::Null, Value::Text),
                Shape::List => map.next_value::<TextOrList>()?.0,
                Shape::Any => map.next_value::<IgnoredAny>().map(|_| Value::Null)?,
            };
            // Different spellings of one key, such as `a` and `"a"`.
            if values.insert(key.clone(), value).is_some() {
                return Err(A::Error::custom(format_args!("duplicate key \"{key}\"")));
            }
        }
        Ok(values)
    }
}

struct TextOrList(Value);

impl<'de> Deserialize<'de> for TextOrList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextOrListVisitor)
    }
}

struct TextOrListVisitor;

impl<'de> Visitor<'de> for TextOrListVisitor {
    type Value = TextOrList;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a list of texts")
    }

    fn visit_str<E>(self, text: &str) -> Result<TextOrList, E> {
        Ok(TextOrList(Value::List(vec![text.to_owned()])))
    }

    fn visit_unit<E>(self) -> Result<TextOrList, E> {
        Ok(TextOrList(Value::Null))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<TextOrList, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element::<Option<String>>()? {
            list.extend(item);
        }
        Ok(TextOrList(Value::List(list)))
    }
}

/// A key of a block mapping and its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key, without quotes.
    pub key: String,
    /// The bytes of its lines in the block, with line ends.
    pub range: Range<usize>,
    /// The line in the file, counted from 1, if the block starts on the second line.
    pub line: usize,
}

/// Splits a block mapping into its keys and their lines.
///
/// Comments and blank lines between keys belong to no key. Lines that are not a block mapping (such
/// as a flow mapping) are left out, so a caller that rewrites must compare the keys with the result
/// of [`read_mapping`].
pub fn entries(block: &str) -> Vec<Entry> {
    let mut entries: Vec<Entry> = Vec::new();
    let mut start = 0;
    for (index, line) in block.split_inclusive('\n').enumerate() {
        let end = start + line.len();
        let continues =
            line.starts_with([' ', '\t']) || line.starts_with("- ") || line.trim_end() == "-";
        if continues && !line.trim().is_empty() {
            // A blank line inside a quoted text or block scalar is included by the line
            // after it.
            if let Some(entry) = entries.last_mut() {
                entry.range.end = end;
            }
        } else if let Some(key) = key_of(line) {
            entries.push(Entry {
                key,
                range: start..end,
                line: index + 2,
            });
        }
        start = end;
    }
    entries
}

/// Returns the key of a line that starts an entry.
fn key_of(line: &str) -> Option<String> {
    let line = line.trim_end_matches(['\n', '\r']);
    let cut = line
        .find(": ")
        .or_else(|| line.ends_with(':').then(|| line.len() - 1))?;
    let key = line[..cut].trim_end();
    if key.is_empty()
        || key.starts_with(['#', '{', '[', '&', '*', '!', '|', '>', '%', '@', '`', '?'])
    {
        return None;
    }
    let unquoted = [('"', '"'), ('\'', '\'')]
        .iter()
        .find_map(|&(open, close)| key.strip_prefix(open)?.strip_suffix(close));
    Some(unquoted.unwrap_or(key).to_owned())
}

/// Why a block is not passed to the library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rejected {
    Alias,
    Depth,
}

/// Finds the first anchor, alias, tag or deep nesting of a block and returns its line in the file.
///
/// Only positions where YAML allows an alias count: `title: R&D` and a folded line that starts with
/// `*` are text. Anything missed in a nested structure is part of an ignored value, which is not
/// expanded, or meets the library's own limits.
fn find_rejected(block: &str, entries: &[Entry]) -> Option<(usize, Rejected)> {
    if block.trim_start().starts_with(['[', '{']) {
        return rejected_in_flow(block.trim_start()).map(|rejected| (2, rejected));
    }
    for entry in entries {
        let text = &block[entry.range.clone()];
        let first_line = text.lines().next().unwrap_or_default();
        let after_key = first_line.find(": ").map_or(first_line.len(), |at| at + 2);
        let value = text[after_key..].trim_start_matches(' ');
        let rejected = match value.chars().next() {
            Some('&' | '*' | '!') => Some((0, Rejected::Alias)),
            Some('[' | '{') => rejected_in_flow(value).map(|rejected| (0, rejected)),
            Some('\n' | '\r' | '#') | None => rejected_in_block(value),
            _ => None,
        };
        if let Some((offset, rejected)) = rejected {
            return Some((entry.line + offset, rejected));
        }
    }
    None
}

/// Searches a flow collection for a token that starts with `&`, `*` or `!`, and checks its depth.
fn rejected_in_flow(value: &str) -> Option<Rejected> {
    let mut quote = None;
    let mut at_token_start = true;
    let mut depth: usize = 0;
    for character in value.chars() {
        match quote {
            Some(open) if character == open => quote = None,
            Some(_) => {}
            None => match character {
                '&' | '*' | '!' if at_token_start => return Some(Rejected::Alias),
                '"' | '\'' if at_token_start => quote = Some(character),
                '[' | '{' | ',' | ':' | ' ' | '\n' => {
                    at_token_start = at_token_start || character != ' ';
                    depth += usize::from(matches!(character, '[' | '{'));
                    if depth > MAX_DEPTH {
                        return Some(Rejected::Depth);
                    }
                    continue;
                }
                ']' | '}' => depth = depth.saturating_sub(1),
                _ => {}
            },
        }
        at_token_start = false;
    }
    None
}

/// Searches an indented block; also returns the offset of the line from the key.
fn rejected_in_block(value: &str) -> Option<(usize, Rejected)> {
    // The indentation of the last line that began a text; deeper lines continue it.
    let mut text_indent: Option<usize> = None;
    for (offset, line) in value.lines().enumerate() {
        let mut rest = line.trim_start_matches(' ');
        if rest.is_empty() {
            continue;
        }
        let indent = line.len() - rest.len();
        if text_indent.is_some_and(|of_text| indent > of_text) {
            continue;
        }
        let mut depth = indent;
        while let Some(item) = rest.strip_prefix("- ") {
            rest = item.trim_start_matches(' ');
            depth += 1;
        }
        if depth > MAX_DEPTH {
            return Some((offset, Rejected::Depth));
        }
        let is_alias = |token: &str| token.starts_with(['&', '*', '!']);
        let quoted = rest.starts_with(['"', '\'']);
        let value = if quoted {
            None
        } else {
            rest.split_once(": ").map(|(_, value)| value.trim_start())
        };
        if is_alias(rest) || value.is_some_and(is_alias) {
            return Some((offset, Rejected::Alias));
        }
        let flow = [Some(rest), value]
            .into_iter()
            .flatten()
            .find(|token| token.starts_with(['[', '{']));
        if let Some(rejected) = flow.and_then(rejected_in_flow) {
            return Some((offset, rejected));
        }
        let starts_text = value.is_none() && !rest.ends_with(':') && rest != "-";
        text_indent = starts_text.then_some(indent);
    }
    None
}

/// Writes `key: value` and a line end.
pub fn write_scalar(out: &mut String, key: &str, value: &str) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(out, "{key}: {}", scalar(value));
}

/// Writes a list of texts, one per line, or `[]`.
pub fn write_list(out: &mut String, key: &str, items: &[String]) {
    if items.is_empty() {
        let _ = writeln!(out, "{key}: []");
        return;
    }
    let _ = writeln!(out, "{key}:");
    for item in items {
        let _ = writeln!(out, "- {}", scalar(item));
    }
}

/// Returns a text as a YAML scalar on one line: plain if that is safe, single-quoted if a plain
/// scalar would break or have another type, double-quoted if escapes are needed.
pub fn scalar(text: &str) -> Cow<'_, str> {
    if needs_escapes(text) {
        Cow::Owned(double_quoted(text))
    } else if is_plain_safe(text) && !may_be_another_type(text) {
        Cow::Borrowed(text)
    } else {
        Cow::Owned(format!("'{}'", text.replace('\'', "''")))
    }
}

/// Returns whether a character may be outside double quotes.
fn is_printable(character: char) -> bool {
    matches!(character, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
        && !matches!(character, '\u{feff}' | '\u{2028}' | '\u{2029}')
}

fn needs_escapes(text: &str) -> bool {
    !text.chars().all(is_printable)
}

/// Returns whether a plain scalar in block context can hold the text, YAML 1.1 §9.1.3.
fn is_plain_safe(text: &str) -> bool {
    let Some(first) = text.chars().next() else {
        return false;
    };
    let second_is_blank = text.chars().nth(1).is_none_or(|c| c == ' ');
    if text.starts_with("---")
        || text.starts_with("...")
        || text.starts_with(' ')
        || text.ends_with(' ')
    {
        return false;
    }
    match first {
        '#' | ',' | '[' | ']' | '{' | '}' | '&' | '*' | '!' | '|' | '>' | '\'' | '"' | '%'
        | '@' | '`' => return false,
        '?' | ':' | '-' if second_is_blank => return false,
        _ => {}
    }
    !(text.contains(": ") || text.ends_with(':') || text.contains(" #"))
}

/// Returns whether YAML 1.1 or 1.2 may read the plain text as a number, a time, a truth value or null.
fn may_be_another_type(text: &str) -> bool {
    const WORDS: [&str; 14] = [
        "~", "null", "true", "false", "yes", "no", "on", "off", "<<", "=", ".nan", ".inf", "-.inf",
        "+.inf",
    ];
    let of_a_number = |c: char| c.is_ascii_hexdigit() || "+-.:_ xoTtZz".contains(c);
    WORDS.iter().any(|word| text.eq_ignore_ascii_case(word))
        || text.starts_with(|c: char| c.is_ascii_digit() || "+-.".contains(c))
            && text.chars().all(of_a_number)
            // A time has three at most; the id of a session has four.
            && text.matches('-').count() < 4
}

fn double_quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\t' => out.push_str("\\t"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            _ if is_printable(character) => out.push(character),
            _ => {
                let code = u32::from(character);
                let _ = if code <= 0xff {
                    write!(out, "\\x{code:02X}")
                } else if code <= 0xffff {
                    write!(out, "\\u{code:04X}")
                } else {
                    write!(out, "\\U{code:08X}")
                };
            }
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn texts(_: &str) -> Shape {
        Shape::Text
    }

    fn lists(_: &str) -> Shape {
        Shape::List
    }

    fn ignored(_: &str) -> Shape {
        Shape::Any
    }

    #[test]
    fn a_scalar_is_quoted_if_it_could_be_another_type_or_break() {
        for (text, expected) in [
            ("plain words", "plain words"),
            ("", "''"),
            ("it's", "it's"),
            ("'quoted'", "'''quoted'''"),
            ("a: b", "'a: b'"),
            ("a:b", "a:b"),
            ("ends:", "'ends:'"),
            ("a #b", "'a #b'"),
            ("a#b", "a#b"),
            ("- item", "'- item'"),
            ("-item", "-item"),
            ("-", "'-'"),
            ("? x", "'? x'"),
            ("?x", "?x"),
            ("*bold*", "'*bold*'"),
            ("&x", "'&x'"),
            ("!x", "'!x'"),
            ("%x", "'%x'"),
            ("@x", "'@x'"),
            ("`x`", "'`x`'"),
            ("[x]", "'[x]'"),
            ("{x}", "'{x}'"),
            ("x, [y]", "x, [y]"),
            ("--- x", "'--- x'"),
            ("...", "'...'"),
            (" lead", "' lead'"),
            ("trail ", "'trail '"),
            ("yes", "'yes'"),
            ("No", "'No'"),
            ("ON", "'ON'"),
            ("yEs", "'yEs'"),
            ("y", "y"),
            ("null", "'null'"),
            ("~", "'~'"),
            ("Null", "'Null'"),
            ("12", "'12'"),
            ("-12", "'-12'"),
            ("1_000", "'1_000'"),
            ("0x1F", "'0x1F'"),
            ("0b11", "'0b11'"),
            ("1.5", "'1.5'"),
            ("1.2.3", "'1.2.3'"),
            ("1.", "'1.'"),
            (".5", "'.5'"),
            ("1.0e+3", "'1.0e+3'"),
            (".inf", "'.inf'"),
            ("-.INF", "'-.INF'"),
            (".NaN", "'.NaN'"),
            ("190:20:30", "'190:20:30'"),
            ("10:30", "'10:30'"),
            ("10:75", "'10:75'"),
            ("<<", "'<<'"),
            ("=", "'='"),
            ("2026-01-02", "'2026-01-02'"),
            ("2026-1-2", "'2026-1-2'"),
            ("2026 plans", "2026 plans"),
            ("2026-01-02T03:04:05+00:00", "'2026-01-02T03:04:05+00:00'"),
            ("2026-01-02 03:04:05", "'2026-01-02 03:04:05'"),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            ("zwei Wörter, 日本", "zwei Wörter, 日本"),
            ("tab\there", "\"tab\\there\""),
            ("line\nbreak", "\"line\\nbreak\""),
            ("\x1b[31m", "\"\\x1B[31m\""),
            ("\u{feff}bom", "\"\\uFEFFbom\""),
            ("plain 🧪", "plain 🧪"),
            ("tab\t🧪", "\"tab\\t🧪\""),
            ("nel\u{85}", "\"nel\\x85\""),
            ("1e3", "'1e3'"),
            ("0o14", "'0o14'"),
        ] {
            assert_eq!(scalar(text), expected, "{text:?}");
        }
    }

    #[test]
    fn scalars_are_read_as_text() {
        for text in [
            "1e3",
            "0o14",
            "yes",
            "012",
            "1.0",
            "2026-01-02",
            "0x1F",
            ".inf",
        ] {
            let mapping = read_mapping(&format!("k: {text}\n"), texts).unwrap();
            assert_eq!(mapping["k"], Value::Text(text.to_owned()));
            let mapping = read_mapping(&format!("k:\n- {text}\n"), lists).unwrap();
            assert_eq!(mapping["k"], Value::List(vec![text.to_owned()]));
        }
    }

    #[test]
    fn what_is_written_on_one_line_is_read_without_the_library() {
        let block = "title: it's plain, [words] & more\ncreated: '2026-01-02'\nkind: \"a b\"\n\
                     empty: ''\nquoted: '''x'''\n";
        let read = read_plain(block, texts).unwrap();
        assert_eq!(
            read["title"],
            Value::Text("it's plain, [words] & more".to_owned())
        );
        assert_eq!(read["quoted"], Value::Text("'x'".to_owned()));
        assert_eq!(Ok(read), read_any(block, texts));
        let list = "tags:\n- one\n- 'two: 2'\nlinks: []\n";
        let read = read_plain(list, lists).unwrap();
        assert_eq!(read["links"], Value::List(Vec::new()));
        assert_eq!(Ok(read), read_any(list, lists));
    }

    #[test]
    fn any_other_line_is_left_to_the_library() {
        for block in [
            "a: null",
            "a:",
            "a: &x y",
            "a: |",
            "a: 'b' 'c'",
            "a: b # c",
            r#"a: "\n""#,
            "A: b",
            " a: b",
            "a: b\n  c",
            "a: b\n\nc: d",
            "# a: b",
            "a: b\na: c",
            "{a: b}",
            "a:\tb",
        ] {
            assert_eq!(read_plain(block, texts), None, "{block:?}");
        }
    }

    #[test]
    fn a_scalar_is_read_as_a_list_of_one() {
        assert_eq!(
            read_mapping("k: one\n", lists).unwrap()["k"],
            Value::List(vec!["one".to_owned()])
        );
        assert_eq!(read_mapping("k:\n", lists).unwrap()["k"], Value::Null);
        assert_eq!(
            read_mapping("k: []\n", lists).unwrap()["k"],
            Value::List(Vec::new())
        );
    }

    #[test]
    fn duplicate_keys_are_refused() {
        // YAML-04
        let error = read_mapping("a: 1\ntags: []\ntags:\n- x\n", ignored).unwrap_err();
        assert_eq!(
            error,
            Error::DuplicateKey {
                key: "tags".to_owned(),
                line: 4
            }
        );
        assert!(read_mapping("a: 1\n\"a\": 2\n", ignored).is_err());
    }

    #[test]
    fn aliases_anchors_and_tags_are_refused() {
        // YAML-01, YAML-02, YAML-05
        for (block, line) in [
            ("a: &x [1]\n", 2),
            ("a: 1\nb: *x\n", 3),
            ("a: &x\n- *x\n", 2),
            ("a:\n- &x 1\n- *x\n", 3),
            ("a: [&x 1, *x]\n", 2),
            ("a: {b: *x}\n", 2),
            ("a:\n  b: *x\n", 3),
            ("a: !!python/object/apply:os.system [id]\n", 2),
            ("a: !include /etc/passwd\n", 2),
        ] {
            assert_eq!(
                read_mapping(block, ignored),
                Err(Error::Alias { line }),
                "{block}"
            );
        }
        for block in [
            "a: R&D *now* !x\n",
            "a: '*x'\n",
            "a: \"&x\"\n",
            "a: long text\n  *goes* on\n  &more\n",
            "a:\n- text\n  & more\n- 'it''s'\n",
            "a: |\n  *x\n  &y\n",
            "a: ['*x', \"&y\", z*]\n",
        ] {
            assert!(read_mapping(block, ignored).is_ok(), "{block}");
        }
    }

    #[test]
    fn deep_nesting_is_refused() {
        // YAML-03
        for deep in [
            format!("a: {}\n", "[".repeat(30_000)),
            format!("a: {}{}\n", "[".repeat(20_000), "]".repeat(20_000)),
            format!("a: {}1\n", "{b: ".repeat(10_000)),
            format!("a:\n{}x\n", "- ".repeat(20_000)),
            format!("a:\n- {}\n", "[".repeat(20_000)),
            "[".repeat(30_000),
        ] {
            let error = read_mapping(&deep, ignored).unwrap_err();
            assert!(matches!(error, Error::TooDeep { .. }), "{error}");
        }
        let steps: String = (0..300)
            .map(|depth| format!("{}a:\n", " ".repeat(depth)))
            .collect();
        assert!(read_mapping(&steps, ignored).is_err());
        let shallow = format!("a: {}{}\n", "[".repeat(60), "]".repeat(60));
        assert!(read_mapping(&shallow, ignored).is_ok());
        assert!(read_mapping("a: 'x'\nb: '[[[[[[[[[[[['\n", ignored).is_ok());
        assert!(matches!(
            read_mapping(&"a".repeat(MAX_LENGTH + 1), ignored),
            Err(Error::TooLong(_))
        ));
    }

    #[test]
    fn entries_include_their_lines() {
        let block = "id: x\n# a comment\ntitle: long\n  folded\ntags:\n- a\n- b\n\"q k\": 'x\n\n  y'\nlast: 1\n";
        let found: Vec<(String, &str)> = entries(block)
            .into_iter()
            .map(|e| (e.key, &block[e.range]))
            .collect();
        assert_eq!(
            found,
            [
                ("id".to_owned(), "id: x\n"),
                ("title".to_owned(), "title: long\n  folded\n"),
                ("tags".to_owned(), "tags:\n- a\n- b\n"),
                ("q k".to_owned(), "\"q k\": 'x\n\n  y'\n"),
                ("last".to_owned(), "last: 1\n"),
            ]
        );
    }

    /// Blocks of lines that are often, and often not quite, what a note has.
    fn any_lines() -> impl Strategy<Value = String> {
        let line = prop_oneof![
            "[ab]: [ -~]{0,12}",
            "[ab]: ['\"][ -~]{0,8}['\"]",
            "[ab]:",
            "- [ -~é\u{85}\u{2028}\t]{0,8}",
            "  [ -~]{0,6}",
            r"[ab]: (~|null|Null|true|12|\[\]|\{\}|<<)",
            "[ -~]{0,10}",
        ];
        proptest::collection::vec(line, 0..5).prop_map(|lines| lines.join("\n") + "\n")
    }

    proptest! {
        #[test]
        fn the_short_way_reads_what_the_library_reads(block in any_lines(), is_list: bool) {
            let shape = if is_list { lists } else { texts };
            if let Some(values) = read_plain(&block, shape) {
                prop_assert_eq!(read_any(&block, shape), Ok(values));
            }
        }

                /// YAML-13, YAML-15: every written text reads back equal.
        #[test]
        fn every_text_reads_back(text in any::<String>(), items in prop::collection::vec("\\PC*|[-+0-9eE._:xob]{0,12}", 0..5)) {
            let mut block = String::new();
            write_scalar(&mut block, "k", &text);
            prop_assert_eq!(block.lines().count(), 1);
            prop_assert_eq!(&read_mapping(&block, texts).unwrap()["k"], &Value::Text(text));
            let mut block = String::new();
            write_list(&mut block, "k", &items);
            prop_assert_eq!(&read_mapping(&block, lists).unwrap()["k"], &Value::List(items));
        }

        #[test]
        fn reading_never_panics(block in any::<String>()) {
            let _ = read_mapping(&block, lists);
        }
    }
}
