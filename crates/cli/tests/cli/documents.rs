//! Every command line in README and docs runs as it is written.

use std::{fs, path::Path};

use anamnesis_testkit::home::TestHome;

use crate::{SESSION, home, home_with_notes};

/// The pages with commands for people.
const FOLDERS: [&str; 3] = ["", "docs", "docs/reference"];

/// Parts of commands that may fail in a new store, with what is printed then.
const FAILING: [(&str, &str); 17] = [
    ("log", "0 commits"),
    ("diff", "there is no history yet"),
    ("--at", "there is no history yet"),
    ("--at", "the history has nothing before"),
    ("undo", "no change \"CHANGE\""),
    ("diff", "no change \"CHANGE\""),
    ("sessions", "no session"),
    ("session", "no session"),
    ("eval", "no approved questions"),
    ("eval", "eval.jsonl"),
    ("edit", "is unchanged"),
    ("eval build", "no model is set"),
    ("eval experiment", "no model is set"),
    ("merge", "no model is set"),
    ("model add", "cannot read the embedding model"),
    ("purge --find", "nothing was purged"),
    ("", "cannot ask for confirmation"),
];

/// Commands that wait for a browser or a client, need another program's files, or the network.
const NOT_RUN: [&str; 5] = [
    "open",
    "serve",
    "init --host",
    "import --from claude-mem",
    "config test",
];

/// Returns the code blocks of a page that have command lines: lines that begin with `anamnesis`,
/// without comments and without what they are piped into.
fn blocks(page: &str) -> Vec<Vec<String>> {
    let mut is_fenced = false;
    let mut blocks = vec![Vec::new()];
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if is_fence || !is_fenced && !line.starts_with("    ") {
            blocks.push(Vec::new());
            continue;
        }
        // A comment is after a hash, or after two blanks.
        let command = line.trim().split(" #").next().unwrap_or_default();
        let command = command.split("  ").next().unwrap_or_default();
        let command = command.split(" | ").next().unwrap_or_default().trim();
        if command.starts_with("anamnesis ") {
            blocks.last_mut().unwrap().push(command.to_owned());
        }
    }
    blocks.retain(|block| !block.is_empty());
    blocks
}

/// Returns why a command line did not run as expected.
fn fault(home: &TestHome, line: &str) -> Option<String> {
    let words = words(line, home);
    let called = words.join(" ");
    if NOT_RUN.iter().any(|verb| called.starts_with(verb)) {
        return None;
    }
    let command = home.command(&words).env("PATH", "/usr/bin:/bin");
    let output = command.env("EDITOR", "true").input("A text\n").run();
    let text = format!("{}{}", output.stdout, output.stderr);
    let mut expected = FAILING.iter().filter(|(verb, _)| called.contains(verb));
    let is_right = match output.code {
        Some(0 | 3) => true,
        Some(1 | 2) => expected.any(|(_, reason)| text.contains(reason)),
        _ => false,
    };
    (!is_right).then(|| format!("{line}: {:?} {text}", output.code))
}

/// Splits a line as a shell does, with values for the placeholders.
fn words(line: &str, home: &TestHome) -> Vec<String> {
    let mut words = Vec::new();
    for (part, text) in line.split(['"', '\'']).enumerate() {
        if part % 2 == 1 {
            words.push(text.to_owned());
        } else {
            words.extend(text.split_whitespace().map(str::to_owned));
        }
    }
    let root = home.root().display().to_string();
    words
        .iter()
        .skip(1)
        .map(|word| match word.as_str() {
            "ID" | "EARLIER" => "7Q4KZ9".to_owned(),
            "M3V8DT" => "B2M6RD".to_owned(),
            "FILE" => format!("{root}/new-file"),
            "N" => "1".to_owned(),
            _ => word.replace("~/", &format!("{root}/")),
        })
        .collect()
}

#[test]
fn every_command_line_of_the_documents_runs() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut faults = Vec::new();
    let mut count = 0;
    for folder in FOLDERS {
        let pages = fs::read_dir(root.join(folder)).unwrap();
        for page in pages.map(|entry| entry.unwrap().path()) {
            if page.extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            for block in blocks(&fs::read_to_string(&page).unwrap()) {
                let home = home_with_notes();
                home.run("internal reindex").well();
                count += block.len();
                let found = block.iter().filter_map(|line| fault(&home, line));
                faults.extend(found.map(|fault| format!("{}: {fault}", page.display())));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 30, "only {count} command lines were found");
}

/// Reads a file of the repository.
fn page(path: &str) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap()
}

#[test]
fn the_page_of_commands_lists_all_of_them() {
    let page = page("docs/reference/commands.md");
    let is_listed = |name: &str| page.contains(&format!("`{name}"));
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../commands");
    for command in fs::read_dir(folder).unwrap() {
        let command = command.unwrap().path();
        let name = command.file_stem().unwrap().to_str().unwrap();
        let long = format!("/anamnesis:{name}");
        assert!(is_listed(&format!("/{name}")) || is_listed(&long), "{name}");
    }
    let (_, page) = page.split_once("## Terminal commands\n").unwrap();
    let help = home().run("help --all").well();
    let commands = help.lines().filter_map(|line| line.strip_prefix("  "));
    for name in commands.filter_map(|line| line.split(' ').next()) {
        assert!(page.contains(&format!("`{name}`")), "{name}");
    }
}

#[test]
fn the_first_day_shows_what_the_status_prints() {
    let home = home();
    home.hook(&home.start(SESSION, "startup")).well();
    let mut payload = home.payload("UserPromptSubmit", SESSION);
    payload["prompt"] = "/memory-status".into();
    let hook = home.hook_with(payload.to_string());
    let answer = hook.env("CLAUDE_CODE_ENTRYPOINT", "cli").run().json();
    let shown = answer["reason"].as_str().unwrap().lines();
    let page = page("docs/first-day.md");
    let (_, block) = page.split_once("```\nstore: ").unwrap();
    let (block, _) = block.split_once("\n```").unwrap();
    // The time differs.
    let without_time = |line: &str| line.split(" · hooks").next().map(str::to_owned);
    let expected = format!("store: {block}");
    assert!(
        shown
            .filter_map(without_time)
            .eq(expected.lines().filter_map(without_time)),
        "{answer}"
    );
}

#[test]
fn the_readme_shows_what_the_demo_prints() {
    let home = home_with_notes();
    let shown = home.run("demo").well();
    let page = page("README.md");
    let (_, block) = page.split_once("Its output, shortened:\n\n```\n").unwrap();
    let (block, _) = block.split_once("```").unwrap();
    let mut rest = shown.as_str();
    for line in block
        .lines()
        .filter(|line| !matches!(line.trim(), "" | "…"))
    {
        let found = rest.find(&format!("{line}\n"));
        let found = found.unwrap_or_else(|| panic!("not printed, or not in this order: {line}"));
        rest = &rest[found + line.len()..];
    }
}
