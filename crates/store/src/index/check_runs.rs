//! Which checks of a project (tests, builds, lints) still fail.
//!
//! Each note adds the checks that its session left failing or passing, and the sentences that say of
//! something that it passes or is fixed. So a pass on another machine travels with its note. Whether a
//! failure is open is decided when it is asked for, because notes may arrive in any order.

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, parse_timestamp, timestamp},
};
use anamnesis_session::{
    observe::{FIXED, failed_check, names_check, says_something_passes},
    session_note::{FAILING, PASSED, labelled, part_of},
};
use anamnesis_text::{shell::command::Command, truncate::line};
use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::{Connection, params};

use super::{Error, Index, Tables, entry::in_force};
use crate::sqlite::{Json, Queries};

const SCHEMA: &str = "
CREATE TABLE check_run (
  number INTEGER NOT NULL, project TEXT NOT NULL, at TEXT NOT NULL, verdict TEXT NOT NULL, text TEXT NOT NULL
) STRICT;
CREATE INDEX check_run_number ON check_run (number);
CREATE INDEX check_run_recent ON check_run (project, at);
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert,
    remove: &["DELETE FROM check_run WHERE number = ?"],
};

/// How long a failure is open at most, in days.
pub const MAX_OPEN_DAYS: i64 = 14;

/// The maximum number of sentences of a note, and their length in characters.
const MAX_SENTENCES: usize = 8;
const MAX_SENTENCE: usize = 240;

/// The parts of a session's note that tell no result.
const NO_RESULTS: [&str; 6] = [FAILING, PASSED, FIXED, "Ask", "Next steps", "Files"];

/// A check whose last run in the project failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFailure {
    /// The note of the session in which it failed.
    pub note: NoteId,
    /// When that note was written.
    pub at: DateTime<Utc>,
    /// The note's line: the command and its error.
    pub line: String,
}

fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    let add = |verdict: &str, text: &str| {
        let sql = "INSERT INTO check_run VALUES (?, ?, ?, ?, ?)";
        let values = params![number, note.project, note.updated_at, verdict, text];
        connection.run(sql, values)
    };
    if note.note_type == NoteType::Episodic {
        for line in part_of(&note.body, FAILING) {
            add("failed", line)?;
        }
        let passed = part_of(&note.body, PASSED).flat_map(|line| line.split("`, `"));
        for command in passed {
            add("passed", command.trim_matches('`'))?;
        }
        for (command, _) in part_of(&note.body, FIXED).filter_map(failed_check) {
            add("passed", command)?;
        }
    }
    for sentence in sentences(note).take(MAX_SENTENCES) {
        add("said", &sentence)?;
    }
    Ok(())
}

/// Returns the sentences of a note that say of something that it passes or is fixed.
fn sentences(note: &Note) -> impl Iterator<Item = String> {
    let mut part = None;
    let lines = note.body.lines().filter_map(move |line| {
        let line = line.trim();
        if let Some((label, text)) = labelled(line) {
            part = Some(label);
            return (!NO_RESULTS.contains(&label)).then_some(text);
        }
        let is_result = part.is_none_or(|label| !NO_RESULTS.contains(&label));
        is_result.then(|| line.trim_start_matches("- "))
    });
    let sentences = std::iter::once(note.title.as_str()).chain(lines);
    let sentences = sentences.flat_map(|line| line.split_inclusive(". "));
    sentences
        .filter(|sentence| says_something_passes(sentence))
        .map(|sentence| line(sentence, MAX_SENTENCE))
}

/// A row of the table.
struct CheckRun {
    note: NoteId,
    at: DateTime<Utc>,
    verdict: String,
    text: String,
}

/// The rows of the last days, oldest first, with the commands of those that tell a run.
struct History<'a> {
    runs: &'a [CheckRun],
    commands: Vec<Option<Command<'a>>>,
}

impl<'a> History<'a> {
    fn new(runs: &'a [CheckRun]) -> Self {
        let command = |run: &'a CheckRun| match run.verdict.as_str() {
            "failed" => Command::parse(failed_check(&run.text)?.0),
            "passed" => Command::parse(&run.text),
            _ => None,
        };
        Self {
            runs,
            commands: runs.iter().map(command).collect(),
        }
    }

    /// Returns whether a row is the latest failure of its check and no later note closes it.
    fn is_open(&self, place: usize) -> bool {
        let Some(failure) = self.runs.get(place).filter(|run| run.verdict == "failed") else {
            return false;
        };
        let Some(((check, error), command)) =
            failed_check(&failure.text).zip(self.commands.get(place).and_then(Option::as_ref))
        else {
            return false;
        };
        let runs = self.runs.iter().zip(&self.commands);
        let fails_again = |(run, other): (&CheckRun, &Option<Command<'_>>)| {
            run.verdict == "failed"
                && other
                    .as_ref()
                    .is_some_and(|other| command.is_closed_by(other) || other.is_closed_by(command))
        };
        let closes = |(run, other): (&CheckRun, &Option<Command<'_>>)| {
            // It may be in a note of the same time.
            run.at >= failure.at
                && run.note != failure.note
                && match run.verdict.as_str() {
                    // Only sentences that say that something passes are stored.
                    "said" => names_check(&run.text, check, error),
                    "passed" => other
                        .as_ref()
                        .is_some_and(|passed| command.is_closed_by(passed)),
                    _ => false,
                }
        };
        !runs.clone().skip(place + 1).any(fails_again) && !runs.clone().any(closes)
    }
}

impl Index {
    /// Returns the checks of projects that still fail, the latest first: no later note of the projects
    /// has a run of the same check or says that it is fixed, and it failed in the last 14 days.
    pub fn open_failures(
        &self,
        projects: &[&str],
        now: DateTime<Utc>,
    ) -> Result<Vec<OpenFailure>, Error> {
        let runs = self.check_runs(projects, now)?;
        let history = History::new(&runs);
        let open = runs.iter().enumerate().rev();
        let open = open.filter(|(place, _)| history.is_open(*place));
        let open = open.map(|(_, failure)| OpenFailure {
            note: failure.note,
            at: failure.at,
            line: failure.text.clone(),
        });
        Ok(open.collect())
    }

    /// Returns the lines of a session's note about checks that failed and are over, whatever its age is.
    pub fn closed_failures(&self, note: &Note) -> Result<Vec<String>, Error> {
        let failing = part_of(&note.body, FAILING);
        let mut closed: Vec<String> = failing.map(str::to_owned).collect();
        if let Some(written) = parse_timestamp(&note.updated_at).filter(|_| !closed.is_empty()) {
            let runs = self.check_runs(&[&note.project], written)?;
            let history = History::new(&runs);
            let is_open = |line: &String| {
                let mut rows = runs.iter().enumerate().filter(|(_, run)| run.text == *line);
                rows.any(|(place, _)| history.is_open(place))
            };
            closed.retain(|line| !is_open(line));
        }
        Ok(closed)
    }

    /// Returns the rows of the notes of the last days, oldest first. A note dated ahead of the clock
    /// counts as written now.
    fn check_runs(&self, projects: &[&str], now: DateTime<Utc>) -> Result<Vec<CheckRun>, Error> {
        let sql = concat!(
            "SELECT note.id, check_run.at, verdict, text FROM check_run JOIN note USING (number)
             WHERE check_run.project IN (SELECT value FROM json_each(?)) AND check_run.at >= ? AND ",
            in_force!(),
            " ORDER BY check_run.at, note.id, check_run.rowid"
        );
        let since = timestamp(now - TimeDelta::days(MAX_OPEN_DAYS));
        let values = params![Json(projects), since];
        let rows: Vec<(String, String, _, _)> = self.tuples(sql, values)?;
        let runs = rows.into_iter().filter_map(|(id, at, verdict, text)| {
            Some(CheckRun {
                note: id.parse().ok()?,
                at: parse_timestamp(&at)?.min(now),
                verdict,
                text,
            })
        });
        Ok(runs.collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::tests::{Fixture, now};

    fn add(fixture: &Fixture, days: i64, body: &str) {
        fixture.add("a session", |note| {
            note.note_type = NoteType::Episodic;
            note.project = "p".to_owned();
            note.updated_at = timestamp(now() - TimeDelta::days(days));
            note.body = body.to_owned();
        });
    }

    /// The open failures after a session of 5 days ago that left one, and a later note.
    fn open_after(days: i64, body: &str) -> Vec<String> {
        let fixture = Fixture::new();
        add(
            &fixture,
            5,
            "**Still failing:**\n- `mise run lint`: a.go:3: fooBar is unused",
        );
        add(&fixture, days, body);
        let index = fixture.refreshed();
        let open = index.open_failures(&["p"], now()).unwrap();
        assert_eq!(index.open_failures(&["q"], now()).unwrap(), []);
        let lines = open.into_iter().map(|failure| failure.line);
        lines.collect()
    }

    #[test]
    fn a_later_note_closes_a_failure() {
        for body in [
            "**Passed:** `make test`, `mise run lint`",
            "**Failed and fixed:**\n- `mise run lint`: x → it is used now",
            "**Outcome:** It is merged. The lint passes now.",
            "fooBar is removed, and the error is fixed.",
        ] {
            assert!(open_after(3, body).is_empty(), "{body}");
            assert_eq!(open_after(6, body).len(), 1, "before it failed: {body}");
            // A note dated ahead of the clock counts as written now.
            assert!(open_after(-3, body).is_empty(), "{body}");
        }
    }

    #[test]
    fn other_notes_leave_a_failure_open() {
        for body in [
            "**Passed:** `make test`",
            "**Outcome:** The tests pass.",
            "**Next steps:**\n- see that lint passes",
            "**Ask:** Is the lint fixed?",
        ] {
            assert_eq!(open_after(3, body).len(), 1, "{body}");
        }
        let again = "**Still failing:**\n- `mise run fmt && mise run lint`: b.go:1: x is unused";
        assert_eq!(open_after(3, again), [&again[21..]]);
    }

    #[test]
    fn a_run_of_a_part_closes_no_failure_of_the_whole() {
        let closed_by = |passed: &str| {
            let fixture = Fixture::new();
            add(&fixture, 5, "**Still failing:**\n- `npm test`: total is 0");
            add(
                &fixture,
                3,
                &format!("**Passed:** `npm run build`, `{passed}`"),
            );
            let index = fixture.refreshed();
            index.open_failures(&["p"], now()).unwrap().is_empty()
        };
        for whole in ["npm test", "npm test -- --silent", "pnpm test", "npm t"] {
            assert!(closed_by(whole), "{whole}");
        }
        for part in [
            "cd docs && npm test",
            "npm test -- --listTests",
            "npm test -- --testPathPattern=user",
        ] {
            assert!(!closed_by(part), "{part}");
        }
    }

    #[test]
    fn only_the_latest_failure_of_a_check_is_judged() {
        let fixture = Fixture::new();
        for (days, body) in [
            (
                5,
                "**Still failing:**\n- `mise run lint`: a.go:3: fooBar is unused",
            ),
            (
                4,
                "**Still failing:**\n- `mise run lint`: b.go:1: barQux is unused",
            ),
        ] {
            add(&fixture, days, body);
        }
        let open = |index: Index| index.open_failures(&["p"], now()).unwrap();
        let [latest] = &open(fixture.refreshed())[..] else {
            panic!("expected one open failure");
        };
        assert!(latest.line.contains("barQux"), "{}", latest.line);
        // The sentence names the latest failure, and nothing names the earlier one.
        add(&fixture, 3, "barQux is removed, and the error is fixed.");
        assert_eq!(open(fixture.refreshed()), []);
    }

    #[test]
    fn an_old_failure_is_over() {
        let fixture = Fixture::new();
        add(
            &fixture,
            15,
            "**Still failing:**\n- `make test`: total is 0",
        );
        let index = fixture.refreshed();
        assert_eq!(index.open_failures(&["p"], now()).unwrap(), []);
    }

    #[test]
    fn a_note_knows_which_of_its_failures_are_over() {
        let fixture = Fixture::new();
        let failing = "**Still failing:**\n- `make test`: total is 0\n- `make lint`: x is unused";
        add(&fixture, 30, failing);
        add(&fixture, 29, "**Passed:** `make lint`");
        let index = fixture.refreshed();
        let mut note = Note::new(
            NoteId::of_session("s"),
            NoteType::Episodic,
            now() - TimeDelta::days(30),
        );
        note.project = "p".to_owned();
        note.body = failing.to_owned();
        assert_eq!(
            index.closed_failures(&note).unwrap(),
            ["`make lint`: x is unused"]
        );
    }
}
