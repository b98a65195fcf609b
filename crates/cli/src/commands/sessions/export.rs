//! `sessions export`: prints sessions as JSON objects.

use std::{
    fs::File,
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anamnesis_app::{
    Error,
    context::{Context, TIMEOUT},
    session::{self, export},
};
use anamnesis_store::{fs::file, journal::Journal};
use anamnesis_text::clean::one_line;

use crate::ui::{self, Outcome, Ui};

/// Print everything that is recorded of a session as JSON
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The session's id: six or more characters of its start
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Export every session of every project
    #[arg(long)]
    all: bool,
    /// Write to a new file, readable only by you, instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let index = context.index()?;
    let ids: Vec<String> = if let Some(typed) = &args.id {
        vec![session::find(&journal, typed)?.id]
    } else {
        let sessions = journal.sessions(None, usize::MAX)?;
        sessions.into_iter().map(|session| session.id).collect()
    };
    let Some(path) = &args.output else {
        export::write(context, &journal, &index, &ids, |text| {
            ui.raw(text);
            Ok(())
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    let shown = one_line(&path.display().to_string());
    let failure = format!("cannot write {shown}");
    let created = create(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => {
            Error::prefixed(&failure)(error).hint("name a file that is not there yet")
        }
        _ => Error::prefixed(&failure)(error),
    });
    let mut file = BufWriter::new(created?);
    let written = export::write(context, &journal, &index, &ids, |text| {
        file.write_all(text.as_bytes())
            .map_err(Error::prefixed(&failure))
    });
    let written = written.and_then(|()| file.flush().map_err(Error::prefixed(&failure)));
    if let Err(failure) = written {
        // A partial file is not valid JSON.
        let _ = std::fs::remove_file(path);
        return Err(failure);
    }
    ui.answer(&format!(
        "exported {} to {shown}\n",
        ui::count(ids.len(), "session"),
    ))
}

/// Creates a file that only its owner can read; never replaces an existing one.
fn create(path: &Path) -> io::Result<File> {
    file::private_options().create_new(true).open(path)
}
