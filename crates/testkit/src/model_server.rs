//! A scriptable mock of a model's server on 127.0.0.1 with OpenAI's chat completions.
//!
//! It can answer well, badly, endlessly or never, and records every request. The last answer is
//! repeated.

use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    thread::{self, JoinHandle},
    time::Duration,
};

use serde_json::{Value, json};

/// How long a connection may be silent before its thread closes it.
const IDLE_LIMIT: Duration = Duration::from_secs(30);

/// The pause before each byte of an answer that drips.
const DRIP: Duration = Duration::from_millis(50);

/// How often a silent connection checks for a new answer.
const LOOK: Duration = Duration::from_millis(20);

/// The bytes that a long answer sends at a time.
const PIECE: usize = 64 * 1024;

/// How the server reacts to one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Play {
    /// Answers with this text from the model.
    Says(String),
    /// Answers with this body, valid or not.
    Body(String),
    /// Refuses with an HTTP status and a body.
    Refuses(u16, String),
    /// Redirects the request to another address.
    Redirects(String),
    /// Accepts the request and does not answer until [`ModelServer::answer`] is called.
    Silence,
    /// Answers with this many bytes.
    Long(u64),
    /// Answers endlessly, one byte at a time.
    Drips,
}

/// Returns an answer with this text from the model.
pub fn says(text: impl Into<String>) -> Play {
    Play::Says(text.into())
}

/// A recorded request.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The request line.
    pub line: String,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The exact body.
    pub text: String,
    /// The body as JSON.
    pub body: Value,
}

impl Request {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers.find_map(|(known, value)| (known == name).then_some(value.as_str()))
    }
}

/// A running server. It stops when it is dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Mutex<State>>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct State {
    plays: Vec<Play>,
    requests: Vec<Request>,
    is_stopping: bool,
}

fn lock(shared: &Mutex<State>) -> MutexGuard<'_, State> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ModelServer {
    /// Starts a server that gives these answers in turn, on a free port of the loopback interface.
    ///
    /// # Panics
    /// Panics if no port can be opened or no thread started.
    pub fn start(plays: impl IntoIterator<Item = Play>) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let address = listener.local_addr().expect("it was just opened");
        let shared = Arc::new(Mutex::new(State {
            plays: plays.into_iter().collect(),
            requests: Vec::new(),
            is_stopping: false,
        }));
        let serving = Arc::clone(&shared);
        let accepting = thread::spawn(move || accept(&listener, &serving));
        Self {
            address,
            shared,
            accepting: Some(accepting),
        }
    }

    /// Returns the address for `reflection.base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Sets the answer to pending and future requests.
    pub fn answer(&self, play: Play) {
        lock(&self.shared).plays = vec![play];
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        lock(&self.shared).requests.clone()
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        lock(&self.shared).is_stopping = true;
        // This connection wakes the accepting thread, which then sees the flag.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(thread) = self.accepting.take().filter(|_| woken) {
            // A panic of the thread was already printed.
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Mutex<State>>) {
    for stream in listener.incoming() {
        if lock(shared).is_stopping {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // Many tests break connections on purpose.
        thread::spawn(move || serve(stream, &shared));
    }
}

fn serve(mut stream: TcpStream, shared: &Mutex<State>) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_LIMIT))?;
    let request = read_request(&mut BufReader::new(&stream))?;
    let play = {
        let mut state = lock(shared);
        state.requests.push(request);
        let last = state.plays.len().saturating_sub(1);
        let turn = (state.requests.len() - 1).min(last);
        state.plays.get(turn).cloned().unwrap_or(Play::Silence)
    };
    let play = match play {
        Play::Silence => changed(&stream, shared)?,
        play => play,
    };
    let ok = |length: u64| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        )
    };
    match play {
        Play::Says(text) => {
            let message = json!({ "role": "assistant", "content": text });
            let body = json!({ "object": "chat.completion", "choices": [{ "index": 0, "message": message }] });
            let body = body.to_string();
            stream.write_all((ok(body.len() as u64) + &body).as_bytes())
        }
        Play::Body(body) => stream.write_all((ok(body.len() as u64) + &body).as_bytes()),
        Play::Refuses(status, body) => {
            let head = format!(
                "HTTP/1.1 {status} No\r\nContent-Length: {}\r\n\r\n",
                body.len()
            );
            stream.write_all((head + &body).as_bytes())
        }
        Play::Redirects(to) => stream.write_all(
            format!("HTTP/1.1 307 Elsewhere\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n")
                .as_bytes(),
        ),
        Play::Silence => Ok(()),
        Play::Long(length) => {
            stream.write_all(ok(length).as_bytes())?;
            let piece = vec![b' '; PIECE];
            let mut left = length;
            while left > 0 {
                let now = usize::try_from(left).unwrap_or(PIECE).min(PIECE);
                stream.write_all(&piece[..now])?;
                left -= now as u64;
            }
            Ok(())
        }
        Play::Drips => {
            stream.write_all(ok(1 << 20).as_bytes())?;
            loop {
                stream.write_all(b" ")?;
                thread::sleep(DRIP);
            }
        }
    }
}

/// Waits for another answer. Returns [`Play::Silence`] if the server or its client ends first.
fn changed(mut stream: &TcpStream, shared: &Mutex<State>) -> io::Result<Play> {
    stream.set_read_timeout(Some(LOOK))?;
    loop {
        {
            let state = lock(shared);
            match state.plays.last() {
                Some(play) if *play != Play::Silence => return Ok(play.clone()),
                _ if state.is_stopping => return Ok(Play::Silence),
                _ => {}
            }
        }
        if matches!(stream.read(&mut [0]), Ok(0)) {
            return Ok(Play::Silence);
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Request> {
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let line = line.trim_end().to_owned();
        if line.is_empty() {
            break;
        }
        lines.push(line);
    }
    let mut lines = lines.into_iter();
    let line = lines.next().unwrap_or_default();
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| {
            let (name, value) = line.split_once(':')?;
            Some((name.to_ascii_lowercase(), value.trim().to_owned()))
        })
        .collect();
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length = length.and_then(|(_, value)| value.parse().ok());
    let mut bytes = Vec::new();
    reader.take(length.unwrap_or(0)).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes).into_owned();
    Ok(Request {
        line,
        headers,
        body: serde_json::from_str(&text).unwrap_or_default(),
        text,
    })
}
