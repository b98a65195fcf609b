//! Prompts, subagents and the end of a turn: injects notes, and detects their use.

use anamnesis_app::{
    claude_memory,
    context::Context,
    error::Kind,
    learn,
    ops::task,
    project_history,
    recall::{self, Asker, Lane},
    remember, suggestion, sync,
};
use anamnesis_note::id::NoteId;
use anamnesis_recall::rank::Query;
use anamnesis_recall::render::{self, Block};
use anamnesis_recall::session_start::{self, DEFAULT_K, Request};
use anamnesis_session::{
    event::Agent,
    prompt::{RawPrompt, SafePrompt},
};
use anamnesis_store::{
    index::{self, Index},
    journal::{COMMIT, Journal, SUGGESTION, ShownNote},
    settings::config::SessionLine,
};
use anamnesis_text::clean::one_line;

use super::{Handled, Hook, shown, start::line};

/// How many notes from other machines are named at a prompt.
const MAX_ARRIVALS: usize = 3;

impl Hook {
    /// Handles a prompt. If it is a command for us, runs it, and Claude only reports the result;
    /// otherwise injects matching notes.
    pub(super) fn prompt(
        &self,
        raw: &RawPrompt,
        prompt: Option<&SafePrompt>,
        handled: &mut Handled,
    ) {
        let (context, journal) = (&self.context, self.journal.as_ref().ok());
        let (done, failed) = if let Some(text) = remember::asked_for(raw) {
            let project = &self.project().key;
            let saved = remember::save_words(context, journal, text, project);
            (saved, "not saved")
        } else if let Some(asked) = task::asked_for(raw) {
            let project = &self.project().key;
            (task::act(context, journal, &asked, project), "not done")
        } else {
            if let Some((block, shown)) = self.arrivals() {
                handled.add_context(&block.text);
                handled.given.push(("arrivals", shown));
            }
            if let Some(prompt) = prompt {
                self.recall(Lane::Prompt, prompt, handled);
                self.suggest(prompt, handled);
            }
            return;
        };
        let report = done.unwrap_or_else(|error| {
            let said = one_line(error.message());
            // Wrong input of a person is not an error of the hook.
            if error.kind() == Kind::Usage {
                return format!("{failed}: {said}");
            }
            handled.errors.push(said.clone());
            format!("{failed}: {said} · /memory-status")
        });
        handled.answer.context = Some(format!("anamnesis: {report}"));
    }

    /// Injects notes for a prompt, or for the task of a subagent.
    pub(super) fn recall(&self, lane: Lane, prompt: &SafePrompt, handled: &mut Handled) {
        // Without the journal, the contents of the context are unknown, and the same notes would be
        // injected again and again.
        let Ok(journal) = &self.journal else {
            return;
        };
        let Ok(query) = recall::question(prompt, &self.context.config.recall) else {
            return;
        };
        let mut ledger = self.ledger(&self.session_id, &self.agent);
        if lane == Lane::Prompt {
            ledger.extend(self.carried());
        }
        let asker = Asker {
            context: &self.context,
            project: self.project(),
            journal: Some(journal),
            lane,
            ledger,
            own: Some(NoteId::of_session(&self.session_id)),
            agent: self.agent.clone(),
        };
        match asker.recall(&query) {
            Ok(answer) => {
                // Without a person at the terminal, nobody would read the line.
                if lane == Lane::Prompt
                    && self.context.config.session_line == SessionLine::On
                    && self.context.environment.is_interactive
                {
                    handled.answer.system_message =
                        recall::line(&answer.outcome).map(|text| line(&text));
                }
                handled.check_index |= answer.is_partial;
                handled.start_work |= answer.is_partial;
                if answer.is_partial && !answer.block.text.is_empty() {
                    handled.add_context(recall::PARTIAL);
                }
                handled.add_context(&answer.block.text);
                handled.given.push((lane.as_str(), answer.shown));
                handled.run = Some(answer.run);
            }
            Err(error) => {
                handled.index_failed(&error);
                if !matches!(error, index::Error::Missing | index::Error::Foreign(_)) {
                    handled.errors.push(error.to_string());
                }
            }
        }
        if lane == Lane::Prompt {
            self.history(journal, &query, handled);
        }
    }

    /// Names commits that answer a prompt which asks why, when or who.
    fn history(&self, journal: &Journal, query: &Query, handled: &mut Handled) {
        let (context, project) = (&self.context, self.project());
        let session = &self.session_id;
        match project_history::for_prompt(context, Some(journal), project, session, query) {
            Ok((commits, shown)) if !commits.is_empty() => {
                handled.add_context(&render::commit_block(&commits));
                handled.given.push((COMMIT, shown));
            }
            Ok(_) => {}
            Err(error) => handled.errors.push(error.message().to_owned()),
        }
    }

    /// Tells the agent that a sentence of the prompt sounds lasting.
    fn suggest(&self, prompt: &SafePrompt, handled: &mut Handled) {
        let Ok(journal) = &self.journal else {
            return;
        };
        let suggestion = suggestion::suggestion(
            &self.context,
            journal,
            self.project(),
            &self.session_id,
            prompt,
        );
        // Without a usable index nobody knows whether a note has the sentence; recall reports it.
        if let Ok(Some(suggestion)) = suggestion {
            handled.add_context(&suggestion.text);
            handled.given.push((SUGGESTION, vec![suggestion.shown]));
        }
    }

    /// Names notes that arrived from other machines since the session began, once.
    ///
    /// The sync that a session start triggers ends after the working set was injected. So the next
    /// prompt names the notes that would be added to the working set now.
    pub(super) fn arrivals(&self) -> Option<(Block, Vec<ShownNote>)> {
        let journal = self.journal.as_ref().ok()?;
        let arrived: i64 = journal.meta(sync::ARRIVED).ok()??.parse().ok()?;
        let session = self.session()?;
        let told = journal.last_prompt_at(&self.session_id).ok()?;
        if arrived < told.unwrap_or(session.started_at) {
            return None;
        }
        let index = Index::open(&self.context.home).ok()?;
        let request = Request {
            project: &self.project().key,
            also: &self.project().also,
            k: DEFAULT_K,
            session: None,
            resumed: None,
            folder: Some(&self.folder),
            now: self.context.environment.now,
            had: &claude_memory::copies(Some(journal), &self.project().key),
            journal: None,
        };
        let set = session_start::working_set(&index, &self.context.notes, &request).ok()?;
        let mut chosen: Vec<_> = set.with_texts().cloned().collect();
        let known = journal.notes_shown_in(&self.session_id).ok()?;
        let machine = self.context.machine_id();
        chosen
            .retain(|chosen| chosen.note.machine_id != machine && !known.contains(&chosen.note.id));
        chosen.truncate(MAX_ARRIVALS);
        let block = render::arrivals(&chosen, request.now, |id| Context::short(&index, id));
        let shown = shown(&chosen, &block);
        (!block.text.is_empty()).then_some((block, shown))
    }

    /// Injects notes for the task with which a subagent begins.
    pub(super) fn subagent_start(&self, agent: &Agent, handled: &mut Handled) {
        if let Ok(journal) = &self.journal
            && let Ok(Some((id, task))) = journal.open_delegation(&self.session_id, &agent.kind)
        {
            let task = SafePrompt::new(&RawPrompt::new(task), self.all_private_tokens());
            self.recall(Lane::Agent, &task.value, handled);
            handled.taken = Some(id);
        }
    }

    /// Detects which of its injected notes a context used in a turn.
    pub(super) fn turn_end(&self, agent: &str, answer: Option<&str>, handled: &mut Handled) {
        let Ok(journal) = &self.journal else {
            return;
        };
        let answer = answer.unwrap_or_default();
        match learn::uses(&self.context, journal, &self.session_id, agent, answer) {
            Ok(used) => handled.used = used,
            Err(error) => handled.errors.push(error.to_string()),
        }
    }
}
