//! Repositories, remotes and environments that mean harm.

use std::{
    fs::{self, File},
    io::Read as _,
    net::TcpListener,
    path::Path,
    process::Command,
    sync::mpsc,
    thread,
    time::Duration,
};

use anamnesis_sync::git::{Error, Fetched, Git, GitEnvironment, Pushed, Task};

use crate::{LONG, Machine, Trap, commit, initialize};

fn joined() -> (Machine, anamnesis_sync::remote::Remote) {
    let machine = Machine::new();
    let folder = machine.path("remote.git");
    initialize(&folder, false);
    let remote = machine.join(folder.to_str().unwrap());
    (machine, remote)
}

/// GIT-05.
#[test]
fn no_hook_of_the_store_runs() {
    let (machine, remote) = joined();
    let marker = machine.path("marker");
    for hook in [
        "reference-transaction",
        "pre-push",
        "post-merge",
        "post-checkout",
        "post-rewrite",
        "pre-auto-gc",
        "post-index-change",
        "pre-receive",
        "update",
    ] {
        Trap::program(&marker, &machine.git_dir().join("hooks").join(hook));
    }
    machine.commit("note.md", b"");
    let git = machine.git();
    git.push(&remote, None).unwrap();
    git.fetch(&remote).unwrap();
    git.gc().unwrap();
    git.prune_now().unwrap();
    assert!(!marker.exists(), "{}", fs::read_to_string(marker).unwrap());

    plain_git_runs_the_hooks(&machine, &marker);
}

/// Checks that the hooks are there: a push by plain git runs them.
fn plain_git_runs_the_hooks(machine: &Machine, marker: &Path) {
    crate::run(
        Command::new("git")
            .arg(format!("--git-dir={}", machine.git_dir().display()))
            .args(["push", "--quiet", "origin", "main:copy"]),
    );
    assert!(marker.exists());
}

/// GIT-05: git runs the receiving side of a push to a folder on this machine.
#[test]
fn no_hook_of_a_folder_remote_runs() {
    let (machine, remote) = joined();
    let marker = machine.path("marker");
    let folder = machine.path("remote.git");
    for hook in [
        "pre-receive",
        "update",
        "proc-receive",
        "post-receive",
        "post-update",
        "reference-transaction",
        "pre-auto-gc",
    ] {
        Trap::program(&marker, &folder.join("hooks").join(hook));
    }
    machine.send_and_bring(&remote);
    machine.git().prune_remote(&folder).unwrap();
    assert!(!marker.exists(), "{}", fs::read_to_string(marker).unwrap());
    plain_git_runs_the_hooks(&machine, &marker);
}

/// GIT-04: git reads the settings of a folder remote on this machine.
#[test]
fn no_setting_of_a_folder_remote_runs_a_program() {
    let (machine, remote) = joined();
    machine.commit("note.md", b"");
    let folder = machine.path("remote.git");
    let marker = machine.path("marker");
    let trap = machine.path("trap");
    Trap::program(&marker, &trap);
    let trap = trap.to_str().unwrap();
    let alternates = machine.path("alternates.git");
    initialize(&alternates, false);
    let objects = alternates.join("objects").display().to_string();
    fs::create_dir_all(folder.join("objects/info")).unwrap();
    fs::write(folder.join("objects/info/alternates"), objects).unwrap();
    for key in [
        "core.alternateRefsCommand",
        "core.fsmonitor",
        "gc.recentObjectsHook",
        "uploadpack.packObjectsHook",
    ] {
        let config = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.arg("config").arg("--file");
            crate::run(command.arg(folder.join("config")).args(arguments));
        };
        config(&[key, trap]);
        let git = machine.git();
        for error in [
            git.push(&remote, None).unwrap_err(),
            git.fetch(&remote).unwrap_err(),
            git.prune_remote(&folder).unwrap_err(),
        ] {
            let Error::Config { key: named, file } = &error else {
                panic!("{key}: {error}");
            };
            assert_eq!(*named, key.to_lowercase());
            assert_eq!(*file, folder.join("config"));
        }
        config(&["--unset-all", key]);
    }
    assert!(!marker.exists(), "{}", fs::read_to_string(marker).unwrap());
    machine.send_and_bring(&remote);
}

/// GIT-04: git would follow such a file to a repository whose settings were not checked.
#[test]
fn a_folder_remote_that_names_another_one_is_refused() {
    let (machine, _) = joined();
    machine.commit("note.md", b"");
    let named = machine.path("elsewhere");
    fs::create_dir_all(&named).unwrap();
    let target = machine.path("remote.git");
    fs::write(
        named.join(".git"),
        format!("gitdir: {}\n", target.display()),
    )
    .unwrap();
    let remote = machine.join(named.to_str().unwrap());
    let error = machine.git().push(&remote, None).unwrap_err();
    assert!(matches!(error, Error::NoRepository { .. }), "{error}");
}

/// GIT-04: each of these can make git run a program, or go where it should not.
#[test]
fn hostile_settings_are_refused_by_name() {
    let (machine, remote) = joined();
    machine.commit("note.md", b"");
    let git_dir = machine.git_dir();
    let marker = machine.path("marker");
    let trap = format!("touch {}", marker.display());
    let other = machine.path("other");
    fs::write(
        &other,
        format!("[core]\n\tsshCommand = {trap}\n\tfsmonitor = {trap}\n"),
    )
    .unwrap();
    let other = other.to_str().unwrap();
    for (key, value) in [
        ("alias.fetch", format!("!{trap}").as_str()),
        ("core.alternaterefscommand", &trap),
        ("core.askpass", &trap),
        ("core.attributesfile", other),
        ("core.fsmonitor", &trap),
        ("core.gitproxy", &trap),
        ("core.hookspath", "/tmp"),
        ("core.pager", &trap),
        ("core.sshcommand", &trap),
        ("core.worktree", "/tmp"),
        ("credential.helper", &format!("!{trap}")),
        ("diff.external", &trap),
        ("extensions.worktreeconfig", "true"),
        ("filter.x.clean", &trap),
        ("gc.recentobjectshook", &trap),
        ("http.proxy", "http://localhost:1"),
        ("include.path", other),
        ("includeif.gitdir:/.path", other),
        ("merge.x.driver", &trap),
        ("protocol.ext.allow", "always"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.proxy", "http://localhost:1"),
        ("remote.origin.pushurl", &format!("ext::{trap}")),
        ("remote.origin.receivepack", &trap),
        ("remote.origin.uploadpack", &trap),
        ("remote.origin.vcs", "ext"),
        ("uploadpack.packobjectshook", &trap),
        ("url.ext::sh -c 'true' .insteadof", "/"),
    ] {
        let config = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command
                .args(["config", "--file"])
                .arg(git_dir.join("config"));
            crate::run(command.args(arguments));
        };
        config(&[key, value]);
        let git = machine.git();
        for error in [
            git.check_config().unwrap_err(),
            git.fetch(&remote).unwrap_err(),
            git.push(&remote, None).unwrap_err(),
            git.gc().unwrap_err(),
            git.prune_now().unwrap_err(),
        ] {
            let Error::Config { key: named, file } = &error else {
                panic!("{key}: {error}");
            };
            assert_eq!(named, key);
            assert_eq!(*file, git_dir.join("config"));
        }
        let command = git.check_config().unwrap_err().advice().unwrap();
        crate::run(Command::new("sh").args(["-c", &command]));
        git.check_config().unwrap();
    }
    assert!(!marker.exists());
    assert_eq!(machine.git().push(&remote, None).unwrap(), Pushed::Done);
}

/// GIT-03, GIT-04: the address is the one that was checked, once.
#[test]
fn another_address_in_the_repository_is_refused() {
    let (machine, remote) = joined();
    let marker = machine.path("marker");
    let address = format!("ext::touch% {}", marker.display());
    let mut config = machine.repository().config().unwrap();
    config.set_str("remote.origin.url", &address).unwrap();
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(matches!(error, Error::OtherRemote { .. }), "{error}");
    assert!(!error.to_string().contains("ext"));
    // git would also push to a second address.
    config
        .set_str("remote.origin.url", remote.as_str())
        .unwrap();
    config
        .set_multivar("remote.origin.url", "^$", &address)
        .unwrap();
    let error = machine.git().push(&remote, None).unwrap_err();
    assert!(matches!(error, Error::OtherRemote { .. }), "{error}");
    assert!(!marker.exists());
}

/// GIT-03: what the user's own configuration makes of an address is theirs, but no program.
#[test]
fn an_address_does_not_turn_into_a_program() {
    let (machine, remote) = joined();
    let marker = machine.path("marker");
    machine.write_config(&format!(
        "[url \"ext::touch {} \"]\n\tinsteadOf = /\n[protocol]\n\tallow = always\n",
        marker.display()
    ));
    let error = machine.git().fetch(&remote).unwrap_err();
    assert!(
        error.to_string().contains("transport 'ext' not allowed"),
        "{error}"
    );
    assert!(!marker.exists());
}

/// HOOK-04.
#[test]
fn programs_of_the_current_folder_are_not_run() {
    let (machine, remote) = joined();
    machine.commit("note.md", b"");
    let marker = machine.path("marker");
    // git runs in the repository's folder.
    for program in [
        "git",
        "ssh",
        "git-upload-pack",
        "git-remote-https",
        "bin/git",
    ] {
        Trap::program(&marker, &machine.git_dir().join(program));
    }
    let path = std::env::var("PATH").unwrap();
    let mut variables = machine.variables();
    variables.push(("PATH".into(), format!(".:bin::{path}").into()));
    let git = machine.git_in(variables, LONG);
    git.push(&remote, None).unwrap();
    git.fetch(&remote).unwrap();
    let remote = machine.join("ssh://host.invalid/memory.git");
    assert!(git.fetch(&remote).unwrap_err().is_offline());
    assert!(!marker.exists());

    let nothing = GitEnvironment::choose([("PATH".into(), ".:bin".into())]);
    let error = Git::new(nothing, &machine.git_dir(), LONG).unwrap_err();
    assert!(matches!(error, Error::Missing), "{error}");
}

#[test]
fn an_old_git_is_reported() {
    let machine = Machine::new();
    for (answer, version) in [("git version 2.29.9", "2.29.9"), ("nonsense", "nonsense")] {
        let program = machine.path("old/git");
        fs::create_dir_all(program.parent().unwrap()).unwrap();
        crate::write_program(&program, &format!("echo '{answer}'"));
        let path = program.parent().unwrap();
        let environment = GitEnvironment::choose([("PATH".into(), path.into())]);
        let error = Git::new(environment, &machine.git_dir(), LONG).unwrap_err();
        let expected = format!(
            "{} is git {version}, and sync needs 2.30 or later",
            program.display()
        );
        assert_eq!(error.to_string(), expected);
    }
}

/// HOOK-05.
#[test]
fn a_poisoned_environment_changes_nothing() {
    let (machine, remote) = joined();
    let elsewhere = machine.path("elsewhere.git");
    initialize(&elsewhere, false);
    let marker = machine.path("marker");
    let trap = machine.path("trap");
    Trap::program(&marker, &trap);
    let mut variables = machine.variables();
    for name in [
        "GIT_DIR",
        "GIT_COMMON_DIR",
        "GIT_OBJECT_DIRECTORY",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
    ] {
        variables.push((name.into(), elsewhere.clone().into()));
    }
    for name in [
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_ASKPASS",
        "SSH_ASKPASS",
        "GIT_EXTERNAL_DIFF",
        "GIT_PROXY_COMMAND",
        "GIT_EDITOR",
        "GIT_TRACE",
    ] {
        variables.push((name.into(), trap.clone().into()));
    }
    for (name, value) in [
        ("GIT_EXEC_PATH", "/nowhere"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.sshCommand"),
        ("GIT_CONFIG_VALUE_0", "false"),
        ("GIT_CONFIG_PARAMETERS", "'remote.origin.uploadpack=false'"),
        ("LANG", "de_DE.UTF-8"),
    ] {
        variables.push((name.into(), value.into()));
    }
    let git = machine.git_in(variables, LONG);
    let sent = machine.commit("note.md", b"");
    assert_eq!(git.fetch(&remote).unwrap(), Fetched::Empty);
    assert_eq!(git.push(&remote, None).unwrap(), Pushed::Done);
    assert_eq!(git.fetch(&remote).unwrap(), Fetched::Main);
    assert_eq!(machine.incoming(), Some(sent));
    let elsewhere = git2::Repository::open(elsewhere).unwrap();
    assert_eq!(elsewhere.references().unwrap().count(), 0);
    assert!(!marker.exists());
}

/// HOOK-02.
#[test]
fn no_name_is_given_to_a_shell_or_taken_for_an_option() {
    let base = tempfile::tempdir().unwrap();
    let name = "--x $(touch marker) `touch marker`;'\"\\ & *";
    let folder = tempfile::Builder::new()
        .prefix(name)
        .tempdir_in(base.path())
        .unwrap();
    let machine = Machine::in_folder(folder);
    let remote = machine.path("-r $(touch marker) ;'.git");
    initialize(&remote, false);
    let remote = machine.join(remote.to_str().unwrap());
    machine.send_and_bring(&remote);
    machine
        .git()
        .prune_remote(remote.folder().unwrap())
        .unwrap();
    for folder in [
        machine.git_dir(),
        machine.path(""),
        base.path().to_owned(),
        ".".into(),
    ] {
        assert!(!folder.join("marker").exists());
    }
}

/// A server that takes a connection and says nothing.
#[test]
fn a_silent_remote_is_left_at_the_limit_of_time() {
    let machine = Machine::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!(
        "http://127.0.0.1:{}/memory.git",
        listener.local_addr().unwrap().port()
    );
    let remote = machine.join(&address);
    let lock = machine.path("lock");
    let held = File::create(&lock).unwrap();
    held.lock().unwrap();
    let server = thread::spawn(move || {
        let (mut connection, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        // The connection closes when the last process that holds it has ended.
        let _ = connection.read_to_end(&mut request);
        request
    });
    let limit = Duration::from_secs(1);
    let git = machine.git_in(machine.variables(), limit).hold(held);
    let error = git.fetch(&remote).unwrap_err();
    let Error::TimedOut { task, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(*task, Task::Fetch(address));
    assert!(error.is_offline());
    assert!(
        server
            .join()
            .unwrap()
            .starts_with(b"GET /memory.git/info/refs")
    );
    drop(git);
    wait_for_lock(&lock);
    assert_eq!(machine.leftovers(), Vec::<std::path::PathBuf>::new());
}

/// HOOK-05: nothing of this process reaches git but what was chosen, and the lock's file.
#[test]
fn git_is_given_the_lock_and_nothing_else() {
    let machine = Machine::new();
    let program = machine.path("fake/git");
    fs::create_dir_all(program.parent().unwrap()).unwrap();
    let given = machine.path("given");
    let script = format!(
        "/bin/cat >'{0}'; /usr/bin/env >>'{0}'; [ $1 != version ] || echo 'git version 2.30.0'",
        given.display()
    );
    crate::write_program(&program, &script);
    let lock = machine.path("lock");
    fs::write(&lock, "the lock\n").unwrap();
    let folder = program.parent().unwrap();
    let git = machine.git_in(vec![("PATH".into(), folder.into())], LONG);
    git.hold(File::open(&lock).unwrap()).check_config().unwrap();
    // A shell adds these variables.
    let of_shell = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    let given = fs::read_to_string(given).unwrap();
    let mut lines: Vec<&str> = given
        .lines()
        .filter(|line| !of_shell.iter().any(|name| line.starts_with(name)))
        .collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        [
            "GCM_INTERACTIVE=never",
            "GIT_ASKPASS=",
            "GIT_OPTIONAL_LOCKS=0",
            "GIT_TERMINAL_PROMPT=0",
            "LC_ALL=C",
            format!("PATH={}", folder.display()).as_str(),
            "SSH_ASKPASS=",
            "SSH_ASKPASS_REQUIRE=never",
            "the lock",
        ]
    );
}

/// Blocks until the lock is free.
fn wait_for_lock(path: &Path) {
    let file = File::open(path).unwrap();
    let (sender, receiver) = mpsc::channel();
    thread::spawn(move || sender.send(file.lock()));
    receiver.recv_timeout(LONG).unwrap().unwrap();
}

/// GIT-10.
#[test]
fn an_oversized_remote_is_not_taken() {
    const LIMIT: u64 = 8 * 1024 * 1024;
    let (machine, remote) = joined();
    machine.send_and_bring(&remote);
    let before = machine.incoming();
    let bare = git2::Repository::open(machine.path("remote.git")).unwrap();
    // Random bytes do not compress.
    let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
    let content: Vec<u8> = (0..LIMIT / 8 + 1_000)
        .flat_map(|_| {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            noise.to_le_bytes()
        })
        .collect();
    let large = commit(&bare, "refs/heads/main", "large.md", &content);
    let limited = machine.git().max_fetch(LIMIT);
    let error = limited.fetch(&remote).unwrap_err();
    assert!(
        matches!(error, Error::TooLarge { limit: LIMIT, .. }),
        "{error}"
    );
    assert_eq!(machine.leftovers(), Vec::<std::path::PathBuf>::new());
    assert_eq!(machine.incoming(), before);
    assert!(machine.repository().find_commit(large).is_err());
    // The size was the reason.
    assert_eq!(machine.git().fetch(&remote).unwrap(), Fetched::Main);
    assert_eq!(machine.incoming(), Some(large));
}
