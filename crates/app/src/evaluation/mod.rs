//! Measures recall on the notes of the store. Measuring changes nothing that
//! recall learns from.

pub mod build;
pub mod experiment;
pub mod figures;
pub mod sandbox;

use std::path::Path;

use anamnesis_distill::merge;

use crate::{Error, evaluation_set::Set};

/// Returns the approved questions of a set, each with the notes that answer it.
pub fn approved(path: &Path) -> Result<Vec<merge::Case>, Error> {
    let set = Set::read(path)?;
    let cases = set.iter().flat_map(|set| &set.cases);
    let approved = cases.filter(|(_, case)| case.approved);
    Ok(approved
        .map(|(_, case)| merge::Case {
            query: case.query.clone(),
            right: case.notes().collect(),
        })
        .collect())
}
