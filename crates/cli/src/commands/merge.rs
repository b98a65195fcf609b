//! `merge`: few notes for many that are one matter, as a model sees it.
//!
//! Each group of notes that the model names is tried on a copy before it counts: if fewer of the approved
//! questions are answered with it, it is left out. What is accepted is one batch.

use std::{
    collections::{BTreeMap, BTreeSet},
    error::Error,
    fs, io,
    path::PathBuf,
    process::ExitCode,
};

use anamnesis_app::{batch::Batch, context::Context, failure::Failure, model};
use anamnesis_distill::{
    merge::{self, Author, Case, Group, MergeOutcome, MergeTrial},
    prompts,
    window::tokens,
};
use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_recall::search::MAX_HITS;
use anamnesis_text::clean::one_line;

use super::{eval, upkeep::shelf::Loaded};
use crate::{
    commands::bulk::Apply,
    ui::{self, Outcome, Ui},
};

/// Let few notes stand for many that are one matter, as a model sees it
///
/// A note that says it all, or a new one, stands for the others; nothing is deleted. Each group is tried
/// on a copy of the notes first: one with which fewer of the approved questions (`eval mine`) are
/// answered is left out. What you wrote is neither changed nor hidden: there a note is proposed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// This project only [default: every project]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Take the groups from this file, which holds what a model has answered
    #[arg(long, value_name = "FILE", requires = "project")]
    answer: Option<PathBuf>,
    /// Print what a model is asked, and do no more
    #[arg(long, requires = "project", conflicts_with_all = ["answer", "apply"])]
    request: bool,
    /// Apply every group, without trying it first
    #[arg(long)]
    no_gate: bool,
    /// The file with the questions [default: eval/eval.jsonl in the store]
    #[arg(long, value_name = "PATH")]
    eval_set: Option<PathBuf>,
    #[command(flatten)]
    apply: Apply,
}

/// Asks a model.
type Ask<'a, E> = &'a dyn Fn(&str, &str) -> Result<String, E>;

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    if args.request {
        return request(args, context, ui);
    }
    let Some(path) = &args.answer else {
        return by_model(args, context, ui);
    };
    let read = |_: &str, _: &str| -> Result<String, io::Error> {
        let text = fs::read_to_string(path);
        text.map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
    };
    with_model(args, context, "answer", &read, ui)
}

/// Has the model answer that the person named. It is paid for a dry run, too.
fn by_model(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if context.environment.is_agent {
        return Err(
            Failure::failed("notes are merged by a person only: a model is paid for it")
                .hint("run it in a terminal of your own"),
        );
    }
    let found = model::find(context)?;
    let Some(model) = found else {
        ui.print("merge: no reflection provider configured (--request prints what to ask a model, --answer takes what it says)\n");
        return Ok(ExitCode::SUCCESS);
    };
    let ask = |system: &str, user: &str| {
        ui.note(&format!(
            "about {} tokens to {}\n",
            ui::number(tokens(system) + tokens(user)),
            one_line(&model.receiver())
        ));
        model.ask(system, user)
    };
    with_model(args, context, &model.label(), &ask, ui)
}

/// Prints what a model is asked of a project.
fn request(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let loaded = Loaded::of(context, &context.index()?)?;
    let key = context.project(args.project.as_deref()).key;
    let project = loaded.shelf.aliases.current(&key);
    let (notes, _) = merge::shown(&merge::candidates(&loaded.shelf, project));
    let prompt = prompts::merge(&notes);
    ui.print(&format!("{}\n{}\n", prompt.system, prompt.user));
    Ok(ExitCode::SUCCESS)
}

/// Asks a model of each project, and does what it says as far as that holds.
fn with_model<E: Error + 'static>(
    args: &Args,
    context: &Context,
    label: &str,
    ask: Ask<'_, E>,
    ui: &Ui,
) -> Outcome {
    let loaded = Loaded::of(context, &context.index()?)?;
    let cases = eval::approved(context, args.eval_set.as_ref())?;
    if args.apply.is_meant() && !args.no_gate && cases.is_empty() {
        return Err(
            Failure::failed("there are no approved questions to try a merge with")
                .hint("anamnesis eval mine   (or --no-gate)"),
        );
    }
    let mut work = Work {
        batch: Batch::new(context, "merge"),
        loaded: &loaded,
        trial: trial(args, context, &loaded, &cases)?,
        author: Author {
            machine: context.machine_id(),
            model: label.to_owned(),
            now: context.environment.now,
        },
        taken: 0,
        text: String::new(),
    };
    for project in projects(args, context, &loaded) {
        let notes = merge::candidates(&loaded.shelf, &project);
        if notes.len() < context.environment.merge_min {
            continue;
        }
        let shown = one_line(&project);
        match merge::ask(&notes, ask) {
            Ok(groups) => work.take(&shown, &notes, &groups)?,
            Err(error) => {
                let cause = one_line(&error.to_string());
                work.text
                    .push_str(&format!("merge: {shown}: failed ({cause}); skipped\n"));
            }
        }
    }
    ui.print(&work.text);
    let told = (work.taken, "group(s)", "merged");
    args.apply.finish(work.batch, told, ui)
}

/// The projects to look at, sorted. Notes for all projects are a person's to change.
fn projects(args: &Args, context: &Context, loaded: &Loaded) -> BTreeSet<String> {
    let Some(key) = &args.project else {
        return loaded.projects();
    };
    let key = context.project(Some(key)).key;
    BTreeSet::from([loaded.shelf.aliases.current(&key).to_owned()])
}

/// A copy of the notes to try merges on, unless nobody wants to.
fn trial<'c>(
    args: &Args,
    context: &Context,
    loaded: &Loaded,
    cases: &'c [Case],
) -> Result<Option<MergeTrial<'c>>, Failure> {
    if args.no_gate || cases.is_empty() {
        return Ok(None);
    }
    let notes = loaded.all().cloned().collect();
    let depth = context.environment.merge_depth.clamp(1, MAX_HITS);
    Ok(Some(MergeTrial::new(notes, cases, depth)?))
}

/// What is merged so far.
struct Work<'a, 'c> {
    batch: Batch<'a>,
    loaded: &'a Loaded,
    trial: Option<MergeTrial<'c>>,
    author: Author,
    /// How many groups were taken.
    taken: usize,
    text: String,
}

impl Work<'_, '_> {
    /// Takes the groups of a project up, one after another.
    fn take(&mut self, project: &str, notes: &[&Note], groups: &[Group]) -> Result<(), Failure> {
        let notes: BTreeMap<NoteId, &Note> = notes.iter().map(|note| (note.id, *note)).collect();
        for group in groups {
            let mut line = merge::line(group, |id| id);
            let Some(merged) = group.applied(&notes, &self.author) else {
                continue;
            };
            let mut recall = String::new();
            if let Some(trial) = &mut self.trial {
                let (before, after) = (trial.baseline(), trial.accept(&merged)?);
                recall = format!(" (recall {before:.3} -> {after:.3})");
                if after < before {
                    self.text
                        .push_str(&format!("merge: {project}: rejected: {line}{recall}\n"));
                    continue;
                }
            }
            match merged {
                MergeOutcome::Changed(note) => {
                    if let Some(stored) = self.loaded.stored(note.id) {
                        self.batch.change(stored, &note)?;
                    }
                }
                MergeOutcome::Made(note) => self.batch.make(*note),
                MergeOutcome::Proposed(note) => {
                    self.batch.make(*note);
                    line = format!("proposed: {line}");
                }
                MergeOutcome::Left => {
                    self.text.push_str(&format!(
                        "merge: {project}: left to you, who wrote one of them: {line}\n"
                    ));
                    continue;
                }
            }
            self.taken += 1;
            self.text
                .push_str(&format!("merge: {project}: {line}{recall}\n"));
        }
        Ok(())
    }
}
