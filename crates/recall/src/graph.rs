//! Spreading activation: adds linked notes, and neighbours in a session, to a search result.
//!
//! A link joins notes that share no words. Activation starts only at notes that were found, never
//! at popular ones, and a note's activation is divided among its links. These are pure functions
//! over a [`Graph`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{
    id::NoteId,
    link::{Edge, Relation, combined_weight},
};
use anamnesis_store::index::{Error, Index};

/// How many of the best found notes activate others.
const MAX_SEEDS: usize = 5;

/// The maximum number of links of a note that carry activation, the strongest ones.
pub const MAX_LINKS: usize = 16;

/// The share of activation that is left after one link.
const DECAY: f64 = 0.85;

/// The share of the weaker paths' activation that is added to the strongest path's.
const WEAKER_PATHS_SHARE: f64 = 0.25;

/// The maximum activation of a linked note, relative to the best found note.
const MAX_RELATIVE_ACTIVATION: f64 = 0.8;

/// The minimum activation of an added note.
const MIN_ACTIVATION: f64 = 0.12;

/// The minimum coverage of the question for a note that no declared link leads to.
const MIN_COVERAGE: f64 = 0.10;

/// A source of links.
pub trait Graph {
    /// The error of reading links.
    type Error;

    /// Returns the links of these notes in either direction to notes that may be shown.
    fn edges(&self, ids: &[NoteId]) -> Result<Vec<Edge>, Self::Error>;

    /// Returns how many links each of these notes has. A missing note counts as having few.
    fn degrees(&self, ids: &[NoteId]) -> Result<HashMap<NoteId, usize>, Self::Error>;
}

/// The links in the index, and derived links.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    /// Declared links, mentions and links between notes of a session.
    pub index: &'a Index,
    /// Derived links that are not in the index: same file, used together.
    pub derived: &'a dyn Fn(&[NoteId]) -> Vec<Edge>,
}

impl Graph for Links<'_> {
    type Error = Error;

    fn edges(&self, ids: &[NoteId]) -> Result<Vec<Edge>, Error> {
        let mut edges = self.index.links_of(ids)?;
        edges.extend((self.derived)(ids));
        Ok(edges)
    }

    fn degrees(&self, ids: &[NoteId]) -> Result<HashMap<NoteId, usize>, Error> {
        self.index.degrees(ids)
    }
}

/// A note at the other end of one or more links.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Neighbour {
    /// The note.
    pub id: NoteId,
    /// The combined weight of the links, above 0.
    pub weight: f64,
    /// The strongest link.
    pub edge: Edge,
    /// Whether one of the links was declared.
    pub is_declared: bool,
    /// Whether the text of the activating note names this one.
    pub is_named: bool,
}

/// Returns the notes that `id` activates: at most [`MAX_LINKS`], strongest first, ties by id.
pub fn neighbours(id: NoteId, edges: &[Edge]) -> Vec<Neighbour> {
    let mut by_note: BTreeMap<NoteId, Vec<(f64, Edge)>> = BTreeMap::new();
    for edge in edges {
        let weight = edge.weight_from(id);
        if weight > 0.0 && edge.from != edge.to {
            by_note
                .entry(edge.other(id))
                .or_default()
                .push((weight, *edge));
        }
    }
    let mut neighbours: Vec<Neighbour> = by_note
        .into_iter()
        .filter_map(|(other, mut links)| {
            links.sort_by(|(a, edge), (b, other)| {
                b.total_cmp(a)
                    .then_with(|| (edge.relation, edge.from).cmp(&(other.relation, other.from)))
            });
            let (_, edge) = *links.first()?;
            Some(Neighbour {
                id: other,
                weight: combined_weight(links.iter().map(|(weight, _)| *weight)),
                edge,
                is_declared: links.iter().any(|(_, edge)| edge.relation.is_declared()),
                is_named: links
                    .iter()
                    .any(|(_, edge)| edge.relation == Relation::Mentions && edge.from == id),
            })
        })
        .collect();
    // The sort is stable, so ties stay in the order of ids.
    neighbours.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    neighbours.truncate(MAX_LINKS);
    neighbours
}

/// A linked note and its activation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activated {
    /// The note.
    pub id: NoteId,
    /// Its activation, on the scale of the found notes' scores.
    pub activation: f64,
    /// The previous note on the strongest path.
    pub via: NoteId,
    /// The link from that note to this one.
    pub edge: Edge,
    /// Whether a path of declared links leads to it.
    pub is_declared: bool,
    /// Whether the text of a note before it on a path names it.
    pub is_named: bool,
}

impl Activated {
    /// Returns whether the note is added.
    ///
    /// Its activation must be high enough, and either a declared path leads to it, or it has
    /// `terms` words of the question that cover enough of it.
    pub fn is_admitted(&self, terms: usize, coverage: f64) -> bool {
        self.activation >= MIN_ACTIVATION && (self.is_declared || touches(terms, coverage))
    }

    /// Like [`Self::is_admitted`], for a prompt, which did not ask for links: a declared link is not
    /// enough, unless the previous note names this one in its text.
    pub fn is_admitted_to_prompt(&self, terms: usize, coverage: f64) -> bool {
        self.activation >= MIN_ACTIVATION && (self.is_named || touches(terms, coverage))
    }
}

/// Returns whether a note has so many words of the question that it may come by a link.
fn touches(terms: usize, coverage: f64) -> bool {
    terms >= 1 && coverage >= MIN_COVERAGE
}

/// Spreads the scores of found notes along links, `hops` steps far. Returns linked notes, strongest
/// first, ties by id.
///
/// The found notes are not in the result, and only the best five activate others. Outgoing
/// activation is divided by the square sqrt_degree of the number of links. Incoming activation of a note
/// with more than [`MAX_LINKS`] links is divided by their number, so a hub adds nothing and is not
/// added.
pub fn spread<G: Graph>(
    found: &[(NoteId, f64)],
    hops: usize,
    graph: &G,
) -> Result<Vec<Activated>, G::Error> {
    let mut known: BTreeSet<NoteId> = found.iter().map(|(id, _)| *id).collect();
    // The note, its activation, and whether only declared links led to it.
    let mut frontier: Vec<(NoteId, f64, bool)> = found
        .iter()
        .filter(|(_, score)| *score > 0.0)
        .map(|(id, score)| (*id, *score, true))
        .collect();
    frontier.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    frontier.truncate(MAX_SEEDS);
    let limit = MAX_RELATIVE_ACTIVATION * frontier.first().map_or(0.0, |(_, score, _)| *score);
    let mut activated: Vec<Activated> = Vec::new();
    for _ in 0..hops {
        let ids: Vec<NoteId> = frontier.iter().map(|(id, ..)| *id).collect();
        if ids.is_empty() {
            break;
        }
        let edges = graph.edges(&ids)?;
        let mut paths: BTreeMap<NoteId, Vec<Activated>> = BTreeMap::new();
        for (from, score, is_declared) in &frontier {
            let neighbours = neighbours(*from, &edges);
            let share = score * DECAY / sqrt_degree(neighbours.len());
            for neighbour in neighbours.iter().filter(|to| !known.contains(&to.id)) {
                paths.entry(neighbour.id).or_default().push(Activated {
                    id: neighbour.id,
                    activation: share * neighbour.weight,
                    via: *from,
                    edge: neighbour.edge,
                    is_declared: *is_declared && neighbour.is_declared,
                    is_named: neighbour.is_named,
                });
            }
        }
        let reached: Vec<NoteId> = paths.keys().copied().collect();
        let degrees = graph.degrees(&reached)?;
        frontier.clear();
        for (id, mut paths) in paths {
            paths.sort_by(|a, b| {
                b.activation
                    .total_cmp(&a.activation)
                    .then(a.via.cmp(&b.via))
            });
            let Some(strongest) = paths.first() else {
                continue;
            };
            let sum: f64 = paths.iter().map(|path| path.activation).sum();
            let joined = strongest.activation + WEAKER_PATHS_SHARE * (sum - strongest.activation);
            let note = Activated {
                activation: (joined * hub_share(degrees.get(&id).copied())).min(limit),
                is_declared: paths.iter().any(|path| path.is_declared),
                is_named: paths.iter().any(|path| path.is_named),
                ..*strongest
            };
            frontier.push((id, note.activation, note.is_declared));
            activated.push(note);
        }
        known.extend(reached);
    }
    activated.sort_by(|a, b| b.activation.total_cmp(&a.activation).then(a.id.cmp(&b.id)));
    Ok(activated)
}

fn sqrt_degree(links: usize) -> f64 {
    (links.max(1) as f64).sqrt()
}

/// The share of incoming activation that a note of this degree keeps.
fn hub_share(degree: Option<usize>) -> f64 {
    MAX_LINKS as f64 / degree.unwrap_or(0).max(MAX_LINKS) as f64
}

/// The shares of the previous note's, the next note's and the group's best score that are added.
const PREVIOUS_SHARE: f64 = 0.2;
const NEXT_SHARE: f64 = 0.1;
const GROUP_BEST_SHARE: f64 = 0.15;

/// Rescores a ranked list by the neighbours of each note. Use it for long lists, where recall
/// matters more than the first result.
///
/// `groups` are ordered lists of notes of one session or file. Members that were not found are
/// added. Best first, ties by id.
pub fn with_neighbours(ranked: &[(NoteId, f64)], groups: &[Vec<NoteId>]) -> Vec<(NoteId, f64)> {
    let scores: HashMap<NoteId, f64> = ranked.iter().copied().collect();
    let score = |id: Option<&NoteId>| id.and_then(|id| scores.get(id)).copied().unwrap_or(0.0);
    // A note without a group is the best of its own group.
    let mut gains: BTreeMap<NoteId, f64> = ranked
        .iter()
        .map(|(id, score)| (*id, GROUP_BEST_SHARE * score))
        .collect();
    for group in groups {
        let best = group.iter().map(|id| score(Some(id))).fold(0.0, f64::max);
        for (place, id) in group.iter().enumerate() {
            let before = place.checked_sub(1).and_then(|place| group.get(place));
            let gain = PREVIOUS_SHARE * score(before)
                + NEXT_SHARE * score(group.get(place + 1))
                + GROUP_BEST_SHARE * best;
            let known = gains.entry(*id).or_insert(0.0);
            *known = known.max(gain);
        }
    }
    let ranks: HashMap<NoteId, usize> = (ranked.iter().map(|(id, _)| *id)).zip(0..).collect();
    let mut rescored: Vec<(NoteId, f64)> = gains
        .into_iter()
        .map(|(id, gain)| (id, score(Some(&id)) + gain))
        .filter(|(_, score)| *score > 0.0)
        .collect();
    // Ties keep the order of the ranking, newest first. Neighbours that it lacks come last.
    let rank = |id: &NoteId| ranks.get(id).copied().unwrap_or(usize::MAX);
    let tie = |a: &NoteId, b: &NoteId| rank(a).cmp(&rank(b)).then(b.cmp(a));
    rescored.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| tie(&a.0, &b.0)));
    rescored
}

#[cfg(test)]
pub(crate) mod tests {
    use std::convert::Infallible;

    use super::*;

    /// An in-memory graph.
    pub(crate) struct MemoryGraph(pub(crate) Vec<Edge>);

    impl Graph for MemoryGraph {
        type Error = Infallible;

        fn edges(&self, ids: &[NoteId]) -> Result<Vec<Edge>, Infallible> {
            let touching = |edge: &&Edge| ids.contains(&edge.from) || ids.contains(&edge.to);
            Ok(self.0.iter().filter(touching).copied().collect())
        }

        fn degrees(&self, ids: &[NoteId]) -> Result<HashMap<NoteId, usize>, Infallible> {
            let degree = |id: &NoteId| self.edges(&[*id]).map(|edges| (*id, edges.len()));
            ids.iter().map(degree).collect()
        }
    }

    /// Returns ids that sort by their number.
    pub(crate) fn id(number: usize) -> NoteId {
        format!("01ARZ3NDEKTSV4RRFFQ{number:07}").parse().unwrap()
    }

    pub(crate) fn edge(from: usize, to: usize, relation: Relation) -> Edge {
        Edge {
            from: id(from),
            to: id(to),
            relation,
            weight: None,
        }
    }

    fn spread_from(found: &[(usize, f64)], hops: usize, edges: Vec<Edge>) -> Vec<Activated> {
        let found: Vec<(NoteId, f64)> = found.iter().map(|(n, score)| (id(*n), *score)).collect();
        let Ok(activated) = spread(&found, hops, &MemoryGraph(edges));
        activated
    }

    fn shown(activated: &[Activated]) -> Vec<String> {
        let number = |id: NoteId| id.short().trim_start_matches('0').to_owned();
        activated
            .iter()
            .map(|note| {
                format!(
                    "{} {:.4} via {} by {}",
                    number(note.id),
                    note.activation,
                    number(note.via),
                    note.edge.relation
                )
            })
            .collect()
    }

    #[test]
    fn one_step_follows_the_formula() {
        use Relation::{CausedBy, Elaborates, RelatedTo, Session};
        // Note 1 has three links, note 2 has one.
        let edges = vec![
            edge(1, 3, CausedBy),
            edge(4, 1, CausedBy),
            edge(1, 5, Session),
            edge(2, 5, RelatedTo),
            edge(3, 9, Elaborates),
        ];
        assert_eq!(
            shown(&spread_from(&[(1, 0.6), (2, 0.4)], 1, edges)),
            [
                // 0.4 × 0.8 × 0.85 / √1 + ¼ × 0.6 × 0.5 × 0.85 / √3
                "5 0.3088 via 2 by related-to",
                // 0.6 × 1.0 × 0.85 / √3
                "3 0.2944 via 1 by caused-by",
                // Against the direction of the link: 0.8 instead of 1.0.
                "4 0.2356 via 1 by caused-by",
            ]
        );
    }

    #[test]
    fn activation_is_capped() {
        let edges = (2..=5).map(|n| edge(n, 9, Relation::CausedBy)).collect();
        let found = [(1, 0.5), (2, 0.5), (3, 0.5), (4, 0.5), (5, 0.5)];
        assert_eq!(
            shown(&spread_from(&found, 1, edges)),
            ["9 0.4000 via 2 by caused-by"]
        );
    }

    #[test]
    fn activation_decays_per_step_and_cycles_end() {
        let edges = vec![
            edge(1, 2, Relation::CausedBy),
            edge(2, 3, Relation::CausedBy),
            edge(3, 1, Relation::CausedBy),
            edge(3, 4, Relation::CausedBy),
        ];
        let two = spread_from(&[(1, 0.9)], 2, edges.clone());
        assert_eq!(
            shown(&two),
            [
                "2 0.5409 via 1 by caused-by",
                "3 0.4327 via 1 by caused-by",
                "4 0.2124 via 3 by caused-by",
            ]
        );
        assert_eq!(shown(&spread_from(&[(1, 0.9)], 50, edges)), shown(&two));
    }

    #[test]
    fn a_hub_changes_no_unrelated_answer() {
        // 500 notes in chains of twenty; the hub is linked to every one of them.
        let pairs = |n: usize| edge(n, n + 1, Relation::RelatedTo);
        let plain: Vec<Edge> = (1..500).filter(|n| n % 20 != 0).map(pairs).collect();
        let mut with_hub = plain.clone();
        with_hub.extend((1..=500).map(|n| edge(n, 999, Relation::RelatedTo)));
        let admitted = |edges: &[Edge], query: usize| {
            let found: Vec<(usize, f64)> = (0..5)
                .map(|place| (1 + (query * 37 + place * 97) % 500, 0.9))
                .collect();
            let activated = spread_from(&found, 1, edges.to_vec());
            let taken = activated
                .into_iter()
                .filter(|note| note.is_admitted(0, 0.0));
            taken.map(|note| note.id).collect::<BTreeSet<_>>()
        };
        for query in 0..50 {
            let before = admitted(&plain, query);
            assert!(!before.is_empty());
            assert_eq!(admitted(&with_hub, query), before, "query {query}");
        }
        // The hub activates no more than `MAX_LINKS` notes, each of them weakly.
        let from_hub = spread_from(&[(999, 0.9)], 1, with_hub);
        assert_eq!(from_hub.len(), MAX_LINKS);
        assert!(from_hub.iter().all(|note| note.activation < 0.16));
    }

    #[test]
    fn weightless_links_and_self_links_are_ignored() {
        let edges = vec![
            edge(1, 2, Relation::Contradicts),
            edge(1, 3, Relation::WarnsAgainst),
            edge(4, 1, Relation::Supersedes),
            edge(1, 1, Relation::RelatedTo),
        ];
        assert!(spread_from(&[(1, 0.9)], 2, edges).is_empty());
        assert!(spread_from(&[], 2, vec![edge(1, 2, Relation::About)]).is_empty());
        assert!(spread_from(&[(1, 0.0)], 1, vec![edge(1, 2, Relation::About)]).is_empty());
    }

    #[test]
    fn ties_go_by_id_whatever_the_order_of_the_links() {
        let mut edges: Vec<Edge> = (2..40).map(|n| edge(1, n, Relation::RelatedTo)).collect();
        let one = spread_from(&[(1, 0.9)], 1, edges.clone());
        edges.reverse();
        assert_eq!(spread_from(&[(1, 0.9)], 1, edges), one);
        let ids: Vec<NoteId> = one.iter().map(|note| note.id).collect();
        assert_eq!(ids, (2..18).map(id).collect::<Vec<_>>());
    }

    #[test]
    fn admission_needs_activation_and_a_declared_path_or_coverage() {
        let note = |activation, relation| Activated {
            id: id(1),
            activation,
            via: id(2),
            edge: edge(2, 1, relation),
            is_declared: relation.is_declared(),
            is_named: relation == Relation::Mentions,
        };
        for (activation, relation, terms, coverage, expected) in [
            (0.12, Relation::Mentions, 0, 0.0, true),
            (0.119, Relation::Mentions, 3, 0.9, false),
            (0.5, Relation::Session, 0, 0.0, false),
            (0.5, Relation::Session, 1, 0.09, false),
            (0.5, Relation::Session, 1, 0.10, true),
        ] {
            assert_eq!(
                note(activation, relation).is_admitted(terms, coverage),
                expected,
                "{activation} {relation} {terms} {coverage}"
            );
        }
        // A prompt takes a declared link only where the found note names the other.
        for (relation, terms, coverage, expected) in [
            (Relation::Mentions, 0, 0.0, true),
            (Relation::RelatedTo, 0, 0.0, false),
            (Relation::RelatedTo, 1, 0.10, true),
        ] {
            let admitted = note(0.5, relation).is_admitted_to_prompt(terms, coverage);
            assert_eq!(admitted, expected, "{relation} {terms} {coverage}");
        }
    }

    #[test]
    fn session_neighbours_gain_score() {
        let session: Vec<NoteId> = (1..=4).map(id).collect();
        let ranked = [(id(9), 0.62), (id(2), 0.6), (id(4), 0.1)];
        let scores: Vec<(NoteId, f64)> = with_neighbours(&ranked, &[session]);
        let rounded: Vec<(NoteId, f64)> = scores
            .into_iter()
            .map(|(id, score)| (id, (score * 1000.0).round() / 1000.0))
            .collect();
        assert_eq!(
            rounded,
            [
                (id(9), 0.713),
                (id(2), 0.69),
                // After the second note and before the fourth.
                (id(3), 0.22),
                (id(4), 0.19),
                (id(1), 0.15),
            ]
        );
        assert!(with_neighbours(&[], &[vec![id(1), id(2)]]).is_empty());
    }
}
