//! Measures whether the latest ruling comes where a later note changes an earlier one.
//!
//! Chains of two and three notes are made from templates and subjects, in eight languages, as
//! session notes and as facts of a person, among plain decisions that nothing changes. Each
//! question goes through the same recall as a prompt of the client. The rules were developed on the
//! `seen`, `unseen` and `heldout` templates and on the paraphrased chains. The `third` chains were
//! written before the rules became general and show how they do on other wording.

use std::{
    collections::{BTreeMap, HashMap},
    io::{self, Write as _},
    time::Duration,
};

use anamnesis_note::{
    id::NoteId,
    link::Edge,
    note::{Note, NoteType, Source, timestamp},
};
use anamnesis_recall::{
    note_set::{Knowledge, Limits, NoteStanding, Outcome, Request, WORDS_ALONE, recall},
    prompt::sentences,
    rank::Query,
    render::{Budget, recalled_block},
    threshold::Floor,
};
use anamnesis_store::{fs::home::Home, index::Index, journal::Ledger, notes::Notes};
use chrono::{DateTime, TimeDelta, Utc};

use crate::Result;

const TEMPLATES: &str = include_str!("amendments/templates.txt");
const HELD_OUT: &str = include_str!("amendments/held_out.txt");
const PARAPHRASED: &str = include_str!("amendments/paraphrased.txt");
const THIRD: &str = include_str!("amendments/third.txt");

/// The chains whose failures are not printed.
const THIRD_HALF: &str = "third";

/// Requests that say nothing about the decisions.
const ASKS: [&str; 6] = [
    "Fix the flaky build on the runner",
    "Look at the warnings of the last deploy",
    "Clean up the changelog",
    "Answer the review comments",
    "Prepare the demo for Thursday",
    "Update the readme",
];

/// The limits of a prompt in the default settings.
const NOTES: usize = 3;
const TOKENS: usize = 600;

/// Measure whether the latest ruling comes where a later note changes an earlier one
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Run the other sets, too
    #[arg(long)]
    unseen: bool,
    /// Print the chains whose latest ruling does not come, but not those of the third set
    #[arg(long)]
    failures: bool,
}

/// A question with the statements that were made about it, in order; only the last one holds.
struct Chain {
    half: &'static str,
    kind: String,
    project: String,
    /// The file that it is from, which has the plain decisions of its project.
    templates: &'static str,
    statements: Vec<String>,
    question: String,
}

impl Chain {
    fn project(&self) -> (&str, &'static str) {
        (&self.project, self.templates)
    }
}

/// What came for a chain.
#[derive(Debug, Clone, Copy, Default)]
struct Score {
    chains: usize,
    latest: usize,
    stale_alone: usize,
    /// Chains of which no statement comes: the question does not reach the threshold.
    nothing: usize,
}

/// What came, by half and kind, and for plain questions.
#[derive(Debug, Default)]
struct Scores {
    chains: BTreeMap<(&'static str, String), Score>,
    /// Notes that came to plain questions before, of these those that still come, and new ones.
    plain: usize,
    kept: usize,
    added: usize,
    /// Plain questions, and those with a quoted later note.
    questions: usize,
    quoted: usize,
    failures: Vec<String>,
}

/// Runs `cargo xtask amendments`.
pub fn run(arguments: &Arguments) -> Result {
    let mut scores = Scores::default();
    let mut chains = chains();
    chains.retain(|chain| chain.half == "seen" || arguments.unseen);
    for file in [TEMPLATES, HELD_OUT, PARAPHRASED, THIRD] {
        let (of_file, rest): (Vec<Chain>, Vec<Chain>) = chains
            .into_iter()
            .partition(|chain| chain.templates == file);
        scores.ask(&of_file)?;
        chains = rest;
    }
    let mut out = io::stdout().lock();
    for failure in scores.failures.iter().filter(|_| arguments.failures) {
        writeln!(out, "{failure}")?;
    }
    for ((half, kind), score) in &scores.chains {
        writeln!(
            out,
            "{half:<7} {kind:<15} {:>4} chains, latest {:>5.1} %, stale alone {}, nothing {}",
            score.chains,
            percent(score.latest, score.chains),
            score.stale_alone,
            score.nothing
        )?;
    }
    writeln!(
        out,
        "plain decisions: {:.1} % of {} notes still come, {} more come, {:.1} % of {} answers \
         quote a later note",
        percent(scores.kept, scores.plain),
        scores.plain,
        scores.added,
        percent(scores.quoted, scores.questions),
        scores.questions
    )?;
    Ok(())
}

impl Scores {
    /// Asks the questions of one file, in a store of their own.
    fn ask(&mut self, chains: &[Chain]) -> Result {
        let store = Store::new()?;
        for (place, chain) in chains.iter().enumerate() {
            for (step, statement) in chain.statements.iter().enumerate() {
                let days = i64::try_from(20 * step)?;
                store.add(&chain.project, statement, place + step, days)?;
            }
        }
        let mut projects: Vec<(&str, &str)> = chains.iter().map(Chain::project).collect();
        projects.dedup();
        for (project, templates) in &projects {
            for (place, row) in rows(templates, "P").iter().enumerate() {
                store.add(project, row[0], place, i64::try_from(place)?)?;
            }
        }
        let index = store.index()?;
        for chain in chains {
            self.ask_chain(&store, &index, chain)?;
        }
        for (project, templates) in projects {
            for row in &rows(templates, "P") {
                self.ask_plain(&store, &index, project, row[1])?;
            }
        }
        Ok(())
    }

    fn ask_chain(&mut self, store: &Store, index: &Index, chain: &Chain) -> Result {
        let text = store.answer(index, &chain.project, &chain.question, 2)?.1;
        let has = |statement: &String| text.contains(&squeezed(statement));
        let (last, earlier) = chain.statements.split_last().ok_or("an empty chain")?;
        let (is_latest, is_stale) = (has(last), earlier.iter().any(has));
        for kind in [chain.kind.clone(), "all".to_owned()] {
            let counts = self.chains.entry((chain.half, kind)).or_default();
            counts.chains += 1;
            counts.latest += usize::from(is_latest);
            counts.stale_alone += usize::from(is_stale && !is_latest);
            counts.nothing += usize::from(!is_stale && !is_latest);
        }
        if !is_latest && chain.half != THIRD_HALF {
            let came = if is_stale { "stale" } else { "nothing" };
            let statements = chain.statements.join(" | ");
            self.failures.push(format!(
                "{came}: {statements} | {}\n    {text}",
                chain.question
            ));
        }
        Ok(())
    }

    fn ask_plain(&mut self, store: &Store, index: &Index, project: &str, question: &str) -> Result {
        let answer = |changes| -> Result<(Vec<NoteId>, String)> {
            let (outcome, text) = store.answer(index, project, question, changes)?;
            let given = outcome.given.iter();
            let given = given.map(|given| given.recalled.note.id);
            Ok((given.collect(), text))
        };
        let ((before, _), (after, text)) = (answer(0)?, answer(2)?);
        self.questions += usize::from(!before.is_empty());
        if text.contains("· later: ") {
            self.quoted += 1;
            self.failures
                .push(format!("quoted: {question}\n    {text}"));
        }
        self.plain += before.len();
        self.kept += before.iter().filter(|id| after.contains(id)).count();
        self.added += after.iter().filter(|id| !before.contains(id)).count();
        Ok(())
    }
}

/// Returns the fields of all lines of one sort.
fn rows<'a>(templates: &'a str, sort: &str) -> Vec<Vec<&'a str>> {
    let lines = templates.lines().filter_map(|line| {
        let mut fields = line.split('|').map(str::trim);
        (fields.next() == Some(sort)).then(|| fields.collect())
    });
    lines.collect()
}

fn chains() -> Vec<Chain> {
    let mut chains = chains_of(TEMPLATES);
    chains.extend(chains_of(HELD_OUT));
    for (half, file) in [("paraphr.", PARAPHRASED), (THIRD_HALF, THIRD)] {
        chains.extend(rows(file, "C").into_iter().filter_map(|row| {
            let [language, kind, first, second, third, question] = row[..] else {
                return None;
            };
            let statements = [first, second, third].into_iter();
            let statements = statements.filter(|statement| !statement.is_empty());
            Some(Chain {
                half,
                kind: if language == "en" { kind } else { language }.to_owned(),
                project: half.to_owned(),
                templates: file,
                statements: statements.map(str::to_owned).collect(),
                question: question.to_owned(),
            })
        }));
    }
    chains
}

fn chains_of(templates: &'static str) -> Vec<Chain> {
    let subjects = rows(templates, "S");
    let mut chains = Vec::new();
    for (number, template) in rows(templates, "T").into_iter().enumerate() {
        let [half, language, kind, first, second, third, question] = template[..] else {
            continue;
        };
        let mut of_kind = subjects.iter().filter(|row| row[..2] == [language, kind]);
        while let Some([_, _, subject, old, new, last]) = of_kind.next().map(|row| &row[..]) {
            let fill = |text: &str| {
                let text = text.replace("{s}", subject).replace("{o}", old);
                text.replace("{n}", new).replace("{t}", last)
            };
            let all = [first, second, third].map(fill);
            for steps in 2..=3 {
                if all[..steps].iter().any(String::is_empty) || (steps == 3 && last.is_empty()) {
                    continue;
                }
                let what = if language == "en" { kind } else { language };
                chains.push(Chain {
                    half,
                    kind: if steps == 3 {
                        format!("{what} 3 steps")
                    } else {
                        what.to_owned()
                    },
                    project: format!("project-{half}-{number}-{steps}"),
                    templates,
                    statements: all[..steps].to_vec(),
                    question: fill(question),
                });
            }
        }
    }
    chains.sort_by(|one, other| one.project.cmp(&other.project));
    chains
}

/// Nothing but the text of the notes is known.
struct Nothing;

impl Knowledge for Nothing {
    fn standings(&self, _: &[NoteId]) -> HashMap<NoteId, NoteStanding> {
        HashMap::new()
    }

    fn stale(&self, _: &[NoteId]) -> HashMap<NoteId, String> {
        HashMap::new()
    }

    fn links(&self, _: &[NoteId]) -> Vec<Edge> {
        Vec::new()
    }
}

struct Store {
    _folder: tempfile::TempDir,
    home: Home,
    notes: Notes,
}

impl Store {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let home = Home::new(folder.path().join("store"));
        home.create()?;
        Ok(Self {
            _folder: folder,
            notes: Notes::new(home.clone(), TIMEOUT),
            home,
        })
    }

    /// Adds a note that makes a statement: of three, two are session notes.
    fn add(&self, project: &str, statement: &str, number: usize, days: i64) -> Result {
        let at = start() + TimeDelta::days(days) + TimeDelta::seconds(i64::try_from(number)?);
        let is_fact = number % 3 == 2;
        let note_type = if is_fact {
            NoteType::Semantic
        } else {
            NoteType::Episodic
        };
        let mut note = Note::new(NoteId::generate(at), note_type, at);
        project.clone_into(&mut note.project);
        note.updated_at = timestamp(at);
        if is_fact {
            statement.clone_into(&mut note.title);
            statement.clone_into(&mut note.body);
        } else {
            let label = if number.is_multiple_of(2) {
                "Said"
            } else {
                "Decided"
            };
            note.source = Source::SessionEnd;
            note.session = Some(note.id.to_string());
            ASKS[number % ASKS.len()].clone_into(&mut note.title);
            note.body = format!(
                "**{label}:**\n- {statement}\n\n**Outcome:** The branch is pushed and the checks \
                 are green.\n\n**Files:** src/part{number}.rs"
            );
        }
        self.notes.create(&self.notes.lock()?, &note)?;
        Ok(())
    }

    fn index(&self) -> Result<Index> {
        Ok(Index::rebuild(&self.home, &self.notes, TIMEOUT)?)
    }

    /// Returns what a prompt gets, and its block in one line. `changes` limits the notes that come
    /// because they change others.
    fn answer(
        &self,
        index: &Index,
        project: &str,
        question: &str,
        changes: usize,
    ) -> Result<(Outcome, String)> {
        let outcome = recall(
            index,
            &self.notes,
            &Request {
                query: &Query::from_segments(&sentences(question)),
                project,
                also: &[],
                limits: Limits {
                    floor: Floor::Usual,
                    notes: NOTES,
                    linked: 1,
                    changes,
                },
                ledger: &Ledger::new(),
                own: None,
                knowledge: &Nothing,
                vector: WORDS_ALONE,
            },
        )?;
        let notes: Vec<_> = outcome
            .given
            .iter()
            .map(|given| given.recalled.clone())
            .collect();
        let now = start() + TimeDelta::days(200);
        let block = recalled_block(&notes, Budget(TOKENS), now, NoteId::short);
        let text = squeezed(&block.text);
        Ok((outcome, text))
    }
}

const TIMEOUT: Duration = Duration::from_secs(10);

fn start() -> DateTime<Utc> {
    DateTime::UNIX_EPOCH + TimeDelta::days(20_000)
}

/// Returns a text in one line.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[expect(clippy::cast_precision_loss, reason = "a few hundred chains")]
fn percent(part: usize, whole: usize) -> f64 {
    100.0 * part as f64 / whole.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_set_has_enough_chains() {
        let chains = chains();
        let of = |half: &str| chains.iter().filter(|chain| chain.half == half).count();
        assert!(chains.len() >= 400, "{}", chains.len());
        assert!(of(THIRD_HALF) >= 60, "{}", of(THIRD_HALF));
        assert!(chains.iter().all(|chain| !chain.question.contains('{')));
    }
}
