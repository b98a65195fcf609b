//! Odd values of variables, in hooks, in the server and in commands of the agent.

use std::{ffi::OsString, os::unix::ffi::OsStringExt as _};

use super::{
    Row,
    place::{SESSION, TestSite, Variables, messages},
};
use crate::Result;

pub(super) const ROWS: &[Row] = &[
    row("all guarded variables at once", together),
    row("names in another case", other_case),
    row("values that are no text", no_text),
    row("a session's own variables", of_session),
    row("many and long variables", many),
];

const fn row(name: &'static str, play: fn(&mut TestSite) -> Result) -> Row {
    Row {
        family: "environment",
        name,
        play,
    }
}

/// The variables that name a store, a remote, a model, an address or a key.
fn guarded(place: &TestSite) -> Variables {
    let remote = place.evil_remote().display().to_string();
    let store = place.evil_store().display().to_string();
    let address = place.evil_address();
    let pairs = [
        ("ANAMNESIS_HOME", &store),
        ("ANAMNESIS_GIT_REMOTE", &remote),
        ("CLAUDE_PLUGIN_OPTION_REMOTE", &remote),
        ("ANAMNESIS_REFLECTION_BASE_URL", &address),
        ("ANAMNESIS_REFLECTION_PROVIDER", &"openai".to_owned()),
        ("ANAMNESIS_REFLECTION_MODEL", &"evil".to_owned()),
        ("ANAMNESIS_REFLECTION_API_KEY", &"k".to_owned()),
        ("OPENAI_API_KEY", &"k".to_owned()),
        ("http_proxy", &address),
        ("https_proxy", &address),
        ("ALL_PROXY", &address),
    ];
    pairs
        .into_iter()
        .map(|(name, value)| (name.to_owned(), OsString::from(value)))
        .collect()
}

fn together(place: &mut TestSite) -> Result {
    let mut set = guarded(place);
    set.retain(|_| place.random.below(3) > 0);
    let names: Vec<&str> = set.iter().map(|(name, _)| name.as_str()).collect();
    place.tell(names.join(" "));
    place.session(&set)?;
    place.is_recorded()
}

fn other_case(place: &mut TestSite) -> Result {
    let mut set = guarded(place);
    for (name, _) in &mut set {
        *name = name
            .chars()
            .map(|character| match place.random.below(2) {
                0 => character.to_ascii_lowercase(),
                _ => character.to_ascii_uppercase(),
            })
            .collect();
    }
    place.session(&set)?;
    place.is_recorded()
}

fn no_text(place: &mut TestSite) -> Result {
    let bytes: [&[u8]; 5] = [
        b"\xff\xfe",
        b"/tmp/\xc3\x28",
        b"\x1b]0;evil\x07",
        b"\n\n",
        b"\xed\xa0\x80",
    ];
    let mut set = guarded(place);
    let more = [
        "ANAMNESIS_MACHINE_ID",
        "ANAMNESIS_NOW",
        "CLAUDE_CONFIG_DIR",
        "CLAUDE_PID",
        "LANG",
    ];
    set.extend(more.map(|name| (name.to_owned(), OsString::new())));
    for (_, value) in &mut set {
        *value = OsString::from_vec(place.pick(&bytes).to_vec());
    }
    place.session(&set)
}

/// A project may set these; they name no store, and the session's note stays one of this store.
fn of_session(place: &mut TestSite) -> Result {
    let ids = ["../../../evil", "a/b", "\u{202e}", "x y", "--help"];
    let id = place.pick(&ids);
    let evil = place.evil_store().display().to_string();
    let set: Variables = [
        ("CLAUDE_CODE_SESSION_ID", id),
        ("CLAUDE_PROJECT_DIR", &evil),
        ("CLAUDE_PID", "1"),
        ("ANAMNESIS_MACHINE_ID", id),
        ("CLAUDE_CODE_ENTRYPOINT", "cli"),
    ]
    .map(|(name, value)| (name.to_owned(), OsString::from(value)))
    .to_vec();
    place.tell(id);
    place.session(&set)?;
    place.is_recorded()
}

fn many(place: &mut TestSite) -> Result {
    let long = "x".repeat(100_000);
    let mut set = guarded(place);
    for (_, value) in &mut set {
        value.push(&long);
    }
    set.extend((0..2_000).map(|number| (format!("ANAMNESIS_X{number}"), "1".into())));
    let start = place.home.start(SESSION, "startup").to_string();
    place.hook(start.as_bytes(), &set)?;
    place.serve(messages(&[]).as_bytes(), &set).map(drop)
}
