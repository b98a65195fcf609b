//! Removes what a person marked as private, and what was injected rather than said.
//!
//! Two kinds of tags are known. **Marked** regions (`<private>` and our own context tags) fail
//! closed: one that is not closed takes everything to the end of the text. **Injected** elements
//! (`<system-reminder>` and the like) are removed only when they are closed.
//!
//! JSON is stripped as values, never as serialised text: a tag stands within one string, but a
//! region goes on through the values that follow, in the order in which they are written. Keys are
//! stripped for themselves.
//!
//! Nothing may look at a text before it has passed here: not a log, not a hash, and above all not
//! a cut, which could part an open tag from its close. Invariants: stripping twice is stripping
//! once, structure stays, and the work is linear in the length of the text.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::ops::Deref;

use serde_json::{Map, Value};

/// Tags whose regions are counted together and never left open: the first one is a person's mark,
/// the others fence text that a memory put into the session.
const MARKED: [&str; 3] = ["private", "anamnesis-context", "claude-mem-context"];

/// The position of a person's mark in [`MARKED`].
const PRIVATE: usize = 0;

/// Tags that the client wraps around text of its own.
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

/// How often a removal may put a new tag together before the text is taken for an attack.
const MAX_PASSES: usize = 8;

/// A text with more regions than this deserves a line in the log.
const MANY_REGIONS: usize = 100;

/// How much private text is held for recognizing it later, in bytes.
const MAX_PRIVATE_TEXT: usize = 64 * 1024;

/// A text without its private and injected regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped<'a> {
    /// What is left, trimmed at both ends.
    pub text: Cow<'a, str>,
    /// How many regions were removed; regions inside another one are not counted.
    pub regions: usize,
    /// Whether a person marked any part of the text as private.
    pub private: bool,
    /// What stood in regions that a person marked.
    pub private_texts: PrivateTexts,
}

/// What was taken out of JSON.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    /// How many regions were removed; regions inside another one are not counted.
    pub regions: usize,
    /// Whether a person marked any part as private.
    pub private: bool,
    /// What stood in regions that a person marked.
    pub private_texts: PrivateTexts,
}

/// What a person marked as private, in the order of the text: never to be stored or shown.
///
/// Holds the first 64 KiB. `Debug` tells how many pieces there are, not what they say.
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

impl Removed {
    /// Tells whether there were over a hundred regions, which nobody writes by hand.
    pub fn is_many(&self) -> bool {
        self.regions > MANY_REGIONS
    }

    /// Adds what another removal took out of the same text.
    pub fn add(&mut self, other: &Self) {
        self.regions += other.regions;
        self.private |= other.private;
        self.private_texts.append(&other.private_texts);
    }

    fn add_marked(&mut self, marked: &Marked) {
        self.regions += marked.regions.len() + marked.regions_in_keys;
        self.private |= marked.private;
        self.private_texts.append(&marked.texts);
    }
}

/// Removes private, context and injected regions, until none is left.
///
/// A text that still changes after eight passes is dropped as a whole.
///
/// ```
/// let stripped = crate::privacy::strip("deploy <private>with K9</private> today");
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

/// Removes private, context and injected regions from the values and keys of JSON, until none is
/// left.
///
/// A marked region that is open at the end of a string goes on through the following values: of
/// strings stays what stands outside it, numbers and booleans become `null`, keys and structure
/// stay. An injected element may span values, too, if its tags balance. Strings are not trimmed.
///
/// Keys are stripped for themselves; one that leaves a region open opens it for the values that
/// follow. Keys of one object that become equal are numbered: `name`, `name#2`, `name#3`.
///
/// JSON that still changes after eight passes becomes `null`.
///
/// ```
/// let mut value = serde_json::json!({"lines": ["x", "<private>", "k=1", "</private>", "y"]});
/// crate::privacy::strip_json(&mut value);
/// assert_eq!(value, serde_json::json!({"lines": ["x", "", "", "", "y"]}));
/// ```
pub fn strip_json(value: &mut Value) -> Removed {
    let mut removed = Removed::default();
    if !json_has_tags(value) {
        return removed;
    }
    for _ in 0..=MAX_PASSES {
        let mut marked = Marked::default();
        marked.read_json(value);
        marked.finish();
        removed.add_marked(&marked);
        Cutter::new(&marked.regions).cut(value);
        let mut injected = Injected::default();
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

/// Tells whether there is any tag: one look, where there is none, in place of one for each kind.
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
    removed: Removed,
    /// How many regions of each marked name were open at the end.
    open: [usize; MARKED.len()],
}

fn strip_text(text: &str) -> StrippedText<'_> {
    let mut stripped = StrippedText {
        text: Cow::Borrowed(text),
        removed: Removed::default(),
        open: [0; MARKED.len()],
    };
    if !has_tags(text) {
        return stripped;
    }
    for _ in 0..=MAX_PASSES {
        let mut marked = Marked::default();
        marked.read(&stripped.text);
        for (open, depth) in stripped.open.iter_mut().zip(marked.depths) {
            *open += depth;
        }
        marked.finish();
        stripped.removed.add_marked(&marked);
        stripped.cut(&marked.regions);
        let mut injected = Injected::default();
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

/// A stretch of the text in bytes, or of the values of JSON as if they were one text, in which a
/// number or a boolean takes one byte. In a string both ends are on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    start: usize,
    end: usize,
}

/// Finds the outermost marked regions.
///
/// Opens are counted for each name, so that a stray close of one name cannot end the region of
/// another.
#[derive(Default)]
struct Marked {
    regions: Vec<Region>,
    regions_in_keys: usize,
    private: bool,
    texts: PrivateTexts,
    depths: [usize; MARKED.len()],
    /// Where the region that is open now began.
    start: usize,
    /// Where the next value begins.
    position: usize,
}

impl Marked {
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

    /// Reads the values of JSON, and strips its keys.
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
                let mut keys = Keys::default();
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

    /// Strips a key; what it leaves open is open for the values that follow.
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

    /// Ends the region that is still open.
    fn finish(&mut self) {
        if self.is_open() {
            let (start, end) = (self.start, self.position);
            self.regions.push(Region { start, end });
        }
    }
}

/// Puts entries into an object so that none of them replaces another.
#[derive(Default)]
pub(crate) struct Keys {
    /// The last number given to each key.
    numbers: HashMap<String, usize>,
}

impl Keys {
    /// Inserts an entry; a key that is there already gets a number.
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

/// Finds the outermost injected elements that are closed.
///
/// Within one string an open tag belongs to the close that balances it, else to the first close of
/// its name. What is left over in that string may balance with what is left over in another one.
#[derive(Default)]
struct Injected {
    regions: Vec<Region>,
    /// For each name where the elements begin that no close has ended so far.
    open: [Vec<usize>; INJECTED.len()],
    /// Where the next value begins.
    position: usize,
}

impl Injected {
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

/// Returns where the element ends that each of the tags of one string opens, if it is closed.
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

/// Takes regions, which are in order and apart, out of a text or of the values of JSON.
struct Cutter<'r> {
    /// The regions that end after the position.
    regions: &'r [Region],
    /// Where the next value begins.
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

    /// Returns what of the next string stands outside the regions, unless all of it does.
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

    /// Tells whether a region covers the byte at the position.
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
    /// The position of its name in the list of names looked for.
    name: usize,
    kind: TagKind,
    region: Region,
}

/// The tags of some names in a text, in order.
struct Tags<'a> {
    text: &'a str,
    names: &'a [&'a str],
    position: usize,
}

impl<'a> Tags<'a> {
    fn new(text: &'a str, names: &'a [&'a str]) -> Self {
        // Without a `>` after it no tag is finished, so text past the last one needs no look.
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

/// Reads one tag, which starts with `<`, and returns its name, its kind and its length in bytes.
fn tag_at_start(text: &str, names: &[&str]) -> Option<(usize, TagKind, usize)> {
    let inner = text.strip_prefix('<')?;
    let (inner, is_close) = match inner.strip_prefix('/') {
        Some(inner) => (inner, true),
        None => (inner, false),
    };
    // Markup is full of other tags: one byte tells most of them apart.
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
/// A `>` inside a quoted attribute value does not end it, unless the quote is never closed: then
/// the first `>` counts, so that a forgotten quote cannot undo a tag. A quote that finds no end
/// leaves none of its kind behind it, which bounds the text looked at twice.
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

    /// PR-1.
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
    fn surroundings_stay_as_they_are() {
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

    /// PR-2.
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
    fn look_alikes_are_no_tags() {
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

    /// PR-3.
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

    /// PR-4, CAP-03.
    #[test]
    fn what_is_marked_and_not_closed_ends_with_the_text() {
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
    fn what_is_injected_goes_only_when_closed() {
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

    /// PR-5.
    #[test]
    fn tags_put_together_by_a_removal_are_removed() {
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

    /// PR-6.
    #[test]
    fn a_hundred_regions_are_no_limit() {
        let many: Vec<String> = (0..150)
            .map(|n| format!("<private>s{n}</private>w{n} "))
            .collect();
        let many = many.concat();
        let stripped = strip(&many);
        let words: Vec<String> = (0..150).map(|n| format!("w{n}")).collect();
        assert_eq!(stripped.text, words.join(" "));
        assert_eq!(stripped.regions, 150);
    }

    /// PR-6: twice the text may cost twice the work, not four times.
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

    /// Inputs of either kind with what is to be left of them.
    #[test]
    fn the_cases_of_the_specification() {
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

    /// PR-7.
    #[test]
    fn a_region_goes_on_through_the_values_that_follow() {
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
            // A tag stands in one string.
            (json!(["<pri", "vate>", "x"]), json!(["<pri", "vate>", "x"])),
        ] {
            check_json(input, &expected);
        }
    }

    /// PR-7.
    #[test]
    fn keys_are_stripped_for_themselves() {
        for (input, expected) in [
            (
                json!({"a<private>b</private>": 1, "a": 2, "a<private/>": 3}),
                json!({"a": 1, "a#2": 2, "a#3": 3}),
            ),
            (
                json!({"<private>x</private>": 1, "<private>y</private>": 2}),
                json!({"": 1, "#2": 2}),
            ),
            // Keys in an open region stay.
            (
                json!({"a": "<private>x", "key": "y", "b": "</private>z"}),
                json!({"a": "", "key": "", "b": "z"}),
            ),
            // A close in a key ends nothing but what that key opened.
            (
                json!({"a": "<private>x", "b</private>": "y"}),
                json!({"a": "", "b</private>": ""}),
            ),
            // What a key leaves open is open for the values after it.
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
            // What is closed in its own string does not reach for another one's tags.
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

    /// PR-5.
    #[test]
    fn json_that_does_not_settle_is_dropped() {
        let layered = |layers: usize| {
            (1..layers).fold(String::from("<private/>"), |tag, _| {
                format!("<pri{tag}vate/>")
            })
        };
        check_json(json!([layered(MAX_PASSES), 1]), &json!(["", 1]));
        check_json(json!([layered(MAX_PASSES + 1), 1]), &Value::Null);
    }

    /// PR-9.
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

    /// PR-6: twice the JSON may cost twice the work, not four times.
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

    /// JSON whose strings and keys are made of tags and of pieces of tags.
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

    /// The shape of JSON: what of it stays whatever is marked.
    fn shape(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(shape).collect(),
            Value::Object(object) => object.values().map(shape).collect(),
            Value::String(_) => json!("string"),
            _ => Value::Null,
        }
    }

    /// Text made of tags and of pieces of tags.
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
        fn stripping_twice_is_stripping_once(text in prop_oneof![tagged(), any::<String>()]) {
            let once = strip(&text);
            let twice = strip(&once.text);
            prop_assert_eq!(&once.text, &twice.text);
            prop_assert_eq!((twice.regions, twice.private), (0, false));
        }

        #[test]
        fn stripping_json_twice_is_stripping_it_once(value in tagged_json()) {
            let mut once = value.clone();
            let removed = strip_json(&mut once);
            prop_assert_eq!(removed.private_texts.is_empty() || removed.private, true);
            let mut twice = once.clone();
            prop_assert_eq!(strip_json(&mut twice), Removed::default());
            prop_assert_eq!(&twice, &once);
            if !once.is_null() {
                prop_assert_eq!(shape(&once), shape(&value));
            }
        }

        #[test]
        fn one_string_is_stripped_like_a_text(text in tagged()) {
            let mut value = Value::from(text.as_str());
            let removed = strip_json(&mut value);
            let stripped = strip(&text);
            prop_assert_eq!(value.as_str().unwrap_or_default().trim(), stripped.text);
            prop_assert_eq!(removed.regions, stripped.regions);
        }

        /// The marker is the value after an open tag, however deep either of them stands.
        #[test]
        fn a_marked_value_never_comes_out(before in tagged_json(), inside in tagged_json(), after in tagged_json()) {
            let inside: Value = serde_json::from_str(&inside.to_string().replace('/', "")).unwrap();
            let mut value = json!([before, {"a": "\"'><private>"}, [inside, {"b": ["\"'>MARKER"]}], after]);
            strip_json(&mut value);
            prop_assert!(!value.to_string().contains("MARKER"), "{value}");
        }

        /// The marker stands in a region that is open, or is closed only after it.
        #[test]
        fn a_marked_word_never_comes_out(before in tagged(), inside in tagged(), after in tagged()) {
            // Closes in front of the marker could end the region before it.
            let inside = inside.replace('/', "");
            let text = format!("{before}\"'><private>{inside}\"'>MARKER{after}");
            let stripped = strip(&text);
            prop_assert!(!stripped.text.contains("MARKER"), "{text:?}: {stripped:?}");
        }
    }
}
