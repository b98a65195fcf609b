//! `recall`: searches notes and follows their links.

use anamnesis_app::{Error, context::Context, project_history, recall::known};
use anamnesis_note::note::Kind;
use anamnesis_recall::ask::{
    AnswerNote, DEFAULT_BUDGET, DEFAULT_K, MAX_DEPTH, MemoryAnswer, Question, ask,
};
use anamnesis_recall::render::{Budget, Level};
use anamnesis_store::{index::Index, journal::Evidence};
use anamnesis_text::clean::one_line;
use serde::Serialize;

use super::why;
use crate::{
    input::words_or_stdin,
    ui::{self, Outcome, ProjectFilter, Ui},
};

/// An answer for scripts.
#[derive(Serialize)]
struct Answered<'a> {
    #[serde(flatten)]
    answer: &'a MemoryAnswer,
    commits: &'a [String],
}

/// Search notes and follow their links
///
/// Prints notes that contain at least a quarter of the question, best first; then notes linked with
/// them, and warnings. Notes of this project come first. With --project, those for all projects are
/// included. Nothing is recorded.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The question
    #[arg(required_unless_present = "stdin")]
    words: Vec<String>,
    /// Read the question from stdin
    #[arg(long, conflicts_with = "words")]
    stdin: bool,
    /// The maximum number of notes
    #[arg(short = 'n', long, value_name = "N", alias = "k", short_alias = 'k', default_value_t = DEFAULT_K, value_parser = ui::at_least_one)]
    limit: usize,
    /// The maximum number of tokens of the texts
    #[arg(long, value_name = "TOKENS", default_value_t = DEFAULT_BUDGET)]
    budget: usize,
    /// How many links to follow, 1 or 2
    #[arg(long, default_value_t = 1, value_parser = depth)]
    depth: usize,
    /// Include weak matches if there is room
    #[arg(long)]
    weak: bool,
    /// Say for each note why it is here
    #[arg(long, conflicts_with = "json")]
    explain: bool,
    /// Only notes of this kind
    #[arg(long, value_parser = Kind::from_word)]
    kind: Option<Kind>,
    #[command(flatten)]
    projects: ProjectFilter,
    /// Print JSON, with all details
    #[arg(long)]
    json: bool,
}

fn depth(text: &str) -> Result<usize, Error> {
    let depth = text.parse().ok();
    depth
        .filter(|depth| (1..=MAX_DEPTH).contains(depth))
        .ok_or_else(|| Error::usage("neither 1 nor 2"))
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let text = words_or_stdin(&args.words, args.stdin)?;
    if text.trim().is_empty() {
        return Err(Error::usage("there is no question"));
    }
    let index = context.index_to_search()?;
    let journal = context.records()?;
    let project = context.project(args.projects.key());
    let question = Question {
        text: &text,
        own: &project.all_keys(),
        everywhere: args.projects.key().is_none(),
        kind: args.kind,
        k: args.limit,
        depth: args.depth,
        with_weak: args.weak,
        budget: Budget(args.budget),
        knowledge: &known(context, &index, journal.as_ref()),
        now: context.environment.now,
    };
    let answer = ask(&index, &context.notes, &question)?;
    let commits = match args.kind {
        None => project_history::for_search(context, &project, &text),
        Some(_) => Vec::new(),
    };
    if args.json {
        return ui.json(&Answered {
            answer: &answer,
            commits: &commits,
        });
    }
    let shown = shown(&answer, &commits, &index, context, args.explain)?;
    ui.page(&shown, &text)
}

fn shown(
    answer: &MemoryAnswer,
    commits: &[String],
    index: &Index,
    context: &Context,
    explains: bool,
) -> Result<String, Error> {
    let mut text = String::new();
    for found in &answer.notes {
        text.push_str(&note(found, index, context, explains)?);
    }
    if !answer.warnings.is_empty() {
        text.push_str("warnings\n");
    }
    for found in &answer.warnings {
        text.push_str(&note(found, index, context, explains)?);
    }
    if explains && !answer.links.is_empty() {
        text.push_str("links\n");
        for edge in &answer.links {
            let [from, to] = [edge.from, edge.to].map(|id| Context::short(index, id));
            text.push_str(&format!("  #{from} {} #{to}\n", edge.relation));
        }
    }
    let below = ui::number(answer.below_floor);
    let is_empty = text.is_empty();
    text.push_str(&ui::commits(commits));
    if text.is_empty() {
        text.push_str("no note matches\n");
    }
    if answer.below_floor > 0 {
        let more = if is_empty { "" } else { " more" };
        let matches = ui::one_or_many(answer.below_floor, "matches", "match");
        text.push_str(&format!("{below}{more} {matches} weakly · --weak\n"));
    }
    if !is_empty {
        text.push_str("→ anamnesis show ID\n");
    }
    Ok(text)
}

/// Formats a note with as much of its text as the budget allows, and remarks.
fn note(
    found: &AnswerNote,
    index: &Index,
    context: &Context,
    explains: bool,
) -> Result<String, Error> {
    let mut text = String::new();
    if let Some(entry) = index.get(found.id())? {
        text = ui::listed(index, &entry, context.environment.now);
    }
    text.push_str(&found.text);
    let mut facts: Vec<String> = Vec::new();
    facts.extend(found.is_weak.then(|| "weak".to_owned()));
    facts.extend(found.recalled.remarks.iter().map(|remark| one_line(remark)));
    facts.extend((found.level == Level::Name).then(|| "no room for its text".to_owned()));
    if explains {
        // The remarks already name the link.
        let evidence = Evidence {
            via: None,
            ..found.evidence.clone()
        };
        facts.push(format!(
            "{}{} · has {:.0} % of what is asked",
            found.reason.as_str(),
            why::matched(&evidence),
            100.0 * evidence.coverage
        ));
    }
    if !facts.is_empty() {
        text.push_str(&why::indented(&facts.join(" · ")));
    }
    Ok(text)
}
