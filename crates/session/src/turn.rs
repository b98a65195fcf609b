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
}

/// Starts a turn with a prompt.
pub fn add_prompt(turns: &mut Vec<Turn>, prompt: String) {
    if turns.len() == MAX_TURNS {
        turns.remove(MAX_FIRST);
    }
    turns.push(Turn {
        prompt: Some(prompt),
        answer: None,
    });
}

/// Sets the answer of the last turn.
pub fn add_answer(turns: &mut Vec<Turn>, answer: String) {
    if let Some(last) = turns.last_mut() {
        last.answer = Some(answer);
    } else {
        turns.push(Turn {
            prompt: None,
            answer: Some(answer),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_session_keeps_its_first_and_latest_turns() {
        let mut turns = Vec::new();
        add_answer(&mut turns, "early".to_owned());
        for number in 0..200 {
            add_prompt(&mut turns, format!("prompt {number}"));
            add_answer(&mut turns, "draft".to_owned());
            add_answer(&mut turns, format!("answer {number}"));
        }
        assert_eq!(turns.len(), MAX_TURNS);
        assert_eq!(turns[0].answer.as_deref(), Some("early"));
        assert_eq!(turns[7].prompt.as_deref(), Some("prompt 6"));
        assert_eq!(turns[79].answer.as_deref(), Some("answer 199"));
    }
}
