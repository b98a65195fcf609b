//! Which notes a model may be shown.

use super::{Kind, Note, NoteType, State};

/// The tag of a session note that a reflection has used.
pub const REFLECTED_TAG: &str = "reflected";

/// The tag of an imported note that is muted until a person approves it.
pub const UNREVIEWED_TAG: &str = "unreviewed";

/// The properties of a note that decide whether a model may be shown it, apart from its project.
#[derive(Debug, Clone, Copy)]
pub struct Visibility {
    /// The state.
    pub state: State,
    /// The kind.
    pub kind: Kind,
    /// The type.
    pub note_type: NoteType,
    /// Whether a reflection has used it.
    pub is_reflected: bool,
    /// Whether a note in use supersedes it.
    pub is_superseded: bool,
}

impl Visibility {
    /// Returns the properties of a note that no other note supersedes.
    pub fn from_note(note: &Note) -> Self {
        Self {
            state: note.state,
            kind: note.kind(),
            note_type: note.note_type,
            is_reflected: note.has_tag(REFLECTED_TAG),
            is_superseded: false,
        }
    }

    /// Returns whether a question may be answered with it: in use, muted or not, and not superseded.
    pub fn may_answer(self) -> bool {
        self.state.is_in_use() && !self.is_superseded
    }

    /// Returns whether it is in force: in use, not muted and not superseded. Warnings and tasks are
    /// shown if they are.
    pub fn is_in_force(self) -> bool {
        self.state == State::Active && !self.is_superseded
    }

    /// Returns whether it may be injected automatically: in force, no task, and no session note that
    /// a reflection has used. Tasks are named beside the injected notes.
    pub fn may_surface(self) -> bool {
        self.is_in_force()
            && self.kind != Kind::Task
            && !(self.note_type == NoteType::Episodic && self.is_reflected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_notes_in_force_surface() {
        let fact = Visibility {
            state: State::Active,
            kind: Kind::Fact,
            note_type: NoteType::Semantic,
            is_reflected: false,
            is_superseded: false,
        };
        let verdict =
            |note: Visibility| (note.may_answer(), note.is_in_force(), note.may_surface());
        let session = Visibility {
            note_type: NoteType::Episodic,
            ..fact
        };
        let with_state = |state| Visibility { state, ..fact };
        for (note, expected) in [
            (fact, (true, true, true)),
            (with_state(State::Muted), (true, false, false)),
            (with_state(State::Proposed), (false, false, false)),
            (with_state(State::Forgotten), (false, false, false)),
            (
                Visibility {
                    is_superseded: true,
                    ..fact
                },
                (false, false, false),
            ),
            (
                Visibility {
                    kind: Kind::Task,
                    ..fact
                },
                (true, true, false),
            ),
            (
                Visibility {
                    is_reflected: true,
                    ..fact
                },
                (true, true, true),
            ),
            (session, (true, true, true)),
            (
                Visibility {
                    is_reflected: true,
                    ..session
                },
                (true, true, false),
            ),
        ] {
            assert_eq!(verdict(note), expected, "{note:?}");
        }
    }
}
