//! Interprets git's output. All of it may come from a hostile server.
//!
//! git runs in the locale C. Lines that start with `remote:` come from the server; they are shown,
//! but nothing is concluded from them. Over ssh a server can imitate any line: at worst it gets a
//! different message for its failure.

use anamnesis_text::clean::{clean, one_line};
use git2::Oid;

use super::{
    OtherReference,
    error::{Error, Task},
};
use crate::remote::{Remote, hide_credentials};

/// The length of a server's message that is kept.
const MAX_LINES: usize = 12;
const MAX_LINE: usize = 300;
/// How many branches are named.
const MAX_BRANCHES: usize = 20;

const HEAD_REFERENCE: &str = "refs/heads/";

/// The server's answer to a push.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum PushRefusal {
    /// Another machine pushed first or is pushing now.
    TooLate(String),
    /// The server refuses it permanently.
    Refused(String),
}

/// Returns the version in the output of `git version`.
pub(super) fn version(answer: &str) -> Option<(u32, u32)> {
    let mut numbers = answer.strip_prefix("git version ")?.split(['.', ' ', '\n']);
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// A setting of git and its scope.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Setting {
    /// `system`, `global`, `local`, `worktree` or `command`.
    pub(super) scope: String,
    /// Section and name in lower case, as git gives them.
    pub(super) key: String,
    /// Empty for a name without a value.
    pub(super) value: String,
}

/// Parses the output of `git config --list --show-scope --null`; `None` if it is malformed.
pub(super) fn settings(answer: &[u8]) -> Option<Vec<Setting>> {
    let answer = String::from_utf8_lossy(answer);
    let mut parts = answer.split_terminator('\0');
    let mut settings = Vec::new();
    while let Some(scope) = parts.next() {
        let entry = parts.next()?;
        let (key, value) = entry.split_once('\n').unwrap_or((entry, ""));
        settings.push(Setting {
            scope: scope.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
        });
    }
    Some(settings)
}

/// Returns the branches except `main` in the output of `git ls-remote`.
pub(super) fn other_branches(answer: &[u8]) -> Vec<String> {
    let answer = String::from_utf8_lossy(answer);
    let branches = answer
        .lines()
        .filter_map(|line| line.split_once('\t')?.1.strip_prefix(HEAD_REFERENCE))
        .filter(|branch| *branch != "main")
        .map(|branch| clip(&one_line(branch)));
    branches.take(MAX_BRANCHES).collect()
}

/// Returns the branches and tags except `main` in the output of `git ls-remote`. A line with `^{}`
/// names the commit of the tag before it.
pub(super) fn other_references(answer: &[u8]) -> Vec<OtherReference> {
    let answer = String::from_utf8_lossy(answer);
    let mut references: Vec<OtherReference> = Vec::new();
    for line in answer.lines() {
        let Some((object, name)) = line.split_once('\t') else {
            continue;
        };
        let Ok(object) = Oid::from_str(object) else {
            continue;
        };
        match (name.strip_suffix("^{}"), references.last_mut()) {
            (Some(tag), Some(last)) if last.name == tag => last.commit = object,
            _ if name == "refs/heads/main" => {}
            _ if !name.starts_with("refs/") => {}
            _ => references.push(OtherReference {
                name: name.to_owned(),
                object,
                commit: object,
            }),
        }
    }
    references
}

/// Returns whether git refused a commit because its parents are missing in the remote.
pub(super) fn is_shallow(stderr: &str) -> bool {
    let mut lines = stderr.lines();
    lines.any(|line| line.starts_with("warning: rejected ") && line.contains("shallow roots"))
}

/// Parses the result of `git push --porcelain` for its only reference; `None` if it was accepted.
pub(super) fn verdict(stdout: &str, stderr: &str) -> Option<PushRefusal> {
    let summary = stdout.lines().find_map(|line| {
        let (_, summary) = line.strip_prefix("!\t")?.split_once('\t')?;
        Some(summary)
    })?;
    let (kind, reason) = summary.split_once(" (").unwrap_or((summary, ""));
    let reason = one_line(reason.strip_suffix(')').unwrap_or(reason));
    let is_race = match kind {
        "[rejected]" => true,
        "[remote rejected]" => [
            "cannot lock ref",
            "failed to update ref",
            "failed to lock",
            "incorrect old value provided",
            "reference already exists",
            "fetch first",
        ]
        .iter()
        .any(|race| reason.contains(race)),
        _ => return None,
    };
    if is_race {
        return Some(PushRefusal::TooLate(hide_credentials(&reason)));
    }
    let said = server_words(stderr);
    let reason = hide_credentials(&reason);
    Some(PushRefusal::Refused(if said.is_empty() {
        reason
    } else {
        format!("{said}\n({reason})")
    }))
}

/// Returns whether the repository is missing, rather than unreachable.
pub(super) fn lacks_main(stderr: &str) -> bool {
    own_lines(stderr).any(|line| line.contains("couldn't find remote ref refs/heads/main"))
}

/// Returns whether the system stopped git because a file grew over the limit.
pub(super) fn grew_too_large(stderr: &str) -> bool {
    // SIGXFSZ has this number on Linux, macOS and the BSDs.
    own_lines(stderr).any(|line| {
        line.ends_with("died of signal 25") || line.to_lowercase().contains("file too large")
    })
}

/// Returns whether ssh refused the host because of its key.
pub(super) fn is_host_refused(stderr: &str) -> bool {
    own_lines(stderr).any(|line| line.starts_with("Host key verification failed"))
}

/// Returns whether the host's key has changed.
pub(super) fn is_host_changed(stderr: &str) -> bool {
    own_lines(stderr).any(|line| line.contains("REMOTE HOST IDENTIFICATION HAS CHANGED"))
}

/// Finds the fingerprint of the host's key in ssh's output with `-v`, or after a key change.
pub(super) fn fingerprint(stderr: &str) -> Option<String> {
    let is_word = |word: &str| {
        word.len() < 100
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"+/=:-@.".contains(&byte))
    };
    own_lines(stderr).find_map(|line| {
        if let Some((_, key)) = line.split_once("Server host key: ") {
            let (kind, print) = key.split_once(' ')?;
            return (is_word(kind) && is_word(print)).then(|| format!("{kind} {print}"));
        }
        let print = line
            .strip_suffix('.')
            .filter(|print| print.starts_with("SHA256:"))?;
        is_word(print).then(|| print.to_owned())
    })
}

/// Converts git's message for a failed fetch or push into an error, except for host keys.
pub(super) fn explain(task: Task, remote: &Remote, stderr: &str) -> Error {
    const OFFLINE: &[&str] = &[
        "Could not resolve",
        "Couldn't resolve",
        "Temporary failure in name resolution",
        "Name or service not known",
        "Connection refused",
        "Connection timed out",
        "Operation timed out",
        "Connection reset by",
        "No route to host",
        "Network is unreachable",
        "Network is down",
        "Host is down",
        "Failed to connect to",
        "Couldn't connect to server",
        "Could not connect to server",
        "Connection closed by",
        "returned error: 502",
        "returned error: 503",
        "returned error: 504",
    ];
    const CREDENTIALS: &[&str] = &[
        "Authentication failed",
        "terminal prompts disabled",
        "unable to get password from user",
        "could not read Username",
        "could not read Password",
        "Permission denied (",
        "Too many authentication failures",
        "returned error: 401",
        "returned error: 403",
    ];
    const NO_REPOSITORY: &[&str] = &[
        "does not appear to be a git repository",
        "Repository not found",
        "' not found",
        "returned error: 404",
    ];
    let says =
        |any: &[&str]| own_lines(stderr).any(|line| any.iter().any(|one| line.contains(one)));
    let (is_offline, is_shut, is_none) = (says(OFFLINE), says(CREDENTIALS), says(NO_REPOSITORY));
    let remote = remote.shown().to_owned();
    let words = words(stderr);
    if is_offline {
        Error::Offline { remote, words }
    } else if is_shut {
        Error::Credentials { remote, words }
    } else if is_none {
        Error::NoRepository { remote, words }
    } else {
        Error::Failed { task, words }
    }
}

/// Returns the useful part of git's messages: the server's and git's own, without advice.
pub(super) fn words(stderr: &str) -> String {
    let kept = clean(stderr)
        .lines()
        .map(|line| line.strip_prefix("remote: ").unwrap_or(line).trim())
        .filter(|line| {
            !line.is_empty()
                && !line.starts_with("hint:")
                && !line.starts_with("Please make sure you have the correct access rights")
                && *line != "and the repository exists."
                && *line != "remote:"
        })
        .map(|line| clip(&hide_credentials(line)))
        .take(MAX_LINES)
        .collect::<Vec<_>>()
        .join("\n");
    if kept.is_empty() {
        "git said nothing".to_owned()
    } else {
        kept
    }
}

/// Returns the server's own message.
fn server_words(stderr: &str) -> String {
    let cleaned = clean(stderr);
    let said: String = cleaned
        .lines()
        .filter(|line| line.starts_with("remote:"))
        .map(|line| format!("{line}\n"))
        .collect();
    if said.trim().is_empty() {
        String::new()
    } else {
        words(&said)
    }
}

fn own_lines(stderr: &str) -> impl Iterator<Item = &str> {
    stderr
        .lines()
        .map(str::trim_end)
        .filter(|line| !line.starts_with("remote:"))
}

fn clip(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn versions_of_every_system() {
        for (answer, expected) in [
            ("git version 2.47.3\n", Some((2, 47))),
            ("git version 2.39.5 (Apple Git-154)\n", Some((2, 39))),
            ("git version 2.30.windows.1\n", Some((2, 30))),
            ("git version 3.0\n", Some((3, 0))),
            ("git version 2.51.0-rc1\n", Some((2, 51))),
            ("hub version 2\n", None),
            ("", None),
        ] {
            assert_eq!(version(answer), expected, "{answer:?}");
        }
    }

    #[test]
    fn settings_come_with_their_scope() {
        let answer = b"global\0user.name\nMe\nToo\0local\0core.bare\0local\0remote.A b.url\n\0";
        let setting = |scope: &str, key: &str, value: &str| Setting {
            scope: scope.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
        };
        assert_eq!(
            settings(answer).unwrap(),
            [
                setting("global", "user.name", "Me\nToo"),
                setting("local", "core.bare", ""),
                setting("local", "remote.A b.url", ""),
            ]
        );
        assert_eq!(settings(b"").unwrap(), []);
        assert_eq!(settings(b"local\0"), None);
    }

    #[test]
    fn branches_of_a_remote_without_main() {
        let answer = b"1234\trefs/heads/master\n1234\trefs/heads/main\n1234\trefs/heads/a\x1b[1mb\n1234\trefs/tags/x\nnoise\n";
        assert_eq!(other_branches(answer), ["master", "ab"]);
    }

    #[test]
    fn a_race_is_told_from_a_refusal() {
        let late = |reason: &str| Some(PushRefusal::TooLate(reason.to_owned()));
        let refused = |words: &str| Some(PushRefusal::Refused(words.to_owned()));
        for (summary, expected) in [
            ("[rejected] (fetch first)", late("fetch first")),
            ("[rejected] (non-fast-forward)", late("non-fast-forward")),
            ("[rejected] (stale info)", late("stale info")),
            (
                "[remote rejected] (failed to update ref)",
                late("failed to update ref"),
            ),
            (
                "[remote rejected] (cannot lock ref 'refs/heads/main': is at 1 but expected 2)",
                late("cannot lock ref 'refs/heads/main': is at 1 but expected 2"),
            ),
            (
                "[remote rejected] (incorrect old value provided)",
                late("incorrect old value provided"),
            ),
            // The server forbids rewriting, so trying again is useless.
            (
                "[remote rejected] (non-fast-forward)",
                refused("non-fast-forward"),
            ),
            (
                "[remote rejected] (pre-receive hook declined)",
                refused("pre-receive hook declined"),
            ),
            ("[remote failure] (remote failed to report status)", None),
        ] {
            let stdout = format!("To x\n!\trefs/heads/main:refs/heads/main\t{summary}\nDone\n");
            assert_eq!(verdict(&stdout, ""), expected, "{summary}");
        }
        assert_eq!(verdict("To x\n \ta:b\t1..2\nDone\n", ""), None);
        assert_eq!(
            verdict(
                "!\ta:b\t[remote rejected] (protected branch hook declined)\n",
                "remote: error: GH006: \u{1b}[31mProtected branch\nremote: \nerror: failed to push some refs to 'x'\nhint: y\n",
            ),
            refused("error: GH006: Protected branch\n(protected branch hook declined)")
        );
    }

    #[test]
    fn failures_are_told_apart() {
        for (stderr, expected) in [
            (
                "ssh: Could not resolve hostname nas: Name or service not known\r\nfatal: Could not read from remote repository.\n",
                "offline",
            ),
            (
                "fatal: unable to access 'https://x/': Could not resolve host: x\n",
                "offline",
            ),
            (
                "ssh: connect to host x port 22: Connection refused\r\n",
                "offline",
            ),
            (
                "ssh: connect to host x port 22: Network is unreachable\r\n",
                "offline",
            ),
            (
                "fatal: unable to access 'http://x/': Failed to connect to x port 2 after 0 ms: Couldn't connect to server",
                "offline",
            ),
            ("git@x: Permission denied (publickey).\r\n", "credentials"),
            (
                "fatal: Authentication failed for 'https://x/'",
                "credentials",
            ),
            ("fatal: unable to get password from user", "credentials"),
            (
                "fatal: could not read Username for 'https://x': terminal prompts disabled",
                "credentials",
            ),
            ("fatal: '/x' does not appear to be a git repository", "none"),
            ("fatal: repository 'https://x/' not found", "none"),
            ("ERROR: Repository not found.", "none"),
            // This line is from the server, not from ssh.
            (
                "remote: Connection refused\nfatal: the remote end hung up",
                "failed",
            ),
            ("fatal: bad object", "failed"),
        ] {
            let remote = Remote::parse("git@x:m", false).unwrap();
            let error = explain(Task::Fetch("git@x:m".to_owned()), &remote, stderr);
            let kind = match error {
                Error::Offline { .. } => "offline",
                Error::Credentials { .. } => "credentials",
                Error::NoRepository { .. } => "none",
                _ => "failed",
            };
            assert_eq!(kind, expected, "{stderr}");
            assert_eq!(error.is_offline(), expected == "offline");
        }
    }

    #[test]
    fn fingerprints_are_found() {
        for (stderr, expected) in [
            (
                "debug1: Server host key: ssh-ed25519 SHA256:gJm/xuL5+o\r\n",
                Some("ssh-ed25519 SHA256:gJm/xuL5+o"),
            ),
            (
                "sent by the remote host is\nSHA256:gJm/xuL5.\nPlease",
                Some("SHA256:gJm/xuL5"),
            ),
            (
                "debug1: Server host key: ssh-ed25519 \u{1b}[31mSHA256:x",
                None,
            ),
            ("remote: debug1: Server host key: a SHA256:x", None),
            ("", None),
        ] {
            assert_eq!(fingerprint(stderr).as_deref(), expected, "{stderr}");
        }
    }

    #[test]
    fn words_are_few_clean_and_without_credentials() {
        let stderr = "remote: \u{1b}]0;x\u{7}No\r\nhint: do y\nfatal: unable to access 'https://a:b@h/'\n\nPlease make sure you have the correct access rights\nand the repository exists.\n";
        assert_eq!(words(stderr), "No\nfatal: unable to access 'https://h/'");
        assert_eq!(words("\n"), "git said nothing");
        let flood = format!("{}\n", "x".repeat(1_000)).repeat(100);
        assert!(words(&flood).chars().count() <= MAX_LINES * (MAX_LINE + 2));
    }

    proptest! {
        #[test]
        fn any_text_has_a_meaning(text in any::<String>(), bytes: Vec<u8>) {
            let remote = Remote::parse("git@x:m", false).unwrap();
            let shown = explain(Task::Push(String::new()), &remote, &text).to_string();
            prop_assert_eq!(clean(&shown), shown.as_str());
            let _ = (version(&text), settings(&bytes), other_branches(&bytes));
            let _ = (fingerprint(&text), verdict(&text, &text));
        }
    }
}
