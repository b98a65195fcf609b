//! Masks private tokens and credentials.

use std::borrow::Cow;
use std::ops::Range;

use super::gap::{GAP, GUARD, SplitText, with_gap};
use super::leaf::{Leaf, Role};
use super::{head, tail};
use crate::private_tokens::PrivateTokens;
use crate::redact::{self, redact};

/// The most of a string that is redacted again together with its name, in bytes.
const MAX_NAMED: usize = 4 * 1024;

/// Masks private tokens and credentials.
pub(super) struct Masker<'e> {
    private_tokens: &'e PrivateTokens,
    pub(super) masked: usize,
}

impl<'e> Masker<'e> {
    pub(super) fn new(private_tokens: &'e PrivateTokens) -> Self {
        let masked = 0;
        Masker {
            private_tokens,
            masked,
        }
    }

    /// Masks a text. If it has a gap, drops the guards beside it.
    pub(super) fn mask<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let parts = SplitText::new(text);
        if parts.is_whole {
            return self.mask_whole(text);
        }
        let masked_head = self.mask_whole(parts.head);
        let masked_tail = self.mask_whole(parts.tail);
        let kept_head = head(&masked_head, masked_head.len().saturating_sub(GUARD));
        let kept_tail = tail(&masked_tail, masked_tail.len().saturating_sub(GUARD));
        let guards = [
            &masked_head[kept_head.len()..],
            &masked_tail[..masked_tail.len() - kept_tail.len()],
        ];
        let guards: usize = guards.iter().map(|guard| guard.chars().count()).sum();
        Cow::Owned(with_gap(kept_head, parts.left_out + guards, kept_tail))
    }

    fn mask_whole<'a>(&mut self, text: &'a str) -> Cow<'a, str> {
        let (text, masked) = self.private_tokens.mask_counted(text);
        self.masked += masked;
        let redacted = redact(&text);
        self.masked += redacted.findings.len();
        match redacted.text {
            Cow::Owned(masked) => Cow::Owned(masked),
            Cow::Borrowed(_) => text,
        }
    }

    /// Masks each text by itself, then together with the name before it.
    pub(super) fn mask_leaves(&mut self, leaves: &mut [Leaf]) {
        for leaf in leaves.iter_mut() {
            if let Cow::Owned(masked) = self.mask(&leaf.text) {
                leaf.text = masked;
            }
        }
        let (text, slots) = written(leaves);
        let findings = redact(&text).findings;
        self.masked += findings.len();
        let mut findings = findings.as_slice();
        for (leaf, slot) in leaves.iter_mut().zip(slots) {
            let before = findings.iter().take_while(|found| found.end <= slot.start);
            findings = &findings[before.count()..];
            let mut masked = String::new();
            let mut end = 0;
            for found in findings.iter().take_while(|found| found.start < slot.end) {
                let start = found.start.saturating_sub(slot.start);
                masked.push_str(leaf.text.get(end..start).unwrap_or_default());
                masked.push_str(redact::MASK);
                end = (found.end - slot.start).min(slot.len());
            }
            if end > 0 {
                // A secret at the end of the part that was read may be longer than the part.
                if end < slot.len() {
                    masked.push_str(&leaf.text[end..]);
                }
                leaf.text = masked;
            }
        }
    }
}

/// Writes names before their values, a line per value, so that secrets are recognized by names and
/// arrays of lines read as lines. Also returns the range of each leaf.
///
/// A leaf is as long as its text: a character that would need an escape is replaced. Of a long text
/// only the beginning is written.
fn written(leaves: &[Leaf]) -> (String, Vec<Range<usize>>) {
    let mut text = String::new();
    let mut slots = Vec::new();
    for leaf in leaves {
        let before_gap = leaf.text.find(GAP).unwrap_or(leaf.text.len());
        let part = head(&leaf.text, MAX_NAMED.min(before_gap));
        let (open, close) = match leaf.role {
            Role::Entry | Role::Name if text.ends_with(": ") => ("{\n\"", "\": "),
            Role::Entry | Role::Name => ("\"", "\": "),
            Role::Text => ("\"", "\",\n"),
            Role::Number => ("", ",\n"),
        };
        text.push_str(open);
        let start = text.len();
        text.extend(part.chars().map(|c| match c {
            '\n' | '\t' => ' ',
            '"' | '\\' => '_',
            c => c,
        }));
        slots.push(start..text.len());
        text.push_str(close);
    }
    (text, slots)
}
