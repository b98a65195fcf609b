//! The table of rules. The sources of the formats are in `docs/reference/redaction.md`.

use super::tokens::{
    Alphabet,
    Demand::{Digit, Mixed},
    Part::{self, Run, Take, Text},
    Rule, digit, mixed, parts, run, scanner, scanner_any_case,
};
use super::{assignments, private_keys, sentences, transports};

const ALNUM: Alphabet = Alphabet::ALNUM;
const WORD: Alphabet = Alphabet::WORD;
const URL64: Alphabet = Alphabet::URL64;
const DOTTED: Alphabet = Alphabet::DOTTED;
const BASE64: Alphabet = Alphabet::BASE64;
const HEX: Alphabet = Alphabet::HEX;
const DIGIT: Alphabet = Alphabet::DIGIT;
const UPPER_DIGIT: Alphabet = Alphabet::UPPER.union(DIGIT);
const LOWER_DIGIT: Alphabet = Alphabet::LOWER.union(DIGIT);
/// Standard and URL-safe base64, which some providers mix.
const ANY64: Alphabet = BASE64.union(URL64);

/// The parts of a UUID before its last twelve digits.
#[rustfmt::skip]
const UUID: &[Part] = &[
    Take(HEX, 8), Text("-"), Take(HEX, 4), Text("-"), Take(HEX, 4), Text("-"), Take(HEX, 4), Text("-"),
];

/// The parts of a Discord bot token between its first bytes, which encode a decimal number, and its
/// signature.
const DISCORD: &[Part] = &[Run(ALNUM, 20), Text("."), Take(URL64, 6), Text(".")];

/// The rules, one row per pattern. At one position, rows are tried in this order.
#[rustfmt::skip]
pub(super) static RULES: &[Rule] = &[
    scanner("private-key", "---- BEGIN|-----BEGIN|-----END|Private-Lines:", private_keys::block),
    run(
        "private-key-base64",
        "LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkt|\
         LS0tLS1CRUdJTiBQUklWQVRFIEtFWS0t|\
         LS0tLS1CRUdJTiBFQyBQUklWQVRFIEtFWS0t|\
         LS0tLS1CRUdJTiBEU0EgUFJJVkFURSBLRVkt|\
         LS0tLS1CRUdJTiBPUEVOU1NIIFBSSVZBVEUg|\
         LS0tLS1CRUdJTiBFTkNSWVBURUQgUFJJVkFURSBL|\
         LS0tLS1CRUdJTiBQR1AgUFJJVkFURSBLRVkg",
        BASE64,
        20,
    ),
    run("private-key-base64", "b3BlbnNzaC1rZXktdjEA", ANY64, 40),
    scanner("json-web-key", "kty", private_keys::json_web_key),
    run("age-key", "AGE-SECRET-KEY-1|AGE-SECRET-KEY-PQ-1", UPPER_DIGIT, 40),
    run("age-key", "AGE-PLUGIN-", UPPER_DIGIT.with(b"-"), 40),
    scanner("json-web-token", "eyJ", transports::json_web_token),
    run("json-web-token", ".local.|.public.", DOTTED, 40).after(DIGIT.with(b"v"), 2, 2),
    scanner("aws", "AKIA|ASIA|ABIA|ACCA", transports::aws),
    run("aws", "ABSK|bedrock-api-key-", ANY64, 40),
    run("google", "AIza", URL64, 33),
    run("google", "GOCSPX-", URL64, 20),
    run("google", "ya29.", DOTTED, 20),
    mixed("google", "1//0", URL64, 40),
    mixed("google", "AQ.Ab", URL64, 30),
    mixed("azure", "Q~", DOTTED.with(b"~"), 31).after(DOTTED.with(b"~"), 4, 4),
    run("azure", "AZDO", ALNUM, 4).after(ALNUM, 76, 76),
    run("azure", "+ASt", BASE64, 6).after(BASE64, 76, 76),
    run("cloud", "dop_v1_|doo_v1_|dor_v1_", HEX, 40),
    mixed("cloud", "LTAI", ALNUM, 12).whole(),
    mixed("cloud", "AKID", ALNUM, 13).whole(),
    digit("cloud", "cfut_|cfat_|cfk_", ALNUM, 40),
    parts("cloud", "v1.0-", &[Take(HEX, 24), Text("-")], Run(HEX, 100)),
    digit("cloud", "HRKU-", URL64, 30),
    run("cloud", "fo1_|sha256~", URL64, 40),
    run("cloud", "fm1r_|fm1a_|fm2_", BASE64, 60),
    mixed("cloud", "vcp_|vci_|vca_|vcr_|vck_", ALNUM, 24),
    mixed("cloud", "vercel_blob_rw_", WORD, 24),
    mixed("cloud", "nfp_|nfc_|nfo_|nfb_|nfu_", ALNUM, 30),
    run("cloud", "sbp_", HEX, 36),
    digit("cloud", "sb_secret_|mdb_sa_sk_", URL64, 20),
    digit("cloud", "pscale_tkn_|pscale_oauth_|pscale_pw_", DOTTED, 30),
    mixed("cloud", "rnd_", ALNUM, 28),
    digit("cloud", "napi_", LOWER_DIGIT, 40),
    digit("cloud", "tk-us-", URL64, 40),
    mixed("cloud", "AVNS_", URL64, 16),
    mixed("cloud", "AQVN", URL64, 35),
    run("infrastructure", "dapi", HEX, 32),
    run("infrastructure", ".atlasv1.", URL64.with(b"="), 40).after(ALNUM, 14, 14),
    digit("infrastructure", "hvs.", URL64, 20),
    digit("infrastructure", "hvb.|hvr.", URL64, 40),
    parts("infrastructure", "s.", &[], Take(ALNUM, 24)).demand(Mixed).whole(),
    run("infrastructure", "pul-", HEX, 40),
    digit("infrastructure", "dp.pt.|dp.ct.|dp.sa.|dp.scim.|dp.audit.", ALNUM, 24),
    digit("infrastructure", "dp.st.", DOTTED, 24),
    digit("infrastructure", "ico-", ALNUM, 32),
    digit("infrastructure", "API-", UPPER_DIGIT, 26),
    digit("infrastructure", "pnu_|pnb_", ALNUM, 36),
    parts("infrastructure", "pat.|sat.", &[Run(URL64, 20), Text("."), Take(ALNUM, 24), Text(".")], Run(ALNUM, 20)),
    digit("infrastructure", "tskey-", URL64, 16),
    mixed("infrastructure", "4b1d", ALNUM, 38),
    run("github", "ghp_|gho_|ghu_|ghs_|ghr_", ALNUM, 20),
    // Installation tokens since 2026: an app id, then a JSON web token.
    parts("github", "ghs_", &[Run(DIGIT, 1), Text("_eyJ")], Run(DOTTED, 20)),
    digit("github", "github_pat_", WORD, 22),
    digit(
        "gitlab",
        "glpat-|gldt-|gloas-|glrt-|glrtr-|glcbt-|glptt-|\
         glft-|glimt-|glagent-|glsoat-|glffct-|glwt-",
        DOTTED,
        20,
    ),
    run("gitlab", "GR1348941", URL64, 20),
    mixed("source-hosting", "ATBB", ALNUM, 24),
    digit("source-hosting", "ATCTT3|ATATT3", URL64.with(b"="), 40),
    digit("source-hosting", "sgp_", WORD, 40),
    run("slack", "xoxb-|xoxa-|xoxp-|xoxr-|xoxs-|xoxo-|xoxc-|xoxe-|xoxe.xoxb-|xoxe.xoxp-", URL64, 10),
    run("slack", "xoxd-", ANY64.with(b"%"), 10),
    parts("slack", "xapp-", &[Take(DIGIT, 1)], Run(URL64, 10)),
    run(
        "slack",
        "hooks.slack.com/services/|hooks.slack.com/workflows/|hooks.slack.com/triggers/",
        ALNUM.with(b"/+_-"),
        20,
    ),
    parts("chat", "MT|Mj|Mz|ND|NT|Nj|Nz|OD|OT", DISCORD, Run(URL64, 27)),
    run("chat", ":AA", URL64, 32).after(DIGIT, 8, 16),
    parts("chat", "bot", &[Run(DIGIT, 8), Text(":AA")], Run(URL64, 32)),
    run("chat", "discord.com/api/webhooks/|discordapp.com/api/webhooks/", URL64.with(b"/"), 40),
    run("chat", "webhook.office.com/webhookb2/|outlook.office.com/webhook/", URL64.with(b"/@"), 60),
    parts("chat", "SK", &[], Take(HEX, 32)).demand(Digit).whole(),
    run("stripe", "sk_live_|sk_test_|sk_prod_|rk_live_|rk_test_|rk_prod_", ALNUM, 10),
    digit("stripe", "whsec_", BASE64, 20),
    run("payment", "sq0atp-|sq0csp-", URL64, 22),
    mixed("payment", "EAAA", URL64, 50),
    run("payment", "access_token$", LOWER_DIGIT.with(b"$"), 40),
    mixed("payment", "AQEyhm|AQEphm|AQExhm|AQEuhm|AQEmhm|AQFyhm", ANY64, 60),
    mixed("payment", "rzp_live_|rzp_test_", ALNUM, 14),
    run("payment", "shpat_|shpca_|shppa_|shpss_|shptka_", HEX, 24),
    parts("payment", "access-sandbox-|access-development-|access-production-", UUID, Take(HEX, 12)),
    digit("payment", "FLWSECK-|FLWSECK_TEST-", URL64, 12),
    run("payment", "shippo_live_|shippo_test_", HEX, 32),
    mixed("payment", "EZAK|EZTK", ALNUM, 50),
    digit("payment", "pdl_live_apikey_|pdl_sdbx_apikey_", WORD, 20),
    scanner("model-key", "sk-|rk-|pk-", transports::model_key),
    mixed("model-provider", "hf_", ALNUM, 30),
    // The published format is 34 letters, so no digit is required.
    run("model-provider", "hf_", ALNUM, 34),
    run("model-provider", "api_org_", ALNUM, 30),
    digit("model-provider", "gsk_|xai-", ALNUM, 40),
    digit("model-provider", "r8_|csk-", ALNUM, 30),
    digit("model-provider", "pplx-", ALNUM, 32),
    digit("model-provider", "nvapi-", URL64, 40),
    digit("model-provider", "tgp_v1_", URL64, 30),
    mixed("model-provider", "fw_", ALNUM, 20),
    digit("model-provider", "lsv2_pt_|lsv2_sk_", WORD, 30),
    digit("model-provider", "wandb_v1_", WORD, 40),
    digit("model-provider", "pcsk_", WORD, 40),
    run("model-provider", "sk_", HEX, 40),
    mixed("model-provider", "tvly-", URL64, 20),
    run("model-provider", "e2b_", HEX, 36),
    mixed("model-provider", "jina_|pa-", URL64, 40),
    digit("model-provider", "rpa_", ALNUM, 36),
    digit("package-registry", "npm_", ALNUM, 30),
    digit("package-registry", "pypi-", URL64, 50),
    parts("package-registry", "cio", &[], Take(ALNUM, 32)).demand(Mixed).whole(),
    run("package-registry", "rubygems_", HEX, 40),
    digit("package-registry", "dckr_pat_|dckr_oat_", URL64, 20),
    parts("package-registry", "oy2", &[], Take(LOWER_DIGIT, 43)).demand(Digit).whole(),
    mixed("package-registry", "AKCp", ALNUM, 60),
    mixed("package-registry", "cmVmdGtu", ALNUM, 50),
    digit("package-registry", "CLOJARS_", ALNUM, 50),
    parts("mail", "SG.", &[Run(URL64, 16), Text(".")], Run(URL64, 30)),
    run("mail", "key-", HEX, 32),
    run("mail", "-us", DIGIT, 1).after(HEX, 32, 32),
    mixed("mail", "md-", URL64, 22),
    run("mail", "xkeysib-|xsmtpsib-", URL64, 60),
    parts("mail", "re_", &[Run(ALNUM, 6), Text("_")], Run(ALNUM, 16)).demand(Mixed),
    digit("monitoring", "sntrys_", ANY64, 40),
    digit("monitoring", "sntryu_", HEX, 40),
    digit("monitoring", "NRAK-|NRAL-", ALNUM, 20),
    digit("monitoring", "NRII-|NRIQ-", URL64, 20),
    digit("monitoring", "NRJS-", HEX, 16),
    digit("monitoring", "glsa_", WORD, 30),
    mixed("monitoring", "glc_", BASE64, 32),
    run("monitoring", "eyJrIjoi", BASE64, 60),
    parts("monitoring", "dt0c01.", &[Run(ALNUM, 20), Text(".")], Run(ALNUM, 40)),
    parts("monitoring", "dt0s01.", &[Run(ALNUM, 6), Text(".")], Run(ALNUM, 40)),
    digit("monitoring", "hcaik_|hcxik_|hcxmk_", ALNUM, 30),
    mixed("monitoring", "phx_", ALNUM, 36),
    run("monitoring", "squ_|sqp_|sqa_", HEX, 40),
    digit("monitoring", "ddapp_", ALNUM, 30),
    digit("monitoring", "rdme_", LOWER_DIGIT, 60),
    mixed("model-provider", "m0-", ALNUM, 30),
    digit("productivity", "lin_api_|lin_oauth_", ALNUM, 32),
    mixed("productivity", "secret_|ntn_", ALNUM, 40),
    digit("productivity", "figd_|figo_|figu_", URL64, 34),
    parts("productivity", "PMAK-", &[Take(HEX, 24), Text("-")], Run(HEX, 30)),
    digit("productivity", "PMAT-", UPPER_DIGIT, 26),
    parts("productivity", "pat", &[Take(ALNUM, 14), Text(".")], Run(HEX, 60)),
    mixed("productivity", "sl.", DOTTED, 60),
    run("productivity", "ops_eyJ", ANY64, 60),
    digit("productivity", "A3-", UPPER_DIGIT.with(b"-"), 31),
    parts("productivity", "pat-na1-|pat-na2-|pat-na3-|pat-eu1-|pat-ap1-|sdk-|api-", UUID, Take(HEX, 12)),
    digit("productivity", "tfp_", DOTTED, 40),
    digit("productivity", "CFPAT-", URL64, 40),
    digit("productivity", "CCIPAT_|CCIPRJ_", WORD, 40),
    digit("productivity", "bkua_", HEX, 36),
    run("productivity", "ATTA", HEX, 60),
    mixed("productivity", "EAA", ALNUM, 80),
    mixed("productivity", "AAAAAAAAAAAAAAAAAAAAA", ALNUM.with(b"%"), 60),
    run("productivity", "sec-c-", URL64, 40),
    run("productivity", "sk.eyJ", DOTTED, 40),
    scanner("url-password", "://|@tcp(|@unix(|oracle:thin:", transports::url),
    scanner_any_case("bearer", "bearer", transports::bearer),
    scanner_any_case("basic", "basic", transports::basic),
    scanner_any_case("authorization", "authorization", transports::authorization),
    scanner_any_case("cookie", "cookie", transports::cookies),
    scanner(
        "command",
        "curl|mysql|sshpass|docker login|redis-cli|ldap|podman login|registry login|oc login|az login|\
         twine upload|mongosh|mongodump|mongorestore|sqlcmd|ssh-keygen|lftp|smbclient|http |https |xh | -",
        transports::command,
    ),
    scanner("command", "password-stdin|sudo -S|chpasswd|auth login --with-token", transports::piped_password),
    scanner("pgpass", ":5432:|*:*:", transports::pgpass),
    scanner_any_case(
        "assignment",
        "pass|pw|psk|secret|token|key|cred|auth|bearer|conn|pat|securestring",
        assignments::assignment,
    ),
    scanner_any_case("assignment", "identified by", assignments::sql_password),
    scanner("assignment", "sig=", assignments::signature),
    scanner_any_case("assignment", sentences::FOREIGN, assignments::foreign),
    scanner("assignment", sentences::FOREIGN_SECRETS, assignments::foreign),
];
