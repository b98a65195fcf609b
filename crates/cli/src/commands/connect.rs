//! `connect`: adds or removes a link between two notes.

use std::process::ExitCode;

use anamnesis_app::{
    context::Context,
    edit::{self, LinkOutcome},
};
use anamnesis_note::link::{Relation, given, parse_weight};
use anamnesis_text::clean::one_line;
use serde_json::json;

use super::write;
use crate::ui::{Outcome, Ui};

/// Link a note to another one
///
/// The link is stored as a line of the first note. Linked notes are recalled together. An existing
/// link stays; a new weight replaces the old one.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The source note: six or more characters of the start or end of its id
    from: String,
    /// The target note: six or more characters of the start or end of its id
    to: String,
    /// The relation: caused-by, elaborates, part-of, related-to, about, contradicts, warns-against
    /// or supersedes
    #[arg(long, short, value_parser = given, default_value = "related-to")]
    relation: Relation,
    /// The weight of the link, above 0 and at most 1 [default: the weight of the relation]
    #[arg(long, value_parser = parse_weight)]
    weight: Option<f64>,
    /// Remove the link
    #[arg(long, conflicts_with = "weight")]
    remove: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let ids = [args.from.as_str(), &args.to];
    let connected = edit::connect(context, ids, args.relation, args.weight, args.remove)?;
    let (from, to, short_to) = match connected {
        LinkOutcome::Proposed(saved) => return Ok(write::print(ui, &saved, None)),
        LinkOutcome::Linked { from, to, short_to } => (from, to, short_to),
    };
    let (short_from, relation) = (&from.short, args.relation);
    if args.json {
        ui.json(&json!({
            "from": from.entry.id().to_string(),
            "relation": relation.as_str(),
            "to": to.id().to_string(),
            "weight": args.weight,
            "removed": args.remove,
            "changed": from.is_changed(),
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if !from.is_changed() {
        ui.print(&format!("#{short_from} is unchanged\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let (said, back) = if args.remove {
        ("no longer", "")
    } else {
        ("now", " --remove")
    };
    ui.print(&format!(
        "#{short_from} \"{}\"\n  {said} {relation} #{short_to} \"{}\"\n\
         Undo: anamnesis connect {short_from} {short_to} --relation {relation}{back}\n",
        one_line(&from.entry.title),
        one_line(&to.title),
    ));
    Ok(ExitCode::SUCCESS)
}
