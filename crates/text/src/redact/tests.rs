//! Tests of the rules and of the invariants.

use anamnesis_testkit::assert_linear;
use proptest::prelude::*;

use super::examples::{EXAMPLES, Examples};
use super::samples::{self, Draw};
use super::tokens::Rule;
use super::*;

#[test]
fn rules_match_their_examples_only() {
    let mut wrong = Vec::new();
    for Examples {
        rule,
        must_match,
        must_not_match,
    } in EXAMPLES
    {
        for example in *must_match {
            let found = redact(example).findings;
            if !found.iter().any(|finding| finding.rule == *rule) {
                wrong.push(format!("{rule} misses {example:?}; found {found:?}"));
            }
        }
        for example in *must_not_match {
            let redacted = redact(example);
            if !redacted.findings.is_empty() {
                wrong.push(format!(
                    "{rule} masks {example:?}: {} {:?}",
                    redacted.text, redacted.findings
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn marks(rule: &Rule) -> impl Iterator<Item = &'static str> {
    rule.marks.split('|')
}

#[test]
fn the_documentation_names_every_rule() {
    let page = include_str!("../../../../docs/reference/redaction.md");
    for rule in RULES {
        assert!(
            page.contains(&format!("| `{}` |", rule.name)),
            "{} is not in docs/reference/redaction.md",
            rule.name
        );
        assert!(marks(rule).all(|mark| mark.len() >= 2), "{}", rule.name);
        let is_complete = |examples: &Examples| {
            examples.rule == rule.name
                && !examples.must_match.is_empty()
                && !examples.must_not_match.is_empty()
        };
        assert!(EXAMPLES.iter().any(is_complete), "{}", rule.name);
    }
}

/// Each row is at the boundary of a rule: a byte more or less, or another separator, changes it.
#[test]
fn masks_up_to_the_boundaries_of_a_rule() {
    const AWS: &str = "AKIAQ7Z2K9M4X8W1B6T3";
    const LINE: &str = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSj";
    const LETTERS: &str = "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUiOpAsDfGh";
    const GITLAB: &str = "glpat-aB3dE5fG7hJ9kL1mN3pQ";
    const HEADER: &str = "eyJhbGciOiJub25lIn0";
    const CLAIMS: &str = "eyJzdWIiOiIxMjM0NTY3ODkwIn0";
    const HIDDEN: &str = "[REDACTED]";
    let paseto = "aB3dE5fG7h".repeat(4);
    let secret = "kJ4lrX7UtnFEM1K7MDENG2bPxRf8CYzQ3kVw9Lm5";
    assert_eq!((paseto.len(), secret.len(), LINE.len()), (40, 40, 40));
    for (text, masked) in [
        // Tokens of three sections, or of two that are encoded.
        (format!("v4.local.{paseto}"), HIDDEN.to_owned()),
        (
            format!("v4.local.{}", &paseto[1..]),
            format!("v4.local.{}", &paseto[1..]),
        ),
        (format!("eyJhbGciOi.{CLAIMS}"), HIDDEN.to_owned()),
        (
            format!("{HEADER}.{CLAIMS}. Then"),
            format!("{HIDDEN}. Then"),
        ),
        (
            format!("{HEADER}.c29tZXRoaW5n.dBjftJeZ4CVPmB92"),
            HIDDEN.to_owned(),
        ),
        // A secret belongs to an id at most four separators before it.
        (
            format!("{AWS}    {secret}"),
            format!("{HIDDEN}    {HIDDEN}"),
        ),
        (
            format!("{AWS}     {secret}"),
            format!("{HIDDEN}     {secret}"),
        ),
        // What may be before a token.
        (format!("\\n{AWS}"), format!("\\n{HIDDEN}")),
        (format!("xn{AWS}"), format!("xn{AWS}")),
        (format!("%3D{AWS}"), format!("%3D{HIDDEN}")),
        (format!("x3D{AWS}"), format!("x3D{AWS}")),
        (format!("\\u0022{AWS}"), format!("\\u0022{HIDDEN}")),
        (format!("xu0022{AWS}"), format!("xu0022{AWS}")),
        (format!("\u{1b}[31m{AWS}"), format!("\u{1b}[31m{HIDDEN}")),
        (format!("\u{1b}[m{AWS}"), format!("\u{1b}[m{HIDDEN}")),
        (format!("x1m{AWS}"), format!("x1m{AWS}")),
        // What may be after one.
        (format!("use {GITLAB}. Then"), format!("use {HIDDEN}. Then")),
        (format!("{GITLAB}- "), format!("{HIDDEN}- ")),
        (
            "ghp_".to_owned() + &"0".repeat(36),
            "ghp_".to_owned() + &"0".repeat(36),
        ),
        // Cookies are a header or an option, not any word.
        (
            "cookie x=Kd83jf02kdLs93kfQ01mZx7P".to_owned(),
            "cookie x=Kd83jf02kdLs93kfQ01mZx7P".to_owned(),
        ),
        (
            "--cookie x=Kd83jf02kdLs93kfQ01mZx7P".to_owned(),
            format!("--cookie x={HIDDEN}"),
        ),
        // Keys without their last line, on one line, in a literal, with line numbers.
        (
            format!("-----BEGIN PRIVATE KEY-----\n{LINE}\n-----BEGIN CERTIFICATE-----\nplain"),
            format!("{HIDDEN}\n-----BEGIN CERTIFICATE-----\nplain"),
        ),
        (
            format!("-----BEGIN PRIVATE KEY-----{LINE}-----END PRIVATE KEY-----."),
            format!("{HIDDEN}."),
        ),
        (
            format!("-----BEGIN PRIVATE KEY-----\n{LETTERS}\nthat was it"),
            format!("{HIDDEN}\nthat was it"),
        ),
        (
            "-----BEGIN PRIVATE KEY-----\nhello\n".to_owned(),
            "-----BEGIN PRIVATE KEY-----\nhello\n".to_owned(),
        ),
        (
            format!("-----BEGIN PRIVATE KEY-----\n  2→{LINE}\n  3|{LINE}\nend"),
            format!("{HIDDEN}\nend"),
        ),
        (
            format!("\"-----BEGIN PRIVATE KEY-----\\r\\n{LINE}\\r\\n{LINE}\" x"),
            format!("\"{HIDDEN}\" x"),
        ),
        (
            format!("\"-----BEGIN PRIVATE KEY-----\\n\" +\n\"{LINE}\\n\" +\n\"{LINE}\" x"),
            format!("\"{HIDDEN}\" x"),
        ),
        (
            format!("x\\n{LINE}\\n{LINE}\\n-----END PRIVATE KEY-----"),
            format!("x\\n{HIDDEN}"),
        ),
        (
            "\n-----END PRIVATE KEY-----".to_owned(),
            "\n-----END PRIVATE KEY-----".to_owned(),
        ),
    ] {
        assert_eq!(redact(&text).text, masked, "{text:?}");
    }
}

#[test]
fn masks_exactly_the_secret() {
    for (text, masked) in [
        ("password=hunter2", "password=[REDACTED]"),
        ("password: secret123", "password: [REDACTED]"),
        (
            "password = 'hunter2', user = 'app'",
            "password = '[REDACTED]', user = 'app'",
        ),
        (
            "{\"password\": \"hunter2\", \"user\": \"app\"}",
            "{\"password\": \"[REDACTED]\", \"user\": \"app\"}",
        ),
        (
            "{\\\"password\\\": \\\"hunter2\\\", \\\"user\\\": 1}",
            "{\\\"password\\\": \\\"[REDACTED]\\\", \\\"user\\\": 1}",
        ),
        (
            "HOST=db\\nPASSWORD=hunter2\\nPORT=1",
            "HOST=db\\nPASSWORD=[REDACTED]\\nPORT=1",
        ),
        (
            "password=\n  hunter2\nuser=app",
            "password=\n  [REDACTED]\nuser=app",
        ),
        (
            "Authorization: Bearer abcdefghijkl",
            "Authorization: [REDACTED]",
        ),
        (
            "Authorization: Basic YXBwOmh1bnRlcjI= ",
            "Authorization: [REDACTED] ",
        ),
        (
            "postgres://app:hunter2@db/app",
            "postgres://app:[REDACTED]@db/app",
        ),
        (
            "<password>hunter2</password>",
            "<password>[REDACTED]</password>",
        ),
        (
            "a?access_token=q7Zk2Vt9&b=1",
            "a?access_token=[REDACTED]&b=1",
        ),
        (
            "Password=hunter2;Encrypt=true",
            "Password=[REDACTED];Encrypt=true",
        ),
        (
            "f(password=\"hunter2\", x)",
            "f(password=\"[REDACTED]\", x)",
        ),
        ("(password=hunter2)", "(password=[REDACTED])"),
        ("${DB_PASSWORD:-hunter2}", "${DB_PASSWORD:-[REDACTED]}"),
        (
            "--password=hunter2 --user=app",
            "--password=[REDACTED] --user=app",
        ),
        (
            "password = \"hunter2\" + \"hunter3\"",
            "password = \"[REDACTED]\" + \"[REDACTED]\"",
        ),
        ("Grüße: password=hunter2 …", "Grüße: password=[REDACTED] …"),
    ] {
        assert_eq!(redact(text).text, masked);
    }
}

#[test]
fn a_value_under_a_secret_name_is_masked_whatever_it_looks_like() {
    for (text, masked) in [
        (
            "app:\n  password: NwYrfINFkxce\n",
            "app:\n  password: [REDACTED]\n",
        ),
        (
            "app:\n  password: swordfish\n",
            "app:\n  password: [REDACTED]\n",
        ),
        ("password: пароль123", "password: [REDACTED]"),
        ("JWT_SECRET=zebra-finch-42", "JWT_SECRET=[REDACTED]"),
        ("apiKey = zebra-finch-42", "apiKey = [REDACTED]"),
        ("token = count-1", "token = count-1"),
        (
            "Authorization: Bearer my-internal-dev-token",
            "Authorization: [REDACTED]",
        ),
        (
            "password=\"hunter2 with blanks\"",
            "password=\"[REDACTED]\"",
        ),
        (
            "OPENAI_API_KEY=\"swordfish\"",
            "OPENAI_API_KEY=\"[REDACTED]\"",
        ),
        (
            "AWS_SECRET_ACCESS_KEY=kJalrXUtnFEMIK7MDENGbPxRfiCY",
            "AWS_SECRET_ACCESS_KEY=[REDACTED]",
        ),
        (
            "{\\\"api_key\\\": \\\"hunter2-esc\\\"}",
            "{\\\"api_key\\\": \\\"[REDACTED]\\\"}",
        ),
        (
            "[client]\npassword = swordfish\n",
            "[client]\npassword = [REDACTED]\n",
        ),
        (
            "tool --password swordfish run",
            "tool --password [REDACTED] run",
        ),
    ] {
        assert_eq!(redact(text).text, masked);
    }
}

#[test]
fn a_value_is_masked_only_with_its_separator() {
    for (text, masked) in [
        ("u?sv=1&sig=kJ4lrX7UtnFEM1K7", "u?sv=1&sig=[REDACTED]"),
        (r#"{"token": "csrf-token"}"#, r#"{"token": "csrf-token"}"#),
        (r#"{"token": "csrf-token9"}"#, r#"{"token": "[REDACTED]"}"#),
        (
            "password(\"hunter2x9\", \"zebra-9-finch\")",
            "password(\"[REDACTED]\", \"zebra-9-finch\")",
        ),
        (
            "password =\n\"\"\"hunter2x9\"\"\"",
            "password =\n\"\"\"[REDACTED]\"\"\"",
        ),
        (
            "password = \"\"\"hunter2x9\"\"\"",
            "password = \"\"\"[REDACTED]\"\"\"",
        ),
        (
            "password = (\n    \"hunter2x9\"\n)",
            "password = (\n    \"[REDACTED]\"\n)",
        ),
        ("password:\n  user=app99x\n", "password:\n  user=app99x\n"),
        ("password:\n  user99x=\n", "password:\n  user99x=\n"),
        ("password:\n  user99x:\n", "password:\n  user99x:\n"),
        ("secret:\n  aGVsbG8xOXg==\n", "secret:\n  [REDACTED]\n"),
        ("\"password=copper-meadow\"", "\"password=[REDACTED]\""),
        (
            "\"password = copper-meadow\"",
            "\"password = copper-meadow\"",
        ),
        ("a sig=copper-meadow", "a sig=copper-meadow"),
        ("\\napi_key=zebra-finch-42", "\\napi_key=[REDACTED]"),
        ("\\u000aapi_key=zebra-finch-42", "\\u000aapi_key=[REDACTED]"),
        ("<password>copper-meadow-9<", "<password>[REDACTED]<"),
        ("a.password>copper-meadow-9<", "a.password>copper-meadow-9<"),
        ("password%3Dcopper-meadow-9", "password%3D[REDACTED]"),
        ("password%3Acopper-meadow-9", "password%3A[REDACTED]"),
        ("password%20copper-meadow-9", "password%20copper-meadow-9"),
        (
            "if password != \"hunter2x9\"",
            "if password != \"[REDACTED]\"",
        ),
        (
            "if password == \"hunter2x9\"",
            "if password == \"[REDACTED]\"",
        ),
        ("x:password: hunter2x9", "x:password: [REDACTED]"),
        (
            "arn:aws:secretsmanager:eu:1:secret:copper-meadow-9",
            "arn:aws:secretsmanager:eu:1:secret:copper-meadow-9",
        ),
        ("the password is hunter2x9", "the password is [REDACTED]"),
        (
            "var password string = \"hunter2x9\"",
            "var password string = \"[REDACTED]\"",
        ),
        (
            "use token implementation here",
            "use token implementation here",
        ),
        ("mysql -p --host=db app", "mysql -p --host=db app"),
        ("mysql -phunter2x9 app", "mysql -p[REDACTED] app"),
        (
            "Cookie: session=elephants; sid=kJ4lrX7UtnFEM1K7",
            "Cookie: session=elephants; sid=[REDACTED]",
        ),
    ] {
        assert_eq!(redact(text).text, masked);
    }
}

#[test]
fn a_password_is_masked_in_any_case_of_its_name() {
    for name in super::sentences::FOREIGN.split('|') {
        let (first, rest) = name.split_at(name.chars().next().map_or(0, char::len_utf8));
        let title = first.to_uppercase() + rest;
        // In Turkish, the capital of `i` has its dot.
        let turkish = title.replace('i', "İ").to_uppercase();
        for name in [name, &title, &name.to_uppercase(), &turkish] {
            let masked = redact(&format!("{name}: hunter2x9")).text.into_owned();
            let is_other = name.contains('İ') && !name.starts_with('Ş');
            assert!(is_other || masked.ends_with(": [REDACTED]"), "{masked}");
        }
    }
}

#[test]
fn a_password_is_masked_after_is_in_any_language() {
    for (text, masked) in [
        (
            "Das Passwort ist hunter2x9.",
            "Das Passwort ist [REDACTED].",
        ),
        (
            "Das Kennwort lautet hunter2x9",
            "Das Kennwort lautet [REDACTED]",
        ),
        ("LA CONTRASEÑA ES hunter2x9", "LA CONTRASEÑA ES [REDACTED]"),
        (
            "le mot de passe est `hunter2x9`",
            "le mot de passe est `[REDACTED]`",
        ),
        ("a senha é hunter2x9", "a senha é [REDACTED]"),
        (
            "la parola d'ordine è hunter2x9",
            "la parola d'ordine è [REDACTED]",
        ),
        ("hasło to hunter2x9", "hasło to [REDACTED]"),
        (
            "het wachtwoord is hunter2x9",
            "het wachtwoord is [REDACTED]",
        ),
        ("Lösenordet är hunter2x9", "Lösenordet är [REDACTED]"),
        ("Пароль — hunter2x9", "Пароль — [REDACTED]"),
        ("كلمة المرور هي hunter2x9", "كلمة المرور هي [REDACTED]"),
        ("پاس ورڈ hunter2x9 ہے", "پاس ورڈ [REDACTED] ہے"),
        ("पासवर्ड hunter2x9 है", "पासवर्ड [REDACTED] है"),
        ("পাসওয়ার্ড হল hunter2x9", "পাসওয়ার্ড হল [REDACTED]"),
        (
            "kata sandi adalah hunter2x9",
            "kata sandi adalah [REDACTED]",
        ),
        ("数据库密码是hunter2x9。", "数据库密码是[REDACTED]。"),
        ("密码为：hunter2x9", "密码为：[REDACTED]"),
        ("パスワードはhunter2x9です", "パスワードは[REDACTED]です"),
        ("비밀번호는 hunter2x9입니다", "비밀번호는 [REDACTED]입니다"),
    ] {
        assert_eq!(redact(text).text, masked);
    }
}

#[test]
fn a_value_is_masked_up_to_its_end() {
    for (text, masked) in [
        (
            "server=db;password=copper-meadow-9;x=1",
            "server=db;password=[REDACTED];x=1",
        ),
        (
            "server=db;password=copper;x=1",
            "server=db;password=[REDACTED];x=1",
        ),
        (
            "password=&quot;copper meadow 9&quot; x",
            "password=&quot;[REDACTED]&quot; x",
        ),
        (
            r#""run --password=\"copper-9-meadow" next"#,
            r#""run --password=\"[REDACTED]" next"#,
        ),
        (
            "PASSWORD=hunter\\\n2x9abc\nUSER=app",
            "PASSWORD=[REDACTED]\nUSER=app",
        ),
        (
            "PASSWORD=hunter2x9&user=app",
            "PASSWORD=[REDACTED]&user=app",
        ),
        ("PASSWORD=hunter2x9&more!x", "PASSWORD=[REDACTED]"),
        ("?token=kJ4lrX7UtnFE&amp;b=1", "?token=[REDACTED]&amp;b=1"),
        (
            "login --password \\\n  hunter2x9 now",
            "login --password \\\n  [REDACTED] now",
        ),
        (
            "password=\\n  hunter2x9\\nuser=app",
            "password=\\n  [REDACTED]\\nuser=app",
        ),
        ("password:\n  12hunter9x\n", "password:\n  [REDACTED]\n"),
        (
            "password:\n  2→  hunter9x\n",
            "password:\n  2→  [REDACTED]\n",
        ),
        (
            "password := []byte(\"hunter2x9\")",
            "password := []byte(\"[REDACTED]\")",
        ),
        (
            "password = SecretStr(\"hunter2x9\")",
            "password = SecretStr(\"[REDACTED]\")",
        ),
        (
            "password: str = \"hunter2x9\"",
            "password: str = \"[REDACTED]\"",
        ),
        ("conn_str=\"Host9 kJ4lrX7Utn\"", "conn_str=\"[REDACTED]\""),
        ("dbpass=hunter2x9\n", "dbpass=[REDACTED]\n"),
        ("compass=hunter2x9\n", "compass=hunter2x9\n"),
        ("my_pat=kJ4lrX7UtnFEkJ9Q2mLp\n", "my_pat=[REDACTED]\n"),
        (
            "api_token: Kx9k7Q2mLpZ4<String>",
            "api_token: Kx9k7Q2mLpZ4<String>",
        ),
    ] {
        assert_eq!(redact(text).text, masked);
    }
}

#[test]
fn a_value_that_a_command_or_call_assigns_is_masked() {
    for (text, masked) in [
        (
            "set -gx DB_PASSWORD copper-meadow\n",
            "set -gx DB_PASSWORD [REDACTED]\n",
        ),
        ("DB_PASSWORD := glacier\n", "DB_PASSWORD := [REDACTED]\n"),
        (
            "define('DB_PASSWORD', 'glacier');",
            "define('DB_PASSWORD', '[REDACTED]');",
        ),
        (
            "props.setProperty(\"db.password\",\n    \"glacier\");",
            "props.setProperty(\"db.password\",\n    \"[REDACTED]\");",
        ),
        (
            "builder.setPassword(\"copper-meadow\");",
            "builder.setPassword(\"[REDACTED]\");",
        ),
        (
            "CREATE USER app WITH PASSWORD 'copper-meadow';",
            "CREATE USER app WITH PASSWORD '[REDACTED]';",
        ),
        (
            "config/app.yml:12:  db_password: copper-meadow-26\n",
            "config/app.yml:12:  db_password: [REDACTED]\n",
        ),
        (
            "app:\n  password: Horse.13\n  port: 1\n",
            "app:\n  password: [REDACTED]\n  port: 1\n",
        ),
        ("API_KEY=!_FZUDWfjO", "API_KEY=[REDACTED]"),
        ("PASSWORD=Q7%sYaLc!8-b", "PASSWORD=[REDACTED]"),
        (
            "Cookie: sessionid=moyeso956awasv4ksgidzqfeboac0rd5; a=b",
            "Cookie: sessionid=[REDACTED]; a=b",
        ),
    ] {
        assert_eq!(redact(text).text, masked);
    }
}

#[test]
fn a_label_of_a_translation_is_kept() {
    for text in [
        "\"invalid_api_key\": \"Ugyldig API-n\\u00f8kkel\"",
        "\"invalid_access_token\": \"Ung\\u00fcltiger Zugriffs-Token\"",
        "\"password\": \"\\u041f\\u0430\\u0440\\u043e\\u043b\\u044c\"",
        "\"password\": \"Has\\u0142o\"",
        "\"password\": \"Salasana\"",
        "get(\"password\", \"copper\")",
        "set -e PASSWORD copper",
        "arn:aws:secretsmanager:eu-west-1:123456789012:secret:layout/driver-AbCdEf",
        "src/auth.rs:12:    token: lexer",
    ] {
        assert_eq!(redact(text).text, text);
    }
    // An escaped value is judged by what it stands for.
    let text = "\"password\": \"\\u043f\\u0430\\u0440\\u043e\\u043b\\u044c123\"";
    assert_eq!(redact(text).text, "\"password\": \"[REDACTED]\"");
}

#[test]
fn a_reference_under_a_secret_name_is_kept() {
    for text in [
        "password: ${DB_PASSWORD}",
        "password: env.DB_PASSWORD",
        "password: /run/secrets/db",
        "password: String",
        "password: changeme",
        "password: \"\"\nsecret: false",
        "the password: it must be long",
        "token = lexer.next()",
        "let secret = load();",
        "login({\n  user: name,\n  password: typed\n})",
        "f\"{user}\", token=f\"test_{secrets.token_hex(32)}\"",
        "def next(self) -> Token:\n    \"\"\"Parse the next one.\"\"\"",
    ] {
        assert_eq!(redact(text).text, text);
    }
}

#[test]
fn a_token_without_a_digit_is_masked() {
    let token = concat!("gl", "pat-qZkVtLxBnRwHsJdFmGcP");
    assert_eq!(redact(token).text, MASK);
}

#[test]
fn a_mailchimp_key_of_a_data_center_with_one_digit_is_masked() {
    let key = concat!("3f9a1c7e5b2d8046", "af31e9c27d50b864-us6");
    assert_eq!(redact(key).text, MASK);
    let key = concat!("3f9a1c7e5b2d8046", "af31e9c27d50b864-us11");
    assert_eq!(redact(key).text, MASK);
}

#[test]
fn a_split_or_encoded_token_is_masked() {
    let token = concat!("gh", "p_q7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc0PyuAbCd");
    let (front, back) = token.split_at(20);
    for split in ["\u{200b}", "\u{2060}", "\\\n", "\\u200b", "\\\\\\n"] {
        assert_eq!(
            redact(&format!("a {front}{split}{back} b")).text,
            "a [REDACTED] b"
        );
    }
    // `password=hunter2-and-more`
    let encoded = "cGFzc3dvcmQ9aHVudGVyMi1hbmQtbW9yZQ==";
    assert_eq!(
        redact(&format!("echo {encoded} | base64 -d")).text,
        "echo [REDACTED] | base64 -d"
    );
    assert_eq!(redact(&format!("key={encoded}")).text, "key=[REDACTED]");
}

#[test]
fn escapes_and_colours_are_read_as_what_they_stand_for() {
    for (text, masked) in [
        (
            "\u{1b}[32mDB_PASSWORD=copper-9\u{1b}[0m",
            "\u{1b}[32mDB_PASSWORD=[REDACTED]\u{1b}[0m",
        ),
        (
            "{\"a\":\"\\u001b[1mDB_PASSWORD=copper-9\\u001b[0m\"}",
            "{\"a\":\"\\u001b[1mDB_PASSWORD=[REDACTED]\\u001b[0m\"}",
        ),
        (
            "{&quot;password&quot;: &quot;copper-meadow-9&quot;}",
            "{&quot;password&quot;: &quot;[REDACTED]&quot;}",
        ),
        (
            "let config = \"app:\\n  password: swordfish\\n\";",
            "let config = \"app:\\n  password: [REDACTED]\\n\";",
        ),
        ("password: &lt;secret&gt;", "password: &lt;secret&gt;"),
    ] {
        assert_eq!(redact(text).text, masked);
    }
}

#[test]
fn a_place_in_a_file_is_not_taken_for_a_line_of_pgpass() {
    for text in [
        "src/db.rs:5432:17:error:unused",
        "arn:aws:logs:*:*:log-group:/aws/lambda/x:y",
        "db:5432:app:app:secret:more",
        "at db:5432:app:app:x y",
    ] {
        assert_eq!(redact(text).text, text);
    }
}

#[test]
fn findings_of_later_passes_are_spans_of_the_input() {
    let text = concat!(
        "token='x\n",
        "password=hunter2 and gh",
        "p_q7Zk2Vt9Lx4Bn8Rw3Hs6"
    );
    let redacted = redact(text);
    let parts: Vec<&str> = redacted
        .findings
        .iter()
        .map(|finding| &text[finding.start..finding.end])
        .collect();
    assert_eq!(parts, ["hunter2", concat!("gh", "p_q7Zk2Vt9Lx4Bn8Rw3Hs6")]);
    let first = [
        Finding {
            rule: "a",
            start: 2,
            end: 6,
        },
        Finding {
            rule: "b",
            start: 8,
            end: 40,
        },
    ];
    let masked = mask("0123456789012345678901234567890123456789xyz", &first);
    assert_eq!(masked.text, "01[REDACTED]67[REDACTED]xyz");
    // `67` with the mask after it, `y`, and a part of the first mask.
    let ranges = [13..16, 25..26, 4..5].map(|range| masked.range(range));
    assert_eq!(ranges, [7..40, 41..42, 2..6]);
}

/// Checks the invariants; the fuzz target checks the same.
fn check(text: &str) -> Result<(), TestCaseError> {
    let redacted = redact(text);
    let mut kept = 0;
    let mut expected = String::new();
    for finding in &redacted.findings {
        prop_assert!(
            kept <= finding.start && finding.start < finding.end,
            "{finding:?}"
        );
        let before = text.get(kept..finding.start);
        prop_assert!(
            before.is_some() && text.is_char_boundary(finding.end),
            "{finding:?}"
        );
        expected.push_str(before.unwrap_or_default());
        expected.push_str(MASK);
        kept = finding.end;
    }
    expected.push_str(&text[kept..]);
    prop_assert_eq!(&redacted.text, &expected);
    let again = redact(&redacted.text);
    prop_assert!(
        again.findings.is_empty(),
        "{:?} in {}",
        again.findings,
        redacted.text
    );
    Ok(())
}

/// Fragments from which texts similar to credentials are built.
fn fragments() -> impl Strategy<Value = String> {
    let mut parts = vec![
        "password",
        "secret_key",
        "token",
        "=",
        ": ",
        "\"",
        "'",
        "\\\"",
        "\\n",
        "\n",
        " ",
        "`",
        "\\",
        "hunter2",
        "$X",
        "{",
        "}",
        "(",
        ")",
        "<",
        ">",
        "://",
        "@",
        ":",
        "/",
        "[REDACTED]",
        "Bearer ",
        "Authorization",
        "Cookie: ",
        ";",
        "&",
        "|",
        ",",
        "q7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc0Pyu",
        "é",
        "→",
        "-----BEGIN RSA PRIVATE KEY-----",
        "-----END RSA PRIVATE KEY-----",
        "eyJhbGciOi",
        ".",
        "-",
        "curl -u ",
        "\\u0022",
        "&quot;",
        "value",
        "kty",
        "\"d\":",
        "+",
        "sk-",
        "| ",
        "#",
        "is ",
        " ist ",
        "は",
        " है",
        "[",
        "]",
        "\r\n",
        "\t",
        "%3D",
        "...",
        "**",
        "identified by ",
        "login a ",
        ":5432:",
    ];
    parts.extend(RULES.iter().flat_map(marks));
    prop::collection::vec(prop::sample::select(parts), 0..24).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_text_keeps_the_invariants(text in any::<String>()) {
        check(&text)?;
    }

    #[test]
    fn texts_made_of_fragments_keep_the_invariants(text in fragments()) {
        check(&text)?;
    }

    #[test]
    fn a_token_is_masked_in_any_context(before in "\\PC{0,40}", after in "\\PC{0,40}", seed in any::<u64>()) {
        let secret = Draw::new(seed).text(samples::ALNUM, 36);
        let text = format!("{before} {}{secret} {after}", concat!("gh", "p_"));
        prop_assert!(!redact(&text).text.contains(&secret), "{text}");
        check(&text)?;
    }
}

#[test]
fn drawn_samples_keep_the_invariants() {
    for sample in samples::positives(7) {
        check(&sample.text).unwrap();
    }
    for (_, text) in samples::negatives(7) {
        check(&text).unwrap();
    }
}

#[test]
fn time_is_linear_in_the_text() {
    // SQL-07
    let mut units: Vec<String> = [
        "password=",
        "password=\"",
        "password='",
        "password: ",
        "-----BEGIN PRIVATE KEY-----",
        "-----BEGIN PRIVATE KEY-----\nMII\n",
        "-----END PRIVATE KEY-----",
        "\"",
        "a:b@",
        "://",
        "://a:",
        "://a:b/",
        "eyJ",
        "eyJhbGciOi.",
        "pa-",
        "re_aaaaaa_",
        "curl -u ",
        "Cookie: a=b;",
        "cookie",
        "authorization: digest ",
        "token is ",
        "\"kty\":\"RSA\",",
        "\"kty\"",
        "{\"kty\"",
        "password\\",
        "\\",
        "password=\\\"",
        ":5432:",
        "*:*:",
        "password value ",
        "password\n",
        "pass",
        "key",
        "login a password ",
        "bearer aaaaaaaaaaaaaaa-",
        "Private-Lines: 9\n",
        "secret: |\n",
        "MT",
        "MTaaaaaaaaaaaaaaaaaaaaaa.aaaaaa.",
        "[REDACTED]",
        "password=[REDACTED]",
        "&quot;password",
        "oracle:thin:",
        "@tcp(",
        "hf_",
        "password=\"a\" + ",
        "x password=&",
        "-us",
    ]
    .map(str::to_owned)
    .to_vec();
    units.extend(RULES.iter().flat_map(marks).map(str::to_owned));
    for unit in units {
        let text = |size: usize| unit.repeat(size / unit.len() + 1);
        let (small, large) = (text(4 * 1024), text(64 * 1024));
        assert_linear(&unit, || redact(&small), || redact(&large));
    }
}

#[test]
fn a_word_for_a_password_in_a_url_stays() {
    for text in [
        "postgres://user:password@localhost/shop",
        "redis://default:secret@cache:6379",
    ] {
        assert_eq!(redact(text).text, text);
    }
    assert_ne!(
        redact("postgres://user:hunter2@localhost/shop").text,
        "postgres://user:hunter2@localhost/shop"
    );
}

#[test]
fn a_mask_after_an_escape_character_begins_no_control_sequence() {
    let text = "(a!2J:\u{1b}SKsSKs.t:@0uat!:20@unix(19";
    let masked = redact(text).text.into_owned();
    assert!(masked.contains(MASK), "{masked:?}");
    assert_eq!(redact(&masked).text, masked);
}
