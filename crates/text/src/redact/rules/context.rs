//! Credentials known by their context: addresses, headers, commands, files, names.

use crate::redact::{
    assignments,
    rule::{Finder, Rule, any_case, exact},
    transports,
};

pub(super) static RULES: &[Rule] = &[
    Rule {
        name: "url-password",
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
        finder: Finder::Scanner {
            anchors: &[any_case("bearer")],
            find: transports::bearer,
        },
    },
    Rule {
        name: "basic",
        finder: Finder::Scanner {
            anchors: &[any_case("basic")],
            find: transports::basic,
        },
    },
    Rule {
        name: "authorization",
        finder: Finder::Scanner {
            anchors: &[any_case("authorization")],
            find: transports::authorization,
        },
    },
    Rule {
        name: "cookie",
        finder: Finder::Scanner {
            anchors: &[any_case("cookie")],
            find: transports::cookies,
        },
    },
    Rule {
        name: "command",
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
        finder: Finder::Scanner {
            anchors: &[exact(":5432:"), exact("*:*:")],
            find: transports::pgpass,
        },
    },
    Rule {
        name: "assignment",
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
