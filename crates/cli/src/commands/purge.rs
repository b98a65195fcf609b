//! `purge`: removes a note or a text from the store, the git history and the remote.
//!
//! The text is read from the terminal or from stdin, never from an argument. Arguments are visible
//! in the shell history and in the process list.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{self, BufRead, Read},
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anamnesis_app::{context::Context, evaluation_set, failure::Failure, sync};
use anamnesis_note::{
    id::NoteId,
    note::Scope,
    purge_pattern::{self, PurgePattern},
    usage_log::{PortableId, Receipt},
};
use anamnesis_store::{
    fs::file,
    index::{Entry, Index},
    journal::{Journal, Mentions},
    purge::{self as files, Places},
    session_note,
    usage_log::Receipts,
};
use anamnesis_sync::{
    Answer, Error, Repository,
    purge::{Purge, Purged, Record, Standing, Written},
    set_aside_repositories,
};
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use crate::{
    input::read_input,
    ui::{self, Outcome, Ui},
};

/// Timeout for other processes.
const PATIENCE: Duration = Duration::from_secs(30);

/// The size limit for a file that is searched, in bytes.
const MAX_LENGTH: usize = 256 * 1024 * 1024;

/// Remove notes or a text everywhere, including git history
///
/// With ids: removes these notes permanently; a tombstone stays, so that nothing brings them back.
/// With `--find`: asks for a text, such as a password, and masks it in notes, records, logs and git
/// history. Also rewrites the remote's history; your other machines adopt it with their next sync.
/// There is no undo.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A note's id: six or more characters of its start or end; repeatable
    #[arg(required_unless_present = "find", conflicts_with = "find")]
    ids: Vec<String>,
    /// Ask for a text, or read it from stdin, and mask it everywhere
    #[arg(long)]
    find: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    if context.environment.is_agent {
        return Err(
            Failure::failed("0 places: only a person purges, since that cannot be undone")
                .hint("anamnesis forget ID   (one note, which can be brought back)"),
        );
    }
    let unfinished = sync::backend(context, None, None, Answer::None, PATIENCE).finish_purge();
    unfinished.map_err(|error| {
        Failure::failed(format!(
            "0 places: an earlier purge is not finished: {error}"
        ))
    })?;
    if args.find {
        let text = read_text(ui)?;
        let needle = PurgePattern::new(&text).map_err(|error| Failure::usage(error.to_string()))?;
        return find(needle, args.yes, context, ui);
    }
    let index = context.index()?;
    let mut entries = BTreeMap::new();
    for typed in &args.ids {
        let entry = Context::resolve(&index, typed).map_err(|failure| {
            Failure::failed(format!(
                "0 places: {}",
                failure.text().trim_start_matches("anamnesis: ").trim_end()
            ))
        })?;
        entries.insert(entry.id(), entry);
    }
    purge_notes(&entries, index, args.yes, context, ui)
}

/// Purges whole notes.
fn purge_notes(
    entries: &BTreeMap<NoteId, Entry>,
    index: Index,
    yes: bool,
    context: &Context,
    ui: &Ui,
) -> Outcome {
    let purge = Purge {
        ids: entries.keys().copied().collect(),
        needle: None,
    };
    let standing = standing(context, &purge)?;
    let mut text = String::new();
    let mut names = Vec::new();
    for (id, entry) in entries {
        let short = Context::short(&index, *id);
        let title = one_line(&entry.title);
        text.push_str(&note_line(
            &short,
            entry.shown_kind(),
            &title,
            standing.notes.get(id),
            context,
        ));
        names.push(format!("#{short}"));
    }
    drop(index);
    ui.print(&text);
    let again = format!("anamnesis purge {} --yes", names.join(" ").replace('#', ""));
    confirm(
        &format!(
            "Take {} out of git history too{}, for good?",
            those(entries.len()),
            remote_too(context)
        ),
        &again,
        yes,
        ui,
    )?;
    if let Some(journal) = context.journal() {
        let now = context.environment.now;
        for entry in entries.values() {
            if let Ok(stored) = context.notes.read(entry.path) {
                journal.forgot(entry.id(), &stored.file.note().body, now)?;
            }
        }
    }
    let lock = context.notes.lock()?;
    let now = context.environment.now;
    evaluation_set::forget_notes(&context.home, |id| purge.ids.contains(&id))?;
    files::bury(&context.home, &lock, &context.notes, &purge.ids, now)
        .map_err(|error| refused(&error))?;
    drop(lock);
    let purged = rewrite(context, &purge, &again);
    // Derived files are rebuilt even if the history could not be rewritten.
    Index::rebuild(&context.home, &context.notes, PATIENCE)?;
    let purged = purged?;
    let mut out = format!(
        "purged {}: a tombstone stays, the text is in no file and no commit here\n",
        names.join(" ")
    );
    out.push_str(&remote_steps(context, &purged, None)?);
    ui.print(&out);
    Ok(ExitCode::SUCCESS)
}

/// Masks a text everywhere.
fn find(needle: PurgePattern, yes: bool, context: &Context, ui: &Ui) -> Outcome {
    let places = files::find(&context.home, &needle).map_err(|error| refused(&error))?;
    let journal = context.journal();
    let mentions = match &journal {
        Some(journal) => journal.mentions(&needle)?,
        None => Mentions::default(),
    };
    let purge = Purge {
        needle: Some(needle),
        ..Purge::default()
    };
    let Some(needle) = &purge.needle else {
        return Ok(ExitCode::SUCCESS);
    };
    let standing = standing(context, &purge)?;
    let notes: BTreeSet<NoteId> = places
        .notes
        .iter()
        .map(|path| path.id)
        .chain(standing.notes.keys().copied())
        .collect();
    let elsewhere = standing.others.len() + usize::from(standing.messages > 0);
    let mut found = notes.len() + places.files.len() + mentions.count() + elsewhere;
    // An earlier run that was killed may have changed rows but left their bytes in the file.
    let in_bytes = match found {
        0 => databases_with(context, needle),
        _ => Vec::new(),
    };
    found += in_bytes.len();
    let left = left_text(&places);
    if found == 0 {
        let text = "0 places: the text is nowhere in what is ours, nor in git history";
        return Err(Failure::failed(format!("{text}\n{left}").trim_end()));
    }
    let index = context.index()?;
    let mut text = String::new();
    for id in &notes {
        let entry = index.get(*id)?;
        let title = entry.as_ref().map_or_else(String::new, |entry| {
            let title = needle.mask_text(&entry.title);
            one_line(&title.unwrap_or_else(|| entry.title.clone()))
        });
        let kind = entry.as_ref().map_or("gone", Entry::shown_kind);
        let short = Context::short(&index, *id);
        let written = standing.notes.get(id);
        text.push_str(&note_line(&short, kind, &title, written, context));
    }
    drop(index);
    for name in places.files.iter().chain(&in_bytes) {
        text.push_str(&format!("file     {}\n", one_line(name)));
    }
    for name in &standing.others {
        text.push_str(&format!("history  {}\n", one_line(name)));
    }
    if standing.messages > 0 {
        let commits = ui::count(standing.messages, "commit");
        text.push_str(&format!("history  what {commits} says of itself\n"));
    }
    if mentions.count() > 0 {
        text.push_str(&records_line(&mentions));
    }
    let transcripts = transcripts(context, journal.as_ref(), &mentions, &notes, needle);
    for path in &transcripts {
        let path = ui::home_path(path, context.environment.user_home.as_deref());
        text.push_str(&format!(
            "Claude   {}\n         its transcript: not ours, left alone\n",
            one_line(&path)
        ));
    }
    text.push_str(&left);
    ui.print(&text);
    confirm(
        &format!(
            "Mask it in all of ours and in git history{}?",
            remote_too(context)
        ),
        "… | anamnesis purge --find --yes",
        yes,
        ui,
    )?;
    if let Some(journal) = &journal {
        journal.purged(needle)?;
        journal.mask(needle)?;
    }
    let own = own_notes(context, journal.as_ref(), &places);
    let lock = context.notes.lock()?;
    files::mask(&context.home, &lock, &context.notes, needle).map_err(|error| refused(&error))?;
    drop(lock);
    if let Some(journal) = &journal {
        for (session, path) in own {
            if let Ok(stored) = context.notes.read(path) {
                session_note::keep_own(journal, &session, stored.file.note())?;
            }
        }
    }
    let purged = rewrite(context, &purge, "anamnesis purge --find");
    // Derived files are rebuilt even if the history could not be rewritten.
    Index::rebuild(&context.home, &context.notes, PATIENCE)?;
    let purged = purged?;
    let remaining = remaining(context, journal.as_ref(), &purge)?;
    let mut out = format!(
        "done; {} masked, {} left here.\n",
        ui::count(found, "place"),
        remaining.len()
    );
    for name in &remaining {
        out.push_str(&format!("left     {}\n", one_line(name)));
    }
    out.push_str(&remote_steps(
        context,
        &purged,
        Some(&Leak {
            since: standing
                .notes
                .values()
                .filter_map(|note| note.pushed_at)
                .min(),
            has_transcript: !transcripts.is_empty(),
        }),
    )?);
    ui.print(&out);
    Ok(if remaining.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// Where a secret text was found.
struct Leak {
    /// When it was pushed to the remote, if it was.
    since: Option<DateTime<Utc>>,
    has_transcript: bool,
}

/// The steps that the person has to do now.
fn remote_steps(
    context: &Context,
    purged: &Purged,
    leak: Option<&Leak>,
) -> Result<String, Failure> {
    let remote = sync::remote(context)?;
    let mut steps = Vec::new();
    if let Some(leak) = leak {
        let now = context.environment.now;
        let place = remote.as_ref().map(|remote| one_line(remote.place()));
        steps.push(match (leak.since, place) {
            (Some(since), Some(place)) => {
                format!(
                    "change the secret: it was on {place} for {}",
                    lasted(since, now)
                )
            }
            _ => "if it is a secret, change it: it was on this disk".to_owned(),
        });
        let machines = sync::other_machines(context);
        if !machines.is_empty() {
            steps.push(format!(
                "on {} too: anamnesis purge --find   (its records are its own)",
                one_line(&machines.join(", "))
            ));
        }
        if leak.has_transcript {
            steps.push("remove Claude's transcript, or let it expire".to_owned());
        }
    }
    for folder in set_aside_repositories(&context.home) {
        let path = ui::home_path(&folder, context.environment.user_home.as_deref());
        steps.push(format!(
            "a damaged repository that was set aside may hold it: rm -rf {}",
            one_line(&path)
        ));
    }
    if let Some(reason) = &purged.remote_left {
        let place = remote
            .as_ref()
            .map_or_else(String::new, |remote| one_line(remote.place()));
        steps.push(format!(
            "on {place}, drop what is no longer named: git gc --prune=now\n        ({})",
            one_line(reason)
        ));
    }
    let mut text = String::new();
    if !purged.dropped.is_empty() {
        text.push_str(&format!(
            "deleted, for it named the old history: {}\n",
            one_line(&purged.dropped.join(", "))
        ));
    }
    for (number, step) in steps.iter().enumerate() {
        let head = if number == 0 { "Now:" } else { "    " };
        text.push_str(&format!("{head} {}. {step}\n", number + 1));
    }
    Ok(text)
}

/// Rewrites notes, history and remote, and writes the receipt for other machines.
fn rewrite(context: &Context, purge: &Purge, again: &str) -> Result<Purged, Failure> {
    let remote = sync::remote(context)?;
    let machine = context.machine_id();
    let receipts = Receipts::new(context.home.clone());
    let journal = Journal::open(&context.home, PATIENCE)?;
    let ids = |ids: &BTreeSet<NoteId>| {
        // A portable history may contain a note that is machine-local now.
        let ids = ids
            .iter()
            .filter_map(|id| PortableId::new(*id, Scope::Portable));
        ids.collect()
    };
    let mut write_record = |what: &Record| {
        let mut receipt = Receipt::new(context.environment.now);
        receipt.gone = ids(&what.gone);
        receipt.masked = ids(&what.masked);
        let written = receipts.append(&journal, &machine, &receipt, PATIENCE);
        written.map_err(|error| error.to_string())
    };
    let backend = sync::backend(context, Some(&journal), remote, Answer::None, PATIENCE);
    backend.purge(purge, &mut write_record).map_err(|error| match error {
        Error::Held => Failure::failed(error.to_string()).hint(format!(
            "anamnesis sync   (says what it waits for); then: {again}"
        )),
        Error::Network(ref network) => Failure::failed(format!(
            "files and records here are purged, git history and the remote are as before: {error}"
        ))
        .hint(match network.advice() {
            Some(advice) => format!("{advice}\n  then: {again}"),
            None => format!("when that is mended: {again}"),
        }),
        error => Failure::failed(format!("not all is purged: {error}")).hint(format!("again: {again}")),
    })
}

fn standing(context: &Context, purge: &Purge) -> Result<Standing, Failure> {
    let failed = |error: Error| Failure::failed(error.to_string()).hint("anamnesis doctor");
    let machine = context.machine_id();
    let repository = Repository::open(&context.home, &machine, context.environment.now);
    match repository.map_err(failed)? {
        Some(repository) => repository.standing(purge).map_err(failed),
        None => Ok(Standing::default()),
    }
}

/// The session notes whose text capture wrote.
fn own_notes(
    context: &Context,
    journal: Option<&Journal>,
    places: &Places,
) -> Vec<(String, anamnesis_store::notes::NotePath)> {
    let Some(journal) = journal else {
        return Vec::new();
    };
    let own = places.notes.iter().filter_map(|path| {
        let stored = context.notes.read(*path).ok()?;
        let note = stored.file.note();
        let session = note.session.clone()?;
        session_note::is_own(journal, &session, note).then_some((session, *path))
    });
    own.collect()
}

/// Finds the places that still contain the text.
fn remaining(
    context: &Context,
    journal: Option<&Journal>,
    purge: &Purge,
) -> Result<Vec<String>, Failure> {
    let Some(needle) = &purge.needle else {
        return Ok(Vec::new());
    };
    let places = files::find(&context.home, needle).map_err(|error| refused(&error))?;
    let mut left: Vec<String> = places.notes.iter().map(ToString::to_string).collect();
    left.extend(places.files);
    left.extend(places.left);
    if journal.is_some_and(|journal| {
        journal
            .mentions(needle)
            .is_ok_and(|found| found.count() > 0)
    }) {
        left.push("journal.db".to_owned());
    }
    left.extend(databases_with(context, needle));
    if !standing(context, purge)?.is_empty() {
        left.push("memory/.git".to_owned());
    }
    left.sort();
    left.dedup();
    Ok(left)
}

/// The databases whose files contain the text, also in free pages.
fn databases_with(context: &Context, needle: &PurgePattern) -> Vec<String> {
    let databases = [context.home.journal(), context.home.index()];
    let files = databases.iter().flat_map(|path| {
        ["", "-wal"].map(|suffix| PathBuf::from(format!("{}{suffix}", path.display())))
    });
    let holds = |path: &PathBuf| {
        let bytes = file::read_head(path, MAX_LENGTH);
        bytes.is_ok_and(|(bytes, ..)| needle.is_in(&bytes))
    };
    files
        .filter(holds)
        .map(|path| context.home.relative(&path))
        .collect()
}

/// The transcripts that contain the text, among sessions whose records or notes do.
fn transcripts(
    context: &Context,
    journal: Option<&Journal>,
    mentions: &Mentions,
    notes: &BTreeSet<NoteId>,
    needle: &PurgePattern,
) -> BTreeSet<PathBuf> {
    let of_notes = notes.iter().filter_map(|id| {
        let path = context.notes.find(*id)?;
        context.notes.read(path).ok()?.file.into_note().session
    });
    let sessions: BTreeSet<String> = of_notes.chain(mentions.sessions.iter().cloned()).collect();
    let paths = sessions.iter().filter_map(|session| {
        let session = journal?.session(session).ok().flatten()?;
        session.transcript.map(PathBuf::from)
    });
    let holds = |path: &PathBuf| {
        file::read_head(Path::new(path), MAX_LENGTH).is_ok_and(|(bytes, ..)| needle.is_in(&bytes))
    };
    paths.filter(holds).collect()
}

fn note_line(
    short: &str,
    kind: &str,
    title: &str,
    written: Option<&Written>,
    context: &Context,
) -> String {
    let history = match written {
        None => "in no commit".to_owned(),
        Some(written) => {
            let commits = ui::count(written.commits, "commit");
            match written.pushed_at {
                Some(at) => format!("{commits}, pushed {}", ui::ago(at, context.environment.now)),
                None => format!("{commits}, not pushed"),
            }
        }
    };
    let title = if title.is_empty() {
        String::new()
    } else {
        format!(" \"{title}\"")
    };
    format!("note     #{short} {kind}{title} · {history}\n")
}

fn records_line(mentions: &Mentions) -> String {
    let (prompts, events) = (mentions.of("prompt"), mentions.of("tool_event"));
    let others = mentions.count() - prompts - events;
    let named = [
        (prompts, "prompt"),
        (events, "tool event"),
        (others, "other record"),
    ];
    let named: Vec<String> = named
        .into_iter()
        .filter(|(amount, _)| *amount > 0)
        .map(|(amount, thing)| ui::count(amount, thing))
        .collect();
    let sessions = match mentions.sessions.len() {
        0 => String::new(),
        1 => " of one session".to_owned(),
        many => format!(" of {}", ui::count(many, "session")),
    };
    format!("records  {}{sessions}\n", named.join(", "))
}

/// Lists places that contain the text but do not belong to us.
fn left_text(places: &Places) -> String {
    let lines = places.left.iter().map(|name| {
        let whose = if name == "config.json" {
            "your settings: change them yourself, with anamnesis config"
        } else {
            "not ours, left alone"
        };
        format!("left     {}   {whose}\n", one_line(name))
    });
    lines.collect()
}

fn refused(error: &files::Error) -> Failure {
    let failure = Failure::failed(error.to_string());
    match error {
        files::Error::Structural(_) => failure.hint("ask for a longer part of the text"),
        _ => failure.hint("anamnesis doctor"),
    }
}

fn those(amount: usize) -> &'static str {
    if amount == 1 { "it" } else { "them" }
}

fn remote_too(context: &Context) -> &'static str {
    if context.config.remote.is_some() {
        ", and rewrite the remote"
    } else {
        ""
    }
}

/// Formats how long something has existed.
fn lasted(since: DateTime<Utc>, now: DateTime<Utc>) -> String {
    match (now - since).num_minutes() {
        ..1 => "a moment".to_owned(),
        minutes @ 1..60 => format!("{minutes} min"),
        minutes @ 60..2_880 => format!("{} h", minutes / 60),
        minutes => format!("{} d", minutes / 1_440),
    }
}

/// Asks for confirmation. Without a terminal, `--yes` is required.
fn confirm(question: &str, again: &str, yes: bool, ui: &Ui) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    if !ui::stdin_is_terminal() {
        return Err(
            Failure::usage("0 places: nobody can be asked here, and it is for good").hint(again),
        );
    }
    if ui.asks(question) {
        Ok(())
    } else {
        Err(Failure::failed("0 places: nothing was changed"))
    }
}

/// Reads the text from the terminal without echo, or all of stdin.
fn read_text(ui: &Ui) -> Result<String, Failure> {
    let cannot = |error: io::Error| Failure::failed(format!("cannot read the text: {error}"));
    if !ui::stdin_is_terminal() {
        let bytes = read_input(purge_pattern::MAX_LENGTH)?;
        return String::from_utf8(bytes).map_err(|_| Failure::usage("the text is not UTF-8"));
    }
    ui.note("Text to remove (not shown, not stored): ");
    let mut text = String::new();
    let hidden = hide_input().map_err(cannot)?;
    let most = u64::try_from(purge_pattern::MAX_LENGTH).unwrap_or(u64::MAX);
    let read = io::stdin().lock().take(most).read_line(&mut text);
    drop(hidden);
    ui.note("\n");
    read.map_err(cannot)?;
    Ok(text)
}

/// Restores the terminal's echo when it is dropped.
#[cfg(unix)]
struct Hidden(rustix::termios::Termios);

#[cfg(unix)]
impl Drop for Hidden {
    fn drop(&mut self) {
        use rustix::termios::{OptionalActions, tcsetattr};
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.0);
    }
}

/// Turns off the terminal's echo.
#[cfg(unix)]
fn hide_input() -> io::Result<Hidden> {
    use rustix::termios::{LocalModes, OptionalActions, tcgetattr, tcsetattr};
    let before = tcgetattr(io::stdin())?;
    let mut quiet = before.clone();
    quiet.local_modes.remove(LocalModes::ECHO);
    tcsetattr(io::stdin(), OptionalActions::Now, &quiet)?;
    Ok(Hidden(before))
}

/// Without control of the echo, the text must come from a pipe.
#[cfg(not(unix))]
fn hide_input() -> io::Result<()> {
    Err(io::Error::other(
        "this terminal would show it; give it on stdin",
    ))
}
