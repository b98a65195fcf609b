//! `doctor`: checks everything, reports what is wrong and how to fix it.
//!
//! A check that cannot be made is reported as unknown. Degraded is never reported as healthy.

mod records;

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::{Duration, SystemTime},
};

use anamnesis_app::{
    auto_reflect,
    context::{Context, PATIENCE},
    environment::{Environment, VARIABLES},
    failure::NEEDS_ATTENTION,
    journal_repair, model,
    pause::{self, Off},
    python_version, remote, spawn, summary,
    sync::{self, Standing},
    terminal_command,
};
use anamnesis_note::{id::NoteId, note::Kind, trigger::Trigger};
use anamnesis_store::{
    fs::file,
    index::{Error as IndexError, Filter, Index},
    journal::{self, Error as JournalError, HookRuns, Journal},
    project::Places,
    settings::{TRUSTED_VARIABLES, config::Paused},
    usage_log::Receipts,
};
use anamnesis_sync::set_aside_repositories;
use anamnesis_text::clean::{has_tag_characters, one_line};
use chrono::Utc;
use serde_json::{Value, json};

use self::records::{damage, recording, records};
use super::internal;
use crate::ui::{self, Outcome, Ui};

/// The default name of the Python version's MCP server.
pub(super) const SERVER_NAME: &str = "anamnesis";

/// The hooks that the plugin registers.
const EVENTS: [&str; 12] = [
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "PreCompact",
    "PostCompact",
    "SessionEnd",
];

/// The oldest Claude Code version that runs hooks without a shell.
const OLDEST_CLIENT: [u64; 3] = [2, 1, 139];

/// Claude Code activity without a hook for longer than this is a fault.
const SILENCE: Duration = Duration::from_secs(3600);

/// Check everything and say how to fix it
#[derive(Debug, clap::Args)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct Args {
    /// Fix what needs no decision: file modes, the index, damaged or pending records
    #[arg(long)]
    fix: bool,
    /// Print a text for a bug report, without notes, prompts or names
    #[arg(long, conflicts_with = "fix")]
    report: bool,
    /// Also print the times of every hook, and every variable
    #[arg(long)]
    verbose: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The hint for a journal that cannot be used.
const REPAIR: &str = "anamnesis doctor --fix   (repairs a damaged journal.db)";

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Well,
    Unknown,
    Look,
    Broken,
}

impl Level {
    fn sign(self) -> char {
        match self {
            Self::Well => '✓',
            Self::Unknown => '?',
            Self::Look => '!',
            Self::Broken => '✗',
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Well => "well",
            Self::Unknown => "unknown",
            Self::Look => "look",
            Self::Broken => "broken",
        }
    }
}

/// One check: its subject, its result, and how to fix it.
#[derive(Debug)]
struct Check {
    name: &'static str,
    level: Level,
    lines: Vec<String>,
    hint: Option<String>,
}

impl Check {
    fn new(name: &'static str, level: Level, line: impl Into<String>) -> Self {
        Self {
            name,
            level,
            lines: vec![line.into()],
            hint: None,
        }
    }

    fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

/// The summary for `status`.
#[derive(Debug)]
pub(super) struct Verdict {
    level: Level,
    text: String,
}

impl Verdict {
    /// Tells whether no fault is known.
    pub(super) fn is_well(&self) -> bool {
        self.level == Level::Well
    }

    /// The summary as text.
    pub(super) fn text(&self) -> &str {
        &self.text
    }
}

/// Checks only the journal and the index.
pub(super) fn verdict(context: &Context, index: &Index) -> Verdict {
    let journal = context.journal();
    let problems = index.problems().map_or(0, |problems| problems.len());
    let mut checks = vec![hooks(journal.as_ref(), context)];
    if context.environment.is_off {
        checks.push(recording(context, None));
    }
    checks.extend(records(context, journal.as_ref()));
    if problems > 0 {
        checks.push(Check::new(
            "notes",
            Level::Look,
            format!("{} not taken as notes", ui::count(problems, "file")),
        ));
    }
    if let Some(problem) = &context.config.problem {
        checks.push(Check::new("privacy", Level::Look, problem.clone()));
    }
    let worst = checks
        .iter()
        .map(|check| check.level)
        .max()
        .unwrap_or(Level::Well);
    let text = match checks.iter().find(|check| check.level == worst) {
        // A healthy store shows only the median, because the line is short.
        Some(check) if worst == Level::Well => {
            let hooks = check
                .lines
                .first()
                .and_then(|line| line.split(", worst").next());
            format!("all well · hooks {}", hooks.unwrap_or_default())
        }
        Some(check) => check.lines.first().cloned().unwrap_or_default(),
        None => "all well".to_owned(),
    };
    Verdict { level: worst, text }
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    let context = Context::unchecked(environment, PATIENCE)?;
    let fixed = if args.fix { fix(&context) } else { Vec::new() };
    let checks = checks(&context);
    // Without --fix, doctor reports damage and starts no repair.
    journal::damage_was_seen();
    let worst = checks
        .iter()
        .map(|check| check.level)
        .max()
        .unwrap_or(Level::Well);
    let broken = checks
        .iter()
        .filter(|check| check.level == Level::Broken)
        .count();
    let look = checks
        .iter()
        .filter(|check| check.level == Level::Look)
        .count();
    if args.json {
        let list: Vec<Value> = checks
            .iter()
            .map(|check| json!({ "name": check.name, "level": check.level.word(), "lines": check.lines, "hint": check.hint }))
            .collect();
        ui.json(&json!({ "checks": list, "broken": broken, "look": look, "fixed": fixed }));
    } else if args.report {
        ui.print(&report(&context, &checks));
    } else {
        let mut text: String = fixed
            .iter()
            .map(|line| format!("fixed: {line}\n"))
            .collect();
        for check in &checks {
            text.push_str(&shown(check));
        }
        if args.verbose {
            text.push_str(&verbose(&context));
        }
        text.push_str(&match (broken, look) {
            (0, 0) => "nothing to do\n".to_owned(),
            (0, look) => format!("{look} to look at\n"),
            (broken, 0) => format!("{broken} broken\n"),
            (broken, look) => format!("{broken} broken, {look} to look at\n"),
        });
        ui.print(&text);
    }
    Ok(match worst {
        Level::Well | Level::Unknown => ExitCode::SUCCESS,
        Level::Look => ExitCode::from(NEEDS_ATTENTION),
        Level::Broken => ExitCode::FAILURE,
    })
}

fn shown(check: &Check) -> String {
    let mut text = String::new();
    for (index, line) in check.lines.iter().enumerate() {
        if index == 0 {
            text.push_str(&format!(
                "{} {:<10} {line}\n",
                check.level.sign(),
                check.name
            ));
        } else {
            text.push_str(&format!("             {line}\n"));
        }
    }
    if let Some(hint) = &check.hint {
        text.push_str(&format!("             → {hint}\n"));
    }
    text
}

/// Runs every check, always in this order.
fn checks(context: &Context) -> Vec<Check> {
    let mut store = store(context);
    let is_usable = store.level != Level::Broken;
    let mut journal = None;
    if is_usable {
        match Journal::open(&context.home, PATIENCE) {
            Ok(opened) => journal = Some(opened),
            Err(error) => {
                context.log(&error.to_string());
                store = without_journal(&error);
            }
        }
    }
    let mut checks = vec![plugin(context, journal.as_ref())];
    if is_usable {
        checks.push(hooks(journal.as_ref(), context));
        checks.push(recording(context, journal.as_ref()));
    } else {
        checks.push(Check::new(
            "hooks",
            Level::Unknown,
            "cannot be told without the store",
        ));
    }
    checks.push(store);
    checks.extend(ignored_variables(context));
    if is_usable {
        checks.extend(damage(context));
        checks.extend(records(context, journal.as_ref()));
        checks.extend(notes_and_index(context));
        checks.push(privacy(context));
        checks.extend(projects(context, journal.as_ref()));
        checks.extend(usage(context));
        checks.push(synced(context, journal.as_ref()));
        checks.extend(replaced_repositories(context));
        checks.extend(named_model(context, journal.as_ref()));
    }
    checks.push(beside(context));
    checks
}

fn plugin(context: &Context, journal: Option<&Journal>) -> Check {
    let own = env!("CARGO_PKG_VERSION");
    let client = journal.and_then(|journal| journal.meta("client_version").ok().flatten());
    let shown_client = client.as_deref().map_or_else(String::new, |version| {
        format!("; client {}", one_line(version))
    });
    match is_enabled(context) {
        _ if client
            .as_deref()
            .and_then(version_of)
            .is_some_and(|version| version < OLDEST_CLIENT) =>
        {
            Check::new(
                "plugin",
                Level::Broken,
                format!("{own}{shown_client}, too old for its hooks"),
            )
            .hint("claude update")
        }
        Some(true) => Check::new(
            "plugin",
            Level::Well,
            format!("{own}, enabled{shown_client}"),
        ),
        Some(false) => Check::new(
            "plugin",
            Level::Look,
            format!("{own}, not enabled in Claude Code{shown_client}"),
        )
        .hint("/plugin   (in Claude Code; or: claude plugin enable anamnesis@anamnesis)"),
        None => Check::new(
            "plugin",
            Level::Unknown,
            format!("{own}; Claude Code knows no plugin of that name yet"),
        )
        .hint("/plugin install anamnesis --marketplace (see the README)"),
    }
}

/// Whether the user's settings enable the plugin; `None` if they do not name it.
fn is_enabled(context: &Context) -> Option<bool> {
    let settings = settings(context)?;
    let plugins = settings.get("enabledPlugins")?.as_object()?;
    let (_, enabled) = plugins
        .iter()
        .find(|(name, _)| name.starts_with("anamnesis@"))?;
    enabled.as_bool()
}

fn settings(context: &Context) -> Option<Value> {
    let path = context
        .environment
        .claude_folder
        .as_ref()?
        .join("settings.json");
    serde_json::from_slice(&fs::read(path).ok()?).ok()
}

fn version_of(text: &str) -> Option<[u64; 3]> {
    let mut numbers = text.split('.').map(|part| part.parse().ok());
    Some([numbers.next()??, numbers.next()??, numbers.next()??])
}

fn hooks(journal: Option<&Journal>, context: &Context) -> Check {
    let Some(journal) = journal else {
        return Check::new(
            "hooks",
            Level::Broken,
            "this machine's records cannot be used (log/anamnesis.log says why)",
        )
        .hint(REPAIR);
    };
    let runs = match journal.hook_runs(context.environment.now) {
        Ok(runs) => runs,
        Err(error) => return Check::new("hooks", Level::Broken, error.to_string()).hint(REPAIR),
    };
    let known: Vec<&HookRuns> = runs
        .iter()
        .filter(|run| EVENTS.contains(&run.event.as_str()))
        .collect();
    let Some(last_at) = known.iter().map(|run| run.last_at).max() else {
        return Check::new(
            "hooks",
            Level::Unknown,
            "no session seen yet: start claude once",
        );
    };
    let mut medians: Vec<i64> = known.iter().map(|run| run.median).collect();
    medians.sort_unstable();
    let median = medians[medians.len() / 2];
    let worst = known.iter().map(|run| run.worst).max().unwrap_or(0);
    let summary = format!(
        "{} of {} events; median {}, worst {}",
        known.len(),
        EVENTS.len(),
        milliseconds(median),
        milliseconds(worst)
    );
    let failing = runs.iter().filter(|run| run.is_failing).find_map(|run| {
        let (error, _) = run.last_error.as_ref()?;
        Some(format!("{}: {}", run.event, one_line(error)))
    });
    if let Some(failing) = failing {
        let mut check = Check::new("hooks", Level::Broken, failing)
            .hint(format!("tail {}", context.shown(&context.home.log())));
        check.lines.push(summary);
        return check;
    }
    if is_enabled(context) == Some(true) && is_silent(context, last_at) {
        let since = ui::date(last_at);
        return Check::new(
            "hooks",
            Level::Broken,
            format!("none ran since {since}, though Claude Code was used"),
        )
        .hint("claude --debug   (shows why hooks do not run)");
    }
    Check::new("hooks", Level::Well, summary)
}

/// Tells whether Claude Code wrote a transcript long after the last hook ran.
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

pub(super) fn milliseconds(microseconds: i64) -> String {
    match microseconds {
        ..10_000 => format!("{}.{} ms", microseconds / 1000, microseconds % 1000 / 100),
        _ => format!("{} ms", microseconds / 1000),
    }
}

fn store(context: &Context) -> Check {
    let root = context.shown(context.home.root());
    if let Err(error) = context.home.create() {
        return Check::new("store", Level::Broken, error.to_string()).hint(error.hint());
    }
    let probe = context
        .home
        .derived()
        .join(format!("probe-{}", NoteId::generate(Utc::now())));
    if let Err(error) = file::write_atomic(&probe, &[0; 4096]) {
        return Check::new(
            "store",
            Level::Broken,
            format!("{root} cannot be written: {error}; notes are not recorded"),
        )
        .hint("free some space, or make it writable for you");
    }
    let _ = fs::remove_file(&probe);
    if let Some(repository) = enclosing_repository(context.home.root()) {
        let repository = ui::home_path(&repository, context.environment.user_home.as_deref());
        return Check::new(
            "store",
            Level::Look,
            format!("{root} lies in the git repository {repository}"),
        )
        .hint("move it out, or your notes may be committed there: set ANAMNESIS_HOME");
    }
    let named = context.home.as_named(context.home.root());
    let target = if named == context.home.root() {
        String::new()
    } else {
        format!(" (at {})", context.home.root().display())
    };
    Check::new("store", Level::Well, format!("{root}{target}, writable"))
}

/// A store whose `journal.db` cannot be opened: hooks record nothing there.
fn without_journal(error: &JournalError) -> Check {
    let check = Check::new("store", Level::Broken, one_line(&error.to_string()));
    match error {
        // This error already contains its hint.
        JournalError::Newer(_) => check,
        error if error.is_damage() => check.hint("anamnesis doctor --fix"),
        error if error.is_busy() => check.hint("try again in a moment"),
        _ => check.hint("move away what is in its place, or make it writable for you"),
    }
}

/// Variables of this shell that sessions ignore, so that hooks and commands would disagree.
fn ignored_variables(context: &Context) -> Option<Check> {
    let names = context.environment.ignored_in_sessions();
    if names.is_empty() {
        return None;
    }
    let check = Check::new(
        "variables",
        Level::Look,
        format!(
            "hooks and the server ignore {}: a project could set it, too",
            names.join(", ")
        ),
    );
    Some(check.hint(format!(
        "anamnesis config set {TRUSTED_VARIABLES} {}",
        names.join(" ")
    )))
}

/// Returns the git checkout that contains the store. The store's own `memory/.git` is below it and
/// does not count.
pub(super) fn enclosing_repository(root: &Path) -> Option<PathBuf> {
    root.ancestors()
        .find(|folder| folder.join(".git").exists())
        .map(Path::to_path_buf)
}

fn notes_and_index(context: &Context) -> Vec<Check> {
    let state = Index::open(&context.home)
        .map(|index| (index.integrity(), index.is_behind(&context.notes)));
    let index = match context.index() {
        Ok(index) => index,
        Err(failure) => {
            let text = one_line(failure.text().trim_start_matches("anamnesis: "));
            return vec![
                Check::new("index", Level::Broken, text).hint("anamnesis internal reindex"),
            ];
        }
    };
    let total = index.counts().map_or(0, |counts| counts.total);
    let problems = index.problems().unwrap_or_default();
    let notes = if problems.is_empty() {
        Check::new(
            "notes",
            Level::Well,
            format!("{} readable", ui::count(total, "note")),
        )
    } else {
        let unreadable = problems
            .iter()
            .filter(|problem| is_note_name(&problem.path))
            .count();
        let (level, summary) = if unreadable > 0 {
            (
                Level::Broken,
                format!(
                    "{unreadable} of {} unreadable",
                    ui::number(total + unreadable)
                ),
            )
        } else {
            (
                Level::Look,
                format!(
                    "{} readable; {} left alone",
                    ui::count(total, "note"),
                    ui::count(problems.len(), "file")
                ),
            )
        };
        let mut check = Check::new("notes", level, summary);
        for problem in problems.iter().take(5) {
            check.lines.push(format!(
                "{}: {}",
                one_line(&problem.path),
                one_line(&problem.reason)
            ));
        }
        if problems.len() > 5 {
            check.lines.push(format!(
                "and {} more · anamnesis doctor --json",
                problems.len() - 5
            ));
        }
        check.hint(
            match problems.iter().find_map(|problem| id_of(&problem.path)) {
                Some(id) => {
                    format!("anamnesis edit {id} --raw   (left as it is, hides nothing else)")
                }
                None => "left as they are; they hide nothing else".to_owned(),
            },
        )
    };
    let others = [
        triggers(context, &index),
        circles(&index),
        hidden_text(context, &index),
    ];
    let index = match state {
        Ok((Ok(()), false)) => Check::new("index", Level::Well, "in step with the notes"),
        Ok((Ok(()), true)) => {
            Check::new("index", Level::Well, "was behind the notes, is in step now")
        }
        Err(IndexError::Missing) => Check::new("index", Level::Well, "was missing, is built now"),
        Ok((Err(error), _)) => {
            Check::new("index", Level::Look, error.to_string()).hint("anamnesis doctor --fix")
        }
        Err(error) => Check::new(
            "index",
            Level::Well,
            format!("{error}; built anew from the notes"),
        ),
    };
    let mut checks = vec![notes];
    checks.extend(others.into_iter().flatten());
    checks.push(index);
    checks
}

/// Reports notes that replace each other in a cycle.
fn circles(index: &Index) -> Option<Check> {
    let circles = index.circles().ok()?;
    let first = *circles.first()?.first()?;
    let mut check = Check::new(
        "replaced",
        Level::Look,
        format!(
            "{} in which notes replace each other; one of each is in view",
            ui::count(circles.len(), "circle")
        ),
    )
    .hint(format!("anamnesis show {}", Context::short(index, first)));
    for circle in circles.iter().take(5) {
        let notes = circle
            .iter()
            .map(|id| format!("#{}", Context::short(index, *id)));
        check.lines.push(notes.collect::<Vec<_>>().join(" "));
    }
    Some(check)
}

/// Reports notes with invisible characters.
fn hidden_text(context: &Context, index: &Index) -> Option<Check> {
    let listed = context.notes.list().notes.into_iter().map(|(path, _)| path);
    let hiding: Vec<_> = listed
        .filter(|path| {
            let bytes = context.notes.bytes(*path).unwrap_or_default();
            has_tag_characters(&String::from_utf8_lossy(&bytes))
        })
        .collect();
    let first = hiding.first()?;
    let mut check = Check::new(
        "hidden",
        Level::Look,
        format!(
            "{} with characters that nobody sees; they are left out wherever it is given",
            ui::count(hiding.len(), "note")
        ),
    )
    .hint(format!(
        "anamnesis edit {}",
        Context::short(index, first.id)
    ));
    let named = hiding
        .iter()
        .take(5)
        .map(|path| one_line(&path.to_string()));
    check.lines.extend(named);
    Some(check)
}

/// Reports trigger lines that cannot be parsed.
fn triggers(context: &Context, index: &Index) -> Option<Check> {
    let warnings = Filter {
        kind: Some(Kind::Antipattern),
        ..Filter::default()
    };
    let mut lines = Vec::new();
    let mut first = None;
    for entry in index.list(&warnings, usize::MAX).ok()? {
        let Ok(stored) = context.notes.read(entry.path) else {
            continue;
        };
        let when = stored.note().when;
        let unreadable = when.iter().filter_map(|trigger| {
            let error = trigger.parse::<Trigger>().err()?;
            Some((trigger, error))
        });
        let mut file = None;
        for (trigger, error) in unreadable {
            let file = file.get_or_insert_with(|| {
                let bytes = context.notes.bytes(entry.path).unwrap_or_default();
                String::from_utf8_lossy(&bytes).into_owned()
            });
            let (path, line) = (entry.path, line_of(file, trigger));
            lines.push(one_line(&format!("{path}:{line}: {error}")));
            first.get_or_insert(entry.id());
        }
    }
    let count = ui::count(lines.len(), "line");
    let summary = format!("{count} under `when` passed over");
    let mut check = Check::new("warnings", Level::Look, summary)
        .hint(format!("anamnesis edit {}", Context::short(index, first?)));
    check.lines.extend(lines.into_iter().take(5));
    Some(check)
}

/// The line number of an item of `when` in a file; the line of `when` itself if the item is written
/// in another form.
fn line_of(file: &str, item: &str) -> usize {
    let lines = file.lines().zip(1..);
    let mut lines = lines.skip_while(|(line, _)| !line.starts_with("when:"));
    let key = lines.clone().next().map_or(1, |(_, number)| number);
    let found = lines.find(|(line, _)| {
        let written = line.trim().strip_prefix('-').unwrap_or_default().trim();
        written.trim_matches(['"', '\'']) == item.trim()
    });
    found.map_or(key, |(_, number)| number)
}

fn is_note_name(path: &str) -> bool {
    id_of(path).is_some()
}

/// Returns the id in a note's file name.
fn id_of(path: &str) -> Option<NoteId> {
    path.rsplit('/').next()?.strip_suffix(".md")?.parse().ok()
}

fn privacy(context: &Context) -> Check {
    let mut check = modes_and_settings(context);
    // The variable is reported in another row.
    let off = pause::here(context).filter(|off| *off != Off::Variable);
    if let Some(off) = off {
        check.lines.push(format!(
            "off: {}; nothing is recorded or given",
            off.reason()
        ));
        check.hint.get_or_insert_with(|| off.hint().to_owned());
    }
    let paused = &context.config.paused.projects;
    if !paused.is_empty() && off != Some(Off::Project) {
        check
            .lines
            .push(format!("{} paused", ui::count(paused.len(), "project")));
    }
    let excluded = &context.config.exclude;
    if !excluded.is_empty() && off != Some(Off::Folder) {
        check.lines.push(format!(
            "{} of excluded folders",
            ui::count(excluded.len(), "pattern")
        ));
    }
    check
}

/// Checks file permissions and the settings.
fn modes_and_settings(context: &Context) -> Check {
    let open = context.home.open_to_others();
    if let Some((first, mode)) = open.first() {
        let path = context.home.relative(first);
        let path = if path.is_empty() {
            "the store itself".to_owned()
        } else {
            path
        };
        let more = if open.len() > 1 {
            format!(" and {} more", open.len() - 1)
        } else {
            String::new()
        };
        return Check::new(
            "privacy",
            Level::Look,
            format!("others can read {path} (mode {mode:o}){more}"),
        )
        .hint("anamnesis doctor --fix");
    }
    match &context.config.problem {
        Some(problem) => {
            Check::new("privacy", Level::Look, problem.clone()).hint(if context.config.is_unclear {
                Off::Settings.hint()
            } else {
                "mend config.json, or remove it"
            })
        }
        None => Check::new("privacy", Level::Well, "for you alone"),
    }
}

/// Reports folders whose project is ambiguous.
fn projects(context: &Context, journal: Option<&Journal>) -> Option<Check> {
    let doubts = Places::new(journal).doubts().ok()?;
    let shown = |folder: &Path| {
        let folder = ui::home_path(folder, context.environment.user_home.as_deref());
        one_line(&folder)
    };
    let shared = doubts.shared.iter().map(|(key, folders)| {
        let folders: Vec<_> = folders.iter().map(|folder| shown(folder)).collect();
        format!("{} share the notes of \"{key}\"", folders.join(" and "))
    });
    let untrusted = doubts.untrusted.iter().map(|(key, folder)| {
        let folder = shown(folder);
        format!("{folder} asks for the notes of {}", one_line(key))
    });
    let mut lines = shared.chain(untrusted);
    let mut check = Check::new("projects", Level::Look, lines.next()?);
    check.lines.extend(lines);
    let hint = if doubts.shared.is_empty() {
        "anamnesis project trust FOLDER   (gives them to it)"
    } else {
        "name one apart: write another name into its .anamnesis/project"
    };
    Some(check.hint(hint))
}

/// Reports usage logs of any machine that cannot be read.
fn usage(context: &Context) -> Option<Check> {
    let (_, problems) = Receipts::new(context.home.clone()).read_all();
    let mut lines = problems
        .iter()
        .map(|problem| one_line(&problem.to_string()));
    let mut check = Check::new("usage", Level::Look, lines.next()?);
    check.lines.extend(lines.take(4));
    Some(check.hint("what cannot be read of them is not counted; no note is concerned"))
}

/// Reports an invalid remote, in the settings or from the plugin's options.
fn remote_address(context: &Context, journal: Option<&Journal>) -> Option<Check> {
    let (line, problem, hint) = match remote::problem(context) {
        Some(problem) => (
            "the remote that is set cannot be used:",
            problem,
            "anamnesis config set remote URL, or: config unset remote",
        ),
        None => (
            "what the plugin was given as the remote is not taken:",
            remote::refused(journal?)?,
            "/plugin configure anamnesis@anamnesis   (in Claude Code)",
        ),
    };
    let mut check = Check::new("sync", Level::Look, line).hint(hint);
    check.lines.push(problem);
    Some(check)
}

/// Reports damaged repositories that were set aside.
fn replaced_repositories(context: &Context) -> Vec<Check> {
    let folders = set_aside_repositories(&context.home).into_iter();
    let check = |folder: PathBuf| {
        let place = one_line(&context.home.relative(&folder));
        let path = one_line(&ui::home_path(
            &folder,
            context.environment.user_home.as_deref(),
        ));
        let line = format!("memory/.git was damaged and replaced; the old one is {place}");
        Check::new("repository", Level::Look, line).hint(format!(
            "rm -rf {path}   (when no note and no history is missing)"
        ))
    };
    folders.map(check).collect()
}

/// Reports how notes are synced, if a remote is set.
fn synced(context: &Context, journal: Option<&Journal>) -> Check {
    if let Some(check) = remote_address(context, journal) {
        return check;
    }
    let standing = Standing::load(context, journal);
    let text = standing.text(context.environment.now);
    if standing.needs_attention() {
        Check::new("sync", Level::Look, text).hint(standing.advice())
    } else {
        Check::new("sync", Level::Well, text)
    }
}

/// Reports the state of the configured model.
fn named_model(context: &Context, journal: Option<&Journal>) -> Option<Check> {
    match model::find(context) {
        Ok(model) => {
            let model = model?;
            let line = format!("{}, at {}", one_line(&model.label()), model.receiver());
            let summaries = journal.and_then(|journal| summary::problem(context, journal));
            let reflection = journal.and_then(auto_reflect::problem);
            let reflection = reflection.map(|problem| format!("the last reflection: {problem}"));
            let problems: Vec<String> = summaries.into_iter().chain(reflection).collect();
            if problems.is_empty() {
                return Some(Check::new("model", Level::Well, line));
            }
            let mut check = Check::new("model", Level::Look, line)
                .hint("anamnesis config test; the budget: anamnesis config list");
            check.lines.extend(problems);
            Some(check)
        }
        Err(unusable) => {
            Some(Check::new("model", Level::Look, unusable.problem).hint(unusable.hint))
        }
    }
}

fn beside(context: &Context) -> Check {
    let found = python_version::find(&context.environment, SERVER_NAME);
    if found.is_ok_and(|found| found.has_hooks()) {
        return Check::new(
            "beside",
            Level::Look,
            "the Python version's hooks are on too: sessions are noted twice",
        )
        .hint("anamnesis init   (offers to remove them, with a backup)");
    }
    if let Some(settings) = settings(context) {
        let plugins = settings.get("enabledPlugins").and_then(Value::as_object);
        let other = plugins.into_iter().flatten().find(|(name, enabled)| {
            enabled.as_bool() == Some(true)
                && ["claude-mem@", "memories@", "mem0@"]
                    .iter()
                    .any(|known| name.starts_with(known))
        });
        if let Some((name, _)) = other {
            return Check::new(
                "beside",
                Level::Look,
                format!(
                    "{} is on too: both add to what Claude reads",
                    one_line(name)
                ),
            )
            .hint("/plugin   (to choose one)");
        }
    }
    match terminal_command::other(context) {
        Some(other) => Check::new("beside", Level::Look, other.first_on_path(context))
            .hint("remove it, or put this one first"),
        None => Check::new("beside", Level::Well, "no other memory found"),
    }
}

/// Fixes what needs no decision, and returns what was fixed.
fn fix(context: &Context) -> Vec<String> {
    let mut fixed = Vec::new();
    for (path, mode) in context.home.open_to_others() {
        if close(&path) {
            fixed.push(format!(
                "{} was open to others (mode {mode:o})",
                context.home.relative(&path)
            ));
        }
    }
    match journal_repair::repair(context, PATIENCE) {
        Ok(Some(repair)) => fixed.push(journal_repair::sentence(context, &repair)),
        Ok(None) => {}
        Err(error) => context.log(&format!("doctor: not repaired: {error}")),
    }
    if let Ok(Some(line)) = sync::repair(context, Duration::from_secs(10)) {
        fixed.push(line);
    }
    if let Some(journal) = context.journal() {
        if let Ok(drained @ 1..) = internal::work::drain(context, &journal) {
            fixed.push(format!(
                "{} taken up from spool/",
                ui::count(drained, "record")
            ));
        }
        if let Ok(jobs @ 1..) = journal.retry(context.environment.now.timestamp_millis()) {
            fixed.push(format!(
                "{} that had failed will be tried again",
                ui::count(jobs, "job")
            ));
        }
        let now = context.environment.now.timestamp_millis();
        if journal.has_jobs(now).unwrap_or(false) {
            let _ = spawn::start_work(&context.environment, false);
        }
    }
    let needs_index = match Index::open(&context.home) {
        Ok(index) => index.integrity().is_err(),
        Err(_) => true,
    };
    if needs_index && Index::rebuild(&context.home, &context.notes, Duration::from_secs(60)).is_ok()
    {
        fixed.push("the index was built anew".to_owned());
    }
    fixed
}

#[cfg(unix)]
fn close(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).is_ok()
}

#[cfg(not(unix))]
fn close(_: &Path) -> bool {
    false
}

/// The times of every hook, and every variable that is read.
fn verbose(context: &Context) -> String {
    let mut text = String::new();
    let runs = context
        .journal()
        .and_then(|journal| journal.hook_runs(context.environment.now).ok())
        .unwrap_or_default();
    let now = context.environment.now;
    for run in &runs {
        text.push_str(&format!(
            "  {:<18} last {}, {} today, median {}, worst {}\n",
            one_line(&run.event),
            ui::ago(ui::time(run.last_at), now),
            ui::number(usize::try_from(run.today).unwrap_or(0)),
            milliseconds(run.median),
            milliseconds(run.worst)
        ));
        if let Some((error, at)) = &run.last_error {
            let line = format!("error {}: {}", ui::ago(ui::time(*at), now), one_line(error));
            text.push_str(&ui::wrapped(&line, 21));
        }
    }
    for event in EVENTS {
        if runs.iter().all(|run| run.event != event) {
            text.push_str(&format!("  {event:<18} never ran\n"));
        }
    }
    for variable in VARIABLES {
        text.push_str(&format!("  {:<22} {}\n", variable.name, variable.meaning));
    }
    text
}

/// A text for a bug report: states and times, no user data.
fn report(context: &Context, checks: &[Check]) -> String {
    let mut text = format!(
        "anamnesis {} on {} {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::OS,
        std::env::consts::ARCH
    );
    for check in checks {
        text.push_str(&format!("{} {}\n", check.name, check.level.word()));
    }
    let runs = context
        .journal()
        .and_then(|journal| journal.hook_runs(context.environment.now).ok())
        .unwrap_or_default();
    for run in runs
        .iter()
        .filter(|run| EVENTS.contains(&run.event.as_str()))
    {
        let failed = if run.last_error.is_some() {
            ", an error"
        } else {
            ""
        };
        text.push_str(&format!(
            "{} {} runs, median {}, worst {}{failed}\n",
            run.event,
            run.count,
            milliseconds(run.median),
            milliseconds(run.worst)
        ));
    }
    text
}
