//! Tasks and their states.

use anamnesis_note::note::{Kind, Note, State, Status};
use rusqlite::{Connection, Row, params};

use super::{
    Entry, Error, Index, Tables, bound,
    entry::{Parsed, in_force},
};
use crate::sqlite::{Json, Queries};

const SCHEMA: &str = "
CREATE TABLE task (number INTEGER PRIMARY KEY, status TEXT NOT NULL) STRICT;
CREATE INDEX task_open ON task (status) WHERE status IN ('active', 'pending');
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert,
    remove: &["DELETE FROM task WHERE number = ?"],
};

fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    if note.kind() == Kind::Task && note.state != State::Forgotten {
        connection.run(
            "INSERT INTO task VALUES (?, ?)",
            params![number, note.status().as_str()],
        )?;
    }
    Ok(())
}

/// The open tasks of projects.
///
/// `CROSS JOIN` keeps SQLite from starting at the notes of the project, which are many more than the
/// open tasks.
pub(super) const OPEN_TASKS: &str = concat!(
    "SELECT note.* FROM task CROSS JOIN note USING (number)
     WHERE task.status IN ('active', 'pending')
       AND note.project IN (SELECT value FROM json_each(?)) AND ",
    in_force!(),
    " ORDER BY task.status = 'active' DESC, note.updated_at DESC, note.id DESC LIMIT ?"
);

impl Index {
    /// Returns the open tasks of projects that may be injected automatically: active ones first, then
    /// the newest.
    pub fn open_tasks(&self, projects: &[&str], limit: usize) -> Result<Vec<Entry>, Error> {
        let values = params![Json(projects), bound(limit)];
        self.rows(OPEN_TASKS, values, Entry::read)
    }

    /// Returns the tasks of projects (all if empty) with one of these states, open ones first, in the
    /// order of [`Index::open_tasks`]. Superseded tasks are left out.
    pub fn tasks(
        &self,
        projects: &[String],
        with: &[Status],
    ) -> Result<Vec<(Entry, Status)>, Error> {
        let sql = "SELECT note.*, task.status FROM task CROSS JOIN note USING (number)
             WHERE task.status IN (SELECT value FROM json_each(?1))
               AND (?2 = '[]' OR note.project IN (SELECT value FROM json_each(?2)))
               AND note.superseded = 0
             ORDER BY CASE task.status WHEN 'active' THEN 0 WHEN 'pending' THEN 1 WHEN 'done' THEN 2 ELSE 3 END,
               note.updated_at DESC, note.id DESC";
        self.rows(sql, params![Json(with), Json(projects)], |row: &Row<'_>| {
            let Parsed(status) = row.get("status")?;
            Ok((Entry::read(row)?, status))
        })
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::timestamp;

    use super::*;
    use crate::index::tests::{Fixture, now};

    #[test]
    fn what_is_worked_on_comes_first_and_what_is_finished_last() {
        let fixture = Fixture::new();
        let task = |title: &str, status: Option<&str>, days: i64| {
            let status = status.map(str::to_owned);
            fixture.add(title, move |note| {
                note.kind = Some(Kind::Task);
                note.project = "p".to_owned();
                note.status = status;
                note.updated_at = timestamp(now() - chrono::TimeDelta::days(days));
            })
        };
        task("old", None, 9);
        task("new", Some("pending"), 1);
        task("begun", Some("active"), 20);
        task("finished", Some("done"), 0);
        let replaced = task("replaced", None, 0);
        fixture.add("a fact", |note| {
            note.project = "p".to_owned();
            note.supersedes = vec![replaced.path.id.to_string()];
        });
        fixture.add("of another project", |note| note.kind = Some(Kind::Task));
        let index = fixture.refreshed();
        let titles = |entries: Vec<Entry>| -> Vec<String> {
            entries.into_iter().map(|entry| entry.title).collect()
        };
        assert_eq!(
            titles(index.open_tasks(&["p"], 9).unwrap()),
            ["begun", "new", "old"]
        );
        assert_eq!(titles(index.open_tasks(&["p"], 1).unwrap()), ["begun"]);
        assert!(index.open_tasks(&[], 9).unwrap().is_empty());
        let tasks = |projects: &[String], with: &[Status]| {
            let tasks = index.tasks(projects, with).unwrap();
            titles(tasks.into_iter().map(|(entry, _)| entry).collect())
        };
        let own = ["p".to_owned()];
        assert_eq!(
            tasks(&own, Status::ALL),
            ["begun", "new", "old", "finished"]
        );
        assert_eq!(tasks(&own, &[Status::Done]), ["finished"]);
        assert_eq!(
            tasks(&[], &[Status::Pending]),
            ["of another project", "new", "old"]
        );
    }
}
