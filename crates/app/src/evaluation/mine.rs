//! Makes questions with known answers from the notes and prompts of the store.

use std::collections::HashMap;

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    note::{Note, NoteType, State},
};
use anamnesis_recall::{
    mining::{self, Prompt},
    usage_detection::{ToolCall, Turn, named},
};
use anamnesis_session::event::{Privacy, PromptKind, Speaker};
use anamnesis_store::{
    index::{Filter, Index},
    journal::{Contents, Journal, StoredPrompt},
};
use anamnesis_text::private_tokens::PrivateTokens;

use crate::{
    Error,
    context::{Context, PATIENCE},
    evaluation_set::Case,
    recall::Lane,
};

/// Which questions to make.
pub struct Selection<'a> {
    /// The projects of notes and prompts; all if empty.
    pub projects: &'a [String],
    /// The types of the notes that answer.
    pub types: &'a [NoteType],
    /// The maximum number of questions from titles, and from prompts.
    pub most: usize,
}

/// Makes questions from titles, and from prompts whose turn opened or named a note.
pub fn mine(context: &Context, selection: &Selection<'_>) -> Result<Vec<Case>, Error> {
    let index = context.index()?;
    let notes = notes_in_use(context, &index, selection.projects)?;
    let journal = Journal::open_to_read(&context.home, PATIENCE)?;
    let echoes = |session: &str| match &journal {
        Some(journal) => journal.echoes(session),
        None => Ok(PrivateTokens::default()),
    };
    let mut cases = Vec::new();
    let of_no_session = echoes("")?;
    for note in mining::titles(&notes, selection.types, selection.most) {
        cases.push(Case::of_title(note, &of_no_session));
    }
    let by_id: HashMap<NoteId, &Note> = notes.iter().map(|note| (note.id, note)).collect();
    let answer = |id: NoteId| {
        let note = by_id.get(&id).copied();
        note.filter(|note| selection.types.contains(&note.note_type))
    };
    let asked = match &journal {
        Some(journal) => prompts(journal, &index, selection.projects)?,
        None => Vec::new(),
    };
    for prompt in mining::prompts(asked, answer, selection.most) {
        let answers: Vec<&Note> = prompt.notes.iter().filter_map(|id| answer(*id)).collect();
        let origin = (prompt.session.as_str(), prompt.number);
        let echoes = echoes(&prompt.session)?;
        cases.push(Case::of_prompt(&prompt.text, origin, &answers, &echoes));
    }
    Ok(cases)
}

/// The notes that are active and can be found by a search.
pub fn notes_in_use(
    context: &Context,
    index: &Index,
    projects: &[String],
) -> Result<Vec<Note>, Error> {
    let filter = Filter {
        projects: projects.to_vec(),
        ..Filter::default()
    };
    let entries = index.list(&filter, usize::MAX)?;
    let active = entries
        .iter()
        .filter(|entry| entry.state == State::Active)
        .filter_map(|entry| context.notes.read(entry.path).ok());
    Ok(active.map(|stored| stored.note()).collect())
}

/// The prompts of all sessions, oldest first, with the notes that their turns opened or named.
fn prompts(journal: &Journal, index: &Index, projects: &[String]) -> Result<Vec<Prompt>, Error> {
    let mut sessions = journal.sessions(None, usize::MAX)?;
    sessions.retain(|session| projects.is_empty() || projects.contains(&session.project));
    sessions.sort_by(|a, b| (a.started_at, &a.id).cmp(&(b.started_at, &b.id)));
    let mut found = Vec::new();
    for session in sessions {
        let Some(contents) = journal.contents(&session.id)? else {
            continue;
        };
        for (place, prompt) in contents.prompts.iter().enumerate() {
            let Some(text) = question(prompt) else {
                continue;
            };
            let next = contents.prompts.get(place + 1);
            let until = next.map_or(i64::MAX, |next| next.at);
            let notes = needed(&contents, prompt, until, index)?;
            found.push(Prompt {
                session: session.id.clone(),
                number: prompt.number,
                project: session.project.clone(),
                text: text.to_owned(),
                notes,
            });
        }
    }
    Ok(found)
}

/// The person's question, unless it is private.
pub(super) fn question(prompt: &StoredPrompt) -> Option<&str> {
    let is_open = prompt.kind == PromptKind::Person && prompt.privacy != Privacy::Full;
    prompt.text.as_deref().filter(|_| is_open)
}

/// The notes that the turn of a prompt opened or named. Injected notes are excluded, because recall
/// would be measured by its own results.
fn needed(
    contents: &Contents,
    prompt: &StoredPrompt,
    until: i64,
    index: &Index,
) -> Result<Vec<NoteId>, Error> {
    let calls = contents
        .events
        .iter()
        .filter(|event| event.prompt == Some(prompt.number) && event.event.agent.is_none());
    let calls: Vec<ToolCall<'_>> = calls
        .map(|event| ToolCall {
            tool: &event.event.tool,
            input: event.event.input.as_ref(),
            at: event.at,
        })
        .collect();
    let answers = contents
        .turn_ends
        .iter()
        .filter(|end| end.prompt == Some(prompt.number) && end.speaker == Speaker::Main);
    let answers: Vec<&str> = answers.filter_map(|end| end.text.as_deref()).collect();
    let turn = Turn {
        prompt: "",
        answer: &answers.join("\n"),
        calls: &calls,
    };
    let came: Vec<&str> = contents
        .shown
        .iter()
        .filter(|shown| {
            shown.lane == Lane::Prompt.as_str()
                && shown.agent.is_empty()
                && (prompt.at..until).contains(&shown.at)
        })
        .map(|shown| shown.note.as_str())
        .collect();
    let mut notes = Vec::new();
    for name in named(&turn) {
        let Ok(reference) = IdPrefix::parse(&name) else {
            continue;
        };
        if let [entry] = index.matching(&reference)?.as_slice()
            && !came.contains(&entry.id().to_string().as_str())
        {
            notes.push(entry.id());
        }
    }
    Ok(notes)
}
