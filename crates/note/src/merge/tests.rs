use proptest::prelude::*;

use anamnesis_testkit::assert_linear;

use super::*;
use crate::note::{Enforce, Kind, NoteType, Severity};

const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";

fn id() -> NoteId {
    ID.parse().unwrap()
}

fn time(text: &str) -> DateTime<Utc> {
    parse_timestamp(text).unwrap()
}

/// A note and the other content of its file.
#[derive(Debug, Clone)]
struct Draft {
    note: Note,
    foreign: Vec<(String, String)>,
    crlf: bool,
}

impl Draft {
    fn new() -> Self {
        let mut note = Note::new(id(), NoteType::Semantic, time("2026-11-01"));
        note.title = "Port of the stub".to_owned();
        note.project = "github.com/acme/shop".to_owned();
        note.machine_id = "laptop".to_owned();
        note.session = Some("s1".to_owned());
        note.tags = vec!["net".to_owned(), "stub".to_owned()];
        note.links = vec!["related-to X".to_owned()];
        note.when = vec!["cmd: make".to_owned()];
        note.body = "It binds 9090.\n\n- one\n- two\n- three\n\nThe end.".to_owned();
        let foreign = vec![("ticket".to_owned(), "ticket: active\n".to_owned())];
        Self {
            note,
            foreign,
            crlf: false,
        }
    }

    fn with(&self, change: impl FnOnce(&mut Self)) -> Self {
        let mut draft = self.clone();
        change(&mut draft);
        draft
    }

    fn bytes(&self) -> Vec<u8> {
        let text = self.note.render();
        let (front, body) = text.split_at(text.find("\n---\n").unwrap() + 1);
        let foreign: String = self
            .foreign
            .iter()
            .map(|(_, lines)| lines.as_str())
            .collect();
        let text = format!("{front}{foreign}{body}");
        if self.crlf {
            text.replace('\n', "\r\n").into_bytes()
        } else {
            text.into_bytes()
        }
    }
}

fn read(bytes: &[u8]) -> Note {
    NoteFile::parse(bytes, id()).unwrap().into_note()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Merges in both orders, which must give the same result.
fn merged(base: Option<&[u8]>, a: &[u8], b: &[u8]) -> Merged {
    let merged = merge(id(), base, a, b);
    assert_eq!(merged, merge(id(), base, b, a));
    merged
}

fn merged_drafts(base: &Draft, a: &Draft, b: &Draft) -> Merged {
    merged(Some(&base.bytes()), &a.bytes(), &b.bytes())
}

type DraftEdit = fn(&mut Draft);
type Says = fn(&Note) -> String;

/// Two changes of different fields each, and what the merged note says.
const FIELDS: [(&str, DraftEdit, DraftEdit, Says, &str); 14] = [
    (
        "different fields",
        |a| a.note.title = "A".to_owned(),
        |b| b.note.project = "p".to_owned(),
        |note| format!("{} {}", note.title, note.project),
        "A p",
    ),
    (
        "tags",
        |a| a.note.tags = ["stub", "z"].map(str::to_owned).to_vec(),
        |b| b.note.tags = ["net", "stub", "b"].map(str::to_owned).to_vec(),
        |note| note.tags.join(" "),
        "stub b z",
    ),
    (
        "the order of tags is no change",
        |a| a.note.tags.reverse(),
        |b| b.note.tags.push("x".to_owned()),
        |note| note.tags.join(" "),
        "net stub x",
    ),
    (
        "links",
        |a| a.note.links.push("elaborates A".to_owned()),
        |b| b.note.links = vec!["caused-by B".to_owned()],
        |note| note.links.join(", "),
        "caused-by B, elaborates A",
    ),
    (
        "supersedes",
        |a| a.note.supersedes.push("B".to_owned()),
        |b| b.note.supersedes.push("A".to_owned()),
        |note| note.supersedes.join(" "),
        "A B",
    ),
    (
        "triggers",
        |a| a.note.when.clear(),
        |b| b.note.when.push("cmd: x".to_owned()),
        |note| note.when.join(" "),
        "cmd: x",
    ),
    (
        "updated_at is the later one, whatever its form",
        |a| a.note.updated_at = "2026-11-03 12:00:00".to_owned(),
        |b| b.note.updated_at = "2026-11-03T13:30:00+02:00".to_owned(),
        |note| note.updated_at.clone(),
        "2026-11-03 12:00:00",
    ),
    (
        "where it comes from does not change",
        |a| {
            a.note.machine_id = "desktop".to_owned();
            a.note.source = crate::note::Source::Reflection;
            a.note.session = None;
        },
        |b| b.note.created_at = "2027".to_owned(),
        |note| {
            let session = note.session.as_deref().unwrap_or_default();
            format!(
                "{} {} {session} {}",
                note.machine_id, note.source, note.created_at
            )
        },
        "laptop human s1 2026-11-01T00:00:00+00:00",
    ),
    (
        "what was not known of where it comes from is taken",
        |a| a.note.model = Some("local/m".to_owned()),
        |b| b.note.actor = Some("agent".to_owned()),
        |note| format!("{:?} {:?}", note.model, note.actor),
        "Some(\"local/m\") Some(\"agent\")",
    ),
    (
        "ours",
        |a| {
            a.note.kind = Some(Kind::Preference);
            a.note.pinned = true;
            a.note.confidence = 0.5;
        },
        |b| {
            b.note.state = State::Muted;
            b.note.severity = Some(Severity::High);
            b.note.enforce = Enforce::Once;
            b.note.instead = Some("i".to_owned());
        },
        |note| {
            format!(
                "{} {} {} {} {:?} {} {:?}",
                note.kind(),
                note.pinned,
                note.confidence,
                note.state,
                note.severity,
                note.enforce,
                note.instead
            )
        },
        "preference true 0.5 muted Some(High) once Some(\"i\")",
    ),
    (
        "how far a task is",
        |a| a.note.status = Some("done".to_owned()),
        |b| b.note.links.push("about B".to_owned()),
        |note| format!("{} {:?}", note.status(), note.links.last()),
        "done Some(\"about B\")",
    ),
    (
        "type and scope",
        |a| a.note.note_type = NoteType::Procedural,
        |b| b.note.scope = Scope::MachineLocal,
        |note| format!("{} {}", note.note_type, note.scope),
        "procedural machine-local",
    ),
    (
        "the Python version's keys are fields",
        |a| a.note.user_id = Some("self".to_owned()),
        |b| b.note.workspace_id = Some("home".to_owned()),
        |note| format!("{:?} {:?}", note.user_id, note.workspace_id),
        "Some(\"self\") Some(\"home\")",
    ),
    (
        "two kinds as tags are two tags",
        |a| a.note.tags.push("preference".to_owned()),
        |b| b.note.tags.push("insight".to_owned()),
        |note| note.tags.join(" "),
        "net stub insight preference",
    ),
];

/// GIT-08: one case for each row of the table of fields, without conflicts.
#[test]
fn fields_are_joined() {
    let base = Draft::new();
    for (name, a, b, says, expected) in FIELDS {
        let merged = merged_drafts(&base, &base.with(a), &base.with(b));
        assert_eq!(says(&read(&merged.bytes)), expected, "{name}");
        assert_eq!((merged.conflict, merged.proposal), (None, None), "{name}");
    }
}

#[test]
fn foreign_keys_are_merged_by_line() {
    let base = Draft::new();
    let a = base.with(|a| {
        a.foreign.insert(
            0,
            (
                "review_after".to_owned(),
                "review_after: 2027-01-01\n".to_owned(),
            ),
        );
        a.foreign.push((
            "map".to_owned(),
            "map:\n  k: [v]\n  # kept\n  l: 1\n".to_owned(),
        ));
    });
    let b = base.with(|b| {
        b.foreign[0].1 = "ticket:   done\n".to_owned();
        b.crlf = true;
    });
    let merged = merged_drafts(&base, &a, &b);
    assert_eq!(merged.conflict, None);
    assert!(
        text(&merged.bytes).replace('\r', "").contains(
            "- 'cmd: make'\nreview_after: 2027-01-01\nticket:   done\nmap:\n  k: [v]\n  # kept\n  l: 1\n---\n"
        ),
        "{}",
        text(&merged.bytes)
    );
    let without = base.with(|a| a.foreign.clear());
    let title = base.with(|b| b.note.title = "T".to_owned());
    let merged = merged_drafts(&base, &without, &title);
    assert_eq!(
        merged.bytes,
        title.with(|note| note.foreign.clear()).bytes()
    );
}

#[test]
fn a_comment_in_the_front_matter_stays_when_the_other_side_changes_a_field() {
    let plain = |draft: &Draft| String::from_utf8(draft.bytes()).unwrap();
    // The file of a draft, with the second text in place of the first.
    let with = |draft: &Draft, old: &str, new: &str| {
        let file = plain(draft);
        assert!(file.contains(old), "{file}");
        file.replacen(old, new, 1)
    };
    let base = Draft::new();
    let retitled = base.with(|b| b.note.title = "T".to_owned());
    let tagged = base.with(|b| b.note.tags = vec!["net".to_owned()]);
    let linked = base.with(|b| b.note.links.clear());
    let commented = with(&base, "tags:\n", "# two lines\n# that say why\ntags:\n");
    let inline = with(&base, "confidence: 1.0\n", "confidence: 1.0 # measured\n");
    let last = with(&base, "\n---\n", "\n# the last line\n---\n");
    for (name, base, a, b, expected) in [
        (
            "a comment before a key",
            plain(&base),
            &commented,
            plain(&retitled),
            with(&retitled, "tags:\n", "# two lines\n# that say why\ntags:\n"),
        ),
        (
            "a comment before the changed key",
            plain(&base),
            &commented,
            plain(&tagged),
            with(&tagged, "tags:\n", "# two lines\n# that say why\ntags:\n"),
        ),
        (
            "a comment behind a value",
            plain(&base),
            &inline,
            plain(&retitled),
            with(
                &retitled,
                "confidence: 1.0\n",
                "confidence: 1.0 # measured\n",
            ),
        ),
        (
            "a comment behind the last key",
            plain(&base),
            &last,
            plain(&linked),
            with(&linked, "\n---\n", "\n# the last line\n---\n"),
        ),
        (
            "a comment that one side removed",
            commented.clone(),
            &plain(&base),
            with(&retitled, "tags:\n", "# two lines\n# that say why\ntags:\n"),
            plain(&retitled),
        ),
        (
            "a comment on each side",
            plain(&base),
            &inline,
            with(&retitled, "title:", "# short\ntitle:"),
            with(&retitled, "title:", "# short\ntitle:").replacen(
                "confidence: 1.0\n",
                "confidence: 1.0 # measured\n",
                1,
            ),
        ),
    ] {
        let result = merged(Some(base.as_bytes()), a.as_bytes(), b.as_bytes());
        assert_eq!(text(&result.bytes), expected, "{name}");
        assert_eq!(result.conflict, None, "{name}");
    }
    // Without a base, the comments of both files stay.
    let result = merged(None, commented.as_bytes(), inline.as_bytes());
    for line in ["# two lines\n# that say why\ntags:\n", "1.0 # measured\n"] {
        assert!(
            text(&result.bytes).contains(line),
            "{}",
            text(&result.bytes)
        );
    }
}

#[test]
fn two_titles_of_one_note_without_a_readable_base_are_both_kept() {
    let base = Draft::new();
    let [one, other] = ["One", "Other"].map(|title| base.with(|a| a.note.title = title.to_owned()));
    for former in [None, Some(b"".as_slice())] {
        let result = merged(former, &one.bytes(), &other.bytes());
        let sibling = result.conflict.unwrap();
        let kept = NoteFile::parse(&sibling.bytes, sibling.id).unwrap();
        let mut titles = [read(&result.bytes).title, kept.note().title.clone()];
        titles.sort();
        assert_eq!(titles, ["One", "Other"]);
    }
}

#[test]
fn conflicting_versions_are_kept_as_two_notes() {
    // GIT-08
    let base = Draft::new();
    for (a, b) in [
        (
            base.with(|a| a.note.title = "A".to_owned()),
            base.with(|b| b.note.title = "B".to_owned()),
        ),
        (
            base.with(|a| a.note.body = "A".to_owned()),
            base.with(|b| b.note.body = "B".to_owned()),
        ),
        (
            base.with(|a| a.foreign[0].1 = "ticket: done\n".to_owned()),
            base.with(|b| b.foreign[0].1 = "ticket: pending\n".to_owned()),
        ),
    ] {
        // Everything else is merged.
        let a = a.with(|a| a.note.tags.push("of-a".to_owned()));
        let b = b.with(|b| b.note.tags.push("of-b".to_owned()));
        let merged = merged_drafts(&base, &a, &b);
        assert_eq!(read(&merged.bytes).tags, ["net", "stub", "of-a", "of-b"]);
        let (winner, loser) = if bytes_hash(&a.bytes()) < bytes_hash(&b.bytes()) {
            (a, b)
        } else {
            (b, a)
        };
        let stays = winner.with(|note| {
            note.note.tags = ["net", "stub", "of-a", "of-b"].map(str::to_owned).to_vec();
        });
        assert_eq!(text(&merged.bytes), text(&stays.bytes()));
        let sibling = merged.conflict.unwrap();
        let hashes = [bytes_hash(&winner.bytes()), bytes_hash(&loser.bytes())].join(":");
        assert_eq!(
            sibling.id,
            NoteId::made_of(&format!("merge-conflict:{hashes}"))
        );
        let kept = loser.with(|note| {
            note.note.id = sibling.id;
            note.note.tags.push("merge-conflict".to_owned());
            note.note.links.push(format!("related-to {ID}"));
        });
        assert_eq!(text(&sibling.bytes), text(&kept.bytes()));
        assert!(!has_conflict_markers(&merged.bytes));
    }
}

#[test]
fn line_ends_do_not_matter() {
    let base = Draft::new();
    let crlf = base.with(|a| a.crlf = true);
    let edited = base.with(|b| b.note.body.push_str("\nmore"));
    assert_eq!(merged_drafts(&base, &crlf, &edited).bytes, edited.bytes());
    let other = crlf.with(|a| a.note.body = a.note.body.replace("It binds", "It takes"));
    let merged = merged_drafts(&base, &other, &edited);
    assert_eq!(merged.conflict, None);
    let body = read(&merged.bytes).body;
    assert!(
        body.starts_with("It takes") && body.ends_with("end.\nmore"),
        "{body}"
    );
    // The result has the line ends of one of the two.
    let ends = text(&merged.bytes).matches('\n').count();
    let crlf_ends = text(&merged.bytes).matches("\r\n").count();
    assert!(crlf_ends == 0 || crlf_ends == ends);
    let blank = base.with(|a| a.note.body.push_str("\n\n  \n"));
    assert_eq!(merged_drafts(&base, &blank, &edited).bytes, edited.bytes());
}

#[test]
fn a_deletion_wins_over_an_edit() {
    // GIT-19
    let base = Draft::new();
    let tombstone = base.with(|a| {
        a.note.forget(time("2026-11-02"));
        a.foreign.clear();
    });
    let retagged = base.with(|b| {
        b.note.tags.push("x".to_owned());
        b.note.updated_at = "2026-11-05".to_owned();
        b.note.pinned = true;
        b.note.body.truncate(14);
        b.crlf = true;
    });
    let merged = merged_drafts(&base, &tombstone, &retagged);
    assert_eq!(merged, Merged::just(&tombstone.bytes()));
    assert_eq!(
        edited_after_deletion(id(), Some(&base.bytes()), &retagged.bytes()),
        Ok(None)
    );
    assert_eq!(
        edited_after_deletion(id(), Some(&base.bytes()), &tombstone.bytes()),
        Ok(None)
    );
    assert!(edited_after_deletion(id(), None, b"no note").is_err());

    let changes: [DraftEdit; 4] = [
        |b| b.note.title.push('!'),
        |b| b.note.body.push('!'),
        |b| b.note.instead = Some("this".to_owned()),
        |b| b.note.when.push("cmd: x".to_owned()),
    ];
    for change in changes {
        let edited = base.with(change);
        let merged = merged_drafts(&base, &tombstone, &edited);
        assert_eq!(merged.bytes, tombstone.bytes());
        assert_eq!(merged.conflict, None);
        let proposal = merged.proposal.unwrap();
        let hash = bytes_hash(&edited.bytes());
        assert_eq!(
            proposal.id,
            NoteId::made_of(&format!("merge-conflict:{hash}"))
        );
        let note = NoteFile::parse(&proposal.bytes, proposal.id)
            .unwrap()
            .into_note();
        let expected = Note {
            id: proposal.id,
            state: State::Proposed,
            scope: Scope::MachineLocal,
            tags: ["net", "stub", "merge-conflict"]
                .map(str::to_owned)
                .to_vec(),
            links: vec!["related-to X".to_owned(), format!("related-to {ID}")],
            ..edited.note.clone()
        };
        assert_eq!(note, expected);
        assert!(text(&proposal.bytes).contains("ticket: active\n"));
        assert_eq!(
            edited_after_deletion(id(), Some(&base.bytes()), &edited.bytes()),
            Ok(Some(proposal))
        );
    }
}

#[test]
fn restored_notes_are_merged() {
    let alive = Draft::new();
    let tombstone = alive.with(|a| {
        a.note.forget(time("2026-11-02"));
        a.foreign.clear();
    });
    let later = tombstone.with(|b| b.note.updated_at = "2026-11-09".to_owned());
    // Forgotten on both sides.
    let merged = merged_drafts(&alive, &tombstone, &later);
    assert_eq!(merged, Merged::just(&later.bytes()));
    // Restored on one side.
    let merged = merged_drafts(&tombstone, &alive, &later);
    assert_eq!(merged.conflict, None);
    let note = read(&merged.bytes);
    assert_eq!((note.state, &note.body), (State::Active, &alive.note.body));
    // Restored on both sides: the text is not duplicated.
    let edited = alive.with(|b| {
        b.note.body.push_str("\nmore");
        b.note.updated_at = "2026-11-08".to_owned();
    });
    let merged = merged_drafts(&tombstone, &alive, &edited);
    assert_eq!(merged, Merged::just(&edited.bytes()));
}

#[test]
fn without_a_base_the_later_note_wins() {
    let first = Draft::new();
    let second = first.with(|b| {
        b.note.created_at = "2026-11-02".to_owned();
        b.note.machine_id = "desktop".to_owned();
        b.note.tags = vec!["b".to_owned()];
        b.note.title = "Later".to_owned();
        b.note.links.clear();
        b.note.body.push_str("\nmore");
        b.foreign.clear();
    });
    let result = merged(None, &first.bytes(), &second.bytes());
    assert_eq!(result.conflict, None);
    let expected = second.with(|note| {
        note.note.created_at.clone_from(&first.note.created_at);
        note.note.machine_id.clone_from(&first.note.machine_id);
        note.note.tags = ["net", "stub", "b"].map(str::to_owned).to_vec();
        note.note.links.clone_from(&first.note.links);
        note.foreign.clone_from(&first.foreign);
    });
    assert_eq!(read(&result.bytes), expected.note);
    assert!(text(&result.bytes).contains("ticket: active\n"));

    // The later text is a part of the earlier one.
    let shorter = second.with(|b| b.note.body = "- one\n- two".to_owned());
    let result = merged(None, &first.bytes(), &shorter.bytes());
    assert_eq!(result.conflict, None);
    assert_eq!(read(&result.bytes).body, first.note.body);

    // Neither contains the other: the later text is kept, the earlier note becomes a conflict note.
    let other = second.with(|b| b.note.body = "Something else".to_owned());
    let result = merged(Some(b"no note"), &first.bytes(), &other.bytes());
    assert_eq!(read(&result.bytes).body, "Something else");
    let sibling = result.conflict.unwrap();
    let kept = NoteFile::parse(&sibling.bytes, sibling.id).unwrap();
    assert_eq!(kept.note().body, first.note.body);
    assert_eq!(kept.note().title, first.note.title);
}

#[test]
fn files_that_are_not_notes_are_set_aside() {
    let base = Draft::new();
    let good = base.with(|a| a.note.title = "A".to_owned()).bytes();
    let bad = b"---\nid: [\n---\n".to_vec();
    let result = merged(Some(&base.bytes()), &good, &bad);
    assert_eq!(
        (&result.bytes, &result.unreadable),
        (&good, &Some(bad.clone()))
    );
    let worse = b"\xff".to_vec();
    let result = merged(Some(&base.bytes()), &worse, &bad);
    let mut both = [bad, worse];
    both.sort_by_key(|bytes| bytes_hash(bytes));
    assert_eq!(result.bytes, both[0]);
    assert_eq!(result.unreadable.as_ref(), Some(&both[1]));
    // GIT-09
    let marked = base
        .with(|b| b.note.body = "<<<<<<< HEAD\na\n=======\nb\n>>>>>>> origin/main".to_owned())
        .bytes();
    let result = merged(Some(&base.bytes()), &good, &marked);
    assert_eq!((&result.bytes, &result.unreadable), (&good, &Some(marked)));
}

#[test]
fn conflict_markers_are_recognized() {
    // GIT-09
    for (text, expected) in [
        (
            "x\n<<<<<<< HEAD\na\n=======\nb\n>>>>>>> origin/main\n",
            true,
        ),
        ("<<<<<<< a\r\n||||||| base\r\n=======\r\n>>>>>>> b", true),
        ("<<<<<<< HEAD\n```\na\n=======\n```\nb\n>>>>>>> b", true),
        ("<<<<<<< HEAD\n", false),
        ("Title\n=======\n", false),
        (">>>>>>> quoted seven times\n=======\n<<<<<<< x\n", false),
        ("text <<<<<<< HEAD\n=======\n>>>>>>> x\n", false),
        ("```\n<<<<<<< HEAD\n=======\n>>>>>>> x\n```\n", false),
        ("    <<<<<<< HEAD\n    =======\n    >>>>>>> x\n", false),
        ("<<<<<<< HEAD\n======= \n>>>>>>> x\n", false),
    ] {
        assert_eq!(has_conflict_markers(text.as_bytes()), expected, "{text}");
    }
    for (text, shown) in [
        (
            "a\n<<<<<<< x\n=======\n>>>>>>> y",
            "a\n <<<<<<< x\n=======\n >>>>>>> y",
        ),
        ("a\n<<<<<<< x\nb\n", "a\n<<<<<<< x\nb\n"),
    ] {
        assert_eq!(without_conflict_markers(text), shown);
        assert!(!has_conflict_markers(shown.as_bytes()));
    }
    // Lines that form a conflict only together.
    let base = Draft::new().with(|note| note.note.body = "a\nb\nc".to_owned());
    let a = base.with(|a| a.note.body = "<<<<<<< x\nb\n>>>>>>> x".to_owned());
    let b = base.with(|b| b.note.body = "a\n=======\nc".to_owned());
    let merged = merged_drafts(&base, &a, &b);
    assert!(!has_conflict_markers(&merged.bytes));
    assert!(merged.conflict.is_some());
}

#[test]
fn versions_that_cannot_be_rewritten_are_kept_whole() {
    let base = Draft::new();
    let flow =
        format!("---\n{{id: {ID}, type: semantic, title: F, own: 1}}\n---\nb\n").into_bytes();
    let edited = base.with(|b| b.note.title = "E".to_owned()).bytes();
    let result = merged(Some(&base.bytes()), &flow, &edited);
    let sibling = result.conflict.unwrap();
    let kept = NoteFile::parse(&sibling.bytes, sibling.id)
        .unwrap()
        .into_note();
    let mut titles = [kept.title, read(&result.bytes).title];
    titles.sort();
    assert_eq!(titles, ["E", "F"]);
}

#[test]
fn a_comment_of_a_flow_mapping_is_kept() {
    let flow = |comment: &str| {
        format!("---\n{{id: {ID}, type: semantic, title: F, project: p}}\n{comment}---\none\n")
    };
    let (base, commented) = (flow(""), flow("# why: see ticket 42\n"));
    let rewritten = format!("---\nid: {ID}\ntype: semantic\ntitle: G\n---\nother\n");
    let sides = [commented.as_bytes(), rewritten.as_bytes()];
    for [a, b] in [sides, [sides[1], sides[0]]] {
        let result = merged(Some(base.as_bytes()), a, b);
        let bytes = [
            Some(&result.bytes),
            result.conflict.as_ref().map(|kept| &kept.bytes),
        ];
        let kept = bytes
            .into_iter()
            .flatten()
            .any(|bytes| String::from_utf8_lossy(bytes).contains("# why: see ticket 42\n"));
        assert!(kept, "{}", String::from_utf8_lossy(&result.bytes));
        assert_eq!(read(&result.bytes).title, "G");
    }
}

#[test]
fn keys_that_the_python_version_drops_are_restored() {
    let base = Draft::new().with(|base| {
        base.note.pinned = true;
        base.note.kind = Some(Kind::Insight);
        base.note.actor = Some("agent".to_owned());
        base.note.model = Some("local/m".to_owned());
    });
    // The result of its rewrite: only keys that it knows, and a change.
    let side = base.with(|side| {
        side.note.tags.push("reflected".to_owned());
        side.note.links.clear();
        side.note.when.clear();
        side.note.pinned = false;
        side.note.kind = None;
        side.note.actor = None;
        side.note.model = None;
        side.foreign.clear();
        side.crlf = true;
    });
    let restored = with_dropped_keys(id(), &base.bytes(), &side.bytes()).unwrap();
    let expected = base.with(|note| {
        note.note.tags.push("reflected".to_owned());
        note.note.model = None;
        note.crlf = true;
    });
    assert_eq!(text(&restored), text(&expected.bytes()));
    assert_eq!(with_dropped_keys(id(), &base.bytes(), &restored), None);
    // A tombstone is unchanged.
    let tombstone = base.with(|note| note.note.forget(time("2026-11-02")));
    let revived = tombstone.with(|note| note.note.state = State::Active);
    let restored = with_dropped_keys(id(), &tombstone.bytes(), &revived.bytes()).unwrap();
    assert_eq!(read(&restored).state, State::Forgotten);
    assert_eq!(with_dropped_keys(id(), b"x", &side.bytes()), None);
    assert_eq!(with_dropped_keys(id(), &base.bytes(), b"x"), None);
}

#[test]
fn future_dates_are_clamped() {
    // GIT-16
    let draft = Draft::new().with(|note| note.note.updated_at = "2036-01-01T00:00:00Z".to_owned());
    let latest = time("2026-11-22T05:00:00Z");
    let clamped_bytes = clamped(id(), &draft.bytes(), latest).unwrap();
    let expected = draft.with(|note| note.note.updated_at = timestamp(latest));
    assert_eq!(text(&clamped_bytes), text(&expected.bytes()));
    assert_eq!(clamped(id(), &clamped_bytes, latest), None);
    for other in ["2026-11-22T05:00:00Z", "yesterday", ""] {
        let draft = Draft::new().with(|note| note.note.updated_at = other.to_owned());
        assert_eq!(clamped(id(), &draft.bytes(), latest), None, "{other}");
    }
    assert_eq!(clamped(id(), b"no note", latest), None);
}

/// An edit by a person or program; the numbers choose a position and a word.
#[derive(Debug, Clone, Copy)]
enum Edit {
    Title(usize),
    Project(usize),
    Confidence(usize),
    Touch(usize),
    AddTag(usize),
    RemoveTag(usize),
    TurnTags,
    AddLink(usize),
    RemoveLink(usize),
    AddTrigger(usize),
    Supersede(usize),
    SetKey(usize, usize),
    RemoveKey(usize),
    InsertLine(usize, usize),
    InsertParagraph(usize, usize),
    ReplaceLine(usize, usize),
    RemoveLine(usize),
    Append(usize),
    Crlf,
    Forget,
}

impl Edit {
    fn takes_lines_away(self) -> bool {
        matches!(self, Self::RemoveLine(_) | Self::ReplaceLine(..))
    }

    fn apply(self, draft: &mut Draft) {
        const WORDS: [&str; 8] = [
            "alpha", "beta", "gamma", "- item", "", "delta", "- four", "---",
        ];
        let word = |number: usize| WORDS[number % WORDS.len()].to_owned();
        let note = &mut draft.note;
        let mut lines: Vec<String> = note.body.split('\n').map(str::to_owned).collect();
        let place = |number: usize, length: usize| number % length.max(1);
        match self {
            Self::Title(number) => note.title = word(number),
            Self::Project(number) => note.project = word(number),
            Self::Confidence(number) => note.confidence = if number % 2 == 0 { 0.5 } else { 0.25 },
            Self::Touch(number) => {
                let later =
                    time("2026-11-01") + std::time::Duration::from_mins(1 + number as u64 % 99);
                note.updated_at = timestamp(later);
            }
            Self::AddTag(number) => note.add_tags([format!("t{}", number % 5).as_str()]),
            Self::RemoveTag(number) if !note.tags.is_empty() => {
                note.tags.remove(place(number, note.tags.len()));
            }
            Self::TurnTags => note.tags.reverse(),
            Self::AddLink(number) => note.links.push(format!("elaborates {}", number % 5)),
            Self::RemoveLink(number) if !note.links.is_empty() => {
                note.links.remove(place(number, note.links.len()));
            }
            Self::AddTrigger(number) => note.when.push(format!("cmd: {}", number % 5)),
            Self::Supersede(number) => note.supersedes.push(format!("N{}", number % 5)),
            Self::SetKey(key, number) => {
                let key = format!("x{}", key % 3);
                let lines = format!("{key}:\n  k: [{number}]\n");
                match draft.foreign.iter_mut().find(|(own, _)| *own == key) {
                    Some(own) => own.1 = lines,
                    None => draft.foreign.push((key, lines)),
                }
            }
            Self::RemoveKey(number) if !draft.foreign.is_empty() => {
                let place = place(number, draft.foreign.len());
                draft.foreign.remove(place);
            }
            Self::InsertLine(at, number) => lines.insert(place(at, lines.len() + 1), word(number)),
            Self::InsertParagraph(at, number) => {
                let place = place(at, lines.len() + 1);
                lines.splice(place..place, [word(number), String::new()]);
            }
            Self::ReplaceLine(at, number) => {
                let place = place(at, lines.len());
                lines[place] = format!("{} now", word(number));
            }
            Self::RemoveLine(at) => {
                lines.remove(place(at, lines.len()));
            }
            Self::Append(number) => lines.extend([String::new(), word(number)]),
            Self::Crlf => draft.crlf = true,
            Self::Forget => {
                note.forget(time("2026-11-02"));
                draft.foreign.clear();
                lines.clear();
            }
            Self::RemoveTag(_) | Self::RemoveLink(_) | Self::RemoveKey(_) => {}
        }
        draft.note.body = lines.join("\n");
    }
}

fn edited(base: &Draft, edits: &[Edit]) -> Draft {
    let mut draft = base.clone();
    for edit in edits {
        edit.apply(&mut draft);
    }
    draft
}

fn any_edit() -> impl Strategy<Value = Edit> {
    let number = || any::<usize>();
    prop_oneof![
        number().prop_map(Edit::Title),
        number().prop_map(Edit::Project),
        number().prop_map(Edit::Confidence),
        number().prop_map(Edit::Touch),
        number().prop_map(Edit::AddTag),
        number().prop_map(Edit::RemoveTag),
        Just(Edit::TurnTags),
        number().prop_map(Edit::AddLink),
        number().prop_map(Edit::RemoveLink),
        number().prop_map(Edit::AddTrigger),
        number().prop_map(Edit::Supersede),
        (number(), number()).prop_map(|(key, value)| Edit::SetKey(key, value)),
        number().prop_map(Edit::RemoveKey),
        (number(), number()).prop_map(|(at, word)| Edit::InsertLine(at, word)),
        (number(), number()).prop_map(|(at, word)| Edit::InsertParagraph(at, word)),
        (number(), number()).prop_map(|(at, word)| Edit::ReplaceLine(at, word)),
        number().prop_map(Edit::RemoveLine),
        number().prop_map(Edit::Append),
        Just(Edit::Crlf),
    ]
}

fn any_edits() -> impl Strategy<Value = Vec<Edit>> {
    prop::collection::vec(any_edit(), 0..6)
}

/// Bytes of a valid note, a nearly valid one, or anything.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..60),
        "\\PC{0,40}\n(<<<<<<< a\n|=======\n|>>>>>>> b\n|x\r\n|\n){0,6}".prop_map(|body| {
            format!("---\nid: {ID}\ntype: semantic\ntitle: t\n---\n{body}").into_bytes()
        }),
        "[a-z:{}&\\[\\]'\" \n-]{0,60}".prop_map(|front| {
            format!("---\nid: {ID}\ntype: semantic\ntitle: t\n{front}\n---\nb").into_bytes()
        }),
        "[ -~\n]{0,30}".prop_map(|front| {
            format!("---\n{{id: {ID}, type: semantic, title: t, k: {front}}}\n---\nb").into_bytes()
        }),
        (any_edits(), any::<bool>()).prop_map(|(edits, forget)| {
            let draft = edited(&Draft::new(), &edits);
            let draft = if forget {
                edited(&draft, &[Edit::Forget])
            } else {
                draft
            };
            draft.bytes()
        }),
    ]
}

/// Checks the invariants for any bytes.
fn check_invariants(base: Option<&[u8]>, a: &[u8], b: &[u8]) {
    let result = merged(base, a, b);
    assert_eq!(merged(base, a, a), Merged::just(a));
    // GIT-20: files of other programs are kept as written.
    assert_eq!(merged(Some(a), a, b), Merged::just(b));
    let parses = |bytes: &[u8]| NoteFile::parse(bytes, id()).is_ok();
    if base == Some(a) || base == Some(b) {
        return;
    }
    if parses(a) || parses(b) {
        assert!(
            parses(&result.bytes),
            "{}",
            String::from_utf8_lossy(&result.bytes)
        );
    }
    if !has_conflict_markers(a) && !has_conflict_markers(b) {
        assert!(!has_conflict_markers(&result.bytes));
    }
    for sibling in [&result.conflict, &result.proposal].into_iter().flatten() {
        assert!(NoteFile::parse(&sibling.bytes, sibling.id).is_ok());
    }
}

proptest! {
    #[test]
    fn any_bytes_keep_the_invariants(base in prop::option::of(any_bytes()), a in any_bytes(), b in any_bytes()) {
        check_invariants(base.as_deref(), &a, &b);
        let _ = edited_after_deletion(id(), base.as_deref(), &a);
        let _ = clamped(id(), &a, time("2026-11-01"));
        if let Some(restored) = with_dropped_keys(id(), &a, &b) {
            prop_assert!(NoteFile::parse(&restored, id()).is_ok());
        }
    }

    #[test]
    fn edits_keep_the_invariants(start in any_edits(), of_a in any_edits(), of_b in any_edits(), has_base in any::<bool>()) {
        let base = edited(&Draft::new(), &start);
        let (a, b) = (edited(&base, &of_a), edited(&base, &of_b));
        check_invariants(has_base.then(|| base.bytes()).as_deref(), &a.bytes(), &b.bytes());
    }

        /// Everything that a side added is in the merged note or in the conflict note.
    #[test]
    fn added_text_is_never_lost(start in any_edits(), of_a in any_edits(), of_b in any_edits()) {
        let base = edited(&Draft::new(), &start);
        let (a, b) = (edited(&base, &of_a), edited(&base, &of_b));
        let result = merged_drafts(&base, &a, &b);
        let kept = result.conflict.as_ref().map(|sibling| text(&sibling.bytes)).unwrap_or_default();
        let note = read(&result.bytes);
        let of_base = read(&base.bytes());
        for side in [read(&a.bytes()), read(&b.bytes())] {
            for list in [
                |note: &Note| note.tags.clone(),
                |note: &Note| note.links.clone(),
                |note: &Note| note.supersedes.clone(),
                |note: &Note| note.when.clone(),
            ] {
                let had = list(&of_base);
                for item in list(&side).iter().filter(|item| !had.contains(item)) {
                    prop_assert!(list(&note).contains(item), "{item}");
                }
            }
            for line in side.body.lines().filter(|line| !of_base.body.contains(line)) {
                prop_assert!(note.body.contains(line) || kept.contains(line), "{line}");
            }
        }
        for (_, lines) in a.foreign.iter().chain(&b.foreign).filter(|own| !base.foreign.contains(own)) {
            let lines = lines.as_str();
            let whole = text(&result.bytes).replace('\r', "");
            prop_assert!(whole.contains(lines) || kept.replace('\r', "").contains(lines), "{lines}");
        }
    }

        /// Merging a side again changes nothing, so machines that merged independently agree afterwards.
        /// Exception: a line added next to a removed one looks like a rewritten line; then nothing is lost.
    #[test]
    fn merging_a_side_again_changes_nothing(of_a in any_edits(), of_b in any_edits()) {
        let base = Draft::new();
        let (a, b) = (edited(&base, &of_a), edited(&base, &of_b));
        let first = merged_drafts(&base, &a, &b);
        if first.conflict.is_none() {
            for side in [&a, &b] {
                let again = merged(Some(&base.bytes()), &first.bytes, &side.bytes());
                if of_a.iter().chain(&of_b).any(|edit| edit.takes_lines_away()) {
                    let body = read(&again.bytes).body;
                    let kept = again.conflict.map(|sibling| text(&sibling.bytes).to_owned());
                    for line in read(&first.bytes).body.lines() {
                        let kept = kept.as_ref().is_some_and(|kept| kept.contains(line));
                        prop_assert!(kept || body.contains(line), "{line}");
                    }
                } else {
                    prop_assert_eq!(text(&again.bytes), text(&first.bytes));
                    prop_assert_eq!(&again.conflict, &None);
                }
            }
        }
    }
}

/// A SplitMix64 generator, so that one number determines the test.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
        usize::try_from(mixed % 1_000_003).unwrap() % limit
    }

    fn sentence(&mut self) -> String {
        const WORDS: [&str; 12] = [
            "the", "stub", "binds", "port", "after", "login", "a", "retry", "of", "git", "fails",
            "once",
        ];
        let length = 3 + self.below(9);
        let words: Vec<&str> = (0..length)
            .map(|_| WORDS[self.below(WORDS.len())])
            .collect();
        format!("{} {}", words.join(" "), self.below(1000))
    }
}

/// Paragraphs and lists, as blocks of lines separated by a blank line.
fn blocks(numbers: &mut Numbers) -> Vec<Vec<String>> {
    (0..2 + numbers.below(6))
        .map(|_| match numbers.below(3) {
            0 => (0..2 + numbers.below(5))
                .map(|_| format!("- {}", numbers.sentence()))
                .collect(),
            1 => (0..=numbers.below(3)).map(|_| numbers.sentence()).collect(),
            _ => vec![numbers.sentence()],
        })
        .collect()
}

fn body_of(blocks: &[Vec<String>]) -> String {
    let blocks: Vec<String> = blocks.iter().map(|block| block.join("\n")).collect();
    blocks.join("\n\n")
}

/// One side's edit of the unit `at`: a paragraph or a list item.
fn edit_unit(numbers: &mut Numbers, blocks: &mut Vec<Vec<String>>, at: (usize, usize)) {
    let (block, line) = at;
    let is_list = blocks[block][0].starts_with("- ");
    let sentence = numbers.sentence();
    match (is_list, numbers.below(4)) {
        (true, 0) => blocks[block].insert(line + 1, format!("- {sentence}")),
        (true, 1) if blocks[block].len() > 2 => drop(blocks[block].remove(line)),
        (true, _) => blocks[block][line] = format!("- {sentence}"),
        (false, 0) => blocks.insert(block + 1, vec![sentence]),
        (false, 1) if blocks.len() > 2 => drop(blocks.remove(block)),
        (false, _) => blocks[block][line] = sentence,
    }
}

/// Returns the units of a text that can be edited independently.
fn units(blocks: &[Vec<String>]) -> Vec<(usize, usize)> {
    let of_block = |(index, block): (usize, &Vec<String>)| {
        let count = if block[0].starts_with("- ") {
            block.len()
        } else {
            1
        };
        (0..count)
            .map(move |line| (index, line))
            .collect::<Vec<_>>()
    };
    blocks.iter().enumerate().flat_map(of_block).collect()
}

fn edit_field(numbers: &mut Numbers, which: usize, draft: &mut Draft) {
    let note = &mut draft.note;
    let word = format!("w{}", numbers.below(1000));
    match which {
        0 => note.title = numbers.sentence(),
        1 => note.project = word,
        2 => note.tags.insert(0, word),
        3 => note.tags.reverse(),
        4 => note.links.push(format!("elaborates {word}")),
        5 => note.confidence = 0.5,
        6 => note.instead = Some(word),
        7 => note.when.push(word),
        8 => note.supersedes.push(word),
        9 => draft.foreign.push((word.clone(), format!("{word}: 1\n"))),
        _ => note.pinned = true,
    }
}

/// GIT-08: edits of different fields, paragraphs or list items hardly ever conflict. Most pairs touch
/// neighbours, some have CRLF on one side, and all change the date on both.
#[test]
fn edits_of_different_parts_hardly_ever_conflict() {
    const SEED: u64 = 20_261_122;
    const PAIRS: usize = 2_500;
    let clashes: usize = std::thread::scope(|scope| {
        let threads = [0, 1, 2, 3].map(|part| scope.spawn(move || clashes_of(SEED + part, PAIRS)));
        threads.map(|thread| thread.join().unwrap()).iter().sum()
    });
    println!("seed {SEED}: {clashes} of {} pairs clash", 4 * PAIRS);
    assert!(clashes * 100 < 4 * PAIRS, "seed {SEED}: {clashes} clash");
}

fn clashes_of(seed: u64, pairs: usize) -> usize {
    let mut numbers = Numbers(seed);
    let mut clashes = 0;
    for pair in 0..pairs {
        let base_blocks = blocks(&mut numbers);
        let base = Draft::new().with(|base| base.note.body = body_of(&base_blocks));
        let units = units(&base_blocks);
        let (mut of_a, mut of_b) = (base_blocks.clone(), base_blocks.clone());
        let (mut a, mut b) = (base.clone(), base.clone());
        let kind = numbers.below(5);
        match kind {
            // Different fields, and a text on one side.
            0 => {
                let field = numbers.below(11);
                edit_field(&mut numbers, field, &mut a);
                let other = (field + 1 + numbers.below(10)) % 11;
                edit_field(&mut numbers, other, &mut b);
                let at = units[numbers.below(units.len())];
                edit_unit(&mut numbers, &mut of_a, at);
            }
            // Adjacent units.
            1 | 2 => {
                let first = numbers.below(units.len() - 1);
                edit_unit(&mut numbers, &mut of_a, units[first]);
                edit_unit(&mut numbers, &mut of_b, units[first + 1]);
            }
            // Both append a paragraph, or insert one at the same place.
            3 => {
                let at = numbers.below(base_blocks.len() + 1);
                of_a.insert(at, vec![numbers.sentence()]);
                of_b.insert(at, vec![numbers.sentence()]);
            }
            // Any two units.
            _ => {
                let first = numbers.below(units.len());
                let second = (first + 1 + numbers.below(units.len() - 1)) % units.len();
                edit_unit(&mut numbers, &mut of_a, units[first]);
                edit_unit(&mut numbers, &mut of_b, units[second]);
            }
        }
        a.note.body = body_of(&of_a);
        b.note.body = body_of(&of_b);
        a.note.updated_at = "2026-11-03T00:00:00+00:00".to_owned();
        b.note.updated_at = "2026-11-04T00:00:00+00:00".to_owned();
        a.crlf = numbers.below(4) == 0;
        if numbers.below(4) == 0 {
            b.note.tags.reverse();
        }
        let result = merged_drafts(&base, &a, &b);
        if result.conflict.is_some() {
            clashes += 1;
            println!("seed {seed}, pair {pair} of kind {kind} clashes");
            continue;
        }
        // Every added line is in the result, as often as in the side that added it.
        let joined = read(&result.bytes).body;
        let count = |text: &str, line: &str| text.lines().filter(|own| *own == line).count();
        for side in [&a, &b] {
            for line in side.note.body.lines().filter(|line| !line.is_empty()) {
                if count(&base.note.body, line) == 0 {
                    assert_eq!(
                        count(&joined, line),
                        1,
                        "seed {seed}, pair {pair}: {line}\n{joined}"
                    );
                }
            }
        }
    }
    clashes
}

/// Merging takes linear time in the length of the text.
#[test]
fn merging_takes_linear_time() {
    let sides = |lines: usize| {
        [(1, ""), (5, "a"), (7, "b")].map(|(every, word)| {
            let line = |line: usize| {
                // Few different lines, so that none of them leads.
                let changed = if line.is_multiple_of(every) { word } else { "" };
                format!("{changed}{}\n", line % 7)
            };
            Draft::new()
                .with(|draft| draft.note.body = (0..lines).map(line).collect())
                .bytes()
        })
    };
    let merged = |[base, a, b]: &[Vec<u8>; 3]| merge(id(), Some(base), a, b);
    let (short, long) = (sides(1_250), sides(20_000));
    assert_linear("merge", || merged(&short), || merged(&long));
}
