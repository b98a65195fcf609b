//! Dry run of recall: shows what a hook would inject for a text, using the same code.
//!
//! Nothing is recorded or updated. Index and journal are read as they are, so the result misses
//! what a hook would miss.

use anamnesis_note::id::NoteId;
use anamnesis_recall::{
    project_history::FoundCommit, rank::Query, reason::Silence, render::commit_block,
};
use anamnesis_session::{
    event::MAX_TEXT,
    prompt::{RawPrompt, SafePrompt},
};
use anamnesis_store::{
    index::Index,
    journal::{Evidence, Journal, Ledger, POINTER},
    project::Project,
};
use anamnesis_text::{private_tokens::PrivateTokens, sanitize};
use serde_json::{Value, json};

use crate::{
    Error,
    context::Context,
    pause, project_history,
    recall::{Asker, Lane, RecallResult, Skipped, question},
    remember, session,
};

/// The input of a dry run.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The prompt, or the task of a subagent.
    pub text: &'a str,
    /// The hook to imitate.
    pub lane: Lane,
    /// The project; by default the session's, or that of the current folder.
    pub project: Option<&'a str>,
    /// The id of a session, as typed. What was injected in it is not injected again. By default a
    /// new session is assumed.
    pub session: Option<&'a str>,
}

/// The result of a dry run.
pub struct Tried {
    /// The project that was used.
    pub project: Project,
    /// The hook that was imitated.
    pub lane: Lane,
    /// The recall result, or why recall did not run.
    pub outcome: Result<RecallResult, Skipped>,
    /// The commits of the project's history that answer the prompt.
    pub commits: Vec<FoundCommit>,
    /// Whether some notes are not in the index yet.
    pub is_behind: bool,
}

impl Tried {
    /// Returns the full result as JSON.
    pub fn json(&self) -> Value {
        let answer = self.outcome.as_ref().ok();
        let run = answer.map(|answer| &answer.run);
        json!({
            "lane": self.lane.as_str(),
            "project": self.project.key,
            "block": self.block(),
            "reason": self.silence(),
            "terms": run.map(|run| run.terms),
            "searched": run.map(|run| run.searched),
            "floor": run.map(|run| run.floor),
            "candidates": answer.map(candidates).unwrap_or_default(),
            "commits": self.commits.iter().map(FoundCommit::line).collect::<Vec<_>>(),
            "behind": self.is_behind,
        })
    }

    /// Returns the text that the hook would inject; empty if there is none.
    pub fn block(&self) -> String {
        let answer = self.outcome.as_ref();
        let notes = answer.map_or("", |answer| &answer.block.text);
        format!("{notes}{}", commit_block(&self.commits))
    }

    /// Returns why nothing would be injected, if nothing would.
    pub fn silence(&self) -> Option<&str> {
        match &self.outcome {
            _ if !self.commits.is_empty() => None,
            Ok(answer) => answer.outcome.silence.map(Silence::as_str),
            Err(skipped) => Some(skipped.reason()),
        }
    }
}

/// The notes that a context has seen.
#[derive(Debug, Default)]
pub struct SeenContext {
    /// The notes that were injected into it.
    pub ledger: Ledger,
    /// The note of its session.
    pub own: Option<NoteId>,
}

impl Trial<'_> {
    /// Runs the same steps as the hook, without recording them.
    pub fn run(self, context: &Context) -> Result<Tried, Error> {
        let journal = context.records()?;
        let session = match (self.session, &journal) {
            (Some(typed), Some(journal)) => Some(session::find(journal, typed)?),
            (Some(_), None) => return Err(Error::failed("no session is recorded yet")),
            (None, _) => None,
        };
        let named = self
            .project
            .or(session.as_ref().map(|session| session.project.as_str()));
        let project = context.project(named);
        let (ledger, echoes) = match (&session, &journal) {
            (Some(session), Some(journal)) => (
                journal.ledger(&session.id, "")?,
                journal.echoes(&session.id)?,
            ),
            _ => (Ledger::new(), PrivateTokens::default()),
        };
        let seen = SeenContext {
            // A subagent starts with an empty context.
            ledger: match self.lane {
                Lane::Prompt => ledger,
                Lane::Agent => Ledger::new(),
            },
            own: session
                .as_ref()
                .map(|session| NoteId::of_session(&session.id)),
        };
        let id = session.as_ref().map_or("", |session| &session.id);
        let commits = match self.asked(context, &project, &echoes) {
            Ok(query) if self.lane == Lane::Prompt => {
                project_history::for_prompt(context, journal.as_ref(), &project, id, &query)?.0
            }
            _ => Vec::new(),
        };
        let outcome = self.run_in(context, &project, journal.as_ref(), &echoes, seen)?;
        let is_behind =
            Index::open(&context.home).is_ok_and(|index| index.is_behind(&context.notes));
        Ok(Tried {
            project,
            lane: self.lane,
            outcome,
            commits,
            is_behind,
        })
    }

    /// Runs it in a context that has seen these notes.
    pub fn run_in(
        self,
        context: &Context,
        project: &Project,
        journal: Option<&Journal>,
        echoes: &PrivateTokens,
        seen: SeenContext,
    ) -> Result<Result<RecallResult, Skipped>, Error> {
        let query = match self.asked(context, project, echoes) {
            Err(skipped) => return Ok(Err(skipped)),
            Ok(query) => query,
        };
        let asker = Asker {
            context,
            project,
            journal,
            lane: self.lane,
            ledger: seen.ledger,
            own: seen.own,
            agent: String::new(),
        };
        Ok(Ok(asker.recall(&query)?))
    }

    /// Returns the query, or why recall does not run.
    fn asked(
        self,
        context: &Context,
        project: &Project,
        echoes: &PrivateTokens,
    ) -> Result<Query, Skipped> {
        let here = match self.project {
            Some(_) => pause::why(context, &[], || project.clone()),
            None => pause::here(context),
        };
        if let Some(off) = here {
            return Err(Skipped::Off(off));
        }
        let raw = match self.lane {
            Lane::Prompt => RawPrompt::new(self.text),
            // The hook stores a subagent's task in the journal first, which sanitises it.
            Lane::Agent => RawPrompt::new(sanitize::text(self.text, echoes, MAX_TEXT).value),
        };
        if self.lane == Lane::Prompt && remember::asked_for(&raw).is_some() {
            return Err(Skipped::Remember);
        }
        let prompt = SafePrompt::new(&raw, Some(echoes)).value;
        question(&prompt, &context.config.recall)
    }
}

fn candidates(answer: &RecallResult) -> Vec<Value> {
    let row = |id: String, level: Option<&str>, reason: &str, evidence: Option<&Evidence>| {
        json!({
            "id": id,
            "given": level.is_some_and(|level| level != POINTER),
            "pointer": level == Some(POINTER),
            "level": level,
            "reason": reason,
            "evidence": evidence,
        })
    };
    let given = answer.shown.iter().map(|it| {
        let evidence = it.evidence.as_ref();
        row(it.note.to_string(), Some(it.level), it.reason, evidence)
    });
    let held = answer.outcome.held.iter();
    let held = held.map(|it| row(it.note.clone(), None, &it.reason, Some(&it.evidence)));
    given.chain(held).collect()
}
