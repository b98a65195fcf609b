//! Merges notes about the same topic as a model suggests: asks for groups, parses them strictly and
//! applies them one by one.
//!
//! An answer is accepted as a whole or not at all. A group that would change or hide a person's
//! note or a note for all projects is never applied; if it has a text of its own, that text is
//! proposed. Nothing is deleted: merged notes are listed under `supersedes`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Display,
};

use anamnesis_note::{
    draft::{safe, safe_line},
    id::NoteId,
    note::{Kind, Note, NoteType, Scope, Source, State, timestamp},
};
use chrono::{DateTime, Utc};
use serde_json::{Map, Value};

use crate::{
    prompts,
    reply::{InvalidAnswer, unfenced},
    upkeep::NoteSet,
};

/// How many characters of notes a model is shown.
const WINDOW: usize = 480_000;

/// The confidence of a note written by a model.
const CONFIDENCE: f64 = 0.6;

/// Notes about the same topic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// One of the notes contains all the others.
    Keep {
        /// That note.
        keeper: NoteId,
        /// The others.
        superseded: Vec<NoteId>,
    },
    /// A new note replaces all.
    Synthesize {
        /// Its type.
        note_type: NoteType,
        /// Its title.
        title: String,
        /// Its text.
        body: String,
        /// The notes it replaces.
        superseded: Vec<NoteId>,
    },
}

/// Why there are no groups.
#[derive(Debug, thiserror::Error)]
pub enum Error<E: std::error::Error + 'static> {
    /// The request to the model failed.
    #[error(transparent)]
    Model(E),
    /// The answer is rejected.
    #[error(transparent)]
    InvalidAnswer(#[from] InvalidAnswer),
}

/// Returns the notes of a project that may be merged, newest first: durable, in use and not
/// superseded.
pub fn candidates<'s>(shelf: &'s NoteSet, project: &str) -> Vec<&'s Note> {
    let is_candidate = |note: &&Note| {
        note.scope == Scope::Portable
            && note.state == State::Active
            && !matches!(note.kind(), Kind::Experience | Kind::Task)
            && !shelf.replaced.contains(&note.id)
            && !shelf.fixed.contains(&note.id)
            && shelf.aliases.current(&note.project) == project
    };
    let mut notes: Vec<&Note> = shelf.notes.iter().filter(is_candidate).collect();
    notes.sort_by_key(|note| (std::cmp::Reverse(note.updated_at.clone()), note.id));
    notes
}

/// Returns the text to show a model, with as many notes as fit, and their ids. The text is
/// sanitised.
pub fn shown(notes: &[&Note]) -> (String, BTreeSet<NoteId>) {
    let (mut text, mut given, mut length) = (String::new(), BTreeSet::new(), 0);
    for note in notes {
        let (title, body) = (safe_line(&note.title), safe(&note.body));
        let entry = format!("## [{}] [{}] {title}\n{body}\n\n", note.id, note.note_type);
        length += entry.chars().count();
        if length > WINDOW {
            break;
        }
        text.push_str(&entry);
        given.insert(note.id);
    }
    (text, given)
}

/// Asks a model which of these notes are about the same topic.
pub fn ask<E: std::error::Error + 'static>(
    notes: &[&Note],
    model: &dyn Fn(&str, &str) -> Result<String, E>,
) -> Result<Vec<Group>, Error<E>> {
    let (text, given) = shown(notes);
    let prompt = prompts::merge(&text);
    let answer = model(prompt.system, &prompt.user).map_err(Error::Model)?;
    Ok(groups(&answer, &given)?)
}

/// Parses a model's answer. It may name only the given notes.
pub fn groups(answer: &str, given: &BTreeSet<NoteId>) -> Result<Vec<Group>, InvalidAnswer> {
    let json: Value = serde_json::from_str(unfenced(answer))
        .map_err(|error| InvalidAnswer(format!("the answer is not JSON: {error}")))?;
    let Value::Array(items) = json else {
        let other = "the answer is not a list of groups";
        return Err(InvalidAnswer(other.to_owned()));
    };
    let mut named = BTreeSet::new();
    let mut groups = Vec::with_capacity(items.len());
    for (item, number) in items.iter().zip(1..) {
        let Value::Object(item) = item else {
            let other = format!("group {number} is not an object");
            return Err(InvalidAnswer(other));
        };
        let group = group(item, given, &mut named);
        groups.push(group.map_err(|flaw| InvalidAnswer(format!("group {number}: {flaw}")))?);
    }
    Ok(groups)
}

/// Parses a group. The error is in words and repeats none of the model's, because they may contain
/// anything.
fn group(
    item: &Map<String, Value>,
    given: &BTreeSet<NoteId>,
    named: &mut BTreeSet<NoteId>,
) -> Result<Group, String> {
    const NO_IDS: &str = "superseded_ids is not a list of ids";
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let is_keep = match text("action") {
        Some("keep") => true,
        Some("synthesize") => false,
        _ => return Err("the action is neither keep nor synthesize".to_owned()),
    };
    let mut take = |id: &str| -> Result<NoteId, String> {
        let id = id
            .parse()
            .ok()
            .filter(|id| given.contains(id))
            .ok_or("it names a note that was not in the request")?;
        if named.insert(id) {
            Ok(id)
        } else {
            Err(format!("{id} is named twice"))
        }
    };
    let listed = item.get("superseded_ids").and_then(Value::as_array);
    let listed = listed.filter(|ids| !ids.is_empty()).ok_or(NO_IDS)?;
    let listed: Vec<&str> = listed
        .iter()
        .map(|id| id.as_str().ok_or(NO_IDS))
        .collect::<Result<_, _>>()?;
    let keeper = if is_keep {
        let keeper = text("keeper_id").filter(|id| !id.trim().is_empty());
        let keeper = keeper.ok_or("keeper_id is missing")?;
        if listed.contains(&keeper) {
            return Err("the keeper would replace itself".to_owned());
        }
        Some(take(keeper)?)
    } else {
        None
    };
    let superseded: Vec<NoteId> = listed.into_iter().map(take).collect::<Result<_, _>>()?;
    if let Some(keeper) = keeper {
        return Ok(Group::Keep { keeper, superseded });
    }
    let note_type = match text("type") {
        Some("semantic") => NoteType::Semantic,
        Some("procedural") => NoteType::Procedural,
        _ => return Err("the type is neither semantic nor procedural".to_owned()),
    };
    let filled = |key: &'static str, safe: fn(&str) -> String| {
        let text = text(key).map(|text| safe(text).trim().to_owned());
        text.filter(|text| !text.is_empty())
            .ok_or_else(|| format!("{key} is blank"))
    };
    Ok(Group::Synthesize {
        note_type,
        title: filled("title", safe_line)?,
        body: filled("body", safe)?,
        superseded,
    })
}

/// The effect of a group.
#[derive(Debug, Clone, PartialEq)]
pub enum MergeOutcome {
    /// The keeper is changed to this.
    Changed(Box<Note>),
    /// This note is created.
    Made(Box<Note>),
    /// This note is proposed. It hides nothing until a person approves it.
    Proposed(Box<Note>),
    /// Nothing is done, because one of the notes is a person's.
    Left,
}

/// The author of a merge.
#[derive(Debug, Clone)]
pub struct Author {
    /// The machine.
    pub machine: String,
    /// The model, as `provider/model`.
    pub model: String,
    /// When.
    pub now: DateTime<Utc>,
}

impl Group {
    /// Returns the notes that would be hidden.
    pub fn superseded(&self) -> &[NoteId] {
        match self {
            Self::Keep { superseded, .. } | Self::Synthesize { superseded, .. } => superseded,
        }
    }

    /// Applies the group. Returns `None` if one of its notes no longer exists.
    pub fn applied(
        &self,
        notes: &BTreeMap<NoteId, &Note>,
        author: &Author,
    ) -> Option<MergeOutcome> {
        let superseded = self.superseded().iter();
        let superseded: Vec<&Note> = superseded
            .map(|id| notes.get(id).copied())
            .collect::<Option<_>>()?;
        let project = &superseded.first()?.project;
        match self {
            Self::Keep { keeper, .. } => {
                let keeper = notes.get(keeper).copied()?;
                if is_a_persons(keeper) || superseded.iter().any(|note| is_a_persons(note)) {
                    return Some(MergeOutcome::Left);
                }
                let mut changed = keeper.clone();
                let ids = superseded.iter().map(|note| note.id.to_string());
                let all: BTreeSet<String> = ids.chain(changed.supersedes.drain(..)).collect();
                changed.supersedes = all.into_iter().collect();
                changed.add_tags(["merged"]);
                changed.updated_at = timestamp(author.now);
                Some(MergeOutcome::Changed(Box::new(changed)))
            }
            Self::Synthesize {
                note_type,
                title,
                body,
                ..
            } => {
                let mut made = Note {
                    title: title.clone(),
                    body: body.clone(),
                    project: project.clone(),
                    machine_id: author.machine.clone(),
                    source: Source::Reflection,
                    confidence: CONFIDENCE,
                    model: Some(author.model.clone()),
                    supersedes: self.superseded().iter().map(NoteId::to_string).collect(),
                    kind: Some(Kind::of_type(*note_type)),
                    ..Note::new(self.id(), *note_type, author.now)
                };
                made.add_tags(["merge"]);
                if superseded.iter().any(|note| is_a_persons(note)) {
                    made.scope = Scope::MachineLocal;
                    made.state = State::Proposed;
                    return Some(MergeOutcome::Proposed(Box::new(made)));
                }
                Some(MergeOutcome::Made(Box::new(made)))
            }
        }
    }

    /// Returns the id of the new note. The same group always gives the same id.
    fn id(&self) -> NoteId {
        NoteId::made_of(&format!("merge: {self:?}"))
    }
}

/// Returns whether a note must not be changed or hidden by a model.
fn is_a_persons(note: &Note) -> bool {
    note.is_shared() || note.source == Source::Human && !note.is_by_agent()
}

/// Describes a group for people. `shown` formats an id.
pub fn line<D: Display>(group: &Group, shown: impl Fn(NoteId) -> D) -> String {
    let others = group.superseded().iter();
    let others: Vec<String> = others.map(|id| shown(*id).to_string()).collect();
    let others = others.join(", ");
    match group {
        Group::Keep { keeper, .. } => format!("{} replaces {others}", shown(*keeper)),
        Group::Synthesize { title, .. } => format!("'{title}' replaces {others}"),
    }
}

#[cfg(test)]
mod tests;
