//! The home of one variant: the program in it, and the tripwires that no attack may reach.

use std::{
    collections::BTreeMap,
    ffi::OsString,
    fmt::Write as _,
    fs,
    io::{Read, Write as _},
    net::{Ipv4Addr, TcpListener},
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use anamnesis_lab::random::Random;
use anamnesis_testkit::home::{Invocation, NoteText, TestHome};
use serde_json::{Value, json};

use crate::{Result, at};

/// The session of every variant.
pub(super) const SESSION: &str = "11111111-2222-4333-8444-555555555555";

/// A text of the attacker that no output may contain.
pub(super) const PLANTED: &str = "EvilMarkerOfTheAttacker";

/// A text that a person wrote in every store.
pub(super) const OWN: &str = "The gateway of the shop listens on port 7070";

/// How long a process may run, on a busy machine and in a debug build.
const HANG: Duration = Duration::from_secs(30);

/// How much of an unexpected output a failure shows, in characters.
const SHOWN: usize = 300;

/// The variables of a process, as a repository's settings set them.
pub(super) type Variables = Vec<(String, OsString)>;

/// What a process printed.
#[derive(Debug)]
pub(super) struct Printed {
    pub(super) status: ExitStatus,
    pub(super) stdout: String,
    pub(super) stderr: String,
}

/// A temporary home with a store, a remote of the person, and the tripwires.
pub(super) struct TestSite {
    pub(super) home: TestHome,
    pub(super) random: Random,
    told: Vec<String>,
    listener: TcpListener,
    before: Snapshot,
    config: Vec<u8>,
}

/// Every file below the tripwires, with its bytes.
type Snapshot = BTreeMap<PathBuf, Vec<u8>>;

impl TestSite {
    pub(super) fn new(program: &Path, random: Random) -> Result<Self> {
        let home = TestHome::untouched(program);
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let mut place = Self {
            home,
            random,
            told: Vec::new(),
            listener,
            before: Snapshot::new(),
            config: Vec::new(),
        };
        for remote in [place.own_remote(), place.evil_remote()] {
            bare_repository(&remote)?;
        }
        for store in [place.evil_store(), place.inner_store()] {
            let note = NoteText::new("01KDYSW6WTA3Z3SBW3AZ8XW4ZB", PLANTED).global();
            write(&store.join(note.path()), note.body(PLANTED).text())?;
            let config = json!({ "remote": place.evil_remote(), "machine_id": "evil" });
            write(&store.join("config.json"), config.to_string())?;
        }
        fs::create_dir(place.tripwire()).map_err(at(&place.tripwire()))?;
        let own = json!({ "machine_id": "laptop", "remote": place.own_remote() });
        place.configure(&own)?;
        place
            .home
            .add(&NoteText::new("01KDYSW6WTA3Z3SBW3AZ8XW4AA", OWN).body(OWN));
        place.before = place.snapshot();
        Ok(place)
    }

    /// Sets the person's settings, which no attack may change.
    pub(super) fn configure(&mut self, settings: &Value) -> Result {
        let path = self.home.write("config.json", settings.to_string());
        self.config = fs::read(&path).map_err(at(&path))?;
        Ok(())
    }

    /// Records a choice of this variant for the report.
    pub(super) fn tell(&mut self, what: impl Into<String>) {
        self.told.push(what.into());
    }

    pub(super) fn choices(&self) -> String {
        let text = self.told.join(", ");
        let root = self.home.root().to_string_lossy();
        excerpt(&text.replace(&*root, "[ROOT]"), 4 * SHOWN)
    }

    /// Returns one of these values.
    pub(super) fn pick<T: Clone>(&mut self, values: &[T]) -> T {
        values[self.random.index(values.len())].clone()
    }

    /// The person's remote.
    pub(super) fn own_remote(&self) -> PathBuf {
        self.home.root().join("own.git")
    }

    /// A remote that nothing may be pushed to.
    pub(super) fn evil_remote(&self) -> PathBuf {
        self.home.root().join("evil.git")
    }

    /// A store outside of the project that nothing may be written to.
    pub(super) fn evil_store(&self) -> PathBuf {
        self.home.root().join("evil-store")
    }

    /// A store in the project that nothing may be written to.
    pub(super) fn inner_store(&self) -> PathBuf {
        self.home.project().join("evil/.anamnesis")
    }

    /// A folder in which a program of the attacker leaves a file.
    pub(super) fn tripwire(&self) -> PathBuf {
        self.home.root().join("ran")
    }

    /// The address of a model that nothing may connect to.
    pub(super) fn evil_address(&self) -> String {
        let address = self.listener.local_addr();
        address.map_or_else(|_| String::new(), |address| format!("http://{address}"))
    }

    /// Writes a program of the attacker.
    pub(super) fn evil_program(&self, path: &Path) -> Result {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder).map_err(at(folder))?;
        }
        let mark = self.tripwire().join("program");
        let text = format!("echo \"$0 $*\" >> '{}'", mark.display());
        anamnesis_testkit::home::script(path, &text);
        Ok(())
    }

    fn snapshot(&self) -> Snapshot {
        let mut files = Snapshot::new();
        let mut pending = vec![
            self.evil_remote(),
            self.evil_store(),
            self.inner_store(),
            self.tripwire(),
        ];
        while let Some(folder) = pending.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let path = entry.path();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    files.insert(path.clone(), Vec::new());
                    pending.push(path);
                } else {
                    files.insert(path.clone(), fs::read(&path).unwrap_or_default());
                }
            }
        }
        files
    }

    /// Accepts the tripwires as they are, after an attack was prepared in them.
    pub(super) fn arm(&mut self) {
        self.before = self.snapshot();
    }

    /// Checks the tripwires, the settings and the log.
    pub(super) fn check(&self) -> Result {
        self.home.settle();
        let after = self.snapshot();
        let changed = after
            .iter()
            .find(|(path, bytes)| self.before.get(*path) != Some(bytes));
        let removed = self.before.keys().find(|path| !after.contains_key(*path));
        if let Some(path) = changed.map(|(path, _)| path).or(removed) {
            return Err(format!("{} was changed", path.display()).into());
        }
        if self.listener.accept().is_ok() {
            return Err("the attacker's address was connected to".into());
        }
        let config = fs::read(self.home.store().join("config.json")).unwrap_or_default();
        if config != self.config {
            let text = String::from_utf8_lossy(&config);
            return Err(format!("config.json was changed: {}", excerpt(&text, SHOWN)).into());
        }
        match self
            .home
            .log()
            .iter()
            .find(|line| line.contains("panicked"))
        {
            Some(line) => Err(format!("the log has a panic: {line}").into()),
            None => Ok(()),
        }
    }

    /// Runs the program as Claude Code would: with git, in the default store, with these variables.
    pub(super) fn run_with(
        invocation: Invocation<'_>,
        input: &[u8],
        set: &Variables,
    ) -> Result<Printed> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let mut invocation = invocation.without("ANAMNESIS_HOME").env("PATH", path);
        for (name, value) in set {
            invocation = invocation.env(name, value);
        }
        let printed = finish(invocation.start(), input)?;
        let is_abort = printed.status.code().is_none_or(|code| code == 101);
        if is_abort || printed.stderr.contains("panicked at") {
            return Err(format!(
                "the program crashed ({}): {}",
                printed.status,
                excerpt(&printed.stderr, SHOWN)
            )
            .into());
        }
        if printed.stdout.contains(PLANTED) {
            let text = excerpt(&printed.stdout, SHOWN);
            return Err(format!("it printed the attacker's note: {text}").into());
        }
        Ok(printed)
    }

    /// Runs a hook, which exits 0 and prints one JSON object, nothing, or the fixed instructions for a
    /// summary.
    pub(super) fn hook(&self, payload: &[u8], variables: &Variables) -> Result<Value> {
        let invocation = self.home.hook_with(Vec::new());
        let printed = Self::run_with(invocation, payload, variables)?;
        if !printed.status.success() {
            return Err(format!("a hook ended with {}", printed.status).into());
        }
        let is_instructions = printed.stdout.starts_with("In \"All user messages\"");
        if printed.stdout.trim().is_empty() || is_instructions {
            return Ok(Value::Null);
        }
        match serde_json::from_str(&printed.stdout) {
            Ok(value @ Value::Object(_)) => Ok(value),
            _ => Err(format!(
                "a hook printed no JSON object: {}",
                excerpt(&printed.stdout, SHOWN)
            )
            .into()),
        }
    }

    /// Runs the program as a command of the agent.
    pub(super) fn agent(&self, words: &[&str], input: &[u8], set: &Variables) -> Result<Printed> {
        let mut invocation = self.home.command(words).by_agent();
        invocation = invocation.env("CLAUDE_PROJECT_DIR", self.home.project());
        Self::run_with(invocation, input, set)
    }

    /// Runs the program in the person's own terminal.
    pub(super) fn person(&self, words: &[&str]) -> Result<Printed> {
        Self::run_with(self.home.command(words), b"", &Variables::new())
    }

    /// Runs the program in the person's own terminal with a variable.
    pub(super) fn person_with(&self, words: &[&str], name: &str, value: OsString) -> Result {
        let set = vec![(name.to_owned(), value)];
        Self::run_with(self.home.command(words), b"", &set).map(drop)
    }

    /// Runs the server on these messages.
    pub(super) fn serve(&self, input: &[u8], set: &Variables) -> Result<Printed> {
        let invocation = self.home.command(["serve"]);
        let invocation = invocation.env("CLAUDE_PROJECT_DIR", self.home.project());
        Self::run_with(invocation, input, set)
    }

    /// Plays a whole session in an environment: hooks, a command of the agent, the server.
    pub(super) fn session(&self, set: &Variables) -> Result {
        let hook = |payload: Value| self.hook(payload.to_string().as_bytes(), set);
        hook(self.home.start(SESSION, "startup"))?;
        let mut prompt = self.home.payload("UserPromptSubmit", SESSION);
        prompt["prompt"] = "Always use port 7070 for the gateway from now on".into();
        hook(prompt)?;
        self.agent(&["write", "--title", "Gateway"], b"It has port 7071.", set)?;
        self.agent(&["sync"], b"", set)?;
        let sync = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call",
            "params": {"name": "memory_sync", "arguments": {}}});
        self.serve(messages(&[sync]).as_bytes(), set)?;
        let mut end = self.home.payload("SessionEnd", SESSION);
        end["reason"] = "other".into();
        hook(end)?;
        self.home.settle();
        Ok(())
    }

    /// Checks that the session is in the person's store.
    pub(super) fn is_recorded(&self) -> Result {
        if self.holds(b"7071") && self.home.notes().len() > 2 {
            return Ok(());
        }
        let notes = self.home.notes().join(", ");
        Err(format!("the session is not in the person's store, which has {notes}").into())
    }

    /// Returns whether a note of the store has this text.
    pub(super) fn holds(&self, text: &[u8]) -> bool {
        self.home.notes().iter().any(|path| {
            let bytes = fs::read(self.home.store().join(path)).unwrap_or_default();
            bytes.windows(text.len()).any(|part| part == text)
        })
    }
}

/// Returns messages for the server, after the handshake.
pub(super) fn messages(calls: &[Value]) -> String {
    let open = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    let mut text = String::new();
    for call in open.iter().chain(calls) {
        let _ = writeln!(text, "{call}");
    }
    text
}

/// Returns the beginning of a text on one line.
pub(super) fn excerpt(text: &str, length: usize) -> String {
    text.chars()
        .take(length)
        .flat_map(char::escape_debug)
        .collect()
}

/// Writes a file and its folders.
pub(super) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    fs::write(path, bytes).map_err(at(path))
}

/// Creates an empty bare repository without running git.
fn bare_repository(path: &Path) -> Result {
    for folder in ["objects", "refs/heads"] {
        let folder = path.join(folder);
        fs::create_dir_all(&folder).map_err(at(&folder))?;
    }
    write(&path.join("HEAD"), "ref: refs/heads/main\n")?;
    let config = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
    write(&path.join("config"), config)
}

/// Feeds a child and waits for its end. Kills it if it takes too long.
fn finish(mut child: Child, input: &[u8]) -> Result<Printed> {
    let stdin = child.stdin.take();
    let input = input.to_vec();
    // The program may print before it has read everything, and may not read everything.
    let writer = thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let mut stdout = child.stdout.take().ok_or("stdout is not a pipe")?;
    let mut stderr = child.stderr.take().ok_or("stderr is not a pipe")?;
    let out = thread::spawn(move || read_all(&mut stdout));
    let err = thread::spawn(move || read_all(&mut stderr));
    let began = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > HANG {
            child.kill()?;
            child.wait()?;
            return Err(format!("a process did not end in {} s", HANG.as_secs()).into());
        }
        thread::sleep(Duration::from_millis(2));
    };
    let _ = writer.join();
    Ok(Printed {
        status,
        stdout: out.join().unwrap_or_default(),
        stderr: err.join().unwrap_or_default(),
    })
}

fn read_all(pipe: &mut impl Read) -> String {
    let mut bytes = Vec::new();
    let _ = pipe.read_to_end(&mut bytes);
    String::from_utf8_lossy(&bytes).into_owned()
}
