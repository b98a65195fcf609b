//! Tool calls that are not recorded: tools that the settings exclude, our own tools, and access to
//! our own or the client's files.

use std::path::Path;

use anamnesis_session::hook::{HookEvent, ToolCall};
use anamnesis_store::fs::home::is_below;

use crate::context::Context;

/// The prefixes of our own tools, installed as a plugin or by the user.
const OWN_TOOLS: [&str; 2] = ["mcp__plugin_anamnesis_", "mcp__anamnesis__"];

/// The parameters in which tools name a file or a folder.
const PATHS: [&str; 3] = ["file_path", "notebook_path", "path"];

/// Removes the calls that are not recorded from an event. The event of a single such call becomes
/// [`HookEvent::Other`].
pub fn unrecorded(context: &Context, event: &mut HookEvent) {
    let is_skipped = match event {
        HookEvent::PreToolUse(call)
        | HookEvent::PostToolUse(call)
        | HookEvent::PostToolUseFailure(call) => is_skipped(context, call),
        HookEvent::PostToolBatch(calls) => {
            calls.retain(|call| !is_skipped(context, call));
            false
        }
        _ => false,
    };
    if is_skipped {
        *event = HookEvent::Other;
    }
}

/// Returns whether calls of a tool are never recorded.
fn is_skipped_name(context: &Context, tool: &str) -> bool {
    OWN_TOOLS.iter().any(|own| tool.starts_with(own)) || context.config.skips(tool)
}

fn is_skipped(context: &Context, call: &ToolCall) -> bool {
    is_skipped_name(context, &call.tool)
        || PATHS
            .iter()
            .filter_map(|name| call.input.get(name)?.as_str())
            .any(|path| is_ours(context, Path::new(path)))
}

/// Returns whether a path is in the store, or among the client's transcripts and memories.
fn is_ours(context: &Context, path: &Path) -> bool {
    context.home.contains(path)
        || context
            .environment
            .claude_folder
            .as_ref()
            .is_some_and(|folder| is_below(path, &folder.join("projects")))
}
