//! Finds commits of a project that answer a question: in searches, and at prompts that ask why, when or who.
//!
//! Commits are many and short, so at a prompt only a clear match counts: ordinary prompts would find one
//! each time.

use std::collections::BTreeMap;

use anamnesis_store::project_history::{Commits, Error, IndexedCommit};
use anamnesis_text::terms::terms;
use chrono::DateTime;

use crate::{
    rank::{Query, idf},
    render::{cut, inert_line},
};

/// BM25's term saturation and length normalisation (Robertson and Zaragoza, 2009).
const K1: f32 = 1.2;
const B: f32 = 0.5;

/// The maximum number of commits in the answer to a search.
const MAX_FOUND: usize = 5;

/// Thresholds of a clear match: the minimum score, as a share of the highest one; the minimum number and
/// share of the question's words. Fewer words must be the entire question, and rare together.
const MIN_FIT: f32 = 0.38;
const MIN_WORDS: usize = 3;
const MIN_COVERAGE: f32 = 0.5;
const ALL: f32 = 0.99;
const MIN_RARITY: f32 = 0.75;

/// A question that as many commits match about equally is about none of them.
const MAX_EQUAL: usize = 2;
const EQUAL_SHARE: f32 = 0.8;

/// The least coverage in the answer to a search.
const FLOOR: f32 = 0.34;

/// The maximum length of a subject in a line, in characters.
const MAX_SUBJECT: usize = 120;

/// The maximum number of commits that are looked through for one that did what a question asks about.
const MAX_DONE: usize = 20;

/// Verbs in questions about what happened to a thing. The commit may use another verb of the same line.
const VERBS: [&str; 3] = [
    "remove removed delete deleted drop dropped",
    "rename renamed",
    "deprecate deprecated",
];

/// A commit that answers a question.
#[derive(Debug, Clone, PartialEq)]
pub struct FoundCommit {
    /// The commit.
    pub commit: IndexedCommit,
    /// The words that it shares with the question.
    pub matched: Vec<String>,
    /// The share of the question's words that it has, weighted by rarity.
    pub coverage: f32,
    /// Its BM25 score, as a share of the highest one for the question.
    pub fit: f32,
    /// How rare these words are together: 1 for a word that hardly any commit has.
    rarity: f32,
}

impl FoundCommit {
    fn is_clear(&self) -> bool {
        let has_many = self.matched.len() >= MIN_WORDS && self.coverage >= MIN_COVERAGE;
        let has_rare = self.coverage >= ALL && self.rarity >= MIN_RARITY;
        self.fit >= MIN_FIT && (has_many || has_rare)
    }

    /// Returns its line.
    pub fn line(&self) -> String {
        line(&self.commit)
    }
}

/// Returns a commit as a line: `1a2b3c4 12 Mar 2025 subject`.
pub fn line(commit: &IndexedCommit) -> String {
    let short = |id: &str| id.chars().take(7).collect::<String>();
    let day = DateTime::from_timestamp(commit.at, 0).unwrap_or_default();
    let subject = cut(&inert_line(&commit.subject), MAX_SUBJECT);
    let reverted = commit.reverted_by.as_ref();
    let reverted = reverted.map(|by| format!(" (reverted by {})", short(by)));
    format!(
        "{} {} {subject}{}",
        short(&commit.id),
        day.format("%-d %b %Y"),
        reverted.unwrap_or_default()
    )
}

/// Finds the commits that answer a prompt, if it asks why, when or who. Those in `shown` are left out.
pub fn at_prompt(
    commits: &Commits,
    projects: &[String],
    prompt: &Query,
    shown: &[String],
) -> Result<Vec<FoundCommit>, Error> {
    let query = prompt.in_project(projects.iter().map(String::as_str));
    let terms = query.telling_terms();
    if let Some(verbs) = asked_verbs(&prompt.text()) {
        let mut things = terms.clone();
        things.retain(|term, _| !verbs.iter().any(|verb| verb == term));
        let mut done = ranked(commits, projects, &things, MAX_DONE)?;
        done.retain(|found| does(&found.commit.subject, &verbs, &things));
        if !things.is_empty() && (1..=MAX_EQUAL).contains(&done.len()) {
            done.retain(|found| !shown.contains(&found.commit.id));
            return Ok(done);
        }
    }
    let mut found = ranked(commits, projects, &terms, MAX_FOUND)?;
    let best = found.first().map_or(0.0, |found| found.fit);
    found.retain(|found| found.fit >= EQUAL_SHARE * best);
    if found.len() > MAX_EQUAL {
        return Ok(Vec::new());
    }
    found.retain(|found| found.is_clear() && !shown.contains(&found.commit.id));
    Ok(found)
}

/// Finds the commits that answer a search.
pub fn search(
    commits: &Commits,
    projects: &[String],
    text: &str,
) -> Result<Vec<FoundCommit>, Error> {
    let query = Query::parse(text);
    let mut found = ranked(commits, projects, &query.telling_terms(), MAX_FOUND)?;
    found.retain(|found| found.coverage >= FLOOR);
    Ok(found)
}

/// Returns the terms of the verb in a question about what happened to a thing, and of its synonyms: "why did we
/// drop it", "when was it removed".
fn asked_verbs(question: &str) -> Option<Vec<String>> {
    let question = question.to_lowercase();
    let is_asked = |verb: &str| {
        let mut words = question.split(|c: char| !c.is_alphanumeric());
        words.any(|word| word == verb) && (verb.ends_with("ed") || question.contains(" did "))
    };
    let line = VERBS.iter().find(|line| line.split(' ').any(is_asked))?;
    Some(terms(line))
}

/// Returns whether the subject of a commit begins with one of these verbs and names all these things.
fn does(subject: &str, verbs: &[String], things: &BTreeMap<&str, &str>) -> bool {
    let area = subject
        .split_once(": ")
        .filter(|(area, _)| !area.contains(' '));
    let named = terms(area.map_or(subject, |(_, text)| text));
    let begins = named.first().is_some_and(|first| verbs.contains(first));
    begins
        && things
            .keys()
            .all(|thing| named.iter().any(|it| it == thing))
}

/// A commit under consideration: the sums of its terms, and which they are.
#[derive(Default)]
struct Score {
    bm25: f32,
    weight: f32,
    matched: Vec<usize>,
}

/// Ranks the commits of projects by BM25, and returns the best. `terms` are terms with their spellings.
fn ranked(
    commits: &Commits,
    projects: &[String],
    terms: &BTreeMap<&str, &str>,
    limit: usize,
) -> Result<Vec<FoundCommit>, Error> {
    let mut found = Vec::new();
    for project in projects {
        let (count, average) = commits.totals(project)?;
        if count == 0 {
            continue;
        }
        let mut scores: BTreeMap<u32, Score> = BTreeMap::new();
        let mut all = 0.0;
        for (place, term) in terms.keys().enumerate() {
            let postings = commits.postings(project, term)?;
            let idf = idf(count, u32::try_from(postings.len()).unwrap_or(u32::MAX));
            all += idf;
            for posting in postings {
                let count = f32::from(posting.count);
                let length = f32::from(posting.length) / average.max(1.0);
                let score = scores.entry(posting.number).or_default();
                score.bm25 += idf * count * (K1 + 1.0) / (count + K1 * (1.0 - B + B * length));
                score.weight += idf;
                score.matched.push(place);
            }
        }
        let mut scores: Vec<(u32, Score)> = scores.into_iter().collect();
        scores.sort_by(|a, b| b.1.bm25.total_cmp(&a.1.bm25).then(b.0.cmp(&a.0)));
        let mut added = 0;
        for (number, score) in scores {
            let Some(commit) = commits.get(number)? else {
                continue;
            };
            let written = score
                .matched
                .iter()
                .filter_map(|at| terms.values().nth(*at));
            found.push(FoundCommit {
                commit,
                matched: written.map(|word| (*word).to_owned()).collect(),
                coverage: score.weight / all,
                fit: score.bm25 / (all * (K1 + 1.0)),
                rarity: score.weight / idf(count, 0),
            });
            added += 1;
            if added == limit {
                break;
            }
        }
    }
    found.sort_by(|a, b| b.fit.total_cmp(&a.fit).then(b.commit.at.cmp(&a.commit.at)));
    found.truncate(limit);
    Ok(found)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anamnesis_store::{fs::home::Home, project_history::ProjectCommit};

    use super::*;

    #[test]
    fn a_question_what_became_of_a_thing_finds_the_commit_that_did_it() {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let mut commits = Commits::open_to_write(&home, Duration::from_secs(5)).unwrap();
        let subjects = [
            "Add the retry queue",
            "queue: drop the retry queue",
            "Retry queue: log each retry of the queue",
            "Keep the retry queue small",
            "Show the settings page",
            "Rename the settings page to preferences",
            "Remove the page of the settings menu from the docs",
            "Delete export of invoices",
        ];
        let new = subjects.iter().zip(1..).map(|(subject, at)| ProjectCommit {
            id: format!("{at:040}"),
            at,
            subject: (*subject).to_owned(),
            ..ProjectCommit::default()
        });
        let new: Vec<ProjectCommit> = new.collect();
        commits.update("p", &[], &[], &new).unwrap();
        let found = |question: &str| {
            let query = Query::from_segments(&[question.to_owned()]);
            let found = at_prompt(&commits, &["p".to_owned()], &query, &[]).unwrap();
            let found = found.into_iter().map(|found| found.commit.subject);
            found.collect::<Vec<_>>()
        };
        for (question, expected) in [
            ("why did we remove the retry queue?", subjects[1]),
            ("when was the retry queue deleted?", subjects[1]),
            ("when was the settings page renamed?", subjects[5]),
            (
                "why were the invoices dropped from the export?",
                subjects[7],
            ),
        ] {
            assert_eq!(found(question), [expected], "{question}");
        }
        // No commit did that, or the word is not the verb of the question.
        for question in [
            "when was the retry queue renamed?",
            "why does the delete button of the settings page hang?",
            "why did we remove it?",
        ] {
            assert_eq!(found(question), [""; 0], "{question}");
        }
    }
}
