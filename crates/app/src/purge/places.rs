//! The places that a purge changes, and those that it cannot reach, in words.

use std::iter;

use anamnesis_note::note::Scope;
use anamnesis_store::journal::{Mentions, kept_files};
use anamnesis_sync::{purge::Purged, set_aside_repositories};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use super::{
    FoundText, LeftPlace, PlannedNote, PurgeOutcome, PurgePlan, left,
    search::{former_stores, linked_work_trees},
};
use crate::{
    format::{self, ago, count},
    sync,
};

/// A place that a purge changes or names, for people.
#[derive(Debug)]
pub struct FoundPlace {
    /// Its kind: `note`, `file`, `history`, `records`, `Claude` or `left`.
    pub what: &'static str,
    /// Which one, in one or two lines.
    pub text: String,
}

impl FoundPlace {
    fn new(what: &'static str, text: impl Into<String>) -> Self {
        let text = text.into();
        Self { what, text }
    }
}

impl PurgePlan<'_> {
    /// The database files that have the text only in free pages: their rows are listed already.
    pub(super) fn free_pages(&self) -> impl Iterator<Item = &String> {
        let has_rows = self.found.records.count() > 0;
        let has_notes = !self.found.files.notes.is_empty();
        let databases = self.found.databases.iter();
        databases.filter(move |name| {
            let is_journal = name.starts_with("journal.db");
            !(if is_journal { has_rows } else { has_notes })
        })
    }

    /// Returns the places that were found, including those that are left alone.
    pub fn listed(&self) -> Vec<FoundPlace> {
        let now = self.context.environment.now;
        let notes = self.notes.iter().map(|note| note_place(note, now));
        let mut listed: Vec<FoundPlace> = notes.collect();
        let FoundText {
            files,
            records,
            history,
            former,
            ..
        } = &self.found;
        let names = files.files.iter().chain(self.free_pages());
        listed.extend(names.map(|name| FoundPlace::new("file", one_line(name))));
        let names = history.others.iter().chain(&history.references);
        listed.extend(names.map(|name| FoundPlace::new("history", one_line(name))));
        if history.messages > 0 {
            let commits = count(history.messages, "commit");
            let text = format!("messages or authors of {commits}");
            listed.push(FoundPlace::new("history", text));
        }
        if records.count() > 0 {
            listed.push(FoundPlace::new("records", records_text(records)));
        }
        let commits = self.found.commits_text();
        listed.extend(commits.map(|text| FoundPlace::new("commits", text)));
        for path in former {
            let text = format!(
                "{}\na store that a restore kept aside",
                one_line(&self.context.shown(path))
            );
            listed.push(FoundPlace::new("store", text));
        }
        for path in &self.transcripts {
            let path = one_line(&self.context.shown(path));
            let text = format!("{path}\nits transcript: not ours, left alone");
            listed.push(FoundPlace::new("Claude", text));
        }
        listed.extend(self.left());
        listed
    }

    /// Returns the places that contain the text but do not belong to us.
    pub fn left(&self) -> Vec<FoundPlace> {
        let left = self.found.files.left.iter().map(|name| {
            let whose = if name == "config.json" {
                "your settings: change them yourself, with anamnesis config"
            } else {
                "not ours, left alone"
            };
            FoundPlace::new("left", format!("{}   {whose}", one_line(name)))
        });
        left.collect()
    }

    /// Returns what the person has to do after the purge.
    pub fn steps(&self, done: &PurgeOutcome) -> Vec<String> {
        let mut steps = Vec::new();
        if self.purge.needle.is_some() {
            steps.push(match (done.pushed_at, &done.remote) {
                (Some(since), Some(place)) => {
                    let lasted = lasted(since, self.context.environment.now);
                    format!("change the secret: it was on {place} for up to {lasted}")
                }
                _ => "if it is a secret, change it: it was on this disk".to_owned(),
            });
        }
        let commits = self.found.commits_text();
        steps.extend(commits.map(|text| format!("the repository still has it: {text}")));
        steps.extend(done.left.iter().map(|place| place.text.clone()));
        if !self.transcripts.is_empty() {
            steps.push("remove Claude's transcript, or let it expire".to_owned());
        }
        for note in &done.other_notes {
            steps.push(format!("#{note} has the same text: anamnesis purge {note}"));
        }
        steps
    }

    /// The places that were not reached: another purge here cannot do more.
    pub(super) fn left_places(&self, purged: &Purged) -> Vec<LeftPlace> {
        let context = self.context;
        let now = context.environment.now;
        let mut left = Vec::new();
        let machines = sync::other_machines(context);
        if self.purge.needle.is_some() && !machines.is_empty() {
            let text = format!(
                "on {} too: anamnesis purge --find   (its records are its own)",
                one_line(&machines.join(", "))
            );
            left.push(LeftPlace::new(text, None, now));
        }
        for store in iter::once(context).chain(&former_stores(context)) {
            let home = &store.home;
            let aside = set_aside_repositories(home).into_iter();
            let aside = aside.map(|path| ("repository", "rm -rf", path));
            // Its injected texts are compressed, so they cannot be searched.
            let journals = kept_files(home).into_iter();
            let journals = journals.map(|name| ("journal", "rm", home.quarantine().join(name)));
            for (what, remove, path) in aside.chain(journals) {
                let shown = one_line(&context.shown(&path));
                let text =
                    format!("a damaged {what} that was set aside may hold it: {remove} {shown}");
                left.push(LeftPlace::new(text, Some(&path), now));
            }
            for tree in linked_work_trees(home) {
                // Git keeps the commit that is checked out there.
                let paths = [&home.tree(Scope::Portable), &tree];
                let [memory, shown] = paths.map(|path| one_line(&context.shown(path)));
                let text = format!(
                    "a linked git work tree may hold it, and the history here with it; purge again \
                     after: git -C {memory} worktree remove --force {shown}"
                );
                left.push(LeftPlace::new(text, Some(&tree), now));
            }
        }
        let backups = self.journal.as_ref().map(left::backups);
        for backup in backups.unwrap_or_default() {
            let path = one_line(&context.shown(&backup.path));
            let day = format::date(backup.at);
            let (text, path) = if backup.path.exists() {
                let text = format!("the backup of {day} may hold it: rm {path}");
                (text, Some(backup.path.as_path()))
            } else {
                let text =
                    format!("the backup of {day} may hold it: delete it if {path} was moved");
                (text, None)
            };
            left.push(LeftPlace::new(text, path, now));
        }
        if let Some(reason) = &purged.remote_left {
            let remote = sync::remote(context).ok().flatten();
            let text = format!(
                "on {}, drop what is no longer named: git gc --prune=now\n        ({})",
                remote
                    .map(|remote| one_line(remote.place()))
                    .unwrap_or_default(),
                one_line(reason)
            );
            left.push(LeftPlace::new(text, None, now));
        }
        left
    }
}

fn note_place(note: &PlannedNote, now: DateTime<Utc>) -> FoundPlace {
    let history = match &note.written {
        None => "in no commit".to_owned(),
        Some(written) => {
            let commits = count(written.commits, "commit");
            match written.pushed_at {
                Some(at) => format!("{commits}, the first {}, pushed", ago(at, now)),
                None => format!("{commits}, not pushed"),
            }
        }
    };
    let title = match note.title.as_str() {
        "" => String::new(),
        title => format!(" \"{title}\""),
    };
    let text = format!("#{} {}{title} · {history}", note.short, note.kind);
    FoundPlace::new("note", text)
}

fn records_text(mentions: &Mentions) -> String {
    let (prompts, events) = (mentions.count_in("prompt"), mentions.count_in("tool_event"));
    let others = mentions.count() - prompts - events;
    let named = [
        (prompts, "prompt"),
        (events, "tool event"),
        (others, "other record"),
    ];
    let named: Vec<String> = named
        .into_iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, thing)| count(amount, thing))
        .collect();
    let sessions = match mentions.sessions.len() {
        0 => String::new(),
        1 => " of one session".to_owned(),
        many => format!(" of {}", count(many, "session")),
    };
    format!("{}{sessions}", named.join(", "))
}

/// Formats how long something has existed.
fn lasted(since: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - since).num_minutes() {
        ..1 => "a moment".to_owned(),
        minutes @ 1..60 => format!("{minutes} min"),
        minutes @ 60..2_880 => format!("{} h", minutes / 60),
        minutes => format!("{} d", minutes / 1_440),
    }
}
