//! The recall ledger: which notes each context got, which were withheld, and why.
//!
//! Rows are written when the notes are printed, so explanations read what happened. Of a prompt, only
//! words that a note shares are stored.

use std::collections::{BTreeSet, HashMap};

use anamnesis_note::id::NoteId;
use anamnesis_session::{event::SessionEvent, transcript::scheduled::TOOLS};
use chrono::{DateTime, Utc};
use rusqlite::params;
use serde::{Deserialize, Serialize};

use super::{Error, Journal};
use crate::sqlite::{Json, Queries, read_row};

/// How long a process id counts as that of the same client if its start time is unknown, in milliseconds.
const REUSED: i64 = 24 * 60 * 60 * 1000;

/// Why a note matched.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Evidence {
    /// The words that it shares with the query, as typed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub matched: Vec<String>,
    /// Its score; the run's threshold applies to it.
    pub score: f64,
    /// The share of the query's words that it has, weighted by rarity.
    pub coverage: f64,
    /// The note whose link led to it, and the relation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub via: Option<(String, String)>,
    /// The cosine of its vector and the prompt's, if they were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub similarity: Option<f64>,
}

/// A withheld note and the reason.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Held {
    /// The note.
    pub note: String,
    /// Why it was withheld.
    pub reason: String,
    /// Why it matched.
    pub evidence: Evidence,
}

/// The reason of a run whose prompt got no vector in time, so that words alone counted. It follows the
/// reason for a silence.
pub const WITHOUT_MEANING: &str = "meaning: no time";

/// One run of recall.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The occasion: `prompt`, `agent`, `tool` or `failure`.
    pub lane: String,
    /// The subagent; empty for the session's own context.
    pub agent: String,
    /// The time, milliseconds since 1970.
    pub at: i64,
    /// The number of query words that were searched for.
    pub terms: usize,
    /// The number of notes that were searched.
    pub searched: usize,
    /// The least score of an injected note.
    pub floor: f64,
    /// The number of injected notes.
    pub given: usize,
    /// Why nothing was injected, and [`WITHOUT_MEANING`]; empty if neither applies.
    pub reason: String,
    /// The withheld notes, best first.
    pub held: Vec<Held>,
}

/// A note that is in a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Seen {
    /// SHA-256 of its body at that time.
    pub hash: String,
    /// Whether more than its title was shown.
    pub with_text: bool,
    /// Whether only a session's start showed it, and not its whole text. A prompt that it matches wants
    /// other lines.
    pub is_excerpt_of_start: bool,
}

/// The notes that a context has seen since it was last empty, by note.
pub type Ledger = HashMap<NoteId, Seen>;

/// The warnings of a session.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Warned {
    /// The warnings in the context since it was last empty.
    pub given: BTreeSet<NoteId>,
    /// The warnings that blocked a call in the session.
    pub stopped: BTreeSet<NoteId>,
    /// The number of warnings since the last prompt.
    pub in_turn: usize,
}

/// The lane of warnings.
pub const WARNING: &str = "tool";
/// The lane of what a forked session has in its history. It is not injected, so it is not counted.
pub const INHERITED: &str = "inherited";
/// The level of injected observations. Their `hash` is that of the observation's title.
pub const OBSERVATION: &str = "observation";
/// The lane and level of suggestions to keep a sentence. Their `hash` is that of the sentence.
pub const SUGGESTION: &str = "suggestion";
/// The lane and level of commits. Their `hash` is the commit's id.
pub const COMMIT: &str = "commit";
/// The lane of pointers at a file.
pub const FILE: &str = "file";
/// The level of notes that only a pointer leads to. They are not counted as injected.
pub const POINTER: &str = "pointer";
/// The reason of warnings that blocked a call.
pub const STOPPED: &str = "stopped a call that it warns of";

/// An injected note and the reasons.
#[derive(Debug, Clone, PartialEq)]
pub struct Given {
    /// The note's id.
    pub note: String,
    /// SHA-256 of its body at that time, or what [`COMMIT`], [`OBSERVATION`] and [`SUGGESTION`] say.
    pub hash: String,
    /// The occasion.
    pub lane: String,
    /// How much of it: `body`, `part`, `heading`, `name` or `pointer`; else [`COMMIT`], [`OBSERVATION`] or
    /// [`SUGGESTION`].
    pub level: String,
    /// Why it was chosen, in words.
    pub reason: String,
    /// The subagent; empty for the session's own context.
    pub agent: String,
    /// The time, milliseconds since 1970.
    pub at: i64,
    /// Why it matched, if it was searched for.
    pub evidence: Option<Evidence>,
}

impl Given {
    /// Returns whether text of the note itself was injected.
    pub fn is_of_note(&self) -> bool {
        ![COMMIT, OBSERVATION, SUGGESTION].contains(&self.level.as_str())
    }
}

impl Run {
    /// Returns whether its prompt got no vector in time.
    pub fn is_without_meaning(&self) -> bool {
        self.reason.ends_with(WITHOUT_MEANING)
    }
}

impl Journal {
    /// Records that the session's context is empty, so that notes may be injected again.
    pub fn context_emptied(&self, session: &str) -> Result<(), Error> {
        self.run(
            "UPDATE session SET epoch = epoch + 1 WHERE id = ?",
            [session],
        )
    }

    /// Returns the notes that a context has seen since it was last empty; `agent` is empty for the
    /// session's own.
    pub fn ledger(&self, session: &str, agent: &str) -> Result<Ledger, Error> {
        let sql = "SELECT note, hash, level, lane = 'start' AND level <> 'body' FROM shown WHERE session = ?1 AND agent = ?2 AND lane NOT IN (?3, ?4)
               AND epoch = coalesce((SELECT epoch FROM session WHERE id = ?1), 0)
             ORDER BY at, position";
        let mut ledger = Ledger::new();
        self.each(sql, [session, agent, SUGGESTION, COMMIT], |row| {
            let Ok(note) = row.get::<_, String>(0)?.parse() else {
                return Ok(());
            };
            let seen = Seen {
                hash: row.get(1)?,
                with_text: matches!(row.get_ref(2)?.as_str(), Ok("body" | "part")),
                is_excerpt_of_start: row.get(3)?,
            };
            let lesser = ledger.get(&note).is_some_and(|earlier: &Seen| {
                earlier.hash == seen.hash
                    && (earlier.with_text && !seen.with_text
                        || seen.is_excerpt_of_start && !earlier.is_excerpt_of_start)
            });
            if !lesser {
                ledger.insert(note, seen);
            }
            Ok(())
        })?;
        Ok(ledger)
    }

    /// Returns the warnings of a session and one of its contexts.
    pub fn warned(&self, session: &str, agent: &str) -> Result<Warned, Error> {
        let sql = "SELECT note, reason = ?4,
                 agent = ?2 AND epoch = coalesce((SELECT epoch FROM session WHERE id = ?1), 0),
                 at >= coalesce((SELECT max(at) FROM prompt WHERE session = ?1), 0)
             FROM shown WHERE session = ?1 AND lane = ?3";
        let rows: Vec<(String, bool, bool, bool)> =
            self.tuples(sql, [session, agent, WARNING, STOPPED])?;
        let mut warned = Warned::default();
        for (note, is_stopped, is_given, is_in_turn) in rows {
            let Ok(note) = note.parse::<NoteId>() else {
                continue;
            };
            warned.stopped.extend(is_stopped.then_some(note));
            warned.given.extend(is_given.then_some(note));
            warned.in_turn += usize::from(is_in_turn);
        }
        Ok(warned)
    }

    /// Returns the hashes of the sentences that a session was told to keep.
    pub fn suggested(&self, session: &str) -> Result<Vec<String>, Error> {
        self.hashes(session, SUGGESTION)
    }

    /// Returns the ids of the commits that a session was shown.
    pub fn commits_shown(&self, session: &str) -> Result<Vec<String>, Error> {
        self.hashes(session, COMMIT)
    }

    fn hashes(&self, session: &str, lane: &str) -> Result<Vec<String>, Error> {
        self.column(
            "SELECT hash FROM shown WHERE session = ? AND lane = ?",
            [session, lane],
        )
    }

    /// Returns the task of a starting subagent of this type: the oldest one without a subagent.
    pub fn open_delegation(
        &self,
        session: &str,
        kind: &str,
    ) -> Result<Option<(String, String)>, Error> {
        let sql =
            "SELECT id, prompt FROM delegation WHERE session = ? AND kind = ? AND agent IS NULL
             ORDER BY at, rowid LIMIT 1";
        self.first_tuple(sql, [session, kind])
    }

    /// Returns the prompts that tools of this session scheduled.
    pub fn scheduled_prompts(&self, session: &str) -> Result<Vec<String>, Error> {
        self.column(
            "SELECT prompt FROM delegation WHERE session = ? AND kind IN (?, ?)",
            [session, TOOLS[0], TOOLS[1]],
        )
    }

    /// Adds the prompts that the same client scheduled in an earlier session: its schedule outlives
    /// `/clear`. Where start times are unknown, a process id may be reused, so the session has to be recent.
    pub(super) fn inherit_schedule(&self, record: &SessionEvent) -> Result<(), Error> {
        let Some(client) = record.surroundings.client else {
            return Ok(());
        };
        self.run(
            "INSERT OR IGNORE INTO delegation SELECT ?1, id, kind, prompt, at, agent FROM delegation
             WHERE kind IN (?2, ?3) AND session IN
               (SELECT id FROM session WHERE client_process = ?4 AND client_started IS ?5 AND id <> ?1
                  AND (?5 IS NOT NULL OR seen_at > ?6))",
            params![
                record.session,
                TOOLS[0],
                TOOLS[1],
                client.id.to_string(),
                client.started,
                record.at - REUSED
            ],
        )
    }

    /// Records which subagent took a task.
    pub fn delegation_taken(&self, session: &str, id: &str, agent: &str) -> Result<(), Error> {
        self.run(
            "UPDATE delegation SET agent = ? WHERE session = ? AND id = ?",
            [agent, session, id],
        )
    }

    /// Stores one run of recall.
    pub fn recalled(&self, session: &str, run: &Run) -> Result<(), Error> {
        self.run(
            "INSERT OR REPLACE INTO recall VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                session,
                run.at,
                run.lane,
                run.agent,
                run.terms,
                run.searched,
                run.floor,
                run.given,
                run.reason,
                Json(&run.held),
            ],
        )
    }

    /// Returns every run of recall of a session, in order.
    pub fn recalls(&self, session: &str) -> Result<Vec<Run>, Error> {
        self.rows(
            "SELECT lane, agent, at, terms, searched, floor, given, reason, held FROM recall
                 WHERE session = ? ORDER BY at, lane, agent",
            [session],
            |row| {
                let Json(held) = row.get("held")?;
                read_row!(row, Run: lane, agent, at, terms, searched, floor, given, reason; held = held)
            },
        )
    }

    /// Returns every note injected into a session, in order.
    pub fn given(&self, session: &str) -> Result<Vec<Given>, Error> {
        self.rows(
            "SELECT note, hash, lane, level, reason, agent, at, evidence FROM shown
                 WHERE session = ? ORDER BY at, position",
            [session],
            |row| {
                let Json(evidence) = row.get("evidence")?;
                read_row!(row, Given: note, hash, lane, level, reason, agent, at; evidence = evidence)
            },
        )
    }

    /// Returns the session with the latest run of recall.
    pub fn last_recalling_session(&self) -> Result<Option<String>, Error> {
        self.first("SELECT id FROM session WHERE EXISTS (SELECT 1 FROM shown WHERE shown.session = session.id)
                   OR EXISTS (SELECT 1 FROM recall WHERE recall.session = session.id)
                 ORDER BY seen_at DESC, id DESC LIMIT 1", [])
    }

    /// Returns the next free position at one moment. Several hooks of one event run at the same time.
    pub(super) fn next_position(&self, session: &str, now: DateTime<Utc>) -> Result<i64, Error> {
        self.value(
            "SELECT coalesce(max(position) + 1, 0) FROM shown WHERE session = ? AND at = ?",
            params![session, now.timestamp_millis()],
        )
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_text::hash::text_hash;

    use super::{
        super::{Audience, ShownNote, tests::journal_with_session},
        *,
    };

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn shown(note: NoteId, body: &str, level: &'static str) -> ShownNote {
        ShownNote {
            note,
            hash: text_hash(body),
            level,
            reason: "fits the prompt",
            evidence: Some(Evidence {
                matched: vec!["stub".to_owned()],
                score: 2.5,
                coverage: 0.75,
                via: None,
                similarity: Some(0.86),
            }),
        }
    }

    fn audience(agent: &str) -> Audience<'_> {
        Audience {
            session: "s",
            agent,
            lane: "prompt",
        }
    }

    #[test]
    fn a_context_has_seen_what_it_was_given_until_it_is_emptied() {
        let (_folder, journal) = journal_with_session("s");
        let [one, two] = ["1", "2"].map(NoteId::of_session);
        let give = |agent, shown| journal.was_shown(audience(agent), &[shown], now()).unwrap();
        give("", shown(one, "text", "body"));
        give("", shown(two, "other", "heading"));
        let ledger = journal.ledger("s", "").unwrap();
        assert!(ledger[&one].with_text);
        assert!(!ledger[&two].with_text);
        // A later title alone keeps it as seen; a changed body does not.
        give("", shown(one, "text", "heading"));
        assert!(journal.ledger("s", "").unwrap()[&one].with_text);
        give("", shown(one, "changed", "heading"));
        assert!(!journal.ledger("s", "").unwrap()[&one].with_text);
        // The start of a session shows lines that it chose itself, until a prompt brings others.
        let start = Audience {
            lane: "start",
            ..audience("")
        };
        let three = NoteId::of_session("3");
        let part = shown(three, "text", "part");
        journal.was_shown(start, &[part], now()).unwrap();
        assert!(journal.ledger("s", "").unwrap()[&three].is_excerpt_of_start);
        give("", shown(three, "text", "part"));
        assert!(!journal.ledger("s", "").unwrap()[&three].is_excerpt_of_start);
        // A subagent has its own context.
        assert!(journal.ledger("s", "agent-1").unwrap().is_empty());
        give("agent-1", shown(one, "text", "body"));
        assert_eq!(journal.ledger("s", "agent-1").unwrap().len(), 1);
        journal.context_emptied("s").unwrap();
        assert!(journal.ledger("s", "").unwrap().is_empty());
        // The injected notes are still listed.
        assert_eq!(journal.given("s").unwrap().len(), 7);
        assert_eq!(
            journal.given("s").unwrap()[0]
                .evidence
                .as_ref()
                .unwrap()
                .matched,
            ["stub"]
        );
    }

    #[test]
    fn a_run_is_read_as_it_was_and_goes_with_its_session() {
        let (_folder, journal) = journal_with_session("s");
        let run = Run {
            lane: "prompt".to_owned(),
            agent: String::new(),
            at: 5,
            terms: 4,
            searched: 100,
            floor: 0.5,
            given: 0,
            reason: "nothing fits well enough".to_owned(),
            held: vec![Held {
                note: NoteId::of_session("1").to_string(),
                reason: "fits too little".to_owned(),
                evidence: Evidence::default(),
            }],
        };
        journal.recalled("s", &run).unwrap();
        assert_eq!(journal.recalls("s").unwrap(), [run]);
        assert_eq!(
            journal.last_recalling_session().unwrap().as_deref(),
            Some("s")
        );
        journal.forget_session("s").unwrap();
        assert!(journal.recalls("s").unwrap().is_empty());
        assert_eq!(journal.last_recalling_session().unwrap(), None);
    }
}
