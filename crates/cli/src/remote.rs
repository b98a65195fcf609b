//! The remote: which one holds, whether it can be one, and how it is shown.
//!
//! An address may hold a password. Nothing that is printed, logged or recorded comes from the address
//! itself, only from here.

use std::path::Path;

use anamnesis_core::{clean::one_line, note::text_hash};
use anamnesis_store::{config::Config, file, journal::Journal};
use anamnesis_sync::remote::{self, InvalidRemote, Remote};

use crate::{context::Context, environment::OUTWARD_VARIABLES};

/// How much of a project's settings is read, in bytes.
const MAX_SETTINGS: usize = 1024 * 1024;

/// Under this name the records keep the hash of the plugin's answer that was last looked at.
const SEEN: &str = "plugin_remote";

/// Under this name the records keep why the plugin's answer was not taken; empty when it was.
const REFUSED: &str = "plugin_remote_refused";

/// The address that holds: the variable's, else the file's.
pub(crate) fn address(context: &Context) -> Option<&str> {
    let environment = context.environment.remote.as_deref();
    environment.or(context.config.remote.as_deref())
}

/// Makes a remote of an address.
pub(crate) fn parse(address: &str, config: &Config) -> Result<Remote, InvalidRemote> {
    Remote::parse(address, config.sync.allow_http)
}

/// An address as it may be seen, whether it makes sense or not.
pub(crate) fn shown(address: &str) -> String {
    match Remote::parse(address, true) {
        Ok(remote) => one_line(remote.shown()),
        Err(_) => one_line(&remote::hide_credentials(address)),
    }
}

/// Why the address that holds is none.
pub(crate) fn problem(context: &Context) -> Option<String> {
    let error = parse(address(context)?, &context.config).err()?;
    Some(error.to_string())
}

/// Why the answer that the plugin was given last was not taken.
pub(crate) fn refused(journal: &Journal) -> Option<String> {
    let refused = journal.meta(REFUSED).ok().flatten();
    refused.filter(|refused| !refused.is_empty())
}

/// Tells whether the settings of a project that these folders belong to set a variable that names a
/// remote or a model. A repository brings such a file along, and must not say where all notes go.
pub(crate) fn is_set_by_project<'a>(
    folders: impl IntoIterator<Item = &'a Path>,
    user_home: Option<&Path>,
) -> bool {
    let folders = folders.into_iter().flat_map(Path::ancestors);
    let mut folders = folders.filter(|folder| Some(*folder) != user_home);
    folders.any(|folder| {
        ["settings.json", "settings.local.json"].iter().any(|name| {
            let path = folder.join(".claude").join(name);
            let text = file::read_head(&path, MAX_SETTINGS).map(|(bytes, ..)| bytes);
            let text = text.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            OUTWARD_VARIABLES.iter().any(|name| text.contains(name))
        })
    })
}

/// Copies the plugin's answer into the settings, when it is another one than last time. No answer is
/// none, and changes nothing. Returns what the records keep of it from now on, and a line for the log
/// when it could not be copied.
pub(crate) fn adopt(
    context: &Context,
    journal: &Journal,
) -> (Vec<(&'static str, String)>, Option<String>) {
    let Some(answer) = &context.environment.plugin_remote else {
        return (Vec::new(), None);
    };
    let seen = text_hash(answer);
    if journal.meta(SEEN).ok().flatten().as_deref() == Some(&seen) {
        return (Vec::new(), None);
    }
    match parse(answer, &context.config) {
        Ok(_) => {
            let kept = Config::update(&context.home, |keys| {
                keys.insert("remote".to_owned(), answer.as_str().into());
            });
            match kept {
                Ok(()) => (vec![(SEEN, seen), (REFUSED, String::new())], None),
                // Not seen, so the next hook tries again.
                Err(error) => (Vec::new(), Some(format!("the plugin's remote: {error}"))),
            }
        }
        Err(error) => (
            vec![(SEEN, seen), (REFUSED, error.to_string())],
            Some(format!("the plugin's remote is not taken: {error}")),
        ),
    }
}
