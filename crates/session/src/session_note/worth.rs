//! Decides whether a session is worth a note.

use super::{ParsedDigest, answer};
use crate::{
    directive::{directive, is_question},
    phrases::{Words, is_dense},
    turn::Turn,
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

/// Returns whether a session leaves something that a later one could use.
pub(super) fn is_worth_a_note(parsed: &ParsedDigest) -> bool {
    let ParsedDigest {
        digest,
        prompts,
        answers,
        ..
    } = parsed;
    let has_edits = !digest.files.is_empty() || digest.edits_left_out > 0;
    let has_failed = digest.failures > 0 || !digest.failing.is_empty() || !digest.fixed.is_empty();
    let has_error = prompts.iter().any(|prompt| prompt.prose.error.is_some());
    let is_lasting = |sentence: &String| directive(sentence).is_some();
    let is_asked = |sentence: &String| {
        is_request(sentence) && (!is_question(sentence) || !is_barely_answered(parsed))
    };
    let is_about_itself = |sentence: &String| Words::new(sentence).contain(ABOUT_ITSELF);
    let is_told = || {
        (prompts.is_empty() || !parsed.sentences().all(is_about_itself))
            && answers.iter().any(|told| answer::is_substantial(told))
    };
    // A session that only ran a tool has no prompt. "Run the tests" is small talk, and yet a request.
    let is_typed = |turn: &Turn| turn.prompt.as_ref().is_some_and(|it| !it.starts_with('/'));
    let has_done = has_failed || !digest.declared.commits.is_empty();
    has_edits
        || has_done && digest.turns.iter().any(is_typed)
        || has_error
        || parsed.sentences().any(is_lasting)
        || !digest.is_undone && (parsed.sentences().any(is_asked) || is_told())
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
    use crate::session_note::SessionDigest;

    fn is_worth(digest: &SessionDigest) -> bool {
        is_worth_a_note(&ParsedDigest::new(digest))
    }

    fn talk(turns: &[(&str, &str)]) -> SessionDigest {
        let turns = turns.iter().map(|&(prompt, answer)| Turn {
            prompt: Some(prompt.to_owned()),
            answer: Some(answer.to_owned()).filter(|answer| !answer.is_empty()),
            ..Turn::default()
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
            assert!(!is_worth(&talk(turns)), "{turns:?}");
        }
    }

    #[test]
    fn what_was_made_and_removed_again_leaves_nothing() {
        let mut digest = talk(&[
            ("write a file about geese in docs", "Done."),
            ("delete that file", "Done."),
        ]);
        assert!(is_worth(&digest));
        digest.is_undone = true;
        assert!(!is_worth(&digest));
    }

    #[test]
    fn small_talk_with_a_failure_or_a_commit_is_enough() {
        for prompt in [
            "run the tests",
            "run all tests again",
            "push it",
            "commit and push please",
        ] {
            let mut digest = talk(&[(prompt, "One test fails.")]);
            assert!(!is_worth(&digest), "{prompt}");
            digest.failing = vec!["`npm test`: total is 90".to_owned()];
            assert!(is_worth(&digest), "{prompt}");
            digest.failing.clear();
            digest.declared.commits = vec!["77aa001 Round totals".to_owned()];
            assert!(is_worth(&digest), "{prompt}");
        }
        let mut digest = talk(&[("/exit", "")]);
        digest.failures = 1;
        assert!(!is_worth(&digest));
        digest.turns.clear();
        assert!(!is_worth(&digest));
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
        let lasting = SessionDigest {
            is_undone: true,
            ..talk(&[("we never add dependencies here", "")])
        };
        for digest in [
            changed,
            failed,
            lasting,
            talk(&[("why?\n```\nerror: cannot find `id`\n```", "")]),
            talk(&[("where is the port set?", "")]),
            talk(&[(
                "hello",
                &"The port is read from the settings of the gateway. ".repeat(3),
            )]),
        ] {
            assert!(is_worth(&digest), "{digest:?}");
        }
    }
}
