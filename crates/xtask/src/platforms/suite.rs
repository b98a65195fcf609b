//! Runs the tests of the workspace with the target's runner, and counts them.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::Command;

use super::setup::{self, Tools};
use super::{Kind, Platform, WINE};
use crate::{Result, say};

/// Packages of developers' tasks. They run on the machine of a developer, not on a platform.
const TASKS: [&str; 2] = ["anamnesis-lab", "anamnesis-xtask"];

/// Tests that a target cannot run, with their reason.
struct Skip {
    kind: Kind,
    reason: &'static str,
    /// The path of each test in its program.
    tests: &'static [&'static str],
}

/// All tests that are left out.
const SKIPS: [Skip; 4] = [
    Skip {
        kind: Kind::Windows,
        reason: "Wine 8 cannot delete a read-only file, as Windows 10 can",
        tests: &[
            "loose::tests::an_object_that_is_cut_short_is_missing_and_can_be_written_again",
            "backup::a_backup_brings_everything_back",
            "chores::what_was_done_is_sent_unless_that_is_not_wanted",
            "doctor::a_damaged_repository_is_replaced_and_named",
            "project::identity::tests::another_repository_in_the_same_place_is_another_project",
            "a_machine_with_a_damaged_repository_does_not_bring_a_purged_text_back",
            "a_purge_that_is_killed_is_finished_or_begun_again",
            "damage::damage_to_a_repository_with_a_remote_heals_by_itself",
            "damage::damage_to_a_repository_without_a_remote_heals_by_itself",
            "folder::a_home_that_is_gone_and_made_anew_gets_everything_again",
            "remotes::an_empty_remote_in_place_of_the_old_one_gets_everything",
            "journal_damage::a_bad_page_in_the_journal_does_not_stop_recording",
            "journal_damage::a_damaged_log_of_the_journal_does_not_stop_recording",
            "journal_damage::a_journal_cut_short_does_not_stop_recording",
            "journal_damage::changed_bytes_in_the_journal_do_not_stop_recording",
            "journal_damage::garbage_for_the_header_of_the_journal_does_not_stop_recording",
        ],
    },
    Skip {
        kind: Kind::Windows,
        reason: "the recorded sessions were in folders of Linux, which are no projects there",
        tests: &[
            "backfill::sessions_of_codex_and_gemini_are_listed_and_noted_once",
            "backfill::the_recorded_sessions",
            "backfill::the_sessions_of_one_project",
            "backfill::what_is_switched_off_is_left_out",
        ],
    },
    Skip {
        kind: Kind::Windows,
        reason: "npm's git for Windows is 2.45, which has no `git refs`",
        tests: &["folder::a_repository_with_reftables_is_told_how_to_convert"],
    },
    Skip {
        kind: Kind::Windows,
        reason: "it needs `true` as an editor, shell scripts, or messages or paths of Linux",
        tests: &[
            "reading_the_history_runs_nothing_that_its_configuration_names",
            "documents::every_command_line_of_the_documents_runs",
            "sessions::a_session_row_by_row",
            "sessions::an_export_is_one_object",
        ],
    },
];

/// How many tests passed and failed.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    passed: usize,
    failed: usize,
    left_out: usize,
}

impl std::fmt::Display for Counts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            passed,
            failed,
            left_out,
        } = self;
        match passed + failed {
            0 => formatter.write_str("not run"),
            _ => write!(
                formatter,
                "{passed} passed, {failed} failed, {left_out} left out"
            ),
        }
    }
}

/// The results of a run of the tests.
#[derive(Default, Debug)]
pub(super) struct Results {
    /// The tests inside of crates, and those of libraries from outside.
    pub(super) unit: Counts,
    /// The tests that run the program.
    pub(super) black_box: Counts,
    /// The failed tests.
    pub(super) failed: Vec<String>,
}

/// Returns the tests that the target leaves out, each with its reason.
pub(super) fn left_out(kind: Kind) -> impl Iterator<Item = (&'static str, &'static str)> {
    let skips = SKIPS.iter().filter(move |skip| skip.kind == kind);
    skips.flat_map(|skip| skip.tests.iter().map(|test| (*test, skip.reason)))
}

/// Runs the tests of these packages, or of all that a target has. The black-box tests run this
/// program, the released one: an unoptimised one takes several times as long under qemu.
pub(super) fn run(
    platform: &Platform,
    tools: &Tools,
    program: &Path,
    packages: &[String],
) -> Result<Results> {
    let mut test = platform.cargo(tools, "test");
    test.arg("--no-fail-fast");
    for package in packages {
        test.args(["--package", package]);
    }
    if packages.is_empty() {
        test.arg("--workspace");
        for task in TASKS {
            test.args(["--exclude", task]);
        }
    }
    test.args(["--", "--exact"]);
    for (name, _) in left_out(platform.kind) {
        test.args(["--skip", name]);
    }
    test.env(
        anamnesis_testkit::home::TESTED_PROGRAM,
        platform.named(program),
    );
    if matches!(platform.kind, Kind::Musl { qemu: Some(_) }) {
        // An emulated property test of 256 cases takes minutes.
        test.env("PROPTEST_CASES", "16");
    }
    if platform.kind == Kind::Windows {
        let prefix = setup::wine_prefix(tools)?;
        let target = platform.target.to_uppercase().replace('-', "_");
        // insta asks cargo for the folder of its snapshots, which cannot be started there.
        test.env("INSTA_WORKSPACE_ROOT", &tools.root)
            .env(format!("CARGO_TARGET_{target}_RUNNER"), WINE)
            .env("WINEPATH", platform.named(&tools.git_for_windows()))
            .envs(setup::wine_variables(&prefix));
    }
    let programs = tools.root.join("crates/cli/tests");
    let (is_successful, results) = follow(&mut test, &programs)?;
    if !is_successful && results.failed.is_empty() {
        return Err(format!("{}: the tests cannot be run", platform.target).into());
    }
    Ok(results)
}

/// Shows the output of `cargo test`, and reads it.
fn follow(test: &mut Command, black_box: &Path) -> Result<(bool, Results)> {
    let (output, input) = std::io::pipe()?;
    let mut child = test.stdout(input.try_clone()?).stderr(input).spawn()?;
    // The command keeps the pipe open.
    *test = Command::new("true");
    let mut reading = Reading::default();
    for line in BufReader::new(output).split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        say(line.trim_end());
        reading.read(line.trim(), |program| black_box.join(program).is_dir());
    }
    Ok((child.wait()?.success(), reading.results))
}

/// What was read of `cargo test`'s output.
#[derive(Default)]
struct Reading {
    results: Results,
    is_black_box: bool,
}

impl Reading {
    fn read(&mut self, line: &str, is_black_box: impl Fn(&str) -> bool) {
        if let Some(program) = line.strip_prefix("Running ") {
            let folder = program.strip_prefix("tests/");
            let folder = folder.and_then(|rest| rest.split('/').next());
            self.is_black_box = folder.is_some_and(is_black_box);
        } else if line.starts_with("Doc-tests ") {
            self.is_black_box = false;
        } else if let Some(result) = line.strip_prefix("test result: ") {
            let counts = if self.is_black_box {
                &mut self.results.black_box
            } else {
                &mut self.results.unit
            };
            let numbers = numbers(result);
            let number = |name| numbers.get(name).copied().unwrap_or_default();
            counts.passed += number("passed");
            counts.failed += number("failed");
            counts.left_out += number("ignored") + number("filtered");
        } else if let Some(rest) = line.strip_prefix("test ")
            && let Some(name) = rest.strip_suffix(" ... FAILED")
        {
            self.results.failed.push(name.to_owned());
        }
    }
}

/// Returns the numbers of a line such as `ok. 2 passed; 1 failed`, by the word after them.
fn numbers(line: &str) -> BTreeMap<&str, usize> {
    let words: Vec<&str> = line.split([' ', ';']).filter(|it| !it.is_empty()).collect();
    let pairs = words.windows(2);
    pairs
        .filter_map(|pair| Some((pair[1], pair[0].parse().ok()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_of_libraries_and_of_the_program_are_counted_apart() {
        let output = "\
     Running unittests src/lib.rs (target/debug/deps/anamnesis_text-1.exe)
test glob::tests::stars ... ok
test result: ok. 7 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.10s
     Running tests/cli/main.rs (target/debug/deps/cli-2.exe)
test project::a_remote_that_moved_keeps_the_notes ... FAILED
test result: FAILED. 5 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 2.00s
     Running tests/sync/main.rs (target/debug/deps/sync-3.exe)
test result: ok. 4 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s
   Doc-tests anamnesis_text
test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s
";
        let mut reading = Reading::default();
        for line in output.lines() {
            reading.read(line.trim(), |program| program == "cli");
        }
        let results = reading.results;
        assert_eq!(results.unit.to_string(), "12 passed, 0 failed, 3 left out");
        assert_eq!(
            results.black_box.to_string(),
            "5 passed, 1 failed, 0 left out"
        );
        let failed = "project::a_remote_that_moved_keeps_the_notes";
        assert_eq!(results.failed, [failed]);
    }
}
