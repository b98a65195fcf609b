//! One session as a timeline: prompts, tools, failures, injected and used notes, and what it cost.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_app::{
    Error,
    format::{count, counted, milliseconds, number, shorten},
    session as operation,
    why::{InjectionMoment, ReceivedNotes},
};
use anamnesis_session::event::{Outcome, Privacy, Speaker};
use anamnesis_store::journal::{Contents, Journal, StoredEvent, StoredPrompt, StoredTurnEnd};
use anamnesis_text::clean::one_line;
use maud::{Markup, html};

use super::{
    moment::{moment_of, prompt_line, title_of},
    sessions::{notes_of, state, titled},
};
use crate::{
    layout::{self, ago_ms, line, missing, note_item},
    visit::{Answered, Visit},
};

/// How many prompts are shown, and how many tool events of each.
const MAX_PROMPTS: usize = 300;
const MAX_EVENTS: usize = 100;

/// How many notes of a session are listed.
const MAX_NOTES: usize = 20;

/// How much of an answer and of an error is shown, in characters.
const ANSWER: usize = 4_000;
const ERROR: usize = 600;

pub(crate) fn show(visit: &Visit) -> Answered {
    let context = &visit.context;
    let index = visit.index()?;
    let journal = context.records()?;
    let id = visit.query.get("id").unwrap_or_default();
    let contents = match &journal {
        Some(journal) => journal.contents(id)?,
        None => None,
    };
    let (Some(journal), Some(contents)) = (journal, contents) else {
        return Err(missing("session"));
    };
    let session = contents.session.clone();
    let received = ReceivedNotes::load(context, &journal, index, session)?;
    let timeline = Timeline {
        visit,
        contents: &contents,
        used: journal.used_in(id)?,
        moments: received.moments(),
        received: &received,
    };
    let made = notes_of(&received.index, id, MAX_NOTES)?;
    let (title, _) = titled(visit, &journal, &received.index, &contents.session)?;
    let main = html! {
        p { a href="/sessions" { "← Sessions" } }
        h1 { bdi { (title) } }
        div id="session" data-live="journal notes" {
            section.card { (head(visit, &contents, &journal, &received, &timeline.used)?) }
            @if !made.is_empty() {
                section {
                    h2 { "Notes of this session" }
                    ol.notes {
                        @for entry in &made { (note_item(visit, entry, &html! {})) }
                    }
                }
            }
            (found(visit, &contents))
            section { h2 { "Timeline" } (timeline.show()) }
        }
    };
    Ok(layout::page(visit, &title, &main))
}

fn head(
    visit: &Visit,
    contents: &Contents,
    journal: &Journal,
    received: &ReceivedNotes<'_>,
    used: &[(i64, String)],
) -> Result<Markup, Error> {
    let session = &contents.session;
    let now = visit.context.environment.now;
    let texts = journal.injected_texts(&session.id)?;
    let tokens: usize = texts
        .iter()
        .map(|it| it.text.chars().count().div_ceil(4))
        .sum();
    let failed = contents.events.iter().filter(|it| is_failed(it)).count();
    let asked = journal.asked_about(&session.id)?;
    let lasted = session.seen_at.saturating_sub(session.started_at);
    let used: BTreeSet<&str> = used.iter().map(|(_, note)| note.as_str()).collect();
    let shown = contents
        .shown
        .iter()
        .filter(|given| given.is_of_note())
        .count();
    Ok(html! {
        dl {
            dt { "State" } dd {
                (state(session)) " " (operation::note_label(session, &received.index)?)
                ", session " code { (received.short) }
                @if session.is_partial { " · its beginning was not recorded" }
                @if session.is_pruned { " · old records were removed" }
            }
            dt { "Project" } dd { bdi { (line(&session.project)) } }
            @for (name, value) in [("Branch", &contents.branch), ("Model", &contents.model), ("Program", &session.host)] {
                @if let Some(value) = value { dt { (name) } dd { (line(value)) } }
            }
            dt { "Time" } dd {
                "began " (ago_ms(session.started_at, now)) ", last event " (ago_ms(session.seen_at, now))
                ", " (duration(lasted))
            }
            dt { "Recorded" } dd {
                (counted(operation::prompts(journal, session)?, "prompt")) ", " (count(contents.events.len(), "tool event"))
                @if failed > 0 { ", " (number(failed)) " failed" }
            }
            dt { "Injected" } dd {
                (count(shown, "note")) @if !texts.is_empty() { ", about " (number(tokens)) " tokens" }
                ", " (number(used.len())) " used"
            }
            dt { "Summary" } dd {
                @match asked {
                    None => { "No model was asked about it." }
                    Some((at, None)) => { "Summarised by a model " (ago_ms(at, now)) ": one call." }
                    Some((at, Some(reason))) => {
                        "Asked " (ago_ms(at, now)) ": one call. The answer was not used: " (line(&reason))
                    }
                }
            }
        }
    })
}

/// A length of time in milliseconds, for people.
fn duration(time: i64) -> String {
    match time / 60_000 {
        0 => "under a minute".to_owned(),
        minutes @ 1..120 => format!("{minutes} min"),
        minutes => format!("{} h", minutes / 60),
    }
}

/// Returns the list of what was found out.
fn found(visit: &Visit, contents: &Contents) -> Markup {
    let printable = |text: &str| one_line(&visit.context.printable(text));
    html! {
        @if !contents.observations.is_empty() {
            section {
                h2 { "Found out" }
                ul.links {
                    @for observation in &contents.observations {
                        li {
                            span.relation { (observation.kind.as_str()) } " "
                            bdi { (printable(&observation.title)) }
                            @if !observation.subtitle.is_empty() {
                                " " span.hint { bdi { (printable(&observation.subtitle)) } }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Returns whether a tool call failed.
fn is_failed(stored: &StoredEvent) -> bool {
    stored.event.outcome == Outcome::Failed
}

/// The events of a session, by prompt.
struct Timeline<'a> {
    visit: &'a Visit,
    contents: &'a Contents,
    received: &'a ReceivedNotes<'a>,
    moments: Vec<InjectionMoment<'a>>,
    used: Vec<(i64, String)>,
}

impl Timeline<'_> {
    fn show(&self) -> Markup {
        let prompts = &self.contents.prompts;
        let first = prompts.first().map_or(i64::MAX, |prompt| prompt.at);
        let at_start = |moment: &&InjectionMoment<'_>| moment.lane == "start" || moment.at < first;
        let start: Vec<_> = self.moments.iter().filter(at_start).collect();
        html! {
            ol.prompts.card {
                @if !start.is_empty() {
                    li { @for moment in &start { (moment_of(self.received, moment)) } }
                }
                @for (place, prompt) in prompts.iter().enumerate().take(MAX_PROMPTS) {
                    @let end = prompts.get(place + 1).map_or(i64::MAX, |next| next.at);
                    li id={ "prompt-" (prompt.number) } { (self.prompt(prompt, end)) }
                }
                @if prompts.is_empty() { li { p.hint { "No prompt is recorded." } } }
            }
            @if prompts.len() > MAX_PROMPTS {
                p.hint { "The first " (number(MAX_PROMPTS)) " of " (number(prompts.len())) " prompts." }
            }
        }
    }

    fn prompt(&self, prompt: &StoredPrompt, end: i64) -> Markup {
        let of_prompt = |number: Option<i64>| number == Some(prompt.number);
        let events = self.contents.events.iter();
        let events: Vec<_> = events.filter(|it| of_prompt(it.prompt)).collect();
        let answers = self.contents.turn_ends.iter();
        let answers: Vec<_> = answers.filter(|it| of_prompt(it.prompt)).collect();
        let in_time = |at: i64| (prompt.at..end).contains(&at);
        let moments = self.moments.iter();
        let moments = moments.filter(|it| it.lane != "start" && in_time(it.at));
        let tasks = self.contents.delegations.iter().filter(|it| in_time(it.at));
        let used = self.used.iter().filter(|(turn, _)| *turn == prompt.number);
        let used: Vec<_> = used.map(|(_, note)| note).collect();
        html! {
            (prompt_line(prompt, &self.visit.context))
            div.facts {
                (ago_ms(prompt.at, self.visit.context.environment.now))
                @if prompt.privacy == Privacy::Part { span.chip { "a part was private" } }
            }
            @for moment in moments { (moment_of(self.received, moment)) }
            (self.tools(&events))
            @for task in tasks {
                details {
                    summary { "Task for " (line(&task.kind)) }
                    p.said { (self.text(&task.prompt, ANSWER)) }
                }
            }
            @if !used.is_empty() {
                p.hint { "Used: "
                    @for note in &used { (title_of(self.received, note)) " " } }
            }
            @for answer in &answers { (self.answer(answer)) }
        }
    }

    fn tools(&self, events: &[&StoredEvent]) -> Markup {
        let mut by_tool: BTreeMap<&str, usize> = BTreeMap::new();
        for stored in events {
            *by_tool.entry(&stored.event.tool).or_default() += 1;
        }
        let tools = by_tool
            .iter()
            .map(|(tool, count)| format!("{} {count}", line(tool)));
        let tools: Vec<String> = tools.collect();
        let failed = events.iter().filter(|stored| is_failed(stored));
        html! {
            @for stored in failed.take(MAX_EVENTS) {
                div.failure {
                    span.chip.bad { "failed" } " " strong { (line(&stored.event.tool)) }
                    @if let Some(error) = &stored.event.error {
                        pre { (self.text(error, ERROR)) }
                    }
                }
            }
            @if !events.is_empty() {
                details {
                    summary { (count(events.len(), "tool event")) ": " (tools.join(", ")) }
                    ul.given {
                        @for stored in events.iter().take(MAX_EVENTS) { (self.event(stored)) }
                    }
                    @if events.len() > MAX_EVENTS {
                        p.hint { "The first " (number(MAX_EVENTS)) " are shown." }
                    }
                }
            }
        }
    }

    fn event(&self, stored: &StoredEvent) -> Markup {
        let event = &stored.event;
        let input = event
            .input
            .as_ref()
            .and_then(|input| serde_json::to_value(input).ok());
        let command = input
            .as_ref()
            .and_then(|input| input.get("command")?.as_str());
        html! {
            li {
                div.facts {
                    strong { (line(&event.tool)) }
                    span { (event.outcome.as_str()) }
                    @if let Some(duration) = event.duration_ms {
                        span { (milliseconds(duration.saturating_mul(1_000))) }
                    }
                    @if let Some(agent) = &event.agent { span { "by " (line(&agent.kind)) } }
                    @for file in event.files.iter().take(5) {
                        span { (file.action.as_str()) " " code { (line(&file.path)) } }
                    }
                    @if let Some(command) = command {
                        code { (shorten(&one_line(&self.visit.context.printable(command)), 200)) }
                    }
                }
            }
        }
    }

    fn answer(&self, answer: &StoredTurnEnd) -> Markup {
        let who = match (answer.speaker, &answer.agent) {
            (Speaker::Main, _) => "Answer".to_owned(),
            (Speaker::Subagent, Some(agent)) => format!("Answer of {}", line(&agent.kind)),
            (Speaker::Subagent, None) => "Answer of a subagent".to_owned(),
            (Speaker::Compact, _) => "The client's summary".to_owned(),
        };
        html! {
            @if let Some(text) = &answer.text {
                details { summary { (who) } p.said { (self.text(text, ANSWER)) } }
            }
        }
    }

    fn text(&self, text: &str, length: usize) -> String {
        shorten(self.visit.context.printable(text).trim(), length)
    }
}
