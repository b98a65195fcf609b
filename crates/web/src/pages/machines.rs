//! The machines that wrote notes, and the state of sync.

use anamnesis_app::{
    format::count,
    machines as operation,
    sync::{self as syncing, HeldDecision, SyncStatus, held_text},
};
use anamnesis_sync::Synced;
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};

use super::moment::encoded;
use crate::{
    layout::{self, ago, button, line},
    visit::{Answered, Visit},
};

/// The words with which a form decides about what was held back.
const ACCEPT: &str = "accept";
const RESTORE: &str = "restore";

pub(crate) fn show(visit: &Visit) -> Answered {
    let context = &visit.context;
    let now = context.environment.now;
    let journal = context.journal();
    let standing = SyncStatus::load(context, journal.as_ref());
    let own = context.machine_id();
    let index = visit.index()?;
    let machines = operation::in_order(context, operation::machines(context, &index)?);
    let conflicts = index.count_conflicts()?;
    let can_sync = standing.remote.is_some() && !visit.is_read_only;
    let main = html! {
        h1 { "Machines & sync" }
        section id="sync" data-live="journal notes" {
            h2 { "Sync" }
            @if standing.needs_attention() {
                p.message { (clean(&standing.text(now))) }
                p.hint { "To do: " code { (clean(&standing.advice())) } }
            }
            (state(visit, &standing, conflicts))
            @if can_sync {
                div.actions {
                    (button("/machines/sync", &[], "Sync now"))
                    @if standing.is_held() {
                        (button("/machines/sync", &[("answer", ACCEPT)], "Accept what was held back"))
                        (button("/machines/sync", &[("answer", RESTORE)], "Restore it"))
                    }
                }
            }
        }
        section {
            h2 { "Machines" }
            ol.notes {
                @for (name, machine) in &machines {
                    li.note {
                        a.title href={ "/notes?machine=" (encoded(name)) } {
                            bdi { (line(name)) }
                        }
                        div.facts {
                            @if *name == own { span.chip { "this machine" } }
                            span { (count(machine.notes, "note")) }
                            @match machine.seen {
                                Some(seen) => { span { "last commit " (ago(seen, now)) } }
                                None => { span { "no commit yet" } }
                            }
                        }
                    }
                }
            }
            p.hint { "A machine is seen when its commits arrive. One without changes looks the same
                as one that does not sync." }
        }
    };
    Ok(layout::page(visit, "Machines & sync", &main))
}

/// Returns the state of the sync, and the conflicts to decide about.
fn state(visit: &Visit, standing: &SyncStatus, conflicts: usize) -> Markup {
    let now = visit.context.environment.now;
    html! {
        dl {
            dt { "State" } dd {
                @match &standing.step {
                    Some(step) => { span.chip.ok { "running" } " " (step) "…" }
                    None => { (clean(&standing.text(now))) }
                }
            }
            @if let Some(remote) = &standing.remote {
                dt { "Remote" } dd { code { (line(remote)) } }
                dt { "Ahead" } dd {
                    (count(standing.state.ahead, "commit")) " to push, with "
                    (count(standing.state.waiting, "note"))
                    @if standing.state.dirty { "; some notes are not committed yet" }
                }
                dt { "Behind" } dd { "Known after the next sync, which fetches first." }
            } @else {
                dt { "To sync" } dd {
                    code { "anamnesis init --remote URL" } " in a terminal connects your machines
                        through a git repository of your own."
                }
            }
            dt { "Conflicts" } dd {
                @if conflicts == 0 { "none" } @else {
                    (count(conflicts, "text")) " to decide about: "
                    a href="/review" { "Review" }
                }
            }
        }
    }
}

/// Syncs now. What was held back is applied or restored after a confirmation.
pub(crate) fn sync(visit: &Visit) -> Answered {
    let (answer, question) = match visit.form.get("answer") {
        Some(ACCEPT) => (
            HeldDecision::Accept,
            "Accept what was held back? Notes may be deleted here.",
        ),
        Some(RESTORE) => (
            HeldDecision::Restore,
            "Restore what was held back, here and on the remote?",
        ),
        _ => (HeldDecision::None, ""),
    };
    if answer != HeldDecision::None && !visit.is_confirmed() {
        return Ok(layout::ask(visit, question, "Sync"));
    }
    let synced = syncing::run_now(&visit.context, answer)?;
    drop(visit.context.index()?);
    if synced.held.is_none() && synced.problems.is_empty() {
        let word = if synced.pushed { "synced" } else { "committed" };
        return Ok(layout::done("/machines", word, None));
    }
    Ok(unfinished(visit, &synced))
}

/// The page of a sync that left something for the person.
fn unfinished(visit: &Visit, synced: &Synced) -> crate::answer::PageResponse {
    let main = html! {
        h1 { "Synced in part" }
        @if let Some(held) = &synced.held {
            p.message { "Held back until you decide: " (held_text(held)) "." }
        }
        @if !synced.problems.is_empty() {
            p { (count(synced.problems.len(), "file")) " of the remote not taken:" }
            ul {
                @for problem in &synced.problems {
                    li { code { (line(&problem.path)) } ": " (one_line(&problem.reason)) }
                }
            }
        }
        p { a href="/machines" { "Machines & sync" } }
    };
    layout::page(visit, "Synced in part", &main)
}
