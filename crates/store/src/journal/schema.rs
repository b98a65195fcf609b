//! The tables of the journal. A version only adds to the previous one, so that two versions of the
//! program can run at the same time during an update.

use std::collections::BTreeSet;

use rusqlite::Connection;

use super::VERSION;
use crate::sqlite;

/// The migration scripts, one per version. The first one starts from an empty file.
pub(super) const VERSIONS: [&str; 7] = [
    VERSION_1, VERSION_2, VERSION_3, VERSION_4, VERSION_5, VERSION_6, VERSION_7,
];

/// Returns the scripts that a file of this version needs.
pub(super) fn scripts_from(version: i64) -> String {
    let made = usize::try_from(version).unwrap_or(0);
    VERSIONS.get(made..).unwrap_or_default().concat()
}

/// The tables of a file. Each column and each index is a line under the table's name.
#[derive(Debug, Default)]
struct Shape {
    columns: BTreeSet<(String, String)>,
    indexes: BTreeSet<(String, String)>,
}

impl Shape {
    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let lines = |sql: &str| -> rusqlite::Result<BTreeSet<(String, String)>> {
            connection
                .prepare(sql)?
                .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect()
        };
        Ok(Self {
            columns: lines(
                "SELECT made.name, format('%d %d %s %s %d %d', wr, strict, c.name, c.type, c.\"notnull\", c.pk)
                 FROM pragma_table_list AS made, pragma_table_xinfo(made.name) AS c
                 WHERE made.schema = 'main' AND made.type = 'table' AND made.name NOT LIKE 'sqlite_%'",
            )?,
            indexes: lines(
                "SELECT made.name, format('%s %d %d %s', i.name, i.\"unique\", i.partial, group_concat(c.name))
                 FROM pragma_table_list AS made, pragma_index_list(made.name) AS i, pragma_index_info(i.name) AS c
                 WHERE made.schema = 'main' AND made.type = 'table' GROUP BY made.name, i.name",
            )?,
        })
    }

    /// Returns the tables that the scripts of a version create.
    fn made(version: usize) -> rusqlite::Result<Self> {
        let connection = sqlite::open_in_memory()?;
        let scripts = VERSIONS.get(..version).unwrap_or_default();
        connection.execute_batch(&scripts.concat())?;
        Self::of(&connection)
    }
}

/// Returns the first table whose schema differs from its version's scripts. Unknown tables are
/// ignored.
pub(super) fn differing_table(
    connection: &Connection,
    version: i64,
) -> rusqlite::Result<Option<String>> {
    let made = usize::try_from(version).unwrap_or(0);
    let expected = Shape::made(made)?;
    let mut known = expected.columns.clone();
    if version != VERSION {
        known.extend(Shape::made(VERSIONS.len())?.columns);
    }
    let known: BTreeSet<&String> = known.iter().map(|(table, _)| table).collect();
    let mut actual = Shape::of(connection)?;
    actual.columns.retain(|(table, _)| known.contains(table));
    let columns = expected.columns.symmetric_difference(&actual.columns);
    let indexes = expected.indexes.difference(&actual.indexes);
    Ok(columns
        .chain(indexes)
        .next()
        .map(|(table, _)| table.clone()))
}

const VERSION_1: &str = "
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE session (
  id TEXT PRIMARY KEY, project TEXT NOT NULL, folder TEXT, transcript TEXT, source TEXT, client_process TEXT,
  started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, ended_at INTEGER, end_reason TEXT
) STRICT;
CREATE TABLE session_body (session TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (session, hash)) STRICT;
CREATE TABLE shown (
  session TEXT NOT NULL, at INTEGER NOT NULL, position INTEGER NOT NULL, note TEXT NOT NULL,
  hash TEXT NOT NULL, lane TEXT NOT NULL, level TEXT NOT NULL, reason TEXT NOT NULL,
  PRIMARY KEY (session, at, position)
) STRICT;
CREATE TABLE hook_run (
  number INTEGER PRIMARY KEY, event TEXT NOT NULL, at INTEGER NOT NULL, microseconds INTEGER NOT NULL, error TEXT
) STRICT;
CREATE INDEX hook_run_event ON hook_run (event, number);
CREATE TABLE forgotten (text_key TEXT PRIMARY KEY, note TEXT NOT NULL, at INTEGER NOT NULL) STRICT;
CREATE TABLE written_here (note TEXT NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (note, hash)) STRICT;
";

// Every hook writes and reads one more page for each index, so there are few. The first version was
// never released, so its tables may be dropped.
//
// `change` counts the changes that a session's note depends on; `noted` is its value when the note
// was written. `observed` is the number of the last tool event that was processed.
const VERSION_2: &str = "
ALTER TABLE session ADD COLUMN state TEXT NOT NULL DEFAULT 'active';
ALTER TABLE session ADD COLUMN model TEXT;
ALTER TABLE session ADD COLUMN branch TEXT;
ALTER TABLE session ADD COLUMN client_started INTEGER;
ALTER TABLE session ADD COLUMN first_prompt TEXT;
ALTER TABLE session ADD COLUMN prompts INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN tool_events INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN is_private INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN is_partial INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN is_pruned INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN change INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN noted INTEGER NOT NULL DEFAULT 0;
ALTER TABLE session ADD COLUMN noted_at INTEGER;
ALTER TABLE session ADD COLUMN observed INTEGER NOT NULL DEFAULT 0;
CREATE INDEX session_open ON session (id) WHERE state <> 'completed';
CREATE INDEX session_due ON session (id) WHERE state = 'completed' AND noted < change;
CREATE TABLE prompt (
  row INTEGER PRIMARY KEY, session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  id TEXT, number INTEGER NOT NULL, kind TEXT NOT NULL, privacy TEXT NOT NULL, text TEXT,
  suppressed INTEGER NOT NULL DEFAULT 0, many_tags INTEGER NOT NULL, at INTEGER NOT NULL,
  UNIQUE (session, number), UNIQUE (session, id)
) STRICT;
CREATE TABLE suppressed (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, prompt INTEGER NOT NULL, event TEXT NOT NULL,
  PRIMARY KEY (session, prompt, event)
) STRICT, WITHOUT ROWID;
CREATE TABLE tool_event (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  id TEXT NOT NULL, prompt INTEGER, prompt_id TEXT, tool TEXT NOT NULL, subject TEXT, input TEXT, response TEXT,
  outcome TEXT NOT NULL, error TEXT, duration_ms INTEGER, agent_id TEXT, agent_type TEXT,
  is_from_batch INTEGER NOT NULL, many_tags INTEGER NOT NULL, at INTEGER NOT NULL,
  UNIQUE (session, id)
) STRICT;
CREATE INDEX tool_event_session ON tool_event (session, number);
CREATE INDEX tool_event_subject ON tool_event (session, number) WHERE subject IS NOT NULL;
CREATE INDEX tool_event_failed ON tool_event (session) WHERE outcome = 'failed';
CREATE INDEX tool_event_unverified ON tool_event (session, prompt_id) WHERE prompt IS NULL;
CREATE TABLE file_use (
  event INTEGER NOT NULL REFERENCES tool_event (number) ON DELETE CASCADE,
  session TEXT NOT NULL, path TEXT NOT NULL, action TEXT NOT NULL,
  PRIMARY KEY (event, path)
) STRICT, WITHOUT ROWID;
CREATE INDEX file_use_session ON file_use (session, event);
CREATE TABLE turn_end (
  number INTEGER PRIMARY KEY, session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE,
  prompt_id TEXT NOT NULL, agent_id TEXT NOT NULL, agent_type TEXT NOT NULL, speaker TEXT NOT NULL,
  hash TEXT NOT NULL, text TEXT, after_event INTEGER NOT NULL, at INTEGER NOT NULL,
  UNIQUE (session, prompt_id, agent_id, speaker, hash)
) STRICT;
CREATE TABLE delegation (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, id TEXT NOT NULL, kind TEXT NOT NULL,
  prompt TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (session, id)
) STRICT;
CREATE TABLE observation (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, hash TEXT NOT NULL, kind TEXT NOT NULL,
  signature TEXT, body TEXT NOT NULL, maker TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (session, hash)
) STRICT;
CREATE INDEX observation_signature ON observation (signature) WHERE signature IS NOT NULL;
CREATE TABLE summary (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, maker TEXT NOT NULL, up_to INTEGER NOT NULL,
  body TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (session, maker)
) STRICT;
CREATE TABLE job (
  kind TEXT NOT NULL, session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, up_to INTEGER NOT NULL,
  state TEXT NOT NULL, tries INTEGER NOT NULL DEFAULT 0, free_at INTEGER NOT NULL, error TEXT, at INTEGER NOT NULL,
  PRIMARY KEY (kind, session, up_to)
) STRICT;
CREATE INDEX job_waiting ON job (free_at) WHERE state IN ('queued', 'leased');
CREATE TABLE private_token (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, key BLOB NOT NULL, hash BLOB NOT NULL,
  PRIMARY KEY (session, key, hash)
) STRICT, WITHOUT ROWID;
CREATE TABLE hook (
  event TEXT PRIMARY KEY, last_at INTEGER NOT NULL, day INTEGER NOT NULL, today INTEGER NOT NULL,
  times BLOB NOT NULL, error TEXT, error_at INTEGER, is_failing INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
DROP TABLE hook_run;
";

// The state of the import of Claude Code's own memory. It has few rows, which only the import writes,
// so the one query of a hook needs no index.
const VERSION_3: &str = "
CREATE TABLE native_source (
  claude TEXT NOT NULL, source TEXT NOT NULL, slug TEXT NOT NULL,
  size INTEGER NOT NULL, modified INTEGER NOT NULL, inode INTEGER NOT NULL,
  fate TEXT NOT NULL, note TEXT NOT NULL, hash TEXT NOT NULL, project TEXT NOT NULL,
  note_size INTEGER NOT NULL, note_modified INTEGER NOT NULL, note_inode INTEGER NOT NULL,
  returns INTEGER NOT NULL,
  PRIMARY KEY (claude, source)
) STRICT, WITHOUT ROWID;
CREATE TABLE native_place (
  claude TEXT NOT NULL, slug TEXT NOT NULL, folder TEXT NOT NULL, is_certain INTEGER NOT NULL, seen INTEGER NOT NULL,
  PRIMARY KEY (claude, slug)
) STRICT, WITHOUT ROWID;
";

// The recall ledger. `epoch` counts how often a session's context was emptied. `evidence` and `held`
// are JSON for display. `agent` of a delegation is the subagent that took it. Injected and used notes
// are counted once they are in a receipt; `receipt` has the receipts that are pending or stay on this
// machine. `reference` has the citations of notes; its `place` is the hash of the folder where the
// thing was seen outside of git, because folders of one name share a project.
const VERSION_4: &str = "
ALTER TABLE session ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE shown ADD COLUMN agent TEXT NOT NULL DEFAULT '';
ALTER TABLE shown ADD COLUMN epoch INTEGER NOT NULL DEFAULT 0;
ALTER TABLE shown ADD COLUMN evidence TEXT;
ALTER TABLE delegation ADD COLUMN agent TEXT;
CREATE TABLE recall (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, at INTEGER NOT NULL, lane TEXT NOT NULL,
  agent TEXT NOT NULL, terms INTEGER NOT NULL, searched INTEGER NOT NULL, floor REAL NOT NULL,
  given INTEGER NOT NULL, reason TEXT NOT NULL, held TEXT NOT NULL,
  PRIMARY KEY (session, at, lane, agent)
) STRICT;
ALTER TABLE shown ADD COLUMN is_counted INTEGER NOT NULL DEFAULT 0;
CREATE TABLE use (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, agent TEXT NOT NULL, turn INTEGER NOT NULL,
  note TEXT NOT NULL, is_certain INTEGER NOT NULL, at INTEGER NOT NULL, is_counted INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (session, agent, turn, note)
) STRICT;
CREATE TABLE receipt (
  key TEXT PRIMARY KEY, session TEXT, text TEXT NOT NULL, is_kept INTEGER NOT NULL
) STRICT;
CREATE TABLE reference (
  note TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, project TEXT NOT NULL, state TEXT NOT NULL,
  seen_at INTEGER, gone_at INTEGER, reason TEXT, place TEXT NOT NULL,
  PRIMARY KEY (note, kind, text)
) STRICT, WITHOUT ROWID;
CREATE TABLE reference_look (
  note TEXT PRIMARY KEY, project TEXT NOT NULL, at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
";

// The notes that agents wrote in each session, for their limit.
const VERSION_5: &str = "
CREATE TABLE agent_note (
  session TEXT NOT NULL, note TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (session, note)
) STRICT;
";

// Reflections that a session's model was asked for; `sources` and `notes` are JSON of ids and hashes.
// Also whether an agent forgot a note, and the background calls by day and session.
const VERSION_6: &str = "
CREATE TABLE reflection (
  key TEXT PRIMARY KEY, project TEXT NOT NULL, state TEXT NOT NULL, at INTEGER NOT NULL,
  sources TEXT NOT NULL, notes TEXT NOT NULL
) STRICT, WITHOUT ROWID;
ALTER TABLE forgotten ADD COLUMN by_agent INTEGER NOT NULL DEFAULT 0;
CREATE TABLE spent (day TEXT PRIMARY KEY, calls INTEGER NOT NULL, tokens INTEGER NOT NULL) STRICT;
CREATE TABLE asked (
  session TEXT PRIMARY KEY REFERENCES session (id) ON DELETE CASCADE, at INTEGER NOT NULL, reason TEXT
) STRICT;
";

// Notes whose origin is known, besides those that a person wrote here.
const VERSION_7: &str = "
CREATE TABLE known_note (note TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;
";
