//! Forgets notes: moves their text to the trash and removes it from everything derived from it.

use anamnesis_store::notes::NotePath;

use crate::{context::Context, evaluation_set, failure::Failure};

/// Forgets notes: moves their text to the trash and removes it from everything derived from it. The
/// caller commits.
pub fn forget_notes(context: &Context, notes: &[NotePath]) -> Result<(), Failure> {
    let journal = context.journal();
    let now = context.environment.now;
    for path in notes {
        let lock = context.notes.lock()?;
        let text = context
            .notes
            .read(*path)
            .map(|stored| stored.file.note().body.clone());
        evaluation_set::forget_notes(&context.home, |id| id == path.id)?;
        context.notes.forget(&lock, *path, now)?;
        drop(lock);
        if let (Some(journal), Ok(text)) = (&journal, text) {
            journal.forgot(path.id, &text, now)?;
            if context.environment.is_agent {
                journal.agent_forgot(path.id, now)?;
            }
        }
    }
    context.index()?.checkpoint()?;
    if let Some(journal) = &journal {
        journal.checkpoint()?;
    }
    Ok(())
}
