//! Steps of upkeep that a person runs one by one. Each returns a change that is not yet made.

use std::collections::BTreeSet;

use anamnesis_distill::upkeep::{Action, chores, parts};
use anamnesis_note::{
    id::NoteId,
    note::{Note, Scope, State},
};
use anamnesis_store::index::Index;
use anamnesis_text::clean::one_line;

use super::loaded::Loaded;
use crate::{Error, bulk_change::BulkChange, context::Context};

/// The planned changes of a step.
pub struct StepPlan<'a> {
    /// The change, not yet made.
    pub batch: BulkChange<'a>,
    /// The changes in order: one or more lines for each note.
    pub changes: Vec<String>,
    /// Notes that stay as they are, a line each.
    pub skipped: Vec<String>,
}

impl<'a> StepPlan<'a> {
    fn new(context: &'a Context, verb: &'static str) -> Result<(Self, Loaded), Error> {
        let plan = Self {
            batch: BulkChange::new(context, verb),
            changes: Vec::new(),
            skipped: Vec::new(),
        };
        let loaded = Loaded::read(context, &context.index()?)?;
        Ok((plan, loaded))
    }
}

/// Plans to merge notes with identical texts.
pub fn duplicates(context: &Context) -> Result<StepPlan<'_>, Error> {
    let (mut step, loaded) = StepPlan::new(context, "dedup")?;
    let plan = chores::copies(&loaded.note_set);
    for note in &plan.changed {
        if let Some(stored) = loaded.stored(note.id) {
            step.batch.change(stored, note)?;
        }
    }
    let change = |note: NoteId, keeper: NoteId| {
        let project = one_line(&loaded.stored(note)?.note().project);
        let title = one_line(&loaded.stored(keeper)?.note().title);
        Some(format!(
            "remove {note} [{project}] dup of {keeper} '{title}'"
        ))
    };
    let replaced = chores::replaced(&plan);
    step.changes = replaced
        .filter_map(|(note, keeper)| change(note, keeper))
        .collect();
    Ok(step)
}

/// Plans to set the provenance of old notes from their tags.
pub fn provenance(context: &Context) -> Result<StepPlan<'_>, Error> {
    let (mut step, loaded) = StepPlan::new(context, "backfill-provenance")?;
    for stored in loaded.all() {
        let note = stored.note();
        let Some(source) = chores::source_by_tags(&note) else {
            continue;
        };
        if loaded.note_set.fixed.contains(&note.id) {
            continue;
        }
        let (id, old, title) = (note.id, note.source, one_line(&note.title));
        step.changes
            .push(format!("{id} {old} -> {source} '{title}'"));
        step.batch.change(stored, &Note { source, ..note })?;
    }
    Ok(step)
}

/// Plans to write notes in the current format.
pub fn format(context: &Context) -> Result<StepPlan<'_>, Error> {
    let (mut step, loaded) = StepPlan::new(context, "normalise")?;
    for stored in loaded.all() {
        // A machine-local note has no history from which it could be restored.
        if stored.path.scope != Scope::Portable || !stored.whole {
            continue;
        }
        let before = stored.file.note();
        let after = Note {
            scope: Scope::Portable,
            ..chores::normal(before, &loaded.note_set.aliases)
        };
        match stored.file.normalised(&after) {
            Ok(new) if stored.file.is_text(&new) => {}
            Ok(new) => {
                let (old, new_project) = (&before.project, &after.project);
                let project = format!("project {}", moved(old, new_project));
                let mut what: Vec<&str> = [
                    (old != new_project, &*project),
                    (before.tags != after.tags, "tags"),
                    (before.scope != after.scope, "scope"),
                ]
                .into_iter()
                .filter_map(|(is_new, what)| is_new.then_some(what))
                .collect();
                if what.is_empty() {
                    what.push("form");
                }
                let (what, title) = (what.join(", "), one_line(&before.title));
                step.changes.push(format!("{} {what} '{title}'", before.id));
                step.batch.overwrite(stored, new)?;
            }
            Err(error) => {
                step.skipped.push(format!("{}: {error}", before.id));
            }
        }
    }
    Ok(step)
}

/// Which notes to split.
pub enum LongNotes<'a> {
    /// The notes with these ids, as a person typed them.
    Named(&'a [String]),
    /// The notes with more characters than this.
    Over(usize),
}

/// Plans to split notes at headings or lists. Fails if a named note cannot be split.
pub fn split<'a>(context: &'a Context, which: &LongNotes<'_>) -> Result<StepPlan<'a>, Error> {
    let (mut step, loaded) = StepPlan::new(context, "reatomise")?;
    let ids = match which {
        LongNotes::Over(length) => {
            let is_long = |note: &&Note| note.body.chars().count() > *length;
            let long = loaded.note_set.notes.iter().filter(is_long);
            long.map(|note| note.id).collect()
        }
        LongNotes::Named(typed) => splittable(typed, &context.index()?, &loaded)?,
    };
    let plan = chores::split(&loaded.note_set, &ids);
    for action in &plan.actions {
        let Action::Split { note, parts } = action else {
            continue;
        };
        let title = loaded.stored(*note).map(|stored| stored.note().title);
        let title = one_line(&title.unwrap_or_default());
        let mut lines = format!("{note} '{title}'");
        let made = |id: &NoteId| plan.made.iter().find(|made| made.id == *id);
        for part in parts.iter().filter_map(made) {
            lines.push_str(&format!("\n  {} '{}'", part.id, one_line(&part.title)));
        }
        step.changes.push(lines);
    }
    for part in plan.made {
        step.batch.make(part);
    }
    Ok(step)
}

/// The named notes; fails if one cannot be split.
fn splittable(typed: &[String], index: &Index, loaded: &Loaded) -> Result<BTreeSet<NoteId>, Error> {
    let mut ids = BTreeSet::new();
    for typed in typed {
        let entry = Context::resolve(index, typed)?;
        let short = Context::short(index, entry.id());
        let Some(stored) = loaded.stored(entry.id()) else {
            continue;
        };
        let refusal = if entry.state != State::Active {
            Some(format!("is {}", entry.state))
        } else if entry.superseded {
            Some("is replaced already".to_owned())
        } else if entry.path.scope != Scope::Portable {
            Some("is on this machine only, where no undo could restore it".to_owned())
        } else if loaded.note_set.fixed.contains(&entry.id()) {
            Some("is too long to be read as a whole, or not one key a line".to_owned())
        } else if parts::parts(&stored.note()).is_none() {
            Some("has no two headings or lists, or is one thing as it is".to_owned())
        } else {
            None
        };
        if let Some(refusal) = refusal {
            let hint = format!("anamnesis edit {short}");
            return Err(Error::failed(format!("#{short} {refusal}")).hint(hint));
        }
        ids.insert(entry.id());
    }
    Ok(ids)
}

/// Plans to move notes to other projects, by a map of keys.
pub fn migrate<'a>(context: &'a Context, map: &chores::KeyMap) -> Result<StepPlan<'a>, Error> {
    let (mut step, loaded) = StepPlan::new(context, "migrate")?;
    for stored in loaded.all() {
        let note = stored.note();
        if note.scope != Scope::Portable || note.state == State::Forgotten {
            continue;
        }
        let Some(new) = map.project_of(&note) else {
            continue;
        };
        if loaded.note_set.fixed.contains(&note.id) {
            let id = note.id;
            step.skipped
                .push(format!("{id} cannot be changed key by key; left as it is"));
            continue;
        }
        let project = moved(&note.project, new);
        step.changes.push(format!("{} {project}", note.id));
        let moved = Note {
            project: new.to_owned(),
            ..note.clone()
        };
        step.batch.change(stored, &moved)?;
    }
    let is_there = |id: &str| id.parse().is_ok_and(|id| loaded.stored(id).is_some());
    let missing = map.ids().filter(|id| !is_there(id));
    step.skipped
        .extend(missing.map(|id| format!("there is no note {id}")));
    Ok(step)
}

/// Describes a changed project key.
fn moved(old: &str, new: &str) -> String {
    format!("{} -> {}", one_line(old), one_line(new))
}
