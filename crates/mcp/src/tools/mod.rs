//! The tools, one row each. A tool whose request and outcome no command shares has a file.

mod amend;
mod get;
mod list;
pub(crate) mod reflect;
mod review;
mod search;
mod status;
mod timeline;

use anamnesis_app::{
    feedback, forget,
    ops::{connect, pathway, sync, task, write},
};

pub(crate) use self::get::whole;

use crate::tool::{Effect, Tool};

/// All tools, in the order in which clients see them.
pub(crate) fn all() -> Vec<Tool> {
    vec![
        search::tool(),
        get::tool(),
        list::tool(),
        timeline::tool(),
        Tool::reading(
            "memory_pathway",
            "Show how notes are connected",
            "Find the strongest paths between two notes. Without `to`, list the notes around one. Links are \
             declared, or derived: both notes cite the same file or come from the same session.",
            pathway::find,
        ),
        review::tool(),
        status::tool(),
        Tool::writing(
            "memory_write",
            "Write a note",
            "Save one fact, decision, lesson or preference for later sessions: self-contained, with the reason. \
             Known content is refused. A note for all projects needs the person's approval. At most 10 per \
             session.",
            Effect::Adds,
            write::write,
        ),
        amend::tool(),
        Tool::writing(
            "memory_connect",
            "Link two notes",
            "Add or remove a link between two notes; linked notes are found together. `supersedes` hides the \
             target. If that changes or hides a note by the person or for all projects, it becomes a proposal.",
            Effect::Replaces,
            connect::connect,
        ),
        Tool::writing(
            "memory_forget",
            "Forget a note",
            "Move one note to the trash; the person can restore it for 30 days. Call it only if the person \
             asks for it, or if the note is by an agent and wrong.",
            Effect::Replaces,
            forget::forget_one,
        ),
        Tool::writing(
            "memory_task",
            "Manage tasks",
            "create (text), update (id; status, note) or list tasks that outlive this session. Open tasks are \
             shown at session start. When a task is done, `review` lists notes that may be outdated.",
            Effect::Adds,
            task::run,
        ),
        Tool::writing(
            "memory_feedback",
            "Rate a note",
            "Rate a note: good if it helped, bad if it was wrong or not useful. The rating is stored in the \
             note's front matter and changes its ranking. The text does not change.",
            Effect::AddsOnce,
            feedback::rate,
        ),
        reflect::tool(),
        Tool::writing(
            "memory_sync",
            "Sync notes",
            "Commit changed notes and sync them with the person's other machines through their git remote. \
             This also happens automatically; call it when the person asks.",
            Effect::UsesNetwork,
            sync::run,
        ),
    ]
}
