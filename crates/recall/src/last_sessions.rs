//! Orders the notes of the last sessions by what each is worth to a session that starts now.

use anamnesis_note::{
    id::NoteId,
    note::{Note, parse_timestamp},
};
use anamnesis_session::session_note::part_of;
use chrono::{DateTime, TimeDelta, Utc};

/// The worth of each part of a session's note.
const PARTS: [(&str, f64); 5] = [
    ("Rules", 1.0),
    ("Said", 1.0),
    ("Decided", 1.0),
    ("Next steps", 1.0),
    ("Outcome", 0.5),
];

/// The worth of each relation of the note to the present. A check that still fails outweighs a week.
const STILL_FAILING: f64 = 3.0;
const SAME_BRANCH: f64 = 3.0;
const OPEN_TASK: f64 = 2.0;
const CHANGED_FILE: f64 = 1.0;

/// The worth that each doubling of the age in days subtracts.
const AGE: f64 = 1.0;

/// The seconds of a day.
const DAY: f64 = 86_400.0;

/// The situation in which a session starts.
pub(crate) struct Situation<'a> {
    /// The current time.
    pub(crate) now: DateTime<Utc>,
    /// The checked-out branch.
    pub(crate) branch: Option<String>,
    /// The notes of the sessions that left a check failing which fails still.
    pub(crate) with_failures: Vec<NoteId>,
    /// The notes of the sessions that left an open task.
    pub(crate) with_tasks: Vec<NoteId>,
    /// Returns when a file of the project, by its relative path, was last changed.
    pub(crate) changed_at: &'a dyn Fn(&str) -> Option<DateTime<Utc>>,
}

/// Sorts session notes, the one that is worth most first. Equal ones keep their order.
pub(crate) fn by_worth(notes: Vec<Note>, situation: &Situation<'_>) -> Vec<Note> {
    let worths = notes
        .into_iter()
        .map(|note| (worth(&note, situation), note));
    let mut worths: Vec<(f64, Note)> = worths.collect();
    worths.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    worths.into_iter().map(|(_, note)| note).collect()
}

fn worth(note: &Note, situation: &Situation<'_>) -> f64 {
    let part = |label| part_of(&note.body, label);
    let parts = PARTS
        .iter()
        .filter(|(label, _)| part(label).next().is_some());
    let mut worth: f64 = parts.map(|(_, points)| points).sum();
    let branch = part("Branch").next();
    if branch.is_some() && branch == situation.branch.as_deref() {
        worth += SAME_BRANCH;
    }
    if situation.with_failures.contains(&note.id) {
        worth += STILL_FAILING;
    }
    if situation.with_tasks.contains(&note.id) {
        worth += OPEN_TASK;
    }
    let Some(written) = parse_timestamp(&note.updated_at) else {
        return worth;
    };
    let mut files = part("Files").flat_map(|files| files.split(", "));
    if files.any(|file| (situation.changed_at)(file).is_some_and(|at| at > written)) {
        worth += CHANGED_FILE;
    }
    let age = (situation.now - written).max(TimeDelta::zero());
    worth - AGE * (1.0 + age.as_seconds_f64() / DAY).log2()
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{NoteType, timestamp};

    use super::*;

    const NOW: i64 = 1_767_322_800;

    fn time(days_ago: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(NOW, 0).unwrap() - TimeDelta::days(days_ago)
    }

    fn session(title: &str, days_ago: i64, body: &str) -> Note {
        let mut note = Note::new(
            NoteId::of_session(title),
            NoteType::Episodic,
            time(days_ago),
        );
        note.title = title.to_owned();
        note.updated_at = timestamp(time(days_ago));
        note.body = body.to_owned();
        note
    }

    fn order(notes: Vec<Note>, situation: &Situation<'_>) -> Vec<String> {
        let sorted = by_worth(notes, situation).into_iter();
        sorted.map(|note| note.title).collect()
    }

    const PLAIN: &str = "**Outcome:** The footer is green.";

    fn nothing() -> Situation<'static> {
        Situation {
            now: time(0),
            branch: None,
            with_failures: Vec::new(),
            with_tasks: Vec::new(),
            changed_at: &|_| None,
        }
    }

    #[test]
    fn of_equal_sessions_the_newest_comes_first() {
        let notes = vec![session("new", 1, PLAIN), session("old", 2, PLAIN)];
        assert_eq!(order(notes, &nothing()), ["new", "old"]);
    }

    #[test]
    fn what_still_fails_comes_before_a_newer_session_that_left_nothing() {
        let failing = "**Still failing:**\n- `make test`: total is 0\n\n**Outcome:** It fails.";
        let notes = || {
            vec![
                session("yesterday", 1, PLAIN),
                session("fails", 5, failing),
                session("failed long ago", 90, failing),
            ]
        };
        let situation = Situation {
            with_failures: vec![NoteId::of_session("fails")],
            ..nothing()
        };
        assert_eq!(
            order(notes(), &situation),
            ["fails", "yesterday", "failed long ago"]
        );
        // It passed since.
        assert_eq!(order(notes(), &nothing()).first().unwrap(), "yesterday");
    }

    #[test]
    fn the_branch_open_tasks_and_files_changed_since_relate_a_session_to_now() {
        let on_branch = "**Branch:** fix/cart\n\n**Outcome:** Half done.";
        let with_file = "**Outcome:** The parser reads dates.\n\n**Files:** src/a.rs, src/b.rs";
        let notes = || {
            vec![
                session("new", 1, PLAIN),
                session("file", 2, with_file),
                session("task", 3, PLAIN),
                session("branch", 4, on_branch),
            ]
        };
        assert_eq!(
            order(notes(), &nothing()),
            ["new", "file", "task", "branch"]
        );
        let related = Situation {
            branch: Some("fix/cart".to_owned()),
            with_tasks: vec![NoteId::of_session("task")],
            changed_at: &|file| (file == "src/b.rs").then(|| time(0)),
            ..nothing()
        };
        assert_eq!(order(notes(), &related), ["branch", "task", "file", "new"]);
        let unchanged = Situation {
            changed_at: &|_| Some(time(9)),
            ..nothing()
        };
        assert_eq!(order(notes(), &unchanged), order(notes(), &nothing()));
    }
}
