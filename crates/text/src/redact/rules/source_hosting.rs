//! Source hosting.

use crate::redact::{
    rule::{Finder, Rule},
    tokens::{Alphabet, Demand, Part, Token},
};

use super::{ALNUM, DOTTED, URL64, WORD};

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "github",
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
        finder: Finder::Tokens(&[
            mixed!("ATBB", ALNUM, 24),
            digit!("ATCTT3", URL64.union(Alphabet::new(b"=")), 40),
            digit!("ATATT3", URL64.union(Alphabet::new(b"=")), 40),
            digit!("sgp_", WORD, 40),
        ]),
    },
];
