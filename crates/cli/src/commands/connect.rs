//! `connect`: adds or removes a link between two notes.

use std::process::ExitCode;

use anamnesis_app::{context::Context, failure::Failure, sync};
use anamnesis_note::{
    link::{Link, Relation, given, parse_weight},
    note::{Note, State},
};
use anamnesis_store::index::Entry;
use anamnesis_text::clean::one_line;
use serde_json::json;

use super::write::{self, is_out_of_reach};
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
    #[arg(long, short, value_parser = relation, default_value = "related-to")]
    relation: Relation,
    /// The weight of the link, above 0 and at most 1 [default: the weight of the relation]
    #[arg(long, value_parser = weight)]
    weight: Option<f64>,
    /// Remove the link
    #[arg(long, conflicts_with = "weight")]
    remove: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn relation(word: &str) -> Result<Relation, String> {
    given(word).map_err(|error| error.to_string())
}

fn weight(text: &str) -> Result<f64, String> {
    parse_weight(text).map_err(|error| error.to_string())
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let from = Context::resolve(&index, &args.from)?;
    let to = Context::resolve(&index, &args.to)?;
    check(args, &from, &to)?;
    let link = Link {
        relation: args.relation,
        target: to.id(),
        weight: args.weight,
    };
    let change = |note: &mut Note| {
        if args.remove {
            link.withdraw(note);
        } else {
            link.declare(note);
        }
    };
    let hides = args.relation == Relation::Supersedes && !args.remove;
    let reaches = |entry| is_out_of_reach(context, entry);
    let is_reaching = reaches(&from) || hides && reaches(&to);
    if context.environment.is_agent && is_reaching {
        let mut changed = context.notes.read(from.path)?.note();
        change(&mut changed);
        return write::propose(context, ui, index, changed, "connect");
    }
    let [short_from, short_to] = [&from, &to].map(|entry| Context::short(&index, entry.id()));
    drop(index);
    let lock = context.notes.lock()?;
    let stored = context.notes.update(&lock, from.path, change)?;
    drop(lock);
    let is_changed = stored.stamp != from.stamp;
    if is_changed {
        sync::commit(context, "connect", [from.id()]);
        context.index()?;
    }
    if args.json {
        ui.json(&json!({
            "from": from.id().to_string(),
            "relation": args.relation.as_str(),
            "to": to.id().to_string(),
            "weight": args.weight,
            "removed": args.remove,
            "changed": is_changed,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    if !is_changed {
        ui.print(&format!("#{short_from} is as it was\n"));
        return Ok(ExitCode::SUCCESS);
    }
    let (said, back) = if args.remove {
        ("no longer", "")
    } else {
        ("now", " --remove")
    };
    ui.print(&format!(
        "#{short_from} \"{}\"\n  {said} {} #{short_to} \"{}\"\n\
         Undo: anamnesis connect {short_from} {short_to} --relation {}{back}\n",
        one_line(&from.title),
        args.relation,
        one_line(&to.title),
        args.relation,
    ));
    Ok(ExitCode::SUCCESS)
}

/// Refuses links that make no sense.
fn check(args: &Args, from: &Entry, to: &Entry) -> Result<(), Failure> {
    if from.id() == to.id() {
        return Err(Failure::usage("a note cannot be linked to itself"));
    }
    if args.weight.is_some() && args.relation == Relation::Supersedes {
        return Err(Failure::usage(
            "a note replaces another one or not; it has no weight",
        ));
    }
    for entry in [from, to] {
        if entry.state == State::Forgotten && !args.remove {
            return Err(
                Failure::failed(format!("#{} is forgotten", entry.id().short()))
                    .hint(format!("anamnesis restore {}", entry.id())),
            );
        }
    }
    Ok(())
}
