//! The viewer as a program without JavaScript sees it: its address, its cookie, its pages.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{Context as _, Result, TestFailure};

/// A started viewer. It is killed when this is dropped.
#[derive(Debug)]
pub struct Viewer {
    process: Child,
    /// Reads its pages.
    pub visitor: Visitor,
    /// The time from its start to its address.
    pub ready_after: Duration,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Viewer {
    /// Starts a viewer and enters with the address that it prints. `command` is `anamnesis open
    /// --print`.
    pub fn start(command: &mut Command) -> Result<Self> {
        let began = Instant::now();
        let mut process = command
            .stdout(Stdio::piped())
            .spawn()
            .context("anamnesis open")?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .context("the address")?;
        }
        let ready_after = began.elapsed();
        let address = line.trim().strip_prefix("http://").unwrap_or_default();
        let (host, path) = address.split_once('/').unwrap_or_default();
        let (base, path) = path.split_once('/').unwrap_or_default();
        let mut viewer = Self {
            process,
            visitor: Visitor {
                host: host.to_owned(),
                base: format!("/{base}"),
                cookie: String::new(),
            },
            ready_after,
        };
        let entered = viewer.visitor.read(&format!("/{path}"))?;
        let cookie = entered
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.ok_or_else(|| TestFailure::new(format!("no cookie in\n{entered}")))?;
        cookie.clone_into(&mut viewer.visitor.cookie);
        Ok(viewer)
    }

    /// Returns the id of its process.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

/// Reads the pages of a viewer.
#[derive(Debug, Clone)]
pub struct Visitor {
    host: String,
    /// The folder of all addresses.
    base: String,
    cookie: String,
}

impl Visitor {
    /// Requests a path, and returns the connection on which the answer comes.
    pub fn request(&self, path: &str) -> Result<TcpStream> {
        let Self { host, base, cookie } = self;
        let mut stream = TcpStream::connect(host).context(host)?;
        let head = format!(
            "GET {base}{path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).context(path)?;
        Ok(stream)
    }

    /// Returns the whole answer to a request, with its head. Its addresses are without the folder of all.
    pub fn read(&self, path: &str) -> Result<String> {
        let mut answer = String::new();
        self.request(path)?
            .read_to_string(&mut answer)
            .context(path)?;
        Ok(answer.replace(&self.base, ""))
    }
}
