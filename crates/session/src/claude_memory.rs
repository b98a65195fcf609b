//! A file of Claude Code's own memory, made into the parts of a note.
//!
//! Such a file is markdown that Claude wrote, with front matter: a `name`, a `description`, and a
//! `type`, which stands below `metadata` or, in files of earlier clients, at the top. Nothing here
//! looks at a disk; which files there are and what becomes of the parts is the store's business.
//!
//! Invariant: no part holds anything that the other ways into a note would have taken out.

use std::{borrow::Cow, collections::BTreeMap};

use anamnesis_note::{
    front_matter::{self, Shape, Value},
    id::NoteId,
    note::NoteType,
};
use anamnesis_text::{clean::one_line, redact::redact, sanitize::uncut, truncate};

/// The largest file that is read, in bytes. The client loads 25 KB of such text at most.
pub const MAX_LENGTH: usize = 256 * 1024;

/// The tag of every imported note.
const TAG: &str = "import";

/// The longest title, in characters. A description is one sentence.
const MAX_TITLE_LENGTH: usize = 300;

/// The longest `type` that becomes a tag, in bytes.
const MAX_KIND_LENGTH: usize = 32;

/// What a file of the memory says, fit to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// The description, else the name, else the file's name; one line.
    pub title: String,
    /// The text; may be empty.
    pub body: String,
    /// What kind of note it makes.
    pub note_type: NoteType,
    /// The tags of that note.
    pub tags: Vec<String>,
    /// How many credentials were masked in it, by the rule that found them.
    pub masked: BTreeMap<&'static str, usize>,
}

impl Memory {
    /// Reads a file; `stem` is its name without the ending. None if it has no front matter, or if
    /// nothing is left of it.
    pub fn parse(raw: &str, stem: &str) -> Option<Self> {
        // Before anything is told apart: a region may begin in the front matter and end behind it.
        let (text, _) = uncut(raw);
        let (block, body) = split(&text)?;
        let front = Front::read(block);
        let mut masked = BTreeMap::new();
        let body = safe(&uncut(body).0, &mut masked);
        let named = [front.description, front.name];
        let title = named.into_iter().flatten().find_map(|title| {
            // An escape of YAML may have spelt a tag.
            let title = safe(&one_line(&uncut(&title).0), &mut masked);
            (!title.is_empty()).then_some(title)
        });
        if title.is_none() && body.is_empty() {
            return None;
        }
        let title = title.unwrap_or_else(|| safe(&one_line(&uncut(stem).0), &mut masked));
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

/// The id of the note of a file, the same on every machine: `slug` names the folder of its project
/// as the client does, `stem` is the file's name without the ending.
pub fn note_id(slug: &str, stem: &str) -> NoteId {
    NoteId::made_of(&format!("{slug}/{stem}"))
}

/// The id of the note of a file where the other id is not to be had: `returns` counts how often the
/// file had gone and was there again.
pub fn own_note_id(machine_id: &str, slug: &str, stem: &str, returns: u32) -> NoteId {
    NoteId::made_of(&match returns {
        0 => format!("{machine_id}/{slug}/{stem}"),
        returns => format!("{machine_id}/{slug}/{stem}/{returns}"),
    })
}

/// Masks the credentials in a text, and counts them.
fn safe(text: &str, masked: &mut BTreeMap<&'static str, usize>) -> String {
    let redacted = redact(text);
    for finding in &redacted.findings {
        *masked.entry(finding.rule).or_default() += 1;
    }
    redacted.text.into_owned()
}

/// Tells whether a type is a word that may stand in a tag. A credential is not: those that look like
/// words are longer.
fn is_word(kind: &str) -> bool {
    let is_letter = |byte: u8| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'_');
    (1..=MAX_KIND_LENGTH).contains(&kind.len()) && kind.bytes().all(is_letter)
}

/// Parts a file into front matter and text.
fn split(text: &str) -> Option<(&str, &str)> {
    let is_fence = |line: &str| line.trim_end() == "---";
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

/// What the front matter says, as it is written.
#[derive(Debug, Default, PartialEq, Eq)]
struct Front {
    name: Option<String>,
    description: Option<String>,
    kind: Option<String>,
}

impl Front {
    /// Reads the front matter, line by line where it is no YAML that is taken.
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

    /// Takes the first line of each key. A value that goes over several lines is cut.
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
            // These stand for the lines below.
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

/// The mapping below `metadata`, as a block of its own.
fn metadata(block: &str) -> Option<Cow<'_, str>> {
    let entries = front_matter::entries(block);
    let entry = entries.iter().find(|entry| entry.key == "metadata")?;
    let (_, value) = block.get(entry.range.clone())?.split_once(':')?;
    let (first, rest) = value.split_once('\n').unwrap_or((value, ""));
    if !first.trim().is_empty() {
        // A flow mapping.
        return Some(Cow::Borrowed(value.trim()));
    }
    let indent = rest.len() - rest.trim_start_matches(' ').len();
    let lines = rest.lines().map(|line| {
        let blanks = line.len() - line.trim_start_matches(' ').len();
        format!("{}\n", &line[indent.min(blanks)..])
    });
    Some(Cow::Owned(lines.collect()))
}

/// Returns a value without the quotes around it.
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

    fn parse(front: &str) -> Memory {
        Memory::parse(&format!("---\n{front}\n---\n\n{BODY}\n"), "package_manager").unwrap()
    }

    /// Title, type and tags, parted by `|`.
    fn parts(memory: &Memory) -> String {
        let Memory {
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
            Memory {
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
    fn what_is_no_memory() {
        for raw in [
            "",
            "# A heading\n",
            "---\nname: n\n",
            "---\nname: n",
            "text\n---\nname: n\n---\n",
            "---\n---\n",
            "---\ntype: user\n---\n\n",
            "---\nname: <private>\n---\nall of it\n",
        ] {
            assert_eq!(Memory::parse(raw, "stem"), None, "{raw}");
        }
        let long = format!("---\nname: n\n{}---\nbody\n", "# comment\n".repeat(10_000));
        assert_eq!(Memory::parse(&long, "stem"), None);
        assert!(
            Memory::parse("\u{feff}---\r\nname: n\r\n---\r\nb\r\nc\r\n", "s").is_some_and(
                |memory| (memory.title.as_str(), memory.body.as_str()) == ("n", "b\nc")
            )
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
        let memory = Memory::parse(&raw, TOKEN).unwrap();
        let text = format!("{memory:?}");
        assert!(!text.contains("needle") && !text.contains(TOKEN), "{text}");
        assert_eq!(memory.title, "token [REDACTED], here");
        assert_eq!(memory.body, "one  two [REDACTED]\n\nthree");
        assert_eq!(memory.masked.values().sum::<usize>(), 2);
        let memory = Memory::parse("---\n---\nbody", TOKEN).unwrap();
        assert_eq!(memory.title, "[REDACTED]");
        // A region that is not closed takes the rest of the file.
        assert_eq!(
            Memory::parse("---\nname: n\n---\nkept <private>needle\n", "s")
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
            own_note_id("m", "-a", "b", 0),
            own_note_id("m", "-a", "b", 1),
            own_note_id("m", "-a", "b", 2),
            own_note_id("n", "-a", "b", 1),
        ];
        for (position, id) in ids.iter().enumerate() {
            assert!(!ids[..position].contains(id));
        }
    }

    proptest! {
        #[test]
        fn reading_never_panics(front in "\\PC{0,80}(\n\\PC{0,40}){0,6}", body in "\\PC{0,200}") {
            let _ = Memory::parse(&front, &body);
            let _ = Memory::parse(&format!("---\n{front}\n---\n{body}"), "stem");
            let _ = Memory::parse(&format!("---\nmetadata:\n {front}\n---\n{body}"), "stem");
        }

        #[test]
        fn what_was_read_once_stays_as_it_is(body in "(\\PC{0,60}\n){0,5}") {
            let file = |body: &str| format!("---\nname: n\n---\n{body}");
            if let Some(memory) = Memory::parse(&file(&body), "stem") {
                let again = Memory::parse(&file(&memory.body), "stem").unwrap();
                prop_assert_eq!(again.body, memory.body);
            }
        }
    }
}
