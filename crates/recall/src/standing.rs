//! What a person told several sessions, or once as a general rule: the standing instructions.
//!
//! They are derived from the notes of the sessions and stored nowhere else.

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_session::{
    directive::{directive, is_general_rule},
    session_note::{said_in, says_the_same},
};
use anamnesis_text::hash::text_hash;

/// The maximum number of instructions.
const MAX_INSTRUCTIONS: usize = 8;

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
pub const REASON: &str = "you said it in several sessions, or as a general rule";

/// Returns the standing instructions of session notes, which are sorted newest first.
///
/// Of sentences with mostly the same words the newest is returned, so a rule that was changed later
/// does not come back.
pub fn instructions(notes: &[Note]) -> Vec<Instruction> {
    struct Sentence<'a> {
        note: &'a Note,
        text: &'a str,
        stands: bool,
    }
    let mut sentences: Vec<Sentence<'_>> = Vec::new();
    for note in notes {
        // The newest sentence of a note is its last.
        let lasting: Vec<&str> = said_in(&note.body)
            .filter(|text| directive(text).is_some())
            .collect();
        for text in lasting.into_iter().rev() {
            match sentences
                .iter_mut()
                .find(|known| says_the_same(known.text, text))
            {
                Some(known) => known.stands |= known.note.id != note.id,
                None => sentences.push(Sentence {
                    note,
                    text,
                    stands: is_general_rule(text),
                }),
            }
        }
    }
    let standing = sentences.iter().filter(|sentence| sentence.stands);
    let standing = standing.map(|sentence| Instruction {
        note: sentence.note.id,
        hash: text_hash(&sentence.note.body),
        text: sentence.text.to_owned(),
    });
    standing.take(MAX_INSTRUCTIONS).collect()
}

#[cfg(test)]
mod tests {
    use anamnesis_note::note::NoteType;
    use chrono::{DateTime, Utc};

    use super::*;

    fn session(name: &str, said: &[&str]) -> Note {
        let id = NoteId::of_session(name);
        let mut note = Note::new(id, NoteType::Episodic, DateTime::<Utc>::UNIX_EPOCH);
        note.body = format!("**Said:**\n- {}\n\n**Outcome:** Done.", said.join("\n- "));
        note
    }

    fn texts(notes: &[Note]) -> Vec<String> {
        let all = instructions(notes);
        all.into_iter()
            .map(|instruction| instruction.text)
            .collect()
    }

    #[test]
    fn a_general_rule_stands_at_once_and_another_sentence_when_it_is_repeated() {
        let one = session("1", &["we use pnpm for the build", "Never push to main."]);
        assert_eq!(texts(std::slice::from_ref(&one)), ["Never push to main."]);
        let two = session("2", &["the logo is blue", "we use pnpm for the build here"]);
        assert_eq!(
            texts(&[two, one]),
            ["we use pnpm for the build here", "Never push to main."]
        );
    }

    #[test]
    fn the_newest_of_two_rules_about_the_same_wins() {
        let old = session("1", &["always deploy with the script deploy.sh"]);
        let new = session("2", &["never deploy with the script deploy.sh"]);
        let all = instructions(&[new.clone(), old]);
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].note, new.id);
        let many: Vec<String> = (0..12)
            .map(|n| format!("never touch{n} part{n} of{n}"))
            .collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(instructions(&[session("3", &many)]).len(), MAX_INSTRUCTIONS);
    }
}
