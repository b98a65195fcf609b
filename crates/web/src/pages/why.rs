//! Shows what a session got, byte for byte, and why; and what a prompt would get.

use anamnesis_app::{
    Error,
    dry_run::{Trial, Tried},
    format::{count, number, shorten},
    recall::Lane,
    why::{InjectionMoment, ReceivedNotes},
};
use anamnesis_store::{
    index::Index,
    journal::{Evidence, InjectedText, Journal, Session},
};
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};

use super::{
    moment::{encoded, moment_of, occasion, session_path, why_path},
    sessions::titled,
};
use crate::{
    layout::{self, ago_ms, choice, line, missing, note_link},
    visit::{Answered, Visit},
};

/// How many injections are listed.
const MAX_LISTED: usize = 30;

/// The characters of a text's hash that are shown.
const HASH: usize = 16;

pub(crate) fn show(visit: &Visit) -> Answered {
    let journal = visit.context.records()?;
    if let Some(session) = visit.query.get("session") {
        return one(visit, journal, session);
    }
    let index = visit.index()?;
    let main = html! {
        h1 { "Why" }
        p.hint { "The exact texts that your sessions got, and why. Or try a prompt." }
        section { h2 { "Try a prompt" } (form(visit, &index)?) }
        section id="injected" data-live="journal" {
            h2 { "Injected last" }
            @match journal {
                Some(journal) => { (last(visit, &journal, &index)?) }
                None => { p { "No session was recorded yet." } }
            }
        }
    };
    Ok(layout::page(visit, "Why", &main))
}

fn form(visit: &Visit, index: &Index) -> Result<Markup, Error> {
    let projects = index.counts()?.by_project.into_keys();
    let projects = projects.map(|key| (key.clone(), line(&key)));
    let form = &visit.form;
    Ok(html! {
        form method="post" action="/why/try" {
            label { span { "Prompt. It is not recorded." }
                textarea name="text" rows="4" required { "\n" (form.get("text").unwrap_or_default()) }
            }
            div.fields {
                (choice("project", "In the project", "That of this folder", projects, form.get("project")))
                (choice("lane", "As", "a prompt", [("agent".to_owned(), "a subagent's task".to_owned())],
                    form.get("lane")))
            }
            p.actions { button.main { "Try it" } }
        }
    })
}

/// The last injections, by session.
fn last(visit: &Visit, journal: &Journal, index: &Index) -> Result<Markup, Error> {
    let mut sessions: Vec<(String, Vec<(i64, String)>)> = Vec::new();
    for (session, at, event) in journal.last_injections(MAX_LISTED)? {
        match sessions.iter_mut().find(|(id, _)| *id == session) {
            Some((_, injections)) => injections.push((at, event)),
            None => sessions.push((session, vec![(at, event)])),
        }
    }
    let mut cards = Vec::new();
    for (id, injections) in &sessions {
        if let Some(session) = journal.session(id)? {
            cards.push(card(visit, journal, index, &session, injections)?);
        }
    }
    Ok(html! {
        @if cards.is_empty() { p { "Nothing was injected yet." } }
        @for card in &cards { (card) }
    })
}

/// The injections of one session, each with its prompt and the number of notes.
fn card(
    visit: &Visit,
    journal: &Journal,
    index: &Index,
    session: &Session,
    injections: &[(i64, String)],
) -> Result<Markup, Error> {
    let (title, _) = titled(visit, journal, index, session)?;
    let prompts = journal.prompts(&session.id)?;
    let given = journal.given(&session.id)?;
    let now = visit.context.environment.now;
    Ok(html! {
        section.card {
            h3 { a.title href=(session_path(&session.id)) { bdi { (title) } } }
            div.facts { span { bdi { (line(&session.project)) } } }
            ul.links {
                @for (at, event) in injections {
                    @let notes = given.iter().filter(|given| given.at == *at && given.is_of_note());
                    @let prompt = prompts.iter().rfind(|prompt| prompt.at <= *at);
                    @let text = prompt.and_then(|prompt| prompt.text.as_ref());
                    li {
                        a.title href=(why_path(&session.id, *at)) {
                            (event_name(event))
                            @if let Some(text) = text.filter(|_| event != "SessionStart") {
                                ": " bdi { (shorten(&one_line(&visit.context.printable(text)), 120)) }
                            }
                        }
                        span.hint { (count(notes.count(), "note")) ", " (ago_ms(*at, now)) }
                    }
                }
            }
        }
    })
}

/// A client's event, in words.
fn event_name(event: &str) -> String {
    match event {
        "SessionStart" => "Start of a session".to_owned(),
        "UserPromptSubmit" => "Prompt".to_owned(),
        "SubagentStart" => "Start of a subagent".to_owned(),
        "PreToolUse" => "Before a tool".to_owned(),
        "PostToolUseFailure" | "PostToolUse" => "After a tool".to_owned(),
        other => line(other),
    }
}

/// Everything that was injected into a session at one time.
fn one(visit: &Visit, journal: Option<Journal>, session: &str) -> Answered {
    let context = &visit.context;
    let at: i64 = visit
        .query
        .get("at")
        .and_then(|at| at.parse().ok())
        .unwrap_or_default();
    let index = visit.index()?;
    let journal = journal.ok_or_else(|| missing("session"))?;
    let session = journal.session(session)?;
    let session = session.ok_or_else(|| missing("session"))?;
    let texts = journal.injected_texts(&session.id)?;
    let texts: Vec<_> = texts.into_iter().filter(|text| text.at == at).collect();
    let received = ReceivedNotes::load(context, &journal, index, session)?;
    let moments = received.moments();
    let moments: Vec<_> = moments.iter().filter(|moment| moment.at == at).collect();
    if texts.is_empty() && moments.is_empty() {
        return Err(missing("injection"));
    }
    let main = html! {
        p { a href=(session_path(&received.session.id)) { "← The session" } }
        h1 { "What was injected, and why" }
        div.facts {
            (ago_ms(at, context.environment.now))
            span { "in " bdi { (line(&received.session.project)) } }
            span { "session " code { (received.short) } }
        }
        @for text in &texts { (exact(text)) }
        @if texts.is_empty() {
            p.message { "The exact text of this moment is not kept: it is older than this version, or
                expired." }
        }
        @for moment in &moments { (reasons(&received, moment)) }
    };
    Ok(layout::page(visit, "Why", &main))
}

/// A text exactly as the client received it.
fn exact(text: &InjectedText) -> Markup {
    html! {
        section {
            h2 { (event_name(&text.event)) @if !text.agent.is_empty() { ", for a subagent" } }
            div.facts {
                span { (count(text.text.len(), "byte")) }
                span { "about " (number(text.text.chars().count().div_ceil(4))) " tokens" }
                span { "SHA-256 " code { (text.hash.get(..HASH).unwrap_or_default()) } }
            }
            pre.exact tabindex="0" { "\n" (clean(&text.text)) }
        }
    }
}

fn reasons(received: &ReceivedNotes<'_>, moment: &InjectionMoment<'_>) -> Markup {
    html! {
        section.card {
            (moment_of(received, moment))
            @if let Some(run) = moment.run {
                p.hint {
                    (count(run.terms, "word")) " of the query were searched for in "
                    (count(run.searched, "note")) "; the threshold was " (format!("{:.2}", run.floor)) "."
                }
            }
            @let notes = moment.given.iter().filter(|given| given.is_of_note());
            @let notes: Vec<_> = notes.collect();
            @if !notes.is_empty() {
                details {
                    summary { "Versions of the notes (" (occasion(moment)) ")" }
                    ul.links {
                        @for given in &notes {
                            li {
                                code { "#" (line(&given.note)) } " text "
                                code { (line(given.hash.get(..HASH).unwrap_or_default())) } " "
                                a href={ "/note/" (encoded(&given.note)) "/history" } { "versions" }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Shows what a prompt would get. Nothing is recorded.
pub(crate) fn try_prompt(visit: &Visit) -> Answered {
    let context = &visit.context;
    let form_fields = &visit.form;
    let trial = Trial {
        text: form_fields.get("text").unwrap_or_default(),
        lane: match form_fields.get("lane") {
            Some("agent") => Lane::Agent,
            _ => Lane::Prompt,
        },
        project: form_fields.get("project"),
        session: None,
    };
    let index = visit.index()?;
    let tried = trial.run(context)?;
    let main = html! {
        p { a href="/why" { "← Why" } }
        h1 { "Try a prompt" }
        (form(visit, &index)?)
        section id="tried" { (result(&tried, &index)?) }
    };
    Ok(layout::page(visit, "Try a prompt", &main))
}

fn result(tried: &Tried, index: &Index) -> Result<Markup, Error> {
    let answer = tried.outcome.as_ref().ok();
    let shown = answer.iter().flat_map(|answer| &answer.shown);
    let shown = shown.map(|it| (Some(it.note), true, it.reason, it.evidence.as_ref()));
    let held = answer.iter().flat_map(|answer| &answer.outcome.held);
    let held = held.map(|it| (it.note.parse().ok(), false, &*it.reason, Some(&it.evidence)));
    let mut candidates = Vec::new();
    for (id, is_given, reason, evidence) in shown.chain(held) {
        let entry = id.map(|id| index.get(id)).transpose()?.flatten();
        candidates.push((entry, is_given, reason, evidence));
    }
    Ok(html! {
        h2 { "In " bdi { (line(&tried.project.key)) } }
        @match tried.silence() {
            Some(reason) => { p.message { "Nothing would be injected: " (one_line(reason)) } }
            None => {
                pre.exact tabindex="0" { "\n" (clean(&tried.block())) }
            }
        }
        @if let Some(answer) = answer {
            p.hint { (count(answer.run.terms, "word")) " searched for in " (count(answer.run.searched, "note"))
                "; the threshold is " (format!("{:.2}", answer.run.floor)) "." }
        }
        @if !candidates.is_empty() {
            h3 { "Candidates" }
            ol.notes {
                @for (entry, is_given, reason, evidence) in &candidates {
                    li.note {
                        @match entry {
                            Some(entry) => { (note_link(entry)) }
                            None => { "a note that is no longer there" }
                        }
                        div.facts {
                            @if *is_given { span.chip.ok { "injected" } } @else { span.chip { "held back" } }
                            span { (one_line(reason)) }
                            @if let Some(evidence) = evidence { (scores(evidence)) }
                        }
                    }
                }
            }
        }
        @if tried.is_behind {
            p.hint { "Some notes are not in the index yet." }
        }
    })
}

fn scores(evidence: &Evidence) -> Markup {
    html! {
        @if !evidence.matched.is_empty() {
            span.matched { "has " (one_line(&evidence.matched.join(", "))) }
        }
        @if let Some(similarity) = evidence.similarity {
            span { (format!("similar meaning {similarity:.2}")) }
        }
        span { (format!("score {:.2}, has {:.0} % of what is asked", evidence.score, 100.0 * evidence.coverage)) }
    }
}
