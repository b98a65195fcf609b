//! `pathway`: shows how two notes are connected, or the notes around one.

use anamnesis_app::{
    Error,
    context::Context,
    ops::{
        note::Named,
        pathway::{self, FindPaths, FoundLink, FoundPaths},
    },
};
use anamnesis_note::id::NoteId;
use anamnesis_store::index::Index;
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

/// Show how two notes are connected, or the notes around one
///
/// Prints the strongest path of links, and up to three others: → is a link in its direction, ← a
/// link against it, – a symmetric one. Links derived from sessions, files and use are included.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: FindPaths,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: Args, context: &Context, ui: &Ui) -> Outcome {
    let found = pathway::find(context, args.request)?;
    let index = Index::open(&context.home).map_err(Error::from)?;
    let text = match &found.ends[..] {
        [from, to] => between_text(&found, &index, [from, to]),
        ends => around_text(&found, &index, ends),
    };
    ui.shown(args.json, &found, &text)
}

fn between_text(found: &FoundPaths, index: &Index, ends: [&Named; 2]) -> String {
    let mut text = String::new();
    if found.paths.is_empty() {
        let [from, to] = ends.map(|end| Context::short(index, end.0.id()));
        text.push_str(&format!("no way from #{from} to #{to}\n"));
        if !found.nearest.is_empty() {
            text.push_str(&format!("nearest to #{from}:\n"));
        }
        for note in &found.nearest {
            text.push_str(&format!("  {}\n", named(index, note, 2)));
        }
        text.push_str(&format!(
            "→ anamnesis connect {from} {to} --relation related-to\n"
        ));
    }
    for (place, path) in found.paths.iter().enumerate() {
        if place > 0 {
            text.push_str("or\n");
        }
        for from in path.notes.iter().take(1) {
            text.push_str(&format!("{}\n", named(index, from, 0)));
        }
        for (note, link) in path.notes.windows(2).zip(&path.links) {
            let arrow = arrow(note[0].0.id(), link);
            let head = format!("  {arrow} {}  ", link.relation);
            let name = named(index, &note[1], head.chars().count());
            text.push_str(&format!("{head}{name}\n"));
        }
        text.push_str(&format!("  strength {:.2}\n", path.strength));
    }
    text
}

fn around_text(found: &FoundPaths, index: &Index, ends: &[Named]) -> String {
    let from = ends.iter().map(|from| named(index, from, 0) + "\n");
    let mut text: String = from.collect();
    if found.paths.is_empty() {
        text.push_str("  no links\n→ anamnesis connect ID ID --relation related-to\n");
    }
    for path in &found.paths {
        let steps = path.notes.windows(2).zip(&path.links);
        let relations: Vec<String> = steps
            .map(|(note, link)| format!("{} {}", arrow(note[0].0.id(), link), link.relation))
            .collect();
        let head = format!("  {:.2} {}  ", path.strength, relations.join(" "));
        let end = path.notes.last();
        let name = end.map(|end| named(index, end, head.chars().count()));
        text.push_str(&format!("{head}{}\n", name.unwrap_or_default()));
    }
    if found.cut {
        text.push_str(&format!(
            "the {} strongest shown · --min-strength\n",
            found.paths.len()
        ));
    }
    text
}

/// The arrow of a link, seen from one of its ends.
fn arrow(from: NoteId, link: &FoundLink) -> char {
    if link.relation.is_mutual() {
        '–'
    } else if link.from == from {
        '→'
    } else {
        '←'
    }
}

/// A note's id and title, cut to the rest of the line.
fn named(index: &Index, note: &Named, indent: usize) -> String {
    let short = Context::short(index, note.0.id());
    let room = ui::width().saturating_sub(indent + short.len() + 2).max(16);
    format!("#{short} {}", ui::shorten(&one_line(&note.0.title), room))
}
