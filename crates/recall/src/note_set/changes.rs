//! Adds the later notes that change what an injected note says, or quotes them.

use std::collections::BTreeSet;

use anamnesis_note::id::NoteId;
use anamnesis_store::{
    index::{Error, Index},
    journal::Evidence,
};

use super::{Admitted, InjectedNote, ReadNote, Selection};
use crate::{
    last_word::{EarlierText, LastWord},
    reason::{InjectionReason, WithholdingReason},
};

impl Admitted {
    /// Makes a note that changes what an admitted note says; `own` is its own match, if it has one.
    fn by_change(word: &LastWord, changed: &Self, own: Option<&Self>, remark: String) -> Self {
        let evidence = own.map_or_else(
            || Evidence {
                via: Some(("changes".to_owned(), changed.id.to_string())),
                ..changed.evidence.clone()
            },
            |own| own.evidence.clone(),
        );
        let remarks = own.map_or(&[][..], |own| &own.remarks);
        Self {
            id: word.later,
            origin: changed.origin,
            evidence,
            score: changed.score,
            reason: own.map_or(InjectionReason::ChangesMatch, |own| own.reason),
            remarks: remarks.iter().cloned().chain([remark]).collect(),
            comes_with_changed: true,
        }
    }
}

impl Selection<'_> {
    /// Adds a note, after the notes that change what it says. Returns why it is withheld instead: a
    /// note of which nothing is left.
    pub(super) fn give(
        &mut self,
        index: &Index,
        admitted: &[Admitted],
        candidate: &Admitted,
        mut given: InjectedNote,
    ) -> Result<Option<WithholdingReason>, Error> {
        let limit = self.request.limits.changes;
        let text = EarlierText::of_note(&given.recalled.note, &candidate.evidence.matched);
        let words = match limit {
            0 => Vec::new(),
            _ => self.later.last_words(&text)?,
        };
        let (certain, uncertain): (Vec<LastWord>, Vec<LastWord>) =
            words.into_iter().partition(|word| word.is_certain);
        let mut is_whole = false;
        for word in certain.into_iter().take(limit) {
            let known = self.outcome.given.iter_mut();
            let mut known = known.filter(|known| known.recalled.note.id == word.later);
            let remark = word.remark(NoteId::short);
            if let Some(known) = known.next() {
                if !known.recalled.remarks.contains(&remark) {
                    known.recalled.remarks.push(remark);
                }
            } else {
                let own = admitted.iter().find(|own| own.id == word.later);
                let later = Admitted::by_change(&word, candidate, own, remark);
                match self.read_note(index, &later)? {
                    ReadNote::Injected(mut later) => {
                        later.recalled.at = word.later_at;
                        later.later.clone_from(&uncertain);
                        self.outcome.given.push(*later);
                    }
                    // The context has it.
                    ReadNote::Withheld(WithholdingReason::GivenBefore) => {}
                    ReadNote::Withheld(_) => continue,
                }
            }
            is_whole |= word.is_whole;
            given
                .recalled
                .remarks
                .push(word.remark_on_earlier(NoteId::short));
        }
        if is_whole {
            return Ok(Some(WithholdingReason::Replaced));
        }
        given.later = uncertain;
        self.outcome.given.push(given);
        Ok(None)
    }

    /// Quotes the later notes that may change an injected one, or names them if they are injected,
    /// too.
    pub(super) fn remark_later(&mut self) {
        let given = self.outcome.given.iter();
        let ids: BTreeSet<NoteId> = given.map(|given| given.recalled.note.id).collect();
        for given in &mut self.outcome.given {
            let own = given.recalled.note.id;
            for word in given.later.drain(..) {
                if word.later != own && Some(word.later) != self.request.own {
                    given.recalled.remarks.push(if ids.contains(&word.later) {
                        word.remark_on_earlier(NoteId::short)
                    } else {
                        word.line(NoteId::short)
                    });
                }
            }
        }
    }
}
