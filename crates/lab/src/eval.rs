//! Measures how well recall answers questions, and how often it injects unrelated notes.
//!
//! A set is a folder with `notes.jsonl` (id, project, title, body, created_at), `queries.jsonl`
//! (qid, query, project, relevant_ids, category) and optionally `none-queries.jsonl`, questions
//! without an answer in the set. Each question is asked within its project. The hash of a
//! question's id assigns it to one of two halves: tune on the first, judge by the second. No text
//! of a set is kept.
//!
//! A note whose id has three parts (`conversation:session:place`) belongs to a session. Such sets
//! are measured a second time with the neighbours of each note in its session.

#[cfg(unix)]
mod scale;

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anamnesis_note::{
    id::NoteId,
    note::{Note, NoteFile, NoteType, Scope, timestamp},
};
use anamnesis_recall::{
    evaluation::{GatePoint, GateResult, RelevantRanks, mean},
    rank::{Candidate, Mask, Query, rank},
    search,
};
use anamnesis_store::{
    fs::file::Stamp,
    index::{Filter, Index},
    notes::{NotePath, Stored},
};
use chrono::{DateTime, NaiveDateTime, TimeDelta, Utc};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Result, at};

/// The measures of an answer: recall at four depths, mean reciprocal rank, nDCG.
const MEASURES: [&str; 6] = ["R@1", "R@3", "R@5", "R@10", "MRR", "nDCG@10"];

/// The thresholds of the curve.
const THRESHOLDS: [f32; 9] = [0.0, 0.20, 0.24, 0.28, 0.30, 0.32, 0.36, 0.40, 0.50];

/// Number of results per question.
const DEPTH: usize = 50;

/// The maximum number of notes injected with a prompt.
const SHOWN: usize = 3;

/// A note after the best one is injected if it passes the threshold or has this share of the best
/// score.
const BESIDE: f32 = 0.8;

/// Number of listed false results.
const WORST: usize = 10;

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
    /// Do not let notes of one session support each other
    #[arg(long)]
    words_only: bool,
    /// Also report each category of questions
    #[arg(long)]
    categories: bool,
    /// Also ask every project these unrelated questions: one per line, or `query` in lines of JSON
    #[arg(long, value_name = "FILE")]
    strangers: Vec<PathBuf>,
    /// List the worst false results above this score
    #[arg(long, value_name = "FIT", default_value_t = 0.32)]
    threshold: f32,
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
        let set = Set::read(folder)?;
        let report = set.report(folder, arguments, &strangers)?;
        if arguments.json {
            writeln!(out, "{}", report.json())?;
        } else {
            write!(out, "{}", report.text(arguments.threshold))?;
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
            let points: Vec<&[GatePoint; 2]> = curves.iter().map(|curve| &curve[place].1).collect();
            let mean = |half: usize, value: fn(&GatePoint) -> Option<f64>| {
                mean(points.iter().filter_map(|point| value(&point[half])))
            };
            let point = |half| GatePoint {
                false_share: mean(half, |point| point.false_share),
                kept: mean(half, |point| point.kept),
                notes: mean(half, |point| point.notes),
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
    index: Index,
    built: Duration,
    notes: usize,
    has_sessions: bool,
    questions: Vec<Question>,
    unanswerable: Vec<Question>,
    /// The set's own ids of its notes.
    names: HashMap<NoteId, String>,
}

struct Answer<'a> {
    question: &'a Question,
    candidates: Vec<Candidate>,
    measures: [f64; MEASURES.len()],
    /// The same measures with the neighbours in sessions, if requested.
    around: Option<[f64; MEASURES.len()]>,
}

impl Answer<'_> {
    /// Returns the notes that a prompt would inject with this threshold.
    fn shown(&self, threshold: f32) -> Vec<&Candidate> {
        let Some(best) = self.candidates.first() else {
            return Vec::new();
        };
        let passes = |candidate: &Candidate| threshold == 0.0 || candidate.passes(threshold);
        if !passes(best) {
            return Vec::new();
        }
        let given = self.candidates.iter().take(SHOWN);
        given
            .filter(|candidate| passes(candidate) || candidate.score >= BESIDE * best.score)
            .collect()
    }

    fn is_useful(&self, shown: &[&Candidate]) -> bool {
        shown
            .iter()
            .any(|candidate| self.question.right.contains(&candidate.id))
    }
}

struct Report<'a> {
    name: String,
    set: &'a Set,
    /// Mean measures of all questions, of each half, and of each category.
    measures: Vec<(String, usize, [f64; MEASURES.len()])>,
    /// False and kept shares of both halves, by threshold.
    curve: Vec<(f32, [GatePoint; 2])>,
    /// The number of unrelated questions, and the share of them that injects nothing, by threshold.
    strangers: (usize, Vec<f64>),
    /// Score, question, matched words and title of the worst false results.
    worst: Vec<(f32, String, Vec<String>, String)>,
    /// The median time per question.
    median: Duration,
}

impl Set {
    fn read(folder: &Path) -> Result<Self> {
        let mut names = HashMap::new();
        let mut notes = Vec::new();
        let mut sessions: HashMap<String, u32> = HashMap::new();
        for row in rows(&folder.join("notes.jsonl"))? {
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
            notes.push(stored(id, &row, session)?);
            names.insert(id, name);
        }
        let begun = Instant::now();
        let count = notes.len();
        let index = Index::in_memory(notes)?;
        let built = begun.elapsed();
        let none = folder.join("none-queries.jsonl");
        Ok(Self {
            index,
            built,
            notes: count,
            has_sessions: !sessions.is_empty(),
            questions: questions(&folder.join("queries.jsonl"))?,
            unanswerable: if none.exists() {
                questions(&none)?
            } else {
                Vec::new()
            },
            names,
        })
    }

    fn ask<'a>(&self, question: &'a Question, with_sessions: bool) -> Result<Answer<'a>> {
        let mask = Mask::from_filter(&Filter {
            projects: vec![question.project.clone()],
            ..Filter::default()
        });
        let candidates = rank(&self.index, &Query::parse(&question.text), &mask, DEPTH)?.candidates;
        let found: Vec<NoteId> = candidates.iter().map(|candidate| candidate.id).collect();
        let around = if with_sessions {
            let found = search::with_sessions(&self.index, &candidates)?;
            let found: Vec<NoteId> = found.into_iter().map(|(id, _)| id).collect();
            Some(measures(&found, &question.right))
        } else {
            None
        };
        Ok(Answer {
            question,
            measures: measures(&found, &question.right),
            around,
            candidates,
        })
    }

    fn report(
        &self,
        folder: &Path,
        arguments: &Arguments,
        strangers: &[String],
    ) -> Result<Report<'_>> {
        let with_sessions = self.has_sessions && !arguments.words_only;
        let mut times = Vec::with_capacity(self.questions.len());
        let mut answers = Vec::with_capacity(self.questions.len());
        for question in &self.questions {
            let begun = Instant::now();
            answers.push(self.ask(question, with_sessions)?);
            times.push(begun.elapsed());
        }
        times.sort_unstable();
        let none: Vec<Answer<'_>> = self
            .unanswerable
            .iter()
            .map(|question| self.ask(question, false))
            .collect::<Result<_>>()?;
        let name = folder
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        if let Some(answered) = &arguments.answers {
            let path = answered.join(format!("{name}.jsonl"));
            self.write_answers(&path, answers.iter().chain(&none))?;
        }
        let mut groups: BTreeMap<String, Vec<&Answer<'_>>> = BTreeMap::new();
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
        for (name, answers) in &groups {
            let name = name.get(2..).unwrap_or_default();
            let mean = |of: &dyn Fn(&Answer<'_>) -> Option<[f64; MEASURES.len()]>| {
                std::array::from_fn(|place| {
                    let values = answers.iter().filter_map(|answer| of(answer));
                    mean(values.map(|values| values[place])).unwrap_or_default()
                })
            };
            let count = answers.len();
            measures.push((
                name.to_owned(),
                count,
                mean(&|answer| Some(answer.measures)),
            ));
            if with_sessions {
                let name = format!("{name}, with sessions");
                measures.push((name, count, mean(&|answer| answer.around)));
            }
        }
        let mut worst: Vec<_> = none
            .iter()
            .filter_map(|answer| {
                let best = answer.candidates.first()?;
                let line = (
                    best.fit,
                    answer.question.text.clone(),
                    best.matched.clone(),
                    best.title.clone(),
                );
                best.passes(arguments.threshold).then_some(line)
            })
            .collect();
        worst.sort_by(|a, b| b.0.total_cmp(&a.0));
        worst.truncate(WORST);
        let thresholds = THRESHOLDS.iter().filter(|_| !none.is_empty());
        Ok(Report {
            name,
            set: self,
            measures,
            curve: thresholds
                .map(|threshold| {
                    let point = |half| point(*threshold, half, &answers, &none);
                    (*threshold, [point(0), point(1)])
                })
                .collect(),
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
                let question = Question {
                    id: String::new(),
                    text: text.clone(),
                    project: project.to_owned(),
                    category: String::new(),
                    right: Vec::new(),
                };
                let answer = self.ask(&question, false)?;
                for (silent, threshold) in silent.iter_mut().zip(THRESHOLDS) {
                    *silent += u32::from(answer.shown(threshold).is_empty());
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
        answers: impl Iterator<Item = &'a Answer<'a>>,
    ) -> Result {
        let mut lines = String::new();
        for answer in answers {
            let names = answer.candidates.iter();
            let names: Vec<_> = names
                .map(|candidate| self.names.get(&candidate.id))
                .collect();
            lines.push_str(&json!({ "qid": answer.question.id, "ids": names }).to_string());
            lines.push('\n');
        }
        fs::write(path, lines).map_err(at(path))
    }
}

fn point(threshold: f32, half: usize, answers: &[Answer<'_>], none: &[Answer<'_>]) -> GatePoint {
    let of_half = |answer: &&Answer<'_>| answer.question.half() == half;
    let none = none.iter().filter(of_half);
    let answered: Vec<GateResult> = answers
        .iter()
        .filter(of_half)
        .map(|answer| {
            let shown = answer.shown(threshold);
            GateResult {
                is_reachable: answer.is_useful(&answer.shown(0.0)),
                given: shown.len(),
                is_right: answer.is_useful(&shown),
            }
        })
        .collect();
    GatePoint::from_questions(none.map(|answer| answer.shown(threshold).len()), &answered)
}

impl Report<'_> {
    fn text(&self, threshold: f32) -> String {
        let mut text = format!(
            "{}: {} notes, index built in {:.2} s, a question answered in {:.2} ms (median)\n{:28}{:>6}",
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
            text.push_str("threshold: false, kept, notes; first half | second half\n");
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
        if !self.worst.is_empty() {
            text.push_str(&format!("worst false results above {threshold}\n"));
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
                let halves = halves.map(|point| json!({ "false": point.false_share, "kept": point.kept, "notes": point.notes }));
                json!({ "threshold": threshold, "first_half": halves[0], "second_half": halves[1] })
            })
            .collect();
        json!({
            "set": self.name, "notes": self.set.notes,
            "measures": measures.collect::<serde_json::Map<_, _>>(), "gate": curve,
            "strangers": { "asked": self.strangers.0, "silent": self.strangers.1 },
            "worst": self.worst.iter().map(|(fit, question, matched, title)| json!({
                "fit": fit, "question": question, "matched": matched, "title": title,
            })).collect::<Vec<_>>(),
        })
    }
}

fn curve_line(threshold: f32, points: &[GatePoint; 2]) -> String {
    let halves = points.map(|point| {
        let [false_share, kept, notes] =
            [point.false_share, point.kept, point.notes].map(Option::unwrap_or_default);
        format!(
            "{:6.1} {:6.1} {notes:5.2}",
            100.0 * false_share,
            100.0 * kept
        )
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

#[expect(clippy::cast_precision_loss, reason = "ranks and numbers of notes")]
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
        let set = Set::read(folder.path()).unwrap();
        let arguments = Arguments {
            sets: Vec::new(),
            strangers: Vec::new(),
            scale: None,
            words_only: false,
            categories: true,
            threshold: 0.3,
            json: false,
            answers: Some(folder.path().to_owned()),
        };
        let prompts = folder.path().join("prompts.txt");
        fs::write(&prompts, "when do migrations run\n\ndraw a bicycle\n").unwrap();
        let strangers = read_strangers(&prompts).unwrap();
        let report = set.report(folder.path(), &arguments, &strangers).unwrap();
        let (asked, silent) = &report.strangers;
        assert_eq!((*asked, silent[5]), (2, 0.5));
        assert_eq!(report.measures[0], ("all".to_owned(), 1, [1.0; 6]));
        assert_eq!(report.measures.last().unwrap().0, "c");
        let curve = &report.curve;
        assert!(curve.iter().all(|(_, halves)| {
            halves
                .iter()
                .all(|half| half.false_share.unwrap_or_default() == 0.0)
        }));
        let name = folder.path().file_name().unwrap().to_str().unwrap();
        let answers = fs::read_to_string(folder.path().join(format!("{name}.jsonl"))).unwrap();
        assert_eq!(
            answers,
            "{\"qid\":\"1\",\"ids\":[\"n2\"]}\n{\"qid\":\"2\",\"ids\":[]}\n"
        );
        assert!(report.text(0.3).contains("second half"));
        assert_eq!(report.json()["notes"], 2);
    }
}
