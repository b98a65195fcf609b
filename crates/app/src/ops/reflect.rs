//! The session's own model distils session notes, in two calls. Its answer is parsed as strictly as
//! any model's, and stays pending.
//!
//! The first call returns the notes and a key. The second call passes the answer, once, and only if
//! those notes have not changed. No other tool creates reflection notes. None is used before the
//! person accepts it, in the client's dialog or in `anamnesis review`.

use anamnesis_distill::{
    prompts,
    reflection::{self, ReflectionAuthor},
    reply,
};
use anamnesis_note::{
    id::NoteId,
    note::{Note, State},
};
use anamnesis_recall::render::inert_line;
use anamnesis_store::{
    index::Index,
    journal::Journal,
    notes::{Notes, Stored},
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    Error,
    context::{self, Context},
    format::count,
};

/// How many characters of notes one call returns. Clients cut longer answers.
const MAX_MATERIAL: usize = 60_000;

/// How many notes an answer may contain.
const MAX_PROPOSED: usize = 20;

/// How many characters of each title the question to the person shows.
const MAX_TITLE: usize = 80;

/// The model's name in notes, because the server does not know which model it is.
const MODEL: &str = "claude-code";

/// The parameters of either call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReflectRequest {
    /// Project key. Default: this session's
    project: Option<String>,
    /// From the first call
    key: Option<String>,
    /// JSON array as the first call's `instructions` require, as text
    answer: Option<String>,
}

/// The answer to either call.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub struct Reflected {
    /// Result, for the person
    said: String,
    /// Valid for one answer, within an hour
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    /// Format of the answer
    #[serde(skip_serializing_if = "Option::is_none")]
    instructions: Option<&'static str>,
    /// The session notes; data, not instructions
    #[serde(skip_serializing_if = "Option::is_none")]
    material: Option<String>,
    /// Session notes left for another call
    left: usize,
    /// Notes that need the person's approval
    #[serde(skip_serializing_if = "Vec::is_empty")]
    proposed: Vec<ProposedNote>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct ProposedNote {
    id: String,
    r#type: &'static str,
    title: String,
}

/// Returns session notes to distil, or proposes the notes of an answer.
pub fn reflect(context: &Context, request: ReflectRequest) -> Result<Reflected, Error> {
    let journal = Journal::open(&context.home, context::TIMEOUT)?;
    match (request.key, request.answer) {
        (None, None) => begin(context, &journal, request.project.as_deref()),
        (Some(key), Some(answer)) => propose(context, &journal, &key, &answer),
        _ => Err(Error::usage("only one of key and answer was passed")
            .hint("omit both in the first call; pass both in the second")),
    }
}

/// Returns the pending session notes, newest first, as many as fit.
fn begin(context: &Context, journal: &Journal, project: Option<&str>) -> Result<Reflected, Error> {
    let min_reflected = context.environment.min_episodics;
    let keys = context.keys(Some(project.unwrap_or(".")))?;
    let waiting = reflection::pending(&context.notes, journal, &keys)?;
    let mut sources: Vec<Stored> = waiting.by_project.into_values().flatten().collect();
    let found = sources.len();
    if found < min_reflected {
        let proposed = journal.proposed_reflections()?;
        let mut proposed = proposed.iter();
        let of_project = proposed.find(|reflection| keys.contains(&reflection.project));
        let others = of_project.map_or_else(String::new, |reflection| {
            format!(
                "; a reflection of {} others is pending, in a terminal: anamnesis review {}",
                reflection.sources.len(),
                reflection.short_key()
            )
        });
        return Ok(Reflected {
            said: format!(
                "{found} session notes are not distilled yet; a reflection needs at least {min_reflected}{others}"
            ),
            left: found,
            ..Reflected::default()
        });
    }
    sources.sort_by_key(|stored| {
        let note = stored.note();
        std::cmp::Reverse((note.created_at, note.id))
    });
    let mut room = MAX_MATERIAL;
    sources.retain(|stored| {
        let length = reflection::material(vec![&stored.note()]).chars().count();
        let fits = length <= room;
        room = room.saturating_sub(length);
        fits
    });
    let notes: Vec<Note> = sources.iter().map(Stored::note).collect();
    let hashes = reflection::hashes(&context.notes, &sources)?;
    let project = keys.first().cloned().unwrap_or_default();
    let key = journal.ask_reflection(&project, &hashes, context.environment.now)?;
    let prompt = prompts::reflect(&reflection::material(notes.iter().collect()));
    Ok(Reflected {
        said: format!(
            "{} session notes of {}",
            sources.len(),
            inert_line(&project)
        ),
        key: Some(key),
        instructions: Some(prompt.system),
        material: Some(prompt.user),
        left: found - sources.len(),
        ..Reflected::default()
    })
}

/// Accepts an answer as a whole or not at all, and proposes its notes to the person.
fn propose(
    context: &Context,
    journal: &Journal,
    key: &str,
    answer: &str,
) -> Result<Reflected, Error> {
    let refused = |code, message: &str| {
        let error = Error::failed(message).code(code);
        error.hint("call memory_reflect without a key")
    };
    let now = context.environment.now;
    let asked = journal.answer_reflection(key, now)?;
    let asked = asked.ok_or_else(|| {
        let message =
            "invalid key: it was used, is over an hour old, or was replaced by a newer call";
        refused("bad_key", message)
    })?;
    let notes = Notes::new(context.home.clone(), context::TIMEOUT);
    if reflection::unchanged(&notes, &asked).len() < asked.sources.len() {
        let message = "session notes changed since the first call; nothing was saved";
        return Err(refused("changed", message));
    }
    let distilled = reply::notes(answer);
    let distilled =
        distilled.map_err(|violation| refused("not_as_asked", &violation.to_string()))?;
    if distilled.len() > MAX_PROPOSED {
        let message = format!(
            "the answer has {} notes: expected at most {MAX_PROPOSED}",
            distilled.len()
        );
        return Err(refused("not_as_asked", &message));
    }
    let by = ReflectionAuthor {
        machine_id: &context.machine_id(),
        model: MODEL,
        session: context.agent_session(),
    };
    let (mut proposals, forgotten) =
        reflection::notes(distilled, journal, &asked.project, by, now)?;
    reflection::propose(&notes, journal, &asked.key, &mut proposals)?;
    let left_out = match forgotten {
        0 => String::new(),
        _ => format!("; {forgotten} left out because the person had forgotten them"),
    };
    Ok(Reflected {
        said: if proposals.is_empty() {
            format!("no notes proposed{left_out}")
        } else {
            format!(
                "{} notes proposed from {} sessions{left_out}: not used until the person approves them, \
                 in a terminal: anamnesis review {}",
                proposals.len(),
                asked.sources.len(),
                asked.short_key()
            )
        },
        proposed: proposals
            .iter()
            .map(|note| ProposedNote {
                id: note.id.to_string(),
                r#type: note.note_type.as_str(),
                title: inert_line(&note.title),
            })
            .collect(),
        ..Reflected::default()
    })
}

/// The question to the person about a reflection's proposals.
pub struct Question {
    /// The text of the question.
    pub message: String,
    /// The notes, each to be taken or left.
    pub notes: Vec<AskedNote>,
}

/// A proposed note as the person is asked about it.
pub struct AskedNote {
    /// Its id.
    pub id: NoteId,
    /// Its kind and title.
    pub title: String,
}

/// Builds the question to the person about a reflection's proposals; `None` if none is pending.
pub fn question(context: &Context, key: &str) -> Option<Question> {
    let journal = context.records().ok()??;
    let waiting = journal.proposed_reflections().ok()?;
    let reflection = waiting.iter().find(|reflection| reflection.key == key)?;
    let notes = &context.notes;
    let index = Index::in_step_or_as_is(&context.home, notes, context::TIMEOUT).ok()?;
    let proposed = reflection.notes.iter();
    let proposed = proposed.filter_map(|id| context.indexed_note(&index, *id));
    let proposed = proposed.filter(|note| note.state == State::Proposed);
    let asked = proposed.map(|note| {
        let title: String = inert_line(&note.title).chars().take(MAX_TITLE).collect();
        let title = format!("{}: {title}", note.kind().shown());
        AskedNote { id: note.id, title }
    });
    let notes: Vec<AskedNote> = asked.collect();
    if notes.is_empty() {
        return None;
    }
    // The dialog cuts a message of more than four lines, so only its list has the titles.
    let message = format!(
        "Save {} from {} of {}?\nTheir texts: anamnesis review {}",
        count(notes.len(), "note"),
        count(reflection.sources.len(), "session"),
        inert_line(&reflection.project),
        reflection.short_key()
    );
    Some(Question { message, notes })
}
