//! The chores of a store that came from the Python version, or has grown: each is asked for by its name,
//! shows what it would do, and does nothing else.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    draft::safe_line,
    id::NoteId,
    note::{Kind, Note, Source, State},
    usage_log::Aliases,
};
use serde::Deserialize;

use super::{Action, Desk, Plan, Shelf, duplicates, parts};

/// Finds notes with the very same text, whatever their titles, kinds and projects: the first one for all
/// projects, else the oldest, else the first by id stands for the others. Notes without a text are none.
pub fn copies(shelf: &Shelf) -> Plan {
    let mut desk = Desk::of(shelf);
    let mut groups: BTreeMap<String, Vec<NoteId>> = BTreeMap::new();
    for note in desk.in_use() {
        let text = note.body.trim();
        if !text.is_empty() {
            groups.entry(text.to_owned()).or_default().push(note.id);
        }
    }
    for group in groups.values() {
        duplicates::replace(&mut desk, group, true, |_, _, _| true);
    }
    desk.finish(Vec::new(), Vec::new())
}

/// Takes notes apart, however long they are; those that are one thing stay, and so do those that nothing
/// may be done to.
pub fn split(shelf: &Shelf, ids: &BTreeSet<NoteId>) -> Plan {
    let mut desk = Desk::of(shelf);
    parts::split(&mut desk, |note| ids.contains(&note.id));
    desk.finish(Vec::new(), Vec::new())
}

/// Which projects and which notes get another key.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Map {
    /// New keys by old ones.
    #[serde(default)]
    projects: BTreeMap<String, String>,
    /// New keys by the ids of notes; they count before those of projects.
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

/// Why a map cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum BadMap {
    /// It is not the JSON that it should be.
    #[error("not {{\"projects\": {{OLD: NEW}}, \"notes\": {{ID: NEW}}}}: {0}")]
    Json(#[from] serde_json::Error),
    /// A key without a name.
    #[error("the new key of \"{0}\" is empty")]
    Empty(String),
    /// What is no note's id.
    #[error("\"{0}\" is no note's id")]
    NotAnId(String),
    /// A project would be moved on when it is run again.
    #[error(
        "\"{0}\" is both an old and a new key: which notes have it depends on when this is run"
    )]
    Chain(String),
}

impl Map {
    /// Reads a map.
    ///
    /// # Errors
    /// When it says nothing that can be done, or not the same the second time.
    pub fn parse(text: &str) -> Result<Self, BadMap> {
        // A list would be taken for an object without names.
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)?;
        let mut map: Self = serde_json::from_value(object.into())?;
        for (old, new) in map.projects.iter_mut().chain(&mut map.notes) {
            *new = safe_line(new);
            if new.is_empty() {
                return Err(BadMap::Empty(old.clone()));
            }
        }
        map.projects.retain(|old, new| old != new);
        if let Some(id) = map.notes.keys().find(|id| id.parse::<NoteId>().is_err()) {
            return Err(BadMap::NotAnId(id.clone()));
        }
        let mut new = map.projects.values();
        if let Some(both) = new.find(|new| map.projects.contains_key(*new)) {
            return Err(BadMap::Chain(both.clone()));
        }
        Ok(map)
    }

    /// The new key of a note, if it gets one.
    pub fn project_of(&self, note: &Note) -> Option<&str> {
        let own = self.notes.get(&note.id.to_string());
        let new = own.or_else(|| self.projects.get(&note.project))?;
        (*new != note.project).then_some(new)
    }

    /// The ids that it names.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.notes.keys().map(String::as_str)
    }
}

/// What a note's tags say of how it came to be, where its source says nothing else than that a person
/// wrote it, which every note says that has no source.
///
/// Nothing is made a person's by this: a note that says of itself how it came to be keeps that.
pub fn source_by_tags(note: &Note) -> Option<Source> {
    let is_told = note.source != Source::Human || note.is_by_agent();
    let is_distilled = note.has_tag("reflection") || note.has_tag("merge");
    if is_told || is_distilled || note.state == State::Forgotten {
        return None;
    }
    if note.has_tag("import") {
        Some(Source::Import)
    } else if note.has_tag("session") {
        Some(Source::SessionEnd)
    } else {
        None
    }
}

/// A note as it would be written today: the key that its project has now, each tag once and in small
/// letters, a kind that is not the usual one among the tags.
pub fn normal(note: &Note, aliases: &Aliases) -> Note {
    let mut normal = note.clone();
    if note.state == State::Forgotten {
        return normal;
    }
    aliases
        .current(&note.project)
        .clone_into(&mut normal.project);
    let tags: Vec<String> = note
        .tags
        .iter()
        .map(|tag| tag.trim().to_lowercase())
        .collect();
    normal.tags.clear();
    let tags = tags.iter().map(String::as_str);
    normal.add_tags(tags.filter(|tag| !tag.is_empty()));
    let unusual = note
        .kind
        .filter(|kind| *kind != Kind::of_type(note.note_type));
    normal.add_tags(unusual.map(Kind::as_str));
    normal
}

/// Which notes a plan replaces by which, in its order.
pub fn replaced(plan: &Plan) -> impl Iterator<Item = (NoteId, NoteId)> {
    plan.actions.iter().flat_map(|action| match action {
        Action::Replace {
            keeper, replaced, ..
        } => replaced.iter().map(|id| (*id, *keeper)).collect(),
        _ => Vec::new(),
    })
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;

    fn note(name: &str, body: &str) -> Note {
        let id = NoteId::made_of(name);
        let mut note = Note::new(id, NoteType::Semantic, DateTime::UNIX_EPOCH);
        note.title = name.to_owned();
        note.body = body.to_owned();
        note
    }

    fn dedup(notes: Vec<Note>) -> Vec<(NoteId, NoteId)> {
        let plan = copies(&Shelf {
            notes,
            ..Shelf::default()
        });
        replaced(&plan).collect()
    }

    #[test]
    fn copies_are_found_across_projects_and_types() {
        let mut first = note("first", "The same.\n");
        first.project = "p".to_owned();
        first.created_at = "2025-01-01".to_owned();
        let mut second = note("second", "\nThe same.");
        second.project = "q".to_owned();
        second.note_type = NoteType::Procedural;
        second.created_at = "2025-01-02".to_owned();
        let [one, two] = ["first", "second"].map(NoteId::made_of);
        assert_eq!(dedup(vec![second.clone(), first.clone()]), [(two, one)]);
        second.project = "global".to_owned();
        assert_eq!(dedup(vec![first, second]), [(one, two)]);
        // To the byte, inside.
        assert_eq!(dedup(vec![note("a", "x  y"), note("b", "x y")]), []);
        // Two tasks that are all title are two tasks.
        assert_eq!(dedup(vec![note("a", ""), note("b", " \n")]), []);
    }

    #[test]
    fn a_map_is_taken_as_a_whole_or_not_at_all() {
        for (text, reason) in [
            ("[]", "not {\"projects\""),
            ("{\"project\": {}}", "not {\"projects\""),
            ("{\"projects\": {\"a\": 1}}", "not {\"projects\""),
            (
                "{\"projects\": {\"a\": \" \\u200b\"}}",
                "the new key of \"a\" is empty",
            ),
            ("{\"notes\": {\"../x\": \"a\"}}", "\"../x\" is no note's id"),
            (
                "{\"projects\": {\"a\": \"b\", \"b\": \"c\"}}",
                "\"b\" is both an old and a new key",
            ),
        ] {
            let error = Map::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
        let map = Map::parse("{\"projects\": {\"global\": \"b\", \"x\": \"x\"}}").unwrap();
        assert_eq!(map.project_of(&note("a", "")), Some("b"));
    }

    #[test]
    fn a_notes_own_entry_counts_before_its_projects() {
        let one = note("one", "");
        let text = format!(
            "{{\"projects\": {{\"global\": \"b\"}}, \"notes\": {{\"{}\": \"c\"}}}}",
            one.id
        );
        let map = Map::parse(&text).unwrap();
        assert_eq!(map.project_of(&one), Some("c"));
        assert_eq!(map.project_of(&note("two", "")), Some("b"));
        let mut moved = one;
        moved.project = "c".to_owned();
        assert_eq!(map.project_of(&moved), None);
    }

    #[test]
    fn tags_say_where_a_note_is_from_only_where_it_says_nothing_itself() {
        let tagged = |tags: &[&str], change: &dyn Fn(&mut Note)| {
            let mut note = note("a", "");
            note.add_tags(tags.iter().copied());
            change(&mut note);
            source_by_tags(&note)
        };
        let as_is = |_: &mut Note| {};
        assert_eq!(tagged(&["import", "session"], &as_is), Some(Source::Import));
        assert_eq!(tagged(&["session"], &as_is), Some(Source::SessionEnd));
        assert_eq!(tagged(&["other"], &as_is), None);
        assert_eq!(tagged(&["session", "reflection"], &as_is), None);
        assert_eq!(tagged(&["session", "merge"], &as_is), None);
        for source in [
            Source::Reflection,
            Source::Merge,
            Source::Import,
            Source::SessionEnd,
        ] {
            assert_eq!(
                tagged(&["session", "import"], &|note| note.source = source),
                None
            );
        }
        let by_agent = |note: &mut Note| note.actor = Some("agent".to_owned());
        assert_eq!(tagged(&["session"], &by_agent), None);
    }

    #[test]
    fn tags_and_kinds_as_they_are_written_today() {
        let mut odd = note("odd", "");
        odd.tags = ["CI", " ci", "Ops", ""].map(str::to_owned).to_vec();
        odd.kind = Some(Kind::Preference);
        assert_eq!(
            normal(&odd, &Aliases::default()).tags,
            ["ci", "ops", "preference"]
        );
        odd.kind = Some(Kind::Fact);
        assert_eq!(normal(&odd, &Aliases::default()).tags, ["ci", "ops"]);
    }

    proptest! {
        #[test]
        fn normal_is_normal(tags in prop::collection::vec("(?s).{0,6}", 0..5), kind in 0..Kind::ALL.len()) {
            let mut any = note("any", "");
            any.tags = tags;
            any.kind = Some(Kind::ALL[kind]);
            any.note_type = Kind::ALL[kind].note_type();
            let once = normal(&any, &Aliases::default());
            prop_assert_eq!(normal(&once, &Aliases::default()), once);
        }

        #[test]
        fn any_map_is_read(text in "[{}\"a-c:, ]{0,40}") {
            let _ = Map::parse(&text);
        }
    }
}
