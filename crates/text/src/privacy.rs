//! Removes private regions and injected text.
//!
//! There are two kinds of tags. **Marked** regions (`<private>` and context tags) fail closed: an
//! unclosed one extends to the end of the text. **Injected** elements (`<system-reminder>` and
//! similar) are removed only if they are closed.
//!
//! JSON is stripped value by value, never as serialised text. A tag must be inside one string, but
//! an open region continues through the following values in document order. Keys are stripped
//! separately.
//!
//! Nothing may read a text before it passes here: no log, no hash, and no truncation, which could
//! separate an open tag from its close. Invariants: stripping is idempotent, keeps the structure of
//! JSON and takes linear time.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::ops::Deref;

use serde_json::{Map, Value};

/// Tags whose regions are counted together and extend to the end if unclosed. The first is the
/// person's mark; the others enclose text that a memory plugin injected.
const MARKED: [&str; 3] = ["private", "anamnesis-context", "claude-mem-context"];

/// The position of the person's mark in [`MARKED`].
const PRIVATE: usize = 0;

/// Tags that the client wraps around its own text.
const INJECTED: [&str; 4] = [
    "system-reminder",
    "system_instruction",
    "system-instruction",
    "persisted-output",
];

const MARKED_AND_INJECTED: [&str; 7] = {
    let [a, b, c] = MARKED;
    let [d, e, f, g] = INJECTED;
    [a, b, c, d, e, f, g]
};

/// The most passes. A removal may join the parts of another tag; a text that needs more is hostile.
const MAX_PASSES: usize = 8;

/// A text with more regions is logged.
const MANY_REGIONS: usize = 100;

/// The most private text that is kept to recognize it later, in bytes.
const MAX_PRIVATE_TEXT: usize = 64 * 1024;

/// A text without its private and injected regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped<'a> {
    /// The remaining text, trimmed.
    pub text: Cow<'a, str>,
    /// The number of removed regions, without nested ones.
    pub regions: usize,
    /// Whether a person marked any part of the text as private.
    pub private: bool,
    /// The contents of the regions that a person marked.
    pub private_texts: PrivateTexts,
}

/// The regions removed from a text or JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemovedRegions {
    /// The number of removed regions, without nested ones.
    pub regions: usize,
    /// Whether a person marked any part as private.
    pub private: bool,
    /// The contents of the regions that a person marked.
    pub private_texts: PrivateTexts,
}

/// Text that a person marked as private, in document order. Must never be stored or shown.
///
/// Holds the first 64 KiB. `Debug` shows only the number of pieces.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct PrivateTexts {
    pieces: Vec<String>,
    length: usize,
}

impl PrivateTexts {
    fn push(&mut self, piece: &str) {
        let room = MAX_PRIVATE_TEXT - self.length;
        let ends = piece.char_indices().map(|(at, c)| at + c.len_utf8());
        let end = ends.take_while(|end| *end <= room).last().unwrap_or(0);
        let piece = &piece[..end];
        if !piece.trim().is_empty() {
            self.length += piece.len();
            self.pieces.push(piece.to_owned());
        }
    }

    fn append(&mut self, other: &Self) {
        for piece in &other.pieces {
            self.push(piece);
        }
    }
}

impl Deref for PrivateTexts {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.pieces
    }
}

impl fmt::Debug for PrivateTexts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "PrivateTexts({})", self.pieces.len())
    }
}

impl RemovedRegions {
    /// Returns whether there are over a hundred regions, which suggests generated input.
    pub fn is_suspicious(&self) -> bool {
        self.regions > MANY_REGIONS
    }

    /// Adds the regions of another removal from the same text.
    pub fn add(&mut self, other: &Self) {
        self.regions += other.regions;
        self.private |= other.private;
        self.private_texts.append(&other.private_texts);
    }

    fn add_marked(&mut self, marked: &MarkedRegions) {
        self.regions += marked.regions.len() + marked.regions_in_keys;
        self.private |= marked.private;
        self.private_texts.append(&marked.texts);
    }
}

/// Removes private, context and injected regions until none is left.
///
/// A text that still changes after eight passes becomes empty.
///
/// ```
/// let stripped = anamnesis_text::privacy::strip("deploy <private>with K9</private> today");
/// assert_eq!(stripped.text, "deploy  today");
/// assert!(stripped.private);
/// ```
pub fn strip(text: &str) -> Stripped<'_> {
    let StrippedText { text, removed, .. } = strip_text(text.trim());
    let text = match text {
        Cow::Borrowed(text) => Cow::Borrowed(text),
        Cow::Owned(text) => Cow::Owned(text.trim().to_owned()),
    };
    Stripped {
        text,
        regions: removed.regions,
        private: removed.private,
        private_texts: removed.private_texts,
    }
}

/// Removes private, context and injected regions from the values and keys of JSON until none is
/// left.
///
/// A marked region that is open at the end of a string continues through the following values:
/// strings keep only the text outside it, numbers and booleans become `null`, keys and structure
/// are kept. An injected element may span values if its tags balance. Strings are not trimmed.
///
/// Keys are stripped separately. A region that a key leaves open continues through the following
/// values. Keys of one object that become equal are numbered: `name`, `name#2`, `name#3`.
///
/// JSON that still changes after eight passes becomes `null`.
///
/// ```
/// let mut value = serde_json::json!({"lines": ["x", "<private>", "k=1", "</private>", "y"]});
/// anamnesis_text::privacy::strip_json(&mut value);
/// assert_eq!(value, serde_json::json!({"lines": ["x", "", "", "", "y"]}));
/// ```
pub fn strip_json(value: &mut Value) -> RemovedRegions {
    let mut removed = RemovedRegions::default();
    if !json_has_tags(value) {
        return removed;
    }
    for _ in 0..=MAX_PASSES {
        let mut marked = MarkedRegions::default();
        marked.read_json(value);
        marked.finish();
        removed.add_marked(&marked);
        Cutter::new(&marked.regions).cut(value);
        let mut injected = InjectedElements::default();
        injected.read_json(value);
        let injected = injected.finish();
        removed.regions += injected.len();
        Cutter::new(&injected).cut(value);
        if marked.regions.is_empty() && injected.is_empty() {
            return removed;
        }
    }
    *value = Value::Null;
    removed
}

/// Returns whether there is any tag. One search for all kinds makes the common case fast.
fn has_tags(text: &str) -> bool {
    Tags::new(text, &MARKED_AND_INJECTED).next().is_some()
}

fn json_has_tags(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => has_tags(text),
        Value::Array(items) => items.iter().any(json_has_tags),
        Value::Object(object) => object
            .iter()
            .any(|(key, value)| has_tags(key) || json_has_tags(value)),
    }
}

/// A text without its regions, not trimmed.
struct StrippedText<'a> {
    text: Cow<'a, str>,
    removed: RemovedRegions,
    /// For each marked name, the number of regions that are open at the end.
    open: [usize; MARKED.len()],
}

fn strip_text(text: &str) -> StrippedText<'_> {
    let mut stripped = StrippedText {
        text: Cow::Borrowed(text),
        removed: RemovedRegions::default(),
        open: [0; MARKED.len()],
    };
    if !has_tags(text) {
        return stripped;
    }
    for _ in 0..=MAX_PASSES {
        let mut marked = MarkedRegions::default();
        marked.read(&stripped.text);
        for (open, depth) in stripped.open.iter_mut().zip(marked.depths) {
            *open += depth;
        }
        marked.finish();
        stripped.removed.add_marked(&marked);
        stripped.cut(&marked.regions);
        let mut injected = InjectedElements::default();
        injected.read(&stripped.text);
        let injected = injected.finish();
        stripped.removed.regions += injected.len();
        stripped.cut(&injected);
        if marked.regions.is_empty() && injected.is_empty() {
            return stripped;
        }
    }
    stripped.text = Cow::Borrowed("");
    stripped
}

impl StrippedText<'_> {
    fn cut(&mut self, regions: &[Region]) {
        if let Some(kept) = Cutter::new(regions).outside(&self.text) {
            self.text = Cow::Owned(kept);
        }
    }
}

/// A range of bytes in a text, or in the values of JSON taken as one text, where a number or
/// boolean takes one byte. In strings both ends are character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    start: usize,
    end: usize,
}

/// Finds the outermost marked regions.
///
/// Counts open tags per name, so that a stray close of one name cannot end a region of another.
#[derive(Default)]
struct MarkedRegions {
    regions: Vec<Region>,
    regions_in_keys: usize,
    private: bool,
    texts: PrivateTexts,
    depths: [usize; MARKED.len()],
    /// The start of the open region.
    start: usize,
    /// The start of the next value.
    position: usize,
}

impl MarkedRegions {
    fn is_open(&self) -> bool {
        self.depths != [0; MARKED.len()]
    }

    /// Reads the next string.
    fn read(&mut self, text: &str) {
        let base = self.position;
        let mut piece = 0;
        for tag in Tags::new(text, &MARKED) {
            if self.depths[PRIVATE] > 0 {
                self.texts.push(&text[piece..tag.region.start]);
            }
            piece = tag.region.end;
            self.tag(&tag, base);
        }
        if self.depths[PRIVATE] > 0 {
            self.texts.push(&text[piece..]);
        }
        self.position = base + text.len();
    }

    fn tag(&mut self, tag: &Tag, base: usize) {
        let outside = !self.is_open();
        let start = base + tag.region.start;
        let end = base + tag.region.end;
        match tag.kind {
            TagKind::Open => {
                self.depths[tag.name] += 1;
                if outside {
                    self.start = start;
                }
            }
            TagKind::Close => {
                self.depths[tag.name] = self.depths[tag.name].saturating_sub(1);
                if !outside && !self.is_open() {
                    let start = self.start;
                    self.regions.push(Region { start, end });
                }
                return;
            }
            TagKind::Empty if outside => self.regions.push(Region { start, end }),
            TagKind::Empty => {}
        }
        self.private |= tag.name == PRIVATE;
    }

    /// Reads the values of JSON and strips its keys.
    fn read_json(&mut self, value: &mut Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) => self.position += 1,
            Value::Number(number) => {
                if self.depths[PRIVATE] > 0 {
                    self.texts.push(&number.to_string());
                }
                self.position += 1;
            }
            Value::String(text) => self.read(text),
            Value::Array(items) => {
                for item in items {
                    self.read_json(item);
                }
            }
            Value::Object(object) if object.keys().any(|key| key.contains('<')) => {
                let mut keys = UniqueKeys::default();
                for (key, mut value) in mem::take(object) {
                    let key = self.strip_key(&key);
                    self.read_json(&mut value);
                    keys.insert(object, key, value);
                }
            }
            Value::Object(object) => {
                for value in object.values_mut() {
                    self.read_json(value);
                }
            }
        }
    }

    /// Strips a key. Regions that it leaves open continue through the following values.
    fn strip_key(&mut self, key: &str) -> String {
        let stripped = strip_text(key);
        self.regions_in_keys += stripped.removed.regions;
        self.private |= stripped.removed.private;
        self.texts.append(&stripped.removed.private_texts);
        if !self.is_open() {
            self.start = self.position;
        }
        for (depth, open) in self.depths.iter_mut().zip(stripped.open) {
            *depth += open;
        }
        stripped.text.into_owned()
    }

    /// Ends the open region, if any.
    fn finish(&mut self) {
        if self.is_open() {
            let (start, end) = (self.start, self.position);
            self.regions.push(Region { start, end });
        }
    }
}

/// Inserts entries into an object under unique keys.
#[derive(Default)]
pub(crate) struct UniqueKeys {
    /// The last number appended to each key.
    numbers: HashMap<String, usize>,
}

impl UniqueKeys {
    /// Inserts an entry; appends a number to a key that exists already.
    pub(crate) fn insert(&mut self, object: &mut Map<String, Value>, key: String, value: Value) {
        let mut unique = key;
        if object.contains_key(&unique) {
            let number = self.numbers.entry(unique.clone()).or_insert(1);
            let base = unique;
            loop {
                *number += 1;
                unique = format!("{base}#{number}");
                if !object.contains_key(&unique) {
                    break;
                }
            }
        }
        object.insert(unique, value);
    }
}

/// Finds the outermost closed injected elements.
///
/// Within a string, an open tag is matched with the close that balances it, else with the first
/// close of its name. Unmatched tags of one string may be matched with those of another.
#[derive(Default)]
struct InjectedElements {
    regions: Vec<Region>,
    /// For each name, the starts of unclosed elements.
    open: [Vec<usize>; INJECTED.len()],
    /// The start of the next value.
    position: usize,
}

impl InjectedElements {
    fn read_json(&mut self, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => self.position += 1,
            Value::String(text) => self.read(text),
            Value::Array(items) => items.iter().for_each(|item| self.read_json(item)),
            Value::Object(object) => object.values().for_each(|value| self.read_json(value)),
        }
    }

    /// Reads the next string.
    fn read(&mut self, text: &str) {
        let base = self.position;
        self.position += text.len();
        let tags: Vec<Tag> = Tags::new(text, &INJECTED).collect();
        if tags.is_empty() {
            return;
        }
        let ends = ends_of_elements(&tags);
        let mut inside = 0;
        for (tag, end) in tags.iter().zip(ends) {
            let start = base + tag.region.start;
            if start < inside {
                continue;
            }
            match (tag.kind, end) {
                (TagKind::Open | TagKind::Empty, Some(end)) => {
                    inside = base + end;
                    self.regions.push(Region { start, end: inside });
                }
                (TagKind::Open, None) => self.open[tag.name].push(start),
                (TagKind::Close, _) => {
                    if let Some(start) = self.open[tag.name].pop() {
                        let end = base + tag.region.end;
                        self.regions.push(Region { start, end });
                    }
                }
                (TagKind::Empty, None) => {}
            }
        }
    }

    /// Returns the outermost elements in order.
    fn finish(mut self) -> Vec<Region> {
        self.regions.sort_unstable_by_key(|region| region.start);
        let mut end = 0;
        self.regions.retain(|region| {
            let outside = region.start >= end;
            if outside {
                end = region.end;
            }
            outside
        });
        self.regions
    }
}

/// Returns for each tag of a string the end of the element that it opens, if that is closed.
fn ends_of_elements(tags: &[Tag]) -> Vec<Option<usize>> {
    let mut ends = vec![None; tags.len()];
    let mut open: [Vec<usize>; INJECTED.len()] = Default::default();
    for (index, tag) in tags.iter().enumerate() {
        match tag.kind {
            TagKind::Open => open[tag.name].push(index),
            TagKind::Close => {
                if let Some(opener) = open[tag.name].pop() {
                    ends[opener] = Some(tag.region.end);
                }
            }
            TagKind::Empty => ends[index] = Some(tag.region.end),
        }
    }
    let mut next_close = [None; INJECTED.len()];
    for (index, tag) in tags.iter().enumerate().rev() {
        match tag.kind {
            TagKind::Open => ends[index] = ends[index].or(next_close[tag.name]),
            TagKind::Close => next_close[tag.name] = Some(tag.region.end),
            TagKind::Empty => {}
        }
    }
    ends
}

/// Removes sorted, disjoint regions from a text or from the values of JSON.
struct Cutter<'r> {
    /// The regions that end after the position.
    regions: &'r [Region],
    /// The start of the next value.
    position: usize,
}

impl<'r> Cutter<'r> {
    fn new(regions: &'r [Region]) -> Self {
        let position = 0;
        Cutter { regions, position }
    }

    fn cut(&mut self, value: &mut Value) {
        if self.regions.is_empty() {
            return;
        }
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => {
                if self.covers() {
                    *value = Value::Null;
                }
                self.position += 1;
            }
            Value::String(text) => {
                if let Some(kept) = self.outside(text) {
                    *text = kept;
                }
            }
            Value::Array(items) => items.iter_mut().for_each(|item| self.cut(item)),
            Value::Object(object) => object.values_mut().for_each(|value| self.cut(value)),
        }
    }

    /// Returns the part of the next string outside the regions; `None` if that is all of it.
    fn outside(&mut self, text: &str) -> Option<String> {
        let base = self.position;
        self.position = base + text.len();
        self.skip_to(base);
        let first = self.regions.first()?;
        if first.start >= self.position {
            return None;
        }
        let mut kept = String::with_capacity(text.len());
        let mut from = 0;
        for region in self.regions {
            if region.start >= self.position {
                break;
            }
            let start = region.start.saturating_sub(base);
            kept.push_str(&text[from..start]);
            from = (region.end - base).min(text.len());
        }
        kept.push_str(&text[from..]);
        self.skip_to(self.position);
        Some(kept)
    }

    /// Returns whether a region covers the byte at the position.
    fn covers(&mut self) -> bool {
        self.skip_to(self.position);
        self.regions
            .first()
            .is_some_and(|region| region.start <= self.position)
    }

    fn skip_to(&mut self, position: usize) {
        let over = self
            .regions
            .iter()
            .take_while(|region| region.end <= position);
        self.regions = &self.regions[over.count()..];
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TagKind {
    Open,
    Close,
    Empty,
}

#[derive(Debug, Clone, Copy)]
struct Tag {
    /// The index of its name in the searched names.
    name: usize,
    kind: TagKind,
    region: Region,
}

/// Iterates over the tags with given names in a text.
struct Tags<'a> {
    text: &'a str,
    names: &'a [&'a str],
    position: usize,
}

impl<'a> Tags<'a> {
    fn new(text: &'a str, names: &'a [&'a str]) -> Self {
        // A tag ends with `>`, so the text after the last one is skipped.
        let start = text.find('<').unwrap_or(text.len());
        let end = text[start..].rfind('>').map_or(0, |last| start + last + 1);
        Tags {
            text: &text[..end],
            names,
            position: 0,
        }
    }
}

impl Iterator for Tags<'_> {
    type Item = Tag;

    fn next(&mut self) -> Option<Tag> {
        while let Some(offset) = self.text[self.position..].find('<') {
            let start = self.position + offset;
            self.position = start + 1;
            if let Some((name, kind, length)) = tag_at_start(&self.text[start..], self.names) {
                let end = start + length;
                self.position = end;
                let region = Region { start, end };
                return Some(Tag { name, kind, region });
            }
        }
        None
    }
}

/// Reads the tag that the text starts with. Returns its name, kind and length in bytes.
fn tag_at_start(text: &str, names: &[&str]) -> Option<(usize, TagKind, usize)> {
    let inner = text.strip_prefix('<')?;
    let (inner, is_close) = match inner.strip_prefix('/') {
        Some(inner) => (inner, true),
        None => (inner, false),
    };
    // The first byte rules out most other tags of markup.
    let first = inner.bytes().next()?.to_ascii_lowercase();
    let (name, rest) = names.iter().enumerate().find_map(|(index, name)| {
        if !name.as_bytes().starts_with(&[first]) {
            return None;
        }
        let (head, rest) = inner.split_at_checked(name.len())?;
        head.eq_ignore_ascii_case(name).then_some((index, rest))
    })?;
    if is_close {
        let rest = rest.trim_start().strip_prefix('>')?;
        return Some((name, TagKind::Close, text.len() - rest.len()));
    }
    if !rest.starts_with(|c: char| c.is_whitespace() || c == '/' || c == '>') {
        return None;
    }
    let attributes = end_of_attributes(rest)?;
    let is_empty = rest[..attributes].ends_with('/');
    let kind = if is_empty {
        TagKind::Empty
    } else {
        TagKind::Open
    };
    let length = text.len() - rest.len() + attributes + 1;
    Some((name, kind, length))
}

/// Returns the position of the `>` that ends an open tag.
///
/// A `>` in a quoted attribute value does not end the tag. If the quote is never closed, the first
/// `>` ends it, so a missing quote cannot disable a tag. No text after an unclosed quote contains
/// that quote again, which bounds the work.
fn end_of_attributes(text: &str) -> Option<usize> {
    let first = text.find('>')?;
    let mut position = 0;
    let mut previous = ' ';
    loop {
        let rest = &text[position..];
        let offset = rest.find(['>', '"', '\'', '='])?;
        let sign = rest[offset..].chars().next()?;
        let is_blank = rest[..offset].trim().is_empty();
        position += offset + 1;
        match sign {
            '>' => return Some(position - 1),
            '"' | '\'' if previous == '=' && is_blank => match text[position..].find(sign) {
                Some(length) => position += length + 1,
                None => return Some(first),
            },
            _ => {}
        }
        previous = sign;
    }
}

#[cfg(test)]
pub(crate) mod tests {

    use anamnesis_testkit::assert_linear;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn check(input: &str, expected: &str) {
        assert_eq!(strip(input).text, expected, "{input:?}");
    }

    #[test]
    fn text_without_regions_is_borrowed() {
        for text in ["", "Rename the helper in utils.rs", "if a < b && c > d {}"] {
            let stripped = strip(text);
            assert!(matches!(stripped.text, Cow::Borrowed(same) if same == text));
            assert_eq!((stripped.regions, stripped.private), (0, false));
        }
        check("  keep me  ", "keep me");
    }

    #[test]
    fn removes_regions_of_every_name() {
        for name in MARKED.iter().chain(&INJECTED) {
            let stripped_text = format!("before <{name}>inside</{name}> after");
            let stripped = strip(&stripped_text);
            assert_eq!(stripped.text, "before  after");
            assert_eq!(stripped.regions, 1);
            assert_eq!(stripped.private, *name == MARKED[PRIVATE]);
        }
    }

    #[test]
    fn text_around_regions_is_unchanged() {
        for (input, expected) in [
            ("open <private>pin 4821</private> close", "open  close"),
            ("then build <private>pin 4821</private>", "then build"),
            ("ab<private>cd</private>ef", "abef"),
            ("  <private>everything</private>\n", ""),
            (
                "<private>a</private>mid<claude-mem-context>b</claude-mem-context>",
                "mid",
            ),
            ("<private>a</private><private>b</private>", ""),
            (
                "<private>a</private><system-reminder>b</system-reminder>\
                 <claude-mem-context>c</claude-mem-context>tail",
                "tail",
            ),
            (
                "top\n<private>\nl1\nl2\n</private>\nbottom",
                "top\n\nbottom",
            ),
            (
                "top\r\n<private>\r\nl1\r\n</private>\r\nbottom",
                "top\r\n\r\nbottom",
            ),
            ("a\n\n<private>x</private>\n\nb", "a\n\n\n\nb"),
            ("```html\n<private>demo</private>\n```", "```html\n\n```"),
            ("let x: Vec<private> = y; // </private>", "let x: Vec"),
            (
                "<doc><private>1</private><public>2</public></doc>",
                "<doc><public>2</public></doc>",
            ),
            ("go 🚀<private>🔑</private>🚀", "go 🚀🚀"),
            ("שלום <private>סוד</private> עולם", "שלום  עולם"),
            ("e\u{301}<private>x</private>é", "e\u{301}é"),
        ] {
            check(input, expected);
        }
    }

    #[test]
    fn spellings_of_a_tag() {
        for input in [
            "a <private reason=\"k\">x</private> b",
            "a <private >x</private> b",
            "a <private\n>x</private> b",
            "a <PRIVATE>x</PRIVATE> b",
            "a <private>x</Private> b",
            "a <private>x</private \n> b",
            "a <private/> b",
            "a <private reason='k' /> b",
            "a <private note=\"1>0\">x</private> b",
            "a <private note = '1>0' other=2>x</private> b",
            "a <private it's>x</private> b",
            "a <private note=\"unclosed>x</private> b",
        ] {
            let stripped = strip(input);
            assert_eq!(stripped.text, "a  b", "{input:?}");
            assert!(stripped.private);
            assert_eq!(stripped.regions, 1);
        }
    }

    #[test]
    fn similar_tags_are_kept() {
        for text in [
            "do <secret>kept</secret> it",
            "do <privacy>kept</privacy> it",
            "<thinking>kept</thinking> ok",
            "<task-notification>done</task-notification>",
            "a < private>x</private> b",
            "a <private-note>x</private> b",
            "a <private.x>x</private> b",
            "ssh -i <private-key> host",
            "a &lt;private&gt;x&lt;/private&gt; b",
            "a <pri\u{200b}vate>x</pri\u{200b}vate> b",
            "a [private]x[/private] b",
            "a <private x",
            "a <privé>x",
        ] {
            check(text, text);
        }
    }

    #[test]
    fn nested_regions_are_counted() {
        for (input, expected) in [
            ("a <private>x <private>y</private> z</private> b", "a  b"),
            (
                "a <private>x <system-reminder>y</system-reminder> z</private> b",
                "a  b",
            ),
            (
                "a <claude-mem-context>x <private>y</private> z</claude-mem-context> b",
                "a  b",
            ),
            ("a <private>x</claude-mem-context> y</private> b", "a  b"),
            (
                "a <private>x <anamnesis-context>y</private> z</anamnesis-context> b",
                "a  b",
            ),
            ("a <private>x <private/> y</private> b", "a  b"),
        ] {
            let stripped = strip(input);
            assert_eq!(stripped.text, expected, "{input:?}");
            assert_eq!(stripped.regions, 1);
            assert!(stripped.private);
        }
    }

    /// CAP-03: an unclosed private region extends to the end of the text.
    #[test]
    fn an_unclosed_marked_region_extends_to_the_end() {
        for (input, expected) in [
            ("deploy <Private>with key K9", "deploy"),
            ("a\n<private>\npassword: p\n", "a"),
            ("a x</private> b", "a x</private> b"),
            ("a <private>x <private>y</private> b", "a"),
            ("a <private>x</priv", "a"),
            ("a <private>x</private extra> b", "a"),
            (
                "a <system-reminder>b <private>c</system-reminder> d</private> e",
                "a <system-reminder>b  e",
            ),
        ] {
            check(input, expected);
        }
        check(&format!("{}x", "<private>".repeat(120)), "");
    }

    #[test]
    fn an_injected_element_is_removed_only_if_closed() {
        for (input, expected) in [
            (
                "a <system-reminder>b <system-reminder>c</system-reminder> d</system-reminder> e",
                "a  e",
            ),
            (
                "a <system-reminder>b <system-reminder>c</system-reminder> d",
                "a  d",
            ),
            ("a <system-reminder>b", "a <system-reminder>b"),
            (
                "a <system-reminder>b</persisted-output> c",
                "a <system-reminder>b</persisted-output> c",
            ),
            ("a <persisted-output/> b", "a  b"),
        ] {
            check(input, expected);
        }
    }

    #[test]
    fn tags_formed_by_a_removal_are_removed() {
        check("a <pri<private>x</private>vate>leak</private> b", "a  b");
        check(
            "<claude-mem-<private></private>context>k</claude-mem-context> b",
            "b",
        );
        // Each pass takes off one layer: eight may come off, a ninth drops the text.
        let layered = |layers: usize| {
            let tag = (1..layers).fold(String::from("<private/>"), |tag, _| {
                format!("<pri{tag}vate/>")
            });
            format!("{tag} kept")
        };
        check(&layered(MAX_PASSES), "kept");
        check(&layered(MAX_PASSES + 1), "");
    }

    #[test]
    fn over_a_hundred_regions_are_removed() {
        let many: Vec<String> = (0..150)
            .map(|n| format!("<private>s{n}</private>w{n} "))
            .collect();
        let many = many.concat();
        let stripped = strip(&many);
        let words: Vec<String> = (0..150).map(|n| format!("w{n}")).collect();
        assert_eq!(stripped.text, words.join(" "));
        assert_eq!(stripped.regions, 150);
    }

    /// Sixteen times the text may cost sixteen times the work, not more.
    #[test]
    fn the_work_is_linear() {
        for unit in [
            "<private>",
            "<private ",
            "<private a=\"",
            "<private a='>",
            "<private a=\"<private a='>",
            "</private>",
            "<system-reminder>",
            "<system-reminder><system-reminder></system-reminder>",
            "<persisted-output a=\">",
            "<pri<private/>vate/>",
            "<<<<<<<<",
        ] {
            let small = unit.repeat((1 << 16) / unit.len());
            let large = small.repeat(16);
            assert_linear(unit, || strip(&small), || strip(&large));
        }
    }

    /// Inputs of both kinds with their expected output.
    #[test]
    fn specification_cases() {
        let cases: Vec<HashMap<String, String>> =
            serde_json::from_str(include_str!("../tests/fixtures/tag_stripping.json")).unwrap();
        assert!(cases.len() > 60);
        for case in cases {
            let (id, input, output) = (&case["id"], &case["input"], &case["output"]);
            match serde_json::from_str::<Value>(input) {
                Ok(mut value) => {
                    strip_json(&mut value);
                    let expected: Value = serde_json::from_str(output).unwrap();
                    assert_eq!(value, expected, "{id}");
                }
                Err(_) => assert_eq!(strip(input).text, output.as_str(), "{id}"),
            }
        }
    }

    fn check_json(mut input: Value, expected: &Value) {
        let before = input.clone();
        let removed = strip_json(&mut input);
        assert_eq!(&input, expected, "{before}");
        assert_eq!(removed.regions > 0, input != before, "{before}");
    }

    #[test]
    fn an_open_region_continues_through_following_values() {
        for (input, expected) in [
            (
                json!({"lines": ["x", "<private>", "k=1", "</private>", "y"]}),
                json!({"lines": ["x", "", "", "", "y"]}),
            ),
            (
                json!({"a": "x <private>y", "b": [1, true, null, {"c": "z"}], "d": "w</private> v", "e": 2}),
                json!({"a": "x ", "b": [null, null, null, {"c": ""}], "d": " v", "e": 2}),
            ),
            (
                json!(["<PRIVATE>a", "<private>b</private>", "c</private>d"]),
                json!(["", "", "d"]),
            ),
            (json!(["a <private>b", "c", 3]), json!(["a ", "", null])),
            (
                json!(["<private>", 1, "</private>", 2]),
                json!(["", null, "", 2]),
            ),
            (
                json!(["a</private>", "b", "<private/>", 1]),
                json!(["a</private>", "b", "", 1]),
            ),
            (
                json!([
                    "<claude-mem-context>a",
                    "</private>b",
                    "</claude-mem-context>c"
                ]),
                json!(["", "", "c"]),
            ),
            (json!("  <private>x</private> y "), json!("   y ")),
            (
                json!(["a <pri<private>x</private>vate>", "y", "</private>z"]),
                json!(["a ", "", "z"]),
            ),
            // A tag must be inside one string.
            (json!(["<pri", "vate>", "x"]), json!(["<pri", "vate>", "x"])),
        ] {
            check_json(input, &expected);
        }
    }

    #[test]
    fn keys_are_stripped_separately() {
        for (input, expected) in [
            (
                json!({"a<private>b</private>": 1, "a": 2, "a<private/>": 3}),
                json!({"a": 1, "a#2": 2, "a#3": 3}),
            ),
            (
                json!({"<private>x</private>": 1, "<private>y</private>": 2}),
                json!({"": 1, "#2": 2}),
            ),
            // Keys in an open region are kept.
            (
                json!({"a": "<private>x", "key": "y", "b": "</private>z"}),
                json!({"a": "", "key": "", "b": "z"}),
            ),
            // A close in a key ends only a region that the key opened.
            (
                json!({"a": "<private>x", "b</private>": "y"}),
                json!({"a": "", "b</private>": ""}),
            ),
            // A region that a key leaves open continues through the following values.
            (
                json!({"a": 0, "b<private>c": 1, "d": ["x", "y</private>z"], "e": 2}),
                json!({"a": 0, "b": null, "d": ["", "z"], "e": 2}),
            ),
            (
                json!([{"<private>": "x"}, "y", 5]),
                json!([{"": ""}, "", null]),
            ),
        ] {
            check_json(input, &expected);
        }
    }

    #[test]
    fn an_injected_element_may_span_values_if_it_balances() {
        for (input, expected) in [
            (
                json!(["a <system-reminder>b", 1, "c</system-reminder> d", 2]),
                json!(["a ", null, " d", 2]),
            ),
            (
                json!(["<system-reminder>a", "b"]),
                json!(["<system-reminder>a", "b"]),
            ),
            (
                json!(["a</system-reminder>", "<system-reminder>b"]),
                json!(["a</system-reminder>", "<system-reminder>b"]),
            ),
            // An element closed in its own string does not take the tags of another one.
            (
                json!([
                    "<system-reminder>a",
                    "b <system-reminder>c</system-reminder>"
                ]),
                json!(["<system-reminder>a", "b "]),
            ),
            (
                json!(["<system-reminder>a", "</persisted-output>b"]),
                json!(["<system-reminder>a", "</persisted-output>b"]),
            ),
        ] {
            check_json(input, &expected);
        }
    }

    #[test]
    fn json_that_needs_too_many_passes_is_dropped() {
        let layered = |layers: usize| {
            (1..layers).fold(String::from("<private/>"), |tag, _| {
                format!("<pri{tag}vate/>")
            })
        };
        check_json(json!([layered(MAX_PASSES), 1]), &json!(["", 1]));
        check_json(json!([layered(MAX_PASSES + 1), 1]), &Value::Null);
    }

    #[test]
    fn private_texts_are_what_a_person_marked() {
        let stripped = strip(
            "a <private>b <private>c</private> d</private> e <claude-mem-context>f <private>g</private> h</claude-mem-context> <private/> <system-reminder>i</system-reminder> <private>j",
        );
        assert_eq!(*stripped.private_texts, ["b ", "c", " d", "g", "j"]);
        let shown = format!("{:?}", stripped.private_texts);
        assert_eq!(shown, "PrivateTexts(5)");
        let mut value = json!({"a": "x <private>y", "b": [12_345, null], "c": "z</private>w", "d<private>e</private>": 1});
        assert_eq!(
            *strip_json(&mut value).private_texts,
            ["y", "12345", "z", "e"]
        );
        let long = format!("<private>{}</private>", "é ".repeat(MAX_PRIVATE_TEXT));
        let length: usize = strip(&long).private_texts.iter().map(String::len).sum();
        assert!((MAX_PRIVATE_TEXT - 2..=MAX_PRIVATE_TEXT).contains(&length));
    }

    /// Sixteen times the JSON may cost sixteen times the work, not more.
    #[test]
    fn the_work_on_json_is_linear() {
        for unit in [
            "<private>",
            "<private></private>",
            "<system-reminder>",
            "</system-reminder>",
            "<pri<private/>vate/>",
            "word",
        ] {
            let items = |count: usize| Value::from(vec![unit; count]);
            let keys = |count: usize| -> Value {
                (0..count)
                    .map(|n| (format!("{unit}{}", n % 7), json!(unit)))
                    .collect()
            };
            let (small, large) = (items(1 << 12), items(1 << 16));
            assert_linear(
                unit,
                || strip_json(&mut small.clone()),
                || strip_json(&mut large.clone()),
            );
            let (small, large) = (keys(1 << 12), keys(1 << 16));
            assert_linear(
                unit,
                || strip_json(&mut small.clone()),
                || strip_json(&mut large.clone()),
            );
        }
        let equal = |count: usize| -> Value {
            (0..count)
                .map(|n| (format!("<private>{n}</private>"), json!(n)))
                .collect()
        };
        let (small, large) = (equal(1 << 12), equal(1 << 16));
        assert_linear(
            "equal keys",
            || strip_json(&mut small.clone()),
            || strip_json(&mut large.clone()),
        );
    }

    /// JSON whose strings and keys are made of tags and tag fragments.
    pub(crate) fn tagged_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            3 => tagged().prop_map(Value::from),
            1 => any::<i32>().prop_map(Value::from),
            1 => any::<bool>().prop_map(Value::from),
            1 => Just(Value::Null),
        ];
        leaf.prop_recursive(4, 24, 5, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
                prop::collection::vec((prop_oneof!["[a-c]{1,2}", tagged()], inner), 0..5)
                    .prop_map(|entries| entries.into_iter().collect()),
            ]
        })
    }

    /// The structure of JSON, which stripping keeps.
    fn shape(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(shape).collect(),
            Value::Object(object) => object.values().map(shape).collect(),
            Value::String(_) => json!("string"),
            _ => Value::Null,
        }
    }

    /// Text made of tags and tag fragments.
    fn tagged() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec![
            "<private>",
            "</private>",
            "<private/>",
            "<PRIVATE a=\">\">",
            "<private a='",
            "<pri",
            "vate>",
            "</",
            "<",
            ">",
            "/",
            "\"",
            "'",
            "=",
            " ",
            "\n",
            "word",
            "é",
            "<anamnesis-context>",
            "</anamnesis-context>",
            "<system-reminder>",
            "</system-reminder>",
            "<persisted-output >",
            "</persisted-output>",
        ]);
        prop::collection::vec(parts, 0..30).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn stripping_is_idempotent(text in prop_oneof![tagged(), any::<String>()]) {
            let once = strip(&text);
            let twice = strip(&once.text);
            prop_assert_eq!(&once.text, &twice.text);
            prop_assert_eq!((twice.regions, twice.private), (0, false));
        }

        #[test]
        fn stripping_json_is_idempotent(value in tagged_json()) {
            let mut once = value.clone();
            let removed = strip_json(&mut once);
            prop_assert_eq!(removed.private_texts.is_empty() || removed.private, true);
            let mut twice = once.clone();
            prop_assert_eq!(strip_json(&mut twice), RemovedRegions::default());
            prop_assert_eq!(&twice, &once);
            if !once.is_null() {
                prop_assert_eq!(shape(&once), shape(&value));
            }
        }

        #[test]
        fn a_json_string_is_stripped_like_a_text(text in tagged()) {
            let mut value = Value::from(text.as_str());
            let removed = strip_json(&mut value);
            let stripped = strip(&text);
            prop_assert_eq!(value.as_str().unwrap_or_default().trim(), stripped.text);
            prop_assert_eq!(removed.regions, stripped.regions);
        }

                /// The marker is in the value after an open tag, at any depth.
        #[test]
        fn a_private_value_is_always_removed(before in tagged_json(), inside in tagged_json(), after in tagged_json()) {
            let inside: Value = serde_json::from_str(&inside.to_string().replace('/', "")).unwrap();
            let mut value = json!([before, {"a": "\"'><private>"}, [inside, {"b": ["\"'>MARKER"]}], after]);
            strip_json(&mut value);
            prop_assert!(!value.to_string().contains("MARKER"), "{value}");
        }

                /// The marker is in a region that is unclosed or closed after the marker.
        #[test]
        fn a_private_word_is_always_removed(before in tagged(), inside in tagged(), after in tagged()) {
                        // Without closes, nothing before the marker can end the region.
            let inside = inside.replace('/', "");
            let text = format!("{before}\"'><private>{inside}\"'>MARKER{after}");
            let stripped = strip(&text);
            prop_assert!(!stripped.text.contains("MARKER"), "{text:?}: {stripped:?}");
        }
    }
}
