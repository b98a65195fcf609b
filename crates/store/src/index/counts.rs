//! Counts of notes for `status`.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::note::Kind;

use super::{Error, Index, NoteTotals};
use crate::sqlite::Queries;

/// The number of notes in the index, tombstones included.
pub(super) const TOTAL: &str = "SELECT count(*) FROM note";

/// The notes with the tag of a conflict, by an index of them alone.
pub(super) const CONFLICTS: &str = "SELECT count(*) FROM note
  WHERE instr(tags, '\"merge-conflict\"') > 0 AND superseded = 0 AND state <> 'forgotten'";

/// The keys of the projects with notes. A session start reads them, so it asks for one note of each.
pub(super) const PROJECTS: &str = "SELECT key FROM project WHERE EXISTS (
    SELECT 1 FROM note WHERE note.project = project.key AND state <> 'forgotten')";

impl Index {
    /// Returns the keys of the projects with notes, tombstones left out.
    pub fn projects(&self) -> Result<BTreeSet<String>, Error> {
        self.column(PROJECTS, [])
    }

    /// Returns the number of notes, tombstones included.
    pub fn note_count(&self) -> Result<usize, Error> {
        self.value(TOTAL, [])
    }

    /// Counts of notes for `status`.
    pub fn counts(&self) -> Result<NoteTotals, Error> {
        let mut totals = NoteTotals::default();
        self.each_sum(
            |[project, _, note_type, scope, workspace, state, machine], notes| {
                totals.total += notes;
                *totals.by_project.entry(project).or_default() += notes;
                *totals.by_type.entry(note_type).or_default() += notes;
                *totals.by_scope.entry(scope).or_default() += notes;
                *totals.by_workspace.entry(workspace).or_default() += notes;
                *totals.by_state.entry(state).or_default() += notes;
                *totals.by_machine.entry(machine).or_default() += notes;
            },
        )?;
        Ok(totals)
    }

    /// Counts the notes of a project by kind, superseded ones included.
    pub fn count_kinds(&self, keys: &[String]) -> Result<BTreeMap<&'static str, usize>, Error> {
        let mut by_kind = BTreeMap::new();
        self.each_sum(|[project, kind, ..], notes| {
            if keys.contains(&project)
                && let Ok(kind) = kind.parse::<Kind>()
            {
                *by_kind.entry(kind.shown()).or_default() += notes;
            }
        })?;
        Ok(by_kind)
    }

    /// Counts the notes by the month in which they were made, as `YYYY-MM`.
    pub fn count_by_month(&self) -> Result<BTreeMap<String, usize>, Error> {
        let sql = "SELECT substr(created_at, 1, 7), count(*) FROM note WHERE state <> 'forgotten' GROUP BY 1";
        self.tuples(sql, [])
    }

    /// Counts the conflicting texts to decide about.
    pub fn count_conflicts(&self) -> Result<usize, Error> {
        self.value(CONFLICTS, [])
    }

    /// Calls `take` with the counted columns and the number of their notes, tombstones left out.
    fn each_sum(&self, mut take: impl FnMut([String; 7], usize)) -> Result<(), Error> {
        let sql =
            "SELECT project, kind, type, scope, workspace_id, state, machine_id, count(*) FROM note
             WHERE state <> 'forgotten' GROUP BY 1, 2, 3, 4, 5, 6, 7";
        self.each(sql, [], |row| {
            let mut columns: [String; 7] = Default::default();
            for (place, column) in columns.iter_mut().enumerate() {
                *column = row.get(place)?;
            }
            take(columns, row.get(7)?);
            Ok(())
        })
    }
}
