//! A real sshd on loopback, one process for each connection, with keys and known hosts of its own.

use std::{
    env, fs, io,
    net::{TcpListener, TcpStream},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
};

use anamnesis_sync::{
    git::{Error, Fetched},
    remote::Remote,
};

use crate::{Machine, initialize, run, write_program};

/// The daemon, and the configuration of a client that may log in.
struct Sshd {
    folder: PathBuf,
    port: u16,
    is_over: Arc<AtomicBool>,
    listening: Option<JoinHandle<()>>,
}

impl Sshd {
    fn start(folder: PathBuf) -> Self {
        fs::create_dir(&folder).unwrap();
        for name in ["host_key", "client_key"] {
            let mut keygen = Command::new("ssh-keygen");
            keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]);
            run(keygen.arg(folder.join(name)));
        }
        let at = folder.display();
        let daemon = format!(
            "HostKey {at}/host_key\nAuthorizedKeysFile {at}/client_key.pub\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nStrictModes no\nUsePAM no\n"
        );
        fs::write(folder.join("sshd_config"), daemon).unwrap();
        let client = format!(
            "IdentityFile {at}/client_key\nIdentitiesOnly yes\nIdentityAgent none\n\
             UserKnownHostsFile {at}/known_hosts\nGlobalKnownHostsFile /dev/null\n"
        );
        fs::write(folder.join("ssh_config"), client).unwrap();
        if rustix::process::geteuid().is_root() {
            // The service of the package would create this folder for root's daemon.
            fs::create_dir_all("/run/sshd").unwrap();
        }

        let program = find_sshd();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let is_over = Arc::new(AtomicBool::new(false));
        let ended = Arc::clone(&is_over);
        let config = folder.join("sshd_config");
        let listening = thread::spawn(move || {
            while let Ok((connection, _)) = listener.accept() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                serve(&program, &config, connection).unwrap();
            }
        });
        Self {
            folder,
            port,
            is_over,
            listening: Some(listening),
        }
    }

    /// Returns the user's ssh command. OpenSSH reads the configuration of the account, not of
    /// `HOME`.
    fn command(&self) -> String {
        format!("ssh -F {}", self.folder.join("ssh_config").display())
    }

    fn known_hosts(&self) -> PathBuf {
        self.folder.join("known_hosts")
    }

    /// Adds a key for this host to known_hosts.
    fn know(&self, key: &str) {
        let key = fs::read_to_string(self.folder.join(key)).unwrap();
        fs::write(
            self.known_hosts(),
            format!("[127.0.0.1]:{} {key}", self.port),
        )
        .unwrap();
    }

    fn fingerprint(&self) -> String {
        let mut keygen = Command::new("ssh-keygen");
        let line = run(keygen.arg("-lf").arg(self.folder.join("host_key.pub")));
        line.split(' ').nth(1).unwrap().to_owned()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        // The thread waits for a connection.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        if let Some(listening) = self.listening.take() {
            let _ = listening.join();
        }
    }
}

/// Gives a connection to an sshd of its own, which ends with it.
fn serve(program: &Path, config: &Path, connection: TcpStream) -> io::Result<()> {
    let input = OwnedFd::from(connection.try_clone()?);
    let mut child = Command::new(program)
        .args(["-i", "-f"])
        .arg(config)
        .stdin(input)
        .stdout(OwnedFd::from(connection))
        .stderr(Stdio::null())
        .spawn()?;
    thread::spawn(move || child.wait());
    Ok(())
}

fn find_sshd() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let usual = ["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from);
    env::split_paths(&path)
        .chain(usual)
        .map(|folder| folder.join("sshd"))
        .find(|program| program.is_absolute() && program.is_file())
        .expect("this test needs an sshd: install openssh-server")
}

/// A machine whose remote is a repository behind an sshd that knows its key.
fn joined() -> (Machine, Sshd, Remote) {
    let machine = Machine::new();
    let sshd = Sshd::start(machine.path("ssh"));
    machine.write_config(&format!("[core]\n\tsshCommand = {}\n", sshd.command()));
    let folder = machine.path("remote.git");
    initialize(&folder, false);
    let user = run(Command::new("id").arg("-un"));
    let remote = machine.join(&format!(
        "ssh://{}@127.0.0.1:{}{}",
        user.trim(),
        sshd.port,
        folder.display()
    ));
    (machine, sshd, remote)
}

#[test]
fn fetch_and_push_go_through_the_users_ssh() {
    let (machine, sshd, remote) = joined();
    sshd.know("host_key.pub");
    assert_eq!(machine.git().fetch(&remote).unwrap(), Fetched::Empty);
    machine.send_and_bring(&remote);
}

/// GIT-12.
#[test]
fn an_unknown_host_is_refused_with_its_fingerprint() {
    let (machine, sshd, remote) = joined();
    let ssh_remote = remote.shown();
    machine.commit("note.md", b"");
    for error in [
        machine.git().fetch(&remote).unwrap_err(),
        machine.git().push(&remote, None).unwrap_err(),
    ] {
        let Error::UnknownHost {
            host,
            fingerprint,
            command,
        } = &error
        else {
            panic!("{error}");
        };
        assert!(ssh_remote.contains(&format!("//{host}:")));
        let expected = format!("ssh-ed25519 {}", sshd.fingerprint());
        assert_eq!(fingerprint.as_deref(), Some(expected.as_str()));
        assert_eq!(
            *command,
            format!("{} -p {} {host}", sshd.command(), sshd.port)
        );
        assert!(error.to_string().contains(&expected));
        assert!(error.advice().unwrap().contains(command));
        assert!(!error.is_offline());
    }
    assert!(!sshd.known_hosts().exists(), "the key was taken");

    // The advised command helps once a person has run it.
    let Err(Error::UnknownHost { command, .. }) = machine.git().fetch(&remote) else {
        panic!("the host became known");
    };
    let yes = command.replacen(" -p", " -oStrictHostKeyChecking=accept-new -p", 1);
    run(Command::new("sh").args(["-c", &format!("{yes} true")]));
    machine.send_and_bring(&remote);
}

/// GIT-12.
#[test]
fn a_changed_host_is_refused_with_a_warning() {
    let (machine, sshd, remote) = joined();
    sshd.know("client_key.pub");
    let before = fs::read(sshd.known_hosts()).unwrap();
    let error = machine.git().fetch(&remote).unwrap_err();
    let Error::ChangedHost { fingerprint, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*fingerprint, Some(sshd.fingerprint()));
    assert!(error.to_string().contains("HAS CHANGED"), "{error}");
    assert_eq!(fs::read(sshd.known_hosts()).unwrap(), before);
}

#[test]
fn a_refused_key_is_reported() {
    let (machine, sshd, remote) = joined();
    sshd.know("host_key.pub");
    fs::remove_file(sshd.folder.join("client_key.pub")).unwrap();
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(matches!(error, Error::Credentials { .. }), "{error}");
}

#[test]
fn a_host_that_does_not_answer_is_offline() {
    let (machine, sshd, remote) = joined();
    drop(sshd);
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(error.is_offline(), "{error}");
}

#[test]
fn a_refusal_has_the_servers_words() {
    let (machine, sshd, remote) = joined();
    sshd.know("host_key.pub");
    machine.commit("note.md", b"");
    let hook = machine.path("remote.git/hooks/pre-receive");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    let words = "commits must be signed: https://me:s3cret@host/";
    write_program(&hook, &format!("printf '\\033[31m{words}\\n'; exit 1"));
    let error = machine.git().push(&remote, None).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "{remote} refused the push: commits must be signed: https://host/\n\
             (pre-receive hook declined)"
        )
    );
    assert!(error.advice().unwrap().contains("signed commits"));
    assert!(!error.is_offline());
}
