//! Supersession: which notes are replaced by others.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use anamnesis_note::note::Note;
use rusqlite::{Connection, params};

use super::{Tables, entry::in_use};
use crate::sqlite::Queries;

const SCHEMA: &str = "
CREATE TABLE supersedes (number INTEGER NOT NULL, id TEXT NOT NULL) STRICT;
CREATE INDEX supersedes_number ON supersedes (number);
CREATE INDEX supersedes_id ON supersedes (id);
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert,
    remove: &["DELETE FROM supersedes WHERE number = ?"],
};

/// Clears the mark of all superseded notes, which are few.
pub(super) const NONE_SUPERSEDED: &str = "UPDATE note SET superseded = 0 WHERE superseded = 1";

fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    let own = note.id.to_string();
    for id in note.supersedes.iter().filter(|id| **id != own) {
        connection.run("INSERT INTO supersedes VALUES (?, ?)", params![number, id])?;
    }
    Ok(())
}

/// A note that names another one in `supersedes`.
struct Superseding {
    id: String,
    /// Whether a person wrote the replaced note, and when; decides which note of a cycle survives.
    replaced_by_hand: bool,
    replaced_created_at: String,
    replaced: String,
}

/// Marks every note that an active note supersedes. Returns the notes whose mark changed, with the
/// mark.
///
/// A proposal supersedes nothing. In a cycle, the oldest note by a person survives, or the oldest
/// note if there is none.
pub(super) fn mark(connection: &Connection) -> rusqlite::Result<BTreeMap<i64, bool>> {
    let edges = edges(connection)?;
    let hidden = hidden(&edges);
    let before = marked(connection)?;
    connection.run(NONE_SUPERSEDED, [])?;
    for id in hidden {
        connection.run("UPDATE note SET superseded = 1 WHERE id = ?", [id])?;
    }
    let now = marked(connection)?;
    let changed = before.symmetric_difference(&now);
    Ok(changed
        .map(|number| (*number, now.contains(number)))
        .collect())
}

/// Returns the replacements by active notes.
fn edges(connection: &Connection) -> rusqlite::Result<Vec<Superseding>> {
    connection.rows(concat!(
            "SELECT newer.id AS newer, older.id AS older, older.source = 'human' AND older.by_agent = 0 AS by_hand, older.created_at
             FROM supersedes JOIN note AS newer USING (number) JOIN note AS older ON older.id = supersedes.id
             WHERE ",
            in_use!("newer")
        ), [], |row| {
            Ok(Superseding {
                id: row.get("newer")?,
                replaced: row.get("older")?,
                replaced_by_hand: row.get("by_hand")?,
                replaced_created_at: row.get("created_at")?,
            })
        })
}

fn marked(connection: &Connection) -> rusqlite::Result<BTreeSet<i64>> {
    connection.column("SELECT number FROM note WHERE superseded = 1", [])
}

fn hidden(edges: &[Superseding]) -> BTreeSet<&str> {
    let circles = circles(edges);
    let in_one_circle = |edge: &Superseding| {
        let circle = circles.get(edge.id.as_str());
        circle.is_some() && circle == circles.get(edge.replaced.as_str())
    };
    // Every note of a cycle is replaced; the least in this order survives.
    let rank = |edge: &'_ Superseding| {
        (
            !edge.replaced_by_hand,
            edge.replaced_created_at.clone(),
            edge.replaced.clone(),
        )
    };
    let mut survivors: HashMap<usize, &Superseding> = HashMap::new();
    for edge in edges.iter().filter(|edge| in_one_circle(edge)) {
        let survivor = survivors
            .entry(circles[edge.replaced.as_str()])
            .or_insert(edge);
        if rank(edge) < rank(survivor) {
            *survivor = edge;
        }
    }
    let survives = |edge: &Superseding| {
        in_one_circle(edge)
            && survivors
                .get(&circles[edge.replaced.as_str()])
                .is_some_and(|survivor| survivor.replaced == edge.replaced)
    };
    edges
        .iter()
        .filter(|edge| !survives(edge))
        .map(|edge| edge.replaced.as_str())
        .collect()
}

/// Numbers the cycles: notes with the same number replace each other, directly or indirectly.
///
/// Kosaraju's algorithm for strongly connected components, without recursion.
fn circles(edges: &[Superseding]) -> HashMap<&str, usize> {
    let mut forward: HashMap<&str, Vec<&str>> = HashMap::new();
    let mut backward: HashMap<&str, Vec<&str>> = HashMap::new();
    for edge in edges {
        forward.entry(&edge.id).or_default().push(&edge.replaced);
        forward.entry(&edge.replaced).or_default();
        backward.entry(&edge.replaced).or_default().push(&edge.id);
    }
    let mut finished: Vec<&str> = Vec::with_capacity(forward.len());
    let mut seen: HashSet<&str> = HashSet::with_capacity(forward.len());
    for start in forward.keys() {
        // A note and the number of its replaced notes that were visited.
        let mut path: Vec<(&str, usize)> = Vec::new();
        if seen.insert(start) {
            path.push((start, 0));
        }
        while let Some((note, gone_through)) = path.pop() {
            if let Some(next) = forward[note].get(gone_through) {
                path.push((note, gone_through + 1));
                if seen.insert(next) {
                    path.push((next, 0));
                }
            } else {
                finished.push(note);
            }
        }
    }
    let mut circles: HashMap<&str, usize> = HashMap::with_capacity(forward.len());
    for (number, start) in finished.into_iter().rev().enumerate() {
        let mut pending = vec![start];
        while let Some(note) = pending.pop() {
            if circles.contains_key(note) {
                continue;
            }
            circles.insert(note, number);
            pending.extend(backward.get(note).into_iter().flatten());
        }
    }
    circles
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_a_long_circle_one_note_stays_and_a_chain_is_hidden_but_its_head() {
        let edge = |id: usize, replaced: usize| Superseding {
            id: format!("{id:05}"),
            replaced: format!("{replaced:05}"),
            replaced_by_hand: replaced == 3,
            replaced_created_at: String::new(),
        };
        let circle: Vec<Superseding> = (0..5).map(|n| edge(n, (n + 1) % 5)).collect();
        assert_eq!(
            hidden(&circle),
            BTreeSet::from(["00000", "00001", "00002", "00004"])
        );
        let chain: Vec<Superseding> = (0..20_000).map(|n| edge(n, n + 1)).collect();
        assert_eq!(hidden(&chain).len(), 20_000);
        let outside = [edge(0, 1), edge(1, 0), edge(9, 0)];
        assert_eq!(hidden(&outside), BTreeSet::from(["00000", "00001"]));
    }
}
