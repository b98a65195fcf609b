//! Links between notes: what a note declares, what its text mentions, and what a link is worth.
//!
//! A note declares a link on a line of `links`, `RELATION ID [WEIGHT]`, or by `[[…]]` in its text. A line
//! that is none stays in the note as it is written, and is reported. Links that follow from what
//! notes have in common are [`Edge`]s that nobody writes down.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use crate::{
    id::NoteId,
    note::{Note, UnknownWord},
};
use anamnesis_text::clean::one_line;

/// The longest line that is looked at, in bytes: nobody writes links into a longer one.
const MAX_LINE_LENGTH: usize = 16 * 1024;

/// How many `[[…]]` of a text count, from its beginning on.
pub const MAX_WIKILINKS: usize = 64;

/// The longest title that is looked for, in characters.
const MAX_TITLE_LENGTH: usize = 300;

/// What several links between two notes are worth together, at most.
const MAX_TOGETHER: f64 = 0.9;

/// How one note is related to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Relation {
    /// The other one is the cause.
    CausedBy,
    /// It says more about what the other one says.
    Elaborates,
    /// It belongs to the other one.
    PartOf,
    /// They have to do with each other.
    RelatedTo,
    /// Its text names the other one: `[[…]]`.
    Mentions,
    /// A task that is about the other one.
    About,
    /// It replaces the other one.
    Supersedes,
    /// Only one of the two can be right.
    Contradicts,
    /// A warning about what the other one says.
    WarnsAgainst,
    /// Both come from one session, one after the other.
    Session,
    /// Both name one file.
    File,
    /// Both say much the same.
    Similar,
    /// Both were used together.
    Learned,
}

impl Relation {
    /// Every relation, in the order of the documentation.
    pub const ALL: &'static [Self] = &[
        Self::CausedBy,
        Self::Elaborates,
        Self::PartOf,
        Self::RelatedTo,
        Self::Mentions,
        Self::About,
        Self::Supersedes,
        Self::Contradicts,
        Self::WarnsAgainst,
        Self::Session,
        Self::File,
        Self::Similar,
        Self::Learned,
    ];

    /// The relations that a line of `links` may have. Texts mention, and `supersedes` is a key.
    pub const DECLARABLE: &'static [Self] = &[
        Self::CausedBy,
        Self::Elaborates,
        Self::PartOf,
        Self::RelatedTo,
        Self::About,
        Self::Contradicts,
        Self::WarnsAgainst,
    ];

    /// The relations that one note can be given to another one: a line of `links`, or a replacement.
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

    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CausedBy => "caused-by",
            Self::Elaborates => "elaborates",
            Self::PartOf => "part-of",
            Self::RelatedTo => "related-to",
            Self::Mentions => "mentions",
            Self::About => "about",
            Self::Supersedes => "supersedes",
            Self::Contradicts => "contradicts",
            Self::WarnsAgainst => "warns-against",
            Self::Session => "session",
            Self::File => "file",
            Self::Similar => "similar",
            Self::Learned => "learned",
        }
    }

    /// What a link is worth along its direction and against it, from 0 to 1, unless it says so itself.
    ///
    /// Nothing is recalled over a relation of 0: a replaced note hands over to the one that replaces
    /// it, a contradiction is shown as one, a warning comes up where it is due. Similar notes are
    /// found by the words already. What is derived or learned has the weight that it was made with.
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
            // Use says of each direction by itself what it is worth.
            Self::Learned => (1.0, 0.0),
            Self::Supersedes | Self::Contradicts | Self::WarnsAgainst | Self::Similar => (0.0, 0.0),
        }
    }

    /// Tells whether somebody wrote the link down.
    pub const fn is_declared(self) -> bool {
        !matches!(
            self,
            Self::Session | Self::File | Self::Similar | Self::Learned
        )
    }

    /// Tells whether it says the same from both ends.
    pub const fn is_mutual(self) -> bool {
        matches!(
            self,
            Self::RelatedTo | Self::Contradicts | Self::Session | Self::File | Self::Similar
        )
    }
}

/// The words of [`Relation::DECLARABLE`].
const DECLARABLE_WORDS: &[&str] = &[
    "caused-by",
    "elaborates",
    "part-of",
    "related-to",
    "about",
    "contradicts",
    "warns-against",
];

/// The words of [`Relation::GIVEN`].
const GIVEN_WORDS: &[&str] = &[
    "caused-by",
    "elaborates",
    "part-of",
    "related-to",
    "about",
    "contradicts",
    "warns-against",
    "supersedes",
];

impl FromStr for Relation {
    type Err = UnknownWord;

    fn from_str(text: &str) -> Result<Self, UnknownWord> {
        let found = Self::ALL.iter().find(|relation| relation.as_str() == text);
        found.copied().ok_or_else(|| UnknownWord {
            word: text.to_owned(),
            known: DECLARABLE_WORDS,
        })
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A line of `links`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// How the note is related to the other one.
    pub relation: Relation,
    /// The other one.
    pub target: NoteId,
    /// What it is worth along its direction, above 0 and at most 1, where somebody says so.
    pub weight: Option<f64>,
}

/// Why a line of `links` is no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLink {
    /// The line has not two or three words.
    #[error("not `RELATION ID [WEIGHT]`")]
    Form,
    /// The first word is no relation that a line can have.
    #[error("{0}")]
    Relation(UnknownWord),
    /// The second word is no id.
    #[error("\"{0}\" is not a note id")]
    Target(String),
    /// The third word is no number above 0 and at most 1.
    #[error("\"{0}\" is no weight above 0 and at most 1")]
    Weight(String),
}

/// Reads a relation that a line of `links` may have.
///
/// # Errors
/// When it is none of these.
pub fn declarable(word: &str) -> Result<Relation, UnknownWord> {
    let found = Relation::DECLARABLE
        .iter()
        .find(|relation| relation.as_str() == word);
    found.copied().ok_or_else(|| UnknownWord {
        word: word.to_owned(),
        known: DECLARABLE_WORDS,
    })
}

/// Reads a relation that one note can be given to another one, `supersedes` among them.
///
/// # Errors
/// When it is none of these.
pub fn given(word: &str) -> Result<Relation, UnknownWord> {
    let found = Relation::GIVEN
        .iter()
        .find(|relation| relation.as_str() == word);
    found.copied().ok_or_else(|| UnknownWord {
        word: word.to_owned(),
        known: GIVEN_WORDS,
    })
}

/// Reads a weight: a number above 0 and at most 1.
///
/// # Errors
/// When it is none.
pub fn parse_weight(text: &str) -> Result<f64, InvalidLink> {
    let weight = text.parse::<f64>().ok();
    weight
        .filter(|weight| *weight > 0.0 && *weight <= 1.0)
        .ok_or_else(|| InvalidLink::Weight(text.to_owned()))
}

impl Link {
    /// Declares the link in a note, in the place of one that says the same.
    pub fn declare(&self, note: &mut Note) {
        if self.relation == Relation::Supersedes {
            let id = self.target.to_string();
            if !note.supersedes.contains(&id) {
                note.supersedes.push(id);
            }
            return;
        }
        match note.links.iter_mut().find(|known| self.is_said_by(known)) {
            // What is written otherwise and says the same stays as it is written.
            Some(known) if known.parse() == Ok(*self) => {}
            Some(known) => *known = self.to_string(),
            None => note.links.push(self.to_string()),
        }
    }

    /// Takes the link out of a note, whatever its weight.
    pub fn withdraw(&self, note: &mut Note) {
        if self.relation == Relation::Supersedes {
            let id = self.target.to_string();
            note.supersedes.retain(|known| *known != id);
        } else {
            note.links.retain(|known| !self.is_said_by(known));
        }
    }

    /// Tells whether a line says the same of the same note, whatever its weight.
    fn is_said_by(&self, line: &str) -> bool {
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

/// What stands between `[[` and `]]`, as far as it names a note.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mention {
    /// A note by its id.
    Id(NoteId),
    /// A note by its title, as [`title_key`] has it.
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

/// The form of a title in which it is compared: one line, without upper case.
pub fn title_key(title: &str) -> String {
    let line = one_line(title).to_lowercase();
    match line.char_indices().nth(MAX_TITLE_LENGTH) {
        Some((end, _)) => line[..end].to_owned(),
        None => line,
    }
}

/// The notes that a text names by `[[id]]`, `[[title]]` or `[[title|shown]]`, each once, in order.
///
/// What stands in a code block or between back-ticks names nothing, and neither does what goes over
/// the end of a line. At most [`MAX_WIKILINKS`] are looked at.
pub fn mentions(text: &str) -> Vec<Mention> {
    let mut found: Vec<Mention> = Vec::new();
    let mut looked_at = 0;
    for line in prose(text).filter(|line| line.len() <= MAX_LINE_LENGTH) {
        let mut rest = line;
        while let Some((inner, behind)) = next_wikilink(rest) {
            rest = behind;
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

/// The lines of a text that are not in a fenced code block.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    // The sign and the length of the fence that is open.
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
                // A line such as ```x``` is code within a line and opens nothing.
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

/// What stands in the next `[[…]]` of a line outside back-ticks, and what stands behind it.
fn next_wikilink(line: &str) -> Option<(&str, &str)> {
    let mut rest = line;
    loop {
        let at = rest.find(['`', '['])?;
        let from = &rest[at..];
        if from.starts_with('`') {
            let ticks = from.len() - from.trim_start_matches('`').len();
            let (open, behind) = from.split_at(ticks);
            // Back-ticks that nothing closes are back-ticks.
            rest = closing(behind, open.len()).unwrap_or(behind);
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

/// What stands behind the next run of exactly `ticks` back-ticks.
fn closing(text: &str, ticks: usize) -> Option<&str> {
    let mut rest = text;
    loop {
        let run = &rest[rest.find('`')?..];
        let behind = run.trim_start_matches('`');
        if run.len() - behind.len() == ticks {
            return Some(behind);
        }
        rest = behind;
    }
}

/// What a note declares: its links, one for each relation and target, and the lines that are none.
///
/// Of two lines that say the same the one of greater weight counts. A link to the note itself is none.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Declared {
    /// The links to notes named by id, mentions included.
    pub links: Vec<Link>,
    /// Titles that the text mentions, as [`title_key`] has them.
    pub titles: Vec<String>,
    /// Lines that are no links, as written, and why.
    pub invalid: Vec<(String, InvalidLink)>,
}

impl Declared {
    /// Reads what a note declares.
    pub fn of(note: &Note) -> Self {
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

/// A link between two notes, whoever says so.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge {
    /// The note that it goes out from. Of a mutual relation: either of them.
    pub from: NoteId,
    /// The note that it goes to.
    pub to: NoteId,
    /// How they are related.
    pub relation: Relation,
    /// What it is worth along its direction, where that is not what the relation is worth.
    pub weight: Option<f64>,
}

impl Edge {
    /// What it is worth to somebody who comes from `end`, from 0 to 1; 0 where it has no such end.
    ///
    /// A weight of its own counts along the direction; against it, it keeps the relation's proportion.
    /// Similar notes have nothing but what they have in common, the same from both ends.
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

    /// The other note, seen from `end`.
    pub fn other(&self, end: NoteId) -> NoteId {
        if end == self.from { self.to } else { self.from }
    }
}

/// How many notes may cite a file that is to join them.
pub const MAX_CITING: usize = 10;

/// The links between the notes that cite one file; none where more than [`MAX_CITING`] do: that file
/// says nothing about what they have in common.
pub fn file_edges(citing: &[NoteId]) -> Vec<Edge> {
    let citing: BTreeSet<NoteId> = citing.iter().copied().collect();
    let count = citing.len();
    if count > MAX_CITING {
        return Vec::new();
    }
    #[expect(clippy::cast_precision_loss, reason = "at most ten")]
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

/// What several links between two notes are worth together: more than the strongest, less than 1.
pub fn together(weights: impl IntoIterator<Item = f64>) -> f64 {
    let (mut strongest, mut missing) = (0.0_f64, 1.0);
    for weight in weights {
        strongest = strongest.max(weight);
        missing *= 1.0 - weight;
    }
    (1.0 - missing).min(MAX_TOGETHER).max(strongest)
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
    fn a_line_is_read_and_written() {
        for line in [
            "related-to 01ARZ3NDEKTSV4RRFFQ69G5FAV",
            "caused-by 01ARZ3NDEKTSV4RRFFQ69G5FAV 0.5",
            "contradicts 01ARZ3NDEKTSV4RRFFQ69G5FAV 1",
        ] {
            assert_eq!(line.parse::<Link>().unwrap().to_string(), line);
        }
    }

    #[test]
    fn what_is_no_link_says_why() {
        for (line, reason) in [
            ("", "not `RELATION ID [WEIGHT]`"),
            ("related-to", "not `RELATION ID [WEIGHT]`"),
            (
                "about 01ARZ3NDEKTSV4RRFFQ69G5FAV 0.5 x",
                "not `RELATION ID [WEIGHT]`",
            ),
            // Nobody declares what is derived, and what replaces a note is a key.
            (
                "session 01ARZ3NDEKTSV4RRFFQ69G5FAV",
                "\"session\" is none of caused-by, elaborates, part-of, related-to, about, contradicts, \
                 warns-against",
            ),
            (
                "supersedes 01ARZ3NDEKTSV4RRFFQ69G5FAV",
                "\"supersedes\" is none of caused-by, elaborates, part-of, related-to, about, \
                 contradicts, warns-against",
            ),
            ("about G5FAV", "\"G5FAV\" is not a note id"),
            (
                "about 01ARZ3NDEKTSV4RRFFQ69G5FAV 0",
                "\"0\" is no weight above 0 and at most 1",
            ),
            (
                "about 01ARZ3NDEKTSV4RRFFQ69G5FAV NaN",
                "\"NaN\" is no weight above 0 and at most 1",
            ),
        ] {
            assert_eq!(line.parse::<Link>().unwrap_err().to_string(), reason);
        }
    }

    #[test]
    fn wikilinks_of_a_text() {
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
            // Text order, in brackets of all kinds.
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
    fn what_a_note_declares() {
        let mut note = Note::new(id(0), NoteType::Semantic, DateTime::UNIX_EPOCH);
        note.links = vec![
            format!("related-to {} 0.3", id(1)),
            format!("related-to {}", id(1)),
            format!("about {}", id(0)),
            "depends-on x".to_owned(),
        ];
        note.body = format!("[[{}]] [[Title]]", id(2));
        let declared = Declared::of(&note);
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
    fn a_link_has_a_weight_from_each_end() {
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
        let learned = edge(Relation::Learned, Some(0.3));
        assert_eq!(
            [1, 2].map(|end| percent(learned.weight_from(id(end)))),
            [30, 0]
        );
        // Nobody can make a contradiction something that is recalled along.
        let disputed = edge(Relation::Contradicts, Some(1.0));
        assert_eq!(
            [1, 2].map(|end| percent(disputed.weight_from(id(end)))),
            [0, 0]
        );
    }

    #[test]
    fn a_file_joins_the_few_notes_that_cite_it() {
        let citing = |count: u8| file_edges(&(0..count).map(id).collect::<Vec<_>>());
        assert!(citing(1).is_empty());
        assert!((citing(3)[0].weight_from(citing(3)[0].to) - 0.2).abs() < 1e-9);
        assert_eq!(
            (citing(3).len(), citing(10).len(), citing(11).len()),
            (3, 45, 0)
        );
    }

    #[test]
    fn links_add_up_below_one() {
        assert!((together([0.5, 0.6]) - 0.8).abs() < 1e-9);
        assert!((together([0.8, 0.8, 0.8]) - 0.9).abs() < 1e-9);
        // One link is worth what it is worth, and a second one takes nothing from it.
        assert!((together([1.0]) - 1.0).abs() < 1e-9);
        assert!((together([1.0, 0.5]) - 1.0).abs() < 1e-9);
        assert!(together([]).abs() < 1e-9);
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
        fn a_link_reads_what_it_writes(relation in 0..Relation::DECLARABLE.len(), text in any::<String>(), weight in prop::option::of(0.001..=1.0_f64)) {
            let link = Link { relation: Relation::DECLARABLE[relation], target: NoteId::made_of(&text), weight };
            prop_assert_eq!(link.to_string().parse::<Link>(), Ok(link));
        }

        #[test]
        fn any_line_is_read(line in any::<String>()) {
            let _ = line.parse::<Link>();
        }
    }
}
