//! Renders the text of a note. Nothing in it can run, load or leave its place.

use std::cell::LazyCell;

use anamnesis_app::context::Context;
use anamnesis_note::{id::NoteId, link::Mention};
use anamnesis_store::index::Index;
use anamnesis_text::clean::clean;
use maud::{Markup, PreEscaped, html};
use pulldown_cmark::{
    CowStr, Event, HeadingLevel, LinkType, Options, Parser, Tag, TagEnd, html as writer,
};

/// How many bytes of a text are rendered. A longer one is shown as it is; a note's file has at most 1 MiB.
const MAX_RENDERED: usize = 256 * 1024;

/// What follows the words of a link to a note that does not exist.
const NO_NOTE: &str = "<span class=\"hint\"> (no such note)</span>";

/// Renders the text of a note. HTML is shown as text, images are not loaded, and only links to web pages
/// and to notes are links.
pub(crate) fn render(context: &Context, text: &str) -> Markup {
    let index = LazyCell::new(|| Index::open(&context.home).ok());
    let note_of = |mention: &Mention| index.as_ref()?.resolved(mention).ok()?;
    render_text(&context.printable(text), note_of)
}

fn render_text(text: &str, note_of: impl Fn(&Mention) -> Option<NoteId>) -> Markup {
    let text = clean(text);
    if text.len() > MAX_RENDERED {
        return html! { pre { (text) } };
    }
    let options =
        Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_WIKILINKS;
    let mut out = String::with_capacity(text.len() * 2);
    // What ends each open link.
    let mut ends = Vec::new();
    let events = Parser::new_ext(&text, options).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        // The page has the only heading of the first level.
        Event::Start(Tag::Heading {
            level,
            classes,
            attrs,
            ..
        }) => Event::Start(Tag::Heading {
            level: below(level),
            id: None,
            classes,
            attrs,
        }),
        Event::End(TagEnd::Heading(level)) => Event::End(TagEnd::Heading(below(level))),
        Event::Start(Tag::Link {
            link_type: LinkType::WikiLink { .. },
            dest_url,
            ..
        }) => {
            let Ok(mention) = dest_url.parse::<Mention>();
            let note = note_of(&mention);
            ends.push(if note.is_some() { "</a>" } else { NO_NOTE });
            let start = note.map_or_else(String::new, |id| format!("<a href=\"/note/{id}\">"));
            Event::InlineHtml(start.into())
        }
        Event::Start(Tag::Link { dest_url, .. }) => {
            let is_shown = is_web(&dest_url);
            ends.push(if is_shown { "</a>" } else { "" });
            if is_shown {
                open(&dest_url)
            } else {
                Event::Text(CowStr::Borrowed(""))
            }
        }
        Event::End(TagEnd::Link) => {
            Event::InlineHtml(CowStr::Borrowed(ends.pop().unwrap_or_default()))
        }
        Event::Start(Tag::Image { .. }) => Event::Text(CowStr::Borrowed("[image: ")),
        Event::End(TagEnd::Image) => Event::Text(CowStr::Borrowed("]")),
        event => event,
    });
    writer::push_html(&mut out, events);
    PreEscaped(out)
}

fn open<'a>(address: &str) -> Event<'a> {
    let link =
        html! { a href=(address) rel="noreferrer noopener nofollow" target="_blank" { "|" } };
    let link = link.into_string();
    let start = link.split_once("|</a>").map_or("", |(start, _)| start);
    Event::InlineHtml(CowStr::from(start.to_owned()))
}

fn is_web(address: &str) -> bool {
    let scheme = address.split_once("://").map(|(scheme, _)| scheme);
    scheme.is_some_and(|scheme| ["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()))
}

fn below(level: HeadingLevel) -> HeadingLevel {
    HeadingLevel::try_from(level as usize + 1).unwrap_or(HeadingLevel::H6)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_a_hostile_text_is_markup() {
        for hostile in [
            "<script>alert(1)</script>",
            "a <img src=x onerror=alert(1)> b",
            "<svg onload=alert(1)>",
            "<style>*{display:none}</style>",
            "<iframe src=//evil></iframe>",
            "[x](javascript:alert(1))",
            "[x](JaVaScRiPt:alert(1))",
            "[x](data:text/html,<script>alert(1)</script>)",
            "<javascript:alert(1)>",
            "![x](https://evil.example/pixel.png)",
            "![x](data:image/svg+xml,<svg/onload=alert(1)>)",
            "[x]: javascript:alert(1)\n\n[x]",
            "[x](\"onmouseover=alert(1))",
            "# h {onclick=alert(1)}",
            "```\"onclick=alert(1)\n```",
            "</main></body><script>alert(1)</script>",
            "[[javascript:alert(1)]] [[x|<script>alert(1)</script>]] ![[<img src=x>]]",
        ] {
            let shown = render_text(hostile, |_| None).into_string();
            for sign in [
                "<script",
                "<img",
                "<svg",
                "<style",
                "<iframe",
                "<javascript",
                "</main",
            ] {
                assert!(!shown.contains(sign), "{hostile}: {shown}");
            }
            let is_attribute = |name: &str| {
                let tags = shown
                    .split('<')
                    .skip(1)
                    .filter_map(|tag| tag.split_once('>'));
                tags.map(|(tag, _)| tag.to_lowercase())
                    .any(|tag| tag.contains(name))
            };
            for sign in ["href=\"javascript", "href=\"data", " on", "src="] {
                assert!(!is_attribute(sign), "{hostile}: {shown}");
            }
        }
    }

    #[test]
    fn a_link_to_a_web_page_tells_it_nothing() {
        let shown = render_text("[docs](https://example.org/?a=1&b=\"2)", |_| None).into_string();
        assert_eq!(
            shown,
            "<p><a href=\"https://example.org/?a=1&amp;b=&quot;2\" rel=\"noreferrer noopener \
             nofollow\" target=\"_blank\">docs</a></p>\n"
        );
    }

    #[test]
    fn a_link_to_a_note_leads_there_or_says_that_there_is_none() {
        const ID: &str = "01ARZ3NDEKTSV4RRFFQ69G5FAV";
        let note_of = |mention: &Mention| {
            (*mention == Mention::Title("cache".to_owned())).then(|| ID.parse().unwrap())
        };
        let to_note = format!("<p>a <a href=\"/note/{ID}\">");
        for (text, shown) in [
            ("a [[Cache]] b", format!("{to_note}Cache</a> b</p>")),
            (
                "a [[cache|the *store*]]",
                format!("{to_note}the <em>store</em></a></p>"),
            ),
            ("uses [[Redis]].", format!("<p>uses Redis{NO_NOTE}.</p>")),
            ("`[[Redis]]`", "<p><code>[[Redis]]</code></p>".to_owned()),
        ] {
            assert_eq!(render_text(text, note_of).into_string().trim(), shown);
        }
    }

    #[test]
    fn sequences_of_a_terminal_and_bidi_controls_are_gone() {
        let shown = render_text("a\u{1b}[31mred\u{202e}txt.exe", |_| None).into_string();
        assert!(!shown.contains(['\u{1b}', '\u{202e}']), "{shown}");
    }

    #[test]
    fn a_long_text_is_not_rendered() {
        let shown = render_text(&"*a* ".repeat(MAX_RENDERED / 4 + 1), |_| None).into_string();
        assert!(shown.starts_with("<pre>*a* "), "{}", &shown[..20]);
    }
}
