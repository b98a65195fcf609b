//! Splits a stream into lines of bounded length.

use std::io::{self, BufRead, Read as _};

/// The maximum length of a line, in bytes.
///
/// A prompt with a few pasted images is shorter; longer lines are nearly always tool output.
pub(super) const MAX_LINE: usize = 8 << 20;

/// A line without its line feed.
pub(super) enum BoundedLine<'a> {
    Whole(&'a [u8]),
    /// A line longer than [`MAX_LINE`] was skipped.
    TooLong,
}

/// Returns lines one by one from a reused buffer.
///
/// Only `\n` ends a line: JSON strings may contain every other line end.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
}

impl<R: BufRead> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Lines {
            reader,
            buffer: Vec::new(),
        }
    }

    /// Returns the next line, or `None` at the end. The last line may lack its line feed.
    ///
    /// If the reader fails, the partial line is lost.
    pub(super) fn next(&mut self) -> io::Result<Option<BoundedLine<'_>>> {
        self.buffer.clear();
        let limit = MAX_LINE as u64 + 1;
        let read = (&mut self.reader)
            .take(limit)
            .read_until(b'\n', &mut self.buffer)?;
        if read == 0 {
            return Ok(None);
        }
        if self.buffer.pop_if(|last| *last == b'\n').is_none() && self.buffer.len() > MAX_LINE {
            self.reader.skip_until(b'\n')?;
            return Ok(Some(BoundedLine::TooLong));
        }
        Ok(Some(BoundedLine::Whole(&self.buffer)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    fn lengths(reader: impl BufRead) -> Vec<Option<usize>> {
        let mut lines = Lines::new(reader);
        let mut lengths = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            lengths.push(match line {
                BoundedLine::Whole(bytes) => Some(bytes.len()),
                BoundedLine::TooLong => None,
            });
        }
        lengths
    }

    #[test]
    fn only_line_feeds_end_lines() {
        let text = "a\r\n\nb\u{2028}c\u{85}\nlast";
        assert_eq!(lengths(text.as_bytes()), [2, 0, 7, 4].map(Some));
        assert_eq!(lengths("".as_bytes()), []);
    }

    #[test]
    fn a_line_over_the_limit_is_passed_over() {
        let line = |length: u64| io::repeat(b'x').take(length).chain("\n".as_bytes());
        let limit = MAX_LINE as u64;
        let stream = line(limit).chain(line(limit + 1)).chain(line(40 << 20));
        let stream = BufReader::new(stream.chain(line(3)));
        assert_eq!(lengths(stream), [Some(MAX_LINE), None, None, Some(3)]);
    }

    /// A stream of one endless line needs no more memory than the limit and its doubling.
    #[test]
    fn the_buffer_is_bounded() {
        let mut lines = Lines::new(BufReader::new(io::repeat(b'x').take(64 << 20)));
        while lines.next().unwrap().is_some() {}
        assert!(lines.buffer.capacity() <= 2 * MAX_LINE + 2);
    }
}
