//! A second generator: named keys with values of any look, token families, disguised tokens, and
//! code and prose about secrets.
//!
//! [`super::samples`] draws values that look like secrets. Here a value may be a word, and a token
//! may lack digits, because real ones do by chance.

use std::collections::BTreeMap;

use super::redact;
use super::samples::{ALNUM, Draw};

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const HEX: &str = "0123456789abcdef";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const URL64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Names that mean a secret.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "password", "db_password", "DB_PASSWORD", "userPassword", "redis.password", "passwd",
    "passphrase", "JWT_SECRET", "client_secret", "clientSecret", "webhook-secret", "api_key",
    "OPENAI_API_KEY", "apiKey", "access_key", "AWS_SECRET_ACCESS_KEY", "auth_token",
    "GITHUB_TOKEN", "refreshToken", "token", "secret", "private_key", "signing_key",
];

/// Contexts of a bare value: `{n}` is the name, `{v}` the value.
const BARE: &[&str] = &[
    "database:\n  host: db\n  {n}: {v}\n  port: 5432\n",
    "{n}: {v}\n",
    "a:\n    b:\n        {n}: {v}   # rotate\n",
    "HOST=db\n{n}={v}\nPORT=1\n",
    "export {n}={v}\n",
    "[client]\nuser = app\n{n} = {v}\n",
    "host = localhost\n{n} = {v}\n",
    "docker run -e {n}={v} -p 80:80 app",
    "FROM alpine\nENV {n}={v}\n",
    "tool --{n} {v} --verbose",
    "tool --{n}={v} --verbose",
    "GET /cb?{n}={v}&state=1",
    "<{n}>{v}</{n}>",
    "2026-08-01 INFO connect {n}={v} retries=3",
    "@@ -1,2 +1,2 @@\n-{n}: {v}\n+{n}: ${X}\n",
    "{\"content\":\"app:\\n  {n}: {v}\\n  port: 1\"}",
    "curl -H 'X-{n}: {v}' https://example.com",
    "app:\r\n  {n}: {v}\r\n  port: 1\r\n",
    "set {n}={v}\r\n",
];

/// Contexts of a value in quotation marks.
const QUOTED: &[&str] = &[
    "{n}: \"{v}\"\n",
    "{n}='{v}'\n",
    "export {n}=\"{v}\"",
    "{\"host\": \"db\", \"{n}\": \"{v}\"}",
    "{\\\"{n}\\\": \\\"{v}\\\"}",
    "{n} = \"{v}\"\n",
    "const {n} = '{v}';",
    "let {n}: &str = \"{v}\";",
    "connect(host, {n}=\"{v}\")",
    "os.environ[\"{n}\"] = \"{v}\"",
    "- name: {n}\n  value: \"{v}\"\n",
    "    \"{n}\" => \"{v}\",",
];

fn value(draw: &mut Draw, kind: usize) -> String {
    match kind {
        0 => draw.text(LETTERS, 8),
        1 => draw.text(LETTERS, 10),
        2 => draw.text(LETTERS, 12),
        3 => draw.text(LOWER, 10),
        4 => draw.text(ALNUM, 16),
        5 => draw
            .choose(&["swordfish", "Swordfish", "dragonfly", "letmein", "sunshine"])
            .to_owned(),
        6 => format!("zebra-finch-{}", draw.text("0123456789", 2)),
        7 => format!("пароль{}", draw.text("0123456789", 3)),
        8 => draw
            .choose(&["my-internal-dev-token", "super-secret-value", "hunter2-esc"])
            .to_owned(),
        9 => draw.text("0123456789", 9),
        10 => format!("a{}!", draw.text("abcdefghkmnpqrstuvwxyz23456789@^~", 11)),
        11 => format!("kJalrXUtnFEMIK7MDENG{}", draw.text(LETTERS, 8)),
        _ => format!("hunter{} with blanks", draw.text("0123456789", 1)),
    }
}

/// Token families: name, mark, alphabet, length.
const FAMILIES: &[(&str, &str, &str, usize)] = &[
    ("github", concat!("gh", "p_"), ALNUM, 36),
    ("gitlab", concat!("gl", "pat-"), URL64, 20),
    ("aws", concat!("AK", "IA"), UPPER, 16),
    ("google", concat!("AI", "zaSy"), URL64, 33),
    ("slack", concat!("xo", "xb-123456789012-"), ALNUM, 24),
    ("stripe", concat!("sk", "_live_"), ALNUM, 24),
    ("openai", concat!("s", "k-proj-"), URL64, 74),
    ("anthropic", concat!("s", "k-ant-api03-"), URL64, 93),
    ("hugging face", concat!("h", "f_"), LETTERS, 34),
    ("npm", concat!("np", "m_"), ALNUM, 36),
    ("pypi", concat!("py", "pi-AgEIcHlwaS5vcmc"), URL64, 100),
    ("mem0", concat!("m", "0-"), ALNUM, 40),
    ("digitalocean", concat!("dop", "_v1_"), HEX, 64),
    ("vault", concat!("hv", "s."), URL64, 90),
    ("shopify", concat!("shp", "at_"), HEX, 32),
    ("tailscale", concat!("tskey-", "auth-k"), ALNUM, 20),
    ("cloud", concat!("nf", "p_"), ALNUM, 36),
    ("groq", concat!("gs", "k_"), ALNUM, 52),
    ("figma", concat!("fig", "d_"), URL64, 40),
];

/// Contexts of a token.
const PLAIN: &[&str] = &[
    "use {v} for the deploy",
    "{\"value\": \"{v}\"}",
    "VALUE={v}\n",
    "Authorization: Bearer {v}",
    "curl -H 'X-Value: {v}' https://example.com",
];

fn base64(text: &str) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in text.as_bytes().chunks(3) {
        let bits = chunk
            .iter()
            .fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for at in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * at) & 63) as usize];
            out.push(if at > chunk.len() { '=' } else { digit as char });
        }
    }
    out
}

/// Ways to split or encode a text.
fn disguise(draw: &mut Draw, text: &str) -> [(&'static str, String, String); 3] {
    let at = 6 + draw.below(text.len() - 8);
    let (front, back) = text.split_at(at);
    let encoded = base64(text);
    [
        (
            "zero width",
            format!("the key {front}\u{200b}{back} works"),
            back.to_owned(),
        ),
        (
            "continuation",
            format!("tool {front}\\\n{back} --all"),
            back.to_owned(),
        ),
        ("base64", format!("echo {encoded} | base64 -d"), encoded),
    ]
}

/// Code, documents and settings without a secret.
const BENIGN: &[&str] = &[
    "struct Login {\n    user: String,\n    password: String,\n}",
    "interface Login {\n  user: string\n  password: string\n}",
    "@dataclass\nclass Login:\n    token: Token\n    password: SecretStr\n",
    "let token = lexer.next();",
    "token = lexer.next()",
    "let secret = load();",
    "const { password } = req.body;",
    "login({\n  user: userName,\n  password: newPassword\n})",
    "login({\n  user: name,\n  password: typed\n})",
    "connect(\n    host=host,\n    password=given,\n    token=session_token,\n)",
    "the password: it must be long",
    "The token: see the next page.",
    "Password: required",
    "password: \"Enter your password\"",
    "\"password\": \"Passwort\", \"token\": \"Token\"",
    "\"password\": \"The passwords do not match.\"",
    "password: ${DB_PASSWORD}\ntoken: ${TOKEN:-}\n",
    "password: !vault |\n",
    "password: env.DB_PASSWORD",
    "api_key = os.getenv(\"OPENAI_API_KEY\")",
    "apiKey: process.env.OPENAI_API_KEY,",
    "API_KEY=your-api-key-here",
    "API_KEY=<your key>\nTOKEN=\nSECRET=\"\"\n",
    "TOKEN=changeme\nPASSWORD=example\nSECRET=placeholder\n",
    "tls_private_key: /etc/ssl/private/server.key",
    "secret: false\npassword: true\ntoken: null\n",
    "fetch(url, { credentials: 'include' })",
    "use --password to log in, or the --token flag instead",
    "  --token         Authenticate with a token",
    "  --password PASSWORD  the password",
    "const STORAGE_KEY = 'todos';",
    "session_key: \"user\"",
    "if (token === 'string') return parse(token);",
    "Authorization: Bearer <token>",
    "Authorization: Bearer $TOKEN",
    "-H \"Authorization: Bearer ${TOKEN}\"",
    "Authorization: Bearer YOUR_ACCESS_TOKEN",
    "arn:aws:logs:*:*:log-group:/aws/lambda/x:y",
    "src/db.rs:5432:17:error:unused",
    "docker run -p 127.0.0.1:5432:5432 postgres",
    "e.token=t.next,n.secret=r.value;a.password=e.input",
    "[dependencies]\ntoken = { version = \"1\" }\nsecrecy = \"0.8\"\n",
    "existingSecret: my-release-tls",
    "secretKeyRef:\n  name: db\n  key: password\n",
    "max_tokens: 4096\ntokens = 12\npage_token: next\n",
    "password = getpass.getpass()\ntoken = secrets.token_hex(16)",
    "password_hash = bcrypt.hash(password, 10)",
    "return Err(Error::new(\"token: expired\"));",
    "def check(password: str, token: Token = None): ...",
    "|password| password.len() > 8",
    "match token { Token::Comma => next(), Token::End => break }",
    "see https://example.com/docs/token?page=2#password",
    "echo \"$PASSWORD\" | docker login -u me --password-stdin",
    "The secret is kept in the vault; the key is in the safe.",
    "/usr/share/doc/libsecret/examples/password-storage/README",
    "checksum: 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "C:\\new\\token\\readme.txt",
    "👩\u{200d}💻 writes the password: field",
];

#[test]
fn named_keys_families_and_benign_texts_of_the_second_generator() {
    let mut draw = Draw::new(0x005E_C00D);
    let mut rows: BTreeMap<String, (usize, usize)> = BTreeMap::new();
    let mut missed = Vec::new();
    let mut count = |row: String, text: &str, secret: &str| {
        let redacted = redact(text);
        let caught = !redacted.findings.is_empty() && !redacted.text.contains(secret);
        let entry = rows.entry(row).or_default();
        entry.1 += 1;
        entry.0 += usize::from(caught);
        if !caught {
            missed.push(format!("{text:?} -> {:?}", redacted.text));
        }
    };
    for name in NAMES {
        for (contexts, kinds) in [(BARE, 12), (QUOTED, 13)] {
            for context in contexts {
                for kind in 0..kinds {
                    let secret = value(&mut draw, kind);
                    let text = context.replace("{n}", name).replace("{v}", &secret);
                    count("named".into(), &text, &secret);
                }
            }
        }
    }
    for (family, mark, alphabet, length) in FAMILIES {
        for round in 0..100 {
            let body = format!("{}x", draw.text(alphabet, length - 1));
            let body = if *alphabet == UPPER || *alphabet == HEX {
                body.replace('x', "A")
            } else {
                body
            };
            let token = format!("{mark}{body}");
            count(
                (*family).into(),
                &PLAIN[round % PLAIN.len()].replace("{v}", &token),
                &body,
            );
            if round < 10 {
                for (way, text, secret) in disguise(&mut draw, &token) {
                    count(way.into(), &text, &secret);
                }
            }
        }
    }
    for center in 1..=9 {
        let key = draw.text(HEX, 32);
        count("mailchimp".into(), &format!("key {key}-us{center}"), &key);
    }
    let wrong: Vec<String> = BENIGN
        .iter()
        .map(|text| (text, redact(text)))
        .filter(|(_, redacted)| !redacted.findings.is_empty())
        .map(|(text, redacted)| format!("{text:?} -> {:?}", redacted.text))
        .collect();
    for line in missed.iter().chain(&wrong) {
        println!("{line}");
    }
    println!(
        "{rows:#?}; {} of {} benign texts masked",
        wrong.len(),
        BENIGN.len()
    );
    for (row, (caught, all)) in rows {
        let least = if row == "named" { 995 } else { 980 };
        assert!(caught * 1000 >= all * least, "{row}: {caught} of {all}");
    }
    assert!(wrong.is_empty());
}
