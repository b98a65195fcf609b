//! Tells what a prompt does to the answer before it. A first word alone does not tell: "no worries".

use super::{Judged, LEAD_INS};
use crate::phrases::{Words, is_in};

/// The beginnings of orders to undo something.
const UNDOING: &str = "undo|revert|roll back|put it back|mach das rückgängig|撤销";

/// Words that name no part of a change.
const WHOLE_CHANGE: &str =
    "that|it|this|all|of|everything|please|again|the|your|last|change|changes";

/// Beginnings that say no.
const NO: &str = "no|nope|nein|non|いいえ";

/// Negations of the languages in which a short sentence is not recognised.
const NEGATIONS: &str = "nein|kein|keine|keinen|nicht|ohne|bez|nie|sin|pas|sans|без|не|不要|不用";

/// Beginnings of a request for an addition, which does not correct the earlier work.
const ADDING: &str = "add|write|create|document|füge|ajoute|añade|agrega|dodaj|添加";
const ALSO: &str = "also|and also|additionally|auch|aussi|además|też";

/// Returns whether a sentence orders to undo the last change as a whole.
pub(crate) fn undoes(sentence: &str) -> bool {
    let words = Words::new(sentence)
        .after("actually|hmm|wait|stop")
        .after(LEAD_INS);
    let rest = words.after(UNDOING);
    words.begin(UNDOING) && rest.iter().all(|word| is_in(WHOLE_CHANGE, word))
}

/// Returns whether a sentence says little more than "no" and a number: "no, 5 seconds".
pub(crate) fn gives_other_number(sentence: &str) -> bool {
    const MAX_WORDS: usize = 4;
    let words = Words::new(sentence);
    let has_number = sentence.contains(|c: char| c.is_ascii_digit());
    words.begin(NO) && words.iter().count() <= MAX_WORDS && has_number
}

/// Returns whether a sentence says no, which may also answer a question.
pub(crate) fn says_no(sentence: &str) -> bool {
    Words::new(sentence).begin(NO)
}

/// Returns whether a sentence says that something is wrong.
pub(crate) fn says_wrong(sentence: &str) -> bool {
    let Judged { words, cues, .. } = Judged::new(sentence);
    words.contain(cues.wrong)
}

/// Returns whether a text has a negation.
pub(crate) fn negates(text: &str) -> bool {
    let Judged { words, cues, .. } = Judged::new(text);
    words.contain(cues.negation) || words.contain(NEGATIONS)
}

/// Returns whether a sentence asks for something besides what was done.
pub(crate) fn adds(sentence: &str) -> bool {
    let words = Words::new(sentence);
    words.begin(ALSO) || words.after(LEAD_INS).begin(ADDING)
}
