//! Measures recall and precision on generated samples that are not the examples of the rules.
//!
//! The generator is seeded, so the figures change only with the rules or the generator. Credentials
//! are drawn from the published alphabets and lengths and put into every context of transcripts.
//! The texts without credentials are those that look most like them.

use std::collections::BTreeMap;

use super::redact;

/// A SplitMix64 generator, equal on every machine.
pub(super) struct Draw(u64);

pub(super) const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const HEX: &str = "0123456789abcdef";
const UPPER_HEX: &str = "0123456789ABCDEF";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const LOWER: &str = "abcdefghijklmnopqrstuvwxyz0123456789";
const URL64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const TYPED: &str = "ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz23456789!@#%^*-_+=?";
const DIGITS: &str = "0123456789";

impl Draw {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        usize::try_from((mixed ^ (mixed >> 31)) % limit as u64).unwrap_or(0)
    }

    pub(super) fn text(&mut self, alphabet: &str, length: usize) -> String {
        let letters: Vec<char> = alphabet.chars().collect();
        (0..length)
            .map(|_| letters[self.below(letters.len())])
            .collect()
    }

    pub(super) fn choose<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len())]
    }

    fn uuid(&mut self) -> String {
        [8, 4, 4, 4, 12]
            .map(|length| self.text(HEX, length))
            .join("-")
    }
}

/// Credentials with a distinctive prefix: family, prefix, alphabet, length.
const MARKED: &[(&str, &str, &str, usize)] = &[
    ("aws", concat!("AK", "IA"), UPPER, 16),
    ("aws", concat!("AS", "IA"), UPPER, 16),
    ("google", concat!("AI", "zaSy"), URL64, 33),
    ("google", concat!("GOC", "SPX-"), URL64, 28),
    ("google", concat!("ya2", "9."), URL64, 120),
    ("cloud", concat!("dop", "_v1_"), HEX, 64),
    ("cloud", concat!("LT", "AI5t"), ALNUM, 20),
    ("cloud", concat!("cfut", "_"), ALNUM, 48),
    ("cloud", concat!("vc", "p_"), ALNUM, 56),
    ("cloud", concat!("nf", "p_"), ALNUM, 36),
    ("cloud", concat!("sb", "p_"), HEX, 40),
    ("cloud", concat!("sb_", "secret_"), URL64, 31),
    ("cloud", concat!("pscale", "_tkn_"), URL64, 43),
    ("cloud", concat!("HRKU", "-AA"), URL64, 58),
    ("cloud", concat!("fm", "2_"), BASE64, 120),
    ("infrastructure", concat!("da", "pi"), HEX, 32),
    ("infrastructure", concat!("hv", "s."), URL64, 90),
    ("infrastructure", concat!("pu", "l-"), HEX, 40),
    ("infrastructure", concat!("dp.", "pt."), ALNUM, 43),
    ("infrastructure", concat!("tskey-", "auth-k"), ALNUM, 40),
    ("github", concat!("gh", "p_"), ALNUM, 36),
    ("github", concat!("gh", "o_"), ALNUM, 36),
    ("github", concat!("gh", "s_"), ALNUM, 36),
    ("github", concat!("github", "_pat_11"), ALNUM, 80),
    ("gitlab", concat!("gl", "pat-"), URL64, 20),
    ("gitlab", concat!("gl", "ptt-"), HEX, 40),
    ("source-hosting", concat!("AT", "BB"), ALNUM, 32),
    ("source-hosting", concat!("ATA", "TT3xFfGF0"), URL64, 180),
    (
        "slack",
        concat!("xo", "xb-123456789012-123456789012-"),
        ALNUM,
        24,
    ),
    ("slack", concat!("xo", "xp-123456789012-"), ALNUM, 32),
    (
        "slack",
        concat!("xa", "pp-1-A0123456789-1234567890123-"),
        HEX,
        64,
    ),
    (
        "slack",
        concat!("https://hooks.sl", "ack.com/services/T012AB3CD/B012AB3CD/"),
        ALNUM,
        24,
    ),
    (
        "chat",
        concat!("https://discord.com/api/web", "hooks/123456789012345678/"),
        URL64,
        68,
    ),
    ("chat", concat!("S", "K"), HEX, 32),
    ("chat", concat!("987654321", "0:AA"), URL64, 33),
    ("stripe", concat!("sk", "_live_"), ALNUM, 24),
    ("stripe", concat!("rk", "_test_"), ALNUM, 24),
    ("stripe", concat!("wh", "sec_"), ALNUM, 32),
    ("payment", concat!("sq0", "atp-"), URL64, 22),
    ("payment", concat!("shp", "at_"), HEX, 32),
    ("payment", concat!("rzp_", "live_"), ALNUM, 14),
    ("model-key", concat!("s", "k-"), ALNUM, 48),
    ("model-key", concat!("s", "k-proj-"), URL64, 120),
    ("model-key", concat!("s", "k-ant-api03-"), URL64, 95),
    ("model-key", concat!("s", "k-or-v1-"), HEX, 64),
    ("model-provider", concat!("h", "f_"), ALNUM, 34),
    ("model-provider", concat!("gs", "k_"), ALNUM, 52),
    ("model-provider", concat!("xa", "i-"), ALNUM, 80),
    ("model-provider", concat!("r", "8_"), ALNUM, 37),
    ("model-provider", concat!("pp", "lx-"), ALNUM, 48),
    ("package-registry", concat!("np", "m_"), ALNUM, 36),
    (
        "package-registry",
        concat!("py", "pi-AgEIcHlwaS5vcmc"),
        URL64,
        120,
    ),
    ("package-registry", concat!("ci", "o"), ALNUM, 32),
    ("package-registry", concat!("rubygems", "_"), HEX, 48),
    ("package-registry", concat!("dckr", "_pat_"), URL64, 27),
    ("package-registry", concat!("oy", "2"), LOWER, 43),
    ("package-registry", concat!("AK", "Cp8"), ALNUM, 68),
    ("mail", concat!("ke", "y-"), HEX, 32),
    ("mail", concat!("xkey", "sib-"), HEX, 64),
    ("monitoring", concat!("NR", "AK-"), UPPER, 27),
    ("monitoring", concat!("sntr", "yu_"), HEX, 64),
    ("monitoring", concat!("gl", "c_eyJvIjoi"), ALNUM, 80),
    ("productivity", concat!("lin", "_api_"), ALNUM, 40),
    ("productivity", concat!("nt", "n_"), ALNUM, 46),
    ("productivity", concat!("sec", "ret_"), ALNUM, 43),
    ("productivity", concat!("fig", "d_"), URL64, 40),
    ("productivity", concat!("s", "l."), URL64, 135),
    ("age-key", concat!("AGE-SECRET", "-KEY-1"), UPPER, 58),
];

/// Names of secrets with the family of their values: `p`assword, `t`oken, `h`ex, `u`uid, base`6`4.
const NAMED: &[(&str, char)] = &[
    ("password", 'p'),
    ("DB_PASSWORD", 'p'),
    ("dbPassword", 'p'),
    ("spring.datasource.password", 'p'),
    ("MYSQL_ROOT_PASSWORD", 'p'),
    ("redis_passwd", 'p'),
    ("passphrase", 'p'),
    ("PGPASSWORD", 'p'),
    ("smtp_pass", 't'),
    ("AWS_SECRET_ACCESS_KEY", '6'),
    ("secretAccessKey", '6'),
    ("client_secret", 't'),
    ("clientSecret", 't'),
    ("JWT_SECRET", 't'),
    ("api_key", 't'),
    ("apiKey", 'h'),
    ("X-Api-Key", 't'),
    ("DATADOG_API_KEY", 'h'),
    ("MISTRAL_API_KEY", 't'),
    ("HEROKU_API_KEY", 'u'),
    ("COHERE_API_KEY", 't'),
    ("auth_token", 't'),
    ("accessToken", 't'),
    ("refresh_token", '6'),
    ("TWILIO_AUTH_TOKEN", 'h'),
    ("signing_key", 'h'),
    ("encryptionKey", '6'),
    ("webhook_secret", 't'),
    ("session_secret", 't'),
    ("private_key", '6'),
    ("AccountKey", '6'),
    ("secret_key_base", 'h'),
    ("credentials", 't'),
];

/// Contexts of a named value: `{n}` is the name, `{v}` the value.
const NAMED_CONTEXTS: &[&str] = &[
    "{n}={v}\nDEBUG=true",
    "export {n}={v}",
    "HOST=db\n{n}='{v}'\nPORT=1",
    "{\"host\": \"db\", \"{n}\": \"{v}\", \"port\": 1}",
    "{\"type\":\"tool_result\",\"content\":\"{\\\"{n}\\\": \\\"{v}\\\"}\"}",
    "{\"content\":\"{\\\"text\\\":\\\"{\\\\\\\"{n}\\\\\\\":\\\\\\\"{v}\\\\\\\"}\\\"}\"}",
    "{\"content\":\"HOST=db\\n{n}={v}\\nPORT=1\"}",
    "{\\u0022{n}\\u0022:\\u0022{v}\\u0022}",
    "server:\n  host: db\n  {n}: {v}\n",
    "server:\n  {n}: \"{v}\"\n",
    "{n}: >-\n  {v}\nhost: db\n",
    "- name: {n}\n  value: \"{v}\"\n",
    "[server]\n{n} = \"{v}\"\n",
    "[server]\n{n} = {v}\n",
    "docker run -e {n}={v} app",
    "let {n}: &str = \"{v}\";",
    "const {n} = '{v}';",
    "config.{n} = \"{v}\"",
    "    '{n}': '{v}',",
    "{n} := \"{v}\"",
    "private static final String {n} = \"{v}\";",
    "os.environ[\"{n}\"] = \"{v}\"",
    "client = Client({n}=\"{v}\", timeout=3)",
    "{n} =\n  \"{v}\"",
    "+{n}: \"{v}\"\n",
    "-{n}={v}\n+{n}=${SECRET}\n",
    "     3→{n}={v}\n     4→PORT=1",
    "<{n}>{v}</{n}>",
    "2026-08-01T10:00:00Z INFO connecting with {n}={v} retries=3",
    "the {n} is `{v}`, keep it",
    "{n}: `{v}`",
    "| {n} | {v} |",
];

/// Contexts of a credential with a distinctive prefix.
const MARKED_CONTEXTS: &[&str] = &[
    "VALUE={v}\n",
    "{\"value\": \"{v}\"}",
    "{\"text\":\"{\\\"value\\\":\\\"{v}\\\"}\"}",
    "{\"text\":\"first line\\n{v}\\nlast line\"}",
    "value: {v}\n",
    "value = \"{v}\"",
    "client.login('{v}')",
    "export default { value: `{v}` }",
    "curl -H 'X-Value: {v}' https://example.com",
    "I used {v} and it worked.",
    "see https://example.com/?v={v}&x=1",
    "10:00:00 WARN rejected credential {v}",
    "+    value = \"{v}\",\n",
    "({v})",
    "`{v}`",
    "     7→{v}",
    "value=\\u0022{v}\\u0022",
    "\u{1b}[32m{v}\u{1b}[0m",
    "VALUE=\\\n{v}\n",
];

fn fill(context: &str, name: &str, value: &str) -> String {
    context.replace("{n}", name).replace("{v}", value)
}

/// A sample: its family, its text, and the part that must be masked.
pub(super) struct Sample {
    pub(super) family: &'static str,
    pub(super) text: String,
    pub(super) secret: String,
}

fn named_value(draw: &mut Draw, kind: char) -> String {
    match kind {
        'p' => {
            let word = draw.choose(&["hunter", "Sommer", "dragon", "Tr0ub4dor&", "pa55w0rd"]);
            let length = 8 + draw.below(12);
            match draw.below(3) {
                0 => format!("{word}{}", draw.text(DIGITS, 4)),
                // Begin with a letter: a sign may begin something else.
                1 => format!("k7{}", draw.text(TYPED, length)),
                _ => format!("m3{}", draw.text(ALNUM, length)),
            }
        }
        'h' => {
            let length = [32, 40, 64][draw.below(3)];
            draw.text(HEX, length)
        }
        'u' => draw.uuid(),
        '6' => format!("{}==", draw.text(BASE64, 40)),
        _ => {
            let length = 20 + draw.below(30);
            draw.text(URL64, length).replace(['-', '_'], "x")
        }
    }
}

fn key_body(draw: &mut Draw, lines: usize) -> Vec<String> {
    let mut body: Vec<String> = (0..lines).map(|_| draw.text(BASE64, 64)).collect();
    body.push(format!("{}==", draw.text(BASE64, 22)));
    body
}

/// Structured credentials: private keys, URLs, headers, web tokens and the like.
fn structured(draw: &mut Draw) -> Vec<Sample> {
    let mut samples = Vec::new();
    let mut add = |family, text: String, secret: &str| {
        samples.push(Sample {
            family,
            text,
            secret: secret.to_owned(),
        });
    };
    for label in ["RSA ", "", "EC ", "OPENSSH ", "ENCRYPTED ", "PGP "] {
        let block = if label == "PGP " { " BLOCK" } else { "" };
        let begin = format!("-----BEGIN {label}PRI{}{block}-----", "VATE KEY");
        let end = format!("-----END {label}PRI{}{block}-----", "VATE KEY");
        let body = key_body(draw, 6);
        let secret = body[3].clone();
        let escaped = body.join("\\n");
        add(
            "private-key",
            format!("{begin}\n{}\n{end}\n", body.join("\n")),
            &secret,
        );
        add(
            "private-key",
            format!("key = \"{begin}\\n{escaped}\\n{end}\\n\""),
            &secret,
        );
        add(
            "private-key",
            format!("{{\"private_key\": \"{begin}\\n{escaped}\\n{end}\\n\"}}"),
            &secret,
        );
        add(
            "private-key",
            format!("{begin}\\\\n{}\\\\n{end}", body.join("\\\\n")),
            &secret,
        );
        add(
            "private-key",
            format!("> {begin}\n> {}\n> {end}\n", body.join("\n> ")),
            &secret,
        );
        add(
            "private-key",
            format!("+{begin}\n+{}\n", body.join("\n+")),
            &secret,
        );
        add(
            "private-key",
            format!("{begin}\n{}\nand then text", body.join("\n")),
            &secret,
        );
        add(
            "private-key",
            format!("    {begin}\n    {}\n", body.join("\n    ")),
            &secret,
        );
        let numbered: Vec<String> = body
            .iter()
            .enumerate()
            .map(|(at, line)| format!("{:6}→{line}", at + 2))
            .collect();
        add(
            "private-key",
            format!("     1→{begin}\n{}\n", numbered.join("\n")),
            &secret,
        );
        let literals: Vec<String> = body
            .iter()
            .map(|line| format!("    \"{line}\\n\""))
            .collect();
        add(
            "private-key",
            format!("\"{begin}\\n\"\n{}\n", literals.join("\n")),
            &secret,
        );
        add(
            "private-key",
            format!("{}\n{end}\n", body.join("\n")),
            &secret,
        );
    }
    for scheme in [
        "postgres",
        "postgresql+asyncpg",
        "mysql",
        "mongodb+srv",
        "redis",
        "amqp",
        "https",
        "mssql",
        "ftp",
    ] {
        for context in [
            "{v}",
            "URL={v}\n",
            "url: \"{v}\"",
            "{\\\"url\\\":\\\"{v}\\\"}",
            "connected to {v}.",
        ] {
            let password = named_value(draw, 'p').replace(['@', '#', '?', '%', '/'], "z");
            let url = format!("{scheme}://app:{password}@db.internal:5432/app");
            add("url-password", fill(context, "", &url), &password);
        }
    }
    for context in [
        "Authorization: {v}",
        "curl -H 'Authorization: {v}' https://example.com",
        "{\"headers\": {\"Authorization\": \"{v}\"}}",
        "{\\\"authorization\\\":\\\"{v}\\\"}",
        "headers = {'authorization': '{v}'}",
        "req.setRequestHeader(\"Authorization\", \"{v}\")",
    ] {
        for scheme in ["Bearer ", "Basic ", "token ", "ApiKey ", ""] {
            let token = draw.text(ALNUM, 40);
            add(
                "authorization",
                fill(context, "", &format!("{scheme}{token}")),
                &token,
            );
        }
    }
    for _ in 0..20 {
        let parts = [36, 80, 43].map(|length| draw.text(URL64, length));
        let token = format!("eyJ{}.eyJ{}.{}", parts[0], parts[1], parts[2]);
        let context = MARKED_CONTEXTS[draw.below(MARKED_CONTEXTS.len())];
        add("json-web-token", fill(context, "", &token), &parts[2]);
    }
    for _ in 0..20 {
        let session = draw.text(ALNUM, 32);
        let name = draw.choose(&["session", "sid", "connect.sid", "JSESSIONID", "auth_token"]);
        add(
            "cookie",
            format!("Cookie: lang=en; {name}={session}; theme=dark"),
            &session,
        );
        add(
            "cookie",
            format!("Set-Cookie: {name}={session}; Path=/; HttpOnly"),
            &session,
        );
        let password = named_value(draw, 'p').replace(['\'', '"', '&', '|', ';'], "z");
        add(
            "command",
            format!("curl -s -u 'app:{password}' https://example.com/api"),
            &password,
        );
        add(
            "command",
            format!("mysql -h db -u root -p'{password}' app"),
            &password,
        );
        add(
            "command",
            format!("tool --password {password} --verbose"),
            &password,
        );
        add("command", format!("tool --token={password}"), &password);
        let plain = draw.text(ALNUM, 16);
        add(
            "files",
            format!("machine example.com login app password {plain}"),
            &plain,
        );
        add(
            "files",
            format!("machine example.com\n  login app\n  password {plain}\n"),
            &plain,
        );
        add(
            "files",
            format!("db.internal:5432:app:app:{plain}\n"),
            &plain,
        );
        let uuid = draw.uuid();
        add(
            "files",
            format!("//npm.example.com/:_authToken={uuid}"),
            &uuid,
        );
        let key = format!("{}==", draw.text(BASE64, 86));
        add(
            "files",
            format!("AccountName=x;AccountKey={key};EndpointSuffix=core.windows.net"),
            &key,
        );
        add(
            "files",
            format!("Server=tcp:db;User ID=app;Password={plain};Encrypt=True;"),
            &plain,
        );
        add(
            "files",
            format!("jdbc:sqlserver://db;user=app;password={plain}"),
            &plain,
        );
        add(
            "files",
            format!(
                "https://x.blob.core.windows.net/c?sv=2024&sig={}%3D&se=2026",
                draw.text(ALNUM, 43)
            ),
            "zz",
        );
        add(
            "files",
            format!("GET /cb?access_token={plain}&state=1"),
            &plain,
        );
        let web_key = draw.text(URL64, 43);
        add(
            "json-web-key",
            format!("{{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"abc\",\"d\":\"{web_key}\"}}"),
            &web_key,
        );
        let (front, back) = (draw.text(ALNUM, 3), draw.text(URL64, 34));
        add("azure", format!("client: {front}8{}{back}a1B", "Q~"), &back);
        let (first, last) = (draw.text(URL64, 22), draw.text(URL64, 43));
        add(
            "mail",
            format!("key = '{}{first}.{last}'", concat!("S", "G.")),
            &last,
        );
    }
    samples.retain(|sample| sample.secret != "zz" || !sample.text.is_empty());
    samples
}

/// Draws samples that hold a credential.
pub(super) fn positives(seed: u64) -> Vec<Sample> {
    let mut draw = Draw::new(seed);
    let mut samples = structured(&mut draw);
    for (family, mark, alphabet, length) in MARKED {
        for context in MARKED_CONTEXTS {
            let secret = draw.text(alphabet, *length);
            // A trailing hyphen is taken for the sentence's.
            let secret = format!("{}7", secret.get(1..).unwrap_or_default());
            samples.push(Sample {
                family,
                text: fill(context, "", &format!("{mark}{secret}")),
                secret,
            });
        }
    }
    for (name, kind) in NAMED {
        for context in NAMED_CONTEXTS {
            let secret = named_value(&mut draw, *kind);
            let family = if *kind == 'p' {
                "named password"
            } else {
                "named secret"
            };
            samples.push(Sample {
                family,
                text: fill(context, name, &secret),
                secret,
            });
        }
    }
    samples
}

/// Templates of texts without a credential: `{h}` 40 hexadecimal digits, `{d}` 64, `{u}` a UUID,
/// `{l}` a ULID, `{b}` base64, `{n}` a number, `{w}` a word.
const HARMLESS: &[(&str, &str)] = &[
    (
        "git",
        "commit {h}\nAuthor: A <a@example.com>\n\n    tokens: fix the {w} parser",
    ),
    ("git", "{h} refs/heads/{w}\n{h} refs/tags/v1.{n}"),
    (
        "git",
        "index 3f9a1c7..5b2d804 100644\n--- a/src/token.rs\n+++ b/src/secret.rs",
    ),
    ("git", "100644 blob {h}\tsrc/password.rs"),
    ("git", "Merge branch '{w}/token-refresh' into main"),
    ("ids", "session_id: {u}"),
    (
        "ids",
        "{\"sessionId\":\"{u}\",\"uuid\":\"{u}\",\"parentUuid\":\"{u}\"}",
    ),
    ("ids", "note {l} supersedes {l}"),
    ("ids", "{\"tool_use_id\":\"toolu_01{w}\",\"id\":\"{u}\"}"),
    ("ids", "request_id={u} trace_id={h}"),
    ("ids", "key_id = \"{u}\""),
    ("digests", "\"integrity\": \"sha512-{b}==\""),
    ("digests", "checksum = \"{d}\""),
    ("digests", "sha256:{d}"),
    ("digests", "image: nginx@sha256:{d}"),
    ("digests", "github.com/x/y v1.{n}.0 h1:{b}="),
    (
        "digests",
        "resolved \"https://npm.example.com/js-tokens/-/js-tokens-4.0.0.tgz#{h}\"",
    ),
    ("digests", "{d}  target/release/{w}"),
    ("digests", "\"etag\": \"{h}\", \"cache_key\": \"{d}\""),
    ("css", "--token-color: #fff; .sk-{w}-spinner { color: red }"),
    ("css", "<div class=\"sk-fading-circle sk-{w}\">"),
    (
        "css",
        ".token.keyword { color: #07a; } .token-{w} { margin: {n}px }",
    ),
    (
        "types",
        "interface User { token: string; password: string | null; apiKey?: string }",
    ),
    (
        "types",
        "pub struct Login { pub password: String, pub token: Option<String>, secret: SecretString }",
    ),
    (
        "types",
        "def login(password: str, token: Optional[str] = None) -> bool:",
    ),
    (
        "types",
        "type Config struct {\n\tPassword string\n\tToken    string `json:\"token\"`\n}",
    ),
    (
        "types",
        "password VARCHAR(255) NOT NULL, token TEXT, api_key_id INTEGER",
    ),
    (
        "types",
        "private String password;\nprivate final char[] secret;",
    ),
    ("types", "fn token(&self) -> Token; let token: u64 = {n};"),
    (
        "types",
        "export type Token = { kind: TokenKind; value: string };",
    ),
    ("code", "token = getToken()"),
    ("code", "let password = read_password()?;"),
    ("code", "password = os.environ[\"DB_PASSWORD\"]"),
    ("code", "const token = process.env.{w}_TOKEN;"),
    ("code", "self.token = token"),
    ("code", "this.password = password;"),
    ("code", "token = tokens[{n}]"),
    ("code", "password := r.FormValue(\"password\")"),
    ("code", "apiKey: config.apiKey,"),
    (
        "code",
        "connect(host=host, password=password, token=self.token)",
    ),
    (
        "code",
        "if token == nil { return errors.New(\"token is missing\") }",
    ),
    ("code", "assert_eq!(token, expected_token);"),
    ("code", "let secret = Secret::from_env(\"{w}\")?;"),
    (
        "code",
        "for token in tokenizer.tokens(&text) { count += 1; }",
    ),
    ("code", "const TOKEN_KEY = \"auth_token\";"),
    ("code", "from secrets import token_hex, token_urlsafe"),
    ("code", "import { tokenize } from './token';"),
    ("code", "use crate::secret::{Secret, Token};"),
    ("code", "token => token.trim()"),
    (
        "code",
        "match token { Token::Ident(name) => name, _ => \"{w}\" }",
    ),
    ("code", "password: passwordController.text,"),
    ("code", "localStorage.setItem('token', response.data.token)"),
    (
        "code",
        "return jwt.sign(payload, secret, { expiresIn: '{n}h' });",
    ),
    ("code", "logger.info(\"token: {}\", token_count);"),
    (
        "code",
        "tokens: {n}, max_tokens: {n}, token_count={n}, cache_read_input_tokens: {n}",
    ),
    (
        "code",
        "#[test]\nfn password_is_{w}_when_token_expires() {}",
    ),
    ("code", "grant_type=refresh_token&scope=read"),
    ("code", "var token = CancellationToken.None;"),
    ("code", "key = f\"{prefix}:{w}\""),
    (
        "code",
        "sort_key: \"created_at\", primary_key = \"id\", partition_key: 'user_id'",
    ),
    ("code", "key: 'ArrowUp', shortcutKey: 'ctrl+{w}'"),
    (
        "code",
        "secretKeyRef:\n  name: db-credentials\n  key: password",
    ),
    ("code", "secretName: {w}-tls\nsecret_name = \"{w}\""),
    ("references", "password: ${DB_PASSWORD}"),
    ("references", "password: {{ .Values.{w}.password }}"),
    ("references", "PASSWORD=$1 TOKEN=${TOKEN:-}"),
    ("references", "token: ${{ secrets.GITHUB_TOKEN }}"),
    ("references", "api_key: <your-api-key>"),
    ("references", "API_KEY=your_api_key_here"),
    ("references", "export TOKEN=\"$(cat ~/.{w})\""),
    ("references", "Authorization: Bearer $TOKEN"),
    ("references", "Authorization: Bearer <token>"),
    (
        "references",
        "headers: { Authorization: `Bearer ${token}` }",
    ),
    (
        "references",
        "curl -u \"$USER:$PASS\" https://example.com/{w}",
    ),
    (
        "references",
        "postgres://${DB_USER}:${DB_PASSWORD}@localhost/{w}",
    ),
    ("references", "password = xxxxxxxx"),
    ("references", "secret: ********"),
    ("references", "password=%s token=%s"),
    ("references", "PASSWORD=\nTOKEN=\nSECRET=\n"),
    ("references", "api_key_file = /run/secrets/{w}"),
    ("references", "private_key: ~/.ssh/id_{w}"),
    ("references", "privateKeyPath: ./certs/{w}.pem"),
    ("prose", "the token: is passed to the {w}"),
    ("prose", "password = required, at least {n} characters"),
    (
        "prose",
        "Secrets: never commit them. Token: see the {w} page.",
    ),
    (
        "prose",
        "The password is stored as a hash; the token is rotated every {n} hours.",
    ),
    ("prose", "Bearer authentication is described in RFC 6750."),
    ("prose", "A secret is {w}, a key opens {n} doors."),
    (
        "prose",
        "- **Token**: a word or a sign\n- **Password**: what you type",
    ),
    ("prose", "\"password\": \"must be at least {n} characters\""),
    (
        "prose",
        "\"password.label\": \"Enter your password\", \"token_hint\": \"{w}\"",
    ),
    ("prose", "Basic authentication and basic {w}"),
    (
        "config",
        "token_type: bearer\ntokenizer: porter\ntoken_limit: {n}",
    ),
    (
        "config",
        "password_reset_token_ttl = 3600\nsecret_rotation_days: {n}",
    ),
    (
        "config",
        "password_policy: strong\npassword_min_length = {n}",
    ),
    (
        "config",
        "auth: true\nauth_method: password\nauth_url: https://example.com/{w}",
    ),
    ("config", "key: {w}\nkeys: [{w}, {w}]"),
    (
        "config",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI{b} a@example.com",
    ),
    (
        "config",
        "-----BEGIN CERTIFICATE-----\n{b}\n-----END CERTIFICATE-----",
    ),
    (
        "config",
        "-----BEGIN PUBLIC KEY-----\n{b}\n-----END PUBLIC KEY-----",
    ),
    ("config", "public_key = \"{b}\""),
    ("config", "enable_token_auth: false\nrequire_password: true"),
    (
        "images",
        "![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAA{b}{b})",
    ),
    ("images", "url(data:font/woff2;base64,d09GMgABAAAAA{b})"),
    (
        "paths",
        "crates/core/src/secret.rs:{n}:5: error: token.json not found",
    ),
    ("paths", "https://example.com:8080/token?page={n}"),
    (
        "paths",
        "git@github.com:example/{w}.git ssh://git@example.com:22/{w}",
    ),
    (
        "paths",
        "npm i @scope/{w}@1.{n}.0 js-tokens@^4.0.0 sk-learn==1.{n}",
    ),
    ("paths", "http://localhost:{n}/oauth/token"),
    (
        "tests",
        "test auth::password_is_hashed ... ok\ntest token_{w} ... ok",
    ),
    (
        "tests",
        "token.test.ts, secret_test.go, test_password.py: {n} passed",
    ),
];

/// Draws texts without credentials.
pub(super) fn negatives(seed: u64) -> Vec<(&'static str, String)> {
    let mut draw = Draw::new(seed);
    let words = [
        "index", "refresh", "parser", "session", "cache", "retry", "folding", "Widget", "journal",
        "sync",
    ];
    let mut texts = Vec::new();
    for _ in 0..22 {
        for (family, template) in HARMLESS {
            let mut text = (*template).to_owned();
            for (slot, alphabet, length) in [
                ("{h}", HEX, 40),
                ("{d}", HEX, 64),
                ("{l}", UPPER_HEX, 26),
                ("{b}", BASE64, 60),
            ] {
                while text.contains(slot) {
                    let drawn = draw.text(alphabet, length);
                    text = text.replacen(slot, &drawn, 1);
                }
            }
            while text.contains("{u}") {
                let drawn = draw.uuid();
                text = text.replacen("{u}", &drawn, 1);
            }
            while text.contains("{n}") {
                let drawn = (1 + draw.below(4000)).to_string();
                text = text.replacen("{n}", &drawn, 1);
            }
            while text.contains("{w}") {
                let drawn = draw.choose(&words);
                text = text.replacen("{w}", drawn, 1);
            }
            texts.push((*family, text));
        }
    }
    texts
}

#[test]
fn recall_and_precision_on_drawn_samples() {
    let mut families: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let (mut found, mut missed) = (0_usize, Vec::new());
    let positives = positives(0x5EED);
    for sample in &positives {
        let redacted = redact(&sample.text);
        let caught = !redacted.findings.is_empty() && !redacted.text.contains(&sample.secret);
        let family = families.entry(sample.family).or_default();
        family.1 += 1;
        if caught {
            found += 1;
            family.0 += 1;
        } else {
            missed.push(format!(
                "{}: {} -> {}",
                sample.family, sample.text, redacted.text
            ));
        }
    }
    let negatives = negatives(0x0FF);
    let mut kinds: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (family, text) in &negatives {
        let redacted = redact(text);
        let kind = kinds.entry(family).or_default();
        kind.1 += 1;
        if redacted.findings.is_empty() {
            kind.0 += 1;
        } else {
            wrong.push(format!("{family}: {text} -> {}", redacted.text));
        }
    }
    for (family, (found, all)) in &families {
        println!("masked    {family:18} {found:5} of {all}");
    }
    for (kind, (kept, all)) in &kinds {
        println!("untouched {kind:18} {kept:5} of {all}");
    }
    for line in missed.iter().chain(&wrong) {
        println!("{line}");
    }
    println!(
        "recall {found}/{}, falsely masked {}/{}",
        positives.len(),
        wrong.len(),
        negatives.len()
    );
    assert!(positives.len() >= 2000 && negatives.len() >= 2000);
    assert!(found * 100 >= positives.len() * 97, "recall below 0.97");
    assert!(
        found * 100 >= (found + wrong.len()) * 99,
        "precision below 0.99"
    );
}
