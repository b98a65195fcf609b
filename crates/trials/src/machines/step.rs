//! What can happen in a history, how often, and what it does to a note.

use anamnesis_lab::random::Random;
use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, NoteType},
};

use super::trace::Reach;

/// Typical number of steps of a large sync, alone and including its git processes.
const SYNC_STEPS: u64 = 160;
const SYNC_AND_GIT_STEPS: u64 = 300;

pub(super) const PROJECTS: [&str; 3] = ["global", "github.com/acme/shop", "github.com/acme/docs"];

pub(super) const TAGS: [&str; 5] = ["sqlite", "git", "launcher", "ssh", "hooks"];

/// A change of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoteEdit {
    Title,
    Paragraph,
    Append,
    Insert,
    Item,
    Cut,
    AddTag,
    DropTag,
    Link,
    Supersede,
    Type,
    Project,
}

const CHANGES: [NoteEdit; 12] = [
    NoteEdit::Title,
    NoteEdit::Paragraph,
    NoteEdit::Append,
    NoteEdit::Insert,
    NoteEdit::Item,
    NoteEdit::Cut,
    NoteEdit::AddTag,
    NoteEdit::DropTag,
    NoteEdit::Link,
    NoteEdit::Supersede,
    NoteEdit::Type,
    NoteEdit::Project,
];

/// A step of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A person writes a note.
    Write,
    /// A hook leaves a session note without a commit.
    Capture,
    /// A command changes a note.
    Edit(NoteEdit),
    /// An editor changes a note's file without a commit.
    EditByHand,
    Forget,
    Restore,
    /// Somebody deletes a note's file.
    Remove,
    /// A note moves to `local/` or back.
    Move,
    Sync,
    /// A sync is killed before this step, counted in the program or on the whole machine.
    Kill(Reach, usize),
    /// A command runs while a sync is stopped before this step.
    Meddle(usize, NoteEdit),
    /// Two machines sync at the same time.
    Together,
    /// A machine is discarded and set up again from the remote.
    Replace,
    /// The remote is unreachable for a while.
    Unplug,
    /// The clock becomes wrong by a day, or right again.
    Clock,
}

/// Draws the parameters of a kind of step.
type Drawn = fn(&mut Random) -> Step;

/// The weight of each kind of step. A step that needs something missing becomes a new note.
const WEIGHTS: [(u64, Drawn); 16] = [
    (13, |_| Step::Write),
    (6, |_| Step::Capture),
    (42, |random| Step::Edit(draw(random, &CHANGES))),
    (5, |_| Step::EditByHand),
    (3, |_| Step::Forget),
    (2, |_| Step::Restore),
    (2, |_| Step::Remove),
    (4, |_| Step::Move),
    (12, |_| Step::Sync),
    (4, |random| {
        Step::Kill(Reach::Program, draw_step(random, SYNC_STEPS))
    }),
    (4, |random| {
        Step::Kill(Reach::Machine, draw_step(random, SYNC_AND_GIT_STEPS))
    }),
    (4, |random| {
        let change = draw(random, &CHANGES);
        Step::Meddle(draw_step(random, SYNC_STEPS), change)
    }),
    (3, |_| Step::Together),
    (1, |_| Step::Replace),
    (2, |_| Step::Unplug),
    (2, |_| Step::Clock),
];

impl Step {
    pub(super) fn draw(random: &mut Random) -> Self {
        let sum: u64 = WEIGHTS.iter().map(|(weight, _)| weight).sum();
        let mut drawn = random.below(sum);
        for (weight, step) in WEIGHTS {
            if drawn < weight {
                return step(random);
            }
            drawn -= weight;
        }
        Self::Write
    }
}

pub(super) fn draw<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.index(from.len())]
}

/// Draws a step of a sync, counted from 1.
fn draw_step(random: &mut Random, most: u64) -> usize {
    usize::try_from(random.below(most) + 1).unwrap_or(1)
}

impl NoteEdit {
    /// Applies a change that its mark makes unique.
    pub(super) fn apply(self, note: &mut Note, mark: &str, other: NoteId, place: usize) {
        let tag = TAGS[place % TAGS.len()];
        let mut paragraphs: Vec<String> = note.body.split("\n\n").map(str::to_owned).collect();
        let at = place % paragraphs.len();
        match self {
            NoteEdit::Title => note.title = format!("Title of {mark}"),
            NoteEdit::Paragraph => paragraphs[at] = format!("Changed paragraph. {mark}"),
            NoteEdit::Append => paragraphs.push(format!("Added paragraph. {mark}")),
            NoteEdit::Insert => paragraphs.insert(at, format!("Paragraph between. {mark}")),
            NoteEdit::Item => {
                let list = paragraphs.iter_mut().find(|part| part.starts_with("- "));
                match list {
                    Some(list) => *list = format!("{list}\n- item of {mark}"),
                    None => paragraphs.push(format!("- item of {mark}")),
                }
            }
            NoteEdit::Cut if paragraphs.len() > 2 => drop(paragraphs.remove(at)),
            NoteEdit::AddTag => note.add_tags([tag]),
            NoteEdit::DropTag => note.tags.retain(|own| own != tag),
            NoteEdit::Link => note.links.push(format!("related-to {other}")),
            NoteEdit::Supersede if other != note.id => note.supersedes.push(other.to_string()),
            NoteEdit::Cut | NoteEdit::Supersede => {}
            NoteEdit::Type => {
                note.note_type = match note.note_type {
                    NoteType::Procedural => NoteType::Semantic,
                    _ => NoteType::Procedural,
                };
                note.kind = Some(Kind::of_type(note.note_type));
            }
            NoteEdit::Project => PROJECTS[place % PROJECTS.len()].clone_into(&mut note.project),
        }
        note.body = paragraphs.join("\n\n");
    }
}
