//! What the journal holds of a session, row by row, for a person to look at.

use anamnesis_session::{
    event::{Agent, Privacy, PromptKind, Speaker},
    observe::Observation,
    summary::Summary,
};
use rusqlite::params;

use super::{Error, Given, Journal, Session, StoredEvent};

/// How many characters of a session's id are shown, at least.
const SHORT: usize = 8;

/// A prompt as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPrompt {
    /// Its number in the session, from 1 on.
    pub number: i64,
    /// What it is.
    pub kind: PromptKind,
    /// How much of it was private, or was forgotten since.
    pub privacy: Privacy,
    /// Its text, if any is kept.
    pub text: Option<String>,
    /// How many events under it were not stored, or taken back.
    pub suppressed: i64,
    /// Whether it held more private regions than anybody writes by hand.
    pub many_tags: bool,
    /// When it was, milliseconds since 1970.
    pub at: i64,
}

/// The end of a turn as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredTurnEnd {
    /// The number of the prompt it answers; none where that is not known.
    pub prompt: Option<i64>,
    /// The number of the last tool event before it.
    pub after_event: i64,
    /// Whose words these are.
    pub speaker: Speaker,
    /// The subagent, if it was one.
    pub agent: Option<Agent>,
    /// The words, if there were any.
    pub text: Option<String>,
    /// When it was, milliseconds since 1970.
    pub at: i64,
}

/// A task that was given to a subagent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredDelegation {
    /// The client's id of the tool's run.
    pub id: String,
    /// The subagent's type.
    pub kind: String,
    /// The task.
    pub prompt: String,
    /// When it was, milliseconds since 1970.
    pub at: i64,
}

/// A summary as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredSummary {
    /// `rule`, or the model's name.
    pub maker: String,
    /// The number of the last prompt that it takes in.
    pub up_to: i64,
    /// What it says.
    pub summary: Summary,
}

/// A job as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredJob {
    /// What is to be done.
    pub kind: String,
    /// `queued`, `leased`, `done` or `failed`.
    pub state: String,
    /// How often it was tried.
    pub tries: i64,
    /// Why the last try failed.
    pub error: Option<String>,
    /// When its state last changed, milliseconds since 1970.
    pub at: i64,
}

/// All rows of a session.
#[derive(Debug, Clone, PartialEq)]
pub struct Contents {
    /// The session itself.
    pub session: Session,
    /// The client's word for how it began.
    pub source: Option<String>,
    /// The model, where the client said it.
    pub model: Option<String>,
    /// The branch that was checked out at its start.
    pub branch: Option<String>,
    /// The prompts by number.
    pub prompts: Vec<StoredPrompt>,
    /// The tool events in their order.
    pub events: Vec<StoredEvent>,
    /// The turn ends in their order.
    pub turn_ends: Vec<StoredTurnEnd>,
    /// The tasks of subagents.
    pub delegations: Vec<StoredDelegation>,
    /// What was observed.
    pub observations: Vec<Observation>,
    /// The summaries, of each maker one.
    pub summaries: Vec<StoredSummary>,
    /// What was or is to be done later.
    pub jobs: Vec<StoredJob>,
    /// What the session was given.
    pub shown: Vec<Given>,
}

impl Journal {
    /// How many sessions there are, of a project or of all.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn count_sessions(&self, project: Option<&str>) -> Result<usize, Error> {
        let count: i64 = self
            .connection
            .prepare_cached("SELECT count(*) FROM session WHERE ?1 IS NULL OR project = ?1")?
            .query_row([project], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// How many sessions still have raw records: prompts, tool events or turn ends.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn count_kept(&self) -> Result<usize, Error> {
        let count: i64 = self
            .connection
            .prepare_cached(
                "SELECT count(*) FROM session WHERE
                   EXISTS (SELECT 1 FROM prompt WHERE prompt.session = session.id)
                   OR EXISTS (SELECT 1 FROM tool_event WHERE tool_event.session = session.id)
                   OR EXISTS (SELECT 1 FROM turn_end WHERE turn_end.session = session.id)",
            )?
            .query_row([], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// The beginning of a session's id that no other one has; at least eight characters.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn short_session_id(&self, id: &str) -> Result<String, Error> {
        let neighbours: [Option<String>; 2] = self
            .connection
            .prepare_cached(
                "SELECT (SELECT max(id) FROM session WHERE id < ?1), (SELECT min(id) FROM session WHERE id > ?1)",
            )?
            .query_row([id], |row| Ok([row.get(0)?, row.get(1)?]))?;
        let shared = |other: &String| {
            let pairs = id.chars().zip(other.chars());
            pairs.take_while(|(one, other)| one == other).count()
        };
        let shared = neighbours.iter().flatten().map(shared).max();
        let length = shared.map_or(SHORT, |shared| SHORT.max(shared + 1));
        Ok(id.chars().take(length).collect())
    }

    /// Everything that is kept of a session, as of one moment; none for an unknown session.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn contents(&self, id: &str) -> Result<Option<Contents>, Error> {
        // Ends without a trace when it is dropped.
        let _moment = self.connection.unchecked_transaction()?;
        let Some(session) = self.session(id)? else {
            return Ok(None);
        };
        let (source, model, branch) = self
            .connection
            .prepare_cached("SELECT source, model, branch FROM session WHERE id = ?")?
            .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
        Ok(Some(Contents {
            session,
            source,
            model,
            branch,
            prompts: self.prompts(id)?,
            events: self.tool_events_after(id, 0, false, i64::MAX)?,
            turn_ends: self.turn_ends(id)?,
            delegations: self.delegations(id)?,
            observations: self.observations(id)?,
            summaries: self.summaries(id)?,
            jobs: self.jobs_of(id)?,
            shown: self.given(id)?,
        }))
    }

    /// The prompts of a session by number.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn prompts(&self, session: &str) -> Result<Vec<StoredPrompt>, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT number, kind, privacy, text, suppressed, many_tags, at FROM prompt
                 WHERE session = ? ORDER BY number",
            )?
            .query_map([session], |row| {
                let kind: String = row.get(1)?;
                let privacy: String = row.get(2)?;
                Ok(StoredPrompt {
                    number: row.get(0)?,
                    kind: PromptKind::parse(&kind).unwrap_or(PromptKind::Person),
                    privacy: Privacy::parse(&privacy).unwrap_or(Privacy::Full),
                    text: row.get(3)?,
                    suppressed: row.get(4)?,
                    many_tags: row.get(5)?,
                    at: row.get(6)?,
                })
            })?
            .collect::<Result<_, _>>()?)
    }

    fn turn_ends(&self, session: &str) -> Result<Vec<StoredTurnEnd>, Error> {
        // Where the client does not say which prompt it was, it was the newest at that time.
        Ok(self
            .connection
            .prepare_cached(
                "SELECT coalesce(
                   (SELECT prompt.number FROM prompt WHERE prompt.session = ?1 AND prompt.id = turn_end.prompt_id),
                   (SELECT max(prompt.number) FROM prompt WHERE prompt.session = ?1 AND turn_end.prompt_id = ''
                      AND prompt.at <= turn_end.at)),
                   after_event, speaker, agent_id, agent_type, text, at
                 FROM turn_end WHERE session = ?1 ORDER BY number",
            )?
            .query_map([session], |row| {
                let speaker: String = row.get(2)?;
                let agent: String = row.get(3)?;
                let kind: String = row.get(4)?;
                Ok(StoredTurnEnd {
                    prompt: row.get(0)?,
                    after_event: row.get(1)?,
                    speaker: Speaker::parse(&speaker).unwrap_or(Speaker::Main),
                    agent: (!agent.is_empty()).then_some(Agent { id: agent, kind }),
                    text: row.get(5)?,
                    at: row.get(6)?,
                })
            })?
            .collect::<Result<_, _>>()?)
    }

    fn delegations(&self, session: &str) -> Result<Vec<StoredDelegation>, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT id, kind, prompt, at FROM delegation WHERE session = ? ORDER BY at, rowid",
            )?
            .query_map([session], |row| {
                Ok(StoredDelegation {
                    id: row.get(0)?,
                    kind: row.get(1)?,
                    prompt: row.get(2)?,
                    at: row.get(3)?,
                })
            })?
            .collect::<Result<_, _>>()?)
    }

    fn summaries(&self, session: &str) -> Result<Vec<StoredSummary>, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT maker, up_to, body FROM summary WHERE session = ? ORDER BY maker",
            )?
            .query_map([session], |row| {
                let body: String = row.get(2)?;
                Ok(StoredSummary {
                    maker: row.get(0)?,
                    up_to: row.get(1)?,
                    summary: serde_json::from_str(&body).unwrap_or_default(),
                })
            })?
            .collect::<Result<_, _>>()?)
    }

    fn jobs_of(&self, session: &str) -> Result<Vec<StoredJob>, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT kind, state, tries, error, at FROM job WHERE session = ? ORDER BY at, rowid",
            )?
            .query_map(params![session], |row| {
                Ok(StoredJob {
                    kind: row.get(0)?,
                    state: row.get(1)?,
                    tries: row.get(2)?,
                    error: row.get(3)?,
                    at: row.get(4)?,
                })
            })?
            .collect::<Result<_, _>>()?)
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
        // The whole id of one is the beginning of another.
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
