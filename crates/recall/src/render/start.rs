//! Renders the block of a session's start.
//!
//! In this order: what holds (standing instructions, notes), what is open (checks that fail, tasks, next
//! steps), one line for each earlier session, and the last session with more. Notes without room are
//! named.

use std::fmt::Write as _;

use anamnesis_note::{id::NoteId, note::Note};
use anamnesis_session::{
    hook::MAX_CONTEXT_LENGTH,
    session_note::{FAILING, part_of, sentence_of_title},
};
use anamnesis_store::index::OpenFailure;
use chrono::{DateTime, Utc};

use super::{
    Block, CLOSE, Chosen, INTRODUCTION, Level, MAX_GLOBAL, MAX_LEFT_OUT_LENGTH, OPEN, Reason, age,
    cut, facts, failing_lines, heading_with, indented, inert_body, inert_line, is_session_note,
    left_out_line, marks,
    session_lines::{self, Lines, Purpose, Told},
    title, units,
};
use crate::standing::Instruction;

/// The target length of the block, in UTF-16 code units: about 400 tokens.
const TARGET_LENGTH: usize = 1_750;

/// The maximum length of the headings of notes for all projects beside notes of the project, in UTF-16
/// code units.
const GLOBAL_SHARE: usize = 1_200;

/// The longest text of a note, in characters.
const MAX_NOTE_LENGTH: usize = 400;

/// The longest text of the last session's note, in characters.
const MAX_SESSION_LENGTH: usize = 800;

/// The longest text of an earlier session's note, in characters.
const MAX_EARLIER_LENGTH: usize = 180;

/// The longest commit in the line of an earlier session, in characters.
const MAX_COMMIT_LENGTH: usize = 70;

/// The longest standing instruction, failing check or next step, in characters.
const MAX_LINE_LENGTH: usize = 200;

/// The longest sentence in place of a title that was cut off, in characters.
const MAX_SENTENCE_LENGTH: usize = 280;

/// The maximum number of next steps.
const MAX_STEPS: usize = 3;

/// The minimum length of a partial text, in UTF-16 code units.
const MIN_TEXT_LENGTH: usize = 80;

/// The section in which an item is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Section {
    Notes,
    LastSession,
    EarlierSessions,
}

/// A note of the block.
struct Item {
    section: Section,
    /// Whether `body` is all of the note's text.
    is_whole: bool,
    title: String,
    /// The heading, or the line of an earlier session.
    heading: String,
    body: String,
    /// The shown part of the body, with line ends.
    shown: String,
    level: Level,
    is_global: bool,
}

/// Renders the block of a session's start, empty if there is nothing to tell.
///
/// `short_id` returns the short form of an id for people and models.
pub fn start_block(
    chosen: &[Chosen],
    standing: &[Instruction],
    failing: &[OpenFailure],
    now: DateTime<Utc>,
    short_id: impl Fn(NoteId) -> String,
) -> Block {
    if chosen.is_empty() && standing.is_empty() && failing.is_empty() {
        return Block::default();
    }
    let line = |text: &str, note: NoteId| (text.to_owned(), short_id(note));
    let (tasks, notes): (Vec<&Chosen>, Vec<&Chosen>) = chosen
        .iter()
        .partition(|chosen| chosen.reason == Reason::OpenTask);
    let last = notes.iter().find(|chosen| is_session_note(&chosen.note));
    let steps = last.map(|last| steps(&last.note)).unwrap_or_default();
    let known = standing.iter().map(|known| &known.text).chain(&steps);
    let mut known: Vec<Told> = known.cloned().map(Told::from).collect();
    let said: Vec<_> = standing.iter().map(|it| line(&it.text, it.note)).collect();
    let failing: Vec<_> = failing.iter().map(|it| line(&it.line, it.note)).collect();
    let next = steps.iter().zip(last.iter().cycle());
    let next: Vec<_> = next.map(|(step, last)| line(step, last.note.id)).collect();
    let holds = lines("You said", &said);
    let open = [
        lines(FAILING, &failing),
        tasks_line(&tasks, &short_id),
        lines("Next steps", &next),
    ]
    .concat();
    let mut items: Vec<Item> = Vec::new();
    for chosen in &notes {
        let section = match last {
            _ if !is_session_note(&chosen.note) => Section::Notes,
            Some(last) if last.note.id == chosen.note.id => Section::LastSession,
            _ => Section::EarlierSessions,
        };
        items.push(item(chosen, section, &known, now, &short_id));
        if is_session_note(&chosen.note) {
            // What one session tells, an earlier one need not repeat.
            let shown = items.last().map(|item| item.body.as_str());
            known.extend(session_lines::texts(shown.unwrap_or_default()));
        }
    }
    let frame = [OPEN, INTRODUCTION, CLOSE, &holds, &open, EARLIER];
    let mut length = frame.map(units).iter().sum::<usize>() + 2;
    let room = MAX_CONTEXT_LENGTH - length - MAX_LEFT_OUT_LENGTH;
    length += add_headings(&mut items, room);
    let names = notes.iter().zip(&items);
    let names = names.filter(|(_, item)| item.level == Level::Name);
    let globals = items.iter().filter(|item| item.is_global).count();
    let left_out = left_out_line(
        names.map(|(chosen, item)| (short_id(chosen.note.id), item.title.as_str())),
        globals >= MAX_GLOBAL,
    );
    length += units(&left_out);
    add_texts(&mut items, length);

    let mut text = format!("{OPEN}{INTRODUCTION}\n{holds}");
    push(&mut text, &items, Section::Notes);
    text.push_str(&open);
    let before = text.len();
    push(&mut text, &items, Section::EarlierSessions);
    if text.len() > before {
        text.insert_str(before, EARLIER);
    }
    push(&mut text, &items, Section::LastSession);
    text.push_str(&left_out);
    text.push_str(CLOSE);
    let mut items = items.iter();
    let levels = chosen.iter().map(|chosen| {
        let level = match chosen.reason {
            Reason::OpenTask => Level::Name,
            _ => items.next().map_or(Level::Name, |item| item.level),
        };
        (chosen.note.id, level)
    });
    Block {
        levels: levels.collect(),
        text,
    }
}

/// The head of the list of earlier sessions.
const EARLIER: &str = "\nEarlier sessions:\n";

/// Returns the next steps that a session's note names.
fn steps(note: &Note) -> Vec<String> {
    let body = inert_body(note);
    let steps = part_of(&body, "Next steps").take(MAX_STEPS);
    steps.map(str::to_owned).collect()
}

/// Renders lines with the ids of their notes below a head, or nothing.
fn lines(head: &str, lines: &[(String, String)]) -> String {
    let mut text = String::new();
    for (line, id) in lines {
        if text.is_empty() {
            let _ = writeln!(text, "\n{head}:");
        }
        let _ = writeln!(
            text,
            "- {} (#{id})",
            cut(&inert_line(line), MAX_LINE_LENGTH)
        );
    }
    text
}

/// Returns the line of open tasks, or nothing.
fn tasks_line(tasks: &[&Chosen], short_id: &impl Fn(NoteId) -> String) -> String {
    if tasks.is_empty() {
        return String::new();
    }
    let names: Vec<String> = tasks
        .iter()
        .map(|task| format!("{} (#{})", title(&task.note), short_id(task.note.id)))
        .collect();
    format!("\nOpen tasks: {}\n", names.join(", "))
}

fn item(
    chosen: &Chosen,
    section: Section,
    known: &[Told],
    now: DateTime<Utc>,
    short_id: &impl Fn(NoteId) -> String,
) -> Item {
    let note = &chosen.note;
    let whole = inert_body(note);
    let whole = whole.trim();
    let mut marks = marks(chosen, short_id);
    // A sentence of the person that the title begins is told once, whole.
    let title = title(note);
    let is_session = section != Section::Notes;
    let sentence = sentence_of_title(whole, &title).filter(|_| is_session);
    let sentence = sentence.map(|sentence| cut(&sentence, MAX_SENTENCE_LENGTH));
    let told = sentence.as_deref().unwrap_or(&title);
    let session_text = |purpose, length| {
        // Those that still fail have a part of their own, and the last commit is in the line.
        let mut own = failing_lines(whole);
        if section == Section::EarlierSessions {
            own.extend(part_of(whole, "Committed").last().map(str::to_owned));
        }
        own.extend(sentence.clone());
        let own: Vec<Told> = own.into_iter().map(Told::from).collect();
        let known: Vec<&Told> = known.iter().chain(&own).collect();
        Lines::new(&note.title, whole, purpose, &known).within(length)
    };
    let body = match section {
        Section::Notes => cut(whole, MAX_NOTE_LENGTH),
        Section::LastSession => session_text(Purpose::LastSession, MAX_SESSION_LENGTH),
        Section::EarlierSessions => session_text(Purpose::EarlierSession, MAX_EARLIER_LENGTH),
    };
    let heading = if section == Section::EarlierSessions {
        marks.insert(0, age(note, now));
        let marks = marks.join(" · ");
        format!("- {told}{} ({marks})\n", commit(whole))
    } else {
        heading_with(note, told, &[facts(note, now), marks].concat())
    };
    Item {
        section,
        title,
        heading,
        is_whole: body == whole,
        body: indented(&body),
        shown: String::new(),
        level: Level::Name,
        is_global: chosen.reason == Reason::AllProjects,
    }
}

/// Returns the last commit of a session, as it follows the title.
fn commit(body: &str) -> String {
    let commit = part_of(body, "Committed").last();
    let commit = commit.map(|line| format!(" · {}", cut(line, MAX_COMMIT_LENGTH)));
    commit.unwrap_or_default()
}

/// Adds headings within a length: the project's notes first, because they are few, then notes for all
/// projects. Returns the length added.
fn add_headings(items: &mut [Item], limit: usize) -> usize {
    let has_project_notes = items.iter().any(|item| !item.is_global);
    let mut length = 0;
    let mut global = 0;
    for is_global in [false, true] {
        for item in items.iter_mut().filter(|item| item.is_global == is_global) {
            let cost = units(&item.heading);
            let is_over_share = is_global && has_project_notes && global + cost > GLOBAL_SHARE;
            if length + cost > limit || is_over_share {
                continue;
            }
            length += cost;
            global += if is_global { cost } else { 0 };
            item.level = Level::Heading;
        }
    }
    length
}

/// Adds texts until the target is reached: the project's notes, then notes for all projects, then the
/// last session, then earlier ones. The second and the third have a part for themselves.
fn add_texts(items: &mut [Item], mut length: usize) {
    let order = [
        Group::Project,
        Group::Global,
        Group::LastSession,
        Group::EarlierSessions,
    ];
    let mut kept = order.map(|group| {
        let texts = items.iter().filter(|item| item.group() == group);
        let texts: usize = texts.map(|item| units(&item.body)).sum();
        texts.min(group.share())
    });
    for (place, group) in order.into_iter().enumerate() {
        let later: usize = kept[place + 1..].iter().sum();
        let is_of_group = |item: &&mut Item| item.level == Level::Heading && item.group() == group;
        let mut left = items.iter_mut().filter(is_of_group).count();
        for item in items.iter_mut().filter(is_of_group) {
            let mut room = TARGET_LENGTH.saturating_sub(length + later);
            if group == Group::EarlierSessions {
                // A line of each tells more than all of one.
                room = room.min(MIN_TEXT_LENGTH.max(room / left));
                left -= 1;
            }
            let added = add_text(item, room.max(kept[place]));
            length += added;
            kept[place] = kept[place].saturating_sub(added);
        }
    }
}

/// Items that share a part of the block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Group {
    Project,
    Global,
    LastSession,
    EarlierSessions,
}

impl Group {
    /// Returns what is kept for its texts, whatever the groups before take, in UTF-16 code units.
    const fn share(self) -> usize {
        match self {
            Self::Project | Self::EarlierSessions => 0,
            Self::Global => 320,
            Self::LastSession => 560,
        }
    }
}

impl Item {
    fn group(&self) -> Group {
        match self.section {
            Section::Notes if self.is_global => Group::Global,
            Section::Notes => Group::Project,
            Section::LastSession => Group::LastSession,
            Section::EarlierSessions => Group::EarlierSessions,
        }
    }
}

/// The end of a line that is only the label of the lines below it.
const LABEL_END: &str = ":**\n";

/// Adds as much of a text as fits into `room`. Returns the length added.
fn add_text(item: &mut Item, room: usize) -> usize {
    if units(&item.body) <= room {
        item.level = if item.is_whole {
            Level::Body
        } else {
            Level::Part
        };
        item.shown = std::mem::take(&mut item.body);
        return units(&item.shown);
    }
    if room < MIN_TEXT_LENGTH {
        return 0;
    }
    let mut length = 0;
    item.shown = if item.section == Section::Notes {
        // Leave room for the ellipsis and the line end.
        let part = item.body.chars().take_while(|character| {
            length += character.len_utf16();
            length <= room - 3
        });
        format!("{} …\n", part.collect::<String>().trim_end())
    } else {
        let lines = item.body.split_inclusive('\n').take_while(|line| {
            length += units(line);
            length <= room
        });
        let mut lines: Vec<&str> = lines.collect();
        // A label without a line tells nothing, and a single line stands behind it.
        while lines.last().is_some_and(|line| line.ends_with(LABEL_END)) {
            lines.pop();
        }
        match lines.as_slice() {
            [before @ .., label, only] if label.ends_with(LABEL_END) => {
                let only = only.trim_start().trim_start_matches("- ");
                format!("{}{} {only}", before.concat(), label.trim_end())
            }
            lines => lines.concat(),
        }
    };
    if !item.shown.is_empty() {
        item.level = Level::Part;
    }
    units(&item.shown)
}

/// Appends the items of a section that have at least a heading.
fn push(text: &mut String, items: &[Item], section: Section) {
    let items = items.iter().filter(|item| item.section == section);
    for item in items.filter(|item| item.level != Level::Name) {
        text.push_str(&item.heading);
        text.push_str(&item.shown);
    }
}
