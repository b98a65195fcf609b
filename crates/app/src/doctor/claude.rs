//! Checks of Claude Code: the plugin, its hooks, and other memories beside it.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, SystemTime},
};

use anamnesis_store::{
    fs::file,
    journal::{self, HookRuns},
    settings::config::Paused,
};
use anamnesis_text::clean::one_line;
use serde_json::Value;

use super::{CheckResult, Depth, EVENTS, Examined, REPAIR, store::unusable_journal};
use crate::{
    context::Context,
    environment::INSTALLED_PLUGINS,
    format::{date, milliseconds, quoted},
    python_version, terminal_command,
};

/// The oldest Claude Code version that runs hooks without a shell.
const OLDEST_CLIENT: [u64; 3] = [2, 1, 139];

/// The journal key for the program that ran the hook of the last session start.
pub const HOOK_PROGRAM: &str = "hook_program";

/// Claude Code activity without a hook for longer than this is a fault.
const SILENCE: Duration = Duration::from_secs(3600);

/// Other plugins that add to the context.
const OTHER_MEMORIES: [&str; 3] = ["claude-mem@", "memories@", "mem0@"];

/// Reports whether the plugin is enabled and the client is new enough.
pub(super) fn plugin(it: &Examined<'_>) -> CheckResult {
    let own = env!("CARGO_PKG_VERSION");
    let journal = it.journal();
    let client = journal.and_then(|journal| journal.meta("client_version").ok().flatten());
    let shown = client.as_deref().map_or_else(String::new, |version| {
        format!("; client {}", one_line(version))
    });
    let version = client.as_deref().and_then(version_of);
    if version.is_some_and(|version| version < OLDEST_CLIENT) {
        return CheckResult::broken(format!("{own}{shown}, too old for its hooks"))
            .hint("claude update");
    }
    match is_enabled(it.context) {
        Some(true) => CheckResult::well(format!("{own}, enabled{shown}")),
        Some(false) => CheckResult::look(format!("{own}, not enabled in Claude Code{shown}"))
            .hint("/plugin   (in Claude Code; or: claude plugin enable anamnesis@anamnesis)"),
        None if was_uninstalled(it) => CheckResult::look(format!(
            "uninstalled from Claude Code: sessions are no longer recorded{shown}"
        ))
        .hint("/plugin install anamnesis   (in Claude Code; your notes are kept)"),
        None => {
            CheckResult::unknown(format!("{own}; Claude Code lists no plugin of that name")).hint(
                format!("/plugin install anamnesis --marketplace {}", repository()),
            )
        }
    }
}

/// Returns the checksum of an installed program and the command that compares it with the release's
/// attestation. A program that somebody built has none.
pub(super) fn program(it: &Examined<'_>) -> Option<CheckResult> {
    let program = it.context.environment.program.as_ref();
    let bin = it.context.home.root().join("bin");
    let is_installed = |path: &Path| path.starts_with(&bin) || path.iter().any(|it| it == "native");
    let program = program.filter(|path| it.depth == Depth::Thorough && is_installed(path))?;
    let hash = file::sha256(program).ok()?;
    let program = quoted(&program.display().to_string());
    let compare = format!(
        "compare: gh attestation verify {program} --repo {}",
        repository()
    );
    Some(CheckResult::well("its SHA-256:").lines([hash, compare]))
}

/// Owner and name of the repository that releases come from.
fn repository() -> &'static str {
    env!("CARGO_PKG_REPOSITORY").trim_start_matches("https://github.com/")
}

fn version_of(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text.split('.').map(|part| part.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

/// Whether the user's settings enable the plugin; `None` if they do not name it.
fn is_enabled(context: &Context) -> Option<bool> {
    let plugins = plugins(context)?;
    let mut plugins = plugins.as_object()?.iter();
    let (_, enabled) = plugins.find(|(name, _)| name.starts_with("anamnesis@"))?;
    enabled.as_bool()
}

/// Returns whether the program of the last session was a plugin's, and Claude Code lists no such
/// plugin any more. A plugin from a folder (`--plugin-dir`) is never listed.
fn was_uninstalled(it: &Examined<'_>) -> bool {
    let Some(folder) = it.context.environment.claude_folder.as_ref() else {
        return false;
    };
    let plugins = folder.join("plugins");
    let program = it
        .journal()
        .and_then(|journal| journal.meta(HOOK_PROGRAM).ok().flatten());
    // A plugin of a marketplace in a folder runs in that folder.
    let markets = fs::read(plugins.join("known_marketplaces.json")).unwrap_or_default();
    let markets: Value = serde_json::from_slice(&markets).unwrap_or_default();
    let mut folders: Vec<&Path> = vec![&plugins];
    for market in markets.as_object().into_iter().flat_map(|it| it.values()) {
        folders.extend(market["installLocation"].as_str().map(Path::new));
    }
    let is_in = |program: String| folders.iter().any(|it| Path::new(&program).starts_with(it));
    // A project's own settings may enable a plugin, but every installed one is in this list.
    let listed = fs::read_to_string(folder.join(INSTALLED_PLUGINS));
    program.is_some_and(is_in) && !listed.unwrap_or_default().contains("\"anamnesis@")
}

/// The plugins in the user's settings of Claude Code.
fn plugins(context: &Context) -> Option<Value> {
    let folder = context.environment.claude_folder.as_ref()?;
    let settings = fs::read(folder.join("settings.json")).ok()?;
    let mut settings: Value = serde_json::from_slice(&settings).ok()?;
    settings.get_mut("enabledPlugins").map(Value::take)
}

/// Reports whether hooks run, how long they take, and their errors.
pub(super) fn hooks(it: &Examined<'_>) -> CheckResult {
    let context = it.context;
    let journal = match &it.journal {
        None => return CheckResult::unknown("cannot be told without the store"),
        Some(Ok(journal)) => journal,
        Some(Err(journal::Error::Newer(_))) => {
            // `status` shortens the line.
            let line = "update anamnesis: a newer version wrote journal.db";
            return CheckResult::broken(line);
        }
        Some(Err(error)) if !error.is_damage() => return unusable_journal(error),
        Some(Err(_)) => {
            let line = "this machine's records cannot be used (log/anamnesis.log says why)";
            return CheckResult::broken(line).hint(REPAIR);
        }
    };
    let runs = match journal.hook_runs(context.environment.now) {
        Ok(runs) => runs,
        Err(error) => return CheckResult::broken(error.to_string()).hint(REPAIR),
    };
    let known: Vec<&HookRuns> = runs
        .iter()
        .filter(|run| EVENTS.contains(&run.event.as_str()))
        .collect();
    let Some(last_at) = known.iter().map(|run| run.last_at).max() else {
        return CheckResult::unknown("no hook has run yet: the next prompt runs the first");
    };
    let mut medians: Vec<i64> = known.iter().map(|run| run.median).collect();
    medians.sort_unstable();
    let summary = format!(
        "median {}, worst {}",
        milliseconds(medians[medians.len() / 2]),
        milliseconds(known.iter().map(|run| run.worst).max().unwrap_or(0))
    );
    let failing = runs.iter().filter(|run| run.is_failing).find_map(|run| {
        let (error, _) = run.last_error.as_ref()?;
        Some(format!("{}: {}", run.event, one_line(error)))
    });
    if let Some(failing) = failing {
        let log = context.shown(&context.home.log());
        return CheckResult::broken(failing)
            .lines([summary])
            .hint(format!("tail {log}"));
    }
    // The others wait for their occasion: a compaction, a subagent, a failure.
    let ran = |event: &str| known.iter().any(|run| run.event == event);
    let missing = [("SessionStart", true), ("UserPromptSubmit", ran("Stop"))];
    let missing = missing
        .iter()
        .filter(|(event, is_due)| *is_due && !ran(event));
    let missing: Vec<&str> = missing.map(|(event, _)| *event).collect();
    let summary = match missing.join(" and ") {
        none if none.is_empty() => summary,
        missing => format!("{summary}; {missing} never ran"),
    };
    if is_enabled(context) == Some(true) && is_silent(context, last_at) {
        let since = date(last_at);
        return CheckResult::broken(format!(
            "none ran since {since}, though Claude Code was used"
        ))
        .hint("claude --debug   (shows why hooks do not run)");
    }
    CheckResult::well(summary)
}

/// Returns whether Claude Code wrote a transcript long after the last hook ran.
fn is_silent(context: &Context, last_at: i64) -> bool {
    let Some(folder) = &context.environment.claude_folder else {
        return false;
    };
    // Silence is expected while recording is off. After a change of the settings, it may have been
    // off until then.
    let config = &context.config;
    if !config.exclude.is_empty() || config.is_unclear || config.paused != Paused::default() {
        return false;
    }
    let changed = fs::metadata(context.home.config()).and_then(|metadata| metadata.modified());
    let last = SystemTime::UNIX_EPOCH + Duration::from_millis(u64::try_from(last_at).unwrap_or(0));
    let last = changed.map_or(last, |changed| last.max(changed)) + SILENCE;
    let entries = |path: PathBuf| fs::read_dir(path).into_iter().flatten().flatten();
    entries(folder.join("projects"))
        .flat_map(|project| entries(project.path()))
        .filter(|file| {
            file.path()
                .extension()
                .is_some_and(|ending| ending == "jsonl")
        })
        .filter_map(|file| file.metadata().ok()?.modified().ok())
        .any(|time| time > last)
}

/// Reports other programs that do the same, or have the same name.
pub(super) fn beside(it: &Examined<'_>) -> CheckResult {
    let context = it.context;
    let python = python_version::find(&context.environment);
    if python.is_ok_and(|found| found.has_hooks()) {
        return CheckResult::look(
            "hooks of the Python release are active, too: sessions are recorded twice",
        )
        .hint("anamnesis init   (offers to remove them, with a backup)");
    }
    let plugins = plugins(context);
    let mut plugins = plugins.iter().filter_map(Value::as_object).flatten();
    let other = plugins.find(|(name, enabled)| {
        let is_memory = |known: &&str| name.starts_with(known);
        enabled.as_bool() == Some(true) && OTHER_MEMORIES.iter().any(is_memory)
    });
    if let Some((name, _)) = other {
        let name = one_line(name);
        return CheckResult::look(format!("{name} is on too: both add to what Claude reads"))
            .hint("/plugin   (to choose one)");
    }
    match terminal_command::other(context) {
        Some(other) => {
            CheckResult::look(other.first_on_path(context)).hint("remove it, or put this one first")
        }
        None => CheckResult::well("no other memory found"),
    }
}
