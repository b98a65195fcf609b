use anamnesis_text::private_tokens::{self, Key};
use proptest::prelude::*;

use super::*;

fn texts(texts: &[&str]) -> Vec<String> {
    texts.iter().map(|&text| text.to_owned()).collect()
}

/// A session of prompts and answers. An empty text is none.
fn session(turns: &[(&str, &str)]) -> SessionDigest {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let turns = turns.iter().map(|(prompt, answer)| Turn {
        prompt: text(prompt),
        answer: text(answer),
        ..Turn::default()
    });
    SessionDigest {
        turns: turns.collect(),
        ..SessionDigest::default()
    }
}

fn note(digest: &SessionDigest) -> (String, String) {
    let NoteText { title, body } = note_text(digest).unwrap();
    (title, body)
}

fn changed(turns: &[(&str, &str)]) -> SessionDigest {
    SessionDigest {
        files: texts(&["src/a.rs"]),
        ..session(turns)
    }
}

#[test]
fn a_correction_of_a_later_prompt_is_kept() {
    let digest = changed(&[
        ("deploy the app to staging", "Deployed with deploy.sh."),
        (
            "you must use `make deploy-staging`, deploy.sh is for production only!",
            "Understood. Deployed again.",
        ),
        ("bump the version", "Version is 2 now."),
    ]);
    let (title, body) = note(&digest);
    assert_eq!(title, "deploy the app to staging");
    assert!(
        body.starts_with(
            "**Said:**\n- you must use `make deploy-staging`, deploy.sh is for production only!\n\n"
        ),
        "{body}"
    );
    assert!(!body.contains("bump the version"), "{body}");
}

#[test]
fn thanks_at_the_end_is_no_outcome() {
    let digest = session(&[
        (
            "why is the build slow?",
            "The build is slow because every crate links openssl statically. We never add dependencies \
             for that reason, so `ring` was dropped in favour of the system's library.",
        ),
        ("We never add dependencies here", "Noted."),
        ("thanks!", "You're welcome!"),
    ]);
    let body = note(&digest).1;
    assert!(body.contains("- We never add dependencies here"), "{body}");
    assert!(body.contains("because every crate links openssl"), "{body}");
    assert!(!body.contains("welcome"), "{body}");
}

#[test]
fn checks_are_named_with_their_errors_and_remedies() {
    let mut digest = changed(&[("make the tests pass", "I changed the parser.")]);
    digest.failing = texts(&["`cargo test`: assertion failed: left == right"]);
    digest.fixed = texts(&["`cargo clippy` → changed before it passed: src/a.rs"]);
    digest.passed = texts(&["cargo build", "cargo clippy"]);
    let body = note(&digest).1;
    assert!(
        body.contains(
            "**Still failing:**\n- `cargo test`: assertion failed: left == right\n\n\
             **Failed and fixed:**\n- `cargo clippy` → changed before it passed: src/a.rs\n\n"
        ),
        "{body}"
    );
    assert!(
        body.ends_with("**Passed:** `cargo clippy`, `cargo build`"),
        "{body}"
    );
}

#[test]
fn tests_that_passed_are_named_first_and_long_checks_are_skipped() {
    let mut digest = changed(&[("make the tests pass", "I changed the parser.")]);
    let long = format!("make {}", "x".repeat(290));
    digest.passed = texts(&[
        "npm test",
        "npm run lint",
        "npm run build",
        "npx tsc --noEmit",
        "npx prettier --check .",
        &long,
    ]);
    let body = note(&digest).1;
    assert!(
        body.ends_with(
            "**Passed:** `npm test`, `npx prettier --check .`, `npx tsc --noEmit`, `npm run build`, `npm run lint`"
        ),
        "{body}"
    );
}

#[test]
fn questions_and_announcements_are_no_outcome() {
    let answer = "The port of the till is in `cart.toml` now, since the env was not read.\n\n\
        Now let me run the tests of `cart.rs`:\n\nShould I commit `cart.toml` with `--no-verify`?\n\nGlad it works now!";
    let (_, body) = note(&session(&[("move the port of the till", answer)]));
    assert!(body.contains("The port of the till is in"), "{body}");
    for other in ["run the tests", "Should I", "Glad"] {
        assert!(!body.contains(other), "{body}");
    }
}

#[test]
fn an_outcome_is_told_once() {
    let digest = session(&[(
        "why did the login fail?",
        "The login failed because the key is too old.",
    )]);
    let body = note(&digest).1;
    assert_eq!(body.matches("the key is too old").count(), 1, "{body}");
}

#[test]
fn a_failure_that_the_answers_call_fixed_or_expected_is_not_told() {
    for (answer, is_told) in [
        ("I changed the parser.", true),
        ("The tests of `b` pass, `cargo test` fails still.", true),
        (
            "I fixed it in another shell: `cargo test` passes now.",
            false,
        ),
        (
            "The test fails by design until the parser is written.",
            false,
        ),
    ] {
        let mut digest = changed(&[("make the tests pass", answer)]);
        digest.failing = texts(&["`cargo test`: assertion failed: left == right"]);
        let body = note(&digest).1;
        assert_eq!(body.contains("**Still failing:**"), is_told, "{body}");
    }
}

const DEPLOY: &str = "`node scripts/deploy.js`: Error: DEPLOY_TOKEN is not set";
const IMPORT: &str = "`cargo run -- import empty.csv`: error: the file is empty";
const TEST: &str = "`npm test -- a.test.ts`: FAIL a.test.ts";
const REFUSES: (&str, &str) = (
    "check that the script refuses to run without a token",
    "It refuses: `DEPLOY_TOKEN is not set`, exit code 1.",
);

/// Returns whether the note of these turns says that the check still fails.
fn is_told(failing: &str, turns: &[(&str, &str)]) -> bool {
    let mut digest = changed(turns);
    digest.failing = texts(&[failing]);
    note(&digest).1.contains("**Still failing:**")
}

#[test]
fn a_failure_that_the_prompt_asks_for_is_not_told() {
    for (line, prompt, answer) in [
        (DEPLOY, REFUSES.0, REFUSES.1),
        (
            IMPORT,
            "does the cli reject an empty file?",
            "Yes, it exits with 1 and says that the file is empty.",
        ),
        (
            "`npm run start -- --config empty.yml`: Error: config is empty",
            "verify that the config loader rejects an empty file",
            "It does: `config is empty`, exit code 1.",
        ),
        (
            TEST,
            "verify that the new test catches the bug by breaking the code",
            "The test catches it: it failed with the bug put back. I restored the code.",
        ),
        (
            TEST,
            "Write a failing test first for the discount bug",
            "The test in `a.test.ts` fails: 100 instead of 90.",
        ),
        (
            "`npm test -- cart`: FAIL cart.test.ts",
            "find the commit that broke the cart with git bisect",
            "`abc123` broke the cart because totals are summed as floats.",
        ),
    ] {
        assert!(!is_told(line, &[(prompt, answer)]), "{prompt}");
    }
    // The answer names it, and a later one is about something else.
    let docs = (
        "add a page about the tokens to the docs",
        "The page is there.",
    );
    assert!(!is_told(DEPLOY, &[REFUSES, docs]));
}

#[test]
fn a_failure_that_nobody_asked_for_is_told() {
    for (line, prompt, answer) in [
        (
            IMPORT,
            "does the cli reject an empty file?",
            "No, it panics in `read_header`.",
        ),
        (
            TEST,
            "make sure that the api rejects empty names",
            "The api rejects empty names. One test fails.",
        ),
        (
            TEST,
            "check whether the api rejects empty names",
            "Yes, it rejects them.",
        ),
        (
            "`npm run build`: error TS2304: Cannot find name 'x'",
            "does the cli reject an empty file?",
            "Yes, it rejects it. The build fails in `src/a.ts`.",
        ),
        (
            TEST,
            "Write a failing test first for the discount bug, then fix it",
            "The test in `a.test.ts` fails: 100 instead of 90.",
        ),
        (
            TEST,
            "fix the failing test of the discount",
            "The test fails: 100 instead of 90.",
        ),
        (
            TEST,
            "verify that the new test catches the bug by breaking the code",
            "The test catches it, and the code is broken now.",
        ),
    ] {
        assert!(is_told(line, &[(prompt, answer)]), "{prompt}");
    }
    let deploy = (
        "deploy it with the token of ops",
        "`scripts/deploy.js` ends with 403.",
    );
    assert!(is_told(DEPLOY, &[REFUSES, deploy]));
}

#[test]
fn what_does_not_work_without_a_check_is_part_of_the_outcome() {
    let unanswered = session(&[(
        "这是为什么\n```\nCannot find module '@x/svelte' or its types.\n```",
        "",
    )]);
    let body = note(&unanswered).1;
    assert!(
        body.contains("**Outcome:** Cannot find module '@x/svelte' or its types."),
        "{body}"
    );
    let blocked = changed(&[(
        "push it",
        "I committed it. The push is still blocked by the secret scanning of `origin`.",
    )]);
    let body = note(&blocked).1;
    let outcome = body.split("**Outcome:**").nth(1).unwrap_or_default();
    assert!(outcome.contains("The push is still blocked"), "{body}");
}

#[test]
fn the_title_asks_and_is_not_repeated() {
    for (prompt, title, ask) in [
        ("fix the parser", "fix the parser", None),
        (
            "hello\nfix the parser, please",
            "fix the parser, please",
            None,
        ),
        (
            "Traceback (most recent call last):\n  File \"a.py\", line 3, in f\nValueError: no such column\nwhy?",
            "ValueError: no such column",
            Some("why? — ValueError"),
        ),
        (
            "I have worked on this crate for a while, and most of it is good now. Are there plans for it?",
            "Are there plans for it?",
            Some("I have worked on this crate"),
        ),
    ] {
        let (found, body) = note(&changed(&[(prompt, "Done.")]));
        assert_eq!(found, title, "{prompt}");
        assert_eq!(body.contains("**Ask:**"), ask.is_some(), "{body}");
        assert!(ask.is_none_or(|ask| body.contains(ask)), "{body}");
    }
}

#[test]
fn what_names_the_session_by_construction_is_its_title() {
    let plan = "# Plan: Move the cart to the till\n\n1. Add the till\n2. Drop the cart\n\n## Verification\n\n3. Run the till";
    let asked = |prompt: &str, answer: &str| changed(&[(prompt, answer)]);
    let mut digest = asked("add limits to the gateway", "Done.");
    digest.declared.plan = Some(plan.to_owned());
    let (title, body) = note(&digest);
    assert_eq!(title, "Move the cart to the till");
    assert!(
        body.contains("**Decided:**\n- Plan: Add the till; Drop the cart\n"),
        "{body}"
    );
    digest.name = Some("evening work".to_owned());
    let (title, body) = note(&digest);
    assert_eq!(title, "evening work");
    assert!(
        body.contains("- Plan: Move the cart to the till: Add the till;"),
        "{body}"
    );
    // The client starts a plan with such a prompt.
    let (title, body) = note(&asked(
        &format!("Implement the following plan:\n\n{plan}"),
        "",
    ));
    assert_eq!(title, "Move the cart to the till");
    assert!(
        !body.contains("**Ask:**") && !body.contains("**Said:**"),
        "{body}"
    );
}

#[test]
fn later_requests_are_listed_apart_from_what_the_person_said() {
    let digest = changed(&[
        ("add a cart to the shop", "The cart is there."),
        (
            "very good. now move the total below the list of items",
            "The total is below.",
        ),
        ("continue", "Done."),
        (
            "why is it slow?\n```\nerror: the query takes 900 ms\n```",
            "The index was missing, so each read took 900 ms.",
        ),
    ]);
    let body = note(&digest).1;
    let asked: Vec<&str> = part_of(&body, "Asked").collect();
    assert!(
        asked
            .iter()
            .any(|line| line.contains("move the total below")),
        "{body}"
    );
    assert!(
        asked.iter().any(|line| line.contains("takes 900 ms")),
        "{body}"
    );
    assert!(
        !asked
            .iter()
            .any(|line| line.contains("very good") || line.contains("continue")),
        "{body}"
    );
    assert_eq!(part_of(&body, "Said").count(), 0, "{body}");
}

#[test]
fn what_was_copied_from_an_answer_was_not_said() {
    let rule = "Never open a file of the settings by hand.";
    let answer = format!("I would add this rule:\n\n> {rule} Use full paths too.\n\nShall I?");
    let digest = changed(&[
        ("add a rule about the settings", &answer),
        (
            &format!("{rule}\nUse full paths too.\nAnd never edit the lock file."),
            "Done.",
        ),
        (rule, "Done."),
    ]);
    let body = note(&digest).1;
    let said = part_of(&body, "Said").chain(rules_in(&body));
    assert_eq!(
        said.collect::<Vec<_>>(),
        ["And never edit the lock file."],
        "{body}"
    );
}

#[test]
fn a_sentence_comes_with_the_one_that_it_needs() {
    let turns = [
        (
            "make the footer of the shop green",
            "The footer is green now.",
        ),
        (
            "The settings of the host work now. Never touch them again.",
            "They stay as they are.",
        ),
        (
            "The language of the search is unused. But never remove a parameter.",
            "It stays.",
        ),
        (
            "- the state of the till is kept in `till.toml`\n- it must never be read twice",
            "It is read once.",
        ),
    ];
    let (_, body) = note(&changed(&turns));
    let said: Vec<&str> = part_of(&body, "Said").collect();
    assert_eq!(
        said,
        [
            "The settings of the host work now. Never touch them again.",
            "The language of the search is unused. But never remove a parameter.",
            "the state of the till is kept in `till.toml`; it must never be read twice",
        ]
    );
}

#[test]
fn a_title_that_is_too_long_keeps_the_names_of_files_and_issues() {
    let answer = "The settings have one order now, because two readers disagreed.";
    for (prompt, title) in [
        (
            "Your task is to implement what is described in this document @docs/dev/plans/settings_order.md",
            "implement what is described in this document …/settings_order.md",
        ),
        (
            "read this about settings and tell me what we should do https://git.example/acme/shop/issues/3",
            "read this about settings and tell me what we should do …/issues/3",
        ),
        (
            "which of the users of the shop may read/write/execute the scripts of the release?",
            "which of the users of the shop may read/write/execute the scripts of the …",
        ),
        (
            "implement the settings order of docs/dev/plan.md",
            "implement the settings order of docs/dev/plan.md",
        ),
    ] {
        assert_eq!(note(&changed(&[(prompt, answer)])).0, title);
    }
}

#[test]
fn a_claim_that_tests_pass_is_no_title() {
    let told = "The `limits` table had no index, so each request read it whole.";
    let answer = format!("The solution builds and tests run without any failures. {told}");
    assert_eq!(
        note(&changed(&[("please fix this issue", &answer)])).0,
        told
    );
    let answer = format!("{told} There are some warnings in the log, but no test failures.");
    assert_eq!(
        note(&changed(&[("please fix this issue", &answer)])).0,
        told
    );
}

#[test]
fn a_reported_error_is_no_title_if_the_answer_tells_more() {
    let answer = "The `limits` table had no index, so each request read it whole.";
    let digest = changed(&[("I get an error for each order since the move", answer)]);
    assert_eq!(note(&digest).0, answer);
}

#[test]
fn what_holds_beyond_the_first_request_is_said_and_not_asked() {
    let digest = changed(&[(
        "Do not stash anything in this repository. Add a limit to the login page.",
        "The login page has a limit of five tries now.",
    )]);
    let (_, body) = note(&digest);
    assert!(body.contains("Do not stash anything"), "{body}");
    assert_eq!(body.matches("stash").count(), 1, "{body}");
    assert!(!body.contains("**Ask:** Do not"), "{body}");
}

#[test]
fn a_request_that_names_nothing_is_no_title() {
    let answer = "Let me look.\nThe `limits` table had no index, so each request read it whole.";
    for (prompt, commits, title) in [
        (
            "please fix this issue",
            &["1a2b3c4 Index the limits"][..],
            "Index the limits",
        ),
        (
            "python src/web/example.py",
            &["1a2b3c4 Index the limits"],
            "Index the limits",
        ),
        (
            "version = self.hatch.version.cached",
            &["1a2b3c4 Index the limits"],
            "Index the limits",
        ),
        (
            "how can i get rid of that?",
            &["1a2b3c4 Index the limits"],
            "Index the limits",
        ),
        (
            "i get this error in /srv/shop",
            &["1a2b3c4 Index the limits"],
            "Index the limits",
        ),
        (
            "continue with the task",
            &["1a2b3c4 a", "2b3c4d5 b"],
            "The `limits` table had no index, so each request read it whole.",
        ),
        (
            "@web/limits.ts:3 why are the limits read twice?",
            &[],
            "why are the limits read twice?",
        ),
        (
            "Task overview\n\nThe trouble was with these readings:\n- total\nKeep the limits of a request",
            &[],
            "Keep the limits of a request",
        ),
        (
            "what is it?\nerror: the limits table is locked",
            &[],
            "error: the limits table is locked",
        ),
        (
            "can you review the branch",
            &["1a2b3c4 Index the limits", "2b3c4d5 b"],
            "Index the limits",
        ),
        (
            "can you review the changes?",
            &[],
            "The `limits` table had no index, so each request read it whole.",
        ),
        (
            "can you review the limits?",
            &[],
            "can you review the limits?",
        ),
    ] {
        let mut digest = changed(&[(prompt, answer)]);
        digest.declared.commits = texts(commits);
        assert_eq!(note(&digest).0, title, "{prompt}");
    }
    let later = changed(&[
        ("how should i do this?", ""),
        ("add the port to the gateway's page", ""),
    ]);
    assert_eq!(note(&later).0, "add the port to the gateway's page");
    let long = "this is a new project from my template, but I want you to turn it into a library for \
        the bindings of keys";
    assert_eq!(
        note(&changed(&[(long, "")])).0,
        "turn it into a library for the bindings of keys"
    );
}

#[test]
fn a_file_is_cut_from_a_request_and_not_from_an_answer() {
    let rounds = "`src/cart.ts` rounds totals half up now.";
    for (prompt, answer, title) in [
        ("fix it", rounds, rounds),
        ("make it work", rounds, rounds),
        ("next task", rounds, rounds),
        (
            "@src/cart.ts",
            "`src/cart.ts` imported a module that was deleted; I removed the import.",
            "`src/cart.ts` imported a module that was deleted; I removed the import.",
        ),
        (
            "@src/cart.ts why are totals rounded?",
            rounds,
            "why are totals rounded?",
        ),
        (
            "@src/cart.ts does it round totals?",
            rounds,
            "does it round totals?",
        ),
        (
            "@src/cart.ts process refunds, too",
            rounds,
            "process refunds, too",
        ),
        (
            "src/cart.ts rounds totals down",
            rounds,
            "src/cart.ts rounds totals down",
        ),
    ] {
        assert_eq!(note(&changed(&[(prompt, answer)])).0, title, "{prompt}");
    }
}

#[test]
fn small_talk_with_a_failing_check_or_a_commit_has_a_title() {
    let mut digest = session(&[(
        "run the tests",
        "One test fails in `cart.test.ts`: the total ignores the discount.",
    )]);
    digest.failing = texts(&["`npm test`: Expected 90 received 100"]);
    let (title, body) = note(&digest);
    assert_eq!(
        title,
        "One test fails in `cart.test.ts`: the total ignores the discount."
    );
    assert!(body.contains("**Still failing:**\n- `npm test`"), "{body}");
    let mut digest = session(&[("commit and push please", "Done.")]);
    digest.declared.commits = texts(&["77aa001 Round totals"]);
    let (title, body) = note(&digest);
    assert_eq!(title, "Round totals");
    assert!(body.contains("77aa001"), "{body}");
}

#[test]
fn a_decision_says_what_and_why_and_was_not_contradicted() {
    let first = "The gateway uses the port of the settings, because two of them run on one host. \
        Found the bug. The bug is that the parser drops the last line of `a.txt`.";
    let decision =
        "- The gateway uses the port of the settings, because two of them run on one host.";
    let last = (
        "show the page",
        "The page shows the sum of all limits of the gateway, and the till of each of them besides it.",
    );
    for (reply, is_kept) in [
        ("make the page green", true),
        ("no, that is not how it works", false),
        (
            "don't take the port of the gateway from the settings",
            false,
        ),
        ("don't touch the till", true),
    ] {
        let body = note(&changed(&[
            ("add a gateway", first),
            (reply, "Noted."),
            last,
        ]))
        .1;
        assert_eq!(body.contains(decision), is_kept, "{reply}: {body}");
        let found = "**Found:**\n- The bug is that the parser drops the last line of `a.txt`.";
        assert_eq!(
            body.contains(found),
            !reply.starts_with("no,"),
            "{reply}: {body}"
        );
        assert!(!body.contains("Found the bug"), "{body}");
    }
}

#[test]
fn choices_commits_and_open_tasks_are_told() {
    let mut digest = changed(&[("add a store", "Next steps: write the docs.")]);
    digest.declared.choices = texts(&["Which store? → SQLite", "Should I commit? → Yes"]);
    digest.declared.commits = (1..=6).map(|n| format!("1a2b3c{n} Step {n}")).collect();
    digest.declared.open_tasks = texts(&["index the store"]);
    digest.next_steps = texts(&["write the docs"]);
    let body = note(&digest).1;
    assert!(
        body.contains(
            "**Decided:**\n- Which store? → SQLite\n\n\
             **Committed:**\n- 2 more before these\n- 1a2b3c3 Step 3\n"
        ),
        "{body}"
    );
    assert!(
        body.contains("**Next steps:**\n- index the store\n"),
        "{body}"
    );
}

#[test]
fn a_failure_of_an_earlier_answer_is_told_unless_it_was_mended() {
    let broken = "There is still one warning (W0046) about the voucher parser, and it blocks the release build.";
    let talk = |end: &str| {
        let turns = [("make the build pass", broken), ("and the docs?", end)];
        note(&changed(&turns)).1
    };
    let body = talk(
        "The docs of the cart are complete, and all pages were checked against the code of today.",
    );
    assert!(body.contains(&format!("**Found:**\n- {broken}")), "{body}");
    let body =
        talk("Fixed the warning W0046 of the voucher parser, which read an old field of the cart.");
    assert!(!body.contains("blocks the release"), "{body}");
}

#[test]
fn files_are_listed_once_and_counted() {
    let mut digest = changed(&[("rename it", "Done.")]);
    digest.files = (0..10).map(|number| format!("src/{number}.rs")).collect();
    digest.git_branch = Some("main".to_owned());
    let body = note(&digest).1;
    assert!(body.ends_with("src/6.rs, src/7.rs, and 2 more"), "{body}");
    assert!(!body.contains("Branch"), "{body}");
    digest.git_branch = Some("fix/parser".to_owned());
    assert!(note(&digest).1.starts_with("**Branch:** fix/parser\n\n"));
}

#[test]
fn no_home_folder_is_in_a_note() {
    let mut digest = changed(&[(
        "look at /home/ana/shop/a.rs",
        "It is in /Users/ana/x because of y.",
    )]);
    digest.files = texts(&["/home/ana/other/b.rs"]);
    let (title, body) = note(&digest);
    assert_eq!(title, "look at …/a.rs");
    assert!(body.contains("~/other/b.rs"), "{body}");
    assert!(!body.contains("ana/"), "{body}");
    digest.folder = Some("/home/ana/shop".to_owned());
    assert_eq!(note(&digest).0, "look at a.rs");
}

#[test]
fn an_earlier_part_comes_first() {
    let earlier = SessionDigest {
        files: texts(&["a", "b"]),
        failures: 1,
        ..session(&[("Fix it", "Half done.")])
    };
    let mut digest = SessionDigest {
        files: texts(&["b", "c"]),
        failures: 2,
        ..session(&[("go on", "Done.")])
    };
    digest.prepend(&earlier);
    assert_eq!(digest.files, ["a", "b", "c"]);
    assert_eq!(digest.failures, 3);
    assert_eq!(
        (digest.ask(), digest.outcome()),
        (Some("Fix it"), Some("Done."))
    );
    let mut silent = SessionDigest::default();
    silent.prepend(&earlier);
    assert_eq!(silent.outcome(), Some("Half done."));
}

#[test]
fn texts_private_elsewhere_are_masked() {
    let key = Key::new([7; 16]);
    let hashes = private_tokens::hashes(&key, &texts(&["token T7-blue-99"]));
    let private = hashes.into_iter().map(|hash| (key, hash)).collect();
    let mut digest = changed(&[("use T7-blue-99", "T7-blue-99 works")]);
    digest.files = texts(&["/tmp/T7-blue-99"]);
    digest.mask(&private);
    assert_eq!(digest.files, ["/tmp/[private]"]);
    assert_eq!(note(&digest).0, "use [private]");
}

#[test]
fn a_session_without_a_prompt_has_a_title() {
    let (title, body) = note(&changed(&[]));
    assert_eq!(
        (title.as_str(), body.as_str()),
        ("Change of a.rs", "**Files:** src/a.rs")
    );
}

proptest! {
    #[test]
    fn a_note_is_bounded_and_whole(
        turns in prop::collection::vec(("(?s).{0,300}", "(?s).{0,300}"), 0..12),
        file in "\\PC{0,80}",
        count in 0_usize..60,
    ) {
        let turns: Vec<(&str, &str)> = turns.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let mut digest = session(&turns);
        digest.files = (0..count).map(|number| format!("{number}{file}")).collect();
        if let Some(NoteText { title, body }) = note_text(&digest) {
            prop_assert!(!title.contains('\n') && title.chars().count() <= MAX_TITLE);
            prop_assert!(body.chars().count() <= 4_000);
            prop_assert_eq!(body.trim_end(), &body);
        }
    }
}

#[test]
fn a_note_is_asked_for_by_later_requests_and_by_commands() {
    let mut digest = changed(&[
        ("deploy the app to staging", "Deployed."),
        ("thanks", "You're welcome!"),
        ("Write the test first, please", "It fails."),
        ("commit and push", "Pushed."),
        ("Now tag a release. The notes are in CHANGES.md.", "Tagged."),
    ]);
    digest.commands_passed = texts(&["make deploy-staging", "git tag v1.2.0"]);
    assert_eq!(
        asked(&digest),
        [
            "Now tag a release.",
            "make deploy-staging",
            "git tag v1.2.0"
        ]
    );
}

#[test]
fn a_rule_that_is_taken_back_later_is_not_told() {
    const RULE: &str = "Always add a changelog entry for every change.";
    const BACK: &str = "Actually, scrap that changelog rule, we generate it from commits.";
    let body = |turns: &[(&str, &str)]| note(&changed(turns)).1;
    let first = (RULE, "Noted, I add one from now on.");
    let kept = body(&[
        first,
        ("fix the parser of `dates.rs`", "The parser is fixed."),
    ]);
    assert!(kept.contains(RULE), "{kept}");
    let taken_back = body(&[first, (BACK, "The rule is gone.")]);
    assert!(
        !taken_back.contains("**Rules:**") && taken_back.contains(BACK),
        "{taken_back}"
    );
}

#[test]
fn an_answer_that_the_next_prompt_corrects_is_no_outcome() {
    const TEN: &str = "The timeout of the http client in `src/http.ts` is 10 seconds because the gateway cuts at 15 \
        seconds, so that we see our own error.";
    for (said, answer, line) in [
        (
            "no, 5 seconds",
            "It is 5 seconds now.",
            "Corrected: no, 5 seconds → It is 5 seconds now.",
        ),
        (
            "actually undo that",
            "Reverted.",
            "Corrected: actually undo that → Reverted.",
        ),
    ] {
        let body = note(&changed(&[
            ("Set the timeout of the http client", TEN),
            (said, answer),
        ]))
        .1;
        assert!(
            body.contains(line) && !body.contains("10 seconds"),
            "{body}"
        );
    }
    let redis = "Sessions are stored in Redis because two workers share them, with a time to live of one day.";
    let body = note(&changed(&[
        ("Store the sessions of the shop", redis),
        (
            "I don't want Redis, we have no ops for it.",
            "Sessions are in Postgres now.",
        ),
    ]));
    assert!(!body.1.contains("are stored in Redis"), "{body:?}");
    // A side question, and "no" to a question of the answer, correct nothing.
    for (said, asked) in [
        ("and what does `fetch.ts` do?", ""),
        ("no, thanks", " Shall I add a test for it?"),
    ] {
        let first = format!("{TEN}{asked}");
        let body = note(&changed(&[
            ("Set the timeout of the http client", &first),
            (said, "All right, it does."),
        ]))
        .1;
        assert!(
            body.contains("10 seconds") && !body.contains("Corrected"),
            "{body}"
        );
    }
}

#[test]
fn a_correction_as_a_question_is_told_with_its_answer() {
    let body = |said: &str| {
        let first = (
            "add the parser to `dates.rs`",
            "The parser is added with npm.",
        );
        note(&changed(&[first, (said, "It uses pnpm now.")])).1
    };
    let both = "why are you still using npm? we switched to pnpm last month";
    assert!(body(both).contains(both));
    let other = body("why are you still using npm? fix the lockfile");
    assert!(!other.contains("npm? fix"), "{other}");
    assert!(
        body("Remember that the staging database is read-only.")
            .contains("**Said:**\n- Remember that")
    );
}
