//! The text that a purge finds and masks in every file.
//!
//! It is found as it is and in the forms that our files give it: escaped once or twice in JSON,
//! with or without escapes for non-ASCII characters, and in YAML quotation marks. White space in it
//! matches any white space, so line ends and wrapping do not matter. It is not found in another
//! encoding (base64, percent-encoding), in another letter case, or where truncation cut it.
//!
//! Invariant: a masked file does not contain the text, and masking is idempotent.

use std::{collections::BTreeSet, fmt, iter};

use serde_json::Value;

use crate::{
    id::NoteId,
    note::{Note, NoteFile},
};
use anamnesis_text::{private_tokens, redact::MASK};

/// The shortest text, in characters; a shorter one occurs everywhere by chance.
pub const MIN_LENGTH: usize = 4;

/// The longest text, in bytes. A private key has about three thousand.
pub const MAX_LENGTH: usize = 16 * 1024;

/// A part of a note that is searched by itself, has at least this many characters and words. A shorter
/// one occurs elsewhere by chance.
const MIN_PART_LENGTH: usize = 24;
const MIN_PART_WORDS: usize = 4;

/// The shortest text of a note that is searched as a whole, in characters.
const MIN_BODY_LENGTH: usize = 8;

/// Replaces the text in front matter where [`MASK`] would be read as a list.
const PLAIN_MASK: &str = "REDACTED";

/// A text to purge, or several.
///
/// `Debug` does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct PurgePattern {
    texts: Vec<Words>,
    /// The texts that begin with each byte, by their positions.
    by_first_byte: Vec<Vec<usize>>,
    text: String,
}

/// The words of one text, each with its possible forms.
type Words = Vec<Vec<Vec<u8>>>;

/// Why a text cannot be purged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidPattern {
    /// It would match by chance.
    #[error("the text is shorter than {MIN_LENGTH} characters")]
    TooShort,
    /// It is too long for a password or key.
    #[error("the text is longer than {MAX_LENGTH} bytes")]
    TooLong,
    /// The mask would contain it.
    #[error("the text is a part of \"{MASK}\", which would take its place")]
    Mask,
}

/// The text occurs where it cannot be masked: in the note's id, or in a key of its front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the text is a part of what makes the file a note")]
pub struct NotMaskable;

impl fmt::Debug for PurgePattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("PurgePattern")
    }
}

impl PurgePattern {
    /// Creates a pattern from a typed text; surrounding white space is ignored.
    pub fn new(text: &str) -> Result<Self, InvalidPattern> {
        let text = text.trim_ascii();
        if text.chars().count() < MIN_LENGTH {
            return Err(InvalidPattern::TooShort);
        }
        if text.len() > MAX_LENGTH {
            return Err(InvalidPattern::TooLong);
        }
        let pattern = Self::from_texts([text]);
        // Adjacent masks form texts that a single mask does not contain.
        let masks = format!(
            "{MASK}{MASK} {MASK}{PLAIN_MASK}{PLAIN_MASK} {}",
            private_tokens::MASK
        );
        if pattern.is_in(masks.as_bytes()) {
            return Err(InvalidPattern::Mask);
        }
        Ok(pattern)
    }

    /// Creates a pattern from a note: its body, and each part of body and title that is long enough to
    /// belong to no other text. `None` if there is none.
    pub fn from_note(note: &Note) -> Option<Self> {
        let body = note.body.trim();
        let whole = (body.chars().count() >= MIN_BODY_LENGTH).then_some(body);
        let lines = body.lines().chain([note.title.as_str()]);
        let parts = lines.map(without_markup).filter(|part| {
            part.chars().count() >= MIN_PART_LENGTH
                && part.split_whitespace().count() >= MIN_PART_WORDS
        });
        let mut texts: Vec<&str> = whole.into_iter().chain(parts).collect();
        texts.retain(|text| Self::new(text).is_ok());
        let mut seen = BTreeSet::new();
        texts.retain(|text| seen.insert(*text));
        (!texts.is_empty()).then(|| Self::from_texts(texts))
    }

    /// Combines patterns into one that finds what any of them finds.
    pub fn any(patterns: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut patterns = patterns.into_iter();
        let mut all = patterns.next()?;
        for pattern in patterns {
            all.texts.extend(pattern.texts);
        }
        all.by_first_byte = by_first_byte(&all.texts);
        Some(all)
    }

    fn from_texts<'a>(texts: impl IntoIterator<Item = &'a str>) -> Self {
        let mut texts = texts.into_iter().peekable();
        let text = texts.peek().copied().unwrap_or_default().to_owned();
        let words = |text: &str| text.split_ascii_whitespace().map(forms).collect();
        let texts: Vec<Words> = texts.map(words).collect();
        Self {
            by_first_byte: by_first_byte(&texts),
            texts,
            text,
        }
    }

    /// Returns the typed text; the first one of a note.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether bytes contain the text.
    pub fn is_in(&self, bytes: &[u8]) -> bool {
        self.next(bytes, 0).is_some()
    }

    /// Returns the bytes with [`MASK`] in place of the text; `None` if they do not contain it.
    pub fn mask(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.replace(bytes, |_| MASK.as_bytes().to_vec())
    }

    /// Does the same as [`PurgePattern::mask`] for a string.
    pub fn mask_text(&self, text: &str) -> Option<String> {
        let masked = self.mask(text.as_bytes())?;
        Some(String::from_utf8_lossy(&masked).into_owned())
    }

    /// Does the same as [`PurgePattern::mask`] without moving other bytes, for files that are
    /// addressed by offset.
    pub fn mask_in_place(&self, bytes: &[u8]) -> Option<Vec<u8>> {
        self.replace(bytes, |found| vec![b'*'; found.len()])
    }

    /// Returns a note's file with the text masked; `None` if it does not contain it.
    ///
    /// Values are masked as values, so the result is a note if the file was one.
    pub fn mask_note(&self, id: NoteId, bytes: &[u8]) -> Result<Option<Vec<u8>>, NotMaskable> {
        if !self.is_in(bytes) {
            return Ok(None);
        }
        let Ok(file) = NoteFile::parse(bytes, id) else {
            return Ok(self.mask(bytes));
        };
        let rewritten = file.rewrite(&self.masked_values(file.note()));
        let mut masked = rewritten.map_or_else(|_| bytes.to_vec(), String::into_bytes);
        // The rest is in unknown keys, comments or names.
        if let Some(rest) = self.replace(&masked, |_| PLAIN_MASK.as_bytes().to_vec()) {
            masked = rest;
        }
        match NoteFile::parse(&masked, id) {
            Ok(after)
                if after.note().note_type == file.note().note_type
                    && after.keys() == file.keys()
                    && !self.is_in(&masked) =>
            {
                Ok(Some(masked))
            }
            _ => Err(NotMaskable),
        }
    }

    fn masked_values(&self, note: &Note) -> Note {
        let text = |value: &String| self.mask_text(value).unwrap_or_else(|| value.clone());
        let list = |values: &[String]| values.iter().map(text).collect();
        Note {
            title: text(&note.title),
            project: text(&note.project),
            machine_id: text(&note.machine_id),
            tags: list(&note.tags),
            asked: list(&note.asked),
            links: list(&note.links),
            when: list(&note.when),
            instead: note.instead.as_ref().map(text),
            body: text(&note.body),
            ..note.clone()
        }
    }

    fn replace(&self, bytes: &[u8], mask: impl Fn(&[u8]) -> Vec<u8>) -> Option<Vec<u8>> {
        let mut found = self.next(bytes, 0)?;
        let mut out = Vec::with_capacity(bytes.len());
        let mut kept = 0;
        loop {
            let (start, end) = found;
            out.extend_from_slice(bytes.get(kept..start).unwrap_or_default());
            out.extend(mask(bytes.get(start..end).unwrap_or_default()));
            kept = end;
            match self.next(bytes, kept) {
                Some(next) => found = next,
                None => break,
            }
        }
        out.extend_from_slice(bytes.get(kept..).unwrap_or_default());
        Some(out)
    }

    /// Returns the first byte and the byte after the last of the next occurrence: the longest one at
    /// the first position.
    fn next(&self, bytes: &[u8], from: usize) -> Option<(usize, usize)> {
        let rest = bytes.iter().enumerate().skip(from);
        rest.filter_map(|(start, byte)| Some((start, self.by_first_byte.get(usize::from(*byte))?)))
            .find_map(|(start, texts)| {
                let texts = texts.iter().filter_map(|text| self.texts.get(*text));
                let ends = texts.filter_map(|text| text_end(bytes, start, text));
                Some((start, ends.max()?))
            })
    }
}

/// Returns the texts that begin with each byte, by their positions.
fn by_first_byte(texts: &[Words]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new(); 256];
    for (number, text) in texts.iter().enumerate() {
        for form in text.iter().take(1).flatten() {
            let first = form
                .first()
                .and_then(|byte| all.get_mut(usize::from(*byte)));
            if let Some(numbers) = first
                && numbers.last() != Some(&number)
            {
                numbers.push(number);
            }
        }
    }
    all
}

/// Returns a line of markdown without the marks of lists, quotations and headings, and without a label
/// in bold at its start.
fn without_markup(line: &str) -> &str {
    let line = line.trim_start_matches(|mark: char| mark.is_whitespace() || "-*+>#".contains(mark));
    let line = line.split_once(":** ").map_or(line, |(_, text)| text);
    line.trim_end().trim_end_matches('…')
}

/// Returns the end of a text at a position.
fn text_end(bytes: &[u8], start: usize, text: &Words) -> Option<usize> {
    let (first, others) = text.split_first()?;
    let mut end = word_end(bytes, start, first)?;
    for word in others {
        // A word may begin like white space that is escaped.
        let mut gaps = iter::successors(blank_end(bytes, end), |end| blank_end(bytes, *end));
        end = gaps.find_map(|gap| word_end(bytes, gap, word))?;
    }
    Some(end)
}

/// Returns the end of a word at a position, in its longest matching form.
fn word_end(bytes: &[u8], start: usize, word: &[Vec<u8>]) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let matching = word.iter().filter(|form| rest.starts_with(form));
    matching.map(|form| start + form.len()).max()
}

/// Returns the end of a character of white space at a position, escaped or not.
fn blank_end(bytes: &[u8], start: usize) -> Option<usize> {
    let rest = bytes.get(start..)?;
    let backslashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let is_blank = match rest.get(backslashes)? {
        b' ' | b'\t' | b'\r' | b'\n' | b'\x0c' => true,
        b'n' | b'r' | b't' | b'f' => backslashes > 0,
        _ => false,
    };
    is_blank.then_some(start + backslashes + 1)
}

/// Returns the possible forms of a word.
fn forms(word: &str) -> Vec<Vec<u8>> {
    let once = escaped(word);
    let ascii = ascii_escaped(&once);
    let mut forms = vec![
        escaped(&once),
        escaped(&ascii),
        word.replace('\'', "''"),
        ascii,
        once,
        word.to_owned(),
    ];
    forms.sort();
    forms.dedup();
    forms.into_iter().map(String::into_bytes).collect()
}

/// Returns a text as it is written in a JSON string.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Returns a text with all non-ASCII characters escaped, as some JSON writers do.
fn ascii_escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if character.is_ascii() {
            out.push(character);
        } else {
            let mut units = [0; 2];
            for unit in character.encode_utf16(&mut units) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;
    use crate::note::NoteType;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn pattern(text: &str) -> PurgePattern {
        PurgePattern::new(text).unwrap()
    }

    #[test]
    fn a_text_is_found_in_every_form() {
        let json = |text: &str| serde_json::to_string(text).unwrap();
        for (text, kept) in [
            ("s3cr-et", "x s3cr-et y".to_owned()),
            ("  s3cr-et\n", "xs3cr-ety".to_owned()),
            ("a\"b\\c", json("x a\"b\\c y")),
            ("a\"b\\c", json(&json("x a\"b\\c y"))),
            ("it's so", "title: 'it''s so'".to_owned()),
            ("pä\u{1f511}ss", "\"p\\u00e4\\ud83d\\udd11ss\"".to_owned()),
            ("one\ntwo", "one\r\ntwo".to_owned()),
            ("one\ntwo", json("one\r\ntwo")),
            ("one two", "title: one\n  two".to_owned()),
            ("one two", json(&json("one\n\ttwo"))),
            ("one \\r", json(&json("one \\r"))),
        ] {
            let pattern = pattern(text);
            let masked = pattern.mask(kept.as_bytes()).expect(text);
            let masked = String::from_utf8(masked).unwrap();
            assert!(masked.contains(MASK), "{masked}");
            assert!(!pattern.is_in(masked.as_bytes()), "{masked}");
        }
        for (text, other) in [
            ("s3cr-et", "S3cr-et"),
            ("one two", "onetwo"),
            ("abcd", "abc"),
        ] {
            assert!(!pattern(text).is_in(other.as_bytes()), "{text}");
        }
        let masked = pattern("abab").mask_in_place(b"ababab abab").unwrap();
        assert_eq!(masked, b"****ab ****");
        assert_eq!(pattern("abab").mask_in_place(b"xababx").unwrap(), b"x****x");
        assert_eq!(format!("{:?}", pattern("abcd")), "PurgePattern");
    }

    #[test]
    fn invalid_patterns_are_refused() {
        for (text, why) in [
            ("", InvalidPattern::TooShort),
            (" abc ", InvalidPattern::TooShort),
            ("REDACTED", InvalidPattern::Mask),
            ("[REDA", InvalidPattern::Mask),
            ("D][R", InvalidPattern::Mask),
            ("private", InvalidPattern::Mask),
        ] {
            assert_eq!(PurgePattern::new(text), Err(why), "{text}");
        }
        assert_eq!(
            PurgePattern::new(&"x".repeat(MAX_LENGTH + 1)),
            Err(InvalidPattern::TooLong)
        );
    }

    #[test]
    fn the_text_of_a_note_is_found_whole_and_in_its_parts() {
        let id: NoteId = ID.parse().unwrap();
        let now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
        let note = |title: &str, body: &str| Note {
            title: title.to_owned(),
            body: body.to_owned(),
            ..Note::new(id, NoteType::Semantic, now)
        };
        let long = note(
            "The mill closes every second Tuesday…",
            "## Notes\n\n- **Said:** the sluice key hangs behind the door\n- ok\n- cargo test\n",
        );
        let pattern = PurgePattern::from_note(&long).unwrap();
        for (text, is_in) in [
            ("x: \"the sluice key\\n  hangs behind the door.\"", true),
            (
                "the mill: The mill closes every second Tuesday at six",
                true,
            ),
            ("ok", false),
            ("cargo test", false),
            ("## Notes", false),
            ("the sluice key hangs", false),
        ] {
            assert_eq!(pattern.is_in(text.as_bytes()), is_in, "{text}");
        }
        let short = PurgePattern::from_note(&note("x", "hunter-two")).unwrap();
        assert!(short.is_in(b"it is hunter-two."));
        assert_eq!(PurgePattern::from_note(&note("x", "TODO")), None);
        let both = PurgePattern::any([pattern, short]).unwrap();
        let text = "hunter-two and the sluice key hangs behind the door and hunter-two";
        assert_eq!(
            both.mask_text(text).unwrap(),
            "[REDACTED] and [REDACTED] and [REDACTED]"
        );
    }

    #[test]
    fn a_masked_note_is_a_note() {
        let id: NoteId = ID.parse().unwrap();
        let now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
        let note = Note {
            title: "s3cr-et".to_owned(),
            tags: vec!["s3cr-et".to_owned(), "b".to_owned()],
            body: "the key is s3cr-et now".to_owned(),
            ..Note::new(id, NoteType::Semantic, now)
        };
        let text = note
            .render()
            .replace("tags:", "own: s3cr-et\nlist: [s3cr-et]\ntags:");
        let pattern = pattern("s3cr-et");
        let masked = pattern.mask_note(id, text.as_bytes()).unwrap().unwrap();
        let file = NoteFile::parse(&masked, id).unwrap();
        assert_eq!(file.note().title, MASK);
        assert_eq!(file.note().tags, [MASK, "b"]);
        assert_eq!(file.note().body, "the key is [REDACTED] now");
        let text = String::from_utf8(masked.clone()).unwrap();
        assert!(text.contains("own: REDACTED\nlist: [REDACTED]\n"), "{text}");
        assert_eq!(pattern.mask_note(id, &masked), Ok(None));
        // A file that is not a note is masked as plain bytes.
        let broken = pattern.mask_note(id, b"no note: s3cr-et");
        assert_eq!(broken, Ok(Some(b"no note: [REDACTED]".to_vec())));
    }

    #[test]
    fn a_text_in_an_id_or_key_is_refused() {
        let id: NoteId = ID.parse().unwrap();
        let now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
        let text = Note::new(id, NoteType::Semantic, now).render();
        for part in [&ID[20..], "updated_at"] {
            let masked = pattern(part).mask_note(id, text.as_bytes());
            assert_eq!(masked, Err(NotMaskable), "{part}");
        }
    }

    proptest! {
        #[test]
        fn masked_bytes_do_not_contain_the_text(text in "[ab\"\\\\' ]{4,8}", around in "[ab\"\\\\' \n]{0,40}") {
            if let Ok(pattern) = PurgePattern::new(&text) {
                for kept in [around.clone(), format!("{around}{text}{around}"), escaped(&format!("{text}{around}"))] {
                    let masked = pattern.mask(kept.as_bytes()).unwrap_or_else(|| kept.into_bytes());
                    prop_assert!(!pattern.is_in(&masked));
                }
            }
        }

        #[test]
        fn the_written_form_is_found(text in "\\PC{4,12}") {
            if let Ok(pattern) = PurgePattern::new(&text) {
                let once = serde_json::to_string(&text).unwrap();
                prop_assert!(pattern.is_in(once.as_bytes()));
                prop_assert!(pattern.is_in(serde_json::to_string(&once).unwrap().as_bytes()));
            }
        }
    }
}
