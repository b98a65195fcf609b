//! Notes that the Python version wrote are read as it reads them, and come back byte for byte.

use std::{fs, path::Path};

use anamnesis_note::note::NoteFile;
use anamnesis_testkit::home::TestHome;
use serde_json::{Map, Value};

use crate::{SESSION, home};

/// What the Python version reads of a note, by its name for the key.
type Keys = Map<String, Value>;

/// The notes with what the Python version reads of them, by name.
fn fixtures() -> Vec<(String, Vec<u8>, Keys)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/python");
    let expected = fs::read(folder.join("expected.json")).unwrap();
    let expected: Keys = serde_json::from_slice(&expected).unwrap();
    assert!(expected.len() >= 14);
    expected
        .into_iter()
        .map(|(name, keys)| {
            let bytes = fs::read(folder.join(format!("{name}.md"))).unwrap();
            (name, bytes, keys.as_object().unwrap().clone())
        })
        .collect()
}

fn text<'a>(keys: &'a Keys, key: &str) -> &'a str {
    keys[key].as_str().unwrap()
}

/// A home with all of them, and the path of each.
fn store() -> (TestHome, Vec<(String, String, Keys)>) {
    let home = home();
    let placed = fixtures()
        .into_iter()
        .map(|(name, bytes, keys)| {
            let tree = match text(&keys, "scope") {
                "portable" => "memory",
                _ => "local",
            };
            let path = format!("{tree}/{}/{}.md", text(&keys, "type"), text(&keys, "id"));
            home.write(&path, bytes);
            (name, path, keys)
        })
        .collect();
    (home, placed)
}

#[test]
fn every_field_reads_back_equal() {
    // YAML-11, YAML-13
    let (home, placed) = store();
    for (name, path, expected) in placed {
        let id = text(&expected, "id");
        let shown = home.run(&format!("show {id} --json")).json();
        for key in [
            "id",
            "type",
            "body",
            "project",
            "machine_id",
            "scope",
            "user_id",
            "workspace_id",
            "created_at",
            "updated_at",
            "confidence",
        ] {
            assert_eq!(shown[key], expected[key], "{name}: {key}");
        }
        let bytes = fs::read(home.store().join(path)).unwrap();
        let file = NoteFile::parse(&bytes, id.parse().unwrap()).unwrap();
        let note = file.note();
        // JSON has titles without control characters; an empty tag is passed over everywhere.
        assert_eq!(note.title, expected["title"], "{name}");
        let tags = expected["tags"].as_array().unwrap().iter();
        let tags: Vec<_> = tags.filter(|tag| **tag != "").cloned().collect();
        assert_eq!(Value::from(note.tags.clone()), Value::from(tags), "{name}");
        assert_eq!(note.source.as_str(), expected["prov_source"], "{name}");
        assert_eq!(
            note.model.as_deref().unwrap_or(""),
            expected["prov_model"],
            "{name}"
        );
        assert_eq!(
            note.session.as_deref().unwrap_or(""),
            expected["prov_session"],
            "{name}"
        );
        assert_eq!(
            Value::from(note.supersedes.clone()),
            expected["supersedes"],
            "{name}"
        );
    }
    let doctor = home.run("doctor");
    assert!(
        doctor.stdout.contains("✓ notes      14 notes readable"),
        "{doctor:?}"
    );
}

#[test]
fn a_change_and_its_undo_leave_every_byte() {
    // YAML-14, YAML-15
    let (home, placed) = store();
    for (name, path, expected) in placed {
        let id = text(&expected, "id");
        let file = home.store().join(path);
        let before = fs::read(&file).unwrap();
        for (change, undo) in [
            (format!("pin {id}"), format!("pin {id} --off")),
            (format!("mute {id}"), format!("mute {id} --off")),
            (format!("forget {id}"), format!("restore {id}")),
        ] {
            assert_eq!(home.run(&change).code, Some(0), "{name}: {change}");
            assert_ne!(fs::read(&file).unwrap(), before, "{name}: {change}");
            assert_eq!(home.run(&undo).code, Some(0), "{name}: {undo}");
            assert_eq!(fs::read(&file).unwrap(), before, "{name}: {undo}");
        }
    }
}

#[test]
fn a_session_is_given_them() {
    let (home, _) = store();
    home.run("reindex").well();
    let given = home.hook(&home.start(SESSION, "startup")).well();
    let injected = home.run("inject --k 50").well();
    for title in ["Only here", "Front matter", "Windows line ends"] {
        assert!(given.contains(title), "{title}: {given}");
        assert!(injected.contains(title), "{title}: {injected}");
    }
    assert!(
        injected.contains("Distilled") && injected.contains("Ship it"),
        "{injected}"
    );
    // What `merge` and `reflection` replaced does not come up.
    assert!(!given.contains("Rate limits live in"), "{given}");
    assert_eq!(given.matches("anamnesis-context>").count(), 2);
}
