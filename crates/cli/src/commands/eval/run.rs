//! `eval run`: measures whether a search finds the notes that answer.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anamnesis_app::{
    context::Context,
    evaluation_set::{Case, Set},
    failure::{Failure, NEEDS_ATTENTION},
};
use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, State},
};
use anamnesis_recall::render;
use anamnesis_recall::{
    evaluation::{RelevantRanks, mean, share},
    search::{self, MAX_HITS},
    session_start::{self, DEFAULT_K, Request},
};
use anamnesis_store::index::{Entry, Filter, Index};
use anamnesis_text::clean::one_line;
use serde_json::{Map, Value, json};

use super::{gate, library::Library};
use crate::ui::{self, Outcome, Ui};

/// The depths at which recall is reported.
const DEPTHS: [usize; 4] = [1, 3, 5, 8];

/// The cut-off rank for the mean reciprocal rank.
const RANKED: usize = 8;

/// How many warnings of a kind are listed.
const WARNED: usize = 10;

/// Measure whether searches find the notes that answer
///
/// Runs every approved question of the set as `search` would, and reports recall and the mean
/// reciprocal rank. A note that replaces the right one counts, too. Also compares the size of the
/// working sets with that of all notes. If there is no set, create one with `eval mine`.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    set: super::SetArgs,
    /// Also report recall at this depth
    #[arg(short, long, value_name = "DEPTH", value_parser = depth)]
    k: Option<usize>,
    /// Measure injected notes instead, like `eval gate`
    #[arg(long, conflicts_with = "k")]
    gate: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn depth(text: &str) -> Result<usize, String> {
    let depth = text.parse().ok();
    depth
        .filter(|depth| (1..=MAX_HITS).contains(depth))
        .ok_or_else(|| format!("a number from 1 to {MAX_HITS}"))
}

/// The figures, and the set that they were measured with.
struct Report {
    path: PathBuf,
    /// How many questions are not approved.
    waiting: usize,
    figures: Figures,
}

/// The figures of one measurement.
pub(super) struct Figures {
    depths: BTreeSet<usize>,
    /// Recall of all questions, then by source.
    recall: Vec<(String, Recall)>,
    /// For each question: the ranks of the notes that it names, and the ranks of all notes that
    /// answer it, including replacements.
    pub(super) places: Vec<(RelevantRanks, RelevantRanks)>,
    notes: usize,
    working_sets: BTreeMap<String, usize>,
    corpus: usize,
}

/// Recall at each depth, and the mean reciprocal rank.
struct Recall {
    asked: usize,
    /// Recall at each depth, in the order of `depths`.
    within: Vec<Option<f64>>,
    reciprocal: Option<f64>,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if args.gate {
        return gate::measure(&args.set, args.json, context, ui);
    }
    let (set, path) = args.set.read(context)?;
    let set = set.ok_or_else(|| missing(context, &path))?;
    let cases = args.set.measured(&set);
    let index = context.index()?;
    let report = Report {
        path,
        waiting: set.cases.len() - cases.len(),
        figures: Figures::of(context, &index, &cases, args.k)?,
    };
    let unknown = unknown(&index, &cases)?;
    warn(&set, &unknown, ui);
    if args.json {
        ui.json(&report.json(&set, &unknown));
    } else {
        ui.print(&report.text(context));
    }
    Ok(ended(&set))
}

impl Figures {
    /// Runs every question. Recall is also reported at `depth`.
    pub(super) fn of(
        context: &Context,
        index: &Index,
        cases: &[(usize, &Case)],
        depth: Option<usize>,
    ) -> Result<Self, Failure> {
        let depths: BTreeSet<usize> = DEPTHS.into_iter().chain(depth).collect();
        let most = depths.last().copied().unwrap_or(RANKED).max(RANKED);
        let mut library = Library::of(context, index, cases)?;
        let mut places = Vec::with_capacity(cases.len());
        for (_, case) in cases {
            let named: Vec<NoteId> = case.notes().collect();
            let right = library.right(case)?;
            let hits = library.ask(case, |index| {
                search::search(index, &case.query, &Filter::default(), most)
            })?;
            let found: Vec<_> = hits.iter().map(|hit| hit.entry.id()).collect();
            places.push((
                RelevantRanks::new(&found, &named),
                RelevantRanks::new(&found, &right),
            ));
        }
        let answers: Vec<(&Case, &RelevantRanks)> = cases
            .iter()
            .zip(&places)
            .map(|((_, case), (_, places))| (*case, places))
            .collect();
        let entries = index.list(&Filter::default(), usize::MAX)?;
        Ok(Self {
            recall: by_source(&answers, &depths),
            depths,
            notes: entries.len(),
            working_sets: working_sets(context, index, &entries)?,
            corpus: corpus(&entries),
            places,
        })
    }

    /// The number of questions.
    pub(super) fn asked(&self) -> usize {
        self.places.len()
    }

    /// Recall at each depth, for all questions.
    pub(super) fn within(&self) -> impl Iterator<Item = (usize, Option<f64>)> {
        let all = self.recall.first().map(|(_, recall)| &recall.within);
        let depths = self.depths.iter().copied();
        depths.zip(all.into_iter().flatten().copied())
    }

    /// The mean reciprocal rank of all questions.
    pub(super) fn reciprocal(&self) -> Option<f64> {
        let all = self.recall.first();
        all.and_then(|(_, recall)| recall.reciprocal)
    }

    #[expect(clippy::cast_precision_loss, reason = "tokens of a block")]
    pub(super) fn mean_tokens(&self) -> Option<f64> {
        mean(self.working_sets.values().map(|tokens| *tokens as f64))
    }

    /// The number of tokens in all titles and texts.
    #[expect(clippy::cast_precision_loss, reason = "tokens of all notes")]
    pub(super) fn corpus_tokens(&self) -> f64 {
        self.corpus as f64
    }

    fn median_tokens(&self) -> Option<f64> {
        median(self.working_sets.values().copied().collect())
    }

    /// All figures, for scripts.
    pub(super) fn json(&self) -> Value {
        let figures = |recall: &Recall| {
            let within = self.depths.iter().zip(&recall.within);
            let within: Map<String, Value> = within
                .map(|(depth, share)| (depth.to_string(), json!(share)))
                .collect();
            json!({ "n_cases": recall.asked, "recall_at": within, "mrr": recall.reciprocal })
        };
        let mut sources = self.recall.iter();
        let all = sources.next().map(|(_, recall)| figures(recall));
        let mut all = all.unwrap_or_default();
        all["by_source"] = sources
            .map(|(source, recall)| (source.clone(), figures(recall)))
            .collect::<Map<_, _>>()
            .into();
        json!({
            "recall": all,
            "working_set": {
                "per_project": self.working_sets,
                "mean_tokens": self.mean_tokens(),
                "median_tokens": self.median_tokens(),
                "corpus_tokens": self.corpus,
            },
            "notes": self.notes,
        })
    }
}

/// The exit code: a failure if some lines of the set cannot be parsed.
pub(super) fn ended(set: &Set) -> ExitCode {
    if set.bad.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::from(NEEDS_ATTENTION)
    }
}

pub(super) fn missing(context: &Context, path: &Path) -> Failure {
    let path = one_line(&context.shown(path));
    Failure::usage(format!("there are no questions: {path} is not there"))
        .hint("anamnesis eval mine   (makes some of your notes and prompts)")
}

/// The ids in the measured questions that belong to no note, with their line numbers.
pub(super) fn unknown(
    index: &Index,
    cases: &[(usize, &Case)],
) -> Result<Vec<(usize, String)>, Failure> {
    let mut unknown = Vec::new();
    for (line, case) in cases {
        for id in &case.relevant_ids {
            let entry = match id.parse() {
                Ok(id) => index.get(id)?,
                Err(_) => None,
            };
            if entry.is_none_or(|entry| entry.state == State::Forgotten) {
                unknown.push((*line, id.clone()));
            }
        }
    }
    Ok(unknown)
}

/// Warns about parts of the set that cannot be used.
pub(super) fn warn(set: &Set, unknown: &[(usize, String)], ui: &Ui) {
    let bad = set.bad.iter().map(|(line, reason)| {
        let reason = one_line(reason);
        format!("! line {line} is left out: {reason}\n")
    });
    let unknown = unknown.iter().map(|(line, id)| {
        let id = ui::shorten(&one_line(id), 40);
        format!("! line {line}: there is no note {id}\n")
    });
    for mut warnings in [bad.collect::<Vec<_>>(), unknown.collect()] {
        let more = warnings.len().saturating_sub(WARNED);
        warnings.truncate(WARNED);
        if more > 0 {
            warnings.push(format!("! and {more} more\n"));
        }
        ui.note(&warnings.concat());
    }
}

fn by_source(
    answers: &[(&Case, &RelevantRanks)],
    depths: &BTreeSet<usize>,
) -> Vec<(String, Recall)> {
    let recall = |places: Vec<&RelevantRanks>| Recall {
        asked: places.len(),
        within: depths
            .iter()
            .map(|depth| share(places.iter().map(|places| places.is_within(*depth))))
            .collect(),
        reciprocal: mean(places.iter().map(|places| places.reciprocal_rank(RANKED))),
    };
    let mut sources: BTreeMap<&str, Vec<&RelevantRanks>> = BTreeMap::new();
    for (case, places) in answers {
        sources.entry(case.kind()).or_default().push(places);
    }
    let all = answers.iter().map(|(_, places)| *places).collect();
    let sources = sources
        .into_iter()
        .map(|(source, places)| (source.to_owned(), recall(places)));
    std::iter::once(("all".to_owned(), recall(all)))
        .chain(sources)
        .collect()
}

/// The number of tokens in the working set of each project.
fn working_sets(
    context: &Context,
    index: &Index,
    entries: &[Entry],
) -> Result<BTreeMap<String, usize>, Failure> {
    let projects: BTreeSet<&str> = entries.iter().map(|entry| entry.project.as_str()).collect();
    let now = context.environment.now;
    let mut tokens = BTreeMap::new();
    for project in projects.into_iter().filter(|project| *project != GLOBAL) {
        let request = Request {
            project,
            also: &[],
            k: DEFAULT_K,
            session: None,
            now,
            had: &[],
        };
        let mut chosen = session_start::select(index, &context.notes, &request)?;
        chosen.extend(session_start::open_tasks(index, &context.notes, &request)?);
        let block = render::hook_block(&chosen, now, |id| Context::short(index, id));
        tokens.insert(project.to_owned(), block.tokens());
    }
    Ok(tokens)
}

/// The number of tokens in all titles and bodies, at four characters each.
fn corpus(entries: &[Entry]) -> usize {
    let lengths = entries.iter().map(|entry| usize::try_from(entry.length));
    lengths.flatten().sum::<usize>().div_ceil(4)
}

#[expect(clippy::cast_precision_loss, reason = "tokens of a block")]
fn median(mut numbers: Vec<usize>) -> Option<f64> {
    numbers.sort_unstable();
    let upper = *numbers.get(numbers.len() / 2)?;
    let lower = *numbers.get((numbers.len() - 1) / 2)?;
    Some((lower + upper) as f64 / 2.0)
}

impl Report {
    fn text(&self, context: &Context) -> String {
        let figures = &self.figures;
        let asked = figures.asked();
        let mut text = format!(
            "{} of {}, asked of {}\n",
            ui::count(asked, "question"),
            one_line(&context.shown(&self.path)),
            ui::count(figures.notes, "note"),
        );
        if asked > 0 {
            text.push_str(&format!("\n{:20}{:>6}", "found among the first", "asked"));
            for depth in &figures.depths {
                text.push_str(&format!("{depth:>7}"));
            }
            text.push_str("     MRR\n");
            // With one source, its row would repeat the total.
            let rows = if figures.recall.len() > 2 {
                figures.recall.len()
            } else {
                1
            };
            for (source, recall) in figures.recall.iter().take(rows) {
                let source = ui::shorten(&one_line(source), 20);
                text.push_str(&format!("{source:21}{:>6}", recall.asked));
                for within in &recall.within {
                    let percent = 100.0 * within.unwrap_or_default();
                    text.push_str(&format!("{percent:>5.0} %"));
                }
                let _ = writeln!(text, "{:>8.2}", recall.reciprocal.unwrap_or_default());
            }
            text.push('\n');
        }
        if let (Some(mean), Some(median)) = (figures.mean_tokens(), figures.median_tokens()) {
            text.push_str(&format!(
                "a session starts with ~{mean:.0} tokens (median {median:.0}); all notes are ~{}\n",
                ui::number(figures.corpus)
            ));
        }
        if self.waiting > 0 {
            text.push_str(&format!(
                "{} not measured: nobody approved {} yet (\"approved\": true in the file)\n\
                 → anamnesis eval run --include-unreviewed\n",
                ui::count(self.waiting, "question"),
                if self.waiting == 1 { "it" } else { "them" },
            ));
        } else if asked == 0 {
            text.push_str("→ anamnesis eval mine\n");
        }
        text
    }

    fn json(&self, set: &Set, unknown: &[(usize, String)]) -> Value {
        let mut json = self.figures.json();
        json["recall"]["unreviewed"] = self.waiting.into();
        let unknown = unknown.iter();
        json["unknown_ids"] = unknown
            .map(|(line, id)| json!({ "line": line, "id": id }))
            .collect();
        let bad = set.bad.iter();
        json["bad_lines"] = bad
            .map(|(line, reason)| json!({ "line": line, "reason": reason }))
            .collect();
        json
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_in_the_middle() {
        for (numbers, expected) in [
            (vec![], None),
            (vec![7], Some(7.0)),
            (vec![9, 1], Some(5.0)),
            (vec![9, 1, 2], Some(2.0)),
        ] {
            assert_eq!(median(numbers), expected);
        }
    }
}
