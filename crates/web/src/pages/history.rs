//! The changes on all machines, what each did, its undo, and the notes of a past day.

use anamnesis_app::{
    Error, diff,
    format::{count, number},
    history::{self as operation, Past, PastMoment, shown_actor, shown_verb},
    sync::short_change,
};
use anamnesis_note::id::NoteId;
use anamnesis_recall::search::{self, MAX_HITS};
use anamnesis_store::index::{Entry, Filter};
use anamnesis_sync::history::NoteCommit;
use maud::{Markup, html};

use crate::{
    kept::HistoryRow,
    layout::{self, ago, button, line, missing},
    markdown,
    visit::{Answered, Visit},
};

/// How many changes a page lists. For each commit, folders are read, which takes 20 ms with 100,000
/// notes.
const CHANGES: usize = 12;

/// How many notes a page lists.
const PAGE: usize = 50;

/// How many differences of one change are shown.
const MAX_DIFFERENCES: usize = 50;

pub(crate) fn show(visit: &Visit) -> Answered {
    let past = Past::with_index(&visit.context, visit.index()?)?;
    let page = layout::page_number(&visit.query);
    let (mut rows, mut has_more) = (Vec::new(), false);
    if let Some(past) = &past {
        // One extra row shows whether there are more.
        let all = visit.kept.rows(past, page * CHANGES + 1)?;
        has_more = all.len() > page * CHANGES;
        for shown in all.iter().skip((page - 1) * CHANGES).take(CHANGES) {
            rows.push(row(visit, past, shown)?);
        }
    }
    let main = html! {
        h1 { "History" }
        section {
            h2 { "What did it know on a day?" }
            (date_form(visit))
        }
        section id="changes" data-live="notes" {
            h2 { "Changes" }
            @if rows.is_empty() && page == 1 {
                p { "Nothing was committed yet. Changes of notes on all your machines appear here." }
            }
            ol.notes { @for shown in &rows { (shown) } }
            (layout::pager(visit, page, has_more))
        }
    };
    Ok(layout::page(visit, "History", &main))
}

fn date_form(visit: &Visit) -> Markup {
    html! {
        form.filters method="get" action="/history/day" {
            label { span { "Day" }
                input type="date" name="on" required value=[visit.query.get("on")]
                    max=(visit.context.environment.now.format("%Y-%m-%d"));
            }
            label { span { "Search" }
                input type="search" name="q" value=[visit.query.get("q")] autocomplete="off";
            }
            button { "Look" }
        }
    }
}

/// A change as a card, with what its first note says now.
fn row(visit: &Visit, past: &Past<'_>, row: &HistoryRow) -> Result<Markup, Error> {
    let HistoryRow { event, title, .. } = row;
    let first = event.notes.keys().next();
    let note = first.map(|id| past.index.get(*id)).transpose()?.flatten();
    Ok(html! {
        li.note {
            a.title href={ "/change/" (event.commit) } {
                @if title.is_empty() { (row.verb) } @else { bdi { (title) } }
            }
            @if let Some(entry) = &note { (layout::telling(visit, entry, title)) }
            div.facts {
                span { (sentence(&row.verb, &row.counts)) }
                @if let Some(entry) = &note {
                    (layout::marks(entry))
                    span { bdi { (line(&entry.project)) } }
                }
                (facts(visit, event))
            }
        }
    })
}

/// What a change did: `Forgot 1 note`, or `Synced: 2 new, 1 changed`.
fn sentence(verb: &str, counts: &str) -> String {
    let did = match verb {
        "backfill" | "noted" | "write" | "wrote" => "Wrote",
        "edit" | "edited" => "Edited",
        "feedback" => "Rated",
        "forget" => "Forgot",
        "import" => "Imported",
        "mark" => "Marked",
        "move" => "Moved",
        "removed" => "Removed",
        "restore" => "Restored",
        "review" => "Reviewed",
        "sync" => "Synced",
        "undo" => "Undid a change of",
        "verify" => "Verified",
        other => other,
    };
    match counts.get(1..) {
        Some("1") if did != verb => format!("{did} 1 note"),
        Some(amount) if did != verb && !amount.contains(' ') => format!("{did} {amount} notes"),
        _ => format!("{did}: {}", in_words(counts)),
    }
}

/// The counts of a change in words: `+2 ~1` as `2 new, 1 changed`.
fn in_words(counts: &str) -> String {
    let words = [('+', "new"), ('~', "changed"), ('-', "removed")];
    let parts = counts.split(' ').filter_map(|part| {
        let (_, word) = words.iter().find(|(sign, _)| part.starts_with(*sign))?;
        Some(format!("{} {word}", &part[1..]))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn facts(visit: &Visit, event: &NoteCommit) -> Markup {
    html! {
        (ago(event.at, visit.context.environment.now))
        span { "by " (line(shown_actor(event))) }
        @if let Some(machine) = &event.machine { span { "on " (line(machine)) } }
        @if let Some(batch) = event.batch { code { (short_change(batch)) } }
    }
}

/// One change with its differences.
pub(crate) fn change(visit: &Visit) -> Answered {
    let past = Past::with_index(&visit.context, visit.index()?)?;
    let past = past.ok_or_else(|| missing("change"))?;
    let mut events = past.repository.find(&visit.id)?;
    let (Some(event), true) = (events.pop(), events.is_empty()) else {
        return Err(missing("change"));
    };
    let differences = past.repository.differences(&event.commit)?;
    let visible = differences.iter().filter(|it| !past.is_withheld(it.id));
    let title = sentence(&shown_verb(&event), &operation::counts(&event));
    let main = html! {
        p { a href="/history" { "← History" } }
        h1 { (title) }
        div.facts { (facts(visit, &event)) }
        @if let Some(batch) = event.batch.filter(|_| !visit.is_read_only) {
            div.actions {
                (button("/undo", &[("change", &batch.to_string()), ("back", "/history")],
                    "Undo this change"))
            }
        }
        @for difference in visible.take(MAX_DIFFERENCES) {
            section {
                h2 {
                    (diff::did(difference)) " "
                    a.title href={ "/note/" (difference.id) } { bdi { (title_of(&past, difference.id)) } }
                }
                (layout::difference(&diff::lines(difference)))
            }
        }
        @if differences.len() > MAX_DIFFERENCES {
            p.hint { "The first " (number(MAX_DIFFERENCES)) " of " (count(differences.len(), "note")) "." }
        }
    };
    Ok(layout::page(visit, &title, &main))
}

fn title_of(past: &Past<'_>, id: NoteId) -> String {
    match past.title_of(id) {
        title if title.is_empty() => format!("#{}", id.short()),
        title => title,
    }
}

/// The notes at the end of a day.
pub(crate) fn day(visit: &Visit) -> Answered {
    let date = visit.query.get("on");
    let date = date.ok_or_else(|| Error::usage("the day is missing"))?;
    let past = Past::with_index(&visit.context, visit.index()?)?;
    let past = past.ok_or_else(|| missing("history"))?;
    let past = past.at(date)?;
    let page = layout::page_number(&visit.query);
    let (total, found) = if let Some(query) = visit.query.get("q") {
        let index = past.index()?;
        let hits = search::search(&index, query, &Filter::default(), MAX_HITS)?;
        let found = hits.iter().skip((page - 1) * PAGE).take(PAGE);
        let found: Vec<_> = found.map(|hit| hit.entry.id()).collect();
        (hits.len(), found)
    } else {
        let mut ids: Vec<NoteId> = past.moment.ids().collect();
        // An id begins with the time of its note.
        ids.sort_unstable_by(|a, b| b.cmp(a));
        let found = ids.iter().skip((page - 1) * PAGE).take(PAGE);
        (ids.len(), found.copied().collect())
    };
    let main = html! {
        p { a href="/history" { "← History" } }
        h1 { "What it knew on " (operation::shown_time(past.time)) }
        (date_form(visit))
        p.hint { (layout::amount(total, "note", page, PAGE)) " of all your machines" }
        ol.notes { @for id in found { (then(visit, &past, id)?) } }
        (layout::pager(visit, page, page * PAGE < total))
    };
    Ok(layout::page(visit, "History", &main))
}

/// An earlier version of a note.
fn then(visit: &Visit, past: &PastMoment<'_>, id: NoteId) -> Result<Markup, Error> {
    // A file that was no valid note then is left out.
    let Some(stored) = past.stored(id).ok().flatten() else {
        return Ok(html! {});
    };
    let note = stored.note();
    let now = past.past.index.get(id)?;
    let is_same = |entry: &Entry| {
        let stored = visit.context.notes.read(entry.path);
        stored.is_ok_and(|stored| stored.note().body == note.body)
    };
    Ok(html! {
        li.note {
            details {
                summary { bdi { (line(&note.title)) } }
                div.text { (markdown::render(&visit.context, &note.body)) }
                p { a href={ "/note/" (id) "/history" } { "Versions" } }
            }
            div.facts {
                span { (note.kind().shown()) }
                span { bdi { (line(&note.project)) } }
                @match &now {
                    None => { span.chip.warn { "gone since" } }
                    Some(entry) if is_same(entry) => { span { "as now" } }
                    Some(_) => { span.chip.warn { "changed since" } }
                }
            }
        }
    })
}
