//! The list of notes, with search and filters.

use std::collections::BTreeMap;

use anamnesis_app::{
    Error, edit, forget,
    format::{count, number},
    history, project, reflect,
};
use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, State},
};
use anamnesis_recall::search::{self, MAX_HITS};
use anamnesis_store::index::{Entry, Filter, NoteTotals};
use maud::{Markup, html};

use super::note::{FORGET, MOVE, MUTE, PIN, UNMUTE, UNPIN};
use crate::{
    layout::{self, choice, line, note_card},
    visit::{Answered, Params, Visit},
};

/// The address of the actions on many notes, and those that one note does not have.
const MANY: &str = "/notes/many";
const TAG: &str = "tag";
const UNTAG: &str = "untag";

/// How many notes a page lists.
const PAGE: usize = 50;

/// The states in which a note is not in use, besides those of its file.
const REPLACED: &str = "replaced";
const ANY: &str = "any";

/// The day of `since` that is today where the person is.
const TODAY: &str = "today";

/// The authors, as notes name them.
const AUTHORS: [&str; 5] = ["you", "agent", "session", "reflection", "import"];

pub(crate) fn show(visit: &Visit) -> Answered {
    let index = visit.index()?;
    let totals = index.counts()?;
    let query = visit.query.get("q").unwrap_or_default();
    let is_today = visit.query.get("since") == Some(TODAY);
    let mut filter = filter(visit);
    if is_today {
        filter.since = Some(index.start_of_day(visit.context.environment.now)?);
    }
    let page = layout::page_number(&visit.query);
    let start = (page - 1) * PAGE;
    let (total, mut found) = if query.is_empty() {
        let entries = index.list_from(&filter, start, PAGE)?;
        (index.count(&filter)?, entries)
    } else {
        let vector = visit.encoder.vector(&visit.context, &index, query);
        let vector = vector.as_deref();
        let hits = search::search_with_meaning(&index, query, vector, &filter, MAX_HITS)?;
        let total = hits.len();
        let hits = hits.into_iter().skip(start).take(PAGE);
        (total, hits.map(|hit| hit.entry).collect())
    };
    history::add_titles(&visit.context, &mut found);
    let mut groups: BTreeMap<&str, Vec<&Entry>> = BTreeMap::new();
    for entry in &found {
        let group = if is_today { &*entry.project } else { "" };
        groups.entry(group).or_default().push(entry);
    }
    let records = visit.context.records()?;
    let project = visit.context.project(visit.query.get("project"));
    let own = project.own_keys();
    let undistilled = records.and_then(|journal| reflect::undistilled(&index, &journal, &own));
    let main = html! {
        div.heading {
            h1 { @if is_today { "Learned today" } @else { "Notes" } }
            @if !visit.is_read_only { a.button.main href="/notes/new" data-key="n" { "Write a note" } }
        }
        @if totals.total == 0 { (welcome(visit)) } @else {
            @if let Some(sessions) = undistilled {
                p.message { (reflect::reminder(sessions)) " in Claude Code, in " bdi { (line(&project.key)) }
                    ", makes a few lasting notes of them." }
            }
            @if is_today { p { a href="/notes" { "← All notes" } } }
            @else { (form(&visit.query, query, &totals)) }
            section id="results" data-live="notes" aria-label="Results" {
                p.hint role="status" {
                    (layout::amount(total, "note", page, PAGE))
                    @if !query.is_empty() && total == MAX_HITS { " (the best)" }
                    @if visit.query.get("since").is_none() {
                        " · " a href={ "/notes?since=" (TODAY) } { "Learned today" }
                    }
                }
                @if found.is_empty() && is_today { p { "Nothing yet." } }
                @else if found.is_empty() {
                    p { "No note matches. " a href="/notes" { "Show all notes" } }
                }
                (list(visit, &groups, query))
                (layout::pager(visit, page, page * PAGE < total))
            }
        }
    };
    Ok(layout::page(visit, "Notes", &main))
}

/// The filter that the address asks for. A word that does not exist filters nothing.
fn filter(visit: &Visit) -> Filter {
    let asked = &visit.query;
    let project = asked
        .get("project")
        .map(|key| visit.context.project(Some(key)));
    let state = asked.get("state");
    Filter {
        projects: project
            .map(|project| project.all_keys())
            .unwrap_or_default(),
        kind: asked
            .get("kind")
            .and_then(|word| Kind::from_word(word).ok()),
        tag: asked.get("tag").map(str::to_owned),
        machine: asked.get("machine").map(str::to_owned),
        session: asked.get("session").map(str::to_owned),
        author: asked.get("author").map(str::to_owned),
        since: asked.get("since").map(str::to_owned),
        until: asked.get("until").map(str::to_owned),
        state: state.and_then(|state| state.parse::<State>().ok()),
        with_superseded: matches!(state, Some(REPLACED | ANY)),
        with_forgotten: state == Some("forgotten") || state == Some(ANY),
        ..Filter::default()
    }
}

fn form(asked: &Params, query: &str, totals: &NoteTotals) -> Markup {
    let by_count = |counts: &BTreeMap<String, usize>| {
        let mut counts: Vec<_> = counts.iter().collect();
        counts.sort_by_key(|(name, count)| (std::cmp::Reverse(**count), *name));
        let options = counts.into_iter().map(|(name, count)| {
            let shown = format!("{} ({})", line(name), number(*count));
            (name.clone(), shown)
        });
        options.collect::<Vec<_>>()
    };
    let same = |word: &str| (word.to_owned(), word.to_owned());
    let kinds = Kind::ALL.iter().map(|kind| same(kind.shown()));
    let states = State::ALL.iter().map(|state| same(state.as_str()));
    let states = states.chain([same(ANY)]);
    let authors = AUTHORS.map(same);
    let more = ["machine", "author", "tag", "since", "until"];
    let has_more = more.iter().any(|name| asked.get(name).is_some());
    html! {
        form.filters method="get" action="/notes" role="search" data-search="results" {
            label.wide { span { "Search" }
                input type="search" name="q" value=(query) autocomplete="off" spellcheck="false"
                    placeholder="Words, a \"phrase\" or the beginning of a word*" data-key="/";
            }
            (choice("project", "Project", "All projects", by_count(&totals.by_project),
                asked.get("project")))
            (choice("kind", "Kind", "All kinds", kinds, asked.get("kind")))
            (choice("state", "State", "All current", states, asked.get("state")))
            details.wide open[has_more] {
                summary { "More filters" }
                div.filters {
                    (choice("machine", "Machine", "All machines", by_count(&totals.by_machine),
                        asked.get("machine")))
                    (choice("author", "Author", "All authors", authors, asked.get("author")))
                    label { span { "Tag" }
                        input type="text" name="tag" value=[asked.get("tag")] autocomplete="off";
                    }
                    label { span { "From" } input type="date" name="since" value=[asked.get("since")]; }
                    label { span { "Until" } input type="date" name="until" value=[asked.get("until")]; }
                }
            }
            noscript { button { "Search" } }
        }
    }
}

/// Groups of notes with a box for each note, and what can be done with the ticked ones.
fn list(visit: &Visit, groups: &BTreeMap<&str, Vec<&Entry>>, query: &str) -> Markup {
    let has_boxes = !visit.is_read_only && !groups.is_empty();
    let lists = html! {
        @for (project, group) in groups {
            @if groups.len() > 1 { h2 { bdi { (line(project)) } } }
            ol.notes {
                @for entry in group {
                    li.note.pickable[has_boxes] {
                        @if has_boxes {
                            input type="checkbox" name="note" value=(entry.id())
                                aria-label={ "Select " (line(&entry.title)) };
                        }
                        div { (note_card(visit, entry, query, &html! {})) }
                    }
                }
            }
        }
    };
    html! {
        @if has_boxes {
            form.many method="post" action=(MANY) {
                input type="hidden" name="query" value=(visit.query.query());
                (lists)
                (many_actions())
            }
        } @else { (lists) }
    }
}

/// The bar of the actions on the ticked notes.
fn many_actions() -> Markup {
    let act = |word: &str, label: &str| html! { button name="act" value=(word) { (label) } };
    html! {
        div.toolbar role="group" aria-label="With the selected notes" {
            span.picked { "Selected" }
            (act(PIN, "Pin")) (act(UNPIN, "Unpin")) (act(MUTE, "Mute")) (act(UNMUTE, "Unmute"))
            (act(FORGET, "Forget"))
            details {
                summary { "Tag or move" }
                div.fields {
                    label { span { "Tag" } input name="tag" autocomplete="off"; }
                    (act(TAG, "Add the tag")) (act(UNTAG, "Remove the tag"))
                }
                div.fields {
                    label { span { "Project" } input name="project" autocomplete="off"; }
                    (act(MOVE, "Move there"))
                }
            }
        }
    }
}

/// Does one thing with all ticked notes, as one change.
pub(crate) fn many(visit: &Visit) -> Answered {
    let (context, form) = (&visit.context, &visit.form);
    let ticked = form.0.iter().filter(|(name, _)| name == "note");
    let ids: Vec<NoteId> = ticked.filter_map(|(_, id)| id.parse().ok()).collect();
    if ids.is_empty() {
        return Err(Error::usage("no note is selected"));
    }
    let act = form.get("act").unwrap_or_default();
    if act == FORGET && !visit.is_confirmed() {
        let question = format!("Forget {}?", count(ids.len(), "note"));
        return Ok(layout::ask(visit, &question, "Forget them"));
    }
    let named = |field: &str, what: &str| {
        let value = form.get(field).map(|value| line(value.trim()));
        value.ok_or_else(|| Error::usage(format!("type the {what} beside the button")))
    };
    let mark = |change: &dyn Fn(&mut Note)| edit::mark_many(context, &ids, "mark", change);
    let (word, change) = match act {
        PIN => ("pinned", mark(&|note| note.pinned = true)?.1),
        UNPIN => ("unpinned", mark(&|note| note.pinned = false)?.1),
        MUTE => ("muted", mark(&|note| note.state = State::Muted)?.1),
        UNMUTE => ("unmuted", mark(&|note| note.state = State::Active)?.1),
        TAG => {
            let tag = named("tag", "tag")?;
            let tagged = mark(&|note| note.add_tags([tag.as_str()]))?;
            ("tagged", tagged.1)
        }
        UNTAG => {
            let tag = named("tag", "tag")?;
            let untagged = mark(&|note| note.tags.retain(|own| *own != tag))?;
            ("untagged", untagged.1)
        }
        MOVE => {
            let project = named("project", "project")?;
            project::check_key(context, &context.index()?, &project)?;
            let moved = edit::mark_many(context, &ids, edit::MOVE, |note| {
                note.project.clone_from(&project);
            })?;
            ("moved", moved.1)
        }
        FORGET => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            ("forgotten", forget::forget(context, &ids)?.batch)
        }
        _ => return Err(Error::usage("the form names no action on notes")),
    };
    let query = Params::parse(form.get("query").unwrap_or_default().as_bytes()).query();
    let path = if query.is_empty() {
        "/notes".to_owned()
    } else {
        format!("/notes?{query}")
    };
    Ok(layout::done(&path, word, change))
}

/// The page of an empty store.
fn welcome(visit: &Visit) -> Markup {
    html! {
        section.card id="results" data-live="notes" {
            h2 { "There are no notes yet" }
            p { "After your next session in Claude Code, its note is here: what was done, decided and
                left open. The next session starts with the notes that matter for it." }
            ul {
                li { a href="/live" { "Live" } " shows a session while Claude works: your prompts, the
                    notes that were injected, and why." }
                li { a href="/review" { "Review" } " asks about what Claude proposes to keep." }
                li { a href="/settings" { "Settings" } " and " a href="/privacy" { "Privacy" }
                    " say what is recorded, and switch it off." }
                li { "To keep a sentence now, type " code { "/memory-remember TEXT" } " in Claude Code." }
            }
            h3 { "Start with what you have" }
            p { "Claude Code keeps transcripts of your earlier sessions. Anamnesis can make notes of them,
                and import the memory of another program. You see first what would be written." }
            div.actions {
                @if !visit.is_read_only {
                    (layout::button("/import/sessions", &[], "Look for earlier sessions"))
                }
                a.button href="/import" { "Import another memory" }
            }
        }
    }
}
