//! Groups of notes that are one matter, as a model sees it: asked for, read strictly, tried one by one.
//!
//! An answer is taken as a whole or not at all. A group that would change or hide what a person wrote, or
//! what holds for all projects, is never applied: where it has a text of its own, that becomes a proposal.
//! Nothing is deleted; what is merged is named under `supersedes`.

mod trial;

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

use crate::{prompts, reply::unfenced, upkeep::Shelf};

pub use self::trial::{Case, Trial};

/// How much of the notes a model is shown, in characters.
const WINDOW: usize = 480_000;

/// How sure a note is that a model has written.
const CONFIDENCE: f64 = 0.6;

/// Notes that are one matter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Group {
    /// One of them says it all.
    Keep {
        /// That one.
        keeper: NoteId,
        /// The others.
        superseded: Vec<NoteId>,
    },
    /// A new note says it all.
    Synthesize {
        /// Its type.
        note_type: NoteType,
        /// Its title.
        title: String,
        /// Its text.
        body: String,
        /// The notes that it stands for.
        superseded: Vec<NoteId>,
    },
}

/// Why an answer is not taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is not JSON, or more than JSON.
    #[error("the answer is not JSON: {0}")]
    NotJson(String),
    /// It is no list.
    #[error("the answer is not a list of groups")]
    NotAList,
    /// An item is no object.
    #[error("group {0} is not an object")]
    NotAnObject(usize),
    /// A group has a value that it cannot have.
    #[error("group {0}: {1}")]
    Group(usize, Flaw),
}

/// What is wrong with a group. None of its words are repeated: they may be anything.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Neither `keep` nor `synthesize`.
    #[error("the action is neither keep nor synthesize")]
    Action,
    /// It names no note that is superseded, or something that is no id.
    #[error("superseded_ids is not a list of ids")]
    Superseded,
    /// It names no keeper.
    #[error("keeper_id is missing")]
    Keeper,
    /// The keeper would replace itself.
    #[error("the keeper would replace itself")]
    Itself,
    /// Neither `semantic` nor `procedural`.
    #[error("the type is neither semantic nor procedural")]
    Type,
    /// A new note without a title or a text.
    #[error("{0} is blank")]
    Blank(&'static str),
    /// It names a note that was not given.
    #[error("it names what was not given")]
    NotGiven,
    /// Two groups, or one group twice, name a note.
    #[error("{0} is named twice")]
    Twice(NoteId),
}

/// Why there are no groups.
#[derive(Debug, thiserror::Error)]
pub enum Error<E: std::error::Error + 'static> {
    /// The model could not be asked.
    #[error(transparent)]
    Model(E),
    /// Its answer is not taken.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// The notes of a project that may be merged, the newest first: durable, in use, and not yet replaced.
pub fn candidates<'s>(shelf: &'s Shelf, project: &str) -> Vec<&'s Note> {
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

/// What a model is shown: as many of the notes as it has room for, and which these are. Nothing private
/// and no credential is among it.
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

/// Asks a model which of these notes are one matter.
///
/// # Errors
/// When it cannot be asked, or its answer is not taken.
pub fn ask<E: std::error::Error + 'static>(
    notes: &[&Note],
    model: &dyn Fn(&str, &str) -> Result<String, E>,
) -> Result<Vec<Group>, Error<E>> {
    let (text, given) = shown(notes);
    let prompt = prompts::merge(&text);
    let answer = model(prompt.system, &prompt.user).map_err(Error::Model)?;
    Ok(groups(&answer, &given)?)
}

/// Reads the answer of a model, which may name the notes that it was given and no others.
///
/// # Errors
/// When there is anything wrong with it.
pub fn groups(answer: &str, given: &BTreeSet<NoteId>) -> Result<Vec<Group>, Refused> {
    let json: Value = serde_json::from_str(unfenced(answer))
        .map_err(|error| Refused::NotJson(error.to_string()))?;
    let Value::Array(items) = json else {
        return Err(Refused::NotAList);
    };
    let mut named = BTreeSet::new();
    let mut groups = Vec::with_capacity(items.len());
    for (item, number) in items.iter().zip(1..) {
        let Value::Object(item) = item else {
            return Err(Refused::NotAnObject(number));
        };
        let group = group(item, given, &mut named);
        groups.push(group.map_err(|flaw| Refused::Group(number, flaw))?);
    }
    Ok(groups)
}

fn group(
    item: &Map<String, Value>,
    given: &BTreeSet<NoteId>,
    named: &mut BTreeSet<NoteId>,
) -> Result<Group, Flaw> {
    let text = |key: &str| item.get(key).and_then(Value::as_str);
    let is_keep = match text("action") {
        Some("keep") => true,
        Some("synthesize") => false,
        _ => return Err(Flaw::Action),
    };
    let mut take = |id: &str| {
        let id = id
            .parse()
            .ok()
            .filter(|id| given.contains(id))
            .ok_or(Flaw::NotGiven)?;
        if named.insert(id) {
            Ok(id)
        } else {
            Err(Flaw::Twice(id))
        }
    };
    let listed = item.get("superseded_ids").and_then(Value::as_array);
    let listed = listed
        .filter(|ids| !ids.is_empty())
        .ok_or(Flaw::Superseded)?;
    let listed: Vec<&str> = listed
        .iter()
        .map(|id| id.as_str().ok_or(Flaw::Superseded))
        .collect::<Result<_, _>>()?;
    let keeper = if is_keep {
        let keeper = text("keeper_id").filter(|id| !id.trim().is_empty());
        let keeper = keeper.ok_or(Flaw::Keeper)?;
        if listed.contains(&keeper) {
            return Err(Flaw::Itself);
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
        _ => return Err(Flaw::Type),
    };
    let filled = |key: &'static str, safe: fn(&str) -> String| {
        let text = text(key).map(|text| safe(text).trim().to_owned());
        text.filter(|text| !text.is_empty()).ok_or(Flaw::Blank(key))
    };
    Ok(Group::Synthesize {
        note_type,
        title: filled("title", safe_line)?,
        body: filled("body", safe)?,
        superseded,
    })
}

/// What becomes of a group.
#[derive(Debug, Clone, PartialEq)]
pub enum Merged {
    /// The keeper is to be like this.
    Changed(Box<Note>),
    /// This note is to be made.
    Made(Box<Note>),
    /// A person is asked: this note is proposed, and hides nothing before it is approved.
    Proposed(Box<Note>),
    /// A person has to do it, since one of the notes is theirs.
    Left,
}

/// Who merges, and when.
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
    /// The notes that would be hidden.
    pub fn superseded(&self) -> &[NoteId] {
        match self {
            Self::Keep { superseded, .. } | Self::Synthesize { superseded, .. } => superseded,
        }
    }

    /// What becomes of the notes by this group; nothing of one whose notes are not there any more.
    pub fn applied(&self, notes: &BTreeMap<NoteId, &Note>, author: &Author) -> Option<Merged> {
        let superseded = self.superseded().iter();
        let superseded: Vec<&Note> = superseded
            .map(|id| notes.get(id).copied())
            .collect::<Option<_>>()?;
        let project = &superseded.first()?.project;
        match self {
            Self::Keep { keeper, .. } => {
                let keeper = notes.get(keeper).copied()?;
                if is_a_persons(keeper) || superseded.iter().any(|note| is_a_persons(note)) {
                    return Some(Merged::Left);
                }
                let mut changed = keeper.clone();
                let ids = superseded.iter().map(|note| note.id.to_string());
                let all: BTreeSet<String> = ids.chain(changed.supersedes.drain(..)).collect();
                changed.supersedes = all.into_iter().collect();
                changed.add_tags(["merged"]);
                changed.updated_at = timestamp(author.now);
                Some(Merged::Changed(Box::new(changed)))
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
                    return Some(Merged::Proposed(Box::new(made)));
                }
                Some(Merged::Made(Box::new(made)))
            }
        }
    }

    /// The id of the new note: the same group makes the same note.
    fn id(&self) -> NoteId {
        NoteId::made_of(&format!("merge: {self:?}"))
    }
}

/// Tells whether no model may change or hide a note.
fn is_a_persons(note: &Note) -> bool {
    note.is_global() || note.source == Source::Human && !note.is_by_agent()
}

/// A line that says what a group is, for people; `shown` names a note.
pub fn line<D: Display>(group: &Group, shown: impl Fn(NoteId) -> D) -> String {
    let others = group.superseded().iter();
    let others: Vec<String> = others.map(|id| shown(*id).to_string()).collect();
    let others = others.join(", ");
    match group {
        Group::Keep { keeper, .. } => format!("{} stands for {others}", shown(*keeper)),
        Group::Synthesize { title, .. } => format!("'{title}' stands for {others}"),
    }
}

#[cfg(test)]
mod tests;
