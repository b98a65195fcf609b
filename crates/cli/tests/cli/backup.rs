//! `backup`: the whole store as one file, and back.

use std::fs;

use anamnesis_testkit::home::NoteText;

use crate::{
    home, home_with_notes, id,
    purge::{join, run, with_remote},
    upkeep::tree,
};

#[test]
fn a_backup_brings_everything_back() {
    let home = home_with_notes();
    home.run("edit 7Q4KZ9 --title Changed").well();
    home.run("forget B2M6RD").well();
    home.hook(&home.start("s1", "startup")).well();
    home.settle();
    home.run("config set session_line off").well();
    // What is pending is committed before the backup.
    home.run("log").well();
    let file = home.root().join("store.tar");
    let called = format!("backup {}", file.display());
    let said = home.run(&called).well();
    assert!(said.contains("and read it back"), "{said}");
    let again = home.run(&called);
    assert_eq!(again.code, Some(2), "{again:?}");
    let before = tree(&home);
    let log = home.run("log").well();
    fs::remove_dir_all(home.store()).unwrap();

    let restored = home.run(&format!("backup --restore {} --yes", file.display()));
    assert_eq!(restored.code, Some(0), "{restored:?}");
    assert_eq!(tree(&home), before);
    // History, trash, records and settings are there, and work.
    assert_eq!(home.run("log").well(), log);
    home.run("restore B2M6RD").well();
    home.run("sync").well();
    assert!(home.run("sessions --everywhere").well().contains("s1"));
    assert_eq!(home.run("config get session_line").well(), "off\n");
}

#[test]
fn a_restored_store_fetches_and_pushes() {
    let (laptop, remote) = with_remote();
    let desktop = home();
    join(&desktop, &remote);
    laptop.add(&NoteText::new(&id("BEF0RE"), "Before"));
    run(&laptop, "sync").well();
    let file = laptop.root().join("store.tar");
    run(&laptop, &format!("backup {}", file.display())).well();
    // More than git's limit for loose objects arrives as a pack.
    run(&desktop, "sync").well();
    for number in 0..120 {
        desktop.add(&NoteText::new(&id(&format!("N{number:05}")), "Since"));
    }
    run(&desktop, "sync").well();
    fs::remove_dir_all(laptop.store()).unwrap();
    run(
        &laptop,
        &format!("backup --restore {} --yes", file.display()),
    )
    .well();
    laptop.add(&NoteText::new(&id("AFTER1"), "After"));
    run(&laptop, "sync").well();
    assert_eq!(laptop.notes().len(), 122);
    run(&desktop, "sync").well();
    assert_eq!(desktop.notes().len(), 122);
}

#[test]
fn the_store_that_was_there_is_kept() {
    let (first, second) = (home_with_notes(), home());
    let file = first.root().join("store.tar");
    first.run(&format!("backup {}", file.display())).well();
    second.run("write --title Mine --kind fact").well();
    let called = format!("backup --restore {}", file.display());
    // Nothing is replaced without a yes.
    let unsaid = second.run(&called);
    assert_eq!(unsaid.code, Some(2), "{unsaid:?}");
    assert!(second.run("list --everywhere").well().contains("Mine"));
    let said = second.run(&format!("{called} --yes --json")).json();
    let kept = said["before"]
        .as_str()
        .unwrap()
        .replace("[ROOT]", &second.root().to_string_lossy());
    assert!(
        fs::read_dir(format!("{kept}/memory/semantic"))
            .unwrap()
            .count()
            > 0
    );
    let list = second.run("list --everywhere").well();
    assert!(
        list.contains("Integration tests") && !list.contains("Mine"),
        "{list}"
    );
}

#[test]
fn what_is_no_whole_backup_changes_nothing() {
    let home = home_with_notes();
    let file = home.root().join("store.tar");
    home.run(&format!("backup {}", file.display())).well();
    let whole = fs::read(&file).unwrap();
    let before = tree(&home);
    for bytes in [&whole[..whole.len() / 2], b"no archive", b""] {
        fs::write(&file, bytes).unwrap();
        for verb in ["--check", "--restore --yes"] {
            let output = home.run(&format!("backup {verb} {}", file.display()));
            assert_eq!(output.code, Some(1), "{output:?}");
            let said = &output.stderr;
            assert!(said.starts_with("anamnesis: cannot use "), "{said}");
        }
        assert_eq!(tree(&home), before);
    }
    let agent = home.command(["backup", "other.tar"]).by_agent().run();
    assert_eq!(agent.code, Some(1), "{agent:?}");
    let inside = home.run("backup .");
    assert_ne!(inside.code, Some(0), "{inside:?}");
}
