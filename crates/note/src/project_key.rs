//! Project keys: the name of a project, equal on every machine.
//!
//! The key comes from the first of four sources: a marker file, the remote `origin`, the
//! repository's folder, the folder itself. This module turns their text into a key; the store finds
//! the text.

use anamnesis_text::clean::one_line;

use crate::note::GLOBAL;

/// The key of a folder named `global`. No other folder has it: a folder's name has no slash.
const GLOBAL_FOLDER: &str = "folder/global";

/// The longest key, in characters. A marker file may contain any text.
const MAX_LENGTH: usize = 200;

/// Reduces the URL of a git remote to a key that is the same for every way to clone it.
///
/// `git@host:Owner/Repo.git`, `https://user:token@host/owner/repo` and `ssh://git@host/owner/repo`
/// all become `host/owner/repo`. Credentials are removed.
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

/// Returns the key in a marker file: its first non-empty line, with its letter case.
///
/// `global` is not a valid key, so a marker cannot make notes global.
pub fn of_marker(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    valid(line)
}

/// Returns the key of a folder's name.
pub fn of_folder_name(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    // The notes of such a project must not apply to all projects.
    valid(&name).or_else(|| (one_line(&name) == GLOBAL).then(|| GLOBAL_FOLDER.to_owned()))
}

/// Returns whether a text is a valid key: one line of printable text within the length limit.
///
/// The keys of markers, remotes and folders are always valid.
pub fn is_key(text: &str) -> bool {
    !text.is_empty()
        && text.chars().take(MAX_LENGTH + 1).count() <= MAX_LENGTH
        && one_line(text) == text
}

/// Returns a text as a key of a project: one line of printable text within the length limit, without
/// secrets, and not `global`.
fn valid(text: &str) -> Option<String> {
    let line = one_line(text);
    let redacted = anamnesis_text::redact::redact(&line);
    let key: String = redacted.text.chars().take(MAX_LENGTH).collect();
    let key = key.trim_end();
    (!key.is_empty() && key != GLOBAL).then(|| key.to_owned())
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
        assert_eq!(of_remote("global"), None);
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

    #[test]
    fn a_folder_named_global_is_not_all_projects() {
        for name in ["global", "Global", "glo\u{200b}bal", "global\n", " global"] {
            let key = of_folder_name(name);
            assert_eq!(key.as_deref(), Some("folder/global"), "{name:?}");
        }
    }
}
