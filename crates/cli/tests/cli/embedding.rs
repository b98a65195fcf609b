//! The embedding model: adding, using and removing it. The model of these tests is made up, so its
//! vectors mean nothing.

use anamnesis_testkit::{
    home::{NoteText, TestHome},
    tiny_model::TinyModel,
    wait_for,
};

use crate::{
    home, id,
    recall::{FITTING, filled, prompt},
};

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

/// Adds the made-up model.
fn add_model(home: &TestHome) -> String {
    let file = home.store().with_file_name("tiny.bin");
    std::fs::write(&file, TinyModel::new().bytes()).unwrap();
    let added = home.run(&format!("model add {}", file.display()));
    assert_eq!(added.code, Some(0), "{added:?}");
    added.stdout
}

/// Waits for the deferred process, which `model add` starts.
fn wait_for_vectors(home: &TestHome) {
    wait_for("a vector of each note", || {
        let model = &home.run("model --json").json()["model"];
        !model.is_null() && model["vectors"] == model["notes"]
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

    let added = add_model(&home);
    let [name] = &models(&home)[..] else {
        panic!("{:?}", models(&home));
    };
    let sha256 = name.strip_suffix(".bin").unwrap();
    assert!(added.contains(sha256), "{added}");
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

    // With prompts, and not at all.
    let prompt = || {
        home.command(["why", "--try", "paint the red boat", "--json"])
            .run()
            .stdout
    };
    assert!(!prompt().contains("similarity"), "{}", prompt());
    home.run("config set recall.semantic prompt").well();
    assert!(prompt().contains("\"similarity\""), "{}", prompt());
    home.run("config set recall.semantic off").well();
    assert!(!search("red").contains("similarity"));
    home.run("config unset recall.semantic").well();

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
fn a_prompt_is_answered_by_words_where_the_model_is_damaged() {
    let home = filled();
    add_model(&home);
    wait_for_vectors(&home);
    home.run("config set recall.semantic prompt").well();
    let copy = home.store().join("embedding").join(&models(&home)[0]);
    std::fs::write(copy, b"E5S1").unwrap();
    let injected = prompt(&home, "03:00:01", FITTING);
    assert!(
        injected.contains("Integration tests need the stub server"),
        "{injected}"
    );
    let log = std::fs::read_to_string(home.store().join("log/anamnesis.log")).unwrap();
    assert!(log.contains("not a usable embedding model"), "{log}");
}

#[test]
fn a_model_whose_bytes_have_changed_is_named() {
    let home = with_notes();
    add_model(&home);
    wait_for_vectors(&home);
    assert!(home.run("model --json").json()["model"]["fault"].is_null());
    let copy = home.store().join("embedding").join(&models(&home)[0]);
    let mut bytes = std::fs::read(&copy).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    std::fs::write(copy, bytes).unwrap();
    let fault = "the file has changed since it was added; search uses words alone";
    let model = home.run("model").well();
    assert!(model.contains(fault), "{model}");
    assert!(home.run("doctor").stdout.contains("the file has changed"));
}

#[test]
fn measurements_and_the_viewer_ask_the_model() {
    let home = with_notes();
    let question = serde_json::json!({
        "query": "red", "relevant_ids": [id("7Q4KZ9")], "note_titles": ["the red boat"],
        "approved": true, "source": "hand",
    });
    std::fs::create_dir_all(home.store().join("eval")).unwrap();
    std::fs::write(
        home.store().join("eval/eval.jsonl"),
        format!("{question}\n"),
    )
    .unwrap();
    add_model(&home);
    wait_for_vectors(&home);
    home.run("config set recall.semantic prompt").well();
    let found = home.run("eval run --json").json();
    assert_eq!(found["recall"]["n_cases"], 1, "{found}");

    // Only who asks the model reports that it is damaged.
    let copy = home.store().join("embedding").join(&models(&home)[0]);
    std::fs::write(copy, b"E5S1").unwrap();
    let log = home.store().join("log/anamnesis.log");
    for ask in ["eval run", "/notes?q=red"] {
        let _ = std::fs::remove_file(&log);
        if ask.starts_with('/') {
            let viewer = home.command(["open", "--print"]).viewer();
            let page = viewer.visitor.read(ask).unwrap();
            assert!(page.contains("the red boat"), "{page}");
        } else {
            home.run(ask).well();
        }
        let log = home.log().join("\n");
        assert!(log.contains("not a usable embedding model"), "{ask}: {log}");
    }
}

/// Lists the plugin with the model as installed with this scope.
fn install_plugin(home: &TestHome, scope: &str) {
    let folder = home
        .claude()
        .join("plugins/cache/anamnesis/anamnesis-semantic/1.0.0");
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("e5-small-q4.bin"), TinyModel::new().bytes()).unwrap();
    let installed = serde_json::json!({ "version": 2, "plugins": {
        "anamnesis-semantic@anamnesis": [{ "scope": scope, "installPath": folder }],
    }});
    let list = home.claude().join("plugins/installed_plugins.json");
    std::fs::write(list, installed.to_string()).unwrap();
}

#[test]
fn the_plugin_with_the_model_is_followed() {
    let home = with_notes();
    home.run("reindex").well();
    // A repository's own settings install plugins for a project; they choose no model.
    install_plugin(&home, "project");
    home.run("internal work").well();
    assert!(models(&home).is_empty());

    install_plugin(&home, "user");
    home.run("internal work").well();
    wait_for_vectors(&home);
    // A person's decision stays.
    home.run("model remove").well();
    home.run("internal work").well();
    assert_eq!(models(&home), ["plugin.json"]);

    std::fs::remove_file(home.store().join("embedding/plugin.json")).unwrap();
    home.run("internal work").well();
    wait_for_vectors(&home);
    let list = home.claude().join("plugins/installed_plugins.json");
    std::fs::write(list, r#"{"version": 2, "plugins": {}}"#).unwrap();
    home.run("internal work").well();
    assert!(models(&home).is_empty());
}

#[test]
fn an_unreadable_list_of_plugins_removes_no_model() {
    let home = with_notes();
    home.run("reindex").well();
    install_plugin(&home, "user");
    home.run("internal work").well();
    let taken = models(&home);
    assert_eq!(taken.len(), 2, "{taken:?}");
    let list = home.claude().join("plugins/installed_plugins.json");
    let whole = std::fs::read_to_string(&list).unwrap();
    for unreadable in [&whole[..whole.len() / 2], "", "[]", r#"{"plugins": 1}"#] {
        std::fs::write(&list, unreadable).unwrap();
        home.run("internal work").well();
        assert_eq!(models(&home), taken, "{unreadable}");
    }
    std::fs::remove_file(&list).unwrap();
    home.run("internal work").well();
    assert_eq!(models(&home), taken);
    // An update replaces the folder of the plugin.
    std::fs::write(&list, &whole).unwrap();
    std::fs::remove_dir_all(home.claude().join("plugins/cache")).unwrap();
    home.run("internal work").well();
    assert_eq!(models(&home), taken);
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
