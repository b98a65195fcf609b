//! Many processes over one store: whatever they do to each other, no note is lost, and the index in
//! the end is the one that the notes alone would give.
//!
//! Nothing here measures time: `cargo xtask crash --race` does.

#![cfg(unix)]
#![expect(
    clippy::unwrap_used,
    reason = "what a test cannot set up fails the test"
)]

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::{Child, Command, Output, Stdio},
    sync::atomic::{AtomicBool, AtomicUsize, Ordering},
    thread,
    time::{Duration, SystemTime},
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType, Scope},
};
use anamnesis_store::{
    fs::{
        file::private_options,
        home::{self, Home},
        lock::{self, Subject},
    },
    notes::Notes,
};
use anamnesis_testkit::home::tested_program;
use serde_json::{Value, json};

/// How many processes run at a time.
const AT_ONCE: usize = 8;

const TIMEOUT: Duration = Duration::from_secs(30);

/// A user's machine with a project and no store yet.
struct Machine {
    folder: tempfile::TempDir,
    home: Home,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in ["project", "user/.claude/projects/project"] {
            fs::create_dir_all(folder.path().join(name)).unwrap();
        }
        let home = Home::new(folder.path().join("user/.anamnesis"));
        Self { folder, home }
    }

    fn path(&self, name: &str) -> PathBuf {
        dunce::canonicalize(self.folder.path()).unwrap().join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(tested_program(env!("CARGO_BIN_EXE_anamnesis")));
        command
            .args(arguments)
            .env_clear()
            .env("HOME", self.path("user"))
            .env("ANAMNESIS_HOME", self.home.root())
            .env("ANAMNESIS_MACHINE_ID", "laptop")
            .env("CLAUDE_PROJECT_DIR", self.path("project"))
            .current_dir(self.path("project"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command, which has to succeed, and returns what it printed.
    #[track_caller]
    fn run(&self, arguments: &[&str]) -> String {
        succeeded(&self.command(arguments).output().unwrap())
    }

    fn start_hook(&self, event: &str, session: &str) -> Child {
        let mut child = self
            .command(&["hook"])
            .stdin(Stdio::piped())
            .spawn()
            .unwrap();
        let payload = json!({
            "hook_event_name": event,
            "session_id": session,
            "transcript_path": self.transcript(session),
            "cwd": self.path("project"),
            "source": "startup",
            "reason": "other",
        });
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(payload.to_string().as_bytes()).unwrap();
        child
    }

    /// Runs a hook, which has to be well and quiet.
    #[track_caller]
    fn hook(&self, event: &str, session: &str) -> String {
        let output = self.start_hook(event, session).wait_with_output().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        succeeded(&output)
    }

    fn transcript(&self, session: &str) -> PathBuf {
        self.path(&format!("user/.claude/projects/project/{session}.jsonl"))
    }

    /// Writes the transcript of a small session.
    fn record(&self, session: &str) {
        let line = |record: Value| {
            let mut record = record;
            record["sessionId"] = session.into();
            record["cwd"] = self.path("project").to_string_lossy().into();
            record["timestamp"] = "2026-01-02T03:04:05.000Z".into();
            format!("{record}\n")
        };
        let ask = format!("find out why the index of {session} is locked");
        let text = [
            line(
                json!({"type": "user", "promptSource": "sdk", "message": {"role": "user", "content": ask}}),
            ),
            line(
                json!({"type": "assistant", "message": {"id": "msg_1", "role": "assistant", "content": [
                {"type": "tool_use", "id": "toolu_1", "name": "Edit",
                 "input": {"file_path": self.path("project/src/lock.rs"), "old_string": "a", "new_string": "b"}}]}}),
            ),
            line(
                json!({"type": "assistant", "message": {"id": "msg_2", "role": "assistant", "content": [
                {"type": "text", "text": "The reader held it."}]}}),
            ),
        ];
        fs::write(self.transcript(session), text.concat()).unwrap();
    }

    /// Puts small notes into the store as an editor would: files, and no word to anybody.
    fn plant(&self, count: usize) {
        self.home.create().unwrap();
        let folder = self.home.tree(Scope::Portable).join("semantic");
        home::ensure_folder(&folder).unwrap();
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045);
        for number in 0..count {
            let id = NoteId::of_session(&format!("planted {number}"));
            let note = Note {
                title: format!("Planted fact {number}"),
                body: format!("Block {number} of the write ahead log."),
                project: format!("project-{}", number % 10),
                ..Note::new(id, NoteType::Semantic, now.into())
            };
            let mut file = private_options()
                .create(true)
                .open(folder.join(format!("{id}.md")))
                .unwrap();
            file.write_all(note.render().as_bytes()).unwrap();
        }
    }

    fn notes(&self) -> Notes {
        Notes::new(self.home.clone(), TIMEOUT)
    }

    fn has_note_of(&self, session: &str) -> bool {
        let notes = self.notes();
        let path = notes.find(NoteId::of_session(session));
        path.is_some_and(|path| notes.read(path).is_ok_and(|stored| stored.whole))
    }

    /// Checks that the index after the race answers like one that is rebuilt.
    #[track_caller]
    fn index_equals_a_fresh_one(&self) {
        let answers = || {
            [
                self.run(&["list", "--everywhere", "--forgotten", "--json"]),
                self.run(&["search", "-k", "200", "--json", "index locked block"]),
                self.run(&["inject"]),
            ]
        };
        let kept = answers();
        self.run(&["reindex"]);
        let fresh = answers();
        assert!(kept == fresh, "the index that was kept answers otherwise");
    }

    /// Waits for deferred processes, and does what they left.
    fn work_is_done(&self) {
        let wait = || {
            let lock = fs::File::create(self.home.derived().join("work.lock")).unwrap();
            lock.lock().unwrap();
        };
        wait();
        self.run(&["work"]);
        // One that was only being started has the place by now, if it was not this one.
        wait();
    }

    #[track_caller]
    fn is_well(&self) {
        let doctor: Value = serde_json::from_str(&self.run(&["doctor", "--json"])).unwrap();
        assert_eq!(doctor["broken"], 0, "{doctor:#}");
    }
}

#[track_caller]
fn succeeded(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// Does something `count` times, several at a time.
fn in_parallel(count: usize, act: impl Fn(usize) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    if number >= count {
                        return;
                    }
                    act(number);
                }
            });
        }
    });
}

#[test]
fn captures_and_injects_go_on_while_ten_thousand_notes_are_reindexed() {
    let machine = Machine::new();
    machine.plant(10_000);
    machine.run(&["reindex"]);
    for number in 0..100 {
        machine.record(&format!("session-{number}"));
    }
    let is_over = AtomicBool::new(false);
    let rebuilt = AtomicUsize::new(0);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                machine.run(&["reindex"]);
                rebuilt.fetch_add(1, Ordering::Relaxed);
            }
        });
        // Also when an assertion fails: the scope waits for the thread above.
        let _over = Raised(&is_over);
        in_parallel(200, |number| {
            if number % 2 == 0 {
                let session = format!("session-{}", number / 2);
                let transcript = machine.transcript(&session);
                let transcript = transcript.to_str().unwrap();
                machine.run(&["capture", "--no-sync", "--transcript", transcript]);
            } else {
                let block = machine.run(&["inject", "--project", "project-3"]);
                assert!(block.contains("Planted fact"), "{block}");
            }
        });
    });
    assert!(rebuilt.load(Ordering::Relaxed) > 0);
    for number in 0..100 {
        assert!(
            machine.has_note_of(&format!("session-{number}")),
            "{number}"
        );
    }
    assert_eq!(machine.notes().list().notes.len(), 10_100);
    machine.index_equals_a_fresh_one();
    machine.is_well();
}

/// Raises a flag when it goes out of scope.
struct Raised<'a>(&'a AtomicBool);

impl Drop for Raised<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn hooks_are_answered_while_the_index_is_swapped() {
    let machine = Machine::new();
    machine.plant(50);
    machine.run(&["reindex"]);
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                machine.run(&["reindex"]);
            }
        });
        let _over = Raised(&is_over);
        in_parallel(100, |number| {
            let answer = machine.hook("SessionStart", &format!("reader-{number}"));
            assert!(serde_json::from_str::<Value>(&answer).is_ok(), "{answer}");
        });
    });
    machine.run(&["work"]);
    machine.is_well();
    machine.index_equals_a_fresh_one();
}

#[test]
fn many_first_hooks_make_one_store() {
    let machine = Machine::new();
    for number in 0..32 {
        machine.record(&format!("first-{number}"));
    }
    let children: Vec<Child> = (0..32)
        .map(|number| {
            let event = if number % 2 == 0 {
                "SessionStart"
            } else {
                "PreCompact"
            };
            machine.start_hook(event, &format!("first-{number}"))
        })
        .collect();
    for child in children {
        let output = child.wait_with_output().unwrap();
        assert!(output.stderr.is_empty(), "{output:?}");
        assert!(!succeeded(&output).is_empty());
    }
    // A hook that cannot get a lock in time leaves its note to the background worker.
    machine.work_is_done();
    for number in (1..32).step_by(2) {
        assert!(machine.has_note_of(&format!("first-{number}")), "{number}");
    }
    machine.is_well();
    machine.index_equals_a_fresh_one();
}

#[test]
fn a_note_that_waits_for_the_lock_is_no_failure_of_the_hook() {
    let machine = Machine::new();
    machine.record("waiting");
    machine.run(&["reindex"]);
    let lock = lock::acquire(&machine.home, Subject::Notes, Duration::ZERO).unwrap();
    machine.hook("PreCompact", "waiting");
    assert!(!machine.has_note_of("waiting"));
    machine.is_well();
    drop(lock);
    machine.work_is_done();
    assert!(machine.has_note_of("waiting"));
}

#[test]
fn captures_of_one_session_at_once_make_one_note() {
    let machine = Machine::new();
    machine.record("shared");
    in_parallel(16, |number| {
        if number % 2 == 0 {
            machine.hook("SessionEnd", "shared");
        } else {
            let transcript = machine.transcript("shared");
            machine.run(&["capture", "--transcript", transcript.to_str().unwrap()]);
        }
    });
    let listing = machine.notes().list();
    assert_eq!(listing.notes.len(), 1);
    assert!(machine.has_note_of("shared"));
    machine.index_equals_a_fresh_one();
}

#[test]
fn a_writer_killed_while_it_waits_or_holds_locks_nobody_out() {
    let machine = Machine::new();
    machine.plant(2_000);
    machine.record("next");
    // Its first build takes the index lock and keeps it for as long as it reads two thousand notes.
    let mut builder = machine.command(&["reindex"]).spawn().unwrap();
    let is_locked = || {
        lock::acquire(&machine.home, Subject::Index, Duration::ZERO)
            .unwrap()
            .is_none()
    };
    while !is_locked() {
        assert!(builder.try_wait().unwrap().is_none(), "it held no lock");
    }
    // While the notes are locked, a capture waits, and is killed waiting.
    let held = machine.notes().lock().unwrap();
    let mut waiting = machine.start_hook("SessionEnd", "next");
    builder.kill().unwrap();
    builder.wait().unwrap();
    waiting.kill().unwrap();
    waiting.wait().unwrap();
    drop(held);
    assert!(!is_locked());
    machine.hook("SessionEnd", "next");
    assert!(machine.has_note_of("next"));
    machine.run(&["work"]);
    machine.is_well();
    machine.index_equals_a_fresh_one();
}

#[test]
fn an_index_of_zeros_is_no_fault_that_a_hook_shows() {
    let machine = Machine::new();
    machine.plant(50);
    machine.run(&["reindex"]);
    for number in 0..40 {
        machine.record(&format!("session-{number}"));
    }
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_over.load(Ordering::Relaxed) {
                zero(&machine.home.index());
            }
        });
        let _over = Raised(&is_over);
        in_parallel(80, |number| {
            let event = if number % 2 == 0 {
                "SessionEnd"
            } else {
                "SessionStart"
            };
            machine.hook(event, &format!("session-{}", number / 2));
        });
    });
    for number in 0..40 {
        assert!(
            machine.has_note_of(&format!("session-{number}")),
            "{number}"
        );
    }
    // Damage that the last start found is repaired before the start after the next.
    machine.hook("SessionStart", "next");
    machine.work_is_done();
    machine.hook("SessionStart", "after");
    machine.is_well();
    machine.index_equals_a_fresh_one();
}

/// Writes zeros over a file in place, whatever else is done with it; a missing one stays missing.
fn zero(path: &Path) {
    if let Ok(mut file) = fs::File::options().write(true).open(path) {
        let length = file.metadata().map_or(0, |metadata| metadata.len());
        let _ = file.write_all(&vec![0; usize::try_from(length).unwrap_or(0)]);
    }
}
