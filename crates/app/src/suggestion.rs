//! Suggests to the agent that it keeps a lasting sentence of a prompt.

use anamnesis_note::id::NoteId;
use anamnesis_recall::rank::{Mask, Query, rank};
use anamnesis_session::{
    event::PromptKind, prompt::SafePrompt, session_note::says_the_same,
    standing::standing_instructions,
};
use anamnesis_store::{
    index::Index,
    journal::{Journal, SUGGESTION, ShownNote},
    project::Project,
};
use anamnesis_text::{clean::one_line, hash::text_hash};

use crate::{Error, context::Context, format};

/// How many of the best matching notes are compared with a sentence.
const COMPARED_NOTES: usize = 5;

/// The minimum number of words of a note's line that can make a sentence known.
const MIN_WORDS: usize = 2;

/// The longest quoted sentence, in characters.
const MAX_QUOTE: usize = 160;

/// A line for the agent, with its record.
pub struct Suggestion {
    /// The line.
    pub text: String,
    /// The record. It names the session's own note, because no note has the sentence yet.
    pub shown: ShownNote,
}

/// Suggests to keep the first standing instruction of a prompt, if no note has it, once in a session.
pub fn suggestion(
    context: &Context,
    journal: &Journal,
    project: &Project,
    session: &str,
    prompt: &SafePrompt,
) -> Result<Option<Suggestion>, Error> {
    let is_asked = prompt.kind() == PromptKind::Person && context.config.learn.suggest;
    let Some(typed) = prompt.question().filter(|_| is_asked) else {
        return Ok(None);
    };
    let lasting = standing_instructions(&typed);
    if lasting.is_empty() || !journal.suggested(session)?.is_empty() {
        return Ok(None);
    }
    let index = Index::open(&context.home)?;
    for sentence in &lasting {
        if is_known(context, &index, project, sentence)? {
            continue;
        }
        let quote = format::shorten(&one_line(sentence), MAX_QUOTE);
        return Ok(Some(Suggestion {
            text: format!(
                "anamnesis: \"{quote}\" sounds lasting, and no note has it. \
                 If it holds beyond this session, keep it with memory_write (kind preference)."
            ),
            shown: ShownNote::new(
                NoteId::of_session(session),
                text_hash(sentence),
                SUGGESTION,
                "a sentence of the prompt sounds lasting, and no note had it",
            ),
        }));
    }
    Ok(None)
}

/// Returns whether a note that the session could be given says the same.
fn is_known(
    context: &Context,
    index: &Index,
    project: &Project,
    sentence: &str,
) -> Result<bool, Error> {
    let query = Query::from_segments(&[sentence.to_owned()]);
    let mask = Mask {
        own: project.all_keys(),
        with_global: true,
        ..Mask::default()
    };
    let found = rank(index, &query, &mask, COMPARED_NOTES)?.candidates;
    for found in found {
        let Some(entry) = index.get(found.id)? else {
            continue;
        };
        let Ok(stored) = context.notes.read(entry.path) else {
            continue;
        };
        let note = stored.note();
        let mut lines = std::iter::once(note.title.as_str()).chain(note.body.lines());
        if lines.any(|line| {
            line.split_whitespace().nth(MIN_WORDS - 1).is_some() && says_the_same(line, sentence)
        }) {
            return Ok(true);
        }
    }
    Ok(false)
}
