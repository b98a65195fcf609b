//! A web server on loopback with git's own CGI program behind a password.

use std::{
    fs,
    io::{self, BufRead as _, BufReader, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use anamnesis_sync::git::{Error, Fetched, Pushed};

use crate::{Machine, Trap, commit, initialize, run};

const USER: &str = "me";
const PASSWORD: &str = "s3cret";
/// User and password as a browser sends them.
const AUTHORIZATION: &str = "Basic bWU6czNjcmV0";

/// Serves the repositories of a folder to whoever has the password.
struct Server {
    port: u16,
    is_over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Server {
    fn start(folder: PathBuf) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let listening = thread::spawn(move || {
            while let Ok((connection, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let folder = folder.clone();
                // A client may disconnect at any time.
                thread::spawn(move || answer(&connection, &folder));
            }
        });
        Self {
            port,
            is_over,
            listening: Some(listening),
        }
    }

    fn address(&self, credentials: &str) -> String {
        format!("http://{credentials}127.0.0.1:{}/remote.git", self.port)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The thread waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

/// Answers one request and closes the connection.
fn answer(connection: &TcpStream, folder: &Path) -> io::Result<()> {
    let mut reader = BufReader::new(connection);
    let mut request = String::new();
    reader.read_line(&mut request)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.push((name.to_lowercase(), value.to_owned())),
            None => break,
        }
    }
    let header = |name: &str| {
        let found = headers.iter().find(|(header, _)| header == name);
        found.map_or("", |(_, value)| value.as_str())
    };
    let mut writer = connection;
    if header("authorization") != AUTHORIZATION {
        return writer.write_all(
            b"HTTP/1.1 401 Unauthorized\r\nWWW-Authenticate: Basic realm=\"notes\"\r\n\
              Content-Length: 0\r\nConnection: close\r\n\r\n",
        );
    }
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body)?;

    let mut words = request.split(' ');
    let (method, target) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_PROJECT_ROOT", folder)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_USER", USER)
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut input = child.stdin.take().unwrap();
    let feeding = thread::spawn(move || input.write_all(&body));
    let output = child.wait_with_output()?;
    let _ = feeding.join();
    // A CGI program sets a status other than 200 in a header.
    let said = String::from_utf8_lossy(&output.stdout);
    let status = said
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    write!(writer, "HTTP/1.1 {status}\r\nConnection: close\r\n")?;
    writer.write_all(&output.stdout)
}

fn joined() -> (Machine, Server) {
    let machine = Machine::new();
    let bare = initialize(&machine.path("remote.git"), false);
    let mut config = bare.config().unwrap();
    config.set_bool("http.receivepack", true).unwrap();
    let server = Server::start(machine.folder.path().to_owned());
    (machine, server)
}

#[test]
fn fetch_and_push_ask_the_users_credential_helper() {
    let (machine, server) = joined();
    machine.write_config(&format!(
        "[credential]\n\thelper = \"!f() {{ echo username={USER}; echo password={PASSWORD}; }}; f\"\n"
    ));
    let remote = machine.join(&server.address(""));
    assert_eq!(machine.git().fetch(&remote).unwrap(), Fetched::Empty);
    machine.send_and_bring(&remote);
    // Enough for a compressed request, and for a race that the server decides.
    for number in 0..40 {
        machine.commit(&format!("{number}.md"), b"");
    }
    machine.git().push(&remote, None).unwrap();
    let bare = git2::Repository::open(machine.path("remote.git")).unwrap();
    let theirs = commit(&bare, "refs/heads/main", "theirs.md", b"");
    machine.commit("ours.md", b"");
    let pushed = machine.git().push(&remote, None).unwrap();
    assert!(matches!(pushed, Pushed::Rejected { .. }), "{pushed:?}");
    assert_eq!(machine.git().fetch(&remote).unwrap(), Fetched::Main);
    assert_eq!(machine.incoming(), Some(theirs));
}

#[test]
fn without_a_helper_nobody_is_asked() {
    let (machine, server) = joined();
    let marker = machine.path("marker");
    let asking = machine.path("ask");
    let trap = Trap::program(&marker, &asking);
    machine.write_config(&format!("[core]\n\taskPass = {}\n", asking.display()));
    let remote = machine.join(&server.address(""));
    machine.commit("note.md", b"");
    for error in [
        machine.git().fetch(&remote).unwrap_err(),
        machine.git().push(&remote, None).unwrap_err(),
    ] {
        assert!(matches!(error, Error::Credentials { .. }), "{error}");
    }
    assert!(!trap.was_sprung());
}

/// GIT-11.
#[test]
fn credentials_in_the_address_work_and_are_never_told() {
    let (machine, server) = joined();
    let remote = machine.join(&server.address(&format!("{USER}:{PASSWORD}@")));
    machine.send_and_bring(&remote);
    // The reflog records git's arguments.
    let logs = machine.git_dir().join("logs");
    if logs.is_dir() {
        let mut grep = Command::new("grep");
        let found = grep.args(["-r", PASSWORD]).arg(&logs).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&found.stdout), "");
    }
    for credentials in ["me:wr0ng@", "wr0ng@", "wr0ng:@", "me:%77r0ng@"] {
        let remote = machine.join(&server.address(credentials));
        for error in [
            machine.git().fetch(&remote).unwrap_err(),
            machine.git().push(&remote, None).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Credentials { .. }), "{error}");
            for text in [
                error.to_string(),
                format!("{error:?}"),
                error.advice().unwrap(),
            ] {
                assert!(!text.contains("r0ng"), "{text}");
            }
        }
    }
    let remote = machine.join(
        &server
            .address("me:wr0ng@")
            .replace("remote.git", "none.git"),
    );
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(!format!("{error:?} {error}").contains("r0ng"), "{error}");
}

#[test]
fn a_repository_that_is_not_there_is_told() {
    let (machine, server) = joined();
    let address = server.address(&format!("{USER}:{PASSWORD}@"));
    let remote = machine.join(&address.replace("remote.git", "none.git"));
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(matches!(error, Error::NoRepository { .. }), "{error}");
}

#[test]
fn a_server_that_is_not_there_is_offline() {
    let (machine, server) = joined();
    let remote = machine.join(&server.address(""));
    drop(server);
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(error.is_offline(), "{error}");
}

/// Nothing but the repository's own configuration holds the credentials.
#[test]
fn credentials_stay_where_they_were_put() {
    let (machine, server) = joined();
    let remote = machine.join(&server.address(&format!("{USER}:{PASSWORD}@")));
    machine.send_and_bring(&remote);
    let mut grep = Command::new("grep");
    let files = run(grep
        .args(["-rl", PASSWORD, "."])
        .current_dir(machine.path("store")));
    assert_eq!(files, "./.git/config\n");
    assert_eq!(fs::read_dir(machine.path("home")).unwrap().count(), 0);
}
