//! Chooses what the model's answers tell, and the client's summary of them.

use std::collections::HashSet;

use super::{
    ParsedDigest, SessionDigest, answer,
    choose::{Candidate, Known, Limits, choose},
    compaction::Section,
    grown, summarised,
    title::naming_words,
};
use crate::{
    directive,
    observe::{self, ARROW},
    phrases::sum_of_marks,
    prose::shorten,
};

/// The limits of what the answers tell.
const TOLD: Limits = Limits {
    characters: 420,
    line: 210,
    lines: 6,
    lines_per_turn: 3,
};

/// The limits of what the client's summary of the session adds.
const COMPACTED: Limits = Limits {
    characters: 360,
    line: 200,
    lines: 3,
    lines_per_turn: 3,
};

/// Statements chosen from the answers.
#[derive(Default)]
pub(super) struct Told {
    /// Whole sentences of earlier answers that say what is done, and why.
    pub(super) decided: Vec<String>,
    /// Other whole sentences of earlier answers.
    pub(super) found: Vec<String>,
    /// Statements of the last substantial answer.
    pub(super) outcome: Vec<String>,
}

/// Chooses what the answers tell, without what is known already.
pub(super) fn told(parsed: &ParsedDigest, known: &[String]) -> Told {
    const LAST: f32 = 0.8;
    const OPEN_FAILURE: f32 = 1.0;
    const AT_AN_END: f32 = 0.3;
    /// The minimum weight of a sentence of an earlier answer.
    const FINDING: f32 = 1.5;
    let limits = grown(TOLD, parsed.prompts.len());
    let answers = &parsed.answers;
    let known = Known::new(known);
    let fixed = fixed_problems(answers);
    let decides = |turn: usize, text: &str| {
        answer::decides(text) && (!answer::recommends(text) || parsed.is_carried_out(turn))
    };
    let substantial = answers
        .iter()
        .rposition(|answer| answer::is_substantial(answer));
    let last = substantial.or(answers.iter().rposition(|answer| !answer.is_empty()));
    let mut candidates = Vec::new();
    for (turn, statements) in answers.iter().enumerate() {
        let count = statements.len();
        let is_last = Some(turn) >= last;
        for (position, text) in statements.iter().enumerate() {
            let is_open = !is_last && is_left_open(&fixed, turn, position, text);
            let is_usable = is_last
                || (answer::is_whole(text)
                    && (is_open
                        || !answer::tells_open_failure(text)
                            && (decides(turn, text) || answer::weight(text) >= FINDING))
                    && text.chars().count() <= limits.line);
            let tells = !directive::is_question(text)
                && !answer::announces(text)
                && (!text.ends_with([':', '：']) || directive::specifics(text) >= 1.0);
            if !is_usable || !tells || known.has(text) || parsed.is_contradicted(turn, text) {
                continue;
            }
            let is_at_an_end = position < 6 || position + 3 >= count;
            let marks = [
                (is_last, LAST),
                (is_open, OPEN_FAILURE),
                (is_at_an_end, AT_AN_END),
            ];
            candidates.push(Candidate {
                weight: answer::weight(text) + sum_of_marks(&marks),
                turn,
                position,
                text: text.to_owned(),
            });
        }
    }
    let mut told = Told::default();
    for (turn, text) in choose(candidates, limits) {
        let part = match Some(turn) >= last {
            true => &mut told.outcome,
            false if decides(turn, &text) => &mut told.decided,
            false => &mut told.found,
        };
        part.push(text);
    }
    if told.decided.is_empty() && told.found.is_empty() && told.outcome.is_empty() {
        // A short answer is better than none.
        let turns = answers.iter().enumerate().rev();
        let mut statements = turns.flat_map(|(turn, all)| all.iter().map(move |text| (turn, text)));
        let statement = statements.find(|(turn, text)| {
            !answer::is_remark(text) && !known.has(text) && !parsed.is_contradicted(*turn, text)
        });
        told.outcome
            .extend(statement.map(|(_, text)| shorten(text, TOLD.line)));
    }
    let changes = last.map_or_else(Vec::new, |last| changes(parsed, last));
    let is_in_change = |line: &String| changes.iter().any(|change| change.contains(line.as_str()));
    told.outcome.retain(|line| !is_in_change(line));
    told.outcome.splice(0..0, changes);
    told
}

/// Returns the latest prompts, newest first, whose turns changed what the last answer that tells something
/// says, with their short answers: "30 seconds please → Set." `last` is that answer's turn.
fn changes(parsed: &ParsedDigest, last: usize) -> Vec<String> {
    const MAX_CHANGES: usize = 2;
    let later = parsed.prompts.iter().rev();
    let later = later.filter(|prompt| prompt.turn > last);
    let changes = later.filter_map(|prompt| {
        let answer = parsed.digest.turns.get(prompt.turn)?.answer.as_deref()?;
        let answer = answer.lines().find(|line| !line.trim().is_empty())?;
        let said: Vec<&str> = prompt.sentences().map(String::as_str).collect();
        let first = said.first()?;
        let is_reworked = parsed.is_reworked(last, prompt.turn);
        let is_value = directive::changes_value(first);
        let is_correction = directive::contradicts(first) && parsed.is_answer_rejected(last)
            || is_value && is_reworked;
        let label = match is_correction {
            true => answer::CORRECTED,
            false if is_value || is_reworked && !directive::adds(first) => answer::CHANGED,
            false => return None,
        };
        let said = shorten(&said.join(" "), TOLD.line / 2);
        let answer = shorten(answer.trim(), TOLD.line / 2);
        Some(format!("{label}{said}{ARROW}{answer}"))
    });
    changes.take(MAX_CHANGES).collect()
}

/// Chooses the errors with their fixes, and the decisions, of the client's summary.
pub(super) fn found_by_client(digest: &SessionDigest, known: &[String]) -> Vec<String> {
    let known = Known::new(known);
    let items = summarised(digest, Section::Findings)
        .into_iter()
        .enumerate();
    let candidates = items.filter(|(_, text)| !answer::is_remark(text) && !known.has(text));
    let candidates = candidates.map(|(position, text)| Candidate {
        weight: answer::weight(&text),
        turn: 0,
        position,
        text,
    });
    let chosen = choose(candidates.collect(), COMPACTED).into_iter();
    chosen.map(|(_, text)| text).collect()
}

/// A statement that something works or was changed.
struct FixedProblem {
    turn: usize,
    position: usize,
    /// The words that name it.
    named: HashSet<String>,
}

/// Collects what the answers say that works or was changed.
fn fixed_problems(answers: &[Vec<String>]) -> Vec<FixedProblem> {
    let all = answers.iter().enumerate().flat_map(|(turn, statements)| {
        let numbered = statements.iter().enumerate();
        numbered.map(move |(position, text)| (turn, position, text))
    });
    let over =
        all.filter(|(_, _, text)| answer::is_change(text) || observe::says_something_passes(text));
    over.map(|(turn, position, text)| FixedProblem {
        turn,
        position,
        named: naming_words(text),
    })
    .collect()
}

/// Returns whether a sentence tells of something that does not work, and no later one fixes what it
/// names.
fn is_left_open(fixed: &[FixedProblem], turn: usize, position: usize, sentence: &str) -> bool {
    if !answer::tells_open_failure(sentence) {
        return false;
    }
    let named = naming_words(sentence);
    !fixed.iter().any(|later| {
        (later.turn, later.position) > (turn, position)
            && later.named.intersection(&named).count() >= 2
    })
}
