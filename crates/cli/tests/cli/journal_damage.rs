//! A damaged `journal.db`: sessions are still noted, and the file is repaired in the background or by a command.

use std::{
    fs,
    io::{Seek as _, SeekFrom, Write as _},
    path::Path,
    time::{Duration, SystemTime},
};

use anamnesis_testkit::home::{TestHome, answered, asked, edited, files_below};
use rusqlite::Connection;

use crate::{
    doctor::sound,
    journal::{Played, files_with},
};

const PAGE: u64 = 4096;

/// A session that is open when the file is damaged.
const OPEN: &str = "0b1c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d21";

/// A session that starts after the damage.
const NEW: &str = "0b1c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d22";

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

/// A sound home whose journal holds sessions of months, and an open one.
fn lived_in() -> TestHome {
    let home = sound();
    let mut session = Played::new(&home, OPEN);
    session.start();
    session.says("Move the cart to its own crate");
    session.edits("cart/src/lib.rs");
    session.answers("The cart has a crate. Next: its tests.");
    home.settle();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    connection
        .execute_batch(
            "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 60)
             INSERT INTO session (id, project, folder, source, started_at, seen_at, ended_at, end_reason, state,
               first_prompt, prompts, tool_events, change, noted, noted_at)
             SELECT 'old-' || n, 'github.com/acme/shop', '/x', 'startup', n, n, n, 'other', 'completed',
               'Prompt ' || n, 3, 12, 16, 16, n FROM n;
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 3)
             INSERT INTO prompt (session, id, number, kind, privacy, text, many_tags, at)
             SELECT session.id, 'p-' || n, n, 'person', iif(n = 2, 'full', 'none'),
               iif(n = 2, NULL, 'Do the next thing, ' || n || ': ' || hex(randomblob(60))), 0, n
             FROM session, n WHERE session.id LIKE 'old-%';
             WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 12)
             INSERT INTO tool_event (session, id, prompt, prompt_id, tool, input, response, outcome, is_from_batch,
               many_tags, at)
             SELECT session.id, 't-' || n, 1, 'p-1', 'Edit', '{\"file_path\":\"src/' || n || '.rs\"}',
               '\"' || hex(randomblob(iif(n = 5, 3000, 150))) || '\"', 'ok', 0, 0, n
             FROM session, n WHERE session.id LIKE 'old-%';
             INSERT INTO file_use SELECT number, session, 'src/' || id || '.rs', 'edited' FROM tool_event
               WHERE session LIKE 'old-%';
             INSERT INTO turn_end (session, prompt_id, agent_id, agent_type, speaker, hash, text, after_event, at)
             SELECT id, 'p-1', '', '', 'main', id, 'Done: ' || hex(randomblob(100)), 1, 1 FROM session
               WHERE id LIKE 'old-%';
             INSERT INTO summary SELECT id, 'rule', 3, '{}', 1 FROM session WHERE id LIKE 'old-%';
             INSERT INTO job SELECT 'note', id, 16, 'done', 1, 1, NULL, 1 FROM session WHERE id LIKE 'old-%';
             INSERT INTO shown SELECT id, 1, 1, '01JZ00000000000000004T8WQX', 'h', 'start', 'body', 'pinned', '', 0,
               NULL FROM session WHERE id LIKE 'old-%';
             INSERT INTO session_body SELECT id, id FROM session WHERE id LIKE 'old-%';
             PRAGMA wal_checkpoint(TRUNCATE);",
        )
        .unwrap();
    drop(connection);
    let doctor = home.run("doctor");
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    home.settle();
    home
}

/// A copy of the store's files, to restore them after each damage.
struct Saved<'a> {
    home: &'a TestHome,
    files: Vec<(std::path::PathBuf, Vec<u8>)>,
}

impl<'a> Saved<'a> {
    fn new(home: &'a TestHome) -> Self {
        let files = files_below(&home.store()).into_iter();
        let files = files.map(|path| (path.clone(), fs::read(&path).unwrap()));
        Self {
            home,
            files: files.collect(),
        }
    }

    fn restore(&self) {
        for path in files_below(&self.home.store()) {
            if self.files.iter().all(|(saved, _)| *saved != path) {
                fs::remove_file(path).unwrap();
            }
        }
        for (path, bytes) in &self.files {
            if fs::read(path).ok().as_ref() != Some(bytes) {
                fs::write(path, bytes).unwrap();
            }
        }
    }
}

fn overwrite(path: &Path, at: u64, bytes: &[u8]) {
    let mut file = fs::File::options().write(true).open(path).unwrap();
    file.seek(SeekFrom::Start(at)).unwrap();
    file.write_all(bytes).unwrap();
}

/// The checks of `doctor` that are not well.
fn faults(home: &TestHome) -> Vec<String> {
    let doctor = home.run("doctor --json").json();
    let checks = doctor["checks"].as_array().unwrap().iter();
    let faults = checks.filter(|check| check["level"] == "broken" || check["level"] == "look");
    faults.map(ToString::to_string).collect()
}

/// The first value that a query returns.
fn ask(home: &TestHome, query: &str) -> String {
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    let answer = connection.query_row(query, [], |row| row.get::<_, String>(0));
    answer.unwrap_or_else(|error| error.to_string())
}

fn spooled(home: &TestHome) -> usize {
    fs::read_dir(home.store().join("spool")).map_or(0, Iterator::count)
}

fn is_noted(home: &TestHome, text: &str) -> bool {
    let mut notes = home.notes().into_iter();
    notes.any(|path| home.read(&path).contains(text))
}

/// Plays two sessions, runs `doctor --fix`, and returns the first fault that is left.
fn fault_after_sessions(home: &TestHome) -> Option<String> {
    // The open session ends, and a new one starts.
    let mut session = Played::new(home, OPEN);
    session.says("Go on");
    session.edits("cart/src/tests.rs");
    session.ends();
    let told = [
        asked("Rename the error type of the parser"),
        edited("src/parser.rs"),
        answered("It has a new name."),
    ];
    let transcript = home.write_transcript(NEW, &told);
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
    let file = fs::File::options().append(true).open(transcript).unwrap();
    file.set_modified(now).unwrap();
    let mut session = Played::new(home, NEW);
    session.start();
    session.says("Rename the error type of the parser");
    session.edits("src/parser.rs");
    session.answers("It has a new name.");
    session.ends();
    home.settle();
    // The first session's note may be taken for a person's edit, and then stays as it was.
    for text in [
        "Move the cart to its own crate",
        "src/parser.rs",
        "It has a new name.",
    ] {
        if !is_noted(home, text) {
            return Some(format!("not noted: {text}"));
        }
    }
    let _ = home.run("doctor --fix").shown();
    home.settle();
    if let Some(fault) = faults(home).pop() {
        return Some(fault);
    }
    for (query, expected) in [
        ("PRAGMA integrity_check", "ok"),
        (
            "SELECT group_concat(text) FROM prompt JOIN session ON session.id = session
             WHERE length(session.id) = 36 AND session.id LIKE '%22' AND end_reason = 'other'",
            "Rename the error type of the parser",
        ),
        // Every session in the new file is one that was there.
        (
            "SELECT format('%d', count(*)) FROM session WHERE length(id) NOT IN (5, 6, 36)",
            "0",
        ),
    ] {
        let answer = ask(home, query);
        if answer != expected {
            return Some(format!("{query}: {answer}"));
        }
    }
    (spooled(home) > 0).then(|| "records wait".to_owned())
}

/// Damages the journal `count` times; after each, no fault may be left.
fn damaged(count: u32, seed: u64, damage: impl Fn(&Path, u64, &mut Random)) {
    let home = lived_in();
    let saved = Saved::new(&home);
    let mut random = Random(seed);
    let mut faults = Vec::new();
    for number in 0..count {
        saved.restore();
        let path = home.store().join("journal.db");
        let length = fs::metadata(&path).unwrap().len();
        damage(&path, length, &mut random);
        if let Some(fault) = fault_after_sessions(&home) {
            faults.push(format!("{number}: {fault} {:?}", home.log()));
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {count}:\n{}",
        faults.len(),
        faults.join("\n")
    );
}

#[test]
fn a_bad_page_in_the_journal_does_not_stop_recording() {
    // HOOK-08
    damaged(16, 0xa11ce, |path, length, random| {
        let page = random.below(length / PAGE) * PAGE;
        let bytes = match random.below(3) {
            0 => vec![0; 4096],
            1 => vec![0xff; 4096],
            _ => random.bytes(4096),
        };
        overwrite(path, page, &bytes);
    });
}

#[test]
fn changed_bytes_in_the_journal_do_not_stop_recording() {
    damaged(16, 0xb0b, |path, length, random| {
        let (at, count) = match random.below(3) {
            // One bit of disk or memory.
            0 => (random.below(length), 1),
            // The head of a page, which says most.
            1 => (random.below(length / PAGE) * PAGE + random.below(12), 4),
            _ => (random.below(length - 3000), 3000),
        };
        // The version says whose file it is: that of another program is left alone.
        let at = if at < 100 { at + 100 } else { at };
        let count = count.min(usize::try_from(length - at).unwrap());
        overwrite(path, at, &random.bytes(count));
    });
}

#[test]
fn a_journal_cut_short_does_not_stop_recording() {
    damaged(8, 0xca7, |path, length, random| {
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_len(random.below(length)).unwrap();
    });
}

#[test]
fn garbage_for_the_header_of_the_journal_does_not_stop_recording() {
    damaged(4, 0x6a5, |path, _, random| {
        overwrite(path, 0, &random.bytes(100));
    });
}

#[test]
fn a_folder_in_place_of_the_journal_does_not_stop_recording() {
    damaged(1, 1, |path, _, _| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    });
}

#[test]
fn a_damaged_log_of_the_journal_does_not_stop_recording() {
    damaged(8, 0x106, |path, _, random| {
        // What was written since the log was folded in.
        let connection = Connection::open(path).unwrap();
        let written = "INSERT INTO meta VALUES ('a name', 'a value')";
        connection.execute_batch(written).unwrap();
        let (log, memory) = (path.with_extension("db-wal"), path.with_extension("db-shm"));
        let kept = [path, &log, &memory].map(|path| (path.to_owned(), fs::read(path).unwrap()));
        drop(connection);
        for (path, bytes) in &kept {
            fs::write(path, bytes).unwrap();
        }
        let length = kept[1].1.len();
        match random.below(4) {
            0 => fs::write(&log, random.bytes(5000)).unwrap(),
            1 => fs::write(&log, &kept[1].1[..length / 2]).unwrap(),
            2 => fs::write(&memory, random.bytes(32 * 1024)).unwrap(),
            _ => {
                let at = random.below(u64::try_from(length).unwrap() - 64);
                overwrite(&log, at, &random.bytes(64));
            }
        }
    });
}

/// Zeroes the first page of a table.
fn zero(home: &TestHome, table: &str) {
    let path = home.store().join("journal.db");
    let connection = Connection::open(&path).unwrap();
    let page: u32 = connection
        .query_row(
            "SELECT rootpage FROM sqlite_schema WHERE name = ?",
            [table],
            |row| row.get(0),
        )
        .unwrap();
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .unwrap();
    drop(connection);
    overwrite(&path, u64::from(page - 1) * PAGE, &[0; 4096]);
}

#[test]
fn the_person_is_told_once_that_the_journal_was_repaired() {
    let home = lived_in();
    zero(&home, "job");
    let start = |name: &str, now: &str| {
        let hook = home.hook_with(home.start(name, "startup").to_string());
        let hook = hook.env("CLAUDE_CODE_ENTRYPOINT", "cli");
        let answer = hook.env("ANAMNESIS_NOW", now).run().json();
        home.settle();
        answer["systemMessage"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    // This hook meets the damage; it is not repaired yet.
    assert!(!start("a", "2026-01-02T04:00:00Z").contains("damaged"));
    let told = start("b", "2026-01-02T04:01:00Z");
    assert!(
        told.starts_with("anamnesis: journal.db was damaged: 1,")
            && told.ends_with(" rows saved, some lost; it is kept in quarantine/"),
        "{told}"
    );
    assert!(!start("c", "2026-01-02T04:02:00Z").contains("damaged"));
    assert!(!start("d", "2026-01-03T04:02:00Z").contains("damaged"));
    // A second repair is told again, on another day.
    zero(&home, "shown");
    assert_eq!(home.run("maintain").code, Some(0));
    assert!(start("e", "2026-01-04T04:02:00Z").contains("damaged"));
}

#[test]
fn a_repair_that_failed_is_tried_again_after_a_while() {
    let home = lived_in();
    zero(&home, "job");
    let in_the_way = home.store().join("quarantine");
    let _ = fs::remove_dir_all(&in_the_way);
    fs::write(&in_the_way, "").unwrap();
    let tries = || {
        let log = home.log();
        log.iter()
            .filter(|line| line.contains("not repaired"))
            .count()
    };
    let start = |now: &str| {
        let hook = home.hook_with(home.start(now, "startup").to_string());
        let _ = hook.env("ANAMNESIS_NOW", now).run();
        home.settle();
        tries()
    };
    start("2026-01-02T04:00:00Z");
    assert_eq!(tries(), 1);
    assert_eq!(start("2026-01-02T04:14:00Z"), 1);
    assert_eq!(start("2026-01-02T04:16:00Z"), 2);
    let by_hand = home.command(["maintain"]);
    let _ = by_hand.env("ANAMNESIS_NOW", "2026-01-02T04:17:00Z").run();
    assert_eq!(tries(), 3);
    fs::remove_file(in_the_way).unwrap();
    assert_eq!(start("2026-01-02T04:33:00Z"), 3);
    let is_repaired = |line: &String| line.contains("journal.db was damaged: ");
    assert!(home.log().iter().any(is_repaired), "{:?}", home.log());
}

#[test]
fn doctor_repairs_nothing_beside_the_deferred_process() {
    let home = lived_in();
    zero(&home, "job");
    let work = home.hold_background();
    let before = fs::read(home.store().join("journal.db")).unwrap();
    let _ = home.run("doctor --fix");
    assert!(fs::read(home.store().join("journal.db")).unwrap() == before);
    drop(work);
    assert!(
        home.run("doctor --fix")
            .stdout
            .contains("fixed: journal.db was damaged")
    );
}

#[test]
fn doctor_and_maintain_repair_what_doctor_finds() {
    for (command, says) in [
        ("doctor --fix", "fixed: journal.db was damaged: 1,"),
        ("maintain", "journal.db was damaged: 1,"),
    ] {
        let home = lived_in();
        zero(&home, "job");
        let doctor = home.run("doctor");
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        for line in [
            "✗ records    journal.db is damaged\n",
            "→ anamnesis doctor --fix   (repairs a damaged journal.db)\n",
        ] {
            assert!(doctor.stdout.contains(line), "{line}: {doctor:?}");
        }
        // Without --fix, doctor repairs nothing.
        home.settle();
        assert_eq!(home.run("doctor").code, Some(1));
        let repaired = home.run(command);
        assert_eq!(repaired.code, Some(0), "{repaired:?}");
        assert!(repaired.stdout.contains(says), "{repaired:?}");
        home.settle();
        let doctor = home.run("doctor");
        assert_eq!(doctor.code, Some(0), "{doctor:?}");
        assert!(doctor.stdout.contains("nothing to do\n"), "{doctor:?}");
        // A clock that has jumped counts a day later.
        for now in ["2026-02-02T03:04:05Z", "2026-02-03T03:04:05Z"] {
            let later = home.command(["maintain"]).env("ANAMNESIS_NOW", now);
            later.run().well();
        }
        let kept = home.store().join("quarantine");
        assert_eq!(fs::read_dir(kept).unwrap().count(), 0);
    }
}

#[test]
fn a_hook_that_meets_damage_repairs_nothing_and_spools_its_record() {
    // HOOK-08
    let home = lived_in();
    zero(&home, "hook");
    let path = home.store().join("journal.db");
    let before = fs::read(&path).unwrap();
    let held = home.hold_background();
    let mut session = Played::new(&home, OPEN);
    session.says("Go on");
    session.edits("cart/src/tests.rs");
    assert_eq!(spooled(&home), 2);
    assert!(fs::read(&path).unwrap() == before);
    // Once a repair is requested, no hook waits for a lock: the watch would end it after 1.1 s.
    let connection = Connection::open(&path).unwrap();
    connection.execute_batch("BEGIN IMMEDIATE").unwrap();
    session.edits("cart/src/more.rs");
    assert_eq!(spooled(&home), 3);
    connection.execute_batch("ROLLBACK").unwrap();
    drop((connection, held));
    session.ends();
    home.settle();
    assert_eq!((spooled(&home), faults(&home)), (0, vec![]));
    let paths = "SELECT group_concat(path) FROM file_use WHERE path LIKE 'cart/src/%'";
    assert_eq!(
        ask(&home, paths),
        "cart/src/lib.rs,cart/src/tests.rs,cart/src/more.rs"
    );
}

#[test]
fn a_command_that_meets_damage_has_it_repaired() {
    let home = lived_in();
    zero(&home, "session");
    let refused = home.run("sessions --everywhere");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(
        refused.stderr.contains("repaired in the background"),
        "{refused:?}"
    );
    home.settle();
    home.run("sessions --everywhere").well();
    assert_eq!(home.run("doctor").code, Some(0));
}

#[test]
fn damage_that_no_hook_meets_is_repaired_the_next_day() {
    let home = lived_in();
    // No hook reads the receipts.
    zero(&home, "agent_note");
    assert_eq!(home.run("doctor").code, Some(1));
    let hook = home.hook_with(home.start(NEW, "startup").to_string());
    hook.env("ANAMNESIS_NOW", "2026-01-03T03:04:05Z")
        .run()
        .well();
    let end = home.hook_with(home.payload("SessionEnd", NEW).to_string());
    end.env("ANAMNESIS_NOW", "2026-01-03T03:04:06Z")
        .run()
        .well();
    home.settle();
    assert_eq!(faults(&home), [""; 0]);
    assert_eq!(ask(&home, "PRAGMA integrity_check"), "ok");
}

#[test]
fn what_is_private_does_not_reach_the_spool_of_a_damaged_journal() {
    // CAP-03
    let (secret, other) = ("heron-4821-lagoon", "ibis-7734-marsh");
    let home = lived_in();
    // The hook's own row is written last, so everything else can still be read.
    zero(&home, "hook");
    let held = home.hold_background();
    let mut session = Played::new(&home, OPEN);
    session.says(&format!("Use <private>{secret}</private> and go on"));
    let echo = serde_json::json!({ "command": format!("echo {secret}") });
    session.uses("Bash", &echo, &serde_json::json!({ "stdout": secret }));
    session.says("<private>Now something else</private>");
    let command = serde_json::json!({ "command": format!("cat {other}") });
    session.uses("Bash", &command, &serde_json::json!({ "stdout": other }));
    session.answers(&format!("It says {other}."));
    assert_eq!(spooled(&home), 5);
    for text in [secret, other] {
        assert_eq!(files_with(&home, text.as_bytes()), [""; 0], "{text}");
    }
    drop(held);
    session.ends();
    home.settle();
    assert_eq!(
        (spooled(&home), faults(&home).len()),
        (0, 0),
        "{:?}",
        home.log()
    );
    for text in [secret, other] {
        assert_eq!(files_with(&home, text.as_bytes()), [""; 0], "{text}");
    }
}

#[test]
fn a_prompt_keeps_no_text_while_the_private_words_cannot_be_read() {
    // CAP-03
    let secret = "heron-4821-lagoon";
    let home = lived_in();
    let mut session = Played::new(&home, OPEN);
    session.says(&format!("Use <private>{secret}</private> and go on"));
    home.settle();
    zero(&home, "private_token");
    let held = home.hold_background();
    session.says(&format!("Is {secret} right?"));
    assert_eq!(files_with(&home, secret.as_bytes()), [""; 0]);
    drop(held);
    session.ends();
    home.settle();
    assert_eq!(files_with(&home, secret.as_bytes()), [""; 0]);
}

#[test]
fn what_happens_under_a_prompt_that_was_lost_is_not_kept() {
    // CAP-03
    let other = "ibis-7734-marsh";
    let home = lived_in();
    let mut session = Played::new(&home, OPEN);
    session.says("<private>Now something else</private>");
    home.settle();
    zero(&home, "prompt");
    assert_eq!(home.run("doctor --fix").code, Some(0));
    // The prompt that made this private is lost.
    let command = serde_json::json!({ "command": format!("cat {other}") });
    session.uses("Bash", &command, &serde_json::json!({ "stdout": other }));
    session.answers(&format!("It says {other}."));
    session.ends();
    home.settle();
    assert_eq!(files_with(&home, other.as_bytes()), [""; 0]);
    let mut session = Played::new(&home, NEW);
    session.start();
    session.uses("Bash", &command, &serde_json::json!({ "stdout": other }));
    assert!(!files_with(&home, other.as_bytes()).is_empty());
}
