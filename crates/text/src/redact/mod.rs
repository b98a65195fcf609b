//! Masks credentials in text before it is kept anywhere.
//!
//! The text is normalised once: escapes, terminal sequences and invisible characters become what they
//! stand for (`view`). One pass over its bytes looks for anchors: literals without which a rule
//! cannot match. At an anchor the rule's scanner reads on and reports what to mask. The pass is
//! repeated until nothing more is found, so masking is idempotent.
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

mod reading;

mod sentences;

mod surroundings;

mod names;

mod values;

mod encoded;

mod own;

mod view;

#[cfg(test)]
mod examples;

#[cfg(test)]
mod samples;

#[cfg(test)]
mod kit;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

use rules::RULES;
use scan::{Anchor, Index};
use view::View;

pub use own::{check_pattern, set_patterns};
pub use scan::{Finding, MASK};

/// The index of the marks of all rules.
static INDEX: Index = Index::new(&ANCHORS);
static ANCHORS: [Anchor; 369] = Anchor::sorted(RULES);

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
        let uncovered = pass(&masked.text);
        if uncovered.is_empty() {
            break;
        }
        findings.extend(uncovered.iter().map(|finding| finding.in_source(&masked)));
        findings = join(findings);
        masked = mask(text, &findings);
    }
    let text = masked.text;
    Redacted { text, findings }
}

/// Finds the credentials in a text.
fn pass(text: &str) -> Vec<Finding> {
    let view = View::normalised(text);
    let mut findings = scan::scan(&view.text, &INDEX);
    findings.extend(encoded::findings(&view.text, &INDEX));
    findings.extend(own::findings(&view.text));
    for finding in &mut findings {
        *finding = finding.in_source(&view);
    }
    // `ACME\nina` may be a name of Windows or the end of a line.
    if matches!(view.text, Cow::Owned(_)) {
        findings.extend(own::findings(text));
    }
    join(findings)
}

/// Returns the text with each finding replaced by [`MASK`].
fn mask<'t>(text: &'t str, findings: &[Finding]) -> View<'t> {
    let ranges = findings.iter().map(|finding| finding.start..finding.end);
    View::replaced(text, ranges, MASK)
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
