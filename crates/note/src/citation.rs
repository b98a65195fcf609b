//! What a note's text cites of a project: files and folders, symbols, commands, commits.
//!
//! Only the text is looked at, so a reference is a guess: whoever asks a repository for it treats one
//! that was never there as the guess that it is. What is no reference for sure is left out: addresses,
//! patterns, versions, alternatives (`and/or`), places outside of the project.
//!
//! Invariant: the text is gone through once, and at most [`MOST`] references come of it, each of them
//! one word without control characters (a command: words parted by one blank).

use std::collections::BTreeSet;

use anamnesis_text::sanitize::head;

/// The most references that a text has.
pub const MOST: usize = 64;

/// How much of a text is looked at, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// The longest path, in bytes.
const MAX_PATH: usize = 256;

/// The longest symbol, in bytes.
const MAX_SYMBOL: usize = 128;

/// The most names that a symbol is made of.
const MAX_NAMES: usize = 5;

/// The longest target of a command, in bytes.
const MAX_TARGET: usize = 64;

/// How many digits of a commit's id are an id.
const COMMIT_LENGTHS: std::ops::RangeInclusive<usize> = 7..=40;

/// Endings by which a name without a folder is a file's.
const ENDINGS: [&str; 73] = [
    "adoc", "bash", "bat", "c", "cc", "cfg", "cjs", "clj", "cmake", "conf", "cpp", "cs", "css",
    "csv", "dart", "env", "erl", "ex", "exs", "fish", "go", "gradle", "graphql", "h", "hcl", "hpp",
    "hs", "html", "ini", "ipynb", "java", "js", "json", "jsonl", "jsx", "kt", "kts", "lock", "lua",
    "m", "md", "mjs", "mk", "ml", "nix", "php", "pl", "proto", "ps1", "py", "pyi", "r", "rb", "rs",
    "rst", "scala", "scss", "sh", "snap", "sql", "svelte", "svg", "swift", "tf", "toml", "ts",
    "tsx", "txt", "vue", "xml", "yaml", "yml", "zig",
];

/// Files that are known by their name alone.
const FILES: [&str; 12] = [
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "Jenkinsfile",
    "Justfile",
    "LICENSE",
    "Makefile",
    "Procfile",
    "Rakefile",
    "Vagrantfile",
    "justfile",
    "makefile",
];

/// Folders with which a path begins, so that two words with a stroke between them are one.
const FOLDERS: [&str; 34] = [
    "app",
    "apps",
    "assets",
    "benches",
    "bin",
    "client",
    "cmd",
    "commands",
    "components",
    "config",
    "crates",
    "docs",
    "examples",
    "fuzz",
    "hooks",
    "include",
    "internal",
    "lib",
    "libs",
    "migrations",
    "modules",
    "packages",
    "pkg",
    "public",
    "scripts",
    "server",
    "services",
    "skills",
    "spec",
    "src",
    "test",
    "tests",
    "tools",
    "xtask",
];

/// What stands before a stroke where no folder does: of branches, of media types, of alternatives.
const NO_FOLDERS: [&str; 28] = [
    "and",
    "application",
    "audio",
    "bugfix",
    "chore",
    "either",
    "feat",
    "feature",
    "fix",
    "font",
    "he",
    "heads",
    "his",
    "hotfix",
    "image",
    "input",
    "model",
    "multipart",
    "on",
    "origin",
    "read",
    "refs",
    "release",
    "text",
    "true",
    "upstream",
    "video",
    "yes",
];

/// Words before the name of a thing.
const KEYWORDS: [&str; 16] = [
    "class",
    "const",
    "def",
    "enum",
    "fn",
    "func",
    "function",
    "impl",
    "interface",
    "macro",
    "mod",
    "module",
    "static",
    "struct",
    "trait",
    "type",
];

/// Names that stand for where one is.
const HERE: [&str; 7] = ["Self", "cls", "crate", "self", "std", "super", "this"];

/// By these a sentence says of what it cites that it is no more.
const PAST: [&str; 7] = [
    "deleted", "dropped", "gone", "obsolete", "removed", "renamed", "replaced",
];

/// What a reference is to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// A file or a folder, relative to some folder of the project.
    Path,
    /// A function, a type or another name of the code.
    Symbol,
    /// A command that the project defines: a target of make, a script of its package.
    Command,
    /// A commit, by the beginning of its id.
    Commit,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Path, Self::Symbol, Self::Command, Self::Commit];

    /// The word that it is stored as.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Symbol => "symbol",
            Self::Command => "command",
            Self::Commit => "commit",
        }
    }

    /// The kind of a stored word.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// Something of a project that a text cites.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reference {
    /// What it is to.
    pub kind: Kind,
    /// What is cited: of a path without what leads up to it (`./`) and without the line.
    pub text: String,
    /// The line of the file, if the text names one.
    pub line: Option<u32>,
    /// Whether the sentence says that something was removed or renamed: then nothing follows from it
    /// not being there.
    pub is_past: bool,
}

impl Reference {
    /// The names that a symbol is made of: `Journal` and `open` of `Journal::open`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        names(&self.text).filter(|name| !HERE.contains(name))
    }
}

/// The references in a text, in its order, each once. `root` is the project's folder: a path below it
/// is taken as relative to it.
pub fn references(text: &str, root: Option<&str>) -> Vec<Reference> {
    let mut found = Found {
        root: root
            .map(|root| root.trim_end_matches('/'))
            .filter(|root| !root.is_empty()),
        is_past: false,
        seen: BTreeSet::new(),
        references: Vec::new(),
    };
    let mut is_fenced = false;
    for line in head(text, MAX_TEXT).lines() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            found.is_past = false;
            found.code(line);
        } else {
            for sentence in line.split_inclusive(". ") {
                found.is_past = is_past(sentence);
                found.prose(sentence);
            }
        }
    }
    found.references
}

/// What was found so far, and where.
struct Found<'a> {
    root: Option<&'a str>,
    is_past: bool,
    seen: BTreeSet<(Kind, String)>,
    references: Vec<Reference>,
}

impl Found<'_> {
    fn add(&mut self, kind: Kind, text: String, line: Option<u32>) {
        if self.references.len() < MOST && self.seen.insert((kind, text.clone())) {
            self.references.push(Reference {
                kind,
                text,
                line,
                is_past: self.is_past,
            });
        }
    }

    /// Text in which what stands in back-ticks is code.
    fn prose(&mut self, text: &str) {
        let mut rest = text;
        while let Some(at) = rest.find('`') {
            self.words(&rest[..at], false);
            let opened = &rest[at..];
            let inside = opened.trim_start_matches('`');
            let ticks = &opened[..opened.len() - inside.len()];
            let Some(end) = inside.find(ticks) else {
                rest = inside;
                break;
            };
            self.span(inside[..end].trim());
            rest = inside[end..].trim_start_matches('`');
        }
        self.words(rest, false);
    }

    /// What stood in back-ticks.
    fn span(&mut self, code: &str) {
        if let Some((path, line)) = path(code, true, self.root) {
            self.add(Kind::Path, path, line);
        } else if is_commit(code) {
            self.add(Kind::Commit, code.to_owned(), None);
        } else if let Some(symbol) = symbol(code) {
            self.add(Kind::Symbol, symbol, None);
        } else {
            self.code(code);
        }
    }

    /// A line of a script or of a program.
    fn code(&mut self, line: &str) {
        for part in line.split(['&', ';', '|']) {
            if let Some(command) = command(part) {
                self.add(Kind::Command, command, None);
            }
        }
        self.words(line, true);
    }

    fn words(&mut self, text: &str, is_code: bool) {
        let ends_word = |sign: char| sign.is_whitespace() || "()<>\"'|,;=`".contains(sign);
        for word in text.split(ends_word) {
            let word = word.trim_start_matches(['*', '_', ':', '!']);
            let word = word.trim_end_matches(['.', ':', '!', '?', '*']);
            if let Some((path, line)) = path(word, is_code, self.root) {
                self.add(Kind::Path, path, line);
            } else if is_commit(word) {
                self.add(Kind::Commit, word.to_owned(), None);
            }
        }
    }
}

/// Tells whether a sentence says that something is no more.
fn is_past(sentence: &str) -> bool {
    let mut before = "";
    sentence
        .split(|sign: char| !sign.is_alphanumeric() && sign != '_')
        .filter(|word| !word.is_empty())
        .any(|word| {
            let is_end = PAST.iter().any(|past| past.eq_ignore_ascii_case(word))
                || (before.eq_ignore_ascii_case("no") && word.eq_ignore_ascii_case("longer"));
            before = word;
            is_end
        })
}

/// Reads a word as a path, with the line behind it. In prose less is one than in code.
fn path(word: &str, is_code: bool, root: Option<&str>) -> Option<(String, Option<u32>)> {
    if word.len() > MAX_PATH || word.contains("://") {
        return None;
    }
    // `src/a.rs:42:7`, `src/a.rs#L42`, `src/a.rs::name`
    let (word, place) = match word.find([':', '#']) {
        Some(at) => (&word[..at], &word[at + 1..]),
        None => (word, ""),
    };
    let digits = place.trim_start_matches('L');
    let end = digits.find(|sign: char| !sign.is_ascii_digit());
    let line = digits[..end.unwrap_or(digits.len())].parse().ok();
    if !place.is_empty() && line.is_none() && !place.starts_with(':') {
        return None;
    }
    let separated = match (word.contains('\\'), word.contains('/')) {
        (true, true) => return None,
        (true, false) => word.replace('\\', "/"),
        _ => word.to_owned(),
    };
    let below_root = root.and_then(|root| separated.strip_prefix(root)?.strip_prefix('/'));
    let mut relative = below_root.unwrap_or(&separated);
    while let Some(rest) = relative.strip_prefix("./") {
        relative = rest;
    }
    let is_folder = relative.ends_with('/');
    let relative = relative.strip_suffix('/').unwrap_or(relative);
    let is_name = |name: &str| {
        !name.is_empty()
            && !name.chars().all(|sign| sign == '.')
            && name.chars().enumerate().all(|(at, sign)| {
                sign.is_alphanumeric() || "_-.+".contains(sign) || (sign == '@' && at == 0)
            })
    };
    let mut names = relative.split('/');
    if !names.clone().all(is_name) || !relative.chars().any(char::is_alphabetic) {
        return None;
    }
    let (first, last) = (names.next()?, names.next_back());
    let is_path = match last {
        None => is_lone_name(first, is_code, is_folder),
        // A host's name, or a version.
        Some(_) if first.rfind('.').is_some_and(|at| at > 0) => false,
        Some(last) => {
            has_ending(last)
                || is_folder
                || FOLDERS.contains(&first)
                || below_root.is_some()
                || (is_code
                    && !NO_FOLDERS.contains(&first)
                    && relative.split('/').all(|name| name.len() > 1))
        }
    };
    is_path.then(|| (relative.to_owned(), line))
}

/// Tells whether a name without a folder is a file's or a folder's.
fn is_lone_name(name: &str, is_code: bool, is_folder: bool) -> bool {
    let hidden = name.strip_prefix('.');
    if is_folder || hidden.is_some_and(|hidden| !hidden.contains('.')) {
        return is_code && name.len() > 2;
    }
    if FILES.contains(&name) {
        return true;
    }
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    // `Node.js` is a product's name, `server.js` a file's.
    let is_product = !is_code && ending == "js" && stem.starts_with(char::is_uppercase);
    ENDINGS.contains(&ending) && !is_product && stem.chars().any(char::is_alphabetic)
}

fn has_ending(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && ending.len() <= 8
            && ending.starts_with(|sign: char| sign.is_ascii_alphabetic())
            && ending.chars().all(|sign| sign.is_ascii_alphanumeric())
    })
}

fn is_commit(word: &str) -> bool {
    COMMIT_LENGTHS.contains(&word.len())
        && word
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && word.bytes().any(|byte| byte.is_ascii_digit())
        && word.bytes().any(|byte| byte.is_ascii_alphabetic())
}

/// Reads code as one name: what is no ordinary word, or is written as a call or behind a keyword.
fn symbol(code: &str) -> Option<String> {
    let after_keyword = code
        .split_once(' ')
        .filter(|(keyword, _)| KEYWORDS.contains(keyword))
        .map(|(_, rest)| rest);
    let code = after_keyword
        .unwrap_or(code)
        .trim_start_matches(['&', '*', '@', '$', '#']);
    let end = code.find(['(', '<', '!', '{', ':']);
    // A type is written before its items with two colons; with one it is that of a field.
    let end = match end {
        Some(at) if code[at..].starts_with("::") => code.find(['(', '<', '!', '{']),
        end => end,
    };
    let head = code[..end.unwrap_or(code.len())].trim_end_matches([';', ',', '?', ' ']);
    let is_call = end.is_some_and(|at| code[at..].starts_with(['(', '!']));
    if head.len() > MAX_SYMBOL || head.starts_with("std::") || names(head).count() > MAX_NAMES {
        return None;
    }
    if !names(head).all(is_identifier) {
        return None;
    }
    let mut own = names(head).filter(|name| !HERE.contains(name));
    let (first, second) = (own.next()?, own.next());
    let is_symbol = second.is_some()
        || is_call
        || after_keyword.is_some()
        || first.trim_matches('_').contains('_')
        || has_hump(first);
    is_symbol.then(|| head.to_owned())
}

/// The names of which a symbol is made.
fn names(symbol: &str) -> impl Iterator<Item = &str> {
    // Two colons leave an empty piece between them.
    let is_parted = |sign: char| matches!(sign, ':' | '.' | '#' | '>');
    symbol
        .split(is_parted)
        .map(|name| name.trim_end_matches('-'))
        .filter(|name| !name.is_empty())
}

fn is_identifier(name: &str) -> bool {
    !name.starts_with(|sign: char| sign.is_ascii_digit())
        && name
            .chars()
            .all(|sign| sign.is_alphanumeric() || sign == '_')
        && name.chars().any(char::is_alphabetic)
}

/// Tells whether a capital follows a small letter.
fn has_hump(name: &str) -> bool {
    let small = name
        .chars()
        .map(|sign| sign.is_lowercase() || sign.is_ascii_digit());
    let capital = name.chars().skip(1).map(char::is_uppercase);
    small.zip(capital).any(|(small, capital)| small && capital)
}

/// Reads a line as a command that the project defines: the program and its target.
fn command(line: &str) -> Option<String> {
    let mut words = line
        .split_whitespace()
        .skip_while(|word| ["$", ">", "sudo", "time"].contains(word) || word.contains('='));
    let program = words.next()?;
    match program {
        "make" | "gmake" | "just" => {
            let is_setting =
                |word: &&str| word.starts_with("-j") || *word == "-s" || word.contains('=');
            let target = words
                .find(|word| !is_setting(word))
                .filter(|word| is_target(word))?;
            Some(format!("{program} {target}"))
        }
        "npm" | "pnpm" | "yarn" | "bun" => match words.next()? {
            "run" => {
                let target = words.next().filter(|word| is_target(word))?;
                Some(format!("{program} run {target}"))
            }
            own @ ("start" | "test") => Some(format!("{program} {own}")),
            _ => None,
        },
        "cargo" if words.next()? == "xtask" => {
            let target = words.next().filter(|word| is_target(word))?;
            Some(format!("cargo xtask {target}"))
        }
        _ => None,
    }
}

fn is_target(word: &str) -> bool {
    word.len() <= MAX_TARGET
        && word.starts_with(char::is_alphanumeric)
        && word
            .chars()
            .all(|sign| sign.is_alphanumeric() || "_-.:/".contains(sign))
}

#[cfg(test)]
mod tests;
