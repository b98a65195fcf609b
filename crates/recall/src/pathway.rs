//! Finds paths between two notes, and the notes around one.
//!
//! `between` returns the strongest path and up to three alternatives. A path's strength is the
//! product of its links' weights; each step has an extra cost. Ties go to the shorter path, then by
//! ids, so results are deterministic. For people only: injection does not use this module.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap},
};

use anamnesis_note::{id::NoteId, link::Edge};

use crate::graph::{Graph, Neighbour, neighbours};

/// The maximum length of a path, in links.
pub const MAX_HOPS: usize = 6;

/// The maximum number of notes that a search visits.
const MAX_SETTLED: usize = 500;

/// The maximum number of alternative paths.
const MAX_ALTERNATIVES: usize = 3;

/// The maximum number of notes returned by [`around`].
const MAX_AROUND: usize = 50;

/// How many reachable notes are named if there is no path.
const MAX_NEAREST: usize = 3;

/// The default minimum weight of a link.
pub const MIN_STRENGTH: f64 = 0.05;

/// The cost of a step in addition to its link's, in [`COST_UNIT`]s.
const STEP_COST: u64 = 100_000_000;

/// Costs are integers, so that equal paths cost the same in any order of addition.
const COST_UNIT: f64 = 1e9;

/// A path from one note to another.
#[derive(Debug, Clone, PartialEq)]
pub struct Path {
    /// The notes, including both ends.
    pub notes: Vec<NoteId>,
    /// The strongest link of each step.
    pub edges: Vec<Edge>,
    /// The product of the links' weights.
    pub strength: f64,
}

/// The result of [`around`].
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Around {
    /// The strongest path to each note other than the first, strongest first.
    pub paths: Vec<Path>,
    /// Whether there are more notes than returned.
    pub is_cut: bool,
}

/// Finds the paths between two notes, strongest first. If there is none, returns the notes nearest to the
/// first one instead, strongest first.
pub fn between<G: Graph>(
    graph: &G,
    from: NoteId,
    to: NoteId,
    min_strength: f64,
) -> Result<(Vec<Path>, Vec<NoteId>), G::Error> {
    let mut search = Search::new(graph, min_strength);
    let reached = search.run(&Request::all(from, Some(to), MAX_HOPS, MAX_SETTLED))?;
    let Some(first) = reached.iter().find(|label| label.end() == to) else {
        let mut nearest: Vec<NoteId> = Vec::new();
        for label in reached.iter().filter(|label| label.notes.len() > 1) {
            // The list may have a shorter path to the same note after the strongest one.
            if nearest.len() < MAX_NEAREST && !nearest.contains(&label.end()) {
                nearest.push(label.end());
            }
        }
        return Ok((Vec::new(), nearest));
    };
    let mut found = vec![first.clone()];
    // Yen's algorithm: an alternative leaves a known path at some note and may not use the steps
    // tried there.
    let mut candidates: BTreeSet<Label> = BTreeSet::new();
    while found.len() <= MAX_ALTERNATIVES {
        let Some(last) = found.last().cloned() else {
            break;
        };
        for place in 0..last.notes.len() - 1 {
            let (root, spur) = (&last.notes[..place], last.notes[place]);
            let shares_root = |path: &&Label| path.notes.get(..=place) == last.notes.get(..=place);
            let request = Request {
                from: spur,
                to: Some(to),
                hops: MAX_HOPS - place,
                settled: MAX_SETTLED,
                closed: root.iter().copied().collect(),
                not_first: found
                    .iter()
                    .filter(shares_root)
                    .filter_map(|path| path.notes.get(place + 1).copied())
                    .collect(),
            };
            let reached = search.run(&request)?;
            if let Some(rest) = reached.iter().find(|label| label.end() == to) {
                let notes: Vec<NoteId> = root.iter().chain(&rest.notes).copied().collect();
                candidates.insert(search.label(notes));
            }
        }
        candidates.retain(|candidate| !found.contains(candidate));
        let Some(next) = candidates.pop_first() else {
            break;
        };
        found.push(next);
    }
    let paths = found.iter().map(|label| search.path(label));
    Ok((paths.collect(), Vec::new()))
}

/// Finds the notes around one, up to `depth` links away.
pub fn around<G: Graph>(
    graph: &G,
    from: NoteId,
    depth: usize,
    min_strength: f64,
) -> Result<Around, G::Error> {
    let mut search = Search::new(graph, min_strength);
    // The note itself, the returned notes, and one more that shows that there are more.
    let request = Request::all(from, None, depth.min(MAX_HOPS), MAX_AROUND + 2);
    let reached = search.run(&request)?;
    let mut paths: BTreeMap<NoteId, &Label> = BTreeMap::new();
    for label in reached.iter().filter(|label| label.notes.len() > 1) {
        // The strongest path comes first; a shorter one to the same note may follow.
        paths.entry(label.end()).or_insert(label);
    }
    let mut labels: Vec<&Label> = paths.into_values().collect();
    labels.sort_unstable();
    let is_cut = labels.len() > MAX_AROUND;
    labels.truncate(MAX_AROUND);
    Ok(Around {
        paths: labels.into_iter().map(|label| search.path(label)).collect(),
        is_cut,
    })
}

/// A path, ordered by cost, then hops, then ids.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Label {
    cost: u64,
    hops: usize,
    notes: Vec<NoteId>,
}

impl Label {
    fn end(&self) -> NoteId {
        *self
            .notes
            .last()
            .expect("a way has the note that it begins with")
    }
}

/// A shortest path request.
struct Request {
    from: NoteId,
    to: Option<NoteId>,
    hops: usize,
    settled: usize,
    /// Notes that the path may not visit.
    closed: BTreeSet<NoteId>,
    /// Notes that the first step may not lead to.
    not_first: BTreeSet<NoteId>,
}

impl Request {
    fn all(from: NoteId, to: Option<NoteId>, hops: usize, settled: usize) -> Self {
        Self {
            from,
            to,
            hops,
            settled,
            closed: BTreeSet::new(),
            not_first: BTreeSet::new(),
        }
    }
}

/// A graph with a cache of each note's links.
struct Search<'a, G> {
    graph: &'a G,
    min_strength: f64,
    links: HashMap<NoteId, Vec<Neighbour>>,
}

impl<'a, G: Graph> Search<'a, G> {
    fn new(graph: &'a G, min_strength: f64) -> Self {
        Self {
            graph,
            min_strength,
            links: HashMap::new(),
        }
    }

    /// Dijkstra's algorithm with a limit on hops. Returns the paths to every note, best first.
    ///
    /// A costlier path to a note is kept if it is shorter, because it may continue where the
    /// cheaper path has no hops left.
    fn run(&mut self, request: &Request) -> Result<Vec<Label>, G::Error> {
        let mut pending = BinaryHeap::from([Reverse(Label {
            cost: 0,
            hops: 0,
            notes: vec![request.from],
        })]);
        let mut fewest_hops: HashMap<NoteId, usize> = HashMap::new();
        let mut reached: Vec<Label> = Vec::new();
        while let Some(Reverse(label)) = pending.pop() {
            let end = label.end();
            match fewest_hops.get(&end) {
                Some(hops) if *hops <= label.hops => continue,
                None if fewest_hops.len() == request.settled => break,
                _ => fewest_hops.insert(end, label.hops),
            };
            reached.push(label.clone());
            if request.to == Some(end) {
                break;
            }
            if label.hops == request.hops {
                continue;
            }
            for neighbour in self.neighbours(end)? {
                let is_closed = request.closed.contains(&neighbour.id)
                    || label.notes.contains(&neighbour.id)
                    || (label.hops == 0 && request.not_first.contains(&neighbour.id));
                if !is_closed {
                    let mut notes = label.notes.clone();
                    notes.push(neighbour.id);
                    pending.push(Reverse(Label {
                        cost: label.cost + cost(neighbour.weight),
                        hops: label.hops + 1,
                        notes,
                    }));
                }
            }
        }
        Ok(reached)
    }

    fn neighbours(&mut self, id: NoteId) -> Result<&[Neighbour], G::Error> {
        if !self.links.contains_key(&id) {
            let mut links = neighbours(id, &self.graph.edges(&[id])?);
            links.retain(|link| link.weight >= self.min_strength);
            self.links.insert(id, links);
        }
        Ok(self.links.get(&id).map_or(&[], Vec::as_slice))
    }

    /// Returns the links along a found path.
    fn steps<'s>(&'s self, notes: &'s [NoteId]) -> impl Iterator<Item = &'s Neighbour> {
        notes.windows(2).filter_map(|step| {
            let links = self.links.get(&step[0])?;
            links.iter().find(|link| link.id == step[1])
        })
    }

    fn label(&self, notes: Vec<NoteId>) -> Label {
        Label {
            cost: self.steps(&notes).map(|step| cost(step.weight)).sum(),
            hops: notes.len() - 1,
            notes,
        }
    }

    fn path(&self, label: &Label) -> Path {
        Path {
            edges: self.steps(&label.notes).map(|step| step.edge).collect(),
            strength: self.steps(&label.notes).map(|step| step.weight).product(),
            notes: label.notes.clone(),
        }
    }
}

/// Returns the cost of a step along a link.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a weight is between 0 and 1, so this is positive and far below 2^63"
)]
fn cost(weight: f64) -> u64 {
    (-weight.max(f64::MIN_POSITIVE).ln() * COST_UNIT)
        .round()
        .max(0.0) as u64
        + STEP_COST
}

#[cfg(test)]
mod tests {
    use anamnesis_note::link::Relation;
    use proptest::prelude::*;

    use super::*;
    use crate::graph::tests::{MemoryGraph, edge, id};

    fn numbers(path: &Path) -> Vec<String> {
        path.notes
            .iter()
            .map(|id| id.short().trim_start_matches('0').to_owned())
            .collect()
    }

    fn paths_text(edges: Vec<Edge>, from: usize, to: usize) -> Vec<String> {
        let Ok((paths, nearest)) = between(&MemoryGraph(edges), id(from), id(to), MIN_STRENGTH);
        let paths = paths
            .iter()
            .map(|path| format!("{} {:.3}", numbers(path).join(" "), path.strength));
        let nearest = (!nearest.is_empty()).then(|| format!("{nearest:?}"));
        paths.chain(nearest).collect()
    }

    #[test]
    fn between_returns_the_strongest_path_and_alternatives() {
        use Relation::{CausedBy, RelatedTo, Session};
        let edges = vec![
            edge(1, 2, CausedBy),
            edge(2, 3, CausedBy),
            edge(1, 3, Session),
            edge(1, 4, RelatedTo),
            edge(4, 3, RelatedTo),
            edge(5, 6, RelatedTo),
        ];
        assert_eq!(
            paths_text(edges.clone(), 1, 3),
            ["1 2 3 1.000", "1 4 3 0.640", "1 3 0.500"]
        );
        assert_eq!(paths_text(edges.clone(), 1, 1), ["1 1.000"]);
        let nearest = format!("{:?}", [id(2), id(3), id(4)]);
        assert_eq!(paths_text(edges, 1, 6), [nearest]);
    }

    #[test]
    fn a_path_has_at_most_six_links() {
        let chain = |length: usize| {
            (0..length)
                .map(|n| edge(n, n + 1, Relation::RelatedTo))
                .collect()
        };
        assert_eq!(paths_text(chain(6), 0, 6).len(), 1);
        assert!(paths_text(chain(7), 0, 7)[0].starts_with("[NoteId"));
        // The strongest path to note 3 is too long to continue; the weaker, shorter one is not.
        let mut edges: Vec<Edge> = (0..3).map(|n| edge(n, n + 1, Relation::CausedBy)).collect();
        edges.push(edge(0, 3, Relation::File));
        edges.extend((3..8).map(|n| edge(n, n + 1, Relation::CausedBy)));
        assert_eq!(
            paths_text(edges, 0, 8),
            ["3 4 5 6 7 8 0.400".to_owned()].map(|way| format!(" {way}"))
        );
    }

    #[test]
    fn around_returns_notes_within_the_depth() {
        let edges = vec![
            edge(1, 2, Relation::RelatedTo),
            edge(2, 3, Relation::RelatedTo),
            edge(3, 4, Relation::RelatedTo),
            edge(1, 5, Relation::File),
        ];
        let Ok(around_one) = around(&MemoryGraph(edges.clone()), id(1), 2, MIN_STRENGTH);
        let shown: Vec<_> = around_one.paths.iter().map(numbers).collect();
        assert_eq!(shown, [vec!["1", "2"], vec!["1", "2", "3"], vec!["1", "5"]]);
        assert!(!around_one.is_cut);
        let Ok(strong) = around(&MemoryGraph(edges), id(1), 2, 0.5);
        assert_eq!(strong.paths.len(), 2);
        // A note has at most sixteen neighbours, so fifty notes need two steps.
        let tree: Vec<Edge> = (1..=16)
            .flat_map(|n| {
                std::iter::once(edge(0, n, Relation::RelatedTo))
                    .chain((1..=10).map(move |m| edge(n, n * 100 + m, Relation::RelatedTo)))
            })
            .collect();
        let Ok(many) = around(&MemoryGraph(tree), id(0), 2, MIN_STRENGTH);
        assert_eq!((many.paths.len(), many.is_cut), (50, true));
    }

    /// Returns all loop-free paths in the order of preference.
    fn all_paths(edges: &[Edge], from: NoteId, to: NoteId) -> Vec<Vec<NoteId>> {
        let mut done: Vec<(u64, usize, Vec<NoteId>)> = Vec::new();
        let mut pending = vec![(0, vec![from])];
        while let Some((spent, notes)) = pending.pop() {
            let end = notes[notes.len() - 1];
            if end == to {
                done.push((spent, notes.len(), notes));
                continue;
            }
            if notes.len() > MAX_HOPS {
                continue;
            }
            for link in neighbours(end, edges) {
                if !notes.contains(&link.id) && link.weight >= MIN_STRENGTH {
                    let longer = [notes.clone(), vec![link.id]].concat();
                    pending.push((spent + cost(link.weight), longer));
                }
            }
        }
        done.sort();
        done.into_iter().map(|(_, _, notes)| notes).collect()
    }

    proptest! {
        #[test]
        fn between_agrees_with_brute_force(
            links in prop::collection::vec((0..12_usize, 0..12_usize, 0..5_usize), 1..30),
            from in 0..12_usize,
            to in 0..12_usize,
        ) {
            use Relation::{About, CausedBy, Contradicts, RelatedTo, Session};
            let relations = [CausedBy, RelatedTo, Session, About, Contradicts];
            let edges: Vec<Edge> = links.iter().map(|(a, b, r)| edge(*a, *b, relations[*r])).collect();
            let mut expected = all_paths(&edges, id(from), id(to));
            expected.truncate(1 + MAX_ALTERNATIVES);
            let Ok((paths, _)) = between(&MemoryGraph(edges), id(from), id(to), MIN_STRENGTH);
            let found: Vec<_> = paths.into_iter().map(|path| path.notes).collect();
            prop_assert_eq!(found, expected);
        }
    }
}
