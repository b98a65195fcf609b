use proptest::prelude::*;
use std::io;

use super::*;

fn id(name: &str) -> NoteId {
    NoteId::made_of(name)
}

fn given() -> BTreeSet<NoteId> {
    ["a", "b", "c"].map(id).into()
}

/// Parses an answer in which `@x` is the id of note x.
fn read(answer: &str) -> Result<Vec<Group>, InvalidAnswer> {
    let mut text = answer.to_owned();
    for name in ["a", "b", "c", "z"] {
        text = text.replace(&format!("@{name}"), &id(name).to_string());
    }
    groups(&text, &given())
}

#[test]
fn an_answer_is_read_with_or_without_a_fence() {
    let keep = r#"[{"action": "keep", "keeper_id": "@a", "superseded_ids": ["@b"]}]"#;
    let expected = [Group::Keep {
        keeper: id("a"),
        superseded: vec![id("b")],
    }];
    for answer in [
        keep.to_owned(),
        format!("\n  {keep}\n"),
        format!("```json\n{keep}\n```"),
        format!("```\n{keep}\n```\n"),
        format!("```\n{keep}"),
    ] {
        assert_eq!(read(&answer).unwrap(), expected, "{answer}");
    }
    assert_eq!(read("[]"), Ok(vec![]));
    let synthesize = r#"[{"action": "synthesize", "type": "procedural", "title": " T ", "body": "B\n", "superseded_ids": ["@a", "@b"], "why": 1}]"#;
    let expected = [Group::Synthesize {
        note_type: NoteType::Procedural,
        title: "T".to_owned(),
        body: "B".to_owned(),
        superseded: vec![id("a"), id("b")],
    }];
    assert_eq!(read(synthesize).unwrap(), expected);
}

#[test]
fn one_fault_rejects_the_whole_answer() {
    // LLM-01
    let good = r#"{"action": "keep", "keeper_id": "@c", "superseded_ids": ["@b"]}"#;
    for (group, reason) in [
        (r#""text""#, "group 2 is not an object"),
        ("null", "group 2 is not an object"),
        ("{}", "group 2: the action is neither keep nor synthesize"),
        (
            r#"{"action": "drop", "superseded_ids": ["@a"]}"#,
            "group 2: the action is neither keep nor synthesize",
        ),
        (
            r#"{"action": "keep", "keeper_id": "@a", "superseded_ids": []}"#,
            "group 2: superseded_ids is not a list of ids",
        ),
        (
            r#"{"action": "keep", "keeper_id": "@a"}"#,
            "group 2: superseded_ids is not a list of ids",
        ),
        (
            r#"{"action": "keep", "keeper_id": "@a", "superseded_ids": "@b"}"#,
            "group 2: superseded_ids is not a list of ids",
        ),
        (
            r#"{"action": "keep", "keeper_id": "@a", "superseded_ids": [1]}"#,
            "group 2: superseded_ids is not a list of ids",
        ),
        (
            r#"{"action": "keep", "superseded_ids": ["@a"]}"#,
            "group 2: keeper_id is missing",
        ),
        (
            r#"{"action": "keep", "keeper_id": " ", "superseded_ids": ["@a"]}"#,
            "group 2: keeper_id is missing",
        ),
        (
            r#"{"action": "keep", "keeper_id": "@a", "superseded_ids": ["@a"]}"#,
            "group 2: the keeper would replace itself",
        ),
        (
            r#"{"action": "keep", "keeper_id": "@a", "superseded_ids": ["@z"]}"#,
            "group 2: it names a note that was not in the request",
        ),
        (
            r#"{"action": "keep", "keeper_id": "../a", "superseded_ids": ["@a"]}"#,
            "group 2: it names a note that was not in the request",
        ),
        (
            r#"{"action": "keep", "keeper_id": "@a", "superseded_ids": ["@b"]}"#,
            "group 2: @b is named twice",
        ),
        (
            r#"{"action": "synthesize", "type": "semantic", "title": "t", "body": "b", "superseded_ids": ["@a", "@a"]}"#,
            "group 2: @a is named twice",
        ),
        (
            r#"{"action": "synthesize", "type": "episodic", "title": "t", "body": "b", "superseded_ids": ["@a"]}"#,
            "group 2: the type is neither semantic nor procedural",
        ),
        (
            r#"{"action": "synthesize", "title": "t", "body": "b", "superseded_ids": ["@a"]}"#,
            "group 2: the type is neither semantic nor procedural",
        ),
        (
            r#"{"action": "synthesize", "type": "semantic", "title": "\u200b ", "body": "b", "superseded_ids": ["@a"]}"#,
            "group 2: title is blank",
        ),
        (
            r#"{"action": "synthesize", "type": "semantic", "title": "t", "body": " \n", "superseded_ids": ["@a"]}"#,
            "group 2: body is blank",
        ),
    ] {
        let refused = read(&format!("[{good}, {group}]")).unwrap_err().to_string();
        let expected = ["a", "b", "z"]
            .iter()
            .fold(reason.to_owned(), |text, name| {
                text.replace(&format!("@{name}"), &id(name).to_string())
            });
        assert_eq!(refused, expected, "{group}");
    }
    for (answer, reason) in [
        ("", "the answer is not JSON"),
        ("Here it is: []", "the answer is not JSON"),
        ("[] Done.", "the answer is not JSON"),
        ("[{\"action\": \"keep\"", "the answer is not JSON"),
        ("{\"groups\": []}", "the answer is not a list of groups"),
        ("\"[]\"", "the answer is not a list of groups"),
    ] {
        let refused = read(answer).unwrap_err().to_string();
        assert!(refused.starts_with(reason), "{answer}: {refused}");
    }
}

fn note(name: &str, body: &str) -> Note {
    let mut note = Note::new(id(name), NoteType::Semantic, DateTime::UNIX_EPOCH);
    note.title = format!("Title {name}");
    note.body = body.to_owned();
    note.project = "p".to_owned();
    note.source = Source::Reflection;
    note
}

fn author() -> Author {
    Author {
        machine: "laptop".to_owned(),
        model: "local/m".to_owned(),
        now: DateTime::from_timestamp(1_767_323_045, 0).unwrap(),
    }
}

fn keep(keeper: &str, superseded: &str) -> Group {
    Group::Keep {
        keeper: id(keeper),
        superseded: vec![id(superseded)],
    }
}

fn synthesize(body: &str, superseded: &[&str]) -> Group {
    Group::Synthesize {
        note_type: NoteType::Semantic,
        title: "One".to_owned(),
        body: body.to_owned(),
        superseded: superseded.iter().map(|name| id(name)).collect(),
    }
}

fn applied(group: &Group, notes: &[Note]) -> Option<MergeOutcome> {
    let notes = notes.iter().map(|note| (note.id, note)).collect();
    group.applied(&notes, &author())
}

#[test]
fn a_keeper_lists_what_it_supersedes() {
    let mut keeper = note("a", "all");
    keeper.supersedes = vec![id("z").to_string()];
    let notes = [keeper.clone(), note("b", "some")];
    let Some(MergeOutcome::Changed(kept)) = applied(&keep("a", "b"), &notes) else {
        panic!()
    };
    let mut ids = vec![id("z").to_string(), id("b").to_string()];
    ids.sort();
    assert_eq!(kept.supersedes, ids);
    assert!(kept.has_tag("merged"));
    assert_eq!(kept.updated_at, "2026-01-02T03:04:05+00:00");
    assert_eq!(
        (kept.body, kept.created_at),
        (keeper.body, keeper.created_at)
    );
    assert_eq!(applied(&keep("a", "gone"), &notes), None);
}

#[test]
fn a_new_note_states_its_origin() {
    let notes = [note("a", "one"), note("b", "two")];
    let Some(MergeOutcome::Made(made)) = applied(&synthesize("both", &["a", "b"]), &notes) else {
        panic!()
    };
    assert_eq!(made.supersedes, [id("a").to_string(), id("b").to_string()]);
    assert_eq!(
        (made.source, made.model.as_deref()),
        (Source::Reflection, Some("local/m"))
    );
    assert!(made.has_tag("merge") && made.confidence < 0.61 && made.project == "p");
    assert_eq!(made.state, State::Active);
}

#[test]
fn what_a_person_wrote_is_neither_changed_nor_hidden() {
    // LLM-06
    let mut theirs = note("a", "one");
    theirs.source = Source::Human;
    let mut everywhere = note("a", "one");
    everywhere.project = "global".to_owned();
    for untouchable in [theirs, everywhere] {
        let notes = [untouchable, note("b", "two")];
        assert_eq!(applied(&keep("a", "b"), &notes), Some(MergeOutcome::Left));
        assert_eq!(applied(&keep("b", "a"), &notes), Some(MergeOutcome::Left));
        let Some(MergeOutcome::Proposed(made)) = applied(&synthesize("both", &["a", "b"]), &notes)
        else {
            panic!()
        };
        assert_eq!(
            (made.state, made.scope),
            (State::Proposed, Scope::MachineLocal)
        );
    }
    let mut agents = note("a", "one");
    agents.source = Source::Human;
    agents.actor = Some("agent".to_owned());
    assert!(matches!(
        applied(&keep("a", "b"), &[agents, note("b", "two")]),
        Some(MergeOutcome::Changed(_))
    ));
}

#[test]
fn a_model_is_shown_no_secret_and_no_more_than_fits() {
    // LLM-04
    let secret = concat!("ghp", "_0123456789abcdefghijABCDEFGHIJ456789");
    let one = note("a", &format!("Key {secret} <private>salary</private> end"));
    let long = note("b", &"long ".repeat(100_000));
    let asked = std::cell::RefCell::new(String::new());
    let model = |system: &str, user: &str| {
        assert!(system.contains("JSON array"));
        user.clone_into(&mut asked.borrow_mut());
        Ok::<_, io::Error>("[]".to_owned())
    };
    assert_eq!(ask(&[&one, &long], &model).unwrap(), []);
    let asked = asked.into_inner();
    assert!(
        asked.contains(&format!("## [{}] [semantic] Title a\nKey ", one.id)),
        "{asked}"
    );
    for hidden in [secret, "salary", &long.id.to_string()] {
        assert!(!asked.contains(hidden), "{hidden}");
    }
    let (_, given) = shown(&[&one, &long]);
    assert_eq!(given, [one.id].into());
    let down = |_: &str, _: &str| Err(io::Error::other("down"));
    assert_eq!(ask(&[&one], &down).unwrap_err().to_string(), "down");
}

proptest! {
    /// Whatever the answer, groups name only given notes, each once.
    #[test]
    fn groups_name_given_notes_once(
        all in prop::collection::vec((any::<bool>(), 0..4_usize, prop::collection::vec(0..4_usize, 0..3)), 0..4),
        noise in "[\\[\\]{}\",: a]{0,6}",
    ) {
        let name = |place: usize| format!("@{}", ["a", "b", "c", "z"][place]);
        let all: Vec<String> = all
            .into_iter()
            .map(|(is_keep, keeper, superseded)| {
                let superseded: Vec<String> = superseded.into_iter().map(name).collect();
                let action = if is_keep { "keep" } else { "synthesize" };
                format!(
                    "{{\"action\": \"{action}\", \"keeper_id\": \"{}\", \"superseded_ids\": {superseded:?}, \
                     \"type\": \"semantic\", \"title\": \"t\", \"body\": \"b\"}}",
                    name(keeper)
                )
            })
            .collect();
        for answer in [format!("[{}]", all.join(",")), noise] {
            let Ok(groups) = read(&answer) else { continue };
            let named = groups.iter().flat_map(|group| {
                let keeper = match group {
                    Group::Keep { keeper, .. } => Some(*keeper),
                    Group::Synthesize { .. } => None,
                };
                group.superseded().iter().copied().chain(keeper)
            });
            let named: Vec<NoteId> = named.collect();
            let distinct: BTreeSet<NoteId> = named.iter().copied().collect();
            prop_assert_eq!(distinct.len(), named.len());
            prop_assert!(distinct.is_subset(&given()));
            prop_assert!(groups.iter().all(|group| !group.superseded().is_empty()));
        }
    }
}
