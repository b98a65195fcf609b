//! Receipts: how a session used the notes it was shown, as lines that merge without conflicts.
//!
//! A receipt is immutable and has a unique key, so a set of receipts only grows, and order and
//! repetition do not matter. It contains ids, counts and project keys; never text of a prompt,
//! command, path or note, and never the id of a machine-local note, because it takes only a
//! [`PortableId`]. Lines may come from other machines, so unknown fields and later versions are
//! ignored.

mod fold;
mod usage;

pub use self::{
    fold::{
        AliasVerdict, Aliases, Counts, Fold, FoldFile, Month, NoteCounts, PairCounts, ReceiptSource,
    },
    usage::{LocalReceipt, Usage},
};

use std::{fmt, str::FromStr};

use anamnesis_text::hash::hex;
use chrono::{DateTime, Datelike as _, SecondsFormat, SubsecRound as _, Utc};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use ulid::Ulid;

use crate::{
    id::NoteId,
    note::{GLOBAL, Scope},
    project_key,
};

/// The version of the lines that are written.
const VERSION: u64 = 1;

/// The longest line that is written, in bytes with its line end, so that one `write` is atomic.
pub const MAX_LINE_LENGTH: usize = 4096;

/// The longest line that is read, in bytes. Later versions may write longer lines.
const MAX_READ_LENGTH: usize = 4 * MAX_LINE_LENGTH;

/// The most used notes in a line. Their pairs are counted, so the work is quadratic.
const MAX_USED: usize = 12;

/// The id of a note that may leave this machine.
///
/// It comes from a note's id with its scope, or from a synchronized receipt. Counts of
/// [`LocalReceipt`]s go into the index of this machine only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortableId(NoteId);

impl PortableId {
    /// Returns the id of a portable note; `None` for a machine-local one.
    pub fn new(id: NoteId, scope: Scope) -> Option<Self> {
        (scope == Scope::Portable).then_some(Self(id))
    }

    /// Returns the note's id.
    pub fn id(self) -> NoteId {
        self.0
    }
}

impl fmt::Display for PortableId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The unique key of a receipt: a ULID of the time when it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReceiptKey(Ulid);

impl ReceiptKey {
    fn generate(now: DateTime<Utc>) -> Self {
        let milliseconds = u64::try_from(now.timestamp_millis()).unwrap_or(0);
        Self(Ulid::from_parts(milliseconds, Ulid::generate().random()))
    }

    /// Derives the key of a further line of the same receipt. It is deterministic, so that writing
    /// a receipt again gives the same lines.
    fn part(self, number: usize) -> Self {
        if number == 0 {
            return self;
        }
        let digest = Sha256::digest(format!("{self} {number}"));
        let mut random = [0_u8; 16];
        random.copy_from_slice(&digest[..16]);
        Self(Ulid::from_parts(
            self.0.timestamp_ms(),
            u128::from_be_bytes(random),
        ))
    }
}

impl fmt::Display for ReceiptKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

impl FromStr for ReceiptKey {
    type Err = InvalidReceipt;

    fn from_str(text: &str) -> Result<Self, InvalidReceipt> {
        let key = Self(Ulid::from_string(text).map_err(|_| InvalidReceipt)?);
        // `Ulid` accepts other spellings; a key has one.
        (key.to_string() == text)
            .then_some(key)
            .ok_or(InvalidReceipt)
    }
}

/// A salted hash of a session, which can be counted but not traced back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionMark([u8; 6]);

impl SessionMark {
    /// Returns the mark of a session. The salt never leaves the machine.
    pub fn new(salt: &str, session: &str) -> Self {
        let digest = Sha256::new()
            .chain_update(salt.len().to_le_bytes())
            .chain_update(salt)
            .chain_update(session)
            .finalize();
        let mut mark = [0_u8; 6];
        mark.copy_from_slice(&digest[..6]);
        Self(mark)
    }

    fn parse(text: &str) -> Option<Self> {
        let is_mark = text.len() == 12
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        let number = u64::from_str_radix(text, 16).ok().filter(|_| is_mark)?;
        let mut mark = [0_u8; 6];
        mark.copy_from_slice(&number.to_be_bytes()[2..]);
        Some(Self(mark))
    }
}

impl fmt::Display for SessionMark {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&hex(&self.0))
    }
}

/// How certain it is that a note was used. Two levels and no fraction, so that sums are exact in
/// any order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Weight {
    /// Words of the note occurred in the work; written as 0.5.
    Implicit,
    /// The note was named, opened or changed; written as 1.
    Explicit,
}

impl Weight {
    fn from_number(number: f64) -> Option<Self> {
        match number {
            1.0.. => Some(Self::Explicit),
            _ if number > 0.0 => Some(Self::Implicit),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Implicit => "0.5",
            Self::Explicit => "1",
        }
    }
}

/// The use of a note in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Use {
    /// The note.
    pub note: PortableId,
    /// How certain it is.
    pub weight: Weight,
    /// The number of the turn in its session.
    pub turn: u32,
}

/// A rating of a note.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Feedback {
    /// It helped.
    Good,
    /// It was wrong or in the way.
    Bad,
}

impl Feedback {
    fn as_str(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
        }
    }
}

/// Two project keys that are one project, or a project that is in a group; or no longer are.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Alias {
    key: String,
    same_as: String,
}

impl Alias {
    /// Creates an alias that makes `key` the same project as `same_as`, or puts it into the group
    /// whose key is `same_as`; `None` if they are equal, one is not a valid key, or `key` is shared.
    pub fn new(key: &str, same_as: &str) -> Option<Self> {
        let is_target = same_as != GLOBAL && project_key::is_key(same_as);
        let is_project = !project_key::is_shared(key) && project_key::is_key(key);
        let is_alias = key != same_as && is_project && is_target;
        is_alias.then(|| Self {
            key: key.to_owned(),
            same_as: same_as.to_owned(),
        })
    }

    /// Returns the key that may still be in use.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Returns whether it puts a project into a group.
    pub fn is_membership(&self) -> bool {
        project_key::group_name(&self.same_as).is_some()
    }

    /// Returns the project's current key, or the group's key.
    pub fn same_as(&self) -> &str {
        &self.same_as
    }
}

/// Statements on notes and projects at one time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Receipt {
    key: ReceiptKey,
    at: DateTime<Utc>,
    is_newer: bool,
    /// The session, if any.
    pub session: Option<SessionMark>,
    /// The project's key.
    pub project: Option<String>,
    /// Notes that were injected.
    pub shown: Vec<PortableId>,
    /// Notes that were used.
    pub used: Vec<Use>,
    /// Feedback on notes.
    pub feedback: Vec<(PortableId, Feedback)>,
    /// Notes that somebody verified.
    pub verified: Vec<PortableId>,
    /// Notes that were purged and must not come back.
    pub gone: Vec<PortableId>,
    /// Notes from which a text was purged.
    pub masked: Vec<PortableId>,
    /// New aliases.
    pub aliases: Vec<Alias>,
    /// Aliases that are no longer valid.
    pub unaliases: Vec<Alias>,
}

/// The bytes are not a valid receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a receipt")]
pub struct InvalidReceipt;

impl Receipt {
    /// Creates an empty receipt with a new key.
    pub fn new(now: DateTime<Utc>) -> Self {
        Self::empty(ReceiptKey::generate(now), now.trunc_subsecs(0))
    }

    /// Does the same as [`Receipt::new`], with a key later than `earlier` whatever the machines'
    /// clocks say, so that its aliases win.
    pub fn later_than(earlier: ReceiptKey, now: DateTime<Utc>) -> Self {
        let next = DateTime::from_timestamp_millis(
            i64::try_from(earlier.0.timestamp_ms())
                .unwrap_or(i64::MAX)
                .saturating_add(1),
        );
        let key = ReceiptKey::generate(next.map_or(now, |next| next.max(now)));
        Self::empty(key, now.trunc_subsecs(0))
    }

    fn empty(key: ReceiptKey, at: DateTime<Utc>) -> Self {
        Self {
            key,
            at,
            is_newer: false,
            session: None,
            project: None,
            shown: Vec::new(),
            used: Vec::new(),
            feedback: Vec::new(),
            verified: Vec::new(),
            gone: Vec::new(),
            masked: Vec::new(),
            aliases: Vec::new(),
            unaliases: Vec::new(),
        }
    }

    /// Returns its unique key.
    pub fn key(&self) -> ReceiptKey {
        self.key
    }

    /// Returns when it was made, in whole seconds.
    pub fn at(&self) -> DateTime<Utc> {
        self.at
    }

    /// Returns whether it contains nothing.
    pub fn is_empty(&self) -> bool {
        self.items().next().is_none()
    }

    /// Returns whether a later version of the program wrote it; it may contain unknown fields.
    pub fn is_newer(&self) -> bool {
        self.is_newer
    }

    /// Returns it as lines of at most [`MAX_LINE_LENGTH`] bytes with line ends. Each line is a
    /// receipt; together they are equivalent to this one.
    pub fn to_lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut line = Line::default();
        for (field, item) in self.items() {
            let head = self.head(lines.len());
            if !line.has_room(&head, field, &item) {
                lines.push(std::mem::take(&mut line).finish(&head));
            }
            line.push(field, &item);
        }
        let head = self.head(lines.len());
        lines.push(line.finish(&head));
        lines
    }

    fn head(&self, number: usize) -> String {
        let time = self.at.to_rfc3339_opts(SecondsFormat::Secs, true);
        let key = self.key.part(number);
        let mut head = format!("{{\"v\":{VERSION},\"k\":\"{key}\",\"t\":\"{time}\"");
        if let Some(session) = self.session {
            head.push_str(&format!(",\"s\":\"{session}\""));
        }
        if let Some(project) = self
            .project
            .as_deref()
            .filter(|key| project_key::is_key(key))
        {
            head.push_str(&format!(",\"p\":{}", quoted(project)));
        }
        head
    }

    /// Returns its items as JSON, by field.
    fn items(&self) -> impl Iterator<Item = (Field, String)> {
        let ids = |field, ids: &[PortableId]| {
            let ids: Vec<_> = ids.iter().map(|id| (field, format!("\"{id}\""))).collect();
            ids
        };
        let pairs = |field, aliases: &[Alias]| {
            let pairs: Vec<_> = aliases
                .iter()
                .map(|alias| {
                    let (key, same_as) = (quoted(&alias.key), quoted(&alias.same_as));
                    (field, format!("[{key},{same_as}]"))
                })
                .collect();
            pairs
        };
        let used = self.used.iter().map(|used| {
            let (note, weight, turn) = (used.note, used.weight.as_str(), used.turn);
            (Field::Used, format!("[\"{note}\",{weight},{turn}]"))
        });
        let feedback = self.feedback.iter().map(|(note, feedback)| {
            let feedback = feedback.as_str();
            (Field::Feedback, format!("[\"{note}\",\"{feedback}\"]"))
        });
        ids(Field::Shown, &self.shown)
            .into_iter()
            .chain(used)
            .chain(feedback)
            .chain(ids(Field::Verified, &self.verified))
            .chain(ids(Field::Gone, &self.gone))
            .chain(ids(Field::Masked, &self.masked))
            .chain(pairs(Field::Alias, &self.aliases))
            .chain(pairs(Field::Unalias, &self.unaliases))
    }

    /// Parses a line, with or without its line end. Fields that are not understood are left out.
    pub fn parse_line(line: &[u8]) -> Result<Self, InvalidReceipt> {
        if line.len() > MAX_READ_LENGTH {
            return Err(InvalidReceipt);
        }
        let value: Value = serde_json::from_slice(line).map_err(|_| InvalidReceipt)?;
        let text = |name: &str| value.get(name).and_then(Value::as_str);
        let key = text("k").ok_or(InvalidReceipt)?.parse()?;
        let at = text("t").and_then(time).ok_or(InvalidReceipt)?;
        let list = |field: Field| {
            let items = value.get(field.as_str()).and_then(Value::as_array);
            items.into_iter().flatten()
        };
        let ids = |field| list(field).filter_map(id).collect();
        let aliases = |field| list(field).filter_map(alias).collect();
        Ok(Self {
            is_newer: value.get("v").and_then(Value::as_u64) != Some(VERSION),
            session: text("s").and_then(SessionMark::parse),
            project: text("p")
                .filter(|key| project_key::is_key(key))
                .map(str::to_owned),
            shown: ids(Field::Shown),
            used: list(Field::Used).take(MAX_USED).filter_map(used).collect(),
            feedback: list(Field::Feedback).filter_map(feedback).collect(),
            verified: ids(Field::Verified),
            gone: ids(Field::Gone),
            masked: ids(Field::Masked),
            aliases: aliases(Field::Alias),
            unaliases: aliases(Field::Unalias),
            ..Self::empty(key, at)
        })
    }
}

/// The lists of a receipt, in the order in which they are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Field {
    Shown,
    Used,
    Feedback,
    Verified,
    Gone,
    Masked,
    Alias,
    Unalias,
}

impl Field {
    fn as_str(self) -> &'static str {
        match self {
            Self::Shown => "shown",
            Self::Used => "used",
            Self::Feedback => "fb",
            Self::Verified => "ok",
            Self::Gone => "gone",
            Self::Masked => "masked",
            Self::Alias => "alias",
            Self::Unalias => "unalias",
        }
    }
}

/// The lists of a line that is being written, without its head.
#[derive(Debug, Default)]
struct Line {
    text: String,
    last: Option<Field>,
    used: usize,
}

impl Line {
    /// The most bytes that an item adds besides its text: the end of one list and the start of
    /// another.
    const OVERHEAD: usize = "],\"unalias\":[".len();

    fn has_room(&self, head: &str, field: Field, item: &str) -> bool {
        let length = head.len() + self.text.len() + Self::OVERHEAD + item.len() + "]}\n".len();
        let is_full = field == Field::Used && self.used == MAX_USED;
        // An empty line has room for any item, because no item is near the limit.
        self.last.is_none() || (length <= MAX_LINE_LENGTH && !is_full)
    }

    fn push(&mut self, field: Field, item: &str) {
        if self.last == Some(field) {
            self.text.push(',');
        } else {
            let end = if self.last.is_some() { "]" } else { "" };
            let name = field.as_str();
            self.text.push_str(&format!("{end},\"{name}\":["));
        }
        self.text.push_str(item);
        self.last = Some(field);
        self.used += usize::from(field == Field::Used);
    }

    fn finish(self, head: &str) -> String {
        let end = if self.last.is_some() { "]}" } else { "}" };
        format!("{head}{}{end}\n", self.text)
    }
}

/// Joins two diverged versions of one file of lines; the order of the arguments does not matter.
///
/// No machine writes another one's file. This is for a disk that was cloned: both copies then wrote
/// to what each took for its own file.
pub fn join_lines(one: &[u8], other: &[u8]) -> Vec<u8> {
    fn whole(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
        bytes
            .split_inclusive(|byte| *byte == b'\n')
            .filter(|line| line.ends_with(b"\n"))
    }
    let mut lines: Vec<_> = whole(one)
        .chain(whole(other))
        .map(|line| {
            (
                Receipt::parse_line(line).ok().map(|receipt| receipt.key),
                line,
            )
        })
        .collect();
    lines.sort_unstable();
    lines.dedup();
    lines
        .into_iter()
        .flat_map(|(_, line)| line)
        .copied()
        .collect()
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Parses a time; `None` if a line could not hold it.
fn time(text: &str) -> Option<DateTime<Utc>> {
    let time = DateTime::parse_from_rfc3339(text).ok()?;
    let time = time.with_timezone(&Utc).trunc_subsecs(0);
    (0..=9999).contains(&time.year()).then_some(time)
}

fn id(value: &Value) -> Option<PortableId> {
    Some(PortableId(value.as_str()?.parse().ok()?))
}

fn used(value: &Value) -> Option<Use> {
    Some(Use {
        note: id(value.get(0)?)?,
        weight: Weight::from_number(value.get(1)?.as_f64()?)?,
        turn: u32::try_from(value.get(2)?.as_u64()?).ok()?,
    })
}

fn feedback(value: &Value) -> Option<(PortableId, Feedback)> {
    let said = value.get(1)?.as_str()?;
    let feedback = [Feedback::Good, Feedback::Bad]
        .into_iter()
        .find(|feedback| feedback.as_str() == said)?;
    Some((id(value.get(0)?)?, feedback))
}

fn alias(value: &Value) -> Option<Alias> {
    Alias::new(value.get(0)?.as_str()?, value.get(1)?.as_str()?)
}

#[cfg(test)]
mod tests;
