//! Every variable of the environment that Anamnesis reads, in one place.
//!
//! The environment is read once, here; everything else is handed values.

use std::{collections::BTreeMap, env, ffi::OsString, fmt, path::PathBuf, time::Instant};

use anamnesis_core::note::parse_timestamp;
use anamnesis_distill::model::{Provider, Proxies};
use anamnesis_store::settings::Setting;
use anamnesis_sync::git::{GitEnvironment, NETWORK_VARIABLES};
use chrono::{DateTime, Utc};

/// A variable and what it does. The list in the documentation is compared with this one.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Variable {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it does, one sentence.
    pub(crate) meaning: &'static str,
}

macro_rules! variables {
    ($($constant:ident = $name:literal, $meaning:literal;)+) => {
        $(const $constant: &str = $name;)+

        /// Every variable that is read.
        pub(crate) const VARIABLES: &[Variable] = &[$(Variable { name: $name, meaning: $meaning },)+];
    };
}

variables! {
    HOME_FOLDER = "ANAMNESIS_HOME", "The store; `~/.anamnesis` without it.";
    MACHINE_ID = "ANAMNESIS_MACHINE_ID", "The name of this machine in notes; over `machine_id` in `config.json`.";
    GIT_REMOTE = "ANAMNESIS_GIT_REMOTE", "The remote; over `remote` in `config.json`.";
    PLUGIN_REMOTE = "CLAUDE_PLUGIN_OPTION_REMOTE", "The plugin's option, set by Claude Code for hooks: a new answer is copied to `remote` in `config.json`.";
    OFF = "ANAMNESIS_OFF", "Any text but `0`: hooks record nothing and give nothing.";
    IMPORT_NATIVE = "ANAMNESIS_IMPORT_NATIVE", "`0`: Claude Code's own memory is not imported; over `import_native` in `config.json`.";
    REFLECTION_PROVIDER = "ANAMNESIS_REFLECTION_PROVIDER", "Whose model sums things up; over `reflection.provider` in `config.json`.";
    REFLECTION_MODEL = "ANAMNESIS_REFLECTION_MODEL", "The model's name; over `reflection.model`.";
    REFLECTION_BASE_URL = "ANAMNESIS_REFLECTION_BASE_URL", "Where the model is; over `reflection.base_url`.";
    REFLECTION_API_KEY = "ANAMNESIS_REFLECTION_API_KEY", "The key that pays; over `reflection.api_key`.";
    REFLECTION_TIMEOUT = "ANAMNESIS_REFLECTION_TIMEOUT", "Seconds that an answer may take; over `reflection.timeout`.";
    REFLECTION_MAX_TOKENS = "ANAMNESIS_REFLECTION_MAX_TOKENS", "Tokens that are sent at once; over `reflection.max_tokens`.";
    REFLECT_AUTO = "ANAMNESIS_REFLECT_AUTO", "`1`: projects are reflected on in the background; over `reflection.auto`.";
    MIN_EPISODICS = "ANAMNESIS_REFLECT_MIN_EPISODICS", "How many session notes of a project `reflect` waits for; 5 without it.";
    DEEPSEEK_KEY = "DEEPSEEK_API_KEY", "The key of the provider `deepseek` where no other is set; read only when provider, model and base URL are.";
    OPENAI_KEY = "OPENAI_API_KEY", "The key of the provider `openai` where no other is set; read only when provider, model and base URL are.";
    HTTPS_PROXY_SMALL = "https_proxy", "The proxy on the way to a model over `https`.";
    HTTPS_PROXY = "HTTPS_PROXY", "The same, after `https_proxy`.";
    HTTP_PROXY = "http_proxy", "The proxy on the way to a model over `http`.";
    ALL_PROXY_SMALL = "all_proxy", "The proxy where the protocol has none of its own.";
    ALL_PROXY = "ALL_PROXY", "The same, after `all_proxy`.";
    NO_PROXY_SMALL = "no_proxy", "Hosts that are reached without a proxy; this machine always is.";
    NO_PROXY = "NO_PROXY", "The same, after `no_proxy`.";
    MERGE_MIN = "ANAMNESIS_MERGE_MIN_DURABLE", "How many notes a project has to have before `merge` looks at it; 5 without it.";
    MERGE_DEPTH = "ANAMNESIS_MERGE_GATE_K", "How far down the right note may stand for `merge` to count a question as answered; 8 without it.";
    INTERNAL = "ANAMNESIS_INTERNAL", "Set for what Anamnesis itself starts, so that hooks in it do nothing.";
    NOW = "ANAMNESIS_NOW", "For tests: the time that counts as now, in ISO 8601.";
    USER_HOME = "HOME", "The user's home.";
    USER_PROFILE = "USERPROFILE", "The user's home on Windows.";
    COMPUTER_NAME = "COMPUTERNAME", "The name of this machine on Windows.";
    CLAUDE_CONFIG = "CLAUDE_CONFIG_DIR", "Claude Code's folder; `~/.claude` without it.";
    CLAUDE_PROJECT = "CLAUDE_PROJECT_DIR", "The session's project; set by Claude Code for hooks and the server.";
    CLAUDE_PROCESS = "CLAUDE_PID", "Claude Code's process; set by it for hooks.";
    CLAUDE_ENTRY = "CLAUDE_CODE_ENTRYPOINT", "How Claude Code was started; a session line is shown on its screen only.";
    CLAUDE_SESSION = "CLAUDE_CODE_SESSION_ID", "The session that a command or the server runs in; set by Claude Code.";
    CLAUDE_CODE = "CLAUDECODE", "Set by Claude Code for commands it runs: what they write is the agent's.";
    VISUAL = "VISUAL", "The editor for `write` and `edit`.";
    EDITOR = "EDITOR", "The editor for `write` and `edit`, after `VISUAL`.";
    LC_ALL = "LC_ALL", "Whether the terminal takes UTF-8.";
    LC_CTYPE = "LC_CTYPE", "Whether the terminal takes UTF-8, after `LC_ALL`.";
    LANG = "LANG", "Whether the terminal takes UTF-8, after `LC_CTYPE`.";
    PATH = "PATH", "Where `doctor` and `init` look for another `anamnesis`.";
}

/// The variables that say where notes go. What a project sets of them does not count.
pub(crate) const OUTWARD_VARIABLES: [&str; 9] = [
    GIT_REMOTE,
    PLUGIN_REMOTE,
    REFLECTION_PROVIDER,
    REFLECTION_MODEL,
    REFLECTION_BASE_URL,
    REFLECTION_API_KEY,
    REFLECTION_TIMEOUT,
    REFLECTION_MAX_TOKENS,
    REFLECT_AUTO,
];

/// What the environment says of a model.
#[derive(Clone, Default)]
pub(crate) struct Reflection(BTreeMap<&'static str, String>);

impl fmt::Debug for Reflection {
    // There may be a key among them.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_set().entries(self.0.keys()).finish()
    }
}

impl Reflection {
    fn read(text: impl Fn(&str) -> Option<String>) -> Self {
        let names = OUTWARD_VARIABLES
            .into_iter()
            .filter(|name| name.starts_with("ANAMNESIS_REFLECT"));
        Self(names.filter_map(|name| Some((name, text(name)?))).collect())
    }

    /// Tells whether nothing is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// What is set for a program that is to do nothing of ours.
pub(crate) const OURS: [(&str, &str); 1] = [(INTERNAL, "1")];

/// What tells a command that Claude runs it.
pub(crate) const AGENT_VARIABLE: &str = CLAUDE_CODE;

/// What tells a program that it runs in a session of Claude Code.
pub(crate) const OF_A_SESSION: [&str; 4] =
    [CLAUDE_CODE, CLAUDE_ENTRY, CLAUDE_SESSION, CLAUDE_PROJECT];

/// The key of a provider's own variable.
pub(crate) fn provider_key(provider: Provider) -> Option<String> {
    let name = match provider {
        Provider::DeepSeek => DEEPSEEK_KEY,
        Provider::OpenAi => OPENAI_KEY,
        _ => return None,
    };
    env::var(name).ok()
}

/// How servers are reached.
pub(crate) fn proxies() -> Proxies {
    let first = |names: &[&str]| {
        let mut values = names.iter().filter_map(|name| env::var(name).ok());
        values.find(|value| !value.trim().is_empty())
    };
    Proxies {
        https: first(&[HTTPS_PROXY_SMALL, HTTPS_PROXY]),
        // The name in capitals is a header of a request where a web server starts programs.
        http: first(&[HTTP_PROXY]),
        all: first(&[ALL_PROXY_SMALL, ALL_PROXY]),
        none: first(&[NO_PROXY_SMALL, NO_PROXY]),
    }
}

/// What the environment says.
#[derive(Debug, Clone)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a variable that is set or not"
)]
pub(crate) struct Environment {
    /// The store's root, if a home can be told at all.
    pub(crate) store: Option<PathBuf>,
    /// The user's home.
    pub(crate) user_home: Option<PathBuf>,
    /// Claude Code's folder.
    pub(crate) claude_folder: Option<PathBuf>,
    /// Where Claude Code keeps its servers, among much else.
    pub(crate) claude_state: Option<PathBuf>,
    /// The session's project, for hooks.
    pub(crate) project_folder: Option<PathBuf>,
    /// The name of this machine, if one is set.
    pub(crate) machine_id: Option<String>,
    /// The remote, if one is set. It may hold a password.
    pub(crate) remote: Option<String>,
    /// What was answered when the plugin was installed, for hooks. It may hold a password.
    pub(crate) plugin_remote: Option<String>,
    /// What is set of a model, by the names of the variables. It may hold a key. An agent's is not read:
    /// its environment may come from a project.
    pub(crate) reflection: Reflection,
    /// How many session notes of a project a reflection waits for.
    pub(crate) min_episodics: usize,
    /// The name that the system gives this machine.
    pub(crate) host_name: Option<String>,
    /// Whether everything is switched off.
    pub(crate) is_off: bool,
    /// Whether Claude Code's own memory is left alone.
    pub(crate) is_native_off: bool,
    /// How many notes a project has to have to be merged.
    pub(crate) merge_min: usize,
    /// How far down a right note counts when a merge is tried.
    pub(crate) merge_depth: usize,
    /// Whether Anamnesis itself started what this runs in.
    pub(crate) is_internal: bool,
    /// Whether Claude Code runs this for the model.
    pub(crate) is_agent: bool,
    /// The session that a command of the model's runs in.
    pub(crate) session: Option<String>,
    /// Whether a person sits before Claude Code's screen.
    pub(crate) is_interactive: bool,
    /// Claude Code's process id.
    pub(crate) client_process: Option<String>,
    /// The user's editor.
    pub(crate) editor: Option<OsString>,
    /// Whether the terminal takes UTF-8.
    pub(crate) is_utf8: bool,
    /// The folders that programs are looked for in.
    pub(crate) path: Option<OsString>,
    /// The time that counts as now, from the beginning of this process to its end.
    pub(crate) now: DateTime<Utc>,
    /// When this process read its environment.
    pub(crate) started: Instant,
}

impl Environment {
    /// Reads the environment.
    pub(crate) fn read() -> Self {
        let path = |name: &str| {
            env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        let text = |name: &str| env::var(name).ok().filter(|value| !value.trim().is_empty());
        let number = |name: &str, otherwise: usize| {
            let number = text(name).and_then(|text| text.trim().parse().ok());
            number.unwrap_or(otherwise)
        };
        let user_home = path(USER_HOME)
            .or_else(|| path(USER_PROFILE))
            .filter(|home| home.is_absolute());
        let expand = |path: PathBuf| match (path.strip_prefix("~"), &user_home) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => path,
        };
        let store = path(HOME_FOLDER)
            .map(expand)
            .or_else(|| user_home.as_ref().map(|home| home.join(".anamnesis")))
            // A relative store would be another one in each folder.
            .and_then(|store| std::path::absolute(store).ok());
        let is_agent = text(CLAUDE_CODE).is_some_and(|value| value != "0");
        let locale = [LC_ALL, LC_CTYPE, LANG].iter().find_map(|name| text(name));
        Self {
            store,
            claude_folder: path(CLAUDE_CONFIG)
                .or_else(|| user_home.as_ref().map(|home| home.join(".claude"))),
            claude_state: path(CLAUDE_CONFIG)
                .or_else(|| user_home.clone())
                .map(|folder| folder.join(".claude.json")),
            project_folder: path(CLAUDE_PROJECT).filter(|folder| folder.is_absolute()),
            machine_id: text(MACHINE_ID),
            remote: text(GIT_REMOTE).map(|remote| remote.trim().to_owned()),
            plugin_remote: text(PLUGIN_REMOTE).map(|remote| remote.trim().to_owned()),
            min_episodics: text(MIN_EPISODICS)
                .and_then(|number| number.trim().parse().ok())
                .unwrap_or(5),
            host_name: host_name().or_else(|| text(COMPUTER_NAME)),
            is_off: text(OFF).is_some_and(|value| value != "0"),
            is_native_off: text(IMPORT_NATIVE).is_some_and(|value| value == "0"),
            merge_min: number(MERGE_MIN, 5),
            merge_depth: number(MERGE_DEPTH, 8),
            is_internal: text(INTERNAL).is_some(),
            reflection: if is_agent {
                Reflection::default()
            } else {
                Reflection::read(text)
            },
            is_agent,
            session: text(CLAUDE_SESSION).filter(|id| is_session_id(id)),
            is_interactive: text(CLAUDE_ENTRY).is_some_and(|entry| entry == "cli"),
            client_process: text(CLAUDE_PROCESS),
            editor: [VISUAL, EDITOR]
                .iter()
                .find_map(|name| env::var_os(name).filter(|editor| !editor.is_empty())),
            is_utf8: locale.is_none_or(|locale| {
                let locale = locale.to_ascii_lowercase();
                locale.contains("utf-8") || locale.contains("utf8")
            }),
            path: env::var_os(PATH),
            now: text(NOW)
                .and_then(|time| parse_timestamp(&time))
                .unwrap_or_else(Utc::now),
            user_home,
            started: Instant::now(),
        }
    }

    /// The same, begun now.
    pub(crate) fn at_present(&self) -> Self {
        Self {
            now: self.current_time(),
            started: Instant::now(),
            ..self.clone()
        }
    }

    /// The time that has come by now.
    pub(crate) fn current_time(&self) -> DateTime<Utc> {
        self.now + self.started.elapsed()
    }
}

/// Tells whether a text may be a session's id: it becomes a line of notes.
fn is_session_id(text: &str) -> bool {
    text.len() <= 64 && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
}

#[cfg(unix)]
fn host_name() -> Option<String> {
    let name = anamnesis_store::home::host_name();
    (!name.is_empty()).then_some(name)
}

#[cfg(not(unix))]
fn host_name() -> Option<String> {
    None
}

/// What the user's git may have of the environment.
pub(crate) fn for_git() -> GitEnvironment {
    GitEnvironment::choose(env::vars_os())
}

impl Environment {
    /// What a variable that goes over a setting says.
    pub(crate) fn over(&self, setting: &Setting) -> Option<&str> {
        match setting.variable? {
            MACHINE_ID => self.machine_id.as_deref(),
            GIT_REMOTE => self.remote.as_deref(),
            IMPORT_NATIVE => self.is_native_off.then_some("off"),
            name => self.reflection.get(name),
        }
    }
}

/// What a process of ours inherits: enough to find the store, to reach the remote and to ask the model
/// that was named for it; nothing else of the user's keys.
pub(crate) fn inherited() -> Vec<(OsString, OsString)> {
    const KEPT: [&str; 19] = [
        HOME_FOLDER,
        MACHINE_ID,
        GIT_REMOTE,
        IMPORT_NATIVE,
        REFLECTION_PROVIDER,
        REFLECTION_MODEL,
        REFLECTION_BASE_URL,
        REFLECTION_API_KEY,
        REFLECTION_TIMEOUT,
        REFLECTION_MAX_TOKENS,
        REFLECT_AUTO,
        MIN_EPISODICS,
        NOW,
        USER_HOME,
        USER_PROFILE,
        CLAUDE_CONFIG,
        PATH,
        "TMPDIR",
        "SystemRoot",
    ];
    let mut kept: Vec<(OsString, OsString)> = KEPT
        .iter()
        .chain(NETWORK_VARIABLES)
        .filter_map(|name| Some((OsString::from(name), env::var_os(name)?)))
        .collect();
    kept.push((INTERNAL.into(), "1".into()));
    kept
}

#[cfg(test)]
mod tests {
    use anamnesis_store::settings::SETTINGS;

    use super::*;

    #[test]
    fn the_documentation_lists_every_variable() {
        let page = include_str!("../../../docs/environment.md");
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        let expected: Vec<String> = VARIABLES
            .iter()
            .map(|variable| format!("| `{}` | {} |", variable.name, variable.meaning))
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn a_variable_over_a_setting_is_read() {
        let mut environment = Environment::read();
        environment.machine_id = Some("a".to_owned());
        environment.remote = Some("b".to_owned());
        environment.is_native_off = true;
        environment.reflection = Reflection::read(|name| Some(name.to_owned()));
        for setting in SETTINGS {
            let known = |name: &str| VARIABLES.iter().any(|variable| variable.name == name);
            assert!(setting.variable.is_none_or(known), "{}", setting.name);
            assert_eq!(
                environment.over(setting).is_some(),
                setting.variable.is_some(),
                "{}",
                setting.name
            );
        }
    }
}
