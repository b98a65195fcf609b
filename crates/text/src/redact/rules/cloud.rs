//! Cloud and infrastructure providers.

use crate::redact::{
    rule::{Finder, Rule, exact},
    tokens::{Alphabet, Demand, Part, Token},
    transports,
};

use super::{ALNUM, BASE64, DOTTED, HEX, LOWER_DIGIT, UPPER_DIGIT, URL64, WORD};

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "aws",
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
];
