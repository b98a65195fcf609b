//! The standing instructions of a prompt: what a person plainly typed and means to hold in general.

use crate::{
    directive::{
        contradicts, directive, has_question_particle, is_question, standing_part, stands_alone,
    },
    phrases::{Words, is_dense, is_small_talk},
    prose::{Prose, greets, typed_part},
};

/// The longest prompt that gives standing instructions, in lines. A longer one is a document.
const MAX_STANDING_LINES: usize = 5;

/// Requests in the form of a question.
const REQUESTING: &str = "\
    can you|could you|would you|will you|kannst du|könntest du|peux-tu|puedes|możesz|可以";

/// Beginnings of questions without a question mark.
const ASKING: &str = "\
    what|why|who|how|which|is|are|does|do you|did|was|wie|warum|wer|ist|stimmt|est-ce|qué|czy|co";

/// Beginnings of orders for the step that point to no text, "commit this", and hide no rule after them:
/// "commit and push, then always use pnpm".
const STEPS: &str = "commit|push|merge|continue|proceed|go on|go ahead|run the tests";

/// Words at the beginning of a line of a log.
const LEVELS: [&str; 4] = ["INFO ", "WARN ", "ERROR ", "DEBUG "];

/// Returns the standing instructions of a prompt: sentences that hold in general by their own words,
/// can be understood alone, and were plainly typed.
pub fn standing_instructions(prompt: &str) -> Vec<String> {
    let prompt = prompt.trim();
    if prompt.lines().count() > MAX_STANDING_LINES {
        return Vec::new();
    }
    let Some(typed) = typed_part(prompt).map(str::trim_end) else {
        return Vec::new();
    };
    let prose = Prose::new(typed);
    if !is_plainly_typed(prompt, typed, prose.has_rule_list()) {
        return Vec::new();
    }
    let mut instructions = Vec::new();
    let is_step = |text: &str| is_small_talk(text) && Words::new(text).begin(STEPS);
    let mut follows_step = false;
    for sentence in &prose.sentences {
        let (step, rest) = sentence.split_once(", ").unwrap_or_default();
        follows_step |= is_step(step);
        let part = if is_step(step) { rest } else { sentence };
        let part = part
            .strip_prefix("then ")
            .filter(|_| follows_step)
            .unwrap_or(part);
        follows_step = is_step(sentence);
        if follows_step {
            continue;
        }
        if prose.is_list(sentence) {
            instructions.extend(prose.is_rule_list(sentence).then(|| sentence.clone()));
        } else if let Some(part) = standing_part(part) {
            instructions.push(part.to_owned());
        } else if !stands_alone(sentence) && !contradicts(sentence) {
            // What follows may be the text that the sentence is about: "Make this shorter."
            break;
        }
    }
    instructions
}

/// Returns whether the form of a prompt shows that its first paragraph was typed: it begins with a letter
/// and no greeting, each line is an instruction or an item of a list of rules, and nothing signs it or asks
/// about it.
fn is_plainly_typed(prompt: &str, paragraph: &str, is_list: bool) -> bool {
    const MAX_SIGNATURE: usize = 3;
    let asks = |sentence: &String| {
        let is_request = Words::new(sentence).contain(REQUESTING) || directive(sentence).is_some();
        is_question(sentence) && !is_request || has_question_particle(sentence)
    };
    let is_short = |line: &str| !is_dense(line) && Words::new(line).iter().count() <= MAX_SIGNATURE;
    let is_signed = |line: &str| {
        let end = line.rsplit_once(" — ").map(|(_, end)| end);
        end.is_some_and(|end| end.starts_with(char::is_uppercase) && is_short(end))
    };
    let instructs = |line: &str| standing_part(line.trim()).is_some();
    let behind = prompt[paragraph.len()..].lines().map(str::trim);
    let mut behind = behind.filter(|line| !line.is_empty());
    let has_form = paragraph.starts_with(char::is_alphabetic)
        && !paragraph.contains('\t')
        && !greets(paragraph)
        && !LEVELS.iter().any(|level| paragraph.starts_with(level))
        && !paragraph.lines().any(is_signed);
    has_form
        && (is_list || paragraph.lines().count() == 1 || paragraph.lines().all(instructs))
        && !behind.any(|line| is_short(line) || Words::new(line).begin(ASKING))
        && !Prose::new(prompt).sentences.iter().any(asks)
}

#[cfg(test)]
mod tests {
    use crate::{
        session_note::{NoteText, SessionDigest, note_text},
        turn::Turn,
    };

    /// Returns the title and the text of the note of a session that changed a file.
    fn note(prompt: &str, answer: &str) -> (String, String) {
        let turn = Turn {
            prompt: Some(prompt.to_owned()),
            answer: Some(answer.to_owned()),
            ..Turn::default()
        };
        let NoteText { title, body } = note_text(&SessionDigest {
            files: vec!["src/a.rs".to_owned()],
            turns: vec![turn],
            ..SessionDigest::default()
        })
        .unwrap();
        (title, body)
    }

    #[test]
    fn an_item_below_a_prohibition_is_never_told_alone() {
        // HOOK-15
        const ANSWER: &str =
            "Understood, the importer reads the files with the standard library only.";
        for (prompt, head, item, title) in [
            (
                "Never:\n- push to main\n- edit generated files in src/gen\n- run migrations on prod",
                "Never: push to main; edit",
                "edit generated",
                "Never: push to main",
            ),
            (
                "Never do these:\n- push to main\n- edit generated files\n- add dependencies without asking",
                "Never do these: push to main; edit",
                "add dependencies",
                "Never do these: push to main",
            ),
            (
                "Please don't:\n- push to main\n- edit generated files",
                "",
                "edit generated",
                "Please don't: push to main",
            ),
            (
                "Write the importer. Don't:\n- use pandas for the files\n- add dependencies",
                "",
                "use pandas",
                "Write the importer.",
            ),
            (
                "The page must not show:\n- prices without tax\n- sold out articles",
                "",
                "sold out",
                "The page must not show: prices",
            ),
            (
                "Rules:\n- Use pnpm, never npm\n- No default exports\n\nNow please add the invoice model.",
                "Rules: Use pnpm, never npm; No default exports",
                "No default",
                "Now please add the invoice model.",
            ),
        ] {
            let (told, body) = note(prompt, ANSWER);
            assert!(told.starts_with(title), "{told}");
            assert!(body.contains(head), "{prompt}: {body}");
            let alone = |line: &str| line.trim_start_matches("- ").starts_with(item);
            assert!(!body.lines().any(alone), "{prompt}: {body}");
        }
    }
}
