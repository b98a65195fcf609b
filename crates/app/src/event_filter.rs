//! Tools that are not recorded: those of the settings, our own, and reads of what is ours already.

use std::path::Path;

use anamnesis_session::hook::{Event, ToolCall};
use anamnesis_store::fs::home::is_below;

use crate::context::Context;

/// How the client names the tools of our own server, as a plugin's and as one of the user's.
const OWN_TOOLS: [&str; 2] = ["mcp__plugin_anamnesis_", "mcp__anamnesis__"];

/// The fields in which tools name a file or a folder.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

/// Takes from an event what is not recorded: it becomes one that is not acted on.
pub fn unrecorded(context: &Context, event: &mut Event) {
    let is_skipped = match event {
        Event::PreToolUse(call) | Event::PostToolUse(call) | Event::PostToolUseFailure(call) => {
            is_skipped(context, call)
        }
        Event::PostToolBatch(calls) => {
            calls.retain(|call| !is_skipped(context, call));
            false
        }
        _ => false,
    };
    if is_skipped {
        *event = Event::Other;
    }
}

/// Tells whether no run of a tool of this name is recorded.
pub fn is_skipped_name(context: &Context, tool: &str) -> bool {
    OWN_TOOLS.iter().any(|own| tool.starts_with(own)) || context.config.skips(tool)
}

fn is_skipped(context: &Context, call: &ToolCall) -> bool {
    is_skipped_name(context, &call.tool)
        || PATHS
            .iter()
            .filter_map(|name| call.input.get(name)?.as_str())
            .any(|path| is_ours(context, Path::new(path)))
}

/// Tells whether a path lies in the store, or among the client's transcripts and memories.
fn is_ours(context: &Context, path: &Path) -> bool {
    context.home.contains(path)
        || context
            .environment
            .claude_folder
            .as_ref()
            .is_some_and(|folder| is_below(path, &folder.join("projects")))
}
