//! How shown notes were used: uses by turn, and the receipts made from them.
//!
//! Shown and used notes are counted in the transaction that adds them to a receipt, so each counts
//! once even if the process is killed. A receipt for other machines is stored here with its key until
//! it is in its file; appending it twice changes nothing. A receipt that stays on this machine is
//! kept as long as its session.

use std::collections::BTreeMap;

use anamnesis_note::{
    id::NoteId,
    usage_log::{LocalReceipt, Receipt, Usage, Weight},
};
use anamnesis_session::event::{Privacy, PromptKind, ToolInput};
use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension, params};

use super::{Error, Held, INHERITED, Journal, SUGGESTION};

/// The number of tool events of a turn that are examined, the last ones.
const MAX_EVENTS: i64 = 200;

/// The last turn of a context, without private parts.
#[derive(Debug, Clone, PartialEq)]
pub struct LastTurn {
    /// The number of the prompt.
    pub number: u32,
    /// The prompt; none if no person typed it.
    pub prompt: Option<String>,
    /// The tool calls, in order.
    pub events: Vec<TurnEvent>,
}

/// A tool call in a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEvent {
    /// The tool's name.
    pub tool: String,
    /// Its arguments, if they are stored.
    pub input: Option<ToolInput>,
    /// Its time, milliseconds since 1970.
    pub at: i64,
}

/// A report on injected notes, for a person.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of prompts of a person.
    pub prompts: usize,
    /// The number of prompts with a search for notes.
    pub asked: usize,
    /// The number of searches that injected nothing.
    pub silent: usize,
    /// The number of notes injected at prompts.
    pub given: usize,
    /// The number of withheld notes by reason.
    pub held: BTreeMap<String, usize>,
    /// The injected notes.
    pub notes: BTreeMap<NoteId, NoteReport>,
}

/// How often a note was injected and used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoteReport {
    /// The number of injections.
    pub injections: usize,
    /// The number of sessions in which it was injected.
    pub sessions: usize,
    /// The number of sessions in which it was used.
    pub used: usize,
}

impl Journal {
    /// Returns what a session or subagent did since the last prompt; nothing if the prompt is
    /// private.
    pub fn last_turn(&self, session: &str, agent: &str) -> Result<Option<LastTurn>, Error> {
        let prompt = self
            .connection
            .prepare_cached(
                "SELECT number, text, privacy, at FROM prompt WHERE session = ? ORDER BY number DESC LIMIT 1",
            )?
            .query_row([session], |row| {
                let privacy: String = row.get(2)?;
                Ok((row.get::<_, u32>(0)?, row.get(1)?, privacy, row.get::<_, i64>(3)?))
            })
            .optional()?;
        let Some((number, prompt, privacy, at)) = prompt else {
            return Ok(None);
        };
        if privacy == Privacy::Full.as_str() {
            return Ok(None);
        }
        let mut events: Vec<TurnEvent> = self
            .connection
            .prepare_cached(
                "SELECT tool, input, at FROM tool_event
                 WHERE session = ?1 AND coalesce(agent_id, '') = ?2 AND at >= ?3
                   AND (prompt = ?5 OR prompt IS NULL) AND number >
                   (SELECT coalesce(max(after_event), 0) FROM turn_end
                    WHERE session = ?1 AND speaker = 'main' AND at < ?3)
                 ORDER BY number DESC LIMIT ?4",
            )?
            .query_map(params![session, agent, at, MAX_EVENTS, number], |row| {
                let input: Option<String> = row.get(1)?;
                Ok(TurnEvent {
                    tool: row.get(0)?,
                    input: input.and_then(|text| serde_json::from_str(&text).ok()),
                    at: row.get(2)?,
                })
            })?
            .collect::<Result<_, _>>()?;
        events.reverse();
        Ok(Some(LastTurn {
            number,
            prompt,
            events,
        }))
    }

    /// Returns the last prompts of a session, newest first; empty texts for those that are not stored.
    pub fn last_prompts(&self, session: &str, limit: usize) -> Result<Vec<String>, Error> {
        Ok(self
            .connection
            .prepare(
                "SELECT coalesce(text, '') FROM prompt WHERE session = ? ORDER BY number DESC LIMIT ?",
            )?
            .query_map(params![session, i64::try_from(limit).unwrap_or(i64::MAX)], |row| row.get(0))?
            .collect::<Result<_, _>>()?)
    }

    /// Records that a context used notes in a turn. Of two records on one note, the more certain one
    /// counts.
    pub fn used(
        &self,
        session: &str,
        agent: &str,
        turn: u32,
        uses: &[(NoteId, Weight)],
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let mut statement = self.connection.prepare_cached(
            "INSERT INTO use (session, agent, turn, note, is_certain, at) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT (session, agent, turn, note) DO UPDATE SET is_certain = 1, is_counted = 0
               WHERE excluded.is_certain > is_certain",
        )?;
        for (note, weight) in uses {
            statement.execute(params![
                session,
                agent,
                turn,
                note.to_string(),
                *weight == Weight::Explicit,
                now.timestamp_millis(),
            ])?;
        }
        Ok(())
    }

    /// Returns the notes that a session used, each with the number of the prompt.
    pub fn used_in(&self, session: &str) -> Result<Vec<(i64, String)>, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT DISTINCT turn, note FROM use WHERE session = ? ORDER BY turn, note",
            )?
            .query_map([session], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?)
    }

    /// Adds what a session was shown and used, and is not counted yet, to the receipts that `part`
    /// makes from it. Returns whether there was anything.
    pub fn count_usage(
        &self,
        session: &str,
        part: impl FnOnce(&Usage) -> (Receipt, LocalReceipt),
    ) -> Result<bool, Error> {
        if !self.has_uncounted(session)? {
            return Ok(false);
        }
        self.in_transaction(|journal| {
            let usage = journal.uncounted(session)?;
            let (told, kept) = part(&usage);
            journal.keep_receipts(Some(session), &told, &kept)?;
            for statement in [
                "UPDATE shown SET is_counted = 1 WHERE session = ? AND is_counted = 0",
                "UPDATE use SET is_counted = 1 WHERE session = ? AND is_counted = 0",
            ] {
                journal.connection.execute(statement, [session])?;
            }
            Ok(true)
        })
    }

    /// Stores receipts for other machines until they are in their file, and those of this machine
    /// permanently.
    pub fn keep_receipts(
        &self,
        session: Option<&str>,
        told: &Receipt,
        kept: &LocalReceipt,
    ) -> Result<(), Error> {
        let told = (!told.is_empty()).then(|| (told.key(), told.to_lines().concat(), false));
        let kept = (!kept.is_empty()).then(|| (kept.key(), kept.to_text(), true));
        let mut statement = self
            .connection
            .prepare_cached("INSERT OR IGNORE INTO receipt VALUES (?, ?, ?, ?)")?;
        for (key, text, is_kept) in told.into_iter().chain(kept) {
            statement.execute(params![key.to_string(), session, text, is_kept])?;
        }
        Ok(())
    }

    fn has_uncounted(&self, session: &str) -> Result<bool, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT EXISTS (SELECT 1 FROM shown WHERE session = ?1 AND is_counted = 0)
                   OR EXISTS (SELECT 1 FROM use WHERE session = ?1 AND is_counted = 0)",
            )?
            .query_row([session], |row| row.get(0))?)
    }

    fn uncounted(&self, session: &str) -> Result<Usage, Error> {
        let shown: Vec<String> = self
            .connection
            .prepare_cached(
                "SELECT DISTINCT note FROM shown
                 WHERE session = ? AND is_counted = 0 AND lane NOT IN (?, ?)",
            )?
            .query_map([session, SUGGESTION, INHERITED], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let mut usage = Usage {
            shown: shown.iter().filter_map(|note| note.parse().ok()).collect(),
            ..Usage::default()
        };
        let mut statement = self.connection.prepare_cached(
            "SELECT turn, note, max(is_certain) FROM use WHERE session = ? AND is_counted = 0
             GROUP BY turn, note",
        )?;
        let mut rows = statement.query([session])?;
        while let Some(row) = rows.next()? {
            let Ok(note) = row.get::<_, String>(1)?.parse() else {
                continue;
            };
            let weight = if row.get(2)? {
                Weight::Explicit
            } else {
                Weight::Implicit
            };
            usage.used.insert((row.get(0)?, note), weight);
        }
        Ok(usage)
    }

    /// Returns the ended sessions with uncounted notes.
    pub fn uncounted_sessions(&self) -> Result<Vec<String>, Error> {
        Ok(self
            .connection
            .prepare(
                "SELECT id FROM session WHERE state = 'completed' AND (
                   EXISTS (SELECT 1 FROM shown WHERE session = session.id AND is_counted = 0)
                   OR EXISTS (SELECT 1 FROM use WHERE session = session.id AND is_counted = 0))
                 ORDER BY id",
            )?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?)
    }

    /// Returns the receipts that are not in their file yet, each with its key in the journal.
    pub fn waiting_receipts(&self) -> Result<Vec<(String, Vec<Receipt>)>, Error> {
        let rows: Vec<(String, String)> = self
            .connection
            .prepare_cached("SELECT key, text FROM receipt WHERE is_kept = 0 ORDER BY key")?
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect::<Result<_, _>>()?;
        let receipts = |text: &str| {
            let lines = text.lines();
            lines
                .filter_map(|line| Receipt::parse_line(line.as_bytes()).ok())
                .collect()
        };
        Ok(rows
            .into_iter()
            .map(|(key, text)| (key, receipts(&text)))
            .collect())
    }

    /// Records that a receipt is in its file, or stays on this machine and is kept here.
    pub fn receipt_settled(&self, key: &str, is_told: bool) -> Result<(), Error> {
        let statement = if is_told {
            "DELETE FROM receipt WHERE key = ?"
        } else {
            "UPDATE receipt SET is_kept = 1 WHERE key = ?"
        };
        self.connection.execute(statement, [key])?;
        Ok(())
    }

    /// Returns the receipts that stay on this machine.
    pub fn kept_receipts(&self) -> Result<Vec<LocalReceipt>, Error> {
        let texts: Vec<String> = self
            .connection
            .prepare("SELECT text FROM receipt WHERE is_kept = 1 ORDER BY key")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        let kept = texts
            .iter()
            .filter_map(|text| LocalReceipt::parse(text).ok());
        Ok(kept.flatten().collect())
    }

    /// Returns a value that changes whenever the kept receipts do. They are never rewritten.
    pub fn kept_stamp(&self) -> Result<String, Error> {
        Ok(self.connection.query_row(
            "SELECT count(*) || ' ' || coalesce(max(key), '') FROM receipt WHERE is_kept = 1",
            [],
            |row| row.get(0),
        )?)
    }

    /// Returns the session into which a note was injected last.
    pub fn last_session_given(&self, note: NoteId) -> Result<Option<String>, Error> {
        Ok(self
            .connection
            .query_row(
                "SELECT session FROM shown WHERE note = ? ORDER BY at DESC, session DESC LIMIT 1",
                [note.to_string()],
                |row| row.get(0),
            )
            .optional()?)
    }

    /// Returns the report since a time, milliseconds since 1970, about the sessions of these
    /// projects; without any, about all sessions.
    pub fn usage_report(&self, since: i64, projects: &[String]) -> Result<Report, Error> {
        let number = |count: i64| usize::try_from(count).unwrap_or(0);
        let connection = &self.connection;
        let is_chosen = "at >= ?1 AND (?2 = '[]' OR session IN
          (SELECT id FROM session WHERE project IN (SELECT value FROM json_each(?2))))";
        let projects = serde_json::json!(projects).to_string();
        let prompts = connection.query_row(
            &format!("SELECT count(*) FROM prompt WHERE {is_chosen} AND kind = ?3"),
            params![since, projects, PromptKind::Person.as_str()],
            |row| row.get(0),
        )?;
        let (asked, silent, given) = connection.query_row(
            &format!(
                "SELECT count(*), count(*) FILTER (WHERE given = 0), coalesce(sum(given), 0)
                 FROM recall WHERE {is_chosen} AND lane = 'prompt'"
            ),
            params![since, projects],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let mut report = Report {
            prompts: number(prompts),
            asked: number(asked),
            silent: number(silent),
            given: number(given),
            ..Report::default()
        };
        let mut statement = connection.prepare(&format!(
            "SELECT held FROM recall WHERE {is_chosen} AND held <> '[]'"
        ))?;
        let mut rows = statement.query(params![since, projects])?;
        while let Some(row) = rows.next()? {
            let held: String = row.get(0)?;
            let held: Vec<Held> = serde_json::from_str(&held).unwrap_or_default();
            for held in held {
                *report.held.entry(held.reason).or_default() += 1;
            }
        }
        let mut statement = connection.prepare(&format!(
            "SELECT note, session, EXISTS (SELECT 1 FROM use WHERE use.session = shown.session
               AND use.note = shown.note), count(*) FROM shown WHERE {is_chosen} GROUP BY note, session"
        ))?;
        let mut rows = statement.query(params![since, projects])?;
        while let Some(row) = rows.next()? {
            let Ok(note) = row.get::<_, String>(0)?.parse() else {
                continue;
            };
            let counts = report.notes.entry(note).or_default();
            counts.injections += number(row.get(3)?);
            counts.sessions += 1;
            counts.used += usize::from(row.get::<_, bool>(2)?);
        }
        Ok(report)
    }

    /// Returns the searches at prompts by day since a time: how many there were, and how many of
    /// them injected nothing. Days count from 1970.
    pub fn searches_by_day(&self, since: i64) -> Result<BTreeMap<i64, (i64, i64)>, Error> {
        let mut statement = self.connection.prepare(
            "SELECT at / 86400000, count(*), count(*) FILTER (WHERE given = 0)
             FROM recall WHERE at >= ? AND lane = 'prompt' GROUP BY 1",
        )?;
        let rows =
            statement.query_map([since], |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::Scope;
    use anamnesis_text::hash::text_hash;

    use super::{
        super::{Audience, ShownNote, tests::journal_with_session},
        *,
    };

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn note(number: u32) -> NoteId {
        NoteId::of_session(&number.to_string())
    }

    fn show(journal: &Journal, notes: &[NoteId]) {
        let shown: Vec<ShownNote> = notes
            .iter()
            .map(|note| ShownNote {
                note: *note,
                hash: text_hash(""),
                level: "body",
                reason: "recent",
                evidence: None,
            })
            .collect();
        let to = Audience {
            session: "s",
            agent: "",
            lane: "start",
        };
        journal.was_shown(to, &shown, now()).unwrap();
    }

    /// Note 9 stays on this machine.
    fn part(usage: &Usage) -> (Receipt, LocalReceipt) {
        usage.part(None, None, now(), |id| {
            Some(if id == note(9) {
                Scope::MachineLocal
            } else {
                Scope::Portable
            })
        })
    }

    fn told(journal: &Journal) -> Vec<Receipt> {
        let waiting = journal.waiting_receipts().unwrap();
        waiting
            .into_iter()
            .flat_map(|(_, receipts)| receipts)
            .collect()
    }

    #[test]
    fn everything_is_counted_once() {
        let (_folder, journal) = journal_with_session("s");
        assert!(!journal.count_usage("s", part).unwrap());
        show(&journal, &[note(1), note(9)]);
        journal
            .used("s", "", 1, &[(note(1), Weight::Implicit)], now())
            .unwrap();
        assert!(journal.count_usage("s", part).unwrap());
        assert!(!journal.count_usage("s", part).unwrap());
        let receipts = told(&journal);
        assert_eq!((receipts.len(), receipts[0].shown.len()), (1, 1));
        assert_eq!(receipts[0].used[0].weight, Weight::Implicit);
        assert_eq!(journal.kept_receipts().unwrap().len(), 1);
        // After a kill before the append, the same receipt is pending.
        assert_eq!(told(&journal), receipts);
        let key = receipts[0].key().to_string();
        journal.receipt_settled(&key, true).unwrap();
        assert_eq!(told(&journal), []);
        // A more certain record of the same use counts; a less certain one does not.
        journal
            .used("s", "", 1, &[(note(1), Weight::Explicit)], now())
            .unwrap();
        assert!(journal.count_usage("s", part).unwrap());
        assert_eq!(told(&journal)[0].used[0].weight, Weight::Explicit);
        journal
            .used("s", "", 1, &[(note(1), Weight::Implicit)], now())
            .unwrap();
        assert!(!journal.count_usage("s", part).unwrap());
    }

    #[test]
    fn a_subagent_counts_for_its_session_once() {
        let (_folder, journal) = journal_with_session("s");
        for agent in ["", "a", "b"] {
            journal
                .used("s", agent, 2, &[(note(1), Weight::Explicit)], now())
                .unwrap();
        }
        journal.count_usage("s", part).unwrap();
        assert_eq!(told(&journal)[0].used.len(), 1);
    }

    #[test]
    fn what_nobody_is_to_be_told_stays() {
        let (_folder, journal) = journal_with_session("s");
        show(&journal, &[note(1)]);
        journal.count_usage("s", part).unwrap();
        let before = journal.kept_stamp().unwrap();
        let key = told(&journal)[0].key().to_string();
        journal.receipt_settled(&key, false).unwrap();
        assert_eq!(told(&journal), []);
        assert_eq!(journal.kept_receipts().unwrap().len(), 1);
        assert_ne!(journal.kept_stamp().unwrap(), before);
        // It is deleted with its session.
        journal.forget_session("s").unwrap();
        assert_eq!(journal.kept_receipts().unwrap(), []);
        assert_eq!(journal.kept_stamp().unwrap(), before);
    }

    #[test]
    fn a_report_tells_shares() {
        let (_folder, journal) = journal_with_session("s");
        show(&journal, &[note(1), note(2)]);
        show(&journal, &[note(1)]);
        journal
            .used("s", "", 1, &[(note(1), Weight::Implicit)], now())
            .unwrap();
        let at = now().timestamp_millis();
        let report = journal.usage_report(at, &[]).unwrap();
        let counts = |injections, used| NoteReport {
            injections,
            sessions: 1,
            used,
        };
        assert_eq!(
            report.notes,
            [(note(1), counts(2, 1)), (note(2), counts(1, 0))].into()
        );
        let of = |key: &str| journal.usage_report(at, &[key.to_owned()]).unwrap();
        assert_eq!(of(&journal.session("s").unwrap().unwrap().project), report);
        assert_eq!(of("another project"), Report::default());
        assert_eq!(
            journal.usage_report(at + 1, &[]).unwrap(),
            Report::default()
        );
        assert_eq!(
            journal.last_session_given(note(2)).unwrap().as_deref(),
            Some("s")
        );
    }
}
