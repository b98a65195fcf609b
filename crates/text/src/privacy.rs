//! Removes private regions and injected text.
//!
//! There are two kinds of tags. **Marked** regions (`<private>` and context tags) fail closed: an
//! unclosed one extends to the end of the text. **Injected** elements (`<system-reminder>` and
//! similar) are removed only if they are closed.
//!
//! JSON is stripped as the list of its names and values, never as serialised text. A tag must be
//! inside one of them, but an open region continues through the following ones.
//!
//! Nothing may read a text before it passes here: no log, no hash, and no truncation, which could
//! separate an open tag from its close. Invariants: stripping is idempotent, keeps the number of
//! texts and takes linear time.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

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
    /// The removed regions.
    pub removed: RemovedRegions,
}

impl Deref for Stripped<'_> {
    type Target = RemovedRegions;

    fn deref(&self) -> &RemovedRegions {
        &self.removed
    }
}

/// The regions removed from one or several texts.
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
        self.regions += marked.regions.len();
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
    let text = text.trim();
    if !has_tags(text) {
        return Stripped {
            text: Cow::Borrowed(text),
            removed: RemovedRegions::default(),
        };
    }
    let mut text = text.to_owned();
    let removed = strip_all(&mut [&mut text]);
    Stripped {
        text: Cow::Owned(text.trim().to_owned()),
        removed,
    }
}

/// Removes private, context and injected regions from a list of texts until none is left.
///
/// A marked region that is open at the end of a text continues through the following texts. An
/// injected element may span texts if its tags balance. Texts are not trimmed.
///
/// If they still change after eight passes, all texts become empty.
///
/// ```
/// let mut lines = ["x", "<private>", "k=1", "</private>", "y"].map(String::from);
/// anamnesis_text::privacy::strip_all(&mut lines.each_mut());
/// assert_eq!(lines, ["x", "", "", "", "y"]);
/// ```
pub fn strip_all(texts: &mut [&mut String]) -> RemovedRegions {
    let mut removed = RemovedRegions::default();
    if !texts.iter().any(|text| has_tags(text)) {
        return removed;
    }
    for _ in 0..=MAX_PASSES {
        let mut marked = MarkedRegions::default();
        for text in texts.iter() {
            marked.read(text);
        }
        marked.finish();
        removed.add_marked(&marked);
        cut(texts, &marked.regions);
        let mut injected = InjectedElements::default();
        for text in texts.iter() {
            injected.read(text);
        }
        let injected = injected.finish();
        removed.regions += injected.len();
        cut(texts, &injected);
        if marked.regions.is_empty() && injected.is_empty() {
            return removed;
        }
    }
    for text in texts {
        text.clear();
    }
    removed
}

/// Returns whether there is any tag. One search for all kinds makes the common case fast.
fn has_tags(text: &str) -> bool {
    Tags::new(text, &MARKED_AND_INJECTED).next().is_some()
}

/// A range of bytes in all texts taken as one. Both ends are character boundaries.
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
    private: bool,
    texts: PrivateTexts,
    depths: [usize; MARKED.len()],
    /// The start of the open region.
    start: usize,
    /// The start of the next text.
    position: usize,
}

impl MarkedRegions {
    fn is_open(&self) -> bool {
        self.depths != [0; MARKED.len()]
    }

    /// Reads the next text.
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

    /// Ends the open region, if any.
    fn finish(&mut self) {
        if self.is_open() {
            let (start, end) = (self.start, self.position);
            self.regions.push(Region { start, end });
        }
    }
}

/// Finds the outermost closed injected elements.
///
/// Within a text, an open tag is matched with the close that balances it, else with the first
/// close of its name. Unmatched tags of one text may be matched with those of another.
#[derive(Default)]
struct InjectedElements {
    regions: Vec<Region>,
    /// For each name, the starts of unclosed elements.
    open: [Vec<usize>; INJECTED.len()],
    /// The start of the next text.
    position: usize,
}

impl InjectedElements {
    /// Reads the next text.
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

/// Returns for each tag of a text the end of the element that it opens, if that is closed.
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

/// Removes sorted, disjoint regions.
fn cut(texts: &mut [&mut String], mut regions: &[Region]) {
    let mut end = 0;
    for text in texts {
        let base = end;
        end += text.len();
        let before = regions.iter().take_while(|region| region.end <= base);
        regions = &regions[before.count()..];
        let mut kept = String::new();
        let mut from = 0;
        for region in regions.iter().take_while(|region| region.start < end) {
            kept.push_str(&text[from..region.start.saturating_sub(base)]);
            from = (region.end - base).min(text.len());
        }
        if from > 0 {
            kept.push_str(&text[from..]);
            **text = kept;
        }
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
    use std::collections::HashMap;

    use anamnesis_testkit::assert_linear;
    use proptest::prelude::*;
    use serde_json::{Value, json};

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
                Ok(value) => {
                    let mut texts = texts_of(&value);
                    strip_texts(&mut texts);
                    let expected: Value = serde_json::from_str(output).unwrap();
                    assert_eq!(texts, texts_of(&expected), "{id}");
                }
                Err(_) => assert_eq!(strip(input).text, output.as_str(), "{id}"),
            }
        }
    }

    /// The texts and numbers of JSON.
    fn texts_of(value: &Value) -> Vec<String> {
        match value {
            Value::Null | Value::Bool(_) => Vec::new(),
            Value::Number(number) => vec![number.to_string()],
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items.iter().flat_map(texts_of).collect(),
            Value::Object(object) => object.values().flat_map(texts_of).collect(),
        }
    }

    fn strip_texts(texts: &mut [String]) -> RemovedRegions {
        strip_all(&mut texts.iter_mut().collect::<Vec<_>>())
    }

    fn check_texts(texts: &[&str], expected: &[&str]) {
        let mut stripped: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        let removed = strip_texts(&mut stripped);
        assert_eq!(stripped, expected, "{texts:?}");
        assert_eq!(removed.regions > 0, texts != expected, "{texts:?}");
    }

    #[test]
    fn an_open_region_continues_through_following_texts() {
        for (texts, expected) in [
            (
                &["x", "<private>", "k=1", "</private>", "y"][..],
                &["x", "", "", "", "y"][..],
            ),
            (
                &["x <private>y", "1", "z", "w</private> v", "2"],
                &["x ", "", "", " v", "2"],
            ),
            (
                &["<PRIVATE>a", "<private>b</private>", "c</private>d"],
                &["", "", "d"],
            ),
            (&["a <private>b", "c", "3"], &["a ", "", ""]),
            (
                &["a</private>", "b", "<private/>", "1"],
                &["a</private>", "b", "", "1"],
            ),
            (
                &[
                    "<claude-mem-context>a",
                    "</private>b",
                    "</claude-mem-context>c",
                ],
                &["", "", "c"],
            ),
            (&["  <private>x</private> y "], &["   y "]),
            (
                &["a <pri<private>x</private>vate>", "y", "</private>z"],
                &["a ", "", "z"],
            ),
            // A tag must be inside one text.
            (&["<pri", "vate>", "x"], &["<pri", "vate>", "x"]),
        ] {
            check_texts(texts, expected);
        }
    }

    #[test]
    fn an_injected_element_may_span_texts_if_it_balances() {
        for (texts, expected) in [
            (
                &["a <system-reminder>b", "1", "c</system-reminder> d", "2"][..],
                &["a ", "", " d", "2"][..],
            ),
            (&["<system-reminder>a", "b"], &["<system-reminder>a", "b"]),
            (
                &["a</system-reminder>", "<system-reminder>b"],
                &["a</system-reminder>", "<system-reminder>b"],
            ),
            // An element closed in its own text does not take the tags of another one.
            (
                &[
                    "<system-reminder>a",
                    "b <system-reminder>c</system-reminder>",
                ],
                &["<system-reminder>a", "b "],
            ),
            (
                &["<system-reminder>a", "</persisted-output>b"],
                &["<system-reminder>a", "</persisted-output>b"],
            ),
        ] {
            check_texts(texts, expected);
        }
    }

    #[test]
    fn texts_that_need_too_many_passes_are_dropped() {
        let layered = |layers: usize| {
            (1..layers).fold(String::from("<private/>"), |tag, _| {
                format!("<pri{tag}vate/>")
            })
        };
        check_texts(&[&layered(MAX_PASSES), "1"], &["", "1"]);
        check_texts(&[&layered(MAX_PASSES + 1), "1"], &["", ""]);
    }

    #[test]
    fn private_texts_are_what_a_person_marked() {
        let stripped = strip(
            "a <private>b <private>c</private> d</private> e <claude-mem-context>f <private>g</private> h</claude-mem-context> <private/> <system-reminder>i</system-reminder> <private>j",
        );
        assert_eq!(*stripped.private_texts, ["b ", "c", " d", "g", "j"]);
        let shown = format!("{:?}", stripped.private_texts);
        assert_eq!(shown, "PrivateTexts(5)");
        let texts = [
            "x <private>y",
            "12345",
            "z</private>w",
            "d<private>e</private>",
        ];
        let removed = strip_texts(&mut texts.map(String::from));
        assert_eq!(*removed.private_texts, ["y", "12345", "z", "e"]);
        let long = format!("<private>{}</private>", "é ".repeat(MAX_PRIVATE_TEXT));
        let kept = |text: &str| {
            strip(text)
                .private_texts
                .iter()
                .map(String::len)
                .sum::<usize>()
        };
        assert!((65_534..=65_536).contains(&kept(&long)));
        // The limit holds for all pieces together.
        let piece = format!("<private>{}</private>", "x".repeat(20_000));
        assert_eq!(kept(&piece.repeat(3)), 60_000);
        assert_eq!(kept(&piece.repeat(5)), 65_536);
    }

    #[test]
    fn a_hundred_regions_are_not_suspicious() {
        let region = "<private>x</private>";
        let removed = |regions: usize| strip_texts(&mut [region.repeat(regions)]);
        assert!(!removed(100).is_suspicious());
        assert!(removed(101).is_suspicious());
    }

    #[test]
    fn only_a_quote_after_an_equals_sign_begins_a_value() {
        check("a <private it\"s>x</private> b \" c > d", "a  b \" c > d");
        check("a <private \"say>x</private> b \" c > d", "a  b \" c > d");
        // `/>` in a value does not end the tag, so the region is not empty.
        check("a <private note=\"1/>0\">x</private> b", "a  b");
    }

    /// Sixteen times the texts may cost sixteen times the work, not more.
    #[test]
    fn the_work_on_many_texts_is_linear() {
        for unit in [
            "<private>",
            "<private></private>",
            "<system-reminder>",
            "</system-reminder>",
            "<pri<private/>vate/>",
            "word",
        ] {
            let texts = |count: usize| vec![unit.to_owned(); count];
            let (small, large) = (texts(1 << 12), texts(1 << 16));
            assert_linear(
                unit,
                || strip_texts(&mut small.clone()),
                || strip_texts(&mut large.clone()),
            );
        }
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
        fn stripping_texts_is_idempotent(texts in prop::collection::vec(tagged(), 0..8)) {
            let mut once = texts;
            let removed = strip_texts(&mut once);
            prop_assert_eq!(removed.private_texts.is_empty() || removed.private, true);
            let mut twice = once.clone();
            prop_assert_eq!(strip_texts(&mut twice), RemovedRegions::default());
            prop_assert_eq!(&twice, &once);
        }

        /// The marker is in the text after an open tag.
        #[test]
        fn a_private_value_is_always_removed(
            before in tagged_json(), inside in tagged_json(), after in tagged_json()
        ) {
            let inside = inside.to_string().replace('/', "");
            let inside: Value = serde_json::from_str(&inside).unwrap();
            let value = json!([before, {"a": "\"'><private>"}, [inside, {"b": ["\"'>MARKER"]}], after]);
            let mut texts = texts_of(&value);
            strip_texts(&mut texts);
            prop_assert!(!texts.concat().contains("MARKER"), "{texts:?}");
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
