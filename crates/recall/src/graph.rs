//! Notes that come along with others: over links, and as neighbours in a session.
//!
//! A link tells what words cannot: that two notes belong together though they share none. So a note
//! is activated only by notes that were found, never by popularity, and what a note passes on is
//! divided among its links. Pure functions over a [`Graph`]; nothing here reads or writes.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{
    id::NoteId,
    link::{Edge, together},
};
use anamnesis_store::index::{Error, Index};

/// How many of the found notes pass something on.
const MAX_SEEDS: usize = 5;

/// How many links of a note something is passed on along, the strongest.
pub const MAX_LINKS: usize = 16;

/// What is left of an activation after one step.
const STEP: f64 = 0.85;

/// How much of what reaches a note over its weaker ways is added to the strongest.
const FURTHER_WAYS: f64 = 0.25;

/// The most that a linked note may have of the best found one.
const MAX_SHARE: f64 = 0.8;

/// The least activation at which a linked note is taken.
const MIN_ACTIVATION: f64 = 0.12;

/// The least share of the question that a note has to cover that no declared link leads to.
const MIN_COVERAGE: f64 = 0.10;

/// Where links come from.
pub trait Graph {
    /// Why they cannot be had.
    type Error;

    /// The links that each of these notes has, in either direction, to notes that may be shown.
    ///
    /// # Errors
    /// When they cannot be had.
    fn edges(&self, ids: &[NoteId]) -> Result<Vec<Edge>, Self::Error>;

    /// How many links each of these notes has; a note that is not told of has few.
    ///
    /// # Errors
    /// When they cannot be counted.
    fn degrees(&self, ids: &[NoteId]) -> Result<HashMap<NoteId, usize>, Self::Error>;
}

/// The links of the index, and those that nobody wrote down.
#[derive(Clone, Copy)]
pub struct Links<'a> {
    /// What notes declare, mention, and have of their sessions.
    pub index: &'a Index,
    /// The links of notes that the index does not make: of files, of use.
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
    /// What the links are worth together, above 0.
    pub weight: f64,
    /// The strongest of them.
    pub edge: Edge,
    /// Whether somebody wrote one of them down.
    pub is_declared: bool,
}

/// The notes that something is passed on to from `id`: at most [`MAX_LINKS`], strongest first, ties
/// by id.
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
                weight: together(links.iter().map(|(weight, _)| *weight)),
                edge,
                is_declared: links.iter().any(|(_, edge)| edge.relation.is_declared()),
            })
        })
        .collect();
    // Stable, and sorted by id before.
    neighbours.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    neighbours.truncate(MAX_LINKS);
    neighbours
}

/// A note that comes along with found ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Activated {
    /// The note.
    pub id: NoteId,
    /// How strongly, on the scale of the found notes' scores.
    pub activation: f64,
    /// The note before it on the strongest way.
    pub via: NoteId,
    /// The link that leads from that one to it.
    pub edge: Edge,
    /// How many links it is away.
    pub hops: usize,
    /// Whether a way leads to it that somebody wrote down, link by link.
    pub is_declared: bool,
}

impl Activated {
    /// Tells whether the note is taken: strongly enough linked, and either by somebody's word or in
    /// touch with the question, of which it shares `terms` and covers `coverage`.
    pub fn is_admitted(&self, terms: usize, coverage: f64) -> bool {
        let touches = terms >= 1 && coverage >= MIN_COVERAGE;
        self.activation >= MIN_ACTIVATION && (self.is_declared || touches)
    }
}

/// Passes the scores of found notes on along links, `hops` steps far. Strongest first, ties by id.
///
/// The found notes themselves are not among the result; only the best five pass something on. What a
/// note passes on is divided by the root of the number of its links, and what reaches a note of more
/// than [`MAX_LINKS`] links is divided among all of them: a note that is linked with everything comes
/// along with nothing.
///
/// # Errors
/// When the links cannot be had.
pub fn spread<G: Graph>(
    found: &[(NoteId, f64)],
    hops: usize,
    graph: &G,
) -> Result<Vec<Activated>, G::Error> {
    let mut known: BTreeSet<NoteId> = found.iter().map(|(id, _)| *id).collect();
    // Who passes something on, how much, and whether only declared links led there.
    let mut frontier: Vec<(NoteId, f64, bool)> = found
        .iter()
        .filter(|(_, score)| *score > 0.0)
        .map(|(id, score)| (*id, *score, true))
        .collect();
    frontier.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    frontier.truncate(MAX_SEEDS);
    let limit = MAX_SHARE * frontier.first().map_or(0.0, |(_, score, _)| *score);
    let mut activated: Vec<Activated> = Vec::new();
    for hop in 1..=hops {
        let ids: Vec<NoteId> = frontier.iter().map(|(id, ..)| *id).collect();
        if ids.is_empty() {
            break;
        }
        let edges = graph.edges(&ids)?;
        let mut ways: BTreeMap<NoteId, Vec<Activated>> = BTreeMap::new();
        for (from, score, is_declared) in &frontier {
            let neighbours = neighbours(*from, &edges);
            let share = score * STEP / root(neighbours.len());
            for neighbour in neighbours.iter().filter(|to| !known.contains(&to.id)) {
                ways.entry(neighbour.id).or_default().push(Activated {
                    id: neighbour.id,
                    activation: share * neighbour.weight,
                    via: *from,
                    edge: neighbour.edge,
                    hops: hop,
                    is_declared: *is_declared && neighbour.is_declared,
                });
            }
        }
        let reached: Vec<NoteId> = ways.keys().copied().collect();
        let degrees = graph.degrees(&reached)?;
        frontier.clear();
        for (id, mut ways) in ways {
            ways.sort_by(|a, b| {
                b.activation
                    .total_cmp(&a.activation)
                    .then(a.via.cmp(&b.via))
            });
            let Some(strongest) = ways.first() else {
                continue;
            };
            let sum: f64 = ways.iter().map(|way| way.activation).sum();
            let joined = strongest.activation + FURTHER_WAYS * (sum - strongest.activation);
            let note = Activated {
                activation: (joined * fan(degrees.get(&id).copied())).min(limit),
                is_declared: ways.iter().any(|way| way.is_declared),
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

#[expect(clippy::cast_precision_loss, reason = "at most sixteen")]
fn root(links: usize) -> f64 {
    (links.max(1) as f64).sqrt()
}

/// The part that is left of what reaches a note with so many links.
#[expect(clippy::cast_precision_loss, reason = "counted up to a thousand")]
fn fan(degree: Option<usize>) -> f64 {
    MAX_LINKS as f64 / degree.unwrap_or(0).max(MAX_LINKS) as f64
}

/// What the score of the note before, the one after and the best of its group adds to a note's.
const BEFORE: f64 = 0.2;
const AFTER: f64 = 0.1;
const BEST: f64 = 0.15;

/// Scores a ranked list anew by what stands around each note: for a long list, where more of the right
/// notes count for more than the right one at the top.
///
/// `groups` are the notes of sessions or files that the ranked ones belong to, each in its order. Notes
/// of them that were not found come in. Best first, ties by id.
pub fn with_neighbours(ranked: &[(NoteId, f64)], groups: &[Vec<NoteId>]) -> Vec<(NoteId, f64)> {
    let scores: HashMap<NoteId, f64> = ranked.iter().copied().collect();
    let score = |id: Option<&NoteId>| id.and_then(|id| scores.get(id)).copied().unwrap_or(0.0);
    // A note that is in no group is the best of its own.
    let mut gains: BTreeMap<NoteId, f64> = ranked
        .iter()
        .map(|(id, score)| (*id, BEST * score))
        .collect();
    for group in groups {
        let best = group.iter().map(|id| score(Some(id))).fold(0.0, f64::max);
        for (place, id) in group.iter().enumerate() {
            let before = place.checked_sub(1).and_then(|place| group.get(place));
            let gain = BEFORE * score(before) + AFTER * score(group.get(place + 1)) + BEST * best;
            let known = gains.entry(*id).or_insert(0.0);
            *known = known.max(gain);
        }
    }
    let mut ranked: Vec<(NoteId, f64)> = gains
        .into_iter()
        .map(|(id, gain)| (id, score(Some(&id)) + gain))
        .filter(|(_, score)| *score > 0.0)
        .collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    ranked
}

#[cfg(test)]
pub(crate) mod tests {
    use std::convert::Infallible;

    use anamnesis_note::link::Relation;

    use super::*;

    /// A graph of edges in memory.
    pub(crate) struct Given(pub(crate) Vec<Edge>);

    impl Graph for Given {
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

    /// Notes whose ids are in the order of their numbers.
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
        let Ok(activated) = spread(&found, hops, &Given(edges));
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
    fn one_step_by_the_formula() {
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
                // Against the direction: 0.8 in place of 1.0.
                "4 0.2356 via 1 by caused-by",
            ]
        );
    }

    #[test]
    fn no_linked_note_has_more_than_its_share_of_the_best() {
        let edges = (2..=5).map(|n| edge(n, 9, Relation::CausedBy)).collect();
        let found = [(1, 0.5), (2, 0.5), (3, 0.5), (4, 0.5), (5, 0.5)];
        assert_eq!(
            shown(&spread_from(&found, 1, edges)),
            ["9 0.4000 via 2 by caused-by"]
        );
    }

    #[test]
    fn a_second_step_fades_once_more_and_circles_end() {
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
    fn a_hub_changes_no_answer_to_what_is_unrelated() {
        // 500 notes in twenties, each linked with the next; the hub with every one of them.
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
        // Nor does it drag along what it is linked with.
        let from_hub = spread_from(&[(999, 0.9)], 1, with_hub);
        assert_eq!(from_hub.len(), MAX_LINKS);
        assert!(from_hub.iter().all(|note| note.activation < 0.16));
    }

    #[test]
    fn links_without_weight_and_links_to_oneself_lead_nowhere() {
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
    fn what_is_taken() {
        let note = |activation, relation| Activated {
            id: id(1),
            activation,
            via: id(2),
            edge: edge(2, 1, relation),
            hops: 1,
            is_declared: relation.is_declared(),
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
    }

    #[test]
    fn neighbours_in_a_session_rise_and_come_in() {
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
                // After the second, before the fourth.
                (id(3), 0.22),
                (id(4), 0.19),
                (id(1), 0.15),
            ]
        );
        assert!(with_neighbours(&[], &[vec![id(1), id(2)]]).is_empty());
    }
}
