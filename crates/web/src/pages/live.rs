//! The sessions of now: each prompt, what was injected or held back, and why.

use anamnesis_app::{
    Error,
    format::{count, counted, shorten},
    session as operation,
    why::ReceivedNotes,
};
use anamnesis_session::observe::Observation;
use anamnesis_store::{
    index::{Entry, Index},
    journal::{FailedTool, Journal, Session},
};
use anamnesis_text::clean::one_line;
use maud::{Markup, html};

use super::{
    moment::{moment_of, prompt_line, session_path},
    sessions::{notes_of, state, titled},
};
use crate::{
    layout::{self, ago_ms, line, note_link},
    visit::{Answered, Visit},
};

/// How many sessions are looked at, shown, and how many of their prompts are.
const MAX_LISTED: usize = 30;
const MAX_SHOWN: usize = 5;
const MAX_PROMPTS: usize = 8;

/// How many failures are looked at, and how many findings are shown.
const MAX_FAILURES: usize = 20;
const MAX_FOUND: usize = 5;

/// How long a session without an end counts as running, in milliseconds.
const RUNNING: i64 = 12 * 60 * 60 * 1000;

pub(crate) fn show(visit: &Visit) -> Answered {
    let journal = visit.context.records()?;
    let mut sessions = Vec::new();
    if let Some(journal) = &journal {
        // Brings the index up to date, which is then opened read-only for each session.
        drop::<Index>(visit.index()?);
        let now = visit.context.environment.now.timestamp_millis();
        let all = journal.sessions(None, MAX_LISTED)?;
        let is_running = |session: &Session| {
            !session.is_completed() && now.saturating_sub(session.seen_at) < RUNNING
        };
        let (running, ended): (Vec<_>, Vec<_>) = all.into_iter().partition(is_running);
        for session in running.into_iter().take(MAX_SHOWN) {
            sessions.push(one(visit, journal, session, true)?);
        }
        if let (true, Some(last)) = (sessions.is_empty(), ended.into_iter().next()) {
            sessions.push(one(visit, journal, last, false)?);
        }
    }
    let main = html! {
        h1 { "Live" }
        p.hint { "Sessions of Claude Code on this machine, as they happen." }
        div id="sessions" data-live="journal notes" {
            @if sessions.is_empty() {
                section.card {
                    h2 { "No session was recorded yet" }
                    p { "Start Claude Code in a project. The prompt and the injected notes appear
                        here while it works." }
                }
            }
            @for session in &sessions { (session) }
        }
    };
    Ok(layout::page(visit, "Live", &main))
}

fn one(
    visit: &Visit,
    journal: &Journal,
    session: Session,
    is_running: bool,
) -> Result<Markup, Error> {
    let context = &visit.context;
    let now = context.environment.now;
    let index = Index::open(&context.home)?;
    let made = notes_of(&index, &session.id, MAX_SHOWN)?;
    let prompts = journal.prompts(&session.id)?;
    let (title, _) = titled(visit, journal, &index, &session)?;
    let failures = journal.failed_tools(&session.id, MAX_FAILURES)?;
    let found = journal.observations(&session.id)?;
    let received = ReceivedNotes::load(context, journal, index, session)?;
    let session = &received.session;
    let moments = received.moments();
    // Each moment belongs to the prompt before it; those of the start have none.
    let before = prompts.first().map_or(i64::MAX, |first| first.at);
    let newest = prompts.iter().enumerate().rev().take(MAX_PROMPTS);
    let shown = newest.map(|(place, prompt)| {
        let end = prompts.get(place + 1).map_or(i64::MAX, |next| next.at);
        let of_prompt = moments
            .iter()
            .filter(|moment| moment.lane != "start" && (prompt.at..end).contains(&moment.at));
        (prompt, of_prompt.collect::<Vec<_>>())
    });
    let shown: Vec<_> = shown.collect();
    let at_start: Vec<_> = moments
        .iter()
        .filter(|moment| moment.lane == "start" || moment.at < before)
        .collect();
    Ok(html! {
        section.card.session {
            h2 {
                a.title href=(session_path(&session.id)) { bdi { (title) } } " "
                @if is_running { span.chip.ok { "running" } } @else { (state(session)) }
            }
            (facts(visit, journal, &received)?)
            @if !made.is_empty() { (notes_made(&made)) }
            (findings(visit, &found))
            ol.prompts {
                @for (prompt, moments) in &shown {
                    li {
                        (prompt_line(prompt, context))
                        div.facts { (ago_ms(prompt.at, now)) }
                        @for moment in moments { (moment_of(&received, moment)) }
                        @if moments.is_empty() {
                            p.hint { "Nothing was searched for." }
                        }
                        @for failure in failures.iter().filter(|it| it.prompt == Some(prompt.number)) {
                            (failed(visit, failure))
                        }
                    }
                }
                @if !at_start.is_empty() {
                    li {
                        @let injected = at_start.iter().map(|moment| moment.given.len()).sum();
                        details open[shown.is_empty()] {
                            summary { "At the start: " (count(injected, "note")) " injected" }
                            @for moment in &at_start { (moment_of(&received, moment)) }
                        }
                    }
                }
            }
        }
    })
}

/// Returns the known facts of a session, in one line.
fn facts(visit: &Visit, journal: &Journal, received: &ReceivedNotes<'_>) -> Result<Markup, Error> {
    let now = visit.context.environment.now;
    let session = &received.session;
    Ok(html! {
        div.facts {
            span { bdi { (line(&session.project)) } }
            code { (received.short) }
            span { "started " (ago_ms(session.started_at, now)) }
            span { "last event " (ago_ms(session.seen_at, now)) }
            span { (counted(operation::prompts(journal, session)?, "prompt")) }
            span { (counted(session.tool_events, "tool event")) }
        }
    })
}

/// Returns the fixes and findings of a session.
fn findings(visit: &Visit, found: &[Observation]) -> Markup {
    html! {
        @if !found.is_empty() {
            h3 { "Fixed or found out" }
            ul.links {
                @for observation in found.iter().rev().take(MAX_FOUND) {
                    li {
                        span.relation { (observation.kind.as_str()) } " "
                        bdi { (one_line(&visit.context.printable(&observation.title))) }
                    }
                }
            }
        }
    }
}

/// A tool call that failed.
fn failed(visit: &Visit, failure: &FailedTool) -> Markup {
    let error = failure.error.as_deref().unwrap_or_default();
    html! {
        div.failure {
            span.chip.bad { "failed" } " " strong { (one_line(&failure.tool)) } " "
            bdi { (shorten(&one_line(&visit.context.printable(error)), 200)) }
        }
    }
}

fn notes_made(made: &[Entry]) -> Markup {
    html! {
        h3 { "Notes of this session" }
        ul.links {
            @for entry in made {
                li { span.relation { (entry.shown_kind()) } " " (note_link(entry)) }
            }
        }
    }
}
