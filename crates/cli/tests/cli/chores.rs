//! `dedup`, `migrate`, `backfill-provenance`, `normalise`, `reatomise`, `merge`: shown first, done as one
//! batch.

use std::fs;

use anamnesis_testkit::{
    home::{NoteText, TestHome},
    model_server::{ModelServer, says},
};

use crate::{
    home, id, model, purge, snapshot,
    upkeep::{applied, tree},
};

fn note(short: &str, title: &str) -> NoteText {
    NoteText::new(&id(short), title)
}

/// A home with a bit of work for every one of them.
fn untidy() -> TestHome {
    let home = home();
    for note in [
        note("AAAAAA", "Linter").body("Run the linter."),
        note("BBBBBB", "It's the linter")
            .body("\nRun the linter.\n")
            .with("type", "procedural")
            .with("project", "github.com/acme/cart")
            .at("2025-12-20T03:04:05+00:00"),
        note("CCCCCC", "Two tasks").with("kind", "task"),
        note("DDDDDD", "Two tasks").with("kind", "task"),
        note("EEEEEE", "Imported")
            .with("tags", "[import, CI, ci]")
            .body("one"),
        note("FFFFFF", "Of a session")
            .with("tags", "[session]")
            .body("two"),
        note("GGGGGG", "Distilled")
            .with("tags", "[session, reflection]")
            .with("prov_source", "reflection")
            .body("three"),
        note("HHHHHH", "Merged")
            .with("tags", "[import]")
            .with("prov_source", "merge")
            .body("four"),
        note("JJJJJJ", "Deploys").body("## Staging\n\nBy hand.\n\n## Production\n\nBy CI.\n"),
    ] {
        home.add(&note);
    }
    home
}

/// Checks that a run without `--apply` changes nothing, and gives what it printed.
fn shown(home: &TestHome, command: &str) -> String {
    let before = tree(home);
    let output = home.run(command);
    assert_eq!(tree(home), before, "{output:?}");
    output.shown()
}

#[test]
fn copies_are_replaced_by_the_oldest() {
    let home = untidy();
    snapshot!(shown(&home, "dedup"), @"
    exit 0
    dedup: remove 01JZ0000000000000000AAAAAA [github.com/acme/shop] dup of 01JZ0000000000000000BBBBBB 'It's the linter'
    dedup: 1 duplicate would be replaced; nothing was changed
    → again with --apply
    ");
    // LLM-06
    snapshot!(applied(&home, "dedup").shown(), @"
    exit 0
    dedup: remove 01JZ0000000000000000AAAAAA [github.com/acme/shop] dup of 01JZ0000000000000000BBBBBB 'It's the linter'
    dedup: 1 duplicate replaced
    committed on this machine (--no-sync)
    Undo: anamnesis undo [BATCH]
    ");
    let kept = home.read(&format!("memory/procedural/{}.md", id("BBBBBB")));
    assert!(
        kept.contains(&format!("supersedes:\n- {}\n", id("AAAAAA"))),
        "{kept}"
    );
    assert!(home.run("show AAAAAA").well().contains("Run the linter."));
}

#[test]
fn notes_move_to_other_projects_by_a_list() {
    let home = untidy();
    let map = home.root().join("map.json");
    let text = format!(
        "{{\"projects\": {{\"github.com/acme/shop\": \"yes: it's # a key\"}}, \"notes\": {{\"{}\": \"global\", \"{}\": \"global\"}}}}",
        id("CCCCCC"),
        id("ZZZZZZ"),
    );
    fs::write(&map, text).unwrap();
    let command = format!("migrate --map {}", map.display());
    snapshot!(shown(&home, &command), @"
    exit 0
    migrate: 01JZ0000000000000000AAAAAA github.com/acme/shop -> yes: it's # a key
    migrate: 01JZ0000000000000000CCCCCC github.com/acme/shop -> global
    migrate: 01JZ0000000000000000DDDDDD github.com/acme/shop -> yes: it's # a key
    migrate: 01JZ0000000000000000EEEEEE github.com/acme/shop -> yes: it's # a key
    migrate: 01JZ0000000000000000FFFFFF github.com/acme/shop -> yes: it's # a key
    migrate: 01JZ0000000000000000GGGGGG github.com/acme/shop -> yes: it's # a key
    migrate: 01JZ0000000000000000HHHHHH github.com/acme/shop -> yes: it's # a key
    migrate: 01JZ0000000000000000JJJJJJ github.com/acme/shop -> yes: it's # a key
    migrate: 8 notes would be changed; nothing was changed
    → again with --apply
    on stderr:
    migrate: there is no note 01JZ0000000000000000ZZZZZZ
    ");
    home.run("sync").well();
    let before = tree(&home);
    let output = home.run(&format!("{command} --apply --no-sync"));
    // A value that needs quotes has them, and nothing else is another line.
    for (path, old) in &before {
        let old = String::from_utf8_lossy(old);
        let new = home.read(path);
        let changed: Vec<_> = old
            .lines()
            .zip(new.lines())
            .filter(|(old, new)| old != new)
            .collect();
        assert!(
            changed.len() <= 1 && old.lines().count() == new.lines().count(),
            "{path}"
        );
        let lines = ["project: 'yes: it''s # a key'", "project: global"];
        assert!(
            changed.iter().all(|(_, new)| lines.contains(new)),
            "{changed:?}"
        );
    }
    assert!(home.run("list --project global").well().contains("CCCCCC"));
    let batch = &output.stdout[output.stdout.len() - 7..output.stdout.len() - 1];
    home.run(&format!("undo {batch}")).well();
    assert_eq!(tree(&home), before);
    for (text, _) in [
        ("{", ""),
        ("{\"projects\": {\"a\": \"b\", \"b\": \"a\"}}", ""),
    ] {
        fs::write(&map, text).unwrap();
        let output = home.run(&command);
        assert_eq!(output.code, Some(2), "{output:?}");
    }
    snapshot!(home.run("migrate --map missing.json").shown(), @"
    exit 2
    on stderr:
    anamnesis: cannot read missing.json: No such file or directory (os error 2)
    ");
}

#[test]
fn tags_tell_how_old_notes_came_to_be() {
    let home = untidy();
    snapshot!(shown(&home, "backfill-provenance"), @"
    exit 0
    backfill-provenance: 01JZ0000000000000000EEEEEE human -> import 'Imported'
    backfill-provenance: 01JZ0000000000000000FFFFFF human -> session-end 'Of a session'
    backfill-provenance: 2 notes would be changed; nothing was changed
    → again with --apply
    ");
    snapshot!(applied(&home, "backfill-provenance").shown(), @"
    exit 0
    backfill-provenance: 01JZ0000000000000000EEEEEE human -> import 'Imported'
    backfill-provenance: 01JZ0000000000000000FFFFFF human -> session-end 'Of a session'
    backfill-provenance: 2 notes changed
    committed on this machine (--no-sync)
    Undo: anamnesis undo [BATCH]
    ");
    let distilled = home.read(&format!("memory/semantic/{}.md", id("GGGGGG")));
    assert!(distilled.contains("prov_source: reflection"));
}

#[test]
fn notes_are_brought_into_todays_form() {
    let home = untidy();
    let path = format!("memory/semantic/{}.md", id("KKKKKK"));
    let text = format!(
        "---\r\n# mine\r\ntags: [CI, ci, own]\r\nown: 1\r\ntitle: 'Linter'\r\nkind: preference\r\nid: {}\r\ntype: semantic\r\n---\r\nText \r\n\r\n",
        id("KKKKKK")
    );
    home.write(&path, text);
    snapshot!(shown(&home, "normalise"), @"
    exit 0
    normalise: 01JZ0000000000000000AAAAAA form 'Linter'
    normalise: 01JZ0000000000000000BBBBBB form 'It's the linter'
    normalise: 01JZ0000000000000000CCCCCC tags 'Two tasks'
    normalise: 01JZ0000000000000000DDDDDD tags 'Two tasks'
    normalise: 01JZ0000000000000000EEEEEE tags 'Imported'
    normalise: 01JZ0000000000000000FFFFFF form 'Of a session'
    normalise: 01JZ0000000000000000GGGGGG form 'Distilled'
    normalise: 01JZ0000000000000000HHHHHH form 'Merged'
    normalise: 01JZ0000000000000000JJJJJJ form 'Deploys'
    normalise: 01JZ0000000000000000KKKKKK tags 'Linter'
    normalise: 10 notes would be changed; nothing was changed
    → again with --apply
    ");
    snapshot!(applied(&home, "normalise").shown(), @"
    exit 0
    normalise: 01JZ0000000000000000AAAAAA form 'Linter'
    normalise: 01JZ0000000000000000BBBBBB form 'It's the linter'
    normalise: 01JZ0000000000000000CCCCCC tags 'Two tasks'
    normalise: 01JZ0000000000000000DDDDDD tags 'Two tasks'
    normalise: 01JZ0000000000000000EEEEEE tags 'Imported'
    normalise: 01JZ0000000000000000FFFFFF form 'Of a session'
    normalise: 01JZ0000000000000000GGGGGG form 'Distilled'
    normalise: 01JZ0000000000000000HHHHHH form 'Merged'
    normalise: 01JZ0000000000000000JJJJJJ form 'Deploys'
    normalise: 01JZ0000000000000000KKKKKK tags 'Linter'
    normalise: 10 notes changed
    committed on this machine (--no-sync)
    Undo: anamnesis undo [BATCH]
    ");
    snapshot!(home.read(&path).replace('\r', "<CR>"), @"
    ---<CR>
    id: 01JZ0000000000000000KKKKKK<CR>
    type: semantic<CR>
    title: Linter<CR>
    project: global<CR>
    machine_id: unknown<CR>
    scope: portable<CR>
    prov_source: human<CR>
    confidence: 1.0<CR>
    created_at: ''<CR>
    updated_at: ''<CR>
    # mine<CR>
    tags:<CR>
    - ci<CR>
    - own<CR>
    - preference<CR>
    kind: preference<CR>
    own: 1<CR>
    ---<CR>
    Text <CR>
    <CR>
    ");
}

#[test]
fn a_note_is_taken_apart() {
    let home = untidy();
    snapshot!(shown(&home, "reatomise JJJJJJ"), @"
    exit 0
    reatomise: 01JZ0000000000000000JJJJJJ 'Deploys'
    reatomise:   593VYVFJVRJ2NNNBKNP9SXY35P 'Deploys: Staging'
    reatomise:   23QHSNCK9J803E13XGRXD9BESA 'Deploys: Production'
    reatomise: 1 note would be split; nothing was changed
    → again with --apply
    ");
    home.run("sync").well();
    let before = tree(&home);
    let output = home.run("reatomise JJJJJJ --apply --no-sync");
    let found = home.run("search staging").well();
    assert!(
        found.contains("Deploys: Staging") && !found.contains("JJJJJJ"),
        "{found}"
    );
    assert!(home.run("show JJJJJJ").well().contains("By hand."));
    snapshot!(home.run("reatomise JJJJJJ").shown(), @"
    exit 1
    on stderr:
    anamnesis: #JJJJJJ is replaced already
    → anamnesis edit JJJJJJ
    ");
    snapshot!(home.run("reatomise AAAAAA").shown(), @"
    exit 1
    on stderr:
    anamnesis: #AAAAAA has no two headings or lists, or is one thing as it is
    → anamnesis edit AAAAAA
    ");
    snapshot!(shown(&home, "reatomise --over 5"), @"
    exit 0
    reatomise: 0 notes
    ");
    let batch = &output.stdout[output.stdout.len() - 7..output.stdout.len() - 1];
    home.run(&format!("undo {batch}")).well();
    assert_eq!(tree(&home), before);
}

#[test]
fn an_agent_puts_nothing_in_order() {
    // LLM-06
    let home = untidy();
    let map = home.root().join("map.json");
    fs::write(
        &map,
        "{\"projects\": {\"github.com/acme/shop\": \"global\"}}",
    )
    .unwrap();
    let before = tree(&home);
    for command in [
        "dedup --apply".to_owned(),
        "normalise --apply".to_owned(),
        "backfill-provenance --apply".to_owned(),
        "reatomise JJJJJJ --apply".to_owned(),
        format!("migrate --map {} --apply", map.display()),
    ] {
        let output = home.command(command.split_whitespace()).by_agent().run();
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(
            output.stderr.contains("only a person can apply this"),
            "{output:?}"
        );
    }
    assert_eq!(tree(&home), before);
}

#[test]
fn what_was_done_is_sent_unless_that_is_not_wanted() {
    let home = untidy();
    let remote = home.root().join("remote.git");
    let path = remote.to_str().unwrap();
    purge::git(&["init", "--quiet", "--bare", "--initial-branch=main", path]);
    purge::join(&home, &remote);
    purge::run(&home, "sync").well();
    snapshot!(purge::run(&home, "dedup --apply").shown(), @"
    exit 0
    dedup: remove 01JZ0000000000000000AAAAAA [github.com/acme/shop] dup of 01JZ0000000000000000BBBBBB 'It's the linter'
    dedup: 1 duplicate replaced
    synced: sent this machine's changes
    Undo: anamnesis undo [BATCH]
    ");
    // A remote that is gone keeps nothing from being done.
    fs::remove_dir_all(&remote).unwrap();
    let output = purge::run(&home, "backfill-provenance --apply");
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(
        output.stdout.contains("2 notes changed") && output.stdout.contains("Undo: "),
        "{output:?}"
    );
    assert!(output.stderr.contains("sync: "), "{output:?}");
}

/// A home of five distilled notes, and one of the person's.
fn distilled() -> TestHome {
    let home = home();
    for (short, title, body) in [
        ("AAAAAA", "Stub server", "The stub server binds port 9090."),
        (
            "BBBBBB",
            "Stub server by hand",
            "The stub server is started by hand.",
        ),
        (
            "CCCCCC",
            "Photos",
            "Photos are cut to squares before the upload.",
        ),
        ("DDDDDD", "Squares", "Photos become squares."),
        ("EEEEEE", "Invoices", "Invoices are numbered on sending."),
    ] {
        home.add(
            &note(short, title)
                .with("prov_source", "reflection")
                .with("confidence", "0.6")
                .body(body),
        );
    }
    home.add(&note("FFFFFF", "My own").body("Invoices have no gaps."));
    home
}

/// Puts an answer of a model into a file, with short ids, and gives the command that takes it.
fn answered(home: &TestHome, answer: &str) -> String {
    let file = home.root().join("answer.json");
    let text = ["A", "B", "C", "D", "E", "F"]
        .iter()
        .fold(answer.to_owned(), |text, letter| {
            text.replace(&format!("@{letter}"), &id(&letter.repeat(6)))
        });
    fs::write(&file, text).unwrap();
    format!(
        "merge --project github.com/acme/shop --answer {}",
        file.display()
    )
}

const GROUPS: &str = r#"```json
[
  {"action": "synthesize", "type": "semantic", "title": "Stub server on port 9090", "superseded_ids": ["@A", "@B"],
   "body": "The stub server binds port 9090 and is started by hand."},
  {"action": "keep", "keeper_id": "@C", "superseded_ids": ["@D"]},
  {"action": "keep", "keeper_id": "@E", "superseded_ids": ["@F"]}
]
```"#;

#[test]
fn groups_are_merged_as_one_batch() {
    let home = distilled();
    let command = answered(&home, GROUPS);
    snapshot!(shown(&home, &command), @"
    exit 0
    merge: github.com/acme/shop: 'Stub server on port 9090' replaces 01JZ0000000000000000AAAAAA, 01JZ0000000000000000BBBBBB
    merge: github.com/acme/shop: 01JZ0000000000000000CCCCCC replaces 01JZ0000000000000000DDDDDD
    merge: github.com/acme/shop: left to you, who wrote one of them: 01JZ0000000000000000EEEEEE replaces 01JZ0000000000000000FFFFFF
    merge: 2 groups would be merged; nothing was changed
    → again with --apply
    ");
    home.run("sync").well();
    let before = tree(&home);
    let output = home.run(&format!("{command} --apply --no-sync"));
    snapshot!(output.shown(), @"
    exit 0
    merge: github.com/acme/shop: 'Stub server on port 9090' replaces 01JZ0000000000000000AAAAAA, 01JZ0000000000000000BBBBBB
    merge: github.com/acme/shop: 01JZ0000000000000000CCCCCC replaces 01JZ0000000000000000DDDDDD
    merge: github.com/acme/shop: left to you, who wrote one of them: 01JZ0000000000000000EEEEEE replaces 01JZ0000000000000000FFFFFF
    merge: 2 groups merged
    committed on this machine (--no-sync)
    Undo: anamnesis undo [BATCH]
    ");
    let made: Vec<String> = home
        .notes()
        .into_iter()
        .filter(|path| !before.contains_key(path))
        .collect();
    assert_eq!(made.len(), 1);
    let text = home.read(&made[0]);
    snapshot!(text.replace(&made[0][16..42], "[ID]"), @"
    ---
    id: [ID]
    type: semantic
    title: Stub server on port 9090
    project: github.com/acme/shop
    machine_id: laptop
    scope: portable
    prov_source: reflection
    confidence: 0.6
    prov_model: answer
    supersedes:
    - 01JZ0000000000000000AAAAAA
    - 01JZ0000000000000000BBBBBB
    created_at: '2026-01-02T03:04:05+00:00'
    updated_at: '2026-01-02T03:04:05+00:00'
    tags:
    - merge
    kind: fact
    ---
    The stub server binds port 9090 and is started by hand.
    ");
    let found = home.run("search stub").well();
    assert!(
        !found.contains("AAAAAA") && !found.contains("BBBBBB"),
        "{found}"
    );
    // LLM-06: text by a person is unchanged.
    let own = format!("memory/semantic/{}.md", id("FFFFFF"));
    assert_eq!(home.read(&own).into_bytes(), before[&own]);
    let batch = &output.stdout[output.stdout.len() - 7..output.stdout.len() - 1];
    home.run(&format!("undo {batch}")).well();
    assert_eq!(tree(&home), before);
}

#[test]
fn the_model_that_was_named_says_what_is_one_matter() {
    // LLM-04
    let home = distilled();
    home.add(
        &note("GGGGGG", "Here")
            .with("scope", "machine-local")
            .body("A needle of this machine."),
    );
    let group = format!(
        r#"[{{"action": "keep", "keeper_id": "{}", "superseded_ids": ["{}"]}}]"#,
        id("CCCCCC"),
        id("DDDDDD")
    );
    let server = ModelServer::start([says(group), says("Sure!")]);
    model::name(&home, &server);
    let before = tree(&home);
    let dry = home.run("merge");
    assert!(
        dry.stdout.contains("CCCCCC replaces 01JZ"),
        "{}",
        dry.stdout
    );
    assert!(
        dry.stderr.contains(" tokens to 127.0.0.1"),
        "{}",
        dry.stderr
    );
    let sent = server.requests()[0].text.clone();
    assert!(sent.contains("Photos are cut to squares"), "{sent}");
    assert!(!sent.contains("needle"), "{sent}");
    let failed = home.run("merge --apply").stdout;
    assert!(failed.contains("failed ("), "{failed}");
    let by_agent = home.command(["merge"]).by_agent().run();
    assert_eq!(by_agent.code, Some(1));
    assert_eq!(server.requests().len(), 2);
    assert_eq!(tree(&home), before);
}

#[test]
fn an_answer_with_a_fault_merges_nothing() {
    // LLM-01
    let home = distilled();
    let before = tree(&home);
    for answer in [
        "",
        "[",
        "{}",
        "Sure! []",
        r#"[{"action": "keep", "keeper_id": "@A", "superseded_ids": ["@A"]}]"#,
    ] {
        let command = answered(&home, answer);
        let output = home.run(&format!("{command} --apply --no-sync"));
        assert!(
            output.stdout.contains("failed (") && output.stdout.contains("; skipped"),
            "{output:?}"
        );
        assert_eq!(output.code, Some(1), "{output:?}");
        assert!(output.stderr.contains("1 project not merged"), "{output:?}");
        assert_eq!(tree(&home), before);
    }
    let command = answered(&home, GROUPS);
    snapshot!(home.command(command.split_whitespace()).env("ANAMNESIS_MERGE_MIN_DURABLE", "7").run().shown(), @"
    exit 0
    merge: 0 groups
    ");
    snapshot!(home.run("merge").shown(), @"
    exit 1
    on stderr:
    anamnesis: no model is set
    Without one, --request prints what to ask, and --answer takes the answer.
    → anamnesis config set reflection.provider openai   (deepseek, local, claude)
    ");
    let asked = home
        .run("merge --project github.com/acme/shop --request")
        .well();
    assert!(
        asked.contains(&format!(
            "## [{}] [semantic] Photos\nPhotos are cut",
            id("CCCCCC")
        )),
        "{asked}"
    );
    assert_eq!(tree(&home), before);
}

#[test]
fn a_merge_that_is_only_proposed_is_not_called_merged() {
    let proposed = r#"{"action": "synthesize", "type": "semantic", "title": "Invoices without gaps", "body": "Invoices are numbered on sending, without gaps.", "superseded_ids": ["@E", "@F"]}"#;
    let merged = r#"{"action": "keep", "keeper_id": "@C", "superseded_ids": ["@D"]}"#;
    for (answer, said) in [
        (format!("[{proposed}]"), "merge: 1 group proposed\n"),
        (
            format!("[{proposed}, {merged}]"),
            "merge: 2 groups changed: 1 merged, 1 proposed\n",
        ),
    ] {
        let home = distilled();
        let command = answered(&home, &answer);
        let output = home.run(&format!("{command} --apply --no-sync"));
        assert!(output.stdout.contains(said), "{output:?}");
    }
}
