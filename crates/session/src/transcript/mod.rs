//! Reads the transcript of a Claude Code session as a stream.
//!
//! A transcript is the client's own log: one JSON record a line, in a format that changes between
//! versions, most of them no messages at all. The reader goes by the top-level `type` and takes
//! from `user` and `assistant` records, and from prompts typed while the model worked, what a
//! summary needs. What hooks put into the session stands in attachments and is not read: a memory
//! must not grow from its own words.
//!
//! What was said comes from the main line of the session only, never from a subagent (a
//! "sidechain"), the output of a tool, or the client. What was done, files and failures, counts
//! wherever it was done. A prompt that is private as a whole takes all that follows with it, until
//! a person sends the next one; so does a step into an excluded folder.
//!
//! Invariants: the memory used does not grow with the file, no input is an error but that of the
//! reader itself, and no text leaves this module that has not been stripped, cleaned and masked;
//! only the ids and the folder, which are looked up and not shown, are given as they are.

mod lines;
mod record;

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::{self, BufRead};
use std::ops::Range;

use chrono::{DateTime, Utc};

pub(crate) use self::record::without_lone_surrogates;

use self::lines::{Line, Lines, MAX_LINE};
use self::record::{Block, Content, Record, Text};
use anamnesis_text::{
    clean::one_line,
    prompt_text::{Prompt, PromptKind, SafeText, unmasked, words},
};

/// How many tools are named.
const MAX_TOOLS: usize = 100;

/// The longest name of a tool, in bytes.
const MAX_TOOL_NAME: usize = 128;

/// How many files a transcript may name.
const MAX_FILES: usize = 500;

/// How many bytes of a prompt or an answer are kept, once it has been masked.
const MAX_TEXT: usize = 64 << 10;

/// How long a path, an id or a version may be, in bytes.
const MAX_FIELD: usize = 4096;

/// The tools that change the file that they name.
const EDITORS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// The model of the answers that the client made up itself.
const SYNTHETIC: &str = "<synthetic>";

/// Origins of prompts that a program sent without saying so in a tag.
const PROGRAMS: [&str; 7] = [
    "auto-continuation",
    "coordinator",
    "observer-activity",
    "peer",
    "plugin",
    "task-notification",
    "tool",
];

/// What a session did, as far as its transcript tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transcript {
    /// The client's id of the session, as it is.
    pub session_id: Option<String>,
    /// The folder in which the session began, as it is.
    pub cwd: Option<String>,
    /// The first branch that was checked out; none outside git and on a detached head.
    pub git_branch: Option<String>,
    /// The version of the client.
    pub client_version: Option<String>,
    /// The first prompt of a person.
    pub ask: Option<String>,
    /// The first prompt of a person that says more than "go on", for a title.
    pub title_ask: Option<String>,
    /// The last answer.
    pub outcome: Option<String>,
    /// The files that were edited, in the order of their first edit.
    pub files: Vec<String>,
    /// How many edits are not in `files`, because there were too many files.
    pub edits_left_out: usize,
    /// How many tools failed; a refusal is no failure.
    pub failures: usize,
    /// The names of the tools that were called, each once, in the order of their first call.
    pub tools: Vec<String>,
    /// How many tools came to an end, well or not; a refusal is none.
    pub tools_run: usize,
    /// How many prompts a person sent: texts, images, private ones and commands for the model.
    pub prompts: usize,
    /// When the first message was written.
    pub first_at: Option<DateTime<Utc>>,
    /// When the last message was written.
    pub last_at: Option<DateTime<Utc>>,
    /// Whether a prompt or an answer held a region that was marked as private.
    pub private: bool,
    /// How many lines there are, blank ones left out.
    pub lines: usize,
    /// How many of them could not be read: too long, broken off, or no JSON object.
    pub skipped_lines: usize,
}

/// Reads a whole transcript, and the error that ended it early, if one did.
///
/// What was read before the error is as good as a shorter transcript.
pub fn read(reader: impl BufRead) -> (Transcript, Option<io::Error>) {
    read_part(reader, Part::default())
}

/// Which part of a transcript is read.
#[derive(Clone, Default)]
pub struct Part<'a> {
    /// Only what was written in this span of time.
    pub span: Option<Range<DateTime<Utc>>>,
    /// Not what was written in a folder that is excluded, nor after it in the same turn. Asked about
    /// the folders that the records name, again whenever one changes.
    pub is_excluded: Option<&'a dyn Fn(&str) -> bool>,
}

/// Reads a part of a transcript; else as [`read`].
pub fn read_part(reader: impl BufRead, part: Part<'_>) -> (Transcript, Option<io::Error>) {
    let mut session = Session {
        part,
        ..Session::default()
    };
    let mut lines = Lines::new(reader);
    let error = loop {
        match lines.next() {
            Ok(Some(Line::Whole(line))) => session.take_line(line),
            Ok(Some(Line::TooLong)) => {
                session.transcript.lines += 1;
                session.transcript.skipped_lines += 1;
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (session.finish(), error)
}

/// The transcript so far, and what has to be known to read on.
#[derive(Default)]
struct Session<'a> {
    transcript: Transcript,
    /// The answer that is being put together from its records.
    answer: Answer,
    /// The last answer with words in it, not yet masked.
    outcome: SafeText,
    /// The paths seen, as the tools gave them.
    paths: HashSet<String>,
    /// Whether the prompt that began this turn was private as a whole, or the turn went into an
    /// excluded folder.
    is_private_turn: bool,
    /// The id of the last prompt that was counted.
    prompt_id: Option<String>,
    /// What is read of it.
    part: Part<'a>,
    /// The folder of the last record, and whether it is excluded.
    folder: Option<(String, bool)>,
}

/// The texts of one message of the model, whose blocks come in records of their own.
#[derive(Default)]
struct Answer {
    id: Option<String>,
    text: String,
    /// Whether a block did not fit any more.
    is_full: bool,
}

/// When a prompt was sent.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PromptTime {
    BetweenTurns,
    InTurn,
}

impl Session<'_> {
    fn take_line(&mut self, line: &[u8]) {
        let line = match str::from_utf8(line) {
            Ok(line) => Cow::Borrowed(line),
            Err(_) => String::from_utf8_lossy(line),
        };
        let line = line.trim_start_matches('\u{feff}').trim_ascii();
        if line.is_empty() {
            return;
        }
        self.transcript.lines += 1;
        if !line.starts_with('{') || !line.ends_with('}') {
            self.transcript.skipped_lines += 1;
        } else if may_be_read(line) {
            if let Ok(record) = Record::parse(line) {
                self.take_record(record);
            } else if let Some(line) = record::without_lone_surrogates(line)
                && let Ok(record) = Record::parse(&line)
            {
                self.take_record(record);
            } else {
                self.transcript.skipped_lines += 1;
            }
        }
    }

    fn take_record(&mut self, record: Record) {
        if let (Some(span), Some(time)) = (&self.part.span, &record.timestamp)
            && DateTime::parse_from_rfc3339(time).is_ok_and(|time| !span.contains(&time.to_utc()))
        {
            return;
        }
        if self.is_in_excluded_folder(&record) {
            self.is_private_turn = true;
            return;
        }
        match record.kind.as_deref() {
            Some("user") => {
                self.take_surroundings(&record);
                self.take_user(record);
            }
            Some("assistant") => {
                self.take_surroundings(&record);
                self.take_assistant(record);
            }
            Some("attachment") if is(&record.attachment.kind, "queued_command") => {
                let by_program = is_one_of(&record.attachment.origin.kind, &PROGRAMS);
                if !record.is_sidechain && !record.is_meta && !by_program {
                    self.take_prompt(&record.attachment.prompt, None, PromptTime::InTurn);
                }
            }
            _ => {}
        }
    }

    fn is_in_excluded_folder(&mut self, record: &Record) -> bool {
        let (Some(is_excluded), Some(folder)) = (self.part.is_excluded, &record.cwd) else {
            return false;
        };
        match &self.folder {
            Some((last, answer)) if last == folder => *answer,
            _ => {
                let answer = is_excluded(folder);
                self.folder = Some((folder.to_string(), answer));
                answer
            }
        }
    }

    /// Takes what the client notes beside each message.
    fn take_surroundings(&mut self, record: &Record) {
        if record.is_sidechain {
            return;
        }
        let transcript = &mut self.transcript;
        keep_first(&mut transcript.session_id, &record.session_id);
        keep_first(&mut transcript.cwd, &record.cwd);
        keep_first(&mut transcript.client_version, &record.version);
        // Outside git, too, the client calls the branch HEAD.
        if transcript.git_branch.is_none()
            && let Some(branch) = &record.git_branch
            && branch != "HEAD"
        {
            let branch = one_line(&words(branch).text);
            transcript.git_branch = Some(branch).filter(|branch| !branch.is_empty());
        }
        if let Some(time) = &record.timestamp
            && let Ok(time) = DateTime::parse_from_rfc3339(time)
        {
            // The client does not write its records in the order of their times.
            let time = time.to_utc();
            let first = transcript.first_at.get_or_insert(time);
            *first = time.min(*first);
            let last = transcript.last_at.get_or_insert(time);
            *last = time.max(*last);
        }
    }

    fn take_user(&mut self, record: Record) {
        let mut results = 0;
        let mut failures = 0;
        for block in &record.message.content.blocks {
            if let Block::ToolResult { is_error } = block {
                results += 1;
                failures += usize::from(*is_error);
            }
        }
        if results > 0 {
            if !self.is_private_turn && record.denial.is_none() {
                self.transcript.failures += failures;
                self.transcript.tools_run += results;
            }
            return;
        }
        let by_program =
            is_one_of(&record.origin.kind, &PROGRAMS) || is(&record.prompt_source, "system");
        let is_typed =
            !record.is_sidechain && !record.is_meta && !record.is_compact_summary && !by_program;
        if is_typed {
            self.take_prompt(
                &record.message.content,
                record.prompt_id,
                PromptTime::BetweenTurns,
            );
        }
    }

    fn take_prompt(&mut self, content: &Content, id: Text, time: PromptTime) {
        let prompt = Prompt::new(&joined(content));
        self.transcript.private |= prompt.private;
        match prompt.kind {
            PromptKind::Local | PromptKind::Notification => return,
            PromptKind::Empty if !content.has_media => return,
            _ => self.count_prompt(id),
        }
        // Only a person ends a private turn, and not while the model is still at work on it.
        self.is_private_turn &= time == PromptTime::InTurn;
        self.is_private_turn |= prompt.kind == PromptKind::Private;
        if prompt.kind == PromptKind::Person {
            let text = kept(prompt.text);
            let transcript = &mut self.transcript;
            if transcript.title_ask.is_none() && !is_go_on(&text) {
                transcript.title_ask = Some(text.clone());
            }
            transcript.ask.get_or_insert(text);
        }
    }

    /// Counts a prompt once, however many records the client has split it into.
    fn count_prompt(&mut self, id: Text) {
        let id = id.map(Cow::into_owned);
        if id.is_none() || id != self.prompt_id {
            self.transcript.prompts += 1;
        }
        self.prompt_id = id;
    }

    fn take_assistant(&mut self, record: Record) {
        if self.is_private_turn {
            return;
        }
        let is_said = !record.is_sidechain
            && !record.is_meta
            && !record.is_api_error
            && !is(&record.message.model, SYNTHETIC);
        let id = record.message.id;
        for block in record.message.content.blocks {
            match block {
                Block::Text(text) if is_said => self.take_answer(id.as_deref(), &text),
                Block::ToolUse { name, path } => {
                    self.take_tool(&name);
                    if let Some(path) = path
                        && EDITORS.contains(&name.as_ref())
                    {
                        self.take_file(path);
                    }
                }
                _ => {}
            }
        }
        if id.is_none() {
            self.end_answer();
        }
    }

    fn take_answer(&mut self, id: Option<&str>, text: &str) {
        if self.answer.id.as_deref() != id {
            self.end_answer();
            self.answer.id = id.map(str::to_owned);
        }
        // What does not fit goes as a whole, and all that follows it: a cut before the masking
        // could part a tag or a credential.
        let answer = &mut self.answer;
        answer.is_full |= answer.text.len() + text.len() >= MAX_LINE;
        if !answer.is_full {
            if !answer.text.is_empty() {
                answer.text.push('\n');
            }
            answer.text.push_str(text);
        }
    }

    fn end_answer(&mut self) {
        let answer = std::mem::take(&mut self.answer);
        let words = unmasked(&answer.text);
        self.transcript.private |= words.private;
        if !words.text.is_empty() {
            self.outcome = words;
        }
    }

    fn take_tool(&mut self, name: &str) {
        let tools = &mut self.transcript.tools;
        if tools.len() < MAX_TOOLS && name.len() <= MAX_TOOL_NAME {
            let name = one_line(name);
            if !tools.contains(&name) {
                tools.push(name);
            }
        }
    }

    fn take_file(&mut self, path: Cow<str>) {
        if path.len() > MAX_FIELD || self.paths.contains(path.as_ref()) {
            return;
        }
        if self.paths.len() == MAX_FILES {
            self.transcript.edits_left_out += 1;
            return;
        }
        let SafeText { text, private } = words(&path);
        self.transcript.private |= private;
        // Blanks inside a path mean something; only what would end a line goes.
        let file = text.replace(['\n', '\t'], " ");
        if !file.is_empty() && !self.transcript.files.contains(&file) {
            self.transcript.files.push(file);
        }
        self.paths.insert(path.into_owned());
    }

    fn finish(mut self) -> Transcript {
        self.end_answer();
        if !self.outcome.text.is_empty() {
            self.outcome.mask();
            self.transcript.outcome = Some(kept(self.outcome.text));
        }
        self.transcript
    }
}

/// Tells whether a line can be one of those that are read. Most are not, and are not parsed.
fn may_be_read(line: &str) -> bool {
    ["\"user\"", "\"assistant\"", "\"queued_command\""]
        .iter()
        .any(|kind| line.contains(kind))
}

fn is(text: &Text, value: &str) -> bool {
    text.as_deref() == Some(value)
}

fn is_one_of(text: &Text, values: &[&str]) -> bool {
    text.as_deref().is_some_and(|text| values.contains(&text))
}

/// Keeps the first value that an id or a path can have.
fn keep_first(field: &mut Option<String>, value: &Text) {
    if field.is_none()
        && let Some(value) = value
        && !value.trim().is_empty()
        && value.len() <= MAX_FIELD
        && !value.contains(char::is_control)
    {
        *field = Some(value.to_string());
    }
}

/// Joins the texts of a message.
fn joined<'a>(content: &'a Content) -> Cow<'a, str> {
    let mut texts = content.blocks.iter().filter_map(|block| match block {
        Block::Text(text) => Some(text.as_ref()),
        _ => None,
    });
    let first = texts.next().unwrap_or_default();
    texts.fold(Cow::Borrowed(first), |joined, text| joined + "\n" + text)
}

/// Cuts a text, which has been masked, to what is kept of it.
fn kept(mut text: String) -> String {
    let end = (0..=MAX_TEXT.min(text.len()))
        .rev()
        .find(|&end| text.is_char_boundary(end));
    text.truncate(end.unwrap_or_default());
    text
}

/// Tells whether a prompt only sends the model on: a few words, all of them of consent.
pub fn is_go_on(text: &str) -> bool {
    const MAX_WORDS: usize = 5;
    const WORDS: [&str; 44] = [
        "again", "ahead", "alright", "and", "carry", "continue", "cool", "correct", "do", "done",
        "fine", "go", "going", "good", "great", "it", "k", "keep", "lgtm", "next", "nice", "no",
        "now", "ok", "okay", "on", "perfect", "please", "proceed", "resume", "retry", "right",
        "so", "sure", "thank", "thanks", "that", "then", "try", "y", "yeah", "yep", "yes", "you",
    ];
    let lower = text.to_lowercase();
    let mut words = lower
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty());
    words
        .by_ref()
        .take(MAX_WORDS)
        .all(|word| WORDS.contains(&word))
        && words.next().is_none()
}

#[cfg(test)]
mod tests;
