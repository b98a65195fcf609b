//! Every command line in README and docs runs as it is written.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

use anamnesis_testkit::home::TestHome;
use serde_json::Value;

use crate::{
    SESSION, home, home_with_notes,
    sessions::{end, play},
};

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

/// Returns the lines of a page, and whether each is in a code block.
fn lines(page: &str) -> impl Iterator<Item = (&str, bool)> {
    let mut is_fenced = false;
    page.lines().map(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        let is_code = !is_fence && (is_fenced || line.starts_with("    "));
        (line, is_code)
    })
}

/// Returns the code blocks of a page that have command lines: lines that begin with `anamnesis`,
/// without comments and without what they are piped into.
fn blocks(page: &str) -> Vec<Vec<String>> {
    let mut blocks = vec![Vec::new()];
    for (line, is_code) in lines(page) {
        if !is_code {
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

/// Returns the commands in the sentences and tables of a page, up to a placeholder for several words.
fn named(page: &str) -> Vec<&str> {
    let sentences = lines(page).filter(|(_, is_code)| !is_code);
    let code = sentences.flat_map(|(line, _)| line.split('`').skip(1).step_by(2));
    let commands = code.filter(|code| code.starts_with("anamnesis "));
    commands
        .filter_map(|command| command.split(['|', '[', '…']).next())
        .collect()
}

/// Returns the pages for people, with their paths.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = FOLDERS
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap());
    let paths = folders.map(|entry| entry.unwrap().path());
    let pages = paths.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    pages
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

#[test]
fn every_command_line_of_the_documents_runs() {
    let mut faults = Vec::new();
    let mut count = 0;
    for (path, page) in pages() {
        for block in blocks(&page) {
            let home = home_with_notes();
            home.run("internal reindex").well();
            count += block.len();
            let found = block.iter().filter_map(|line| fault(&home, line));
            faults.extend(found.map(|fault| format!("{}: {fault}", path.display())));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(count > 30, "only {count} command lines were found");
}

#[test]
fn every_command_that_a_sentence_names_is_known() {
    const UNKNOWN: [&str; 3] = [
        "unexpected argument",
        "unrecognized subcommand",
        "no setting",
    ];
    let home = home();
    let mut count = 0;
    for (path, page) in pages() {
        for command in named(&page) {
            let mut words = words(command, &home);
            // Help is printed if all words before it are known. A setting takes any word as a value.
            if !command.contains(" config set ") {
                words.push("--help".to_owned());
            }
            let output = home.command(&words).run();
            let text = format!("{}{}", output.stdout, output.stderr);
            let is_known = UNKNOWN.iter().all(|part| !text.contains(part));
            assert!(is_known, "{}: {command}: {text}", path.display());
            count += 1;
        }
    }
    assert!(count > 100, "only {count} commands were found");
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

/// Commands with `--json`, in this order, in a store with notes and a session.
const WITH_JSON: [&str; 47] = [
    "status",
    "list",
    "search stub",
    "search rate --everywhere",
    "recall stub server",
    "show 7Q4KZ9",
    "sessions",
    "sessions show 5b0c8f1e",
    "why",
    "why 5b0c8f1e",
    "eval prompt stub",
    "stats",
    "stale",
    "review",
    "project",
    "project list",
    "config",
    "doctor",
    "upkeep",
    "write --title Limits",
    "edit 7Q4KZ9 --title Changed",
    "review --approve B2M6RD",
    "connect 7Q4KZ9 B2M6RD",
    "verify B2M6RD",
    "feedback 7Q4KZ9 good",
    "pin 7Q4KZ9",
    "move 7Q4KZ9 --project global",
    "task list",
    "task add Rotate the key",
    "forget ZD81QV",
    "log",
    "undo",
    "undo -n 1",
    "sync",
    "backfill",
    "import",
    "prove",
    "config get recall.notes",
    "config unset recall.notes",
    "upkeep --only links",
    "internal inject",
    "export",
    "reflect",
    "init",
    "off",
    "on",
    "redact",
];

/// What each field says: `name: meaning` for every command, `command path: meaning` for one.
const MEANINGS: &str = include_str!("json_fields.txt");

/// Returns the line about a field of a command. That with the longest command and path wins.
fn line_about(command: &str, field: &str) -> Option<&'static str> {
    let last = field
        .trim_end_matches("[]")
        .rsplit('.')
        .next()
        .unwrap_or(field);
    let last = last.trim_end_matches("[]");
    let mut words: Vec<&str> = command.split(' ').collect();
    let of = |name: &str| {
        let begin = format!("{name}: ");
        MEANINGS.lines().find(|line| line.starts_with(&begin))
    };
    while !words.is_empty() {
        let command = words.join(" ");
        if let Some(meaning) =
            of(&format!("{command} {field}")).or_else(|| of(&format!("{command} {last}")))
        {
            return Some(meaning);
        }
        words.pop();
    }
    of(last)
}

/// Adds the fields of a value with their types, below `name`.
fn add_fields(value: &Value, name: &str, fields: &mut BTreeMap<String, BTreeSet<&'static str>>) {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "number",
        Value::String(_) => "text",
        Value::Array(_) => "list",
        Value::Object(_) => "object",
    };
    if !name.is_empty() {
        fields.entry(name.to_owned()).or_default().insert(kind);
    }
    let dot = if name.is_empty() { "" } else { "." };
    match value {
        Value::Array(items) => {
            for item in items {
                add_fields(item, &format!("{name}[]"), fields);
            }
        }
        Value::Object(items) => {
            // The keys of an object by project or by kind are values themselves.
            let is_table = items.keys().any(|key| {
                !key.chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
            });
            for (key, item) in items {
                let key = if is_table { "KEY" } else { key };
                add_fields(item, &format!("{name}{dot}{key}"), fields);
            }
        }
        _ => {}
    }
}

/// The fields that each command prints with `--json` are a page of the documents, made by this test:
/// `INSTA_UPDATE=always` writes it.
#[test]
fn the_page_of_json_lists_every_field() {
    let home = home_with_notes();
    play(&home, SESSION);
    end(&home, SESSION, "clear");
    let mut unexplained = Vec::new();
    let mut used = BTreeSet::new();
    let mut text = String::from(
        "# Fields of `--json`\n\n\
         What each command prints with `--json`, by running it in a store with a few notes and one session. \
         `a.b` is a field of the object `a`, `a[]` an item of the list `a`, `KEY` a key such as a project's. Times \
         are ISO 8601, ids are whole. A field that is null, or left out, has nothing to say. What changed \
         something has `said`, the text that it prints otherwise, and often `change`, which `anamnesis undo` takes.\n",
    );
    for command in WITH_JSON {
        let output = home.run(&format!("{command} --json"));
        assert!(matches!(output.code, Some(0 | 3)), "{command}: {output:?}");
        let mut fields = BTreeMap::new();
        add_fields(&output.json(), "", &mut fields);
        let _ = write!(
            text,
            "\n## `{command}`\n\n| field | type | what it says |\n| --- | --- | --- |\n"
        );
        for (field, kinds) in fields {
            let kinds: Vec<&str> = kinds.into_iter().collect();
            let line = line_about(command, &field);
            unexplained.extend(line.is_none().then(|| format!("{command} {field}")));
            used.extend(line);
            let (_, meaning) = line
                .and_then(|line| line.split_once(": "))
                .unwrap_or_default();
            let _ = writeln!(text, "| `{field}` | {} | {meaning} |", kinds.join(" or "));
        }
    }
    assert!(
        unexplained.is_empty(),
        "add to json_fields.txt: {unexplained:#?}"
    );
    let unused: Vec<&str> = MEANINGS
        .lines()
        .filter(|line| !used.contains(line))
        .collect();
    assert!(
        unused.is_empty(),
        "no field of json_fields.txt: {unused:#?}"
    );
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/json.md");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(&path, &text).unwrap();
    }
    assert!(
        fs::read_to_string(&path).unwrap_or_default() == text,
        "docs/reference/json.md is out of date: run this test with INSTA_UPDATE=always"
    );
}
