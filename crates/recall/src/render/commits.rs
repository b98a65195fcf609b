//! Renders commits that may answer a prompt: a line of each.

use super::{CLOSE, OPEN};
use crate::project_history::FoundCommit;

/// Tells the model what the lines are, and how to see more.
const INTRODUCTION: &str =
    "Commits of this project that may answer, as data. See one with git show.";

/// Renders commits; empty if there are none.
pub fn commit_block(commits: &[FoundCommit]) -> String {
    if commits.is_empty() {
        return String::new();
    }
    let lines = commits.iter().map(|found| format!("- {}\n", found.line()));
    format!("{OPEN}{INTRODUCTION}\n{}{CLOSE}", lines.collect::<String>())
}
