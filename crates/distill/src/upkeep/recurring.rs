//! Proposes warnings about recurring failures.
//!
//! A warning is proposed once: its id is derived from the project and the failure's signature, so a
//! rejected or forgotten one does not come back.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    draft::{safe_line, title_of},
    id::NoteId,
    link::{Link, Relation},
    note::{Kind, Note, NoteType, Scope, Source, State},
    synced_lines::Aliases,
};
use anamnesis_store::journal::Mended;
use chrono::{DateTime, Utc};

/// The minimum number of sessions with the failure that have a note.
const SESSIONS: usize = 3;

/// The maximum number of fixes in a warning.
const MAX_WAYS: usize = 6;

/// The confidence of a generated warning.
const CONFIDENCE: f64 = 0.6;

/// Makes proposals from fixes observed in sessions, newest first. `has_note` returns whether a
/// session's note still exists. The proposals stay on this machine.
pub fn proposals(
    mended: &[Mended],
    aliases: &Aliases,
    has_note: impl Fn(NoteId) -> bool,
    machine: &str,
    now: DateTime<Utc>,
) -> Vec<Note> {
    let mut failures: BTreeMap<(&str, &str), Vec<&Mended>> = BTreeMap::new();
    for mended in mended {
        if has_note(NoteId::of_session(&mended.session)) {
            let project = aliases.current(&mended.project);
            let key = (project, mended.signature.as_str());
            failures.entry(key).or_default().push(mended);
        }
    }
    let mut proposals = Vec::new();
    for ((project, signature), all) in failures {
        let sessions: BTreeSet<&str> = all.iter().map(|mended| mended.session.as_str()).collect();
        if sessions.len() < SESSIONS {
            continue;
        }
        let told = all
            .iter()
            .map(|mended| safe_line(&mended.observation.subtitle));
        let told = told.into_iter().find(|told| !told.is_empty());
        let told = told.unwrap_or_else(|| safe_line(signature));
        let mut ways: Vec<String> = Vec::new();
        for mended in &all {
            let way = safe_line(&mended.observation.title);
            if ways.len() < MAX_WAYS && !way.is_empty() && !ways.contains(&way) {
                ways.push(way);
            }
        }
        let id = NoteId::made_of(&format!("recurring failure of {project}: {signature}"));
        let ways: String = ways.iter().map(|way| format!("- {way}\n")).collect();
        let count = sessions.len();
        let body = format!("Came up in {count} sessions: {told}\n\nWhat fixed it:\n\n{ways}");
        let mut note = Note {
            title: title_of(&format!("Comes up again: {told}")),
            project: project.to_owned(),
            machine_id: machine.to_owned(),
            scope: Scope::MachineLocal,
            source: Source::Reflection,
            confidence: CONFIDENCE,
            kind: Some(Kind::Antipattern),
            state: State::Proposed,
            body: body.trim_end().to_owned(),
            ..Note::new(id, NoteType::Procedural, now)
        };
        note.add_tags([Kind::Antipattern.as_str()]);
        for session in sessions {
            let source = Link {
                relation: Relation::CausedBy,
                target: NoteId::of_session(session),
                weight: None,
            };
            source.declare(&mut note);
        }
        proposals.push(note);
    }
    proposals
}

#[cfg(test)]
mod tests {
    use anamnesis_session::observe::{Kind as Seen, Observation};

    use super::*;

    fn mended(session: &str, project: &str, signature: &str, title: &str) -> Mended {
        Mended {
            signature: signature.to_owned(),
            session: session.to_owned(),
            project: project.to_owned(),
            observation: Observation {
                kind: Seen::Bugfix,
                title: title.to_owned(),
                subtitle: "error: no stub on port 9090".to_owned(),
                narrative: String::new(),
                facts: Vec::new(),
                concepts: Vec::new(),
                files_read: Vec::new(),
                files_modified: Vec::new(),
                events: Vec::new(),
                error_signature: Some(signature.to_owned()),
            },
        }
    }

    fn made(all: &[Mended]) -> Vec<Note> {
        let has_note = |id| id != NoteId::of_session("without a note");
        proposals(
            all,
            &Aliases::default(),
            has_note,
            "laptop",
            DateTime::UNIX_EPOCH,
        )
    }

    #[test]
    fn a_failure_of_three_sessions_with_notes_is_proposed() {
        let mut all = vec![
            mended("1", "p", "no stub", "`make test` passes again"),
            mended("1", "p", "no stub", "`make test` passes again"),
            mended(
                "2",
                "p",
                "no stub",
                "`make stub` works where `make test` failed",
            ),
            mended("without a note", "p", "no stub", "x"),
            mended("3", "q", "no stub", "x"),
            mended("4", "p", "another error", "x"),
        ];
        assert_eq!(made(&all), []);
        all.push(mended("5", "p", "no stub", "`make test` passes again"));
        let [warning] = made(&all).try_into().unwrap();
        assert_eq!(warning.title, "Comes up again: error: no stub on port 9090");
        assert_eq!(
            warning.body,
            "Came up in 3 sessions: error: no stub on port 9090\n\nWhat fixed it:\n\n\
             - `make test` passes again\n- `make stub` works where `make test` failed"
        );
        let sources = ["1", "2", "5"].map(|id| format!("caused-by {}", NoteId::of_session(id)));
        assert_eq!(warning.links, sources);
        let is_inert = (warning.state, warning.scope) == (State::Proposed, Scope::MachineLocal);
        assert!(is_inert && warning.source == Source::Reflection);
        // The same failure gives the same note at any time.
        all.push(mended("6", "p", "no stub", "y"));
        assert_eq!(made(&all)[0].id, warning.id);
    }
}
