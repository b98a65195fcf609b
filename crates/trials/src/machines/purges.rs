//! Histories with two purges: what one machine purges is in a tag, a branch or a stash of another, and a
//! machine that was offline changed it meanwhile. In the end no file and no object has either text.

use std::{
    fs,
    io::Write as _,
    path::{Path, PathBuf},
    process::Stdio,
};

use super::{
    fleet::{Fleet, Machine, NAMES, files_below, git, succeeded},
    report,
    trace::Ended,
};
use crate::{Result, at};

/// The text that the first machine purges, and the one that the second purges.
const TEXTS: [&str; 2] = ["gr33n-T7-apple", "bl4ck-K9-pear"];

/// What keeps the old history on the second machine.
const KEEPERS: [&str; 4] = ["nothing", "tag", "branch", "stash"];

/// Plays each history. Returns the faults.
pub(super) fn run(program: &Path) -> Result<Vec<String>> {
    let mut faults = Vec::new();
    for keeper in KEEPERS {
        let folder = tempfile::tempdir()?;
        let mut fleet = Fleet::new(folder.path(), program, &NAMES)?;
        play(&mut fleet, keeper).map_err(|error| format!("kept by a {keeper}: {error}"))?;
        for text in TEXTS {
            let places = holding(folder.path(), text)?;
            faults.extend(
                places
                    .into_iter()
                    .map(|place| format!("kept by a {keeper}: {} has {text}", place.display())),
            );
        }
    }
    let count = faults.len();
    report(&format!(
        "two purges, {} histories: {count} faults",
        KEEPERS.len()
    ));
    Ok(faults)
}

fn play(fleet: &mut Fleet, keeper: &str) -> Result {
    let [laptop, desktop, _] = fleet.machines.as_slice() else {
        return Err("expected three machines".into());
    };
    for (number, text) in TEXTS.iter().enumerate() {
        let title = format!("Guests {number}");
        let write = ["write", "--stdin", "--title", &title, "--project", "shop"];
        let written = feed(laptop, &write, &format!("They say {text}."))?;
        expect(&written, 0)?;
    }
    for machine in &fleet.machines {
        sync(machine)?;
    }
    let memory = desktop.home.root().join("memory");
    match keeper {
        "tag" | "branch" => drop(git(&memory, &[keeper, "kept"])?),
        "stash" => {
            change(desktop, TEXTS[0])?;
            let stash = ["-c", "user.name=a", "-c", "user.email=a@b.example", "stash"];
            git(&memory, &stash)?;
        }
        _ => {}
    }
    fleet.pass_time();
    let [laptop, desktop, server] = fleet.machines.as_mut_slice() else {
        return Err("expected three machines".into());
    };
    server.set_offline(true)?;
    change(server, TEXTS[1])?;
    expect(&purge(laptop, TEXTS[0])?, 0)?;
    sync(laptop)?;
    let says = sync(desktop)?;
    if says.contains("deleted refs/") != (keeper != "nothing") {
        return Err(format!("the dropped reference is not named: {says}").into());
    }
    expect(&purge(desktop, TEXTS[1])?, 0)?;
    for _ in 0..2 {
        sync(desktop)?;
        sync(laptop)?;
    }
    // What the other machine purged is gone here, and a purge of it says so.
    expect(&purge(desktop, TEXTS[0])?, 1)?;
    expect(&purge(laptop, TEXTS[1])?, 1)?;
    server.set_offline(false)?;
    sync(server)?;
    // What a person wrote meanwhile stays, with the text, until it is purged there.
    purge(server, TEXTS[1])?;
    for machine in [&*server, desktop, laptop] {
        sync(machine)?;
    }
    for machine in [&*server, desktop, laptop] {
        let found = succeeded(&mut machine.command(&["list", "--everywhere", "--json"]))?;
        if found.matches("Guests ").count() < TEXTS.len() {
            return Err(format!("{} lost a note: {found}", machine.name).into());
        }
    }
    Ok(())
}

/// Syncs a machine, and returns what the sync reported.
fn sync(machine: &Machine) -> Result<String> {
    let ended: Ended = machine.sync().output()?.into();
    expect(&ended, 0)?;
    Ok(ended.stdout)
}

/// Purges a text as a person does. Exit code 1 says that it is nowhere.
fn purge(machine: &Machine, text: &str) -> Result<Ended> {
    feed(machine, &["purge", "--find", "--yes"], text)
}

fn feed(machine: &Machine, arguments: &[&str], input: &str) -> Result<Ended> {
    let mut child = machine.command(arguments).stdin(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        stdin.write_all(input.as_bytes())?;
    }
    Ok(child.wait_with_output()?.into())
}

fn expect(ended: &Ended, code: i32) -> Result {
    if ended.code == Some(code) {
        return Ok(());
    }
    Err(format!("not exit {code}: {ended:?}").into())
}

/// Adds a line to the note with a text, as an editor does.
fn change(machine: &Machine, text: &str) -> Result {
    for file in files_below(&machine.home.root().join("memory/semantic")) {
        let note = fs::read_to_string(&file).map_err(at(&file))?;
        if note.contains(text) {
            let note = format!("{note}\nThey said {text} again.\n");
            fs::write(&file, note).map_err(at(&file))?;
        }
    }
    Ok(())
}

/// Returns the files below a folder that have a text, and the repositories with an object that has it.
fn holding(root: &Path, text: &str) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for file in files_below(root) {
        let bytes = fs::read(&file).map_err(at(&file))?;
        if bytes
            .windows(text.len())
            .any(|part| part == text.as_bytes())
        {
            found.push(file.clone());
        }
        if file.ends_with("HEAD") && file.with_file_name("objects").is_dir() {
            let folder = file.parent().unwrap_or(root);
            let all = ["cat-file", "--batch-all-objects", "--batch"];
            let directory = format!("--git-dir={}", folder.display());
            let objects = git(root, &[&[directory.as_str()][..], &all].concat())?;
            if objects.contains(text) {
                found.push(folder.to_owned());
            }
        }
    }
    Ok(found)
}
