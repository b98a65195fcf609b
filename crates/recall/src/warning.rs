//! Chooses the warning to show at a tool call, and decides whether it denies the call.
//!
//! A pure function of the call, the candidate notes and what the session has seen. The caller
//! records what it shows.
//!
//! A note with triggers applies only to calls that match one. A note without triggers is compared
//! with the words of one command, without its program, or of one small edit. Longer texts are about
//! more than one thing, so no note covers enough of them.
//!
//! Limits: one warning per call, two per turn, each note once per context. Severity orders warnings
//! but never makes one match. Only an explicit trigger in a person's note can deny a call, and only
//! once per session, so that a repeated call passes.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use anamnesis_note::{
    note::{Enforce, Kind, Note, Severity, Visibility},
    trigger::{Call, Trigger, options},
};
use anamnesis_store::index::{Entry, Error, Filter, Index, WordMatch};
use anamnesis_text::terms::{Role, words};

use crate::rank::term_idf;

/// The maximum number of warnings per turn.
pub const MAX_IN_TURN: usize = 2;

/// The minimum share of the call's words, weighted by idf, that a note without triggers has to
/// contain.
const MIN_COVERAGE: f64 = 0.55;

/// The minimum number of the call's words that a note without triggers has to contain.
const MIN_TERMS: usize = 3;

/// How many commands or edits of a call are compared, and the maximum length of one in bytes and
/// words.
const MAX_PARTS: usize = 8;
const MAX_PART_LENGTH: usize = 2 * 1024;
const MAX_WORDS: usize = 48;

/// The maximum number of notes returned by [`fitting_by_text`].
const MAX_FITTING: usize = 8;

/// Added to the number of notes for idf: in a small store every word would count as common.
const PRIOR_NOTES: usize = 300;

/// A note that may warn about a call.
#[derive(Debug, Clone)]
pub struct WarningCandidate {
    /// The note's current content.
    pub note: Note,
    /// Whether a person wrote or approved exactly this text.
    pub is_persons: bool,
    /// Whether its text matches the call: see [`fitting_by_text`].
    pub has_words: bool,
    /// Whether it was shown since the context was last empty.
    pub was_given: bool,
    /// Whether it has denied a call of this session.
    pub has_stopped: bool,
}

/// The effect of a warning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WarningAction {
    /// It is shown with the call's result.
    Context,
    /// It denies the call once.
    Deny,
}

/// A warning to show.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning<'a> {
    /// The note.
    pub note: &'a Note,
    /// The matched trigger line; `None` if the text matched.
    pub trigger: Option<String>,
    /// The effect.
    pub action: WarningAction,
}

/// How a note matches a call: by its most specific trigger, or by its text.
struct CallMatch(Option<Trigger>);

/// Returns the warning for a call: the most severe, then the one with the most specific trigger,
/// then the lowest id.
///
/// `in_turn` is the number of warnings shown in this turn.
pub fn warning<'a>(
    call: &Call,
    candidates: &'a [WarningCandidate],
    in_turn: usize,
) -> Option<Warning<'a>> {
    if in_turn >= MAX_IN_TURN {
        return None;
    }
    let fitting = candidates
        .iter()
        .filter(|candidate| may_warn(candidate))
        .filter_map(|candidate| Some((candidate, match_call(call, candidate)?)));
    let best = fitting.min_by_key(|(candidate, CallMatch(trigger))| {
        (
            Reverse(candidate.note.severity),
            Reverse(trigger.as_ref().map(Trigger::specificity)),
            candidate.note.id,
        )
    });
    let (candidate, CallMatch(trigger)) = best?;
    let action = if trigger.is_some() && may_deny(candidate) {
        WarningAction::Deny
    } else {
        WarningAction::Context
    };
    Some(Warning {
        note: &candidate.note,
        trigger: trigger.map(|trigger| trigger.to_string()),
        action,
    })
}

/// Returns the warnings without triggers whose text matches a call, best first, ties by id.
pub fn fitting_by_text(
    index: &Index,
    call: &Call,
    projects: &[String],
) -> Result<Vec<Entry>, Error> {
    let mut parts = Vec::new();
    let words = || {
        parts = parts_of(call);
        let words = parts
            .iter()
            .flat_map(|part| part.words.union(&part.options));
        words.cloned().collect()
    };
    let worded = index.warnings_having(MIN_TERMS, words, projects)?;
    if worded.is_empty() {
        return Ok(Vec::new());
    }
    let everything = Filter {
        with_superseded: true,
        with_forgotten: true,
        ..Filter::default()
    };
    let count = index.count(&everything)? + PRIOR_NOTES;
    let mut weights: HashMap<&str, f64> = HashMap::new();
    for term in parts.iter().flat_map(|part| &part.words) {
        weights.insert(term, term_idf(index, count, term)?);
    }
    let mut fitting = Vec::new();
    for note in worded {
        let coverages = parts
            .iter()
            .filter_map(|part| part.coverage(&note, &weights));
        if let Some(best) = coverages.max_by(f64::total_cmp) {
            let entry = index.warning(note.number)?;
            fitting.extend(entry.map(|entry| (best, entry)));
        }
    }
    fitting.sort_by(|(one, a), (other, b)| other.total_cmp(one).then(a.id().cmp(&b.id())));
    let fitting = fitting.into_iter().take(MAX_FITTING);
    Ok(fitting.map(|(_, entry)| entry).collect())
}

/// A command or edit of a call.
struct CallPart {
    /// Its distinct words; an identifier counts as one.
    words: BTreeSet<String>,
    /// Its options. A note that names options is only about calls with one of them: a warning about
    /// `git push --force` does not apply to every push.
    options: BTreeSet<String>,
}

impl CallPart {
    /// Returns the share of its words, weighted by idf, that a note has. Returns `None` if that is too
    /// little, or if the note names only other options.
    fn coverage(&self, note: &WordMatch, weights: &HashMap<&str, f64>) -> Option<f64> {
        if note.names_options && self.options.is_disjoint(&note.words) {
            return None;
        }
        let weight = |term: &String| weights.get(term.as_str()).copied().unwrap_or_default();
        let having = || self.words.intersection(&note.words);
        let all: f64 = self.words.iter().map(weight).sum();
        let coverage = having().map(weight).sum::<f64>() / all;
        (coverage >= MIN_COVERAGE && having().count() >= MIN_TERMS).then_some(coverage)
    }
}

fn parts_of(call: &Call) -> Vec<CallPart> {
    let parts = call.acts().into_iter();
    let short = parts
        .filter(|part| part.len() <= MAX_PART_LENGTH)
        .take(MAX_PARTS);
    let parts = short.map(|part| {
        let mut terms = BTreeSet::new();
        words(&part, |word| {
            let is_word = matches!(word.role, Role::Plain | Role::Whole);
            // A single letter is an option with a different meaning for each program.
            if is_word && !word.is_stop_word() && word.written.len() > 1 {
                terms.insert(word.term.to_owned());
            }
        });
        CallPart {
            words: terms,
            options: options(&part),
        }
    });
    parts
        .filter(|part| (MIN_TERMS..=MAX_WORDS).contains(&part.words.len()))
        .collect()
}

fn may_warn(candidate: &WarningCandidate) -> bool {
    let note = &candidate.note;
    note.kind() == Kind::Antipattern
        && Visibility::from_note(note).is_in_force()
        && !candidate.was_given
}

/// Returns how a note matches a call, if it does. Unreadable trigger lines are ignored; a note with
/// a readable trigger does not match by text.
fn match_call(call: &Call, candidate: &WarningCandidate) -> Option<CallMatch> {
    let mut triggers = candidate
        .note
        .when
        .iter()
        .filter_map(|line| line.parse::<Trigger>().ok())
        .peekable();
    if triggers.peek().is_none() {
        return candidate.has_words.then_some(CallMatch(None));
    }
    let trigger = triggers
        .filter(|trigger| trigger.matches(call))
        .max_by_key(Trigger::specificity)?;
    Some(CallMatch(Some(trigger)))
}

/// Returns whether a note may deny a call that one of its triggers matches.
fn may_deny(candidate: &WarningCandidate) -> bool {
    let note = &candidate.note;
    note.enforce == Enforce::Once
        && note.severity >= Some(Severity::High)
        && candidate.is_persons
        && !note.is_by_agent()
        && !candidate.has_stopped
}

#[cfg(test)]
mod tests {
    use anamnesis_note::{
        id::NoteId,
        note::{NoteType, State},
    };
    use chrono::{DateTime, Utc};
    use serde_json::json;

    use super::*;
    use crate::session_start::tests::Fixture;

    fn note(name: &str, change: impl FnOnce(&mut Note)) -> Note {
        let mut note = Note {
            kind: Some(Kind::Antipattern),
            when: vec!["cmd: git push --force".to_owned()],
            ..Note::new(
                NoteId::of_session(name),
                NoteType::Procedural,
                DateTime::<Utc>::UNIX_EPOCH,
            )
        };
        change(&mut note);
        note
    }

    fn candidate(note: &Note) -> WarningCandidate {
        WarningCandidate {
            note: note.clone(),
            is_persons: true,
            has_words: false,
            was_given: false,
            has_stopped: false,
        }
    }

    fn push() -> Call {
        Call::new("Bash", &json!({"command": "git push --force origin main"}))
    }

    /// Returns the action for one note, if it is shown.
    fn action(candidate: WarningCandidate) -> Option<WarningAction> {
        warning(&push(), &[candidate], 0).map(|warning| warning.action)
    }

    #[test]
    fn a_warning_is_shown_where_its_trigger_matches() {
        let fits = note("a", |_| {});
        assert_eq!(
            warning(&push(), &[candidate(&fits)], 0),
            Some(Warning {
                note: &fits,
                trigger: Some("cmd: git push --force".to_owned()),
                action: WarningAction::Context,
            })
        );
        let other = Call::new("Bash", &json!({"command": "git push origin main"}));
        assert_eq!(warning(&other, &[candidate(&fits)], 0), None);
    }

    #[test]
    fn only_active_warnings_are_shown() {
        for change in [
            |note: &mut Note| note.kind = Some(Kind::Skill),
            |note: &mut Note| note.state = State::Proposed,
            |note: &mut Note| note.state = State::Muted,
            |note: &mut Note| note.state = State::Forgotten,
            |note: &mut Note| note.when = vec!["cmd: git pull --force".to_owned()],
        ] {
            assert_eq!(action(candidate(&note("a", change))), None);
        }
    }

    #[test]
    fn a_call_is_denied_only_if_all_conditions_hold() {
        let stops = note("a", |note| {
            note.severity = Some(Severity::High);
            note.enforce = Enforce::Once;
        });
        assert_eq!(action(candidate(&stops)), Some(WarningAction::Deny));
        let critical = Note {
            severity: Some(Severity::Critical),
            ..stops.clone()
        };
        assert_eq!(action(candidate(&critical)), Some(WarningAction::Deny));
        for change in [
            |note: &mut Note| note.severity = Some(Severity::Medium),
            |note: &mut Note| note.severity = None,
            |note: &mut Note| note.enforce = Enforce::Never,
            |note: &mut Note| note.actor = Some("agent".to_owned()),
        ] {
            let mut note = stops.clone();
            change(&mut note);
            assert_eq!(action(candidate(&note)), Some(WarningAction::Context));
        }
        let not_by_a_person = WarningCandidate {
            is_persons: false,
            ..candidate(&stops)
        };
        assert_eq!(action(not_by_a_person), Some(WarningAction::Context));
        // The context was emptied since: the warning is shown again, but denies nothing again.
        let has_stopped = WarningCandidate {
            has_stopped: true,
            ..candidate(&stops)
        };
        assert_eq!(action(has_stopped), Some(WarningAction::Context));
        // The repeated call passes without a warning.
        let was_given = WarningCandidate {
            has_stopped: true,
            was_given: true,
            ..candidate(&stops)
        };
        assert_eq!(action(was_given), None);
    }

    #[test]
    fn a_warning_without_trigger_matches_by_text_and_never_denies() {
        let without = |change: fn(&mut Note)| {
            note("a", |note| {
                note.when.clear();
                note.severity = Some(Severity::Critical);
                note.enforce = Enforce::Once;
                change(note);
            })
        };
        let by_text = without(|_| {});
        let unreadable = without(|note| note.when = vec!["cmd: git".to_owned()]);
        let elsewhere = without(|note| note.when = vec!["path: *.sql".to_owned()]);
        let with = |note| {
            action(WarningCandidate {
                has_words: true,
                ..candidate(note)
            })
        };
        assert_eq!(with(&by_text), Some(WarningAction::Context));
        assert_eq!(with(&unreadable), Some(WarningAction::Context));
        assert_eq!(with(&elsewhere), None);
        assert_eq!(action(candidate(&by_text)), None);
    }

    #[test]
    fn one_warning_per_call_and_two_per_turn() {
        let severe = note("severe", |note| note.severity = Some(Severity::Low));
        let narrow = note("narrow", |note| {
            note.when.push("cmd: git push --force main".to_owned());
        });
        let (one, other) = (note("one", |_| {}), note("other", |_| {}));
        let mut notes = [&other, &one, &narrow, &severe];
        let shown = |notes: &[&Note]| {
            let candidates: Vec<WarningCandidate> =
                notes.iter().map(|note| candidate(note)).collect();
            warning(&push(), &candidates, 1).map(|warning| warning.note.id)
        };
        for _ in 0..2 {
            assert_eq!(shown(&notes), Some(severe.id));
            notes.reverse();
        }
        assert_eq!(shown(&[&one, &narrow, &other]), Some(narrow.id));
        assert_eq!(shown(&[&one, &other]), Some(one.id.min(other.id)));
        assert_eq!(warning(&push(), &[candidate(&one)], 2), None);
    }

    /// Warnings written without triggers, each with a call that it is about.
    const WRITTEN: [(&str, &str, &str); 30] = [
        (
            "A forced push to main lost a day of work",
            "In March `git push --force origin main` took two colleagues' commits with it.",
            "git push --force origin main",
        ),
        (
            "git reset --hard origin/main throws away what is not committed",
            "It happened twice while the parser was half done.",
            "git reset --hard origin/main",
        ),
        (
            "Do not delete release branches on origin",
            "The release script reads `git branch -r`; a deleted release branch stops it.",
            "git push origin --delete release/1.2",
        ),
        (
            "Never commit with --no-verify on the release branch",
            "The pre-commit hook signs the manifest.",
            "git commit --no-verify -m 'release manifest'",
        ),
        (
            "git clean removes the local fixtures",
            "tests/fixtures/local is ignored by git, and `git clean -fdx` takes it.",
            "git clean -fdx tests/fixtures/local",
        ),
        (
            "Removing node_modules breaks the linked packages",
            "After rm -rf node_modules the links to packages/ui have to be made by hand.",
            "rm -rf node_modules packages/ui/node_modules",
        ),
        (
            "chmod -R 777 storage opened the uploads to everybody",
            "The audit of May found it.",
            "chmod -R 777 storage/uploads",
        ),
        (
            "sed -i on Cargo.lock breaks the checksums",
            "Cargo refuses the lock file afterwards.",
            "sed -i s/1.0.1/1.0.2/ Cargo.lock",
        ),
        (
            "npm audit fix --force takes React a major version up",
            "The build was red for two days.",
            "npm audit fix --force",
        ),
        (
            "npm install --force hides peer conflicts",
            "It installed two copies of react.",
            "npm install --force react",
        ),
        (
            "cargo publish from a dirty tree shipped a debug build",
            "Version 0.4.2 of the core package had to be yanked.",
            "cargo publish --allow-dirty --package core",
        ),
        (
            "pip install into the system Python broke apt",
            "`pip install --break-system-packages` on the build machine.",
            "pip install --break-system-packages requests",
        ),
        (
            "make deploy skips the migrations in production",
            "The deploy target does not run migrations when ENV=production is set.",
            "make deploy ENV=production",
        ),
        (
            "prisma migrate reset drops the development database",
            "It asks nothing when --force is given.",
            "npx prisma migrate reset --force",
        ),
        (
            "alembic downgrade base loses the seeded users",
            "The seed script only runs once.",
            "alembic downgrade base --seeded-users",
        ),
        (
            "manage.py flush empties the shared staging database",
            "DATABASE_URL points to staging on this machine.",
            "python manage.py flush --no-input --database staging",
        ),
        (
            "flushall on the cache logs everybody out",
            "Sessions live in the same redis.",
            "redis-cli -h cache flushall sessions",
        ),
        (
            "Dropping a table of users needs the data protection officer",
            "psql -c 'DROP TABLE users' in June cost us the consent records.",
            "psql -c 'DROP TABLE users'",
        ),
        (
            "kubectl delete namespace takes the volumes with it",
            "The shop namespace had the only copy of the images.",
            "kubectl delete namespace shop",
        ),
        (
            "kubectl apply against the prod context goes through the pipeline only",
            "Somebody applied deploy/staging.yaml with --context prod.",
            "kubectl apply --context prod -f deploy/api.yaml",
        ),
        (
            "kubectl drain of the first node stops the queue",
            "node-1 runs the only worker of the queue.",
            "kubectl drain node-1 --ignore-daemonsets",
        ),
        (
            "terraform apply -auto-approve replaced the database",
            "A plan was not read; the instance was made anew.",
            "terraform apply -auto-approve -target database",
        ),
        (
            "docker system prune -a removes the base images",
            "Pulling them again takes an hour on this line.",
            "docker system prune --all --images",
        ),
        (
            "docker compose down -v deletes the test data",
            "The volume db-data has the only dump of the test data.",
            "docker compose down --volumes db-data",
        ),
        (
            "aws s3 rm --recursive on the assets bucket",
            "s3://assets-staging serves production, too, whatever it is called.",
            "aws s3 rm s3://assets-staging/img --recursive",
        ),
        (
            "curl -k hid an expired certificate for a month",
            "The health check of the api ran with --insecure.",
            "curl --insecure https://api/health/check",
        ),
        (
            "Restarting nginx on staging drops the websockets",
            "systemctl restart nginx; reload keeps them.",
            "systemctl restart nginx staging",
        ),
        (
            "Do not edit src/generated/client.ts",
            "It is made from api.yaml by `make client`.",
            "Edit src/generated/client.ts << generated client",
        ),
        (
            "Do not add openssl to Cargo.toml",
            "The static build has no openssl; use rustls.",
            "Edit Cargo.toml << openssl = { features = [static] }",
        ),
        (
            "rsync --delete to the web host removed the uploads",
            "host:/var/www/site/uploads is not in the build folder.",
            "rsync -av --delete build/ host:/var/www/site/uploads",
        ),
    ];

    /// Commands that should match no warning.
    const BENIGN: &str = include_str!("../../note/src/trigger/benign.txt");

    fn call(text: &str) -> Call {
        match text
            .strip_prefix("Edit ")
            .and_then(|edit| edit.split_once(" << "))
        {
            Some((path, new)) => Call::new("Edit", &json!({"file_path": path, "new_string": new})),
            None => Call::new("Bash", &json!({"command": text})),
        }
    }

    fn written() -> (Fixture, Index) {
        let fixture = Fixture::new();
        for (title, body, _) in WRITTEN {
            fixture.add(title, |note| {
                note.note_type = NoteType::Procedural;
                note.kind = Some(Kind::Antipattern);
                note.body = body.to_owned();
            });
        }
        let index = fixture.refreshed();
        (fixture, index)
    }

    fn titles(index: &Index, call: &Call) -> Vec<String> {
        let found = fitting_by_text(index, call, &["p".to_owned()]).unwrap();
        found.into_iter().map(|entry| entry.title).collect()
    }

    #[test]
    fn a_warning_without_triggers_matches_by_its_words() {
        let (_fixture, index) = written();
        let (mut missed, mut others) = (Vec::new(), Vec::new());
        for (title, _, about) in WRITTEN {
            let found = titles(&index, &call(about));
            if !found.iter().any(|found| found == title) {
                missed.push(about);
            }
            others.extend(found.into_iter().filter(|found| found != title));
        }
        // These differ only in the spelling of an option, or have only two words: they need a
        // trigger.
        let expected = [
            "git push origin --delete release/1.2",
            "git commit --no-verify -m 'release manifest'",
            "sed -i s/1.0.1/1.0.2/ Cargo.lock",
            "kubectl drain node-1 --ignore-daemonsets",
            "docker system prune --all --images",
            "docker compose down --volumes db-data",
        ];
        assert_eq!((missed, others), (expected.to_vec(), Vec::new()));
    }

    #[test]
    fn a_call_about_more_than_one_thing_has_too_many_words() {
        let (_fixture, index) = written();
        let about = "Edit src/generated/client.ts << generated client";
        assert_eq!(titles(&index, &call(about)).len(), 1);
        let more: String = (0..60).map(|number| format!(" field{number}")).collect();
        assert_eq!(titles(&index, &call(&format!("{about}{more}"))), [""; 0]);
        let padded = format!("{about}{}", " client".repeat(400));
        assert_eq!(titles(&index, &call(&padded)), [""; 0]);
    }

    #[test]
    fn one_of_two_hundred_everyday_commands_matches() {
        let (_fixture, index) = written();
        let benign = BENIGN.lines();
        let benign: Vec<&str> = benign
            .filter(|line| !line.is_empty() && !line.starts_with('#'))
            .collect();
        assert_eq!(benign.len(), 200);
        let met: Vec<&str> = benign
            .into_iter()
            .filter(|command| !titles(&index, &call(command)).is_empty())
            .collect();
        // The command is a dry run of what the warning is about. Two matches would be one in a
        // hundred.
        assert_eq!(met, ["rsync -avn --delete build/ host:/var/www/site/"]);
    }
}
