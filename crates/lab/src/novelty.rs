//! Measures how well known text is told from new text, on sets of notes.
//!
//! A set is a folder with `notes.jsonl`, as for `eval`. Texts are derived from drawn notes by rule:
//! the note itself, with a changed number, with a negation, with a sentence dropped or added, with
//! reordered words. The last text is the note itself while the store does not contain it. Each text
//! is judged like a note to be saved. No text of a set is kept.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteType},
};
use anamnesis_recall::novelty::{Novelty, NoveltyScope, novelty};
use anamnesis_store::index::Index;
use serde_json::json;

use crate::{
    Result,
    eval::{rows, stored, text},
};

/// Lengths of suitable notes in words: a short note has nothing to change.
const LENGTHS: std::ops::RangeInclusive<usize> = 8..=200;

/// The least number of words of an added sentence.
const SENTENCE: usize = 4;

/// Derives a text from a note and an unrelated note.
type Derivation = fn(&str, &str) -> Option<String>;

/// The rules by which texts are derived.
const CHANGES: [(&str, Derivation); 7] = [
    ("itself", |text, _| Some(text.to_owned())),
    ("a sentence dropped", |text, _| without_last_sentence(text)),
    ("its words turned round", |text, _| Some(swap_halves(text))),
    ("a sentence added", |text, other| {
        let mut others = sentences(other).into_iter();
        let more = others.find(|other| other.split_whitespace().count() >= SENTENCE)?;
        Some(format!("{text}\n\n{more}"))
    }),
    ("a number changed", |text, _| increment_number(text)),
    ("a denial put in", |text, _| negate(text)),
    ("itself, left out of the store", |text, _| {
        Some(text.to_owned())
    }),
];

const DECISIONS: [&str; 5] = [
    "known",
    "extends",
    "novel",
    "known by another",
    "about another",
];

/// Measure how well known text is told from new text
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folders with notes.jsonl
    #[arg(value_name = "FOLDER", required = true)]
    sets: Vec<PathBuf>,
    /// Number of notes to draw from each set
    #[arg(long, value_name = "NUMBER", default_value_t = 500)]
    notes: usize,
    /// Print JSON, one line per set
    #[arg(long)]
    json: bool,
}

/// Runs `cargo xtask novelty`.
pub fn run(arguments: &Arguments) -> Result {
    let mut out = io::stdout().lock();
    for folder in &arguments.sets {
        let table = measure(folder, arguments.notes)?;
        let name = folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if arguments.json {
            let table: BTreeMap<_, _> = table.iter().cloned().collect();
            writeln!(out, "{}", json!({ "set": name, "texts": table }))?;
            continue;
        }
        writeln!(out, "{name}")?;
        for (change, decisions) in table {
            let all: usize = decisions.values().sum();
            write!(out, "  {change:<30} {all:>5}")?;
            for decision in DECISIONS {
                if let Some(count) = decisions.get(decision) {
                    write!(out, "  {decision} {:.1} %", percent(*count, all))?;
                }
            }
            writeln!(out)?;
        }
    }
    Ok(())
}

/// The number of each decision, by rule.
type Table = Vec<(&'static str, BTreeMap<&'static str, usize>)>;

fn measure(folder: &Path, number: usize) -> Result<Table> {
    let mut notes: Vec<Note> = Vec::new();
    let mut files = Vec::new();
    for row in rows(&folder.join("notes.jsonl"))? {
        let file = stored(NoteId::made_of(&text(&row, "id")), &row, None)?;
        notes.push(file.note());
        files.push(file);
    }
    let index = Index::in_memory(files)?;
    let by_id: HashMap<NoteId, &Note> = notes.iter().map(|note| (note.id, note)).collect();
    let drawn: Vec<&Note> = notes
        .iter()
        .filter(|note| LENGTHS.contains(&full_text(note).split_whitespace().count()))
        .collect();
    let step = (drawn.len() / number.max(1)).max(1);
    let mut table: Table = CHANGES.map(|(change, _)| (change, BTreeMap::new())).into();
    for (place, note) in drawn.iter().enumerate().step_by(step) {
        // An unrelated note from the other half of the set.
        let other = full_text(drawn[(place + drawn.len() / 2) % drawn.len()]);
        for ((change, make), (_, decisions)) in CHANGES.iter().zip(&mut table) {
            let Some(text) = make(&full_text(note), &other) else {
                continue;
            };
            let mut wanted = Note::new(NoteId::made_of(change), NoteType::Semantic, now());
            wanted.body = text;
            let left_out = [note.id];
            let among = NoveltyScope {
                projects: std::slice::from_ref(&note.project),
                replaced: if change.ends_with("left out of the store") {
                    &left_out
                } else {
                    &[]
                },
                ..NoveltyScope::default()
            };
            let read = |id| by_id.get(&id).map(|note| (*note).clone());
            let found = novelty(&index, &wanted, &among, read)?;
            let is_other = found.note().is_some_and(|id| id != note.id);
            let decision = match found {
                Novelty::Known(_) if is_other => "known by another",
                _ if is_other => "about another",
                found => found.as_str(),
            };
            *decisions.entry(decision).or_default() += 1;
        }
    }
    Ok(table)
}

fn now() -> chrono::DateTime<chrono::Utc> {
    chrono::DateTime::UNIX_EPOCH
}

/// Returns title and body, one line per paragraph.
fn full_text(note: &Note) -> String {
    let title = [note.title.as_str()];
    let title = title.iter().filter(|title| !note.body.starts_with(**title));
    let paragraphs = title.copied().chain(note.body.split("\n\n"));
    let paragraphs = paragraphs.map(|paragraph| paragraph.replace('\n', " "));
    paragraphs.collect::<Vec<_>>().join("\n").trim().to_owned()
}

fn sentences(text: &str) -> Vec<&str> {
    let parts = text.split_inclusive('\n');
    let parts = parts.flat_map(|line| line.split_inclusive(". "));
    parts.filter(|part| !part.trim().is_empty()).collect()
}

fn without_last_sentence(text: &str) -> Option<String> {
    let (_, kept) = sentences(text)
        .split_last()
        .map(|(a, b)| (*a, b.concat()))?;
    (kept.split_whitespace().count() >= *LENGTHS.start()).then_some(kept)
}

/// Swaps the halves of each sentence.
fn swap_halves(text: &str) -> String {
    let swapped = sentences(text).into_iter().map(|sentence| {
        let end = sentence.trim_end_matches(['.', ' ', '\n']);
        let mut words: Vec<&str> = end.split_whitespace().collect();
        let half = words.len() / 2;
        words.rotate_left(half);
        format!("{}{}", words.join(" "), &sentence[end.len()..])
    });
    swapped.collect()
}

/// Increments the first number that is a word of its own.
fn increment_number(text: &str) -> Option<String> {
    let number = text
        .split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .find(|word| {
            word.len() < 10 && !word.is_empty() && word.bytes().all(|b| b.is_ascii_digit())
        })?;
    let more: u64 = number.parse::<u64>().ok()? + 1;
    let at = number.as_ptr() as usize - text.as_ptr() as usize;
    let (before, after) = (&text[..at], &text[at + number.len()..]);
    Some(format!("{before}{more}{after}"))
}

/// Negates the first of a few verbs.
fn negate(text: &str) -> Option<String> {
    let verbs = [
        " is ", " are ", " was ", " were ", " should ", " can ", " must ", " will ",
    ];
    let found = verbs
        .iter()
        .filter_map(|verb| Some((text.find(verb)?, verb)));
    let (at, verb) = found.min()?;
    let (before, after) = text.split_at(at + verb.len());
    (!after.starts_with("not ")).then(|| format!("{before}not {after}"))
}

fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn texts_are_derived_by_rule() {
        let text = "The stub listens on port 8081. It is started by make.";
        assert_eq!(
            increment_number(text).as_deref(),
            Some("The stub listens on port 8082. It is started by make.")
        );
        assert_eq!(
            negate(text).as_deref(),
            Some("The stub listens on port 8081. It is not started by make.")
        );
        assert_eq!(without_last_sentence("One. Two."), None);
        assert_eq!(
            swap_halves(text),
            "on port 8081 The stub listens. started by make It is."
        );
        assert_eq!(increment_number("v2 of a1"), None);
        assert_eq!(negate("It is not so"), None);
    }

    #[test]
    fn a_set_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let rows: String = (0..8)
            .map(|number| {
                let title = format!("Service {number}{number} listens on port 70{number}");
                let body = format!("{title} and is started by script{number} before the gateway");
                json!({ "id": number.to_string(), "project": "p", "title": title, "body": body })
                    .to_string()
                    + "\n"
            })
            .collect();
        fs::write(folder.path().join("notes.jsonl"), rows).unwrap();
        let table = measure(folder.path(), 500).unwrap();
        let of = |name: &str| {
            table
                .iter()
                .find(|(change, _)| *change == name)
                .unwrap()
                .1
                .clone()
        };
        assert_eq!(of("itself"), BTreeMap::from([("known", 8)]));
        for change in ["a number changed", "a denial put in"] {
            assert!(!of(change).contains_key("known"), "{table:?}");
            assert!(!of(change).contains_key("known by another"), "{table:?}");
        }
    }
}
