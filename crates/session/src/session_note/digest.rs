//! What is known of a session: the input of its note's text.

use std::borrow::Cow;

use anamnesis_text::private_tokens::PrivateTokens;
use chrono::{DateTime, NaiveDate, Utc};

use super::{answer, compaction::Compacted};
use crate::{
    declared::Declared,
    event::ToolEvent,
    observe::{self, Observation},
    transcript::Transcript,
    turn::Turn,
};

/// The known facts of a session, from the journal or a transcript.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SessionDigest {
    /// The person's prompts and the answers to them, in order.
    pub turns: Vec<Turn>,
    /// The session's name, by the person or the client.
    pub name: Option<String>,
    /// The project's folder. It is left out of paths.
    pub folder: Option<String>,
    /// The declarations in its tool calls.
    pub declared: Declared,
    /// The client's last summary of it, made to free its context.
    pub compacted: Option<Compacted>,
    /// How often it ran, and the day of the last run, if it repeats an earlier session.
    pub runs: Option<(usize, NaiveDate)>,
    /// The branch that was checked out: at its end if that is known, else at first.
    pub git_branch: Option<String>,
    /// The edited files, the most edited first; relative to the project's folder if they are inside.
    pub files: Vec<String>,
    /// Whether all that was made was removed again.
    pub is_undone: bool,
    /// Whether a program sent a prompt of it.
    pub is_scripted: bool,
    /// The number of edits of files beyond the limit of `files`.
    pub edits_left_out: usize,
    /// How many tools failed.
    pub failures: usize,
    /// When the first message was written.
    pub first_at: Option<DateTime<Utc>>,
    /// When the last message was written.
    pub last_at: Option<DateTime<Utc>>,
    /// Failures that were fixed, one line each: see [`fix_lines`].
    pub fixed: Vec<String>,
    /// The checks whose last run failed, one line each: see [`crate::observe::checks`].
    pub failing: Vec<String>,
    /// The checks whose last run passed.
    pub passed: Vec<String>,
    /// The last command of another tool if it failed, and its error.
    pub failed_tool: Option<String>,
    /// Next steps named in the last answer, one line each: see [`crate::summary::next_steps`].
    pub next_steps: Vec<String>,
    /// The latest files read.
    pub files_read: Vec<String>,
    /// The latest search patterns, queries and URLs.
    pub searches: Vec<String>,
    /// The latest commands that passed.
    pub commands_passed: Vec<String>,
}

impl From<&Transcript> for SessionDigest {
    fn from(transcript: &Transcript) -> Self {
        let folder = transcript.cwd.as_deref().unwrap_or_default();
        let relative = |file: &String| match file.strip_prefix(folder) {
            Some(inside) if !folder.is_empty() => inside.trim_start_matches(['/', '\\']).to_owned(),
            _ => file.clone(),
        };
        let observations = observe::observations(&transcript.tool_events).observations;
        let mut digest = Self {
            turns: transcript.turns.clone(),
            name: transcript.name.clone(),
            folder: transcript.cwd.clone(),
            declared: Declared::new(&transcript.tool_events, transcript.cwd.as_deref()),
            git_branch: transcript.git_branch.clone(),
            files: transcript.files.iter().map(relative).collect(),
            edits_left_out: transcript.edits_left_out,
            failures: transcript.failures,
            first_at: transcript.first_at,
            last_at: transcript.last_at,
            next_steps: transcript
                .outcome
                .as_deref()
                .map(crate::summary::next_steps)
                .unwrap_or_default(),
            fixed: fix_lines(&observations, &transcript.turns),
            ..Self::default()
        };
        digest.add_tool_events(&transcript.tool_events);
        digest
    }
}

impl SessionDigest {
    /// Returns the first prompt of a person.
    pub fn ask(&self) -> Option<&str> {
        self.turns.iter().find_map(|turn| turn.prompt.as_deref())
    }

    /// Returns the last answer.
    pub fn outcome(&self) -> Option<&str> {
        self.turns
            .iter()
            .rev()
            .find_map(|turn| turn.answer.as_deref())
    }

    /// Adds what the tool calls tell: what still fails, and which files were removed again.
    pub fn add_tool_events(&mut self, events: &[ToolEvent]) {
        observe::Checks {
            failing: self.failing,
            passed: self.passed,
            failed_tool: self.failed_tool,
        } = observe::checks(
            events,
            &self.turns,
            self.folder.as_deref().unwrap_or_default(),
        );
        let removed = observe::removed_files(events);
        self.files.retain(|file| !removed.contains(&file.as_str()));
        self.is_undone = self.files.is_empty() && !removed.is_empty();
    }

    /// Masks texts that were marked as private elsewhere in the session.
    pub fn mask(&mut self, private: &PrivateTokens) {
        let lists = [
            &mut self.files,
            &mut self.fixed,
            &mut self.failing,
            &mut self.passed,
            &mut self.next_steps,
        ];
        let turns = self.turns.iter_mut();
        let in_turns = turns.flat_map(|turn| {
            let said = turn.prompt.iter_mut().chain(&mut turn.answer);
            said.chain(&mut turn.edited)
        });
        let texts = [&mut self.failed_tool, &mut self.name, &mut self.git_branch];
        let texts = texts.into_iter().flatten().chain(in_turns);
        let texts = texts.chain(self.declared.texts_mut());
        let texts = texts.chain(self.compacted.iter_mut().map(|summary| &mut summary.text));
        for text in lists.into_iter().flatten().chain(texts) {
            if let Cow::Owned(masked) = private.mask(text) {
                *text = masked;
            }
        }
    }

    /// Merges the digest of an earlier part of the same session into this one.
    pub fn prepend(&mut self, earlier: &Self) {
        let own = std::mem::replace(&mut self.turns, earlier.turns.clone());
        self.turns.extend(own);
        if self.name.is_none() {
            self.name.clone_from(&earlier.name);
        }
        if earlier.git_branch.is_some() {
            self.git_branch.clone_from(&earlier.git_branch);
        }
        let own = std::mem::replace(&mut self.files, earlier.files.clone());
        for file in own {
            if !self.files.contains(&file) {
                self.files.push(file);
            }
        }
        self.fixed.splice(0..0, earlier.fixed.iter().cloned());
        self.declared.prepend(&earlier.declared);
        self.edits_left_out += earlier.edits_left_out;
        self.failures += earlier.failures;
        self.first_at = earlier.first_at.or(self.first_at);
        self.last_at = self.last_at.or(earlier.last_at);
    }
}

/// Returns a line for each failure that was fixed: the command, its error and, from the answers, what
/// fixed it.
pub fn fix_lines(observations: &[Observation], turns: &[Turn]) -> Vec<String> {
    let fixes = observations.iter();
    let mut fixes = fixes
        .filter(|fix| fix.kind == observe::Kind::Bugfix)
        .peekable();
    if fixes.peek().is_none() {
        return Vec::new();
    }
    let answers = turns.iter().filter_map(|turn| turn.answer.as_deref());
    let statements: Vec<String> = answers.flat_map(answer::statements).collect();
    let mut lines: Vec<String> = Vec::new();
    for line in fixes.filter_map(|fix| observe::fix_line(fix, statements.iter())) {
        // The last fix of the same failure.
        lines.retain(|known| failure_of(known) != failure_of(&line));
        lines.push(line);
    }
    lines
}

/// Returns the command and the error of a line about a failure and its fix.
fn failure_of(line: &str) -> Option<&str> {
    line.split(observe::ARROW).next()
}
