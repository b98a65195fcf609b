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

#[test]
fn every_line_of_a_list_begins_with_an_id_that_other_commands_take() {
    // The recipe with fzf in the FAQ passes the first field of a line on.
    let home = home_with_notes();
    let list = home.run("list --everywhere --all").well();
    assert_eq!(list.lines().count(), 5, "{list}");
    for line in list.lines() {
        let id = line.split(' ').next().unwrap();
        let shown = home.run(&format!("show {id}")).well();
        assert!(shown.starts_with(id), "{line}: {shown}");
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
