//! Every setting with its value, source and meaning; pausing and resuming.

use anamnesis_app::{
    Error,
    context::Context,
    format::{count, number},
    pause as operation,
    settings::{self, EffectiveSetting, SettingSource, word},
    status::at_start,
};
use anamnesis_store::settings::{Kind, SETTINGS, Setting, config::Config};
use anamnesis_text::clean::{clean, one_line};
use maud::{Markup, html};
use serde_json::{Map, Value};

use crate::{
    layout::{self, SURE, choice, line},
    visit::{Answered, Visit},
};

pub(crate) fn show(visit: &Visit) -> Answered {
    let context = &visit.context;
    let keys = Config::keys(&context.home).unwrap_or_default();
    let mut groups: Vec<(&str, Vec<&Setting>)> = Vec::new();
    for setting in SETTINGS {
        match groups.iter_mut().find(|(name, _)| *name == group(setting)) {
            Some((_, settings)) => settings.push(setting),
            None => groups.push((group(setting), vec![setting])),
        }
    }
    let can_test = context.config.reflection.provider != "heuristic" && !visit.is_read_only;
    let main = html! {
        h1 { "Settings" }
        @if let Some(problem) = &context.config.problem {
            p.message { "config.json: " (one_line(problem)) }
        }
        section { h2 { "Recording" } (recording(visit)?) }
        section id="next" data-live="notes" { h2 { "What the next session gets" } (next(visit)?) }
        @for (name, settings) in &groups {
            section {
                h2 { (heading(name)) }
                ul.settings { @for setting in settings { (row(visit, &keys, setting)) } }
                @if can_test && *name == "reflection" {
                    p.actions { (layout::button("/settings/test", &[], "Test the model")) }
                }
            }
        }
        p.hint { "Settings are in " code { (context.shown(&context.home.config())) }
            ". An environment variable overrides the file." }
    };
    Ok(layout::page(visit, "Settings", &main))
}

/// The block that the next session of a project starts with, under the settings of now.
fn next(visit: &Visit) -> Result<Markup, Error> {
    let context = &visit.context;
    let index = visit.index()?;
    let named = visit.query.get("project");
    let project = context.project(named);
    let folder = Context::current_folder().filter(|_| named.is_none());
    let journal = context.records()?;
    let (notes, block) = at_start(
        context,
        &index,
        journal.as_ref(),
        &project,
        folder.as_deref(),
    )?;
    let projects = index.counts()?.by_project.into_keys();
    let projects = projects.map(|key| (key.clone(), line(&key)));
    let off = operation::why(context, &[], || project.clone());
    Ok(html! {
        form.filters method="get" action="/settings" data-search="next" {
            (choice("project", "In the project", "That of this folder", projects, named))
            noscript { button { "Show" } }
        }
        @if let Some(off) = off { p.message { "Nothing: " (off.reason()) } }
        @else if block.text.is_empty() {
            p { "Nothing yet: no note is for " bdi { (line(&project.key)) } "." }
        } @else {
            details open {
                summary { (count(notes, "note")) ", about " (number(block.tokens())) " tokens, in "
                    bdi { (line(&project.key)) } }
                pre.exact tabindex="0" { "\n" (clean(&block.text)) }
            }
        }
    })
}

/// The heading of a group in plain words.
fn heading(group: &str) -> &str {
    match group {
        "general" => "In general",
        "recall" => "Which notes Claude gets",
        "recording" => "What is recorded",
        "retention" => "How long records are kept",
        "reflection" => "Notes by a model",
        "sync" => "Between your machines",
        "learn" => "What is learned from use",
        "redact" => "What is masked",
        "summaries" => "Summaries of sessions",
        other => other,
    }
}

/// The heading of a setting: its group in `config.json`.
fn group(setting: &Setting) -> &'static str {
    setting
        .name
        .split_once('.')
        .map_or("general", |(group, _)| group)
}

/// Returns what switches recording off, and the paused projects.
fn recording(visit: &Visit) -> Result<Markup, Error> {
    let config = &visit.context.config;
    let everywhere = config.paused.everywhere;
    let off = operation::why(&visit.context, &[], || visit.context.project(None));
    let projects = visit.index()?.counts()?.by_project;
    let to_pause = projects.keys().filter(|key| !config.paused.names(key));
    let button =
        |fields: &[(&str, &str)], label: &str| layout::button("/settings/pause", fields, label);
    Ok(html! {
        p {
            @match off {
                Some(off) => { span.chip.warn { "off" } " " (off.reason()) }
                None => { span.chip.ok { "on" } " Sessions are recorded and get notes." }
            }
        }
        @if config.paused.projects.is_empty() { p.hint { "No project is paused." } }
        @else {
            p.hint { "Paused projects: "
                @for project in &config.paused.projects { code { (line(project)) } " " } }
        }
        @if config.exclude.is_empty() { p.hint { "No folder is excluded." } }
        @else {
            p.hint { "Excluded folders: "
                @for folder in &config.exclude { code { (line(folder)) } " " } }
        }
        @if !config.recording.only.is_empty() {
            p.hint { "Only these folders are recorded: "
                @for folder in &config.recording.only { code { (line(folder)) } " " } }
        }
        @if !visit.is_read_only {
            div.actions {
                @if everywhere { (button(&[("resume", "yes")], "Resume everywhere")) }
                @else { (button(&[], "Pause everywhere")) }
                @for project in &config.paused.projects {
                    (button(&[("project", project), ("resume", "yes")],
                        &format!("Resume {}", line(project))))
                }
            }
            details {
                summary { "Pause a project" }
                form.filters method="post" action="/settings/pause" {
                    label { span { "Project" }
                        select name="project" required {
                            @for key in to_pause { option value=(key) { (line(key)) } }
                        }
                    }
                    button { "Pause" }
                }
            }
        }
    })
}

/// A text of ours with its words in backticks as code.
fn with_code(text: &str) -> Markup {
    html! {
        @for (place, part) in text.split('`').enumerate() {
            @if place % 2 == 1 { code { (part) } } @else { (part) }
        }
    }
}

fn row(visit: &Visit, keys: &Map<String, Value>, setting: &Setting) -> Markup {
    let found = EffectiveSetting::new(&visit.context, keys, setting);
    let is_changeable = !visit.is_read_only && setting.kind != Kind::Paused;
    html! {
        li {
            div.line {
                span.meaning { (with_code(setting.meaning)) }
                strong { bdi { (shown(setting, &found.value)) } }
                @if is_changeable && setting.kind == Kind::Switch {
                    @let (value, label) = switch(&found.value);
                    (layout::button("/settings/change",
                        &[("key", setting.name), ("value", value), (SURE, "yes")], label))
                }
            }
            div.facts {
                code { (setting.name) }
                @match found.source {
                    SettingSource::Variable(variable) => { span.chip.warn { (variable) } }
                    SettingSource::File => { span.chip { "config.json" } }
                    SettingSource::Default => { span.hint { "default" } }
                }
            }
            @if let Some(hidden) = &found.hidden {
                p.hint { "Over " bdi { (shown(setting, hidden)) } " in config.json." }
            }
            @if is_changeable && setting.kind != Kind::Switch {
                details {
                    summary aria-label={ "Change " (setting.name) } { "Change" }
                    form.filters method="post" action="/settings/change" {
                        input type="hidden" name="key" value=(setting.name);
                        label { span { (with_code(&wanted(setting.kind))) }
                            (field(setting, &found.value)) }
                        @if setting.kind == Kind::Secret {
                            // A second page would have to repeat the key.
                            label { span { "Replace the key in config.json" }
                                input type="checkbox" name=(SURE) value="yes" required; }
                        }
                        button { "Save" }
                    }
                    @if setting.written(keys).is_some() {
                        (layout::button("/settings/change",
                            &[("key", setting.name), ("default", "yes")], "Use the default"))
                    }
                }
            }
        }
    }
}

/// A value in one line, as people read it.
fn shown(setting: &Setting, value: &Value) -> String {
    match (setting.kind, value.as_str(), value.as_u64()) {
        (Kind::Choice(_), Some(word), _) => choice_shown(setting, word),
        (Kind::Number(_), _, Some(amount)) => number(usize::try_from(amount).unwrap_or(usize::MAX)),
        _ => settings::shown(setting, value),
    }
}

/// A word of a choice with what it means.
fn choice_shown(setting: &Setting, word: &str) -> String {
    let meaning = match (setting.name, word) {
        ("recall.semantic", "off") => "nowhere",
        ("recall.semantic", "search") => "in searches",
        ("recall.semantic", "prompt") => "with your prompts, too",
        ("reflection.provider", "heuristic") => "no model",
        ("reflection.provider", "openai") => "OpenAI",
        ("reflection.provider", "deepseek") => "DeepSeek",
        ("reflection.provider", "local") => "your own server",
        ("reflection.provider", "claude") => "Claude Code",
        ("review", "off") => "used at once",
        ("review", "proposals") => "after your approval",
        ("session_line", "on") => "at a start and with prompts",
        ("session_line", "problems") => "only about problems",
        ("session_line", "off") => "never",
        ("recording.headless", "on") => "everything",
        ("recording.headless", "summary") => "prompts and answers",
        ("recording.headless", "off") => "nothing",
        _ => return line(word),
    };
    format!("{meaning} ({word})")
}

/// The other position of a switch, and the button's label for it.
fn switch(value: &Value) -> (&'static str, &'static str) {
    match value.as_bool() {
        Some(true) => ("off", "Switch off"),
        _ => ("on", "Switch on"),
    }
}

/// What a person types for a setting.
fn wanted(kind: Kind) -> String {
    match kind {
        Kind::Number(_) => "The new number".to_owned(),
        Kind::Text | Kind::Choice(_) => "The new value".to_owned(),
        kind if kind.is_list() => "The new values, one per line".to_owned(),
        kind => format!("The new value: {}", kind.expected()),
    }
}

/// The field in which a value is typed.
fn field(setting: &Setting, value: &Value) -> Markup {
    let typed = match value {
        Value::Null => String::new(),
        Value::Array(items) => {
            let items = items.iter().map(|item| line(&word(setting, item)));
            items.collect::<Vec<_>>().join("\n")
        }
        value => line(&word(setting, &settings::public(setting, value))),
    };
    html! {
        @match setting.kind {
            Kind::Choice(words) => {
                select name="value" {
                    @for word in words { option value=(word) selected[*word == typed] { (choice_shown(setting, word)) } }
                }
            }
            kind if kind.is_list() => {
                textarea name="value" rows="4" { "\n" (typed) }
            }
            Kind::Secret => { input type="password" name="value" required autocomplete="off"; }
            Kind::Number(max) => {
                input type="number" name="value" min="0" max=(max) required value=(typed);
            }
            _ => { input name="value" required value=(typed) autocomplete="off"; }
        }
    }
}

/// Changes one setting, after a confirmation.
pub(crate) fn change(visit: &Visit) -> Answered {
    let context = &visit.context;
    let key = visit.form.get("key").unwrap_or_default();
    let setting = settings::changeable(context, key)?;
    let typed = visit.form.get("value").unwrap_or_default();
    let value = if visit.form.get("default").is_some() {
        None
    } else {
        let words: Vec<String> = if setting.kind.is_list() {
            let lines = typed.lines().map(str::trim);
            let lines = lines.filter(|line| !line.is_empty());
            lines.map(str::to_owned).collect()
        } else {
            vec![typed.to_owned()]
        };
        Some(settings::parse(context, setting, &words)?)
    };
    if !visit.is_confirmed() {
        if setting.kind == Kind::Secret && value.is_some() {
            return Err(Error::usage(
                "the box that confirms the new key is not ticked",
            ));
        }
        let keys = Config::keys(&context.home).unwrap_or_default();
        let now = EffectiveSetting::new(context, &keys, setting).value;
        let new = value.unwrap_or_else(|| settings::default(context, setting));
        let question = format!(
            "{} Change it to {}? It is {} now.",
            setting.meaning.replace('`', ""),
            shown(setting, &new),
            shown(setting, &now)
        );
        return Ok(layout::ask(visit, &question, "Change it"));
    }
    settings::change(context, setting, value.as_ref())?;
    Ok(layout::done("/settings", "saved", None))
}

/// Pauses or resumes a project, or everything.
pub(crate) fn pause(visit: &Visit) -> Answered {
    let project = visit.form.get("project");
    let what = project.map_or_else(|| "everywhere".to_owned(), line);
    let is_resumed = visit.form.get("resume").is_some();
    if !visit.is_confirmed() {
        let (verb, effect) = if is_resumed {
            ("Resume", "recorded and get notes again")
        } else {
            ("Pause", "neither recorded nor given notes")
        };
        let question = format!("{verb} {what}? Sessions are {effect}.");
        return Ok(layout::ask(visit, &question, verb));
    }
    let word = if is_resumed {
        operation::resume(&visit.context, project)?;
        "resumed"
    } else {
        operation::pause(&visit.context, project)?;
        "paused"
    };
    Ok(layout::done("/settings", word, None))
}

/// Asks the configured model for one word.
pub(crate) fn test(visit: &Visit) -> Answered {
    settings::test_model(&visit.context)?;
    Ok(layout::done("/settings", "answers", None))
}
