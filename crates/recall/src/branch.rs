//! Says of a session's note on which branch the session worked, until that branch is merged.

use anamnesis_note::note::Note;
use anamnesis_store::index::{BranchState, Error, Index};

/// Returns the remark about the branch of a note; none for a merged branch and for the default branch.
pub fn branch_remark(index: &Index, note: &Note) -> Result<Option<String>, Error> {
    if note.branch.is_none() {
        return Ok(None);
    }
    let known = index.branch_of(note.id)?;
    Ok(known.and_then(|(name, state)| match state {
        BranchState::Merged => None,
        BranchState::Unmerged => Some(format!("on branch {name}, not merged")),
        BranchState::Gone => Some(format!("on branch {name}, which is gone")),
        BranchState::Unknown => Some(format!("on branch {name}")),
    }))
}
