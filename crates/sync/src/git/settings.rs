//! The settings that are trusted in the repository of the notes.
//!
//! The user's own configuration, system and global, applies as in the user's shell. The
//! repository's does not: whoever can write one file there could make git run a program. So it may
//! contain what git writes itself and a few harmless settings, and no include.

use super::answer::Setting;

/// All settings that the repository of the notes may have.
const TRUSTED: &[&str] = &[
    "branch.main.merge",
    "branch.main.rebase",
    "branch.main.remote",
    "color.ui",
    "commit.gpgsign",
    "core.autocrlf",
    "core.bare",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.repositoryformatversion",
    "core.symlinks",
    "gc.auto",
    "gc.autodetach",
    "gc.autopacklimit",
    "gc.packrefs",
    "gc.pruneexpire",
    "gc.reflogexpire",
    "gc.reflogexpireunreachable",
    "gc.writecommitgraph",
    "init.defaultbranch",
    "pull.ff",
    "pull.rebase",
    "push.default",
    "remote.origin.fetch",
    REMOTE_ADDRESS,
    "user.email",
    "user.name",
];

/// Additional settings that a remote in a folder may have.
const TRUSTED_OF_REMOTE: &[&str] = &[
    "core.compression",
    "core.sharedrepository",
    "extensions.objectformat",
    "extensions.refstorage",
    "http.receivepack",
    "receive.denycurrentbranch",
    "receive.denydeletes",
    "receive.denynonfastforwards",
    "receive.fsckobjects",
    "receive.unpacklimit",
    "transfer.fsckobjects",
    "transfer.unpacklimit",
];

/// The setting that holds the address of the remote.
pub(super) const REMOTE_ADDRESS: &str = "remote.origin.url";

/// Returns the first untrusted setting of the repository.
pub(super) fn untrusted(settings: &[Setting]) -> Option<&Setting> {
    own(settings).find(|setting| !TRUSTED.contains(&setting.key.as_str()))
}

/// Returns the first untrusted setting of a remote in a folder.
pub(super) fn untrusted_of_remote(settings: &[Setting]) -> Option<&Setting> {
    own(settings).find(|setting| {
        let key = setting.key.as_str();
        !TRUSTED.contains(&key) && !TRUSTED_OF_REMOTE.contains(&key)
    })
}

/// Returns the remote addresses in the repository's configuration; git would push to each of them.
pub(super) fn addresses(settings: &[Setting]) -> impl Iterator<Item = &str> {
    settings
        .iter()
        .filter(|setting| setting.scope != "command" && setting.key == REMOTE_ADDRESS)
        .map(|setting| setting.value.as_str())
}

/// Returns the ssh command for git, which never prompts.
///
/// It is the user's own, with their keys, jump hosts and known hosts. ssh's configuration decides
/// about unknown hosts; by default they are refused.
pub(super) fn ssh_command(settings: &[Setting]) -> String {
    let command = user_ssh(settings);
    let is_open_ssh = match last(settings, "ssh.variant") {
        Some("ssh") => true,
        None | Some("auto") => is_named_ssh(command),
        Some(_) => false,
    };
    if is_open_ssh {
        format!("{command} -oBatchMode=yes")
    } else {
        // Another program would take the option for a host.
        command.to_owned()
    }
}

/// Returns the user's ssh command.
pub(super) fn user_ssh(settings: &[Setting]) -> &str {
    last(settings, "core.sshcommand").unwrap_or("ssh")
}

fn is_named_ssh(command: &str) -> bool {
    let command = command.trim_start();
    let program = match command.chars().next() {
        Some(quote @ ('\'' | '"')) => command[1..].split(quote).next(),
        _ => command.split_whitespace().next(),
    };
    let name = program.and_then(|program| program.rsplit(['/', '\\']).next());
    matches!(name, Some("ssh" | "ssh.exe"))
}

fn own(settings: &[Setting]) -> impl Iterator<Item = &Setting> {
    settings
        .iter()
        .filter(|setting| !matches!(setting.scope.as_str(), "system" | "global" | "command"))
}

fn last<'a>(settings: &'a [Setting], key: &str) -> Option<&'a str> {
    settings
        .iter()
        .rfind(|setting| setting.key == key && !setting.value.is_empty())
        .map(|setting| setting.value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting(scope: &str, key: &str, value: &str) -> Setting {
        Setting {
            scope: scope.to_owned(),
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }

    /// GIT-04.
    #[test]
    fn only_the_repository_itself_is_distrusted() {
        for (scope, key, is_trusted) in [
            ("global", "core.sshcommand", true),
            ("system", "credential.helper", true),
            ("command", "core.hookspath", true),
            ("local", "core.bare", true),
            ("local", "core.hookspath", false),
            ("local", "gc.recentobjectshook", false),
            ("local", "remote.origin.uploadpack", false),
            ("local", "include.path", false),
            ("local", "includeif.gitdir:/.path", false),
            ("local", "receive.fsckobjects", false),
            ("worktree", "core.sshcommand", false),
            ("unknown", "core.sshcommand", false),
        ] {
            let settings = [
                setting("local", "core.bare", "true"),
                setting(scope, key, "x"),
            ];
            assert_eq!(untrusted(&settings).is_none(), is_trusted, "{scope} {key}");
        }
        let settings = [setting("local", "receive.fsckobjects", "true")];
        assert_eq!(untrusted_of_remote(&settings), None);
        let settings = [setting("local", "gc.recentobjectshook", "x")];
        assert!(untrusted_of_remote(&settings).is_some());
    }

    #[test]
    fn ssh_command_is_the_users_own_in_batch_mode() {
        for (command, variant, expected) in [
            (None, None, "ssh -oBatchMode=yes"),
            (Some("ssh -F /x"), None, "ssh -F /x -oBatchMode=yes"),
            (
                Some("/usr/bin/ssh -i 'a b'"),
                None,
                "/usr/bin/ssh -i 'a b' -oBatchMode=yes",
            ),
            (
                Some("\"C:/a b/ssh.exe\" -4"),
                None,
                "\"C:/a b/ssh.exe\" -4 -oBatchMode=yes",
            ),
            (Some("my-ssh"), Some("ssh"), "my-ssh -oBatchMode=yes"),
            (Some("plink -batch"), None, "plink -batch"),
            (Some("ssh"), Some("simple"), "ssh"),
            (Some("ssh"), Some("auto"), "ssh -oBatchMode=yes"),
        ] {
            let mut settings = Vec::new();
            if let Some(command) = command {
                settings.push(setting("system", "core.sshcommand", "another"));
                settings.push(setting("global", "core.sshcommand", command));
            }
            if let Some(variant) = variant {
                settings.push(setting("global", "ssh.variant", variant));
            }
            assert_eq!(ssh_command(&settings), expected, "{command:?} {variant:?}");
        }
    }
}
