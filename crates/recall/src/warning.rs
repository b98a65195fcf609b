//! Which warning comes up at a tool call, if one does, and whether it stops it.
//!
//! A pure function of the call, the notes that may fit it and what the session has seen. Whoever shows
//! the warning records it.
//!
//! Silence is the usual answer: one warning at a call, two in a turn, each note once in a context.
//! How severe a warning is puts it before others; it never makes it fit. Only an explicit trigger of
//! a person's note may stop a call, and only once in a session, so that a repeated call passes.

use std::cmp::Reverse;

use anamnesis_core::{
    id::NoteId,
    note::{Enforce, Kind, Note, Severity, State},
    trigger::{Call, Specificity, Trigger},
};

/// How many warnings a turn has at most.
pub const MAX_IN_TURN: usize = 2;

/// The share of the call's words, weighed by rarity, that a note without triggers has to have.
const MIN_COVERAGE: f64 = 0.55;

/// How many words of the call a note without triggers has to have.
const MIN_TERMS: usize = 3;

/// How well the text of a note fits a call, as the engine of search tells it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relevance {
    /// The share of the call's words, weighed by rarity, that the note has, from 0 to 1.
    pub coverage: f64,
    /// How many words of the call the note has.
    pub terms: usize,
}

/// A note that may warn of a call.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// What it says now.
    pub note: &'a Note,
    /// Whether a person wrote or approved this very text.
    pub is_persons: bool,
    /// How well its text fits, if it was searched for.
    pub relevance: Option<Relevance>,
    /// Whether the context was given it since it was last empty.
    pub was_given: bool,
    /// Whether it has stopped a call of this session.
    pub has_stopped: bool,
}

/// What a warning does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is told beside the call's result.
    Context,
    /// It stops the call, this once.
    Deny,
}

/// A warning that comes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The note.
    pub note: NoteId,
    /// The line of the note that fits; none where its text does.
    pub trigger: Option<String>,
    /// What it does.
    pub action: Action,
}

/// Why a warning fits.
struct Fit {
    trigger: Option<Trigger>,
    specificity: Option<Specificity>,
}

/// Returns the warning for a call: the most severe, then the one with the narrowest trigger, then the
/// one with the least id.
///
/// `in_turn` is how many warnings this turn has had.
pub fn warning(call: &Call, candidates: &[Candidate<'_>], in_turn: usize) -> Option<Warning> {
    if in_turn >= MAX_IN_TURN {
        return None;
    }
    let fitting = candidates
        .iter()
        .filter(|candidate| may_warn(candidate))
        .filter_map(|candidate| Some((candidate, fit(call, candidate)?)));
    let (candidate, fit) = fitting.min_by_key(|(candidate, fit)| {
        (
            Reverse(candidate.note.severity),
            Reverse(fit.specificity),
            candidate.note.id,
        )
    })?;
    let action = if may_stop(candidate, &fit) {
        Action::Deny
    } else {
        Action::Context
    };
    Some(Warning {
        note: candidate.note.id,
        trigger: fit.trigger.map(|trigger| trigger.to_string()),
        action,
    })
}

fn may_warn(candidate: &Candidate<'_>) -> bool {
    let note = candidate.note;
    note.kind() == Kind::Antipattern && note.state == State::Active && !candidate.was_given
}

/// Tells why a note fits a call. One that has triggers comes up at these only; a line that cannot be
/// read is as good as none.
fn fit(call: &Call, candidate: &Candidate<'_>) -> Option<Fit> {
    let mut triggers = candidate
        .note
        .when
        .iter()
        .filter_map(|line| line.parse::<Trigger>().ok())
        .peekable();
    if triggers.peek().is_none() {
        return candidate.relevance.filter(is_enough).map(|_| Fit {
            trigger: None,
            specificity: None,
        });
    }
    let trigger = triggers
        .filter(|trigger| trigger.fits(call))
        .max_by_key(Trigger::specificity)?;
    Some(Fit {
        specificity: Some(trigger.specificity()),
        trigger: Some(trigger),
    })
}

fn is_enough(relevance: &Relevance) -> bool {
    relevance.coverage >= MIN_COVERAGE && relevance.terms >= MIN_TERMS
}

fn may_stop(candidate: &Candidate<'_>, fit: &Fit) -> bool {
    let note = candidate.note;
    fit.trigger.is_some()
        && note.enforce == Enforce::Once
        && note.severity >= Some(Severity::High)
        && candidate.is_persons
        && !note.is_by_agent()
        && !candidate.has_stopped
}

#[cfg(test)]
mod tests {
    use anamnesis_core::note::NoteType;
    use chrono::{DateTime, Utc};
    use serde_json::json;

    use super::*;

    fn note(name: &str, change: impl FnOnce(&mut Note)) -> Note {
        let mut note = Note {
            kind: Some(Kind::Antipattern),
            when: vec!["cmd: git push --force".to_owned()],
            ..Note::new(
                NoteId::of_session(name),
                NoteType::Procedural,
                DateTime::<Utc>::UNIX_EPOCH,
            )
        };
        change(&mut note);
        note
    }

    fn candidate(note: &Note) -> Candidate<'_> {
        Candidate {
            note,
            is_persons: true,
            relevance: None,
            was_given: false,
            has_stopped: false,
        }
    }

    fn push() -> Call {
        Call::of("Bash", &json!({"command": "git push --force origin main"}))
    }

    /// The action for one note, if it comes up.
    fn action(candidate: Candidate<'_>) -> Option<Action> {
        warning(&push(), &[candidate], 0).map(|warning| warning.action)
    }

    #[test]
    fn a_note_comes_up_where_its_trigger_fits() {
        let fits = note("a", |_| {});
        assert_eq!(
            warning(&push(), &[candidate(&fits)], 0),
            Some(Warning {
                note: fits.id,
                trigger: Some("cmd: git push --force".to_owned()),
                action: Action::Context,
            })
        );
        let other = Call::of("Bash", &json!({"command": "git push origin main"}));
        assert_eq!(warning(&other, &[candidate(&fits)], 0), None);
    }

    #[test]
    fn only_warnings_in_use_come_up() {
        for change in [
            |note: &mut Note| note.kind = Some(Kind::Skill),
            |note: &mut Note| note.state = State::Proposed,
            |note: &mut Note| note.state = State::Muted,
            |note: &mut Note| note.state = State::Forgotten,
            |note: &mut Note| note.when = vec!["cmd: git pull --force".to_owned()],
        ] {
            assert_eq!(action(candidate(&note("a", change))), None);
        }
    }

    #[test]
    fn a_call_is_stopped_only_where_all_speaks_for_it() {
        let stops = note("a", |note| {
            note.severity = Some(Severity::High);
            note.enforce = Enforce::Once;
        });
        assert_eq!(action(candidate(&stops)), Some(Action::Deny));
        let critical = Note {
            severity: Some(Severity::Critical),
            ..stops.clone()
        };
        assert_eq!(action(candidate(&critical)), Some(Action::Deny));
        for change in [
            |note: &mut Note| note.severity = Some(Severity::Medium),
            |note: &mut Note| note.severity = None,
            |note: &mut Note| note.enforce = Enforce::Never,
            |note: &mut Note| note.actor = Some("agent".to_owned()),
        ] {
            let mut note = stops.clone();
            change(&mut note);
            assert_eq!(action(candidate(&note)), Some(Action::Context));
        }
        let not_by_a_person = Candidate {
            is_persons: false,
            ..candidate(&stops)
        };
        assert_eq!(action(not_by_a_person), Some(Action::Context));
        // The context was emptied since: it is told again, and nothing is stopped again.
        let has_stopped = Candidate {
            has_stopped: true,
            ..candidate(&stops)
        };
        assert_eq!(action(has_stopped), Some(Action::Context));
        // The second call passes, in silence.
        let was_given = Candidate {
            has_stopped: true,
            was_given: true,
            ..candidate(&stops)
        };
        assert_eq!(action(was_given), None);
    }

    #[test]
    fn without_a_trigger_the_text_decides_and_never_stops() {
        let without = |change: fn(&mut Note)| {
            note("a", |note| {
                note.when.clear();
                note.severity = Some(Severity::Critical);
                note.enforce = Enforce::Once;
                change(note);
            })
        };
        let by_text = without(|_| {});
        let unreadable = without(|note| note.when = vec!["cmd: git".to_owned()]);
        let elsewhere = without(|note| note.when = vec!["path: *.sql".to_owned()]);
        for (coverage, terms, expected) in [
            (0.55, 3, Some(Action::Context)),
            (0.54, 3, None),
            (1.0, 2, None),
            (f64::NAN, 9, None),
        ] {
            let with = |note| {
                action(Candidate {
                    relevance: Some(Relevance { coverage, terms }),
                    ..candidate(note)
                })
            };
            assert_eq!(with(&by_text), expected, "{coverage} {terms}");
            assert_eq!(with(&unreadable), expected, "{coverage} {terms}");
            assert_eq!(with(&elsewhere), None, "{coverage} {terms}");
        }
        assert_eq!(action(candidate(&by_text)), None);
    }

    #[test]
    fn one_comes_up_and_none_after_two_in_a_turn() {
        let severe = note("severe", |note| note.severity = Some(Severity::Low));
        let narrow = note("narrow", |note| {
            note.when.push("cmd: git push --force main".to_owned());
        });
        let (one, other) = (note("one", |_| {}), note("other", |_| {}));
        let mut notes = [&other, &one, &narrow, &severe];
        let shown = |notes: &[&Note]| {
            let candidates: Vec<Candidate<'_>> = notes.iter().map(|note| candidate(note)).collect();
            warning(&push(), &candidates, 1).map(|warning| warning.note)
        };
        for _ in 0..2 {
            assert_eq!(shown(&notes), Some(severe.id));
            notes.reverse();
        }
        assert_eq!(shown(&[&one, &narrow, &other]), Some(narrow.id));
        assert_eq!(shown(&[&one, &other]), Some(one.id.min(other.id)));
        assert_eq!(warning(&push(), &[candidate(&one)], 2), None);
    }
}
