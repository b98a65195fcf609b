use std::fs;

use anamnesis_note::note::{NoteType, State};
use anamnesis_store::settings::config::Config;
use rusqlite::Connection;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::{
    environment::{Caller, Environment},
    export::{self, ExportForm},
    undo,
};

const CLAUDE_MEM: &str = "
    CREATE TABLE schema_versions (id INTEGER, version INTEGER);
    INSERT INTO schema_versions VALUES (1, 7), (2, 52);
    CREATE TABLE sdk_sessions (id INTEGER, content_session_id TEXT, memory_session_id TEXT, project TEXT);
    INSERT INTO sdk_sessions VALUES (1, 'c-1', 'm-1', 'shop'), (2, 'c-2', 'm-2', 'blog');
    CREATE TABLE observations (id INTEGER, memory_session_id TEXT, project TEXT, text TEXT, type TEXT,
        title TEXT, subtitle TEXT, facts TEXT, narrative TEXT, concepts TEXT, files_modified TEXT,
        created_at TEXT, created_at_epoch INTEGER, merged_into_project TEXT);
    INSERT INTO observations VALUES
        (1, 'm-1', 'shop', NULL, 'decision', 'Money is in cents', 'Floats lost cents',
         '[\"amount_cents is i64\"]', 'All amounts are cents.', '[\"trade-off\"]', '[\"src/money.rs\"]',
         '2026-01-02T03:04:05Z', 1767323045000, NULL),
        (2, 'm-1', 'shop', NULL, 'decision', 'Money is in cents', 'Floats lost cents',
         '[\"amount_cents is i64\"]', 'All amounts are cents.', '[\"trade-off\"]', '[\"src/money.rs\"]',
         '2026-01-03T03:04:05Z', 1767409445000, NULL),
        (3, 'm-2', 'blog', NULL, 'bugfix', 'Tests waited for port 9090', NULL, '[]',
         'Nothing started the stub. <private>needle</private>', '[\"gotcha\"]', '[]',
         '2026-01-02T03:04:05Z', 1767323045000, NULL),
        (4, 'm-2', 'blog', NULL, 'discovery', '<private>needle</private>', NULL, '[]', NULL, '[]', '[]',
         '2026-01-02T03:04:05Z', 1767323045000, NULL);
    CREATE TABLE session_summaries (id INTEGER, memory_session_id TEXT, project TEXT, request TEXT,
        learned TEXT, created_at_epoch INTEGER);
    INSERT INTO session_summaries VALUES (1, 'm-1', 'shop', 'Fix the tests', 'A stub is needed', 1767323045000),
        (2, 'm-1', 'shop', 'Fix CI', 'It is the same', 1767323046000);
    CREATE TABLE tool_uses (id INTEGER, project TEXT, cwd TEXT);
    INSERT INTO tool_uses VALUES (1, 'shop', '/gone/shop');";

/// A store, and a folder for sources.
struct Bench {
    folder: TempDir,
    context: Context,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut environment = Environment::read(Caller::Person);
        environment.store = Some(folder.path().join("store"));
        environment.user_home = Some(folder.path().join("home"));
        environment.claude_folder = Some(folder.path().join("home/.claude"));
        environment.is_agent = false;
        environment.remote = None;
        fs::create_dir(folder.path().join("home")).unwrap();
        let context = Context::open(environment).unwrap();
        Self { folder, context }
    }

    /// Writes a file of a source.
    fn file(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder.path().join("source").join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Writes a database of a source.
    fn database(&self, sql: &str) -> PathBuf {
        let path = self.file("source.db", "");
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        path
    }

    fn request(apply: bool) -> Request {
        Request {
            project: Some("p".to_owned()),
            with_conversations: true,
            apply,
            ..Request::default()
        }
    }

    fn run(&self, name: &str, path: &Path, request: Request) -> Result<ImportReport, Error> {
        let request = Request {
            path: Some(path.to_owned()),
            ..request
        };
        let journal = crate::bulk_change::open_store(&self.context, request.apply)?;
        let sources = open(&self.context, name, &request)?;
        run(
            &self.context,
            journal.as_ref(),
            &sources[0],
            &request,
            |_| {},
        )
    }

    /// Plays a dry run, an import, a second one and the undo. Returns the counts of the first, and
    /// the notes as they were imported.
    fn play(&self, name: &str, path: &Path) -> (String, Vec<Note>) {
        let source = path.parent().unwrap();
        let (before, source_before) = (self.tree(), files(source));
        let looked = self.run(name, path, Self::request(false)).unwrap();
        assert_eq!(self.tree(), before, "a dry run writes nothing");
        let done = self.run(name, path, Self::request(true)).unwrap();
        assert_eq!(counts(&done), counts(&looked));
        let skipped: usize = done.skipped.values().sum();
        assert_eq!(done.found, done.new + done.same + skipped);
        let notes = self.notes();
        assert_eq!(notes.len(), done.new);
        let again = self.run(name, path, Self::request(true)).unwrap();
        assert_eq!(
            (again.new, again.same),
            (0, done.new),
            "{:?}",
            again.skipped
        );
        assert!(files(source) == source_before, "the source is as it was");
        let change = done.change.unwrap().to_string();
        undo::undo(&self.context, &change).unwrap();
        assert_eq!(self.tree(), before, "one undo, byte for byte");
        (counts(&done), notes)
    }

    /// The notes' files.
    fn tree(&self) -> BTreeMap<String, Vec<u8>> {
        let listing = self.context.notes.list();
        assert_eq!(listing.problems, []);
        let paths = listing.notes.into_iter().map(|(path, _)| path);
        paths
            .map(|path| (path.to_string(), self.context.notes.bytes(path).unwrap()))
            .collect()
    }

    fn notes(&self) -> Vec<Note> {
        let paths = self.context.notes.list().notes.into_iter();
        let mut notes: Vec<Note> = paths
            .map(|(path, _)| self.context.notes.read(path).unwrap().note())
            .collect();
        notes.sort_by(|a, b| (&a.project, &a.title).cmp(&(&b.project, &b.title)));
        for note in &notes {
            assert_eq!(note.source, anamnesis_note::note::Source::Import);
            assert!(note.has_tag("import") && note.tool.is_some());
        }
        notes
    }
}

/// Every file below a folder.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            found.extend(files(&path));
        } else {
            let bytes = fs::read(&path).unwrap_or_default();
            found.insert(path, bytes);
        }
    }
    found
}

fn counts(report: &ImportReport) -> String {
    let skipped = report.skipped.iter();
    let skipped: Vec<String> = skipped
        .map(|(reason, count)| format!("{count} {reason}"))
        .collect();
    format!(
        "found={} new={} same={} | {}",
        report.found,
        report.new,
        report.same,
        skipped.join(", ")
    )
}

fn titles(notes: &[Note]) -> Vec<String> {
    let titles = notes.iter();
    titles
        .map(|note| format!("{}: [{}] {}", note.project, note.kind().shown(), note.title))
        .collect()
}

#[test]
fn claude_mem_is_imported_once_and_undone() {
    let bench = Bench::new();
    let path = bench.database(CLAUDE_MEM);
    let mut request = Request {
        project: None,
        ..Bench::request(false)
    };
    let unknown = bench.run("claude-mem", &path, request.clone()).unwrap();
    assert_eq!(unknown.unknown, [("blog".to_owned(), 2)].into());
    let named = Bench::request(false);
    let named = bench.run("claude-mem", &path, named).unwrap();
    assert_eq!((named.unknown.len(), named.projects["p"]), (0, 1));
    // What a person answers is remembered.
    request.named_projects = [("blog".to_owned(), "github.com/a/blog".to_owned())].into();
    request.apply = true;
    let asked = bench.run("claude-mem", &path, request).unwrap();
    undo::undo(&bench.context, &asked.change.unwrap().to_string()).unwrap();
    let (counts, notes) = bench.play("claude-mem", &path);
    assert_eq!(
        counts,
        "found=6 new=3 same=0 | 1 joined with a summary of its session, 1 said before in the source, \
         1 without text to keep"
    );
    assert_eq!(
        titles(&notes),
        [
            "github.com/a/blog: [warning] Tests waited for port 9090",
            "shop: [session] Fix the tests",
            "shop: [fact] Money is in cents",
        ]
    );
    let money = &notes[2];
    assert_eq!(
        money.body,
        "Floats lost cents\n\nAll amounts are cents.\n\n- amount_cents is i64\n\n**Files**\n- src/money.rs"
    );
    assert_eq!(money.created_at, "2026-01-02T03:04:05+00:00");
    assert_eq!(money.tool.as_deref(), Some("claude-mem"));
    assert_eq!(money.tool_id.as_deref(), Some("observations/1"));
    assert_eq!(money.session.as_deref(), Some("c-1"));
    assert!(notes[1].body.contains("**Learned** It is the same"));
    assert!(notes.iter().all(|note| !note.body.contains("needle")));
}

#[test]
fn a_folder_that_is_not_here_may_be_a_project_of_the_store() {
    let bench = Bench::new();
    let path = bench.database(CLAUDE_MEM);
    let projects = || {
        let looked = bench.run("claude-mem", &path, Bench::request(false));
        looked.unwrap().projects
    };
    assert_eq!(projects()["shop"], 2);
    let id = NoteId::made_of("a note");
    let folder = bench.folder.path().join("store/memory/semantic");
    fs::create_dir_all(&folder).unwrap();
    let note =
        format!("---\nid: {id}\ntype: semantic\ntitle: t\nproject: git.home/acme/shop\n---\nx\n");
    fs::write(folder.join(format!("{id}.md")), note).unwrap();
    assert_eq!(projects()["git.home/acme/shop"], 2);
}

#[test]
fn a_claude_mem_database_is_imported_while_it_is_written() {
    let bench = Bench::new();
    let path = bench.database("PRAGMA journal_mode = WAL");
    let writer = Connection::open(&path).unwrap();
    writer.execute_batch(CLAUDE_MEM).unwrap();
    writer
        .execute_batch("BEGIN IMMEDIATE; DELETE FROM observations")
        .unwrap();
    let report = bench
        .run("claude-mem", &path, Bench::request(true))
        .unwrap();
    assert_eq!((report.found, report.new), (6, 3));
    writer.execute_batch("COMMIT").unwrap();
}

#[test]
fn the_export_of_claude_mem_has_the_same_notes() {
    let bench = Bench::new();
    let observation = |id: i64| {
        json!({"id": id, "memory_session_id": "m-1", "project": "p", "type": "decision",
            "title": "Money is in cents", "narrative": "All of it.", "facts": ["one"], "created_at_epoch": 1})
    };
    let export = json!({"project": "p", "observations": [observation(1), observation(2)],
        "sessions": [{"memory_session_id": "m-1", "content_session_id": "c-1", "project": "p"}],
        "summaries": [{"id": 1, "memory_session_id": "m-1", "project": "p", "request": "Why?"}],
        "prompts": [{"id": 1}]});
    let path = bench.file("export.json", export.to_string());
    let mut request = Bench::request(true);
    request.named_projects = [("p".to_owned(), "p".to_owned())].into();
    let report = bench.run("claude-mem", &path, request).unwrap();
    assert_eq!(
        counts(&report),
        "found=3 new=2 same=0 | 1 said before in the source"
    );
}

#[test]
fn server_memory_has_entities_with_their_relations() {
    let bench = Bench::new();
    let path = bench.file(
        "memory.jsonl",
        "\u{feff}{\"type\":\"entity\",\"name\":\"ana\",\"entityType\":\"person\",\"observations\":[\"Short answers\"]}\n\
         {\"type\":\"entity\",\"name\":\"日本語\",\"entityType\":\"note\",\"observations\":[\"改行\\nを含む\"]}\n\
         \n{broken\n\
         {\"type\":\"relation\",\"from\":\"ana\",\"to\":\"日本語\",\"relationType\":\"wrote\"}\n",
    );
    let (counts, notes) = bench.play("server-memory", &path);
    assert_eq!(counts, "found=3 new=2 same=0 | 1 no valid JSON");
    assert_eq!(notes[0].body, "- Short answers\n- wrote [[日本語]]");
}

#[test]
fn basic_memory_is_read_from_its_files() {
    let bench = Bench::new();
    let money = bench.file(
        "kb/decisions/Money.md",
        "---\ntitle: Money\ntype: note\npermalink: main/money\ntags:\n- money\n---\n\nInteger cents.\n\n\
         ## Observations\n- [fact] i64 everywhere #money\n\n## Relations\n- part_of [[Orders]]\n",
    );
    bench.file("kb/plain.md", "# Ports\nThe stub has 9090.\n");
    bench.file("kb/latin.md", b"\xff\xfe");
    bench.file("kb/.hidden/secret.md", "hidden");
    bench.file("kb/memory.db", "a cache");
    let kb = money.parent().unwrap().parent().unwrap();
    let (counts, notes) = bench.play("basic-memory", kb);
    assert_eq!(counts, "found=3 new=2 same=0 | 1 unreadable, or not UTF-8");
    assert_eq!(titles(&notes), ["p: [fact] Money", "p: [fact] Ports"]);
    assert_eq!(notes[0].tool_id.as_deref(), Some("main/money"));
    assert!(notes[0].has_tag("money") && notes[0].body.contains("- part_of [[Orders]]"));
}

#[test]
fn memories_keeps_kinds_and_relations_and_leaves_deleted_ones() {
    let bench = Bench::new();
    let schema = "
        CREATE TABLE atoms (id INTEGER, content TEXT, type TEXT, region TEXT, created_at TEXT,
            updated_at TEXT, source_project TEXT, source_session TEXT, tags TEXT, severity TEXT,
            instead TEXT, is_deleted INTEGER, task_status TEXT);
        INSERT INTO atoms VALUES
            (1, 'Stub on 9090', 'fact', 'general', '2026-01-01 00:00:00', '2026-01-02 00:00:00', NULL, NULL,
             '[\"login\"]', NULL, NULL, 0, NULL),
            (2, 'Never migrate dirty', 'antipattern', 'general', '', '', NULL, NULL, NULL, 'high',
             'make migrate', 0, NULL),
            (3, 'Let CI do it', 'task', 'general', '', '', NULL, NULL, NULL, NULL, NULL, 0, 'active'),
            (4, 'secret', 'preference', 'personal', '', '', NULL, NULL, NULL, NULL, NULL, 1, NULL);
        CREATE TABLE synapses (id INTEGER, source_id INTEGER, target_id INTEGER, relationship TEXT, strength REAL);
        INSERT INTO synapses VALUES (1, 2, 1, 'warns-against', 0.9), (2, 1, 4, 'related-to', 0.5);
        PRAGMA user_version = 12;";
    let path = bench.database(schema);
    let (counts, notes) = bench.play("memories", &path);
    assert_eq!(counts, "found=4 new=3 same=0 | 1 deleted there");
    assert_eq!(
        titles(&notes),
        [
            "p: [task] Let CI do it",
            "p: [warning] Never migrate dirty",
            "p: [fact] Stub on 9090"
        ]
    );
    assert_eq!(notes[0].status.as_deref(), Some("active"));
    assert_eq!(notes[1].instead.as_deref(), Some("make migrate"));
    assert_eq!(
        notes[1].links,
        [format!("warns-against {} 0.9", notes[2].id)]
    );
    assert!(notes[2].links.is_empty(), "of a deleted one");
    assert_eq!(notes[2].updated_at, "2026-01-02T00:00:00+00:00");
    let newer = Connection::open(&path).unwrap();
    newer.execute_batch("PRAGMA user_version = 13").unwrap();
    drop(newer);
    let error = bench
        .run("memories", &path, Bench::request(true))
        .unwrap_err();
    assert!(error.to_string().contains("schema 13"), "{error}");
}

/// The observations of engram, as its export and chunks have them.
fn engram() -> Value {
    json!({"sessions": [{"id": "s", "project": "api", "directory": "/gone/api"}], "observations": [
        {"id": 1, "session_id": "s", "type": "decision", "title": "Retries", "content": "In the client.",
         "project": "api", "topic_key": "retry", "created_at": "2026-01-01 00:00:00", "updated_at": "2026-01-02 00:00:00"},
        {"id": 2, "session_id": "s", "type": "config", "title": "Staging",
         "content": "SHOP_ENV=stage <private>needle</private>", "project": "api"},
        {"id": 3, "session_id": "s", "type": "discovery", "title": "Old", "content": "Dropped.",
         "project": "api", "deleted_at": "2026-01-03 00:00:00"}], "prompts": [{"id": 1}]})
}

/// A gzip file with one stored block.
fn gzip(text: &str) -> Vec<u8> {
    let length = u16::try_from(text.len()).unwrap();
    let mut bytes = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    bytes.extend(length.to_le_bytes());
    bytes.extend((!length).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend([0; 8]);
    bytes
}

#[test]
fn engram_has_one_note_per_topic_in_every_form() {
    let bench = Bench::new();
    let export = bench.file("export/engram.json", engram().to_string());
    let (counted, notes) = bench.play("engram", &export);
    assert_eq!(counted, "found=3 new=2 same=0 | 1 deleted there");
    assert_eq!(
        titles(&notes),
        ["api: [fact] Retries", "api: [fact] Staging"]
    );
    assert_eq!(notes[0].tool_id.as_deref(), Some("api/retry"));
    assert!(!notes[1].body.contains("needle"));

    let mut later = engram();
    later["observations"] = json!([{"id": 9, "type": "decision", "title": "Retries", "content": "In the server.",
        "project": "api", "topic_key": "retry"}]);
    bench.file(
        "project/.engram/chunks/a1.jsonl.gz",
        gzip(&engram().to_string()),
    );
    bench.file(
        "project/.engram/chunks/b2.jsonl.gz",
        gzip(&later.to_string()),
    );
    let mut chunks = vec![
        json!({"id": "b2", "created_at": "2026-02-01T00:00:00Z"}),
        json!({"id": "../a1", "created_at": "2026-01-01T00:00:00Z"}),
    ];
    // A chunk is read once, however often the manifest names it.
    let again = json!({"id": "a1", "created_at": "2026-01-01T00:00:00Z"});
    chunks.resize(2_000, again);
    let manifest = json!({"version": 1, "chunks": chunks});
    let manifest = bench.file("project/.engram/manifest.json", manifest.to_string());
    let project = manifest.parent().unwrap().parent().unwrap();
    let (counted, notes) = bench.play("engram", project);
    assert_eq!(counted, "found=4 new=3 same=0 | 1 deleted there");
    let of = |text: &str| notes.iter().find(|note| note.body.contains(text)).unwrap();
    assert_eq!(of("server").supersedes, [of("client").id.to_string()]);
    let damaged = bench.file("project/.engram/chunks/b2.jsonl.gz", &gzip("{}")[..12]);
    assert!(
        bench.run("engram", project, Bench::request(true)).is_err(),
        "{}",
        damaged.display()
    );
    assert_eq!(bench.notes().len(), 0, "nothing is half applied");
}

#[test]
fn mem0_is_replayed_and_openmemory_is_read() {
    let bench = Bench::new();
    let path = bench.database(
        "CREATE TABLE history (id TEXT, memory_id TEXT, old_memory TEXT, new_memory TEXT, event TEXT,
            created_at TEXT, updated_at TEXT, is_deleted INTEGER);
         INSERT INTO history VALUES ('a', 'm1', NULL, 'Short answers', 'ADD', '2026-01-01T00:00:00+00:00', NULL, 0),
            ('b', 'm2', NULL, 'Postgres 14', 'ADD', '2026-01-01T00:00:00+00:00', NULL, 0),
            ('c', 'm2', 'Postgres 14', 'Postgres 16', 'UPDATE', '2026-01-01T00:00:00+00:00', '2026-02-01T00:00:00+00:00', 0),
            ('d', 'm3', NULL, 'Down', 'ADD', NULL, NULL, 0), ('e', 'm3', 'Down', NULL, 'DELETE', NULL, NULL, 1);",
    );
    let (counts, notes) = bench.play("mem0", &path);
    assert_eq!(counts, "found=3 new=2 same=0 | 1 deleted there");
    assert_eq!(
        titles(&notes),
        ["p: [fact] Postgres 16", "p: [fact] Short answers"]
    );
    assert_eq!(notes[0].updated_at, "2026-02-01T00:00:00+00:00");

    let bench = Bench::new();
    let path = bench.database(
        "CREATE TABLE memories (id TEXT, app_id TEXT, content TEXT, metadata TEXT, state TEXT, created_at TEXT);
         INSERT INTO memories VALUES ('a', 'x', 'Short answers', '{}', 'active', '2026-01-01 00:00:00.000000'),
            ('b', 'x', 'Down', NULL, 'deleted', NULL), ('c', 'x', 'Postgres 16', '{\"repo\": \"api\"}', 'active', NULL);
         CREATE TABLE apps (id TEXT, name TEXT); INSERT INTO apps VALUES ('x', 'cursor');
         CREATE TABLE categories (id TEXT, name TEXT); INSERT INTO categories VALUES ('k', 'preferences');
         CREATE TABLE memory_categories (memory_id TEXT, category_id TEXT);
         INSERT INTO memory_categories VALUES ('a', 'k');",
    );
    let (counts, notes) = bench.play("openmemory", &path);
    assert_eq!(counts, "found=3 new=2 same=0 | 1 deleted there");
    assert_eq!(
        titles(&notes),
        ["p: [fact] Postgres 16", "p: [preference] Short answers"]
    );
    assert!(notes[1].has_tag("cursor") && notes[1].has_tag("preferences"));
}

#[test]
fn exports_of_chats_give_memories_first() {
    let bench = Bench::new();
    let memories = json!([{"conversations_memory": "Ana maintains the api.", "account_uuid": "acct",
        "project_memories": {"u1": "Retries in the client."}}]);
    let path = bench.file("export/memories.json", memories.to_string());
    let projects = json!([{"uuid": "u1", "name": "p", "prompt_template": "Hexagonal.",
        "docs": [{"uuid": "d1", "filename": "adr.md", "content": "# ADR"}]}]);
    bench.file("export/projects.json", projects.to_string());
    let message = |sender: &str, text: &str| json!({"sender": sender, "content": [{"type": "text", "text": text}]});
    let chat = json!([{"uuid": "c1", "name": "Retries", "created_at": "2026-01-01T00:00:00Z",
        "chat_messages": [message("human", "Where?"), message("assistant", "In the client.")]}]);
    bench.file("export/conversations.json", chat.to_string());
    bench.file(
        "export/memories/acct.json",
        json!({"conversations_memory": "New.", "memory_files": [
        {"path": "a.md", "content": "A file."}]})
        .to_string(),
    );
    let folder = path.parent().unwrap();
    let mut request = Bench::request(true);
    request.named_projects = [("p".to_owned(), "p".to_owned())].into();
    let report = bench.run("claude-ai", folder, request.clone()).unwrap();
    assert_eq!(counts(&report), "found=7 new=7 same=0 | ");
    let chat = bench
        .notes()
        .into_iter()
        .find(|note| note.kind() == Kind::Experience)
        .unwrap();
    assert_eq!(chat.body, "**Ask** Where?\n\n**Answer** In the client.");
    assert_eq!(chat.state, State::Muted);
    request.with_conversations = false;
    let report = bench.run("claude-ai", folder, request).unwrap();
    assert_eq!(
        counts(&report),
        "found=7 new=0 same=6 | 1 a conversation (--conversations)"
    );
}

#[test]
fn a_chat_of_chatgpt_is_the_branch_that_it_shows() {
    let bench = Bench::new();
    let node = |role: &str, text: &str, at: f64, parent: &str, hidden: bool| {
        json!({"parent": parent, "message": {"author": {"role": role}, "create_time": at,
            "content": {"parts": [text]}, "metadata": {"is_visually_hidden_from_conversation": hidden}}})
    };
    let chat = json!([{"title": "Retries", "conversation_id": "x1", "create_time": 1_767_323_045.5, "mapping": {
        "root": {"message": null, "parent": "a"}, "a": node("user", "Where?", 1.0, "root", false),
        "old": node("assistant", "No idea.", 2.0, "a", false),
        "b": node("assistant", "In the client.", 3.0, "a", false),
        "h": node("system", "hidden", 4.0, "b", true)}}]);
    let path = bench.file("export/conversations.json", chat.to_string());
    let (counts, notes) = bench.play("chatgpt", path.parent().unwrap());
    assert_eq!(counts, "found=1 new=1 same=0 | ");
    assert_eq!(notes[0].body, "**Ask** Where?\n\n**Answer** In the client.");
    assert_eq!(notes[0].created_at, "2026-01-02T03:04:05+00:00");
}

#[test]
fn rules_are_an_archive_that_is_not_injected() {
    let bench = Bench::new();
    let path = bench.file(
        "shop/.cursor/rules/retries.mdc",
        "---\ndescription: Where retries live\nglobs: src/client/**/*.rs,src/api/*.rs\nalwaysApply: false\n---\n\nIn the client.\n",
    );
    bench.file("shop/AGENTS.md", "# Agents\n- Test: nextest\n");
    bench.file("shop/memory-bank/techContext.md", "# Tech\nRust\n");
    bench.file("shop/.clinerules/agents.md", "# Agents\n- Test: nextest\n");
    bench.file("shop/src/README.md", "no rule");
    let shop = path.ancestors().nth(3).unwrap();
    let (counts, notes) = bench.play("rules", shop);
    assert_eq!(counts, "found=4 new=3 same=0 | 1 said before in the source");
    assert_eq!(
        titles(&notes),
        [
            "shop: [how-to] Agents",
            "shop: [fact] Tech",
            "shop: [how-to] Where retries live"
        ]
    );
    assert!(
        notes
            .iter()
            .all(|note| note.state == State::Muted && !note.has_tag(UNREVIEWED_TAG))
    );
    assert_eq!(
        notes[2].when,
        ["path: src/client/**/*.rs", "path: src/api/*.rs"]
    );
    assert!(
        notes
            .iter()
            .all(|note| note.note_type != NoteType::Episodic)
    );
}

#[cfg(unix)]
#[test]
fn links_and_hard_links_of_a_source_are_not_followed() {
    let bench = Bench::new();
    let secret = bench.file("elsewhere/secret.md", "secret");
    let path = bench.file("shop/GEMINI.md", "# Kept\nkept\n");
    let shop = path.parent().unwrap();
    std::os::unix::fs::symlink(&secret, shop.join("AGENTS.md")).unwrap();
    std::os::unix::fs::symlink(shop.join("nowhere"), shop.join("CLAUDE.md")).unwrap();
    fs::hard_link(&secret, shop.join(".cursorrules")).unwrap();
    let (counts, notes) = bench.play("rules", shop);
    assert_eq!(
        counts,
        "found=4 new=1 same=0 | 3 a link, a hard link, or unreadable"
    );
    assert_eq!(titles(&notes), ["shop: [how-to] Kept"]);
    let home = bench.context.environment.user_home.clone().unwrap();
    assert!(
        bench
            .run("basic-memory", &home, Bench::request(false))
            .is_err()
    );
}

#[test]
fn an_import_waits_for_approval_where_review_says_so() {
    let mut bench = Bench::new();
    let config = r#"{"review": "proposals"}"#;
    fs::write(bench.context.home.config(), config).unwrap();
    bench.context.config = Config::load(&bench.context.home);
    let path = bench.file(
        "memory.jsonl",
        "{\"type\":\"entity\",\"name\":\"ana\",\"observations\":[\"Short\"]}\n",
    );
    let (_, notes) = bench.play("server-memory", &path);
    assert_eq!(notes[0].state, State::Muted);
    assert!(notes[0].has_tag(UNREVIEWED_TAG));
    bench
        .run("server-memory", &path, Bench::request(true))
        .unwrap();
    let context = &bench.context;
    let journal = context.journal().unwrap();
    let index = context.index().unwrap();
    let groups = crate::review::waiting(context, &index, Some(&journal), &[]).unwrap();
    drop(index);
    let waiting: Vec<_> = groups.iter().flat_map(|group| &group.notes).collect();
    assert_eq!(waiting.len(), 1);
    crate::review::decide(
        context,
        &journal,
        &waiting,
        crate::review::Decision::Approve,
    )
    .unwrap();
    let notes = bench.notes();
    assert_eq!(notes[0].state, State::Active);
    assert!(!notes[0].has_tag(UNREVIEWED_TAG));
}

#[test]
fn an_agent_may_only_look() {
    let mut bench = Bench::new();
    let path = bench.file(
        "memory.jsonl",
        "{\"type\":\"entity\",\"name\":\"ana\",\"observations\":[\"Short\"]}\n",
    );
    bench.context.environment.is_agent = true;
    assert!(
        bench
            .run("server-memory", &path, Bench::request(true))
            .is_err()
    );
    let looked = bench
        .run("server-memory", &path, Bench::request(false))
        .unwrap();
    assert_eq!(looked.new, 1);
}

#[test]
fn hostile_sources_are_an_error_and_write_nothing() {
    let bench = Bench::new();
    let newer = CLAUDE_MEM.replace("(2, 52)", "(2, 53)");
    let path = bench.database(&newer);
    let error = bench
        .run("claude-mem", &path, Bench::request(true))
        .unwrap_err();
    assert!(error.to_string().contains("schema 53"), "{error}");
    let whole = fs::read(
        bench.database(
            &CLAUDE_MEM
                .replace("(2, 52)", "(2, 51)")
                .replace("CREATE TABLE ", "CREATE TABLE IF NOT EXISTS "),
        ),
    )
    .unwrap();
    let truncated = bench.file("truncated.db", &whole[..whole.len() / 2]);
    let cut = bench.file("cut.json", &engram().to_string()[..300]);
    let wide: Vec<u8> = engram()
        .to_string()
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let wide = bench.file("wide.json", wide);
    let deep = bench.file("deep.json", "[".repeat(100_000));
    let missing = bench.folder.path().join("missing");
    for (name, path) in [
        ("claude-mem", &truncated),
        ("memories", &truncated),
        ("engram", &cut),
        ("engram", &wide),
        ("engram", &deep),
        ("engram", &missing),
    ] {
        assert!(
            bench.run(name, path, Bench::request(true)).is_err(),
            "{name} {}",
            path.display()
        );
    }
    assert_eq!(bench.notes().len(), 0);
    let old = bench.file("old.db", "");
    let older = "CREATE TABLE schema_versions (id INTEGER, version INTEGER);
        INSERT INTO schema_versions VALUES (1, 7);
        CREATE TABLE observations (id INTEGER, project TEXT, text TEXT, type TEXT);
        INSERT INTO observations VALUES (1, NULL, 'An old one', 'discovery'), (2, NULL, CAST(x'ff' AS TEXT), 'x');";
    Connection::open(&old)
        .unwrap()
        .execute_batch(older)
        .unwrap();
    let report = bench.run("claude-mem", &old, Bench::request(true)).unwrap();
    assert_eq!(counts(&report), "found=2 new=1 same=0 | 1 not UTF-8");
}

#[test]
fn a_forgotten_note_is_not_imported_again() {
    let bench = Bench::new();
    let path = bench.file(
        "memory.jsonl",
        "{\"type\":\"entity\",\"name\":\"ana\",\"observations\":[\"Short\"]}\n",
    );
    bench
        .run("server-memory", &path, Bench::request(true))
        .unwrap();
    let paths = bench
        .context
        .notes
        .list()
        .notes
        .into_iter()
        .map(|(path, _)| path);
    crate::forget::forget_notes(&bench.context, &paths.collect::<Vec<_>>()).unwrap();
    let report = bench
        .run("server-memory", &path, Bench::request(true))
        .unwrap();
    assert_eq!(counts(&report), "found=1 new=0 same=0 | 1 forgotten by you");
}

#[test]
fn an_edited_note_is_not_imported_again() {
    let bench = Bench::new();
    let path = bench.file(
        "memory.jsonl",
        "{\"type\":\"entity\",\"name\":\"ana\",\"observations\":[\"Short\"]}\n",
    );
    bench
        .run("server-memory", &path, Bench::request(true))
        .unwrap();
    let context = &bench.context;
    let lock = context.notes.lock().unwrap();
    let (note, _) = context.notes.list().notes[0];
    let edit = |note: &mut Note| note.body = "Mine".to_owned();
    context.notes.update(&lock, note, edit).unwrap();
    drop(lock);
    let report = bench
        .run("server-memory", &path, Bench::request(true))
        .unwrap();
    assert_eq!(counts(&report), "found=1 new=0 same=1 | ");
    // The entity has changed since: the new text is a version of its note.
    let more = "{\"type\":\"entity\",\"name\":\"ana\",\"observations\":[\"Short\",\"No emoji\"]}\n";
    let path = bench.file("memory.jsonl", more);
    let report = bench
        .run("server-memory", &path, Bench::request(true))
        .unwrap();
    assert_eq!(counts(&report), "found=1 new=1 same=0 | ");
    let notes = bench.notes();
    assert_eq!(
        notes
            .iter()
            .filter(|one| one.supersedes == [note.id.to_string()])
            .count(),
        1
    );
}

#[test]
fn each_version_of_an_entity_replaces_the_one_before() {
    let mut bench = Bench::new();
    let mut latest = None;
    for fact in ["one", "two", "three", "four", "five"] {
        bench.context.environment.now += chrono::TimeDelta::days(1);
        let line = json!({ "type": "entity", "name": "Stub", "observations": [fact] });
        let path = bench.file("memory.jsonl", line.to_string());
        let report = bench.run("server-memory", &path, Bench::request(true));
        assert_eq!(counts(&report.unwrap()), "found=1 new=1 same=0 | ");
        let notes = bench.notes();
        let new = notes.iter().find(|note| note.body.contains(fact)).unwrap();
        assert_eq!(new.supersedes, Vec::from_iter(latest), "{fact}");
        latest = Some(new.id.to_string());
    }
}

#[test]
fn codex_memories_are_imported_from_its_folder_to_be_searched_only() {
    let bench = Bench::new();
    let folder = bench.folder.path().join("sources/codex");
    fs::create_dir_all(&folder).unwrap();
    let database = Connection::open(folder.join("memories_1.sqlite")).unwrap();
    database
        .execute_batch(
            "CREATE TABLE stage1_outputs (thread_id TEXT PRIMARY KEY, source_updated_at INTEGER NOT NULL,
                raw_memory TEXT NOT NULL, rollout_summary TEXT NOT NULL);
             INSERT INTO stage1_outputs VALUES ('t1', 1764000000, 'Halves are rounded to even.', 'Rounding');",
        )
        .unwrap();
    let (counts, notes) = bench.play("codex", &folder);
    assert_eq!(counts, "found=1 new=1 same=0 | ");
    assert_eq!(titles(&notes), ["p: [fact] Rounding"]);
    assert_eq!(notes[0].created_at, "2025-11-24T16:00:00+00:00");
    assert!(notes[0].body.contains("Halves are rounded to even."));
    assert_eq!(notes[0].state, State::Muted, "the host reads them already");
}

#[test]
fn an_export_comes_back_byte_for_byte() {
    let bench = Bench::new();
    bench
        .run(
            "claude-mem",
            &bench.database(CLAUDE_MEM),
            Bench::request(true),
        )
        .unwrap();
    let note = bench.notes().remove(0);
    let odd = NotePath::from_note(&note);
    let context = &bench.context;
    let text = String::from_utf8(context.notes.bytes(odd).unwrap()).unwrap();
    let text = text.replace("tags:", "# mine\r\nown: {a: 1}\npinned: true\ntags:");
    let lock = context.notes.lock().unwrap();
    context
        .notes
        .overwrite(&lock, odd, text.as_bytes())
        .unwrap();
    drop(lock);
    for (form, name) in [
        (ExportForm::Json, "notes.json"),
        (ExportForm::Jsonl, "notes.jsonl"),
    ] {
        let mut out = Vec::new();
        let report = export::export(context, None, &form, &mut out).unwrap();
        assert_eq!(report.exported, 3);
        let path = bench.file(&format!("export/{name}"), out);
        let other = Bench::new();
        let report = other.run("anamnesis", &path, Bench::request(true)).unwrap();
        assert_eq!(counts(&report), "found=3 new=3 same=0 | ");
        assert!(other.tree() == bench.tree());
        let report = other.run("anamnesis", &path, Bench::request(true)).unwrap();
        assert_eq!(counts(&report), "found=3 new=0 same=3 | ");
    }
    let folder = bench.folder.path().join("files");
    let form = ExportForm::Markdown(folder.clone());
    export::export(context, Some("shop"), &form, &mut Vec::new()).unwrap();
    let written = files(&folder);
    assert_eq!(written.len(), 2);
    assert!(
        written
            .keys()
            .all(|path| path.starts_with(folder.join("shop")))
    );
    let again = export::export(context, None, &form, &mut Vec::new());
    assert!(again.is_err(), "a folder with files is refused");
}

#[test]
fn a_source_in_a_projects_folder_is_of_that_project_and_waits() {
    let bench = Bench::new();
    let path = bench.database(CLAUDE_MEM);
    let git = |words: &[&str]| {
        let mut command = std::process::Command::new("git");
        let done = command
            .args(words)
            .current_dir(path.parent().unwrap())
            .output();
        assert!(done.unwrap().status.success());
    };
    git(&["init", "--quiet"]);
    git(&["remote", "add", "origin", "https://h/acme/site"]);
    let request = Request {
        project: None,
        ..Bench::request(true)
    };
    let report = bench.run("claude-mem", &path, request).unwrap();
    // The source knows the folder of the project `shop`, which is another one.
    assert_eq!(report.projects, [("h/acme/site".to_owned(), 1)].into());
    assert!(report.skipped[known::ELSEWHERE] > 0 && report.is_held);
    let notes = bench.notes();
    let is_waiting = |note: &Note| note.state == State::Muted && note.has_tag(UNREVIEWED_TAG);
    assert!(notes.iter().all(is_waiting), "{notes:?}");
}

#[test]
fn a_note_of_an_unknown_machine_or_for_all_projects_waits() {
    let bench = Bench::new();
    let path = bench.database(CLAUDE_MEM);
    bench
        .run("claude-mem", &path, Bench::request(true))
        .unwrap();
    let mut note = bench.notes().remove(0);
    let mut lines = Vec::new();
    let own = bench.context.machine_id();
    for (machine, project) in [("far-away", "q"), (own.as_str(), "global")] {
        note.id = NoteId::made_of(machine);
        note.machine_id = machine.to_owned();
        note.project = project.to_owned();
        note.source = NoteSource::Human;
        let path = NotePath::from_note(&note).to_string();
        lines.push(json!({ "path": path, "file": note.render() }).to_string());
    }
    let path = bench.file("export/notes.jsonl", lines.join("\n"));
    let report = bench.run("anamnesis", &path, Bench::request(true)).unwrap();
    assert_eq!(report.new, 2, "{report:?}");
    let notes = bench.notes();
    let notes: Vec<_> = notes
        .iter()
        .filter(|note| note.has_tag(UNREVIEWED_TAG))
        .collect();
    assert_eq!(notes.len(), 2);
    let waits = |note: &&Note| note.state == State::Muted && note.source == NoteSource::Import;
    assert!(notes.iter().all(waits), "{notes:?}");
}

#[test]
fn an_export_with_a_credential_or_a_foreign_path_is_skipped() {
    let bench = Bench::new();
    let file =
        |id: &str, body: &str| format!("---\nid: {id}\ntype: semantic\ntitle: t\n---\n{body}\n");
    let id = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    let note = |path: &str, file: String| json!({"path": path, "file": file});
    let path = format!("memory/semantic/{id}.md");
    let document = json!({"version": 1, "notes": [
        note(&path, file(id, "a <private>needle</private>")),
        note(&path, file(id, "key AKIAIOSFODNN7EXAMPLE")),
        note("memory/../../x.md", file(id, "x")),
        note(&format!("memory/procedural/{id}.md"), file(id, "x")),
        note(&path, "no note".to_owned())]});
    let path = bench.file("notes.json", document.to_string());
    let report = bench.run("anamnesis", &path, Bench::request(true)).unwrap();
    assert_eq!((report.found, report.new), (5, 0));
    let newer = bench.file("newer.json", r#"{"version": 2, "notes": []}"#);
    assert!(
        bench
            .run("anamnesis", &newer, Bench::request(true))
            .is_err()
    );
}
