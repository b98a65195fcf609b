//! The table in SECURITY.md is true: a row that is said to hold names tests that exist and carry its
//! id.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anamnesis_testkit::rust_files;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A row of the table.
struct Row {
    id: String,
    /// Names as `path::function`.
    tests: Vec<String>,
    holds: String,
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(root().join("SECURITY.md")).unwrap();
    text.lines()
        .filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"))
        .map(|line| line.split(" | ").collect::<Vec<_>>())
        .filter(|cells| is_id(cells[0]))
        .map(|cells| {
            let [id, _, tests, holds] = cells[..] else {
                panic!("a row has four cells: {cells:?}")
            };
            Row {
                id: id.to_owned(),
                tests: tests
                    .split('`')
                    .skip(1)
                    .step_by(2)
                    .map(str::to_owned)
                    .collect(),
                holds: holds.to_owned(),
            }
        })
        .collect()
}

/// Returns whether a word is a row's id: capitals, a dash, two digits.
fn is_id(word: &str) -> bool {
    word.split_once('-').is_some_and(|(family, number)| {
        family
            .chars()
            .all(|character| character.is_ascii_uppercase())
            && number.len() == 2
            && number.chars().all(|character| character.is_ascii_digit())
    })
}

/// The text of each test of the tree, with the comments right before it, by `path::function`.
fn tests() -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, source) in rust_files(&root()).unwrap() {
        for (function, text) in functions(&source) {
            found.insert(format!("{name}::{function}"), text);
        }
    }
    found
}

/// The tests of a source, each from what stands right before it to what stands before the next one.
fn functions(source: &str) -> Vec<(String, String)> {
    let source = source.replace("\r\n", "\n");
    let starts = source
        .match_indices("#[test]\n")
        .map(|(at, _)| with_what_is_before(&source, at));
    let starts: Vec<usize> = starts.chain([source.len()]).collect();
    starts
        .windows(2)
        .filter_map(|pair| {
            let text = &source[pair[0]..pair[1]];
            let (_, rest) = text.split_once("fn ")?;
            let name = rest.split('(').next()?;
            Some((name.to_owned(), text.to_owned()))
        })
        .collect()
}

/// Where the comments and attributes begin that stand right before a place.
fn with_what_is_before(source: &str, at: usize) -> usize {
    let mut start = source[..at].rfind('\n').map_or(0, |end| end + 1);
    while start > 0 {
        let before = source[..start - 1].rfind('\n').map_or(0, |end| end + 1);
        let line = source[before..start].trim_start();
        if !(line.starts_with("//") || line.starts_with("#[")) {
            break;
        }
        start = before;
    }
    start
}

#[test]
fn every_row_that_holds_names_tests_that_carry_its_id() {
    let rows = rows();
    assert!(rows.len() > 40, "{}", rows.len());
    let tests = tests();
    for row in rows {
        assert!(
            row.holds == "yes"
                || row.holds.starts_with("in part: ")
                || row.holds.starts_with("not yet: "),
            "{}: {}",
            row.id,
            row.holds
        );
        assert_eq!(
            row.tests.is_empty(),
            row.holds.starts_with("not yet"),
            "{}",
            row.id
        );
        for name in &row.tests {
            let text = tests
                .get(name)
                .unwrap_or_else(|| panic!("{}: there is no test {name}", row.id));
            assert!(text.contains(&row.id), "{name} does not carry {}", row.id);
        }
    }
}

#[test]
fn the_table_has_each_row_once_and_every_id_of_the_tests() {
    let rows = rows();
    let mut ids: Vec<&str> = rows.iter().map(|row| row.id.as_str()).collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "a row stands there twice");
    for (name, text) in tests() {
        // Not this file's own.
        if name.contains("security_table") {
            continue;
        }
        let words =
            text.split(|character: char| !character.is_ascii_alphanumeric() && character != '-');
        for id in words.filter(|word| is_id(word) && word.len() >= 6) {
            let family = id.split('-').next().unwrap_or_default();
            if ["PATH", "YAML", "CAP", "INJ", "SQL", "HOOK", "DEL"].contains(&family) {
                assert!(ids.contains(&id), "{name} carries {id}, the table does not");
            }
        }
    }
}

#[test]
fn the_program_has_no_code_for_the_network() {
    // HOOK-11, HOOK-12, DEL-04: nothing is listened to, nothing is asked, nothing is reported. Only
    // `distill` can ask, and only a model that a person named. Only the viewer's server listens.
    let mut pending: Vec<PathBuf> = [
        "embedding",
        "text",
        "note",
        "session",
        "store",
        "recall",
        "app",
        "mcp",
        "web",
        "cli",
    ]
    .map(|name| root().join("crates").join(name).join("src"))
    .to_vec();
    let mut read = 0;
    while let Some(path) = pending.pop() {
        if path.is_dir() {
            pending.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            continue;
        }
        if path.ends_with("web/src/server.rs") {
            continue;
        }
        let source = fs::read_to_string(&path).unwrap();
        for sign in [
            "std::net",
            "TcpStream",
            "TcpListener",
            "UdpSocket",
            "UnixListener",
            "UnixStream",
        ] {
            assert!(!source.contains(sign), "{sign} in {}", path.display());
        }
        read += 1;
    }
    assert!(read > 30, "{read}");
    for (name, can_ask) in [
        ("embedding", false),
        ("text", false),
        ("note", false),
        ("session", false),
        ("store", false),
        ("recall", false),
        ("distill", true),
        ("app", false),
        ("mcp", false),
        ("sync", false),
        ("web", false),
        ("cli", false),
    ] {
        let path = root().join("crates").join(name).join("Cargo.toml");
        let manifest = fs::read_to_string(path).unwrap();
        assert_eq!(manifest.contains("ureq"), can_ask, "{name}");
    }
    // What else it is built from opens no connection: git2 has neither transport built in.
    let manifest = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let git2 = manifest
        .lines()
        .find(|line| line.starts_with("git2 = "))
        .unwrap();
    assert!(
        git2.contains("default-features = false")
            && !git2.contains("https")
            && !git2.contains("ssh")
    );
}
