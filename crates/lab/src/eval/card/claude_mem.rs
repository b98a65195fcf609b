//! claude-mem: observations in SQLite, which its worker on loopback saves and searches. Its vectors are
//! off: they need a Python service that downloads a model.

use std::{
    collections::HashMap,
    fs,
    io::{Read as _, Write as _},
    net::{Ipv4Addr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use anamnesis_testkit::npm;
use serde_json::{Value, json};

use super::{Given, Program, Question, Stored, asked, found, stored, way};
use crate::{Result, at};

/// The versions that were measured. The worker runs in Bun only.
const CLAUDE_MEM: (&str, &str) = ("claude-mem", "13.25.3");
const BUN: (&str, &str) = ("bun", "1.4.5");

/// Time limit for the start of the worker, and for one request.
const START_LIMIT: Duration = Duration::from_secs(60);
const REQUEST_LIMIT: Duration = Duration::from_secs(30);

/// A worker with the notes of a set.
pub(super) struct ClaudeMem {
    worker: Worker,
    notes: Vec<Stored>,
    /// The names of the notes by the ids of their observations.
    names: HashMap<u64, String>,
    by_words: bool,
}

impl ClaudeMem {
    pub(super) fn start(cache: &Path, notes: &[Value], by_words: bool) -> Result<Self> {
        let worker = Worker::start(cache)?;
        let notes = stored(notes);
        let mut names = HashMap::new();
        for note in &notes {
            let (title, body) = note.text.split_once('\n').unwrap_or((&note.text, ""));
            let text = if body.is_empty() { title } else { body };
            let saved = json!({ "title": title, "text": text, "project": note.project });
            let saved = worker.request("POST", "/api/memory/save", Some(&saved))?;
            let id = saved["id"]
                .as_u64()
                .ok_or_else(|| format!("claude-mem did not save {}: {saved}", note.name))?;
            names.insert(id, note.name.clone());
        }
        Ok(Self {
            worker,
            notes,
            names,
            by_words,
        })
    }

    fn search(&self, query: &str, project: &str) -> Result<Vec<String>> {
        let (query, project) = (encoded(query), encoded(project));
        let path = format!("/api/search?query={query}&project={project}&limit=10&format=json");
        let answer = self.worker.request("GET", &path, None)?;
        let hits = answer["observations"].as_array().into_iter().flatten();
        let ids = hits.filter_map(|hit| hit["id"].as_u64());
        Ok(ids.filter_map(|id| self.names.get(&id).cloned()).collect())
    }
}

impl Program for ClaudeMem {
    fn name(&self) -> String {
        let (package, version) = CLAUDE_MEM;
        format!(
            "{package} {version}, its search with {}",
            way(self.by_words)
        )
    }

    fn ask(&mut self, question: &Question) -> Result<Given> {
        let search = |query: &str| self.search(query, &question.project);
        let names = asked(question, self.by_words, search)?;
        Ok(found(&self.notes, question, &names))
    }
}

/// The process of the worker, in a home of its own.
struct Worker {
    process: Child,
    port: u16,
    _home: tempfile::TempDir,
}

impl Worker {
    fn start(cache: &Path) -> Result<Self> {
        let program = installed(cache, CLAUDE_MEM)?.join("node_modules/claude-mem");
        let bun = installed(cache, BUN)?.join("node_modules/@oven");
        // The package for this platform.
        let bun = fs::read_dir(&bun)
            .map_err(at(&bun))?
            .filter_map(|entry| Some(entry.ok()?.path().join("bin/bun")))
            .find(|path| path.is_file())
            .ok_or("npm installed no bun for this platform")?;
        let home = tempfile::tempdir()?;
        let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?
            .local_addr()?
            .port();
        // Nothing listens on the discard port, so no other address can be reached.
        let nowhere = "http://127.0.0.1:9";
        let process = Command::new(bun)
            .arg(program.join("plugin/scripts/worker-service.cjs"))
            .env_clear()
            .envs([("PATH", "/usr/bin:/bin"), ("NO_PROXY", "127.0.0.1")])
            .envs([("HTTP_PROXY", nowhere), ("HTTPS_PROXY", nowhere)])
            .env("HOME", home.path())
            .env("CLAUDE_MEM_DATA_DIR", home.path().join(".claude-mem"))
            .env("CLAUDE_MEM_WORKER_HOST", "127.0.0.1")
            .env("CLAUDE_MEM_WORKER_PORT", port.to_string())
            .env("CLAUDE_MEM_CHROMA_ENABLED", "false")
            .env("DO_NOT_TRACK", "1")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let worker = Self {
            process,
            port,
            _home: home,
        };
        let started = Instant::now();
        // Until it is ready, it refuses or resets connections.
        while !worker
            .request("GET", "/api/readiness", None)
            .is_ok_and(|answer| answer["status"] == "ready")
        {
            if started.elapsed() > START_LIMIT {
                return Err("the worker of claude-mem is not ready".into());
            }
            thread::sleep(Duration::from_millis(100));
        }
        Ok(worker)
    }

    /// Sends a request and returns its answer.
    fn request(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value> {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port))?;
        stream.set_read_timeout(Some(REQUEST_LIMIT))?;
        let body = body.map(Value::to_string).unwrap_or_default();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            self.port,
            body.len(),
        )?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        let (_, text) = answer.split_once("\r\n\r\n").unwrap_or_default();
        Ok(serde_json::from_str(text)?)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It ends its own processes when it is asked to.
        let _ = self.request("POST", "/api/admin/shutdown", Some(&json!({})));
        thread::sleep(Duration::from_millis(500));
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn installed(cache: &Path, (package, version): (&str, &str)) -> Result<PathBuf> {
    let folder = cache.join(format!("{package}-{version}"));
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    // Resolving the peers of an optional dependency takes npm a quarter of an hour.
    let settings = folder.join(".npmrc");
    fs::write(&settings, "legacy-peer-deps=true\n").map_err(at(&settings))?;
    npm::install(&folder, package, version)?;
    Ok(folder)
}

/// A text as a value of an address.
fn encoded(text: &str) -> String {
    let byte = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(byte).collect()
}
