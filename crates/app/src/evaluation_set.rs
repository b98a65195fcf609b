//! The evaluation set for recall: `eval/eval.jsonl` of this machine, or another file.
//!
//! A line is one question and the notes that answer it. People may edit lines, so only forgetting a
//! note or a session removes one. Invalid lines are reported and kept. The file never syncs,
//! because it contains words of prompts.

use std::{
    io,
    path::{Path, PathBuf},
};

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_store::fs::{
    file,
    home::{Home, ensure_folder},
};
use anamnesis_text::{clean::one_line, private_tokens::PrivateTokens, sanitize};
use serde::{Deserialize, Serialize};

use crate::{Error, context::Context, format};

/// The largest file that is read, in bytes.
const MAX_LENGTH: usize = 64 * 1024 * 1024;

/// The maximum length of a question in characters, the same as of a stored prompt.
const MAX_QUERY: usize = 8_000;

/// The `source` of a question that is the title of its note.
pub const TITLE: &str = "title";

/// The prefix of `source` for a question that is a prompt; `SESSION#NUMBER` follows.
const PROMPT: &str = "prompt:";

/// The prefix of `source` for a question that a model asked; the model's label follows.
const MODEL: &str = "llm:";

/// A question and the notes that answer it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// The question.
    pub query: String,
    /// The ids of the notes that answer it.
    pub relevant_ids: Vec<String>,
    /// The notes' titles, for people who read the file.
    #[serde(default)]
    pub note_titles: Vec<String>,
    /// Whether it is used by default. Questions that are not approved are used on request only.
    #[serde(default)]
    pub approved: bool,
    /// Where the question comes from.
    #[serde(default)]
    pub source: String,
}

impl Case {
    /// Creates a question from a note's title. The note certainly answers it, so it is approved.
    pub fn of_title(note: &Note, echoes: &PrivateTokens) -> Self {
        Self {
            query: fit(&plain(&note.title), echoes),
            relevant_ids: vec![note.id.to_string()],
            note_titles: vec![fit(&note.title, echoes)],
            approved: true,
            source: TITLE.to_owned(),
        }
    }

    /// Creates a question from a prompt and the notes that were opened for it. One may have been
    /// the wrong one, so a person has to approve it.
    pub fn of_prompt(
        text: &str,
        (session, number): (&str, i64),
        notes: &[&Note],
        echoes: &PrivateTokens,
    ) -> Self {
        let titles = notes.iter().map(|note| fit(&note.title, echoes));
        Self {
            query: fit(&plain(text), echoes),
            relevant_ids: notes.iter().map(|note| note.id.to_string()).collect(),
            note_titles: titles.collect(),
            approved: false,
            source: format!("{PROMPT}{session}#{number}"),
        }
    }

    /// Creates a question that a model asked about a note. A person has to approve it.
    pub fn by_model(query: &str, note: &Note, label: &str, echoes: &PrivateTokens) -> Self {
        Self {
            query: fit(&plain(query), echoes),
            relevant_ids: vec![note.id.to_string()],
            note_titles: vec![fit(&note.title, echoes)],
            approved: false,
            source: format!("{MODEL}{label}"),
        }
    }

    /// Whether a model asked it.
    pub fn is_by_model(&self) -> bool {
        self.source.starts_with(MODEL)
    }

    /// The ids of the notes; invalid ids are skipped.
    pub fn notes(&self) -> impl Iterator<Item = NoteId> {
        self.relevant_ids.iter().filter_map(|id| id.parse().ok())
    }

    /// The part of `source` before the colon, or `other`.
    pub fn kind(&self) -> &str {
        match self.source.split(':').next().unwrap_or_default() {
            "" => "other",
            kind => kind,
        }
    }

    /// Whether it is a prompt of this session, and the one with this number if one is given.
    fn is_of(&self, session: &str, number: Option<i64>) -> bool {
        let origin = self.source.strip_prefix(PROMPT);
        origin
            .and_then(|origin| origin.rsplit_once('#'))
            .is_some_and(|(of, its)| {
                of == session && number.is_none_or(|number| its == number.to_string())
            })
    }
}

/// Sanitises a text for the file.
fn fit(text: &str, echoes: &PrivateTokens) -> String {
    sanitize::text(text, echoes, MAX_QUERY).value
}

/// Removes the search operators from a text.
fn plain(text: &str) -> String {
    text.replace(['"', '*'], " ").trim().to_owned()
}

/// An evaluation set and its file.
#[derive(Debug)]
pub struct Set {
    path: PathBuf,
    /// All lines of the file, unchanged.
    lines: Vec<String>,
    /// The valid questions and their line numbers, from 1.
    pub cases: Vec<(usize, Case)>,
    /// The numbers of invalid lines, with the reason.
    pub bad: Vec<(usize, String)>,
}

impl Set {
    /// Reads a set; `None` if the file does not exist.
    pub fn read(path: &Path) -> Result<Option<Self>, Error> {
        let failed = |reason: String| {
            let path = one_line(&path.display().to_string());
            Error::failed(format!("{path}: {reason}"))
        };
        let bytes = match file::read_head(path, MAX_LENGTH) {
            Ok((bytes, _, true)) => bytes,
            Ok(_) => {
                return Err(failed(format!(
                    "is over {}",
                    format::size(MAX_LENGTH as u64)
                )));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(failed(error.to_string())),
        };
        Ok(Some(Self::parse(path, &String::from_utf8_lossy(&bytes))))
    }

    fn parse(path: &Path, text: &str) -> Self {
        let mut set = Self {
            path: path.to_owned(),
            lines: text.lines().map(str::to_owned).collect(),
            cases: Vec::new(),
            bad: Vec::new(),
        };
        for (line, number) in text.lines().zip(1..) {
            if line.trim().is_empty() {
                continue;
            }
            match serde_json::from_str::<Case>(line) {
                Ok(case) if case.query.trim().is_empty() => {
                    set.bad.push((number, "asks nothing".to_owned()));
                }
                Ok(case) if case.relevant_ids.is_empty() => {
                    set.bad.push((number, "names no note".to_owned()));
                }
                Ok(case) => set.cases.push((number, case)),
                Err(error) => set.bad.push((number, error.to_string())),
            }
        }
        set
    }

    /// Appends questions to a file, except those that it already contains. Returns what was added.
    pub fn append(context: &Context, path: &Path, cases: Vec<Case>) -> Result<Vec<Case>, Error> {
        let _lock = context.notes.lock()?;
        let mut set = Self::read(path)?.unwrap_or_else(|| Self::parse(path, ""));
        let mut added: Vec<Case> = Vec::new();
        for case in cases {
            let known = set.cases.iter().map(|(_, case)| case).chain(&added);
            if !known.into_iter().any(|known| known.query == case.query) {
                set.lines
                    .push(serde_json::to_string(&case).unwrap_or_default());
                added.push(case);
            }
        }
        if !added.is_empty() {
            if path == context.home.evaluation() {
                let folder = path.parent().unwrap_or(path);
                ensure_folder(folder).map_err(Error::caused_by)?;
            }
            set.write()?;
        }
        Ok(added)
    }

    fn write(&self) -> Result<(), Error> {
        write_lines(&self.path, &self.lines)
    }

    /// Removes questions from this machine's own set.
    fn retain(home: &Home, keep: impl Fn(&Case) -> bool) -> Result<(), Error> {
        let Some(mut set) = Self::read(&home.evaluation())? else {
            return Ok(());
        };
        let gone: Vec<usize> = set
            .cases
            .iter()
            .filter(|(_, case)| !keep(case))
            .map(|(line, _)| *line)
            .collect();
        if gone.is_empty() {
            return Ok(());
        }
        let lines = std::mem::take(&mut set.lines).into_iter().zip(1..);
        set.lines = lines
            .filter(|(_, line)| !gone.contains(line))
            .map(|(text, _)| text)
            .collect();
        set.write()
    }
}

/// Removes the questions about forgotten notes from this machine's own set. The caller holds the
/// lock of the notes.
pub fn forget_notes(home: &Home, is_gone: impl Fn(NoteId) -> bool) -> Result<(), Error> {
    Set::retain(home, |case| !case.notes().any(&is_gone))
}

/// Removes a session's prompts, or one of them, from this machine's own set. The caller holds the
/// lock of the notes.
pub fn forget_session(home: &Home, session: &str, prompt: Option<i64>) -> Result<(), Error> {
    Set::retain(home, |case| !case.is_of(session, prompt))
}

/// Replaces a file by these lines.
pub(crate) fn write_lines(path: &Path, lines: &[String]) -> Result<(), Error> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    file::write_atomic(path, text.as_bytes())
        .map(drop)
        .map_err(|error| {
            let path = one_line(&path.display().to_string());
            Error::failed(format!("cannot write {path}: {error}")).because(error)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_cannot_be_read_is_named_and_the_others_count() {
        let text = concat!(
            "{\"query\":\"a\",\"relevant_ids\":[\"x\"]}\n\n",
            "no json\n",
            "{\"query\":\" \",\"relevant_ids\":[\"x\"]}\n",
            "{\"query\":\"b\",\"relevant_ids\":[]}\n",
            "{\"query\":\"c\"}\n",
            "{\"query\":\"d\",\"relevant_ids\":[\"x\"],\"approved\":true,\"more\":1}",
        );
        let set = Set::parse(Path::new("set"), text);
        let cases: Vec<_> = set
            .cases
            .iter()
            .map(|(line, case)| (*line, case.query.as_str(), case.approved))
            .collect();
        assert_eq!(cases, [(1, "a", false), (7, "d", true)]);
        let bad: Vec<usize> = set.bad.iter().map(|(line, _)| *line).collect();
        assert_eq!(bad, [3, 4, 5, 6]);
    }

    #[test]
    fn a_prompt_is_of_its_session_only() {
        let case = |source: &str| Case {
            query: "q".to_owned(),
            relevant_ids: Vec::new(),
            note_titles: Vec::new(),
            approved: false,
            source: source.to_owned(),
        };
        let prompt = case("prompt:s#12");
        assert!(prompt.is_of("s", None) && prompt.is_of("s", Some(12)));
        assert!(!prompt.is_of("s", Some(1)) && !prompt.is_of("other", None));
        assert!(!case(TITLE).is_of(TITLE, None));
        let kinds = ["prompt:s#12", "title", "llm:some-model", ""].map(case);
        let kinds: Vec<&str> = kinds.iter().map(Case::kind).collect();
        assert_eq!(kinds, ["prompt", "title", "llm", "other"]);
    }
}
