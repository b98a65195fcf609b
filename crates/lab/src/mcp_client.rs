//! A client of an MCP server on stdio.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use serde_json::{Value, json};

use crate::Result;

/// An MCP client with its server.
pub(crate) struct Client {
    server: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    asked: u64,
}

impl Client {
    /// Starts a server and opens the session.
    pub(crate) fn start(command: &mut Command) -> Result<Self> {
        let mut server = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("{command:?}: {error}"))?;
        let (Some(input), Some(output)) = (server.stdin.take(), server.stdout.take()) else {
            return Err("the server has no pipes".into());
        };
        let mut client = Self {
            server,
            input,
            output: BufReader::new(output),
            asked: 0,
        };
        let client_info = json!({ "name": "bench", "version": "1" });
        client.ask(
            "initialize",
            &json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client_info }),
        )?;
        client.send(&json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }))?;
        Ok(client)
    }

    /// Calls a tool.
    pub(crate) fn call(&mut self, tool: &str, arguments: &Value) -> Result<Value> {
        self.ask(
            "tools/call",
            &json!({ "name": tool, "arguments": arguments }),
        )
    }

    fn ask(&mut self, method: &str, parameters: &Value) -> Result<Value> {
        self.asked += 1;
        let id = self.asked;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": parameters }))?;
        loop {
            let mut line = String::new();
            if self.output.read_line(&mut line)? == 0 {
                return Err(format!("{method}: the server has ended").into());
            }
            let answer: Value = serde_json::from_str(&line)?;
            if answer["id"] == id {
                return Ok(answer["result"].clone());
            }
        }
    }

    fn send(&mut self, message: &Value) -> Result {
        Ok(writeln!(self.input, "{message}")?)
    }

    /// Returns the server's memory in bytes, or 0 if the system does not report it.
    pub(crate) fn memory(&self) -> u64 {
        let path = format!("/proc/{}/status", self.server.id());
        let status = fs::read_to_string(path).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
        kibibytes.unwrap_or(0_u64) * 1024
    }

    /// Closes the server's input and waits for its end.
    pub(crate) fn end(self) -> Result {
        let Self {
            mut server, input, ..
        } = self;
        drop(input);
        let status = server.wait()?;
        if status.success() {
            Ok(())
        } else {
            Err(format!("the server ended with {status}").into())
        }
    }
}
