//! Simulates months of sessions and checks that the journal stays below its size limit and that its
//! upkeep never blocks a hook.
//!
//! Upkeep runs as in the deferred process: once a day and when the file exceeds the limit. The
//! sessions are generated from a fixed seed and stored by the product's code, but in one
//! transaction each, for speed. Only the place and size of rows matter here.

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use anamnesis_session::event::{
    FileAction, FileUse, Outcome, RecordedEvent, SessionEvent, Speaker, Surroundings, ToolEvent,
};
use anamnesis_session::prompt::{RawPrompt, SafePrompt};
use anamnesis_store::{
    fs::home::Home,
    journal::{Journal, Pruned},
    settings::config::Retention,
};
use anamnesis_text::private_tokens::PrivateTokens;
use serde_json::{Value, json};

use crate::{Result, say, target_folder};

const MIB: u64 = 1024 * 1024;

const DAY: i64 = 24 * 60 * 60 * 1000;

/// The first day, in milliseconds since 1970.
const START: i64 = 1_780_315_200_000;

/// Time limit for the journal's lock, which no other process uses.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Number of sessions between two checkpoints of the write-ahead log.
const FOLDED_SESSIONS: u32 = 25;

/// Simulate months of sessions and report the journal's size
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Number of sessions per day
    #[arg(long, value_name = "COUNT", default_value_t = 500)]
    sessions: u32,
    /// Number of days
    #[arg(long, value_name = "COUNT", default_value_t = 90)]
    days: u32,
    /// Average number of tool events per session
    #[arg(long, value_name = "COUNT", default_value_t = 25)]
    events: u64,
    /// Size limit in MiB instead of the default
    #[arg(long, value_name = "MIB")]
    ceiling: Option<u32>,
}

/// The state of the journal at the end of a day.
#[derive(Debug, Clone, Copy)]
struct Day {
    /// The file's largest size, in bytes.
    most: u64,
    /// The file's size after the last upkeep, in bytes.
    after: u64,
    /// The total result of the day's upkeep.
    pruned: Pruned,
    /// The longest duration of an upkeep.
    took: Duration,
}

impl Day {
    const NONE: Self = Self {
        most: 0,
        after: 0,
        pruned: Pruned {
            rows: 0,
            bytes: 0,
            is_full: false,
            longest: Duration::ZERO,
        },
        took: Duration::ZERO,
    };

    /// Runs the checkpoint and deletes old rows.
    fn keep_up(
        &mut self,
        journal: &Journal,
        home: &Home,
        retention: &Retention,
        now: i64,
    ) -> Result {
        let begun = Instant::now();
        let pruned = journal.prune(retention, now)?;
        self.took = self.took.max(begun.elapsed());
        journal.checkpoint()?;
        self.after = fs::metadata(home.journal())?.len();
        self.pruned = Pruned {
            rows: self.pruned.rows + pruned.rows,
            bytes: self.pruned.bytes + pruned.bytes,
            is_full: pruned.is_full,
            longest: self.pruned.longest.max(pruned.longest),
        };
        Ok(())
    }
}

/// Runs `cargo xtask retention`.
pub fn run(root: &Path, arguments: &Arguments) -> Result {
    let retention = Retention {
        ceiling_mib: (arguments.ceiling).unwrap_or(Retention::default().ceiling_mib),
        ..Retention::default()
    };
    let target = target_folder(root);
    fs::create_dir_all(&target)?;
    let folder = tempfile::Builder::new()
        .prefix("retention-")
        .tempdir_in(target)?;
    let home = Home::new(folder.path().join("store"));
    let begun = Instant::now();
    let (days, events) = play(&home, arguments, &retention)?;
    let text = report(&days, events, &retention, begun.elapsed());
    // A closed pipe is not an error.
    let _ = io::stdout().write_all(text.as_bytes());
    let ceiling = u64::from(retention.ceiling_mib) * MIB;
    if days.iter().any(|day| day.after > ceiling) {
        return Err("the journal exceeded its size limit after an upkeep".into());
    }
    Ok(())
}

/// Simulates all days. Returns the state after each, and the number of tool events.
fn play(home: &Home, arguments: &Arguments, retention: &Retention) -> Result<(Vec<Day>, u64)> {
    home.create()?;
    let journal = Journal::open(home, TIMEOUT)?;
    let mut random = Random(7);
    let mut days = Vec::new();
    let mut events = 0;
    for number in 0..arguments.days {
        let morning = START + i64::from(number) * DAY;
        let mut day = Day::NONE;
        for session_number in 0..arguments.sessions {
            let at =
                morning + i64::from(session_number) * DAY / i64::from(arguments.sessions.max(1));
            let id = format!("session-{number}-{session_number}");
            let count = 1 + random.below(arguments.events * 2);
            events += count;
            take(&journal, &id, &session(&id, at, count, &mut random))?;
            if session_number % FOLDED_SESSIONS == FOLDED_SESSIONS - 1 {
                journal.checkpoint()?;
                day.most = day.most.max(fs::metadata(home.journal())?.len());
                if journal.needs_room(retention)? {
                    day.keep_up(&journal, home, retention, at)?;
                }
            }
        }
        journal.checkpoint()?;
        day.most = day.most.max(fs::metadata(home.journal())?.len());
        day.keep_up(&journal, home, retention, morning + DAY)?;
        days.push(day);
        if number % 10 == 9 {
            say(&format!("day {} of {}", number + 1, arguments.days));
        }
    }
    Ok((days, events))
}

/// Stores a session and marks its note as written.
fn take(journal: &Journal, id: &str, records: &[SessionEvent]) -> Result {
    let at = records.last().map_or(START, |record| record.at);
    journal.in_transaction(|journal| {
        for record in records {
            journal.take(record)?;
        }
        let change = journal.session(id)?.map_or(0, |session| session.change);
        journal.noted(id, change, at)?;
        while let Some(job) = journal.lease(at)? {
            journal.done(&job, at)?;
        }
        Ok(())
    })?;
    Ok(())
}

/// Returns a session of some prompts, each with tool calls and an answer.
fn session(id: &str, start: i64, events: u64, random: &mut Random) -> Vec<SessionEvent> {
    let prompts = 1 + random.below(4);
    let mut at = start;
    let mut records = Vec::new();
    let mut add = |prompt: u64, what: RecordedEvent| {
        at += 2_000;
        records.push(SessionEvent {
            session: id.to_owned(),
            at,
            prompt_id: Some(format!("{id}-prompt-{prompt}")),
            agent: None,
            surroundings: Surroundings {
                project: Some("git.example.com/team/project".to_owned()),
                folder: Some("/home/dev/project".to_owned()),
                ..Surroundings::default()
            },
            private: false,
            echoes: Vec::new(),
            unmasked: Vec::new(),
            what,
        });
    };
    let source = "startup".to_owned();
    add(
        0,
        RecordedEvent::Started {
            source,
            model: None,
        },
    );
    let mut number = 0;
    for prompt in 1..=prompts {
        add(
            prompt,
            RecordedEvent::Prompted(
                SafePrompt::new(
                    &RawPrompt::new(random.text(60, 1_500)),
                    Some(&PrivateTokens::default()),
                )
                .value,
            ),
        );
        while number < events * prompt / prompts {
            number += 1;
            add(prompt, RecordedEvent::Used(vec![event(id, number, random)]));
        }
        add(
            prompt,
            RecordedEvent::Spoke {
                speaker: Speaker::Main,
                text: Some(random.text(100, 2_000)),
            },
        );
    }
    let reason = "other".to_owned();
    add(prompts, RecordedEvent::Ended { reason });
    records
}

/// Returns a tool call: a read, an edit or a command, which sometimes fails.
fn event(id: &str, number: u64, random: &mut Random) -> ToolEvent {
    let path = format!("src/part_{}.rs", random.below(30));
    let response = |text: String| json!({ "bytes": 20_000, "tail": text });
    let (tool, input, response, action): (&str, Value, Value, Option<FileAction>) = match random
        .below(10)
    {
        0..=3 => (
            "Read",
            json!({ "file_path": path }),
            response(random.text(200, 1_024)),
            Some(FileAction::Read),
        ),
        4..=6 => (
            "Edit",
            json!({ "file_path": path, "old_string": random.text(50, 1_500), "new_string": random.text(50, 1_500) }),
            response(random.text(200, 1_024)),
            Some(FileAction::Edited),
        ),
        _ => (
            "Bash",
            json!({ "command": format!("cargo test part_{}", random.below(30)) }),
            response(random.text(200, 1_024)),
            None,
        ),
    };
    let has_failed = tool == "Bash" && random.below(3) == 0;
    ToolEvent {
        id: format!("{id}-tool-{number}"),
        tool: tool.to_owned(),
        input: Some(input.into()),
        response: (!has_failed).then(|| response.into()),
        outcome: if has_failed {
            Outcome::Failed
        } else {
            Outcome::Ok
        },
        error: has_failed.then(|| random.text(500, 8_000)),
        duration_ms: Some(300),
        files: action
            .map(|action| FileUse { path, action })
            .into_iter()
            .collect(),
        agent: None,
        is_from_batch: false,
        many_tags: false,
    }
}

/// A linear congruential generator with a fixed seed.
struct Random(u64);

impl Random {
    /// Returns a number below `end`, which must not be 0.
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// Returns a text of `least` to `most` bytes or slightly more. Short texts are more frequent.
    fn text(&mut self, least: u64, most: u64) -> String {
        let longest = least + self.below(most - least);
        let length = least + self.below(longest - least + 1);
        let mut text = String::new();
        while (text.len() as u64) < length {
            let _ = write!(text, "word{} ", self.below(5_000));
        }
        text
    }
}

fn report(days: &[Day], events: u64, retention: &Retention, took: Duration) -> String {
    let mib = |bytes: u64| format!("{}.{}", bytes / MIB, bytes % MIB * 10 / MIB);
    let mut text = String::from(
        "  day    file, most      after  given back  rows deleted  upkeep  longest transaction\n",
    );
    for (number, day) in days.iter().enumerate() {
        if number % 10 == 9 || number + 1 == days.len() {
            let _ = writeln!(
                text,
                "{:5}  {:>7} MiB  {:>5} MiB  {:>6} MiB  {:12}  {:4.1} s  {:8.1} ms",
                number + 1,
                mib(day.most),
                mib(day.after),
                mib(day.pruned.bytes),
                day.pruned.rows,
                day.took.as_secs_f64(),
                day.pruned.longest.as_secs_f64() * 1_000.0,
            );
        }
    }
    let most = |of: fn(&Day) -> u64| days.iter().map(of).max().unwrap_or(0);
    let longest = days.iter().map(|day| day.pruned.longest).max();
    let _ = writeln!(
        text,
        "maximum: {} MiB, after an upkeep {} MiB, limit {} MiB; longest transaction {:.1} ms",
        mib(most(|day| day.most)),
        mib(most(|day| day.after)),
        retention.ceiling_mib,
        longest.unwrap_or_default().as_secs_f64() * 1_000.0,
    );
    let full = days.iter().filter(|day| day.pruned.is_full).count();
    let _ = writeln!(
        text,
        "{events} tool events; {full} days above the limit with nothing to delete; {:.0} s",
        took.as_secs_f64()
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Simulates some days with a size limit.
    fn played(days: u32, sessions: u32, ceiling: u32) -> (tempfile::TempDir, Home, Vec<Day>) {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        let arguments = Arguments {
            sessions,
            days,
            events: 20,
            ceiling: None,
        };
        let retention = Retention {
            ceiling_mib: ceiling,
            ..Retention::default()
        };
        let (days, _) = play(&home, &arguments, &retention).unwrap();
        (folder, home, days)
    }

    #[test]
    fn a_journal_stays_below_its_limit() {
        let (_folder, home, days) = played(12, 12, 2);
        assert!(
            days.iter()
                .all(|day| day.after <= 2 * MIB && !day.pruned.is_full),
            "{days:?}"
        );
        // Rows were deleted, and the file became smaller.
        let given_back: u64 = days.iter().map(|day| day.pruned.bytes).sum();
        assert!(given_back > MIB, "{days:?}");
        assert!(days.iter().any(|day| day.after < day.most));
        // Only raw records are deleted.
        let journal = Journal::open(&home, TIMEOUT).unwrap();
        let sessions = journal.sessions(None, 1_000).unwrap();
        assert_eq!(sessions.len(), 144);
        for session in &sessions {
            assert!(journal.summary(&session.id).unwrap().is_some());
        }
        let is_pruned = |id: &str| journal.session(id).unwrap().unwrap().is_pruned;
        assert!(is_pruned("session-0-0") && !is_pruned("session-11-11"));
    }

    #[test]
    fn rows_of_today_are_kept_above_the_limit() {
        let (_folder, home, days) = played(1, 60, 1);
        assert!(
            days[0].pruned.is_full && days[0].pruned.rows == 0,
            "{days:?}"
        );
        let journal = Journal::open(&home, TIMEOUT).unwrap();
        assert!(!journal.session("session-0-0").unwrap().unwrap().is_pruned);
    }
}
