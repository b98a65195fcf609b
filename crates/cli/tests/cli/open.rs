//! `open`: the viewer's process, over plain TCP.

use std::{
    io::{BufRead as _, BufReader, Read as _, Write as _},
    net::TcpStream,
    process::Child,
};

use super::{NoteText, TestHome, home};

const ID: &str = "01JGFJJZ00ABCDEFGHJKMNPQRS";

/// A viewer that runs.
struct Viewer {
    child: Child,
    port: u16,
    /// The folder of all addresses.
    base: String,
    token: String,
}

#[test]
fn a_script_reads_the_address_as_json() {
    let home = home();
    for words in ["open --json --for 1s", "open --json --background --for 1s"] {
        let address = home.run(words).json()["address"].clone();
        let address = address.as_str().unwrap();
        assert!(address.starts_with("http://127.0.0.1:"), "{address}");
    }
}

fn open(home: &TestHome, words: &str) -> Viewer {
    let words = format!("open --print {words}");
    let mut child = home.command(words.split_whitespace()).start();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    BufReader::new(stdout).read_line(&mut line).unwrap();
    let rest = line.trim().strip_prefix("http://127.0.0.1:").unwrap();
    let (port, rest) = rest.split_once('/').unwrap();
    let (path, token) = rest.split_once("?token=").unwrap();
    Viewer {
        base: format!("/{}", path.split_once('/').unwrap().0),
        port: port.parse().unwrap(),
        token: token.to_owned(),
        child,
    }
}

/// Sends a request as it is and returns everything that comes.
fn ask(port: u16, head: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).unwrap();
    let request = format!("{head}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// Returns the header with the cookie of an answer.
fn cookie(entered: &str) -> String {
    let (_, cookie) = entered.split_once("set-cookie: ").unwrap();
    format!("\r\nCookie: {}", cookie.split(';').next().unwrap())
}

#[test]
fn the_viewer_listens_only_while_it_runs() {
    // HOOK-11
    let home = home();
    home.add(&NoteText::new(ID, "The cache needs a lock"));
    let mut viewer = open(&home, "notes --for 2s");
    let port = viewer.port;
    let host = format!("Host: 127.0.0.1:{port}");
    let base = viewer.base.clone();
    let get =
        |path: &str, more: &str| ask(port, &format!("GET {base}{path} HTTP/1.1\r\n{host}{more}"));
    assert!(get("/notes", "").starts_with("HTTP/1.1 403 "));
    // Strangers that send nothing do not lock the person out.
    let half_open: Vec<TcpStream> = (0..70)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap())
        .collect();
    let token = format!("/notes?token={}", viewer.token);
    let entered = get(&token, "");
    assert!(entered.starts_with("HTTP/1.1 200 "), "{entered}");
    assert!(get(&token, "").starts_with("HTTP/1.1 403 "), "a replay");
    let cookie = cookie(&entered);
    let notes = get("/notes", &cookie);
    assert!(notes.contains("The cache needs a lock"), "{notes}");
    drop(half_open);
    let foreign = format!("GET {base}/notes HTTP/1.1\r\nHost: evil.example:{port}{cookie}");
    assert!(ask(port, &foreign).starts_with("HTTP/1.1 403 "));
    assert!(viewer.child.wait().unwrap().success());
    assert!(TcpStream::connect(("127.0.0.1", port)).is_err());
}

#[cfg(target_os = "linux")]
#[test]
fn the_address_is_on_no_command_line() {
    let home = home();
    let opened = home.root().join("opened");
    let browser = format!(
        "#!/bin/sh\necho \"$1\" > '{0}.words'; /bin/ls -l \"$1\" > '{0}.mode'; /bin/cat \"$1\" > '{0}'\n",
        opened.display()
    );
    anamnesis_testkit::home::script(&home.root().join("bin/xdg-open"), &browser);
    let output = home.run("open --for 2s");
    let address = output.stdout.trim();
    let read = |suffix: &str| std::fs::read_to_string(format!("{}{suffix}", opened.display()));
    let words = read(".words").unwrap();
    assert!(
        !words.contains("token") && !words.contains("http"),
        "{words}"
    );
    assert!(read(".mode").unwrap().starts_with("-rw-------"));
    assert!(read("").unwrap().contains(address));
    assert!(
        !std::path::Path::new(words.trim()).exists(),
        "it is removed"
    );
}

#[test]
fn the_viewer_opens_a_note_by_its_short_id() {
    let home = home();
    home.add(&NoteText::new(ID, "The cache needs a lock"));
    let short = &ID[ID.len() - 6..];
    let mut viewer = open(&home, &format!("{short} --for 1s"));
    let head = format!(
        "GET {}/note/{ID}?token={} HTTP/1.1\r\nHost: 127.0.0.1:{}",
        viewer.base, viewer.token, viewer.port
    );
    let entered = ask(viewer.port, &head);
    assert!(
        entered.contains(&format!("url={}/note/{ID}\"", viewer.base)),
        "{entered}"
    );
    assert!(viewer.child.wait().unwrap().success());
    let failed = home.run("open nothing");
    assert_eq!(failed.code, Some(2), "{failed:?}");
}

#[test]
fn the_viewer_in_the_background_outlives_its_command() {
    let home = home();
    home.add(&NoteText::new(ID, "The cache needs a lock"));
    let output = home
        .command("open --background --for 5s".split(' '))
        .by_agent()
        .run();
    let address = output.well();
    let rest = address.trim().strip_prefix("http://127.0.0.1:").unwrap();
    let (port, path) = rest.split_once('/').unwrap();
    let head = format!("GET /{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}");
    let port: u16 = port.parse().unwrap();
    let cookie = cookie(&ask(port, &head));
    let (base, _) = path.split_once('/').unwrap();
    let head = format!("GET /{base}/notes HTTP/1.1\r\nHost: 127.0.0.1:{port}{cookie}");
    let notes = ask(port, &head);
    assert!(notes.contains("read-only"), "Claude started it: {notes}");
}
