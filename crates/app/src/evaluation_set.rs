//! The evaluation set for recall: `eval/eval.jsonl` of this machine, or another file.
//!
//! A line is one question and the notes that answer it. People may edit lines, so only forgetting a
//! note removes one. Invalid lines are reported and kept. The file never syncs.

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
    /// The origin of the question.
    #[serde(default)]
    pub source: String,
}

impl Case {
    /// Creates a question that a model asked about a note. A person has to approve it.
    pub fn by_model(query: &str, note: &Note, label: &str) -> Self {
        Self {
            query: fit(&plain(query)),
            relevant_ids: vec![note.id.to_string()],
            note_titles: vec![fit(&note.title)],
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
}

/// Sanitises a text for the file.
fn fit(text: &str) -> String {
    sanitize::text(text, &PrivateTokens::default(), MAX_QUERY).value
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
        let text: String = self.lines.iter().map(|line| format!("{line}\n")).collect();
        let path = one_line(&self.path.display().to_string());
        file::write_atomic(&self.path, text.as_bytes())
            .map(drop)
            .map_err(Error::prefixed(format_args!("cannot write {path}")))
    }
}

/// Removes the questions about forgotten notes from this machine's own set. The caller holds the
/// lock of the notes.
pub fn forget_notes(home: &Home, is_gone: impl Fn(NoteId) -> bool) -> Result<(), Error> {
    let Some(mut set) = Set::read(&home.evaluation())? else {
        return Ok(());
    };
    let cases = set.cases.iter();
    let gone: Vec<usize> = cases
        .filter(|(_, case)| case.notes().any(&is_gone))
        .map(|(line, _)| *line)
        .collect();
    if gone.is_empty() {
        return Ok(());
    }
    let mut number = 0;
    set.lines.retain(|_| {
        number += 1;
        !gone.contains(&number)
    });
    set.write()
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
}
