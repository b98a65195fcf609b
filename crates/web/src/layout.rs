//! The frame of every page, and what pages have in common.

use std::collections::HashSet;

use anamnesis_app::{
    Error,
    error::Kind as ErrorKind,
    format::{self, shorten},
    found::{places, snippet},
};
use anamnesis_note::{
    id::NoteId,
    merge::CONFLICT_TAG,
    note::{State, parse_timestamp},
};
use anamnesis_store::index::Entry;
use anamnesis_text::{
    clean::{clean, one_line},
    terms,
};
use chrono::{DateTime, Utc};
use hyper::StatusCode;
use maud::{DOCTYPE, Markup, html};
use ulid::Ulid;

use crate::{
    answer::PageResponse,
    visit::{Params, Visit},
};

/// How many pages have a tab; the others are in a menu.
const TABS: usize = 7;

/// The field with which a form is confirmed.
pub(crate) const SURE: &str = "sure";

/// The parameters of an address that show a toast.
const DONE: &str = "done";
const CHANGE: &str = "change";
const NOTE: &str = "note";

/// The texts of toasts, by the word in the address. A text of the address is never shown.
const TOASTS: &[(&str, &str)] = &[
    ("pinned", "Pinned"),
    ("unpinned", "No longer pinned"),
    ("muted", "Muted: not injected any more"),
    ("unmuted", "No longer muted"),
    ("verified", "Noted that it is still right"),
    ("forgotten", "Forgotten"),
    ("restored", "Restored"),
    ("moved", "Moved"),
    ("tagged", "Tagged"),
    ("untagged", "Tag removed"),
    ("backfilled", "Notes of earlier sessions are here"),
    ("saved", "Saved"),
    ("written", "Written"),
    (
        "repeated",
        "Written. Another note says this, or part of it, too",
    ),
    ("linked", "Linked"),
    ("unlinked", "Link removed"),
    ("same", "Nothing changed"),
    ("undone", "Undone"),
    ("synced", "Synced with the remote"),
    ("committed", "The notes of this machine are committed"),
    ("paused", "Paused: nothing is recorded or injected there"),
    ("resumed", "Resumed"),
    ("answers", "The model answers"),
    ("left", "Nothing was undone: it has changed since"),
    ("approved", "Approved"),
    ("rejected", "Rejected"),
    ("stale", "Nothing was done: the card has changed since"),
];

/// Returns whether a parameter belongs to a toast.
pub(crate) fn is_toast(name: &str) -> bool {
    [DONE, CHANGE, NOTE].contains(&name)
}

/// Goes to a page after a write, which then says what was done and offers the undo.
pub(crate) fn done(path: &str, word: &'static str, change: Option<Ulid>) -> PageResponse {
    let change = change.map_or_else(String::new, |change| format!("&{CHANGE}={change}"));
    let sign = if path.contains('?') { '&' } else { '?' };
    PageResponse::See(format!("{path}{sign}{DONE}={word}{change}"))
}

/// Like [`done`], for notes that were forgotten without a change: the undo restores them.
pub(crate) fn done_to_restore(path: &str, word: &'static str, notes: &[NoteId]) -> PageResponse {
    let notes: String = notes.iter().map(|id| format!("&{NOTE}={id}")).collect();
    match done(path, word, None) {
        PageResponse::See(path) => PageResponse::See(path + &notes),
        other @ PageResponse::Page(..) => other,
    }
}

/// Returns a page.
pub(crate) fn page(visit: &Visit, title: &str, main: &Markup) -> PageResponse {
    PageResponse::Page(StatusCode::OK, frame(visit, title, main))
}

/// The code of an error that names what does not exist.
const MISSING: &str = "missing";

/// Returns the error for an address whose note or session does not exist.
pub(crate) fn missing(what: &str) -> Error {
    Error::failed(what).code(MISSING)
}

/// Returns the page of an error: what happened and what to do.
pub(crate) fn failed(visit: &Visit, error: &Error) -> PageResponse {
    if error.tool_code() == Some(MISSING) {
        return not_found(visit, error.message());
    }
    let status = match error.kind() {
        ErrorKind::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ErrorKind::Store | ErrorKind::Damaged => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    };
    let main = html! {
        h1 { "That did not work" }
        p.message { (clean(error.message())) }
        @if let Some(step) = error.next_step() { p { "In a terminal: " code { (clean(step)) } } }
        p { a href="/notes" { "All notes" } }
    };
    PageResponse::Page(status, frame(visit, "That did not work", &main))
}

fn not_found(visit: &Visit, what: &str) -> PageResponse {
    let main = html! {
        h1 { "Not found" }
        p { "There is no such " (what) " here. It may have been removed since." }
        p { a href="/notes" { "All notes" } }
    };
    PageResponse::Page(StatusCode::NOT_FOUND, frame(visit, "Not found", &main))
}

/// Returns the page that asks again before a form is carried out. The same form is sent with
/// [`SURE`], which [`Visit::is_confirmed`] tests.
pub(crate) fn ask(visit: &Visit, question: &str, button: &str) -> PageResponse {
    let above = visit.path.rsplit_once('/').map_or("", |(above, _)| above);
    let above = Some(above).filter(|path| (visit.is_known)(path));
    let fields = visit.form.0.iter().filter(|(name, _)| name != SURE);
    let main = html! {
        h1 { (question) }
        form method="post" action=(visit.path) {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            input type="hidden" name=(SURE) value="yes";
            p.actions {
                button.danger { (button) }
                a.button href=(visit.back(above.unwrap_or("/notes"))) { "Cancel" }
            }
        }
    };
    page(visit, question, &main)
}

fn frame(visit: &Visit, title: &str, main: &Markup) -> Markup {
    let is_note = visit.path.starts_with("/note/") || visit.path == "/";
    let here = |path: &str| {
        let is_here = visit.path == path || is_note && path == "/notes" || visit.is_below(path);
        is_here.then_some("page")
    };
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (line(title)) " · Anamnesis" }
                link rel="stylesheet" href="/viewer.css";
                link rel="icon" href="/icon.svg";
                script src="/viewer.js" defer {}
            }
            body {
                a.skip href="#main" { "Skip to the content" }
                header {
                    a.brand href="/notes" { "Anamnesis" }
                    @let (tabs, more) = visit.navigation.split_at(TABS.min(visit.navigation.len()));
                    nav aria-label="Pages" {
                        @for (path, label) in tabs {
                            a href=(path) aria-current=[here(path)] { (label) }
                        }
                        details.menu {
                            summary aria-current=[more.iter().find_map(|(path, _)| here(path))] { "More" }
                            div {
                                @for (path, label) in more {
                                    a href=(path) aria-current=[here(path)] { (label) }
                                }
                            }
                        }
                    }
                    a.find.button href="/notes" { "Find " kbd { "Ctrl K" } }
                    @if visit.is_read_only { span.chip { "read-only" } }
                }
                (toast(visit))
                // Filled and opened by the script.
                dialog id="palette" aria-label="Go to a page or a note" {
                    input type="search" placeholder="Go to a page or a note" autocomplete="off"
                        spellcheck="false" aria-label="Go to a page or a note";
                    ul {}
                    p.hint role="status" {}
                }
                main id="main" tabindex="-1" { (main) }
            }
        }
    }
}

/// Returns the toast of the last write, with its undo.
fn toast(visit: &Visit) -> Markup {
    let said = visit.query.get(DONE);
    let said = TOASTS.iter().find(|(word, _)| Some(*word) == said);
    let change = visit.query.get(CHANGE);
    let change = change.and_then(|change| Ulid::from_string(change).ok());
    let forgotten = visit.query.0.iter().filter(|(name, _)| name == NOTE);
    let forgotten = forgotten.filter_map(|(_, id)| id.parse::<NoteId>().ok());
    let forgotten: Vec<_> = forgotten.collect();
    html! {
        @if let Some((_, text)) = said {
            div.toast role="status" {
                span { (text) "." }
                @if let Some(change) = change.filter(|_| !visit.is_read_only) {
                    form method="post" action="/undo" {
                        input type="hidden" name="change" value=(change);
                        input type="hidden" name="back" value=(visit.path);
                        button data-key="u" { "Undo" }
                    }
                } @else if !forgotten.is_empty() && !visit.is_read_only {
                    form method="post" action="/review/restore" {
                        @for id in &forgotten { input type="hidden" name=(NOTE) value=(id); }
                        input type="hidden" name="back" value=(visit.path);
                        button data-key="u" { "Undo" }
                    }
                }
                a.close href=(visit.path) aria-label="Close" { "×" }
            }
        }
    }
}

/// A text as one line, safe to show.
pub(crate) use anamnesis_text::clean::one_line as line;

/// A note's title as a link.
pub(crate) fn note_link(entry: &Entry) -> Markup {
    html! {
        a.title href={ "/note/" (entry.id()) } { bdi { (shorten(&one_line(&entry.title), 200)) } }
    }
}

/// A note as a card of a list. `tail` says why it is in the list, if that is not obvious.
pub(crate) fn note_item(visit: &Visit, entry: &Entry, tail: &Markup) -> Markup {
    html! { li.note { (note_card(visit, entry, "", tail)) } }
}

/// The content of a note's card: its title, the line that has most words of the query or the first that
/// tells something, and where it is from. The words of the query are marked.
pub(crate) fn note_card(visit: &Visit, entry: &Entry, query: &str, tail: &Markup) -> Markup {
    let body = body_of(visit, entry);
    let title = line(&entry.title);
    let found = snippet(&body, query, MAX_LINE).map(|found| plain(&found));
    let found = found.filter(|found| !repeats(&title, found));
    let telling = found.or_else(|| telling_line(&body, &title));
    html! {
        a.title href={ "/note/" (entry.id()) } { bdi { (marked(&shorten(&title, 200), query)) } }
        @if let Some(telling) = telling {
            p.telling { bdi { (marked(&telling, query)) } }
        }
        div.facts {
            span class={ "kind kind-" (entry.shown_kind()) } { (entry.shown_kind()) }
            (marks(entry))
            span { bdi { (line(&entry.project)) } }
            @if entry.author() != entry.shown_kind() { span { (entry.author()) } }
            (written(entry.written_at(), visit.context.environment.now))
            (tail)
        }
    }
}

/// The longest line of a note's text on its card, in characters.
const MAX_LINE: usize = 220;

/// Returns a note's text, safe to show; empty if it cannot be read.
fn body_of(visit: &Visit, entry: &Entry) -> String {
    let stored = visit.context.notes.read(entry.path);
    let body = stored.map(|stored| stored.note().body).unwrap_or_default();
    visit.context.printable(&body)
}

/// The line of a note that tells most, on a card with this title.
pub(crate) fn telling(visit: &Visit, entry: &Entry, title: &str) -> Markup {
    html! {
        @if let Some(telling) = telling_line(&body_of(visit, entry), title) {
            p.telling { bdi { (telling) } }
        }
    }
}

/// Returns the line of a note's text that tells most: the outcome of a session, or the first one.
fn telling_line(body: &str, title: &str) -> Option<String> {
    let outcome = body
        .lines()
        .skip_while(|line| !line.starts_with("**Outcome:**"));
    let lines = outcome.chain(body.lines());
    let mut lines = lines.map(|text| line(&plain(text)));
    let found = lines.find(|text| !text.is_empty() && !repeats(title, text))?;
    Some(shorten(&found, MAX_LINE))
}

/// Returns whether a line only says what the title says, which may be its beginning.
fn repeats(title: &str, line: &str) -> bool {
    line.starts_with(title.trim_end_matches(['…', ' ']))
}

/// Removes the mark of a heading or list, the label and emphasis from the beginning of a line.
fn plain(line: &str) -> String {
    let line = line.trim().trim_start_matches(['#', '-', '>', ' ']);
    let bold = line
        .strip_prefix("**")
        .and_then(|rest| rest.split_once("**"));
    match bold {
        Some((label, rest)) if label.ends_with(':') => rest.trim_start().to_owned(),
        // The label of a part, as imports write it.
        Some((label, rest)) if rest.trim_start().starts_with(char::is_uppercase) => {
            format!("{label}:{rest}")
        }
        Some((bold, rest)) => format!("{bold}{rest}"),
        None => line.to_owned(),
    }
}

/// Marks the words of a query in a text.
pub(crate) fn marked(text: &str, query: &str) -> Markup {
    let wanted: HashSet<String> = terms::terms(query).into_iter().collect();
    let mut parts = Vec::new();
    let mut rest = 0;
    for (start, end) in places(text, &wanted) {
        if let (Some(before), Some(word)) = (text.get(rest..start), text.get(start..end)) {
            parts.push((before, word));
            rest = end;
        }
    }
    html! {
        @for (before, word) in parts { (before) mark { (word) } }
        (text.get(rest..).unwrap_or_default())
    }
}

/// The unusual states of a note.
pub(crate) fn marks(entry: &Entry) -> Markup {
    html! {
        @if entry.pinned { span.chip { "pinned" } }
        @if entry.state != State::Active { span.chip.warn { (entry.state) } }
        @if entry.superseded { span.chip.warn { "replaced" } }
        @if entry.tags.iter().any(|tag| tag == CONFLICT_TAG) { span.chip.warn { "conflict" } }
    }
}

/// A time of a note's file, as its age.
pub(crate) fn written(time: &str, now: DateTime<Utc>) -> Markup {
    html! {
        @match parse_timestamp(time) {
            Some(time) => (ago(time, now)),
            None => span { "age unknown" },
        }
    }
}

/// A time as its age.
pub(crate) fn ago(time: DateTime<Utc>, now: DateTime<Utc>) -> Markup {
    let exact = time.format("%Y-%m-%d %H:%M:%S UTC").to_string();
    html! { time datetime=(time.to_rfc3339()) title=(exact) { (format::ago(time, now)) } }
}

/// A time of the journal, as its age.
pub(crate) fn ago_ms(milliseconds: i64, now: DateTime<Utc>) -> Markup {
    ago(format::time(milliseconds), now)
}

/// A selection for a filter. The first option stands for no choice.
pub(crate) fn choice(
    name: &str,
    label: &str,
    none: &str,
    options: impl IntoIterator<Item = (String, String)>,
    chosen: Option<&str>,
) -> Markup {
    html! {
        label { span { (label) }
            select name=(name) {
                option value="" { (none) }
                @for (value, shown) in options {
                    option value=(value) selected[Some(value.as_str()) == chosen] { (shown) }
                }
            }
        }
    }
}

/// A button that sends a form with these fields.
pub(crate) fn button(action: &str, fields: &[(&str, &str)], label: &str) -> Markup {
    html! {
        form method="post" action=(action) {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            button { (label) }
        }
    }
}

/// A difference as `diff` prints it.
pub(crate) fn difference(lines: &str) -> Markup {
    html! {
        pre.diff {
            @for line in lines.lines() {
                @let class = match line.as_bytes().first() {
                    Some(b'+') => Some("added"),
                    Some(b'-') => Some("removed"),
                    Some(b'@') => Some("place"),
                    _ => None,
                };
                span class=[class] { (line) "\n" }
            }
        }
    }
}

/// Returns the number of the page of a list that the address names.
pub(crate) fn page_number(asked: &Params) -> usize {
    let page = asked.get("page").and_then(|page| page.parse().ok());
    page.unwrap_or(1_usize).clamp(1, 10_000)
}

/// How many things there are, and which page of them is shown.
pub(crate) fn amount(total: usize, thing: &str, page: usize, size: usize) -> String {
    let amount = format::count(total, thing);
    if total <= size {
        return amount;
    }
    let [page, pages] = [page, total.div_ceil(size)].map(format::number);
    format!("{amount}, page {page} of {pages}")
}

/// The links to the pages of a list before and after this one.
pub(crate) fn pager(visit: &Visit, page: usize, has_more: bool) -> Markup {
    let to = |page: usize| {
        let query = visit.query.with("page", &page.to_string());
        format!("{}?{query}", visit.path)
    };
    html! {
        @if page > 1 || has_more {
            nav.pager aria-label="More results" {
                @if page > 1 { a.button rel="prev" href=(to(page - 1)) { "← Newer" } }
                @if has_more { a.button rel="next" href=(to(page + 1)) { "Older →" } }
            }
        }
    }
}
