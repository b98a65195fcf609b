use std::{cell::Cell, fs, time::Duration};

use anamnesis_note::note::Scope;

use super::*;
use crate::{fs::home::Home, notes::NotePath};

const TIMEOUT: Duration = Duration::from_secs(5);
const SLUG: &str = "-srv-shop";

/// Returns a folder as an absolute path of this system.
fn absolute(folder: &str) -> String {
    let drive = if cfg!(windows) { "C:" } else { "" };
    format!("{drive}{folder}")
}

/// A store of one machine, and the client's folder on it.
struct Fixture {
    root: tempfile::TempDir,
    notes: Notes,
    journal: Journal,
    machine_id: &'static str,
    exclude: Vec<String>,
    paused: Paused,
    memory_folder: Option<PathBuf>,
    /// The number of written files.
    written: Cell<u64>,
}

impl Fixture {
    fn new() -> Self {
        Self::of_machine("m")
    }

    fn of_machine(machine_id: &'static str) -> Self {
        let root = tempfile::tempdir().unwrap();
        let home = Home::new(root.path().join("store"));
        home.create().unwrap();
        let journal = Journal::open(&home, TIMEOUT).unwrap();
        let fixture = Self {
            notes: Notes::new(home, TIMEOUT),
            journal,
            machine_id,
            exclude: Vec::new(),
            paused: Paused::default(),
            memory_folder: None,
            written: Cell::new(0),
            root,
        };
        fixture.began(SLUG, "/srv/shop");
        fixture
    }

    fn claude(&self) -> PathBuf {
        self.root.path().join("claude")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.claude().join("projects").join(name)
    }

    /// A session of a project began in this folder.
    fn began(&self, slug: &str, folder: &str) {
        self.began_in(slug, Path::new(&absolute(folder)));
    }

    fn began_in(&self, slug: &str, folder: &Path) {
        fs::create_dir_all(self.path(slug)).unwrap();
        let record = serde_json::json!({ "cwd": folder });
        fs::write(self.path(slug).join("a.jsonl"), format!("{record}\n")).unwrap();
    }

    /// Writes a file `<slug>/<stem>` of Claude's with a unique time.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let (slug, stem) = name.split_once('/').unwrap();
        let path = self.path(slug).join("memory").join(format!("{stem}.md"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        self.written.set(self.written.get() + 1);
        let time = SystemTime::now() - Duration::from_secs(100_000 - self.written.get());
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(time).unwrap();
        path
    }

    fn remember(&self, stem: &str, body: &str) -> PathBuf {
        self.write(&format!("{SLUG}/{stem}"), &memory(stem, body))
    }

    fn import(&self) -> Imported {
        self.import_from(&self.claude())
    }

    fn import_from(&self, claude_folder: &Path) -> Imported {
        let request = Request {
            claude_folder,
            memory_folder: self.memory_folder.as_deref(),
            machine_id: self.machine_id,
            user_home: None,
            exclusions: &Exclusions::new(&self.exclude, None),
            paused: &self.paused,
            now: now(),
        };
        import(&self.notes, &self.journal, &request).unwrap()
    }

    /// The counts of an import: imported, updated, skipped, marked.
    fn counts(&self) -> [usize; 4] {
        let done = self.import();
        [done.imported, done.updated, done.skipped, done.orphaned]
    }

    fn find(&self, id: NoteId) -> NotePath {
        self.notes.find(id).unwrap()
    }

    fn note(&self, stem: &str) -> Note {
        let path = self.find(note_id(SLUG, stem));
        self.notes.read(path).unwrap().note()
    }

    /// Title and text of the active notes.
    fn texts(&self) -> Vec<(String, String)> {
        let notes = self.notes.list().notes;
        let notes = notes
            .iter()
            .map(|(path, _)| self.notes.read(*path).unwrap().note());
        let mut texts: Vec<_> = notes
            .filter(|note| note.state != State::Forgotten)
            .map(|note| (note.title, note.body))
            .collect();
        texts.sort();
        texts
    }

    fn change(&self, stem: &str, change: impl FnOnce(&mut Note)) {
        let path = self.find(note_id(SLUG, stem));
        let lock = self.notes.lock().unwrap();
        self.notes.update(&lock, path, change).unwrap();
    }

    /// Forgets a note as the command does.
    fn forget(&self, stem: &str) {
        let path = self.find(note_id(SLUG, stem));
        let body = self.notes.read(path).unwrap().note().body;
        let lock = self.notes.lock().unwrap();
        self.notes.forget(&lock, path, now()).unwrap();
        self.journal.forgot(path.id, &body, now()).unwrap();
    }
}

fn now() -> DateTime<Utc> {
    Utc::now()
}

fn memory(title: &str, body: &str) -> String {
    format!("---\nname: x\ndescription: {title}\nmetadata:\n  type: feedback\n---\n\n{body}\n")
}

fn text(title: &str, body: &str) -> (String, String) {
    (title.to_owned(), body.to_owned())
}

#[test]
fn a_file_becomes_a_note_and_a_second_import_changes_nothing() {
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use `pnpm`.");
    fixture.remember("MEMORY", "- [pnpm](pnpm.md)");
    fixture.remember(".pnpm", "an editor's");
    fs::write(fixture.path(SLUG).join("memory/other.txt"), "no").unwrap();
    assert_eq!(fixture.counts(), [1, 0, 0, 0]);
    let note = fixture.note("pnpm");
    assert_eq!(
        (note.title.as_str(), note.body.as_str()),
        ("pnpm", "Use `pnpm`.")
    );
    assert_eq!(
        (note.project.as_str(), note.machine_id.as_str()),
        ("shop", "m")
    );
    assert_eq!(
        (note.source, note.tags.join(",")),
        (Author::Import, "import,kind:feedback".to_owned())
    );
    assert_eq!(
        (note.scope, note.note_type.as_str()),
        (Scope::Portable, "procedural")
    );
    assert!((note.confidence - 0.9).abs() < f64::EPSILON);
    assert_eq!(note.created_at, note.updated_at);
    let before = fixture.notes.list().notes;
    for _ in 0..2 {
        assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    }
    assert_eq!(fixture.notes.list().notes, before);
    // Written again with the same text: read, but unchanged.
    fixture.remember("pnpm", "Use `pnpm`.");
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    assert_eq!(fixture.notes.list().notes, before);
    assert_eq!(fixture.journal.native_copies("shop").unwrap().len(), 1);
    assert!(fixture.journal.native_copies("other").unwrap().is_empty());
}

#[test]
fn the_note_follows_its_file() {
    let fixture = Fixture::new();
    let path = fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    let made = fixture.note("pnpm").created_at;
    fixture.remember("pnpm", "Use pnpm, and never npm.");
    assert_eq!(fixture.counts(), [0, 1, 0, 0]);
    assert_eq!(fixture.note("pnpm").body, "Use pnpm, and never npm.");
    assert_eq!(fixture.note("pnpm").created_at, made);
    // Another type is another folder.
    fs::write(
        &path,
        memory("pnpm", "Use pnpm.").replace("feedback", "user"),
    )
    .unwrap();
    assert_eq!(fixture.counts(), [0, 1, 0, 0]);
    assert_eq!(fixture.note("pnpm").tags, ["import", "kind:user"]);
    assert_eq!(
        fixture.find(note_id(SLUG, "pnpm")).folder.as_str(),
        "semantic"
    );
    // A file that is being written.
    fs::write(&path, "---\nname: x\ndescr").unwrap();
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    assert_eq!(fixture.note("pnpm").body, "Use pnpm.");
}

#[test]
fn a_note_whose_file_was_deleted_stays_and_is_marked() {
    let fixture = Fixture::new();
    let path = fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    let before = fixture.note("pnpm");
    fs::remove_file(&path).unwrap();
    assert_eq!(fixture.counts(), [0, 0, 0, 1]);
    let note = fixture.note("pnpm");
    assert!(note.has_tag(GONE_TAG) && note.state == State::Active);
    assert_eq!(
        (note.body, note.updated_at),
        (before.body, before.updated_at)
    );
    // Sessions no longer have it from the memory itself.
    assert!(fixture.journal.native_copies("shop").unwrap().is_empty());
    assert_eq!(fixture.counts(), [0, 0, 0, 0]);
}

#[test]
fn a_whole_memory_that_was_deleted_loses_no_note() {
    let fixture = Fixture::new();
    for number in 0..23 {
        fixture.remember(&format!("n{number}"), &format!("Fact {number}."));
    }
    fixture.import();
    let before = fixture.texts();
    fs::remove_dir_all(fixture.path(SLUG).join("memory")).unwrap();
    assert_eq!(fixture.counts(), [0, 0, 0, 23]);
    assert_eq!(fixture.texts(), before);
}

#[test]
fn a_file_that_is_there_again_has_its_note_again() {
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    for (round, body) in ["Use pnpm.", "Use pnpm 9."].into_iter().enumerate() {
        let path = fixture.remember("pnpm", body);
        fixture.import();
        fs::remove_file(path).unwrap();
        assert_eq!(fixture.counts(), [0, 0, 0, 1], "{round}");
        fixture.remember("pnpm", body);
        assert_eq!(fixture.counts(), [0, 1, 0, 0], "{round}");
        assert!(!fixture.note("pnpm").has_tag(GONE_TAG));
        assert_eq!(fixture.texts(), [text("pnpm", body)]);
        assert_eq!(fixture.counts(), [0, 0, 1, 0], "{round}");
    }
    // What a person decided meanwhile holds.
    let path = fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    fs::remove_file(&path).unwrap();
    fixture.import();
    fixture.forget("pnpm");
    fixture.remember("pnpm", "Use pnpm.");
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    assert!(fixture.texts().is_empty());
}

#[test]
fn a_renamed_file_has_a_new_note_and_the_other_one_is_marked() {
    let fixture = Fixture::new();
    let path = fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    fs::rename(&path, path.with_file_name("package_manager.md")).unwrap();
    assert_eq!(fixture.counts(), [1, 0, 0, 1]);
    assert!(fixture.note("pnpm").has_tag(GONE_TAG));
    assert!(!fixture.note("package_manager").has_tag(GONE_TAG));
}

#[test]
fn files_in_subfolders_are_copied() {
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.remember("ops/deploy/steps", "Deploy with make.");
    assert_eq!(fixture.counts(), [2, 0, 0, 0]);
    let note = fixture.note("ops/deploy/steps");
    assert_eq!(
        (note.state, note.body.as_str()),
        (State::Active, "Deploy with make.")
    );
    assert_eq!(fixture.counts(), [0, 0, 2, 0]);
    fs::remove_dir_all(fixture.path(SLUG).join("memory/ops")).unwrap();
    assert_eq!(fixture.counts(), [0, 0, 1, 1]);
}

#[test]
fn what_a_team_or_agents_wrote_waits_for_approval() {
    let fixture = Fixture::new();
    let project = fixture.root.path().join("shop");
    fixture.began_in(SLUG, &project);
    fixture.remember("team/release", "Tag on Mondays.");
    let write = |path: PathBuf, text: &str| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let reviewer = project.join(".claude/agent-memory/reviewer/MEMORY.md");
    write(reviewer.clone(), "# Reviewer\nLook at the locks first.\n");
    write(
        project.join(".claude/agent-memory-local/tester/notes.md"),
        "Run one crate at a time.\n",
    );
    write(
        fixture.claude().join("agent-memory/planner/MEMORY.md"),
        "Plans have three steps.\n",
    );
    assert_eq!(fixture.counts(), [4, 0, 0, 0]);
    let stems = [
        "team/release",
        "agent-memory/reviewer/MEMORY",
        "agent-memory-local/tester/notes",
    ];
    for stem in stems {
        let note = fixture.note(stem);
        assert_eq!(
            (note.state, note.project.as_str()),
            (State::Muted, "shop"),
            "{stem}"
        );
        assert!(note.has_tag(UNREVIEWED_TAG), "{stem}");
    }
    let planner = fixture.find(note_id("agent-memory", "agent-memory/planner/MEMORY"));
    let planner = fixture.notes.read(planner).unwrap().note();
    assert_eq!(
        (planner.state, planner.project.as_str()),
        (State::Muted, GLOBAL)
    );
    // It follows its file until a person approves it.
    write(reviewer, "# Reviewer\nLook at the tests first.\n");
    assert_eq!(fixture.counts(), [0, 1, 3, 0]);
    assert_eq!(fixture.note(stems[1]).state, State::Muted);
}

#[test]
fn text_in_the_list_of_the_memory_is_a_note_of_its_own() {
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    let list = |text: &str| fixture.write(&format!("{SLUG}/MEMORY"), text);
    list("# Memory\n- [pnpm](pnpm.md)\n\n## Ports\nThe stub is on 9090.\n");
    assert_eq!(fixture.counts(), [2, 0, 0, 0]);
    let note = text("Memory", "## Ports\nThe stub is on 9090.");
    assert_eq!(fixture.texts(), [note.clone(), text("pnpm", "Use pnpm.")]);
    list("# Memory\n- [pnpm](pnpm.md)\n- [ports](ports.md)\n");
    assert_eq!(fixture.counts(), [0, 0, 1, 1]);
    assert_eq!(fixture.texts(), [note, text("pnpm", "Use pnpm.")]);
    assert!(fixture.note("MEMORY").has_tag(GONE_TAG));
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
}

#[test]
fn the_folder_that_the_person_named_is_copied_too() {
    let mut fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    let named = fixture.root.path().join("Agents");
    fixture.memory_folder = Some(named.clone());
    assert_eq!(fixture.counts(), [1, 0, 0, 0]);
    fs::create_dir(&named).unwrap();
    fs::write(named.join("ports.md"), "The stub is on 9090.").unwrap();
    assert_eq!(fixture.counts(), [1, 0, 1, 0]);
    let texts = [
        text("pnpm", "Use pnpm."),
        text("ports", "The stub is on 9090."),
    ];
    assert_eq!(fixture.texts(), texts);
    assert_eq!(fixture.journal.native_copies("agents").unwrap().len(), 1);
    // The files of a folder that is not named any more are not gone.
    fixture.memory_folder = None;
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    fixture.memory_folder = Some(named.clone());
    fs::remove_file(named.join("ports.md")).unwrap();
    assert_eq!(fixture.counts(), [0, 0, 1, 1]);
    assert_eq!(fixture.texts(), texts);
}

#[test]
fn a_persons_change_is_theirs() {
    for change in [
        (|note: &mut Note| note.body = "Mine.".to_owned()) as fn(&mut Note),
        |note| note.title = "Mine".to_owned(),
        |note| note.pinned = true,
        |note| note.project = "other".to_owned(),
        |note| note.tags.push("mine".to_owned()),
    ] {
        let fixture = Fixture::new();
        let path = fixture.remember("pnpm", "Use pnpm.");
        fixture.import();
        fixture.change("pnpm", change);
        let theirs = fixture.note("pnpm");
        // Without another import, the note still differs from the imported one.
        let stamp = fixture.notes.stamp(fixture.find(theirs.id)).unwrap();
        let copies = fixture.journal.native_copies("shop").unwrap();
        assert!(!copies.contains(&(theirs.id, stamp)));
        fixture.remember("pnpm", "Use yarn.");
        assert_eq!(fixture.counts(), [0, 0, 1, 0]);
        assert!(fixture.journal.native_copies("shop").unwrap().is_empty());
        fixture.remember("pnpm", "Use bun.");
        assert_eq!(fixture.counts(), [0, 0, 1, 0]);
        fs::remove_file(&path).unwrap();
        assert_eq!(fixture.counts(), [0, 0, 0, 0]);
        assert_eq!(fixture.note("pnpm"), theirs);
        fixture.remember("pnpm", "Use pnpm again.");
        assert_eq!(fixture.counts(), [0, 0, 1, 0]);
        assert_eq!(fixture.note("pnpm"), theirs);
    }
    // An unchanged note is still updated.
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    fixture.change("pnpm", |note| note.state = State::Muted);
    fixture.remember("pnpm", "Use yarn.");
    assert_eq!(fixture.counts(), [0, 1, 0, 0]);
    assert_eq!(fixture.note("pnpm").state, State::Muted);
}

#[test]
fn what_a_person_forgot_stays_away() {
    let fixture = Fixture::new();
    let path = fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    fixture.forget("pnpm");
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    fixture.remember("pnpm", "Use pnpm, please.");
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    // The same text under another name.
    let renamed = fixture.remember("package_manager", "use  PNPM.");
    assert_eq!(fixture.counts(), [0, 0, 2, 0]);
    fs::remove_file(path).unwrap();
    fs::remove_file(renamed).unwrap();
    assert_eq!(fixture.counts(), [0, 0, 0, 0]);
    fixture.remember("pnpm", "Use pnpm once more.");
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    assert!(fixture.texts().is_empty());
    // A file that gets a forgotten text does not change another note.
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.remember("yarn", "Use yarn.");
    fixture.import();
    fixture.forget("yarn");
    fixture.remember("pnpm", "Use yarn.");
    assert_eq!(fixture.counts(), [0, 0, 2, 0]);
    assert_eq!(fixture.texts(), [text("pnpm", "Use pnpm.")]);
}

#[test]
fn a_note_that_was_deleted_by_hand_comes_back_with_other_words_only() {
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    let path = fixture.find(note_id(SLUG, "pnpm"));
    fs::remove_file(fixture.root.path().join("store").join(path.to_string())).unwrap();
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    assert!(fixture.texts().is_empty());
    fixture.remember("pnpm", "Use pnpm 9.");
    assert_eq!(fixture.counts(), [1, 0, 0, 0]);
}

#[test]
fn two_machines_with_one_name_of_a_folder() {
    let (one, two) = (Fixture::of_machine("one"), Fixture::of_machine("two"));
    one.remember("pnpm", "Use pnpm.");
    one.remember("ports", "The stub is on 9090.");
    one.import();
    // Machine two gets the notes of machine one.
    for (path, _) in one.notes.list().notes {
        let lock = two.notes.lock().unwrap();
        two.notes
            .create(&lock, &one.notes.read(path).unwrap().note())
            .unwrap();
    }
    let same = two.remember("pnpm", "Use  pnpm.");
    let other = two.remember("ports", "The stub is on 9191.");
    assert_eq!(two.counts(), [1, 0, 1, 0]);
    assert_eq!(two.counts(), [0, 0, 2, 0]);
    let own = own_note_id("two", SLUG, "ports");
    assert_eq!(
        two.notes.read(two.find(own)).unwrap().note().body,
        "The stub is on 9191."
    );
    assert_eq!(two.note("ports").body, "The stub is on 9090.");
    // Each changes and forgets only its own notes.
    two.remember("ports", "The stub is on 9292.");
    assert_eq!(two.counts(), [0, 1, 1, 0]);
    fs::remove_file(&same).unwrap();
    assert_eq!(two.counts(), [0, 0, 1, 0]);
    assert_eq!(two.note("pnpm").state, State::Active);
    fs::remove_file(&other).unwrap();
    assert_eq!(two.counts(), [0, 0, 0, 1]);
    assert_eq!(two.note("ports").state, State::Active);
    // A note forgotten on the other machine is not restored.
    let (one, two) = (Fixture::of_machine("one"), Fixture::of_machine("two"));
    one.remember("pnpm", "Use pnpm.");
    one.import();
    one.forget("pnpm");
    let lock = two.notes.lock().unwrap();
    two.notes.create(&lock, &one.note("pnpm")).unwrap();
    drop(lock);
    two.remember("pnpm", "Use pnpm.");
    assert_eq!(two.counts(), [0, 0, 1, 0]);
    assert!(two.texts().is_empty());
}

#[test]
fn notes_of_the_python_version_are_taken_over() {
    let fixture = Fixture::new();
    let python = |stem: &str, body: &str, workspace: Option<&str>| {
        let note = Note {
            title: stem.to_owned(),
            body: body.to_owned(),
            project: "shop".to_owned(),
            machine_id: "m".to_owned(),
            source: Author::Import,
            tags: vec!["import".to_owned(), "kind:feedback".to_owned()],
            workspace_id: workspace.map(str::to_owned),
            ..Note::new(
                note_id(SLUG, stem),
                anamnesis_note::note::NoteType::Procedural,
                now(),
            )
        };
        let lock = fixture.notes.lock().unwrap();
        fixture.notes.create(&lock, &note).unwrap();
    };
    python("same", "Same.", Some("personal"));
    python("raw", "\nRaw.\n", Some("personal"));
    python("edited", "Mine.", None);
    for (stem, body) in [("same", "Same."), ("raw", "Raw."), ("edited", "Theirs.")] {
        fixture.remember(stem, body);
    }
    assert_eq!(fixture.counts(), [0, 1, 2, 0]);
    assert_eq!(fixture.note("raw").body, "Raw.");
    assert_eq!(fixture.note("edited").body, "Mine.");
    for stem in ["same", "raw", "edited"] {
        fixture.remember(stem, "New.");
    }
    assert_eq!(fixture.counts(), [0, 2, 1, 0]);
    assert_eq!(fixture.counts(), [0, 0, 3, 0]);
}

#[test]
fn without_its_records_a_note_is_known_by_what_it_says() {
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    let claude = text_hash(&fixture.claude().to_string_lossy());
    // As if the process was killed between a note and its row: for a new note, …
    let state = || fixture.journal.native_memory(&claude).unwrap();
    let keep = |memory: &NativeMemory| fixture.journal.keep_native_memory(&claude, memory).unwrap();
    keep(&NativeMemory::default());
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    // … and for a changed one.
    let before = state();
    fixture.remember("pnpm", "Use pnpm 9.");
    assert_eq!(fixture.counts(), [0, 1, 0, 0]);
    keep(&before);
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    fixture.remember("pnpm", "Use pnpm 10.");
    assert_eq!(fixture.counts(), [0, 1, 0, 0]);
    assert_eq!(fixture.texts(), [text("pnpm", "Use pnpm 10.")]);
}

#[test]
fn a_folder_that_is_not_there_takes_nothing_along() {
    let fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.import();
    let nowhere = fixture.root.path().join("nowhere");
    assert_eq!(fixture.import_from(&nowhere), Imported::default());
    // Another client folder does not affect the states of these files.
    let other = fixture.root.path().join("other");
    fs::create_dir_all(other.join("projects")).unwrap();
    assert_eq!(fixture.import_from(&other), Imported::default());
    fs::remove_dir_all(fixture.path("")).unwrap();
    assert_eq!(fixture.import(), Imported::default());
    assert_eq!(fixture.texts().len(), 1);
}

#[test]
fn excluded_and_paused_folders_are_left_alone() {
    let mut fixture = Fixture::new();
    fixture.remember("pnpm", "Use pnpm.");
    fixture.began("-srv-cart", "/srv/cart");
    fixture.write("-srv-cart/a", &memory("a", "Carts."));
    // The folder of this session is unknown.
    fixture.write("-none-such/a", &memory("a", "Unknown."));
    fixture.exclude = vec![absolute("/srv/shop")];
    assert_eq!(fixture.counts(), [1, 0, 2, 0]);
    assert_eq!(fixture.texts(), [text("a", "Carts.")]);
    fixture.exclude.clear();
    fixture.paused.projects = vec!["Shop".to_owned()];
    assert_eq!(fixture.counts(), [0, 0, 3, 0]);
    fixture.paused.projects.clear();
    assert_eq!(fixture.counts(), [1, 0, 2, 0]);
    // Excluded files do not count as removed.
    fs::remove_dir_all(fixture.path(SLUG).join("memory")).unwrap();
    fixture.exclude = vec![absolute("/srv/shop")];
    fixture.paused.everywhere = true;
    assert_eq!(fixture.counts(), [0, 0, 0, 0]);
    assert_eq!(fixture.texts().len(), 2);
    fixture.paused.everywhere = false;
    assert_eq!(fixture.counts(), [0, 0, 2, 1]);
}

#[test]
fn what_belongs_to_no_project_is_not_for_all() {
    let fixture = Fixture::new();
    fixture.began("-", "/");
    fixture.write("-/a", &memory("a", "For everybody."));
    assert_eq!(fixture.counts(), [0, 0, 1, 0]);
    assert!(fixture.texts().is_empty());
}

#[test]
fn the_transcripts_are_read_once() {
    let fixture = Fixture::new();
    fixture.remember("a", "One.");
    fixture.import();
    // Reading them again would give another project.
    fixture.began(SLUG, "/srv/cart");
    fixture.remember("b", "Two.");
    fixture.import();
    assert_eq!(
        (fixture.note("a").project, fixture.note("b").project),
        ("shop".to_owned(), "shop".to_owned())
    );
    // Without a transcript, a memory is not copied.
    let write = |stem: &str| fixture.write(&format!("-none-such/{stem}"), &memory(stem, stem));
    write("a");
    assert_eq!(fixture.counts(), [0, 0, 3, 0]);
    fixture.began("-none-such", "/srv/found");
    write("b");
    assert_eq!(fixture.counts(), [2, 0, 2, 0]);
    let project = |stem| {
        fixture
            .notes
            .read(fixture.find(note_id("-none-such", stem)))
            .unwrap()
            .note()
            .project
    };
    assert_eq!(
        (project("a").as_str(), project("b").as_str()),
        ("found", "found")
    );
}

#[cfg(unix)]
#[test]
fn nothing_is_followed_and_nothing_too_large_is_read() {
    use std::os::unix::fs::symlink;

    // PATH-02, PATH-05, IMP-02
    let fixture = Fixture::new();
    let memory_folder = fixture.path(SLUG).join("memory");
    let good = fixture.remember("good", "Good.");
    let outside = fixture.root.path().join("outside.md");
    fs::write(&outside, memory("outside", "needle")).unwrap();
    symlink(&outside, memory_folder.join("link.md")).unwrap();
    fs::hard_link(&outside, memory_folder.join("hard.md")).unwrap();
    fs::create_dir(memory_folder.join("folder.md")).unwrap();
    let large = fs::File::create(memory_folder.join("large.md")).unwrap();
    large.set_len(50 * 1024 * 1024).unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(memory_folder.join("pipe.md"))
        .status();
    assert!(fifo.unwrap().success());
    // A project folder and a memory that are links.
    fixture.began("-srv-real", "/srv/real");
    fixture.write("-srv-real/a", &memory("needle", "needle"));
    let moved = fixture.root.path().join("moved");
    fs::rename(fixture.path("-srv-real"), &moved).unwrap();
    symlink(&moved, fixture.path("-srv-real")).unwrap();
    fixture.began("-srv-linked", "/srv/linked");
    symlink(
        moved.join("memory"),
        fixture.path("-srv-linked").join("memory"),
    )
    .unwrap();
    let done = fixture.import();
    assert_eq!((done.imported, done.skipped), (1, 4));
    let problems: Vec<String> = done
        .problems
        .iter()
        .map(|problem| {
            let name = Path::new(&problem.path).file_name().unwrap();
            format!("{}: {}", name.to_string_lossy(), problem.reason)
        })
        .collect();
    assert_eq!(
        problems,
        [
            "memory: a link or a file in place of a folder; not followed",
            "hard.md: a hard link to a file with other names; not followed",
            "large.md: over 256 KiB",
            "link.md: a link; not followed",
            "pipe.md: not a regular file",
        ]
    );
    assert_eq!(fixture.texts(), [text("good", "Good.")]);
    // Each import reports them.
    assert_eq!(fixture.import().problems.len(), 5);
    // A file replaced by a link does not count as removed.
    fs::remove_file(&good).unwrap();
    symlink(&outside, &good).unwrap();
    assert_eq!(fixture.counts(), [0, 0, 5, 0]);
    assert_eq!(fixture.texts(), [text("good", "Good.")]);
}

#[test]
fn a_source_is_never_changed() {
    // HOOK-10
    let fixture = Fixture::new();
    let path = fixture.write(
        &format!("{SLUG}/a"),
        "---\nx: &a [*a]\nname: a\n---\r\n<private>p</private> token \u{202e}",
    );
    let before = (
        fs::read(&path).unwrap(),
        Stamp::from_metadata(&fs::metadata(&path).unwrap()),
    );
    fixture.import();
    fixture.import();
    assert_eq!(
        (
            fs::read(&path).unwrap(),
            Stamp::from_metadata(&fs::metadata(&path).unwrap())
        ),
        before
    );
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
}

#[test]
fn a_time_of_the_future_is_now() {
    let fixture = Fixture::new();
    let path = fixture.remember("a", "A.");
    let future = SystemTime::now() + Duration::from_secs(1_000_000);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(future)
        .unwrap();
    fixture.import();
    let updated_at = anamnesis_note::note::parse_timestamp(&fixture.note("a").updated_at);
    assert!(updated_at.is_some_and(|time| time <= now()));
}

#[test]
fn one_file_that_cannot_be_used_hides_no_other() {
    let fixture = Fixture::new();
    fixture.remember("a", "A.");
    fixture.remember("b", "B.");
    fixture.import();
    let path = fixture.find(note_id(SLUG, "a"));
    fs::write(
        fixture.root.path().join("store").join(path.to_string()),
        "broken",
    )
    .unwrap();
    fixture.remember("a", "A, again.");
    fixture.remember("b", "B, again.");
    let done = fixture.import();
    assert_eq!((done.updated, done.skipped, done.problems.len()), (1, 1, 1));
    fs::write(
        fixture.path(SLUG).join("memory/c.md"),
        b"---\nname: c\n---\nC \xff",
    )
    .unwrap();
    assert_eq!(fixture.import().imported, 1);
}
