//! `search`: finds notes by words, and by meaning if there is an embedding model.

use anamnesis_app::{
    Error,
    context::Context,
    embedding::QueryEncoder,
    history::{self, Past, PastMoment},
    ops::{
        list::NoteFilter,
        note::{FoundNote, FoundNotes, Note as Listed},
        search::commits,
    },
};
use anamnesis_recall::{
    branch::branch_remark,
    correction,
    search::{self, Hit, MAX_HITS},
};
use anamnesis_store::notes::Stored;
use anamnesis_text::clean::one_line;

use crate::{
    input::words_or_stdin,
    ui::{self, Outcome, Ui},
};

/// A snippet is below the title, which comes after the id and the kind.
const SNIPPET_INDENT: usize = "7Q4KZ9  preference  ".len();

/// Find notes by words
///
/// A note matches if it contains any of the words; best matches first. With an embedding model
/// (anamnesis config model), notes of similar meaning match as well. Superseded and forgotten notes are
/// left out. Pending and muted notes are shown with their state.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The words to search for
    #[arg(required_unless_present = "stdin")]
    words: Vec<String>,
    /// Read the words from stdin
    #[arg(long, conflicts_with = "words")]
    stdin: bool,
    /// The maximum number of notes
    #[arg(short = 'n', long, value_name = "N", alias = "k", short_alias = 'k', default_value_t = 8, value_parser = ui::at_least_one)]
    limit: usize,
    /// Only notes of this project (`global` for all projects)
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Only notes of the project of this folder
    #[arg(long, conflicts_with = "project")]
    here: bool,
    /// Notes of every project, which is the default
    #[arg(long, conflicts_with_all = ["project", "here"])]
    everywhere: bool,
    #[command(flatten)]
    filter: NoteFilter,
    /// Search the notes as of the end of that day (2026-01-31), or of that time
    #[arg(long, value_name = "DATE")]
    at: Option<String>,
    /// Print JSON, with bodies
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(mut args: Args, context: &Context, ui: &Ui) -> Outcome {
    let query = words_or_stdin(&args.words, args.stdin)?;
    if query.trim().is_empty() {
        let error = Error::usage("no words to search for were typed");
        return Err(error.hint("anamnesis search WORDS"));
    }
    let past = args.at.as_ref();
    let past = past.map(|date| Past::open(context)?.at(date));
    let past = past.transpose()?;
    let index = match &past {
        Some(past) => past.index()?,
        None => context.index_to_search()?,
    };
    let project = if args.here {
        Some(".".to_owned())
    } else {
        args.project
    };
    args.filter.project.clone_from(&project);
    let filter = args.filter.of_index(context)?;
    let vector = QueryEncoder::default().vector(context, &index, &query);
    let whole = hyphened(&query);
    let limit = args.limit.max(if whole.is_empty() { 0 } else { MAX_HITS });
    let mut hits = search::search_with_meaning(&index, &query, vector.as_deref(), &filter, limit)?;
    let has_whole = |hit: &Hit| {
        let body = stored(hit, past.as_ref(), context).map(|stored| stored.note().body);
        let text = format!("{}\n{}", hit.entry.title, body.unwrap_or_default()).to_lowercase();
        whole.iter().all(|word| text.contains(word))
    };
    if !whole.is_empty() && hits.iter().any(has_whole) {
        hits.retain(has_whole);
    }
    hits.truncate(args.limit);
    let commits = match past {
        None => commits(context, project.as_deref(), &filter, &query),
        Some(_) => Vec::new(),
    };
    if args.json {
        let notes = hits.into_iter();
        return ui.json(FoundNotes {
            commits,
            notes: notes
                .map(|hit| found(hit, past.as_ref(), context))
                .collect(),
            capped: args.limit > MAX_HITS,
            at: past.as_ref().map(|past| history::iso(past.time)),
        });
    }
    if hits.is_empty() && commits.is_empty() {
        let at = |past: &PastMoment<'_>| ("had", format!(" at {}", history::shown_time(past.time)));
        let (has, then) = past.as_ref().map_or(("has", String::new()), at);
        return ui.answer(&format!("no note {has} any of these words{then}\n"));
    }
    let now = context.environment.now;
    let mut text = String::new();
    for hit in &hits {
        text.push_str(&ui::listed(&index, &hit.entry, now));
        let note = stored(hit, past.as_ref(), context).map(|stored| stored.note());
        let body = context.printable(note.as_ref().map_or("", |note| &note.body));
        // A note of one sentence has it as its title, too.
        if let Some(snippet) = ui::snippet(&body, &query, ui::width() - SNIPPET_INDENT)
            && snippet != one_line(&hit.entry.title)
        {
            text.push_str(&format!("{:SNIPPET_INDENT$}{snippet}\n", ""));
        }
        let of_hit = |id| Context::short(&index, id);
        let branch = note.map(|note| branch_remark(&index, &note)).transpose()?;
        let corrections = correction::remarks_on(&index, hit.entry.id(), now, of_hit)?;
        for remark in corrections.into_iter().chain(branch.flatten()) {
            text.push_str(&format!("  {}\n", one_line(&remark)));
        }
    }
    text.push_str(&ui::commits(&commits));
    text.push_str(&next_step(args.at.as_deref(), hits.is_empty()));
    ui.page(&text, &query)
}

/// What shows a result.
fn next_step(at: Option<&str>, is_of_commits: bool) -> String {
    match at {
        _ if is_of_commits => "→ git show ID\n".to_owned(),
        Some(date) => format!("→ anamnesis show ID --at \"{}\"\n", one_line(date)),
        None => "→ anamnesis show ID · anamnesis forget ID\n".to_owned(),
    }
}

/// Returns the words of a query with a hyphen in them, as names have it: `go-git` is not `go` and `git`.
fn hyphened(query: &str) -> Vec<String> {
    let is_inner = |word: &&str| word.trim_matches('-').contains('-');
    let words = query.split_whitespace().filter(is_inner);
    words.map(str::to_lowercase).collect()
}

fn stored(hit: &Hit, past: Option<&PastMoment<'_>>, context: &Context) -> Option<Stored> {
    match past {
        Some(past) => past.stored(hit.entry.id()).ok().flatten(),
        None => context.notes.read(hit.entry.path).ok(),
    }
}

fn found(hit: Hit, past: Option<&PastMoment<'_>>, context: &Context) -> FoundNote {
    let stored = stored(&hit, past, context);
    let mut note = Listed::new(context, hit.entry);
    if let Some(stored) = stored {
        let mut text = stored.note();
        text.body = context.printable(&text.body);
        note = note.with_text(&text);
    }
    FoundNote {
        note,
        score: hit.score,
        matched: hit.similarity.map(|_| hit.matched),
        similarity: hit.similarity,
    }
}
