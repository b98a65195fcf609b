//! The launcher, `bin/anamnesis`, as the client and a shell start it, with stand-ins for the binary.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

/// A SessionStart as the client sends it.
const SESSION_START: &str = r#"{"session_id":"689c4091-5aca-4c0c-8501-7cf4f6db90d1","transcript_path":"/home/dev/.claude/projects/-home-dev-project/689c4091.jsonl","cwd":"/home/dev/project","hook_event_name":"SessionStart","source":"startup"}"#;

/// Held while a program is written and while one is started: a process that is born while a program
/// is open for writing holds it open too, and the kernel then refuses to run it ("text file busy").
static PROGRAMS: Mutex<()> = Mutex::new(());

fn programs() -> MutexGuard<'static, ()> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plugin in a folder whose name has all that a shell could stumble over.
struct Plugin {
    _folder: TempDir,
    root: PathBuf,
    data: PathBuf,
}

/// What a run of the launcher left.
#[derive(Debug)]
struct Run {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Plugin {
    fn new() -> Plugin {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("it's a \"plug in\" $HOME `id` *");
        let plugin = Plugin {
            root: base.join("root"),
            data: base.join("data"),
            _folder: folder,
        };
        fs::create_dir_all(plugin.root.join("bin")).unwrap();
        fs::create_dir_all(&plugin.data).unwrap();
        let launcher = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bin/anamnesis");
        write_program(&plugin.launcher(), &fs::read_to_string(launcher).unwrap());
        plugin
    }

    fn launcher(&self) -> PathBuf {
        self.root.join("bin/anamnesis")
    }

    fn memo(&self) -> PathBuf {
        self.data.join("launcher")
    }

    /// Puts a stand-in at `name` below the root. It says who it is, then its arguments and stdin.
    fn stand_in(&self, name: &str, says: &str) -> PathBuf {
        let path = self.root.join(name);
        let script = format!("#!/bin/sh\nprintf '%s' '{says}'\nprintf ' [%s]' \"$@\"\ncat\n");
        write_program(&path, &script);
        path
    }

    /// Puts a stand-in where this machine's release binary stands in an installed plugin.
    fn native(&self, says: &str) -> PathBuf {
        self.stand_in(&format!("bin/native/{}/anamnesis", target()), says)
    }

    /// The launcher with a data folder, a PATH, and nothing else of this process's environment.
    fn command(&self) -> Command {
        let mut command = Command::new(self.launcher());
        command
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("CLAUDE_PLUGIN_DATA", &self.data);
        command
    }

    fn run(&self, arguments: &[&str]) -> Run {
        finish(self.command().args(arguments), "")
    }

    /// Runs it with a PATH on which there is nothing: only built-ins and exec can work.
    fn run_without_programs(&self) -> Run {
        finish(self.command().env("PATH", &self.data).arg("status"), "")
    }
}

fn finish(command: &mut Command, stdin: &str) -> Run {
    let mut child = start(command.stdin(Stdio::piped()));
    let written = child.stdin.take().unwrap().write_all(stdin.as_bytes());
    let output = child.wait_with_output().unwrap();
    written.expect("the launcher or its binary reads all of stdin");
    Run {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn start(command: &mut Command) -> Child {
    let _alone = programs();
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn write_program(path: &Path, content: &str) {
    let _alone = programs();
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
    set_mode(path, 0o755);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// This machine's target in a release.
fn target() -> String {
    let arch = std::env::consts::ARCH;
    if cfg!(target_os = "macos") {
        format!("{arch}-apple-darwin")
    } else {
        format!("{arch}-unknown-linux-musl")
    }
}

#[track_caller]
fn check(run: &Run, stdout: &str) {
    assert_eq!(
        (run.code, run.stdout.as_str(), run.stderr.as_str()),
        (Some(0), stdout, ""),
        "{run:?}"
    );
}

#[test]
fn the_native_binary_gets_arguments_and_stdin_as_they_are() {
    let plugin = Plugin::new();
    plugin.native("native");
    let arguments = ["search", "it's", "a  \"b\"", "$(id)", "*", ""];
    let run = finish(plugin.command().args(arguments), "line one\n\u{2028}no end");
    check(
        &run,
        "native [search] [it's] [a  \"b\"] [$(id)] [*] []line one\n\u{2028}no end",
    );
}

#[test]
fn the_second_run_needs_no_program() {
    let plugin = Plugin::new();
    plugin.native("native");
    check(&plugin.run(&["status"]), "native [status]");
    let memo = fs::read_to_string(plugin.memo()).unwrap();
    assert!(
        memo.ends_with(&format!(" native/{}/anamnesis\n", target())),
        "{memo:?}"
    );
    assert_eq!(
        fs::read_dir(&plugin.data).unwrap().count(),
        1,
        "a temporary file was left"
    );

    // The stand-in is a script with a `cat`: one that needs nothing shows what the launcher needs.
    write_program(&plugin.native(""), "#!/bin/sh\necho warm\n");
    check(&plugin.run_without_programs(), "warm\n");
}

#[test]
fn the_choice_stays_right_after_an_update() {
    let plugin = Plugin::new();
    plugin.native("old");
    plugin.run(&["status"]);
    let updated = Plugin::new();
    updated.native("new");
    fs::copy(plugin.memo(), updated.memo()).unwrap();
    check(&updated.run(&["status"]), "new [status]");
}

#[test]
fn without_a_data_folder_it_works_and_remembers_nothing() {
    let plugin = Plugin::new();
    plugin.native("native");
    for data in [None, Some(""), Some("/nowhere/at/all"), Some("/dev/null")] {
        let mut command = plugin.command();
        command.env_remove("CLAUDE_PLUGIN_DATA").arg("status");
        if let Some(data) = data {
            command.env("CLAUDE_PLUGIN_DATA", data);
        }
        check(&finish(&mut command, ""), "native [status]");
    }
    assert!(!plugin.memo().exists());
}

#[test]
fn a_data_folder_that_takes_no_file_is_no_trouble() {
    let plugin = Plugin::new();
    plugin.native("native");
    // A folder in the file's place stops root too, whom modes do not.
    fs::create_dir(plugin.memo()).unwrap();
    check(&plugin.run(&["status"]), "native [status]");
    fs::remove_dir_all(plugin.memo()).unwrap();
    set_mode(&plugin.data, 0o500);
    check(&plugin.run(&["status"]), "native [status]");
    set_mode(&plugin.data, 0o700);
}

#[test]
fn a_choice_that_is_wrong_or_hostile_is_not_followed() {
    let plugin = Plugin::new();
    let native = plugin.native("native");
    plugin.run(&["status"]);
    let memo = fs::read_to_string(plugin.memo()).unwrap();
    let boot = memo.split(' ').next().unwrap().to_owned();

    plugin.stand_in("evil/anamnesis", "evil");
    plugin.stand_in("bin/native/other/anamnesis", "of another boot");
    let absolute = plugin.stand_in("evil/native/x/anamnesis", "evil");
    plugin.stand_in("bin/evil", "evil");
    let choices = [
        String::new(),
        "\n".to_owned(),
        boot.clone(),
        format!("{boot} \n"),
        format!("{boot} ../evil/anamnesis\n"),
        format!("{boot} native/../../evil/anamnesis\n"),
        format!("{boot} native/x/../../../evil/anamnesis\n"),
        format!("{boot} evil\n"),
        format!("{boot} {}\n", absolute.display()),
        format!("{boot} native/gone/anamnesis\n"),
        format!("{boot} native/other\n"),
        "another-boot native/other/anamnesis\n".to_owned(),
        "* native/other/anamnesis\n".to_owned(),
        "native/other/anamnesis\n".to_owned(),
        format!("{boot} $(touch evil)\n"),
        "\u{fffd}\0\0\n".to_owned(),
    ];
    for choice in choices {
        fs::write(plugin.memo(), &choice).unwrap();
        let run = plugin.run(&["status"]);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(0), "native [status]"),
            "{choice:?}: {run:?}"
        );
        // bash mentions NUL bytes; nothing else may be said.
        assert!(
            run.stderr.is_empty() || choice.contains('\0'),
            "{choice:?}: {run:?}"
        );
        assert_eq!(
            fs::read_to_string(plugin.memo()).unwrap(),
            memo,
            "{choice:?}: not put right"
        );
    }
    assert!(native.exists());
}

#[test]
fn a_lost_run_bit_is_mended() {
    let plugin = Plugin::new();
    let native = plugin.native("native");
    set_mode(&native, 0o644);
    check(&plugin.run(&["status"]), "native [status]");
    assert_eq!(
        fs::metadata(&native).unwrap().permissions().mode() & 0o111,
        0o111
    );

    // Lost after it was remembered.
    set_mode(&native, 0o644);
    check(&plugin.run(&["status"]), "native [status]");
}

#[test]
fn an_empty_binary_is_none() {
    let plugin = Plugin::new();
    write_program(&plugin.native("native"), "");
    assert_eq!(plugin.run(&["status"]).code, Some(1));
}

#[test]
fn a_checkout_runs_its_own_build_without_a_program() {
    let plugin = Plugin::new();
    fs::write(plugin.root.join("Cargo.toml"), "").unwrap();
    plugin.stand_in("target/debug/anamnesis", "debug");
    check(&plugin.run(&["status"]), "debug [status]");
    // A release build made later wins at once: nothing was remembered.
    plugin.stand_in("target/release/anamnesis", "release");
    check(&plugin.run(&["status"]), "release [status]");
    assert!(!plugin.memo().exists());
    let release = plugin.root.join("target/release/anamnesis");
    write_program(&release, "#!/bin/sh\necho built-ins only\n");
    check(&plugin.run_without_programs(), "built-ins only\n");
}

#[test]
fn a_shipped_binary_wins_over_a_build() {
    let plugin = Plugin::new();
    plugin.native("native");
    plugin.stand_in("target/release/anamnesis", "release");
    check(&plugin.run(&["status"]), "native [status]");
}

#[cfg(target_os = "linux")]
#[test]
fn a_build_for_glibc_is_taken_where_there_is_no_static_one() {
    let plugin = Plugin::new();
    let arch = std::env::consts::ARCH;
    plugin.stand_in(
        &format!("bin/native/{arch}-unknown-linux-gnu/anamnesis"),
        "gnu",
    );
    check(&plugin.run(&["status"]), "gnu [status]");
}

#[test]
fn windows_shells_get_the_program_beside_it() {
    let plugin = Plugin::new();
    plugin.native("native");
    plugin.stand_in("bin/anamnesis.exe", "windows");
    for system in [
        "MINGW64_NT-10.0-26100",
        "MSYS_NT-10.0-26100",
        "CYGWIN_NT-10.0",
    ] {
        let run = finish(with_uname(&plugin, system, "x86_64").arg("status"), "");
        check(&run, "windows [status]");
    }
}

#[test]
fn processors_have_one_name_each() {
    let cases = [
        ("Linux", "arm64", "aarch64-unknown-linux-musl"),
        ("Linux", "amd64", "x86_64-unknown-linux-musl"),
        ("Darwin", "arm64", "aarch64-apple-darwin"),
        ("Darwin", "x86_64", "x86_64-apple-darwin"),
    ];
    for (system, machine, expected) in cases {
        let plugin = Plugin::new();
        plugin.stand_in(&format!("bin/native/{expected}/anamnesis"), expected);
        let run = finish(with_uname(&plugin, system, machine).arg("status"), "");
        check(&run, &format!("{expected} [status]"));
    }
}

/// The launcher on a machine that calls itself so.
fn with_uname(plugin: &Plugin, system: &str, machine: &str) -> Command {
    let programs = plugin.root.join("programs");
    let script =
        format!("#!/bin/sh\ncase $1 in -m) echo '{machine}' ;; *) echo '{system}' ;; esac\n");
    write_program(&programs.join("uname"), &script);
    let mut command = plugin.command();
    command.env("PATH", format!("{}:/usr/bin:/bin", programs.display()));
    command
}

#[test]
fn a_program_of_this_name_on_the_path_is_never_run() {
    let plugin = Plugin::new();
    let other = plugin.stand_in("elsewhere/anamnesis", "another program");
    let path = format!("{}:/usr/bin:/bin", other.parent().unwrap().display());
    let run = finish(plugin.command().env("PATH", path).arg("status"), "");
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
}

/// HOOK-04: an empty or relative entry of PATH is the current folder, which may be a hostile checkout.
#[test]
fn no_program_of_the_current_folder_is_run() {
    let checkout = tempfile::tempdir().unwrap();
    let marker = checkout.path().join("marker");
    for name in ["uname", "mv", "chmod", "dd", "cat"] {
        for folder in ["", "bin"] {
            let trap = format!("#!/bin/sh\necho \"$0\" >>'{}'\n", marker.display());
            write_program(&checkout.path().join(folder).join(name), &trap);
        }
    }
    for path in [
        ":/usr/bin:/bin",
        ".:/usr/bin:/bin",
        "bin::./bin:/usr/bin:/bin",
        "/usr/bin:/bin:",
        "",
        ".",
        ":",
    ] {
        let run = |plugin: &Plugin, verb: &str, stdin: &str| {
            let mut command = plugin.command();
            command.env("PATH", path).current_dir(checkout.path());
            finish(command.arg(verb), stdin)
        };
        // A first run asks uname, gives the binary its run bit and remembers it by mv.
        let plugin = Plugin::new();
        let shows_path = "#!/bin/sh\nprintf '%s' \"$PATH\"\n";
        let native = plugin.native("");
        write_program(&native, shows_path);
        set_mode(&native, 0o644);
        check(&run(&plugin, "status", ""), path);
        assert!(plugin.memo().exists(), "{path:?}");
        // Without a binary dd and cat read the payload.
        fs::remove_file(&native).unwrap();
        let started = run(&plugin, "hook", SESSION_START);
        assert!(started.stdout.contains("no binary for"), "{started:?}");
        let run = fs::read_to_string(&marker).unwrap_or_default();
        assert_eq!(run, "", "PATH={path:?}");
    }
}

#[test]
fn a_shell_that_found_it_by_name_is_served() {
    let plugin = Plugin::new();
    plugin.native("native");
    let mut command = Command::new("/bin/sh");
    command
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .current_dir(plugin.root.join("bin"));
    check(
        &finish(command.args(["anamnesis", "status"]), ""),
        "native [status]",
    );
}

#[test]
fn without_a_binary_a_command_says_so_and_fails() {
    let plugin = Plugin::new();
    fs::create_dir(plugin.root.join("bin/native")).unwrap();
    for arguments in [&["serve"][..], &["status"], &["capture", "--no-sync"], &[]] {
        let run = plugin.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (Some(1), ""),
            "{arguments:?}"
        );
        let expected = format!(
            "anamnesis: no binary for {} · see Platforms in the README\n",
            target()
        );
        assert_eq!(run.stderr, expected, "{arguments:?}");
    }
}

#[test]
fn without_a_build_a_checkout_says_how_to_make_one() {
    let plugin = Plugin::new();
    fs::write(plugin.root.join("Cargo.toml"), "").unwrap();
    let run = plugin.run(&["status"]);
    assert_eq!(
        run.stderr,
        "anamnesis: no binary built yet · run: cargo build --release\n"
    );
    assert_eq!(run.code, Some(1));
}

#[test]
fn without_a_binary_only_the_start_of_a_session_gets_a_line() {
    let plugin = Plugin::new();
    let expected = format!(
        "{{\"systemMessage\":\"anamnesis: no binary for {} · see Platforms in the README\"}}\n",
        target()
    );
    let pretty: serde_json::Value = serde_json::from_str(SESSION_START).unwrap();
    for payload in [
        SESSION_START.to_owned(),
        serde_json::to_string_pretty(&pretty).unwrap(),
    ] {
        let run = finish(plugin.command().arg("hook"), &payload);
        check(&run, &expected);
        let answer: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
        assert_eq!(answer.as_object().map(serde_json::Map::len), Some(1));
        assert!(
            answer["systemMessage"]
                .as_str()
                .is_some_and(|line| line.chars().count() <= 100)
        );
    }

    let talked_of = SESSION_START
        .replace("SessionStart", "UserPromptSubmit")
        .replace("startup", r#"said: \"hook_event_name\":\"SessionStart\""#);
    let huge = SESSION_START.replace("SessionStart", "UserPromptSubmit") + &" ".repeat(4 << 20);
    for payload in [String::new(), "not JSON \0".to_owned(), talked_of, huge] {
        check(&finish(plugin.command().arg("hook"), &payload), "");
    }
}

#[test]
fn a_machine_with_a_strange_name_cannot_break_the_line() {
    let plugin = Plugin::new();
    let mut command = with_uname(&plugin, r#""},{"x"#, "risc\"v\\");
    let run = finish(command.arg("hook"), SESSION_START);
    check(
        &run,
        "{\"systemMessage\":\"anamnesis: no binary for unknown-unknown · see Platforms in the README\"}\n",
    );
}

#[test]
fn many_first_runs_at_once_all_work() {
    let plugin = Plugin::new();
    plugin.native("native");
    let children: Vec<_> = (0..32)
        .map(|_| start(plugin.command().arg("status").stdin(Stdio::null())))
        .collect();
    for child in children {
        assert_eq!(child.wait_with_output().unwrap().stdout, b"native [status]");
    }
    assert_eq!(
        fs::read_dir(&plugin.data).unwrap().count(),
        1,
        "temporary files were left"
    );
}
