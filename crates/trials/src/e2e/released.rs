//! A released plugin: installed from its branch, updated to the next version, and taken back.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anamnesis_testkit::client::{Ask, MARKETPLACE, Marketplace, PLUGIN, Sandbox};
use anamnesis_testkit::messages_api::Script;
use anamnesis_testkit::process::{Context as _, Result, TestFailure, wait_until};
use anamnesis_testkit::tiny_model::TinyModel;
use serde_json::{Value, json};

use super::machines::anamnesis;
use super::scenarios::{REQUEST_LIMIT, Stage, check, clean, remember_session};
use super::store::Store;
use crate::{plugin, root};

const MODEL_PLUGIN: &str = "anamnesis-semantic@anamnesis";

/// The versions that are published, in this order.
const VERSIONS: [&str; 2] = ["0.9.1", "0.9.2"];

/// The files of `main` and of the branch are published as a release does it. Notes outlive an update and
/// the way back.
pub(super) fn released(stage: &Stage) -> Result<()> {
    let repository = stage.folder.join("released.git");
    publish_main(&stage.folder.join("main"), &repository)?;
    publish(stage, &repository, VERSIONS[0])?;
    let marketplace = Marketplace::at(&repository)?;

    let machine = Sandbox::new(stage.client, stage.folder)?;
    machine.install_plugin(&marketplace)?;
    expect_version(&machine, VERSIONS[0])?;
    let store = Store::new(&machine.home());
    remember_session(&machine, &store, "Add a discount to the cart")?;

    publish(stage, &repository, VERSIONS[1])?;
    let plugin = |arguments: &[&str]| {
        let arguments = ["plugin"].iter().chain(arguments);
        machine
            .claude(arguments)?
            .successful("claude plugin")
            .map(drop)
    };
    plugin(&["marketplace", "update", "anamnesis"])?;
    plugin(&["update", PLUGIN])?;
    expect_version(&machine, VERSIONS[1])?;
    expect_the_note(&machine)?;

    publish_model(stage, &repository)?;
    plugin(&["install", MODEL_PLUGIN])?;
    expect_model(&machine, true)?;
    plugin(&["uninstall", MODEL_PLUGIN])?;
    expect_model(&machine, false)?;

    // The tag of a version is a marketplace of its own, as CHANGELOG and `RELEASING.md` say.
    plugin(&["marketplace", "remove", "anamnesis"])?;
    plugin(&[
        "marketplace",
        "add",
        &format!("{MARKETPLACE}#anamnesis--v{}", VERSIONS[0]),
    ])?;
    plugin(&["install", PLUGIN])?;
    expect_version(&machine, VERSIONS[0])?;
    expect_the_note(&machine)
}

/// Publishes the checkout's marketplace entry, with the test's address, as the branch `main`.
fn publish_main(folder: &Path, repository: &Path) -> Result<()> {
    let file = root().join(".claude-plugin/marketplace.json");
    let text = fs::read_to_string(&file).context(file.display())?;
    let address = env!("CARGO_PKG_REPOSITORY").trim_start_matches("https://github.com/");
    let copy = folder.join(".claude-plugin/marketplace.json");
    write(&copy, &text.replace(address, MARKETPLACE))?;
    Marketplace::publish(folder, repository).map(drop)
}

/// Publishes a copy of the assembled plugin with another version.
fn publish(stage: &Stage, repository: &Path, version: &str) -> Result<()> {
    let tree = stage.folder.join(format!("tree-{version}"));
    let mut copy = Command::new("cp");
    let copied = copy
        .arg("-R")
        .arg(stage.plugin)
        .arg(&tree)
        .status()
        .context("cp")?;
    check(copied.success(), || format!("cp: {copied}"))?;
    let manifest = tree.join(".claude-plugin/plugin.json");
    let mut content = read_json(&manifest)?;
    content["version"] = json!(version);
    write(&manifest, &content.to_string())?;
    plugin::publish(&root(), &tree, repository, "a test")
        .map(drop)
        .map_err(|error| TestFailure::new(error.to_string()))
}

/// Publishes a made-up model on the branch of the plugin that has it.
fn publish_model(stage: &Stage, repository: &Path) -> Result<()> {
    let file = stage.folder.join("model.bin");
    fs::write(&file, TinyModel::new().bytes()).context(file.display())?;
    let tree = stage.folder.join("semantic");
    let failure = |error: Box<dyn Error + Send + Sync>| TestFailure::new(error.to_string());
    plugin::assemble_semantic(&root(), &file, &tree).map_err(failure)?;
    plugin::publish(&root(), &tree, repository, "a test")
        .map(drop)
        .map_err(failure)
}

/// A session's deferred process takes the model over, or removes it.
fn expect_model(machine: &Sandbox, is_there: bool) -> Result<()> {
    machine.api().play(Script::default());
    clean(&machine.ask("Is the cart ready?", &Ask::default())?)?;
    wait_until(REQUEST_LIMIT, "the model's coming or going", || {
        let known = anamnesis(machine, &["model", "--json"]).ok()?;
        (known.contains("sha256") == is_there).then_some(())
    })
}

fn expect_version(machine: &Sandbox, version: &str) -> Result<()> {
    let manifest: PathBuf = machine.plugin_root()?.join(".claude-plugin/plugin.json");
    let installed = read_json(&manifest)?["version"].clone();
    check(installed == version, || {
        format!("installed {installed}: expected {version}")
    })
}

/// The next session is given the note of the first.
fn expect_the_note(machine: &Sandbox) -> Result<()> {
    machine.api().play(Script::default());
    let next = machine.ask("What did we do last?", &Ask::default())?;
    clean(&next)?;
    let starts = next
        .hooks
        .iter()
        .filter(|hook| hook.name.starts_with("SessionStart"));
    let printed: Vec<&str> = starts.map(|hook| hook.stdout.as_str()).collect();
    check(
        printed.iter().any(|text| text.contains("Add a discount")),
        || format!("the session's start printed {printed:?}"),
    )
}

fn read_json(path: &Path) -> Result<Value> {
    let bytes = fs::read(path).context(path.display())?;
    serde_json::from_slice(&bytes).context(path.display())
}

fn write(path: &Path, text: &str) -> Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).context(folder.display())?;
    }
    fs::write(path, text).context(path.display())
}
