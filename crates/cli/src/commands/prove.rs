//! `prove`: plays the person's past sessions and counts what earlier notes would have told them.

use std::path::PathBuf;

use anamnesis_app::{
    Error,
    context::Context,
    format::{WIDTH, date},
    prove::{self, Example, Proof, ProofVerdict},
};
use anamnesis_store::fs::file;
use anamnesis_web::proof_html;

use crate::ui::{self, Outcome, Progress, Ui};

/// How many examples of each kind are shown.
const EXAMPLES: usize = 10;

/// Replay past sessions and measure how often notes would help
///
/// Reads Claude Code's transcripts on this machine, in the order of time, and writes the notes of each
/// session into an empty, temporary store. Nothing is sent, and your notes are neither read nor changed.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Play the transcripts of this folder instead, which is like ~/.claude: DIR/projects/PROJECT/ID.jsonl
    #[arg(long, value_name = "DIR")]
    from: Option<PathBuf>,
    /// Play only the sessions of this project
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Write the page as HTML, too
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Print JSON, with all prompts that would have got notes
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if let Some(from) = &args.from
        && !from.join("projects").is_dir()
    {
        return Err(
            Error::usage(format!("{} has no folder projects", from.display()))
                .hint("a folder like ~/.claude: DIR/projects/PROJECT/ID.jsonl"),
        );
    }
    let mut progress = Progress::bar();
    let show = |done, total, what: &'static str| progress.show(done, total, what);
    let proof = prove::run(context, args.from.as_deref(), args.project.clone(), show);
    drop(progress);
    let proof = proof?;
    if let Some(path) = &args.html {
        let page = proof_html(&proof)?;
        file::write_atomic(path, page.as_bytes()).map_err(Error::prefixed(path.display()))?;
    }
    if args.json {
        return ui.json(&proof);
    }
    ui.page(&text(&proof), "")
}

fn searches(number: usize) -> String {
    let plural = ui::one_or_many(number, "search", "searches");
    format!("{} {plural}", ui::number(number))
}

fn text(proof: &Proof) -> String {
    let totals = &proof.totals;
    let span = proof.span.map_or_else(String::new, |(first, last)| {
        let [first, last] = [first, last].map(|at| date(at.timestamp_millis()));
        format!(", {first} to {last}")
    });
    if proof.sessions == 0 {
        let skipped = ui::count(proof.skipped, "transcript");
        return format!("no past session to play; {skipped} skipped (empty, open or excluded)\n");
    }
    let mut text = format!(
        "played {} of {}{span}, in an empty store; {} skipped\n",
        ui::count(proof.sessions, "session"),
        ui::count(proof.projects, "project"),
        ui::count(proof.skipped, "transcript"),
    );
    let mut line = |name: &str, value: String| {
        let value = ui::wrapped(&value, 24);
        text.push_str(&format!("{name:<24}{}\n", value.trim()));
    };
    line("prompts:", ui::number(proof.prompts));
    if proof.with_memory > 0 {
        let why = "of sessions that had notes of anamnesis already; not judged";
        line("", format!("{} {why}", ui::number(proof.with_memory)));
    }
    line(
        "would have got notes:",
        format!(
            "{}, {} tokens",
            ui::count(proof.given, "prompt"),
            ui::number(totals.tokens)
        ),
    );
    line(
        "found again at a cost:",
        format!(
            "{}: the turn came to words of the note, after {} and {}",
            ui::count(totals.found_again, "prompt"),
            searches(totals.searches),
            ui::count(totals.files, "file"),
        ),
    );
    line("said without a search:", ui::count(totals.said, "prompt"));
    line(
        "nothing of the note:",
        format!(
            "{}, {} tokens for nothing",
            ui::count(totals.nothing, "prompt"),
            ui::number(totals.tokens_for_nothing)
        ),
    );
    for (heading, examples) in [
        (
            "best: found again after the most searches and files",
            proof.best(EXAMPLES),
        ),
        ("worst: the most tokens for nothing", proof.worst(EXAMPLES)),
    ] {
        if !examples.is_empty() {
            text.push_str(&format!("\n{heading}\n"));
        }
        for example in examples {
            text.push_str(&shown(example));
        }
    }
    text.push_str("\nwhat this cannot know\n");
    for limit in prove::LIMITS.lines() {
        text.push_str(&format!("{}\n", ui::wrapped(limit, 2).trim_end()));
    }
    text
}

fn shown(example: &Example) -> String {
    let at = example.at.map_or_else(String::new, |at| {
        format!(", {}", date(at.timestamp_millis()))
    });
    let short: String = example.session.chars().take(8).collect();
    let mut text = format!(
        "  {}\n",
        ui::shorten(&format!("\"{}\"", example.prompt), WIDTH - 2)
    );
    let spent = match example.verdict {
        ProofVerdict::FoundAgain => format!(
            "{} and {}",
            searches(example.searches),
            ui::count(example.files, "file")
        ),
        _ => ui::count(example.tokens, "token"),
    };
    text.push_str(&format!(
        "      session {short} of {}{at} · {spent}\n",
        ui::shorten(&example.project, 40)
    ));
    for note in &example.notes {
        let words = if note.words.is_empty() {
            String::new()
        } else {
            format!(": {}", note.words.join(", "))
        };
        let shown = if note.text.is_empty() {
            "named"
        } else {
            "note"
        };
        let line = format!("{shown} \"{}\"{words}", note.title);
        text.push_str(&format!("      {}\n", ui::shorten(&line, WIDTH - 6)));
    }
    text
}
