use proptest::prelude::*;

use super::*;
use anamnesis_testkit::assert_linear;

#[test]
fn informative_lines() {
    for (error, told) in [
        (
            "Exit code 101\n   Compiling shop v0.1.0 (/home/dev/shop)\n\
             warning: unused variable: `a`\n\
             error[E0425]: cannot find value `total` in this scope\n  --> src/cart.rs:12:5\n   |\n\
             12 |     total\n   |     ^^^^^ not found in this scope\n\n\
             error: aborting due to 1 previous error\n\n\
             For more information about this error, try `rustc --explain E0425`.\n\
             error: could not compile `shop` (bin \"shop\") due to 1 previous error",
            "error[E0425]: cannot find value `total` in this scope",
        ),
        (
            "Exit code 101\nrunning 2 tests\ntest cart::adds ... FAILED\n\nfailures:\n\n\
             ---- cart::adds stdout ----\n\nthread 'cart::adds' (812) panicked at src/cart.rs:9:5:\n\
             assertion `left == right` failed: the sum\n  left: 1\n right: 2\n\
             note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n\n\
             test result: FAILED. 1 passed; 1 failed; 0 ignored\n\n\
             error: test failed, to rerun pass `--lib`",
            "assertion `left == right` failed: the sum",
        ),
        (
            "Exit code 1\nTraceback (most recent call last):\n\
             \x20 File \"/home/dev/a.py\", line 3, in <module>\n    raise ValueError('bad total')\n\
             ValueError: bad total",
            "ValueError: bad total",
        ),
        (
            "Exit code 1\n    def test_a():\n>       assert total() == 3\n\
             E       assert 2 == 3\nE        +  where 2 = total()\n\n\
             =========== short test summary info ===========\n\
             FAILED tests/test_a.py::test_a - assert 2 == 3\n1 failed in 0.03s",
            "assert 2 == 3",
        ),
        (
            "Exit code 1\nnpm error Missing script: \"test\"\nnpm error\n\
             npm error To see a list of scripts, run:\nnpm error   npm run\n\
             npm error A complete log of this run can be found in: /root/.npm/_logs/1.log",
            "Missing script: \"test\"",
        ),
        (
            "Exit code 1\n--- FAIL: TestCart (0.00s)\n    cart_test.go:12: got 1, want 2\nFAIL\n\
             FAIL\texample.com/shop\t0.003s",
            "cart_test.go:12: got 1, want 2",
        ),
        (
            "Exit code 2\nsrc/cart.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
            "src/cart.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.",
        ),
        (
            "Exit code 1\nfile:///home/dev/a.mjs:1\nimport 'express';\n\n\
             Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'express' imported from /home/dev/a.mjs\n\
             \x20   at packageResolve (node:internal/modules/esm/resolve:873:9)",
            "Error [ERR_MODULE_NOT_FOUND]: Cannot find package 'express' imported from /home/dev/a.mjs",
        ),
        (
            "Exit code 128\nfatal: not a git repository (or any of the parent directories): .git",
            "fatal: not a git repository (or any of the parent directories): .git",
        ),
        (
            "Exit code 127\n/bin/bash: line 1: pnpm: command not found",
            "/bin/bash: line 1: pnpm: command not found",
        ),
        (
            "Exit code 2\nmake: gcc: No such file or directory\nmake: *** [Makefile:3: a.o] Error 127",
            "make: gcc: No such file or directory",
        ),
        (
            "Exit code 1\nmkdir: shop: File exists",
            "mkdir: shop: File exists",
        ),
        (
            "File does not exist. Note: your current working directory is /home/dev/project.",
            "File does not exist. Note: your current working directory is /home/dev/project.",
        ),
        (
            "Command timed out after 2m 0s",
            "Command timed out after 2m 0s",
        ),
    ] {
        assert_eq!(informative_line(error).as_deref(), Some(told), "{error:?}");
    }
}

/// A signature omits compared values, and without them a bare assertion has no description.
#[test]
fn a_bare_assertion_has_no_signature() {
    for error in [
        "thread 'a' panicked at src/a.rs:9:5:\nassertion `left == right` failed\n  left: 1",
        "E       assert 2 == 3",
        "AssertionError",
    ] {
        assert_eq!(signature(error), None, "{error:?}");
    }
    let named = "panicked at src/a.rs:9:5:\nassertion `left == right` failed: the sum";
    let form = "assertion '*' failed: the sum";
    assert_eq!(signature(named).as_deref(), Some(form));
}

#[test]
fn errors_without_an_informative_line() {
    for error in [
        "",
        "\n \n",
        "Exit code 1",
        "false",
        "Error",
        "Error:",
        "error: exit code 1",
        "FAILED",
        "Exit code 1\n\n1 failed, 3 passed",
        "Exit code 101\nerror: test failed, to rerun pass `--lib`",
        "Exit code 2\nmake: *** [Makefile:3: test] Error 1",
        "Exit code 1\nhello\nworld",
        "npm ERR! code ELIFECYCLE",
    ] {
        assert_eq!(signature(error), None, "{error:?}");
    }
}

#[test]
fn the_same_error_elsewhere() {
    for (one, other) in [
        (
            "error: could not read /home/ana/shop/Cargo.toml: Permission denied (os error 13)",
            "error: could not read /Users/bo/work/shop/Cargo.toml: Permission denied (os error 13)",
        ),
        (
            "error: could not read src/cart.rs:12:5",
            "error: could not read C:\\shop\\src\\cart.rs:9",
        ),
        (
            "fatal: bad object 8f3c2d1e0a9b",
            "fatal: bad object 0123456789abcdef0123456789abcdef01234567",
        ),
        (
            "error: job 550e8400-e29b-41d4-a716-446655440000 not found",
            "error: job 123e4567-e89b-12d3-a456-426614174000 not found",
        ),
        (
            "2026-11-21T20:27:00.885Z error: connection refused by 127.0.0.1:5432",
            "2027-01-02T03:04:05Z error: connection refused by 10.0.0.7:5433",
        ),
        (
            "TypeError: cannot read property 'total' of undefined",
            "TypeError: cannot read property \"total\" of undefined",
        ),
        (
            "error: expected 'one of many words' here",
            "error: expected 'other text altogether' here",
        ),
        (
            "Command timed out after 120000ms",
            "Command timed out after 5000ms",
        ),
        (
            "error: cannot open 0x7ffe12ab",
            "error: cannot open 0x55aa0001",
        ),
        (
            "error: GET http://127.0.0.1:4873/a failed",
            "error: GET https://registry.example/b failed",
        ),
        (
            "ValueError: bad total 12",
            "Exit code 1\nvalue\nValueError: bad total 7.25",
        ),
        (
            "fatal: pack has 1,234 bad objects",
            "fatal: pack has 99 bad objects",
        ),
    ] {
        assert_eq!(signature(one), signature(other));
        assert!(signature(one).is_some(), "{one:?}");
    }
}

#[test]
fn different_errors_differ() {
    for (one, other) in [
        (
            "error[E0308]: mismatched types",
            "error[E0309]: mismatched types",
        ),
        (
            "a.ts: error TS2322: bad type",
            "a.ts: error TS2345: bad type",
        ),
        (
            "ModuleNotFoundError: No module named 'requests'",
            "ModuleNotFoundError: No module named 'httpx'",
        ),
        (
            "error: could not read src/cart.rs",
            "error: could not read src/till.rs",
        ),
        ("error: no u32 here", "error: no u64 here"),
    ] {
        assert_ne!(signature(one), signature(other));
    }
}

#[test]
fn signature_format() {
    for (error, form) in [
        (
            "error[E0425]: cannot find value `total` in this scope",
            "error[e0425]: cannot find value 'total' in this scope",
        ),
        (
            "src/cart.ts(3,7): error TS2322: Type 'string' isn't 'a number'",
            "cart.ts(#): error ts2322: type 'string' isn't '*'",
        ),
        (
            "/bin/bash: line 1: pnpm: command not found",
            "bash: line #: pnpm: command not found",
        ),
    ] {
        assert_eq!(signature(error).as_deref(), Some(form), "{error:?}");
    }
}

#[test]
fn the_work_is_linear() {
    for unit in ["error: 'a b' /c/d:1 ", "error: \n", "'", "\n"] {
        let small = unit.repeat((1 << 16) / unit.len());
        let large = small.repeat(16);
        assert_linear(unit, || signature(&small), || signature(&large));
    }
}

fn errors() -> impl Strategy<Value = String> {
    let parts = prop::sample::select(vec![
        "error: ",
        "Exit code 1\n",
        "panicked at a:\n",
        "'",
        "`",
        "“",
        "”",
        "/",
        "\\",
        "://",
        "12",
        "e29b",
        "E0308",
        "#",
        ".",
        ":",
        "-",
        "\n",
        " ",
        "é",
        "ß",
        "cart",
        "not found",
        "TypeError:",
        "İ",
        "npm error ",
        "E   ",
        "0x",
        "deadbeef1",
    ]);
    prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
}

#[test]
fn a_line_of_source_code_is_no_error() {
    for (error, expected) in [
        (
            "a.go:9:5: err is not returned (nilnesserr)\n\t\tfmt.Fprintf(os.Stderr, \"failed: %v\", err)\n\t\t^",
            "a.go:9:5: err is not returned (nilnesserr)",
        ),
        (
            "315 | failed: new Error(\"no connection\"),\nerror: the stub is down",
            "error: the stub is down",
        ),
        (
            "if out := run(); out == nil {\nthe hook is missing",
            "the hook is missing",
        ),
    ] {
        assert_eq!(informative_line(error).as_deref(), Some(expected));
    }
    let code = "return fmt.Errorf(\"failed to open: %w\", err)";
    assert_eq!(informative_line(code), None);
}

proptest! {
    #[test]
    fn a_signature_is_one_short_line(error in prop_oneof![errors(), any::<String>()]) {
        if let Some(signature) = signature(&error) {
            prop_assert!(signature.chars().count() <= MAX_SIGNATURE);
            prop_assert!(!signature.trim().is_empty() && !signature.contains('\n'));
        }
    }

    #[test]
    fn numbers_and_folders_do_not_count(
        line in 1_u32..99_999,
        other in 1_u32..99_999,
        folder in "(/[a-z]{1,8}){1,4}",
    ) {
        let one = format!("error: {folder}/cart.rs:{line}: total is missing after {line} ms");
        let two = format!("error: /x/cart.rs:{other}:7: total is missing after {other} ms");
        prop_assert_eq!(signature(&one), signature(&two));
    }
}
