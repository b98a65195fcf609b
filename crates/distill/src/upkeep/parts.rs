//! Splits long notes at their headings, or at their lists if they have none.
//!
//! A part is an exact piece of the text; only blank lines between parts are dropped. The note
//! itself stays and is superseded by its parts.

use std::ops::Range;

use anamnesis_note::{
    draft::title_of,
    id::NoteId,
    link::{Link, Relation},
    note::{Kind, Note, Source},
};

use super::{Action, PlanState};

/// A text with more characters counts as long.
pub const LONG: usize = 2_000;

/// The maximum number of parts.
const MAX_PARTS: usize = 40;

/// Plans to split the long notes.
pub(super) fn split_long(state: &mut PlanState<'_>) {
    split(state, |note| note.body.chars().count() > LONG);
}

/// Plans to split the selected notes.
pub(super) fn split(state: &mut PlanState<'_>, is_selected: impl Fn(&Note) -> bool) {
    let found: Vec<(NoteId, Vec<Note>)> = state
        .in_use()
        .into_iter()
        .filter(|note| is_selected(note))
        .filter_map(|note| Some((note.id, parts(note)?)))
        .filter(|(_, parts)| parts.iter().all(|part| state.is_free(part.id)))
        .collect();
    for (note, parts) in found {
        state.actions.push(Action::Split {
            note,
            parts: parts.iter().map(|part| part.id).collect(),
        });
        state.replaced.insert(note);
        for part in parts {
            state.make(part);
        }
    }
}

/// Returns the parts of a note as notes.
///
/// Returns `None` if there are fewer than two, if the note is indivisible (a session note, a task,
/// a warning), or if it is a copy of Claude's memory.
pub fn parts(note: &Note) -> Option<Vec<Note>> {
    let is_one = matches!(
        note.kind(),
        Kind::Experience | Kind::Task | Kind::Antipattern
    );
    if is_one || note.source == Source::Import {
        return None;
    }
    let pieces = pieces(&note.body);
    if !(2..=MAX_PARTS).contains(&pieces.len()) {
        return None;
    }
    let part_of = Link {
        relation: Relation::PartOf,
        target: note.id,
        weight: None,
    };
    let made = pieces.into_iter().map(|piece| {
        let piece = note.body.get(piece).unwrap_or_default();
        let mut part = Note {
            id: NoteId::made_of(&format!("part of {}: {piece}", note.id)),
            title: title(&note.title, piece),
            body: piece.to_owned(),
            supersedes: vec![note.id.to_string()],
            ..note.clone()
        };
        part_of.declare(&mut part);
        part
    });
    let parts: Vec<Note> = made.collect();
    // Two pieces may be identical.
    let mut ids: Vec<NoteId> = parts.iter().map(|part| part.id).collect();
    ids.sort_unstable();
    ids.dedup();
    (ids.len() == parts.len()).then_some(parts)
}

fn title(of: &str, piece: &str) -> String {
    let first = title_of(piece);
    let first = first.trim_start_matches(['#', '-', '*', '+', ' ']);
    match first {
        "" => of.to_owned(),
        first if first == of || of.is_empty() => first.to_owned(),
        first => title_of(&format!(
            "{of}: {}",
            first.trim_end_matches(['#', ':', ' '])
        )),
    }
}

/// Returns the byte ranges of the parts. Together they are the text except for surrounding blank
/// lines.
fn pieces(text: &str) -> Vec<Range<usize>> {
    let lines = lines(text);
    let mut starts = starts_by_heading(&lines);
    if starts.len() < 2 {
        starts = starts_by_list(&lines);
    }
    if starts.len() < 2 {
        return Vec::new();
    }
    // Text before the first heading is a part. A heading without text belongs to the next part.
    starts.insert(0, 0);
    starts.dedup();
    let says_something = |from: usize, to: usize| {
        let mut within = lines.iter().filter(|line| (from..to).contains(&line.start));
        within.any(|line| matches!(line.what, What::Item | What::Text))
    };
    let mut kept = Vec::with_capacity(starts.len());
    let mut from = 0;
    for start in starts.iter().skip(1).copied().chain([text.len()]) {
        if says_something(from, start) || start == text.len() {
            kept.push(from..start);
            from = start;
        }
    }
    let trimmed = kept.into_iter().map(|range| {
        let piece = text.get(range.clone()).unwrap_or_default();
        let head = piece.len() - piece.trim_start_matches(['\n', '\r']).len();
        range.start + head..range.start + piece.trim_end().len()
    });
    trimmed.filter(|range| !range.is_empty()).collect()
}

/// A line of a text and its start.
struct Line {
    start: usize,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Blank,
    /// A heading with its level.
    Heading(usize),
    /// The first line of a list item.
    Item,
    /// Any other line, including code.
    Text,
}

fn lines(text: &str) -> Vec<Line> {
    let mut fence: Option<&str> = None;
    let mut start = 0;
    let mut lines = Vec::new();
    for line in text.split_inclusive('\n') {
        let trimmed = line.trim();
        let opens = ["```", "~~~"]
            .into_iter()
            .find(|sign| trimmed.starts_with(sign));
        let what = match (fence, opens) {
            (Some(open), Some(sign)) if open == sign => {
                fence = None;
                What::Text
            }
            (Some(_), _) => What::Text,
            (None, Some(_)) => {
                fence = opens;
                What::Text
            }
            (None, None) => what_of(line),
        };
        lines.push(Line { start, what });
        start += line.len();
    }
    lines
}

fn what_of(line: &str) -> What {
    let rest = line.trim();
    if rest.is_empty() {
        return What::Blank;
    }
    let level = line.len() - line.trim_start_matches('#').len();
    if (1..=6).contains(&level) && line.get(level..).is_some_and(|rest| rest.starts_with(' ')) {
        return What::Heading(level);
    }
    let digits = line.len() - line.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let behind = line.get(digits..).unwrap_or_default();
    let is_item = match digits {
        0 => ["- ", "* ", "+ "].iter().any(|sign| line.starts_with(sign)),
        _ => behind.starts_with(". ") || behind.starts_with(") "),
    };
    if is_item { What::Item } else { What::Text }
}

/// Returns the headings of the highest level with several headings, and those of higher levels; all
/// headings if no level has several.
fn starts_by_heading(lines: &[Line]) -> Vec<usize> {
    let level_of = |line: &Line| match line.what {
        What::Heading(level) => Some(level),
        _ => None,
    };
    let count = |level| {
        lines
            .iter()
            .filter(|line| level_of(line) == Some(level))
            .count()
    };
    let lowest = (1..=6).find(|level| count(*level) > 1).unwrap_or(6);
    let headings = lines.iter();
    headings
        .filter(|line| level_of(line).is_some_and(|level| level <= lowest))
        .map(|line| line.start)
        .collect()
}

/// Splits after each list: a part is a list with the text that leads to it.
fn starts_by_list(lines: &[Line]) -> Vec<usize> {
    let mut starts = vec![0];
    let (mut in_list, mut after_blank) = (false, false);
    let mut end = None;
    let mut lists = 0;
    for line in lines {
        match line.what {
            What::Blank => after_blank = true,
            What::Item => {
                if !in_list {
                    lists += 1;
                    // The text since the last list leads to this one.
                    if lists > 1 {
                        starts.extend(end);
                    }
                }
                (in_list, after_blank) = (true, false);
            }
            // A line directly after an item continues it.
            What::Text | What::Heading(_) if in_list && after_blank => {
                (in_list, after_blank) = (false, false);
                end = Some(line.start);
            }
            What::Text | What::Heading(_) => after_blank = false,
        }
    }
    starts
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;

    fn note(body: &str) -> Note {
        let mut note = Note::new(
            NoteId::made_of("long"),
            NoteType::Semantic,
            DateTime::UNIX_EPOCH,
        );
        note.title = "Deploys".to_owned();
        note.body = body.to_owned();
        note
    }

    fn check(body: &str, expected: &[(&str, &str)]) {
        let parts = parts(&note(body)).unwrap_or_default();
        let parts: Vec<(&str, &str)> = parts
            .iter()
            .map(|part| (part.title.as_str(), part.body.as_str()))
            .collect();
        assert_eq!(parts, expected, "{body}");
    }

    #[test]
    fn a_text_is_split_at_its_headings() {
        check(
            "Before.\n\n## Staging\n\nBy hand.\n\n### Why\n\nOld.\n\n## Production ##\nBy CI.\n",
            &[
                ("Deploys: Before.", "Before."),
                (
                    "Deploys: Staging",
                    "## Staging\n\nBy hand.\n\n### Why\n\nOld.",
                ),
                ("Deploys: Production", "## Production ##\nBy CI."),
            ],
        );
        // The heading of the whole text belongs to the first part. A heading inside code is
        // ignored.
        check(
            "# Deploys\n\n## One\na\n```\n## no\n```\n## Two\nb",
            &[
                ("Deploys", "# Deploys\n\n## One\na\n```\n## no\n```"),
                ("Deploys: Two", "## Two\nb"),
            ],
        );
        check(
            "## One\na\n# Two\nb\n## Three\nc",
            &[
                ("Deploys: One", "## One\na"),
                ("Deploys: Two", "# Two\nb"),
                ("Deploys: Three", "## Three\nc"),
            ],
        );
    }

    #[test]
    fn a_text_without_headings_is_split_at_its_lists() {
        check(
            "On staging:\n- one\n  more\n\n- two\n\nOn production:\n\n1. three\n2. four\n\nThat is all.",
            &[
                ("Deploys: On staging", "On staging:\n- one\n  more\n\n- two"),
                (
                    "Deploys: On production",
                    "On production:\n\n1. three\n2. four\n\nThat is all.",
                ),
            ],
        );
    }

    #[test]
    fn indivisible_notes_are_not_split() {
        check("Only a text.\n\nAnd another one.", &[]);
        check("## One heading\n\nand its text", &[]);
        check("- a\n- b\n", &[]);
        check("## a\nsame\n\n## a\nsame\n", &[]);
        for kind in [Kind::Task, Kind::Antipattern, Kind::Experience] {
            let mut note = note("## a\none\n## b\ntwo");
            note.kind = Some(kind);
            note.note_type = kind.note_type();
            assert_eq!(parts(&note), None);
        }
        let mut copy = note("## a\none\n## b\ntwo");
        copy.source = Source::Import;
        assert_eq!(parts(&copy), None);
    }

    #[test]
    fn a_part_is_of_its_note_and_has_its_origin() {
        let mut whole = note("## a\none\n## b\ntwo");
        whole.tags = vec!["ops".to_owned()];
        whole.actor = Some("agent".to_owned());
        whole.supersedes = vec![NoteId::made_of("older").to_string()];
        let parts = parts(&whole).unwrap();
        for part in &parts {
            assert_eq!(part.supersedes, [whole.id.to_string()]);
            assert_eq!(part.links, [format!("part-of {}", whole.id)]);
            assert!(part.is_by_agent() && part.has_tag("ops"));
            assert_eq!(part.created_at, whole.created_at);
        }
        assert_ne!(parts[0].id, parts[1].id);
        // The ids are deterministic.
        assert_eq!(super::parts(&whole).unwrap(), parts);
    }

    proptest! {
        /// Only blank lines are dropped, and nothing is repeated.
        #[test]
        fn parts_are_the_text(lines in prop::collection::vec(
            prop_oneof![
                Just("# a"), Just("## b"), Just("## c"), Just("- item"), Just("  more"), Just(""),
                Just("```"), Just("text é"), Just("1) x"),
            ],
            0..30,
        )) {
            let text = lines.join("\n");
            let pieces = pieces(&text);
            if !pieces.is_empty() {
                let all: Vec<&str> = pieces.iter().map(|piece| &text[piece.clone()]).collect();
                let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                prop_assert_eq!(words(&all.join("\n")), words(&text));
                prop_assert!(pieces.windows(2).all(|two| two[0].end <= two[1].start));
            }
        }

        #[test]
        fn any_text_can_be_split(text in "(?s)([#`\\-*1. \n]|.){0,200}") {
            let _ = parts(&note(&text));
        }
    }
}
