//! The deferred process (`internal work`). It runs once per store, for a limited time, and exits when idle.
//!
//! All its work is found in the store: records in the spool, sessions whose client is gone, queued
//! notes, an outdated index, expired records. So a killed process loses nothing, and the next one
//! needs no message from it.

use std::time::{Duration, Instant};

use anamnesis_store::{
    former_usage,
    fs::lock::{self, Lock, Subject},
    index::{ALWAYS_CHECKED, Index},
    journal::{self, DAMAGED_DAYS, Journal, NOTE, Pruned, REFLECTION, Repair, SUMMARY},
    project::Identities,
    spool::Spool,
};
use anamnesis_sync::HeldDecision;

use crate::{
    Error, auto_reflect, capture, citation_check, claude_memory, client,
    context::Context,
    embedding,
    environment::Environment,
    evaluation::sandbox,
    evaluation_set, journal_repair, project_history, remote,
    spawn::INDEX_DAMAGED,
    spool, summary,
    sync::{self, History},
    terminal_command, upkeep,
};

/// Timeout for other writers of notes, the index or the journal. A session's last records may be in the
/// spool, and the next process may start only days later.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout for repairing the journal, and for a look at it. The next process finds the same.
const REPAIR_TIMEOUT: Duration = Duration::from_secs(2);

/// A temporary file older than this is a leftover of a killed process.
const LEFTOVER_AGE: Duration = Duration::from_secs(3600);

/// No new job starts after this time.
const MAX_TIME: Duration = Duration::from_secs(120);

/// The maximum number of jobs of one process.
const MAX_JOBS: usize = 64;

/// How long vectors of notes are made before new work is looked for, and at most.
const VECTORS_SLICE: Duration = Duration::from_secs(5);
const VECTORS_TIME: Duration = Duration::from_secs(600);

/// How often the process checks whether new work has arrived meanwhile.
const MAX_LOOKS: usize = 3;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The results of one pass.
#[derive(Debug, Default)]
pub struct Done {
    /// Records that were moved from the spool to the journal.
    pub drained: usize,
    /// Sessions that were marked as lost.
    pub lost: usize,
    /// Notes that were written.
    pub notes: usize,
    /// Records that retention removed.
    pub pruned: Pruned,
    /// Files of the trash that were deleted.
    pub trash: usize,
    /// The repair of the journal, if there was one.
    pub repair: Option<Repair>,
}

/// Runs the deferred process to its end, unless one is running. With `check`, the journal and the
/// index are checked for damage.
///
/// # Errors
/// Returns an error if the store cannot be opened or work failed. The next process tries again.
pub fn run(environment: Environment, check: bool) -> Result<(), Error> {
    let context = Context::new(environment, TIMEOUT)?;
    // A hook has created the store. If it is gone, it was deleted and must stay so. Nothing is
    // created before the lock is held.
    if !context.home.derived().is_dir() {
        return Ok(());
    }
    let mut outcome = Ok(());
    for _ in 0..MAX_LOOKS {
        let Some(held) = hold(&context, Duration::ZERO)? else {
            // The running process checks again after it has released the lock.
            break;
        };
        be_humble();
        outcome = work(&context, check);
        if outcome.is_ok() {
            context.log_error("work", embedding::follow_plugin(&context));
            make_vectors(&context);
        }
        if journal::damage_was_seen() {
            // The next run repairs it.
            journal::request_repair(&context.home);
        }
        drop(held);
        // A process that was started before the lock was released has left.
        if outcome.is_err() || !has_work(&context) {
            break;
        }
    }
    outcome
}

/// Makes vectors of notes until all have one or other work is pending. The next process continues.
fn make_vectors(context: &Context) {
    let begun = Instant::now();
    while begun.elapsed() < VECTORS_TIME && !has_work(context) {
        match embedding::make_vectors(context, VECTORS_SLICE) {
            Ok(true) => {}
            Ok(false) => break,
            Err(error) => {
                context.log(&format!("work: {}", error.message()));
                break;
            }
        }
    }
}

/// Returns whether records or jobs are pending, without the lock.
fn has_work(context: &Context) -> bool {
    let now = now(context);
    let journal = Journal::open_to_read(&context.home, REPAIR_TIMEOUT);
    let journal = journal.ok().flatten();
    !Spool::new(&context.home).is_empty()
        || journal.is_some_and(|journal| journal.has_jobs(now).unwrap_or(false))
}

fn work(context: &Context, check: bool) -> Result<(), Error> {
    for _ in 0..MAX_LOOKS {
        let done = pass(context, check, false).inspect_err(|failure| {
            context.log(&format!("work: {}", failure.text()));
        })?;
        let Some(journal) = context.journal_within(TIMEOUT) else {
            break;
        };
        let kept = terminal_command::keep(context, &journal);
        context.log_error("work: the command in bin/", kept);
        citation_check::follow(context, &journal);
        project_history::follow(context, &journal);
        if exchange(context, &journal, done.notes > 0) {
            context.log_error("work", upkeep::count_after_sync(context, &journal));
        }
        // The network may be slow. A process that was started meanwhile found the lock held and
        // left.
        if !is_called(context, &journal) && !is_sync_due(context, &journal, false) {
            break;
        }
    }
    Ok(())
}

/// Records the project keys that sessions have shown for folders. After an error, the next pass
/// retries.
fn settle_projects(context: &Context, journal: &Journal) {
    let identities = Identities::new(journal, &context.home, context.environment.now, TIMEOUT);
    context.log_error("work", identities.settle());
}

/// Takes the lock of the deferred process; `None` if another process holds it.
pub fn hold(context: &Context, timeout: Duration) -> Result<Option<Lock>, Error> {
    let folder = context.home.derived();
    lock::acquire(&context.home, Subject::Work, timeout).map_err(Error::prefixed(format_args!(
        "cannot lock {}",
        folder.display()
    )))
}

/// Does all available work. The caller holds the lock. For a person it also prunes, and repairs the
/// journal even if that failed a short time ago.
pub fn pass(context: &Context, check: bool, by_person: bool) -> Result<Done, Error> {
    let mut done = Done::default();
    // This comes first: deleting a file changes its folder, and would make the index outdated
    // again.
    context.notes.sweep(LEFTOVER_AGE);
    // A journal fault must not keep the index from being refreshed.
    let mut opened = open_journal(context, check, by_person, &mut done);
    if let Ok(journal) = &opened {
        let present = || {
            context
                .notes
                .list()
                .notes
                .into_iter()
                .map(|(path, _)| path.id)
        };
        context.log_error("work", journal.know_at_first(present));
        let adopted = former_usage::adopt(&context.home, &context.notes, journal);
        context.log_error("work", adopted);
        claude_memory::follow(context, journal);
    }
    for _ in 0..MAX_LOOKS {
        if is_damaged(context) {
            drop(opened);
            opened = open_journal(context, false, false, &mut done);
        }
        let mut kept = Ok(());
        if let Ok(journal) = &opened {
            kept = process_queue(context, journal, by_person, &mut done);
            settle_projects(context, journal);
            if has_damage(journal) {
                // Cleared before the rebuild, so that damage found from now on is kept.
                journal.set_meta(INDEX_DAMAGED, "")?;
                Index::rebuild(&context.home, &context.notes, TIMEOUT)?;
            }
        }
        refresh(context, check)?;
        if kept.is_err() && is_damaged(context) {
            continue;
        }
        kept?;
        // A process that was started meanwhile found the lock held and left.
        if !opened
            .as_ref()
            .is_ok_and(|journal| is_called(context, journal))
        {
            break;
        }
    }
    opened?.checkpoint()?;
    Ok(done)
}

/// Commits what hooks wrote, and syncs when it is due. Returns whether notes arrived from other
/// machines. Errors are recorded in the journal, not returned.
fn exchange(context: &Context, journal: &Journal, has_news: bool) -> bool {
    let done = if is_sync_due(context, journal, has_news) {
        let synced = sync::run(context, Some(journal), HeldDecision::None, Duration::ZERO);
        synced.map(|synced| synced.pulled > 0)
    } else {
        sync::commit_what_is_left(context).map(|()| false)
    };
    done.unwrap_or_else(|failure| {
        context.log(failure.text().trim_end());
        false
    })
}

/// Returns whether a sync is due: a session began or ended, or there are new notes.
fn is_sync_due(context: &Context, journal: &Journal, has_news: bool) -> bool {
    let now = now(context);
    let wanted = journal.meta(sync::WANTED).ok().flatten();
    let wanted = wanted.and_then(|time| time.parse().ok());
    context.config.sync.auto
        && remote::address(context).is_some()
        && History::load(journal).is_due(if has_news { Some(now) } else { wanted }, now)
}

/// Returns whether there is new work that can be done now.
fn is_called(context: &Context, journal: &Journal) -> bool {
    context.log_error("work", summary::queue(context, journal));
    let now = now(context);
    !Spool::new(&context.home).is_empty()
        || journal.has_jobs(now).unwrap_or(false)
        || has_damage(journal)
        || is_damaged(context)
}

/// Returns whether a hook or this process found damage in the journal that can be repaired now.
fn is_damaged(context: &Context) -> bool {
    if journal::damage_was_seen() {
        journal::request_repair(&context.home);
    }
    journal::is_repair_requested(&context.home) && !is_repair_delayed(context)
}

fn is_repair_delayed(context: &Context) -> bool {
    journal::is_repair_delayed(&context.home, context.environment.now)
}

/// Returns whether a hook found damage in the index.
fn has_damage(journal: &Journal) -> bool {
    let mark = journal.meta(INDEX_DAMAGED).ok().flatten();
    mark.is_some_and(|mark| !mark.is_empty())
}

/// Opens the journal, and repairs it if it is damaged. It is checked on request, after an error
/// that indicates damage, and once a day. After a failed repair, only a person's request repeats it at once.
fn open_journal(
    context: &Context,
    check: bool,
    by_person: bool,
    done: &mut Done,
) -> Result<Journal, Error> {
    let open = || Journal::open(&context.home, TIMEOUT);
    let is_due = |journal: &Journal| {
        let pruned = journal.meta(PRUNED).ok().flatten();
        pruned.as_deref() != Some(&today(context))
    };
    let opened = open();
    let is_wanted = check || is_damaged(context) || opened.as_ref().is_ok_and(is_due);
    if !is_wanted || !by_person && is_repair_delayed(context) {
        return Ok(opened?);
    }
    drop(opened);
    match journal_repair::repair(context, REPAIR_TIMEOUT) {
        Ok(repair) => done.repair = repair.or(done.repair.take()),
        // The rest of the work may still succeed.
        Err(error) => context.log(&format!("work: not repaired: {error}")),
    }
    Ok(open()?)
}

/// The current time, not that at which this process began: a session that ended since then has jobs.
fn now(context: &Context) -> i64 {
    context.environment.current_time().timestamp_millis()
}

fn today(context: &Context) -> String {
    context.environment.now.date_naive().to_string()
}

/// Processes queued work and prunes old records.
fn process_queue(
    context: &Context,
    journal: &Journal,
    prune: bool,
    done: &mut Done,
) -> Result<(), Error> {
    let started = Instant::now();
    let mut jobs = 0;
    // Hooks keep adding records, so the spool is checked again.
    loop {
        done.drained += spool::drain(context, journal)?;
        let now = now(context);
        for session in journal.lost_sessions(now, client::is_running)? {
            journal.give_up(&session, now)?;
            done.lost += 1;
        }
        journal.queue_due_notes(now)?;
        summary::queue(context, journal)?;
        let jobs_before = jobs;
        while jobs < MAX_JOBS
            && started.elapsed() < MAX_TIME
            && let Some(job) = journal.lease(self::now(context))?
        {
            jobs += 1;
            match job.kind.as_str() {
                SUMMARY => summary::work(context, journal, &job)?,
                REFLECTION => auto_reflect::work(context, journal, &job)?,
                NOTE => match capture::write_session(context, journal, &job.session, None) {
                    Ok(written) => {
                        if let Some((_, Some(warning))) = written {
                            context.log(&format!("work: {warning}"));
                        }
                        // The note may have been made from a later state than the job asked for.
                        journal.done(&job, now)?;
                        done.notes += 1;
                        // A reflection that is queued already uses the session's summary.
                        summary::queue(context, journal)?;
                    }
                    Err(error) => {
                        context.log(&format!("work: {error}"));
                        journal.failed(&job, error.message(), now)?;
                    }
                },
                _ => journal.failed(&job, "this version cannot do that", now)?,
            }
        }
        if jobs == jobs_before || jobs >= MAX_JOBS || started.elapsed() >= MAX_TIME {
            break;
        }
    }
    let today = today(context);
    let retention = &context.config.retention;
    if prune || journal.meta(PRUNED)?.as_deref() != Some(&today) || journal.needs_room(retention)? {
        // The time at which this pass began: its own length does not count as time that passed.
        let now = context.environment.now.timestamp_millis();
        done.pruned = if journal.trust_clock(now)? {
            expire(context, journal, done)?
        } else {
            journal.make_room(retention, now)?
        };
        sandbox::sweep(&context.home);
        context.log_error("work", forget_questions(context));
        journal.set_meta(PRUNED, &today)?;
    }
    Ok(())
}

/// Deletes what is past its term: records, files of the trash and unreadable ones.
fn expire(context: &Context, journal: &Journal, done: &mut Done) -> Result<Pruned, Error> {
    let retention = &context.config.retention;
    let now = context.environment.now;
    let pruned = journal.prune(retention, now.timestamp_millis())?;
    // Zero days means forever.
    let term = |days: u32| (days > 0).then(|| DAY * days);
    done.trash = term(retention.trash_days).map_or(0, |age| context.notes.empty_trash(age));
    let age = DAY * DAMAGED_DAYS;
    Spool::new(&context.home).forget_unreadable(age);
    journal::drop_old_quarantine(&context.home, now - age);
    Ok(pruned)
}

/// Removes evaluation questions whose notes were forgotten on another machine or by an undo.
fn forget_questions(context: &Context) -> Result<(), Error> {
    if !context.home.evaluation().exists() {
        return Ok(());
    }
    let _lock = context.notes.lock()?;
    let is_gone = |id| {
        let path = context.notes.find(id);
        path.is_some_and(|path| context.notes.is_forgotten(path))
    };
    evaluation_set::forget_notes(&context.home, is_gone)
}

/// The journal's key for the day of the last pruning.
const PRUNED: &str = "pruned";

/// Refreshes the index, or rebuilds it if it cannot be used.
fn refresh(context: &Context, check: bool) -> Result<(), Error> {
    let always = if check { usize::MAX } else { ALWAYS_CHECKED };
    let mut index = Index::in_step_with(&context.home, &context.notes, always, TIMEOUT)?;
    if check {
        index = index.checked(&context.home, &context.notes, TIMEOUT)?;
    }
    index.sweep(&context.home)?;
    Ok(index.checkpoint()?)
}

/// Lowers the priority, for the CPU and therefore for the disk.
fn be_humble() {
    #[cfg(unix)]
    {
        // A low priority, not the lowest: on a busy machine vectors of notes would take hours. If the
        // system refuses, the work continues unchanged.
        let _ = rustix::process::nice(10);
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_session::event::{RecordedEvent, SessionEvent, Surroundings};

    use super::*;
    use crate::environment::Caller;

    #[test]
    fn a_session_that_ended_after_this_process_began_gets_its_note_from_it() {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::read(Caller::Person);
        environment.store = Some(folder.path().join("store"));
        environment.user_home = Some(folder.path().to_owned());
        let ended = environment.now.timestamp_millis();
        // This process began a minute ago.
        environment.now -= Duration::from_secs(60);
        environment.started -= Duration::from_secs(60);
        let context = Context::open(environment).unwrap();
        let journal = context.journal().unwrap();
        let record = SessionEvent {
            session: "s".to_owned(),
            at: ended,
            prompt_id: None,
            agent: None,
            surroundings: Surroundings::default(),
            private: false,
            echoes: Vec::new(),
            what: RecordedEvent::Ended {
                reason: "exit".to_owned(),
            },
            unmasked: Vec::new(),
        };
        journal
            .in_transaction(|journal| journal.take(&record))
            .unwrap();
        assert!(has_work(&context));
        let mut done = Done::default();
        process_queue(&context, &journal, false, &mut done).unwrap();
        assert_eq!(done.notes, 1);
        assert!(!has_work(&context));
    }
}
