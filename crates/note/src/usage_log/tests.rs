use proptest::{collection::vec, option, prelude::*, sample::subsequence};

use super::*;

const ONE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
const TWO: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAW";
const THREE: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAX";
const KEY: &str = "01ARZ3NDEKTSV4RRFFQ69G5FB0";

fn note(text: &str) -> PortableId {
    PortableId::new(text.parse().unwrap(), Scope::Portable).unwrap()
}

fn numbered_note(number: u8) -> PortableId {
    note(&NoteId::of_session(&number.to_string()).to_string())
}

fn at(text: &str) -> DateTime<Utc> {
    time(text).unwrap()
}

fn source(machine: &str, month: &str) -> ReceiptSource {
    ReceiptSource {
        machine: machine.to_owned(),
        month: month.parse().unwrap(),
    }
}

fn read(line: &str) -> Receipt {
    Receipt::parse_line(line.as_bytes()).unwrap()
}

/// A line of March 2026 with its own key.
fn line(number: usize, rest: &str) -> Receipt {
    let key = ReceiptKey(Ulid::from_parts(1_772_000_000_000, 0)).part(number);
    read(&format!(
        r#"{{"v":1,"k":"{key}","t":"2026-03-04T10:11:{:02}Z",{rest}}}"#,
        number % 60
    ))
}

fn counts_of(receipts: &[Receipt]) -> Counts {
    let mut fold = Fold::default();
    for receipt in receipts {
        fold.apply(source("laptop", "2026-03"), receipt.clone());
    }
    fold.total()
}

#[test]
fn a_line_has_the_fields_of_the_format() {
    let mut receipt = Receipt::empty(KEY.parse().unwrap(), at("2026-03-04T10:11:12Z"));
    receipt.session = Some(SessionMark::new("salt", "session"));
    receipt.project = Some("github.com/acme/\"shop\"".to_owned());
    receipt.shown = vec![note(ONE), note(TWO)];
    receipt.used = vec![
        Use {
            note: note(ONE),
            weight: Weight::Explicit,
            turn: 3,
        },
        Use {
            note: note(TWO),
            weight: Weight::Implicit,
            turn: 4,
        },
    ];
    receipt.feedback = vec![(note(ONE), Feedback::Good), (note(TWO), Feedback::Bad)];
    receipt.verified = vec![note(ONE)];
    receipt.gone = vec![note(THREE)];
    receipt.aliases = vec![Alias::new("shop", "github.com/acme/shop").unwrap()];
    receipt.unaliases = vec![Alias::new("a", "b").unwrap()];
    let lines = receipt.to_lines();
    let session = receipt.session.unwrap();
    assert_eq!(
        lines,
        [format!(
            "{{\"v\":1,\"k\":\"{KEY}\",\"t\":\"2026-03-04T10:11:12Z\",\"s\":\"{session}\",\
             \"p\":\"github.com/acme/\\\"shop\\\"\",\"shown\":[\"{ONE}\",\"{TWO}\"],\
             \"used\":[[\"{ONE}\",1,3],[\"{TWO}\",0.5,4]],\
             \"fb\":[[\"{ONE}\",\"good\"],[\"{TWO}\",\"bad\"]],\"ok\":[\"{ONE}\"],\
             \"gone\":[\"{THREE}\"],\"alias\":[[\"shop\",\"github.com/acme/shop\"]],\
             \"unalias\":[[\"a\",\"b\"]]}}\n"
        )]
    );
    assert_eq!(read(&lines[0]), receipt);
    assert_eq!(session.to_string().len(), 12);
    assert_eq!(SessionMark::parse(&session.to_string()), Some(session));
    assert_ne!(SessionMark::new("other salt", "session"), session);
}

#[test]
fn a_machine_local_note_has_no_portable_id() {
    let id = ONE.parse().unwrap();
    assert_eq!(PortableId::new(id, Scope::MachineLocal), None);
    assert_eq!(
        PortableId::new(id, Scope::Portable).map(PortableId::id),
        Some(id)
    );
}

#[test]
fn unknown_fields_are_ignored() {
    let head = format!(r#""k":"{KEY}","t":"2026-03-04T10:11:12Z""#);
    let plain = read(&format!(r#"{{"v":1,{head}}}"#));
    for rest in [
        r#""new":{"a":[1,2]}"#,
        r#""shown":"none","used":{},"fb":null,"ok":3,"gone":true,"alias":"x""#,
        r#""shown":["../../etc/passwd",3,null],"used":[[],["x",1,1],[3]],"fb":[["x","good"]]"#,
        &format!(r#""used":[["{ONE}",0,1],["{ONE}",-1,1],["{ONE}",1,-1],["{ONE}",1,1e20]]"#),
        &format!(r#""fb":[["{ONE}","excellent"],["{ONE}"]]"#),
        r#""alias":[["a","a"],["a",""],["shop","global"],["global","shop"],["a\u0000","b"],["a\nb","c"],["a"],[1,2]]"#,
        r#""s":"3F2C3F2C3F2C","p":"a\u202eb""#,
        r#""s":"+12345678901","p":" shop""#,
        r#""s":7,"p":["x"]"#,
    ] {
        assert_eq!(
            read(&format!(r#"{{"v":1,{head},{rest}}}"#)),
            plain,
            "{rest}"
        );
    }
    let newer = read(&format!(r#"{{"v":2,{head},"gone":["{ONE}"]}}"#));
    assert!(newer.is_newer() && !plain.is_newer());
    assert_eq!(newer.gone, [note(ONE)]);
    assert!(read(&format!("{{{head}}}")).is_newer());
}

#[test]
fn invalid_receipts_are_refused() {
    for bad in [
        String::new(),
        "{}".to_owned(),
        "[]".to_owned(),
        "<<<<<<< HEAD".to_owned(),
        format!(r#"{{"v":1,"k":"{KEY}"}}"#),
        format!(r#"{{"v":1,"k":"{KEY}","t":"yesterday"}}"#),
        format!(r#"{{"v":1,"k":"{KEY}","t":"+12026-03-04T10:11:12Z"}}"#),
        format!(
            r#"{{"v":1,"k":"{}","t":"2026-03-04T10:11:12Z"}}"#,
            KEY.to_lowercase()
        ),
        format!(r#"{{"v":1,"k":"{KEY}","t":"2026-03-04T10:11:12Z""#),
        format!(
            r#"{{"v":1,"k":"{KEY}","t":"2026-03-04T10:11:12Z","x":"{}"}}"#,
            "x".repeat(20_000)
        ),
        format!(
            r#"{{"v":1,"k":"{KEY}","t":"2026-03-04T10:11:12Z","x":{}}}"#,
            "[".repeat(5_000)
        ),
    ] {
        assert_eq!(
            Receipt::parse_line(bad.as_bytes()),
            Err(InvalidReceipt),
            "{bad}"
        );
    }
}

#[test]
fn a_session_counts_once() {
    let counts = counts_of(&[
        line(
            1,
            &format!(
                r#""s":"111111111111","p":"shop","shown":["{ONE}","{TWO}","{THREE}"],"used":[["{ONE}",1,3],["{TWO}",0.5,5]]"#
            ),
        ),
        line(
            2,
            &format!(
                r#""s":"111111111111","p":"shop","shown":["{ONE}"],"used":[["{ONE}",0.5,3],["{ONE}",1,9]],"fb":[["{TWO}","bad"],["{TWO}","bad"]]"#
            ),
        ),
        line(
            3,
            &format!(r#""s":"222222222222","p":"shop","fb":[["{TWO}","bad"]],"ok":["{THREE}"]"#),
        ),
        line(4, &format!(r#""fb":[["{TWO}","good"]]"#)),
    ]);
    let one = &counts.notes[&note(ONE)];
    assert_eq!(
        (one.used, one.hinted, one.sessions, one.shown, one.unused),
        (2, 0, 1, 1, 0)
    );
    assert_eq!(one.last, Some(at("2026-03-04T10:11:02Z")));
    let two = &counts.notes[&note(TWO)];
    assert_eq!((two.used, two.hinted, two.good, two.bad), (0, 1, 1, 2));
    let three = &counts.notes[&note(THREE)];
    assert_eq!((three.shown, three.unused), (1, 1));
    assert_eq!(three.verified, Some(at("2026-03-04T10:11:03Z")));
    assert_eq!(counts.sessions["shop"], 2);
    assert_eq!(counts.sessions.len(), 1);
    assert_eq!(counts.receipts, 4);
}

#[test]
fn a_pair_is_used_within_two_turns() {
    let used = |turns: [(&str, u32); 3]| {
        let used: Vec<_> = turns
            .iter()
            .map(|(id, turn)| format!(r#"["{id}",1,{turn}]"#))
            .collect();
        counts_of(&[line(
            1,
            &format!(r#""s":"111111111111","used":[{}]"#, used.join(",")),
        )])
        .pairs
        .into_keys()
        .collect::<Vec<_>>()
    };
    let (one, two, three) = (note(ONE), note(TWO), note(THREE));
    assert_eq!(used([(ONE, 1), (TWO, 3), (THREE, 6)]), [(one, two)]);
    assert_eq!(
        used([(TWO, 1), (ONE, 1), (THREE, 3)]),
        [(one, two), (one, three), (two, three)]
    );
    assert_eq!(used([(ONE, 1), (ONE, 2), (THREE, 4)]), [(one, three)]);
    assert_eq!(used([(ONE, 1), (TWO, 4), (THREE, 4_000_000_000)]), []);
}

#[test]
fn aliases_are_resolved_in_every_shape() {
    let aliases = |pairs: &[(&str, &str, bool)]| {
        let receipts: Vec<_> = pairs
            .iter()
            .enumerate()
            .map(|(number, (key, same_as, holds))| {
                let field = if *holds { "alias" } else { "unalias" };
                                // Later keys sort later, as real keys do.
                let key_of = ReceiptKey(Ulid::from_parts(number as u64, 0));
                read(&format!(
                    r#"{{"v":1,"k":"{key_of}","t":"2026-03-04T10:11:12Z","{field}":[["{key}","{same_as}"]]}}"#
                ))
            })
            .collect();
        let forward = Aliases::from_counts(&counts_of(&receipts));
        let mut backward = receipts;
        backward.reverse();
        assert_eq!(Aliases::from_counts(&counts_of(&backward)), forward);
        forward
    };
    let chain = aliases(&[("a", "b", true), ("b", "c", true)]);
    assert_eq!(chain.pairs().collect::<Vec<_>>(), [("a", "c"), ("b", "c")]);
    assert_eq!(chain.others("b").collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!((chain.current("a"), chain.current("x")), ("c", "x"));
    assert_eq!(chain.others("x").count(), 0);
    let circle = aliases(&[("a", "b", true), ("b", "c", true), ("c", "a", true)]);
    assert_eq!(circle.pairs().collect::<Vec<_>>(), [("b", "a"), ("c", "a")]);
    let two_ways = aliases(&[("a", "b", true), ("a", "c", true)]);
    assert_eq!(two_ways.current("b"), "c");
    let split = aliases(&[("a", "b", true), ("b", "c", true), ("a", "b", false)]);
    assert_eq!(split.pairs().collect::<Vec<_>>(), [("b", "c")]);
    let again = aliases(&[("a", "b", true), ("a", "b", false), ("a", "b", true)]);
    assert_eq!(again.current("a"), "b");
    // The members of a group stay different projects.
    let group = aliases(&[
        ("a", "group:g", true),
        ("b", "group:g", true),
        ("c", "group:g", true),
        ("c", "group:g", false),
        ("old", "a", true),
    ]);
    assert_eq!(group.pairs().collect::<Vec<_>>(), [("old", "a")]);
    let of = |key: &'static str| group.groups_of(key).collect::<Vec<_>>();
    assert_eq!(
        ["a", "old", "b", "c"].map(of),
        [vec!["group:g"], vec!["group:g"], vec!["group:g"], vec![]]
    );
    let members = group.groups()["group:g"].iter().collect::<Vec<_>>();
    assert_eq!(members, ["a", "b"]);
}

#[test]
fn an_alias_wins_although_the_clock_is_behind() {
    let ahead = Receipt::new(at("2030-01-01T00:00:00Z"));
    let now = at("2026-03-04T10:11:12Z");
    let later = Receipt::later_than(ahead.key(), now);
    assert!(later.key() > ahead.key());
    assert_eq!(later.at(), now);
    let soon = Receipt::later_than(Receipt::new(now).key(), at("2026-03-05T00:00:00Z"));
    assert_eq!(soon.key().0.timestamp_ms(), 1_772_668_800_000);
}

#[test]
fn months_have_one_spelling() {
    for bad in [
        "2026-3",
        "2026-13",
        "26-03",
        "+2026-03",
        "2026-03-01",
        "",
        "2026-00",
        " 2026-03",
    ] {
        assert!(bad.parse::<Month>().is_err(), "{bad}");
    }
    for (month, next, due) in [
        ("2026-01", "2026-02", "2026-03-08T00:00:00Z"),
        ("2026-12", "2027-01", "2027-02-05T00:00:00Z"),
        ("2024-02", "2024-03", "2024-04-05T00:00:00Z"),
    ] {
        let month: Month = month.parse().unwrap();
        assert_eq!(month.next().to_string(), next);
        assert_eq!(Month::from_time(month.middle()), month);
        assert!(!month.is_to_be_compacted(at(due)));
        assert!(month.is_to_be_compacted(at(due) + chrono::Duration::seconds(1)));
    }
}

#[test]
fn diverged_versions_of_a_file_are_joined() {
    let line = |number| line(number, r#""s":"111111111111""#).to_lines().concat();
    let (common, ours, theirs) = (line(1), line(2), line(3));
    let one = format!("{common}not a receipt\n{ours}");
    let other = format!("{common}{theirs}{{\"torn");
    let joined = join_lines(one.as_bytes(), other.as_bytes());
    assert_eq!(joined, join_lines(other.as_bytes(), one.as_bytes()));
    assert_eq!(joined, join_lines(&joined, &joined));
    let joined = String::from_utf8(joined).unwrap();
    let mut lines: Vec<_> = joined.split_inclusive('\n').collect();
    lines.sort_unstable();
    let mut expected = [common.as_str(), &ours, &theirs, "not a receipt\n"];
    expected.sort_unstable();
    assert_eq!(lines, expected);
}

prop_compose! {
    fn any_alias()(key in "[a-z\"\\\\é]{1,200}", same_as in "[A-Z]{1,200}") -> Alias {
        Alias::new(&key, &same_as).unwrap()
    }
}

prop_compose! {
    fn any_receipt(most: usize)(
        seconds in 1_700_000_000_i64..1_800_000_000,
        session in option::of(0_u8..6),
        project in option::of("[a-z/\"\u{1f600}]{1,200}"),
        shown in vec(0_u8..40, 0..most),
        used in vec((0_u8..40, any::<bool>(), 0_u32..30), 0..most),
        feedback in vec((0_u8..40, any::<bool>()), 0..most),
        verified in vec(0_u8..40, 0..most / 4 + 1),
        gone in vec(0_u8..40, 0..most / 4 + 1),
        aliases in vec(any_alias(), 0..4),
        unaliases in vec(any_alias(), 0..4),
    ) -> Receipt {
        let notes = |numbers: Vec<u8>| numbers.into_iter().map(numbered_note).collect();
        Receipt {
            session: session.map(|number| SessionMark::new("salt", &number.to_string())),
            project,
            shown: notes(shown),
            used: used.into_iter().map(|(note, is_explicit, turn)| Use {
                note: numbered_note(note),
                weight: if is_explicit { Weight::Explicit } else { Weight::Implicit },
                turn,
            }).collect(),
            feedback: feedback.into_iter().map(|(note, is_good)| {
                (numbered_note(note), if is_good { Feedback::Good } else { Feedback::Bad })
            }).collect(),
            verified: notes(verified),
            gone: notes(gone),
            aliases,
            unaliases,
            ..Receipt::new(DateTime::from_timestamp(seconds, 0).unwrap())
        }
    }
}

/// Returns the lines of a receipt as one receipt.
fn joined(lines: &[String]) -> Receipt {
    let mut lines = lines.iter().map(|line| read(line));
    let mut all = lines.next().unwrap();
    for line in lines {
        assert_eq!(
            (line.at, line.session, &line.project),
            (all.at, all.session, &all.project)
        );
        all.shown.extend(line.shown);
        all.used.extend(line.used);
        all.feedback.extend(line.feedback);
        all.verified.extend(line.verified);
        all.gone.extend(line.gone);
        all.aliases.extend(line.aliases);
        all.unaliases.extend(line.unaliases);
    }
    all
}

fn fold_of(receipts: &[(u8, Receipt)]) -> Fold {
    let mut fold = Fold::default();
    for (machine, receipt) in receipts {
        let source = ReceiptSource {
            machine: format!("m{machine}"),
            month: Month::from_time(receipt.at()),
        };
        fold.apply(source, receipt.clone());
    }
    fold
}

proptest! {
    #[test]
    fn lines_are_short_and_complete(receipt in any_receipt(150)) {
        let lines = receipt.to_lines();
        prop_assert_eq!(&lines, &receipt.to_lines());
        for line in &lines {
            prop_assert!(line.len() <= MAX_LINE_LENGTH);
            prop_assert_eq!(line.matches('\n').count(), 1);
        }
        let mut keys: Vec<_> = lines.iter().map(|line| read(line).key()).collect();
        keys.sort_unstable();
        keys.dedup();
        prop_assert_eq!(keys.len(), lines.len());
        prop_assert_eq!(joined(&lines), receipt);
    }

    #[test]
    fn order_repetition_and_compaction_change_nothing(
        receipts in vec((0_u8..3, any_receipt(8)), 0..30),
        repeated in subsequence((0..30_usize).collect::<Vec<_>>(), 0..30),
        seed in any::<u64>(),
    ) {
        let fold = fold_of(&receipts);
        let mut shuffled: Vec<_> = receipts.clone();
        shuffled.extend(repeated.iter().filter_map(|index| receipts.get(*index).cloned()));
        shuffled.sort_by_key(|(_, receipt)| Sha256::digest(format!("{seed} {}", receipt.key)).to_vec());
        prop_assert_eq!(&fold_of(&shuffled), &fold);

        let events: usize = receipts.iter().map(|(_, receipt)| receipt.used.len()).sum();
        let total = fold.total();
        let counted: u64 = total.notes.values().map(|note| note.used + note.hinted).sum();
        prop_assert!(counted <= events as u64);
        prop_assert_eq!(total.receipts, receipts.len() as u64);

                // Every second source is compacted, written and read, while its lines still exist.
        let mut compacted = fold.clone();
        let sources: std::collections::BTreeSet<_> =
            receipts.iter().map(|(machine, receipt)| (*machine, Month::from_time(receipt.at()))).collect();
        for (machine, month) in sources.into_iter().step_by(2) {
            let source = ReceiptSource { machine: format!("m{machine}"), month };
            let file = fold.compact(&source);
            let read = FoldFile::parse(file.to_json().as_bytes()).unwrap();
            prop_assert_eq!(&read, &file);
            compacted.merge(&source.machine, read);
        }
        prop_assert_eq!(compacted.months(), fold.months());
    }

    #[test]
    fn any_bytes_are_accepted(bytes in vec(any::<u8>(), 0..200)) {
        let _ = Receipt::parse_line(&bytes);
        let _ = FoldFile::parse(&bytes);
        let _ = join_lines(&bytes, &bytes);
    }

    #[test]
    fn damaged_lines_are_read_or_refused(
        receipt in any_receipt(4),
        damage in vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let file = fold_of(&[(0, receipt.clone())]).compact(&ReceiptSource {
            machine: "m0".to_owned(),
            month: Month::from_time(receipt.at()),
        });
        for text in receipt.to_lines().into_iter().chain([file.to_json()]) {
            let mut bytes = text.into_bytes();
            for (place, byte) in &damage {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            bytes.truncate(cut.index(bytes.len() + 1));
            if let Ok(receipt) = Receipt::parse_line(&bytes) {
                counts_of(&[receipt]);
            }
            if let Ok(file) = FoldFile::parse(&bytes) {
                let mut fold = Fold::default();
                fold.merge("m0", file.clone());
                fold.merge("m1", file);
                Aliases::from_counts(&fold.total());
            }
        }
    }
}
