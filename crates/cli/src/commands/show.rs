//! `show`: prints one note.

use anamnesis_app::{
    Error,
    context::Context,
    history::{self, Past},
    ops::note::{Note as Listed, PastNote},
    review,
};
use anamnesis_note::{
    note::{Note, State},
    project_key,
};
use anamnesis_recall::{branch::branch_remark, correction};
use anamnesis_store::index::{Entry, Index};
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

/// Show one note
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The note's id: six or more characters of its start or end
    id: String,
    /// Print the file as it is
    #[arg(long, conflicts_with = "json")]
    raw: bool,
    /// Show it as of the end of that day (2026-01-31), or of that time (2026-01-31T09:30Z, "3 d
    /// ago")
    #[arg(long, value_name = "DATE")]
    at: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(date) = &args.at {
        return run_at(args, date, context, ui);
    }
    let index = context.index()?;
    let mut entry = Context::resolve(&index, &args.id)?;
    if entry.state == State::Forgotten {
        history::add_titles(context, std::slice::from_mut(&mut entry));
    }
    if args.raw {
        let bytes = context.notes.bytes(entry.path)?;
        // Terminal sequences in a file are escaped here.
        return ui.answer(&context.printable(&String::from_utf8_lossy(&bytes)));
    }
    let stored = context.notes.read(entry.path)?;
    let mut note = stored.note();
    note.body = context.printable(&note.body);
    if args.json {
        return ui.json(Listed::new(context, entry).with_text(&note));
    }
    let short = Context::short(&index, entry.id());
    let mut text = heading(&entry, &note, &short, context);
    for newer in index.superseded_by(&entry)? {
        let short = Context::short(&index, newer.id());
        text.push_str(&format!(
            "replaced by #{short} {}\n",
            one_line(&newer.title)
        ));
    }
    for other in review::other_versions(context, &index, &note)? {
        let short = Context::short(&index, other);
        text.push_str(&format!(
            "in conflict with #{short}: two machines changed one note · anamnesis review\n"
        ));
    }
    if let Some(remark) = branch_remark(&index, &note)? {
        text.push_str(&format!("{}\n", one_line(&remark)));
    }
    if entry.visibility().may_answer() {
        text.push_str(&corrections(&index, &entry, context)?);
    }
    if entry.state == State::Forgotten {
        let hint = if context.notes.trashed(entry.id()).is_some() {
            format!("→ anamnesis forget --undo {short}\n")
        } else {
            format!("its text is not in this machine's trash\n→ anamnesis log --note {short}\n")
        };
        text.push_str(&hint);
    } else {
        let body = note.body.trim_end();
        if !body.is_empty() {
            text.push_str(&format!("\n{body}\n"));
        }
        if !stored.whole {
            text.push_str(&format!(
                "… the file is larger: {}\n",
                context.home.relative(&entry.path.absolute(&context.home))
            ));
        }
        text.push_str(&format!(
            "\n→ anamnesis edit {short}   |   anamnesis forget {short}\n"
        ));
    }
    ui.page_unfolded(&text, "")
}

/// Names the later notes that give up what a note says, and the earlier ones that it corrects.
fn corrections(index: &Index, entry: &Entry, context: &Context) -> Result<String, Error> {
    let short = |id| Context::short(index, id);
    let now = context.environment.now;
    let mut lines = correction::remarks_on(index, entry.id(), now, short)?;
    for corrected in index.corrected_by(entry.id(), now)? {
        let title = index.get(corrected.earlier)?.map(|earlier| earlier.title);
        lines.push(format!(
            "changes #{} {} ({})",
            short(corrected.earlier),
            title.unwrap_or_default(),
            correction::remark(&corrected)
        ));
    }
    Ok(lines.iter().map(|line| one_line(line) + "\n").collect())
}

/// Shows a past version of a note.
fn run_at(args: &Args, date: &str, context: &Context, ui: &Ui) -> Outcome {
    let then = Past::open(context)?.at(date)?;
    let past = &then.past;
    let id = then.resolve(&args.id)?;
    past.refuse_withheld(id)?;
    if args.raw {
        let file = past.repository.note_at(&then.moment, id)?;
        let bytes = file.map(|file| file.bytes).unwrap_or_default();
        return ui.answer(&context.printable(&String::from_utf8_lossy(&bytes)));
    }
    // A temporary index of this note provides its entry.
    let stored = then.stored(id)?;
    let index = Index::in_memory(stored.clone())?;
    let (Some(stored), Some(entry)) = (stored, index.get(id)?) else {
        return Err(Error::failed(format!(
            "#{} was not there then",
            past.short(id)
        )));
    };
    let mut note = stored.note();
    note.body = context.printable(&note.body);
    if args.json {
        let note = Listed::new(context, entry).with_text(&note);
        let at = history::iso(then.time);
        return ui.json(PastNote { note, at });
    }
    let short = past.short(id);
    let mut text = heading(&entry, &note, &short, context);
    text.push_str(&format!("version of {}\n", history::shown_time(then.time)));
    let body = note.body.trim_end();
    if !body.is_empty() {
        text.push_str(&format!("\n{body}\n"));
    }
    text.push_str(&format!("\n→ anamnesis log --note {short}\n"));
    ui.page_unfolded(&text, "")
}

fn heading(entry: &Entry, note: &Note, short: &str, context: &Context) -> String {
    let now = context.environment.now;
    let place = project_key::shown(&entry.project);
    let mut text = ui::note_line(entry, short, now);
    text.push_str(&format!(
        "\n{place} · {} · {}",
        one_line(&entry.machine_id),
        entry.path
    ));
    let tags = entry.kind.other_tags(&entry.tags);
    if let Some(severity) = note.severity {
        text.push_str(&format!("\nseverity: {severity}"));
    }
    for (name, list) in [
        ("when", &note.when),
        ("tags", &tags),
        ("asked as", &note.asked),
    ] {
        if !list.is_empty() {
            text.push_str(&format!("\n{name}: {}", one_line(&list.join(", "))));
        }
    }
    text.push('\n');
    text
}
