//! Our slash commands, answered without a turn of the model.
//!
//! The hook runs the command line and returns its output as the reason for blocking the prompt, which
//! the client shows unchanged. A program can send a prompt, too ([`super::typed_by`]), so a prompt only
//! looks, or changes one note in a way that `undo` reverts. Anything else is done in a terminal.

use std::{env, path::Path};

use anamnesis_app::{context::Context, environment::Environment, format::quoted, terminal_command};
use anamnesis_note::id::IdPrefix;
use anamnesis_session::{
    hook::{HookEvent, HookOutput, Payload},
    prompt::RawPrompt,
};
use anamnesis_text::redact::redact;

/// Runs a command line that a person typed, and returns what it prints.
pub(crate) type RunTyped = fn(&[String], Environment) -> String;

/// The hook's action for one of our slash commands.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Typed {
    /// Runs this command line as the person.
    Run(Vec<String>),
    /// Names this command line for a terminal.
    InTerminal(Vec<String>),
    /// Does nothing, because no person typed it. Names this command for a terminal.
    Refused(&'static str),
}

/// Our slash commands, and the commands of a terminal that do the same.
const COMMANDS: [(&str, &str); 17] = [
    ("memory-config", "config"),
    ("memory-doctor", "doctor"),
    ("memory-forget", "forget"),
    ("memory-off", "off"),
    ("memory-on", "on"),
    ("memory-open", "open"),
    ("memory-pause", "off"),
    ("memory-reflect", "reflect"),
    ("memory-remember", "write"),
    ("memory-resume", "on"),
    ("memory-review", "review"),
    ("memory-search", "search"),
    ("memory-setup", "init"),
    ("memory-status", "status"),
    ("memory-task", "task"),
    ("memory-undo", "undo"),
    ("memory-why", "why"),
];

/// Returns what to do with a prompt that is one of our slash commands; `None` for any other, and for
/// those that Claude answers.
///
/// Only in an interactive session: headless, the client prints no reason, and a prompt may come from
/// the agent.
pub(super) fn typed(payload: &Payload, context: &Context) -> Option<Typed> {
    let HookEvent::UserPromptSubmit { prompt } = &payload.event else {
        return None;
    };
    if !prompt.is_typed() {
        let ours = COMMANDS.iter().find(|(name, _)| prompt.names(name))?;
        return Some(Typed::Refused(ours.1));
    }
    if !context.environment.is_interactive || payload.agent.is_some() {
        return None;
    }
    command_line(prompt, &payload.session_id)
}

fn command_line(prompt: &RawPrompt, session: &str) -> Option<Typed> {
    let words = |first: &[&str], rest: &str| -> Vec<String> {
        let first = first.iter().copied();
        let words = first.chain(rest.split_whitespace());
        words.map(str::to_owned).collect()
    };
    let run = |first: &[&str], rest: &str| Some(Typed::Run(words(first, rest)));
    let in_terminal = |first: &[&str], rest: &str| Some(Typed::InTerminal(words(first, rest)));
    // The text of a search is one argument, whatever characters it has.
    let search = |text: &str| {
        let words = ["search", "--", text].map(str::to_owned);
        Some(Typed::Run(words.to_vec()))
    };
    let (verb, rest) = COMMANDS
        .iter()
        .find_map(|(name, verb)| Some((*verb, prompt.command(name)?)))?;
    match verb {
        "status" | "undo" | "off" => run(&[verb], rest),
        "doctor" if rest.is_empty() => run(&[verb], ""),
        "doctor" | "on" => in_terminal(&[verb], rest),
        "why" => run(&[verb, session], ""),
        "search" => search(rest),
        "forget" => {
            let is_id = !rest.contains(char::is_whitespace) && IdPrefix::parse(rest).is_ok();
            if is_id || rest.is_empty() {
                Some(Typed::Run([verb, rest].map(str::to_owned).to_vec()))
            } else {
                search(rest)
            }
        }
        "task" if rest.is_empty() => run(&[verb, "list"], ""),
        "config" => {
            let mut words = rest.split_whitespace();
            match (words.next(), words.next()) {
                (None, _) => run(&[verb, "list"], ""),
                (Some("get" | "list"), _) => run(&[verb], rest),
                (Some("set" | "unset"), _) => in_terminal(&[verb], rest),
                (_, None) => run(&[verb, "get"], rest),
                _ => in_terminal(&[verb, "set"], rest),
            }
        }
        "init" => match rest.split_whitespace().collect::<Vec<_>>()[..] {
            [] => run(&[verb, "--print"], ""),
            // Terminal commands need it. It changes no note and no setting.
            ["link"] => run(&[verb, "--link", "--no-sync"], ""),
            ["remote", "none"] => in_terminal(&[verb, "--local-only"], ""),
            ["remote", address] => in_terminal(&[verb, "--remote"], address),
            _ => in_terminal(&[verb, "--help"], ""),
        },
        // Claude answers these.
        _ => None,
    }
}

impl Typed {
    /// Returns whether the next step is one in a terminal.
    fn leads_to_a_terminal(&self) -> bool {
        match self {
            Self::Run(words) => matches!(words.first().map(String::as_str), Some("off" | "status")),
            Self::InTerminal(_) => true,
            Self::Refused(_) => false,
        }
    }

    /// Returns the answer. Runs a command line in the project's folder.
    pub(super) fn answer(&self, run: RunTyped, context: &Context, folder: &Path) -> HookOutput {
        let mut text = match self {
            Self::Run(words) => {
                let mut environment = context.environment.clone();
                environment.is_agent = false;
                environment.is_in_prompt = true;
                // Commands act on the current folder, and the session's shell may have left the project.
                let _ = env::set_current_dir(folder);
                in_session(&run(words, environment))
            }
            Self::InTerminal(words) => {
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                format!(
                    "Nothing was changed: a program can send a prompt, so this is done in a terminal.\n\
                     → anamnesis {}\n",
                    redact(&words.join(" ")).text
                )
            }
            Self::Refused(command) => format!(
                "Nothing was done: this prompt was not typed by you.\n\
                 → anamnesis {command}   (in a terminal)\n"
            ),
        };
        let is_named = |mark: &str| text.contains(&format!("{mark}anamnesis "));
        if self.leads_to_a_terminal()
            && MARKS.into_iter().any(is_named)
            && let Some(line) = terminal_command::not_found(context)
        {
            text.push_str(&line);
        }
        HookOutput {
            reply: Some(text.trim_end().to_owned()),
            ..HookOutput::default()
        }
    }
}

/// The commands of a terminal that have a slash command with the same effect.
const SLASH: [(&str, &str); 12] = [
    ("init --link", "setup link"),
    ("config list", "config"),
    ("doctor", "doctor"),
    ("forget", "forget"),
    ("off", "off"),
    ("reflect", "reflect"),
    ("review", "review"),
    ("search", "search"),
    ("status", "status"),
    ("task add", "task"),
    ("undo", "undo"),
    ("why", "why"),
];

/// The marks before the command of a hint.
const MARKS: [&str; 3] = ["→ ", "· ", ": "];

/// Replaces the commands in hints by the slash commands that do the same. Options have none, nor do hints
/// for a terminal.
fn in_session(text: &str) -> String {
    let mut parts = text.split("anamnesis ");
    let mut said = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_hint = MARKS.iter().any(|mark| said.ends_with(mark));
        let slash = SLASH.iter().find_map(|(command, slash)| {
            let rest = part.strip_prefix(command)?;
            let is_whole = rest.is_empty() || rest.starts_with([' ', '\n', ')']);
            let is_same = !rest.trim_start_matches(' ').starts_with('-') || *command == "off";
            let is_same = is_same && !rest.contains("(in a terminal)");
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
            ("/memory-off --all", "off --all"),
            ("/anamnesis:memory-pause", "off"),
            ("/memory-why", "why s1"),
            (
                "/memory-search --json it's $(x)",
                "search|--|--json it's $(x)",
            ),
            ("/memory-forget #7q4kz9", "forget #7q4kz9"),
            ("/memory-forget the old stub", "search|--|the old stub"),
            // It says what is missing.
            ("/memory-forget", "forget "),
            ("/memory-task", "task list"),
            ("/memory-config", "config list"),
            ("/memory-config sync.auto", "config get sync.auto"),
            ("/memory-doctor", "doctor"),
            ("/memory-setup", "init --print"),
            ("/memory-setup link", "init --link --no-sync"),
            ("/memory-undo 7Q4K", "undo 7Q4K"),
            // Nothing of this is done by a prompt.
            ("/memory-doctor --fix", "terminal doctor --fix"),
            (
                "/memory-config sync.auto off",
                "terminal config set sync.auto off",
            ),
            (
                "/memory-config unset sync.auto",
                "terminal config unset sync.auto",
            ),
            (
                "/memory-setup remote git@h:me/m.git",
                "terminal init --remote git@h:me/m.git",
            ),
            ("/memory-setup remote none", "terminal init --local-only"),
            ("/memory-setup everything", "terminal init --help"),
            ("/memory-on --all", "terminal on --all"),
            ("/anamnesis:memory-resume", "terminal on"),
            // Claude has to see these.
            ("/memory-remember it", ""),
            ("/memory-task it", ""),
            ("/memory-review", ""),
            ("/memory-statuses", ""),
            ("what does /memory-status do?", ""),
        ] {
            let separator = if line.contains('|') { "|" } else { " " };
            let found = match command_line(&RawPrompt::new(prompt), "s1") {
                Some(Typed::Run(words)) => words.join(separator),
                Some(Typed::InTerminal(words)) => format!("terminal {}", words.join(separator)),
                other => other.map_or("", |_| "refused").to_owned(),
            };
            assert_eq!(found, line, "{prompt}");
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
            ("Resume: anamnesis on --all", "Resume: anamnesis on --all"),
            ("another anamnesis status", "another anamnesis status"),
        ] {
            assert_eq!(in_session(text), said);
        }
    }
}
