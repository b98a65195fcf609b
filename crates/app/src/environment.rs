//! All environment variables that Anamnesis reads, in one place.
//!
//! The environment is read once, here; other code gets values. Claude Code applies the `env` of a
//! project's settings to hooks, the server and the commands that it runs, so a cloned repository
//! can set any variable there. See `docs/decisions/0050-environment-of-a-project.md`.

use std::{
    env,
    ffi::OsString,
    fs, io,
    path::{Component, Path, PathBuf},
    time::Instant,
};

use anamnesis_distill::model::Provider;
use anamnesis_note::note::parse_timestamp;
use anamnesis_session::event::Host;
use anamnesis_store::{
    fs::home::Home,
    settings::{SETTINGS, Setting, config::Config},
};
use anamnesis_sync::git::{GitEnvironment, NETWORK_VARIABLES, is_named};
use chrono::{DateTime, Utc};

use crate::Error;

/// A variable and its meaning. A test compares this list with the documentation.
#[derive(Debug, Clone, Copy)]
pub struct Variable {
    /// The variable's name.
    pub name: &'static str,
    /// Its effect, in one sentence.
    pub meaning: &'static str,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $meaning:literal;)+) => {
        $(pub(crate) const $constant: &str = $name;)+

        /// All variables that are read.
        pub const VARIABLES: &[Variable] = &[$(Variable { name: $name, meaning: $meaning },)+];
    };
}

variables! {
    HOME_FOLDER = "ANAMNESIS_HOME", "The store's folder. Default: `~/.anamnesis`.";
    MACHINE_ID = "ANAMNESIS_MACHINE_ID", "The name of this machine in notes. Overrides `machine_id` in `config.json`.";
    GIT_REMOTE = "ANAMNESIS_GIT_REMOTE", "The git remote. Overrides `remote` in `config.json`.";
    PLUGIN_REMOTE = "CLAUDE_PLUGIN_OPTION_REMOTE", "The plugin's option `remote`, set by Claude Code for hooks. A changed value makes the hook read the option from Claude Code's user settings and copy it to `remote` in `config.json`.";
    OFF = "ANAMNESIS_OFF", "Any value except `0`: hooks record and inject nothing.";
    IMPORT_NATIVE = "ANAMNESIS_IMPORT_NATIVE", "`0`: do not import Claude Code's own memory. Overrides `import_native` in `config.json`.";
    REFLECTION_PROVIDER = "ANAMNESIS_REFLECTION_PROVIDER", "The provider of the model for summaries and `reflect`. Overrides `reflection.provider` in `config.json`.";
    REFLECTION_MODEL = "ANAMNESIS_REFLECTION_MODEL", "The model's name. Overrides `reflection.model`.";
    REFLECTION_BASE_URL = "ANAMNESIS_REFLECTION_BASE_URL", "The base URL of the model's API. Overrides `reflection.base_url`.";
    REFLECTION_API_KEY = "ANAMNESIS_REFLECTION_API_KEY", "The API key. Overrides `reflection.api_key`.";
    REFLECTION_TIMEOUT = "ANAMNESIS_REFLECTION_TIMEOUT", "The timeout of a model request, in seconds. Overrides `reflection.timeout`.";
    REFLECTION_MAX_TOKENS = "ANAMNESIS_REFLECTION_MAX_TOKENS", "The maximum size of a model request, in tokens. Overrides `reflection.max_tokens`.";
    REFLECT_AUTO = "ANAMNESIS_REFLECT_AUTO", "`1`: run `reflect` in the background. Overrides `reflection.auto`.";
    MIN_EPISODICS = "ANAMNESIS_REFLECT_MIN_EPISODICS", "The minimum number of session notes of a project for `reflect`. Default: 5.";
    DEEPSEEK_KEY = "DEEPSEEK_API_KEY", "The API key for the provider `deepseek` if no other is set. Read only if provider, model and base URL are set.";
    OPENAI_KEY = "OPENAI_API_KEY", "The API key for the provider `openai` if no other is set. Read only if provider, model and base URL are set.";
    MERGE_MIN = "ANAMNESIS_MERGE_MIN_DURABLE", "The minimum number of lasting notes of a project for `merge`. Default: 5.";
    INTERNAL = "ANAMNESIS_INTERNAL", "Set for processes that Anamnesis starts, so that their hooks do nothing.";
    NOW = "ANAMNESIS_NOW", "For tests: the current time, in ISO 8601.";
    SLOW_HOOKS = "ANAMNESIS_SLOW_HOOKS", "For measurements: hooks may take a minute.";
    USER_HOME = "HOME", "The user's home folder.";
    USER_PROFILE = "USERPROFILE", "The user's home folder on Windows. Takes precedence over `HOME`.";
    COMPUTER_NAME = "COMPUTERNAME", "The name of this machine on Windows.";
    CLAUDE_CONFIG = "CLAUDE_CONFIG_DIR", "Claude Code's folder. Default: `~/.claude`.";
    CLAUDE_PROJECT = "CLAUDE_PROJECT_DIR", "The folder of the session's project, set by Claude Code for hooks and the server.";
    CLAUDE_PROCESS = "CLAUDE_PID", "The process id of Claude Code, set by it for hooks.";
    CLAUDE_ENTRY = "CLAUDE_CODE_ENTRYPOINT", "How Claude Code was started. Session lines and answers to slash commands are shown only in its terminal interface. Prompts through the SDK give no standing instructions.";
    CLAUDE_SESSION = "CLAUDE_CODE_SESSION_ID", "The session id of a command or the server, set by Claude Code.";
    GEMINI_SESSION = "GEMINI_SESSION_ID", "Set by Gemini CLI for hooks. Identifies the host if the payload does not.";
    CODEX_PLUGIN = "PLUGIN_ROOT", "Like `GEMINI_SESSION_ID`, set by Codex for a plugin's hooks.";
    CODEX_HOME = "CODEX_HOME", "Codex's folder. Default: `~/.codex`.";
    VISUAL = "VISUAL", "The editor for `write` and `edit`.";
    EDITOR = "EDITOR", "The editor for `write` and `edit` if `VISUAL` is not set.";
    PAGER = "PAGER", "The pager for long lists on a terminal. Default: `less`; `cat` for none.";
    NO_COLOR = "NO_COLOR", "Any value: no colours. `--color` overrides it.";
    PATH = "PATH", "The folders in which `doctor` and `init` look for another `anamnesis`.";
}

/// Set by Claude Code for commands that it runs.
pub(crate) const CLAUDE_CODE: &str = "CLAUDECODE";

/// The variables that coding agents set for the commands that they run; `docs/reference/environment.md`
/// has the sources. What such a command writes is the agent's. Variables that a person's own terminal may
/// have are left out, like `CURSOR_TRACE_ID`.
pub const AGENT_VARIABLES: [&str; 22] = [
    CLAUDE_CODE,
    "AI_AGENT",
    "CODEX_SANDBOX",
    "CODEX_SANDBOX_NETWORK_DISABLED",
    "CODEX_THREAD_ID",
    "CODEX_CI",
    "GEMINI_CLI",
    "QWEN_CODE",
    "CURSOR_AGENT",
    "COPILOT_AGENT",
    "COPILOT_AGENT_SESSION_ID",
    "COPILOT_AGENT_JOB_ID",
    "COPILOT_CLI",
    "OPENCODE",
    "OPENCODE_CLIENT",
    "AUGMENT_AGENT",
    "ANTIGRAVITY_AGENT",
    "CLINE_ACTIVE",
    "GOOSE_TERMINAL",
    "AMP_CURRENT_THREAD_ID",
    "PI_CODING_AGENT",
    "TRAE_AI_SHELL_ID",
];

/// The variables that name a store, a remote, a model, an address, a key or another program's
/// folder, override a threshold, or set the clock. A clock that is behind counts.
///
/// A process that Claude Code starts ignores them, unless the user's own `config.json` lists them
/// under `trusted_variables`. `CLAUDE_PLUGIN_OPTION_REMOTE` is not listed because its value is
/// never used, see [`crate::remote::adopt`].
pub const GUARDED: [&str; 23] = [
    HOME_FOLDER,
    GIT_REMOTE,
    REFLECTION_PROVIDER,
    REFLECTION_MODEL,
    REFLECTION_BASE_URL,
    REFLECTION_API_KEY,
    REFLECTION_TIMEOUT,
    REFLECTION_MAX_TOKENS,
    REFLECT_AUTO,
    DEEPSEEK_KEY,
    OPENAI_KEY,
    // These are read by the HTTP library, and by git.
    "https_proxy",
    "http_proxy",
    "all_proxy",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
    MIN_EPISODICS,
    MERGE_MIN,
    CODEX_HOME,
    NOW,
];

/// All names that `trusted_variables` may list. `CLAUDE_CONFIG_DIR` is used without trust, too, but then
/// not for the person's settings, see [`Environment::own_claude_folder`].
pub fn trustable() -> impl Iterator<Item = &'static str> {
    GUARDED.into_iter().chain([CLAUDE_CONFIG])
}

/// The party that started this process and may have set its environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Caller {
    /// A person's shell, or Anamnesis itself with an environment that it chose.
    Person,
    /// Claude Code or another client, for a hook or the server.
    Client,
}

/// The environment variables of this process, without the ignored ones.
#[derive(Debug, Clone)]
struct Variables {
    /// Whether a project may have set them.
    is_guarded: bool,
    /// The guarded variables that are set and ignored.
    ignored: Vec<&'static str>,
}

impl Variables {
    fn new(is_guarded: bool, user_home: Option<&Path>) -> Self {
        let is_set = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let mut ignored: Vec<_> = if is_guarded {
            GUARDED.into_iter().filter(is_set).collect()
        } else {
            Vec::new()
        };
        if !ignored.is_empty()
            && let Some(home) = user_home
        {
            let trusted = trusted_variables(home);
            ignored.retain(|name| !trusted.iter().any(|trusted| trusted == name));
        }
        // A clock that is behind makes no record too old to keep.
        ignored.retain(|name| *name != NOW || is_ahead());
        Self {
            is_guarded,
            ignored,
        }
    }

    fn counts(&self, name: &str) -> bool {
        let mut ignored = self.ignored.iter();
        !ignored.any(|ignored| is_named(name.as_ref(), ignored))
    }

    fn os(&self, name: &str) -> Option<OsString> {
        env::var_os(name).filter(|value| !value.is_empty() && self.counts(name))
    }

    fn path(&self, name: &str) -> Option<PathBuf> {
        self.os(name).map(PathBuf::from)
    }

    fn text(&self, name: &str) -> Option<String> {
        let text = self.os(name)?.into_string().ok()?;
        (!text.trim().is_empty()).then_some(text)
    }
}

/// Returns whether the set time is in the future, or is missing or invalid.
fn is_ahead() -> bool {
    let set = env::var(NOW).ok();
    let time = set.and_then(|time| parse_timestamp(&time));
    time.is_none_or(|time| time > Utc::now())
}

/// Returns the variables that count in sessions, by the user's own settings.
fn trusted_variables(user_home: &Path) -> Vec<String> {
    Config::load(&Home::new(default_store(user_home))).trusted_variables
}

/// The default store of a user.
pub fn default_store(user_home: &Path) -> PathBuf {
    user_home.join(".anamnesis")
}

/// The list of installed plugins, in Claude Code's folder.
pub const INSTALLED_PLUGINS: &str = "plugins/installed_plugins.json";

/// The default folder of Claude Code.
pub fn claude_folder(user_home: &Path) -> PathBuf {
    user_home.join(".claude")
}

/// Codex's folder in the user's home.
const CODEX_FOLDER: &str = ".codex";

/// The variables that disable our hooks in a program that we start.
pub const OURS: [(&str, &str); 1] = [(INTERNAL, "1")];

/// The variables that hosts set for hooks.
const HOST_VARIABLES: [(&str, Host); 2] =
    [(GEMINI_SESSION, Host::Gemini), (CODEX_PLUGIN, Host::Codex)];

/// The variables that tell a program that it runs in a Claude Code session.
pub const OF_A_SESSION: [&str; 4] = [CLAUDE_CODE, CLAUDE_ENTRY, CLAUDE_SESSION, CLAUDE_PROJECT];

/// The values that Anamnesis takes from the environment.
#[derive(Debug, Clone)]
pub struct Environment {
    /// This program's file, which the deferred process runs, too.
    pub program: Option<PathBuf>,
    /// The store's root; `None` if no home folder is known.
    pub store: Option<PathBuf>,
    /// The user's home.
    pub user_home: Option<PathBuf>,
    /// Claude Code's folder, by default `~/.claude`.
    pub claude_folder: Option<PathBuf>,
    /// Claude Code's `.claude.json`, which lists its MCP servers among other things.
    pub claude_state: Option<PathBuf>,
    /// Codex's folder, by default `~/.codex`.
    pub codex_folder: Option<PathBuf>,
    /// The session's project folder, for hooks.
    pub project_folder: Option<PathBuf>,
    /// This machine's name, if a variable sets it.
    pub machine_id: Option<String>,
    /// The remote, if a variable sets it. It may contain a password.
    pub remote: Option<String>,
    /// The plugin's option `remote` as passed to hooks. A project can set this variable, too. It
    /// may contain a password.
    pub plugin_remote: Option<String>,
    variables: Variables,
    /// How many session notes a project needs before it is reflected on.
    pub min_episodics: usize,
    /// The system's host name.
    pub host_name: Option<String>,
    /// Whether `ANAMNESIS_OFF` switches the hooks off.
    pub is_off: bool,
    /// Whether importing Claude Code's own memory is switched off.
    pub is_native_off: bool,
    /// How many notes a project needs before `merge` looks at it.
    pub merge_min: usize,
    /// Whether Anamnesis itself started the surrounding program.
    pub is_internal: bool,
    /// Whether a hook may take a minute.
    pub has_slow_hooks: bool,
    /// Whether a coding agent runs this process as a command of the model.
    pub is_agent: bool,
    /// Whether a prompt of a session named this command. A program may have sent the prompt.
    pub is_in_prompt: bool,
    /// The session that this command runs in, if the model runs it.
    pub session: Option<String>,
    /// Whether Claude Code runs interactively on a person's screen.
    pub is_interactive: bool,
    /// Whether `claude -p` runs the session.
    pub is_headless: bool,
    /// Whether a program sends the prompts of the session, through `claude -p` or the SDK.
    pub is_scripted: bool,
    /// The program that set variables for its hooks, if it is not Claude Code.
    pub host: Option<Host>,
    /// Claude Code's process id.
    pub client_process: Option<String>,
    /// The user's editor.
    pub editor: Option<OsString>,
    /// The person's pager.
    pub pager: Option<OsString>,
    /// Whether the person wants no colours.
    pub is_plain: bool,
    /// The `PATH` variable.
    pub path: Option<OsString>,
    /// The current time for this process, fixed when it starts.
    pub now: DateTime<Utc>,
    /// When this process read its environment.
    pub started: Instant,
}

impl Environment {
    /// Reads the environment of a process that `caller` started.
    pub fn read(caller: Caller) -> Self {
        // A client gives its own variables to hooks and servers as well, `AI_AGENT` among them.
        let counts = |name: &str| caller == Caller::Person || name == CLAUDE_CODE;
        let is_agent = (AGENT_VARIABLES.iter()).any(|name| {
            env::var_os(name)
                .filter(|_| counts(name))
                .is_some_and(|value| !matches!(value.to_string_lossy().trim(), "" | "0" | "false"))
        });
        let is_guarded = caller == Caller::Client || is_agent;
        let (variables, user_home) = counted_variables(is_guarded);
        let path = |name: &str| variables.path(name);
        let text = |name: &str| variables.text(name);
        let number = |name: &str, otherwise: usize| {
            let number = text(name).and_then(|text| text.trim().parse().ok());
            number.unwrap_or(otherwise)
        };
        let store = path(HOME_FOLDER)
            .map(|path| expanded(path, user_home.as_deref()))
            .or_else(|| user_home.as_deref().map(default_store))
            // A relative path would name another store in each folder.
            .and_then(|store| std::path::absolute(store).ok());
        Self {
            program: env::current_exe().ok(),
            store,
            claude_folder: path(CLAUDE_CONFIG).or_else(|| user_home.as_deref().map(claude_folder)),
            claude_state: path(CLAUDE_CONFIG)
                .or_else(|| user_home.clone())
                .map(|folder| folder.join(".claude.json")),
            codex_folder: path(CODEX_HOME)
                .filter(|folder| folder.is_absolute())
                .or_else(|| Some(user_home.as_deref()?.join(CODEX_FOLDER))),
            project_folder: path(CLAUDE_PROJECT).filter(|folder| folder.is_absolute()),
            machine_id: text(MACHINE_ID),
            remote: text(GIT_REMOTE).map(|remote| remote.trim().to_owned()),
            plugin_remote: text(PLUGIN_REMOTE).map(|remote| remote.trim().to_owned()),
            min_episodics: number(MIN_EPISODICS, 5).max(1),
            host_name: host_name().or_else(|| text(COMPUTER_NAME)),
            is_off: text(OFF).is_some_and(|value| value != "0"),
            is_native_off: text(IMPORT_NATIVE).is_some_and(|value| value == "0"),
            merge_min: number(MERGE_MIN, 5),
            is_internal: text(INTERNAL).is_some(),
            has_slow_hooks: text(SLOW_HOOKS).is_some(),
            is_agent,
            is_in_prompt: false,
            session: text(CLAUDE_SESSION).filter(|id| is_session_id(id)),
            is_interactive: text(CLAUDE_ENTRY).is_some_and(|entry| entry == "cli"),
            is_headless: text(CLAUDE_ENTRY).is_some_and(|entry| entry == "sdk-cli"),
            is_scripted: text(CLAUDE_ENTRY).is_some_and(|entry| {
                entry.starts_with("sdk-")
                    || ["mcp", "claude-code-github-action"].contains(&entry.as_str())
            }),
            client_process: text(CLAUDE_PROCESS),
            host: HOST_VARIABLES
                .iter()
                .find_map(|(name, host)| text(name).map(|_| *host)),
            editor: [VISUAL, EDITOR].iter().find_map(|name| variables.os(name)),
            pager: variables.os(PAGER),
            is_plain: variables.os(NO_COLOR).is_some(),
            path: variables.os(PATH),
            now: text(NOW)
                .and_then(|time| parse_timestamp(&time))
                .unwrap_or_else(Utc::now),
            variables,
            user_home,
            started: Instant::now(),
        }
    }

    /// Refuses an agent an action that only a person may take: "change settings".
    pub fn check_person(&self, action: &str) -> Result<(), Error> {
        if self.is_agent {
            return Err(Error::failed(format!("only a person can {action}"))
                .hint("run this command in a terminal of your own"));
        }
        Ok(())
    }

    /// Returns a copy whose `now` is the current time.
    #[must_use]
    pub fn at_present(&self) -> Self {
        Self {
            now: self.current_time(),
            started: Instant::now(),
            ..self.clone()
        }
    }

    /// Returns the folder below which a host keeps the logs of sessions, if it is known.
    pub fn log_folder(&self, host: Host) -> Option<PathBuf> {
        match host {
            Host::ClaudeCode => self.claude_folder.clone(),
            Host::Codex => self.below_home(".codex/sessions"),
            Host::Gemini => self.below_home(".gemini/tmp"),
            _ => None,
        }
    }

    /// Returns a path in the user's home, or in Codex's folder if that is elsewhere.
    pub fn below_home(&self, path: &str) -> Option<PathBuf> {
        match Path::new(path).strip_prefix(CODEX_FOLDER) {
            Ok(path) => Some(self.codex_folder.as_ref()?.join(path)),
            Err(_) => Some(self.user_home.as_ref()?.join(path)),
        }
    }

    /// Returns the folders below which hosts keep the logs of sessions.
    pub fn log_folders(&self) -> impl Iterator<Item = PathBuf> {
        let hosts = [Host::ClaudeCode, Host::Codex, Host::Gemini];
        hosts.into_iter().filter_map(|host| self.log_folder(host))
    }

    /// Returns the current time, counted from `now`.
    pub fn current_time(&self) -> DateTime<Utc> {
        self.now + self.started.elapsed()
    }
}

/// Returns whether a text is a valid session id. Ids are written into notes as one line.
fn is_session_id(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let name = anamnesis_store::fs::home::host_name();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    None
}

/// The variables that name the user's home, the first one first. On Windows `HOME` is git's and the
/// shell's, and Claude Code does not read it.
const HOMES: [&str; 2] = if cfg!(windows) {
    [USER_PROFILE, USER_HOME]
} else {
    [USER_HOME, USER_PROFILE]
};

/// Reads the variables, without those that a guarded process ignores, and the user's home.
fn counted_variables(is_guarded: bool) -> (Variables, Option<PathBuf>) {
    let unguarded = Variables::new(false, None);
    let named_home = HOMES
        .iter()
        .filter_map(|name| unguarded.path(name))
        .find(|home| home.is_absolute());
    let folders = is_guarded
        .then(|| session_folders(unguarded.path(CLAUDE_PROJECT), env::current_dir().ok()));
    let is_of_project = |path: &Path| {
        let home = named_home.as_deref();
        (folders.as_ref()).is_some_and(|folders| is_of_project(path, folders, home))
    };
    let user_home = match &named_home {
        Some(home) if is_of_project(home) => account_home(),
        home => home.clone(),
    };
    let mut variables = Variables::new(is_guarded, user_home.as_deref());
    for name in [HOME_FOLDER, CLAUDE_CONFIG] {
        let folder = variables.path(name);
        // `~` is expanded in the store's path only.
        let folder = folder.map(|folder| match name {
            HOME_FOLDER => expanded(folder, user_home.as_deref()),
            _ => folder,
        });
        if folder.is_some_and(|folder| is_of_project(&folder)) {
            variables.ignored.push(name);
        }
    }
    (variables, user_home)
}

/// Replaces a `~` at the start of a path.
fn expanded(path: PathBuf, user_home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), user_home) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path,
    }
}

/// Returns the folders of a session, without links: the one that Claude Code names and the current one.
fn session_folders(project: Option<PathBuf>, current: Option<PathBuf>) -> Vec<PathBuf> {
    let project = project.filter(|project| Some(project) != current.as_ref());
    let folders = [project, current].into_iter().flatten();
    folders
        .filter_map(|folder| dunce::canonicalize(folder).ok())
        .collect()
}

/// Returns whether the project of a session controls a path.
fn is_of_project(path: &Path, folders: &[PathBuf], named_home: Option<&Path>) -> bool {
    may_be_inside(path, folders) && {
        let roots = project_roots(folders, account_home().as_deref());
        is_inside(path, &without_home(roots, named_home))
    }
}

/// Returns whether [`is_inside`] may be true for any of the [`project_roots`]. Looks at fewer files and
/// not at the user database.
fn may_be_inside(path: &Path, folders: &[PathBuf]) -> bool {
    let Some(real) = nearest(path) else {
        return true;
    };
    is_indirect(path)
        || folders.iter().any(|folder| {
            let mut shared = real.ancestors().filter(|root| folder.starts_with(root));
            shared.any(|root| root == folder || root.join(".git").exists())
        })
}

/// Returns the folders that a session's project controls: the folders that Claude Code names, and the
/// outermost repository around each.
///
/// The account's home and its ancestors do not count: with dotfiles in git they hold the store, too.
fn project_roots(folders: &[PathBuf], account_home: Option<&Path>) -> Vec<PathBuf> {
    let account_home = account_home.and_then(|home| dunce::canonicalize(home).ok());
    let is_of_account =
        |root: &Path| (account_home.as_ref()).is_some_and(|home| home.starts_with(root));
    let roots = folders.iter().filter_map(|folder| {
        let below = folder.ancestors().take_while(|root| !is_of_account(root));
        let checkouts = below.filter(|root| root == folder || root.join(".git").exists());
        checkouts.last().map(Path::to_owned)
    });
    roots.collect()
}

/// Leaves out the user's home, where a program may be started outside any project, unless it can be a
/// project that names itself as the home: it is a repository, or its settings set variables.
fn without_home(mut roots: Vec<PathBuf>, user_home: Option<&Path>) -> Vec<PathBuf> {
    let home = user_home.and_then(|home| dunce::canonicalize(home).ok());
    roots.retain(|root| {
        Some(root) != home.as_ref() || root.join(".git").exists() || sets_variables(root)
    });
    roots
}

/// Returns whether Claude Code's settings of a folder set variables, or cannot be read.
fn sets_variables(folder: &Path) -> bool {
    let files = ["settings.json", "settings.local.json"];
    files
        .iter()
        .any(|name| match fs::read(folder.join(".claude").join(name)) {
            Err(error) => error.kind() != io::ErrorKind::NotFound,
            Ok(bytes) => serde_json::from_slice::<serde_json::Value>(&bytes)
                .map_or(true, |settings| settings.get("env").is_some()),
        })
}

/// Returns whether a path leads into one of these folders. For a folder that does not exist yet,
/// its nearest existing ancestor decides.
///
/// A path through `/proc`, `/dev` or `..` counts as inside: with it, a project can name itself without
/// knowing where it is.
fn is_inside(folder: &Path, roots: &[PathBuf]) -> bool {
    is_indirect(folder)
        || nearest(folder).is_none_or(|real| roots.iter().any(|root| real.starts_with(root)))
}

/// Returns whether a path leads through `/proc`, `/dev` or `..`.
fn is_indirect(path: &Path) -> bool {
    let mut roots = ["/proc", "/dev"].iter();
    roots.any(|root| path.starts_with(root))
        || path.components().any(|part| part == Component::ParentDir)
}

/// Returns a path without links, or its nearest ancestor that exists.
fn nearest(path: &Path) -> Option<PathBuf> {
    let path = std::path::absolute(path).ok()?;
    let mut ancestors = path.ancestors();
    ancestors.find_map(|ancestor| dunce::canonicalize(ancestor).ok())
}

/// Returns the home folder of this process's account, from the user database instead of the
/// environment.
#[cfg(unix)]
fn account_home() -> Option<PathBuf> {
    let user = nix::unistd::User::from_uid(nix::unistd::Uid::current());
    user.ok().flatten().map(|user| user.dir)
}

/// Returns the home folder of this process's account, from the system instead of the environment.
#[cfg(windows)]
fn account_home() -> Option<PathBuf> {
    known_folders::get_known_folder_path(known_folders::KnownFolder::Profile)
}

impl Environment {
    /// Returns the Anamnesis variables that are set here but ignored in sessions. Leaves out those
    /// that equal the default, and the clock, which only tests set.
    pub fn ignored_in_sessions(&self) -> Vec<&'static str> {
        let home = self.user_home.as_deref();
        let is_default = |name: &str| {
            name == HOME_FOLDER && env::var_os(name).map(PathBuf::from) == home.map(default_store)
        };
        let mut names = Variables::new(true, home).ignored;
        names.retain(|name| name.starts_with("ANAMNESIS_") && *name != NOW && !is_default(name));
        names
    }

    /// Returns the folder of Claude Code that the person named: in a session, `CLAUDE_CONFIG_DIR` only
    /// counts if it is trusted. Otherwise a project could show settings of its own as the person's.
    pub fn own_claude_folder(&self) -> Option<PathBuf> {
        let home = self.user_home.as_deref()?;
        let is_trusted = !self.variables.is_guarded
            || trusted_variables(home)
                .iter()
                .any(|name| name == CLAUDE_CONFIG);
        let folder = self.claude_folder.clone().filter(|_| is_trusted);
        Some(folder.unwrap_or_else(|| claude_folder(home)))
    }

    /// Returns the key in a provider's own variable.
    pub fn provider_key(&self, provider: Provider) -> Option<String> {
        let name = match provider {
            Provider::DeepSeek => DEEPSEEK_KEY,
            Provider::OpenAi => OPENAI_KEY,
            _ => return None,
        };
        self.variables.text(name)
    }

    /// Returns a variable that names a proxy and is ignored. The HTTP library reads it itself, and would
    /// send the key and the notes there.
    pub fn ignored_proxy(&self) -> Option<&'static str> {
        let is_set = |name: &str| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is_proxy = |name: &str| {
            let name = name.to_ascii_lowercase();
            name.ends_with("_proxy") && !name.starts_with("no")
        };
        GUARDED
            .into_iter()
            .find(|name| is_proxy(name) && is_set(name) && !self.variables.counts(name))
    }

    /// Returns the environment for the user's git.
    pub fn for_git(&self) -> GitEnvironment {
        GitEnvironment::choose(self.counting(env::vars_os()))
    }

    /// Drops ignored variables and replaces `HOME` by the user's real home.
    fn counting<'a>(
        &'a self,
        variables: impl Iterator<Item = (OsString, OsString)> + 'a,
    ) -> impl Iterator<Item = (OsString, OsString)> + 'a {
        let is_home = |name: &str| HOMES.iter().any(|home| is_named(name.as_ref(), home));
        variables.filter_map(move |(name, value)| match name.to_str() {
            Some(text) if !self.variables.counts(text) => None,
            Some(text) if is_home(text) => Some((name, self.user_home.clone()?.into())),
            _ => Some((name, value)),
        })
    }

    /// Returns the environment for a command that the person approved, so that it does not run as
    /// the agent's.
    pub fn for_person(&self) -> Vec<(OsString, OsString)> {
        let mut variables: Vec<_> = self
            .counting(env::vars_os())
            .filter(|(name, _)| !AGENT_VARIABLES.iter().any(|agents| name == agents))
            .collect();
        if let Some(store) = &self.store {
            variables.push((HOME_FOLDER.into(), store.into()));
        }
        variables
    }

    /// Returns the value of the variable that overrides a setting, if it is set.
    pub fn over(&self, setting: &Setting) -> Option<String> {
        match setting.variable? {
            MACHINE_ID => self.machine_id.clone(),
            GIT_REMOTE => self.remote.clone(),
            IMPORT_NATIVE => self.is_native_off.then(|| "off".to_owned()),
            name => self.variables.text(name),
        }
    }
}

impl Environment {
    /// Returns the environment for a process that Anamnesis starts for itself: enough to find the
    /// store, the remote and the configured model. The user's other keys are left out.
    ///
    /// Ignored variables are removed already, so the process may trust what is left.
    pub fn inherited(&self) -> Vec<(OsString, OsString)> {
        // The last ones are of Windows: what its own functions and git need.
        const KEPT: [&str; 13] = [
            MIN_EPISODICS,
            NOW,
            USER_HOME,
            USER_PROFILE,
            CLAUDE_CONFIG,
            PATH,
            "TMPDIR",
            COMPUTER_NAME,
            "SystemRoot",
            "APPDATA",
            "LOCALAPPDATA",
            "TEMP",
            "TMP",
        ];
        let settings = SETTINGS
            .iter()
            .filter_map(|setting| setting.variable.as_ref());
        let kept = KEPT.iter().chain(NETWORK_VARIABLES).chain(settings);
        let set = kept.filter_map(|name| Some((OsString::from(name), env::var_os(name)?)));
        let mut inherited: Vec<_> = self.counting(set).collect();
        if let Some(store) = &self.store {
            inherited.push((HOME_FOLDER.into(), store.into()));
        }
        inherited.push((INTERNAL.into(), "1".into()));
        inherited
    }
}

#[cfg(test)]
mod tests {
    use anamnesis_store::settings;

    use super::*;

    #[test]
    fn a_home_is_no_project_unless_it_may_name_itself() {
        let folder = tempfile::tempdir().unwrap();
        let home = dunce::canonicalize(folder.path()).unwrap();
        let roots = || without_home(vec![home.clone()], Some(&home));
        assert!(roots().is_empty());
        fs::create_dir(home.join(".claude")).unwrap();
        let settings = home.join(".claude/settings.json");
        for (text, is_project) in [
            ("{}", false),
            (r#"{"model": "opus"}"#, false),
            (r#"{"\u0065nv": {"HOME": "x"}}"#, true),
            ("{", true),
        ] {
            fs::write(&settings, text).unwrap();
            assert_eq!(!roots().is_empty(), is_project, "{text}");
        }
        fs::remove_file(&settings).unwrap();
        fs::create_dir(home.join(".git")).unwrap();
        assert_eq!(roots().as_slice(), std::slice::from_ref(&home));
    }

    #[test]
    fn the_documentation_lists_every_variable() {
        let page = include_str!("../../../docs/reference/environment.md");
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .filter_map(|line| line.split(" | <").next())
            .collect();
        let variables = VARIABLES
            .iter()
            .map(|variable| format!("| `{}` | {} |", variable.name, variable.meaning));
        let agents = AGENT_VARIABLES.iter().map(|name| format!("| `{name}`"));
        assert_eq!(rows, variables.chain(agents).collect::<Vec<_>>());
    }

    #[test]
    fn the_folder_of_a_session_without_git_is_the_projects() {
        let folder = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(folder.path()).unwrap();
        let project = root.join("account/projects/shop");
        std::fs::create_dir_all(&project).unwrap();
        let roots = project_roots(std::slice::from_ref(&project), Some(&root.join("account")));
        assert_eq!(roots, [project.as_path()]);
        for inside in [
            project.join(".h"),
            project.join("a/b"),
            project.join("../shop/.h"),
        ] {
            assert!(is_inside(&inside, &roots), "{}", inside.display());
            assert!(may_be_inside(&inside, std::slice::from_ref(&project)));
        }
        let indirect = Path::new("/proc/self/cwd/../.h");
        assert!(is_inside(indirect, &roots));
        assert!(may_be_inside(indirect, &[]));
        for outside in [root.join("account/.h"), root.join("account")] {
            assert!(!is_inside(&outside, &roots));
            assert!(!may_be_inside(&outside, std::slice::from_ref(&project)));
        }
        // A repository around the project.
        std::fs::create_dir(root.join("account/projects/.git")).unwrap();
        let beside = root.join("account/projects/.h");
        assert!(may_be_inside(&beside, &[project]));
    }

    #[test]
    fn a_repository_around_the_home_is_the_persons() {
        let folder = tempfile::tempdir().unwrap();
        let root = dunce::canonicalize(folder.path()).unwrap();
        let home = root.join("account");
        let vendored = home.join("shop/vendor/library");
        for repository in [&root, &home, &home.join("shop"), &vendored] {
            std::fs::create_dir_all(repository.join(".git")).unwrap();
        }
        std::fs::create_dir_all(home.join("plain")).unwrap();
        let roots = |name: &str| {
            let folders = session_folders(Some(home.join(name)), None);
            project_roots(&folders, Some(&home))
        };
        assert_eq!(roots("plain"), [home.join("plain")]);
        // A submodule belongs to the repository around it.
        assert_eq!(roots("shop/vendor/library"), [home.join("shop")]);
        assert!(roots("").is_empty() && roots("..").is_empty());
    }

    #[test]
    fn a_variable_over_a_setting_is_read() {
        let mut environment = Environment::read(Caller::Person);
        environment.machine_id = Some("a".to_owned());
        environment.remote = Some("b".to_owned());
        environment.is_native_off = true;
        for setting in SETTINGS {
            let known = |name: &str| VARIABLES.iter().any(|variable| variable.name == name);
            assert!(setting.variable.is_none_or(known), "{}", setting.name);
        }
        let over = |name| environment.over(settings::find(name).unwrap());
        assert_eq!(over("machine_id").as_deref(), Some("a"));
        assert_eq!(over("remote").as_deref(), Some("b"));
        assert_eq!(over("import_native").as_deref(), Some("off"));
        assert_eq!(over("sync.auto"), None);
    }
}
