//! Shows how two notes are connected, or the notes around one.

use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation},
};
use anamnesis_recall::{
    graph::Links,
    pathway::{self, MIN_STRENGTH, Path},
    similar::Similar,
};
use anamnesis_store::index::Index;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::note::Named;
use crate::{Error, context::Context, recall::known};

const DEFAULT_DEPTH: usize = 2;

const MAX_DEPTH: usize = 6;

/// The notes whose connection is shown.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FindPaths {
    /// The note's id: six or more characters of its start or end
    #[schemars(description = "")]
    from: String,
    /// The other note; without it, show the notes around the first one
    #[schemars(description = "")]
    to: Option<String>,
    /// The maximum distance in links from the note, 1 to 6
    #[serde(default = "super::default_of::<DEFAULT_DEPTH>")]
    #[schemars(description = "Without `to`: maximum distance in links, 1 to 6")]
    depth: usize,
    /// The minimum weight of a link: above 0, at most 1
    #[serde(default = "default_strength")]
    min_strength: f64,
    /// Also follow links between similar texts
    #[serde(default)]
    similar: bool,
}

fn default_strength() -> f64 {
    MIN_STRENGTH
}

/// The connections that were found.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundPaths {
    /// Strongest first
    pub paths: Vec<FoundPath>,
    /// If there is no path: the notes nearest to `from`
    pub nearest: Vec<Named>,
    /// There are more paths
    pub cut: bool,
}

/// A path between notes.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundPath {
    /// Its notes, including both ends.
    #[schemars(description = "")]
    pub notes: Vec<Named>,
    /// Its links.
    #[schemars(description = "")]
    pub links: Vec<FoundLink>,
    /// The product of the links' weights.
    #[schemars(description = "")]
    pub strength: f64,
}

/// A link of a path.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FoundLink {
    /// Its source.
    #[schemars(description = "")]
    pub from: NoteId,
    /// How the notes are related.
    #[schemars(with = "String", description = "")]
    pub relation: Relation,
    /// Its target.
    #[schemars(description = "")]
    pub to: NoteId,
}

/// Finds the strongest paths between two notes, or from a note to those around it.
pub fn find(context: &Context, request: FindPaths) -> Result<FoundPaths, Error> {
    let FindPaths {
        from,
        to,
        depth,
        min_strength,
        similar,
    } = request;
    if !(min_strength > 0.0 && min_strength <= 1.0) {
        return Err(Error::usage(format!("invalid min_strength {min_strength}"))
            .hint("expected a number above 0, at most 1"));
    }
    let index = context.index_to_read()?;
    let from = Context::resolve(&index, &from)?.id();
    let records = context.records()?;
    let known = known(context, &index, records.as_ref());
    let like = Similar::new(&index, &context.notes);
    let derived = |ids: &[NoteId]| {
        let mut edges = known.links(ids);
        if similar {
            // Similarity is optional: an error only means fewer links.
            edges.extend(like.links(ids).unwrap_or_default());
        }
        edges
    };
    let graph = Links {
        index: &index,
        derived: &derived,
    };
    let Some(to) = to else {
        let depth = depth.clamp(1, MAX_DEPTH);
        let found = pathway::around(&graph, from, depth, min_strength)?;
        return Ok(FoundPaths {
            paths: named(&index, &found.paths)?,
            nearest: Vec::new(),
            cut: found.is_cut,
        });
    };
    let to = Context::resolve(&index, &to)?.id();
    if from == to {
        return Err(Error::usage("both ends are the same note")
            .hint("pass two different notes, or omit `to`"));
    }
    let (paths, nearest) = pathway::between(&graph, from, to, min_strength)?;
    Ok(FoundPaths {
        paths: named(&index, &paths)?,
        nearest: Named::all(&index, &nearest)?,
        cut: false,
    })
}

fn named(index: &Index, paths: &[Path]) -> Result<Vec<FoundPath>, Error> {
    let link = |edge: &Edge| FoundLink {
        from: edge.from,
        relation: edge.relation,
        to: edge.to,
    };
    let named = |path: &Path| {
        Ok(FoundPath {
            notes: Named::all(index, &path.notes)?,
            links: path.edges.iter().map(link).collect(),
            strength: path.strength,
        })
    };
    paths.iter().map(named).collect()
}
