//! The content of a note's file, independent of its formatting: fields, other keys, text.

use std::{
    cmp::Ordering,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};

use super::body;
use crate::note::{
    CannotRewrite, KeyLines, Note, NoteFile, State, is_own_key, is_python_key, parse_timestamp,
};

/// The content of a file.
#[derive(Debug, Clone)]
pub(super) struct NoteContent {
    /// The fields and the text. The text has `\n` line ends and no trailing white space; the kind
    /// is `None` if only a tag has it.
    pub(super) note: Note,
    /// The lines of other keys, with `\n` line ends.
    foreign: BTreeMap<String, String>,
    /// The comment lines between keys, each with the key that follows it; the last ones have an
    /// empty key.
    comments: Vec<(String, String)>,
    /// The lines of our own keys that contain a comment, with `\n` line ends.
    commented: BTreeMap<String, String>,
}

impl NoteContent {
    /// Reads the content of a file. Fails if it has other keys and they are not in block style.
    pub(super) fn from_file(file: &NoteFile) -> Result<Self, CannotRewrite> {
        let mut note = file.note().clone();
        if !file.keys().iter().any(|key| key == "kind") {
            note.kind = None;
        }
        note.body = plain_text(&note.body);
        let mut content = Self {
            note,
            foreign: BTreeMap::new(),
            comments: Vec::new(),
            commented: BTreeMap::new(),
        };
        let parts = match file.parts() {
            Ok(parts) => parts,
            // A flow mapping has no lines of keys, but may have comments.
            Err(_) if file.keys().iter().all(|key| is_own_key(key)) => {
                let lines = file.text().split_inclusive('\n').skip(1);
                for line in lines.take_while(|line| line.trim_end() != "---") {
                    content.add_comments("", &line.replace("\r\n", "\n"));
                }
                return Ok(content);
            }
            Err(error) => return Err(error),
        };
        let mut before = String::new();
        for part in parts {
            let text = part.text.replace("\r\n", "\n");
            let Some(key) = part.key else {
                before = text;
                continue;
            };
            content.add_comments(&key, &before);
            if !is_own_key(&key) {
                content.foreign.insert(key, text);
            } else if text.contains('#') && text != file.note().key_text(&key) {
                content.commented.insert(key, text);
            }
        }
        content.add_comments("", &before);
        Ok(content)
    }

    fn add_comments(&mut self, key: &str, lines: &str) {
        let lines = lines.split_inclusive('\n').filter(|line| is_comment(line));
        self.comments
            .extend(lines.map(|line| (key.to_owned(), line.to_owned())));
    }

    fn has_comment(&self, line: &str) -> bool {
        self.comments.iter().any(|(_, comment)| comment == line)
    }

    fn comment_lines(&self) -> BTreeSet<&str> {
        let lines = self.comments.iter().map(|(_, line)| line.as_str());
        lines.collect()
    }

    /// Returns whether both have the same content, ignoring the order of lists.
    pub(super) fn equals(&self, other: &Self) -> bool {
        let sorted = |note: &Note| {
            let mut note = note.clone();
            for list in [
                &mut note.tags,
                &mut note.links,
                &mut note.supersedes,
                &mut note.when,
            ] {
                list.sort();
                list.dedup();
            }
            note
        };
        self.foreign == other.foreign
            && self.commented == other.commented
            && self.comment_lines() == other.comment_lines()
            && sorted(&self.note) == sorted(&other.note)
    }

    /// Takes over the comments of two merged versions: those that neither removed. A comment in the
    /// lines of a key stays with the key's value.
    fn with_comments(mut self, base: Option<&Self>, winner: &Self, loser: &Self) -> Self {
        let of_loser = loser.comments.iter();
        let of_loser = of_loser.filter(|(_, line)| !winner.has_comment(line));
        let all = winner.comments.iter().chain(of_loser);
        let is_kept = |line: &str| {
            let is_in_both = winner.has_comment(line) && loser.has_comment(line);
            is_in_both || !base.is_some_and(|base| base.has_comment(line))
        };
        self.comments = all.filter(|(_, line)| is_kept(line)).cloned().collect();
        for key in winner.commented.keys().chain(loser.commented.keys()) {
            let value = self.note.key_text(key);
            let of = |side: &Self| {
                let has_value = side.note.key_text(key) == value;
                has_value.then(|| side.commented.get(key).cloned())
            };
            let lines = match (of(winner), of(loser)) {
                (Some(one), Some(other)) => {
                    let base = base.and_then(|base| base.commented.get(key).cloned());
                    choose(&base, &one, &other, &mut false).clone()
                }
                (one, other) => one.or(other).flatten(),
            };
            self.commented
                .extend(lines.map(|lines| (key.clone(), lines)));
        }
        self
    }
}

/// Returns whether a line between two keys is a comment.
fn is_comment(line: &str) -> bool {
    line.starts_with('#')
}

/// Merges two versions with their common base; also returns whether they conflict. In a conflict,
/// `winner`'s value is kept.
pub(super) fn join(
    base: &NoteContent,
    winner: &NoteContent,
    loser: &NoteContent,
) -> (NoteContent, bool) {
    let mut sides = Sides {
        base: &base.note,
        winner: &winner.note,
        loser: &loser.note,
        clash: false,
    };
    let unknown = "unknown".to_owned();
    let note = Note {
        id: winner.note.id,
        note_type: sides.choose(|note| &note.note_type),
        title: sides.choose(|note| &note.title),
        project: sides.choose(|note| &note.project),
        machine_id: sides.origin(|note| &note.machine_id, &unknown),
        scope: sides.choose(|note| &note.scope),
        user_id: sides.choose(|note| &note.user_id),
        workspace_id: sides.choose(|note| &note.workspace_id),
        source: base.note.source,
        confidence: sides.choose(|note| &note.confidence),
        model: sides.origin(|note| &note.model, &None),
        session: sides.origin(|note| &note.session, &None),
        host: sides.origin(|note| &note.host, &None),
        // A session that goes on may be on another branch.
        branch: sides.choose_silently(|note| &note.branch),
        supersedes: sides.unite(|note| &note.supersedes),
        created_at: sides.origin(|note| &note.created_at, &String::new()),
        updated_at: later(&winner.note.updated_at, &loser.note.updated_at).to_owned(),
        tags: sides.unite(|note| &note.tags),
        asked: sides.unite(|note| &note.asked),
        kind: sides.choose(|note| &note.kind),
        state: sides.choose(|note| &note.state),
        links: sides.unite(|note| &note.links),
        when: sides.unite(|note| &note.when),
        instead: sides.choose(|note| &note.instead),
        severity: sides.choose(|note| &note.severity),
        enforce: sides.choose(|note| &note.enforce),
        status: sides.choose(|note| &note.status),
        pinned: sides.choose(|note| &note.pinned),
        rating: sides.choose_silently(|note| &note.rating),
        verified: winner
            .note
            .verified
            .clone()
            .max(loser.note.verified.clone()),
        actor: sides.origin(|note| &note.actor, &None),
        tool: sides.origin(|note| &note.tool, &None),
        tool_id: sides.origin(|note| &note.tool_id, &None),
        body: body::join(&base.note.body, &winner.note.body, &loser.note.body).unwrap_or_else(
            || {
                sides.clash = true;
                winner.note.body.clone()
            },
        ),
    };
    let mut clash = sides.clash;
    let keys = [base, winner, loser].into_iter();
    let keys: BTreeSet<&String> = keys.flat_map(|content| content.foreign.keys()).collect();
    let foreign = keys.into_iter().filter_map(|key| {
        let [base, winner, loser] = [base, winner, loser].map(|content| content.foreign.get(key));
        let chosen = *choose(&base, &winner, &loser, &mut clash);
        Some((key.clone(), chosen?.clone()))
    });
    let content = NoteContent {
        note,
        foreign: foreign.collect(),
        comments: Vec::new(),
        commented: BTreeMap::new(),
    };
    (content.with_comments(Some(base), winner, loser), clash)
}

/// The keys whose values a person writes.
const WRITTEN: [&str; 6] = ["title", "project", "kind", "instead", "severity", "status"];

/// Merges two notes of one id without a common base; also returns whether text or a value of
/// `earlier` was lost.
///
/// Values of `newer` win; values that only `earlier` has are kept. Two versions of one note have no
/// earlier one, so a replaced value is lost; of two notes, the newer one is meant.
pub(super) fn unite(earlier: &NoteContent, newer: &NoteContent) -> (NoteContent, bool) {
    let (first, last) = (&earlier.note, &newer.note);
    let foreign = [earlier, newer].into_iter();
    let foreign = foreign
        .flat_map(|content| content.foreign.clone())
        .collect();
    let either =
        |one: &Option<String>, other: &Option<String>| one.clone().or_else(|| other.clone());
    // Without a base, nothing counts as removed.
    let lists = |one: &[String], other: &[String]| {
        let both = [one, other].concat();
        united(one, &both, &both)
    };
    let replaced = !body::contains_run(&last.body, &first.body);
    let kept = replaced && body::contains_run(&first.body, &last.body);
    let is_one_note = first.created_at == last.created_at && first.machine_id == last.machine_id;
    let differs = |key: &&str| {
        let values = [first, last].map(|note| note.key_text(key));
        values[0] != values[1] && values.iter().all(|value| !value.is_empty())
    };
    let is_lossy = replaced && !kept || is_one_note && WRITTEN.iter().any(differs);
    let note = Note {
        machine_id: first.machine_id.clone(),
        user_id: either(&last.user_id, &first.user_id),
        workspace_id: either(&last.workspace_id, &first.workspace_id),
        source: first.source,
        model: either(&first.model, &last.model),
        session: either(&first.session, &last.session),
        host: either(&first.host, &last.host),
        branch: either(&last.branch, &first.branch),
        supersedes: lists(&first.supersedes, &last.supersedes),
        created_at: if first.created_at.is_empty() {
            last.created_at.clone()
        } else {
            first.created_at.clone()
        },
        updated_at: later(&first.updated_at, &last.updated_at).to_owned(),
        tags: lists(&first.tags, &last.tags),
        asked: lists(&first.asked, &last.asked),
        kind: last.kind.or(first.kind),
        state: match last.state {
            State::Active => first.state,
            state => state,
        },
        links: lists(&first.links, &last.links),
        when: lists(&first.when, &last.when),
        instead: either(&last.instead, &first.instead),
        severity: last.severity.or(first.severity),
        enforce: last.enforce.max(first.enforce),
        status: either(&last.status, &first.status),
        pinned: first.pinned || last.pinned,
        rating: last.rating.or(first.rating),
        verified: first.verified.clone().max(last.verified.clone()),
        actor: either(&first.actor, &last.actor),
        tool: either(&first.tool, &last.tool),
        tool_id: either(&first.tool_id, &last.tool_id),
        body: if kept { first } else { last }.body.clone(),
        ..last.clone()
    };
    let content = NoteContent {
        note,
        foreign,
        comments: Vec::new(),
        commented: BTreeMap::new(),
    };
    (content.with_comments(None, newer, earlier), is_lossy)
}

/// Writes `content` into `skeleton`'s file; `other` is the file that has the positions of the
/// remaining foreign keys. Fails if `skeleton` cannot be changed key by key. say `content`.
pub(super) fn write(
    skeleton: &NoteFile,
    other: &NoteFile,
    content: &NoteContent,
) -> Result<String, CannotRewrite> {
    let own = NoteContent::from_file(skeleton)?;
    let mut file = skeleton.clone();
    if own.foreign != content.foreign {
        let mut parts = skeleton.parts()?;
        for part in &mut parts {
            let Some(key) = part.key.as_deref().filter(|key| !is_own_key(key)) else {
                continue;
            };
            match content.foreign.get(key) {
                Some(lines) if own.foreign.get(key) == Some(lines) => {}
                Some(lines) => part.text = skeleton.with_line_ends(lines.clone()).into(),
                None => part.text = "".into(),
            }
        }
        // A file that is not in block style has no foreign keys here.
        let from = other.parts().unwrap_or_default();
        let is_wanted = |key: &str| content.foreign.contains_key(key);
        let (parts, _) = with_lines_of(skeleton, parts, from, is_wanted);
        file = skeleton.with_parts(&parts).map_err(|_| CannotRewrite)?;
    }
    let mut note = content.note.clone();
    if own.note.body == note.body {
        note.body.clone_from(&file.note().body);
    }
    let text = file.rewrite(&note)?;
    let file = NoteFile::parse(text.as_bytes(), note.id).map_err(|_| CannotRewrite)?;
    let file = write_comments(file, content)?;
    if NoteContent::from_file(&file)?.equals(content) {
        Ok(file.text().to_owned())
    } else {
        Err(CannotRewrite)
    }
}

/// Gives a file the comments of `content`: a new one before the key that it precedes there.
fn write_comments(file: NoteFile, content: &NoteContent) -> Result<NoteFile, CannotRewrite> {
    let own = NoteContent::from_file(&file)?;
    if own.commented == content.commented && own.comment_lines() == content.comment_lines() {
        return Ok(file);
    }
    let mut parts = file.parts()?;
    for part in &mut parts {
        let Some(key) = &part.key else {
            let lines = part.text.split_inclusive('\n').filter(|line| {
                !is_comment(line) || content.has_comment(&line.replace("\r\n", "\n"))
            });
            part.text = lines.collect::<String>().into();
            continue;
        };
        if let Some(lines) = content.commented.get(key) {
            part.text = file.with_line_ends(lines.clone()).into();
        } else if own.commented.contains_key(key) {
            part.text = file.with_line_ends(file.note().key_text(key)).into();
        }
    }
    for (key, line) in &content.comments {
        if own.has_comment(line) {
            continue;
        }
        // The part before a key has the lines between it and the key before.
        let of_key = parts
            .iter()
            .position(|part| part.key.as_ref() == Some(key))
            .unwrap_or(parts.len());
        if let Some(part) = of_key.checked_sub(1).and_then(|at| parts.get_mut(at)) {
            part.text
                .to_mut()
                .push_str(&file.with_line_ends(line.clone()));
        }
    }
    file.with_parts(&parts).map_err(|_| CannotRewrite)
}

/// Restores keys of `base` that the Python version dropped from `side`; `None` if none is missing
/// or `side` cannot be changed key by key.
pub(super) fn with_dropped_keys(base: &NoteFile, side: &NoteFile) -> Option<String> {
    let is_dropped = |key: &str| !is_python_key(key);
    let (parts, count) = with_lines_of(side, side.parts().ok()?, base.parts().ok()?, is_dropped);
    if count == 0 {
        return None;
    }
    let file = side.with_parts(&parts).ok()?;
    Some(file.text().to_owned())
}

/// Inserts the wanted keys of `from` that `parts` lack, each after the key that it follows in
/// `from`; also returns their number.
fn with_lines_of<'a>(
    file: &NoteFile,
    parts: Vec<KeyLines<'a>>,
    from: Vec<KeyLines<'a>>,
    is_wanted: impl Fn(&str) -> bool,
) -> (Vec<KeyLines<'a>>, usize) {
    let mut lacking: BTreeMap<usize, Vec<KeyLines<'a>>> = BTreeMap::new();
    let places: HashMap<&str, usize> = parts
        .iter()
        .enumerate()
        .filter_map(|(place, part)| Some((part.key.as_deref()?, place)))
        .collect();
    let (mut place, mut count) = (0, 0);
    for part in from {
        let Some(key) = part.key.as_deref() else {
            continue;
        };
        if let Some(known) = places.get(key) {
            place = known + 1;
        } else if is_wanted(key) {
            let lines = file.with_line_ends(part.text.replace("\r\n", "\n")).into();
            let part = KeyLines {
                text: lines,
                ..part
            };
            lacking.entry(place).or_default().push(part);
            count += 1;
        }
    }
    let mut all = Vec::with_capacity(parts.len() + count);
    for (place, part) in parts.into_iter().enumerate() {
        all.extend(lacking.remove(&place).unwrap_or_default());
        all.push(part);
    }
    (all, count)
}

/// Returns whether an edited note adds text to the previous one. Tags, dates and the like are not
/// text.
pub(super) fn adds_text(base: Option<&Note>, edited: &Note) -> bool {
    let differs = |field: fn(&Note) -> &str| {
        let edited = field(edited);
        !edited.is_empty() && base.is_none_or(|base| field(base) != edited)
    };
    let adds_trigger = |trigger| !base.is_some_and(|base| base.when.contains(trigger));
    differs(|note| &note.title)
        || differs(|note| note.instead.as_deref().unwrap_or_default())
        || edited.when.iter().any(adds_trigger)
        || body::adds_lines(
            &base.map(|base| plain_text(&base.body)).unwrap_or_default(),
            &plain_text(&edited.body),
        )
}

/// Returns a text as it is compared: with `\n` line ends and without trailing white space.
fn plain_text(text: &str) -> String {
    text.replace("\r\n", "\n").trim_end().to_owned()
}

/// Orders two notes without a common base: by `created_at`, then machine, then `updated_at`. An
/// unreadable date is later than any other.
pub(super) fn by_age(one: &Note, other: &Note) -> Ordering {
    let key = |note: &Note| {
        let created = parse_timestamp(&note.created_at);
        let updated = parse_timestamp(&note.updated_at);
        (created.is_none(), created, note.machine_id.clone(), updated)
    };
    key(one).cmp(&key(other))
}

/// Returns the later of two dates. An unreadable date is earlier than any other; equal dates are
/// ordered as texts, so that the order of the sides does not matter.
fn later<'a>(one: &'a str, other: &'a str) -> &'a str {
    let key = |text: &'a str| (parse_timestamp(text), text);
    key(one).max(key(other)).1
}

struct Sides<'a> {
    base: &'a Note,
    winner: &'a Note,
    loser: &'a Note,
    clash: bool,
}

impl Sides<'_> {
    /// Returns the value of the side that changed it.
    fn choose<T: Clone + PartialEq>(&mut self, field: impl Fn(&Note) -> &T) -> T {
        let values = [self.base, self.winner, self.loser].map(field);
        let [base, winner, loser] = values;
        choose(base, winner, loser, &mut self.clash).clone()
    }

    /// Returns the value of the side that changed it. Two changes are no conflict that a person has to
    /// solve.
    fn choose_silently<T: Clone + PartialEq>(&self, field: impl Fn(&Note) -> &T) -> T {
        let [base, winner, loser] = [self.base, self.winner, self.loser].map(field);
        choose(base, winner, loser, &mut false).clone()
    }

    /// Returns the value of the base, because the origin of a note does not change. If the base has
    /// none, returns the value of the side that has one.
    fn origin<T: Clone + PartialEq>(&mut self, field: impl Fn(&Note) -> &T, unset: &T) -> T {
        let base = field(self.base);
        if base == unset {
            self.choose(field)
        } else {
            base.clone()
        }
    }

    /// Returns the items of the base that neither side removed, then the items that either side
    /// added.
    fn unite(&self, field: impl Fn(&Note) -> &Vec<String>) -> Vec<String> {
        let [base, winner, loser] = [self.base, self.winner, self.loser].map(field);
        united(base, winner, loser)
    }
}

fn choose<'a, T: PartialEq>(base: &'a T, winner: &'a T, loser: &'a T, clash: &mut bool) -> &'a T {
    if winner == base {
        loser
    } else {
        *clash |= loser != base && loser != winner;
        winner
    }
}

fn united(base: &[String], one: &[String], other: &[String]) -> Vec<String> {
    let set = |list: &'_ [String]| list.iter().cloned().collect::<HashSet<String>>();
    let (of_base, of_one, of_other) = (set(base), set(one), set(other));
    let kept = base
        .iter()
        .filter(|item| of_one.contains(*item) && of_other.contains(*item));
    let added: BTreeSet<&String> = one
        .iter()
        .chain(other)
        .filter(|item| !of_base.contains(*item))
        .collect();
    kept.chain(added).cloned().collect()
}
