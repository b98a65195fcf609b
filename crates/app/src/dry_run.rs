//! What a hook would give for a text, tried out: the same question, the same choice, the same block.
//!
//! Nothing is recorded, made or brought up to date: index and records are only read, as they are. What
//! a hook would not see for that reason is not seen here, either.

use anamnesis_recall::note_set::Silence;
use anamnesis_session::intake::MAX_TEXT;
use anamnesis_store::{index::Index, journal::Ledger, project::Project};
use anamnesis_text::{private_tokens::PrivateTokens, sanitize};
use serde_json::{Value, json};

use crate::{
    context::Context,
    failure::Failure,
    pause,
    recall::{Answer, Asker, Lane, question},
    remember, session,
};

/// What is tried.
#[derive(Debug, Clone, Copy)]
pub struct Trial<'a> {
    /// The prompt, or the task of a subagent.
    pub text: &'a str,
    /// The hook that is imitated.
    pub lane: Lane,
    /// The project that asks; without it the one of the session, or of this folder.
    pub project: Option<&'a str>,
    /// The session that asks, as it was typed, with what it was given before; without it a new one.
    pub session: Option<&'a str>,
}

/// What came of it.
pub struct Tried {
    /// The project that was asked.
    pub project: Project,
    /// The hook that was imitated.
    pub lane: Lane,
    /// What recall says, or why it was not asked.
    pub outcome: Result<Answer, String>,
    /// Whether there are notes that the index does not know yet.
    pub is_behind: bool,
}

impl Tried {
    /// Everything that is known of it, for scripts.
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
            "behind": self.is_behind,
        })
    }

    /// The block that the hook would give; empty where it would give nothing.
    pub fn block(&self) -> &str {
        self.outcome
            .as_ref()
            .map_or("", |answer| &answer.block.text)
    }

    /// Why nothing comes, where nothing comes.
    pub fn silence(&self) -> Option<&str> {
        match &self.outcome {
            Ok(answer) => answer.outcome.silence.map(Silence::as_str),
            Err(reason) => Some(reason),
        }
    }
}

impl Trial<'_> {
    /// Does what the hook of the lane does, up to the point where it would be recorded.
    ///
    /// # Errors
    /// When index or records cannot be read, or there is no such session.
    pub fn run(self, context: &Context) -> Result<Tried, Failure> {
        let journal = context.records()?;
        let session = match (self.session, &journal) {
            (Some(typed), Some(journal)) => Some(session::find(journal, typed)?),
            (Some(_), None) => return Err(Failure::failed("no session is recorded yet")),
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
        let outcome = match self.asked(context, &project, &echoes) {
            Err(reason) => Err(reason),
            Ok(sentences) => Ok(Asker {
                context,
                project: &project,
                journal: journal.as_ref(),
                lane: self.lane,
                // A subagent has seen nothing.
                ledger: match self.lane {
                    Lane::Prompt => ledger,
                    Lane::Agent => Ledger::new(),
                },
                agent: String::new(),
            }
            .recall(&sentences)?),
        };
        let is_behind =
            Index::open(&context.home).is_ok_and(|index| index.is_behind(&context.notes));
        Ok(Tried {
            project,
            lane: self.lane,
            outcome,
            is_behind,
        })
    }

    /// What is asked of memory, or why nothing is.
    fn asked(
        self,
        context: &Context,
        project: &Project,
        echoes: &PrivateTokens,
    ) -> Result<Vec<String>, String> {
        let here = match self.project {
            Some(_) => pause::why(context, &[], || project.clone()),
            None => pause::here(context),
        };
        if let Some(off) = here {
            return Err(off.reason().to_owned());
        }
        if self.lane == Lane::Prompt && remember::asked_for(self.text).is_some() {
            return Err("it asks for something to be remembered".to_owned());
        }
        let kept;
        let text = match self.lane {
            Lane::Prompt => self.text,
            // The task of a subagent waits in the records until it begins.
            Lane::Agent => {
                kept = sanitize::text(self.text, echoes, MAX_TEXT).value;
                &kept
            }
        };
        question(text, echoes, self.lane, &context.config.recall)
            .map_err(|unasked| unasked.reason().to_owned())
    }
}

fn candidates(answer: &Answer) -> Vec<Value> {
    let given = answer.shown.iter().map(|shown| {
        json!({
            "id": shown.note.to_string(),
            "given": true,
            "level": shown.level,
            "reason": shown.reason,
            "evidence": shown.evidence,
        })
    });
    let held = answer.outcome.held.iter().map(|held| {
        json!({
            "id": held.note,
            "given": false,
            "level": Value::Null,
            "reason": held.reason,
            "evidence": held.evidence,
        })
    });
    given.chain(held).collect()
}
