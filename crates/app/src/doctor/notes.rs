//! Checks of the notes and of their index.

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Unreadable},
    trigger::Trigger,
};
use anamnesis_store::{
    index::{self, Filter, Index},
    notes::Problem,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, TimeDelta, Utc};

use super::{CheckResult, Depth, Examined, NAMED};
use crate::{
    context::Context,
    format::{count, number},
};

/// How long an editor may be open.
const EDITING: TimeDelta = TimeDelta::hours(1);

/// The number of notes up to which the index is checked, so that `doctor` ends in two seconds.
const CHECKED: usize = 10_000;

/// Brings the index up to date. Also returns its state before that.
pub(super) fn open_index(
    context: &Context,
    depth: Depth,
) -> (Result<Index, CheckResult>, CheckResult) {
    let before = Index::open(&context.home)
        .map(|index| (integrity(&index, depth), index.is_behind(&context.notes)));
    let before = match before {
        Ok((Ok(()), false)) => CheckResult::well("up to date with the notes"),
        Ok((Ok(()), true)) => CheckResult::well("was outdated and is updated now"),
        Ok((Err(error), _)) => CheckResult::look(error.to_string()).hint("anamnesis doctor --fix"),
        Err(index::Error::Missing) => CheckResult::well("was missing, is built now"),
        Err(error) => CheckResult::well(format!("{error}; rebuilt from the notes")),
    };
    let index = match depth {
        Depth::Thorough => context.index_with(usize::MAX),
        Depth::Quick => context.index_as_listed(),
    };
    let index = index.map_err(|failure| {
        let text = one_line(failure.message());
        CheckResult::broken(text).hint(failure.next_step().unwrap_or("anamnesis internal reindex"))
    });
    (index, before)
}

/// Checks the structure of an index that is not too large for it.
fn integrity(index: &Index, depth: Depth) -> Result<(), index::Error> {
    match index.note_count()? {
        0..=CHECKED if depth == Depth::Thorough => index.integrity(),
        _ => Ok(()),
    }
}

/// Reports the state of the index.
pub(super) fn index(it: &Examined<'_>) -> Option<CheckResult> {
    let (now, before) = it.index.as_ref()?;
    Some(now.as_ref().err().unwrap_or(before).clone())
}

/// Reports files that are not readable as notes.
pub(super) fn readable(it: &Examined<'_>) -> Option<CheckResult> {
    let index = it.index()?;
    let total = index.counts().map_or(0, |counts| counts.total);
    let problems = index.problems().unwrap_or_default();
    let notes = count(total, "note");
    if problems.is_empty() {
        return Some(CheckResult::well(format!("{notes} readable")));
    }
    let ids: Vec<NoteId> = problems
        .iter()
        .filter_map(|problem| id_of(&problem.path))
        .collect();
    let finding = if ids.is_empty() {
        let files = count(problems.len(), "file");
        CheckResult::look(format!("{notes} readable; {files} left alone"))
    } else {
        let all = number(total + ids.len());
        CheckResult::broken(format!("{} of {all} unreadable", ids.len()))
    };
    let named = problems.iter().take(NAMED);
    let named = named.map(|it| format!("{}: {}", one_line(&it.path), one_line(&it.reason)));
    let more = problems.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {more} more · anamnesis doctor --json"));
    let markers = Unreadable::ConflictMarkers.to_string();
    let is_fixable = |it: &Problem| it.path.starts_with("local/") && it.reason == markers;
    let hint = match ids.first() {
        Some(id) if problems.iter().any(is_fixable) => {
            format!("anamnesis edit {id} --raw, or anamnesis doctor --fix   (indents the markers)")
        }
        Some(id) => format!("anamnesis edit {id} --raw   (left as it is, hides nothing else)"),
        None => "left as they are; they hide nothing else".to_owned(),
    };
    Some(finding.lines(named.chain(more)).hint(hint))
}

/// Returns the id in a note's file name.
fn id_of(path: &str) -> Option<NoteId> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

/// Reports trigger lines that cannot be parsed.
pub(super) fn triggers(it: &Examined<'_>) -> Option<CheckResult> {
    let (notes, index) = (&it.context.notes, it.index()?);
    let warnings = Filter {
        kind: Some(Kind::Antipattern),
        ..Filter::default()
    };
    let mut lines = Vec::new();
    let mut first = None;
    for entry in index.list(&warnings, usize::MAX).ok()? {
        let Ok(stored) = notes.read(entry.path) else {
            continue;
        };
        for trigger in stored.note().when {
            let Err(error) = trigger.parse::<Trigger>() else {
                continue;
            };
            lines.push(one_line(&format!("{}: {error}", entry.path)));
            first.get_or_insert(entry.id());
        }
    }
    let line = format!("{} under `when` passed over", count(lines.len(), "line"));
    let hint = format!("anamnesis edit {}", Context::short(index, first?));
    let named = lines.into_iter().take(NAMED);
    Some(CheckResult::look(line).lines(named).hint(hint))
}

/// Reports texts of editors that never ended, for example because the terminal was closed.
pub(super) fn unsaved(it: &Examined<'_>) -> Option<CheckResult> {
    let now = it.context.environment.now;
    let entries = std::fs::read_dir(it.context.home.derived()).ok()?;
    let mut left: Vec<_> = entries
        .flatten()
        .filter(|entry| {
            let name = entry.file_name();
            let modified = entry.metadata().and_then(|metadata| metadata.modified());
            name.to_string_lossy().starts_with("edit-")
                && modified.is_ok_and(|modified| now - DateTime::<Utc>::from(modified) > EDITING)
        })
        .map(|entry| it.context.shown(&entry.path()))
        .collect();
    left.sort_unstable();
    left.first()?;
    let line = format!(
        "{} from an editor that did not end",
        count(left.len(), "unsaved text")
    );
    Some(
        CheckResult::look(line)
            .lines(left.into_iter().take(NAMED))
            .hint("anamnesis write --file FILE for what you need of it, then delete it"),
    )
}
