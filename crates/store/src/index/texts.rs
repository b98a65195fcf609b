//! The texts of a note, for searches and for embedding models.

use anamnesis_text::sanitize::head;

/// About how many bytes of a note a vector stands for: a model reads 256 tokens. What
/// does not fit in so many passages has no vector.
const PASSAGE: usize = 900;
const MAX_PASSAGES: usize = 8;

/// The texts of a note that a search looks at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// The title.
    pub title: String,
    /// The tags, separated by spaces.
    pub tags: String,
    /// Additional search phrases, one per line.
    pub asked: String,
    /// The body.
    pub body: String,
}

impl Texts {
    /// Returns the texts that the vectors of a note stand for: one or more parts of its body, each after
    /// the title, the first one also after `asked`.
    pub fn passages(&self) -> Vec<String> {
        let mut passages = Vec::new();
        let mut passage = format!("{}\n{}\n", self.title, self.asked);
        let mut rest = self.body.as_str();
        while passages.len() < MAX_PASSAGES {
            let room = PASSAGE.saturating_sub(passage.len()).max(PASSAGE / 2);
            let part = beginning(rest, room);
            passage.push_str(part);
            passages.push(passage);
            rest = rest[part.len()..].trim_start();
            if rest.is_empty() {
                break;
            }
            passage = format!("{}\n", self.title);
        }
        passages
    }

    /// Returns all texts.
    pub fn each(&self) -> [&str; 4] {
        [&self.title, &self.tags, &self.asked, &self.body]
    }
}

/// Returns the beginning of a text, at most `limit` bytes, up to the end of a line or word if there is
/// one in its second half.
fn beginning(text: &str, limit: usize) -> &str {
    let part = head(text, limit);
    if part.len() == text.len() {
        return part;
    }
    let end = part.rfind('\n').filter(|end| *end >= limit / 2);
    let end = end.or_else(|| part.rfind(' ').filter(|end| *end >= limit / 2));
    end.map_or(part, |end| &part[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_note_has_several_passages_that_begin_with_its_title() {
        let texts = |body: &str| Texts {
            title: "Deploys".to_owned(),
            asked: "how to release".to_owned(),
            body: body.to_owned(),
            ..Texts::default()
        };
        assert_eq!(
            texts("By tag.").passages(),
            ["Deploys\nhow to release\nBy tag."]
        );
        assert_eq!(texts("").passages(), ["Deploys\nhow to release\n"]);
        let lines: Vec<String> = (0..60)
            .map(|n| format!("Line {n} of the note.\n"))
            .collect();
        let passages = texts(&lines.concat()).passages();
        assert_eq!(passages.len(), 2, "{passages:?}");
        assert!(passages[1].starts_with("Deploys\nLine "), "{}", passages[1]);
        for line in &lines {
            let line = line.trim();
            assert!(passages.iter().any(|text| text.contains(line)), "{line}");
        }
        // No place to split, characters of several bytes, and more than there is room for.
        let passages = texts(&"é".repeat(40_000)).passages();
        assert_eq!(passages.len(), 8);
        assert!(passages.iter().all(|passage| passage.len() <= 910));
    }
}
