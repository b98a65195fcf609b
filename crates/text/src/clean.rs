//! Removes terminal sequences, control characters and invisible characters.
//!
//! Every text from outside passes through here before it is stored. Printable characters, tabs and
//! line feeds are kept. Credentials are handled by [`crate::redact`], private regions by
//! [`crate::privacy`].
//!
//! Invariants: cleaning is idempotent and takes linear time; the result of [`clean`] has no control
//! character except `\n` and `\t`.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::joiner::belongs;

const ESCAPE: char = '\u{1b}';
const BELL: char = '\u{7}';
const STRING_TERMINATOR: char = '\u{9c}';

/// Returns the text without terminal sequences, control characters and invisible characters. Joiners
/// and selectors that belong to a script or an emoji are text and stay.
///
/// Every other line end (`\r\n`, `\r`, vertical tab, form feed, U+0085, U+2028, U+2029) becomes
/// `\n`. A clean text is borrowed.
pub fn clean(text: &str) -> Cow<'_, str> {
    let Some(mut plain) = plain_length(text) else {
        return Cow::Borrowed(text);
    };
    let mut rest = text;
    let mut cleaned = String::with_capacity(text.len());
    loop {
        let (run, unclean) = rest.split_at(plain);
        cleaned.push_str(run);
        let Some(character) = unclean.chars().next() else {
            return Cow::Owned(cleaned);
        };
        let length = match character {
            '\r' => {
                cleaned.push('\n');
                if unclean.starts_with("\r\n") { 2 } else { 1 }
            }
            _ if is_line_end(character) => {
                cleaned.push('\n');
                character.len_utf8()
            }
            _ if belongs(&cleaned, unclean) => {
                cleaned.push(character);
                character.len_utf8()
            }
            _ => sequence_length(unclean).unwrap_or(character.len_utf8()),
        };
        rest = &unclean[length..];
        plain = plain_length(rest).unwrap_or(rest.len());
    }
}

/// Returns how many bytes of plain characters the text starts with; `None` if all of it is plain.
fn plain_length(text: &str) -> Option<usize> {
    let mut plain = 0;
    loop {
        // Most text is printable ASCII, which is checked eight bytes at a time.
        let rest = text.get(plain..)?.as_bytes();
        let words = rest.as_chunks().0.iter();
        plain += 8 * words.take_while(|word| is_printable(**word)).count();
        let mut characters = text[plain..].chars();
        loop {
            let character = characters.next()?;
            if !is_plain(character) {
                return Some(plain);
            }
            plain += character.len_utf8();
            if character.is_ascii() && characters.as_str().starts_with(|c: char| c.is_ascii()) {
                break;
            }
        }
    }
}

/// Returns the cleaned text on one line: each run of white space becomes one blank, both ends are
/// trimmed.
pub fn one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for word in clean(text).split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    line
}

/// Returns whether all bytes are printable ASCII, from blank to tilde.
fn is_printable(word: [u8; 8]) -> bool {
    const fn each(byte: u8) -> u64 {
        u64::from_ne_bytes([byte; 8])
    }
    let word = u64::from_ne_bytes(word);
    // From the blank on, bit 5 or 6 is set. Adding one sets bit 7 only for the delete character.
    word & each(0x80) == 0
        && (word | word << 1) & each(0x40) == each(0x40)
        && (word + each(1)) & each(0x80) == 0
}

fn is_plain(character: char) -> bool {
    // The ranges cover most letters of most languages, so their texts skip the slower checks.
    match character {
        '\n'
        | '\t'
        | ' '..='~'
        | '\u{c0}'..='\u{34e}'
        | '\u{370}'..='\u{61b}'
        | '\u{3041}'..='\u{312f}'
        | '\u{3400}'..='\u{d7ff}' => true,
        _ => !character.is_control() && !is_line_end(character) && !is_invisible(character),
    }
}

fn is_line_end(character: char) -> bool {
    matches!(
        character,
        '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Returns whether the character is default-ignorable in Unicode, or controls direction or
/// annotation.
///
/// The set includes tag characters, direction controls, zero-width characters and variation
/// selectors: each of them can hide text from a reader.
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffb}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns the length in bytes of the terminal sequence that the text starts with, if any.
fn sequence_length(text: &str) -> Option<usize> {
    let mut characters = text.chars();
    let introducer = characters.next()?;
    let (introducer, body) = if introducer == ESCAPE {
        // `ESC` and a character is the two-character form of the C1 control 0x40 above it.
        let second = characters.next()?;
        (second, characters.as_str())
    } else {
        let short = u32::from(introducer).checked_sub(0x40)?;
        (char::from_u32(short)?, characters.as_str())
    };
    let head = text.len() - body.len();
    match introducer {
        '[' => Some(head + control_length(body)),
        'P' | 'X' | ']' | '^' | '_' => Some(head + string_length(body).unwrap_or(0)),
        // nF sequences (such as selecting a character set): intermediates, then one final.
        ' '..='/' => {
            let intermediates = run_length(body, b' '..=b'/');
            let last = run_length(&body[intermediates..], b'0'..=b'~').min(1);
            Some(head + intermediates + last)
        }
        '0'..='~' if text.starts_with(ESCAPE) => Some(head),
        _ => None,
    }
}

/// Returns the length in bytes of a control sequence's parameters, intermediates and final.
pub(crate) fn control_length(body: &str) -> usize {
    let parameters = run_length(body, b'0'..=b'?');
    let intermediates = parameters + run_length(&body[parameters..], b' '..=b'/');
    intermediates + run_length(&body[intermediates..], b'@'..=b'~').min(1)
}

/// Returns how many ASCII characters of a range the text starts with.
fn run_length(text: &str, range: RangeInclusive<u8>) -> usize {
    text.bytes().take_while(|byte| range.contains(byte)).count()
}

/// Returns the length in bytes of a control string with its terminator, if it has one.
///
/// Any other control character aborts it, as in a terminal. This keeps the work linear, and a stray
/// introducer cannot hide the lines after it.
fn string_length(body: &str) -> Option<usize> {
    let end = body.find(char::is_control)?;
    let terminator = &body[end..];
    if terminator.starts_with([BELL, STRING_TERMINATOR]) {
        Some(end + terminator.chars().next().map_or(0, char::len_utf8))
    } else if terminator.starts_with("\u{1b}\\") {
        Some(end + 2)
    } else {
        None
    }
}

/// Shortens the absolute paths of this machine, because notes travel: what is below `folder` becomes
/// relative, a home folder becomes `~`, and of a path below a temporary or mounted folder the last name
/// is kept.
pub fn without_machine_paths<'a>(text: &'a str, folder: Option<&str>) -> Cow<'a, str> {
    const ROOTS: &str = "/tmp/|/private/|/var/folders/|/mnt/|/media/|/Volumes/|/root/|/workspace";
    let ends_path = |c: char| c.is_whitespace() || "\"'`,;()[]<>|".contains(c);
    let folder = folder.filter(|folder| folder.len() > 1);
    let mut out = String::new();
    let mut kept = 0;
    let mut at = 0;
    let mut before = None;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        let is_drive = c.is_ascii_alphabetic()
            && (rest[1..].starts_with(":\\") || rest[1..].starts_with(":/"));
        // Only a path that stands alone begins at a root.
        let is_free =
            before.is_none_or(|c: char| !c.is_alphanumeric() && !"/\\.-_~@:$".contains(c));
        before = Some(c);
        if !is_free || !(c == '/' || is_drive && !rest[1..].starts_with("://")) {
            at += c.len_utf8();
            continue;
        }
        let path = &rest[..rest.find(ends_path).unwrap_or(rest.len())];
        let below = folder.and_then(|folder| path.strip_prefix(folder));
        let shown = match below {
            Some(below) if below.starts_with(['/', '\\']) && below.len() > 1 => {
                Some(below[1..].to_owned())
            }
            Some(below) if below.trim_end_matches(['.', ':', '/']).is_empty() => {
                Some(format!(".{below}"))
            }
            _ => without_home(path).or_else(|| {
                let is_machines = is_drive || ROOTS.split('|').any(|root| path.starts_with(root));
                let name = path
                    .trim_end_matches(['/', '\\'])
                    .rsplit(['/', '\\'])
                    .next();
                is_machines.then(|| format!("…/{}", name.unwrap_or_default()))
            }),
        };
        if let Some(shown) = shown {
            out.push_str(&text[kept..at]);
            out.push_str(&shown);
            kept = at + path.len();
        }
        at += path.len();
        before = path.chars().next_back();
    }
    if kept == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[kept..]);
    Cow::Owned(out)
}

/// Returns a path with `~` for the home folder that it is in.
fn without_home(path: &str) -> Option<String> {
    const PARENTS: [&str; 3] = ["/home/", "/Users/", "\\Users\\"];
    let drive = usize::from(path.get(1..2) == Some(":")) * 2;
    let path = path.get(drive..)?;
    let rest = PARENTS
        .iter()
        .find_map(|parent| path.strip_prefix(parent))?;
    let name = rest.find(['/', '\\', ':', '.']).unwrap_or(rest.len());
    (name > 0).then(|| format!("~{}", &rest[name..]))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_of_this_machine_are_shortened() {
        for (text, expected) in [
            ("see /home/dev/shop/a.rs", "see ~/shop/a.rs"),
            ("`/Users/ana/x` and /Users/ana", "`~/x` and ~"),
            (r"C:\Users\ana\shop", r"~\shop"),
            ("in /w/shop/src/a.rs: no", "in src/a.rs: no"),
            ("in /w/shop, /w/shopping/a.rs", "in ., /w/shopping/a.rs"),
            ("cd /tmp/x1/log.txt && ls", "cd …/log.txt && ls"),
            (r"D:\builds\17\a.dll", r"…/a.dll"),
            ("GET /api/env, /etc/hosts", "GET /api/env, /etc/hosts"),
            ("https://x.example/tmp/a", "https://x.example/tmp/a"),
            ("src/tmp/a and ./tmp/b", "src/tmp/a and ./tmp/b"),
            ("nothing", "nothing"),
        ] {
            assert_eq!(without_machine_paths(text, Some("/w/shop")), expected);
        }
    }

    #[test]
    fn removes_terminal_sequences() {
        for (input, expected) in [
            ("plain\ttext\nstays", "plain\ttext\nstays"),
            ("\u{1b}[1;31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}[Hgone", "gone"),
            ("\u{9b}31mred", "red"),
            ("\u{1b}]0;window title\u{7}text", "text"),
            ("\u{1b}]8;;http://h/\u{1b}\\link\u{1b}]8;;\u{1b}\\", "link"),
            ("\u{9d}0;title\u{9c}text", "text"),
            ("\u{1b}P1;2|data\u{1b}\\text", "text"),
            ("\u{1b}(Btext", "text"),
            ("\u{1b}ctext", "text"),
            ("\u{1b}=text", "text"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}[31", ""),
            ("a\u{8}b\u{0}c\u{7f}d\u{80}", "abcd"),
            ("\u{1b}é", "é"),
        ] {
            assert_eq!(clean(input), expected, "{input:?}");
        }
    }

    #[test]
    fn an_unterminated_control_string_hides_nothing() {
        assert_eq!(clean("\u{1b}]0;first\nsecond"), "0;first\nsecond");
        assert_eq!(clean("\u{1b}]0;first\u{1b}[1msecond"), "0;firstsecond");
    }

    #[test]
    fn line_ends_become_line_feeds() {
        assert_eq!(
            clean("a\r\nb\rc\u{b}d\u{c}e\u{85}f\u{2028}g\u{2029}h\n"),
            "a\nb\nc\nd\ne\nf\ng\nh\n"
        );
    }

    /// INJ-03, INJ-04.
    #[test]
    fn removes_what_cannot_be_seen() {
        for character in [
            '\u{ad}',
            '\u{200b}',
            '\u{200d}',
            '\u{200e}',
            '\u{202e}',
            '\u{2066}',
            '\u{2069}',
            '\u{2060}',
            '\u{feff}',
            '\u{fe0f}',
            '\u{3164}',
            '\u{e0041}',
            '\u{e007f}',
            '\u{e0100}',
        ] {
            assert_eq!(clean(&format!("a{character}b")), "ab", "{character:?}");
        }
    }

    #[test]
    fn clean_text_is_borrowed() {
        for text in ["", "שלום עולם", "日本語 🚀 é\n\tx", "a\u{a0}b\u{3000}c"] {
            assert!(matches!(clean(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn the_fast_path_agrees_with_the_slow_checks() {
        for character in '\0'..=char::MAX {
            let is_hidden = is_line_end(character) || is_invisible(character);
            let is_kept = matches!(character, '\n' | '\t');
            let expected = is_kept || !(is_hidden || character.is_control());
            assert_eq!(is_plain(character), expected, "{character:?}");
        }
    }

    #[test]
    fn unclean_bytes_are_found_at_every_position() {
        for byte in 0..=0x7f_u8 {
            for position in 0..20 {
                let mut text = "x".repeat(20);
                text.insert(position, char::from(byte));
                let is_clean = is_plain(char::from(byte));
                assert_eq!(
                    matches!(clean(&text), Cow::Borrowed(_)),
                    is_clean,
                    "{text:?}"
                );
            }
        }
    }

    #[test]
    fn one_line_joins_words_with_single_blanks() {
        assert_eq!(
            one_line(" Fix\r\nthe\u{2028}\u{1b}[1m parser\t\u{3000}now \n"),
            "Fix the parser now"
        );
        assert_eq!(one_line("\u{200b}\n"), "");
    }

    /// Text made of characters that the cleaner handles specially.
    fn hostile() -> impl Strategy<Value = String> {
        let parts = prop::sample::select(vec![
            "\u{1b}",
            "[",
            "]",
            "(",
            "\\",
            "\u{7}",
            "\u{9b}",
            "\u{9d}",
            "\u{9c}",
            "31m",
            ";",
            "a",
            "é",
            "\r",
            "\n",
            "\u{85}",
            "\u{200b}",
            "\u{e0041}",
            "\u{200c}",
            "\u{200d}",
            "\u{fe0f}",
            "ی",
            "्",
            "क",
            "❤",
            "👩",
            " ",
        ]);
        prop::collection::vec(parts, 0..40).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn the_result_is_clean(text in prop_oneof![hostile(), any::<String>()]) {
            let cleaned = clean(&text);
            let is_clean = |(place, c)| is_plain(c) || belongs(&cleaned[..place], &cleaned[place..]);
            prop_assert!(cleaned.char_indices().all(is_clean), "{cleaned:?}");
            prop_assert_eq!(clean(&cleaned), cleaned.as_ref());
            let line = one_line(&text);
            prop_assert!(!line.contains(['\n', '\t']) && line.trim() == line);
            prop_assert_eq!(one_line(&line), line);
        }

        #[test]
        fn plain_words_are_kept(words in "[a-zA-Z0-9 .,é]{0,40}") {
            let marked = words.replace(' ', "\u{1b}[1m \u{200b}");
            prop_assert_eq!(clean(&marked), words.as_str());
        }
    }
}
