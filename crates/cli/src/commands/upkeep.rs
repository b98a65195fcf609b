//! `upkeep`: finds and fixes duplicates, broken links and similar problems among the notes.

pub(super) mod shelf;

use std::{collections::BTreeMap, process::ExitCode};

use anamnesis_app::{
    batch::{self, Batch, Done},
    context::Context,
    failure::Failure,
    format::shorten,
};
use anamnesis_distill::upkeep::{
    self, Action, Plan, recurring,
    suggestions::{Suggestion, suggestions},
};
use anamnesis_note::{
    id::NoteId,
    note::{GLOBAL, Note, State},
};
use anamnesis_store::{
    index::{Entry, Filter, Index},
    journal::Journal,
    project::Project,
};
use anamnesis_text::clean::one_line;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use ulid::Ulid;

use self::shelf::Loaded;
use super::bulk;
use crate::ui::{self, LIST_LENGTH, Outcome, Ui};

/// How many characters of a text are shown for notes that may contradict each other.
const SHOWN: usize = 240;

/// Find duplicates, broken links and more, and fix them
///
/// Finds notes that repeat another one, broken links, long notes to split, and recurring failures.
/// For you to decide, it also lists notes that contradict each other or may be outdated. No text is
/// changed and no note removed. Changes are made only with --apply; `undo` reverts them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Only notes of this project, and those for all projects [default: every project]
    #[arg(long, value_name = "KEY")]
    project: Option<String>,
    /// Make the changes that are listed above "for you to decide"
    #[arg(long)]
    apply: bool,
    /// Do not sync afterwards
    #[arg(long)]
    no_sync: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The findings, with the data needed to show them.
struct Report {
    plan: Plan,
    suggestions: Vec<(Entry, Suggestion)>,
    /// How many files are skipped because they cannot be changed.
    fixed: usize,
    /// Every note that is named: its current version, or the one to create.
    notes: BTreeMap<NoteId, Note>,
    shorts: BTreeMap<NoteId, String>,
}

pub(crate) fn run(args: &Args, context: &Context, ui: &Ui) -> Outcome {
    batch::check_person(context, args.apply)?;
    let projects = match &args.project {
        Some(key) => Project::all_keys(&context.project(Some(key))),
        None => Vec::new(),
    };
    let (loaded, report) = {
        let _progress = ui::Progress::new("comparing the notes …");
        look(context, &projects)?
    };
    if !args.apply || report.plan.actions.is_empty() {
        if args.json {
            ui.json(&report.json(false, None));
        } else {
            ui.print(&report.text(args.apply));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let done = apply(context, &loaded, &report.plan)?;
    if let Some(journal) = context.journal() {
        // The stored findings are outdated now.
        journal.set_meta(FOUND, "")?;
    }
    if args.json {
        ui.json(&report.json(true, done.batch));
        if !args.no_sync {
            bulk::sync_silently(context, ui);
        }
        return Ok(ExitCode::SUCCESS);
    }
    ui.print(&report.text(true));
    bulk::send(context, "upkeep", &done, args.no_sync, ui);
    Ok(ExitCode::SUCCESS)
}

/// The journal's key for the findings after a sync.
const FOUND: &str = "upkeep_found";

/// The counts of the findings after a sync.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Found {
    /// The day of the check.
    day: String,
    /// How many actions `--apply` would take.
    pub(crate) actions: usize,
    /// How many findings need a person's decision.
    pub(crate) decisions: usize,
}

impl Found {
    /// Loads the last findings, if there are any.
    pub(crate) fn load(journal: &Journal) -> Option<Self> {
        serde_json::from_str(&journal.meta(FOUND).ok()??).ok()
    }
}

/// Checks for findings after notes arrived from other machines, at most once a day. Changes
/// nothing.
pub(super) fn look_after_sync(context: &Context, journal: &Journal) -> Result<(), Failure> {
    let day = context.environment.now.date_naive().to_string();
    if Found::load(journal).is_some_and(|found| found.day == day) {
        return Ok(());
    }
    let (_, report) = look(context, &[])?;
    let plan = &report.plan;
    let found = Found {
        day,
        actions: plan.actions.len(),
        decisions: plan.contradictions.len() + plan.alike.len() + report.suggestions.len(),
    };
    let found = serde_json::to_string(&found).unwrap_or_default();
    Ok(journal.set_meta(FOUND, &found)?)
}

fn look(context: &Context, projects: &[String]) -> Result<(Loaded, Report), Failure> {
    let index = context.index()?;
    let mut loaded = Loaded::of(context, &index)?;
    loaded.shelf.projects = projects.to_vec();
    let journal = context.journal();
    let now = context.environment.now;
    if let Some(journal) = &journal {
        let mended = journal.mended()?;
        let proposals = recurring::proposals(
            &mended,
            &loaded.shelf.aliases,
            |id| loaded.is_in_use(id),
            &context.machine_id(),
            now,
        );
        loaded.shelf.proposals = proposals;
        let is_asked = |note: &Note| projects.is_empty() || projects.contains(&note.project);
        loaded.shelf.proposals.retain(is_asked);
    }
    let plan = upkeep::plan(&loaded.shelf);
    let mut filter = Filter::default();
    if !projects.is_empty() {
        filter.projects = projects.to_vec();
        filter.projects.push(GLOBAL.to_owned());
    }
    let mut entries = index.list(&filter, usize::MAX)?;
    entries.retain(|entry| entry.state == State::Active);
    let suggestions = suggestions(&index, &context.notes, journal.as_ref(), entries, now)?;
    let report = Report::of(&index, &loaded, plan, suggestions);
    Ok((loaded, report))
}

/// Carries out the plan.
fn apply(context: &Context, loaded: &Loaded, plan: &Plan) -> Result<Done, Failure> {
    let mut batch = Batch::new(context, "upkeep");
    for note in &plan.changed {
        if let Some(stored) = loaded.stored(note.id) {
            batch.change(stored, note)?;
        }
    }
    for note in &plan.made {
        batch.make(note.clone());
    }
    batch.apply()
}

impl Report {
    fn of(
        index: &Index,
        loaded: &Loaded,
        plan: Plan,
        suggestions: Vec<(Entry, Suggestion)>,
    ) -> Self {
        let mut named: Vec<NoteId> = plan.actions.iter().flat_map(named).collect();
        let pairs = plan.contradictions.iter().chain(&plan.alike);
        named.extend(pairs.flat_map(|(one, other)| [*one, *other]));
        named.extend(suggestions.iter().map(|(entry, _)| entry.id()));
        let made = plan.made.iter().map(|note| (note.id, note.clone()));
        let notes: BTreeMap<NoteId, Note> = named
            .iter()
            .filter_map(|id| Some((*id, loaded.stored(*id)?.note())))
            .chain(made)
            .collect();
        let shorts = named.iter().map(|id| (*id, Context::short(index, *id)));
        Self {
            shorts: shorts.collect(),
            fixed: loaded.shelf.fixed.len(),
            plan,
            suggestions,
            notes,
        }
    }

    fn short(&self, id: NoteId) -> &str {
        self.shorts.get(&id).map_or("", String::as_str)
    }

    /// Formats a note on one line, after a prefix.
    fn line(&self, before: &str, id: NoteId) -> String {
        let head = format!("{before}#{} ", self.short(id));
        let title = self.notes.get(&id).map_or("", |note| note.title.as_str());
        let room = ui::WIDTH.saturating_sub(head.chars().count() + 2);
        format!("{head}\"{}\"\n", shorten(&one_line(title), room.max(16)))
    }

    fn text(&self, is_applied: bool) -> String {
        let mut text = String::new();
        for action in self.plan.actions.iter().take(LIST_LENGTH) {
            text.push_str(&self.action(action));
        }
        more(&mut text, self.plan.actions.len());
        let has_advice = !self.suggestions.is_empty()
            || !self.plan.contradictions.is_empty()
            || !self.plan.alike.is_empty();
        if has_advice {
            if !text.is_empty() {
                text.push('\n');
            }
            text.push_str("for you to decide\n");
            self.advise(&mut text);
        }
        if self.fixed > 0 {
            text.push_str(&format!(
                "{} left alone: unreadable, or not one key a line (anamnesis doctor)\n",
                ui::count(self.fixed, "file")
            ));
        }
        let count = self.plan.actions.len();
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
                let lines = lines.iter().map(|(line, idle)| {
                    let line = shorten(&one_line(line), 48);
                    format!("  link \"{line}\" {} and goes\n", idle.as_str())
                });
                self.line("", *note) + &lines.collect::<String>()
            }
            Action::Split { note, parts } => {
                let parts = parts.iter().map(|id| self.line("  becomes ", *id));
                self.line("", *note) + &parts.collect::<String>()
            }
            Action::Propose { note } => {
                let count = self.notes.get(note).map_or(0, |note| note.links.len());
                self.line("a warning to look at: ", *note)
                    + &format!("  a failure of {}\n", ui::count(count, "session"))
            }
        }
    }

    fn advise(&self, text: &mut String) {
        for (one, other) in self.plan.contradictions.iter().take(LIST_LENGTH) {
            text.push_str("only one can be right:\n");
            for id in [one, other] {
                text.push_str(&self.line("  ", *id));
                let body = self.notes.get(id).map_or("", |note| note.body.as_str());
                text.push_str(&ui::wrapped(&shorten(&one_line(body), SHOWN), 4));
            }
        }
        more(text, self.plan.contradictions.len());
        for (one, other) in self.plan.alike.iter().take(LIST_LENGTH) {
            text.push_str(&self.line("", *one));
            text.push_str(&self.line("  says much the same as ", *other));
        }
        more(text, self.plan.alike.len());
        for (entry, suggestion) in self.suggestions.iter().take(LIST_LENGTH) {
            text.push_str(&self.line("", entry.id()));
            text.push_str(&ui::wrapped(&self.thought(entry, suggestion), 2));
        }
        more(text, self.suggestions.len());
    }

    /// Describes a suggestion for a note.
    fn thought(&self, entry: &Entry, suggestion: &Suggestion) -> String {
        let short = self.short(entry.id());
        match suggestion {
            Suggestion::Promote { sessions } => format!(
                "used in {sessions} sessions: anamnesis pin {short}, or a line in CLAUDE.md"
            ),
            Suggestion::Mute { shown } => {
                format!("given to {shown} sessions, used by none: anamnesis mute {short}")
            }
            Suggestion::Look(reasons) => {
                let reasons = reasons.iter();
                let reasons = reasons.map(|reason| reason.text(NoteId::short));
                let reasons: Vec<String> = reasons.collect();
                format!("{}: anamnesis verify {short}", reasons.join("; "))
            }
        }
    }

    fn json(&self, is_applied: bool, batch: Option<Ulid>) -> Value {
        let note = |id: &NoteId| {
            let title = self.notes.get(id).map(|note| one_line(&note.title));
            json!({ "id": id.to_string(), "title": title })
        };
        let notes = |ids: &[NoteId]| ids.iter().map(note).collect::<Vec<_>>();
        let actions = self.plan.actions.iter().map(|action| match action {
            Action::Replace {
                keeper,
                replaced,
                is_exact,
            } => json!({
                "action": "replace",
                "note": note(keeper),
                "replaced": notes(replaced),
                "exact": is_exact,
            }),
            Action::Unlink { note: of, lines } => json!({
                "action": "unlink",
                "note": note(of),
                "lines": lines.iter()
                    .map(|(line, idle)| json!({ "line": line, "because": idle.as_str() }))
                    .collect::<Vec<_>>(),
            }),
            Action::Split { note: of, parts } => json!({
                "action": "split",
                "note": note(of),
                "parts": notes(parts),
            }),
            Action::Propose { note: of } => json!({ "action": "propose", "note": note(of) }),
        });
        let pairs = |pairs: &[(NoteId, NoteId)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(one, other)| notes(&[*one, *other]))
                .collect::<Vec<_>>()
        };
        let suggestions = self.suggestions.iter().map(|(entry, suggestion)| {
            let word = match suggestion {
                Suggestion::Promote { .. } => "promote",
                Suggestion::Mute { .. } => "mute",
                Suggestion::Look(_) => "look",
            };
            json!({
                "suggestion": word,
                "note": note(&entry.id()),
                "text": self.thought(entry, suggestion),
            })
        });
        json!({
            "applied": is_applied,
            "batch": batch.map(|batch| batch.to_string()),
            "actions": actions.collect::<Vec<_>>(),
            "contradictions": pairs(&self.plan.contradictions),
            "alike": pairs(&self.plan.alike),
            "suggestions": suggestions.collect::<Vec<_>>(),
            "left_alone": self.fixed,
        })
    }
}

/// The notes of an action.
fn named(action: &Action) -> Vec<NoteId> {
    let mut named = action.writes();
    match action {
        Action::Replace { replaced, .. } => named.extend(replaced),
        Action::Split { note, .. } => named.push(*note),
        Action::Unlink { .. } | Action::Propose { .. } => {}
    }
    named
}

/// Adds a line that says how many entries are hidden.
fn more(text: &mut String, total: usize) {
    if total > LIST_LENGTH {
        let total = ui::number(total);
        text.push_str(&format!("{LIST_LENGTH} of {total} shown · all: --json\n"));
    }
}
