//! What readers of the documents rely on: links lead somewhere, and every decision is listed.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The markdown files of a folder.
fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "md"))
        .collect();
    pages.sort();
    pages
}

/// The targets of a page's links, `](target)`, code blocks left out.
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

/// The anchor that GitHub gives a heading.
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
fn every_link_within_the_tree_leads_somewhere() {
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
