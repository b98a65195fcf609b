//! Case and accent folding.
//!
//! This is Unicode's compatibility decomposition for the scripts that use accents (Latin, Greek,
//! Cyrillic) and for full-width forms. `ß` is `ss`. Letters that do not decompose (`ø`,
//! `ł`) are kept, and so are kana and Hangul syllables, because people search for the syllable.

use crate::joiner::is_joiner;

/// The base letters of U+00C0 to U+024F; a dot marks a character that is its own base.
const LATIN: &[u8; 400] = b"\
aaaaaa.ceeeeiiii.nooooo..uuuuy..aaaaaa.ceeeeiiii.nooooo..uuuuy.y\
aaaaaaccccccccdd..eeeeeeeeeegggggggghh..iiiiiiiii...jjkk.llllll.\
...nnnnnn...oooooo..rrrrrrsssssssstttt..uuuuuuuuuuuuwwyyyzzzzzzs\
................................oo.............uu...............\
.............aaiioouuuuuuuuuu.aaaa....ggkkoooo..j...gg..nnaa....\
aaaaeeeeiiiioooorrrruuuusstt..hh......aaeeooooooooyy............\
................";

/// The base letters of U+1E00 to U+1EFF, in the same format.
const LATIN_ADDITIONAL: &[u8; 256] = b"\
aabbbbbbccddddddddddeeeeeeeeeeffgghhhhhhhhhhiiiikkkkkkllllllllmm\
mmmmnnnnnnnnoooooooopppprrrrrrrrssssssssssttttttttuuuuuuuuuuvvvv\
wwwwwwwwwwxxxxyyzzzzzzhtwy.s....aaaaaaaaaaaaaaaaaaaaaaaaeeeeeeee\
eeeeeeeeiiiioooooooooooooooooooooooouuuuuuuuuuuuuuyyyyyyyy......";

/// Returns whether a character is a combining mark on the letter before it, or a joiner.
pub(super) fn is_mark(character: char) -> bool {
    matches!(character, '\u{300}'..='\u{36f}') || is_joiner(character)
}

/// Appends the folded form of a character.
pub(super) fn fold(character: char, into: &mut String) {
    if character.is_ascii() {
        into.push(character.to_ascii_lowercase());
    } else if let Some(base) = base(character) {
        into.push(base);
    } else if let 'ß' | 'ẞ' = character {
        into.push_str("ss");
    } else {
        let lower = character.to_lowercase().filter(|lower| !is_mark(*lower));
        into.extend(lower.map(|lower| base(lower).unwrap_or(lower)));
    }
}

/// Returns the lower-case base letter of an accented character, or the plain form of a full-width
/// one.
fn base(character: char) -> Option<char> {
    let code = u32::from(character);
    let latin = |table: &[u8], first: u32| {
        let place = usize::try_from(code.checked_sub(first)?).ok()?;
        table.get(place).filter(|base| **base != b'.').copied()
    };
    match character {
        '\u{c0}'..='\u{24f}' => latin(LATIN, 0xc0).map(char::from),
        '\u{1e00}'..='\u{1eff}' => latin(LATIN_ADDITIONAL, 0x1e00).map(char::from),
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(code - 0xfee0).map(|plain| plain.to_ascii_lowercase())
        }
        'ά' => Some('α'),
        'έ' => Some('ε'),
        'ή' => Some('η'),
        'ί' | 'ϊ' | 'ΐ' => Some('ι'),
        'ό' => Some('ο'),
        'ύ' | 'ϋ' | 'ΰ' => Some('υ'),
        'ώ' => Some('ω'),
        'ς' => Some('σ'),
        'й' => Some('и'),
        'ё' => Some('е'),
        'ї' => Some('і'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn case_and_accents_are_folded() {
        for (written, expected) in [
            ("Größe GROẞE", "grosse grosse"),
            ("ÀÉÎÕÜÇÑ", "aeioucn"),
            ("naïve café", "naive cafe"),
            ("Žluťoučký kůň", "zlutoucky kun"),
            ("Łódź Øre æ", "łodz øre æ"),
            ("Tiếng Việt Ẁẽ", "tieng viet we"),
            ("İstanbul ﬀ", "istanbul ﬀ"),
            ("Ελληνικά ΣΟΦΌΣ ς", "ελληνικα σοφοσ σ"),
            ("Ёлка Йод Київ", "елка иод киів"),
            ("ＡＢＣ１２３", "abc123"),
            ("ががカ 데이터 数", "ががカ 데이터 数"),
        ] {
            let mut folded = String::new();
            for character in written.chars() {
                fold(character, &mut folded);
            }
            assert_eq!(folded, expected, "{written}");
        }
    }
}
