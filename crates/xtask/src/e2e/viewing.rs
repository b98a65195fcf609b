//! A session is played in the client while the viewer's page Live is open.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anamnesis_testkit::client::Sandbox;
use anamnesis_testkit::process::{Context as _, Failure, Result};
use chrono::{DateTime, Utc};

use super::recalling::{BODY, FITTING, TITLE, say, write};
use super::report;
use super::scenarios::{Stage, check};
use super::store::Store;

/// How long the page may take to show what a hook recorded before the scenario gives up.
const LIMIT: Duration = Duration::from_secs(20);

/// The page as it was at a time.
struct Look {
    at: DateTime<Utc>,
    page: String,
}

/// The viewer of a machine, and the page Live after each of its events.
struct Viewer {
    process: Child,
    looks: Receiver<Look>,
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Viewer {
    /// Opens the page Live as a browser does, and follows its events.
    fn open(machine: &Sandbox) -> Result<Self> {
        let program = machine.plugin_root()?.join("bin/anamnesis");
        let mut command = machine.command(program);
        command
            .args(["open", "live", "--print"])
            .stdout(Stdio::piped());
        let mut process = command.spawn().context("anamnesis open")?;
        let mut line = String::new();
        if let Some(stdout) = process.stdout.take() {
            BufReader::new(stdout)
                .read_line(&mut line)
                .context("the address")?;
        }
        let address = line.trim().strip_prefix("http://").unwrap_or_default();
        let (host, path) = address.split_once('/').unwrap_or_default();
        let entered = read(host, &format!("/{path}"), "")?;
        let cookie = entered
            .lines()
            .find_map(|line| line.strip_prefix("set-cookie: "));
        let cookie = cookie.and_then(|cookie| cookie.split(';').next());
        let cookie = cookie.ok_or_else(|| Failure::new(format!("no cookie in\n{entered}")))?;
        let (host, cookie) = (host.to_owned(), cookie.to_owned());
        let events = send(&host, "/events", &cookie)?;
        let (sender, looks) = channel();
        thread::spawn(move || {
            for line in BufReader::new(events)
                .lines()
                .map_while(std::result::Result::ok)
            {
                if !line.starts_with("event: ") {
                    continue;
                }
                let Ok(page) = read(&host, "/live", &cookie) else {
                    return;
                };
                if sender
                    .send(Look {
                        at: Utc::now(),
                        page,
                    })
                    .is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { process, looks })
    }

    /// Waits until the page shows a text, and returns the page.
    fn wait_for(&self, what: &str, text: &str) -> Result<Look> {
        loop {
            let look = self.looks.recv_timeout(LIMIT);
            let look = look.map_err(|_| Failure::new(format!("{what} is not on the page")))?;
            if look.page.contains(text) {
                return Ok(look);
            }
        }
    }
}

/// Sends a request, and returns the connection with the answer.
fn send(host: &str, path: &str, cookie: &str) -> Result<TcpStream> {
    let mut stream = TcpStream::connect(host).context(host)?;
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {host}\r\ncookie: {cookie}\r\nconnection: close\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).context(path)?;
    Ok(stream)
}

/// Sends a request, and returns the whole answer.
fn read(host: &str, path: &str, cookie: &str) -> Result<String> {
    let mut answer = String::new();
    send(host, path, cookie)?
        .read_to_string(&mut answer)
        .context(path)?;
    Ok(answer)
}

/// The prompt with its injected note, and then the session's note, appear on the page that was open
/// before. The scenario reports how long the prompt took from the hook to the page.
pub(super) fn live(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    write(&machine, TITLE, BODY)?;
    store.wait_for("the note", |note| note.title() == TITLE)?;
    let viewer = Viewer::open(&machine)?;
    let answer = say(&machine, FITTING, None)?;
    let look = viewer.wait_for("the prompt", FITTING)?;
    check(look.page.contains(TITLE), || {
        format!(
            "the injected note is not on the page of the prompt:\n{}",
            look.page
        )
    })?;
    let (_, after) = look.page.split_once(FITTING).unwrap_or_default();
    let time = after
        .split("datetime=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let recorded = time.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
    if let Some(recorded) = recorded {
        let delay = look.at.signed_duration_since(recorded).num_milliseconds();
        report(format_args!(
            "live: the prompt was on the page {delay} ms after its hook began"
        ));
    }
    store.wait_for_session(&answer.session)?;
    viewer.wait_for("the session's note", "Notes of this session")?;
    Ok(())
}
