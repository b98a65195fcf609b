//! `reflect`: distils many sessions of a project into few notes, with the configured model.
//!
//! A project is written only if its whole answer is valid. The new notes and the tags of their
//! sources are one commit, so that one `undo` reverts both. If the person approves all notes, the
//! new ones are proposed. An error in one project leaves it unchanged, and the others continue.

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_app::{
    Error,
    context::Context,
    model,
    reflect::{Distilled, Fate, Question},
    sync,
};
use anamnesis_distill::{model::Model, reflection};
use anamnesis_note::id::NoteId;
use anamnesis_recall::novelty::{Novelty, NoveltyScope, novelty};
use anamnesis_store::{journal::Journal, notes::Stored};
use anamnesis_sync::HeldDecision;
use anamnesis_text::clean::one_line;

use super::sync as sync_command;
use crate::ui::{self, Outcome, ProjectFilter, Ui};

/// The hint if no model is configured.
const WITHOUT_A_MODEL: &str = "/memory-reflect in Claude Code: its own model distils them\n\
                               → or a model of yours: anamnesis config set reflection.provider openai";

/// Distil sessions into few notes (uses a model)
///
/// Sends the session notes of each project that are not distilled yet, without secrets, to the
/// configured model (`anamnesis config set reflection.provider`). Its answer becomes notes; the
/// session notes stay. Without `--apply` nothing is sent or written. Machine-local notes and notes
/// of sessions with private parts are not sent. Without a configured model, type /memory-reflect in
/// Claude Code.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    projects: ProjectFilter,
    /// Make the changes; without this option they are only described
    #[arg(long)]
    apply: bool,
    /// Do not sync afterwards
    #[arg(long)]
    no_sync: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    ui.saying(args.json, |ui| distil(args, context, ui))
}

fn distil(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if args.apply {
        context.check_person("ask the model, which costs money")?;
    }
    // Without the journal, private sessions cannot be recognised.
    let journal = Journal::open(&context.home, anamnesis_app::context::TIMEOUT)?;
    let waiting = waiting(context, &journal, args.projects.key(), ui)?;
    if waiting.is_empty() {
        let least = ui::count(context.environment.min_episodics, "session note");
        return ui.answer(&format!(
            "nothing to distil: no project has {least} that are not distilled yet\n"
        ));
    }
    if !args.apply {
        for (project, sources) in &waiting {
            ui.print(&format!(
                "{}: {} would be distilled\n",
                one_line(project),
                ui::count(sources.len(), "session note")
            ));
        }
        return ui.answer(&match model::find(context) {
            Ok(None) => format!("→ {WITHOUT_A_MODEL}\n"),
            _ => "→ anamnesis reflect --apply   (sends them to the model that you configured)\n"
                .to_owned(),
        });
    }
    let model = model::find(context)?
        .ok_or_else(|| Error::failed("no model is set").hint(WITHOUT_A_MODEL))?;
    let (written, proposed, failed) = reflect(context, &journal, &model, &waiting, ui);
    if proposed > 0 {
        ui.print(&format!(
            "proposed {}: not used before you approve\n→ anamnesis review\n",
            ui::count(proposed, "note")
        ));
    }
    let written = (written > 0).then(|| ui::count(written, "note"));
    if let Some(written) = written {
        let sent = if args.no_sync {
            "committed on this machine (--no-sync)".to_owned()
        } else {
            let synced = sync::run(context, Some(&journal), HeldDecision::None, sync::TIMEOUT)?;
            sync_command::sentence(&synced)
        };
        context.index()?;
        ui.print(&format!("wrote {written}; {sent}\n"));
    }
    match failed {
        0 => Ok(ExitCode::SUCCESS),
        failed => Err(Error::failed(format!(
            "{} not distilled; nothing of them was changed",
            ui::count(failed, "project")
        ))),
    }
}

/// Distils each project. Returns how many notes were written and proposed, and how many projects
/// failed.
fn reflect(
    context: &Context,
    journal: &Journal,
    model: &Model,
    waiting: &BTreeMap<String, Vec<Stored>>,
    ui: &Ui,
) -> (usize, usize, usize) {
    let (mut written, mut proposed, mut failed) = (0, 0, 0);
    for (project, sources) in waiting {
        let shown = one_line(project);
        match ask(context, journal, model, project, sources, ui) {
            Ok(done) => {
                ui.print(&format!(
                    "{shown}: distilled {} into {}\n",
                    ui::count(sources.len(), "session note"),
                    ui::count(done.notes.len(), "note")
                ));
                if done.forgotten > 0 {
                    ui.note(&format!(
                        "{} left out that you had forgotten\n",
                        done.forgotten
                    ));
                }
                match done.fate {
                    Fate::Used(_) => written += done.notes.len(),
                    Fate::Proposed => proposed += done.notes.len(),
                }
                // The notes are written, so a failed report must not stop the next project.
                if let Err(failure) = tell(context, project, sources, &done, ui) {
                    ui.note(&failure.text());
                }
            }
            Err(error) => {
                failed += 1;
                ui.print(&format!(
                    "{shown}: not distilled: {}\n",
                    one_line(error.message())
                ));
            }
        }
    }
    (written, proposed, failed)
}

/// The session notes to distil, by project, for projects that have enough of them.
fn waiting(
    context: &Context,
    journal: &Journal,
    named: Option<&str>,
    ui: &Ui,
) -> Result<BTreeMap<String, Vec<Stored>>, Error> {
    let named: Vec<String> = named.map(str::to_owned).into_iter().collect();
    let mut waiting = reflection::pending(&context.notes, journal, &named)?;
    if waiting.private > 0 {
        ui.note(&format!(
            "{} left out: something in those sessions is private\n",
            ui::count(waiting.private, "session note")
        ));
    }
    let least = context.environment.min_episodics;
    waiting
        .by_project
        .retain(|_, sources| sources.len() >= least);
    Ok(waiting.by_project)
}

/// Asks a model about a project, after it printed what is sent where.
fn ask(
    context: &Context,
    journal: &Journal,
    model: &Model,
    project: &str,
    sources: &[Stored],
    ui: &Ui,
) -> Result<Distilled, Error> {
    let question = Question::new(context, project, sources);
    let (project, notes) = (one_line(project), sources.len());
    let cost = ui::cost(question.cost(), model);
    ui.note(&format!("{project}: {notes} notes, {cost}"));
    let _progress = ui::Progress::new(&format!("asking {} …", one_line(&model.label())));
    question.ask(context, journal, model, context.actor())
}

/// Prints how the new notes relate to existing ones, and how to undo the change.
fn tell(
    context: &Context,
    project: &str,
    sources: &[Stored],
    done: &Distilled,
    ui: &Ui,
) -> Result<(), Error> {
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
        let among = NoveltyScope {
            projects: &projects,
            replaced: &own,
            ..NoveltyScope::default()
        };
        let judged = novelty(&index, note, &among, read)?;
        let (says, hint) = match judged {
            Novelty::Known(_) | Novelty::Echo(_) => ("repeats", "forget {new}"),
            Novelty::Extends(_) => ("extends", "connect {new} {old} --relation supersedes"),
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
    match &done.fate {
        Fate::Used(Some(batch)) => text.push_str(&format!("Undo: anamnesis undo {batch}\n")),
        Fate::Used(None) => ui.note("! this is not committed yet, so it cannot be undone yet\n"),
        Fate::Proposed => {}
    }
    ui.print(&text);
    Ok(())
}
