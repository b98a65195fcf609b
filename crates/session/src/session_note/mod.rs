//! Writes the text of a session's note from what is known of the session.
//!
//! The text is made by rule, without a model: what was asked, what the person said on the way, what
//! was decided and why, what still fails, and the outcome. Everything is quoted; nothing is
//! rephrased. The store decides the note's path.
//!
//! The input comes from the client's transcript or the journal. Both produce a [`SessionDigest`],
//! and equal digests give identical bytes.

mod answer;
mod asked;
mod choose;
mod compaction;
mod digest;
mod expiring;
mod plan;
mod reply;
mod title;
mod told;
mod wanted;
mod worth;

use std::fmt::Write as _;

use anamnesis_note::draft;
use anamnesis_text::{
    clean::{one_line, without_machine_paths},
    shell::command::Command,
    truncate::line,
};

pub use self::{
    answer::{announces, says_nothing, tells_result},
    compaction::{Compacted, INSTRUCTIONS},
    digest::{SessionDigest, fix_lines},
};
pub use crate::note_parts::{labelled, labelled_lines, part_of, sentence_of_title};

use self::{
    choose::{Candidate, Known, Limits, choose, repeats, word_set},
    compaction::Section,
    expiring::is_expiring,
    reply::Reply,
    title::MAX_TITLE,
    told::{found_by_client, told},
};
use crate::{
    declared, directive,
    observe::{self, FIXED},
    phrases::{Words, is_dense, is_small_talk},
    prose::{Prose, shorten},
    standing::standing_instructions,
    turn::Turn,
};

/// The maximum length of the request, in characters.
const MAX_ASK: usize = 180;

/// The same in a session of few prompts, whose note has little else.
const MAX_ONLY_ASK: usize = 340;

/// The maximum length of a pasted error line, in characters.
const MAX_ERROR: usize = 130;

/// The limits of the person's words.
const SAID: Limits = Limits {
    characters: 540,
    line: 200,
    lines: 8,
    lines_per_turn: 3,
};

/// The limits of what the last answer says that does not work.
const OPEN: Limits = Limits {
    characters: 240,
    line: 170,
    lines: 2,
    lines_per_turn: 2,
};

/// The maximum number of commits, and of choices of the person.
const MAX_COMMITS: usize = 4;
const MAX_CHOICES: usize = 3;

/// The maximum number of failing commands, of fixes, of next steps and of files.
const MAX_FAILING: usize = 2;
const MAX_FIXED: usize = 3;
const MAX_STEPS: usize = 3;
const MAX_FILES: usize = 8;

/// The maximum number of passed checks, and their length together, in characters.
const MAX_PASSED: usize = 8;
const MAX_PASSED_LENGTH: usize = 300;

/// The maximum length of a line of a list, in characters.
const MAX_LINE: usize = 160;

/// The label of the person's sentences.
const SAID_LABEL: &str = "Said";

/// The label of the person's standing instructions, which are not repeated under the other label.
const RULES_LABEL: &str = "Rules";

/// The maximum number of standing instructions of a session.
const MAX_RULES: usize = 4;

/// The label of the checks that failed when they last ran.
pub const FAILING: &str = "Still failing";
/// The beginning of the line of an approved plan.
pub const PLAN: &str = "Plan: ";
/// The label of the number of runs of a scheduled prompt.
pub const REPEATED: &str = "Repeated";
/// The label of the checks that passed when they last ran.
pub const PASSED: &str = "Passed";

/// Branches that say nothing, because most work is done on them.
pub const DEFAULT_BRANCHES: [&str; 3] = ["main", "master", "trunk"];

/// Returns the sentences of the person that the text of a session's note quotes.
pub fn said_in(body: &str) -> impl Iterator<Item = &str> {
    part_of(body, SAID_LABEL)
}

/// Returns the standing instructions of the person in the text of a session's note.
pub fn rules_in(body: &str) -> impl Iterator<Item = &str> {
    part_of(body, RULES_LABEL)
}

/// Returns whether most words of the shorter of two sentences are in the other, and neither has a value
/// that the other lacks.
pub fn says_the_same(one: &str, other: &str) -> bool {
    repeats(&word_set(one), &word_set(other))
}

/// The text of a session's note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoteText {
    /// One line of at most 80 characters.
    pub title: String,
    /// Markdown without a final line feed.
    pub body: String,
}

/// Writes the text of a session's note; `None` if the session has nothing that a later session could use.
pub fn note_text(digest: &SessionDigest) -> Option<NoteText> {
    let parsed = ParsedDigest::new(digest);
    if !worth::is_worth_a_note(&parsed) {
        return None;
    }
    let title = title::title(&parsed)?;
    let body = body(&parsed, &title);
    (!body.is_empty()).then(|| NoteText {
        body: without_machine_paths(&body, digest.folder.as_deref()).into_owned(),
        title,
    })
}

/// Returns what the note of a session may be asked for with, beside its text: one request of each
/// later prompt, and the commands that passed.
pub fn asked(digest: &SessionDigest) -> Vec<String> {
    let prompts = prompts(digest);
    let requests = prompts.iter().skip(1).filter_map(|prompt| {
        let mut sentences = prompt.sentences();
        let request = sentences.find(|it| asks(it) && title::names_subject(it))?;
        Some(shorten(request, MAX_TITLE))
    });
    // Commands of Anamnesis itself say nothing about the session's work.
    let commands = digest
        .commands_passed
        .iter()
        .filter(|it| !it.contains("anamnesis"));
    let phrases = requests.chain(commands.cloned());
    let phrases =
        phrases.map(|phrase| without_machine_paths(&phrase, digest.folder.as_deref()).into_owned());
    draft::asked(&phrases.collect::<Vec<_>>())
}

/// A session taken apart into sentences.
struct ParsedDigest<'a> {
    digest: &'a SessionDigest,
    /// The prompts that say something.
    prompts: Vec<TypedPrompt>,
    /// Their sentences that may take something back.
    replies: Vec<Reply>,
    /// The statements of each turn's answer.
    answers: Vec<Vec<String>>,
}

impl<'a> ParsedDigest<'a> {
    fn new(digest: &'a SessionDigest) -> Self {
        let answers = digest
            .turns
            .iter()
            .map(|turn| turn.answer.as_deref().map(answer::statements));
        let prompts = prompts(digest);
        let said = prompts.iter();
        // The items of a list have little in common.
        let said = said.flat_map(|prompt| {
            let said = prompt.sentences().filter(|it| !prompt.prose.is_list(it));
            said.map(|said| (prompt.turn, said))
        });
        Self {
            digest,
            replies: said
                .filter_map(|(turn, said)| Reply::new(turn, said))
                .collect(),
            prompts,
            answers: answers.map(Option::unwrap_or_default).collect(),
        }
    }

    /// Returns whether a sentence of a prompt was copied from an earlier answer.
    fn is_copied(&self, turn: usize, sentence: &str) -> bool {
        const MIN_COPIED: usize = 16;
        let earlier = self.digest.turns.iter().take(turn);
        let mut answers = earlier.filter_map(|turn| turn.answer.as_deref());
        sentence.len() >= MIN_COPIED && answers.any(|answer| answer.contains(sentence))
    }

    /// Returns the sentences of all prompts.
    fn sentences(&self) -> impl Iterator<Item = &String> {
        self.prompts.iter().flat_map(TypedPrompt::sentences)
    }
}

/// A prompt that says something.
struct TypedPrompt {
    /// The turn's index.
    turn: usize,
    prose: Prose,
}

impl TypedPrompt {
    /// Returns the sentences that say something.
    fn sentences(&self) -> impl Iterator<Item = &String> {
        let sentences = self.prose.sentences.iter();
        sentences.filter(|sentence| {
            !is_small_talk(sentence) && !is_slash_word(sentence) && !is_expiring(sentence)
        })
    }

    /// Returns the statements that matter beyond their step and can be understood without the prompt: a
    /// sentence, with the one before if its subject is there; or a list of rules.
    fn statements(&self) -> Vec<Candidate> {
        const OF_A_LIST: f32 = 6.0;
        let mut statements: Vec<Candidate> = Vec::new();
        for (position, sentence) in self.prose.sentences.iter().enumerate() {
            if self.prose.is_list(sentence) {
                // Another list is a request.
                statements.extend(self.prose.is_rule_list(sentence).then(|| Candidate {
                    weight: OF_A_LIST,
                    turn: self.turn,
                    position,
                    text: sentence.clone(),
                }));
                continue;
            }
            let mut weight = directive::weight(sentence);
            if weight <= 0.0 {
                continue;
            }
            let mut text = sentence.clone();
            if directive::needs_sentence_before(sentence) {
                let before = position.checked_sub(1);
                let before = before.and_then(|before| self.prose.sentences.get(before));
                let before = before.filter(|before| !is_small_talk(before));
                let joined = before.map(|before| {
                    // An item of a list often has no end.
                    let is_open = !before.ends_with(['.', '!', '?', ':', ';', ',', '…']);
                    let end = if is_open && !is_dense(before) {
                        ";"
                    } else {
                        ""
                    };
                    (before, format!("{before}{end} {sentence}"))
                });
                match joined.filter(|(_, joined)| joined.chars().count() <= SAID.line) {
                    Some((before, joined)) => {
                        text = joined;
                        // The sentence before is in this one.
                        if statements.last().is_some_and(|last| last.text == *before) {
                            let last = statements.pop();
                            weight = weight.max(last.map_or(0.0, |last| last.weight));
                        }
                    }
                    None if !directive::has_own_subject(sentence) => continue,
                    None => {}
                }
            }
            // "Why are you still using npm? We switched to pnpm."
            let answer = self
                .prose
                .sentences
                .get(position + 1)
                .filter(|_| directive::is_question(sentence));
            if let Some(answer) = answer.filter(|answer| directive::states(answer)) {
                let joined = format!("{text} {answer}");
                if joined.chars().count() <= SAID.line {
                    text = joined;
                }
            }
            statements.push(Candidate {
                weight,
                turn: self.turn,
                position,
                text: shorten(&text, SAID.line),
            });
        }
        statements
    }
}

fn prompts(digest: &SessionDigest) -> Vec<TypedPrompt> {
    let turns = digest.turns.iter().enumerate();
    let typed = turns.filter_map(|(turn, Turn { prompt, .. })| {
        // The text of a plan is the model's.
        let prompt = prompt
            .as_deref()
            .filter(|prompt| !plan::is_prompt(prompt))?;
        let prose = Prose::new(prompt);
        let prompt = TypedPrompt { turn, prose };
        let says = prompt.sentences().next().is_some() || prompt.prose.error.is_some();
        says.then_some(prompt)
    });
    typed.collect()
}

/// Returns whether a sentence is only a slash command.
fn is_slash_word(sentence: &str) -> bool {
    sentence.len() > 1 && sentence.starts_with('/') && !sentence.contains(' ')
}

/// Returns whether a sentence asks for something.
fn asks(sentence: &str) -> bool {
    directive::is_question(sentence) || !sentence.ends_with('.') || sentence.chars().count() < 60
}

fn body(parsed: &ParsedDigest, title: &str) -> String {
    let digest = parsed.digest;
    let rules = rules(parsed);
    let said = said(parsed, &rules);
    let ask = ask(&parsed.prompts, &Known::new(&[&rules[..], &said].concat()));
    let mut body = String::new();
    if word_set(&ask) != word_set(title) {
        paragraph(&mut body, "Ask", &ask);
    }
    if let Some((runs, day)) = digest.runs {
        let last = day.format("%-d %b %Y");
        paragraph(&mut body, REPEATED, &format!("× {runs}, last {last}"));
    }
    if let Some(branch) = &digest.git_branch
        && !DEFAULT_BRANCHES.contains(&branch.as_str())
    {
        paragraph(&mut body, "Branch", branch);
    }
    list(&mut body, RULES_LABEL, &rules);
    list(&mut body, SAID_LABEL, &said);
    let known = [&rules[..], &said, &[ask, title.to_owned()]].concat();
    let messages = summarised(digest, Section::Messages);
    let asked = asked::asked(&parsed.prompts, &messages, &known);
    list(&mut body, "Asked", &asked);
    list(&mut body, FAILING, &failing(parsed));
    let latest = digest.fixed.len().saturating_sub(MAX_FIXED);
    list(&mut body, FIXED, &digest.fixed[latest..]);
    let open = left_open(parsed);
    let commits = commits(&digest.declared.commits);
    let steps = next_steps(digest);
    let mut decided = chosen(parsed, title, &[rules, said].concat());
    let subjects = commits
        .iter()
        .map(|commit| declared::subject_of(commit).to_owned());
    let known = [
        open.clone(),
        steps.clone(),
        decided.clone(),
        subjects.collect(),
    ]
    .concat();
    let mut told = told(parsed, &known);
    told.outcome.extend(open);
    let known = [
        known,
        told.found.clone(),
        told.outcome.clone(),
        told.decided.clone(),
    ]
    .concat();
    told.found.extend(found_by_client(digest, &known));
    if digest
        .compacted
        .as_ref()
        .is_some_and(|summary| summary.is_last)
    {
        let current = summarised(digest, Section::Current);
        told.outcome.extend(lines(&current, 1));
    }
    decided.extend(told.decided);
    list(&mut body, "Decided", &decided);
    list(&mut body, "Found", &told.found);
    list(&mut body, "Committed", &commits);
    list(&mut body, "Next steps", &steps);
    if let [only] = told.outcome.as_slice() {
        paragraph(&mut body, "Outcome", only);
    } else {
        list(&mut body, "Outcome", &told.outcome);
    }
    paragraph(&mut body, "Files", &files(digest));
    paragraph(&mut body, PASSED, &passed(digest));
    body.truncate(body.trim_end().len());
    body
}

/// Returns the request, with the error that was pasted with it.
fn ask(prompts: &[TypedPrompt], known: &Known) -> String {
    let Some(first) = prompts.first() else {
        return String::new();
    };
    let sentences = first.sentences().filter(|sentence| !known.has(sentence));
    let sentences: Vec<&str> = sentences.map(String::as_str).collect();
    let limit = if prompts.len() <= SHORT_SESSION {
        MAX_ONLY_ASK
    } else {
        MAX_ASK
    };
    let mut ask = shorten(&sentences.join(" "), limit);
    if let Some(error) = &first.prose.error
        && !ask.contains(error.as_str())
    {
        if !ask.is_empty() {
            ask.push_str(" — ");
        }
        ask.push_str(&shorten(error, MAX_ERROR));
    }
    ask
}

/// The number of prompts up to which a session is short.
const SHORT_SESSION: usize = 3;

/// Returns the limits of a list for a session of so many prompts: a long session has more to tell.
fn grown(limits: Limits, prompts: usize) -> Limits {
    const SHORT: usize = SHORT_SESSION;
    const LONG: usize = 11;
    /// The increase for a long session, in percent.
    const MORE: usize = 130;
    let step = prompts.clamp(SHORT, LONG) - SHORT;
    let more = MORE * step * step / (LONG - SHORT).pow(2);
    let grow = |count: usize| count + count * more / 100;
    Limits {
        characters: grow(limits.characters),
        lines: grow(limits.lines),
        ..limits
    }
}

/// Returns the person's standing instructions, the newest last. Of two that repeat each other the newer
/// is returned. A session of a program has none.
fn rules(parsed: &ParsedDigest) -> Vec<String> {
    let mut rules: Vec<String> = Vec::new();
    if parsed.digest.is_scripted {
        return rules;
    }
    for prompt in &parsed.prompts {
        let turn = parsed.digest.turns.get(prompt.turn);
        let text = turn.and_then(|turn| turn.prompt.as_deref());
        rules.retain(|rule| !parsed.is_withdrawn(rule, |turn| turn == prompt.turn));
        let own = standing_instructions(text.unwrap_or_default());
        for rule in own
            .into_iter()
            .filter(|rule| !parsed.is_copied(prompt.turn, rule))
        {
            rules.retain(|known| !says_the_same(known, &rule));
            rules.push(rule);
        }
    }
    rules.drain(..rules.len().saturating_sub(MAX_RULES));
    rules
}

/// Chooses what the person said besides the request and the standing instructions.
fn said(parsed: &ParsedDigest, rules: &[String]) -> Vec<String> {
    let prompts = &parsed.prompts;
    let limits = grown(SAID, prompts.len());
    let first = prompts.first().map_or(0, |prompt| prompt.turn);
    let asked = Known::new(&[ask(prompts, &Known::new(&[]))]);
    let rules = Known::new(rules);
    let mut candidates: Vec<Candidate> = Vec::new();
    for prompt in prompts {
        let later = if prompt.turn > first { 1.0 } else { 0.0 };
        for mut candidate in prompt.statements() {
            candidate.weight += later;
            let text = &candidate.text;
            // What else the first prompt says is its request.
            let is_asked =
                prompt.turn == first && directive::directive(text).is_none() && asked.has(text);
            if !is_asked
                && !rules.has(text)
                && !parsed.is_copied(prompt.turn, text)
                && !parsed.is_withdrawn(text, |turn| turn > prompt.turn)
            {
                candidates.push(candidate);
            }
        }
    }
    // A list of rules is kept whole.
    let limits = Limits {
        line: SAID.characters,
        ..limits
    };
    choose(candidates, limits)
        .into_iter()
        .map(|(_, text)| text)
        .collect()
}

/// Returns the latest checks that fail at the end, without those that the last answer calls passing or
/// any answer calls expected, and without those that had to fail.
fn failing(parsed: &ParsedDigest) -> Vec<String> {
    let last = parsed.answers.iter().rfind(|answer| !answer.is_empty());
    let is_open = |line: &&String| {
        let Some((check, error)) = observe::failed_check(line) else {
            return false;
        };
        let is_over = |text: &String| observe::says_it_passes(text, check, error);
        let is_expected = |text: &String| observe::says_it_is_expected(text, check, error);
        !last.into_iter().flatten().any(is_over)
            && !parsed.answers.iter().flatten().any(is_expected)
            && !wanted::is_wanted(parsed, check, error)
    };
    let open = parsed.digest.failing.iter().rev().filter(is_open);
    let mut failing = lines(&open.cloned().collect::<Vec<_>>(), MAX_FAILING);
    failing.reverse();
    failing
}

/// Returns what the last answer says that does not work, the last failure of a tool that is no check,
/// and an error that got no answer.
fn left_open(parsed: &ParsedDigest) -> Vec<String> {
    let digest = parsed.digest;
    let last = digest.turns.iter().rposition(|turn| turn.answer.is_some());
    let last = last.and_then(|last| parsed.answers.get(last));
    let statements = last.into_iter().flatten().enumerate();
    let candidates = statements.map(|(position, text)| Candidate {
        weight: answer::failure_weight(text),
        turn: 0,
        position,
        text: text.clone(),
    });
    let chosen = choose(candidates.collect(), OPEN).into_iter();
    let mut open: Vec<String> = chosen.map(|(_, text)| text).collect();
    let tool = digest.failed_tool.as_deref();
    open.extend(tool.map(|tool| shorten(tool, MAX_LINE)));
    let is_unanswered = |prompt: &&TypedPrompt| {
        let after = digest.turns.get(prompt.turn..).unwrap_or_default();
        after.iter().all(|turn| turn.answer.is_none())
    };
    let unanswered = parsed.prompts.last().filter(is_unanswered);
    let error = unanswered.and_then(|prompt| prompt.prose.error.as_deref());
    open.extend(error.map(|error| shorten(error, MAX_ERROR)));
    open
}

/// Returns the items of a section of the client's summary.
fn summarised(digest: &SessionDigest, section: Section) -> Vec<String> {
    let summary = digest.compacted.as_ref();
    summary.map_or_else(Vec::new, |summary| summary.items(section))
}

/// Returns what the person decided: answers to questions, the approved plan, and what they chose in their
/// own words.
fn chosen(parsed: &ParsedDigest, title: &str, said: &[String]) -> Vec<String> {
    let declared = &parsed.digest.declared;
    let choices = declared
        .choices
        .iter()
        .filter(|choice| !is_about_the_next_step(choice) && !parsed.is_given_up(choice));
    let latest = choices.clone().count().saturating_sub(MAX_CHOICES);
    let mut decided: Vec<String> = lines(
        &choices.skip(latest).cloned().collect::<Vec<_>>(),
        MAX_CHOICES,
    );
    decided.extend(plan::line(parsed, title));
    let known = [said, &decided].concat();
    let known = Known::new(&known);
    let choosing = parsed.prompts.iter().flat_map(|prompt| {
        let sentences = prompt
            .sentences()
            .filter(|sentence| directive::chooses(sentence));
        sentences.map(|sentence| (prompt.turn, sentence))
    });
    let choosing = choosing.filter(|(turn, sentence)| {
        !known.has(sentence) && !parsed.is_contradicted(*turn, sentence)
    });
    let mut choosing: Vec<_> = choosing
        .map(|(_, sentence)| shorten(sentence, MAX_LINE))
        .collect();
    decided.append(&mut choosing.split_off(choosing.len().saturating_sub(MAX_CHOICES)));
    decided
}

/// Returns whether a question is about the step at hand, not about the work.
fn is_about_the_next_step(choice: &str) -> bool {
    Words::new(choice).contain("next|proceed|continue|go ahead|commit")
}

/// Lists the latest commits and pull requests.
fn commits(made: &[String]) -> Vec<String> {
    let first = made.len().saturating_sub(MAX_COMMITS);
    let mut commits = lines(made.get(first..).unwrap_or_default(), MAX_COMMITS);
    if first > 0 {
        commits.insert(0, format!("{first} more before these"));
    }
    commits
}

/// Lists what is left to do: the open tasks, else what the last answer names, or the client's summary if
/// no answer followed it.
fn next_steps(digest: &SessionDigest) -> Vec<String> {
    let open = &digest.declared.open_tasks;
    match digest.compacted.as_ref().filter(|summary| summary.is_last) {
        _ if !open.is_empty() => lines(open, MAX_STEPS),
        Some(_) => lines(&summarised(digest, Section::Pending), MAX_STEPS),
        None => lines(&digest.next_steps, MAX_STEPS),
    }
}

/// Lists the files, the most edited first.
fn files(digest: &SessionDigest) -> String {
    let mut names: Vec<String> = digest.files.iter().take(MAX_FILES).cloned().collect();
    let more =
        digest.files.len().saturating_sub(MAX_FILES) + usize::from(digest.edits_left_out > 0);
    if more > 0 {
        names.push(format!("and {more} more"));
    }
    names.join(", ")
}

/// Lists the latest passed checks, tests first, because later sessions learn from them what is over.
fn passed(digest: &SessionDigest) -> String {
    let is_test = |check: &&String| Command::parse(check).is_some_and(|check| check.is_test());
    let latest = digest.passed.iter().rev();
    let (tests, others): (Vec<_>, Vec<_>) = latest.partition(is_test);
    let mut left = MAX_PASSED_LENGTH;
    let chosen = tests.into_iter().chain(others).filter(|check| {
        let rest = left.checked_sub(check.chars().count());
        left = rest.unwrap_or(left);
        rest.is_some()
    });
    let quoted: Vec<String> = chosen
        .take(MAX_PASSED)
        .map(|check| format!("`{check}`"))
        .collect();
    quoted.join(", ")
}

fn lines(items: &[String], count: usize) -> Vec<String> {
    let items = items.iter().map(|item| line(item, MAX_LINE));
    items.filter(|item| !item.is_empty()).take(count).collect()
}

/// Appends a paragraph with a label. An empty text adds nothing.
fn paragraph(body: &mut String, label: &str, text: &str) {
    if !text.is_empty() {
        // Writing to a string cannot fail.
        let _ = write!(body, "**{label}:** {}\n\n", one_line(text));
    }
}

/// Appends a list with a label. An empty list adds nothing.
fn list(body: &mut String, label: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    let _ = writeln!(body, "**{label}:**");
    for item in items {
        let _ = writeln!(body, "- {}", one_line(item));
    }
    body.push('\n');
}

#[cfg(test)]
mod tests;
