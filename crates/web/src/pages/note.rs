//! One note: its text, where it came from, its links and use, its versions, and its changes.

use anamnesis_app::{
    Error,
    context::Context,
    diff, edit as operation, feedback, forget,
    format::{count, number, shorten},
    history::{self, Past},
    sync::short_change,
};
use anamnesis_note::note::{Note, Scope, State};
use anamnesis_recall::{branch::branch_remark, correction::remarks_on, usefulness::last_used};
use anamnesis_session::session_note::sentence_of_title;
use anamnesis_store::{
    index::{Entry, Index},
    journal::NoteCounts,
    notes::Stored,
};
use anamnesis_sync::history::Difference;
use anamnesis_text::clean::clean;
use chrono::{DateTime, Utc};
use maud::{Markup, html};

use super::{
    edit::{Fields, form_of, project_field},
    link,
    moment::{encoded, session_path},
};
use crate::{
    layout::{self, ago, button, line, missing, note_link, written},
    markdown,
    visit::{Answered, Visit},
};

/// How many versions are shown.
const MAX_VERSIONS: usize = 30;

/// The actions of a note: the word in the form, the label, and the toast.
pub(super) const PIN: &str = "pin";
pub(super) const UNPIN: &str = "unpin";
pub(super) const MUTE: &str = "mute";
pub(super) const UNMUTE: &str = "unmute";
const VERIFY: &str = "verify";
pub(super) const FORGET: &str = "forget";
const RESTORE: &str = "restore";
pub(super) const MOVE: &str = "move";

/// Returns the note that the address names.
pub(crate) fn entry(visit: &Visit, index: &Index) -> Result<Entry, Error> {
    let entry = history::entry(&visit.context, index, visit.note_id()?)?;
    entry.ok_or_else(|| missing("note"))
}

pub(crate) fn show(visit: &Visit) -> Answered {
    let index = visit.index()?;
    let entry = entry(visit, &index)?;
    let context = &visit.context;
    let stored = context.notes.read(entry.path)?;
    let note = stored.note();
    let now = context.environment.now;
    let id = entry.id();
    let title = shorten(&line(&entry.title), 500);
    let sentence = sentence_of_title(&context.printable(&note.body), &title);
    let main = html! {
        article {
            div.facts {
                span class={ "kind kind-" (entry.shown_kind()) } { (entry.shown_kind()) }
                (layout::marks(&entry))
                span { "#" (entry.id().short()) }
            }
            h1 { bdi { (sentence.map_or_else(|| title.clone(), |whole| line(&whole))) } }
            @for newer in &index.superseded_by(&entry)? {
                p.message { "Replaced by " (note_link(newer)) }
            }
            @let branch = branch_remark(&index, &note)?;
            @for remark in remarks_on(&index, id, now, |id| Context::short(&index, id))?.iter().chain(&branch) {
                p.message { (clean(remark)) }
            }
            @if entry.state == State::Forgotten {
                p.message {
                    @if context.notes.trashed(id).is_some() {
                        "This note is forgotten. Its text is in the trash."
                    } @else {
                        "This note is forgotten, and its text is no longer kept."
                    }
                }
            } @else {
                div.text data-live="notes" id="text" {
                    (markdown::render(context, &note.body))
                    @if !stored.whole {
                        p.hint { "The file is larger: " code { (entry.path) } }
                    }
                }
            }
            div.actions {
                (actions(visit, &entry))
                a.button href={ "/note/" (id) "/history" } { "Versions" }
                a.button href={ "/map/" (id) } { "Map" }
            }
            (forms(visit, &index, &entry, &stored)?)
        }
        section { h2 { "Where it came from" } (origin(visit, &entry, &note)) }
        (uses(&index, &entry, now)?)
        (link::list(visit, &index, &entry)?)
    };
    Ok(layout::page(visit, &title, &main))
}

fn actions(visit: &Visit, entry: &Entry) -> Markup {
    let path = format!("/note/{}/mark", entry.id());
    let act = |word: &str, label: &str| button(&path, &[("act", word)], label);
    let is_trashed = || visit.context.notes.trashed(entry.id()).is_some();
    html! {
        @if !visit.is_read_only {
            @match entry.state {
                State::Forgotten => {
                    @if is_trashed() { (act(RESTORE, "Restore")) }
                }
                State::Proposed => { (act(FORGET, "Forget")) }
                State::Active | State::Muted => {
                    @if entry.pinned { (act(UNPIN, "Unpin")) } @else { (act(PIN, "Pin")) }
                    @if entry.state == State::Muted { (act(UNMUTE, "Unmute")) }
                    @else { (act(MUTE, "Mute")) }
                    (act(VERIFY, "Still right"))
                    (act(FORGET, "Forget"))
                }
            }
        }
    }
}

fn origin(visit: &Visit, entry: &Entry, note: &Note) -> Markup {
    let now = visit.context.environment.now;
    let tags = entry.kind.other_tags(&entry.tags);
    html! {
        dl {
            dt { "Author" } dd {
                (entry.author())
                @if let Some(model) = &note.model { ", " (line(model)) }
            }
            dt { "Project" } dd { bdi { (line(&entry.project)) } }
            dt { "Machine" } dd {
                (line(&entry.machine_id))
                @if entry.path.scope == Scope::MachineLocal { ", this machine only" }
            }
            dt { "Created" } dd { (written(&entry.created_at, now)) }
            dt { "Changed" } dd { (written(entry.written_at(), now)) }
            @if let Some(session) = &entry.session {
                dt { "Session" } dd {
                    a href=(session_path(session)) { code { (line(session)) } }
                    " · " a href={ "/notes?state=any&session=" (encoded(session)) } { "its notes" }
                }
            }
            @if let Some(severity) = note.severity { dt { "Severity" } dd { (severity) } }
            @if !note.when.is_empty() {
                dt { "When" } dd { @for when in &note.when { code { (line(when)) } " " } }
            }
            @if !tags.is_empty() {
                dt { "Tags" } dd { @for tag in tags { span.chip { (line(&tag)) } " " } }
            }
            @if entry.confidence < 1.0 {
                dt { "How sure" } dd { (format!("{:.0} %", 100.0 * entry.confidence)) }
            }
            dt { "File" } dd { code { (entry.path) } }
        }
    }
}

/// How often it was injected, used and rated.
fn uses(index: &Index, entry: &Entry, now: DateTime<Utc>) -> Result<Markup, Error> {
    let months = index
        .usage_of([entry.id()])?
        .remove(&entry.id())
        .unwrap_or_default();
    let sum = |of: fn(&NoteCounts) -> u64| months.iter().map(|(_, counts)| of(counts)).sum::<u64>();
    let times = |of| count(usize::try_from(sum(of)).unwrap_or(usize::MAX), "session");
    let last = last_used(&months);
    Ok(html! {
        section {
            h2 { "Use" }
            @if months.is_empty() { p { "It was not injected into any session yet." } } @else {
                dl {
                    dt { "Injected" } dd { "in " (times(|counts| counts.shown)) }
                    dt { "Used" } dd {
                        "in " (times(|counts| counts.sessions))
                        @if let Some(last) = last { ", last " (ago(last, now)) }
                    }
                }
            }
            dl {
                @if let Some(rating) = entry.rating {
                    dt { "Rated" } dd { (rating) }
                }
                @if let Some(verified) = entry.verified {
                    dt { "Verified" } dd { (ago(verified, now)) }
                }
            }
        }
    })
}

/// The folded form in which the note is edited, and the one that moves it.
fn forms(visit: &Visit, index: &Index, entry: &Entry, stored: &Stored) -> Result<Markup, Error> {
    let can_edit = !visit.is_read_only && stored.whole && entry.state != State::Forgotten;
    if !can_edit {
        return Ok(html! {});
    }
    let note = stored.note();
    Ok(html! {
        details.edit {
            summary.button.main data-key="e" { "Edit" }
            (form_of(&note, &Fields::from_note(&note), &visit.path))
        }
        details.edit {
            summary { "Move to another project" }
            form.filters method="post" action={ "/note/" (note.id) "/mark" } {
                input type="hidden" name="act" value=(MOVE);
                (project_field(visit, index, &note.project)?)
                button { "Move" }
            }
        }
    })
}

/// Pins, mutes, verifies, forgets or restores the note.
pub(crate) fn mark(visit: &Visit) -> Answered {
    let id = visit.note_id()?;
    let (context, typed) = (&visit.context, id.to_string());
    let mark =
        |change: fn(&mut Note)| operation::mark(context, &typed, change).map(|marked| marked.batch);
    let (word, change) = match visit.form.get("act").unwrap_or_default() {
        PIN => ("pinned", mark(|note| note.pinned = true)?),
        UNPIN => ("unpinned", mark(|note| note.pinned = false)?),
        MUTE => ("muted", mark(|note| note.state = State::Muted)?),
        UNMUTE => ("unmuted", mark(|note| note.state = State::Active)?),
        VERIFY => {
            feedback::verify(context, &typed)?;
            ("verified", None)
        }
        FORGET => ("forgotten", forget::forget(context, &[typed])?.batch),
        MOVE => {
            let project = visit.form.get("project");
            let project = project.ok_or_else(|| Error::usage("the project is missing"))?;
            let moved = operation::move_note(context, &typed, Some(project), None)?;
            ("moved", moved.batch)
        }
        RESTORE => ("restored", forget::restore(context, &typed)?.change),
        _ => return Err(Error::usage("the form names no action of a note")),
    };
    Ok(layout::done(&format!("/note/{id}"), word, change))
}

/// The versions of a note, with what each changed.
pub(crate) fn history(visit: &Visit) -> Answered {
    let id = visit.note_id()?;
    let past = Past::with_index(&visit.context, visit.index()?)?;
    let mut versions = Vec::new();
    if let Some(past) = &past {
        past.refuse_withheld(id)?;
        versions = past.repository.versions(id, MAX_VERSIONS + 1)?;
    }
    let title = past
        .as_ref()
        .map_or_else(String::new, |past| past.title_of(id));
    let now = visit.context.environment.now;
    let shown = versions.iter().take(MAX_VERSIONS).enumerate();
    let shown: Vec<Markup> = shown
        .map(|(place, version)| {
            let older = versions.get(place + 1);
            let difference = Difference {
                id,
                before: older.and_then(|older| older.file.clone()),
                after: version.file.clone(),
            };
            let event = &version.event;
            html! {
                li {
                    div.facts {
                        strong { (history::shown_verb(event)) }
                        span { (line(&history::changes(id, version, older))) }
                        span { "by " (line(history::shown_actor(event))) }
                        @if let Some(machine) = &event.machine { span { (line(machine)) } }
                        (ago(event.at, now))
                        @if let Some(batch) = event.batch { code { (short_change(batch)) } }
                    }
                    (layout::difference(&diff::lines(&difference)))
                    @if let Some(batch) = event.batch.filter(|_| !visit.is_read_only) {
                        (button("/undo", &[("change", &batch.to_string()), ("back", &visit.path)],
                            "Undo this change"))
                    }
                }
            }
        })
        .collect();
    let main = html! {
        p { a href={ "/note/" (id) } { "← The note" } }
        h1 { "Versions of " bdi { (if title.is_empty() { id.short() } else { title }) } }
        @if shown.is_empty() {
            p { "It has no history: it is on this machine only, or was not committed yet." }
        }
        ol.versions { @for version in &shown { (version) } }
        @if versions.len() > MAX_VERSIONS {
            p.hint { "The newest " (number(MAX_VERSIONS)) " are shown." }
        }
    };
    Ok(layout::page(visit, "Versions", &main))
}
