//! Converts a file of Claude Code's own memory into the parts of a note.
//!
//! Such a file is markdown written by Claude, usually with front matter: `name`, `description` and
//! `type`. `type` is under `metadata`, or at the top level in files of earlier clients. `MEMORY.md`
//! lists the other files, and may have text of its own. This module reads no disk; the store finds
//! the files and writes the notes.
//!
//! Invariant: every part is sanitised like any other input for a note.

use std::{borrow::Cow, collections::BTreeMap};

use anamnesis_note::{
    front_matter::{self, Shape, Value},
    id::NoteId,
    note::NoteType,
};
use anamnesis_text::{clean::one_line, redact::redact, sanitize::uncut, truncate};

/// The maximum size of a file, in bytes. The client loads at most 25 KB of such text.
pub const MAX_LENGTH: usize = 256 * 1024;

/// The tag of every imported note.
const TAG: &str = "import";

/// The tag of a copy whose file is gone, until a person decides about it.
pub const GONE_TAG: &str = "source-gone";

/// The stem of the client's list of a project's memory files.
const LIST: &str = "MEMORY";

/// The maximum length of a title, in characters. A description is one sentence.
const MAX_TITLE_LENGTH: usize = 300;

/// The maximum length of a `type` that becomes a tag, in bytes.
const MAX_KIND_LENGTH: usize = 32;

/// A memory file, sanitised for storage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryFile {
    /// The description, else the name or the first heading, else the file name; one line.
    pub title: String,
    /// The text, possibly empty.
    pub body: String,
    /// The type of the note.
    pub note_type: NoteType,
    /// The tags of the note.
    pub tags: Vec<String>,
    /// The number of masked credentials per redaction rule.
    pub masked: BTreeMap<&'static str, usize>,
}

impl MemoryFile {
    /// Parses a file; `stem` is its name without the extension.
    ///
    /// Returns `None` if its front matter has no end, or if nothing is left after sanitising. Of
    /// `MEMORY.md`, only the text that lists no other file is used.
    pub fn parse(raw: &str, stem: &str) -> Option<Self> {
        // Strip before splitting: a private region may begin in the front matter and end after it.
        let (text, _) = uncut(raw);
        let own;
        let (front, body) = match split(&text) {
            Some((block, body)) if !is_list(stem) => (FrontFields::read(block), body),
            // The file is still being written.
            None if text.lines().next().is_some_and(is_fence) => return None,
            split => {
                let plain = split.map_or(&*text, |(_, body)| body);
                own = if is_list(stem) {
                    without_listing(plain)
                } else {
                    plain.to_owned()
                };
                FrontFields::from_heading(&own)?
            }
        };
        let mut masked = BTreeMap::new();
        let body = mask_credentials(&uncut(body).0, &mut masked);
        let named = [front.description, front.name];
        let title = named.into_iter().flatten().find_map(|title| {
            // A YAML escape may have spelt a private tag.
            let title = mask_credentials(&one_line(&uncut(&title).0), &mut masked);
            (!title.is_empty()).then_some(title)
        });
        if title.is_none() && body.is_empty() {
            return None;
        }
        let title =
            title.unwrap_or_else(|| mask_credentials(&one_line(&uncut(stem).0), &mut masked));
        let kind = front.kind.filter(|kind| is_word(kind));
        let note_type = match kind.as_deref() {
            Some("feedback") => NoteType::Procedural,
            _ => NoteType::Semantic,
        };
        let kind = kind.map(|kind| format!("kind:{kind}"));
        Some(Self {
            title: truncate::line(&title, MAX_TITLE_LENGTH),
            body,
            note_type,
            tags: [TAG.to_owned()].into_iter().chain(kind).collect(),
            masked,
        })
    }
}

/// Returns whether a file is the client's list of memory files.
pub fn is_list(stem: &str) -> bool {
    stem.eq_ignore_ascii_case(LIST)
}

/// Returns the id of a file's note, which is the same on every machine. `slug` is the client's name
/// for the project's folder, `stem` the file's path in the memory without the extension.
pub fn note_id(slug: &str, stem: &str) -> NoteId {
    NoteId::made_of(&format!("{slug}/{stem}"))
}

/// Returns the id of a file's note if another machine's note has the id of [`note_id`].
pub fn own_note_id(machine_id: &str, slug: &str, stem: &str) -> NoteId {
    NoteId::made_of(&format!("{machine_id}/{slug}/{stem}"))
}

/// Masks and counts the credentials in a text.
fn mask_credentials(text: &str, masked: &mut BTreeMap<&'static str, usize>) -> String {
    let redacted = redact(text);
    for finding in &redacted.findings {
        *masked.entry(finding.rule).or_default() += 1;
    }
    redacted.text.into_owned()
}

/// Returns whether a type can become a tag. Credentials are longer than the limit.
fn is_word(kind: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    (1..=MAX_KIND_LENGTH).contains(&kind.len()) && kind.bytes().all(is_letter)
}

/// Removes the lines that list other files, and headings and introductions with nothing else below.
fn without_listing(text: &str) -> String {
    let mut kept = Vec::new();
    // The level up to which a heading above has text below it.
    let mut level = 0;
    let mut is_listing = false;
    for line in text.lines().rev() {
        let depth = heading(line).map(|_| line.trim_start_matches('#').len());
        let depth = depth.map(|rest| line.len() - rest);
        let is_kept = match depth {
            Some(depth) if level > depth => {
                level = depth;
                true
            }
            Some(_) => false,
            None if line.trim().is_empty() => true,
            None if lists_a_file(line) => {
                is_listing = true;
                continue;
            }
            None if is_listing && line.trim_end().ends_with(':') => false,
            None => {
                level = usize::MAX;
                true
            }
        };
        is_listing &= line.trim().is_empty();
        if is_kept {
            kept.push(line);
        }
    }
    kept.reverse();
    kept.join("\n").trim().to_owned()
}

/// Returns whether a line is an item that begins with a link to a file beside this one.
fn lists_a_file(line: &str) -> bool {
    let item = line.trim_start().trim_start_matches(['-', '*', '+', ' ']);
    let target = item
        .strip_prefix('[')
        .and_then(|link| link.split_once("]("))
        .and_then(|(_, target)| target.split_once(')'));
    target.is_some_and(|(target, _)| {
        let ending = target.rsplit_once('.').map(|(_, ending)| ending);
        ending == Some("md") && !target.contains("://")
    })
}

/// Returns the text of a heading.
fn heading(line: &str) -> Option<&str> {
    let text = line.strip_prefix('#')?.trim_start_matches('#');
    text.starts_with([' ', '\t']).then(|| text.trim())
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

/// Splits a file into front matter and text.
fn split(text: &str) -> Option<(&str, &str)> {
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().filter(|line| is_fence(line))?;
    let start = first.len();
    let mut end = start;
    for line in lines {
        if is_fence(line) {
            return Some((&text[start..end], &text[end + line.len()..]));
        }
        end += line.len();
        if end - start > front_matter::MAX_LENGTH {
            return None;
        }
    }
    None
}

/// The raw fields of the front matter.
#[derive(Debug, Default, PartialEq, Eq)]
struct FrontFields {
    name: Option<String>,
    description: Option<String>,
    kind: Option<String>,
}

impl FrontFields {
    /// Takes a heading at the beginning of a text as its name. Returns the rest of the text, unless it
    /// is empty.
    fn from_heading(text: &str) -> Option<(Self, &str)> {
        let text = text.trim_start_matches('\n');
        let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
        let name = heading(first).map(str::to_owned);
        let body = if name.is_some() { rest } else { text };
        let front = Self {
            name,
            ..Self::default()
        };
        (!body.trim().is_empty()).then_some((front, body))
    }

    /// Parses the front matter as YAML, else line by line.
    fn read(block: &str) -> Self {
        Self::parse(block).unwrap_or_else(|| Self::salvage(block))
    }

    fn parse(block: &str) -> Option<Self> {
        let mut values = front_matter::read_mapping(block, |key| match key {
            "name" | "description" | "type" => Shape::Text,
            _ => Shape::Any,
        })
        .ok()?;
        let nested = metadata(block).and_then(|nested| {
            let type_alone = |key: &str| match key {
                "type" => Shape::Text,
                _ => Shape::Any,
            };
            front_matter::read_mapping(&nested, type_alone).ok()
        });
        let kind = nested.and_then(|mut nested| text(nested.remove("type")?));
        let mut take = |key| values.remove(key).and_then(text);
        Some(Self {
            name: take("name"),
            description: take("description"),
            kind: kind.or_else(|| take("type")),
        })
    }

    /// Takes the first line of each key. A value of several lines is cut.
    fn salvage(block: &str) -> Self {
        let mut front = Self::default();
        for line in block.lines() {
            let Some((key, value)) = line.split_once(':') else {
                continue;
            };
            let slot = match key {
                "name" => &mut front.name,
                "description" => &mut front.description,
                _ if key.trim() == "type" => &mut front.kind,
                _ => continue,
            };
            let value = unquoted(value.trim());
            // The value is in the lines below.
            let is_mark = value.starts_with(['|', '>']) && value.len() <= 2;
            if slot.is_none() && !value.is_empty() && !is_mark {
                *slot = Some(value.to_owned());
            }
        }
        front
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Text(text) => Some(text).filter(|text| !text.trim().is_empty()),
        Value::List(_) | Value::Null => None,
    }
}

/// Returns the mapping under `metadata` as a block of its own.
fn metadata(block: &str) -> Option<Cow<'_, str>> {
    let entries = front_matter::entries(block);
    let entry = entries.iter().find(|entry| entry.key == "metadata")?;
    let (_, value) = block.get(entry.range.clone())?.split_once(':')?;
    let (first, rest) = value.split_once('\n').unwrap_or((value, ""));
    if !first.trim().is_empty() {
        // A flow mapping, such as `metadata: {type: x}`.
        return Some(Cow::Borrowed(value.trim()));
    }
    let indent = rest.len() - rest.trim_start_matches(' ').len();
    let lines = rest.lines().map(|line| {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        format!("{}\n", &line[indent.min(blanks)..])
    });
    Some(Cow::Owned(lines.collect()))
}

/// Removes the quotes around a value.
fn unquoted(value: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote))
        .unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BODY: &str = "Run `pnpm test`, never `npm test`.";

    fn parse(front: &str) -> MemoryFile {
        MemoryFile::parse(&format!("---\n{front}\n---\n\n{BODY}\n"), "package_manager").unwrap()
    }

    /// Formats title, type and tags, separated by `|`.
    fn parts(memory: &MemoryFile) -> String {
        let MemoryFile {
            title,
            note_type,
            tags,
            ..
        } = memory;
        format!("{title}|{note_type}|{}", tags.join(","))
    }

    #[test]
    fn a_file_as_the_client_writes_it() {
        let memory = parse(
            "name: package-manager\ndescription: The package manager is pnpm\n\
             metadata:\n  node_type: memory\n  type: feedback\n  modified: 2026-01-02T03:04:05Z",
        );
        assert_eq!(
            memory,
            MemoryFile {
                title: "The package manager is pnpm".to_owned(),
                body: BODY.to_owned(),
                note_type: NoteType::Procedural,
                tags: vec!["import".to_owned(), "kind:feedback".to_owned()],
                masked: BTreeMap::new(),
            }
        );
    }

    #[test]
    fn front_matter_in_other_words() {
        for (front, expected) in [
            ("name: n\ntype: user", "n|semantic|import,kind:user"),
            ("description: ''\nname: n", "n|semantic|import"),
            (
                "metadata: {type: feedback}",
                "package_manager|procedural|import,kind:feedback",
            ),
            (
                "type: user\nmetadata:\n    type: feedback",
                "package_manager|procedural|import,kind:feedback",
            ),
            (
                "description: >\n  folded\n  over lines\ntype: reference",
                "folded over lines|semantic|import,kind:reference",
            ),
            (
                "description: \"a: b\"\nmetadata:\n  type: project",
                "a: b|semantic|import,kind:project",
            ),
            (
                "description: d\nmetadata:\n  type: [a]",
                "d|semantic|import",
            ),
            (
                "description: d\ntype: something-else",
                "d|semantic|import,kind:something-else",
            ),
            ("description: d\ntype: No word", "d|semantic|import"),
            ("", "package_manager|semantic|import"),
        ] {
            assert_eq!(parts(&parse(front)), expected, "{front}");
        }
    }

    #[test]
    fn a_second_block_of_front_matter_stays_in_the_text() {
        let memory = parse("permalink: shop/twice\n---\n\n---\ndescription: The second one");
        assert_eq!(parts(&memory), "package_manager|semantic|import");
        let expected = format!("---\ndescription: The second one\n---\n\n{BODY}");
        assert_eq!(memory.body, expected);
    }

    #[test]
    fn bad_yaml_is_salvaged_line_by_line() {
        for (front, expected) in [
            (
                "description: a: b: c\nmetadata:\n  type: feedback",
                "a: b: c|procedural|import,kind:feedback",
            ),
            (
                "description: \"open\nname: n\n  type: user",
                "\"open|semantic|import,kind:user",
            ),
            (
                "name: n\nname: m\ndescription: 'quoted'",
                "quoted|semantic|import",
            ),
            ("description: [a\n\tb", "[a|semantic|import"),
            // YAML-01, YAML-02, YAML-03, YAML-05
            (
                "a: &a [x, x]\nb: &b [*a, *a]\ndescription: bomb\nc: [*b, *b]",
                "bomb|semantic|import",
            ),
            ("a: &a [*a]\nname: self", "self|semantic|import"),
            (
                "description: tagged\nx: !!python/object:os.system [ls]",
                "tagged|semantic|import",
            ),
            (
                "description: |\n  block\nx: *y\nname: n",
                "n|semantic|import",
            ),
        ] {
            assert_eq!(parts(&parse(front)), expected, "{front}");
        }
        let deep = format!("description: deep\nx: {}", "[".repeat(10_000));
        assert_eq!(parse(&deep).title, "deep");
    }

    #[test]
    fn files_without_text_and_unfinished_files_are_rejected() {
        for raw in [
            "",
            "\n\n",
            "# A heading\n",
            "---\nname: n\n",
            "---\nname: n",
            "---\n---\n",
            "---\ntype: user\n---\n\n",
            "---\nname: <private>\n---\nall of it\n",
        ] {
            assert_eq!(MemoryFile::parse(raw, "stem"), None, "{raw}");
        }
        let long = format!("---\nname: n\n{}---\nbody\n", "# comment\n".repeat(10_000));
        assert_eq!(MemoryFile::parse(&long, "stem"), None);
        assert!(
            MemoryFile::parse("\u{feff}---\r\nname: n\r\n---\r\nb\r\nc\r\n", "s").is_some_and(
                |memory| (memory.title.as_str(), memory.body.as_str()) == ("n", "b\nc")
            )
        );
    }

    #[test]
    fn a_topic_file_without_front_matter_is_copied() {
        for (raw, title, body) in [
            ("Use pnpm.\n", "package_manager", "Use pnpm."),
            (
                "# Package manager\n\nUse pnpm.\n",
                "Package manager",
                "Use pnpm.",
            ),
            ("\n## A\n## B\nUse pnpm.", "A", "## B\nUse pnpm."),
            ("#pnpm is used\n", "package_manager", "#pnpm is used"),
            (
                "Use pnpm.\n---\nname: n\n---\n",
                "package_manager",
                "Use pnpm.\n---\nname: n\n---",
            ),
        ] {
            let memory = MemoryFile::parse(raw, "package_manager").unwrap();
            assert_eq!(
                (memory.title.as_str(), memory.body.as_str()),
                (title, body),
                "{raw}"
            );
            assert_eq!(parts(&memory), format!("{title}|semantic|import"));
        }
    }

    #[test]
    fn text_written_straight_into_the_list_is_copied() {
        let listing = "# Memory\n\n- [pnpm](pnpm.md) — use pnpm\n* [Ports](sub/ports.md)\n";
        for nothing in [
            listing,
            "Topics:\n\n- [pnpm](pnpm.md)\n",
            "# Memory\n## Topics\n",
        ] {
            assert_eq!(MemoryFile::parse(nothing, "MEMORY"), None, "{nothing}");
        }
        let raw = format!(
            "{listing}\n## Empty\n\n## Testing\n- Run `make test` before a push\n\
             - See [the guide](https://example.com/guide.md)\n\n## More\n- [db](db.md)\n"
        );
        let memory = MemoryFile::parse(&raw, "memory").unwrap();
        assert_eq!(memory.title, "Memory");
        assert_eq!(
            memory.body,
            "## Testing\n- Run `make test` before a push\n\
             - See [the guide](https://example.com/guide.md)"
        );
        let memory = MemoryFile::parse("Use pnpm.\n- [db](db.md)\n", "MEMORY").unwrap();
        assert_eq!(
            (memory.title.as_str(), memory.body.as_str()),
            ("MEMORY", "Use pnpm.")
        );
    }

    #[test]
    fn nothing_private_and_no_credential_comes_in() {
        // IMP-02
        const TOKEN: &str = concat!("ghp_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let raw = format!(
            "---\nname: {TOKEN}\ndescription: \"token {TOKEN}, \\x3cprivate>needle</private> here\"\n---\n\
             one <private>needle</private> two {TOKEN}\n\
             <anamnesis-context>needle</anamnesis-context>\n\u{202e}three"
        );
        let memory = MemoryFile::parse(&raw, TOKEN).unwrap();
        let text = format!("{memory:?}");
        assert!(!text.contains("needle") && !text.contains(TOKEN), "{text}");
        assert_eq!(memory.title, "token [REDACTED], here");
        assert_eq!(memory.body, "one  two [REDACTED]\n\nthree");
        assert_eq!(memory.masked.values().sum::<usize>(), 2);
        let memory = MemoryFile::parse("---\n---\nbody", TOKEN).unwrap();
        assert_eq!(memory.title, "[REDACTED]");
        // An unclosed region extends to the end of the file.
        assert_eq!(
            MemoryFile::parse("---\nname: n\n---\nkept <private>needle\n", "s")
                .unwrap()
                .body,
            "kept"
        );
    }

    #[test]
    fn a_title_is_one_line_of_some_length() {
        let memory = parse(&format!("description: \"a\\nb {}\"", "x".repeat(1_000)));
        assert_eq!(memory.title.chars().count(), MAX_TITLE_LENGTH);
        assert!(memory.title.starts_with("a b xxx") && memory.title.ends_with('…'));
    }

    #[test]
    fn ids_are_those_of_the_python_version() {
        // The first 16 bytes of SHA-256 over `-home-ann-shop/package_manager`.
        assert_eq!(
            note_id("-home-ann-shop", "package_manager").to_string(),
            "50Q9W7DAZHA5PV1ZT17S8BC4Z3"
        );
        let ids = [
            note_id("-a", "b"),
            own_note_id("m", "-a", "b"),
            own_note_id("n", "-a", "b"),
        ];
        for (position, id) in ids.iter().enumerate() {
            assert!(!ids[..position].contains(id));
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(front in "\\PC{0,80}(\n\\PC{0,40}){0,6}", body in "\\PC{0,200}") {
            let _ = MemoryFile::parse(&front, &body);
            let _ = MemoryFile::parse(&format!("---\n{front}\n---\n{body}"), "stem");
            let _ = MemoryFile::parse(&format!("---\nmetadata:\n {front}\n---\n{body}"), "stem");
        }

        #[test]
        fn parsing_is_idempotent(body in "(\\PC{0,60}\n){0,5}") {
            let file = |body: &str| format!("---\nname: n\n---\n{body}");
            if let Some(memory) = MemoryFile::parse(&file(&body), "stem") {
                let again = MemoryFile::parse(&file(&memory.body), "stem").unwrap();
                prop_assert_eq!(again.body, memory.body);
            }
        }
    }
}
