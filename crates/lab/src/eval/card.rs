//! A card of what is injected, how often it is right, and what it costs; and what other programs find
//! among the same notes.
//!
//! Each prompt of a set is asked alone. A prompt without an answer that gets a note's text counts as false.
//! Other programs search; the first three notes that they return count as injected, with their whole text.

mod claude_mem;

use std::{
    collections::HashMap,
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anamnesis_note::id::NoteId;
use anamnesis_recall::{
    evaluation::{mean, share},
    render::{Budget, Level, pointer_block, recalled_block},
};
use anamnesis_testkit::npm;
use anamnesis_text::terms::terms;
use chrono::Utc;
use serde_json::{Value, json};

use self::claude_mem::ClaudeMem;
use super::{LIMITS, Question, Set, rows, text};
use crate::{Result, at, mcp_client::Client, root, run as run_command, say, target_folder};

/// The maximum number of prompts of each kind that one set asks.
const PROMPTS: usize = 150;

/// The number of notes that count of what a search returns: as many as we inject.
const FIRST: usize = LIMITS.notes;

/// The token budget of a prompt, as the settings have it.
const TOKENS: usize = 600;

/// The number of words that a search by words asks for.
const WORDS: usize = 8;

/// The other programs, in the versions that were measured.
const SERVER_MEMORY: (&str, &str) = ("@modelcontextprotocol/server-memory", "2026.8.31");
const BASIC_MEMORY: (&str, &str) = ("basic-memory", "0.24.1");

/// Print a card: right, false, tokens and time, beside other programs on the same notes
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Also this folder with notes.jsonl and queries.jsonl; may be repeated
    #[arg(long, value_name = "DIR")]
    set: Vec<PathBuf>,
    /// Install and ask other programs too; needs node, npm and the network
    #[arg(long)]
    rivals: bool,
    /// The Python of at least version 3.12 for one of them
    #[arg(long, value_name = "PROGRAM", default_value = "python3")]
    python: PathBuf,
}

/// Runs `cargo xtask card`.
pub fn run(arguments: &Arguments) -> Result {
    let mut out = io::stdout();
    let own = root().join("crates/lab/data/realistic/held");
    for folder in std::iter::once(&own).chain(&arguments.set) {
        let set = Set::read(folder, false, None)?;
        let notes = rows(&folder.join("notes.jsonl"))?;
        let prompts = sample(&set);
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let (answerable, none): (Vec<&Question>, Vec<&Question>) = prompts
            .iter()
            .partition(|question| !question.right.is_empty());
        writeln!(
            out,
            "\n### {}: {} notes, {} prompts with an answer, {} without\n\n\
             | program | right | right or named | false | false or named | remarks | tokens per prompt | ms, median |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |",
            if folder == &own {
                "realistic, held half"
            } else {
                &name
            },
            set.notes,
            answerable.len(),
            none.len(),
        )?;
        let mut programs: Vec<Box<dyn Program + '_>> = vec![
            Box::new(Own { set: &set }),
            Box::new(Grep::new(&notes)?),
            Box::new(WholeFile::new(&notes)),
        ];
        if arguments.rivals {
            let cache = target_folder(&root()).join("card");
            for by_words in [false, true] {
                programs.push(Box::new(ServerMemory::start(&cache, &notes, by_words)?));
            }
            for by_words in [false, true] {
                programs.push(Box::new(ClaudeMem::start(&cache, &notes, by_words)?));
            }
            programs.push(Box::new(BasicMemory::start(
                &cache,
                &notes,
                &arguments.python,
            )?));
        }
        for program in &mut programs {
            say(&format!("asking {}", program.name()));
            writeln!(out, "{}", line(program.as_mut(), &prompts)?)?;
        }
    }
    Ok(())
}

/// Returns the prompts that are asked: all, or every nth of many.
fn sample(set: &Set) -> Vec<&Question> {
    let some = |questions: &'_ [Question]| -> Vec<usize> {
        let step = questions.len().div_ceil(PROMPTS).max(1);
        (0..questions.len()).step_by(step).collect()
    };
    let questions = some(&set.questions)
        .into_iter()
        .map(|at| &set.questions[at]);
    let none = some(&set.unanswerable)
        .into_iter()
        .map(|at| &set.unanswerable[at]);
    questions.chain(none).collect()
}

/// What a program gives for one prompt.
#[derive(Default)]
struct Given {
    /// The notes with text, and those that are only named.
    notes: Vec<NoteId>,
    named: Vec<NoteId>,
    remarks: usize,
    tokens: usize,
}

trait Program {
    fn name(&self) -> String;
    fn ask(&mut self, question: &Question) -> Result<Given>;
}

/// Asks a program all prompts; a line of the table.
fn line(program: &mut dyn Program, prompts: &[&Question]) -> Result<String> {
    let (mut right, mut named) = (Vec::new(), Vec::new());
    let (mut false_ones, mut false_or_named) = (Vec::new(), Vec::new());
    let (mut tokens, mut times, mut remarks) = (Vec::new(), Vec::new(), 0);
    for question in prompts {
        let asked = Instant::now();
        let given = program.ask(question)?;
        times.push(asked.elapsed());
        tokens.push(given.tokens as f64);
        remarks += given.remarks;
        let has = |notes: &[NoteId]| notes.iter().any(|id| question.right.contains(id));
        if question.right.is_empty() {
            false_ones.push(!given.notes.is_empty());
            false_or_named.push(!given.notes.is_empty() || !given.named.is_empty());
        } else {
            right.push(has(&given.notes));
            named.push(has(&given.notes) || has(&given.named));
        }
    }
    times.sort_unstable();
    let median = times
        .get(times.len() / 2)
        .copied()
        .unwrap_or(Duration::ZERO);
    let percent = |answers: Vec<bool>| {
        share(answers).map_or_else(|| "–".to_owned(), |share| format!("{:.1} %", 100.0 * share))
    };
    Ok(format!(
        "| {} | {} | {} | {} | {} | {remarks} | {:.0} | {:.1} |",
        program.name(),
        percent(right),
        percent(named),
        percent(false_ones),
        percent(false_or_named),
        mean(tokens).unwrap_or_default(),
        1000.0 * median.as_secs_f64(),
    ))
}

/// This program, as its hook answers a prompt.
struct Own<'a> {
    set: &'a Set,
}

impl Program for Own<'_> {
    fn name(&self) -> String {
        "Anamnesis".to_owned()
    }

    fn ask(&mut self, question: &Question) -> Result<Given> {
        let outcome = self
            .set
            .prompt(&question.text, &question.project, LIMITS.floor, None)?;
        let notes: Vec<_> = outcome
            .given
            .iter()
            .map(|given| given.recalled.clone())
            .collect();
        let remarks = notes.iter().map(|recalled| recalled.remarks.len()).sum();
        // There are pointers only if no note is injected.
        let pointers: Vec<_> = outcome
            .pointers
            .iter()
            .map(|pointer| pointer.recalled.clone())
            .collect();
        let block = if pointers.is_empty() {
            recalled_block(&notes, Budget(TOKENS), Utc::now(), NoteId::short)
        } else {
            pointer_block(&pointers, NoteId::short)
        };
        let at_level = |is_named: bool| -> Vec<NoteId> {
            let levels = block.levels.iter();
            levels
                .filter(|(_, level)| matches!(level, Level::Name | Level::Pointer) == is_named)
                .map(|(id, _)| *id)
                .collect()
        };
        Ok(Given {
            notes: at_level(false),
            named: at_level(true),
            remarks,
            tokens: block.tokens(),
        })
    }
}

/// A note of a set.
struct Stored {
    id: NoteId,
    name: String,
    project: String,
    text: String,
}

fn stored(notes: &[Value]) -> Vec<Stored> {
    let note = |row: &Value| {
        let name = text(row, "id");
        Stored {
            id: NoteId::made_of(&name),
            project: text(row, "project"),
            text: format!("{}\n{}", text(row, "title"), text(row, "body")),
            name,
        }
    };
    notes.iter().map(note).collect()
}

/// What the first of the found notes of the prompt's project are and cost.
fn found(notes: &[Stored], question: &Question, names: &[String]) -> Given {
    let mut given = Given::default();
    let known = names
        .iter()
        .filter_map(|name| notes.iter().find(|note| note.name == *name));
    for note in known
        .filter(|note| note.project == question.project)
        .take(FIRST)
    {
        given.notes.push(note.id);
        given.tokens += note.text.chars().count().div_ceil(4);
    }
    given
}

/// Adds up in how many of several answers a note is, the most frequent first.
fn most_frequent(answers: Vec<Vec<String>>) -> Vec<String> {
    let mut counts: Vec<(String, usize)> = Vec::new();
    for name in answers.into_iter().flatten() {
        match counts.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => counts.push((name, 1)),
        }
    }
    counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    counts.into_iter().map(|(name, _)| name).collect()
}

/// The words to search for: all of a prompt that are not stop words.
fn words_of(question: &Question) -> Vec<String> {
    let mut words: Vec<String> = terms(&question.text);
    words.dedup();
    words.truncate(WORDS);
    words
}

/// `grep` over files like CLAUDE.md, one for each project with a note in each line.
struct Grep {
    folder: tempfile::TempDir,
    notes: Vec<Stored>,
}

impl Grep {
    fn new(notes: &[Value]) -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let notes = stored(notes);
        for note in &notes {
            let path = folder
                .path()
                .join(format!("{}.md", note.project.replace('/', "-")));
            let mut file = File::options()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(at(&path))?;
            writeln!(file, "{}\t{}", note.name, note.text.replace('\n', " "))?;
        }
        Ok(Self { folder, notes })
    }
}

impl Program for Grep {
    fn name(&self) -> String {
        "grep for the prompt's words in a CLAUDE.md of all notes".to_owned()
    }

    fn ask(&mut self, question: &Question) -> Result<Given> {
        let path = self
            .folder
            .path()
            .join(format!("{}.md", question.project.replace('/', "-")));
        let mut answers = Vec::new();
        for word in words_of(question) {
            let grep = Command::new("grep")
                .args(["-iF", "--", &word])
                .arg(&path)
                .output()?;
            let lines = String::from_utf8_lossy(&grep.stdout).into_owned();
            let names = lines
                .lines()
                .filter_map(|line| Some(line.split_once('\t')?.0.to_owned()));
            answers.push(names.collect());
        }
        let names = most_frequent(answers);
        Ok(found(&self.notes, question, &names))
    }
}

/// A CLAUDE.md with all notes, which is in the context of every prompt.
struct WholeFile {
    projects: HashMap<String, Vec<Stored>>,
}

impl WholeFile {
    fn new(notes: &[Value]) -> Self {
        let mut projects: HashMap<String, Vec<Stored>> = HashMap::new();
        for note in stored(notes) {
            projects.entry(note.project.clone()).or_default().push(note);
        }
        Self { projects }
    }
}

impl Program for WholeFile {
    fn name(&self) -> String {
        "the whole CLAUDE.md in every context".to_owned()
    }

    fn ask(&mut self, question: &Question) -> Result<Given> {
        let notes = self
            .projects
            .get(&question.project)
            .map_or(&[][..], Vec::as_slice);
        Ok(Given {
            notes: notes.iter().map(|note| note.id).collect(),
            tokens: notes
                .iter()
                .map(|note| note.text.chars().count().div_ceil(4))
                .sum(),
            ..Given::default()
        })
    }
}

/// The MCP project's reference memory: a graph in a file, searched for a text.
struct ServerMemory {
    client: Client,
    _folder: tempfile::TempDir,
    notes: Vec<Stored>,
    by_words: bool,
}

impl ServerMemory {
    fn start(cache: &Path, notes: &[Value], by_words: bool) -> Result<Self> {
        let (package, version) = SERVER_MEMORY;
        let program = cache.join(format!("server-memory-{version}"));
        npm::install(&program, package, version)?;
        let folder = tempfile::tempdir()?;
        let mut command = Command::new("node");
        command
            .arg(program.join(format!("node_modules/{package}/dist/index.js")))
            .env("MEMORY_FILE_PATH", folder.path().join("memory.jsonl"));
        let mut client = Client::start(&mut command)?;
        let notes = stored(notes);
        let entities = notes.iter().map(
            |note| json!({ "name": note.name, "entityType": "note", "observations": [note.text] }),
        );
        let entities: Vec<Value> = entities.collect();
        client.call("create_entities", &json!({ "entities": entities }))?;
        Ok(Self {
            client,
            _folder: folder,
            notes,
            by_words,
        })
    }

    fn search(&mut self, query: &str) -> Result<Vec<String>> {
        let answer = self
            .client
            .call("search_nodes", &json!({ "query": query }))?;
        let printed = answer["content"][0]["text"].as_str().unwrap_or_default();
        let graph: Value = serde_json::from_str(printed).unwrap_or_default();
        let entities = graph["entities"].as_array().into_iter().flatten();
        Ok(entities.map(|entity| text(entity, "name")).collect())
    }
}

/// Asks with the prompt, or with each of its words.
fn asked(
    question: &Question,
    by_words: bool,
    mut search: impl FnMut(&str) -> Result<Vec<String>>,
) -> Result<Vec<String>> {
    if !by_words {
        return search(&question.text);
    }
    let answers = words_of(question)
        .iter()
        .map(|word| search(word))
        .collect::<Result<_>>()?;
    Ok(most_frequent(answers))
}

const fn way(by_words: bool) -> &'static str {
    if by_words {
        "each word of the prompt"
    } else {
        "the prompt"
    }
}

impl Program for ServerMemory {
    fn name(&self) -> String {
        let (package, version) = SERVER_MEMORY;
        format!(
            "{package} {version}, `search_nodes` with {}",
            way(self.by_words)
        )
    }

    fn ask(&mut self, question: &Question) -> Result<Given> {
        let names = asked(question, self.by_words, |query| self.search(query))?;
        Ok(found(&self.notes, question, &names))
    }
}

/// basic-memory: markdown files with a full-text index, searched over MCP. Its vectors are off: it would
/// download a model.
struct BasicMemory {
    client: Client,
    _folder: tempfile::TempDir,
    notes: Vec<Stored>,
}

impl BasicMemory {
    fn start(cache: &Path, notes: &[Value], python: &Path) -> Result<Self> {
        let (package, version) = BASIC_MEMORY;
        let program = cache.join(format!("basic-memory-{version}"));
        if !program.join("bin/basic-memory").exists() {
            run_command(Command::new(python).args(["-m", "venv"]).arg(&program))?;
            let wanted = format!("{package}=={version}");
            let mut pip = Command::new(program.join("bin/pip"));
            run_command(pip.args(["install", "--quiet", &wanted]))?;
        }
        let folder = tempfile::tempdir()?;
        let files = folder.path().join("notes");
        fs::create_dir(&files).map_err(at(&files))?;
        let notes = stored(notes);
        for note in &notes {
            let path = files.join(format!("{}.md", file_name(&note.name)));
            let (title, body) = note.text.split_once('\n').unwrap_or((&note.text, ""));
            let quoted = json!(format!("{} {title}", note.name));
            let text = format!("---\ntitle: {quoted}\n---\n\n# {title}\n\n{body}\n");
            fs::write(&path, text).map_err(at(&path))?;
        }
        let command = |arguments: &[&str]| {
            let mut command = Command::new(program.join("bin/basic-memory"));
            command
                .args(arguments)
                .env("HOME", folder.path())
                .env("BASIC_MEMORY_HOME", &files)
                .env("BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED", "false");
            command
        };
        run_command(command(&["reindex", "--search"]).stdout(Stdio::null()))?;
        let mut memory = Self {
            client: Client::start(&mut command(&["mcp"]))?,
            _folder: folder,
            notes,
        };
        // The first search takes seconds.
        memory.search("warm up")?;
        Ok(memory)
    }

    fn search(&mut self, query: &str) -> Result<Vec<String>> {
        let arguments = json!({ "query": query, "page_size": 10, "output_format": "json" });
        let answer = self.client.call("search_notes", &arguments)?;
        let results = answer["structuredContent"]["result"]["results"].as_array();
        let files = results
            .into_iter()
            .flatten()
            .map(|it| text(it, "file_path"));
        let files: Vec<String> = files.collect();
        let name = |file: &String| {
            let mut notes = self.notes.iter();
            let note = notes.find(|note| *file == format!("{}.md", file_name(&note.name)))?;
            Some(note.name.clone())
        };
        Ok(files.iter().filter_map(name).collect())
    }
}

/// A note's name as that of a file.
fn file_name(name: &str) -> String {
    let letter = |letter: char| {
        if letter.is_ascii_alphanumeric() {
            letter
        } else {
            '-'
        }
    };
    format!("n-{}-n", name.chars().map(letter).collect::<String>())
}

impl Program for BasicMemory {
    fn name(&self) -> String {
        let (package, version) = BASIC_MEMORY;
        format!("{package} {version}, `search_notes` with {}", way(false))
    }

    fn ask(&mut self, question: &Question) -> Result<Given> {
        let names = self.search(&question.text)?;
        Ok(found(&self.notes, question, &names))
    }
}
