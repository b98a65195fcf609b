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
        "Show how notes hang together",
        "Show the strongest ways between two notes over links (declared, of files, of use), or, with one \
         note, what is around it.",
        run,
    )
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(crate = "rmcp::schemars")]
struct Parameters {
    from: String,
    to: Option<String>,
    /// Without `to`: how many links far, 1 to 6
    #[serde(default = "default_depth")]
    depth: u64,
    /// The least weight of a link that counts, above 0 and at most 1
    #[serde(default = "default_strength")]
    min_strength: f64,
    /// Links to notes that say much the same, too
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
    /// The strongest first
    paths: Vec<Way>,
    /// Where there is no way between the two: what is nearest to the first
    nearest: Vec<Named>,
    /// There are more than these
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
        let message = format!("min_strength is {min_strength}");
        return Err(ToolError::new(
            "bad_argument",
            message,
            "above 0, at most 1",
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
        let hint = "two notes, or one without `to`";
        return Err(ToolError::new(
            "bad_argument",
            "both ends are the same note",
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
