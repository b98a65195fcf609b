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
use serde_json::json;

use crate::{guard, layout::line, markdown};

const STYLE: &str = include_str!("../assets/viewer.css");
const SCRIPT: &str = include_str!("../assets/export.js");

/// The rules of this page alone.
const LIST: &str = "#notes > details{padding:10px 16px;background:var(--card);\
    border:1px solid var(--line);border-radius:10px;margin-top:8px}#notes > details > summary{color:var(--text)}";

/// Writes the notes of a project, or all, as one page. It loads nothing, and nothing in a note can
/// run: the page's policy allows only its own style and script.
///
/// The notes are a JSON list of their project and their HTML. The script adds those that are looked at
/// to the page, because a browser takes seconds to read ten thousand notes as elements.
pub fn export_html(
    context: &Context,
    project: Option<&str>,
    out: &mut impl Write,
) -> Result<ExportReport, Error> {
    let mut notes: Vec<(String, [String; 2])> = Vec::new();
    let mut projects = BTreeSet::new();
    let report = each_note(context, project, |_, note, _| {
        projects.insert(note.project.clone());
        let html = item(context, note).into_string();
        notes.push((note.updated_at.clone(), [line(&note.project), html]));
        Ok(())
    })?;
    notes.sort_by(|(a, _), (b, _)| b.cmp(a));
    // A note cannot know this value, so it cannot make a style or a script of its own.
    let nonce = guard::secret::<32>().map_err(|error| not_written(std::io::Error::other(error)))?;
    let head = head(&nonce, &projects, notes.len()).into_string();
    let (start, end) = head.split_once(PLACE).unwrap_or((&head, ""));
    let mut write = |text: &str| out.write_all(text.as_bytes()).map_err(not_written);
    write(start)?;
    for (at, (_, note)) in notes.iter().enumerate() {
        write(if at == 0 { "[" } else { ",\n" })?;
        // Nothing in the list may look like the end of its element.
        write(&json!(note).to_string().replace('<', "\\u003c"))?;
    }
    write(if notes.is_empty() { "[]" } else { "]" })?;
    write(end)?;
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
                    noscript {
                        p.message {
                            "Your browser runs no scripts here. " code { "anamnesis export --markdown DIR" }
                            " writes files that need none."
                        }
                    }
                    div id="notes" {}
                    p.actions { button hidden id="more" { "Show more" } }
                }
                script type="application/json" id="list" { (PreEscaped(PLACE)) }
                script nonce=(nonce) { (PreEscaped(SCRIPT)) }
            }
        }
    }
}

fn item(context: &Context, note: &Note) -> Markup {
    let day = note.updated_at.get(..10).unwrap_or_default();
    html! {
        details {
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
