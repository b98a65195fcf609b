//! Recognises a failure that a prompt asks for: a refusal to try out, a test that has to fail at first.

use anamnesis_text::shell::command::Command;

use super::ParsedDigest;
use crate::{directive::unquoted, observe::names_check, phrases::Words};

/// Phrases that ask to try something out. An order such as "make sure that" asks for a change instead.
const TRYING: &str = "\
    check that|check whether|check if|verify|confirm that|confirm whether|test that|test whether|test if|\
    see if|see whether|prove that|prüfe|überprüfe|prüf|comprueba|verifica|vérifie|sprawdź";

/// Phrases that name a refusal by the program.
const REFUSING: &str = "\
    refuse|refuses|reject|rejects|deny|denies|ablehnt|verweigert|abweist|rechaza|rejette|odrzuca";

/// Phrases of a prompt that asks for a test which fails.
const RED_TEST: &str = "\
    write a failing test|add a failing test|start with a failing test|write a failing unit test|\
    write the failing test first|write a red test|write a test that fails";

/// Phrases of prompts that want no failure at the end.
const FIXING: &str = "fix|implement|make it pass|make it green|until";

/// Phrases of an answer that confirm a refusal.
const CONFIRMING: &str = "\
    refuses|refused|rejects|rejected|denies|denied|it does|yes|exits|exit code|catches|caught|ja|sí|oui|tak";

/// Phrases that deny, or tell of a second failure.
const DENYING: &str = "\
    not|no|doesn't|didn't|isn't|couldn't|can't|cannot|but|however|still|broken|other|also";

/// Phrases that tell a failure.
const FAILING: &str = "fail|fails|failed|failing|red";

/// Phrases that tell that a fault was only put in for the test.
const RESTORING: &str = "restored|reverted|undid|undone|removed the bug|put the code back";

/// Returns whether a prompt asks for the failure of a check, and the answer confirms it. The failure is of
/// the last prompt that says something, or the answer names it and no later one does.
pub(super) fn is_wanted(parsed: &ParsedDigest, check: &str, error: &str) -> bool {
    let turns = &parsed.digest.turns;
    let names = |answer: &str| names_check(answer, check, error);
    let last = parsed.prompts.last().map(|prompt| prompt.turn);
    let is_test = Command::parse(check).is_some_and(|check| check.is_test());
    parsed.prompts.iter().any(|prompt| {
        let mut answers = turns.iter().skip(prompt.turn);
        let answer = answers.next().and_then(|turn| turn.answer.as_deref());
        let answer = answer.unwrap_or_default();
        let mut later = answers.filter_map(|turn| turn.answer.as_deref());
        let sentences = prompt.sentences().map(|sentence| Words::new(sentence));
        (last == Some(prompt.turn) || names(answer))
            && !later.any(names)
            && confirms(&sentences.collect::<Vec<_>>(), answer, is_test)
    })
}

/// Returns whether an answer confirms the failure that a prompt asks for: of a test, or of another check.
fn confirms(prompt: &[Words], answer: &str, is_test: bool) -> bool {
    let asks = |phrases: &str| prompt.iter().any(|sentence| sentence.contain(phrases));
    let tries = |phrases: &str| {
        let is_tried = |words: &Words| words.contain(TRYING) || words.begin("does|will|would");
        let mut sentences = prompt.iter();
        sentences.any(|sentence| is_tried(sentence) && sentence.contain(phrases))
    };
    if asks(FIXING) {
        return false;
    }
    let answer = unquoted(answer);
    let sentences: Vec<Words> = answer.split(['.', '\n']).map(Words::new).collect();
    let says = |phrases: &str| {
        let mut sentences = sentences.iter();
        sentences.any(|said| said.contain(phrases) && !said.contain(DENYING))
    };
    let fails = || sentences.iter().any(|said| said.contain(FAILING));
    if is_test {
        tries("catch|catches|fails without") && says(CONFIRMING) && says(RESTORING)
            || asks(RED_TEST) && says(FAILING)
            || asks("bisect") && !fails()
    } else {
        tries(REFUSING) && says(CONFIRMING) && !fails()
    }
}
