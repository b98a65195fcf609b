//! After each scenario: `anamnesis prove` plays the client's transcripts without a fault.

use std::{path::Path, process::Command, time::Duration};

use anamnesis_testkit::process::{self, Context as _, Result, TestFailure};
use serde_json::Value;

use super::exact::{homes, transcripts};

/// The time at which they are played. `prove` leaves out sessions of the last half hour, which may be open.
const LATER: &str = "2099-01-01T00:00:00Z";

/// Time limit for one machine.
const LIMIT: Duration = Duration::from_secs(60);

/// Plays the transcripts of all machines of a scenario. Returns how many sessions were played.
pub(super) fn check(folder: &Path, plugin: &Path) -> Result<u64> {
    let mut played = 0;
    for home in homes(folder) {
        let mut command = Command::new(plugin.join("bin/anamnesis"));
        command.args(["prove", "--json"]).env_clear().envs([
            ("HOME", home.as_os_str()),
            ("PATH", "/usr/bin:/bin".as_ref()),
            ("ANAMNESIS_NOW", LATER.as_ref()),
        ]);
        let printed = process::run(&mut command, LIMIT)?.successful("prove")?;
        let proof: Value = serde_json::from_str(&printed.stdout).context("the JSON of prove")?;
        let count = |name: &str| proof[name].as_u64().unwrap_or(u64::MAX);
        let total = |name: &str| proof["totals"][name].as_u64().unwrap_or(u64::MAX);
        let judged = ["found_again", "said", "nothing"].map(total);
        let judged = judged.into_iter().fold(0, u64::saturating_add);
        // The transcripts of subagents are in a folder of their session.
        let sessions = transcripts(&home.join(".claude/projects"))
            .iter()
            .filter(|path| {
                !path
                    .components()
                    .any(|part| part.as_os_str() == "subagents")
            })
            .count();
        let is_whole = count("sessions").saturating_add(count("skipped")) == sessions as u64;
        if !is_whole || judged != count("given") || count("with_memory") > count("prompts") {
            return Err(TestFailure::new(format!(
                "{}: `prove` does not add up over {sessions} transcripts:\n{}",
                home.display(),
                printed.stdout
            )));
        }
        played += count("sessions");
    }
    Ok(played)
}
