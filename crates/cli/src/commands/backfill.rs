//! `backfill`: writes notes for sessions from before the install, from a host's transcripts.
//!
//! Lists by default; writes notes only with `--apply`.

use std::{collections::BTreeMap, fmt::Write as _, process::ExitCode};

use anamnesis_app::{
    backfill::{self, BackfillReport, Session, SessionFilter, Skip, SkippedTranscript},
    bulk_change::Applied,
    environment::Environment,
    format::quoted,
    sync::short_change,
};
use anamnesis_session::event::Host;
use anamnesis_text::clean::one_line;
use chrono::NaiveDate;

use crate::ui::{self, LIST_LENGTH, Outcome, Progress, Ui};

/// Create notes for sessions from before the install
///
/// Reads the transcripts of Claude Code, or of another program, and lists which sessions of this
/// project can get a note, and why others are skipped. With --apply, the notes are written. A run
/// can be interrupted and repeated: sessions that already have a note, are forgotten, excluded or
/// paused are skipped.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Use the sessions of this program: claude, codex or gemini
    #[arg(long, value_name = "HOST", default_value = "claude", value_parser = parse_host)]
    from: Host,
    /// Write the notes
    #[arg(long)]
    apply: bool,
    /// Use the sessions of this project instead
    #[arg(long, value_name = "KEY", conflicts_with = "everywhere")]
    project: Option<String>,
    /// Use the sessions of every project
    #[arg(long)]
    everywhere: bool,
    /// Only sessions that ended on or after this day (YYYY-MM-DD)
    #[arg(long, value_name = "DATE")]
    since: Option<NaiveDate>,
    /// Only this many sessions, newest first
    #[arg(short = 'n', long, value_name = "N", short_alias = 'k')]
    limit: Option<usize>,
    /// Include sessions that were not recorded although Anamnesis was installed
    #[arg(long)]
    unrecorded: bool,
    /// List all, not only the first twenty
    #[arg(long)]
    all: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl Args {
    /// Returns the options that select the same sessions again.
    fn options(&self) -> String {
        let mut options = String::new();
        if let Some(host) = self.from.other() {
            let _ = write!(options, " --from {}", host.as_str());
        }
        if let Some(project) = &self.project {
            let _ = write!(options, " --project {}", quoted(&one_line(project)));
        }
        if self.everywhere {
            options.push_str(" --everywhere");
        }
        if let Some(since) = self.since {
            let _ = write!(options, " --since {since}");
        }
        if let Some(limit) = self.limit {
            let _ = write!(options, " --limit {limit}");
        }
        if self.unrecorded {
            options.push_str(" --unrecorded");
        }
        options
    }
}

/// Parses a host whose transcripts can be read.
fn parse_host(name: &str) -> Result<Host, &'static str> {
    backfill::host_named(name).ok_or("expected claude, codex or gemini")
}

pub(crate) fn run(args: &Args, environment: Environment, ui: &Ui) -> Outcome {
    let (context, journal) = backfill::open(environment, args.apply)?;
    let wanted = SessionFilter {
        host: args.from,
        project: (!args.everywhere).then(|| context.project(args.project.as_deref()).key),
        since: args.since,
        unrecorded: args.unrecorded,
        limit: args.limit,
    };
    let mut progress = Progress::bar();
    let show = |done, total| progress.show(done, total, "transcript");
    let findings = backfill::run(&context, journal.as_ref(), &wanted, args.apply, show);
    drop(progress);
    let findings = findings?;
    let text = text(args, &wanted, &findings);
    let applied = args.apply;
    let report = &findings;
    ui.shown(args.json, Applied { applied, report }, &text)?;
    match findings.failure {
        Some(failure) => Err(failure),
        None => Ok(ExitCode::SUCCESS),
    }
}

/// Formats the report for people.
fn text(args: &Args, wanted: &SessionFilter, findings: &BackfillReport) -> String {
    let sessions = &findings.sessions;
    let count = ui::count(sessions.len(), "session");
    let place = wanted.project.as_ref().map_or_else(String::new, |project| {
        format!(" of {}", ui::shorten(&one_line(project), 40))
    });
    let end = if sessions.is_empty() { '.' } else { ':' };
    let mut text = if args.apply {
        format!("{count}{place} got a note{end}\n")
    } else {
        format!("{count}{place} can get a note{end}\n")
    };
    let length = if args.all { usize::MAX } else { LIST_LENGTH };
    let mut shown: Vec<(&str, Vec<&Session>)> = Vec::new();
    for session in sessions.iter().take(length) {
        match shown.iter_mut().find(|(key, _)| *key == session.project) {
            Some((_, sessions)) => sessions.push(session),
            None => shown.push((&session.project, vec![session])),
        }
    }
    for (project, sessions) in shown {
        if wanted.project.is_none() {
            let _ = writeln!(text, "{}", ui::shorten(&one_line(project), ui::width()));
        }
        for session in sessions {
            let head = format!(
                "  {}  {}  ",
                session.note.short(),
                session.ended.date_naive()
            );
            let room = ui::width().saturating_sub(head.chars().count());
            let title = ui::shorten(&one_line(&session.title), room);
            let _ = writeln!(text, "{head}{title}");
        }
    }
    text.push_str(&ui::shown_of(length, sessions.len(), " · --all"));
    left_out(args, findings, &mut text);
    if findings.elsewhere > 0 {
        let _ = writeln!(
            text,
            "{} of other projects can get one · --everywhere",
            ui::count(findings.elsewhere, "session")
        );
    }
    if findings.left > 0 {
        let _ = writeln!(text, "{} not read", ui::count(findings.left, "transcript"));
    }
    if let Some(first) = sessions.first() {
        if args.apply {
            if let Some(change) = findings.change {
                let _ = writeln!(text, "Undo: anamnesis undo {}", short_change(change));
            }
            let _ = writeln!(text, "Undo one: anamnesis forget {}", first.note.short());
        } else {
            let _ = writeln!(text, "→ anamnesis backfill --apply{}", args.options());
        }
    }
    text
}

/// Lists the skipped transcripts with their reasons.
fn left_out(args: &Args, findings: &BackfillReport, text: &mut String) {
    if findings.skipped.is_empty() {
        return;
    }
    let mut reasons: BTreeMap<Skip, Vec<&SkippedTranscript>> = BTreeMap::new();
    for skipped in &findings.skipped {
        reasons.entry(skipped.skip).or_default().push(skipped);
    }
    let _ = writeln!(
        text,
        "{} skipped:",
        ui::count(findings.skipped.len(), "session")
    );
    for (skip, skipped) in reasons {
        let _ = writeln!(
            text,
            "  {:>6}  {}",
            ui::number(skipped.len()),
            skip.reason().1
        );
        // An unreadable file is named, because it may be damaged.
        let shown = match skip {
            _ if args.all => usize::MAX,
            Skip::Unreadable => 3,
            _ => 0,
        };
        for skipped in skipped.into_iter().take(shown) {
            let cause = skipped.cause.as_ref();
            let cause = cause.map_or_else(String::new, |cause| format!(": {}", one_line(cause)));
            let _ = writeln!(text, "          {}{cause}", skipped.path);
        }
    }
}
