//! The configured model, if its configuration is complete.
//!
//! A key in the environment alone never enables a model. Provider, model and address must be set,
//! in `config.json` or in the environment of a person's own terminal. Only then is the provider's
//! own key variable read.

use std::{path::PathBuf, time::Duration};

use anamnesis_distill::model::{BaseUrl, Endpoint, Key, Model, Program, Provider};
use anamnesis_store::settings::{
    SETTINGS,
    config::{Config, Reflection, Secret},
};

use crate::{Error, context::Context, environment};

/// The longest timeout for an answer, in seconds.
const MAX_TIMEOUT: u32 = 600;

/// What to do where a setting is missing or invalid.
const SET_PROVIDER: &str =
    "anamnesis config set reflection.provider openai   (deepseek, local, claude)";
const SET_URL: &str = "anamnesis config set reflection.base_url https://HOST/v1";
const SET_KEY: &str = "anamnesis config set reflection.api_key KEY";

/// The model of Claude Code if none is named: its alias for the latest Sonnet.
const CLAUDE_MODEL: &str = "sonnet";

/// Returns the model settings. A valid variable overrides the file; an invalid one is ignored.
pub fn settings(context: &Context) -> Reflection {
    let mut config = Config::load(&context.home);
    for setting in SETTINGS {
        if let Some(over) = context.environment.over(setting)
            && let Ok(value) = setting.parse(&[over])
        {
            setting.set(&mut config, value);
        }
    }
    config.reflection
}

/// Returns the configured model. An agent is refused, because the model costs money.
pub fn required(context: &Context) -> Result<Model, Error> {
    context.check_person("ask the model, which costs money")?;
    find(context)?.ok_or_else(|| Error::failed("no model is set").hint(SET_PROVIDER))
}

/// Returns the configured model. An error says why it, or a reflection that is on, cannot run.
pub fn checked(context: &Context) -> Result<Option<Model>, Error> {
    match find(context)? {
        None if settings(context).auto => {
            Err(Error::failed("reflection.auto is on, but no model is set").hint(SET_PROVIDER))
        }
        found => Ok(found),
    }
}

/// Returns the configured model; `None` if none is configured. No error contains a key.
pub fn find(context: &Context) -> Result<Option<Model>, Error> {
    let settings = settings(context);
    let provider = Provider::parse(&settings.provider).unwrap_or(Provider::Heuristic);
    if provider == Provider::Heuristic {
        return match (&settings.model, &settings.base_url) {
            (None, None) => Ok(None),
            _ => Err(Error::failed("a model is set, but not whose it is").hint(SET_PROVIDER)),
        };
    }
    let word = provider.as_str();
    let default = (provider == Provider::Claude).then(|| CLAUDE_MODEL.to_owned());
    let model = settings.model.clone().or(default).ok_or_else(|| {
        Error::failed(format!("the provider {word} is set, but no model"))
            .hint("anamnesis config set reflection.model NAME")
    })?;
    let seconds = match settings.timeout {
        0 => Reflection::default().timeout,
        seconds => seconds.min(MAX_TIMEOUT),
    };
    let timeout = Duration::from_secs(seconds.into());
    if provider == Provider::Claude {
        return program(context, model, timeout).map(Some);
    }
    let base_url = settings.base_url.as_deref().ok_or_else(|| {
        Error::failed(format!(
            "the provider {word} is set, but not where its model is"
        ))
        .hint(SET_URL)
    })?;
    let base_url: BaseUrl = base_url.parse().map_err(|error| {
        Error::failed(format!("reflection.base_url cannot be used: {error}"))
            .because(error)
            .hint(SET_URL)
    })?;
    let key = settings
        .api_key
        .as_ref()
        .map(|key| Secret::reveal(key).to_owned())
        .or_else(|| context.environment.provider_key(provider));
    let key = match key {
        Some(key) => Some(Key::new(&key).ok_or_else(|| {
            Error::failed("reflection.api_key holds a blank or a sign that no key has")
                .hint(SET_KEY)
        })?),
        None if provider == Provider::Local => None,
        None => {
            let missing = format!("the provider {word} is set, but no key");
            return Err(Error::failed(missing).hint(SET_KEY));
        }
    };
    if provider != Provider::Local && !base_url.is_https() && !base_url.is_this_machine() {
        return Err(Error::failed(
            "reflection.base_url is not encrypted: notes and the key could be read on the way",
        )
        .hint("begin it with https://; a server of your own is the provider local"));
    }
    // A model on this machine is asked without a proxy.
    let ignored = context.environment.ignored_proxy();
    if let Some(name) = ignored.filter(|_| !base_url.is_this_machine()) {
        return Err(Error::failed(format!(
            "{name} is set, and its proxy must not be used for {base_url}"
        ))
        .hint(format!("unset {name} for this command")));
    }
    Ok(Some(Model::Endpoint(Endpoint {
        provider,
        model,
        base_url,
        key,
        timeout,
    })))
}

/// Finds Claude Code's own command, as a model.
fn program(context: &Context, model: String, timeout: Duration) -> Result<Model, Error> {
    let folders = context
        .environment
        .path
        .iter()
        .flat_map(std::env::split_paths);
    let name = format!("claude{}", std::env::consts::EXE_SUFFIX);
    let path: Option<PathBuf> = folders
        // A relative folder would select a different program in each current folder.
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(&name))
        .find(|path| path.is_file());
    let path = path.ok_or_else(|| {
        Error::failed("the provider claude is set, but there is no program `claude` on the path")
            .hint("install Claude Code, or set another provider")
    })?;
    Ok(Model::Program(Program {
        path,
        model,
        folder: std::env::temp_dir(),
        variables: &environment::OURS,
        without: &environment::OF_A_SESSION,
        timeout,
    }))
}
