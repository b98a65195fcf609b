//! Lists everything that the journal has of a session, for a person.

use anamnesis_session::{
    event::{Agent, Privacy, PromptKind, Speaker},
    observe::Observation,
    summary::Summary,
    transcript::scheduled::TOOLS,
};
use rusqlite::params;

use super::{Error, Given, Journal, Session, StoredEvent};
use crate::sqlite::{Json, Queries, bound, read_row};

/// The least number of characters of a session's id that are shown.
const SHORT: usize = 8;

/// A stored prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPrompt {
    /// Its number in the session, starting at 1.
    pub number: i64,
    /// Its kind.
    pub kind: PromptKind,
    /// How much of it was private or forgotten.
    pub privacy: Privacy,
    /// Its text, if stored.
    pub text: Option<String>,
    /// The number of its events that were suppressed.
    pub suppressed: i64,
    /// Whether it had an implausible number of private regions.
    pub many_tags: bool,
    /// Its time, milliseconds since 1970.
    pub at: i64,
}

/// A stored end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTurnEnd {
    /// The number of its prompt; none if unknown.
    pub prompt: Option<i64>,
    /// The number of the last tool event before it.
    pub after_event: i64,
    /// The author of the text.
    pub speaker: Speaker,
    /// The subagent, if any.
    pub agent: Option<Agent>,
    /// The text, if any.
    pub text: Option<String>,
    /// Its time, milliseconds since 1970.
    pub at: i64,
}

/// A task for a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelegation {
    /// The client's id of the tool call.
    pub id: String,
    /// The subagent's type.
    pub kind: String,
    /// The task.
    pub prompt: String,
    /// Its time, milliseconds since 1970.
    pub at: i64,
}

/// A tool call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedTool {
    /// The number of its prompt; none if unknown.
    pub prompt: Option<i64>,
    /// The tool.
    pub tool: String,
    /// The error, if the client sent it.
    pub error: Option<String>,
}

/// A stored summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSummary {
    /// `rule`, or the model's name.
    pub maker: String,
    /// The number of the last prompt that it covers.
    pub up_to: i64,
    /// Its content.
    pub summary: Summary,
}

/// A stored job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// The kind.
    pub kind: String,
    /// `queued`, `leased`, `done` or `failed`.
    pub state: String,
    /// The number of tries.
    pub tries: i64,
    /// The error of the last try.
    pub error: Option<String>,
    /// When its state last changed, milliseconds since 1970.
    pub at: i64,
}

/// All rows of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The session itself.
    pub session: Session,
    /// How it started, as the client names it.
    pub source: Option<String>,
    /// The model, if the client sent it.
    pub model: Option<String>,
    /// The git branch: at its end if that is known, else at its start.
    pub branch: Option<String>,
    /// The prompts by number.
    pub prompts: Vec<StoredPrompt>,
    /// The tool events in order.
    pub events: Vec<StoredEvent>,
    /// The turn ends in order.
    pub turn_ends: Vec<StoredTurnEnd>,
    /// The tasks of subagents.
    pub delegations: Vec<StoredDelegation>,
    /// The observations.
    pub observations: Vec<Observation>,
    /// The summaries, one per maker.
    pub summaries: Vec<StoredSummary>,
    /// The jobs.
    pub jobs: Vec<StoredJob>,
    /// The notes injected into the session.
    pub shown: Vec<Given>,
}

impl Journal {
    /// Counts the sessions of a project, or all.
    pub fn count_sessions(&self, project: Option<&str>) -> Result<usize, Error> {
        self.value(
            "SELECT count(*) FROM session WHERE ?1 IS NULL OR project = ?1",
            [project],
        )
    }

    /// Counts the stored prompts of a session that no person wrote as text: commands and notifications.
    pub fn count_commands(&self, session: &str) -> Result<i64, Error> {
        self.value(
            "SELECT count(*) FROM prompt WHERE session = ? AND kind IN ('command', 'notification')",
            [session],
        )
    }

    /// Counts the sessions that still have prompts, tool events or turn ends.
    pub fn count_kept(&self) -> Result<usize, Error> {
        self.value(
            "SELECT count(*) FROM session WHERE
               EXISTS (SELECT 1 FROM prompt WHERE prompt.session = session.id)
               OR EXISTS (SELECT 1 FROM tool_event WHERE tool_event.session = session.id)
               OR EXISTS (SELECT 1 FROM turn_end WHERE turn_end.session = session.id)",
            [],
        )
    }

    /// Returns the shortest prefix of a session's id that is unique, with at least eight characters.
    pub fn short_session_id(&self, id: &str) -> Result<String, Error> {
        let sql = "SELECT (SELECT max(id) FROM session WHERE id < ?1), (SELECT min(id) FROM session WHERE id > ?1)";
        let (before, after): (Option<String>, Option<String>) = self.tuple(sql, [id])?;
        let shared = |other: &String| {
            let pairs = id.chars().zip(other.chars());
            pairs.take_while(|(one, other)| one == other).count()
        };
        let shared = before.iter().chain(&after).map(shared).max();
        let length = shared.map_or(SHORT, |shared| SHORT.max(shared + 1));
        Ok(id.chars().take(length).collect())
    }

    /// Returns everything stored of a session, in one snapshot; none for an unknown session.
    pub fn contents(&self, id: &str) -> Result<Option<Contents>, Error> {
        // The transaction only reads, so dropping it is enough.
        let _moment = self.connection.unchecked_transaction()?;
        let Some(session) = self.session(id)? else {
            return Ok(None);
        };
        let sql = "SELECT source, model, branch FROM session WHERE id = ?";
        let (source, model, branch) = self.tuple(sql, [id])?;
        Ok(Some(Contents {
            session,
            source,
            model,
            branch,
            prompts: self.prompts(id)?,
            events: self.tool_events_after(id, 0, "1", i64::MAX)?,
            turn_ends: self.turn_ends(id)?,
            delegations: self.delegations(id)?,
            observations: self.observations(id)?,
            summaries: self.summaries(id)?,
            jobs: self.jobs_of(id)?,
            shown: self.given(id)?,
        }))
    }

    /// Returns the prompts of a session by number.
    pub fn prompts(&self, session: &str) -> Result<Vec<StoredPrompt>, Error> {
        self.rows(
            "SELECT number, kind, privacy, text, suppressed, many_tags, at FROM prompt
                 WHERE session = ? ORDER BY number",
            [session],
            |row| {
                let (kind, privacy): (String, String) = (row.get("kind")?, row.get("privacy")?);
                read_row!(row, StoredPrompt: number, text, suppressed, many_tags, at;
                    kind = PromptKind::parse(&kind).unwrap_or(PromptKind::Person),
                    privacy = Privacy::parse(&privacy).unwrap_or(Privacy::Full))
            },
        )
    }

    /// Returns the last failed tool calls of a session, newest first.
    pub fn failed_tools(&self, session: &str, limit: usize) -> Result<Vec<FailedTool>, Error> {
        self.rows(
            "SELECT prompt, tool, error FROM tool_event
                 WHERE session = ? AND outcome = 'failed' ORDER BY number DESC LIMIT ?",
            params![session, bound(limit)],
            |row| read_row!(row, FailedTool: prompt, tool, error),
        )
    }

    fn turn_ends(&self, session: &str) -> Result<Vec<StoredTurnEnd>, Error> {
        // If the client does not name the prompt, it is the newest one at that time.
        self.rows("SELECT coalesce(
                   (SELECT prompt.number FROM prompt WHERE prompt.session = ?1 AND prompt.id = turn_end.prompt_id),
                   (SELECT max(prompt.number) FROM prompt WHERE prompt.session = ?1 AND turn_end.prompt_id = ''
                      AND prompt.at <= turn_end.at)) AS prompt,
             after_event, speaker, agent_id, agent_type, text, at
                 FROM turn_end WHERE session = ?1 ORDER BY number", [session], |row| {
                let (speaker, id): (String, String) = (row.get("speaker")?, row.get("agent_id")?);
                let kind = row.get("agent_type")?;
                read_row!(row, StoredTurnEnd: prompt, after_event, text, at;
                    speaker = Speaker::parse(&speaker).unwrap_or(Speaker::Main),
                    agent = (!id.is_empty()).then_some(Agent { id, kind }))
            })
    }

    fn delegations(&self, session: &str) -> Result<Vec<StoredDelegation>, Error> {
        self.rows(
            "SELECT id, kind, prompt, at FROM delegation
             WHERE session = ? AND kind NOT IN (?, ?) ORDER BY at, rowid",
            [session, TOOLS[0], TOOLS[1]],
            |row| read_row!(row, StoredDelegation: id, kind, prompt, at),
        )
    }

    fn summaries(&self, session: &str) -> Result<Vec<StoredSummary>, Error> {
        self.rows(
            "SELECT maker, up_to, body FROM summary WHERE session = ? ORDER BY maker",
            [session],
            |row| {
                let Json(summary) = row.get("body")?;
                read_row!(row, StoredSummary: maker, up_to; summary = summary)
            },
        )
    }

    fn jobs_of(&self, session: &str) -> Result<Vec<StoredJob>, Error> {
        self.rows(
            "SELECT kind, state, tries, error, at FROM job WHERE session = ? ORDER BY at, rowid",
            params![session],
            |row| read_row!(row, StoredJob: kind, state, tries, error, at),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::journal_with_session;

    #[test]
    fn a_short_id_is_as_long_as_it_has_to_be() {
        let (_folder, journal) = journal_with_session("5b0c8f1e-2f57");
        assert_eq!(
            journal.short_session_id("5b0c8f1e-2f57").unwrap(),
            "5b0c8f1e"
        );
        for id in ["5b0c8f1e-2e", "5b0c8f1e-2f5", "9"] {
            journal
                .connection
                .execute(
                    "INSERT INTO session (id, project, started_at, seen_at) VALUES (?, 'p', 0, 0)",
                    [id],
                )
                .unwrap();
        }
        for (id, short) in [
            ("5b0c8f1e-2f57", "5b0c8f1e-2f57"),
            ("5b0c8f1e-2f5", "5b0c8f1e-2f5"),
            ("5b0c8f1e-2e", "5b0c8f1e-2e"),
            ("9", "9"),
        ] {
            assert_eq!(journal.short_session_id(id).unwrap(), short);
        }
        // One id is a prefix of the other.
        let found = journal.sessions_named("5b0c8f1e-2f5").unwrap();
        assert_eq!(found[0].id, "5b0c8f1e-2f5");
    }

    #[test]
    fn an_unknown_session_has_no_contents() {
        let (_folder, journal) = journal_with_session("s");
        assert_eq!(journal.contents("other").unwrap(), None);
        assert_eq!(journal.contents("s").unwrap().unwrap().session.id, "s");
    }
}
