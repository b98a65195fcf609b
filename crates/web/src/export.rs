//! Exports notes as one file that a browser shows and searches without a server.

use std::{collections::BTreeSet, io::Write};

use anamnesis_app::{
    Error,
    context::Context,
    export::{ExportReport, each_note, not_written},
    format::count,
};
use anamnesis_note::note::Note;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::{guard, layout::line, markdown};

const STYLE: &str = include_str!("../assets/viewer.css");
const SCRIPT: &str = include_str!("../assets/export.js");

/// The rules of this page alone. Closed notes are not laid out.
const LIST: &str = "main > details{padding:10px 16px;background:var(--card);\
    border:1px solid var(--line);border-radius:10px;margin-top:8px;content-visibility:auto;\
    contain-intrinsic-size:auto 72px}main > details > summary{color:var(--text)}";

/// Writes the notes of a project, or all, as one page. It loads nothing, and nothing in a note can
/// run: the page's policy allows only its own style and script.
pub fn export_html(
    context: &Context,
    project: Option<&str>,
    out: &mut impl Write,
) -> Result<ExportReport, Error> {
    let mut notes: Vec<(String, String)> = Vec::new();
    let mut projects = BTreeSet::new();
    let report = each_note(context, project, |_, note, _| {
        projects.insert(note.project.clone());
        let written = note.updated_at.clone();
        notes.push((written, item(context, note).into_string()));
        Ok(())
    })?;
    notes.sort_by(|(a, _), (b, _)| b.cmp(a));
    // A note cannot know this value, so it cannot make a style or a script of its own.
    let nonce = guard::secret().map_err(|error| not_written(std::io::Error::other(error)))?;
    let head = head(&nonce, &projects, notes.len()).into_string();
    let (start, end) = head.split_once(PLACE).unwrap_or((&head, ""));
    let parts = std::iter::once(start).chain(notes.iter().map(|(_, note)| note.as_str()));
    for part in parts.chain([end]) {
        out.write_all(part.as_bytes()).map_err(not_written)?;
    }
    Ok(report)
}

/// Where the notes are in the frame.
const PLACE: &str = "<!--notes-->";

fn head(nonce: &str, projects: &BTreeSet<String>, notes: usize) -> Markup {
    let policy = format!(
        "default-src 'none'; style-src 'nonce-{nonce}'; script-src 'nonce-{nonce}'; base-uri 'none'; \
         form-action 'none'"
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="referrer" content="no-referrer";
                title { "Notes · Anamnesis" }
                style nonce=(nonce) { (PreEscaped(STYLE)) (PreEscaped(LIST)) }
            }
            body {
                main {
                    h1 { "Notes" }
                    // The script shows the form. Without it, the notes are still here.
                    form.filters hidden role="search" {
                        label.wide { span { "Search" } input type="search" autocomplete="off"; }
                        label { span { "Project" }
                            select {
                                option value="" { "All projects" }
                                @for project in projects { option value=(line(project)) { (line(project)) } }
                            }
                        }
                    }
                    p.hint role="status" { (count(notes, "note")) }
                    (PreEscaped(PLACE))
                }
                script nonce=(nonce) { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn item(context: &Context, note: &Note) -> Markup {
    let day = note.updated_at.get(..10).unwrap_or_default();
    html! {
        details data-project=(line(&note.project)) {
            summary {
                span.kind { (note.kind().shown()) } " "
                strong { bdi { (line(&note.title)) } }
                div.facts {
                    span { bdi { (line(&note.project)) } }
                    span { (note.author()) }
                    span { (line(day)) }
                    @for tag in &note.tags { span.chip { (line(tag)) } }
                    span { "#" (note.id.short()) }
                }
            }
            div.text { (markdown::render(&context.printable(&note.body))) }
        }
    }
}
