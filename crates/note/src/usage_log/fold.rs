//! The sum of all receipts: counts by note, pair and project for each month.
//!
//! A fold is a set of receipts by key, so order and repetition do not matter. The counts of a
//! machine's month depend only on the receipts of that machine and month. So a compacted month, of
//! which only the counts are left, gives the same sums as its lines. Counts are of sessions or
//! turns, so repeating a receipt does not increase them.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    str::FromStr,
};

use chrono::{DateTime, Datelike as _, Days, NaiveDate, SecondsFormat, Utc};
use serde_json::{Map, Value, json};

use super::{
    Alias, Feedback, InvalidReceipt, LocalReceipt, PortableId, Receipt, ReceiptKey, Weight, id,
    time,
};
use crate::project_key;

/// The number of days after its end when a month is compacted. By then every machine's clock agrees
/// that it is over, and no session of it will be undone.
const DAYS_UNTIL_COMPACTED: u64 = 35;

/// The most turns between the two uses of a pair.
const TURNS_OF_A_PAIR: u32 = 2;

/// The most uses of a session that are searched for pairs. The work is quadratic, and the file may
/// come from anybody; no real session has that many.
const MAX_USES_FOR_PAIRS: usize = 256;

/// A calendar month in UTC, written `2026-03`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    // The first day at midnight.
    start: DateTime<Utc>,
}

impl Month {
    /// Returns the month of a time.
    pub fn from_time(time: DateTime<Utc>) -> Self {
        let first = time.date_naive().with_day(1);
        let start = first.and_then(|day| day.and_hms_opt(0, 0, 0));
        Self {
            start: start.map_or(time, |start| start.and_utc()),
        }
    }

    /// Returns the following month.
    #[must_use]
    pub fn next(self) -> Self {
        // No month is longer than 31 days, none shorter than 28.
        let within_next = self.start.checked_add_days(Days::new(31));
        Self::from_time(within_next.unwrap_or(self.start))
    }

    /// Returns its middle, which is used as the time of everything in it.
    pub fn middle(self) -> DateTime<Utc> {
        self.start + (self.next().start - self.start) / 2
    }

    /// Returns whether it ended long enough ago to be compacted.
    pub fn is_to_be_compacted(self, now: DateTime<Utc>) -> bool {
        let end = self.next().start;
        let due = end.checked_add_days(Days::new(DAYS_UNTIL_COMPACTED));
        due.is_some_and(|due| now > due)
    }
}

impl fmt::Display for Month {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (year, month) = (self.start.year(), self.start.month());
        write!(formatter, "{year:04}-{month:02}")
    }
}

impl FromStr for Month {
    type Err = InvalidReceipt;

    fn from_str(text: &str) -> Result<Self, InvalidReceipt> {
        let day = NaiveDate::parse_from_str(&format!("{text}-01"), "%Y-%m-%d");
        let start = day.ok().and_then(|day| day.and_hms_opt(0, 0, 0));
        let month = Self {
            start: start.ok_or(InvalidReceipt)?.and_utc(),
        };
        // A month has one spelling, because it names a file.
        (month.to_string() == text)
            .then_some(month)
            .ok_or(InvalidReceipt)
    }
}

/// The machine and month of a file of receipts.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReceiptSource {
    /// The machine's folder.
    pub machine: String,
    /// The month.
    pub month: Month,
}

/// The usage counts of a note.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NoteCounts {
    /// Turns in which it was certainly used.
    pub used: u64,
    /// Turns in which it was probably used, and not certainly.
    pub hinted: u64,
    /// Sessions in which it was used, certainly or probably.
    pub sessions: u64,
    /// Sessions in which it was injected.
    pub shown: u64,
    /// Sessions in which it was injected but not used.
    pub unused: u64,
    /// Sessions with good feedback.
    pub good: u64,
    /// Sessions with bad feedback.
    pub bad: u64,
    /// When it was last used.
    pub last: Option<DateTime<Utc>>,
    /// When it was last verified.
    pub verified: Option<DateTime<Utc>>,
}

impl NoteCounts {
    fn add(&mut self, other: &Self) {
        let theirs = other.numbers();
        for ((_, ours), (_, theirs)) in self.numbers_mut().into_iter().zip(theirs) {
            *ours = ours.saturating_add(theirs);
        }
        self.last = self.last.max(other.last);
        self.verified = self.verified.max(other.verified);
    }

    fn numbers(&self) -> [(&'static str, u64); 7] {
        self.clone()
            .numbers_mut()
            .map(|(name, number)| (name, *number))
    }

    /// Returns each number with its name in the file.
    fn numbers_mut(&mut self) -> [(&'static str, &mut u64); 7] {
        [
            ("used", &mut self.used),
            ("hinted", &mut self.hinted),
            ("sessions", &mut self.sessions),
            ("shown", &mut self.shown),
            ("unused", &mut self.unused),
            ("good", &mut self.good),
            ("bad", &mut self.bad),
        ]
    }

    fn to_json(&self) -> Value {
        let numbers = self.numbers().into_iter().filter(|(_, number)| *number > 0);
        let mut map: Map<_, _> = numbers
            .map(|(name, number)| (name.to_owned(), number.into()))
            .collect();
        for (name, at) in [("last", self.last), ("ok", self.verified)] {
            if let Some(at) = at {
                map.insert(name.to_owned(), written(at).into());
            }
        }
        Value::Object(map)
    }

    fn from_json(value: &Value) -> Self {
        let mut counts = Self {
            last: value.get("last").and_then(read_time),
            verified: value.get("ok").and_then(read_time),
            ..Self::default()
        };
        for (name, number) in counts.numbers_mut() {
            *number = value.get(name).and_then(Value::as_u64).unwrap_or(0);
        }
        counts
    }
}

/// The counts of two notes used together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PairCounts {
    /// Sessions in which both were used within two turns of each other.
    pub sessions: u64,
    /// When they were last used together.
    pub last: DateTime<Utc>,
}

/// Whether an alias is valid. The later of two verdicts counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct AliasVerdict {
    /// The receipt that says so.
    pub receipt: ReceiptKey,
    /// Whether it is valid.
    pub holds: bool,
}

/// The sums over some receipts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of receipts.
    pub receipts: u64,
    /// Sessions by project; the empty key is for sessions without one.
    pub sessions: BTreeMap<String, u64>,
    /// By note.
    pub notes: BTreeMap<PortableId, NoteCounts>,
    /// By pair of notes, the smaller id first.
    pub pairs: BTreeMap<(PortableId, PortableId), PairCounts>,
    /// Purged notes.
    pub gone: BTreeSet<PortableId>,
    /// Notes from which a text was purged.
    pub masked: BTreeSet<PortableId>,
    /// Project aliases.
    pub aliases: BTreeMap<Alias, AliasVerdict>,
}

impl Counts {
    /// Counts the receipts of one source.
    fn sum<'a>(receipts: impl IntoIterator<Item = &'a Receipt>) -> Self {
        let mut counts = Self::default();
        let mut sessions: BTreeMap<_, Vec<&Receipt>> = BTreeMap::new();
        for receipt in receipts {
            counts.receipts += 1;
            counts.gone.extend(&receipt.gone);
            counts.masked.extend(&receipt.masked);
            for (aliases, holds) in [(&receipt.aliases, true), (&receipt.unaliases, false)] {
                for alias in aliases {
                    let receipt = receipt.key();
                    counts.judge(alias, AliasVerdict { receipt, holds });
                }
            }
            // A receipt outside of a session counts separately.
            let alone = receipt.session.is_none().then(|| receipt.key());
            let session = (receipt.session, alone);
            sessions.entry(session).or_default().push(receipt);
        }
        for ((mark, _), receipts) in sessions {
            counts.add_session(mark.is_some(), &receipts);
        }
        counts
    }

    fn add_session(&mut self, is_session: bool, receipts: &[&Receipt]) {
        let mut notes: BTreeMap<PortableId, NoteCounts> = BTreeMap::new();
        let mut turns: BTreeMap<(u32, PortableId), (Weight, DateTime<Utc>)> = BTreeMap::new();
        let mut projects: BTreeSet<&str> = BTreeSet::new();
        for receipt in receipts {
            projects.insert(receipt.project.as_deref().unwrap_or_default());
            for note in &receipt.shown {
                notes.entry(*note).or_default().shown = 1;
            }
            for (note, feedback) in &receipt.feedback {
                let counts = notes.entry(*note).or_default();
                match feedback {
                    Feedback::Good => counts.good = 1,
                    Feedback::Bad => counts.bad = 1,
                }
            }
            for note in &receipt.verified {
                let counts = notes.entry(*note).or_default();
                counts.verified = counts.verified.max(Some(receipt.at()));
            }
            for used in &receipt.used {
                let turn = turns
                    .entry((used.turn, used.note))
                    .or_insert((used.weight, receipt.at()));
                turn.0 = turn.0.max(used.weight);
                turn.1 = turn.1.max(receipt.at());
            }
        }
        for ((_, note), (weight, at)) in &turns {
            let counts = notes.entry(*note).or_default();
            match weight {
                Weight::Explicit => counts.used += 1,
                Weight::Implicit => counts.hinted += 1,
            }
            counts.sessions = 1;
            counts.last = counts.last.max(Some(*at));
        }
        for (note, mut counts) in notes {
            counts.unused = counts.shown.saturating_sub(counts.sessions);
            self.notes.entry(note).or_default().add(&counts);
        }
        for (pair, last) in pairs(&turns) {
            self.add_pair(pair, &PairCounts { sessions: 1, last });
        }
        if is_session {
            for project in projects {
                self.add_sessions(project, 1);
            }
        }
    }

    fn add(&mut self, other: &Self) {
        self.receipts = self.receipts.saturating_add(other.receipts);
        for (project, sessions) in &other.sessions {
            self.add_sessions(project, *sessions);
        }
        for (note, counts) in &other.notes {
            self.notes.entry(*note).or_default().add(counts);
        }
        for (pair, counts) in &other.pairs {
            self.add_pair(*pair, counts);
        }
        self.gone.extend(&other.gone);
        self.masked.extend(&other.masked);
        for (alias, verdict) in &other.aliases {
            self.judge(alias, *verdict);
        }
    }

    fn add_sessions(&mut self, project: &str, number: u64) {
        let sessions = self.sessions.entry(project.to_owned()).or_default();
        *sessions = sessions.saturating_add(number);
    }

    fn add_pair(&mut self, pair: (PortableId, PortableId), more: &PairCounts) {
        let known = self.pairs.entry(pair).or_insert(PairCounts {
            sessions: 0,
            last: more.last,
        });
        known.sessions = known.sessions.saturating_add(more.sessions);
        known.last = known.last.max(more.last);
    }

    fn judge(&mut self, alias: &Alias, verdict: AliasVerdict) {
        let known = self.aliases.entry(alias.clone()).or_insert(verdict);
        *known = verdict.max(*known);
    }
}

/// Returns the pairs of a session's uses, each with its last time.
fn pairs(
    turns: &BTreeMap<(u32, PortableId), (Weight, DateTime<Utc>)>,
) -> BTreeMap<(PortableId, PortableId), DateTime<Utc>> {
    let mut found = BTreeMap::new();
    let uses: Vec<_> = turns.iter().take(MAX_USES_FOR_PAIRS).collect();
    for (index, ((turn, note), (_, at))) in uses.iter().enumerate() {
        let near = uses.iter().skip(index + 1);
        let near = near.take_while(|((later, _), _)| later - turn <= TURNS_OF_A_PAIR);
        for ((_, other), (_, other_at)) in near.filter(|((_, other), _)| other != note) {
            let last = (*at).max(*other_at);
            let pair = (*note.min(other), *note.max(other));
            let known = found.entry(pair).or_insert(last);
            *known = last.max(*known);
        }
    }
    found
}

/// The counts of a compacted month.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoldFile {
    /// The month.
    pub month: Month,
    /// The sums over its lines.
    pub counts: Counts,
}

impl FoldFile {
    /// Returns it as one JSON object.
    pub fn to_json(&self) -> String {
        let counts = &self.counts;
        let notes: Map<_, _> = counts
            .notes
            .iter()
            .map(|(note, counts)| (note.to_string(), counts.to_json()))
            .collect();
        let pairs = counts.pairs.iter().map(|((one, other), counts)| {
            let last = written(counts.last);
            json!([one.to_string(), other.to_string(), counts.sessions, last])
        });
        let ids = |notes: &BTreeSet<PortableId>| -> Value {
            let ids = notes.iter().map(|note| Value::from(note.to_string()));
            ids.collect()
        };
        let aliases = |holds| {
            let chosen = counts.aliases.iter();
            let chosen = chosen.filter(move |(_, verdict)| verdict.holds == holds);
            let chosen = chosen.map(|(alias, verdict)| {
                json!([alias.key(), alias.same_as(), verdict.receipt.to_string()])
            });
            chosen.collect::<Value>()
        };
        let mut text = json!({
            "v": super::VERSION,
            "month": self.month.to_string(),
            "covers": counts.receipts,
            "sessions": counts.sessions,
            "notes": notes,
            "pairs": pairs.collect::<Value>(),
            "gone": ids(&counts.gone),
            "masked": ids(&counts.masked),
            "alias": aliases(true),
            "unalias": aliases(false),
        })
        .to_string();
        text.push('\n');
        text
    }

    /// Parses it. Invalid entries are left out; the month and the number of lines are required.
    pub fn parse(bytes: &[u8]) -> Result<Self, InvalidReceipt> {
        let value: Value = serde_json::from_slice(bytes).map_err(|_| InvalidReceipt)?;
        let month = value.get("month").and_then(Value::as_str);
        let month = month.ok_or(InvalidReceipt)?.parse()?;
        let receipts = value.get("covers").and_then(Value::as_u64);
        let mut counts = Counts {
            receipts: receipts.ok_or(InvalidReceipt)?,
            ..Counts::default()
        };
        let map = |name: &str| {
            value
                .get(name)
                .and_then(Value::as_object)
                .into_iter()
                .flatten()
        };
        let list = |name: &str| {
            value
                .get(name)
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
        };
        for (project, sessions) in map("sessions") {
            if project.is_empty() || project_key::is_key(project) {
                counts.add_sessions(project, sessions.as_u64().unwrap_or(0));
            }
        }
        for (note, note_counts) in map("notes") {
            if let Ok(note) = note.parse() {
                let note_counts = NoteCounts::from_json(note_counts);
                counts.notes.insert(PortableId(note), note_counts);
            }
        }
        for pair in list("pairs") {
            if let Some((pair, pair_counts)) = read_pair(pair) {
                counts.add_pair(pair, &pair_counts);
            }
        }
        counts.gone.extend(list("gone").filter_map(id));
        counts.masked.extend(list("masked").filter_map(id));
        for (name, holds) in [("alias", true), ("unalias", false)] {
            for (alias, receipt) in list(name).filter_map(read_alias) {
                counts.judge(&alias, AliasVerdict { receipt, holds });
            }
        }
        Ok(Self { month, counts })
    }
}

fn written(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}

fn read_time(value: &Value) -> Option<DateTime<Utc>> {
    time(value.as_str()?)
}

fn read_pair(value: &Value) -> Option<((PortableId, PortableId), PairCounts)> {
    let (one, other) = (id(value.get(0)?)?, id(value.get(1)?)?);
    let counts = PairCounts {
        sessions: value.get(2)?.as_u64()?,
        last: read_time(value.get(3)?)?,
    };
    (one < other).then_some(((one, other), counts))
}

fn read_alias(value: &Value) -> Option<(Alias, ReceiptKey)> {
    let alias = super::alias(value)?;
    Some((alias, value.get(2)?.as_str()?.parse().ok()?))
}

/// All receipts of every machine.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fold {
    receipts: BTreeMap<ReceiptKey, (ReceiptSource, Receipt)>,
    compacted: BTreeMap<ReceiptSource, Counts>,
}

impl Fold {
    /// Adds a receipt. A known receipt changes nothing.
    pub fn apply(&mut self, source: ReceiptSource, receipt: Receipt) {
        let key = receipt.key();
        let found = (source, receipt);
        // Keys are unique. If two receipts had one key, the result must not depend on their
        // order.
        match self.receipts.get(&key) {
            Some(known) if *known <= found => {}
            _ => {
                self.receipts.insert(key, found);
            }
        }
    }

    /// Adds a local receipt. Its machine name is empty, which no machine's folder is.
    pub fn keep(&mut self, kept: LocalReceipt) {
        let source = ReceiptSource {
            machine: String::new(),
            month: Month::from_time(kept.0.at()),
        };
        self.apply(source, kept.0);
    }

    /// Adds a compacted month in place of its lines.
    pub fn merge(&mut self, machine: &str, file: FoldFile) {
        let source = ReceiptSource {
            machine: machine.to_owned(),
            month: file.month,
        };
        self.compacted.insert(source, file.counts);
    }

    /// Returns the file that replaces a month's lines.
    pub fn compact(&self, source: &ReceiptSource) -> FoldFile {
        let lines = self.receipts.values().filter(|(of, _)| of == source);
        FoldFile {
            month: source.month,
            counts: Counts::sum(lines.map(|(_, receipt)| receipt)),
        }
    }

    /// Returns the counts of each month. A use ages from the middle of its month whether or not the
    /// month was compacted, so compaction changes no result.
    pub fn months(&self) -> BTreeMap<Month, Counts> {
        let mut lines: BTreeMap<&ReceiptSource, Vec<&Receipt>> = BTreeMap::new();
        for (source, receipt) in self.receipts.values() {
            if !self.compacted.contains_key(source) {
                lines.entry(source).or_default().push(receipt);
            }
        }
        let mut months: BTreeMap<Month, Counts> = BTreeMap::new();
        for (source, receipts) in lines {
            let counts = Counts::sum(receipts);
            months.entry(source.month).or_default().add(&counts);
        }
        for (source, counts) in &self.compacted {
            months.entry(source.month).or_default().add(counts);
        }
        months
    }

    /// Returns the counts over all months.
    pub fn total(&self) -> Counts {
        let mut total = Counts::default();
        for counts in self.months().values() {
            total.add(counts);
        }
        total
    }
}

/// Which project keys are one project, and which projects are in which group.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Aliases {
    // For each key with aliases: the project's current key, and all of its keys.
    projects: BTreeMap<String, (String, BTreeSet<String>)>,
    // For each group's key: the keys that were added to it.
    groups: BTreeMap<String, BTreeSet<String>>,
}

impl Aliases {
    /// Reads them from the valid aliases; cycles and contradictions are allowed. An alias for a
    /// group's key puts a project into the group.
    pub fn from_counts(counts: &Counts) -> Self {
        let mut groups: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
        let valid = counts.aliases.iter().filter(|(_, verdict)| verdict.holds);
        let (members, valid): (Vec<_>, Vec<_>) =
            valid.partition(|(alias, _)| alias.is_membership());
        for (alias, _) in members {
            let group = groups.entry(alias.same_as().to_owned()).or_default();
            group.insert(alias.key().to_owned());
        }
        let holding = || valid.iter().copied();
        let mut near: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (alias, _) in holding() {
            near.entry(alias.key()).or_default().push(alias.same_as());
            near.entry(alias.same_as()).or_default().push(alias.key());
        }
        // The project's current key is the target of its newest alias.
        let newest = |keys: &BTreeSet<String>| {
            holding()
                .filter(|(alias, _)| keys.contains(alias.key()))
                .max_by_key(|(alias, verdict)| (verdict.receipt, *alias))
                .map(|(alias, _)| alias.same_as().to_owned())
        };
        let mut projects = BTreeMap::new();
        for key in near.keys() {
            if projects.contains_key(*key) {
                continue;
            }
            let mut keys = BTreeSet::new();
            let mut pending = vec![*key];
            while let Some(key) = pending.pop() {
                if keys.insert(key.to_owned()) {
                    pending.extend(near.get(key).into_iter().flatten());
                }
            }
            let now = newest(&keys).unwrap_or_else(|| (*key).to_owned());
            for key in &keys {
                projects.insert(key.clone(), (now.clone(), keys.clone()));
            }
        }
        Self { projects, groups }
    }

    /// Returns the current key of a key's project.
    pub fn current<'a>(&'a self, key: &'a str) -> &'a str {
        self.projects.get(key).map_or(key, |(now, _)| now)
    }

    /// Returns every key that has aliases, in order.
    pub fn keys(&self) -> impl Iterator<Item = &str> {
        self.projects.keys().map(String::as_str)
    }

    /// Returns the other keys of a key's project, in order.
    pub fn others<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let keys = self.projects.get(key).map(|(_, keys)| keys);
        let others = keys.into_iter().flatten().map(String::as_str);
        others.filter(move |other| *other != key)
    }

    /// Returns the keys of all groups, each with the keys that were added to it.
    pub fn groups(&self) -> &BTreeMap<String, BTreeSet<String>> {
        &self.groups
    }

    /// Returns the keys of the groups that a key's project is in, in order.
    pub fn groups_of<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        let is_in = move |keys: &BTreeSet<String>| {
            keys.contains(key) || self.others(key).any(|other| keys.contains(other))
        };
        let groups = self.groups.iter().filter(move |(_, keys)| is_in(keys));
        groups.map(|(group, _)| group.as_str())
    }

    /// Returns each outdated key with the current key of its project.
    pub fn pairs(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.projects.iter();
        let pairs = pairs.map(|(key, (now, _))| (key.as_str(), now.as_str()));
        pairs.filter(|(key, now)| key != now)
    }
}
