//! The table of addresses.

use crate::{
    pages::{
        self, edit, health, history, import, link, live, machines, map, note, notes, privacy,
        review, session, sessions, settings, why,
    },
    proof::STYLE,
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

const SCRIPT: &str = include_str!("../assets/viewer.js");
const ICON: &str = include_str!("../assets/icon.svg");

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

const fn hidden(path: &'static str, act: Act) -> Route {
    Route {
        path,
        act,
        label: None,
    }
}

/// All addresses. Those with a label are the navigation, in this order: first the tabs, then the menu.
pub(crate) const ROUTES: &[Route] = &[
    page("/live", "Live", live::show),
    page("/notes", "Notes", notes::show),
    page("/review", "Review", review::show),
    page("/sessions", "Sessions", sessions::show),
    hidden("/session", Act::Page(session::show)),
    page("/why", "Why", why::show),
    hidden("/why/try", Act::Ask(why::try_prompt)),
    page("/history", "History", history::show),
    hidden("/history/day", Act::Page(history::day)),
    hidden("/change/{id}", Act::Page(history::change)),
    hidden("/", Act::Page(notes::show)),
    hidden("/notes/many", Act::Write(notes::many)),
    hidden("/notes/new", Act::Page(edit::new)),
    hidden("/notes/write", Act::Write(edit::write)),
    hidden("/note/{id}", Act::Page(note::show)),
    hidden("/note/{id}/history", Act::Page(note::history)),
    hidden("/note/{id}/preview", Act::Ask(edit::preview)),
    hidden("/note/{id}/edit", Act::Write(edit::save)),
    hidden("/note/{id}/mark", Act::Write(note::mark)),
    hidden("/note/{id}/link", Act::Page(link::choose)),
    hidden("/note/{id}/connect", Act::Write(link::connect)),
    hidden("/undo", Act::Write(pages::undo)),
    page("/health", "Health", health::show),
    page("/map", "Map", map::show),
    hidden("/map/{id}", Act::Page(map::around)),
    page("/machines", "Machines & sync", machines::show),
    hidden("/machines/sync", Act::Write(machines::sync)),
    hidden("/settings/change", Act::Write(settings::change)),
    hidden("/settings/pause", Act::Write(settings::pause)),
    hidden("/settings/test", Act::Write(settings::test)),
    page("/import", "Import", import::show),
    hidden("/import/notes", Act::Write(import::notes)),
    hidden("/import/sessions", Act::Write(import::sessions)),
    page("/privacy", "Privacy", privacy::show),
    hidden("/privacy/purge", Act::Write(privacy::purge)),
    page("/settings", "Settings", settings::show),
    hidden("/review/decide", Act::Write(review::decide)),
    hidden("/review/restore", Act::Write(review::restore)),
    hidden("/viewer.css", Act::Asset("text/css; charset=utf-8", STYLE)),
    hidden(
        "/viewer.js",
        Act::Asset("text/javascript; charset=utf-8", SCRIPT),
    ),
    hidden("/icon.svg", Act::Asset("image/svg+xml", ICON)),
    hidden("/events", Act::Events),
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
