//! A temporary home for tests, and runs of the binary in it.
//!
//! Every run has a cleared environment, a fixed clock, a fixed machine name and UTF-8, so that a
//! test prints the same bytes everywhere. The settings of the store trust the clock and the name.
//! [`Output`] replaces the path of the temporary folder by `[ROOT]`. Background processes of hooks
//! are waited for before the folder is removed.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex, PoisonError, Weak},
    thread,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{viewer::Viewer, wait::poll};

/// The current time of every run.
pub const NOW: &str = "2026-01-02T03:04:05Z";

/// The project key of every home.
pub const PROJECT: &str = "github.com/acme/shop";

/// Names the program to test instead of the one that cargo built, such as a released one.
pub const TESTED_PROGRAM: &str = "ANAMNESIS_TESTED_PROGRAM";

/// Returns the program under test: the one that cargo built, unless [`TESTED_PROGRAM`] names another.
pub fn tested_program(built: &str) -> String {
    std::env::var(TESTED_PROGRAM).unwrap_or_else(|_| built.to_owned())
}

/// The variable that names the user's home.
pub const USER_HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// What stands for the path of the temporary folder in [`Output`].
const ROOT: &str = "[ROOT]";

/// Time limit for background processes.
const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(60);

/// How often [`TestHome::settle`] looks for them. A process that starts has no lock yet.
const CHECK_INTERVAL: Duration =
    Duration::from_millis(if cfg!(target_os = "linux") { 4 } else { 60 });

/// Returns every file below a folder, sorted. Skips files that are removed meanwhile.
///
/// # Panics
/// Panics if the folder does not exist, because a test would then check nothing.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    assert!(folder.is_dir(), "{} is not there", folder.display());
    let mut found = Vec::new();
    let mut pending = vec![folder.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                pending.push(path);
            } else {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Opens a terminal: the side of its user, and that of the program.
#[cfg(unix)]
fn terminal() -> (std::os::fd::OwnedFd, File) {
    use rustix::pty;

    let main = pty::openpt(pty::OpenptFlags::RDWR | pty::OpenptFlags::NOCTTY)
        .expect("a terminal can be opened");
    pty::grantpt(&main).expect("it is ours");
    pty::unlockpt(&main).expect("it is ours");
    let name = pty::ptsname(&main, Vec::new()).expect("it has a name");
    let mut options = File::options();
    let terminal = options
        .read(true)
        .write(true)
        .open(OsStr::new(name.to_str().expect("a device is ASCII")))
        .expect("it can be opened");
    (main, terminal)
}

/// Writes settings that let hooks and servers use `ANAMNESIS_HOME` and the clock of a test.
pub fn trust_store(user_home: &Path) -> std::io::Result<()> {
    let folder = user_home.join(".anamnesis");
    fs::create_dir_all(&folder)?;
    let names = ["ANAMNESIS_HOME", "ANAMNESIS_NOW"];
    let settings = json!({ "trusted_variables": names });
    fs::write(folder.join("config.json"), settings.to_string())
}

/// Keeps the deferred process of a home from working.
#[derive(Debug)]
pub struct HeldBackground {
    _lock: File,
    _mark: Arc<()>,
}

/// A user's home with an empty store, Claude Code's folder and one git project.
#[derive(Debug)]
pub struct TestHome {
    root: PathBuf,
    program: PathBuf,
    trusts_variables: bool,
    /// Whether the test keeps the deferred process from working.
    held: Mutex<Weak<()>>,
    // Declared last, so that the folder is dropped last.
    _folder: TempDir,
}

impl TestHome {
    /// Creates a home for runs of `program`, without a store.
    ///
    /// # Panics
    /// Panics if a folder cannot be created.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self::with_settings(program.into(), true)
    }

    /// Creates a home whose `config.json` only the program and the test write. Hooks, servers and
    /// agents in it ignore the fixed clock and machine name.
    ///
    /// # Panics
    /// Panics if a folder cannot be created.
    pub fn untouched(program: impl Into<PathBuf>) -> Self {
        Self::with_settings(program.into(), false)
    }

    fn with_settings(program: PathBuf, trusts_variables: bool) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        // The client names files by their real path.
        let root = dunce::canonicalize(folder.path()).expect("it was just made");
        let home = Self {
            root,
            program,
            trusts_variables,
            held: Mutex::default(),
            _folder: folder,
        };
        make(&home.user());
        make(&home.claude());
        make(&home.root.join("bin"));
        git_repository(&home.project(), Some("git@github.com:acme/shop.git"));
        home
    }

    /// Returns the folder that contains everything.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the user's home.
    pub fn user(&self) -> PathBuf {
        self.root.join("home")
    }

    /// Returns the store, `~/.anamnesis`.
    pub fn store(&self) -> PathBuf {
        self.user().join(".anamnesis")
    }

    /// Returns Claude Code's folder, `~/.claude`.
    pub fn claude(&self) -> PathBuf {
        self.user().join(".claude")
    }

    /// Returns the project's folder, a clone of [`PROJECT`].
    pub fn project(&self) -> PathBuf {
        self.root.join("shop")
    }

    /// Returns a command in the project's folder with empty stdin.
    pub fn command<I>(&self, arguments: I) -> Invocation<'_>
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .current_dir(self.project())
            .env_clear()
            .env(USER_HOME, self.user())
            .env("ANAMNESIS_HOME", self.store())
            .env("CLAUDE_CONFIG_DIR", self.claude())
            .env("PATH", self.root.join("bin"))
            .env("TMPDIR", &self.root)
            .env("ANAMNESIS_NOW", NOW)
            .env("ANAMNESIS_MACHINE_ID", "laptop")
            .env("LANG", "C.UTF-8");
        Invocation {
            home: self,
            command,
            input: Vec::new(),
        }
    }

    /// Runs a command line that is split at spaces.
    pub fn run(&self, words: &str) -> Output {
        self.command(words.split_whitespace()).run()
    }

    /// Returns a hook as the client starts it, with `payload` on stdin.
    pub fn hook_with(&self, payload: impl Into<Vec<u8>>) -> Invocation<'_> {
        self.command(["hook"])
            .env("CLAUDE_PROJECT_DIR", self.project())
            .input(payload)
    }

    /// Runs a hook with this payload.
    pub fn hook(&self, payload: &Value) -> Output {
        self.hook_with(payload.to_string()).run()
    }

    /// Returns an event's payload with the fields that all events have.
    pub fn payload(&self, event: &str, session: &str) -> Value {
        json!({
            "session_id": session,
            "transcript_path": self.transcript_path(session),
            "cwd": self.project(),
            "hook_event_name": event,
        })
    }

    /// Returns the payload of a `SessionStart`.
    pub fn start(&self, session: &str, source: &str) -> Value {
        let mut payload = self.payload("SessionStart", session);
        payload["source"] = source.into();
        payload
    }

    /// Returns the path of a session's transcript.
    pub fn transcript_path(&self, session: &str) -> PathBuf {
        self.claude()
            .join("projects/-shop")
            .join(format!("{session}.jsonl"))
    }

    /// Writes a session's transcript, one line per turn.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn write_transcript(&self, session: &str, turns: &[Value]) -> PathBuf {
        let path = self.transcript_path(session);
        let mut text = String::new();
        for turn in turns {
            let mut record = json!({
                "cwd": self.project(),
                "sessionId": session,
                "version": "2.1.330",
                "gitBranch": "main",
                "isSidechain": false,
                "timestamp": NOW,
            });
            for (key, value) in turn.as_object().into_iter().flatten() {
                record[key] = value.clone();
            }
            text.push_str(&record.to_string());
            text.push('\n');
        }
        write(&path, text);
        path
    }

    /// Writes a file of the store. `path` is relative to the store.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.store().join(path);
        write(&path, bytes);
        self.close(&path);
        if path.ends_with("config.json") {
            self.trust_variables();
        }
        path
    }

    /// Adds `trusted_variables` to the settings, so that sessions use the variables of a test. Leaves
    /// settings alone that are invalid or have the key.
    fn trust_variables(&self) {
        let path = self.store().join("config.json");
        let text = fs::read_to_string(&path).unwrap_or_else(|_| "{}".to_owned());
        let settings: Option<serde_json::Map<_, _>> = serde_json::from_str(&text).ok();
        let own = settings.filter(|settings| !settings.contains_key("trusted_variables"));
        let (true, Some(settings), Some((head, tail))) =
            (self.trusts_variables, own, text.rsplit_once('}'))
        else {
            return;
        };
        let comma = if settings.is_empty() { "" } else { ", " };
        let trusted = json!([
            "ANAMNESIS_MACHINE_ID",
            "ANAMNESIS_NOW",
            "ANAMNESIS_REFLECT_MIN_EPISODICS"
        ]);
        let text = format!(
            "{}{comma}\"trusted_variables\": {trusted}}}{tail}",
            head.trim_end()
        );
        // The program takes a new time for a change by the person.
        let modified = fs::metadata(&path).and_then(|file| file.modified());
        let modified = modified.unwrap_or(SystemTime::UNIX_EPOCH);
        // A test may have made the store unusable on purpose.
        let is_new = fs::create_dir(self.store()).is_ok();
        if fs::write(&path, text).is_ok() {
            make_private(&path);
            let file = File::options()
                .write(true)
                .open(&path)
                .expect("it was just written");
            file.set_modified(modified).expect("it is ours");
        }
        if is_new {
            make_private(&self.store());
        }
    }

    /// Makes a file and its folders in the store private to the user.
    fn close(&self, path: &Path) {
        for path in path
            .ancestors()
            .take_while(|path| path.starts_with(self.store()))
        {
            make_private(path);
        }
    }

    /// Writes a note into the tree of its scope.
    ///
    /// # Panics
    /// Panics if the file cannot be written.
    pub fn add(&self, note: &NoteText) -> PathBuf {
        self.write(&note.path(), note.text())
    }

    /// Returns the text of a file of the store.
    ///
    /// # Panics
    /// Panics if the file cannot be read.
    pub fn read(&self, path: &str) -> String {
        let path = self.store().join(path);
        fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    /// Returns the paths of all `.md` files in the store's trees, relative to the store.
    pub fn notes(&self) -> Vec<String> {
        let folders = ["memory", "local"].map(|name| self.store().join(name));
        let found = folders
            .iter()
            .filter(|folder| folder.is_dir())
            .flat_map(|folder| files_below(folder));
        let notes = found.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
        let mut names: Vec<String> = notes
            .filter_map(|path| {
                let path = path.strip_prefix(self.store()).ok()?;
                Some(with_slashes(path))
            })
            .collect();
        names.sort();
        names
    }

    /// Returns the lines of the log, or none if there is no log.
    pub fn log(&self) -> Vec<String> {
        let text = fs::read_to_string(self.store().join("log/anamnesis.log")).unwrap_or_default();
        let root = self.root.to_string_lossy();
        text.lines().map(|line| without_root(line, &root)).collect()
    }

    /// Keeps the deferred process from working until the result is dropped.
    ///
    /// # Panics
    /// Panics if the store has no lock for it.
    pub fn hold_background(&self) -> HeldBackground {
        let lock = File::create(self.store().join("derived/work.lock")).expect("a store");
        lock.lock().expect("nothing else holds it for long");
        let mark = Arc::new(());
        *self.held.lock().unwrap_or_else(PoisonError::into_inner) = Arc::downgrade(&mark);
        HeldBackground {
            _lock: lock,
            _mark: mark,
        }
    }

    /// Waits until no background process of this home is running.
    ///
    /// # Panics
    /// Panics if a process exceeds the time limit.
    pub fn settle(&self) {
        // A process has no environment, or no lock, for a moment while it starts, and may start the
        // next one while the list is read. So several checks in a row must find none.
        let mut quiet = 0;
        let ended = poll(BACKGROUND_TIMEOUT, CHECK_INTERVAL, || {
            quiet = if self.is_busy() { 0 } else { quiet + 1 };
            (quiet == 5).then_some(())
        });
        assert!(
            ended.is_some(),
            "a background process of this test does not end"
        );
    }

    /// Does what hooks left to the background, here and now.
    ///
    /// A process that a hook started may hold the lock: `internal work` alone would end at once.
    ///
    /// # Panics
    /// Panics if the work fails, or another process exceeds the time limit.
    pub fn work(&self) {
        self.settle();
        self.run("internal work").well();
    }

    /// Returns whether a background process of this home is running; see [`TestHome::settle`].
    ///
    /// On Linux it has this home's path in its environment. Elsewhere it holds the lock of the deferred
    /// process.
    pub fn is_busy(&self) -> bool {
        if cfg!(not(target_os = "linux")) {
            let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if held.strong_count() > 0 {
                return false;
            }
            // A test may have stores beside its own.
            let files = files_below(&self.root).into_iter();
            let mut locks = files.filter(|path| path.ends_with("derived/work.lock"));
            return locks.any(|path| File::open(path).is_ok_and(|lock| lock.try_lock().is_err()));
        }
        let own = std::process::id().to_string();
        let root = self.root.as_os_str().as_encoded_bytes();
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .flatten()
            .filter(|entry| entry.file_name() != *own)
            .filter_map(|entry| fs::read(entry.path().join("environ")).ok())
            .any(|environment| environment.windows(root.len()).any(|window| window == root))
    }
}

impl Drop for TestHome {
    fn drop(&mut self) {
        if !thread::panicking() {
            self.settle();
        }
    }
}

/// A run of the binary that is being configured.
#[derive(Debug)]
#[must_use = "nothing runs before `run` or `start`"]
pub struct Invocation<'a> {
    home: &'a TestHome,
    command: Command,
    input: Vec<u8>,
}

impl Invocation<'_> {
    /// Adds an argument.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// Adds arguments.
    pub fn args<I>(mut self, arguments: I) -> Self
    where
        I: IntoIterator,
        I::Item: AsRef<OsStr>,
    {
        self.command.args(arguments);
        self
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Removes an environment variable.
    pub fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Marks the run as started by Claude Code for the model.
    pub fn by_agent(self) -> Self {
        self.env("CLAUDECODE", "1")
    }

    /// Sets the working directory.
    pub fn within(mut self, folder: impl AsRef<Path>) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Sets the bytes on stdin.
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = bytes.into();
        self
    }

    /// Runs the program to its end.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
    pub fn run(self) -> Output {
        let root = self.home.root.to_string_lossy().into_owned();
        let input = self.input.clone();
        let mut child = self.start();
        let stdin = child.stdin.take();
        // A thread writes stdin, because the program may print before it has read everything.
        let writer = thread::spawn(move || {
            if let Some(mut stdin) = stdin {
                let _ = stdin.write_all(&input);
            }
        });
        let output = child.wait_with_output().expect("its output can be read");
        let _ = writer.join();
        Output::new(&root, output.status.code(), &output.stdout, &output.stderr)
    }

    /// Starts a viewer; the arguments are those of `open --print`.
    ///
    /// # Panics
    /// Panics if it does not start or lets nobody in.
    pub fn viewer(mut self) -> Viewer {
        self.home.trust_variables();
        Viewer::start(&mut self.command).expect("the viewer starts")
    }

    /// Runs the program with a terminal as stdin on which the input is typed. Its output is still
    /// captured.
    ///
    /// # Panics
    /// Panics if no terminal can be opened or the program cannot be started.
    #[cfg(unix)]
    pub fn run_on_a_terminal(mut self) -> Output {
        let (main, terminal) = terminal();
        let root = self.home.root.to_string_lossy().into_owned();
        self.command
            .stdin(terminal)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        self.home.trust_variables();
        // The terminal buffers the input until the program reads it.
        rustix::io::write(&main, &self.input).expect("a line fits into a terminal");
        let output = self.command.output().expect("the program can be started");
        drop(main);
        Output::new(&root, output.status.code(), &output.stdout, &output.stderr)
    }

    /// Runs the program with a terminal as stdin and stdout. Stderr is captured.
    ///
    /// # Panics
    /// Panics if no terminal can be opened or the program cannot be started.
    #[cfg(unix)]
    pub fn run_in_a_terminal(self) -> Output {
        self.run_in_columns(80)
    }

    /// Runs the program in a terminal with this many columns.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
    #[cfg(unix)]
    pub fn run_in_columns(mut self, columns: u16) -> Output {
        let (main, terminal) = terminal();
        let size = rustix::termios::Winsize {
            ws_row: 40,
            ws_col: columns,
            ws_xpixel: 0,
            ws_ypixel: 0,
        };
        rustix::termios::tcsetwinsize(&terminal, size).expect("a terminal has a size");
        let root = self.home.root.to_string_lossy().into_owned();
        let stdout = terminal.try_clone().expect("a handle can be copied");
        self.command
            .stdin(terminal)
            .stdout(stdout)
            .stderr(Stdio::piped());
        self.home.trust_variables();
        let child = self.command.spawn().expect("the program can be started");
        // The command keeps the terminal open as long as it lives.
        drop(self.command);
        // A terminal holds few bytes, so they are read while the program writes. Reading fails when
        // the program has closed the terminal.
        let reader = thread::spawn(move || {
            let mut main = File::from(main);
            let (mut bytes, mut buffer) = (Vec::new(), [0; 4096]);
            while let Ok(read @ 1..) = main.read(&mut buffer) {
                bytes.extend_from_slice(&buffer[..read]);
            }
            bytes
        });
        let output = child.wait_with_output().expect("its output can be read");
        let bytes = reader.join().expect("the thread ends");
        Output::new(&root, output.status.code(), &bytes, &output.stderr)
    }

    /// Runs the program with this file as stdout.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
    pub fn run_into(mut self, stdout: File) -> Output {
        let root = self.home.root.to_string_lossy().into_owned();
        self.home.trust_variables();
        self.command
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(Stdio::piped());
        let child = self.command.spawn().expect("the program can be started");
        let output = child.wait_with_output().expect("its output can be read");
        Output::new(&root, output.status.code(), b"", &output.stderr)
    }

    /// Starts the program without waiting. Stdin stays open until the child is dropped.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
    pub fn start(mut self) -> Child {
        self.home.trust_variables();
        self.command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program can be started")
    }

    /// Runs the program with a closed stdout.
    ///
    /// # Panics
    /// Panics if the program cannot be started.
    pub fn run_into_a_closed_pipe(self) -> Output {
        let root = self.home.root.to_string_lossy().into_owned();
        let input = self.input.clone();
        let mut child = self.start();
        drop(child.stdout.take());
        if let Some(mut stdin) = child.stdin.take() {
            let _ = stdin.write_all(&input);
        }
        let output = child.wait_with_output().expect("its output can be read");
        Output::new(&root, output.status.code(), b"", &output.stderr)
    }
}

/// Output and exit code of a run, with `[ROOT]` for the temporary folder.
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use = "a run that nobody looks at shows nothing"]
pub struct Output {
    /// The exit code, or `None` if a signal ended the program.
    pub code: Option<i32>,
    /// Stdout.
    pub stdout: String,
    /// Stderr.
    pub stderr: String,
}

impl Output {
    fn new(root: &str, code: Option<i32>, stdout: &[u8], stderr: &[u8]) -> Self {
        let text = |bytes: &[u8]| without_root(&String::from_utf8_lossy(bytes), root);
        Self {
            code,
            stdout: text(stdout),
            stderr: text(stderr),
        }
    }

    /// Returns stdout of a successful run without messages on stderr.
    ///
    /// # Panics
    /// Panics if the run failed or wrote to stderr.
    pub fn well(self) -> String {
        assert_eq!((self.code, self.stderr.as_str()), (Some(0), ""), "{self:?}");
        self.stdout
    }

    /// Parses stdout as one JSON value, whatever the exit code.
    ///
    /// # Panics
    /// Panics if stdout is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Returns exit code, stdout and stderr (if any) as one text.
    pub fn shown(&self) -> String {
        let code = self
            .code
            .map_or_else(|| "none".to_owned(), |code| code.to_string());
        let mut text = format!("exit {code}\n{}", self.stdout);
        if !self.stderr.is_empty() {
            text.push_str("on stderr:\n");
            text.push_str(&self.stderr);
        }
        text
    }

    /// Returns the short id of the note that the run saved or proposed.
    ///
    /// # Panics
    /// Panics if the output names no note.
    pub fn new_id(&self) -> String {
        let (_, rest) = self
            .stdout
            .split_once('#')
            .unwrap_or_else(|| panic!("no id in {self:?}"));
        rest.chars()
            .take_while(char::is_ascii_alphanumeric)
            .collect()
    }
}

/// Returns a path with the same slashes on every system.
pub fn with_slashes(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}

/// Replaces the path of the temporary folder by `[ROOT]`. On Windows, the rest of such a path gets `/`,
/// and a missing file has the message of Unix, so that snapshots are the same everywhere.
fn without_root(text: &str, root: &str) -> String {
    let text = text.replace(root, ROOT);
    if cfg!(not(windows)) {
        return text;
    }
    let in_json = root.replace('\\', r"\\");
    let missing = io::Error::from_raw_os_error(2).to_string();
    let text = text
        .replace(&in_json, ROOT)
        .replace(&missing, "No such file or directory (os error 2)");
    let mut parts = text.split(ROOT);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let end = part.find(|c: char| "\n\"'`,;".contains(c));
        let (path, rest) = part.split_at(end.unwrap_or(part.len()));
        shown.push_str(ROOT);
        shown.push_str(&path.replace(r"\\", "/").replace('\\', "/"));
        shown.push_str(rest);
    }
    shown
}

/// Builds the file of a note key by key.
#[derive(Debug, Clone)]
pub struct NoteText {
    id: String,
    keys: Vec<(String, String)>,
    body: String,
}

impl NoteText {
    /// Returns a fact of [`PROJECT`] by a person, ten days old.
    pub fn new(id: &str, title: &str) -> Self {
        let keys = [
            ("id", id.to_owned()),
            ("type", "semantic".to_owned()),
            ("title", json!(title).to_string()),
            ("project", PROJECT.to_owned()),
            ("machine_id", "laptop".to_owned()),
            ("scope", "portable".to_owned()),
            ("prov_source", "human".to_owned()),
            ("confidence", "1.0".to_owned()),
            ("created_at", "'2025-12-23T03:04:05+00:00'".to_owned()),
            ("updated_at", "'2025-12-23T03:04:05+00:00'".to_owned()),
            ("tags", "[]".to_owned()),
        ];
        Self {
            id: id.to_owned(),
            keys: keys.map(|(key, value)| (key.to_owned(), value)).to_vec(),
            body: String::new(),
        }
    }

    /// Sets a key to a YAML value.
    #[must_use]
    pub fn with(mut self, key: &str, value: &str) -> Self {
        match self.keys.iter_mut().find(|(name, _)| name == key) {
            Some((_, old)) => value.clone_into(old),
            None => self.keys.push((key.to_owned(), value.to_owned())),
        }
        self
    }

    /// Makes the note apply to all projects.
    #[must_use]
    pub fn global(self) -> Self {
        self.with("project", "global")
    }

    /// Makes the note a session note.
    #[must_use]
    pub fn session(self) -> Self {
        self.with("type", "episodic")
            .with("prov_source", "session-end")
            .with("tags", "[session, session-end]")
    }

    /// Sets both times, in ISO 8601.
    #[must_use]
    pub fn at(self, time: &str) -> Self {
        let time = format!("'{time}'");
        self.with("created_at", &time).with("updated_at", &time)
    }

    /// Sets the body.
    #[must_use]
    pub fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let mut text = String::from("---\n");
        for (key, value) in &self.keys {
            text.push_str(&format!("{key}: {value}\n"));
        }
        text + "---\n" + &self.body + "\n"
    }

    /// Returns the path relative to the store.
    pub fn path(&self) -> String {
        let value = |key: &str| {
            let found = self.keys.iter().find(|(name, _)| name == key);
            found.map_or("", |(_, value)| value.as_str())
        };
        let tree = match value("scope") {
            "machine-local" => "local",
            _ => "memory",
        };
        format!("{tree}/{}/{}.md", value("type"), self.id)
    }
}

/// Returns a turn of a transcript: a prompt.
pub fn asked(text: &str) -> Value {
    json!({ "type": "user", "message": { "role": "user", "content": text } })
}

/// Returns a turn of a transcript: the model's answer.
pub fn answered(text: &str) -> Value {
    json!({ "type": "assistant", "message": { "role": "assistant", "content": [{ "type": "text", "text": text }] } })
}

/// Returns a turn of a transcript: the model edits a file.
pub fn edited(path: &str) -> Value {
    json!({ "type": "assistant", "message": { "role": "assistant", "content": [
        { "type": "tool_use", "id": "toolu_1", "name": "Edit", "input": { "file_path": path, "old_string": "a", "new_string": "b" } },
    ] } })
}

/// Creates the files of an empty git repository without running git.
///
/// # Panics
/// Panics if a file cannot be written.
pub fn git_repository(folder: &Path, origin: Option<&str>) {
    make(&folder.join(".git/objects"));
    make(&folder.join(".git/refs/heads"));
    write(&folder.join(".git/HEAD"), "ref: refs/heads/main\n");
    let remote = origin.map_or_else(String::new, |address| {
        format!("[remote \"origin\"]\n\turl = {address}\n")
    });
    write(
        &folder.join(".git/config"),
        format!("[core]\n\trepositoryformatversion = 0\n{remote}"),
    );
}

/// Writes an executable shell script.
///
/// # Panics
/// Panics if the file cannot be written.
#[cfg(unix)]
pub fn script(path: &Path, text: &str) {
    use std::os::unix::fs::PermissionsExt;

    write(path, format!("#!/bin/sh\n{text}\n"));
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("it is ours");
}

/// Returns the stdout of a child after it has ended.
///
/// # Panics
/// Panics if its stdout is not piped.
pub fn printed(child: &mut Child) -> String {
    let mut text = String::new();
    child
        .stdout
        .take()
        .expect("stdout is a pipe")
        .read_to_string(&mut text)
        .expect("a hook prints UTF-8");
    text
}

#[cfg(unix)]
fn make_private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;

    let mode = if path.is_dir() { 0o700 } else { 0o600 };
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("it is ours");
}

#[cfg(not(unix))]
fn make_private(_: &Path) {}

fn make(folder: &Path) {
    fs::create_dir_all(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
}

fn write(path: &Path, bytes: impl AsRef<[u8]>) {
    if let Some(folder) = path.parent() {
        make(folder);
    }
    fs::write(path, bytes).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
}
