//! The phrases that mark what a sentence adopts and what it gives up.
//!
//! Phrases are compared with folded words: lower case, without accents, `don't` as `don t`.

use super::{
    BTreeSet, Cause, Gap, HashMap, HashSet, LazyLock, MAX_REACH, MAX_SPAN, Range, Ruling, Span,
    WordToken,
};

/// What a phrase marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mark {
    /// What follows is adopted.
    Adopted,
    /// What follows is given up.
    GivenUp,
    /// What follows is denied.
    Denied,
    /// The clause is about something that has ended.
    Ceased,
    /// Something changes. What follows up to "to" is what changes.
    Change,
    /// What follows up to "to" or "by" is given up.
    Replace,
    /// The sentence is about how it is from now on.
    Now,
}

const PHRASES: [(Mark, &str); 7] = [
    (
        Mark::Adopted,
        "use|using|uses|we use|switch to|switched to|switching to|move to|moved to|moving to|\
         migrate to|migrated to|migrating to|go with|going with|went with|go for|adopt|adopted|\
         adopting|prefer|choose|chose|chosen|pick|picked|stick with|settle on|settled on|\
         stay with|rely on|standardize on|standardise on|indent with|back to|in favor of|\
         in favour of|opt for|opted for|decided on|verwende|verwenden|verwendet|nutze|nutzen|nutzt|benutze|\
         benutzen|nimm|nehmen|nehmen wir|wechseln zu|wechseln auf|wechsle zu|umsteigen auf|\
         steigen auf|setzen auf|bleiben bei|usa|usar|usamos|usaremos|usad|utiliza|utilizar|\
         utilizamos|preferimos|elegimos|pasar a|pasamos a|pasemos a|cambiamos a|cambiar a|\
         migramos a|migrar a|utilise|utiliser|utilisons|utilisez|on passe a|passe a|passer a|\
         passons a|migrer vers|migrons vers|prendre|prenons|choisi|use o|use a|usando|mudar para|\
         mudamos para|passar para|passamos para|migrar para|migramos para|adotar|adotamos|\
         используем|используй|использовать|используйте|переходим на|перешли на|перейти на|\
         переезжаем на|переехали на|берем|выбрали|usiamo|usare|passiamo a",
    ),
    (
        Mark::GivenUp,
        "instead of|rather than|in place of|in lieu of|stop using|drop|dropped|dropping|ditch|\
         ditched|ditching|remove|removed|removing|get rid of|got rid of|replacing|abandon|\
         abandoned|abandoning|retire|retired|retiring|deprecate|deprecated|away from|migrate off|\
         move off|moved off|no more|revert|reverted|reverting|undo|scrap|scrapped|over|supersedes|\
         statt|anstatt|anstelle von|weg von|werfen|en lugar de|en lugar del|en vez de|en vez del|\
         dejar de usar|dejamos de usar|dejad de usar|abandonamos|quitamos|descartamos|eliminamos|\
         au lieu de|au lieu d|au lieu du|plutot que|abandonner|abandonne|abandonnons|arreter|\
         arretons|supprimons|em vez de|em vez do|em vez da|em lugar de|no lugar de|no lugar do|\
         ao inves de|ao inves do|deixar de usar|deixamos de usar|abandonar|removemos|вместо|\
         отказываемся от|отказались от|отказаться от|уходим от|ушли от|убираем|убрали|удаляем|\
         а не|invece di",
    ),
    (
        Mark::Denied,
        "not|don t use|dont use|do not use|don t|dont|do not|never use|never|no|nicht|nie|niemals|\
         kein|keine|keinen|keiner|no usar|no uses|no usamos|nunca|ne pas utiliser|pas|pas de|\
         jamais|nao|nao use|nao usar|не|никогда|without|avoid|ohne|sin|sans|sem|без|cannot|\
         must not|shouldn t|isn t|aren t|doesn t|won t",
    ),
    (
        Mark::Ceased,
        "no longer|any more|anymore|any longer|is gone|are gone|was removed|were removed|\
         was dropped|were dropped|has been dropped|has been removed|is deprecated|are deprecated|\
         is retired|was retired|is obsolete|is dead|goes away|went away|is out|nicht mehr|\
         nicht langer|entfallt|abgeschafft|fallt weg|ausgedient|ya no|queda obsoleto|\
         se elimino|n _ plus|ne _ plus|n _ _ plus|ne _ _ plus|plus de|est abandonne|nao _ mais|nao _ _ mais|\
         ja nao|больше не|уже не|устарел|устарела|non _ piu",
    ),
    (
        Mark::Change,
        "switch|switched|switching|switches|change|changed|changing|move|moved|moving|migrate|\
         migrated|migrating|raise|raised|raising|lower|lowered|lowering|increase|increased|\
         decrease|decreased|reduce|reduced|bump|bumped|bumping|upgrade|upgraded|downgrade|\
         downgraded|extend|extended|shorten|shortened|go back|going back|went back|double|\
         doubled|cut|wechseln|wechsle|gewechselt|umstellen|umgestellt|stellen|andern|andere|\
         geandert|erhohen|erhoht|erhohe|senken|gesenkt|senke|hochsetzen|verschieben|verschoben|\
         zuruck|cambiar|cambia|cambiamos|cambiado|cambie|migrar|migramos|pasar|pasamos|pasa|\
         subir|sube|subimos|subid|bajar|baja|bajamos|aumentar|aumentamos|reducir|volver|volvemos|\
         changer|changeons|migrer|migrons|passer|passons|passe|augmenter|augmente|augmentons|\
         reduire|reduisons|revenir|revenons|mudar|muda|mudamos|mude|aumente|reduzir|passamos|\
         passar|voltar|voltamos|меняем|поменяли|изменили|изменяем|переходим|перешли|перейти|\
         мигрируем|увеличить|увеличили|увеличиваем|уменьшить|уменьшаем|снизить|возвращаемся|\
         вернулись|переносим|перенесли|cambiamo",
    ),
    (
        Mark::Replace,
        "rename|renamed|renaming|replace|replaced|replaces|swap|swapped|swapping|swap out|\
         exchange|umbenennen|umbenannt|benenne|benennen|ersetze|ersetzen|ersetzt|tauschen|tausche|\
         renombrar|renombra|renombramos|renombrado|reemplazar|reemplaza|reemplazamos|\
         reemplazado|sustituir|sustituye|sustituimos|renommer|renomme|renommons|remplacer|\
         remplace|remplacons|renomear|renomeia|renomeie|renomeamos|substituir|substitua|\
         substituimos|trocar|troca|trocamos|troque|заменить|замени|заменяем|заменили|заменен|\
         переименовать|переименуй|переименовываем|переименовали|rinominare",
    ),
    (
        Mark::Now,
        "now|actually|from now on|as of|starting|update|correction|changed our mind|\
         changed my mind|after all|new|instead|jetzt|ab jetzt|ab sofort|nun|doch|neu|neue|neuer|\
         stattdessen|sondern|kunftig|ahora|a partir de|nuevo|nueva|mejor|finalmente|\
         maintenant|desormais|finalement|nouveau|nouvelle|agora|novo|nova|теперь|отныне|новый|\
         новая|лучше|adesso|ora|decided",
    ),
];

/// Words between what is given up and what is adopted.
const TO: &str = "to|into|with|by|for|auf|zu|zum|zur|nach|durch|in|gegen|a|al|por|con|para|vers|\
                  au|par|en|на|в|pour|com|pelo|pela";
const FROM: &str = "from|von|vom|de|du|del|desde|da|do|с|со|из";

/// Forms of `be` before a passive.
const BE: &str = "is|are|was|were|been|be|being|got|wird|wurde|werden|wurden|fue|ha sido|es|est|ete|\
                  foi|был|была|было|были";

/// The maximum number of words of a value at the end of a sentence.
const MAX_COMPLEMENT: usize = 1;

/// Words before the value at the end of a sentence: "the port is 8080", "npm as package manager".
const COPULAS: &str = "is|are|be|was|were|stays|remains|as|heisst|lautet|ist|sind|bleibt|als|es|son|\
                       sera|queda|como|est|sont|reste|comme|c|e|sao|fica|это|остается";

/// Returns the terms at the end of a sentence that follow a copula, a colon or a dash.
pub(super) fn complement(tokens: &[WordToken]) -> impl Iterator<Item = String> {
    let is_start = |place: &usize| {
        let before = place.checked_sub(1).and_then(|before| tokens.get(before));
        tokens[*place].gap == Gap::Clause
            || before.is_some_and(|before| is_in(COPULAS, &before.folded))
    };
    let start = (1..tokens.len()).rev().find(is_start);
    let end = tokens
        .get(start.unwrap_or(tokens.len())..)
        .unwrap_or_default();
    let terms = end.iter().filter(|token| !token.is_light);
    let terms: Vec<String> = terms.map(|token| token.term.clone()).collect();
    // A longer end is a clause of its own.
    let is_short = terms.len() <= MAX_COMPLEMENT;
    terms.into_iter().filter(move |_| is_short)
}

/// Words at which a span ends.
const ENDS: &str = "for|in|on|as|because|since|when|while|so|and|but|then|we|it|they|at|of|to|with|\
                    by|into|from|if|until|after|before|is|are|was|were|has|have|which|that|there|\
                    here|everywhere|now|instead|everywhere|all|anymore|any|fur|im|am|weil|da|wenn|\
                    und|aber|dann|wir|ist|sind|als|mehr|por|para|porque|y|pero|entonces|en|como|\
                    a|con|es|ya|pour|parce|et|mais|alors|dans|comme|est|sur|plus|e|mas|em|no|na|\
                    como|com|mais|для|в|на|и|но|потому|как|а|или|or|durch|auf|zu|sino|sondern|par|\
                    au|vers|everything|today|jetzt|ahora|maintenant|agora|теперь|not|nicht|не";

/// Words that say nothing about the subject of a sentence.
pub(crate) static LIGHT: LazyLock<HashSet<&'static str>> = LazyLock::new(|| {
    let mut light: HashSet<&str> = [TO, FROM, BE, ENDS, OTHER_LIGHT]
        .iter()
        .flat_map(|words| words.split('|'))
        .collect();
    let cues = PHRASES.iter().flat_map(|(_, phrases)| phrases.split('|'));
    light.extend(cues.flat_map(|phrase| phrase.split(' ')));
    // Scripts without spaces are read as pairs of characters.
    let dense = DENSE.iter().flat_map(|(_, phrases)| phrases.split('|'));
    for phrase in dense.chain(["我们", "们用", "必须", "一律", "们使", "们改", "统一"])
    {
        let starts: Vec<usize> = phrase.char_indices().map(|(at, _)| at).collect();
        let ends = starts.iter().skip(2).copied().chain([phrase.len()]);
        light.extend(
            starts
                .iter()
                .zip(ends)
                .filter_map(|(from, to)| phrase.get(*from..to)),
        );
    }
    light
});

const OTHER_LIGHT: &str = "\
    please|always|must|should|shall|want|make|keep|let|lets|go|only|just|run|runs|running|listen|\
    listens|live|lives|need|needs|take|takes|get|gets|set|sets|put|start|starts|call|called|\
    decision|ok|okay|yes|nope|hmm|well|really|still|also|too|same|thing|one|ever|both|else|\
    every|each|like|think|say|said|agreed|agree|ll|re|ve|s|d|m|t|i|us|them|use|used|version|\
    value|currently|today|der|die|das|den|dem|des|ein|eine|einen|einem|einer|mit|bitte|immer|\
    muss|soll|sollte|sollen|lass|uns|wir|ich|es|hier|fur|bei|noch|schon|el|la|los|las|un|una|\
    unos|lo|le|les|se|que|su|sus|mi|siempre|favor|debe|vamos|hay|este|esta|esto|nos|nuestro|\
    nuestra|por|une|des|ce|cette|on|nous|il|elle|faut|toujours|doit|notre|nos|c|l|d|j|qu|s|os|as|\
    um|uma|o|que|deve|sempre|isso|esse|essa|nosso|nossa|vamos|мы|я|это|этот|эта|нужно|надо|всегда|\
    должен|должна|пожалуйста|у|нас|наш|наша|the|it|not|if|all|until|after|before";

/// The words of a phrase, and what it marks.
type Cue = (Vec<&'static str>, Mark);

/// The phrases by their first word.
static CUES: LazyLock<HashMap<&'static str, Vec<Cue>>> = LazyLock::new(|| {
    let mut cues: HashMap<&str, Vec<Cue>> = HashMap::new();
    for (mark, phrases) in PHRASES {
        for phrase in phrases.split('|') {
            let words: Vec<&str> = phrase.split(' ').collect();
            cues.entry(words[0]).or_default().push((words, mark));
        }
    }
    // The longest phrase counts.
    for phrases in cues.values_mut() {
        phrases.sort_by_key(|(words, _)| std::cmp::Reverse(words.len()));
    }
    cues
});

/// Phrases of scripts without spaces, the longest first.
const DENSE: [(Mark, &str); 6] = [
    (Mark::Ceased, "不再|弃用|废弃|已移除|やめ|廃止"),
    (
        Mark::GivenUp,
        "而不是|代替|取代|替代|替换|不要用|不要使用|不用|别用|停用|去掉|移除|ではなく|の代わりに",
    ),
    (
        Mark::Adopted,
        "改用|换成|改成|改为|换为|换到|切换到|迁移到|使用|采用|选用|用|使う|にする|に変更",
    ),
    (Mark::Change, "从|把|将|から"),
    (Mark::Replace, "重命名|改名"),
    (Mark::Now, "现在|以后|今后|今後|これから|新"),
];

fn is_in(words: &str, word: &str) -> bool {
    words.split('|').any(|known| known == word)
}

/// Marks what a ruling adopts and what it gives up.
pub(super) fn mark(ruling: &mut Ruling) {
    let mut spans: Vec<(Option<Cause>, Range<usize>)> = Vec::new();
    let tokens = &ruling.tokens;
    let found = found(tokens);
    let changes = |mark: Mark| matches!(mark, Mark::Change | Mark::Replace | Mark::Adopted);
    let mut is_change = false;
    let has_change = found.iter().any(|(_, mark)| changes(*mark));
    for (at, mark) in &found {
        is_change |= !matches!(mark, Mark::Adopted | Mark::Denied);
        let after = span(tokens, at.end);
        let denied = found.iter().any(|(other, mark)| {
            let is_denial = matches!(mark, Mark::Denied | Mark::Ceased);
            is_denial && same_clause(tokens, other.start, at.start) && other.start <= at.start
        });
        match mark {
            Mark::Adopted if denied => spans.push((Some(Cause::Negated), after)),
            Mark::Adopted => spans.push((None, after)),
            // "No, use X" does not deny X.
            Mark::GivenUp | Mark::Denied if begins_clause(tokens, at.end) => {}
            Mark::GivenUp => spans.push((Some(Cause::Named), after)),
            Mark::Denied => spans.push((Some(Cause::Negated), after)),
            Mark::Ceased => spans.push((Some(Cause::Ceased), clause(tokens, at.clone()))),
            Mark::Change | Mark::Replace => spans.extend(exchanged(tokens, at, *mark)),
            Mark::Now => {}
        }
    }
    for (place, token) in tokens.iter().enumerate() {
        if token.gap == Gap::Arrow {
            let first = (0..place).rev().take(MAX_SPAN).take_while(|before| {
                let next = &tokens[before + 1];
                !tokens[*before].is_light && (before + 1 == place || next.gap != Gap::Clause)
            });
            spans.push((Some(Cause::Named), first.last().unwrap_or(place)..place));
            spans.push((None, span(tokens, place)));
            is_change = true;
        } else if has_change
            && is_in(FROM, &token.folded)
            && let Some(to) = reach(
                tokens,
                place + 1,
                "to|into|auf|zu|nach|a|al|para|vers|au|на",
            )
        {
            spans.push((Some(Cause::Named), place + 1..to));
            spans.push((None, span(tokens, to + 1)));
        }
    }
    let mut dense = dense_spans(&ruling.text, tokens);
    is_change |= dense.iter().any(|(cause, _)| cause.is_some());
    spans.append(&mut dense);
    ruling.is_change = is_change;
    for (cause, range) in spans {
        let tokens = ruling.tokens.get(range).unwrap_or_default();
        let tokens = tokens.iter().filter(|token| !token.is_light);
        let terms: BTreeSet<String> = tokens.map(|token| token.term.clone()).collect();
        if terms.is_empty() {
            continue;
        }
        match cause {
            None => ruling.adopted.push(terms),
            Some(cause) => ruling.given_up.push(Span { terms, cause }),
        }
    }
    // "Use X instead of Y" adopts X only.
    let given_up = &ruling.given_up;
    for adopted in &mut ruling.adopted {
        adopted.retain(|term| !given_up.iter().any(|span| span.terms.contains(term)));
    }
    ruling.adopted.retain(|adopted| !adopted.is_empty());
}

/// Returns what a sentence about a change names as old and as new.
fn exchanged(
    tokens: &[WordToken],
    at: &Range<usize>,
    mark: Mark,
) -> Vec<(Option<Cause>, Range<usize>)> {
    let mut spans = Vec::new();
    if let Some(to) = reach(tokens, at.end, TO) {
        let from = reach(tokens, at.end, FROM).filter(|from| *from < to);
        let between = from.map_or(at.end, |from| from + 1)..to;
        spans.push((None, span(tokens, to + 1)));
        if mark == Mark::Replace || from.is_some() {
            spans.push((Some(Cause::Named), between));
        } else {
            // "Change the port from 8080" and "change 8080" name the value.
            let named = between.filter(|place| tokens[*place].is_specific);
            spans.extend(named.map(|place| (Some(Cause::Named), place..place + 1)));
        }
    }
    let is_passive = at.start > 0
        && tokens[..at.start]
            .iter()
            .rev()
            .take(3)
            .any(|token| is_in(BE, &token.folded));
    if mark == Mark::Replace && is_passive {
        let first = clause(tokens, at.clone()).start;
        spans.push((Some(Cause::Named), first..at.start));
    }
    spans
}

/// Finds the phrases of a sentence.
fn found(tokens: &[WordToken]) -> Vec<(Range<usize>, Mark)> {
    let mut found = Vec::new();
    let mut start = 0;
    while let Some(token) = tokens.get(start) {
        let phrases = CUES.get(token.folded.as_str());
        let matches = |words: &[&str]| {
            words.iter().enumerate().all(|(place, word)| {
                let token = tokens.get(start + place);
                token.is_some_and(|token| *word == "_" || token.folded == *word)
            })
        };
        let hit = phrases
            .into_iter()
            .flatten()
            .find(|(words, _)| matches(words));
        match hit {
            Some((words, mark)) if token.gap != Gap::Joined || start == 0 || words.len() > 1 => {
                found.push((start..start + words.len(), *mark));
                // The words of "n'utilise plus X" are cues themselves.
                start += if words.contains(&"_") { 1 } else { words.len() };
            }
            _ => start += 1,
        }
    }
    found
}

fn begins_clause(tokens: &[WordToken], at: usize) -> bool {
    tokens.get(at).is_some_and(|token| token.gap == Gap::Clause)
}

fn same_clause(tokens: &[WordToken], one: usize, other: usize) -> bool {
    let (first, last) = (one.min(other), one.max(other));
    let between = tokens.get(first + 1..=last).unwrap_or_default();
    !between.iter().any(|token| token.gap == Gap::Clause)
}

/// Returns the clause around some tokens.
fn clause(tokens: &[WordToken], at: Range<usize>) -> Range<usize> {
    let is_start = |place: &usize| {
        tokens
            .get(*place)
            .is_some_and(|token| token.gap == Gap::Clause)
    };
    let start = (0..=at.start).rev().find(is_start).unwrap_or(0);
    let end = (at.end..tokens.len())
        .find(is_start)
        .unwrap_or(tokens.len());
    start..end
}

/// Returns the phrase that begins at a token: its articles are skipped, and it ends at a function
/// word or a comma.
fn span(tokens: &[WordToken], start: usize) -> Range<usize> {
    let mut end = start;
    let mut count = 0;
    while let Some(token) = tokens.get(end) {
        let is_border = matches!(token.gap, Gap::Clause | Gap::Arrow);
        let is_end = token.is_light && is_in(ENDS, &token.folded);
        if count > 0 && (is_border || is_end) || count == MAX_SPAN || end > start + MAX_REACH {
            break;
        }
        if count == 0 && end > start && is_border {
            break;
        }
        count += usize::from(!token.is_light);
        end += 1;
    }
    start..end
}

/// Returns the place of one of these words in the same clause.
fn reach(tokens: &[WordToken], start: usize, words: &str) -> Option<usize> {
    let near = tokens.iter().enumerate().skip(start).take(MAX_REACH);
    let near = near.take_while(|(place, token)| *place == start || token.gap != Gap::Clause);
    let mut near = near.filter(|(_, token)| is_in(words, &token.folded));
    near.next().map(|(place, _)| place)
}

/// Returns the spans that phrases of scripts without spaces mark.
fn dense_spans(text: &str, tokens: &[WordToken]) -> Vec<(Option<Cause>, Range<usize>)> {
    if text.is_ascii() {
        return Vec::new();
    }
    let mut cues: Vec<(Range<usize>, Mark)> = Vec::new();
    for (mark, phrases) in DENSE {
        for phrase in phrases.split('|') {
            for (at, _) in text.match_indices(phrase) {
                let range = at..at + phrase.len();
                if !cues
                    .iter()
                    .any(|(other, _)| other.start < range.end && range.start < other.end)
                {
                    cues.push((range, mark));
                }
            }
        }
    }
    cues.sort_by_key(|(range, _)| range.start);
    let in_text = |from: usize, to: usize| {
        let first = tokens
            .iter()
            .position(|token| token.at.start >= from && token.at.end <= to);
        let count = tokens
            .iter()
            .filter(|token| token.at.start >= from && token.at.end <= to)
            .count();
        first.map_or(0..0, |first| first..first + count)
    };
    let mut spans = Vec::new();
    for (place, (range, mark)) in cues.iter().enumerate() {
        let rest = text.get(range.end..).unwrap_or_default();
        let end = rest
            .find(['，', '。', '；', ',', '（', '、'])
            .map_or(text.len(), |at| range.end + at);
        let next = cues
            .get(place + 1)
            .map_or(end, |(next, _)| next.start.min(end));
        let before = place.checked_sub(1).and_then(|before| cues.get(before));
        let head = text.get(..range.start).unwrap_or_default();
        let start = head
            .rfind(['，', '。', '；', ',', '、'])
            .map_or(0, |at| at + 1);
        let start = before.map_or(start, |(before, _)| before.end.max(start));
        match mark {
            Mark::Adopted
                if before.is_some_and(|(before, mark)| {
                    matches!(mark, Mark::Ceased) && before.end >= start
                }) =>
            {
                spans.push((Some(Cause::Named), in_text(range.end, next)));
            }
            Mark::Adopted => spans.push((None, in_text(range.end, next))),
            Mark::GivenUp if phrase_is_after(text, range) => {
                spans.push((Some(Cause::Named), in_text(start, range.start)));
            }
            Mark::GivenUp | Mark::Change | Mark::Replace => {
                spans.push((Some(Cause::Named), in_text(range.end, next)));
            }
            Mark::Ceased => {
                spans.push((Some(Cause::Ceased), in_text(start, end)));
            }
            Mark::Denied | Mark::Now => {}
        }
    }
    spans
}

/// Returns whether a Japanese phrase stands after what it gives up.
fn phrase_is_after(text: &str, range: &Range<usize>) -> bool {
    let phrase = text.get(range.clone()).unwrap_or_default();
    matches!(phrase, "ではなく" | "の代わりに")
}
