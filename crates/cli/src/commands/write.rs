//! `write`: creates a note.

use std::{
    fs,
    path::PathBuf,
    process::{Command, ExitCode},
};

use anamnesis_app::{
    Error,
    context::Context,
    new_note::{self, SavedNote},
};
use anamnesis_note::{
    draft::{self, Draft, InvalidDraft, safe_line},
    id::NoteId,
    link::{self, Relation, declarable},
    note::{Enforce, Kind, Note, NoteType, Scope, Severity},
    trigger::Trigger,
};
use anamnesis_store::index::{Entry, Index};
use serde_json::{Value, json};

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
#[expect(clippy::struct_excessive_bools, reason = "each is a flag")]
pub(crate) struct Args {
    /// A one-line summary [default: the first line of the text]
    #[arg(long)]
    title: Option<String>,
    /// The type: procedural, semantic or episodic [default: chosen by the kind]
    #[arg(long = "type", value_name = "TYPE", value_parser = str::parse::<NoteType>)]
    note_type: Option<NoteType>,
    /// The kind: fact, preference, insight, how-to, warning or task [default: fact]
    #[arg(long, value_parser = Kind::from_word)]
    kind: Option<Kind>,
    /// A tag; repeatable
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
    /// A word or short question that the note may be asked for with; repeatable
    #[arg(long = "asked", value_name = "TEXT")]
    asked: Vec<String>,
    /// The project (`global` for all projects) [default: that of this folder]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// `machine-local` keeps the note on this machine
    #[arg(long, value_parser = str::parse::<Scope>, default_value = "portable")]
    scope: Scope,
    /// When a warning is shown: `cmd: git push --force`, `path: *.sql`, `tool: Write`, `text:
    /// words`
    #[arg(long, value_name = "TRIGGER", value_parser = str::parse::<Trigger>)]
    when: Vec<Trigger>,
    /// The alternative to what a warning is about
    #[arg(long, value_name = "TEXT")]
    instead: Option<String>,
    /// The severity of a warning: low, medium, high or critical
    #[arg(long, value_parser = str::parse::<Severity>)]
    severity: Option<Severity>,
    /// `once`: block a call that --when names, once per session; the warning must be high or
    /// critical
    #[arg(long, value_parser = str::parse::<Enforce>, requires = "when")]
    enforce: Option<Enforce>,
    /// A note that this one replaces; repeatable
    #[arg(long, value_name = "ID")]
    supersedes: Vec<String>,
    /// A link, `RELATION ID`; repeatable
    #[arg(long = "link", value_name = "RELATION ID", value_parser = link)]
    links: Vec<Link>,
    /// Pin the note
    #[arg(long)]
    pin: bool,
    /// Write the note even if another one says the same
    #[arg(long)]
    force: bool,
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

#[derive(Debug, Clone)]
struct Link {
    relation: Relation,
    target: String,
}

fn link(text: &str) -> Result<Link, Error> {
    match text.split_whitespace().collect::<Vec<_>>()[..] {
        [relation, target] => Ok(Link {
            relation: declarable(relation).map_err(Error::caused_by)?,
            target: target.to_owned(),
        }),
        _ => Err(Error::usage("a link is a relation and an id")),
    }
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let index = context.index()?;
    let draft = draft_of(args, context, &index)?;
    let typed = text_of(args, context)?;
    let saved = save(args, context, index, draft, &typed.text);
    let saved = typed.settle(context, saved)?;
    let json: Json = |entry, note| ui::note_json(entry, Some(note));
    Ok(print(ui, &saved, args.json.then_some(json)))
}

/// Saves the requested note with its text.
fn save(
    args: &Args,
    context: &Context,
    index: Index,
    mut draft: Draft,
    text: &str,
) -> Result<SavedNote, Error> {
    text.clone_into(&mut draft.text);
    let replaced = args
        .supersedes
        .iter()
        .map(|typed| Context::resolve(&index, typed))
        .collect::<Result<Vec<Entry>, Error>>()?;
    draft.supersedes = replaced.iter().map(Entry::id).collect();
    let note = draft
        .note(context.machine_id(), context.environment.now)
        .map_err(|error| match error {
            InvalidDraft::NoText => {
                Error::from(error).hint("--title, --file, stdin, or set EDITOR")
            }
            error => error.into(),
        })?;
    new_note::write(context, index, note, "write", &replaced, args.force)
}

/// Formats a saved note as JSON.
pub(super) type Json = fn(&Entry, &Note) -> Value;

/// Prints a saved note, with its relation to existing notes.
pub(super) fn print(ui: &Ui, saved: &SavedNote, json: Option<Json>) -> ExitCode {
    if let Some(failure) = &saved.index_failure {
        ui.note(&failure.text());
    }
    let note = saved.stored.note();
    let short = &saved.short;
    match (json, &saved.entry) {
        (Some(json), Some(entry)) => {
            let mut json = json(entry, &note);
            let novelty = saved.novelty;
            let other = novelty.note().map(|id| id.to_string());
            json["novelty"] = json!({ "decision": novelty.as_str(), "note": other });
            ui.json(&json);
        }
        (Some(_), None) => {}
        (None, _) => {
            let remark = saved.remark.as_ref();
            let remark = remark.map_or_else(String::new, |remark| format!("{remark}\n"));
            let saved = draft::saved(&note, short);
            ui.print(&format!(
                "{saved}\n{remark}Undo: anamnesis forget {short}\n"
            ));
        }
    }
    ExitCode::SUCCESS
}

/// The requested note, without its text and without the notes that it replaces.
fn draft_of(args: &Args, context: &Context, index: &Index) -> Result<Draft, Error> {
    let links = args.links.iter().map(|link| {
        let target = Context::resolve(index, &link.target)?.id();
        Ok(link::Link {
            relation: link.relation,
            target,
            weight: None,
        })
    });
    Ok(Draft {
        note_type: args.note_type,
        kind: args.kind,
        title: args.title.clone(),
        scope: args.scope,
        tags: args.tags.clone(),
        asked: args.asked.clone(),
        when: args.when.clone(),
        instead: args.instead.clone(),
        severity: args.severity,
        enforce: args.enforce.unwrap_or(Enforce::Never),
        pinned: args.pin,
        links: links.collect::<Result<_, Error>>()?,
        ..Draft::new(String::new(), project_of(args.project.as_deref(), context)?)
    })
}

/// The project key of a new note.
pub(super) fn project_of(named: Option<&str>, context: &Context) -> Result<String, Error> {
    let key = named.map_or_else(|| context.project_to_write(None).key, safe_line);
    if key.is_empty() {
        return Err(Error::usage("--project is empty"));
    }
    Ok(key)
}

fn text_of(args: &Args, context: &Context) -> Result<Typed, Error> {
    if let Some(path) = &args.file {
        let (bytes, _, whole) = anamnesis_store::fs::file::read_head(path, MAX_TEXT_LENGTH)
            .map_err(|error| {
                Error::failed(format!("cannot read {}: {error}", path.display())).because(error)
            })?;
        if !whole {
            return Err(Error::usage(format!("{} is over 16 MiB", path.display())));
        }
        return Ok(Typed::given(String::from_utf8_lossy(&bytes).into_owned()));
    }
    if args.stdin || !ui::stdin_is_terminal() {
        return read_text().map(Typed::given);
    }
    if args.title.is_some() && context.environment.editor.is_none() {
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
    let failed = |error: std::io::Error| {
        Error::failed(format!("cannot edit {}: {error}", path.display())).because(error)
    };
    anamnesis_store::fs::file::write_atomic(&path, text.as_bytes()).map_err(failed)?;
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
        Err(error) => Err(Error::failed(format!("cannot start {editor}: {error}"))
            .because(error)
            .hint("set EDITOR")),
    };
    let bytes = fs::read(&path).map_err(failed)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_are_checked() {
        let trigger = str::parse::<Trigger>;
        assert_eq!(
            trigger("cmd:  git   push").unwrap().to_string(),
            "cmd: git push"
        );
        for bad in ["cmd: git", "git push", "path: *", "when: x", ""] {
            assert!(trigger(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn links_are_checked() {
        assert!(link("related-to 9G5FAV").is_ok());
        for bad in ["", "9G5FAV", "loves 9G5FAV", "related-to a b"] {
            assert!(link(bad).is_err(), "{bad}");
        }
    }
}
