use std::{ffi::OsStr, fs, path::Path};

use super::{super::tests::Fixture, *};
use crate::fs::home::Home;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Projects on a machine with a journal.
struct Machine {
    fixture: Fixture,
    journal: Journal,
    home: Home,
}

impl Machine {
    fn new() -> Self {
        let fixture = Fixture::new();
        let home = Home::new(fixture.folder.path().join("store"));
        home.create().unwrap();
        Self {
            journal: Journal::open(&home, TIMEOUT).unwrap(),
            home,
            fixture,
        }
    }

    /// A repository with its own commit.
    fn repository(&self, path: &str) -> PathBuf {
        let folder = self.fixture.repository(path);
        Fixture::git(
            &folder,
            &["commit", "--quiet", "--allow-empty", "--message", path],
        );
        folder
    }

    fn cloned(&self, path: &str, remote: &str) -> PathBuf {
        let folder = self.repository(path);
        Fixture::git(&folder, &["remote", "add", "origin", remote]);
        folder
    }

    fn mark(folder: &Path, key: &str) {
        fs::create_dir_all(folder.join(".anamnesis")).unwrap();
        fs::write(folder.join(".anamnesis/project"), key).unwrap();
    }

    /// Runs what a session start does in a folder.
    fn start(&self, folder: &Path) -> Project {
        let known = Places::new(Some(&self.journal))
            .recognize(folder, Some(self.fixture.folder.path()))
            .unwrap();
        for (name, value) in &known.rows {
            self.journal.set_meta(name, value).unwrap();
        }
        known.project
    }

    fn key(&self, folder: &Path) -> String {
        self.start(folder).key
    }

    fn identities(&self) -> Identities<'_> {
        let now = DateTime::from_timestamp(1_772_618_400, 0).unwrap();
        Identities::new(&self.journal, &self.home, now, TIMEOUT)
    }

    fn pairs(&self) -> Vec<(String, String)> {
        let aliases = synced_lines::aliases(&self.home);
        let pairs = aliases
            .pairs()
            .map(|(key, now)| (key.to_owned(), now.to_owned()));
        pairs.collect()
    }
}

fn pair(key: &str, now: &str) -> (String, String) {
    (key.to_owned(), now.to_owned())
}

#[test]
fn a_remote_that_is_added_and_changed_makes_aliases() {
    // INJ-15
    let machine = Machine::new();
    let shop = machine.repository("shop");
    assert_eq!(machine.key(&shop), "shop");
    Fixture::git(
        &shop,
        &["remote", "add", "origin", "https://a.example/acme/shop"],
    );
    let project = machine.start(&shop);
    // Before the deferred process ran.
    assert_eq!(project.all_keys(), ["a.example/acme/shop", "shop"]);
    machine.identities().settle().unwrap();
    assert_eq!(machine.pairs(), [pair("shop", "a.example/acme/shop")]);
    Fixture::git(
        &shop,
        &["remote", "set-url", "origin", "https://b.example/acme/shop"],
    );
    machine.start(&shop);
    machine.identities().settle().unwrap();
    let expected = ["b.example/acme/shop", "a.example/acme/shop", "shop"];
    assert_eq!(machine.start(&shop).all_keys(), expected);
    // A query with the old key finds all notes, too.
    let others = Places::new(Some(&machine.journal)).others("shop").unwrap();
    assert_eq!(others, ["a.example/acme/shop", "b.example/acme/shop"]);
    // No line is written twice.
    let lines = || fs::read_to_string(machine.home.aliases()).unwrap();
    let before = lines();
    machine.identities().settle().unwrap();
    assert_eq!(lines(), before);
}

#[test]
fn repositories_with_a_relative_remote_share_nothing() {
    // INJ-15
    let machine = Machine::new();
    let shop = machine.cloned("work/a/shop", "../server.git");
    let bank = machine.cloned("clients/b/bank", "../server.git");
    let namesake = machine.cloned("clients/b/shop", "../server.git");
    assert_eq!(machine.start(&shop).all_keys(), ["shop"]);
    assert_eq!(machine.start(&bank).all_keys(), ["bank"]);
    let key = machine.key(&namesake);
    assert!(key.starts_with("shop~"), "{key}");
    // The records of an earlier version have such a key. Its notes are still found.
    for (name, text) in machine.journal.metas_under(PLACE).unwrap() {
        let mut row: Row = parse(&text).unwrap();
        row.given = "../server".to_owned();
        row.key.clone_from(&row.given);
        row.step = "remote".to_owned();
        machine.journal.set_meta(&name, &stored(&row)).unwrap();
    }
    assert_eq!(machine.start(&shop).all_keys(), ["shop", "../server"]);
    assert_eq!(machine.start(&bank).all_keys(), ["bank", "../server"]);
    machine.identities().settle().unwrap();
    assert_eq!(machine.pairs(), []);
}

#[test]
fn a_folder_that_is_marked_keeps_its_notes() {
    let machine = Machine::new();
    let shop = machine.repository("shop");
    machine.start(&shop);
    Machine::mark(&shop, "storefront");
    assert_eq!(machine.start(&shop).all_keys(), ["storefront", "shop"]);
    machine.identities().settle().unwrap();
    assert_eq!(machine.pairs(), [pair("shop", "storefront")]);
}

#[test]
fn a_folder_that_is_renamed_looks_like_the_one_that_is_gone() {
    let machine = Machine::new();
    let (shop, other) = (machine.repository("shop"), machine.repository("other"));
    let cloned = machine.cloned("cloned", "https://h.example/o/r");
    for folder in [&shop, &other, &cloned] {
        machine.start(folder);
    }
    let looks_like = |folder: &Path| {
        let project = machine.start(folder);
        let places = Places::new(Some(&machine.journal));
        places.renamed_from(&project, folder).unwrap()
    };
    assert_eq!(looks_like(&shop), None);
    // A copy was made at another time, as on a new disk.
    let store = machine.fixture.folder.path().join("web-shop");
    let copied = std::process::Command::new("cp")
        .args([OsStr::new("-r"), shop.as_os_str(), store.as_os_str()])
        .status();
    assert!(copied.unwrap().success());
    fs::remove_dir_all(&shop).unwrap();
    assert_eq!(machine.start(&store).all_keys(), ["web-shop"]);
    assert_eq!(looks_like(&store).as_deref(), Some("shop"));
    assert_eq!(looks_like(&cloned), None, "it has a remote");
    assert_eq!(looks_like(&machine.fixture.path("deep/web-shop")), None);
    machine.identities().merge("shop", "web-shop").unwrap();
    assert_eq!(machine.start(&store).all_keys(), ["web-shop", "shop"]);
    assert_eq!(looks_like(&store), None);
    // Of two folders that are gone, none is named.
    for folder in [&other, &store] {
        fs::remove_dir_all(folder).unwrap();
    }
    assert_eq!(looks_like(&machine.repository("third")), None);
}

#[test]
fn another_repository_in_the_same_place_is_another_project() {
    let machine = Machine::new();
    let folder = machine.cloned("scratch", "https://h.example/o/one");
    machine.start(&folder);
    fs::remove_dir_all(&folder).unwrap();
    let folder = machine.cloned("scratch", "https://h.example/o/two");
    assert_eq!(machine.start(&folder).all_keys(), ["h.example/o/two"]);
    machine.identities().settle().unwrap();
    assert_eq!(machine.pairs(), []);
}

#[test]
fn repositories_of_one_name_do_not_share_and_a_moved_one_keeps_its_key() {
    // INJ-15
    let machine = Machine::new();
    let (first, second) = (machine.repository("a/api"), machine.repository("b/api"));
    assert_eq!(machine.key(&first), "api");
    let key = machine.key(&second);
    let digits = key.strip_prefix("api~").unwrap();
    assert!(
        digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{key}"
    );
    for _ in 0..2 {
        assert_eq!(machine.key(&second), key);
        assert_eq!(machine.key(&first), "api");
    }
    // Folders without git share a name.
    assert_eq!(machine.key(&machine.fixture.path("e/api")), "api");
    let moved = machine.fixture.path("c").join("api");
    fs::rename(&first, &moved).unwrap();
    assert_eq!(machine.key(&moved), "api");
}

#[test]
fn a_marker_reads_no_other_projects_notes() {
    // HOOK-03
    let machine = Machine::new();
    let mine = machine.cloned("mine", "https://h.example/me/mine");
    Machine::mark(&mine, "diary");
    assert_eq!(machine.key(&mine), "diary");
    let plain = machine.cloned("plain", "https://h.example/me/plain");
    machine.start(&plain);
    for wanted in ["diary", "h.example/me/plain", "h.example/me/not-here-yet"] {
        let theirs = machine.cloned(
            &format!("theirs {wanted}").replace('/', "-"),
            "https://h.example/they/x",
        );
        Machine::mark(&theirs, wanted);
        for _ in 0..2 {
            let project = machine.start(&theirs);
            assert_eq!(project.all_keys(), ["h.example/they/x"]);
            assert_eq!(project.untrusted.as_deref(), Some(wanted));
            assert!(matches!(project.step, Step::Remote(_)));
        }
    }
    // Also in a folder without git.
    let unpacked = machine.fixture.path("unpacked");
    Machine::mark(&unpacked, "diary");
    assert_eq!(machine.key(&unpacked), "unpacked");
    machine.identities().settle().unwrap();
    assert_eq!(machine.pairs(), []);
    let user_home = machine.fixture.folder.path();
    let trusted = machine
        .identities()
        .trust(&unpacked, Some(user_home))
        .unwrap();
    assert_eq!(trusted.as_deref(), Some("diary"));
    let project = machine.start(&unpacked);
    assert_eq!(
        (project.all_keys(), project.untrusted.clone()),
        (vec!["diary".to_owned()], None)
    );
    assert_eq!(
        machine
            .identities()
            .trust(&unpacked, Some(user_home))
            .unwrap(),
        None
    );
    machine.identities().settle().unwrap();
    assert_eq!(machine.pairs(), []);
    // The person trusted one key, not later ones.
    Machine::mark(&unpacked, "h.example/me/plain");
    assert_eq!(
        machine.start(&unpacked).untrusted.as_deref(),
        Some("h.example/me/plain")
    );
}

#[test]
fn packages_of_a_repository_are_projects_of_their_own() {
    // INJ-15
    let machine = Machine::new();
    let mono = machine.cloned("mono", "https://h.example/acme/mono");
    let (cart, tax) = (mono.join("cart"), mono.join("tax"));
    Machine::mark(&cart, "h.example/acme/mono/cart");
    Machine::mark(&tax, "tax");
    for _ in 0..2 {
        assert_eq!(
            machine.start(&cart).all_keys(),
            ["h.example/acme/mono/cart"]
        );
        assert_eq!(machine.start(&tax).all_keys(), ["tax"]);
        assert_eq!(machine.start(&mono).all_keys(), ["h.example/acme/mono"]);
    }
    let again = machine.cloned("again", "https://h.example/acme/mono");
    Machine::mark(&again.join("tax"), "tax");
    assert_eq!(machine.key(&again.join("tax")), "tax");
    machine.identities().settle().unwrap();
    assert_eq!(machine.pairs(), []);
}

#[test]
fn work_trees_share_with_their_repository() {
    // INJ-15
    let machine = Machine::new();
    let shop = machine.repository("shop");
    Fixture::git(&shop, &["worktree", "add", "--quiet", "../fix"]);
    let tree = machine.fixture.path("fix");
    for _ in 0..2 {
        assert_eq!(machine.start(&shop).all_keys(), ["shop"]);
        assert_eq!(machine.start(&tree).all_keys(), ["shop"]);
    }
}

#[test]
fn a_fork_is_another_project_until_a_person_says_so() {
    // INJ-15
    let machine = Machine::new();
    let shop = machine.cloned("shop", "https://h.example/acme/shop");
    let fork = machine.cloned("fork", "https://h.example/me/shop");
    machine.start(&shop);
    assert_eq!(machine.start(&fork).all_keys(), ["h.example/me/shop"]);
    let identities = machine.identities();
    let (one, other) = ("h.example/acme/shop", "h.example/me/shop");
    assert!(identities.merge(other, one).unwrap());
    assert!(!identities.merge(one, other).unwrap());
    assert_eq!(machine.start(&fork).all_keys(), [other, one]);
    assert_eq!(machine.start(&shop).all_keys(), [one, other]);
    assert_eq!(identities.split(one).unwrap(), [other]);
    assert_eq!(machine.start(&fork).all_keys(), [other]);
    assert_eq!(identities.split(one).unwrap(), [""; 0]);
}

#[test]
fn what_a_person_took_back_is_not_learned_again() {
    let machine = Machine::new();
    let shop = machine.repository("shop");
    machine.start(&shop);
    Fixture::git(&shop, &["remote", "add", "origin", "https://h.example/o/r"]);
    machine.start(&shop);
    let identities = machine.identities();
    identities.settle().unwrap();
    assert_eq!(identities.split("shop").unwrap(), ["h.example/o/r"]);
    for _ in 0..2 {
        assert_eq!(machine.start(&shop).all_keys(), ["h.example/o/r"]);
        identities.settle().unwrap();
    }
    assert_eq!(machine.pairs(), []);
}

#[test]
fn without_records_a_folder_has_the_key_that_it_gives() {
    let machine = Machine::new();
    let shop = machine.repository("shop");
    let user_home = Some(machine.fixture.folder.path());
    let project = Places::new(None)
        .recognize(&shop, user_home)
        .unwrap()
        .project;
    assert_eq!(project, Project::find(&shop, user_home));
    // HOOK-03
    Machine::mark(&shop, "h.example/me/diary");
    let project = Places::new(None)
        .recognize(&shop, user_home)
        .unwrap()
        .project;
    assert_eq!(project.key, "shop");
}

#[test]
fn folders_that_a_person_may_want_to_settle_are_found() {
    let machine = Machine::new();
    let root = dunce::canonicalize(machine.fixture.folder.path()).unwrap();
    let doubts = || Places::new(Some(&machine.journal)).doubts().unwrap();
    for path in ["one/api", "other/api", "gone/api", "web"] {
        fs::create_dir_all(root.join(path)).unwrap();
        machine.start(&root.join(path));
    }
    // In git, repositories with the same name are distinguished.
    machine.start(&machine.repository("in-git/api"));
    let cloned = machine.cloned("cloned", "https://github.com/stranger/tool");
    Machine::mark(&cloned, "github.com/acme/shop");
    machine.start(&cloned);
    fs::remove_dir_all(root.join("gone/api")).unwrap();
    let expected = Doubts {
        shared: vec![(
            "api".to_owned(),
            vec![root.join("one/api"), root.join("other/api")],
        )],
        untrusted: vec![("github.com/acme/shop".to_owned(), root.join("cloned"))],
    };
    assert_eq!(doubts(), expected);
    Machine::mark(&root.join("one/api"), "the-one");
    machine.start(&root.join("one/api"));
    machine
        .identities()
        .trust(&cloned, Some(machine.fixture.folder.path()))
        .unwrap();
    assert_eq!(doubts(), Doubts::default());
}

#[test]
fn a_folder_without_git_has_the_notes_of_the_folders_above() {
    let machine = Machine::new();
    let thesis = machine.fixture.path("Work/Thesis");
    let chapter = machine.fixture.path("Work/Thesis/chapters/two");
    // Nothing is known of the folders above yet.
    assert_eq!(machine.start(&chapter).all_keys(), ["two"]);
    machine.start(&thesis);
    let project = machine.start(&chapter);
    assert_eq!(project.key, "two");
    assert_eq!(project.around, ["thesis"]);
    assert_eq!(project.all_keys(), ["two", "thesis"]);
    assert_eq!(project.own_keys(), ["two"]);
    // The folder above does not get those of the folder below, and a repository is its own project.
    assert_eq!(machine.start(&thesis).all_keys(), ["thesis"]);
    let repository = machine.repository("Work/Thesis/code");
    assert_eq!(machine.start(&repository).all_keys(), ["code"]);
    // The user's home ends the search.
    machine.start(machine.fixture.folder.path());
    assert_eq!(machine.start(&thesis).all_keys(), ["thesis"]);
}

#[test]
fn a_submodule_has_the_notes_of_its_repository() {
    let machine = Machine::new();
    let library = machine.repository("library");
    let shop = machine.cloned("shop", "https://h.example/acme/shop");
    let from = library.to_str().unwrap();
    Fixture::git(
        &shop,
        &[
            "-c",
            "protocol.file.allow=always",
            "submodule",
            "add",
            "--quiet",
            from,
            "lib",
        ],
    );
    let submodule = shop.join("lib");
    Fixture::git(
        &submodule,
        &["remote", "set-url", "origin", "https://h.example/acme/lib"],
    );
    machine.start(&shop);
    let project = machine.start(&submodule);
    assert_eq!(
        project.all_keys(),
        ["h.example/acme/lib", "h.example/acme/shop"]
    );
    assert_eq!(project.around, ["h.example/acme/shop"]);
    // A file that names another repository's folder is not followed.
    let victim = machine.cloned("victim", "https://h.example/acme/victim");
    let hostile = machine.fixture.path("shop/hostile");
    let place = victim.join(".git");
    fs::write(hostile.join(".git"), format!("gitdir: {}", place.display())).unwrap();
    assert_eq!(machine.start(&hostile).around, [""; 0]);
}

#[test]
fn a_repository_that_is_moved_or_has_a_new_remote_keeps_its_notes() {
    let machine = Machine::new();
    let old = machine.repository("legacy/shop");
    assert_eq!(machine.key(&old), "shop");
    let new = machine.fixture.path("moved").join("store");
    // A copy is another project while the first one is there.
    let copy = machine.fixture.path("copy").join("other");
    let status = std::process::Command::new("cp")
        .arg("-a")
        .args([&old, &copy])
        .status();
    assert!(status.unwrap().success());
    assert_eq!(machine.start(&copy).all_keys(), ["other"]);
    fs::rename(&old, &new).unwrap();
    assert_eq!(machine.start(&new).all_keys(), ["store", "shop"]);
    assert_eq!(machine.start(&new).all_keys(), ["store", "shop"]);
    for (remote, keys) in [
        ("https://h.example/acme/shop", 3),
        ("https://h.example/newco/store", 4),
    ] {
        let verb = if keys == 3 { "add" } else { "set-url" };
        Fixture::git(&new, &["remote", verb, "origin", remote]);
        assert_eq!(machine.start(&new).all_keys().len(), keys, "{remote}");
    }
}
