//! Masks credentials in text before it is kept anywhere.
//!
//! One pass over the bytes looks for the anchors of the rules ([`rules()`]): literals without which a
//! rule cannot apply. At an anchor the rule's scanner reads on and reports what to mask. The text
//! is then read again until nothing more is found, so that masking is idempotent.
//!
//! Not here: private regions (`<private>`), cutting to size, and any judgement of whose secret it
//! is. What is matched, and where the formats were published, is listed in
//! `docs/reference/redaction.md`.
//!
//! Invariants:
//! - Findings are sorted, do not overlap, and lie on character boundaries of the input.
//! - Bytes outside the findings are unchanged.
//! - Time is linear in the text: every scanner reads a bounded stretch, or reads only what no
//!   later anchor reads again.

mod rules;

mod scan;

mod tokens;

mod private_keys;

mod transports;

mod assignments;

mod reading;

mod names;

mod values;

#[cfg(test)]
mod samples;

#[cfg(test)]
mod tests;

use std::borrow::Cow;

pub use rules::{Rule, rules};

/// What stands in place of each masked part.
pub const MASK: &str = "[REDACTED]";

/// How often a text is read at most. Masking can uncover something new (a mask ends a quotation
/// early); two readings settle nearly every text, and the bound keeps hostile ones linear.
const READINGS: usize = 8;

/// A part of the input that was masked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finding {
    /// The name of the rule that found it.
    pub rule: &'static str,
    /// The first byte, counted in the input.
    pub start: usize,
    /// The byte after the last.
    pub end: usize,
}

/// A text without its credentials.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redacted<'a> {
    /// The text with each finding replaced by [`MASK`]; borrowed when nothing was masked.
    pub text: Cow<'a, str>,
    /// What was masked, in order.
    pub findings: Vec<Finding>,
}

/// Masks the credentials in a text.
#[must_use]
pub fn redact(text: &str) -> Redacted<'_> {
    let mut findings = scan::scan(text);
    if findings.is_empty() {
        return Redacted {
            text: Cow::Borrowed(text),
            findings,
        };
    }
    let mut masked = mask(text, &findings);
    for _ in 1..READINGS {
        let uncovered = scan::scan(&masked);
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

/// Joins findings in the input with findings in the masked text, as findings in the input.
fn merge(findings: &[Finding], uncovered: &[Finding]) -> Vec<Finding> {
    let mut translate = Translation {
        findings,
        next: 0,
        shift: 0,
    };
    let mut all = findings.to_vec();
    for finding in uncovered {
        let (start, _) = translate.bounds(finding.start);
        // The end is exclusive: the byte before it is the last one covered.
        let (_, end) = translate.bounds(finding.end.saturating_sub(1));
        all.push(Finding {
            rule: finding.rule,
            start,
            end,
        });
    }
    all.sort_by_key(|finding| (finding.start, finding.end));
    let mut joined: Vec<Finding> = Vec::with_capacity(all.len());
    for finding in all {
        match joined.last_mut() {
            Some(last) if finding.start < last.end => last.end = last.end.max(finding.end),
            _ => joined.push(finding),
        }
    }
    joined
}

/// Translates positions in a masked text, given in ascending order, to the text it came from.
struct Translation<'a> {
    findings: &'a [Finding],
    next: usize,
    /// How far the masked text lies behind (negative) or ahead of the input here.
    shift: isize,
}

impl Translation<'_> {
    /// Returns where the masked byte at a position begins and ends in the input; for a byte of a
    /// mask, those of the whole finding.
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
