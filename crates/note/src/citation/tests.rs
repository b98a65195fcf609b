use proptest::prelude::*;

use super::*;

/// Returns the citations of a text as `kind text`.
fn cited(text: &str) -> Vec<String> {
    citations(text, Some("/home/dev/shop"))
        .into_iter()
        .map(|reference| format!("{} {}", reference.kind.as_str(), reference.text))
        .collect()
}

#[test]
fn paths_are_found() {
    for (text, expected) in [
        ("see src/a.rs:42 for it", "src/a.rs"),
        ("`src/a.rs:42:7`", "src/a.rs"),
        ("`src/a.rs#L42`", "src/a.rs"),
        ("`src/a.rs::limit`", "src/a.rs"),
        (
            "Rate limits live in middleware/limit.rs.",
            "middleware/limit.rs",
        ),
        ("run ./scripts/seed.sh", "scripts/seed.sh"),
        ("`crates/core`", "crates/core"),
        ("crates/core holds it", "crates/core"),
        ("the folder middleware/ is old", ""),
        ("the folder `middleware/` is old", "middleware"),
        ("the folder web/middleware/ is old", "web/middleware"),
        ("(see [the page](docs/sync.md))", "docs/sync.md"),
        ("`.github/workflows/ci.yml`", ".github/workflows/ci.yml"),
        ("`.env` and Cargo.toml", ".env Cargo.toml"),
        ("a Makefile", "Makefile"),
        ("**limit.rs**: all of it", "limit.rs"),
        ("`src\\main.rs`", "src/main.rs"),
        ("/home/dev/shop/web/index.html", "web/index.html"),
        ("/home/dev/shop/middleware", ""),
        ("in app/[slug]/page.tsx.", "app/[slug]/page.tsx"),
        ("`pages/[[...id]].tsx`", "pages/[[...id]].tsx"),
        ("(see `(auth)/login.tsx`)", "(auth)/login.tsx"),
        ("see app/(auth)/login.tsx, once", "app/(auth)/login.tsx"),
        ("the page (src/a.rs)/its test", "src/a.rs"),
        (
            "copy .env.example and docker/Dockerfile",
            ".env.example docker/Dockerfile",
        ),
        ("`node_modules/@types/node`", "node_modules/@types/node"),
        ("`ordner/größe.rs`", "ordner/größe.rs"),
    ] {
        let found: Vec<_> = citations(text, Some("/home/dev/shop"));
        let paths: Vec<&str> = found
            .iter()
            .filter(|reference| reference.kind == CitationKind::Path)
            .map(|reference| reference.text.as_str())
            .collect();
        assert_eq!(paths.join(" "), expected, "{text}");
    }
    let found = cited("src/a.rs:42 and src/b.rs#L7, src/c.rs:9-12, src/d.rs");
    assert_eq!(found.len(), 4);
}

#[test]
fn other_text_is_not_a_citation() {
    for text in [
        "this and/or that, `and/or`, `read/write`, 24/7, 2026/11/22",
        "https://github.com/acme/shop/blob/main/src/a.rs",
        "`https://example.com/a.js` and github.com/acme/shop.git",
        "`src/*.rs`, `src/**/a.rs`, `{a,b}/c.rs`, `$HOME/x.sh`",
        "version 1.2.3, `v0.21`, `0.8.9`, 10.0.0.1",
        "/etc/hosts, `/tmp/x.log`, `~/.ssh/config`, `../other/a.rs`, C:\\x\\a.rs",
        "`/home/dev/shopping/src/a.rs`",
        "`application/json`, `text/plain`, `origin/main`, `feat/limits`",
        "Node.js and Vue.js, e.g. this, i.e. that",
        "`the`, `index`, `Journal`, `true`, `x`, `--force`, `-k`",
        "deadbeef, 1234567, `cafe`, DEADBEEF1, 550e8400-e29b-41d4-a716-446655440000",
        "git@host:acme/shop, dev@example.com, host:8080/x",
        "make sure that it works; npm is slow",
        "`std::fs::write`, `self`, `crate`",
        "#7Q4KZ9 and `01ARZ3NDEKTSV4RRFFQ69G5FAV`",
        "``, ` `, ```, `unclosed",
    ] {
        assert_eq!(cited(text), [""; 0], "{text}");
    }
}

#[test]
fn symbols_are_found() {
    for (code, expected) in [
        ("snake_case", "snake_case"),
        ("MAX_NOTES", "MAX_NOTES"),
        ("CamelCase", "CamelCase"),
        ("camelCase", "camelCase"),
        ("Journal::open", "Journal::open"),
        ("Journal.open", "Journal.open"),
        ("journal->open", "journal->open"),
        ("render()", "render"),
        ("render(notes, cap)", "render"),
        ("Vec<NoteId>::of_session(\"\")", ""),
        ("say!", "say"),
        ("struct Journal", "Journal"),
        ("fn open(home: &Home)", "open"),
        ("&self.connection", ""),
        ("self.is_due()", "self.is_due"),
        ("crate::lock::acquire", "crate::lock::acquire"),
        ("home_folder: PathBuf", "home_folder"),
        ("größe_von", "größe_von"),
        ("process.env.HOME", "process.env.HOME"),
        ("sha2", ""),
        ("two words", ""),
        ("a_b c_d", ""),
    ] {
        let text = format!("about `{code}` here");
        let expected = [expected].map(|name| format!("symbol {name}"));
        let expected = if expected[0] == "symbol " {
            &[][..]
        } else {
            &expected[..]
        };
        assert_eq!(cited(&text), expected, "{code}");
        assert_eq!(
            cited(&format!("about {code} here")).len(),
            0,
            "{code} in prose"
        );
    }
    let names: Vec<String> = citations("`crate::lock::acquire()` `a->b_c`", None)
        .iter()
        .map(|symbol| symbol.names().collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(names, ["lock acquire", "a b_c"]);
}

#[test]
fn commands_are_found() {
    for (text, expected) in [
        ("`make stub` binds port 9090", "command make stub"),
        ("`make -j4 CC=gcc stub`", "command make stub"),
        ("`make -C web stub`", ""),
        (
            "`PORT=1 npm run dev:web -- --open`",
            "command npm run dev:web",
        ),
        ("`pnpm test`", "command pnpm test"),
        ("`npm install`", ""),
        ("`just release`", "command just release"),
        ("`cd web && cargo xtask plugin`", ""),
        (
            "```sh\n$ make stub\nmiddleware/limit.rs\n```",
            "command make stub, path middleware/limit.rs",
        ),
        ("broken since a1b2c3d, see `deadbee7`", ""),
        ("`python tools/seed.py --all`", "path tools/seed.py"),
    ] {
        assert_eq!(cited(text).join(", "), expected, "{text}");
    }
}

#[test]
fn absolute_paths_of_files_are_found_without_their_slash() {
    let text =
        "/home/me/shop/src/a.rs, `/srv/Dockerfile`, /usr/bin/, `/api/users`, `/a.rs`, src/b.rs";
    let found = citations(text, Some("/"));
    let found: Vec<&str> = found.iter().map(|it| it.text.as_str()).collect();
    assert_eq!(
        found,
        ["home/me/shop/src/a.rs", "srv/Dockerfile", "src/b.rs"]
    );
}

#[test]
fn removed_things_are_marked_as_past() {
    let past = |text: &str| -> Vec<bool> {
        let found = citations(text, None);
        found.iter().map(|reference| reference.is_past).collect()
    };
    assert_eq!(
        past("Removed `old_limit` for good. Use `new_limit`."),
        [true, false]
    );
    assert_eq!(past("src/a.rs no longer exists"), [true]);
    assert_eq!(
        past("`is_removed` says so, longer than `a_b`"),
        [false, false]
    );
}

#[test]
fn citations_are_unique_and_limited() {
    assert_eq!(cited("src/a.rs, `src/a.rs:3`, ./src/a.rs").len(), 1);
    let many: String = (0..1_000)
        .map(|number| format!("src/a{number}.rs "))
        .collect();
    assert_eq!(cited(&many).len(), MAX_CITATIONS);
    assert_eq!(
        cited(&format!("{}src/a.rs", "é ".repeat(MAX_TEXT))),
        [""; 0]
    );
}

proptest! {
    #[test]
    fn any_text_gives_short_plain_words(text in r"([a-zA-Zé./:#`~&()<> \n_\\-]|make |npm run |\PC){0,200}") {
        for reference in citations(&text, Some("/a")) {
            prop_assert!(!reference.text.is_empty());
            prop_assert!(reference.text.len() <= MAX_PATH);
            prop_assert!(!reference.text.contains(char::is_control));
            prop_assert!(!reference.text.contains("  "));
            if reference.kind == CitationKind::Path {
                prop_assert!(!reference.text.starts_with('/'));
                prop_assert!(reference.text.split('/').all(|name| !name.is_empty() && name != ".."));
            }
            if reference.kind == CitationKind::Symbol {
                prop_assert!(reference.names().count() > 0);
            }
        }
    }
}
