use proptest::prelude::*;

use super::*;

/// Returns the commands of a script, with their words joined by a bar.
fn shown(script: &str) -> Vec<String> {
    let commands = commands(script).into_iter();
    commands.map(|words| words.join("|")).collect()
}

/// Scripts and their commands.
const SCRIPTS: &[(&str, &[&str])] = &[
    ("", &[]),
    ("git push", &["git|push"]),
    // Operators.
    (
        "a 1 && b 2 || c 3; d 4 | e 5 |& f 6 & g 7\nh 8",
        &["a|1", "b|2", "c|3", "d|4", "e|5", "f|6", "g|7", "h|8"],
    ),
    ("git push \\\n  --force", &["git|push|--force"]),
    // Prefixes of a command.
    ("RUST_LOG=debug A= cargo test", &["cargo|test"]),
    (
        "sudo -u postgres -H psql -l",
        &["sudo|-u|postgres|-H|psql|-l", "psql|-l"],
    ),
    (
        "env -u HOME A=1 /bin/git push",
        &["env|-u|HOME|A=1|/bin/git|push", "git|push"],
    ),
    (
        "time -p nice -n 5 git push",
        &["time|-p|nice|-n|5|git|push", "git|push"],
    ),
    (
        "timeout -k 5 60s git push",
        &["timeout|-k|5|60s|git|push", "git|push"],
    ),
    ("command -p git push", &["command|-p|git|push", "git|push"]),
    ("command -v git push", &["command|-v|git|push"]),
    ("sudo -- git push", &["sudo|--|git|push", "git|push"]),
    ("sudo", &["sudo"]),
    (
        "ls | xargs -n 1 -I{} rm -rf {}",
        &["ls", "xargs|-n|1|-I{}|rm|-rf|{}", "rm|-rf|{}"],
    ),
    // Quotes.
    (
        "echo 'git push' \"a b\"c d\\ e ''",
        &["echo|git push|a bc|d e|"],
    ),
    (
        r#"echo "a \"b\" \n $x" $'it\'s'"#,
        &[r#"echo|a "b" \n $x|it's"#],
    ),
    (
        "echo 'never closed; git push",
        &["echo|never closed; git push"],
    ),
    (
        "echo \"never closed; git push",
        &["echo|never closed; git push"],
    ),
    // Nested lists.
    ("(cd a; git push)", &["cd|a", "git|push"]),
    ("{ git push; }", &["git|push", "}"]),
    ("echo $(git push) b", &["git|push", "echo|$|b"]),
    (
        "echo \"x $(git push \"a b\") y\" z",
        &["git|push|a b", "echo|x $ y|z"],
    ),
    ("echo `git push` b", &["git|push", "echo||b"]),
    (
        "echo ${x:-$(git push; true)} b",
        &["git|push", "true", "echo|${x:-$}|b"],
    ),
    (
        "diff <(git log) >(git push)",
        &["git|log", "git|push", "diff|<|>"],
    ),
    ("echo \"${x//a b/\"}\"}\" c", &["echo|${x//a b/}}|c"]),
    // Shell keywords.
    (
        "if ! git push; then git pull; else true; fi",
        &["git|push", "git|pull", "true", "fi"],
    ),
    (
        "for f in *.sql; do psql -f $f; done",
        &["for|f|in|*.sql", "psql|-f|$f", "done"],
    ),
    (
        "case $x in a) git push ;; esac",
        &["case|$x|in|a", "git|push", "esac"],
    ),
    ("f() { git push; }", &["f", "git|push", "}"]),
    // Comments and redirections.
    ("# git push\nls # git push\necho a#b", &["ls", "echo|a#b"]),
    (
        "make 2>&1 >out.log 2>/dev/null </dev/null &>all.log x",
        &["make|x"],
    ),
    ("cat <<<'git push' b", &["cat|b"]),
    // Here-documents.
    ("cat > a <<EOF\ngit push\nEOF\nls", &["cat", "ls"]),
    (
        "cat <<-'E O' | sort\n\tgit push\n\tE O\nls",
        &["cat", "sort", "ls"],
    ),
    ("cat <<A <<B\ngit\nA\npush\nB\nls", &["cat", "ls"]),
    ("cat <<EOF\ngit push", &["cat"]),
    (
        "git commit -m \"$(cat <<'EOF'\ngit push --force\nEOF\n)\" && ls",
        &["cat", "git|commit|-m|$", "ls"],
    ),
    ("x=$((1<<2))\ngit push", &["git|push"]),
    ("((x = 1 << 2))\ngit push", &["x|=|1", "git|push"]),
    // Options with a value.
    (
        "git push --repo=origin -o=x",
        &["git|push|--repo|origin|-o=x"],
    ),
    // Commands in arguments.
    (
        "bash -lc 'cd a && git push'",
        &["bash|-lc|cd a && git push", "cd|a", "git|push"],
    ),
    ("bash -x script.sh -c", &["bash|-x|script.sh|-c"]),
    ("eval git push", &["eval|git|push", "git|push"]),
    (
        "npx --yes prisma migrate reset",
        &["npx|--yes|prisma|migrate|reset", "prisma|migrate|reset"],
    ),
    (
        "poetry run pytest -x",
        &["poetry|run|pytest|-x", "pytest|-x"],
    ),
    (
        "find . -name x -exec rm -rf {} \\; -print",
        &[
            "find|.|-name|x|-exec|rm|-rf|{}|;|-print",
            "rm|-rf|{}|;|-print",
        ],
    ),
];

#[test]
fn scripts_are_split_into_commands() {
    for (script, expected) in SCRIPTS {
        assert_eq!(&shown(script), expected, "{script}");
    }
}

#[test]
fn single_commands_are_recognized() {
    let words = |text: &str| single_command(text).map(|words| words.join("|"));
    assert_eq!(words("sudo rm -rf").as_deref(), Some("sudo|rm|-rf"));
    assert_eq!(words("npx tsc").as_deref(), Some("npx|tsc"));
    for text in ["", "a && b c", "echo $(git push)", "A=1", "# a"] {
        assert_eq!(words(text), None, "{text}");
    }
}

#[test]
fn the_value_of_a_variable_is_found() {
    for (script, value) in [
        ("A=/x/y B=2 program", Some("/x/y")),
        ("B=2 A='my notes' uv run program", Some("my notes")),
        ("env A=\"it's\" program", Some("it's")),
        ("AA=1 program --A 2", None),
    ] {
        assert_eq!(assigned(script, "A").as_deref(), value, "{script}");
    }
}

#[test]
fn hostile_scripts_terminate() {
    let long = 1 << 20;
    for script in [
        "'".repeat(long),
        "\"".repeat(long),
        "`".repeat(long),
        "$(".repeat(long / 2),
        "${".repeat(long / 2),
        "(".repeat(long),
        "\0".repeat(long),
        "a ".repeat(long / 2),
        "a;".repeat(long / 2),
        "npx ".repeat(long / 4),
        "eval ".repeat(long / 5),
        "find -exec ".repeat(long / 11),
        "sudo ".repeat(long / 5),
        "<<a ".repeat(long / 4) + "\n" + &"b\n".repeat(1_000),
        "\"$(".repeat(long / 3),
    ] {
        let found = commands(&script);
        let words: usize = found.iter().map(Vec::len).sum();
        assert!(words <= 2 * MAX_RUNS * MAX_WORDS, "{words}");
    }
}

proptest! {
    #[test]
    fn any_text_is_accepted(script in "(?s).{0,200}") {
        let _ = commands(&script);
    }

    #[test]
    fn any_syntax_is_accepted(
        parts in prop::collection::vec(
            prop::sample::select(vec![
                "git", " ", "push", "'", "\"", "`", "$(", ")", "(", "${", "}", "<<E", "\nE\n", "\\",
                "\n", ";", "&&", "|", ">", "<(", "#", "sudo", "bash -c", "env A=1", "((", "\0", "é",
            ]),
            0..60,
        ),
    ) {
        for words in commands(&parts.concat()) {
            prop_assert!(!words.is_empty());
        }
    }

        /// A command is found in any context that runs it.
    #[test]
    fn a_command_is_found_wherever_it_runs(
        before in prop::sample::select(vec![
            "", "ls; ", "cd a && ", "A=1 ", "sudo ", "echo $(", "(", "if true; then ", "`", "cat <<E\nx\nE\n",
            "echo \"$(", "! ", "diff <(",
        ]),
        after in prop::sample::select(vec!["", " ; ls", " | cat", " 2>&1", "\nls", " # x", " && ls"]),
    ) {
        let script = format!("{before}git push origin{after}");
        let found = commands(&script);
        prop_assert!(
            found.iter().any(|words| words == &["git", "push", "origin"]),
            "{:?} {:?}", script, found
        );
    }
}
