//! Pointers at a file: the first time that Claude uses a file which a note names, one line leads to the
//! note. Only the index is asked, by the exact path; a note is read if one has it.

use std::path::Path;

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Visibility},
};
use anamnesis_recall::{
    branch::branch_remark,
    render::{Recalled, pointer_block},
};
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

/// Returns the path of the file that a call uses, relative to the project's folder.
fn used_file(folder: &Path, call: &ToolCall) -> Option<String> {
    if !TOOLS.contains(&call.tool.as_str()) {
        return None;
    }
    let path = FIELDS
        .iter()
        .find_map(|field| call.input.get(field)?.as_str())?;
    let relative = match Path::new(path).strip_prefix(folder) {
        Ok(below) => below,
        Err(_) if Path::new(path).is_relative() => Path::new(path),
        Err(_) => return None,
    };
    Some(relative.to_str()?.replace('\\', "/"))
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
    let Some(path) = used_file(folder, call) else {
        return Ok(None);
    };
    let index = Index::open(&context.home)?;
    let mut citing = Vec::new();
    for key in project().all_keys() {
        citing.extend(index.notes_citing(&key, &path, MAX_CITING)?);
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
    let mut remarks = recall::known(context, &index, Some(journal)).remarks(note.id)?;
    remarks.extend(branch_remark(&index, &note)?);
    Ok(Some(pointer(&index, note, path, remarks)))
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
        Visibility::from_note(&note).may_surface().then_some(note)
    });
    Ok({ read }.next())
}

fn pointer(index: &Index, note: Note, path: String, remarks: Vec<String>) -> AtTool {
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
    let recalled = Recalled {
        note,
        at: 0,
        matched: vec![path],
        remarks,
        closed: Vec::new(),
    };
    let block = pointer_block(&[recalled], |id| Context::short(index, id));
    AtTool {
        context: Some(block.text),
        denial: None,
        shown,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_a_file_of_the_project_is_looked_up() {
        let folder = Path::new(if cfg!(windows) {
            "C:\\shop"
        } else {
            "/work/shop"
        });
        let used = |tool: &str, field: &str, path: &Path| {
            let call = ToolCall {
                tool: tool.to_owned(),
                input: json!({ field: path }),
                ..ToolCall::default()
            };
            used_file(folder, &call)
        };
        let file = folder.join("src").join("a.rs");
        assert_eq!(used("Read", "file_path", &file).unwrap(), "src/a.rs");
        assert_eq!(
            used("NotebookEdit", "notebook_path", &file).unwrap(),
            "src/a.rs"
        );
        assert_eq!(
            used("Write", "file_path", Path::new("src/a.rs")).unwrap(),
            "src/a.rs"
        );
        assert_eq!(used("Bash", "file_path", &file), None);
        assert_eq!(used("Read", "path", &file), None);
        assert_eq!(
            used("Read", "file_path", &std::env::temp_dir().join("a.rs")),
            None
        );
    }
}
