//! Counts how often words occur in texts about programs: the background of recall's rarities.
//!
//! The texts are the Markdown files and the documentation comments of this project's dependencies,
//! as cargo has them on this machine. Only packages that may be used under a permissive licence
//! count. The table holds counts of single words and no text.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use anamnesis_text::terms::terms;
use serde_json::Value;

use crate::{Result, at, cargo, say};

/// The file that recall is built with, from the root of the project.
const TABLE: &str = "crates/recall/src/rank/frequencies.txt";

/// Licences that allow any use of counts, and of the text.
const PERMISSIVE: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "ISC",
    "MIT",
    "Unlicense",
    "Zlib",
];

/// The minimum number of words in a passage, which stands for a note.
const PASSAGE: usize = 60;

/// The maximum number of passages of one package, so that no package's subject is common.
const MAX_PASSAGES: usize = 120;

/// A word is listed if so many packages have it.
const MIN_PACKAGES: usize = 6;

/// The minimum share of passages with a listed word, in ten-thousandths.
const MIN_SHARE: usize = 8;

/// Write the table of word frequencies that recall is built with
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Print the counts and write nothing
    #[arg(long)]
    dry_run: bool,
}

/// Runs `cargo xtask frequencies`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let mut found: BTreeMap<String, (usize, BTreeSet<usize>)> = BTreeMap::new();
    let mut passages = 0;
    let packages = permissive_packages(root)?;
    for (number, folder) in packages.iter().enumerate() {
        for passage in sample(package_passages(folder)?) {
            passages += 1;
            let words: BTreeSet<String> = terms(&passage).into_iter().collect();
            for word in words {
                let (count, packages) = found.entry(word).or_default();
                *count += 1;
                packages.insert(number);
            }
        }
    }
    let mut table = String::new();
    let mut listed = 0;
    for (word, (count, packages)) in &found {
        let share = (count * 10_000).div_ceil(passages);
        let is_word = word.chars().all(|c| c.is_ascii_lowercase());
        if is_word && packages.len() >= MIN_PACKAGES && share >= MIN_SHARE {
            table.push_str(&format!("{word} {share}\n"));
            listed += 1;
        }
    }
    say(&format!(
        "{} packages, {passages} passages, {} words, {listed} listed in {} bytes",
        packages.len(),
        found.len(),
        table.len()
    ));
    if !arguments.dry_run {
        let path = root.join(TABLE);
        fs::write(&path, table).map_err(at(&path))?;
    }
    Ok(())
}

/// Returns the folders of the dependencies that may be used under a permissive licence.
fn permissive_packages(root: &Path) -> Result<Vec<PathBuf>> {
    let output = cargo(root)
        .args(["metadata", "--format-version", "1", "--locked"])
        .output()?;
    if !output.status.success() {
        return Err(format!(
            "cargo metadata: {}",
            String::from_utf8_lossy(&output.stderr)
        )
        .into());
    }
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let mut folders: Vec<PathBuf> = packages
        .filter(|package| !package["source"].is_null())
        .filter(|package| package["license"].as_str().is_some_and(is_permissive))
        .filter_map(|package| {
            Some(
                Path::new(package["manifest_path"].as_str()?)
                    .parent()?
                    .into(),
            )
        })
        .collect();
    folders.sort();
    Ok(folders)
}

/// Returns whether one alternative of a licence expression is permissive.
fn is_permissive(expression: &str) -> bool {
    let alternatives = expression.split(" OR ").flat_map(|part| part.split('/'));
    alternatives
        .map(|part| part.trim_matches(['(', ')', ' ']))
        .any(|part| PERMISSIVE.contains(&part))
}

/// Returns the passages of a package's documents, without code.
fn package_passages(folder: &Path) -> Result<Vec<String>> {
    let mut files = Vec::new();
    collect(folder, &mut files)?;
    files.sort();
    let mut passages = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let is_markdown = file.extension().is_some_and(|extension| extension == "md");
        let prose = if is_markdown {
            text
        } else {
            documentation(&text)
        };
        split(&prose, &mut passages);
    }
    Ok(passages)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result {
    for entry in fs::read_dir(folder).map_err(at(folder))? {
        let entry = entry?;
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            collect(&path, files)?;
        } else if path
            .extension()
            .is_some_and(|ext| ext == "md" || ext == "rs")
        {
            files.push(path);
        }
    }
    Ok(())
}

/// Returns the documentation comments of a source file.
fn documentation(source: &str) -> String {
    let mut prose = String::new();
    for line in source.lines() {
        let line = line.trim_start();
        let comment = line
            .strip_prefix("//!")
            .or_else(|| line.strip_prefix("///"));
        prose.push_str(comment.unwrap_or_default());
        prose.push('\n');
    }
    prose
}

/// Splits text at blank lines into passages of at least [`PASSAGE`] words, without code.
fn split(text: &str, passages: &mut Vec<String>) {
    let mut passage = String::new();
    let mut is_code = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            let words = line.split(' ').filter(|word| !word.contains("://"));
            passage.extend(words.flat_map(|word| [word, " "]));
            passage.push('\n');
            let is_end = line.trim().is_empty();
            if is_end && passage.split_whitespace().count() >= PASSAGE {
                passages.push(std::mem::take(&mut passage));
            }
        }
    }
}

/// Returns at most [`MAX_PASSAGES`] passages, evenly spread.
fn sample(passages: Vec<String>) -> impl Iterator<Item = String> {
    let step = passages.len().div_ceil(MAX_PASSAGES).max(1);
    passages.into_iter().step_by(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_permissive_alternative_is_enough() {
        assert!(is_permissive("MIT OR Apache-2.0"));
        assert!(is_permissive("GPL-3.0 OR (MIT)"));
        assert!(is_permissive("MIT/Apache-2.0"));
        assert!(!is_permissive("MPL-2.0"));
        assert!(!is_permissive("MIT AND GPL-2.0"));
    }

    #[test]
    fn code_is_no_passage() {
        let mut passages = Vec::new();
        let prose = "word ".repeat(PASSAGE);
        split(
            &format!("{prose}\n```\nsecret code\n```\n\nshort\n"),
            &mut passages,
        );
        assert_eq!(passages.len(), 1);
        assert_eq!(passages[0].split_whitespace().count(), PASSAGE);
    }
}
