//! `memory_pathway`: shows how two notes are connected, or which notes are near one.

use anamnesis_app::recall::known;
use anamnesis_note::{id::NoteId, link::Edge};
use anamnesis_recall::{
    graph::Links,
    note_set::Knowledge as _,
    pathway::{self, Between, MIN_STRENGTH, Path},
    similar::Similar,
};
use anamnesis_store::index::Index;
use rmcp::schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{
    memory::{Memory, ToolError},
    note::Named,
    tool::Tool,
};

const DEFAULT_DEPTH: u64 = 2;

const MAX_DEPTH: usize = 6;

pub(super) fn tool() -> Tool {
    Tool::reading(
        "memory_pathway",
        "Show how notes are connected",
        "Find the strongest paths between two notes, or, without `to`, the notes around one. Links are \
         declared, or come from files that both notes cite or from use in the same sessions.",
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    from: String,
    to: Option<String>,
    /// Without `to`: maximum distance in links, 1 to 6
    #[serde(default = "default_depth")]
    depth: u64,
    /// Minimum weight of a link: above 0, at most 1
    #[serde(default = "default_strength")]
    min_strength: f64,
    /// Also follow links between similar texts
    #[serde(default)]
    similar: bool,
}

fn default_depth() -> u64 {
    DEFAULT_DEPTH
}

fn default_strength() -> f64 {
    MIN_STRENGTH
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct PathwayOutput {
    /// Strongest first
    paths: Vec<Way>,
    /// If there is no path: the notes nearest to `from`
    nearest: Vec<Named>,
    /// There are more paths
    cut: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Way {
    notes: Vec<Named>,
    links: Vec<Link>,
    strength: f64,
}

#[derive(Debug, Serialize, JsonSchema)]
#[schemars(crate = "rmcp::schemars")]
struct Link {
    from: String,
    relation: &'static str,
    to: String,
}

fn run(memory: &Memory, asked: Parameters) -> Result<PathwayOutput, ToolError> {
    let Parameters {
        from,
        to,
        depth,
        min_strength,
        similar,
    } = asked;
    if !(min_strength > 0.0 && min_strength <= 1.0) {
        let message = format!("invalid min_strength {min_strength}");
        return Err(ToolError::new(
            "bad_argument",
            message,
            "expected a number above 0, at most 1",
        ));
    }
    let index = memory.index()?;
    let from = Memory::resolve(&index, &from)?.id();
    let records = memory.records()?;
    let context = memory.at_present();
    let known = known(&context, &index, records.as_ref());
    let notes = memory.notes();
    let like = Similar::new(&index, &notes);
    let derived = |ids: &[NoteId]| {
        let mut edges = known.links(ids);
        if similar {
            // Notes that cannot be compared have no similarity links.
            edges.extend(like.links(ids).unwrap_or_default());
        }
        edges
    };
    let graph = Links {
        index: &index,
        derived: &derived,
    };
    let Some(to) = to else {
        let depth = usize::try_from(depth)
            .unwrap_or(MAX_DEPTH)
            .clamp(1, MAX_DEPTH);
        let found = pathway::around(&graph, from, depth, min_strength)?;
        return Ok(PathwayOutput {
            paths: ways(&index, &found.paths)?,
            nearest: Vec::new(),
            cut: found.is_cut,
        });
    };
    let to = Memory::resolve(&index, &to)?.id();
    if from == to {
        let hint = "pass two different notes, or omit `to`";
        return Err(ToolError::new(
            "bad_argument",
            "`from` and `to` are the same note",
            hint,
        ));
    }
    let (paths, nearest) = match pathway::between(&graph, from, to, min_strength)? {
        Between::Paths(paths) => (ways(&index, &paths)?, Vec::new()),
        Between::Nothing(nearest) => (Vec::new(), Named::all(&index, &nearest)?),
    };
    Ok(PathwayOutput {
        paths,
        nearest,
        cut: false,
    })
}

fn ways(index: &Index, paths: &[Path]) -> Result<Vec<Way>, ToolError> {
    let way = |path: &Path| {
        Ok(Way {
            notes: Named::all(index, &path.notes)?,
            links: path.edges.iter().map(link).collect(),
            strength: path.strength,
        })
    };
    paths.iter().map(way).collect()
}

fn link(edge: &Edge) -> Link {
    Link {
        from: edge.from.to_string(),
        relation: edge.relation.as_str(),
        to: edge.to.to_string(),
    }
}
