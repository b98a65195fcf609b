//! Reads what tool calls declare: the approved plan, answers to questions, open tasks, commits.

use anamnesis_text::{
    clean::one_line,
    shell::{self, is_outside},
    truncate::line,
};
use serde_json::{Map, Value};

use crate::{
    event::{Outcome, ToolEvent, ToolInput},
    hook::ToolCall,
    observe::ARROW,
    phrases::is_small_talk,
};

/// The tools whose arguments declare something.
pub const TOOLS: [&str; 5] = [
    "AskUserQuestion",
    "ExitPlanMode",
    "TaskCreate",
    "TaskUpdate",
    "TodoWrite",
];

/// SQL `LIKE` patterns of the commands that make commits and pull requests, or undo them.
pub const COMMANDS: [&str; 9] = [
    "git %cherry-pick ",
    "git %commit",
    "git %reset ",
    "git %revert ",
    "git %rebase",
    "git %merge ",
    "git branch -D ",
    "gh pr create",
    "gh pr merge",
];

/// The maximum length of a subject, in characters.
const MAX_SUBJECT: usize = 100;

/// The separator of what a question offered.
const OFFERED: &str = " | ";

/// The shortest and the longest abbreviated hash of a commit.
const HASH_LENGTHS: std::ops::RangeInclusive<usize> = 7..=40;

/// The declarations in a session's tool calls. The texts are sanitised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared {
    /// The last plan that the person approved, as markdown.
    pub plan: Option<String>,
    /// The questions that the person answered: `question → answer`.
    pub choices: Vec<String>,
    /// The tasks that were open at the end.
    pub open_tasks: Vec<String>,
    /// The commits and pull requests: `1a2b3c4 subject`, without a hash if git did not print it.
    pub commits: Vec<String>,
}

/// Returns whether a later question asks the same as an earlier one: in the same words, or under the same header
/// with one of its options. Each is a line of [`Declared::choices`] and what the question offered.
fn is_asked_again((choice, offered): &(String, &str), (later, offers): &(String, &str)) -> bool {
    let own = || offered.split(OFFERED);
    let mut options = offers.split(OFFERED).skip(1);
    question_of(choice) == question_of(later)
        || own().next() == offers.split(OFFERED).next()
            && options.any(|it| !is_small_talk(it) && own().skip(1).any(|own| own == it))
}

/// Splits a line of [`Declared::choices`] into the question and the answer.
pub(crate) fn question_and_answer(choice: &str) -> (&str, &str) {
    choice.rsplit_once(ARROW).unwrap_or((choice, ""))
}

fn question_of(choice: &str) -> &str {
    question_and_answer(choice).0
}

/// Returns whether nothing is left to do of a task with this status.
fn is_done(status: &str) -> bool {
    matches!(status, "completed" | "deleted" | "cancelled")
}

/// The repository of a session's project.
struct Repository<'a> {
    /// The project's folder; empty if unknown.
    folder: &'a str,
    /// Whether the session merged a branch.
    is_merged: bool,
}

impl Declared {
    /// Reads the tool calls of a session in a project's folder, in order.
    pub fn new(events: &[ToolEvent], folder: Option<&str>) -> Self {
        let mut declared = Self::default();
        let mut tasks: Vec<(&str, &str, bool)> = Vec::new();
        let mut choices: Vec<(String, &str)> = Vec::new();
        let mut commands = events
            .iter()
            .filter_map(|event| event.input.as_ref()?.command.as_deref());
        // A merged branch may be deleted: its commits stay.
        let is_merged = commands
            .any(|command| command.contains("git merge ") || command.contains("gh pr merge"));
        let repository = Repository {
            folder: folder.unwrap_or_default(),
            is_merged,
        };
        for event in events {
            let Some(input) = &event.input else { continue };
            declared.add_commits(event, input, &repository);
            // A subagent's list of tasks is not the session's.
            if event.outcome != Outcome::Ok || event.agent.is_some() {
                continue;
            }
            let text = |name: &str| input.others.get(name).map(String::as_str);
            match event.tool.as_str() {
                "ExitPlanMode" => {
                    if declared.plan.is_some() {
                        // The open tasks are steps of the plan that this one replaces.
                        declared.open_tasks.clear();
                        for (.., is_open) in &mut tasks {
                            *is_open = false;
                        }
                    }
                    declared.plan = text("plan").map(str::to_owned).or(declared.plan);
                }
                "AskUserQuestion" => {
                    let offered = text("offered").unwrap_or_default().lines();
                    let offered = offered.chain(std::iter::repeat(""));
                    let asked: Vec<_> = lines(text("choices")).zip(offered).collect();
                    choices.retain(|known| !asked.iter().any(|later| is_asked_again(known, later)));
                    choices.extend(asked);
                }
                "TodoWrite" => declared.open_tasks = lines(text("open")).collect(),
                "TaskCreate" | "TaskUpdate" => {
                    let id = text("taskId").unwrap_or_default();
                    let is_open = !text("status").is_some_and(is_done);
                    match (
                        tasks.iter_mut().find(|(known, ..)| *known == id),
                        text("subject"),
                    ) {
                        (Some((_, subject, open)), changed) => {
                            *subject = changed.unwrap_or(subject);
                            *open = is_open;
                        }
                        (None, Some(subject)) => tasks.push((id, subject, is_open)),
                        (None, None) => {}
                    }
                }
                _ => {}
            }
        }
        let open = tasks.iter().filter(|(.., is_open)| *is_open);
        declared.choices = choices.into_iter().map(|(choice, _)| choice).collect();
        declared
            .open_tasks
            .extend(open.map(|(_, subject, _)| one_line(subject)));
        declared
    }

    /// Returns all texts, for masking.
    pub(crate) fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let lists = [&mut self.choices, &mut self.open_tasks, &mut self.commits];
        lists.into_iter().flatten().chain(&mut self.plan)
    }

    /// Merges what an earlier part of the session declared.
    pub(crate) fn prepend(&mut self, earlier: &Self) {
        if self.plan.is_none() {
            self.plan.clone_from(&earlier.plan);
        }
        if self.open_tasks.is_empty() {
            self.open_tasks.clone_from(&earlier.open_tasks);
        }
        let choices = earlier.choices.iter().filter(|choice| {
            let mut later = self.choices.iter();
            !later.any(|later| question_of(later) == question_of(choice))
        });
        let choices: Vec<String> = choices.cloned().collect();
        self.choices.splice(0..0, choices);
        self.commits.splice(0..0, earlier.commits.iter().cloned());
    }

    /// Adds the commits and the pull request that a command made, and removes those that it took back.
    fn add_commits(&mut self, event: &ToolEvent, input: &ToolInput, repository: &Repository<'_>) {
        let Some(command) = input.command.as_deref() else {
            return;
        };
        let commands = shell::commands(command);
        let commands: Vec<Vec<&str>> = commands
            .iter()
            .map(|words| words.iter().map(String::as_str).collect())
            .collect();
        let [commands, elsewhere] = by_folder(&commands, repository.folder);
        let commits = |words: &Vec<&str>| {
            let mut words = words.iter();
            words.any(|word| matches!(*word, "cherry-pick" | "commit" | "revert"))
        };
        // What git prints does not say in which repository.
        if commands.is_empty() || elsewhere.iter().any(commits) {
            return;
        }
        let output = event.response.as_ref().map_or("", |output| &output.tail);
        let output = event.error.as_deref().unwrap_or(output);
        if event.outcome == Outcome::Ok {
            self.take_back(&commands, output, repository.is_merged);
        }
        let mut made: Vec<String> = Vec::new();
        if command.contains("git ") && (command.contains("commit") || commands.iter().any(commits))
        {
            made.extend(output.lines().filter_map(commit_of));
            if made.is_empty() && event.outcome == Outcome::Ok {
                made.extend(quiet_commit(command));
            }
            if command.contains("--amend") && !made.is_empty() {
                self.remove_last(1);
            }
        }
        if command.contains("gh pr create") && event.outcome == Outcome::Ok {
            made.extend(
                output
                    .lines()
                    .find_map(|printed| pull_request(printed, command)),
            );
        }
        for commit in made {
            let subject = subject_of(&commit).to_owned();
            let reverted = subject.strip_prefix("Revert \"");
            let reverted = reverted.and_then(|quoted| quoted.strip_suffix('"'));
            self.commits.retain(|known| {
                let known = subject_of(known);
                known != subject && Some(known) != reverted
            });
            self.commits.push(commit);
        }
    }

    /// Removes the commits that git commands took back.
    fn take_back(&mut self, commands: &[Vec<&str>], output: &str, is_merged: bool) {
        let has = |wanted: &[&str]| {
            commands.iter().any(|words| {
                let subcommand = words.get(1).filter(|_| words.first() == Some(&"git"));
                subcommand.is_some_and(|subcommand| wanted.contains(subcommand))
            })
        };
        // A commit that is on another branch, too, is not lost.
        if !has(&["branch", "checkout", "switch"]) {
            for words in commands {
                if let ["git", "reset", arguments @ ..] = words.as_slice() {
                    self.reset(arguments);
                }
            }
        }
        // The commits of a pull request are merged before its branch is deleted.
        let is_merged = is_merged || self.commits.iter().any(|commit| commit.starts_with('#'));
        if commands
            .iter()
            .any(|words| words.starts_with(&["git", "branch", "-D"]))
            && !is_merged
        {
            let deleted: Vec<&str> = output.lines().filter_map(deleted_tip).collect();
            self.commits.retain(|commit| {
                let hash = hash_of(commit);
                hash.is_none_or(|hash| !deleted.iter().any(|tip| tip.starts_with(hash)))
            });
        }
        // `git rebase` makes the commits again, with other hashes. A fixup becomes part of another commit.
        if output.contains("Successfully rebased") {
            self.commits.retain(|commit| {
                let subject = subject_of(commit);
                !subject.starts_with("fixup! ") && !subject.starts_with("squash! ")
            });
            for commit in &mut self.commits {
                if hash_of(commit).is_some() {
                    *commit = subject_of(commit).to_owned();
                }
            }
        }
    }

    /// Removes the commits after the one that `git reset` is given: `HEAD~2`, `HEAD^`, a hash.
    fn reset(&mut self, arguments: &[&str]) {
        let mut named = arguments.iter().filter(|word| !word.starts_with('-'));
        // Further arguments are files.
        let (Some(target), None) = (named.next(), named.next()) else {
            return;
        };
        if let Some(count) = steps_back(target) {
            self.remove_last(count);
        } else if is_hash(target) && self.can_find(target) {
            let after = self.commits.iter().rev();
            let after = after.take_while(|commit| !is_named_by(commit, target));
            let count = after.filter(|commit| !commit.starts_with('#')).count();
            self.remove_last(count);
        }
    }

    /// Returns whether a commit of the list is the one with this hash, or certainly none is.
    fn can_find(&self, target: &str) -> bool {
        let mut commits = self
            .commits
            .iter()
            .filter(|commit| !commit.starts_with('#'));
        commits.clone().any(|commit| is_named_by(commit, target))
            || commits.all(|commit| hash_of(commit).is_some())
    }

    /// Removes the last commits, and no pull request.
    fn remove_last(&mut self, count: usize) {
        for _ in 0..count {
            let Some(last) = self
                .commits
                .iter()
                .rposition(|commit| !commit.starts_with('#'))
            else {
                return;
            };
            self.commits.remove(last);
        }
    }
}

/// Splits commands into those in the project's folder and those elsewhere, without the options of git
/// that say where. A new repository is an experiment, not the project.
fn by_folder<'a>(commands: &[Vec<&'a str>], project: &str) -> [Vec<Vec<&'a str>>; 2] {
    let (mut own, mut elsewhere) = (Vec::new(), Vec::new());
    let mut is_away = false;
    for words in commands {
        let leaves = |folder: &str, is_away: bool| {
            is_outside(folder, project) || is_away && !folder.starts_with(['/', '~'])
        };
        let (mut words, mut is_there) = (words.clone(), is_away);
        while let ["git", option @ ("-C" | "-c"), value, ..] = words[..] {
            if option == "-C" {
                is_there = leaves(value, is_there);
            }
            words.drain(1..3);
        }
        match words[..] {
            ["cd", folder, ..] => is_away = leaves(folder, is_away),
            ["git", "init", ..] => is_away = true,
            _ if is_there => elsewhere.push(words),
            _ => own.push(words),
        }
    }
    [own, elsewhere]
}

/// Returns whether a commit has a hash.
fn is_named_by(commit: &str, target: &str) -> bool {
    hash_of(commit).is_some_and(|hash| target.starts_with(hash) || hash.starts_with(target))
}

/// Returns how many commits before the last one a revision is: `HEAD~2`, `HEAD^`.
fn steps_back(revision: &str) -> Option<usize> {
    let steps = revision
        .strip_prefix("HEAD")
        .or(revision.strip_prefix('@'))?;
    match steps.strip_prefix('~') {
        Some("") => Some(1),
        Some(count) => count.parse().ok(),
        None if steps == "^1" => Some(1),
        None => steps.chars().all(|c| c == '^').then_some(steps.len()),
    }
}

/// Reads the hash of what git prints of a deleted branch: `Deleted branch cart (was 1a2b3c4).`
fn deleted_tip(printed: &str) -> Option<&str> {
    let (_, tip) = printed
        .strip_prefix("Deleted branch ")?
        .split_once(" (was ")?;
    tip.split(')').next()
}

/// Returns the hash of a line of [`Declared::commits`].
fn hash_of(commit: &str) -> Option<&str> {
    let (hash, _) = commit.split_once(' ')?;
    is_hash(hash).then_some(hash)
}

/// Returns the subject of a line of [`Declared::commits`].
pub(crate) fn subject_of(commit: &str) -> &str {
    match commit.split_once(' ') {
        Some((id, subject)) if id.starts_with('#') || is_hash(id) => subject,
        _ => commit,
    }
}

/// Returns whether a text is the hash of a commit, abbreviated or not.
pub fn is_hash(text: &str) -> bool {
    HASH_LENGTHS.contains(&text.len()) && text.chars().all(|c| c.is_ascii_hexdigit())
}

fn lines(text: Option<&str>) -> impl Iterator<Item = String> {
    let lines = text.unwrap_or_default().lines().map(one_line);
    lines.filter(|line| !line.is_empty())
}

/// Reads what git prints of a new commit: `[main 1a2b3c4] subject`, `[main (root-commit) 1a2b3c4] …`.
fn commit_of(printed: &str) -> Option<String> {
    let (made, subject) = printed.trim().strip_prefix('[')?.split_once("] ")?;
    let (_, hash) = made.rsplit_once(' ')?;
    let subject = line(without_line_numbers(subject), MAX_SUBJECT);
    is_hash(hash).then(|| format!("{hash:.7} {subject}"))
}

/// Returns the subject that a quiet `git commit` was given: `git commit -qm "subject"`.
fn quiet_commit(command: &str) -> Option<String> {
    let (_, arguments) = command.split_once("commit ")?;
    let message = arguments.find(['"', '\''])?;
    let (options, quoted) = arguments.split_at(message);
    let is_short = |option: &str, letter| {
        option.starts_with('-') && !option.starts_with("--") && option.contains(letter)
    };
    let mut named = options.split_whitespace();
    let is_quiet = named.any(|option| option == "--quiet" || is_short(option, 'q'));
    let is_message = options
        .split_whitespace()
        .last()
        .is_some_and(|option| option == "--message" || is_short(option, 'm'));
    let mut text = quoted.chars();
    let quote = text.next()?;
    let subject: String = text.take_while(|c| *c != quote && *c != '\n').collect();
    let is_plain = !subject.is_empty() && !subject.starts_with("$(");
    (is_quiet && is_message && is_plain).then(|| line(&subject, MAX_SUBJECT))
}

/// Returns the first line of a subject that was written as numbered lines: `   1  Add x   2   3  Why`.
fn without_line_numbers(subject: &str) -> &str {
    let text = subject.trim_start();
    let first = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = first.len() < text.len() && first.starts_with([' ', '\t']);
    if text.len() == subject.len() || !is_numbered {
        return text;
    }
    let first = first.trim_start();
    let end = first.find("  ").or(first.find('\t'));
    first.get(..end.unwrap_or(first.len())).unwrap_or(first)
}

/// Returns the number of a new pull request from its address, with the title that the command gave it.
fn pull_request(printed: &str, command: &str) -> Option<String> {
    let (address, number) = printed.trim().rsplit_once("/pull/")?;
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit());
    if !is_number || !address.starts_with("https://") {
        return None;
    }
    let (_, title) = command
        .split_once("--title")
        .or(command.split_once(" -t "))?;
    let mut title = title.trim_start_matches(['=', ' ']).chars();
    let quote = title.next().filter(|quote| matches!(quote, '"' | '\''))?;
    let title: String = title.take_while(|c| *c != quote).collect();
    Some(format!("#{number} {}", line(&title, MAX_SUBJECT)))
}

/// Returns what a call declares as arguments of one text each; `None` if its own arguments are kept.
///
/// Without this, the nested arguments would be stored without their structure.
pub(crate) fn arguments(call: &ToolCall) -> Option<Value> {
    let field = |value: &Value, name: &str| value.get(name).and_then(Value::as_str).map(one_line);
    let mut arguments = Map::new();
    let mut add = |name: &str, text: String| arguments.insert(name.to_owned(), text.into());
    match call.tool.as_str() {
        "AskUserQuestion" => {
            let answers = call.response.get("answers").or(call.input.get("answers"))?;
            let answers = answers.as_object()?.iter();
            let answers = answers.filter_map(|(question, answer)| {
                let answer = match answer {
                    Value::String(answer) => one_line(answer),
                    Value::Array(chosen) => {
                        let chosen = chosen.iter().filter_map(Value::as_str);
                        one_line(&chosen.collect::<Vec<_>>().join(", "))
                    }
                    _ => return None,
                };
                let choice = || format!("{}{ARROW}{answer}", one_line(question));
                (!answer.is_empty()).then(|| (choice(), offered(&call.input, question)))
            });
            let (choices, offered): (Vec<_>, Vec<_>) = answers.unzip();
            add("choices", choices.join("\n"));
            add("offered", offered.join("\n"));
        }
        "ExitPlanMode" => {
            let plan = call.input.get("plan").or(call.response.get("plan"))?;
            add("plan", plan.as_str()?.to_owned());
        }
        "TodoWrite" => {
            let todos = call.input.get("todos")?.as_array()?.iter();
            let open = todos.filter(|todo| !field(todo, "status").is_some_and(|it| is_done(&it)));
            let open = open.filter_map(|todo| field(todo, "content"));
            add("open", open.collect::<Vec<_>>().join("\n"));
        }
        "TaskCreate" => {
            let task = call.response.get("task")?;
            add("taskId", field(task, "id")?);
            add("subject", field(&call.input, "subject")?);
        }
        _ => return None,
    }
    Some(arguments.into())
}

/// Returns the header of a question and its options, on one line; empty if unknown.
fn offered(input: &Value, question: &str) -> String {
    let questions = input["questions"].as_array().into_iter().flatten();
    let asked = questions.filter(|asked| asked["question"] == *question);
    let texts = asked.flat_map(|asked| {
        let options = asked["options"].as_array().into_iter().flatten();
        std::iter::once(&asked["header"]).chain(options.map(|option| &option["label"]))
    });
    let texts = texts.map(|text| one_line(text.as_str().unwrap_or_default()));
    let texts = texts.collect::<Vec<_>>().join(OFFERED);
    texts.replace(" (Recommended)", "")
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use anamnesis_text::private_tokens::{Key, PrivateTokens};
    use serde_json::json;

    use super::*;
    use crate::{event::Surroundings, intake::Intake};

    fn event(tool: &str, input: Value, response: Value) -> ToolEvent {
        let intake = Intake {
            private_tokens: &PrivateTokens::default(),
            key: Key::new([7; 16]),
            folder: Path::new("/w/shop"),
            surroundings: Surroundings::default(),
            at: 0,
            is_unsure: false,
            may_hold: false,
        };
        let call = ToolCall {
            tool: tool.to_owned(),
            input,
            response,
            ..ToolCall::default()
        };
        intake.tool_event(&call, Outcome::Ok, None).0
    }

    fn bash(command: &str, output: &str) -> ToolEvent {
        event(
            "Bash",
            json!({ "command": command }),
            json!({ "stdout": output }),
        )
    }

    #[test]
    fn answers_to_questions_are_choices() {
        let questions = json!([{"question": "Which store?", "options": [{"label": "SQLite"}]}]);
        let answers = json!({"questions": questions, "answers": {
            "Which store?": "SQLite", "Which\nhosts?": ["a", "b"], "Why?": ""}});
        let asked = event("AskUserQuestion", json!({"questions": questions}), answers);
        let declared = Declared::new(&[asked], None);
        assert_eq!(
            declared.choices,
            ["Which store? → SQLite", "Which hosts? → a, b"]
        );
    }

    #[test]
    fn a_later_answer_to_the_same_question_replaces_the_earlier() {
        let ask = |question: &str, header: &str, options: &[&str], answer: &str| {
            let options: Vec<Value> = options
                .iter()
                .map(|label| json!({"label": label}))
                .collect();
            let input = json!({"questions": [{"question": question, "header": header, "options": options}]});
            event(
                "AskUserQuestion",
                input,
                json!({"answers": {question: answer}}),
            )
        };
        let first = || {
            ask(
                "Which store?",
                "Storage",
                &["SQLite (Recommended)", "Redis"],
                "SQLite",
            )
        };
        for (question, header, options, answer, is_replaced) in [
            ("Which store?", "Store", &["Redis"][..], "Redis", true),
            (
                "Ops vetoed that. What instead?",
                "Storage",
                &["SQLite", "Postgres"],
                "Postgres",
                true,
            ),
            (
                "Ops vetoed that. What instead?",
                "Plan",
                &["SQLite", "Postgres"],
                "Postgres",
                false,
            ),
            (
                "Where do uploads go?",
                "Storage",
                &["S3", "Disk"],
                "S3",
                false,
            ),
        ] {
            let events = [first(), ask(question, header, options, answer)];
            let later = format!("{question} → {answer}");
            let mut expected = vec!["Which store? → SQLite", &later];
            expected.drain(..usize::from(is_replaced));
            assert_eq!(Declared::new(&events, None).choices, expected);
        }
        let skip = |question: &str| ask(question, "Extras", &["Yes", "No"], "Yes");
        let events = [skip("Add tests?"), skip("Add docs?")];
        assert_eq!(Declared::new(&events, None).choices.len(), 2);
        let mut later = Declared::new(&[ask("Which store?", "Store", &[], "Redis")], None);
        later.prepend(&Declared::new(&[first()], None));
        assert_eq!(later.choices, ["Which store? → Redis"]);
    }

    #[test]
    fn what_a_later_plan_or_list_drops_is_no_open_task() {
        let plan = |text: &str| event("ExitPlanMode", json!({"plan": text}), Value::Null);
        let todo = |content: &str, status: &str| {
            let todos = json!([{"content": content, "status": status}]);
            event("TodoWrite", json!({ "todos": todos }), Value::Null)
        };
        let task = |id: &str, subject: &str| {
            let response = json!({"task": {"id": id, "subject": subject}});
            event("TaskCreate", json!({"subject": subject}), response)
        };
        let update = |status: &str| {
            let input = json!({"taskId": "1", "status": status});
            event("TaskUpdate", input, json!({"success": true}))
        };
        let old = || {
            [
                plan("# Old"),
                todo("old todo", "pending"),
                task("1", "old task"),
            ]
        };
        for (later, expected) in [
            (vec![], &["old todo", "old task"][..]),
            (vec![plan("# New")], &[]),
            (vec![plan("# New"), todo("new", "pending")], &["new"]),
            (vec![plan("# New"), update("in_progress")], &["old task"]),
            (vec![update("cancelled")], &["old todo"]),
            (vec![todo("old todo", "cancelled"), update("deleted")], &[]),
            (
                vec![todo("another", "in_progress")],
                &["another", "old task"],
            ),
        ] {
            let events: Vec<ToolEvent> = old().into_iter().chain(later).collect();
            assert_eq!(Declared::new(&events, None).open_tasks, expected);
        }
        // A plan for tasks that were open before it.
        let events = [todo("todo", "pending"), plan("# First")];
        assert_eq!(Declared::new(&events, None).open_tasks, ["todo"]);
    }

    #[test]
    fn the_last_plan_and_the_last_list_count() {
        let todo = |content: &str, status: &str| json!({"content": content, "status": status, "activeForm": "x"});
        let list = |todos: Value| event("TodoWrite", json!({ "todos": todos }), Value::Null);
        let events = [
            event("ExitPlanMode", json!({"plan": "# Old"}), Value::Null),
            event(
                "ExitPlanMode",
                json!({}),
                json!({"plan": "# Move the cart\n\n1. a"}),
            ),
            list(json!([
                todo("read", "completed"),
                todo("write", "in_progress")
            ])),
            list(json!([
                todo("write", "completed"),
                todo("test it", "pending")
            ])),
        ];
        let declared = Declared::new(&events, None);
        assert_eq!(declared.plan.as_deref(), Some("# Move the cart\n\n1. a"));
        assert_eq!(declared.open_tasks, ["test it"]);
    }

    #[test]
    fn tasks_are_open_until_they_are_completed_or_deleted() {
        let create = |id: &str, subject: &str| {
            let response = json!({"task": {"id": id, "subject": subject}});
            event(
                "TaskCreate",
                json!({"subject": subject, "description": "x"}),
                response,
            )
        };
        let update = |input: Value| event("TaskUpdate", input, json!({"success": true}));
        let events = [
            create("1", "read"),
            create("2", "write"),
            create("3", "drop"),
            create("4", "deploy"),
            update(json!({"taskId": "1", "status": "completed"})),
            update(json!({"taskId": "2", "status": "in_progress", "subject": "write it"})),
            update(json!({"taskId": "3", "status": "deleted"})),
        ];
        assert_eq!(
            Declared::new(&events, None).open_tasks,
            ["write it", "deploy"]
        );
    }

    #[test]
    fn commits_of_a_branch_that_was_thrown_away_are_none() {
        let commit = bash("git commit -m x", "[try 1a2b3c4] Try a new cart");
        let deleted = bash("git branch -D try", "Deleted branch try (was 1a2b3c4).");
        let opened = bash(
            "gh pr create --title \"A new cart\" --body x",
            "https://git.example/o/r/pull/12",
        );
        let commits = |events: &[ToolEvent]| Declared::new(events, None).commits.len();
        assert_eq!(commits(&[commit.clone(), deleted.clone()]), 0);
        // It was merged as one commit.
        assert_eq!(commits(&[commit.clone(), opened, deleted.clone()]), 2);
        let merged = bash("git merge try", "Fast-forward");
        assert_eq!(commits(&[commit.clone(), merged, deleted]), 1);
        let kept = bash("git branch -d try", "Deleted branch try (was 1a2b3c4).");
        assert_eq!(commits(&[commit, kept]), 1);
    }

    #[test]
    fn commits_that_were_taken_back_are_none() {
        let first = bash("git commit -m x", "[main 1a2b3c4] Read the port");
        let second = bash("git commit -m y", "[main 2b3c4d5] Cache the report");
        let after = |command: &str, output: &str| {
            let events = [first.clone(), second.clone(), bash(command, output)];
            Declared::new(&events, Some("/w/shop")).commits
        };
        let both = ["1a2b3c4 Read the port", "2b3c4d5 Cache the report"];
        for command in [
            "git reset --hard HEAD~1",
            "git reset --hard HEAD^",
            "git -C . -c advice.x=false reset HEAD^",
            "git reset HEAD~",
            "cd /w/shop && git reset --soft @~1",
            "git reset --hard 1a2b3c4d5e",
        ] {
            assert_eq!(after(command, ""), both[..1], "{command}");
        }
        for command in [
            "git reset --hard HEAD~2",
            "git reset --hard HEAD^^",
            "git reset --hard 0f0f0f0",
        ] {
            assert!(after(command, "").is_empty(), "{command}");
        }
        for command in [
            "git reset HEAD~1 src/port.rs",
            "git reset --hard HEAD",
            "git reset --hard origin/main",
            "git branch cache && git reset --hard HEAD~1",
            "cd /w/other && git reset --hard HEAD~1",
            "git -C /w/other reset --hard HEAD~1",
            "echo 'git reset --hard HEAD~1'",
        ] {
            assert_eq!(after(command, ""), both, "{command}");
        }
        assert_eq!(
            after(
                "git revert --no-edit HEAD",
                "[main 3c4d5e6] Revert \"Cache the report\""
            ),
            [both[0], "3c4d5e6 Revert \"Cache the report\""]
        );
        assert_eq!(
            after(
                "git rebase main",
                "Successfully rebased and updated refs/heads/x."
            ),
            ["Read the port", "Cache the report"]
        );
    }

    #[test]
    fn corrections_of_a_commit_are_none_after_a_rebase() {
        let fixup = bash(
            "git commit --fixup 1a2b3c4",
            "[x 2b3c4d5] fixup! Add coupons",
        );
        let squash = bash(
            "git commit --squash 1a2b3c4",
            "[x 3c4d5e6] squash! Add coupons",
        );
        let commit = bash("git commit -m x", "[x 1a2b3c4] Add coupons");
        let rebased = "Successfully rebased and updated refs/heads/x.";
        let rebase = bash(
            "GIT_SEQUENCE_EDITOR=: git rebase -i --autosquash main",
            rebased,
        );
        let commits = |events: &[ToolEvent]| Declared::new(events, None).commits;
        let made = [commit, fixup, squash];
        assert_eq!(commits(&made).len(), 3);
        assert_eq!(commits(&[&made[..], &[rebase]].concat()), ["Add coupons"]);
    }

    #[test]
    fn a_commit_of_another_branch_is_made_again() {
        let printed =
            "Switched to branch 'release/2.1'\n[release/2.1 0a1b2c3] Fix rounding\n Date: Mon";
        for (command, count) in [
            ("git cherry-pick 9f8e7d6", 1),
            ("git checkout release/2.1 && git cherry-pick -x 9f8e7d6", 1),
            ("git -C ~/lib cherry-pick 9f8e7d6", 0),
            ("git log release/2.1", 0),
        ] {
            let made = Declared::new(&[bash(command, printed)], Some("/home/ann/shop")).commits;
            assert_eq!(made.len(), count, "{command}");
        }
    }

    #[test]
    fn commits_of_another_repository_are_none() {
        let made = |command: &str| {
            let event = bash(command, "[main 1a2b3c4] Read the port");
            Declared::new(&[event], Some("/home/ann/shop"))
                .commits
                .len()
        };
        for command in [
            "cd /tmp/try && git commit -m x",
            "cd /tmp && cd try && git commit -m x",
            "git -C ~/lib -c user.name=x commit -m x",
            "cd ~/lib && git commit -m x && cd /home/ann/shop && ls",
        ] {
            assert_eq!(made(command), 0, "{command}");
        }
        for command in [
            "cd /home/ann/shop/web && git commit -m x",
            "cd /home/ann/shop-fix && git commit -m x",
            "cd ~/shop && git commit -m x",
            "cd /tmp && ls; cd /home/ann/shop; git commit -m x",
            "cd web && git commit -m x",
            "git commit -m x && cd /tmp",
            "git commit -m x && git -C ~/lib pull",
            "git -C /home/ann/shop commit -m x",
        ] {
            assert_eq!(made(command), 1, "{command}");
        }
    }

    #[test]
    fn commits_and_pull_requests_have_their_subject() {
        let title = "gh pr create --title \"Read the port\" --body x";
        let events = [
            bash(
                "git commit -m 'a'",
                "[main (root-commit) 1a2b3c4] Add the cart\n 1 file changed",
            ),
            bash(
                "git add . && git commit -m x",
                "hook ok\n[fix/x 2b3c4d5e6] Fix the cart",
            ),
            bash(
                "git commit --amend --no-edit",
                "[fix/x 3c4d5e6] Fix the cart's sum",
            ),
            bash(
                title,
                "Warning: 1 uncommitted change\nhttps://git.example/o/r/pull/12",
            ),
            bash("git init && git commit -m y", "[main 4d5e6f7] y"),
            bash(
                "git commit -F message",
                "[fix/x 4d5e6f7]    1 Fix the login    2    3 It read an old key.",
            ),
            bash("git add . && git commit -qm \"Add refunds\"", ""),
            bash("git commit -m 'Not quiet'", "nothing to commit"),
            bash("git commit -m 'Add taxes'", "[main 5d6e7f8] Add taxes"),
            bash("git reset --soft HEAD~1", ""),
            bash("git reset --hard origin/main", ""),
            bash("grep -r 'git commit'", "[section] not a commit"),
            bash("git log", "[main 5e6f7a8] quoted"),
        ];
        assert_eq!(
            Declared::new(&events, None).commits,
            [
                "1a2b3c4 Add the cart",
                "3c4d5e6 Fix the cart's sum",
                "#12 Read the port",
                "4d5e6f7 Fix the login",
                "Add refunds"
            ]
        );
    }
}
