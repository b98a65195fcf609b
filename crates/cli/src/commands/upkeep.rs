//! `upkeep`: finds and fixes duplicates, broken links and similar problems among the notes.

use std::process::ExitCode;

use anamnesis_app::{
    Error,
    context::Context,
    format::shorten,
    upkeep::{
        self, Findings, links,
        steps::{self, LongNotes},
    },
};
use anamnesis_distill::upkeep::Action;
use anamnesis_note::{id::NoteId, link::Relation};
use anamnesis_text::clean::one_line;

use super::bulk::{self, Apply};
use crate::ui::{self, LIST_LENGTH, Outcome, ProjectFilter, Ui};

/// Find duplicates, broken links and more, and fix them
///
/// Finds notes that repeat another one, broken links and long notes to split. For you to decide, it
/// also lists notes that say much the same. No text is changed and no note removed. Changes are made
/// only with --apply; `undo` reverts them. With --only, it runs single steps over all notes instead.
/// With --project, notes for all projects are included.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Notes for the step `split`: six or more characters of an id's start or end
    #[arg(requires = "only", conflicts_with = "over")]
    ids: Vec<String>,
    /// Run only these steps
    #[arg(
        long,
        value_name = "STEP",
        value_delimiter = ',',
        conflicts_with = "project"
    )]
    only: Vec<Step>,
    /// Let the step `split` split every note with more characters than this
    #[arg(long, value_name = "N", requires = "only")]
    over: Option<usize>,
    #[command(flatten)]
    projects: ProjectFilter,
    #[command(flatten)]
    apply: Apply,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// A step that can be run alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Step {
    /// Let one note replace others with the same text, whatever their titles and projects
    Duplicates,
    /// Write notes in the current format: keys, project keys, tags
    Format,
    /// Split the named notes, or those over a length, at headings or lists
    Split,
    /// Set the provenance of old notes from their tags `import` and `session`
    Provenance,
    /// Rebuild all links from the notes, count them and list broken ones
    Links,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    args.apply.check(context)?;
    if !args.only.is_empty() {
        return run_steps(args, context, ui);
    }
    let findings = {
        let _progress = ui::Progress::new("comparing the notes …");
        upkeep::find(context, args.projects.key())?
    };
    let report = Report(&findings);
    let is_applied = args.apply.is_meant();
    if !is_applied || findings.plan.actions.is_empty() {
        let json = findings.report(false, None);
        return ui.shown(args.json, json, &report.text(is_applied));
    }
    let done = findings.apply(context)?;
    if args.json {
        ui.json(findings.report(true, done.batch))?;
        args.apply.sync_silently(context, ui);
    } else {
        ui.print(&report.text(true));
        args.apply.send(context, &done, ui);
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs the steps of `--only`, each as a change of its own.
fn run_steps(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    let has_selection = args.over.is_some() || !args.ids.is_empty();
    if args.only.contains(&Step::Split) != has_selection {
        let problem = if has_selection {
            "note ids and --over need --only split"
        } else {
            "--only split needs the ids of notes, or --over N"
        };
        return Err(Error::usage(problem).hint("anamnesis upkeep --only split --over 4000"));
    }
    if args.json && args.only != [Step::Links] {
        return Err(Error::usage(
            "--json works with --only links alone, and without --only",
        ));
    }
    for step in &args.only {
        let (plan, told) = match step {
            Step::Duplicates => (steps::duplicates(context)?, ("duplicate", "replaced")),
            Step::Format => (steps::format(context)?, ("note", "changed")),
            Step::Split => {
                let named = LongNotes::Named(&args.ids);
                let which = args.over.map_or(named, LongNotes::Over);
                (steps::split(context, &which)?, ("note", "split"))
            }
            Step::Provenance => (steps::provenance(context)?, ("note", "changed")),
            Step::Links => {
                rebuild_links(args.json, context, ui)?;
                continue;
            }
        };
        bulk::carry_out(plan, told, &args.apply, ui)?;
    }
    Ok(ExitCode::SUCCESS)
}

fn rebuild_links(json: bool, context: &Context, ui: &Ui) -> Outcome {
    let report = links::rebuild(context)?;
    let (stored, unresolved) = (&report.stored, &report.unresolved);
    if json {
        return ui.json(&report);
    }
    let mut text = format!(
        "links: {} declared, {} by [[…]], {} of sessions, {} of files\n",
        ui::number(stored.declared),
        ui::number(stored.mentions),
        ui::number(stored.session),
        ui::number(report.file),
    );
    if !unresolved.is_empty() {
        let lead = ui::one_or_many(unresolved.len(), "leads", "lead");
        let count = ui::number(unresolved.len());
        text.push_str(&format!("{count} {lead} nowhere:\n"));
    }
    for (link, short) in unresolved.iter().zip(&report.shorts).take(LIST_LENGTH) {
        let line = format!("#{short} {}: {}", one_line(&link.text), link.reason);
        text.push_str(&ui::shorten(&line, ui::width()));
        text.push('\n');
    }
    let total = unresolved.len();
    text.push_str(&ui::shown_of(LIST_LENGTH, total, " · --json"));
    if !unresolved.is_empty() {
        text.push_str(&format!(
            "→ anamnesis edit ID   |   anamnesis connect ID ID --relation {}\n",
            Relation::RelatedTo
        ));
    }
    ui.answer(&text)
}

/// Formats findings.
struct Report<'a>(&'a Findings);

impl Report<'_> {
    fn short(&self, id: NoteId) -> &str {
        self.0.shorts.get(&id).map_or("", String::as_str)
    }

    /// Formats a note on one line, after a prefix.
    fn line(&self, before: &str, id: NoteId) -> String {
        let head = format!("{before}{} ", self.short(id));
        let title = self.0.notes.get(&id).map_or("", |note| note.title.as_str());
        let room = ui::width().saturating_sub(head.chars().count() + 2);
        format!("{head}\"{}\"\n", shorten(&one_line(title), room.max(16)))
    }

    fn text(&self, is_applied: bool) -> String {
        let mut text = String::new();
        for action in self.0.plan.actions.iter().take(LIST_LENGTH) {
            text.push_str(&self.action(action));
        }
        text.push_str(&more(self.0.plan.actions.len()));
        if !self.0.plan.alike.is_empty() {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str("for you to decide\n");
            self.advise(&mut text);
        }
        if self.0.unchangeable > 0 {
            text.push_str(&format!(
                "{} left alone: unreadable, or not one key a line (anamnesis doctor)\n",
                ui::count(self.0.unchangeable, "file")
            ));
        }
        let count = self.0.plan.actions.len();
        match (count, is_applied) {
            (0, _) if text.is_empty() => text.push_str("nothing to put in order\n"),
            (0, _) => {}
            (_, true) => text.push_str(&format!("\n{} made\n", ui::count(count, "change"))),
            (_, false) => text.push_str(&format!(
                "\n{} could be made, none is yet\n→ anamnesis upkeep --apply\n",
                ui::count(count, "change")
            )),
        }
        text
    }

    fn action(&self, action: &Action) -> String {
        match action {
            Action::Replace {
                keeper,
                replaced,
                is_exact,
            } => {
                let how = if *is_exact { "replaces" } else { "says all of" };
                let lines = replaced.iter();
                let lines = lines.map(|id| self.line(&format!("  {how} "), *id));
                self.line("", *keeper) + &lines.collect::<String>()
            }
            Action::Unlink { note, lines } => {
                let lines = lines.iter().map(|(line, reason)| {
                    let line = shorten(&one_line(line), 48);
                    format!("  link \"{line}\" {reason} and goes\n")
                });
                self.line("", *note) + &lines.collect::<String>()
            }
            Action::Split { note, parts } => {
                let parts = parts.iter().map(|id| self.line("  becomes ", *id));
                self.line("", *note) + &parts.collect::<String>()
            }
        }
    }

    fn advise(&self, text: &mut String) {
        for (one, other) in self.0.plan.alike.iter().take(LIST_LENGTH) {
            text.push_str(&self.line("", *one));
            text.push_str(&self.line("  says much the same as ", *other));
        }
        text.push_str(&more(self.0.plan.alike.len()));
    }
}

/// Says how many entries are shown, if that is not all.
fn more(total: usize) -> String {
    ui::shown_of(LIST_LENGTH, total, " · all: --json")
}
