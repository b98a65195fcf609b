//! Project keys: the name under which the notes of a project are kept on every machine.
//!
//! Four steps give it, first one wins: a marker file, the remote `origin`, the repository's folder,
//! the folder itself. Here is what each makes of a text; finding the texts is the store's business.

use crate::note::GLOBAL;

/// The longest key, in characters. A marker file is anybody's text.
const MAX_LENGTH: usize = 200;

/// Reduces the address of a git remote to a key that clones share however they were made.
///
/// `git@host:Owner/Repo.git`, `https://user:token@host/owner/repo` and `ssh://git@host/owner/repo`
/// are all `host/owner/repo`. Credentials never stay.
pub fn of_remote(address: &str) -> Option<String> {
    let mut rest = address.trim();
    if let Some((scheme, after)) = rest.split_once("://")
        && !scheme.is_empty()
        && scheme.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        rest = after;
    }
    let first_slash = rest.find('/').unwrap_or(rest.len());
    if let Some(at) = rest[..first_slash].find('@').filter(|at| *at > 0) {
        rest = &rest[at + 1..];
    }
    let mut key = rest.to_owned();
    let first_slash = rest.find('/').unwrap_or(rest.len());
    if let Some(colon) = rest[..first_slash].find(':') {
        key.replace_range(colon..=colon, "/");
    }
    let key = key.strip_suffix(".git").unwrap_or(&key);
    valid(&key.trim_end_matches('/').to_lowercase())
}

/// Returns the key that a marker file gives: its first line with text, letter case kept.
///
/// A marker cannot put a project's notes into all projects: `global` is no key.
pub fn of_marker(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    valid(line).filter(|key| key != GLOBAL)
}

/// Returns the key that a folder's name gives.
pub fn of_folder_name(name: &str) -> Option<String> {
    valid(&name.to_lowercase())
}

/// Tells whether a text can be a project's key: one line of printable text, not too long.
///
/// What a project's folder, remote or marker gives always is.
pub fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text.chars().take(MAX_LENGTH + 1).count() <= MAX_LENGTH
        && anamnesis_text::clean::one_line(text) == text
}

/// A key is one line of printable text, not too long, without a secret.
fn valid(text: &str) -> Option<String> {
    let line = anamnesis_text::clean::one_line(text);
    let redacted = anamnesis_text::redact::redact(&line);
    let key: String = redacted.text.chars().take(MAX_LENGTH).collect();
    let key = key.trim_end();
    (!key.is_empty()).then(|| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remotes_are_reduced_to_host_and_path() {
        for (address, key) in [
            ("git@github.com:Owner/Repo.git", "github.com/owner/repo"),
            (
                "https://user:token@host.example/o/r.git",
                "host.example/o/r",
            ),
            ("https://host/o/r", "host/o/r"),
            ("https://host/o/r/", "host/o/r"),
            ("https://h/o/r.git/", "h/o/r.git"),
            ("ssh://git@h/o/r", "h/o/r"),
            ("ssh://git@h:2222/o/r.git", "h/2222/o/r"),
            ("h:o/r.git", "h/o/r"),
            ("git://h/o/r.git", "h/o/r"),
            ("file:///a/B.git", "/a/b"),
            ("../x.git", "../x"),
            ("/srv/git/Repo.git", "/srv/git/repo"),
            ("  https://h/o/r  ", "h/o/r"),
            ("https://h/o/r.GIT", "h/o/r.git"),
            ("git+ssh://git@h/o/r", "git+ssh///git@h/o/r"),
        ] {
            assert_eq!(of_remote(address).as_deref(), Some(key), "{address}");
        }
        assert_eq!(of_remote("   "), None);
    }

    #[test]
    fn a_marker_is_its_first_line_with_text() {
        assert_eq!(
            of_marker("\n  \n My/Project \nother"),
            Some("My/Project".to_owned())
        );
        assert_eq!(of_marker(" \n"), None);
        assert_eq!(of_marker("global\n"), None);
        assert_eq!(of_marker("a\u{202e}b\x1b[31m\n"), Some("ab".to_owned()));
        assert_eq!(of_marker(&"x".repeat(500)).unwrap().len(), 200);
        let cut_at_a_blank = format!("{} y", "x".repeat(199));
        assert!(is_key(&of_marker(&cut_at_a_blank).unwrap()));
    }

    #[test]
    fn a_folder_is_its_name_in_lower_case() {
        assert_eq!(of_folder_name("My Shop"), Some("my shop".to_owned()));
        assert_eq!(of_folder_name(""), None);
    }
}
