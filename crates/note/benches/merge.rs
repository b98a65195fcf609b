//! Measures the merge of two versions of a note and prints the nanoseconds per merge.
//!
//! Both sides changed a field and different paragraphs, so every step of a merge runs. The result
//! is the median of many short series, because the machine may be busy.

use std::{
    hint::black_box,
    io::{self, Write as _},
    time::Instant,
};

use anamnesis_note::{id::NoteId, merge::merge};

/// The number of series.
const SERIES: usize = 101;

/// The number of merges per series.
const MERGES: u32 = 20;

/// The number of paragraphs of the note, which gives it about 3,500 bytes.
const PARAGRAPHS: usize = 12;

fn main() -> io::Result<()> {
    let id = NoteId::of_session("measured");
    let base = note(id, "Why retries wait", "retry", "", "");
    let one = note(id, "Why retries wait longer", "retry", "Seen on CI.", "");
    let other = note(id, "Why retries wait", "queue", "", "- measured on Tuesday");
    let merged = merge(id, Some(&base), &one, &other);
    assert!(merged.conflict.is_none(), "the sides changed other parts");
    let mut times: Vec<_> = (0..SERIES)
        .map(|_| {
            let begun = Instant::now();
            for _ in 0..MERGES {
                let sides = (black_box(&one), black_box(&other));
                black_box(merge(id, Some(black_box(&base)), sides.0, sides.1));
            }
            begun.elapsed() / MERGES
        })
        .collect();
    times.sort_unstable();
    writeln!(io::stdout(), "{}", times[SERIES / 2].as_nanos())
}

/// Returns a note of typical length, with additions to its first and last paragraph.
fn note(id: NoteId, title: &str, tag: &str, first: &str, last: &str) -> Vec<u8> {
    let mut body = String::new();
    for number in 0..PARAGRAPHS {
        let more = match number {
            0 => first,
            _ if number + 1 == PARAGRAPHS => last,
            _ => "",
        };
        body.push_str(&format!(
            "Paragraph {number}: a worker that lost its lease tries again after a wait that doubles,\n\
             so that a broken queue is not asked by all workers at once. The wait has a limit of a\n\
             minute, and a person who waits for the answer is told about it after the third try.\n\
             {more}\n\n"
        ));
    }
    format!(
        "---\nid: {id}\ntype: semantic\ntitle: {title}\nproject: git.example.com/team/shop\n\
         machine_id: laptop\nscope: portable\nprov_source: human\nconfidence: 1.0\n\
         created_at: '2026-01-01T00:00:00Z'\nupdated_at: '2026-01-01T00:00:00Z'\ntags:\n- {tag}\n\
         ---\n{body}"
    )
    .into_bytes()
}
