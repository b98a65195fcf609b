//! Tests of the repair: what is saved after damage of every kind.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::Seek as _,
    thread,
};

use anamnesis_note::id::NoteId;
use anamnesis_session::event::{PrivateTokenHash, Record};
use anamnesis_text::private_tokens::{Key, hashes_of};

use super::super::take::LOST;
use super::super::tests::{
    count, ended, event, fresh, now, prompted, session_of, started, take, under, used,
};
use super::*;

const PATIENCE: Duration = Duration::from_secs(5);

/// How many tool events the session has that goes on, where much has to be read.
const EVENTS: i64 = 1_200;

/// A journal of many pages, its log folded in and closed: a session that is over, one that goes on
/// under a prompt that is not private, notes that are known, a value, and a secret of the session.
fn filled() -> (tempfile::TempDir, Home) {
    filled_with(EVENTS)
}

fn filled_with(events: i64) -> (tempfile::TempDir, Home) {
    let (folder, home) = fresh();
    let journal = Journal::open(&home, PATIENCE).unwrap();
    take(&journal, &session_of("over"));
    let secret = hashes_of(&Key::new([7; 16]), "heron-4821-lagoon");
    let echo = |hash| PrivateTokenHash {
        key: Key::new([7; 16]),
        hash,
    };
    let start = Record {
        echoes: secret.into_iter().map(echo).collect(),
        private: true,
        ..started("open", "startup")
    };
    take(&journal, &[start]);
    journal
        .in_transaction(|journal| {
            for number in 0..300 {
                let text = if number % 7 == 3 {
                    ""
                } else {
                    "Do the next thing"
                };
                journal.take(&under(&format!("p-{number}"), prompted("open", text)))?;
            }
            for number in 0..events {
                let path = format!("src/{number}-{}.rs", "x".repeat(60));
                let event = event(&format!("e{number}"), "Edit", &path);
                journal.take(&under("p-299", used("open", event)))?;
            }
            journal.set_meta("a name", "kept")
        })
        .unwrap();
    journal
        .know((0..400).map(|number| NoteId::made_of(&number.to_string())))
        .unwrap();
    journal.checkpoint().unwrap();
    (folder, home)
}

/// The pages of each table and index, from `dbstat`: the leaves, in their order.
fn leaves(home: &Home, name: &str) -> Vec<u64> {
    let connection = Connection::open(home.journal()).unwrap();
    let mut statement = connection
        .prepare("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path")
        .unwrap();
    let pages = statement
        .query_map([name], |row| row.get::<_, i64>(0))
        .unwrap();
    pages.map(|page| page.unwrap().cast_unsigned()).collect()
}

/// Puts bytes into the file, `at` from its beginning.
fn overwrite(home: &Home, at: u64, bytes: &[u8]) {
    let mut file = File::options().write(true).open(home.journal()).unwrap();
    file.seek(io::SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

fn zero(home: &Home, page: u64) {
    overwrite(home, (page - 1) * PAGE, &[0; 4096]);
}

fn repaired(home: &Home) -> Repair {
    let repair = repair(home, PATIENCE, now()).unwrap();
    repair.expect("the journal is damaged")
}

fn journal(home: &Home) -> Journal {
    Journal::open(home, PATIENCE).unwrap()
}

/// The ids of tool events, with the page that each lies in.
fn events(journal: &Journal) -> BTreeSet<String> {
    let mut statement = journal
        .connection
        .prepare("SELECT id FROM tool_event WHERE session = 'open'")
        .unwrap();
    let ids = statement.query_map([], |row| row.get(0)).unwrap();
    ids.map(Result::unwrap).collect()
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count)
            .map(|_| self.below(256).to_le_bytes()[0])
            .collect()
    }
}

#[test]
fn a_sound_journal_is_left_alone() {
    let (_folder, home) = filled();
    let before = fs::read(home.journal()).unwrap();
    assert!(request_and_repair(&home).is_none());
    assert!(fs::read(home.journal()).unwrap() == before);
    assert!(kept_files(&home).is_empty());
    assert_eq!(damage::examine(&home, None).unwrap(), Examination::Sound);
    fs::remove_file(home.journal()).unwrap();
    assert!(request_and_repair(&home).is_none());
    assert!(!home.journal().exists());
}

fn request_and_repair(home: &Home) -> Option<Repair> {
    assert!(damage::request_repair(home));
    assert!(!damage::request_repair(home) && damage::is_repair_requested(home));
    let repair = repair(home, PATIENCE, now()).unwrap();
    assert!(!damage::is_repair_requested(home));
    repair
}

#[test]
fn a_check_over_its_time_limit_says_so() {
    let (_folder, home) = filled();
    let looked = damage::examine(&home, Some(Duration::ZERO)).unwrap();
    assert_eq!(looked, Examination::Unfinished);
}

#[test]
fn every_row_beside_a_bad_page_is_saved() {
    let (_folder, home) = filled();
    let pages = leaves(&home, "tool_event");
    let last = pages.len() - 1;
    assert!(last > 40, "{last}");
    let whole = fs::read(home.journal()).unwrap();
    let all = events(&journal(&home));
    for bad in [
        vec![0],
        vec![last],
        vec![last / 2],
        vec![3, 4, 20, last - 1],
        vec![0, last / 3, last],
    ] {
        fs::write(home.journal(), &whole).unwrap();
        for suffix in BESIDE {
            fs::remove_file(beside(&home.journal(), suffix)).ok();
        }
        let mut gone = BTreeSet::new();
        for number in &bad {
            let at = usize::try_from((pages[*number] - 1) * PAGE).unwrap();
            let page = String::from_utf8_lossy(&whole[at..at + 4096]).into_owned();
            let is_in = |id: &&String| page.contains(&format!("src/{}-", &id[1..]));
            gone.extend(all.iter().filter(is_in).cloned());
            zero(&home, pages[*number]);
        }
        assert!(!gone.is_empty() && gone.len() < 30 * bad.len(), "{gone:?}");
        let repair = repaired(&home);
        assert_eq!(repair.incomplete, ["tool_event", "file_use"], "{bad:?}");
        let journal = journal(&home);
        let saved = events(&journal);
        let missing: BTreeSet<String> = all.difference(&saved).cloned().collect();
        assert!(missing.is_subset(&gone), "{bad:?}: {missing:?} {gone:?}");
        assert_eq!(count(&journal, "prompt"), 301);
        assert_eq!(count(&journal, "known_note"), 400);
        assert_eq!(journal.meta("a name").unwrap().as_deref(), Some("kept"));
        assert_eq!(journal.last_repair().unwrap(), Some(repair));
        // Nothing private was lost, so nothing is in doubt.
        assert!(!journal.is_private("open", Some("p-299")).unwrap());
        assert!(journal.is_private("open", Some("p-3")).unwrap());
    }
    assert_eq!(kept_files(&home).len(), 5);
}

#[test]
fn what_a_bad_page_of_an_index_leads_to_is_saved_whole() {
    let (_folder, home) = filled();
    let pages = leaves(&home, "tool_event_session");
    zero(&home, pages[pages.len() / 2]);
    let repair = repaired(&home);
    assert!(repair.incomplete.is_empty(), "{repair:?}");
    let journal = journal(&home);
    assert_eq!(count(&journal, "tool_event"), EVENTS + 3);
    assert_eq!(count(&journal, "file_use"), EVENTS + 3);
}

#[test]
fn a_journal_with_garbage_for_a_header_is_saved_whole() {
    let (_folder, home) = filled();
    overwrite(&home, 0, &Random(11).bytes(HEADER_LENGTH));
    assert!(Journal::open(&home, PATIENCE).unwrap_err().is_damage());
    let damaged = fs::read(home.journal()).unwrap();
    let repair = repaired(&home);
    assert!(repair.incomplete.is_empty(), "{repair:?}");
    assert_eq!(count(&journal(&home), "tool_event"), EVENTS + 3);
    let kept = fs::read(home.quarantine().join(&repair.kept)).unwrap();
    assert!(kept == damaged);
    assert!(!copy_of_damaged(&home).exists() && !new_file(&home).exists());
    assert!(home.open_to_others().is_empty());
}

#[test]
fn a_journal_cut_short_keeps_what_is_left() {
    let (_folder, home) = filled();
    let length = fs::metadata(home.journal()).unwrap().len();
    let file = File::options().write(true).open(home.journal()).unwrap();
    file.set_len(length / 2 + 77).unwrap();
    let repair = repaired(&home);
    assert!(repair.rows > 500, "{repair:?}");
    assert!(journal(&home).session("open").unwrap().is_some());
}

#[test]
fn a_journal_that_cannot_be_read_at_all_gives_way() {
    for bytes in [
        vec![0xff; 8192],
        b"these are no records".to_vec(),
        vec![0; 20_000],
    ] {
        let (_folder, home) = fresh();
        fs::write(home.journal(), &bytes).unwrap();
        assert!(Journal::open(&home, PATIENCE).unwrap_err().is_damage());
        let repair = repaired(&home);
        assert_eq!(repair.rows, 0);
        assert_eq!(
            fs::read(home.quarantine().join(&repair.kept)).unwrap(),
            bytes
        );
        take(&journal(&home), &session_of("s"));
    }
}

#[test]
fn a_version_that_the_tables_do_not_fit_to_is_damage() {
    for version in [0, 1, 3, -5] {
        let (_folder, home) = filled();
        Connection::open(home.journal())
            .unwrap()
            .pragma_update(None, "user_version", version)
            .unwrap();
        assert!(Journal::open(&home, PATIENCE).unwrap_err().is_damage());
        let repair = repaired(&home);
        assert!(repair.incomplete.is_empty(), "{version}: {repair:?}");
        assert_eq!(count(&journal(&home), "tool_event"), EVENTS + 3);
    }
}

#[test]
fn a_table_that_is_gone_is_damage() {
    let (_folder, home) = filled();
    Connection::open(home.journal())
        .unwrap()
        .execute_batch("DROP TABLE known_note")
        .unwrap();
    let opened = journal(&home);
    assert!(opened.know([NoteId::made_of("x")]).unwrap_err().is_damage());
    drop(opened);
    assert_eq!(repaired(&home).incomplete, ["known_note"]);
    journal(&home).know([NoteId::made_of("x")]).unwrap();
}

#[test]
fn text_that_is_not_utf_8_is_damage() {
    let (_folder, home) = filled();
    let connection = Connection::open(home.journal()).unwrap();
    let broken = "UPDATE session SET folder = CAST(x'ff41' AS TEXT) WHERE id = 'over'";
    connection.execute_batch(broken).unwrap();
    drop(connection);
    assert!(journal(&home).session("over").unwrap_err().is_damage());
    repaired(&home);
    let journal = journal(&home);
    // The row is lost, and its events are not.
    let session = journal.session("over").unwrap().unwrap();
    assert_eq!(
        (session.folder.as_deref(), session.end_reason.as_deref()),
        (None, Some(LOST))
    );
    assert_eq!(
        session.first_prompt.as_deref(),
        Some("Add limits to the login")
    );
    assert!(session.is_completed() && journal.has_private_part("over").unwrap());
    assert_eq!(count(&journal, "tool_event"), EVENTS + 3);
    assert_eq!(count(&journal, "job WHERE session = 'over'"), 0);
    // The next event names its project again.
    let mut record = under("p-9", used("over", event("late", "Edit", "late.rs")));
    record.surroundings.project = Some("github.com/acme/shop".to_owned());
    record.surroundings.folder = Some("/x".to_owned());
    take(&journal, &[record]);
    let session = journal.session("over").unwrap().unwrap();
    assert!(!session.is_completed() && session.project == "github.com/acme/shop");
}

#[test]
fn a_damaged_journal_of_a_newer_program_is_left_alone() {
    let (_folder, home) = filled();
    Connection::open(home.journal())
        .unwrap()
        .pragma_update(None, "user_version", 99)
        .unwrap();
    let pages = leaves(&home, "tool_event");
    let length = fs::metadata(home.journal()).unwrap().len();
    let spoil: [&dyn Fn(); 3] = [
        &|| zero(&home, pages[0]),
        &|| zero(&home, 2),
        // Now nobody can open it.
        &|| {
            let file = File::options().write(true).open(home.journal()).unwrap();
            file.set_len(length / 2).unwrap();
        },
    ];
    for spoil in spoil {
        spoil();
        let before = fs::read(home.journal()).unwrap();
        damage::request_repair(&home);
        let refused = repair(&home, PATIENCE, now()).unwrap_err();
        assert!(matches!(refused, Error::Newer(99)), "{refused}");
        assert!(fs::read(home.journal()).unwrap() == before);
        assert!(kept_files(&home).is_empty() && !damage::is_repair_requested(&home));
    }
}

#[test]
fn what_may_be_private_stays_so_when_it_is_lost() {
    // CAP-03
    for table in ["prompt", "session", "private_token", "meta"] {
        let (_folder, home) = filled();
        zero(&home, leaves(&home, table)[0]);
        let repair = repaired(&home);
        assert!(
            repair.incomplete.iter().any(|name| name == table),
            "{repair:?}"
        );
        let journal = journal(&home);
        for prompt in [None, Some("p-299"), Some("p-3"), Some("p-0")] {
            let is_private = journal.is_private("open", prompt).unwrap();
            assert!(is_private, "{table}: {prompt:?}");
        }
        assert!(journal.is_private("never heard of", None).unwrap());
        // What begins now is known from its first word on; so is what begins again.
        take(
            &journal,
            &[started("new", "startup"), prompted("new", "Add limits")],
        );
        assert!(!journal.is_private("new", Some("p-1")).unwrap());
        take(&journal, &[started("open", "compact")]);
        assert!(journal.is_private("open", None).unwrap());
        take(
            &journal,
            &[
                started("open", "resume"),
                under("p-900", prompted("open", "Go on")),
            ],
        );
        assert!(!journal.is_private("open", Some("p-900")).unwrap());
        assert!(journal.has_private_part("open").unwrap());
        let month = 31 * 24 * 60 * 60 * 1000;
        journal
            .expire_unsure(now().timestamp_millis() + month)
            .unwrap();
        assert!(!journal.is_private("never heard of", None).unwrap());
        assert_eq!(count(&journal, "meta WHERE key LIKE 'sure %'"), 0);
    }
}

#[test]
fn what_was_switched_off_is_not_looked_for_when_that_is_lost() {
    let (_folder, home) = filled();
    journal(&home)
        .know_at_first(|| [NoteId::made_of("1")])
        .unwrap();
    journal(&home).checkpoint().unwrap();
    zero(&home, leaves(&home, "meta")[0]);
    repaired(&home);
    let journal = journal(&home);
    assert_eq!(
        journal.resumed_at("any").unwrap(),
        Some(now().timestamp_millis())
    );
    assert_eq!(journal.since().unwrap(), Some(0));
    assert!(journal.knows(NoteId::made_of("1")).unwrap());
    assert!(!journal.knows(NoteId::made_of("somebody's")).unwrap());
}

#[test]
fn a_word_for_privacy_that_is_none_means_private() {
    let (_folder, home) = filled();
    let connection = Connection::open(home.journal()).unwrap();
    connection
        .execute_batch("UPDATE prompt SET privacy = 'nonf' WHERE id = 'p-299'")
        .unwrap();
    drop(connection);
    assert!(journal(&home).is_private("open", Some("p-299")).unwrap());
}

// Windows does not replace a journal that is open.
#[cfg(unix)]
#[test]
fn a_commit_to_a_journal_that_was_replaced_is_refused() {
    let (_folder, home) = filled();
    let opened = journal(&home);
    let pages = leaves(&home, "tool_event");
    zero(&home, pages[5]);
    let repair = repaired(&home);
    let record = under("p-299", used("open", event("late", "Edit", "late.rs")));
    let refused = opened.in_transaction(|opened| opened.take(&record));
    assert!(matches!(refused, Err(Error::Replaced)), "{refused:?}");
    let refused = opened.set_meta("late", "1");
    assert!(matches!(refused, Err(Error::Replaced)), "{refused:?}");
    drop(opened);
    let kept = Connection::open(home.quarantine().join(repair.kept)).unwrap();
    let late = "SELECT count(*) FROM meta WHERE key = 'late'";
    assert_eq!(kept.query_row(late, [], |row| row.get(0)), Ok(0));
    take(&journal(&home), &[record]);
}

#[test]
fn nobody_writes_while_a_journal_is_repaired() {
    let (_folder, home) = filled();
    zero(&home, leaves(&home, "tool_event")[5]);
    let other = journal(&home);
    other.connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    let refused = repair(&home, Duration::ZERO, now()).unwrap_err();
    assert!(
        matches!(refused, Error::Sqlite(_)) && !refused.is_damage(),
        "{refused}"
    );
    other.connection.execute_batch("ROLLBACK").unwrap();
    let locked = lock_damaged(&home.journal(), Duration::ZERO).unwrap();
    let quick = Journal::open(&home, Duration::ZERO).unwrap();
    assert!(quick.set_meta("a", "b").is_err());
    drop(locked);
    quick.set_meta("a", "b").unwrap();
}

// Windows does not replace a journal that another process holds open; that repair is tried again.
#[cfg(unix)]
#[test]
fn repairs_at_once_make_one_new_file_and_lose_no_record() {
    let (_folder, home) = filled();
    zero(&home, leaves(&home, "tool_event_session")[0]);
    let repairs: Vec<Repair> = thread::scope(|scope| {
        let repair = || repair(&home, Duration::from_secs(60), now()).unwrap();
        let repairs: Vec<_> = (0..4).map(|_| scope.spawn(repair)).collect();
        for number in 0..40 {
            let record = under(
                "p-299",
                used("open", event(&format!("w{number}"), "Edit", "w.rs")),
            );
            // A writer whose file was replaced or is damaged tries again, as a record in the spool does.
            while Journal::open(&home, PATIENCE)
                .and_then(|journal| journal.in_transaction(|journal| journal.take(&record)))
                .is_err()
            {}
        }
        let repairs = repairs.into_iter();
        repairs
            .filter_map(|repair| repair.join().unwrap())
            .collect()
    });
    assert_eq!(repairs.len(), 1, "{repairs:?}");
    assert_eq!(kept_files(&home), [repairs[0].kept.clone()]);
    let journal = journal(&home);
    assert_eq!(count(&journal, "tool_event"), EVENTS + 3 + 40);
    assert!(!damage::is_repair_requested(&home));
}

#[test]
fn a_repair_that_was_killed_is_finished() {
    // After each step that another process could see.
    for steps in 0..4 {
        let (_folder, home) = filled();
        zero(&home, leaves(&home, "tool_event")[5]);
        let open = journal(&home);
        open.set_meta("in the log", "1").unwrap();
        let log = beside(&home.journal(), "-wal");
        assert!(fs::metadata(&log).unwrap().len() > 0);
        let before: BTreeMap<&str, Vec<u8>> = BTreeMap::from([
            ("", fs::read(home.journal()).unwrap()),
            ("-wal", fs::read(&log).unwrap()),
            ("-shm", fs::read(beside(&home.journal(), "-shm")).unwrap()),
        ]);
        drop(open);
        let whole = repaired(&home);
        // As it was when it was killed.
        let kept = home.quarantine().join(&whole.kept);
        fs::rename(home.journal(), new_file(&home)).unwrap();
        for (number, suffix) in ["", "-wal", "-shm"].into_iter().enumerate() {
            let (from, to) = if number < steps {
                (beside(&kept, suffix), None)
            } else {
                (beside(&kept, suffix), Some(beside(&home.journal(), suffix)))
            };
            fs::remove_file(&from).ok();
            fs::write(to.unwrap_or(from), &before[suffix]).unwrap();
        }
        fs::write(copy_of_damaged(&home), "half").unwrap();
        let journal = if steps == 0 {
            // Nothing had moved: it is done again, with what was written since.
            Connection::open(home.journal())
                .unwrap()
                .execute_batch("INSERT INTO meta VALUES ('since', '1') ON CONFLICT DO NOTHING")
                .unwrap();
            assert_eq!(repaired(&home).rows, whole.rows);
            journal(&home)
        } else {
            let journal = journal(&home);
            assert_eq!(journal.last_repair().unwrap(), Some(whole));
            journal
        };
        assert!(count(&journal, "tool_event") > EVENTS - 30, "{steps}");
        assert_eq!(journal.meta("in the log").unwrap().as_deref(), Some("1"));
        assert!(!new_file(&home).exists() && !copy_of_damaged(&home).exists());
        assert_eq!(damage::examine(&home, None).unwrap(), Examination::Sound);
        if steps > 0 {
            assert!(fs::read(&kept).unwrap() == before[""]);
            assert!(fs::read(beside(&kept, "-wal")).unwrap() == before["-wal"]);
        }
    }
}

#[test]
fn a_failed_repair_leaves_no_file_and_waits() {
    let (_folder, home) = filled();
    let damaged = leaves(&home, "tool_event")[5];
    zero(&home, damaged);
    // Nothing can be moved to this place.
    let in_the_way = home.quarantine().join(".journal.db.tmp");
    fs::create_dir_all(in_the_way.join("x")).unwrap();
    let before = fs::read(home.journal()).unwrap();
    let refused = repair(&home, PATIENCE, now()).unwrap_err();
    assert!(refused.to_string().contains("quarantine"), "{refused}");
    assert!(fs::read(home.journal()).unwrap() == before);
    assert!(!copy_of_damaged(&home).exists() && !new_file(&home).exists());
    assert!(damage::is_repair_requested(&home));
    let after = |minutes| now() + chrono::TimeDelta::minutes(minutes);
    for (minutes, is_delayed) in [(0, true), (14, true), (15, false), (-1, false)] {
        assert_eq!(damage::is_repair_delayed(&home, after(minutes)), is_delayed);
    }
    fs::remove_dir_all(&in_the_way).unwrap();
    // Who asks for a repair gets it at once.
    repaired(&home);
    assert!(!damage::is_repair_delayed(&home, now()));
}

#[test]
fn an_empty_file_in_place_of_the_journal_gives_way_to_the_repaired_one() {
    let (_folder, home) = filled();
    zero(&home, leaves(&home, "tool_event")[5]);
    let repair = repaired(&home);
    // The repair was killed between its two renames, and a writer created a file.
    fs::rename(home.journal(), new_file(&home)).unwrap();
    fs::write(home.journal(), "").unwrap();
    assert_eq!(journal(&home).last_repair().unwrap(), Some(repair));
}

#[test]
fn a_writer_creates_no_file_where_a_repair_has_moved_it() {
    let (_folder, home) = fresh();
    assert!(super::super::connect(&home.journal(), PATIENCE, sqlite::open_existing).is_err());
    assert!(!home.journal().exists());
}

// Windows does not replace a journal that is open.
#[cfg(unix)]
#[test]
fn a_file_that_was_replaced_while_it_was_opened_is_not_used() {
    let (_folder, home) = filled();
    zero(&home, leaves(&home, "tool_event")[5]);
    // The file is open, its log is not yet.
    let open = |path: &Path, patience| {
        let opened = sqlite::open_existing(path, patience);
        repaired(&home);
        opened
    };
    let opened = super::super::connect(&home.journal(), PATIENCE, open);
    assert!(matches!(opened, Err(Error::Replaced)), "{opened:?}");
}

/// Without a write-ahead log, SQLite locks the file itself.
#[cfg(target_os = "linux")]
#[test]
fn the_lock_of_a_journal_without_a_log_is_kept_while_it_is_copied() {
    use std::os::unix::fs::MetadataExt as _;

    let (_folder, home) = filled();
    let connection = Connection::open(home.journal()).unwrap();
    connection
        .query_row("PRAGMA journal_mode = DELETE", [], |_| Ok(()))
        .unwrap();
    drop(connection);
    zero(&home, leaves(&home, "tool_event")[5]);
    let mut damaged = DamagedFile::open(&home.journal()).unwrap();
    let locked = lock_damaged(&home.journal(), PATIENCE).unwrap();
    drop(make(&new_file(&home)).unwrap());
    damaged.header_version().unwrap();
    drop(readable_copy(&home, &mut damaged, &new_file(&home)).unwrap());
    let inode = fs::metadata(home.journal()).unwrap().ino();
    // `/proc/locks` may leave out a lock while other processes change theirs.
    let locks: String = fs::read_dir("/proc/self/fdinfo")
        .unwrap()
        .filter_map(|entry| fs::read_to_string(entry.unwrap().path()).ok())
        .collect();
    let is_own = |line: &str| line.contains("WRITE") && line.contains(&format!(":{inode} "));
    assert!(locks.lines().any(is_own), "{locks}");
    drop(locked);
    assert_eq!(
        fs::read_dir(home.quarantine())
            .into_iter()
            .flatten()
            .count(),
        0
    );
    repaired(&home);
}

#[test]
fn the_files_beside_a_damaged_journal_move_with_it() {
    let (_folder, home) = filled();
    home::ensure_folder(&home.quarantine()).unwrap();
    fs::write(new_file(&home), "new").unwrap();
    let endings = ["-wal", "-shm", "-journal"];
    for ending in endings {
        fs::write(beside(&home.journal(), ending), ending).unwrap();
    }
    swap(&home, "journal-x.db").unwrap();
    for ending in endings {
        let kept = beside(&home.quarantine().join("journal-x.db"), ending);
        assert_eq!(fs::read_to_string(kept).unwrap(), ending);
        assert!(!beside(&home.journal(), ending).exists());
    }
}

#[test]
fn a_disk_that_cannot_read_is_no_damage() {
    let error = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_READ);
    let error = Error::from(rusqlite::Error::SqliteFailure(error, None));
    assert!(error.is_disk_failure() && !error.is_damage());
    // Linux reads nothing at the start of a process's memory.
    #[cfg(target_os = "linux")]
    {
        let error = damage::read_through(Path::new("/proc/self/mem")).unwrap_err();
        assert!(Error::from(error).is_disk_failure());
    }
}

#[test]
fn what_was_half_made_is_made_again() {
    let (_folder, home) = filled();
    drop(make(&new_file(&home)).unwrap());
    assert_eq!(header_version(&new_file(&home)), Some(0));
    fs::rename(home.journal(), home.root().join("elsewhere")).unwrap();
    // There is no journal, but what is there is no journal, either.
    take(&journal(&home), &session_of("s"));
    assert!(!new_file(&home).exists());
}

#[test]
fn damaged_files_are_dropped_in_time() {
    let (_folder, home) = fresh();
    fs::create_dir_all(home.quarantine()).unwrap();
    for name in [
        "journal-20260101T020304Z.db",
        "journal-20260101T020304Z.db-wal",
        "journal-20260101T020304Z-2.db",
        "journal-20260103T020304Z.db",
        "journal-x.db",
        "spool-x",
    ] {
        fs::write(home.quarantine().join(name), "x").unwrap();
    }
    let first = &kept_files(&home)[0];
    assert_eq!(first, "journal-20260101T020304Z.db");
    let before = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
    assert_eq!(drop_old_quarantine(&home, before), 2);
    assert_eq!(fs::read_dir(home.quarantine()).unwrap().count(), 3);
}

/// Tables whose rows keep their rowid in a repair.
const ROWID_TABLES: [&str; 4] = ["session", "prompt", "tool_event", "turn_end"];

/// The rows of a table: rowid and, for tool events, the content.
type Rows = BTreeMap<i64, String>;

fn rows_of(connection: &Connection, table: &str) -> Rows {
    let content = match table {
        "tool_event" => "session || id || input || response",
        _ => "''",
    };
    let query = format!("SELECT rowid, coalesce({content}, '') FROM {table} ORDER BY rowid");
    let mut statement = connection.prepare(&query).unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)));
    rows.unwrap().map(Result::unwrap).collect()
}

/// A row of a sound journal, with the pages that hold it.
struct PlacedRow {
    rowid: i64,
    content: String,
    leaf: usize,
    overflow: BTreeSet<usize>,
}

/// A sound journal, with the page that each row is on: what has to survive a damage follows from it.
struct Sound {
    bytes: Vec<u8>,
    /// Page, name, kind and path of each page of a table or an index.
    pages: Vec<(usize, String, String, String)>,
    rows: BTreeMap<&'static str, Vec<PlacedRow>>,
}

impl Sound {
    fn read(home: &Home) -> Self {
        let connection = Connection::open(home.journal()).unwrap();
        let mut statement = connection
            .prepare("SELECT pageno, name, pagetype, path, ncell FROM dbstat ORDER BY name, path")
            .unwrap();
        let found = statement.query_map([], |row| {
            let number = |column| row.get::<_, u32>(column).map(|number| number as usize);
            let page = (number(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
            Ok((page, number(4)?))
        });
        let pages: Vec<((usize, String, String, String), usize)> =
            found.unwrap().map(Result::unwrap).collect();
        let place_rows = |table: &&'static str| {
            let mut rows = rows_of(&connection, table).into_iter();
            let mut placed = Vec::new();
            for ((page, name, kind, path), cells) in &pages {
                if name != table || kind != "leaf" {
                    continue;
                }
                for cell in 0..*cells {
                    let chain = format!("{path}{cell:03x}+");
                    let overflow = pages
                        .iter()
                        .filter(|((.., path), _)| path.starts_with(&chain));
                    let overflow = overflow.filter(|((_, name, ..), _)| name == table);
                    let overflow = overflow.map(|((page, ..), _)| *page).collect();
                    let (rowid, content) = rows.next().unwrap();
                    placed.push(PlacedRow {
                        rowid,
                        content,
                        leaf: *page,
                        overflow,
                    });
                }
            }
            assert!(rows.next().is_none());
            (*table, placed)
        };
        Self {
            bytes: fs::read(home.journal()).unwrap(),
            rows: ROWID_TABLES.iter().map(place_rows).collect(),
            pages: pages.into_iter().map(|(page, _)| page).collect(),
        }
    }

    fn pages_of(&self, kind: &str) -> BTreeMap<&str, usize> {
        let pages = self.pages.iter().filter(|(.., found, _)| found == kind);
        pages
            .map(|(page, name, ..)| (name.as_str(), *page))
            .collect()
    }

    fn restore(&self, home: &Home) {
        remove_any(&home.journal()).ok();
        remove_beside(&home.journal()).unwrap();
        fs::write(home.journal(), &self.bytes).unwrap();
    }

    /// What is missing of the rows that a damaged file still had: those on pages that did not change, in
    /// tables that can be reached.
    fn lost(&self, damaged: &[u8], after: &Journal) -> Vec<String> {
        let page_of = |bytes: &[u8], number: usize| {
            let from = if number == 1 {
                HEADER_LENGTH
            } else {
                (number - 1) * 4096
            };
            bytes.get(from..number * 4096).map(<[u8]>::to_vec)
        };
        let count = self.bytes.len() / 4096;
        let changed: BTreeSet<usize> = (1..=count)
            .filter(|number| page_of(&self.bytes, *number) != page_of(damaged, *number))
            .collect();
        let is_reachable = |table: &str| {
            !self.pages.iter().any(|(page, name, kind, _)| {
                let leads_to = name == "sqlite_schema" || (name == table && kind == "internal");
                leads_to && changed.contains(page)
            })
        };
        let mut lost = Vec::new();
        for (table, rows) in self.rows.iter().filter(|(table, _)| is_reachable(table)) {
            let saved = rows_of(&after.connection, table);
            for row in rows {
                let is_readable =
                    !changed.contains(&row.leaf) && changed.is_disjoint(&row.overflow);
                if is_readable && saved.get(&row.rowid) != Some(&row.content) {
                    lost.push(format!("{table} {}", row.rowid));
                }
            }
        }
        lost
    }
}

/// A small journal with every kind of page: leaf, internal, overflow and free ones.
fn of_every_kind() -> (tempfile::TempDir, Home) {
    let (folder, home) = filled_with(250);
    let opened = journal(&home);
    for number in 0..60 {
        take(
            &opened,
            &session_of(&format!("s-{number}-{}", "x".repeat(40))),
        );
    }
    opened
        .connection
        .execute_batch(
            "UPDATE tool_event SET response = hex(randomblob(6000)) WHERE number % 100 = 7;
             CREATE TABLE filler (text TEXT); INSERT INTO filler SELECT hex(zeroblob(1500)) FROM tool_event;
             DROP TABLE filler;",
        )
        .unwrap();
    opened.checkpoint().unwrap();
    (folder, home)
}

/// Damages the file, repairs it, and says what is wrong after that.
fn fault_after(sound: &Sound, home: &Home, damage: &dyn Fn()) -> Option<String> {
    sound.restore(home);
    damage();
    let damaged = fs::read(home.journal()).unwrap_or_default();
    if header_version(&home.journal()).is_some_and(|version| version > VERSION) {
        return None;
    }
    let kept = kept_files(home).len();
    let repaired = match repair(home, PATIENCE, now()) {
        Ok(repaired) => repaired,
        Err(error) => return Some(format!("not repaired: {error}")),
    };
    if kept_files(home).len() != kept + usize::from(repaired.is_some()) {
        return Some("the damaged file is not kept".to_owned());
    }
    let opened = journal(home);
    let lost = sound.lost(&damaged, &opened);
    if !lost.is_empty() {
        return Some(format!(
            "{} lost, such as {} {repaired:?}",
            lost.len(),
            lost[0]
        ));
    }
    take(&opened, &session_of("new"));
    take(&opened, &[ended("open", "other")]);
    for session in opened.sessions(None, 10).unwrap() {
        opened.session_digest(&session.id).unwrap();
    }
    let noted = opened.session_digest("new").unwrap().unwrap();
    if noted.ask() != Some("Add limits to the login") {
        return Some("the next session is not noted".to_owned());
    }
    opened.checkpoint().unwrap();
    drop(opened);
    match (damage::examine(home, None), repair(home, PATIENCE, now())) {
        (Ok(Examination::Sound), Ok(None)) => None,
        other => Some(format!("after the repair: {other:?}")),
    }
}

/// A name, and what damages the journal in this way.
type Damage<'a> = (String, Box<dyn Fn() + 'a>);

/// Damages of the files that SQLite keeps beside an open journal.
fn log_damages(home: &Home) -> Vec<Damage<'_>> {
    let mut damages: Vec<Damage<'_>> = Vec::new();
    for (name, ending, cut, from, count) in [
        ("cut log", "-wal", true, 0, 0),
        ("log without a header", "-wal", false, 0, 32),
        ("frame of the log", "-wal", false, 60, 500),
        ("end of the log", "-wal", false, 4100, 200),
        ("shared memory", "-shm", false, 0, 32_768),
    ] {
        let damage = move || {
            let open = journal(home);
            open.set_meta("in the log", "1").unwrap();
            let log = [
                &home.journal(),
                &beside(&home.journal(), "-wal"),
                &beside(&home.journal(), "-shm"),
            ]
            .map(|path| (path.clone(), fs::read(path).unwrap()));
            drop(open);
            for (path, bytes) in &log {
                fs::write(path, bytes).unwrap();
            }
            let path = beside(&home.journal(), ending);
            let mut bytes = fs::read(&path).unwrap();
            if cut {
                bytes.truncate(bytes.len() / 2);
            }
            bytes
                .iter_mut()
                .skip(from)
                .take(count)
                .for_each(|byte| *byte ^= 0x5a);
            fs::write(path, bytes).unwrap();
        };
        damages.push((name.to_owned(), Box::new(damage)));
    }
    damages
}

#[test]
fn records_that_can_be_read_survive_every_damage() {
    let (_folder, home) = of_every_kind();
    let home = &home;
    let sound = &Sound::read(home);
    let length = sound.bytes.len();
    let at = |page: usize| u64::try_from((page - 1) * 4096).unwrap();
    let mut damages: Vec<Damage<'_>> = Vec::new();
    // One page of each table and index, each time in another way.
    for kind in ["leaf", "internal", "overflow"] {
        for (number, (name, page)) in sound.pages_of(kind).into_iter().enumerate() {
            let bytes = match number % 3 {
                0 => vec![0; 4096],
                1 => vec![0xff; 4096],
                _ => Random(page as u64).bytes(4096),
            };
            let damage = move || overwrite(home, at(page), &bytes);
            damages.push((format!("{kind} page of {name}"), Box::new(damage)));
        }
    }
    let used: BTreeSet<usize> = sound.pages.iter().map(|(page, ..)| *page).collect();
    let free = (3..=length / 4096)
        .filter(|page| !used.contains(page))
        .collect::<Vec<_>>();
    assert!(free.len() > 2, "{free:?}");
    for (name, page) in [
        ("pointer map", 2),
        ("free", free[0]),
        ("last free", free[free.len() - 1]),
    ] {
        let damage = move || overwrite(home, at(page), &[0xa5; 4096]);
        damages.push((format!("{name} page"), Box::new(damage)));
    }
    for (name, from, count) in [
        ("magic", 0, 16),
        ("page size", 16, 2),
        ("formats", 18, 2),
        ("reserved space", 20, 1),
        ("payload fractions", 21, 3),
        ("change count", CHANGE_COUNT, 4),
        ("page count", PAGE_COUNT, 4),
        ("free list", 32, 8),
        ("schema cookie", 40, 4),
        ("schema format", 44, 4),
        ("largest root", LARGEST_ROOT, 4),
        ("encoding", 56, 4),
        ("incremental vacuum", IS_INCREMENTAL, 4),
        ("valid for", VALID_FOR, 4),
        ("header", 0, HEADER_LENGTH),
    ] {
        let damage = move || overwrite(home, from as u64, &vec![0x5a; count]);
        damages.push((name.to_owned(), Box::new(damage)));
    }
    for left in [
        0,
        1,
        50,
        100,
        512,
        4095,
        4096,
        8192,
        length / 3,
        length / 2,
        length - 4096,
        length - 1,
    ] {
        let damage = move || {
            let file = File::options().write(true).open(home.journal()).unwrap();
            file.set_len(left as u64).unwrap();
        };
        damages.push((format!("cut to {left} bytes"), Box::new(damage)));
    }
    for more in [77, 4096, 50_000] {
        let damage = move || overwrite(home, length as u64, &Random(9).bytes(more));
        damages.push((format!("{more} bytes more"), Box::new(damage)));
    }
    for (name, bytes) in [
        ("all zeroes", vec![0; length]),
        ("all random", Random(10).bytes(length)),
        ("a text", b"these are no records".to_vec()),
    ] {
        let damage = move || fs::write(home.journal(), &bytes).unwrap();
        damages.push((name.to_owned(), Box::new(damage)));
    }
    let folder = || {
        fs::remove_file(home.journal()).unwrap();
        fs::create_dir(home.journal()).unwrap();
    };
    damages.push(("a folder".to_owned(), Box::new(folder)));
    damages.extend(log_damages(home));
    assert!(damages.len() > 100, "{}", damages.len());
    let faults: Vec<String> = damages
        .iter()
        .filter_map(|(name, damage)| Some(format!("{name}: {}", fault_after(sound, home, damage)?)))
        .collect();
    assert!(
        faults.is_empty(),
        "{} of {}:\n{}",
        faults.len(),
        damages.len(),
        faults.join("\n")
    );
}

#[test]
fn records_that_can_be_read_survive_random_damage() {
    let (_folder, home) = of_every_kind();
    let sound = Sound::read(&home);
    let length = u64::try_from(sound.bytes.len()).unwrap();
    let mut random = Random(0x5eed);
    let mut faults = Vec::new();
    for number in 0..40 {
        let page = random.below(length / PAGE) * PAGE;
        let (at, count) = match number % 4 {
            0 => (page, 4096),
            1 => (random.below(length), 1),
            2 => (page + random.below(3000), 64),
            // The header of a page.
            _ => (page + random.below(16), 2),
        };
        let bytes = random.bytes(count);
        let fault = fault_after(&sound, &home, &|| overwrite(&home, at, &bytes));
        faults.extend(fault.map(|fault| format!("{number}: {count} bytes at {at}: {fault}")));
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
