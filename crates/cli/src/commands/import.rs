//! `import`: copies Claude Code's own memory, or that of another program, into notes.

mod other;

use std::{path::PathBuf, process::ExitCode};

use anamnesis_app::{
    Error, claude_memory,
    context::{Context, TIMEOUT},
    environment::Environment,
    pause::Off,
    remote, sync,
};
use anamnesis_store::{claude_memory::Imported, journal::Journal};
use anamnesis_text::{clean::one_line, redact::redact};

use super::sync::sync_afterwards;
use crate::ui::{self, Outcome, Ui};

/// The names of `--from`, for the help.
const SOURCES: &str = "\
Sources: claude-mem, server-memory, basic-memory, memories, engram, mem0,
openmemory, claude-ai, chatgpt, rules, codex, anamnesis (a file of `export`)";

/// Copy Claude Code's own memory, or another program's, into notes
///
/// Each file of Claude Code's memory becomes a note that follows it. If the file is deleted, the note
/// stays, and `review` shows it. Nothing is written to the memory. Notes that you changed or forgot
/// here stay that way. Excluded folders and paused projects are left out. Every sync imports, too.
///
/// With --from, the memory of another program is listed; with --apply, its notes are written as one
/// change, which `undo` reverts. The source is only read. A second import adds only what is new.
#[derive(Debug, clap::Args)]
#[command(after_help = SOURCES)]
pub(crate) struct Args {
    #[command(flatten)]
    other: other::OtherArgs,
    /// Claude Code's folder [default: CLAUDE_CONFIG_DIR, else ~/.claude]
    #[arg(long, value_name = "DIR", conflicts_with = "from")]
    claude_home: Option<PathBuf>,
    /// Do not sync afterwards
    #[arg(long)]
    no_sync: bool,
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    // A dry run makes no store.
    if args.other.is_dry_run() {
        return other::run(&args.other, &Context::new(environment, TIMEOUT)?, ui);
    }
    let context = &Context::open(environment)?;
    if args.other.from != "claude" {
        other::run(&args.other, context, ui)?;
        if !args.no_sync {
            // Stdout has one JSON document.
            let kept = args.other.json.then(Ui::keeping);
            let journal = Journal::open(&context.home, TIMEOUT)?;
            push(context, &journal, kept.as_ref().unwrap_or(ui));
            if let Some(kept) = kept {
                ui.note(&kept.into_text());
            }
        }
        return Ok(ExitCode::SUCCESS);
    }
    ui.saying(args.other.json, |ui| from_claude(args, context, ui))
}

/// Copies Claude Code's own memory into notes.
fn from_claude(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(option) = args.other.foreign_option() {
        return Err(Error::usage(format!("{option} needs --from SOURCE"))
            .hint("anamnesis import --from SOURCE [PATH]"));
    }
    if args.claude_home.is_some() {
        context.check_person("choose where notes come from")?;
    }
    if context.config.is_unclear {
        return Err(Error::failed(Off::Settings.reason()).hint(Off::Settings.hint()));
    }
    let named = args.claude_home.as_ref();
    let folder = named
        .or(context.environment.claude_folder.as_ref())
        .and_then(|folder| std::path::absolute(folder).ok())
        .ok_or_else(|| {
            Error::failed("no folder of Claude Code is known".to_owned())
                .hint("anamnesis import --claude-home DIR")
        })?;
    if named.is_some() && !folder.join("projects").is_dir() {
        return Err(Error::failed(format!(
            "{} is no folder of Claude Code: it has no `projects`",
            folder.display()
        )));
    }
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let progress = ui::Progress::new("reading Claude Code's memory …");
    let imported = claude_memory::import(context, &journal, &folder)?;
    drop(progress);
    if imported.has_changes() {
        context.index()?.checkpoint()?;
        sync::commit(context, "import", imported.changed.iter().copied());
    }
    journal.checkpoint()?;
    let folder = one_line(&folder.to_string_lossy());
    ui.print(&text(&imported, &redact(&folder).text));
    if !args.no_sync {
        push(context, &journal, ui);
    }
    for problem in &imported.problems {
        ui.note(&format!("import: {}: {}\n", problem.path, problem.reason));
    }
    Ok(ExitCode::SUCCESS)
}

/// Syncs, if there is a remote.
fn push(context: &Context, journal: &Journal, ui: &Ui) {
    if remote::address(context).is_some() {
        sync_afterwards(context, Some(journal), ui);
    }
}

/// The report.
fn text(imported: &Imported, folder: &str) -> String {
    let mut text = format!(
        "imported {} from {folder}, updated {}, skipped {}\n",
        ui::count(imported.imported, "note"),
        ui::number(imported.updated),
        ui::number(imported.skipped)
    );
    let masked: usize = imported.masked.values().sum();
    if imported.orphaned > 0 {
        text.push_str(&format!(
            "{} kept although the file is gone: anamnesis review\n",
            ui::count(imported.orphaned, "note")
        ));
    }
    if masked > 0 {
        let kinds = imported.masked.iter();
        let kinds: Vec<String> = kinds
            .map(|(rule, count)| format!("{rule} {count}"))
            .collect();
        let masked = ui::count(masked, "secret");
        text.push_str(&format!("{masked} masked ({})\n", kinds.join(", ")));
    }
    text
}
