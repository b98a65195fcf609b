//! Tests the server with the MCP inspector, which validates every answer against the protocol's
//! schema and every tool's result against the tool's own schema.
//!
//! The behaviour of tools is tested without it, which is a thousand times faster. Needs `npm` for
//! the inspector's first install.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anamnesis_testkit::npm;
use anamnesis_testkit::process::{self, Finished};
use serde_json::{Value, json};

use crate::plugin::{self, Profile};
use crate::{Result, say, target_folder};

/// The pinned inspector: the newest version that runs on Node 20.
const PACKAGE: &str = "@modelcontextprotocol/inspector";
const VERSION: &str = "0.15.0";

/// Time limit for one request, mostly Node's start-up.
const LIMIT: Duration = Duration::from_secs(60);

const PROJECT: &str = "github.com/acme/shop";
const STUB: &str = "Integration tests need the stub server";
const PORTS: &str = "Port 9090 belongs to the stub";

/// Test the server with the MCP inspector
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Test this program instead of a debug build of the checkout
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
}

/// Runs `cargo xtask inspect`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let inspector = install(root)?;
    let program = plugin::given_or_built(root, arguments.binary.as_ref(), Profile::Debug)?;
    let home = tempfile::tempdir()?;
    let questions = Inspector {
        tool: inspector,
        program,
        home: home.path().to_path_buf(),
    }
    .inspect()?;
    say(&format!("inspector {VERSION}: {questions} questions"));
    Ok(())
}

/// Installs the inspector unless it is there, and returns its program.
pub(crate) fn install(root: &Path) -> Result<PathBuf> {
    let folder = target_folder(root).join(format!("inspector-{VERSION}"));
    npm::install(&folder, PACKAGE, VERSION)?;
    Ok(folder.join("node_modules/.bin/mcp-inspector"))
}

/// The inspector with the server that it tests.
struct Inspector {
    tool: PathBuf,
    program: PathBuf,
    /// An empty folder for the store.
    home: PathBuf,
}

impl Inspector {
    /// Makes every request once, and returns the number of requests.
    fn inspect(&self) -> Result<usize> {
        let stub = self.write(STUB, "`make stub` binds port 9090.")?;
        let ports = self.write(PORTS, &format!("See [[{STUB}]]."))?;
        let calls = [
            ("memory_search", json!({ "query": "stub" })),
            (
                "memory_search",
                json!({ "query": "stub", "detail": "index" }),
            ),
            ("memory_get", json!({ "ids": [&stub] })),
            ("memory_list", json!({ "project": "." })),
            ("memory_timeline", json!({ "around": &stub })),
            ("memory_pathway", json!({ "from": &ports, "to": &stub })),
            ("memory_review", json!({ "duplicates": true })),
            ("memory_status", json!({})),
        ];

        let listed = self.request(&["--method", "tools/list"])?;
        let looking: BTreeSet<&str> = array(&listed, "/tools")?
            .iter()
            .filter(|tool| tool.pointer("/annotations/readOnlyHint") == Some(&Value::Bool(true)))
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        let called = calls.iter().map(|(tool, _)| *tool).collect();
        expect(looking == called, || {
            format!("tools that look are {looking:?}, and {called:?} are called")
        })?;
        for (tool, arguments) in &calls {
            let answer = self.called(tool, arguments)?;
            let gave = answer["isError"] != true && answer["structuredContent"].is_object();
            expect(gave, || format!("{tool} gave {answer}"))?;
        }

        let refused = self.called("memory_get", &json!({ "ids": ["ZZZZZZ"] }))?;
        expect(refused["isError"] == true, || {
            format!("a note that is not there: {refused}")
        })?;

        let resources = self.request(&["--method", "resources/list"])?;
        let resources = array(&resources, "/resources")?;
        expect(resources.len() == 2, || format!("{resources:?}"))?;
        let uri = resources[0]["uri"].as_str().unwrap_or_default();
        let read = self.request(&["--method", "resources/read", "--uri", uri])?;
        let text = read.pointer("/contents/0/text").and_then(Value::as_str);
        expect(
            text.is_some_and(|text| text.contains("9090") || text.contains(STUB)),
            || format!("{uri} holds {read}"),
        )?;
        let templates = self.request(&["--method", "resources/templates/list"])?;
        expect(array(&templates, "/resourceTemplates")?.len() == 1, || {
            templates.to_string()
        })?;

        for (question, code) in [
            (
                &["--method", "resources/read", "--uri", "memory://ZZZZZZ"],
                "-32002",
            ),
            (
                &["--method", "logging/setLevel", "--log-level", "debug"],
                "-32601",
            ),
        ] {
            let finished = self.ask(question)?;
            let is_refused = finished.code != Some(0) && finished.stderr.contains(code);
            expect(is_refused, || format!("{question:?}: {finished}"))?;
        }
        Ok(calls.len() + 7)
    }

    /// Writes a note as a person does, and returns its id.
    fn write(&self, title: &str, body: &str) -> Result<String> {
        let file = self.home.join("note.txt");
        std::fs::write(&file, body).map_err(crate::at(&file))?;
        let mut write = self.at_home(&self.program);
        write.args(["write", "--json", "--kind", "how-to", "--project", PROJECT]);
        write.args(["--title", title, "--file"]).arg(&file);
        let written = process::run(&mut write, LIMIT)?.successful("anamnesis write")?;
        let written: Value = serde_json::from_str(&written.stdout)?;
        let id = written["id"].as_str();
        id.map(str::to_owned)
            .ok_or_else(|| format!("no id in {written}").into())
    }

    /// Calls a tool.
    fn called(&self, tool: &str, arguments: &Value) -> Result<Value> {
        let mut words = vec!["--method".to_owned(), "tools/call".to_owned()];
        words.extend(["--tool-name".to_owned(), tool.to_owned()]);
        for (name, value) in arguments.as_object().into_iter().flatten() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            words.extend(["--tool-arg".to_owned(), format!("{name}={value}")]);
        }
        self.request(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// Makes a request that must succeed.
    fn request(&self, question: &[&str]) -> Result<Value> {
        let answer = self
            .ask(question)?
            .successful(format_args!("{question:?}"))?;
        Ok(serde_json::from_str(&answer.stdout)?)
    }

    /// Makes a request to a server that is started for it.
    fn ask(&self, question: &[&str]) -> Result<Finished> {
        let mut inspector = self.at_home(&self.tool);
        inspector.arg("--cli").arg(&self.program);
        inspector
            .args(["serve", "--project", PROJECT])
            .args(question);
        Ok(process::run(&mut inspector, LIMIT)?)
    }

    /// Returns a program with this store only.
    fn at_home(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(&self.home)
            .env_remove("CLAUDE_PROJECT_DIR")
            .env_remove("CLAUDECODE")
            .env_remove("AI_AGENT")
            .env("HOME", &self.home)
            .env("ANAMNESIS_HOME", self.home.join(".anamnesis"));
        command
    }
}

fn array<'a>(value: &'a Value, pointer: &str) -> Result<&'a Vec<Value>> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.ok_or_else(|| format!("no {pointer} in {value}").into())
}

/// Fails with the reason unless `holds`.
fn expect(holds: bool, reason: impl FnOnce() -> String) -> Result {
    if holds { Ok(()) } else { Err(reason().into()) }
}
