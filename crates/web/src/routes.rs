//! The table of addresses.

use crate::{
    pages::{
        self, edit, health, history, import, link, live, machines, map, note, notes, privacy,
        review, session, sessions, settings, why,
    },
    visit::{Answered, Visit},
};

/// The action of an address.
#[derive(Clone, Copy)]
pub(crate) enum Act {
    /// Shows a page.
    Page(fn(&Visit) -> Answered),
    /// Answers a form, and changes nothing.
    Ask(fn(&Visit) -> Answered),
    /// Changes something, by a form.
    Write(fn(&Visit) -> Answered),
    /// Sends an embedded file of this type.
    Asset(&'static str, &'static str),
    /// Opens the event stream.
    Events,
}

/// An address.
pub(crate) struct Route {
    /// Its path. The segment `{id}` stands for letters, digits and `-`.
    pub(crate) path: &'static str,
    /// Its action.
    pub(crate) act: Act,
    /// Its name in the navigation, if it is there.
    pub(crate) label: Option<&'static str>,
}

const fn page(path: &'static str, label: &'static str, show: fn(&Visit) -> Answered) -> Route {
    Route {
        path,
        act: Act::Page(show),
        label: Some(label),
    }
}

const fn part(path: &'static str, show: fn(&Visit) -> Answered) -> Route {
    Route {
        path,
        act: Act::Page(show),
        label: None,
    }
}

const fn write(path: &'static str, change: fn(&Visit) -> Answered) -> Route {
    Route {
        path,
        act: Act::Write(change),
        label: None,
    }
}

const fn ask(path: &'static str, answer: fn(&Visit) -> Answered) -> Route {
    Route {
        path,
        act: Act::Ask(answer),
        label: None,
    }
}

const fn asset(path: &'static str, kind: &'static str, text: &'static str) -> Route {
    Route {
        path,
        act: Act::Asset(kind, text),
        label: None,
    }
}

/// All addresses. Those with a label are the navigation, in this order: first the tabs, then the menu.
pub(crate) const ROUTES: &[Route] = &[
    page("/live", "Live", live::show),
    page("/notes", "Notes", notes::show),
    page("/review", "Review", review::show),
    page("/sessions", "Sessions", sessions::show),
    part("/session", session::show),
    page("/why", "Why", why::show),
    ask("/why/try", why::try_prompt),
    page("/history", "History", history::show),
    part("/history/day", history::day),
    part("/change/{id}", history::change),
    part("/", notes::show),
    write("/notes/many", notes::many),
    part("/notes/new", edit::new),
    write("/notes/write", edit::write),
    part("/note/{id}", note::show),
    part("/note/{id}/history", note::history),
    ask("/note/{id}/preview", edit::preview),
    write("/note/{id}/edit", edit::save),
    write("/note/{id}/mark", note::mark),
    part("/note/{id}/link", link::choose),
    write("/note/{id}/connect", link::connect),
    write("/undo", pages::undo),
    page("/health", "Health", health::show),
    page("/map", "Map", map::show),
    part("/map/{id}", map::around),
    page("/machines", "Machines & sync", machines::show),
    write("/machines/sync", machines::sync),
    write("/settings/change", settings::change),
    write("/settings/pause", settings::pause),
    write("/settings/test", settings::test),
    page("/import", "Import", import::show),
    write("/import/notes", import::notes),
    write("/import/sessions", import::sessions),
    page("/privacy", "Privacy", privacy::show),
    write("/privacy/purge", privacy::purge),
    page("/settings", "Settings", settings::show),
    write("/review/decide", review::decide),
    write("/review/restore", review::restore),
    asset(
        "/viewer.css",
        "text/css; charset=utf-8",
        include_str!("../assets/viewer.css"),
    ),
    asset(
        "/viewer.js",
        "text/javascript; charset=utf-8",
        include_str!("../assets/viewer.js"),
    ),
    asset(
        "/icon.svg",
        "image/svg+xml",
        include_str!("../assets/icon.svg"),
    ),
    Route {
        path: "/events",
        act: Act::Events,
        label: None,
    },
];

/// Returns the path and the name of each page in the navigation.
pub(crate) fn navigation() -> impl Iterator<Item = (&'static str, &'static str)> {
    ROUTES
        .iter()
        .filter_map(|route| Some((route.path, route.label?)))
}

/// Returns the names of the pages.
pub fn names() -> impl Iterator<Item = &'static str> {
    navigation().map(|(path, _)| path.trim_start_matches('/'))
}

/// Returns the path of a page or of a note with its full id.
pub(crate) fn path_of(page: &str) -> Option<String> {
    if let Some(name) = names().find(|name| *name == page) {
        return Some(format!("/{name}"));
    }
    page.parse::<anamnesis_note::id::NoteId>()
        .ok()
        .map(|id| format!("/note/{id}"))
}

/// Finds the route of a path, and the segment that stands for `{id}`.
pub(crate) fn find(path: &str) -> Option<(&'static Route, &str)> {
    ROUTES
        .iter()
        .find_map(|route| Some((route, matched(route.path, path)?)))
}

fn matched<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once("{id}") else {
        return (pattern == path).then_some("");
    };
    let id = path.strip_prefix(before)?.strip_suffix(after)?;
    let is_id = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    ((1..=64).contains(&id.len()) && id.bytes().all(is_id)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leads_out_of_the_table() {
        for path in [
            "/note/../live",
            "/note/..%2flive",
            "/note/%2e%2e",
            "//live",
            "/live/",
            "/note/",
            "/note/a/b",
            "/note/a.md",
            "/etc/passwd",
            "/viewer.css/..",
            "",
            "*",
        ] {
            assert!(find(path).is_none(), "{path}");
        }
        let (route, id) = find("/note/01ARZ3NDEKTSV4RRFFQ69G5FAV/edit").unwrap();
        assert_eq!(route.path, "/note/{id}/edit");
        assert_eq!(id, "01ARZ3NDEKTSV4RRFFQ69G5FAV");
    }

    #[test]
    fn pages_have_names() {
        assert_eq!(path_of("live").as_deref(), Some("/live"));
        assert_eq!(path_of("undo"), None);
        assert_eq!(path_of("../live"), None);
    }
}
