//! The command line itself: help, versions, wrong words, and the words that are kept from people.

use std::{fs, path::Path};

use anamnesis_testkit::home::USER_HOME;

use crate::{NO_OP, SESSION, home, home_with_notes, snapshot};

/// Every command that has a help page, as `help --all` names them.
fn commands() -> Vec<String> {
    let all = home().run("help --all").well();
    let names: Vec<String> = all
        .lines()
        .filter_map(|line| line.strip_prefix("  "))
        .filter_map(|line| line.split_whitespace().next())
        .map(str::to_owned)
        .collect();
    assert!(names.len() > 15, "{names:?}");
    names
}

#[test]
fn every_help_page() {
    let home = home();
    let mut pages = String::new();
    for arguments in ["--help", "help", "help --all"] {
        pages.push_str(&format!("$ anamnesis {arguments}\n"));
        pages.push_str(&home.run(arguments).well());
    }
    let nested = [
        "internal capture",
        "internal inject",
        "internal maintain",
        "internal reindex",
        "internal work",
        "project migrate",
    ];
    for name in commands().into_iter().chain(nested.map(str::to_owned)) {
        let page = home.run(&format!("{name} --help")).well();
        assert_eq!(home.run(&format!("help {name}")).well(), page, "{name}");
        pages.push_str(&format!("$ anamnesis {name} --help\n{page}"));
    }
    insta::assert_snapshot!(pages);
    for line in pages.lines() {
        assert!(line.chars().count() <= 80, "over 80 columns: {line}");
    }
}

#[test]
fn the_first_page_names_few_commands_and_all_of_them_exist() {
    let page = home().run("--help").well();
    let all = commands();
    let named: Vec<&str> = page
        .lines()
        .filter(|line| {
            ["Everyday", "Privacy", "Trouble"]
                .iter()
                .any(|group| line.starts_with(group))
        })
        .flat_map(|line| line.split_whitespace().skip(1))
        .collect();
    assert!((5..=24).contains(&named.len()), "{named:?}");
    for name in named {
        assert!(all.iter().any(|known| known == name), "{name}");
    }
}

#[test]
fn the_version() {
    let version = format!("anamnesis {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(home().run("--version").well(), version);
    assert_eq!(home().run("-V").well(), version);
}

#[test]
fn wrong_usage_says_what_is_meant_and_exits_with_2() {
    let home = home();
    snapshot!(home.run("serch pnpm").shown(), @"
    exit 2
    on stderr:
    error: unrecognized subcommand 'serch'

      tip: some similar subcommands exist: 'serve', 'search'

    Usage: anamnesis [COMMAND]

    For more information, try '--help'.
    ");
    snapshot!(home.run("help serch").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: there is no command "serch"
    → anamnesis help --all
    "#);
    snapshot!(home.run("list --kind lesson").shown(), @r#"
    exit 2
    on stderr:
    error: invalid value 'lesson' for '--kind <KIND>': expected one of fact, preference, insight, how-to, warning, session, task, got "lesson"

    For more information, try '--help'.
    "#);
    snapshot!(home.run("list --knd fact").shown(), @"
    exit 2
    on stderr:
    error: unexpected argument '--knd' found

      tip: a similar argument exists: '--kind'

    Usage: anamnesis list --kind <KIND>

    For more information, try '--help'.
    ");
    snapshot!(home.run("show").shown(), @"
    exit 2
    on stderr:
    error: the following required arguments were not provided:
      <ID>

    Usage: anamnesis show <ID>

    For more information, try '--help'.
    ");
    snapshot!(home.run("show abc").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: "abc" is not a note's id
    → six or more characters of its beginning or end, as `list` shows them
    "#);
    snapshot!(home.run("search").shown(), @"
    exit 2
    on stderr:
    error: the following required arguments were not provided:
      <WORDS>...

    Usage: anamnesis search <WORDS>...

    For more information, try '--help'.
    ");
    snapshot!(home.run("completions tcsh").shown(), @"
    exit 2
    on stderr:
    error: invalid value 'tcsh' for '<SHELL>'
      [possible values: bash, elvish, fish, powershell, zsh]

      tip: a similar value exists: 'zsh'

    For more information, try '--help'.
    ");
    assert!(!home.store().join("memory").join("semantic").exists());
}

#[test]
fn completions_for_each_shell() {
    let home = home();
    for (shell, sign) in [
        ("bash", "complete -F _anamnesis"),
        ("elvish", "edit:completion:arg-completer[anamnesis]"),
        ("fish", "complete -c anamnesis"),
        ("powershell", "Register-ArgumentCompleter"),
        ("zsh", "#compdef anamnesis"),
    ] {
        let script = home.run(&format!("completions {shell}")).well();
        assert!(script.contains(sign), "{shell}");
        assert!(script.contains("forget"), "{shell}");
    }
}

#[test]
fn without_a_command_a_piped_payload_is_a_hook() {
    let home = home();
    let payload = home.payload("Stop", SESSION).to_string();
    let nothing: [&str; 0] = [];
    assert_eq!(home.command(nothing).input(payload).run().well(), NO_OP);
    // Over several lines, too.
    let payload = serde_json::to_string_pretty(&home.payload("Stop", SESSION)).unwrap();
    assert_eq!(home.command(nothing).input(payload).run().well(), NO_OP);
    // What is no payload is a client's; this one says nothing that could be answered.
    for nothing_asked in ["hello\n", "{\n"] {
        assert_eq!(home.command(nothing).input(nothing_asked).run().well(), "");
    }
}

#[test]
fn without_a_command_an_empty_pipe_gets_the_status_of_the_same_store() {
    let home = crate::untouched_home();
    let other = home.root().join("other");
    let run = |words: &str| {
        let command = home.command(words.split_whitespace());
        command.env("ANAMNESIS_HOME", &other).run().well()
    };
    assert_eq!(run(""), run("status"));
    assert!(!home.store().exists());
}

#[cfg(unix)]
#[test]
fn without_a_command_a_terminal_gets_the_status() {
    let home = home_with_notes();
    let nothing: [&str; 0] = [];
    let status = home.run("status").well();
    assert_eq!(home.command(nothing).run_on_a_terminal().well(), status);
}

#[test]
fn a_store_that_cannot_be_told_is_said_to_be_so() {
    let home = home();
    for command in ["status", "list", "doctor", "project"] {
        let output = home
            .command([command])
            .without(USER_HOME)
            .without("ANAMNESIS_HOME")
            .run();
        assert_eq!(output.code, Some(1), "{command}");
        assert_eq!(
            output.stderr, "anamnesis: no home folder is known\n→ set HOME or ANAMNESIS_HOME\n",
            "{command}"
        );
    }
}

/// Words of the inside, which a person need not know.
const KEPT_OUT: [&str; 8] = [
    "journal",
    "ledger",
    "receipt",
    "lane",
    "gate",
    "freshness",
    "epoch",
    "benched",
];

/// Tells which of the words stands in a text for people. A file's name is a file's name.
fn kept_out(text: &str) -> Option<&'static str> {
    // A file is called by its name, and so is a command.
    let text = text.replace("journal.db", "");
    let words: Vec<String> = text
        .split(|character: char| !character.is_alphanumeric())
        .map(str::to_lowercase)
        .collect();
    KEPT_OUT.into_iter().find(|kept| {
        words
            .iter()
            .any(|word| word == kept || *word == format!("{kept}s"))
    })
}

#[test]
fn the_words_of_the_inside_are_found() {
    assert_eq!(kept_out("The Journals, of today"), Some("journal"));
    assert_eq!(kept_out("journal.db is locked; a planet"), None);
    assert_eq!(
        literals(r#"f("a \" b", 'c', r"d", '"') // "e""#),
        ["a \\\" b", "d"]
    );
}

#[test]
fn no_text_for_people_uses_the_words_of_the_inside() {
    let home = home_with_notes();
    let mut texts: Vec<(String, String)> = Vec::new();
    for name in commands() {
        texts.push((
            format!("help of {name}"),
            home.run(&format!("{name} --help")).well(),
        ));
    }
    for command in [
        "--help",
        "help --all",
        "status",
        "list",
        "doctor",
        "doctor --report",
        "inject",
    ] {
        texts.push((command.to_owned(), home.run(command).stdout));
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // What is said when something goes wrong stands in the source.
    for folder in [
        "crates/cli/src",
        "crates/cli/src/commands",
        "crates/cli/src/commands/internal",
        "crates/app/src/upkeep",
    ] {
        for (name, source) in files(&root.join(folder), "rs") {
            let code = source.split("#[cfg(test)]").next().unwrap_or_default();
            let sentences = literals(code).into_iter().filter(|text| text.contains(' '));
            texts.extend(sentences.map(|sentence| (name.clone(), sentence)));
        }
    }
    let skills = fs::read_dir(root.join("skills")).unwrap();
    let skills = skills.map(|entry| entry.unwrap().path());
    for folder in skills.chain([root.join("commands")]) {
        texts.extend(files(&folder, "md"));
    }
    for (place, text) in texts {
        assert_eq!(kept_out(&text), None, "{place}: {text}");
    }
}

/// The files of a folder that have an ending, by name; none where there is no folder.
fn files(folder: &Path, ending: &str) -> Vec<(String, String)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|found| found == ending))
        .map(|path| {
            (
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

/// The string literals of a Rust source, as written; comments and characters are passed over.
fn literals(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = source;
    while let Some(at) = rest.find(['"', '/', '\'']) {
        let (before, here) = rest.split_at(at);
        if here.starts_with("//") {
            rest = here.split_once('\n').map_or("", |(_, after)| after);
        } else if let Some(after) = here.strip_prefix("'\"'") {
            rest = after;
        } else if let Some(text) = here.strip_prefix('"') {
            let is_raw = before.ends_with('r');
            let mut escaped = false;
            let end = text
                .char_indices()
                .find(|(_, character)| {
                    let ends = *character == '"' && !escaped;
                    escaped = *character == '\\' && !escaped && !is_raw;
                    ends
                })
                .map_or(text.len(), |(at, _)| at);
            found.push(text[..end].to_owned());
            rest = text.get(end + 1..).unwrap_or_default();
        } else {
            rest = &here[1..];
        }
    }
    found
}
