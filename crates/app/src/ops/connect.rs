//! Adds or removes a link between two notes.

use anamnesis_note::{
    link::{Link, Relation, given, parse_weight},
    note::Note,
};
use anamnesis_text::clean::one_line;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use super::written;
use crate::{Error, context::Context, write::is_a_persons};

/// A link to add or remove.
#[derive(Debug, Deserialize, JsonSchema, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ConnectNotes {
    /// The id of the source note
    pub from: String,
    /// The id of the target note
    pub to: String,
    /// The relation: caused-by, elaborates, part-of, related-to, about, contradicts, warns-against
    /// or supersedes
    #[arg(long, short, value_parser = given, default_value = "related-to")]
    #[schemars(description = "")]
    pub relation: Relation,
    /// The weight of the link, above 0 and at most 1. Default: that of the relation
    #[arg(long, value_parser = parse_weight)]
    pub weight: Option<f64>,
    /// Remove the link
    #[arg(long, conflicts_with = "weight")]
    #[serde(default)]
    pub remove: bool,
}

/// A link that was added or removed.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ConnectedNotes {
    /// Result, for the person
    pub said: String,
    from: String,
    relation: Relation,
    to: String,
    /// Something changed, or would if approved
    pub changed: bool,
    /// Id of the proposal, if approval is needed
    #[serde(skip_serializing_if = "Option::is_none")]
    proposal: Option<String>,
    /// The change that `undo` reverts.
    #[serde(skip)]
    pub batch: Option<Ulid>,
}

/// Adds or removes a link.
pub fn connect(context: &Context, request: ConnectNotes) -> Result<ConnectedNotes, Error> {
    let ConnectNotes {
        from,
        to,
        relation,
        weight,
        remove,
    } = request;
    if let Some(weight) = weight {
        if !(weight > 0.0 && weight <= 1.0) {
            return Err(Error::usage(format!("invalid weight {weight}"))
                .hint("expected a number above 0, at most 1"));
        }
        if relation == Relation::Supersedes || remove {
            return Err(
                Error::usage("supersedes and remove take no weight").hint("omit the weight")
            );
        }
    }
    let index = context.index()?;
    // Removing is allowed even if the target note is forgotten.
    let find = if remove {
        Context::resolve
    } else {
        Context::present
    };
    let (from, to) = (find(&index, &from)?, find(&index, &to)?);
    if from.id() == to.id() {
        return Err(Error::usage("a note cannot be linked to itself")
            .hint("pass two different notes as `from` and `to`"));
    }
    let link = Link {
        relation,
        target: to.id(),
        weight,
    };
    let hides = relation == Relation::Supersedes && !remove && is_a_persons(&to);
    let short_to = Context::short(&index, to.id());
    let written = written::change(
        context,
        index,
        &from,
        "connect",
        hides,
        |note: &mut Note| {
            if remove {
                link.withdraw(note);
            } else {
                link.declare(note);
            }
        },
    )?;
    let batch = written.batch;
    let said = if written.is_proposed || !written.is_changed {
        written.said
    } else {
        let (said, back) = if remove {
            ("no longer", "")
        } else {
            ("now", " --remove")
        };
        let short = written.short;
        format!(
            "#{short} \"{}\"\n  {said} {relation} #{short_to} \"{}\"\n\
             Undo: anamnesis connect {short} {short_to} --relation {relation}{back}",
            one_line(&from.title),
            one_line(&to.title),
        )
    };
    Ok(ConnectedNotes {
        said,
        from: from.id().to_string(),
        relation,
        to: to.id().to_string(),
        changed: written.is_changed,
        proposal: written.is_proposed.then(|| written.note.id().to_string()),
        batch,
    })
}
