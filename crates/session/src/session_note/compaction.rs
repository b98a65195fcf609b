//! Reads the summary with which the client made room in a session's context.
//!
//! It is Claude's text: none of it is quoted as the person's, who may have said something else. Its
//! sections are the client's. The content that [`INSTRUCTIONS`] request may be in any of them.

use crate::prose::{without_bold, without_marker};

/// The instructions for the client's summary.
pub const INSTRUCTIONS: &str = "\
    In \"All user messages\", quote word for word what the user corrected, forbade or decided.\n\
    In \"Errors and fixes\", give the commands that failed and what made each work; in \"Pending Tasks\", only what is still open.";

/// The client's summary of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Its text, sanitised.
    pub text: String,
    /// Whether no answer followed it, so that what it calls open is open.
    pub is_last: bool,
}

/// A section that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Section {
    /// The person's messages.
    Messages,
    /// Errors, their fixes, and decisions.
    Findings,
    /// The remaining work.
    Pending,
    /// The current work.
    Current,
}

/// Parts of the headings of the sections, in lower case.
const HEADINGS: [(&str, Section); 7] = [
    ("user message", Section::Messages),
    ("error", Section::Findings),
    ("problem solving", Section::Findings),
    ("decision", Section::Findings),
    ("correction", Section::Findings),
    ("pending", Section::Pending),
    ("current work", Section::Current),
];

impl Compacted {
    /// Returns the items of a section. An error comes with the first line below it, its fix.
    pub(super) fn items(&self, wanted: Section) -> Vec<String> {
        let mut section = None;
        let mut is_code = false;
        let mut items: Vec<String> = Vec::new();
        for line in self.text.lines() {
            let text = line.trim();
            is_code ^= text.starts_with("```");
            if is_code || text.is_empty() || text.starts_with("```") {
                continue;
            }
            if let Some(heading) = heading(line) {
                let known = HEADINGS.iter().find(|(part, _)| heading.contains(part));
                section = known.map(|(_, section)| *section);
                continue;
            }
            if section != Some(wanted) {
                continue;
            }
            let item = without_bold(without_marker(text));
            match items.last_mut().filter(|last| last.ends_with(':')) {
                Some(error) => {
                    error.push(' ');
                    error.push_str(&item);
                }
                None => items.push(item),
            }
        }
        items.retain(|item| !item.ends_with(':') && item.split(' ').count() >= MIN_WORDS);
        items
    }
}

/// An item with fewer words tells nothing: "None at this time".
const MIN_WORDS: usize = 4;

/// Returns the text of a heading in lower case: `4. Errors and fixes:`, `## Errors and fixes`.
fn heading(line: &str) -> Option<String> {
    let numbered = line
        .trim_start_matches(|c: char| c.is_ascii_digit())
        .strip_prefix(". ")
        .filter(|_| line.starts_with(|c: char| c.is_ascii_digit()))
        .filter(|rest| rest.trim_end().ends_with(':'));
    let marked = line.starts_with('#').then(|| line.trim_start_matches('#'));
    Some(numbered.or(marked)?.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
1. Primary Request and Intent:
   The user wants vouchers that expire.
3. Files and Code Sections:
   - src/voucher.rs
4. Errors and fixes:
    - **`make test` failed: a voucher of yesterday was valid**:
      - The date was compared as text; `voucher.rs` parses it now.
      - The user said nothing to it.
    - None
6. All user messages:
    - \"Let vouchers expire at midnight\"
7. Pending Tasks:
   - Document the new field in docs/voucher.md
8. Current Work:
   The migration of old vouchers was half written.
   ```rust
   fn migrate() {}
   ```
9. Optional Next Step:
   Ask the user about old vouchers.";

    #[test]
    fn a_section_has_its_items_and_an_error_its_fix() {
        let compacted = Compacted {
            text: TEXT.to_owned(),
            is_last: true,
        };
        for (section, expected) in [
            (Section::Messages, "\"Let vouchers expire at midnight\""),
            (
                Section::Pending,
                "Document the new field in docs/voucher.md",
            ),
            (
                Section::Current,
                "The migration of old vouchers was half written.",
            ),
        ] {
            assert_eq!(compacted.items(section), [expected], "{section:?}");
        }
        assert_eq!(
            compacted.items(Section::Findings),
            [
                "`make test` failed: a voucher of yesterday was valid: The date was compared as text; \
                 `voucher.rs` parses it now.",
                "The user said nothing to it."
            ]
        );
    }
}
