//! A session is played in the client while the viewer's page Live is open.

use std::io::{BufRead as _, BufReader};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::Duration;

use anamnesis_testkit::client::{Ask, Sandbox};
use anamnesis_testkit::messages_api::{Script, text};
use anamnesis_testkit::process::{Result, TestFailure};
use anamnesis_testkit::viewer::Viewer;
use chrono::{DateTime, Utc};

use super::recalling::{BODY, FITTING, TITLE, write};
use super::report;
use super::scenarios::{Stage, check, clean};
use super::store::Store;

/// How long the page may take to show what a hook recorded before the scenario gives up.
const LIMIT: Duration = Duration::from_secs(20);

/// The page as it was at a time.
struct Look {
    at: DateTime<Utc>,
    page: String,
}

/// The viewer of a machine, and the page Live after each of its events.
struct LivePage {
    // Killed when this is dropped.
    _viewer: Viewer,
    looks: Receiver<Look>,
}

impl LivePage {
    /// Opens the page Live as a browser does, and follows its events.
    fn open(machine: &Sandbox) -> Result<Self> {
        let program = machine.plugin_root()?.join("bin/anamnesis");
        let viewer = Viewer::start(machine.command(program).args(["open", "live", "--print"]))?;
        let visitor = viewer.visitor.clone();
        let events = visitor.request("/events")?;
        let (sender, looks) = channel();
        thread::spawn(move || {
            for line in BufReader::new(events)
                .lines()
                .map_while(std::result::Result::ok)
            {
                if !line.starts_with("event: ") {
                    continue;
                }
                let Ok(page) = visitor.read("/live") else {
                    return;
                };
                if sender
                    .send(Look {
                        at: Utc::now(),
                        page,
                    })
                    .is_err()
                {
                    return;
                }
            }
        });
        Ok(Self {
            _viewer: viewer,
            looks,
        })
    }

    /// Waits until the page shows a text, and returns the page.
    fn wait_for(&self, what: &str, text: &str) -> Result<Look> {
        loop {
            let look = self.looks.recv_timeout(LIMIT);
            let look = look.map_err(|_| TestFailure::new(format!("{what} is not on the page")))?;
            if look.page.contains(text) {
                return Ok(look);
            }
        }
    }
}

/// The prompt with its injected note, and then the session's note, appear on the page that was open
/// before. The scenario reports how long the prompt took from the hook to the page.
pub(super) fn live(stage: &Stage) -> Result<()> {
    let machine = stage.machine()?;
    let store = Store::new(&machine.home());
    write(&machine, TITLE, BODY)?;
    store.wait_for("the note", |note| note.title() == TITLE)?;
    let live = LivePage::open(&machine)?;
    let told = "The tests wait for the stub server, because nothing starts it.";
    machine.api().play(Script::turns([text(told)]));
    let answer = machine.ask(FITTING, &Ask::default())?;
    clean(&answer)?;
    let look = live.wait_for("the prompt", FITTING)?;
    check(look.page.contains(TITLE), || {
        format!(
            "the injected note is not on the page of the prompt:\n{}",
            look.page
        )
    })?;
    let (_, after) = look.page.split_once(FITTING).unwrap_or_default();
    let time = after
        .split("datetime=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    let recorded = time.and_then(|time| DateTime::parse_from_rfc3339(time).ok());
    if let Some(recorded) = recorded {
        let delay = look.at.signed_duration_since(recorded).num_milliseconds();
        report(format_args!(
            "live: the prompt was on the page {delay} ms after its hook began"
        ));
    }
    store.wait_for_session(&answer.session)?;
    live.wait_for("the session's note", "Notes of this session")?;
    Ok(())
}
