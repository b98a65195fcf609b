//! Measures the pages of the viewer: the time from a request to the end of its answer.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use anamnesis_store::fs::home::Home;
use anamnesis_testkit::viewer::{Viewer, Visitor};

use super::{
    MIB, Stage,
    corpus::{change_notes, note_files, record_events},
    measure::Spread,
    scale::{Column, milliseconds},
};
use crate::{Result, random::Random};

/// How often each page is requested again, and how often after a change.
const AGAIN: usize = 7;
const CHANGED: usize = 3;

/// The number of tool events in the journal, two hundred per session.
const EVENTS: usize = 10_000;

/// The number of commits with changed notes.
const COMMITS: usize = 10;

/// What is typed in the search field, beside the title of a note.
const TYPED: [&str; 3] = [
    "database migration error",
    "the cache of the build",
    "\"test file\"",
];

/// Pages that lists link to: the list, and the beginning of the link.
const LINKED: [(&str, &str); 5] = [
    ("/notes", "/note/"),
    ("/sessions", "/session?"),
    ("/why", "/why?"),
    ("/history", "/change/"),
    ("/map", "/map/"),
];

/// A page, by its name in the table.
struct Page {
    name: String,
    address: String,
}

/// Adds sessions and commits to a store of notes, which pages show, and does the deferred work: pages
/// would read the long logs of the databases each time.
pub(super) fn prepare(stage: &Stage<'_>, store: &str) -> Result {
    let folder = stage.store_folder(store);
    // As the product creates it: `doctor` looks at every file of a store that others may enter.
    fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
    Home::new(&folder).create()?;
    record_events(&folder, "viewed", EVENTS)?;
    let files = note_files(&folder)?;
    let mut random = Random::new(11);
    for _ in 0..COMMITS {
        change_notes(&files, 10, &mut random)?;
        stage.direct(store, &["sync"]).once()?;
    }
    stage.direct(store, &["work"]).once()?;
    Ok(())
}

/// Measures each page in a viewer of its own: its first answer, the median of later ones, the median
/// of those after a note was edited, and the viewer's peak memory.
pub(super) fn column(
    stage: &Stage<'_>,
    store: &str,
    title: &str,
    program: &Path,
) -> Result<Column> {
    let folder = stage.store_folder(store);
    for verb in ["reindex", "work"] {
        stage.direct(store, &[verb]).with(program).once()?;
    }
    let files = note_files(&folder)?;
    let mut random = Random::new(13);
    let one = start(stage, store, program)?;
    let pages = pages(&one.visitor, title)?;
    let peak = memory(&one);
    drop(one);
    let mut ready = Vec::new();
    let mut column = Vec::new();
    for page in &pages {
        let viewer = start(stage, store, program)?;
        ready.push(viewer.ready_after);
        let next = || -> Result<Duration> {
            let asked = Instant::now();
            read(&viewer.visitor, &page.address)?;
            Ok(asked.elapsed())
        };
        let first = next()?;
        let again = (0..AGAIN).map(|_| next()).collect::<Result<Vec<_>>>()?;
        let mut changed = Vec::new();
        for _ in 0..CHANGED {
            change_notes(&files, 1, &mut random)?;
            changed.push(next()?);
        }
        let mut figures = Vec::from([vec![first], again, changed].map(milliseconds));
        figures.push(memory(&viewer));
        column.push((page.name.clone(), figures.join("; ")));
    }
    column.push(search_as_you_type(&start(stage, store, program)?, title)?);
    let spread = Spread::from_times(ready.into_iter());
    column.insert(
        0,
        (
            "address ready".to_owned(),
            milliseconds(vec![spread.median]),
        ),
    );
    column.push(("peak memory, all pages".to_owned(), peak));
    Ok(column)
}

fn start(stage: &Stage<'_>, store: &str, program: &Path) -> Result<Viewer> {
    let mut command = Command::new(program);
    command
        .args(["open", "--print"])
        .env_clear()
        .envs(stage.environment(store))
        .current_dir(&stage.project)
        .stdin(Stdio::null());
    Ok(Viewer::start(&mut command)?)
}

/// Returns the pages of the navigation and one of each kind that lists link to. Requests all of them
/// once, and a search.
fn pages(visitor: &Visitor, title: &str) -> Result<Vec<Page>> {
    let page = |address: String| Page {
        name: address.clone(),
        address,
    };
    let notes = read(visitor, "/notes")?;
    let (_, navigation) = notes.split_once("<nav").unwrap_or_default();
    let (navigation, _) = navigation.split_once("</nav>").unwrap_or_default();
    let mut pages: Vec<Page> = links(navigation, "/").map(page).collect();
    for (list, beginning) in LINKED {
        let main = read(visitor, list)?;
        let (_, main) = main.split_once("<main").unwrap_or_default();
        pages.extend(links(main, beginning).next().map(|address| Page {
            name: format!("{beginning}…"),
            address,
        }));
    }
    for page in &pages {
        read(visitor, &page.address)?;
    }
    read(visitor, &search(title))?;
    Ok(pages)
}

/// Requests what the page requests after each letter, with and without a star after it: the median,
/// the 95th percentile, the longest time with its query, and the viewer's peak memory.
fn search_as_you_type(viewer: &Viewer, title: &str) -> Result<(String, String)> {
    let mut times = Vec::new();
    for typed in TYPED.into_iter().chain([title]) {
        for (end, _) in typed.char_indices().skip(1).chain([(typed.len(), ' ')]) {
            let query = typed.get(..end).unwrap_or_default();
            for query in [query.to_owned(), format!("{query}*")] {
                let address = search(&query);
                let asked = Instant::now();
                read(&viewer.visitor, &address)?;
                times.push((asked.elapsed(), query));
            }
        }
    }
    let (longest, query) = times.iter().max().cloned().unwrap_or_default();
    let spread = Spread::from_times(times.into_iter().map(|(time, _)| time));
    let figures = [spread.median, spread.p95, longest].map(|time| milliseconds(vec![time]));
    Ok((
        format!("search as you type (longest: {query})"),
        format!("{}; {}", figures.join("; "), memory(viewer)),
    ))
}

/// Returns the address of a search.
fn search(query: &str) -> String {
    format!("/notes?q={}", query.replace(' ', "+").replace('"', "%22"))
}

/// Returns the addresses of the links that begin with a text.
fn links<'a>(html: &'a str, beginning: &'a str) -> impl Iterator<Item = String> + 'a {
    let addresses = html.split("href=\"").skip(1);
    let addresses = addresses.filter_map(|rest| rest.split('"').next());
    let wanted = addresses.filter(move |address| address.starts_with(beginning));
    wanted.map(|address| address.replace("&amp;", "&"))
}

fn read(visitor: &Visitor, address: &str) -> Result<String> {
    let answer = visitor.read(address)?;
    if answer.starts_with("HTTP/1.1 200 ") {
        return Ok(answer);
    }
    let head = answer.lines().next().unwrap_or_default();
    Err(format!("{address}: {head}").into())
}

/// Returns the viewer's peak memory, if the system reports it.
fn memory(viewer: &Viewer) -> String {
    let path = PathBuf::from(format!("/proc/{}/status", viewer.id()));
    let status = fs::read_to_string(path).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok());
    kibibytes.map_or_else(String::new, |it| format!("{} MiB", it * 1024 / MIB))
}
