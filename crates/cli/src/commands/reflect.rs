//! `reflect`: what many sessions of a project taught becomes few notes, by a model that was named.
//!
//! The model is asked first, and a project is written only when all of its answer was taken: the new notes
//! and the tags of those they were made from are one commit, so that one `undo` takes both back. What goes
//! wrong with one project leaves it as it was, and the others go on.

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_core::{clean::one_line, id::NoteId, note::Note};
use anamnesis_distill::{
    model::Model,
    prompts, reflection, reply,
    window::{tokens, window},
};
use anamnesis_recall::novelty::{Among, Novelty, novelty};
use anamnesis_store::{
    config::Reflection,
    journal::Journal,
    notes::{NotePath, Stored},
};
use anamnesis_sync::Answer;

use super::{Outcome, sync as sync_command};
use crate::{
    context::Context,
    failure::Failure,
    model,
    sync::{self, short_batch},
    ui::{self, Ui},
};

/// Distil what many sessions taught into few notes, by a model
///
/// The session notes of each project that were not distilled yet are sent to the model that is set
/// (`anamnesis config set reflection.provider`), without secrets; what it answers becomes notes, and the
/// session notes stay. Without `--apply` nothing is sent and nothing written. Notes of this machine only
/// and of sessions of which something is private are not sent.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// This project only [default: every project]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Do it; without this it is only said what would be done
    #[arg(long)]
    apply: bool,
    /// Do not sync afterwards
    #[arg(long)]
    no_sync: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if args.apply && context.environment.is_agent {
        return Err(Failure::failed(
            "notes are distilled by a person only: a model is paid for it",
        )
        .hint("run it in a terminal of your own"));
    }
    // Without the records nobody can tell of which sessions something is private.
    let journal = Journal::open(&context.home, crate::context::PATIENCE)?;
    let waiting = waiting(context, &journal, args.project.as_deref(), ui)?;
    if !args.apply {
        for (project, sources) in &waiting {
            ui.print(&format!(
                "reflect: {}: {} episodic(s) would be distilled (dry-run; pass --apply)\n",
                one_line(project),
                sources.len()
            ));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let found = model::find(context).unwrap_or_else(|unusable| {
        ui.note(&format!("! {}\n→ {}\n", unusable.problem, unusable.hint));
        None
    });
    let Some(model) = found else {
        ui.print(
            "reflect: no reflection provider configured (set reflection.provider, reflection.model and reflection.base_url)\n",
        );
        return Ok(ExitCode::SUCCESS);
    };
    let mut written = 0;
    for (project, sources) in &waiting {
        let shown = one_line(project);
        match distil(context, &journal, &model, project, sources, ui) {
            Ok(done) => {
                ui.print(&format!(
                    "reflect: {shown}: distilled {} episodic(s) -> {} note(s)\n",
                    sources.len(),
                    done.notes.len()
                ));
                written += done.notes.len();
                // The notes are written: what cannot be said of them keeps no other project.
                if let Err(failure) = tell(context, project, sources, &done, ui) {
                    ui.note(&failure.text());
                }
            }
            Err(cause) => {
                ui.print(&format!(
                    "reflect: {shown}: failed ({}); skipped\n",
                    one_line(&cause)
                ));
            }
        }
    }
    if written == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    if args.no_sync {
        context.index()?;
        ui.print(&format!(
            "reflect: wrote {written} note(s); committed locally; reindexed (no sync)\n"
        ));
        return Ok(ExitCode::SUCCESS);
    }
    let synced = sync::run(
        context,
        Some(&journal),
        Answer::None,
        sync_command::PATIENCE,
    )?;
    context.index()?;
    ui.print(&format!(
        "reflect: wrote {written} note(s); synced ({})\n",
        sync_command::outcome(&synced)
    ));
    Ok(ExitCode::SUCCESS)
}

/// The notes that wait to be distilled, by project, of those that have enough of them.
fn waiting(
    context: &Context,
    journal: &Journal,
    named: Option<&str>,
    ui: &Ui,
) -> Result<BTreeMap<String, Vec<Stored>>, Failure> {
    let named: Vec<String> = named.map(str::to_owned).into_iter().collect();
    let mut waiting = reflection::waiting(&context.notes, journal, &named)?;
    if waiting.private > 0 {
        ui.note(&format!(
            "{} session note(s) stay as they are: something in those sessions is private\n",
            waiting.private
        ));
    }
    let least = context.environment.min_episodics.max(1);
    waiting
        .by_project
        .retain(|_, sources| sources.len() >= least);
    Ok(waiting.by_project)
}

/// What became of a project.
struct Done {
    notes: Vec<Note>,
    /// The batch by which it can be undone.
    batch: Option<String>,
}

/// Asks the model about a project and writes what it answers; on failure nothing is written.
fn distil(
    context: &Context,
    journal: &Journal,
    model: &Model,
    project: &str,
    sources: &[Stored],
    ui: &Ui,
) -> Result<Done, String> {
    let material: Vec<Note> = sources.iter().map(Stored::note).collect();
    let material = reflection::material(material.iter().collect());
    let most = match model::settings(context).max_tokens {
        0 => Reflection::default().max_tokens,
        tokens => tokens,
    };
    let prompt = prompts::reflect(&window(
        &material,
        usize::try_from(most).unwrap_or(usize::MAX),
    ));
    let cost = tokens(prompt.system) + tokens(&prompt.user);
    ui.note(&format!(
        "{}: {} notes, about {} tokens to {}\n",
        one_line(project),
        sources.len(),
        ui::number(cost),
        one_line(&model.receiver())
    ));
    let answer = {
        let _waiting = Waiting::new(&format!("asking {} …", one_line(&model.label())));
        model.ask(prompt.system, &prompt.user)
    };
    let answer = answer.map_err(|error| error.to_string())?;
    let distilled = reply::notes(&answer).map_err(|violation| violation.to_string())?;
    let (machine, label) = (context.machine_id(), one_line(&model.label()));
    let now = context.environment.now;
    let notes: Vec<Note> = distilled
        .into_iter()
        .map(|distilled| reflection::note(distilled, project, &machine, &label, now))
        .collect();
    // What hooks and editors left is not part of the batch: an undo would take it back, too.
    sync::commit_all(context, Some(journal)).map_err(|failure| failure.message().to_owned())?;
    write(context, &notes, sources)?;
    let ids = notes.iter().map(|note| note.id);
    let ids = ids.chain(sources.iter().map(|source| source.path.id));
    let batch = sync::commit(context, "reflect", ids).map(short_batch);
    Ok(Done { notes, batch })
}

/// Writes the new notes and marks those they were made from, all or nothing.
fn write(context: &Context, notes: &[Note], sources: &[Stored]) -> Result<(), String> {
    let told = |error: anamnesis_store::notes::Error| error.to_string();
    // Ctrl-C comes before or after, not in the middle.
    let _whole = ui::without_interrupts();
    let lock = context.notes.lock().map_err(told)?;
    if sources
        .iter()
        .any(|source| context.notes.stamp(source.path) != Some(source.stamp))
    {
        return Err("a session note was changed meanwhile; try again".to_owned());
    }
    let mut before: Vec<(NotePath, Vec<u8>)> = Vec::new();
    let mut made: Vec<NotePath> = Vec::new();
    let mut write_all = || {
        for note in notes {
            made.push(context.notes.create(&lock, note)?.path);
        }
        for source in sources {
            let bytes = context.notes.bytes(source.path)?;
            before.push((source.path, bytes));
            context.notes.update(&lock, source.path, reflection::take)?;
        }
        Ok(())
    };
    let Err(error) = write_all() else {
        return Ok(());
    };
    for path in made {
        if let Err(error) = context.notes.remove(&lock, path) {
            context.log(&format!("reflect: {error}"));
        }
    }
    for (path, bytes) in before {
        if let Err(error) = context.notes.overwrite(&lock, path, &bytes) {
            context.log(&format!("reflect: {error}"));
        }
    }
    Err(told(error))
}

/// Says what the new notes are to those that were there, and how to take them back.
fn tell(
    context: &Context,
    project: &str,
    sources: &[Stored],
    done: &Done,
    ui: &Ui,
) -> Result<(), Failure> {
    let index = context.index()?;
    let projects = [project.to_owned()];
    let new = done.notes.iter().map(|note| note.id);
    let own: Vec<NoteId> = new
        .chain(sources.iter().map(|source| source.path.id))
        .collect();
    let read = |id| {
        let path = context.notes.find(id)?;
        Some(context.notes.read(path).ok()?.note())
    };
    let mut text = String::new();
    for note in &done.notes {
        let short = Context::short(&index, note.id);
        text.push_str(&format!(
            "  #{short} {} \"{}\"\n",
            note.kind().shown(),
            one_line(&note.title)
        ));
        let among = Among {
            projects: &projects,
            replaced: &own,
            ..Among::default()
        };
        let judged = novelty(&index, note, &among, read)?;
        let (says, hint) = match judged {
            Novelty::Known(_) | Novelty::Echo(_) => ("repeats", "forget {new}"),
            Novelty::Extends(_) => ("extends", "connect {new} {old} --relation supersedes"),
            Novelty::MayContradict(_) => (
                "may contradict",
                "connect {new} {old} --relation supersedes",
            ),
            Novelty::Novel => continue,
        };
        let Some(old) = judged.note().and_then(read) else {
            continue;
        };
        let old_short = Context::short(&index, old.id);
        let hint = hint.replace("{new}", &short).replace("{old}", &old_short);
        text.push_str(&format!(
            "    {says} #{old_short} \"{}\"\n    → if so: anamnesis {hint}\n",
            one_line(&old.title)
        ));
    }
    match &done.batch {
        Some(batch) => text.push_str(&format!("Undo: anamnesis undo {batch}\n")),
        None => ui.note("! this is not committed yet, so it cannot be undone yet\n"),
    }
    ui.print(&text);
    Ok(())
}

/// A line that says that a model is waited for, on a terminal only, and is gone afterwards.
struct Waiting {
    is_shown: bool,
}

impl Waiting {
    fn new(text: &str) -> Self {
        let is_shown = ui::stderr_is_terminal();
        if is_shown {
            ui::progress(text);
        }
        Self { is_shown }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if self.is_shown {
            ui::progress("");
        }
    }
}
