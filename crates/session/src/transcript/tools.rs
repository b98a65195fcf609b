//! Reads the tool calls of a transcript: what failed, what fixed it, what was removed again.

use std::{collections::VecDeque, path::Path};

use anamnesis_text::{
    privacy::PrivateTexts,
    private_tokens::{Key, PrivateTokens},
};
use serde::Deserialize;
use serde_json::Value;

use crate::{
    event::{Agent, Outcome, Surroundings, ToolEvent},
    hook::ToolCall,
    intake::{Intake, text_of},
};

/// The maximum number of calls that wait for their result.
const MAX_WAITING: usize = 100;

/// The maximum number of finished calls; later ones replace the first.
const MAX_EVENTS: usize = 500;

/// The tool calls of a session, in the order of their results.
#[derive(Default)]
pub(super) struct ToolCalls {
    waiting: VecDeque<(ToolCall, bool)>,
    events: VecDeque<ToolEvent>,
}

/// A line of a transcript with calls or results.
#[derive(Deserialize)]
struct Line {
    message: Message,
    /// The response as hooks get it.
    #[serde(rename = "toolUseResult", default)]
    response: Value,
    #[serde(rename = "isSidechain", default)]
    is_sidechain: bool,
}

#[derive(Deserialize)]
struct Message {
    content: Vec<Block>,
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block {
    ToolUse {
        id: String,
        name: String,
        #[serde(default)]
        input: Value,
    },
    ToolResult {
        tool_use_id: String,
        #[serde(default)]
        is_error: bool,
        #[serde(default)]
        content: Value,
    },
    #[serde(other)]
    Other,
}

impl ToolCalls {
    /// Takes the calls and results of a line, and returns the private texts in them. A line of an
    /// unknown form is skipped.
    pub(super) fn take(&mut self, line: &str, folder: &Path) -> Vec<PrivateTexts> {
        let mut private = Vec::new();
        let Ok(mut line) = serde_json::from_str::<Line>(line) else {
            return private;
        };
        for block in line.message.content {
            match block {
                Block::ToolUse { id, name, input } => {
                    if self.waiting.len() == MAX_WAITING {
                        self.waiting.pop_front();
                    }
                    let call = ToolCall {
                        id: Some(id),
                        tool: name,
                        input,
                        ..ToolCall::default()
                    };
                    self.waiting.push_back((call, line.is_sidechain));
                }
                Block::ToolResult {
                    tool_use_id,
                    is_error,
                    content,
                } => {
                    let is_it =
                        |(call, _): &(ToolCall, bool)| call.id.as_ref() == Some(&tool_use_id);
                    let at = self.waiting.iter().position(is_it);
                    let Some((mut call, by_subagent)) = at.and_then(|at| self.waiting.remove(at))
                    else {
                        continue;
                    };
                    let outcome = if is_error {
                        call.error = text_of(&content);
                        Outcome::Failed
                    } else {
                        call.response = match line.response.take() {
                            Value::Null => text_of(&content).into(),
                            response => response,
                        };
                        Outcome::Ok
                    };
                    if self.events.len() == MAX_EVENTS {
                        self.events.pop_front();
                    }
                    let (event, texts) = sanitised(&call, outcome, by_subagent, folder);
                    self.events.push_back(event);
                    private.extend(texts);
                }
                Block::Other => {}
            }
        }
        private
    }

    /// Returns the id of the last finished call.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.events.back().map(|event| event.id.as_str())
    }

    /// Returns the finished calls.
    pub(super) fn finish(self) -> Vec<ToolEvent> {
        self.events.into()
    }
}

/// Sanitises a call as a hook does. Returns its private texts, too.
fn sanitised(
    call: &ToolCall,
    outcome: Outcome,
    by_subagent: bool,
    folder: &Path,
) -> (ToolEvent, Vec<PrivateTexts>) {
    let intake = Intake {
        private_tokens: &PrivateTokens::default(),
        // The event has no hashes of private texts, so their key does not matter.
        key: Key::new([0; 16]),
        folder,
        surroundings: Surroundings::default(),
        at: 0,
        is_unsure: false,
        may_hold: false,
    };
    // A transcript does not name the subagent; one name keeps their work apart from the session's.
    let agent = by_subagent.then(|| Agent {
        id: "subagent".to_owned(),
        kind: "subagent".to_owned(),
    });
    intake.tool_event(call, outcome, agent.as_ref())
}
