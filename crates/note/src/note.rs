//! A note and its markdown file.
//!
//! A file is `---`, a block mapping, `---`, the body, one line end. [`Note`] is its content.
//! [`NoteFile`] also has its bytes, so that a rewrite changes only the lines of changed keys:
//! unknown keys, comments, order and line ends of other programs are kept.

mod file;
mod visibility;
mod words;

use std::fmt::Write as _;

use chrono::{DateTime, NaiveDate, NaiveDateTime, SecondsFormat, Utc};

use crate::{front_matter, id::NoteId, project_key};

pub use crate::project_key::GLOBAL;

pub(crate) use file::KeyLines;
pub use file::{CannotRewrite, NoteFile, Unreadable};
pub use visibility::{REFLECTED_TAG, UNREVIEWED_TAG, Visibility};
pub use words::{
    Enforce, Kind, NoteType, Rating, Scope, Severity, Source, State, Status, UnknownWord,
};
pub(crate) use words::{in_json, words};

/// The largest file that is read completely, in bytes; of a larger one only the head is read.
pub const MAX_FILE_LENGTH: usize = 1024 * 1024;

/// A note.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    /// The id, which is also the file name.
    pub id: NoteId,
    /// The type.
    pub note_type: NoteType,
    /// The title. It may be empty, and may have line breaks if another program wrote it.
    pub title: String,
    /// The project key, the key of a group of projects, or [`GLOBAL`].
    pub project: String,
    /// The machine that wrote it.
    pub machine_id: String,
    /// Whether it is synchronized, according to the file; the tree that it is in decides.
    pub scope: Scope,
    /// The Python version's user, if given.
    pub user_id: Option<String>,
    /// The Python version's workspace, if given.
    pub workspace_id: Option<String>,
    /// Its origin.
    pub source: Source,
    /// The confidence, from 0 to 1.
    pub confidence: f64,
    /// The model that wrote it, as `provider/model`.
    pub model: Option<String>,
    /// The client's id of the session that it comes from.
    pub session: Option<String>,
    /// The program of that session, if it was not Claude Code.
    pub host: Option<String>,
    /// The branch on which that session worked, if it was not the repository's default branch.
    pub branch: Option<String>,
    /// The ids of notes that it replaces, as written.
    pub supersedes: Vec<String>,
    /// When it was created, as written.
    pub created_at: String,
    /// When its content last changed, as written.
    pub updated_at: String,
    /// Tags, as written.
    pub tags: Vec<String>,
    /// The words and short questions that search also finds it by, as written.
    pub asked: Vec<String>,
    /// The kind, if the file has one (as a key or as a tag).
    pub kind: Option<Kind>,
    /// Whether it is in use.
    pub state: State,
    /// Declared links, each `RELATION ID [WEIGHT]`.
    pub links: Vec<String>,
    /// The triggers of a warning.
    pub when: Vec<String>,
    /// The alternative that a warning recommends.
    pub instead: Option<String>,
    /// The severity of a warning.
    pub severity: Option<Severity>,
    /// Whether a warning may block a tool call.
    pub enforce: Enforce,
    /// The status of a task, as written; other programs use this key with their own words.
    pub status: Option<String>,
    /// Whether it is kept at the top and never ages.
    pub pinned: bool,
    /// Whether it helped, if somebody said so.
    pub rating: Option<Rating>,
    /// When somebody last confirmed that it is still right, as written.
    pub verified: Option<String>,
    /// `agent` if a model wrote it through a tool.
    pub actor: Option<String>,
    /// The program that it was imported from.
    pub tool: Option<String>,
    /// Its id in that program.
    pub tool_id: Option<String>,
    /// The text with `\n` line ends, without the file's final line end.
    pub body: String,
}

impl Note {
    /// Returns a note with the defaults of the format.
    pub fn new(id: NoteId, note_type: NoteType, now: DateTime<Utc>) -> Self {
        Self {
            id,
            note_type,
            title: String::new(),
            project: GLOBAL.to_owned(),
            machine_id: "unknown".to_owned(),
            scope: Scope::Portable,
            user_id: None,
            workspace_id: None,
            source: Source::Human,
            confidence: 1.0,
            model: None,
            session: None,
            host: None,
            branch: None,
            supersedes: Vec::new(),
            created_at: timestamp(now),
            updated_at: timestamp(now),
            tags: Vec::new(),
            asked: Vec::new(),
            kind: None,
            state: State::Active,
            links: Vec::new(),
            when: Vec::new(),
            instead: None,
            severity: None,
            enforce: Enforce::Never,
            status: None,
            pinned: false,
            rating: None,
            verified: None,
            actor: None,
            tool: None,
            tool_id: None,
            body: String::new(),
        }
    }

    /// Returns the kind: the given one, else the default of the type.
    pub fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::of_type(self.note_type))
    }

    /// Returns the status of a task; pending if missing or unknown.
    pub fn status(&self) -> Status {
        let status = self.status.as_deref().map(str::parse);
        status.and_then(Result::ok).unwrap_or(Status::Pending)
    }

    /// Returns whether the file says that a model wrote it through a tool.
    pub fn is_by_agent(&self) -> bool {
        self.actor.as_deref() == Some("agent")
    }

    /// Returns the word for the author that people and models are shown.
    pub fn author(&self) -> &'static str {
        self.source.author(self.is_by_agent())
    }

    /// Returns whether it applies to all projects.
    pub fn is_global(&self) -> bool {
        self.project == GLOBAL
    }

    /// Returns whether the note applies to several projects: to all, or to a group.
    pub fn is_shared(&self) -> bool {
        project_key::is_shared(&self.project)
    }

    /// Returns whether it has a tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tags.iter().any(|own| own == tag)
    }

    /// Appends tags that it does not have yet.
    pub fn add_tags<'a>(&mut self, tags: impl IntoIterator<Item = &'a str>) {
        for tag in tags {
            if !self.has_tag(tag) {
                self.tags.push(tag.to_owned());
            }
        }
    }

    /// Turns the note into its tombstone: keeps identity and origin, drops the content.
    ///
    /// The title is kept as an empty key, because the Python version requires one.
    pub fn forget(&mut self, now: DateTime<Utc>) {
        let blank = Self::new(self.id, self.note_type, now);
        *self = Self {
            project: std::mem::take(&mut self.project),
            machine_id: std::mem::take(&mut self.machine_id),
            scope: self.scope,
            source: self.source,
            session: self.session.take(),
            host: self.host.take(),
            created_at: std::mem::take(&mut self.created_at),
            kind: self.kind,
            state: State::Forgotten,
            ..blank
        };
    }

    /// Returns the file of a new note.
    pub fn render(&self) -> String {
        let mut out = String::from("---\n");
        for key in KEYS {
            self.write_key(key, &mut out);
        }
        out.push_str("---\n");
        out.push_str(&self.body);
        out.push('\n');
        out
    }

    /// Writes the lines of one key; nothing for an empty optional key.
    fn write_key(&self, key: &str, out: &mut String) {
        let mut optional = |value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                front_matter::write_scalar(out, key, value);
            }
        };
        match key {
            "user_id" => optional(self.user_id.as_deref()),
            "workspace_id" => optional(self.workspace_id.as_deref()),
            "prov_model" => optional(self.model.as_deref()),
            "prov_session" => optional(self.session.as_deref()),
            "prov_host" => optional(self.host.as_deref()),
            "branch" => optional(self.branch.as_deref()),
            "kind" => optional(self.kind.map(Kind::as_str)),
            "state" => optional((self.state != State::Active).then_some(self.state.as_str())),
            "instead" => optional(self.instead.as_deref()),
            "severity" => optional(self.severity.map(Severity::as_str)),
            "enforce" => {
                optional((self.enforce != Enforce::Never).then_some(self.enforce.as_str()))
            }
            "status" => optional(self.status.as_deref()),
            "rating" => optional(self.rating.map(Rating::as_str)),
            "verified" => optional(self.verified.as_deref()),
            "prov_actor" => optional(self.actor.as_deref()),
            "prov_tool" => optional(self.tool.as_deref()),
            "prov_id" => optional(self.tool_id.as_deref()),
            "id" => front_matter::write_scalar(out, key, &self.id.to_string()),
            "type" => front_matter::write_scalar(out, key, self.note_type.as_str()),
            "title" => front_matter::write_scalar(out, key, &self.title),
            "project" => front_matter::write_scalar(out, key, &self.project),
            "machine_id" => front_matter::write_scalar(out, key, &self.machine_id),
            "scope" => front_matter::write_scalar(out, key, self.scope.as_str()),
            "prov_source" => front_matter::write_scalar(out, key, self.source.as_str()),
            // `{:?}` always has a decimal point; without it YAML reads an integer.
            "confidence" => drop(writeln!(out, "{key}: {:?}", self.confidence)),
            "created_at" => front_matter::write_scalar(out, key, &self.created_at),
            "updated_at" => front_matter::write_scalar(out, key, &self.updated_at),
            "tags" => front_matter::write_list(out, key, &self.tags),
            "supersedes" if !self.supersedes.is_empty() => {
                front_matter::write_list(out, key, &self.supersedes);
            }
            "links" if !self.links.is_empty() => front_matter::write_list(out, key, &self.links),
            "asked" if !self.asked.is_empty() => front_matter::write_list(out, key, &self.asked),
            "when" if !self.when.is_empty() => front_matter::write_list(out, key, &self.when),
            "pinned" if self.pinned => out.push_str("pinned: true\n"),
            _ => {}
        }
    }

    pub(crate) fn key_text(&self, key: &str) -> String {
        let mut text = String::new();
        self.write_key(key, &mut text);
        text
    }
}

/// The keys we write, in the order of the file: the Python version's keys first.
const KEYS: [&str; 33] = [
    "id",
    "type",
    "title",
    "project",
    "machine_id",
    "scope",
    "user_id",
    "workspace_id",
    "prov_source",
    "confidence",
    "prov_model",
    "prov_session",
    "supersedes",
    "created_at",
    "updated_at",
    "tags",
    "asked",
    "kind",
    "state",
    "links",
    "when",
    "instead",
    "severity",
    "enforce",
    "status",
    "pinned",
    "rating",
    "verified",
    "branch",
    "prov_host",
    "prov_actor",
    "prov_tool",
    "prov_id",
];

/// The number of leading [`KEYS`] that the Python version knows.
const PYTHON_KEYS: usize = 16;

/// Returns whether [`Note`] has a field for a key.
pub(crate) fn is_own_key(key: &str) -> bool {
    KEYS.contains(&key)
}

/// Returns whether the Python version knows a key. It drops others whenever it rewrites a note.
pub(crate) fn is_python_key(key: &str) -> bool {
    KEYS[..PYTHON_KEYS].contains(&key)
}

/// Formats a time as in notes: UTC, whole seconds, `+00:00`.
pub fn timestamp(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, false)
}

/// Parses a time as notes and editors write it: ISO 8601 with an offset, without one (UTC), or a
/// date.
pub fn parse_timestamp(text: &str) -> Option<DateTime<Utc>> {
    let text = text.trim();
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.with_timezone(&Utc));
    }
    let naive = [
        "%Y-%m-%dT%H:%M:%S%.f",
        "%Y-%m-%d %H:%M:%S%.f",
        "%Y-%m-%dT%H:%M",
        "%Y-%m-%d %H:%M",
    ];
    if let Some(time) = naive
        .iter()
        .find_map(|form| NaiveDateTime::parse_from_str(text, form).ok())
    {
        return Some(time.and_utc());
    }
    let midnight = NaiveDate::parse_from_str(text, "%Y-%m-%d")
        .ok()?
        .and_hms_opt(0, 0, 0)?;
    Some(midnight.and_utc())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn id() -> NoteId {
        ID.parse().unwrap()
    }

    fn now() -> DateTime<Utc> {
        DateTime::parse_from_rfc3339("2026-01-02T03:04:05Z")
            .unwrap()
            .with_timezone(&Utc)
    }

    fn parse(text: &str) -> Result<Note, Unreadable> {
        NoteFile::parse(text.as_bytes(), id()).map(NoteFile::into_note)
    }

    fn rewrite(text: &str, change: impl FnOnce(&mut Note)) -> String {
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        let mut note = file.note().clone();
        change(&mut note);
        file.rewrite(&note).unwrap()
    }

    fn normalised(text: &str) -> Result<String, CannotRewrite> {
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        file.normalised(file.note())
    }

    #[test]
    fn normalising_front_matter_loses_nothing() {
        let odd = "\u{feff}---\r\n# mine\r\ntags: [b, a]\r\nown: {x: 1}\r\n\r\n# of the title\r\n\
                   title: \"A\"\r\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\r\ntype: semantic\r\n# end\r\n---\r\nText \n\r\n";
        let expected = "\u{feff}---\r\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\r\ntype: semantic\r\n\r\n# of the title\r\n\
                        title: A\r\nproject: global\r\nmachine_id: unknown\r\nscope: portable\r\n\
                        prov_source: human\r\nconfidence: 1.0\r\ncreated_at: ''\r\nupdated_at: ''\r\n\
                        # mine\r\ntags:\r\n- b\r\n- a\r\nown: {x: 1}\r\n# end\r\n---\r\nText \n\r\n";
        assert_eq!(normalised(odd).unwrap(), expected);
        assert_eq!(normalised(expected).unwrap(), expected);
        let flow = "---\n{id: 01ARZ3NDEKTSV4RRFFQ69G5FAV, type: semantic, title: A}\n---\nText";
        let text = normalised(flow).unwrap();
        assert!(
            text.starts_with("---\nid: 01ARZ") && text.ends_with("---\nText"),
            "{text}"
        );
        // Other keys and comments cannot be separated in a flow mapping.
        assert_eq!(
            normalised(&flow.replace("title", "own: 1, title")),
            Err(CannotRewrite)
        );
        assert_eq!(
            normalised(&flow.replace('}', " # mine\n}")),
            Err(CannotRewrite)
        );
    }

    /// The Python version's keys come first.
    #[test]
    fn a_new_note_has_the_keys_in_order() {
        let mut note = Note::new(id(), NoteType::Procedural, now());
        assert_eq!(
            note.render(),
            "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: procedural\ntitle: ''\nproject: global\n\
             machine_id: unknown\nscope: portable\nprov_source: human\nconfidence: 1.0\n\
             created_at: '2026-01-02T03:04:05+00:00'\nupdated_at: '2026-01-02T03:04:05+00:00'\n\
             tags: []\n---\n\n"
        );
        note.title = "Never: force-push".to_owned();
        note.confidence = 0.6;
        note.model = Some("local/m".to_owned());
        note.session = Some("s".to_owned());
        note.supersedes = vec![ID.to_owned()];
        note.tags = vec!["a".to_owned(), "yes".to_owned()];
        note.kind = Some(Kind::Antipattern);
        note.state = State::Muted;
        note.links = vec!["related-to X".to_owned()];
        note.when = vec!["cmd: git push --force".to_owned()];
        note.instead = Some("push a branch".to_owned());
        note.severity = Some(Severity::High);
        note.enforce = Enforce::Once;
        note.status = Some("active".to_owned());
        note.pinned = true;
        note.branch = Some("feat/retry".to_owned());
        note.host = Some("codex".to_owned());
        note.actor = Some("agent".to_owned());
        note.tool = Some("engram".to_owned());
        note.tool_id = Some("observations/1".to_owned());
        note.body = "text".to_owned();
        let text = note.render();
        assert_eq!(
            text,
            "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: procedural\ntitle: 'Never: force-push'\nproject: global\n\
             machine_id: unknown\nscope: portable\nprov_source: human\nconfidence: 0.6\nprov_model: local/m\n\
             prov_session: s\nsupersedes:\n- 01ARZ3NDEKTSV4RRFFQ69G5FAV\ncreated_at: '2026-01-02T03:04:05+00:00'\n\
             updated_at: '2026-01-02T03:04:05+00:00'\ntags:\n- a\n- 'yes'\nkind: antipattern\nstate: muted\nlinks:\n\
             - related-to X\nwhen:\n- 'cmd: git push --force'\ninstead: push a branch\nseverity: high\nenforce: once\n\
             status: active\npinned: true\nbranch: feat/retry\nprov_host: codex\nprov_actor: agent\nprov_tool: engram\n\
             prov_id: observations/1\n---\ntext\n"
        );
        assert_eq!(parse(&text).unwrap(), note);
    }

    #[test]
    fn an_unknown_status_is_kept_and_ignored() {
        let text = "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: ''\nstatus: draft\n---\n\n";
        let note = parse(text).unwrap();
        assert_eq!(note.status(), Status::Pending);
        assert!(
            rewrite(text, |note| note.pinned = true).contains("\nstatus: draft\npinned: true\n")
        );
        let done = rewrite(text, |note| note.status = Some(Status::Done.to_string()));
        assert_eq!(parse(&done).unwrap().status(), Status::Done);
    }

    /// The Python version's output: folded titles, escapes, lists at column 0.
    #[test]
    fn files_of_the_python_version_are_read() {
        let text = "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\n\
            title: A title that is so long that the emitter folds it over two lines of the\n  file *with* stars\n\
            project: github.com/a/b\nmachine_id: \"esc\\e \\U0001F9EA\"\nscope: portable\nuser_id: self\n\
            workspace_id: personal\nprov_source: human\nconfidence: 1.0\ncreated_at: '2026-01-01T00:00:00+00:00'\n\
            updated_at: '2026-01-01T00:00:00+00:00'\ntags:\n- 1e3\n- 'no'\n---\nbody\n---\nmore\n\n";
        let note = parse(text).unwrap();
        assert_eq!(
            note.title,
            "A title that is so long that the emitter folds it over two lines of the file *with* stars"
        );
        assert_eq!(note.machine_id, "esc\u{1b} 🧪");
        assert_eq!(note.tags, ["1e3", "no"]);
        assert_eq!(note.body, "body\n---\nmore\n");
        assert_eq!(note.user_id.as_deref(), Some("self"));
    }

    #[test]
    fn missing_optional_keys_have_defaults() {
        let note = parse("---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: episodic\ntitle: t\n---\nb\n")
            .unwrap();
        assert_eq!(note.project, GLOBAL);
        assert_eq!(note.machine_id, "unknown");
        assert_eq!((note.created_at.as_str(), note.source), ("", Source::Human));
        assert!((note.confidence - 1.0).abs() < f64::EPSILON);
        assert_eq!(note.kind(), Kind::Experience);
    }

    #[test]
    fn unreadable_files_say_why() {
        for (text, reason) in [
            ("", "line 1: no front matter"),
            ("no front matter\n", "line 1: no front matter"),
            ("---\nid: x\n", "front matter is not closed by a line ---"),
            ("---\ntype: semantic\ntitle: t\n---\n", "missing key \"id\""),
            (
                "---\nid: ../../x\ntype: semantic\ntitle: t\n---\n",
                "key \"id\": \"../../x\" is not a note id (26 characters of 0-9 and A-Z without I, L, O, U)",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAW\ntype: semantic\ntitle: t\n---\n",
                "key \"id\" is 01ARZ3NDEKTSV4RRFFQ69G5FAW, the file name says 01ARZ3NDEKTSV4RRFFQ69G5FAV",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: ../evil\ntitle: t\n---\n",
                "key \"type\": expected one of procedural, semantic, episodic, got \"../evil\"",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: [a]\n---\n",
                "line 4: title: invalid type: sequence, expected a string",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\ntitle: u\n---\n",
                "line 5: duplicate key \"title\"",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: &a t\n---\n",
                "line 4: anchors, aliases and tags are not supported",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\nprov_source: magic\n---\n",
                "key \"prov_source\": expected one of human, session-end, reflection, import, merge, got \"magic\"",
            ),
            (
                "---\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\ntype: semantic\ntitle: t\nconfidence: lots\n---\n",
                "key \"confidence\": expected a number from 0 to 1, got \"lots\"",
            ),
        ] {
            assert_eq!(parse(text).unwrap_err().to_string(), reason, "{text}");
        }
        // YAML-11
        assert_eq!(
            NoteFile::parse(b"---\nid: \xff\n", id()).unwrap_err(),
            Unreadable::NotUtf8 { offset: 8 }
        );
    }

    #[test]
    fn confidence_is_clamped() {
        // YAML-08
        for (written, read) in [
            ("999", 1.0),
            (".inf", 1.0),
            ("-5", 0.0),
            ("NaN", 0.0),
            ("0.25", 0.25),
        ] {
            let text =
                format!("---\nid: {ID}\ntype: semantic\ntitle: t\nconfidence: {written}\n---\n");
            assert!(
                (parse(&text).unwrap().confidence - read).abs() < f64::EPSILON,
                "{written}"
            );
        }
    }

    #[test]
    fn a_rewrite_touches_changed_lines_only() {
        // YAML-14
        let text = "---\n# by hand\nid: 01ARZ3NDEKTSV4RRFFQ69G5FAV\nfuture: {keep: [me]}\ntype: semantic\n\
            title:   spaced\ntags: [a,  b]\nconfidence: .5\n---\nbody\n";
        assert_eq!(rewrite(text, |_| {}), text);
        assert_eq!(
            rewrite(text, |note| note.title = "new: title".to_owned()),
            text.replace("title:   spaced", "title: 'new: title'")
        );
        assert_eq!(
            rewrite(text, |note| note.tags.push("c".to_owned())),
            text.replace("tags: [a,  b]", "tags:\n- a\n- b\n- c")
        );
        assert_eq!(
            rewrite(text, |note| note.pinned = true),
            text.replace("confidence: .5\n", "confidence: .5\npinned: true\n")
        );
        assert_eq!(
            rewrite(text, |note| note.session = Some("s".to_owned())),
            text.replace("tags: [a,  b]", "prov_session: s\ntags: [a,  b]")
        );
        assert_eq!(
            rewrite(text, |note| note.body = "other".to_owned()),
            text.replace("body\n", "other\n")
        );
    }

    #[test]
    fn a_rewrite_can_remove_a_key() {
        let text =
            format!("---\nid: {ID}\ntype: semantic\ntitle: t\nstate: muted\npinned: true\n---\n");
        let changed = rewrite(&text, |note| {
            note.state = State::Active;
            note.pinned = false;
        });
        assert_eq!(
            changed,
            format!("---\nid: {ID}\ntype: semantic\ntitle: t\n---\n")
        );
    }

    #[test]
    fn crlf_and_byte_order_marks_are_kept() {
        let text = format!(
            "\u{feff}---\r\nid: {ID}\r\ntype: semantic\r\ntitle: t\r\n---\r\none\r\ntwo\r\n"
        );
        assert_eq!(parse(&text).unwrap().body, "one\ntwo");
        assert_eq!(rewrite(&text, |_| {}), text);
        assert_eq!(
            rewrite(&text, |note| note.title = "u".to_owned()),
            text.replace("title: t", "title: u")
        );
        assert!(
            rewrite(&text, |note| note.body = "a\nb".to_owned()).ends_with("---\r\na\r\nb\r\n")
        );
    }

    #[test]
    fn a_flow_mapping_is_read_and_not_rewritten() {
        let text = format!("---\n{{id: {ID}, type: semantic, title: t}}\n---\nb\n");
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        assert_eq!(file.note().title, "t");
        assert_eq!(file.rewrite(file.note()), Err(CannotRewrite));
    }

    #[test]
    fn a_rewrite_that_would_not_read_back_is_refused() {
        // `...` ends the YAML document, so keys after it are not read.
        let text = format!("---\nid: {ID}\ntype: semantic\ntitle: t\n...\n---\nb\n");
        let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
        let mut note = file.note().clone();
        note.pinned = true;
        assert_eq!(file.rewrite(&note), Err(CannotRewrite));
        note = file.note().clone();
        note.title = "u".to_owned();
        assert!(file.rewrite(&note).is_ok());
    }

    #[test]
    fn a_tombstone_keeps_nothing_of_the_text() {
        let mut note = parse(&format!(
            "---\nid: {ID}\ntype: semantic\nkind: insight\ntitle: needle\nproject: p\nprov_session: s\ntags: [needle]\nlinks: [needle]\n---\nneedle\n"
        ))
        .unwrap();
        note.forget(now());
        let text = note.render();
        assert!(!text.contains("needle"));
        assert!(
            text.contains("state: forgotten")
                && text.contains("prov_session: s")
                && text.contains("project: p")
        );
        let tombstone = parse(&text).unwrap();
        let kept = (tombstone.state, tombstone.kind());
        assert_eq!(kept, (State::Forgotten, Kind::Insight));
    }

    #[test]
    fn a_kind_may_be_given_as_a_tag() {
        let text =
            format!("---\nid: {ID}\ntype: procedural\ntitle: t\ntags: [x, antipattern]\n---\n");
        assert_eq!(parse(&text).unwrap().kind(), Kind::Antipattern);
        assert_eq!(Kind::from_word("how-to").unwrap(), Kind::Skill);
        assert_eq!(Kind::from_word("skill").unwrap(), Kind::Skill);
        assert!(Kind::from_word("nothing").is_err());
    }

    #[test]
    fn timestamps_are_parsed() {
        for text in [
            "2026-01-02T03:04:05+00:00",
            "2026-01-02T03:04:05Z",
            "2026-01-02 03:04:05",
            "2026-01-02T05:04:05+02:00",
        ] {
            assert_eq!(parse_timestamp(text), Some(now()), "{text}");
        }
        assert!(parse_timestamp("2026-01-02").is_some());
        assert_eq!(parse_timestamp("yesterday"), None);
        assert_eq!(timestamp(now()), "2026-01-02T03:04:05+00:00");
    }

    fn any_note() -> impl Strategy<Value = Note> {
        let texts = || prop::collection::vec("\\PC{1,20}", 0..4);
        (
            (
                any::<String>(),
                any::<String>(),
                any::<String>(),
                0.0..=1.0_f64,
            ),
            (
                texts(),
                texts(),
                texts(),
                texts(),
                prop::option::of("\\PC{1,20}"),
            ),
            (0..3_usize, 0..4_usize, any::<bool>(), any::<bool>()),
        )
            .prop_map(
                |(
                    (title, project, body, confidence),
                    (tags, asked, links, supersedes, instead),
                    (kind, state, pinned, may_stop),
                )| {
                    let mut note = Note::new(id(), NoteType::ALL[kind], now());
                    note.title = title;
                    note.project = project;
                    // The body is the text between the last `---` and the final
                    // line end, with LF line ends.
                    note.body = body.replace('\r', "");
                    note.confidence = confidence;
                    note.tags = tags;
                    note.asked = asked;
                    note.links = links;
                    note.supersedes = supersedes;
                    note.instead = instead;
                    note.state = State::ALL[state];
                    note.pinned = pinned;
                    note.enforce = Enforce::ALL[usize::from(may_stop)];
                    note
                },
            )
    }

    proptest! {
        #[test]
        fn a_new_note_is_normalised(note in any_note()) {
            let text = note.render();
            let file = NoteFile::parse(text.as_bytes(), note.id).unwrap();
            prop_assert_eq!(file.normalised(file.note()).unwrap(), text);
        }

        #[test]
        fn every_note_reads_back(note in any_note()) {
            let read = parse(&note.render()).unwrap();
                        // A tag may be read as the kind.
            prop_assert_eq!(Note { kind: note.kind, ..read }, note);
        }

        #[test]
        fn every_rewrite_reads_back(old in any_note(), new in any_note()) {
            let text = old.render();
            let file = NoteFile::parse(text.as_bytes(), id()).unwrap();
            let rewritten = file.rewrite(&new).unwrap();
            let read = parse(&rewritten).unwrap();
            prop_assert_eq!(Note { kind: new.kind, ..read }, new);
            prop_assert_eq!(file.rewrite(file.note()).unwrap(), text);
        }

        #[test]
        fn reading_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = NoteFile::parse(&bytes, id());
            let mut framed = b"---\n".to_vec();
            framed.extend(&bytes);
            framed.extend(b"\n---\nbody\n");
            let _ = NoteFile::parse(&framed, id());
        }
    }
}
