//! Chooses what the model's answers tell, and the client's summary of them.

use std::collections::HashSet;

use super::{
    ParsedDigest, SessionDigest, answer,
    choose::{Candidate, Known, Limits, choose},
    compaction::Section,
    grown, summarised,
    title::naming_words,
};
use crate::{directive, observe, phrases::sum_of_marks, prose::shorten};

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
                            && (answer::decides(text) || answer::weight(text) >= FINDING))
                    && text.chars().count() <= limits.line);
            if !is_usable || known.has(text) || parsed.is_contradicted(turn, text) {
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
            false if answer::decides(&text) => &mut told.decided,
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
    if let Some(corrected) = corrected(parsed, last) {
        told.outcome.insert(0, corrected);
    }
    told
}

/// Returns the correction that the last answer carried out, if that answer says too little by itself: "no, 5
/// seconds" after an answer that says 10. `last` is the turn of the last answer that tells something.
fn corrected(parsed: &ParsedDigest, last: Option<usize>) -> Option<String> {
    let turns = parsed.digest.turns.iter();
    let (turn, answer) = turns
        .enumerate()
        .rev()
        .find_map(|(turn, told)| Some((turn, told.answer.as_deref()?)))?;
    let prompt = parsed.prompts.iter().find(|prompt| prompt.turn == turn)?;
    let said = prompt.sentences().next()?;
    let answer = answer.lines().find(|line| !line.trim().is_empty())?;
    let is_short = last.is_some_and(|last| last < turn);
    let corrects = directive::changes_value(said)
        || directive::contradicts(said) && parsed.is_answer_rejected(last?);
    (is_short && corrects).then(|| {
        let said = shorten(said, TOLD.line / 2);
        format!(
            "Corrected: {said} → {}",
            shorten(answer.trim(), TOLD.line / 2)
        )
    })
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
