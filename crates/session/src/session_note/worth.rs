//! Decides whether a session is worth a note.

use super::{SessionDigest, TypedPrompt, answer};
use crate::{directive::directive, phrases::Words};

/// Phrases of questions about the memory itself.
const ABOUT_THE_MEMORY: &[&str] = &[
    "do you remember",
    "what do you remember",
    "what do you know about me",
    "your memory",
    "the memory",
    "your memories",
    "anamnesis",
    "last session",
    "previous session",
    "was weißt du",
    "erinnerst du dich",
    "te acuerdas",
    "recuerdas",
    "tu te souviens",
    "你记得",
    "你还记得",
    "覚えて",
];

/// A reason to write a note.
struct Reason {
    /// What it is, for the tests.
    #[cfg_attr(
        not(test),
        expect(dead_code, reason = "names the rule in a failing test")
    )]
    name: &'static str,
    holds: fn(&SessionDigest, &[TypedPrompt]) -> bool,
}

const REASONS: [Reason; 5] = [
    Reason {
        name: "files were changed",
        holds: |digest, _| !digest.files.is_empty() || digest.edits_left_out > 0,
    },
    Reason {
        name: "something failed",
        holds: |digest, _| {
            digest.failures > 0 || !digest.failing.is_empty() || !digest.fixed.is_empty()
        },
    },
    Reason {
        name: "a person said something lasting",
        holds: |_, prompts| {
            let mut sentences = prompts.iter().flat_map(TypedPrompt::sentences);
            sentences.any(|sentence| directive(sentence).is_some())
        },
    },
    Reason {
        name: "an error was pasted",
        holds: |_, prompts| prompts.iter().any(|prompt| prompt.prose.error.is_some()),
    },
    Reason {
        name: "a prompt that is not about the memory got an answer worth keeping",
        holds: |digest, prompts| {
            let mut sentences = prompts.iter().flat_map(TypedPrompt::sentences);
            let is_only_about_the_memory = !prompts.is_empty()
                && sentences.all(|sentence| Words::new(sentence).contain(ABOUT_THE_MEMORY));
            let mut answers = digest
                .turns
                .iter()
                .filter_map(|turn| turn.answer.as_deref());
            !is_only_about_the_memory && answers.any(answer::is_substantial)
        },
    },
];

/// Returns whether a session leaves something that a later one could use.
pub(super) fn is_worth_a_note(digest: &SessionDigest, prompts: &[TypedPrompt]) -> bool {
    REASONS.iter().any(|reason| (reason.holds)(digest, prompts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{session_note::prompts, turn::Turn};

    fn reasons(digest: &SessionDigest) -> Vec<&'static str> {
        let prompts = prompts(digest);
        let hold = REASONS
            .iter()
            .filter(|reason| (reason.holds)(digest, &prompts));
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
        ] {
            assert!(reasons(&talk(turns)).is_empty(), "{turns:?}");
        }
    }

    #[test]
    fn each_reason_is_enough() {
        let long = "The port is read from the settings of the gateway. ".repeat(4);
        let changed = SessionDigest {
            files: vec!["a.rs".to_owned()],
            ..SessionDigest::default()
        };
        let failed = SessionDigest {
            failures: 1,
            ..SessionDigest::default()
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
                talk(&[("where is the port set?", &long)]),
                "a prompt that is not about the memory got an answer worth keeping",
            ),
        ] {
            assert_eq!(reasons(&digest), [reason]);
        }
    }
}
