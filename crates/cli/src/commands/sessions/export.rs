//! `sessions export`: prints sessions as JSON objects.

use std::{
    fs::File,
    io::{self, BufWriter, ErrorKind, Write},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anamnesis_app::{context::Context, failure::Failure, session};
use anamnesis_store::{
    fs::file,
    index::Index,
    journal::{Contents, Journal},
};
use anamnesis_text::clean::one_line;
use serde_json::{Value, json};

use super::{Outcome, head_json, inert, open, show::Removed};
use crate::ui::{self, Ui};

/// The version of the export format; see docs/reference/sessions.md.
const VERSION: u32 = 1;

/// Print everything that is recorded of a session as JSON
#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// The session's id: six or more characters of its start
    #[arg(required_unless_present = "all", conflicts_with = "all")]
    id: Option<String>,
    /// Export every session of every project
    #[arg(long)]
    all: bool,
    /// Write to a new file, readable only by you, instead of stdout
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(super) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let journal = open(context)?;
    let index = context.index()?;
    let ids: Vec<String> = if let Some(typed) = &args.id {
        vec![session::find(&journal, typed)?.id]
    } else {
        let sessions = journal.sessions(None, usize::MAX)?;
        sessions.into_iter().map(|session| session.id).collect()
    };
    let export = Export {
        context,
        journal: &journal,
        index: &index,
        ids,
    };
    let Some(path) = &args.output else {
        export.write(|text| {
            ui.raw(text);
            Ok(())
        })?;
        return Ok(ExitCode::SUCCESS);
    };
    let failed = |error: &io::Error| {
        Failure::failed(format!(
            "cannot write {}: {error}",
            one_line(&path.display().to_string())
        ))
    };
    let mut file = BufWriter::new(create(path).map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => failed(&error).hint("name a file that is not there yet"),
        _ => failed(&error),
    })?);
    let written = export
        .write(|text| {
            file.write_all(text.as_bytes())
                .map_err(|error| failed(&error))
        })
        .and_then(|()| file.flush().map_err(|error| failed(&error)));
    if let Err(failure) = written {
        // A partial file is not valid JSON.
        let _ = std::fs::remove_file(path);
        return Err(failure);
    }
    ui.print(&format!(
        "exported {} to {}\n",
        ui::count(export.ids.len(), "session"),
        one_line(&path.display().to_string())
    ));
    Ok(ExitCode::SUCCESS)
}

/// Creates a file that only its owner can read; never replaces an existing one.
fn create(path: &Path) -> io::Result<File> {
    file::private_options().create_new(true).open(path)
}

struct Export<'a> {
    context: &'a Context,
    journal: &'a Journal,
    index: &'a Index,
    ids: Vec<String>,
}

impl Export<'_> {
    /// Writes one object. Sessions are read one at a time, because all of them may be large.
    fn write(&self, mut write: impl FnMut(&str) -> Result<(), Failure>) -> Result<(), Failure> {
        let program = concat!("anamnesis ", env!("CARGO_PKG_VERSION"));
        let at = ui::iso(self.context.environment.now.timestamp_millis());
        write(&format!(
            "{{\n\"version\": {VERSION},\n\"program\": \"{program}\",\n\"exported_at\": \"{at}\",\n\"sessions\": ["
        ))?;
        let mut separator = "\n";
        for id in &self.ids {
            // The session was forgotten in the meantime.
            let Some(contents) = self.journal.contents(id)? else {
                continue;
            };
            let session = session_json(self.context, self.index, contents)?;
            write(separator)?;
            write(&format!("{session:#}"))?;
            separator = ",\n";
        }
        write("\n]\n}\n")
    }
}

/// All rows of a session, as JSON.
pub(super) fn session_json(
    context: &Context,
    index: &Index,
    contents: Contents,
) -> Result<Value, Failure> {
    let removed = Removed::of(&contents);
    let mut json = head_json(&contents.session, index)?;
    json["transcript"] = json!(contents.session.transcript);
    json["source"] = json!(contents.source);
    json["model"] = json!(contents.model);
    json["branch"] = json!(contents.branch);
    json["removed"] = json!({
        "private_prompts": removed.prompts,
        "events_under_them": removed.suppressed,
        "secrets": removed.secrets,
        "private_words": removed.private_words,
        "tool_events_by_age": removed.by_age,
    });
    let prompts = contents.prompts.into_iter().map(|prompt| {
        json!({
            "number": prompt.number,
            "kind": prompt.kind.as_str(),
            "privacy": prompt.privacy.as_str(),
            "text": prompt.text,
            "events_not_kept": prompt.suppressed,
            "many_tags": prompt.many_tags,
            "at": ui::iso(prompt.at),
        })
    });
    json["prompts"] = prompts.collect();
    let events = contents.events.into_iter().map(|stored| {
        let event = stored.event;
        let files = event.files.iter();
        json!({
            "number": stored.number,
            "prompt": stored.prompt,
            "id": event.id,
            "tool": event.tool,
            "outcome": event.outcome.as_str(),
            "error": event.error,
            "duration_ms": event.duration_ms,
            "files": files
                .map(|file| json!({ "path": file.path, "action": file.action.as_str() }))
                .collect::<Vec<_>>(),
            "agent": event.agent.map(|agent| json!({ "id": agent.id, "type": agent.kind })),
            "from_batch": event.is_from_batch,
            "many_tags": event.many_tags,
            "at": ui::iso(stored.at),
            "input": event.input,
            "response": event.response,
        })
    });
    json["tool_events"] = events.collect();
    let turn_ends = contents.turn_ends.into_iter().map(|end| {
        json!({
            "prompt": end.prompt,
            "after_tool_event": end.after_event,
            "speaker": end.speaker.as_str(),
            "agent": end.agent.map(|agent| json!({ "id": agent.id, "type": agent.kind })),
            "text": end.text,
            "at": ui::iso(end.at),
        })
    });
    json["turn_ends"] = turn_ends.collect();
    let tasks = contents.delegations.into_iter().map(|task| {
        json!({ "id": task.id, "agent_type": task.kind, "task": task.prompt, "at": ui::iso(task.at) })
    });
    json["subagent_tasks"] = tasks.collect();
    json["observations"] = json!(contents.observations);
    let summaries = contents.summaries.into_iter().map(|stored| {
        let mut summary = json!(stored.summary);
        summary["maker"] = stored.maker.into();
        summary["up_to_prompt"] = stored.up_to.into();
        summary
    });
    json["summaries"] = summaries.collect();
    let jobs = contents.jobs.into_iter().map(|job| {
        json!({ "kind": job.kind, "state": job.state, "tries": job.tries, "error": job.error, "at": ui::iso(job.at) })
    });
    json["jobs"] = jobs.collect();
    let given = contents.shown.into_iter().map(|shown| {
        json!({ "note": shown.note, "at": ui::iso(shown.at), "occasion": shown.lane, "level": shown.level,
                "reason": shown.reason })
    });
    json["given"] = given.collect();
    Ok(inert(context, json))
}
