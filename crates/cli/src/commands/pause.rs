//! `off` and `on`: stop and restart recording and injection, for a project or for all.

use anamnesis_app::{
    Error,
    context::Context,
    format::quoted,
    pause::{self, Off, PauseOutcome},
};
use anamnesis_note::draft::safe_line;
use anamnesis_store::{project::Project, settings::config::Config};
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

// The options of both commands. What each command does is said in `Verb`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The project [default: that of this folder]
    #[arg(long, value_name = "KEY", conflicts_with = "all")]
    project: Option<String>,
    /// All projects; projects paused by key stay paused
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    fn project(&self, context: &Context) -> Result<String, Error> {
        let Some(named) = &self.project else {
            return Ok(context.project(None).key);
        };
        let key = safe_line(named);
        if key.is_empty() {
            return Err(Error::usage("--project is empty"));
        }
        Ok(key)
    }

    /// Returns the JSON output.
    fn fields<'a>(&self, project: &'a str, off: bool) -> PauseOutcome<'a> {
        let project = (!self.all).then_some(project);
        PauseOutcome { project, off }
    }

    /// The options that select the same projects again.
    fn options(&self, project: &str) -> String {
        if self.all {
            " --all".to_owned()
        } else if self.project.is_some() {
            format!(" --project {}", quoted(project))
        } else {
            String::new()
        }
    }
}

pub(crate) fn pause(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let project = args.project(context)?;
    let before = pause::pause(context, (!args.all).then_some(project.as_str()))?;
    let said = match (args.all, before.everywhere, before.names(&project)) {
        (true, false, _) => {
            "paused everywhere: no session is recorded, and no notes are injected".to_owned()
        }
        (true, true, _) => "paused everywhere already".to_owned(),
        (false, _, false) => {
            format!("paused {project}: its sessions are not recorded, and no notes are injected")
        }
        (false, _, true) => format!("{project} is paused already"),
    };
    let text = format!("{said}\nResume: anamnesis on{}\n", args.options(&project));
    ui.done(args.json, args.fields(&project, true), &text)
}

pub(crate) fn resume(args: &Args, mut context: Context, ui: &Ui) -> Outcome {
    let project = args.project(&context)?;
    let before = pause::resume(&context, (!args.all).then_some(project.as_str()))?;
    let said = match (args.all, before.everywhere, before.names(&project)) {
        (true, true, _) => "resumed everywhere".to_owned(),
        (true, false, _) => "not paused everywhere".to_owned(),
        (false, _, true) => format!("resumed {project}"),
        (false, _, false) => format!("{project} was not paused"),
    };
    let mut text = format!("{said}\n");
    context.config = Config::load(&context.home);
    let paused = &context.config.paused;
    if args.all && !paused.projects.is_empty() {
        text.push_str("Still paused by project:\n");
        for project in &paused.projects {
            let project = one_line(project);
            let options = format!("--project {}", quoted(&project));
            text.push_str(&format!("  {project} · anamnesis on {options}\n"));
        }
    }
    // The state of another project's folder is unknown, so only states of all projects are checked.
    let still = if args.project.is_some() {
        pause::why(&context, &[], || Project::named(""))
    } else {
        pause::here(&context)
    };
    // The list already shows this one.
    let still = still.filter(|off| !(args.all && *off == Off::Project));
    if let Some(off) = still {
        text.push_str(&format!("Still off: {}\n→ {}\n", off.reason(), off.hint()));
    }
    ui.done(args.json, args.fields(&project, still.is_some()), &text)?;
    Ok(ui::attention(still.is_some()))
}
