//! The prompts and answers of a session.

/// How many turns are kept of a long session: the first ones and the latest.
const MAX_TURNS: usize = 80;
const MAX_FIRST: usize = 8;

/// A person's prompt and the model's last answer to it. The texts are sanitised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// The prompt; none for an answer whose prompt is private or was sent by a program.
    pub prompt: Option<String>,
    /// The answer; none if the turn was interrupted.
    pub answer: Option<String>,
    /// The files that were edited, once each. They tell whether a turn changed what an earlier one did.
    pub edited: Vec<String>,
    /// The id of the last tool call, or at least command, before the prompt. It tells which failures the prompt
    /// may be about.
    pub after: Option<String>,
}

/// Starts a turn with a prompt, which was sent after the tool call with this id.
pub fn add_prompt(turns: &mut Vec<Turn>, prompt: String, after: Option<String>) {
    if turns.len() == MAX_TURNS {
        turns.remove(MAX_FIRST);
    }
    turns.push(Turn {
        prompt: Some(prompt),
        after,
        ..Turn::default()
    });
}

/// Returns what a person typed after the name of a slash command, if it is more than a few words.
///
/// The commands of this program are left out: what is typed after them becomes a note by itself.
pub fn command_arguments(prompt: &str) -> Option<&str> {
    const MIN_WORDS: usize = 4;
    let (_, arguments) = prompt
        .trim()
        .strip_prefix('/')?
        .split_once(char::is_whitespace)?;
    let arguments = arguments.trim();
    (!is_own_command(prompt) && arguments.split_whitespace().count() >= MIN_WORDS)
        .then_some(arguments)
}

/// Returns whether a prompt is a slash command of this program. What the model answers to it says
/// nothing about the person's work.
pub fn is_own_command(prompt: &str) -> bool {
    let name = prompt.trim_start().strip_prefix('/').unwrap_or_default();
    name.starts_with("anamnesis:") || name.starts_with("memory-")
}

/// Sets the answer of the last turn.
pub fn add_answer(turns: &mut Vec<Turn>, answer: String) {
    if let Some(last) = turns.last_mut() {
        last.answer = Some(answer);
    } else {
        turns.push(Turn {
            answer: Some(answer),
            ..Turn::default()
        });
    }
}

/// Adds an edited file to the last turn.
pub fn add_edit(turns: &mut [Turn], file: String) {
    if let Some(last) = turns.last_mut()
        && !last.edited.contains(&file)
    {
        last.edited.push(file);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_follows_a_command_is_typed() {
        for (prompt, expected) in [
            (
                "/plan:new add limits to the gateway",
                Some("add limits to the gateway"),
            ),
            ("/model opus", None),
            ("/clear", None),
            (
                "/anamnesis:memory-remember the port is in the settings",
                None,
            ),
            ("add limits to the gateway", None),
        ] {
            assert_eq!(command_arguments(prompt), expected, "{prompt}");
        }
    }

    #[test]
    fn a_long_session_keeps_its_first_and_latest_turns() {
        let mut turns = Vec::new();
        add_answer(&mut turns, "early".to_owned());
        for number in 0..200 {
            add_prompt(&mut turns, format!("prompt {number}"), None);
            add_answer(&mut turns, "draft".to_owned());
            add_answer(&mut turns, format!("answer {number}"));
        }
        assert_eq!(turns.len(), MAX_TURNS);
        assert_eq!(turns[0].answer.as_deref(), Some("early"));
        assert_eq!(turns[7].prompt.as_deref(), Some("prompt 6"));
        assert_eq!(turns[79].answer.as_deref(), Some("answer 199"));
    }
}
