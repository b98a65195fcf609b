//! `review`: shows pending notes and applies the person's decisions.

use std::{collections::BTreeMap, fmt::Write as _};

use anamnesis_app::{
    Error,
    context::{Context, TIMEOUT},
    diff, history,
    review::{self, Decision, PendingDetails, PendingList, counts, heading, shown_entry, word},
    sync::{self, History, short_change},
};
use anamnesis_note::{id::NoteId, project_key};
use anamnesis_recall::review::{PendingGroup, PendingNote, PendingReason};
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
};
use anamnesis_text::clean::one_line;

use super::edit;
use crate::ui::{self, ListLength, Outcome, ProjectFilter, Ui};

/// How many lines of a text are shown.
const MAX_LINES: usize = 24;

/// How many sources of a distilled note are named.
const MAX_SOURCES: usize = 5;

/// Review pending notes: proposals, conflicts, Claude's notes
///
/// On a terminal, asks note by note; elsewhere, and with `--list`, lists the notes. `a` approves a
/// proposal, keeps both texts of a conflict, marks an active note as seen, or verifies a note that
/// may be outdated; `p` does the same and replaces the similar note; `r` forgets the note. Exit
/// code 3: notes are pending.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only these: ids of notes, or the name of a reflection for the rest of its notes
    ids: Vec<String>,
    /// Approve them without asking
    #[arg(long, requires = "ids", conflicts_with = "reject")]
    approve: bool,
    /// Reject them without asking
    #[arg(long, requires = "ids")]
    reject: bool,
    /// Approve the note as a replacement of this one
    #[arg(long, value_name = "ID", requires = "approve")]
    replaces: Option<String>,
    #[command(flatten)]
    projects: ProjectFilter,
    /// List the notes without asking
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    length: ListLength,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let is_deciding = args.approve || args.reject;
    if is_deciding {
        context.check_person("approve or reject")?;
    }
    let projects = context.keys(args.projects.key())?;
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let index = context.index()?;
    let mut batches = review::waiting(context, &index, Some(&journal), &projects)?;
    if !args.ids.is_empty() {
        batches = review::named(&index, batches, &args.ids)?;
    }
    if is_deciding {
        let decision = match &args.replaces {
            _ if args.reject => Decision::Reject,
            Some(other) => Decision::Replace(Context::resolve(&index, other)?.id()),
            None => Decision::Approve,
        };
        drop(index);
        return decide(context, &journal, &batches, decision, (args.json, ui));
    }
    let total = count(&batches);
    let (held, withheld) = if args.ids.is_empty() {
        let held = History::load(&journal).held;
        (held, sync::withheld(context, &journal))
    } else {
        (None, Vec::new())
    };
    let is_pending = total > 0 || held.is_some() || !withheld.is_empty();
    if args.json {
        ui.json(PendingList::new(context, &batches, total, held, withheld))?;
        return Ok(ui::attention(is_pending));
    }
    if let Some(held) = held {
        ui.print(&format!(
            "the sync needs your decision: {held}\n\
             → if that is meant: anamnesis sync --accept; to bring them back: anamnesis sync --restore\n"
        ));
    }
    for line in withheld {
        ui.print(&format!("{line}\n"));
    }
    if !is_pending {
        ui.print("nothing is pending\n");
    } else if total > 0 {
        if !args.list && !context.environment.is_agent && ui::stdin_is_terminal() {
            drop(index);
            return ask(context, &journal, &batches, ui);
        }
        ui.print(&list(context, &index, &batches, args.length.limit()));
    }
    Ok(ui::attention(is_pending))
}

fn count(batches: &[PendingGroup]) -> usize {
    batches.iter().map(|batch| batch.notes.len()).sum()
}

/// Applies one decision to all of them.
fn decide(
    context: &Context,
    journal: &Journal,
    batches: &[PendingGroup],
    decision: Decision,
    (is_json, ui): (bool, &Ui),
) -> Outcome {
    let waiting: Vec<&PendingNote> = batches.iter().flat_map(|batch| &batch.notes).collect();
    if matches!(decision, Decision::Replace(_)) && waiting.len() != 1 {
        return Err(Error::usage("--replaces takes one note to approve"));
    }
    let batch = review::decide(context, journal, &waiting, decision)?;
    let change = BTreeMap::from([("change", batch.map(|batch| batch.to_string()))]);
    ui.done(is_json, change, &done(context, &waiting, decision, batch)?)
}

/// Prints what was done, and how to undo it.
fn done(
    context: &Context,
    waiting: &[&PendingNote],
    decision: Decision,
    batch: Option<ulid::Ulid>,
) -> Result<String, Error> {
    let index = context.index()?;
    let mut text = String::new();
    let mut forgotten = Vec::new();
    for waiting in waiting {
        let entry = &waiting.entry;
        let short = Context::short(&index, entry.id());
        let word = match (decision, waiting.reason) {
            (Decision::Reject, PendingReason::Forgotten) => "brought back",
            (Decision::Reject, _) => "forgot",
            (_, PendingReason::Proposal | PendingReason::Imported) => "in use",
            (_, PendingReason::Conflict | PendingReason::Orphaned) => "kept",
            (_, PendingReason::ByAgent | PendingReason::Foreign | PendingReason::Forgotten) => {
                "seen"
            }
            (_, PendingReason::Stale) => "right",
        };
        if word == "forgot" {
            forgotten.push(short.clone());
        }
        let title = one_line(&entry.title);
        let _ = writeln!(text, "{word} #{short} \"{title}\"");
    }
    match batch {
        Some(batch) => {
            let _ = writeln!(text, "Undo: anamnesis undo {}", short_change(batch));
        }
        None if !forgotten.is_empty() => {
            let all = forgotten.iter();
            let undo: Vec<String> = all
                .map(|id| format!("anamnesis forget --undo {id}"))
                .collect();
            let _ = writeln!(text, "Undo: {}", undo.join("; "));
        }
        None => {}
    }
    Ok(text)
}

/// Lists pending notes, one line each; cuts a long list.
fn list(context: &Context, index: &Index, batches: &[PendingGroup], limit: usize) -> String {
    let mut text = format!("{}\n", counts(batches));
    let mut room = limit;
    for batch in batches {
        if room == 0 {
            break;
        }
        let _ = writeln!(text, "\n{}", heading(context, batch));
        for waiting in batch.notes.iter().take(room) {
            let entry = shown_entry(context, waiting);
            let short = Context::short(index, entry.id());
            let tail = format!("{}, {}", word(waiting.reason), entry.author());
            let line = ui::line_with(ui::width() - 2, &entry, &short, &tail);
            let _ = writeln!(text, "  {line}");
            if waiting.reason == PendingReason::Conflict {
                text.push_str(&both_texts(context, index, entry.id()));
            }
            room -= 1;
        }
    }
    let total = count(batches);
    if total > limit {
        let total = ui::number(total);
        let _ = writeln!(text, "\n{limit} of {total} shown · --all · --project KEY");
    }
    text.push_str("\n→ anamnesis review   |   anamnesis review --approve ID   |   --reject ID\n");
    text
}

/// The two texts of a conflict, each with its id and the machine that wrote it.
fn both_texts(context: &Context, index: &Index, sibling: NoteId) -> String {
    let note = |id: NoteId| context.indexed_note(index, id);
    let Some(copy) = note(sibling) else {
        return String::new();
    };
    let others = review::other_versions(context, index, &copy).unwrap_or_default();
    let original = others.first().copied();
    let others = others.into_iter().filter_map(note);
    let repository = context.repository().ok().flatten();
    let mut text = String::new();
    for note in others.chain([copy.clone()]) {
        let short = Context::short(index, note.id);
        // The copy's text is in the history of the note that it was split from.
        let written = repository.as_ref().zip(original);
        let written = written.and_then(|(past, id)| history::writer_of(past, id, &note.body));
        let machine = written.unwrap_or_else(|| one_line(&note.machine_id));
        let body = context.printable(note.body.trim_end());
        let _ = write!(text, "  {short} on {machine}:\n{}", cut(&body, &short));
    }
    text
}

/// Asks the person note by note.
fn ask(context: &Context, journal: &Journal, batches: &[PendingGroup], ui: &Ui) -> Outcome {
    ui.print(&format!("{}\n", counts(batches)));
    for batch in batches {
        ui.print(&format!("\n{}\n", heading(context, batch)));
        let mut rest: Vec<&PendingNote> = batch.notes.iter().collect();
        while let Some(waiting) = rest.first().copied() {
            let item = Item::new(context, waiting, batch)?;
            ui.print(&item.text);
            let replace = match &item.like {
                Some(_) if waiting.reason == PendingReason::Conflict => {
                    "  p keep this text only".to_owned()
                }
                Some((_, short)) => format!("  p approve and replace #{short}"),
                None => String::new(),
            };
            let of_all = if rest.len() > 1 {
                format!("  A approve all {}", rest.len())
            } else {
                String::new()
            };
            let edit = if waiting.reason == PendingReason::Forgotten {
                ""
            } else {
                "  e edit"
            };
            let [approve, reject] = review::choices(waiting.reason).map(str::to_lowercase);
            let question = format!(
                "a {approve}{edit}  r {reject}{of_all}{replace}  s skip  q quit, then Enter > "
            );
            let answer = ui.chooses(&question);
            let (decided, decision) = match (answer.as_deref(), &item.like) {
                (Some("a"), _) => (vec![waiting], Decision::Approve),
                (Some("r"), _) => (vec![waiting], Decision::Reject),
                (Some("A"), _) => (rest.clone(), Decision::Approve),
                (Some("p"), Some((id, _))) => (vec![waiting], Decision::Replace(*id)),
                (Some("e"), _) if waiting.reason != PendingReason::Forgotten => {
                    if let Err(failure) = edit::in_editor(context, waiting.entry.path, false) {
                        ui.note(&failure.text());
                    }
                    continue;
                }
                (Some("s"), _) => {
                    rest.remove(0);
                    continue;
                }
                (Some("q") | None, _) => return Ok(ui::attention(true)),
                (Some(typed), _) => {
                    let typed = one_line(typed);
                    ui.print(&format!(
                        "invalid answer \"{typed}\": expected one of the letters\n"
                    ));
                    continue;
                }
            };
            let undo = review::decide(context, journal, &decided, decision)?;
            ui.print(&done(context, &decided, decision, undo)?);
            rest.retain(|waiting| {
                let is = |decided: &&PendingNote| decided.entry.id() == waiting.entry.id();
                !decided.iter().any(is)
            });
        }
    }
    let index = context.index()?;
    let left = count(&review::waiting(context, &index, Some(journal), &[])?);
    Ok(ui::attention(left > 0))
}

/// A pending note as it is shown.
struct Item {
    text: String,
    /// A similar note that it could replace.
    like: Option<(NoteId, String)>,
}

impl Item {
    fn new(context: &Context, waiting: &PendingNote, batch: &PendingGroup) -> Result<Self, Error> {
        let index = context.index()?;
        let details = PendingDetails::load(context, &index, waiting, batch)?;
        let short = Context::short(&index, details.entry.id());
        let line = |says: &str, entry: &Entry| {
            let short = Context::short(&index, entry.id());
            let room = ui::width().saturating_sub(says.len());
            let now = context.environment.now;
            format!("{says}{}\n", ui::note_line_within(room, entry, &short, now))
        };
        let head = format!("{}: ", word(waiting.reason));
        let mut text = format!("\n{}", line(&head, &details.entry));
        let Some(note) = &details.note else {
            text.push_str("  its text is not in this machine's trash\n");
            return Ok(Self { text, like: None });
        };
        let _ = writeln!(text, "  for {}\n", project_key::shown(&note.project));
        // For a change, the person judges the difference.
        let body = match &details.before {
            Some(before) => diff::between(before, note),
            None => note.body.trim_end().to_owned(),
        };
        text.push_str(&cut(&context.printable(&body), &short));
        let lines = |says: &str, notes: &[NoteId]| -> String {
            let entries = notes.iter().filter_map(|id| index.get(*id).ok()?);
            let says = format!("  {says} ");
            entries.map(|entry| line(&says, &entry)).collect()
        };
        text.push_str(&lines("replaces", &details.replaced));
        text.push_str(&lines("beside", &details.beside));
        for reason in &waiting.stale_reasons {
            let reason = reason.text(|id| Context::short(&index, id));
            text.push_str(&ui::wrapped(&reason, 2));
        }
        let (sources, more) = details
            .sources
            .split_at(details.sources.len().min(MAX_SOURCES));
        text.push_str(&lines("from", sources));
        if !more.is_empty() {
            let _ = writeln!(text, "  and {} more", more.len());
        }
        if let Some((says, other)) = details.similar {
            text.push_str(&lines(says, &[other]));
        }
        text.push('\n');
        let replaceable = details.replaceable;
        Ok(Self {
            text,
            like: replaceable.map(|id| (id, Context::short(&index, id))),
        })
    }
}

/// The first lines of a text, indented.
fn cut(text: &str, short: &str) -> String {
    let mut out = String::new();
    for line in text.lines().take(MAX_LINES) {
        let line = format!("    {line}");
        let _ = writeln!(out, "{}", line.trim_end());
    }
    let more = text.lines().count().saturating_sub(MAX_LINES);
    if more > 0 {
        let _ = writeln!(
            out,
            "    … {} more · anamnesis show {short}",
            ui::count(more, "line")
        );
    }
    out
}
