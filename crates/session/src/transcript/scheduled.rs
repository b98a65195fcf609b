//! Prompts that Claude Code sends by itself, at a set time.
//!
//! Their hook payload equals that of a typed prompt, except where the client sends `source`. Client
//! 2.1.332 writes two records to the transcript before the hook runs: `queue-operation` with the
//! prompt, and `system` / `scheduled_task_fire` with its first 200 characters. A session without
//! messages has no such records yet; there only the project's file of tasks can have sent a prompt.

use anamnesis_text::{private_tokens::Key, surrogates};
use chrono::{DateTime, FixedOffset, TimeDelta};
use serde_json::Value;

use super::record::{Tasks, TranscriptLine};
use crate::{
    event::{ToolEvent, ToolInput},
    hook::ToolCall,
    prompt::hash_of,
};

/// The file of a project's scheduled tasks, relative to the project's folder.
pub const TASKS_FILE: &str = ".claude/scheduled_tasks.json";

/// The tools that schedule a prompt.
pub const TOOLS: [&str; 2] = ["CronCreate", "ScheduleWakeup"];

/// The argument that has the hash of a prompt whose exact text is not stored.
const HASH: &str = "prompt_hash";

/// The maximum time between the two records of a task that is due. 12 ms were measured.
const SAME_TASK: TimeDelta = TimeDelta::seconds(2);

/// The mark of the record that announces a task.
const FIRE: &str = "scheduled_task_fire";

/// The type of the records of queued prompts, typed ones included.
const QUEUE: &str = "queue-operation";

/// Returns the prompts of the tasks that were due, from the end of a transcript.
pub fn fired(end: &[u8]) -> Vec<String> {
    let end = String::from_utf8_lossy(end);
    let mut prompts = Vec::new();
    if !end.contains(FIRE) {
        return prompts;
    }
    let (mut fires, mut queued) = (Vec::new(), Vec::new());
    for line in end.lines() {
        if !line.contains(FIRE) && !line.contains(QUEUE) {
            continue;
        }
        let repaired = surrogates::repair(line);
        let Ok(record) = TranscriptLine::parse(repaired.as_deref().unwrap_or(line)) else {
            continue;
        };
        let time = record.timestamp.as_deref();
        let time = time.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
        match (record.kind.as_deref(), record.subtype.as_deref()) {
            (Some("system"), Some(FIRE)) => {
                prompts.extend(record.prompt.map(String::from));
                fires.push(time);
            }
            (Some(QUEUE), _) => {
                queued.extend(record.content.map(|content| (time, content.into_owned())));
            }
            _ => {}
        }
    }
    let is_task = |queued: Option<DateTime<FixedOffset>>| {
        fires.iter().any(|fire| match (fire, queued) {
            (Some(fire), Some(queued)) => (*fire - queued).abs() <= SAME_TASK,
            _ => true,
        })
    };
    let tasks = queued.into_iter().filter(|(time, _)| is_task(*time));
    prompts.extend(tasks.map(|(_, prompt)| prompt));
    prompts
}

/// Returns the prompts of a project's file of scheduled tasks.
pub fn tasks(file: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(file);
    let text = text.trim_start_matches('\u{feff}');
    let repaired = surrogates::repair(text);
    let tasks = Tasks::parse(repaired.as_deref().unwrap_or(text));
    let prompts = tasks.map(|tasks| tasks.prompts).unwrap_or_default();
    prompts.into_iter().flatten().map(String::from).collect()
}

/// Returns the prompt that a tool call scheduled, or its hash: see [`RawPrompt::repeats`].
///
/// [`RawPrompt::repeats`]: crate::prompt::RawPrompt::repeats
pub fn prompt_of(event: &ToolEvent) -> Option<&str> {
    let is_one = TOOLS.contains(&event.tool.as_str());
    let input = event.input.as_ref().filter(|_| is_one)?;
    let text = || input.others.get("prompt").map(String::as_str);
    hash_in(event).or_else(text)
}

/// Returns the hash of the prompt that a tool call scheduled, if its exact text is not stored.
pub fn hash_in(event: &ToolEvent) -> Option<&str> {
    event.input.as_ref()?.others.get(HASH).map(String::as_str)
}

/// Adds the hash of a scheduled prompt to the stored arguments of its call if they lack its exact text.
/// The client sends it later as if it were typed, even if the turn of the call was private.
pub(crate) fn keep_hash(call: &ToolCall, stored: &mut Option<ToolInput>, key: Key) {
    let prompt = call.input.get("prompt").and_then(Value::as_str);
    let Some(prompt) = prompt.filter(|_| TOOLS.contains(&call.tool.as_str())) else {
        return;
    };
    let text = stored.as_ref().and_then(|input| input.others.get("prompt"));
    if text.is_none_or(|text| text != prompt) {
        let input = stored.get_or_insert_default();
        (input.others).insert(HASH.to_owned(), hash_of(prompt, key));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROMPT: &str = "Check the queue";

    fn queued(seconds: u32, content: &str) -> String {
        format!(
            r#"{{"type":"queue-operation","operation":"enqueue","timestamp":"2026-11-27T08:51:{seconds:02}.291Z","content":"{content}"}}"#
        )
    }

    fn fire(seconds: u32, prompt: &str) -> String {
        format!(
            r#"{{"type":"system","subtype":"scheduled_task_fire","content":"Running scheduled task (Nov 27 8:51am)","timestamp":"2026-11-27T08:51:{seconds:02}.279Z","prompt":"{prompt}"}}"#
        )
    }

    #[test]
    fn tasks_that_were_due_are_read_from_a_transcript() {
        let typed = queued(3, "typed while Claude works");
        let quoted = r#"{"type":"assistant","message":{"content":[{"type":"text","text":"scheduled_task_fire queue-operation"}]},"prompt":"no"}"#;
        for (lines, expected) in [
            (vec![typed.clone()], &[][..]),
            (vec![quoted.to_owned()], &[]),
            (
                vec![typed.clone(), queued(9, PROMPT), fire(9, PROMPT)],
                &[PROMPT, PROMPT],
            ),
            // The record of the task has only the beginning of a long prompt.
            (
                vec![queued(9, PROMPT), fire(9, "Check the")],
                &["Check the", PROMPT],
            ),
            (
                vec!["broken line".to_owned(), fire(9, PROMPT), typed],
                &[PROMPT],
            ),
        ] {
            assert_eq!(fired(lines.join("\n").as_bytes()), expected, "{lines:?}");
        }
    }

    #[test]
    fn tasks_are_read_as_a_javascript_program_reads_them() {
        // HOOK-15
        let deep = "[".repeat(5_000) + &"]".repeat(5_000);
        for (file, expected) in [
            (
                r#"{"tasks": [{"prompt": "a"}, {"prompt": "b"}]}"#.to_owned(),
                &["a", "b"][..],
            ),
            (
                "\u{feff}{\"tasks\": [{\"prompt\": \"a\"}]}".to_owned(),
                &["a"],
            ),
            (
                r#"{"tasks": [{"prompt": "x", "prompt": "a"}]}"#.to_owned(),
                &["a"],
            ),
            (
                r#"{"tasks": [3, {"prompt": 3, "at": 1e999}, {"prompt": "a"}]}"#.to_owned(),
                &["a"],
            ),
            (
                r#"{"x": "\ud800", "tasks": [{"prompt": "a"}]}"#.to_owned(),
                &["a"],
            ),
            (
                format!(r#"{{"x": {deep}, "tasks": [{{"prompt": {deep}}}, {{"prompt": "a"}}]}}"#),
                &["a"],
            ),
            (r#"{"tasks": {"prompt": "a"}}"#.to_owned(), &[]),
            ("<<<<<<< HEAD".to_owned(), &[]),
            (String::new(), &[]),
        ] {
            assert_eq!(tasks(file.as_bytes()), expected, "{file:.80}");
        }
    }
}
