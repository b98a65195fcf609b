//! `write`: creates a note.

use std::{fs, path::PathBuf, process::Command};

use anamnesis_app::{
    Error,
    context::Context,
    ops::{
        write::{self, WriteNote},
        written::WrittenNote,
    },
    project,
};
use anamnesis_note::{draft::InvalidDraft, id::NoteId};
use anamnesis_store::fs::file;

use crate::{
    input::{MAX_TEXT_LENGTH, read_text},
    ui::{self, Outcome, Ui},
};

/// Write a note
///
/// The text comes from --file, from stdin, or from your editor. Secrets in it are masked, parts in
/// `<private>` tags are left out. Notes by Claude are marked as written by the agent. They need
/// your approval if they apply to all projects, and are rejected if a note already says the same.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    request: WriteNote,
    /// Read the text from stdin
    #[arg(long, conflicts_with = "file")]
    stdin: bool,
    /// Read the text from this file
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(mut args: Args, context: &Context, ui: &Ui) -> Outcome {
    let typed = text_of(&args, context)?;
    args.request.body.clone_from(&typed.text);
    let remark = project::remark_on_new(context, args.request.project.as_deref());
    let saved = write::write(context, args.request).map_err(|error| match error.cause() {
        Some(InvalidDraft::NoText) => error.hint("--title, --file, stdin, or set EDITOR"),
        _ => error,
    });
    let written = typed.settle(context, saved)?;
    ui.note(&remark.unwrap_or_default());
    print(ui, &written, args.json)
}

/// Prints what happened to a note.
pub(super) fn print(ui: &Ui, written: &WrittenNote, is_json: bool) -> Outcome {
    if let Some(failure) = &written.index_failure {
        ui.note(&failure.text());
    }
    ui.done(is_json, written, &written.said)
}

fn text_of(args: &Args, context: &Context) -> Result<Typed, Error> {
    if let Some(path) = &args.file {
        let failure = format!("cannot read {}", path.display());
        let (bytes, _, whole) =
            file::read_head(path, MAX_TEXT_LENGTH).map_err(Error::prefixed(failure))?;
        if !whole {
            return Err(Error::usage(format!("{} is over 16 MiB", path.display())));
        }
        return Ok(Typed::given(String::from_utf8_lossy(&bytes).into_owned()));
    }
    if args.stdin || !ui::stdin_is_terminal() {
        return read_text().map(Typed::given);
    }
    if args.request.title.is_some() && context.environment.editor.is_none() {
        return Ok(Typed::given(String::new()));
    }
    edited(context, "")
}

/// A text for a note.
pub(super) struct Typed {
    pub(super) text: String,
    /// The file in which a person typed it, if it was changed there.
    file: Option<PathBuf>,
}

impl Typed {
    fn given(text: String) -> Self {
        Self { text, file: None }
    }

    /// Removes the file after the text was saved. If it was not, the text is kept, and the error
    /// names where.
    pub(super) fn settle<T>(self, context: &Context, saved: Result<T, Error>) -> Result<T, Error> {
        let Some(file) = self.file else {
            return saved;
        };
        match saved {
            Ok(saved) => {
                let _ = fs::remove_file(file);
                Ok(saved)
            }
            Err(failure) => {
                let kept = anamnesis_app::edit::keep_typed(context, &self.text);
                let kept = kept.inspect(|_| drop(fs::remove_file(&file)));
                let kept = context.shown(&kept.unwrap_or(file));
                Err(failure.also(&format!("Your text is kept in {kept}")))
            }
        }
    }
}

/// Opens a text in the user's editor and returns the result.
pub(super) fn edited(context: &Context, text: &str) -> Result<Typed, Error> {
    let Some(editor) = &context.environment.editor else {
        return Err(Error::usage("no editor is set")
            .hint("set EDITOR, or give the text with --file or on stdin"));
    };
    let path = context.home.derived().join(format!(
        "edit-{}.md",
        NoteId::generate(context.environment.now)
    ));
    let failure = format!("cannot edit {}", path.display());
    file::write_atomic(&path, text.as_bytes()).map_err(Error::prefixed(&failure))?;
    // `EDITOR` may contain options, as with git.
    let editor = editor.to_string_lossy();
    let mut words = editor.split_whitespace();
    let status = Command::new(words.next().unwrap_or_default())
        .args(words)
        .arg(&path)
        .status();
    let result = match status {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(Error::failed(format!(
            "{editor} ended with {status}; nothing was changed"
        ))),
        Err(error) => {
            Err(Error::prefixed(format_args!("cannot start {editor}"))(error).hint("set EDITOR"))
        }
    };
    let bytes = fs::read(&path).map_err(Error::prefixed(&failure))?;
    let is_changed = bytes != text.as_bytes();
    if !is_changed {
        let _ = fs::remove_file(&path);
    }
    let typed = Typed {
        text: String::from_utf8_lossy(&bytes).into_owned(),
        file: is_changed.then_some(path),
    };
    match result {
        Ok(()) => Ok(typed),
        // An editor may fail after a person typed and saved.
        Err(failure) => typed.settle(context, Err(failure)),
    }
}
