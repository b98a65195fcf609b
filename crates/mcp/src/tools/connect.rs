//! `memory_connect`: links one note to another.

use anamnesis_app::write::is_a_persons;
use anamnesis_note::link::{Link, Relation};
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, ToolError},
    tool::{Effect, Tool, Word},
    write::{Writing, present},
};

pub(super) fn tool() -> Tool {
    Tool::writing(
        "memory_connect",
        "Link two notes",
        "Add or remove a link between two notes; linked notes are found together. `supersedes` hides the \
         target. If that changes or hides a note by the person or for all projects, it becomes a proposal.",
        Effect::Replaces,
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    /// Id of the source note
    from: String,
    /// Id of the target note
    to: String,
    relation: Word<Relation>,
    /// Above 0, at most 1
    weight: Option<f64>,
    /// Remove the link
    #[serde(default)]
    remove: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Linked {
    /// Result, for the person
    said: String,
    from: String,
    relation: &'static str,
    to: String,
    /// Something changed, or would if approved
    changed: bool,
    /// Id of the proposal, if approval is needed
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<String>,
}

fn run(memory: &Memory, asked: Parameters) -> Result<Linked, ToolError> {
    let Parameters {
        from,
        to,
        relation: Word(relation),
        weight,
        remove,
    } = asked;
    let bad = |message: &str, hint: &str| Err(ToolError::new("bad_argument", message, hint));
    if let Some(weight) = weight {
        if !(weight > 0.0 && weight <= 1.0) {
            return bad(
                &format!("invalid weight {weight}"),
                "expected a number above 0, at most 1",
            );
        }
        if relation == Relation::Supersedes || remove {
            return bad("supersedes and remove take no weight", "omit weight");
        }
    }
    let writing = Writing::begin(memory)?;
    let index = writing.index()?;
    // Removing is allowed even if the target note is forgotten.
    let [from, to] = [from, to].map(|id| {
        if remove {
            Memory::resolve(&index, &id)
        } else {
            present(&index, &id)
        }
    });
    let (from, to) = (from?, to?);
    if from.id() == to.id() {
        return bad(
            "`from` and `to` are the same note",
            "pass two different notes",
        );
    }
    let link = Link {
        relation,
        target: to.id(),
        weight,
    };
    let is_reaching = relation == Relation::Supersedes && is_a_persons(&to);
    let (written, changed) = writing.change(index, &from, is_reaching, |note| {
        if remove {
            link.withdraw(note);
        } else {
            link.declare(note);
        }
    })?;
    let is_proposed = written.note.id() != from.id().to_string();
    let said = if is_proposed || !changed {
        written.said
    } else {
        let [from, to] = [from.id(), to.id()].map(|id| writing.short(id));
        let now = if remove { "no longer" } else { "now" };
        format!("#{from} {now} {relation} #{to}")
    };
    Ok(Linked {
        said,
        from: from.id().to_string(),
        relation: relation.as_str(),
        to: to.id().to_string(),
        changed,
        proposal: is_proposed.then(|| written.note.id().to_owned()),
    })
}
