//! Messages for the server that no client should send.

use serde_json::{Value, json};

use super::{
    Row,
    place::{TestSite, Variables, excerpt, messages},
};
use crate::Result;

pub(super) const ROWS: &[Row] = &[
    row("lines that are no message", lines),
    row("methods, ids and versions", requests),
    row("arguments of a wrong type", arguments),
    row("batches and missing handshakes", batches),
    row("huge and deep messages", huge),
];

const fn row(name: &'static str, play: fn(&mut TestSite) -> Result) -> Row {
    Row {
        family: "mcp",
        name,
        play,
    }
}

/// The id of the request that must be answered after everything else.
const LAST: &str = "the last one";

/// Sends a handshake, these lines and a last request, which has to be answered.
fn play(place: &TestSite, lines: &[u8]) -> Result {
    let last = json!({"jsonrpc": "2.0", "id": LAST, "method": "tools/list"}).to_string();
    let input = [
        messages(&[]).as_bytes(),
        lines,
        b"\n",
        last.as_bytes(),
        b"\n",
    ]
    .concat();
    let printed = place.serve(&input, &Variables::new())?;
    if !printed.status.success() {
        return Err(format!("the server ended with {}", printed.status).into());
    }
    let mut is_answered = false;
    for line in printed.stdout.lines() {
        let message: Value = serde_json::from_str(line)
            .map_err(|error| format!("no JSON: {error}: {}", excerpt(line, 200)))?;
        is_answered |= message["id"] == LAST && message["result"]["tools"].is_array();
    }
    if is_answered {
        return Ok(());
    }
    Err(format!(
        "the server does not answer any more: {}{}",
        excerpt(&printed.stdout, 300),
        excerpt(&printed.stderr, 300)
    )
    .into())
}

fn lines(place: &mut TestSite) -> Result {
    let forms: [&[u8]; 12] = [
        b"",
        b"null",
        b"{}",
        b"[]",
        b"\xff\xfe\x00",
        b"{\"jsonrpc\":",
        b"Content-Length: 10\r\n\r\n{}",
        b"\xef\xbb\xbf{}",
        b"{\"jsonrpc\":\"2.0\",\"id\":7,\"id\":8,\"method\":\"ping\"}",
        b"{\"jsonrpc\":\"2.0\",\"id\":\"\\ud800\",\"method\":\"ping\"}",
        b"true\n1e999\n\"x\"",
        b"\x00\x1b[2J",
    ];
    let mut input = Vec::new();
    for _ in 0..5 {
        let form = place.pick(&forms);
        place.tell(excerpt(&String::from_utf8_lossy(form), 40));
        input.extend(form);
        input.push(b'\n');
    }
    play(place, &input)
}

fn requests(place: &mut TestSite) -> Result {
    let ids = [
        json!(null),
        json!(1.5),
        json!(-1),
        json!(u64::MAX),
        json!({"a": 1}),
        json!([1]),
        json!(true),
        json!("x".repeat(100_000)),
        json!(1),
    ];
    let methods = [
        json!("evil/method"),
        json!("tools/call"),
        json!("initialize"),
        json!("resources/read"),
        json!("completion/complete"),
        json!("notifications/cancelled"),
        json!(null),
        json!(["ping"]),
        json!(""),
    ];
    let versions = [json!("2.0"), json!("1.0"), json!(2), json!(null)];
    let params = [
        json!(null),
        json!([]),
        json!("x"),
        json!({"name": "../../evil", "arguments": null}),
        json!({"uri": "file:///etc/passwd"}),
        json!({"requestId": {"a": []}}),
        json!({"protocolVersion": 7, "capabilities": []}),
    ];
    let mut text = String::new();
    for _ in 0..12 {
        let call = json!({
            "jsonrpc": place.pick(&versions),
            "id": place.pick(&ids),
            "method": place.pick(&methods),
            "params": place.pick(&params),
        });
        text.push_str(&format!("{call}\n"));
    }
    place.tell(excerpt(&text, 200));
    play(place, text.as_bytes())
}

fn arguments(place: &mut TestSite) -> Result {
    let tools = [
        "memory_search",
        "memory_write",
        "memory_get",
        "memory_forget",
        "memory_sync",
        "memory_review",
        "memory_list",
        "memory_status",
        "evil",
    ];
    let keys = [
        "query", "title", "body", "id", "k", "limit", "project", "kind", "scope", "tags",
    ];
    let values = [
        json!(null),
        json!(-1),
        json!(1e300),
        json!([[[]]]),
        json!({"a": {"b": null}}),
        json!("../../../etc/passwd"),
        json!("\u{1b}[2J\u{202e}\u{0}"),
        json!("' OR 1=1 --"),
        json!("x".repeat(2 << 20)),
        json!("* ( \" NEAR"),
        json!(""),
    ];
    let mut text = String::new();
    for id in 10..22 {
        let mut arguments = json!({});
        for _ in 0..3 {
            let (key, value) = (place.pick(&keys), place.pick(&values));
            arguments[key] = value;
        }
        let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": place.pick(&tools), "arguments": arguments}});
        text.push_str(&format!("{call}\n"));
    }
    place.tell(excerpt(&text, 200));
    play(place, text.as_bytes())
}

fn batches(place: &mut TestSite) -> Result {
    let ping = json!({"jsonrpc": "2.0", "id": 5, "method": "ping"});
    let forms = [
        json!([ping, ping, ping]),
        json!([]),
        json!([[ping]]),
        json!([1, null, ping]),
        Value::Array(vec![ping.clone(); 5_000]),
    ];
    let batch = place.pick(&forms).to_string();
    place.tell(excerpt(&batch, 60));
    play(place, batch.as_bytes())?;
    // Without a handshake the server may refuse everything, but it ends with its client.
    let printed = place.serve(format!("{batch}\n{ping}\n").as_bytes(), &Variables::new())?;
    for line in printed.stdout.lines() {
        serde_json::from_str::<Value>(line)?;
    }
    Ok(())
}

fn huge(place: &mut TestSite) -> Result {
    let size = place.pick(&[1 << 16, 1 << 20, 20 << 20]);
    let form = place.pick(&["depth", "text", "blanks", "objects", "escapes"]);
    place.tell(format!("{size} bytes of {form}"));
    let params = match form {
        "depth" => format!("{}{}", "[".repeat(size / 2), "]".repeat(size / 2)),
        "text" => format!("\"{}\"", "x".repeat(size)),
        "blanks" => format!("{{}}{}", " ".repeat(size)),
        "objects" => format!("{}1{}", "{\"a\":".repeat(size / 6), "}".repeat(size / 6)),
        _ => format!("\"{}\"", "\\u202e".repeat(size / 6)),
    };
    let call = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}}}"#);
    play(place, call.as_bytes())
}
