//! Cuts JSON to a number of bytes.

use std::mem;

use serde_json::{Map, Value};

use super::gap::{SplitText, omission_mark, with_gap, without_middle};
use super::{change_strings, head, tail};
use crate::privacy::UniqueKeys;

/// The smallest size that a value is cut to, in bytes of JSON. If not every entry can have that
/// much, entries are left out.
pub(super) const MIN_VALUE: usize = 64;

/// The largest size of the mark for left-out entries, in bytes of JSON with its key.
const MAX_ENTRY_MARK: usize = 60;

/// Precedes the number of left-out entries. Cleaned text does not contain it.
const ENTRIES: char = '\u{1}';

/// Cuts JSON to size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SizeLimiter {
    /// Lengths are estimates, and strings keep their guards.
    BeforeMasking,
    /// Lengths are those of the final JSON.
    AfterMasking,
}

impl SizeLimiter {
    /// Cuts a value to a number of bytes, at least [`MIN_VALUE`].
    pub(super) fn fit(self, value: &mut Value, limit: usize) {
        if self.size(value, limit) <= limit {
            return;
        }
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => *text = self.shorten(text, limit),
            Value::Array(items) => self.fit_items(items, limit),
            Value::Object(object) => self.fit_entries(object, limit),
        }
    }

    fn fit_items(self, items: &mut Vec<Value>, limit: usize) {
        // Two brackets, and a comma per item.
        let room = limit - 2;
        let smallest = |item: &Value| 1 + self.size(item, MIN_VALUE).min(MIN_VALUE);
        if count_within(items.iter().map(smallest), room) < items.len() {
            let room = room - MAX_ENTRY_MARK;
            let last = count_within(items.iter().rev().map(smallest), room / 3);
            let first = count_within(items.iter().map(smallest), room - room / 3);
            let dropped = first..items.len() - last;
            let left_out = items.get(dropped.clone()).unwrap_or_default();
            let mark = entries_gap(left_out.iter());
            items.splice(dropped, [mark]);
        }
        let sizes: Vec<usize> = items.iter().map(|item| self.size(item, limit)).collect();
        let share = equal_share(&sizes, room - items.len());
        for (item, size) in items.iter_mut().zip(sizes) {
            if size > share {
                self.fit(item, share);
            }
        }
    }

    fn fit_entries(self, object: &mut Map<String, Value>, limit: usize) {
        // Two braces, and a colon and a comma per entry.
        let room = limit - 2;
        let with_key = |(key, value): (&String, &Value)| {
            self.length(key) + 2 + self.size(value, MIN_VALUE).min(MIN_VALUE)
        };
        if count_within(object.iter().map(with_key), room) < object.len() {
            let first = count_within(object.iter().map(with_key), room - MAX_ENTRY_MARK);
            let mark = entries_gap(object.values().skip(first));
            *object = mem::take(object).into_iter().take(first).collect();
            UniqueKeys::default().insert(object, String::from("…"), mark);
        }
        let keys: usize = object.keys().map(|key| self.length(key) + 2).sum();
        let sizes: Vec<usize> = object.values().map(|item| self.size(item, limit)).collect();
        let share = equal_share(&sizes, room - keys);
        for (value, size) in object.values_mut().zip(sizes) {
            if size > share {
                self.fit(value, share);
            }
        }
    }

    /// Returns the length of JSON in bytes; if that is over the limit, some number over the limit.
    pub(super) fn size(self, value: &Value, limit: usize) -> usize {
        match value {
            Value::Null => 4,
            Value::Bool(value) => 5 - usize::from(*value),
            Value::Number(number) => number.to_string().len(),
            Value::String(text) => self.length(text),
            Value::Array(items) => {
                let mut size = 2 + items.len().saturating_sub(1);
                for item in items {
                    if size > limit {
                        break;
                    }
                    size += self.size(item, limit - size);
                }
                size
            }
            Value::Object(object) => {
                let mut size = 2 + object.len().saturating_sub(1);
                for (key, value) in object {
                    size += self.length(key) + 1;
                    if size > limit {
                        break;
                    }
                    size += self.size(value, limit - size);
                }
                size
            }
        }
    }

    /// Returns the length of a string in bytes of JSON.
    fn length(self, text: &str) -> usize {
        if self == SizeLimiter::BeforeMasking {
            return text.len() + 2;
        }
        if let Some(mark) = entries_mark(text) {
            return mark.len() + 2;
        }
        let parts = SplitText::new(text);
        if parts.is_whole {
            return escaped_length(text) + 2;
        }
        let mark = omission_mark(parts.left_out, "characters");
        escaped_length(parts.head) + mark.len() + escaped_length(parts.tail) + 2
    }

    fn shorten(self, text: &str, limit: usize) -> String {
        if self == SizeLimiter::BeforeMasking {
            return without_middle(text, limit, limit).into_owned();
        }
        let parts = SplitText::new(text);
        let count = parts.characters();
        let mark = omission_mark(parts.left_out + count, "characters");
        let room = limit.saturating_sub(mark.len() + 2);
        let head = escaped_head(parts.head, room - room / 3);
        let tail = escaped_tail(parts.tail, room / 3);
        let kept = head.chars().count() + tail.chars().count();
        with_gap(head, parts.left_out + count.saturating_sub(kept), tail)
    }
}

/// Returns how many of the lengths fit into the room, from the first on.
fn count_within(lengths: impl Iterator<Item = usize>, room: usize) -> usize {
    let mut total = 0;
    lengths
        .take_while(|length| {
            total += length;
            total <= room
        })
        .count()
}

/// Returns the largest equal share, where smaller sizes leave their remainder to the others.
fn equal_share(sizes: &[usize], mut room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut count = sizes.len();
    for size in sizes {
        let share = room / count;
        if size > share {
            return share;
        }
        room -= size;
        count -= 1;
    }
    usize::MAX
}

/// Returns the placeholder for left-out entries, which [`fill_gaps`] replaces.
fn entries_gap<'v>(entries: impl Iterator<Item = &'v Value>) -> Value {
    let count: usize = entries
        .map(|entry| entry.as_str().and_then(entries_of).unwrap_or(1))
        .sum();
    Value::from(format!("{ENTRIES}{count}"))
}

fn entries_of(text: &str) -> Option<usize> {
    text.strip_prefix(ENTRIES)?.parse().ok()
}

fn entries_mark(text: &str) -> Option<String> {
    entries_of(text).map(|count| omission_mark(count, "entries"))
}

/// Returns the length of a text in a JSON string.
fn escaped_length(text: &str) -> usize {
    text.bytes().map(escaped_byte_length).sum()
}

fn escaped_byte_length(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | 8..=10 | 12 | 13 => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

/// Returns the longest start of a text that takes at most `room` bytes in a JSON string.
fn escaped_head(text: &str, room: usize) -> &str {
    let bytes = text.bytes().map(escaped_byte_length);
    head(text, count_within(bytes, room))
}

/// Returns the longest end of a text that takes at most `room` bytes in a JSON string.
fn escaped_tail(text: &str, room: usize) -> &str {
    let bytes = text.bytes().rev().map(escaped_byte_length);
    tail(text, count_within(bytes, room))
}

/// Replaces gaps by readable marks.
pub(super) fn fill_gaps(value: &mut Value) {
    change_strings(value, &mut |text| {
        if let Some(mark) = entries_mark(text) {
            *text = mark;
            return;
        }
        let parts = SplitText::new(text);
        if !parts.is_whole {
            let mark = omission_mark(parts.left_out, "characters");
            *text = format!("{}{mark}{}", parts.head, parts.tail);
        }
    });
}
