//! How shown notes were used: uses by turn, and the counts made from them.
//!
//! Which notes a session was shown and used is kept as long as its session, longer than what was
//! injected: ids and times, no text. The counts are queries over these rows.

use std::collections::BTreeMap;

use anamnesis_note::id::NoteId;
use anamnesis_session::event::{Privacy, ToolInput};
use chrono::{DateTime, Utc};
use rusqlite::{Row, params};
use serde::{Deserialize, Serialize};

use super::{COMMIT, Error, Held, INHERITED, Journal, POINTER, SUGGESTION, WITHOUT_MEANING};
use crate::sqlite::{Compressed, Json, Queries, bound, read_row};

/// The number of tool events of a turn that are examined, the last ones.
const MAX_EVENTS: i64 = 200;

/// The `meta` key of the counts from before use was counted here.
pub(crate) const FORMER_USAGE: &str = "former_usage";

/// The middle of the month of a row, which is used as the time of everything in it, milliseconds.
const MONTH: &str = "1000 * unixepoch(a.at / 1000, 'unixepoch', 'start of month', '+14 days')";

/// How certain it is that a note was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Words of the note occurred in the work.
    Implicit,
    /// The note was named, opened or changed.
    Explicit,
}

/// The use of a note in one month.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoteCounts {
    /// Turns in which it was certainly used.
    pub used: u64,
    /// Turns in which it was probably used, and not certainly.
    pub hinted: u64,
    /// Sessions in which it was used, certainly or probably.
    pub sessions: u64,
    /// Sessions in which it was injected.
    pub shown: u64,
    /// Sessions in which it was injected but not used.
    pub unused: u64,
    /// When it was last used, milliseconds since 1970.
    pub last: Option<i64>,
}

impl NoteCounts {
    pub(crate) fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        read_row!(row, Self: used, hinted, sessions, shown, unused, last)
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.used += other.used;
        self.hinted += other.hinted;
        self.sessions += other.sessions;
        self.shown += other.shown;
        self.unused += other.unused;
        self.last = self.last.max(other.last);
    }
}

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
    /// The number of sessions with a prompt of a person.
    pub sessions: usize,
    /// The number of texts that were injected, and their characters.
    pub blocks: (usize, usize),
    /// The number of notes that were only pointed at, and how many of them the session then opened.
    pub pointers: (usize, usize),
    /// The number of commits of the project's history that were injected.
    pub commits: usize,
    /// The number of prompts of a person.
    pub prompts: usize,
    /// The number of prompts with a search for notes.
    pub asked: usize,
    /// The number of searches that injected nothing.
    pub silent: usize,
    /// The number of searches whose prompt got no vector in time.
    pub without_meaning: usize,
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
        let sql = "SELECT number, text, at, privacy FROM prompt WHERE session = ?
             ORDER BY number DESC LIMIT 1";
        let prompt: Option<(u32, _, i64, String)> = self.first_tuple(sql, [session])?;
        let is_public = |privacy: &str| privacy != Privacy::Full.as_str();
        let Some((number, prompt, at, _)) = prompt.filter(|it| is_public(&it.3)) else {
            return Ok(None);
        };
        let mut events: Vec<TurnEvent> = self.rows(
            "SELECT tool, input, at FROM tool_event
                 WHERE session = ?1 AND coalesce(agent_id, '') = ?2 AND at >= ?3
                   AND (prompt = ?5 OR prompt IS NULL) AND number >
                   (SELECT coalesce(max(after_event), 0) FROM turn_end
                    WHERE session = ?1 AND speaker = 'main' AND at < ?3)
                 ORDER BY number DESC LIMIT ?4",
            params![session, agent, at, MAX_EVENTS, number],
            |row| {
                let Json(input) = row.get("input")?;
                read_row!(row, TurnEvent: tool, at; input = input)
            },
        )?;
        events.reverse();
        Ok(Some(LastTurn {
            number,
            prompt,
            events,
        }))
    }

    /// Returns the last prompts of a session, newest first; empty texts for those that are not stored.
    pub fn last_prompts(&self, session: &str, limit: usize) -> Result<Vec<String>, Error> {
        self.column(
            "SELECT coalesce(text, '') FROM prompt WHERE session = ? ORDER BY number DESC LIMIT ?",
            params![session, bound(limit)],
        )
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
        let sql =
            "INSERT INTO use (session, agent, turn, note, is_certain, at) VALUES (?, ?, ?, ?, ?, ?)
             ON CONFLICT (session, agent, turn, note) DO UPDATE SET is_certain = 1
               WHERE excluded.is_certain > is_certain";
        for (note, weight) in uses {
            let (note, is_certain) = (note.to_string(), *weight == Weight::Explicit);
            let at = now.timestamp_millis();
            self.run(sql, params![session, agent, turn, note, is_certain, at])?;
        }
        Ok(())
    }

    /// Returns the notes that a session used, each with the number of the prompt.
    pub fn used_in(&self, session: &str) -> Result<Vec<(i64, String)>, Error> {
        let sql = "SELECT DISTINCT turn, note FROM use WHERE session = ? ORDER BY turn, note";
        self.tuples(sql, [session])
    }

    /// Returns a value that changes whenever the counts of use do.
    pub fn usage_stamp(&self) -> Result<String, Error> {
        self.value(
            "SELECT format('%d %d %d %d %d', (SELECT count(*) FROM shown_note),
               (SELECT coalesce(max(at), 0) FROM shown_note), count(*), coalesce(max(at), 0),
               coalesce(sum(is_certain), 0)) || coalesce((SELECT value FROM meta WHERE key = ?), '')
             FROM use",
            [FORMER_USAGE],
        )
    }

    /// Returns the counts of use of all sessions, by the middle of their month.
    pub fn usage_counts(&self) -> Result<Vec<(String, i64, NoteCounts)>, Error> {
        let sql = format!(
            "SELECT note, {MONTH}, sum(certain) AS used, sum(hinted) AS hinted,
               sum(is_used) AS sessions, sum(is_shown) AS shown,
               sum(is_shown AND NOT is_used) AS unused, max(last) AS last
             FROM (SELECT note, max(at) AS at, sum(certain) AS certain, sum(hinted) AS hinted,
               sum(certain + hinted) > 0 AS is_used, max(is_shown) AS is_shown, max(last) AS last
               FROM (SELECT session, note, at, 1 AS is_shown, 0 AS certain, 0 AS hinted, NULL AS last
                   FROM shown_note
                 UNION ALL SELECT session, note, max(at), 0, max(is_certain), 1 - max(is_certain), max(at)
                   FROM use GROUP BY session, turn, note)
               GROUP BY session, note) AS a
             GROUP BY 1, 2"
        );
        let mut counts: Vec<(String, i64, NoteCounts)> =
            self.json(FORMER_USAGE)?.unwrap_or_default();
        counts.extend(self.rows::<_, Vec<_>>(&sql, [], |row| {
            Ok((row.get(0)?, row.get(1)?, NoteCounts::read(row)?))
        })?);
        Ok(counts)
    }

    /// Returns the middle of the first month with use that was counted here, in milliseconds since 1970.
    pub(crate) fn first_month_of_use(&self) -> Result<Option<i64>, Error> {
        let sql = format!(
            "SELECT min({MONTH}) FROM (SELECT at FROM shown_note UNION ALL SELECT at FROM use) AS a"
        );
        self.value(&sql, [])
    }

    /// Returns the report since a time, milliseconds since 1970, about the sessions of these
    /// projects; without any, about all sessions.
    pub fn usage_report(&self, since: i64, projects: &[String]) -> Result<Report, Error> {
        let is_chosen = "at >= ?1 AND (?2 = '[]' OR session IN
          (SELECT id FROM session WHERE project IN (SELECT value FROM json_each(?2))))";
        let projects = Json(projects);
        let (prompts, sessions) = self.tuple(
            &format!(
                "SELECT count(*), count(DISTINCT session) FROM prompt WHERE {is_chosen} AND {}",
                is_request!()
            ),
            params![since, projects],
        )?;
        // `memory_get` takes ids of any length, which end like the note's.
        let (pointers, opened, commits) = self.tuple(
            &format!(
                "SELECT count(*) FILTER (WHERE level = ?3), count(*) FILTER (WHERE level = ?3
                   AND EXISTS (SELECT 1 FROM tool_event AS call
                   WHERE call.session = shown.session AND call.at >= shown.at AND call.tool GLOB '*memory_get'
                     AND instr(upper(call.input), substr(shown.note, -6)))),
                   count(*) FILTER (WHERE level = ?4)
                 FROM shown WHERE {is_chosen} AND level IN (?3, ?4)"
            ),
            params![since, projects, POINTER, COMMIT],
        )?;
        let sql = format!("SELECT text FROM block WHERE {is_chosen}");
        let count = |row: &Row<'_>| Ok(row.get::<_, Compressed<String>>(0)?.0.chars().count());
        let lengths: Vec<usize> = self.rows(&sql, params![since, projects], count)?;
        let blocks = (lengths.len(), lengths.iter().sum());
        let (asked, silent, given, without_meaning) = self.tuple(
            &format!(
                "SELECT count(*), count(*) FILTER (WHERE given = 0), coalesce(sum(given), 0),
                   count(*) FILTER (WHERE reason LIKE '%' || ?3)
                 FROM recall WHERE {is_chosen} AND lane = 'prompt'"
            ),
            params![since, projects, WITHOUT_MEANING],
        )?;
        let mut report = Report {
            sessions,
            blocks,
            pointers: (pointers, opened),
            commits,
            prompts,
            asked,
            silent,
            without_meaning,
            given,
            ..Report::default()
        };
        let sql = format!("SELECT held FROM recall WHERE {is_chosen} AND held <> '[]'");
        let held: Vec<Json<Vec<Held>>> = self.column(&sql, params![since, projects])?;
        for held in held.into_iter().flat_map(|Json(held)| held) {
            *report.held.entry(held.reason).or_default() += 1;
        }
        let sql = format!(
            "SELECT note, EXISTS (SELECT 1 FROM use WHERE use.session = shown.session
               AND use.note = shown.note), count(*) FROM shown
             WHERE {is_chosen} AND level <> ?3 AND lane NOT IN (?4, ?5, ?6) GROUP BY note, session"
        );
        let values = params![since, projects, POINTER, COMMIT, SUGGESTION, INHERITED];
        let notes: Vec<(String, bool, usize)> = self.tuples(&sql, values)?;
        for (note, is_used, injections) in notes {
            let Ok(note) = note.parse() else { continue };
            let counts = report.notes.entry(note).or_default();
            counts.injections += injections;
            counts.sessions += 1;
            counts.used += usize::from(is_used);
        }
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_text::hash::text_hash;

    use super::{
        super::{Audience, Run, ShownNote, tests::journal_with_session},
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

    fn counts(journal: &Journal, of: u32) -> NoteCounts {
        let counts = journal.usage_counts().unwrap().into_iter();
        let mut counts = counts.filter(|(id, ..)| *id == note(of).to_string());
        counts.next().map(|(.., counts)| counts).unwrap_or_default()
    }

    #[test]
    fn a_use_counts_once_per_turn_and_a_note_once_per_session() {
        let (_folder, journal) = journal_with_session("s");
        show(&journal, &[note(1), note(9)]);
        show(&journal, &[note(1)]);
        let used = |agent, turn, weight| {
            journal
                .used("s", agent, turn, &[(note(1), weight)], now())
                .unwrap();
        };
        used("", 1, Weight::Implicit);
        let expected = NoteCounts {
            hinted: 1,
            sessions: 1,
            shown: 1,
            last: Some(now().timestamp_millis()),
            ..NoteCounts::default()
        };
        assert_eq!(counts(&journal, 1), expected);
        assert_eq!(
            (counts(&journal, 9).shown, counts(&journal, 9).unused),
            (1, 1)
        );
        // A more certain record of the same use counts; a less certain one does not.
        used("", 1, Weight::Explicit);
        used("agent", 1, Weight::Implicit);
        used("", 2, Weight::Explicit);
        let counted = counts(&journal, 1);
        assert_eq!((counted.used, counted.hinted, counted.sessions), (2, 0, 1));
    }

    #[test]
    fn counts_go_with_their_session_and_change_the_stamp() {
        let (_folder, journal) = journal_with_session("s");
        let before = journal.usage_stamp().unwrap();
        show(&journal, &[note(1)]);
        assert_ne!(journal.usage_stamp().unwrap(), before);
        journal.forget_session("s").unwrap();
        assert_eq!(journal.usage_counts().unwrap(), []);
        assert_eq!(journal.usage_stamp().unwrap(), before);
    }

    #[test]
    fn a_report_counts_prompts_whose_vector_came_too_late() {
        let (_folder, journal) = journal_with_session("s");
        let begun = now().timestamp_millis();
        let reasons = [
            "",
            "no match",
            "no match · meaning: no time",
            WITHOUT_MEANING,
        ];
        for (at, reason) in (begun..).zip(reasons) {
            let run = Run {
                lane: "prompt".to_owned(),
                agent: String::new(),
                at,
                terms: 2,
                searched: 9,
                floor: 0.55,
                given: 0,
                reason: reason.to_owned(),
                held: Vec::new(),
            };
            journal.recalled("s", &run).unwrap();
        }
        let report = journal.usage_report(begun, &[]).unwrap();
        assert_eq!((report.asked, report.without_meaning), (4, 2));
    }

    #[test]
    fn a_report_counts_commits_apart_and_no_suggestions_or_inherited_notes() {
        let (_folder, journal) = journal_with_session("s");
        for (lane, level) in [
            (COMMIT, COMMIT),
            (SUGGESTION, SUGGESTION),
            (INHERITED, "body"),
        ] {
            let shown = ShownNote::new(note(1), text_hash(""), level, "");
            let to = Audience {
                session: "s",
                agent: "",
                lane,
            };
            journal.was_shown(to, &[shown], now()).unwrap();
        }
        let report = journal.usage_report(now().timestamp_millis(), &[]).unwrap();
        assert_eq!((report.commits, report.notes.len()), (1, 0));
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
    }
}
