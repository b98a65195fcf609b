use std::fs;

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, NoteType},
};
use serde_json::json;

use super::*;
use crate::environment::{Caller, Environment};

/// A store in a folder that is also the person's home and the folder of Claude Code.
fn context(folder: &tempfile::TempDir) -> Context {
    let mut environment = Environment::read(Caller::Person);
    environment.store = Some(folder.path().join("store"));
    environment.user_home = Some(folder.path().to_owned());
    environment.claude_folder = Some(folder.path().to_owned());
    environment.claude_state = None;
    environment.remote = None;
    environment.path = None;
    environment.is_off = false;
    environment.is_agent = false;
    Context::open(environment).unwrap()
}

/// The rows of one name.
fn named(context: &Context, name: &str) -> Vec<CheckResult> {
    let rows = examine(context, Depth::Thorough).into_iter();
    rows.filter(|(other, _)| *other == name)
        .map(|(_, result)| result)
        .collect()
}

#[test]
fn checks_that_need_the_store_are_not_made_without_it() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&folder);
    let names = |context: &Context| -> Vec<(&str, Health)> {
        let rows = examine(context, Depth::Thorough).into_iter();
        rows.map(|(name, result)| (name, result.health)).collect()
    };
    assert!(names(&context).contains(&("index", Health::Well)));
    fs::remove_dir_all(folder.path().join("store")).unwrap();
    fs::write(folder.path().join("store"), "a file").unwrap();
    let expected = [
        ("plugin", Health::Unknown),
        ("hooks", Health::Unknown),
        ("store", Health::Broken),
        ("others", Health::Well),
    ];
    assert_eq!(names(&context), expected);
}

#[test]
fn another_memory_beside() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&folder);
    let hook = json!({ "type": "command", "command": "anamnesis inject" });
    for (settings, summary) in [
        (json!({}), "no other memory found"),
        (
            json!({ "enabledPlugins": { "claude-mem@x": true, "mem0@y": false } }),
            "claude-mem@x is on too: both add to what Claude reads",
        ),
        (
            json!({ "hooks": { "SessionStart": [{ "hooks": [hook] }] } }),
            "hooks of the Python release are active, too: sessions are recorded twice",
        ),
    ] {
        let settings = settings.to_string();
        fs::write(folder.path().join("settings.json"), &settings).unwrap();
        let [beside] = &named(&context, "others")[..] else {
            panic!("{settings}");
        };
        assert_eq!(beside.summary(), summary);
        assert_eq!(beside.health == Health::Look, beside.hint.is_some());
    }
}

#[test]
fn a_trigger_that_cannot_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&folder);
    let add = |kind, when: &[&str]| {
        let now = context.environment.now;
        let mut note = Note::new(NoteId::generate(now), NoteType::Procedural, now);
        note.title = "Pushes by force lose work".to_owned();
        note.kind = kind;
        note.when = when.iter().map(|line| (*line).to_owned()).collect();
        let lock = context.notes.lock().unwrap();
        context.notes.create(&lock, &note).unwrap();
        note.id
    };
    // Of another kind of note they are its own affair.
    add(Some(Kind::Fact), &["monday"]);
    assert!(named(&context, "warnings").is_empty());
    let warning = Some(Kind::Antipattern);
    let id = add(warning, &["cmd: git push --force", "cmd: git", "push"]);
    let [found] = &named(&context, "warnings")[..] else {
        panic!("not named once");
    };
    let [summary, first, second] = &found.lines[..] else {
        panic!("{found:?}");
    };
    assert_eq!(summary, "2 lines under `when` passed over");
    let file = format!("memory/procedural/{id}.md");
    assert!(first.starts_with(&file) && first.contains(": `cmd: git` would come up"));
    assert!(second.starts_with(&file) && second.contains(": a trigger is `cmd: …`"));
    assert_eq!(found.health, Health::Look);
}

#[test]
fn a_text_that_an_editor_left_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&folder);
    let path = context
        .home
        .derived()
        .join("edit-01JZ0000000000000000000000.md");
    std::fs::create_dir_all(context.home.derived()).unwrap();
    let file = std::fs::File::create(&path).unwrap();
    file.set_modified(context.environment.now.into()).unwrap();
    assert!(
        named(&context, "unsaved").is_empty(),
        "the editor may be open"
    );
    let hours = chrono::TimeDelta::hours(2);
    file.set_modified((context.environment.now - hours).into())
        .unwrap();
    let [found] = &named(&context, "unsaved")[..] else {
        panic!("not named once");
    };
    assert_eq!(found.health, Health::Look);
    assert!(found.lines[1].ends_with("edit-01JZ0000000000000000000000.md"));
}

#[test]
fn quick_checks_say_the_same_of_a_sound_store() {
    let folder = tempfile::tempdir().unwrap();
    let context = context(&folder);
    let rows = |depth| -> Vec<(&str, Health)> {
        let rows = examine(&context, depth).into_iter();
        rows.map(|(name, result)| (name, result.health)).collect()
    };
    assert_eq!(rows(Depth::Quick), rows(Depth::Thorough));
}
