//! Which warning comes up at a tool call, if one does, and whether it stops it.
//!
//! A pure function of the call, the notes that may fit it and what the session has seen. Whoever shows
//! the warning records it.
//!
//! A note says by triggers where it comes up. One that has none is held against the words of the call:
//! those of one command beside its program, or of one small edit. What is longer is about more than one
//! thing, and no note has enough of it.
//!
//! Silence is the usual answer: one warning at a call, two in a turn, each note once in a context.
//! How severe a warning is puts it before others; it never makes it fit. Only an explicit trigger of
//! a person's note may stop a call, and only once in a session, so that a repeated call passes.

use std::{
    cmp::Reverse,
    collections::{BTreeSet, HashMap},
};

use anamnesis_note::{
    id::NoteId,
    note::{Enforce, Kind, Note, Severity, State},
    trigger::{Call, Specificity, Trigger, options},
};
use anamnesis_store::index::{Entry, Error, Filter, Index, Worded};
use anamnesis_text::terms::{Role, words};

use crate::rank::rarity;

/// How many warnings a turn has at most.
pub const MAX_IN_TURN: usize = 2;

/// The share of the call's words, weighed by rarity, that a note without triggers has to have.
const MIN_COVERAGE: f64 = 0.55;

/// How many words of the call a note without triggers has to have.
const MIN_TERMS: usize = 3;

/// How many things that a call does are looked at, and how long one may be, in bytes and in words.
const MAX_ACTS: usize = 8;
const MAX_ACT_LENGTH: usize = 2 * 1024;
const MAX_WORDS: usize = 48;

/// How many notes that fit by their words are looked at.
const MAX_FITTING: usize = 8;

/// Words are weighed as if the store had so many notes more: in few notes every word of theirs would
/// count as common.
const NOTES_MORE: usize = 300;

/// How well the text of a note fits a call.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Relevance {
    /// The share of the call's words, weighed by rarity, that the note has, from 0 to 1.
    pub coverage: f64,
    /// How many words of the call the note has.
    pub terms: usize,
}

/// A note that may warn of a call.
#[derive(Debug, Clone)]
pub struct Candidate<'a> {
    /// What it says now.
    pub note: &'a Note,
    /// Whether a person wrote or approved this very text.
    pub is_persons: bool,
    /// How well its text fits, if it was searched for.
    pub relevance: Option<Relevance>,
    /// Whether the context was given it since it was last empty.
    pub was_given: bool,
    /// Whether it has stopped a call of this session.
    pub has_stopped: bool,
}

/// What a warning does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It is told beside the call's result.
    Context,
    /// It stops the call, this once.
    Deny,
}

/// A warning that comes up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The note.
    pub note: NoteId,
    /// The line of the note that fits; none where its text does.
    pub trigger: Option<String>,
    /// What it does.
    pub action: Action,
}

/// Why a warning fits.
struct Fit {
    trigger: Option<Trigger>,
    specificity: Option<Specificity>,
}

/// Returns the warning for a call: the most severe, then the one with the narrowest trigger, then the
/// one with the least id.
///
/// `in_turn` is how many warnings this turn has had.
pub fn warning(call: &Call, candidates: &[Candidate<'_>], in_turn: usize) -> Option<Warning> {
    if in_turn >= MAX_IN_TURN {
        return None;
    }
    let fitting = candidates
        .iter()
        .filter(|candidate| may_warn(candidate))
        .filter_map(|candidate| Some((candidate, fit(call, candidate)?)));
    let (candidate, fit) = fitting.min_by_key(|(candidate, fit)| {
        (
            Reverse(candidate.note.severity),
            Reverse(fit.specificity),
            candidate.note.id,
        )
    })?;
    let action = if may_stop(candidate, &fit) {
        Action::Deny
    } else {
        Action::Context
    };
    Some(Warning {
        note: candidate.note.id,
        trigger: fit.trigger.map(|trigger| trigger.to_string()),
        action,
    })
}

/// Returns the warnings without triggers whose words fit a call, each with how well they do, the best
/// first, ties by id.
///
/// # Errors
/// When the index cannot be read.
pub fn fitting_by_text(
    index: &Index,
    call: &Call,
    projects: &[String],
) -> Result<Vec<(Entry, Relevance)>, Error> {
    let mut acts = Vec::new();
    let words = || {
        acts = acts_of(call);
        let words = acts.iter().flat_map(|act| act.words.union(&act.options));
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
    let count = index.count(&everything)? + NOTES_MORE;
    let mut weights: HashMap<&str, f64> = HashMap::new();
    for term in acts.iter().flat_map(|act| &act.words) {
        weights.insert(term, rarity(index, count, term)?);
    }
    let mut fitting = Vec::new();
    for note in worded {
        let fits = acts.iter().filter_map(|act| act.relevance(&note, &weights));
        let fits = fits.filter(is_enough);
        if let Some(best) = fits.max_by(|a, b| a.coverage.total_cmp(&b.coverage)) {
            let entry = index.warning(note.number)?;
            fitting.extend(entry.map(|entry| (entry, best)));
        }
    }
    fitting.sort_by(|(a, fits), (b, other)| {
        let by_fit = other.coverage.total_cmp(&fits.coverage);
        by_fit.then(a.id().cmp(&b.id()))
    });
    fitting.truncate(MAX_FITTING);
    Ok(fitting)
}

/// One thing that a call does.
struct Act {
    /// Its different words, of an identifier the whole.
    words: BTreeSet<String>,
    /// The options among them. A note that names options is about calls with one of them: that
    /// `git push --force` did harm is no reason to speak at every push.
    options: BTreeSet<String>,
}

impl Act {
    /// How well a note fits it; none where it cannot be about it.
    fn relevance(&self, note: &Worded, weights: &HashMap<&str, f64>) -> Option<Relevance> {
        if note.names_options && self.options.is_disjoint(&note.words) {
            return None;
        }
        let sum = |terms: &mut dyn Iterator<Item = &String>| -> f64 {
            terms.filter_map(|term| weights.get(term.as_str())).sum()
        };
        let having = || self.words.intersection(&note.words);
        Some(Relevance {
            coverage: sum(&mut having()) / sum(&mut self.words.iter()),
            terms: having().count(),
        })
    }
}

fn acts_of(call: &Call) -> Vec<Act> {
    let acts = call.acts().into_iter();
    let short = acts
        .filter(|act| act.len() <= MAX_ACT_LENGTH)
        .take(MAX_ACTS);
    let acts = short.map(|act| {
        let mut terms = BTreeSet::new();
        words(&act, |word| {
            let is_word = matches!(word.role, Role::Plain | Role::Whole);
            // A letter is an option, and means another thing to each program.
            if is_word && !word.is_stop_word() && word.written.len() > 1 {
                terms.insert(word.term.to_owned());
            }
        });
        Act {
            words: terms,
            options: options(&act),
        }
    });
    acts.filter(|act| (MIN_TERMS..=MAX_WORDS).contains(&act.words.len()))
        .collect()
}

fn may_warn(candidate: &Candidate<'_>) -> bool {
    let note = candidate.note;
    note.kind() == Kind::Antipattern && note.state == State::Active && !candidate.was_given
}

/// Tells why a note fits a call. One that has triggers comes up at these only; a line that cannot be
/// read is as good as none.
fn fit(call: &Call, candidate: &Candidate<'_>) -> Option<Fit> {
    let mut triggers = candidate
        .note
        .when
        .iter()
        .filter_map(|line| line.parse::<Trigger>().ok())
        .peekable();
    if triggers.peek().is_none() {
        return candidate.relevance.filter(is_enough).map(|_| Fit {
            trigger: None,
            specificity: None,
        });
    }
    let trigger = triggers
        .filter(|trigger| trigger.fits(call))
        .max_by_key(Trigger::specificity)?;
    Some(Fit {
        specificity: Some(trigger.specificity()),
        trigger: Some(trigger),
    })
}

fn is_enough(relevance: &Relevance) -> bool {
    relevance.coverage >= MIN_COVERAGE && relevance.terms >= MIN_TERMS
}

fn may_stop(candidate: &Candidate<'_>, fit: &Fit) -> bool {
    let note = candidate.note;
    fit.trigger.is_some()
        && note.enforce == Enforce::Once
        && note.severity >= Some(Severity::High)
        && candidate.is_persons
        && !note.is_by_agent()
        && !candidate.has_stopped
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
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

    fn candidate(note: &Note) -> Candidate<'_> {
        Candidate {
            note,
            is_persons: true,
            relevance: None,
            was_given: false,
            has_stopped: false,
        }
    }

    fn push() -> Call {
        Call::of("Bash", &json!({"command": "git push --force origin main"}))
    }

    /// The action for one note, if it comes up.
    fn action(candidate: Candidate<'_>) -> Option<Action> {
        warning(&push(), &[candidate], 0).map(|warning| warning.action)
    }

    #[test]
    fn a_note_comes_up_where_its_trigger_fits() {
        let fits = note("a", |_| {});
        assert_eq!(
            warning(&push(), &[candidate(&fits)], 0),
            Some(Warning {
                note: fits.id,
                trigger: Some("cmd: git push --force".to_owned()),
                action: Action::Context,
            })
        );
        let other = Call::of("Bash", &json!({"command": "git push origin main"}));
        assert_eq!(warning(&other, &[candidate(&fits)], 0), None);
    }

    #[test]
    fn only_warnings_in_use_come_up() {
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
    fn a_call_is_stopped_only_where_all_speaks_for_it() {
        let stops = note("a", |note| {
            note.severity = Some(Severity::High);
            note.enforce = Enforce::Once;
        });
        assert_eq!(action(candidate(&stops)), Some(Action::Deny));
        let critical = Note {
            severity: Some(Severity::Critical),
            ..stops.clone()
        };
        assert_eq!(action(candidate(&critical)), Some(Action::Deny));
        for change in [
            |note: &mut Note| note.severity = Some(Severity::Medium),
            |note: &mut Note| note.severity = None,
            |note: &mut Note| note.enforce = Enforce::Never,
            |note: &mut Note| note.actor = Some("agent".to_owned()),
        ] {
            let mut note = stops.clone();
            change(&mut note);
            assert_eq!(action(candidate(&note)), Some(Action::Context));
        }
        let not_by_a_person = Candidate {
            is_persons: false,
            ..candidate(&stops)
        };
        assert_eq!(action(not_by_a_person), Some(Action::Context));
        // The context was emptied since: it is told again, and nothing is stopped again.
        let has_stopped = Candidate {
            has_stopped: true,
            ..candidate(&stops)
        };
        assert_eq!(action(has_stopped), Some(Action::Context));
        // The second call passes, in silence.
        let was_given = Candidate {
            has_stopped: true,
            was_given: true,
            ..candidate(&stops)
        };
        assert_eq!(action(was_given), None);
    }

    #[test]
    fn without_a_trigger_the_text_decides_and_never_stops() {
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
        for (coverage, terms, expected) in [
            (0.55, 3, Some(Action::Context)),
            (0.54, 3, None),
            (1.0, 2, None),
            (f64::NAN, 9, None),
        ] {
            let with = |note| {
                action(Candidate {
                    relevance: Some(Relevance { coverage, terms }),
                    ..candidate(note)
                })
            };
            assert_eq!(with(&by_text), expected, "{coverage} {terms}");
            assert_eq!(with(&unreadable), expected, "{coverage} {terms}");
            assert_eq!(with(&elsewhere), None, "{coverage} {terms}");
        }
        assert_eq!(action(candidate(&by_text)), None);
    }

    #[test]
    fn one_comes_up_and_none_after_two_in_a_turn() {
        let severe = note("severe", |note| note.severity = Some(Severity::Low));
        let narrow = note("narrow", |note| {
            note.when.push("cmd: git push --force main".to_owned());
        });
        let (one, other) = (note("one", |_| {}), note("other", |_| {}));
        let mut notes = [&other, &one, &narrow, &severe];
        let shown = |notes: &[&Note]| {
            let candidates: Vec<Candidate<'_>> = notes.iter().map(|note| candidate(note)).collect();
            warning(&push(), &candidates, 1).map(|warning| warning.note)
        };
        for _ in 0..2 {
            assert_eq!(shown(&notes), Some(severe.id));
            notes.reverse();
        }
        assert_eq!(shown(&[&one, &narrow, &other]), Some(narrow.id));
        assert_eq!(shown(&[&one, &other]), Some(one.id.min(other.id)));
        assert_eq!(warning(&push(), &[candidate(&one)], 2), None);
    }

    /// Warnings as people write them who know nothing of triggers, each with a call that it is about.
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

    /// Commands that no warning should meet.
    const BENIGN: &str = include_str!("../../note/src/trigger/benign.txt");

    fn call(text: &str) -> Call {
        match text
            .strip_prefix("Edit ")
            .and_then(|edit| edit.split_once(" << "))
        {
            Some((path, new)) => Call::of("Edit", &json!({"file_path": path, "new_string": new})),
            None => Call::of("Bash", &json!({"command": text})),
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
        found.into_iter().map(|(entry, _)| entry.title).collect()
    }

    #[test]
    fn a_warning_without_triggers_comes_up_by_its_words() {
        let (_fixture, index) = written();
        let (mut missed, mut others) = (Vec::new(), Vec::new());
        for (title, _, about) in WRITTEN {
            let found = titles(&index, &call(about));
            if !found.iter().any(|found| found == title) {
                missed.push(about);
            }
            others.extend(found.into_iter().filter(|found| found != title));
        }
        // Words that differ by an option's spelling, or two words only: these need a trigger.
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
    fn of_two_hundred_everyday_commands_one_has_the_words_of_a_warning() {
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
        // It tries what the warning is about. Two would be one in a hundred.
        assert_eq!(met, ["rsync -avn --delete build/ host:/var/www/site/"]);
    }
}
