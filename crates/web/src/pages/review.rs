//! The notes that are pending review, one card at a time, with the decisions about them.

use anamnesis_app::{
    Error,
    context::{Context, TIMEOUT},
    diff, forget,
    format::{count, number, shorten},
    review::{self as operation, Decision, PendingDetails},
    sync::History,
};
use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_recall::review::{PendingGroup, PendingNote, PendingReason};
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
};
use anamnesis_text::clean::clean;
use maud::{Markup, html};

use super::edit::{Fields, form_of, version};
use crate::{
    layout::{self, line, note_item, note_link},
    markdown,
    visit::{Answered, Visit},
};

const PATH: &str = "/review";

/// A group of more notes than this is one card.
const MASS: usize = 10;

/// How many notes of a card of many are listed, and how many sources are.
const MAX_LISTED: usize = 50;
const MAX_SOURCES: usize = 5;

/// How many notes one button brings back.
const MAX_RESTORED: usize = 50;

/// The decisions in the form.
const APPROVE: &str = "approve";
const REJECT: &str = "reject";
const REPLACE: &str = "replace";

/// The notes of one decision: one note, or all of a large group.
struct Card<'a> {
    group: &'a PendingGroup,
    notes: &'a [PendingNote],
}

fn cards(groups: &[PendingGroup]) -> Vec<Card<'_>> {
    let mut cards = Vec::new();
    for group in groups {
        let notes = group.notes.as_slice();
        let size = if notes.len() > MASS { notes.len() } else { 1 };
        cards.extend(notes.chunks(size).map(|notes| Card { group, notes }));
    }
    cards
}

pub(crate) fn show(visit: &Visit) -> Answered {
    let context = &visit.context;
    let index = visit.index()?;
    let journal = context.records()?;
    let groups = operation::waiting(context, &index, journal.as_ref(), &[])?;
    let held = journal.and_then(|journal| History::load(&journal).held);
    let cards = cards(&groups);
    let at = visit.query.get("at").and_then(|at| at.parse().ok());
    let at = at.unwrap_or(0_usize).min(cards.len().saturating_sub(1));
    let main = html! {
        h1 { "Review" }
        @if let Some(held) = &held {
            p.message {
                "A sync needs your decision: " (clean(held)) ". In a terminal: "
                code { "anamnesis sync --accept" } " or " code { "anamnesis sync --restore" }
            }
        }
        section id="deck" {
            (deck(visit, &index, &groups, &cards, at)?)
        }
    };
    Ok(layout::page(visit, "Review", &main))
}

/// The card at a place.
fn deck(
    visit: &Visit,
    index: &Index,
    groups: &[PendingGroup],
    cards: &[Card<'_>],
    at: usize,
) -> Result<Markup, Error> {
    Ok(html! {
        @match cards.get(at) {
            None => {
                section.card {
                    h2 { "Nothing to review" }
                    p { "Proposals, conflicts between machines, notes that Claude wrote and notes
                        that may be outdated appear here, one at a time." }
                }
            }
            Some(card) => {
                div.facts {
                    span { "card " (number(at + 1)) " of " (number(cards.len())) }
                    span { (operation::counts(groups)) }
                }
                section.card.deck {
                    @match card.notes {
                        [one] => (single(visit, index, card, one, at)?),
                        many => (mass(visit, card, many, at)),
                    }
                }
                (steps(at, cards.len()))
            }
        }
    })
}

fn steps(at: usize, total: usize) -> Markup {
    let to = |at: usize| format!("{PATH}?at={at}");
    html! {
        nav.pager aria-label="Cards" {
            @if at > 0 { a.button href=(to(at - 1)) data-key="ArrowUp" { "↑ Previous" } }
            @if at + 1 < total { a.button href=(to(at + 1)) data-key="ArrowDown" { "↓ Skip" } }
        }
        p.hint.keys { "Keys: " kbd { "←" } " and " kbd { "→" } " the buttons with an arrow, "
            kbd { "e" } " edit, " kbd { "u" } " undo, " kbd { "↑" } " " kbd { "↓" } " other cards." }
    }
}

/// The card of one note.
fn single(
    visit: &Visit,
    index: &Index,
    card: &Card<'_>,
    waiting: &PendingNote,
    at: usize,
) -> Result<Markup, Error> {
    let context = &visit.context;
    let details = PendingDetails::load(context, index, waiting, card.group)?;
    let can_edit = waiting.reason != PendingReason::Forgotten && !visit.is_read_only;
    Ok(html! {
        h2 { (line(&operation::heading(context, card.group))) }
        ol.notes {
            (note_item(visit, &details.entry, &reason(waiting)))
        }
        @for reason in &waiting.stale_reasons {
            p.message { (clean(&reason.text(|id| Context::short(index, id)))) }
        }
        @match &details.note {
            None => { p.hint { "Its text is no longer kept." } }
            Some(note) => {
                (texts(context, index, note, &details)?)
                (links(context, index, note, &details)?)
                @if let (Some(other), false) = (details.replaceable, visit.is_read_only) {
                    div.actions {
                        @let label = if waiting.reason == PendingReason::Conflict {
                            "Keep this text only"
                        } else {
                            "Approve, and replace the other note"
                        };
                        (decision(&Form { word: REPLACE, other: Some(other), ..Form::one(card, at) },
                            label, None))
                    }
                }
                @if can_edit {
                    details.edit {
                        summary data-key="e" { "Edit" }
                        (form_of(note, &Fields::from_note(note), PATH))
                    }
                }
            }
        }
        (decisions(visit, card, at, details.note.as_ref().map(version).as_deref()))
        @if card.group.notes.len() > 1 && !visit.is_read_only {
            details {
                summary { "All " (count(card.group.notes.len(), "note")) " of this group" }
                div.actions {
                    @let all = |word| Form { word, count: card.group.notes.len(), ..Form::one(card, at) };
                    (decision(&all(REJECT), "Reject all", None))
                    (decision(&all(APPROVE), "Approve all", None))
                }
            }
        }
    })
}

/// Why a note is pending, unless its card says so already.
fn reason(waiting: &PendingNote) -> Markup {
    use PendingReason::{Conflict, Forgotten, Proposal};
    html! {
        @if !matches!(waiting.reason, Proposal | Conflict | Forgotten) {
            span.chip.warn { (operation::word(waiting.reason)) }
        }
    }
}

fn entries(index: &Index, ids: &[NoteId]) -> Result<Vec<Entry>, Error> {
    let found = ids.iter().filter_map(|id| index.get(*id).transpose());
    Ok(found.collect::<Result<_, _>>()?)
}

fn read(context: &Context, entry: &Entry) -> Option<Note> {
    Some(context.notes.read(entry.path).ok()?.note())
}

/// The text of a note beside the texts of similar notes and other versions, and what it changes.
fn texts(
    context: &Context,
    index: &Index,
    note: &Note,
    details: &PendingDetails,
) -> Result<Markup, Error> {
    let (says, others) = match &details.similar {
        Some((says, id)) => (*says, entries(index, &[*id])?),
        None => ("", entries(index, &details.beside)?),
    };
    Ok(html! {
        div.beside {
            section {
                @if !others.is_empty() { h3 { "This note" } }
                div.text { (markdown::render(context, &note.body)) }
            }
            @for other in &others {
                section {
                    h3 {
                        @if says.is_empty() { "The other text: " } @else { "It " (says) " " }
                        (note_link(other))
                    }
                    @if let Some(other) = read(context, other) {
                        div.text { (markdown::render(context, &other.body)) }
                    }
                }
            }
        }
        @if let Some(before) = &details.before {
            h3 { "What it changes" }
            (layout::difference(&diff::between(before, note)))
        }
    })
}

/// The notes that a note replaces, and those that it was made from, each with its closest line.
fn links(
    context: &Context,
    index: &Index,
    note: &Note,
    details: &PendingDetails,
) -> Result<Markup, Error> {
    let sources = entries(index, &details.sources)?;
    let closest_in = |entry| closest(note, &read(context, entry)?);
    Ok(html! {
        @if !details.replaced.is_empty() {
            h3 { "Replaces" }
            ul.links {
                @for entry in &entries(index, &details.replaced)? { li { (note_link(entry)) } }
            }
        }
        @if !sources.is_empty() {
            h3 { "Made from" }
            ul.links {
                @for entry in sources.iter().take(MAX_SOURCES) {
                    li {
                        (note_link(entry))
                        @if let Some(source) = closest_in(entry) {
                            blockquote { (context.printable(&source)) }
                        }
                    }
                }
            }
            @if sources.len() > MAX_SOURCES {
                p.hint { "and " (number(sources.len() - MAX_SOURCES)) " more" }
            }
        }
    })
}

/// The line of a source that shares the most words with a note.
fn closest(note: &Note, source: &Note) -> Option<String> {
    let words = |text: &str| -> std::collections::BTreeSet<String> {
        let words = text.split(|letter: char| !letter.is_alphanumeric());
        let words = words.filter(|word| word.chars().count() > 3);
        words.map(str::to_lowercase).collect()
    };
    let wanted = words(&format!("{} {}", note.title, note.body));
    let shared = |line: &&str| words(line).intersection(&wanted).count();
    let best = source.body.lines().max_by_key(shared)?;
    (shared(&best) > 1).then(|| shorten(&line(best), 300))
}

/// The card of many notes from one operation.
fn mass(visit: &Visit, card: &Card<'_>, notes: &[PendingNote], at: usize) -> Markup {
    let context = &visit.context;
    html! {
        h2 { (line(&operation::heading(context, card.group))) }
        ol.notes {
            @for waiting in notes.iter().take(MAX_LISTED) {
                @let entry = operation::shown_entry(context, waiting);
                @let why = waiting.stale_reasons.first();
                (note_item(visit, &entry, &html! {
                    (reason(waiting))
                    @if let Some(why) = why { span { (clean(&why.text(NoteId::short))) } }
                }))
            }
        }
        @if notes.len() > MAX_LISTED {
            p.hint { "and " (number(notes.len() - MAX_LISTED)) " more" }
        }
        (decisions(visit, card, at, None))
    }
}

fn decisions(visit: &Visit, card: &Card<'_>, at: usize, seen: Option<&str>) -> Markup {
    let [approve, reject] = match card.notes {
        [one] => operation::choices(one.reason),
        _ => ["Approve all", "Reject all"],
    };
    let form = |word| Form {
        word,
        count: card.notes.len(),
        seen: seen.map(str::to_owned),
        ..Form::one(card, at)
    };
    html! {
        @if !visit.is_read_only {
            div.actions.choice {
                (decision(&form(REJECT), &format!("← {reject}"), Some("ArrowLeft")))
                (decision(&form(APPROVE), &format!("{approve} →"), Some("ArrowRight")))
            }
        }
    }
}

/// The fields of a decision. The count and the hash tell whether the card changed meanwhile.
struct Form<'a> {
    card: &'a Card<'a>,
    at: usize,
    word: &'static str,
    count: usize,
    seen: Option<String>,
    other: Option<NoteId>,
}

impl<'a> Form<'a> {
    fn one(card: &'a Card<'a>, at: usize) -> Self {
        Self {
            card,
            at,
            word: APPROVE,
            count: 1,
            seen: None,
            other: None,
        }
    }
}

fn decision(form: &Form<'_>, label: &str, key: Option<&str>) -> Markup {
    html! {
        @if let Some(first) = form.card.notes.first() {
            form method="post" action="/review/decide" {
                input type="hidden" name="decision" value=(form.word);
                input type="hidden" name="note" value=(first.entry.id());
                input type="hidden" name="count" value=(form.count);
                input type="hidden" name="at" value=(form.at);
                input type="hidden" name="back" value=(PATH);
                @if let Some(seen) = &form.seen { input type="hidden" name="seen" value=(seen); }
                @if let Some(other) = form.other { input type="hidden" name="other" value=(other); }
                button data-key=[key] { (label) }
            }
        }
    }
}

/// Applies a decision to a card.
pub(crate) fn decide(visit: &Visit) -> Answered {
    let (context, form) = (&visit.context, &visit.form);
    let id = form.get("note").and_then(|id| id.parse::<NoteId>().ok());
    let wanted: usize = form.get("count").and_then(|n| n.parse().ok()).unwrap_or(1);
    let other = form.get("other").and_then(|id| id.parse().ok());
    let decision = match (form.get("decision").unwrap_or_default(), other) {
        (APPROVE, _) => Decision::Approve,
        (REJECT, _) => Decision::Reject,
        (REPLACE, Some(other)) if wanted == 1 => Decision::Replace(other),
        _ => return Err(Error::usage("the form names no decision about a note")),
    };
    let at: usize = form.get("at").and_then(|at| at.parse().ok()).unwrap_or(0);
    let path = format!("{PATH}?at={at}");
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let index = visit.index()?;
    let groups = operation::waiting(context, &index, Some(&journal), &[])?;
    drop(index);
    let is_it = |waiting: &&PendingNote| Some(waiting.entry.id()) == id;
    let group = groups
        .iter()
        .find(|group| group.notes.iter().any(|one| is_it(&one)));
    let notes: Vec<&PendingNote> = group.map_or_else(Vec::new, |group| {
        let all = group.notes.iter();
        all.filter(|one| wanted > 1 || is_it(one)).collect()
    });
    let is_seen = |waiting: &&PendingNote| {
        let now = context.notes.read(waiting.entry.path).ok();
        let now = now.map(|stored| version(&stored.note()));
        waiting.reason == PendingReason::Forgotten || now.as_deref() == form.get("seen")
    };
    if notes.is_empty()
        || notes.len() != wanted
        || form.get("seen").is_some() && !notes.iter().all(is_seen)
    {
        return Ok(layout::done(&path, "stale", None));
    }
    let is_rejection = decision == Decision::Reject;
    if notes.len() > 1 && !visit.is_confirmed() {
        let verb = if is_rejection { "Reject" } else { "Approve" };
        let question = format!("{verb} {}?", count(notes.len(), "note"));
        return Ok(layout::ask(visit, &question, &format!("{verb} them")));
    }
    let change = operation::decide(context, &journal, &notes, decision)?;
    let is_forgotten = |waiting: &&&PendingNote| waiting.reason != PendingReason::Forgotten;
    let forgotten: Vec<NoteId> = notes
        .iter()
        .filter(|waiting| is_rejection && is_forgotten(waiting))
        .map(|waiting| waiting.entry.id())
        .collect();
    // Notes of this machine only have no change to undo.
    if change.is_none() && !forgotten.is_empty() && forgotten.len() <= MAX_RESTORED {
        return Ok(layout::done_to_restore(&path, "rejected", &forgotten));
    }
    let word = if is_rejection { "rejected" } else { "approved" };
    Ok(layout::done(&path, word, change))
}

/// Brings back notes that a decision made forgotten.
pub(crate) fn restore(visit: &Visit) -> Answered {
    let named = visit.form.0.iter().filter(|(name, _)| name == "note");
    let ids = named.filter_map(|(_, id)| id.parse::<NoteId>().ok());
    for id in ids.take(MAX_RESTORED) {
        forget::restore(&visit.context, &id.to_string())?;
    }
    Ok(layout::done(&visit.back(PATH), "restored", None))
}
