//! The recorded sessions, newest first.

use anamnesis_app::{
    Error,
    format::{counted, shorten},
    session as operation,
};
use anamnesis_note::{id::NoteId, note::State};
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::{Journal, Session},
};
use anamnesis_text::clean::one_line;
use maud::{Markup, html};

use super::moment::session_path;
use crate::{
    layout::{self, ago_ms, choice, line},
    visit::{Answered, Visit},
};

/// How many sessions a page lists.
const PAGE: usize = 50;

pub(crate) fn show(visit: &Visit) -> Answered {
    let project = visit.query.get("project");
    let page = layout::page_number(&visit.query);
    let start = (page - 1) * PAGE;
    let mut total = 0;
    let mut rows = Vec::new();
    let index = visit.index()?;
    if let Some(journal) = &visit.context.records()? {
        total = journal.count_sessions(project)?;
        let sessions = journal.sessions(project, start + PAGE)?;
        for session in sessions.iter().skip(start) {
            rows.push(row(visit, journal, &index, session)?);
        }
    }
    let projects = index.counts()?.by_project.into_keys();
    let projects = projects.map(|key| (key.clone(), line(&key)));
    let main = html! {
        h1 { "Sessions" }
        @if total > 0 || project.is_some() {
            form.filters method="get" action="/sessions" data-search="sessions" {
                (choice("project", "Project", "All projects", projects, project))
                noscript { button { "Show" } }
            }
        }
        section id="sessions" data-live="journal" aria-label="Sessions" {
            @if total > 0 {
                p.hint role="status" { (layout::amount(total, "session", page, PAGE)) }
            }
            @if rows.is_empty() {
                section.card {
                    h2 { "No session was recorded" }
                    p { "Sessions of Claude Code appear here with their prompts, tools, failures and
                        injected notes." }
                }
            } @else {
                ol.notes { @for row in &rows { (row) } }
            }
            (layout::pager(visit, page, page * PAGE < total))
        }
    };
    Ok(layout::page(visit, "Sessions", &main))
}

/// Returns the title of a session and its note. Without a note, the first prompt is the title.
pub(crate) fn titled(
    visit: &Visit,
    journal: &Journal,
    index: &Index,
    session: &Session,
) -> Result<(String, Option<Entry>), Error> {
    let note = index.get(NoteId::of_session(&session.id))?;
    let note = note.filter(|entry| entry.state != State::Forgotten);
    let mut prompt = session.first_prompt.clone();
    if prompt.is_none() && note.is_none() {
        // Only commands were sent, or notifications.
        let prompts = journal.prompts(&session.id)?;
        prompt = prompts.into_iter().find_map(|prompt| prompt.text);
    }
    let title = match (&note, &prompt) {
        (Some(entry), _) => line(&entry.title),
        (None, Some(prompt)) => one_line(&visit.context.printable(prompt)),
        (None, None) => format!("Session {}", operation::short(journal, session)?),
    };
    Ok((shorten(&title, 140), note))
}

fn row(
    visit: &Visit,
    journal: &Journal,
    index: &Index,
    session: &Session,
) -> Result<Markup, Error> {
    let now = visit.context.environment.now;
    let (title, note) = titled(visit, journal, index, session)?;
    Ok(html! {
        li.note {
            a.title href=(session_path(&session.id)) { bdi { (title) } }
            @if let Some(entry) = &note { (layout::telling(visit, entry, &title)) }
            div.facts {
                (state(session))
                span { bdi { (line(&session.project)) } }
                (ago_ms(session.seen_at, now))
                span { (counted(operation::prompts(journal, session)?, "prompt")) }
                span { (counted(session.tool_events, "tool event")) }
                span { (operation::note_label(session, index)?) }
                @if let Some(host) = &session.host { span { (line(host)) } }
            }
        }
    })
}

/// The notes of a session, replaced ones included.
pub(crate) fn notes_of(index: &Index, session: &str, most: usize) -> Result<Vec<Entry>, Error> {
    let filter = Filter {
        session: Some(session.to_owned()),
        with_superseded: true,
        ..Filter::default()
    };
    Ok(index.list(&filter, most)?)
}

/// Whether a session is open, and how it ended.
pub(crate) fn state(session: &Session) -> Markup {
    html! { span.chip.ok[!session.is_completed()] { (operation::state(session)) } }
}
