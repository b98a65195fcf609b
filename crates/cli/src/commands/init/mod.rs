//! `init`: joins this machine to a remote, and does other one-time setup.
//!
//! A single machine needs no setup. Every question has a safe default; without a terminal, no
//! question blocks. Nothing is ever added to Claude Code's settings.

mod dialogue;

use std::{io, process::ExitCode};

use anamnesis_app::{
    Error,
    context::Context,
    doctor,
    environment::Environment,
    error::NEEDS_ATTENTION,
    host_setup, remote,
    setup::{Options, Plan, TIMEOUT, Wanted, save},
    terminal_command::{self, LinkTarget},
};
use anamnesis_store::settings;
use anamnesis_sync::HeldDecision;
use clap::builder::PossibleValuesParser;
use serde_json::Value;

use self::dialogue::{Answers, Talk, Unsaid};
use crate::ui::{self, Outcome, Ui};

/// Connect your machines through your own git repository
///
/// Without options: shows how this machine is set up, and offers to remove the hooks and the server
/// of the Python release. The plugin brings its own hooks and server, so nothing is added to Claude
/// Code's settings.
///
/// A remote belongs to one person: it stores the notes of all projects, including session notes.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    options: Options,
    /// Set the remote without connecting to it
    #[arg(long)]
    no_sync: bool,
    /// Link the command `anamnesis` into ~/.local/bin
    #[arg(long)]
    link: bool,
    /// Answer yes to every question; does not imply `--link`
    #[arg(long)]
    yes: bool,
    /// Show the current state and the planned changes; change nothing
    #[arg(long)]
    print: bool,
    /// Add the hooks of another host to its configuration, after showing the change
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(host_setup::HOSTS))]
    host: Option<String>,
    /// Remove the hooks that `--host` added
    #[arg(long, requires = "host")]
    undo: bool,
    /// Print JSON; no question is asked
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    if !args.json {
        return set_up(args, environment, ui);
    }
    let kept = Ui::keeping();
    let code = set_up(args, environment.clone(), &kept)?;
    let after = Plan::new(&args.options, environment)?;
    ui.done(true, after.state(), &kept.into_text())?;
    Ok(code)
}

fn set_up(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    if !args.print {
        environment.check_person("set up a machine")?;
    }
    if let Some(host) = &args.host {
        return set_up_host(host, args, environment, ui);
    }
    let plan = Plan::new(&args.options, environment)?;
    if args.print {
        return ui.answer(&text(&plan));
    }
    let answers = match (args.yes, can_ask(args)) {
        (true, _) => Answers::Yes,
        (false, true) => Answers::Person,
        (false, false) => Answers::Nobody,
    };
    let undone = carry_out(plan, args, &Talk { ui, answers })?;
    let Some(code) = undone.iter().map(|(_, code)| *code).min() else {
        return ui.answer("init: done\n");
    };
    let names: Vec<&str> = undone.iter().map(|(name, _)| *name).collect();
    ui.print(&format!("init: done, except for {}\n", names.join(", ")));
    Ok(ExitCode::from(code))
}

/// Returns whether a person can be asked: not with `--json`, which prints at the end.
fn can_ask(args: &Args) -> bool {
    !args.json && ui::stdin_is_terminal()
}

/// Shows what would change in a host's files, asks, and changes them.
fn set_up_host(host: &str, args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    let context = Context::new(environment, TIMEOUT)?;
    let changes = host_setup::plan(&context, host, args.undo)?;
    if changes.is_empty() {
        return ui.answer(&format!("init: nothing to change for {host}\n"));
    }
    for change in &changes {
        let path = context.shown(&change.path);
        ui.print(&format!("{} {path}\n", change.action()));
        for line in change.lines() {
            ui.print(&format!("  {line}\n"));
        }
    }
    if args.print {
        return ui.answer("Nothing was changed.\n");
    }
    if !args.yes {
        if !can_ask(args) {
            let error = Error::usage("cannot ask for confirmation (no terminal)");
            return Err(error.hint("add --yes"));
        }
        if !ui.asks("Change these files?") {
            return Err(Error::failed("init: nothing was changed"));
        }
    }
    context.home.create()?;
    host_setup::apply(&context, &changes)?;
    ui.print("init: done\n");
    if host == "codex" && !args.undo {
        ui.print("Codex asks you to trust the hooks when it starts: type /hooks there.\n");
    }
    Ok(ExitCode::SUCCESS)
}

/// The state and the planned changes, one line each.
fn text(plan: &Plan) -> String {
    let context = &plan.context;
    let user_home = context.environment.user_home.as_deref();
    let mut text = head(plan);
    text.push_str(&match &plan.remote {
        Wanted::None => NO_REMOTE.to_owned(),
        Wanted::Set(remote) => format!("remote   {}\n", remote.shown()),
        Wanted::New(remote) => {
            format!("remote   {}: would be reached and joined\n", remote.shown())
        }
        Wanted::Left(shown) => format!("remote   {shown}: would be left\n"),
    });
    text.push_str("hooks    the plugin's own; nothing is added to Claude Code's settings\n");
    for line in plan.python.summary(user_home) {
        text.push_str(&format!("python   the Python release's {line}\n"));
    }
    if let Some(store) = &plan.python_store {
        let store = context.shown(store);
        text.push_str(&format!(
            "python   its store {store}: not used by hooks yet\n"
        ));
    }
    let link = terminal_command::link(&context.environment).unwrap_or_default();
    let link = context.shown(&link);
    text.push_str(&match terminal_command::place(context) {
        LinkTarget::Ours => format!("command  {link}\n"),
        _ if terminal_command::is_found(context) => "command  on your PATH\n".to_owned(),
        LinkTarget::Free => "command  not on your PATH · anamnesis init --link\n".to_owned(),
        LinkTarget::Taken => format!("command  {link} is something else, and is left alone\n"),
    });
    text.push_str(&warnings(plan));
    text.push_str(&format!(
        "Nothing was changed. To set this machine up, type in a terminal:\n  {} init\n",
        terminal_command::typed(context)
    ));
    text
}

/// The lines with the store's path and the machine's name.
fn head(plan: &Plan) -> String {
    format!(
        "store    {}\nmachine  {}\n",
        plan.context.shown(plan.context.home.root()),
        plan.machine.name
    )
}

/// Warnings about the store's place and the machine's name.
fn warnings(plan: &Plan) -> String {
    let context = &plan.context;
    let mut text = String::new();
    // PATH-10: a `git add` in that checkout would add the notes.
    if let Some(checkout) = doctor::enclosing_repository(context.home.root()) {
        text.push_str(&format!(
            "! the store is in the git repository {}\n→ move it out: your notes may be \
             committed there (ANAMNESIS_HOME)\n",
            context.shown(&checkout)
        ));
    }
    if !settings::is_machine_name(&plan.machine.name) {
        text.push_str(
            "! a name should be 1 to 64 letters, digits, `.`, `_` or `-`\n\
             → anamnesis init --machine-id NAME\n",
        );
    }
    if let Some(store) = &plan.other_store {
        text.push_str(&format!(
            "! hooks use {} until ANAMNESIS_HOME names this store and counts in sessions\n\
             → set it where claude is started, then: anamnesis config set trusted_variables \
             ANAMNESIS_HOME\n",
            context.shown(store)
        ));
    }
    if let Some(other) = terminal_command::other(context) {
        text.push_str(&format!("! {}\n", other.first_on_path(context)));
    }
    text
}

/// Carries out the plan. Returns the steps that were refused or failed, each with an exit code.
fn carry_out(
    mut plan: Plan,
    args: &Args,
    talk: &Talk<'_>,
) -> Result<Vec<(&'static str, u8)>, Error> {
    plan.context.home.create()?;
    talk.say(&head(&plan));
    talk.say(&warnings(&plan));
    let mut undone: Vec<_> = settle_remote(&mut plan, args, talk)?.into_iter().collect();
    if !remove_python(&plan, talk)? {
        undone.push(("the Python release, which is still set up", NEEDS_ATTENTION));
    }
    if args.link && !link(&plan, talk)? {
        undone.push(("the command", 1));
    }
    Ok(undone)
}

/// Joins, leaves or syncs, and saves the settings. Returns what was not done, with an exit code.
fn settle_remote(
    plan: &mut Plan,
    args: &Args,
    talk: &Talk<'_>,
) -> Result<Option<(&'static str, u8)>, Error> {
    let mut is_synced = true;
    let machine = plan.machine.is_new.then(|| plan.machine.name.clone());
    if args.options.machine_id.is_some() {
        // The option overrides the configured name.
        plan.context.environment.machine_id = Some(plan.machine.name.clone());
    }
    match &plan.remote {
        Wanted::None => {
            save(&plan.context, machine, None)?;
            talk.say(NO_REMOTE);
        }
        Wanted::Left(shown) => {
            save(&plan.context, machine, Some(Value::Null))?;
            talk.say(&format!(
                "remote   none: notes stay on this machine\n\
                 Undo: anamnesis init --remote {shown}\n"
            ));
        }
        Wanted::Set(remote) => {
            talk.say(&format!("remote   {}\n", remote.shown()));
            save(&plan.context, machine, None)?;
            is_synced = args.no_sync || dialogue::sync(&plan.context, HeldDecision::None, talk);
        }
        Wanted::New(remote) => {
            talk.say(&format!("remote   {}\n", remote.shown()));
            let address = remote.as_str().to_owned();
            let over = plan.context.environment.remote.take();
            plan.context.config.remote = Some(address.clone());
            let agreed = if args.no_sync {
                dialogue::is_private(talk).then_some(HeldDecision::None)
            } else {
                dialogue::meet(&plan.context, talk)?
            };
            let decided = agreed.map(|_| address.into());
            save(&plan.context, machine, decided)?;
            let Some(answer) = agreed else {
                let not = "the remote is not set, nothing was sent and no note changed";
                if talk.answers != Answers::Person {
                    return Err(Error::failed(format!("not joined: {not}"))
                        .hint("anamnesis init --remote URL --yes"));
                }
                talk.say(&format!("  Not joined: {not}.\n"));
                return Ok(Some(("the remote", 1)));
            };
            is_synced = args.no_sync || dialogue::sync(&plan.context, answer, talk);
            talk.say(ONE_PERSON);
            talk.say(if plan.context.config.sync.auto {
                "  Syncs automatically after sessions and at start. Stop: anamnesis init --local-only\n"
            } else {
                "  Syncs when you say so: anamnesis sync (sync.auto is off)\n"
            });
            if let Some(over) = over.filter(|over| over != remote.as_str()) {
                talk.say(&format!(
                    "! ANAMNESIS_GIT_REMOTE is set and overrides it: {}\n",
                    remote::shown(&over)
                ));
            }
        }
    }
    Ok((!is_synced).then_some(("the sync", 1)))
}

/// Offers to remove the Python version from Claude Code's files. Returns whether nothing of it is left.
fn remove_python(plan: &Plan, talk: &Talk<'_>) -> Result<bool, Error> {
    if !plan.python.is_some() {
        return Ok(true);
    }
    let user_home = plan.context.environment.user_home.as_deref();
    let mut text = "The Python release is set up, too: sessions are recorded twice.\n".to_owned();
    for line in plan.python.entries() {
        text.push_str(&format!("  {line}\n"));
    }
    talk.say(&text);
    if let Some(store) = &plan.python_store {
        let of_hooks = plan.other_store.as_deref();
        let of_hooks = of_hooks.unwrap_or(plan.context.home.root());
        let [store, of_hooks] = [store, of_hooks].map(|path| plan.context.shown(path));
        talk.say(&format!(
            "! not removed: only they name the store {store}, and the plugin uses {of_hooks}\n\
             → move {of_hooks} away, make it a link to {store}, then: anamnesis init\n"
        ));
        return Ok(false);
    }
    if !talk.asks("Remove these? A backup is made.", Unsaid::YesWhenAsked) {
        return Ok(false);
    }
    let backups = plan.python.remove(user_home)?;
    let mut text = "✓ removed; sessions that run keep theirs until they end\n".to_owned();
    for backup in backups {
        text.push_str(&format!("  backup: {}\n", plan.context.shown(&backup)));
    }
    talk.say(&text);
    Ok(true)
}

/// Links the command into PATH. Returns whether it is there.
fn link(plan: &Plan, talk: &Talk<'_>) -> Result<bool, Error> {
    let context = &plan.context;
    let Some(link) = terminal_command::link(&context.environment) else {
        return Ok(false);
    };
    let shown = context.shown(&link);
    if matches!(terminal_command::place(context), LinkTarget::Taken) {
        talk.say(&format!("! {shown} is something else, and is left alone\n"));
        return Ok(false);
    }
    let installed = terminal_command::install(context, context.journal().as_ref());
    installed.map_err(|error: io::Error| {
        Error::failed(format!("cannot make {shown}: {error}"))
            .also("The rest is done, and your notes are safe")
            .hint("anamnesis init --link")
    })?;
    if cfg!(not(unix)) {
        let folder = context.home.as_named(&context.home.bin());
        talk.say(&format!("→ add {} to your PATH\n", folder.display()));
        return Ok(true);
    }
    talk.say(&format!("command  {shown}, kept at the newest version\n"));
    if let Some(folder) = link.parent()
        && !terminal_command::is_on_path(&context.environment, folder)
    {
        let folder = context.shown(folder);
        talk.say(&format!("→ add {folder} to your PATH\n"));
    }
    Ok(true)
}

/// The line for a store without a remote.
const NO_REMOTE: &str = "remote   none: notes stay on this machine · anamnesis init --remote URL\n";

/// The notice that is printed once, when a remote is joined.
const ONE_PERSON: &str =
    "  A remote is one person's. What a team should know belongs in its CLAUDE.md.\n";
