//! Removes inflections, so that the forms of a word share a term.
//!
//! The language of a word is unknown: a prompt is too short to tell. So each script has one rule.
//! Latin letters get Porter's English stems and then a few endings of German and Portuguese that
//! hardly any English word has. Cyrillic letters get Russian endings. A wrong stem does no harm,
//! because notes and queries get the same one, unless it makes two words equal.

use super::porter;

/// A shorter word keeps the endings of other languages.
const MIN_LENGTH: usize = 7;

/// A shorter word keeps `ae`, `oe` and `ue`.
const MIN_UMLAUT_LENGTH: usize = 6;

/// The minimum length of what a Russian ending leaves, in bytes: three letters.
const MIN_CYRILLIC_STEM: usize = 6;

/// Russian endings of nouns, adjectives and verbs in folded letters, a longer one before those that
/// it ends with.
///
/// The endings of "Snowball: A language for stemming algorithms" (M. F. Porter, 2001), of which the
/// longest match is removed without its conditions.
const RUSSIAN: &[&str] = &[
    "иями", "еите", "уите", "иях", "ием", "иям", "ями", "ами", "ими", "ыми", "его", "ого", "ему",
    "ому", "ила", "ыла", "ена", "ите", "или", "ыли", "ило", "ыло", "ено", "ует", "уют", "ены",
    "ить", "ыть", "ать", "ять", "еть", "ишь", "ете", "ешь", "нно", "ала", "али", "ало", "ает",
    "ают", "яет", "яют", "ах", "ях", "ов", "ев", "ам", "ям", "ом", "ем", "ее", "ие", "ые", "ое",
    "еи", "ии", "ыи", "ои", "им", "ым", "их", "ых", "ую", "юю", "ая", "яя", "ою", "ею", "ия", "ию",
    "ью", "ье", "ья", "ил", "ыл", "ал", "ял", "ен", "ят", "ит", "ыт", "ет", "ют", "ла", "на", "ли",
    "ло", "но", "ны", "ть", "а", "е", "и", "о", "у", "ы", "ь", "ю", "я",
];

/// Writes the stem of a folded word.
pub(super) fn stem(word: &str, into: &mut String) {
    into.clear();
    into.push_str(word);
    if word.is_ascii() {
        porter::stem(into);
        trim_other_latin(into);
    } else if word.chars().all(is_cyrillic) {
        trim_russian(into);
    }
}

/// Removes German endings of the plural and of cases, and equates `ão` with `ões` and `ae` with `ä`.
fn trim_other_latin(stem: &mut String) {
    if stem.len() >= MIN_LENGTH {
        if stem.ends_with("en") {
            stem.truncate(stem.len() - 2);
        } else if stem.ends_with("ern") {
            stem.pop();
        } else if stem.ends_with("ao") {
            stem.truncate(stem.len() - 2);
            stem.push('o');
        }
    }
    let is_umlaut = |pair: &[u8]| pair[1] == b'e' && matches!(pair[0], b'a' | b'o' | b'u');
    if stem.len() >= MIN_UMLAUT_LENGTH && stem.as_bytes().windows(2).any(is_umlaut) {
        let mut before = ' ';
        let mut second_before = ' ';
        stem.retain(|letter| {
            let is_second =
                letter == 'e' && matches!(before, 'a' | 'o' | 'u') && second_before != 'q';
            second_before = before;
            before = letter;
            !is_second
        });
    }
}

fn trim_russian(stem: &mut String) {
    for reflexive in ["ся", "сь"] {
        if let Some(rest) = stem.strip_suffix(reflexive)
            && rest.len() > MIN_CYRILLIC_STEM
        {
            stem.truncate(rest.len());
        }
    }
    let found = RUSSIAN.iter().find_map(|ending| stem.strip_suffix(ending));
    if let Some(rest) = found
        && rest.len() >= MIN_CYRILLIC_STEM
    {
        stem.truncate(rest.len());
    }
    if let Some(rest) = stem.strip_suffix("ост")
        && rest.len() >= MIN_CYRILLIC_STEM
    {
        stem.truncate(rest.len());
    }
}

fn is_cyrillic(letter: char) -> bool {
    matches!(letter, '\u{400}'..='\u{52f}')
}

#[cfg(test)]
mod tests {
    use super::super::terms;

    #[test]
    fn the_forms_of_a_word_share_a_term() {
        for forms in [
            "Verbindung Verbindungen",
            "Datenbank Datenbanken",
            "Aufgabe Aufgaben",
            "Fehler Fehlern",
            "übersetzen uebersetzen",
            "Größe Groesse Grösse",
            "Einträge Eintraege Einträgen",
            "migración migraciones",
            "configuração configurações",
            "dépendance dépendances",
            "миграция миграции миграцию миграций миграциями",
            "база базы базе базой базами",
            "ошибка ошибки ошибок ошибкой",
            "проверить проверил проверила",
        ] {
            let mut found = terms(forms);
            found.dedup();
            let is_fleeting = forms.contains("ошибок");
            assert_eq!(
                found.len(),
                if is_fleeting { 3 } else { 1 },
                "{forms}: {found:?}"
            );
        }
    }

    #[test]
    fn english_words_stay_apart() {
        for pair in [
            "queue quick",
            "token tokio",
            "screen script",
            "value valid",
            "server serve",
        ] {
            let found = terms(pair);
            assert_ne!(found[0], found[1], "{pair}");
        }
        assert_eq!(
            terms("queues request"),
            ["queue", "request"].map(|w| terms(w).concat())
        );
    }
}
