//! Tests of the repair: what is saved after damage of every kind.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{Seek as _, Write as _},
    thread,
};

use anamnesis_note::id::NoteId;
use anamnesis_session::event::{PrivateTokenHash, SessionEvent};
use anamnesis_text::private_tokens::{Key, hashes_of};

use super::super::tests::{
    count, ended, event, fresh, now, prompted, session_of, started, take, under, used,
};
use super::*;

/// SQLite's default page size, in bytes.
const PAGE: u64 = 4096;

const TIMEOUT: Duration = Duration::from_secs(5);

/// How many tool events the session has that goes on, where much has to be read.
const EVENTS: i64 = 1_200;

/// A journal of many pages, its log folded in and closed: a session that is over, one that goes on
/// under a prompt that is not private, notes that are known, a value, and a secret of the session.
fn filled() -> (tempfile::TempDir, Home) {
    filled_with(EVENTS)
}

fn filled_with(events: i64) -> (tempfile::TempDir, Home) {
    let (folder, home) = fresh();
    let journal = Journal::open(&home, TIMEOUT).unwrap();
    take(&journal, &session_of("over"));
    let secret = hashes_of(&Key::new([7; 16]), "heron-4821-lagoon");
    let echo = |hash| PrivateTokenHash {
        key: Key::new([7; 16]),
        hash,
    };
    let start = SessionEvent {
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
    let repair = repair(home, TIMEOUT, now()).unwrap();
    repair.expect("the journal is damaged")
}

fn journal(home: &Home) -> Journal {
    Journal::open(home, TIMEOUT).unwrap()
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
    assert_eq!(damage::examine(&home, None).unwrap(), None);
    fs::remove_file(home.journal()).unwrap();
    assert!(request_and_repair(&home).is_none());
    assert!(!home.journal().exists());
}

fn request_and_repair(home: &Home) -> Option<Repair> {
    assert!(damage::request_repair(home));
    assert!(!damage::request_repair(home) && damage::is_repair_requested(home));
    let repair = repair(home, TIMEOUT, now()).unwrap();
    assert!(!damage::is_repair_requested(home));
    repair
}

#[test]
fn a_check_over_its_time_limit_finds_nothing() {
    let (_folder, home) = filled();
    assert_eq!(damage::examine(&home, Some(Duration::ZERO)).unwrap(), None);
}

#[test]
fn the_newest_rows_up_to_a_bad_page_are_saved() {
    let (_folder, home) = filled();
    let pages = leaves(&home, "tool_event");
    zero(&home, pages[pages.len() / 2]);
    let repair = repaired(&home);
    assert_eq!(repair.incomplete, ["tool_event", "file_use"]);
    let journal = journal(&home);
    let (events, files) = (count(&journal, "tool_event"), count(&journal, "file_use"));
    assert!(events > EVENTS / 3 && events < EVENTS * 2 / 3, "{events}");
    assert_eq!(events, files);
    assert_eq!(
        count(
            &journal,
            &format!("tool_event WHERE id = 'e{}'", EVENTS - 1)
        ),
        1
    );
    assert_eq!(count(&journal, "prompt"), 301);
    assert_eq!(count(&journal, "known_note"), 400);
    assert_eq!(journal.meta("a name").unwrap().as_deref(), Some("kept"));
    assert_eq!(journal.last_repair().unwrap(), Some(repair));
    assert_eq!(kept_files(&home).len(), 1);
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
fn a_journal_with_garbage_for_a_header_is_kept_and_gives_way() {
    let (_folder, home) = filled();
    overwrite(&home, 0, &Random(11).bytes(100));
    assert!(Journal::open(&home, TIMEOUT).unwrap_err().is_damage());
    let damaged = fs::read(home.journal()).unwrap();
    let repair = repaired(&home);
    assert_eq!(repair.rows, 0);
    let kept = fs::read(home.quarantine().join(&repair.kept)).unwrap();
    assert!(kept == damaged);
    assert!(!new_file(&home).exists() && home.open_to_others().is_empty());
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
        assert!(Journal::open(&home, TIMEOUT).unwrap_err().is_damage());
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
        assert!(Journal::open(&home, TIMEOUT).unwrap_err().is_damage());
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
    // The row is left out, and so are the rows that refer to it.
    assert!(journal.session("over").unwrap().is_none());
    assert_eq!(count(&journal, "tool_event"), EVENTS);
    // The next event makes it again.
    take(
        &journal,
        &[under("p-9", used("over", event("late", "Edit", "late.rs")))],
    );
    assert!(journal.session("over").unwrap().is_some());
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
        let refused = repair(&home, TIMEOUT, now()).unwrap_err();
        assert!(matches!(refused, Error::Newer(99)), "{refused}");
        assert!(fs::read(home.journal()).unwrap() == before);
        assert!(kept_files(&home).is_empty() && !damage::is_repair_requested(&home));
    }
}

#[test]
fn a_session_from_before_a_repair_stays_private() {
    // CAP-03
    for table in ["prompt", "session", "private_token", "meta", "tool_event"] {
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
        assert!(!journal.has_private_part("new").unwrap());
        take(&journal, &[started("open", "compact")]);
        assert!(journal.is_private("open", None).unwrap());
        if table != "session" {
            assert!(journal.has_private_part("over").unwrap());
            take(&journal, &[started("over", "resume")]);
            assert!(!journal.is_unsure("over").unwrap());
            assert!(journal.has_private_part("over").unwrap());
        }
        let month = 31 * 24 * 60 * 60 * 1000;
        journal
            .expire_unsure(now().timestamp_millis() + month)
            .unwrap();
        assert!(!journal.is_private("never heard of", None).unwrap());
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
            while Journal::open(&home, TIMEOUT)
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
        let log = with_suffix(&home.journal(), "-wal");
        assert!(fs::metadata(&log).unwrap().len() > 0);
        let before: BTreeMap<&str, Vec<u8>> = BTreeMap::from([
            ("", fs::read(home.journal()).unwrap()),
            ("-wal", fs::read(&log).unwrap()),
            (
                "-shm",
                fs::read(with_suffix(&home.journal(), "-shm")).unwrap(),
            ),
        ]);
        drop(open);
        let whole = repaired(&home);
        // As it was when it was killed.
        let kept = home.quarantine().join(&whole.kept);
        fs::rename(home.journal(), new_file(&home)).unwrap();
        for (number, suffix) in ["", "-wal", "-shm"].into_iter().enumerate() {
            let (from, to) = if number < steps {
                (with_suffix(&kept, suffix), None)
            } else {
                (
                    with_suffix(&kept, suffix),
                    Some(with_suffix(&home.journal(), suffix)),
                )
            };
            fs::remove_file(&from).ok();
            fs::write(to.unwrap_or(from), &before[suffix]).unwrap();
        }
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
        assert!(count(&journal, "tool_event") > EVENTS * 3 / 4, "{steps}");
        assert_eq!(journal.meta("in the log").unwrap().as_deref(), Some("1"));
        assert!(!new_file(&home).exists());
        assert_eq!(damage::examine(&home, None).unwrap(), None);
        if steps > 0 {
            assert!(fs::read(&kept).unwrap() == before[""]);
            assert!(fs::read(with_suffix(&kept, "-wal")).unwrap() == before["-wal"]);
        }
    }
}

#[test]
fn a_failed_repair_leaves_no_file_and_waits() {
    let (_folder, home) = filled();
    let damaged = leaves(&home, "tool_event")[5];
    zero(&home, damaged);
    // No folder can be made in this place.
    fs::write(home.quarantine(), "").unwrap();
    let before = fs::read(home.journal()).unwrap();
    let refused = repair(&home, TIMEOUT, now()).unwrap_err();
    assert!(refused.to_string().contains("quarantine"), "{refused}");
    assert!(fs::read(home.journal()).unwrap() == before);
    assert!(!new_file(&home).exists());
    assert!(damage::is_repair_requested(&home));
    let after = |minutes| now() + chrono::TimeDelta::minutes(minutes);
    for (minutes, is_delayed) in [(0, true), (14, true), (15, false), (-15, false)] {
        assert_eq!(damage::is_repair_delayed(&home, after(minutes)), is_delayed);
    }
    fs::remove_file(home.quarantine()).unwrap();
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
    assert!(super::super::connect(&home.journal(), TIMEOUT, sqlite::open_existing).is_err());
    assert!(!home.journal().exists());
}

// Windows does not replace a journal that is open.
#[cfg(unix)]
#[test]
fn a_file_that_was_replaced_while_it_was_opened_is_not_used() {
    let (_folder, home) = filled();
    zero(&home, leaves(&home, "tool_event")[5]);
    // The file is open, its log is not yet.
    let open = |path: &Path, timeout| {
        let opened = sqlite::open_existing(path, timeout);
        repaired(&home);
        opened
    };
    let opened = super::super::connect(&home.journal(), TIMEOUT, open);
    assert!(matches!(opened, Err(Error::Replaced)), "{opened:?}");
}

#[test]
fn the_files_beside_a_damaged_journal_move_with_it() {
    let (_folder, home) = filled();
    home::ensure_folder(&home.quarantine()).unwrap();
    fs::write(new_file(&home), "new").unwrap();
    let endings = ["-wal", "-shm", "-journal"];
    for ending in endings {
        fs::write(with_suffix(&home.journal(), ending), ending).unwrap();
    }
    swap(&home, "journal-x.db").unwrap();
    for ending in endings {
        let kept = with_suffix(&home.quarantine().join("journal-x.db"), ending);
        assert_eq!(fs::read_to_string(kept).unwrap(), ending);
        assert!(!with_suffix(&home.journal(), ending).exists());
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

#[test]
fn a_session_is_noted_after_random_damage() {
    let (_folder, home) = filled_with(250);
    let sound = fs::read(home.journal()).unwrap();
    let length = u64::try_from(sound.len()).unwrap();
    let mut random = Random(0x5eed);
    for number in 0..40 {
        sqlite::remove(&home.journal()).unwrap();
        fs::write(home.journal(), &sound).unwrap();
        let page = random.below(length / PAGE) * PAGE;
        let (at, count) = match number % 5 {
            0 => (page, 4096),
            1 => (random.below(length), 1),
            2 => (page + random.below(3000), 64),
            3 => (page + random.below(16), 2),
            _ => (random.below(length), 0),
        };
        if count == 0 {
            let file = File::options().write(true).open(home.journal()).unwrap();
            file.set_len(at).unwrap();
        }
        overwrite(&home, at, &random.bytes(count));
        if header_version(&home.journal()).is_some_and(|version| version > VERSION) {
            continue;
        }
        let place = format!("{number}: {count} bytes at {at}");
        let kept = kept_files(&home).len();
        let is_repaired = repair(&home, TIMEOUT, now()).expect(&place).is_some();
        assert_eq!(kept_files(&home).len(), kept + usize::from(is_repaired));
        let opened = journal(&home);
        take(&opened, &session_of("new"));
        take(&opened, &[ended("open", "other")]);
        for session in opened.sessions(None, 10).unwrap() {
            opened.session_digest(&session.id).unwrap();
        }
        let noted = opened.session_digest("new").unwrap().unwrap();
        assert_eq!(noted.ask(), Some("Add limits to the login"), "{place}");
        opened.checkpoint().unwrap();
        drop(opened);
        let after = repair(&home, TIMEOUT, now()).unwrap();
        assert!(after.is_none(), "{place}: {after:?}");
    }
}

#[test]
fn a_note_of_before_is_replaced_only_if_no_row_of_its_session_is_lost() {
    for (table, is_ours) in [("known_note", true), ("prompt", false), ("session", false)] {
        let (_folder, home) = filled();
        journal(&home).session_body_written("open", "text").unwrap();
        journal(&home).checkpoint().unwrap();
        zero(&home, leaves(&home, table)[0]);
        repaired(&home);
        let found = journal(&home).is_session_body("open", "text").unwrap();
        assert_eq!(found, is_ours, "{table}");
    }
}
