//! Splits a transcript into its turns.

use std::{
    fs::File,
    io::{self, BufRead, BufReader},
    path::Path,
};

use anamnesis_session::transcript::{self, Transcript};

/// The longest line that is read, and the longest turn, in bytes.
const MAX_TURN: usize = 64 << 20;

/// The beginning of the block of injected notes.
const BLOCK: &[u8] = b"<anamnesis-context>";

/// A turn of a past session.
#[derive(Debug)]
pub(super) struct PastTurn {
    /// Its prompt, answers and tool calls.
    pub(super) said: Transcript,
    /// Whether this program had injected notes into it.
    pub(super) has_notes: bool,
}

/// Reads the turns of a transcript of Claude Code. A turn begins with a record that is read as a prompt.
pub(super) fn read(path: &Path) -> io::Result<Vec<PastTurn>> {
    let mut reader = BufReader::new(File::open(path)?);
    let mut turns = Vec::new();
    let (mut turn, mut line) = (Vec::new(), Vec::new());
    loop {
        line.clear();
        let is_end = reader.read_until(b'\n', &mut line)? == 0;
        if (is_end || is_prompt(&line)) && !turn.is_empty() {
            turns.push(parsed(&turn));
            turn.clear();
        }
        if is_end {
            return Ok(turns);
        }
        if turn.len() + line.len() <= MAX_TURN {
            turn.extend_from_slice(&line);
        }
    }
}

fn is_prompt(line: &[u8]) -> bool {
    let may_be = line.windows(6).any(|part| part == b"\"user\"");
    may_be && transcript::read(line).0.prompts > 0
}

fn parsed(turn: &[u8]) -> PastTurn {
    PastTurn {
        said: transcript::read(turn).0,
        has_notes: turn.windows(BLOCK.len()).any(|part| part == BLOCK),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_turn_has_its_own_prompt_answer_and_calls() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.jsonl");
        let lines = [
            r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"why?"}}"#,
            r#"{"type":"assistant","sessionId":"s","message":{"id":"a","content":[{"type":"tool_use","id":"t","name":"Grep","input":{"pattern":"x"}}]}}"#,
            r#"{"type":"user","sessionId":"s","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t","content":"found"}]}}"#,
            r#"{"type":"assistant","sessionId":"s","message":{"id":"b","content":[{"type":"text","text":"so"}]}}"#,
            r#"{"type":"attachment","sessionId":"s","attachment":{"content":"<anamnesis-context>"}}"#,
            r#"{"type":"user","sessionId":"s","message":{"role":"user","content":"and now?"}}"#,
        ];
        fs::write(&path, lines.join("\n")).unwrap();
        let turns = read(&path).unwrap();
        let [first, second] = &turns[..] else {
            panic!("{turns:?}");
        };
        assert_eq!(first.said.turns[0].answer.as_deref(), Some("so"));
        assert_eq!(first.said.tool_events.len(), 1);
        assert!(first.has_notes && !second.has_notes);
        assert_eq!(second.said.turns[0].prompt.as_deref(), Some("and now?"));
        assert!(second.said.tool_events.is_empty());
    }
}
