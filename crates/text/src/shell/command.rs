//! Parses a shell command as far as needed to compare it with another.
//!
//! A prefix (`cd web &&`, `RUST_LOG=debug`, `time`) or a filter of the output (`2>&1 | tail -n 20`)
//! does not change a command. Syntax that is not understood stays in the words, so that the
//! commands compare as different.

pub mod check;

use super::{
    Operator, Step, split,
    wrapper::{is_assignment, name_of, runner_length, wrapped_at},
};
use crate::{truncate::line, word_list::is_in};

/// The most characters of a command that are parsed.
const MAX_COMMAND: usize = 4_000;

/// Programs that set up the environment for the following commands.
pub const SETUP_PROGRAMS: [&str; 8] = [
    "cd", "export", "popd", "pushd", "set", "source", "unset", ".",
];

/// Wrappers with which a command is another one: it runs as another user, or gets more arguments.
const CHANGING_WRAPPERS: &str = "doas|sudo|xargs";

/// Programs that only filter or show the output of another one.
pub const VIEWERS: [&str; 10] = [
    "cat", "egrep", "grep", "head", "less", "more", "rg", "sort", "tail", "tee",
];

/// Programs that, after another command, only report that it ended.
pub const REPORTERS: [&str; 5] = ["echo", "exit", "printf", "true", ":"];

/// Programs whose success or failure says nothing about the project.
const EVERYDAY: &str = "\
    awk|basename|cat|cd|chmod|chown|command|cp|curl|cut|date|df|diff|dirname|du|echo|egrep|env|\
    exit|export|false|fd|file|find|grep|head|jq|kill|less|ln|ls|mkdir|mv|pgrep|pkill|printf|ps|\
    pwd|readlink|rg|rm|rmdir|sed|sleep|sort|stat|tail|test|touch|tree|true|type|wc|which|[";

/// Programs that only run tests.
const TEST_PROGRAMS: &str = "\
    ava|bats|busted|ctest|jest|mocha|nose2|nox|pest|phpunit|prove|py.test|pytest|rspec|tox|\
    unittest|vitest";

/// Programs that run tests with one of these as their first argument.
const TEST_VERBS: [(&str, &str); 3] = [
    ("cargo", "nextest|t|test"),
    ("bun|npm|pnpm|yarn", "t|test"),
    (
        "bazel|bazelisk|cabal|composer|cypress|dart|deno|dotnet|flutter|go|lein|mix|playwright|\
         rails|sbt|stack|swift|zig",
        "test",
    ),
];

/// Programs that run tests with one of [`GOALS`] among their arguments.
const TEST_GOALS: &str = "gmake|gradle|gradlew|just|make|meson|mvn|mvnw|ninja|rake|task|xcodebuild";

/// Goals that run tests.
const GOALS: &str = "check|spec|test|tests|verify";

/// Options before the subcommand that take the next word as their value.
const WITH_VALUE: &str = "-C|--cwd|--dir|--filter|--manifest-path|--prefix|--workspace";

/// A parsed command.
#[derive(Debug, Clone)]
pub struct Command<'a> {
    /// The part that does the work, as typed.
    work: &'a str,
    /// The folder of a leading `cd`.
    folder: Option<&'a str>,
    /// The words of each step of the work.
    steps: Vec<Vec<&'a str>>,
    /// Whether the exit status is not that of the work, as in `cargo test | tail`.
    pub hides_exit_status: bool,
}

impl<'a> Command<'a> {
    /// Parses a command; `None` if no step is left that does anything.
    pub fn parse(typed: &'a str) -> Option<Self> {
        let typed = crate::truncate::first_characters(typed, MAX_COMMAND);
        let mut steps = split(typed, true);
        steps.retain(|step| !step.is_substituted);
        let keeps_failures = typed.contains("pipefail");
        let hides = |operator| match operator {
            Operator::And => false,
            Operator::Pipe => !keeps_failures,
            Operator::Or | Operator::Then | Operator::Background => true,
        };
        let is_one = |step: &Step<'_>, list: &[&str]| {
            words(step)
                .first()
                .is_some_and(|program| list.contains(program))
        };
        let mut folder = None;
        let leading = steps
            .iter()
            .take_while(|step| is_one(step, &SETUP_PROGRAMS));
        let leading = leading.inspect(|step| {
            if let [cd, path, ..] = words(step).as_slice()
                && *cd == "cd"
            {
                folder = Some(*path);
            }
        });
        let leading = leading.count();
        steps.drain(..leading);
        // Steps before the work do not affect its exit status.
        let hides_exit_status = steps.iter().skip(1).any(|step| hides(step.before));
        while let Some(last) = steps.last()
            && steps.len() > 1
        {
            let list: &[&str] = match last.before {
                Operator::Pipe => &VIEWERS,
                _ => &REPORTERS,
            };
            if !last.words.is_empty() && !is_one(last, list) {
                break;
            }
            steps.pop();
        }
        let first = steps.first()?.words.first()?.start;
        let last = steps.last()?.words.last()?;
        let work = typed.get(first..last.start + last.typed.len())?;
        let steps: Vec<Vec<&str>> = steps
            .iter()
            .map(words)
            .filter(|words| !words.is_empty())
            .collect();
        (!steps.is_empty()).then_some(Self {
            work,
            folder,
            steps,
            hides_exit_status,
        })
    }

    /// Returns the work as typed, on one line of at most `count` characters.
    pub fn shown(&self, count: usize) -> String {
        line(&self.work.replace('`', "'"), count)
    }

    /// Returns whether two commands do the same work, as far as known in the same folder.
    pub fn is_same(&self, other: &Command<'_>) -> bool {
        let same_folder = match (self.folder, other.folder) {
            (Some(folder), Some(other)) => folder == other,
            _ => true,
        };
        same_folder && self.steps == other.steps
    }

    /// Returns whether a success of `other` means that this command, which failed, would succeed.
    ///
    /// `other` must be the same command, or the same test with fewer arguments (a wider selection), or a
    /// chain with it.
    pub fn is_fixed_by(&self, other: &Command<'_>) -> bool {
        if self.is_same(other) {
            return true;
        }
        let [failed] = self.steps.as_slice() else {
            return false;
        };
        let is_wider = |passed: &Vec<&str>| {
            is_test(failed) && is_test(passed) && is_subsequence(passed, failed)
        };
        match other.steps.as_slice() {
            [passed] => is_wider(passed),
            // All steps of a chain that passes have passed.
            _ if other.hides_exit_status || self.folder != other.folder => false,
            steps => steps
                .iter()
                .any(|passed| passed == failed || is_wider(passed)),
        }
    }

    /// Returns whether its success or failure says something about the project.
    pub fn is_significant(&self) -> bool {
        self.steps
            .iter()
            .any(|words| !is_in(EVERYDAY, program(words)))
    }

    /// Returns the paths that it removes.
    pub fn removed_paths(&self) -> Vec<&'a str> {
        let removes = |words: &&Vec<&str>| {
            let program = program(words);
            matches!(program, "rm" | "unlink" | "trash" | "rmdir" | "del")
                || (program == "git" && words.get(1) == Some(&"rm"))
        };
        let removing = self.steps.iter().filter(removes);
        let paths = removing.flat_map(|words| arguments(words).into_iter().skip(1));
        paths.filter(|path| *path != "rm").collect()
    }

    /// Returns whether it runs tests.
    pub fn is_test(&self) -> bool {
        self.steps.iter().any(|words| is_test(words))
    }

    /// Returns whether `other`, which succeeded, does in another way what this command failed to
    /// do.
    ///
    /// That is the same program with the same arguments and other options, or with more arguments;
    /// or another program that shares half of the words. Fewer or different arguments are a
    /// different task, and more arguments of a test select a smaller test.
    pub fn has_workaround(&self, other: &Command<'_>) -> bool {
        let ([failed], [passed]) = (self.steps.as_slice(), other.steps.as_slice()) else {
            return false;
        };
        if failed == passed || !self.is_significant() || !other.is_significant() {
            return false;
        }
        let (failed, passed) = (arguments(failed), arguments(passed));
        if failed.first() == passed.first() {
            return if self.is_test() {
                failed == passed
            } else {
                is_subsequence(&failed, &passed)
            };
        }
        let shared = failed.iter().filter(|word| passed.contains(word)).count();
        shared > 0 && 2 * shared >= failed.len().max(passed.len())
    }
}

/// Returns the words of a step as typed, without assignments and wrappers.
fn words<'a>(step: &Step<'a>) -> Vec<&'a str> {
    let words = step.words.iter().map(|word| word.typed);
    let mut words: Vec<&str> = words.skip_while(|word| is_assignment(word)).collect();
    let from = wrapped_at(&words, |name| !is_in(CHANGING_WRAPPERS, name)).unwrap_or(0);
    words.drain(..from.min(words.len()));
    words
}

/// Returns the name of the program without its folder.
fn program<'a>(words: &[&'a str]) -> &'a str {
    name_of(words.first().copied().unwrap_or_default())
}

/// Returns the program and its arguments without options.
fn arguments<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let arguments = words.iter().copied().skip(1);
    let arguments = arguments.filter(|word| !word.starts_with('-') && *word != "run");
    std::iter::once(program(words)).chain(arguments).collect()
}

fn is_subsequence(part: &[&str], whole: &[&str]) -> bool {
    let mut whole = whole.iter();
    part.iter().all(|word| whole.any(|other| other == word))
}

/// Returns the program that does the work and its arguments, without options, the values of known options,
/// and runners such as `npx`, `uv run` and `python -m`.
fn positional<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec![program(words)];
    let mut all = words.iter().copied().skip(1);
    while let Some(word) = all.next() {
        if is_in(WITH_VALUE, word) {
            all.next();
        } else if !word.starts_with(['-', '+']) {
            arguments.push(word);
        }
    }
    while let [runner, rest @ ..] = arguments.as_slice() {
        let second = rest.first().copied().unwrap_or_default();
        let skipped = match runner_length(runner, second) {
            _ if runner.starts_with("python") && words.contains(&"-m") => 1,
            0 => break,
            length => length,
        };
        arguments.drain(..skipped.min(arguments.len()));
    }
    arguments
}

fn is_test(words: &[&str]) -> bool {
    let arguments = positional(words);
    let [first, rest @ ..] = arguments.as_slice() else {
        return false;
    };
    let program = name_of(first);
    if is_in(TEST_PROGRAMS, program) {
        return true;
    }
    if is_in(TEST_GOALS, program) {
        return rest.iter().any(|word| is_in(GOALS, word));
    }
    let verb = match (program, rest) {
        ("bun" | "npm" | "pnpm" | "yarn", ["run", verb, ..]) | ("zig", ["build", verb, ..]) => {
            *verb
        }
        (_, [verb, ..]) => *verb,
        (_, []) => return false,
    };
    TEST_VERBS.iter().any(|(programs, verbs)| {
        is_in(programs, program)
            && (is_in(verbs, verb) || verb.starts_with("test:") || verb.starts_with("test-"))
    })
}

#[cfg(test)]
mod tests;
