//! SessionStart: injects the working set, and prints one line for the person.

use anamnesis_app::{
    claude_memory, context::Context, doctor, journal_repair, project, project_history, recall,
    reflect, sync::History,
};
use anamnesis_note::{
    id::NoteId,
    note::{Note, Source, parse_timestamp},
};
use anamnesis_recall::{
    render::{self, Block, Chosen, Level, Reason},
    session_start::{self, DEFAULT_K, Request, WorkingSet},
    standing,
};
use anamnesis_session::hook::StartSource;
use anamnesis_store::{
    index::Index,
    journal::{INHERITED, Journal, Ledger, ShownNote},
    notes::Notes,
    project::Project,
    settings::config::SessionLine,
};
use anamnesis_text::{clean::one_line, hash::text_hash, truncate};

use super::{Handled, Hook, shown};
use crate::ui;

/// The key in `meta` of the repair that the person was told about.
const REPAIR_TOLD: &str = "repair_told";

/// The key in `meta` of the day on which the person was told of sessions to distil, and of the projects
/// of these sessions, in lines.
const REFLECT_TOLD: &str = "reflect_told";

/// The longest line for the person, in characters.
const MAX_LINE_LENGTH: usize = 100;

impl Hook {
    /// Injects the working set, and returns one line for the person.
    pub(super) fn session_start(
        &self,
        source: StartSource,
        idle_seconds: Option<i64>,
        handled: &mut Handled,
    ) {
        handled.empties_context = matches!(
            source,
            StartSource::Startup | StartSource::Clear | StartSource::Compact
        );
        let project = self.project();
        let opened = recall::open_index(&self.context, project);
        let is_partial = opened.as_ref().is_ok_and(|(_, is_partial)| *is_partial);
        let index = opened.as_ref().ok().map(|(index, _)| index);
        let (chosen, block) = if let Some(index) = index {
            handled.start_work = is_partial || index.is_behind(&self.context.notes);
            let history = self.session_of_history(source, idle_seconds);
            let history = history.as_deref();
            self.working_set(index, project, source, history, handled)
        } else {
            // There is no index, or it must be rebuilt. The deferred process does that.
            handled.start_work = true;
            (Vec::new(), Block::default())
        };
        if let Some(program) = &self.context.environment.program {
            let program = program.display().to_string();
            handled.meta.push((doctor::HOOK_PROGRAM, program));
        }
        handled.start_work |= is_beginning(source)
            && (self.journal.as_ref())
                .is_ok_and(|journal| project_history::is_unread(journal, self.project()));
        if is_beginning(source) && self.context.environment.is_interactive {
            let complete = index.filter(|_| !is_partial);
            let said = self.session_line(&chosen, &block, complete, handled);
            let partial = "the index is being rebuilt; only this project's newest notes were read";
            handled.answer.system_message =
                said.map(|text| if is_partial { line(partial) } else { text });
        }
        if !block.text.is_empty() {
            if is_partial {
                handled.add_context(recall::PARTIAL);
            }
            handled.add_context(&block.text);
        }
    }

    pub(super) fn working_set(
        &self,
        index: &Index,
        project: &Project,
        source: StartSource,
        history: Option<&str>,
        handled: &mut Handled,
    ) -> (Vec<Chosen>, Block) {
        let journal = self.journal.as_ref().ok();
        let request = Request {
            project: &project.key,
            also: &project.also,
            k: DEFAULT_K,
            session: (source == StartSource::Compact).then_some(self.session_id.as_str()),
            resumed: history,
            folder: Some(&self.folder),
            now: self.context.environment.now,
            had: &claude_memory::copies(journal, &project.key),
            journal,
        };
        let notes = &self.context.notes;
        let WorkingSet {
            mut chosen,
            said,
            failing,
        } = match session_start::working_set(index, notes, &request) {
            Ok(set) => set,
            Err(error) => {
                handled.index_failed(&error);
                handled.errors.push(error.to_string());
                WorkingSet::default()
            }
        };
        if let Some(history) = history {
            // Notes that were injected earlier are still in the session's history.
            let ledger = self.ledger(history, "");
            if history != self.session_id {
                let inherited = inherited(index, notes, history, &ledger);
                handled.given.push((INHERITED, inherited));
            }
            chosen.retain(|chosen| {
                let seen = ledger.get(&chosen.note.id);
                !seen
                    .is_some_and(|seen| seen.with_text && seen.hash == text_hash(&chosen.note.body))
            });
        }
        for chosen in &mut chosen {
            let remark = project.remark_on(&chosen.note.project);
            chosen.remarks.extend(remark);
        }
        let block = render::start_block(&chosen, &said, &failing, request.now, |id| {
            Context::short(index, id)
        });
        let mut given = shown(&chosen, &block);
        for known in said {
            if given.iter().all(|shown| shown.note != known.note) {
                let level = Level::Name.as_str();
                given.push(ShownNote::new(
                    known.note,
                    known.hash,
                    level,
                    standing::REASON,
                ));
            }
        }
        handled.given.push(("start", given));
        (chosen, block)
    }

    /// The session whose history this one begins with: itself, if it is resumed, or the one that it
    /// was forked from.
    ///
    /// The client does not name that one, but tells how long ago it was answered.
    fn session_of_history(&self, source: StartSource, idle_seconds: Option<i64>) -> Option<String> {
        match source {
            StartSource::Resume => Some(self.session_id.clone()),
            StartSource::Fork => {
                let now = self.context.environment.now.timestamp_millis();
                let answered = now.checked_sub(idle_seconds?.checked_mul(1000)?)?;
                let keys = self.project().all_keys();
                self.journal
                    .as_ref()
                    .ok()?
                    .answered_at(&keys, answered)
                    .ok()?
            }
            _ => None,
        }
    }

    /// The line for the person: the first one that applies.
    pub(super) fn session_line(
        &self,
        chosen: &[Chosen],
        block: &Block,
        index: Option<&Index>,
        handled: &mut Handled,
    ) -> Option<String> {
        let journal = self.journal.as_ref().ok()?;
        let now = self.context.environment.now;
        let setting = self.context.config.session_line;
        if setting == SessionLine::Off {
            return None;
        }
        let today = now.date_naive().to_string();
        let was_told = |key| journal.meta(key).ok().flatten().as_deref() == Some(&today);
        // An open task is only named, not injected as text.
        let is_given = |chosen: &&Chosen| chosen.reason != Reason::OpenTask;
        let notes_given = chosen.iter().filter(is_given).count();
        let (problem, told) = self.problem(journal, notes_given);
        if let Some(problem) = problem
            && !was_told("problem_told")
        {
            handled.meta.push(("problem_told", today));
            handled.meta.extend(told.map(|of| (REPAIR_TOLD, of)));
            return Some(line(&problem));
        }
        if setting == SessionLine::Problems {
            return None;
        }
        if journal.meta("greeted").ok()?.is_none() {
            handled.meta.push(("greeted", today));
            let store = self.context.shown(self.context.home.root());
            return Some(line(&format!(
                "sessions are noted in {store} from now on · /memory-status · /memory-setup"
            )));
        }
        if let Some(renamed) = self.renamed_line(journal, index, chosen) {
            return Some(line(&renamed));
        }
        if block.text.is_empty() {
            return None;
        }
        let count = match notes_given {
            0 => ui::count(chosen.len(), "open task"),
            notes => ui::count(notes, "note"),
        };
        let project = self.project();
        // Once a day for each project, because it is read at every start.
        let told = journal.meta(REFLECT_TOLD).ok().flatten();
        let told = told
            .filter(|told| told.starts_with(&today))
            .unwrap_or(today);
        let undistilled = index
            .filter(|_| !told.lines().any(|key| key == project.key))
            .and_then(|index| reflect::undistilled(index, journal, &project.own_keys()));
        let end = if let Some(sessions) = undistilled {
            let told = format!("{told}\n{}", project.key);
            handled.meta.push((REFLECT_TOLD, told));
            // The time of the last session would leave too little room.
            format!(" · {}", reflect::reminder(sessions))
        } else {
            let last = last_session(chosen, &self.context, now);
            format!("{last} · /memory-why")
        };
        Some(line(&format!(
            "{count} (~{} tokens){end}",
            ui::number(block.tokens())
        )))
    }

    /// The first problem that a person should know of, and the repair that it tells of.
    fn problem(&self, journal: &Journal, notes: usize) -> (Option<String>, Option<String>) {
        let now = self.context.environment.now;
        if let Some((of, line)) = repair_line(journal) {
            return (Some(line), Some(of));
        }
        let ignored = self.context.environment.ignored_in_sessions();
        let ignored = || {
            Some(format!(
                "{} is ignored · anamnesis doctor",
                ignored.first()?
            ))
        };
        let sync = || {
            sync_line(journal, now).map(|problem| match notes {
                0 => problem,
                count => format!("{} · {problem}", ui::count(count, "note")),
            })
        };
        (
            problem_line(journal, now).or_else(ignored).or_else(sync),
            None,
        )
    }

    /// The hint that the notes of a project without notes may have another key.
    fn renamed_line(
        &self,
        journal: &Journal,
        index: Option<&Index>,
        chosen: &[Chosen],
    ) -> Option<String> {
        let project = self.project();
        let own = project.all_keys();
        let mut chosen = chosen.iter();
        if chosen.any(|chosen| own.contains(&chosen.note.project)) {
            return None;
        }
        let index = index?;
        let keys = index.projects().ok()?;
        if own.iter().any(|key| keys.contains(key)) {
            return None;
        }
        let (other, _) = project::looks_like(journal, project, &self.folder, keys.iter())?;
        // The list has the command that merges them, which may be longer than this line.
        let hint = format!("looks like {other}, which has notes · anamnesis project list");
        keys.contains(&other).then_some(hint)
    }
}

/// Returns the notes in the history of a forked session: those that were injected there, and that
/// session's own note.
fn inherited(index: &Index, notes: &Notes, history: &str, ledger: &Ledger) -> Vec<ShownNote> {
    let shown = |note: NoteId, hash: String, level: Level| {
        let reason = "in the history of the session that this one was forked from";
        ShownNote::new(note, hash, level.as_str(), reason)
    };
    let own = NoteId::of_session(history);
    let entry = index.get(own).ok().flatten();
    let own = entry
        .and_then(|entry| notes.read(entry.path).ok())
        .map(|stored| shown(own, text_hash(&stored.note().body), Level::Body));
    let seen = ledger.iter().map(|(note, seen)| {
        let level = if seen.with_text {
            Level::Body
        } else {
            Level::Name
        };
        shown(*note, seen.hash.clone(), level)
    });
    own.into_iter().chain(seen).collect()
}

/// Returns whether a session begins with an empty context.
pub(super) fn is_beginning(source: StartSource) -> bool {
    matches!(source, StartSource::Startup | StartSource::Clear)
}

/// The name of the last repair and its line for the person; `None` if there was no repair, or the
/// person was told.
pub(super) fn repair_line(journal: &Journal) -> Option<(String, String)> {
    let repair = journal.last_repair().ok()??;
    if journal.meta(REPAIR_TOLD).ok()?.as_ref() == Some(&repair.kept) {
        return None;
    }
    let line = format!(
        "journal.db was damaged: {}; it is kept in quarantine/",
        journal_repair::rows_saved(&repair)
    );
    Some((repair.kept, line))
}

/// The line about recent faults, if there are any.
pub(super) fn problem_line(
    journal: &Journal,
    now: chrono::DateTime<chrono::Utc>,
) -> Option<String> {
    let runs = journal.hook_runs(now).ok()?;
    let failing: Vec<&str> = runs
        .iter()
        .filter(|run| run.is_failing)
        .map(|run| run.event.as_str())
        .collect();
    (!failing.is_empty()).then(|| {
        format!(
            "recording failed at {} · anamnesis doctor",
            failing.join(", ")
        )
    })
}

/// The line about a sync that is held back, or has been failing for at least a day.
pub(super) fn sync_line(journal: &Journal, now: chrono::DateTime<chrono::Utc>) -> Option<String> {
    let history = History::load(journal);
    if let Some(held) = &history.held {
        return Some(format!(
            "the sync needs your decision: {held} · anamnesis sync"
        ));
    }
    let since = ui::time(history.failing_since?);
    let days = (now - since).num_days();
    (days >= 1).then(|| {
        let error = history.error.unwrap_or_default();
        let days = ui::count(usize::try_from(days).unwrap_or(0), "day");
        format!("not synced for {days}: {error} · anamnesis doctor")
    })
}

/// The time and machine of the project's last session, if the working set has one.
pub(super) fn last_session(
    chosen: &[Chosen],
    context: &Context,
    now: chrono::DateTime<chrono::Utc>,
) -> String {
    let newest = chosen
        .iter()
        .map(|chosen| &chosen.note)
        .filter(|note| note.source == Source::SessionEnd)
        .filter_map(|note: &Note| Some((parse_timestamp(&note.updated_at)?, note)))
        .max_by_key(|(time, _)| *time);
    let Some((time, note)) = newest else {
        return String::new();
    };
    let place = if note.machine_id == context.machine_id() {
        String::new()
    } else {
        format!(" on {}", note.machine_id)
    };
    format!(" · last session {}{place}", ui::ago(time, now))
}

/// Returns a line for the person. A long one is cut before its commands, which are at its end.
pub(super) fn line(text: &str) -> String {
    let text = one_line(&format!("anamnesis: {text}"));
    let commands = text.find(" · /memory-").or_else(|| text.rfind(" · "));
    let (said, commands) = text.split_at(commands.unwrap_or(text.len()));
    let room = MAX_LINE_LENGTH.saturating_sub(commands.chars().count());
    format!("{}{commands}", truncate::cut(said, room))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_line_is_cut_before_its_commands() {
        let long = "long ".repeat(30);
        for (text, end) in [
            ("2 notes · /memory-why".to_owned(), "2 notes · /memory-why"),
            (
                format!("noted in {long} · /memory-status · /memory-setup"),
                "… · /memory-status · /memory-setup",
            ),
            (
                format!("not synced: {long} · or {long} · anamnesis doctor"),
                "… · anamnesis doctor",
            ),
            (
                format!("{long} · 7 sessions to distil: /memory-reflect"),
                "… · 7 sessions to distil: /memory-reflect",
            ),
            (long.clone(), "long lon…"),
        ] {
            let line = line(&text);
            assert!(line.ends_with(end), "{line}");
            assert!(line.chars().count() <= MAX_LINE_LENGTH, "{line}");
        }
    }
}
