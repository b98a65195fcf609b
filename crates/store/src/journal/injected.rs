//! The exact texts that hooks added to a context.

use anamnesis_note::id::NoteId;
use chrono::{DateTime, Utc};
use rusqlite::params;

use super::{Error, Journal};

/// A text that one hook added to a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InjectedText {
    /// The time, milliseconds since 1970.
    pub at: i64,
    /// The client's event.
    pub event: String,
    /// The subagent; empty for the session's own context.
    pub agent: String,
    /// The text.
    pub text: String,
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
        self.connection
            .prepare_cached("INSERT OR REPLACE INTO injected VALUES (?, ?, ?, ?, ?)")?
            .execute(params![session, now.timestamp_millis(), event, agent, text])?;
        Ok(())
    }

    /// Returns the texts that hooks added to the contexts of a session, in order.
    pub fn injected_texts(&self, session: &str) -> Result<Vec<InjectedText>, Error> {
        Ok(self
            .connection
            .prepare_cached(
                "SELECT at, event, agent, text FROM injected WHERE session = ?
                 ORDER BY at, event, agent",
            )?
            .query_map([session], |row| {
                Ok(InjectedText {
                    at: row.get(0)?,
                    event: row.get(1)?,
                    agent: row.get(2)?,
                    text: row.get(3)?,
                })
            })?
            .collect::<Result<_, _>>()?)
    }

    /// Returns the last injections of all sessions, newest first: session, time and event.
    pub fn last_injections(&self, limit: usize) -> Result<Vec<(String, i64, String)>, Error> {
        Ok(self
            .connection
            .prepare_cached("SELECT session, at, event FROM injected ORDER BY rowid DESC LIMIT ?")?
            .query_map([i64::try_from(limit).unwrap_or(i64::MAX)], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })?
            .collect::<Result<_, _>>()?)
    }

    /// Removes every injected text in which a note was: by the record of it, or because the text names
    /// the note's id. A later injection replaces the record, not the text.
    pub fn forget_injected(&self, note: NoteId) -> Result<(), Error> {
        self.connection.execute(
            "DELETE FROM injected WHERE instr(text, ?2) OR EXISTS (SELECT 1 FROM shown
               WHERE shown.session = injected.session AND shown.at = injected.at AND shown.note = ?1)",
            [note.to_string(), note.short()],
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
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
            (texts[0].text.as_str(), texts[0].agent.as_str()),
            (text, "")
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
        let note = "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap();
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
        journal.was_shown(to, &[shown], now()).unwrap();
        journal
            .injected("s", "", "UserPromptSubmit", "body", now())
            .unwrap();
        let other = now() + chrono::TimeDelta::seconds(1);
        journal
            .injected("s", "", "UserPromptSubmit", "other", other)
            .unwrap();
        let named = now() + chrono::TimeDelta::seconds(2);
        journal
            .injected("s", "", "SessionStart", "- body (#9G5FAV)", named)
            .unwrap();
        journal.forget_injected(note).unwrap();
        let left = journal.injected_texts("s").unwrap();
        assert_eq!((left.len(), left[0].text.as_str()), (1, "other"));
    }
}
