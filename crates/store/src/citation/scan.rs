//! Searches the text of a file for citations: symbols in code, and commands in the files that define
//! them.
//!
//! No language is parsed. A file contains a symbol if its code has each of the names as a whole word,
//! or if a parent folder has that name; comments and documents do not count. It defines the symbol if
//! a keyword precedes the last name.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    path::Path,
};

use anamnesis_note::citation::{Citation, CitationKind};

/// Extensions of documents, which are not code.
const PAGES: [&str; 10] = [
    "adoc", "csv", "html", "jsonl", "lock", "md", "rst", "snap", "svg", "txt",
];

/// Prefixes of comment lines in common languages. A number sign alone also begins attributes and
/// directives.
const COMMENTS: [&[u8]; 8] = [b"//", b"# ", b"#!", b"--", b"* ", b"*/", b"/*", b"<!--"];

/// Keywords before a defined name. A module has the name of its file.
const DEFINING: [&[u8]; 17] = [
    b"class",
    b"const",
    b"def",
    b"define",
    b"enum",
    b"fn",
    b"func",
    b"function",
    b"interface",
    b"macro_rules",
    b"protocol",
    b"record",
    b"static",
    b"struct",
    b"trait",
    b"type",
    b"union",
];

/// A citation found in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Hit {
    /// Its number.
    pub(super) number: usize,
    /// Whether it is probably defined there.
    pub(super) is_defined: bool,
}

/// The citations to search for, each with a number.
#[derive(Debug, Default)]
pub(super) struct Scan<'a> {
    /// The names in the symbols.
    names: HashMap<&'a [u8], usize>,
    /// The first bytes of the names.
    begins: BTreeSet<u8>,
    /// By the last name: the symbol's number and its other names.
    symbols: HashMap<usize, Vec<(usize, Vec<&'a str>)>>,
    /// The number of the command, its program and its target.
    commands: Vec<(usize, &'a str, &'a str)>,
}

impl<'a> Scan<'a> {
    /// Prepares a search for these citations. Kinds that are not found in files are left out.
    pub(super) fn new(references: impl Iterator<Item = (usize, &'a Citation)>) -> Self {
        let mut scan = Self::default();
        for (number, reference) in references {
            match reference.kind {
                CitationKind::Symbol => {
                    let mut names: Vec<&str> = reference.names().collect();
                    for name in &names {
                        let next = scan.names.len();
                        scan.names.entry(name.as_bytes()).or_insert(next);
                        scan.begins.extend(name.bytes().next());
                    }
                    let last = names.pop().and_then(|last| scan.names.get(last.as_bytes()));
                    if let Some(last) = last {
                        scan.symbols.entry(*last).or_default().push((number, names));
                    }
                }
                CitationKind::Command => {
                    let program = reference.text.split(' ').next().unwrap_or_default();
                    let target = reference.text.split(' ').next_back().unwrap_or_default();
                    scan.commands.push((number, program, target));
                }
                CitationKind::Path | CitationKind::Commit => {}
            }
        }
        scan
    }

    /// Returns whether a file with this path may contain a citation.
    pub(super) fn looks_into(&self, path: &str) -> bool {
        (!self.symbols.is_empty() && is_code(path))
            || self
                .commands
                .iter()
                .any(|(_, program, _)| defines(path, program))
    }

    /// Returns the citations in a file.
    pub(super) fn found(&self, path: &str, text: &[u8]) -> Vec<Hit> {
        let mut found = Vec::new();
        // A file with a null byte is binary.
        if text.contains(&0) {
            return found;
        }
        if !self.symbols.is_empty() && is_code(path) {
            let names = self.names_in(text);
            let is_there = |name: &&str| {
                let number = self.names.get(name.as_bytes());
                number.is_some_and(|number| names.contains_key(number)) || lies_below(path, name)
            };
            for (last, is_defined) in &names {
                for (number, others) in self.symbols.get(last).into_iter().flatten() {
                    if others.iter().all(is_there) {
                        found.push(Hit {
                            number: *number,
                            is_defined: *is_defined,
                        });
                    }
                }
            }
        }
        for (number, program, target) in &self.commands {
            if defines(path, program) && is_target_of(text, program, target) {
                found.push(Hit {
                    number: *number,
                    is_defined: true,
                });
            }
        }
        found
    }

    /// Returns the names in a text, and whether each is defined there.
    fn names_in(&self, text: &[u8]) -> BTreeMap<usize, bool> {
        let mut names = BTreeMap::new();
        for line in code_lines(text) {
            let mut before: &[u8] = b"";
            for word in words(line) {
                let is_possible = word
                    .first()
                    .is_some_and(|first| self.begins.contains(first));
                if is_possible && let Some(name) = self.names.get(word) {
                    *names.entry(*name).or_default() |= DEFINING.contains(&before);
                }
                before = word;
            }
        }
        names
    }
}

/// Returns the lines of a text without comments, as far as a single line shows.
fn code_lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter_map(|line| {
        let line = line.trim_ascii();
        if COMMENTS.iter().any(|comment| line.starts_with(comment)) {
            return None;
        }
        let comment = line
            .windows(4)
            .position(|window| window == b" // " || window.starts_with(b" # "));
        line.get(..comment.unwrap_or(line.len()))
    })
}

fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_' && byte.is_ascii())
        .filter(|word| !word.is_empty())
}

fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn is_code(path: &str) -> bool {
    let name = name_of(path);
    let ending = Path::new(name)
        .extension()
        .and_then(|ending| ending.to_str());
    !ending.is_some_and(|ending| PAGES.contains(&ending)) && !name.starts_with("LICENSE")
}

/// Returns whether a folder or the file has this name, because a module has the name of its file.
fn lies_below(path: &str, name: &str) -> bool {
    path.split('/')
        .any(|part| part == name || part.split('.').next() == Some(name))
}

/// Returns whether a program reads its targets from files of this path.
fn defines(path: &str, program: &str) -> bool {
    let name = name_of(path);
    let ends_in = |ending| {
        Path::new(name)
            .extension()
            .is_some_and(|found| found == ending)
    };
    match program {
        "make" | "gmake" => {
            matches!(name, "Makefile" | "makefile" | "GNUmakefile") || ends_in("mk")
        }
        "just" => matches!(name, "justfile" | "Justfile" | ".justfile") || ends_in("just"),
        "cargo" => path.split('/').any(|part| part == "xtask") && ends_in("rs"),
        _ => name == "package.json",
    }
}

/// Returns whether the text of such a file defines the target.
fn is_target_of(text: &[u8], program: &str, target: &str) -> bool {
    if program == "cargo" {
        let names = [target.replace('-', "_"), camel(target), target.to_owned()];
        return code_lines(text)
            .flat_map(words)
            .any(|word| names.iter().any(|name| name.as_bytes() == word));
    }
    let text = String::from_utf8_lossy(text);
    match program {
        "make" | "gmake" => text
            .lines()
            .filter(|line| !line.starts_with([' ', '\t', '#']))
            .filter_map(|line| line.split_once(':'))
            .any(|(targets, rest)| {
                !rest.starts_with('=') && targets.split_whitespace().any(|own| own == target)
            }),
        "just" => text
            .lines()
            .filter(|line| !line.starts_with([' ', '\t', '#']) && line.contains(':'))
            .any(|line| {
                let line = line.strip_prefix("alias ").unwrap_or(line);
                let end = line.find([' ', ':']).unwrap_or(line.len());
                line[..end].trim_start_matches('@') == target
            }),
        _ => serde_json::from_str::<serde_json::Value>(&text)
            .ok()
            .and_then(|package| package.get("scripts")?.get(target).cloned())
            .is_some(),
    }
}

/// Converts `publish-as` to the name of an enum variant.
fn camel(target: &str) -> String {
    let parts = target.split(['-', '_']);
    parts
        .map(|part| {
            let mut signs = part.chars();
            let first = signs.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(signs).collect::<String>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use anamnesis_note::citation::citations;

    use super::*;

    /// Returns the citations of a note that a file contains.
    fn found(note: &str, path: &str, text: &str) -> String {
        let references = citations(note, None);
        let scan = Scan::new(references.iter().enumerate());
        let found = scan.found(path, text.as_bytes());
        assert!(found.is_empty() || scan.looks_into(path), "{path}");
        let found = found.into_iter().map(|hit| {
            let mark = if hit.is_defined { "*" } else { "" };
            format!("{mark}{}", references[hit.number].text)
        });
        found.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn symbols_stand_in_code() {
        let note = "`journal_within` and `Journal::open`, `lock::acquire`";
        for (path, text, expected) in [
            ("a.rs", "pub fn journal_within() {}", "*journal_within"),
            ("a.rs", "let x = my_journal_within;", ""),
            ("a.rs", "impl Journal { fn open() {} }", "*Journal::open"),
            (
                "a.rs",
                "Journal::open(journal_within())",
                "journal_within, Journal::open",
            ),
            (
                "a.py",
                "def journal_within(x):\n  journal_within(x)",
                "*journal_within",
            ),
            ("a.rs", "struct Journal;\nfn opens() {}", ""),
            ("a.rs", "// journal_within was here", ""),
            ("a.rs", "x(); // journal_within", ""),
            ("a.py", "x()  # journal_within", ""),
            ("a.rs", "  /// Like journal_within.", ""),
            ("a.md", "`journal_within`", ""),
            ("Cargo.lock", "journal_within", ""),
            ("src/lock.rs", "pub fn acquire() {}", "*lock::acquire"),
            ("src/lock/mod.rs", "pub fn acquire() {}", "*lock::acquire"),
            ("src/file.rs", "pub fn acquire() {}", ""),
            ("a.bin", "journal_within\0", ""),
            ("größe.rs", "é.journal_within(ß)", "journal_within"),
        ] {
            assert_eq!(found(note, path, text), expected, "{path}: {text}");
        }
    }

    #[test]
    fn commands_stand_where_they_are_defined() {
        let note = "`make stub`, `npm run dev:web`, `just stub`, `cargo xtask publish-as`";
        for (path, text, expected) in [
            (
                "Makefile",
                ".PHONY: x\nall stub: a\n\tdo stub:",
                "*make stub",
            ),
            ("Makefile", "stub := 1\n# stub: x\n\tstub: y", ""),
            (
                "web/package.json",
                r#"{"scripts": {"dev:web": "vite"}}"#,
                "*npm run dev:web",
            ),
            ("web/package.json", r#"{"dev:web": 1, "scripts": {}}"#, ""),
            ("web/package.json", "{", ""),
            ("justfile", "@stub port='9090': build\n  run", "*just stub"),
            ("justfile", "alias stub := b", "*just stub"),
            ("justfile", "  stub:", ""),
            (
                "crates/xtask/src/main.rs",
                "enum Task { PublishAs(A) }",
                "*cargo xtask publish-as",
            ),
            ("crates/cli/src/main.rs", "enum Task { PublishAs(A) }", ""),
        ] {
            assert_eq!(found(note, path, text), expected, "{path}: {text}");
        }
    }
}
