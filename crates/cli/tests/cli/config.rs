//! `config`: each setting, where its value comes from, and changing it; what the plugin is given.

use std::fs;

use anamnesis_testkit::home::TestHome;
use serde_json::json;

use crate::{NO_OP, SESSION, snapshot, untouched_home};

/// A home in which no variable says how the machine is called.
fn run(home: &TestHome, words: &str) -> String {
    let command = home.command(words.split_whitespace());
    command.without("ANAMNESIS_MACHINE_ID").run().shown()
}

#[test]
fn every_setting_and_where_it_comes_from() {
    let home = untouched_home();
    home.write(
        "config.json",
        r#"{"machine_id": "desk", "session_line": "problems", "remote": "git@git.home:me/memory.git",
            "exclude": ["~/secret", "/srv/*/keys", "/srv/a/rather/long/folder"], "theirs": 1}"#,
    );
    snapshot!(home.run("config list").shown(), @"
    exit 0
    machine_id                  laptop                        ANAMNESIS_MACHINE_ID
                                over desk in config.json
    remote                      git@git.home:me/memory.git    config.json
    sync.auto                   on                            default
    sync.allow_http             off                           default
    import_native               on                            default
    learn.suggest               on                            default
    recall.prompt               on                            default
    recall.tool                 on                            default
    recall.wide                 off                           default
    recall.notes                3                             default
    recall.tokens               600                           default
    recall.pointers             on                            default
    recall.semantic             search                        default
    recall.history              on                            default
    reflection.provider         heuristic                     default
    reflection.model            none                          default
    reflection.base_url         none                          default
    reflection.api_key          none                          default
    reflection.timeout          30                            default
    reflection.max_tokens       120000                        default
    reflection.tokens_per_day   400000                        default
    reflection.auto             off                           default
    review                      off                           default
    session_line                problems                      config.json
    paused                      none                          default
    exclude                     ~/secret, /srv/*/keys, /srv…  config.json
    recording.headless          on                            default
    recording.only              none                          default
    redact.patterns             none                          default
    skip_tools                  ListMcpResourcesTool, Skill…  default
    trusted_variables           none                          default
    retention.records_days      30                            default
    retention.trash_days        30                            default
    retention.ceiling_mib       200                           default
    ");
    assert_eq!(home.run("config").shown(), home.run("config list").shown());
    snapshot!(
        home.run("config list --json").stdout,
        "every_setting_as_json"
    );
    for line in home.run("config list").well().lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
}

#[test]
fn single_values() {
    let home = untouched_home();
    home.write(
        "config.json",
        r#"{"machine_id": "desk", "exclude": ["/a", "/b c"]}"#,
    );
    for (key, value) in [
        ("machine_id", "laptop\n"),
        ("exclude", "/a\n/b c\n"),
        ("remote", ""),
        ("sync.auto", "on\n"),
        ("sync.allow_http", "off\n"),
        ("retention.trash_days", "30\n"),
    ] {
        assert_eq!(
            home.run(&format!("config get {key}")).well(),
            value,
            "{key}"
        );
    }
    assert_eq!(run(&home, "config get machine_id"), "exit 0\ndesk\n");
}

#[test]
fn a_change_says_what_was_and_how_to_undo_it() {
    let home = untouched_home();
    let text = r#"{"theirs": {"a":  1.50}, "session_line": "off"}"#;
    home.write("config.json", text);
    snapshot!(run(&home, "config set session_line problems"), @"
    exit 0
    session_line = problems (was off)
    Undo: anamnesis config set session_line off
    ");
    snapshot!(run(&home, "config set session_line off"), @"
    exit 0
    session_line = off (was problems)
    Undo: anamnesis config set session_line problems
    ");
    snapshot!(run(&home, "config set retention.trash_days 7"), @"
    exit 0
    retention.trash_days = 7 (was 30, the default)
    Undo: anamnesis config unset retention.trash_days
    ");
    snapshot!(home.command(["config", "set", "exclude", "~/secret", "/srv/my keys"]).run().shown(), @"
    exit 0
    exclude = ~/secret, /srv/my keys (was none, the default)
    Undo: anamnesis config unset exclude
    ");
    snapshot!(home.command(["config", "set", "exclude", "/srv/x"]).run().shown(), @"
    exit 0
    exclude = /srv/x (was ~/secret, /srv/my keys)
    Undo: anamnesis config set exclude ~/secret '/srv/my keys'
    ");
    snapshot!(run(&home, "config set skip_tools"), @"
    exit 0
    skip_tools = none (was ListMcpResourcesTool, Skill…, the default)
    Undo: anamnesis config unset skip_tools
    ");
    snapshot!(run(&home, "config unset skip_tools"), @"
    exit 0
    skip_tools = ListMcpResourcesTool, Skill…, the default (was none)
    Undo: anamnesis config set skip_tools
    ");
    snapshot!(run(&home, "config unset skip_tools"), @"
    exit 0
    skip_tools was not set; the default is ListMcpResourcesTool, Skill…
    ");
    run(&home, "config unset exclude");
    run(&home, "config unset retention.trash_days");
    // Unknown keys are kept unchanged.
    snapshot!(home.read("config.json"), @r#"
    {
      "theirs": {"a":  1.50},
      "session_line": "off"
    }
    "#);
}

#[test]
fn a_variable_that_goes_over_the_file_is_named() {
    let home = untouched_home();
    home.write("config.json", "{\"machine_id\": \"old\"}");
    snapshot!(home.run("config set machine_id desk").shown(), @"
    exit 0
    machine_id = desk (was old)
    ! ANAMNESIS_MACHINE_ID is set and overrides it: laptop
    Undo: anamnesis config set machine_id old
    ");
    let remote = home.command(["config", "set", "remote", "git@git.home:memory.git"]);
    snapshot!(remote.env("ANAMNESIS_GIT_REMOTE", "https://me:hunter2@git.home/m.git").run().shown(), @"
    exit 0
    remote = git@git.home:memory.git (was none, the default)
    ! ANAMNESIS_GIT_REMOTE is set and overrides it: https://git.home/m.git
    → anamnesis init   (reaches it and joins)
    ");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let home = untouched_home();
    snapshot!(home.run("config get machine-id").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: there is no setting "machine-id"
    → machine_id?   (all: anamnesis config list)
    "#);
    snapshot!(home.run("config set records_days 3").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: there is no setting "records_days"
    → retention.records_days?   (all: anamnesis config list)
    "#);
    snapshot!(home.run("config set colour red").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: there is no setting "colour"
    → anamnesis config list
    "#);
    snapshot!(home.run("config set sync.auto maybe").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: invalid value "maybe" for sync.auto: expected on or off
    "#);
    snapshot!(home.run("config set remote ext::sh -c id").shown(), @"
    exit 2
    on stderr:
    anamnesis: invalid value for remote: expected the address of a git repository
    ");
    snapshot!(home.run("config set remote ext::sh").shown(), @"
    exit 2
    on stderr:
    anamnesis: `ext` addresses are refused: only ssh, https and absolute paths are taken
    → git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder
    ");
    snapshot!(home.run("config set remote --upload-pack=id").shown(), @"
    exit 2
    on stderr:
    anamnesis: a part of the address starts with `-`
    → git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder
    ");
    snapshot!(home.run("config set remote http://git.lan/x").shown(), @"
    exit 2
    on stderr:
    anamnesis: http sends the notes and the password readable for everyone on the way
    → git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder
    ");
    // GIT-18
    snapshot!(home.run("config set machine_id ../etc").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: invalid value "../etc" for machine_id: expected 1 to 64 letters, digits, `.`, `_` or `-`
    "#);
    snapshot!(home.run("config set exclude .").shown(), @r#"
    exit 2
    on stderr:
    anamnesis: invalid value "." in exclude: it names no folder
    "#);
    snapshot!(home.run("config set paused true").shown(), @"
    exit 2
    on stderr:
    anamnesis: `config` cannot change what is paused
    → anamnesis off, or anamnesis on
    ");
    assert!(!home.store().join("config.json").exists());
    // With the setting that allows it, it is allowed.
    home.run("config set sync.allow_http on").well();
    home.run("config set remote http://git.lan/x").well();
}

#[test]
fn the_agent_changes_no_setting() {
    let home = untouched_home();
    snapshot!(home.command(["config", "set", "remote", "/srv/x.git"]).by_agent().run().shown(), @"
    exit 1
    on stderr:
    anamnesis: only a person can change settings
    → run this command in a terminal of your own
    ");
    for words in [
        "set sync.auto off",
        "set sync.allow_http on",
        "set session_line off",
        "unset exclude",
    ] {
        let output = home
            .command(format!("config {words}").split(' '))
            .by_agent()
            .run();
        assert_eq!(output.code, Some(1), "{words}");
    }
    assert!(!home.store().join("config.json").exists());
    assert!(
        home.command(["config", "list"])
            .by_agent()
            .run()
            .well()
            .contains("sync.auto")
    );
}

#[test]
fn a_file_that_makes_no_sense() {
    let home = untouched_home();
    home.write(
        "config.json",
        r#"{"session_line": "loud", "retention": 30}"#,
    );
    let output = home.run("config list");
    snapshot!(output.stderr, @r#"
    ! config.json: invalid value "loud" for session_line: expected on, problems or off; invalid value 30 for retention: expected an object
    → anamnesis config set or unset the setting, or fix the file
    "#);
    assert!(
        output.stdout.contains("session_line                on "),
        "{}",
        output.stdout
    );
    snapshot!(home.run("config set retention.trash_days 7").shown(), @"
    exit 1
    on stderr:
    anamnesis: retention in config.json is 30, not an object
    → anamnesis doctor
    ");
    home.write("config.json", "{");
    snapshot!(home.run("config set session_line off").shown(), @"
    exit 1
    on stderr:
    anamnesis: config.json is not a JSON object: EOF while parsing an object at line 1 column 1; fix the file first
    → anamnesis doctor
    ");
    assert_eq!(home.read("config.json"), "{");
}

#[test]
fn credentials_are_never_shown() {
    // GIT-11
    let home = untouched_home();
    let address = "https://me:hunter2@git.home/me/memory.git";
    let mut shown = home
        .command(["config", "set", "remote", address])
        .run()
        .well();
    for words in [
        "config list",
        "config list --json",
        "config get remote",
        "config set remote /srv/x.git",
        "config set remote https://me:hunter2@",
        "config set remote https://me:hunter2@h/x y",
        "config set remote https://me:hunter2@h/?token=hunter2",
        "doctor",
        "status",
    ] {
        shown.push_str(&home.run(words).shown());
        home.command(["config", "set", "remote", address])
            .run()
            .well();
    }
    shown.push_str(&home.run("config unset remote").shown());
    let variable = home
        .command(["config", "list"])
        .env("ANAMNESIS_GIT_REMOTE", address);
    shown.push_str(&variable.run().shown());
    // Nor where the address makes no sense at all.
    home.write(
        "config.json",
        json!({"remote": "https://me:hunter2@git.home:x/y"}).to_string(),
    );
    shown.push_str(&home.run("config list").shown());
    shown.push_str(&home.run("doctor").shown());
    home.write("config.json", json!({"remote": [address]}).to_string());
    shown.push_str(&home.run("config list").shown());
    shown.push_str(&home.run("doctor").shown());
    assert!(shown.contains("https://git.home/me/memory.git"), "{shown}");
    assert!(!shown.contains("hunter2"), "{shown}");
}

/// Runs a hook whose plugin option says this, as Claude Code's dialog stores it.
fn hook(home: &TestHome, remote: &str) {
    let answer = json!({ "anamnesis@anamnesis": { "options": { "remote": remote } } });
    let settings = json!({ "pluginConfigs": answer }).to_string();
    std::fs::write(home.claude().join("settings.json"), settings).unwrap();
    announce(home, remote);
}

/// Runs a hook whose environment says that this is the plugin's option.
fn announce(home: &TestHome, remote: &str) {
    let hook = home.hook_with(home.payload("Stop", SESSION).to_string());
    assert_eq!(
        hook.env("CLAUDE_PLUGIN_OPTION_REMOTE", remote).run().well(),
        NO_OP
    );
    home.settle();
}

#[test]
fn a_repository_does_not_say_where_notes_go() {
    // HOOK-03
    let home = untouched_home();
    announce(&home, "https://evil.example/all.git");
    assert!(!home.store().join("config.json").exists());
    let doctor = home.run("doctor").shown();
    assert!(
        doctor.contains("your own settings of Claude Code do not name it"),
        "{doctor}"
    );
    hook(&home, "git@git.home:me/memory.git");
    assert!(home.read("config.json").contains("git.home"));
    // A project's variable beside the person's answer.
    announce(&home, "https://evil.example/all.git");
    assert!(!home.read("config.json").contains("evil"));
}

#[test]
fn a_changed_option_of_the_plugin_is_copied_once() {
    let home = untouched_home();
    home.write("config.json", "{\"theirs\": 1}");
    let file = || home.read("config.json");
    // Empty is no answer.
    hook(&home, "");
    assert_eq!(file(), "{\"theirs\": 1}");
    hook(&home, "git@git.home:me/memory.git");
    snapshot!(file(), @r#"
    {
      "theirs": 1,
      "remote": "git@git.home:me/memory.git"
    }
    "#);
    // What is changed by hand afterwards stays.
    home.run("config set remote git@git.home:me/own.git").well();
    let own = file();
    hook(&home, "git@git.home:me/memory.git");
    hook(&home, "");
    hook(&home, "git@git.home:me/memory.git");
    assert_eq!(file(), own);
    hook(&home, "git@git.home:me/other.git");
    assert!(file().contains("me/other.git"));
    assert_eq!(home.log(), [""; 0]);
}

#[test]
fn an_option_that_is_no_address_is_named_and_not_taken() {
    let home = untouched_home();
    home.run("config set remote git@git.home:me/own.git").well();
    let own = home.read("config.json");
    for bad in [
        "ext::sh -c 'echo hunter2'",
        "-oProxyCommand=hunter2",
        "hunter2",
        "http://me:hunter2@h/x",
    ] {
        hook(&home, bad);
        assert_eq!(home.read("config.json"), own, "{bad}");
    }
    // Once each, not at every event.
    hook(&home, "http://me:hunter2@h/x");
    assert_eq!(home.log().len(), 4, "{:?}", home.log());
    assert!(!home.log().concat().contains("hunter2"));
    let doctor = home.run("doctor").stdout;
    let at = doctor.find("! sync").unwrap();
    snapshot!(doctor[at..].lines().take(3).collect::<Vec<_>>().join("\n"), @"
    ! sync       the remote in the options of the plugin cannot be used:
                 http sends the notes and the password readable for everyone on the way
                 → /plugin configure anamnesis@anamnesis   (in Claude Code)
    ");
    // Nothing of it is in the records.
    for name in ["journal.db", "journal.db-wal"] {
        let records = fs::read(home.store().join(name)).unwrap_or_default();
        assert!(
            !String::from_utf8_lossy(&records).contains("hunter2"),
            "{name}"
        );
    }
    hook(&home, "git@git.home:me/memory.git");
    assert!(home.read("config.json").contains("git.home"));
    assert!(!home.run("doctor").stdout.contains("! sync"));
}

#[test]
fn a_remote_that_can_be_none_is_named_by_doctor() {
    let home = untouched_home();
    home.write("config.json", r#"{"remote": "ext::sh -c id"}"#);
    let doctor = home.run("doctor").stdout;
    let at = doctor.find("! sync").unwrap();
    snapshot!(doctor[at..].lines().take(3).collect::<Vec<_>>().join("\n"), @"
    ! sync       the remote that is set cannot be used:
                 `ext` addresses are refused: only ssh, https and absolute paths are taken
                 → anamnesis config set remote URL, or: config unset remote
    ");
}

#[test]
fn a_whole_number_as_python_writes_it_is_taken() {
    let home = crate::home();
    home.write("config.json", r#"{"reflection": {"timeout": 12.0}}"#);
    assert_eq!(
        home.run("config get reflection.timeout").shown(),
        "exit 0\n12\n"
    );
    home.run("config set reflection.timeout 13.0").well();
    assert_eq!(home.run("config get reflection.timeout").well(), "13\n");
    assert_eq!(home.run("config set reflection.timeout 1.5").code, Some(2));
}
