//! `dedup`, `migrate`, `backfill-provenance`, `normalise`, `reatomise`: shown first, done as one batch.

use std::fs;

use anamnesis_testkit::home::{NoteText, TestHome};

use crate::{
    home, id, snapshot,
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
    dedup: 1 duplicate(s) (dry-run; pass --apply)
    ");
    // LLM-06
    snapshot!(applied(&home, "dedup").shown(), @"
    exit 0
    dedup: remove 01JZ0000000000000000AAAAAA [github.com/acme/shop] dup of 01JZ0000000000000000BBBBBB 'It's the linter'
    dedup: 1 duplicate(s) replaced
    dedup: committed locally; reindexed (no sync)
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
    migrate: 8 note(s) (dry-run; pass --apply)
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
    backfill-provenance: 2 note(s) (dry-run; pass --apply)
    ");
    snapshot!(applied(&home, "backfill-provenance").shown(), @"
    exit 0
    backfill-provenance: 01JZ0000000000000000EEEEEE human -> import 'Imported'
    backfill-provenance: 01JZ0000000000000000FFFFFF human -> session-end 'Of a session'
    backfill-provenance: 2 note(s) changed
    backfill-provenance: committed locally; reindexed (no sync)
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
    normalise: 10 note(s) (dry-run; pass --apply)
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
    normalise: 10 note(s) changed
    normalise: committed locally; reindexed (no sync)
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
    reatomise: 1 note(s) (dry-run; pass --apply)
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
    reatomise: 0 note(s)
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
