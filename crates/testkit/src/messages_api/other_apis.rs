//! The same answers in the form of two other APIs: OpenAI's Responses, which Codex uses, and Google's
//! `generateContent`, which Gemini CLI uses.

use serde_json::{Value, json};

use super::{Block, push_event};

/// An API other than Anthropic's Messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OtherApi {
    Responses,
    GenerateContent { is_stream: bool },
}

impl OtherApi {
    /// Returns the API of a path.
    pub(super) fn of_path(path: &str) -> Option<Self> {
        if path.ends_with("/responses") {
            Some(Self::Responses)
        } else if path.ends_with(":streamGenerateContent") {
            Some(Self::GenerateContent { is_stream: true })
        } else if path.ends_with(":generateContent") {
            Some(Self::GenerateContent { is_stream: false })
        } else {
            None
        }
    }

    /// Returns the content type and the body of an answer.
    pub(super) fn body(self, blocks: &[Block]) -> (&'static str, String) {
        match self {
            Self::Responses => ("text/event-stream", responses(blocks)),
            Self::GenerateContent { is_stream } => {
                let answer = generated(blocks).to_string();
                if is_stream {
                    ("text/event-stream", format!("data: {answer}\r\n\r\n"))
                } else {
                    ("application/json", answer)
                }
            }
        }
    }
}

fn responses(blocks: &[Block]) -> String {
    let mut out = String::new();
    push_event(
        &mut out,
        &json!({ "type": "response.created", "response": { "id": "resp_scripted" } }),
    );
    for (index, block) in blocks.iter().enumerate() {
        let item = match block {
            Block::Text(text) => json!({
                "type": "message", "id": format!("msg_{index}"), "role": "assistant",
                "content": [{ "type": "output_text", "text": text }],
            }),
            Block::ToolUse { name, input } => json!({
                "type": "function_call", "id": format!("fc_{index}"), "call_id": format!("call_{index}"),
                "name": name, "arguments": input.to_string(),
            }),
        };
        let done =
            json!({ "type": "response.output_item.done", "output_index": index, "item": item });
        push_event(&mut out, &done);
    }
    let usage = json!({ "input_tokens": 1, "output_tokens": 1, "total_tokens": 2 });
    let response = json!({ "id": "resp_scripted", "usage": usage });
    push_event(
        &mut out,
        &json!({ "type": "response.completed", "response": response }),
    );
    out
}

fn generated(blocks: &[Block]) -> Value {
    let parts = blocks.iter().map(|block| match block {
        Block::Text(text) => json!({ "text": text }),
        Block::ToolUse { name, input } => {
            json!({ "functionCall": { "name": name, "args": input } })
        }
    });
    let content = json!({ "role": "model", "parts": parts.collect::<Vec<_>>() });
    json!({
        "candidates": [{ "content": content, "finishReason": "STOP", "index": 0 }],
        "usageMetadata": { "promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2 },
        "modelVersion": "scripted",
    })
}
