//! Limits what an agent (Claude, running our commands or calling our tools) may do to notes.
//!
//! An agent writes in its own name, and writes or forgets a limited number of notes per session. A change
//! that would alter, hide or replace a person's note, or a note that several projects share, becomes a
//! proposal, which is unused until a person approves it. The policy covers our commands and tools only: the
//! author in a note's file is just a label, and an editor can write anything.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::{
    id::NoteId,
    note::{Enforce, Note, NoteType, Scope, Source, State, timestamp},
    project_key,
};

/// The most notes that agents may write or forget in one session.
pub const MAX_NOTES: usize = 10;

/// The highest confidence of an agent's note.
pub const MAX_CONFIDENCE: f64 = 0.9;

/// Whether notes of agents and models need approval.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Review {
    /// Used at once with a label; a person can undo it.
    #[default]
    Off,
    /// Unused until a person approves it.
    Proposals,
}

impl Review {
    /// Returns whether an agent's change of a note in this state must be proposed. A pending
    /// proposal may be changed directly, because it is unused anyway.
    pub fn holds(self, state: State) -> bool {
        self == Self::Proposals && state != State::Proposed
    }
}

/// Returns whether an agent may not change a note: it is a person's, or of several projects.
pub fn is_out_of_reach(project: &str, source: Source, by_agent: bool) -> bool {
    project_key::is_shared(project) || (source == Source::Human && !by_agent)
}

/// Returns whether a note is a session's record. It quotes the person, so an agent may link, supersede and
/// forget it, but not change it.
pub fn is_record(note_type: NoteType, by_agent: bool) -> bool {
    note_type == NoteType::Episodic && !by_agent
}

/// Returns whether an agent may write notes of a type. The notes of sessions quote the person.
pub fn may_write(note_type: NoteType) -> bool {
    note_type != NoteType::Episodic
}

/// Marks a note as written by an agent in a session. If it is shared, or `is_reaching` says that it
/// affects a note that is not an agent's, it becomes a proposal on this machine.
pub fn sign(note: &mut Note, session: Option<&str>, is_reaching: bool) {
    note.source = Source::Human;
    note.actor = Some("agent".to_owned());
    note.confidence = note.confidence.clamp(0.0, MAX_CONFIDENCE);
    note.session = session.map(str::to_owned);
    note.pinned = false;
    note.enforce = Enforce::Never;
    if note.is_shared() || is_reaching {
        note.state = State::Proposed;
        note.scope = Scope::MachineLocal;
    }
}

/// Returns a change that an agent may not make as a proposal: the changed note, which supersedes
/// the original.
pub fn proposal(
    changed: Note,
    id: NoteId,
    machine: String,
    session: Option<&str>,
    now: DateTime<Utc>,
) -> Note {
    let original = changed.id.to_string();
    let mut proposal = Note {
        id,
        machine_id: machine,
        created_at: timestamp(now),
        updated_at: timestamp(now),
        model: None,
        ..changed
    };
    if !proposal.supersedes.contains(&original) {
        proposal.supersedes.push(original);
    }
    sign(&mut proposal, session, true);
    proposal
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::note::GLOBAL;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_767_323_045, 0).unwrap()
    }

    fn note() -> Note {
        let mut note = Note::new(NoteId::made_of("n"), NoteType::Semantic, now());
        note.project = "p".to_owned();
        note
    }

    #[test]
    fn notes_of_people_and_shared_notes_are_out_of_reach() {
        for (project, source, by_agent, expected) in [
            ("p", Source::Human, false, true),
            ("p", Source::Human, true, false),
            ("p", Source::Reflection, false, false),
            ("p", Source::SessionEnd, false, false),
            (GLOBAL, Source::Reflection, false, true),
            (GLOBAL, Source::Human, true, true),
            ("group:web", Source::Human, true, true),
        ] {
            assert_eq!(
                is_out_of_reach(project, source, by_agent),
                expected,
                "{project} {source} {by_agent}"
            );
        }
    }

    #[test]
    fn an_agents_note_has_no_privileges() {
        // MCP-02
        let mut one = note();
        one.pinned = true;
        one.enforce = Enforce::Once;
        one.source = Source::Reflection;
        sign(&mut one, Some("s"), false);
        assert!(one.is_by_agent() && !one.pinned && one.enforce == Enforce::Never);
        assert_eq!(one.author(), "agent");
        assert_eq!(one.session.as_deref(), Some("s"));
        assert_eq!((one.state, one.scope), (State::Active, Scope::Portable));
        for (confidence, expected) in [(1.0, 0.9), (0.5, 0.5), (-1.0, 0.0)] {
            one.confidence = confidence;
            sign(&mut one, None, false);
            assert!((one.confidence - expected).abs() < f64::EPSILON);
        }
        for (project, is_reaching) in [(GLOBAL, false), ("group:web", false), ("p", true)] {
            let mut one = note();
            one.project = project.to_owned();
            sign(&mut one, None, is_reaching);
            assert_eq!(
                (one.state, one.scope),
                (State::Proposed, Scope::MachineLocal)
            );
        }
    }

    #[test]
    fn a_proposal_supersedes_the_note_that_it_changes() {
        let mut original = note();
        original.supersedes = vec!["older".to_owned()];
        original.title = "Changed".to_owned();
        original.pinned = true;
        let id = NoteId::made_of("new");
        let proposed = proposal(original.clone(), id, "laptop".to_owned(), Some("s"), now());
        assert_eq!(proposed.id, id);
        assert_eq!(proposed.supersedes, ["older", &original.id.to_string()]);
        assert_eq!(proposed.state, State::Proposed);
        assert_eq!(proposed.title, "Changed");
        assert!(!proposed.pinned && proposed.is_by_agent());
    }
}
