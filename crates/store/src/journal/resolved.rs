//! Finds how failures were fixed in other sessions of this machine.

use anamnesis_session::{observe::Observation, turn::Turn};
use rusqlite::params;

use super::{Error, Journal};
use crate::sqlite::{Json, bound};

/// The observations of some projects that match a failure, newest first.
const RESOLVED: &str = "SELECT observation.session, observation.body, observation.at
  FROM observation JOIN session ON session.id = observation.session
  WHERE observation.signature = ?1 AND observation.kind IN ('bugfix', 'discovery')
    AND session.project IN (SELECT value FROM json_each(?2)) AND session.id <> ?3
  ORDER BY observation.at DESC, observation.session, observation.hash LIMIT ?4";

/// A failure that was fixed or worked around in a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The client's id of the session.
    pub session: String,
    /// The observation.
    pub observation: Observation,
    /// The prompts and answers of the session, which may say what fixed it.
    pub turns: Vec<Turn>,
    /// The time, milliseconds since 1970.
    pub at: i64,
}

impl Journal {
    /// Returns how failures with this signature were fixed in other sessions of these projects,
    /// newest first, without duplicates. `session` is the session of the new failure.
    pub fn resolved(
        &self,
        signature: &str,
        projects: &[String],
        session: &str,
        limit: usize,
    ) -> Result<Vec<Resolved>, Error> {
        let mut statement = self.connection.prepare_cached(RESOLVED)?;
        let mut rows = statement.query(params![
            signature,
            Json(projects),
            session,
            // Several sessions may have the same observation.
            bound(8 * limit),
        ])?;
        let mut found: Vec<Resolved> = Vec::new();
        while let Some(row) = rows.next()?
            && found.len() < limit
        {
            let body: String = row.get(1)?;
            // Another version may have written it.
            let Ok(observation) = serde_json::from_str::<Observation>(&body) else {
                continue;
            };
            let is_known = |known: &Resolved| known.observation.title == observation.title;
            if !found.iter().any(is_known) {
                let session: String = row.get(0)?;
                found.push(Resolved {
                    turns: self.turns(&session)?,
                    session,
                    observation,
                    at: row.get(2)?,
                });
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_session::observe::Kind;

    use super::*;
    use crate::journal::tests::{journal_with_session, started, take};

    const SIGNATURE: &str = "error[e0308]: mismatched types";

    fn observe(journal: &Journal, session: &str, title: &str, kind: Kind, at: i64) {
        let observation = Observation {
            kind,
            title: title.to_owned(),
            subtitle: String::new(),
            narrative: String::new(),
            facts: Vec::new(),
            concepts: Vec::new(),
            files_read: Vec::new(),
            files_modified: Vec::new(),
            events: vec![format!("{session} {title}")],
            error_signature: Some(SIGNATURE.to_owned()),
        };
        journal
            .connection
            .execute(
                "INSERT INTO observation VALUES (?, ?, ?, ?, ?, 'rule', ?)",
                params![
                    session,
                    observation.hash(),
                    kind.as_str(),
                    SIGNATURE,
                    Json(&observation),
                    at
                ],
            )
            .unwrap();
    }

    #[test]
    fn a_failure_finds_what_mended_it_in_other_sessions_of_its_project() {
        let (_folder, journal) = journal_with_session("now");
        take(
            &journal,
            &[
                started("old", "startup"),
                started("older", "startup"),
                started("theirs", "startup"),
            ],
        );
        journal
            .connection
            .execute_batch(
                "UPDATE session SET project = 'shop';
                 UPDATE session SET project = 'till' WHERE id = 'theirs';",
            )
            .unwrap();
        observe(&journal, "older", "first way", Kind::Bugfix, 1);
        observe(&journal, "older", "second way", Kind::Discovery, 2);
        observe(&journal, "old", "first way", Kind::Bugfix, 3);
        observe(&journal, "old", "no failure", Kind::Change, 4);
        observe(&journal, "now", "this session's", Kind::Bugfix, 5);
        observe(&journal, "theirs", "another project's", Kind::Bugfix, 6);
        let found = |signature, limit| {
            let resolved = journal
                .resolved(signature, &["shop".to_owned()], "now", limit)
                .unwrap();
            let shown =
                |resolved: Resolved| format!("{} {}", resolved.session, resolved.observation.title);
            resolved.into_iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(found(SIGNATURE, 2), ["old first way", "older second way"]);
        assert_eq!(found(SIGNATURE, 1), ["old first way"]);
        assert_eq!(found("another error", 2), [""; 0]);
        let elsewhere = journal.resolved(SIGNATURE, &[], "now", 2).unwrap();
        assert_eq!(elsewhere, []);
        let plan: Vec<String> = journal
            .connection
            .prepare(&format!("EXPLAIN QUERY PLAN {RESOLVED}"))
            .unwrap()
            .query_map(params!["", "[]", "", 1], |row| row.get("detail"))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(
            plan.iter()
                .any(|step| step.contains("observation_signature")),
            "{plan:?}"
        );
    }
}
