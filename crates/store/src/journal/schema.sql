-- The tables of the journal. Rows are inserted by position in places, so a new column goes last.
--
-- Every hook writes and reads one more page for each index, so there are few.

CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;

-- `change` counts the changes that a session's note depends on; `noted` is its value when the note was
-- written. `observed` is the number of the last tool event that was processed. `epoch` counts how often
-- the session's context was emptied. `host` is empty for Claude Code.
-- `asked_at` is when a model was asked about it, `asked_reason` why its answer was not taken.
CREATE TABLE session (
  id TEXT PRIMARY KEY, project TEXT NOT NULL, folder TEXT, transcript TEXT, source TEXT, client_process TEXT,
  started_at INTEGER NOT NULL, seen_at INTEGER NOT NULL, ended_at INTEGER, end_reason TEXT,
  state TEXT NOT NULL DEFAULT 'active', model TEXT, branch TEXT, client_started INTEGER, first_prompt TEXT,
  prompts INTEGER NOT NULL DEFAULT 0, tool_events INTEGER NOT NULL DEFAULT 0,
  is_private INTEGER NOT NULL DEFAULT 0, is_partial INTEGER NOT NULL DEFAULT 0,
  is_pruned INTEGER NOT NULL DEFAULT 0, change INTEGER NOT NULL DEFAULT 0, noted INTEGER NOT NULL DEFAULT 0,
  noted_at INTEGER, observed INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL DEFAULT 0,
  host TEXT, title TEXT, asked_at INTEGER, asked_reason TEXT
) STRICT;
CREATE INDEX session_open ON session (id) WHERE state <> 'completed';
CREATE INDEX session_due ON session (id) WHERE state = 'completed' AND noted < change;

CREATE TABLE session_body (session TEXT NOT NULL, hash TEXT NOT NULL, PRIMARY KEY (session, hash)) STRICT;

-- The injected notes. `evidence` is JSON for display.
CREATE TABLE shown (
  session TEXT NOT NULL, at INTEGER NOT NULL, position INTEGER NOT NULL, note TEXT NOT NULL,
  hash TEXT NOT NULL, lane TEXT NOT NULL, level TEXT NOT NULL, reason TEXT NOT NULL,
  agent TEXT NOT NULL DEFAULT '', epoch INTEGER NOT NULL DEFAULT 0, evidence TEXT,
  PRIMARY KEY (session, at, position)
) STRICT;

-- `by_agent` is 1 or 2 if an agent forgot the note and the person was not told; 2 if the person had
-- typed the command.
CREATE TABLE forgotten (
  text_key TEXT PRIMARY KEY, note TEXT NOT NULL, at INTEGER NOT NULL, by_agent INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE TABLE written_here (note TEXT NOT NULL, hash TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (note, hash)) STRICT;

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

-- `agent` is the subagent that took the task. A prompt that a tool scheduled has the tool as its `kind`.
CREATE TABLE delegation (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, id TEXT NOT NULL, kind TEXT NOT NULL,
  prompt TEXT NOT NULL, at INTEGER NOT NULL, agent TEXT, PRIMARY KEY (session, id)
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

-- The runs of recall. `held` is JSON for display.
CREATE TABLE recall (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, at INTEGER NOT NULL, lane TEXT NOT NULL,
  agent TEXT NOT NULL, terms INTEGER NOT NULL, searched INTEGER NOT NULL, floor REAL NOT NULL,
  given INTEGER NOT NULL, reason TEXT NOT NULL, held TEXT NOT NULL,
  PRIMARY KEY (session, at, lane, agent)
) STRICT;

-- The notes that a session was shown; of all sessions, for counts of use.
CREATE TABLE shown_note (
  session TEXT NOT NULL, note TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (session, note)
) STRICT, WITHOUT ROWID;

-- The used notes, of all sessions.
CREATE TABLE use (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, agent TEXT NOT NULL, turn INTEGER NOT NULL,
  note TEXT NOT NULL, is_certain INTEGER NOT NULL, at INTEGER NOT NULL,
  PRIMARY KEY (session, agent, turn, note)
) STRICT;

-- The citations of notes that a check saw. `place` is the hash of the folder where the thing was seen outside of git,
-- because folders of one name share a project. A row without `kind` says when the note was checked.
CREATE TABLE seen_citation (
  note TEXT NOT NULL, kind TEXT NOT NULL, text TEXT NOT NULL, project TEXT NOT NULL,
  seen_at INTEGER NOT NULL, gone_at INTEGER, place TEXT NOT NULL,
  PRIMARY KEY (note, kind, text)
) STRICT, WITHOUT ROWID;

-- The notes that agents wrote or forgot in each session, for their limit.
CREATE TABLE agent_note (
  session TEXT NOT NULL, note TEXT NOT NULL, at INTEGER NOT NULL, PRIMARY KEY (session, note)
) STRICT;

-- The notes whose origin is known, besides those that a person wrote here.
CREATE TABLE known_note (note TEXT PRIMARY KEY) STRICT, WITHOUT ROWID;

-- The texts that hooks added to a context, compressed, exactly as the client received them. `hash` is the
-- SHA-256 of the text.
CREATE TABLE block (
  session TEXT NOT NULL REFERENCES session (id) ON DELETE CASCADE, at INTEGER NOT NULL, event TEXT NOT NULL,
  agent TEXT NOT NULL, hash TEXT NOT NULL, text BLOB NOT NULL, PRIMARY KEY (session, at, event, agent, hash)
) STRICT;
