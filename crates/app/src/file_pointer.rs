//! Pointers at a file: the first time that Claude uses a file which a note names, one line leads to the
//! note. Only the index is asked, by the exact path; a note is read if one has it.

use std::path::{Component, Path, PathBuf};

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, NoteType, Visibility},
};
use anamnesis_recall::{note_set::recalled, render::pointer_block};
use anamnesis_session::hook::ToolCall;
use anamnesis_store::{
    index::{Error, Index},
    journal::{Evidence, FILE, Given, Journal, POINTER, ShownNote},
    project::Project,
};
use anamnesis_text::hash::text_hash;

use crate::{context::Context, recall, tool_hooks::AtTool};

/// The tools that use a file, and the fields of their input with its path.
const TOOLS: [&str; 5] = ["Edit", "MultiEdit", "NotebookEdit", "Read", "Write"];
const FIELDS: [&str; 2] = ["file_path", "notebook_path"];

/// The maximum number of these pointers in a context.
const MAX_POINTERS: usize = 3;

/// A file that more notes name says little about each of them.
const MAX_CITING: usize = 10;

/// Returns the path of the file that a call uses.
fn used_file(folder: &Path, call: &ToolCall) -> Option<PathBuf> {
    if !TOOLS.contains(&call.tool.as_str()) {
        return None;
    }
    let path = FIELDS
        .iter()
        .find_map(|field| call.input.get(field)?.as_str())?;
    let mut file = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => _ = file.pop(),
            part => file.push(part),
        }
    }
    Some(file)
}

/// Returns the paths by which a note may name a file of the project: relative to the session's folder, to
/// the repository's, and absolute, without the slash. None for a file that is in neither.
fn names_of(file: &Path, folder: &Path, project: &Project) -> Vec<String> {
    let bases = std::iter::once(folder).chain(project.repository());
    let below = bases.filter_map(|base| file.strip_prefix(base).ok()?.to_str());
    let mut names: Vec<String> = below.map(|path| path.replace('\\', "/")).collect();
    if !names.is_empty() {
        let absolute = file.to_str().and_then(|path| path.strip_prefix('/'));
        names.extend(absolute.map(str::to_owned));
    }
    names.dedup();
    names
}

/// Returns a pointer to a note of the project that names the file of a call, unless the context has seen
/// the note, has a pointer at this file, or has enough of them. A session and each
/// of its subagents have contexts of their own.
pub fn at_file<'a>(
    context: &Context,
    journal: &Journal,
    project: impl FnOnce() -> &'a Project,
    folder: &Path,
    (session, agent): (&str, &str),
    call: &ToolCall,
) -> Result<Option<AtTool>, Error> {
    let Some(file) = used_file(folder, call) else {
        return Ok(None);
    };
    let project = project();
    let names = names_of(&file, folder, project);
    let Some(path) = names.first() else {
        return Ok(None);
    };
    let index = Index::open(&context.home)?;
    let mut citing = Vec::new();
    for key in project.all_keys() {
        citing.extend(index.notes_citing(&key, &names, MAX_CITING)?);
    }
    citing.retain(|id| *id != NoteId::of_session(session));
    if citing.is_empty() {
        return Ok(None);
    }
    let Ok(mut given) = journal.given(session) else {
        return Ok(None);
    };
    given.retain(|given| given.agent == agent);
    let is_at_file = |given: &&Given| given.lane == FILE;
    let names_path = |given: &Given| {
        let evidence = given.evidence.as_ref();
        evidence.is_some_and(|evidence| evidence.matched == [path.as_str()])
    };
    if given.iter().filter(is_at_file).count() >= MAX_POINTERS
        || given.iter().filter(is_at_file).any(names_path)
    {
        return Ok(None);
    }
    citing.retain(|id| given.iter().all(|given| given.note != id.to_string()));
    let Some(note) = best(context, &index, &citing)? else {
        return Ok(None);
    };
    let remarks = recall::known(context, &index, Some(journal)).remarks(note.id)?;
    let shown = ShownNote {
        note: note.id,
        hash: text_hash(&note.body),
        level: POINTER,
        reason: "names the file",
        evidence: Some(Evidence {
            matched: vec![path.clone()],
            ..Evidence::default()
        }),
    };
    let recalled = recalled(&index, note, vec![path.clone()], remarks)?;
    let block = pointer_block(&[recalled], |id| Context::short(&index, id));
    Ok(Some(AtTool {
        context: Some(block.text),
        denial: None,
        shown,
    }))
}

/// Returns the note to point to: one that a person or Claude wrote before those of sessions, then the newest.
fn best(context: &Context, index: &Index, citing: &[NoteId]) -> Result<Option<Note>, Error> {
    let mut entries = Vec::new();
    for id in citing {
        entries.extend(index.get(*id)?.filter(|entry| !entry.superseded));
    }
    entries.sort_by(|a, b| {
        let is_of_session = |kind| kind == NoteType::Episodic;
        (is_of_session(a.path.folder).cmp(&is_of_session(b.path.folder)))
            .then(b.updated_at.cmp(&a.updated_at))
    });
    let read = entries.iter().filter_map(|entry| {
        let note = context.notes.read(entry.path).ok()?.note();
        let visibility = Visibility::from_note(&note);
        let is_open_task =
            visibility.is_in_force() && note.status().is_open() && note.kind() == Kind::Task;
        (is_open_task || visibility.may_surface()).then_some(note)
    });
    Ok({ read }.next())
}

#[cfg(test)]
mod tests {
    use anamnesis_store::project::Step;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_file_has_the_names_by_which_notes_may_know_it() {
        let call = |tool: &str, field: &str| ToolCall {
            tool: tool.to_owned(),
            input: json!({ field: "src/a.rs" }),
            ..ToolCall::default()
        };
        let root = Path::new(if cfg!(windows) {
            "C:\\shop"
        } else {
            "/work/shop"
        });
        let folder = root.join("app");
        let file = used_file(&folder, &call("Read", "file_path")).unwrap();
        let from_below = used_file(&folder.join("./docs/.."), &call("Read", "file_path"));
        assert_eq!(from_below, Some(file.clone()));
        let used = |tool, field| used_file(&folder, &call(tool, field));
        assert_eq!(used("NotebookEdit", "notebook_path"), Some(file.clone()));
        assert_eq!(used("Bash", "file_path"), None);
        assert_eq!(used("Read", "path"), None);
        let project = Project {
            step: Step::Remote(root.to_owned()),
            ..Project::named("shop")
        };
        let names = |file: &Path, project: &Project| {
            let mut names = names_of(file, &folder, project);
            names.retain(|name| !name.starts_with("work/"));
            names
        };
        assert_eq!(names(&file, &project), ["src/a.rs", "app/src/a.rs"]);
        assert_eq!(names(&file, &Project::named("shop")), ["src/a.rs"]);
        assert_eq!(
            names(&root.join(".env.example"), &project),
            [".env.example"]
        );
        assert_eq!(names(&std::env::temp_dir().join("a.rs"), &project).len(), 0);
        if cfg!(unix) {
            let absolute = names_of(&file, &folder, &project).pop();
            assert_eq!(absolute.unwrap(), "work/shop/app/src/a.rs");
        }
    }
}
