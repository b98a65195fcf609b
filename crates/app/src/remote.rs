//! The remote: which one holds, whether it can be one, and how it is shown.
//!
//! An address may hold a password. Nothing that is printed, logged or recorded comes from the address
//! itself, only from here.

use anamnesis_store::{fs::file, journal::Journal, settings::config::Config};
use anamnesis_sync::remote::{self, InvalidRemote, Remote};
use anamnesis_text::{clean::one_line, hash::text_hash};
use serde_json::Value;

use crate::context::Context;

/// How much of Claude Code's settings is read, in bytes.
const MAX_SETTINGS: usize = 4 * 1024 * 1024;

/// The name of the plugin in those settings, before the name of its marketplace.
const PLUGIN: &str = "anamnesis";

/// Why a remote is not used that only the environment names.
const UNCONFIRMED: &str = "your own settings of Claude Code do not name it";

/// Under this name the records keep the hash of the plugin's answer that was last looked at.
const SEEN: &str = "plugin_remote";

/// Under this name the records keep why the plugin's answer was not taken; empty when it was.
const REFUSED: &str = "plugin_remote_refused";

/// The address that holds: the variable's, else the file's.
pub fn address(context: &Context) -> Option<&str> {
    let environment = context.environment.remote.as_deref();
    environment.or(context.config.remote.as_deref())
}

/// Makes a remote of an address.
pub fn parse(address: &str, config: &Config) -> Result<Remote, InvalidRemote> {
    Remote::parse(address, config.sync.allow_http)
}

/// An address as it may be seen, whether it makes sense or not.
pub fn shown(address: &str) -> String {
    match Remote::parse(address, true) {
        Ok(remote) => one_line(remote.shown()),
        Err(_) => one_line(&remote::hide_credentials(address)),
    }
}

/// Why the address that holds is none.
pub fn problem(context: &Context) -> Option<String> {
    let error = parse(address(context)?, &context.config).err()?;
    Some(error.to_string())
}

/// Why the answer that the plugin was given last was not taken.
pub fn refused(journal: &Journal) -> Option<String> {
    let refused = journal.meta(REFUSED).ok().flatten();
    refused.filter(|refused| !refused.is_empty())
}

/// The value of the plugin's option `remote` in the user's own settings of Claude Code, where its
/// dialog stores it. The client ignores the same key in a project's settings, so a repository cannot
/// set it.
fn configured(context: &Context) -> Option<String> {
    let path = context.environment.claude_folder.as_ref()?;
    let (bytes, ..) = file::read_head(&path.join("settings.json"), MAX_SETTINGS).ok()?;
    let settings: Value = serde_json::from_slice(&bytes).ok()?;
    let plugins = settings.get("pluginConfigs")?.as_object()?;
    let (_, plugin) = plugins
        .iter()
        .find(|(name, _)| name.split('@').next() == Some(PLUGIN))?;
    let answer = plugin.pointer("/options/remote")?.as_str()?.trim();
    (!answer.is_empty()).then(|| answer.to_owned())
}

/// Copies the remote that the person gave the plugin into `config.json` when it has changed.
///
/// The variable only says that there may be a new answer; its value is never used, because a project
/// can set it. Returns what the records keep of it from now on, and a line for the log when it was
/// not copied.
pub fn adopt(
    context: &Context,
    journal: &Journal,
) -> (Vec<(&'static str, String)>, Option<String>) {
    let Some(announced) = &context.environment.plugin_remote else {
        return (Vec::new(), None);
    };
    let seen = text_hash(announced);
    if journal.meta(SEEN).ok().flatten().as_deref() == Some(&seen) {
        return (Vec::new(), None);
    }
    let Some(answer) = configured(context).filter(|answer| answer == announced) else {
        return (
            vec![(SEEN, seen), (REFUSED, UNCONFIRMED.to_owned())],
            Some(format!("the plugin's remote is not used: {UNCONFIRMED}")),
        );
    };
    match parse(&answer, &context.config) {
        Ok(_) => {
            let kept = Config::update(&context.home, |keys| {
                keys.insert("remote".to_owned(), answer.into());
            });
            match kept {
                Ok(()) => (vec![(SEEN, seen), (REFUSED, String::new())], None),
                // Not seen, so the next hook tries again.
                Err(error) => (Vec::new(), Some(format!("the plugin's remote: {error}"))),
            }
        }
        Err(error) => (
            vec![(SEEN, seen), (REFUSED, error.to_string())],
            Some(format!("the plugin's remote is not used: {error}")),
        ),
    }
}
