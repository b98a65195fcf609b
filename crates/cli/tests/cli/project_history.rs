//! The project's own repository as memory: its commits, and the branches on which sessions worked.

use std::{fs, process::Command};

use anamnesis_testkit::home::{NoteText, TestHome, git_repository};
use serde_json::json;

use crate::{
    SESSION, home, id,
    purge::{self, SECRET},
    recall::prompt,
    sessions::{self, end},
    snapshot,
};

/// A question that one of the commits answers.
const WHY: &str = "Why did we raise the upload timeout?";

/// The line of that commit.
const ANSWER: &str = "2 May 2025 Raise the upload timeout to 90 s";

/// A later session.
const OTHER: &str = "6c1c8f1e-2f57-4f0a-9d3e-6a1c7e4b9d21";

/// Runs git in the project at a day in 2025.
fn git(home: &TestHome, day: &str, arguments: &[&str]) -> String {
    let date = format!("2025-05-{day}T12:00:00Z");
    let output = Command::new("git")
        .args(["-c", "user.name=Ada", "-c", "user.email=ada@example.org"])
        .args([
            "-c",
            "commit.gpgsign=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(arguments)
        .current_dir(home.project())
        .envs([("GIT_AUTHOR_DATE", &date), ("GIT_COMMITTER_DATE", &date)])
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn commit(home: &TestHome, day: &str, file: &str, message: &str) -> String {
    fs::write(home.project().join(file), message).unwrap();
    git(home, day, &["add", file]);
    git(home, day, &["commit", "--quiet", "-m", message]);
    git(home, day, &["rev-parse", "HEAD"])
}

/// A project with some commits, and a session in it that began.
fn with_commits() -> TestHome {
    let home = home();
    git_repository(&home.project(), Some("git@github.com:acme/shop.git"));
    for (day, file, message) in [
        ("01", "upload.py", "Send uploads in chunks of 4 MiB"),
        (
            "02",
            "upload.py",
            "Raise the upload timeout to 90 s\n\nThe proxy of the office needs 70 s to scan a file.\n\nSigned-off-by: Ada <ada@example.org>",
        ),
        ("03", "cart.py", "Keep prices in cents"),
        ("04", "lock", "Bump upload-timeout from 1.0.1 to 1.0.2"),
        ("05", "mail.py", "Queue mails, as the provider limits them"),
        ("06", "cart.py", "Cache the totals of a cart"),
    ] {
        commit(&home, day, file, message);
    }
    start(&home, "02:59:00");
    home
}

/// Starts a session, and waits until the history is read.
fn start(home: &TestHome, time: &str) {
    let fields = json!({ "source": "startup" });
    sessions::hook_at(
        home,
        time,
        &sessions::event(home, "SessionStart", SESSION, fields),
    )
    .well();
    home.settle();
    home.run("internal work").well();
}

#[test]
fn a_why_question_is_answered_from_the_history_once_and_an_order_never() {
    let home = with_commits();
    for (time, order) in [
        ("03:00:00", "Raise the upload timeout to 120 s"),
        ("03:00:01", "Send uploads in chunks of 8 MiB, please"),
        ("03:00:02", "Why is the sky blue?"),
    ] {
        assert_eq!(prompt(&home, time, order), "", "{order}");
    }
    let tried = home.command(["eval", WHY]).run().well();
    let explained = home.command(["why", "--try", WHY]).run().well();
    assert!(
        explained.contains(ANSWER) && !explained.contains("nothing is injected"),
        "{explained}"
    );
    let answer = prompt(&home, "03:01:00", WHY);
    assert!(answer.contains(ANSWER), "{answer}");
    assert_eq!(answer, tried);
    let lines = answer.lines().filter(|line| line.starts_with("- "));
    assert_eq!(lines.count(), 1, "{answer}");
    assert_eq!(prompt(&home, "03:02:00", WHY), "");
    // The words of the body count, too.
    let answer = prompt(
        &home,
        "03:03:00",
        "Since when do mails go into a queue, and for which provider?",
    );
    assert!(answer.contains("5 May 2025 Queue mails"), "{answer}");

    let why = home.run("why").well();
    assert!(
        why.contains("from the project's history, prompt 4"),
        "{why}"
    );
    assert!(why.contains(ANSWER), "{why}");
    let exact = home.run("why --exact").stdout;
    assert!(exact.contains(ANSWER), "{exact}");
    let json = home.run("why --json").json();
    let given = json["moments"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|moment| moment["given"].as_array().unwrap());
    let commits: Vec<_> = given.filter(|given| given["commit"].is_string()).collect();
    assert_eq!(commits.len(), 2, "{json}");
    assert!(commits[0]["id"].is_null(), "{json}");
    // A commit does not count as a note that was shown.
    assert!(!home.run("stats").well().contains("never used"));
}

#[test]
fn searches_show_commits_after_notes() {
    let home = with_commits();
    home.add(&NoteText::new(&id("7Q4KZ9"), "Uploads go to the office"));
    home.run("reindex").well();
    let found = home.run("search uploads timeout").well();
    let (notes, commits) = found.split_once("commits\n").unwrap();
    assert!(notes.contains("Uploads"), "{found}");
    assert!(
        commits.contains(ANSWER) && !commits.contains("Bump"),
        "{found}"
    );
    let recalled = home.run("recall upload timeout").well();
    assert!(recalled.contains(ANSWER), "{recalled}");
    let json = home.run("search --json upload timeout").json();
    assert!(
        json["commits"][0].as_str().unwrap().ends_with(ANSWER),
        "{json}"
    );
    assert!(
        !home
            .run("search --kind fact upload timeout")
            .well()
            .contains("commits")
    );
    assert!(
        !home
            .run("search --project github.com/acme/till timeout")
            .well()
            .contains("commits")
    );
}

#[test]
fn a_revert_marks_what_it_reverts_until_it_is_reverted() {
    let home = with_commits();
    git(&home, "07", &["revert", "--no-edit", "HEAD"]);
    let revert = git(&home, "07", &["rev-parse", "HEAD"]);
    start(&home, "03:00:00");
    let mark = format!("Cache the totals of a cart (reverted by {})", &revert[..7]);
    let found = home.run("search cache totals cart").well();
    assert!(found.contains(&mark), "{found}");
    git(&home, "08", &["revert", "--no-edit", "HEAD"]);
    start(&home, "03:01:00");
    let found = home.run("search cache totals cart").well();
    assert!(found.contains("Cache the totals of a cart\n"), "{found}");
    git(&home, "09", &["revert", "--no-edit", "HEAD"]);
    start(&home, "03:02:00");
    let found = home.run("search cache totals cart").well();
    assert!(found.contains(&mark), "{found}");
}

#[test]
fn a_revert_without_an_id_marks_the_newest_commit_that_it_quotes() {
    let home = with_commits();
    let revert = commit(
        &home,
        "07",
        "cart.py",
        "Revert \"Cache the totals of a cart\" (#8)",
    );
    start(&home, "03:00:00");
    let mark = format!("Cache the totals of a cart (reverted by {})", &revert[..7]);
    let found = home.run("search cache totals cart").well();
    assert!(found.contains(&mark), "{found}");
    assert!(found.ends_with("→ git show ID\n"), "{found}");
}

#[test]
fn commits_that_are_gone_are_no_longer_found() {
    let home = with_commits();
    git(&home, "07", &["reset", "--hard", "--quiet", "HEAD~5"]);
    commit(&home, "08", "upload.py", "Give uploads a timeout of 80 s");
    start(&home, "03:00:00");
    let found = home.run("search upload timeout").well();
    assert!(found.contains("8 May 2025 Give uploads"), "{found}");
    assert!(!found.contains(ANSWER), "{found}");
}

#[test]
fn the_history_is_not_read_where_it_is_switched_off() {
    for setting in [
        json!({ "recall": { "history": false } }),
        json!({ "exclude": ["**"] }),
        json!({ "paused": true }),
    ] {
        let home = home();
        home.write("config.json", setting.to_string());
        git_repository(&home.project(), None);
        commit(&home, "02", "upload.py", "Raise the upload timeout to 90 s");
        start(&home, "02:59:00");
        assert_eq!(prompt(&home, "03:00:00", WHY), "", "{setting}");
        assert!(
            !home.store().join("derived/commits-1.db").exists(),
            "{setting}"
        );
    }
    // Switched off later, it is removed.
    let home = with_commits();
    let file = home.store().join("derived/commits-1.db");
    assert!(file.exists());
    home.run("config set recall.history off").well();
    assert_eq!(prompt(&home, "03:00:00", WHY), "");
    start(&home, "03:01:00");
    assert!(!file.exists());
}

#[test]
fn a_purged_text_is_not_indexed_again() {
    let home = with_commits();
    commit(
        &home,
        "07",
        "key.py",
        &format!("Rotate the key {SECRET} of the mailer"),
    );
    start(&home, "03:00:00");
    let found = || home.run("search rotate key mailer").well();
    assert!(found().contains("Rotate the key"));
    let purged = purge::purge_text(&home, SECRET).shown();
    assert!(purged.contains("the repository still has it"), "{purged}");
    assert!(!found().contains("Rotate the key"));
    commit(&home, "08", "upload.py", "Log failed uploads");
    start(&home, "03:01:00");
    assert!(!found().contains("Rotate the key"));
    assert!(home.run("search upload timeout").well().contains(ANSWER));
}

/// Plays a session that edits a file.
fn work(home: &TestHome) {
    sessions::play(home, SESSION);
    end(home, SESSION, "prompt_input_exit");
    home.run("internal work").well();
}

#[test]
fn a_note_of_a_branch_says_so_until_the_branch_is_merged() {
    let home = with_commits();
    work(&home);
    let note = home.run("list --json").json()["notes"][0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let show = |home: &TestHome| home.run(&format!("show {note}")).well();
    // On the default branch nothing is said.
    assert!(!show(&home).contains("on branch"));

    let home = with_commits();
    git(&home, "07", &["switch", "--quiet", "-c", "feat/limits"]);
    commit(&home, "07", "limit.py", "Limit logins");
    work(&home);
    let file = home.run(&format!("show {note} --raw")).well();
    assert!(file.contains("\nbranch: feat/limits\n"), "{file}");
    let unmerged = "on branch feat/limits, not merged";
    let says = |home: &TestHome, expected: bool| {
        let show = format!("show {note}");
        for command in [
            &show,
            "search rate limits login",
            "recall rate limits login",
        ] {
            let text = home.run(command).well();
            assert_eq!(text.contains(unmerged), expected, "{command}: {text}");
        }
        let fields = json!({ "source": "startup" });
        let started = sessions::event(home, "SessionStart", OTHER, fields);
        let block = sessions::hook_at(home, "03:05:00", &started).well();
        assert_eq!(block.contains(unmerged), expected, "{block}");
        home.settle();
    };
    says(&home, true);

    git(&home, "08", &["switch", "--quiet", "main"]);
    git(
        &home,
        "08",
        &[
            "merge",
            "--quiet",
            "--no-ff",
            "-m",
            "Merge branch 'feat/limits'",
            "feat/limits",
        ],
    );
    git(&home, "08", &["branch", "--quiet", "-d", "feat/limits"]);
    home.run("internal work").well();
    says(&home, false);
    // A new index knows it by the merge.
    fs::remove_file(crate::index(&home.store())).unwrap();
    home.run("internal work").well();
    says(&home, false);
}

#[test]
fn a_branch_that_was_deleted_without_a_merge_is_gone() {
    let home = with_commits();
    git(&home, "07", &["switch", "--quiet", "-c", "spike"]);
    commit(&home, "07", "spike.py", "Try a bloom filter");
    work(&home);
    git(&home, "08", &["switch", "--quiet", "main"]);
    git(&home, "08", &["branch", "--quiet", "-D", "spike"]);
    home.run("internal work").well();
    let found = home.run("search rate limits login").well();
    snapshot!(found.lines().find(|line| line.contains("branch")).unwrap(), @"  on branch spike, which is gone");
}

/// What the note of the session says of its branch now.
fn said(home: &TestHome) -> String {
    home.run("internal work").well();
    let found = home.run("search rate limits login").well();
    let line = found.lines().find(|line| line.contains("on branch"));
    line.unwrap_or_default().trim().to_owned()
}

#[test]
fn what_a_squash_took_over_is_merged() {
    let home = with_commits();
    git(&home, "07", &["switch", "--quiet", "-c", "spike"]);
    commit(&home, "07", "spike.py", "Try a bloom filter");
    work(&home);
    assert_eq!(said(&home), "on branch spike, not merged");
    git(&home, "08", &["switch", "--quiet", "main"]);
    git(&home, "08", &["merge", "--quiet", "--squash", "spike"]);
    git(
        &home,
        "08",
        &["commit", "--quiet", "-m", "Add a bloom filter (#7)"],
    );
    assert_eq!(said(&home), "");
    commit(&home, "09", "spike.py", "Raise its size");
    assert_eq!(said(&home), "");
    git(&home, "09", &["branch", "--quiet", "-D", "spike"]);
    assert_eq!(said(&home), "");
}

#[test]
fn the_only_branch_is_the_default_one() {
    let home = with_commits();
    git(&home, "07", &["branch", "--quiet", "-m", "develop"]);
    work(&home);
    assert_eq!(said(&home), "");
    git(&home, "07", &["switch", "--quiet", "-c", "spike"]);
    assert_eq!(said(&home), "");
}

#[test]
fn a_branch_is_merged_only_with_commits_of_its_own() {
    // Nothing was committed on it, and main went on.
    let home = with_commits();
    git(&home, "07", &["switch", "--quiet", "-c", "spike"]);
    work(&home);
    assert_eq!(said(&home), "on branch spike");
    git(&home, "08", &["switch", "--quiet", "main"]);
    commit(&home, "08", "main.py", "Log failed uploads");
    assert_eq!(said(&home), "on branch spike");
    git(&home, "08", &["branch", "--quiet", "-D", "spike"]);
    assert_eq!(said(&home), "on branch spike, which is gone");

    // It was deleted and made again. With its commits back, a merge without a merge commit counts.
    let home = with_commits();
    git(&home, "07", &["switch", "--quiet", "-c", "spike"]);
    let tip = commit(&home, "07", "spike.py", "Try a bloom filter");
    work(&home);
    assert_eq!(said(&home), "on branch spike, not merged");
    git(&home, "08", &["switch", "--quiet", "main"]);
    git(&home, "08", &["branch", "--quiet", "-f", "spike", "main"]);
    assert_eq!(said(&home), "on branch spike");
    assert_eq!(said(&home), "on branch spike");
    git(&home, "08", &["branch", "--quiet", "-f", "spike", &tip]);
    assert_eq!(said(&home), "on branch spike, not merged");
    git(&home, "08", &["merge", "--quiet", "--ff-only", "spike"]);
    assert_eq!(said(&home), "");
    assert_eq!(said(&home), "");
}
