//! Parses the message of a commit, without what programs write into it.

use anamnesis_text::{private_tokens::PrivateTokens, sanitize};

/// The longest subject and body that are kept, in characters.
const MAX_SUBJECT: usize = 200;
const MAX_BODY: usize = 1_000;

/// The beginnings of subjects of merges that say nothing else.
const MERGES: [&str; 4] = [
    "Merge branch ",
    "Merge pull request ",
    "Merge remote-tracking branch ",
    "Merge tag ",
];

/// The verbs of changes of dependencies, and words for these.
const BUMP_VERBS: [&str; 5] = ["bump", "bumps", "update", "upgrade", "pin"];
const DEPENDENCIES: [&str; 5] = ["deps", "deps-dev", "dependency", "dependencies", "lockfile"];

/// The authors that only change dependencies.
const BOTS: [&str; 3] = ["dependabot", "renovate", "greenkeeper"];

/// The line of a revert before the id of the commit that it reverts.
const REVERTS: &str = "This reverts commit ";

/// A commit's message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) subject: String,
    pub(super) body: String,
    /// The id of the commit that it reverts, as written.
    pub(super) reverts: Option<String>,
}

/// Parses a message; `None` if it says nothing about the project.
pub(super) fn parse(message: &str, author: &str, is_merge: bool) -> Option<Message> {
    let author = author.to_lowercase();
    if BOTS.iter().any(|bot| author.contains(bot)) {
        return None;
    }
    let (first, rest) = message.trim().split_once('\n').unwrap_or((message, ""));
    let (mut first, mut rest) = (first.trim(), rest.trim());
    // The title of a pull request follows the line about the merge.
    if is_merge && MERGES.iter().any(|merge| first.starts_with(merge)) {
        (first, rest) = rest.split_once('\n').unwrap_or((rest, ""));
    }
    if first.is_empty() || is_dependency_bump(&first.to_lowercase()) {
        return None;
    }
    let reverts = message.lines().find_map(|line| {
        let id = line.trim().strip_prefix(REVERTS)?;
        let end = id.find(|c: char| !c.is_ascii_hexdigit());
        Some(id[..end.unwrap_or(id.len())].to_owned()).filter(|id| id.len() >= 7)
    });
    let safe = |text: &str, limit| sanitize::text(text, &PrivateTokens::default(), limit).value;
    Some(Message {
        subject: safe(first, MAX_SUBJECT),
        body: safe(without_trailers(rest), MAX_BODY),
        reverts,
    })
}

/// Returns whether a subject in lower case is about versions of dependencies only.
fn is_dependency_bump(subject: &str) -> bool {
    let subject = subject.trim_start_matches(|c: char| !c.is_alphanumeric());
    let typed = subject.split_once(": ").filter(|(area, _)| {
        let is_name = |c: char| c.is_alphanumeric() || "()!-_/,*".contains(c);
        area.chars().all(is_name)
    });
    let (area, text) = typed.unwrap_or(("", subject));
    let names = |word: &str| DEPENDENCIES.contains(&word);
    let is_number = |word: &str| word.contains(|c: char| c.is_ascii_digit());
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_verb = words.first().is_some_and(|verb| BUMP_VERBS.contains(verb));
    let begins = |start: &&str| text.starts_with(start);
    let fixed = ["lock file maintenance", "update rust crate "];
    if area.split(['(', ')', ',']).any(names) || fixed.iter().any(begins) {
        return true;
    }
    let is_bump = match words.get(1..).unwrap_or_default() {
        [_] => words.first().is_some_and(|verb| verb.starts_with("bump")),
        [_, "from", from, "to", to, ..] => is_number(from) && is_number(to),
        [_, "to", to, ..] => is_number(to),
        _ => false,
    };
    is_verb && (is_bump || words.iter().skip(1).take(2).any(|word| names(word)))
}

/// Returns a body without its last paragraphs if they have only trailers and marks of programs.
fn without_trailers(body: &str) -> &str {
    let mut body = body.trim_end();
    loop {
        let start = body.rfind("\n\n").map_or(0, |at| at + 2);
        if body.is_empty() || !body[start..].lines().all(is_trailer) {
            return body;
        }
        body = body[..start].trim_end();
    }
}

fn is_trailer(line: &str) -> bool {
    let is_token = |token: &str| {
        token.contains('-') && token.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
    };
    line.split_once(": ")
        .is_some_and(|(token, _)| is_token(token))
        || line.starts_with("(cherry picked from commit ")
        || line.contains("Generated with [Claude Code]")
        || line.starts_with(REVERTS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_merges_and_dependency_bumps_are_left_out() {
        let parsed = |message: &str, author: &str, is_merge: bool| {
            parse(message, author, is_merge).map(|it| (it.subject, it.body, it.reverts))
        };
        let kept = |subject: &str, body: &str| Some((subject.to_owned(), body.to_owned(), None));
        let trailers = "Signed-off-by: Ada <ada@example.org>\nCo-authored-by: Bo <bo@example.org>";
        let message = format!(
            "Raise the login timeout\n\nThe proxy needs 20 s.\nNote: not locally.\n\n{trailers}\n"
        );
        assert_eq!(
            parsed(&message, "Ada", false),
            kept(
                "Raise the login timeout",
                "The proxy needs 20 s.\nNote: not locally."
            )
        );
        assert_eq!(
            parsed(&format!("Fix it\n\n{trailers}"), "Ada", false),
            kept("Fix it", "")
        );
        let pull_request = "Merge pull request #7 from ada/retry\n\nRetry failed uploads";
        assert_eq!(
            parsed(pull_request, "Ada", true),
            kept("Retry failed uploads", "")
        );
        for (message, author, is_merge) in [
            ("Merge branch 'main' into retry", "Ada", true),
            ("Bump serde from 1.0.1 to 1.0.2", "Ada", false),
            ("chore(deps): update serde", "Ada", false),
            ("chore: bump eslint from 8 to 9", "Ada", false),
            ("\u{2b06}\u{fe0f} Bump requests", "Ada", false),
            ("build: bump tokio", "Ada", false),
            ("deps(web): update react", "Ada", false),
            ("chore: update deps", "Ada", false),
            ("Update all dependencies", "Ada", false),
            ("Update Rust crate serde to v1.0.2", "Ada", false),
            ("Update the lock file", "renovate[bot]", false),
            ("", "Ada", false),
        ] {
            assert_eq!(parsed(message, author, is_merge), None, "{message}");
        }
        for subject in [
            "Merge branch handling into one module",
            "Bump the cache size to 64 MiB",
            "Update the lock of the spool before it is read",
            "cart: bump the limit from 8 to 9",
            "Update prices to cents",
        ] {
            assert_eq!(parsed(subject, "Ada", false), kept(subject, ""));
        }
    }

    #[test]
    fn a_revert_names_what_it_reverts_and_why() {
        let message = "Revert \"Cache the totals\"\n\nThis reverts commit 0123456789abcdef0123456789abcdef01234567.\n\nThey were wrong.";
        let parsed = parse(message, "Ada", false).unwrap();
        assert_eq!(
            parsed.reverts.as_deref(),
            Some("0123456789abcdef0123456789abcdef01234567")
        );
        assert!(parsed.body.contains("They were wrong."), "{parsed:?}");
    }

    #[test]
    fn credentials_and_private_regions_are_removed() {
        let message = "Add <private>the secret plan</private> it\n\npassword=hunter2hunter2";
        let text = format!("{:?}", parse(message, "Ada", false).unwrap());
        assert!(
            !text.contains("secret plan") && !text.contains("hunter2"),
            "{text}"
        );
    }
}
