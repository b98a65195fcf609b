//! Reads a Claude Code transcript as a stream. The logs of other hosts are brought into its form first,
//! see `host_log`.
//!
//! A transcript is the client's log, one JSON record per line, in a format that changes between
//! versions. The reader uses the top-level `type` and takes what a digest needs from `user` and
//! `assistant` records and from prompts typed while the model worked. Output of hooks is in
//! attachments and is skipped: memory must not grow from its own words.
//!
//! Messages count only in the main session, not those of subagents ("sidechains"), tools or the
//! client. Files and failures count everywhere. After a fully private prompt everything is skipped
//! until a person sends the next one; the same applies after a step into an excluded folder.
//!
//! Invariants: memory use does not grow with the file, only the reader itself can fail, and every
//! returned text is stripped, cleaned and masked. The exceptions are ids and the folder, which are
//! looked up but never shown.

mod host_log;
mod lines;
pub mod memories;
mod record;
pub mod scheduled;
mod tools;

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::io::{self, BufRead};
use std::ops::Range;
use std::path::Path;

use chrono::{DateTime, Utc};

use self::host_log::HostLog;
use self::lines::{BoundedLine, Lines, MAX_LINE};
use self::record::{Block, Content, Text, TranscriptLine};
use self::tools::ToolCalls;
use crate::{
    event::ToolEvent,
    turn::{self, Turn},
};
use anamnesis_text::{
    clean::one_line,
    privacy::PrivateTexts,
    private_tokens::{self, Hash, Key, PrivateTokens},
    prompt_text::{Prompt, PromptKind, SafeText, unmasked, words},
    sanitize::{head, uncut},
    surrogates,
};

/// The maximum number of files.
const MAX_FILES: usize = 500;

/// The maximum size of a masked prompt or answer, in bytes.
const MAX_TEXT: usize = 64 << 10;

/// The maximum length of a path or id, in bytes.
const MAX_FIELD: usize = 4096;

/// The maximum number of tokens of private regions.
const MAX_PRIVATE_TOKENS: usize = 20_000;

/// The key of their hashes, which are not stored.
const PRIVATE_KEY: Key = Key::new([0; 16]);

/// Tools that change the file they name.
const EDITORS: [&str; 4] = ["Edit", "Write", "MultiEdit", "NotebookEdit"];

/// The model name of answers that the client generated itself.
const SYNTHETIC: &str = "<synthetic>";

/// Origins of prompts that a program sent without a tag.
const PROGRAMS: [&str; 7] = [
    "auto-continuation",
    "coordinator",
    "observer-activity",
    "peer",
    "plugin",
    "task-notification",
    "tool",
];

/// The contents of a session's transcript.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Transcript {
    /// The client's session id, unchanged.
    pub session_id: Option<String>,
    /// The folder in which the session began, unchanged.
    pub cwd: Option<String>,
    /// The session's name: the last by the person, else the last by the client.
    pub name: Option<String>,
    /// The first branch that was checked out. `None` outside git and on a detached head.
    pub git_branch: Option<String>,
    /// The prompts of a person and the answers to them, in order; of a long session the first and the
    /// latest.
    pub turns: Vec<Turn>,
    /// The last answer.
    pub outcome: Option<String>,
    /// The edited files, the most edited first.
    pub files: Vec<String>,
    /// The latest finished tool calls, if they were asked for.
    pub tool_events: Vec<ToolEvent>,
    /// The number of edits of files beyond the limit of `files`.
    pub edits_left_out: usize,
    /// The number of failed tools. A denied call is not a failure.
    pub failures: usize,
    /// The number of prompts by a person: texts, images, private prompts and commands for the
    /// model.
    pub prompts: usize,
    /// When the first message was written.
    pub first_at: Option<DateTime<Utc>>,
    /// When the last message was written.
    pub last_at: Option<DateTime<Utc>>,
    /// Whether a prompt or an answer had a private region.
    pub private: bool,
    /// The tokens of its private regions. They are masked in its texts.
    pub private_tokens: PrivateTokens,
    /// The number of lines that are not blank.
    pub lines: usize,
    /// The number of unreadable lines: too long, truncated, or not a JSON object.
    pub skipped_lines: usize,
}

/// Reads a whole transcript with its tool calls. Returns the error that ended it early, if any.
///
/// The part before the error is as valid as a shorter transcript.
pub fn read(reader: impl BufRead) -> (Transcript, Option<io::Error>) {
    let part = TranscriptPart {
        has_tools: true,
        ..TranscriptPart::default()
    };
    read_part(reader, part)
}

/// Selects a part of a transcript.
#[derive(Clone, Default)]
pub struct TranscriptPart<'a> {
    /// Only records of this time span.
    pub span: Option<Range<DateTime<Utc>>>,
    /// Decides whether a folder is excluded. Records in an excluded folder, and after it in the
    /// same turn, are skipped. Called whenever the records' folder changes.
    pub is_excluded: Option<&'a dyn Fn(&str) -> bool>,
    /// Whether the tool calls are read too, with their input and result.
    pub has_tools: bool,
}

/// Like [`read`], for a part of a transcript, and with the tool calls only if asked for.
pub fn read_part(
    reader: impl BufRead,
    part: TranscriptPart<'_>,
) -> (Transcript, Option<io::Error>) {
    let mut session = Session {
        part,
        ..Session::default()
    };
    let mut lines = Lines::new(reader);
    let error = loop {
        match lines.next() {
            Ok(Some(BoundedLine::Whole(line))) => session.take_line(line),
            Ok(Some(BoundedLine::TooLong)) => {
                session.transcript.lines += 1;
                session.transcript.skipped_lines += 1;
            }
            Ok(None) => break None,
            Err(error) => break Some(error),
        }
    };
    (session.finish(), error)
}

/// Returns the session's name from a transcript or its end; no other record is read.
///
/// # Errors
/// The reader failed.
pub fn name(reader: impl BufRead) -> io::Result<Option<String>> {
    let mut session = Session::default();
    let mut lines = Lines::new(reader);
    while let Some(line) = lines.next()? {
        if let BoundedLine::Whole(line) = line
            && [&b"\"custom-title\""[..], b"\"ai-title\""]
                .iter()
                .any(|kind| line.windows(kind.len()).any(|part| part == *kind))
        {
            session.take_line(line);
        }
    }
    Ok(session.transcript.name)
}

/// The state of reading a transcript.
#[derive(Default)]
struct Session<'a> {
    transcript: Transcript,
    /// The answer that is being assembled from its records.
    answer: ModelMessage,
    /// The paths seen so far, as the tools gave them, with the number of their edits and the name
    /// under which they are shown.
    paths: HashMap<String, (usize, String)>,
    /// The tool calls, if they were asked for.
    tools: ToolCalls,
    /// The hashes of the tokens of private regions.
    private: BTreeSet<Hash>,
    log: HostLog,
    /// Whether this turn's prompt was fully private or one of our commands, or the turn entered an
    /// excluded folder.
    is_skipped_turn: bool,
    /// Whether the person named the session.
    is_named_by_person: bool,
    /// The id of the last counted prompt.
    prompt_id: Option<String>,
    /// The selected part.
    part: TranscriptPart<'a>,
    /// The folder of the last record, and whether it is excluded.
    folder: Option<(String, bool)>,
}

/// The texts of one model message, whose blocks are in separate records.
#[derive(Default)]
struct ModelMessage {
    id: Option<String>,
    text: String,
    /// Whether a block did not fit.
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
        } else if let Some(records) = self.log.take(line) {
            self.take_translated(&records);
        } else if may_be_read(line) {
            if let Ok(record) = TranscriptLine::parse(line) {
                self.take_record(record, line);
            } else if let Some(line) = surrogates::repair(line)
                && let Ok(record) = TranscriptLine::parse(&line)
            {
                self.take_record(record, &line);
            } else {
                self.transcript.skipped_lines += 1;
            }
        }
    }

    /// Takes records that were made of another host's log.
    fn take_translated(&mut self, records: &[serde_json::Value]) {
        for record in records {
            let line = record.to_string();
            if let Ok(record) = TranscriptLine::parse(&line) {
                self.take_record(record, &line);
            }
        }
    }

    fn take_record(&mut self, record: TranscriptLine, line: &str) {
        self.remember_private(&record);
        if let (Some(span), Some(time)) = (&self.part.span, &record.timestamp)
            && DateTime::parse_from_rfc3339(time).is_ok_and(|time| !span.contains(&time.to_utc()))
        {
            return;
        }
        if self.is_in_excluded_folder(&record) {
            self.is_skipped_turn = true;
            return;
        }
        match record.kind.as_deref() {
            Some("user") => {
                self.take_surroundings(&record);
                self.take_user(record, line);
            }
            Some("assistant") => {
                self.take_surroundings(&record);
                self.take_assistant(record, line);
            }
            Some("custom-title") => self.take_name(record.custom_title, true),
            Some("ai-title") => self.take_name(record.ai_title, false),
            Some("attachment") if is(&record.attachment.kind, "queued_command") => {
                let by_program = is_one_of(&record.attachment.origin.kind, &PROGRAMS);
                if !record.is_sidechain && !record.is_meta && !by_program {
                    self.take_prompt(&record.attachment.prompt, None, PromptTime::InTurn);
                }
            }
            _ => {}
        }
    }

    /// Remembers the private text of a record. Another record may repeat it, also that of a record
    /// that is skipped.
    fn remember_private(&mut self, record: &TranscriptLine) {
        let contents = [&record.message.content, &record.attachment.prompt];
        let texts = contents.into_iter().flat_map(|content| &content.blocks);
        let texts = texts.filter_map(|block| match block {
            Block::Text(text) => Some(text),
            _ => None,
        });
        for text in texts.chain(&record.custom_title) {
            if text.contains('<') {
                self.remember(&uncut(text).1.private_texts);
            }
        }
    }

    fn remember(&mut self, private: &PrivateTexts) {
        let left = MAX_PRIVATE_TOKENS.saturating_sub(self.private.len());
        let hashes = private_tokens::hashes(&PRIVATE_KEY, private);
        self.private.extend(hashes.into_iter().take(left));
    }

    fn take_name(&mut self, name: Text, by_person: bool) {
        let Some(name) = name.filter(|_| by_person || !self.is_named_by_person) else {
            return;
        };
        let SafeText { text, private } = words(head(&name, MAX_FIELD));
        self.transcript.private |= private;
        let name = Some(one_line(&text)).filter(|name| !name.is_empty());
        self.is_named_by_person |= by_person && name.is_some();
        self.transcript.name = name.or(self.transcript.name.take());
    }

    fn is_in_excluded_folder(&mut self, record: &TranscriptLine) -> bool {
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

    /// Takes the session data that accompanies each message.
    fn take_surroundings(&mut self, record: &TranscriptLine) {
        if record.is_sidechain {
            return;
        }
        let transcript = &mut self.transcript;
        keep_first(&mut transcript.session_id, &record.session_id);
        keep_first(&mut transcript.cwd, &record.cwd);
        // Outside git the client also reports the branch HEAD.
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
            // The client does not write records in chronological order.
            let time = time.to_utc();
            let first = transcript.first_at.get_or_insert(time);
            *first = time.min(*first);
            let last = transcript.last_at.get_or_insert(time);
            *last = time.max(*last);
        }
    }

    fn take_user(&mut self, record: TranscriptLine, line: &str) {
        let mut is_result = false;
        let mut failures = 0;
        for block in &record.message.content.blocks {
            if let Block::ToolResult { is_error } = block {
                is_result = true;
                failures += usize::from(*is_error);
            }
        }
        if is_result {
            if !self.is_skipped_turn && record.denial.is_none() {
                self.transcript.failures += failures;
                self.take_tools(line);
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
        let text = joined(content);
        let prompt = Prompt::new(&text);
        self.transcript.private |= prompt.private;
        match prompt.kind {
            PromptKind::Local | PromptKind::Notification => return,
            PromptKind::Empty if !content.has_media => return,
            _ => self.count_prompt(id),
        }
        // Only a person's prompt ends a private turn, and only if the model has finished it.
        self.is_skipped_turn &= time == PromptTime::InTurn;
        self.is_skipped_turn |= prompt.kind == PromptKind::Private
            || prompt.kind == PromptKind::Command && turn::is_own_command(command_name(&text));
        if prompt.kind == PromptKind::Person {
            self.end_answer();
            let after = self.tools.last_id().map(str::to_owned);
            turn::add_prompt(&mut self.transcript.turns, truncated(prompt.text), after);
        }
    }

    /// Counts a prompt once, however many records it is split into.
    fn count_prompt(&mut self, id: Text) {
        let id = id.map(Cow::into_owned);
        if id.is_none() || id != self.prompt_id {
            self.transcript.prompts += 1;
        }
        self.prompt_id = id;
    }

    fn take_assistant(&mut self, record: TranscriptLine, line: &str) {
        if self.is_skipped_turn {
            return;
        }
        let is_said = !record.is_sidechain
            && !record.is_meta
            && !record.is_api_error
            && !is(&record.message.model, SYNTHETIC);
        let blocks = &record.message.content.blocks;
        if blocks
            .iter()
            .any(|block| matches!(block, Block::ToolUse { .. }))
        {
            self.take_tools(line);
        }
        let id = record.message.id;
        for block in record.message.content.blocks {
            match block {
                Block::Text(text) if is_said => self.take_answer(id.as_deref(), &text),
                Block::ToolUse {
                    name,
                    path: Some(path),
                } if EDITORS.contains(&name.as_ref()) => self.take_file(path),
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
        // A block that does not fit is dropped with all that follow: a cut before masking could
        // split a tag or a credential.
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
            // Far more than what is kept of it once it is masked.
            let text = truncated_to(words.text, 4 * MAX_TEXT);
            turn::add_answer(&mut self.transcript.turns, text);
        }
    }

    fn take_tools(&mut self, line: &str) {
        if self.part.has_tools {
            let folder = self.transcript.cwd.as_deref().unwrap_or_default();
            for private in self.tools.take(line, Path::new(folder)) {
                self.remember(&private);
            }
        }
    }

    fn take_file(&mut self, path: Cow<str>) {
        if let Some((edits, file)) = self.paths.get_mut(path.as_ref()) {
            *edits += 1;
            turn::add_edit(&mut self.transcript.turns, file.clone());
            return;
        }
        if path.len() > MAX_FIELD {
            return;
        }
        if self.paths.len() == MAX_FILES {
            self.transcript.edits_left_out += 1;
            return;
        }
        let SafeText { text, private } = words(&path);
        self.transcript.private |= private;
        // Spaces in a path are significant, so only line breaks are replaced.
        let file = text.replace(['\n', '\t'], " ");
        if !file.is_empty() && !self.transcript.files.contains(&file) {
            self.transcript.files.push(file.clone());
        }
        turn::add_edit(&mut self.transcript.turns, file.clone());
        self.paths.insert(path.into_owned(), (1, file));
    }

    /// Sorts the files by the number of their edits.
    fn sort_files(&mut self) {
        let mut edits: HashMap<&str, usize> = HashMap::new();
        for (count, file) in self.paths.values() {
            *edits.entry(file).or_default() += count;
        }
        let files = &mut self.transcript.files;
        files.sort_by_key(|file| Reverse(edits.get(file.as_str()).copied()));
    }

    /// Masks repeated private text in all texts but the answers.
    fn mask(&mut self, private: &PrivateTokens) {
        if private.is_empty() {
            return;
        }
        let transcript = &mut self.transcript;
        let turns = transcript.turns.iter_mut();
        let in_turns = turns.flat_map(|turn| turn.prompt.iter_mut().chain(&mut turn.edited));
        let named = [&mut transcript.name, &mut transcript.git_branch]
            .into_iter()
            .flatten();
        let texts = in_turns.chain(named).chain(&mut transcript.files);
        let events = transcript.tool_events.iter_mut();
        for text in texts.chain(events.flat_map(ToolEvent::texts_mut)) {
            if let Cow::Owned(masked) = private.mask(text) {
                *text = masked;
            }
        }
    }

    fn finish(mut self) -> Transcript {
        let held_back = self.log.finish();
        self.take_translated(&held_back);
        self.end_answer();
        self.sort_files();
        self.transcript.tool_events = std::mem::take(&mut self.tools).finish();
        let private = std::mem::take(&mut self.private).into_iter();
        let private: PrivateTokens = private.map(|hash| (PRIVATE_KEY, hash)).collect();
        // Masking is expensive, and most answers were replaced by a later one of their turn.
        for answer in self
            .transcript
            .turns
            .iter_mut()
            .filter_map(|turn| turn.answer.as_mut())
        {
            let mut text = SafeText {
                text: std::mem::take(answer),
                private: false,
            };
            text.mask();
            *answer = truncated(private.mask(&text.text).into_owned());
        }
        self.mask(&private);
        self.transcript.private_tokens = private;
        let mut answers = self.transcript.turns.iter().rev();
        self.transcript.outcome = answers.find_map(|turn| turn.answer.clone());
        self.transcript
    }
}

/// Returns whether a line may be relevant. Most lines are not and are never parsed.
fn may_be_read(line: &str) -> bool {
    [
        "\"user\"",
        "\"assistant\"",
        "\"queued_command\"",
        "\"custom-title\"",
        "\"ai-title\"",
    ]
    .iter()
    .any(|kind| line.contains(kind))
}

fn is(text: &Text, value: &str) -> bool {
    text.as_deref() == Some(value)
}

fn is_one_of(text: &Text, values: &[&str]) -> bool {
    text.as_deref().is_some_and(|text| values.contains(&text))
}

/// Keeps the first valid id or path.
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

/// Returns the slash command that a message starts, as the client records it.
fn command_name(text: &str) -> &str {
    let name = text.split_once("<command-name>").map(|(_, rest)| rest);
    name.unwrap_or(text)
}

/// Cuts a masked text to the maximum size.
fn truncated(text: String) -> String {
    truncated_to(text, MAX_TEXT)
}

fn truncated_to(mut text: String, bytes: usize) -> String {
    text.truncate(head(&text, bytes).len());
    text
}

#[cfg(test)]
mod tests;
