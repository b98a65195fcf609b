//! What a terminal gets: colours, highlighted words, a pager; a pipe gets none of it.

use anamnesis_testkit::home::NoteText;

use crate::{home, home_with_notes, id};

const ESCAPE: char = '\u{1b}';

#[test]
fn a_pipe_gets_no_colour_unless_it_is_asked_for() {
    let home = home_with_notes();
    assert!(!home.run("search stub").well().contains(ESCAPE));
    let text = home.run("search stub --color always").well();
    assert!(text.contains("\u{1b}[33m7Q4KZ9\u{1b}[0m"), "{text:?}");
    assert!(text.contains("\u{1b}[1;31mstub\u{1b}[0m"), "{text:?}");
    // JSON is for programs.
    let json = home.run("--color always search stub --json").well();
    assert!(!json.contains(ESCAPE));
    assert_eq!(home.run("search stub --color sometimes").code, Some(2));
}

#[test]
fn search_shows_the_line_that_matched() {
    let text = home_with_notes().run("search 9090").well();
    let mut lines = text.lines();
    let title = lines.next().unwrap();
    assert!(
        title.starts_with("7Q4KZ9  how-to      Integration"),
        "{text}"
    );
    assert!(lines.next().unwrap().contains("binds port 9090;"), "{text}");
}

#[test]
fn a_note_cannot_colour_the_terminal() {
    let home = home();
    home.add(
        &NoteText::new(&id("AAAAAA"), "Red \u{1b}[31malert").body("\u{1b}]0;x\u{7} the alert"),
    );
    let text = home.run("search alert --color always").well();
    assert!(
        !text.contains("\u{1b}[31malert") && !text.contains("\u{1b}]"),
        "{text:?}"
    );
}

#[cfg(unix)]
#[test]
fn a_terminal_gets_colours_and_a_pager_for_long_lists() {
    let home = home();
    for number in 0..30 {
        home.add(&NoteText::new(
            &id(&format!("AAAA{number:02}")),
            &format!("Note {number}"),
        ));
    }
    let run = |words: &str, name: &str, value: &str| {
        let command = home.command(words.split(' ')).env("PATH", "/usr/bin:/bin");
        command
            .env("TERM", "xterm")
            .env(name, value)
            .run_in_a_terminal()
    };
    let paged = run("list --all", "PAGER", "sed s/^/paged:/");
    assert_eq!(paged.stdout.matches("paged:").count(), 30, "{paged:?}");
    assert!(paged.stdout.contains("\u{1b}[33mAAAA"), "{paged:?}");
    // A short list needs none, a missing pager loses nothing.
    let short = run("list -n 3", "PAGER", "sed s/^/paged:/");
    assert!(!short.stdout.contains("paged:"), "{short:?}");
    let missing = run("list --all", "PAGER", "no-such-pager");
    assert_eq!(missing.stdout.matches("Note ").count(), 30, "{missing:?}");
    let plain = run("list -n 3", "NO_COLOR", "1");
    assert!(!plain.stdout.contains(ESCAPE), "{plain:?}");
}

#[cfg(unix)]
#[test]
fn what_is_printed_fits_a_narrow_terminal() {
    let home = home_with_notes();
    home.run("pin B2M6RD").well();
    for words in [
        "status",
        "list",
        "search rate limits",
        "log",
        "undo",
        "stats",
        "doctor",
        "config",
        "why",
        "recall rate limits",
        "stale",
        "help",
    ] {
        let command = home.command(words.split(' ')).env("NO_COLOR", "1");
        let printed = command.env("PAGER", "cat").run_in_columns(40).stdout;
        let printed = printed.replace("\r\n", "\n");
        assert!(!printed.is_empty(), "{words}");
        for line in printed.lines() {
            // What is to be copied stays whole.
            let is_hint = line.trim_start().starts_with('→');
            assert!(
                is_hint || line.trim_end().chars().count() <= 40,
                "{words}: {line}"
            );
        }
        let whole = match words {
            "status" => {
                "sync:  none; notes stay on this machine\n       → anamnesis init --remote URL\n"
            }
            "log" | "undo" => "\n  mark ~1 Rate limits live in middlewar…\n",
            _ => "",
        };
        assert!(printed.contains(whole), "{words}: {printed}");
    }
}

#[test]
fn every_line_of_a_list_begins_with_an_id_that_other_commands_take() {
    // The recipe with fzf in the FAQ passes the first field of a line on.
    let home = home_with_notes();
    home.run("task add Rotate the key").well();
    home.add(&NoteText::new(&id("STA1E0"), "Prices").with("review_after", "2026-01-01"));
    for (list, count) in [
        ("list --everywhere --all", 7),
        ("search limits", 2),
        ("task list", 1),
        ("stale", 1),
        ("review --list", 2),
    ] {
        let list = home.run(list).stdout;
        let ids = list.lines().map(|line| line.trim_start().split(' ').next());
        let ids = ids.flatten().filter(|id| id.len() == 6);
        let ids: Vec<&str> = ids.filter(|id| *id == id.to_uppercase()).collect();
        assert_eq!(ids.len(), count, "{list}");
        for id in ids {
            let shown = home.run(&format!("show {id}")).well();
            assert!(shown.starts_with(id), "{list}: {shown}");
        }
    }
}

#[test]
fn every_list_takes_a_length() {
    let home = home_with_notes();
    home.run("task add Rotate the key").well();
    for list in [
        "list",
        "search limits",
        "recall limits",
        "sessions",
        "log",
        "undo",
        "review --list",
        "stale",
        "stats",
        "task list",
        "backfill",
        "project list",
    ] {
        let [short, long] =
            ["-n 1", "--limit 1"].map(|length| home.run(&format!("{list} {length}")));
        assert!(matches!(short.code, Some(0 | 3)), "{list}: {short:?}");
        assert_eq!(short, long, "{list}");
    }
    for list in [
        "list",
        "log",
        "review --list",
        "stale",
        "task list",
        "backfill",
    ] {
        let all = home.run(&format!("{list} --all"));
        assert!(matches!(all.code, Some(0 | 3)), "{list}: {all:?}");
    }
}

#[test]
fn nothing_on_stdin_is_no_client() {
    let home = home_with_notes();
    assert!(home.command([""; 0]).run().well().starts_with("store: "));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let home = home_with_notes();
    let full = std::fs::File::create("/dev/full").unwrap();
    let output = home.command(["list", "--everywhere"]).run_into(full);
    assert_eq!(output.code, Some(1), "{output:?}");
    assert!(
        output.stderr.contains("cannot write the output"),
        "{output:?}"
    );
}

#[test]
fn a_word_with_a_hyphen_is_searched_as_a_whole() {
    let home = home();
    for (title, text) in [
        ("Library", "The mirror uses go-git."),
        ("Game", "We go to git every day, and git is good."),
    ] {
        home.command(["write", "--title", title, "--stdin"])
            .input(text)
            .run()
            .well();
    }
    let found = home.run("search go-git").well();
    assert!(
        found.contains("Library") && !found.contains("Game"),
        "{found}"
    );
    assert!(home.run("search go git").well().contains("Game"));
}
