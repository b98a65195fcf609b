//! Importing other programs' memories, and making notes of earlier sessions: first what would be
//! written, then the notes as one change.

use std::path::PathBuf;

use anamnesis_app::{
    backfill::{self, BackfillReport, SessionFilter},
    format::{count, number, shorten},
    import::{self as operation, ImportReport, Request, Source},
};
use anamnesis_session::event::Host;
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};

use crate::{
    answer::PageResponse,
    layout::{self, SURE, button, choice, line},
    visit::{Answered, Visit},
};

const PATH: &str = "/import";

/// The name that stands for every source in its usual place.
const AUTO: &str = "auto";

/// How many sessions, projects and reasons are listed.
const MAX_LISTED: usize = 30;

#[expect(
    clippy::unnecessary_wraps,
    reason = "the table of addresses takes functions that may fail"
)]
pub(crate) fn show(visit: &Visit) -> Answered {
    let main = html! {
        h1 { "Import" }
        section.card {
            h2 { "Earlier sessions" }
            p { "Makes a note of each session from before Anamnesis was installed, from the program's own
                transcripts. You see the list first. Sessions of:" }
            @if !visit.is_read_only {
                div.actions {
                    @for (name, label, _) in backfill::HOSTS {
                        (button("/import/sessions", &[("from", name)], label))
                    }
                }
            }
        }
        section.card {
            h2 { "Another program's memory" }
            p { "The source is only read. You see first what would be imported, and the import is one
                change, which can be undone." }
            @if !visit.is_read_only { (form(visit)) }
        }
        @if visit.is_read_only { p.hint { "This viewer cannot change notes, so it cannot import." } }
    };
    Ok(layout::page(visit, "Import", &main))
}

fn form(visit: &Visit) -> Markup {
    let sources = operation::source_names();
    let sources = sources.map(|name| (name.to_owned(), name.to_owned()));
    let form = &visit.form;
    html! {
        form method="post" action="/import/notes" {
            div.fields {
                (choice("source", "Source", "All in their usual places", sources, form.get("source")))
                label { span { "File or folder, if it is elsewhere" }
                    input name="path" value=[form.get("path")] autocomplete="off" spellcheck="false"; }
                label { span { "Project of notes without one" }
                    input name="project" value=[form.get("project")] autocomplete="off"; }
            }
            label.check { input type="checkbox" name="conversations" value="yes"
                    checked[form.get("conversations").is_some()];
                span { "Conversations, too" } }
            p.actions { button { "Show what would be imported" } }
        }
    }
}

/// Lists what an import would add; once it is confirmed, adds it.
pub(crate) fn notes(visit: &Visit) -> Answered {
    let (context, form) = (&visit.context, &visit.form);
    let is_applied = visit.is_confirmed();
    let request = Request {
        path: form.get("path").map(PathBuf::from),
        project: form.get("project").map(str::to_owned),
        with_conversations: form.get("conversations").is_some(),
        apply: is_applied,
        ..Request::default()
    };
    let name = form.get("source").unwrap_or(AUTO);
    let journal = anamnesis_app::bulk_change::open_store(context, is_applied)?;
    let sources = operation::open(context, name, &request)?;
    let mut reports = Vec::new();
    for source in &sources {
        let report = operation::run(context, journal.as_ref(), source, &request, |_| ())?;
        reports.push((source, report));
    }
    if is_applied {
        drop(context.index()?);
    }
    let new: usize = reports.iter().map(|(_, report)| report.new).sum();
    let title = if is_applied {
        "Imported"
    } else {
        "What would be imported"
    };
    let main = html! {
        p { a href=(PATH) { "← Import" } }
        h1 { (title) }
        @if reports.is_empty() {
            p { "No memory of another program is in its usual place. Name its file or folder." }
        }
        @for (source, report) in &reports { (one(visit, source, report, is_applied)) }
        @if new > 0 && !is_applied {
            form method="post" action=(visit.path) {
                @for (name, value) in &form.0 { input type="hidden" name=(name) value=(value); }
                input type="hidden" name=(SURE) value="yes";
                p.actions {
                    button { "Import " (count(new, "note")) }
                    a.button href=(PATH) { "Cancel" }
                }
            }
        } @else if is_applied {
            p { a href="/notes" { "All notes" } }
        } @else {
            section.card { h2 { "Another source" } (self::form(visit)) }
        }
    };
    Ok(layout::page(visit, title, &main))
}

fn one(visit: &Visit, source: &Source, report: &ImportReport, is_applied: bool) -> Markup {
    let skipped: usize = report.skipped.values().sum();
    html! {
        section.card {
            h2 { (source.tool()) }
            p.hint { code { (line(&visit.context.shown(source.path()))) } }
            dl {
                dt { "Found" } dd { (count(report.found, "record")) }
                dt { @if is_applied { "Imported" } @else { "New" } } dd { (count(report.new, "note")) }
                dt { "Here already" } dd { (number(report.same)) }
                dt { "Skipped" } dd {
                    (number(skipped))
                    @for (reason, amount) in &report.skipped { div.hint { (number(*amount)) " " (reason) } }
                }
                @if !report.projects.is_empty() {
                    dt { "Projects" } dd {
                        @for (project, amount) in report.projects.iter().take(MAX_LISTED) {
                            div { bdi { (line(project)) } ": " (number(*amount)) }
                        }
                    }
                }
            }
            @if !report.unknown.is_empty() {
                p.message {
                    "These names of the source have no project: "
                    @for (name, amount) in report.unknown.iter().take(MAX_LISTED) {
                        bdi { (line(name)) } " (" (number(*amount)) ") "
                    }
                    ". Name a project above to import their notes, too."
                }
            }
            @if !report.examples.is_empty() && !is_applied {
                h3 { "Some of them" }
                ul.links {
                    @for example in &report.examples {
                        li { span.relation { (example.kind.shown()) } " "
                            bdi { (shorten(&one_line(&visit.context.printable(&example.title)), 120)) } }
                    }
                }
            }
            @if report.is_held && report.new > 0 {
                p.hint { "They are found by search, and injected after you approve them in "
                    a href="/review" { "Review" } "." }
            }
            @if let Some(change) = report.change.filter(|_| is_applied) {
                div.actions {
                    (button("/undo", &[("change", &change.to_string()), ("back", PATH), (SURE, "yes")], "Undo the import"))
                }
            }
        }
    }
}

/// Lists the earlier sessions that have a transcript; once it is confirmed, writes their notes.
pub(crate) fn sessions(visit: &Visit) -> Answered {
    let is_applied = visit.is_confirmed();
    let environment = visit.context.environment.clone();
    let (context, journal) = backfill::open(environment, is_applied)?;
    let host = visit.form.get("from").and_then(backfill::host_named);
    let wanted = SessionFilter {
        host: host.unwrap_or(Host::ClaudeCode),
        project: None,
        since: None,
        unrecorded: false,
        limit: None,
    };
    let report = backfill::run(&context, journal.as_ref(), &wanted, is_applied, |_, _| ())?;
    if let (true, Some(change)) = (is_applied, report.change) {
        return Ok(layout::done("/notes", "backfilled", Some(change)));
    }
    Ok(found(visit, &report))
}

fn found(visit: &Visit, report: &BackfillReport) -> PageResponse {
    let sessions = &report.sessions;
    let mut skipped: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for transcript in &report.skipped {
        *skipped.entry(transcript.skip.reason().1).or_default() += 1;
    }
    let main = html! {
        p { a href=(PATH) { "← Import" } }
        h1 { "Earlier sessions" }
        @if let Some(failure) = &report.failure { p.message { (clean(failure.message())) } }
        @if sessions.is_empty() {
            p { "No earlier session can be noted." }
        } @else {
            p { (count(sessions.len(), "session")) " can be noted:" }
            ol.notes {
                @for session in sessions.iter().take(MAX_LISTED) {
                    li.note {
                        span.title { bdi { (shorten(&one_line(&session.title), 140)) } }
                        div.facts {
                            span { bdi { (line(&session.project)) } }
                            (layout::ago(session.ended, visit.context.environment.now))
                        }
                    }
                }
            }
            @if sessions.len() > MAX_LISTED {
                p.hint { "and " (number(sessions.len() - MAX_LISTED)) " more" }
            }
            form method="post" action=(visit.path) {
                input type="hidden" name=(SURE) value="yes";
                input type="hidden" name="from" value=[visit.form.get("from")];
                p.actions {
                    button { "Make " (count(sessions.len(), "note")) }
                    a.button href=(PATH) { "Cancel" }
                }
            }
        }
        @if !skipped.is_empty() {
            h2 { "Left out" }
            ul.links {
                @for (reason, amount) in &skipped { li { (number(*amount)) " " (reason) } }
            }
        }
    };
    layout::page(visit, "Earlier sessions", &main)
}
