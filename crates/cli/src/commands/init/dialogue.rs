//! The dialogue when a machine joins a remote, independent of the sync backend.

use anamnesis_app::{Error, setup::NOTHING_CHANGED};
use anamnesis_sync::{Held, HeldDecision, Reached, SyncBackend, Synced};

use crate::ui::{self, Ui};

/// The default answer: for Enter, and without a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unsaid {
    /// Yes in both cases.
    Yes,
    /// Yes for Enter; no without a terminal.
    YesWhenAsked,
    /// No in both cases.
    No,
}

/// The other side of the dialogue.
pub(super) trait Talk {
    /// Prints whole lines.
    fn say(&mut self, text: &str);

    /// Asks a question and returns whether the answer is yes.
    fn asks(&mut self, question: &str, unsaid: Unsaid) -> bool;

    /// Returns whether a person answers.
    fn is_person(&self) -> bool;
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answers {
    /// A person at a terminal.
    Person,
    /// `--yes`: yes to every question.
    Yes,
    /// No terminal: the safe default of each question.
    Nobody,
}

/// The terminal, or the defaults that replace it.
#[derive(Debug)]
pub(super) struct Terminal<'a> {
    pub(super) ui: &'a Ui,
    pub(super) answers: Answers,
}

impl Talk for Terminal<'_> {
    fn say(&mut self, text: &str) {
        self.ui.print(text);
    }

    fn asks(&mut self, question: &str, unsaid: Unsaid) -> bool {
        let (answer, who) = match (self.answers, unsaid) {
            (Answers::Person, Unsaid::No) => return self.ui.asks(question),
            (Answers::Person, _) => return self.ui.asks_with_yes(question),
            (Answers::Yes, _) => (true, "--yes"),
            (Answers::Nobody, unsaid) => (unsaid == Unsaid::Yes, "cannot ask; see --yes"),
        };
        let word = if answer { "yes" } else { "no" };
        self.say(&format!("{question} {word} ({who})\n"));
        answer
    }

    fn is_person(&self) -> bool {
        self.answers == Answers::Person
    }
}

/// The question before notes are sent to a remote whose readers are unknown.
const PRIVATE: &str = "  Everyone who can read this repository can read your notes, session notes\n  \
                       included. Private?";

/// Shows what a remote contains, and asks whether to join it and what becomes of notes that it deleted.
/// Returns `None` if it is not joined. An error means that nothing has changed.
pub(super) fn meet<B>(backend: &B, talk: &mut impl Talk) -> Result<Option<HeldDecision>, Error>
where
    B: SyncBackend,
    Error: From<B::Error>,
{
    let reached = look(backend, talk).map_err(|failure| failure.also(NOTHING_CHANGED))?;
    let agreed = if reached.notes_there == 0 && reached.machines.is_empty() {
        talk.asks(PRIVATE, Unsaid::No)
    } else {
        let promise = if reached.deleted_there == 0 {
            "; nothing is overwritten"
        } else {
            ""
        };
        talk.asks(
            &format!(
                "  here: {}. Together {}{promise}. Join?",
                ui::count(reached.notes_here, "note"),
                ui::number(reached.together)
            ),
            Unsaid::Yes,
        )
    };
    if !agreed || reached.deleted_there == 0 {
        return Ok(agreed.then_some(HeldDecision::None));
    }
    // Every default keeps the notes, `--yes` included.
    let is_kept = talk.asks(
        &format!(
            "  The remote deleted {} of these. Keep them, here and there?",
            ui::number(reached.deleted_there)
        ),
        Unsaid::Yes,
    );
    Ok(Some(if is_kept {
        HeldDecision::KeepAll
    } else {
        HeldDecision::Accept
    }))
}

/// Connects to the configured remote, and syncs.
pub(super) fn meet_again<B>(backend: &B, talk: &mut impl Talk, refresh: impl FnOnce() -> bool)
where
    B: SyncBackend,
    Error: From<B::Error>,
{
    match look(backend, talk) {
        Ok(_) => sync(backend, talk, refresh),
        Err(failure) => talk.say(&not_synced(&failure)),
    }
}

/// Asks whether to use a remote that was not contacted.
pub(super) fn meet_unseen(talk: &mut impl Talk) -> bool {
    talk.asks(PRIVATE, Unsaid::No)
}

/// Connects to the remote and prints what it contains.
fn look<B>(backend: &B, talk: &mut impl Talk) -> Result<Reached, Error>
where
    B: SyncBackend,
    Error: From<B::Error>,
{
    let reached = backend.init()?;
    let machines = listed(&reached.machines);
    talk.say(&match (reached.notes_there, machines) {
        (0, None) => "✓ reached: it is empty\n".to_owned(),
        (notes, None) => format!("✓ reached: {}\n", ui::count(notes, "note")),
        (notes, Some(machines)) => {
            format!("✓ reached: {}, from {machines}\n", ui::count(notes, "note"))
        }
    });
    Ok(reached)
}

/// Formats names on one line: `a`, `a and b`, `a, b and 3 others`.
fn listed(names: &[String]) -> Option<String> {
    let name = |name: &String| ui::shorten(&anamnesis_text::clean::one_line(name), 20);
    match names {
        [] => None,
        [one] => Some(name(one)),
        [one, two] => Some(format!("{} and {}", name(one), name(two))),
        [one, two, others @ ..] => Some(format!(
            "{}, {} and {}",
            name(one),
            name(two),
            ui::count(others.len(), "other")
        )),
    }
}

/// Syncs and prints the result. A failure loses nothing, because a later sync continues.
pub(super) fn sync<B>(backend: &B, talk: &mut impl Talk, refresh: impl FnOnce() -> bool)
where
    B: SyncBackend,
    Error: From<B::Error>,
{
    let synced = match backend.sync() {
        Ok(synced) => synced,
        Err(error) => return talk.say(&not_synced(&Error::from(error))),
    };
    let mut done = Vec::new();
    if synced.pulled > 0 {
        done.push("joined");
    }
    if synced.sent {
        done.push("pushed");
    }
    if refresh() {
        done.push("searchable");
    }
    if synced.held.is_none() && !done.is_empty() {
        talk.say(&format!("✓ {}\n", done.join(", ")));
    }
    talk.say(&remarks(&synced));
}

/// The message for a failed sync.
fn not_synced(failure: &Error) -> String {
    format!(
        "✗ not synced: {}\n  Your notes are safe; they go with the next sync.\n→ {}\n",
        failure.message().replace('\n', "\n  "),
        failure.next_step().unwrap_or("anamnesis sync")
    )
}

/// The parts of a sync's result that a person should know.
fn remarks(synced: &Synced) -> String {
    let mut text = String::new();
    match synced.held {
        Some(Held::MassDeletion { gone, of }) => text.push_str(&format!(
            "! held back: the remote dropped {} of {}; nothing here was deleted\n→ anamnesis sync\n",
            ui::number(gone),
            ui::count(of, "note")
        )),
        Some(Held::LocalMassDeletion { gone, of }) => text.push_str(&format!(
            "! held back: {} of {} are gone here; the remote has them still\n→ anamnesis sync\n",
            ui::number(gone),
            ui::count(of, "note")
        )),
        Some(Held::Rewritten) => text.push_str(
            "! held back: the history of the remote was rewritten; nothing here was changed\n\
             → anamnesis sync\n",
        ),
        None => {}
    }
    if synced.conflicts > 0 {
        text.push_str(&format!(
            "  {}: both texts are kept\n",
            ui::count(synced.conflicts, "conflict")
        ));
    }
    if !synced.problems.is_empty() {
        text.push_str(&format!(
            "  {} of the remote left alone · anamnesis doctor\n",
            ui::count(synced.problems.len(), "file")
        ));
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use std::cell::RefCell;

    use anamnesis_store::notes::Problem;
    use anamnesis_sync::State;
    use insta::assert_snapshot;

    use super::*;

    /// A scripted remote.
    #[derive(Default)]
    pub(in super::super) struct Remote {
        reached: Option<Reached>,
        synced: Option<Synced>,
        asked: RefCell<Vec<&'static str>>,
    }

    impl Remote {
        /// The calls that were made, in order.
        pub(in super::super) fn asked(&self) -> Vec<&'static str> {
            self.asked.borrow().clone()
        }
    }

    #[derive(Debug, thiserror::Error)]
    #[error("git.home: no route to host")]
    pub(in super::super) struct Unreachable;

    impl From<Unreachable> for Error {
        fn from(error: Unreachable) -> Self {
            Self::failed(error.to_string()).hint("check the network, then run it again")
        }
    }

    impl SyncBackend for &Remote {
        type Error = Unreachable;

        fn init(&self) -> Result<Reached, Unreachable> {
            self.asked.borrow_mut().push("init");
            self.reached.clone().ok_or(Unreachable)
        }

        fn sync(&self) -> Result<Synced, Unreachable> {
            self.asked.borrow_mut().push("sync");
            self.synced.clone().ok_or(Unreachable)
        }

        fn state(&self) -> Result<State, Unreachable> {
            Err(Unreachable)
        }
    }

    /// A person with scripted answers, who presses Enter after the last one.
    pub(in super::super) struct Person {
        answers: Vec<bool>,
        pub(in super::super) heard: String,
    }

    impl Person {
        pub(in super::super) fn answering(answers: &[bool]) -> Self {
            Self {
                answers: answers.to_vec(),
                heard: String::new(),
            }
        }
    }

    impl Talk for Person {
        fn say(&mut self, text: &str) {
            self.heard.push_str(text);
        }

        fn asks(&mut self, question: &str, unsaid: Unsaid) -> bool {
            let choice = if unsaid == Unsaid::No {
                "[y/N]"
            } else {
                "[Y/n]"
            };
            let answer = if self.answers.is_empty() {
                unsaid != Unsaid::No
            } else {
                self.answers.remove(0)
            };
            let typed = if answer { "y" } else { "n" };
            self.heard
                .push_str(&format!("{question} {choice} {typed}\n"));
            answer
        }

        fn is_person(&self) -> bool {
            true
        }
    }

    pub(in super::super) fn reached(there: usize, here: usize, machines: &[&str]) -> Remote {
        Remote {
            reached: Some(Reached {
                has_remote: true,
                notes_there: there,
                notes_here: here,
                together: there + here,
                deleted_there: 0,
                machines: machines.iter().map(|&name| name.to_owned()).collect(),
            }),
            synced: Some(Synced {
                pushed: true,
                sent: true,
                pulled: there,
                ..Synced::default()
            }),
            ..Remote::default()
        }
    }

    /// Meets a remote; returns the printed text and the decision.
    fn met(remote: &Remote, answers: &[bool]) -> String {
        let mut person = Person::answering(answers);
        let agreed = meet(&remote, &mut person).unwrap();
        for line in person.heard.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        let agreed = agreed.map_or("no".to_owned(), |answer| format!("{answer:?}"));
        format!("{}agreed: {agreed}", person.heard)
    }

    #[test]
    fn a_remote_with_notes_is_joined_after_a_question() {
        let remote = reached(1204, 3, &["desktop", "laptop"]);
        assert_snapshot!(met(&remote, &[]), @"
        ✓ reached: 1,204 notes, from desktop and laptop
          here: 3 notes. Together 1,207; nothing is overwritten. Join? [Y/n] y
        agreed: None
        ");
        assert_snapshot!(met(&remote, &[false]), @"
        ✓ reached: 1,204 notes, from desktop and laptop
          here: 3 notes. Together 1,207; nothing is overwritten. Join? [Y/n] n
        agreed: no
        ");
        assert_snapshot!(met(&reached(1, 0, &[]), &[]), @"
        ✓ reached: 1 note
          here: 0 notes. Together 1; nothing is overwritten. Join? [Y/n] y
        agreed: None
        ");
        let many = ["a", "b", "c", "a machine of a very long name indeed"];
        assert_snapshot!(met(&reached(7, 1, &many), &[]), @"
        ✓ reached: 7 notes, from a, b and 2 others
          here: 1 note. Together 8; nothing is overwritten. Join? [Y/n] y
        agreed: None
        ");
        // Nothing is sent or fetched before the answer.
        assert_eq!(remote.asked(), ["init", "init"]);
    }

    #[test]
    fn a_remote_that_deleted_notes_does_not_promise_to_keep_them() {
        let mut remote = reached(1204, 12, &["desktop"]);
        remote.reached.as_mut().unwrap().deleted_there = 3;
        assert_snapshot!(met(&remote, &[]), @"
        ✓ reached: 1,204 notes, from desktop
          here: 12 notes. Together 1,216. Join? [Y/n] y
          The remote deleted 3 of these. Keep them, here and there? [Y/n] y
        agreed: KeepAll
        ");
        assert!(met(&remote, &[true, false]).ends_with("[Y/n] n\nagreed: Accept"));
        assert!(met(&remote, &[false]).ends_with("Join? [Y/n] n\nagreed: no"));
    }

    #[test]
    fn an_empty_remote_gets_notes_only_if_it_is_private() {
        let remote = reached(0, 3, &[]);
        assert_snapshot!(met(&remote, &[]), @"
        ✓ reached: it is empty
          Everyone who can read this repository can read your notes, session notes
          included. Private? [y/N] n
        agreed: no
        ");
        assert_snapshot!(met(&remote, &[true]), @"
        ✓ reached: it is empty
          Everyone who can read this repository can read your notes, session notes
          included. Private? [y/N] y
        agreed: None
        ");
        assert!(!meet_unseen(&mut Person::answering(&[])));
    }

    #[test]
    fn a_remote_that_cannot_be_reached_changes_nothing() {
        let failure = meet(&&Remote::default(), &mut Person::answering(&[])).unwrap_err();
        assert_snapshot!(failure.text(), @"
        anamnesis: git.home: no route to host
        Nothing was changed, and your notes are safe
        → check the network, then run it again
        ");
    }

    /// Syncs; returns the printed text.
    fn synced(synced: Option<Synced>) -> String {
        let remote = Remote {
            synced,
            ..Remote::default()
        };
        let mut person = Person::answering(&[]);
        sync(&&remote, &mut person, || true);
        for line in person.heard.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        person.heard
    }

    #[test]
    fn what_came_of_the_first_sync() {
        let well = Synced {
            pushed: true,
            sent: true,
            pulled: 12,
            ..Synced::default()
        };
        assert_snapshot!(synced(Some(well.clone())), @"✓ joined, pushed, searchable");
        let first = Synced {
            pulled: 0,
            ..well.clone()
        };
        assert_snapshot!(synced(Some(first)), @"✓ pushed, searchable");
        let problem = Problem {
            path: "memory/link".to_owned(),
            reason: "a link".to_owned(),
        };
        let odd = Synced {
            conflicts: 2,
            problems: vec![problem],
            ..well.clone()
        };
        assert_snapshot!(synced(Some(odd)), @"
        ✓ joined, pushed, searchable
          2 conflicts: both texts are kept
          1 file of the remote left alone · anamnesis doctor
        ");
        for held in [
            Held::MassDeletion {
                gone: 312,
                of: 1204,
            },
            Held::LocalMassDeletion {
                gone: 312,
                of: 1204,
            },
            Held::Rewritten,
        ] {
            let held = Synced {
                held: Some(held),
                ..well.clone()
            };
            let heard = synced(Some(held));
            assert!(
                heard.starts_with("! held back: ") && !heard.contains('✓'),
                "{heard}"
            );
            assert!(heard.ends_with("\n→ anamnesis sync\n"), "{heard}");
        }
        assert_snapshot!(synced(None), @"
        ✗ not synced: git.home: no route to host
          Your notes are safe; they go with the next sync.
        → check the network, then run it again
        ");
    }

    #[test]
    fn a_remote_that_is_set_is_reached_again() {
        let remote = reached(1204, 3, &["desktop"]);
        let mut person = Person::answering(&[]);
        meet_again(&&remote, &mut person, || true);
        meet_again(&&Remote::default(), &mut person, || true);
        assert_snapshot!(person.heard, @"
        ✓ reached: 1,204 notes, from desktop
        ✓ joined, pushed, searchable
        ✗ not synced: git.home: no route to host
          Your notes are safe; they go with the next sync.
        → check the network, then run it again
        ");
    }

    #[test]
    fn where_nobody_is_asked_what_is_safe_is_done() {
        let ui = Ui::keeping();
        for (answers, unsaid, expected) in [
            (Answers::Yes, Unsaid::No, true),
            (Answers::Yes, Unsaid::YesWhenAsked, true),
            (Answers::Nobody, Unsaid::No, false),
            (Answers::Nobody, Unsaid::YesWhenAsked, false),
            (Answers::Nobody, Unsaid::Yes, true),
        ] {
            let mut terminal = Terminal { ui: &ui, answers };
            assert_eq!(
                terminal.asks("  Sure?", unsaid),
                expected,
                "{answers:?} {unsaid:?}"
            );
        }
    }
}
