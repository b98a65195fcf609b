//! Tells which commands check, build, deploy or run a project, and which of them are the same check.
//!
//! Only the failure of such a command says something about the project. Targets of `make`, package
//! scripts and scripts in the project's folder count by how they are called, because the project's own
//! files name them.

use super::{
    super::is_outside, Command, EVERYDAY, SETUP_PROGRAMS, TEST_GOALS, TEST_PROGRAMS, arguments,
    is_subsequence, is_test, name_of, positional, program,
};
use crate::{truncate::line, word_list::is_in};

/// The maximum length of a check as it is shown, in characters.
const MAX_SHOWN: usize = 80;

/// Programs that run what the project's own files name, besides [`TEST_GOALS`].
const TASK_RUNNERS: &str = "cmake|invoke|mage|mise|moon|nx|poe|pre-commit|scons|tox|turbo|waf";

/// Subcommands of any tool that check, build, deploy or run.
const VERBS: &str = "\
    analyze|apply|archive|assemble|bench|build|check|clippy|compile|deploy|dev|doc|e2e|fmt|\
    format|lint|migrate|nextest|package|plan|preview|publish|release|run|serve|start|t|test|\
    tests|tsc|typecheck|up|validate|verify|vet|xtask";

/// Programs that only check, build or deploy, besides [`TEST_PROGRAMS`].
const CHECKERS: &str = "\
    biome|black|clang|clang-tidy|esbuild|eslint|flake8|g++|gcc|gofmt|isort|javac|mypy|oxlint|\
    phpstan|prettier|pyright|rollup|rubocop|ruff|rustc|rustfmt|tsc|tsup|webpack|xcodebuild";

/// Programs that build or deploy without a subcommand.
const DEPLOYERS: &str = "netlify|next|vercel|vite";

/// Parts of the names of programs that check.
const CHECKER_NAMES: &str = "lint|test|check|tsc";

/// Programs with subcommands of [`VERBS`] that do something else, and installers.
const OTHERS: &str = "\
    apt|apt-get|brew|claude|code|conda|dnf|gem|gh|git|glab|hg|jj|open|pacman|pip|pip3|service|\
    ssh|sudo|systemctl";

/// Programs that run a file.
const INTERPRETERS: &str =
    "bash|bun|deno|java|node|perl|php|python|python3|ruby|sh|ts-node|tsx|zsh";

/// Options of interpreters before a script in the command itself.
const INLINE: &str = "-c|-e|-r|--eval";

/// File name extensions of scripts and programs.
const SCRIPTS: &str = "bat|cjs|go|jar|js|mjs|php|pl|ps1|py|rb|sh|ts|tsx";

/// Everyday programs that fail without a message.
const SILENT: &str = "[|command|diff|egrep|false|grep|pgrep|rg|test";

/// Parts of the output of a check that failed.
const CHECK_FAILS: &str = "\
    \nE   |\nTraceback | failed,| failed (| failed in | failing|): error |--- FAIL|: *** |AssertionError|\
    BUILD FAIL|FAIL |FAIL\t|FAILED|FAILURES|Failure/Error|could not compile|error[|not ok |panicked at|●|✕|✖|✗";

/// Parts of what git prints if it refuses.
const GIT_FAILS: &str =
    "fatal: |[rejected]|[remote rejected]|nothing to commit|no changes added to commit";

/// Parts of errors that say that the command itself was wrong, in lower case.
const MISTYPED: &str = "\
    (eval):cd:1: |bash: cd: |bash: line 1: cd: |can't open file|cannot find main module|\
    command not found|could not find `cargo.toml`|could not read package.json|invalid option|\
    is not recognized as|missing script|no rule to make target|no such command|no such option|\
    unexpected argument|unknown option|unknown or unexpected option|unrecognized arguments|\
    unrecognized subcommand";

/// Options with which a check runs nothing, or a part that they select, in lower case.
const NARROWING: &str = "\
    bins|changed|changedsince|co|collect-only|doc|dry-run|dskiptests|dtest|exclude|filter|grep|\
    help|ignore|just-print|last-failed|lf|lib|list|list-tests|listtests|no-run|onlychanged|\
    onlyfailures|package|print-config|shard|showconfig|skip|test|testnamepattern|testpathpattern|\
    testpathpatterns|tests|version";

/// Subcommands, scripts and options of programs that run until they are stopped.
const SERVERS: &str = "dev|preview|runserver|serve|server|start|up|watch";

impl<'a> Command<'a> {
    /// Returns the last step that checks, builds, deploys or runs the project, as it is shown, with its
    /// relative folder; `None` if there is none.
    ///
    /// A script in the command itself (`python -c`, a here-document) is not the project's.
    pub fn check(&self) -> Option<String> {
        let words = self.check_words().filter(|_| !self.work.contains("<<"))?;
        Some(line(&self.in_folder(&words.join(" ")), MAX_SHOWN))
    }

    /// Returns the steps that check something as commands, of which each has passed if the whole has.
    pub fn passed_checks(&self) -> Vec<Command<'a>> {
        let mut steps = self.checking_steps();
        if self.hides_exit_status {
            steps.drain(..steps.len().saturating_sub(1));
        }
        let steps = steps.into_iter().map(|words| Command {
            steps: vec![words.clone()],
            ..*self
        });
        steps.collect()
    }

    /// Removes the steps after the one that failed, which is the last one that the output names, and returns
    /// the check as it is shown. If the output names none, any of them may have failed. `None` if another
    /// step may have ended the chain.
    pub fn failed_check(&mut self, output: &str) -> Option<String> {
        let check = self.check()?;
        if !self.hides_exit_status && self.is_ended_by_other_step(output) {
            return None;
        }
        let steps = self.checking_steps();
        if !self.hides_exit_status && steps.len() > 1 {
            let typed: Vec<String> = steps.iter().map(|words| words.join(" ")).collect();
            let is_failed = |words: &Vec<&str>| is_check(words) && is_named(words, output);
            if let Some(failed) = self.steps.iter().rposition(is_failed) {
                self.steps.truncate(failed + 1);
            } else {
                let all = self.in_folder(&typed.join(" && "));
                return Some(all)
                    .filter(|all| all.chars().count() <= MAX_SHOWN)
                    .or(Some(check));
            }
        }
        self.check()
    }

    /// Returns whether a step that is no check may have ended the chain. If that step was before all checks,
    /// only the steps before them are left.
    fn is_ended_by_other_step(&mut self, output: &str) -> bool {
        if shows_failed_check(output) {
            return false;
        }
        let after = self.steps.iter().rev();
        let mut after = after.take_while(|words| !is_check(words));
        if after.any(|words| program(words) == "git") && contains_any(output, GIT_FAILS) {
            return true;
        }
        let first = self.steps.iter().position(|words| is_check(words));
        let first = first.unwrap_or_default();
        let (before, rest) = self.steps.split_at(first);
        if !before.iter().any(|words| may_fail(words, output))
            || rest.iter().any(|words| is_named(words, output))
        {
            return false;
        }
        let check = rest.first().and_then(|words| words.first());
        let end = check.and_then(|check| self.work.find(&format!("&& {check}")));
        self.work = end.map_or(self.work, |end| self.work[..end].trim_end());
        self.steps.truncate(first);
        true
    }

    /// Returns the steps that check something, without those before another one that only format.
    fn checking_steps(&self) -> Vec<&Vec<&'a str>> {
        let checks = self.steps.iter().filter(|words| is_check(words));
        let mut checks: Vec<_> = checks.collect();
        let last = checks.pop();
        let formats = |words: &&Vec<&str>| {
            words.iter().any(|word| matches!(*word, "fmt" | "format"))
                && !words.contains(&"--check")
        };
        checks.retain(|words| !formats(words));
        checks.extend(last);
        checks
    }

    /// Returns the command with its folder relative to the project's, `None` if it runs in another one.
    pub fn within(mut self, project: &str) -> Option<Self> {
        if let Some(folder) = self.folder.filter(|_| !project.is_empty()) {
            if is_outside(folder, project) {
                return None;
            }
            if let Some(inside) = folder.strip_prefix(project) {
                self.folder = inside.strip_prefix('/').filter(|inside| !inside.is_empty());
            }
        }
        Some(self)
    }

    /// Returns whether its check runs until it is stopped, as a server does.
    pub fn is_server(&self) -> bool {
        let words = self.check_words().unwrap_or_default();
        words.iter().skip(1).any(|word| {
            let name = word.trim_start_matches('-').split([':', '-']).next();
            name.is_some_and(|name| is_in(SERVERS, name))
        })
    }

    /// Returns whether it only runs a tool that is no check, such as `npx tool add`.
    pub fn is_other_tool(&self) -> bool {
        let is_other = |words: &Vec<&str>| {
            let work = positional(words);
            work.first().is_none_or(|program| is_in(OTHERS, program))
        };
        self.is_significant()
            && self.check().is_none()
            && !self.work.contains("<<")
            && !self.steps.iter().any(is_other)
    }

    /// Returns whether a success of `other` means that this check, which failed, is over: the same check,
    /// whatever its options are, or the same tests with fewer arguments.
    pub fn is_closed_by(&self, other: &Command<'_>) -> bool {
        let same_folder = match (self.relative_folder(), other.relative_folder()) {
            (Some(folder), Some(other)) => folder == other,
            (None, Some(_)) => self.folder.is_some(),
            _ => true,
        };
        let Some(failed) = self.check_words().filter(|_| same_folder) else {
            return false;
        };
        let failed_arguments = of_work(failed);
        let mut others = other
            .steps
            .iter()
            .take_while(|words| !words.starts_with(&["cd"]));
        others.any(|passed| {
            let mut arguments = of_work(passed);
            let is_same = arguments == failed_arguments;
            arguments.retain(|word| *word != "./...");
            !is_narrower(passed, failed)
                && (is_same
                    || is_test(failed)
                        && is_test(passed)
                        && is_subsequence(&arguments, &failed_arguments))
        })
    }

    /// Returns the words that tell what a check is about: its arguments, or the program without any.
    pub fn subject(&self) -> Vec<&'a str> {
        let words = of_work(self.check_words().unwrap_or_default());
        match words.split_first() {
            Some((_, [])) | None => words,
            Some((_, arguments)) => arguments.to_vec(),
        }
    }

    fn check_words(&self) -> Option<&[&'a str]> {
        let mut steps = self.steps.iter().rev();
        steps.find(|words| is_check(words)).map(Vec::as_slice)
    }

    /// Returns a step as it is shown, with the relative folder.
    fn in_folder(&self, step: &str) -> String {
        let folder = self.relative_folder();
        let folder = folder.map_or(String::new(), |folder| format!("cd {folder} && "));
        format!("{folder}{}", step.replace('`', "'"))
    }

    fn relative_folder(&self) -> Option<&'a str> {
        let folder = self.folder.map(|folder| folder.trim_matches(['"', '\'']));
        folder.filter(|folder| {
            !folder.starts_with(['/', '~', '$', '-', '.']) && !folder.contains(':')
        })
    }
}

/// Returns whether an error says that the command itself was wrong, not the project.
pub fn is_mistyped(error: &str) -> bool {
    contains_any(&error.to_lowercase(), MISTYPED)
}

/// Returns the arguments of a step from the program that does the work on. Programs that run the scripts of
/// a package are the same one.
fn of_work<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = arguments(words);
    let work = positional(words);
    let start = arguments.iter().position(|word| work.first() == Some(word));
    arguments.drain(..start.unwrap_or_default());
    if let [program @ ("npm" | "pnpm" | "yarn" | "bun"), rest @ ..] = arguments.as_mut_slice() {
        *program = "npm";
        if let Some(script @ &mut "t") = rest.first_mut() {
            *script = "test";
        }
    }
    arguments
}

/// Returns whether a check runs less than another one, by an option that the other lacks.
fn is_narrower(words: &[&str], other: &[&str]) -> bool {
    let program = words.first().map_or("", |program| name_of(program));
    words.iter().any(|word| {
        let Some(option) = word.strip_prefix('-') else {
            return false;
        };
        let name = option.trim_start_matches('-').split('=').next();
        let name = name.unwrap_or_default().to_lowercase();
        let narrows = is_in(NARROWING, &name)
            || option.starts_with("run=")
            || option == "n" && is_in(TEST_GOALS, program);
        narrows && !other.contains(word)
    })
}

/// Returns whether an output names the script or task that a step runs: `> shop@1.0.0 lint`, `[lint] $ eslint`,
/// `make: *** [Makefile:3: lint] Error 1`.
fn is_named(words: &[&str], output: &str) -> bool {
    let work = positional(words);
    let mut tasks = work.iter().skip(1).filter(|task| **task != "run");
    tasks.any(|task| {
        output.lines().any(|line| {
            line.starts_with("> ") && line.split(' ').skip(1).take(2).any(|word| word == *task)
                || line.contains(&format!("[{task}]"))
                || line.contains(&format!(": {task}]"))
        })
    })
}

/// Returns whether a step that is no check may have failed with this output.
fn may_fail(words: &[&str], output: &str) -> bool {
    let program = program(words);
    let mut printed = output
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("Exit code "));
    if is_in(EVERYDAY, program) {
        let speaker = format!("{program}: ");
        is_in(SILENT, program) && printed.clone().next().is_none()
            || printed.any(|line| line.starts_with(&speaker))
    } else {
        !SETUP_PROGRAMS.contains(&program)
    }
}

/// Returns whether an output has the form of a failed check: a known part, or `3:1 error`, `a.c:3:1: error`.
fn shows_failed_check(output: &str) -> bool {
    let is_number = |part: &&str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let is_position = |word: &str| {
        let parts = word.trim_end_matches(':').rsplit(':');
        parts.take_while(is_number).count() == 2
    };
    contains_any(output, CHECK_FAILS) || output.split_whitespace().any(is_position)
}

fn contains_any(output: &str, parts: &str) -> bool {
    parts.split('|').any(|part| output.contains(part))
}

fn is_check(words: &[&str]) -> bool {
    let work = positional(words);
    let [called, rest @ ..] = work.as_slice() else {
        return false;
    };
    let program = name_of(called);
    // The program of a step without a runner may have a folder.
    let typed = words.first().filter(|typed| name_of(typed) == program);
    let typed = typed.unwrap_or(called);
    if is_project_file(typed) || is_test(words) {
        return true;
    }
    let is_other = is_in(EVERYDAY, program) || is_in(OTHERS, program);
    if typed.starts_with(['/', '~', '$']) || is_other {
        return false;
    }
    let argument = rest.first().copied();
    if is_in(INTERPRETERS, program) && argument.is_some_and(is_project_file) {
        return !words.iter().any(|word| is_in(INLINE, word));
    }
    let verb = argument.and_then(|verb| verb.split([':', '-']).next());
    is_in(TEST_PROGRAMS, program)
        || is_in(TEST_GOALS, program)
        || is_in(TASK_RUNNERS, program) && argument.is_some()
        || is_in(CHECKERS, program)
        || is_in(DEPLOYERS, program) && argument.is_none()
        || contains_any(program, CHECKER_NAMES)
        || verb.is_some_and(|verb| is_in(VERBS, verb))
        || argument == Some("compose") && rest.iter().any(|word| is_in(VERBS, word))
}

/// Returns whether a word is a program in the project's folder.
fn is_project_file(word: &str) -> bool {
    let word = word.trim_matches(['"', '\'']);
    let is_outside =
        word.starts_with(['/', '~', '$', '<', '-', '@']) || word.contains("node_modules");
    let extension = name_of(word).rsplit_once('.').map(|(_, end)| end);
    let is_script = extension.is_some_and(|end| is_in(SCRIPTS, end));
    !is_outside && (word.starts_with("./") || word.contains('/') || is_script)
}
