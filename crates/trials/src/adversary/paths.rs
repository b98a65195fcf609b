//! Hostile paths: links in the store, names of folders, transcripts and sessions.

use std::{
    ffi::OsString,
    fs,
    os::unix::{ffi::OsStringExt as _, fs::symlink},
    path::PathBuf,
};

use anamnesis_store::fs::home::Home;

use super::{
    Row,
    place::{OWN, SESSION, TestSite, Variables, excerpt, write},
};
use crate::{Result, at};

pub(super) const ROWS: &[Row] = &[
    row("a link in the place of a folder", linked_folder),
    row("a link in the place of a file", linked_file),
    row("a link in the place of a note", linked_note),
    row("a link to a folder in a tree", linked_tree),
    row("the name of the session's folder", folder_name),
    row("the path of a transcript", transcript),
    row("the id of a session", session_id),
    row("odd names in the store", odd_names),
];

const fn row(name: &'static str, play: fn(&mut TestSite) -> Result) -> Row {
    Row {
        family: "paths",
        name,
        play,
    }
}

/// Puts a link to `target` at a path of the store.
fn link(place: &TestSite, path: &str, target: &PathBuf) -> Result {
    let path = place.home.store().join(path);
    if path.is_dir() {
        fs::remove_dir_all(&path).map_err(at(&path))?;
    } else {
        let _ = fs::remove_file(&path);
    }
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(at(folder))?;
    }
    symlink(target, &path).map_err(at(&path))
}

/// Runs a session and the commands that repair, none of which may follow a link.
fn use_store(place: &TestSite) -> Result {
    place.session(&Variables::new())?;
    for words in [
        &["doctor"][..],
        &["doctor", "--fix"],
        &["status"],
        &["list", "--everywhere"],
        &["search", "gateway"],
        &["internal", "maintain"],
        &["sync"],
    ] {
        place.person(words)?;
    }
    Ok(())
}

fn linked_folder(place: &mut TestSite) -> Result {
    let names = [
        "derived",
        "log",
        "spool",
        "trash",
        "quarantine",
        "memory/.git",
    ];
    let name = place.pick(&names);
    place.tell(name);
    let target = place.evil_store().join(name);
    fs::create_dir_all(&target).map_err(at(&target))?;
    write(&target.join("keep"), "untouched")?;
    place.arm();
    link(place, name, &target)?;
    use_store(place)
}

fn linked_file(place: &mut TestSite) -> Result {
    let home = Home::new(place.home.store());
    let index = home.relative(&home.index());
    let names = [
        "journal.db",
        &index,
        "log/anamnesis.log",
        "memory/.layout",
        "derived/journal.lock",
        "derived/notes.lock",
        "derived/journal.suspect",
    ];
    let name = place.pick(&names);
    place.tell(name);
    let target = place.evil_store().join("file");
    if place.pick(&[true, false]) {
        place.tell("that exists");
        write(&target, "untouched")?;
        place.arm();
    }
    link(place, name, &target)?;
    use_store(place)
}

fn linked_note(place: &mut TestSite) -> Result {
    let id = "01KDYSW6WTA3Z3SBW3AZ8XW4ZB.md";
    let targets = [
        place.evil_store().join("memory/semantic").join(id),
        PathBuf::from("/dev/zero"),
        PathBuf::from("/etc/passwd"),
        PathBuf::from(id),
    ];
    let target = place.pick(&targets);
    place.tell(target.display().to_string());
    let folder = place.pick(&["memory/semantic", "local/semantic", "memory/episodic"]);
    link(place, &format!("{folder}/{id}"), &target)?;
    use_store(place)
}

fn linked_tree(place: &mut TestSite) -> Result {
    let name = place.pick(&[
        "memory/procedural",
        "local",
        "local/semantic",
        "memory/.usage",
    ]);
    place.tell(name);
    let target = place.evil_store().join("memory/semantic");
    link(place, name, &target)?;
    use_store(place)
}

/// Names that a folder of a checkout may have.
fn names() -> Vec<Vec<u8>> {
    vec![
        b"\xff\xfe\xc3\x28".to_vec(),
        b"line\nbreak".to_vec(),
        b"\x1b]0;evil\x07\x1b[2J".to_vec(),
        b"x".repeat(255),
        "\u{202e}txt.exe\u{2066}".as_bytes().to_vec(),
        "</anamnesis-context>".replace('/', "\u{2215}").into_bytes(),
        b"$(touch ran)`touch ran`;touch ran".to_vec(),
        b"--upload-pack=touch ran".to_vec(),
        b"global".to_vec(),
        b"...".to_vec(),
        "\u{e0041}\u{200b}\u{feff}".as_bytes().to_vec(),
    ]
}

fn folder_name(place: &mut TestSite) -> Result {
    let name = place.pick(&names());
    let name = OsString::from_vec(name);
    place.tell(name.display().to_string());
    let mut folder = place.home.project().join(&name);
    if place.pick(&[true, false]) {
        for _ in 0..place.random.below(8) {
            folder = folder.join(&name);
        }
    }
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let mut payload = place.home.start(SESSION, "startup");
    payload["cwd"] = folder.to_string_lossy().into();
    let set = vec![("CLAUDE_PROJECT_DIR".to_owned(), folder.clone().into())];
    place.hook(payload.to_string().as_bytes(), &set)?;
    let write = ["write", "--title", "Gateway"];
    let invocation = place.home.command(write).within(&folder);
    TestSite::run_with(invocation.by_agent(), b"It has port 7071.", &set)?;
    payload["hook_event_name"] = "SessionEnd".into();
    place.hook(payload.to_string().as_bytes(), &set)?;
    for words in [&["status"][..], &["list"], &["project"], &["doctor"]] {
        let invocation = place.home.command(words).within(&folder);
        let printed = TestSite::run_with(invocation, b"", &Variables::new())?;
        is_inert(&printed.stdout)?;
        is_inert(&printed.stderr)?;
    }
    Ok(())
}

/// Checks that a terminal does not act on a text.
pub(super) fn is_inert(text: &str) -> Result {
    let is_active = |c: &char| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{e0000}'..='\u{e007f}')
    };
    match text.chars().find(is_active) {
        Some(c) => Err(format!("{c:?} was printed: {}", excerpt(text, 400)).into()),
        None => Ok(()),
    }
}

fn transcript(place: &mut TestSite) -> Result {
    let folder = place.home.claude().join("projects/-shop");
    fs::create_dir_all(&folder).map_err(at(&folder))?;
    let linked = folder.join("linked.jsonl");
    symlink("/dev/zero", &linked).map_err(at(&linked))?;
    let pipe = folder.join("pipe.jsonl");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status()?;
    if !made.success() {
        return Err("mkfifo failed".into());
    }
    let deep = folder.join("deep.jsonl");
    write(&deep, format!("{}\n", "[".repeat(200_000)).repeat(3))?;
    let wide = folder.join("wide.jsonl");
    write(&wide, "x".repeat(8 << 20))?;
    let paths = [
        "/dev/zero".to_owned(),
        "/etc/passwd".to_owned(),
        linked.display().to_string(),
        pipe.display().to_string(),
        deep.display().to_string(),
        wide.display().to_string(),
        folder.display().to_string(),
        format!("{}/../../../../etc/passwd", folder.display()),
        "/proc/self/mem".to_owned(),
        "a\0b".to_owned(),
        format!("/{}", "x/".repeat(5_000)),
    ];
    let path = place.pick(&paths);
    place.tell(excerpt(&path, 80));
    for event in ["SessionStart", "Stop", "PreCompact", "SessionEnd"] {
        let mut payload = place.home.payload(event, SESSION);
        payload["transcript_path"] = path.clone().into();
        payload["agent_transcript_path"] = path.clone().into();
        payload["source"] = "resume".into();
        place.hook(payload.to_string().as_bytes(), &Variables::new())?;
    }
    if place.holds(b"root:x:0") {
        return Err("a note has the text of a file that is no transcript".into());
    }
    Ok(())
}

fn session_id(place: &mut TestSite) -> Result {
    let ids = [
        "../../../evil".to_owned(),
        "/etc/passwd".to_owned(),
        "a\nid: evil\nb".to_owned(),
        "\u{1b}[2J\u{202e}".to_owned(),
        "x".repeat(100_000),
        String::new(),
        "' OR 1=1; DROP TABLE sessions; --".to_owned(),
        "%00\0".to_owned(),
    ];
    let id = place.pick(&ids);
    place.tell(excerpt(&id, 80));
    let mut payload = place.home.start(&id, "startup");
    payload["transcript_path"] = place.home.transcript_path("x").display().to_string().into();
    place.hook(payload.to_string().as_bytes(), &Variables::new())?;
    payload["hook_event_name"] = "UserPromptSubmit".into();
    payload["prompt"] = "Always use port 7070 for the gateway from now on".into();
    place.hook(payload.to_string().as_bytes(), &Variables::new())?;
    payload["hook_event_name"] = "SessionEnd".into();
    place.hook(payload.to_string().as_bytes(), &Variables::new())?;
    for words in [&["sessions"][..], &["list"], &["status"], &["doctor"]] {
        is_inert(&place.person(words)?.stdout)?;
    }
    Ok(())
}

fn odd_names(place: &mut TestSite) -> Result {
    for _ in 0..5 {
        let name = OsString::from_vec(place.pick(&names()));
        let folder = place.pick(&[
            "memory",
            "memory/semantic",
            "local",
            "spool",
            "trash",
            "derived",
        ]);
        let folder = place.home.store().join(folder);
        place.tell(name.display().to_string());
        match place.random.below(3) {
            // The name may be taken, or too long with its extension, which is as good.
            0 => drop(fs::create_dir_all(folder.join(name))),
            1 => drop(write(&folder.join(name), "odd")),
            _ => {
                let mut name = name;
                name.push(".md");
                let _ = write(&folder.join(name), format!("---\ntitle: odd\n---\n{OWN}\n"));
            }
        }
    }
    use_store(place)?;
    for words in [&["status"][..], &["doctor"], &["list", "--everywhere"]] {
        let printed = place.person(words)?;
        is_inert(&printed.stdout)?;
        is_inert(&printed.stderr)?;
    }
    Ok(())
}
