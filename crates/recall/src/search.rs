//! Finds notes by words.
//!
//! The OR of the words, each quoted, ranked by BM25 with the title weighing three times the body,
//! without the words that say nothing. A later engine takes this function's place.

use anamnesis_store::index::{Entry, Error, Filter, Index, Weights};

/// Measured to be the best of 1 to 5 for titles; tags weigh as the body.
const WEIGHTS: Weights = Weights {
    title: 3.0,
    tags: 1.0,
    body: 1.0,
};

/// The most words of a query that count. Quality is flat from about sixteen on.
const MAX_WORDS: usize = 64;

/// The most notes a search gives.
pub const MAX_HITS: usize = 200;

/// English function words. Those that are code words, too (`if`, `for`, `not`, `all`, `after`, …),
/// are left out: in notes about programs they say something.
const STOP_WORDS: [&str; 95] = [
    "a",
    "about",
    "again",
    "against",
    "am",
    "an",
    "and",
    "are",
    "as",
    "at",
    "be",
    "because",
    "been",
    "being",
    "between",
    "both",
    "but",
    "by",
    "could",
    "did",
    "do",
    "does",
    "doing",
    "during",
    "few",
    "from",
    "further",
    "had",
    "has",
    "have",
    "having",
    "he",
    "her",
    "here",
    "hers",
    "herself",
    "him",
    "himself",
    "his",
    "how",
    "i",
    "is",
    "it",
    "its",
    "itself",
    "just",
    "let",
    "me",
    "more",
    "most",
    "my",
    "myself",
    "nor",
    "of",
    "or",
    "our",
    "ours",
    "ourselves",
    "s",
    "she",
    "should",
    "so",
    "some",
    "such",
    "t",
    "than",
    "that",
    "the",
    "their",
    "theirs",
    "them",
    "themselves",
    "then",
    "there",
    "these",
    "they",
    "this",
    "those",
    "through",
    "to",
    "too",
    "very",
    "was",
    "we",
    "were",
    "what",
    "when",
    "where",
    "which",
    "who",
    "whom",
    "why",
    "will",
    "would",
    "you",
];

/// A note that was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Hit {
    /// The note.
    pub entry: Entry,
    /// How well it fits; higher is better, comparable within one search only.
    pub score: f64,
}

/// Finds the `k` best notes for a query, at most [`MAX_HITS`]. No words, no notes.
///
/// # Errors
/// When the index cannot be read.
pub fn search(index: &Index, query: &str, filter: &Filter, k: usize) -> Result<Vec<Hit>, Error> {
    let Some(expression) = expression(query) else {
        return Ok(Vec::new());
    };
    let found = index.find(&expression, filter, WEIGHTS, k.min(MAX_HITS))?;
    Ok(found
        .into_iter()
        .map(|(entry, score)| Hit { entry, score })
        .collect())
}

/// Returns the FTS5 expression of a query, `None` when it has no words.
///
/// Words are runs of letters, digits and underscores, each a quoted phrase: no sign of the query
/// has a meaning to FTS5.
fn expression(query: &str) -> Option<String> {
    let mut words: Vec<String> = Vec::new();
    for word in query.split(|c: char| !c.is_alphanumeric() && c != '_') {
        let word = word.to_lowercase();
        if !word.is_empty() && !words.contains(&word) {
            words.push(word);
        }
        // Twice as many are looked at, since stop words go.
        if words.len() >= 2 * MAX_WORDS {
            break;
        }
    }
    let telling: Vec<&String> = words
        .iter()
        .filter(|word| STOP_WORDS.binary_search(&word.as_str()).is_err())
        .collect();
    let kept = if telling.is_empty() {
        words.iter().collect()
    } else {
        telling
    };
    let quoted: Vec<String> = kept
        .into_iter()
        .take(MAX_WORDS)
        .map(|word| format!("\"{word}\""))
        .collect();
    (!quoted.is_empty()).then(|| quoted.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::working_set::tests::Fixture;

    #[test]
    fn the_stop_list_is_sorted() {
        assert!(STOP_WORDS.is_sorted());
    }

    #[test]
    fn a_query_is_the_or_of_its_telling_words() {
        for (query, expected) in [
            ("How do I run the tests?", Some("\"run\" OR \"tests\"")),
            ("what is it", Some("\"what\" OR \"is\" OR \"it\"")),
            (
                "if not for all",
                Some("\"if\" OR \"not\" OR \"for\" OR \"all\""),
            ),
            ("Tests TESTS tests", Some("\"tests\"")),
            ("load_user_profile()", Some("\"load_user_profile\"")),
            ("Größe 数据库", Some("\"größe\" OR \"数据库\"")),
            ("*:-()^\"'", None),
            ("", None),
        ] {
            assert_eq!(expression(query).as_deref(), expected, "{query}");
        }
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
}
