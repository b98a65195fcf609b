//! The links of a note, and the form that links it to another one.

use std::collections::HashSet;

use anamnesis_app::{
    Error,
    context::Context,
    ops::connect::{self as operation, ConnectNotes},
};
use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation, given},
    note::State,
};
use anamnesis_recall::search;
use anamnesis_store::index::{Entry, Filter, Index};
use maud::{Markup, html};

use super::note;
use crate::{
    layout::{self, button, line, note_card, note_link},
    visit::{Answered, Visit},
};

/// How many notes are offered.
const OFFERED: usize = 12;

/// The links of a note, on its page.
pub(super) fn list(visit: &Visit, index: &Index, entry: &Entry) -> Result<Markup, Error> {
    let id = entry.id();
    let mut shown = Vec::new();
    for Edge {
        from, to, relation, ..
    } in index.links_of(&[id])?
    {
        let (other, arrow) = if from == id {
            (to, "→")
        } else {
            (from, "←")
        };
        if let Some(other) = index.get(other)? {
            let can_remove = from == id && Relation::GIVEN.contains(&relation);
            shown.push((arrow, relation, other, can_remove && !visit.is_read_only));
        }
    }
    let path = format!("/note/{id}/connect");
    let can_link = !visit.is_read_only && entry.state == State::Active;
    Ok(html! {
        section {
            h2 { "Links" }
            @if shown.is_empty() { p { "No note is linked to it." } }
            ul.links {
                @for (arrow, relation, other, can_remove) in &shown {
                    li {
                        span.relation { (arrow) " " (relation) } " " (note_link(other))
                        @if *can_remove {
                            (button(&path, &[("to", &other.id().to_string()),
                                ("relation", relation.as_str()), ("remove", "yes")], "Remove"))
                        }
                    }
                }
            }
            @if can_link {
                p.actions { a.button href={ "/note/" (id) "/link" } { "Link to another note" } }
            }
        }
    })
}

/// The notes that this one can be linked to: those that the words in the address find, else those that
/// its title finds, and the newest.
pub(crate) fn choose(visit: &Visit) -> Answered {
    let index = visit.index()?;
    let entry = note::entry(visit, &index)?;
    let id = entry.id();
    let words = visit.query.get("q");
    let named = words.and_then(|words| Context::present(&index, words).ok());
    let query = words.unwrap_or(&entry.title);
    let hits = search::search_with_meaning(&index, query, None, &Filter::default(), OFFERED + 1)?;
    let mut found: Vec<Entry> = named.into_iter().collect();
    found.extend(hits.into_iter().map(|hit| hit.entry));
    if words.is_none() {
        found.extend(index.list_from(&Filter::default(), 0, OFFERED)?);
    }
    let mut seen = HashSet::from([id]);
    found.retain(|other| seen.insert(other.id()));
    found.truncate(OFFERED);
    let main = html! {
        p { a href={ "/note/" (id) } { "← The note" } }
        h1 { "Link “" bdi { (line(&entry.title)) } "”" }
        form.filters method="get" action={ "/note/" (id) "/link" } role="search" {
            label.wide { span { "Find the other note by its words or its id" }
                input type="search" name="q" value=[words] autocomplete="off" data-key="/"; }
            button { "Find" }
        }
        @if found.is_empty() { p { "No note matches." } }
        @else if !visit.is_read_only {
            form method="post" action={ "/note/" (id) "/connect" } {
                ol.notes {
                    @for (number, other) in found.iter().enumerate() {
                        li.note.pickable {
                            input type="radio" name="to" value=(other.id()) required
                                checked[number == 0 && words.is_some()]
                                aria-label={ "Link to " (line(&other.title)) };
                            div { (note_card(visit, other, words.unwrap_or_default(), &html! {})) }
                        }
                    }
                }
                label.relations { span { "Relation of this note to the selected one" }
                    select name="relation" {
                        @for relation in Relation::GIVEN {
                            option selected[*relation == Relation::RelatedTo] { (relation) }
                        }
                    }
                }
                p.actions { button.main { "Link" } }
            }
        }
    };
    Ok(layout::page(visit, "Link a note", &main))
}

/// Adds or removes a link of the note.
pub(crate) fn connect(visit: &Visit) -> Answered {
    let from = visit.note_id()?;
    let to = visit
        .form
        .get("to")
        .and_then(|id| id.parse::<NoteId>().ok());
    let to = to.ok_or_else(|| Error::usage("select the other note"))?;
    let relation = given(visit.form.get("relation").unwrap_or("related-to"))
        .map_err(|error| Error::usage(error.to_string()))?;
    let remove = visit.form.get("remove").is_some();
    let done = operation::connect(
        &visit.context,
        ConnectNotes {
            from: from.to_string(),
            to: to.to_string(),
            relation,
            weight: None,
            remove,
        },
    )?;
    let word = match (done.changed, remove) {
        (false, _) => "same",
        (true, true) => "unlinked",
        (true, false) => "linked",
    };
    Ok(layout::done(&format!("/note/{from}"), word, done.batch))
}
