//! Tells what a person typed from what was put into the session by programs.
//!
//! The client logs commands, notifications and its own remarks as if a person had typed them, in
//! tags of its own. A text that starts with one of these is wholly the client's: what a tool or a
//! subagent printed may stand inside, and may even hold the closing tag.

use std::borrow::Cow;

use crate::redact::redact;
use crate::sanitize::uncut;

/// Tags of prompts that no person sent.
const NOTIFICATIONS: [&str; 5] = [
    "task-notification",
    "teammate-message",
    "cross-session-message",
    "fork-source",
    "tick",
];

/// Tags of a command that goes to the model. Of a command that the client runs itself, the name
/// comes first.
const COMMANDS: [&str; 1] = ["command-message"];

/// Tags of what the client ran itself, and of what that printed.
const LOCAL: [&str; 10] = [
    "command-name",
    "command-args",
    "local-command-stdout",
    "local-command-stderr",
    "local-command-caveat",
    "bash-input",
    "bash-stdout",
    "bash-stderr",
    "bash-exit-code",
    "user-memory-input",
];

/// Tags of what an editor or the client adds in front of a person's words.
const SURROUNDINGS: [&str; 3] = ["ide_opened_file", "ide_selection", "system-reminder"];

/// A text that may be stored: private regions, control characters and credentials are out.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Words {
    /// What is left, trimmed.
    pub text: String,
    /// Whether a person had marked a part as private.
    pub private: bool,
}

/// Makes any text fit to be stored. Whoever shortens it does so afterwards.
pub fn words(raw: &str) -> Words {
    let mut words = unmasked(raw);
    words.mask();
    words
}

/// Does what [`words`] does, all but the masking of credentials.
///
/// For texts of which only one in many is kept.
pub fn unmasked(raw: &str) -> Words {
    let (text, removed) = uncut(raw);
    Words {
        text: text.into_owned(),
        private: removed.private,
    }
}

impl Words {
    /// Masks the credentials.
    pub fn mask(&mut self) {
        if let Cow::Owned(masked) = redact(&self.text).text {
            self.text = masked;
        }
    }
}

/// What a prompt is, and what of it may be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// Who sent it, and how.
    pub kind: PromptKind,
    /// The words of a person, or the command as it was typed; empty for every other kind.
    pub text: String,
    /// Whether a person had marked a part as private.
    pub private: bool,
}

/// The kinds of prompts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PromptKind {
    /// A person's words.
    Person,
    /// Nothing was left of a person's words: what the model does next is private, too.
    Private,
    /// A slash command that goes to the model.
    Command,
    /// A command that the client ran itself, or what that printed.
    Local,
    /// A message of a program.
    Notification,
    /// No words: an image only, the mark of an interruption, or what was injected.
    Empty,
}

impl Prompt {
    /// Sorts a prompt, as the transcript or a hook has it, and makes its text fit to be stored.
    pub fn new(raw: &str) -> Self {
        let mut prompt = Self::unmasked(raw);
        if let Cow::Owned(masked) = redact(&prompt.text).text {
            prompt.text = masked;
        }
        prompt
    }

    /// Does what [`Prompt::new`] does, and masks nothing: a prompt may be megabytes, and whoever keeps
    /// a part of it has that part masked.
    pub fn unmasked(raw: &str) -> Self {
        let words = unmasked(raw);
        let (kind, typed) = match sort(&words.text) {
            (PromptKind::Empty, _) if words.private && words.text.is_empty() => {
                (PromptKind::Private, "")
            }
            sorted => sorted,
        };
        Prompt {
            kind,
            text: typed.to_owned(),
            private: words.private,
        }
    }
}

/// Tells the kind of a prompt and what of it a person typed.
fn sort(text: &str) -> (PromptKind, &str) {
    let mut typed = text;
    while let Some(tag) = leading_tag(typed) {
        let is_one_of = |names: &[&str]| names.iter().any(|name| tag.eq_ignore_ascii_case(name));
        if is_one_of(&NOTIFICATIONS) {
            return (PromptKind::Notification, "");
        } else if is_one_of(&COMMANDS) {
            return (PromptKind::Command, "");
        } else if is_one_of(&LOCAL) {
            return (PromptKind::Local, "");
        } else if !is_one_of(&SURROUNDINGS) {
            break;
        }
        // The last close counts: the first may stand in the file that is quoted.
        let close = format!("</{tag}>");
        typed = match typed.rfind(&close) {
            Some(position) => typed[position + close.len()..].trim_start(),
            None => "",
        };
    }
    if typed.is_empty() || is_interruption(typed) {
        (PromptKind::Empty, "")
    } else if is_command(typed) {
        (PromptKind::Command, typed)
    } else {
        (PromptKind::Person, typed)
    }
}

/// Returns the name of the tag that the text starts with.
fn leading_tag(text: &str) -> Option<&str> {
    let inner = text.strip_prefix('<')?;
    let end = inner.find(|c: char| c.is_whitespace() || c == '>' || c == '/')?;
    Some(&inner[..end])
}

fn is_interruption(text: &str) -> bool {
    text.strip_prefix("[Request interrupted by user")
        .and_then(|rest| rest.strip_suffix(']'))
        .is_some_and(|rest| !rest.contains([']', '\n']))
}

/// Tells whether a prompt is a slash command as typed: a path has a second slash.
fn is_command(text: &str) -> bool {
    let Some(rest) = text.strip_prefix('/') else {
        return false;
    };
    let name = rest.split(char::is_whitespace).next().unwrap_or_default();
    !name.is_empty()
        && name
            .chars()
            .all(|c| c.is_alphanumeric() || matches!(c, ':' | '-' | '_' | '.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(raw: &str, kind: PromptKind, text: &str) {
        let prompt = Prompt::new(raw);
        assert_eq!((prompt.kind, prompt.text.as_str()), (kind, text), "{raw:?}");
    }

    #[test]
    fn a_persons_words() {
        for (raw, text) in [
            ("  Fix the parser\n", "Fix the parser"),
            ("<div> is not closed, why?", "<div> is not closed, why?"),
            ("/etc/hosts has a wrong line", "/etc/hosts has a wrong line"),
            ("/ is full", "/ is full"),
            (
                "<ide_opened_file>The user opened a.rs</ide_opened_file>\nFix it",
                "Fix it",
            ),
            (
                "<ide_selection>let a = \"</ide_selection>\";</ide_selection> Fix it",
                "Fix it",
            ),
            (
                "<system-reminder>Today is Monday.</system-reminder>Fix it",
                "Fix it",
            ),
            (
                "[Request interrupted by user] stands in my log, why?",
                "[Request interrupted by user] stands in my log, why?",
            ),
            (
                "add limits <private>pw is T7-blue</private> to the login",
                "add limits  to the login",
            ),
        ] {
            check(raw, PromptKind::Person, text);
        }
    }

    #[test]
    fn commands() {
        let message = "<command-message>probe:hello</command-message>\n\
                       <command-name>/probe:hello</command-name>\n\
                       <command-args>ann glad</command-args>";
        check(message, PromptKind::Command, "");
        check("/probe:hello bob", PromptKind::Command, "/probe:hello bob");
        check("/clear", PromptKind::Command, "/clear");
        let local = "<command-name>/compact</command-name>\n  \
                     <command-message>compact</command-message>\n  \
                     <command-args>keep the names</command-args>";
        check(local, PromptKind::Local, "");
        check(
            "<local-command-stdout>\u{1b}[2mCompacted\u{1b}[22m</local-command-stdout>",
            PromptKind::Local,
            "",
        );
        check("<bash-input>ls</bash-input>", PromptKind::Local, "");
    }

    /// CAP-04: no closing tag in a result, and no half of a private region, makes it a person's.
    #[test]
    fn notifications_stay_notifications() {
        for raw in [
            "<task-notification>\n<result>done</result>\n</task-notification>",
            "<task-notification>a</task-notification>\nRemember this: b",
            "<Task-Notification id=\"1\">a",
            "<task-notification>a <private>b</task-notification>",
            "\u{200b}<task\u{200b}-notification>a",
        ] {
            check(raw, PromptKind::Notification, "");
        }
    }

    #[test]
    fn prompts_without_words() {
        for raw in [
            "",
            " \n",
            "\u{200b}",
            "[Request interrupted by user]",
            "[Request interrupted by user for tool use]",
            "<system-reminder>only this</system-reminder>",
            "<anamnesis-context>our own notes",
            "<ide_selection>not closed",
        ] {
            check(raw, PromptKind::Empty, "");
        }
    }

    /// PR-10.
    #[test]
    fn wholly_private_prompts() {
        for raw in [
            "<private>everything</private>",
            " <private>not closed",
            "<pri\u{200b}vate>hidden</private>",
        ] {
            check(raw, PromptKind::Private, "");
            assert!(Prompt::new(raw).private);
        }
    }

    /// PR-8, CAP-01: tags first, then credentials, whatever parts them.
    #[test]
    fn words_are_stripped_cleaned_and_masked() {
        let token = format!("gh{}{}", "p_", "16C7e42F292c6912E7710c838347Ae178B4a");
        let (head, tail) = token.split_at(20);
        for raw in [
            format!("use {token} here"),
            format!("use {head}\u{200b}{tail} here"),
            format!("use {head}<private>x</private>{tail} here"),
        ] {
            assert_eq!(words(&raw).text, "use [REDACTED] here", "{raw:?}");
        }
        let escaped = "\u{1b}]0;<private>\u{7}hidden</private>seen";
        assert_eq!(words(escaped).text, "0;seen");
    }
}
