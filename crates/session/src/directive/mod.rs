//! Tells which sentences of a person matter beyond the step they were said for.
//!
//! The rules are cue words of several languages. An order for one step ("don't run it yet"), a report
//! ("it never works"), an opinion, a question and a choice give no directive: a wrong instruction in a
//! note costs more than a missing one.

mod cues;
mod heads;
mod making;
mod rejection;
mod withdrawal;

pub use self::withdrawal::{takes_back, withdraws};
use self::{
    cues::{Cues, cues},
    withdrawal::names_rule,
};
pub(crate) use self::{
    heads::{announces_rules, binds_items},
    rejection::{adds, gives_other_number, negates, says_no, says_wrong, undoes},
};
use crate::phrases::{Words, is_dense, is_in, is_small_talk, length, rest_after, sum_of_marks};
use anamnesis_text::correction::gives_value_up;

/// The kind of a lasting sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Directive {
    /// It holds in general, or forbids: "never push to main".
    Rule,
    /// It says that something was wrong, and often what is right: "no, use pnpm".
    Correction,
    /// It says how a person or a team does things: "we use pnpm".
    Preference,
}

/// Words before the beginning of a sentence or a clause, in all languages.
const LEAD_INS: &str = "\
    remember that|note that|ok|okay|yes|yeah|yep|no|please|pls|and|also|so|but|then|well|actually|great|thanks|hmm|alright|just|again|\
    important|note|remember|reminder|bitte|und|aber|nein|ja|et|mais|non|oui|y|pero|sí|por favor|e|ma|mas|não|en|maar|\
    nee|a|ale|tak|и|но|нет|да|пожалуйста|请|好的|另外|还有|但是|但";

/// Orders to tell somebody a rule, which is then the sentence: "mention that rules are short".
const TELLING: [&str; 9] = [
    "mention that ",
    "remember that ",
    "keep in mind that ",
    "note that ",
    "be aware that ",
    "document that ",
    "pamiętaj, że ",
    "denk daran, dass ",
    "recuerda que ",
];

/// Verbs that make "you always …" or "we never …" a complaint.
const COMPLAINT: &str = "\
    forget|forgot|forgets|fail|failed|break|broke|get|gets|got|miss|missed|had|have|did|see|saw|know|knew|said|\
    happened|worked|works|ignore|ignored|seem|listen|hear|heard";

/// Beginnings with "never" that forbid nothing.
const NEVER_MIND: &str = "never mind|nevermind";

/// Beginnings with a subject. In languages whose word order does not tell an order from a report, an adverb
/// after it reports, unless the sentence says how something has to be or how it is done here.
const SUBJECTS: &str = "\
    der|die|das|ein|eine|mein|meine|le|la|les|un|une|mon|ma|el|los|las|il|lo|gli|os|as|um|uma|het|een|de";

/// Beginnings of orders that make a rule of what follows: "make sure to always …".
const INSISTING: &str =
    "make sure|be sure|ensure|try to|remember|i want you|i need you|i'd like you|please";

/// Beginnings of conditions that are met again: "if you propose a fix, …".
const CONDITIONS: &str = "if you|when you|when writing|when adding|when changing|when creating|jeśli|wenn du|si tu|如果你";

/// Words that make such a condition polite.
const POLITE: &str =
    "can|could|want|need|have|like|think|wish|kannst|willst|peux|veux|możesz|chcesz|可以|想|能";

/// Beginnings that reject an answer.
const REJECTING: &str = "\
    no|nope|wait|stop|wrong|incorrect|that's not|thats not|that is not|not what|undo|revert|why did you|why are you|\
    roll back|put it back|nein|falsch|non|mach das rückgängig|不对|不是|错了|撤销|いいえ|違う";

/// Beginnings that reject nothing, though their first word is one of [`REJECTING`].
const AGREEING: &str = "\
    no need|no more|no further|no idea|no worries|no problem|no rush|no hurry|no hace falta|wait for|stop here|stop the|\
    wrong tab|wrong window|wrong chat|wrong repo";
const CONSENT: &str = "fine|thanks|thank you|danke|passt|gracias|merci|dziękuję|dzięki";

/// Beginnings that change what an answer says.
const CHANGING: &str = "\
    change it to|change that to|make it|make that|set it to|switch to|ändere es auf|change-le en|cámbialo a|zmień na|改成|改为";

/// A first clause that announces a correction, and what a contradiction says of a thing that ended.
const CORRECTING: &str = "\
    correction|corrected|korrektur|corrección|correção|correzione|correctie|korekta|更正|訂正";
const ENDED: &str = "\
    is gone|are gone|was removed|were removed|was replaced|were replaced|was dropped|were dropped|has moved|have moved";

/// Beginnings that settle something.
const CHOOSING: &str = "\
    let's|lets|we'll|we will|go with|going with|i'd go with|let us|lass uns|wir nehmen|\
    on prend|vamos con|我们用|就用";

/// The longest sentence that is taken for a standing instruction, in characters. A longer one describes.
const MAX_STANDING: usize = 200;

/// Returns what a sentence of a person says beyond this one step, if it does.
pub fn directive(sentence: &str) -> Option<Directive> {
    Judged::new(sentence).directive()
}

/// Returns the part of a sentence that is a standing instruction.
pub(crate) fn standing_part(sentence: &str) -> Option<&str> {
    let sentence = rest_after(sentence, &TELLING).unwrap_or(sentence);
    let judged = Judged::new(sentence);
    let holds = sentence.chars().count() <= MAX_STANDING
        && !judged.is_labelled()
        && judged.is_general()
        && judged.directive() == Some(Directive::Rule)
        && !judged.words.contain(judged.cues.step)
        && judged.stands_alone();
    holds.then_some(sentence)
}

/// Returns whether a sentence can be understood without the text around it.
pub fn stands_alone(sentence: &str) -> bool {
    Judged::new(sentence).stands_alone()
}

/// Returns whether a sentence answers or continues something that is needed to understand it.
pub fn is_reaction(sentence: &str) -> bool {
    Words::new(sentence).after("no").begin(REACTING)
}

/// Returns whether the sentence before belongs to this one: its subject is there, or what a rule points to.
pub(crate) fn needs_sentence_before(sentence: &str) -> bool {
    let judged = Judged::new(sentence);
    let is_rule = || judged.directive() == Some(Directive::Rule);
    !judged.has_own_subject()
        || judged.words.begin(CONTINUING)
        || !judged.stands_alone() && is_rule()
}

/// Returns whether the subject of a sentence is in the sentence.
pub(crate) fn has_own_subject(sentence: &str) -> bool {
    Judged::new(sentence).has_own_subject()
}

/// Returns whether a prompt that begins with this sentence rejects the answer before it.
pub(crate) fn contradicts(sentence: &str) -> bool {
    let Judged { words, cues, .. } = Judged::new(sentence);
    let begins = |cue: &str| words.begin(cue) || words.after("actually|ok|hmm|well").begin(cue);
    // "Wait, do people still use it?"
    let only_asks = words.begin("wait|stop") && is_question(sentence);
    let rejects = begins(REJECTING) && !only_asks && !words.contain(CONSENT);
    !begins(AGREEING) && (rejects || words.contain(cues.wrong) && !is_question(sentence))
}

/// Returns whether a sentence gives another value for what the answer before it says: "make it 5 seconds".
pub(crate) fn changes_value(sentence: &str) -> bool {
    let words = Words::new(sentence).after(LEAD_INS);
    words.begin(CHANGING)
        && (specifics(sentence) > 0.0 || sentence.contains(|c: char| c.is_ascii_digit()))
}

/// Returns whether a Chinese sentence ends as a question does.
pub(crate) fn has_question_particle(sentence: &str) -> bool {
    is_dense(sentence) && sentence.ends_with(['吗', '呢', '么'])
}

/// Returns whether a sentence states something: it is not a question, an order or small talk.
pub(crate) fn states(sentence: &str) -> bool {
    let judged = Judged::new(sentence);
    !is_question(sentence)
        && !judged.is_order()
        && !is_small_talk(sentence)
        && !judged.is_unfinished()
}

/// Returns whether a sentence orders a step.
pub(crate) fn orders(sentence: &str) -> bool {
    Judged::new(sentence).is_order()
}

/// Returns whether a sentence forbids or corrects what it names.
pub(crate) fn opposes(sentence: &str) -> bool {
    let Judged { words, cues, .. } = Judged::new(sentence);
    words.begin(cues.forbidding)
        || words.contain(cues.wrong)
        || words.begin(cues.contradicting)
            && (words.contain(cues.negation) || words.contain(cues.contrast))
        || words.contain("instead|no longer|not any more|not anymore|revert|undo|roll back")
}

/// Returns the word that a sentence rejects: "I don't want Redis".
pub(crate) fn rejected_word(sentence: &str) -> Option<String> {
    let words = Words::new(sentence).after(LEAD_INS);
    let rejects =
        "i don't want|i dont want|we don't want|don't use|do not use|we don't use|we dont use";
    let word = words.begin(rejects).then(|| words.after(rejects))?;
    word.iter().next().map(str::to_owned)
}

/// Returns whether a person settles something: "let's use the queue".
pub(crate) fn chooses(sentence: &str) -> bool {
    let Judged { words, cues, .. } = Judged::new(sentence);
    let words = words.after(LEAD_INS);
    words.begin(CHOOSING)
        && !words.begin("let's say|lets say|let's assume|lets assume")
        && words.iter().count() >= 4
        && !is_question(sentence)
        // What holds for now was chosen all the same.
        && !words.without("for now").contain(cues.step)
        && !words
            .contain("commit|push|continue|proceed|next|test|run|try|start|see|look|check|go ahead")
}

/// Returns how much a sentence of a person tells a later session; 0 or less is nothing.
pub(crate) fn weight(sentence: &str) -> f32 {
    let judged = Judged::new(sentence);
    let Judged { words, cues, .. } = &judged;
    let lasting = match judged.directive() {
        Some(Directive::Rule | Directive::Correction) => 2.0,
        Some(Directive::Preference) => 1.0,
        None if judged.is_telling() => 0.8,
        None => return 0.0,
    };
    let marks = [
        (judged.is_general(), 4.0),
        (words.contain(cues.negation), 2.0),
        (words.contain(cues.contrast), 2.0),
        (words.contain(cues.wrong), 2.0),
        (words.begin(cues.contradicting), 1.5),
        (words.contain(cues.habit) || words.contain(cues.wish), 1.5),
        (words.contain(cues.reason), 1.5),
    ];
    sum_of_marks(&marks) + lasting + (0.7 * specifics(sentence)).min(2.0) - length(sentence) / 300.0
}

/// A sentence with what its rules look at.
struct Judged<'a> {
    sentence: &'a str,
    /// The words, without quoted ones.
    words: Words,
    /// The words of its clauses, without words that lead in.
    clauses: Vec<Words>,
    cues: &'static Cues,
}

impl<'a> Judged<'a> {
    fn new(sentence: &'a str) -> Self {
        let text = unquoted(sentence);
        let words = Words::new(&text);
        let clauses = text.split([',', ';', ':', '—', '–', '(', '，', '；', '：', '、', '。']);
        let clauses = clauses.map(|clause| Words::new(clause).after(LEAD_INS));
        Self {
            sentence,
            cues: cues(&words),
            clauses: clauses
                .filter(|clause| !clause.as_str().is_empty())
                .collect(),
            words,
        }
    }

    fn directive(&self) -> Option<Directive> {
        let (words, cues) = (&self.words, self.cues);
        if is_small_talk(self.sentence)
            || self.is_too_short()
            || self.is_choice()
            || self.is_unfinished()
        {
            return None;
        }
        let first = self.first().as_str();
        if is_in(CORRECTING, first) {
            return Some(Directive::Correction);
        }
        if names_rule(self) {
            return Some(Directive::Correction);
        }
        let is_wrong = words.contain(cues.wrong);
        if self.is_asking() {
            // "we use pnpm, can you …?" says something before it asks.
            let says = |holds: bool| holds && self.clauses.len() > 1;
            return if self.is_complaint() || says(is_wrong) {
                Some(Directive::Correction)
            } else {
                says(self.first().contain(cues.habit)).then_some(Directive::Preference)
            };
        }
        let is_general = self.is_general();
        let is_opposed = words.contain(cues.contrast) || words.contain(cues.negation);
        if !is_general {
            if self.is_at_line() {
                return None;
            }
            let is_wanted = words.begin("i want|i don't want|i dont want|i do not want");
            let is_told = self.first().begin(cues.report)
                && !words.begin("remember that|note that")
                || words.contain(cues.failing);
            if words.contain(cues.step) && !is_wanted
                || self.first().begin(cues.opinion)
                || is_told && !is_wrong && !self.first().begin(cues.habit)
            {
                return None;
            }
        }
        if is_general || !is_wrong && self.is_forbidding() {
            return Some(Directive::Rule);
        }
        if self.is_order() {
            return None;
        }
        let is_denied = is_opposed || words.contain(ENDED);
        if is_wrong
            || words.begin(cues.contradicting) && is_denied
            || self.rules_out()
            || self.contrasts()
            || gives_value_up(self.sentence)
        {
            return Some(Directive::Correction);
        }
        let is_weak = words.contain(WANTING);
        if is_opposed && (is_weak || words.contain(cues.wish)) {
            return Some(Directive::Correction);
        }
        (words.contain(cues.habit)
            || words.contain(cues.wish)
            || self.first().begin(USING) && !self.first().after(USING).begin(DETERMINERS))
        .then_some(Directive::Preference)
    }

    /// Returns the first clause that is more than words that lead in.
    fn first(&self) -> &Words {
        self.clauses.first().unwrap_or(&self.words)
    }

    /// Returns whether a sentence states a reason or a negation, and is not an order, report or opinion.
    fn is_telling(&self) -> bool {
        let (words, cues, first) = (&self.words, self.cues, self.first());
        let is_other = self.is_asking()
            || self.is_too_short()
            || self.is_choice()
            || self.is_order()
            || is_small_talk(self.sentence)
            || first.begin(cues.report)
            || first.begin(cues.opinion)
            || self.sentence.chars().count() > MAX_STANDING
            || self.is_unfinished();
        let has_reason = words.contain(cues.reason);
        let is_passing = words.contain(cues.step) || words.contain(cues.failing);
        let is_told_to = |clause: &Words| {
            clause.begin(cues.order) || clause.begin(cues.forbidding) || clause.begin(USING)
        };
        let is_condition = first.begin(CONDITIONS)
            && !first.contain(POLITE)
            && self.clauses.get(1).is_some_and(is_told_to);
        !is_other
            && (has_reason
                || is_condition
                || !is_passing && words.contain(cues.contrast)
                || !is_passing && words.contain(cues.negation) && specifics(self.sentence) > 0.0)
    }

    /// Returns whether the sentence holds in general by its own words.
    fn is_general(&self) -> bool {
        let (words, cues) = (&self.words, self.cues);
        if self.is_asking() {
            return false;
        }
        if making::is_order(self) {
            return making::is_general(self);
        }
        if words.contain(cues.general) && !words.contain(cues.failing) {
            return true;
        }
        let is_ever = words.as_str().ends_with(" ever") && words.contain(cues.negation);
        let is_here = words.contain(cues.here)
            && !self.is_order()
            && !self
                .first()
                .begin("we never see|we always see|we never get|we always get")
            && (words.contain(cues.habit) || words.contain(cues.wish) || self.is_forbidding());
        let is_told = self.first().begin(cues.report) || self.first().begin(cues.opinion);
        is_ever
            || is_here
            || !is_told
                && self.clauses.iter().any(|clause| {
                    clause.begin(cues.general_first)
                        && (self.clauses.len() > 1 || is_dense(words.as_str()))
                        && !words.contain(cues.failing)
                        || self.has_directing_adverb(clause)
                })
    }

    /// Returns whether "always" or "never" in a clause belongs to an order or a habit, not to a report.
    fn has_directing_adverb(&self, clause: &Words) -> bool {
        let cues = self.cues;
        if !clause.contain(cues.adverb)
            || clause.begin(NEVER_MIND)
            || self.words.contain(cues.failing)
                && (cues.before_adverb.is_empty() || !clause.begin(cues.adverb))
        {
            return false;
        }
        if cues.before_adverb.is_empty() {
            let is_rule = [cues.wish, cues.habit, cues.here];
            return !clause.begin(SUBJECTS) || is_rule.iter().any(|cue| self.words.contain(cue));
        }
        let list: Vec<&str> = clause.iter().collect();
        list.iter().enumerate().any(|(at, word)| {
            if !is_in(cues.adverb, word) {
                return false;
            }
            let next = list.get(at + 1).copied().unwrap_or_default();
            match at
                .checked_sub(1)
                .and_then(|before| list.get(before))
                .copied()
            {
                None => !next.is_empty() && !is_in(cues.failing, next),
                Some("you" | "we") => !is_in(COMPLAINT, next),
                Some("to" | "that") => !self.is_order() || self.first().begin(INSISTING),
                Some(before) => is_in(cues.before_adverb, before),
            }
        })
    }

    fn is_forbidding(&self) -> bool {
        let forbids = |clause: &Words| {
            let clause = clause.without(self.cues.here);
            clause.begin(self.cues.forbidding)
                && !clause.begin(NEVER_MIND)
                && (is_dense(clause.as_str()) || clause.iter().count() > 2)
                && !clause.begin(self.cues.report)
        };
        self.clauses.iter().any(forbids)
    }

    /// Returns whether the sentence orders a step. What to do instead of something else is more.
    fn is_order(&self) -> bool {
        let first = self.first();
        first.begin(self.cues.order)
            && !self.is_forbidding()
            && (!(self.words.contain(self.cues.contrast) || self.rules_out())
                || points_out(&self.words))
    }

    /// Returns whether a clause rules out a quoted value: "run `minsky`, not `bun run`". Of other words it
    /// may only limit the step: "write the test, not the code".
    fn rules_out(&self) -> bool {
        let is_quoted = |clause: &Words| clause.as_str() == "not x";
        self.clauses.iter().skip(1).any(is_quoted)
    }

    /// Returns whether a statement ends by naming what it rules out: "the bucket is acme-dr, not acme-backups".
    fn contrasts(&self) -> bool {
        const MAX_WORDS: usize = 4;
        let [.., _, last] = self.clauses.as_slice() else {
            return false;
        };
        last.begin("not|nicht|pas|nie|не") && (2..=MAX_WORDS).contains(&last.iter().count())
    }

    /// Returns whether an order is about one line of a file: "src/cart.rs:24 should use a map".
    fn is_at_line(&self) -> bool {
        let mut words = self.sentence.split_whitespace();
        words.any(|word| {
            let word = word.trim_end_matches(['.', ',', ')', ':', '`']);
            word.split_once(':').is_some_and(|(file, line)| {
                let is_file = file.contains('/') && !line.starts_with('/');
                is_file && line.starts_with(|c: char| c.is_ascii_digit())
            })
        })
    }

    /// Returns whether a colon separates the sentence from who says it or what it is for, unless that is a
    /// rule or the head of rules: "Alex: …", "add to the readme: …".
    fn is_labelled(&self) -> bool {
        let text = unquoted(self.sentence);
        let goes_on =
            |after: &str| after.starts_with(|c: char| c.is_ascii_digit() || "/:\\".contains(c));
        let mut colons = text.match_indices([':', '：']);
        let colon = colons.find(|(at, colon)| !goes_on(&text[at + colon.len()..]));
        colon.is_some_and(|(at, _)| {
            let label = Words::new(&text[..at]).after(LEAD_INS);
            let cues = self.cues;
            let general = [
                cues.general,
                cues.general_first,
                cues.adverb,
                cues.here,
                cues.rules,
            ];
            !label.as_str().is_empty()
                && !general.iter().any(|cue| label.contain(cue))
                && !label.begin(cues.forbidding)
        })
    }

    fn is_unfinished(&self) -> bool {
        let sentence = self.sentence.trim_end_matches(['"', ')']);
        sentence.ends_with(['…', ':', '：']) || sentence.ends_with("...")
    }

    /// Returns whether a question complains: "why are you still using npm?".
    fn is_complaint(&self) -> bool {
        self.clauses
            .iter()
            .any(|clause| clause.begin(self.cues.why))
            && self.words.contain(self.cues.again)
            && (is_dense(self.sentence) || self.words.iter().count() > 3)
            && !self.words.contain("why not")
    }

    /// Returns whether the sentence asks. "Could you please always use uv?" orders.
    fn is_asking(&self) -> bool {
        let is_order = || {
            let words = self.words.after("ok|okay|hey|please");
            words.begin("can you|could you|would you|will you")
                && self
                    .clauses
                    .iter()
                    .any(|clause| self.has_directing_adverb(clause))
        };
        is_question(self.sentence) && !is_order() || has_question_particle(self.sentence)
    }

    /// Returns whether the sentence chooses an option by its number.
    fn is_choice(&self) -> bool {
        const OPTION: &str = "option|options|choice|variant|number|opcja|opción|variante|方案|选项";
        let first = self.first();
        let list: Vec<&str> = first.iter().collect();
        let is_number = match list[..] {
            [word] => word.len() == 1 || word.parse::<u32>().is_ok(),
            [word, ..] => word.parse::<u32>().is_ok(),
            [] => false,
        };
        let is_short = self.words.iter().count() <= 7 && !self.words.contain(self.cues.reason);
        is_short && (is_number || first.begin(OPTION))
    }

    /// Returns whether a sentence is too short to be understood alone.
    fn is_too_short(&self) -> bool {
        if is_dense(self.sentence) {
            self.sentence.chars().count() < 4
        } else {
            Words::new(self.sentence).iter().count() < 3
        }
    }

    /// Returns whether the subject is in the sentence. "That is wrong, …" and "It's X, Y was removed" only
    /// lead in.
    fn has_own_subject(&self) -> bool {
        let leads_in = |clause: &Words, next: &Words| {
            (clause.contain(self.cues.wrong) || next.contain(ENDED)) && clause.iter().count() <= 4
        };
        let mut clauses = self.clauses.iter().enumerate();
        clauses
            .find(|(place, clause)| {
                let next = self.clauses.get(place + 1);
                !next.is_some_and(|next| leads_in(clause, next))
            })
            .is_none_or(|(_, clause)| {
                clause.begin(self.cues.here) || !clause.begin(self.cues.pronoun)
            })
    }

    fn stands_alone(&self) -> bool {
        let words = self
            .words
            .without(self.cues.general)
            .without(self.cues.here);
        self.has_own_subject()
            && !self.words.begin(CONTINUING)
            && !words.contain(self.cues.deixis)
            && !points_out(&words)
    }
}

/// Beginnings that go on from the sentence before.
const CONTINUING: &str = "\
    but|so|then|even though|what i|aber|mais|donc|pero|así que|ale|więc|но|поэтому|但|所以";

/// Beginnings of answers to something before, and of what continues it.
const REACTING: &str = "\
    that's not|that is not|thats not|that's wrong|that is wrong|thats wrong|this is not|ah|oh|but|and|i'll do this";

/// Wishes that are orders for the step, unless something else is ruled out.
const WANTING: &str = "\
    should|need to|needs to|has to|have to|make sure|be sure|ensure|important|i want|we want|i'd like|remember";

/// Orders to use something, which is named without a determiner: "use uv pip".
const USING: &str = "use|verwende|nutze|utilise|usa|używaj|используй|用|使用|gebruik";
const DETERMINERS: &str = "\
    the|your|this|that|these|those|a|an|it|den|die|das|deine|diese|le|la|ton|ta|el|tu|este|tego|tej|этот|这个|那个|你的|de|het";

/// Returns whether an English sentence has a pronoun for which nothing before it can stand.
fn points_out(words: &Words) -> bool {
    const FUNCTION: &str = "\
        a|an|the|to|of|and|or|but|so|in|on|for|with|if|when|please|always|never|not|don't|do|just|then|you|we|i|be|is|\
        are|must|should|also|no|ok|from|now|use|make|keep";
    const BARE: &str = "|and|or|but|when|if|in|on|at|to|for|by|with|every|next|again|too|as|because|so|before|after";
    // Words after which "that" begins no clause.
    const DETERMINED: &str = "use|in|of|to|for|with|like|do|than|on|at|from|by|about|into|after|before|all|always|never|move|and";
    let list: Vec<&str> = words.iter().collect();
    if list.last() == Some(&"there") {
        return true;
    }
    let mut told = 0;
    for (at, word) in list.iter().enumerate() {
        let next = list.get(at + 1).copied().unwrap_or_default();
        let before = at.checked_sub(1).and_then(|at| list.get(at)).copied();
        let is_pronoun = matches!(*word, "it" | "its" | "it's" | "them" | "they" | "their");
        let is_bare = matches!(*word, "this" | "that") && is_in(BARE, next);
        let is_determiner = *word == "this" && !is_bare && !matches!(next, "task" | "session")
            || *word == "that" && !is_bare && before.is_some_and(|word| is_in(DETERMINED, word));
        if is_determiner || (is_pronoun || is_bare) && told < 3 {
            return true;
        }
        told += usize::from(!is_in(FUNCTION, word));
    }
    false
}

/// Replaces quoted words and code, which a person names and does not say.
pub(crate) fn unquoted(sentence: &str) -> String {
    let mut text = String::with_capacity(sentence.len());
    let mut quote = None;
    for c in sentence.chars() {
        match (quote, c) {
            (Some(end), c) if c == end => quote = None,
            (Some(_), _) => {}
            (None, '"') => quote = Some('"'),
            (None, '`') => quote = Some('`'),
            (None, '“' | '„') => quote = Some('”'),
            (None, '「') => quote = Some('」'),
            (None, '『') => quote = Some('』'),
            (None, '《') => quote = Some('》'),
            (None, '«') => quote = Some('»'),
            (None, c) => text.push(c),
        }
        if quote.is_some() && !text.ends_with('x') {
            text.push('x');
        }
    }
    // A quote that never ends is none.
    if quote.is_some() {
        sentence.to_owned()
    } else {
        text
    }
}

/// Counts what can be looked up: names of files and of code, options, quoted terms, numbers.
pub(crate) fn specifics(sentence: &str) -> f32 {
    let quoted = sentence.matches(['`', '"']).count() / 2;
    let words = sentence.split_whitespace().map(|word| {
        word.trim_matches(|c: char| !c.is_alphanumeric() && !"@#-_/.".contains(c))
            .trim_end_matches(['.', ',', ':'])
    });
    let named = words.filter(|word| is_specific(word)).count();
    f32::from(u8::try_from(quoted.max(named)).unwrap_or(u8::MAX))
}

pub(crate) fn is_specific(word: &str) -> bool {
    let count = |is: fn(char) -> bool| word.chars().filter(|c| is(*c)).count();
    let pairs = || word.chars().zip(word.chars().skip(1));
    let extension = word.rsplit_once('.').map(|(name, end)| (name.len(), end));
    word.starts_with('@') && word.len() > 2
        || word.starts_with("--") && word.len() > 3
        || word.starts_with('#') && count(|c| c.is_ascii_digit()) > 0
        || word.contains(['_', '/']) && word.len() > 3 && count(char::is_alphabetic) > 1
        || extension.is_some_and(|(name, end)| {
            name > 0 && (1..=5).contains(&end.len()) && end.chars().all(char::is_alphabetic)
        })
        || pairs().any(|(one, next)| one.is_lowercase() && next.is_uppercase())
        || word.len() >= 3
            && (count(char::is_uppercase) == word.len() || count(|c| c.is_ascii_digit()) >= 3)
}

/// Cues of questions why, when or who, of all languages.
const PAST: &str = "why|how come|since when|when did|when was|when were|when have|when has|who wrote|\
    who made|who did|who broke|who split|who built|who set|who put|who took|who chose|who cut|the reason for|the reason behind|\
    warum|wieso|weshalb|seit wann|wann wurde|wann wurden|wann haben|wann hat|wer hat|pourquoi|depuis quand|quand a|\
    quand ont|quand avons|qui a|por qué|desde cuándo|cuándo|quién|por que|desde quando|quando foi|quem|perché|\
    da quando|quando è|quando abbiamo|chi ha|waarom|sinds wanneer|wanneer is|wanneer hebben|wie heeft|dlaczego|czemu|\
    od kiedy|kto|почему|зачем|с каких пор|когда мы|когда был|когда была|когда было|когда были|кто|为什么|为啥|\
    什么时候|是谁|なぜ|どうして|なんで|いつから|誰が|왜|언제부터|누가";

/// The same words in sentences that ask nothing.
const NOT_PAST: &str = "that's why|thats why|that is why|this is why|which is why|the reason why i|why not|why are you|why do you|\
     why did you|why have you|why would you|why don't you|why didn't you|warum hast du|warum machst du|\
     warum nimmst du|warum willst du|wieso hast du|pourquoi as-tu|pourquoi tu|por qué has|por qué estás|perché hai|\
     почему ты|зачем ты|dlaczego ty|你为什么";

/// Returns whether a sentence asks why, when or by whom something became as it is.
pub fn asks_about_the_past(sentence: &str) -> bool {
    let words = Words::new(sentence);
    let asks = words.contain(PAST) && words.without(NOT_PAST).contain(PAST);
    asks || words.contain("who") && asks_who_did(sentence)
}

/// Returns whether "who" comes before a regular verb in the past: "who renamed the page".
fn asks_who_did(sentence: &str) -> bool {
    let words: Vec<String> = sentence.split_whitespace().map(str::to_lowercase).collect();
    let mut pairs = words.iter().zip(words.iter().skip(1));
    pairs.any(|(who, verb)| who == "who" && verb.len() > 4 && verb.ends_with("ed"))
}

/// Returns whether a sentence ends with a question mark.
pub fn is_question(sentence: &str) -> bool {
    sentence
        .trim_end_matches(['"', ')', '*', ' ', '!'])
        .ends_with(['?', '？'])
}

#[cfg(test)]
mod tests;
