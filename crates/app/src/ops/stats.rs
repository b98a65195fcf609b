//! Counts how injected notes were used on this machine.

use std::{cmp::Reverse, collections::BTreeMap};

use anamnesis_note::{
    id::NoteId,
    note::{Rating, State},
};
use anamnesis_recall::{reason::WithholdingReason, usefulness::may_suggest_muting};
use anamnesis_store::{
    index::{Filter, Index},
    journal::{HookRuns, Journal, NoteReport, Report},
};
use schemars::JsonSchema;
use serde::Serialize;

use super::note::Named;
use crate::{
    Error,
    context::{Context, TIMEOUT},
};

const DAY: i64 = 24 * 60 * 60 * 1000;

/// Use of injected notes on this machine
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct UsageCounts {
    /// The number of days that are counted.
    #[schemars(description = "")]
    pub days: u32,
    /// The number of prompts.
    #[schemars(description = "")]
    pub prompts: usize,
    /// Searches for notes to inject
    pub searches: usize,
    /// Searches without a match
    pub silent: usize,
    /// Searches by words alone, because the prompt got no vector in time
    pub without_meaning: usize,
    /// Notes injected with prompts
    pub injected: usize,
    /// Sessions that got a note, summed over the notes
    pub shown: usize,
    /// Of these, sessions that used the note
    pub used: usize,
    /// Notes withheld because the session had them
    pub repeats: usize,
}

impl UsageCounts {
    /// Counts the use of the last days.
    pub fn load(context: &Context, days: u32) -> Result<Self, Error> {
        let since = context.environment.now.timestamp_millis() - i64::from(days) * DAY;
        let report = context.records()?;
        let report = report.map(|records| records.usage_report(since, &[]));
        let report = report.transpose()?;
        Ok(report.map_or_else(Self::default, |report| Self::new(&report, days)))
    }

    fn new(report: &Report, days: u32) -> Self {
        let repeats = report.held.get(WithholdingReason::GivenBefore.as_str());
        Self {
            days,
            prompts: report.prompts,
            searches: report.asked,
            silent: report.silent,
            without_meaning: report.without_meaning,
            injected: report.given,
            shown: report.notes.values().map(|note| note.sessions).sum(),
            used: report.notes.values().map(|note| note.used).sum(),
            repeats: repeats.copied().unwrap_or(0),
        }
    }
}

/// How injected notes were used.
#[derive(Debug, Serialize)]
pub struct Stats {
    /// Counts of prompts and notes.
    #[serde(flatten)]
    pub counts: UsageCounts,
    /// The number of searches that injected at least one note.
    pub matched: usize,
    /// How often notes were injected, at starts and tools, too.
    pub injected: usize,
    /// The number of sessions.
    pub sessions: usize,
    /// The injected pointers.
    pub pointers: Pointers,
    /// The injected commits of the project's history.
    pub commits: usize,
    /// The number of injected texts, and about how many tokens they have.
    pub texts: usize,
    /// See `texts`.
    pub tokens: usize,
    /// The number of muted notes.
    pub muted: usize,
    /// Advice from the figures.
    pub advice: Vec<Advice>,
    /// How often notes were withheld, by reason.
    pub held: BTreeMap<String, usize>,
    /// The ratings of notes.
    pub feedback: Ratings,
    /// The times of hooks.
    pub hooks: Vec<HookRuns>,
    /// Notes that were used, most used first.
    pub most_used: Vec<UsedNote>,
    /// Notes that were injected often and never used, most injected first.
    pub never_used: Vec<UsedNote>,
}

/// How many pointers were injected, and how many of these notes were then read.
#[derive(Debug, Serialize)]
pub struct Pointers {
    /// Injected pointers.
    pub given: usize,
    /// Those whose note was read with `memory_get`.
    pub opened: usize,
}

/// A sentence of advice and the command for it.
#[derive(Debug, Serialize)]
pub struct Advice {
    /// Why.
    pub text: &'static str,
    /// The command to run.
    pub command: &'static str,
}

/// How many notes have a rating.
#[derive(Debug, Serialize)]
pub struct Ratings {
    /// Notes that helped.
    pub good: usize,
    /// Notes that were wrong or in the way.
    pub bad: usize,
}

/// How a note was used.
#[derive(Debug, Serialize)]
pub struct UsedNote {
    /// The note.
    #[serde(flatten)]
    pub note: Named,
    /// The number of sessions that got it.
    pub given: usize,
    /// The number of these that used it.
    pub used: usize,
}

/// Counts the use of notes of one project, or of all. Each list has at most `limit` notes.
pub fn stats(
    context: &Context,
    days: u32,
    project: Option<&str>,
    limit: usize,
) -> Result<Stats, Error> {
    let index = context.index()?;
    let journal = Journal::open(&context.home, TIMEOUT)?;
    let now = context.environment.now;
    let projects = context.keys(project)?;
    let since = now.timestamp_millis() - i64::from(days) * DAY;
    let report = journal.usage_report(since, &projects)?;
    let counts = UsageCounts::new(&report, days);
    let is_ignored = |note: &NoteReport| {
        let count = |count| u64::try_from(count).unwrap_or(u64::MAX);
        note.used == 0 && may_suggest_muting(count(note.injections), count(note.sessions))
    };
    let matched = counts.searches.saturating_sub(counts.silent);
    let never_used = ranked(&index, &report.notes, limit, is_ignored)?;
    let ((feedback, muted), (texts, characters)) = (ratings(&index, &projects)?, report.blocks);
    let (given, opened) = report.pointers;
    Ok(Stats {
        matched,
        sessions: report.sessions,
        pointers: Pointers { given, opened },
        commits: report.commits,
        texts,
        tokens: characters.div_ceil(4),
        muted,
        advice: advice(&counts, matched, !never_used.is_empty()),
        injected: report.notes.values().map(|note| note.injections).sum(),
        feedback,
        // A hook's time does not depend on the project.
        hooks: if projects.is_empty() {
            journal.hook_runs(now)?
        } else {
            Vec::new()
        },
        most_used: ranked(&index, &report.notes, limit, |note| note.used > 0)?,
        never_used,
        held: report.held,
        counts,
    })
}

/// Returns what the figures suggest.
fn advice(counts: &UsageCounts, matched: usize, has_unused: bool) -> Vec<Advice> {
    // Shares of fewer than 50 prove nothing; below a tenth is rare.
    let is_rare = |part: usize, whole: usize| whole >= 50 && part * 10 < whole;
    let all = [
        (
            has_unused,
            "Notes that are injected often and never used cost tokens: mute or shorten them.",
            "anamnesis mute ID   |   anamnesis edit ID",
        ),
        (
            is_rare(counts.used, counts.shown),
            "Few of the injected notes are used. Fewer at a time may do:",
            "anamnesis config set recall.notes 2",
        ),
        (
            is_rare(matched, counts.searches),
            "Few prompts find a note. Notes of earlier sessions may help:",
            "anamnesis backfill --everywhere   |   anamnesis prove",
        ),
    ];
    let all = all.into_iter().filter(|(holds, ..)| *holds);
    all.map(|(_, text, command)| Advice { text, command })
        .collect()
}

/// Counts the ratings, and the muted notes.
fn ratings(index: &Index, projects: &[String]) -> Result<(Ratings, usize), Error> {
    let filter = Filter {
        projects: projects.to_vec(),
        with_superseded: true,
        ..Filter::default()
    };
    let entries = index.list(&filter, usize::MAX)?;
    let count = |rating| {
        let rated = entries.iter().filter(|entry| entry.rating == Some(rating));
        rated.count()
    };
    let muted = entries.iter().filter(|entry| entry.state == State::Muted);
    let ratings = Ratings {
        good: count(Rating::Good),
        bad: count(Rating::Bad),
    };
    Ok((ratings, muted.count()))
}

/// The most used of the chosen notes, then those that were injected most; ties by id.
fn ranked(
    index: &Index,
    notes: &BTreeMap<NoteId, NoteReport>,
    limit: usize,
    is_chosen: impl Fn(&NoteReport) -> bool,
) -> Result<Vec<UsedNote>, Error> {
    let chosen = notes.iter().filter(|(_, note)| is_chosen(note));
    let mut chosen: Vec<_> = chosen.collect();
    chosen.sort_by_key(|(id, note)| (Reverse((note.used, note.sessions)), **id));
    let mut ranked = Vec::new();
    for (id, note) in chosen {
        if ranked.len() == limit {
            break;
        }
        // Notes that were forgotten since are not listed.
        let entry = index.get(*id)?;
        let entry = entry.filter(|entry| entry.state != State::Forgotten);
        ranked.extend(entry.map(|entry| UsedNote {
            note: entry.into(),
            given: note.sessions,
            used: note.used,
        }));
    }
    Ok(ranked)
}
