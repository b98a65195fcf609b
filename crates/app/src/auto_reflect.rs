//! Reflects on projects automatically with the configured model. Runs in the deferred process only.
//!
//! A project is due when a session of it has ended and has its note, enough session notes are not
//! yet reflected on, and no reflection began within a day. The setting `review` decides whether the
//! new notes are used or proposed.

use anamnesis_distill::reflection;
use anamnesis_store::{
    journal::{self, Job, Journal, Spending},
    notes::Stored,
};
use anamnesis_text::clean::one_line;

use crate::{
    context::Context,
    model,
    reflect::Question,
    summary::{MAX_TIME, spend, tomorrow},
};

/// The minimum time between two reflections on a project.
const PAUSE: i64 = 24 * 60 * 60 * 1000;

/// The journal key for the reason why the last reflection failed; empty if it succeeded.
const PROBLEM: &str = "auto_reflect_problem";

/// Runs a job of the queue. The job is done even if the reflection fails.
pub fn work(context: &Context, journal: &Journal, job: &Job) -> Result<(), journal::Error> {
    let now = context.environment.now;
    let at = now.timestamp_millis();
    let model = model::find(context).ok().flatten();
    let Some(model) = model.filter(|_| model::settings(context).auto) else {
        return journal.done(job, at);
    };
    let Some(session) = journal.session(&job.session)? else {
        return journal.done(job, at);
    };
    let project = session.project;
    let Some(sources) = due(context, journal, &project)? else {
        return journal.done(job, at);
    };
    let question = Question::new(context, &project, &sources);
    match spend(context, journal, None, question.cost())? {
        Spending::UsedUp => return journal.put_off(job, tomorrow(now)),
        Spending::Asked | Spending::Granted => {}
    }
    let asked = question.ask(context, journal, &model.within(MAX_TIME), "machine");
    let problem = match asked {
        Ok(distilled) => {
            context.log(&format!(
                "work: {}: {} sessions were distilled into {} notes",
                one_line(&project),
                sources.len(),
                distilled.notes.len()
            ));
            String::new()
        }
        Err(error) => {
            let problem = format!("{}: {}", one_line(&project), one_line(error.message()));
            context.log(&format!("work: reflection of {problem}"));
            problem
        }
    };
    journal.set_meta(PROBLEM, &problem)?;
    journal.done(job, at)
}

/// Returns the session notes of a project, if a reflection on it is due.
fn due(
    context: &Context,
    journal: &Journal,
    project: &str,
) -> Result<Option<Vec<Stored>>, journal::Error> {
    let earlier = journal.reflections_of(project)?;
    let now = context.environment.now.timestamp_millis();
    if earlier
        .iter()
        .any(|reflection| !journal::is_over(reflection.at, PAUSE, now))
    {
        return Ok(None);
    }
    let mut waiting = reflection::pending(&context.notes, journal, &[project.to_owned()])?;
    let mut sources = waiting.by_project.remove(project).unwrap_or_default();
    // Notes whose reflection the person rejected are not proposed again.
    for reflection in &earlier {
        let taken = reflection::unchanged(&context.notes, reflection);
        sources.retain(|source| !taken.contains(&source.path));
    }
    let is_due = sources.len() >= context.environment.min_episodics;
    Ok(is_due.then_some(sources))
}

/// Returns why the last reflection failed, for the person.
pub fn problem(journal: &Journal) -> Option<String> {
    let problem = journal.meta(PROBLEM).ok()??;
    (!problem.is_empty()).then_some(problem)
}
