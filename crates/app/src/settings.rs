//! The settings of this machine: each value with its source, and changes by a person.

use std::time::Duration;

use anamnesis_distill::model::BaseUrl;
use anamnesis_store::settings::{
    self, Kind, Setting, TRUSTED_VARIABLES,
    config::{Config, Secret},
};
use anamnesis_text::clean::one_line;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::{
    Error,
    context::{Context, TIMEOUT},
    environment::{default_store, trustable},
    model, remote,
};

/// The accepted forms of a remote.
pub const REMOTES: &str = "git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder";

/// A value, its source, and the value that it overrides.
pub struct EffectiveSetting {
    /// The value.
    pub value: Value,
    /// The source of the value.
    pub source: SettingSource,
    /// The value in the file, if a variable overrides it.
    pub hidden: Option<Value>,
}

/// The source of a setting's value.
pub enum SettingSource {
    /// In this environment variable.
    Variable(&'static str),
    /// In `config.json`.
    File,
    /// Nowhere.
    Default,
}

impl EffectiveSetting {
    /// Returns the value of a setting, given the keys of the file.
    pub fn new(context: &Context, keys: &Map<String, Value>, setting: &Setting) -> Self {
        let in_file = setting
            .written(keys)
            .map(|_| setting.value(&context.config));
        match (setting.variable, context.environment.over(setting)) {
            (Some(variable), Some(value)) => Self {
                value: value.into(),
                source: SettingSource::Variable(variable),
                hidden: in_file,
            },
            _ => Self {
                source: match in_file {
                    Some(_) => SettingSource::File,
                    None => SettingSource::Default,
                },
                value: in_file.unwrap_or_else(|| default(context, setting)),
                hidden: None,
            },
        }
    }
}

/// A setting without credentials, for scripts.
#[derive(Serialize)]
pub struct SettingRow {
    key: &'static str,
    value: Value,
    source: &'static str,
    variable: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hides: Option<Value>,
}

impl SettingRow {
    /// Returns the row of a setting.
    pub fn new(setting: &Setting, found: &EffectiveSetting) -> Self {
        Self {
            key: setting.name,
            value: public(setting, &found.value),
            source: match found.source {
                SettingSource::Variable(_) => "env",
                SettingSource::File => "file",
                SettingSource::Default => "default",
            },
            variable: setting.variable,
            hides: found.hidden.as_ref().map(|value| public(setting, value)),
        }
    }
}

/// A changed setting without credentials, for scripts.
#[derive(Serialize)]
pub struct SettingChange {
    /// The setting.
    pub key: &'static str,
    /// Its value; none if it was removed from the file.
    pub value: Option<Value>,
    /// The value in the file before.
    pub was: Option<Value>,
}

/// The value without a file and without a variable.
pub fn default(context: &Context, setting: &Setting) -> Value {
    match setting.kind {
        Kind::MachineName => context.environment.host_name.clone().into(),
        _ => setting.value(&Config::default()),
    }
}

/// Returns the setting of this key.
pub fn known(key: &str) -> Result<&'static Setting, Error> {
    settings::find(key).ok_or_else(|| {
        let failure = Error::usage(format!("there is no setting \"{}\"", one_line(key)));
        match settings::nearest(key) {
            Some(setting) => {
                failure.hint(format!("{}?   (all: anamnesis config list)", setting.name))
            }
            None => failure.hint("anamnesis config list"),
        }
    })
}

/// Returns the setting of this key if this caller may change it.
pub fn changeable(context: &Context, key: &str) -> Result<&'static Setting, Error> {
    let setting = known(key)?;
    context.check_person("change settings")?;
    if setting.kind == Kind::Paused {
        // `off` also records the time, so that nothing said meanwhile is read later.
        return Err(Error::usage("`config` cannot change what is paused")
            .hint("anamnesis off, or anamnesis on"));
    }
    Ok(setting)
}

/// Parses the value that was typed.
pub fn parse(context: &Context, setting: &Setting, words: &[String]) -> Result<Value, Error> {
    if setting.kind == Kind::Address
        && let [address] = words
        && !address.trim().is_empty()
    {
        // The error never repeats the address, because the faulty part may be a password.
        remote::parse(address.trim(), &context.home, &context.config)
            .map_err(|error| Error::usage(error.to_string()).because(error).hint(REMOTES))?;
    }
    if setting.kind == Kind::Server
        && let [address] = words
    {
        address.parse::<BaseUrl>().map_err(|error| {
            Error::usage(format!("{} cannot be that: {error}", setting.name))
                .because(error)
                .hint("https://HOST/v1, as the provider's own pages name it")
        })?;
    }
    if setting.name == TRUSTED_VARIABLES
        && let Some(word) = words
            .iter()
            .find(|word| !trustable().any(|name| name == *word))
    {
        return Err(Error::usage(format!(
            "invalid value \"{}\" for {TRUSTED_VARIABLES}: expected names out of {}",
            one_line(word),
            trustable().collect::<Vec<_>>().join(", ")
        )));
    }
    setting
        .parse(words)
        .map_err(|error| Error::usage(error.to_string()))
}

/// The store whose `config.json` holds the setting.
fn owner(context: &Context, setting: &Setting) -> Result<Context, Error> {
    let mut environment = context.environment.clone();
    if setting.name == TRUSTED_VARIABLES {
        environment.store = environment.user_home.as_deref().map(default_store);
    }
    let context = Context::new(environment, TIMEOUT)?;
    if setting.name == TRUSTED_VARIABLES {
        context.home.create()?;
    }
    Ok(context)
}

/// Changes or removes one setting in the file. Returns the previous value in the file.
pub fn change(
    context: &Context,
    setting: &Setting,
    value: Option<&Value>,
) -> Result<Option<Value>, Error> {
    let context = owner(context, setting)?;
    let mut before = None;
    let mut refused = Ok(());
    Config::update(&context.home, |keys| {
        before = setting.written(keys).cloned();
        refused = setting.put(keys, value.cloned());
    })?;
    refused.map_err(|error| Error::caused_by(error).hint("anamnesis doctor"))?;
    Ok(before)
}

/// Timeout for the model's answer to a one-word question.
const TEST_TIME: Duration = Duration::from_secs(15);

/// Asks the model for one word, and returns its name.
pub fn test_model(context: &Context) -> Result<String, Error> {
    let model = model::required(context)?.within(TEST_TIME);
    model
        .ask("Answer with the one word: ready", "Are you there?")
        .map_err(|error| Error::caused_by(error).hint("anamnesis config list"))?;
    Ok(one_line(&model.label()))
}

/// A value without credentials: addresses lose them, keys are masked.
pub fn public(setting: &Setting, value: &Value) -> Value {
    match value {
        Value::String(address) if setting.kind == Kind::Address => remote::shown(address).into(),
        Value::String(key) if setting.kind == Kind::Secret => {
            Secret::new(key).map(|key| key.shown()).into()
        }
        value => value.clone(),
    }
}

/// A value in one line, as people see it.
pub fn shown(setting: &Setting, value: &Value) -> String {
    match public(setting, value) {
        Value::Null => "none".to_owned(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => {
            let words: Vec<String> = items
                .iter()
                .map(|item| one_line(&word(setting, item)))
                .collect();
            words.join(", ")
        }
        value => one_line(&word(setting, &value)),
    }
}

/// Formats a single value the way it is typed.
pub fn word(setting: &Setting, value: &Value) -> String {
    match value {
        Value::Bool(true) if setting.kind == Kind::Switch => "on".to_owned(),
        Value::Bool(false) if setting.kind == Kind::Switch => "off".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}
