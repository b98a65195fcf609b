//! Finds statements that a later text gives up in so many words: "no longer 8080", "we moved from X
//! to Y", "X is gone", "instead of X we use Y now".
//!
//! The later text has to name the earlier [value](crate::values), and both sentences need the same
//! subject: if each has a content word that the other lacks, they are not related. In doubt nothing
//! is corrected, because a wrong correction is worse than none.

use std::collections::BTreeSet;

use crate::{
    sanitize, statement,
    terms::words,
    truncate,
    values::{Token, TokenKind, tokens},
    word_list::is_in,
};

/// Limits on the read part of a text.
const MAX_LENGTH: usize = 16 * 1024;
const MAX_SENTENCES: usize = 120;

/// The maximum length of a quoted sentence, in characters.
const MAX_QUOTE: usize = 200;

/// How many words may stand between a phrase and the value after it, and before it.
const MAX_AFTER: usize = 3;
const MAX_BEFORE: usize = 1;

/// The part of a session's note that quotes the person, and those that state nothing.
const SAID: &str = "Said";
const SKIPPED: &str = "Ask|Files|Branch|Committed|Next steps|Still failing|Failed and fixed|Fixed";

/// Phrases before what is given up.
const AFTER: &str = "no longer|instead of|rather than|in place of|stopped using|stop using|away from|\
    got rid of|get rid of|no more|dropped|ditched|retired|abandoned|formerly|previously|used to be|\
    never been|was never|were never|i said|war nie|nunca fue|nunca estuvo|n'a jamais été|\
    nicht mehr|nicht länger|statt|anstatt|anstelle von|anstelle des|weg von|ya no|en lugar de|\
    en vez de|dejamos de usar|au lieu de|plutôt que|n'utilisons plus|n'utilise plus|n'est plus|\
    já não|em vez de|em lugar de|больше не|вместо|już nie|zamiast|不再|而不是|弃用|代替";

/// Phrases around what is given up.
const AROUND: [(&str, &str); 11] = [
    ("not", "anymore|any more|any longer|but"),
    ("n't", "anymore|any more|any longer"),
    ("never", "anymore|any more|again"),
    ("kein|keine|keinen|keinem|keiner", "mehr"),
    ("não", "mais"),
    ("ne|n'", "plus"),
    ("replace|replaced|replacing|swapped", "with|by|for"),
    ("ersetzt|ersetzen", "durch"),
    ("把|将", "改为|换成|改成"),
    ("从", "改为|换成|改成|迁移到|切换到|换到"),
    ("не", "больше"),
];

/// Verbs of a change, and the words around the old value.
const CHANGES: &str = "moved|move|switched|switch|changed|change|migrated|migrate|went|go|upgraded|\
    renamed|rename|converted|shifted|bumped|raised|raise|lowered|lower|reduced|increased|swapped|\
    ported|umgestellt|gewechselt|umgezogen|wechseln|geändert|cambiamos|cambiado|pasamos|migramos|\
    cambió|passé|passons|migré|passés|mudamos|migrou|перешли|переехали|перенесли";
const FROM_TO: [(&str, &str); 5] = [
    ("from", "to|into|over to"),
    ("von", "auf|zu|nach"),
    ("de", "a|al|à|para|vers"),
    ("du", "au|à|vers"),
    ("с|от", "на|к"),
];

/// Auxiliary verbs and participles after what is given up.
const AUXILIARIES: &str = "is|are|was|were|been|got";
const ENDED: &str = "gone|removed|dropped|retired|deleted|replaced|renamed|superseded|obsolete|\
    decommissioned|history|dead|deprecated|abandoned";
const BEFORE: &str = "no longer exists|no longer exist|no longer used|no longer in use|\
    no longer supported|no longer valid|no longer there|no longer needed|no longer available|\
    not used anymore|not used any more|was my mistake|was a mistake|was wrong|is wrong|nicht mehr|ist weg|ist entfernt|ist abgeschafft|wurde ersetzt|\
    wurde entfernt|gibt es nicht mehr|fue reemplazado|fue eliminado|ya no existe|\
    a été remplacé|a été supprimé|n'existe plus|foi substituído|foi removido|больше нет|больше не используется|\
    已移除|已删除|已废弃|已弃用|不再使用了|ではなく|の代わりに|は廃止";

/// Verbs after a subject that is contrasted with another: "X does not …, Y does".
const ASSERTIONS: &str = "do|does|did|is|are|was|were|has|have|will|can";
const DENIALS: &str = "don't|doesn't|didn't|isn't|aren't|wasn't|weren't|hasn't|haven't|won't|can't";

/// Words before a sentence that corrects an earlier one.
const DECLARED: &str = "correction|corrected|korrektur|corrección|correção|correzione|correctie|\
    исправление|поправка|korekta|更正|訂正";

/// A sentence without any of these gives nothing up.
const TRIGGERS: &str = "longer|more|instead|rather|place of|from |replac|swap|gone|remov|drop|\
    retir|renam|obsolet|deprec|not |n't|away|rid of|formerly|previously|used to|stop|mehr|\
    statt|stelle|ersetz|weg|no |never|wrong|mistake|i said|nie |vez de|lugar de|plus|lieu|mais|\
    вместо|больше|不|代|从|はなく| von | de | du | с |kein|plut|не";

/// Words after "no longer" that say that something works now.
const FAILURES: &str = "fail|fails|failing|crash|crashes|break|breaks|hang|hangs|block|blocks|leak|\
    leaks|throw|throws|lose|loses|ignore|ignores|complain|complains|collide|collides";

/// Words that begin a reason or an aside, which is not about the subject.
const REASONS: &str = "because|since|so|as|due|when|while|after|if|unless|until|although|which|that|\
    weil|da|wenn|porque|parce|car|потому|因为";

const PREPOSITIONS: &str = "on|in|at|of|for|from|to|with|by|into|under|via|per|off|onto|out|after|\
    before|until|within|auf|fur|von|mit|bei|en|dans|sur";

/// Words that name the sort of a value.
const CLASSES: &str = "port|flag|option|file|path|folder|directory|branch|package|library|lib|command|\
    script|endpoint|env|variable|version|framework|tool|url|address|parameter|argument|module|\
    function|method|class|name|value|set|limit|runner|manager|format";

/// Verbs, at which the head of a sentence ends.
const VERBS: &str = "is|are|was|were|be|been|being|has|have|had|do|does|did|will|would|can|could|must|\
    should|shall|may|might|use|uses|used|using|run|runs|ran|running|listen|listens|listened|live|\
    lives|lived|sit|sits|stand|stands|need|needs|needed|take|takes|took|get|gets|got|set|sets|put|\
    start|starts|started|call|calls|called|make|makes|keep|keeps|kept|hold|holds|go|goes|went|\
    expect|expects|work|works|write|writes|wrote|written|read|reads|store|stores|stored|save|saves|\
    send|sends|sent|accept|accepts|return|returns|wait|waits|allow|allows|give|gives|come|comes|\
    build|builds|built|deploy|deploys|deployed|serve|serves|served|point|points|pointed|bind|binds|\
    want|let|lets|stop|stops|stopped|moved|move|switched|switch|changed|change|migrated|migrate|\
    upgraded|renamed|rename|converted|shifted|bumped|raised|lowered|reduced|increased|swapped|\
    replaced|replace|removed|dropped|retired|gone|deleted|ported|pass|passes|prefer|chose|choose|\
    decided|picked|pick|agreed|configured|pinned|released|expire|expires|last|lasts";

/// Other words that say nothing about the subject.
pub(crate) const LIGHT: &str = "the|a|an|we|you|i|it|they|our|your|its|this|these|those|there|here|no|not|\
    longer|more|any|anymore|instead|rather|now|today|currently|current|new|old|also|still|always|\
    please|just|only|and|or|but|then|than|from|to|into|over|everywhere|all|both|each|every|ever|\
    again|back|up|down|place|rid|away|history|obsolete|dead|previously|formerly|yes|ok|okay|actually|sorry|wrong|right|correct|\
    really|too|well|by|with|as|us|me|my|one|never|earlier|mistake|noted|remember|let's|don't|isn't|aren't|doesn't|didn't|won't|can't|\
    shouldn't|decision|note|fact|update|correction|said|outcome|decided|mehr|nicht|statt|jetzt|\
    的|了|在|是|我|们|用|使|于|为|改|再|不|现|已|从|到|成|换|而|这|で|を|は|に|の|が|と|す|る";

/// Returns whether a sentence gives a value up.
pub fn gives_value_up(sentence: &str) -> bool {
    if !may_give_up(&sentence.to_lowercase()) {
        return false;
    }
    let sentence = Sentence::parse(sentence, true);
    let mut given_up = sentence.given_up().into_iter();
    given_up.any(|(place, _)| sentence.tokens[place].is_value())
}

/// Returns whether a sentence gives up something that is a word of a name.
pub fn gives_up(sentence: &str, name: &str) -> bool {
    let name = Sentence::parse(name, true);
    let sentence = Sentence::parse(sentence, true);
    sentence.given_up().into_iter().any(|(place, _)| {
        // "The error of X is gone" gives up the error.
        let is_part = place > 1
            && sentence.is(place - 1, "of|in|on|with")
            && !sentence.is(place - 2, "instead|place|rid");
        let key = sentence.tokens[place].key.as_str();
        !is_part && name.content().any(|word| word == key)
    })
}

/// Returns whether a text in lower case has a word without which nothing is given up.
fn may_give_up(lower: &str) -> bool {
    TRIGGERS.split('|').any(|word| lower.contains(word))
}

/// The kind of note that is read for statements that give something up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteText {
    /// A note that a person or an agent wrote.
    Written,
    /// A session's note. Only what the person said in it gives something up, and its title is about
    /// the session.
    Session,
}

/// A sentence as tokens.
#[derive(Debug)]
struct Sentence<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    /// The clause of each token. A reason is a clause of its own.
    clauses: Vec<usize>,
    is_said: bool,
}

/// A text as sentences that state something.
#[derive(Debug)]
pub struct Statements<'a> {
    kind: NoteText,
    title: BTreeSet<String>,
    /// The words that a sentence may leave out, because the text has them.
    context: BTreeSet<String>,
    sentences: Vec<Sentence<'a>>,
}

/// A value that a sentence gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GivenUp {
    sentence: usize,
    token: usize,
    now: Option<usize>,
    /// The sentence says "correction:" and only names the new value, at `token`.
    is_declared: bool,
    /// A term by which texts that have the value can be found.
    pub term: String,
}

/// A correction of an earlier text by a later one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// The given up value, as the earlier text writes it.
    pub was: String,
    /// The key of the given up value, and that of the value instead of it.
    pub old: String,
    /// See `old`.
    pub new: Option<String>,
    /// The later sentence.
    pub says: String,
}

/// The content words of a sentence beside its values.
#[derive(Debug, Default)]
struct Frame<'a> {
    words: BTreeSet<&'a str>,
    /// Those before the verb.
    head: BTreeSet<&'a str>,
    /// Neighbouring words.
    compounds: Vec<(&'a str, &'a str)>,
}

impl<'a> Statements<'a> {
    /// Reads a text.
    pub fn parse(title: &'a str, body: &'a str, kind: NoteText) -> Self {
        let mut sentences = Vec::new();
        let (mut label, mut is_code) = ("", false);
        for line in statement::sentences(sanitize::head(body, MAX_LENGTH)) {
            let mut text = line.trim().trim_start_matches(['-', '*', '#', '>', ' ']);
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
                continue;
            }
            let item = line.trim_start().trim_start_matches("- ");
            let bold = item.strip_prefix("**");
            if let Some((found, rest)) = bold.and_then(|bold| bold.split_once(":**")) {
                (label, text) = (found, rest.trim());
            }
            let is_skipped = is_code || is_in(SKIPPED, label) || is_trailer(text);
            if text.is_empty() || is_skipped || text.ends_with(['?', '？']) {
                continue;
            }
            sentences.push(Sentence::parse(text, label == SAID));
            if sentences.len() == MAX_SENTENCES {
                break;
            }
        }
        let heading = Sentence::parse(title, false);
        let all = || sentences.iter().chain([&heading]);
        let context = match kind {
            NoteText::Written => all()
                .flat_map(Sentence::content)
                .map(str::to_owned)
                .collect(),
            NoteText::Session => BTreeSet::new(),
        };
        // A title that gives something up is a statement, not a subject.
        let title_words = match kind {
            NoteText::Written if heading.given_up().is_empty() && !heading.is_declared() => {
                heading.frame(None).head
            }
            _ => BTreeSet::new(),
        };
        let title_words = title_words.into_iter().map(str::to_owned).collect();
        if kind == NoteText::Written && !body.contains(title) {
            sentences.push(heading);
        }
        Self {
            kind,
            title: title_words,
            context,
            sentences,
        }
    }

    /// Returns the values that the text gives up and does not state elsewhere.
    pub fn given_up(&self) -> Vec<GivenUp> {
        let mut given_up = Vec::new();
        for (place, sentence) in self.sentences.iter().enumerate() {
            // "Just run `make`, not `tox`" is about the step at hand.
            let is_order = sentence.is(0, "just");
            if self.kind == NoteText::Session && (!sentence.is_said || is_order) {
                continue;
            }
            let mut add = |token, now, is_declared, term| {
                given_up.push(GivenUp {
                    sentence: place,
                    token,
                    now,
                    is_declared,
                    term,
                });
            };
            for (token, now) in sentence.given_up() {
                let Some(value) = sentence.tokens.get(token) else {
                    continue;
                };
                if self.sentences.iter().any(|other| other.states(&value.key)) {
                    continue;
                }
                let term = search_term(value.key.trim_start_matches('#').split('_'));
                add(token, now, false, term);
            }
            if let Some(token) = sentence.declared() {
                let term = search_term(sentence.frame(Some((token, None))).words.into_iter());
                add(token, Some(token), true, term);
            }
        }
        given_up
    }

    /// Returns what a later text corrects in this one.
    pub fn corrected_by(&self, later: &Statements<'_>, given_up: &GivenUp) -> Option<Correction> {
        let by = later.sentences.get(given_up.sentence)?;
        let old = by.tokens.get(given_up.token)?;
        let new = given_up.now.and_then(|now| by.tokens.get(now));
        let frame = by.frame(Some((given_up.token, given_up.now)));
        let is_new_name = new.is_some_and(|new| new.kind == TokenKind::Name);
        self.sentences.iter().find_map(|sentence| {
            let place = if given_up.is_declared {
                sentence.replaced_by(old, &frame)?
            } else {
                sentence.place_of(&old.key)?
            };
            let value = sentence.tokens.get(place)?;
            let is_current = sentence.given_up().iter().all(|(gone, _)| *gone != place);
            let is_value = value.is_value()
                || old.is_value()
                || is_new_name && old.kind == TokenKind::Capitalised;
            let is_same = is_current
                && is_value
                && self.is_same_subject(
                    &sentence.frame(Some((place, None))),
                    later,
                    &frame,
                    old.is_number(),
                );
            is_same.then(|| Correction {
                was: value.written.to_owned(),
                old: value.key.clone(),
                new: new.map(|new| new.key.clone()),
                says: truncate::line(by.text, MAX_QUOTE),
            })
        })
    }

    /// Returns whether a later sentence is about the subject of one of this text.
    fn is_same_subject(
        &self,
        own: &Frame<'_>,
        later: &Statements<'_>,
        by: &Frame<'_>,
        is_number: bool,
    ) -> bool {
        let is_known = |word: &str, frame: &Frame<'_>, text: &Statements<'_>| {
            frame.words.contains(word) || text.context.contains(word)
        };
        let lacks = |words: &BTreeSet<&str>, frame: &Frame<'_>, text: &Statements<'_>| {
            let mut words = words.iter().filter(|word| !is_in(CLASSES, word));
            words.any(|word| !is_known(word, frame, text))
        };
        let titles: [BTreeSet<&str>; 2] =
            [&self.title, &later.title].map(|text| text.iter().map(String::as_str).collect());
        // A sentence without a subject is about that of its title.
        let subject = if by.words.is_empty() {
            &titles[1]
        } else {
            &by.words
        };
        if lacks(&own.words, by, later) && lacks(subject, own, self)
            || lacks(&titles[0], by, later) && lacks(&titles[1], own, self)
        {
            return false;
        }
        // "the staging database" is not "the database".
        let is_narrower = |one: &Frame<'_>, other: &Frame<'_>, text: &Statements<'_>| {
            one.compounds.iter().any(|(first, second)| {
                other.words.contains(second) && !is_known(first, other, text)
            })
        };
        if is_narrower(own, by, later) || is_narrower(by, own, self) {
            return false;
        }
        if is_number {
            // A number identifies nothing by itself.
            let is_shared = subject.iter().any(|word| own.words.contains(word));
            is_shared && own.head.iter().all(|word| is_known(word, by, later))
        } else {
            // What is given up for one thing may hold for others.
            !own.words.is_empty() || !lacks(&by.head, own, self)
        }
    }
}

impl<'a> Sentence<'a> {
    fn parse(text: &'a str, is_said: bool) -> Self {
        let tokens = tokens(text);
        let (mut clause, mut end) = (0, 0);
        let clauses = tokens.iter().enumerate().map(|(place, token)| {
            let gap = text.get(end..token.at.start).unwrap_or_default();
            end = token.at.end;
            let is_mark = |c: char| ",;:()—–，；：（）、。".contains(c);
            let is_border = gap.contains(is_mark) || gap.contains(" - ");
            let is_reason = token.is(REASONS);
            clause += usize::from(place > 0 && (is_border || is_reason));
            clause
        });
        Self {
            clauses: clauses.collect(),
            text,
            tokens,
            is_said,
        }
    }

    /// Returns whether it is announced as a correction: "Correction: …".
    fn is_declared(&self) -> bool {
        self.clauses.get(1) == Some(&1) && self.is(0, DECLARED)
    }

    /// Returns the place of the only value of the clause after "Correction:".
    fn declared(&self) -> Option<usize> {
        let in_clause = |place: &usize| self.clauses.get(*place) == Some(&1);
        let is_value = |place: &usize| self.tokens[*place].is_value();
        let mut values = (0..self.tokens.len()).filter(in_clause).filter(is_value);
        let value = values.next().filter(|_| self.is_declared())?;
        values.next().is_none().then_some(value)
    }

    /// Returns the place of the only value that another one of the same sort can stand for, if
    /// the words around both are the same.
    fn replaced_by(&self, new: &Token<'_>, by: &Frame<'_>) -> Option<usize> {
        let unit = |token: &Token<'_>| {
            token
                .key
                .trim_start_matches(['#', '.'])
                .replace(|c: char| c.is_ascii_digit(), "")
        };
        let is_sort = |place: &usize| {
            let token = &self.tokens[*place];
            token.is_value()
                && token.kind == new.kind
                && (!token.is_number() || unit(token) == unit(new))
        };
        let mut places = (0..self.tokens.len()).filter(is_sort);
        let place = places.next().filter(|_| places.next().is_none())?;
        let own = self.frame(Some((place, None)));
        let is_other = self.tokens[place].key != new.key;
        (is_other && own.words.len() > 1 && own.words == by.words).then_some(place)
    }

    /// Returns whether the token at a place is one of the words of a list.
    fn is(&self, place: usize, list: &str) -> bool {
        self.tokens.get(place).is_some_and(|token| token.is(list))
    }

    fn place_of(&self, key: &str) -> Option<usize> {
        self.tokens.iter().position(|token| token.key == key)
    }

    /// Returns the content words.
    fn content(&self) -> impl Iterator<Item = &str> {
        let content = self.tokens.iter().filter(|token| !is_light(token));
        content.map(|token| token.key.as_str())
    }

    /// Returns whether it says that a value holds.
    fn states(&self, key: &str) -> bool {
        const PAST: &str = "was|were|had|before|previously|formerly|until|war|waren|bisher|old";
        let Some(place) = self.place_of(key) else {
            return false;
        };
        !self.tokens.iter().any(|token| token.is(PAST))
            && self.given_up().iter().all(|(gone, _)| *gone != place)
    }

    /// Returns the places of the values that it gives up, each with that of the value instead.
    fn given_up(&self) -> Vec<(usize, Option<usize>)> {
        let lower = self.text.to_lowercase();
        if lower.len() != self.text.len() || !may_give_up(&lower) {
            return Vec::new();
        }
        let mut found: Vec<usize> = Vec::new();
        for before in BEFORE.split('|') {
            let places = cues(&lower, before);
            found.extend(places.filter_map(|at| self.value_before(at)));
        }
        found.extend(self.ended());
        for after in AFTER.split('|') {
            let places = cues(&lower, after);
            found.extend(places.filter_map(|at| self.value_after(at + after.len(), lower.len())));
        }
        for (first, second) in AROUND {
            found.extend(self.between(&lower, first, second));
        }
        if self.tokens.iter().any(|token| token.is(CHANGES)) {
            for (first, second) in FROM_TO {
                found.extend(self.between(&lower, first, second));
            }
        }
        found.extend(self.contrasted(&lower));
        found.extend(self.contrasted_subject());
        found.sort_unstable();
        found.dedup();
        let is_gone = |place: &usize| found.contains(place);
        let other = |old: usize| {
            let is_number = self.tokens.get(old)?.is_number();
            let is_new = |place: &usize| {
                let token = self.tokens.get(*place).filter(|_| !is_gone(place));
                token.is_some_and(|it| it.is_value() && it.is_number() == is_number)
            };
            let after = (old + 1..self.tokens.len()).find(is_new);
            after.or_else(|| (0..old).rev().find(is_new))
        };
        found.iter().map(|old| (*old, other(*old))).collect()
    }

    /// Returns the value after a phrase, before `limit`.
    fn value_after(&self, start: usize, limit: usize) -> Option<usize> {
        let mut tokens = (0..self.tokens.len()).filter(|place| {
            let at = &self.tokens[*place].at;
            at.start >= start && at.end <= limit
        });
        let first = tokens.next()?;
        if self.is(first, FAILURES) {
            return None;
        }
        let clause = self.clauses[first];
        let near = std::iter::once(first).chain(tokens);
        let mut passed = 0;
        let mut word = None;
        for place in near.take_while(|place| self.clauses[*place] == clause) {
            let token = &self.tokens[place];
            if token.is("for|fur|para|pour") || passed > MAX_AFTER {
                break;
            }
            if token.is_value() {
                return Some(place);
            }
            if !is_light(token) {
                passed += 1;
                word.get_or_insert(place);
            }
        }
        word
    }

    /// Returns the value before a phrase.
    fn value_before(&self, end: usize) -> Option<usize> {
        let last = self.tokens.iter().rposition(|token| token.at.end <= end)?;
        let clause = self.clauses[last];
        let mut passed = 0;
        let near = (0..=last)
            .rev()
            .take_while(|place| self.clauses[*place] == clause);
        let mut word = None;
        for place in near {
            let token = &self.tokens[place];
            if token.is_value() {
                return Some(place);
            }
            if passed > MAX_BEFORE || token.is(PREPOSITIONS) {
                break;
            }
            if !is_light(token) {
                passed += 1;
                word.get_or_insert(place);
            }
        }
        word
    }

    /// Returns the values that ended: "X is gone", "X was replaced by Y".
    fn ended(&self) -> Vec<usize> {
        let ends = (1..self.tokens.len())
            .filter(|place| self.is(*place, ENDED) && self.is(place - 1, AUXILIARIES));
        ends.filter_map(|place| {
            let has_been = place > 1 && self.is(place - 2, "has|have|had");
            let verb = place - 1 - usize::from(has_been);
            self.value_before(self.tokens.get(verb)?.at.start)
        })
        .collect()
    }

    /// Returns the value between two phrases of one clause.
    fn between(&self, lower: &str, first: &str, second: &str) -> Option<usize> {
        first.split('|').find_map(|first| {
            cues(lower, first).find_map(|at| {
                let start = at + first.len();
                let ends = second
                    .split('|')
                    .flat_map(|second| cues(lower.get(start..).unwrap_or_default(), second));
                let end = start + ends.min()?;
                let place = self.value_after(start, end)?;
                let next = self.tokens.iter().position(|token| token.at.start >= end);
                let clause = next.map_or(self.clauses[place], |next| self.clauses[next]);
                (clause <= self.clauses[place] + 1).then_some(place)
            })
        })
    }

    /// Returns the value of "Y, not X".
    fn contrasted(&self, lower: &str) -> Vec<usize> {
        let mut found = Vec::new();
        for phrase in [", not ", ", nicht ", ", no ", ", pas "] {
            for (at, _) in lower.match_indices(phrase) {
                let Some(old) = self.value_after(at + phrase.len(), lower.len()) else {
                    continue;
                };
                let is_number = self.tokens[old].is_number();
                let is_new = |token: &Token<'_>| {
                    token.at.end <= at && token.is_value() && token.is_number() == is_number
                };
                let next = self.tokens.iter().position(|token| token.at.start > at + 1);
                // Only the value follows "not".
                let is_next = next.is_some_and(|next| next + 2 >= old);
                if is_next && self.tokens.iter().any(is_new) {
                    found.push(old);
                }
            }
        }
        found
    }

    /// Returns the subject of "X does not …, Y does".
    fn contrasted_subject(&self) -> Option<usize> {
        let last = self.tokens.len().checked_sub(1)?;
        let new = last.checked_sub(1).filter(|_| self.is(last, ASSERTIONS))?;
        let is_own_clause = self.clauses[new] > self.clauses[new.checked_sub(1)?];
        let old = (0..new).find(|place| {
            self.is(place + 1, DENIALS)
                || self.is(place + 1, ASSERTIONS) && self.is(place + 2, "not|no")
        })?;
        let is_name = self.tokens[new].is_value() && is_own_clause;
        is_name.then_some(old)
    }

    /// Returns the content words, without the old and the new value, up to the clause of the old one.
    fn frame(&self, values: Option<(usize, Option<usize>)>) -> Frame<'_> {
        let old = values.map(|(old, _)| old);
        let new = values.and_then(|(_, new)| new);
        let last = old.map_or(usize::MAX, |old| self.clauses[old]);
        let mut frame = Frame::default();
        let mut is_head = true;
        // "It's ruff, flake8 was removed": what "it" is, is no subject.
        let says_it = |clause: usize| {
            let in_clause = |place: &usize| self.clauses[*place] == clause;
            let words: Vec<&Token<'_>> = (0..self.tokens.len())
                .filter(in_clause)
                .map(|place| &self.tokens[place])
                .collect();
            words.iter().any(|it| it.is("it"))
                && words.iter().filter(|it| !is_light(it)).count() == 1
        };
        let mut before: Option<(usize, &str)> = None;
        for (place, token) in self.tokens.iter().enumerate() {
            let is_verb = token.is(VERBS) || token.is("no|not|nicht|instead|from|von");
            is_head &= !(is_verb || Some(place) == old || Some(place) == new);
            let is_value = Some(place) == old || Some(place) == new;
            let clause = self.clauses[place];
            let is_other = clause > last || clause < last && old.is_some() && says_it(clause);
            if is_value || is_other || token.is_number() || is_light(token) {
                continue;
            }
            let key = token.key.as_str();
            frame.words.insert(key);
            if is_head {
                frame.head.insert(key);
            }
            if let Some((neighbour, word)) = before
                && neighbour + 1 == place
                && self.clauses[neighbour] == self.clauses[place]
            {
                frame.compounds.push((word, key));
            }
            before = Some((place, key));
        }
        frame
    }
}

/// Returns the word by which texts that have a value can be found: the longest one that is indexed.
fn search_term<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let is_indexed = |part: &&str| {
        let mut is_indexed = false;
        words(part, |word| is_indexed |= !word.is_stop_word());
        is_indexed
    };
    let term = parts.filter(is_indexed).max_by_key(|part| part.len());
    let term = term.unwrap_or_default();
    let digits = term.starts_with(|c: char| c.is_ascii_digit());
    let end = term.find(|c: char| digits && !c.is_ascii_digit());
    term[..end.unwrap_or(term.len())].to_owned()
}

/// Returns whether a token says nothing about the subject.
fn is_light(token: &Token<'_>) -> bool {
    if token.is_value() {
        return false;
    }
    let mut is_stop_word = false;
    words(token.written, |word| is_stop_word |= word.is_stop_word());
    let is_listed = || token.is(LIGHT) || token.is(VERBS) || token.is(PREPOSITIONS);
    is_stop_word || token.written.len() < 2 || is_listed()
}

/// Returns whether a line is a trailer of a commit.
fn is_trailer(line: &str) -> bool {
    const TRAILERS: &str =
        "Fixes|Closes|Refs|Resolves|Co-authored-by:|Signed-off-by:|Co-Authored-By:";
    TRAILERS.split('|').any(|trailer| line.starts_with(trailer))
}

/// Returns the positions of a phrase in a text in lower case, as whole words.
fn cues<'a>(lower: &'a str, phrase: &'a str) -> impl Iterator<Item = usize> + 'a {
    let is_word = |c: char| c.is_alphanumeric() && c < '\u{2e80}';
    lower.match_indices(phrase).filter_map(move |(at, _)| {
        let before = lower[..at].chars().next_back();
        let after = lower[at + phrase.len()..].chars().next();
        let begins = !phrase.starts_with(is_word) || !before.is_some_and(is_word);
        let is_contraction = phrase == "n't" || phrase == "n'";
        let ends = !phrase.ends_with(is_word) || !after.is_some_and(is_word);
        ((begins || is_contraction) && ends).then_some(at)
    })
}

#[cfg(test)]
mod tests;
