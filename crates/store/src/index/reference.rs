//! Resolves a typed reference to a note.

use anamnesis_note::id::IdPrefix;

use super::{Entry, Error, Index};
use crate::notes::Problem;

/// The reference does not name exactly one note.
#[derive(Debug, thiserror::Error)]
pub enum Unresolvable {
    /// It is not an id or a part of one.
    #[error("it is not an id")]
    NotAnId,
    /// No note matches.
    #[error("no note has that id")]
    Nothing(IdPrefix),
    /// The note's file cannot be read.
    #[error("{}: {}", .0.path, .0.reason)]
    Unreadable(Problem),
    /// Several notes match, sorted by id.
    #[error("{} notes have that id", .1.len())]
    Several(IdPrefix, Vec<Entry>),
    /// The index cannot be read.
    #[error(transparent)]
    Index(#[from] Error),
}

impl Index {
    /// Returns the one note whose id begins or ends with the reference, including tombstones.
    pub fn resolve(&self, typed: &str) -> Result<Entry, Unresolvable> {
        let reference = IdPrefix::parse(typed).map_err(|_| Unresolvable::NotAnId)?;
        let mut found = self.matching(&reference)?;
        if found.len() > 1 {
            return Err(Unresolvable::Several(reference, found));
        }
        let unreadable = || -> Result<Unresolvable, Error> {
            let is_meant = |problem: &Problem| {
                let name = problem.path.rsplit('/').next().unwrap_or_default();
                name.strip_suffix(".md")
                    .is_some_and(|id| reference.matches(id))
            };
            let problem = self.problems()?.into_iter().find(is_meant);
            Ok(problem.map_or_else(
                || Unresolvable::Nothing(reference.clone()),
                Unresolvable::Unreadable,
            ))
        };
        match found.pop() {
            Some(entry) => Ok(entry),
            None => Err(unreadable()?),
        }
    }
}
