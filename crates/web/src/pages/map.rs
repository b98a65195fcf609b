//! The notes by project and month, and the notes around one as a drawing with a list beside it.

use std::collections::BTreeMap;

use anamnesis_app::{
    format::{count, number, shorten},
    recall::known,
};
use anamnesis_note::{id::NoteId, link::Edge};
use anamnesis_recall::{
    graph::Links,
    pathway::{self, MIN_STRENGTH, Path},
};
use anamnesis_store::index::{Entry, Filter, Index};
use anamnesis_text::clean::one_line;
use maud::{Markup, html};

use super::{moment::encoded, note};
use crate::{
    chart::{self, Bar},
    layout::{self, line, note_link},
    visit::{Answered, Visit},
};

/// How many projects, months and linked notes the overview names.
const MAX_PROJECTS: usize = 20;
const MAX_MONTHS: usize = 24;
const MAX_STARTS: usize = 12;

/// How many recent notes are examined for links.
const RECENT: usize = 300;

/// How far the drawing goes, in links.
const DEPTH: usize = 2;

/// How many notes are drawn. The list has all.
const MAX_DRAWN: usize = 24;

/// The size of the drawing.
const WIDTH: usize = 960;
const ROW: usize = 34;
const COLUMNS: [usize; 3] = [20, 330, 650];

/// The length of the line below a title, from which links lead on.
const LINE: usize = 240;

/// How many characters of a title are drawn.
const TITLE: usize = 28;

pub(crate) fn show(visit: &Visit) -> Answered {
    let index = visit.index()?;
    let bar = |label: String, href: Option<String>, notes: usize| Bar {
        label,
        href,
        value: i64::try_from(notes).unwrap_or(i64::MAX),
        part: 0,
        text: count(notes, "note"),
    };
    let mut projects: Vec<_> = index.counts()?.by_project.into_iter().collect();
    projects.sort_by_key(|(project, notes)| (std::cmp::Reverse(*notes), project.clone()));
    let is_empty = projects.is_empty();
    let more = projects.len().saturating_sub(MAX_PROJECTS);
    let projects = projects.iter().take(MAX_PROJECTS).map(|(project, notes)| {
        let href = format!("/notes?project={}", encoded(project));
        bar(line(project), Some(href), *notes)
    });
    let months = index.count_by_month()?;
    let months = months.iter().rev().take(MAX_MONTHS);
    let months = months.map(|(month, notes)| bar(line(month), None, *notes));
    let main = html! {
        h1 { "Map" }
        section.card[is_empty] id="starts" data-live="notes" {
            @if !is_empty { h2 { "Notes with many links" } }
            @let starts = starts(&index)?;
            @if is_empty {
                h2 { "There are no notes yet" }
                p { "Projects and links between notes appear here with the first notes." }
            }
            @else if starts.is_empty() { p { "No recent note has a link yet." } }
            ul.links {
                @for (entry, links) in &starts {
                    li {
                        a.title href={ "/map/" (entry.id()) } {
                            bdi { (shorten(&one_line(&entry.title), 120)) }
                        }
                        " " span.hint { (count(*links, "link")) " · " bdi { (line(&entry.project)) } }
                    }
                }
            }
        }
        @if !is_empty {
            section {
                h2 { "Projects" }
                (chart::bars("Notes by project", &projects.collect::<Vec<_>>()))
                @if more > 0 { p.hint { "And " (count(more, "more project")) "." } }
            }
            section {
                h2 { "Months" }
                (chart::bars("Notes by the month in which they were made", &months.collect::<Vec<_>>()))
            }
        }
    };
    Ok(layout::page(visit, "Map", &main))
}

/// The recent notes with the most links.
fn starts(index: &Index) -> Result<Vec<(Entry, usize)>, anamnesis_app::Error> {
    let entries = index.list(&Filter::default(), RECENT)?;
    let ids: Vec<NoteId> = entries.iter().map(Entry::id).collect();
    let degrees = index.degrees(&ids)?;
    let linked = entries.into_iter().filter_map(|entry| {
        let links = degrees.get(&entry.id()).copied().unwrap_or(0);
        (links > 0).then_some((entry, links))
    });
    let mut linked: Vec<_> = linked.collect();
    linked.sort_by_key(|(entry, links)| (std::cmp::Reverse(*links), entry.id()));
    linked.truncate(MAX_STARTS);
    Ok(linked)
}

/// The notes around one.
pub(crate) fn around(visit: &Visit) -> Answered {
    let index = visit.index()?;
    let center = note::entry(visit, &index)?;
    let journal = visit.context.records()?;
    let known = known(&visit.context, &index, journal.as_ref());
    let derived = |ids: &[NoteId]| known.links(ids);
    let graph = Links {
        index: &index,
        derived: &derived,
    };
    let around = pathway::around(&graph, center.id(), DEPTH, MIN_STRENGTH)?;
    let mut entries = BTreeMap::new();
    for path in &around.paths {
        for id in &path.notes {
            if let Some(entry) = index.get(*id)? {
                entries.insert(*id, entry);
            }
        }
    }
    let main = html! {
        p { a href="/map" { "← Map" } }
        h1 { "Around " bdi { (line(&center.title)) } }
        p.actions { a.button href={ "/note/" (center.id()) } { "Open the note" } }
        @if around.paths.is_empty() {
            p { "No link leads from or to this note." }
            p.hint { code { "anamnesis connect ID ID --relation related-to" } " makes one." }
        } @else {
            div.drawing { (drawing(&center, &around.paths, &entries)) }
            h2 { (count(around.paths.len(), "note")) @if around.is_cut { ", the strongest" } }
            ol.notes { @for path in &around.paths { (item(path, &entries)) } }
        }
    };
    Ok(layout::page(visit, "Map", &main))
}

fn item(path: &Path, entries: &BTreeMap<NoteId, Entry>) -> Markup {
    let end = path.notes.last().and_then(|id| entries.get(id));
    let steps = path.notes.iter().zip(&path.edges);
    let steps = steps.map(|(from, edge)| format!("{} {}", arrow(*from, edge), edge.relation));
    let steps: Vec<String> = steps.collect();
    html! {
        @if let Some(entry) = end {
            li.note {
                div.line {
                    span class={ "kind kind-" (entry.shown_kind()) } { (entry.shown_kind()) }
                    (note_link(entry))
                }
                div.facts {
                    span { (steps.join(" ")) }
                    span { (format!("strength {:.2}", path.strength)) }
                    span { bdi { (line(&entry.project)) } }
                    a href={ "/map/" (entry.id()) } { "around it" }
                }
            }
        }
    }
}

/// The direction of a link, seen from one of its ends.
fn arrow(from: NoteId, edge: &Edge) -> char {
    if edge.relation.is_mutual() {
        '–'
    } else if edge.from == from {
        '→'
    } else {
        '←'
    }
}

/// The position of a drawn note: its row, its column and the row of the note that leads to it.
struct Position {
    id: NoteId,
    row: usize,
    column: usize,
    parent: usize,
}

/// Puts the notes in columns by their distance, each below the note that leads to it.
fn positions(center: NoteId, paths: &[Path]) -> Vec<Position> {
    let drawn: Vec<&Path> = paths.iter().take(MAX_DRAWN).collect();
    let mut positions = Vec::new();
    let mut rows = [0_usize; 3];
    let near = drawn.iter().filter(|path| path.notes.len() == 2);
    for id in near.filter_map(|path| path.notes.last()) {
        let row = rows[1].max(rows[2]);
        let at = positions.len();
        positions.push(Position {
            id: *id,
            row,
            column: 1,
            parent: 0,
        });
        let far = drawn
            .iter()
            .filter(|path| path.notes.len() == 3 && path.notes.get(1) == Some(id));
        for (place, end) in far.filter_map(|path| path.notes.last()).enumerate() {
            positions.push(Position {
                id: *end,
                row: row + place,
                column: 2,
                parent: at + 1,
            });
            rows[2] = row + place + 1;
        }
        rows[1] = row + 1;
    }
    let middle = rows[1].max(rows[2]).saturating_sub(1) / 2;
    positions.insert(
        0,
        Position {
            id: center,
            row: middle,
            column: 0,
            parent: 0,
        },
    );
    positions
}

fn drawing(center: &Entry, paths: &[Path], entries: &BTreeMap<NoteId, Entry>) -> Markup {
    let positions = positions(center.id(), paths);
    let rows = positions.iter().map(|it| it.row + 1).max().unwrap_or(1);
    let x = |it: &Position| COLUMNS[it.column];
    let y = |it: &Position| it.row * ROW + ROW / 2;
    let title = |id: &NoteId| {
        let entry = entries.get(id).unwrap_or(center);
        shorten(&one_line(&entry.title), TITLE)
    };
    html! {
        svg.map viewBox={ "0 0 " (WIDTH) " " (rows * ROW) } role="group"
            aria-label={ "The " (number(positions.len() - 1)) " strongest of the notes in the list below" } {
            @for it in positions.iter().skip(1) {
                @let from = &positions[it.parent];
                @let (start, end) = (x(from) + LINE, x(it) - 6);
                @let bend = start.midpoint(end);
                path d={ "M" (x(from)) " " (y(from)) " H" (start) " C" (bend) " " (y(from)) " "
                    (bend) " " (y(it)) " " (end) " " (y(it)) } {}
            }
            @for it in &positions {
                a href={ "/map/" (it.id) } tabindex="-1" {
                    circle.center[it.column == 0] cx=(x(it)) cy=(y(it)) r="6" {}
                    text x=(x(it) + 14) y=(y(it) - 6) { (title(&it.id)) }
                }
            }
        }
    }
}
