//! Other providers: chat, payment, models, package registries, mail, monitoring, productivity.

use crate::redact::{
    rule::{Finder, Rule, exact},
    tokens::{Alphabet, Demand, Part, Token},
    transports,
};

use super::{
    ALNUM, ANY64, BASE64, DISCORD, DOTTED, HEX, LOWER_DIGIT, UPPER_DIGIT, URL64, UUID, WORD,
};

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "slack",
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
        finder: Finder::Scanner {
            anchors: &[exact("sk-"), exact("rk-"), exact("pk-")],
            find: transports::model_key,
        },
    },
    Rule {
        name: "model-provider",
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
];
