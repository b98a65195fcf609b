//! Runs the launcher, `bin/anamnesis`, as the client and a shell do, with scripts in place of the binary.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::TempDir;

/// The client's payload of a SessionStart.
const SESSION_START: &str = r#"{"session_id":"689c4091-5aca-4c0c-8501-7cf4f6db90d1","transcript_path":"/home/dev/.claude/projects/-home-dev-project/689c4091.jsonl","cwd":"/home/dev/project","hook_event_name":"SessionStart","source":"startup"}"#;

/// Held while a program is written or started. A child that is forked while a program is open for
/// writing inherits the file, and the kernel refuses to run it ("text file busy").
static PROGRAMS: Mutex<()> = Mutex::new(());

fn programs() -> MutexGuard<'static, ()> {
    PROGRAMS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plugin in a folder whose name contains characters that are special to a shell.
struct Plugin {
    _folder: TempDir,
    root: PathBuf,
    data: PathBuf,
}

/// Output and exit code of a run of the launcher.
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

    /// Writes a script to `name` below the root. It prints `says`, its arguments and stdin.
    fn stand_in(&self, name: &str, says: &str) -> PathBuf {
        let path = self.root.join(name);
        let script = format!("#!/bin/sh\nprintf '%s' '{says}'\nprintf ' [%s]' \"$@\"\ncat\n");
        write_program(&path, &script);
        path
    }

    /// Writes a script to the path of this machine's binary in an installed plugin.
    fn native(&self, says: &str) -> PathBuf {
        self.stand_in(&format!("bin/native/{}/anamnesis", target()), says)
    }

    /// Returns the launcher with a data folder and a PATH as its only environment.
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

    /// Runs the launcher with an empty PATH, so that only shell built-ins and exec work.
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

/// Returns this machine's target in a release.
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
fn arguments_and_stdin_reach_the_binary_unchanged() {
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
fn the_second_run_starts_no_other_program() {
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

    // The usual script needs `cat`. This one needs no program, so a failure is the launcher's.
    write_program(&plugin.native(""), "#!/bin/sh\necho warm\n");
    check(&plugin.run_without_programs(), "warm\n");
}

#[test]
fn the_cached_choice_is_correct_after_an_update() {
    let plugin = Plugin::new();
    plugin.native("old");
    plugin.run(&["status"]);
    let updated = Plugin::new();
    updated.native("new");
    fs::copy(plugin.memo(), updated.memo()).unwrap();
    check(&updated.run(&["status"]), "new [status]");
}

#[test]
fn works_without_a_data_folder() {
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
fn works_with_an_unwritable_data_folder() {
    let plugin = Plugin::new();
    plugin.native("native");
    // A folder in place of the file also stops root, which ignores modes.
    fs::create_dir(plugin.memo()).unwrap();
    check(&plugin.run(&["status"]), "native [status]");
    fs::remove_dir_all(plugin.memo()).unwrap();
    set_mode(&plugin.data, 0o500);
    check(&plugin.run(&["status"]), "native [status]");
    set_mode(&plugin.data, 0o700);
}

#[test]
fn an_invalid_cached_choice_is_ignored() {
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
        // bash warns of NUL bytes. Nothing else may be printed.
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
fn a_missing_executable_bit_is_restored() {
    let plugin = Plugin::new();
    let native = plugin.native("native");
    set_mode(&native, 0o644);
    check(&plugin.run(&["status"]), "native [status]");
    assert_eq!(
        fs::metadata(&native).unwrap().permissions().mode() & 0o111,
        0o111
    );

    // The bit is lost after the choice was cached.
    set_mode(&native, 0o644);
    check(&plugin.run(&["status"]), "native [status]");
}

#[test]
fn an_empty_binary_is_ignored() {
    let plugin = Plugin::new();
    write_program(&plugin.native("native"), "");
    assert_eq!(plugin.run(&["status"]).code, Some(1));
}

#[test]
fn a_checkout_runs_its_own_build() {
    let plugin = Plugin::new();
    fs::write(plugin.root.join("Cargo.toml"), "").unwrap();
    plugin.stand_in("target/debug/anamnesis", "debug");
    check(&plugin.run(&["status"]), "debug [status]");
    // A later release build is used at once, because nothing was cached.
    plugin.stand_in("target/release/anamnesis", "release");
    check(&plugin.run(&["status"]), "release [status]");
    assert!(!plugin.memo().exists());
    let release = plugin.root.join("target/release/anamnesis");
    write_program(&release, "#!/bin/sh\necho built-ins only\n");
    check(&plugin.run_without_programs(), "built-ins only\n");
}

#[test]
fn a_shipped_binary_overrides_a_build() {
    let plugin = Plugin::new();
    plugin.native("native");
    plugin.stand_in("target/release/anamnesis", "release");
    check(&plugin.run(&["status"]), "native [status]");
}

#[cfg(target_os = "linux")]
#[test]
fn a_glibc_build_is_the_fallback_for_a_static_one() {
    let plugin = Plugin::new();
    let arch = std::env::consts::ARCH;
    plugin.stand_in(
        &format!("bin/native/{arch}-unknown-linux-gnu/anamnesis"),
        "gnu",
    );
    check(&plugin.run(&["status"]), "gnu [status]");
}

#[test]
fn windows_shells_run_the_exe_beside_the_launcher() {
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
fn processor_names_are_normalised() {
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

/// Returns the launcher on a machine with this output of `uname`.
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
fn a_program_of_the_same_name_on_path_is_not_run() {
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
fn the_launcher_works_when_found_on_path() {
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
fn a_command_without_a_binary_fails_with_a_message() {
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
fn a_checkout_without_a_build_says_how_to_build() {
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
fn only_session_start_reports_a_missing_binary() {
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
fn an_unknown_platform_name_is_escaped() {
    let plugin = Plugin::new();
    let mut command = with_uname(&plugin, r#""},{"x"#, "risc\"v\\");
    let run = finish(command.arg("hook"), SESSION_START);
    check(
        &run,
        "{\"systemMessage\":\"anamnesis: no binary for unknown-unknown · see Platforms in the README\"}\n",
    );
}

#[test]
fn concurrent_first_runs_succeed() {
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
