//! Stores that are missing, broken, locked or in use: hooks go on, nothing is lost, the next run heals.

use std::{fs, path::Path, process::Child};

use anamnesis_testkit::home::{
    Invocation, NoteText, TestHome, USER_HOME, answered, asked, edited, files_below, printed,
};
use rusqlite::Connection;

use serde_json::json;

use crate::{
    NO_OP, SESSION, home, home_with_notes, id, index, outlast_hooks, serve::Client, untouched_home,
};

/// Runs a hook for every event that is acted on, and checks that each ends as it should.
fn run_all(home: &TestHome, name: &str) {
    home.write_transcript(
        SESSION,
        &[asked("Add limits to the login"), edited("/x/limit.rs")],
    );
    for event in [
        "SessionStart",
        "UserPromptSubmit",
        "PreCompact",
        "SessionEnd",
    ] {
        let mut payload = home.payload(event, SESSION);
        payload["prompt"] = "Add limits to the login".into();
        let output = home.hook(&payload);
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{name}: {event}"
        );
        assert!(
            // Before a compaction, text is printed.
            output.stdout.is_empty() || event == "PreCompact" || output.json().is_object(),
            "{name}: {output:?}"
        );
    }
    home.settle();
}

/// Checks that the five notes of the home_with_notes home and the session's are there and are found.
fn all_is_there(home: &TestHome, name: &str) {
    // Whatever could not be done then is done by the next session.
    home.hook(&home.start("the next session", "startup")).well();
    home.settle();
    let listed = home.run("list --everywhere --json");
    assert_eq!(listed.json()["total"], 6, "{name}: {listed:?}");
    let next = home.hook(&home.start("and one more", "startup")).well();
    assert!(next.contains("Add limits to the login"), "{name}: {next}");
    assert!(next.contains("stub server"), "{name}: {next}");
}

#[test]
fn no_home_is_known() {
    let home = untouched_home();
    let payload = home.start(SESSION, "startup").to_string();
    let hook = || home.hook_with(payload.clone()).without("ANAMNESIS_HOME");
    assert_eq!(hook().without(USER_HOME).run().well(), NO_OP);
    assert_eq!(hook().env(USER_HOME, "").run().well(), NO_OP);
    assert_eq!(hook().env(USER_HOME, "relative").run().well(), NO_OP);
    assert!(!home.store().exists());
}

#[test]
fn a_home_that_is_missing_is_made() {
    let home = home();
    let user = home.root().join("not/yet/there");
    let store = user.join(".anamnesis");
    let index = index(&store);
    // On a busy machine a hook may give up before it has started the deferred process; the next one
    // does.
    for _ in 0..5 {
        let payload = home.start(SESSION, "startup").to_string();
        let hook = home.hook_with(payload).env(USER_HOME, &user);
        assert_eq!(hook.run().well(), NO_OP);
        home.settle();
        if index.is_file() {
            break;
        }
    }
    assert!(store.join("memory").is_dir() && index.is_file());
}

#[cfg(unix)]
mod links {
    //! A store whose path has symbolic links: `/home` may be one, `~/.anamnesis` may be one.

    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;
    use crate::{doctor::checked, snapshot};

    /// Makes a folder for the owner alone.
    fn private(folder: &Path) {
        fs::create_dir_all(folder).unwrap();
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// Sets another home, whose settings trust no variable.
    fn as_in<'a>(run: Invocation<'a>, user: &Path) -> Invocation<'a> {
        let run = run.env(USER_HOME, user).without("ANAMNESIS_HOME");
        run.without("ANAMNESIS_MACHINE_ID").without("ANAMNESIS_NOW")
    }

    /// Plays a session of the user with this home folder, from the first hook to its note, and checks
    /// that commands work with the store.
    fn play_session(home: &TestHome, user: &Path, session: &str) {
        let prompt = format!("Add limits to {session}");
        home.write_transcript(session, &[asked(&prompt), edited("/x/limit.rs")]);
        for event in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
            let mut payload = home.payload(event, session);
            payload["prompt"] = prompt.clone().into();
            let hook = home.hook_with(payload.to_string());
            as_in(hook, user).run().well();
            home.settle();
        }
        let run = |words: &str| as_in(home.command(words.split_whitespace()), user).run();
        let spool = fs::read_dir(user.join(".anamnesis/spool"));
        assert_eq!(spool.into_iter().flatten().count(), 0);
        let found = run(&format!("search {session}")).well();
        assert!(found.contains(&prompt), "{found}");
        let sessions = run("sessions --json").well();
        assert!(sessions.contains(session), "{sessions}");
        assert!(run("init").well().contains("init: done"));
        run("sync").well();
        let status = run("status").well();
        assert!(status.contains("~/.anamnesis"), "{status}");
        let doctor = run("doctor").well();
        assert!(doctor.contains("✓ store      ~/.anamnesis"), "{doctor}");
    }

    #[test]
    fn a_session_is_noted_where_the_home_folder_is_a_link() {
        // PATH-03
        let home = home();
        fs::rename(home.user(), home.root().join("volume")).unwrap();
        symlink("volume", home.user()).unwrap();
        play_session(&home, &home.user(), "the-login");
        assert!(home.root().join("volume/.anamnesis/journal.db").is_file());
    }

    #[test]
    fn a_session_is_noted_where_a_folder_above_the_home_is_a_link() {
        let home = home();
        private(&home.root().join("volume/ann"));
        symlink("volume", home.root().join("homes")).unwrap();
        play_session(&home, &home.root().join("homes/ann"), "the-login");
        let journal = home.root().join("volume/ann/.anamnesis/journal.db");
        assert!(journal.is_file());
    }

    #[test]
    fn a_session_is_noted_where_the_store_is_a_link() {
        let home = home();
        private(&home.root().join("volume"));
        symlink("../volume", home.store()).unwrap();
        play_session(&home, &home.user(), "the-login");
        assert!(home.root().join("volume/journal.db").is_file());
    }

    #[test]
    fn a_session_is_noted_after_the_store_was_replaced_by_a_link() {
        let home = home();
        home.run("init --link").well();
        play_session(&home, &home.user(), "the-login");
        let moved = home.root().join("volume");
        fs::rename(home.store(), &moved).unwrap();
        symlink(&moved, home.store()).unwrap();
        play_session(&home, &home.user(), "the-search");
        assert_eq!(home.notes().len(), 2);
        // The link to the command for a terminal is still recognised.
        let plan = home.run("init --print").well();
        assert!(plan.contains("command  ~/.local/bin/anamnesis\n"), "{plan}");
        // A session in the store's folder is not recorded, whichever path names it.
        for folder in [home.store(), moved] {
            let mut payload = home.start("a-look-at-the-notes", "startup");
            payload["cwd"] = folder.to_string_lossy().into();
            let hook = home.hook_with(payload.to_string());
            hook.env("CLAUDE_PROJECT_DIR", &folder).run().well();
            home.settle();
        }
        let sessions = home.run("sessions --json").well();
        assert!(!sessions.contains("a-look-at-the-notes"), "{sessions}");
    }

    #[test]
    fn a_dangling_link_to_the_store_is_one_clear_error() {
        let home = home();
        let gone = home.root().join("unmounted/notes");
        symlink(&gone, home.store()).unwrap();
        for event in ["SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"] {
            assert_eq!(home.hook(&home.payload(event, SESSION)).well(), NO_OP);
        }
        home.settle();
        // Nothing here can trust the variable.
        let doctor = home.command(["doctor"]).without("ANAMNESIS_MACHINE_ID");
        snapshot!(checked(&doctor.run()), @"
        exit 1
        ? plugin     0.1.0; Claude Code lists no plugin of that name
                     → /plugin install anamnesis --marketplace [PLUGIN]
        ? hooks      cannot be told without the store
        ✗ store      cannot open the store [ROOT]/home/.anamnesis: [ROOT]/home/.anamnesis is a symbolic link to [ROOT]/unmounted/notes, expected a folder there: No such file or directory (os error 2)
                     → mount or create the folder that the link points to, or replace the link
        ✓ others     no other memory found
        1 broken
        ");
        let status = home.run("status");
        snapshot!(status.shown(), @"
        exit 1
        on stderr:
        anamnesis: cannot open the store [ROOT]/home/.anamnesis: [ROOT]/home/.anamnesis is a symbolic link to [ROOT]/unmounted/notes, expected a folder there: No such file or directory (os error 2)
        → mount or create the folder that the link points to, or replace the link
        ");
        for command in ["search x", "config list", "init", "sync", "project"] {
            assert_eq!(home.run(command), status, "{command}");
        }
        assert_eq!(home.run("doctor --fix").code, Some(1));
        // Nothing is made in the place of the target. Once it is mounted, sessions are noted.
        assert!(!home.root().join("unmounted").exists());
        private(&gone);
        play_session(&home, &home.user(), "the-login");
        let doctor = home.run("doctor").well();
        let expected = "✓ store      ~/.anamnesis (at [ROOT]/unmounted/notes), writable";
        assert!(doctor.contains(expected), "{doctor}");
    }

    #[test]
    fn a_loop_of_links_is_one_clear_error() {
        let home = home();
        symlink("loop", home.store()).unwrap();
        symlink(".anamnesis", home.user().join("loop")).unwrap();
        assert_eq!(home.hook(&home.start(SESSION, "startup")).well(), NO_OP);
        home.settle();
        let status = home.run("status");
        assert_eq!(status.code, Some(1), "{status:?}");
        let expected = "[ROOT]/home/.anamnesis is a symbolic link to [ROOT]/home/loop, expected";
        assert!(status.stderr.contains(expected), "{status:?}");
        let doctor = home.run("doctor");
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        assert!(doctor.stdout.contains("✗ store"), "{doctor:?}");
    }

    #[test]
    fn a_link_in_the_place_of_a_database_is_not_followed() {
        // PATH-03
        let home = home_with_notes();
        home.run("reindex").well();
        let outside = home.root().join("outside");
        fs::create_dir(&outside).unwrap();
        let files = [home.store().join("journal.db"), index(&home.store())];
        for (path, database) in files.into_iter().zip(["journal.db", "index"]) {
            let target = outside.join("theirs.db");
            fs::write(&target, "").unwrap();
            fs::remove_file(&path).ok();
            symlink(&target, &path).unwrap();
            run_all(&home, database);
            let doctor = home.run("doctor").stdout;
            // The journal cannot be used; a new index replaces the link.
            let is_refused = doctor.contains("✗ store      journal.db: ");
            assert_eq!(is_refused, database == "journal.db", "{doctor}");
            assert_eq!(fs::read(&target).unwrap(), b"", "{database}");
            assert_eq!(fs::read_dir(&outside).unwrap().count(), 1, "{database}");
            fs::remove_file(&path).ok();
        }
    }
}

#[test]
fn a_file_in_the_place_of_a_folder() {
    // HOOK-08, PATH-03
    for place in ["", "memory", "local", "derived", "trash", "log", "index"] {
        let home = home();
        let path = match place {
            "" => home.store(),
            "index" => index(&home.store()).with_extension("db-wal"),
            place => home.store().join(place),
        };
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "in the way").unwrap();
        run_all(&home, place);
        if place != "index" {
            assert_eq!(fs::read_to_string(&path).unwrap(), "in the way", "{place}");
        }
        // Out of the way again, the next session is noted.
        fs::remove_file(&path).ok();
        run_all(&home, place);
        assert_eq!(home.run("list --json").json()["total"], 1, "{place}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_in_the_place_of_a_folder_is_not_followed() {
    // PATH-03
    for place in ["memory", "local", "derived", "trash", "log"] {
        let home = home();
        let outside = home.root().join("outside");
        fs::create_dir_all(&outside).unwrap();
        fs::create_dir_all(home.store()).unwrap();
        std::os::unix::fs::symlink(&outside, home.store().join(place)).unwrap();
        run_all(&home, place);
        let output = home.command(["write"]).input("Text").run();
        assert_eq!(output.code, Some(1), "{place}: {output:?}");
        assert_eq!(fs::read_dir(&outside).unwrap().count(), 0, "{place}");
    }
}

/// Spoils the index of a home_with_notes home in one way, and checks that hooks go on and it heals.
fn spoiled_index(name: &str, spoil: impl Fn(&Path)) {
    let home = home_with_notes();
    home.run("reindex").well();
    let before: Vec<String> = home.notes().iter().map(|path| home.read(path)).collect();
    spoil(&index(&home.store()));
    run_all(&home, name);
    all_is_there(&home, name);
    let after: Vec<String> = home
        .notes()
        .iter()
        .filter(|path| path.contains("/01JZ00"))
        .map(|path| home.read(path))
        .collect();
    assert_eq!(after, before, "{name}");
}

#[test]
fn an_index_of_zeros() {
    // SQL-04
    spoiled_index("zeros", |path| fs::write(path, vec![0; 64 * 1024]).unwrap());
}

#[test]
fn an_index_cut_short() {
    // SQL-04
    spoiled_index("cut", |path| {
        let bytes = fs::read(path).unwrap();
        fs::write(path, &bytes[..bytes.len() / 2]).unwrap();
    });
}

#[test]
fn an_index_that_is_gone() {
    // SQL-04
    spoiled_index("gone", |path| fs::remove_file(path).unwrap());
}

#[test]
fn an_index_that_is_a_folder() {
    // SQL-04
    spoiled_index("folder", |path| {
        fs::remove_file(path).unwrap();
        fs::create_dir(path).unwrap();
    });
}

#[test]
fn an_index_of_a_newer_version() {
    // SQL-04
    spoiled_index("newer", |path| {
        let connection = Connection::open(path).unwrap();
        connection
            .pragma_update(None, "user_version", 9_999)
            .unwrap();
    });
}

#[test]
fn an_index_with_foreign_objects() {
    // SQL-05
    spoiled_index("foreign", |path| {
        let connection = Connection::open(path).unwrap();
        connection
            .execute_batch("CREATE VIEW surprise AS SELECT load_extension('/tmp/evil.so');")
            .unwrap();
    });
}

#[test]
fn a_value_in_the_index_that_cannot_be_converted() {
    // SQL-04
    for spoiled in ["kind = 'pxeference'", "folder = 77", "state = 'acu'"] {
        let home = home_with_notes();
        home.run("reindex").well();
        let spoil = || {
            let connection = Connection::open(index(&home.store())).unwrap();
            let update = format!("UPDATE note SET {spoiled} WHERE id LIKE '%4T8WQX'");
            connection.execute_batch(&update).unwrap();
        };
        for ask in ["list --everywhere --json", "show 4T8WQX", "search pnpm"] {
            spoil();
            let answer = home.run(ask).well();
            assert!(
                answer.contains("Package manager is pnpm"),
                "{spoiled}: {answer}"
            );
        }
        spoil();
        let doctor = home.run("doctor --fix");
        assert!(
            doctor.stdout.contains("the index was rebuilt"),
            "{spoiled}: {doctor:?}"
        );
        // A hook has no time to rebuild it; the deferred process does. It passes over an unknown state.
        if spoiled.starts_with("state") {
            continue;
        }
        spoil();
        run_all(&home, spoiled);
        let connection = Connection::open(index(&home.store())).unwrap();
        let left = format!("SELECT count(*) FROM note WHERE {spoiled}");
        assert_eq!(
            connection.query_row(&left, [], |row| row.get(0)),
            Ok(0),
            "{spoiled}"
        );
    }
}

#[test]
fn flipped_bits_of_the_index_fail_no_command() {
    let home = home_with_notes();
    home.run("reindex").well();
    let path = index(&home.store());
    let good = fs::read(&path).unwrap();
    let answer = home.run("list --everywhere --json").well();
    let mut drawn: usize = 1;
    for round in 0..12 {
        let mut bad = good.clone();
        for _ in 0..8 {
            drawn = drawn.wrapping_mul(1_103_515_245).wrapping_add(12_345);
            let at = (drawn >> 8) % bad.len();
            bad[at] ^= 1 << (drawn >> 28 & 7);
        }
        for ending in ["-wal", "-shm"] {
            fs::remove_file(format!("{}{ending}", path.display())).ok();
        }
        fs::write(&path, bad).unwrap();
        for ask in ["list --everywhere", "search pnpm", "status"] {
            let asked = home.run(ask);
            assert_eq!(asked.code, Some(0), "{round}, {ask}: {asked:?}");
        }
        home.run("reindex").well();
        assert_eq!(
            home.run("list --everywhere --json").well(),
            answer,
            "{round}"
        );
    }
}

#[test]
fn the_person_is_told_that_nothing_is_recorded() {
    let home = home_with_notes();
    home.run("reindex").well();
    let _work = home.hold_background();
    fs::remove_file(home.store().join("journal.db")).ok();
    fs::create_dir_all(home.store().join("journal.db/in the way")).unwrap();
    fs::remove_dir_all(home.store().join("spool")).ok();
    fs::write(home.store().join("spool"), "in the way").unwrap();
    let payload = home.start(SESSION, "startup").to_string();
    let hook = home.hook_with(payload).env("CLAUDE_CODE_ENTRYPOINT", "cli");
    let start = hook.run().well();
    assert!(
        start.contains("nothing can be written or recorded"),
        "{start}"
    );
    assert!(start.contains("stub server"), "{start}");
}

#[test]
fn a_session_without_a_usable_index_gets_the_newest_notes() {
    let home = home_with_notes();
    home.run("reindex").well();
    // Another version's sessions have their own index.
    let own = index(&home.store());
    let other = own.with_file_name("index-1.db");
    fs::rename(&own, &other).unwrap();
    let _work = home.hold_background();
    let start = home.hook(&home.start(SESSION, "startup")).well();
    assert!(start.contains("stub server"), "{start}");
    assert!(
        start.contains("the index of the notes is being rebuilt"),
        "{start}"
    );
    let mut payload = home.payload("UserPromptSubmit", "another");
    payload["prompt"] = "Do the login tests need the stub server?".into();
    let prompt = home.hook(&payload).well();
    assert!(prompt.contains("stub server"), "{prompt}");
    assert!(
        prompt.contains("the index of the notes is being rebuilt"),
        "{prompt}"
    );
    assert!(other.exists() && !own.exists());
}

#[test]
fn the_python_versions_index_is_left_alone() {
    let home = home_with_notes();
    let theirs = home.write("index.db", "theirs");
    run_all(&home, "theirs");
    home.run("reindex").well();
    let _ = home.run("doctor --fix").shown();
    assert_eq!(fs::read_to_string(theirs).unwrap(), "theirs");
}

/// Makes a file useless in one way.
type Spoil = fn(&Path);

#[test]
fn records_that_cannot_be_used_cost_no_note() {
    // HOOK-08, HOOK-14
    let newer = |path: &Path| {
        let connection = Connection::open(path).unwrap();
        connection
            .pragma_update(None, "user_version", 9_999)
            .unwrap();
    };
    let zeros = |path: &Path| fs::write(path, vec![0; 16 * 1024]).unwrap();
    let words = |path: &Path| fs::write(path, "these are no records").unwrap();
    let folder = |path: &Path| {
        fs::remove_file(path).ok();
        fs::create_dir_all(path).unwrap();
    };
    let spoilt: [(&str, Spoil); 4] = [
        ("newer", newer),
        ("zeros", zeros),
        ("words", words),
        ("folder", folder),
    ];
    for (name, spoil) in spoilt {
        let home = home_with_notes();
        home.hook(&home.start(SESSION, "startup")).well();
        home.settle();
        for ending in ["db-wal", "db-shm"] {
            fs::remove_file(home.store().join("journal").with_extension(ending)).ok();
        }
        spoil(&home.store().join("journal.db"));
        run_all(&home, name);
        all_is_there(&home, name);
        let doctor = home.run("doctor");
        // What is damaged is in quarantine/ by now.
        if name == "newer" {
            assert_eq!(doctor.code, Some(1), "{name}: {doctor:?}");
            assert!(doctor.stdout.contains("✗ hooks"), "{name}: {doctor:?}");
        }
    }
}

#[test]
fn records_that_another_process_keeps_locked_are_not_waited_for() {
    // SQL-06, HOOK-08
    let home = home_with_notes();
    home.run("reindex").well();
    home.hook(&home.payload("Stop", SESSION)).well();
    let connection = Connection::open(home.store().join("journal.db")).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    // The deferred process would wait for the journal.
    let work = home.hold_background();
    run_all(&home, "locked");
    drop((connection, work));
    all_is_there(&home, "locked");
}

#[test]
fn an_index_that_another_process_keeps_locked_is_not_waited_for() {
    // SQL-06
    let home = home_with_notes();
    home.run("reindex").well();
    let connection = Connection::open(index(&home.store())).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    run_all_without_background(&home);
    drop(connection);
    all_is_there(&home, "locked");
}

/// As `run_all`, where the deferred process itself has to wait.
fn run_all_without_background(home: &TestHome) {
    home.write_transcript(
        SESSION,
        &[asked("Add limits to the login"), edited("/x/limit.rs")],
    );
    for event in ["SessionStart", "PreCompact"] {
        let output = home.hook(&home.payload(event, SESSION));
        assert_eq!(
            (output.code, output.stderr.as_str()),
            (Some(0), ""),
            "{event}"
        );
    }
}

#[cfg(unix)]
#[test]
fn a_store_that_cannot_be_written() {
    use std::os::unix::fs::PermissionsExt;

    let home = home_with_notes();
    home.run("reindex").well();
    home.hook(&home.payload("Stop", SESSION)).well();
    let set = |mode| {
        for folder in ["", "memory", "memory/episodic", "derived", "log"] {
            let path = home.store().join(folder);
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o500);
    let is_root = fs::write(home.store().join("probe"), "").is_ok();
    run_all(&home, "read-only");
    let doctor = home.run("doctor");
    set(0o700);
    if is_root {
        // Modes do not bind root; `a_file_in_the_place_of_a_folder` shows the fault to root, too.
        fs::remove_file(home.store().join("probe")).unwrap();
    } else {
        assert_eq!(doctor.code, Some(1), "{doctor:?}");
        run_all(&home, "writable again");
    }
    all_is_there(&home, "after");
}

#[cfg(unix)]
#[test]
fn a_store_that_can_only_be_read_answers() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("anamnesis");
    // Modes bind root, too, once it has no capabilities.
    let script = format!(
        "#!/bin/sh\n[ \"$(/usr/bin/id -u)\" = 0 ] && set -- --bounding-set=-all --inh-caps=-all {0} \"$@\" \
         && exec /usr/bin/setpriv \"$@\"\nexec {0} \"$@\"\n",
        crate::program()
    );
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o700)).unwrap();
    let home = TestHome::new(&program);
    home.add(&NoteText::new(&id("7Q4KZ9"), "Tests need the stub server").global());
    home.run("sync").well();
    home.hook(&home.start(SESSION, "startup")).well();
    home.settle();
    let set = |mode| {
        for path in files_below(&home.store())
            .iter()
            .flat_map(|path| path.ancestors())
        {
            if path.starts_with(home.store()) {
                fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            }
        }
    };
    set(0o500);
    for words in [
        "status",
        "list --everywhere",
        "show 7Q4KZ9",
        "search stub",
        "log",
    ] {
        let output = home.run(words);
        assert_eq!(output.code, Some(0), "{words}: {output:?}");
        let is_overview = words == "status";
        assert!(
            is_overview || output.stdout.contains("stub server"),
            "{words}: {output:?}"
        );
    }
    let payload = home.start("another", "startup").to_string();
    let hook = home.hook_with(payload).env("CLAUDE_CODE_ENTRYPOINT", "cli");
    let start = hook.run().well();
    assert!(
        start.contains("nothing can be written or recorded: "),
        "{start}"
    );
    assert!(start.contains("stub server"), "{start}");
    let mut client = Client::start(&home, "serve");
    let opened = client.initialize()["result"]["instructions"].to_string();
    let (_, said) = opened.split_once("Nothing is recorded now: ").unwrap();
    assert!(!said.contains("nothing is recorded"), "{said}");
    let found = client.call("memory_search", json!({ "query": "stub" }));
    assert!(found.to_string().contains("stub server"), "{found}");
    let status = client.gives("memory_status", json!({}));
    let reason = status["not_recorded"].as_str().unwrap();
    assert!(reason.contains("cannot be written"), "{status}");
    client.leave();
    let status = home.run("status").stdout;
    assert!(status.contains("nothing is recorded"), "{status}");
    let written = home.run("forget 7Q4KZ9");
    assert_eq!(written.code, Some(1), "{written:?}");
    assert!(written.stderr.contains("ermission denied"), "{written:?}");
    set(0o700);
}

/// Starts a hook and gives it its payload; it runs on beside the others.
fn started(home: &TestHome, payload: &serde_json::Value) -> Child {
    use std::io::Write;

    let mut child = home.hook_with("").start();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(payload.to_string().as_bytes()).unwrap();
    child
}

#[test]
fn thirty_two_hooks_at_once_on_no_store() {
    // SQL-06
    let home = home();
    let sessions: Vec<String> = (0..32).map(|number| format!("session-{number}")).collect();
    for session in &sessions {
        home.write_transcript(
            session,
            &[asked(&format!("Task of {session}")), edited("/x/a.rs")],
        );
    }
    let mut children: Vec<Child> = sessions
        .iter()
        .map(|session| started(&home, &home.payload("SessionEnd", session)))
        .collect();
    for child in &mut children {
        assert_eq!(printed(child), "");
        assert!(child.wait().unwrap().success());
    }
    home.settle();
    assert_eq!(
        home.run("list --json").json()["total"],
        32,
        "{:?}",
        home.log()
    );
    assert_eq!(home.notes().len(), 32);
    let state = home.run("doctor");
    assert!(state.stdout.contains("✓ index"), "{state:?}");
}

#[test]
fn the_end_of_a_session_waits_for_its_turn() {
    let home = home();
    let _ = home.hook(&home.start("another", "startup"));
    home.settle();
    home.write_transcript(
        SESSION,
        &[asked("Add limits to the login"), edited("/x/limit.rs")],
    );
    let before = home.notes().len();
    let lock = fs::File::create(home.store().join("derived/notes.lock")).unwrap();
    lock.lock().unwrap();
    let mut child = started(&home, &home.payload("SessionEnd", SESSION));
    outlast_hooks(&home, 1);
    assert_eq!(child.try_wait().unwrap(), None);
    drop(lock);
    assert!(child.wait().unwrap().success());
    assert_eq!(home.notes().len(), before + 1, "{:?}", home.log());
}

#[test]
fn two_captures_of_one_session_make_one_note() {
    // CAP-10
    let home = home();
    home.write_transcript(
        SESSION,
        &[asked("Add limits to the login"), edited("/x/limit.rs")],
    );
    let mut children: Vec<Child> = ["PreCompact", "SessionEnd", "SessionEnd", "PreCompact"]
        .iter()
        .map(|event| started(&home, &home.payload(event, SESSION)))
        .collect();
    for child in &mut children {
        let _ = printed(child);
        assert!(child.wait().unwrap().success());
    }
    home.settle();
    let notes = home.notes();
    assert_eq!(notes.len(), 1, "{notes:?}");
    let text = home.read(&notes[0]);
    // A compaction that is recorded after the note of the end was written adds nothing.
    assert!(text.contains("session-end"), "{text}");
}

#[test]
fn paths_with_shell_characters() {
    // HOOK-01, HOOK-02
    let home = home();
    for name in [
        "a b",
        "it's",
        "$(touch pwned)",
        "`touch pwned`",
        "\"q\"; touch pwned",
        "-rf",
        "ü\u{1f680}",
    ] {
        if cfg!(windows) && name.contains('"') {
            continue;
        }
        let user = home.root().join(name).join("user");
        let project = home.root().join(name).join("Shop");
        fs::create_dir_all(user.join(".claude")).unwrap();
        fs::create_dir_all(&project).unwrap();
        let transcript = user.join(".claude/t.jsonl");
        fs::write(
            &transcript,
            format!(
                "{}\n{}\n",
                asked("Add limits to the login please"),
                answered("The login has its limits now.")
            ),
        )
        .unwrap();
        let mut payload = home.payload("SessionEnd", name);
        payload["cwd"] = project.to_string_lossy().into();
        payload["transcript_path"] = transcript.to_string_lossy().into();
        let run = |payload: String| {
            home.hook_with(payload)
                .env(USER_HOME, &user)
                .env("CLAUDE_PROJECT_DIR", &project)
                .without("ANAMNESIS_HOME")
                .without("CLAUDE_CONFIG_DIR")
                .within(&project)
                .run()
                .well()
        };
        run(payload.to_string());
        home.settle();
        payload["hook_event_name"] = "SessionStart".into();
        let next = run(payload.to_string());
        home.settle();
        assert!(
            next.contains("Add limits to the login please"),
            "{name}: {next}"
        );
        assert!(next.contains("[session]"), "{name}: {next}");
    }
    let mut pending = vec![home.root().to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).unwrap().flatten() {
            assert_ne!(entry.file_name(), "pwned");
            if entry.file_type().unwrap().is_dir() {
                pending.push(entry.path());
            }
        }
    }
}

#[test]
fn a_note_over_the_cap_is_indexed_by_its_head() {
    // PATH-08
    let home = home_with_notes();
    let body = format!("needle-at-the-head {}", "filler words ".repeat(200_000));
    home.add(&NoteText::new(&id("HVGE00"), "Huge").body(body));
    assert!(home.run("search needle").well().contains("Huge"));
    let shown = home.hook(&home.start(SESSION, "startup")).well();
    assert!(shown.contains("Huge") && shown.len() < 20_000);
    assert!(
        home.run("show HVGE00")
            .well()
            .contains("the file is larger")
    );
}
