//! Project keys: the name of a project, equal on every machine.
//!
//! The key comes from the first of four sources: a marker file, the remote `origin`, the
//! repository's folder, the folder itself. This module turns their text into a key; the store finds
//! the text.

use std::borrow::Cow;

use anamnesis_text::clean::one_line;

/// The project key of notes for all projects.
pub const GLOBAL: &str = "global";

/// The prefix of the key of a folder that is named like a shared key. No other folder's key has it: a
/// folder's name has no slash.
const FOLDER: &str = "folder/";

/// The prefix of a group's key. No remote's key has it: the first colon of a remote becomes a slash.
const GROUP: &str = "group:";

/// The longest name of a group, in characters.
const MAX_GROUP_LENGTH: usize = 50;

/// The longest key, in characters. A marker file may contain any text.
const MAX_LENGTH: usize = 200;

/// Hosts that serve ssh through a firewall, with the names that they have otherwise.
const SSH_HOSTS: [(&str, &str); 3] = [
    ("ssh.github.com/", "github.com/"),
    ("altssh.gitlab.com/", "gitlab.com/"),
    ("altssh.bitbucket.org/", "bitbucket.org/"),
];

/// Reduces the URL of a git remote to a key that is the same for every way to clone it.
///
/// `git@host:Owner/Repo.git`, `https://user:token@host/owner/repo` and `ssh://git@host:22/owner/repo`
/// all become `host/owner/repo`. Credentials, queries and the ports of ssh are removed. A relative path
/// gives no key: it names another repository in each folder.
pub fn of_remote(address: &str) -> Option<String> {
    let mut rest = address.trim();
    let (mut is_ssh, mut is_web) = (false, false);
    // `//user:password@host/path`
    if let Some(after) = rest.strip_prefix("//")
        && after
            .split('/')
            .next()
            .is_some_and(|host| host.contains('@'))
    {
        rest = after;
    }
    if let Some((scheme, after)) = rest.split_once("://")
        && !scheme.is_empty()
        && scheme.chars().all(|c| c.is_alphanumeric() || c == '_')
    {
        is_ssh = scheme.eq_ignore_ascii_case("ssh");
        rest = after;
        is_web = scheme.eq_ignore_ascii_case("https") || scheme.eq_ignore_ascii_case("http");
    } else if is_relative(rest) {
        return None;
    }
    if rest.starts_with(['.', '~']) {
        return None;
    }
    let first_slash = rest.find('/').unwrap_or(rest.len());
    if let Some(at) = rest[..first_slash].find('@').filter(|at| *at > 0) {
        rest = &rest[at + 1..];
    }
    if is_web {
        // A query may hold a token.
        rest = rest.split(['?', '#']).next().unwrap_or_default();
    }
    let mut key = rest.to_owned();
    let first_slash = rest.find('/').unwrap_or(rest.len());
    if let Some(colon) = rest[..first_slash].find(':') {
        let port = &rest[colon + 1..first_slash];
        if is_ssh && port.bytes().all(|byte| byte.is_ascii_digit()) {
            key.replace_range(colon..first_slash, "");
        } else {
            key.replace_range(colon..=colon, "/");
        }
    }
    let key = key.trim_end_matches('/').replace("//", "/");
    let key = key.strip_suffix(".git").unwrap_or(&key);
    let key = key.trim_end_matches('/').to_lowercase();
    let ssh_host = SSH_HOSTS.iter().find(|(ssh, _)| key.starts_with(ssh));
    valid(&ssh_host.map_or_else(|| key.clone(), |(ssh, host)| key.replacen(ssh, host, 1)))
}

/// Returns whether git takes an address without a scheme for a path relative to the work tree.
fn is_relative(address: &str) -> bool {
    let has_host = address.split(['/', '\\']).next().unwrap_or_default();
    !address.starts_with(['/', '\\']) && !has_host.contains(':')
}

/// Returns the key in a marker file: its first non-empty line, with its letter case.
///
/// Shared keys are not valid, so a marker cannot make notes apply to all projects or join a group.
pub fn of_marker(text: &str) -> Option<String> {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    valid(line)
}

/// Returns the key of a folder's name.
pub fn of_folder_name(name: &str) -> Option<String> {
    let name = name.to_lowercase();
    // The notes of such a project must not apply to all projects.
    valid(&name).or_else(|| {
        let line = one_line(&name);
        is_shared(&line).then(|| format!("{FOLDER}{line}"))
    })
}

/// Returns the key of a group of projects with this name, in lower case; `None` if a character is
/// not a letter, a digit, `.`, `_` or `-`, or the name is empty or too long.
pub fn of_group(name: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || "._-".contains(c);
    let length = name.chars().take(MAX_GROUP_LENGTH + 1).count();
    let is_name = (1..=MAX_GROUP_LENGTH).contains(&length) && name.chars().all(is_plain);
    is_name.then(|| format!("{GROUP}{}", name.to_lowercase()))
}

/// Returns the name of the group that a key belongs to; `None` for any other key.
pub fn group_name(key: &str) -> Option<&str> {
    key.strip_prefix(GROUP)
}

/// Returns whether a key is not of one project: notes with it apply to all projects or to a group.
pub fn is_shared(key: &str) -> bool {
    key == GLOBAL || group_name(key).is_some()
}

/// Returns where notes with this key apply, for a person: `all projects`, `group web`, or the key.
pub fn shown(key: &str) -> Cow<'_, str> {
    match group_name(key) {
        _ if key == GLOBAL => Cow::Borrowed("all projects"),
        Some(name) => Cow::Owned(format!("group {}", one_line(name))),
        None => Cow::Owned(one_line(key)),
    }
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
/// secrets, and not shared.
fn valid(text: &str) -> Option<String> {
    let line = one_line(text);
    let redacted = anamnesis_text::redact::redact(&line);
    let key: String = redacted.text.chars().take(MAX_LENGTH).collect();
    let key = key.trim_end();
    (!key.is_empty() && !is_shared(key)).then(|| key.to_owned())
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
            ("//user:copper-meadow@host/o/r", "host/o/r"),
            ("//server/share/r", "/server/share/r"),
            ("https://host/o/r.git?access_token=copper#x", "host/o/r"),
            ("https://host/o/r", "host/o/r"),
            ("https://host/o/r/", "host/o/r"),
            ("https://h/o/r.git/", "h/o/r"),
            ("git@h:/o/r", "h/o/r"),
            ("https://h:8443/o/r", "h/8443/o/r"),
            ("h:2222/r", "h/2222/r"),
            ("ssh://git@ssh.github.com:443/o/r.git", "github.com/o/r"),
            ("git@ssh.github.com:o/r", "github.com/o/r"),
            ("ssh://git@h/o/r", "h/o/r"),
            ("ssh://git@h:2222/o/r.git", "h/o/r"),
            ("ssh://h:/o/r", "h/o/r"),
            ("h:o/r.git", "h/o/r"),
            ("git://h/o/r.git", "h/o/r"),
            ("file:///a/B.git", "/a/b"),
            ("/srv/git/Repo.git", "/srv/git/repo"),
            ("  https://h/o/r  ", "h/o/r"),
            ("https://h/o/r.GIT", "h/o/r.git"),
            ("git+ssh://git@h/o/r", "git+ssh//git@h/o/r"),
        ] {
            assert_eq!(of_remote(address).as_deref(), Some(key), "{address}");
        }
        assert_eq!(of_remote("   "), None);
        assert_eq!(of_remote("global"), None);
    }

    #[test]
    fn a_relative_path_is_no_key() {
        // INJ-15
        for address in [
            "../server.git",
            "./r.git",
            ".",
            "..",
            "r.git",
            "origin",
            "up/r.git",
            "~/r.git",
            "..\\r.git",
            "file://../r.git",
            "file://./r.git",
            "../a:b/r.git",
        ] {
            assert_eq!(of_remote(address), None, "{address}");
        }
    }

    #[test]
    fn a_marker_is_its_first_line_with_text() {
        assert_eq!(
            of_marker("\n  \n My/Project \nother"),
            Some("My/Project".to_owned())
        );
        assert_eq!(of_marker(" \n"), None);
        assert_eq!(of_marker("global\n"), None);
        assert_eq!(of_marker("group:web\n"), None);
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

    #[test]
    fn only_a_group_has_the_key_of_a_group() {
        assert_eq!(of_group("Web-2.0_x"), Some("group:web-2.0_x".to_owned()));
        for name in [
            "",
            "a b",
            "a/b",
            "group:a",
            "a\n",
            "\u{202e}a",
            &"x".repeat(51),
        ] {
            assert_eq!(of_group(name), None, "{name:?}");
        }
        for remote in [
            "group:web",
            "git@group:web.git",
            "ssh://group:web/x",
            "group::web",
        ] {
            let key = of_remote(remote).unwrap();
            assert_eq!(group_name(&key), None, "{remote}");
        }
        let folder = of_folder_name("Group:web");
        assert_eq!(folder.as_deref(), Some("folder/group:web"));
    }

    #[test]
    fn a_shared_key_is_shown_in_words() {
        let keys = ["global", "group:web", "shop"];
        assert_eq!(keys.map(is_shared), [true, true, false]);
        assert_eq!(keys.map(shown), ["all projects", "group web", "shop"]);
    }
}
