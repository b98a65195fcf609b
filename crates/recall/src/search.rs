//! Searches notes by words, and by meaning if there is a vector of the query, for people and tools.
//!
//! A note needs only one of the words. Ranking puts the best first, and no threshold applies. Notes
//! of one session support each other, so a note may be found by the words of its neighbour. Notes
//! with a quoted phrase or with a word of a prefix (`migr*`) rank higher. After a plus sign, or where
//! it is the whole query, a phrase or prefix is a condition: other notes are excluded. No other
//! character is an operator.
//!
//! With the query's vector, candidates are sorted by the evidence of words and meaning. A note that has
//! none of the words is found only if its meaning stands out among the searched notes, so that a query
//! about nothing still finds nothing. A required phrase or prefix switches meaning off.

use std::collections::HashMap;

use anamnesis_note::id::NoteId;
use anamnesis_store::index::{Entry, Error, Filter, Index, WordCondition};

use crate::{
    graph::with_neighbours,
    meaning::add_meaning,
    note_set::CANDIDATES,
    rank::{Candidate, Conditions, Mask, Query, Ranked, rank_meeting},
};

/// The maximum number of results.
pub const MAX_HITS: usize = 200;

/// The minimum number of notes that are ranked, so that a smaller `k` does not change the order.
pub const POOL: usize = CANDIDATES;

/// The maximum number of conditions in a query.
const MAX_CONDITIONS: usize = 8;

/// A search result.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The note.
    pub entry: Entry,
    /// The score. Higher is better; comparable only within one search.
    pub score: f64,
    /// The matched words. Empty if only notes of its session or its meaning matched.
    pub matched: Vec<String>,
    /// The cosine of its vector and the query's, if that has raised it.
    pub similarity: Option<f32>,
}

/// Finds the `k` best notes for a query by words, at most [`MAX_HITS`]. An empty query finds nothing.
pub fn search(index: &Index, query: &str, filter: &Filter, k: usize) -> Result<Vec<Hit>, Error> {
    search_with_meaning(index, query, None, filter, k)
}

/// Like [`search`], also by meaning if the query's vector is given.
pub fn search_with_meaning(
    index: &Index,
    query: &str,
    vector: Option<&[f32]>,
    filter: &Filter,
    k: usize,
) -> Result<Vec<Hit>, Error> {
    let mask = Mask::from_filter(filter);
    let k = k.min(MAX_HITS);
    let pool = k.max(POOL);
    let mut found = ranked(index, query, &mask, pool)?;
    let is_free = conditions(query).required.is_empty();
    if let Some(vector) = vector.filter(|_| is_free && k > 0) {
        add_meaning(index, &mut found, vector, &mask)?;
        for found in &mut found.candidates {
            // Notes of a session share in this, so it has to be positive.
            found.score = found.place().exp();
        }
    }
    let found = found.candidates;
    let scores = if is_free {
        with_sessions(index, &found)?
    } else {
        // Neighbours from the session do not have to meet the conditions.
        (found.iter())
            .map(|found| (found.id, found.score.into()))
            .collect::<Vec<(NoteId, f64)>>()
    };
    let mut found: HashMap<NoteId, Candidate> =
        found.into_iter().map(|found| (found.id, found)).collect();
    let mut hits = Vec::with_capacity(k.min(scores.len()));
    for (id, score) in scores {
        if hits.len() == k {
            break;
        }
        if let Some(entry) = index.get(id)?.filter(|entry| mask.takes(entry)) {
            let found = found.remove(&id);
            let meaning = found.as_ref().and_then(|found| found.meaning);
            let meaning = meaning.filter(|meaning| meaning.gain() > 0.0);
            hits.push(Hit {
                entry,
                score,
                matched: found.map_or_else(Vec::new, |found| found.matched),
                similarity: meaning.map(|meaning| meaning.similarity),
            });
        }
    }
    Ok(hits)
}

/// Ranks the notes of a mask that meet the query's conditions.
pub(crate) fn ranked(
    index: &Index,
    query: &str,
    mask: &Mask,
    limit: usize,
) -> Result<Ranked, Error> {
    rank_meeting(index, &Query::parse(query), mask, &conditions(query), limit)
}

/// Rescores candidates by the notes of their sessions: the previous, the next and the best one.
/// Neighbours that were not found are added, even if the mask excludes them.
pub fn with_sessions(index: &Index, found: &[Candidate]) -> Result<Vec<(NoteId, f64)>, Error> {
    let scores: Vec<(NoteId, f64)> = found
        .iter()
        .map(|found| (found.id, found.score.into()))
        .collect();
    let ids: Vec<NoteId> = scores.iter().map(|(id, _)| *id).collect();
    Ok(with_neighbours(&scores, &index.sessions_of(&ids)?))
}

/// Returns the conditions of a query, at most [`MAX_CONDITIONS`].
fn conditions(query: &str) -> Conditions {
    let mut conditions = Conditions::default();
    let mut rest = query;
    let mut count = 0;
    while let Some(start) = rest.find(|c: char| !c.is_whitespace()) {
        rest = &rest[start..];
        let (is_required, text) = match rest.strip_prefix('+') {
            Some(text) => (true, text),
            None => (rest.trim_end().len() == query.trim().len(), rest),
        };
        let (length, condition) = leading_condition(text);
        let after = &text[length..];
        if let Some(condition) = condition.filter(|_| count < MAX_CONDITIONS) {
            count += 1;
            if is_required && (rest.starts_with('+') || after.trim().is_empty()) {
                conditions.required.push(condition);
            } else {
                conditions.preferred.push(condition);
            }
        }
        rest = after;
    }
    conditions
}

/// Returns the length of the phrase or word at the beginning of a text, and its condition.
fn leading_condition(text: &str) -> (usize, Option<WordCondition>) {
    if let Some(phrase) = leading_phrase(text) {
        let condition = WordCondition::phrase(phrase).filter(|_| !has_cjk(phrase));
        return (phrase.len() + 2, condition);
    }
    let end = text.find(char::is_whitespace).unwrap_or(text.len());
    let prefix = text[..end].strip_suffix('*');
    let is_word = |word: &&str| word.chars().all(char::is_alphanumeric) && !has_cjk(word);
    (end, prefix.filter(is_word).and_then(WordCondition::prefix))
}

/// Returns the quoted phrase at the beginning of a text. A quote inside a word does not count.
fn leading_phrase(text: &str) -> Option<&str> {
    let (phrase, after) = text.strip_prefix('"')?.split_once('"')?;
    let ends = !after.starts_with(|c: char| c.is_alphanumeric() || c == '"');
    ends.then_some(phrase)
}

/// Returns whether a text has a character of a dense script. Such a text is no condition: a single
/// character is a term by itself only where it stands alone.
fn has_cjk(text: &str) -> bool {
    text.contains(|c: char| ('\u{2e80}'..='\u{d7ff}').contains(&c) || c >= '\u{f900}')
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::State;

    use super::*;
    use crate::session_start::tests::Fixture;

    #[test]
    fn phrases_and_prefixes_are_conditions() {
        let phrase = |text| WordCondition::phrase(text).unwrap();
        let prefix = |text| WordCondition::prefix(text).unwrap();
        for (query, required, preferred) in [
            ("\"rate limit\"", &[phrase("rate limit")][..], &[][..]),
            (" migr* ", &[prefix("migr")], &[]),
            ("+\"rate limit\" login", &[phrase("rate limit")], &[]),
            ("login +migr*", &[prefix("migr")], &[]),
            ("\"rate limit\" login", &[], &[phrase("rate limit")]),
            (
                "migr* \"std::fs\"",
                &[],
                &[prefix("migr"), phrase("std fs")],
            ),
            ("+migr* \"a b\"", &[prefix("migr")], &[phrase("a b")]),
            ("plain words", &[], &[]),
            ("alpha\" OR \"x", &[], &[]),
            ("\"open", &[], &[]),
            ("+ \"\" \"*\" * a*b (x*)", &[], &[]),
            ("+\"数据库\" +\"naïve plan\"", &[phrase("naive plan")], &[]),
        ] {
            let expected = Conditions {
                required: required.to_vec(),
                preferred: preferred.to_vec(),
            };
            assert_eq!(conditions(query), expected, "{query}");
        }
    }

    #[test]
    fn a_quoted_error_message_does_not_exclude_the_answer() {
        let fixture = Fixture::new();
        fixture.add("the rate limit", |_| {});
        fixture.add("limit the rate", |_| {});
        fixture.add("migrations", |note| note.body = "rate".to_owned());
        let index = fixture.refreshed();
        let found = |query: &str| -> Vec<String> {
            let hits = search(&index, query, &Filter::default(), 8).unwrap();
            hits.into_iter().map(|hit| hit.entry.title).collect()
        };
        assert_eq!(found("\"rate limit\""), ["the rate limit"]);
        assert_eq!(found("migr*"), ["migrations"]);
        assert_eq!(found("rate +migr*"), ["migrations"]);
        assert_eq!(found("+\"rate limit\" +migr*"), [""; 0]);
        assert_eq!(found("why \"rate limit\" exceeded")[0], "the rate limit");
        assert_eq!(
            found("why \"limit the rate\" exceeded")[0],
            "limit the rate"
        );
        assert_eq!(found("the \"limit of the rate\" is").len(), 3);
        assert_eq!(found("unknown migr*"), ["migrations"]);
        assert_eq!(found("rate limit").len(), 3);
    }

    #[test]
    fn notes_of_a_session_support_each_other() {
        let fixture = Fixture::new();
        let add = |title: &str, minute: u32, state: State| {
            fixture.add(title, |note| {
                note.session = Some("s".to_owned());
                note.created_at = format!("2026-01-02T03:{minute:02}:00+00:00");
                note.state = state;
            })
        };
        add("the cache grows", 1, State::Active);
        let tried = add("what was tried", 2, State::Active);
        add("forgotten", 3, State::Forgotten);
        fixture.add("another cache", |_| {});
        fixture.add("nothing of it", |_| {});
        let found = |query: &str, filter: &Filter, k| -> Vec<String> {
            let hits = search(&fixture.refreshed(), query, filter, k).unwrap();
            hits.into_iter().map(|hit| hit.entry.title).collect()
        };
        let all = Filter::default();
        let mut three = found("cache", &all, 8);
        assert_eq!(three.pop().as_deref(), Some("what was tried"));
        assert_eq!(three.len(), 2);
        assert_eq!(found("cache", &all, 2).len(), 2);
        // A neighbour that the filter excludes is not returned.
        let elsewhere = Filter {
            projects: vec!["q".to_owned()],
            ..Filter::default()
        };
        assert_eq!(found("cache", &elsewhere, 8), [""; 0]);
        assert_eq!(found("\"the cache\"", &all, 8), ["the cache grows"]);
        fixture.add("newer", |note| {
            note.supersedes = vec![tried.path.id.to_string()];
        });
        assert_eq!(found("cache", &all, 8).len(), 2);
    }

    #[test]
    fn operators_are_words() {
        // SQL-01
        let fixture = Fixture::new();
        fixture.add("alpha NEAR beta", |_| {});
        let index = fixture.refreshed();
        for query in [
            "alpha\" OR \"x",
            "title:alpha",
            "NEAR(alpha",
            "alpha*",
            "alpha AND NOT beta",
            "^alpha",
            "{a} : alpha",
            "\0alpha",
        ] {
            assert_eq!(
                search(&index, query, &Filter::default(), 8).unwrap().len(),
                1,
                "{query}"
            );
        }
        let paste = "alpha ".to_owned() + &"word\" ( * ".repeat(5000);
        assert_eq!(
            search(&index, &paste, &Filter::default(), 8).unwrap().len(),
            1
        );
    }

    #[test]
    fn developer_words_find_their_note() {
        // SQL-02
        let fixture = Fixture::new();
        for text in [
            "C++ templates",
            "load_user_profile",
            "std::fs::read",
            "kebab-case-name",
            ".env file",
            "v1.2.3",
            "http://h/p?q=1",
        ] {
            fixture.add(text, |_| {});
        }
        let index = fixture.refreshed();
        for (query, title) in [
            ("C++", "C++ templates"),
            ("load_user_profile", "load_user_profile"),
            ("user profile", "load_user_profile"),
            ("fs::read", "std::fs::read"),
            ("kebab-case", "kebab-case-name"),
            (".env", ".env file"),
            ("1.2.3", "v1.2.3"),
            ("http://h/p", "http://h/p?q=1"),
        ] {
            let hits = search(&index, query, &Filter::default(), 8).unwrap();
            assert_eq!(
                hits.first().map(|hit| hit.entry.title.as_str()),
                Some(title),
                "{query}"
            );
        }
    }

    #[test]
    fn a_title_weighs_more_than_a_body_and_k_is_capped() {
        let fixture = Fixture::new();
        fixture.add("other words here", |note| {
            note.body = "rate limits".to_owned()
        });
        fixture.add("rate limits", |note| {
            note.body = "other words here".to_owned()
        });
        let index = fixture.refreshed();
        let hits = search(&index, "rate limits", &Filter::default(), 8).unwrap();
        assert_eq!(hits[0].entry.title, "rate limits");
        assert!(hits[0].score > hits[1].score);
        assert_eq!(
            search(&index, "rate", &Filter::default(), 1).unwrap().len(),
            1
        );
        assert!(
            search(&index, "rate", &Filter::default(), 0)
                .unwrap()
                .is_empty()
        );
        assert_eq!(
            search(&index, "rate", &Filter::default(), usize::MAX)
                .unwrap()
                .len(),
            2
        );
    }

    #[test]
    fn meaning_finds_a_note_without_the_words_but_only_if_it_stands_out() {
        let fixture = Fixture::new();
        let titles = [
            "roll back a release",
            "the red boat",
            "invoices in March",
            "a red invoice",
        ];
        for title in titles {
            fixture.add(title, |_| {});
        }
        let mut index = fixture.refreshed();
        index.set_embedding_model(Some("tiny")).unwrap();
        let vectors = index
            .pending_embeddings(9)
            .unwrap()
            .into_iter()
            .map(|note| {
                let is_near = note.texts.title == titles[0];
                // Cosines with (1, 0): 0.98 and 0.79.
                (note, if is_near { vec![100, 20] } else { vec![79, 61] })
            });
        let vectors: Vec<_> = vectors.collect();
        index.add_embeddings(&vectors).unwrap();
        let found = |query: &str, vector: Option<&[f32]>, filter: &Filter| -> Vec<(String, bool)> {
            let hits = search_with_meaning(&index, query, vector, filter, 8).unwrap();
            let hits = hits.into_iter();
            hits.map(|hit| (hit.entry.title, hit.matched.is_empty()))
                .collect()
        };
        let all = Filter::default();
        let near = Some(&[1.0, 0.0][..]);
        // Nothing stands out for the other direction.
        let far = Some(&[0.0, 1.0][..]);
        assert!(found("undo the deploy", None, &all).is_empty());
        assert_eq!(
            found("undo the deploy", near, &all),
            [(titles[0].to_owned(), true)]
        );
        assert!(found("undo the deploy", far, &all).is_empty());
        let both = found("red", near, &all);
        assert_eq!(both.len(), 3);
        assert_eq!(both.iter().filter(|(_, by_meaning)| *by_meaning).count(), 1);
        // Filters and conditions hold, and another dimension counts for nothing.
        let elsewhere = Filter {
            projects: vec!["q".to_owned()],
            ..Filter::default()
        };
        assert!(found("undo the deploy", near, &elsewhere).is_empty());
        assert_eq!(found("\"red invoice\"", near, &all).len(), 1);
        assert!(found("undo the deploy", Some(&[1.0; 3][..]), &all).is_empty());
    }
}
