//! The standing instructions of a prompt: what a person plainly typed and means to hold in general.

use crate::{
    directive::{standing_part, stands_alone},
    prose::{Prose, typed_part},
};

/// The longest prompt that gives standing instructions, in lines. A longer one is a document.
const MAX_STANDING_LINES: usize = 5;

/// Returns the standing instructions of a prompt: sentences that hold in general by their own words,
/// can be understood alone, and were plainly typed.
pub fn standing_instructions(prompt: &str) -> Vec<String> {
    let prompt = prompt.trim();
    if prompt.lines().count() > MAX_STANDING_LINES {
        return Vec::new();
    }
    let Some(typed) = typed_part(prompt) else {
        return Vec::new();
    };
    let prose = Prose::new(typed);
    let lists: Vec<_> = prose.rule_lists().collect();
    let mut instructions = Vec::new();
    for (position, sentence) in prose.sentences.iter().enumerate() {
        if let Some((list, text)) = lists.iter().find(|(list, _)| list.contains(&position)) {
            if position == list.start && stands_alone(sentence) {
                instructions.push(text.clone());
            }
        } else if let Some(part) = standing_part(sentence) {
            instructions.push(part.to_owned());
        }
    }
    instructions
}
