//! Masks credentials in text before it is kept anywhere.
//!
//! One pass over the bytes looks for anchors: literals without which a rule cannot match. At an
//! anchor the rule's scanner reads on and reports what to mask. The pass is repeated until nothing
//! more is found, so masking is idempotent.
//!
//! Private regions (`<private>`) and truncation are handled elsewhere. The formats and their
//! sources are listed in `docs/reference/redaction.md`.
//!
//! Invariants:
//! - Findings are sorted, do not overlap, and lie on character boundaries of the input.
//! - Bytes outside the findings are unchanged.
//! - Time is linear in the text: a scanner reads a bounded stretch, or only text that no later
//!   anchor reads again.

mod rules;

mod scan;

mod tokens;

mod private_keys;

mod transports;

mod assignments;

mod surroundings;

mod reading;

mod names;

mod values;

mod disguise;

mod own;

#[cfg(test)]
mod examples;

#[cfg(test)]
mod samples;

#[cfg(test)]
mod kit;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::sync::LazyLock;

use rules::RULES;
use scan::Index;

pub use own::set_patterns;
pub use scan::{Finding, MASK};

/// The index of the marks of all rules.
static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// The most passes over a text. A mask can uncover another credential, for example by ending a
/// quotation early. Nearly every text needs two passes; the bound keeps hostile ones linear.
const MAX_PASSES: usize = 8;

/// A text with its credentials masked.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Redacted<'a> {
    /// The text with each finding replaced by [`MASK`]; borrowed when nothing was masked.
    #[serde(skip)]
    pub text: Cow<'a, str>,
    /// The masked parts, in order.
    pub findings: Vec<Finding>,
}

/// Masks the credentials in a text.
#[must_use]
pub fn redact(text: &str) -> Redacted<'_> {
    let mut findings = pass(text);
    if findings.is_empty() {
        return Redacted {
            text: Cow::Borrowed(text),
            findings,
        };
    }
    let mut masked = mask(text, &findings);
    for _ in 1..MAX_PASSES {
        let uncovered = pass(&masked);
        if uncovered.is_empty() {
            break;
        }
        findings = merge(&findings, &uncovered);
        masked = mask(text, &findings);
    }
    Redacted {
        text: Cow::Owned(masked),
        findings,
    }
}

/// Finds the credentials in a text as it is, and in what it splits or encodes.
fn pass(text: &str) -> Vec<Finding> {
    let mut findings = scan::scan(text, &INDEX);
    let mut others = disguise::findings(text, &INDEX);
    others.extend(own::findings(text));
    if others.is_empty() {
        return findings;
    }
    findings.extend(others);
    join(findings)
}

/// Returns the text with each finding replaced by [`MASK`].
fn mask(text: &str, findings: &[Finding]) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut kept = 0;
    for finding in findings {
        masked.push_str(text.get(kept..finding.start).unwrap_or_default());
        masked.push_str(MASK);
        kept = finding.end;
    }
    masked.push_str(text.get(kept..).unwrap_or_default());
    masked
}

/// Adds findings in the masked text to findings in the input, as positions in the input.
fn merge(findings: &[Finding], uncovered: &[Finding]) -> Vec<Finding> {
    let mut translate = Translation {
        findings,
        next: 0,
        shift: 0,
    };
    let mut all = findings.to_vec();
    for finding in uncovered {
        let (start, _) = translate.bounds(finding.start);
        // The end is exclusive, so the last covered byte is translated.
        let (_, end) = translate.bounds(finding.end.saturating_sub(1));
        all.push(Finding {
            rule: finding.rule,
            start,
            end,
        });
    }
    join(all)
}

/// Sorts findings, and joins those that overlap.
fn join(mut findings: Vec<Finding>) -> Vec<Finding> {
    findings.sort_by_key(|finding| (finding.start, finding.end));
    let mut joined: Vec<Finding> = Vec::with_capacity(findings.len());
    for finding in findings {
        match joined.last_mut() {
            Some(last) if finding.start < last.end => last.end = last.end.max(finding.end),
            _ => joined.push(finding),
        }
    }
    joined
}

/// Translates ascending positions in a masked text to positions in its input.
struct Translation<'a> {
    findings: &'a [Finding],
    next: usize,
    /// The masked position minus the input position at `next`.
    shift: isize,
}

impl Translation<'_> {
    /// Returns the range in the input of the byte at a masked position. For a byte of a mask, that
    /// is the whole finding.
    fn bounds(&mut self, position: usize) -> (usize, usize) {
        while let Some(finding) = self.findings.get(self.next) {
            let start = finding.start.saturating_add_signed(self.shift);
            if position < start {
                break;
            }
            if position < start + MASK.len() {
                return (finding.start, finding.end);
            }
            self.shift += MASK.len().cast_signed() - (finding.end - finding.start).cast_signed();
            self.next += 1;
        }
        let input = position.saturating_add_signed(-self.shift);
        (input, input + 1)
    }
}
