//! Shows what is recorded where and for how long, and removes a note or a text for good.

use anamnesis_app::{
    Error,
    format::{count, size},
    purge::{self as operation, PurgeOutcome, PurgePlan},
};
use anamnesis_note::purge_pattern::PurgePattern;
use anamnesis_store::{journal::DAMAGED_DAYS, settings::config::Config};
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};

use crate::{
    answer::PageResponse,
    layout::{self, SURE},
    visit::{Answered, Visit},
};

/// The field that says that the person has seen the places.
const SEEN: &str = "seen";

pub(crate) fn show(visit: &Visit) -> Answered {
    let context = &visit.context;
    let journal = context.records()?;
    let kept = journal.and_then(|it| Some((it.count_kept().ok()?, it.used_bytes().ok()?)));
    let main = html! {
        h1 { "Privacy" }
        p { "Everything is in " code { (context.shown(context.home.root())) }
            ", readable by you alone. Nothing is sent anywhere, except to the git remote and the model
            that you named yourself." }
        section { h2 { "What is recorded" } (recorded(&context.config)) }
        @if let Some((sessions, bytes)) = kept {
            p.hint { (count(sessions, "session")) " with raw records, " (size(bytes)) " in all. "
                a href="/settings" { "Change how long they are kept" } }
        }
        section {
            h2 { "What is not recorded" }
            ul {
                li { "Text between " code { "<private>" } " and " code { "</private>" }
                    ", and text that looks like a key or a password." }
                li { (count(context.config.exclude.len(), "excluded folder pattern")) ", "
                    (count(context.config.paused.projects.len(), "paused project")) ". "
                    a href="/settings" { "Settings" } }
                @if !context.config.recording.only.is_empty() {
                    li { "Folders other than the "
                        (count(context.config.recording.only.len(), "pattern"))
                        " of " code { "recording.only" } "." }
                }
                @if !context.config.skip_tools.is_empty() {
                    li { "The use of these tools: "
                        @for tool in &context.config.skip_tools { code { (layout::line(tool)) } " " } }
                }
            }
        }
        @if !visit.is_read_only { (forms()) }
    };
    Ok(layout::page(visit, "Privacy", &main))
}

/// What is recorded: its name, its file, the machines that have it, and how long.
fn recorded(config: &Config) -> Markup {
    let days = |days: u32| match days {
        0 => "for ever".to_owned(),
        days => count(usize::try_from(days).unwrap_or(usize::MAX), "day"),
    };
    let keep = &config.retention;
    let [trash, records, damaged] = [keep.trash_days, keep.records_days, DAMAGED_DAYS].map(days);
    let here = "this machine";
    let synced = match &config.remote {
        Some(_) => "your machines, through your git remote",
        None => here,
    };
    let row = |what: &str, folder: &str, place: &str, term: &str| {
        html! {
            li {
                strong { (what) }
                div.facts { code { (folder) } span { "on " (place) } span { "kept " (term) } }
            }
        }
    };
    html! {
        ul.checks {
            (row("Notes", "memory/", synced, "until you forget them; git history keeps them"))
            (row("Notes of this machine", "local/", here, "until you forget them"))
            (row("Forgotten notes", "trash/", here, &trash))
            (row("Prompts, tool events and answers", "journal.db", here, &records))
            (row("Injected texts", "journal.db", here, &records))
            (row("Damaged or pending records", "spool/, quarantine/", here, &damaged))
            (row("Which notes helped: ids and counts", "journal.db", here, "as long as their session"))
            (row("Errors", "log/", here, "three files of 5 MiB"))
        }
    }
}

fn forms() -> Markup {
    html! {
        section id="purge" {
            h2 { "Remove for good" }
            p { "Forgetting a note can be undone. This cannot: it also rewrites git history, here and
                on the remote. You see every place first, and are asked again." }
            div.fields {
                form.card method="post" action="/privacy/purge" {
                    h3 { "A text, such as a password" }
                    label { span { "The text, which is masked everywhere" }
                        input type="password" name="text" required autocomplete="off"; }
                    p.actions { button { "Find it" } }
                }
                form.card method="post" action="/privacy/purge" {
                    h3 { "A note" }
                    label { span { "Its id" }
                        input name="id" required autocomplete="off" spellcheck="false"; }
                    p.actions { button { "Find it" } }
                }
            }
        }
    }
}

/// Shows the places, asks again, and removes the note or the text.
pub(crate) fn purge(visit: &Visit) -> Answered {
    let context = &visit.context;
    operation::begin(context)?;
    let plan = match (visit.form.get("text"), visit.form.get("id")) {
        (Some(text), None) => {
            let pattern = PurgePattern::new(text);
            let pattern = pattern.map_err(|error| Error::usage(error.to_string()))?;
            operation::find_text(context, &pattern)?
        }
        (None, Some(id)) => operation::find_notes(context, &[id.to_owned()])?,
        _ => return Err(Error::usage("name a text or a note")),
    };
    if plan.count() == 0 {
        return Ok(nowhere(visit, &plan));
    }
    if visit.form.get(SEEN).is_none() {
        return Ok(places(visit, &plan));
    }
    if !visit.is_confirmed() {
        let found = count(plan.count(), "place");
        let question = format!("Remove it from {found} for good? There is no undo.");
        return Ok(layout::ask(visit, &question, "Remove it for good"));
    }
    let done = plan.purge("anamnesis purge")?;
    Ok(receipt(visit, &plan, &done))
}

/// The first question: where it is.
fn places(visit: &Visit, plan: &PurgePlan<'_>) -> PageResponse {
    let fields = visit.form.0.iter();
    let fields = fields.filter(|(name, _)| name != SEEN && name != SURE);
    let main = html! {
        h1 { "Found in " (count(plan.count(), "place")) }
        (list(plan))
        form method="post" action=(visit.path) {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            input type="hidden" name=(SEEN) value="yes";
            p.actions {
                button.danger { "Remove it from all of them" }
                a.button href="/privacy" { "Cancel" }
            }
        }
        @if visit.context.config.remote.is_some() {
            p.hint { "The remote's history is rewritten too. Your other machines adopt it with their
                next sync." }
        }
    };
    layout::page(visit, "Found", &main)
}

fn list(plan: &PurgePlan<'_>) -> Markup {
    html! {
        ul.checks {
            @for place in plan.listed() {
                li { div.line { span.chip { (place.what) } span { bdi { (clean(&place.text)) } } } }
            }
        }
    }
}

fn nowhere(visit: &Visit, plan: &PurgePlan<'_>) -> PageResponse {
    let main = html! {
        h1 { "The text is nowhere in the memory, nor in git history" }
        (list(plan))
        p { a href="/privacy" { "Privacy" } }
    };
    layout::page(visit, "Not found", &main)
}

/// Returns the result of a purge, and what the person has to do now.
fn receipt(visit: &Visit, plan: &PurgePlan<'_>, done: &PurgeOutcome) -> PageResponse {
    let steps = plan.steps(done);
    let main = html! {
        h1 { "Purged" }
        p { (count(plan.count(), "place")) " removed or masked, " (done.remaining.len()) " left. "
            (count(done.purged.commits, "commit")) " rewritten"
            @if done.purged.pushed { ", and the remote's history too" } "." }
        @for name in &done.remaining { p.message { "Left: " (one_line(name)) } }
        @if !steps.is_empty() {
            h2 { "Now" }
            ol { @for step in &steps { li { (clean(step)) } } }
        }
        h2 { "Receipt" }
        (list(plan))
        p { a href="/privacy" { "Privacy" } }
    };
    layout::page(visit, "Purged", &main)
}
