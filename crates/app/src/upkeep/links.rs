//! Rebuilds the links from the notes, and counts them.

use std::{collections::BTreeSet, time::Duration};

use anamnesis_note::{id::NoteId, link::Relation};
use anamnesis_store::index::{Entry, Filter, Index, LinkCounts, UnresolvedLink};
use serde::Serialize;

use crate::{Error, context::Context, recall::known};

/// The links after a rebuild.
#[derive(Serialize)]
pub struct LinkReport {
    /// Links that are in the index.
    #[serde(flatten)]
    pub stored: LinkCounts,
    /// Links between notes that cite the same file.
    pub file: usize,
    /// Links that lead to no note.
    pub unresolved: Vec<UnresolvedLink>,
    /// The short ids of their notes.
    #[serde(skip)]
    pub shorts: Vec<String>,
}

/// Rebuilds the index with its links. Notes are only read.
pub fn rebuild(context: &Context) -> Result<LinkReport, Error> {
    let mut index = Index::rebuild(&context.home, &context.notes, Duration::from_secs(60))?;
    // Adds notes that were written during the rebuild.
    index.refresh(&context.notes)?;
    index.refresh_usage(&context.home)?;
    let unresolved = index.unresolved_links()?;
    let shorts = unresolved.iter();
    let shorts = shorts.map(|link| Context::short(&index, link.note));
    let journal = context.records()?;
    let known = known(context, &index, journal.as_ref());
    let notes = index.list(&Filter::default(), usize::MAX)?;
    let ids: Vec<NoteId> = notes.iter().map(Entry::id).collect();
    // Each link is found at both of its ends.
    let links: BTreeSet<_> = known
        .links(&ids)
        .iter()
        .map(|edge| (edge.relation, edge.from, edge.to))
        .collect();
    let count = |wanted| {
        let relations = links.iter().map(|(relation, ..)| *relation);
        relations.filter(|relation| *relation == wanted).count()
    };
    Ok(LinkReport {
        file: count(Relation::File),
        shorts: shorts.collect(),
        unresolved,
        stored: index.link_counts()?,
    })
}
