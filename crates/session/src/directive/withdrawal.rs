//! Tells whether a sentence of a person takes a standing instruction back, in so many words.

use std::collections::BTreeSet;

use anamnesis_text::terms::terms;

use super::{Judged, LEAD_INS, is_question, is_specific};
use crate::phrases::{Words, is_in};

/// Beginnings that take back what they name as a rule.
const FORGETTING: &str = "\
    forget about|forget|scrap|drop|ignore|cancel|disregard|never mind|nevermind|vergiss|ignoriere|streich|oublie|\
    olvida|ignora|zapomnij o|ignoruj|忘掉|忽略|取消";
const NAMED: &str = "\
    rule|rules|instruction|instructions|convention|conventions|policy|guideline|guidelines|what i said|what i told|\
    regel|regeln|vorgabe|was ich|règle|règles|consigne|ce que j'ai dit|regla|reglas|lo que dije|zasadę|zasadzie|规则|规定|\
    约定|我说的";

/// Beginnings that permit or no longer demand, and words that say that this lasts.
const PERMITTING: &str = "\
    you may|you can|feel free to|it's fine to|it is fine to|it's ok to|no need to|there is no need to|there's no need to|\
    you don't have to|you dont have to|you do not have to|you don't need to|you dont need to|you do not need to|\
    you no longer need to|you no longer have to|du kannst|du darfst|du musst|tu peux|puedes|możesz|nie musisz|你可以|不用再|不必再";
const LASTING: &str = "\
    may now|again|anymore|any more|any longer|no longer|from now on|wieder|ab jetzt|nicht mehr|à nouveau|de nouveau|de nuevo|\
    znowu|już|再|重新|以后";

/// Phrases that allow for good what a rule forbids, and words with which it does.
const ALLOWING: &str = "\
    is allowed|are allowed|fine from now on|ok from now on|okay from now on|ist ab jetzt erlaubt|sind ab jetzt erlaubt|\
    sind wieder erlaubt|ist wieder erlaubt";
const OPPOSED: &str = "not|never|don't|dont|avoid|no|instead of|nie|niemals|kein|keine|keinen";

/// Phrases before the name of a dropped tool, phrases after it, words that end the name, and conditions.
const DROPPING: &str = "\
    we dropped|we've dropped|we have dropped|we removed|we retired|we abandoned|we got rid of|we stopped using|we no longer use|\
    we switched from|we've switched from|we have switched from|we moved from|we migrated from";
const GONE: &str = "is gone|was removed|was dropped|was retired|no longer exists|has been removed|ist weg|gibt es nicht mehr";
const BEHIND: &str = "to|for|in|because|as|since|and|so|now|completely|entirely|last";
const CONDITIONAL: &str = "if|when|unless|until|once|wenn|falls|sobald";

/// Words that are in most rules.
const GENERAL: &str = "\
    always|never|don't|dont|do|not|no|please|must|should|every|each|all|any|before|after|when|whenever|without|the|a|an|\
    in|on|of|for|to|auf|mit|zu|für|bei|von|der|die|das|den|dem|und|and|or|you|we|i|it|is|are|be|with|use|using|now|only|just|about|that|this|what|said|told";

/// Returns whether a sentence of a person may take an earlier instruction back: see [`withdraws`].
pub fn takes_back(sentence: &str) -> bool {
    let words = Words::new(sentence).after(LEAD_INS);
    let judged = Judged::new(sentence);
    ended(&judged).is_some()
        || permits(&judged)
        || (words.begin(FORGETTING) || words.contain("not"))
            && (names_rule(&judged) || replaced(&judged).is_some())
}

/// Returns whether a sentence says that an instruction is to be forgotten.
pub(super) fn names_rule(judged: &Judged<'_>) -> bool {
    let first = judged.first();
    !is_question(judged.sentence) && first.begin(FORGETTING) && first.contain(NAMED)
}

fn permits(judged: &Judged<'_>) -> bool {
    !is_question(judged.sentence)
        && (judged.first().begin(PERMITTING) || judged.words.contain(ALLOWING))
        && judged.words.contain(LASTING)
        && !judged.words.contain("try again|run again")
}

/// Returns whether a sentence of a person takes an earlier instruction back: it names the rule to be
/// forgotten, permits most of what it is about, or says what is used instead or no longer.
pub fn withdraws(sentence: &str, rule: &str) -> bool {
    let judged = Judged::new(sentence);
    let rule_words = || content(rule, &judged);
    if names_rule(&judged) {
        let named = judged.first().without(NAMED).after(FORGETTING);
        let named = content(named.as_str(), &judged);
        !named.is_empty() && named.is_subset(&rule_words())
    } else if permits(&judged) {
        let rule_words = rule_words();
        let common = content(sentence, &judged).intersection(&rule_words).count();
        let is_meant = judged.first().begin(PERMITTING) || Words::new(rule).contain(OPPOSED);
        is_meant && common >= 2 && common * 2 >= rule_words.len()
    } else {
        replaces(&judged, rule)
    }
}

/// Returns the terms of a text without those that are in most rules.
fn content(text: &str, judged: &Judged<'_>) -> BTreeSet<String> {
    let cues = judged.cues;
    let words = Words::new(text).without(cues.general).without(cues.here);
    let words = words.without(cues.adverb).without(GENERAL);
    terms(words.as_str()).into_iter().collect()
}

/// Returns what a sentence puts out of use: "from now on use pnpm, not npm".
fn replaced<'a>(judged: &'a Judged<'_>) -> Option<&'a str> {
    let first = judged
        .clauses
        .iter()
        .position(|clause| clause.contain("use|using|switch to"))?;
    let clauses = judged.clauses.get(first + 1..)?;
    clauses.iter().find_map(|clause| {
        let old = clause.as_str().strip_prefix("not ")?;
        // `x` is in the place of what is quoted.
        (!old.contains(' ') && old != "x").then_some(old)
    })
}

/// Returns the name of the tool that a sentence drops: Jest in "we switched from Jest to Vitest".
fn ended(judged: &Judged<'_>) -> Option<String> {
    const MAX_WORDS: usize = 2;
    if is_question(judged.sentence) || judged.words.contain(CONDITIONAL) {
        return None;
    }
    judged.clauses.iter().find_map(|clause| {
        let text = clause.as_str();
        let after = |phrase: &str| text.strip_prefix(phrase)?.strip_prefix(' ');
        let before = |phrase: &str| text.strip_suffix(phrase)?.strip_suffix(' ');
        let name = DROPPING.split('|').find_map(after);
        let name = name.or_else(|| GONE.split('|').find_map(before))?;
        let name = name.split(' ').take_while(|word| !is_in(BEHIND, word));
        let name: Vec<&str> = name.collect();
        (1..=MAX_WORDS)
            .contains(&name.len())
            .then(|| name.join(" "))
    })
}

/// Returns whether a sentence replaces or drops something that a rule demands. The dropped thing has to be a
/// name or a tool that the rule uses: an error may be gone, too.
fn replaces(judged: &Judged<'_>, rule: &str) -> bool {
    let told = Words::new(rule);
    let uses = |old: &str| {
        let used = ["use", "uses", "using", "with"].map(|verb| format!("{verb} {old}"));
        told.contain(&used.join("|"))
    };
    let is_named = |old: &str| {
        let words = [judged.sentence, rule].map(|text| text.split_whitespace().skip(1));
        let words = words.into_iter().flatten();
        let mut names =
            words.filter(|word| is_specific(word) || word.starts_with(char::is_uppercase));
        told.contain(old)
            && (judged.is_general() || names.any(|word| Words::new(word).as_str() == old))
    };
    !told.contain(OPPOSED)
        && (replaced(judged).is_some_and(uses)
            || ended(judged).is_some_and(|old| uses(&old) || is_named(&old)))
}
