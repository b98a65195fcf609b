//! Removes what a person marked as private, and what was injected rather than said.
//!
//! Two kinds of tags are known. **Marked** regions (`<private>` and our own context tags) fail
//! closed: one that is not closed takes everything to the end of the text. **Injected** elements
//! (`<system-reminder>` and the like) are removed only when they are closed.
//!
//! Nothing may look at a text before it has passed here: not a log, not a hash, and above all not
//! a cut, which could part an open tag from its close. Invariants: stripping twice is stripping
//! once, and the work is linear in the length of the text. Values inside JSON are not handled here.

use std::borrow::Cow;

/// Tags whose regions are counted together and never left open: the first one is a person's mark,
/// the others fence text that a memory put into the session.
const MARKED: [&str; 3] = [PRIVATE, "anamnesis-context", "claude-mem-context"];

const PRIVATE: &str = "private";

/// Tags that the client wraps around text of its own.
const INJECTED: [&str; 4] = [
    "system-reminder",
    "system_instruction",
    "system-instruction",
    "persisted-output",
];

/// How often a removal may put a new tag together before the text is taken for an attack.
const MAX_PASSES: usize = 8;

/// A text without its private and injected regions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripped<'a> {
    /// What is left, trimmed at both ends.
    pub text: Cow<'a, str>,
    /// How many regions were removed; regions inside another one are not counted.
    pub regions: usize,
    /// Whether a person marked any part of the text as private.
    pub private: bool,
}

/// Removes private, context and injected regions, until none is left.
///
/// A text that still changes after eight passes is dropped as a whole.
///
/// ```
/// let stripped = anamnesis_core::privacy::strip("deploy <private>with K9</private> today");
/// assert_eq!(stripped.text, "deploy  today");
/// assert!(stripped.private);
/// ```
pub fn strip(text: &str) -> Stripped<'_> {
    let mut stripped = Stripped {
        text: Cow::Borrowed(text.trim()),
        regions: 0,
        private: false,
    };
    for _ in 0..=MAX_PASSES {
        let marked = marked_regions(&stripped.text);
        stripped.private |= marked.private;
        let changed = stripped.remove(&marked.regions);
        let injected = injected_regions(&stripped.text);
        if !stripped.remove(&injected) && !changed {
            return stripped;
        }
    }
    stripped.text = Cow::Borrowed("");
    stripped
}

impl Stripped<'_> {
    /// Takes regions, which are in order and apart, out of the text; tells whether there were any.
    fn remove(&mut self, regions: &[Region]) -> bool {
        if regions.is_empty() {
            return false;
        }
        let mut kept = String::with_capacity(self.text.len());
        let mut position = 0;
        for region in regions {
            kept.push_str(&self.text[position..region.start]);
            position = region.end;
        }
        kept.push_str(&self.text[position..]);
        self.regions += regions.len();
        self.text = Cow::Owned(kept.trim().to_owned());
        true
    }
}

/// A part of a text in bytes; both ends are on character boundaries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Region {
    start: usize,
    end: usize,
}

#[derive(Default)]
struct MarkedRegions {
    regions: Vec<Region>,
    private: bool,
}

/// Finds the outermost marked regions.
///
/// Opens are counted for each name, so that a stray close of one name cannot end the region of
/// another.
fn marked_regions(text: &str) -> MarkedRegions {
    let mut found = MarkedRegions::default();
    let mut depths = [0_usize; MARKED.len()];
    let mut start = 0;
    for tag in Tags::new(text, &MARKED) {
        let outside = depths.iter().all(|&depth| depth == 0);
        let depth = &mut depths[tag.name];
        match tag.kind {
            TagKind::Open => {
                *depth += 1;
                if outside {
                    start = tag.region.start;
                }
            }
            TagKind::Close if outside => continue,
            TagKind::Close => {
                *depth = depth.saturating_sub(1);
                if depths.iter().all(|&depth| depth == 0) {
                    let end = tag.region.end;
                    found.regions.push(Region { start, end });
                }
                continue;
            }
            TagKind::Empty if outside => found.regions.push(tag.region),
            TagKind::Empty => {}
        }
        found.private |= MARKED[tag.name] == PRIVATE;
    }
    if depths.iter().any(|&depth| depth > 0) {
        let end = text.len();
        found.regions.push(Region { start, end });
    }
    found
}

/// Finds the outermost injected elements that are closed.
///
/// An open tag belongs to the close that balances it, else to the first close of its name.
fn injected_regions(text: &str) -> Vec<Region> {
    let tags: Vec<Tag> = Tags::new(text, &INJECTED).collect();
    let mut end_of = vec![None; tags.len()];
    let mut open: [Vec<usize>; INJECTED.len()] = Default::default();
    for (index, tag) in tags.iter().enumerate() {
        match tag.kind {
            TagKind::Open => open[tag.name].push(index),
            TagKind::Close => {
                if let Some(opener) = open[tag.name].pop() {
                    end_of[opener] = Some(tag.region.end);
                }
            }
            TagKind::Empty => end_of[index] = Some(tag.region.end),
        }
    }
    let mut next_close = [None; INJECTED.len()];
    for (index, tag) in tags.iter().enumerate().rev() {
        match tag.kind {
            TagKind::Open => end_of[index] = end_of[index].or(next_close[tag.name]),
            TagKind::Close => next_close[tag.name] = Some(tag.region.end),
            TagKind::Empty => {}
        }
    }
    let mut regions: Vec<Region> = Vec::new();
    for (tag, end) in tags.iter().zip(end_of) {
        let start = tag.region.start;
        let inside = regions.last().is_some_and(|region| start < region.end);
        if let (false, Some(end)) = (inside, end) {
            regions.push(Region { start, end });
        }
    }
    regions
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
        let end = text.rfind('>').map_or(0, |last| last + 1);
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
    let (name, rest) = names.iter().enumerate().find_map(|(index, name)| {
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
    use std::time::{Duration, Instant};

    use proptest::prelude::*;

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
            assert_eq!(stripped.private, *name == PRIVATE);
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

    /// Checks that work on sixteen times the input takes about sixteen times as long.
    ///
    /// A quadratic algorithm takes 256 times as long, and seconds for a text of 1 MiB. The bound
    /// lies between the two, since other programs may take most of the processor while the larger
    /// work runs, and allows for work that is next to none.
    pub(crate) fn assert_linear<T>(what: &str, small: impl Fn() -> T, large: impl Fn() -> T) {
        fn time<T>(work: impl Fn() -> T) -> Duration {
            let start = Instant::now();
            std::hint::black_box(work());
            start.elapsed()
        }
        let mut best = (Duration::MAX, Duration::MAX);
        for _ in 0..5 {
            best = (best.0.min(time(&small)), best.1.min(time(&large)));
        }
        let bound = best.0 * 64 + Duration::from_millis(50);
        assert!(best.1 < bound, "{what:?}: {best:?}");
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
