//! Questions whose answers are known, made of what is there, without a model: titles, and prompts of
//! which it was seen what they needed.
//!
//! A question that its note repeats word for word measures nothing, so there are none of these. The same
//! notes and prompts make the same questions, in the same order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, NoteType},
};

use crate::rank::Query;

/// With fewer words that say something nothing is asked.
const FEWEST_WORDS: usize = 3;

/// A prompt, and the notes that it needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The session.
    pub session: String,
    /// Its number there.
    pub number: i64,
    /// The key of the session's project.
    pub project: String,
    /// What was asked, fit to be kept.
    pub text: String,
    /// The notes that were opened or named in its turn.
    pub notes: Vec<NoteId>,
}

/// The notes whose titles are questions to the rest of them, at most so many: some of each project, the
/// oldest first.
///
/// `notes` are all that are in use; of other types than these none is asked for. Left out is a title that
/// says little, that another note has, too, or that the text repeats, and a task: it answers nothing.
pub fn titles<'a>(notes: &'a [Note], types: &[NoteType], most: usize) -> Vec<&'a Note> {
    let mut having: HashMap<String, usize> = HashMap::new();
    for note in notes {
        *having.entry(spoken(&note.title)).or_default() += 1;
    }
    let mut asked: Vec<&Note> = notes
        .iter()
        .filter(|note| {
            can_answer(note, types)
                && having.get(&spoken(&note.title)) == Some(&1)
                && asks(&note.title)
                && !repeats(&note.body, &note.title)
        })
        .collect();
    asked.sort_by_key(|note| note.id);
    by_turns(asked, |note| note.project.clone(), most)
}

/// The prompts that are questions, with the notes that answer them, at most so many: some of each
/// project, in the order in which they come.
///
/// A note that repeats the prompt is no answer to it, and `note` says nothing of one that cannot be.
pub fn prompts<'a>(
    prompts: impl IntoIterator<Item = Prompt>,
    note: impl Fn(NoteId) -> Option<&'a Note>,
    most: usize,
) -> Vec<Prompt> {
    let is_answer = |id: NoteId, prompt: &str| {
        note(id).is_some_and(|note| !repeats(&note.title, prompt) && !repeats(&note.body, prompt))
    };
    let asked = prompts.into_iter().filter_map(|mut prompt| {
        prompt.notes.retain(|id| is_answer(*id, &prompt.text));
        prompt.notes.sort_unstable();
        prompt.notes.dedup();
        (!prompt.notes.is_empty() && asks(&prompt.text)).then_some(prompt)
    });
    by_turns(asked, |prompt| prompt.project.clone(), most)
}

/// Notes to ask a question about, at most so many: some of each project, the oldest first. A task answers
/// nothing, and of other types than these none is taken.
pub fn sample<'a>(notes: &'a [Note], types: &[NoteType], most: usize) -> Vec<&'a Note> {
    let mut sampled: Vec<&Note> = notes
        .iter()
        .filter(|note| can_answer(note, types))
        .collect();
    sampled.sort_by_key(|note| note.id);
    by_turns(sampled, |note| note.project.clone(), most)
}

/// Tells whether a note of one of these types answers anything.
fn can_answer(note: &Note, types: &[NoteType]) -> bool {
    types.contains(&note.note_type) && note.kind() != Kind::Task && !note.body.trim().is_empty()
}

/// Tells whether a text says enough to be a question.
pub fn asks(text: &str) -> bool {
    Query::of(text).term_count() >= FEWEST_WORDS
}

/// Tells whether the words of a question stand in a text as they are asked, one after the other.
fn repeats(text: &str, question: &str) -> bool {
    spoken(text).contains(&spoken(question))
}

/// The words of a text alone, a blank before and after each.
fn spoken(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .fold(String::from(" "), |mut spoken, word| {
            spoken.push_str(&word.to_lowercase());
            spoken.push(' ');
            spoken
        })
}

/// Takes one of each project in turn, until there are enough.
fn by_turns<T>(
    items: impl IntoIterator<Item = T>,
    project: impl Fn(&T) -> String,
    most: usize,
) -> Vec<T> {
    let mut waiting: BTreeMap<String, VecDeque<T>> = BTreeMap::new();
    for item in items {
        waiting.entry(project(&item)).or_default().push_back(item);
    }
    let mut taken = Vec::new();
    while !waiting.is_empty() && taken.len() < most {
        waiting.retain(|_, items| {
            if taken.len() < most {
                taken.extend(items.pop_front());
            }
            !items.is_empty()
        });
    }
    taken
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;

    use super::*;

    fn note(name: &str, project: &str, title: &str, body: &str) -> Note {
        let mut note = Note::new(
            NoteId::made_of(name),
            NoteType::Semantic,
            DateTime::UNIX_EPOCH,
        );
        note.title = title.to_owned();
        note.body = body.to_owned();
        note.project = project.to_owned();
        note
    }

    fn asked(notes: &[Note], most: usize) -> Vec<&str> {
        let titles = titles(notes, &[NoteType::Semantic], most);
        titles.iter().map(|note| note.title.as_str()).collect()
    }

    #[test]
    fn a_title_asks_for_its_note_unless_the_text_gives_it_away() {
        let question = "Login tests need the stub server";
        for (title, body, is_question) in [
            (question, "`make stub` binds port 9090.", true),
            (
                question,
                "Our login tests need the STUB server, always.",
                false,
            ),
            (question, "  \n", false),
            ("Stub server", "It binds port 9090.", false),
            ("The thing is what it is", "It binds port 9090.", false),
        ] {
            let notes = [note("1", "p", title, body)];
            assert_eq!(asked(&notes, 9).len() == 1, is_question, "{title}: {body}");
        }
        let mut task = note("1", "p", question, "text");
        task.kind = Some(Kind::Task);
        assert_eq!(asked(&[task], 9), [""; 0]);
        let mut session = note("1", "p", question, "text");
        session.note_type = NoteType::Episodic;
        assert_eq!(asked(&[session], 9), [""; 0]);
        let twice = ["1", "2"].map(|name| note(name, "p", question, "text"));
        assert_eq!(asked(&twice, 9), [""; 0]);
    }

    #[test]
    fn every_project_has_its_turn_and_the_order_of_notes_makes_no_difference() {
        let mut notes: Vec<Note> = (0..6)
            .map(|n| {
                let project = if n < 5 { "a" } else { "b" };
                let title = format!("Question number {n} about limits");
                note(&n.to_string(), project, &title, "text")
            })
            .collect();
        let some = asked(&notes, 3).join("; ");
        assert!(some.contains("number 5"), "{some}");
        assert_eq!(asked(&notes, 3).len(), 3);
        assert_eq!(asked(&notes, 99).len(), 6);
        notes.reverse();
        assert_eq!(asked(&notes, 3).join("; "), some);
        assert_eq!(asked(&notes, 0), [""; 0]);
    }

    #[test]
    fn a_prompt_is_answered_by_a_note_that_does_not_repeat_it() {
        let known = [
            note("1", "p", "Stub server", "`make stub` binds port 9090."),
            note("2", "p", "Asked", "**Ask:** Why do the login tests hang?"),
        ];
        let [one, two, gone] = ["1", "2", "3"].map(NoteId::made_of);
        let find = |id| known.iter().find(|note| note.id == id);
        let prompt = |text: &str, notes: &[NoteId]| Prompt {
            session: "s".to_owned(),
            number: 1,
            project: "p".to_owned(),
            text: text.to_owned(),
            notes: notes.to_vec(),
        };
        let made = |text: &str, notes: &[NoteId]| -> Vec<NoteId> {
            let made = prompts([prompt(text, notes)], find, 9);
            made.into_iter().flat_map(|prompt| prompt.notes).collect()
        };
        let question = "Why do the login tests hang?";
        assert_eq!(made(question, &[one, two, one, gone]), [one]);
        assert_eq!(made(question, &[two]), []);
        assert_eq!(made("ok, go on", &[one]), []);
    }
}
