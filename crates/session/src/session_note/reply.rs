//! What later prompts of a session take back: an answer, what a sentence says, a rule.

use std::collections::HashSet;

use super::{ParsedDigest, title::naming_words};
use crate::directive;

/// A sentence of a prompt that opposes, rejects or takes back something. It is compared with many others,
/// so it is read once.
pub(super) struct Reply {
    /// The turn's index.
    turn: usize,
    text: String,
    named: HashSet<String>,
    opposes: bool,
    rejected: Option<String>,
    takes_back: bool,
}

impl Reply {
    pub(super) fn new(turn: usize, said: &str) -> Option<Self> {
        let opposes = directive::opposes(said);
        let rejected = directive::rejected_word(said);
        let takes_back = directive::takes_back(said);
        (opposes || rejected.is_some() || takes_back).then(|| Self {
            turn,
            text: said.to_owned(),
            named: naming_words(said),
            opposes,
            rejected,
            takes_back,
        })
    }
}

impl ParsedDigest<'_> {
    /// Returns whether the prompt after an answer begins by contradicting it. "No" to a question does not.
    pub(super) fn is_answer_rejected(&self, turn: usize) -> bool {
        let answer = self
            .digest
            .turns
            .get(turn)
            .and_then(|turn| turn.answer.as_deref());
        let has_asked = answer.is_some_and(directive::is_question);
        let next = self.prompts.iter().find(|prompt| prompt.turn > turn);
        let begins = next.and_then(|next| next.sentences().next());
        begins.is_some_and(|begins| {
            directive::contradicts(begins) && !(has_asked && directive::says_no(begins))
        })
    }

    /// Returns whether a later prompt takes back what was said in a turn: the next one begins by
    /// contradicting the whole answer, or a later one corrects or forbids what the sentence names.
    pub(super) fn is_contradicted(&self, turn: usize, sentence: &str) -> bool {
        if self.is_answer_rejected(turn) {
            return true;
        }
        let named = naming_words(sentence);
        let mut later = self.replies.iter().filter(|reply| reply.turn > turn);
        later.any(|reply| {
            reply.opposes && reply.named.intersection(&named).count() >= 2
                || reply
                    .rejected
                    .as_ref()
                    .is_some_and(|word| named.contains(word))
        })
    }

    /// Returns whether the person takes a rule back in a turn for which `when` holds.
    pub(super) fn is_withdrawn(&self, rule: &str, when: impl Fn(usize) -> bool) -> bool {
        let mut replies = self.replies.iter().filter(|reply| when(reply.turn));
        replies.any(|reply| reply.takes_back && directive::withdraws(&reply.text, rule))
    }
}
