//! Shows a note together with the later notes that give up what it says.
//!
//! The index knows these pairs: see [`NoteCorrection`]. The later note comes directly before the
//! earlier one, and each says what the other is to it.

use std::collections::VecDeque;

use anamnesis_note::id::NoteId;
use anamnesis_store::index::{Error, Index, NoteCorrection};
use chrono::{DateTime, Utc};

/// Returns the remark about the later note: "was: 8080, until 12 Oct 2026".
pub fn remark(correction: &NoteCorrection) -> String {
    let until = correction.until.format("%-d %b %Y");
    format!("was: {}, until {until}", correction.was)
}

/// Returns the remark about the earlier note. `short` returns a note's short id.
pub fn remark_on_earlier(correction: &NoteCorrection, short: impl Fn(NoteId) -> String) -> String {
    let NoteCorrection { later, says, .. } = correction;
    format!("changed since by #{}: {says}", short(*later))
}

/// Returns the remarks about a note that is shown without the later ones.
pub fn remarks_on(
    index: &Index,
    id: NoteId,
    now: DateTime<Utc>,
    short: impl Fn(NoteId) -> String,
) -> Result<Vec<String>, Error> {
    let corrections = index.corrections_of(id, now)?.into_iter();
    Ok(corrections
        .map(|correction| remark_on_earlier(&correction, &short))
        .collect())
}

/// A note that is about to be shown.
pub(crate) trait Shown {
    /// Returns its id.
    fn id(&self) -> NoteId;

    /// Returns the remarks beside it.
    fn remarks(&mut self) -> &mut Vec<String>;
}

/// Puts the later notes directly before the notes that they correct, with remarks on both. `add`
/// returns a later note that is not among these, if it may be shown.
pub(crate) fn with_corrections<T: Shown>(
    index: &Index,
    now: DateTime<Utc>,
    shown: Vec<T>,
    mut add: impl FnMut(&NoteCorrection, &T) -> Result<Option<T>, Error>,
) -> Result<Vec<T>, Error> {
    let mut rest = VecDeque::from(shown);
    let mut given: Vec<T> = Vec::with_capacity(rest.len());
    while let Some(mut next) = rest.pop_front() {
        for correction in index.corrections_of(next.id(), now)? {
            let is_later = |note: &T| note.id() == correction.later;
            if !given.iter().any(is_later) {
                let place = rest.iter().position(is_later);
                let later = match place.and_then(|place| rest.remove(place)) {
                    Some(later) => Some(later),
                    None => add(&correction, &next)?,
                };
                given.extend(later);
            }
            let mut known = given.iter_mut();
            if let Some(later) = known.find(|note| note.id() == correction.later) {
                later.remarks().push(remark(&correction));
            }
            let on_earlier = remark_on_earlier(&correction, NoteId::short);
            next.remarks().push(on_earlier);
        }
        given.push(next);
    }
    Ok(given)
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::{NoteType, timestamp};
    use anamnesis_store::notes::Stored;
    use chrono::TimeDelta;

    use crate::{
        note_set::{
            InjectedNote, Limits,
            tests::{LIMITS, prompted},
        },
        session_start::{
            self,
            tests::{Fixture, now},
        },
    };

    /// Adds a session note with this text, so many days ago.
    fn session(fixture: &Fixture, text: &str, days: i64) -> Stored {
        fixture.add("Look at the build", |note| {
            note.note_type = NoteType::Episodic;
            note.session = Some(note.id.to_string());
            note.body = format!("**Said:**\n- {text}\n\n**Outcome:** All is well.");
            note.updated_at = timestamp(now() - TimeDelta::days(days));
        })
    }

    #[test]
    fn the_later_note_comes_before_what_it_corrects_whatever_the_limit() {
        let fixture = Fixture::new();
        let old = session(&fixture, "We use Redux for the dashboard state.", 9);
        let last = session(&fixture, "Redux is gone, take Jotai.", 2);
        session(&fixture, "We use Vitest for the unit tests.", 1);
        let limits = Limits { notes: 1, ..LIMITS };
        let question = "how do we handle the dashboard state?";
        let outcome = prompted(&fixture, question, limits, None);
        let ids = |given: &InjectedNote| given.recalled.note.id;
        let given: Vec<_> = outcome.given.iter().map(ids).collect();
        assert_eq!(given, [last.path.id, old.path.id]);
        let remarks = |place: usize| outcome.given[place].recalled.remarks.join(" · ");
        assert_eq!(remarks(0), "was: Redux, until 31 Dec 2025");
        let on_old = format!(
            "changed since by #{}: Redux is gone, take Jotai.",
            last.path.id.short()
        );
        assert_eq!(remarks(1), on_old);
        let held = |id: &str| outcome.held.iter().any(|held| held.note == id);
        assert!(!held(&last.path.id.to_string()));
    }

    #[test]
    fn a_session_start_injects_the_later_note_before_what_it_corrects() {
        let fixture = Fixture::new();
        session(&fixture, "We use Redux for the dashboard.", 9);
        let last = session(&fixture, "We switched from Redux to Zustand.", 5);
        let index = fixture.refreshed();
        let request = session_start::tests::request();
        let set = session_start::working_set(&index, &fixture.notes, &request).unwrap();
        let given: Vec<_> = set
            .chosen
            .iter()
            .map(|chosen| (chosen.note.id, chosen.remarks.join(" · ")))
            .collect();
        assert_eq!(given.len(), 2);
        assert_eq!(
            given[0],
            (last.path.id, "was: Redux, until 28 Dec 2025".to_owned())
        );
        assert!(given[1].1.starts_with("changed since by #"), "{given:?}");
    }
}
