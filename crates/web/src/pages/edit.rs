//! Editing a note in place: the form with its front matter, the preview, and saving.

use anamnesis_app::{Error, edit as operation, ops::written};
use anamnesis_note::{
    draft::NoteChange,
    note::{Kind, Note, Severity},
    trigger::Trigger,
};
use anamnesis_text::{
    clean::{clean, one_line},
    hash::text_hash,
};
use maud::{Markup, html};

use super::note::entry;
use crate::{
    answer::PageResponse,
    layout::{self, choice, line, missing},
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
            tags: note.tags.join(", "),
            asked: note.asked.join("\n"),
            when: note.when.join("\n"),
            severity: note.severity,
            instead: note.instead.clone().unwrap_or_default(),
        }
    }

    /// Reads what was typed. A field that the form does not have is as in the note.
    fn from_form(form: &Params, note: &Note) -> Self {
        let of_note = Self::from_note(note);
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

    /// Returns what differs from the note.
    fn change(&self, note: &Note) -> Result<NoteChange, Error> {
        let was = Self::from_note(note);
        let lines = |text: &str| -> Vec<String> {
            let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect()
        };
        let when = lines(&self.when);
        let when = when.iter().map(|line| {
            line.parse::<Trigger>()
                .map_err(|error| Error::usage(format!("trigger \"{}\": {error}", one_line(line))))
        });
        let when = when.collect::<Result<Vec<_>, _>>()?;
        let tags = self.tags.split(',').map(|tag| tag.trim().to_owned());
        let tags: Vec<String> = tags.filter(|tag| !tag.is_empty()).collect();
        let change = NoteChange {
            title: (self.title != was.title).then(|| self.title.clone()),
            body: (self.body.trim_end() != was.body.trim_end()).then(|| self.body.clone()),
            kind: (self.kind != was.kind).then_some(self.kind),
            tags: (tags != note.tags).then_some(tags),
            asked: (lines(&self.asked) != note.asked).then(|| lines(&self.asked)),
            when: (lines(&self.when) != note.when).then_some(when),
            severity: self.severity.filter(|_| self.severity != was.severity),
            instead: (self.instead.trim() != was.instead).then(|| self.instead.clone()),
            ..NoteChange::default()
        };
        Ok(change.fit()?)
    }
}

/// The form in which a note is edited. The hash in it tells whether the note changed meanwhile.
pub(crate) fn form_of(note: &Note, fields: &Fields, back: &str) -> Markup {
    let path = format!("/note/{}", note.id);
    let is_warning = fields.kind == Kind::Antipattern;
    let severities = Severity::ALL.iter();
    let severities = severities.map(|word| (word.to_string(), word.to_string()));
    html! {
        form.editor method="post" action={ (path) "/edit" } data-preview={ (path) "/preview" } {
            input type="hidden" name="before" value=(version(note));
            input type="hidden" name="back" value=(back);
            label { span { "Title" } input name="title" required value=(line(&fields.title)); }
            // HTML drops the first line break of a text area.
            label { span { "Text (Markdown)" }
                textarea name="body" rows="14" { "\n" (clean(&fields.body)) } }
            div.fields {
                label { span { "Kind" }
                    select name="kind" {
                        @for kind in Kind::ALL {
                            option value=(kind.shown()) selected[*kind == fields.kind] { (kind.shown()) }
                        }
                    }
                }
                label { span { "Tags" } input name="tags" value=(line(&fields.tags)); }
            }
            label { span { "Also found as: words or questions, one per line" }
                textarea name="asked" rows="2" { "\n" (clean(&fields.asked)) } }
            @if is_warning {
                label { span { "Warn at: triggers, one per line" }
                    textarea name="when" rows="3" { "\n" (clean(&fields.when)) } }
                div.fields {
                    (choice("severity", "Severity", "Not set", severities,
                        fields.severity.map(|it| it.to_string()).as_deref()))
                    label { span { "Instead" } input name="instead" value=(line(&fields.instead)); }
                }
            }
            p.actions {
                button { "Save" }
                button.plain formaction={ (path) "/preview" } { "Preview" }
            }
            div id={ "preview-" (note.id) } class="preview" {}
        }
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
    let Some(entry) = entry(visit, &index)? else {
        return Ok(missing(visit, "note"));
    };
    let id = entry.id().to_string();
    let path = operation::target(context, &index, &id, false)?;
    let stored = context.notes.read(path)?;
    let note = stored.note();
    let fields = Fields::from_form(&visit.form, &note);
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
    let Some(entry) = entry(visit, &index)? else {
        return Ok(missing(visit, "note"));
    };
    let note = visit.context.notes.read(entry.path)?.note();
    let fields = Fields::from_form(&visit.form, &note);
    let main = html! {
        h1 { "Preview" }
        p.hint { "Nothing is saved yet." }
        article id={ "preview-" (note.id) } class="preview" {
            h2 { bdi { (line(&fields.title)) } }
            div.text { (markdown::render(&visit.context.printable(&fields.body))) }
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
        div.text { (markdown::render(&visit.context.printable(&note.body))) }
        h2 { "Your text" }
        (form_of(note, fields, &visit.back("/notes")))
    };
    layout::page(visit, "Not saved", &main)
}
