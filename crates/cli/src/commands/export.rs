//! `export`: prints notes as JSON, or writes them as files.

use std::{
    io::{self, BufWriter, Write},
    path::PathBuf,
    process::ExitCode,
};

use crate::ui::{self, Outcome, ProjectFilter, Ui};
use anamnesis_app::{
    Error,
    context::Context,
    export::{self, ExportForm, ExportReport},
};

/// Export notes as JSON or markdown files
///
/// `import --from anamnesis FILE --apply` brings the notes of a JSON export back, byte for byte.
/// Forgotten notes are left out.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("form").required(true),
    override_usage = "anamnesis export [OPTIONS] <--json|--jsonl|--markdown DIR>"
)]
pub(crate) struct Args {
    /// Print one JSON document
    #[arg(long, group = "form")]
    json: bool,
    /// Print one JSON object per note
    #[arg(long, group = "form")]
    jsonl: bool,
    /// Write one file per note in this new or empty folder
    #[arg(long, value_name = "DIR", group = "form")]
    markdown: Option<PathBuf>,
    #[command(flatten)]
    projects: ProjectFilter,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let form = match &args.markdown {
        Some(folder) => ExportForm::Markdown(folder.clone()),
        None if args.json => ExportForm::Json,
        None => ExportForm::Jsonl,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let report = export::export(context, args.projects.key(), &form, &mut out)?;
    out.flush()
        .map_err(Error::prefixed("cannot write the export"))?;
    drop(out);
    tell(&report, ui);
    Ok(ExitCode::SUCCESS)
}

/// Says what was exported and what was left out.
fn tell(report: &ExportReport, ui: &Ui) {
    for reason in &report.unreadable {
        ui.note(&format!("export: left out: {reason}\n"));
    }
    ui.note(&format!("export: {}\n", ui::count(report.exported, "note")));
}
