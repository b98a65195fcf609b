use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::PathBuf,
};

use anamnesis_note::{
    id::{IdPrefix, NoteId},
    note::{Kind, Note, NoteType, Scope, Source, State, Visibility, timestamp},
    trigger::Call,
};
use chrono::{DateTime, Utc};
use rusqlite::params_from_iter;

use super::{
    query::{BY_REFERENCE, SHARING_A_TAIL},
    refresh::MANY_OUTDATED,
    *,
};
use crate::{
    fs::file::Stamp,
    notes::{NotePath, Problem},
};

pub(super) struct Fixture {
    _folder: tempfile::TempDir,
    pub(super) home: Home,
    pub(super) notes: Notes,
}

pub(super) const TIMEOUT: Duration = Duration::from_millis(200);
impl Fixture {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let home = Home::new(folder.path().join("store"));
        home.create().unwrap();
        let notes = Notes::new(home.clone(), TIMEOUT);
        Self {
            _folder: folder,
            home,
            notes,
        }
    }

    pub(super) fn add(&self, title: &str, change: impl FnOnce(&mut Note)) -> Stored {
        let mut note = Note::new(NoteId::generate(now()), NoteType::Semantic, now());
        note.title = title.to_owned();
        change(&mut note);
        self.notes
            .create(&self.notes.lock().unwrap(), &note)
            .unwrap()
    }

    pub(super) fn writer(&self) -> Index {
        Index::open_to_write(&self.home, &self.notes, TIMEOUT).unwrap()
    }

    pub(super) fn refreshed(&self) -> Index {
        let mut index = self.writer();
        index.refresh(&self.notes).unwrap();
        index
    }
}

#[test]
fn notes_that_are_due_are_found_by_the_index() {
    let fixture = Fixture::new();
    let today = now().date_naive();
    let mut due = Vec::new();
    for (title, date) in [("due", today), ("not due", today.succ_opt().unwrap())] {
        let stored = fixture.add(title, |_| {});
        due.push(stored.path.id);
        let path = fixture.home.root().join(stored.path.to_string());
        let text = fs::read_to_string(&path).unwrap();
        let with_date = format!("---\nreview_after: {date}\n");
        fs::write(&path, text.replacen("---\n", &with_date, 1)).unwrap();
    }
    let index = fixture.refreshed();
    assert_eq!(index.due(today).unwrap(), [(due[0], today)]);
}

#[test]
fn an_index_in_memory_knows_what_the_one_on_the_disk_does() {
    let fixture = Fixture::new();
    let old = fixture.add("pnpm", |note| note.body = "Use pnpm.".to_owned());
    let new = fixture.add("yarn", |note| {
        note.body = "Use yarn, no longer pnpm.".to_owned();
        note.supersedes = vec![old.path.id.to_string()];
    });
    let memory = Index::in_memory([old, new]).unwrap();
    let disk = fixture.refreshed();
    let filter = Filter {
        with_superseded: true,
        ..Filter::default()
    };
    let found = |index: &Index| index.list(&filter, 9).unwrap();
    assert_eq!(found(&memory), found(&disk));
    assert_eq!(numbers_with(&memory, "pnpm").len(), 2);
    assert_eq!(numbers_with(&memory, "pnpm"), numbers_with(&disk, "pnpm"));
    assert_eq!(memory.counts().unwrap(), disk.counts().unwrap());
}

pub(super) fn now() -> DateTime<Utc> {
    DateTime::from_timestamp(1_767_323_045, 0).unwrap()
}

/// The numbers of the notes that have a word.
fn numbers_with(index: &Index, word: &str) -> BTreeSet<u32> {
    let condition = WordCondition::phrase(word).unwrap();
    index.candidates(&[condition]).unwrap()
}

fn titles(entries: &[Entry]) -> Vec<&str> {
    entries.iter().map(|entry| entry.title.as_str()).collect()
}

/// All contents of the index, to compare two of them.
fn answers(index: &Index) -> String {
    let all = Filter {
        with_forgotten: true,
        with_superseded: true,
        ..Filter::default()
    };
    // The input of ranking, by id instead of by number.
    let documents = index.documents().unwrap();
    let projects: BTreeMap<u32, &str> = documents.projects().collect();
    let notes = documents.blocks.iter().flat_map(|(block, notes)| {
        let notes = notes.iter().zip(block * 4096..);
        notes.filter_map(|(note, number)| Some((number, (*note)?)))
    });
    let ranked: BTreeMap<String, String> = notes
        .map(|(number, mut note)| {
            let project = projects[&note.project].to_owned();
            note.project = 0;
            let frequency = |term| {
                let mut found = 0;
                let take = |place, frequency| {
                    if place == number as usize {
                        found = frequency;
                    }
                };
                index.postings(term).unwrap().each_in(0, take).unwrap();
                found
            };
            let terms = ["alpha", "beta", "gamma", "more", "chang"].map(frequency);
            let (id, _) = index.heading(number).unwrap().unwrap();
            let text = index.text(number).unwrap();
            let told = format!("{project} {note:?} {terms:?} {text:?}");
            (id.to_string(), told)
        })
        .collect();
    format!(
        "{ranked:?}\n{:?}\n{:?}\n{:?}",
        index.list(&all, 1000).unwrap(),
        index.problems().unwrap(),
        index.counts().unwrap(),
    )
}

#[test]
fn a_day_begins_at_most_a_day_and_an_hour_before_each_of_its_times() {
    let index = Index::in_memory([]).unwrap();
    for hour in 0..48 {
        let time = DateTime::from_timestamp(1_767_323_045 + hour * 3600, 0).unwrap();
        let start = index.start_of_day(time).unwrap();
        let began: DateTime<Utc> = format!("{start}Z").parse().unwrap();
        assert!(
            (0..=25 * 3600).contains(&(time - began).num_seconds()),
            "{start} of {time}"
        );
        assert_eq!(index.start_of_day(began).unwrap(), start);
    }
}

#[test]
fn a_refresh_reads_only_what_changed() {
    let fixture = Fixture::new();
    for title in ["one", "two", "three"] {
        fixture.add(title, |_| {});
    }
    let mut index = fixture.writer();
    let first = index.refresh(&fixture.notes).unwrap();
    assert_eq!((first.total, first.removed), (3, 0));
    assert_eq!(
        index.refresh(&fixture.notes).unwrap(),
        Refreshed {
            total: 3,
            read: 0,
            removed: 0,
        }
    );
    let stored = fixture.add("four", |_| {});
    assert!(index.is_behind(&fixture.notes));
    assert_eq!(
        index.refresh(&fixture.notes).unwrap(),
        Refreshed {
            total: 4,
            read: 1,
            removed: 0,
        }
    );
    assert!(!index.is_behind(&fixture.notes));
    let lock = fixture.notes.lock().unwrap();
    let longer = |note: &mut Note| note.body.push_str(" and more");
    fixture.notes.update(&lock, stored.path, longer).unwrap();
    assert_eq!(
        index.refresh(&fixture.notes).unwrap(),
        Refreshed {
            total: 4,
            read: 1,
            removed: 0,
        }
    );
    fs::remove_file(stored.path.absolute(&fixture.home)).unwrap();
    assert_eq!(
        index.refresh(&fixture.notes).unwrap(),
        Refreshed {
            total: 3,
            read: 0,
            removed: 1,
        }
    );
}

#[test]
fn a_note_is_found_by_what_it_may_be_asked_for_with() {
    let fixture = Fixture::new();
    let stored = fixture.add("Staging", |note| {
        note.asked = vec!["ship it".to_owned(), "rollout".to_owned()];
    });
    let index = fixture.refreshed();
    assert_eq!(numbers_with(&index, "rollout").len(), 1);
    let phrase = WordCondition::phrase("ship it").unwrap();
    let conditions = [phrase];
    let number = *index.candidates(&conditions).unwrap().first().unwrap();
    assert!(index.has_phrases(number, &conditions).unwrap());
    drop(index);
    let lock = fixture.notes.lock().unwrap();
    let path = stored.path;
    fixture
        .notes
        .update(&lock, path, |note| note.asked.clear())
        .unwrap();
    drop(lock);
    let index = fixture.refreshed();
    assert!(numbers_with(&index, "rollout").is_empty());
    assert_eq!(numbers_with(&index, "staging").len(), 1);
}

#[test]
fn notes_that_arrived_are_taken_up_without_a_walk() {
    let fixture = Fixture::new();
    let stays = fixture.add("stays", |_| {});
    let goes = fixture.add("goes", |_| {});
    let changes = fixture.add("changes", |_| {});
    drop(fixture.refreshed());
    let before = fixture.notes.folder_times();
    let lock = fixture.notes.lock().unwrap();
    fixture.notes.remove(&lock, goes.path).unwrap();
    let text = changes
        .file
        .rewrite(&Note {
            title: "changed".to_owned(),
            ..changes.note()
        })
        .unwrap();
    fixture
        .notes
        .place(&lock, changes.path, text.as_bytes())
        .unwrap();
    let mut index = fixture.writer();
    assert!(index.is_behind(&fixture.notes));
    let ids = [goes.path.id, changes.path.id].into();
    index.record_all(&fixture.notes, &ids, before).unwrap();
    assert!(!index.is_behind(&fixture.notes));
    let told = answers(&index);
    drop(index);
    let index = fixture.refreshed();
    assert_eq!(told, answers(&index));
    assert!(told.contains("changed") && !told.contains("goes"), "{told}");
    // An outdated index stays outdated.
    drop(index);
    drop(lock);
    fixture.add("unknown", |_| {});
    let lock = fixture.notes.lock().unwrap();
    let before = fixture.notes.folder_times();
    fixture
        .notes
        .place(&lock, stays.path, b"no note any more")
        .unwrap();
    let mut index = fixture.writer();
    index
        .record_all(&fixture.notes, &[stays.path.id].into(), before)
        .unwrap();
    assert!(index.is_behind(&fixture.notes));
}

#[test]
fn kept_in_step_and_built_anew_answer_alike() {
    let fixture = Fixture::new();
    let first = fixture.add("alpha", |note| note.body = "beta beta".to_owned());
    let gone = fixture.add("beta", |_| {});
    let mut index = fixture.refreshed();
    fixture.add("alpha two", |note| {
        note.supersedes = vec![first.path.id.to_string()]
    });
    index.refresh(&fixture.notes).unwrap();
    let lock = fixture.notes.lock().unwrap();
    fixture.notes.forget(&lock, gone.path, now()).unwrap();
    fixture
        .notes
        .update(&lock, first.path, |note| note.body.push_str(" gamma"))
        .unwrap();
    fs::write(
        fixture
            .home
            .tree(Scope::Portable)
            .join("semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md"),
        "x",
    )
    .unwrap();
    index.refresh(&fixture.notes).unwrap();
    let kept = answers(&index);
    drop(index);
    let rebuilt = Index::rebuild(&fixture.home, &fixture.notes, TIMEOUT).unwrap();
    assert_eq!(answers(&rebuilt), kept);
}

#[test]
fn what_cannot_be_used_is_built_anew() {
    // SQL-04, SQL-05
    let fixture = Fixture::new();
    fixture.add("alpha", |_| {});
    drop(fixture.refreshed());
    let spoil: [&dyn Fn(&Path); 5] = [
        &|path| fs::write(path, vec![0_u8; 8192]).unwrap(),
        &|path| fs::write(path, "no database").unwrap(),
        &|path| fs::remove_file(path).unwrap(),
        &|path| {
            Connection::open(path)
                .unwrap()
                .execute_batch("PRAGMA user_version = 99")
                .unwrap()
        },
        &|path| {
            let sql = "CREATE TRIGGER evil AFTER INSERT ON note BEGIN DELETE FROM problem; END;";
            Connection::open(path).unwrap().execute_batch(sql).unwrap();
        },
    ];
    for damage in spoil {
        damage(&fixture.home.index());
        assert!(Index::open(&fixture.home).is_err());
        let index = fixture.writer();
        assert_eq!(index.counts().unwrap().total, 1);
        drop(index);
        assert_eq!(
            Index::open(&fixture.home).unwrap().counts().unwrap().total,
            1
        );
    }
}

#[test]
fn readers_of_the_old_index_go_on_with_it() {
    let fixture = Fixture::new();
    fixture.add("alpha", |_| {});
    drop(fixture.refreshed());
    let reader = Index::open(&fixture.home).unwrap();
    fixture.add("beta", |_| {});
    let rebuilt = Index::rebuild(&fixture.home, &fixture.notes, TIMEOUT).unwrap();
    assert_eq!(reader.counts().unwrap().total, 1);
    assert_eq!(rebuilt.counts().unwrap().total, 2);
    drop(reader);
    assert_eq!(rebuilt.counts().unwrap().total, 2);
}

#[test]
fn an_index_whose_pages_are_zeros_is_built_anew() {
    // SQL-04: the first page is intact.
    let fixture = Fixture::new();
    for number in 0..50 {
        fixture.add(&format!("alpha {number}"), |_| {});
    }
    for first in [4096, 5 * 4096, 40 * 4096] {
        drop(fixture.refreshed());
        let path = fixture.home.index();
        let mut bytes = fs::read(&path).unwrap();
        let first = first.min(bytes.len());
        bytes[first..].fill(0);
        fs::write(&path, bytes).unwrap();
        fixture.add("one more", |_| {});
        let index = Index::in_step(&fixture.home, &fixture.notes, TIMEOUT).unwrap();
        let index = index
            .checked(&fixture.home, &fixture.notes, TIMEOUT)
            .unwrap();
        index.integrity().unwrap();
        let total = fixture.notes.list().notes.len();
        assert_eq!(index.counts().unwrap().total, total);
        assert_eq!(numbers_with(&index, "alpha").len(), 50);
    }
}

#[test]
fn a_restored_store_is_indexed_anew() {
    let fixture = Fixture::new();
    let stored: Vec<Stored> = (0..MANY_OUTDATED)
        .map(|number| fixture.add(&format!("alpha {number}"), |_| {}))
        .collect();
    let first = Index::in_step(&fixture.home, &fixture.notes, TIMEOUT).unwrap();
    let file = fs::metadata(fixture.home.index()).unwrap();
    drop(first);
    for stored in &stored {
        let path = stored.path.absolute(&fixture.home);
        let bytes = fs::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        fs::write(&path, bytes).unwrap();
    }
    let again = Index::in_step(&fixture.home, &fixture.notes, TIMEOUT).unwrap();
    let rebuilt = fs::metadata(fixture.home.index()).unwrap();
    // On Windows a file has no inode: the notes look as they did.
    if cfg!(unix) {
        assert_ne!(
            Stamp::from_metadata(&rebuilt).inode,
            Stamp::from_metadata(&file).inode
        );
    }
    assert_eq!(again.counts().unwrap().total, MANY_OUTDATED);
    assert!(!again.is_behind(&fixture.notes));
    assert_eq!(numbers_with(&again, "alpha").len(), MANY_OUTDATED);
}

#[test]
fn one_bad_note_hides_no_other() {
    let fixture = Fixture::new();
    fixture.add("alpha", |_| {});
    let bad = fixture
        .home
        .tree(Scope::Portable)
        .join("semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md");
    fs::write(&bad, "no front matter").unwrap();
    let mut index = fixture.refreshed();
    assert_eq!(index.counts().unwrap().total, 1);
    assert_eq!(
        index.problems().unwrap(),
        [Problem {
            path: "memory/semantic/01ARZ3NDEKTSV4RRFFQ69G5FAV.md".to_owned(),
            reason: "line 1: no front matter".to_owned()
        }]
    );
    assert_eq!(index.refresh(&fixture.notes).unwrap().read, 0);
    let good = Note::new(
        "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
        NoteType::Semantic,
        now(),
    );
    fs::write(&bad, good.render()).unwrap();
    index.refresh(&fixture.notes).unwrap();
    assert!(index.problems().unwrap().is_empty());
    assert_eq!(index.counts().unwrap().total, 2);
}

#[test]
fn a_note_with_conflict_markers_is_listed_and_not_indexed() {
    // GIT-09
    let fixture = Fixture::new();
    let known = fixture.add("known", |_| {});
    let mut index = fixture.refreshed();
    let arrived = NotePath {
        id: "01ARZ3NDEKTSV4RRFFQ69G5FAV".parse().unwrap(),
        ..known.path
    };
    let conflict = "<<<<<<< HEAD\nheron\n=======\negret\n>>>>>>> origin/main\n";
    let note = Note {
        body: conflict.to_owned(),
        ..Note::new(arrived.id, arrived.folder, now())
    };
    let marked = note.render();
    let before = fixture.notes.folder_times();
    let lock = fixture.notes.lock().unwrap();
    fixture
        .notes
        .place(&lock, arrived, marked.as_bytes())
        .unwrap();
    // As a sync and as a walk see it.
    let ids = [arrived.id].into();
    index.record_all(&fixture.notes, &ids, before).unwrap();
    assert!(index.get(arrived.id).unwrap().is_none());
    index.refresh(&fixture.notes).unwrap();
    let problem = Problem {
        path: arrived.to_string(),
        reason: "holds the conflict markers of a git merge".to_owned(),
    };
    assert_eq!(index.problems().unwrap(), [problem]);
    assert_eq!(numbers_with(&index, "heron"), BTreeSet::new());
    assert_eq!(index.counts().unwrap().total, 1);
    assert_eq!(fixture.notes.bytes(arrived).unwrap(), marked.as_bytes());
    // An indexed note that has a conflict now: a hook that still finds it cannot read it.
    let text = String::from_utf8(fixture.notes.bytes(known.path).unwrap()).unwrap() + conflict;
    fixture
        .notes
        .place(&lock, known.path, text.as_bytes())
        .unwrap();
    assert!(fixture.notes.read(known.path).is_err());
    // A note of our own only mentions a conflict.
    let told = Note {
        id: NoteId::of_session("told"),
        ..note
    };
    let told = fixture.notes.create(&lock, &told).unwrap();
    assert!(told.note().body.starts_with(" <<<<<<< HEAD\nheron\n"));
    assert!(fixture.notes.read(told.path).is_ok());
}

#[test]
fn of_two_files_with_one_id_the_portable_one_is_the_note() {
    // YAML-06
    let fixture = Fixture::new();
    let stored = fixture.add("travels", |_| {});
    let local = NotePath {
        scope: Scope::MachineLocal,
        ..stored.path
    };
    fs::create_dir_all(local.absolute(&fixture.home).parent().unwrap()).unwrap();
    fs::copy(
        stored.path.absolute(&fixture.home),
        local.absolute(&fixture.home),
    )
    .unwrap();
    let mut index = fixture.refreshed();
    assert_eq!(
        index.get(stored.path.id).unwrap().unwrap().path,
        stored.path
    );
    assert_eq!(
        index.problems().unwrap()[0].reason,
        format!("the same id as {}", stored.path)
    );
    fs::remove_file(stored.path.absolute(&fixture.home)).unwrap();
    index.refresh(&fixture.notes).unwrap();
    assert_eq!(index.get(stored.path.id).unwrap().unwrap().path, local);
}

#[test]
fn conditions_in_sql_are_the_rules_of_visibility() {
    let fixture = Fixture::new();
    for &note_type in NoteType::ALL {
        for &kind in Kind::ALL {
            for &state in State::ALL {
                for tags in [vec!["reflected".to_owned()], Vec::new()] {
                    let stored = fixture.add("note", |note| {
                        note.note_type = note_type;
                        note.kind = Some(kind);
                        (note.state, note.tags) = (state, tags);
                    });
                    if kind == Kind::Insight {
                        let id = stored.path.id.to_string();
                        fixture.add("newer", |note| note.supersedes = vec![id]);
                    }
                }
            }
        }
    }
    let index = fixture.refreshed();
    for (sql, rule) in [
        (
            entry::may_surface!(),
            Visibility::may_surface as fn(Visibility) -> bool,
        ),
        (entry::in_force!(), Visibility::is_in_force),
        (
            concat!("note.superseded = 0 AND ", entry::in_use!("note")),
            Visibility::may_answer,
        ),
    ] {
        let entries = |condition: &str| {
            let sql = format!("SELECT * FROM note WHERE {condition} ORDER BY id");
            index.entries(&sql, Vec::new()).unwrap()
        };
        let mut expected = entries("true");
        expected.retain(|entry| rule(entry.visibility()));
        assert_eq!(entries(sql), expected, "{sql}");
    }
}

#[test]
fn superseded_notes_are_hidden_but_not_by_proposals_or_in_circles() {
    // YAML-10
    let fixture = Fixture::new();
    let by_hand = fixture.add("by hand", |_| {});
    let proposal = fixture.add("proposal", |note| {
        note.state = State::Proposed;
        note.supersedes = vec![by_hand.path.id.to_string()];
    });
    let mut index = fixture.refreshed();
    assert!(!index.get(by_hand.path.id).unwrap().unwrap().superseded);
    let lock = fixture.notes.lock().unwrap();
    fixture
        .notes
        .update(&lock, proposal.path, |note| note.state = State::Active)
        .unwrap();
    index.refresh(&fixture.notes).unwrap();
    assert!(index.get(by_hand.path.id).unwrap().unwrap().superseded);
    fixture
        .notes
        .update(&lock, by_hand.path, |note| {
            note.supersedes = vec![proposal.path.id.to_string()]
        })
        .unwrap();
    fixture
        .notes
        .update(&lock, proposal.path, |note| {
            note.source = Source::Reflection
        })
        .unwrap();
    index.refresh(&fixture.notes).unwrap();
    assert!(!index.get(by_hand.path.id).unwrap().unwrap().superseded);
    assert!(index.get(proposal.path.id).unwrap().unwrap().superseded);
    assert_eq!(
        titles(&index.list(&Filter::default(), 10).unwrap()),
        ["by hand"]
    );
}

#[test]
fn the_newest_come_first_and_the_future_is_now() {
    // YAML-08
    let fixture = Fixture::new();
    let at = |time: &'static str| move |note: &mut Note| note.updated_at = time.to_owned();
    fixture.add("old", at("2020-01-01T00:00:00+00:00"));
    fixture.add("new", at("2026-01-01T00:00:00+00:00"));
    fixture.add("future", at("9999-01-01T00:00:00+00:00"));
    fixture.add("odd", at("whenever"));
    fixture.add("sure", |note| {
        note.updated_at = timestamp(now());
        note.confidence = 0.5;
    });
    let index = fixture.refreshed();
    let query = Recent {
        only_pinned: false,
        with_reflected: false,
        project: "global",
        note_type: NoteType::Semantic,
        now: now(),
        limit: 10,
    };
    let recent = index.recent(query).unwrap();
    assert_eq!(titles(&recent), ["future", "sure", "new", "old", "odd"]);
    assert_eq!(
        titles(&index.recent(Recent { limit: 2, ..query }).unwrap()),
        ["future", "sure"]
    );
}

#[test]
fn a_session_of_a_day_to_come_is_not_the_last_one() {
    let fixture = Fixture::new();
    let at = |days: i64| {
        move |note: &mut Note| {
            note.note_type = NoteType::Episodic;
            note.updated_at = timestamp(now() + chrono::TimeDelta::days(days));
        }
    };
    fixture.add("before", at(-3));
    fixture.add("ten years ahead", at(3650));
    let recent = |index: &Index| {
        let query = Recent {
            only_pinned: false,
            with_reflected: true,
            project: "global",
            note_type: NoteType::Episodic,
            now: now(),
            limit: 2,
        };
        let recent = index.recent(query).unwrap();
        recent
            .into_iter()
            .map(|entry| entry.title)
            .collect::<Vec<_>>()
    };
    assert_eq!(recent(&fixture.refreshed()), ["before", "ten years ahead"]);
    fixture.add("after", at(-1));
    assert_eq!(recent(&fixture.refreshed()), ["after", "ten years ahead"]);
}

#[test]
fn filters_are_bound() {
    // SQL-03
    let fixture = Fixture::new();
    fixture.add("alpha", |note| note.project = "p".to_owned());
    let index = fixture.refreshed();
    for project in ["p' OR 1=1 --", "\" OR \"\"=\"", "%", "*"] {
        let filter = Filter {
            projects: vec![project.to_owned()],
            ..Filter::default()
        };
        assert!(index.list(&filter, 10).unwrap().is_empty());
    }
}

#[test]
fn what_a_killed_rebuild_left_is_swept() {
    let fixture = Fixture::new();
    fixture.add("kept", |_| {});
    let index = fixture.writer();
    let leftovers = [".new", ".new-journal", ".old", ".old-wal"]
        .map(|suffix| format!("{}{suffix}", fixture.home.index().display()))
        .map(PathBuf::from);
    for leftover in &leftovers {
        fs::write(leftover, "half").unwrap();
    }
    index.sweep(&fixture.home).unwrap();
    assert!(!leftovers.iter().any(|leftover| leftover.exists()));
    assert_eq!(index.count(&Filter::default()).unwrap(), 1);
}

#[test]
fn a_forgotten_note_leaves_no_byte_in_the_index() {
    // DEL-01
    let fixture = Fixture::new();
    let stored = fixture.add("needle", |note| note.body = "haystackneedle ".repeat(50));
    let mut index = fixture.refreshed();
    let lock = fixture.notes.lock().unwrap();
    let tombstone = fixture.notes.forget(&lock, stored.path, now()).unwrap();
    index.record(&tombstone).unwrap();
    index.checkpoint().unwrap();
    for entry in fs::read_dir(fixture.home.derived()).unwrap() {
        let bytes = fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(6).any(|window| window == b"needle"));
    }
    assert_eq!(numbers_with(&index, "needle"), BTreeSet::new());
}

#[test]
fn references_and_short_ids() {
    const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
    const COUSIN: &str = "000000000000000000009G5FAV";
    const TWIN: &str = "11ARZ3NDEKTSV4RRFFQ69G5FAV";
    let fixture = Fixture::new();
    let with = |id: &str| {
        fixture.add(id, |note| note.id = id.parse().unwrap());
        fixture.refreshed()
    };
    let short = |index: &Index, id: &str| index.short_id(id.parse().unwrap()).unwrap();
    let index = with(ID);
    assert_eq!(short(&index, ID), "9G5FAV");
    drop(index);
    let index = with(COUSIN);
    assert_eq!(short(&index, ID), "69G5FAV");
    assert_eq!(short(&index, COUSIN), "09G5FAV");
    drop(index);
    let index = with(TWIN);
    assert_eq!(short(&index, ID), ID);
    assert_eq!(short(&index, COUSIN), "09G5FAV");
    let cases: [(&str, &[&str]); 6] = [
        ("9G5FAV", &[COUSIN, ID, TWIN]),
        ("69g5fav", &[ID, TWIN]),
        ("1ARZ3NDEKTSV4RRFFQ69G5FAV", &[ID, TWIN]),
        ("01ARZ3", &[ID]),
        (TWIN, &[TWIN]),
        ("ZZZZZZ", &[]),
    ];
    for (typed, expected) in cases {
        let found = index.matching(&IdPrefix::parse(typed).unwrap()).unwrap();
        assert_eq!(titles(&found), expected, "{typed}");
    }
}

#[test]
fn few_notes_are_found_without_walking_all() {
    let index = Fixture::new().refreshed();
    for (sql, by) in [
        (BY_REFERENCE, "note_tail"),
        (SHARING_A_TAIL, "note_tail"),
        (supersession::NONE_SUPERSEDED, "note_superseded"),
        (counts::CONFLICTS, "note_conflict"),
        (counts::PROJECTS, "note_recent (project=?)"),
        (triggers::TEXT_KEYS, "warning_trigger_key"),
        (
            triggers::BY_KEYS,
            "warning_trigger_key (project=? AND key=?)",
        ),
        (
            triggers::HAVE_WORDS,
            "warning_word USING PRIMARY KEY (project=?)",
        ),
        (
            triggers::BY_WORDS,
            "warning_word USING PRIMARY KEY (project=? AND term=?)",
        ),
        (tasks::OPEN_TASKS, "note USING INTEGER PRIMARY KEY"),
        (
            postings::PREFIXED,
            "dictionary USING PRIMARY KEY (term>? AND term<?)",
        ),
    ] {
        let mut statement = index
            .connection
            .prepare(&format!("EXPLAIN QUERY PLAN {sql}"))
            .unwrap();
        let empty = vec![""; statement.parameter_count()];
        let plan: Vec<String> = statement
            .query_map(params_from_iter(empty), |row| row.get("detail"))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert!(plan.iter().any(|step| step.contains(by)), "{plan:?}");
    }
}

/// A warning of a project with one trigger.
fn warns(fixture: &Fixture, title: &str, project: &str, when: &str) -> Stored {
    fixture.add(title, |note| {
        note.note_type = NoteType::Procedural;
        note.kind = Some(Kind::Antipattern);
        note.project = project.to_owned();
        note.when = vec![when.to_owned()];
    })
}

#[test]
fn an_index_without_a_warning_is_not_opened_for_one() {
    let fixture = Fixture::new();
    let opened = |change: &dyn Fn()| {
        change();
        drop(fixture.refreshed());
        let index = Index::open_with_warnings(&fixture.home).unwrap();
        index.is_some()
    };
    assert!(!opened(&|| drop(fixture.add("a fact", |_| ()))));
    let warning = warns(&fixture, "ours", "shop", "cmd: git push --force");
    assert!(opened(&|| ()));
    let path = warning.path.absolute(&fixture.home);
    assert!(!opened(&|| std::fs::remove_file(&path).unwrap()));
    let by_words = || drop(warns(&fixture, "push by force", "shop", "no trigger"));
    assert!(opened(&by_words));
}

#[test]
fn warnings_are_found_by_the_call_that_they_fit() {
    let fixture = Fixture::new();
    let ours = warns(&fixture, "ours", "shop", "cmd: git push --force");
    warns(&fixture, "everybody's", "global", "cmd: git push");
    warns(&fixture, "theirs", "till", "cmd: git push --force");
    warns(&fixture, "another command", "shop", "cmd: git pull");
    warns(&fixture, "a path", "shop", "path: migrations/*.sql");
    warns(&fixture, "a text", "shop", "text: drop table");
    warns(&fixture, "a tool", "shop", "tool: mcp__db__*");
    warns(&fixture, "no trigger", "shop", "cmd: git");
    fixture.add("a fact", |note| {
        note.project = "shop".to_owned();
        note.when = vec!["cmd: git push".to_owned()];
    });
    for (title, state) in [("proposed", State::Proposed), ("muted", State::Muted)] {
        fixture.add(title, |note| {
            note.note_type = NoteType::Procedural;
            note.kind = Some(Kind::Antipattern);
            note.state = state;
            note.when = vec!["cmd: git push".to_owned()];
        });
    }
    let old = warns(&fixture, "replaced", "shop", "cmd: git push");
    fixture.add("replaces", |note| {
        note.supersedes = vec![old.path.id.to_string()]
    });
    let index = fixture.refreshed();
    let titles_for = |index: &Index, tool: &str, input: serde_json::Value| {
        let call = Call::new(tool, &input);
        let found = index.warnings_for(&call, &["shop".to_owned()]).unwrap();
        let mut titles: Vec<String> = found.into_iter().map(|entry| entry.title).collect();
        titles.sort();
        titles
    };
    let push = serde_json::json!({"command": "cd a && git push --force"});
    assert_eq!(
        titles_for(&index, "Bash", push.clone()),
        ["everybody's", "ours"]
    );
    assert_eq!(
        titles_for(
            &index,
            "Write",
            serde_json::json!({"file_path": "/a/migrations/1.sql", "content": "DROP TABLE a"})
        ),
        ["a path", "a text"]
    );
    assert_eq!(
        titles_for(&index, "mcp__db__query", serde_json::json!({})),
        ["a tool"]
    );
    assert_eq!(titles_for(&index, "Bash", serde_json::json!({})), [""; 0]);
    // A removed note's triggers are removed.
    drop(index);
    fs::remove_file(ours.path.absolute(&fixture.home)).unwrap();
    let index = fixture.refreshed();
    assert_eq!(titles_for(&index, "Bash", push), ["everybody's"]);
    let sql = "SELECT count(*) FROM warning_trigger WHERE line = 'cmd: git push --force'";
    assert_eq!(index.value::<usize>(sql, []).unwrap(), 1);
}

#[test]
fn warnings_without_triggers_are_found_by_their_words() {
    let fixture = Fixture::new();
    let text = "Never push to main with --force";
    let ours = warns(&fixture, text, "shop", "cmd: git");
    warns(&fixture, text, "shop", "cmd: git push");
    warns(&fixture, text, "till", "");
    fixture.add(text, |note| note.project = "shop".to_owned());
    fixture.add("muted", |note| {
        note.kind = Some(Kind::Antipattern);
        note.note_type = NoteType::Procedural;
        note.state = State::Muted;
        note.body = text.to_owned();
    });
    let found = |index: &Index, words: &[&str]| {
        let words = || words.iter().map(|word| (*word).to_owned()).collect();
        index
            .warnings_having(2, words, &["shop".to_owned()])
            .unwrap()
    };
    let index = fixture.refreshed();
    let worded = found(&index, &["push", "main", "--force", "day"]);
    assert_eq!(worded.len(), 1);
    let entry = index.warning(worded[0].number).unwrap().unwrap();
    assert_eq!(entry.path, ours.path);
    let words: Vec<&str> = worded[0].words.iter().map(String::as_str).collect();
    assert_eq!(
        (words, worded[0].names_options),
        (vec!["--force", "main", "push"], true)
    );
    assert_eq!(found(&index, &["push", "day"]), []);
    drop(index);
    fs::remove_file(ours.path.absolute(&fixture.home)).unwrap();
    let index = fixture.refreshed();
    let ask = || unreachable!("no such warning is left");
    assert_eq!(
        index.warnings_having(2, ask, &["shop".to_owned()]).unwrap(),
        []
    );
}

#[test]
fn an_index_is_at_most_a_fifth_larger_than_its_notes() {
    const SYLLABLES: [&str; 12] = [
        "ba", "cor", "del", "fin", "gra", "hol", "jun", "kel", "lin", "mar", "nor", "pel",
    ];
    let fixture = Fixture::new();
    let mut state = 7_u64;
    // Words with a low number are frequent, as in a language.
    let mut word = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let most = 1 + (state >> 33) % 3_000;
        let mut number = usize::try_from(1 + (state >> 11) % most).unwrap();
        let mut word = String::new();
        while number > 0 {
            word += SYLLABLES[number % SYLLABLES.len()];
            number /= SYLLABLES.len();
        }
        word
    };
    let mut text = 0;
    let mut ids: Vec<NoteId> = Vec::new();
    for number in 0..1_200 {
        let mut note = Note::new(
            NoteId::made_of(&number.to_string()),
            NoteType::Semantic,
            now(),
        );
        note.project = "github.com/acme/cart".to_owned();
        note.title = [word(), word(), word(), word()].join(" ");
        let words: Vec<String> = (0..140).map(|_| word()).collect();
        note.body = words.join(" ");
        note.links = ids
            .iter()
            .rev()
            .step_by(7)
            .take(5)
            .map(|id| format!("related-to {id}"))
            .collect();
        ids.push(note.id);
        let path = NotePath::from_note(&note).absolute(&fixture.home);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let rendered = note.render();
        text += rendered.len();
        fs::write(path, rendered).unwrap();
    }
    let index = fixture.refreshed();
    let pragma = |name: &str| -> i64 {
        let sql = format!("PRAGMA {name}");
        index
            .connection
            .query_row(&sql, [], |row| row.get(0))
            .unwrap()
    };
    let size = pragma("page_count") * pragma("page_size");
    assert!(
        5 * size <= 6 * i64::try_from(text).unwrap(),
        "{size} bytes for {text} bytes of notes"
    );
}

#[test]
fn an_index_whose_rows_contradict_each_other_is_built_anew() {
    // SQL-04
    let fixture = Fixture::new();
    for number in 0..5 {
        fixture.add(&format!("alpha {number}"), |_| {});
    }
    for sql in [
        "UPDATE note SET title = 'x' || title, modified = modified - 1",
        "DELETE FROM note",
        "DELETE FROM title",
        "UPDATE title SET number = number + 1",
    ] {
        drop(fixture.refreshed());
        Connection::open(fixture.home.index())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        fixture.add("alpha more", |_| {});
        let index = Index::in_step(&fixture.home, &fixture.notes, TIMEOUT);
        let index = index.unwrap_or_else(|error| panic!("{sql}: {error}"));
        let total = fixture.notes.list().notes.len();
        assert_eq!(index.counts().unwrap().total, total, "{sql}");
        assert_eq!(numbers_with(&index, "alpha").len(), total, "{sql}");
    }
}
