//! `import --from SOURCE`: copies the memory of another program into notes.

use std::{fmt::Write as _, path::PathBuf, process::ExitCode};

use anamnesis_app::{
    Error, bulk_change,
    bulk_change::Applied,
    context::Context,
    format::quoted,
    import::{self, ImportReport, ImportedSource, ImportedSources, Request, Source},
    project,
    sync::short_change,
};
use anamnesis_store::journal::Journal;
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Progress, Ui};

/// The options of an import from another program.
#[derive(Debug, clap::Args)]
pub(super) struct OtherArgs {
    /// The program: claude (Claude Code's own memory), auto (every known place), or a name listed below
    #[arg(long, value_name = "SOURCE", default_value = "claude", value_parser = import::source_name)]
    pub(super) from: String,
    /// Its file or folder [default: where the program keeps it]
    #[arg(value_name = "PATH")]
    path: Option<PathBuf>,
    /// The project of notes without a known one, or NAME=KEY for a project's name in the source
    #[arg(long, value_name = "KEY")]
    project: Vec<String>,
    /// Import conversations of claude.ai and ChatGPT, too
    #[arg(long)]
    conversations: bool,
    /// Write the notes
    #[arg(long)]
    apply: bool,
    /// Print JSON
    #[arg(long)]
    pub(super) json: bool,
}

impl OtherArgs {
    /// Returns whether another program's memory is only listed.
    pub(super) fn is_dry_run(&self) -> bool {
        self.from != "claude" && !self.apply
    }

    /// Returns the first option that only `--from` understands, if one is given.
    pub(super) fn foreign_option(&self) -> Option<&'static str> {
        [
            (self.path.is_some(), "PATH"),
            (!self.project.is_empty(), "--project"),
            (self.conversations, "--conversations"),
            (self.apply, "--apply"),
        ]
        .into_iter()
        .find_map(|(is_given, name)| is_given.then_some(name))
    }

    fn request(&self) -> Request {
        let mut request = Request {
            path: self.path.clone(),
            with_conversations: self.conversations,
            apply: self.apply,
            ..Request::default()
        };
        for project in &self.project {
            match project.split_once('=') {
                Some((name, key)) => {
                    request
                        .named_projects
                        .insert(name.to_owned(), key.to_owned());
                }
                None => request.project = Some(project.clone()),
            }
        }
        request
    }

    /// Returns the command that does the same with another option.
    fn command(&self, tool: &str, option: &str) -> String {
        let mut command = format!("anamnesis import --from {tool}");
        if let Some(path) = &self.path {
            let _ = write!(command, " {}", quoted(&one_line(&path.to_string_lossy())));
        }
        for project in &self.project {
            let _ = write!(command, " --project {}", quoted(&one_line(project)));
        }
        if self.conversations {
            command.push_str(" --conversations");
        }
        format!("{command} {option}")
    }
}

/// Imports from every source that is found.
pub(super) fn run(args: &OtherArgs, context: &Context, ui: &Ui) -> Outcome {
    let journal = bulk_change::open_store(context, args.apply)?;
    let mut request = args.request();
    let sources = import::open(context, &args.from, &request)?;
    let mut shown = Vec::new();
    for source in &sources {
        let report = import_one(context, journal.as_ref(), source, &mut request, ui)?;
        if !args.json {
            ui.print(&text(args, context, source, &report));
        }
        shown.push(ImportedSource::new(source, report));
    }
    if args.json {
        return ui.json(Applied {
            applied: args.apply,
            report: ImportedSources { sources: shown },
        });
    }
    if sources.is_empty() {
        ui.print("no memory of another program in its usual place\n");
        ui.print("→ anamnesis import --from SOURCE PATH\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// Imports from a source. On a terminal, asks once for the keys of unknown projects.
fn import_one(
    context: &Context,
    journal: Option<&Journal>,
    source: &Source,
    request: &mut Request,
    ui: &Ui,
) -> Result<ImportReport, Error> {
    let read = |request: &Request| {
        let mut progress = Progress::bar();
        let show = |done| progress.show(done, 0, "record");
        import::run(context, journal, source, request, show)
    };
    let can_ask = ui::stdin_is_terminal() && !context.environment.is_agent;
    if !request.apply || !can_ask {
        return read(request);
    }
    let looked = read(&Request {
        apply: false,
        ..request.clone()
    })?;
    for (name, count) in &looked.unknown {
        let records = ui::count(*count, "record");
        let question = format!(
            "project \"{name}\" of {} ({records}): key, or Enter to skip > ",
            source.tool()
        );
        let key = ui.chooses(&question).filter(|key| !key.is_empty());
        request
            .named_projects
            .extend(key.map(|key| (name.clone(), key)));
    }
    read(request)
}

/// Formats the report for people.
fn text(args: &OtherArgs, context: &Context, source: &Source, report: &ImportReport) -> String {
    let tool = source.tool();
    let path = one_line(&context.shown(source.path()));
    let skipped: usize = report.skipped.values().sum();
    let verb = if args.apply { "imported" } else { "new" };
    let mut text = format!(
        "{tool}: {} in {path}: {} {verb}, {} already here, {} skipped\n",
        ui::count(report.found, "record"),
        ui::number(report.new),
        ui::number(report.same),
        ui::number(skipped),
    );
    let mut list = |heading: &str, counts: &mut dyn Iterator<Item = (String, usize)>| {
        for (place, (name, count)) in counts.enumerate() {
            if place == 0 {
                let _ = writeln!(text, "{heading}");
            }
            let _ = writeln!(text, "  {:>6}  {name}", ui::number(count));
        }
    };
    let shorten = |name: &str| ui::shorten(&one_line(name), 60);
    let by_project = report.projects.iter();
    list(
        "for project",
        &mut by_project.map(|(key, count)| (shorten(key), *count)),
    );
    let by_reason = report.skipped.iter();
    list(
        "skipped",
        &mut by_reason.map(|(reason, count)| ((*reason).to_owned(), *count)),
    );
    if !args.apply {
        for example in &report.examples {
            let head = format!("  [{}] ", example.kind.shown());
            let title = context.printable(&one_line(&example.title));
            let room = ui::width().saturating_sub(head.chars().count());
            let _ = writeln!(text, "{head}{}", ui::shorten(&title, room));
        }
    }
    for (name, count) in &report.unknown {
        let project = quoted(&format!("{name}=KEY"));
        let option = format!("--project {project}");
        let records = ui::count(*count, "record");
        let _ = writeln!(
            text,
            "project \"{}\" is unknown ({records})\n→ {}",
            shorten(name),
            args.command(tool, &option)
        );
    }
    for key in project::unseen(context, report.projects.keys()) {
        let hint = if args.apply {
            format!("anamnesis project merge {} KEY", quoted(key))
        } else {
            args.command(
                tool,
                &format!("--project {}", quoted(&format!("{key}=KEY"))),
            )
        };
        let _ = writeln!(
            text,
            "no session was in \"{}\" here: its notes are kept, and no project gets them\n\
             → {hint}   (if it is the project KEY here)",
            shorten(key)
        );
    }
    if report.is_held && report.new > 0 {
        text.push_str("found by search; injected after approval: anamnesis review\n");
    }
    match report.change {
        Some(change) => {
            let _ = writeln!(text, "Undo: anamnesis undo {}", short_change(change));
        }
        None if report.new > 0 && !args.apply => {
            let _ = writeln!(text, "→ {}", args.command(tool, "--apply"));
        }
        None => {}
    }
    text
}
