//! `merge`: merges notes about the same topic, as grouped by a model.
//!
//! All groups are one change.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use anamnesis_app::{
    Error, bulk_change::BulkChange, context::Context, model, upkeep::loaded::Loaded,
};
use anamnesis_distill::{
    merge::{self, Author, Group, MergeOutcome},
    prompts,
    window::tokens,
};
use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_text::clean::one_line;

use crate::{
    commands::bulk::Apply,
    ui::{self, Outcome, ProjectFilter, Ui},
};

/// Merge notes about the same topic (uses a model)
///
/// One note of each group, or a new one, replaces the others; nothing is deleted. Your own notes are
/// neither changed nor hidden: a replacement is proposed instead. Without `--apply`, the groups are
/// listed; `eval experiment --merge` measures them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    projects: ProjectFilter,
    /// Read the groups from this file instead of asking a model
    #[arg(long, value_name = "FILE", requires = "project")]
    answer: Option<PathBuf>,
    /// Print the request to the model, and stop
    #[arg(long, requires = "project", conflicts_with_all = ["answer", "apply"])]
    request: bool,
    #[command(flatten)]
    apply: Apply,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A function that asks a model.
type Ask<'a, E> = &'a dyn Fn(&str, &str) -> Result<String, E>;

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    ui.saying(args.json, |ui| merge_notes(args, context, ui))
}

fn merge_notes(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    if args.request {
        return request(args, context, ui);
    }
    let Some(path) = &args.answer else {
        return by_model(args, context, ui);
    };
    let read = |_: &str, _: &str| -> Result<String, Error> {
        fs::read_to_string(path).map_err(Error::prefixed(path.display()))
    };
    with_model(args, context, "answer", &read, ui)
}

/// Runs with the configured model. A dry run asks the model, too, and costs money.
fn by_model(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    context.check_person("ask the model, which costs money")?;
    let model = model::required(context).map_err(|error| {
        error.also("Without one, --request prints what to ask, and --answer takes the answer.")
    })?;
    let ask = |system: &str, user: &str| {
        ui.note(&ui::cost(tokens(system) + tokens(user), &model));
        model.ask(system, user)
    };
    with_model(args, context, &model.label(), &ask, ui)
}

/// Prints the request for a project.
fn request(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let loaded = Loaded::read(context, &context.index()?)?;
    let key = context.project(args.projects.key()).key;
    let project = loaded.note_set.aliases.current(&key);
    let (notes, _) = merge::shown(&merge::candidates(&loaded.note_set, project));
    let prompt = prompts::merge(&notes);
    ui.answer(&format!("{}\n{}\n", prompt.system, prompt.user))
}

/// Asks a model about each project, and applies its answer if it is valid.
fn with_model<E: std::error::Error + 'static>(
    args: &Args,
    context: &Context,
    label: &str,
    ask: Ask<'_, E>,
    ui: &Ui,
) -> Outcome {
    let loaded = Loaded::read(context, &context.index()?)?;
    let mut work = Work {
        batch: BulkChange::new(context, "merge"),
        loaded: &loaded,
        author: Author {
            machine: context.machine_id(),
            model: label.to_owned(),
            now: context.environment.now,
        },
        merged: 0,
        proposed: 0,
        text: String::new(),
    };
    let mut failed = 0;
    for project in projects(args, context, &loaded) {
        let notes = merge::candidates(&loaded.note_set, &project);
        if notes.len() < context.environment.merge_min {
            continue;
        }
        let shown = one_line(&project);
        match merge::ask(&notes, ask) {
            Ok(groups) => work.take(&shown, &notes, &groups)?,
            Err(error) => {
                failed += 1;
                let cause = one_line(&error.to_string());
                work.text
                    .push_str(&format!("merge: {shown}: failed ({cause}); skipped\n"));
            }
        }
    }
    ui.print(&work.text);
    let (merged, proposed) = (work.merged, work.proposed);
    let done = match (merged, proposed) {
        (_, 0) => "merged".to_owned(),
        (0, _) => "proposed".to_owned(),
        _ => format!("changed: {merged} merged, {proposed} proposed"),
    };
    let told = (merged + proposed, "group", done.as_str());
    let code = args.apply.finish(work.batch, told, ui)?;
    match failed {
        0 => Ok(code),
        failed => Err(Error::failed(format!(
            "{} not merged; nothing of them was changed",
            ui::count(failed, "project")
        ))),
    }
}

/// The projects to process, sorted. Only a person changes notes for all projects.
fn projects(args: &Args, context: &Context, loaded: &Loaded) -> BTreeSet<String> {
    let Some(key) = args.projects.key() else {
        return loaded.projects();
    };
    let key = context.project(Some(key)).key;
    BTreeSet::from([loaded.note_set.aliases.current(&key).to_owned()])
}

/// The state of a run.
struct Work<'a> {
    batch: BulkChange<'a>,
    loaded: &'a Loaded,
    author: Author,
    /// How many groups were merged.
    merged: usize,
    /// How many groups wait for the person's approval.
    proposed: usize,
    text: String,
}

impl Work<'_> {
    /// Applies the groups of a project.
    fn take(&mut self, project: &str, notes: &[&Note], groups: &[Group]) -> Result<(), Error> {
        let notes: BTreeMap<NoteId, &Note> = notes.iter().map(|note| (note.id, *note)).collect();
        for group in groups {
            let mut line = merge::line(group, |id| id);
            let Some(merged) = group.applied(&notes, &self.author) else {
                continue;
            };
            let count = match merged {
                MergeOutcome::Changed(note) => {
                    if let Some(stored) = self.loaded.stored(note.id) {
                        self.batch.change(stored, &note)?;
                    }
                    &mut self.merged
                }
                MergeOutcome::Made(note) => {
                    self.batch.make(*note);
                    &mut self.merged
                }
                MergeOutcome::Proposed(note) => {
                    self.batch.make(*note);
                    line = format!("proposed: {line}");
                    &mut self.proposed
                }
                MergeOutcome::Left => {
                    self.text.push_str(&format!(
                        "merge: {project}: left to you, who wrote one of them: {line}\n"
                    ));
                    continue;
                }
            };
            *count += 1;
            self.text.push_str(&format!("merge: {project}: {line}\n"));
        }
        Ok(())
    }
}
