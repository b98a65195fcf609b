//! Slash commands that a person types in the client, answered without a turn of the model.
//!
//! The hook runs the command line and returns its output as the reason for blocking the prompt, which
//! the client shows unchanged. What the person types is the person's act, as in a terminal.

use std::{env, path::Path};

use anamnesis_app::{context::Context, environment::Environment, sync, terminal_command};
use anamnesis_note::id::IdPrefix;
use anamnesis_session::{
    hook::{Event, HookOutput, Payload},
    prompt::RawPrompt,
};

use super::{Handled, Hook};

/// Runs a command line that a person typed, and returns what it prints.
pub(crate) type RunTyped = fn(&[String], Environment) -> String;

/// A command line that a person typed as a slash command.
pub(super) struct Typed {
    run: RunTyped,
    words: Vec<String>,
}

/// Returns the command line for a prompt that is one of our slash commands.
///
/// Only in an interactive session: headless, the client prints no reason, and a prompt may come from
/// the agent.
pub(super) fn typed(run: RunTyped, payload: &Payload, context: &Context) -> Option<Typed> {
    let Event::UserPromptSubmit { prompt } = &payload.event else {
        return None;
    };
    if !context.environment.is_interactive || payload.agent.is_some() {
        return None;
    }
    let words = command_line(prompt, &payload.session_id)?;
    Some(Typed { run, words })
}

fn command_line(prompt: &RawPrompt, session: &str) -> Option<Vec<String>> {
    let line = |first: &[&str], rest: &str| {
        let first = first.iter().copied();
        Some(
            first
                .chain(rest.split_whitespace())
                .map(str::to_owned)
                .collect(),
        )
    };
    // The text of a search is one argument, whatever characters it has.
    let search = |text: &str| Some(["search", "--", text].map(str::to_owned).to_vec());
    for name in ["status", "doctor", "pause", "resume", "undo"] {
        if let Some(rest) = prompt.command(&format!("memory-{name}")) {
            return line(&[name], rest);
        }
    }
    if prompt.command("memory-why").is_some() {
        return line(&["why", session], "");
    }
    if let Some(text) = prompt.command("memory-search") {
        return search(text);
    }
    if let Some(text) = prompt.command("memory-forget") {
        let is_id = !text.contains(char::is_whitespace) && IdPrefix::parse(text).is_ok();
        return if is_id {
            line(&["forget"], text)
        } else {
            search(text)
        };
    }
    if prompt.command("memory-task") == Some("") {
        return line(&["task", "list"], "");
    }
    if let Some(rest) = prompt.command("memory-config") {
        let mut words = rest.split_whitespace();
        return match (words.next(), words.next()) {
            (None, _) => line(&["config", "list"], ""),
            (Some("get" | "list" | "set" | "unset"), _) => line(&["config"], rest),
            (_, None) => line(&["config", "get"], rest),
            _ => line(&["config", "set"], rest),
        };
    }
    let rest = prompt.command("memory-setup")?;
    match rest.split_whitespace().collect::<Vec<_>>()[..] {
        [] => line(&["init", "--print"], ""),
        ["link"] => line(&["init", "--link", "--no-sync"], ""),
        ["remote", "none"] => line(&["config", "unset", "remote"], ""),
        ["remote", address] => line(&["config", "set", "remote"], address),
        _ => line(&["init", "--help"], ""),
    }
}

impl Typed {
    /// Runs a command line as the person, in the project's folder, and returns its output as the answer.
    pub(super) fn answer(&self, context: &Context, folder: &Path) -> HookOutput {
        let mut environment = context.environment.clone();
        environment.is_agent = false;
        // Commands act on the current folder, and the session's shell may have left the project.
        let _ = env::set_current_dir(folder);
        let mut text = in_session(&(self.run)(&self.words, environment)).replace(JOIN, JOINED);
        if text.contains("→ anamnesis ") && !terminal_command::is_found(context) {
            text.push_str("The command `anamnesis` is not on your PATH: /memory-setup link\n");
        }
        HookOutput {
            reply: Some(text.trim_end().to_owned()),
            ..HookOutput::default()
        }
    }
}

/// The hint of `config set remote`, and its counterpart in a session, whose sync joins the remote.
const JOIN: &str = "→ /memory-setup   (reaches it and joins)\n";
const JOINED: &str = "Everyone who can read this repository can read your notes, session notes included.\n\
    It is joined in the background · /memory-status\nUndo: /memory-setup remote none\n";

impl Hook {
    /// Runs a slash command of the person.
    pub(super) fn typed(&self, typed: &Typed) -> Handled {
        let mut handled = Handled {
            answer: typed.answer(&self.context, &self.folder),
            ..Handled::default()
        };
        let is_remote = typed
            .words
            .iter()
            .map(String::as_str)
            .take(3)
            .eq(["config", "set", "remote"]);
        if is_remote {
            let now = self.context.environment.now.timestamp_millis();
            handled.meta.push((sync::WANTED, now.to_string()));
            handled.start_work = true;
        }
        handled
    }
}

/// The commands of a terminal that have a slash command.
const SLASH: [(&str, &str); 18] = [
    ("init --link", "setup link"),
    ("init --local-only", "setup remote none"),
    ("init --remote", "setup remote"),
    ("init", "setup"),
    ("config set", "config"),
    ("config list", "config"),
    ("config unset", "config unset"),
    ("doctor", "doctor"),
    ("forget", "forget"),
    ("pause", "pause"),
    ("reflect", "reflect"),
    ("resume", "resume"),
    ("review", "review"),
    ("search", "search"),
    ("status", "status"),
    ("task add", "task"),
    ("undo", "undo"),
    ("why", "why"),
];

/// Replaces the commands in hints by the slash commands that do the same. Options have none.
fn in_session(text: &str) -> String {
    let mut parts = text.split("anamnesis ");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_hint = ["→ ", "· ", ": "].iter().any(|mark| said.ends_with(mark));
        let slash = SLASH.iter().find_map(|(command, slash)| {
            let rest = part.strip_prefix(command)?;
            let is_whole = rest.is_empty() || rest.starts_with([' ', '\n', ')']);
            let is_same = !rest.trim_start_matches(' ').starts_with('-')
                || matches!(*command, "resume" | "pause");
            (is_whole && is_same).then_some((slash, rest))
        });
        match slash.filter(|_| is_hint) {
            Some((slash, rest)) => said.push_str(&format!("/memory-{slash}{rest}")),
            None => said.push_str(&format!("anamnesis {part}")),
        }
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slash_command_is_a_command_line() {
        for (prompt, line) in [
            ("/memory-status", "status"),
            ("/anamnesis:memory-resume --all", "resume --all"),
            ("/memory-why", "why s1"),
            (
                "/memory-search --json it's $(x)",
                "search|--|--json it's $(x)",
            ),
            ("/memory-forget #7q4kz9", "forget #7q4kz9"),
            ("/memory-forget the old stub", "search|--|the old stub"),
            ("/memory-task", "task list"),
            ("/memory-config", "config list"),
            ("/memory-config sync.auto", "config get sync.auto"),
            ("/memory-config sync.auto off", "config set sync.auto off"),
            ("/memory-config unset sync.auto", "config unset sync.auto"),
            ("/memory-setup", "init --print"),
            ("/memory-setup link", "init --link --no-sync"),
            (
                "/memory-setup remote git@h:me/m.git",
                "config set remote git@h:me/m.git",
            ),
            ("/memory-setup remote none", "config unset remote"),
            ("/memory-setup everything", "init --help"),
            ("/memory-undo 7Q4K", "undo 7Q4K"),
            // Claude has to see these.
            ("/memory-remember it", ""),
            ("/memory-task it", ""),
            ("/memory-review", ""),
            ("/memory-statuses", ""),
            ("what does /memory-status do?", ""),
        ] {
            let found = command_line(&RawPrompt::new(prompt), "s1").unwrap_or_default();
            let separator = if line.contains('|') { "|" } else { " " };
            assert_eq!(found.join(separator), line, "{prompt}");
        }
    }

    #[test]
    fn a_hint_names_what_can_be_typed_in_the_session() {
        for (text, said) in [
            ("→ anamnesis init --link\n", "→ /memory-setup link\n"),
            (
                "Undo: anamnesis undo 5K2M · more: anamnesis purge X",
                "Undo: /memory-undo 5K2M · more: anamnesis purge X",
            ),
            ("→ anamnesis doctor --fix", "→ anamnesis doctor --fix"),
            (
                "Resume: anamnesis resume --all",
                "Resume: /memory-resume --all",
            ),
            ("another anamnesis status", "another anamnesis status"),
        ] {
            assert_eq!(in_session(text), said);
        }
    }
}
