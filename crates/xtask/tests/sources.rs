//! What the program's sources must not hold: nothing sleeps, polls or opens a socket.
//!
//! Whoever has to wait is woken by the kernel: by a lock, by a channel, by SQLite's busy timeout. A
//! loop that looks again and again would keep a machine awake for nothing.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The crates that are part of the program.
const CRATES: [&str; 7] = ["text", "note", "session", "store", "recall", "mcp", "cli"];

/// Ways to wait without being woken, or to be reached over a network.
const FORBIDDEN: [&str; 13] = [
    "thread::sleep",
    "sleep(",
    "spin_loop",
    "yield_now",
    "park_timeout",
    "try_recv",
    "try_wait",
    "poll(",
    "std::net",
    "TcpListener",
    "TcpStream",
    "UdpSocket",
    "os::unix::net",
];

/// The lines of a source that the program is made of: no comments, and nothing after its tests begin.
fn code(source: &str) -> impl Iterator<Item = &str> {
    source
        .lines()
        .take_while(|line| !line.starts_with("#[cfg(test)]") && !line.starts_with("#[cfg(all(test"))
        .filter(|line| !line.trim_start().starts_with("//"))
}

/// The forbidden words in a source, each with its line.
fn found(source: &str) -> Vec<(&'static str, String)> {
    code(source)
        .flat_map(|line| {
            let words = FORBIDDEN.iter().filter(move |word| line.contains(**word));
            words.map(move |word| (*word, line.trim().to_owned()))
        })
        .collect()
}

fn sources(folder: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, into);
        } else if path.extension().is_some_and(|ending| ending == "rs")
            && !path.ends_with("tests.rs")
        {
            into.push(path);
        }
    }
}

#[test]
fn nothing_sleeps_polls_or_opens_a_socket() {
    let mut paths = Vec::new();
    for name in CRATES {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/src"));
        sources(&folder, &mut paths);
    }
    assert!(paths.len() > 50, "{} sources", paths.len());
    for path in paths {
        let found = found(&fs::read_to_string(&path).unwrap());
        assert!(found.is_empty(), "{}: {found:?}", path.display());
    }
}

#[test]
fn what_is_forbidden_is_found() {
    let source = "use std::thread;\n// never sleep\nthread::sleep(time);\n#[cfg(test)]\nmod tests {\n  try_wait();\n";
    let words: Vec<&str> = found(source).into_iter().map(|(word, _)| word).collect();
    assert_eq!(words, ["thread::sleep", "sleep("]);
    assert_eq!(found("TcpStream::connect(address)").len(), 1);
}
