//! `purge`: removes a note or a text from the store, the git history and the remote.
//!
//! The text is read from the terminal or from stdin, never from an argument. Arguments are visible
//! in the shell history and in the process list.

use std::{
    io::{self, BufRead, Read},
    process::ExitCode,
};

use anamnesis_app::{
    Error,
    context::Context,
    purge::{self, PlannedNote, PurgeOutcome, PurgePlan},
};
use anamnesis_note::purge_pattern::{self, PurgePattern};
use anamnesis_store::journal::Mentions;
use anamnesis_text::clean::one_line;
use chrono::{DateTime, Utc};

use crate::{
    input::read_input,
    ui::{self, Outcome, Ui},
};

/// How a failure begins, and the failure if the person says no.
const UNCHANGED: [&str; 2] = ["0 places: ", "0 places: nothing was changed"];

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
    purge::begin(context)?;
    if args.find {
        let text = read_text(ui)?;
        let needle = PurgePattern::new(&text).map_err(|error| Error::usage(error.to_string()))?;
        return purge_text(&purge::find_text(context, &needle)?, args.yes, context, ui);
    }
    let found = purge::find_notes(context, &args.ids)?;
    ui.print(&found_text(&found, context));
    let ids: Vec<&str> = found.notes.iter().map(|note| note.short.as_str()).collect();
    let again = format!("anamnesis purge {} --yes", ids.join(" "));
    let those = if ids.len() == 1 { "it" } else { "them" };
    let remote = remote_too(context);
    let question = format!("Take {those} out of git history too{remote}, for good?");
    ui.confirm(&question, args.yes, &again, UNCHANGED)?;
    let done = found.purge(&again)?;
    ui.print(&format!(
        "purged #{}: a tombstone stays, the text is in no file and no commit here\n{}",
        ids.join(" #"),
        steps_text(&done, Vec::new(), context)
    ));
    Ok(ExitCode::SUCCESS)
}

/// Masks a text everywhere.
fn purge_text(found: &PurgePlan<'_>, yes: bool, context: &Context, ui: &Ui) -> Outcome {
    let places = found.count();
    if places == 0 {
        let text = "0 places: the text is nowhere in what is ours, nor in git history";
        let left = left_text(found);
        return Err(Error::failed(format!("{text}\n{left}").trim_end()));
    }
    ui.print(&found_text(found, context));
    let remote = remote_too(context);
    let question = format!("Mask it in all of ours and in git history{remote}?");
    let again = "… | anamnesis purge --find --yes";
    ui.confirm(&question, yes, again, UNCHANGED)?;
    let done = found.purge("anamnesis purge --find")?;
    let mut text = format!(
        "done; {} masked, {} left here.\n",
        ui::count(places, "place"),
        done.remaining.len()
    );
    for name in &done.remaining {
        text.push_str(&format!("left     {}\n", one_line(name)));
    }
    text.push_str(&steps_text(
        &done,
        secret_steps(found, &done, context),
        context,
    ));
    ui.print(&text);
    Ok(if done.remaining.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

/// The places that were found, one line each.
fn found_text(found: &PurgePlan<'_>, context: &Context) -> String {
    let notes = found
        .notes
        .iter()
        .map(|note| note_line(note, context.environment.now));
    let mut text: String = notes.collect();
    for name in found.places.files.iter().chain(&found.databases) {
        text.push_str(&format!("file     {}\n", one_line(name)));
    }
    for name in &found.standing.others {
        text.push_str(&format!("history  {}\n", one_line(name)));
    }
    if found.standing.messages > 0 {
        let commits = ui::count(found.standing.messages, "commit");
        text.push_str(&format!("history  what {commits} says of itself\n"));
    }
    if found.records.count() > 0 {
        text.push_str(&records_line(&found.records));
    }
    for path in &found.transcripts {
        let path = one_line(&context.shown(path));
        text.push_str(&format!(
            "Claude   {path}\n         its transcript: not ours, left alone\n"
        ));
    }
    text + &left_text(found)
}

/// What the person has to do about a secret.
fn secret_steps(found: &PurgePlan<'_>, done: &PurgeOutcome, context: &Context) -> Vec<String> {
    let mut steps = vec![match (done.pushed_at, &done.remote) {
        (Some(since), Some(place)) => {
            let lasted = lasted(since, context.environment.now);
            format!("change the secret: it was on {place} for {lasted}")
        }
        _ => "if it is a secret, change it: it was on this disk".to_owned(),
    }];
    if !done.other_machines.is_empty() {
        steps.push(format!(
            "on {} too: anamnesis purge --find   (its records are its own)",
            one_line(&done.other_machines.join(", "))
        ));
    }
    if !found.transcripts.is_empty() {
        steps.push("remove Claude's transcript, or let it expire".to_owned());
    }
    steps
}

/// The steps that the person has to do now.
fn steps_text(done: &PurgeOutcome, mut steps: Vec<String>, context: &Context) -> String {
    for folder in &done.set_aside {
        steps.push(format!(
            "a damaged repository that was set aside may hold it: rm -rf {}",
            one_line(&context.shown(folder))
        ));
    }
    if let Some(reason) = &done.purged.remote_left {
        steps.push(format!(
            "on {}, drop what is no longer named: git gc --prune=now\n        ({})",
            done.remote.as_deref().unwrap_or_default(),
            one_line(reason)
        ));
    }
    let mut text = String::new();
    if !done.purged.dropped.is_empty() {
        text.push_str(&format!(
            "deleted, for it named the old history: {}\n",
            one_line(&done.purged.dropped.join(", "))
        ));
    }
    for (number, step) in steps.iter().enumerate() {
        let head = if number == 0 { "Now:" } else { "    " };
        text.push_str(&format!("{head} {}. {step}\n", number + 1));
    }
    text
}

fn note_line(note: &PlannedNote, now: DateTime<Utc>) -> String {
    let history = match &note.written {
        None => "in no commit".to_owned(),
        Some(written) => {
            let commits = ui::count(written.commits, "commit");
            match written.pushed_at {
                Some(at) => format!("{commits}, pushed {}", ui::ago(at, now)),
                None => format!("{commits}, not pushed"),
            }
        }
    };
    let title = match note.title.as_str() {
        "" => String::new(),
        title => format!(" \"{title}\""),
    };
    format!(
        "note     #{} {}{title} · {history}\n",
        note.short, note.kind
    )
}

fn records_line(mentions: &Mentions) -> String {
    let (prompts, events) = (mentions.count_in("prompt"), mentions.count_in("tool_event"));
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
fn left_text(found: &PurgePlan<'_>) -> String {
    let lines = found.places.left.iter().map(|name| {
        let whose = if name == "config.json" {
            "your settings: change them yourself, with anamnesis config"
        } else {
            "not ours, left alone"
        };
        format!("left     {}   {whose}\n", one_line(name))
    });
    lines.collect()
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

/// Reads the text from the terminal without echo, or all of stdin.
fn read_text(ui: &Ui) -> Result<String, Error> {
    let cannot = |error: io::Error| Error::failed(format!("cannot read the text: {error}"));
    if !ui::stdin_is_terminal() {
        let bytes = read_input(purge_pattern::MAX_LENGTH)?;
        return String::from_utf8(bytes).map_err(|_| Error::usage("the text is not UTF-8"));
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
