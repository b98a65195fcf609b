//! Shows what redaction masks in files, with the text around each mask, to be reviewed by eye.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anamnesis_text::redact::{MASK, redact};

use crate::{Result, say};

/// The largest file that is read, in bytes.
const LARGEST: u64 = 1 << 20;

/// Show what redaction masks in files, in context
///
/// Folders are searched; links, binary and large files are skipped. The output contains the text
/// around each mask, so do not commit it.
#[derive(clap::Args)]
pub struct Arguments {
    /// Files and folders
    #[arg(required = true)]
    paths: Vec<PathBuf>,
    /// Read at most this many files
    #[arg(long, default_value_t = 10_000)]
    files: usize,
    /// Only files whose names end with one of these, separated by commas
    #[arg(long, value_delimiter = ',')]
    endings: Vec<String>,
    /// Print every Nth mask only
    #[arg(long, default_value_t = 1)]
    every: usize,
    /// Show the masked text, too
    #[arg(long)]
    reveal: bool,
}

/// Runs the task.
///
/// # Errors
/// Returns an error if the output is closed.
pub fn run(arguments: &Arguments) -> Result {
    let mut files = Vec::new();
    for path in &arguments.paths {
        collect(path, arguments, &mut files);
    }
    let mut out = io::stdout().lock();
    let (mut read, mut bytes, mut masked, mut seen) = (0_usize, 0_usize, 0_usize, 0_usize);
    let mut rules: BTreeMap<&str, usize> = BTreeMap::new();
    for path in files {
        let Ok(text) = fs::read_to_string(&path) else {
            continue;
        };
        read += 1;
        bytes += text.len();
        let redacted = redact(&text);
        masked += usize::from(!redacted.findings.is_empty());
        for finding in &redacted.findings {
            *rules.entry(finding.rule).or_default() += 1;
            seen += 1;
            if !seen.is_multiple_of(arguments.every.max(1)) {
                continue;
            }
            let before = around(&text, finding.start.saturating_sub(70), finding.start);
            let after = around(&text, finding.end, finding.end + 30);
            let hidden = around(&text, finding.start, finding.end.min(finding.start + 60));
            let shown = if arguments.reveal {
                hidden
            } else {
                MASK.to_owned()
            };
            let line = text
                .get(..finding.start)
                .map_or(0, |head| head.matches('\n').count())
                + 1;
            writeln!(
                out,
                "{} {}:{line}: {before}⟦{shown}⟧{after}",
                finding.rule,
                path.display()
            )?;
        }
    }
    for (rule, count) in &rules {
        say(&format!("{rule:20} {count:6}"));
    }
    say(&format!(
        "{read} files, {bytes} bytes, {seen} masks in {masked} files"
    ));
    Ok(())
}

/// Adds the files under a path that are to be read.
fn collect(path: &Path, arguments: &Arguments, files: &mut Vec<PathBuf>) {
    let Ok(kind) = fs::symlink_metadata(path) else {
        return;
    };
    if files.len() >= arguments.files || kind.is_symlink() {
        return;
    }
    if kind.is_dir() {
        let Ok(entries) = fs::read_dir(path) else {
            return;
        };
        let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
        paths.sort();
        for path in paths {
            collect(&path, arguments, files);
        }
        return;
    }
    let name = path.to_string_lossy();
    let wanted = arguments.endings.is_empty()
        || arguments
            .endings
            .iter()
            .any(|ending| name.ends_with(ending.as_str()));
    if wanted && kind.len() <= LARGEST {
        files.push(path.to_path_buf());
    }
}

/// Returns a part of a text in one line, moved to character boundaries.
fn around(text: &str, start: usize, end: usize) -> String {
    let boundary = |mut at: usize| {
        at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        at
    };
    let part = text.get(boundary(start)..boundary(end)).unwrap_or_default();
    part.replace('\n', "⏎")
}
