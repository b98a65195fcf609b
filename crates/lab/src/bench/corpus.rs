//! Generates notes, transcripts and events from a seed.
//!
//! Notes and transcripts are written without the product's crates, like a store of another program.
//! Words have Zipf's frequencies, so that a search meets a few frequent and many rare words, as in
//! real notes. Only the product writes journals, so its code writes their rows.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anamnesis_session::event::{
    FileAction, FileUse, Outcome, RecordedEvent, SessionEvent, Surroundings, ToolEvent,
};
use anamnesis_session::prompt::{RawPrompt, SafePrompt};
use anamnesis_store::fs::home::Home;
use anamnesis_store::journal::Journal;
use anamnesis_text::private_tokens::PrivateTokens;
use chrono::{DateTime, SecondsFormat};
use serde_json::{Value, json};
use ulid::Ulid;

use crate::{Result, at, random::Random};

/// Number of projects.
pub(super) const PROJECTS: u64 = 40;

/// Number of notes for all projects. It does not grow with the store.
const GLOBAL_NOTES: usize = 12;

/// The project whose sessions are measured.
pub(super) const PROJECT: u64 = 7;

/// Number of its notes that warn of a command. Other projects have no warnings.
pub(super) const WARNINGS: usize = 20;

/// Number of links of each note.
const LINKS: u64 = 5;

/// Number of different words.
const VOCABULARY: usize = 8_000;

/// The date of the newest note.
pub(super) const NOW: &str = "2026-06-01T12:00:00Z";

/// The same time in milliseconds since 1970.
const NOW_MILLISECONDS: u64 = 1_780_315_200_000;

/// The most frequent words. The others are built from syllables.
const COMMON_WORDS: &str = "the to of a in and is for it that not with on we be as this from when by \
    are or if so use test file error build run branch config request server client token cache \
    query index table commit merge release version path module type value key schema migration \
    retry timeout queue worker handler parser session user login payload response header cookie \
    endpoint database container deploy pipeline fixture mock snapshot lint format import export \
    async thread lock race leak buffer stream socket proxy certificate permission role audit";

const SYLLABLES: [&str; 24] = [
    "ba", "cor", "del", "fin", "gra", "hol", "jun", "kel", "lin", "mar", "nor", "pel", "quo",
    "ras", "sol", "tur", "val", "wen", "xen", "yor", "zel", "tic", "ment", "ra",
];

/// The vocabulary with its frequencies.
#[derive(Debug)]
pub(crate) struct Words {
    words: Vec<String>,
    /// The sum of the weights up to and including each word.
    sums: Vec<u64>,
}

impl Words {
    pub(crate) fn new() -> Self {
        let mut random = Random::new(1);
        let mut words: Vec<String> = COMMON_WORDS.split_whitespace().map(str::to_owned).collect();
        while words.len() < VOCABULARY {
            let syllables = 2 + random.below(3);
            let word = (0..syllables).map(|_| pick(&mut random, &SYLLABLES));
            words.push(word.collect());
        }
        let mut sum = 0;
        let sums = (1..=words.len() as u64)
            .map(|rank| {
                sum += 1_000_000 / rank;
                sum
            })
            .collect();
        Self { words, sums }
    }

    /// Returns only the most frequent words, for texts that share nearly all of their words.
    pub(super) fn common() -> Self {
        let mut words = Self::new();
        let count = COMMON_WORDS.split_whitespace().count();
        words.words.truncate(count);
        words.sums.truncate(count);
        words
    }

    fn draw(&self, random: &mut Random) -> &str {
        let total = self.sums.last().copied().unwrap_or(1);
        let point = random.below(total);
        let place = self.sums.partition_point(|sum| *sum <= point);
        self.words.get(place).map_or("word", String::as_str)
    }

    /// Returns sentences of `length` characters or slightly more.
    pub(crate) fn text(&self, random: &mut Random, length: usize) -> String {
        let mut text = String::with_capacity(length + 16);
        let mut left_in_line = 0;
        while text.len() < length {
            if left_in_line == 0 {
                if !text.is_empty() {
                    text.push_str(".\n");
                }
                left_in_line = 8 + random.below(10);
                if random.below(3) == 0 {
                    text.push_str("- ");
                }
            } else {
                text.push(' ');
            }
            text.push_str(self.draw(random));
            left_in_line -= 1;
        }
        text.push('.');
        text
    }

    fn title(&self, random: &mut Random) -> String {
        let count = 4 + random.below(5);
        let words: Vec<&str> = (0..count).map(|_| self.draw(random)).collect();
        words.join(" ")
    }
}

/// Returns the project key of a project's remote.
pub(super) fn project_key(number: u64) -> String {
    format!("git.example.com/team/project-{number:02}")
}

/// Returns the command that a warning is about.
pub(super) fn forbidden(number: usize) -> String {
    format!("shopctl-{number} drop --all")
}

/// Writes `count` notes to a store. Returns the title of one of [`PROJECT`]'s notes.
///
/// Of a project's notes a half are facts, a third session notes and the rest rules, from the last
/// two years. Each links to [`LINKS`] notes, and [`WARNINGS`] notes of [`PROJECT`] warn of
/// commands.
pub(crate) fn write_notes(root: &Path, count: usize, words: &Words) -> Result<String> {
    for note_type in ["episodic", "semantic", "procedural"] {
        let folder = root.join("memory").join(note_type);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    let mut random = Random::new(count as u64);
    let here = project_key(PROJECT);
    let mut known = String::new();
    let mut ids: Vec<Ulid> = Vec::with_capacity(count);
    for number in 0..count {
        let warning = number
            .checked_sub(GLOBAL_NOTES)
            .filter(|warning| *warning < WARNINGS);
        let (note_type, project) = if number < GLOBAL_NOTES {
            ("procedural", "global".to_owned())
        } else if warning.is_some() {
            ("procedural", here.clone())
        } else {
            let note_type = match random.below(6) {
                0..=2 => "semantic",
                3 | 4 => "episodic",
                _ => "procedural",
            };
            (note_type, project_key(random.below(PROJECTS)))
        };
        let made = NOW_MILLISECONDS - random.below(730 * 24 * 3_600_000);
        let id = Ulid::from_parts(made, random.next().into());
        let length = usize::try_from(200 + random.below(1_300))?;
        let source = if note_type == "episodic" {
            "session-end"
        } else {
            "human"
        };
        let time = time(made);
        let title = words.title(&mut random);
        let tag = words.draw(&mut random).to_owned();
        let body = words.text(&mut random, length);
        let mut more = String::new();
        if let Some(warning) = warning {
            let command = forbidden(warning);
            let _ = write!(more, "kind: antipattern\nwhen:\n- 'cmd: {command}'\n");
        }
        if !ids.is_empty() {
            more.push_str("links:\n");
        }
        for _ in 0..LINKS.min(ids.len() as u64) {
            let other = ids[usize::try_from(random.below(ids.len() as u64))?];
            let _ = writeln!(more, "- related-to {other}");
        }
        ids.push(id);
        if note_type == "semantic" && project == here {
            known.clone_from(&title);
        }
        let text = format!(
            "---\nid: {id}\ntype: {note_type}\ntitle: '{title}'\nproject: {project}\n\
             machine_id: bench\nscope: portable\nprov_source: {source}\nconfidence: 1.0\n\
             created_at: '{time}'\nupdated_at: '{time}'\ntags:\n- '{tag}'\n{more}---\n{body}\n"
        );
        let path = root.join("memory").join(note_type).join(format!("{id}.md"));
        fs::write(&path, text).map_err(at(&path))?;
    }
    Ok(known)
}

/// Writes a note of [`PROJECT`] to a store.
pub(super) fn write_note(
    root: &Path,
    note_type: &str,
    created: &str,
    title: &str,
    body: &str,
) -> Result {
    let made = DateTime::parse_from_rfc3339(created)?.timestamp_millis();
    // The title makes the random part, so that a store is the same in each run.
    let random = title.bytes().fold(7_u64, |sum, byte| {
        sum.wrapping_mul(31).wrapping_add(byte.into())
    });
    let id = Ulid::from_parts(u64::try_from(made)?, random.into());
    let project = project_key(PROJECT);
    let title = title.replace('\'', "''");
    let folder = root.join("memory").join(note_type);
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let path = folder.join(format!("{id}.md"));
    let text = format!(
        "---\nid: {id}\ntype: {note_type}\ntitle: '{title}'\nproject: {project}\n\
         machine_id: bench\nscope: portable\nprov_source: human\nconfidence: 1.0\n\
         created_at: '{created}'\nupdated_at: '{created}'\ntags: []\n---\n{body}\n"
    );
    fs::write(&path, text).map_err(at(&path))
}

/// Returns a time before [`NOW`] as text.
pub(super) fn time_before_now(milliseconds: u64) -> String {
    time(NOW_MILLISECONDS - milliseconds)
}

/// Appends a line to `count` random notes.
pub(crate) fn change_notes(notes: &[PathBuf], count: usize, random: &mut Random) -> Result {
    for _ in 0..count {
        let path = pick_path(notes, random).ok_or("there are no notes")?;
        let mut file = fs::OpenOptions::new()
            .append(true)
            .open(path)
            .map_err(at(path))?;
        writeln!(file, "Seen again: {}.", random.below(1_000_000)).map_err(at(path))?;
    }
    Ok(())
}

/// Returns the files of all notes of a store.
pub(crate) fn note_files(root: &Path) -> Result<Vec<PathBuf>> {
    note_files_in(&root.join("memory"))
}

/// Returns the files of all notes below a folder like `memory/`.
pub(super) fn note_files_in(tree: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for note_type in ["episodic", "semantic", "procedural"] {
        let folder = tree.join(note_type);
        for entry in fs::read_dir(&folder).map_err(at(&folder))? {
            files.push(entry?.path());
        }
    }
    files.sort();
    Ok(files)
}

/// Writes the transcript of a session in `project`, of `length` bytes or one turn more.
///
/// Most of its bytes are tool results, as in real transcripts.
pub(super) fn write_transcript(path: &Path, project: &Path, length: u64, words: &Words) -> Result {
    let session = Session {
        id: "bench",
        project,
        begun: NOW_MILLISECONDS - 3_600_000,
    };
    session.write(path, length, words, &mut Random::new(length))
}

/// Writes the transcripts of `count` sessions of a project from the last half year. Short ones are
/// more frequent; the average is 150 KB.
pub(super) fn write_past(folder: &Path, project: &Path, count: u64, words: &Words) -> Result {
    fs::create_dir_all(folder).map_err(at(folder))?;
    let mut random = Random::new(count);
    for number in 0..count {
        let id = format!("past-{number:04}");
        let session = Session {
            id: &id,
            project,
            begun: NOW_MILLISECONDS - (1 + random.below(180)) * 24 * 3_600_000,
        };
        let longest = 1_000 + random.below(560_000);
        let length = 1_000 + random.below(longest);
        let path = folder.join(format!("{id}.jsonl"));
        session.write(&path, length, words, &mut random)?;
    }
    Ok(())
}

/// A session whose transcript is written.
struct Session<'a> {
    id: &'a str,
    project: &'a Path,
    /// The start time, in milliseconds since 1970.
    begun: u64,
}

impl Session<'_> {
    fn write(&self, path: &Path, length: u64, words: &Words, random: &mut Random) -> Result {
        let file = fs::File::create(path).map_err(at(path))?;
        let mut out = BufWriter::new(file);
        let mut written = 0;
        let mut turn = 0_u64;
        while written < length {
            for record in turn_of_session(self, turn, words, random) {
                let mut line = record.to_string();
                line.push('\n');
                out.write_all(line.as_bytes()).map_err(at(path))?;
                written += line.len() as u64;
            }
            turn += 1;
        }
        out.flush().map_err(at(path))
    }
}

/// Returns a turn: a prompt, a read, an edit, and the model's answer.
fn turn_of_session(
    session: &Session<'_>,
    turn: u64,
    words: &Words,
    random: &mut Random,
) -> Vec<Value> {
    let file = session
        .project
        .join(format!("src/part_{}.rs", random.below(30)));
    let time = time(session.begun + turn * 50);
    let record = |kind: &str, content: Value| {
        json!({
            "parentUuid": null, "isSidechain": false, "type": kind,
            "message": { "id": format!("message-{turn}"), "role": kind, "content": content },
            "uuid": format!("record-{turn}"), "timestamp": time, "userType": "external",
            "entrypoint": "cli", "cwd": session.project, "sessionId": session.id, "version": "2.1.330",
            "gitBranch": "main",
        })
    };
    let call = |id: &str, name: &str, input: Value| json!([{ "type": "tool_use", "id": format!("{id}-{turn}"), "name": name, "input": input }]);
    let result = |id: &str, content: String| json!([{ "type": "tool_result", "tool_use_id": format!("{id}-{turn}"), "content": content }]);
    let mut draw = |least: u64, more: u64| {
        let length = least + random.below(more);
        words.text(random, usize::try_from(length).unwrap_or(0))
    };
    let (prompt, read, old, new, answer) = (
        draw(60, 300),
        draw(2_000, 14_000),
        draw(200, 1_500),
        draw(200, 1_500),
        draw(100, 900),
    );
    vec![
        record("user", json!(prompt)),
        record(
            "assistant",
            call("read", "Read", json!({ "file_path": file })),
        ),
        record("user", result("read", read)),
        record(
            "assistant",
            call(
                "edit",
                "Edit",
                json!({ "file_path": file, "old_string": old, "new_string": new }),
            ),
        ),
        record("user", result("edit", "The file was updated.".to_owned())),
        record("assistant", json!([{ "type": "text", "text": answer }])),
    ]
}

fn pick(random: &mut Random, from: &[&'static str]) -> &'static str {
    let place = usize::try_from(random.below(from.len() as u64)).unwrap_or(0);
    from.get(place).copied().unwrap_or_default()
}

fn pick_path<'a>(from: &'a [PathBuf], random: &mut Random) -> Option<&'a Path> {
    let place = random.below(from.len().max(1) as u64);
    from.get(usize::try_from(place).ok()?).map(PathBuf::as_path)
}

/// Formats a time as notes and transcripts do.
fn time(milliseconds: u64) -> String {
    let time = i64::try_from(milliseconds)
        .ok()
        .and_then(DateTime::from_timestamp_millis);
    time.unwrap_or_default()
        .to_rfc3339_opts(SecondsFormat::Secs, true)
}

/// Records tool events in a store's journal: two hundred in `session`, the rest in ended sessions
/// of two hundred each.
pub(super) fn record_events(store: &Path, session: &str, count: usize) -> Result {
    const EACH: usize = 200;

    let home = Home::new(store);
    let journal = Journal::open(&home, Duration::from_secs(10))?;
    let at = DateTime::parse_from_rfc3339(NOW)?.timestamp_millis();
    let record = |session: &str, what: RecordedEvent| SessionEvent {
        session: session.to_owned(),
        at,
        prompt_id: Some("prompt".to_owned()),
        agent: None,
        surroundings: Surroundings {
            project: Some(project_key(0)),
            ..Surroundings::default()
        },
        private: false,
        echoes: Vec::new(),
        unmasked: Vec::new(),
        what,
    };
    let started = RecordedEvent::Started {
        source: "startup".to_owned(),
        model: None,
    };
    let prompted = RecordedEvent::Prompted(
        SafePrompt::new(
            &RawPrompt::new("Add limits to the login"),
            Some(&PrivateTokens::default()),
        )
        .value,
    );
    let ended = RecordedEvent::Ended {
        reason: "other".to_owned(),
    };
    for number in 0..count.div_ceil(EACH) {
        let id = match number {
            0 => session.to_owned(),
            _ => format!("ended-{number}"),
        };
        let events = EACH.min(count - number * EACH);
        journal.in_transaction(|journal| {
            journal.take(&record(&id, started.clone()))?;
            journal.take(&record(&id, prompted.clone()))?;
            for event in 0..events {
                let event = ToolEvent {
                    id: format!("event-{event}"),
                    tool: "Edit".to_owned(),
                    input: Some(json!({ "file_path": format!("src/module_{event}.rs") }).into()),
                    response: Some(json!({ "bytes": 4_000, "tail": "x".repeat(1_000) }).into()),
                    outcome: Outcome::Ok,
                    error: None,
                    duration_ms: Some(8),
                    files: vec![FileUse {
                        path: format!("src/module_{event}.rs"),
                        action: FileAction::Edited,
                    }],
                    agent: None,
                    is_from_batch: false,
                    many_tags: false,
                };
                journal.take(&record(&id, RecordedEvent::Used(vec![event])))?;
            }
            if number > 0 {
                journal.take(&record(&id, ended.clone()))?;
            }
            Ok(())
        })?;
        if number > 0
            && let Some(session) = journal.session(&id)?
        {
            // Marks the notes of these sessions as written, because they are not measured.
            journal.noted(&id, session.change, at)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_of_now_are_equal() {
        assert_eq!(time(NOW_MILLISECONDS), NOW);
    }

    #[test]
    fn the_same_seed_makes_the_same_notes() {
        let words = Words::new();
        let make = || {
            let folder = tempfile::tempdir().unwrap();
            write_notes(folder.path(), 30, &words).unwrap();
            let files = note_files(folder.path()).unwrap();
            let texts: Vec<String> = files
                .iter()
                .map(|file| fs::read_to_string(file).unwrap())
                .collect();
            (folder, files, texts)
        };
        let (_folder, files, texts) = make();
        assert_eq!(texts.len(), 30);
        assert_eq!(make().2, texts);
        let is_global = |text: &&String| text.contains("\nproject: global\n");
        assert_eq!(texts.iter().filter(is_global).count(), GLOBAL_NOTES);
        change_notes(&files, 1, &mut Random::new(3)).unwrap();
        let changed: Vec<String> = files
            .iter()
            .map(|file| fs::read_to_string(file).unwrap())
            .collect();
        assert_eq!(
            changed.iter().zip(&texts).filter(|(a, b)| a != b).count(),
            1
        );
    }

    #[test]
    fn frequent_words_are_drawn_most_often() {
        let words = Words::new();
        let mut random = Random::new(11);
        let drawn: Vec<&str> = (0..10_000).map(|_| words.draw(&mut random)).collect();
        let count = |word| drawn.iter().filter(|drawn| **drawn == word).count();
        assert!(count("the") > count("of") && count("of") > count("test"));
        assert!(count("test") > 0);
    }

    #[test]
    fn a_transcript_has_the_requested_length() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("session.jsonl");
        write_transcript(&path, Path::new("/work"), 100_000, &Words::new()).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert!((100_000..160_000).contains(&text.len()), "{}", text.len());
        for line in text.lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
}
