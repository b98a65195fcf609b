//! `memory_feedback`: rates a note.

use anamnesis_app::feedback;
use anamnesis_note::note::Rating;
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
        "Rate a note",
        "Rate a note: good if it helped, bad if it was wrong or not useful. The rating is a key of the \
         note and counts for its ranking; its text does not change.",
        Effect::Notes,
        run,
    )
}

/// The rating
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
    /// Result, for the person
    said: String,
    id: String,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Noted, ToolError> {
    let Parameters { id, said } = asked;
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    let entry = present(&index, &id)?;
    // Rating opens the index as well.
    drop(index);
    let is_good = said == Said::Good;
    let rating = if is_good { Rating::Good } else { Rating::Bad };
    feedback::rate(&writing.context, &entry.id().to_string(), rating)?;
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
    })
}
