//! Reflections: the notes that a model was asked about, their key and their outcome. Only ids and
//! hashes are stored.

use std::collections::BTreeMap;

use anamnesis_note::id::NoteId;
use chrono::{DateTime, TimeDelta, Utc};
use rusqlite::params;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::{Error, Journal, Queries};

/// How long an answer is accepted.
const ANSWER_LIFETIME: TimeDelta = TimeDelta::hours(1);

/// How long the notes of a finished reflection are kept.
const KEPT: TimeDelta = TimeDelta::days(90);

/// The key prefix in `meta` of a reflection.
const PREFIX: &str = "reflection ";

/// The state of a reflection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Stage {
    /// The model was asked and has not answered.
    Asked,
    /// The proposed notes are pending.
    Proposed,
    /// It is finished: refused, or no proposed note is pending.
    Ended,
}

/// A reflection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reflection {
    /// Its key, which the answer must contain.
    pub key: String,
    /// The project.
    pub project: String,
    /// When the model was asked, milliseconds since 1970.
    pub at: i64,
    /// The notes in the request, each with the hash of its file.
    pub sources: BTreeMap<NoteId, String>,
    /// The notes that were proposed.
    pub notes: Vec<NoteId>,
    stage: Stage,
}

/// The number of characters of a key that people see. The key is random, so few are enough.
const SHORT_KEY: usize = 6;

impl Reflection {
    /// Returns the part of the key that people see and type.
    pub fn short_key(&self) -> &str {
        let start = self.key.len().saturating_sub(SHORT_KEY);
        self.key.get(start..).unwrap_or(&self.key)
    }

    /// Returns whether a typed key means this reflection.
    pub fn is_meant_by(&self, typed: &str) -> bool {
        typed.len() >= SHORT_KEY && self.key.ends_with(typed)
    }
}

impl Journal {
    /// Records a request for a reflection and returns its key. Earlier requests of the project
    /// expire.
    pub fn ask_reflection(
        &self,
        project: &str,
        sources: &BTreeMap<NoteId, String>,
        now: DateTime<Utc>,
    ) -> Result<String, Error> {
        let expired = (now - ANSWER_LIFETIME).timestamp_millis();
        self.in_transaction(|journal| {
            journal.drop_reflections(|it| {
                it.stage == Stage::Asked && (it.project == project || it.at < expired)
            })?;
            journal.new_reflection(project, Stage::Asked, sources, now)
        })
    }

    /// Records a request to the configured model, so that nobody else can answer it. Returns the key
    /// under which notes can be proposed.
    pub fn begin_reflection(
        &self,
        project: &str,
        sources: &BTreeMap<NoteId, String>,
        now: DateTime<Utc>,
    ) -> Result<String, Error> {
        let expired = (now - KEPT).timestamp_millis();
        self.in_transaction(|journal| {
            journal.drop_reflections(|it| it.stage == Stage::Ended && it.at < expired)?;
            journal.new_reflection(project, Stage::Ended, sources, now)
        })
    }

    fn new_reflection(
        &self,
        project: &str,
        stage: Stage,
        sources: &BTreeMap<NoteId, String>,
        now: DateTime<Utc>,
    ) -> Result<String, Error> {
        let key = Ulid::generate().to_string();
        self.keep_reflection(&Reflection {
            key: key.clone(),
            project: project.to_owned(),
            at: now.timestamp_millis(),
            sources: sources.clone(),
            notes: Vec::new(),
            stage,
        })?;
        Ok(key)
    }

    fn keep_reflection(&self, reflection: &Reflection) -> Result<(), Error> {
        self.set_json(&format!("{PREFIX}{}", reflection.key), reflection)
    }

    fn drop_reflections(&self, is_over: impl Fn(&Reflection) -> bool) -> Result<(), Error> {
        for reflection in self.reflections(is_over)? {
            self.remove_meta(&format!("{PREFIX}{}", reflection.key))?;
        }
        Ok(())
    }

    /// Changes a reflection in a transaction, so that only one of two answers is accepted. Returns it
    /// if it exists and is wanted.
    fn change_reflection(
        &self,
        key: &str,
        is_wanted: impl Fn(&Reflection) -> bool,
        change: impl FnOnce(&mut Reflection),
    ) -> Result<Option<Reflection>, Error> {
        self.in_transaction(|journal| {
            let found = journal
                .reflections(|it| it.key == key && is_wanted(it))?
                .pop();
            let Some(mut reflection) = found else {
                return Ok(None);
            };
            change(&mut reflection);
            journal.keep_reflection(&reflection)?;
            Ok(Some(reflection))
        })
    }

    /// Records that a reflection failed, so that its notes are available again.
    pub fn fail_reflection(&self, key: &str) -> Result<(), Error> {
        let fail = |it: &mut Reflection| {
            it.stage = Stage::Ended;
            it.sources.clear();
        };
        self.change_reflection(key, |_| true, fail).map(drop)
    }

    /// Returns all stored reflections of a project, oldest first.
    pub fn reflections_of(&self, project: &str) -> Result<Vec<Reflection>, Error> {
        self.reflections(|it| it.project == project)
    }

    /// Accepts the answer for a key, once and within an hour. Returns none if no answer is expected.
    pub fn answer_reflection(
        &self,
        key: &str,
        now: DateTime<Utc>,
    ) -> Result<Option<Reflection>, Error> {
        let oldest = (now - ANSWER_LIFETIME).timestamp_millis();
        let is_open = |it: &Reflection| it.stage == Stage::Asked && it.at >= oldest;
        self.change_reflection(key, is_open, |it| it.stage = Stage::Ended)
    }

    /// Records the notes that a reflection proposes, before they are written.
    pub fn propose_reflection(&self, key: &str, notes: &[NoteId]) -> Result<(), Error> {
        let propose = |it: &mut Reflection| {
            it.stage = Stage::Proposed;
            it.notes = notes.to_vec();
        };
        self.change_reflection(key, |_| true, propose).map(drop)
    }

    /// Returns the reflections with pending notes, oldest first.
    pub fn proposed_reflections(&self) -> Result<Vec<Reflection>, Error> {
        self.reflections(|it| it.stage == Stage::Proposed)
    }

    /// Finishes a reflection, whose notes were accepted or rejected.
    pub fn end_reflection(&self, key: &str) -> Result<(), Error> {
        let end = |it: &mut Reflection| it.stage = Stage::Ended;
        self.change_reflection(key, |_| true, end).map(drop)
    }

    /// Returns the wanted reflections, oldest first.
    fn reflections(
        &self,
        is_wanted: impl Fn(&Reflection) -> bool,
    ) -> Result<Vec<Reflection>, Error> {
        let stored = self.metas_under(PREFIX)?.into_values();
        let stored = stored.filter_map(|text| serde_json::from_str(&text).ok());
        let mut found: Vec<Reflection> = stored.filter(|it| is_wanted(it)).collect();
        found.sort_by(|a, b| (a.at, &a.key).cmp(&(b.at, &b.key)));
        Ok(found)
    }

    /// Records that an agent forgot a note, so that the person is told.
    pub fn agent_forgot(
        &self,
        note: NoteId,
        request: ForgetRequest,
        now: DateTime<Utc>,
    ) -> Result<(), Error> {
        let by_agent = request as i64;
        if self.mark_forgotten(note, by_agent)? == 0 {
            // A note without text has no hash, but the person must be told.
            self.run(
                "INSERT INTO forgotten (text_key, note, at, by_agent) VALUES (?1, ?1, ?2, ?3)",
                params![note.to_string(), now.timestamp_millis(), by_agent],
            )?;
        }
        Ok(())
    }

    /// Records that the person was told of a forgotten note.
    pub fn forgetting_seen(&self, note: NoteId) -> Result<(), Error> {
        self.mark_forgotten(note, 0).map(drop)
    }

    fn mark_forgotten(&self, note: NoteId, by_agent: i64) -> Result<usize, Error> {
        self.change(
            "UPDATE forgotten SET by_agent = ?2 WHERE note = ?1",
            params![note.to_string(), by_agent],
        )
    }

    /// Returns the notes that agents forgot and the person was not told of, newest first.
    pub fn forgotten_by_agents(&self) -> Result<Vec<(NoteId, ForgetRequest)>, Error> {
        let sql = "SELECT note, by_agent FROM forgotten WHERE by_agent > 0 ORDER BY at DESC, note";
        let notes: Vec<(String, i64)> = self.tuples(sql, [])?;
        let notes = notes.into_iter().filter_map(|(id, by_agent)| {
            let request = match by_agent {
                _ if by_agent == ForgetRequest::Person as i64 => ForgetRequest::Person,
                _ => ForgetRequest::Agent,
            };
            Some((id.parse().ok()?, request))
        });
        Ok(notes.collect())
    }
}

/// The requester if an agent forgot a note. The values are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForgetRequest {
    /// The agent.
    Agent = 1,
    /// The person, who named the note in a slash command.
    Person = 2,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fs::home::Home;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn with_journal(test: impl FnOnce(&Journal)) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        test(&Journal::open(&home, Duration::from_secs(5)).unwrap());
    }

    #[test]
    fn a_key_is_good_for_one_answer_within_an_hour() {
        with_journal(|journal| {
            let sources = BTreeMap::from([(NoteId::made_of("a"), "hash".to_owned())]);
            let key = journal.ask_reflection("p", &sources, now()).unwrap();
            assert_eq!(journal.answer_reflection("another", now()).unwrap(), None);
            let late = now() + TimeDelta::minutes(61);
            assert_eq!(journal.answer_reflection(&key, late).unwrap(), None);
            let answered = journal.answer_reflection(&key, now()).unwrap().unwrap();
            assert_eq!((&answered.key, answered.project.as_str()), (&key, "p"));
            assert_eq!(answered.sources, sources);
            assert_eq!(journal.answer_reflection(&key, now()).unwrap(), None);
        });
    }

    #[test]
    fn only_the_last_question_of_a_project_is_open() {
        with_journal(|journal| {
            let ask = |project| journal.ask_reflection(project, &BTreeMap::new(), now());
            let (first, other) = (ask("p").unwrap(), ask("q").unwrap());
            let second = ask("p").unwrap();
            assert_ne!(first, second);
            assert_eq!(journal.answer_reflection(&first, now()).unwrap(), None);
            for key in [second, other] {
                assert!(journal.answer_reflection(&key, now()).unwrap().is_some());
            }
        });
    }

    #[test]
    fn a_reflection_waits_from_its_proposals_to_its_end() {
        with_journal(|journal| {
            let key = journal
                .ask_reflection("p", &BTreeMap::new(), now())
                .unwrap();
            assert!(journal.proposed_reflections().unwrap().is_empty());
            let notes = [NoteId::made_of("b"), NoteId::made_of("a")];
            journal.propose_reflection(&key, &notes).unwrap();
            let waiting = journal.proposed_reflections().unwrap();
            assert_eq!(waiting.len(), 1);
            assert_eq!(waiting[0].notes, notes);
            assert_eq!(journal.answer_reflection(&key, now()).unwrap(), None);
            journal.end_reflection(&key).unwrap();
            assert!(journal.proposed_reflections().unwrap().is_empty());
        });
    }

    #[test]
    fn what_an_agent_forgot_is_told_until_it_was_seen() {
        with_journal(|journal| {
            let (mine, agents) = (NoteId::made_of("mine"), NoteId::made_of("agent's"));
            for (note, text) in [(mine, "one text"), (agents, "another text")] {
                journal.forgot(note, text, now()).unwrap();
            }
            journal
                .agent_forgot(agents, ForgetRequest::Agent, now())
                .unwrap();
            assert_eq!(
                journal.forgotten_by_agents().unwrap(),
                [(agents, ForgetRequest::Agent)]
            );
            // A note without text.
            let empty = NoteId::made_of("empty");
            journal
                .agent_forgot(empty, ForgetRequest::Person, now())
                .unwrap();
            assert_eq!(journal.forgotten_by_agents().unwrap().len(), 2);
            journal.forgetting_seen(empty).unwrap();
            assert!(journal.forgotten_at("another text").unwrap().is_some());
            journal.forgetting_seen(agents).unwrap();
            assert!(journal.forgotten_by_agents().unwrap().is_empty());
            assert!(journal.forgotten_at("another text").unwrap().is_some());
        });
    }
}
