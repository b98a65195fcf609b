//! The real Claude Code client, offline: installed once from npm, run in a throw-away home.
//!
//! A [`Sandbox`] is a person's machine in a folder: a home with a client that was set up before, a
//! project in git and a model on loopback. A [`Marketplace`] is a local repository that the client
//! believes to be on GitHub. Nothing of the caller's environment reaches the client, and nothing that the client
//! sends can leave the machine: proxies point to a port that refuses, `ssh` fails at once.
//!
//! Slow (a turn takes seconds): what a hook does by itself is tested without the client.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::messages_api::MessagesApi;
use crate::npm;
use crate::process::{self, Context, Failure, Finished, Result, Running};

/// The version of the client that the tests run; the one place where it is pinned.
pub const CLIENT_VERSION: &str = "2.1.330";
/// The client's package on npm; the program itself is in an optional package for the platform.
const CLIENT_PACKAGE: &str = "@anthropic-ai/claude-code";

/// How long one run of the client may take.
const RUN_LIMIT: Duration = Duration::from_secs(90);
/// How long a local git command may take.
const GIT_LIMIT: Duration = Duration::from_secs(30);

/// Where the client and git look for programs.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin";

/// The repository that the marketplace is added by, as a user would type it.
const MARKETPLACE: &str = "acme/anamnesis";
/// The plugin in it.
const PLUGIN: &str = "anamnesis@anamnesis";

/// A client that can be run.
#[derive(Debug)]
pub struct Client {
    binary: PathBuf,
    version: String,
}

impl Client {
    /// Takes a client that is there already.
    ///
    /// # Errors
    /// If it does not tell its version.
    pub fn at(binary: &Path) -> Result<Self> {
        let binary = fs::canonicalize(binary).context(binary.display())?;
        let home = tempfile::tempdir().context("temporary folder")?;
        let mut command = Command::new(&binary);
        command
            .arg("--version")
            .env_clear()
            .env("HOME", home.path());
        let finished = process::run(&mut command, RUN_LIMIT)?.successful(binary.display())?;
        let version = finished
            .stdout
            .split_whitespace()
            .next()
            .unwrap_or_default();
        Ok(Self {
            version: version.to_owned(),
            binary,
        })
    }

    /// Returns the client of [`CLIENT_VERSION`], installing it below `cache` if it is not there.
    ///
    /// Takes about 400 MB.
    ///
    /// # Errors
    /// If `npm` is missing or fails, or if what it installed is not that version.
    pub fn install(cache: &Path) -> Result<Self> {
        let folder = cache.join(format!("client-{CLIENT_VERSION}"));
        npm::install(&folder, CLIENT_PACKAGE, CLIENT_VERSION)?;
        let client = Self::at(&find_binary(&folder)?)?;
        if client.version == CLIENT_VERSION {
            Ok(client)
        } else {
            let found = client.version;
            Err(Failure::new(format!(
                "npm installed client {found}, not {CLIENT_VERSION}"
            )))
        }
    }

    /// Returns the version that the client told.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the program.
    pub fn binary(&self) -> &Path {
        &self.binary
    }
}

/// Finds the program in the package for this platform.
fn find_binary(folder: &Path) -> Result<PathBuf> {
    let scope = folder.join("node_modules/@anthropic-ai");
    fs::read_dir(&scope)
        .context(scope.display())?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.file_name()
                .and_then(OsStr::to_str)
                .is_some_and(|name| name.starts_with("claude-code-"))
        })
        .map(|path| path.join("claude"))
        .find(|path| path.is_file())
        .ok_or_else(|| Failure::new(format!("{}: no client for this platform", scope.display())))
}

/// Returns the key that the client is given: no key of anybody's, and the mock never reads it.
///
/// It is put together here so that no scanner takes this file for one that holds a secret.
fn dummy_key() -> String {
    ["sk", "ant", "offline", "client", "test", "0000000000000000"].join("-")
}

/// Whether the client asks before it uses a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// As a user has it who changed nothing; what would need a dialog is refused under `-p`.
    #[default]
    Default,
    /// Every tool runs unasked.
    Skipped,
}

impl Permissions {
    /// What the client is started with.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Default => &["--permission-mode", "default"],
            Self::Skipped => &["--dangerously-skip-permissions"],
        }
    }
}

/// How a prompt is asked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The session that goes on; a new one if none.
    pub resume: Option<&'a str>,
    /// Whether tools need permission.
    pub permissions: Permissions,
}

/// One hook that the client ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRun {
    /// Its event, with the source or tool if it has one, such as `SessionStart:compact`.
    pub name: String,
    /// Its exit code, if the client told one.
    pub exit_code: Option<i64>,
    /// What it printed.
    pub stdout: String,
    /// What it complained of.
    pub stderr: String,
}

/// What a headless run of the client gave.
#[derive(Debug)]
pub struct Answer {
    /// The session that it belongs to.
    pub session: String,
    /// The model's last text.
    pub text: String,
    /// The hooks that it ran, in the order in which they ended.
    pub hooks: Vec<HookRun>,
    /// The tools that were refused for want of permission.
    pub denied: Vec<String>,
}

impl Answer {
    /// Reads the client's stream of events.
    fn parse(finished: &Finished) -> Result<Self> {
        let events: Vec<Value> = finished
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        // Not the first event's session: before `init` a continued session carries another id.
        let result = events
            .iter()
            .rfind(|event| event["type"] == "result")
            .ok_or_else(|| Failure::new(format!("the client gave no result: {finished}")))?;
        let text_of = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let hooks = events
            .iter()
            .filter(|event| event["subtype"] == "hook_response")
            .map(|event| HookRun {
                name: text_of(&event["hook_name"]),
                exit_code: event["exit_code"].as_i64(),
                stdout: text_of(&event["stdout"]),
                stderr: text_of(&event["stderr"]),
            })
            .collect();
        let denied = result["permission_denials"].as_array();
        Ok(Self {
            session: text_of(&result["session_id"]),
            text: text_of(&result["result"]),
            hooks,
            denied: denied
                .into_iter()
                .flatten()
                .map(|denial| text_of(&denial["tool_name"]))
                .collect(),
        })
    }
}

/// A plugin's folder as a git repository that a client can be pointed at.
#[derive(Debug)]
pub struct Marketplace {
    repository: PathBuf,
}

impl Marketplace {
    /// Commits a plugin's folder, as it is, to a new bare repository at an absolute path.
    ///
    /// # Errors
    /// If git fails.
    pub fn publish(plugin: &Path, repository: &Path) -> Result<Self> {
        let as_person = ["-c", "user.name=Dev", "-c", "user.email=dev@example.com"];
        let in_folder = ["-c", "core.bare=false", "--work-tree=."];
        for arguments in [
            &["init", "--quiet", "--bare", "--initial-branch=main"][..],
            &[&in_folder[..], &["add", "--all", "--force", "."]].concat(),
            &[
                &in_folder[..],
                &as_person,
                &["commit", "--quiet", "--message=Release"],
            ]
            .concat(),
        ] {
            let mut git = Command::new("git");
            git.current_dir(plugin).env_clear().envs([
                ("PATH", OsStr::new(SYSTEM_PATH)),
                ("GIT_CONFIG_NOSYSTEM", OsStr::new("1")),
                ("HOME", repository.as_os_str()),
                ("GIT_DIR", repository.as_os_str()),
            ]);
            process::run(git.args(arguments), GIT_LIMIT)?.successful("git")?;
        }
        let repository = fs::canonicalize(repository).context(repository.display())?;
        Ok(Self { repository })
    }
}

/// A person's machine in a folder.
#[derive(Debug)]
pub struct Sandbox<'a> {
    client: &'a Client,
    api: MessagesApi,
    base: PathBuf,
}

impl<'a> Sandbox<'a> {
    /// Sets up a machine in a folder that exists and is empty.
    ///
    /// The project is a git repository whose `origin` is `https://github.com/acme/shop.git`.
    ///
    /// # Errors
    /// If the folder cannot be filled, `git` fails or the mock does not start.
    pub fn new(client: &'a Client, base: &Path) -> Result<Self> {
        let sandbox = Self {
            client,
            api: MessagesApi::start().context("mock of the Messages API")?,
            // The client names folders after the project's real path.
            base: fs::canonicalize(base).context(base.display())?,
        };
        for folder in [
            sandbox.config(),
            sandbox.project(),
            sandbox.temporary(),
            sandbox.programs(),
        ] {
            fs::create_dir_all(&folder).context(folder.display())?;
        }
        sandbox.settle_client()?;
        sandbox.refuse_ssh()?;
        sandbox.git(["config", "--global", "user.name", "Dev"])?;
        sandbox.git(["config", "--global", "user.email", "dev@example.com"])?;
        sandbox.git(["init", "--quiet", "--initial-branch=main"])?;
        sandbox.git([
            "remote",
            "add",
            "origin",
            "https://github.com/acme/shop.git",
        ])?;
        Ok(sandbox)
    }

    /// Returns the model's side.
    pub fn api(&self) -> &MessagesApi {
        &self.api
    }

    /// Returns the home folder.
    pub fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// Returns the project's folder, which every run of the client starts in.
    pub fn project(&self) -> PathBuf {
        self.base.join("shop")
    }

    /// Returns the path of the socket by which the terminal is reached; such paths must be short.
    pub(crate) fn socket(&self) -> PathBuf {
        self.base.join("tmux")
    }

    fn temporary(&self) -> PathBuf {
        self.base.join("tmp")
    }

    fn config(&self) -> PathBuf {
        self.home().join(".claude")
    }

    fn programs(&self) -> PathBuf {
        self.base.join("bin")
    }

    /// Returns the folder that the client runs the installed plugin from.
    ///
    /// # Errors
    /// If the plugin is not installed.
    pub fn plugin_root(&self) -> Result<PathBuf> {
        let listed = self
            .claude(["plugin", "list", "--json"])?
            .successful("plugin list")?;
        let plugins: Value = serde_json::from_str(&listed.stdout).context("plugin list")?;
        let ours = plugins
            .as_array()
            .into_iter()
            .flatten()
            .find(|plugin| plugin["id"] == PLUGIN);
        ours.and_then(|plugin| plugin["installPath"].as_str())
            .map(PathBuf::from)
            .ok_or_else(|| Failure::new(format!("{PLUGIN} is not installed")))
    }

    /// Returns the whole environment of the client, and so of its hooks.
    fn environment(&self) -> BTreeMap<&'static str, String> {
        let show = |path: PathBuf| path.to_string_lossy().into_owned();
        // Nothing listens on the discard port.
        let refused = || "http://127.0.0.1:9".to_owned();
        let programs = show(self.programs());
        let mut environment = BTreeMap::from([
            ("PATH", format!("{programs}:{SYSTEM_PATH}")),
            ("HOME", show(self.home())),
            ("CLAUDE_CONFIG_DIR", show(self.config())),
            ("TMPDIR", show(self.temporary())),
            ("CLAUDE_CODE_TMPDIR", show(self.temporary())),
            ("ANTHROPIC_API_KEY", dummy_key()),
            ("ANTHROPIC_BASE_URL", self.api.url()),
            ("HTTP_PROXY", refused()),
            ("HTTPS_PROXY", refused()),
            ("NO_PROXY", "127.0.0.1,localhost,::1".to_owned()),
        ]);
        for (name, value) in [
            ("LANG", "C.UTF-8"),
            ("TERM", "xterm-256color"),
            ("SHELL", "/bin/sh"),
            ("USER", "dev"),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_TERMINAL_PROMPT", "0"),
            // Lets root skip permissions, as containers need it.
            ("IS_SANDBOX", "1"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL", "1"),
            ("DISABLE_AUTOUPDATER", "1"),
            ("DISABLE_ERROR_REPORTING", "1"),
            ("DISABLE_INSTALLATION_CHECKS", "1"),
            ("DISABLE_TELEMETRY", "1"),
        ] {
            environment.insert(name, value.to_owned());
        }
        environment
    }

    /// Returns a program of this machine, ready to be started in the project's folder.
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .envs(self.environment());
        command
    }

    /// Runs the client with these arguments.
    ///
    /// # Errors
    /// If it cannot be started or does not end in time; any exit code is a result.
    pub fn claude<I: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = I>,
    ) -> Result<Finished> {
        let mut command = self.command(self.client.binary());
        process::run(command.args(arguments), RUN_LIMIT)
    }

    /// Asks a prompt headless and waits for the answer.
    ///
    /// # Errors
    /// If the client fails, or ends in no result.
    pub fn ask(&self, prompt: &str, how: &Ask) -> Result<Answer> {
        let finished = self.begin(prompt, how)?.wait(RUN_LIMIT)?;
        Answer::parse(&finished.successful("claude -p")?)
    }

    /// Asks a prompt headless and does not wait.
    ///
    /// # Errors
    /// If the client cannot be started.
    pub fn begin(&self, prompt: &str, how: &Ask) -> Result<Running> {
        let mut command = self.command(self.client.binary());
        command.args(["-p", prompt, "--output-format", "stream-json"]);
        command.args(["--verbose", "--include-hook-events"]);
        command.args(how.permissions.arguments());
        if let Some(session) = how.resume {
            command.args(["--resume", session]);
        }
        process::start(&mut command)
    }

    /// Returns the interactive client, to be started in a terminal.
    pub(crate) fn interactive(&self) -> &Path {
        self.client.binary()
    }

    /// Adds a marketplace under the address that it would have on GitHub, and installs the plugin
    /// from there.
    ///
    /// # Errors
    /// If the client refuses the marketplace or the plugin.
    pub fn install_plugin(&self, marketplace: &Marketplace) -> Result<()> {
        // This one address only: the project's `origin` has to stay what it is.
        let local = format!("url.file://{}.insteadOf", marketplace.repository.display());
        let public = format!("https://github.com/{MARKETPLACE}.git");
        self.git(["config", "--global", &local, &public])?;
        self.claude(["plugin", "marketplace", "add", MARKETPLACE])?
            .successful("marketplace add")?;
        self.claude(["plugin", "install", PLUGIN])?
            .successful("plugin install")?;
        Ok(())
    }

    /// Uninstalls the plugin.
    ///
    /// # Errors
    /// If the client refuses.
    pub fn uninstall_plugin(&self) -> Result<()> {
        self.claude(["plugin", "uninstall", PLUGIN])?
            .successful("plugin uninstall")?;
        Ok(())
    }

    /// Runs git in the project's folder.
    fn git<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Result<()> {
        process::run(self.command("git").args(arguments), GIT_LIMIT)?.successful("git")?;
        Ok(())
    }

    /// Answers the questions of the client's first start: theme, key, trust in the project.
    fn settle_client(&self) -> Result<()> {
        let key = dummy_key();
        let key_end = &key[key.len().saturating_sub(20)..];
        let state = json!({
            "hasCompletedOnboarding": true,
            "lastOnboardingVersion": self.client.version,
            "theme": "dark",
            "customApiKeyResponses": { "approved": [key_end], "rejected": [] },
            "bypassPermissionsModeAccepted": true,
            "officialMarketplaceAutoInstallAttempted": true,
            "projects": {
                self.project().to_string_lossy(): {
                    "hasTrustDialogAccepted": true,
                    "hasCompletedProjectOnboarding": true,
                },
            },
        });
        let settings = json!({ "skipDangerousModePermissionPrompt": true });
        for (name, content) in [(".claude.json", state), ("settings.json", settings)] {
            fs::write(self.config().join(name), content.to_string()).context(name)?;
        }
        Ok(())
    }

    /// Puts an `ssh` first on PATH that fails: the client tries it before it clones by https.
    fn refuse_ssh(&self) -> Result<()> {
        let path = self.programs().join("ssh");
        fs::write(&path, "#!/bin/sh\nexit 255\n").context("ssh")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("ssh")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts a program into a folder that tells its version and else prints its environment.
    fn stand_in(folder: &Path) -> Client {
        let path = folder.join("claude");
        let script = "#!/bin/sh\n\
            if [ \"$1\" = --version ]; then echo '2.1.0 (Claude Code)'; else env; fi\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Client::at(&path).unwrap()
    }

    #[test]
    fn the_client_tells_its_version() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(stand_in(folder.path()).version(), "2.1.0");
        let failure = Client::at(&folder.path().join("no-claude")).unwrap_err();
        assert!(failure.to_string().contains("no-claude"), "{failure}");
    }

    #[test]
    fn the_program_is_found_in_the_package_of_the_platform() {
        let folder = tempfile::tempdir().unwrap();
        let scope = folder.path().join("node_modules/@anthropic-ai");
        fs::create_dir_all(scope.join("claude-code")).unwrap();
        fs::write(scope.join("claude-code/claude"), "").unwrap();
        let failure = find_binary(folder.path()).unwrap_err();
        assert!(
            failure.to_string().ends_with("no client for this platform"),
            "{failure}"
        );
        fs::create_dir_all(scope.join("claude-code-linux-x64")).unwrap();
        fs::write(scope.join("claude-code-linux-x64/claude"), "").unwrap();
        let found = find_binary(folder.path()).unwrap();
        assert!(
            found.ends_with("claude-code-linux-x64/claude"),
            "{}",
            found.display()
        );
    }

    #[test]
    fn nothing_of_the_callers_environment_reaches_the_client() {
        let folder = tempfile::tempdir().unwrap();
        let client = stand_in(folder.path());
        let base = folder.path().join("machine");
        fs::create_dir(&base).unwrap();
        let sandbox = Sandbox::new(&client, &base).unwrap();
        let seen = sandbox.claude(["-p", "hello"]).unwrap().stdout;
        // cargo sets variables of this name for every test.
        assert!(std::env::var_os("CARGO_MANIFEST_DIR").is_some());
        assert!(!seen.contains("CARGO_MANIFEST_DIR"), "{seen}");
        let home = format!("HOME={}\n", sandbox.home().display());
        let api = format!("ANTHROPIC_BASE_URL={}\n", sandbox.api().url());
        for line in [home.as_str(), &api, "HTTPS_PROXY=http://127.0.0.1:9\n"] {
            assert!(seen.contains(line), "{line} is not in\n{seen}");
        }
        let ssh = process::run(
            sandbox.command("sh").args(["-c", "ssh -T git@github.com"]),
            GIT_LIMIT,
        );
        assert_eq!(ssh.unwrap().code, Some(255));
    }

    #[test]
    fn a_marketplace_is_reached_by_its_public_address() {
        let folder = tempfile::tempdir().unwrap();
        let client = stand_in(folder.path());
        let plugin = folder.path().join("plugin");
        fs::create_dir_all(plugin.join("bin")).unwrap();
        fs::write(plugin.join(".gitignore"), "bin\n").unwrap();
        fs::write(plugin.join("bin/anamnesis"), "#!/bin/sh\n").unwrap();
        let marketplace =
            Marketplace::publish(&plugin, &folder.path().join("a marketplace.git")).unwrap();
        assert!(!plugin.join(".git").exists());

        let base = folder.path().join("machine");
        fs::create_dir(&base).unwrap();
        let sandbox = Sandbox::new(&client, &base).unwrap();
        sandbox.install_plugin(&marketplace).unwrap();
        sandbox
            .git([
                "clone",
                "--quiet",
                "https://github.com/acme/anamnesis.git",
                "../clone",
            ])
            .unwrap();
        assert!(
            base.join("clone/bin/anamnesis").exists(),
            "an ignored file is missing"
        );
        let origin = process::run(
            sandbox.command("git").args(["remote", "get-url", "origin"]),
            GIT_LIMIT,
        );
        assert_eq!(origin.unwrap().stdout, "https://github.com/acme/shop.git\n");
    }

    #[test]
    fn the_clients_events_are_read() {
        let stdout = [
            json!({ "type": "system", "subtype": "hook_response", "hook_name": "SessionStart:startup",
                "exit_code": 0, "stdout": "{}", "stderr": "", "session_id": "not-yet" }),
            json!({ "type": "system", "subtype": "init", "session_id": "5d7c" }),
            json!({ "type": "result", "subtype": "success", "session_id": "5d7c", "result": "Done.",
                "permission_denials": [{ "tool_name": "Bash", "tool_use_id": "toolu_1" }] }),
        ];
        let mut finished = Finished {
            code: Some(0),
            stdout: format!(
                "a line of text\n{}\n{}\n{}\n",
                stdout[0], stdout[1], stdout[2]
            ),
            stderr: String::new(),
        };
        let answer = Answer::parse(&finished).unwrap();
        assert_eq!(answer.session, "5d7c");
        assert_eq!(answer.text, "Done.");
        assert_eq!(answer.denied, ["Bash"]);
        let [hook] = answer.hooks.as_slice() else {
            panic!("{answer:?}");
        };
        assert_eq!(
            (hook.name.as_str(), hook.exit_code),
            ("SessionStart:startup", Some(0))
        );
        finished.stdout = "Error: no such session\n".to_owned();
        let failure = Answer::parse(&finished).unwrap_err();
        assert!(failure.to_string().contains("no such session"), "{failure}");
    }
}
