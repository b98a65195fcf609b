//! Writing a note and editing one in place: the form with its front matter, the preview, and saving.

use anamnesis_app::{Error, edit as operation, ops::written, project};
use anamnesis_note::{
    draft::{Draft, NoteChange},
    id::NoteId,
    note::{GLOBAL, Kind, Note, NoteType, Severity},
    trigger::Trigger,
};
use anamnesis_store::index::Index;
use anamnesis_text::{
    clean::{clean, one_line},
    hash::text_hash,
};
use chrono::DateTime;
use maud::{Markup, html};

use super::note::entry;
use crate::{
    answer::PageResponse,
    layout::{self, choice, line},
    markdown,
    visit::{Answered, Params, Visit},
};

/// The fields of the form, as text.
pub(crate) struct Fields {
    title: String,
    body: String,
    kind: Kind,
    tags: String,
    asked: String,
    when: String,
    severity: Option<Severity>,
    instead: String,
}

impl Fields {
    pub(crate) fn from_note(note: &Note) -> Self {
        Self {
            title: note.title.clone(),
            body: note.body.clone(),
            kind: note.kind(),
            tags: note.kind().other_tags(&note.tags).join(", "),
            asked: note.asked.join("\n"),
            when: note.when.join("\n"),
            severity: note.severity,
            instead: note.instead.clone().unwrap_or_default(),
        }
    }

    /// Reads what was typed. A field that the form does not have is as in `of_note`.
    fn from_form(form: &Params, of_note: Self) -> Self {
        let typed = |name: &str, otherwise: String| {
            let mut pairs = form.0.iter();
            let found = pairs.find(|(other, _)| other == name);
            found.map_or(otherwise, |(_, value)| value.replace("\r\n", "\n"))
        };
        let kind = form.get("kind").and_then(|word| Kind::from_word(word).ok());
        let severity = form.get("severity").and_then(|word| word.parse().ok());
        Self {
            title: typed("title", of_note.title),
            body: typed("body", of_note.body),
            kind: kind.unwrap_or(of_note.kind),
            tags: typed("tags", of_note.tags),
            asked: typed("asked", of_note.asked),
            when: typed("when", of_note.when),
            severity: severity.or(of_note.severity),
            instead: typed("instead", of_note.instead),
        }
    }

    /// The fields of a new note.
    fn empty() -> Self {
        let id = NoteId::made_of("");
        Self::from_note(&Note::new(id, NoteType::Semantic, DateTime::UNIX_EPOCH))
    }

    fn tags(&self) -> Vec<String> {
        let tags = self.tags.split(',').map(|tag| tag.trim().to_owned());
        tags.filter(|tag| !tag.is_empty()).collect()
    }

    fn triggers(&self) -> Result<Vec<Trigger>, Error> {
        let when = lines(&self.when).into_iter().map(|line| {
            line.parse::<Trigger>()
                .map_err(|error| Error::usage(format!("trigger \"{}\": {error}", one_line(&line))))
        });
        when.collect()
    }

    /// Returns the new note of a project.
    fn draft(&self, project: String) -> Result<Draft, Error> {
        let is_warning = self.kind == Kind::Antipattern;
        let instead = Some(&self.instead).filter(|text| is_warning && !text.trim().is_empty());
        Ok(Draft {
            kind: Some(self.kind),
            title: Some(self.title.clone()).filter(|title| !title.trim().is_empty()),
            tags: self.tags(),
            asked: lines(&self.asked),
            when: if is_warning {
                self.triggers()?
            } else {
                Vec::new()
            },
            severity: self.severity.filter(|_| is_warning),
            instead: instead.cloned(),
            ..Draft::new(self.body.clone(), project)
        })
    }

    /// Returns what differs from the note.
    fn change(&self, note: &Note) -> Result<NoteChange, Error> {
        let was = Self::from_note(note);
        let (when, tags) = (self.triggers()?, self.tags());
        let change = NoteChange {
            title: (self.title != was.title).then(|| self.title.clone()),
            body: (self.body.trim_end() != was.body.trim_end()).then(|| self.body.clone()),
            kind: (self.kind != was.kind).then_some(self.kind),
            tags: (tags != was.tags()).then_some(tags),
            asked: (lines(&self.asked) != note.asked).then(|| lines(&self.asked)),
            when: (lines(&self.when) != note.when).then_some(when),
            severity: self.severity.filter(|_| self.severity != was.severity),
            instead: (self.instead.trim() != was.instead).then(|| self.instead.clone()),
            ..NoteChange::default()
        };
        Ok(change.fit()?)
    }
}

fn lines(text: &str) -> Vec<String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.map(str::to_owned).collect()
}

/// The form in which a note is edited. The hash in it tells whether the note changed meanwhile.
pub(crate) fn form_of(note: &Note, fields: &Fields, back: &str) -> Markup {
    let path = format!("/note/{}", note.id);
    html! {
        form.editor method="post" action={ (path) "/edit" } data-preview={ (path) "/preview" } {
            input type="hidden" name="before" value=(version(note));
            input type="hidden" name="back" value=(back);
            (inputs(fields, Kind::ALL))
            p.actions {
                button.main { "Save" }
                button.plain formaction={ (path) "/preview" } { "Preview" }
            }
            div id={ "preview-" (note.id) } class="preview" {}
        }
    }
}

/// The fields of a note. Those of a warning are shown while the kind is a warning.
fn inputs(fields: &Fields, kinds: &[Kind]) -> Markup {
    let severities = Severity::ALL.iter();
    let severities = severities.map(|word| (word.to_string(), word.to_string()));
    html! {
        label { span { "Title" } input name="title" required value=(line(&fields.title)); }
        // HTML drops the first line break of a text area.
        label { span { "Text (Markdown)" }
            textarea name="body" rows="14" { "\n" (clean(&fields.body)) } }
        div.fields {
            label { span { "Kind" }
                select name="kind" {
                    @for kind in kinds {
                        option value=(kind.shown()) selected[*kind == fields.kind] { (kind.shown()) }
                    }
                }
            }
            label { span { "Tags" } input name="tags" value=(line(&fields.tags)); }
        }
        label { span { "Also found as: words or questions, one per line" }
            textarea name="asked" rows="2" { "\n" (clean(&fields.asked)) } }
        label.of-warning { span { "Warn at: triggers, one per line, such as cmd: git push --force" }
            textarea name="when" rows="3" { "\n" (clean(&fields.when)) } }
        div.fields.of-warning {
            (choice("severity", "Severity", "Not set", severities,
                fields.severity.map(|it| it.to_string()).as_deref()))
            label { span { "Instead" } input name="instead" value=(line(&fields.instead)); }
        }
    }
}

/// The field for a project's key, with the known ones to choose from.
pub(super) fn project_field(visit: &Visit, index: &Index, key: &str) -> Result<Markup, Error> {
    let projects = project::keys_with_counts(&visit.context, index)?.into_keys();
    Ok(html! {
        label { span { "Project" }
            input name="project" required list="projects" value=(line(key)) autocomplete="off";
        }
        datalist id="projects" {
            option value=(GLOBAL) {}
            @for project in projects { option value=(line(&project)) {} }
        }
    })
}

/// The form of a new note.
pub(crate) fn new(visit: &Visit) -> Answered {
    let key = visit.query.get("project");
    let key = visit.context.key_to_write(key)?;
    new_form(visit, &Fields::empty(), &key, None)
}

fn new_form(visit: &Visit, fields: &Fields, key: &str, failure: Option<&Error>) -> Answered {
    let is_written = |kind: &&Kind| **kind != Kind::Experience;
    let kinds: Vec<Kind> = Kind::ALL.iter().filter(is_written).copied().collect();
    let main = html! {
        h1 { "Write a note" }
        @if let Some(error) = failure {
            p.message { "Nothing was saved: " (clean(error.message())) }
        }
        @if visit.is_read_only { p { "This page is read-only: use " code { "anamnesis open" } " in a terminal." } }
        @else {
            form.editor method="post" action="/notes/write" {
                (inputs(fields, &kinds))
                (project_field(visit, &visit.index()?, key)?)
                p.hint { "A project's notes come up in its sessions; those of " code { (GLOBAL) } " in all." }
                p.actions { button.main { "Save" } a.button href="/notes" { "Cancel" } }
            }
        }
    };
    Ok(layout::page(visit, "Write a note", &main))
}

/// Writes a new note.
pub(crate) fn write(visit: &Visit) -> Answered {
    let context = &visit.context;
    let fields = Fields::from_form(&visit.form, Fields::empty());
    let key = context.key_to_write(visit.form.get("project"))?;
    // Not `visit.index()`: saving needs the write lock, which the operation gives back.
    let written = fields
        .draft(key.clone())
        .and_then(|draft| written::write(context, context.index()?, draft, "write", &[], false));
    match written {
        Ok(written) => {
            let is_new = written.decision.is_none_or(|decision| decision == "novel");
            let word = if is_new { "written" } else { "repeated" };
            // Not its own page, which an undo removes.
            Ok(layout::done("/notes", word, written.batch))
        }
        Err(error) => new_form(visit, &fields, &key, Some(&error)),
    }
}

/// Identifies the text that a form was made from.
pub(crate) fn version(note: &Note) -> String {
    let tags = note.tags.join("\n");
    text_hash(&format!("{}\n{}\n{tags}", note.title, note.body))
}

/// Saves the edited note, unless it changed meanwhile.
pub(crate) fn save(visit: &Visit) -> Answered {
    let context = &visit.context;
    let index = visit.index()?;
    let entry = entry(visit, &index)?;
    let id = entry.id().to_string();
    let path = operation::target(context, &index, &id, false)?;
    let stored = context.notes.read(path)?;
    let note = stored.note();
    let fields = Fields::from_form(&visit.form, Fields::from_note(&note));
    if visit.form.get("before") != Some(version(&note).as_str()) || !stored.whole {
        return Ok(conflict(visit, &note, &fields));
    }
    let (change, now) = (fields.change(&note)?, context.environment.now);
    let apply = |note: &mut Note| change.apply(note, now);
    let written = written::change(context, index, &entry, "edit", false, apply)?;
    let address = visit.back(&format!("/note/{}", path.id));
    let done = if written.is_changed { "saved" } else { "same" };
    Ok(layout::done(&address, done, written.batch))
}

/// Shows the edited text as it would look. Nothing is saved.
pub(crate) fn preview(visit: &Visit) -> Answered {
    let index = visit.index()?;
    let entry = entry(visit, &index)?;
    let note = visit.context.notes.read(entry.path)?.note();
    let fields = Fields::from_form(&visit.form, Fields::from_note(&note));
    let main = html! {
        h1 { "Preview" }
        p.hint { "Nothing is saved yet." }
        article id={ "preview-" (note.id) } class="preview" {
            h2 { bdi { (line(&fields.title)) } }
            div.text { (markdown::render(&visit.context, &fields.body)) }
        }
        h2 { "Edit" }
        @if !visit.is_read_only {
            (form_of(&note, &fields, &visit.back(&format!("/note/{}", note.id))))
        }
    };
    Ok(layout::page(visit, "Preview", &main))
}

/// The page of a note that changed while the form was open: what is there now, and what was typed.
fn conflict(visit: &Visit, note: &Note, fields: &Fields) -> PageResponse {
    let main = html! {
        h1 { "The note changed while you edited it" }
        p.message { "Nothing was saved. Below is your text; save it to replace the text of now." }
        h2 { "Now" }
        div.text { (markdown::render(&visit.context, &note.body)) }
        h2 { "Your text" }
        (form_of(note, fields, &visit.back("/notes")))
    };
    layout::page(visit, "Not saved", &main)
}
