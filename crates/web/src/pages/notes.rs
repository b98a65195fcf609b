//! The list of notes, with search and filters.

use std::collections::BTreeMap;

use anamnesis_app::format::{count, number};
use anamnesis_note::note::{Kind, State};
use anamnesis_recall::search::{self, MAX_HITS};
use anamnesis_store::index::{Entry, Filter, NoteTotals};
use maud::{Markup, html};

use crate::{
    layout::{self, choice, line, note_item},
    visit::{Answered, Params, Visit},
};

/// How many notes a page lists.
const PAGE: usize = 50;

/// The states in which a note is not in use, besides those of its file.
const REPLACED: &str = "replaced";
const ANY: &str = "any";

pub(crate) fn show(visit: &Visit) -> Answered {
    let index = visit.index()?;
    let totals = index.counts()?;
    let query = visit.query.get("q").unwrap_or_default();
    let filter = filter(visit);
    let page = visit.query.get("page").and_then(|page| page.parse().ok());
    let page = page.unwrap_or(1_usize).clamp(1, 10_000);
    let start = (page - 1) * PAGE;
    let (total, found) = if query.is_empty() {
        let entries = index.list_from(&filter, start, PAGE)?;
        let found = entries.into_iter().map(|entry| (entry, Vec::new()));
        (index.count(&filter)?, found.collect())
    } else {
        let hits = search::search(&index, query, &filter, MAX_HITS)?;
        let total = hits.len();
        let hits = hits.into_iter().skip(start).take(PAGE);
        (total, hits.map(|hit| (hit.entry, hit.matched)).collect())
    };
    let found: Vec<(Entry, Vec<String>)> = found;
    let main = html! {
        h1 { "Notes" }
        @if totals.total == 0 { (welcome()) } @else {
            (form(&visit.query, query, &totals))
            section id="results" data-live="notes" aria-label="Results" {
                p.hint role="status" {
                    (count(total, "note"))
                    @if !query.is_empty() && total == MAX_HITS { " (the best)" }
                    @if total > PAGE {
                        ", page " (number(page)) " of " (number(total.div_ceil(PAGE)))
                    }
                }
                @if found.is_empty() {
                    p { "No note matches. " a href="/notes" { "Show all notes" } }
                }
                ol.notes {
                    @for (entry, matched) in &found {
                        (note_item(entry, visit.context.environment.now, &words(matched)))
                    }
                }
                (pager(&visit.query, page, total))
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
    html! {
        form.filters method="get" action="/notes" role="search" data-search="results" {
            label.wide { span { "Search" }
                input type="search" name="q" value=(query) autocomplete="off" spellcheck="false"
                    placeholder="Words, a \"phrase\" or the beginning of a word*" data-key="/";
            }
            (choice("project", "Project", "All projects", by_count(&totals.by_project),
                asked.get("project")))
            (choice("kind", "Kind", "All kinds", kinds, asked.get("kind")))
            (choice("state", "State", "In use", states, asked.get("state")))
            (choice("machine", "Machine", "All machines", by_count(&totals.by_machine),
                asked.get("machine")))
            label { span { "Tag" }
                input type="text" name="tag" value=[asked.get("tag")] autocomplete="off";
            }
            button { "Search" }
        }
    }
}

/// The words that matched.
fn words(matched: &[String]) -> Markup {
    html! {
        @if !matched.is_empty() {
            span.matched { "has " (line(&matched.join(", "))) }
        }
    }
}

fn pager(asked: &Params, page: usize, total: usize) -> Markup {
    let to = |page: usize| format!("/notes?{}", asked.with("page", &page.to_string()));
    html! {
        @if total > PAGE {
            nav.pager aria-label="More results" {
                @if page > 1 { a.button rel="prev" href=(to(page - 1)) { "← Newer" } }
                @if page * PAGE < total { a.button rel="next" href=(to(page + 1)) { "Older →" } }
            }
        }
    }
}

/// The page of an empty store.
fn welcome() -> Markup {
    html! {
        section.card id="results" data-live="notes" {
            h2 { "There are no notes yet" }
            p { "A note appears here after your next session in Claude Code: what was done, decided
                and left open, in your project. The next session starts with the notes that matter
                for it." }
            ul {
                li { "To keep a sentence now, type " code { "/memory-remember TEXT" } " in Claude
                    Code." }
                li { "To make notes of earlier sessions, run " code { "anamnesis backfill" } " in a
                    terminal. It shows first what it would write." }
            }
            p { a href="/live" { "Watch a session live" } }
        }
    }
}
