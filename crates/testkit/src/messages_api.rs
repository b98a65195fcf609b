//! A scriptable mock of the Anthropic Messages API on 127.0.0.1.
//!
//! It plays the model for the real client. Requests of the agent's main loop get the turns of a
//! [`Script`] in order, subagents get turns of their own, and other requests (compaction, titles)
//! get a fixed answer each. Every request is kept, so that a test can check what reached the model.
//!
//! Codex and Gemini CLI get the same turns in the form of their models' APIs.
//!
//! Requests are not validated: one that the real service would refuse is answered, too.

mod other_apis;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde_json::{Value, json};

use self::other_apis::OtherApi;

/// How long a connection may be silent before its thread closes it.
const IDLE_LIMIT: Duration = Duration::from_secs(30);
/// The longest request line or header that is read, in bytes.
const LINE_LIMIT: u64 = 64 << 10;
/// The largest request body that is read, in bytes; the client's are about 100 KiB.
const BODY_LIMIT: usize = 64 << 20;

/// A block of a scripted answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Block {
    /// Text for the person.
    Text(String),
    /// A call of one of the client's tools.
    ToolUse {
        /// The tool's name, as the client offers it.
        name: String,
        /// The parameters.
        input: Value,
    },
}

/// Returns a block of text.
pub fn text(text: impl Into<String>) -> Block {
    Block::Text(text.into())
}

/// Returns a call of a tool.
pub fn tool(name: impl Into<String>, input: Value) -> Block {
    Block::ToolUse {
        name: name.into(),
        input,
    }
}

/// How the model reacts to one request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    /// Answers with these blocks.
    Blocks(Vec<Block>),
    /// Accepts the request and never answers, so that the client hangs during a turn.
    Silence,
    /// Refuses the request because a limit is reached; another attempt would be refused, too.
    Limit,
}

impl From<Block> for Reply {
    fn from(block: Block) -> Self {
        Self::Blocks(vec![block])
    }
}

impl<const N: usize> From<[Block; N]> for Reply {
    fn from(blocks: [Block; N]) -> Self {
        Self::Blocks(blocks.into())
    }
}

/// The model's answers, by kind of request.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Answers to the main loop's requests, in order.
    pub turns: Vec<Reply>,
    /// The answer to requests of the main loop after the last turn.
    pub afterwards: Reply,
    /// The answer to requests for a summary.
    pub compaction: Reply,
    /// Answers to the requests of subagents, in order.
    pub subagent_turns: Vec<Reply>,
    /// The answer to requests of subagents after their last turn.
    pub subagent: Reply,
    /// The answer to requests without tools, such as one for a title.
    pub side: Reply,
}

impl Default for Script {
    fn default() -> Self {
        Self {
            turns: Vec::new(),
            afterwards: text("Done.").into(),
            compaction: text("<summary>\nThe session so far, in short.\n</summary>").into(),
            subagent_turns: Vec::new(),
            subagent: text("The subagent is done.").into(),
            side: text("Noted.").into(),
        }
    }
}

impl Script {
    /// Returns a script with these turns and the default fixed answers.
    pub fn turns<R: Into<Reply>>(turns: impl IntoIterator<Item = R>) -> Self {
        Self {
            turns: turns.into_iter().map(Into::into).collect(),
            ..Self::default()
        }
    }
}

/// The part of the client that sent a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The agent's main loop.
    Main,
    /// A subagent's loop.
    Subagent,
    /// The summary of a compaction.
    Compaction,
    /// A request without tools.
    Side,
    /// Anything but a request for an answer.
    Other,
}

impl Kind {
    /// Recognises the kind of a `POST /v1/messages` by marks that the client leaves in it.
    fn from_body(body: &Value) -> Self {
        let system = strings(&body["system"]);
        if last_user_text(body).contains("create a detailed summary of") {
            Self::Compaction
        } else if system.contains("You are an agent for Claude Code")
            || system.contains("cc_is_subagent=true")
        {
            Self::Subagent
        } else if body["tools"].as_array().is_none_or(Vec::is_empty) {
            Self::Side
        } else {
            Self::Main
        }
    }
}

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The HTTP method.
    pub method: String,
    /// The path, with its query.
    pub path: String,
    /// Which part of the client sent it.
    pub kind: Kind,
    /// The body, or `null` if it was not JSON.
    pub body: Value,
}

impl Request {
    /// Returns system prompt, messages and tool results as one text.
    pub fn text(&self) -> String {
        let fields = [
            "system",
            "messages",
            "instructions",
            "input",
            "systemInstruction",
            "contents",
        ];
        let texts = fields.iter().filter_map(|field| self.body.get(*field));
        texts.map(strings).collect::<Vec<_>>().join("\n")
    }

    /// Returns the text of the last user message.
    pub fn prompt(&self) -> String {
        last_user_text(&self.body)
    }

    /// Returns the model's earlier answers that the request contains.
    pub fn answers(&self) -> String {
        let messages = self.body["messages"].as_array();
        let answers = messages
            .into_iter()
            .flatten()
            .filter(|message| message["role"] == "assistant");
        answers
            .map(|message| strings(&message["content"]))
            .collect::<Vec<_>>()
            .join("\n")
    }

    /// Returns the results of the last turn's tool calls, each with "it failed".
    pub fn tool_results(&self) -> Vec<(String, bool)> {
        let blocks =
            last_user_message(&self.body).and_then(|message| message["content"].as_array());
        blocks
            .into_iter()
            .flatten()
            .filter(|block| block["type"] == "tool_result")
            .map(|block| {
                let failed = block["is_error"].as_bool().unwrap_or(false);
                (strings(&block["content"]), failed)
            })
            .collect()
    }
}

/// Returns all text of a system prompt, a message or a list of either, one per line.
fn strings(value: &Value) -> String {
    fn gather(value: &Value, out: &mut Vec<String>) {
        match value {
            Value::String(text) => out.push(text.clone()),
            Value::Array(items) => items.iter().for_each(|item| gather(item, out)),
            Value::Object(map) => {
                for key in ["text", "content", "parts"] {
                    map.get(key).into_iter().for_each(|item| gather(item, out));
                }
                if let Some(input) = map.get("input") {
                    out.push(input.to_string());
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    gather(value, &mut out);
    out.join("\n")
}

fn last_user_message(body: &Value) -> Option<&Value> {
    let messages = body["messages"].as_array()?;
    messages.iter().rfind(|message| message["role"] == "user")
}

fn last_user_text(body: &Value) -> String {
    last_user_message(body).map(strings).unwrap_or_default()
}

/// A running mock. It stops when it is dropped.
#[derive(Debug)]
pub struct MessagesApi {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct State {
    script: Script,
    played: usize,
    played_by_subagents: usize,
    requests: Vec<Request>,
    stopping: bool,
}

impl Shared {
    /// Locks the state. A poisoned lock is ignored, because no thread leaves the state half
    /// changed.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Returns and counts the script's answer to a request of this kind.
    fn reply(&mut self, kind: Kind) -> Reply {
        match kind {
            Kind::Subagent => {
                let turn = self.script.subagent_turns.get(self.played_by_subagents);
                self.played_by_subagents += 1;
                turn.unwrap_or(&self.script.subagent).clone()
            }
            Kind::Compaction => self.script.compaction.clone(),
            Kind::Side | Kind::Other => self.script.side.clone(),
            Kind::Main => {
                let turn = self.script.turns.get(self.played);
                self.played += 1;
                turn.unwrap_or(&self.script.afterwards).clone()
            }
        }
    }
}

impl MessagesApi {
    /// Starts a mock on a free port of the loopback interface.
    pub fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::<Shared>::default();
        let serving = Arc::clone(&shared);
        let accepting = thread::Builder::new()
            .name("messages-api".to_owned())
            .spawn(move || accept(&listener, &serving))?;
        Ok(Self {
            address,
            shared,
            accepting: Some(accepting),
        })
    }

    /// Returns the address for `ANTHROPIC_BASE_URL`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Starts a script from its first turn and keeps the recorded requests.
    pub fn play(&self, script: Script) {
        let mut state = self.shared.lock();
        state.script = script;
        state.played = 0;
        state.played_by_subagents = 0;
    }

    /// Returns all requests so far, in order.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.lock().requests.clone()
    }

    /// Returns the requests of one kind.
    pub fn requests_of(&self, kind: Kind) -> Vec<Request> {
        let mut requests = self.requests();
        requests.retain(|request| request.kind == kind);
        requests
    }
}

impl Drop for MessagesApi {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.stopped.notify_all();
        // This connection wakes the accepting thread, which then sees the flag.
        let woken = TcpStream::connect(self.address).is_ok();
        if let Some(thread) = self.accepting.take().filter(|_| woken) {
            // A panic of the thread was already printed.
            let _ = thread.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.lock().stopping {
            return;
        }
        let Ok(stream) = stream else { continue };
        let shared = Arc::clone(shared);
        // The client handles a broken connection itself: it retries or fails.
        thread::spawn(move || serve(&stream, &shared));
    }
}

/// Reads and answers one request, then closes the connection.
fn serve(stream: &TcpStream, shared: &Shared) -> io::Result<()> {
    stream.set_read_timeout(Some(IDLE_LIMIT))?;
    let (method, path, body) = read_request(&mut BufReader::new(stream))?;
    let route = (method.as_str(), path.split('?').next().unwrap_or_default());
    let other = OtherApi::of_path(route.1);
    let kind = match route {
        ("POST", "/v1/messages") if body.is_object() => Kind::from_body(&body),
        ("POST", _) if other.is_some() && body["tools"].is_null() => Kind::Side,
        ("POST", _) if other.is_some() => Kind::Main,
        _ => Kind::Other,
    };
    let reply = {
        let mut state = shared.lock();
        state.requests.push(Request {
            method: method.clone(),
            path: path.clone(),
            kind,
            body: body.clone(),
        });
        state.reply(kind)
    };
    match route {
        ("POST", "/v1/messages") if reply == Reply::Limit => send_json(
            stream,
            "429 Too Many Requests\r\nx-should-retry: false",
            &json!({ "type": "error", "error": { "type": "rate_limit_error", "message": "limit" } }),
        ),
        ("POST", "/v1/messages") if kind != Kind::Other => answer(stream, shared, &body, &reply),
        ("POST", _) if let (Some(api), Reply::Blocks(blocks)) = (other, &reply) => {
            let (content_type, body) = api.body(blocks);
            send_body(stream, "200 OK", content_type, &body)
        }
        ("POST", "/v1/messages/count_tokens") => {
            send_json(stream, "200 OK", &json!({ "input_tokens": tokens(&body) }))
        }
        ("GET", "/v1/models") => send_json(
            stream,
            "200 OK",
            &json!({ "data": [], "has_more": false, "first_id": null, "last_id": null }),
        ),
        _ => send_json(
            stream,
            "404 Not Found",
            &json!({ "type": "error", "error": { "type": "not_found_error", "message": path } }),
        ),
    }
}

/// Reads method, path and JSON body of a request.
fn read_request(reader: &mut impl BufRead) -> io::Result<(String, String, Value)> {
    let request_line = read_line(reader)?;
    let mut words = request_line.split(' ');
    let method = words.next().unwrap_or_default().to_owned();
    let path = words.next().unwrap_or_default().to_owned();
    let (mut length, mut chunked) = (0, false);
    loop {
        let line = read_line(reader)?;
        if line.is_empty() {
            break;
        }
        let (name, value) = line.split_once(':').unwrap_or((&line, ""));
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().map_err(io::Error::other)?;
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            chunked = value.to_ascii_lowercase().contains("chunked");
        }
    }
    let mut body = Vec::new();
    if chunked {
        loop {
            let line = read_line(reader)?;
            let digits = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(digits, 16).map_err(io::Error::other)?;
            read_exactly(reader, size, &mut body)?;
            read_line(reader)?;
            if size == 0 {
                break;
            }
        }
    } else {
        read_exactly(reader, length, &mut body)?;
    }
    let body = serde_json::from_slice(&body).unwrap_or_default();
    Ok((method, path, body))
}

/// Reads a line without its line ending.
fn read_line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.take(LINE_LIMIT).read_line(&mut line)?;
    if !line.ends_with('\n') {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    line.truncate(line.trim_end().len());
    Ok(line)
}

/// Appends exactly `size` bytes to `body`.
fn read_exactly(reader: &mut impl Read, size: usize, body: &mut Vec<u8>) -> io::Result<()> {
    if size > BODY_LIMIT.saturating_sub(body.len()) {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    let wanted = body.len() + size;
    // `usize` fits in `u64` on every platform of Rust.
    reader.take(size as u64).read_to_end(body)?;
    if body.len() == wanted {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}

/// Sends the scripted answer in the form that the request asked for.
fn answer(stream: &TcpStream, shared: &Shared, request: &Value, reply: &Reply) -> io::Result<()> {
    let blocks = match reply {
        Reply::Blocks(blocks) => blocks,
        Reply::Silence | Reply::Limit => {
            let state = shared.lock();
            let stopped = shared.stopped.wait_while(state, |state| !state.stopping);
            drop(stopped);
            return Ok(());
        }
    };
    let content: Vec<Value> = blocks.iter().enumerate().map(content_block).collect();
    let calls = blocks
        .iter()
        .any(|block| matches!(block, Block::ToolUse { .. }));
    let stop_reason = if calls { "tool_use" } else { "end_turn" };
    let usage = json!({
        "input_tokens": tokens(request),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": tokens(&json!(content)),
    });
    let mut message = json!({
        "id": "msg_scripted",
        "type": "message",
        "role": "assistant",
        "model": request["model"],
        "content": content,
        "stop_reason": stop_reason,
        "stop_sequence": null,
        "usage": usage,
    });
    if !request["stream"].as_bool().unwrap_or(false) {
        return send_json(stream, "200 OK", &message);
    }
    message["content"] = json!([]);
    message["stop_reason"] = Value::Null;
    let mut out = String::from(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\n\
         cache-control: no-cache\r\nconnection: close\r\n\r\n",
    );
    push_event(
        &mut out,
        &json!({ "type": "message_start", "message": message }),
    );
    for (index, mut block) in content.into_iter().enumerate() {
        // A block starts empty; its text or input follows as a delta.
        let delta = if block["type"] == "text" {
            json!({ "type": "text_delta", "text": std::mem::replace(&mut block["text"], json!("")) })
        } else {
            let input = std::mem::replace(&mut block["input"], json!({}));
            json!({ "type": "input_json_delta", "partial_json": input.to_string() })
        };
        for event in [
            json!({ "type": "content_block_start", "index": index, "content_block": block }),
            json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            json!({ "type": "content_block_stop", "index": index }),
        ] {
            push_event(&mut out, &event);
        }
    }
    let delta = json!({ "stop_reason": stop_reason, "stop_sequence": null });
    push_event(
        &mut out,
        &json!({ "type": "message_delta", "delta": delta, "usage": usage }),
    );
    push_event(&mut out, &json!({ "type": "message_stop" }));
    send(stream, &out)
}

/// Returns a block in the form of the API. Ids of calls are unique in a conversation.
fn content_block((index, block): (usize, &Block)) -> Value {
    static CALLS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    match block {
        Block::Text(text) => json!({ "type": "text", "text": text }),
        Block::ToolUse { name, input } => {
            let call = CALLS.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let process = std::process::id();
            json!({
                "type": "tool_use",
                "id": format!("toolu_{process}_{call}_{index}"),
                "name": name,
                "input": input,
            })
        }
    }
}

fn push_event(out: &mut String, event: &Value) {
    let name = event["type"].as_str().unwrap_or_default();
    out.push_str("event: ");
    out.push_str(name);
    out.push_str("\ndata: ");
    out.push_str(&event.to_string());
    out.push_str("\n\n");
}

fn send_json(stream: &TcpStream, status: &str, body: &Value) -> io::Result<()> {
    send_body(stream, status, "application/json", &body.to_string())
}

fn send_body(stream: &TcpStream, status: &str, content_type: &str, body: &str) -> io::Result<()> {
    let length = body.len();
    send(
        stream,
        &format!(
            "HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        ),
    )
}

fn send(mut stream: &TcpStream, text: &str) -> io::Result<()> {
    stream.write_all(text.as_bytes())?;
    stream.flush()
}

/// Estimates the tokens of a JSON value at four bytes each.
fn tokens(value: &Value) -> usize {
    value.to_string().len().div_ceil(4)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wait_for;

    /// Sends one request and returns the answer's status line and body.
    fn send_request(api: &MessagesApi, head: &str, body: &str) -> (String, String) {
        let mut stream = TcpStream::connect(api.address).unwrap();
        write!(stream, "{head}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.lines().next().unwrap().to_owned();
        (status, body.to_owned())
    }

    fn post(api: &MessagesApi, path: &str, body: &Value) -> (String, String) {
        let body = body.to_string();
        let length = body.len();
        let head = format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}");
        send_request(api, &head, &body)
    }

    fn main_request(prompt: &str, stream: bool) -> Value {
        json!({
            "model": "claude-test",
            "stream": stream,
            "system": [{ "type": "text", "text": "You are Claude Code." }],
            "tools": [{ "name": "Bash" }],
            "messages": [{ "role": "user", "content": prompt }],
        })
    }

    #[test]
    fn turns_are_played_in_order_then_the_fixed_answer() {
        let api = MessagesApi::start().unwrap();
        api.play(Script::turns([text("first"), text("second")]));
        let said = ["a", "b", "c"].map(|prompt| {
            let (status, body) = post(&api, "/v1/messages?beta=true", &main_request(prompt, false));
            assert_eq!(status, "HTTP/1.1 200 OK");
            let body: Value = serde_json::from_str(&body).unwrap();
            assert_eq!(body["stop_reason"], "end_turn");
            body["content"][0]["text"].as_str().unwrap().to_owned()
        });
        assert_eq!(said, ["first", "second", "Done."]);
        let seen = api.requests_of(Kind::Main);
        assert_eq!(seen.len(), 3);
        assert_eq!(seen[1].text(), "You are Claude Code.\nb");
    }

    #[test]
    fn subagents_have_turns_of_their_own() {
        let api = MessagesApi::start().unwrap();
        api.play(Script {
            subagent_turns: vec![text("looking").into()],
            ..Script::turns([text("first")])
        });
        let mut subagent = main_request("look", false);
        subagent["system"] = json!("You are an agent for Claude Code, Anthropic's CLI");
        for (request, said) in [
            (&subagent, "looking"),
            (&main_request("a", false), "first"),
            (&subagent, "The subagent is done."),
        ] {
            let (_, body) = post(&api, "/v1/messages", request);
            assert!(body.contains(said), "{body}");
        }
    }

    #[test]
    fn a_new_script_starts_over_and_keeps_recorded_requests() {
        let api = MessagesApi::start().unwrap();
        api.play(Script::turns([text("one")]));
        post(&api, "/v1/messages", &main_request("a", false));
        api.play(Script::turns([text("two")]));
        let (_, body) = post(&api, "/v1/messages", &main_request("b", false));
        assert!(body.contains("two"), "{body}");
        assert_eq!(api.requests().len(), 2);
    }

    #[test]
    fn a_stream_carries_text_and_tool_calls() {
        let api = MessagesApi::start().unwrap();
        let input = json!({ "file_path": "src/é.rs", "content": "fn main() {}\n" });
        let reply = Reply::from([text("Writing – now."), tool("Write", input.clone())]);
        api.play(Script::turns([reply]));
        let (_, body) = post(&api, "/v1/messages", &main_request("go", true));
        let events: Vec<Value> = body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .map(|data| serde_json::from_str(data).unwrap())
            .collect();
        let types: Vec<&str> = events
            .iter()
            .map(|event| event["type"].as_str().unwrap())
            .collect();
        assert_eq!(
            types,
            [
                "message_start",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "content_block_start",
                "content_block_delta",
                "content_block_stop",
                "message_delta",
                "message_stop",
            ]
        );
        assert_eq!(events[1]["content_block"]["text"], "");
        assert_eq!(events[2]["delta"]["text"], "Writing – now.");
        assert_eq!(events[4]["content_block"]["name"], "Write");
        assert_eq!(events[4]["content_block"]["input"], json!({}));
        let sent = events[5]["delta"]["partial_json"].as_str().unwrap();
        assert_eq!(serde_json::from_str::<Value>(sent).unwrap(), input);
        assert_eq!(events[7]["delta"]["stop_reason"], "tool_use");
        for event in body.split("\n\n").filter(|event| !event.is_empty()) {
            assert!(event.starts_with("event: "), "{event}");
        }
    }

    #[test]
    fn two_calls_of_one_tool_have_different_ids() {
        let call = tool("Bash", json!({}));
        let first = content_block((0, &call));
        let second = content_block((0, &call));
        assert_ne!(first["id"], second["id"]);
    }

    #[test]
    fn request_kinds_are_recognised() {
        let main = main_request("hello", false);
        let mut compaction = main.clone();
        compaction["messages"] = json!([
            { "role": "user", "content": "hello" },
            { "role": "user", "content": [{ "type": "text",
                "text": "Your task is to create a detailed summary of the conversation" }] },
            { "role": "system", "content": "context of a hook" },
        ]);
        let mut subagent = main.clone();
        subagent["system"] = json!("You are an agent for Claude Code, Anthropic's CLI");
        let mut side = main.clone();
        side["tools"] = json!([]);
        let mut no_tools = main.clone();
        no_tools.as_object_mut().unwrap().remove("tools");
        for (body, kind) in [
            (main, Kind::Main),
            (compaction, Kind::Compaction),
            (subagent, Kind::Subagent),
            (side, Kind::Side),
            (no_tools, Kind::Side),
        ] {
            assert_eq!(Kind::from_body(&body), kind, "{body}");
        }
    }

    #[test]
    fn a_fixed_answer_consumes_no_turn() {
        let api = MessagesApi::start().unwrap();
        api.play(Script::turns([text("first")]));
        let (_, side) = post(&api, "/v1/messages", &json!({ "messages": [] }));
        assert!(side.contains("Noted."), "{side}");
        let (_, main) = post(&api, "/v1/messages", &main_request("a", false));
        assert!(main.contains("first"), "{main}");
    }

    #[test]
    fn other_endpoints_answer_like_the_service() {
        let api = MessagesApi::start().unwrap();
        for (head, status, part) in [
            (
                "GET /v1/models?limit=1 HTTP/1.1",
                "HTTP/1.1 200 OK",
                "\"data\":[]",
            ),
            (
                "GET /other HTTP/1.1",
                "HTTP/1.1 404 Not Found",
                "not_found_error",
            ),
            (
                "POST /v1/messages HTTP/1.1",
                "HTTP/1.1 404 Not Found",
                "not_found_error",
            ),
        ] {
            let (found, body) = send_request(&api, head, "");
            assert_eq!(found, status, "{head}");
            assert!(body.contains(part), "{head}: {body}");
        }
        let counted = post(
            &api,
            "/v1/messages/count_tokens",
            &json!({ "messages": [] }),
        );
        assert_eq!(counted.1, r#"{"input_tokens":4}"#);
        assert!(
            api.requests()
                .iter()
                .all(|request| request.kind == Kind::Other)
        );
    }

    #[test]
    fn a_chunked_body_is_joined() {
        let api = MessagesApi::start().unwrap();
        let head = "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked";
        let body = "7\r\n{\"model\r\n5;x=y\r\n\":\"m\"\r\n1\r\n}\r\n0\r\n\r\n";
        let (status, _) = send_request(&api, head, body);
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert_eq!(api.requests()[0].body, json!({ "model": "m" }));
    }

    #[test]
    fn an_invalid_request_is_not_recorded() {
        for broken in [
            "",
            "POST /v1/messages HTTP/1.1\r\nContent-Length: 9\r\n\r\n{}",
            "POST /v1/messages HTTP/1.1\r\nContent-Length: many\r\n\r\n",
            "POST /v1/messages HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
            "POST /v1/messages HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        ] {
            let found = read_request(&mut broken.as_bytes());
            assert!(found.is_err(), "{broken:?}: {found:?}");
        }
        let api = MessagesApi::start().unwrap();
        drop(TcpStream::connect(api.address).unwrap());
        let (status, _) = post(&api, "/v1/messages", &main_request("a", false));
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert_eq!(api.requests().len(), 1);
    }

    #[test]
    fn silence_lasts_until_the_mock_ends() {
        let api = MessagesApi::start().unwrap();
        api.play(Script::turns([Reply::Silence]));
        let mut stream = TcpStream::connect(api.address).unwrap();
        let body = main_request("a", true).to_string();
        let length = body.len();
        write!(
            stream,
            "POST /v1/messages HTTP/1.1\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        wait_for("the request", || !api.requests().is_empty());
        drop(api);
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert_eq!(answer, "");
    }

    #[test]
    fn tool_results_of_the_last_turn_are_returned() {
        let request = Request {
            method: "POST".to_owned(),
            path: "/v1/messages".to_owned(),
            kind: Kind::Main,
            body: json!({ "messages": [
                { "role": "user", "content": "go" },
                { "role": "assistant", "content": [
                    { "type": "tool_use", "name": "Bash", "input": { "command": "git status" } }] },
                { "role": "user", "content": [
                    { "type": "tool_result", "content": "clean" },
                    { "type": "tool_result", "is_error": true,
                      "content": [{ "type": "text", "text": "no such file" }] }] },
                { "role": "system", "content": "context of a hook" },
            ] }),
        };
        let results = request.tool_results();
        assert_eq!(
            results,
            [
                ("clean".to_owned(), false),
                ("no such file".to_owned(), true)
            ]
        );
        assert_eq!(request.prompt(), "clean\nno such file");
        assert!(request.text().contains(r#"{"command":"git status"}"#));
    }
}
