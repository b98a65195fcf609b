//! Summarises sessions with the configured model, in the deferred process or a command, never in a
//! hook.
//!
//! The rule-based note exists first and is replaced only by a valid answer. Each session is sent at
//! most once, whatever the result. A daily budget is charged before anything is sent.

use std::time::Duration;

use anamnesis_distill::{
    model::Model,
    prompts,
    reply::{self, Summary},
    window::window,
};
use anamnesis_note::draft::safe;
use anamnesis_session::{session_note::SessionDigest, transcript::Transcript};
use anamnesis_store::{
    journal::{self, Budget, Job, Journal, Spending},
    session_note,
};
use anamnesis_text::{clean::one_line, private_tokens::PrivateTokens};
use chrono::{DateTime, Days, NaiveTime, Utc};

use crate::{Error, context::Context, model};

/// How many tokens of a session are sent to a model.
const MAX_TOKENS: usize = 24_000;

/// The estimated size of an answer, in tokens.
const ANSWER: usize = 2_000;

/// How long ago a session may have ended. Configuring a model must not send years of sessions.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);

/// The timeout for one answer. Other deferred work has to wait for it.
pub const MAX_TIME: Duration = Duration::from_secs(60);

/// Queues recently ended sessions for a summary and, if enabled, their projects for a reflection.
/// One transaction queues both, because a reflection uses the summaries.
pub fn queue(context: &Context, journal: &Journal) -> Result<(), journal::Error> {
    // Checked before the transaction, because hooks wait for its lock.
    if !matches!(model::find(context), Ok(Some(_))) {
        return Ok(());
    }
    let is_auto = model::settings(context).auto;
    let now = context.environment.now.timestamp_millis();
    let recent = now.saturating_sub(i64::try_from(RECENT.as_millis()).unwrap_or(i64::MAX));
    journal.in_transaction(|journal| {
        journal.queue_summaries(recent, now)?;
        if is_auto {
            journal.queue_reflections(recent, now)?;
        }
        Ok(())
    })
}

/// Runs a job of the queue. The job is done even if the summary fails.
pub fn work(context: &Context, journal: &Journal, job: &Job) -> Result<(), journal::Error> {
    let now = context.environment.now;
    let Ok(Some(model)) = model::find(context) else {
        // The model was removed from the settings.
        return journal.done(job, now.timestamp_millis());
    };
    // A session with a private part is never sent, even if it became private after it was queued.
    // Nor is one that repeats another: rules write the note of all.
    let record = if journal.has_private_part(&job.session)? || is_repeated(journal, &job.session)? {
        None
    } else {
        record(journal, &job.session)?
    };
    let Some(record) = record else {
        return journal.done(job, now.timestamp_millis());
    };
    let prompt = prompts::summary(&window(&record, MAX_TOKENS));
    let at = now.timestamp_millis();
    match spend(context, journal, Some(&job.session), prompt.tokens())? {
        Spending::Asked => return journal.done(job, at),
        Spending::UsedUp => return journal.put_off(job, tomorrow(now)),
        Spending::Granted => {}
    }
    if let Err(error) = tell(context, journal, &job.session, model, &prompt) {
        let reason = one_line(error.message());
        context.log(&format!("work: session {}: {reason}", job.session));
        journal.not_taken(&job.session, &reason)?;
    }
    journal.done(job, at)
}

/// Returns when the next daily budget starts.
pub fn tomorrow(now: DateTime<Utc>) -> i64 {
    let today = now.date_naive();
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    tomorrow
        .and_time(NaiveTime::MIN)
        .and_utc()
        .timestamp_millis()
}

/// Asks the model and replaces the rule-based text by its answer. Returns whether it removed the note,
/// because the model found nothing worth noting.
fn tell(
    context: &Context,
    journal: &Journal,
    session: &str,
    model: Model,
    prompt: &prompts::Prompt,
) -> Result<bool, Error> {
    let model = model.within(MAX_TIME);
    let answer = model
        .ask(prompt.system, &prompt.user)
        .map_err(Error::caused_by)?;
    let told = reply::summary(&answer).map_err(Error::caused_by)?;
    let Summary::Note { title, body } = told else {
        return Ok(session_note::skip(&context.notes, journal, session)?);
    };
    let label = one_line(&model.label());
    let text = (title.as_str(), body.as_str());
    let now = context.environment.now;
    let stored = session_note::retell(&context.notes, journal, session, text, &label, now)?;
    if let Some(stored) = stored {
        context.add_to_index(&stored, Duration::from_secs(1));
    }
    Ok(false)
}

/// Returns whether a session has one note together with others.
fn is_repeated(journal: &Journal, session: &str) -> Result<bool, journal::Error> {
    let session = journal.session(session)?;
    let runs = session.map(|session| journal.runs(&session)).transpose()?;
    Ok(runs.flatten().is_some())
}

/// Builds the description of a recorded session for the model: prompts, changed files, failures and
/// the last answer. Returns `None` if nothing is known.
fn record(journal: &Journal, session: &str) -> Result<Option<String>, journal::Error> {
    let Some(mut digest) = journal.session_digest(session)? else {
        return Ok(None);
    };
    let echoes = journal.echoes(session)?;
    digest.mask(&echoes);
    let prompts = journal.prompts(session)?.into_iter();
    let asked = prompts.filter_map(|prompt| prompt.text).collect();
    let observed = journal.observations(session)?.into_iter();
    let observed = observed
        .map(|observation| format!("{} {}", observation.title, observation.subtitle))
        .collect();
    Ok(sections(asked, digest, observed, &echoes))
}

/// Formats the parts of a session as sections with one line per item.
fn sections(
    asked: Vec<String>,
    digest: SessionDigest,
    observed: Vec<String>,
    echoes: &PrivateTokens,
) -> Option<String> {
    let answer = digest.outcome().map(str::to_owned);
    let parts = [
        ("What was asked", asked),
        ("Files that were changed", digest.files),
        ("What failed, and what was found", observed),
        ("Commands that passed", digest.commands_passed),
        ("The last answer", answer.into_iter().collect()),
    ];
    let mut text = String::new();
    for (heading, lines) in parts {
        if lines.is_empty() {
            continue;
        }
        text.push_str(&format!("## {heading}\n\n"));
        for line in lines {
            text.push_str(&format!("- {}\n", safe(&echoes.mask(&line))));
        }
        text.push('\n');
    }
    (!text.is_empty()).then_some(text)
}

/// Summarises a session whose note a command has just written, from its transcript or the journal.
/// The session is sent once and within the daily budget. Returns whether the note was removed, because
/// the model found nothing worth noting. On failure the rule-based note stays.
///
/// # Errors
/// The reason why there is no summary.
pub fn tell_now(
    context: &Context,
    journal: &Journal,
    session: &str,
    transcript: &Transcript,
) -> Result<bool, Error> {
    let found = model::find(context).ok().flatten();
    let Some(model) = found.filter(|_| !context.environment.is_agent) else {
        return Ok(false);
    };
    if transcript.private || journal.has_private_part(session)? {
        return Ok(false);
    }
    let known = journal.session(session)?;
    let record = if known.is_some() {
        record(journal, session)?
    } else {
        let digest = SessionDigest::from(transcript);
        let asked = digest.ask().map(str::to_owned).into_iter().collect();
        sections(asked, digest, Vec::new(), &PrivateTokens::default())
    };
    let Some(record) = record else {
        return Ok(false);
    };
    let prompt = prompts::summary(&window(&record, MAX_TOKENS));
    let of = known.map(|_| session);
    match spend(context, journal, of, prompt.tokens())? {
        Spending::Granted => tell(context, journal, session, model, &prompt),
        Spending::Asked => Ok(false),
        Spending::UsedUp => Err(Error::failed("the budget of today is used up")),
    }
}

/// The maximum number of background requests per day.
const CALLS_PER_DAY: u32 = 40;

/// Charges the daily budget for a request and its answer, if enough is left.
pub fn spend(
    context: &Context,
    journal: &Journal,
    session: Option<&str>,
    asking: usize,
) -> Result<Spending, journal::Error> {
    let settings = model::settings(context);
    let budget = Budget {
        calls: CALLS_PER_DAY,
        tokens: settings.tokens_per_day,
    };
    let now = context.environment.now;
    let today = now.date_naive().to_string();
    let at = now.timestamp_millis();
    journal.spend(session, asking + ANSWER, budget, &today, at)
}

/// Returns what the person should know: the budget is used up, or the last answer was rejected.
pub fn problem(context: &Context, journal: &Journal) -> Option<String> {
    let now = context.environment.now.timestamp_millis();
    match journal.put_off_summaries(now).ok()? {
        0 => {
            let reason = journal.last_not_taken().ok()??;
            Some(format!(
                "the last session stays as rules tell it: {}",
                one_line(&reason)
            ))
        }
        waiting => Some(format!(
            "the budget of today is used up; {waiting} session(s) are pending; their notes stay as they are"
        )),
    }
}
