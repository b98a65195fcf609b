//! Usage of notes, before it is split into what other machines receive and what stays here.
//!
//! Machine-local notes are used like any other, and sharing may be off. What is not shared goes
//! into a [`LocalReceipt`], which cannot be appended to the synchronized receipts.

use std::collections::{BTreeMap, BTreeSet};

use chrono::{DateTime, Utc};

use super::{
    Feedback, InvalidReceipt, MAX_USED, PortableId, Receipt, ReceiptKey, SessionMark, Use, Weight,
};
use crate::{id::NoteId, note::Scope};

/// How notes were used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Usage {
    /// Notes that were injected.
    pub shown: BTreeSet<NoteId>,
    /// Notes that were used, by turn.
    pub used: BTreeMap<(u32, NoteId), Weight>,
    /// Feedback on notes.
    pub feedback: Vec<(NoteId, Feedback)>,
    /// Notes that somebody verified.
    pub verified: Vec<NoteId>,
}

impl Usage {
    /// Splits the usage into a receipt for other machines and a local one. A note with an unknown
    /// scope is local, because it may have been machine-local.
    pub fn part(
        &self,
        session: Option<SessionMark>,
        project: Option<&str>,
        now: DateTime<Utc>,
        scope: impl Fn(NoteId) -> Option<Scope>,
    ) -> (Receipt, LocalReceipt) {
        let told = |id: NoteId| scope(id).and_then(|scope| PortableId::new(id, scope));
        let head = || Receipt {
            session,
            project: project.map(str::to_owned),
            ..Receipt::new(now)
        };
        let kept = |id: NoteId| told(id).is_none().then_some(PortableId(id));
        (
            self.fill(head(), told),
            LocalReceipt(self.fill(head(), kept)),
        )
    }

    fn fill(&self, head: Receipt, take: impl Fn(NoteId) -> Option<PortableId>) -> Receipt {
        let feedback = self.feedback.iter();
        Receipt {
            shown: self.shown.iter().filter_map(|id| take(*id)).collect(),
            used: self.strongest(&take),
            feedback: feedback
                .filter_map(|(id, said)| Some((take(*id)?, *said)))
                .collect(),
            verified: self.verified.iter().filter_map(|id| take(*id)).collect(),
            ..head
        }
    }

    /// Returns at most [`MAX_USED`] uses: the strongest of each note before the second of any note.
    fn strongest(&self, take: impl Fn(NoteId) -> Option<PortableId>) -> Vec<Use> {
        let mut uses: Vec<Use> = self
            .used
            .iter()
            .filter_map(|((turn, id), weight)| {
                let (note, weight, turn) = (take(*id)?, *weight, *turn);
                Some(Use { note, weight, turn })
            })
            .collect();
        uses.sort_by(|a, b| b.weight.cmp(&a.weight).then(a.cmp(b)));
        let mut of_note: BTreeMap<PortableId, usize> = BTreeMap::new();
        let mut ranked: Vec<(usize, Use)> = uses
            .into_iter()
            .map(|used| {
                let earlier = of_note.entry(used.note).or_default();
                *earlier += 1;
                (*earlier, used)
            })
            .collect();
        ranked.sort_by_key(|(rank, _)| *rank);
        ranked.truncate(MAX_USED);
        ranked.into_iter().map(|(_, used)| used).collect()
    }
}

/// A receipt that never leaves this machine and may contain any note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalReceipt(pub(super) Receipt);

impl LocalReceipt {
    /// Returns its unique key.
    pub fn key(&self) -> ReceiptKey {
        self.0.key()
    }

    /// Returns whether it mentions no note.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns it as lines, like [`Receipt::to_lines`].
    pub fn to_text(&self) -> String {
        self.0.to_lines().concat()
    }

    /// Parses the result of [`LocalReceipt::to_text`].
    pub fn parse(text: &str) -> Result<Vec<Self>, InvalidReceipt> {
        let lines = text.lines();
        lines
            .map(|line| Receipt::parse_line(line.as_bytes()).map(Self))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::usage_log::Fold;

    fn now() -> DateTime<Utc> {
        DateTime::from_timestamp(1_772_618_400, 0).unwrap()
    }

    fn note(number: u32) -> NoteId {
        NoteId::of_session(&number.to_string())
    }

    fn travels(id: NoteId) -> Option<Scope> {
        (id != note(9)).then_some(Scope::Portable)
    }

    #[test]
    fn machine_local_notes_are_in_no_synchronized_receipt() {
        let stays = |id| {
            Some(if id == note(1) {
                Scope::MachineLocal
            } else {
                Scope::Portable
            })
        };
        let usage = Usage {
            shown: [note(1), note(2)].into(),
            used: [((1, note(1)), Weight::Explicit)].into(),
            feedback: vec![(note(1), Feedback::Good), (note(2), Feedback::Bad)],
            verified: vec![note(1)],
        };
        let (told, kept) = usage.part(None, Some("p"), now(), stays);
        assert!(!told.to_lines().concat().contains(&note(1).to_string()));
        assert_eq!((told.shown.len(), told.feedback.len()), (1, 1));
        assert!(kept.to_text().contains(&note(1).to_string()));
        assert!(!kept.to_text().contains(&note(2).to_string()));
        assert_eq!(LocalReceipt::parse(&kept.to_text()).unwrap(), [kept]);
        // A deleted note may have been machine-local.
        let (told, kept) = usage.part(None, None, now(), |_| None);
        assert!(told.is_empty() && !kept.is_empty());
    }

    #[test]
    fn local_receipts_count_like_synchronized_ones() {
        let session = Some(SessionMark::new("salt", "s"));
        let usage = Usage {
            used: [
                ((1, note(1)), Weight::Explicit),
                ((2, note(2)), Weight::Implicit),
            ]
            .into(),
            ..Usage::default()
        };
        let (_, kept) = usage.part(session, None, now(), |_| None);
        let (told, _) = usage.part(session, None, now(), |_| Some(Scope::Portable));
        let mut here = Fold::default();
        here.keep(kept.clone());
        here.keep(kept);
        let mut there = Fold::default();
        let source = super::super::ReceiptSource {
            machine: "laptop".to_owned(),
            month: super::super::Month::from_time(now()),
        };
        there.apply(source, told);
        assert_eq!(here.months(), there.months());
        assert_eq!(here.total().pairs.len(), 1);
    }

    #[test]
    fn the_strongest_uses_of_most_notes_are_shared() {
        let mut usage = Usage::default();
        for turn in 1..=20 {
            usage.used.insert((turn, note(1)), Weight::Implicit);
        }
        for number in 2..=9 {
            usage.used.insert((30, note(number)), Weight::Explicit);
        }
        let (told, _) = usage.part(None, None, now(), travels);
        assert_eq!(told.used.len(), MAX_USED);
        let notes: BTreeSet<_> = told.used.iter().map(|used| used.note).collect();
        assert_eq!(notes.len(), 8);
        assert!(
            told.used[..7]
                .iter()
                .all(|used| used.weight == Weight::Explicit)
        );
        assert_eq!(told.to_lines().len(), 1);
    }
}
