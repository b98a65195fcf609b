//! `export`: prints notes as JSON, or writes them as files.

use std::{
    io::{self, BufWriter, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anamnesis_app::{
    Error,
    context::Context,
    export::{self, ExportForm, ExportReport},
};
use anamnesis_store::fs::file::write_atomic;

use crate::ui::{self, Outcome, ProjectFilter, Ui};

/// Export notes as JSON, markdown files or one page
///
/// `import --from anamnesis FILE --apply` brings the notes of a JSON export back, byte for byte.
/// Forgotten notes are left out.
#[derive(Debug, clap::Args)]
#[command(
    group = clap::ArgGroup::new("form").required(true),
    override_usage = "anamnesis export [OPTIONS] <--json|--jsonl|--markdown DIR|--html FILE>"
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
    /// Write one page that any browser shows and searches, without a network
    #[arg(long, value_name = "FILE", group = "form")]
    html: Option<PathBuf>,
    #[command(flatten)]
    projects: ProjectFilter,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(file) = &args.html {
        return page(args, file, context, ui);
    }
    let form = match &args.markdown {
        Some(folder) => ExportForm::Markdown(folder.clone()),
        None if args.json => ExportForm::Json,
        None => ExportForm::Jsonl,
    };
    let mut out = BufWriter::new(io::stdout().lock());
    let report = export::export(context, args.projects.key(), &form, &mut out)?;
    out.flush()
        .map_err(|error| Error::failed(format!("cannot write the export: {error}")))?;
    drop(out);
    tell(&report, ui);
    Ok(ExitCode::SUCCESS)
}

/// Writes the page beside the file first, so that no half page replaces a whole one.
fn page(args: &Args, file: &Path, context: &Context, ui: &Ui) -> Outcome {
    let mut bytes = Vec::new();
    let report = anamnesis_web::export_html(context, args.projects.key(), &mut bytes)?;
    write_atomic(file, &bytes).map_err(export::not_written)?;
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
