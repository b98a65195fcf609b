//! Measures the product's code: lines per crate, long files and functions, circles of imports.

use std::path::Path;

use crate::source::{Crate, PRODUCT, SourceFile};
use crate::{Result, say};

/// Product lines of all crates together. It only falls; a change that needs more says what it removes.
const MAX_TOTAL: usize = 87_900;
/// Product lines of one file.
const MAX_FILE: usize = 600;
/// Product lines of one function, from its `fn` to its closing brace.
const MAX_FUNCTION: usize = 80;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Fail if a limit is exceeded
    #[arg(long)]
    pub(crate) check: bool,
}

/// The task: `cargo xtask size`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let mut over = Vec::new();
    let mut total = 0;
    for name in PRODUCT {
        let read = Crate::read(root, name)?;
        let mut lines = 0;
        for file in &read.files {
            let own = file.product_lines().count();
            let path = shown(root, &file.path);
            if own > MAX_FILE {
                over.push(format!("{path}: {own} lines (limit {MAX_FILE})"));
            }
            for function in file.functions.iter().filter(|it| it.lines > MAX_FUNCTION) {
                let (name, lines) = (&function.name, function.lines);
                over.push(format!(
                    "{path}: {name}: {lines} lines (limit {MAX_FUNCTION})"
                ));
            }
            lines += own;
        }
        for cycle in read.cycles() {
            let relative = |file: &&SourceFile| shown(root, &file.path);
            let files: Vec<String> = cycle.iter().map(relative).collect();
            over.push(format!("import cycle: {}", files.join(", ")));
        }
        say(&format!(
            "{name:10} {lines:6} lines in {:3} files",
            read.files.len()
        ));
        total += lines;
    }
    say(&format!("{:10} {total:6} lines", "in all"));
    if total > MAX_TOTAL {
        over.push(format!("all crates: {total} lines (limit {MAX_TOTAL})"));
    }
    for line in &over {
        say(&format!("over: {line}"));
    }
    if arguments.check && !over.is_empty() {
        return Err(format!("{} limits exceeded", over.len()).into());
    }
    Ok(())
}

fn shown(root: &Path, path: &Path) -> String {
    let relative = path.strip_prefix(root).unwrap_or(path);
    relative.display().to_string()
}
