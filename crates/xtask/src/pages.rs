//! Opens every page of the viewer in a real browser: screenshots, accessibility, keys, each write and
//! its undo, and the end of the server after the browser was closed or killed.
//!
//! Needs `npm` for the first install and Debian's `chromium-headless-shell`. Both run without a
//! network where the system can make an empty one, so that no other address can be reached.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anamnesis_testkit::home::{NoteText, TestHome};
use anamnesis_testkit::{npm, process};
use serde_json::json;

use crate::plugin::{self, Profile};
use crate::{Result, at, say, target_folder};

const BROWSER: &str = "/usr/bin/chromium-headless-shell";
const PACKAGES: [(&str, &str); 2] = [("playwright-core", "1.65.1"), ("axe-core", "4.14.1")];

/// Time limit for all pages of one store.
const LIMIT: Duration = Duration::from_secs(600);

/// Open every page of the viewer in a browser
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Test this program instead of a debug build of the checkout
    #[arg(long, value_name = "PATH")]
    binary: Option<PathBuf>,
    /// Add this many generated notes, and report the times of the server
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    notes: usize,
}

/// Runs `cargo xtask pages`. The screenshots are in `target/pages`.
pub(crate) fn run(root: &Path, arguments: &Arguments) -> Result {
    let tools = install(root)?;
    let program = plugin::given_or_built(root, arguments.binary.as_ref(), Profile::Debug)?;
    let shots = target_folder(root).join("pages");
    let empty = TestHome::new(&program);
    empty.run("reindex").well();
    visit(&tools, &program, &empty, &shots.join("empty"), None)?;
    let home = TestHome::new(&program);
    generate(&home, arguments.notes);
    let note = fill(&home);
    home.settle();
    visit(&tools, &program, &home, &shots.join("filled"), Some(&note))?;
    say(&format!("screenshots: {}", shots.display()));
    Ok(())
}

/// Installs the browser's driver and the accessibility checks unless they are there.
pub(crate) fn install(root: &Path) -> Result<PathBuf> {
    if !Path::new(BROWSER).exists() {
        return Err(format!("{BROWSER} is missing: install chromium-headless-shell").into());
    }
    let folder = target_folder(root).join("browser");
    for (package, version) in PACKAGES {
        npm::install(&folder.join(package), package, version)?;
    }
    Ok(folder)
}

/// Writes plain notes of many projects, so that lists are long.
fn generate(home: &TestHome, count: usize) {
    const TOPICS: [&str; 8] = [
        "migration of the orders table",
        "retry of failed webhooks",
        "login with a hardware key",
        "layout of the checkout page",
        "release by the calendar",
        "cache of the price list",
        "import of the address book",
        "alerts of the night shift",
    ];
    for number in 0..count {
        let topic = TOPICS[number % TOPICS.len()];
        let id = format!("01BX5ZZKBK{number:016}");
        let body = format!(
            "Decided in week {}: the {topic} is done by `job-{number}`.\n\n- owner: team {}\n- see \
             `src/part_{}/module_{number}.rs`\n",
            number % 52,
            number % 23,
            number % 97
        );
        let project = format!("git.example/shop/part-{}", number % 40);
        home.add(
            &NoteText::new(&id, &format!("The {topic}, part {number}"))
                .body(body)
                .with("project", &project),
        );
    }
}

/// The note that is forgotten.
const FORGOTTEN: &str = "01ARZ3NDEKTSV4RRFFQ69G5FA7";

/// Writes notes of every kind, some of them hostile, and plays a session. Returns the id of a note.
fn fill(home: &TestHome) -> String {
    let titles = [
        (
            "01ARZ3NDEKTSV4RRFFQ69G5FA1",
            "Integration tests need the stub server",
        ),
        (
            "01ARZ3NDEKTSV4RRFFQ69G5FA2",
            "Staging is deployed with `make deploy-staging`",
        ),
        (
            "01ARZ3NDEKTSV4RRFFQ69G5FA3",
            "<script>alert(1)</script> and a title without an end that goes on and on",
        ),
        (
            "01ARZ3NDEKTSV4RRFFQ69G5FA4",
            "日本語のノートとрусская заметка",
        ),
        ("01ARZ3NDEKTSV4RRFFQ69G5FA6", "Supabase holds the accounts"),
        (FORGOTTEN, "The wiki has the runbooks"),
    ];
    let proposal = "Take a lock before the nightly job";
    home.add(
        &NoteText::new("01ARZ3NDEKTSV4RRFFQ69G5FA5", proposal)
            .with("state", "proposed")
            .body("Two machines ran it at once.\n"),
    );
    for (id, title) in titles {
        let body = "Because the login needs port 9090.\n\n- `make stub` starts it\n- see #01ARZ3NDEKTSV4RRFFQ69G5FA1\n\n[a link](javascript:alert(1))\n";
        home.add(&NoteText::new(id, title).body(body));
    }
    // Without an index, the first hook would inject nothing.
    home.run("reindex").well();
    // In a large store, the background process of a hook would take too long for the first commit.
    home.run("sync").well();
    home.run(&format!("forget {FORGOTTEN}")).well();
    home.hook(&home.start("viewed", "startup")).well();
    let mut prompt = home.payload("UserPromptSubmit", "viewed");
    prompt["prompt"] = "How do we deploy to staging? Never use deploy.sh for staging.".into();
    prompt["prompt_id"] = "p-1".into();
    home.hook(&prompt).well();
    let mut stop = home.payload("Stop", "viewed");
    stop["last_assistant_message"] =
        "Use `make deploy-staging`, because deploy.sh is for production only.".into();
    home.hook(&stop).well();
    titles[0].0.to_owned()
}

/// Opens all pages of a store.
fn visit(
    tools: &Path,
    program: &Path,
    home: &TestHome,
    shots: &Path,
    note: Option<&str>,
) -> Result {
    fs::create_dir_all(shots).map_err(at(shots))?;
    let script = shots.join("pages.mjs");
    fs::write(&script, include_str!("pages/pages.mjs")).map_err(at(&script))?;
    let plan = json!({
        "browser": BROWSER, "modules": tools, "shots": shots, "note": note, "forgotten": FORGOTTEN,
        "searches": ["stub", "deploy staging", "the migr*", "port \"9090\""],
        "home": home.user(), "store": home.store(), "program": program, "project": home.project(),
    });
    let isolated = [
        "unshare",
        "--net",
        "sh",
        "-c",
        "ip link set lo up && exec \"$@\"",
        "sh",
    ];
    let can_isolate = Command::new(isolated[0])
        .args(&isolated[1..])
        .arg("true")
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success());
    if !can_isolate {
        say("the browser runs with the network of this machine: no empty one can be made here");
    }
    let mut words: Vec<&str> = if can_isolate {
        isolated.to_vec()
    } else {
        Vec::new()
    };
    words.push("node");
    let mut command = Command::new(words[0]);
    command.args(&words[1..]).arg(&script).arg(plan.to_string());
    let finished = process::run(&mut command, LIMIT)?;
    say(finished.stdout.trim_end());
    finished.successful("the pages")?;
    Ok(())
}
