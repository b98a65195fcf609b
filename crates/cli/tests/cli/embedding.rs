//! The embedding model: adding, using and removing it. The model of these tests is made up, so its
//! vectors mean nothing.

use anamnesis_testkit::{
    home::{NoteText, TestHome},
    tiny_model::TinyModel,
    wait_for,
};

use crate::{home, id};

fn with_notes() -> TestHome {
    let home = home();
    home.add(&NoteText::new(&id("7Q4KZ9"), "the red boat"));
    home.add(&NoteText::new(&id("B2M6RD"), "the blue boat"));
    home
}

fn models(home: &TestHome) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(home.store().join("embedding")) else {
        return Vec::new();
    };
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.collect()
}

/// Waits for the deferred process, which `model add` starts.
fn wait_for_vectors(home: &TestHome) {
    wait_for("a vector of each note", || {
        home.run("model")
            .stdout
            .contains("notes: 2 of 2 have a vector\n")
    });
}

#[test]
fn a_model_gives_notes_vectors_until_it_is_removed() {
    let home = with_notes();
    let search = |query: &str| home.run(&format!("search {query} --json")).stdout;
    let before = search("red");
    assert!(!before.contains("similarity"), "{before}");
    assert!(
        home.run("model")
            .stdout
            .starts_with("no model: search uses words alone\n")
    );

    let file = home.store().with_file_name("tiny.bin");
    std::fs::write(&file, TinyModel::new().bytes()).unwrap();
    let added = home.run(&format!("model add {}", file.display()));
    assert_eq!(added.code, Some(0), "{added:?}");
    let [name] = &models(&home)[..] else {
        panic!("{:?}", models(&home));
    };
    let sha256 = name.strip_suffix(".bin").unwrap();
    assert!(added.stdout.contains(sha256), "{added:?}");
    wait_for_vectors(&home);
    let status = home.run("status").stdout;
    assert!(
        status.contains("search: words and meaning, 2 of 2 notes"),
        "{status}"
    );
    let doctor = home.run("doctor").stdout;
    assert!(
        doctor.contains("words and meaning; 2 of 2 notes have a vector"),
        "{doctor}"
    );
    let found = search("red");
    assert!(
        found.contains("\"similarity\"") && found.contains("\"matched\""),
        "{found}"
    );
    // A required prefix switches meaning off.
    assert!(!search("+red*").contains("similarity"));

    // A changed note gets a new vector.
    home.add(&NoteText::new(&id("7Q4KZ9"), "the green boat"));
    assert!(search("green").contains("green"));
    home.run("internal work").well();
    wait_for_vectors(&home);

    let removed = home.run("model remove").stdout;
    assert_eq!(removed, "removed: search uses words alone\n");
    assert!(models(&home).is_empty());
    assert!(!search("green").contains("similarity"));
    let json = home.run("model --json").stdout;
    assert!(json.contains("\"model\": null"), "{json}");
}

#[test]
fn a_file_that_is_no_model_is_not_kept() {
    let home = with_notes();
    let file = home.store().with_file_name("broken.bin");
    let good = TinyModel::new().bytes();
    for bytes in [&b"GGUF"[..], &good[..good.len() / 2]] {
        std::fs::write(&file, bytes).unwrap();
        let output = home.run(&format!("model add {}", file.display()));
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(
            output.stderr.contains("not a usable embedding model"),
            "{output:?}"
        );
    }
    let folder = home.store().with_file_name("folder.bin");
    std::fs::create_dir(&folder).unwrap();
    assert_eq!(
        home.run(&format!("model add {}", folder.display())).code,
        Some(1)
    );
    assert!(models(&home).is_empty());
}
