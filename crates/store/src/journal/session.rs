//! A session: its digest, summary, observations and end.

use anamnesis_session::{
    declared::{self, Declared},
    event::{Agent, ClientProcess, FileAction, FileUse, Outcome, PromptKind, ToolEvent},
    observe::{self, Observation},
    session_note::{self, Compacted, SessionDigest},
    summary::{self, Summary},
    turn::{self, Turn},
};
use chrono::{DateTime, Utc};
use rusqlite::{Row, params};

use super::{Error, Journal, forget, take::LOST};
use crate::sqlite::{Json, Queries, bound, read_row};

/// The maker of summaries and observations that no model wrote.
const RULE: &str = "rule";

/// The number of files, searches or commands in a digest.
const MAX_NAMED: i64 = 500;

/// The silence after which a session is lost if its client cannot be looked up, milliseconds.
const SILENCE: i64 = 30 * 60 * 1000;

/// How far the recorded time of an answer may be from the one that the client tells, in
/// milliseconds.
const ANSWER_TOLERANCE: i64 = 5_000;

/// A session of the journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The client's id.
    pub id: String,
    /// The project's key.
    pub project: String,
    /// The project's folder.
    pub folder: Option<String>,
    /// Its transcript.
    pub transcript: Option<String>,
    /// `initialized`, `active` or `completed`.
    pub state: String,
    /// Why it ended, as the client names it, or `lost`.
    pub end_reason: Option<String>,
    /// When it began, milliseconds since 1970.
    pub started_at: i64,
    /// When its last event arrived.
    pub seen_at: i64,
    /// When it ended.
    pub ended_at: Option<i64>,
    /// The number of prompts, including private ones and notifications.
    pub prompts: i64,
    /// The number of stored tool events.
    pub tool_events: i64,
    /// The first prompt of a person with text.
    pub first_prompt: Option<String>,
    /// Whether its beginning was not recorded.
    pub is_partial: bool,
    /// Whether retention deleted some of its records.
    pub is_pruned: bool,
    /// A counter of the changes that its note depends on; see [`Journal::noted`].
    pub change: i64,
    /// The value of `change` when its note was written.
    pub noted: i64,
    /// The client's process.
    pub client: Option<ClientProcess>,
    /// The program, if it was not Claude Code.
    pub host: Option<String>,
}

fn session_of(row: &Row<'_>) -> rusqlite::Result<Session> {
    let client = client_of(row.get("client_process")?, row.get("client_started")?);
    read_row!(row, Session: id, project, folder, transcript, state, end_reason, started_at, seen_at,
        ended_at, prompts, tool_events, first_prompt, is_partial, is_pruned, change, noted, host;
        client = client)
}

/// Reads the client from a session's columns; none if its process id is unknown.
fn client_of(process: Option<String>, started: Option<i64>) -> Option<ClientProcess> {
    let id = process?.parse().ok()?;
    Some(ClientProcess { id, started })
}

/// Returns whether an open session is lost: its client has ended or, if that is unknown, it was
/// silent for too long.
fn is_lost(
    client: Option<ClientProcess>,
    seen_at: i64,
    now: i64,
    is_running: impl Fn(ClientProcess) -> Option<bool>,
) -> bool {
    match client.and_then(is_running) {
        Some(is_running) => !is_running,
        None => super::is_over(seen_at, SILENCE, now),
    }
}

/// The extent of a session's records.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// The time of the first record, milliseconds since 1970; none without records.
    pub first_at: Option<i64>,
    /// Whether there is anything but prompts.
    pub has_action: bool,
}

/// Sessions that repeat one another: see [`Journal::runs`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// The id of the first session. Its note is the note of all.
    pub first: String,
    /// The id of the last session.
    pub last: String,
    /// The number of sessions.
    pub count: usize,
}

impl Session {
    /// Returns whether it has ended.
    pub fn is_completed(&self) -> bool {
        self.state == "completed"
    }
}

impl Journal {
    /// Returns a session.
    pub fn session(&self, id: &str) -> Result<Option<Session>, Error> {
        self.one("SELECT * FROM session WHERE id = ?", [id], session_of)
    }

    /// Returns whether a part of a session is private or may be. An unknown session is not private.
    pub fn has_private_part(&self, session: &str) -> Result<bool, Error> {
        let sql = "SELECT EXISTS (SELECT 1 FROM session WHERE id = ?1 AND is_private = 1)
                   OR EXISTS (SELECT 1 FROM prompt WHERE session = ?1 AND privacy <> 'none')";
        Ok(self.value(sql, [session])? || self.is_unsure(session)?)
    }

    /// Returns when the last prompt of a session arrived, milliseconds since 1970.
    pub fn last_prompt_at(&self, session: &str) -> Result<Option<i64>, Error> {
        self.value("SELECT max(at) FROM prompt WHERE session = ?", [session])
    }

    /// Returns the session of these projects that was answered at this time, in milliseconds since
    /// 1970, give or take some seconds.
    pub fn answered_at(&self, projects: &[String], at: i64) -> Result<Option<String>, Error> {
        self.first(
            "SELECT session.id FROM turn_end JOIN session ON session.id = turn_end.session
                 WHERE turn_end.speaker = 'main' AND turn_end.at BETWEEN ?1 - ?2 AND ?1 + ?2
                   AND session.project IN (SELECT value FROM json_each(?3))
                 ORDER BY abs(turn_end.at - ?1), turn_end.number DESC LIMIT 1",
            params![at, ANSWER_TOLERANCE, Json(projects)],
        )
    }

    /// Returns the sessions of a project, or all, most recent first.
    pub fn sessions(&self, project: Option<&str>, limit: usize) -> Result<Vec<Session>, Error> {
        self.rows(
            "SELECT * FROM session WHERE ?1 IS NULL OR project = ?1 ORDER BY seen_at DESC, id LIMIT ?2",
            params![project, bound(limit)],
            session_of,
        )
    }

    /// Returns up to five sessions whose id begins with this text, an exact match first.
    pub fn sessions_named(&self, beginning: &str) -> Result<Vec<Session>, Error> {
        self.rows(
            "SELECT * FROM session WHERE substr(id, 1, length(?1)) = ?1
             ORDER BY id = ?1 DESC, seen_at DESC LIMIT 5",
            [beginning],
            session_of,
        )
    }

    /// Returns the lost sessions: the client has ended or, where `is_running` cannot tell, nothing
    /// happened for half an hour.
    pub fn lost_sessions(
        &self,
        now: i64,
        is_running: impl Fn(ClientProcess) -> Option<bool>,
    ) -> Result<Vec<Session>, Error> {
        let open: Vec<Session> = self.rows(
            "SELECT * FROM session WHERE state <> 'completed' ORDER BY seen_at",
            [],
            session_of,
        )?;
        Ok(open
            .into_iter()
            .filter(|session| is_lost(session.client, session.seen_at, now, &is_running))
            .collect())
    }

    /// Returns whether there are [lost sessions](Self::lost_sessions). It asks for each client
    /// once, even if it has many sessions, because hooks call it.
    pub fn has_lost_sessions(
        &self,
        now: i64,
        is_running: impl Fn(ClientProcess) -> Option<bool>,
    ) -> Result<bool, Error> {
        let sql = "SELECT client_process, client_started, min(seen_at) FROM session
             WHERE state <> 'completed' GROUP BY 1, 2";
        let open: Vec<(Option<String>, Option<i64>, i64)> = self.tuples(sql, [])?;
        Ok(open.into_iter().any(|(process, started, seen_at)| {
            is_lost(client_of(process, started), seen_at, now, &is_running)
        }))
    }

    /// Closes a lost session and queues its note.
    pub fn give_up(&self, session: &Session, now: i64) -> Result<(), Error> {
        self.in_transaction(|journal| {
            // It counts as ended at its last event.
            let given_up = journal.change("UPDATE session SET change = change + 1, state = 'completed', ended_at = seen_at, end_reason = ?
                 WHERE id = ? AND state <> 'completed' AND seen_at = ?", params![LOST, session.id, session.seen_at])?;
            if given_up > 0 {
                journal.settle(&session.id, now)?;
                journal.queue_note(&session.id, now)?;
            }
            Ok(())
        })
    }

    /// Collects the digest from which a session's note is made; none for an unknown session.
    pub fn session_digest(&self, id: &str) -> Result<Option<SessionDigest>, Error> {
        let Some(session) = self.session(id)? else {
            return Ok(None);
        };
        let mut digest = self.summary_digest(&session)?;
        let mut turns = self.turns(id)?;
        // Retention keeps the first prompt longer than the others.
        if session.is_pruned && !turns.iter().any(|turn| turn.prompt == session.first_prompt) {
            turns.splice(0..0, first_turn(&session, None));
        }
        digest.fixed = session_note::fix_lines(&self.observations(id)?, &turns);
        digest.turns = turns;
        digest.is_scripted = self.is_scripted(id)?;
        // While the session is open, a prompt that is not stored yet may turn out to be private.
        let may_be_told = |stored: &StoredEvent| session.is_completed() || stored.prompt.is_some();
        let newest = |of: &str| -> Result<Vec<ToolEvent>, Error> {
            let events = self.tool_events_after(id, 0, of, MAX_NAMED)?;
            let events = events.into_iter().filter(may_be_told);
            Ok(events.map(|stored| stored.event).collect())
        };
        digest.add_tool_events(&newest("1")?);
        digest.declared = Declared::new(&newest(&declaring())?, session.folder.as_deref());
        digest.compacted = self.compacted(id)?;
        Ok(Some(digest))
    }

    /// Returns whether a program sent a prompt of a session through `claude -p` or the SDK.
    fn is_scripted(&self, id: &str) -> Result<bool, Error> {
        let sql = "SELECT 1 FROM prompt WHERE session = ? AND kind = ?";
        self.exists(sql, [id, PromptKind::Script.as_str()])
    }

    /// Returns the client's last summary of a session.
    fn compacted(&self, id: &str) -> Result<Option<Compacted>, Error> {
        self.one(
            "SELECT text, NOT EXISTS (
                   SELECT 1 FROM turn_end AS later WHERE later.session = turn_end.session
                     AND speaker = 'main' AND later.number > turn_end.number) AS is_last
                 FROM turn_end WHERE session = ? AND speaker = 'compact' AND text IS NOT NULL
                 ORDER BY number DESC LIMIT 1",
            [id],
            |row| read_row!(row, Compacted: text, is_last),
        )
    }

    /// Returns the runs of the prompt of a session that ended, such as a scheduled one: sessions of its
    /// project with the same only prompt in which no file was edited and nothing is private. `None` if it
    /// is the only one. Retention keeps what the summary says of edited files.
    pub fn runs(&self, session: &Session) -> Result<Option<Runs>, Error> {
        const MIN_WORDS: usize = 4;
        let prompt = session.first_prompt.as_deref().unwrap_or_default();
        if prompt.split_whitespace().count() < MIN_WORDS {
            return Ok(None);
        }
        let ids: Vec<String> = self.column("SELECT id FROM session WHERE project = ? AND first_prompt = ? AND prompts = 1
                   AND state = 'completed' AND is_private = 0 AND NOT EXISTS (
                     SELECT 1 FROM file_use WHERE session = session.id AND action IN ('edited', 'created'))
                   AND NOT EXISTS (
                     SELECT 1 FROM summary WHERE summary.session = session.id
                       AND CASE WHEN json_valid(body) THEN json_array_length(body, '$.files_edited') END > 0)
                   AND NOT EXISTS (
                     SELECT 1 FROM prompt WHERE prompt.session = session.id AND privacy <> 'none')
                 ORDER BY started_at, rowid", [&session.project, prompt])?;
        Ok(match ids.as_slice() {
            [first, .., last] if ids.contains(&session.id) => Some(Runs {
                first: first.clone(),
                last: last.clone(),
                count: ids.len(),
            }),
            _ => None,
        })
    }

    /// Stores the branch that a session has checked out.
    pub fn set_branch(&self, session: &str, branch: Option<&str>) -> Result<(), Error> {
        let sql = "UPDATE session SET branch = ? WHERE id = ?";
        self.run(sql, params![branch, session])
    }

    /// Collects what a summary needs of a session: of the turns the first prompt and the last answer,
    /// and no tool event. A hook makes the summary after each answer.
    fn summary_digest(&self, session: &Session) -> Result<SessionDigest, Error> {
        let id = &session.id;
        let answer = self.last_words(id)?;
        let sql = "SELECT branch, title FROM session WHERE id = ?";
        let (git_branch, name) = self.tuple(sql, [id])?;
        let mut digest = SessionDigest {
            git_branch,
            name,
            folder: session.folder.clone(),
            next_steps: answer
                .as_deref()
                .map(summary::next_steps)
                .unwrap_or_default(),
            turns: first_turn(session, answer).into_iter().collect(),
            first_at: time(session.started_at),
            last_at: self.last_event_at(id)?.and_then(time),
            failures: self.failures(id)?,
            ..SessionDigest::default()
        };
        self.add_files(session, &mut digest)?;
        self.add_subjects(id, &mut digest)?;
        Ok(digest)
    }

    /// Returns the text of the last turn that has one.
    fn last_words(&self, id: &str) -> Result<Option<String>, Error> {
        self.first(
            "SELECT text FROM turn_end WHERE session = ? AND speaker = 'main' AND text IS NOT NULL
                 ORDER BY at DESC, number DESC LIMIT 1",
            [id],
        )
    }

    /// Adds the files that a session edited or read.
    fn add_files(&self, session: &Session, digest: &mut SessionDigest) -> Result<(), Error> {
        // The summary still names the files of tool events that retention deleted.
        let earlier = if session.is_pruned {
            self.summary(&session.id)?.unwrap_or_default()
        } else {
            Summary::default()
        };
        digest.files = self.files_used(session, "'edited', 'created'", earlier.files_edited)?;
        digest.files_read = self.files_used(session, "'read'", earlier.files_read)?;
        if i64::try_from(digest.files.len()).is_ok_and(|count| count >= MAX_NAMED) {
            digest.edits_left_out = self.value("SELECT count(*) FROM file_use WHERE session = ?1 AND action IN ('edited', 'created')
                   AND path NOT IN (SELECT path FROM file_use WHERE session = ?1 AND action IN ('edited', 'created')
                                    GROUP BY path ORDER BY min(event) LIMIT ?2)", params![session.id, MAX_NAMED])?;
        }
        Ok(())
    }

    /// Returns `earlier` and the files of these actions, the most used first. `actions` is SQL.
    fn files_used(
        &self,
        session: &Session,
        actions: &str,
        earlier: Vec<String>,
    ) -> Result<Vec<String>, Error> {
        // While the session is open, a prompt that is not stored yet may turn out to be private.
        let used = if session.is_completed() {
            "1"
        } else {
            "event NOT IN (SELECT number FROM tool_event WHERE session = ?1 AND prompt IS NULL)"
        };
        let found: Vec<String> = self.column(
            &format!(
                "SELECT path FROM file_use WHERE session = ?1 AND action IN ({actions}) AND {used}
                 GROUP BY path ORDER BY count(*) DESC, min(event) LIMIT {MAX_NAMED}"
            ),
            [&session.id],
        )?;
        let mut files = earlier;
        for path in found {
            if !files.contains(&path) {
                files.push(path);
            }
        }
        Ok(files)
    }

    /// Adds the commands that passed and the patterns of searches, each at its last occurrence.
    fn add_subjects(&self, id: &str, digest: &mut SessionDigest) -> Result<(), Error> {
        let sql = "SELECT tool, subject FROM tool_event WHERE session = ? AND subject IS NOT NULL
                 ORDER BY number DESC LIMIT 100";
        let subjects: Vec<(String, String)> = self.tuples(sql, [id])?;
        for (tool, subject) in subjects.into_iter().rev() {
            let list = if tool == "Bash" {
                &mut digest.commands_passed
            } else {
                &mut digest.searches
            };
            list.retain(|known| *known != subject);
            list.push(subject);
        }
        Ok(())
    }

    /// Counts the failed tool events of a session.
    fn failures(&self, id: &str) -> Result<usize, Error> {
        self.value(
            "SELECT count(*) FROM tool_event WHERE session = ? AND outcome = 'failed'",
            [id],
        )
    }

    /// Returns a person's prompts and the model's answers, in order, with the files edited between them.
    pub(super) fn turns(&self, id: &str) -> Result<Vec<Turn>, Error> {
        const EDIT: i64 = 1;
        const ANSWER: i64 = 2;
        const COMMAND: i64 = 3;
        let sql = "SELECT 0 AS part, text, at, number, kind = ?3 AS is_command FROM prompt
             WHERE session = ?1 AND kind IN (?2, ?3, 'script') AND text IS NOT NULL
             UNION ALL SELECT 1, path, at, number, 0 FROM file_use JOIN tool_event ON number = event
             WHERE file_use.session = ?1 AND action IN ('edited', 'created')
             UNION ALL SELECT 2, text, at, number, 0 FROM turn_end
             WHERE session = ?1 AND speaker = 'main' AND text IS NOT NULL
             UNION ALL SELECT 3, id, at, number, 0 FROM tool_event
             WHERE session = ?1 AND tool IN ('Bash', 'PowerShell')
             ORDER BY at, part, number";
        let [person, command] = [PromptKind::Person, PromptKind::Command].map(PromptKind::as_str);
        let mut turns = Vec::new();
        let mut after = None;
        self.each(sql, [id, person, command], |row| {
            let text: String = row.get("text")?;
            match row.get("part")? {
                EDIT => turn::add_edit(&mut turns, text),
                ANSWER => turn::add_answer(&mut turns, text),
                COMMAND => after = Some(text),
                _ if !row.get("is_command")? => turn::add_prompt(&mut turns, text, after.clone()),
                _ => {
                    if let Some(arguments) = turn::command_arguments(&text) {
                        turn::add_prompt(&mut turns, arguments.to_owned(), after.clone());
                    }
                }
            }
            Ok(())
        })?;
        Ok(turns)
    }

    /// Returns when the last prompt was sent if its answer is not stored yet and may be stored,
    /// milliseconds since 1970.
    pub fn unanswered_since(&self, id: &str) -> Result<Option<i64>, Error> {
        let prompt: Option<(i64, bool, Option<String>)> = self.first_tuple("SELECT at, privacy = 'full' OR EXISTS (
                   SELECT 1 FROM turn_end WHERE turn_end.session = prompt.session AND speaker = 'main'
                     AND text IS NOT NULL AND turn_end.at >= prompt.at), text
                 FROM prompt WHERE session = ? ORDER BY number DESC LIMIT 1", [id])?;
        Ok(prompt.and_then(|(at, is_over, text)| {
            let is_own = text.is_some_and(|text| turn::is_own_command(&text));
            (!is_over && !is_own).then_some(at)
        }))
    }

    fn last_event_at(&self, id: &str) -> Result<Option<i64>, Error> {
        self.value(
            "SELECT max(at) FROM (
                   SELECT max(at) AS at FROM tool_event WHERE session = ?1
                   UNION ALL SELECT max(at) FROM turn_end WHERE session = ?1
                   UNION ALL SELECT max(at) FROM prompt WHERE session = ?1)",
            [id],
        )
    }

    /// Returns the extent of a session's records.
    pub fn extent(&self, id: &str) -> Result<Extent, Error> {
        let sql = "SELECT (SELECT min(at) FROM prompt WHERE session = ?1),
                   (SELECT min(at) FROM (
                      SELECT min(at) AS at FROM tool_event WHERE session = ?1
                      UNION ALL SELECT min(at) FROM turn_end WHERE session = ?1))";
        let (prompt, action): (Option<i64>, Option<i64>) = self.tuple(sql, [id])?;
        Ok(Extent {
            first_at: prompt.into_iter().chain(action).min(),
            has_action: action.is_some(),
        })
    }

    /// Updates the rule-made summary and the observations of a session.
    pub(super) fn settle(&self, id: &str, now: i64) -> Result<(), Error> {
        self.observe(id, now)?;
        let Some(session) = self.session(id)? else {
            return Ok(());
        };
        let summary = summary::summarize(&self.summary_digest(&session)?);
        self.run("INSERT INTO summary VALUES (?1, ?2, (SELECT prompts FROM session WHERE id = ?1), ?3, ?4)
                 ON CONFLICT (session, maker) DO UPDATE SET
                   up_to = excluded.up_to, body = excluded.body, at = excluded.at
                   WHERE body <> excluded.body OR up_to <> excluded.up_to", params![id, RULE, Json(summary), now])
    }

    /// Observes the new tool events and those that are not settled yet.
    fn observe(&self, id: &str, now: i64) -> Result<(), Error> {
        let observed: i64 = self.value("SELECT observed FROM session WHERE id = ?", [id])?;
        let events = self.tool_events_after(id, observed, "1", bound(observe::WINDOW))?;
        let (numbers, events): (Vec<i64>, Vec<ToolEvent>) = events
            .into_iter()
            .map(|stored| (stored.number, stored.event))
            .unzip();
        let found = observe::observations(&events);
        for observation in &found.observations {
            let values = params![
                id,
                observation.hash(),
                observation.kind.as_str(),
                observation.error_signature,
                Json(observation),
                RULE,
                now,
            ];
            let sql = "INSERT OR IGNORE INTO observation VALUES (?, ?, ?, ?, ?, ?, ?)";
            self.run(sql, values)?;
        }
        let last = found.settled.checked_sub(1);
        if let Some(number) = last.and_then(|last| numbers.get(last)) {
            let sql = "UPDATE session SET observed = ? WHERE id = ?";
            self.run(sql, params![number, id])?;
        }
        Ok(())
    }

    /// Returns the summary of a session: a model's if there is one, otherwise the rule-made one.
    pub fn summary(&self, id: &str) -> Result<Option<Summary>, Error> {
        let sql = "SELECT body FROM summary WHERE session = ? ORDER BY maker = 'rule' LIMIT 1";
        let summary = self.first(sql, [id])?;
        Ok(summary.and_then(|Json(summary)| summary))
    }

    /// Returns the observations of a session, oldest first.
    pub fn observations(&self, id: &str) -> Result<Vec<Observation>, Error> {
        let sql = "SELECT body FROM observation WHERE session = ? ORDER BY rowid";
        let bodies: Vec<Json<Option<Observation>>> = self.column(sql, [id])?;
        Ok(bodies.into_iter().filter_map(|Json(body)| body).collect())
    }

    /// Records that the note of a session was written from this value of `change`.
    pub fn noted(&self, id: &str, change: i64, now: i64) -> Result<(), Error> {
        self.run(
            "UPDATE session SET noted = max(noted, ?2), noted_at = ?3 WHERE id = ?1",
            params![id, change, now],
        )?;
        // Private tokens are needed until the last note of the session is written.
        self.run(
            "DELETE FROM private_token WHERE session = ?1
                   AND EXISTS (SELECT 1 FROM session WHERE id = ?1 AND state = 'completed')",
            [id],
        )
    }

    /// Deletes all records of a session. Returns whether there were any.
    pub fn forget_session(&self, id: &str) -> Result<bool, Error> {
        self.in_transaction(|journal| {
            for statement in [
                "DELETE FROM shown WHERE session = ?",
                "DELETE FROM session_body WHERE session = ?",
                "DELETE FROM shown_note WHERE session = ?",
                "DELETE FROM agent_note WHERE session = ?",
            ] {
                journal.run(statement, [id])?;
            }
            journal.run("DELETE FROM meta WHERE key = ?", [forget::key_of(id)])?;
            // Foreign keys delete its prompts, events and other rows.
            Ok(journal.change("DELETE FROM session WHERE id = ?", [id])? > 0)
        })
    }

    /// Returns the last tool events of a session after a number that `of`, an expression in SQL, selects,
    /// in order.
    pub(super) fn tool_events_after(
        &self,
        id: &str,
        number: i64,
        of: &str,
        limit: i64,
    ) -> Result<Vec<StoredEvent>, Error> {
        let sql = format!(
            "SELECT * FROM tool_event WHERE session = ? AND number > ? AND ({of})
             ORDER BY number DESC LIMIT ?"
        );
        let mut events: Vec<StoredEvent> = self.rows(&sql, params![id, number, limit], event_of)?;
        events.reverse();
        for stored in &mut events {
            let sql = "SELECT path, action FROM file_use WHERE event = ? ORDER BY path";
            let files: Vec<(String, String)> = self.tuples(sql, [stored.number])?;
            let files = files.into_iter().map(|(path, action)| FileUse {
                path,
                action: FileAction::parse(&action).unwrap_or(FileAction::Read),
            });
            stored.event.files = files.collect();
        }
        Ok(events)
    }
}

/// Returns the expression in SQL that selects the tool events which may declare something.
fn declaring() -> String {
    let tools = declared::TOOLS.join("', '");
    let commands = declared::COMMANDS.map(|command| format!(" OR input LIKE '%{command}%'"));
    format!("tool IN ('{tools}'){}", commands.concat())
}

/// A stored tool event.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredEvent {
    /// Its number in the order of all events.
    pub number: i64,
    /// The number of its prompt; none if not known yet.
    pub prompt: Option<i64>,
    /// When it was, milliseconds since 1970.
    pub at: i64,
    /// The event.
    pub event: ToolEvent,
}

fn event_of(row: &Row<'_>) -> rusqlite::Result<StoredEvent> {
    let (Json(input), Json(response)) = (row.get("input")?, row.get("response")?);
    let outcome: String = row.get("outcome")?;
    let agent: Option<String> = row.get("agent_id")?;
    let kind: Option<String> = row.get("agent_type")?;
    let kind = kind.unwrap_or_default();
    let event: rusqlite::Result<ToolEvent> = read_row!(
        row, ToolEvent: id, tool, error, duration_ms, is_from_batch, many_tags;
        input = input,
        response = response,
        outcome = Outcome::parse(&outcome).unwrap_or(Outcome::Ok),
        files = Vec::new(),
        agent = agent.map(|id| Agent { id, kind })
    );
    read_row!(row, StoredEvent: number, prompt, at; event = event?)
}

/// Returns a turn of the session's first prompt and an answer; none if there is neither.
fn first_turn(session: &Session, answer: Option<String>) -> Option<Turn> {
    let prompt = session.first_prompt.clone();
    (prompt.is_some() || answer.is_some()).then(|| Turn {
        prompt,
        answer,
        ..Turn::default()
    })
}

fn time(milliseconds: i64) -> Option<DateTime<Utc>> {
    DateTime::from_timestamp_millis(milliseconds)
}
