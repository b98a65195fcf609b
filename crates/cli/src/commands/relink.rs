//! `relink`: rebuilds the links from the notes.

use std::{collections::BTreeSet, process::ExitCode, time::Duration};

use anamnesis_app::{context::Context, failure::Failure, recall::known};
use anamnesis_note::{id::NoteId, link::Relation};
use anamnesis_recall::note_set::Knowledge as _;
use anamnesis_store::index::{Entry, Filter, Index};
use anamnesis_text::clean::one_line;
use serde_json::json;

use crate::ui::{self, LIST_LENGTH, Outcome, Ui};

/// Rebuild all links from the notes, and count them
///
/// Links are derived from the notes, so the command is idempotent. Broken links are listed; they
/// stay in their notes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let mut index = Index::rebuild(&context.home, &context.notes, Duration::from_secs(60))?;
    // Adds notes that were written during the rebuild.
    index.refresh(&context.notes)?;
    index.take_up_usage(&context.home)?;
    let counts = index.link_counts()?;
    let derived = Derived::count(&index, context)?;
    let unresolved = index.unresolved_links()?;
    if args.json {
        let unresolved: Vec<_> = unresolved
            .iter()
            .map(|link| {
                json!({
                    "note": link.note.to_string(),
                    "text": link.text,
                    "reason": link.reason.to_string(),
                })
            })
            .collect();
        ui.json(&json!({
            "declared": counts.declared,
            "mentions": counts.mentions,
            "session": counts.session,
            "file": derived.file,
            "learned": derived.learned,
            "unresolved": unresolved,
        }));
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!(
        "links: {} declared, {} by [[…]], {} of sessions, {} of files, {} by use\n",
        ui::number(counts.declared),
        ui::number(counts.mentions),
        ui::number(counts.session),
        ui::number(derived.file),
        ui::number(derived.learned),
    );
    if !unresolved.is_empty() {
        text.push_str(&format!("{} nowhere:\n", lead(unresolved.len())));
    }
    for link in unresolved.iter().take(LIST_LENGTH) {
        let note = Context::short(&index, link.note);
        let line = format!("#{note} {}: {}", one_line(&link.text), link.reason);
        text.push_str(&ui::shorten(&line, ui::WIDTH));
        text.push('\n');
    }
    if unresolved.len() > LIST_LENGTH {
        text.push_str(&format!(
            "{LIST_LENGTH} of {} shown · --json\n",
            ui::number(unresolved.len())
        ));
    }
    if !unresolved.is_empty() {
        text.push_str(&format!(
            "→ anamnesis edit ID   |   anamnesis connect ID ID --relation {}\n",
            Relation::RelatedTo
        ));
    }
    ui.print(&text);
    Ok(ExitCode::SUCCESS)
}

/// Counts of links derived from cited files and from use.
struct Derived {
    file: usize,
    learned: usize,
}

impl Derived {
    fn count(index: &Index, context: &Context) -> Result<Self, Failure> {
        let journal = context.records()?;
        let known = known(context, index, journal.as_ref());
        let notes = index.list(&Filter::default(), usize::MAX)?;
        let ids: Vec<NoteId> = notes.iter().map(Entry::id).collect();
        // Each link is found at both of its ends.
        let links: BTreeSet<_> = known
            .links(&ids)
            .iter()
            .map(|edge| (edge.relation, edge.from, edge.to))
            .collect();
        let count = |wanted| {
            let relations = links.iter().map(|(relation, ..)| *relation);
            relations.filter(|relation| *relation == wanted).count()
        };
        Ok(Self {
            file: count(Relation::File),
            learned: count(Relation::Learned),
        })
    }
}

fn lead(count: usize) -> String {
    match count {
        1 => "1 leads".to_owned(),
        count => format!("{} lead", ui::number(count)),
    }
}
