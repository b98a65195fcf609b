use anamnesis_note::note::{NoteType, Source, timestamp};
use chrono::TimeDelta;
use proptest::prelude::*;

use super::*;

fn at(day: i64) -> String {
    timestamp(DateTime::from_timestamp(1_767_323_045, 0).unwrap_or_default() + TimeDelta::days(day))
}

fn id(name: &str) -> NoteId {
    NoteId::made_of(name)
}

/// A person's fact, created on this day.
fn note(name: &str, day: i64, text: &str) -> Note {
    let mut note = Note::new(id(name), NoteType::Semantic, DateTime::UNIX_EPOCH);
    note.title = anamnesis_note::draft::title_of(text);
    note.body = text.to_owned();
    note.project = "p".to_owned();
    note.created_at = at(day);
    note
}

fn note_set(notes: Vec<Note>) -> NoteSet {
    NoteSet {
        notes,
        ..NoteSet::default()
    }
}

/// Applies a plan.
fn after(note_set: &NoteSet, plan: &Plan) -> NoteSet {
    let mut notes: BTreeMap<NoteId, Note> =
        note_set.notes.iter().map(|n| (n.id, n.clone())).collect();
    let mut replaced = note_set.replaced.clone();
    for note in plan.changed.iter().chain(&plan.made) {
        if note.state == State::Active {
            replaced.extend(
                note.supersedes
                    .iter()
                    .filter_map(|id| id.parse::<NoteId>().ok()),
            );
        }
        notes.insert(note.id, note.clone());
    }
    NoteSet {
        notes: notes.into_values().collect(),
        replaced,
        fixed: note_set.fixed.clone(),
        aliases: note_set.aliases.clone(),
        projects: note_set.projects.clone(),
    }
}

/// Returns which notes supersede which, in the order of the plan.
fn replacements(notes: Vec<Note>) -> Vec<(NoteId, Vec<NoteId>)> {
    let actions = plan(&note_set(notes)).actions.into_iter();
    actions
        .filter_map(|action| match action {
            Action::Replace {
                keeper, replaced, ..
            } => Some((keeper, replaced)),
            _ => None,
        })
        .collect()
}

#[test]
fn global_then_oldest_note_is_kept_of_equal_texts() {
    let text = "Run the linter before each push.\n\nIt takes a minute.";
    let spaced = "Run  the linter before each push.\nIt takes a minute.\n";
    let mut everywhere = note("everywhere", 9, spaced);
    everywhere.project = GLOBAL.to_owned();
    let notes = vec![note("young", 5, text), note("old", 1, text), everywhere];
    let found = replacements(notes.clone());
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, id("everywhere"));
    assert_eq!(found[0].1, [id("old"), id("young")]);
    let found = replacements(notes[..2].to_vec());
    assert_eq!(found, [(id("old"), vec![id("young")])]);
}

#[test]
fn metadata_is_merged_into_the_keeper() {
    let text = "Deploys go through the pipeline, never by hand.";
    let mut old = note("old", 1, text);
    old.tags = vec!["ops".to_owned()];
    old.links = vec![
        format!("related-to {} 0.9", id("third")),
        format!("related-to {}", id("young")),
    ];
    let mut young = note("young", 2, text);
    young.tags = vec!["ci".to_owned(), "ops".to_owned()];
    young.pinned = true;
    young.links = vec![
        format!("related-to {}", id("third")),
        format!("part-of {}", id("third")),
        "no link".to_owned(),
        format!("elaborates {}", id("old")),
    ];
    let plan = plan(&note_set(vec![
        old,
        young,
        note("third", 3, "Another matter."),
    ]));
    let [kept] = plan.changed.as_slice() else {
        panic!("{:?}", plan.changed)
    };
    assert_eq!(kept.id, id("old"));
    assert_eq!(kept.supersedes, [id("young").to_string()]);
    assert_eq!(kept.tags, ["ops", "ci"]);
    assert!(kept.pinned);
    let third = id("third");
    let expected = [
        format!("related-to {third} 0.9"),
        format!("part-of {third}"),
        "no link".to_owned(),
    ];
    assert_eq!(kept.links, expected);
}

/// A change that makes a note different, with a name.
type NamedEdit<'a> = (&'a str, &'a dyn Fn(&mut Note));

#[test]
fn a_note_is_replaced_only_where_nothing_is_lost() {
    let text = "The pipeline needs the token of the deploy account.";
    let other = |change: &dyn Fn(&mut Note)| {
        let mut other = note("other", 2, text);
        change(&mut other);
        replacements(vec![note("one", 1, text), other])
    };
    assert_eq!(other(&|_| {}).len(), 1);
    let changes: [NamedEdit<'_>; 8] = [
        ("another project", &|note| note.project = "q".to_owned()),
        ("another kind", &|note| note.kind = Some(Kind::Preference)),
        ("it comes up elsewhere", &|note| {
            note.when = vec!["tool: Bash".to_owned()]
        }),
        ("another remedy", &|note| {
            note.instead = Some("ask".to_owned())
        }),
        ("of this machine", &|note| note.scope = Scope::MachineLocal),
        ("muted", &|note| note.state = State::Muted),
        ("proposed", &|note| note.state = State::Proposed),
        ("a title of another matter", &|note| {
            note.title = "Quite unlike matters called by lengthy names nobody shares".to_owned();
        }),
    ];
    for (what, change) in changes {
        assert_eq!(other(change), [], "{what}");
    }
    // The title has its own information, so both notes stay.
    let found = other(&|note| note.title = "Step 2".to_owned());
    assert_eq!(found, [(id("other"), vec![id("one")])]);
    // A project's note does not supersede one for all projects, however old it is.
    let found = other(&|note| note.project = GLOBAL.to_owned());
    assert_eq!(found, [(id("other"), vec![id("one")])]);
}

#[test]
fn automatically_updated_notes_are_not_merged() {
    let text = "**Ask:** continue\n\n**Outcome:** done, tests pass";
    let of_session = |name: &str| {
        let mut note = note(name, 1, text);
        note.note_type = NoteType::Episodic;
        note.session = Some("1".to_owned());
        note
    };
    assert_eq!(replacements(vec![of_session("a"), of_session("b")]), []);
    let copied = |name: &str, day: i64| {
        let mut note = note(name, day, text);
        note.source = Source::Import;
        note
    };
    for pair in [
        [copied("a", 1), copied("b", 2)],
        [copied("a", 1), note("b", 2, text)],
        [note("a", 1, text), copied("b", 2)],
    ] {
        assert_eq!(replacements(pair.to_vec()), []);
    }
}

#[test]
fn tasks_without_a_body_are_compared_by_title() {
    let task = |name: &str, title: &str, status: &str| {
        let mut note = note(name, 1, title);
        note.body = String::new();
        note.kind = Some(Kind::Task);
        note.status = Some(status.to_owned());
        note
    };
    let found = |one, other| replacements(vec![one, other]).len();
    let flag = "Remove the flag of the old login";
    assert_eq!(
        found(task("a", flag, "pending"), task("b", flag, "pending")),
        1
    );
    assert_eq!(
        found(task("a", flag, "pending"), task("b", flag, "done")),
        0
    );
    assert_eq!(
        found(
            task("a", flag, "pending"),
            task("b", "Order new disks", "pending")
        ),
        0
    );
    assert_eq!(found(task("a", "", "pending"), task("b", "", "pending")), 0);
}

#[test]
fn the_note_that_says_more_stays() {
    let short = "The stub server has to run before the integration tests of the login start, or they hang for ever.";
    let long = format!("{short} Start it from the terminal.");
    let found = replacements(vec![note("short", 1, short), note("long", 2, &long)]);
    assert_eq!(found, [(id("long"), vec![id("short")])]);
    // Each has one word of its own, and only a person knows which one is meant.
    let other = short.replace("login", "checkout");
    let plan = plan(&note_set(vec![
        note("short", 1, short),
        note("other", 2, &other),
    ]));
    assert_eq!(
        (plan.actions, plan.alike),
        (vec![], vec![(id("short"), id("other"))])
    );
}

/// Sentences with a placeholder for the difference.
const PLACES: [&str; 10] = [
    "The gateway closes idle connections of the payment service after {} on every host of the cluster",
    "Nightly exports of the ledger are split into files of {} before they are sent to the archive",
    "A worker of the image queue may hold {} of memory before the supervisor starts it anew",
    "The search endpoint of the catalogue answers with {} at most, however many products match",
    "Backups of the customer database are kept for {} in the second region and then removed",
    "The release branch is frozen {} before the window in which the shop may be deployed",
    "Password reset mails of the account service are valid for {} and can be used from any device",
    "The cache of the price service drops entries that nobody has read for {} since they were written",
    "Each tenant of the reporting tool may run {} at the same time on the shared warehouse",
    "The retry queue of the webhook sender gives up after {} and writes the event to the table of failures",
];

/// Pairs of values for the placeholder.
const NUMBERS: [(&str, &str); 5] = [
    ("30 seconds", "60 seconds"),
    ("2 GB", "4 GB"),
    ("100 rows", "1000 rows"),
    ("three days", "five days"),
    ("15%", "50%"),
];

const VERSIONS: [(&str, &str); 5] = [
    (
        "what version 2.1.0 prescribes",
        "what version 2.1.4 prescribes",
    ),
    ("the limit of v18", "the limit of v20"),
    (
        "as long as release 1.9 allows",
        "as long as release 1.10 allows",
    ),
    ("the quota of protocol 3.0", "the quota of protocol 3.1"),
    (
        "the default of driver 8.0.33",
        "the default of driver 8.4.0",
    ),
];

const IDENTIFIERS: [(&str, &str); 5] = [
    ("the time of `idle_timeout`", "the time of `read_timeout`"),
    ("the value of `MAX_ITEMS`", "the value of `max_items`"),
    (
        "whatever `limits.toml` says",
        "whatever `defaults.toml` says",
    ),
    (
        "the amount that `--cap` sets",
        "the amount that `--cup` sets",
    ),
    ("the number in QUOTA_HARD", "the number in QUOTA_SOFT"),
];

/// Pairs of a sentence and its negation.
const DENIALS: [(&str, &str); 5] = [
    (
        "{} and this holds for tests",
        "{} and this does not hold for tests",
    ),
    (
        "{}, the client has to retry",
        "{}, the client never has to retry",
    ),
    (
        "Remember: {}, with a warning",
        "Remember: {}, without a warning",
    ),
    (
        "{}; the limit can be raised",
        "{}; the limit cannot be raised",
    ),
    (
        "{}. Operators are told about it",
        "{}. Nobody of the operators is told about it",
    ),
];

fn pairs_that_differ() -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for place in PLACES {
        for (one, other) in [NUMBERS, VERSIONS, IDENTIFIERS].concat() {
            pairs.push((place.replace("{}", one), place.replace("{}", other)));
        }
        let plain = place.replace("{}", "the usual time or amount");
        for (one, other) in DENIALS {
            pairs.push((one.replace("{}", &plain), other.replace("{}", &plain)));
        }
    }
    pairs
}

#[test]
fn none_of_two_hundred_pairs_with_real_differences_is_merged() {
    let pairs = pairs_that_differ();
    assert_eq!(pairs.len(), 200);
    let mut compared = 0;
    for (one, other) in &pairs {
        let notes = vec![note("one", 1, one), note("other", 2, other)];
        let note_set = note_set(notes);
        assert_eq!(plan(&note_set).actions, [], "{one} | {other}");
        let mut state = PlanState::new(&note_set);
        state.texts.add_texts(&note_set.notes);
        let found = state.texts.pairs(&state.in_use(), 0.8, |_, _| true);
        compared += found.len();
    }
    // Most pairs are as similar as notes that are merged. Only the comparison of values keeps
    // them apart.
    assert!(compared >= 150, "{compared}");
    // All pairs together, as in a store.
    let all = pairs.iter().zip(0..).flat_map(|((one, other), day)| {
        [
            note(&format!("{day} one"), day, one),
            note(&format!("{day} other"), day, other),
        ]
    });
    let all: Vec<Note> = all.collect();
    let twins: BTreeSet<(NoteId, NoteId)> =
        all.chunks(2).map(|two| (two[0].id, two[1].id)).collect();
    for (keeper, replaced) in replacements(all) {
        for note in replaced {
            assert!(!twins.contains(&(keeper, note)) && !twins.contains(&(note, keeper)));
        }
    }
}

/// Notes of two or three sentences.
const FACTS: [&str; 25] = [
    "The stub server binds a port of its own. Without it the login tests hang. Start it in another terminal.",
    "Rate limits live in the middleware. Each key has a bucket. Tests replace the clock.",
    "Deploys go through the pipeline. A tag starts them. The chat is told when they end.",
    "The index is derived from the notes. It may be deleted at any time. The next command builds it.",
    "Screens are drawn on the server first. The browser takes over afterwards. Fonts come last.",
    "Invoices are numbered by the billing service. Gaps are allowed. Numbers are given out on sending.",
    "The search keeps synonyms in a table. Editors maintain it. A restart reads it again.",
    "Feature flags are read at the start. Changing one needs a restart. The file stands beside the binary.",
    "Every migration runs in a transaction. Long ones are split. Locks are named in the comment.",
    "The parser caches trees by path. A changed file is parsed again. Memory is freed on idle.",
    "Uploads are streamed to the disk. The checksum is taken on the way. Broken ones are removed.",
    "Sessions are kept in the database. The cookie holds the name alone. Logging out deletes the row.",
    "The worker drains its queue before it exits. The supervisor waits for that. Signals are forwarded.",
    "Images are resized before the upload. The original stays on the phone. Orientation is kept.",
    "The audit table is append only. Triggers refuse changes. Reports read a copy.",
    "Translations are fetched at build time. Missing ones fall back to English. The build names them.",
    "The linter shares its rules with the editor. Exceptions need a reason. Generated code is left out.",
    "Webhooks are signed with the secret of the tenant. Old secrets stay valid for rotation. Replays are refused.",
    "The scheduler runs on the leader alone. Losing the lease stops it. Jobs are idempotent.",
    "Metrics are scraped from the sidecar. Labels are bounded. Dashboards are kept in the repository.",
    "Emails are rendered from templates. Previews are stored with the test. Links carry the campaign.",
    "The importer reads files line by line. Bad lines are reported. The good ones are taken.",
    "Prices are kept in cents. Rounding happens on display. Taxes are computed per line.",
    "The mobile build signs on the release machine. Certificates are renewed in spring. Nobody else has them.",
    "Large tables are partitioned by month. Old partitions are detached. The archive takes them.",
];

/// Returns the same fact in another order, with other line breaks and word forms.
fn rewordings(fact: &str) -> [String; 2] {
    let sentences: Vec<&str> = fact.split_inclusive(". ").map(str::trim).collect();
    let turned: Vec<&str> = sentences.iter().rev().copied().collect();
    let listed = sentences
        .iter()
        .map(|sentence| format!("- {}\n", sentence.trim_end_matches('.')));
    [turned.join(" "), listed.collect()]
}

#[test]
fn fifty_reworded_notes_are_merged() {
    let mut merged = 0;
    for fact in FACTS {
        for other in rewordings(fact) {
            let found = replacements(vec![note("one", 1, fact), note("other", 2, &other)]);
            assert_eq!(found.len(), 1, "{fact} | {other}");
            merged += found.len();
        }
    }
    assert_eq!(merged, 50);
    // All facts in one store; none is merged with another fact.
    let all = FACTS.iter().zip(0_i64..).flat_map(|(fact, number)| {
        let [turned, listed] = rewordings(fact);
        [(0, (*fact).to_owned()), (1, turned), (2, listed)]
            .map(|(form, text)| note(&format!("{number} {form}"), 3 * number + form, &text))
    });
    let found = replacements(all.collect());
    assert_eq!(
        found
            .iter()
            .map(|(_, replaced)| replaced.len())
            .sum::<usize>(),
        50
    );
    for (number, (keeper, replaced)) in found.iter().enumerate() {
        let own = [1, 2].map(|form| id(&format!("{number} {form}")));
        let by_number = found
            .iter()
            .find(|(keeper, _)| *keeper == id(&format!("{number} 0")));
        assert!(
            by_number.is_some_and(|(_, replaced)| own.iter().all(|id| replaced.contains(id))),
            "{keeper} {replaced:?}"
        );
    }
}

#[test]
fn useless_links_are_removed() {
    let mut from = note("from", 1, "One matter.");
    let [to, gone, unread, forgotten] = ["to", "gone", "unread", "forgotten"].map(id);
    let mut tombstone = note("forgotten", 1, "");
    tombstone.state = State::Forgotten;
    from.links = vec![
        format!("related-to {to}"),
        format!("about {gone}"),
        format!("about {unread}"),
        format!("about {forgotten}"),
        format!("related-to {}", id("from")),
        "depends on the weather".to_owned(),
        format!("related-to {to} 0.9"),
        format!("part-of {to}"),
    ];
    let note_set = NoteSet {
        notes: vec![from, note("to", 2, "Another matter."), tombstone],
        fixed: BTreeSet::from([unread]),
        ..NoteSet::default()
    };
    let plan = plan(&note_set);
    let expected = vec![
        (format!("related-to {to}"), "is there twice"),
        (format!("about {gone}"), "leads nowhere"),
        (format!("about {forgotten}"), "leads nowhere"),
        (
            format!("related-to {}", id("from")),
            "leads to the note itself",
        ),
    ];
    let note = id("from");
    assert_eq!(
        plan.actions,
        [Action::Unlink {
            note,
            lines: expected
        }]
    );
    let left = [
        format!("about {unread}"),
        "depends on the weather".to_owned(),
        format!("related-to {to} 0.9"),
        format!("part-of {to}"),
    ];
    assert_eq!(plan.changed[0].links, left);
}

#[test]
fn a_long_note_becomes_parts_that_replace_it() {
    let text = "word ".repeat(250);
    let long = note(
        "long",
        1,
        &format!("## One\n{text}\n\n## Two\n{text} two\n"),
    );
    let note_set = note_set(vec![long]);
    let plan = plan(&note_set);
    let [Action::Split { note, parts }] = plan.actions.as_slice() else {
        panic!("{:?}", plan.actions)
    };
    assert_eq!((*note, parts.len()), (id("long"), 2));
    assert_eq!(plan.changed, []);
    let made: BTreeSet<NoteId> = plan.made.iter().map(|note| note.id).collect();
    assert_eq!(made, parts.iter().copied().collect());
    // A long text without headings or lists stays.
    let solid = note_of(&"sentence ".repeat(300));
    assert_eq!(super::plan(&solid).actions, []);
}

fn note_of(text: &str) -> NoteSet {
    note_set(vec![note("solid", 1, text)])
}

#[test]
fn a_project_can_be_planned_alone() {
    let text = "The linter runs before each push.";
    let of = |name: &str, project: &str| {
        let mut note = note(name, 1, text);
        note.project = project.to_owned();
        note
    };
    let notes = vec![of("a", "p"), of("b", "p"), of("c", "q"), of("d", "q")];
    let note_set = NoteSet {
        notes,
        projects: vec!["q".to_owned()],
        ..NoteSet::default()
    };
    let plan = plan(&note_set);
    assert_eq!(plan.actions.len(), 1);
    assert!([id("c"), id("d")].contains(&plan.changed[0].id));
}

/// Generates stores of similar notes.
fn any_shelf() -> impl Strategy<Value = NoteSet> {
    let word = prop_oneof![
        "[a-f]{4}",
        Just("not".to_owned()),
        Just("30".to_owned()),
        Just("`x`".to_owned())
    ];
    let sentence = prop::collection::vec(word, 1..6).prop_map(|words| words.join(" "));
    let line = prop_oneof![
        4 => sentence,
        1 => Just("## heading".to_owned()),
        1 => Just(String::new()),
        1 => (0..3_u8).prop_map(|n| format!("## {n}\n{}", "long ".repeat(220))),
    ];
    let body = prop::collection::vec(line, 1..5).prop_map(|lines| lines.join("\n"));
    let links = prop::collection::vec((0..8_u8, any::<bool>()), 0..4);
    let project = prop_oneof![Just("p"), Just("q"), Just(GLOBAL)];
    let one = (body, links, project, 0..9_i64, 0..6_u8);
    prop::collection::vec(one, 1..7).prop_map(|all| {
        let all = all.into_iter().enumerate();
        note_set(
            all.map(|(number, (body, links, project, day, state))| {
                let mut note = note(&number.to_string(), day, &body);
                note.title = "A title".to_owned();
                note.project = project.to_owned();
                note.links = links
                    .into_iter()
                    .map(|(to, is_weighed)| {
                        let weight = if is_weighed { " 0.5" } else { "" };
                        format!("related-to {}{weight}", id(&to.to_string()))
                    })
                    .collect();
                note.state = if state == 0 {
                    State::Muted
                } else {
                    State::Active
                };
                note
            })
            .collect(),
        )
    })
}

/// Returns the notes whose files an action changes or creates.
fn writes(action: &Action) -> Vec<NoteId> {
    match action {
        Action::Replace { keeper: note, .. } | Action::Unlink { note, .. } => vec![*note],
        Action::Split { parts, .. } => parts.clone(),
    }
}

proptest! {
    /// Every text still exists, the next plan is empty, plans are deterministic, and only planned
    /// notes are written.
    #[test]
    fn a_plan_loses_nothing_and_ends(note_set in any_shelf()) {
        let found = plan(&note_set);
        prop_assert_eq!(&plan(&note_set).actions, &found.actions);
        let named: BTreeSet<NoteId> = found.actions.iter().flat_map(writes).collect();
        let written = found.changed.iter().chain(&found.made).map(|note| note.id);
        prop_assert_eq!(written.collect::<BTreeSet<_>>(), named);
        let next = after(&note_set, &found);
        for note in &note_set.notes {
            let still = next.notes.iter().find(|other| other.id == note.id);
            prop_assert_eq!(still.map(|note| &note.body), Some(&note.body));
        }
        prop_assert_eq!(plan(&next).actions, vec![]);
        // Every hidden text is contained in a note that is not hidden.
        for note in note_set.notes.iter().filter(|note| next.replaced.contains(&note.id)) {
            let visible = next.notes.iter().filter(|other| !next.replaced.contains(&other.id));
            let words: BTreeSet<&str> = visible.flat_map(|note| note.body.split_whitespace()).collect();
            for word in note.body.split_whitespace() {
                prop_assert!(words.contains(word), "{}", word);
            }
        }
    }
}
