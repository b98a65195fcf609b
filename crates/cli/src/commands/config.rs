//! `config`: shows and changes the settings of this machine, with their sources.

use std::{process::ExitCode, time::Duration};

use anamnesis_app::{
    context::Context,
    environment::Environment,
    format::quoted,
    settings::{
        self, EffectiveSetting, SettingChange, SettingRow, SettingSource, changeable, default,
        known, parse, public, shown, word,
    },
};
use anamnesis_store::settings::{Kind, SETTINGS, Setting, config::Config};
use anamnesis_text::clean::one_line;
use serde_json::Value;

use super::model;
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
    /// Print JSON
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List every setting with its value and source
    List,
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
    Model(model::Args),
    /// Test the configured model with a one-word question
    Test,
    /// Remove a setting from the file, so that its default applies
    Unset {
        /// The setting
        key: String,
    },
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    if let Some(Action::Model(args)) = &args.action {
        return model::run(args, &Context::open(environment)?, ui);
    }
    let context = &Context::new(environment, Duration::ZERO)?;
    match &args.action {
        None | Some(Action::List | Action::Model(_)) => list(context, args.json, ui),
        Some(Action::Get { key }) => get(context, known(key)?, args.json, ui),
        Some(Action::Set { key, value }) => {
            let setting = changeable(context, key)?;
            let value = parse(context, setting, value)?;
            change(context, setting, Some(&value), args.json, ui)
        }
        Some(Action::Test) => {
            let model = settings::test_model(context)?;
            let text = format!("{model} answers\n");
            ui.done(args.json, Value::from_iter([("model", model)]), &text)
        }
        Some(Action::Unset { key }) => {
            let setting = changeable(context, key)?;
            change(context, setting, None, args.json, ui)
        }
    }
}

fn list(context: &Context, json: bool, ui: &Ui) -> Outcome {
    let keys = Config::keys(&context.home).unwrap_or_default();
    let all = SETTINGS
        .iter()
        .map(|setting| (setting, EffectiveSetting::new(context, &keys, setting)));
    if json {
        let rows = all.map(|(setting, found)| SettingRow::new(setting, &found));
        ui.json(rows.collect::<Vec<_>>())?;
    } else {
        ui.print(
            &all.map(|(setting, found)| as_line(setting, &found))
                .collect::<String>(),
        );
    }
    if let Some(problem) = &context.config.problem {
        ui.note(&format!("! {}\n→ {}\n", one_line(problem), FIX));
    }
    Ok(ExitCode::SUCCESS)
}

/// The hint for a `config.json` that cannot be parsed.
const FIX: &str = "anamnesis config set or unset the setting, or fix the file";

fn as_line(setting: &Setting, found: &EffectiveSetting) -> String {
    let source = match found.source {
        SettingSource::Variable(variable) => variable,
        SettingSource::File => "config.json",
        SettingSource::Default => "default",
    };
    let value = ui::shorten(&shown(setting, &found.value), VALUE_WIDTH);
    let mut line = format!("{:<26}  {value:<VALUE_WIDTH$}  {source}\n", setting.name);
    if let Some(hidden) = &found.hidden {
        let hidden = ui::shorten(&shown(setting, hidden), VALUE_WIDTH);
        line.push_str(&format!("{:<26}  over {hidden} in config.json\n", ""));
    }
    line
}

fn get(context: &Context, setting: &Setting, json: bool, ui: &Ui) -> Outcome {
    let keys = Config::keys(&context.home).unwrap_or_default();
    let found = EffectiveSetting::new(context, &keys, setting);
    if json {
        return ui.json(SettingRow::new(setting, &found));
    }
    let value = public(setting, &found.value);
    let text = match &value {
        Value::Null => String::new(),
        Value::Array(items) => items
            .iter()
            .map(|item| word(setting, item) + "\n")
            .collect(),
        value => word(setting, value) + "\n",
    };
    ui.raw(&text);
    Ok(ExitCode::SUCCESS)
}

/// Changes one setting and prints the previous value.
fn change(
    context: &Context,
    setting: &Setting,
    value: Option<&Value>,
    json: bool,
    ui: &Ui,
) -> Outcome {
    let before = settings::change(context, setting, value)?;
    let fields = SettingChange {
        key: setting.name,
        value: value.map(|value| public(setting, value)),
        was: before.as_ref().map(|value| public(setting, value)),
    };
    let name = setting.name;
    let brief = |value: &Value| ui::shorten(&shown(setting, value), VALUE_WIDTH);
    let default = brief(&default(context, setting));
    let was = before.as_ref().map(brief);
    let mut text = match (value, was) {
        (Some(value), Some(was)) => format!("{name} = {} (was {was})\n", brief(value)),
        (Some(value), None) => format!("{name} = {} (was {default}, the default)\n", brief(value)),
        (None, Some(was)) => format!("{name} = {default}, the default (was {was})\n"),
        (None, None) => {
            let text = format!("{name} was not set; the default is {default}\n");
            return ui.done(json, fields, &text);
        }
    };
    if let (Some(variable), Some(over)) = (setting.variable, context.environment.over(setting)) {
        let over = brief(&over.into());
        text.push_str(&format!("! {variable} is set and overrides it: {over}\n"));
    }
    match (value, setting.kind) {
        // The previous secret is neither shown nor kept, so no undo is printed.
        (_, Kind::Secret) if before.is_some() => {}
        (Some(_), Kind::Address) => text.push_str("→ anamnesis init   (reaches it and joins)\n"),
        _ => text.push_str(&format!("Undo: {}\n", undo(setting, before.as_ref()))),
    }
    ui.done(json, fields, &text)
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
