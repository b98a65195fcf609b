use super::{check::is_mistyped, *};

fn command(text: &str) -> Command<'_> {
    Command::parse(text).unwrap()
}

#[test]
fn commands_with_the_same_work() {
    for (one, other) in [
        ("cargo test cart", "cargo  test\tcart"),
        ("cargo test cart", "cd web && cargo test cart"),
        ("cd web && cargo test cart", "cd web; cargo test cart"),
        ("cargo test", "RUST_LOG=debug RUST_BACKTRACE=1 cargo test"),
        ("cargo test", "env A=b cargo test"),
        ("cargo test", "time cargo test"),
        ("cargo test", "timeout -k 5 60 cargo test"),
        ("cargo test", "time nice -n 10 cargo test"),
        ("cargo test", "cargo test 2>&1 | tail -n 20"),
        ("cargo test", "cargo test 2>&1 | grep -v warning | head -50"),
        ("cargo test", "cargo test > out.log 2>&1"),
        ("cargo test", "cargo test >out.log; echo \"exit $?\""),
        ("cargo test", "cargo test || true"),
        ("cargo test", "cargo test && echo done"),
        ("cargo test", "set -o pipefail; cargo test | tee log"),
        ("cargo test", "source .env && export A=1 && cargo test"),
        (
            "cargo build && cargo test",
            "cd web && cargo build && cargo test",
        ),
        ("cargo test", "cargo test \\\n"),
        ("cargo test", "cargo test # again"),
        ("sh -c 'a; b | tail'", "sh -c 'a; b | tail' | tail"),
        (
            "psql -c \"select 1; select 2\"",
            "psql -c \"select 1; select 2\"",
        ),
    ] {
        assert!(command(one).is_same(&command(other)), "{one:?} {other:?}");
    }
}

#[test]
fn commands_with_different_work() {
    for (one, other) in [
        ("cargo test cart", "cargo test login"),
        ("cargo test", "cargo test --release"),
        ("cd web && npm test", "cd api && npm test"),
        ("sudo make install", "make install"),
        ("cargo build && cargo test", "cargo build"),
        ("cargo build; cargo test", "cargo build"),
        ("cat <<E\na | tail\nE", "cat <<E\na\nE"),
        ("sh -c 'a | tail'", "sh -c 'a'"),
    ] {
        assert!(!command(one).is_same(&command(other)), "{one:?} {other:?}");
    }
}

#[test]
fn commands_without_work() {
    for text in [
        "",
        " \n",
        "cd web",
        "export A=b && cd web",
        "# a remark",
        "&&",
        "| |",
    ] {
        let parsed = Command::parse(text);
        assert!(
            parsed.is_none_or(|command| !command.is_significant()),
            "{text:?}"
        );
    }
}

#[test]
fn commands_are_shown_as_typed() {
    for (text, shown) in [
        ("cargo  test", "cargo test"),
        (
            "cd /home/dev/shop && cargo test cart 2>&1 | tail -20",
            "cargo test cart",
        ),
        ("A=1 cargo test", "A=1 cargo test"),
        ("echo `date`", "echo 'date'"),
        (
            "cargo test --workspace --all-features",
            "cargo test --works…",
        ),
        ("npm test &", "npm test"),
    ] {
        assert_eq!(command(text).shown(19), shown, "{text:?}");
    }
}

#[test]
fn commands_that_hide_the_exit_status() {
    for (text, hides) in [
        ("cargo test", false),
        ("cd web && cargo test", false),
        ("cd web; cargo test", false),
        ("cargo build && cargo test", false),
        ("cargo test 2>&1", false),
        ("cargo test &> log", false),
        ("sh -c 'a | b'", false),
        ("echo a \\| b", false),
        ("set -o pipefail; cargo test | tail", false),
        ("cargo test | tail", true),
        ("cargo test |& tail", true),
        ("cargo test || true", true),
        ("cargo test; echo $?", true),
        ("cargo test\necho done", true),
        ("npm start &", true),
    ] {
        assert_eq!(command(text).hides_exit_status, hides, "{text:?}");
    }
}

#[test]
fn test_commands_are_recognized() {
    for text in [
        "cargo test",
        "cargo +nightly test -p core",
        "cargo --manifest-path a/Cargo.toml test",
        "cargo nextest run",
        "pytest -x tests",
        "python3 -m pytest",
        ".venv/bin/python -m unittest discover",
        "uv run pytest",
        "poetry run python -m pytest",
        "npm test",
        "npm t",
        "npm run test:unit",
        "npm --prefix web test",
        "pnpm test -- cart",
        "yarn run test",
        "bun test",
        "npx vitest run",
        "pnpm exec jest",
        "./node_modules/.bin/jest cart",
        "npx playwright test",
        "go test ./...",
        "make test",
        "make -j4 check",
        "just test",
        "./gradlew clean test",
        "mvn -q verify",
        "ctest --output-on-failure",
        "bundle exec rspec",
        "bundle exec rake spec",
        "vendor/bin/phpunit",
        "composer test",
        "dotnet test",
        "swift test",
        "mix test",
        "tox -e py312",
        "deno test",
        "zig build test",
        "cargo build && cargo test",
        "cd web && npm test 2>&1 | tail",
        "(cd web && npm test)",
    ] {
        assert!(command(text).is_test(), "{text:?}");
    }
    for text in [
        "cargo build",
        "cargo run test",
        "cargo install test",
        "npm install test",
        "npm run build",
        "python test.py",
        "make",
        "make tests.o",
        "go build ./test",
        "git commit -m test",
        "test -f Cargo.toml",
        "echo cargo test",
        "cat test",
        "uv run",
        "npx",
    ] {
        assert!(!command(text).is_test(), "{text:?}");
    }
}

#[test]
fn workarounds_are_recognized() {
    for (failed, passed) in [
        ("npm test", "pnpm test"),
        ("npm test", "npm run test"),
        ("python a.py", "python3 a.py"),
        ("python -m pytest", "pytest"),
        ("pip install foo", "uv pip install foo"),
        ("make test", "cargo test"),
        ("git push", "git push -u origin main"),
        ("npm install", "npm install --legacy-peer-deps"),
        ("cargo build --locked", "cargo build"),
        ("cargo test", "cargo test -- --test-threads=1"),
    ] {
        assert!(
            command(failed).has_workaround(&command(passed)),
            "{failed:?} {passed:?}"
        );
    }
    for (failed, passed) in [
        ("npm test", "npm test"),
        ("git push", "git status"),
        ("git push origin main", "git push"),
        ("cargo test", "cargo test cart"),
        ("cargo test cart", "cargo test login"),
        ("python a.py", "python b.py"),
        ("ls a", "ls b"),
        ("cat a.rs", "vim a.rs"),
        ("rm build", "mkdir build"),
        ("cargo build", "npm install"),
        ("cargo build && cargo test", "make build && make test"),
    ] {
        assert!(
            !command(failed).has_workaround(&command(passed)),
            "{failed:?} {passed:?}"
        );
    }
}

#[test]
fn a_wider_test_fixes_a_narrower_one() {
    for (failed, passed, fixes) in [
        ("cargo test cart", "cargo test", true),
        ("pytest tests/cart.py -x", "pytest tests/cart.py", true),
        ("npm test", "npm test && npm run build", true),
        ("npm test", "npm test; npm run build", false),
        ("npm test", "cd docs && npm test && npm run build", false),
        ("cargo test", "cargo test cart", false),
        ("cargo test cart", "cargo build", false),
        ("cargo build --release", "cargo build", false),
        ("cargo test cart", "cargo test login", false),
    ] {
        let is_fixed = command(failed).is_fixed_by(&command(passed));
        assert_eq!(is_fixed, fixes, "{failed:?} {passed:?}");
    }
}

#[test]
fn checks_test_build_lint_deploy_or_run_the_project() {
    for (typed, shown) in [
        ("cargo test -p store", "cargo test -p store"),
        ("cargo +nightly clippy", "cargo +nightly clippy"),
        ("make", "make"),
        ("make fmt && make lint 2>&1 | tail -5", "make lint"),
        ("npm run build -- --prod", "npm run build -- --prod"),
        ("npm start", "npm start"),
        ("npx tsc --noEmit", "npx tsc --noEmit"),
        ("uv run pytest -q", "uv run pytest -q"),
        ("python3 tests/cart.py", "python3 tests/cart.py"),
        ("./scripts/verify.sh --all", "./scripts/verify.sh --all"),
        ("golangci-lint run ./...", "golangci-lint run ./..."),
        ("npx vercel --prod", "npx vercel --prod"),
        ("terraform plan", "terraform plan"),
        ("docker compose up -d", "docker compose up -d"),
        ("cd web && npm test", "cd web && npm test"),
        ("cd /home/ann/shop && npm test", "npm test"),
    ] {
        assert_eq!(command(typed).check().as_deref(), Some(shown), "{typed}");
    }
    for typed in [
        "git diff",
        "git apply x.patch",
        "gh run view 3",
        "cat test",
        "grep -rn test src/a.sh",
        "npm install",
        "pip install build",
        "brew services start x",
        "python3 -c 'import a'",
        "node -e \"require('./a.js')\"",
        "go run /dev/stdin <<E\nx\nE",
        "curl -s localhost",
        "npx some-tool add-task",
        "/tmp/try.sh",
    ] {
        assert_eq!(command(typed).check(), None, "{typed}");
    }
}

#[test]
fn a_check_is_closed_by_the_same_check_in_another_form() {
    for (failed, passed, closes) in [
        ("npm test", "npm test -- --silent", true),
        (
            "npm test",
            "npm run lint && npm test && npm run build",
            true,
        ),
        ("npm test", "pnpm test", true),
        ("npm run lint", "yarn lint", true),
        ("pnpm test", "npm t", true),
        ("npm test", "bun run test", true),
        ("go test ./cart", "go test ./...", true),
        ("go test -race ./...", "go test ./... -count=1", true),
        ("go test ./...", "go test ./cart", false),
        ("cd web && npm test", "npm test", true),
        ("cd web && npm test", "cd api && npm test", false),
        ("npm test", "cd docs && npm test", false),
        ("npm test", "npm run build && cd docs && npm test", false),
        ("npm test", "npm test -- --testPathPattern=user", false),
        ("npm test -- --testPathPattern=user", "npm test", true),
        ("npm test", "npm test user", false),
        ("npm test", "npm test -- --listTests", false),
        ("npm test", "npm test --version", false),
        ("pytest", "pytest --collect-only", false),
        ("cargo test", "cargo test --no-run", false),
        ("cargo test", "cargo test --lib", false),
        ("cargo test --lib", "cargo test --lib", true),
        ("go test ./...", "go test -run=TestCart ./...", false),
        ("npm run deploy", "npm run deploy -- --dry-run", false),
        ("make test", "make -n test", false),
        ("make test", "make -j4 test", true),
    ] {
        let is_closed = command(failed).is_closed_by(&command(passed));
        assert_eq!(is_closed, closes, "{failed:?} {passed:?}");
    }
}

#[test]
fn each_check_of_a_chain_that_passed_is_told() {
    for (typed, passed) in [
        (
            "npm test && npm run build",
            &["npm test", "npm run build"][..],
        ),
        (
            "cd web && npm test && echo ok && npm run build",
            &["cd web && npm test", "cd web && npm run build"],
        ),
        // Only the output of the last one is known.
        ("make lint; make test", &["make test"]),
        ("git status", &[]),
    ] {
        let checks = command(typed).passed_checks();
        let shown: Vec<String> = checks.iter().filter_map(Command::check).collect();
        assert_eq!(shown, passed, "{typed}");
    }
}

#[test]
fn the_step_that_failed_is_named() {
    let chain = "npm run lint && npm test";
    for (typed, printed, failed) in [
        (
            chain,
            "> shop@1.0.0 lint\n> eslint .\n\n3:1 error",
            "npm run lint",
        ),
        (
            chain,
            "> shop@1.0.0 lint\n> eslint .\n\n> shop@1.0.0 test\n> jest\n\n1 failed",
            "npm test",
        ),
        (
            "mise run fmt && mise run lint",
            "[fmt] $ gofmt -w .\n[lint] $ golangci-lint run",
            "mise run lint",
        ),
        (
            "make lint && make test",
            "make: *** [Makefile:3: lint] Error 1",
            "make lint",
        ),
        ("make fmt && make lint", "3:1 error", "make lint"),
        // Any of them may have failed.
        (chain, "3:1 error", chain),
        (
            "cd web && cargo build && cargo test",
            "error",
            "cd web && cargo build && cargo test",
        ),
        ("npm ci && npm test", "3:1 error", "npm test"),
    ] {
        assert_eq!(
            command(typed).failed_check(printed).as_deref(),
            Some(failed),
            "{printed}"
        );
    }
}

#[test]
fn a_check_is_not_blamed_for_another_step_of_its_chain() {
    let pulled = "error: Your local changes to the following files would be overwritten by merge:\n\tsrc/a.c";
    for (typed, printed, failed) in [
        (
            "npm ci && npm test",
            "Exit code 1\nnpm error code ERESOLVE\nnpm error ERESOLVE could not resolve",
            None,
        ),
        (
            "pip install -r requirements.txt && pytest",
            "Exit code 1\nERROR: No matching distribution found for torch==9",
            None,
        ),
        ("git pull && make test", pulled, None),
        ("grep -rn old tests/ && pytest -k old", "Exit code 1", None),
        ("[ -f a.lock ] && npm test", "", None),
        (
            "cp a.env .env && make test",
            "cp: cannot stat 'a.env'",
            None,
        ),
        (
            "npm test && git commit -m x",
            "> shop@1.0.0 test\n12 passed\nnothing to commit, working tree clean",
            None,
        ),
        (
            "make test && git push",
            " ! [rejected] main -> main (fetch first)",
            None,
        ),
        // The output shows that the check ran.
        (
            "npm ci && npm test",
            "added 12 packages\n\n> shop@1.0.0 test\n> jest\n\nExpected 90",
            Some("npm test"),
        ),
        (
            "pip install -e . && pytest -q",
            "Successfully installed shop\nFAILED tests/test_a.py::test_total",
            Some("pytest -q"),
        ),
        (
            "git pull && make test",
            "Already up to date.\nmake: *** [Makefile:3: test] Error 1",
            Some("make test"),
        ),
        (
            "grep -rn old tests/ && pytest -k old",
            "tests/test_a.py:3:def old():\nno tests ran",
            Some("pytest -k old"),
        ),
        (
            "npm test && git commit -m x",
            "FAIL src/a.test.ts",
            Some("npm test"),
        ),
        // What hardly fails, or says so, is no suspect.
        (
            "rm -rf dist && npm run build",
            "error: no entry",
            Some("npm run build"),
        ),
        ("export A=1 && make test", "error: x", Some("make test")),
        (
            "cd web && source .venv/bin/activate && pytest",
            "error: x",
            Some("cd web && pytest"),
        ),
    ] {
        assert_eq!(
            command(typed).failed_check(printed).as_deref(),
            failed,
            "{typed}: {printed}"
        );
    }
    let mut chain = command("npm ci && npm test");
    assert_eq!(chain.failed_check("npm error code ERESOLVE"), None);
    assert!(chain.is_other_tool() && chain.is_same(&command("npm ci")));
    assert_eq!(chain.shown(50), "npm ci");
    assert!(is_mistyped(
        "/bin/bash: line 1: cd: packages/web: No such file or directory"
    ));
    assert!(!is_mistyped(
        "scripts/deploy.sh: line 4: cd: dist: No such file or directory"
    ));
}

#[test]
fn a_check_is_within_the_project_or_in_another_one() {
    let check = |typed| {
        command(typed)
            .within("/home/ann/shop")
            .and_then(|command| command.check())
    };
    for (typed, shown) in [
        ("cd /home/ann/shop && make test", Some("make test")),
        (
            "cd /home/ann/shop/web && make test",
            Some("cd web && make test"),
        ),
        ("cd ../api && make test", Some("make test")),
        ("cd /home/ann/shop-fix && make test", Some("make test")),
        ("cd /tmp/upstream && make test", None),
        ("cd ~/lib && make test", None),
    ] {
        assert_eq!(check(typed).as_deref(), shown, "{typed}");
    }
}
