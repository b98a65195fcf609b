//! Links between notes: declared links, mentions in a text, and the weights of links.
//!
//! A note declares a link by a line of `links`, `RELATION ID [WEIGHT]`, or by `[[…]]` in its text.
//! An invalid line is kept as written and reported. Links derived from what notes have in common
//! are [`Edge`]s that no note contains.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use crate::{
    id::NoteId,
    note::{Note, UnknownWord, in_json, words},
};
use anamnesis_text::{clean::one_line, truncate::first_characters};
use serde::Serialize;

/// The longest line that is searched for links, in bytes. Nobody writes links into a longer one.
const MAX_LINE_LENGTH: usize = 16 * 1024;

/// The most `[[…]]` of a text that count, from its start.
pub const MAX_WIKILINKS: usize = 64;

/// The longest title that is compared, in characters.
const MAX_TITLE_LENGTH: usize = 300;

/// The highest combined weight of several links between two notes.
const MAX_COMBINED_WEIGHT: f64 = 0.9;

words! {
    /// How one note is related to another, in the order of the documentation.
    Relation {
        /// The other note is the cause.
        CausedBy = "caused-by",
        /// It adds details to the other note.
        Elaborates = "elaborates",
        /// It is part of the other note.
        PartOf = "part-of",
        /// They are about related topics.
        RelatedTo = "related-to",
        /// Its text names the other note: `[[…]]`.
        Mentions = "mentions",
        /// A task about the other note.
        About = "about",
        /// It replaces the other note.
        Supersedes = "supersedes",
        /// They may contradict each other.
        Contradicts = "contradicts",
        /// A warning about the other note's topic.
        WarnsAgainst = "warns-against",
        /// Consecutive notes of one session.
        Session = "session",
        /// Both cite the same file.
        File = "file",
        /// Their texts are similar.
        Similar = "similar",
    }
}

in_json! { Relation, Self::GIVEN, Self::as_str, given; }

impl Relation {
    /// The relations that a line of `links` may have. Mentions are in the text, and `supersedes` is
    /// a key.
    pub const DECLARABLE: &'static [Self] = match Self::GIVEN {
        [declarable @ .., Self::Supersedes] => declarable,
        _ => &[],
    };

    /// The relations that a person or agent can set: those of `links`, and `supersedes`.
    pub const GIVEN: &'static [Self] = &[
        Self::CausedBy,
        Self::Elaborates,
        Self::PartOf,
        Self::RelatedTo,
        Self::About,
        Self::Contradicts,
        Self::WarnsAgainst,
        Self::Supersedes,
    ];

    /// Returns the default weights along and against the direction, from 0 to 1.
    ///
    /// Recall does not follow a relation of weight 0: a replaced note is represented by its
    /// successor, a contradiction is shown as such, a warning comes up by its triggers, and similar
    /// notes are found by their words. Derived edges have their own weights.
    pub const fn weights(self) -> (f64, f64) {
        match self {
            Self::CausedBy => (1.0, 0.8),
            Self::Elaborates => (0.9, 0.9),
            Self::PartOf => (0.85, 0.6),
            Self::RelatedTo => (0.8, 0.8),
            Self::Mentions => (0.6, 0.6),
            Self::About => (0.6, 0.3),
            Self::Session => (0.5, 0.5),
            Self::File => (0.4, 0.4),
            Self::Supersedes | Self::Contradicts | Self::WarnsAgainst | Self::Similar => (0.0, 0.0),
        }
    }

    /// Returns whether it is declared in a note rather than derived.
    pub const fn is_declared(self) -> bool {
        !matches!(self, Self::Session | Self::File | Self::Similar)
    }

    /// Returns whether it is symmetric.
    pub const fn is_mutual(self) -> bool {
        matches!(
            self,
            Self::RelatedTo | Self::Contradicts | Self::Session | Self::File | Self::Similar
        )
    }
}

/// A declared link: a line of `links`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// How the note is related to the target.
    pub relation: Relation,
    /// The target.
    pub target: NoteId,
    /// The declared weight along its direction, above 0 and at most 1.
    pub weight: Option<f64>,
}

/// Why a line of `links` is not a link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLink {
    /// The line does not have two or three words.
    #[error("expected `RELATION ID [WEIGHT]`")]
    Form,
    /// The first word is not a relation of `links`.
    #[error("{0}")]
    Relation(UnknownWord),
    /// The second word is not an id.
    #[error("\"{0}\" is not a note id")]
    Target(String),
    /// The third word is not a number above 0 and at most 1.
    #[error("expected a weight above 0 and at most 1, got \"{0}\"")]
    Weight(String),
}

/// Parses a relation of `links`.
pub fn declarable(word: &str) -> Result<Relation, UnknownWord> {
    parse_among(word, Relation::DECLARABLE)
}

/// Parses a relation that can be set, including `supersedes`.
pub fn given(word: &str) -> Result<Relation, UnknownWord> {
    parse_among(word, Relation::GIVEN)
}

fn parse_among(word: &str, relations: &[Relation]) -> Result<Relation, UnknownWord> {
    let found = relations.iter().find(|relation| relation.as_str() == word);
    found.copied().ok_or_else(|| UnknownWord {
        word: word.to_owned(),
        known: relations.iter().map(|relation| relation.as_str()).collect(),
    })
}

/// Parses a weight: a number above 0 and at most 1.
pub fn parse_weight(text: &str) -> Result<f64, InvalidLink> {
    let weight = text.parse::<f64>().ok();
    weight
        .filter(|weight| *weight > 0.0 && *weight <= 1.0)
        .ok_or_else(|| InvalidLink::Weight(text.to_owned()))
}

impl Link {
    /// Declares the link in a note; replaces a link with the same relation and target.
    pub fn declare(&self, note: &mut Note) {
        if self.relation == Relation::Supersedes {
            let id = self.target.to_string();
            if !note.supersedes.contains(&id) {
                note.supersedes.push(id);
            }
            return;
        }
        match note
            .links
            .iter_mut()
            .find(|known| self.is_declared_by(known))
        {
            // An equal link in another spelling is kept as written.
            Some(known) if known.parse() == Ok(*self) => {}
            Some(known) => *known = self.to_string(),
            None => note.links.push(self.to_string()),
        }
    }

    /// Removes the link from a note, whatever its weight.
    pub fn withdraw(&self, note: &mut Note) {
        if self.relation == Relation::Supersedes {
            let id = self.target.to_string();
            note.supersedes.retain(|known| *known != id);
        } else {
            note.links.retain(|known| !self.is_declared_by(known));
        }
    }

    /// Returns whether a line has the same relation and target.
    fn is_declared_by(&self, line: &str) -> bool {
        line.parse::<Self>()
            .is_ok_and(|known| (known.relation, known.target) == (self.relation, self.target))
    }
}

impl FromStr for Link {
    type Err = InvalidLink;

    fn from_str(line: &str) -> Result<Self, InvalidLink> {
        let mut words = line.split_whitespace();
        let (Some(relation), Some(target), weight, None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(InvalidLink::Form);
        };
        Ok(Self {
            relation: declarable(relation).map_err(InvalidLink::Relation)?,
            target: target
                .parse()
                .map_err(|_| InvalidLink::Target(target.to_owned()))?,
            weight: weight.map(parse_weight).transpose()?,
        })
    }
}

impl fmt::Display for Link {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.relation, self.target)?;
        match self.weight {
            Some(weight) => write!(formatter, " {weight}"),
            None => Ok(()),
        }
    }
}

/// The reference in `[[…]]`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mention {
    /// A note's id.
    Id(NoteId),
    /// A note's title, as a [`title_key`].
    Title(String),
}

impl FromStr for Mention {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(text
            .trim()
            .parse()
            .map_or_else(|_| Self::Title(title_key(text)), Self::Id))
    }
}

/// Returns the form of a title in which it is compared: one line in lower case, truncated.
pub fn title_key(title: &str) -> String {
    let line = one_line(title).to_lowercase();
    first_characters(&line, MAX_TITLE_LENGTH).to_owned()
}

/// Returns the notes that a text mentions by `[[id]]`, `[[title]]` or `[[title|label]]`, in order
/// and without duplicates.
///
/// Code blocks, code spans and brackets that span lines do not count. At most [`MAX_WIKILINKS`] are
/// read.
pub fn mentions(text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut looked_at = 0;
    for line in prose(text).filter(|line| line.len() <= MAX_LINE_LENGTH) {
        let mut rest = line;
        while let Some((inner, after)) = next_wikilink(rest) {
            rest = after;
            looked_at += 1;
            if looked_at > MAX_WIKILINKS {
                return found;
            }
            let name = inner.split('|').next().unwrap_or_default();
            let Ok(mention) = name.parse::<Mention>();
            let is_empty = mention == Mention::Title(String::new());
            if !is_empty && !found.contains(&mention) {
                found.push(mention);
            }
        }
    }
    found
}

/// Returns the lines of a text outside fenced code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    // The character and the length of the open fence.
    let mut fence: Option<(char, usize)> = None;
    text.lines().filter(move |line| {
        let trimmed = line.trim_start();
        let sign = trimmed.chars().next().filter(|sign| "`~".contains(*sign));
        let length = sign.map_or(0, |sign| trimmed.chars().take_while(|c| *c == sign).count());
        match (fence, sign) {
            (Some((open, open_length)), Some(sign))
                if sign == open
                    && length >= open_length
                    && trimmed.trim_start_matches(sign).trim().is_empty() =>
            {
                fence = None;
                false
            }
            (Some(_), _) => false,
            (None, Some(sign)) if length >= 3 => {
                // A line such as ```x``` is a code span and opens no block.
                let info = trimmed.trim_start_matches(sign);
                if sign == '~' || !info.contains('`') {
                    fence = Some((sign, length));
                    return false;
                }
                true
            }
            (None, _) => true,
        }
    })
}

/// Returns the content of the next `[[…]]` of a line outside code spans, and the rest of the line.
fn next_wikilink(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    loop {
        let at = rest.find(['`', '['])?;
        let from = &rest[at..];
        if from.starts_with('`') {
            let ticks = from.len() - from.trim_start_matches('`').len();
            let (open, after) = from.split_at(ticks);
            // Unclosed backticks are plain text.
            rest = closing(after, open.len()).unwrap_or(after);
        } else if let Some(inner) = from.strip_prefix("[[") {
            let end = inner.find(['[', ']', '`']);
            match end.and_then(|end| Some((&inner[..end], inner[end..].strip_prefix("]]")?))) {
                Some(found) => return Some(found),
                None => rest = &from[1..],
            }
        } else {
            rest = &from[1..];
        }
    }
}

/// Returns the text after the next run of exactly `ticks` backticks.
fn closing(text: &str, ticks: usize) -> Option<&str> {
    let mut rest = text;
    loop {
        let run = &rest[rest.find('`')?..];
        let after = run.trim_start_matches('`');
        if run.len() - after.len() == ticks {
            return Some(after);
        }
        rest = after;
    }
}

/// The links that a note declares, one per relation and target.
///
/// Of two lines with the same relation and target the greater weight counts. Links of a note to
/// itself are ignored.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DeclaredLinks {
    /// The links to ids, including mentions.
    pub links: Vec<Link>,
    /// The mentioned titles, as [`title_key`]s.
    pub titles: Vec<String>,
    /// Invalid lines as written, and why they are invalid.
    pub invalid: Vec<(String, InvalidLink)>,
}

impl DeclaredLinks {
    /// Reads the links that a note declares.
    pub fn from_note(note: &Note) -> Self {
        let mut links: BTreeMap<(Relation, NoteId), Option<f64>> = BTreeMap::new();
        let mut declared = Self::default();
        for line in &note.links {
            match line.parse::<Link>() {
                Ok(link) => {
                    let weight = links.entry((link.relation, link.target)).or_insert(None);
                    if link.weight > *weight {
                        *weight = link.weight;
                    }
                }
                Err(error) => declared.invalid.push((line.clone(), error)),
            }
        }
        for mention in mentions(&note.body) {
            match mention {
                Mention::Id(target) => {
                    links.entry((Relation::Mentions, target)).or_insert(None);
                }
                Mention::Title(title) => declared.titles.push(title),
            }
        }
        declared.links = links
            .into_iter()
            .filter(|((_, target), _)| *target != note.id)
            .map(|((relation, target), weight)| Link {
                relation,
                target,
                weight,
            })
            .collect();
        declared
    }
}

/// A link between two notes, declared or derived.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Edge {
    /// Its source; either end of a symmetric relation.
    pub from: NoteId,
    /// How they are related.
    pub relation: Relation,
    /// Its target.
    pub to: NoteId,
    /// Its weight along its direction, if that differs from the relation's.
    #[serde(skip)]
    pub weight: Option<f64>,
}

impl Edge {
    /// Returns its weight seen from `end`, from 0 to 1; 0 if `end` is not one of its ends.
    ///
    /// An own weight applies along the direction; against it, it is scaled by the relation's ratio.
    /// Similar notes have only their own weight, the same from both ends.
    pub fn weight_from(&self, end: NoteId) -> f64 {
        if self.relation == Relation::Similar {
            let has_end = end == self.from || end == self.to;
            return self.weight.filter(|_| has_end).unwrap_or(0.0);
        }
        let (forward, back) = self.relation.weights();
        let own = self.weight.filter(|_| forward > 0.0);
        if end == self.from {
            own.unwrap_or(forward)
        } else if end == self.to {
            own.map_or(back, |weight| weight * back / forward)
        } else {
            0.0
        }
    }

    /// Returns the other end, seen from `end`.
    pub fn other(&self, end: NoteId) -> NoteId {
        if end == self.from { self.to } else { self.from }
    }
}

/// The most notes citing a file that are linked by it.
pub const MAX_CITING: usize = 10;

/// Returns the links between the notes that cite one file; empty if more than [`MAX_CITING`] do,
/// because such a file does not relate them.
pub fn file_edges(citing: &[NoteId]) -> Vec<Edge> {
    let citing: BTreeSet<NoteId> = citing.iter().copied().collect();
    let count = citing.len();
    if count > MAX_CITING {
        return Vec::new();
    }
    let weight = Relation::File.weights().0 / (1.0 + count as f64).log2();
    let pairs = citing.iter().enumerate();
    pairs
        .flat_map(|(place, from)| citing.iter().skip(place + 1).map(move |to| (*from, *to)))
        .map(|(from, to)| Edge {
            from,
            to,
            relation: Relation::File,
            weight: Some(weight),
        })
        .collect()
}

/// Combines the weights of several links between two notes (noisy or): at least the strongest, and
/// below 1.
pub fn combined_weight(weights: impl IntoIterator<Item = f64>) -> f64 {
    let (mut strongest, mut missing) = (0.0_f64, 1.0);
    for weight in weights {
        strongest = strongest.max(weight);
        missing *= 1.0 - weight;
    }
    (1.0 - missing).min(MAX_COMBINED_WEIGHT).max(strongest)
}

#[cfg(test)]
mod tests {
    use chrono::DateTime;
    use proptest::prelude::*;

    use super::*;
    use crate::note::NoteType;

    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

    fn id(number: u8) -> NoteId {
        NoteId::made_of(&number.to_string())
    }

    #[test]
    fn lines_read_back_equal() {
        for line in [
            "related-to 01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "caused-by 01ARZ3NDEKTSV4RRFFQ69G5FAV 0.5",
            "contradicts 01ARZ3NDEKTSV4RRFFQ69G5FAV 1",
        ] {
            assert_eq!(line.parse::<Link>().unwrap().to_string(), line);
        }
    }

    #[test]
    fn invalid_links_say_why() {
        for (line, reason) in [
            ("", "expected `RELATION ID [WEIGHT]`"),
            ("related-to", "expected `RELATION ID [WEIGHT]`"),
            (
                "about 01ARZ3NDEKTSV4RRFFQ69G5FAV 0.5 x",
                "expected `RELATION ID [WEIGHT]`",
            ),
            // Derived relations cannot be declared, and `supersedes` is a key.
            (
                "session 01ARZ3NDEKTSV4RRFFQ69G5FAV",
                "expected one of caused-by, elaborates, part-of, related-to, about, contradicts, \
                 warns-against, got \"session\"",
            ),
            (
                "supersedes 01ARZ3NDEKTSV4RRFFQ69G5FAV",
                "expected one of caused-by, elaborates, part-of, related-to, about, \
                 contradicts, warns-against, got \"supersedes\"",
            ),
            ("about G5FAV", "\"G5FAV\" is not a note id"),
            (
                "about 01ARZ3NDEKTSV4RRFFQ69G5FAV 0",
                "expected a weight above 0 and at most 1, got \"0\"",
            ),
            (
                "about 01ARZ3NDEKTSV4RRFFQ69G5FAV NaN",
                "expected a weight above 0 and at most 1, got \"NaN\"",
            ),
        ] {
            assert_eq!(line.parse::<Link>().unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn wikilinks_are_found() {
        let titles = |text: &str| -> Vec<String> {
            mentions(text)
                .into_iter()
                .map(|mention| match mention {
                    Mention::Id(id) => id.to_string(),
                    Mention::Title(title) => title,
                })
                .collect()
        };
        for (text, expected) in [
            ("see [[Rate  Limits]].", &["rate limits"][..]),
            ("[[a|shown]] [[ B ]] [[a]]", &["a", "b"]),
            ("[[01ARZ3NDEKTSV4RRFFQ69G5FAV]]", &[ID]),
            // Brackets of all kinds, in text order.
            ("[[[x]] [[y]]] ![[z]] [l](u)", &["x", "y", "z"]),
            ("`[[a]]` ``b ` [[c]]`` [[d]] ` [[e]]", &["d", "e"]),
            (
                "```sh\n[[ -f x ]] && y\n```\n[[real]]\n~~~\n[[no]]\n```\n[[no]]\n~~~\n[[yes]]",
                &["real", "yes"],
            ),
            ("```x``` [[a]]", &["a"]),
            ("[[]] [[ ]] [[|x]] [[a\nb]] [[a]b]] [[open", &[]),
            ("~~~\n[[never closed]]", &[]),
        ] {
            assert_eq!(titles(text), expected, "{text}");
        }
        let many: String = (0..1000).map(|n| format!("[[note {n}]] ")).collect();
        assert_eq!(mentions(&many).len(), MAX_WIKILINKS);
    }

    #[test]
    fn declared_links_are_read() {
        let mut note = Note::new(id(0), NoteType::Semantic, DateTime::UNIX_EPOCH);
        note.links = vec![
            format!("related-to {} 0.3", id(1)),
            format!("related-to {}", id(1)),
            format!("about {}", id(0)),
            "depends-on x".to_owned(),
        ];
        note.body = format!("[[{}]] [[Title]]", id(2));
        let declared = DeclaredLinks::from_note(&note);
        let lines: Vec<String> = declared.links.iter().map(Link::to_string).collect();
        assert_eq!(
            lines,
            [
                format!("related-to {} 0.3", id(1)),
                format!("mentions {}", id(2))
            ]
        );
        assert_eq!(declared.titles, ["title"]);
        assert_eq!(declared.invalid[0].0, "depends-on x");
    }

    #[expect(clippy::cast_possible_truncation, reason = "from 0 to 100")]
    fn percent(weight: f64) -> i32 {
        (100.0 * weight).round() as i32
    }

    #[test]
    fn weights_depend_on_the_direction() {
        let edge = |relation, weight| Edge {
            from: id(1),
            to: id(2),
            relation,
            weight,
        };
        let part = edge(Relation::PartOf, None);
        assert_eq!(
            [1, 2, 3].map(|end| percent(part.weight_from(id(end)))),
            [85, 60, 0]
        );
        let half = edge(Relation::CausedBy, Some(0.5));
        assert_eq!(
            [1, 2].map(|end| percent(half.weight_from(id(end)))),
            [50, 40]
        );
        // A weight cannot make recall follow a contradiction.
        let disputed = edge(Relation::Contradicts, Some(1.0));
        assert_eq!(
            [1, 2].map(|end| percent(disputed.weight_from(id(end)))),
            [0, 0]
        );
    }

    #[test]
    fn a_file_links_the_few_notes_that_cite_it() {
        let citing = |count: u8| file_edges(&(0..count).map(id).collect::<Vec<_>>());
        assert!(citing(1).is_empty());
        assert!((citing(3)[0].weight_from(citing(3)[0].to) - 0.2).abs() < 1e-9);
        assert_eq!(
            (citing(3).len(), citing(10).len(), citing(11).len()),
            (3, 45, 0)
        );
    }

    #[test]
    fn combined_weights_stay_below_one() {
        assert!((combined_weight([0.5, 0.6]) - 0.8).abs() < 1e-9);
        assert!((combined_weight([0.8, 0.8, 0.8]) - 0.9).abs() < 1e-9);
        // A single link keeps its weight, and a second one does not reduce it.
        assert!((combined_weight([1.0]) - 1.0).abs() < 1e-9);
        assert!((combined_weight([1.0, 0.5]) - 1.0).abs() < 1e-9);
        assert!(combined_weight([]).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(?s)([\\[\\]`~|a\n]|.){0,300}") {
            let found = mentions(&text);
            prop_assert!(found.len() <= MAX_WIKILINKS);
            for mention in found {
                if let Mention::Title(title) = mention {
                    prop_assert!(!title.is_empty() && !title.contains(['[', ']', '|', '\n']));
                    prop_assert_eq!(&title_key(&title), &title);
                }
            }
        }

        #[test]
        fn any_link_reads_back_equal(relation in 0..Relation::DECLARABLE.len(), text in any::<String>(), weight in prop::option::of(0.001..=1.0_f64)) {
            let link = Link { relation: Relation::DECLARABLE[relation], target: NoteId::made_of(&text), weight };
            prop_assert_eq!(link.to_string().parse::<Link>(), Ok(link));
        }

        #[test]
        fn any_line_is_read(line in any::<String>()) {
            let _ = line.parse::<Link>();
        }
    }
}
