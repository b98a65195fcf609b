//! `memory_feedback`: rates a note.

use anamnesis_app::learn;
use anamnesis_note::usage_log::Feedback;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, ToolError},
    note,
    tool::{Effect, Tool},
    write::{Writing, present},
};

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_feedback",
        "Say whether a note helped",
        "Say that a note helped (good), or was wrong or in the way (bad). It counts once a session for \
         how the note comes up from now on; nothing in the note changes.",
        Effect::Notes,
        run,
    )
}

/// What is said of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(crate = "rmcp::schemars")]
enum Said {
    Good,
    Bad,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    id: String,
    said: Said,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Noted {
    /// What happened, to be told to the person
    said: String,
    id: String,
    /// Whether the person's other machines are told
    told: bool,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Noted, ToolError> {
    let Parameters { id, said } = asked;
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let entry = present(&index, &id)?;
    // Recording the feedback opens the index as well.
    drop(index);
    let is_good = said == Said::Good;
    let feedback = if is_good {
        Feedback::Good
    } else {
        Feedback::Bad
    };
    let Writing {
        context, journal, ..
    } = &writing;
    let session = context.environment.session.clone();
    let told = learn::rate(context, journal, &entry, feedback, session)?;
    let became = if is_good {
        "helped"
    } else {
        "was wrong or in the way"
    };
    Ok(Noted {
        said: format!(
            "noted: #{} \"{}\" {became}",
            writing.short(entry.id()),
            note::title(&entry.title)
        ),
        id: entry.id().to_string(),
        told,
    })
}
