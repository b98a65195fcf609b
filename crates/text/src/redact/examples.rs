//! Examples for each rule: texts that it must and must not match.
//!
//! They are concatenated from parts, so that no repository scanner reports them as live credentials.

/// The examples of a rule.
pub(super) struct Examples {
    /// The rule's name.
    pub(super) rule: &'static str,
    /// Texts that it masks.
    pub(super) must_match: &'static [&'static str],
    /// Texts that no rule masks.
    pub(super) must_not_match: &'static [&'static str],
}

/// Random letters and digits for examples.
macro_rules! x32 {
    () => {
        "q7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc0Pyu"
    };
}

/// Random hexadecimal digits for examples.
macro_rules! h32 {
    () => {
        "3f9a1c7e5b2d8046af31e9c27d50b864"
    };
}

pub(super) static EXAMPLES: &[Examples] = &[
    Examples {
        rule: "private-key",
        must_match: &[
            concat!(
                "-----BEGIN RSA PRI",
                "VATE KEY-----\nMIIEow\n-----END RSA PRI",
                "VATE KEY-----"
            ),
            concat!(
                "-----BEGIN PGP PRI",
                "VATE KEY BLOCK-----\n\nlQOYBF",
                x32!(),
                "\n=ab12\n"
            ),
            concat!(
                "\"-----BEGIN PRI",
                "VATE KEY-----\\nMIIEvQIBADANBgkq",
                x32!(),
                "\\n"
            ),
            concat!(
                "Private-",
                "Lines: 2\nAAAAgQ",
                x32!(),
                "\nAAAA",
                x32!(),
                "\nPrivate-MAC: 00"
            ),
            concat!(x32!(), x32!(), "\n-----END OPENSSH PRI", "VATE KEY-----"),
        ],
        must_not_match: &[
            "-----BEGIN CERTIFICATE-----\nMIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBa\n-----END CERTIFICATE-----",
            "-----BEGIN PUBLIC KEY-----\nMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE\n-----END PUBLIC KEY-----",
            concat!("starts_with(\"-----BEGIN PRI", "VATE KEY-----\") || fail()"),
        ],
    },
    Examples {
        rule: "private-key-base64",
        must_match: &[concat!(
            "data: LS0tLS1CRUdJTiBSU0",
            "EgUFJJVkFURSBLRVktLS0tLQo",
            x32!()
        )],
        must_not_match: &["certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURkekND"],
    },
    Examples {
        rule: "json-web-key",
        must_match: &[concat!(
            "{\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"",
            x32!(),
            "abcdefghijk\"}"
        )],
        must_not_match: &[
            "{\"kty\":\"EC\",\"x\":\"WKn-ZIGevcwGIyyrzFoZNBdaq9_TsqzGl96oc0CWuis\",\"y\":\"y77t\"}",
        ],
    },
    Examples {
        rule: "age-key",
        must_match: &[concat!(
            "AGE-SECRET",
            "-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KH"
        )],
        must_not_match: &["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"],
    },
    Examples {
        rule: "json-web-token",
        must_match: &[
            concat!("eyJ", "hbGciOiJIUzI1NiJ9.eyJ", "zdWIiOiIxMjM0In0.", x32!()),
            concat!("v4.local", ".", x32!(), x32!()),
        ],
        must_not_match: &["eyJhbGciOiJIUzI1NiJ9", "import eyJson.parser.reader"],
    },
    Examples {
        rule: "aws",
        must_match: &[
            concat!("AK", "IAQ7ZK2VT9LX4BN8RW"),
            concat!("@@ -1 +1 @@\n-AK", "IAQ7ZK2VT9LX4BN8RW"),
            concat!("+AK", "IAQ7ZK2VT9LX4BN8RW\n"),
            concat!("AS", "IAQ7ZK2VT9LX4BN8RW"),
            concat!("ABSK", "QmVkcm9ja0FQSUtleS", x32!(), x32!(), x32!()),
        ],
        must_not_match: &[
            "AKIAQ7ZK2VT9LX4BN8RWA",
            "XAKIAQ7ZK2VT9LX4BN8RW",
            "AKIA_region_table",
        ],
    },
    Examples {
        rule: "google",
        must_match: &[
            concat!("AI", "zaSy", x32!(), "1"),
            concat!("GOC", "SPX-", "q7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc"),
            concat!("ya2", "9.a0", x32!()),
        ],
        must_not_match: &["AIzazzle is a name", "https://example.com/ya29.html"],
    },
    Examples {
        rule: "azure",
        must_match: &[
            concat!("abc8", "Q~", x32!()),
            concat!(x32!(), x32!(), "q7Zk2Vt9Lx4B", "AZDO", "a1B2"),
        ],
        must_not_match: &["8Q~", "the AZDO pipeline"],
    },
    Examples {
        rule: "cloud",
        must_match: &[
            concat!("dop_", "v1_", h32!(), h32!()),
            concat!("cfut", "_", x32!(), x32!()),
            concat!("sb_sec", "ret_", x32!()),
            concat!("HRKU", "-AA", x32!(), x32!()),
        ],
        must_not_match: &[
            "sb_secret_key_name",
            "LTAIxxxxxxxxxxxxxxxxxxxx",
            "fm1r_buffer",
            "rnd_generator_for_all_tests",
        ],
    },
    Examples {
        rule: "infrastructure",
        must_match: &[
            concat!("da", "pi", h32!()),
            concat!("q7Zk2Vt9Lx4Bn8", ".atlas", "v1.", x32!(), x32!()),
            concat!("hv", "s.CAESI", x32!()),
            concat!("tskey", "-auth-", x32!()),
        ],
        must_not_match: &[
            "s.toString",
            "dapifactory",
            "pul-request",
            "this.props.navigationState",
        ],
    },
    Examples {
        rule: "github",
        must_match: &[
            concat!("gh", "p_", x32!(), "a1B2"),
            concat!("@@ -1 +1 @@\n-gh", "p_", x32!(), "a1B2"),
            concat!("+gh", "p_", x32!(), "a1B2\n"),
            concat!("gh", "s_", "q7Zk2Vt9Lx4Bn8Rw3Hs6"),
            concat!("github", "_pat_11", x32!(), "_", x32!()),
        ],
        must_not_match: &[
            "ghp_short",
            "ghp_token_name",
            "github_pat_",
            "github_pat_name",
        ],
    },
    Examples {
        rule: "gitlab",
        must_match: &[
            concat!("gl", "pat-", "q7Zk2Vt9Lx4Bn8Rw3Hs6"),
            concat!("gl", "rt-t1_", x32!()),
        ],
        must_not_match: &[
            "glpat-token",
            "glrt-runner-authentication-token",
            "GR1348941",
        ],
    },
    Examples {
        rule: "source-hosting",
        must_match: &[
            concat!("ATB", "Bq7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc0Pyu"),
            concat!("ATAT", "T3xFfGF0", x32!(), x32!()),
        ],
        must_not_match: &["ATBBase", "sgp_local"],
    },
    Examples {
        rule: "slack",
        must_match: &[
            concat!("xo", "xb-1234567890-q7Zk2Vt9Lx4B"),
            concat!("xa", "pp-1-A012345-678-", x32!()),
            concat!("https://hooks.sl", "ack.com/services/T0001/B0001/", x32!()),
        ],
        must_not_match: &["xoxb-", "xapp-bundle", "https://hooks.slack.com/services/"],
    },
    Examples {
        rule: "chat",
        must_match: &[
            concat!("MT", "k4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.", x32!()),
            concat!("123456789", ":AA", x32!(), "1"),
            concat!(
                "https://api.telegram.org/bot",
                "123456789",
                ":AA",
                x32!(),
                "1/getMe"
            ),
            concat!("bot", "123456789", ":AA", x32!(), "1"),
            concat!(
                "https://discord.com/api/web",
                "hooks/123456789012345678/",
                x32!(),
                x32!()
            ),
            concat!("S", "K", h32!()),
        ],
        must_not_match: &[
            "MTU.size.value",
            "12:AAC",
            "bot12345678:AAC",
            "https://api.telegram.org/bot<token>/getMe",
            "SKIRMISH",
            "https://discord.com/api/webhooks/",
        ],
    },
    Examples {
        rule: "stripe",
        must_match: &[
            concat!("sk_", "live_", "q7Zk2Vt9Lx4Bn8Rw"),
            concat!("wh", "sec_", x32!()),
        ],
        must_not_match: &[
            "sk_live_",
            "sk_test_mode_enabled",
            "pk_live_q7Zk2Vt9Lx4Bn8Rw",
            "whsec_",
        ],
    },
    Examples {
        rule: "payment",
        must_match: &[
            concat!("sq0", "atp-", "q7Zk2Vt9Lx4Bn8Rw3Hs6Jd"),
            concat!("shp", "at_", h32!()),
            concat!("access_", "token$production$q7zk2vt9lx4bn8rw$", h32!()),
            concat!("rzp_", "live_q7Zk2Vt9Lx4Bn8"),
        ],
        must_not_match: &["shpat_description", "rzp_test_helpers_module"],
    },
    Examples {
        rule: "model-key",
        must_match: &[
            concat!("s", "k-q7Zk2Vt9Lx4B"),
            concat!("p", "k-abcdefghijkl"),
            concat!("s", "k-proj-q7Zk2Vt9_Lx4Bn8Rw3-Hs6Jd1Fm5Gc"),
            concat!("s", "k-ant-api03-q7Zk2Vt9-Lx4Bn8Rw3Hs6_Jd1"),
        ],
        must_not_match: &[
            "sk-learn",
            "sk-loading-spinner",
            "risk-assessment2024",
            "desk-q7Zk2Vt9Lx4B",
            "sk-fading-circle-container-12",
        ],
    },
    Examples {
        rule: "model-provider",
        must_match: &[
            concat!("h", "f_", x32!(), "Ab"),
            concat!("gs", "k_", x32!(), x32!()),
            concat!("pp", "lx-", x32!(), x32!()),
        ],
        must_not_match: &[
            "hf_hub_download",
            "gsk_",
            "xai-explainability",
            "r8_unorm",
            "fw_update_progress_handler1",
        ],
    },
    Examples {
        rule: "package-registry",
        must_match: &[
            concat!("np", "m_", x32!(), "Ab12"),
            concat!("py", "pi-AgEIcHlwaS5vcmc", x32!(), x32!()),
            concat!("ci", "o", x32!()),
            concat!("dckr", "_pat_", x32!()),
            concat!("oy", "2", "abcdefghijklmnopqrstuvwxyz234567abcdefghijk"),
        ],
        must_not_match: &[
            "npm_config_registry",
            "pypi-publish",
            "cio_interface",
            "npm_package_version_1",
        ],
    },
    Examples {
        rule: "mail",
        must_match: &[
            concat!("S", "G.q7Zk2Vt9Lx4Bn8Rw3Hs6Jd.", x32!(), "abcdefghijk"),
            concat!("ke", "y-", h32!()),
            concat!(h32!(), "-u", "s12"),
        ],
        must_not_match: &[
            "SG.size",
            "monkey-3f9a1c7e5b2d8046af31e9c27d50b864",
            "3f9a1c7e5b2d8046af31e9c27d50b864-user",
        ],
    },
    Examples {
        rule: "monitoring",
        must_match: &[
            concat!("sntr", "ys_eyJpYXQiOjE3", x32!(), "_", x32!()),
            concat!("NR", "AK-Q7ZK2VT9LX4BN8RW3HS6JD1FM5G"),
            concat!("gl", "sa_", x32!(), "_3f9a1c7e"),
        ],
        must_not_match: &["NRAK-", "glc_", "sqa_team", "phx_counter"],
    },
    Examples {
        rule: "productivity",
        must_match: &[
            concat!("lin", "_api_", x32!(), "abcdefgh"),
            concat!("sec", "ret_", x32!(), "abcdefghijk"),
            concat!("fig", "d_", x32!(), "-abcd"),
            concat!("pa", "tq7Zk2Vt9Lx4Bn8.", h32!(), h32!()),
            concat!("A", "3-Q7ZK2V-T9LX4B-N8RW3-HS6JD-1FM5G-C0PYU"),
            concat!("AT", "TA", h32!(), h32!()),
        ],
        must_not_match: &[
            "secret_name",
            "pattern.match",
            "A3-size",
            "ATTACHMENT",
            "sl.component",
            "figd_",
            "secret_santa_generator_for_everybody_1",
        ],
    },
    Examples {
        rule: "url-password",
        must_match: &[
            "postgres://app:hunter2@db.internal:5432/app",
            "https:\\/\\/ci:hunter2@git.example.com\\/x.git",
            "mongodb+srv://root:p%40ss/w0rd@cluster0.example.net/",
            "app:hunter2@tcp(127.0.0.1:3306)/app",
            "jdbc:oracle:thin:scott/tig3r@//db:1521/x",
        ],
        must_not_match: &[
            "https://example.com:8080/a@2x.png",
            "ssh://git@github.com:22/x.git",
            "https://${USER}:${PASS}@example.com",
            "http://[::1]:80/@scope/package",
            "redis://:$REDIS_PASSWORD@localhost",
        ],
    },
    Examples {
        rule: "bearer",
        must_match: &[
            concat!("bea", "rer q7Zk2Vt9Lx4B"),
            concat!("Bea", "rer abcdefghijkl"),
        ],
        must_not_match: &[
            "Bearer authentication",
            "Bearer $TOKEN",
            "bearer <your-token-here>",
            "Bearer YOUR_ACCESS_TOKEN",
            "Bearer short",
        ],
    },
    Examples {
        rule: "basic",
        must_match: &[concat!("Basic ", "YXBwOmh1bnRlcjI=")],
        must_not_match: &[
            "Basic authentication",
            "basic information",
            "Basic dGVzdA==",
        ],
    },
    Examples {
        rule: "authorization",
        must_match: &[
            "Authorization: ApiKey q7Zk2Vt9Lx4Bn8",
            "curl -H 'Authorization: token q7Zk2Vt9Lx4Bn8Rw'",
            "{\"authorization\": \"SSWS 00q7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc0Pyu\"}",
        ],
        must_not_match: &[
            "Authorization: Bearer $TOKEN",
            "Authorization: the header is missing",
            "headers.authorization = `Bearer ${token}`",
        ],
    },
    Examples {
        rule: "cookie",
        must_match: &[
            "Cookie: theme=dark; session=q7Zk2Vt9Lx4Bn8Rw3Hs6",
            "Set-Cookie: JSESSIONID=3F9A1C7E5B2D8046AF31E9C27D50B864; Path=/",
        ],
        must_not_match: &[
            "Cookie: theme=dark; lang=en",
            "Set-Cookie: a=b; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
        ],
    },
    Examples {
        rule: "command",
        must_match: &[
            "curl -u app:hunter2 https://example.com",
            "mysql -u root -phunter2 app",
            "sshpass -p 'hunter2' ssh host",
            "podman login -u app -p hunter2 quay.io",
            "helm registry login -u app -p hunter2 host",
            "oc login -u app -p hunter2",
            "az login -u app -p hunter2",
            "twine upload -u app -p hunter2 dist/*",
            "mongosh -u app -p hunter2 db",
            "mongodump -u app -p hunter2",
            "mongorestore -u app -p hunter2",
            "sqlcmd -U sa -P hunter2 -Q x",
            "ssh-keygen -t ed25519 -N hunter2 -f key",
            "lftp -u app,hunter2 sftp://host",
            "smbclient -U app%hunter2 //host/share",
            "http -a app:hunter2 example.com",
            "https POST example.com --auth=app:hunter2",
            "xh -a 'app:hunter2' example.com",
            "echo hunter2 | sudo -S apt update",
            "echo \"hunter2\" | docker login -u app --password-stdin",
            "printf '%s' 'hunter2' | gh auth login --with-token",
            "echo 'app:hunter2' | sudo chpasswd",
        ],
        must_not_match: &[
            "curl -u $USER:$PASS https://example.com",
            "mysql -u root -p app",
            "docker run -p 8080:80 nginx",
            "curl -u app https://example.com",
            "docker run --name mongo -p 27017:27017 mongo",
            "ssh-keygen -t ed25519 -N \"\" -f key",
            "smbclient -U app //host/share",
            "http -a app:$PASS example.com",
            "use http for it\nls -a app:copper",
            "cat token.txt | docker login --password-stdin",
            "echo $TOKEN | gh auth login --with-token",
            "echo \"two words\" | sudo -S tee x",
        ],
    },
    Examples {
        rule: "pgpass",
        must_match: &[
            "db.internal:5432:app:app:hunter2",
            "*:*:*:postgres:hunter2",
            "+db.internal:5432:app:app:hunter2",
            "-db.internal:5432:app:app:hunter2",
            "> db.internal:5432:*:app:hunter2",
            "env/db.conf:3:db.internal:5432:app:app:hunter2",
            "  db.internal:5432:app:app:hunter2",
        ],
        must_not_match: &[
            "src/main.rs:5432:12: warning: unused",
            "127.0.0.1:5432->5432/tcp",
        ],
    },
    Examples {
        rule: "assignment",
        must_match: &[
            "password=hunter2",
            "password: secret123",
            "contraseña: hunter2x9",
            "Mot de passe : hunter2x9",
            "db_senha=hunter2x9",
            "Kennwort: hunter2x9",
            "пароль: hunter2x9",
            "密码：hunter2x9",
            "パスワード: hunter2x9",
            "비밀번호 = hunter2x9",
            "कोई पासवर्ड: hunter2x9",
            "كلمة المرور: hunter2x9",
            "hasło: hunter2x9",
            "parola d'ordine: hunter2x9",
            "wachtwoord = hunter2x9",
            "Şifre: hunter2x9",
            "lösenord: hunter2x9",
            "пароль це hunter2x9",
            "پاس ورڈ: hunter2x9",
            "পাসওয়ার্ড: hunter2x9",
            "kata sandi: hunter2x9",
            "DEEPSEEK_API_KEY=q7Zk2Vt9Lx4B",
            "AWS_SECRET_ACCESS_KEY = \"wJalrXUtnFEMI/K7MDENG/bPxRfiCYzEXAMPLEKEY\"",
            concat!(
                "aws_secret_access_key = wJalrXUtnFEMI/K7MD",
                "ENG/bPxRfiCYEXAMPLEKEY"
            ),
            "{\"clientSecret\":\"q7Zk2Vt9\"}",
            "{\\\"password\\\": \\\"hunter2\\\"}",
            "{\\\\\\\"password\\\\\\\":\\\\\\\"hunter2\\\\\\\"}",
            "\\u0022password\\u0022:\\u0022hunter2\\u0022",
            "password =\n  hunter2\n",
            "password: >-\n  q7Zk2Vt9Lx4B\n",
            "<password>hunter2</password>",
            "machine example.com login app password hunter2",
            "--password hunter2",
            "https://example.com/?access_token=q7Zk2Vt9&x=1",
            "X-Api-Key: q7Zk2Vt9Lx4Bn8",
            "Server=db;User Id=app;Password=hunter2;Encrypt=true",
            "//npm.example.com/:_authToken=3f9a1c7e-5b2d-8046-af31-e9c27d50b864",
            "{\"auths\":{\"ghcr.io\":{\"auth\":\"YXBwOmh1bnRlcjI=\"}}}",
            "- name: DB_PASSWORD\n  value: \"hunter2\"",
            "{\"name\":\"DB_PASSWORD\",\"slotSetting\":false,\"value\":\"hunter2\"}",
            "{\"value\":\"hunter2\",\"name\":\"DB_PASSWORD\"}",
            "- value: hunter2\n  name: DB_PASSWORD",
            "<key>password</key>\n<string>hunter2</string>",
            "[\"--password\",\"hunter2\"]",
            "[\\\"--password\\\",\\\"hunter2\\\"]",
            "spawn('psql', ['--password', 'hunter2'])",
            "args:\n  - --password\n  - hunter2",
            "password: !!str hunter2",
            "password: &main hunter2",
            "password for staging: hunter2x9",
            "the password for the old host is hunter2x9",
            "令牌：hunter2x9",
            "API密钥: hunter2x9",
            "トークン：hunter2x9",
            "密码（hunter2x9）",
            "密码：默认hunter2x9",
            "passphrase = \"correct horse battery staple\"",
            "the password is: hunter2x9",
            "HTTPBasicAuth(\"app\", \"hunter2\")",
            "BasicAuth(USER, 'copper')",
            "request.basic_auth(\"app\", Some(\"hunter2\"))",
            "req.SetBasicAuth(\"app\", \"hunter2\")",
            "requests.get(url, auth=(\"app\", \"hunter2x\"))",
            "client.auth(\"app\", \"hunter2x\")",
            "psk=hunter2x9",
            "\tpsk=\"correct horse battery\"",
            "wifi-sec.psk: hunter2x9",
            "wpa_passphrase Meadow hunter2x9",
            "wpa_passphrase \"Meadow 5\" hunter2x9",
            "wpa_passphrase=hunter2x9",
        ],
        must_not_match: &[
            "form.user.label.password: \"Password2 of the user\"",
            "errors.password = \"Kennwort fehlt 2x\"",
            "The token:\n```json\n{}\n```",
            "Password: ```bash2\nls\n```",
            "parolando: hunter2x9",
            "das Passwort ist falsch, la contraseña es obligatoria",
            "a senha é obrigatória, le mot de passe est incorrect",
            "пароль — это строка",
            "密码是6位数字，密码为空",
            "パスワードは8文字以上です",
            "비밀번호는 8자 이상",
            "पासवर्ड गलत है",
            "密码：错误",
            "修改密码：点击这里",
            "密码：至少12位",
            "密码：请联系admin获取。",
            "密钥（必填）",
            "パスワード：必須",
            "비밀번호: 필수",
            "пароль: неверный",
            "\"password\": \"Неверный пароль\"",
            "\"apiKey\": \"请输入API密钥\"",
            "Passwort: Pflichtfeld",
            "password: forgotten",
            "mot de passe : oublié",
            "parser.add_argument(\"--password\", \"--pass\")",
            "option(\"--token\", \"copper\")",
            "{\"--password\", \"copper\": 1}",
            "- --password\n- sets the password",
            "password: !Ref DatabaseMeadow",
            "fn f(password: &mut Copper,\n)",
            "{\"value\":\"copper\",\"name\":\"retries\"}",
            "the password for staging is wrong",
            "the password is: 12 characters long",
            "the problem with the password is: it is short",
            "the password is wrong, the password is stored in vault",
            "password is required",
            "HTTPBasicAuth(user, password)",
            "new BasicAuth(\"app\", \"password\")",
            "client.auth(\"google\", \"copper\")",
            "key_mgmt=WPA-PSK\npsk-flags=0",
            "PSK: Pre-Shared Key, the PSK is shared",
            "the wpa_passphrase tool hashes it",
            "token: string",
            "password: str",
            "secret: Option<String>",
            "token = getToken()",
            "password = os.environ[\"X\"]",
            "token: process.env.TOKEN",
            "token = self.token",
            "token = tokens[0]",
            "password := r.FormValue(\"password\")",
            "password: ${PASSWORD}",
            "PASSWORD=$1",
            "token: {{ token }}",
            "token = \"<your-token>\"",
            "password = null",
            "max_tokens = 4096",
            "password_reset_token_ttl = 3600",
            "token_type: bearer",
            "tokenizer: porter",
            "--token-color: #fff",
            "the token: is passed",
            "password = required",
            "\"password\": \"must be at least 8 characters\"",
            "password=[REDACTED]",
            "connect(password=password, token=token2)",
            "private_key: /etc/ssl/private/server.key",
            "PASSWORD=\nTOKEN=\n",
        ],
    },
];
