//! Decides whether a session is worth a note.

use super::{ParsedDigest, answer};
use crate::{
    directive::{directive, is_question},
    phrases::{Words, is_dense},
};

/// Phrases of questions about the memory or the model itself.
const ABOUT_ITSELF: &str = "\
    do you remember|what do you remember|what do you know about me|your memory|the memory|\
    your memories|anamnesis|last session|previous session|was weißt du|erinnerst du dich|\
    te acuerdas|recuerdas|tu te souviens|你记得|你还记得|覚えて|your version|your model|your name|\
    who are you|which model|what model|are you there|what can you do|test prompt|\
    this is a test";

/// A request with fewer words is not understood a month later.
const MIN_WORDS: usize = 3;

/// A reason to write a note.
struct Reason {
    /// Its name, for the tests.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "names the rule in a failing test")
    )]
    name: &'static str,
    holds: fn(&ParsedDigest) -> bool,
}

const REASONS: [Reason; 6] = [
    Reason {
        name: "files were changed",
        holds: |ParsedDigest { digest, .. }| !digest.files.is_empty() || digest.edits_left_out > 0,
    },
    Reason {
        name: "something failed",
        // A session that only ran a tool has no prompt.
        holds: |ParsedDigest {
                    digest, prompts, ..
                }| {
            let failed =
                digest.failures > 0 || !digest.failing.is_empty() || !digest.fixed.is_empty();
            failed && !prompts.is_empty()
        },
    },
    Reason {
        name: "a person said something lasting",
        holds: |parsed| {
            parsed
                .sentences()
                .any(|sentence| directive(sentence).is_some())
        },
    },
    Reason {
        name: "an error was pasted",
        holds: |parsed| {
            parsed
                .prompts
                .iter()
                .any(|prompt| prompt.prose.error.is_some())
        },
    },
    Reason {
        name: "a person asked for something",
        holds: |parsed| {
            let mut requests = parsed.sentences().filter(|it| is_request(it));
            !parsed.digest.is_undone
                && requests.any(|request| !is_question(request) || !is_barely_answered(parsed))
        },
    },
    Reason {
        name: "an answer told something",
        holds: |parsed| {
            let is_about_itself = !parsed.prompts.is_empty()
                && parsed
                    .sentences()
                    .all(|sentence| Words::new(sentence).contain(ABOUT_ITSELF));
            let mut answers = parsed.answers.iter();
            !is_about_itself
                && !parsed.digest.is_undone
                && answers.any(|statements| answer::is_substantial(statements))
        },
    },
];

/// Returns whether a session leaves something that a later one could use.
pub(super) fn is_worth_a_note(parsed: &ParsedDigest) -> bool {
    REASONS.iter().any(|reason| (reason.holds)(parsed))
}

/// Returns whether all answers together have a few words.
fn is_barely_answered(parsed: &ParsedDigest) -> bool {
    const FEW: usize = 5;
    let answers = parsed
        .digest
        .turns
        .iter()
        .filter_map(|turn| turn.answer.as_deref());
    let words: usize = answers
        .clone()
        .map(|answer| answer.split_whitespace().count())
        .sum();
    words > 0 && words <= FEW && !answers.clone().any(is_dense)
}

/// Returns whether a sentence asks for work, or asks about the work.
fn is_request(sentence: &str) -> bool {
    let words = Words::new(sentence);
    let is_whole = is_dense(sentence) && sentence.chars().count() > MIN_WORDS
        || words.iter().count() >= MIN_WORDS;
    is_whole && !words.contain(ABOUT_ITSELF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{session_note::SessionDigest, turn::Turn};

    fn reasons(digest: &SessionDigest) -> Vec<&'static str> {
        let parsed = ParsedDigest::new(digest);
        let hold = REASONS.iter().filter(|reason| (reason.holds)(&parsed));
        hold.map(|reason| reason.name).collect()
    }

    fn talk(turns: &[(&str, &str)]) -> SessionDigest {
        let turns = turns.iter().map(|&(prompt, answer)| Turn {
            prompt: Some(prompt.to_owned()),
            answer: Some(answer.to_owned()).filter(|answer| !answer.is_empty()),
        });
        SessionDigest {
            turns: turns.collect(),
            ..SessionDigest::default()
        }
    }

    #[test]
    fn talk_that_leaves_nothing() {
        let long = "The store holds notes about the gateway, its ports and the login. ".repeat(5);
        for turns in [
            &[][..],
            &[("hello", "Hello! How can I help you today?")],
            &[("continue", "")],
            &[("test prompt", "Received. What would you like me to do?")],
            &[(
                "show me your version",
                "claude-opus-4-7[1m] (Opus 4.7, 1M context)",
            )],
            &[
                ("/plugin\n ⎿ ✓ Enabled 1 plugin", ""),
                ("/exit\n ⎿ See ya!", ""),
            ],
            &[("what do you remember about the gateway?", &long)],
            &[("thanks!", "You're welcome!")],
            &[("which port is it?", "It is port 8080.")],
        ] {
            assert!(reasons(&talk(turns)).is_empty(), "{turns:?}");
        }
    }

    #[test]
    fn what_was_made_and_removed_again_leaves_nothing() {
        let mut digest = talk(&[
            ("write a file about geese in docs", "Done."),
            ("delete that file", "Done."),
        ]);
        assert_eq!(reasons(&digest), ["a person asked for something"]);
        digest.is_undone = true;
        assert!(reasons(&digest).is_empty());
    }

    #[test]
    fn each_reason_is_enough() {
        let changed = SessionDigest {
            files: vec!["a.rs".to_owned()],
            ..SessionDigest::default()
        };
        let failed = SessionDigest {
            failures: 1,
            ..talk(&[("cargo test", "")])
        };
        for (digest, reason) in [
            (changed, "files were changed"),
            (failed, "something failed"),
            (
                talk(&[("we never add dependencies here", "")]),
                "a person said something lasting",
            ),
            (
                talk(&[("why?\n```\nerror: cannot find `id`\n```", "")]),
                "an error was pasted",
            ),
            (
                talk(&[("where is the port set?", "")]),
                "a person asked for something",
            ),
        ] {
            assert!(reasons(&digest).contains(&reason), "{reason}: {digest:?}");
        }
    }
}
