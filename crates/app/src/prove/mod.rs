//! Plays the person's past sessions in an empty store, in the order of time, and counts what earlier
//! notes would have told them.
//!
//! Each prompt asks the notes of the sessions before it, in the way a hook does. A note was *found again*
//! if the turn's real answer or tool calls say what a line of it says, and nothing in the session had it
//! before: see `again`.
//! Only the client's transcripts are read. What is written is in a temporary folder, which is removed.

mod again;
mod turns;

use std::{
    cmp::Reverse,
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

use anamnesis_note::id::NoteId;
use anamnesis_recall::render::shown_of;
use anamnesis_session::{
    event::{FileAction, Host, ToolEvent, ToolInput},
    transcript::Transcript,
};
use anamnesis_store::{
    fs::home::{self, Home},
    journal::{Ledger, Seen},
    project::Project,
};
use anamnesis_text::{
    clean::one_line,
    private_tokens::PrivateTokens,
    shell::{commands, name_of},
};
use chrono::{DateTime, Utc};
use serde::Serialize;

use self::{
    again::{Terms, found_again},
    turns::PastTurn,
};
use crate::{
    Error,
    backfill::{self, PastSession, SessionFilter},
    context::Context,
    dry_run::{SeenContext, Trial},
    recall::{Lane, RecallResult},
};

/// The longest prompt of an example, in characters.
const MAX_PROMPT: usize = 300;

/// Programs that search, and that print files.
const SEARCHING: [&str; 8] = ["ag", "egrep", "fd", "find", "grep", "ls", "rg", "tree"];
const READING: [&str; 5] = ["bat", "cat", "head", "less", "tail"];

/// Outcome for a prompt that would have received notes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ProofVerdict {
    /// The turn has nothing of them.
    Nothing,
    /// It has words of one of them, without a search or a file before.
    Said,
    /// It has words of one of them, after searches or files.
    FoundAgain,
}

/// A note that a prompt would have got.
#[derive(Debug, Clone, Serialize)]
pub struct GivenAgain {
    /// Its title.
    pub title: String,
    /// The text that would have been shown; empty if it would only have been named.
    pub text: String,
    /// Its words that the turn has and that the session had not before; empty if the turn does not use it.
    pub words: Vec<String>,
}

/// A prompt that would have got notes.
#[derive(Debug, Clone, Serialize)]
pub struct Example {
    /// The client's id of the session.
    pub session: String,
    /// The session's project.
    pub project: String,
    /// When it was typed, if the transcript says it.
    pub at: Option<DateTime<Utc>>,
    /// The prompt.
    pub prompt: String,
    /// The notes.
    pub notes: Vec<GivenAgain>,
    /// The verdict on them.
    pub verdict: ProofVerdict,
    /// The size of the block, in tokens.
    pub tokens: usize,
    /// The searches of the turn before it had the words.
    pub searches: usize,
    /// The files that it read before.
    pub files: usize,
}

/// The figures of the played sessions.
#[derive(Debug, Default, Serialize)]
pub struct Proof {
    /// The sessions that were played.
    pub sessions: usize,
    /// The transcripts that cannot be played: empty, open, excluded, forgotten or unreadable.
    pub skipped: usize,
    /// The projects of the sessions.
    pub projects: usize,
    /// When the first and the last session began.
    #[serde(skip)]
    pub span: Option<(DateTime<Utc>, DateTime<Utc>)>,
    /// The prompts of the person.
    pub prompts: usize,
    /// Prompts of sessions in which this program had injected notes. They are not judged.
    pub with_memory: usize,
    /// The number of prompts that would have got notes.
    pub given: usize,
    /// Their sums.
    pub totals: Totals,
    /// These prompts, in the order of time.
    pub examples: Vec<Example>,
}

/// Sums over the prompts that would have got notes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// Prompts whose turn found a note's words again, after searches or files.
    pub found_again: usize,
    /// Prompts whose turn said a note's words without a search.
    pub said: usize,
    /// Prompts whose turn has nothing of the notes.
    pub nothing: usize,
    /// The searches and the files before the words were found again.
    pub searches: usize,
    /// See `searches`.
    pub files: usize,
    /// The size of all blocks.
    pub tokens: usize,
    /// The size of the blocks of which the turn has nothing.
    pub tokens_for_nothing: usize,
}

/// The limits of the figures, a line each.
pub const LIMITS: &str = "\
Whether the model would have used a note that it was given, and would have searched less.
Whether it would have read a note that was only named.
Whether the same words mean the same thing: the turn may say them for another reason.
Whether a note of which the turn says nothing was of use: one that keeps a mistake from being made leaves no words.
What the instructions of a project (CLAUDE.md) said then: words that they had count as found again.
What a session got at its start: only prompts are played.
Sessions whose transcripts the client has deleted.";

impl Proof {
    /// Adds a prompt that would have got notes.
    fn add(&mut self, example: Example) {
        let sum = &mut self.totals;
        sum.tokens += example.tokens;
        sum.searches += example.searches;
        sum.files += example.files;
        match example.verdict {
            ProofVerdict::FoundAgain => sum.found_again += 1,
            ProofVerdict::Said => sum.said += 1,
            ProofVerdict::Nothing => {
                sum.nothing += 1;
                sum.tokens_for_nothing += example.tokens;
            }
        }
        self.given += 1;
        self.examples.push(example);
    }

    /// The examples with a verdict.
    pub fn of(&self, verdict: ProofVerdict) -> impl Iterator<Item = &Example> {
        self.examples.iter().filter(move |it| it.verdict == verdict)
    }

    /// The best examples: what was found again after the most searches and files.
    pub fn best(&self, limit: usize) -> Vec<&Example> {
        let mut best: Vec<_> = self.of(ProofVerdict::FoundAgain).collect();
        best.sort_by_key(|it| Reverse((it.searches + it.files, it.words())));
        best.truncate(limit);
        best
    }

    /// The worst examples: the most tokens for nothing.
    pub fn worst(&self, limit: usize) -> Vec<&Example> {
        let mut worst: Vec<_> = self.of(ProofVerdict::Nothing).collect();
        worst.sort_by_key(|it| Reverse(it.tokens));
        worst.truncate(limit);
        worst
    }
}

impl Example {
    fn words(&self) -> usize {
        self.notes.iter().map(|note| note.words.len()).sum()
    }
}

/// Plays all sessions of the client, or those of another folder like `~/.claude`; of one project, or of
/// all. `progress` is called with what is done, of how many, and what it is.
pub fn run(
    real: &Context,
    from: Option<&Path>,
    project: Option<String>,
    mut progress: impl FnMut(usize, usize, &'static str),
) -> Result<Proof, Error> {
    let store = TemporaryStore::create(real)?;
    let mut environment = real.environment.clone();
    environment.store = Some(store.0.clone());
    if let Some(from) = from {
        environment.claude_folder = Some(from.to_owned());
    }
    let context = Context::open(environment)?;
    context.index()?;
    let wanted = SessionFilter {
        host: Host::ClaudeCode,
        project,
        since: None,
        unrecorded: true,
        limit: None,
    };
    let (mut sessions, skipped) = backfill::past_sessions(&context, &wanted, |done, total| {
        progress(done, total, "transcript");
    })?;
    let found = sessions.len();
    // What the person had forgotten is not shown again.
    sessions.retain(|past| {
        let note = real.notes.find(past.session.note);
        !note.is_some_and(|note| real.notes.is_forgotten(note))
    });
    let projects = sessions.iter().map(|past| &past.session.project);
    let proof = Proof {
        skipped: skipped + found - sessions.len(),
        sessions: sessions.len(),
        projects: projects.collect::<BTreeSet<_>>().len(),
        span: sessions
            .first()
            .zip(sessions.last())
            .map(|(first, last)| (first.session.began, last.session.began)),
        ..Proof::default()
    };
    let mut player = Player { context, proof };
    for (number, past) in sessions.iter().enumerate() {
        progress(number, sessions.len(), "session");
        player.play(past)?;
    }
    Ok(player.proof)
}

/// A folder for a store, removed at the end.
struct TemporaryStore(PathBuf);

impl TemporaryStore {
    /// Creates it with the person's settings.
    fn create(real: &Context) -> Result<Self, Error> {
        let name = format!("anamnesis-prove-{}", NoteId::generate(real.environment.now));
        let folder = std::env::temp_dir().join(name);
        let shown = folder.display();
        home::ensure_folder(&folder)
            .map_err(Error::prefixed(format_args!("cannot create {shown}")))?;
        let store = Self(folder);
        let (from, to) = (real.home.config(), Home::new(&store.0).config());
        match fs::copy(&from, to) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(Error::failed(
                format!("cannot copy {}: {error}", from.display()),
            )),
            _ => Ok(store),
        }
    }
}

impl Drop for TemporaryStore {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Player {
    context: Context,
    proof: Proof,
}

impl Player {
    /// Plays the prompts of a session, then writes its note.
    fn play(&mut self, past: &PastSession) -> Result<(), Error> {
        let session = &past.session;
        let project = self.context.project(Some(&session.project));
        let turns = turns::read(&past.path).map_err(Error::caused_by)?;
        let mut before = Terms::default();
        let mut ledger = Ledger::new();
        let mut with_memory = false;
        for turn in &turns {
            with_memory |= turn.has_notes;
            self.context.environment.now = turn.said.first_at.unwrap_or(session.began);
            for prompt in turn
                .said
                .turns
                .iter()
                .filter_map(|turn| turn.prompt.as_deref())
            {
                self.proof.prompts += 1;
                if with_memory {
                    self.proof.with_memory += 1;
                    continue;
                }
                let seen = SeenContext {
                    ledger: ledger.clone(),
                    own: Some(session.note),
                };
                if let Some(answer) = self.ask(prompt, &project, seen)? {
                    for shown in &answer.shown {
                        let seen = Seen {
                            hash: shown.hash.clone(),
                            with_text: matches!(shown.level, "body" | "part"),
                            is_excerpt_of_start: false,
                        };
                        ledger.insert(shown.note, seen);
                    }
                    before.add(prompt);
                    // A turn that was cut off shows nothing of any note.
                    if turn.said.outcome.is_some() || !turn.said.tool_events.is_empty() {
                        let example = Self::judge(past, turn, prompt, &before, &answer);
                        self.proof.add(example);
                    }
                }
            }
            add_to(&mut before, &turn.said);
        }
        self.context.environment.now = session.ended;
        backfill::write_note(&self.context, None, Host::ClaudeCode, session, &past.digest)?;
        self.context.index()?;
        Ok(())
    }

    /// Returns what a prompt would have got, if it would have got something.
    fn ask(
        &self,
        prompt: &str,
        project: &Project,
        seen: SeenContext,
    ) -> Result<Option<RecallResult>, Error> {
        let trial = Trial {
            text: prompt,
            lane: Lane::Prompt,
            project: Some(&project.key),
            session: None,
        };
        let echoes = PrivateTokens::default();
        let answer = trial.run_in(&self.context, project, None, &echoes, seen)?;
        Ok(answer.ok().filter(|answer| !answer.shown.is_empty()))
    }

    /// Compares the notes with what the turn did.
    fn judge(
        past: &PastSession,
        turn: &PastTurn,
        prompt: &str,
        before: &Terms,
        answer: &RecallResult,
    ) -> Example {
        let events = &turn.said.tool_events;
        let inputs = events
            .iter()
            .flat_map(|event| &event.input)
            .flat_map(ToolInput::texts);
        let said: Vec<&str> = turn
            .said
            .outcome
            .as_deref()
            .into_iter()
            .chain(inputs)
            .collect();
        let notes: Vec<GivenAgain> = answer
            .shown
            .iter()
            .filter_map(|shown| {
                if let Some(text) = shown_of(&answer.block.text, shown.note) {
                    return Some(GivenAgain {
                        title: one_line(text.lines().next().unwrap_or_default()),
                        words: found_again(&text, before, &said),
                        text,
                    });
                }
                let mut pointers = answer.outcome.pointers.iter();
                let note = &pointers
                    .find(|it| it.recalled.note.id == shown.note)?
                    .recalled
                    .note;
                Some(GivenAgain {
                    title: one_line(&note.title),
                    words: found_again(&format!("{}\n{}", note.title, note.body), before, &said),
                    text: String::new(),
                })
            })
            .collect();
        let words: Vec<String> = notes.iter().flat_map(|note| note.words.clone()).collect();
        let (searches, files) = if words.is_empty() {
            (0, 0)
        } else {
            cost(events, &words, prompt)
        };
        Example {
            session: past.session.id.clone(),
            project: past.session.project.clone(),
            at: turn.said.first_at,
            prompt: crate::format::shorten(&one_line(prompt), MAX_PROMPT),
            notes,
            verdict: match (words.is_empty(), searches + files) {
                (true, _) => ProofVerdict::Nothing,
                (false, 0) => ProofVerdict::Said,
                (false, _) => ProofVerdict::FoundAgain,
            },
            tokens: answer.block.tokens(),
            searches,
            files,
        }
    }
}

/// Adds a turn to what the session's context has.
fn add_to(before: &mut Terms, said: &Transcript) {
    for turn in &said.turns {
        for text in turn.prompt.iter().chain(&turn.answer) {
            before.add(text);
        }
    }
    let inputs = said.tool_events.iter().flat_map(|event| &event.input);
    for text in inputs.flat_map(ToolInput::texts) {
        before.add(text);
    }
}

/// Counts the searches and the read files up to the first call that has the words; of the whole turn if
/// only the answer has them. Files that the prompt names do not count: no note would have saved them.
fn cost(events: &[ToolEvent], words: &[String], prompt: &str) -> (usize, usize) {
    let asked: Vec<&str> = prompt.split_whitespace().map(path_of).collect();
    let (mut searches, mut files) = (0, 0);
    for event in events {
        let mut terms = Terms::default();
        for text in event.input.iter().flat_map(ToolInput::texts) {
            terms.add(text);
        }
        if terms.count(words) >= 2 {
            break;
        }
        let command = event
            .input
            .as_ref()
            .and_then(|input| input.command.as_deref());
        let scripts = command.map(commands).unwrap_or_default();
        let arguments = scripts.iter().flatten().map(String::as_str);
        if asked
            .iter()
            .any(|path| uses(event, path, arguments.clone()))
        {
            continue;
        }
        let runs = |programs: &[&str]| {
            let mut names = scripts.iter().filter_map(|words| words.first());
            names.any(|name| programs.contains(&name_of(name)))
        };
        if event.search().is_some() || event.tool == "Search" || runs(&SEARCHING) {
            searches += 1;
        } else if runs(&READING)
            || event
                .files
                .iter()
                .any(|file| file.action == FileAction::Read)
        {
            files += 1;
        }
    }
    (searches, files)
}

/// Returns the path in a word of a prompt: "`src/a.rs:12`," is about `src/a.rs`.
fn path_of(word: &str) -> &str {
    let is_sign = |c: char| !c.is_alphanumeric() && c != '_';
    let word = word.trim_start_matches(|c| is_sign(c) && c != '.');
    let word = word.strip_prefix("./").unwrap_or(word);
    let path = word.split_once(':').map_or(word, |(path, _)| path);
    path.trim_end_matches(is_sign)
}

/// Returns whether a call uses the file that a prompt names. A word without an extension names only a file
/// that a tool was given: `Makefile`.
fn uses<'a>(event: &'a ToolEvent, path: &str, arguments: impl Iterator<Item = &'a str>) -> bool {
    let is_it = |used: &str| {
        let above = used.strip_suffix(path);
        above.is_some_and(|above| above.is_empty() || above.ends_with('/'))
    };
    let mut files = event.files.iter().map(|file| file.path.as_str());
    let inputs = event.input.iter().flat_map(|input| input.others.values());
    let mut texts = inputs.map(String::as_str).chain(arguments);
    !path.is_empty() && (files.any(is_it) || path.contains('.') && texts.any(is_it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_searches_and_files_before_the_words_are_counted() {
        let event = |tool: &str, input: serde_json::Value| -> ToolEvent {
            serde_json::from_value(serde_json::json!({
                "id": "t", "tool": tool, "input": input, "outcome": "ok",
                "files": [], "is_from_batch": false, "many_tags": false,
            }))
            .unwrap()
        };
        let events = [
            event("Grep", serde_json::json!({ "pattern": "limit" })),
            event(
                "Bash",
                serde_json::json!({ "command": "cd src && rg -n gateway" }),
            ),
            event("Bash", serde_json::json!({ "command": "cat src/limit.rs" })),
            event("Bash", serde_json::json!({ "command": "cargo test" })),
            event(
                "Bash",
                serde_json::json!({ "command": "make stub port=9090" }),
            ),
            event("Grep", serde_json::json!({ "pattern": "later" })),
        ];
        let words = ["stub", "9090"].map(str::to_owned);
        assert_eq!(cost(&events, &words, "Why?"), (2, 1));
        let other = ["other", "word"].map(str::to_owned);
        assert_eq!(cost(&events, &other, "Why?"), (3, 1));
        // The prompt asks for a file; words that it shares with a search are no file.
        for (prompt, expected) in [
            ("Read `src/limit.rs:12`, then fix it.", (3, 0)),
            ("what does limit.rs do with the limit?", (3, 0)),
            ("look through ./src/ first", (3, 1)),
            ("what is in other/limit.rs", (3, 1)),
            ("and/or e.g. the gateway", (3, 1)),
        ] {
            assert_eq!(cost(&events, &other, prompt), expected, "{prompt}");
        }
        let read: ToolEvent = serde_json::from_value(serde_json::json!({
            "id": "t", "tool": "Read", "input": { "file_path": "/home/dev/pier/docs/Makefile" },
            "files": [{ "path": "docs/Makefile", "action": "read" }],
            "outcome": "ok", "is_from_batch": false, "many_tags": false,
        }))
        .unwrap();
        for (prompt, files) in [
            ("see the Makefile", 0),
            ("see @docs/Makefile.", 0),
            ("look through docs/", 1),
            ("make it so", 1),
        ] {
            assert_eq!(
                cost(std::slice::from_ref(&read), &other, prompt),
                (0, files),
                "{prompt}"
            );
        }
    }
}
