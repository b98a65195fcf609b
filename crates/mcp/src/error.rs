//! The errors that tools return.

use anamnesis_app::{Error, error::Kind};
use anamnesis_recall::render::inert_line;
use anamnesis_store::index::Unresolvable;
use serde::Serialize;
use serde_json::Value;

use crate::tool::Tool;

/// How many matching notes an error lists.
const MAX_NAMED: usize = 10;

/// How many characters of an input an error quotes.
const MAX_QUOTED: usize = 300;

/// Why a tool call failed, in a form that a model can act on.
#[derive(Debug, Serialize)]
pub(crate) struct ToolError {
    code: &'static str,
    message: String,
    hint: String,
    /// Whether a new index helps.
    #[serde(skip)]
    pub(crate) is_index_damage: bool,
}

impl ToolError {
    fn new(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            hint: hint.into(),
            is_index_damage: false,
        }
    }

    /// A text does not name exactly one note.
    fn unresolvable(message: &str, cause: &Unresolvable) -> Self {
        match cause {
            Unresolvable::NotAnId => Self::new(
                "bad_id",
                quoted(message),
                "expected 6 or more characters of the beginning or the end of a note id",
            ),
            Unresolvable::Nothing(reference) => Self::new(
                "no_such_note",
                format!("no note has the id {}", reference.as_str()),
                "memory_search and memory_list return ids",
            ),
            Unresolvable::Unreadable(problem) => Self::new(
                "unreadable",
                format!("{}: {}", problem.path, quoted(&problem.reason)),
                "a person can repair it: anamnesis doctor",
            ),
            Unresolvable::Several(reference, found) => {
                let named = found.iter().take(MAX_NAMED).map(|entry| {
                    let title: String = inert_line(&entry.title).chars().take(80).collect();
                    format!("{} {title}", entry.id())
                });
                Self::new(
                    "ambiguous_id",
                    format!(
                        "{} matches {} notes: {}",
                        reference.as_str(),
                        found.len(),
                        named.collect::<Vec<_>>().join("; ")
                    ),
                    "pass the full id",
                )
            }
            Unresolvable::Index(error) => Self::internal(&error.to_string()),
        }
    }

    /// An argument is missing, unknown or of the wrong type.
    pub(crate) fn argument(message: &str, parameters: &str) -> Self {
        let hint = if parameters.is_empty() {
            "this tool takes no parameters".to_owned()
        } else {
            format!("parameters: {parameters}")
        };
        Self::new("bad_argument", quoted(message), hint)
    }

    /// An argument that tools must not set.
    pub(crate) fn not_for_tools(name: &str, parameters: &str) -> Self {
        Self::new(
            "not_for_tools",
            format!("a tool cannot set `{name}`"),
            format!("omit it; parameters: {parameters}"),
        )
    }

    /// The tool does not exist.
    pub(crate) fn unknown_tool(name: &str, tools: &[Tool]) -> Self {
        let names: Vec<&str> = tools.iter().map(|tool| &*tool.described.name).collect();
        let message = format!("unknown tool \"{}\"", quoted(name));
        Self::new(
            "unknown_tool",
            message,
            format!("expected one of {}", names.join(", ")),
        )
    }

    /// The store or the program has an error.
    pub(crate) fn internal(message: &str) -> Self {
        let hint = "ask the person to run: anamnesis doctor";
        Self::new("failed", quoted(message), hint)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    pub(crate) fn value(&self) -> Value {
        // A struct of three strings always serialises.
        serde_json::to_value(self).unwrap_or_default()
    }
}

impl From<Error> for ToolError {
    fn from(error: Error) -> Self {
        if let Some(cause) = error.cause::<Unresolvable>() {
            return Self::unresolvable(error.message(), cause);
        }
        let message = quoted(error.message());
        let is_index_damage = error.is_index_damage();
        let hint = match error.next_step() {
            Some(step) if !step.starts_with("anamnesis ") => quoted(step),
            step => {
                let step = step.unwrap_or("anamnesis doctor");
                quoted(&format!("ask the person to run: {step}"))
            }
        };
        let described = match (error.kind(), error.tool_code()) {
            (_, Some(code)) => Self::new(code, message, hint),
            (Kind::Busy, _) => Self::new("busy", message, "retry"),
            (Kind::Damaged, _) => {
                let hint = "a repair runs in the background; retry in a few seconds";
                Self::new("busy", message, hint)
            }
            (Kind::Full, _) => {
                let hint =
                    "memory_amend changes a note; the person can write more: /memory-remember TEXT";
                Self::new("too_many", message, hint)
            }
            (Kind::Store, _) => Self::internal(error.message()),
            (Kind::Usage, _) => Self::new("bad_argument", message, hint),
            (Kind::Failed, _) => Self::new("failed", message, hint),
        };
        Self {
            is_index_damage,
            ..described
        }
    }
}

/// Shortens an input and makes it inert, for quoting in an error.
fn quoted(text: &str) -> String {
    let head: String = text.chars().take(MAX_QUOTED).collect();
    inert_line(&head)
}
