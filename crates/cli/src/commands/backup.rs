//! `backup`: the whole store as one file, and back.

use std::path::PathBuf;

use anamnesis_app::{
    Error,
    backup::{self, CheckedBackup},
    context::Context,
};

use crate::ui::{self, Outcome, Progress, Ui};

/// Write the whole store to one file, or restore it
///
/// The file is a tar archive: notes with their git history, records of this machine, settings, trash.
/// It has everything that you wrote, and a model's key if one is set, so keep it private. It is
/// checked after writing. With --restore, the store is replaced by the file; the store that was there
/// is kept beside it. End all sessions first.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The file: a new one, or with --restore a backup
    file: PathBuf,
    /// Replace the store by this backup
    #[arg(long)]
    restore: bool,
    /// Only check that this backup is whole
    #[arg(long, conflicts_with = "restore")]
    check: bool,
    /// Do not ask for confirmation
    #[arg(long, requires = "restore")]
    yes: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let file = std::path::absolute(&args.file).map_err(|error| {
        Error::usage(format!(
            "cannot use the path {}: {error}",
            args.file.display()
        ))
        .because(error)
    })?;
    let named = context.shown(&file);
    if args.restore || args.check {
        let files = backup::check(context, &file)?;
        let counted = ui::count(files, "file");
        if args.check {
            let text = format!("{named} is whole: {counted}\n");
            return ui.done(args.json, CheckedBackup { files }, &text);
        }
        let store = context.shown(context.home.root());
        let question = format!("Replace {store} by the {counted} of {named}?");
        let again = format!("anamnesis backup --restore {} --yes", args.file.display());
        ui.confirm(&question, args.yes, &again, ["", "nothing was restored"])?;
        let restored = backup::restore(context, &file)?;
        let before = restored.before.as_ref();
        let mut text = format!("restored {} to {store}\n", ui::count(files, "file"));
        if let Some(before) = before {
            let before = context.shown(before);
            text.push_str(&format!(
                "the former store is in {before}; delete it once the restored one works\n→ anamnesis status\n"
            ));
        }
        return ui.done(args.json, &restored, &text);
    }
    let mut progress = Progress::bar();
    let done = backup::back_up(context, &file, |done, total| {
        progress.show(done, total, "file");
    })?;
    drop(progress);
    let text = format!(
        "wrote {} to {named}, {}, and read it back\n→ anamnesis backup --restore {}\n",
        ui::count(done.files, "file"),
        ui::size(done.bytes),
        args.file.display()
    );
    ui.done(args.json, &done, &text)
}
