//! Plans what a hook does at each event. No other part of the hook distinguishes the kinds of events.

use anamnesis_session::{
    event::Agent,
    hook::{HookEvent, Payload, StartSource, ToolCall},
    prompt::RawPrompt,
};

/// The work of a hook at an event. Every event is also recorded.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Plan<'a> {
    /// The action, which adds to the model's context or learns.
    pub(super) action: Action<'a>,
    /// When it starts the deferred process.
    pub(super) worker: Worker,
    /// The tag of the session's note, if it is written now.
    pub(super) note: Option<&'static str>,
    /// Whether a sync is due, if there is a remote.
    pub(super) syncs: bool,
    /// Whether the client waits for the answer. If not, nothing is printed, and the deadline is
    /// longer.
    pub(super) is_awaited: bool,
}

/// An action that adds to the model's context, or learns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Action<'a> {
    Nothing,
    /// Inject the working set.
    Start {
        source: StartSource,
        /// The seconds since the last answer in the session's history.
        idle_seconds: Option<i64>,
    },
    /// Run our slash command, or inject matching notes.
    Prompt(&'a RawPrompt),
    /// Inject notes that match the subagent's task.
    Task(&'a Agent),
    /// Warn of the call.
    Warn(&'a ToolCall),
    /// Say what fixed the failure before.
    Fix(&'a [ToolCall]),
    /// Point to a note that names the file.
    File(&'a ToolCall),
    /// Tell the client what its summary of the session should contain.
    Instruct,
    /// Detect which injected notes the turn used.
    Learn {
        /// The subagent; empty for the session itself.
        agent: &'a str,
        text: Option<&'a str>,
    },
}

/// When an event starts the deferred process. Events of single tools never do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Worker {
    Never,
    /// If the journal's write-ahead log is long, because each hook reads it.
    Checkpoint,
    /// For any pending work.
    Pending,
    Always,
}

/// Returns what a hook does at an event.
pub(super) fn plan(payload: &Payload) -> Plan<'_> {
    let agent = payload.agent.as_ref();
    let plan = |action, worker| Plan {
        action,
        worker,
        note: None,
        syncs: false,
        is_awaited: true,
    };
    match &payload.event {
        HookEvent::SessionStart {
            source,
            idle_seconds,
            ..
        } => {
            let start = Action::Start {
                source: *source,
                idle_seconds: *idle_seconds,
            };
            Plan {
                syncs: true,
                ..plan(start, Worker::Pending)
            }
        }
        HookEvent::UserPromptSubmit { prompt } => plan(Action::Prompt(prompt), Worker::Pending),
        HookEvent::SubagentStart => {
            plan(agent.map_or(Action::Nothing, Action::Task), Worker::Never)
        }
        HookEvent::PreToolUse(call) => plan(Action::Warn(call), Worker::Never),
        HookEvent::PostToolUseFailure(call) => {
            plan(Action::Fix(std::slice::from_ref(call)), Worker::Never)
        }
        // A turn with many tools has such a batch now and then.
        HookEvent::PostToolBatch(calls) => plan(Action::Fix(calls), Worker::Checkpoint),
        HookEvent::Stop(text) => {
            let text = text.as_deref();
            plan(Action::Learn { agent: "", text }, Worker::Pending)
        }
        HookEvent::SubagentStop(text) => {
            let text = text.as_deref();
            let learn = agent.map(|agent| Action::Learn {
                agent: &agent.id,
                text,
            });
            plan(learn.unwrap_or(Action::Nothing), Worker::Never)
        }
        HookEvent::PreCompact => Plan {
            note: Some("precompact"),
            ..plan(Action::Instruct, Worker::Pending)
        },
        HookEvent::SessionEnd { .. } => Plan {
            note: Some("session-end"),
            syncs: true,
            is_awaited: false,
            ..plan(Action::Nothing, Worker::Always)
        },
        HookEvent::PostToolUse(call) => plan(Action::File(call), Worker::Never),
        HookEvent::PostCompact { .. } | HookEvent::Other => plan(Action::Nothing, Worker::Never),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_has_its_plan() {
        let agent = r#", "agent_id": "a", "agent_type": "Explore""#;
        for (event, fields, expected) in [
            (
                "SessionStart",
                "",
                "Start { source: Other, idle_seconds: None } Pending sync",
            ),
            ("UserPromptSubmit", "", "Prompt(RawPrompt) Pending"),
            ("PreToolUse", "", "Warn Never"),
            ("PostToolUse", "", "File Never"),
            ("PostToolUseFailure", "", "Fix Never"),
            ("PostToolBatch", "", "Fix([]) Checkpoint"),
            ("SubagentStart", "", "Nothing Never"),
            ("SubagentStart", agent, "Task Never"),
            ("SubagentStop", "", "Nothing Never"),
            ("SubagentStop", agent, "Learn(a) Never"),
            ("Stop", agent, "Learn() Pending"),
            ("PreCompact", "", "Instruct Pending note:precompact"),
            ("PostCompact", "", "Nothing Never"),
            (
                "SessionEnd",
                "",
                "Nothing Always sync note:session-end unawaited",
            ),
            ("Notification", "", "Nothing Never"),
        ] {
            let json = format!(r#"{{"session_id": "s", "hook_event_name": "{event}"{fields}}}"#);
            let payload = Payload::parse(json.as_bytes()).unwrap();
            let plan = plan(&payload);
            let action = match plan.action {
                Action::Warn(_) => "Warn".to_owned(),
                Action::File(_) => "File".to_owned(),
                Action::Fix(calls) if !calls.is_empty() => "Fix".to_owned(),
                Action::Task(_) => "Task".to_owned(),
                Action::Learn { agent, .. } => format!("Learn({agent})"),
                other => format!("{other:?}"),
            };
            let mut found = format!("{action} {:?}", plan.worker);
            found += if plan.syncs { " sync" } else { "" };
            found += &plan
                .note
                .map_or_else(String::new, |note| format!(" note:{note}"));
            found += if plan.is_awaited { "" } else { " unawaited" };
            assert_eq!(found, expected, "{event}{fields}");
        }
    }
}
