//! Private keys and signed tokens.

use crate::redact::{
    private_keys,
    rule::{Finder, Rule, exact},
    tokens::{Alphabet, Part, Token},
    transports,
};

use super::{ANY64, BASE64, UPPER_DIGIT};

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "private-key",
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
        finder: Finder::Scanner {
            anchors: &[exact("kty")],
            find: private_keys::json_web_key,
        },
    },
    Rule {
        name: "age-key",
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
        finder: Finder::Scanner {
            anchors: &[exact("eyJ"), exact(".local."), exact(".public.")],
            find: transports::json_web_token,
        },
    },
];
