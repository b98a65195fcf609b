use proptest::prelude::*;
use serde_json::json;

use super::*;

/// Commands that should match no trigger.
const BENIGN: &str = include_str!("benign.txt");

/// A trigger, a call that must match it, and one that must not. A call is a command, or `Tool path`
/// with the written text after `<<`.
const TRAPS: [(&str, &str, &str); 50] = [
    // git
    (
        "cmd: git push --force",
        "git push --force origin main",
        "git push --force-with-lease origin main",
    ),
    (
        "cmd: git push -f",
        "cd app && git push -fu origin main",
        "git push origin fix-f",
    ),
    (
        "cmd: git push origin main --force",
        "git push origin main --force",
        "git push origin next --force",
    ),
    (
        "cmd: git reset --hard",
        "git fetch && git reset --hard origin/main",
        "git reset --soft origin/main",
    ),
    ("cmd: git clean -fdx", "git clean -xdf", "git clean -fd"),
    (
        "cmd: git checkout -- .",
        "git checkout -- .",
        "git checkout -- Cargo.lock",
    ),
    (
        "cmd: git commit --no-verify",
        "git commit --no-verify -m x",
        "git commit -m 'no --no-verify here'",
    ),
    (
        "cmd: git branch -D",
        "git branch -D old",
        "git branch -d old",
    ),
    (
        "cmd: git stash drop",
        "git stash drop stash@{0}",
        "git stash list",
    ),
    (
        "cmd: git rebase main",
        "time git rebase main",
        "git rebase --continue",
    ),
    (
        "cmd: git add -A",
        "git add -A && git commit -m x",
        "git add src/a.rs",
    ),
    // Files
    ("cmd: rm -rf /", "sudo rm -rf /", "rm -rf /tmp/x"),
    (
        "cmd: rm -rf migrations",
        "rm -r -f migrations",
        "rm -rf migrations/.cache",
    ),
    (
        "cmd: rm -rf .git",
        "find . -name x -exec rm -fr .git \\;",
        "rm -f .gitignore",
    ),
    (
        "cmd: chmod -R 777",
        "chmod -R 777 storage",
        "chmod -R u+rwX storage",
    ),
    (
        "cmd: chown -R root",
        "sudo chown -R root .",
        "chown -R app .",
    ),
    (
        "cmd: dd of=/dev/sda",
        "dd if=a.img of=/dev/sda",
        "dd if=/dev/sda of=a.img",
    ),
    (
        "cmd: sed -i Cargo.lock",
        "ls *.lock | xargs sed -i s/a/b/ Cargo.lock",
        "sed -n 1,5p Cargo.lock",
    ),
    // Packages and builds
    (
        "cmd: npm publish",
        "npm ci && npm publish",
        "npm publish --dry-run",
    ),
    (
        "cmd: npm install --force",
        "npm install --force",
        "npm install --save-dev vitest",
    ),
    (
        "cmd: npm audit fix --force",
        "npm audit fix --force",
        "npm audit fix",
    ),
    (
        "cmd: cargo publish",
        "CARGO_TERM_COLOR=never cargo publish -p core",
        "cargo package",
    ),
    (
        "cmd: cargo update --workspace",
        "cargo update --workspace",
        "cargo build # then cargo update --workspace",
    ),
    (
        "cmd: pip install --break-system-packages",
        "pip install --break-system-packages x",
        "pip install x",
    ),
    (
        "cmd: sudo pip install",
        "sudo -H pip install x",
        "pip install x",
    ),
    (
        "cmd: make deploy",
        "make -C infra deploy",
        "make -C infra test",
    ),
    ("cmd: go get -u", "go get -u ./...", "go get ./..."),
    // Databases
    (
        "cmd: prisma migrate reset",
        "npx prisma migrate reset --force",
        "npx prisma migrate status",
    ),
    (
        "cmd: alembic downgrade base",
        "uv run alembic downgrade base",
        "uv run alembic downgrade -1",
    ),
    (
        "cmd: manage.py flush",
        "./manage.py flush --no-input",
        "./manage.py migrate",
    ),
    (
        "cmd: redis-cli flushall",
        "redis-cli -h cache flushall",
        "redis-cli -h cache get flushall-at",
    ),
    ("cmd: dropdb app", "bash -c 'dropdb app'", "createdb app"),
    (
        "text: \"drop table\"",
        "psql -c 'DROP  TABLE users'",
        "grep -rn 'drop table' migrations/",
    ),
    (
        "text: delete from users;",
        "echo 'DELETE FROM users;' | psql",
        "psql -c 'DELETE FROM users_old;'",
    ),
    (
        "text: truncate",
        "psql <<SQL\nTRUNCATE users;\nSQL",
        "psql -c 'SELECT truncated FROM x'",
    ),
    // Servers
    (
        "cmd: kubectl delete namespace",
        "kubectl delete namespace shop",
        "kubectl delete pod a -n namespace-a",
    ),
    (
        "cmd: kubectl apply --context prod",
        "kubectl --v=2 apply --context=prod -f a.yaml",
        "kubectl apply --context staging -f prod.yaml",
    ),
    (
        "cmd: kubectl drain",
        "(kubectl drain node-1)",
        "kubectl cordon node-1",
    ),
    (
        "cmd: terraform destroy",
        "terraform -chdir=infra destroy",
        "terraform plan -destroy",
    ),
    (
        "cmd: terraform apply -auto-approve",
        "terraform apply -auto-approve",
        "terraform apply -auto",
    ),
    (
        "cmd: docker system prune -a",
        "docker system prune -af",
        "docker system prune",
    ),
    (
        "cmd: docker compose down -v",
        "docker compose down -v",
        "docker compose down",
    ),
    (
        "cmd: aws s3 rm --recursive",
        "aws s3 rm s3://a/b --recursive",
        "aws s3 rm s3://a/b --recursive --dryrun",
    ),
    ("cmd: curl -k", "curl -sk https://a", "curl -s https://a/-k"),
    (
        "cmd: systemctl restart nginx",
        "if true; then systemctl restart nginx; fi",
        "echo systemctl restart nginx",
    ),
    // Written text
    (
        "path: migrations/*.sql",
        "Write /srv/app/migrations/0001.sql",
        "Write /srv/app/migrations/README.md",
    ),
    ("path: .env", "Edit /app/.env", "Edit /app/.env.example"),
    (
        "path: src/generated/**",
        "Edit /app/src/generated/api/client.ts",
        "Edit /app/src/generate.ts",
    ),
    (
        "text: dangerouslySetInnerHTML",
        "Edit a.tsx << <p dangerouslySetInnerHTML={x}/>",
        "Edit a.tsx << <p setInnerHTML={x}/>",
    ),
    (
        "tool: mcp__github__merge_*",
        "mcp__github__merge_pull_request -",
        "mcp__github__list_issues -",
    ),
];

fn call(text: &str) -> Call {
    let (tool, rest) = text.split_once(' ').unwrap_or((text, ""));
    let (path, written) = rest.split_once(" << ").unwrap_or((rest, ""));
    match tool {
        "Write" => Call::new(tool, &json!({"file_path": path, "content": written})),
        "Edit" => Call::new(tool, &json!({"file_path": path, "new_string": written})),
        tool if tool.starts_with("mcp__") => Call::new(tool, &json!({})),
        _ => Call::new("Bash", &json!({"command": text})),
    }
}

/// Returns the keys of a call if a trigger with the key `filed` exists.
fn keys(call: &Call, filed: &str) -> Vec<String> {
    let texts = || Ok::<_, std::convert::Infallible>(vec![filed.to_owned()]);
    let Ok(keys) = call.keys(texts);
    keys
}

fn trigger(line: &str) -> Trigger {
    line.parse()
        .unwrap_or_else(|error| panic!("{line}: {error}"))
}

fn benign() -> impl Iterator<Item = &'static str> {
    let lines = BENIGN.lines();
    lines.filter(|line| !line.is_empty() && !line.starts_with('#'))
}

#[test]
fn triggers_match_their_call_and_not_its_neighbour() {
    for (line, meets, misses) in TRAPS {
        let trigger = trigger(line);
        assert!(trigger.matches(&call(meets)), "{line} should fit {meets}");
        assert!(
            !trigger.matches(&call(misses)),
            "{line} should not fit {misses}"
        );
    }
}

#[test]
fn everyday_commands_hardly_ever_match() {
    let traps = TRAPS.map(|(line, ..)| trigger(line));
    assert_eq!(benign().count(), 200);
    let met: Vec<_> = benign()
        .filter_map(|command| {
            let call = call(command);
            let trap = traps.iter().find(|trap| trap.matches(&call))?;
            Some((trap.as_str(), command))
        })
        .collect();
    // The match is the message of a migration that is only generated. Two would be one percent.
    let drawn_up = r#"alembic revision --autogenerate -m "drop table legacy_sessions""#;
    assert_eq!(met, [("text: \"drop table\"", drawn_up)]);
}

#[test]
fn a_matching_call_has_the_key_of_the_trigger() {
    for (line, meets, _) in TRAPS {
        let key = trigger(line).key();
        assert!(keys(&call(meets), &key).contains(&key), "{line}: {key}");
    }
}

#[test]
fn triggers_have_a_canonical_form() {
    for (line, written) in [
        ("cmd: git push --force", "cmd: git push --force"),
        ("  cmd :git   push ", "cmd: git push"),
        ("path: *.rs", "path: *.rs"),
        ("text: \"a b c\"", "text: \"a b c\""),
        ("text: \u{524a}\u{9664}", "text: \u{524a}\u{9664}"),
        ("tool: Write", "tool: Write"),
    ] {
        let trigger = trigger(line);
        assert_eq!(trigger.as_str(), written);
        assert_eq!(written.parse().as_ref(), Ok(&trigger));
    }
}

#[test]
fn triggers_that_match_everywhere_are_refused() {
    let long = format!("text: {}", "a".repeat(MAX_LENGTH));
    for (line, expected) in [
        (
            "",
            "a trigger is `cmd: …`, `path: …`, `tool: …` or `text: …`",
        ),
        (
            "git push",
            "a trigger is `cmd: …`, `path: …`, `tool: …` or `text: …`",
        ),
        (
            "when: x",
            "a trigger is `cmd: …`, `path: …`, `tool: …` or `text: …`",
        ),
        ("cmd:", "`cmd:` needs a pattern"),
        (
            "cmd: git",
            "`cmd: git` would come up at every run of it; add a further word, as in `cmd: git push --force`",
        ),
        (
            "cmd: cd a && git push",
            "`cmd:` takes the words of one command; write a trigger for each, without operators",
        ),
        (
            "path: *",
            "`path: *` would come up at every file; name a folder or an ending, as in `migrations/*.sql`",
        ),
        (
            "path: **/*.*",
            "`path: **/*.*` would come up at every file; name a folder or an ending, as in `migrations/*.sql`",
        ),
        (
            "tool: *",
            "`tool: *` would come up at every call; name a tool, as in `Write` or `mcp__github__*`",
        ),
        (
            "text: \"x;\"",
            "`text: \"x;\"` would come up everywhere; it needs at least three letters or digits",
        ),
        (long.as_str(), "a trigger has at most 200 characters"),
    ] {
        let refused = line.parse::<Trigger>().map_err(|error| error.to_string());
        assert_eq!(refused, Err(expected.to_owned()), "{line}");
    }
}

#[test]
fn paths_match_at_any_depth_and_below_folders() {
    for (pattern, fits, misses) in [
        (
            "migrations/*.sql",
            "/a/migrations/1.sql",
            "/a/migrations/old/1.sql",
        ),
        (
            "migrations/**/*.sql",
            "/a/migrations/old/1.sql",
            "/a/old/1.sql",
        ),
        ("/etc/*", "/etc/hosts", "/app/etc/hosts"),
        ("secrets", "/a/secrets/b/key", "/a/secrets.md"),
        ("vendor/", "vendor/a.go", "/a/vendored/a.go"),
        ("*.lock", r"C:\a\Cargo.lock", "/a/lock"),
        ("a?.ts", "/x/ab.ts", "/x/abc.ts"),
        ("src/a.rs", "/x/./src/b/../a.rs", "/x/src/b/a.rs"),
    ] {
        let trigger = trigger(&format!("path: {pattern}"));
        for (path, expected) in [(fits, true), (misses, false)] {
            let call = Call::new("NotebookEdit", &json!({"notebook_path": path}));
            assert_eq!(trigger.matches(&call), expected, "{pattern} {path}");
            let key = trigger.key();
            let has_key = keys(&call, &key).contains(&key);
            assert!(has_key || !expected, "{pattern} {path}");
        }
    }
}

#[test]
fn texts_match_written_and_run_text_only() {
    let trigger = trigger("text: drop table");
    let text = "-- x\nDROP\tTABLE a;";
    for (tool, input, expected) in [
        (
            "Bash",
            json!({"command": format!("psql -c '{text}'")}),
            true,
        ),
        (
            "Bash",
            json!({"command": format!("echo '{text}' | psql")}),
            true,
        ),
        (
            "Bash",
            json!({"command": format!("git log --grep '{text}' | head")}),
            false,
        ),
        ("Write", json!({"content": text}), true),
        ("Edit", json!({"old_string": text, "new_string": ""}), false),
        ("Edit", json!({"old_string": "", "new_string": text}), true),
        (
            "MultiEdit",
            json!({"edits": [{"new_string": "x"}, {"new_string": text}]}),
            true,
        ),
        (
            "MultiEdit",
            json!({"edits": [{"new_string": "drop"}, {"new_string": "table"}]}),
            false,
        ),
        ("NotebookEdit", json!({"new_source": text}), true),
        ("mcp__db__query", json!({"sql": text}), true),
        ("Agent", json!({"prompt": text}), false),
        ("Grep", json!({"pattern": text}), false),
        ("Bash", json!({"command": 5}), false),
        ("Write", json!(null), false),
        ("Write", json!({"content": "backdrop tables"}), false),
    ] {
        assert_eq!(
            trigger.matches(&Call::new(tool, &input)),
            expected,
            "{tool} {input}"
        );
    }
}

#[test]
fn acts_leave_out_programs_and_descriptions() {
    for (text, acts) in [
        (
            "cd app && sudo git push --force origin main | tee push.log",
            &["push --force origin main"][..],
        ),
        ("git log --grep 'push --force'; make", &[""]),
        ("cargo publish --dry-run", &[]),
        ("bash -c 'dropdb app'", &["-c dropdb app", "app"]),
        (
            "Write /srv/app/migrations/1.sql << DROP  TABLE a",
            &["migrations 1.sql drop table a"],
        ),
        ("Edit Cargo.toml << openssl", &["Cargo.toml openssl"]),
        // A line that matches.
        ("Edit Cargo.toml", &[]),
    ] {
        assert_eq!(call(text).acts(), acts, "{text}");
    }
    let look = Call::new("Read", &json!({"file_path": "/srv/app/a.rs"}));
    assert_eq!(look.acts(), [""; 0]);
}

#[test]
fn options_are_found_in_prose_and_in_commands() {
    for (text, expected) in [
        ("`git clean -fx` took it", &["-f", "-x"][..]),
        (
            "kubectl apply --context=prod, not --dry-run.",
            &["--context", "--dry-run"],
        ),
        ("A well-known case -- or two - of -1 and -Wall-errors", &[]),
    ] {
        let found = options(text);
        assert!(found.iter().eq(expected), "{text}: {found:?}");
    }
}

#[test]
fn specificity_orders_triggers() {
    let lines = [
        "tool: Write",
        "text: drop table",
        "path: *.sql",
        "path: migrations/*.sql",
        "cmd: git push",
        "cmd: git push --force",
    ];
    let order = lines.map(|line| trigger(line).specificity());
    assert!(order.is_sorted_by(|a, b| a < b), "{order:?}");
}

#[test]
fn hostile_calls_terminate() {
    let long = 1 << 20;
    let triggers = [0, 1, 32, 45].map(|index: usize| trigger(TRAPS[index].0));
    let repeated = trigger(&format!("text: {}", "aa ".repeat(60)));
    for text in [
        "\0".repeat(long),
        "aa ".repeat(long / 3),
        "-f ".repeat(long / 3),
        "/".repeat(long),
        "a/".repeat(long / 2),
    ] {
        for call in [
            Call::new("Bash", &json!({"command": format!("git push {text}")})),
            Call::new("Write", &json!({"file_path": text, "content": text})),
        ] {
            assert!(!triggers.iter().all(|trigger| trigger.matches(&call)));
            let _ = (repeated.matches(&call), keys(&call, &repeated.key()).len());
            assert!(call.text.len() <= 2 * MAX_TEXT && call.path.len() <= MAX_PATH);
        }
    }
}

proptest! {
    #[test]
    fn any_line_and_any_call_is_accepted(
        line in "(cmd|path|tool|text): ?\\PC{0,30}",
        command in "(?s).{0,60}",
        path in "\\PC{0,30}",
    ) {
        let calls = [
            Call::new("Bash", &json!({"command": command})),
            Call::new("Write", &json!({"file_path": path, "content": command})),
        ];
        for call in &calls {
            prop_assert!(call.acts().len() <= call.commands.len().max(1));
            prop_assert!(options(&command).iter().all(|option| command.contains(&option[1..])));
        }
        if let Ok(trigger) = line.parse::<Trigger>() {
            prop_assert_eq!(trigger.as_str().parse::<Trigger>(), Ok(trigger.clone()));
            for call in &calls {
                let key = trigger.key();
                let is_filed = keys(call, &key).contains(&key);
                prop_assert!(is_filed || !trigger.matches(call), "{:?}", key);
            }
        }
    }

        /// The words of a command are found with other words between and after them.
    #[test]
    fn words_are_found_in_their_order(
        words in prop::collection::vec("[a-z]{1,5}|--[a-z]{2,5}|-[a-z]", 1..4),
        others in prop::collection::vec("[A-Z]{1,5}", 4),
    ) {
        let line = format!("cmd: program {}", words.join(" "));
        let Ok(trigger) = line.parse::<Trigger>() else { return Ok(()) };
        prop_assume!(!words.iter().any(|word| word == "--help"));
        let mut command = "program".to_owned();
        for (word, other) in words.iter().zip(&others) {
            command += &format!(" {other} {word}");
        }
        prop_assert!(trigger.matches(&call(&command)), "{} {}", line, command);
    }
}
