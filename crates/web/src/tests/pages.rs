//! What pages show of sessions, injections, changes and imports, and the actions on many notes.

use anamnesis_app::sync;
use anamnesis_session::{
    event::{Outcome, RecordedEvent, SessionEvent, Surroundings, ToolEvent},
    prompt::{RawPrompt, SafePrompt},
};
use anamnesis_store::journal::{Audience, Journal, Run, ShownNote};
use anamnesis_text::{hash::text_hash, private_tokens::PrivateTokens};

use super::*;

const OTHER: &str = "01JGFJJZ00ABCDEFGHJKMNPQRT";
const LAST: &str = "01JGFJJZ00ABCDEFGHJKMNPQRV";
const BLOCK: &str = "<anamnesis-context>\n<b>a text</b>\n</anamnesis-context>";

impl Viewer {
    /// Adds a second note, and returns its file.
    fn second(&self, title: &str) -> std::path::PathBuf {
        let note = self.note().replace(ID, OTHER).replace("a title", title);
        let path = format!("memory/semantic/{OTHER}.md");
        let path = self.context.home.root().join(path);
        std::fs::write(&path, note).unwrap();
        path
    }

    /// Adds a session in which a prompt got the note, a tool failed and a command was typed.
    fn session(&self, prompt: &str) {
        let journal = Journal::open(&self.context.home, TIMEOUT).unwrap();
        let now = self.context.environment.now;
        let record = |id: &str, what| SessionEvent {
            session: "s-1".to_owned(),
            at: now.timestamp_millis() + i64::from(id == "p-2"),
            prompt_id: Some(id.to_owned()),
            agent: None,
            surroundings: Surroundings {
                project: Some("p".to_owned()),
                folder: Some("/w".to_owned()),
                ..Surroundings::default()
            },
            private: false,
            echoes: Vec::new(),
            what,
            unmasked: Vec::new(),
        };
        let prompt = SafePrompt::new(&RawPrompt::new(prompt), Some(&PrivateTokens::default()));
        let failed = ToolEvent {
            id: "t".to_owned(),
            tool: "Bash".to_owned(),
            input: Some(serde_json::json!({"command": "make <all>"}).into()),
            response: None,
            outcome: Outcome::Failed,
            error: Some("no rule <to> make".to_owned()),
            duration_ms: Some(3),
            files: Vec::new(),
            agent: None,
            is_from_batch: false,
            many_tags: false,
        };
        let started = RecordedEvent::Started {
            source: "startup".to_owned(),
            model: None,
        };
        let command = SafePrompt::new(&RawPrompt::new("/model"), Some(&PrivateTokens::default()));
        for (id, what) in [
            ("p-1", started),
            ("p-1", RecordedEvent::Prompted(prompt.value)),
            ("p-1", RecordedEvent::Used(vec![failed])),
            ("p-2", RecordedEvent::Prompted(command.value)),
        ] {
            let record = record(id, what);
            journal
                .in_transaction(|journal| journal.take(&record))
                .unwrap();
        }
        let shown = ShownNote {
            note: ID.parse().unwrap(),
            hash: text_hash("a text"),
            level: "body",
            reason: "matches the prompt",
            evidence: None,
        };
        let to = Audience {
            session: "s-1",
            agent: "",
            lane: "prompt",
        };
        journal.was_shown(to, &[shown], now).unwrap();
        journal
            .injected("s-1", "", "UserPromptSubmit", BLOCK, now)
            .unwrap();
    }
}

#[test]
fn a_conflict_is_named_on_its_card_and_decided_by_what_the_buttons_say() {
    let viewer = Viewer::new();
    let path = viewer.second("a title");
    let note = std::fs::read_to_string(&path).unwrap();
    let note = note.replace(
        "tags: []",
        &format!("tags: [merge-conflict]\nlinks: [related-to {ID}]"),
    );
    let (head, _) = note.rsplit_once("---\n").unwrap();
    std::fs::write(&path, format!("{head}---\n**Ask** Find out why\n")).unwrap();
    let list = viewer.get("/notes").text;
    assert_eq!(list.matches(">conflict<").count(), 1, "{list}");
    assert!(list.contains("Ask: Find out why"), "{list}");
    let page = viewer.get("/review").text;
    assert_eq!(page.matches(">conflict<").count(), 1, "{page}");
    for part in [
        "The other text: ",
        "← Forget this text",
        "Keep both texts →",
        "Keep this text only",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn an_idle_session_has_the_same_state_on_every_page() {
    let mut viewer = Viewer::new();
    viewer.context.environment.now -= chrono::Duration::hours(13);
    viewer.session("why does make fail?");
    for path in ["/session?id=s-1", "/live", "/sessions"] {
        let page = viewer.get(path).text;
        assert!(page.contains(">open</span>"), "{path}: {page}");
    }
}

#[test]
fn a_session_is_a_timeline_of_prompts_failures_and_injected_notes() {
    let viewer = Viewer::new();
    viewer.session("why does <make> fail?");
    let list = viewer.get("/sessions").text;
    assert!(
        list.contains("/session?id=s-1") && list.contains("why does &lt;make&gt; fail?"),
        "{list}"
    );
    for path in ["/session?id=s-1", "/live", "/sessions"] {
        let page = viewer.get(path).text;
        assert!(
            page.contains("1 prompt<") || page.contains("1 prompt,"),
            "{path}: {page}"
        );
    }
    for path in ["/session?id=s-1", "/live"] {
        let page = viewer.get(path).text;
        for part in [
            "why does &lt;make&gt; fail?",
            "no rule &lt;to&gt; make",
            "matches the prompt",
            "a title",
        ] {
            assert!(page.contains(part), "{path}: {part}: {page}");
        }
    }
    let page = viewer.get("/session?id=s-1").text;
    assert!(
        page.contains("make &lt;all&gt;") && page.contains("about 14 tokens"),
        "{page}"
    );
    for unknown in [
        "/session",
        "/session?id=other",
        "/session?id=../../journal.db",
    ] {
        assert_eq!(
            viewer.get(unknown).status,
            StatusCode::NOT_FOUND,
            "{unknown}"
        );
    }
}

#[test]
fn a_session_of_commands_is_named_by_the_first_and_numbers_none_of_them() {
    let viewer = Viewer::new();
    viewer.session("/cost <now>");
    for path in ["/session?id=s-1", "/live", "/sessions"] {
        let page = viewer.get(path).text;
        assert!(
            page.contains("<bdi>/cost &lt;now&gt;</bdi>"),
            "{path}: {page}"
        );
        assert!(
            page.contains("0 prompts") && !page.contains(">prompt "),
            "{path}: {page}"
        );
    }
}

#[test]
fn a_forgotten_note_keeps_its_title_on_every_page() {
    let viewer = Viewer::new();
    drop(viewer.second("another"));
    viewer.session("a prompt");
    for act in ["act=pin", "act=forget"] {
        viewer.post(&format!("/note/{ID}/mark"), act);
    }
    let at = viewer.context.environment.now.timestamp_millis();
    let paths = [
        format!("/note/{ID}"),
        format!("/note/{ID}/history"),
        format!("/map/{ID}"),
        "/notes?state=forgotten".to_owned(),
        "/live".to_owned(),
        "/session?id=s-1".to_owned(),
        format!("/why?session=s-1&at={at}"),
    ];
    // Without the trash, the title is that of the history.
    for _ in 0..2 {
        for path in &paths {
            let page = viewer.get(path).text;
            assert!(
                page.contains("a title") && !page.contains("(no title)"),
                "{path}: {page}"
            );
        }
        let page = viewer.get(&paths[0]).text;
        assert!(page.contains("<title>a title · Anamnesis"), "{page}");
        let trash = viewer.context.home.root().join("trash");
        drop(std::fs::remove_dir_all(trash));
    }
}

#[test]
fn an_injected_block_is_shown_byte_for_byte_with_its_reasons() {
    let viewer = Viewer::new();
    viewer.session("a prompt");
    let at = viewer.context.environment.now.timestamp_millis();
    let list = viewer.get("/why").text;
    assert!(
        list.contains(&format!("/why?session=s-1&amp;at={at}")),
        "{list}"
    );
    for part in [
        "<h3><a class=\"title\" href=\"/session?id=s-1\"><bdi>a prompt<",
        "Prompt: <bdi>a prompt<",
        ">1 note, <",
    ] {
        assert!(list.contains(part), "{part}: {list}");
    }
    let page = viewer.get(&format!("/why?session=s-1&at={at}")).text;
    let exact = BLOCK.replace('<', "&lt;").replace('>', "&gt;");
    assert!(
        page.contains(&format!(
            "<pre class=\"exact\" tabindex=\"0\">\n{exact}</pre>"
        )),
        "{page}"
    );
    assert!(page.contains(&text_hash(BLOCK)[..16]), "{page}");
    assert!(
        page.contains("matches the prompt") && page.contains(&text_hash("a text")[..16]),
        "{page}"
    );
    assert_eq!(
        viewer.get("/why?session=s-1&at=1").status,
        StatusCode::NOT_FOUND
    );
}

#[test]
fn a_tried_prompt_leaves_no_trace() {
    for is_read_only in [false, true] {
        let title = "Staging is deployed with make deploy-staging";
        let viewer = Viewer::with(
            title,
            "Use make deploy-staging for staging.",
            false,
            is_read_only,
        );
        viewer.session("a prompt");
        drop(viewer.get("/notes"));
        let files = || {
            let journal = std::fs::read(viewer.context.home.journal()).unwrap();
            let log = std::fs::read(viewer.context.home.root().join("journal.db-wal"));
            (journal, log.unwrap_or_default(), viewer.note())
        };
        let before = files();
        let form = "text=How+is+staging+deployed+with+deploy-staging%3F&project=p";
        let page = viewer.post("/why/try", form).text;
        assert!(
            page.contains("threshold is") && page.contains("injected"),
            "{page}"
        );
        assert!(
            page.contains("make deploy-staging") && page.contains("score"),
            "{page}"
        );
        assert!(files() == before, "the try was recorded");
    }
}

#[test]
fn history_shows_a_change_its_difference_and_a_past_day() {
    let viewer = Viewer::new();
    viewer.post(&format!("/note/{ID}/mark"), "act=pin");
    let page = viewer.get("/history").text;
    assert!(page.contains(">Marked 1 note<"), "{page}");
    let (_, rest) = page.split_once("/change/").unwrap();
    let commit = rest.split('"').next().unwrap();
    let change = viewer.get(&format!("/change/{commit}")).text;
    assert!(
        change.contains("+pinned: true") && change.contains("Undo this change"),
        "{change}"
    );
    for query in ["", "&q=title"] {
        let past = viewer
            .get(&format!("/history/day?on=2099-12-31{query}"))
            .text;
        assert!(
            past.contains("a title") && past.contains("as now"),
            "{past}"
        );
    }
    let before = viewer.get("/history/day?on=2001-01-01");
    assert!(before.text.contains("nothing before"), "{}", before.text);
    for hostile in ["/change/..%2f..", "/change/zzzz", "/change/0000000000"] {
        assert_eq!(
            viewer.get(hostile).status,
            StatusCode::NOT_FOUND,
            "{hostile}"
        );
    }
}

#[test]
fn history_lists_a_session_once_and_shows_what_a_card_of_notes_shows() {
    let viewer = Viewer::new();
    let path = viewer.second("another title");
    let commit = |actor: &str, verb: &str, text: &str| {
        let note = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{note}\n{text}\n")).unwrap();
        sync::commit_by(&viewer.context, actor, verb, [OTHER.parse().unwrap()]).unwrap();
    };
    for turn in 0..30 {
        commit("session", "noted", &format!("turn {turn}"));
    }
    commit("person", "edited", "a correction");
    viewer.post(&format!("/note/{ID}/mark"), "act=mute");
    let page = viewer.get("/history").text;
    assert_eq!(page.matches(">Wrote 1 note<").count(), 1, "{page}");
    assert_eq!(page.matches(">Edited 1 note<").count(), 1, "{page}");
    let (_, muted) = page.split_once("<li class=\"note\">").unwrap();
    let (muted, _) = muted.split_once("</li>").unwrap();
    for part in [">a title<", ">a text<", ">muted<", ">p<", "<time"] {
        assert!(muted.contains(part), "{part}: {muted}");
    }
}

#[test]
fn history_lists_each_change_on_one_page_and_new_ones_first() {
    let viewer = Viewer::new();
    for act in ["pin", "unpin"].repeat(8) {
        viewer.post(&format!("/note/{ID}/mark"), &format!("act={act}"));
    }
    let changes = |page: usize| {
        let text = viewer.get(&format!("/history?page={page}")).text;
        let links = text.split("href=\"/change/").skip(1);
        let links = links.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned()));
        links.collect::<Vec<_>>()
    };
    let (first, second) = (changes(1), changes(2));
    assert!(!first.is_empty() && !second.is_empty());
    assert!(second.iter().all(|change| !first.contains(change)));
    let total = first.len() + second.len();
    assert_eq!((changes(1), changes(3)), (first.clone(), Vec::new()));
    viewer.post(&format!("/note/{ID}/mark"), "act=pin");
    assert_eq!(changes(1)[1..], first[..first.len() - 1]);
    assert_eq!(changes(1).len() + changes(2).len(), total + 1);
}

#[test]
fn many_notes_are_changed_at_once_and_undone_to_the_same_bytes() {
    let viewer = Viewer::new();
    let second = viewer.second("second");
    let read = || (viewer.note(), std::fs::read_to_string(&second).unwrap());
    let original = read();
    drop(viewer.get("/notes"));
    for (form, word) in [
        ("act=pin", "pinned"),
        ("act=mute", "muted"),
        ("act=tag&tag=x%22%3E", "tagged"),
        ("act=move&project=other", "moved"),
        ("act=forget&sure=yes", "forgotten"),
    ] {
        let form = format!("note={ID}&note={OTHER}&{form}&query=kind%3Dfact%26done%3Dx");
        let done = viewer.post("/notes/many", &form);
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{form}: {}", done.text);
        let to = done.headers["location"].to_str().unwrap();
        let start = format!("/notes?kind=fact&done={word}&change=");
        assert!(to.starts_with(&start), "{to}");
        let now = read();
        assert!(now.0 != original.0 && now.1 != original.1, "{form}");
        let change = to.rsplit('=').next().unwrap();
        let asked = viewer.post("/undo", &format!("change={change}")).text;
        assert!(asked.contains("Undo a change of 2 notes?"), "{asked}");
        viewer.post("/undo", &format!("change={change}&sure=yes"));
        assert!(read() == original, "{form}");
    }
    let asked = viewer.post("/notes/many", &format!("note={ID}&act=forget"));
    assert!(asked.text.contains("Forget 1 note?"), "{}", asked.text);
    for refused in [
        "act=pin",
        &format!("note={ID}&act=tag"),
        &format!("note={ID}&act=x"),
    ] {
        assert_eq!(
            viewer.post("/notes/many", refused).status,
            StatusCode::BAD_REQUEST,
            "{refused}"
        );
    }
    assert!(read() == original);
}

#[test]
fn a_note_is_written_on_its_page_with_secrets_masked_and_undone_to_the_same_bytes() {
    let viewer = Viewer::new();
    let all = || snapshot(viewer.context.home.root());
    drop(viewer.get("/notes"));
    let before = all();
    let form = viewer.get("/notes/new?project=p").text;
    assert!(
        form.contains("action=\"/notes/write\"") && form.contains("name=\"project\" required"),
        "{form}"
    );
    assert!(!form.contains("value=\"session\""), "{form}");
    let key = ["ghp_", &"a1B2".repeat(9)].concat();
    let typed = format!(
        "title=Staging+needs+the+tunnel&body=Open+it%0D%0Awith+{key}&kind=how-to&tags=a%2C+b\
         &asked=vpn&when=cmd%3A+x&project=p"
    );
    let done = viewer.post("/notes/write", &typed);
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let to = done.headers["location"].to_str().unwrap();
    assert!(to.starts_with("/notes?done=written&change="), "{to}");
    let now = all();
    let new: Vec<_> = now
        .keys()
        .filter(|path| !before.contains_key(*path))
        .collect();
    let [path] = new[..] else { panic!("{new:?}") };
    let note = &now[path];
    for part in [
        "kind: skill",
        "title: Staging needs the tunnel",
        "project: p",
        "- a\n- b",
        "- vpn",
    ] {
        assert!(note.contains(part), "{part}: {note}");
    }
    assert!(!note.contains(&key) && !note.contains("cmd: x"), "{note}");
    let page = viewer.get(to).text;
    assert!(
        page.contains("Staging needs the tunnel") && page.contains(">Undo<"),
        "{page}"
    );
    let again = viewer.post("/notes/write", &typed);
    let again = again.headers["location"].to_str().unwrap().to_owned();
    assert!(again.starts_with("/notes?done=repeated&"), "{again}");
    for to in [again.as_str(), to] {
        let change = to.rsplit('=').next().unwrap();
        viewer.post("/undo", &format!("change={change}"));
    }
    assert_eq!(all(), before);
}

#[test]
fn a_note_that_cannot_be_saved_stays_in_the_form() {
    let viewer = Viewer::new();
    let before = viewer.note();
    for (form, reason) in [
        ("title=&body=+&project=p", "Nothing was saved"),
        (
            "title=my+%3Ctitle%3E&body=b&kind=warning&when=nonsense&project=p",
            "trigger &quot;nonsense&quot;",
        ),
    ] {
        let page = viewer.post("/notes/write", form);
        assert_eq!(page.status, StatusCode::OK);
        assert!(page.text.contains(reason), "{reason}: {}", page.text);
    }
    let page = viewer.post(
        "/notes/write",
        "title=my+%3Ctitle%3E&body=b&kind=warning&when=x&project=p",
    );
    assert!(
        page.text.contains("value=\"my &lt;title&gt;\""),
        "{}",
        page.text
    );
    assert_eq!(snapshot(viewer.context.home.root()).len(), 1);
    assert_eq!(viewer.note(), before);
}

#[test]
fn two_notes_are_linked_and_unlinked_each_undone_to_the_same_bytes() {
    let viewer = Viewer::new();
    viewer.second("the <tunnel> of staging");
    drop(viewer.get("/notes"));
    let choose = format!("/note/{ID}/link");
    let connect = format!("/note/{ID}/connect");
    for query in ["?q=tunnel", &format!("?q={OTHER}"), ""] {
        let page = viewer.get(&format!("{choose}{query}")).text;
        let other = format!("name=\"to\" value=\"{OTHER}\"");
        assert!(
            page.contains(&other) && page.contains("&lt;tunnel&gt;"),
            "{query}: {page}"
        );
        assert!(
            !page.contains(&format!("name=\"to\" value=\"{ID}\"")),
            "{page}"
        );
    }
    let all = || snapshot(viewer.context.home.root());
    let mut states = vec![all()];
    for (form, word) in [
        (format!("to={OTHER}&relation=part-of"), "linked"),
        (
            format!("to={OTHER}&relation=part-of&remove=yes"),
            "unlinked",
        ),
    ] {
        let done = viewer.post(&connect, &form);
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{form}: {}", done.text);
        let to = done.headers["location"].to_str().unwrap().to_owned();
        assert!(
            to.starts_with(&format!("/note/{ID}?done={word}&change=")),
            "{to}"
        );
        states.push(all());
        let change = to.rsplit('=').next().unwrap();
        viewer.post("/undo", &format!("change={change}"));
        assert_eq!(all(), states[states.len() - 2], "{word}");
        viewer.post(&connect, &form);
        let page = viewer.get(&format!("/note/{ID}")).text;
        assert_eq!(page.contains("→ part-of"), word == "linked", "{page}");
        assert_eq!(page.contains(">Remove<"), word == "linked", "{page}");
    }
    assert!(
        states[1]
            .values()
            .any(|file| file.contains(&format!("part-of {OTHER}")))
    );
    for refused in [
        "",
        "to=x",
        &format!("to={ID}"),
        &format!("to={OTHER}&relation=similar"),
    ] {
        assert_eq!(
            viewer.post(&connect, refused).status,
            StatusCode::BAD_REQUEST,
            "{refused}"
        );
    }
}

#[test]
fn a_removed_tag_and_a_restored_note_are_undone_to_the_same_bytes() {
    let viewer = Viewer::new();
    drop(viewer.get("/notes"));
    let all = || snapshot(viewer.context.home.root());
    let undo = |to: &str| {
        let change = to.rsplit('=').next().unwrap();
        viewer.post("/undo", &format!("change={change}&sure=yes"));
    };
    let changed = |path: &str, form: &str| {
        let done = viewer.post(path, form);
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{form}: {}", done.text);
        done.headers["location"].to_str().unwrap().to_owned()
    };
    let many = format!("note={ID}&tag=looked-at");
    changed("/notes/many", &format!("{many}&act=tag"));
    let tagged = all();
    let untagged = changed("/notes/many", &format!("{many}&act=untag"));
    assert_ne!(all(), tagged);
    undo(&untagged);
    assert_eq!(all(), tagged);

    let path = format!("/note/{ID}/mark");
    changed(&path, "act=forget");
    let forgotten = all();
    let restored = changed(&path, "act=restore");
    assert!(restored.contains("done=restored&change="), "{restored}");
    assert_eq!(viewer.note(), tagged.values().next().unwrap().as_str());
    undo(&restored);
    assert_eq!(all(), forgotten);
}

#[test]
fn notes_of_earlier_sessions_are_listed_first_and_undone_to_the_same_bytes() {
    let viewer = Viewer::new();
    let claude = viewer.context.home.root().join("../claude");
    let folder = claude.join("projects/-shop");
    std::fs::create_dir_all(&folder).unwrap();
    let line = |kind: &str, content: &str| {
        let record = serde_json::json!({
            "type": kind, "sessionId": "earlier", "cwd": "/w/shop", "version": "2.1.330",
            "timestamp": "2025-12-20T10:00:00.000Z", "isSidechain": false,
            "message": { "role": kind, "content": [{ "type": "text", "text": content }] },
        });
        format!("{record}\n")
    };
    let transcript = line("user", "Why does the login fail in the tests?")
        + &line(
            "assistant",
            "Because the stub server is not started; I added it to the fixture.",
        );
    std::fs::write(folder.join("earlier.jsonl"), transcript).unwrap();
    let mut context = viewer.context.clone();
    context.environment.claude_folder = Some(claude);
    let viewer = viewer.again(context);
    drop(viewer.get("/notes"));
    let all = || snapshot(viewer.context.home.root());
    let before = all();
    let listed = viewer.post("/import/sessions", "from=claude").text;
    assert!(listed.contains("Make 1 note"), "{listed}");
    assert_eq!(all(), before);
    let done = viewer.post("/import/sessions", "from=claude&sure=yes");
    let to = done.headers["location"].to_str().unwrap();
    assert!(to.starts_with("/notes?done=backfilled&change="), "{to}");
    assert_eq!(all().len(), before.len() + 1);
    let change = to.rsplit('=').next().unwrap();
    viewer.post("/undo", &format!("change={change}&sure=yes"));
    assert_eq!(all(), before);
}

/// Returns the text of every note of a store, by its path, also of forgotten ones.
fn snapshot(store: &std::path::Path) -> std::collections::BTreeMap<String, String> {
    let folders = [
        "memory/semantic",
        "memory/episodic",
        "memory/procedural",
        "trash",
    ];
    let folders = folders
        .iter()
        .map(|folder| std::fs::read_dir(store.join(folder)));
    let files = folders.flat_map(|folder| folder.into_iter().flatten());
    let paths = files.map(|file| file.unwrap().path());
    paths
        .map(|path| {
            (
                path.display().to_string(),
                std::fs::read_to_string(&path).unwrap(),
            )
        })
        .collect()
}

#[test]
fn a_sync_that_runs_tells_its_step() {
    let viewer = Viewer::new();
    let journal = viewer.context.journal().unwrap();
    let now = viewer.context.environment.now.timestamp_millis();
    let page = |value: &str| {
        journal.set_meta("sync_step", value).unwrap();
        viewer.get("/machines").text
    };
    assert!(page(&format!("{now} pushing to the remote")).contains("pushing to the remote…"));
    let hour = 60 * 60 * 1000;
    assert!(!page(&format!("{} pushing", now - hour)).contains("pushing"));
    assert!(!page("").contains("running"));
}

#[test]
fn health_counts_searches_once_there_are_some() {
    let viewer = Viewer::new();
    let health = || viewer.get("/health").text;
    let none = "No notes were searched for a prompt in the last";
    assert!(
        health().contains(none) && !health().contains("0 of 0"),
        "{}",
        health()
    );
    viewer.session("why does the build fail");
    let run = Run {
        lane: "prompt".to_owned(),
        agent: String::new(),
        at: viewer.context.environment.now.timestamp_millis(),
        terms: 3,
        searched: 1,
        floor: 0.45,
        given: 0,
        reason: "no note matches well enough".to_owned(),
        held: Vec::new(),
    };
    viewer
        .context
        .journal()
        .unwrap()
        .recalled("s-1", &run)
        .unwrap();
    assert!(health().contains("Prompts searched"), "{}", health());
    assert!(!health().contains(none), "{}", health());
}

#[test]
fn notes_are_filtered_by_author_and_day() {
    let viewer = Viewer::new();
    for (query, is_found) in [
        ("author=you", true),
        ("author=agent", false),
        ("author=import", false),
        ("since=2025-12-23", true),
        ("since=2025-12-24", false),
        ("until=2025-12-23", true),
        ("until=2025-12-22", false),
    ] {
        let page = viewer.get(&format!("/notes?{query}")).text;
        assert_eq!(page.contains(&format!("/note/{ID}")), is_found, "{query}");
    }
}

#[test]
fn sessions_to_distil_are_told_with_their_project() {
    let viewer = Viewer::new();
    viewer.session("a prompt");
    let folder = viewer.context.home.root().join("memory/episodic");
    std::fs::create_dir_all(&folder).unwrap();
    for last in ["A", "B", "C", "D", "E"] {
        let id = format!("{}{last}", &ID[..25]);
        let note = viewer.note().replace(ID, &id);
        let note = note
            .replace("semantic", "episodic")
            .replace("kind: fact\n", "");
        std::fs::write(folder.join(format!("{id}.md")), note).unwrap();
    }
    let page = viewer.get("/notes?project=p").text;
    let told = "5 sessions to distil: /memory-reflect in Claude Code, in <bdi>p</bdi>,";
    assert!(page.contains(told), "{page}");
}

#[test]
fn what_was_learned_today_has_a_page_by_project() {
    let viewer = Viewer::new();
    let page = |path: &str| viewer.get(path).text;
    let all = page("/notes");
    assert!(
        all.contains("href=\"/notes?since=today\">Learned today<"),
        "{all}"
    );
    let empty = page("/notes?since=today");
    assert!(empty.contains("<h1>Learned today</h1>"), "{empty}");
    assert!(
        empty.contains("Nothing yet.") && !empty.contains(ID),
        "{empty}"
    );
    let now = viewer.context.environment.now.to_rfc3339();
    for (title, project, id) in [("one", "p", OTHER), ("two", "q", LAST)] {
        let note = viewer.note().replace(ID, id).replace("a title", title);
        let note = note.replace("2025-12-23T03:04:05+00:00", &now);
        let note = note.replace("project: p", &format!("project: {project}"));
        let path = format!("memory/semantic/{id}.md");
        std::fs::write(viewer.context.home.root().join(path), note).unwrap();
    }
    let two = page("/notes?since=today");
    assert!(
        two.contains("<h2><bdi>p</bdi></h2>") && two.contains("<h2><bdi>q</bdi></h2>"),
        "{two}"
    );
    assert!(
        two.contains(OTHER) && two.contains(LAST) && !two.contains(ID),
        "{two}"
    );
    assert!(!page("/notes").contains("<h2><bdi>p</bdi></h2>"));
}

#[test]
fn the_page_of_a_session_note_has_the_whole_sentence_that_its_title_begins() {
    let body = "**Ask:** Make the <export> stream its rows. Then stop.\n";
    let viewer = Viewer::with("Make the <export> …", body, false, false);
    let page = viewer.get(&format!("/note/{ID}")).text;
    let whole = "<h1><bdi>Make the &lt;export&gt; stream its rows.</bdi></h1>";
    assert!(page.contains(whole), "{page}");
    assert!(
        page.contains("<title>Make the &lt;export&gt; … · Anamnesis"),
        "{page}"
    );
}

#[test]
fn an_edit_is_previewed_as_data_and_keeps_the_other_fields() {
    let viewer = Viewer::new();
    let before = viewer.note();
    let form = "title=new&body=%2A%2Abold%2A%2A+%3Cscript%3Ealert(1)%3C%2Fscript%3E";
    let page = viewer.post(&format!("/note/{ID}/preview"), form).text;
    assert!(
        page.contains("<strong>bold</strong>") && page.contains("&lt;script&gt;alert"),
        "{page}"
    );
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert_eq!(viewer.note(), before);
    let moved = viewer.post(&format!("/note/{ID}/mark"), "act=move&project=other");
    let to = moved.headers["location"].to_str().unwrap().to_owned();
    assert!(viewer.note().contains("project: other"), "{to}");
    viewer.post(
        "/undo",
        &format!("change={}", to.rsplit('=').next().unwrap()),
    );
    assert_eq!(viewer.note(), before);
}

#[test]
fn an_import_is_shown_first_and_undone_to_the_same_bytes() {
    let viewer = Viewer::new();
    let file = viewer.context.home.root().join("../memory.jsonl");
    let line = r#"{"type":"entity","name":"Deploy","entityType":"process","observations":["Staging is deployed with <b>make</b>"]}"#;
    std::fs::write(&file, line).unwrap();
    let list = || {
        let folders = ["procedural", "semantic", "episodic"].map(|folder| {
            let folder = viewer.context.home.root().join("memory").join(folder);
            std::fs::read_dir(folder).into_iter().flatten()
        });
        let files = folders.into_iter().flatten();
        files
            .map(|file| file.unwrap().file_name())
            .collect::<Vec<_>>()
    };
    let before = list();
    let path: String = form_urlencoded::byte_serialize(file.to_str().unwrap().as_bytes()).collect();
    let form = format!("source=server-memory&path={path}&project=p");
    let shown = viewer.post("/import/notes", &form).text;
    assert!(
        shown.contains("Import 1 note") && !shown.contains("<b>make"),
        "{shown}"
    );
    assert_eq!(list(), before, "nothing is written yet");
    let done = viewer
        .post("/import/notes", &format!("{form}&sure=yes"))
        .text;
    assert!(done.contains("Undo the import"), "{done}");
    assert_eq!(list().len(), 2);
    let (_, rest) = done.split_once("name=\"change\" value=\"").unwrap();
    let change = rest.split('"').next().unwrap();
    viewer.post("/undo", &format!("change={change}&sure=yes"));
    assert_eq!(list(), before);
}

#[test]
fn the_settings_show_what_the_next_session_gets() {
    let viewer = Viewer::with("Deploy with make", "Use <make> always.", false, false);
    let page = viewer.get("/settings?project=p").text;
    assert!(
        page.contains("&lt;anamnesis-context") && page.contains("Deploy with make"),
        "{page}"
    );
    assert!(page.contains("<code>off</code>"), "{page}");
    let page = viewer.get("/settings?project=other").text;
    assert!(page.contains("no note is for"), "{page}");
}
