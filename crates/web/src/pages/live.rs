//! The sessions of now: each prompt, what was injected or held back, and why.

use anamnesis_app::{
    context::Context,
    format::{count, shorten},
    why::{InjectionMoment, ReceivedNotes},
};
use anamnesis_session::event::PromptKind;
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::{Evidence, Given, INHERITED, Journal, SUGGESTION, Session, StoredPrompt},
};
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};

use crate::{
    layout::{self, ago_ms, note_link},
    visit::{Answered, Visit},
};

/// How many sessions are looked at, shown, and how many of their prompts are.
const MAX_LISTED: usize = 30;
const MAX_SHOWN: usize = 5;
const MAX_PROMPTS: usize = 8;

/// How many notes that were held back are named.
const MAX_HELD: usize = 5;

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
) -> Result<Markup, anamnesis_app::Error> {
    let context = &visit.context;
    let now = context.environment.now;
    let index = Index::open(&context.home)?;
    let made = index.list(
        &Filter {
            session: Some(session.id.clone()),
            with_superseded: true,
            ..Filter::default()
        },
        MAX_SHOWN,
    )?;
    let prompts = journal.prompts(&session.id)?;
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
                bdi { (shorten(&one_line(&session.project), 60)) }
                " "
                @if is_running { span.chip.ok { "running" } } @else { span.chip { "ended" } }
            }
            div.facts {
                code { (received.short) }
                span { "started " (ago_ms(session.started_at, now)) }
                span { "last event " (ago_ms(session.seen_at, now)) }
                span { (anamnesis_app::format::counted(session.prompts, "prompt")) }
                span { (anamnesis_app::format::counted(session.tool_events, "tool event")) }
            }
            @if !made.is_empty() { (notes_made(&made)) }
            ol.prompts {
                @for (prompt, moments) in &shown {
                    li {
                        (prompt_line(prompt, context))
                        div.facts { span { "prompt " (prompt.number) } (ago_ms(prompt.at, now)) }
                        @for moment in moments { (moment_of(&received, moment)) }
                        @if moments.is_empty() {
                            p.hint { "Nothing was searched for." }
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

fn prompt_line(prompt: &StoredPrompt, context: &Context) -> Markup {
    html! {
        p.prompt {
            @match &prompt.text {
                Some(text) => {
                    bdi { (shorten(&one_line(&context.printable(text)), 300)) }
                    @if prompt.kind != PromptKind::Person { " " span.chip { (prompt.kind.as_str()) } }
                }
                None => { em { "private, or without text" } }
            }
        }
    }
}

fn moment_of(received: &ReceivedNotes<'_>, moment: &InjectionMoment<'_>) -> Markup {
    let silence = moment
        .run
        .map(|run| run.reason.as_str())
        .unwrap_or_default();
    let held = moment
        .run
        .map(|run| run.held.as_slice())
        .unwrap_or_default();
    html! {
        div.moment {
            @if moment.lane != "start" { h3 { (occasion(moment)) } }
            @if moment.given.is_empty() && !silence.is_empty() {
                p.hint { "Nothing was injected: " (clean(silence)) }
            }
            ul.given {
                @for given in &moment.given { (given_item(received, moment, given)) }
            }
            @if !held.is_empty() {
                details {
                    summary { (count(held.len(), "note")) " held back" }
                    ul.given {
                        @for held in held.iter().take(MAX_HELD) {
                            li {
                                (title_of(received, &held.note))
                                div.facts {
                                    span { (clean(&held.reason)) }
                                    (evidence(Some(&held.evidence), moment))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// When notes were injected, in words.
fn occasion(moment: &InjectionMoment<'_>) -> String {
    match moment.lane {
        INHERITED => "In its history, before it was forked".to_owned(),
        "arrivals" => "Arrived from other machines".to_owned(),
        "prompt" => "For the prompt".to_owned(),
        "agent" => "For a subagent".to_owned(),
        SUGGESTION => "Suggested to Claude".to_owned(),
        "tool" => "Warning before a tool".to_owned(),
        "failure" => "After a failure".to_owned(),
        lane => one_line(lane),
    }
}

fn given_item(received: &ReceivedNotes<'_>, moment: &InjectionMoment<'_>, given: &Given) -> Markup {
    html! {
        li {
            @if given.is_of_note() { (title_of(received, &given.note)) }
            div.facts {
                span { (clean(&given.reason)) }
                (evidence(given.evidence.as_ref(), moment))
                @if given.level == "name" { span.chip { "title only" } }
                @if received.has_changed(given) { span.chip.warn { "changed since" } }
            }
        }
    }
}

fn title_of(received: &ReceivedNotes<'_>, note: &str) -> Markup {
    html! {
        @match received.entry(note) {
            Some(entry) => { (note_link(&entry)) }
            None => { span.title { "#" (one_line(note)) " is no longer there" } }
        }
    }
}

fn evidence(evidence: Option<&Evidence>, moment: &InjectionMoment<'_>) -> Markup {
    let floor = moment.run.map_or(0.0, |run| run.floor);
    html! {
        @if let Some(evidence) = evidence {
            @if !evidence.matched.is_empty() {
                span.matched { "has " (one_line(&evidence.matched.join(", "))) }
            }
            span { (format!("score {:.2}, needed {floor:.2}", evidence.score)) }
        }
    }
}
