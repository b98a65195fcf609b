//! Tells the general cues of an order to write or change something from the content that it is about: "add to
//! the guide that new developers never push to main".

use super::Judged;
use crate::phrases::{Words, is_in};

/// Beginnings of such orders.
const MAKING: &str = "\
    add|write|document|mention|create|rename|replace|implement|generate|build|put|describe|draft|record|change|extend|\
    update|refactor|convert|introduce|configure|set up|schreib|schreibe|füge|erstelle|dokumentiere|ergänze|ändere|ersetze|\
    benenne|baue|ajoute|écris|crée|documente|remplace|renomme|añade|agrega|escribe|crea|documenta|reemplaza|\
    adicione|escreva|crie|aggiungi|scrivi|voeg|schrijf|dodaj|napisz|dopisz|stwórz|zamień|добавь|напиши|создай";

/// Polite beginnings.
const POLITE: &str =
    "can you|could you|would you|will you|please|kannst du|könntest du|peux-tu|puedes|możesz";

/// Words that begin the content.
const CONTENT: &str = "\
    that|which|who|whose|where|saying|stating|dass|wonach|que|qui|che|dat|że|która|który|które|что|который|которая";

/// Adverbs and prepositions that say how the order is carried out: "always with an options object".
const LASTING: &str = "always|immer|stets|toujours|siempre|sempre|altijd|zawsze|всегда";
const MANNER: &str = "with|as|via|using|through|by|mit|als|avec|con|com|met|z|ze|с";

/// Returns whether a sentence orders to write or change something.
pub(super) fn is_order(judged: &Judged<'_>) -> bool {
    judged.first().after(POLITE).begin(MAKING)
}

/// Returns whether such an order holds in general: by a cue that is neither in its content nor in its manner.
pub(super) fn is_general(judged: &Judged<'_>) -> bool {
    let cues = judged.cues;
    let begins_content = |pair: &[&str]| {
        is_in(CONTENT, pair[0])
            || pair[0] == "to" && pair.get(1).is_some_and(|next| is_in(cues.order, next))
    };
    let mut is_content = false;
    judged.clauses.iter().enumerate().any(|(place, clause)| {
        let words: Vec<&str> = clause.iter().collect();
        let end = (0..words.len()).find(|at| begins_content(&words[*at..]));
        let told = Words::new(&words[..end.unwrap_or(words.len())].join(" "));
        let is_manner = told.begin(LASTING) && told.after(LASTING).begin(MANNER);
        // In languages whose orders have the adverb behind the verb, it may be in the first clause.
        let has_adverb = (place > 0 || cues.before_adverb.is_empty())
            && !is_manner
            && judged.has_directing_adverb(&told);
        let is_cue = !is_content
            && (has_adverb || told.contain(cues.general) && !judged.words.contain(cues.failing));
        is_content |= end.is_some();
        is_cue
    })
}
