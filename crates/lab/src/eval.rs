//! Measures how well recall answers questions, and how often it injects unrelated notes.
//!
//! A set is a folder with `notes.jsonl` (id, project, title, body, created_at), `queries.jsonl`
//! (qid, query, project, relevant_ids, category) and optionally `none-queries.jsonl`, questions
//! without an answer in the set. Each question is asked within its project. The hash of a
//! question's id assigns it to one of two halves: tune on the first, judge by the second. No text
//! of a set is kept.
//!
//! Each question is asked in the three ways of the program: by the ranking function alone, by the
//! search of the command and the MCP tool, and as a prompt, as the hook does. The order of a prompt
//! is that of `eval prompt`: the injected notes, then the withheld ones.
//!
//! A note may have `asked`, which only counts with `--asked`.
//!
//! A note whose id has three parts (`conversation:session:place`) belongs to a session, so a search
//! lets the notes of one session support each other.

pub mod card;
#[cfg(unix)]
mod scale;
mod tiers;

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anamnesis_embedding::{Model, TextRole};
use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile, NoteType, Scope, timestamp},
};
use anamnesis_recall::{
    evaluation::{RelevantRanks, mean, share},
    knowledge::StoreKnowledge,
    note_set::{self, Limits, Outcome, Request},
    prompt,
    rank::{Mask, Query, rank},
    search::search_with_meaning,
    threshold::Floor,
};
use anamnesis_session::prompt::{RawPrompt, SafePrompt};
use anamnesis_store::{
    fs::{file::Stamp, home::Home},
    index::{Filter, Index},
    journal::Ledger,
    notes::{NotePath, Notes, Stored},
};
use anamnesis_text::private_tokens::PrivateTokens;
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Result, at};
use tiers::{Injected, Tiers};

/// The measures of an answer: recall at four depths, mean reciprocal rank, nDCG.
const MEASURES: [&str; 6] = ["R@1", "R@3", "R@5", "R@10", "MRR", "nDCG@10"];

/// The thresholds of the curve.
const THRESHOLDS: [f32; 5] = [0.45, 0.50, 0.55, 0.60, 0.65];

/// The position of the threshold in use.
const USUAL: usize = 2;

/// The ways in which a question is asked.
const WAYS: [&str; 3] = ["function", "search", "prompt"];

/// Number of results per question.
const DEPTH: usize = 50;

/// The limits of an injection, as the settings have them.
const LIMITS: Limits = Limits {
    floor: Floor::Usual,
    notes: 3,
    linked: 1,
    pointers: 2,
};

/// Number of listed false results.
const WORST: usize = 10;

/// How long a note waits for the lock of its store.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Measure how well recall answers sets of questions
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Folders with notes.jsonl and queries.jsonl
    #[arg(value_name = "FOLDER")]
    sets: Vec<PathBuf>,
    /// Measure growth instead, with up to NOTES generated notes
    #[cfg(unix)]
    #[arg(long, value_name = "NOTES", num_args = 0..=1, default_missing_value = "100000", conflicts_with = "sets")]
    scale: Option<usize>,
    /// Also report each category of questions
    #[arg(long)]
    categories: bool,
    /// Keep the `asked` of the notes: what a model that writes a note says it will be asked for with
    #[arg(long)]
    asked: bool,
    /// Search by meaning, too, with the vectors of this embedding model
    #[arg(long, value_name = "FILE")]
    model: Option<PathBuf>,
    /// Also ask every project these unrelated questions: one per line, or `query` in lines of JSON
    #[arg(long, value_name = "FILE")]
    strangers: Vec<PathBuf>,
    /// Print JSON, one line per set
    #[arg(long)]
    json: bool,
    /// Write each set's answers to a file in this folder, one line per question, for another
    /// program to score
    #[arg(long, value_name = "FOLDER")]
    answers: Option<PathBuf>,
}

/// Runs `cargo xtask eval`.
pub fn run(arguments: &Arguments) -> Result {
    #[cfg(unix)]
    if let Some(largest) = arguments.scale {
        return scale::run(largest);
    }
    if arguments.sets.is_empty() {
        return Err("no set given: pass a folder with notes.jsonl and queries.jsonl".into());
    }
    let mut out = io::stdout().lock();
    let mut curves = Vec::new();
    let mut strangers = Vec::new();
    for path in &arguments.strangers {
        strangers.extend(read_strangers(path)?);
    }
    for folder in &arguments.sets {
        let set = Set::read(folder, arguments.asked, arguments.model.as_deref())?;
        let report = set.report(folder, arguments, &strangers)?;
        if arguments.json {
            writeln!(out, "{}", report.json())?;
        } else {
            write!(out, "{}", report.text())?;
        }
        if !report.curve.is_empty() {
            curves.push(report.curve);
        }
    }
    if !arguments.json && curves.len() > 1 {
        writeln!(
            out,
            "mean of {} sets, first half | second half",
            curves.len()
        )?;
        for (place, threshold) in THRESHOLDS.iter().enumerate() {
            let points = || curves.iter().map(|curve| &curve[place].1);
            let mean = |half: usize, value: fn(&CurvePoint) -> Option<f64>| {
                mean(points().filter_map(|halves| value(&halves[half])))
            };
            let point = |half| CurvePoint {
                rates: GatePoint {
                    false_share: mean(half, |point| point.rates.false_share),
                    kept: mean(half, |point| point.rates.kept),
                    notes: mean(half, |point| point.rates.notes),
                },
                right: mean(half, |point| point.right),
            };
            writeln!(out, "{}", curve_line(*threshold, &[point(0), point(1)]))?;
        }
    }
    Ok(())
}

/// A question with its relevant notes.
struct Question {
    id: String,
    text: String,
    project: String,
    category: String,
    right: Vec<NoteId>,
}

impl Question {
    /// Returns the half of the question, by the last byte of its hash.
    fn half(&self) -> usize {
        let hash = Sha256::digest(self.id.as_bytes());
        hash.last().map_or(0, |byte| usize::from(byte & 1))
    }
}

struct Set {
    /// The files of the notes; an injected note is read from its file.
    _folder: tempfile::TempDir,
    files: Notes,
    index: Index,
    model: Option<RefCell<Model>>,
    built: Duration,
    notes: usize,
    questions: Vec<Question>,
    unanswerable: Vec<Question>,
    /// The set's own ids of its notes.
    names: HashMap<NoteId, String>,
}

struct QuestionResult<'a> {
    question: &'a Question,
    /// The notes found in each of [`WAYS`], best first, and their measures.
    found: [Vec<NoteId>; WAYS.len()],
    measures: [[f64; MEASURES.len()]; WAYS.len()],
    /// The notes that a prompt injects at each of [`THRESHOLDS`].
    injected: Vec<Vec<NoteId>>,
    /// What a prompt gets at the threshold in use.
    usual: Injected,
    /// The score, the matched words and the id of the best injected note at the threshold in use.
    best: Option<(f64, Vec<String>, NoteId)>,
}

impl QuestionResult<'_> {
    fn is_right(&self, found: &[NoteId]) -> bool {
        found.iter().any(|id| self.question.right.contains(id))
    }

    /// Returns what the gate did at a threshold.
    fn gated(&self, place: usize) -> GateResult {
        let shown = &self.found[0];
        GateResult {
            is_reachable: self.is_right(&shown[..shown.len().min(LIMITS.notes)]),
            given: self.injected[place].len(),
            is_right: self.is_right(&self.injected[place]),
        }
    }
}

/// A point of the curve.
#[derive(Debug, Clone, Copy)]
struct CurvePoint {
    rates: GatePoint,
    /// The share of all answerable questions for which a relevant note is injected.
    right: Option<f64>,
}

struct Report<'a> {
    name: String,
    set: &'a Set,
    /// Mean measures of all questions, of each half, and of each category, in each way.
    measures: Vec<(String, usize, [f64; MEASURES.len()])>,
    /// False and kept shares of both halves, by threshold.
    curve: Vec<(f32, [CurvePoint; 2])>,
    /// The share of right injections at the threshold in use, by category.
    right: Vec<(String, usize, f64)>,
    /// What prompts get in full and as pointers.
    tiers: Tiers,
    /// The number of unrelated questions, and the share of them that injects nothing, by threshold.
    strangers: (usize, Vec<f64>),
    /// Score, question, matched words and title of the worst false results.
    worst: Vec<(f64, String, Vec<String>, String)>,
    /// The median time per question.
    median: Duration,
}

impl Set {
    fn read(folder: &Path, with_asked: bool, model: Option<&Path>) -> Result<Self> {
        let mut names = HashMap::new();
        let mut notes = Vec::new();
        let mut sessions: HashMap<String, u32> = HashMap::new();
        let store = tempfile::tempdir()?;
        let home = Home::new(store.path());
        home.create()?;
        for mut row in rows(&folder.join("notes.jsonl"))? {
            if !with_asked {
                row["asked"] = Value::Null;
            }
            let name = text(&row, "id");
            let id = NoteId::made_of(&name);
            let session = name
                .rsplit_once(':')
                .filter(|(session, _)| session.contains(':'));
            let session = session.map(|(session, _)| {
                let place = sessions.entry(session.to_owned()).or_default();
                *place += 1;
                (session, *place)
            });
            let note = stored(id, &row, session)?;
            let path = note.path.absolute(&home);
            fs::create_dir_all(path.parent().unwrap_or(store.path())).map_err(at(&path))?;
            fs::write(&path, note.note().render()).map_err(at(&path))?;
            notes.push(note);
            names.insert(id, name);
        }
        let begun = Instant::now();
        let count = notes.len();
        let mut index = Index::in_memory(notes)?;
        let mut model = model.map(Model::load).transpose()?;
        if let Some(model) = &mut model {
            add_vectors(&mut index, model)?;
        }
        let built = begun.elapsed();
        let none = folder.join("none-queries.jsonl");
        Ok(Self {
            _folder: store,
            files: Notes::new(home, TIMEOUT),
            index,
            model: model.map(RefCell::new),
            built,
            notes: count,
            questions: questions(&folder.join("queries.jsonl"))?,
            unanswerable: if none.exists() {
                questions(&none)?
            } else {
                Vec::new()
            },
            names,
        })
    }

    fn ask_all<'a>(&self, questions: &'a [Question]) -> Result<Vec<QuestionResult<'a>>> {
        questions
            .iter()
            .map(|question| self.ask(question))
            .collect()
    }

    fn ask<'a>(&self, question: &'a Question) -> Result<QuestionResult<'a>> {
        let filter = Filter {
            projects: vec![question.project.clone()],
            ..Filter::default()
        };
        let mask = Mask::from_filter(&filter);
        let ranked = rank(&self.index, &Query::parse(&question.text), &mask, DEPTH)?;
        let vector = self.vector(&question.text)?;
        let vector = vector.as_deref();
        let searched = search_with_meaning(&self.index, &question.text, vector, &filter, DEPTH)?;
        let injected = THRESHOLDS
            .into_iter()
            .map(|threshold| {
                let floor = Floor::At(threshold);
                self.prompt(&question.text, &question.project, floor, vector)
            })
            .collect::<Result<Vec<Outcome>>>()?;
        let ids = |outcome: &Outcome| -> Vec<NoteId> {
            let given = outcome.given.iter();
            given.map(|given| given.recalled.note.id).collect()
        };
        let usual = self.prompt(&question.text, &question.project, LIMITS.floor, vector)?;
        let held = usual.held.iter().filter_map(|held| held.note.parse().ok());
        let found = [
            ranked.candidates.iter().map(|found| found.id).collect(),
            searched.iter().map(|hit| hit.entry.id()).collect(),
            ids(&usual).into_iter().chain(held).collect::<Vec<_>>(),
        ];
        let best = usual.given.first().map(|given| {
            let evidence = &given.evidence;
            (
                evidence.score,
                evidence.matched.clone(),
                given.recalled.note.id,
            )
        });
        Ok(QuestionResult {
            question,
            measures: found
                .each_ref()
                .map(|found| measures(found, &question.right)),
            found,
            injected: injected.iter().map(ids).collect(),
            usual: Injected::new(&usual),
            best,
        })
    }

    fn vector(&self, text: &str) -> Result<Option<Vec<f32>>> {
        let vector = self.model.as_ref().map(|model| {
            let mut model = model.borrow_mut();
            model.embed(text, TextRole::Query)
        });
        Ok(vector.transpose()?)
    }

    /// Asks as the hook of a prompt does.
    fn prompt(
        &self,
        text: &str,
        project: &str,
        floor: Floor,
        vector: Option<&[f32]>,
    ) -> Result<Outcome> {
        let prompt = SafePrompt::new(&RawPrompt::new(text), Some(&PrivateTokens::default())).value;
        let Some(query) = prompt::query(&prompt) else {
            return Ok(Outcome::default());
        };
        let request = Request {
            query: &query,
            project,
            also: &[],
            limits: Limits { floor, ..LIMITS },
            ledger: &Ledger::new(),
            own: None,
            now: Utc::now(),
            knowledge: &StoreKnowledge {
                index: &self.index,
                journal: None,
                now: DateTime::UNIX_EPOCH,
            },
            vector: &|| vector.map(<[f32]>::to_vec),
        };
        Ok(note_set::recall(&self.index, &self.files, &request)?)
    }

    fn report(
        &self,
        folder: &Path,
        arguments: &Arguments,
        strangers: &[String],
    ) -> Result<Report<'_>> {
        let mut times = Vec::with_capacity(self.questions.len());
        for question in &self.questions {
            let begun = Instant::now();
            self.prompt(&question.text, &question.project, LIMITS.floor, None)?;
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let answers = self.ask_all(&self.questions)?;
        let none = self.ask_all(&self.unanswerable)?;
        let name = folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if let Some(answered) = &arguments.answers {
            let path = answered.join(format!("{name}.jsonl"));
            self.write_answers(&path, answers.iter().chain(&none))?;
        }
        let mut groups: BTreeMap<String, Vec<&QuestionResult<'_>>> = BTreeMap::new();
        for answer in &answers {
            let half = ["1 first half", "2 second half"][answer.question.half()];
            groups.entry("0 all".to_owned()).or_default().push(answer);
            groups.entry(half.to_owned()).or_default().push(answer);
            if arguments.categories {
                let category = format!("3 {}", answer.question.category);
                groups.entry(category).or_default().push(answer);
            }
        }
        let mut measures = Vec::new();
        let mut right = Vec::new();
        for (name, answers) in &groups {
            let name = name.get(2..).unwrap_or_default();
            for (way, way_name) in WAYS.iter().enumerate() {
                let values = std::array::from_fn(|place| {
                    let values = answers.iter().map(|answer| answer.measures[way][place]);
                    mean(values).unwrap_or_default()
                });
                measures.push((format!("{name}, {way_name}"), answers.len(), values));
            }
            let share = share(answers.iter().map(|answer| answer.gated(USUAL).is_right));
            right.push((name.to_owned(), answers.len(), share.unwrap_or_default()));
        }
        let mut worst: Vec<_> = none
            .iter()
            .filter_map(|answer| {
                let (score, matched, id) = answer.best.clone()?;
                let title = self.index.get(id).ok()??.title;
                Some((score, answer.question.text.clone(), matched, title))
            })
            .collect();
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        worst.truncate(WORST);
        Ok(Report {
            name,
            set: self,
            measures,
            curve: (THRESHOLDS.into_iter().enumerate())
                .map(|(place, threshold)| {
                    let point = |half| point(place, half, &answers, &none);
                    (threshold, [point(0), point(1)])
                })
                .collect(),
            right,
            tiers: Tiers::new(
                (answers.iter().chain(&none)).map(|answer| (answer.question, &answer.usual)),
            ),
            strangers: self.asked_by(strangers)?,
            worst,
            median: times.get(times.len() / 2).copied().unwrap_or_default(),
        })
    }

    /// Asks every project the unrelated questions. Returns their number, and the share that injects
    /// nothing by threshold.
    fn asked_by(&self, strangers: &[String]) -> Result<(usize, Vec<f64>)> {
        let projects: BTreeSet<&str> = self
            .questions
            .iter()
            .map(|question| question.project.as_str())
            .collect();
        let mut silent = vec![0_u32; THRESHOLDS.len()];
        let mut asked = 0;
        for project in projects {
            for text in strangers {
                let vector = self.vector(text)?;
                for (silent, threshold) in silent.iter_mut().zip(THRESHOLDS) {
                    let floor = Floor::At(threshold);
                    let outcome = self.prompt(text, project, floor, vector.as_deref())?;
                    *silent += u32::from(outcome.given.is_empty() && outcome.pointers.is_empty());
                }
                asked += 1;
            }
        }
        let share = |silent: u32| f64::from(silent) / f64::from(u32::try_from(asked).unwrap_or(1));
        Ok((asked, silent.into_iter().map(share).collect()))
    }

    fn write_answers<'a>(
        &self,
        path: &Path,
        answers: impl Iterator<Item = &'a QuestionResult<'a>>,
    ) -> Result {
        let mut lines = String::new();
        for answer in answers {
            let [ranked, searched, prompt] = answer.found.each_ref().map(|found| {
                let names = found.iter().filter_map(|id| self.names.get(id));
                names.collect::<Vec<_>>()
            });
            let row = json!({
                "qid": answer.question.id, "ids": ranked, "search": searched, "prompt": prompt,
                "injected": answer.injected[USUAL].len(), "pointers": answer.usual.pointers().len(),
            });
            lines.push_str(&row.to_string());
            lines.push('\n');
        }
        fs::write(path, lines).map_err(at(path))
    }
}

/// Adds the vectors of all notes.
fn add_vectors(index: &mut Index, model: &mut Model) -> Result {
    let pending = index.pending_embeddings(usize::MAX)?;
    let mut vectors = Vec::with_capacity(pending.len());
    for note in pending {
        let made = model.embed_passages(&note.texts.passages())?;
        vectors.push((note, made));
    }
    Ok(index.add_embeddings(&vectors)?)
}

fn point(
    place: usize,
    half: usize,
    answers: &[QuestionResult<'_>],
    none: &[QuestionResult<'_>],
) -> CurvePoint {
    let of_half = |answer: &&QuestionResult<'_>| answer.question.half() == half;
    let none = none.iter().filter(of_half);
    let answered: Vec<GateResult> = answers
        .iter()
        .filter(of_half)
        .map(|answer| answer.gated(place))
        .collect();
    CurvePoint {
        rates: GatePoint::from_questions(
            none.map(|answer| answer.injected[place].len()),
            &answered,
        ),
        right: share(answered.iter().map(|gated| gated.is_right)),
    }
}

impl Report<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "{}: {} notes, index built in {:.2} s, a prompt answered in {:.2} ms (median)\n{:28}{:>6}",
            self.name,
            self.set.notes,
            self.set.built.as_secs_f64(),
            1e3 * self.median.as_secs_f64(),
            "",
            "asked"
        );
        for measure in MEASURES {
            text.push_str(&format!("{measure:>9}"));
        }
        text.push('\n');
        for (name, count, values) in &self.measures {
            text.push_str(&format!("{name:28}{count:6}"));
            for value in values {
                text.push_str(&format!("{:9.1}", 100.0 * value));
            }
            text.push('\n');
        }
        if !self.curve.is_empty() {
            text.push_str("threshold: false, kept, right, notes; first half | second half\n");
        }
        for (threshold, points) in &self.curve {
            text.push_str(&curve_line(*threshold, points));
            text.push('\n');
        }
        if let (asked @ 1.., silent) = &self.strangers {
            text.push_str(&format!(
                "threshold: nothing injected for unrelated questions, {asked} asked\n"
            ));
            for (threshold, silent) in THRESHOLDS.iter().zip(silent) {
                text.push_str(&format!("{threshold:9.2}  {:6.2}\n", 100.0 * silent));
            }
        }
        text.push_str(&self.tiers.text());
        text.push_str("right note injected\n");
        for (name, count, right) in &self.right {
            text.push_str(&format!("{name:28}{count:6}{:9.1}\n", 100.0 * right));
        }
        if !self.worst.is_empty() {
            text.push_str("worst false results\n");
        }
        for (fit, question, matched, title) in &self.worst {
            let question: String = question.chars().take(80).collect();
            text.push_str(&format!("{fit:6.2} {question:?} → {title:?} {matched:?}\n"));
        }
        text.push('\n');
        text
    }

    fn json(&self) -> Value {
        let measures = self.measures.iter().map(|(name, count, values)| {
            let values = MEASURES
                .iter()
                .zip(values)
                .map(|(name, value)| ((*name).to_owned(), json!(value)));
            let mut values: serde_json::Map<String, Value> = values.collect();
            values.insert("asked".to_owned(), json!(count));
            (name.clone(), Value::Object(values))
        });
        let curve: Vec<Value> = self
            .curve
            .iter()
            .map(|(threshold, halves)| {
                let halves = halves.map(|point| {
                    json!({
                        "false": point.rates.false_share, "kept": point.rates.kept,
                        "right": point.right, "notes": point.rates.notes,
                    })
                });
                json!({ "threshold": threshold, "first_half": halves[0], "second_half": halves[1] })
            })
            .collect();
        json!({
            "set": self.name, "notes": self.set.notes,
            "measures": measures.collect::<serde_json::Map<_, _>>(), "gate": curve,
            "tiers": self.tiers.json(), "right": self.right.iter().map(|(name, _, right)| (name.clone(), json!(right)))
                .collect::<serde_json::Map<_, _>>(),
            "strangers": { "asked": self.strangers.0, "silent": self.strangers.1 },
            "worst": self.worst.iter().map(|(fit, question, matched, title)| json!({
                "fit": fit, "question": question, "matched": matched, "title": title,
            })).collect::<Vec<_>>(),
        })
    }
}

fn curve_line(threshold: f32, points: &[CurvePoint; 2]) -> String {
    let halves = points.map(|point| {
        let rates = point.rates;
        let [false_share, kept, right] = [rates.false_share, rates.kept, point.right]
            .map(|share| 100.0 * share.unwrap_or_default());
        let notes = rates.notes.unwrap_or_default();
        format!("{false_share:6.1} {kept:6.1} {right:6.1} {notes:5.2}")
    });
    format!("{threshold:9.2}  {}", halves.join("  | "))
}

/// Reads questions from lines of JSON or of text.
fn read_strangers(path: &Path) -> Result<Vec<String>> {
    if path
        .extension()
        .is_some_and(|extension| extension == "jsonl")
    {
        let questions = questions(path)?;
        return Ok(questions
            .into_iter()
            .map(|question| question.text)
            .collect());
    }
    let text = fs::read_to_string(path).map_err(at(path))?;
    let lines = text.lines().map(str::trim);
    Ok(lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect())
}

/// Returns the measures of an answer, each from 0 to 1.
fn measures(found: &[NoteId], right: &[NoteId]) -> [f64; MEASURES.len()] {
    let ranks = RelevantRanks::new(found, right);
    let [r1, r3, r5, r10] = [1, 3, 5, 10].map(|depth| recall(&ranks, right.len(), depth));
    [
        r1,
        r3,
        r5,
        r10,
        ranks.reciprocal_rank(DEPTH),
        ndcg(&ranks, right.len(), 10),
    ]
}

/// Returns recall: the share of the relevant notes among the first `depth`.
fn recall(ranks: &RelevantRanks, relevant: usize, depth: usize) -> f64 {
    let found = ranks.ranks().iter().filter(|rank| **rank < depth).count();
    number(found) / number(relevant.max(1))
}

/// Returns the normalised discounted cumulative gain of the first `depth`.
fn ndcg(ranks: &RelevantRanks, relevant: usize, depth: usize) -> f64 {
    let gain = |rank: usize| 1.0 / number(rank + 2).log2();
    let best: f64 = (0..relevant.min(depth)).map(gain).sum();
    let found = ranks.ranks().iter().filter(|rank| **rank < depth);
    let gained = found
        .map(|rank| gain(*rank))
        .fold(0.0, |sum, gain| sum + gain);
    if best > 0.0 { gained / best } else { 0.0 }
}

fn number(count: usize) -> f64 {
    count as f64
}

pub(crate) fn rows(path: &Path) -> Result<Vec<Value>> {
    let text = fs::read_to_string(path).map_err(at(path))?;
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    let rows = lines
        .map(serde_json::from_str)
        .collect::<std::result::Result<_, _>>();
    rows.map_err(|error| format!("{}: {error}", path.display()).into())
}

pub(crate) fn text(row: &Value, key: &str) -> String {
    row[key].as_str().unwrap_or_default().to_owned()
}

fn questions(path: &Path) -> Result<Vec<Question>> {
    let rows = rows(path)?;
    let questions = rows.iter().map(|row| {
        let right = row["relevant_ids"].as_array().into_iter().flatten();
        Question {
            id: text(row, "qid"),
            text: text(row, "query"),
            project: text(row, "project"),
            category: text(row, "category"),
            right: right
                .filter_map(|id| id.as_str().map(NoteId::made_of))
                .collect(),
        }
    });
    Ok(questions.collect())
}

/// Converts a row to a stored note with its session and its place there.
pub(crate) fn stored(id: NoteId, row: &Value, session: Option<(&str, u32)>) -> Result<Stored> {
    let created = text(row, "created_at");
    let time = DateTime::parse_from_rfc3339(&created).map(|time| time.to_utc());
    let time = time.or_else(|_| created.parse::<NaiveDateTime>().map(|time| time.and_utc()));
    let mut time = time.unwrap_or(DateTime::<Utc>::UNIX_EPOCH);
    // Seconds keep the order of notes that a session wrote at the same time.
    time += TimeDelta::seconds(session.map_or(0, |(_, place)| place.into()));
    let mut note = Note::new(id, NoteType::Semantic, time);
    note.session = session.map(|(session, _)| session.to_owned());
    note.title = text(row, "title");
    note.body = text(row, "body");
    note.project = text(row, "project");
    let asked = row["asked"].as_array().into_iter().flatten();
    note.asked = asked
        .filter_map(|phrase| phrase.as_str().map(str::to_owned))
        .collect();
    note.updated_at = timestamp(time);
    Ok(Stored {
        path: NotePath {
            scope: Scope::Portable,
            folder: NoteType::Semantic,
            id,
        },
        stamp: Stamp::default(),
        file: NoteFile::parse(note.render().as_bytes(), id)?,
        whole: true,
    })
}

/// What a gate did with an answerable question.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct GateResult {
    /// Whether a relevant note would have been injected without the gate.
    is_reachable: bool,
    /// How many notes were injected.
    given: usize,
    /// Whether a relevant note was among them.
    is_right: bool,
}

/// A point of a gate's curve.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct GatePoint {
    /// The false positive rate: the share of unanswerable questions for which something was
    /// injected.
    false_share: Option<f64>,
    /// The true positive rate: the share of reachable questions for which a relevant note was
    /// injected.
    kept: Option<f64>,
    /// The mean number of injected notes where there were any.
    notes: Option<f64>,
}

impl GatePoint {
    /// Computes a point from the number of notes injected per unanswerable question, and from the
    /// answerable questions.
    fn from_questions(
        unanswerable: impl IntoIterator<Item = usize>,
        answerable: &[GateResult],
    ) -> Self {
        let reachable = answerable.iter().filter(|gated| gated.is_reachable);
        let given = answerable.iter().map(|gated| gated.given);
        Self {
            false_share: share(unanswerable.into_iter().map(|given| given > 0)),
            kept: share(reachable.map(|gated| gated.is_right)),
            notes: mean(given.filter(|given| *given > 0).map(count)),
        }
    }
}

fn count(notes: usize) -> f64 {
    notes as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measures_match_known_values() {
        let [a, b, c, d] = ["a", "b", "c", "d"].map(NoteId::made_of);
        let check = |found: &[NoteId], right: &[NoteId], expected: &str| {
            let measured = measures(found, right).map(|value| format!("{value:.3}"));
            assert_eq!(measured.join(" "), expected);
        };
        check(&[a, b], &[a], "1.000 1.000 1.000 1.000 1.000 1.000");
        check(&[b, a], &[a], "0.000 1.000 1.000 1.000 0.500 0.631");
        check(
            &[a, b, c, d],
            &[a, d],
            "0.500 0.500 1.000 1.000 1.000 0.877",
        );
        check(&[], &[a], "0.000 0.000 0.000 0.000 0.000 0.000");
        check(&[a], &[], "0.000 0.000 0.000 0.000 0.000 0.000");
    }

    /// No decision of the realistic set changes, so no note of it corrects another one.
    #[test]
    fn few_notes_of_the_realistic_set_have_a_remark_about_a_later_one() {
        let sets = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/realistic");
        let (mut all, mut remarked) = (0, 0);
        for half in ["dev", "held"] {
            let rows = rows(&sets.join(half).join("notes.jsonl")).unwrap();
            let notes = rows
                .iter()
                .map(|row| stored(NoteId::made_of(&text(row, "id")), row, None).unwrap());
            let notes: Vec<Stored> = notes.collect();
            let ids: Vec<NoteId> = notes.iter().map(|note| note.path.id).collect();
            let index = Index::in_memory(notes).unwrap();
            for id in ids {
                let later = index.corrections_of(id, Utc::now()).unwrap();
                let earlier = index.corrected_by(id, Utc::now()).unwrap();
                all += 1;
                remarked += usize::from(!later.is_empty() || !earlier.is_empty());
            }
        }
        assert!(all > 200, "{all}");
        assert!(100 * remarked <= 2 * all, "{remarked} of {all}");
    }

    #[test]
    fn a_set_is_measured() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, rows: &[Value]| {
            let lines: Vec<String> = rows.iter().map(Value::to_string).collect();
            fs::write(folder.path().join(name), lines.join("\n")).unwrap();
        };
        let note = |id: &str, title: &str| json!({ "id": id, "project": "p", "title": title, "body": "", "created_at": "2026-01-02T03:04:05" });
        write(
            "notes.jsonl",
            &[
                note("n1", "deploy with the blue script"),
                note("n2", "migrations run before the deploy"),
            ],
        );
        let query = |qid: &str, query: &str, right: &[&str]| json!({ "qid": qid, "query": query, "project": "p", "relevant_ids": right, "category": "c" });
        write(
            "queries.jsonl",
            &[query("1", "when do migrations run", &["n2"])],
        );
        write(
            "none-queries.jsonl",
            &[query("2", "colour of the sea", &[])],
        );
        let set = Set::read(folder.path(), false, None).unwrap();
        let arguments = Arguments {
            sets: Vec::new(),
            strangers: Vec::new(),
            scale: None,
            categories: true,
            asked: false,
            model: None,
            json: false,
            answers: Some(folder.path().to_owned()),
        };
        let prompts = folder.path().join("prompts.txt");
        fs::write(&prompts, "when do migrations run\n\ndraw a bicycle\n").unwrap();
        let strangers = read_strangers(&prompts).unwrap();
        let report = set.report(folder.path(), &arguments, &strangers).unwrap();
        let (asked, silent) = &report.strangers;
        assert_eq!((*asked, silent[USUAL]), (2, 0.5));
        assert_eq!(
            report.measures[0],
            ("all, function".to_owned(), 1, [1.0; 6])
        );
        assert_eq!(report.measures.last().unwrap().0, "c, prompt");
        assert_eq!(report.right[0], ("all".to_owned(), 1, 1.0));
        let curve = &report.curve;
        assert!(curve.iter().all(|(_, halves)| {
            halves
                .iter()
                .all(|half| half.rates.false_share.unwrap_or_default() == 0.0)
        }));
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let answers = fs::read_to_string(folder.path().join(format!("{name}.jsonl"))).unwrap();
        assert_eq!(
            answers,
            "{\"qid\":\"1\",\"ids\":[\"n2\"],\"search\":[\"n2\"],\"prompt\":[\"n2\"],\"injected\":1,\"pointers\":0}\n\
             {\"qid\":\"2\",\"ids\":[],\"search\":[],\"prompt\":[],\"injected\":0,\"pointers\":0}\n"
        );
        assert!(report.text().contains("second half"));
        assert_eq!(report.json()["notes"], 2);
    }
}
