use std::{collections::BTreeMap, process::Command, sync::Barrier};

use anamnesis_note::{
    note::Scope,
    usage_log::{Alias, Usage, Use, Weight},
};
use proptest::{collection::vec, prelude::*};

use super::*;

const PATIENCE: Duration = Duration::from_secs(10);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_772_618_400, 0).unwrap()
}

fn days(number: i64) -> DateTime<Utc> {
    now() + chrono::Duration::days(number)
}

fn note(number: u32) -> PortableId {
    PortableId::new(NoteId::of_session(&number.to_string()), Scope::Portable).unwrap()
}

/// A receipt of one use.
fn used(now: DateTime<Utc>, turn: u32) -> Receipt {
    let mut receipt = Receipt::new(now);
    receipt.used = vec![Use {
        note: note(turn % 3),
        weight: Weight::Explicit,
        turn,
    }];
    receipt
}

/// An installation: a home and its journal.
struct Installation {
    folder: tempfile::TempDir,
    receipts: Receipts,
    journal: Journal,
}

impl Installation {
    fn new() -> Self {
        Self::at(tempfile::tempdir().unwrap())
    }

    fn at(folder: tempfile::TempDir) -> Self {
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        Self {
            journal: Journal::open(&home, PATIENCE).unwrap(),
            receipts: Receipts::new(home),
            folder,
        }
    }

    /// A copy of the whole home.
    fn copied(&self) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let copied = Command::new("cp")
            .args(["--archive", "--no-target-directory"])
            .args([self.folder.path(), folder.path()])
            .status()
            .unwrap();
        assert!(copied.success());
        Self::at(folder)
    }

    fn append(&self, receipt: &Receipt) {
        self.receipts
            .append(&self.journal, "laptop", receipt, PATIENCE)
            .unwrap();
    }

    fn folder(&self) -> PathBuf {
        self.receipts.folder(&self.journal, "laptop").unwrap()
    }

    fn compact(&self, now: DateTime<Utc>) -> Vec<String> {
        self.receipts.compact(&self.journal, now, PATIENCE).unwrap()
    }

    /// Every file of the usage logs.
    fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let root = self.receipts.home.receipts();
        let machines = self.receipts.machines().into_iter();
        machines
            .flat_map(|machine| {
                names_in(&root.join(&machine)).map(move |name| format!("{machine}/{name}"))
            })
            .map(|path| (path.clone(), fs::read(root.join(path)).unwrap()))
            .collect()
    }

    fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.receipts.home.receipts().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // As git does: a new file replaces the old one.
        let temporary = path.with_extension("tmp");
        fs::write(&temporary, bytes).unwrap();
        fs::rename(&temporary, path).unwrap();
    }

    fn remove(&self, path: &str) {
        fs::remove_file(self.receipts.home.receipts().join(path)).unwrap();
    }
}

#[test]
fn a_receipt_that_several_processes_find_waiting_is_written_once() {
    let laptop = Installation::new();
    let id = NoteId::of_session("a note");
    let start = Barrier::new(8);
    std::thread::scope(|scope| {
        for number in 0..8 {
            let (home, start) = (laptop.receipts.home.clone(), &start);
            scope.spawn(move || {
                let journal = Journal::open(&home, PATIENCE).unwrap();
                let receipts = Receipts::new(home);
                for turn in 0..10 {
                    let usage = Usage {
                        used: [((number * 10 + turn, id), Weight::Explicit)].into(),
                        ..Usage::default()
                    };
                    let (told, kept) = usage.part(None, None, now(), |_| Some(Scope::Portable));
                    journal.keep_receipts(None, &told, &kept).unwrap();
                    start.wait();
                    receipts.settle(&journal, "laptop", PATIENCE).unwrap();
                }
            });
        }
    });
    assert_eq!(laptop.journal.waiting_receipts().unwrap(), []);
    let written: Vec<u8> = laptop.files().into_values().flatten().collect();
    let written = String::from_utf8(written).unwrap();
    let written: Vec<&str> = written
        .lines()
        .filter(|line| line.contains("use"))
        .collect();
    let distinct: BTreeSet<&&str> = written.iter().collect();
    assert_eq!((written.len(), distinct.len()), (80, 80));
}

#[test]
fn a_line_that_was_cut_off_by_a_kill_is_no_part_of_the_next() {
    let laptop = Installation::new();
    let receipt = used(now(), 1);
    laptop.append(&receipt);
    let files = laptop.files();
    let (path, bytes) = files
        .iter()
        .find(|(path, _)| path.ends_with(LINES))
        .unwrap();
    laptop.write(path, &bytes[..bytes.len() - 1]);
    laptop.append(&receipt);
    let written = String::from_utf8(laptop.files()[path].clone()).unwrap();
    assert!(written.ends_with('\n') && written.len() > bytes.len());
}

#[test]
fn a_receipt_is_a_line_of_its_month_in_a_folder_of_its_own() {
    let laptop = Installation::new();
    let receipt = used(now(), 1);
    laptop.append(&receipt);
    let id = laptop.receipts.installation(&laptop.journal).unwrap();
    assert_eq!(id.len(), 32);
    let folder = format!("laptop-{}", &id[..8]);
    let files = laptop.files();
    assert_eq!(
        files.keys().map(String::as_str).collect::<Vec<_>>(),
        [
            &*format!("{folder}/2026-03.jsonl"),
            &*format!("{folder}/owner")
        ]
    );
    assert_eq!(
        files[&format!("{folder}/owner")],
        format!("{id}\n").into_bytes()
    );
    assert_eq!(
        files[&format!("{folder}/2026-03.jsonl")],
        receipt.to_lines().concat().into_bytes()
    );
    assert!(laptop.receipts.home.open_to_others().is_empty());
}

#[test]
fn machines_of_one_name_write_to_two_folders() {
    let (one, two) = (Installation::new(), Installation::new());
    assert_ne!(one.folder().file_name(), two.folder().file_name());
}

#[test]
fn a_copied_home_is_an_installation_of_its_own() {
    let laptop = Installation::new();
    laptop.append(&used(now(), 1));
    let copy = laptop.copied();
    copy.append(&used(now(), 2));
    assert_ne!(laptop.folder().file_name(), copy.folder().file_name());
    let (theirs, ours) = (copy.files(), laptop.files());
    assert!(
        ours.iter()
            .all(|(path, bytes)| theirs.get(path) == Some(bytes))
    );
    assert_eq!(copy.receipts.read_all().0.total().receipts, 2);
    // The first one is unchanged.
    assert_eq!(laptop.folder(), laptop.folder());
    laptop.append(&used(now(), 3));
    assert_eq!(laptop.files().len(), 2);
}

#[test]
fn a_folder_of_another_owner_is_left_alone() {
    let laptop = Installation::new();
    let id = laptop.receipts.installation(&laptop.journal).unwrap();
    laptop.write(&format!("laptop-{}/owner", &id[..8]), b"somebody else\n");
    laptop.write(&format!("laptop-{}/2026-03.jsonl", &id[..16]), b"");
    laptop.append(&used(now(), 1));
    assert!(laptop.folder().ends_with(format!("laptop-{id}")));
    laptop.write(&format!("laptop-{id}/owner"), b"somebody else\n");
    let refused = laptop
        .receipts
        .append(&laptop.journal, "laptop", &used(now(), 1), PATIENCE);
    assert!(matches!(refused, Err(Error::Taken(_))));
}

#[test]
fn any_machine_name_is_a_folder() {
    // PATH-01
    for (machine, name) in [
        ("laptop", "laptop"),
        ("Dev.Box_1", "Dev.Box_1"),
        ("../../etc", "-..-etc"),
        ("...", "machine"),
        ("", "machine"),
        ("Müllers Rechner", "M-llers-Rechner"),
        ("a/b\\c:d\0e", "a-b-c-d-e"),
    ] {
        assert_eq!(folder_name(machine), name, "{machine}");
    }
    let longest = format!("{}-{}", folder_name(&"x".repeat(500)), "0".repeat(32));
    assert_eq!(longest.len(), MAX_NAME_LENGTH);
    assert!(is_machine_folder(&longest));
    for bad in ["", ".git", "..", "a/b", "a b", "é", &"x".repeat(65)] {
        assert!(!is_machine_folder(bad), "{bad}");
    }
}

#[test]
fn a_torn_line_waits_for_its_end() {
    let laptop = Installation::new();
    laptop.append(&used(now(), 1));
    let path = laptop.folder().join("2026-03.jsonl");
    let torn = used(now(), 2).to_lines().concat();
    let mut bytes = fs::read(&path).unwrap();
    bytes.extend(&torn.as_bytes()[..torn.len() / 2]);
    fs::write(&path, &bytes).unwrap();
    let (fold, problems) = laptop.receipts.read_all();
    assert_eq!((fold.total().receipts, problems), (1, vec![]));
    laptop.append(&used(now(), 3));
    let (fold, problems) = laptop.receipts.read_all();
    assert_eq!(fold.total().receipts, 2);
    assert_eq!(problems[0].trouble, Trouble::Undecodable(1));
    assert!(
        problems[0]
            .to_string()
            .ends_with("2026-03.jsonl: a line is no receipt")
    );
}

#[test]
fn a_month_is_compacted_once_and_by_its_owner() {
    let laptop = Installation::new();
    laptop.append(&used(now(), 1));
    laptop.append(&used(days(40), 2));
    let lines = laptop.folder().join("2026-03.jsonl");
    let kept = fs::read(&lines).unwrap();
    let before = laptop.receipts.read_all().0.months();
    assert_eq!(laptop.compact(days(60)), [""; 0]);
    let other = laptop.copied();
    assert_eq!(other.compact(days(70)), [""; 0]);
    assert_eq!(laptop.compact(days(70)).len(), 1);
    assert!(!lines.exists());
    assert_eq!(laptop.receipts.read_all().0.months(), before);
    // A kill between the two steps.
    fs::write(&lines, &kept).unwrap();
    assert_eq!(laptop.receipts.read_all().0.months(), before);
    assert_eq!(laptop.compact(days(70)).len(), 1);
    assert!(!lines.exists());
    // The clock was set back.
    laptop.append(&used(now(), 3));
    assert_eq!(laptop.receipts.read_all().0.total().receipts, 3);
    assert!(!lines.exists());
    assert_eq!(laptop.receipts.read_all().1, []);
}

#[test]
fn lines_of_a_later_version_stay() {
    let laptop = Installation::new();
    laptop.append(&used(now(), 1));
    let path = laptop.folder().join("2026-03.jsonl");
    let text = fs::read_to_string(&path)
        .unwrap()
        .replace("\"v\":1", "\"v\":2");
    fs::write(&path, &text).unwrap();
    assert_eq!(laptop.compact(days(100)), [""; 0]);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    assert_eq!(laptop.receipts.read_all().0.total().receipts, 1);
}

#[test]
fn what_was_rewritten_is_read_again() {
    let laptop = Installation::new();
    let (mut progress, mut fold) = (Progress::new(), Fold::default());
    let mut read = |expected: u64| {
        let problems = laptop.receipts.read(&mut progress, &mut fold);
        assert_eq!(fold, laptop.receipts.read_all().0);
        assert_eq!(problems, laptop.receipts.read_all().1);
        assert_eq!(fold.total().receipts, expected);
    };
    read(0);
    let line = |turn| used(now(), turn).to_lines().concat();
    let (one, two, three) = (line(1), line(2), line(3));
    laptop.write(
        "desktop-1/2026-03.jsonl",
        format!("{one}x\n{two}").as_bytes(),
    );
    read(2);
    laptop.write(
        "desktop-1/2026-03.jsonl",
        format!("{one}x\n{two}{three}").as_bytes(),
    );
    read(3);
    laptop.write(
        "desktop-1/2026-03.jsonl",
        format!("{one}y\n{two}{three}").as_bytes(),
    );
    read(3);
    laptop.write("desktop-1/2026-03.jsonl", one.as_bytes());
    read(1);
    laptop.write(
        "desktop-1/2026-03.fold.json",
        b"{\"covers\":7,\"month\":\"2026-03\"}",
    );
    read(7);
    laptop.write(
        "desktop-1/2026-03.fold.json",
        b"{\"covers\":8,\"month\":\"2026-03\"}",
    );
    read(8);
    laptop.write(
        "desktop-1/2026-03.fold.json",
        b"{\"covers\":8,\"month\":\"2026-02\"}",
    );
    read(1);
    laptop.remove("desktop-1/2026-03.fold.json");
    read(1);
    laptop.remove("desktop-1/2026-03.jsonl");
    read(0);
}

#[test]
fn gone_notes_and_aliases_come_from_every_machine() {
    let (laptop, desktop) = (Installation::new(), Installation::new());
    let mut receipt = Receipt::new(now());
    receipt.gone = vec![note(1)];
    receipt.aliases = vec![Alias::new("shop", "github.com/acme/shop").unwrap()];
    desktop.append(&receipt);
    desktop.compact(days(100));
    for (path, bytes) in desktop.files() {
        laptop.write(&path, &bytes);
    }
    assert_eq!(laptop.receipts.gone(), BTreeSet::from([note(1).id()]));
    assert_eq!(
        laptop.receipts.aliases().current("shop"),
        "github.com/acme/shop"
    );
}

#[cfg(unix)]
#[test]
fn links_are_neither_read_nor_written_through() {
    // PATH-02, PATH-03
    use std::os::unix::fs::symlink;
    let (laptop, outside) = (Installation::new(), tempfile::tempdir().unwrap());
    let secret = outside.path().join("2026-03.jsonl");
    fs::write(&secret, used(now(), 1).to_lines().concat()).unwrap();
    let folder = laptop.folder();
    symlink(&secret, folder.join("2026-03.jsonl")).unwrap();
    symlink(
        outside.path(),
        laptop.receipts.home.receipts().join("linked"),
    )
    .unwrap();
    let (fold, problems) = laptop.receipts.read_all();
    assert_eq!((fold.total().receipts, problems.len()), (0, 1));
    let before = fs::read(&secret).unwrap();
    let refused = laptop
        .receipts
        .append(&laptop.journal, "laptop", &used(now(), 2), PATIENCE);
    assert!(matches!(refused, Err(Error::Io { .. })));
    assert_eq!(fs::read(&secret).unwrap(), before);
}

#[test]
fn processes_that_write_at_once_tear_no_line() {
    let laptop = Installation::new();
    std::thread::scope(|scope| {
        for number in 0..8 {
            let home = laptop.receipts.home.clone();
            scope.spawn(move || {
                let journal = Journal::open(&home, PATIENCE).unwrap();
                for turn in 0..20 {
                    let receipt = used(now(), number * 20 + turn);
                    let receipts = Receipts::new(home.clone());
                    receipts
                        .append(&journal, "laptop", &receipt, PATIENCE)
                        .unwrap();
                }
            });
        }
    });
    let (fold, problems) = laptop.receipts.read_all();
    assert_eq!((fold.total().receipts, problems), (160, vec![]));
    assert_eq!(laptop.receipts.machines().len(), 1);
}

/// One step of a script; the number names the machine.
#[derive(Debug, Clone)]
enum Step {
    /// An action outside of a session.
    Act(usize),
    /// A session's receipt with this many uses.
    Flush(usize, u32),
    /// A process is killed after writing a part of a line.
    Crash(usize, usize),
    Compact(usize),
    Sync(usize),
    /// A machine's disk is copied to a new machine.
    Clone(usize),
    /// Reads the appended lines.
    Read(usize),
    Wait(i64),
}

fn any_step() -> impl Strategy<Value = Step> {
    let machine = 0_usize..5;
    prop_oneof![
        4 => machine.clone().prop_map(Step::Act),
        4 => (machine.clone(), 1_u32..60).prop_map(|(machine, uses)| Step::Flush(machine, uses)),
        2 => (machine.clone(), 1_usize..100).prop_map(|(machine, cut)| Step::Crash(machine, cut)),
        2 => machine.clone().prop_map(Step::Compact),
        4 => machine.clone().prop_map(Step::Sync),
        1 => machine.clone().prop_map(Step::Clone),
        2 => machine.prop_map(Step::Read),
        2 => (1_i64..50).prop_map(Step::Wait),
    ]
}

type Files = BTreeMap<String, Vec<u8>>;

struct Machine {
    installation: Installation,
    /// The files at the last sync.
    base: Files,
    progress: Progress,
    fold: Fold,
}

impl Machine {
    fn new(installation: Installation, base: Files) -> Self {
        Self {
            installation,
            base,
            progress: Progress::new(),
            fold: Fold::default(),
        }
    }

    /// Merges with the shared files as git does: a file that both sides changed is a conflict. Only
    /// the installation's own files are sent.
    fn sync(&mut self, shared: &mut Files) {
        let Installation {
            receipts, journal, ..
        } = &self.installation;
        let own = receipts.own_folders(journal).unwrap();
        let is_own = |path: &str| own.iter().any(|own| path.split('/').next() == Some(own));
        let ours = self.installation.files();
        let paths: BTreeSet<_> = ours
            .keys()
            .chain(shared.keys())
            .chain(self.base.keys())
            .cloned()
            .collect();
        for path in paths {
            let (base, our, their) = (
                self.base.get(&path),
                ours.get(&path),
                shared.get(&path).cloned(),
            );
            if base == our || !is_own(&path) {
                match &their {
                    Some(bytes) if our != Some(bytes) => self.installation.write(&path, bytes),
                    None if our.is_some() => self.installation.remove(&path),
                    _ => {}
                }
            } else {
                assert!(
                    their.as_ref() == base || their.as_ref() == our,
                    "conflict in {path}"
                );
                match our {
                    Some(bytes) => shared.insert(path, bytes.clone()),
                    None => shared.remove(&path),
                };
            }
        }
        self.base = self.installation.files();
        assert_eq!(self.base, *shared);
    }

    fn read(&mut self) {
        let problems = self
            .installation
            .receipts
            .read(&mut self.progress, &mut self.fold);
        let (fold, again) = self.installation.receipts.read_all();
        assert_eq!((&self.fold, problems), (&fold, again));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn machines_of_one_name_agree_and_never_conflict(steps in vec(any_step(), 1..60)) {
        let mut shared = Files::new();
        let mut machines: Vec<_> =
            (0..3).map(|_| Machine::new(Installation::new(), Files::new())).collect();
        let (mut now, mut turn) = (now(), 0);
        let (mut written, mut events) = (0, 0);
        for step in steps {
            let last = machines.len() - 1;
            let machine = match step {
                Step::Act(number) | Step::Flush(number, _) | Step::Crash(number, _)
                | Step::Compact(number) | Step::Sync(number) | Step::Clone(number)
                | Step::Read(number) => number.min(last),
                Step::Wait(_) => 0,
            };
            let machine = &mut machines[machine];
            match step {
                Step::Act(_) => {
                    turn += 1;
                    machine.installation.append(&used(now, turn));
                    (written, events) = (written + 1, events + 1);
                }
                Step::Flush(_, uses) => {
                    let Installation { receipts, journal, .. } = &machine.installation;
                    let mut receipt = Receipt::new(now);
                    receipt.session = Some(receipts.session_mark(journal, &turn.to_string()).unwrap());
                    for _ in 0..uses {
                        turn += 1;
                        receipt.used.extend(used(now, turn).used);
                    }
                    machine.installation.append(&receipt);
                    written += receipt.to_lines().len() as u64;
                    events += u64::from(uses);
                }
                Step::Crash(_, cut) => {
                    let folder = machine.installation.folder();
                    let path = folder.join(format!("{}{LINES}", Month::from_time(now)));
                    let line = used(now, 0).to_lines().concat();
                    let mut bytes = fs::read(&path).unwrap_or_default();
                    if bytes.last().is_none_or(|byte| *byte == b'\n') {
                        bytes.extend(&line.as_bytes()[..cut]);
                        fs::write(&path, bytes).unwrap();
                    }
                }
                Step::Compact(_) => {
                    machine.installation.compact(now);
                }
                Step::Sync(_) => machine.sync(&mut shared),
                Step::Clone(_) => {
                    let (copied, base) = (machine.installation.copied(), machine.base.clone());
                    machines.push(Machine::new(copied, base));
                }
                Step::Read(_) => machine.read(),
                Step::Wait(days) => now += chrono::Duration::days(days),
            }
        }
        for _ in 0..2 {
            for machine in &mut machines {
                machine.sync(&mut shared);
            }
        }
        for machine in &mut machines {
            machine.read();
            let (fold, _) = machine.installation.receipts.read_all();
            let total = fold.total();
            prop_assert_eq!(total.receipts, written);
            prop_assert_eq!(total.notes.values().map(|note| note.used).sum::<u64>(), events);
            prop_assert_eq!(fold.months(), months_of(&shared));
        }
    }
}

/// What a new machine reads in the shared files.
fn months_of(shared: &Files) -> BTreeMap<Month, anamnesis_note::usage_log::Counts> {
    let reader = Installation::new();
    for (path, bytes) in shared {
        reader.write(path, bytes);
    }
    reader.receipts.read_all().0.months()
}
