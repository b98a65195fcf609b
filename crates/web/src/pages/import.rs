//! Making notes of earlier sessions: first what would be written, then the notes as one change.

use anamnesis_app::{
    backfill::{self, BackfillReport, SessionFilter},
    format::{count, number, shorten},
};
use anamnesis_session::event::Host;
use anamnesis_text::clean::{clean, one_line};
use maud::html;

use crate::{
    answer::PageResponse,
    layout::{self, SURE, button, line},
    visit::{Answered, Visit},
};

const PATH: &str = "/import";

/// How many sessions are listed.
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
        p { "The memory of another program: " code { "anamnesis import --from auto" } " in a terminal." }
        @if visit.is_read_only { p.hint { "This viewer cannot change notes, so it cannot import." } }
    };
    Ok(layout::page(visit, "Import", &main))
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
