//! Upkeep tasks for stores that came from the Python version or have grown. Each is run by its own
//! command and returns a plan.

use std::collections::{BTreeMap, BTreeSet};

use anamnesis_note::{
    draft::safe_line,
    id::NoteId,
    note::{Kind, Note, Source, State},
    synced_lines::Aliases,
};
use serde::Deserialize;

use super::{Action, NoteSet, Plan, PlanState, duplicates, parts};

/// Plans to merge notes with identical text, whatever their titles, kinds and projects. The note
/// for all projects remains, else the oldest, else the first by id. Notes without a body are
/// ignored.
pub fn copies(note_set: &NoteSet) -> Plan {
    let mut state = PlanState::new(note_set);
    let mut groups: BTreeMap<String, Vec<NoteId>> = BTreeMap::new();
    for note in state.in_use() {
        let text = note.body.trim();
        if !text.is_empty() {
            groups.entry(text.to_owned()).or_default().push(note.id);
        }
    }
    for group in groups.values() {
        duplicates::replace(&mut state, group, true, |_, _, _| true);
    }
    state.finish(Vec::new())
}

/// Plans to split these notes, however long they are. Notes that cannot be split or changed are
/// left.
pub fn split(note_set: &NoteSet, ids: &BTreeSet<NoteId>) -> Plan {
    let mut state = PlanState::new(note_set);
    parts::split(&mut state, |note| ids.contains(&note.id));
    state.finish(Vec::new())
}

/// New project keys for projects and single notes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyMap {
    /// New keys by old key.
    #[serde(default)]
    projects: BTreeMap<String, String>,
    /// New keys by note id. They override those of projects.
    #[serde(default)]
    notes: BTreeMap<String, String>,
}

/// Why a map is invalid.
#[derive(Debug, thiserror::Error)]
pub enum InvalidKeyMap {
    /// The JSON is invalid or has another structure.
    #[error("not {{\"projects\": {{OLD: NEW}}, \"notes\": {{ID: NEW}}}}: {0}")]
    Json(#[from] serde_json::Error),
    /// A new key is empty.
    #[error("the new key of \"{0}\" is empty")]
    Empty(String),
    /// A name under `notes` is not a note id.
    #[error("\"{0}\" is not a note id")]
    NotAnId(String),
    /// A key is both old and new, so running the map again would move its notes on.
    #[error(
        "\"{0}\" is both an old and a new key: which notes have it depends on when this is run"
    )]
    Chain(String),
}

impl KeyMap {
    /// Parses a map.
    ///
    /// # Errors
    /// Fails also for a map that would have another effect when run again.
    pub fn parse(text: &str) -> Result<Self, InvalidKeyMap> {
        // serde would accept a list for a struct.
        let object: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text)?;
        let mut map: Self = serde_json::from_value(object.into())?;
        for (old, new) in map.projects.iter_mut().chain(&mut map.notes) {
            *new = safe_line(new);
            if new.is_empty() {
                return Err(InvalidKeyMap::Empty(old.clone()));
            }
        }
        map.projects.retain(|old, new| old != new);
        if let Some(id) = map.notes.keys().find(|id| id.parse::<NoteId>().is_err()) {
            return Err(InvalidKeyMap::NotAnId(id.clone()));
        }
        let mut new = map.projects.values();
        if let Some(both) = new.find(|new| map.projects.contains_key(*new)) {
            return Err(InvalidKeyMap::Chain(both.clone()));
        }
        Ok(map)
    }

    /// Returns the new key of a note, if it changes.
    pub fn project_of(&self, note: &Note) -> Option<&str> {
        let own = self.notes.get(&note.id.to_string());
        let new = own.or_else(|| self.projects.get(&note.project))?;
        (*new != note.project).then_some(new)
    }

    /// Returns the note ids in the map.
    pub fn ids(&self) -> impl Iterator<Item = &str> {
        self.notes.keys().map(String::as_str)
    }
}

/// Returns the source that a note's tags imply, if its own source is only the default.
///
/// The default says that a person wrote it, which every note without a source says. A note that
/// states its source keeps it.
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

/// Returns a note in the current format: with its project's current key, distinct lower-case tags,
/// and an unusual kind as a tag.
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

/// Returns the pairs of superseded note and remaining note of a plan, in order.
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
        let plan = copies(&NoteSet {
            notes,
            ..NoteSet::default()
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
        // The text has to be equal inside, including white space.
        assert_eq!(dedup(vec![note("a", "x  y"), note("b", "x y")]), []);
        // Two tasks without a body are different tasks.
        assert_eq!(dedup(vec![note("a", ""), note("b", " \n")]), []);
    }

    #[test]
    fn a_map_is_accepted_as_a_whole_or_rejected() {
        for (text, reason) in [
            ("[]", "not {\"projects\""),
            ("{\"project\": {}}", "not {\"projects\""),
            ("{\"projects\": {\"a\": 1}}", "not {\"projects\""),
            (
                "{\"projects\": {\"a\": \" \\u200b\"}}",
                "the new key of \"a\" is empty",
            ),
            (
                "{\"notes\": {\"../x\": \"a\"}}",
                "\"../x\" is not a note id",
            ),
            (
                "{\"projects\": {\"a\": \"b\", \"b\": \"c\"}}",
                "\"b\" is both an old and a new key",
            ),
        ] {
            let error = KeyMap::parse(text).unwrap_err().to_string();
            assert!(error.starts_with(reason), "{text}: {error}");
        }
        let map = KeyMap::parse("{\"projects\": {\"global\": \"b\", \"x\": \"x\"}}").unwrap();
        assert_eq!(map.project_of(&note("a", "")), Some("b"));
    }

    #[test]
    fn a_notes_own_entry_overrides_its_projects() {
        let one = note("one", "");
        let text = format!(
            "{{\"projects\": {{\"global\": \"b\"}}, \"notes\": {{\"{}\": \"c\"}}}}",
            one.id
        );
        let map = KeyMap::parse(&text).unwrap();
        assert_eq!(map.project_of(&one), Some("c"));
        assert_eq!(map.project_of(&note("two", "")), Some("b"));
        let mut moved = one;
        moved.project = "c".to_owned();
        assert_eq!(map.project_of(&moved), None);
    }

    #[test]
    fn tags_imply_a_source_only_if_the_note_states_none() {
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
    fn tags_and_kinds_get_the_current_format() {
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
        fn normal_is_idempotent(tags in prop::collection::vec("(?s).{0,6}", 0..5), kind in 0..Kind::ALL.len()) {
            let mut any = note("any", "");
            any.tags = tags;
            any.kind = Some(Kind::ALL[kind]);
            any.note_type = Kind::ALL[kind].note_type();
            let once = normal(&any, &Aliases::default());
            prop_assert_eq!(normal(&once, &Aliases::default()), once);
        }

        #[test]
        fn any_map_is_accepted_or_rejected(text in "[{}\"a-c:, ]{0,40}") {
            let _ = KeyMap::parse(&text);
        }
    }
}
