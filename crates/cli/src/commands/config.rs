//! `config`: shows and changes the settings of this machine, with their sources.

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{
    Error,
    context::{Context, PATIENCE},
    environment::{default_store, trustable},
    format::quoted,
    model, remote,
};
use anamnesis_distill::model::BaseUrl;
use anamnesis_store::settings::{
    self, Kind, SETTINGS, Setting, TRUSTED_VARIABLES,
    config::{Config, Secret},
};
use anamnesis_text::clean::one_line;
use serde_json::{Map, Value, json};

use crate::ui::{self, Outcome, Ui};

/// The width of the value column.
const VALUE_WIDTH: usize = 28;

/// Show the settings of this machine, or change one
///
/// Settings are stored in `config.json` of the store. An environment variable overrides the file.
#[derive(Debug, clap::Args)]
#[command(after_help = "Every setting: anamnesis config list")]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List every setting with its value and source
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the value of a setting
    Get {
        /// The setting
        key: String,
    },
    /// Change a setting
    Set {
        /// The setting
        key: String,
        /// The value; several values for a list, none for an empty list
        #[arg(allow_hyphen_values = true)]
        value: Vec<String>,
    },
    /// Test the configured model with a one-word question
    Test,
    /// Remove a setting from the file, so that its default applies
    Unset {
        /// The setting
        key: String,
    },
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    match &args.action {
        None => list(context, false, ui),
        Some(Action::List { json }) => list(context, *json, ui),
        Some(Action::Get { key }) => get(context, known(key)?, ui),
        Some(Action::Set { key, value }) => {
            let setting = changeable(context, key)?;
            let value = parse(context, setting, value)?;
            change(&owner(context, setting)?, setting, Some(&value), ui)?;
        }
        Some(Action::Test) => test(context, ui)?,
        Some(Action::Unset { key }) => {
            let setting = changeable(context, key)?;
            change(&owner(context, setting)?, setting, None, ui)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn known(key: &str) -> Result<&'static Setting, Error> {
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
fn changeable(context: &Context, key: &str) -> Result<&'static Setting, Error> {
    let setting = known(key)?;
    if context.environment.is_agent {
        return Err(Error::failed("settings are changed by a person only")
            .hint("run it in a terminal of your own"));
    }
    if setting.kind == Kind::Paused {
        // `pause` also records the time, so that nothing said meanwhile is read later.
        return Err(
            Error::usage("what is paused is changed by commands of their own")
                .hint("anamnesis pause, or anamnesis resume"),
        );
    }
    Ok(setting)
}

/// The store whose `config.json` holds the setting.
fn owner(context: &Context, setting: &Setting) -> Result<Context, Error> {
    let mut environment = context.environment.clone();
    if setting.name == TRUSTED_VARIABLES {
        environment.store = environment.user_home.as_deref().map(default_store);
    }
    let context = Context::new(environment, PATIENCE)?;
    if setting.name == TRUSTED_VARIABLES {
        context
            .home
            .create()
            .map_err(|error| Error::caused_by(error).hint("anamnesis doctor"))?;
    }
    Ok(context)
}

/// Parses the value that was typed.
fn parse(context: &Context, setting: &Setting, words: &[String]) -> Result<Value, Error> {
    if setting.kind == Kind::Address
        && let [address] = words
        && !address.trim().is_empty()
    {
        // The error never repeats the address, because the faulty part may be a password.
        remote::parse(address.trim(), &context.config)
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
    setting.parse(words).map_err(Error::usage)
}

/// Timeout for the model's answer to a one-word question.
const TEST_TIME: Duration = Duration::from_secs(15);

/// Asks the model for one word.
fn test(context: &Context, ui: &Ui) -> Result<(), Error> {
    if context.environment.is_agent {
        return Err(Error::failed("models are tried by a person only")
            .hint("run it in a terminal of your own"));
    }
    let model = model::required(context)?.within(TEST_TIME);
    model
        .ask("Answer with the one word: ready", "Are you there?")
        .map_err(|error| Error::caused_by(error).hint("anamnesis config list"))?;
    ui.print(&format!("{} answers\n", one_line(&model.label())));
    Ok(())
}

/// The accepted forms of a remote.
pub(super) const REMOTES: &str = "git@HOST:PATH, ssh://HOST/PATH, https://HOST/PATH or a folder";

/// A value, its source, and the value that it overrides.
struct Effective {
    value: Value,
    source: Source,
    /// The value in the file, if a variable overrides it.
    hidden: Option<Value>,
}

enum Source {
    Variable(&'static str),
    File,
    Default,
}

impl Effective {
    fn new(context: &Context, keys: &Map<String, Value>, setting: &Setting) -> Self {
        let in_file = setting
            .written(keys)
            .map(|_| setting.value(&context.config));
        match (setting.variable, context.environment.over(setting)) {
            (Some(variable), Some(value)) => Self {
                value: value.into(),
                source: Source::Variable(variable),
                hidden: in_file,
            },
            _ => Self {
                source: match in_file {
                    Some(_) => Source::File,
                    None => Source::Default,
                },
                value: in_file.unwrap_or_else(|| default(context, setting)),
                hidden: None,
            },
        }
    }
}

/// The value without a file and without a variable.
fn default(context: &Context, setting: &Setting) -> Value {
    match setting.kind {
        Kind::MachineName => context.environment.host_name.clone().into(),
        _ => setting.value(&Config::default()),
    }
}

fn list(context: &Context, json: bool, ui: &Ui) {
    let keys = Config::keys(&context.home).unwrap_or_default();
    let all = SETTINGS
        .iter()
        .map(|setting| (setting, Effective::new(context, &keys, setting)));
    if json {
        let list: Vec<Value> = all
            .map(|(setting, found)| as_json(setting, &found))
            .collect();
        ui.json(&list.into());
    } else {
        ui.print(
            &all.map(|(setting, found)| as_line(setting, &found))
                .collect::<String>(),
        );
    }
    if let Some(problem) = &context.config.problem {
        ui.note(&format!("! {}\n→ {}\n", one_line(problem), MEND));
    }
}

/// The hint for a `config.json` that cannot be parsed.
const MEND: &str = "anamnesis config set or unset the setting, or mend the file";

fn as_json(setting: &Setting, found: &Effective) -> Value {
    let mut row = json!({
        "key": setting.name,
        "value": public(setting, &found.value),
        "source": match found.source {
            Source::Variable(_) => "env",
            Source::File => "file",
            Source::Default => "default",
        },
        "variable": setting.variable,
    });
    if let Some(hidden) = &found.hidden {
        row["hides"] = public(setting, hidden);
    }
    row
}

fn as_line(setting: &Setting, found: &Effective) -> String {
    let source = match found.source {
        Source::Variable(variable) => variable,
        Source::File => "config.json",
        Source::Default => "default",
    };
    let value = ui::shorten(&shown(setting, &found.value), VALUE_WIDTH);
    let mut line = format!("{:<26}  {value:<VALUE_WIDTH$}  {source}\n", setting.name);
    if let Some(hidden) = &found.hidden {
        let hidden = ui::shorten(&shown(setting, hidden), VALUE_WIDTH);
        line.push_str(&format!("{:<26}  over {hidden} in config.json\n", ""));
    }
    line
}

fn get(context: &Context, setting: &Setting, ui: &Ui) {
    let keys = Config::keys(&context.home).unwrap_or_default();
    let value = public(setting, &Effective::new(context, &keys, setting).value);
    let text = match &value {
        Value::Null => String::new(),
        Value::Array(items) => items
            .iter()
            .map(|item| word(setting, item) + "\n")
            .collect(),
        value => word(setting, value) + "\n",
    };
    ui.raw(&text);
}

/// Changes one setting and prints the previous value.
fn change(
    context: &Context,
    setting: &Setting,
    value: Option<&Value>,
    ui: &Ui,
) -> Result<(), Error> {
    let mut before = None;
    let mut refused = Ok(());
    Config::update(&context.home, |keys| {
        before = setting.written(keys).cloned();
        refused = setting.put(keys, value.cloned());
    })?;
    refused.map_err(|problem| Error::failed(problem).hint("anamnesis doctor"))?;
    let name = setting.name;
    let brief = |value: &Value| ui::shorten(&shown(setting, value), VALUE_WIDTH);
    let default = brief(&default(context, setting));
    let was = before.as_ref().map(brief);
    let mut text = match (value, was) {
        (Some(value), Some(was)) => format!("{name} = {} (was {was})\n", brief(value)),
        (Some(value), None) => format!("{name} = {} (was {default}, the default)\n", brief(value)),
        (None, Some(was)) => format!("{name} = {default}, the default (was {was})\n"),
        (None, None) => {
            ui.print(&format!("{name} was not set; the default is {default}\n"));
            return Ok(());
        }
    };
    if let (Some(variable), Some(over)) = (setting.variable, context.environment.over(setting)) {
        let over = brief(&over.into());
        text.push_str(&format!("! {variable} is set and goes over it: {over}\n"));
    }
    match (value, setting.kind) {
        // The previous secret is neither shown nor kept, so no undo is printed.
        (_, Kind::Secret) if before.is_some() => {}
        (Some(_), Kind::Address) => text.push_str("→ anamnesis init   (reaches it and joins)\n"),
        _ => text.push_str(&format!("Undo: {}\n", undo(setting, before.as_ref()))),
    }
    ui.print(&text);
    Ok(())
}

/// Returns the command that restores the previous value.
fn undo(setting: &Setting, before: Option<&Value>) -> String {
    let Some(before) = before else {
        return format!("anamnesis config unset {}", setting.name);
    };
    let words: String = match public(setting, before) {
        Value::Array(items) => items
            .iter()
            .map(|item| format!(" {}", quoted(&word(setting, item))))
            .collect(),
        value => format!(" {}", quoted(&word(setting, &value))),
    };
    format!("anamnesis config set {}{words}", setting.name)
}

/// A value without credentials: addresses lose them, keys are masked.
fn public(setting: &Setting, value: &Value) -> Value {
    match value {
        Value::String(address) if setting.kind == Kind::Address => remote::shown(address).into(),
        Value::String(key) if setting.kind == Kind::Secret => {
            Secret::new(key).map(|key| key.shown()).into()
        }
        value => value.clone(),
    }
}

fn shown(setting: &Setting, value: &Value) -> String {
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
fn word(setting: &Setting, value: &Value) -> String {
    match value {
        Value::Bool(true) if setting.kind == Kind::Switch => "on".to_owned(),
        Value::Bool(false) if setting.kind == Kind::Switch => "off".to_owned(),
        Value::String(text) => text.clone(),
        value => value.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documentation_lists_every_setting() {
        let page = include_str!("../../../../docs/reference/settings.md");
        let rows: Vec<&str> = page
            .lines()
            .filter(|line| line.starts_with("| `"))
            .collect();
        let expected: Vec<String> = SETTINGS
            .iter()
            .map(|setting| {
                let variable = setting.variable.map(|name| format!("`{name}`"));
                format!(
                    "| `{}` | {} | {} | {} | {} |",
                    setting.name,
                    setting.kind.expected(),
                    shown(setting, &setting.value(&Config::default())),
                    variable.unwrap_or_default(),
                    setting.meaning
                )
            })
            .collect();
        assert_eq!(rows, expected, "{}", expected.join("\n"));
    }
}
