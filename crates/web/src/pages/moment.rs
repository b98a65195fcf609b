//! Shows what was injected at one moment of a session, and why: shared by Live, Session and Why.

use anamnesis_app::{
    context::Context,
    format::{count, shorten},
    why::{InjectionMoment, ReceivedNotes, score},
};
use anamnesis_session::event::PromptKind;
use anamnesis_store::journal::{
    COMMIT, Evidence, FILE, Given, INHERITED, POINTER, SUGGESTION, StoredPrompt,
};
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};

use crate::layout::note_link;

/// How many notes that were held back are named.
const MAX_HELD: usize = 5;

/// Returns the address of the page that shows what was injected at a moment.
pub(crate) fn why_path(session: &str, at: i64) -> String {
    format!("/why?session={}&at={at}", encoded(session))
}

/// Returns the address of a session's page.
pub(crate) fn session_path(session: &str) -> String {
    format!("/session?id={}", encoded(session))
}

/// Returns a value as a part of an address.
pub(crate) fn encoded(value: &str) -> String {
    form_urlencoded::byte_serialize(value.as_bytes()).collect()
}

/// A prompt as one line.
pub(crate) fn prompt_line(prompt: &StoredPrompt, context: &Context) -> Markup {
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

/// The notes that were injected or held back at one moment, and why.
pub(crate) fn moment_of(received: &ReceivedNotes<'_>, moment: &InjectionMoment<'_>) -> Markup {
    let silence = moment.run.map_or("", |run| run.reason.as_str());
    let held = moment.run.map_or(&[][..], |run| run.held.as_slice());
    html! {
        div.moment {
            h3 {
                (occasion(moment))
                @if !moment.given.is_empty() {
                    " " a.more href=(why_path(&received.session.id, moment.at)) { "exact text" }
                }
            }
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
                                    (evidence(Some(&held.evidence), moment, ""))
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
pub(crate) fn occasion(moment: &InjectionMoment<'_>) -> String {
    match moment.lane {
        INHERITED => "In its history, before it was forked".to_owned(),
        "arrivals" => "Arrived from other machines".to_owned(),
        "prompt" => "For the prompt".to_owned(),
        "start" => "At the start".to_owned(),
        "agent" => "For a subagent".to_owned(),
        COMMIT => "From the project's history".to_owned(),
        SUGGESTION => "Suggested to Claude".to_owned(),
        "tool" => "Warning before a tool".to_owned(),
        FILE => "At a file".to_owned(),
        "failure" => "After a failure".to_owned(),
        lane => one_line(lane),
    }
}

pub(crate) fn given_item(
    received: &ReceivedNotes<'_>,
    moment: &InjectionMoment<'_>,
    given: &Given,
) -> Markup {
    html! {
        li {
            @if given.is_of_note() { (title_of(received, &given.note)) }
            @if given.level == COMMIT { span.title { (one_line(&received.commit(given))) } }
            div.facts {
                span { (clean(&given.reason)) }
                (evidence(given.evidence.as_ref(), moment, &given.level))
                @if given.level == POINTER { span.chip { "pointer" } }
                @if given.level == "name" { span.chip { "title only" } }
                @if received.has_changed(given) { span.chip.warn { "changed since" } }
            }
        }
    }
}

/// The title of an injected note.
pub(crate) fn title_of(received: &ReceivedNotes<'_>, note: &str) -> Markup {
    html! {
        @match received.entry(note) {
            Some(entry) => { (note_link(&entry)) }
            None => { span.title { "#" (one_line(note)) " is no longer there" } }
        }
    }
}

fn evidence(evidence: Option<&Evidence>, moment: &InjectionMoment<'_>, level: &str) -> Markup {
    let floor = moment.run.map_or(0.0, |run| run.floor);
    html! {
        @if let Some(evidence) = evidence {
            @if !evidence.matched.is_empty() {
                span.matched { "has " (one_line(&evidence.matched.join(", "))) }
            }
            // A file is found by its path, and a commit by its words, without a score.
            @if ![COMMIT, FILE].contains(&moment.lane) {
                span { (score(evidence, floor, level)) }
            }
        }
    }
}
