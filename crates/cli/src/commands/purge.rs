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
    purge::{self, FoundPlace, PurgeOutcome, PurgePlan},
};
use anamnesis_note::purge_pattern::{self, PurgePattern};
use anamnesis_text::clean::one_line;

use crate::{
    input::read_input,
    ui::{self, Outcome, Ui},
};

/// How a failure begins, and the failure if the person says no.
const UNCHANGED: [&str; 2] = ["nothing was purged: ", "nothing was purged"];

/// Remove notes or a text everywhere, including git history
///
/// With ids: removes these notes permanently; a tombstone stays, so that nothing brings them back.
/// With `--find`: asks for a text, such as a password, and masks it in notes, records, logs and git
/// history. Also rewrites the remote's history; your other machines adopt it with their next sync.
/// There is no undo.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// A note's id: six or more characters of its start or end; repeatable
    #[arg(required_unless_present = "find")]
    ids: Vec<String>,
    /// Ask for a text, or read it from stdin, and mask it everywhere
    #[arg(long)]
    find: bool,
    /// Do not ask for confirmation
    #[arg(long)]
    yes: bool,
    /// Print JSON; needs --yes
    #[arg(long, requires = "yes")]
    json: bool,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    ui.saying(args.json, |ui| purge_as_asked(args, context, ui))
}

fn purge_as_asked(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    purge::begin(context)?;
    if args.find && !args.ids.is_empty() {
        let why = "nothing was searched for: --find takes no text as an argument, because the shell \
                   keeps what you type";
        return Err(Error::usage(why).hint("anamnesis purge --find   (asks for the text)"));
    }
    if args.find {
        let text = read_text(ui)?;
        let needle = PurgePattern::new(&text).map_err(|error| {
            let hint = "anamnesis purge --find   (type another part of the text)";
            Error::usage(error.to_string()).hint(hint)
        })?;
        return purge_text(&purge::find_text(context, &needle)?, args.yes, context, ui);
    }
    let found = purge::find_notes(context, &args.ids)?;
    ui.print(&places_text(&found.listed()));
    let ids: Vec<&str> = found.notes.iter().map(|note| note.short.as_str()).collect();
    let again = format!("anamnesis purge {} --yes", ids.join(" "));
    let those = ui::one_or_many(ids.len(), "it", "them");
    let remote = remote_too(context);
    let question = format!("Take {those} out of git history too{remote}, for good?");
    ui.confirm(&question, args.yes, &again, UNCHANGED)?;
    let done = {
        let _progress = ui::Progress::new("rewriting the history …");
        found.purge(&again)?
    };
    let state = if done.remaining.is_empty() && done.other_notes.is_empty() {
        "the text is in no file and no commit here".to_owned()
    } else {
        let places = done.remaining.len() + done.other_notes.len();
        format!("{} here still have its text", ui::count(places, "place"))
    };
    ui.print(&format!(
        "purged #{}: a tombstone stays, {state}\n{}{}",
        ids.join(" #"),
        remaining_text(&done),
        outcome_text(&done, &found.steps(&done))
    ));
    Ok(exit_code(&done))
}

/// The places of ours that still contain the text, one line each.
fn remaining_text(done: &PurgeOutcome) -> String {
    let names = done.remaining.iter();
    names
        .map(|name| format!("left     {}\n", one_line(name)))
        .collect()
}

fn exit_code(done: &PurgeOutcome) -> ExitCode {
    if done.remaining.is_empty() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Masks a text everywhere.
fn purge_text(found: &PurgePlan<'_>, yes: bool, context: &Context, ui: &Ui) -> Outcome {
    let places = found.count();
    if places == 0 {
        let text = "nothing was purged: the text is in no file, record or commit of the store";
        let left = places_text(&found.left());
        return Err(Error::failed(format!("{text}\n{left}").trim_end()));
    }
    ui.print(&places_text(&found.listed()));
    let remote = remote_too(context);
    let question = format!("Mask it in all of ours and in git history{remote}?");
    let again = "… | anamnesis purge --find --yes";
    ui.confirm(&question, yes, again, UNCHANGED)?;
    let done = {
        let _progress = ui::Progress::new("masking it everywhere …");
        found.purge("anamnesis purge --find")?
    };
    let mut text = format!(
        "done; {} masked, {} left here.\n",
        ui::count(places, "place"),
        done.remaining.len()
    );
    text.push_str(&remaining_text(&done));
    text.push_str(&outcome_text(&done, &found.steps(&done)));
    ui.print(&text);
    Ok(exit_code(&done))
}

/// The places, one line each.
fn places_text(places: &[FoundPlace]) -> String {
    let lines = places.iter().map(|place| {
        let text = place.text.replace('\n', "\n         ");
        format!("{:<8} {text}\n", place.what)
    });
    lines.collect()
}

/// Returns what else was deleted, and the steps that the person has to do now.
fn outcome_text(done: &PurgeOutcome, steps: &[String]) -> String {
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

fn remote_too(context: &Context) -> &'static str {
    if context.config.remote.is_some() {
        ", and rewrite the remote"
    } else {
        ""
    }
}

/// Reads the text from the terminal without echo, or all of stdin.
fn read_text(ui: &Ui) -> Result<String, Error> {
    if !ui::stdin_is_terminal() {
        let bytes = read_input(purge_pattern::MAX_LENGTH)?;
        return String::from_utf8(bytes).map_err(|_| Error::usage("the text is not UTF-8"));
    }
    ui.note("Text to remove (not shown, not stored): ");
    let mut text = String::new();
    let most = u64::try_from(purge_pattern::MAX_LENGTH).unwrap_or(u64::MAX);
    let read = {
        let _hidden = hide_input().map_err(Error::prefixed("cannot read the text"))?;
        io::stdin().lock().take(most).read_line(&mut text)
    };
    ui.note("\n");
    read.map_err(Error::prefixed("cannot read the text"))?;
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
