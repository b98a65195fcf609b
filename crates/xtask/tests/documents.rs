//! Tests of the documents: links resolve, and every page, decision and module is listed.

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

/// Returns the targets of a page's links, `](target)`, outside of code blocks.
fn links(text: &str) -> Vec<&str> {
    let mut in_code = false;
    let prose = text.lines().filter(|line| {
        let is_fence = line.trim_start().starts_with("```");
        in_code ^= is_fence;
        !in_code && !is_fence
    });
    prose
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| Some(rest.split_once(')')?.0))
        .collect()
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
    for folder in ["", "docs", "docs/reference", "docs/decisions"] {
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
        if ["lab", "testkit", "xtask"].contains(&name.as_str()) {
            continue;
        }
        assert_eq!(mapped_modules(&page, &name), modules(&name), "crate {name}");
    }
}
