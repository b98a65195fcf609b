//! The citations in a note's text: paths, symbols and commands of its project.
//!
//! Only the text is read, so a citation is a guess. A caller that looks it up in a repository
//! ignores one that never existed there. Text that is certainly not a citation is left out: URLs,
//! patterns, versions, alternatives (`and/or`), places outside of the project.
//!
//! Invariant: the text is read once, and yields at most [`MAX_CITATIONS`] citations. Each is one
//! word without control characters; a command is words separated by single blanks.

use std::collections::BTreeSet;

use anamnesis_text::sanitize::head;

use crate::note::words;

/// The most citations of a text.
pub const MAX_CITATIONS: usize = 64;

/// The most of a text that is read, in bytes.
const MAX_TEXT: usize = 64 * 1024;

/// The longest path, in bytes.
const MAX_PATH: usize = 256;

/// The longest symbol, in bytes.
const MAX_SYMBOL: usize = 128;

/// The most names in a symbol.
const MAX_NAMES: usize = 5;

/// The longest target of a command, in bytes.
const MAX_TARGET: usize = 64;

/// Extensions that make a file of a name without a folder.
const EXTENSIONS: [&str; 73] = [
    "adoc", "bash", "bat", "c", "cc", "cfg", "cjs", "clj", "cmake", "conf", "cpp", "cs", "css",
    "csv", "dart", "env", "erl", "ex", "exs", "fish", "go", "gradle", "graphql", "h", "hcl", "hpp",
    "hs", "html", "ini", "ipynb", "java", "js", "json", "jsonl", "jsx", "kt", "kts", "lock", "lua",
    "m", "md", "mjs", "mk", "ml", "nix", "php", "pl", "proto", "ps1", "py", "pyi", "r", "rb", "rs",
    "rst", "scala", "scss", "sh", "snap", "sql", "svelte", "svg", "swift", "tf", "toml", "ts",
    "tsx", "txt", "vue", "xml", "yaml", "yml", "zig",
];

/// Files without an extension.
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

/// Common first folders; two words with a slash between them are a path if the first is one of
/// these.
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

/// Words before a slash that are not folders: of branches, media types and alternatives.
const NOT_FOLDERS: [&str; 28] = [
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

/// Keywords before the name of a definition.
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

/// Names for the current scope.
const SCOPE_NAMES: [&str; 7] = ["Self", "cls", "crate", "self", "std", "super", "this"];

/// Words by which a sentence says that the cited thing no longer exists.
const REMOVAL_WORDS: [&str; 7] = [
    "deleted", "dropped", "gone", "obsolete", "removed", "renamed", "replaced",
];

words! {
    /// The kind of a citation's target.
    CitationKind {
        /// A file or folder, relative to some folder of the project.
        Path = "path",
        /// A function, type or other name in the code.
        Symbol = "symbol",
        /// A command that the project defines: a make target, a package script.
        Command = "command",
    }
}

/// A citation of something in the project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Citation {
    /// The kind of its target.
    pub kind: CitationKind,
    /// The cited text; a path is without `./` and without the line number.
    pub text: String,
    /// Whether the sentence says that something was removed or renamed. Then it may be missing
    /// without the note being outdated.
    pub is_past: bool,
}

impl Citation {
    /// Returns the names in a symbol: `Journal` and `open` of `Journal::open`.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        names(&self.text).filter(|name| !SCOPE_NAMES.contains(name))
    }
}

/// Returns the citations in a text in order, without duplicates. A path below `root`, the project's
/// folder, is returned relative to it. Below `/`, that is the absolute path of a file, without the slash.
pub fn citations(text: &str, root: Option<&str>) -> Vec<Citation> {
    let mut finder = Finder {
        root: root.map(|root| root.trim_end_matches('/')),
        is_past: false,
        seen: BTreeSet::new(),
        citations: Vec::new(),
    };
    let mut is_fenced = false;
    for line in head(text, MAX_TEXT).lines() {
        let start = line.trim_start();
        if start.starts_with("```") || start.starts_with("~~~") {
            is_fenced = !is_fenced;
        } else if is_fenced {
            finder.is_past = false;
            finder.code(line);
        } else {
            for sentence in line.split_inclusive(". ") {
                finder.is_past = is_past(sentence);
                finder.prose(sentence);
            }
        }
    }
    finder.citations
}

/// The state of the search for citations.
struct Finder<'a> {
    root: Option<&'a str>,
    is_past: bool,
    seen: BTreeSet<(CitationKind, String)>,
    citations: Vec<Citation>,
}

impl Finder<'_> {
    fn add(&mut self, kind: CitationKind, text: String) {
        if self.citations.len() < MAX_CITATIONS && self.seen.insert((kind, text.clone())) {
            self.citations.push(Citation {
                kind,
                text,
                is_past: self.is_past,
            });
        }
    }

    /// Reads prose, in which text between backticks is code.
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

    /// Reads the text between backticks.
    fn span(&mut self, code: &str) {
        if let Some(path) = path(code, true, self.root) {
            self.add(CitationKind::Path, path);
        } else if let Some(symbol) = symbol(code) {
            self.add(CitationKind::Symbol, symbol);
        } else {
            self.code(code);
        }
    }

    /// Reads a line of a script or program.
    fn code(&mut self, line: &str) {
        for part in line.split(['&', ';', '|']) {
            if let Some(command) = command(part) {
                self.add(CitationKind::Command, command);
            }
        }
        self.words(line, true);
    }

    fn words(&mut self, text: &str, is_code: bool) {
        let ends_word = |sign: char| sign.is_whitespace() || "<>\"'|,;=`".contains(sign);
        let root = self.root;
        let path = |word: &str| {
            let word = word.trim_start_matches(['*', '_', ':', '!']);
            path(
                word.trim_end_matches(['.', ':', '!', '?', '*']),
                is_code,
                root,
            )
        };
        for word in text.split(ends_word) {
            // A folder of routes is a part of its path: `app/(auth)/login.tsx`.
            let whole = word.contains(")/").then(|| path(word)).flatten();
            if let Some(whole) = whole {
                self.add(CitationKind::Path, whole);
                continue;
            }
            for path in word.split(['(', ')']).filter_map(path) {
                self.add(CitationKind::Path, path);
            }
        }
    }
}

/// Returns whether a sentence says that something no longer exists.
fn is_past(sentence: &str) -> bool {
    let mut before = "";
    sentence
        .split(|sign: char| !sign.is_alphanumeric() && sign != '_')
        .filter(|word| !word.is_empty())
        .any(|word| {
            let is_end = REMOVAL_WORDS
                .iter()
                .any(|past| past.eq_ignore_ascii_case(word))
                || (before.eq_ignore_ascii_case("no") && word.eq_ignore_ascii_case("longer"));
            before = word;
            is_end
        })
}

/// Parses a word as a path, without its line number. Prose needs stronger evidence than code.
fn path(word: &str, is_code: bool, root: Option<&str>) -> Option<String> {
    if word.len() > MAX_PATH || word.contains("://") {
        return None;
    }
    // `src/a.rs:42:7`, `src/a.rs#L42`, `src/a.rs::name`
    let (word, place) = match word.find([':', '#']) {
        Some(at) => (&word[..at], &word[at + 1..]),
        None => (word, ""),
    };
    let line = place.trim_start_matches('L');
    let is_line = line.starts_with(|sign: char| sign.is_ascii_digit());
    if !place.is_empty() && !is_line && !place.starts_with(':') {
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
    let mut names = relative.split('/');
    let is_only_file = root.is_some_and(str::is_empty) && below_root.is_some();
    if !names.clone().all(is_name)
        || !relative.chars().any(char::is_alphabetic)
        || is_only_file && !relative.contains('/')
    {
        return None;
    }
    let (first, last) = (names.next()?, names.next_back());
    let is_path = match last {
        None => is_lone_name(first, is_code, is_folder),
        // A host name or a version.
        Some(_) if first.rfind('.').is_some_and(|at| at > 0) => false,
        Some(last) => {
            has_extension(last)
                || FILES.contains(&last)
                || !is_only_file && (is_folder || FOLDERS.contains(&first) || below_root.is_some())
                || (is_code
                    && !is_only_file
                    && !NOT_FOLDERS.contains(&first)
                    && relative.split('/').all(|name| name.len() > 1))
        }
    };
    is_path.then(|| relative.to_owned())
}

/// Returns whether a part of a path is a name. Routers have folders in brackets: `[slug]`, `(auth)`.
fn is_name(name: &str) -> bool {
    let count = |bracket: char| name.matches(bracket).count();
    let is_route =
        name.starts_with(['[', '(']) && count('[') == count(']') && count('(') == count(')');
    !name.is_empty()
        && !name.chars().all(|sign| ".[]()".contains(sign))
        && name.chars().enumerate().all(|(at, sign)| {
            sign.is_alphanumeric()
                || "_-.+".contains(sign)
                || (sign == '@' && at == 0)
                || is_route && "[]()".contains(sign)
        })
}

/// Returns whether a name without a folder is a file or folder.
fn is_lone_name(name: &str, is_code: bool, is_folder: bool) -> bool {
    let hidden = name.strip_prefix('.');
    if hidden.is_some_and(|hidden| hidden.starts_with("env.")) {
        return true;
    }
    if is_folder || hidden.is_some_and(|hidden| !hidden.contains('.')) {
        return is_code && name.len() > 2;
    }
    if FILES.contains(&name) {
        return true;
    }
    let Some((stem, ending)) = name.rsplit_once('.') else {
        return false;
    };
    // `Node.js` is a product, `server.js` a file.
    let is_product = !is_code && ending == "js" && stem.starts_with(char::is_uppercase);
    EXTENSIONS.contains(&ending) && !is_product && stem.chars().any(char::is_alphabetic)
}

fn has_extension(name: &str) -> bool {
    name.rsplit_once('.').is_some_and(|(stem, ending)| {
        !stem.is_empty()
            && ending.len() <= 8
            && ending.starts_with(|sign: char| sign.is_ascii_alphabetic())
            && ending.chars().all(|sign| sign.is_ascii_alphanumeric())
    })
}

/// Parses code as a name: not an ordinary word, or a call, or after a keyword.
fn symbol(code: &str) -> Option<String> {
    let after_keyword = code
        .split_once(' ')
        .filter(|(keyword, _)| KEYWORDS.contains(keyword))
        .map(|(_, rest)| rest);
    let code = after_keyword
        .unwrap_or(code)
        .trim_start_matches(['&', '*', '@', '$', '#']);
    let end = code.find(['(', '<', '!', '{', ':']);
    // `Type::item` is a path of names; after a single colon comes the type of a field.
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
    let mut own = names(head).filter(|name| !SCOPE_NAMES.contains(name));
    let (first, second) = (own.next()?, own.next());
    let is_symbol = second.is_some()
        || is_call
        || after_keyword.is_some()
        || first.trim_matches('_').contains('_')
        || has_hump(first);
    is_symbol.then(|| head.to_owned())
}

/// Returns the names in a symbol.
fn names(symbol: &str) -> impl Iterator<Item = &str> {
    // `::` leaves an empty piece.
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

/// Returns whether a capital follows a small letter.
fn has_hump(name: &str) -> bool {
    let small = name
        .chars()
        .map(|sign| sign.is_lowercase() || sign.is_ascii_digit());
    let capital = name.chars().skip(1).map(char::is_uppercase);
    small.zip(capital).any(|(small, capital)| small && capital)
}

/// Parses a line as a command of the project: the program and its target.
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
