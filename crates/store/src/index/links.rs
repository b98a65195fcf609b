//! Links as notes declare them. They are resolved when they are queried.
//!
//! A link to a missing note therefore works as soon as the note exists, and a title that two notes
//! share names neither. Links within a session are not stored, because they follow from the notes.
//! This module does not decide what is shown.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anamnesis_note::{
    id::NoteId,
    link::{DeclaredLinks, Edge, Link, Mention, Relation, title_key},
    note::{Note, NoteType, State, parse_timestamp},
};
use anamnesis_text::{clean::one_line, hash::number_hash};
use rusqlite::{
    Connection, Row, ToSql, params,
    types::{FromSql, FromSqlResult, ToSqlOutput, ValueRef},
};
use serde::{Serialize, Serializer};

use super::{
    Error, Index, Tables,
    entry::{Parsed, in_use},
    inert,
};
use crate::sqlite::Queries;

const SCHEMA: &str = "
CREATE TABLE link (
  number INTEGER NOT NULL,
  place INTEGER NOT NULL,
  relation TEXT NOT NULL,
  target ANY NOT NULL,
  weight REAL,
  back INTEGER NOT NULL,
  PRIMARY KEY (number, place)
) STRICT, WITHOUT ROWID;
CREATE INDEX link_target ON link (target, back DESC);
CREATE INDEX link_review ON link (number) WHERE relation IN ('about', 'contradicts', 'part-of');
CREATE TABLE title (
  key INTEGER NOT NULL, number INTEGER NOT NULL, PRIMARY KEY (key, number)
) STRICT, WITHOUT ROWID;
CREATE TABLE invalid_link (number INTEGER NOT NULL, line TEXT NOT NULL, reason TEXT NOT NULL) STRICT;
CREATE INDEX invalid_link_number ON invalid_link (number);
";

pub(super) const PART: Tables = Tables {
    schema: SCHEMA,
    insert,
    remove: &[
        "DELETE FROM link WHERE number = ?",
        "DELETE FROM invalid_link WHERE number = ?",
    ],
};

/// The maximum number of links per note and direction, which bounds the cost.
const MAX_ROWS: usize = 64;

/// The maximum number of notes of a session that are ordered.
const MAX_IN_SESSION: usize = 512;

/// The count at which counting the links of a note stops.
const MAX_DEGREE: usize = 1024;

/// The maximum length of a chain of notes that replace each other.
const MAX_STEPS: usize = 16;

/// The links that a note declares.
const FROM_NOTE: &str = "SELECT target, relation, weight FROM link
  WHERE number = (SELECT number FROM note WHERE id = ?)";

/// The links that active notes declare to a note, by id or title, strongest first.
const TO_NOTE: &str = concat!(
    "SELECT note.id AS source, link.relation, link.weight
  FROM link JOIN note USING (number)
  WHERE link.target = ? AND link.back > 0 AND ",
    in_use!("note"),
    " ORDER BY link.back DESC, link.number LIMIT ?"
);

/// The relations that recall does not follow.
const TO_NOTE_WITHOUT_WEIGHT: &str = concat!(
    "SELECT note.id AS source, link.relation, link.weight
  FROM link JOIN note USING (number)
  WHERE link.target = ? AND link.back = 0 AND ",
    in_use!("note"),
    " ORDER BY link.number LIMIT ?"
);

/// The notes that replace a note, and those it replaces.
const SUPERSEDING: &str = concat!(
    "SELECT newer.id FROM supersedes JOIN note AS newer USING (number)
  WHERE supersedes.id = ? AND ",
    in_use!("newer"),
    " ORDER BY newer.id LIMIT ?"
);
const SUPERSEDED: &str = concat!(
    "SELECT older.id FROM supersedes JOIN note AS older ON older.id = supersedes.id
  WHERE supersedes.number = (SELECT number FROM note WHERE id = ?) AND ",
    in_use!("older"),
    " ORDER BY older.id LIMIT ?"
);

/// The active notes with a title; two are enough to know that it is ambiguous.
const BY_TITLE: &str = concat!(
    "SELECT note.title, note.id FROM title JOIN note USING (number)
  WHERE title.key = ? AND note.superseded = 0 AND ",
    in_use!("note"),
    " LIMIT 2"
);

const SESSION_OF: &str = "SELECT session, type FROM note WHERE id = ? AND session IS NOT NULL";

const IN_SESSION: &str = concat!(
    "SELECT created_at, id FROM note WHERE session = ? AND type <> 'episodic' AND ",
    in_use!("note"),
    " ORDER BY id LIMIT ?"
);

/// The links that may make a note outdated, by an SQL index of these alone.
const FOR_REVIEW: &str = "SELECT note.id AS source, target, relation, weight
  FROM link INDEXED BY link_review JOIN note USING (number)
  WHERE relation IN ('about', 'contradicts', 'part-of') AND relation <> 'contradicts'
  ORDER BY link.number";

/// The number of links to a note that recall follows, up to the limit.
const DEGREE: &str = "SELECT count(*) FROM (
    SELECT 1 FROM link WHERE target IN (?1, ?2) AND back > 0 LIMIT ?3)";

const IN_USE: &str = concat!("SELECT 1 FROM note WHERE id = ? AND ", in_use!("note"));

fn insert(connection: &Connection, number: i64, note: &Note) -> rusqlite::Result<()> {
    if note.state == State::Forgotten {
        return Ok(());
    }
    let key = title_key(&note.title);
    if !key.is_empty() {
        connection.run(
            "INSERT INTO title VALUES (?, ?)",
            [number_hash(&key), number],
        )?;
    }
    let declared = DeclaredLinks::from_note(note);
    let mut place = 0;
    let mut add = |relation: Relation, target: Mention, weight: Option<f64>| {
        let (_, back) = strengths(relation, weight);
        place += 1;
        connection.run(
            "INSERT INTO link VALUES (?, ?, ?, ?, ?, ?)",
            params![
                number,
                place,
                relation.as_str(),
                Target(target),
                weight,
                thousandths(back),
            ],
        )
    };
    for Link {
        relation,
        target,
        weight,
    } in &declared.links
    {
        add(*relation, Mention::Id(*target), *weight)?;
    }
    for title in declared.titles.into_iter().filter(|title| *title != key) {
        add(Relation::Mentions, Mention::Title(title), None)?;
    }
    for (line, reason) in &declared.invalid {
        connection.run(
            "INSERT INTO invalid_link VALUES (?, ?, ?)",
            params![
                number,
                inert(&one_line(line)),
                inert(&one_line(&reason.to_string()))
            ],
        )?;
    }
    Ok(())
}

/// Returns a weight in thousandths, rounded up, so that only a weight of zero is zero.
#[expect(clippy::cast_possible_truncation, reason = "a weight is at most one")]
fn thousandths(weight: f64) -> i64 {
    (weight * 1000.0).ceil() as i64
}

pub(super) fn remove_title(connection: &Connection, number: i64) -> rusqlite::Result<()> {
    let title: Option<String> =
        connection.first("SELECT title FROM note WHERE number = ?", [number])?;
    if let Some(title) = title {
        connection.run(
            "DELETE FROM title WHERE key = ? AND number = ?",
            [number_hash(&title_key(&title)), number],
        )?;
    }
    Ok(())
}

/// An unresolved link.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct UnresolvedLink {
    /// The note with the link.
    pub note: NoteId,
    /// The link: an id, a title, or an invalid line.
    pub text: String,
    /// Why it is unresolved.
    #[serde(serialize_with = "as_text")]
    pub reason: UnresolvedReason,
}

fn as_text<S: Serializer>(reason: &UnresolvedReason, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(reason)
}

/// Why a link is unresolved.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum UnresolvedReason {
    /// The note does not exist, or not yet.
    #[error("no such note here")]
    Missing,
    /// The note was forgotten.
    #[error("that note is forgotten")]
    Forgotten,
    /// The title is ambiguous.
    #[error("several notes have this title")]
    Ambiguous,
    /// The line is not a valid link.
    #[error("{0}")]
    Invalid(String),
}

/// Counts of links by their source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct LinkCounts {
    /// Lines of `links`, and ids in `supersedes`.
    pub declared: usize,
    /// `[[…]]` in texts.
    pub mentions: usize,
    /// Consecutive notes of one session, and each with the session's own note.
    pub session: usize,
}

impl Index {
    /// Returns the links of each of these notes to active notes, in both directions: declared,
    /// mentioned, or of its session. Sorted, without duplicates.
    ///
    /// If a note has too many, the strongest are returned, ties by id.
    pub fn links_of(&self, ids: &[NoteId]) -> Result<Vec<Edge>, Error> {
        let mut found: BTreeMap<(NoteId, NoteId, Relation), Option<f64>> = BTreeMap::new();
        let mut sessions: HashMap<String, Vec<NoteId>> = HashMap::new();
        for id in ids {
            let mut add = |edge: Edge| {
                found
                    .entry((edge.from, edge.to, edge.relation))
                    .or_insert(edge.weight);
            };
            self.links_from(*id)?.into_iter().for_each(&mut add);
            let mut names = vec![Mention::Id(*id)];
            names.extend(self.own_title(*id)?.map(Mention::Title));
            for name in names.into_iter().map(Target) {
                for sql in [TO_NOTE, TO_NOTE_WITHOUT_WEIGHT] {
                    let edges = self.links_to(sql, &name, *id)?;
                    edges.into_iter().for_each(&mut add);
                }
            }
            for newer in self.ids(SUPERSEDING, *id)? {
                add(plain(newer, *id, Relation::Supersedes));
            }
            for older in self.ids(SUPERSEDED, *id)? {
                add(plain(*id, older, Relation::Supersedes));
            }
            self.session_links(*id, &mut sessions)?
                .into_iter()
                .for_each(&mut add);
        }
        let edges = found.into_iter();
        Ok(edges
            .map(|((from, to, relation), weight)| Edge {
                from,
                to,
                relation,
                weight,
            })
            .filter(|edge| edge.from != edge.to)
            .collect())
    }

    /// Returns the active notes that contradict a note or that it contradicts, sorted.
    pub fn disputes_of(&self, id: NoteId) -> Result<Vec<NoteId>, Error> {
        let to_note = self.links_to(TO_NOTE_WITHOUT_WEIGHT, &Target(Mention::Id(id)), id)?;
        let to_note = to_note.into_iter();
        let mut disputes: BTreeSet<NoteId> = to_note
            .filter(|edge| edge.relation == Relation::Contradicts)
            .map(|edge| edge.from)
            .collect();
        for link in self.declared_links(id)? {
            if link.relation == Relation::Contradicts {
                disputes.extend(self.resolved(&link.target)?);
            }
        }
        disputes.remove(&id);
        Ok(disputes.into_iter().collect())
    }

    fn links_to(&self, sql: &str, name: &Target, id: NoteId) -> Result<Vec<Edge>, Error> {
        self.rows(sql, params![name, MAX_ROWS], |row| edge_to(row, id))
    }

    /// Counts the links of each of these notes that recall follows, up to a thousand. The more there
    /// are, the less each is worth.
    pub fn degrees(&self, ids: &[NoteId]) -> Result<HashMap<NoteId, usize>, Error> {
        let mut degrees = HashMap::with_capacity(ids.len());
        let mut sessions = HashMap::new();
        for id in ids {
            let to_note: usize = self.value(
                DEGREE,
                params![
                    Target(Mention::Id(*id)),
                    self.title_key_of(*id)?,
                    MAX_DEGREE
                ],
            )?;
            let declared = self.declared_links(*id)?;
            let from_note = declared.iter().filter(|link| link.forward > 0.0).count();
            let declared = from_note + to_note;
            let of_session = self.session_links(*id, &mut sessions)?.len();
            degrees.insert(*id, declared.min(MAX_DEGREE) + of_session);
        }
        Ok(degrees)
    }

    /// Returns the notes of each session of these notes, in the order of their creation, without the
    /// session's own note.
    pub fn sessions_of(&self, ids: &[NoteId]) -> Result<Vec<Vec<NoteId>>, Error> {
        let mut names = BTreeSet::new();
        for id in ids {
            names.extend(self.session_of(*id)?.map(|(session, _)| session));
        }
        let members = names.iter().map(|session| self.in_session(session));
        let sessions: Vec<Vec<NoteId>> = members.collect::<Result<_, _>>()?;
        Ok(sessions
            .into_iter()
            .filter(|notes| notes.len() > 1)
            .collect())
    }

    /// Returns the notes that replace a note: itself if no active note does, otherwise the ends of
    /// each chain. Empty if a chain has more than sixteen steps.
    pub fn successors(&self, id: NoteId) -> Result<Vec<NoteId>, Error> {
        let mut seen = BTreeSet::from([id]);
        let mut level = vec![id];
        let mut last = BTreeSet::new();
        for _ in 0..=MAX_STEPS {
            let mut next = Vec::new();
            for id in level {
                let superseded: Option<bool> =
                    self.first("SELECT superseded FROM note WHERE id = ?", [id.to_string()])?;
                if superseded == Some(true) {
                    let newer = self.ids(SUPERSEDING, id)?;
                    next.extend(newer.into_iter().filter(|newer| seen.insert(*newer)));
                } else if superseded.is_some() {
                    last.insert(id);
                }
            }
            level = next;
        }
        Ok(last.into_iter().collect())
    }

    /// Returns the declared links that may make a note outdated: those with tasks (`about`, `part-of`). A
    /// note at an end may not exist.
    pub fn links_for_review(&self) -> Result<Vec<Edge>, Error> {
        let links: Vec<Option<Edge>> =
            self.rows(FOR_REVIEW, [], |row| match row.get("target")? {
                Target(Mention::Id(to)) => edge_to(row, to).map(Some),
                Target(Mention::Title(_)) => Ok(None),
            })?;
        Ok(links.into_iter().flatten().collect())
    }

    /// Returns the unresolved links, sorted.
    pub fn unresolved_links(&self) -> Result<Vec<UnresolvedLink>, Error> {
        let mut unresolved = Vec::new();
        let sql = "SELECT note.id, target FROM link JOIN note USING (number)";
        let links: Vec<(Parsed<NoteId>, Target)> = self.tuples(sql, [])?;
        let is_forgotten = "SELECT state = 'forgotten' FROM note WHERE id = ?";
        for (Parsed(note), Target(target)) in links {
            let reason = match &target {
                Mention::Id(id) => match self.first(is_forgotten, [id.to_string()])? {
                    None => UnresolvedReason::Missing,
                    Some(true) => UnresolvedReason::Forgotten,
                    Some(false) => continue,
                },
                Mention::Title(title) => match self.with_title(title)?.len() {
                    0 => UnresolvedReason::Missing,
                    1 => continue,
                    _ => UnresolvedReason::Ambiguous,
                },
            };
            let text = match target {
                Mention::Id(id) => id.to_string(),
                Mention::Title(title) => title,
            };
            unresolved.push(UnresolvedLink { note, text, reason });
        }
        let sql = "SELECT note.id, line, reason FROM invalid_link JOIN note USING (number)";
        let invalid: Vec<(Parsed<NoteId>, _, _)> = self.tuples(sql, [])?;
        unresolved.extend(
            invalid
                .into_iter()
                .map(|(note, text, reason)| UnresolvedLink {
                    note: note.0,
                    text,
                    reason: UnresolvedReason::Invalid(reason),
                }),
        );
        unresolved.sort();
        Ok(unresolved)
    }

    /// Counts the resolved links.
    pub fn link_counts(&self) -> Result<LinkCounts, Error> {
        let sql = concat!(
            "SELECT count(*) FROM supersedes JOIN note AS older ON older.id = supersedes.id
             JOIN note AS newer ON newer.number = supersedes.number WHERE ",
            in_use!("older"),
            " AND ",
            in_use!("newer")
        );
        let superseding: usize = self.value(sql, [])?;
        let (mut declared, mut mentions) = (0, 0);
        let sql = "SELECT target, count(*), sum(relation = 'mentions') FROM link GROUP BY target";
        let targets: Vec<(Target, usize, usize)> = self.tuples(sql, [])?;
        for (Target(target), count, mentioned) in targets {
            if self.resolved(&target)?.is_some() {
                mentions += mentioned;
                declared += count - mentioned;
            }
        }
        let mut session = 0;
        let sql = concat!(
            "SELECT DISTINCT session FROM note
             WHERE session IS NOT NULL AND type <> 'episodic' AND ",
            in_use!("note")
        );
        let names: Vec<String> = self.column(sql, [])?;
        for name in names {
            let members = self.in_session(&name)?.len();
            let own = self.own_note(&name)?.map_or(0, |_| members);
            session += members.saturating_sub(1) + own;
        }
        Ok(LinkCounts {
            declared: declared + superseding,
            mentions,
            session,
        })
    }

    /// Returns the links of a note within its session: to the previous note, the next one and the
    /// session's own. The session's own note links to all.
    fn session_links(
        &self,
        id: NoteId,
        known: &mut HashMap<String, Vec<NoteId>>,
    ) -> Result<Vec<Edge>, Error> {
        let Some((session, note_type)) = self.session_of(id)? else {
            return Ok(Vec::new());
        };
        if !known.contains_key(&session) {
            known.insert(session.clone(), self.in_session(&session)?);
        }
        let members = known.get(&session).map_or(&[][..], Vec::as_slice);
        if note_type == NoteType::Episodic {
            let is_own = id == NoteId::of_session(&session);
            let members = members.iter().filter(|_| is_own);
            return Ok(members
                .map(|member| plain(*member, id, Relation::Session))
                .collect());
        }
        let neighbours = members.windows(2).filter(|pair| pair.contains(&id));
        let mut edges: Vec<Edge> = neighbours
            .map(|pair| plain(pair[0], pair[1], Relation::Session))
            .collect();
        if members.contains(&id) {
            let own = self.own_note(&session)?;
            edges.extend(own.map(|own| plain(id, own, Relation::Session)));
        }
        Ok(edges)
    }

    /// Returns the session and the type of a note.
    fn session_of(&self, id: NoteId) -> Result<Option<(String, NoteType)>, Error> {
        let found: Option<(_, Parsed<NoteType>)> =
            self.first_tuple(SESSION_OF, [id.to_string()])?;
        Ok(found.map(|(session, note_type)| (session, note_type.0)))
    }

    /// Returns the durable notes of a session in the order of their creation, ties by id.
    fn in_session(&self, session: &str) -> Result<Vec<NoteId>, Error> {
        let params = params![session, MAX_IN_SESSION];
        let mut members: Vec<(String, Parsed<NoteId>)> = self.tuples(IN_SESSION, params)?;
        members.sort_by_cached_key(|(created_at, id)| (parse_timestamp(created_at), id.0));
        Ok(members.into_iter().map(|(_, id)| id.0).collect())
    }

    /// Returns the session's own note, if it is active.
    fn own_note(&self, session: &str) -> Result<Option<NoteId>, Error> {
        let own = NoteId::of_session(session);
        let sql = concat!(
            "SELECT 1 FROM note WHERE id = ? AND type = 'episodic' AND ",
            in_use!("note")
        );
        Ok(self.exists(sql, [own.to_string()])?.then_some(own))
    }

    /// Returns the only active note with a title.
    fn by_title(&self, key: &str) -> Result<Option<NoteId>, Error> {
        Ok(match self.with_title(key)?[..] {
            [id] => Some(id),
            _ => None,
        })
    }

    /// Returns the active notes with a title, at most two.
    fn with_title(&self, key: &str) -> Result<Vec<NoteId>, Error> {
        let found: Vec<(String, Parsed<NoteId>)> = self.tuples(BY_TITLE, [number_hash(key)])?;
        let found = found.into_iter();
        let found = found.filter(|(title, _)| title_key(title) == key);
        Ok(found.map(|(_, id)| id.0).collect())
    }

    /// Returns the key of a note's title.
    fn title_key_of(&self, id: NoteId) -> Result<Option<String>, Error> {
        let title: Option<String> =
            self.first("SELECT title FROM note WHERE id = ?", [id.to_string()])?;
        Ok(title.map(|title| title_key(&title)))
    }

    /// Returns the title by which other notes may mention a note; none if it is not unique.
    fn own_title(&self, id: NoteId) -> Result<Option<String>, Error> {
        match self.title_key_of(id)? {
            Some(key) if self.by_title(&key)? == Some(id) => Ok(Some(key)),
            _ => Ok(None),
        }
    }

    /// Returns the active note that a target names.
    pub fn resolved(&self, target: &Mention) -> Result<Option<NoteId>, Error> {
        match target {
            Mention::Id(id) => {
                let is_in_use = self.exists(IN_USE, [id.to_string()])?;
                Ok(is_in_use.then_some(*id))
            }
            Mention::Title(title) => self.by_title(title),
        }
    }

    /// Returns the links that a note declares, strongest first.
    fn declared_links(&self, id: NoteId) -> Result<Vec<DeclaredLink>, Error> {
        let id = [id.to_string()];
        let mut links: Vec<_> = self.rows(FROM_NOTE, id, |row| {
            let (Target(target), Parsed(relation), weight) = row.try_into()?;
            let (forward, _) = strengths(relation, weight);
            Ok(DeclaredLink {
                target,
                relation,
                weight,
                forward,
            })
        })?;
        links.sort_by(|a, b| {
            let order = b.forward.total_cmp(&a.forward);
            order.then_with(|| (&a.target, a.relation).cmp(&(&b.target, b.relation)))
        });
        Ok(links)
    }

    /// Returns the links that a note declares to other active notes, the strongest [`MAX_ROWS`].
    fn links_from(&self, id: NoteId) -> Result<Vec<Edge>, Error> {
        let mut edges = Vec::new();
        for link in self.declared_links(id)? {
            if edges.len() == MAX_ROWS {
                break;
            }
            let to = self.resolved(&link.target)?.filter(|to| *to != id);
            edges.extend(to.map(|to| Edge {
                from: id,
                to,
                relation: link.relation,
                weight: link.weight,
            }));
        }
        Ok(edges)
    }

    fn ids(&self, sql: &str, id: NoteId) -> Result<Vec<NoteId>, Error> {
        let params = params![id.to_string(), MAX_ROWS];
        self.note_ids(sql, params)
    }
}

/// A link as a note declares it.
struct DeclaredLink {
    target: Mention,
    relation: Relation,
    weight: Option<f64>,
    /// The weight that recall follows it with.
    forward: f64,
}

/// Returns the weights that recall follows a link with, along its direction and against it.
fn strengths(relation: Relation, weight: Option<f64>) -> (f64, f64) {
    // Any two notes will do: only the direction counts.
    let edge = Edge {
        from: NoteId::from_bytes([0; 16]),
        to: NoteId::from_bytes([1; 16]),
        relation,
        weight,
    };
    (edge.weight_from(edge.from), edge.weight_from(edge.to))
}

/// The target of a link in the table: the bytes of an id, or the text of a title.
struct Target(Mention);

impl ToSql for Target {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match &self.0 {
            Mention::Id(id) => id.to_bytes().to_vec().into(),
            Mention::Title(title) => title.as_str().into(),
        })
    }
}

impl FromSql for Target {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(match value {
            ValueRef::Blob(_) => Mention::Id(NoteId::from_bytes(FromSql::column_result(value)?)),
            _ => Mention::Title(FromSql::column_result(value)?),
        }))
    }
}

/// Reads the row of a link to this note.
fn edge_to(row: &Row<'_>, to: NoteId) -> rusqlite::Result<Edge> {
    let Parsed(relation) = row.get("relation")?;
    Ok(Edge {
        from: row.get::<_, Parsed<NoteId>>("source")?.0,
        to,
        relation,
        weight: row.get("weight")?,
    })
}

fn plain(from: NoteId, to: NoteId, relation: Relation) -> Edge {
    Edge {
        from,
        to,
        relation,
        weight: None,
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::timestamp;
    use anamnesis_text::hash::hex;
    use rusqlite::params_from_iter;

    use super::*;
    use crate::index::tests::{Fixture, TIMEOUT, now};

    fn declare(links: &[String]) -> impl FnOnce(&mut Note) {
        let links = links.to_vec();
        |note| note.links = links
    }

    /// The links of notes as `from relation to`, by title.
    fn shown(index: &Index, ids: &[NoteId]) -> Vec<String> {
        let title = |id: NoteId| index.get(id).unwrap().unwrap().title;
        let edges = index.links_of(ids).unwrap();
        let mut shown: Vec<String> = edges
            .iter()
            .map(|edge| format!("{} {} {}", title(edge.from), edge.relation, title(edge.to)))
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn links_are_seen_from_both_ends() {
        let fixture = Fixture::new();
        let b = fixture.add("b", |_| {}).path.id;
        let old = fixture.add("old", |_| {}).path.id;
        let a = fixture.add("a", |note| {
            note.links = vec![format!("caused-by {b} 0.5"), format!("contradicts {b}")];
            note.body = "[[ B ]]".to_owned();
            note.supersedes = vec![old.to_string()];
        });
        let a = a.path.id;
        let index = fixture.refreshed();
        let all = ["a caused-by b", "a contradicts b", "a mentions b"];
        assert_eq!(shown(&index, &[b]), all);
        assert_eq!(
            shown(&index, &[a]),
            [&all[..], &["a supersedes old"]].concat()
        );
        assert_eq!(shown(&index, &[a, b]), shown(&index, &[a]));
        assert_eq!(shown(&index, &[old]), ["a supersedes old"]);
        assert_eq!(index.links_of(&[b]).unwrap()[0].weight, Some(0.5));
        assert_eq!(
            index.degrees(&[a, b]).unwrap(),
            HashMap::from([(a, 2), (b, 2)])
        );
        assert!(index.unresolved_links().unwrap().is_empty());
        assert_eq!(
            index.link_counts().unwrap(),
            LinkCounts {
                declared: 3,
                mentions: 1,
                session: 0
            }
        );
    }

    #[test]
    fn a_link_waits_for_its_note() {
        let fixture = Fixture::new();
        let late = NoteId::made_of("late");
        let a = fixture
            .add("a", |note| {
                note.links = vec![format!("about {late}"), "loves x".to_owned()];
                note.body = "[[Late]] [[twice]]".to_owned();
            })
            .path
            .id;
        fixture.add("twice", |_| {});
        fixture.add("Twice", |_| {});
        let index = fixture.refreshed();
        assert!(index.links_of(&[a]).unwrap().is_empty());
        let reasons: Vec<String> = index
            .unresolved_links()
            .unwrap()
            .into_iter()
            .map(|link| format!("{}: {}", link.text, link.reason))
            .collect();
        assert_eq!(
            reasons,
            [
                format!("{late}: no such note here"),
                "late: no such note here".to_owned(),
                "loves x: expected one of caused-by, elaborates, part-of, related-to, about, \
                 contradicts, warns-against, got \"loves\""
                    .to_owned(),
                "twice: several notes have this title".to_owned(),
            ]
        );
        drop(index);
        fixture.add("LATE", |note| note.id = late);
        let index = fixture.refreshed();
        assert_eq!(shown(&index, &[a]), ["a about LATE", "a mentions LATE"]);
        // A rebuilt index gives the same.
        let kept = index.links_of(&[a, late]).unwrap();
        drop(index);
        let anew = Index::rebuild(&fixture.home, &fixture.notes, TIMEOUT).unwrap();
        assert_eq!(anew.links_of(&[a, late]).unwrap(), kept);
    }

    #[test]
    fn what_is_not_in_use_has_no_links() {
        let fixture = Fixture::new();
        let b = fixture.add("b", |_| {}).path.id;
        for state in [State::Proposed, State::Forgotten] {
            fixture.add(state.as_str(), |note| {
                note.state = state;
                note.links = vec![format!("about {b}")];
            });
        }
        let forgotten = fixture
            .add("", |note| note.state = State::Forgotten)
            .path
            .id;
        let a = fixture
            .add("a", declare(&[format!("about {forgotten}")]))
            .path
            .id;
        let index = fixture.refreshed();
        assert!(index.links_of(&[a, b]).unwrap().is_empty());
        let reasons = index.unresolved_links().unwrap();
        assert_eq!(reasons.len(), 1);
        assert_eq!(reasons[0].reason, UnresolvedReason::Forgotten);
    }

    #[test]
    fn notes_of_a_session_are_a_chain() {
        let fixture = Fixture::new();
        let of = |title: &str, minutes: i64| {
            let created_at = timestamp(now() + chrono::TimeDelta::minutes(minutes));
            fixture.add(title, move |note| {
                note.session = Some("s".to_owned());
                note.created_at = created_at;
            })
        };
        let third = of("third", 3).path.id;
        let first = of("first", 1).path.id;
        let second = of("second", 2).path.id;
        let own = fixture.add("session", |note| {
            note.id = NoteId::of_session("s");
            note.note_type = NoteType::Episodic;
            note.session = Some("s".to_owned());
        });
        let own = own.path.id;
        let index = fixture.refreshed();
        let chain = ["first session second", "second session third"];
        assert_eq!(
            shown(&index, &[second]),
            [chain[0], "second session session", chain[1]]
        );
        assert_eq!(
            shown(&index, &[first]),
            ["first session second", "first session session"]
        );
        assert_eq!(shown(&index, &[own]).len(), 3);
        assert_eq!(
            index.sessions_of(&[third, own]).unwrap(),
            [[first, second, third]]
        );
        assert_eq!(
            index.degrees(&[own, first]).unwrap(),
            HashMap::from([(own, 3), (first, 2)])
        );
        assert_eq!(index.link_counts().unwrap().session, 5);
    }

    #[test]
    fn a_note_that_all_others_name_costs_no_more_than_another() {
        let fixture = Fixture::new();
        let hub = fixture.add("hub", |_| {}).path.id;
        let index = fixture.refreshed();
        let hub_bytes = hex(&hub.to_bytes());
        let sql = format!(
            "INSERT INTO note (id, folder, size, modified, inode, scope, type, kind, state, title, project,
                machine_id, user_id, workspace_id, source, by_agent, confidence, created_at, updated_at, tags,
                reflected, pinned, length)
             WITH RECURSIVE count (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM count WHERE n < 100000)
             SELECT printf('01JZ%022d', n), 0, 0, 0, 0, '', '', '', 'active', '', '', '', '', '', '', 0, 1, '', '', '',
                0, 0, 0 FROM count;
             INSERT INTO link SELECT number, 1, 'related-to', x'{hub_bytes}', NULL, 800 FROM note WHERE id LIKE '01JZ%';"
        );
        index.connection.execute_batch(&sql).unwrap();
        assert_eq!(index.links_of(&[hub]).unwrap().len(), MAX_ROWS);
        assert_eq!(index.degrees(&[hub]).unwrap()[&hub], MAX_DEGREE);
        // No query scans all links.
        for sql in [
            FROM_NOTE,
            IN_USE,
            TO_NOTE,
            TO_NOTE_WITHOUT_WEIGHT,
            SUPERSEDING,
            SUPERSEDED,
            BY_TITLE,
            DEGREE,
        ] {
            let plan = format!("EXPLAIN QUERY PLAN {sql}");
            let mut statement = index.connection.prepare(&plan).unwrap();
            let values = [hub.to_string(), "9".to_owned(), "9".to_owned()];
            let values = params_from_iter(&values[..statement.parameter_count()]);
            let steps = statement
                .query_map(values, |row| row.get::<_, String>("detail"))
                .unwrap();
            for step in steps.map(Result::unwrap) {
                assert!(
                    !step.starts_with("SCAN") || step.starts_with("SCAN (subquery"),
                    "{sql}: {step}"
                );
                assert!(
                    !sql.contains("link.back") || !step.contains("TEMP B-TREE"),
                    "{sql}: {step}"
                );
            }
        }
    }

    #[test]
    fn the_last_of_a_chain_stands_for_all_of_it() {
        let fixture = Fixture::new();
        let mut chain: Vec<NoteId> = vec![fixture.add("0", |_| {}).path.id];
        for number in 1..=20 {
            let replaced = chain[number - 1].to_string();
            let newer = fixture.add(&number.to_string(), |note| note.supersedes = vec![replaced]);
            chain.push(newer.path.id);
        }
        let second = fixture.add("also", |note| note.supersedes = vec![chain[19].to_string()]);
        let index = fixture.refreshed();
        let mut last = vec![chain[20], second.path.id];
        last.sort();
        assert_eq!(index.successors(chain[20]).unwrap(), [chain[20]]);
        assert_eq!(index.successors(chain[10]).unwrap(), last);
        // Twenty steps exceed the limit.
        assert!(index.successors(chain[0]).unwrap().is_empty());
        assert!(
            index
                .successors(NoteId::made_of("none"))
                .unwrap()
                .is_empty()
        );
    }

    #[test]
    fn a_circle_ends_at_the_note_that_survives_it() {
        let fixture = Fixture::new();
        let [a, b] = [NoteId::made_of("a"), NoteId::made_of("b")];
        for (id, other) in [(a, b), (b, a)] {
            fixture.add("", |note| {
                note.id = id;
                note.supersedes = vec![other.to_string()];
            });
        }
        let index = fixture.refreshed();
        let successors = index.successors(a).unwrap();
        assert_eq!(successors.len(), 1);
        assert_eq!(index.successors(b).unwrap(), successors);
    }
}
