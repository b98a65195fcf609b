//! `pathway`: shows how two notes are connected, or the notes around one.

use std::process::ExitCode;

use anamnesis_app::{Error, context::Context, recall::known};
use anamnesis_note::{id::NoteId, link::parse_weight};
use anamnesis_recall::{
    graph::Links,
    note_set::Knowledge as _,
    pathway::{self, Around, Between, MIN_STRENGTH, Path},
    similar::Similar,
};
use anamnesis_store::index::Index;
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use crate::ui::{self, Outcome, Ui};

/// Show how two notes are connected, or the notes around one
///
/// Prints the strongest path of links, and up to three others: → is a link in its direction, ← a
/// link against it, – a symmetric one. Links derived from sessions, files and use are included.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end
    from: String,
    /// The other note; without it, show the notes around the first one
    to: Option<String>,
    /// The maximum distance in links from the note, 1 to 6
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=6), conflicts_with = "to")]
    depth: u8,
    /// The minimum weight of a link, above 0 and at most 1
    #[arg(long, value_parser = parse_weight, default_value_t = MIN_STRENGTH)]
    min_strength: f64,
    /// Include links between notes with similar text
    #[arg(long)]
    similar: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let from = Context::resolve(&index, &args.from)?.id();
    let journal = context.records()?;
    let known = known(context, &index, journal.as_ref());
    let similar = Similar::new(&index, &context.notes);
    let derived = |ids: &[NoteId]| {
        let mut edges = known.links(ids);
        if args.similar {
            // Similarity is optional: an error only means fewer links.
            edges.extend(similar.links(ids).unwrap_or_default());
        }
        edges
    };
    let graph = Links {
        index: &index,
        derived: &derived,
    };
    if let Some(to) = &args.to {
        let to = Context::resolve(&index, to)?.id();
        if from == to {
            return Err(Error::usage("both ends are the same note"));
        }
        let found = pathway::between(&graph, from, to, args.min_strength)?;
        if args.json {
            ui.json(&between_json(&found));
        } else {
            ui.print(&between_text(&found, &index, [from, to]));
        }
    } else {
        let found = pathway::around(&graph, from, usize::from(args.depth), args.min_strength)?;
        if args.json {
            ui.json(&around_json(&found, from));
        } else {
            ui.print(&around_text(&found, &index, from));
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn between_json(found: &Between) -> Value {
    match found {
        Between::Paths(paths) => {
            json!({ "paths": paths.iter().map(path_json).collect::<Vec<_>>(), "nearest": [] })
        }
        Between::Nothing(nearest) => {
            let nearest: Vec<String> = nearest.iter().map(NoteId::to_string).collect();
            json!({ "paths": [], "nearest": nearest })
        }
    }
}

fn around_json(found: &Around, from: NoteId) -> Value {
    json!({
        "from": from.to_string(),
        "paths": found.paths.iter().map(path_json).collect::<Vec<_>>(),
        "cut": found.is_cut,
    })
}

fn path_json(path: &Path) -> Value {
    let links = path.edges.iter().map(|edge| {
        json!({
            "from": edge.from.to_string(),
            "relation": edge.relation.as_str(),
            "to": edge.to.to_string(),
        })
    });
    json!({
        "notes": path.notes.iter().map(NoteId::to_string).collect::<Vec<_>>(),
        "links": links.collect::<Vec<_>>(),
        "strength": path.strength,
    })
}

fn between_text(found: &Between, index: &Index, ends: [NoteId; 2]) -> String {
    let paths = match found {
        Between::Paths(paths) => paths,
        Between::Nothing(nearest) => {
            let [from, to] = ends.map(|id| Context::short(index, id));
            let mut text = format!("no way from #{from} to #{to}\n");
            if !nearest.is_empty() {
                text.push_str(&format!("nearest to #{from}:\n"));
            }
            for id in nearest {
                text.push_str(&format!("  {}\n", named(index, *id, 2)));
            }
            text.push_str(&format!(
                "→ anamnesis connect {from} {to} --relation related-to\n"
            ));
            return text;
        }
    };
    let mut text = String::new();
    for (place, path) in paths.iter().enumerate() {
        if place > 0 {
            text.push_str("or\n");
        }
        text.push_str(&format!("{}\n", named(index, path.notes[0], 0)));
        for (note, edge) in path.notes.windows(2).zip(&path.edges) {
            let arrow = arrow(note[0], edge);
            let head = format!("  {arrow} {}  ", edge.relation);
            let name = named(index, note[1], head.chars().count());
            text.push_str(&format!("{head}{name}\n"));
        }
        text.push_str(&format!("  strength {:.2}\n", path.strength));
    }
    text
}

fn around_text(found: &Around, index: &Index, from: NoteId) -> String {
    let mut text = format!("{}\n", named(index, from, 0));
    if found.paths.is_empty() {
        text.push_str("  no links\n→ anamnesis connect ID ID --relation related-to\n");
    }
    for path in &found.paths {
        let steps = path.notes.windows(2).zip(&path.edges);
        let relations: Vec<String> = steps
            .map(|(note, edge)| format!("{} {}", arrow(note[0], edge), edge.relation))
            .collect();
        let head = format!("  {:.2} {}  ", path.strength, relations.join(" "));
        let end = path.notes.last().copied().unwrap_or(from);
        let name = named(index, end, head.chars().count());
        text.push_str(&format!("{head}{name}\n"));
    }
    if found.is_cut {
        text.push_str(&format!(
            "the {} strongest shown · --min-strength\n",
            found.paths.len()
        ));
    }
    text
}

/// The arrow of a link, seen from one of its ends.
fn arrow(from: NoteId, edge: &anamnesis_note::link::Edge) -> char {
    if edge.relation.is_mutual() {
        '–'
    } else if edge.from == from {
        '→'
    } else {
        '←'
    }
}

/// A note's id and title, cut to the rest of the line.
fn named(index: &Index, id: NoteId, indent: usize) -> String {
    let short = Context::short(index, id);
    let title = match index.get(id) {
        Ok(Some(entry)) => one_line(&entry.title),
        _ => String::new(),
    };
    let room = ui::WIDTH.saturating_sub(indent + short.len() + 2).max(16);
    format!("#{short} {}", ui::shorten(&title, room))
}
