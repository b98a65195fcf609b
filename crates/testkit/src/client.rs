//! Runs the real Claude Code client offline, in a temporary home.
//!
//! A [`Sandbox`] is a folder that stands for one user's machine: a home with a configured client,
//! a git project and a mock model on loopback. A [`Marketplace`] is a local repository that the
//! client takes for one on GitHub. The client gets none of the caller's environment. It cannot
//! reach the network: proxies point to a closed port, and `ssh` fails.
//!
//! A turn takes seconds, so the logic of hooks is tested without the client.

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
use crate::process::{self, Context, Finished, Result, Running, TestFailure};

/// The client's pinned version. It is defined here only.
pub const CLIENT_VERSION: &str = "2.1.332";
/// The client's package on npm; the program itself is in an optional package for the platform.
const CLIENT_PACKAGE: &str = "@anthropic-ai/claude-code";

/// Time limit for one run of the client.
const RUN_LIMIT: Duration = Duration::from_secs(90);
/// Time limit for one local git command.
const GIT_LIMIT: Duration = Duration::from_secs(30);

/// The PATH of the client and of git.
pub(crate) const SYSTEM_PATH: &str = "/usr/local/bin:/opt/homebrew/bin:/usr/bin:/bin";

/// The repository name that is passed to `plugin marketplace add`.
pub const MARKETPLACE: &str = "acme/anamnesis";
/// The plugin's name within that marketplace.
pub const PLUGIN: &str = "anamnesis@anamnesis";

/// An installed client.
#[derive(Debug)]
pub struct Client {
    binary: PathBuf,
    version: String,
}

impl Client {
    /// Uses the client at this path.
    ///
    /// # Errors
    /// Returns an error if the client does not print its version.
    pub fn at(binary: &Path) -> Result<Self> {
        let binary = dunce::canonicalize(binary).context(binary.display())?;
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

    /// Installs [`CLIENT_VERSION`] in the folder `cache` unless it is there, about 400 MB.
    ///
    /// # Errors
    /// Returns an error if npm is missing or fails, or if it installed another version.
    pub fn install(cache: &Path) -> Result<Self> {
        let folder = cache.join(format!("client-{CLIENT_VERSION}"));
        npm::install(&folder, CLIENT_PACKAGE, CLIENT_VERSION)?;
        let client = Self::at(&find_binary(&folder)?)?;
        if client.version == CLIENT_VERSION {
            Ok(client)
        } else {
            let found = client.version;
            Err(TestFailure::new(format!(
                "npm installed client {found}, not {CLIENT_VERSION}"
            )))
        }
    }

    /// Returns the client's version.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the path of the program.
    pub fn binary(&self) -> &Path {
        &self.binary
    }
}

/// Finds the program in npm's package for this platform.
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
        .ok_or_else(|| {
            TestFailure::new(format!("{}: no client for this platform", scope.display()))
        })
}

/// Returns a dummy API key. The mock never reads it.
///
/// It is assembled at run time, so that secret scanners do not report this file.
fn dummy_key() -> String {
    ["sk", "ant", "offline", "client", "test", "0000000000000000"].join("-")
}

/// Whether the client asks before it uses a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Permissions {
    /// The default: with `-p`, the client refuses tools that need permission.
    #[default]
    Default,
    /// The client runs every tool without asking.
    Skipped,
}

impl Permissions {
    /// Returns the client's command-line arguments for this mode.
    pub(crate) fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Default => &["--permission-mode", "default"],
            Self::Skipped => &["--dangerously-skip-permissions"],
        }
    }
}

/// Options of one prompt.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ask<'a> {
    /// The session to resume, or `None` for a new session.
    pub resume: Option<&'a str>,
    /// Whether the resumed session goes on as a new one, with its history.
    pub fork: bool,
    /// Whether tools need permission.
    pub permissions: Permissions,
}

/// One hook that the client ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookRun {
    /// The event with its source or tool, such as `SessionStart:compact`.
    pub name: String,
    /// The exit code, if the client reported one.
    pub exit_code: Option<i64>,
    /// The hook's stdout.
    pub stdout: String,
    /// The hook's stderr.
    pub stderr: String,
}

/// The result of a headless run of the client.
#[derive(Debug)]
pub struct ClientRun {
    /// The session's id.
    pub session: String,
    /// The model's last text.
    pub text: String,
    /// The hooks that ran, in the order in which they ended.
    pub hooks: Vec<HookRun>,
    /// The tools that the client refused for lack of permission.
    pub denied: Vec<String>,
}

impl ClientRun {
    /// Parses the client's stream of events.
    fn parse(finished: &Finished) -> Result<Self> {
        let events: Vec<Value> = finished
            .stdout
            .lines()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect();
        // The first event cannot be used: until `init`, a resumed session has another id.
        let result = events
            .iter()
            .rfind(|event| event["type"] == "result")
            .ok_or_else(|| TestFailure::new(format!("the client gave no result: {finished}")))?;
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

/// A plugin's folder, published as a git repository that the client can install from.
#[derive(Debug)]
pub struct Marketplace {
    repository: PathBuf,
}

impl Marketplace {
    /// Commits a plugin's folder to a new bare repository at an absolute path.
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
        Self::at(repository)
    }

    /// Uses a bare repository that contains a marketplace.
    ///
    /// # Errors
    /// Returns an error if there is none.
    pub fn at(repository: &Path) -> Result<Self> {
        let repository = dunce::canonicalize(repository).context(repository.display())?;
        Ok(Self { repository })
    }
}

/// A folder that stands for one user's machine.
#[derive(Debug)]
pub struct Sandbox<'a> {
    client: &'a Client,
    api: MessagesApi,
    base: PathBuf,
}

impl<'a> Sandbox<'a> {
    /// Sets up a machine in an empty folder.
    ///
    /// The project is a git repository whose `origin` is `https://github.com/acme/shop.git`.
    pub fn new(client: &'a Client, base: &Path) -> Result<Self> {
        let sandbox = Self {
            client,
            api: MessagesApi::start().context("mock of the Messages API")?,
            // The client names its folders by the project's real path.
            base: dunce::canonicalize(base).context(base.display())?,
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

    /// Returns the mock of the Messages API.
    pub fn api(&self) -> &MessagesApi {
        &self.api
    }

    /// Returns the home folder.
    pub fn home(&self) -> PathBuf {
        self.base.join("home")
    }

    /// Returns the project's folder, the working directory of the client.
    pub fn project(&self) -> PathBuf {
        self.base.join("shop")
    }

    /// Returns the path of tmux's socket. Paths of sockets have a short maximum length.
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

    /// Returns the folder from which the client runs the installed plugin.
    ///
    /// # Errors
    /// Returns an error if the plugin is not installed.
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
            .ok_or_else(|| TestFailure::new(format!("{PLUGIN} is not installed")))
    }

    /// Returns the complete environment of the client and its hooks.
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
            // Lets root skip permissions, which containers need.
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

    /// Returns a command for a program on this machine, in the project's folder.
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
    /// Any exit code counts as a result.
    ///
    /// # Errors
    /// Returns an error if the client cannot be started or exceeds its time limit.
    pub fn claude<I: AsRef<OsStr>>(
        &self,
        arguments: impl IntoIterator<Item = I>,
    ) -> Result<Finished> {
        let mut command = self.command(self.client.binary());
        process::run(command.args(arguments), RUN_LIMIT)
    }

    /// Runs a prompt headless and waits for the answer.
    ///
    /// # Errors
    /// Returns an error if the client fails or prints no result.
    pub fn ask(&self, prompt: &str, how: &Ask) -> Result<ClientRun> {
        let finished = self.begin(prompt, how)?.wait(RUN_LIMIT)?;
        ClientRun::parse(&finished.successful("claude -p")?)
    }

    /// Starts a headless prompt without waiting for the answer.
    pub fn begin(&self, prompt: &str, how: &Ask) -> Result<Running> {
        let mut command = self.command(self.client.binary());
        command.args(["-p", prompt, "--output-format", "stream-json"]);
        command.args(["--verbose", "--include-hook-events"]);
        command.args(how.permissions.arguments());
        if let Some(session) = how.resume {
            command.args(["--resume", session]);
        }
        if how.fork {
            command.arg("--fork-session");
        }
        process::start(&mut command)
    }

    /// Returns the interactive client's program, to be started in a terminal.
    pub(crate) fn interactive(&self) -> &Path {
        self.client.binary()
    }

    /// Adds a marketplace by its address on GitHub and installs the plugin from it.
    pub fn install_plugin(&self, marketplace: &Marketplace) -> Result<()> {
        // Redirects this address only, because the project's `origin` must keep working.
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
    pub fn uninstall_plugin(&self) -> Result<()> {
        self.claude(["plugin", "uninstall", PLUGIN])?
            .successful("plugin uninstall")?;
        Ok(())
    }

    /// Runs git in the project's folder.
    pub fn git<I: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = I>) -> Result<()> {
        process::run(self.command("git").args(arguments), GIT_LIMIT)?.successful("git")?;
        Ok(())
    }

    /// Answers the dialogs of the client's first start: theme, API key, trust in the project.
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

    /// Puts a failing `ssh` first on PATH, because the client tries ssh before https.
    fn refuse_ssh(&self) -> Result<()> {
        let path = self.programs().join("ssh");
        fs::write(&path, "#!/bin/sh\nexit 255\n").context("ssh")?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("ssh")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a program that prints its version or, with other arguments, its environment.
    fn stand_in(folder: &Path) -> Client {
        let path = folder.join("claude");
        let script = "#!/bin/sh\n\
            if [ \"$1\" = --version ]; then echo '2.1.0 (Claude Code)'; else env; fi\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        Client::at(&path).unwrap()
    }

    #[test]
    fn the_clients_version_is_parsed() {
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
    fn the_client_gets_a_cleared_environment() {
        let folder = tempfile::tempdir().unwrap();
        let client = stand_in(folder.path());
        let base = folder.path().join("machine");
        fs::create_dir(&base).unwrap();
        let sandbox = Sandbox::new(&client, &base).unwrap();
        let seen = sandbox.claude(["-p", "hello"]).unwrap().stdout;
        // cargo sets this variable for every test.
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
    fn a_marketplace_is_installed_by_its_github_address() {
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
    fn client_events_are_parsed() {
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
        let answer = ClientRun::parse(&finished).unwrap();
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
        let failure = ClientRun::parse(&finished).unwrap_err();
        assert!(failure.to_string().contains("no such session"), "{failure}");
    }
}
