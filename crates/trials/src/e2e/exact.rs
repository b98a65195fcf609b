//! After each scenario: what the client's transcripts have of our hooks is what `why --exact` prints.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anamnesis_testkit::process::{self, Context as _, Result, TestFailure};
use serde_json::Value;

/// Time limit for one command.
const LIMIT: Duration = Duration::from_secs(30);

/// What stands for a part of a text whose note was forgotten.
const FORGOTTEN: &str = "[forgotten]";

/// Checks all machines of a scenario. Returns how many texts were compared.
pub(super) fn check(folder: &Path, plugin: &Path) -> Result<usize> {
    let mut compared = 0;
    for home in homes(folder) {
        let mut given: Vec<(String, String)> = Vec::new();
        for transcript in transcripts(&home.join(".claude/projects")) {
            let text = fs::read_to_string(&transcript).context(transcript.display())?;
            let records = text
                .lines()
                .filter_map(|line| serde_json::from_str(line).ok());
            given.extend(records.flat_map(|record: Value| texts_of(&record)));
        }
        let sessions: BTreeSet<&str> = given.iter().map(|(session, _)| session.as_str()).collect();
        let mut kept = BTreeSet::new();
        for session in sessions {
            kept.extend(exact(&home, plugin, session)?);
        }
        // Of a forgotten note, the transcript alone has the text.
        let is_rest_of = |cut: &String, text: &str| {
            let mut rest = cut.lines().filter(|line| *line != FORGOTTEN);
            cut.contains(FORGOTTEN) && rest.all(|line| text.contains(line))
        };
        for (session, text) in &given {
            if !kept.contains(text) && !kept.iter().any(|cut| is_rest_of(cut, text)) {
                return Err(TestFailure::new(format!(
                    "the transcript of {session} has a text that `why --exact` does not print:\n{text}"
                )));
            }
        }
        compared += given.len();
    }
    Ok(compared)
}

/// Returns the homes with a store and transcripts.
pub(super) fn homes(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        if folder.join(".anamnesis/journal.db").is_file()
            && folder.join(".claude/projects").is_dir()
        {
            found.push(folder);
            continue;
        }
        open.extend(entries(&folder).filter(|path| path.is_dir() && !path.is_symlink()));
    }
    found
}

/// Returns the transcripts below a folder.
pub(super) fn transcripts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in entries(folder) {
        if path.is_dir() {
            found.extend(transcripts(&path));
        } else if path.extension().is_some_and(|ending| ending == "jsonl") {
            found.push(path);
        }
    }
    found
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path())
}

/// Returns the session and the texts that our hooks added at a record.
fn texts_of(record: &Value) -> Vec<(String, String)> {
    let attachment = &record["attachment"];
    if attachment["type"] != "hook_additional_context" {
        return Vec::new();
    }
    let session = record["sessionId"].as_str().unwrap_or_default();
    let texts = attachment["content"].as_array().into_iter().flatten();
    let texts = texts.filter_map(Value::as_str);
    let own = texts
        .filter(|text| text.starts_with("<anamnesis-context>") || text.starts_with("anamnesis: "));
    own.map(|text| (session.to_owned(), text.to_owned()))
        .collect()
}

/// Returns what `why --exact` prints for a session; nothing if it is not recorded.
fn exact(home: &Path, plugin: &Path, session: &str) -> Result<Vec<String>> {
    let mut command = Command::new(plugin.join("bin/anamnesis"));
    command
        .args(["why", session, "--exact", "--json"])
        .env_clear()
        .envs([
            ("HOME", home.as_os_str()),
            ("PATH", "/usr/bin:/bin".as_ref()),
        ]);
    let printed = process::run(&mut command, LIMIT)?;
    let Ok(printed) = serde_json::from_str::<Value>(&printed.stdout) else {
        return Ok(Vec::new());
    };
    let texts = printed["texts"].as_array().into_iter().flatten();
    let texts = texts.filter_map(|text| text["text"].as_str());
    Ok(texts.map(str::to_owned).collect())
}
