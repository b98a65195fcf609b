//! The table of rules: the patterns, with examples that must and must not match.
//!
//! Examples are concatenated from parts, so that no repository scanner reports them as live
//! credentials. The sources of the formats are in `docs/reference/redaction.md`.

use super::scan::Scan;
use super::tokens::{Alphabet, Demand, Part, Token};
use super::{assignments, private_keys, transports};

/// A kind of credential and its patterns.
pub struct Rule {
    /// Its name in findings and in the documentation.
    pub name: &'static str,
    /// The kind of service or format.
    pub family: &'static str,
    /// Texts that it masks.
    pub must_match: &'static [&'static str],
    /// Texts that no rule masks.
    pub must_not_match: &'static [&'static str],
    pub(super) finder: Finder,
}

/// How a rule finds its credentials.
pub(super) enum Finder {
    /// Tokens with a distinctive prefix each.
    Tokens(&'static [Token]),
    /// A function that is called at each anchor.
    Scanner {
        anchors: &'static [Literal],
        find: fn(&mut Scan<'_>, usize),
    },
}

/// The literal text of an anchor, at least two ASCII bytes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Literal {
    Exact(&'static str),
    AnyCase(&'static str),
}

impl Literal {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Exact(text) | Self::AnyCase(text) => text,
        }
    }

    pub(super) fn matches_at(self, text: &[u8], at: usize) -> bool {
        let literal = self.text().as_bytes();
        let Some(there) = text.get(at..at + literal.len()) else {
            return false;
        };
        match self {
            Self::Exact(_) => there == literal,
            Self::AnyCase(_) => there.eq_ignore_ascii_case(literal),
        }
    }
}

impl Rule {
    /// Returns the literals without which the rule cannot match.
    pub fn keywords(&self) -> impl Iterator<Item = &'static str> {
        self.literals().map(Literal::text)
    }

    pub(super) fn literals(&self) -> impl Iterator<Item = Literal> {
        let (tokens, anchors): (&[Token], &[Literal]) = match self.finder {
            Finder::Tokens(tokens) => (tokens, &[]),
            Finder::Scanner { anchors, .. } => (&[], anchors),
        };
        tokens
            .iter()
            .map(|token| Literal::Exact(token.mark))
            .chain(anchors.iter().copied())
    }
}

/// Returns all rules, in the order in which they are tried.
#[must_use]
pub fn rules() -> &'static [Rule] {
    RULES
}

const ALNUM: Alphabet = Alphabet::ALNUM;
const WORD: Alphabet = Alphabet::WORD;
const URL64: Alphabet = Alphabet::URL64;
const DOTTED: Alphabet = Alphabet::DOTTED;
const BASE64: Alphabet = Alphabet::BASE64;
const HEX: Alphabet = Alphabet::HEX;
const UPPER_DIGIT: Alphabet = Alphabet::UPPER.union(Alphabet::DIGIT);
const LOWER_DIGIT: Alphabet = Alphabet::LOWER.union(Alphabet::DIGIT);
/// Standard and URL-safe base64, which some providers mix.
const ANY64: Alphabet = Alphabet::BASE64.union(Alphabet::URL64);

/// A mark followed by at least `$least` bytes of an alphabet.
macro_rules! run {
    ($mark:expr, $alphabet:expr, $least:expr) => {
        Token::new($mark, &[Part::Run($alphabet, $least)])
    };
}

/// The same, where the rest must have a digit, a lower-case and an upper-case letter.
macro_rules! mixed {
    ($mark:expr, $alphabet:expr, $least:expr) => {
        run!($mark, $alphabet, $least).demand(Demand::Mixed)
    };
}

/// The same, where the rest must have a digit.
macro_rules! digit {
    ($mark:expr, $alphabet:expr, $least:expr) => {
        run!($mark, $alphabet, $least).demand(Demand::Digit)
    };
}

const fn exact(text: &'static str) -> Literal {
    Literal::Exact(text)
}

const fn any_case(text: &'static str) -> Literal {
    Literal::AnyCase(text)
}

/// The parts of a UUID.
const UUID: &[Part] = &[
    Part::Take(HEX, 8),
    Part::Text("-"),
    Part::Take(HEX, 4),
    Part::Text("-"),
    Part::Take(HEX, 4),
    Part::Text("-"),
    Part::Take(HEX, 4),
    Part::Text("-"),
    Part::Take(HEX, 12),
];

/// The parts of a Discord bot token after its first bytes, which encode a decimal number.
const DISCORD: &[Part] = &[
    Part::Run(ALNUM, 20),
    Part::Text("."),
    Part::Take(URL64, 6),
    Part::Text("."),
    Part::Run(URL64, 27),
];

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

static RULES: &[Rule] = &[
    Rule {
        name: "private-key",
        family: "private keys",
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
        finder: Finder::Scanner {
            anchors: &[
                exact("---- BEGIN"),
                exact("-----BEGIN"),
                exact("-----END"),
                exact("Private-Lines:"),
            ],
            find: private_keys::block,
        },
    },
    Rule {
        name: "private-key-base64",
        family: "private keys",
        must_match: &[concat!(
            "data: LS0tLS1CRUdJTiBSU0",
            "EgUFJJVkFURSBLRVktLS0tLQo",
            x32!()
        )],
        must_not_match: &["certificate-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURkekND"],
        finder: Finder::Tokens(&[
            run!("LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt", BASE64, 20),
            run!("LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0t", BASE64, 20),
            run!("LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0t", BASE64, 20),
            run!("LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRVkt", BASE64, 20),
            run!("LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg", BASE64, 20),
            run!("LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBL", BASE64, 20),
            run!("LS0tLS1CRUdJTiBQR1AgUFJJVkFURSBLRVkg", BASE64, 20),
            run!("b3BlbnNzaC1rZXktdjEA", ANY64, 40),
        ]),
    },
    Rule {
        name: "json-web-key",
        family: "private keys",
        must_match: &[concat!(
            "{\"kty\":\"EC\",\"crv\":\"P-256\",\"d\":\"",
            x32!(),
            "abcdefghijk\"}"
        )],
        must_not_match: &[
            "{\"kty\":\"EC\",\"x\":\"WKn-ZIGevcwGIyyrzFoZNBdaq9_TsqzGl96oc0CWuis\",\"y\":\"y77t\"}",
        ],
        finder: Finder::Scanner {
            anchors: &[exact("kty")],
            find: private_keys::json_web_key,
        },
    },
    Rule {
        name: "age-key",
        family: "private keys",
        must_match: &[concat!(
            "AGE-SECRET",
            "-KEY-1QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7LQPZRY9X8GF2TVDW0S3JN54KH"
        )],
        must_not_match: &["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"],
        finder: Finder::Tokens(&[
            run!("AGE-SECRET-KEY-1", UPPER_DIGIT, 40),
            run!("AGE-SECRET-KEY-PQ-1", UPPER_DIGIT, 40),
            run!(
                "AGE-PLUGIN-",
                Alphabet::UPPER
                    .union(Alphabet::DIGIT)
                    .union(Alphabet::new(b"-")),
                40
            ),
        ]),
    },
    Rule {
        name: "json-web-token",
        family: "tokens",
        must_match: &[
            concat!("eyJ", "hbGciOiJIUzI1NiJ9.eyJ", "zdWIiOiIxMjM0In0.", x32!()),
            concat!("v4.local", ".", x32!(), x32!()),
        ],
        must_not_match: &["eyJhbGciOiJIUzI1NiJ9", "import eyJson.parser.reader"],
        finder: Finder::Scanner {
            anchors: &[exact("eyJ"), exact(".local."), exact(".public.")],
            find: transports::json_web_token,
        },
    },
    Rule {
        name: "aws",
        family: "cloud",
        must_match: &[
            concat!("AK", "IAQ7ZK2VT9LX4BN8RW"),
            concat!("AS", "IAQ7ZK2VT9LX4BN8RW"),
            concat!("ABSK", "QmVkcm9ja0FQSUtleS", x32!(), x32!(), x32!()),
        ],
        must_not_match: &[
            "AKIAQ7ZK2VT9LX4BN8RWA",
            "XAKIAQ7ZK2VT9LX4BN8RW",
            "AKIA_region_table",
        ],
        finder: Finder::Scanner {
            anchors: &[
                exact("AKIA"),
                exact("ASIA"),
                exact("ABIA"),
                exact("ACCA"),
                exact("ABSK"),
                exact("bedrock-api-key-"),
            ],
            find: transports::aws,
        },
    },
    Rule {
        name: "google",
        family: "cloud",
        must_match: &[
            concat!("AI", "zaSy", x32!(), "1"),
            concat!("GOC", "SPX-", "q7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc"),
            concat!("ya2", "9.a0", x32!()),
        ],
        must_not_match: &["AIzazzle is a name", "https://example.com/ya29.html"],
        finder: Finder::Tokens(&[
            run!("AIza", URL64, 33),
            run!("GOCSPX-", URL64, 20),
            run!("ya29.", DOTTED, 20),
            mixed!("1//0", URL64, 40),
            mixed!("AQ.Ab", URL64, 30),
        ]),
    },
    Rule {
        name: "azure",
        family: "cloud",
        must_match: &[
            concat!("abc8", "Q~", x32!()),
            concat!(x32!(), x32!(), "q7Zk2Vt9Lx4B", "AZDO", "a1B2"),
        ],
        must_not_match: &["8Q~", "the AZDO pipeline"],
        finder: Finder::Tokens(&[
            mixed!("Q~", DOTTED.union(Alphabet::new(b"~")), 31).after(
                DOTTED.union(Alphabet::new(b"~")),
                4,
                4,
            ),
            run!("AZDO", ALNUM, 4).after(ALNUM, 76, 76),
            run!("+ASt", BASE64, 6).after(BASE64, 76, 76),
        ]),
    },
    Rule {
        name: "cloud",
        family: "cloud",
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
        finder: Finder::Tokens(&[
            run!("dop_v1_", HEX, 40),
            run!("doo_v1_", HEX, 40),
            run!("dor_v1_", HEX, 40),
            mixed!("LTAI", ALNUM, 12).whole(),
            mixed!("AKID", ALNUM, 13).whole(),
            digit!("cfut_", ALNUM, 40),
            digit!("cfat_", ALNUM, 40),
            digit!("cfk_", ALNUM, 40),
            Token::new(
                "v1.0-",
                &[Part::Take(HEX, 24), Part::Text("-"), Part::Run(HEX, 100)],
            ),
            digit!("HRKU-", URL64, 30),
            run!("fo1_", URL64, 40),
            run!("fm1r_", BASE64, 60),
            run!("fm1a_", BASE64, 60),
            run!("fm2_", BASE64, 60),
            mixed!("vcp_", ALNUM, 24),
            mixed!("vci_", ALNUM, 24),
            mixed!("vca_", ALNUM, 24),
            mixed!("vcr_", ALNUM, 24),
            mixed!("vck_", ALNUM, 24),
            mixed!("vercel_blob_rw_", WORD, 24),
            mixed!("nfp_", ALNUM, 30),
            mixed!("nfc_", ALNUM, 30),
            mixed!("nfo_", ALNUM, 30),
            mixed!("nfb_", ALNUM, 30),
            mixed!("nfu_", ALNUM, 30),
            run!("sbp_", HEX, 36),
            digit!("sb_secret_", URL64, 20),
            digit!("pscale_tkn_", DOTTED, 30),
            digit!("pscale_oauth_", DOTTED, 30),
            digit!("pscale_pw_", DOTTED, 30),
            mixed!("rnd_", ALNUM, 28),
            digit!("napi_", LOWER_DIGIT, 40),
            digit!("tk-us-", URL64, 40),
            mixed!("AVNS_", URL64, 16),
            mixed!("AQVN", URL64, 35),
            digit!("mdb_sa_sk_", URL64, 20),
            run!("sha256~", URL64, 40),
        ]),
    },
    Rule {
        name: "infrastructure",
        family: "infrastructure",
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
        finder: Finder::Tokens(&[
            run!("dapi", HEX, 32),
            run!(".atlasv1.", URL64.union(Alphabet::new(b"=")), 40).after(ALNUM, 14, 14),
            digit!("hvs.", URL64, 20),
            digit!("hvb.", URL64, 40),
            digit!("hvr.", URL64, 40),
            Token::new("s.", &[Part::Take(ALNUM, 24)])
                .demand(Demand::Mixed)
                .whole(),
            run!("pul-", HEX, 40),
            digit!("dp.pt.", ALNUM, 24),
            digit!("dp.st.", DOTTED, 24),
            digit!("dp.ct.", ALNUM, 24),
            digit!("dp.sa.", ALNUM, 24),
            digit!("dp.scim.", ALNUM, 24),
            digit!("dp.audit.", ALNUM, 24),
            digit!("ico-", ALNUM, 32),
            digit!("API-", UPPER_DIGIT, 26),
            digit!("pnu_", ALNUM, 36),
            digit!("pnb_", ALNUM, 36),
            Token::new(
                "pat.",
                &[
                    Part::Run(URL64, 20),
                    Part::Text("."),
                    Part::Take(ALNUM, 24),
                    Part::Text("."),
                    Part::Run(ALNUM, 20),
                ],
            ),
            Token::new(
                "sat.",
                &[
                    Part::Run(URL64, 20),
                    Part::Text("."),
                    Part::Take(ALNUM, 24),
                    Part::Text("."),
                    Part::Run(ALNUM, 20),
                ],
            ),
            digit!("tskey-", URL64, 16),
            mixed!("4b1d", ALNUM, 38),
        ]),
    },
    Rule {
        name: "github",
        family: "source hosting",
        must_match: &[
            concat!("gh", "p_", x32!(), "a1B2"),
            concat!("gh", "s_", "q7Zk2Vt9Lx4Bn8Rw3Hs6"),
            concat!("github", "_pat_11", x32!(), "_", x32!()),
        ],
        must_not_match: &[
            "ghp_short",
            "ghp_token_name",
            "github_pat_",
            "github_pat_name",
        ],
        finder: Finder::Tokens(&[
            run!("ghp_", ALNUM, 20),
            run!("gho_", ALNUM, 20),
            run!("ghu_", ALNUM, 20),
            run!("ghs_", ALNUM, 20),
            // Installation tokens since 2026: an app id, then a JSON web token.
            Token::new(
                "ghs_",
                &[
                    Part::Run(Alphabet::DIGIT, 1),
                    Part::Text("_eyJ"),
                    Part::Run(DOTTED, 20),
                ],
            ),
            run!("ghr_", ALNUM, 20),
            digit!("github_pat_", WORD, 22),
        ]),
    },
    Rule {
        name: "gitlab",
        family: "source hosting",
        must_match: &[
            concat!("gl", "pat-", "q7Zk2Vt9Lx4Bn8Rw3Hs6"),
            concat!("gl", "rt-t1_", x32!()),
        ],
        must_not_match: &[
            "glpat-token",
            "glrt-runner-authentication-token",
            "GR1348941",
        ],
        finder: Finder::Tokens(&[
            digit!("glpat-", DOTTED, 20),
            digit!("gldt-", DOTTED, 20),
            digit!("gloas-", DOTTED, 20),
            digit!("glrt-", DOTTED, 20),
            digit!("glrtr-", DOTTED, 20),
            digit!("glcbt-", DOTTED, 20),
            digit!("glptt-", DOTTED, 20),
            digit!("glft-", DOTTED, 20),
            digit!("glimt-", DOTTED, 20),
            digit!("glagent-", DOTTED, 20),
            digit!("glsoat-", DOTTED, 20),
            digit!("glffct-", DOTTED, 20),
            digit!("glwt-", DOTTED, 20),
            run!("GR1348941", URL64, 20),
        ]),
    },
    Rule {
        name: "source-hosting",
        family: "source hosting",
        must_match: &[
            concat!("ATB", "Bq7Zk2Vt9Lx4Bn8Rw3Hs6Jd1Fm5Gc0Pyu"),
            concat!("ATAT", "T3xFfGF0", x32!(), x32!()),
        ],
        must_not_match: &["ATBBase", "sgp_local"],
        finder: Finder::Tokens(&[
            mixed!("ATBB", ALNUM, 24),
            digit!("ATCTT3", URL64.union(Alphabet::new(b"=")), 40),
            digit!("ATATT3", URL64.union(Alphabet::new(b"=")), 40),
            digit!("sgp_", WORD, 40),
        ]),
    },
    Rule {
        name: "slack",
        family: "chat",
        must_match: &[
            concat!("xo", "xb-1234567890-q7Zk2Vt9Lx4B"),
            concat!("xa", "pp-1-A012345-678-", x32!()),
            concat!("https://hooks.sl", "ack.com/services/T0001/B0001/", x32!()),
        ],
        must_not_match: &["xoxb-", "xapp-bundle", "https://hooks.slack.com/services/"],
        finder: Finder::Tokens(&[
            run!("xoxb-", URL64, 10),
            run!("xoxa-", URL64, 10),
            run!("xoxp-", URL64, 10),
            run!("xoxr-", URL64, 10),
            run!("xoxs-", URL64, 10),
            run!("xoxo-", URL64, 10),
            run!("xoxc-", URL64, 10),
            run!("xoxd-", ANY64.union(Alphabet::new(b"%")), 10),
            run!("xoxe-", URL64, 10),
            run!("xoxe.xoxb-", URL64, 10),
            run!("xoxe.xoxp-", URL64, 10),
            Token::new(
                "xapp-",
                &[Part::Take(Alphabet::DIGIT, 1), Part::Run(URL64, 10)],
            ),
            run!(
                "hooks.slack.com/services/",
                ALNUM.union(Alphabet::new(b"/+_-")),
                20
            ),
            run!(
                "hooks.slack.com/workflows/",
                ALNUM.union(Alphabet::new(b"/+_-")),
                20
            ),
            run!(
                "hooks.slack.com/triggers/",
                ALNUM.union(Alphabet::new(b"/+_-")),
                20
            ),
        ]),
    },
    Rule {
        name: "chat",
        family: "chat",
        must_match: &[
            concat!("MT", "k4NjIyNDgzNDcxOTI1MjQ4.Cl2FMQ.", x32!()),
            concat!("123456789", ":AA", x32!(), "1"),
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
            "SKIRMISH",
            "https://discord.com/api/webhooks/",
        ],
        finder: Finder::Tokens(&[
            Token::new("MT", DISCORD),
            Token::new("Mj", DISCORD),
            Token::new("Mz", DISCORD),
            Token::new("ND", DISCORD),
            Token::new("NT", DISCORD),
            Token::new("Nj", DISCORD),
            Token::new("Nz", DISCORD),
            Token::new("OD", DISCORD),
            Token::new("OT", DISCORD),
            run!(":AA", URL64, 32).after(Alphabet::DIGIT, 8, 16),
            run!(
                "discord.com/api/webhooks/",
                URL64.union(Alphabet::new(b"/")),
                40
            ),
            run!(
                "discordapp.com/api/webhooks/",
                URL64.union(Alphabet::new(b"/")),
                40
            ),
            run!(
                "webhook.office.com/webhookb2/",
                URL64.union(Alphabet::new(b"/@")),
                60
            ),
            run!(
                "outlook.office.com/webhook/",
                URL64.union(Alphabet::new(b"/@")),
                60
            ),
            Token::new("SK", &[Part::Take(HEX, 32)])
                .demand(Demand::Digit)
                .whole(),
        ]),
    },
    Rule {
        name: "stripe",
        family: "payment",
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
        finder: Finder::Tokens(&[
            run!("sk_live_", ALNUM, 10),
            run!("sk_test_", ALNUM, 10),
            run!("sk_prod_", ALNUM, 10),
            run!("rk_live_", ALNUM, 10),
            run!("rk_test_", ALNUM, 10),
            run!("rk_prod_", ALNUM, 10),
            digit!("whsec_", BASE64, 20),
        ]),
    },
    Rule {
        name: "payment",
        family: "payment",
        must_match: &[
            concat!("sq0", "atp-", "q7Zk2Vt9Lx4Bn8Rw3Hs6Jd"),
            concat!("shp", "at_", h32!()),
            concat!("access_", "token$production$q7zk2vt9lx4bn8rw$", h32!()),
            concat!("rzp_", "live_q7Zk2Vt9Lx4Bn8"),
        ],
        must_not_match: &["shpat_description", "rzp_test_helpers_module"],
        finder: Finder::Tokens(&[
            run!("sq0atp-", URL64, 22),
            run!("sq0csp-", URL64, 22),
            mixed!("EAAA", URL64, 50),
            run!("access_token$", LOWER_DIGIT.union(Alphabet::new(b"$")), 40),
            mixed!("AQEyhm", ANY64, 60),
            mixed!("AQEphm", ANY64, 60),
            mixed!("AQExhm", ANY64, 60),
            mixed!("AQEuhm", ANY64, 60),
            mixed!("AQEmhm", ANY64, 60),
            mixed!("AQFyhm", ANY64, 60),
            mixed!("rzp_live_", ALNUM, 14),
            mixed!("rzp_test_", ALNUM, 14),
            run!("shpat_", HEX, 24),
            run!("shpca_", HEX, 24),
            run!("shppa_", HEX, 24),
            run!("shpss_", HEX, 24),
            run!("shptka_", HEX, 24),
            Token::new("access-sandbox-", UUID),
            Token::new("access-development-", UUID),
            Token::new("access-production-", UUID),
            digit!("FLWSECK-", URL64, 12),
            digit!("FLWSECK_TEST-", URL64, 12),
            run!("shippo_live_", HEX, 32),
            run!("shippo_test_", HEX, 32),
            mixed!("EZAK", ALNUM, 50),
            mixed!("EZTK", ALNUM, 50),
            digit!("pdl_live_apikey_", WORD, 20),
            digit!("pdl_sdbx_apikey_", WORD, 20),
        ]),
    },
    Rule {
        name: "model-key",
        family: "model providers",
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
        finder: Finder::Scanner {
            anchors: &[exact("sk-"), exact("rk-"), exact("pk-")],
            find: transports::model_key,
        },
    },
    Rule {
        name: "model-provider",
        family: "model providers",
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
        finder: Finder::Tokens(&[
            mixed!("hf_", ALNUM, 30),
            // The published format is 34 letters, so no digit is required.
            run!("hf_", ALNUM, 34),
            run!("api_org_", ALNUM, 30),
            digit!("gsk_", ALNUM, 40),
            digit!("xai-", ALNUM, 40),
            digit!("r8_", ALNUM, 30),
            digit!("pplx-", ALNUM, 32),
            digit!("nvapi-", URL64, 40),
            digit!("tgp_v1_", URL64, 30),
            mixed!("fw_", ALNUM, 20),
            digit!("csk-", ALNUM, 30),
            digit!("lsv2_pt_", WORD, 30),
            digit!("lsv2_sk_", WORD, 30),
            digit!("pcsk_", WORD, 40),
            run!("sk_", HEX, 40),
            mixed!("tvly-", URL64, 20),
            run!("e2b_", HEX, 36),
            mixed!("jina_", URL64, 40),
            digit!("rpa_", ALNUM, 36),
            mixed!("pa-", URL64, 40),
        ]),
    },
    Rule {
        name: "package-registry",
        family: "package registries",
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
        finder: Finder::Tokens(&[
            digit!("npm_", ALNUM, 30),
            digit!("pypi-", URL64, 50),
            Token::new("cio", &[Part::Take(ALNUM, 32)])
                .demand(Demand::Mixed)
                .whole(),
            run!("rubygems_", HEX, 40),
            digit!("dckr_pat_", URL64, 20),
            digit!("dckr_oat_", URL64, 20),
            Token::new("oy2", &[Part::Take(LOWER_DIGIT, 43)])
                .demand(Demand::Digit)
                .whole(),
            mixed!("AKCp", ALNUM, 60),
            mixed!("cmVmdGtu", ALNUM, 50),
            digit!("CLOJARS_", ALNUM, 50),
        ]),
    },
    Rule {
        name: "mail",
        family: "mail and monitoring",
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
        finder: Finder::Tokens(&[
            Token::new(
                "SG.",
                &[Part::Run(URL64, 16), Part::Text("."), Part::Run(URL64, 30)],
            ),
            run!("key-", HEX, 32),
            Token::new("-us", &[Part::Run(Alphabet::DIGIT, 1)]).after(HEX, 32, 32),
            mixed!("md-", URL64, 22),
            run!("xkeysib-", HEX.union(URL64), 60),
            run!("xsmtpsib-", HEX.union(URL64), 60),
            Token::new(
                "re_",
                &[Part::Run(ALNUM, 6), Part::Text("_"), Part::Run(ALNUM, 16)],
            )
            .demand(Demand::Mixed),
        ]),
    },
    Rule {
        name: "monitoring",
        family: "mail and monitoring",
        must_match: &[
            concat!("sntr", "ys_eyJpYXQiOjE3", x32!(), "_", x32!()),
            concat!("NR", "AK-Q7ZK2VT9LX4BN8RW3HS6JD1FM5G"),
            concat!("gl", "sa_", x32!(), "_3f9a1c7e"),
        ],
        must_not_match: &["NRAK-", "glc_", "sqa_team", "phx_counter"],
        finder: Finder::Tokens(&[
            digit!("sntrys_", ANY64, 40),
            digit!("sntryu_", HEX, 40),
            digit!("NRAK-", ALNUM, 20),
            digit!("NRII-", URL64, 20),
            digit!("NRJS-", HEX, 16),
            digit!("NRAL-", ALNUM, 20),
            digit!("NRIQ-", URL64, 20),
            digit!("glsa_", WORD, 30),
            mixed!("glc_", BASE64, 32),
            run!("eyJrIjoi", BASE64, 60),
            Token::new(
                "dt0c01.",
                &[Part::Run(ALNUM, 20), Part::Text("."), Part::Run(ALNUM, 40)],
            ),
            Token::new(
                "dt0s01.",
                &[Part::Run(ALNUM, 6), Part::Text("."), Part::Run(ALNUM, 40)],
            ),
            digit!("hcaik_", ALNUM, 30),
            digit!("hcxik_", ALNUM, 30),
            digit!("hcxmk_", ALNUM, 30),
            mixed!("phx_", ALNUM, 36),
            run!("squ_", HEX, 40),
            run!("sqp_", HEX, 40),
            run!("sqa_", HEX, 40),
            digit!("rdme_", LOWER_DIGIT, 60),
        ]),
    },
    Rule {
        name: "productivity",
        family: "productivity",
        must_match: &[
            concat!("lin", "_api_", x32!(), "abcdefgh"),
            concat!("sec", "ret_", x32!(), "abcdefghijk"),
            concat!("fig", "d_", x32!(), "-abcd"),
            concat!("pa", "tq7Zk2Vt9Lx4Bn8.", h32!(), h32!()),
            concat!("A", "3-Q7ZK2V-T9LX4B-N8RW3-HS6JD-1FM5G-C0PYU"),
        ],
        must_not_match: &[
            "secret_name",
            "pattern.match",
            "A3-size",
            "sl.component",
            "figd_",
            "secret_santa_generator_for_everybody_1",
        ],
        finder: Finder::Tokens(&[
            digit!("lin_api_", ALNUM, 32),
            digit!("lin_oauth_", ALNUM, 32),
            mixed!("secret_", ALNUM, 40),
            mixed!("ntn_", ALNUM, 40),
            digit!("figd_", URL64, 34),
            digit!("figo_", URL64, 34),
            digit!("figu_", URL64, 34),
            Token::new(
                "PMAK-",
                &[Part::Take(HEX, 24), Part::Text("-"), Part::Run(HEX, 30)],
            ),
            digit!("PMAT-", UPPER_DIGIT, 26),
            Token::new(
                "pat",
                &[Part::Take(ALNUM, 14), Part::Text("."), Part::Run(HEX, 60)],
            ),
            mixed!("sl.", DOTTED, 60),
            run!("ops_eyJ", ANY64, 60),
            digit!("A3-", UPPER_DIGIT.union(Alphabet::new(b"-")), 31),
            Token::new("pat-na1-", UUID),
            Token::new("pat-na2-", UUID),
            Token::new("pat-na3-", UUID),
            Token::new("pat-eu1-", UUID),
            Token::new("pat-ap1-", UUID),
            digit!("tfp_", DOTTED, 40),
            digit!("CFPAT-", URL64, 40),
            digit!("CCIPAT_", WORD, 40),
            digit!("CCIPRJ_", WORD, 40),
            digit!("bkua_", HEX, 36),
            Token::new("sdk-", UUID),
            Token::new("api-", UUID),
            mixed!("EAA", ALNUM, 80),
            mixed!(
                "AAAAAAAAAAAAAAAAAAAAA",
                ALNUM.union(Alphabet::new(b"%")),
                60
            ),
            Token::new("sec-c-", &[Part::Run(URL64, 40)]),
            run!("sk.eyJ", DOTTED, 40),
        ]),
    },
    Rule {
        name: "url-password",
        family: "addresses",
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
        finder: Finder::Scanner {
            anchors: &[
                exact("://"),
                exact(":\\/\\/"),
                exact("@tcp("),
                exact("@unix("),
                exact("oracle:thin:"),
            ],
            find: transports::url,
        },
    },
    Rule {
        name: "bearer",
        family: "headers",
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
        finder: Finder::Scanner {
            anchors: &[any_case("bearer")],
            find: transports::bearer,
        },
    },
    Rule {
        name: "basic",
        family: "headers",
        must_match: &[concat!("Basic ", "YXBwOmh1bnRlcjI=")],
        must_not_match: &[
            "Basic authentication",
            "basic information",
            "Basic dGVzdA==",
        ],
        finder: Finder::Scanner {
            anchors: &[any_case("basic")],
            find: transports::basic,
        },
    },
    Rule {
        name: "authorization",
        family: "headers",
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
        finder: Finder::Scanner {
            anchors: &[any_case("authorization")],
            find: transports::authorization,
        },
    },
    Rule {
        name: "cookie",
        family: "headers",
        must_match: &[
            "Cookie: theme=dark; session=q7Zk2Vt9Lx4Bn8Rw3Hs6",
            "Set-Cookie: JSESSIONID=3F9A1C7E5B2D8046AF31E9C27D50B864; Path=/",
        ],
        must_not_match: &[
            "Cookie: theme=dark; lang=en",
            "Set-Cookie: a=b; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
        ],
        finder: Finder::Scanner {
            anchors: &[any_case("cookie")],
            find: transports::cookies,
        },
    },
    Rule {
        name: "command",
        family: "commands",
        must_match: &[
            "curl -u app:hunter2 https://example.com",
            "mysql -u root -phunter2 app",
            "sshpass -p 'hunter2' ssh host",
        ],
        must_not_match: &[
            "curl -u $USER:$PASS https://example.com",
            "mysql -u root -p app",
            "docker run -p 8080:80 nginx",
            "curl -u app https://example.com",
        ],
        finder: Finder::Scanner {
            anchors: &[
                exact("curl"),
                exact("mysql"),
                exact("sshpass"),
                exact("docker"),
                exact("redis-cli"),
                exact("ldap"),
                exact(" -"),
            ],
            find: transports::command,
        },
    },
    Rule {
        name: "pgpass",
        family: "files",
        must_match: &["db.internal:5432:app:app:hunter2", "*:*:*:postgres:hunter2"],
        must_not_match: &[
            "src/main.rs:5432:12: warning: unused",
            "127.0.0.1:5432->5432/tcp",
        ],
        finder: Finder::Scanner {
            anchors: &[exact(":5432:"), exact("*:*:")],
            find: transports::pgpass,
        },
    },
    Rule {
        name: "assignment",
        family: "names",
        must_match: &[
            "password=hunter2",
            "password: secret123",
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
            "passphrase = \"correct horse battery staple\"",
        ],
        must_not_match: &[
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
        finder: Finder::Scanner {
            anchors: &[
                any_case("pass"),
                any_case("pw"),
                any_case("secret"),
                any_case("token"),
                any_case("key"),
                any_case("cred"),
                any_case("auth"),
                any_case("bearer"),
                any_case("conn"),
                any_case("pat"),
                any_case("securestring"),
                any_case("identified by"),
                exact("sig="),
            ],
            find: assignments::assignment,
        },
    },
];
