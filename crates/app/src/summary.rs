//! Has a model tell a session better than rules can, in the deferred process, never in a hook.
//!
//! A session's note is there before: it was made by rule, and stays as it is unless a valid answer takes
//! the place of its text. A session is asked about once, whatever comes of it, and a day has a budget,
//! which is counted before anything is sent.

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
    journal::{self, Budget, Job, Journal, SUMMARY, Spending},
    session_note,
};
use anamnesis_text::{clean::one_line, private_tokens::PrivateTokens};
use chrono::{DateTime, Days, NaiveTime, Utc};

use crate::{context::Context, model};

/// How much of a session a model is sent, in tokens.
const MAX_TOKENS: usize = 24_000;

/// What an answer is taken to cost, in tokens.
const ANSWER: usize = 2_000;

/// How long ago a session may have ended: naming a model does not send years of them.
const RECENT: Duration = Duration::from_secs(24 * 60 * 60);

/// How long the deferred process waits for one answer at most; other work waits behind it.
pub const MAX_TIME: Duration = Duration::from_secs(60);

/// Queues what ended lately, if a model is named: the sessions and, where that is wanted, a look at their
/// projects. A session that ends meanwhile is in both or in none, since a reflection takes up what a
/// summary made of its note.
pub fn queue(context: &Context, journal: &Journal) -> Result<(), journal::Error> {
    // Before the transaction: hooks wait for that.
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

/// Does a job of the queue, whatever comes of it.
pub fn work(context: &Context, journal: &Journal, job: &Job) -> Result<(), journal::Error> {
    let now = context.environment.now;
    let Ok(Some(model)) = model::find(context) else {
        // No model is named any more.
        return journal.done(job, now.timestamp_millis());
    };
    // What was kept private since it was queued stays here, too.
    let record = if journal.has_private_part(&job.session)? {
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
    if let Err(reason) = tell(context, journal, &job.session, model, &prompt) {
        let reason = one_line(&reason);
        context.log(&format!("work: session {}: {reason}", job.session));
        journal.not_taken(&job.session, &reason)?;
    }
    journal.done(job, at)
}

/// When there is a budget again.
pub fn tomorrow(now: DateTime<Utc>) -> i64 {
    let today = now.date_naive();
    let tomorrow = today.checked_add_days(Days::new(1)).unwrap_or(today);
    tomorrow
        .and_time(NaiveTime::MIN)
        .and_utc()
        .timestamp_millis()
}

/// Asks, and puts the answer in the place of the text that rules made.
fn tell(
    context: &Context,
    journal: &Journal,
    session: &str,
    model: Model,
    prompt: &prompts::Prompt,
) -> Result<(), String> {
    let model = model.within(MAX_TIME);
    let answer = model
        .ask(prompt.system, &prompt.user)
        .map_err(|error| error.to_string())?;
    let told = reply::summary(&answer).map_err(|violation| violation.to_string())?;
    let Summary::Note { title, body } = told else {
        // That nothing happened is one model's view; the note that rules made stands.
        return Ok(());
    };
    let label = one_line(&model.label());
    let text = (title.as_str(), body.as_str());
    let now = context.environment.now;
    let stored = session_note::retell(&context.notes, journal, session, text, &label, now)
        .map_err(|error| error.to_string())?;
    if let Some(stored) = stored {
        context.take_up(&stored, Duration::from_secs(1));
    }
    Ok(())
}

/// What a model is told of a session that the records know: what was asked, which files were touched, what
/// failed, and the last words. None where nothing is known.
fn record(journal: &Journal, session: &str) -> Result<Option<String>, journal::Error> {
    let Some(mut account) = journal.session_digest(session)? else {
        return Ok(None);
    };
    let echoes = journal.echoes(session)?;
    account.mask(&echoes);
    let prompts = journal.prompts(session)?.into_iter();
    let asked = prompts.filter_map(|prompt| prompt.text).collect();
    let observed = journal.observations(session)?.into_iter();
    let observed = observed
        .map(|observation| format!("{} {}", observation.title, observation.subtitle))
        .collect();
    Ok(told(asked, account, observed, &echoes))
}

/// The parts of a session as they are told, a line each.
fn told(
    asked: Vec<String>,
    account: SessionDigest,
    observed: Vec<String>,
    echoes: &PrivateTokens,
) -> Option<String> {
    let parts = [
        ("What was asked", asked),
        ("Files that were changed", account.files),
        ("What failed, and what was found", observed),
        ("Commands that passed", account.commands_passed),
        ("The last answer", account.outcome.into_iter().collect()),
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

/// Has the model that is named tell a session whose note a command wrote just now, of what its transcript
/// says; once, and within the day's budget. The note that rules made stands if that fails.
///
/// # Errors
/// Why it was not told.
pub fn tell_now(
    context: &Context,
    journal: &Journal,
    session: &str,
    transcript: &Transcript,
) -> Result<(), String> {
    let found = model::find(context).ok().flatten();
    let Some(model) = found.filter(|_| !context.environment.is_agent) else {
        return Ok(());
    };
    let refused = |error: journal::Error| error.to_string();
    if transcript.private || journal.has_private_part(session).map_err(refused)? {
        return Ok(());
    }
    let known = journal.session(session).map_err(refused)?;
    let record = if known.is_some() {
        record(journal, session).map_err(refused)?
    } else {
        let account = SessionDigest::from(transcript);
        let asked = account.ask.clone().into_iter().collect();
        told(asked, account, Vec::new(), &PrivateTokens::default())
    };
    let Some(record) = record else {
        return Ok(());
    };
    let prompt = prompts::summary(&window(&record, MAX_TOKENS));
    let of = known.map(|_| session);
    match spend(context, journal, of, prompt.tokens()).map_err(refused)? {
        Spending::Granted => tell(context, journal, session, model, &prompt),
        Spending::Asked => Ok(()),
        Spending::UsedUp => Err("the budget of today is used up".to_owned()),
    }
}

/// Counts what it costs to ask and to be answered, if the day has that much left.
pub fn spend(
    context: &Context,
    journal: &Journal,
    session: Option<&str>,
    asking: usize,
) -> Result<Spending, journal::Error> {
    let settings = model::settings(context);
    let budget = Budget {
        calls: settings.calls_per_day,
        tokens: settings.tokens_per_day,
    };
    let now = context.environment.now;
    let today = now.date_naive().to_string();
    let at = now.timestamp_millis();
    journal.spend(session, asking + ANSWER, budget, &today, at)
}

/// What a person should know of it: that a day's budget is used up, or that answers were not taken.
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
            "the budget of today is used up; {waiting} session(s) wait, their notes stand as they are"
        )),
    }
}

/// The kind of job that is done here.
pub const KIND: &str = SUMMARY;
