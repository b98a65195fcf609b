//! The exact texts that hooks added to a context.

use std::collections::BTreeSet;

use anamnesis_note::id::NoteId;
use anamnesis_text::hash::text_hash;
use chrono::{DateTime, Utc};
use rusqlite::{Row, params};

use super::{COMMIT, Error, Journal, Mentions, OBSERVATION, SUGGESTION};
use crate::sqlite::{Compressed, Queries, bound, read_row};

/// The table's name.
pub(super) const TABLE: &str = "block";

/// A text that one hook added to a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectedText {
    /// The time, milliseconds since 1970.
    pub at: i64,
    /// The client's event.
    pub event: String,
    /// The subagent; empty for the session's own context.
    pub agent: String,
    /// The SHA-256 of the text.
    pub hash: String,
    /// The text.
    pub text: String,
}

impl InjectedText {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        let Compressed(text) = row.get("text")?;
        read_row!(row, Self: at, event, agent, hash; text = text)
    }
}

impl Journal {
    /// Records the text that a hook adds to a context.
    pub fn injected(
        &self,
        session: &str,
        agent: &str,
        event: &str,
        text: &str,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        self.run(
            "INSERT OR REPLACE INTO block VALUES (?, ?, ?, ?, ?, ?)",
            params![
                session,
                now.timestamp_millis(),
                event,
                agent,
                text_hash(text),
                Compressed(text)
            ],
        )
    }

    /// Returns the texts that hooks added to the contexts of a session, in order.
    pub fn injected_texts(&self, session: &str) -> Result<Vec<InjectedText>, Error> {
        self.rows(
            "SELECT at, event, agent, hash, text FROM block WHERE session = ?
                 ORDER BY at, event, agent, rowid",
            [session],
            InjectedText::read,
        )
    }

    /// Returns the last injections of all sessions, newest first: session, time and event.
    pub fn last_injections(&self, limit: usize) -> Result<Vec<(String, i64, String)>, Error> {
        let sql = "SELECT session, at, event FROM block ORDER BY rowid DESC LIMIT ?";
        self.tuples(sql, [bound(limit)])
    }

    /// Returns the session and the time of the last injection at or before a time, in one session or in
    /// any.
    pub fn injection_before(
        &self,
        session: Option<&str>,
        at: i64,
    ) -> Result<Option<(String, i64)>, Error> {
        let sql = "SELECT session, at FROM block WHERE at <= ?1 AND session = coalesce(?2, session)
                   ORDER BY at DESC LIMIT 1";
        self.first_tuple(sql, params![at, session])
    }

    /// Returns the notes whose text was injected and not removed from the records since.
    pub fn injected_notes(&self) -> Result<BTreeSet<NoteId>, Error> {
        self.note_ids(
            "SELECT DISTINCT note FROM shown WHERE hash <> '' AND level NOT IN (?, ?, ?)",
            [COMMIT, OBSERVATION, SUGGESTION],
        )
    }

    /// Removes notes from every injected text. `without` returns a text without the parts that hold or
    /// name a note, if there are any. A text that was recorded as holding the note, but names it nowhere,
    /// is removed as a whole. Hashes of the notes' texts are removed, too.
    pub fn forget_injected(
        &self,
        notes: &BTreeSet<NoteId>,
        without: impl Fn(&str, NoteId) -> Option<String>,
    ) -> Result<(), Error> {
        // A row without hash is of a note that was removed from its text earlier.
        let mut held = self.connection.prepare(
            "SELECT EXISTS (SELECT 1 FROM shown WHERE session = ? AND at = ? AND note = ? AND hash <> '')",
        )?;
        self.rewrite_injected(|session, block| {
            let mut changed = None;
            for note in notes {
                let text = changed.as_ref().unwrap_or(&block.text);
                if let Some(left) = without(text, *note) {
                    changed = Some(left);
                } else if held.query_row(params![session, block.at, note.to_string()], |row| {
                    row.get(0)
                })? {
                    changed = Some(String::new());
                }
            }
            Ok(changed)
        })?;
        for note in notes {
            let sql = "UPDATE shown SET hash = '' WHERE note = ?1 AND level NOT IN (?2, ?3, ?4)";
            self.run(
                sql,
                params![note.to_string(), COMMIT, OBSERVATION, SUGGESTION],
            )?;
        }
        Ok(())
    }

    /// Changes the injected texts for which `change` returns another text; an empty one is removed.
    pub(super) fn rewrite_injected(
        &self,
        change: impl FnMut(&str, &InjectedText) -> rusqlite::Result<Option<String>>,
    ) -> Result<(), Error> {
        for (row, _, text) in self.changed_injected(change)? {
            if text.is_empty() {
                self.run("DELETE FROM block WHERE rowid = ?", [row])?;
            } else {
                self.run(
                    "UPDATE OR REPLACE block SET hash = ?, text = ? WHERE rowid = ?",
                    params![text_hash(&text), Compressed(text.as_str()), row],
                )?;
            }
        }
        Ok(())
    }

    /// Adds the injected texts that `change` would change.
    pub(super) fn count_injected(
        &self,
        mentions: &mut Mentions,
        change: impl FnMut(&str, &InjectedText) -> rusqlite::Result<Option<String>>,
    ) -> Result<(), Error> {
        let changed = self.changed_injected(change)?;
        if !changed.is_empty() {
            *mentions.rows.entry(TABLE.to_owned()).or_default() += changed.len();
        }
        let sessions: BTreeSet<String> =
            changed.into_iter().map(|(_, session, _)| session).collect();
        mentions.sessions.extend(sessions);
        Ok(())
    }

    /// Returns the row, the session and the new text of each text that `change` changes.
    fn changed_injected(
        &self,
        mut change: impl FnMut(&str, &InjectedText) -> rusqlite::Result<Option<String>>,
    ) -> Result<Vec<(i64, String, String)>, Error> {
        let mut changed = Vec::new();
        let mut statement = self.connection.prepare("SELECT *, rowid FROM block")?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let session: String = row.get("session")?;
            if let Some(text) = change(&session, &InjectedText::read(row)?)? {
                changed.push((row.get("rowid")?, session, text));
            }
        }
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use anamnesis_note::{id::NoteId, purge_pattern::PurgePattern};
    use anamnesis_text::hash::text_hash;

    use super::super::{
        Audience, ShownNote,
        tests::{journal_with_session, now, prompted, take},
    };
    use crate::settings::config::Retention;

    #[test]
    fn an_injected_text_is_kept_byte_for_byte_until_it_expires() {
        let (_folder, journal) = journal_with_session("s");
        let text = "<anamnesis-context>\r\n\u{a0}ä\n</anamnesis-context>\n\n";
        journal
            .injected("s", "", "UserPromptSubmit", text, now())
            .unwrap();
        let texts = journal.injected_texts("s").unwrap();
        assert_eq!(texts.len(), 1);
        assert_eq!(
            (texts[0].text.as_str(), texts[0].hash.clone()),
            (text, text_hash(text))
        );
        assert!(journal.injected_texts("other").unwrap().is_empty());
        let later = now().timestamp_millis() + 1_000 * 24 * 60 * 60 * 1000;
        journal.prune(&Retention::default(), later).unwrap();
        assert!(journal.injected_texts("s").unwrap().is_empty());
    }

    #[test]
    fn a_forgotten_prompt_or_session_takes_its_injected_texts_with_it() {
        let (_folder, journal) = journal_with_session("s");
        take(&journal, &[prompted("s", "a prompt")]);
        let at = journal.prompts("s").unwrap()[0].at;
        let at = chrono::DateTime::from_timestamp_millis(at).unwrap();
        journal
            .injected("s", "", "UserPromptSubmit", "x", at)
            .unwrap();
        journal
            .forget_prompt("s", 1, at.timestamp_millis())
            .unwrap();
        assert!(journal.injected_texts("s").unwrap().is_empty());
        journal.injected("s", "", "SessionStart", "x", at).unwrap();
        journal.forget_session("s").unwrap();
        assert!(journal.injected_texts("s").unwrap().is_empty());
    }

    #[test]
    fn a_forgotten_note_is_in_no_injected_text() {
        let (_folder, journal) = journal_with_session("s");
        let note: NoteId = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
        let shown = ShownNote {
            note,
            hash: text_hash("body"),
            level: "body",
            reason: "matches",
            evidence: None,
        };
        let to = Audience {
            session: "s",
            agent: "",
            lane: "prompt",
        };
        for at in [now(), now() + chrono::TimeDelta::seconds(2)] {
            journal
                .was_shown(to, std::slice::from_ref(&shown), at)
                .unwrap();
        }
        for (second, text) in [
            "a body without an id",
            "other",
            "kept\n- body (#9G5FAV)\n",
            "- (#9G5FAV)",
        ]
        .into_iter()
        .enumerate()
        {
            let at = now() + chrono::TimeDelta::seconds(i64::try_from(second).unwrap());
            journal
                .injected("s", "", "UserPromptSubmit", text, at)
                .unwrap();
        }
        let without = |text: &str, note: NoteId| {
            let lines = text.split_inclusive('\n');
            text.contains(&note.short())
                .then(|| lines.filter(|line| !line.contains(&note.short())).collect())
        };
        assert!(journal.injected_notes().unwrap().contains(&note));
        // A text that lost its part stays when the note is removed again.
        for _ in 0..2 {
            journal
                .forget_injected(&BTreeSet::from([note]), without)
                .unwrap();
            let left = journal.injected_texts("s").unwrap();
            let left: Vec<_> = left
                .iter()
                .map(|it| (it.text.as_str(), it.hash.clone()))
                .collect();
            assert_eq!(
                left,
                ["other", "kept\n"].map(|text| (text, text_hash(text)))
            );
            assert!(journal.injected_notes().unwrap().is_empty());
        }
    }

    #[test]
    fn a_masked_text_is_in_no_injected_text() {
        let (_folder, journal) = journal_with_session("s");
        journal
            .injected("s", "", "SessionStart", "the s3cret value", now())
            .unwrap();
        let needle = PurgePattern::new("s3cret").unwrap();
        let found = journal.mentions(&needle).unwrap();
        assert_eq!((found.count(), found.count_in("block")), (1, 1));
        assert_eq!(journal.mask(&needle).unwrap(), found);
        let left = &journal.injected_texts("s").unwrap()[0];
        assert!(!left.text.contains("s3cret") && left.text.ends_with(" value"));
        assert_eq!(left.hash, text_hash(&left.text));
        assert_eq!(journal.mentions(&needle).unwrap().count(), 0);
    }

    #[test]
    fn the_last_injection_before_a_time_is_found() {
        let (_folder, journal) = journal_with_session("s");
        let at = now().timestamp_millis();
        journal
            .injected("s", "", "SessionStart", "x", now())
            .unwrap();
        let before = |session, at| journal.injection_before(session, at).unwrap();
        assert_eq!(before(None, at), Some(("s".to_owned(), at)));
        assert_eq!(before(Some("s"), at + 1), Some(("s".to_owned(), at)));
        assert_eq!(before(Some("t"), at), None);
        assert_eq!(before(None, at - 1), None);
    }
}
