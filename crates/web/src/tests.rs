//! Hostile requests and hostile notes, against the whole service function.

use std::{sync::Arc, time::Duration};

use anamnesis_app::{
    context::{Context, TIMEOUT},
    environment::{Caller, Environment},
};
use chrono::DateTime;
use http_body_util::{BodyExt as _, Full};
use hyper::{Request, Response, StatusCode, body::Bytes, http::request};
use tempfile::TempDir;

mod pages;

use crate::{answer::Content, routes::ROUTES, server::Options, site::Site};

const PORT: u16 = 4711;
const HOST: &str = "127.0.0.1:4711";
const ORIGIN: &str = "http://127.0.0.1:4711";
const ID: &str = "01JGFJJZ00ABCDEFGHJKMNPQRS";

/// A viewer of a store with one note.
struct Viewer {
    _folder: TempDir,
    context: Context,
    site: Arc<Site>,
    cookie: String,
}

/// An answer, read completely.
struct Read {
    status: StatusCode,
    headers: hyper::HeaderMap,
    text: String,
}

impl Read {
    /// Asserts that the answer tells nothing.
    #[track_caller]
    fn is_refused(&self, what: &str) {
        assert_eq!(self.status, StatusCode::FORBIDDEN, "{what}");
        assert_eq!(self.text, "", "{what}");
        assert_eq!(self.headers.len(), 0, "{what}: {:?}", self.headers);
    }
}

fn context(folder: &TempDir, is_agent: bool) -> Context {
    let mut environment = Environment::read(Caller::Person);
    environment.store = Some(folder.path().join("store"));
    environment.program = None;
    environment.user_home = None;
    environment.session = None;
    environment.machine_id = Some("laptop".to_owned());
    environment.remote = None;
    environment.is_agent = is_agent;
    environment.now = DateTime::from_timestamp(1_767_323_045, 0).unwrap();
    let context = Context::unchecked(environment, TIMEOUT).unwrap();
    context.home.create().unwrap();
    context
}

impl Viewer {
    fn new() -> Self {
        Self::with("a title", "a text", false, false)
    }

    fn with(title: &str, body: &str, is_agent: bool, is_read_only: bool) -> Self {
        let folder = TempDir::new().unwrap();
        let context = context(&folder, is_agent);
        let file = format!(
            "---\nid: {ID}\ntype: semantic\ntitle: {}\nproject: p\nmachine_id: laptop\n\
             scope: portable\nprov_source: human\nconfidence: 1.0\n\
             created_at: '2025-12-23T03:04:05+00:00'\nupdated_at: '2025-12-23T03:04:05+00:00'\n\
             tags: []\nkind: fact\n---\n\n{body}\n",
            serde_json::Value::from(title),
        );
        let path = context.home.root().join("memory/semantic");
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join(format!("{ID}.md")), file).unwrap();
        let site = Arc::new(Site::new(context.clone(), PORT, is_read_only).unwrap());
        let mut viewer = Self {
            _folder: folder,
            context,
            site,
            cookie: String::new(),
        };
        viewer.enter();
        viewer
    }

    /// Opens a viewer of the same store with other surroundings.
    fn again(self, context: Context) -> Self {
        let mut viewer = Self {
            site: Arc::new(Site::new(context.clone(), PORT, false).unwrap()),
            context,
            cookie: String::new(),
            ..self
        };
        viewer.enter();
        viewer
    }

    fn enter(&mut self) {
        let entered = self.get(&self.token_path());
        assert_eq!(entered.status, StatusCode::OK);
        let cookie = entered.headers["set-cookie"].to_str().unwrap();
        let path = format!("; Path={}/; HttpOnly; SameSite=Strict", self.base());
        assert!(cookie.ends_with(&path), "{cookie}");
        cookie
            .split(';')
            .next()
            .unwrap()
            .clone_into(&mut self.cookie);
    }

    fn token_path(&self) -> String {
        let address = self.site.address("/notes");
        let path = address.strip_prefix(ORIGIN).unwrap();
        path.strip_prefix(&self.base()).unwrap().to_owned()
    }

    /// The folder of all addresses.
    fn base(&self) -> String {
        let address = self.site.address("/notes");
        let path = address.strip_prefix(ORIGIN).unwrap();
        path.split_once("/notes").unwrap().0.to_owned()
    }

    fn request(&self, method: &str, path: &str) -> request::Builder {
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base()))
            .header("host", HOST);
        if self.cookie.is_empty() {
            return request;
        }
        request.header("cookie", format!("other=1; {}", self.cookie))
    }

    fn send(&self, request: Request<Full<Bytes>>) -> Read {
        let site = Arc::clone(&self.site);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        runtime.block_on(async {
            let response: Response<Content> = site.answer(request).await;
            let (head, body) = response.into_parts();
            let bytes = body.collect().await.unwrap().to_bytes();
            let text = String::from_utf8(bytes.to_vec()).unwrap();
            let mut headers = head.headers;
            if let Some(path) = headers.get("location") {
                let path = path.to_str().unwrap().replacen(&self.base(), "", 1);
                headers.insert("location", path.parse().unwrap());
            }
            Read {
                status: head.status,
                headers,
                text: text.replace(&self.base(), ""),
            }
        })
    }

    fn get(&self, path: &str) -> Read {
        self.send(self.request("GET", path).body(Full::default()).unwrap())
    }

    fn post_with(&self, path: &str, form: &str, origin: Option<&str>) -> Read {
        let mut request = self
            .request("POST", path)
            .header("content-type", "application/x-www-form-urlencoded");
        if let Some(origin) = origin {
            request = request.header("origin", origin);
        }
        self.send(request.body(Full::from(form.to_owned())).unwrap())
    }

    fn post(&self, path: &str, form: &str) -> Read {
        self.post_with(path, form, Some(ORIGIN))
    }

    fn note(&self) -> String {
        let path = format!("memory/semantic/{ID}.md");
        std::fs::read_to_string(self.context.home.root().join(path)).unwrap()
    }
}

#[test]
fn a_token_opens_once() {
    let viewer = Viewer::new();
    // Spent by `with`: its address has none any more.
    assert!(viewer.token_path().ends_with("?token="));
    for token in ["", "00", &"0".repeat(64)] {
        let stranger = Viewer {
            cookie: String::new(),
            ..Viewer::new()
        };
        stranger
            .get(&format!("/notes?token={token}"))
            .is_refused("a wrong token");
        viewer
            .get(&format!("/notes?token={}", "0".repeat(64)))
            .is_refused("with the cookie");
    }
    let folder = TempDir::new().unwrap();
    let site = Site::new(context(&folder, false), PORT, false).unwrap();
    let again = Viewer {
        site: Arc::new(site),
        cookie: String::new(),
        ..Viewer::new()
    };
    let path = again.token_path();
    let entered = again.get(&path);
    assert_eq!(entered.status, StatusCode::OK);
    assert!(entered.text.contains("url=/notes\""), "{}", entered.text);
    assert!(
        !entered.text.contains("token"),
        "the address is left behind"
    );
    again.get(&path).is_refused("a replayed token");
}

#[test]
fn a_token_does_not_open_by_a_form() {
    let folder = TempDir::new().unwrap();
    let site = Site::new(context(&folder, false), PORT, false).unwrap();
    let viewer = Viewer {
        site: Arc::new(site),
        cookie: String::new(),
        ..Viewer::new()
    };
    let path = viewer.token_path();
    viewer.post(&path, "").is_refused("a token in a write");
    assert_eq!(viewer.get(&path).status, StatusCode::OK);
}

#[test]
fn without_the_cookie_every_address_is_refused() {
    // WEB-01
    let stranger = Viewer {
        cookie: String::new(),
        ..Viewer::new()
    };
    for route in ROUTES {
        let path = route.path.replace("{id}", ID);
        stranger.get(&path).is_refused(&path);
        stranger.post(&path, "").is_refused(&path);
    }
    stranger.get("/nothing").is_refused("an unknown address");
    let viewer = Viewer::new();
    let wrong = format!("{}0", viewer.cookie);
    let request = Request::get(format!("{}/notes", viewer.base()))
        .header("host", HOST)
        .header("cookie", wrong);
    viewer
        .send(request.body(Full::default()).unwrap())
        .is_refused("a wrong cookie");
}

#[test]
fn nothing_is_served_beside_the_random_folder() {
    let viewer = Viewer::new();
    for path in ["/notes", "/", "/0123456789abcdef0123456789abcdef/notes", ""] {
        let request = Request::get(if path.is_empty() {
            viewer.base()
        } else {
            path.to_owned()
        })
        .header("host", HOST)
        .header("cookie", &viewer.cookie);
        viewer
            .send(request.body(Full::default()).unwrap())
            .is_refused(path);
    }
    let page = viewer.site.address("/notes");
    assert_eq!(page.split('/').nth(3).unwrap().len(), 32);
}

#[test]
fn only_the_exact_host_is_served() {
    let viewer = Viewer::new();
    for host in [
        "evil.example",
        "evil.example:4711",
        "localhost:4711",
        "127.0.0.1",
        "127.0.0.1:4712",
        "127.0.0.1.evil.example:4711",
        "[::1]:4711",
        "127.0.0.1:4711.",
        "user@127.0.0.1:4711",
        "",
    ] {
        let request = Request::get(format!("{}/notes", viewer.base()))
            .header("host", host)
            .header("cookie", &viewer.cookie);
        viewer
            .send(request.body(Full::default()).unwrap())
            .is_refused(host);
    }
    let twice = viewer
        .request("GET", "/notes")
        .header("host", "evil.example");
    viewer
        .send(twice.body(Full::default()).unwrap())
        .is_refused("two hosts");
    let absolute = viewer.request("GET", "http://evil.example/notes");
    viewer
        .send(absolute.body(Full::default()).unwrap())
        .is_refused("an absolute address");
}

#[test]
fn a_write_needs_our_origin() {
    let viewer = Viewer::new();
    let before = viewer.note();
    let path = format!("/note/{ID}/mark");
    for origin in [
        None,
        Some("null"),
        Some("http://evil.example"),
        Some("http://127.0.0.1:4712"),
        Some("https://127.0.0.1:4711"),
        Some("http://localhost:4711"),
        Some("http://127.0.0.1:4711.evil.example"),
        Some(""),
    ] {
        viewer
            .post_with(&path, "act=pin", origin)
            .is_refused(&format!("{origin:?}"));
    }
    assert_eq!(viewer.note(), before);
    let read = viewer
        .request("GET", "/notes")
        .header("origin", "http://evil.example");
    viewer
        .send(read.body(Full::default()).unwrap())
        .is_refused("a read of another origin");
}

#[test]
fn a_request_that_another_site_causes_is_refused() {
    let viewer = Viewer::new();
    for site in ["cross-site", "same-site", "nonsense"] {
        let request = viewer
            .request("GET", "/notes")
            .header("sec-fetch-site", site);
        viewer
            .send(request.body(Full::default()).unwrap())
            .is_refused(site);
    }
    for site in ["same-origin", "none"] {
        let request = viewer
            .request("GET", "/notes")
            .header("sec-fetch-site", site);
        let read = viewer.send(request.body(Full::default()).unwrap());
        assert_eq!(read.status, StatusCode::OK, "{site}");
    }
}

#[test]
fn every_answer_has_the_headers_that_keep_it_apart() {
    let viewer = Viewer::new();
    for path in [
        "/notes",
        "/live",
        "/health",
        "/settings",
        "/map",
        "/machines",
        "/privacy",
        "/review",
        "/sessions",
        "/why",
        "/history",
        "/import",
        "/viewer.js",
        "/viewer.css",
        "/nothing",
        &format!("/note/{ID}"),
    ] {
        let read = viewer.get(path);
        let header = |name: &str| read.headers[name].to_str().unwrap().to_owned();
        let policy = header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; "), "{policy}");
        for part in [
            "frame-ancestors 'none'",
            "base-uri 'none'",
            "form-action 'self'",
        ] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(
            !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
        assert_eq!(header("x-content-type-options"), "nosniff");
        assert_eq!(header("referrer-policy"), "same-origin");
        assert_eq!(header("cache-control"), "no-store");
        let is_cors =
            |name: &hyper::header::HeaderName| name.as_str().starts_with("access-control");
        assert!(!read.headers.keys().any(is_cors), "{path}");
        assert!(
            !read.text.contains("style=") && !read.text.contains("<style"),
            "{path}"
        );
    }
}

#[test]
fn no_address_reaches_a_file() {
    // WEB-02
    let viewer = Viewer::new();
    for path in [
        "/../config.json",
        "/..%2f..%2fetc/passwd",
        "/note/..%2f..%2fconfig.json",
        "/note/%2e%2e%2fjournal.db",
        &format!("/note/{ID}.md"),
        &format!("/note/{ID}%00"),
        "/memory/semantic",
        "/viewer.css/../../journal.db",
        "/note/not-an-id",
        &format!("/note/{}", ID.to_lowercase()),
        "/note/01ARZ3NDEKTSV4RRFFQ69G5FAV",
    ] {
        let read = viewer.get(path);
        assert_eq!(read.status, StatusCode::NOT_FOUND, "{path}");
        assert!(!read.text.contains("store"), "{path}");
    }
}

#[test]
fn other_methods_and_other_bodies_are_refused() {
    let viewer = Viewer::new();
    for method in ["PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "POST"] {
        let request = viewer.request(method, "/notes").header("origin", ORIGIN);
        let read = viewer.send(request.body(Full::default()).unwrap());
        assert_eq!(read.status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
    let mark = format!("/note/{ID}/mark");
    assert_eq!(viewer.get(&mark).status, StatusCode::METHOD_NOT_ALLOWED);
    let json = viewer
        .request("POST", &mark)
        .header("origin", ORIGIN)
        .header("content-type", "text/plain");
    let read = viewer.send(json.body(Full::from("act=pin")).unwrap());
    assert_eq!(read.status, StatusCode::UNSUPPORTED_MEDIA_TYPE);
    let read = viewer.post(&mark, &"a".repeat(5 * 1024 * 1024));
    assert_eq!(read.status, StatusCode::PAYLOAD_TOO_LARGE);
    let read = viewer.get(&format!("/notes?q={}", "a".repeat(9000)));
    assert_eq!(read.status, StatusCode::URI_TOO_LONG);
}

#[test]
fn too_many_requests_are_refused_for_a_moment() {
    let viewer = Viewer::new();
    let answers = (0..2_000).map(|_| viewer.get("/viewer.css").status);
    let answers: Vec<_> = answers.collect();
    assert_eq!(answers[0], StatusCode::OK);
    assert!(answers.contains(&StatusCode::TOO_MANY_REQUESTS));
    // Strangers cannot lock the person out.
    let viewer = Viewer::new();
    let stranger = Viewer {
        cookie: String::new(),
        site: Arc::clone(&viewer.site),
        ..Viewer::new()
    };
    for _ in 0..1_000 {
        stranger.get("/notes").is_refused("a stranger");
    }
    assert_eq!(viewer.get("/viewer.css").status, StatusCode::OK);
}

#[test]
fn a_read_only_viewer_and_one_of_an_agent_change_nothing() {
    // WEB-04
    for (is_agent, is_read_only) in [(true, false), (false, true)] {
        let viewer = Viewer::with("a title", "a text", is_agent, is_read_only);
        let before = viewer.note();
        let mark = format!("/note/{ID}/mark");
        for (path, form) in [
            (mark.as_str(), "act=pin"),
            (&mark, "act=forget"),
            (&format!("/note/{ID}/edit"), "title=x&body=y"),
            ("/undo", "change=01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            (
                "/review/decide",
                &format!("decision=reject&note={ID}&count=1"),
            ),
            ("/review/restore", &format!("note={ID}")),
            ("/notes/many", &format!("note={ID}&act=pin")),
            ("/notes/write", "title=x&body=y&project=p"),
            (&format!("/note/{ID}/connect"), &format!("to={ID}")),
            ("/import/notes", "source=auto&sure=yes"),
            ("/import/sessions", "sure=yes"),
            ("/privacy/purge", &format!("id={ID}&seen=yes&sure=yes")),
            ("/settings/change", "key=recall.prompt&value=off&sure=yes"),
        ] {
            assert_eq!(
                viewer.post(path, form).status,
                StatusCode::FORBIDDEN,
                "{path}"
            );
        }
        assert_eq!(viewer.note(), before);
        let page = viewer.get(&format!("/note/{ID}")).text;
        assert!(
            page.contains("read-only") && !page.contains("method=\"post\""),
            "{page}"
        );
    }
}

#[test]
fn every_action_is_one_change_with_an_undo() {
    let viewer = Viewer::new();
    let original = viewer.note();
    let mark = format!("/note/{ID}/mark");
    let hash = |page: &str| {
        let (_, rest) = page.split_once("name=\"before\" value=\"").unwrap();
        rest.split('"').next().unwrap().to_owned()
    };
    let page = viewer.get(&format!("/note/{ID}")).text;
    let edit = format!(
        "before={}&title=new+title&body=new%0D%0Atext&kind=fact&tags=a%2C+b",
        hash(&page)
    );
    for (path, form, sign) in [
        (&mark, "act=pin", "pinned"),
        (&mark, "act=mute", "muted"),
        (&mark, "act=forget", "forgotten"),
        (&format!("/note/{ID}/edit"), edit.as_str(), "saved"),
    ] {
        let done = viewer.post(path, form);
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{form}: {}", done.text);
        let to = done.headers["location"].to_str().unwrap();
        assert!(
            to.starts_with(&format!("/note/{ID}?done={sign}&change=")),
            "{to}"
        );
        assert_ne!(viewer.note(), original, "{form}");
        let toast = viewer.get(to).text;
        assert!(
            toast.contains("class=\"toast\"") && toast.contains(">Undo<"),
            "{toast}"
        );
        let change = to.rsplit('=').next().unwrap();
        let undone = viewer.post("/undo", &format!("change={change}&back=/note/{ID}"));
        let to = undone.headers["location"].to_str().unwrap();
        assert!(to.starts_with(&format!("/note/{ID}?done=undone")), "{to}");
        assert_eq!(viewer.note(), original, "{form}");
    }
}

#[test]
fn the_kind_is_no_tag_in_the_form_and_stays_one_in_the_file() {
    let viewer = Viewer::new();
    let tags_after = |form: &str| {
        let page = viewer.get(&format!("/note/{ID}")).text;
        let field = |name: &str| {
            let (_, rest) = page.split_once(&format!("name=\"{name}\"")).unwrap();
            let (_, value) = rest.split_once("value=\"").unwrap();
            value.split('"').next().unwrap().to_owned()
        };
        let form = format!("before={}&{form}", field("before"));
        viewer.post(&format!("/note/{ID}/edit"), &form);
        (field("tags"), viewer.note())
    };
    let (_, file) = tags_after("kind=insight");
    assert!(file.contains("- insight\n"), "{file}");
    let (shown, file) = tags_after("tags=a");
    assert!(!shown.contains("insight"), "{shown}");
    assert!(file.contains("- insight\n- a\n"), "{file}");
}

#[test]
fn an_edit_of_an_older_text_is_not_saved() {
    let viewer = Viewer::new();
    let before = viewer.note();
    let form = "before=0&title=mine&body=my+words&tags=";
    let read = viewer.post(&format!("/note/{ID}/edit"), form);
    assert!(
        read.text.contains("my words") && read.text.contains("a text"),
        "{}",
        read.text
    );
    assert_eq!(viewer.note(), before);
}

#[test]
fn a_write_goes_back_to_our_own_pages_only() {
    let viewer = Viewer::new();
    let mark = format!("/note/{ID}/mark");
    for back in [
        "https://evil.example",
        "//evil.example",
        "/notes%0D%0Aset-cookie:x",
        "javascript:0",
    ] {
        let pinned = viewer.post(&mark, "act=pin");
        let to = pinned.headers["location"].to_str().unwrap().to_owned();
        let change = to.rsplit('=').next().unwrap();
        let undone = viewer.post("/undo", &format!("change={change}&back={back}"));
        let to = undone.headers["location"].to_str().unwrap();
        assert!(to.starts_with("/notes?done="), "{to}");
    }
    let read = viewer.get("/notes?done=%3Cscript%3E&change=%22%3E");
    assert!(!read.text.contains("toast"), "{}", read.text);
}

#[test]
fn a_hostile_note_is_data_everywhere() {
    // WEB-03
    let hostile = "\"'><script>alert(1)</script><img src=x onerror=alert(1)>\u{1b}[31m\u{202e}x";
    let viewer = Viewer::with(hostile, hostile, false, false);
    let encoded: String = form_urlencoded::byte_serialize(hostile.as_bytes()).collect();
    for path in [
        "/notes".to_owned(),
        format!("/notes?q={encoded}"),
        format!("/notes?project={encoded}&tag={encoded}&machine={encoded}&state={encoded}"),
        format!("/note/{ID}"),
        format!("/note/{ID}/history"),
        "/live".to_owned(),
        "/health".to_owned(),
        "/settings".to_owned(),
        "/map".to_owned(),
        format!("/map/{ID}"),
        "/machines".to_owned(),
        "/privacy".to_owned(),
        "/review".to_owned(),
        "/sessions".to_owned(),
        format!("/sessions?project={encoded}"),
        "/why".to_owned(),
        "/history".to_owned(),
        "/history/day?on=2026-01-02".to_owned(),
        "/import".to_owned(),
        format!("/settings?project={encoded}"),
    ] {
        let page = viewer.get(&path).text;
        assert_eq!(page.matches("<script").count(), 1, "{path}: {page}");
        assert!(
            !page.contains("<img") && !page.contains("onerror=alert(1)>"),
            "{path}: {page}"
        );
        assert!(!page.contains(['\u{1b}', '\u{202e}']), "{path}");
    }
}

#[test]
fn a_note_of_ten_megabytes_is_shown_in_part() {
    let viewer = Viewer::with("large", &"word ".repeat(2 * 1024 * 1024), false, false);
    let read = viewer.get(&format!("/note/{ID}"));
    assert_eq!(read.status, StatusCode::OK);
    assert!(read.text.len() < 4 * 1024 * 1024, "{}", read.text.len());
}

#[test]
fn an_empty_store_explains_itself() {
    let viewer = Viewer::new();
    std::fs::remove_file(
        viewer
            .context
            .home
            .root()
            .join(format!("memory/semantic/{ID}.md")),
    )
    .unwrap();
    let page = viewer.get("/notes").text;
    assert!(
        page.contains("There are no notes yet") && page.contains("/import/sessions"),
        "{page}"
    );
    let page = viewer.get("/live").text;
    assert!(page.contains("No session was recorded yet"), "{page}");
    let page = viewer.get("/review").text;
    assert!(page.contains("Nothing to review"), "{page}");
}

#[test]
fn every_decision_of_the_review_is_undone_to_the_same_bytes() {
    let viewer = Viewer::with("a title", "<b>a</b> text", false, false);
    let path = viewer.context.home.root();
    let path = path.join(format!("memory/semantic/{ID}.md"));
    for field in [
        ("tags: []", "tags: [merge-conflict]"),
        ("kind: fact", "kind: fact\nstate: proposed"),
    ] {
        let original = viewer.note().replace(field.0, field.1);
        std::fs::write(&path, &original).unwrap();
        for (decision, word) in [("reject", "rejected"), ("approve", "approved")] {
            let page = viewer.get("/review").text;
            assert!(
                page.contains("card 1 of 1") && !page.contains("<b>a"),
                "{page}"
            );
            let (_, seen) = page.split_once("name=\"seen\" value=\"").unwrap();
            let seen = seen.split('"').next().unwrap();
            let form = format!("decision={decision}&note={ID}&count=1&at=0&seen=");
            let stale = viewer.post("/review/decide", &format!("{form}0"));
            let to = stale.headers["location"].to_str().unwrap();
            assert_eq!(to, "/review?at=0&done=stale");
            assert_eq!(viewer.note(), original);
            let done = viewer.post("/review/decide", &format!("{form}{seen}"));
            let to = done.headers["location"].to_str().unwrap();
            assert!(
                to.starts_with(&format!("/review?at=0&done={word}&")),
                "{to}"
            );
            assert_ne!(viewer.note(), original);
            let toast = viewer.get(to).text;
            assert!(
                toast.contains("data-key=\"u\"") && toast.contains("Nothing to review"),
                "{toast}"
            );
            let id = to.rsplit('=').next().unwrap();
            let undo = if to.contains("&change=") {
                "/undo"
            } else {
                "/review/restore"
            };
            let field_name = if to.contains("&change=") {
                "change"
            } else {
                "note"
            };
            let undone = viewer.post(undo, &format!("{field_name}={id}&back=/review"));
            let to = undone.headers["location"].to_str().unwrap();
            assert!(to.starts_with("/review?done="), "{to}");
            assert_eq!(viewer.note(), original, "{decision} of {field:?}");
        }
        std::fs::write(&path, original.replace(field.1, field.0)).unwrap();
    }
}

#[test]
fn health_shows_each_check_with_its_fix() {
    use anamnesis_app::doctor::{Depth, examine};

    let viewer = Viewer::new();
    let broken = viewer.context.home.root().join("memory/semantic/broken.md");
    std::fs::write(broken, "not a note").unwrap();
    let page = viewer.get("/health").text;
    let checks = examine(&viewer.context, Depth::Quick);
    assert!(checks.iter().any(|(_, check)| check.hint.is_some()));
    for (name, check) in checks {
        assert!(page.contains(&format!("<strong>{name}</strong>")), "{name}");
        if let Some(hint) = check.hint {
            let hint = maud::html! { code { (hint) } }.into_string();
            assert!(page.contains(&hint), "{hint}: {page}");
        }
    }
    assert!(page.contains("/health?all=yes"), "{page}");
    let all = viewer.get("/health?all=yes").text;
    assert!(!all.contains("/health?all=yes"), "{all}");
}

#[test]
fn every_setting_is_shown_and_a_change_is_confirmed() {
    use anamnesis_store::settings::{Kind, SETTINGS};

    let viewer = Viewer::new();
    let page = viewer.get("/settings").text;
    assert!(page.contains(">no model (heuristic)</bdi>") && page.contains(">400,000</bdi>"));
    assert!(page.contains("aria-label=\"Change recall.notes\">Change</summary>"));
    let with_backticks = page.replace("<code>", "`").replace("</code>", "`");
    for setting in SETTINGS {
        let name = format!("<code>{}</code>", setting.name);
        assert!(page.contains(&name), "{name}");
        let meaning = maud::html! { (setting.meaning) }.into_string();
        assert!(with_backticks.contains(&meaning), "{meaning}");
        if let Kind::Choice(words) = setting.kind {
            for word in words {
                let shown = format!(" ({word})</option>");
                assert!(page.contains(&shown), "{}: {word}", setting.name);
            }
        }
    }
    let file = viewer.context.home.config();
    let form = "key=recall.notes&value=5";
    let asked = viewer.post("/settings/change", form);
    assert_eq!(asked.status, StatusCode::OK);
    assert!(asked.text.contains("It is 3 now"), "{}", asked.text);
    assert!(!file.exists());
    let done = viewer.post("/settings/change", &format!("{form}&sure=yes"));
    assert_eq!(done.headers["location"], "/settings?done=saved");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("\"notes\": 5")
    );
    viewer.post("/settings/change", "key=recall.notes&default=yes&sure=yes");
    assert!(!std::fs::read_to_string(&file).unwrap().contains("notes"));
    for wrong in [
        "key=recall.notes&value=many",
        "key=nothing&value=1",
        "key=paused&value=1",
    ] {
        let read = viewer.post("/settings/change", &format!("{wrong}&sure=yes"));
        assert_eq!(read.status, StatusCode::BAD_REQUEST, "{wrong}");
    }
}

#[test]
fn sync_now_reaches_the_remote() {
    let viewer = Viewer::new();
    let page = viewer.get("/machines").text;
    assert!(
        page.contains("laptop") && page.contains("this machine"),
        "{page}"
    );
    assert!(!page.contains("/machines/sync"), "without a remote: {page}");
    let remote = TempDir::new().unwrap();
    let home = viewer.context.home.root();
    let address = remote.path().join("notes.git");
    std::fs::create_dir(&address).unwrap();
    let made = std::process::Command::new("git")
        .args(["init", "-q", "--bare", "-b", "main"])
        .arg(&address)
        .status();
    assert!(made.unwrap().success());
    let config = serde_json::json!({ "remote": address });
    std::fs::write(home.join("config.json"), config.to_string()).unwrap();
    let done = viewer.post("/machines/sync", "");
    assert_eq!(
        done.headers["location"], "/machines?done=synced",
        "{}",
        done.text
    );
    let page = viewer.get("/machines").text;
    assert!(
        page.contains("synced") && page.contains("0 commits"),
        "{page}"
    );
}

#[test]
fn a_purge_is_asked_twice_and_has_a_receipt() {
    let viewer = Viewer::with("a title", "the password is hunter2222 here", false, false);
    let page = viewer.get("/privacy").text;
    assert!(
        page.contains("Prompts") && page.contains("30 days"),
        "{page}"
    );
    let form = "text=hunter2222";
    let first = viewer.post("/privacy/purge", form).text;
    assert!(first.contains("Found in") && first.contains('#'), "{first}");
    assert!(!first.contains("password is"), "{first}");
    let second = viewer
        .post("/privacy/purge", &format!("{form}&seen=yes"))
        .text;
    assert!(second.contains("There is no undo"), "{second}");
    assert!(
        viewer.note().contains("hunter2222"),
        "nothing is changed yet"
    );
    let done = viewer
        .post("/privacy/purge", &format!("{form}&seen=yes&sure=yes"))
        .text;
    assert!(done.contains("Purged") && done.contains("0 left"), "{done}");
    assert!(done.contains("change it"), "{done}");
    assert!(!viewer.note().contains("hunter2222"));
    let none = viewer.post("/privacy/purge", form).text;
    assert!(none.contains("nowhere"), "{none}");
}

#[test]
fn a_note_is_purged_by_its_id() {
    let viewer = Viewer::new();
    let form = format!("id={ID}");
    let sure = viewer
        .post("/privacy/purge", &format!("{form}&sure=yes"))
        .text;
    assert!(sure.contains("a title"), "the places come first: {sure}");
    viewer.post("/privacy/purge", &format!("{form}&seen=yes&sure=yes"));
    assert!(!viewer.note().contains("a text"));
}

#[test]
fn the_map_draws_the_notes_around_one() {
    let other = "01JGFJJZ00ABCDEFGHJKMNPQRT";
    let viewer = Viewer::with("a title", &format!("see [[{other}]]"), false, false);
    let second = viewer
        .note()
        .replace(ID, other)
        .replace("a title", "<b>second</b>");
    let second = second.replace(&format!("see [[{other}]]"), "the other");
    let path = format!("memory/semantic/{other}.md");
    std::fs::write(viewer.context.home.root().join(path), second).unwrap();
    let page = viewer.get(&format!("/map/{ID}")).text;
    assert!(
        page.contains("<svg") && page.contains(&format!("href=\"/map/{other}\"")),
        "{page}"
    );
    assert!(
        page.contains("&lt;b&gt;second") && !page.contains("<b>"),
        "{page}"
    );
    let overview = viewer.get("/map").text;
    assert!(
        overview.contains(&format!("/map/{ID}")) && overview.contains("2025-12"),
        "{overview}"
    );
    assert_eq!(
        viewer.get(&format!("/map/{}", ID.to_lowercase())).status,
        StatusCode::NOT_FOUND
    );
}

#[test]
fn a_key_is_masked_in_the_settings() {
    let viewer = Viewer::new();
    let form = "key=reflection.api_key&value=sk-abcdefghijklmnop";
    let asked = viewer.post("/settings/change", form);
    assert!(!asked.text.contains("abcdef"), "{}", asked.text);
    viewer.post("/settings/change", &format!("{form}&sure=yes"));
    let page = viewer.get("/settings").text;
    assert!(page.contains("sk-") && !page.contains("abcdef"), "{page}");
}

#[test]
fn a_project_is_paused_and_resumed() {
    let viewer = Viewer::new();
    for (form, word, shown) in [
        ("project=p", "paused", "Resume p"),
        ("project=p&resume=yes", "resumed", "No project is paused"),
        ("", "paused", "Resume everywhere"),
        ("resume=yes", "resumed", "Pause everywhere"),
    ] {
        viewer.post("/settings/pause", form);
        assert!(!viewer.get("/settings").text.contains(shown), "{form}");
        let done = viewer.post("/settings/pause", &format!("{form}&sure=yes"));
        assert_eq!(done.headers["location"], format!("/settings?done={word}"));
        let page = viewer.get("/settings").text;
        assert!(page.contains(shown), "{form}: {page}");
    }
}

#[test]
fn the_server_ends_after_the_last_page() {
    let viewer = Viewer::new();
    let options = Options {
        grace: Duration::ZERO,
        ..Options::default()
    };
    // No page with JavaScript was open, so the longer limit applies.
    assert!(!viewer.site.has_ended(&options));
    let page = viewer.site.streams.add().unwrap();
    assert!(!viewer.site.has_ended(&options));
    drop(page);
    assert!(viewer.site.has_ended(&options));
}
