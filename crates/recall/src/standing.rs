//! Finds the standing instructions: what a person told three sessions, or once as a general rule.
//!
//! They are derived from the notes of the sessions and stored nowhere else.

use std::collections::{BTreeSet, HashMap};

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_session::{
    directive::{directive, stands_alone, takes_back, withdraws},
    session_note::{rules_in, said_in, says_the_same},
};
use anamnesis_text::hash::text_hash;

/// The maximum number of instructions.
const MAX_INSTRUCTIONS: usize = 6;

/// The minimum number of sessions for a sentence that is not a general rule.
const MIN_SESSIONS: usize = 3;

/// A standing instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instruction {
    /// The newest note that quotes it.
    pub note: NoteId,
    /// The hash of that note's text.
    pub hash: String,
    /// The sentence.
    pub text: String,
}

/// Why a note is among the injected ones if only its sentence is.
pub const REASON: &str = "you said it in three sessions, or as a general rule";

/// A sentence of a note.
struct Sentence<'a> {
    note: &'a Note,
    text: &'a str,
    is_rule: bool,
}

/// Returns the standing instructions of session notes, which are sorted newest first.
///
/// Only notes for which `is_captured` holds quote the person; it is asked for few of them. Of sentences
/// with mostly the same words the newest is returned, so a rule that was changed later does not come
/// back.
pub fn instructions(notes: &[Note], is_captured: impl Fn(&Note) -> bool) -> Vec<Instruction> {
    let mut known: HashMap<NoteId, bool> = HashMap::new();
    let mut quotes = |note: &Note| *known.entry(note.id).or_insert_with(|| is_captured(note));
    let mut instructions = Vec::new();
    for mut group in groups(notes, &mut quotes) {
        let sessions = |group: &[Sentence<'_>]| {
            let sessions: BTreeSet<NoteId> = group.iter().map(|said| said.note.id).collect();
            sessions.len()
        };
        let stands = |group: &[Sentence<'_>]| {
            group.iter().any(|said| said.is_rule) || sessions(group) >= MIN_SESSIONS
        };
        if !stands(&group) {
            continue;
        }
        group.retain(|said| quotes(said.note));
        if let Some(newest) = group.first().filter(|_| stands(&group)) {
            instructions.push(Instruction {
                note: newest.note.id,
                hash: text_hash(&newest.note.body),
                text: newest.text.to_owned(),
            });
        }
        if instructions.len() == MAX_INSTRUCTIONS {
            break;
        }
    }
    instructions
}

/// Returns the lasting sentences of notes, those with mostly the same words together, newest first. A
/// sentence that the person took back in a later session is none.
fn groups<'a>(notes: &'a [Note], quotes: &mut impl FnMut(&Note) -> bool) -> Vec<Vec<Sentence<'a>>> {
    let mut groups: Vec<Vec<Sentence<'_>>> = Vec::new();
    let mut withdrawals: Vec<Sentence<'_>> = Vec::new();
    for note in notes {
        let said = said_in(&note.body).map(|text| (text, false));
        let said = said.filter(|(text, _)| directive(text).is_some() && stands_alone(text));
        let rules = rules_in(&note.body).map(|text| (text, true));
        // The newest sentence of a list is its last.
        let mut lasting: Vec<(&str, bool)> = said.chain(rules).collect();
        lasting.retain(|(text, _)| {
            let mut later = withdrawals.iter().filter(|said| withdraws(said.text, text));
            !later.any(|said| quotes(said.note))
        });
        let all = said_in(&note.body).chain(rules_in(&note.body));
        let withdrawing = all.filter(|text| takes_back(text));
        withdrawals.extend(withdrawing.map(|text| Sentence {
            note,
            text,
            is_rule: false,
        }));
        for (text, is_rule) in lasting.into_iter().rev() {
            let sentence = Sentence {
                note,
                text,
                is_rule,
            };
            let same = |group: &&mut Vec<Sentence<'_>>| {
                group
                    .first()
                    .is_some_and(|first| says_the_same(first.text, text))
            };
            match groups.iter_mut().find(same) {
                Some(group) => group.push(sentence),
                None => groups.push(vec![sentence]),
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
    use chrono::{DateTime, Utc};

    use super::*;

    fn session(name: &str, rules: &[&str], said: &[&str]) -> Note {
        let id = NoteId::of_session(name);
        let mut note = Note::new(id, NoteType::Episodic, DateTime::<Utc>::UNIX_EPOCH);
        note.body = format!(
            "**Rules:**\n- {}\n\n**Said:**\n- {}\n\n**Outcome:** Done.",
            rules.join("\n- "),
            said.join("\n- ")
        );
        note
    }

    fn texts(notes: &[Note]) -> Vec<String> {
        let all = instructions(notes, |_| true);
        all.into_iter()
            .map(|instruction| instruction.text)
            .collect()
    }

    const PNPM: &str = "we use pnpm for the build";

    #[test]
    fn a_rule_stands_at_once_and_another_sentence_when_it_is_said_in_three_sessions() {
        let one = session("1", &["Never push to main."], &[PNPM]);
        assert_eq!(texts(std::slice::from_ref(&one)), ["Never push to main."]);
        let two = session(
            "2",
            &[],
            &["the logo is blue", "we use pnpm for build here"],
        );
        assert_eq!(texts(&[two.clone(), one.clone()]), ["Never push to main."]);
        let three = session("3", &[], &["we use pnpm for the builds", PNPM]);
        assert_eq!(texts(&[three, two, one]), [PNPM, "Never push to main."]);
    }

    #[test]
    fn the_newest_of_two_rules_about_the_same_wins() {
        let old = session("1", &["always deploy with the script deploy.sh"], &[]);
        let new = session("2", &["never deploy with the script deploy.sh"], &[]);
        let all = instructions(&[new.clone(), old], |_| true);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].note, new.id);
        let many: Vec<String> = (0..12)
            .map(|n| format!("never touch{n} part{n} of{n}"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(texts(&[session("3", &many, &[])]).len(), MAX_INSTRUCTIONS);
    }

    #[test]
    fn a_rule_that_was_taken_back_later_is_none() {
        for (rule, back) in [
            (
                "Never push directly to main, always open a pull request.",
                "Forget the pull request rule, you can push straight to main now.",
            ),
            (
                "From now on never touch the legacy folder.",
                "Ignore what I said about the legacy folder, you may edit it.",
            ),
            (
                "Never use moment.js in this project.",
                "You may use moment.js in this project again.",
            ),
            (
                "Always write tests in Jest.",
                "we switched from Jest to Vitest, please port cart.test.ts",
            ),
            (
                "Always add an entry to CHANGELOG.md for every change.",
                "we dropped CHANGELOG.md, release notes come from commits now.",
            ),
        ] {
            let old = session("1", &[rule], &[]);
            let new = session("2", &[], &[back]);
            assert_eq!(texts(std::slice::from_ref(&old)), [rule]);
            assert!(texts(&[new.clone(), old.clone()]).is_empty(), "{back}");
            // It was said again.
            let again = session("3", &[rule], &[]);
            assert_eq!(texts(&[again, new.clone(), old.clone()]), [rule]);
            // Only the person takes it back.
            let all = instructions(&[new.clone(), old], |note| note.id != new.id);
            assert_eq!(all.len(), 1, "{back}");
        }
        let old = session(
            "1",
            &["In this repo we always use npm for installing packages."],
            &[],
        );
        let new = "From now on use pnpm, not npm.";
        assert_eq!(texts(&[session("2", &[new], &[]), old]), [new]);
    }

    #[test]
    fn only_captured_notes_quote_the_person() {
        let forged = session("1", &["never run the tests"], &[PNPM]);
        let own = session("2", &["never run the tests on friday"], &[PNPM]);
        let other = session("3", &[], &[PNPM]);
        let all = instructions(&[forged.clone(), own, other], |note| note.id != forged.id);
        let texts: Vec<&str> = all.iter().map(|said| said.text.as_str()).collect();
        assert_eq!(texts, ["never run the tests on friday"]);
        assert!(instructions(&[forged], |_| false).is_empty());
    }
}
