//! Chooses what a person asked for on the way: requests after the first, and errors that they pasted.
//!
//! These lines say what the session was about. They are no statements of the person that hold later.

use super::{
    TypedPrompt,
    choose::{Candidate, Known, Limits, choose},
    grown, title,
};
use crate::{
    directive::specifics,
    phrases::{Words, is_dense},
    prose::shorten,
};

/// The limits of a session of few prompts.
const ASKED: Limits = Limits {
    characters: 420,
    line: 170,
    lines: 6,
    lines_per_turn: 2,
};

/// How much a pasted error weighs.
const ERROR: f32 = 1.2;

/// Returns the requests that name something and are not known already, in the order of the session.
/// `summarised` are those of the client's summary, of which the prompts may be lost.
pub(super) fn asked(
    prompts: &[TypedPrompt],
    summarised: &[String],
    known: &[String],
) -> Vec<String> {
    let known = Known::new(known);
    let first = prompts.first().map_or(0, |prompt| prompt.turn);
    let mut candidates: Vec<Candidate> = Vec::new();
    for prompt in prompts {
        let is_later = prompt.turn > first;
        for (position, sentence) in prompt.sentences().enumerate() {
            if known.has(sentence) || !title::names_subject(sentence) || is_short(sentence) {
                continue;
            }
            let later = if is_later { 1.0 } else { 0.0 };
            candidates.push(Candidate {
                weight: title::weight(position, sentence)
                    + later
                    + (0.7 * specifics(sentence)).min(2.0),
                turn: prompt.turn,
                position,
                text: shorten(sentence, ASKED.line),
            });
        }
        if let Some(error) = prompt.prose.error.as_deref().filter(|_| is_later) {
            candidates.push(Candidate {
                weight: ERROR,
                turn: prompt.turn,
                position: usize::MAX,
                text: shorten(error, ASKED.line),
            });
        }
    }
    let typed = prompts.iter().flat_map(TypedPrompt::sentences);
    let typed = Known::new(&typed.cloned().collect::<Vec<_>>());
    for (position, message) in summarised.iter().enumerate() {
        let message = message.trim_matches(['"', '“', '”']);
        if title::names_subject(message) && !typed.has(message) && !known.has(message) {
            candidates.push(Candidate {
                weight: title::weight(0, message) + (0.7 * specifics(message)).min(2.0),
                turn: first,
                position,
                text: shorten(message, ASKED.line),
            });
        }
    }
    let chosen = choose(candidates, grown(ASKED, prompts.len())).into_iter();
    chosen.map(|(_, text)| text).collect()
}

/// Returns whether a sentence has too few words to tell anything: "Very good".
fn is_short(sentence: &str) -> bool {
    const MIN_WORDS: usize = 4;
    !is_dense(sentence) && Words::new(sentence).iter().count() < MIN_WORDS
}
