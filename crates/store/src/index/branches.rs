//! The branches on which sessions worked, and whether they are merged. The deferred process asks the
//! repository, because no hook runs git.

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_text::clean::one_line;
use rusqlite::{
    Connection, params,
    types::{FromSql, FromSqlResult, ValueRef},
};

use super::{Error, Index, Tables, refresh::inert};
use crate::sqlite::{Queries, read_row};

const SCHEMA: &str = "
CREATE TABLE note_branch (number INTEGER PRIMARY KEY, project TEXT NOT NULL, name TEXT NOT NULL) STRICT;
CREATE TABLE branch (
  project TEXT NOT NULL, name TEXT NOT NULL, tip TEXT NOT NULL, state INTEGER NOT NULL, PRIMARY KEY (project, name)
) STRICT, WITHOUT ROWID;
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert,
    remove: &["DELETE FROM note_branch WHERE number = ?"],
};

/// The state of a branch.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum BranchState {
    /// Nothing is known of it here.
    #[default]
    Unknown,
    /// The default branch has its tip, which is a commit of its own, or what it changed.
    Merged,
    /// The default branch lacks its tip.
    Unmerged,
    /// It was deleted, and its last known tip was not merged.
    Gone,
}

impl BranchState {
    const ALL: [Self; 4] = [Self::Unknown, Self::Merged, Self::Unmerged, Self::Gone];
}

impl FromSql for BranchState {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let number: Option<u8> = FromSql::column_result(value)?;
        let known = number.and_then(|number| Self::ALL.get(usize::from(number)));
        Ok(known.copied().unwrap_or_default())
    }
}

/// A branch that notes of a project name, with what was last found out about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotesBranch {
    /// Its name.
    pub name: String,
    /// The commit that it pointed to; empty if it never was in the repository here.
    pub tip: String,
    /// Its state.
    pub state: BranchState,
    /// Whether a session of this machine worked on it.
    pub is_of_machine: bool,
    /// When the latest session on it began.
    pub begun: String,
}

fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    let Some(branch) = &note.branch else {
        return Ok(());
    };
    // The file may come from another machine.
    let branch = one_line(&inert(branch));
    let sql = "INSERT INTO note_branch VALUES (?, ?, ?)";
    connection.run(sql, params![number, note.project, branch])
}

impl Index {
    /// Returns the branch that a note names, and what became of it.
    pub fn branch_of(&self, id: NoteId) -> Result<Option<(String, BranchState)>, Error> {
        let sql = "SELECT note_branch.name, branch.state FROM note JOIN note_branch USING (number)
             LEFT JOIN branch ON branch.project = note_branch.project AND branch.name = note_branch.name
             WHERE note.id = ?";
        self.first_tuple(sql, [id.to_string()])
    }

    /// Returns the branches that notes of a project name.
    pub fn branches(&self, project: &str, machine: &str) -> Result<Vec<NotesBranch>, Error> {
        let sql = "SELECT note_branch.name, coalesce(branch.tip, '') AS tip, branch.state,
               max(machine_id = ?2) AS is_of_machine, max(note.created_at) AS begun
             FROM note_branch JOIN note USING (number)
             LEFT JOIN branch ON branch.project = note_branch.project AND branch.name = note_branch.name
             WHERE note_branch.project = ?1 GROUP BY note_branch.name";
        self.rows(
            sql,
            [project, machine],
            |row| read_row!(row, NotesBranch: name, tip, state, is_of_machine, begun),
        )
    }

    /// Stores what was found out about branches of a project.
    pub fn set_branches(&self, project: &str, branches: &[NotesBranch]) -> Result<(), Error> {
        let transaction = self.connection.unchecked_transaction()?;
        for NotesBranch {
            name, tip, state, ..
        } in branches
        {
            let sql = "INSERT OR REPLACE INTO branch VALUES (?, ?, ?, ?)";
            transaction.run(sql, params![project, name, tip, *state as u8])?;
        }
        Ok(transaction.commit()?)
    }
}
