//! How much a word tells, also in a store of few notes.
//!
//! The idf of a word among five notes says little: each word that a note has looks common, each that
//! none has looks rare. So what is typical of notes about programs stands in for the notes that a
//! small store does not have yet. Its share falls as the store grows.

use std::{collections::HashSet, sync::LazyLock};

use anamnesis_text::terms::terms;

use super::{expected_idf, idf};

/// For how many notes the typical frequencies stand.
const TYPICAL_NOTES: f32 = 30.0;

/// The share of notes that have a common word, and that have any other word.
const COMMON: f32 = 0.3;
const UNCOMMON: f32 = 0.02;

/// Words that prompts and notes about any program have.
const COMMON_WORDS: &str = "\
    add apply ask avoid build call change check clean close commit compare convert copy create \
    debug delete describe do document edit enable disable ensure explain extract fail find finish \
    fix follow generate get give handle help implement import improve include install keep let \
    list load look make mean merge miss move need open parse pass print push pull put read \
    refactor remove rename replace report return review rewrite run save say search see send set \
    show simplify skip sort split start stop store support take tell test think try turn \
    understand update upgrade use verify want work wrap write \
    api app arg argument branch bug case class code command comment config configuration \
    component content data default dependency description detail directory doc docs \
    documentation end entry environment error example failure feature field file folder format \
    function git header idea implementation input instance interface issue item key language \
    library line link log logic message method mode module name number object option output \
    package page parameter part path plan point problem process project prompt question readme \
    reason repo repository request response result root rule script section server setting setup \
    source spec state status step string structure style suite table tag task template text \
    thing time todo tool type user value variable version view way warning word \
    able all another available bad better big both broken correct current different each empty \
    existing first full general good helpful last least local main many missing more most \
    multiple new next now old only other possible public private ready real right same several \
    simple single slow small still sure two three unused valid whole wrong \
    after again also at before by can don doesn didn isn won for from how in into instead like \
    not of on one out over so than then there through too up with without yet here just should \
    e i s t";

static COMMON_TERMS: LazyLock<HashSet<String>> =
    LazyLock::new(|| terms(COMMON_WORDS).into_iter().collect());

/// Returns whether a term says little in any store.
pub(super) fn is_common(term: &str) -> bool {
    COMMON_TERMS.contains(term)
}

/// Returns the share of the typical frequencies among so many notes, from 1 to 0.
#[expect(clippy::cast_precision_loss, reason = "a count of notes")]
pub(super) fn typical_share(notes: usize) -> f32 {
    TYPICAL_NOTES / (notes as f32 + TYPICAL_NOTES)
}

/// Returns for how many notes the typical frequencies stand beside so many.
pub(super) fn typical_notes(notes: usize) -> f32 {
    TYPICAL_NOTES * typical_share(notes)
}

/// Returns the idf of a term in `doc_freq` of so many notes, blended with the typical one.
#[expect(clippy::cast_precision_loss, reason = "a count of notes")]
pub(super) fn rarity(notes: usize, doc_freq: u32, is_common: bool) -> f32 {
    let share = typical_share(notes);
    let typical = TYPICAL_NOTES * if is_common { COMMON } else { UNCOMMON };
    let (all, having) = (notes as f32 + TYPICAL_NOTES, doc_freq as f32 + typical);
    (1.0 - share) * idf(notes, doc_freq) + share * expected_idf(all, having)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_small_store_a_matched_word_is_not_common_because_one_note_has_it() {
        let name = rarity(1, 1, false) / rarity(1, 0, false);
        assert!(name > 0.7, "{name}");
        assert!(is_common("test") && is_common("chang") && !is_common("vercel"));
        assert!(rarity(1, 0, true) < 0.6 * rarity(1, 1, false));
    }

    #[test]
    fn in_a_large_store_its_own_frequencies_count() {
        for (doc_freq, is_common) in [(0, false), (1, false), (300, true), (300, false)] {
            let own = idf(3000, doc_freq);
            let blended = rarity(3000, doc_freq, is_common);
            assert!((own - blended).abs() < 0.02 * own, "{own} {blended}");
        }
    }
}
