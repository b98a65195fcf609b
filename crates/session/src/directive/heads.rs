//! Tells which heads their items mean nothing without: "Never:", "Please follow these rules:".

use super::{
    Judged, LEAD_INS,
    cues::{Cues, all_cues},
    stands_alone,
};
use crate::phrases::Words;

/// Words with which a head points to its items.
const POINTING: &str = "\
    the following|following|these|this|those|below|folgende|folgenden|diese|diesen|ces|suivantes|suivants|estas|estos|\
    siguientes|queste|questi|seguenti|estes|seguintes|deze|volgende|następujące|następujących|te|tych|эти|этих|следующие|\
    следующих|以下|这些|如下|以下の";

/// Other words of a head that names nothing besides its rules.
const FRAMING: &str = "\
    do|any of|all of|things|the|our|my|your|some|are|apply|here|and|you|must|should|sind|gelten|unsere|die|keep in mind|bear in mind";

/// Orders to keep to what a head points to.
const KEEPING_TO: &str = "\
    follow|apply|obey|respect|stick to|adhere to|keep to|befolge|beachte|halte dich an|respecte|suis|sigue|respeta|cumple|\
    segui|rispetta|siga|respeite|volg|stosuj|przestrzegaj|trzymaj się|соблюдай|следуй|遵守|遵循";

/// Returns whether a head denies, holds in general or names rules, so that an item alone says something else.
pub(crate) fn binds_items(head: &str) -> bool {
    let Judged { words, cues, .. } = Judged::new(head);
    let binding = [
        cues.negation,
        cues.forbidding,
        cues.adverb,
        cues.general,
        cues.rules,
    ];
    binding.iter().any(|cue| words.contain(cue)) || announces_rules(head)
}

/// Returns whether a line is the head of a list of rules: "the rules are:", "Never do these:". Rules that are
/// to be written, or that fail, are none.
pub(crate) fn announces_rules(head: &str) -> bool {
    let judged = Judged::new(head);
    let Judged { words, cues, .. } = &judged;
    let plain = words.without(POINTING).after("are|sind|son|sont");
    head.ends_with([':', '：'])
        && !words.contain(cues.failing)
        && !words.contain("fail|break|violate")
        && !words.contain(cues.step)
        && stands_alone(plain.as_str())
        && (judged.is_general()
            || all_cues().any(|cues| is_bare(words, cues))
            || !judged.first().begin(cues.order) && names_rules(&judged, &plain))
}

/// Returns whether a head consists of a general cue, in a language that so few words do not tell. The Polish
/// "nie" only denies.
fn is_bare(words: &Words, cues: &Cues) -> bool {
    let words = words.after(LEAD_INS);
    let is_cue = [cues.general, cues.adverb, "keep in mind|bear in mind"];
    let rest = words.without(cues.general).without(cues.adverb);
    let rest = rest.without(cues.here).without(POINTING).without(FRAMING);
    rest.as_str().is_empty()
        && words.as_str() != "nie"
        && is_cue.iter().any(|cue| words.contain(cue))
}

/// Returns whether a head names rules; `plain` is without the words that point to the items. Such words
/// belong to an order to keep to them, or the head says nothing else.
fn names_rules(judged: &Judged<'_>, plain: &Words) -> bool {
    /// How many words do not tell their language.
    const FEW: usize = 3;
    let words = &judged.words;
    let is_short = words.iter().count() <= FEW;
    let mut languages = all_cues().filter(|cues| is_short || std::ptr::eq(*cues, judged.cues));
    languages.any(|cues| {
        let is_only = || {
            plain
                .without(cues.rules)
                .without(FRAMING)
                .as_str()
                .is_empty()
        };
        words.contain(cues.rules)
            && (!words.contain(POINTING) || judged.first().begin(KEEPING_TO) || is_only())
    })
}
