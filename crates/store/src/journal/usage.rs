//! What was made of the notes that were shown: uses by turn, and the receipts that come of them.
//!
//! What a session was shown and what it used are counted in the transaction that puts them into a
//! receipt, so each counts once whenever the process is killed. A receipt that other machines are
//! told waits here, with its key, until it stands in its file; appending it twice changes nothing. One
//! that stays on this machine is kept here for as long as its session is known.

use std::collections::BTreeMap;

use anamnesis_note::{
    id::NoteId,
    usage_log::{LocalReceipt, Receipt, Usage, Weight},
};
use anamnesis_session::event::{Privacy, PromptKind};
use chrono::{DateTime, Utc};
use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::{Error, Held, Journal};

/// How many tool events of a turn are looked at, the last ones.
const MAX_EVENTS: i64 = 200;

/// What a context did last, as far as it may be looked at.
#[derive(Debug, Clone, PartialEq)]
pub struct LastTurn {
    /// The number of the prompt.
    pub number: u32,
    /// The prompt; none where nobody typed one.
    pub prompt: Option<String>,
    /// The tools that ran, in their order.
    pub events: Vec<TurnEvent>,
}

/// A tool that ran in a turn.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnEvent {
    /// Its name.
    pub tool: String,
    /// What it was given; null where that is not kept.
    pub input: Value,
    /// When it was, milliseconds since 1970.
    pub at: i64,
}

/// What became of what was given, for a person to look at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Report {
    /// Prompts of a person.
    pub prompts: usize,
    /// Prompts at which notes were looked for.
    pub asked: usize,
    /// Those of them at which none was given.
    pub silent: usize,
    /// Notes that were given at prompts.
    pub given: usize,
    /// What was held back, how often for each reason.
    pub held: BTreeMap<String, usize>,
    /// For each note in how many sessions it was given, and in how many of them it was used.
    pub notes: BTreeMap<NoteId, (usize, usize)>,
}

impl Journal {
    /// What happened since the last prompt in the session's own context, or in that of a subagent;
    /// nothing where the prompt is private.
    ///
    /// # Errors
    /// When SQLite refuses.
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
                    input: input
                        .and_then(|text| serde_json::from_str(&text).ok())
                        .unwrap_or_default(),
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

    /// Takes note that a context used notes in a turn. The surer of two words on one counts.
    ///
    /// # Errors
    /// When SQLite refuses.
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

    /// Puts what a session was shown and what it used, so far as it is not counted yet, into the
    /// receipts that `part` makes of it. Tells whether there was anything.
    ///
    /// # Errors
    /// When SQLite refuses; then nothing is counted.
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

    /// Keeps what is to be told until it stands in its file, and what is not for good.
    ///
    /// # Errors
    /// When SQLite refuses.
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
            .prepare_cached("SELECT DISTINCT note FROM shown WHERE session = ? AND is_counted = 0")?
            .query_map([session], |row| row.get(0))?
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

    /// The sessions that are over and of which something is not counted yet.
    ///
    /// # Errors
    /// When SQLite refuses.
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

    /// The receipts that wait to be written to their file, each with the key it is known by here.
    ///
    /// # Errors
    /// When SQLite refuses.
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

    /// A receipt stands in its file, or nobody is to be told of it: then it is kept here.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn receipt_settled(&self, key: &str, is_told: bool) -> Result<(), Error> {
        let statement = if is_told {
            "DELETE FROM receipt WHERE key = ?"
        } else {
            "UPDATE receipt SET is_kept = 1 WHERE key = ?"
        };
        self.connection.execute(statement, [key])?;
        Ok(())
    }

    /// The receipts that stay on this machine.
    ///
    /// # Errors
    /// When SQLite refuses.
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

    /// Changes whenever what is kept does: nothing of it is ever rewritten.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn kept_stamp(&self) -> Result<String, Error> {
        Ok(self.connection.query_row(
            "SELECT count(*) || ' ' || coalesce(max(key), '') FROM receipt WHERE is_kept = 1",
            [],
            |row| row.get(0),
        )?)
    }

    /// The session that was last given a note.
    ///
    /// # Errors
    /// When SQLite refuses.
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

    /// What became of what was given since a time, milliseconds since 1970.
    ///
    /// # Errors
    /// When SQLite refuses.
    pub fn usage_report(&self, since: i64) -> Result<Report, Error> {
        let number = |count: i64| usize::try_from(count).unwrap_or(0);
        let connection = &self.connection;
        let prompts = connection.query_row(
            "SELECT count(*) FROM prompt WHERE at >= ? AND kind = ?",
            params![since, PromptKind::Person.as_str()],
            |row| row.get(0),
        )?;
        let (asked, silent, given) = connection.query_row(
            "SELECT count(*), count(*) FILTER (WHERE given = 0), coalesce(sum(given), 0)
             FROM recall WHERE at >= ? AND lane = 'prompt'",
            [since],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )?;
        let mut report = Report {
            prompts: number(prompts),
            asked: number(asked),
            silent: number(silent),
            given: number(given),
            ..Report::default()
        };
        let mut statement =
            connection.prepare("SELECT held FROM recall WHERE at >= ? AND held <> '[]'")?;
        let mut rows = statement.query([since])?;
        while let Some(row) = rows.next()? {
            let held: String = row.get(0)?;
            let held: Vec<Held> = serde_json::from_str(&held).unwrap_or_default();
            for held in held {
                *report.held.entry(held.reason).or_default() += 1;
            }
        }
        let mut statement = connection.prepare(
            "SELECT note, session, EXISTS (SELECT 1 FROM use WHERE use.session = shown.session
               AND use.note = shown.note) FROM shown WHERE at >= ? GROUP BY note, session",
        )?;
        let mut rows = statement.query([since])?;
        while let Some(row) = rows.next()? {
            let Ok(note) = row.get::<_, String>(0)?.parse() else {
                continue;
            };
            let counts = report.notes.entry(note).or_default();
            counts.0 += 1;
            counts.1 += usize::from(row.get::<_, bool>(2)?);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::Scope;
    use anamnesis_text::hash::text_hash;

    use super::{
        super::{Audience, Shown, tests::journal_with_session},
        *,
    };

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn note(number: u32) -> NoteId {
        NoteId::of_session(&number.to_string())
    }

    fn show(journal: &Journal, notes: &[NoteId]) {
        let shown: Vec<Shown> = notes
            .iter()
            .map(|note| Shown {
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
        // Killed before it was told: the same receipt waits.
        assert_eq!(told(&journal), receipts);
        let key = receipts[0].key().to_string();
        journal.receipt_settled(&key, true).unwrap();
        assert_eq!(told(&journal), []);
        // A surer word on the same use counts; a less sure one does not.
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
        // It goes with its session.
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
        let report = journal.usage_report(at).unwrap();
        assert_eq!(report.notes, [(note(1), (1, 1)), (note(2), (1, 0))].into());
        assert_eq!(journal.usage_report(at + 1).unwrap(), Report::default());
        assert_eq!(
            journal.last_session_given(note(2)).unwrap().as_deref(),
            Some("s")
        );
    }
}
