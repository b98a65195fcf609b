//! Reads the plan that a person approved.

use super::{
    PLAN, ParsedDigest, SessionDigest,
    choose::{repeats, word_set},
    title::MAX_TITLE,
};
use crate::{
    phrases::Words,
    prose::{shorten, without_bold, without_marker},
};

/// How the client words the prompt that starts an approved plan in a new context.
const PROMPT: &str = "Implement the following plan:";

/// The number of steps that are quoted, and their maximum length in characters.
const MAX_STEPS: usize = 3;
const MAX_STEP: usize = 90;

/// The maximum length of the line, in characters.
const MAX_LINE: usize = 320;

/// Returns whether a prompt only starts an approved plan.
pub(super) fn is_prompt(prompt: &str) -> bool {
    prompt.trim_start().starts_with(PROMPT)
}

/// Returns the approved plan, which the first prompt may hold.
pub(super) fn approved(digest: &SessionDigest) -> Option<&str> {
    let first = || {
        digest
            .ask()
            .and_then(|prompt| prompt.trim_start().strip_prefix(PROMPT))
    };
    digest.declared.plan.as_deref().or_else(first)
}

/// Returns what a plan is about: its first heading, or its first line.
pub(super) fn heading(plan: &str) -> Option<String> {
    let first = plan.lines().map(str::trim).find(|line| !line.is_empty())?;
    let heading = without_bold(without_marker(first));
    let is_label = |label: &str| {
        let words = Words::new(label);
        words.iter().count() <= 3 && words.iter().any(|word| word == "plan")
    };
    let heading = match heading.split_once([':', '—', '–']) {
        Some((label, rest)) if is_label(label) => rest.trim().to_owned(),
        _ => heading,
    };
    (!is_label(&heading) && !heading.is_empty()).then_some(heading)
}

/// Returns one line with the plan's heading, unless it is the title, and its first steps.
pub(super) fn line(parsed: &ParsedDigest, title: &str) -> Option<String> {
    let plan = approved(parsed.digest)?;
    let in_title = |heading: &str| word_set(&shorten(heading, MAX_TITLE - 2));
    let heading = heading(plan).filter(|heading| !repeats(&in_title(heading), &word_set(title)));
    let steps = steps(plan).collect::<Vec<_>>().join("; ");
    let text = match (heading, steps.is_empty()) {
        (Some(heading), false) => format!("{heading}: {steps}"),
        (Some(heading), true) => heading,
        (None, false) => steps,
        (None, true) => return None,
    };
    Some(shorten(&format!("{PLAN}{text}"), MAX_LINE))
}

/// Headings of the parts of a plan that say how it is checked, and what was before it.
const NO_STEPS: &str =
    "verification|verify|testing|test plan|how to test|context|background|problem|验证|测试";

/// Returns the numbered items and headings of a plan, without code and without how it is checked.
fn steps(plan: &str) -> impl Iterator<Item = String> {
    let (mut is_code, mut has_steps) = (false, true);
    let lines = plan.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_code ^= is_fence;
        if line.starts_with('#') && !is_code {
            has_steps = !Words::new(line).contain(NO_STEPS);
        }
        has_steps && !is_code && !is_fence
    });
    let steps = lines.filter_map(|line| {
        let text = line.trim_start_matches('#').trim_start();
        let is_step = line.len() == line.trim_start().len()
            && (text.starts_with(|c: char| c.is_ascii_digit()) || text.starts_with("Step "));
        let step = without_bold(without_marker(text));
        (is_step && step.contains(' ')).then(|| shorten(&step, MAX_STEP))
    });
    steps.take(MAX_STEPS)
}
