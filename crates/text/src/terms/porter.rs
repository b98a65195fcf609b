//! Porter's stemmer (M. F. Porter, "An algorithm for suffix stripping", 1980), as in FTS5:
//! `connected`, `connecting` and `connection` have one stem.
//!
//! It gains four points of nDCG over no stemming in our measurement, as much as Porter2. It stems
//! any word of ASCII letters and digits. Words of other languages may get a wrong stem, but the
//! index and the query get the same one.

/// Longer words are not English.
const MAX_LENGTH: usize = 64;

/// A suffix and its replacement.
type Replacement = (&'static str, &'static str);

/// Suffixes of step 2 by their last letter, replaced where m > 0. A longer suffix comes before the
/// suffixes that it ends with.
fn step_2_suffixes(last: u8) -> &'static [Replacement] {
    match last {
        b'i' => &[
            ("biliti", "ble"),
            ("entli", "ent"),
            ("ousli", "ous"),
            ("aliti", "al"),
            ("iviti", "ive"),
            ("enci", "ence"),
            ("anci", "ance"),
            ("logi", "log"),
            ("alli", "al"),
            ("bli", "ble"),
            ("eli", "e"),
        ],
        b'l' => &[("ational", "ate"), ("tional", "tion")],
        b'm' => &[("alism", "al")],
        b'n' => &[("ization", "ize"), ("ation", "ate")],
        b'r' => &[("izer", "ize"), ("ator", "ate")],
        b's' => &[("iveness", "ive"), ("fulness", "ful"), ("ousness", "ous")],
        _ => &[],
    }
}

/// Suffixes of step 3 by their last letter, replaced where m > 0.
fn step_3_suffixes(last: u8) -> &'static [Replacement] {
    match last {
        b'e' => &[("icate", "ic"), ("ative", ""), ("alize", "al")],
        b'i' => &[("iciti", "ic")],
        b'l' => &[("ical", "ic"), ("ful", "")],
        b's' => &[("ness", "")],
        _ => &[],
    }
}

/// Suffixes of step 4 by their last letter, removed where m > 1.
fn step_4_suffixes(last: u8) -> &'static [&'static str] {
    match last {
        b'c' => &["ic"],
        b'e' => &["ance", "ence", "able", "ible", "ate", "ive", "ize"],
        b'i' => &["iti"],
        b'l' => &["al"],
        b'm' => &["ism"],
        b'n' => &["ion"],
        b'r' => &["er"],
        b's' => &["ous"],
        b't' => &["ement", "ment", "ant", "ent"],
        b'u' => &["ou"],
        _ => &[],
    }
}

/// Replaces a lower-case word by its stem. Words that are shorter than three characters, or that
/// have characters other than ASCII letters and digits, are unchanged.
pub(super) fn stem(word: &mut String) {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    if !(3..=MAX_LENGTH).contains(&word.len()) || !word.bytes().all(is_plain) {
        return;
    }
    step_1a(word);
    step_1b(word);
    if let Some(before) = word.strip_suffix('y')
        && has_vowel(before)
    {
        replace(word, 1, "i");
    }
    for suffixes in [step_2_suffixes, step_3_suffixes] {
        let mut suffixes = suffixes(last(word)).iter();
        let found = suffixes.find(|(suffix, _)| word.ends_with(suffix));
        if let Some((suffix, replacement)) = found
            && measure(without_suffix(word, suffix.len())) > 0
        {
            replace(word, suffix.len(), replacement);
        }
    }
    let mut suffixes = step_4_suffixes(last(word)).iter();
    if let Some(suffix) = suffixes.find(|suffix| word.ends_with(**suffix)) {
        let before = without_suffix(word, suffix.len());
        if measure(before) > 1 && (*suffix != "ion" || before.ends_with(['s', 't'])) {
            replace(word, suffix.len(), "");
        }
    }
    if let Some(before) = word.strip_suffix('e') {
        let measure = measure(before);
        if measure > 1 || (measure == 1 && !ends_in_cvc(before)) {
            replace(word, 1, "");
        }
    }
    if word.ends_with("ll") && measure(word) > 1 {
        replace(word, 1, "");
    }
}

fn step_1a(word: &mut String) {
    if word.ends_with("sses") || word.ends_with("ies") {
        replace(word, 2, "");
    } else if word.ends_with('s') && !word.ends_with("ss") {
        replace(word, 1, "");
    }
}

fn step_1b(word: &mut String) {
    if let Some(before) = word.strip_suffix("eed") {
        if measure(before) > 0 {
            replace(word, 1, "");
        }
        return;
    }
    let suffix = ["ed", "ing"]
        .into_iter()
        .find(|suffix| word.ends_with(suffix));
    let Some(suffix) = suffix.filter(|suffix| has_vowel(without_suffix(word, suffix.len()))) else {
        return;
    };
    replace(word, suffix.len(), "");
    // Not of Porter: `queued` has the stem of `queue`, which keeps its `e`.
    let keeps_e = measure(word) == 0 && word.ends_with('u');
    if keeps_e || word.ends_with("at") || word.ends_with("bl") || word.ends_with("iz") {
        word.push('e');
    } else if ends_in_double_consonant(word) && !word.ends_with(['l', 's', 'z']) {
        replace(word, 1, "");
    } else if measure(word) == 1 && ends_in_cvc(word) {
        word.push('e');
    }
}

/// Returns the last letter, by which the suffixes are grouped; most words have no suffix in its
/// group.
fn last(word: &str) -> u8 {
    word.as_bytes().last().copied().unwrap_or_default()
}

/// Returns the word without its last `length` letters.
fn without_suffix(word: &str, length: usize) -> &str {
    word.get(..word.len().saturating_sub(length))
        .unwrap_or_default()
}

fn replace(word: &mut String, length: usize, replacement: &str) {
    word.truncate(word.len().saturating_sub(length));
    word.push_str(replacement);
}

/// Returns for each letter whether it is a consonant. `y` is one at the start and after a vowel.
fn consonants(word: &str) -> impl Iterator<Item = bool> {
    let mut was_consonant = false;
    word.bytes().map(move |letter| {
        was_consonant = match letter {
            b'a' | b'e' | b'i' | b'o' | b'u' => false,
            b'y' => !was_consonant,
            _ => true,
        };
        was_consonant
    })
}

/// Returns Porter's measure m: how often a vowel is followed by a consonant.
fn measure(word: &str) -> usize {
    let mut was_vowel = false;
    let mut count = 0;
    for is_consonant in consonants(word) {
        count += usize::from(was_vowel && is_consonant);
        was_vowel = !is_consonant;
    }
    count
}

fn has_vowel(word: &str) -> bool {
    consonants(word).any(|is_consonant| !is_consonant)
}

fn ends_in_double_consonant(word: &str) -> bool {
    let [.., before, last] = word.as_bytes() else {
        return false;
    };
    before == last && consonants(word).last() == Some(true)
}

/// Returns whether a word ends in consonant, vowel, consonant (Porter's *o), and the last is not w,
/// x or y: `hop`, but not `snow`.
fn ends_in_cvc(word: &str) -> bool {
    let mut last = [false; 3];
    for is_consonant in consonants(word) {
        last = [last[1], last[2], is_consonant];
    }
    word.len() > 2 && last == [true, false, true] && !word.ends_with(['w', 'x', 'y'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stemmed(word: &str) -> String {
        let mut word = word.to_owned();
        stem(&mut word);
        word
    }

    #[test]
    fn suffixes_are_removed() {
        for (words, expected) in [
            (
                "connect connects connected connecting connection connections",
                "connect",
            ),
            ("cache caches cached caching", "cach"),
            ("queue queues queued queuing", "queue"),
            ("cue cued suing", "cue cue sue"),
            ("classes class", "class"),
            ("query queries queried", "queri"),
            ("retry retries retried", "retri"),
            ("ponies ties tie", "poni ti tie"),
            ("agreed agree", "agre"),
            ("feed", "feed"),
            ("matting matted mat", "mat"),
            ("mating mated", "mate"),
            ("meeting", "meet"),
            ("hopping hopped hop", "hop"),
            ("hoping hoped hope", "hope"),
            ("falling fall", "fall"),
            ("failing filed", "fail file"),
            ("failure", "failur"),
            ("conflated troubled sized", "conflat troubl size"),
            ("happy sky", "happi sky"),
            ("relational conditional rational", "relat condit ration"),
            ("digitizer initialization initializer", "digit initi initi"),
            ("validator validation validate valid", "valid"),
            ("dependency dependent", "depend"),
            ("radically differently analogously", "radic differ analog"),
            ("usefulness hopefulness callousness", "us hope callous"),
            ("sensitivity formality capability", "sensit formal capabl"),
            (
                "triplicate formative formalize electricity electrical goodness",
                "triplic form formal electr electr good",
            ),
            (
                "revival allowance inference airliner gyroscopic adjustable defensible irritant",
                "reviv allow infer airlin gyroscop adjust defens irrit",
            ),
            (
                "replacement adjustment dependent adoption communism activate effective",
                "replac adjust depend adopt commun activ effect",
            ),
            (
                "probate rate cease controller roll",
                "probat rate ceas control roll",
            ),
            ("migrations migrate migrating", "migrat"),
            ("authentication authenticate", "authent"),
            ("sing ring bed", "sing ring bed"),
            ("technology", "technolog"),
            ("possibly", "possibl"),
        ] {
            let stems: Vec<String> = words.split(' ').map(stemmed).collect();
            let expected: Vec<&str> = expected.split(' ').collect();
            for (number, stem) in stems.iter().enumerate() {
                let wanted = expected.get(number).or(expected.last()).unwrap();
                assert_eq!(stem, wanted, "{words}");
            }
        }
    }

    #[test]
    fn other_words_are_unchanged() {
        for word in ["", "s", "is", "größen", "数据", "αβγs"] {
            assert_eq!(stemmed(word), word);
        }
        let long = "a".repeat(MAX_LENGTH) + "s";
        assert_eq!(stemmed(&long), long);
    }
}
