//! The tools, one row each. Their requests, outcomes and functions are the operations of `app`.

use anamnesis_app::{
    feedback, forget,
    ops::{
        amend, connect, get, list, pathway, reflect, review, search, status, sync, task, timeline,
        write,
    },
};

use crate::tool::{Effect, Tool};

/// The tool whose proposals the person is asked about in the client's dialog.
pub(crate) const REFLECT: &str = "memory_reflect";

/// All tools, in the order in which clients see them.
pub(crate) fn all() -> Vec<Tool> {
    let mut tools = reading();
    tools.extend(writing());
    tools
}

/// The tools that only read.
fn reading() -> Vec<Tool> {
    vec![
        Tool::new(
            "memory_search",
            "Search notes",
            "Search notes by keywords, best match first. One matching word is enough; +\"a phrase\" and \
             +prefix* are required. Superseded and forgotten notes are excluded.",
            Effect::Reads,
            search::search,
        ),
        Tool::new(
            "memory_get",
            "Get notes",
            "Return full notes by id. 6 or more characters of an id's beginning or end are enough.",
            Effect::Reads,
            get::get,
        ),
        Tool::new(
            "memory_list",
            "List notes",
            "List notes without their text, newest first, including superseded ones.",
            Effect::Reads,
            list::list,
        ),
        Tool::new(
            "memory_timeline",
            "Show a timeline",
            "List what happened before and after a note or a time: sessions, prompts and observations that \
             this machine recorded, and notes created then.",
            Effect::Reads,
            timeline::timeline,
        ),
        Tool::new(
            "memory_pathway",
            "Show how notes are connected",
            "Find the strongest paths between two notes. Without `to`, list the notes around one. Links are \
             declared, or derived: both notes cite the same file or come from the same session.",
            Effect::Reads,
            pathway::find,
        ),
        Tool::new(
            "memory_review",
            "List notes that need attention",
            "List proposals, conflicts, notes that Claude wrote or forgot, notes that may be outdated (with \
             the reason) and, with `duplicates`, pairs of similar notes. The person decides on them.",
            Effect::Reads,
            review::review,
        ),
        Tool::new(
            "memory_status",
            "Show status",
            "Return counts of notes and links, the state of sync, and how sessions used injected notes.",
            Effect::Reads,
            status::status,
        ),
    ]
}

/// The tools that change something.
fn writing() -> Vec<Tool> {
    vec![
        Tool::new(
            "memory_write",
            "Write a note",
            "Save one fact, decision, lesson or preference for later sessions: self-contained, with the reason. \
             Known content is refused. A note for all projects needs the person's approval. At most 10 per \
             session.",
            Effect::Adds,
            write::write,
        ),
        Tool::new(
            "memory_amend",
            "Change a note",
            "Change fields of a note by an agent or a session, or pin it; omitted fields are kept. A change \
             of a note by the person or for all projects becomes a proposal that needs the person's approval.",
            Effect::Replaces,
            amend::amend,
        ),
        Tool::new(
            "memory_connect",
            "Link two notes",
            "Add or remove a link between two notes; linked notes are found together. `supersedes` hides the \
             target. If that changes or hides a note by the person or for all projects, it becomes a proposal.",
            Effect::Replaces,
            connect::connect,
        ),
        Tool::new(
            "memory_forget",
            "Forget a note",
            "Move one note to the trash; the person can restore it for 30 days. Call it only if the person \
             asks for it, or if the note is by an agent and wrong.",
            Effect::Replaces,
            forget::forget_one,
        ),
        Tool::new(
            "memory_task",
            "Manage tasks",
            "create (text), update (id; status, note) or list tasks that outlive this session. Open tasks are \
             shown at session start. When a task is done, `review` lists notes that may be outdated.",
            Effect::Adds,
            task::run,
        ),
        Tool::new(
            "memory_feedback",
            "Rate a note",
            "Rate a note: good if it helped, bad if it was wrong or not useful. The rating is stored in the \
             note's front matter and changes its ranking. The text does not change.",
            Effect::AddsOnce,
            feedback::rate,
        ),
        Tool::new(
            REFLECT,
            "Distil session notes",
            "For /memory-reflect only. Without `key`: returns session notes of a project to distil, and a key. \
             With `key` and `answer`: proposes the notes in the answer to the person.",
            Effect::Adds,
            reflect::reflect,
        ),
        Tool::new(
            "memory_sync",
            "Sync notes",
            "Commit changed notes and sync them with the person's other machines through their git remote. \
             This also happens automatically; call it when the person asks.",
            Effect::UsesNetwork,
            sync::run,
        ),
    ]
}
