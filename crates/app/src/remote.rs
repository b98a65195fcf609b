//! The remote: which address is in effect, whether it is valid, and how it is shown.
//!
//! An address may contain a password. Anything that is printed, logged or recorded about it must
//! come from this module.

use std::path::Path;

use anamnesis_store::{
    fs::{
        file,
        home::{self, Home},
    },
    journal::Journal,
    settings::config::Config,
};
use anamnesis_sync::remote::{self, InvalidRemote, Remote};
use anamnesis_text::{clean::one_line, hash::text_hash};
use serde_json::Value;

use crate::{context::Context, environment::claude_folder};

/// How many bytes of Claude Code's settings are read.
const MAX_SETTINGS: usize = 4 * 1024 * 1024;

/// The plugin's name in those settings, before `@` and its marketplace.
const PLUGIN: &str = "anamnesis";

/// The reason for not using a remote that only the environment names.
const UNCONFIRMED: &str = "your own settings of Claude Code do not name it";

/// The reason where `CLAUDE_CONFIG_DIR` names the settings, which a project can set.
const UNTRUSTED_FOLDER: &str = "~/.claude/settings.json does not name it, and trusted_variables does not list CLAUDE_CONFIG_DIR";

/// The journal key for the hash of the plugin's last known option value.
const SEEN: &str = "plugin_remote";

/// The journal key for why the plugin's option was not used; empty if it was.
const REFUSED: &str = "plugin_remote_refused";

/// Returns the address in effect: the variable's, or else the file's.
pub fn address(context: &Context) -> Option<&str> {
    let environment = context.environment.remote.as_deref();
    environment.or(context.config.remote.as_deref())
}

/// Parses an address. A sync with the store itself would succeed, and the notes would have no copy.
pub fn parse(address: &str, home: &Home, config: &Config) -> Result<Remote, InvalidRemote> {
    let remote = Remote::parse(address, config.sync.allow_http)?;
    let is_store = |folder: &Path| home.contains(folder) || home::is_below(home.root(), folder);
    if remote.folder().is_some_and(is_store) {
        return Err(InvalidRemote::Store);
    }
    Ok(remote)
}

/// Returns an address without credentials, even if it is invalid.
pub fn shown(address: &str) -> String {
    match Remote::parse(address, true) {
        Ok(remote) => one_line(remote.shown()),
        Err(_) => one_line(&remote::hide_credentials(address)),
    }
}

/// Returns why the address in effect is invalid.
pub fn problem(context: &Context) -> Option<String> {
    let error = parse(address(context)?, &context.home, &context.config).err()?;
    Some(error.to_string())
}

/// Returns why the plugin's last option value was not used.
pub fn refused(journal: &Journal) -> Option<String> {
    let refused = journal.meta(REFUSED).ok().flatten();
    refused.filter(|refused| !refused.is_empty())
}

/// Returns the plugin's option `remote` from the user's own settings of Claude Code, where its
/// dialog stores it. The client ignores this key in a project's settings, so a repository cannot
/// set it.
fn configured(folder: &Path) -> Option<String> {
    let path = folder.join("settings.json");
    let (bytes, ..) = file::read_head(&path, MAX_SETTINGS).ok()?;
    let settings: Value = serde_json::from_slice(&bytes).ok()?;
    let plugins = settings.get("pluginConfigs")?.as_object()?;
    let (_, plugin) = plugins
        .iter()
        .find(|(name, _)| name.split('@').next() == Some(PLUGIN))?;
    let answer = plugin.pointer("/options/remote")?.as_str()?.trim();
    (!answer.is_empty()).then(|| answer.to_owned())
}

/// Copies the plugin's option `remote` into `config.json` if it has changed.
///
/// The variable only signals a change. Its value is never used, because a project can set it.
/// Returns the journal entries to store, and a log line if the option was not copied.
pub fn adopt(
    context: &Context,
    journal: &Journal,
) -> (Vec<(&'static str, String)>, Option<String>) {
    let Some(announced) = &context.environment.plugin_remote else {
        return (Vec::new(), None);
    };
    let folder = context.environment.own_claude_folder();
    let is_trusted = folder == context.environment.claude_folder;
    let default = context.environment.user_home.as_deref().map(claude_folder);
    let seen = match &folder {
        // Once the person trusts another folder, its answer is looked at again.
        Some(other) if folder != default => text_hash(&format!("{announced} {}", other.display())),
        _ => text_hash(announced),
    };
    if journal.meta(SEEN).ok().flatten().as_deref() == Some(&seen) {
        return (Vec::new(), None);
    }
    let unused = |seen, reason| {
        let line = format!("the plugin's remote is not used: {reason}");
        (vec![(SEEN, seen), (REFUSED, reason)], Some(line))
    };
    let answer = folder.as_deref().and_then(configured);
    let Some(answer) = answer.filter(|answer| answer == announced) else {
        let reason = if is_trusted {
            UNCONFIRMED
        } else {
            UNTRUSTED_FOLDER
        };
        return unused(seen, reason.to_owned());
    };
    if let Err(error) = parse(&answer, &context.home, &context.config) {
        return unused(seen, error.to_string());
    }
    let kept = Config::update(&context.home, |keys| {
        keys.insert("remote".to_owned(), answer.into());
    });
    match kept {
        Ok(()) => (vec![(SEEN, seen), (REFUSED, String::new())], None),
        // The value is not stored as seen, so the next hook tries again.
        Err(error) => (Vec::new(), Some(format!("the plugin's remote: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_is_not_its_own_remote() {
        // GIT-03
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        let parsed = |address: &str| parse(address, &home, &Config::default()).map(drop);
        let root = folder.path().display();
        for inside in [
            "store",
            "store/memory",
            "store/memory/.git",
            "store/x.git",
            "a/../store",
            ".",
        ] {
            for address in [
                format!("{root}/{inside}"),
                format!("file://{root}/{inside}"),
            ] {
                assert_eq!(parsed(&address), Err(InvalidRemote::Store), "{address}");
            }
        }
        for beside in ["store.git", "storehouse/memory", "x.git"] {
            assert_eq!(parsed(&format!("{root}/{beside}")), Ok(()), "{beside}");
        }
        #[cfg(unix)]
        {
            let link = folder.path().join("link");
            std::os::unix::fs::symlink(home.root(), &link).unwrap();
            let address = link.join("memory").display().to_string();
            assert_eq!(parsed(&address), Err(InvalidRemote::Store));
        }
        assert_eq!(parsed("git@h:store/memory"), Ok(()));
    }
}
