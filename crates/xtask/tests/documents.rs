//! Tests of the documents: links, paths and mentions of decisions resolve, and every page, decision
//! and module is listed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the Markdown files of a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.sort();
    pages
}

/// The folders that have pages.
const FOLDERS: [&str; 4] = ["", "docs", "docs/reference", "docs/decisions"];

/// Returns a page's lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    })
}

/// Returns the targets of a page's links, `](target)`, outside of code blocks.
fn links(text: &str) -> Vec<&str> {
    prose(text)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .collect()
}

/// Returns the paths of a page's code marks: of a folder in the root, or of a source file. An item
/// after `::` is no part of the path.
fn marked_paths<'a>(text: &'a str, tops: &BTreeSet<&str>) -> Vec<&'a str> {
    let is_path_char = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '/' | '-');
    prose(text)
        .flat_map(|line| line.split('`').skip(1).step_by(2))
        .map(|mark| mark.split("::").next().unwrap().trim_end_matches('/'))
        .filter(|mark| mark.chars().all(is_path_char))
        .filter(|mark| {
            let is_below = |(top, _): (&str, &str)| tops.contains(top);
            let extension = Path::new(mark).extension();
            mark.split_once('/').is_some_and(is_below)
                || extension.is_some_and(|extension| extension == "rs" || extension == "sql")
        })
        .collect()
}

/// Collects the files and folders of the checkout, with their paths from the root.
fn tree(folder: &Path, prefix: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        if name.starts_with('.') || name == "target" {
            continue;
        }
        let path = format!("{prefix}{name}");
        if entry.file_type().unwrap().is_dir() {
            tree(&entry.path(), &format!("{path}/"), found);
        }
        found.insert(path);
    }
}

/// Returns GitHub's anchor for a heading.
fn anchor(heading: &str) -> String {
    heading
        .to_lowercase()
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

fn has_heading(page: &Path, wanted: &str) -> bool {
    fs::read_to_string(page)
        .unwrap()
        .lines()
        .filter(|line| line.starts_with('#'))
        .any(|line| anchor(line.trim_start_matches('#').trim()) == wanted)
}

#[test]
fn every_relative_link_resolves() {
    let mut checked = 0;
    for folder in FOLDERS {
        for page in pages(&root().join(folder)) {
            let text = fs::read_to_string(&page).unwrap();
            for link in links(&text)
                .into_iter()
                .filter(|link| !link.contains("://"))
            {
                let (path, heading) = link.split_once('#').unwrap_or((link, ""));
                let target = if path.is_empty() {
                    page.clone()
                } else {
                    page.parent().unwrap().join(path)
                };
                assert!(target.exists(), "{}: {link}", page.display());
                assert!(
                    heading.is_empty() || has_heading(&target, heading),
                    "{}: {link}",
                    page.display()
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 40, "only {checked} links were found");
}

/// A path may be shortened at its beginning: `cli/src/main.rs` is `crates/cli/src/main.rs`.
#[test]
fn every_path_in_a_code_mark_exists() {
    let mut tree_paths = BTreeSet::new();
    tree(&root(), "", &mut tree_paths);
    let tops: BTreeSet<&str> = tree_paths
        .iter()
        .filter_map(|path| Some(path.split_once('/')?.0))
        .collect();
    let exists = |wanted: &str| {
        tree_paths.iter().any(|path| {
            let before = path.strip_suffix(wanted);
            before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
        })
    };
    let (mut checked, mut missing) = (0, Vec::new());
    for folder in FOLDERS {
        for page in pages(&root().join(folder)) {
            // The changelog names files as they were, the page on style shows bad examples.
            if page.ends_with("CHANGELOG.md") || page.ends_with("style.md") {
                continue;
            }
            let text = fs::read_to_string(&page).unwrap();
            for path in marked_paths(&text, &tops) {
                checked += 1;
                if !exists(path) {
                    missing.push(format!("{}: {path}", page.display()));
                }
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 200, "only {checked} paths were found");
}

/// Finds "decision 0005", and a path to a page in the comments of sources.
#[test]
fn every_decision_that_is_mentioned_exists() {
    let mut tree_paths = BTreeSet::new();
    tree(&root(), "", &mut tree_paths);
    let (mut checked, mut missing) = (0, Vec::new());
    for path in &tree_paths {
        let extension = Path::new(path).extension();
        if !extension.is_some_and(|it| it == "rs" || it == "md") || path == "CHANGELOG.md" {
            continue;
        }
        let text = fs::read_to_string(root().join(path)).unwrap();
        let by_number = text
            .split("ecision ")
            .skip(1)
            .filter_map(|rest| rest.get(..4));
        let by_path = text.split("docs/decisions/").skip(1).filter_map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '-')?;
            Some(&rest[..end])
        });
        for page in by_number.chain(by_path).filter(|it| it.starts_with('0')) {
            checked += 1;
            let wanted = format!("docs/decisions/{page}");
            if !tree_paths.iter().any(|path| path.starts_with(&wanted)) {
                missing.push(format!("{path}: {page}"));
            }
        }
    }
    assert!(missing.is_empty(), "{missing:#?}");
    assert!(checked > 5, "only {checked} mentions were found");
}

#[test]
fn every_decision_is_listed_by_its_title() {
    let folder = root().join("docs/decisions");
    let index = fs::read_to_string(folder.join("README.md")).unwrap();
    let listed: Vec<&str> = index
        .lines()
        .filter(|line| line.starts_with("| [0"))
        .collect();
    let expected: Vec<String> = pages(&folder)
        .iter()
        .filter(|page| !page.ends_with("README.md"))
        .map(|page| {
            let name = page.file_name().unwrap().to_str().unwrap();
            let text = fs::read_to_string(page).unwrap();
            let title = text.lines().next().unwrap().strip_prefix("# ").unwrap();
            format!("| [{}]({name}) | {title} |", &name[..4])
        })
        .collect();
    assert_eq!(listed, expected);
}

#[test]
fn docs_readme_lists_every_page() {
    let docs = root().join("docs");
    let map = fs::read_to_string(docs.join("README.md")).unwrap();
    let mapped = links(&map);
    for folder in ["", "reference"] {
        for page in pages(&docs.join(folder)) {
            let name = page.strip_prefix(&docs).unwrap().to_str().unwrap();
            let name = name.replace('\\', "/");
            assert!(
                name == "README.md" || mapped.contains(&name.as_str()),
                "{name} is missing in docs/README.md"
            );
        }
    }
}

/// The table says what the plugin does with each part of the client's memory, which changes often.
#[test]
fn the_comparison_with_the_clients_memory_is_for_the_pinned_client() {
    let client = fs::read_to_string(root().join("crates/testkit/src/client.rs")).unwrap();
    let (_, rest) = client.split_once("CLIENT_VERSION: &str = \"").unwrap();
    let (version, _) = rest.split_once('"').unwrap();
    let page = fs::read_to_string(root().join("docs/comparison.md")).unwrap();
    assert!(
        page.contains(&format!("For Claude Code {version}, ")),
        "{version}"
    );
}

/// Returns a crate's modules that the code map of the architecture page lists.
fn mapped_modules(page: &str, name: &str) -> BTreeSet<String> {
    let (_, section) = page.split_once(&format!("\n### `{name}`: ")).unwrap();
    let section = section.split("\n#").next().unwrap();
    section
        .lines()
        .filter_map(|line| line.strip_prefix("- ")?.split_once(": "))
        .flat_map(|(modules, _)| modules.split(", "))
        .map(|module| module.trim_matches('`').to_owned())
        .collect()
}

/// Returns the top-level modules of a crate.
fn modules(name: &str) -> BTreeSet<String> {
    let sources = root().join("crates").join(name).join("src");
    fs::read_dir(sources)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_none_or(|extension| extension == "rs"))
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .filter(|module| !["lib", "main", "tests", "snapshots"].contains(&module.as_str()))
        .collect()
}

#[test]
fn the_code_map_lists_the_modules_of_every_crate() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let crates = fs::read_dir(root().join("crates")).unwrap();
    for entry in crates {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // The page describes the tools for developers in one paragraph.
        if ["lab", "testkit", "trials", "xtask"].contains(&name.as_str()) {
            continue;
        }
        assert_eq!(mapped_modules(&page, &name), modules(&name), "crate {name}");
    }
}
