//! Reads from the output of a test program which tests failed.

use anamnesis_text::truncate::{first_characters, line};

/// The maximum length of a test's name, in characters.
const MAX_NAME: usize = 80;

/// The forms of lines about a failed test, the most telling first: the beginning, what the name has, the end.
/// The programs are pytest, cargo, go, unittest, jest, vitest, bun, gradle and node.
const FORMS: [(&str, &str, &str); 10] = [
    ("FAILED ", "::", " - "),
    ("test ", "", " ... FAILED"),
    ("--- FAIL: ", "", " ("),
    ("FAIL: ", "", " ("),
    ("● ", " › ", ""),
    ("FAIL ", " > ", ""),
    ("(fail) ", " > ", " ["),
    ("", " > ", " FAILED"),
    ("✕ ", "", " ("),
    ("✖ ", "", " ("),
];

/// Returns an error with the first of several failed tests that the output names, and how many more failed.
/// `count` is the highest number of failed tests in the output.
pub(super) fn with_failed_tests(error: String, output: &str, count: Option<u64>) -> String {
    let mut found: Vec<(usize, &str)> = output.lines().filter_map(test_of).collect();
    let best = found.iter().map(|(form, _)| *form).min();
    // Go names the parent of a failed subtest, too.
    let parents: Vec<&str> = found
        .iter()
        .filter_map(|(_, name)| Some(name.rsplit_once('/')?.0))
        .collect();
    found.retain(|(form, name)| Some(*form) == best && !parents.contains(name));
    found.dedup();
    let count = count.and_then(|count| usize::try_from(count).ok());
    let count = found.len().max(count.unwrap_or_default());
    let Some((_, first)) = found.first().filter(|_| count > 1) else {
        return error;
    };
    let named = format!("{} and {} more", line(first, MAX_NAME), count - 1);
    let reason = match error.split_once(first) {
        Some((_, rest)) => rest.strip_prefix(" - ").unwrap_or_default(),
        None => &error,
    };
    match reason {
        "" => named,
        reason => format!("{named}: {reason}"),
    }
}

/// Returns whether an error names one of several failed tests, so that nothing is over if that test passes.
pub(super) fn names_several(error: &str) -> bool {
    let counts = |rest: &str| {
        let (count, end) = rest.split_once(" more").unwrap_or_default();
        count.parse::<usize>().is_ok() && (end.is_empty() || end.starts_with(':'))
    };
    error.split(" and ").skip(1).any(counts)
}

/// Returns the name of the failed test that a line of an output is about, with the form of the line.
fn test_of(printed: &str) -> Option<(usize, &str)> {
    const MAX_LINE: usize = 400;
    let printed = first_characters(printed.trim(), MAX_LINE);
    let mut forms = FORMS.iter().enumerate();
    forms.find_map(|(form, (start, part, end))| {
        let rest = printed.strip_prefix(start)?.trim_start();
        let name = match rest.split_once(end).filter(|_| !end.is_empty()) {
            Some((name, _)) => name,
            None if end.contains("FAILED") => return None,
            None => rest,
        };
        (!name.is_empty() && name.contains(part)).then_some((form, name))
    })
}
