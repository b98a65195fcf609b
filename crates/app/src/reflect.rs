//! Distils the session notes of a project with the configured model.
//!
//! The answer is accepted as a whole or not at all. The setting `review` decides whether the new
//! notes are used or proposed.

use anamnesis_distill::{
    model::Model,
    prompts::{self, Prompt},
    reflection::{self, ReflectionAuthor},
    reply,
    window::window,
};
use anamnesis_note::{
    agent_policy::Review,
    note::{Note, NoteType, Scope},
};
use anamnesis_store::{
    index::{Filter, Index},
    journal::Journal,
    notes::{NotePath, Stored},
    settings::config::Reflection,
};
use anamnesis_text::clean::one_line;

use crate::{
    Error,
    context::Context,
    format::count,
    interrupts::without_interrupts,
    model,
    sync::{self, short_change},
};

/// How many session notes a person is reminded of.
const MANY: usize = 5;

/// The largest number of session notes that is counted.
const MAX_COUNTED: usize = 100;

/// Returns how many sessions of a project can be distilled, if there are enough to be worth it, and no
/// proposals wait for a decision already.
pub fn undistilled(index: &Index, journal: &Journal, projects: &[String]) -> Option<usize> {
    let sessions = Filter {
        projects: projects.to_vec(),
        note_type: Some(NoteType::Episodic),
        scope: Some(Scope::Portable),
        ..Filter::default()
    };
    let mut found = index.list(&sessions, MAX_COUNTED).ok()?;
    let is_private = |session: &Option<String>| {
        let session = session.as_ref();
        session.is_some_and(|session| journal.has_private_part(session).unwrap_or(true))
    };
    found.retain(|entry| entry.state.is_in_use() && !entry.reflected);
    if found.len() < MANY {
        return None;
    }
    found.retain(|entry| !is_private(&entry.session));
    let waiting = journal.proposed_reflections().ok()?;
    let is_asked = waiting
        .iter()
        .any(|reflection| projects.contains(&reflection.project));
    (found.len() >= MANY && !is_asked).then_some(found.len())
}

/// Returns the reminder of undistilled sessions.
pub fn reminder(sessions: usize) -> String {
    format!("{} to distil: /memory-reflect", count(sessions, "session"))
}

/// The request to a model about a project's session notes.
pub struct Question<'a> {
    project: &'a str,
    sources: &'a [Stored],
    prompt: Prompt,
}

/// The result of a reflection.
pub struct Distilled {
    /// The new notes.
    pub notes: Vec<Note>,
    /// How many notes were dropped because the person had forgotten that text.
    pub forgotten: usize,
    /// Whether they are active or proposed.
    pub fate: Fate,
}

/// The fate of the new notes.
pub enum Fate {
    /// They are in use, as the change with this id if they were committed.
    Used(Option<String>),
    /// They are pending until the person decides.
    Proposed,
}

impl<'a> Question<'a> {
    /// Builds the request for a project's session notes.
    pub fn new(context: &Context, project: &'a str, sources: &'a [Stored]) -> Self {
        let notes: Vec<Note> = sources.iter().map(Stored::note).collect();
        let material = reflection::material(notes.iter().collect());
        let most = match model::settings(context).max_tokens {
            0 => Reflection::default().max_tokens,
            tokens => tokens,
        };
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        Self {
            project,
            sources,
            prompt: prompts::reflect(&window(&material, most)),
        }
    }

    /// The size of the request, in tokens.
    pub fn cost(&self) -> usize {
        self.prompt.tokens()
    }

    /// Asks the model and uses or proposes the notes in its answer. On failure nothing is written.
    pub fn ask(
        &self,
        context: &Context,
        journal: &Journal,
        model: &Model,
        actor: &'static str,
    ) -> Result<Distilled, Error> {
        let now = context.environment.now;
        let hashes = reflection::hashes(&context.notes, self.sources)?;
        let key = journal.begin_reflection(self.project, &hashes, now)?;
        let distilled = self.answer(context, journal, model, actor, &key);
        if distilled.is_err() {
            journal.fail_reflection(&key)?;
        }
        distilled
    }

    fn answer(
        &self,
        context: &Context,
        journal: &Journal,
        model: &Model,
        actor: &'static str,
        key: &str,
    ) -> Result<Distilled, Error> {
        let (mut notes, forgotten) = self.distilled(context, journal, model)?;
        // If no note is left, there is nothing to review and the sources are marked at once.
        let fate = if context.config.review == Review::Proposals && !notes.is_empty() {
            self.refuse_changed(context)?;
            reflection::propose(&context.notes, journal, key, &mut notes)?;
            Fate::Proposed
        } else {
            // Commits earlier edits separately, so that `undo` does not revert them.
            sync::commit_all(context)?;
            self.write(context, &notes)?;
            let ids = notes.iter().map(|note| note.id);
            let ids = ids.chain(self.sources.iter().map(|source| source.path.id));
            Fate::Used(sync::commit_by(context, actor, "reflect", ids).map(short_change))
        };
        Ok(Distilled {
            notes,
            forgotten,
            fate,
        })
    }

    /// Asks the model. Returns the new notes and how many were dropped because the person had
    /// forgotten that text. Nothing is written.
    pub fn distilled(
        &self,
        context: &Context,
        journal: &Journal,
        model: &Model,
    ) -> Result<(Vec<Note>, usize), Error> {
        let answer = model
            .ask(self.prompt.system, &self.prompt.user)
            .map_err(Error::caused_by)?;
        let distilled = reply::notes(&answer).map_err(Error::caused_by)?;
        let by = ReflectionAuthor {
            machine_id: &context.machine_id(),
            model: &one_line(&model.label()),
            session: None,
        };
        let now = context.environment.now;
        let notes = reflection::notes(distilled, journal, self.project, by, now)?;
        Ok(notes)
    }

    fn refuse_changed(&self, context: &Context) -> Result<(), Error> {
        let is_as_it_was = |source: &Stored| context.notes.stamp(source.path) == Some(source.stamp);
        if self.sources.iter().all(is_as_it_was) {
            return Ok(());
        }
        Err(Error::failed(
            "a session note was changed meanwhile; try again",
        ))
    }

    /// Writes the new notes and marks their sources, all or nothing.
    pub fn write(&self, context: &Context, notes: &[Note]) -> Result<(), Error> {
        // Ctrl-C must not interrupt this in the middle.
        let _whole = without_interrupts();
        let lock = context.notes.lock()?;
        self.refuse_changed(context)?;
        let mut before: Vec<(NotePath, Vec<u8>)> = Vec::new();
        let mut made: Vec<NotePath> = Vec::new();
        let mut write_all = || {
            for note in notes {
                made.push(context.notes.create(&lock, note)?.path);
            }
            for source in self.sources {
                let bytes = context.notes.bytes(source.path)?;
                before.push((source.path, bytes));
                context.notes.update(&lock, source.path, reflection::take)?;
            }
            Ok::<(), Error>(())
        };
        let Err(error) = write_all() else {
            return Ok(());
        };
        for path in made {
            context.log_error("reflect", context.notes.remove(&lock, path));
        }
        for (path, bytes) in before {
            context.log_error("reflect", context.notes.overwrite(&lock, path, &bytes));
        }
        Err(error)
    }
}
