//! Joiners and selectors that belong to a script or an emoji, and emoji.
//!
//! Most invisible characters can hide text and are removed. These are text: Persian and Indic words are
//! spelled with joiners, and emoji are sequences of characters. The rules are those of UAX 31 (contexts
//! A1, B and C) and UTS 51.

const NON_JOINER: char = '\u{200c}';
const JOINER: char = '\u{200d}';

/// The borders of the ranges of Extended_Pictographic (Unicode 16): the first character of a range,
/// then the first one after it.
const PICTOGRAPHS: [u32; 156] = [
    0xa9, 0xaa, 0xae, 0xaf, 0x203c, 0x203d, 0x2049, 0x204a, 0x2122, 0x2123, 0x2139, 0x213a, 0x2194,
    0x219a, 0x21a9, 0x21ab, 0x231a, 0x231c, 0x2328, 0x2329, 0x2388, 0x2389, 0x23cf, 0x23d0, 0x23e9,
    0x23f4, 0x23f8, 0x23fb, 0x24c2, 0x24c3, 0x25aa, 0x25ac, 0x25b6, 0x25b7, 0x25c0, 0x25c1, 0x25fb,
    0x25ff, 0x2600, 0x2606, 0x2607, 0x2613, 0x2614, 0x2686, 0x2690, 0x2706, 0x2708, 0x2713, 0x2714,
    0x2715, 0x2716, 0x2717, 0x271d, 0x271e, 0x2721, 0x2722, 0x2728, 0x2729, 0x2733, 0x2735, 0x2744,
    0x2745, 0x2747, 0x2748, 0x274c, 0x274d, 0x274e, 0x274f, 0x2753, 0x2756, 0x2757, 0x2758, 0x2763,
    0x2768, 0x2795, 0x2798, 0x27a1, 0x27a2, 0x27b0, 0x27b1, 0x27bf, 0x27c0, 0x2934, 0x2936, 0x2b05,
    0x2b08, 0x2b1b, 0x2b1d, 0x2b50, 0x2b51, 0x2b55, 0x2b56, 0x3030, 0x3031, 0x303d, 0x303e, 0x3297,
    0x3298, 0x3299, 0x329a, 0x1f000, 0x1f100, 0x1f10d, 0x1f110, 0x1f12f, 0x1f130, 0x1f16c, 0x1f172,
    0x1f17e, 0x1f180, 0x1f18e, 0x1f18f, 0x1f191, 0x1f19b, 0x1f1ad, 0x1f1e6, 0x1f201, 0x1f210,
    0x1f21a, 0x1f21b, 0x1f22f, 0x1f230, 0x1f232, 0x1f23b, 0x1f23c, 0x1f240, 0x1f249, 0x1f3fb,
    0x1f400, 0x1f53e, 0x1f546, 0x1f650, 0x1f680, 0x1f700, 0x1f774, 0x1f780, 0x1f7d5, 0x1f800,
    0x1f80c, 0x1f810, 0x1f848, 0x1f850, 0x1f85a, 0x1f860, 0x1f888, 0x1f890, 0x1f8ae, 0x1f900,
    0x1f90c, 0x1f93b, 0x1f93c, 0x1f946, 0x1f947, 0x1fb00, 0x1fc00, 0x1fffe,
];

/// The viramas: the characters of combining class 9, which join an Indic letter to the next one.
const VIRAMAS: [u32; 63] = [
    0x94d, 0x9cd, 0xa4d, 0xacd, 0xb4d, 0xbcd, 0xc4d, 0xccd, 0xd3b, 0xd3c, 0xd4d, 0xdca, 0xe3a,
    0xeba, 0xf84, 0x1039, 0x103a, 0x1714, 0x1715, 0x1734, 0x17d2, 0x1a60, 0x1b44, 0x1baa, 0x1bab,
    0x1bf2, 0x1bf3, 0x2d7f, 0xa806, 0xa82c, 0xa8c4, 0xa953, 0xa9c0, 0xaaf6, 0xabed, 0x10a3f,
    0x11046, 0x11070, 0x1107f, 0x110b9, 0x11133, 0x11134, 0x111c0, 0x11235, 0x112ea, 0x1134d,
    0x11442, 0x114c2, 0x115bf, 0x1163f, 0x116b6, 0x1172b, 0x11839, 0x1193d, 0x1193e, 0x119e0,
    0x11a34, 0x11a47, 0x11a99, 0x11c3f, 0x11d44, 0x11d45, 0x11d97,
];

/// How many emoji modifiers and selectors are skipped to find the emoji before them.
const MAX_MODIFIERS: usize = 2;

/// Returns whether a joiner or selector is a part of the text around it. `after` starts with it.
pub(crate) fn belongs(before: &str, after: &str) -> bool {
    let mut rest = after.chars();
    let (Some(joiner), Some(previous)) = (rest.next(), before.chars().next_back()) else {
        return false;
    };
    let next = rest.next();
    match joiner {
        NON_JOINER => next.is_some_and(|next| {
            is_cursive(previous) && is_cursive(next) || is_virama(previous) && is_letter(next)
        }),
        JOINER => {
            // Bengali joins RA and YA by a joiner before the virama.
            is_virama(previous)
                || is_letter(previous) && next.is_some_and(is_virama)
                || ends_with_emoji(before) && next.is_some_and(is_emoji)
        }
        '\u{fe0e}' | '\u{fe0f}' => is_emoji(previous) || is_keycap(previous, next),
        // Mongolian variation selectors.
        '\u{180b}'..='\u{180d}' | '\u{180f}' => is_mongolian(previous),
        _ => false,
    }
}

/// Returns whether a character is a joiner or selector that can be text. Matching ignores it.
pub(crate) fn is_joiner(character: char) -> bool {
    matches!(
        character,
        NON_JOINER | JOINER | '\u{fe0e}' | '\u{fe0f}' | '\u{180b}'..='\u{180d}' | '\u{180f}'
    )
}

/// Returns whether a character is an emoji or can be shown as one.
pub(crate) fn is_emoji(character: char) -> bool {
    PICTOGRAPHS.partition_point(|border| *border <= u32::from(character)) % 2 == 1
}

/// Returns whether a character is one of the two letters of a flag.
pub(crate) fn is_flag_letter(character: char) -> bool {
    matches!(character, '\u{1f1e6}'..='\u{1f1ff}')
}

fn ends_with_emoji(text: &str) -> bool {
    let is_modifier = |c: &char| matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}');
    let mut last = text.chars().rev().take(MAX_MODIFIERS + 1);
    last.find(|c| !is_modifier(c)).is_some_and(is_emoji)
}

/// Returns whether this is a keycap such as `1️⃣`, which ends with U+20E3.
fn is_keycap(previous: char, next: Option<char>) -> bool {
    matches!(previous, '0'..='9' | '#' | '*') && next == Some('\u{20e3}')
}

fn is_virama(character: char) -> bool {
    VIRAMAS.binary_search(&u32::from(character)).is_ok()
}

/// Returns whether a character is a letter of a script that may have viramas.
fn is_letter(character: char) -> bool {
    character >= '\u{900}' && character.is_alphabetic()
}

/// Returns whether a character is a letter, or a mark on one, of a script whose letters join: Arabic,
/// Syriac, N'Ko, Mandaic, Mongolian, Phags-pa, Adlam and others.
fn is_cursive(character: char) -> bool {
    let is_in_cursive_script = matches!(
        character,
        '\u{620}'..='\u{77f}'
            | '\u{7ca}'..='\u{7ea}'
            | '\u{840}'..='\u{8ff}'
            | '\u{a840}'..='\u{a871}'
            | '\u{10ac0}'..='\u{10aff}'
            | '\u{10b80}'..='\u{10baf}'
            | '\u{10d00}'..='\u{10d23}'
            | '\u{10f30}'..='\u{10fcb}'
            | '\u{1e900}'..='\u{1e943}'
    );
    is_in_cursive_script && character.is_alphabetic() || is_mongolian(character)
}

fn is_mongolian(character: char) -> bool {
    matches!(character, '\u{1820}'..='\u{1878}' | '\u{1880}'..='\u{18aa}')
}

#[cfg(test)]
mod tests {
    use crate::clean::clean;

    use super::*;

    #[test]
    fn the_tables_are_sorted() {
        assert!(PICTOGRAPHS.is_sorted() && VIRAMAS.is_sorted());
        for emoji in ['❤', '👩', '💻', '🚀', '⚕', '🏳', '🫠', '™'] {
            assert!(is_emoji(emoji), "{emoji}");
        }
        for other in [
            'a',
            '1',
            '✓',
            'ä',
            '字',
            '\u{1f3fb}',
            '\u{1f1e6}',
            '\u{fe0f}',
        ] {
            assert!(!is_emoji(other), "{other:?}");
        }
    }

    #[test]
    fn joiners_of_a_script_or_an_emoji_stay() {
        for text in [
            // Persian: "I want", "the books".
            "می\u{200c}خواهم",
            "کتاب\u{200c}ها",
            "خانه\u{651}\u{200c}ها",
            // Devanagari: half forms with and without a joiner.
            "क्\u{200d}ष",
            "क्\u{200c}ष",
            "र्\u{200d}",
            // Sinhala "Sri", Bengali "RAB", Malayalam.
            "ශ්\u{200d}රී",
            "র\u{200d}্যাব",
            "ന്\u{200d}",
            // Emoji.
            "❤\u{fe0f}",
            "☎\u{fe0e}",
            "👩\u{200d}💻",
            "👩🏽\u{200d}⚕\u{fe0f}",
            "❤\u{fe0f}\u{200d}🔥",
            "🏳\u{fe0f}\u{200d}🌈",
            "👨\u{200d}👩\u{200d}👧",
            "1\u{fe0f}\u{20e3} #\u{fe0f}\u{20e3}",
            // Mongolian.
            "ᠠ\u{180b}",
        ] {
            assert_eq!(clean(text), text, "{text:?}");
        }
    }

    #[test]
    fn other_joiners_are_removed() {
        for (text, expected) in [
            ("pass\u{200c}word a\u{200d}b", "password ab"),
            ("пар\u{200c}оль", "пароль"),
            ("\u{200c}می\u{200c}", "می"),
            ("می\u{200c}\u{200c}خواهم", "می\u{200c}خواهم"),
            ("می\u{200c} خواهم", "می خواهم"),
            ("می\u{200d}خواهم", "میخواهم"),
            ("क\u{200d}ष क\u{200c}ष", "कष कष"),
            ("a\u{fe0f}1\u{fe0f}2 字\u{fe00}", "a12 字"),
            ("❤\u{fe0f}\u{fe0f}\u{fe0e}", "❤\u{fe0f}"),
            ("👩\u{200d}", "👩"),
            ("👩\u{200d}\u{200d}💻", "👩\u{200d}💻"),
            ("👩\u{200d}x\u{200d}💻", "👩x💻"),
            ("🏴\u{e0067}\u{e007f}", "🏴"),
        ] {
            assert_eq!(clean(text), expected, "{text:?}");
            assert_eq!(clean(expected), expected, "{text:?}");
        }
    }
}
