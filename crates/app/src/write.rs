//! Writes notes: what an agent may write or only propose, whether a note says something new, and the
//! file itself.

use std::time::Duration;

use anamnesis_note::{agent_policy, id::NoteId, note::Note};
use anamnesis_recall::{
    admission::{self, AdmissionError, NewNote},
    novelty::Novelty,
};
use anamnesis_store::{
    index::{Entry, Index},
    journal::Journal,
    notes::Stored,
};
use anamnesis_text::clean::one_line;

use crate::{Error, context::Context, format};

/// The timeout for the index lock. It is longer than a hook's because the reply shows the shortest
/// unique id.
pub const INDEX_TIMEOUT: Duration = Duration::from_millis(150);

/// Returns whether a note is a person's or for all projects.
pub fn is_a_persons(entry: &Entry) -> bool {
    agent_policy::is_out_of_reach(&entry.project, entry.source, entry.by_agent)
}

/// Returns whether an agent can change a note only through a proposal: a person's note, one for all
/// projects, and any active note if the person approves everything.
pub fn is_out_of_reach(context: &Context, entry: &Entry) -> bool {
    is_a_persons(entry) || context.config.review.holds(entry.state)
}

/// Like [`is_out_of_reach`], for a note as it is on disk.
pub fn is_note_out_of_reach(context: &Context, note: &Note) -> bool {
    agent_policy::is_out_of_reach(&note.project, note.source, note.is_by_agent())
        || context.config.review.holds(note.state)
}

/// Refuses an agent that wants to change a note that only a person may change.
pub fn refuse_agent(context: &Context, entry: &Entry, act: &str) -> Result<(), Error> {
    let is_record = agent_policy::is_record(entry.note_type, entry.by_agent);
    if !context.environment.is_agent || !is_record && !is_out_of_reach(context, entry) {
        return Ok(());
    }
    let why = if is_record {
        "it is the record of a session and quotes the person"
    } else if is_a_persons(entry) {
        "a person wrote it, or it applies to all projects"
    } else {
        "it is in use, and the person approves every change"
    };
    Err(
        Error::failed(format!("only a person can {act} this note: {why}"))
            .code("persons")
            .hint("write a note of your own that supersedes it; a person approves it"),
    )
}

/// Marks a note as the agent's if an agent writes it. It becomes a proposal if it replaces a note
/// that an agent may not change, or is for another project than the session's, whose keys are `own`.
pub fn sign(context: &Context, note: &mut Note, replaced: &[Entry], own: &[String]) {
    if context.environment.is_agent {
        let is_held = context.config.review.holds(note.state);
        let is_reaching = replaced.iter().any(|entry| is_out_of_reach(context, entry))
            || !own.contains(&note.project);
        agent_policy::sign(note, context.agent_session(), is_reaching || is_held);
    }
}

/// Compares a new note with the existing ones.
///
/// # Errors
/// The reason why an agent may not write it. The source is the [`AdmissionError`].
pub fn admit(
    context: &Context,
    journal: Option<&Journal>,
    index: &Index,
    note: &Note,
    replaced: &[NoteId],
    is_forced: bool,
) -> Result<Novelty, Error> {
    let wanted = NewNote {
        note,
        projects: &context.keys(Some(&note.project))?,
        replaced,
        session: note.session.as_deref(),
        is_forced,
    };
    let is_tool = context.tool.is_some();
    let admitted = admission::admit(index, &context.notes, journal, &wanted);
    admitted.map_err(|refusal| {
        let is_known = matches!(refusal, AdmissionError::Known(_));
        let (code, message, hint) = match refusal {
            AdmissionError::Type(_) => {
                let hint = "leave the type out, or write it as semantic or procedural".to_owned();
                ("bad_argument", refusal.to_string(), hint)
            }
            AdmissionError::Forgotten(at) => return forgotten_text(at).because(refusal),
            AdmissionError::Known(id) | AdmissionError::Echo(id) => {
                let (short, note) = named(index, id);
                let change = if is_tool {
                    "memory_amend".to_owned()
                } else {
                    format!("anamnesis edit {short} --stdin")
                };
                if is_known {
                    let force = if is_tool { "force" } else { "--force" };
                    let hint = format!(
                        "add what is new by {change}; {force} writes another note all the same"
                    );
                    ("known", format!("{note} says this already"), hint)
                } else {
                    let message =
                        format!("most of this was injected into the session, mainly from {note}");
                    let hint = format!("write only what is new, or add it by {change}");
                    ("echo", message, hint)
                }
            }
            AdmissionError::Index(error) => return error.into(),
        };
        Error::failed(message)
            .because(refusal)
            .code(code)
            .hint(hint)
    })
}

/// The failure for a text that a person had forgotten.
pub fn forgotten_text(at: i64) -> Error {
    Error::failed(format!(
        "the person forgot this text on {}",
        format::date(at)
    ))
    .code("forgotten")
    .hint("do not write it; the person can: /memory-remember TEXT")
}

/// Returns a remark about a new note that repeats another; `None` for a novel one.
pub fn remark_of(index: &Index, short: &str, novelty: Novelty) -> Option<String> {
    let (other, note) = named(index, novelty.note()?);
    Some(match novelty {
        Novelty::Novel => return None,
        Novelty::Known(_) | Novelty::Echo(_) => format!("{note} says this, too"),
        Novelty::Extends(_) => format!(
            "{note} says part of this; to replace it: anamnesis connect {short} {other} --relation supersedes"
        ),
    })
}

/// Returns a note's short id, and its name for use in a sentence.
fn named(index: &Index, id: NoteId) -> (String, String) {
    let short = Context::short(index, id);
    let title = index.get(id).ok().flatten().map(|entry| entry.title);
    let title = one_line(&title.unwrap_or_default());
    let note = format!("#{short} \"{title}\"");
    (short, note)
}

/// Writes a new note and adds it to the journal and the index. An agent's counts to its limit.
///
/// # Errors
/// The file cannot be written, or an agent has reached the limit. Nothing of the note is on disk.
pub fn save(context: &Context, journal: Option<&Journal>, note: &Note) -> Result<Stored, Error> {
    let counted = journal.filter(|_| note.is_by_agent());
    if let Some(journal) = counted {
        take_place(context, journal, note.id)?;
    }
    let lock = context.notes.lock();
    let created = lock.and_then(|lock| context.notes.create(&lock, note));
    if let (Err(_), Some(journal)) = (&created, counted) {
        journal.give_place_back(note.id)?;
    }
    let stored = created?;
    if let Some(journal) = journal.filter(|_| !note.is_by_agent()) {
        let (file, now) = (note.render(), context.environment.now);
        let remembered = journal.remembered(note.id);
        let known = remembered.and_then(|()| journal.written_here(note.id, file.as_bytes(), now));
        context.log_error("write", known);
    }
    context.add_to_index(&stored, INDEX_TIMEOUT);
    Ok(stored)
}

/// Counts a note that an agent writes or forgets: in its session, or else in its server or on this day.
pub(crate) fn take_place(context: &Context, journal: &Journal, note: NoteId) -> Result<(), Error> {
    let now = context.environment.now;
    let limit = agent_policy::MAX_NOTES;
    let session = context.known_session(journal)?.map(|session| session.id);
    let server = context
        .tool
        .as_ref()
        .and_then(|tool| tool.counted_to.clone());
    let (counted_to, place) = session.or(server).map_or_else(
        || {
            (
                now.date_naive().to_string(),
                "today outside recorded sessions",
            )
        },
        |session| (session, "in this session"),
    );
    if journal.take_place(&counted_to, note, limit, now)? {
        return Ok(());
    }
    Err(Error::full(format!(
        "agents have written or forgotten {limit} notes {place}; no more are taken"
    ))
    .hint("edit one of them, or ask the user to type /memory-remember TEXT"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use anamnesis_note::note::NoteType;

    use super::*;
    use crate::environment::{Caller, Environment};

    #[test]
    fn a_note_that_is_written_before_the_index_leaves_no_line_in_the_log() {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::read(Caller::Person);
        environment.store = Some(folder.path().join("store"));
        let context = Context::open(environment).unwrap();
        let now = context.environment.now;
        let note = Note::new(NoteId::generate(now), NoteType::Semantic, now);
        let lock = context.notes.lock().unwrap();
        let stored = context.notes.create(&lock, &note).unwrap();
        let log = || fs::read_to_string(context.home.log()).unwrap_or_default();
        context.add_to_index(&stored, Duration::ZERO);
        assert_eq!(log(), "");
        fs::write(context.home.index(), "damaged").unwrap();
        context.add_to_index(&stored, Duration::ZERO);
        assert!(log().contains("is not in the index yet"), "{}", log());
    }
}
