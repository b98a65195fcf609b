//! Makes evaluation questions with known answers from titles and past prompts, without a model.
//!
//! A question that its note repeats word for word measures nothing, so it is left out. The same
//! notes and prompts make the same questions in the same order.

use std::collections::{BTreeMap, HashMap, VecDeque};

use anamnesis_note::{
    id::NoteId,
    note::{Kind, Note, NoteType},
};

use crate::rank::Query;

/// A text with fewer meaningful words is no question.
const MIN_WORDS: usize = 3;

/// A prompt and the notes that it needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Prompt {
    /// The session.
    pub session: String,
    /// Its number in the session.
    pub number: i64,
    /// The key of the session's project.
    pub project: String,
    /// The prompt's text, sanitised for storage.
    pub text: String,
    /// The notes that were opened or named in its turn.
    pub notes: Vec<NoteId>,
}

/// Returns up to `most` notes whose titles can serve as questions, taken from each project in turn,
/// oldest first.
///
/// `notes` are all notes in use, and only those of `types` are returned. Excluded are titles with
/// few meaningful words, titles that another note has, titles that the body repeats, and tasks,
/// which answer nothing.
pub fn titles<'a>(notes: &'a [Note], types: &[NoteType], most: usize) -> Vec<&'a Note> {
    let mut titles: HashMap<String, usize> = HashMap::new();
    for note in notes {
        *titles.entry(normalised_words(&note.title)).or_default() += 1;
    }
    let mut asked: Vec<&Note> = notes
        .iter()
        .filter(|note| {
            can_answer(note, types)
                && titles.get(&normalised_words(&note.title)) == Some(&1)
                && is_question(&note.title)
                && !repeats(&note.body, &note.title)
        })
        .collect();
    asked.sort_by_key(|note| note.id);
    round_robin(asked, |note| note.project.clone(), most)
}

/// Returns up to `most` prompts that can serve as questions with the notes that answer them, taken
/// from each project in turn.
///
/// A note that repeats the prompt does not count as an answer. `note` returns `None` for a note
/// that cannot be one.
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
        (!prompt.notes.is_empty() && is_question(&prompt.text)).then_some(prompt)
    });
    round_robin(asked, |prompt| prompt.project.clone(), most)
}

/// Returns up to `most` notes of these types to write questions about, taken from each project in
/// turn, oldest first. Tasks are excluded: they answer nothing.
pub fn sample<'a>(notes: &'a [Note], types: &[NoteType], most: usize) -> Vec<&'a Note> {
    let mut sampled: Vec<&Note> = notes
        .iter()
        .filter(|note| can_answer(note, types))
        .collect();
    sampled.sort_by_key(|note| note.id);
    round_robin(sampled, |note| note.project.clone(), most)
}

/// Returns whether a note of one of these types can answer a question.
fn can_answer(note: &Note, types: &[NoteType]) -> bool {
    types.contains(&note.note_type) && note.kind() != Kind::Task && !note.body.trim().is_empty()
}

/// Returns whether a text has enough meaningful words for a question.
pub fn is_question(text: &str) -> bool {
    Query::parse(text).term_count() >= MIN_WORDS
}

/// Returns whether a text contains the words of a question in order and adjacent.
fn repeats(text: &str, question: &str) -> bool {
    normalised_words(text).contains(&normalised_words(question))
}

/// Returns the lowercase words of a text, each surrounded by single spaces.
fn normalised_words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric());
    words
        .filter(|word| !word.is_empty())
        .fold(String::from(" "), |mut normalised_words, word| {
            normalised_words.push_str(&word.to_lowercase());
            normalised_words.push(' ');
            normalised_words
        })
}

/// Takes items from each project in turn until there are `most`.
fn round_robin<T>(
    items: impl IntoIterator<Item = T>,
    project: impl Fn(&T) -> String,
    most: usize,
) -> Vec<T> {
    let mut pending: BTreeMap<String, VecDeque<T>> = BTreeMap::new();
    for item in items {
        pending.entry(project(&item)).or_default().push_back(item);
    }
    let mut taken = Vec::new();
    while !pending.is_empty() && taken.len() < most {
        pending.retain(|_, items| {
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
    fn a_title_is_a_question_unless_the_body_repeats_it() {
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
    fn projects_take_turns_whatever_the_order_of_notes() {
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
    fn a_note_that_repeats_the_prompt_is_no_answer() {
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
